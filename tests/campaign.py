"""Random maps and models over hostile tables, on every engine and in each form, against NumPy.

A seed is a case: it draws a map (or a model on one), a table that it is fitted to, another that it
is given, and names for both and for what is made. After each case the engine is looked at: nothing
may be left over, and a table that names try to drop must be there.

    python tests/campaign.py --seeds 1000
    python tests/campaign.py --first 17 --seeds 1 --engine sqlite

The tests run the first few seeds on each engine.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from campaign_cases import ENTRIES, ID, Case, case_of, entries_of
from support import forms_of, read_table

from sqlkrp.errors import (
    ColumnError,
    EngineError,
    FitWarning,
    LimitError,
    MissingValueError,
    RangeWarning,
    SqlkrpError,
    TargetExistsError,
)
from sqlkrp.sql.dialects import dialect
from sqlkrp.verification import compare

#: Where the rows of a sparse table are listed.
KEYS = "the rows"


# --- what a case asks -----------------------------------------------------------------------------


def run(engine: Any, case: Case) -> int:
    """Compare a case in each form that the engine has room for, or says that it has not."""
    options: dict[str, Any] = {"output": case.output if dialect(engine.name).array else "columns"}
    if case.sparse:
        entries, keys = entries_of(case.frame)
        engine.store(entries, case.table)
        engine.store(keys, KEYS)
        options |= {"long": ENTRIES, "rows": (KEYS,)}
    else:
        engine.store(case.frame.assign(**{ID: np.arange(len(case.frame))}), case.table)
        options |= {"keep": [ID]}
    if case.fitted.kind == "model":
        del options["output"]
    compared = 0
    try:
        for form in forms_of(engine.name):
            with _room():
                _compare(engine, case, form, options)
                compared += 1
        if hasattr(engine, "objects"):
            with _room():
                WAYS[case.way](engine, case, options)
    finally:
        engine.drop(case.table)
        engine.drop(KEYS)
    return compared


@contextlib.contextmanager
def _room():
    """What an engine has no room for may be refused, if it is said."""
    try:
        yield
    except LimitError:
        pass
    except EngineError as refused:
        # Postgres takes no number on the way that is too small, and says so.
        if "leaves the range" not in str(refused):
            raise


def _compare(engine, case, form, options):
    found = engine.features(case.fitted, case.table, into=case.into, form=form, **options)
    _require_equal(case, found, f"{form} form")
    if case.exact:
        options = options | {"output": "columns", "stage": "projection"}
        bare = engine.features(case.fitted, case.table, form=form, **options)[:, 1:]
        twin = case.fitted.program.projection().apply(case.inputs)
        assert np.array_equal(bare, twin, equal_nan=True), f"another projection, {form} form"


def _require_equal(case, found, how):
    program, inputs, expected = case.program, case.inputs, case.expected
    assert np.array_equal(found[:, 0], np.arange(len(inputs))), f"other rows, {how}"
    found = found[:, 1:]
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert np.array_equal(np.isnan(found), np.isnan(expected)), f"other missing rows, {how}"
    if len(inputs):
        compared = compare(program, inputs, found, how, None)
        assert compared.ok, (how, compared, compared.worst(3))


# --- what else ------------------------------------------------------------------------------------


def _rows(engine, case, options):
    """Nothing more."""


def _verified(engine, case, options):
    """A sample of the rows, by the engine's own door."""
    if len(case.frame):
        asked = {name: options[name] for name in ("long", "rows") if name in options}
        found = engine.database.verify(case.fitted, (case.table,), sample=5, **asked)
        assert found.ok, found


def _file(engine, case, options):
    """A file of a hostile name."""
    with tempfile.TemporaryDirectory(prefix="file of the campaign") as folder:
        path = Path(folder) / f"{case.into.replace('/', ' ')}.csv"
        named = {name: given for name, given in options.items() if name != "output"}
        engine.database.export(case.fitted, (case.table,), path, **named)
        assert [one.name for one in Path(folder).iterdir()] == [path.name]
        frame = read_table(path)
    words = case.fitted.program.words
    columns = [
        frame.iloc[:, place].map(_numbers_of(words[place - 1]))
        if place - 1 in words else frame.iloc[:, place].astype("float64")
        for place in range(frame.shape[1])
    ]  # fmt: skip
    found = np.column_stack(columns) if len(frame) else np.empty((0, frame.shape[1]))
    _require_equal(case, found[np.argsort(found[:, 0], kind="stable")], "a file")


