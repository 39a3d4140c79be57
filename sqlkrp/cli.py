"""The command line: from arguments to the Python API, where each command has a twin."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from sqlkrp import model_report, report
from sqlkrp.arguments import Command, options_of, parser
from sqlkrp.engines import (
    Database,
    connect,
    is_database,
    require_no_other_url,
    require_there,
)
from sqlkrp.engines.session import STATEMENT
from sqlkrp.engines.sources import TableSource
from sqlkrp.errors import FitWarning, ParameterError, SqlkrpError, visible
from sqlkrp.files import require_free, require_no_folder, require_other_file
from sqlkrp.keeping import another_map_beside, kept_map, require_map_or_nothing, used_again
from sqlkrp.mapfile import require_map_or_empty
from sqlkrp.maps import MAPS, Ensemble, FeatureMap
from sqlkrp.maps.advice import counted, listed
from sqlkrp.maps.fitted import Fitted
from sqlkrp.models import Model, load, scoring
from sqlkrp.models.explaining import explain
from sqlkrp.options import MAP, MAP_OPTIONS, SEED, map_help, options_of_map, summary
from sqlkrp.spelling import as_options
from sqlkrp.sql.options import OPTIONS, Options
from sqlkrp.sql.statement import Statement

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 (verify found a difference), or 2 (an error)."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        with warnings.catch_warnings():  # which puts showwarning back
            return _run_command(arguments)
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _run_command(arguments: Sequence[str] | None) -> int:
    speaker = _Speaker()
    warnings.showwarning = speaker.warn
    try:
        if sys.stdout is None:
            raise ParameterError("standard output is closed: redirect it to /dev/null")
        given = parser(COMMANDS).parse_args(arguments)
        speaker.options = options_of(given.parsed_by)
        code: int = given.run(given)
        sys.stdout.flush()
        if not given.quiet:
            speaker.advise()
        return code
    except SqlkrpError as bad:
        speaker.say(str(bad))
        return 2
    except BrokenPipeError:
        return _reader_went_away()
    except UnicodeEncodeError as bad:
        told = f"standard output cannot show {bad.object[bad.start]!r} in {bad.encoding}"
        print(
            f"sqlkrp: {told}: set PYTHONIOENCODING=utf-8".encode("ascii", "replace").decode(),
            file=sys.stderr,
        )
        return 2
    except (OSError, MemoryError) as bad:
        where = f" {bad.filename!r}" if isinstance(bad, OSError) and bad.filename else ""
        what = getattr(bad, "strerror", None) or str(bad) or "out of memory: ask for less"
        speaker.say(f"{what}{where}")
        return 2
    except KeyboardInterrupt:
        print("sqlkrp: interrupted; nothing was left behind", file=sys.stderr, flush=True)
        if _a_statement_goes_on():
            os._exit(130)  # it hears no interrupt, and would be waited for
        return 130


def _a_statement_goes_on() -> bool:
    """Whether one still runs a moment after it was interrupted."""
    running = [one for one in threading.enumerate() if one.name == STATEMENT]
    for one in running:
        one.join(1.0)  # its thread ends a little after the statement
    return any(one.is_alive() for one in running)


def _stop(signum: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


class _Speaker:
    """What says errors and warnings: in one line each, and in the command's own words."""

    options: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        self._advice: list[str] = []

    def say(self, message: str) -> None:
        line = as_options(" ".join(message.split()), self.options)
        print(f"sqlkrp: {visible(line)}", file=sys.stderr)

    def warn(self, message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, FitWarning):
            self._advice.append(str(message))
        else:
            self.say(f"warning: {message}")

    def advise(self) -> None:
        """Say what was noticed about a map, once it is there; an error stands alone."""
        for message in self._advice:
            self.say(f"warning: {message}")


def _reader_went_away() -> int:
    # As with `| head`: the reader has what it wanted, and Python must not complain at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


# --- commands ---------------------------------------------------------------------------------


