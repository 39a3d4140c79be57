"""Random maps over hostile tables, on every engine and in both forms, against the NumPy twin.

A seed is a case: it draws a map, a table that the map is fitted to, and another that it is given.

    python tests/campaign.py --seeds 1000
    python tests/campaign.py --first 17 --seeds 1 --engine sqlite

The tests run the first few seeds on each engine.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import traceback
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hostile import HOSTILE, INNER, spelt_apart
from support import forms_of

import sqlkrp
from sqlkrp.errors import (
    ColumnError,
    EngineError,
    FitWarning,
    LimitError,
    ParameterError,
    RangeWarning,
)
from sqlkrp.sql.dialects import dialect
from sqlkrp.verification import compare

ID = "the id"
ENTRIES = ("the row", "the feature", "the value")


# --- tables ---------------------------------------------------------------------------------------

KINDS = {
    "dyadic": lambda rng, rows: rng.integers(-40, 41, rows) / 8,
    "whole": lambda rng, rows: rng.integers(-9, 10, rows),
    "truth": lambda rng, rows: rng.integers(0, 2, rows).astype(bool),
    "zero": lambda rng, rows: np.zeros(rows),
    "constant": lambda rng, rows: np.full(rows, 2.5),
    "single": lambda rng, rows: rng.normal(3, 2, rows).astype("float32"),
    "normal": lambda rng, rows: rng.normal(-2, 3, rows),
    "large": lambda rng, rows: rng.normal(1e9, 1e3, rows),
    "huge": lambda rng, rows: rng.normal(0, 1e25, rows),
    "tiny": lambda rng, rows: rng.normal(0, 1e-15, rows),
}
#: Tables of some kinds only: where all is dyadic, sums are exact; units differ elsewhere.
PALETTES = [("dyadic",), ("dyadic", "whole", "truth", "zero"), ("single",), tuple(KINDS)]


def names_of(rng, count, none):
    names = [str(name) for name in rng.permutation(HOSTILE + INNER) if name not in none]
    return spelt_apart(names)[:count]


def table(rng, kinds, rows, *, holes):
    """A table of columns of these kinds; with holes, some of its numbers are none."""
    frame = pd.DataFrame({name: KINDS[kind](rng, rows) for name, kind in kinds.items()})
    for name in frame:
        if holes and frame[name].dtype.kind == "f":
            where = rng.random(rows) < 0.1
            frame.loc[where, name] = rng.choice([np.nan, np.inf, -np.inf], where.sum())
    return frame


def entries_of(frame):
    """The same table as (row, feature, value) without its zeros, and the rows that there are."""
    values = frame.astype("float64").to_numpy()
    rows, features = np.nonzero(values)  # what is no number is none of these
    long = [rows, np.array(frame.columns, dtype=object)[features], values[rows, features]]
    return (
        pd.DataFrame(dict(zip(ENTRIES, long, strict=True))),
        pd.DataFrame({ENTRIES[0]: np.arange(len(frame))}),
    )


# --- maps -----------------------------------------------------------------------------------------


def one_of(rng, *values):
    return values[rng.integers(len(values))]


def shared(rng, **others):
    return {
        "scaling": one_of(rng, None, "auto", "standard", "minmax", "unit"),
        "clip": one_of(rng, "auto", "auto", None, 1.5),
        "nulls": one_of(rng, "error", "zero", "mean", "propagate"),
        "dtype": one_of(rng, "auto", "float64", "float32"),
        **others,
    }


def polynomial(rng):
    return {"coef0": one_of(rng, 0.0, 0.25, 1.0), "gamma": one_of(rng, "auto", 0.25, 1.0)}


def pool(rng, *pools):
    chosen = one_of(rng, *pools)
    return {
        "achlioptas": {"pool": chosen, "s": one_of(rng, 1, 3, 2.5, 50)},
        "hadamard": {"pool": chosen, "block_size": one_of(rng, 1, 2, 8, 64)},
        "gaussian": {"pool": chosen},
    }[chosen]


POOLS = ("achlioptas", "hadamard", "gaussian")
MAPS: dict[str, Any] = {
    "krp": lambda rng, k, **others: sqlkrp.KRP(
        one_of(rng, 1, 2, 3, 4), k, n_terms=one_of(rng, 1, 2, 5), **polynomial(rng),
        **pool(rng, *POOLS), **others,
    ),
    "mixed": lambda rng, k, **others: sqlkrp.MixedKRP(
        one_of(rng, 1, 2, 3), k, n_terms=one_of(rng, 1, 2), **polynomial(rng), **others
    ),
    "complex": lambda rng, k, **others: sqlkrp.ComplexKRP(
        one_of(rng, 1, 2, 3, 5), k + k % 2, n_terms=one_of(rng, 1, 2), **polynomial(rng),
        **{"pool": one_of(rng, "achlioptas", "hadamard")}, **others,
    ),
    "projection": lambda rng, k, **others: sqlkrp.RandomProjection(
        k, **pool(rng, *POOLS), **others
    ),
    "explicit": lambda rng, k, **others: sqlkrp.ExplicitRP(
        one_of(rng, 1, 2, 3), k, s=one_of(rng, 1, 3), **polynomial(rng), **others
    ),
    "monomials": lambda rng, k, **others: sqlkrp.Monomials(
        one_of(rng, 1, 2, 3), **polynomial(rng), **others
    ),
    "thresholds": lambda rng, k, **others: sqlkrp.Thresholds(k, **others),
    "prp": lambda rng, k, **others: sqlkrp.PRP(k, n_matrices=one_of(rng, 2, 4), **others),
    "maclaurin": lambda rng, k, **others: sqlkrp.RandomMaclaurin(
        k, degree=one_of(rng, 1, 2, 5), **polynomial(rng), **others
    ),
    "maclaurin, exponential": lambda rng, k, **others: sqlkrp.RandomMaclaurin(
        k, kernel="exponential", **others
    ),
    "sketch": lambda rng, k, **others: sqlkrp.TensorSketch(
        one_of(rng, 1, 2, 3), k, domain=one_of(rng, "fourier", "bucket"), **polynomial(rng),
        **others,
    ),
    "rank one": lambda rng, k, **others: sqlkrp.RankOneProjection(k, **others),
    "fourier": lambda rng, k, **others: sqlkrp.RandomFourier(
        k + k % 2, kernel=one_of(rng, "rbf", "laplacian"), paired=one_of(rng, False, True), **others
    ),
    "sorf": lambda rng, k, **others: sqlkrp.SORF(k, **others),
    "spherical": lambda rng, k, **others: sqlkrp.SphericalRandomFeatures(
        k, **{**others, "scaling": "unit", "clip": None}
    ),
    "nystroem": lambda rng, k, **others: sqlkrp.Nystroem(
        k, kernel=one_of(rng, "rbf", "polynomial", "linear"), **others
    ),
    "kgrp": lambda rng, k, **others: sqlkrp.KGRP(
        k, n_landmarks=12, n_marked=5, kernel=one_of(rng, "rbf", "polynomial"), **others
    ),
    "pca": lambda rng, k, **others: sqlkrp.PCA(k, **others),
}  # fmt: skip
#: Maps of signs and products alone: sums of dyadic numbers are exact.
TERNARY = ("krp", "complex", "projection", "explicit", "prp")


def map_of(rng, *, inside=True):
    """A map that is not fitted, and its kind."""
    kind = one_of(rng, *MAPS, *(("ensemble", "chain") if inside else ()))
    k = one_of(rng, 1, 2, 5, 9)
    if kind == "ensemble":
        return kind, sqlkrp.Ensemble(map_of(rng, inside=False)[1], one_of(rng, 1, 3))
    if kind == "chain":
        first = MAPS[one_of(rng, *MAPS)](rng, k, **shared(rng))
        behind = {"scaling": one_of(rng, None, "standard")}
        second = MAPS[one_of(rng, *(name for name in MAPS if name != "spherical"))](
            rng, 4, **behind
        )
        return kind, sqlkrp.chain(first, second)
    return kind, MAPS[kind](rng, k, **shared(rng))


# --- cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A fitted map, and a table to give to it."""

    fitted: Any
    frame: pd.DataFrame
    exact: bool
    sparse: bool
    output: str

    def __str__(self) -> str:
        sizes = f"{len(self.frame)} rows, {len(self.frame.columns)} columns"
        kinds = ", ".join(sorted({str(kind) for kind in self.frame.dtypes}))
        sparse = " sparse" if self.sparse else ""
        return f"{self.fitted.title} over{sparse} {sizes} ({kinds}), output={self.output!r}"