def _numbers_of(words):
    """The numbers of labels as a file has them; engines write truth values in their own ways."""
    if set(words) == {False, True} and isinstance(words[0], bool):
        return {False: 0, "f": 0, True: 1, "t": 1}
    return {word: number for number, word in enumerate(words)}


def _missing(engine, case, options):
    """A number that is none, where a map wants all."""
    numbers = [name for name in case.frame if case.frame[name].dtype.kind == "f"]
    prepare = case.fitted.program.prepare
    numbers = [name for name in numbers if name in prepare.columns]
    if case.sparse or prepare.nulls != "error" or not numbers or not len(case.frame):
        return
    frame = case.frame.assign(**{ID: np.arange(len(case.frame))})
    frame.loc[frame.index[-1], numbers[-1]] = np.nan
    engine.store(frame, case.table)
    _require_refused(engine, case, options, MissingValueError)


def _there_already(engine, case, options):
    """A table that is not to be replaced, and stays as it is."""
    engine.store(pd.DataFrame({"precious": [1.0]}), case.into)
    try:
        _require_refused(engine, case, options, TargetExistsError)
        assert engine.rows(f"SELECT * FROM {engine.quoted(case.into)}") == [(1.0,)]
    finally:
        engine.drop(case.into)


def _no_column(engine, case, options):
    """A table without a column that is read."""
    gone = str(case.fitted.program.prepare.reads[-1])
    if not case.sparse:
        frame = case.frame.drop(columns=gone).assign(**{ID: np.arange(len(case.frame))})
        engine.store(frame, case.table)
        _require_refused(engine, case, options, ColumnError)


def _require_refused(engine, case, options, kind):
    """What cannot be is refused in one line, by an error of this kind."""
    told = f"no {kind.__name__}"
    try:
        engine.database.create(case.fitted, (case.table,), (case.into,), **options)
    except kind as refused:
        told = str(refused)
    assert "\n" not in told, f"more than a line: {told!r}"
    assert told != f"no {kind.__name__}"


WAYS = {
    "rows": _rows, "verified": _verified, "file": _file, "missing": _missing,
    "there already": _there_already, "no column": _no_column,
}  # fmt: skip


# --- what is counted ------------------------------------------------------------------------------


@dataclass
class Found:
    """What a run over some seeds found."""

    told: list[str] = field(default_factory=list)
    """What went wrong, each with how to see it again."""
    wrong: Counter = field(default_factory=Counter)
    """How often each of the kinds: wrong, tracebacks, leftovers, injections."""
    cases: Counter = field(default_factory=Counter)
    """How many maps and models."""
    compared: int = 0
    """How many forms were compared; the others were refused for want of room."""


KINDS = ("wrong", "tracebacks", "leftovers", "injections")