def _featurize(given: argparse.Namespace) -> int:
    started = time.monotonic()
    to_stdout = given.to == "-"
    _require_new([given.to] if not to_stdout else [], given.replace)
    map_path = _require_map(given, to_stdout)
    with _open(given, given.source) as database:
        source = database.source(_table(given, given.source), long=given.long)
        fitted, saving = _map_to_use(given, source, map_path)
        with saving:
            run = database.export(
                fitted,
                source,
                given.to,
                replace=given.replace,
                **_options_there(given),
            )
    known = report.facts(fitted)
    *kept, first, last = _kept_and_features(run.statement)
    names = f"{first} ... {last}" if first != last else first
    count = len(run.statement.columns) - len(kept)
    outputs = "".join(f"{name} + " for name in kept) + f"{counted(count, 'column')} {names}"
    digest = f"digest {known['digest'][:12]}, seed {known['seed']}"
    _say(
        given,
        [
            ("wrote", f"{given.to}: {counted(run.rows or 0, 'row')} of {outputs}"),
            ("map", f"{map_path or 'not saved (give --map-file FILE)'} ({digest})"),
            *_column_pairs(known),
            *([("hyperplanes", report.pool_text(known))] if "hyperplanes" in known else []),
            ("work a row", f"{_work(run.statement, fitted)}; {run.statement.form} form"),
            ("seconds", f"{time.monotonic() - started:.1f}"),
            *([("again", used_again(map_path))] if map_path else []),
        ],
    )
    return 0


def _require_map(given: argparse.Namespace, to_stdout: bool) -> str | None:
    """The file of the map that is used, or that one can be written to; before the work."""
    if given.use:
        for option in given.drawing:
            if getattr(given, option.dest, option.default) != option.default:
                raise ParameterError(
                    f"--use takes a map as it was drawn: leave out {option.option_strings[0]}"
                )
        return str(given.use)
    if given.map_file is None and to_stdout:
        return None
    path = _map_beside(given.to) if given.map_file is None else str(given.map_file)
    if Path(path).absolute() == Path(given.to).absolute():
        raise ParameterError(f"--map-file and --to are both {path!r}: give the map another name")
    require_other_file(Path(path), given.source)
    require_map_or_empty(Path(path))
    if given.map_file is None:
        # The map beside the features belongs to them, and is replaced with them.
        _require_new([path], given.replace or given.replace_map)
    elif not given.replace_map:
        require_map_or_nothing(Path(path))
    return path


def _map_to_use(
    given: argparse.Namespace, source: TableSource, path: str | None
) -> tuple[FeatureMap, AbstractContextManager[None]]:
    """The map of a run, and a block at whose end it is saved, if it is new."""
    if given.use:
        return _load_map(given.use), nullcontext()
    fitted = _fit(given, source)
    if path is None:
        return fitted, nullcontext()
    kept = None
    if given.map_file is not None and not given.replace_map:
        kept = kept_map(Path(path), fitted)
    if kept is not None:
        return kept, nullcontext()
    _tell_of_others(given, path, fitted)
    own = given.map_file is None and given.replace
    return fitted, fitted.saving(path, replace=own or given.replace_map)


def _tell_of_others(given: argparse.Namespace, path: str, fitted: FeatureMap) -> None:
    other = None if given.quiet else another_map_beside(Path(path), fitted)
    if other is not None:
        warnings.warn(
            f"{other!r} is a map of the same columns, and this draws another, whose features do "
            f"not go together with that one's: {used_again(other)} uses it",
            stacklevel=1,
        )


def _work(statement: Statement, fitted: FeatureMap) -> str:
    return report.work_text(statement.form, statement.plan, fitted)


def _draw(given: argparse.Namespace) -> int:
    if given.source is not None:
        require_other_file(Path(given.out), given.source)
    require_map_or_empty(Path(given.out))
    if not given.replace_map:
        require_map_or_nothing(Path(given.out))
    Options(long=given.long, rows=given.rows)  # which says what does not go together
    if given.columns is not None:
        if given.source is not None:
            raise ParameterError("SOURCE and --columns are both given: give one")
        if given.table or given.long:
            raise ParameterError(
                "--table and --long belong to a SOURCE, and --columns is in place of it"
            )
        fitted = _fit(given, given.columns)
    else:
        with _open(given, given.source) as database:
            fitted = _fit(given, database.source(_table(given, given.source), long=given.long))
    kept = None if given.replace_map else kept_map(Path(given.out), fitted)
    if kept is None:
        _tell_of_others(given, given.out, fitted)
        fitted.save(given.out, replace=given.replace_map)
    fitted = kept or fitted
    known = report.facts(fitted)
    _say(
        given,
        [
            (
                "wrote" if kept is None else "kept",
                f"{given.out} (digest {known['digest'][:12]}, seed {known['seed']})",
            ),
            *_column_pairs(known),
            ("features", f"{known['features']:,}"),
        ],
    )
    return 0


