"""``sqlkrp featurize``: draw a map and compute its features, in one go."""

from __future__ import annotations

import argparse
import re
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from sqlkrp.cli.command import Command, Parser, option_given
from sqlkrp.cli.console import say
from sqlkrp.cli.destinations import add_destination, better_pairs, require_new
from sqlkrp.cli.drawing import (
    add_drawing,
    add_replace_map,
    column_pairs,
    drawn_map,
    warn_of_others,
)
from sqlkrp.cli.map_files import load_map
from sqlkrp.cli.sources import add_engine, add_source, open_database, table_of
from sqlkrp.cli.statements import add_keep, add_sql, add_written, options_of_run
from sqlkrp.cli.typed import path, path_to_write
from sqlkrp.engines.database import Run
from sqlkrp.engines.sources import TableSource
from sqlkrp.errors import ParameterError
from sqlkrp.files import require_other_file
from sqlkrp.keeping import kept_map, require_map_or_nothing, used_again
from sqlkrp.mapfile import require_map_or_empty
from sqlkrp.maps import FeatureMap
from sqlkrp.maps.advice import counted
from sqlkrp.summaries.facts import facts
from sqlkrp.summaries.lines import pool_text, work_text
from sqlkrp.urls import as_file, is_url

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    add_source(one)
    one.group("input").add_argument(
        "--use",
        metavar="MAP",
        type=path,
        help="draw no map, but compute the features of this saved one: for test data, that of the "
        "training data",
    )
    add_destination(one, "DEST if it exists, and the map beside it")
    add_keep(one, "; the map does not read it")
    add_written(one)
    group = add_drawing(one)
    group.add_argument(
        "--map-file",
        metavar="FILE",
        type=path_to_write,
        help="where to save the map (default: beside DEST)",
    )
    add_replace_map(group)
    one.set_defaults(drawing=tuple(group._group_actions))
    add_sql(one)
    add_engine(one)


def _run(given: argparse.Namespace) -> int:
    started = time.monotonic()
    if given.to != "-":
        require_new(given.to, given.replace)
    map_path = _path_of_map(given)
    with open_database(given, given.source) as database:
        source = database.source(table_of(given, given.source), long=given.long)
        fitted, saving = _map_to_use(given, source, map_path)
        with saving:
            run = database.export(
                fitted,
                source,
                given.to,
                replace=given.replace,
                **options_of_run(given),
            )
    known = facts(fitted)
    statement = run.statement
    work = work_text(statement.form, statement.plan, fitted)
    digest = f"digest {known['digest'][:12]}, seed {known['seed']}"
    say(
        given,
        [
            ("wrote", f"{given.to}: {_rows_text(run)}"),
            *better_pairs(run),
            ("map", f"{map_path or 'not saved (give --map-file FILE)'} ({digest})"),
            *column_pairs(known),
            *([("hyperplanes", pool_text(known))] if "hyperplanes" in known else []),
            ("work a row", f"{work}; {statement.form} form"),
            ("seconds", f"{time.monotonic() - started:.1f}"),
            *([("again", used_again(map_path))] if map_path else []),
        ],
    )
    return 0


def _path_of_map(given: argparse.Namespace) -> str | None:
    """The file of the map that is used, or that one can be written to; before the work."""
    if given.use:
        drawing = option_given(given, given.drawing)
        if drawing is not None:
            raise ParameterError(f"--use takes a map as it was drawn: leave out {drawing}")
        return str(given.use)
    if given.map_file is None and given.to == "-":
        return None
    if given.map_file is None and is_url(given.to):
        raise ParameterError(
            "DEST is a URL, and the map is a file of this machine: name it (--map-file FILE)"
        )
    path = _path_beside(given.to) if given.map_file is None else str(given.map_file)
    if Path(path).absolute() == Path(given.to).absolute():
        raise ParameterError(f"--map-file and --to are both {path!r}: give the map another name")
    require_other_file(Path(path), as_file(given.source))
    require_map_or_empty(Path(path))
    if given.map_file is None:
        # The map beside the features belongs to them, and is replaced with them.
        require_new(path, given.replace or given.replace_map)
    elif not given.replace_map:
        require_map_or_nothing(Path(path))
    return path


def _path_beside(target: str) -> str:
    path = Path(target)
    stem = re.sub(r"\.(csv|csv\.gz|parquet)$", "", path.name, flags=re.IGNORECASE)
    return str(path.parent / f"{stem}.map.json")


def _map_to_use(
    given: argparse.Namespace, source: TableSource, path: str | None
) -> tuple[FeatureMap, AbstractContextManager[None]]:
    """The map of a run, and a block at whose end it is saved, if it is new."""
    if given.use:
        return load_map(given.use), nullcontext()
    fitted = drawn_map(given, source)
    if path is None:
        return fitted, nullcontext()
    kept = None
    if given.map_file is not None and not given.replace_map:
        kept = kept_map(Path(path), fitted)
    if kept is not None:
        return kept, nullcontext()
    warn_of_others(given, path, fitted)
    own = given.map_file is None and given.replace
    return fitted, fitted.saving(path, replace=own or given.replace_map)


def _rows_text(run: Run) -> str:
    """How many rows were written, of which columns: those handed on, then the features."""
    columns, n_kept = run.statement.columns, run.statement.n_kept
    first, last = columns[n_kept], columns[-1]
    names = f"{first} ... {last}" if first != last else first
    kept = "".join(f"{name} + " for name in columns[:n_kept])
    count = counted(len(columns) - n_kept, "column")
    return f"{counted(run.rows or 0, 'row')} of {kept}{count} {names}"


COMMAND = Command(
    "SOURCE --to DEST [options]",
    "draw a map, compute the features and write them to a file, in one go",
    "digits.csv --label label --components 256 --to features.csv",
    _add_arguments,
    _run,
)