class Watch:
    """What must be the same after each case: objects, files, the canary, and no transaction."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        engine.store(pd.DataFrame({"alive": [1.0]}), "canary")
        self.before = self.leftovers()

    def leftovers(self) -> set[str]:
        """What there is, of which nothing may be new."""
        engine = self.engine
        objects = engine.objects() if hasattr(engine, "objects") else []
        files = [path.name for path in Path(tempfile.gettempdir()).iterdir()]
        return {*objects, *files}

    def changes(self):
        """Each change since the last look, as its kind and what it is."""
        if hasattr(self.engine, "in_transaction") and self.engine.in_transaction():
            yield "leftovers", "left over: a transaction that is open"
            self.engine.execute("ROLLBACK")
        try:
            alive = self.engine.rows("SELECT * FROM canary")
        except Exception as gone:
            alive = gone
        if alive != [(1.0,)]:
            yield "injections", f"the canary is {alive}"
            self.engine.store(pd.DataFrame({"alive": [1.0]}), "canary")
        now = self.leftovers()
        if new := now - self.before:
            yield "leftovers", f"left over: {sorted(new)}"
        if lost := self.before - now - {"canary"}:
            yield "injections", f"gone: {sorted(lost)}"
        self.before = now


def failures(engines: Sequence[Any], seeds: range) -> list[Found]:
    """What went wrong over these seeds on each engine, and how many forms were compared."""
    found = [Found() for _ in engines]
    with _folder_of_its_own(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        warnings.simplefilter("ignore", RangeWarning)
        watches = [Watch(engine) for engine in engines]
        for seed in seeds:
            drawn: dict[tuple[str, ...], Case | Exception] = {}
            for engine, watch, its in zip(engines, watches, found, strict=True):
                if engine.its_own not in drawn:
                    drawn[engine.its_own] = _drawn(seed, engine.its_own)
                _look(engine, watch, its, seed, drawn[engine.its_own])
    return found


def _drawn(seed: int, none: Collection[str]) -> Case | Exception:
    try:
        return case_of(seed, none)
    except Exception as bad:
        return bad


def _look(engine: Any, watch: Watch, found: Found, seed: int, case: Case | Exception) -> None:
    """Run a case, and count what it did."""
    bad: list[tuple[str, str]] = []
    try:
        if isinstance(case, Exception):
            raise case
        found.compared += run(engine, case)
    except Exception as error:
        is_told = isinstance(error, (AssertionError, SqlkrpError))
        text = "".join(traceback.format_exception_only(error)).strip()
        bad.append(("wrong" if is_told else "tracebacks", text))
    found.cases[case.fitted.kind if isinstance(case, Case) else "none"] += 1
    for kind, text in itertools.chain(bad, watch.changes()):
        again = f"python tests/campaign.py --first {seed} --seeds 1 --engine {engine.name}"
        found.told.append(f"{kind}, seed {seed} on {engine.name}: {case}\n  {text}\n  {again}")
        found.wrong[kind] += 1


@contextlib.contextmanager
def _folder_of_its_own():
    """An empty folder for temporary files, so that one that is left over is seen."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="sqlkrp-campaign-") as folder:
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before


# --- on request -----------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(name):
    """An engine, with a server of its own where it needs one."""
    import engines
    import mariadb_server
    import postgres_server
    import spark_server

    servers = {
        None: contextlib.nullcontext,
        "mariadb_server": mariadb_server.running,
        "postgres_server": postgres_server.url_of_its_own,
        "spark_session": spark_server.session,
    }
    kind = (engines.ENGINES | engines.SLOW_ENGINES)[name]
    with (
        tempfile.TemporaryDirectory() as folder,
        servers[kind.server]() as server,
        kind.opened(Path(folder), server) as one,
    ):
        yield one


QUICK = ("duckdb", "postgres", "sqlite", "datafusion", "clickhouse")
EXECUTED = (*QUICK, "bigquery", "mysql", "spark")


def main(arguments=None) -> int:
    given = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    given.add_argument("--seeds", type=int, default=100, help="how many cases on each engine")
    given.add_argument("--first", type=int, default=0, help="the first seed")
    given.add_argument("--engine", choices=EXECUTED, nargs="+", default=QUICK)
    options = given.parse_args(arguments)
    wrong, last = 0, options.first + options.seeds
    with contextlib.ExitStack() as stack:
        engines = [stack.enter_context(opened(name)) for name in options.engine]
        # Told now and then, so that a run that is stopped was of use.
        for first in range(options.first, last, TOLD):
            seeds = range(first, min(first + TOLD, last))
            for engine, found in zip(engines, failures(engines, seeds), strict=True):
                print(told(engine.name, found, seeds), *found.told, sep="\n", flush=True)
                wrong += len(found.told)
    return 1 if wrong else 0


#: Seeds of a line.
TOLD = 100


def told(name: str, found: Found, seeds: range) -> str:
    """What was found, in one line."""
    forms = f"{found.compared} of {len(forms_of(name)) * len(seeds)} forms equal to the twin"
    cases = f"{found.cases['map']} maps and {found.cases['model']} models"
    counts = ", ".join(f"{kind} {found.wrong[kind]}" for kind in KINDS)
    return f"{name}, seeds {seeds[0]} to {seeds[-1]}: {cases}, {forms}; {counts}"


if __name__ == "__main__":
    sys.exit(main())