def _maps(given: argparse.Namespace) -> int:
    if given.kind is not None:
        print(map_help(given.kind))
        return 0
    pairs = [(kind, summary(kind)) for kind in MAPS]
    print("\n".join([*report.aligned(pairs), "", "sqlkrp maps NAME lists the options of one."]))
    return 0


def _sql(given: argparse.Namespace) -> int:
    fitted = _load(given)
    asked = (given.outputs, given.threshold, given.as_, given.prefix)
    if asked != (None, None, "auto", ""):
        fitted, _ = scoring(fitted, given.table, None, *asked)
    if given.columns is not None:
        fitted = fitted.renamed(given.columns)
    text = fitted.to_sql(given.table, dialect=given.dialect, **_options(given))
    print(f"{text};")
    return 0


def _tables(given: argparse.Namespace) -> int:
    fitted = _load(given)
    if isinstance(fitted, Model):
        fitted = fitted.written_as(given.as_)
    files = fitted.save_tables(
        given.out, format=given.format, dialect=given.dialect, replace=given.replace
    )
    _say(given, [("wrote", str(path)) for path in files])
    return 0


def _run(given: argparse.Namespace) -> int:
    fitted = _load(given)
    with _open(given, None, write=True) as database:
        run = database.create(
            fitted,
            _table(given, None),
            given.into,
            view=given.view,
            **_storage(given),
            **_options_there(given),
        )
    what = "a view" if run.rows is None else counted(run.rows, "row")
    form = f"{counted(len(run.statement.columns), 'column')}, {run.statement.form} form"
    twice = [name for name in given.keep if name in fitted.program.prepare.reads]
    _say(
        given,
        [
            ("appended to" if given.append else "created", f"{given.into}: {what}, {form}"),
            (fitted.kind, run.digest[:12]),
            *([("note", f"{listed(twice)}: kept, and read by the map as well")] if twice else []),
        ],
    )
    return 0


def _export(given: argparse.Namespace) -> int:
    fitted = _load(given)
    with _open(given, given.file) as database:
        run = database.export(
            fitted,
            _table(given, given.file),
            given.to,
            **_storage(given),
            **_options_there(given),
        )
    form = f"{counted(len(run.statement.columns), 'column')}, {run.statement.form} form"
    wrote = f"{given.to}: {counted(run.rows or 0, 'row')}, {form}"
    _say(given, [("wrote", wrote), (fitted.kind, run.digest[:12])])
    return 0


def _score(given: argparse.Namespace) -> int:
    fitted, given.to = _load(given), given.path
    with _open(given, given.file, write=given.into is not None) as database:
        table = None if given.features else _table(given, given.file)
        run = database.score(
            fitted,
            table,
            features=given.features,
            holds=given.holds,
            into=given.into,
            path=given.path,
            outputs=given.outputs,
            threshold=given.threshold,
            as_=given.as_,
            prefix=given.prefix,
            view=given.view,
            replace=given.replace,
            **_options_there(given),
        )
    what = "a view" if run.rows is None else counted(run.rows, "row")
    said = ", ".join(run.statement.columns[run.statement.n_kept :])
    verb = "wrote" if given.into is None else "created"
    told = f"{given.into or given.path}: {what} of {said}; {run.statement.form} form"
    error = [] if fitted.error is None else [("error", fitted.error)]
    _say(given, [(verb, told), ("model", run.digest[:12]), *error])
    return 0


def _explain(given: argparse.Namespace) -> int:
    fitted = _load_model(given.map)
    if not _names_rows(given):
        terms = explain(fitted, given.top)
        plain, lines = terms.as_plain(), model_report.explanation_lines(terms)
    else:
        with _open(given, given.file) as database:
            found = database.importance(fitted, _table(given, given.file), sample=given.sample)
        plain, lines = asdict(found), model_report.importance_lines(found, given.top)
    print(json.dumps(plain, indent=1, ensure_ascii=False) if given.json else "\n".join(lines))
    return 0