def case_of(seed: int, none: Collection[str] = ()) -> Case:
    """The case of a seed; what no map can be fitted to is drawn again."""
    rng = np.random.default_rng(seed)
    while True:
        palette = one_of(rng, *PALETTES)
        names = names_of(rng, one_of(rng, 1, 2, 3, 8, 20), none)
        kinds = {name: one_of(rng, *palette) for name in names}
        kind, one = map_of(rng)
        one.random_state = int(rng.integers(2**32))
        policies = {one.get_params()[name] for name in one.get_params() if name.endswith("nulls")}
        holes = "error" not in policies and rng.random() < 0.7
        frame = table(rng, kinds, one_of(rng, 0, 1, 2, 7, 30), holes=holes)
        sparse = rng.random() < 0.2
        output = one_of(rng, "columns", "columns", "array")
        try:
            one.fit(table(rng, kinds, 30, holes=False))
        except (ParameterError, ColumnError):
            continue
        prepare = one.program_.prepare
        if sparse and (prepare.shift != 0).any():
            continue  # absent entries would not stay 0
        if np.isinf(one.transform(frame)).any():
            continue  # what leaves the range of numbers is told by each engine in its way
        exact = kind in TERNARY and palette in PALETTES[:2] and prepare.dtype == "float64"
        exact = exact and (prepare.scale == 1).all() and (prepare.shift == 0).all()
        exact = exact and not prepare.bounds and one.get_params()["scaling"] != "unit"
        exact = exact and one.get_params().get("pool") != "gaussian"
        return Case(one, frame, bool(exact), bool(sparse), output)