def _shorten(given: argparse.Namespace) -> int:
    whole, out = _load_model(given.map), given.out
    if out is not None:
        require_other_file(Path(out), given.map)
        require_map_or_empty(Path(out))
        _require_new([out], given.replace)
    if not _names_rows(given):
        short = whole.shortened(given.terms)
    else:
        with _open(given, given.file) as database:
            options = {**_options_there(given), "sample": given.sample}
            short = database.shorten(whole, _table(given, given.file), given.terms, **options)
    if out is not None:
        short.save(out, replace=given.replace)
    wrote = [] if out is None else [("wrote", f"{out} (digest {short.digest_[:12]})")]
    _say(given, [*wrote, ("model", short.title), ("error", str(short.error))])
    return 0


def _verify(given: argparse.Namespace) -> int:
    fitted = _load(given)
    with _open(given, given.file) as database:
        result = database.verify(
            fitted,
            _table(given, given.file),
            sample=given.sample,
            tolerance=given.tolerance,
            result=None if given.result is None else _file_or_table(given.result),
            key=given.key,
            outputs=given.outputs,
            threshold=given.threshold,
            as_=given.as_,
            prefix=given.prefix,
            **_options_there(given),
        )
    if not given.quiet:
        print("\n".join(report.verification_lines(result, every=given.all)))
    return 0 if result.ok else 1


def _inspect(given: argparse.Namespace) -> int:
    fitted = _load(given)
    found = report.preflight_of(fitted, dialect=given.dialect, **_options(given))
    if given.json:
        print(json.dumps(report.facts(fitted, found), indent=1, ensure_ascii=False))
    else:
        spoken = options_of(given.parsed_by)
        print("\n".join(report.map_lines(fitted, found, lambda text: as_options(text, spoken))))
    # A map for sparse input has no statement to measure, and that is no fault.
    return 0 if isinstance(found, str) or not found.problems else 1


# --- from arguments to the API ------------------------------------------------------------------


def _load(given: argparse.Namespace) -> Fitted:
    components, terms = (getattr(given, name, None) for name in ("components_only", "terms"))
    if components is not None and terms is not None:
        raise ParameterError(
            f"terms={terms} is of a model, and components_only of a map: give one of them"
        )
    if terms is not None:
        return _load_model(given.map).shortened(terms)
    if components is not None:
        return _load_map(given.map).select(components)
    fitted: Fitted = load(given.map)
    return fitted


def _load_model(path: str) -> Model:
    fitted = load(path)
    if not isinstance(fitted, Model):
        raise ParameterError(f"{path!r} holds a map, which weighs nothing: give a model")
    return fitted


def _load_map(path: str) -> FeatureMap:
    fitted = load(path)
    if not isinstance(fitted, FeatureMap):
        raise ParameterError(
            f"{path!r} holds a model, which has no features of its own: score it (sqlkrp score)"
        )
    return fitted


def _fit(given: argparse.Namespace, source: Any) -> FeatureMap:
    fitted = _new_map(given)
    return fitted.fit(
        source,
        label=given.label,
        include=given.include,
        exclude=given.exclude,
        keep=[] if given.long else given.keep,  # there they are columns of the table of rows
        categories=None if given.categories == "none" else given.categories,
        dates=None if given.dates == "none" else given.dates,
    )


def _new_map(given: argparse.Namespace) -> FeatureMap:
    name = given.kind or MAP
    kind: Any = MAPS[name]
    parameters, known = {}, options_of_map(name)
    for option, its in MAP_OPTIONS.items():
        if not hasattr(given, f"map_{its.name}"):
            continue
        if option not in known:
            own = ", ".join(f"--{one}" for one in known)
            raise ParameterError(f"--map {name} has no --{option}: leave it out; it has {own}")
        parameters[its.name] = getattr(given, f"map_{its.name}")
    seed = SEED if given.random_state is None else given.random_state
    seed = None if seed == "random" else seed
    one: FeatureMap = kind(**parameters, random_state=seed)
    if given.n_members is None:
        return one
    return Ensemble(one, given.n_members, random_state=seed)


def _open(given: argparse.Namespace, source: str | None, *, write: bool = False) -> Database:
    path = _database_path(given, source)
    if path is not None:
        require_there(path)
    database = connect(
        path,
        read_only=not write,
        memory_limit=given.memory_limit,
        threads=given.threads,
    )
    if sys.stderr.isatty() and not given.quiet:
        database.on_progress = _bar()
    return database


def _database_path(given: argparse.Namespace, source: str | None) -> str | None:
    if source is not None and getattr(given, "db", None):
        raise ParameterError("--file and --db are both given: give one source")
    target: str | None = getattr(given, "db", None) if source is None else source
    if not target:
        raise ParameterError(f"no source is given: {_ways_to_name_a_source(given)}")
    require_no_other_url(target)
    return target if source is None or is_database(target) else None


def _ways_to_name_a_source(given: argparse.Namespace) -> str:
    if not hasattr(given, "db"):
        return "name a data file, a database and --table NAME, or columns (--columns A,B,...)"
    file = " or a data file (--file FILE)" if hasattr(given, "file") else ""
    return f"name a database and a table (--db DB --table NAME){file}"


def _names_rows(given: argparse.Namespace) -> bool:
    """Whether a command that may read rows was told which."""
    if given.db is not None or given.file is not None:
        return True
    if given.table is not None:
        raise ParameterError("--table needs --db: name the database of the table (--db DB)")
    return False


def _table(given: argparse.Namespace, source: str | None) -> Any:
    if _database_path(given, source) is None:
        assert source is not None
        require_no_folder(Path(source))
        if given.table:
            raise ParameterError(f"--table belongs to a database, and {source!r} is a data file")
        return Path(source)
    if not given.table:
        raise ParameterError("which table of the database? give --table NAME")
    return given.table


def _options(given: argparse.Namespace) -> dict[str, Any]:
    """The options of its statement that a command has, by the names of the API."""
    found = {name: getattr(given, name) for name in OPTIONS if hasattr(given, name)}
    label = getattr(given, "label", None)
    return found if label is None else found | {"keep": [*given.keep, label]}


def _storage(given: argparse.Namespace) -> dict[str, Any]:
    """How a result is kept, by the names of the API."""
    return {name: getattr(given, name) for name in ("replace", "append", "format", "partition_by")}


def _options_there(given: argparse.Namespace) -> dict[str, Any]:
    """The options of a statement that is run, where the table of rows may be a file."""
    options = _options(given)
    if given.rows:
        options["rows"] = _file_or_table(given.rows)
    return options


def _file_or_table(name: str) -> Path | str:
    """What is named so: a file, if it ends as files do."""
    is_file = name.lower().endswith((".csv", ".csv.gz", ".tsv", ".parquet"))
    return Path(name) if is_file else name


def _require_new(paths: Sequence[str], force: bool) -> None:
    # Before the work, not after it.
    for path in map(Path, paths):
        if not force and not path.is_dir():
            require_free(path)


def _kept_and_features(statement: Statement) -> list[str]:
    """The names of the columns handed on, then those of the first and the last feature."""
    kept = list(statement.columns[: statement.n_kept])
    return [*kept, statement.columns[statement.n_kept], statement.columns[-1]]


def _map_beside(target: str) -> str:
    path = Path(target)
    stem = re.sub(r"\.(csv|csv\.gz|parquet)$", "", path.name, flags=re.IGNORECASE)
    return str(path.parent / f"{stem}.map.json")


def _column_pairs(known: dict[str, Any]) -> list[tuple[str, str]]:
    """Which columns a map reads, which it does not, and how it takes them."""
    left_out = report.left_out_text(known["left_out"])
    return [
        ("columns", report.columns_text(known["columns"])),
        *report.made_pairs(known),
        *([("left out", left_out)] if left_out else []),
        *([("label", known["label"])] if known["label"] is not None else []),
        *report.taken_pairs(known),
    ]


def _say(given: argparse.Namespace, pairs: Sequence[tuple[str, str]]) -> None:
    if not given.quiet:
        # Features on standard output must not be mixed with words.
        stream = sys.stderr if getattr(given, "to", None) == "-" else sys.stdout
        print("\n".join(report.aligned(pairs)), file=stream)


def _bar() -> Callable[[float], None]:
    """A bar on standard error for statements that take longer than a second."""
    started = time.monotonic()
    shown = False

    def show(share: float) -> None:
        nonlocal started, shown
        if share >= 1:
            if shown:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            started, shown = time.monotonic(), False
        elif time.monotonic() - started > 1:
            filled = int(30 * share)
            line = f"  {share:4.0%} {'#' * filled}{'.' * (30 - filled)}"
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
            shown = True

    return show


#: What runs each command.
COMMANDS: dict[str, Command] = {
    "featurize": _featurize,
    "draw": _draw,
    "maps": _maps,
    "sql": _sql,
    "tables": _tables,
    "run": _run,
    "export": _export,
    "score": _score,
    "explain": _explain,
    "shorten": _shorten,
    "verify": _verify,
    "inspect": _inspect,
}