def run(engine: Any, seed: int) -> int:
    """Compare a case in each form that the engine has room for, or says that it has not."""
    case = case_of(seed, engine.its_own)
    options: dict[str, Any] = {"output": case.output if dialect(engine.name).array else "columns"}
    if case.sparse:
        entries, keys = entries_of(case.frame)
        engine.store(entries, "hostile")
        engine.store(keys, "keys")
        options |= {"long": ENTRIES, "rows": "keys"}
    else:
        engine.store(case.frame.assign(**{ID: np.arange(len(case.frame))}), "hostile")
        options |= {"keep": [ID]}
    compared = 0
    for form in forms_of(engine.name):
        try:
            _compare(engine, case, form, options)
            compared += 1
        except LimitError:
            pass
        except EngineError as refused:
            # Postgres takes no number on the way that is too small, and says so.
            if "leaves the range" not in str(refused):
                raise
    return compared


def _compare(engine, case, form, options):
    one, program = case.fitted, case.fitted.program_
    inputs = case.frame[list(one.feature_names_in_)].astype("float64").to_numpy()
    expected = one.transform(case.frame).astype("float64")
    found = engine.features(one, "hostile", form=form, **options)
    assert np.array_equal(found[:, 0], np.arange(len(inputs))), f"other rows, {form} form"
    found = found[:, 1:]
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert np.array_equal(np.isnan(found), np.isnan(expected)), f"other missing rows, {form} form"
    if len(inputs):
        compared = compare(program, inputs, found, form, None)
        assert compared.ok, (form, compared, compared.worst(3))
    if case.exact:
        bare = engine.features(one, "hostile", form=form, stage="projection",
                               **options | {"output": "columns"})[:, 1:]  # fmt: skip
        twin = program.projection().apply(inputs)
        assert np.array_equal(bare, twin, equal_nan=True), f"another projection, {form} form"


def told_of(seed: int) -> str:
    try:
        return str(case_of(seed))
    except Exception:
        return "a case that cannot be drawn"


def failures(engine: Any, seeds: range) -> tuple[list[str], int]:
    """What went wrong, each with how to see it again; and how many forms were compared."""
    told, compared = [], 0
    for seed in seeds:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FitWarning)
                warnings.simplefilter("ignore", RangeWarning)
                compared += run(engine, seed)
        except Exception as bad:
            where = "".join(traceback.format_exception_only(bad)).strip()
            again = f"python tests/campaign.py --first {seed} --seeds 1 --engine {engine.name}"
            told.append(f"seed {seed} on {engine.name}: {told_of(seed)}\n  {where}\n  {again}")
    return told, compared


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
    wrong = 0
    for name in options.engine:
        with opened(name) as engine:
            told, compared = failures(engine, range(options.first, options.first + options.seeds))
        forms = f"{compared} of {len(forms_of(name)) * options.seeds} forms"
        print(f"{name}: {forms} equal to the twin, {len(told)} seeds wrong", flush=True)
        for one in told:
            print(one)
        wrong += len(told)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
