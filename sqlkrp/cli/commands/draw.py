"""``sqlkrp draw``: draw a map and save it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NoReturn

from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.console import say
from sqlkrp.cli.drawing import (
    add_drawing,
    add_replace_map,
    column_pairs,
    drawn_map,
    warn_of_others,
)
from sqlkrp.cli.sources import add_engine, add_source, open_database, table_of
from sqlkrp.cli.typed import names, path_to_write
from sqlkrp.errors import ParameterError
from sqlkrp.files import require_other_file, require_place
from sqlkrp.keeping import kept_map, require_map_or_nothing
from sqlkrp.mapfile import require_map_or_empty
from sqlkrp.maps import FeatureMap
from sqlkrp.sql.options import Options
from sqlkrp.summaries.facts import facts
from sqlkrp.urls import as_file

__all__ = ["COMMAND"]


class _NotForMaps(argparse.Action):
    """Leave to replace where a map is written: it is not to be replaced in passing."""

    def __call__(self, parser: Any, given: Any, values: Any, option: str | None = None) -> NoReturn:
        raise ParameterError(
            f"{option} is for features, and draw writes a map: leave it out (an equal map is no "
            "obstacle), or give --replace-map"
        )


def _add_arguments(one: Parser) -> None:
    add_source(one, nargs="?")
    one.group("input").add_argument(
        "--columns",
        type=names,
        metavar="A,B,...",
        help="in place of SOURCE: the columns' names, of a table that is not looked at",
    )
    output = one.group("output")
    output.add_argument(
        "-o",
        "--out",
        metavar="MAP",
        type=path_to_write,
        required=True,
        help="where to save the map",
    )
    for option in ("--replace", "--force"):
        output.add_argument(option, action=_NotForMaps, nargs=0, help=argparse.SUPPRESS)
    add_replace_map(output)
    group = add_drawing(one)
    group.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="do not read this column: it is to be kept beside the features (repeat for more)",
    )
    add_engine(one)


def _run(given: argparse.Namespace) -> int:
    if given.source is not None:
        require_other_file(Path(given.out), as_file(given.source))
    require_map_or_empty(Path(given.out))
    if not given.replace_map:
        require_map_or_nothing(Path(given.out))
    if not Path(given.out).is_file():  # else it may be kept
        require_place(Path(given.out), replace=given.replace_map)
    Options(long=given.long, rows=given.rows)  # which says what does not go together
    drawn = _drawn(given)
    kept = None if given.replace_map else kept_map(Path(given.out), drawn)
    if kept is None:
        warn_of_others(given, given.out, drawn)
        drawn.save(given.out, replace=given.replace_map)
    known = facts(kept or drawn)
    verb, digest = "wrote" if kept is None else "kept", known["digest"][:12]
    say(
        given,
        [
            (verb, f"{given.out} (digest {digest}, seed {known['seed']})"),
            *column_pairs(known),
            ("features", f"{known['features']:,}"),
        ],
    )
    return 0


def _drawn(given: argparse.Namespace) -> FeatureMap:
    """A map of the columns that are named, or of those of a source."""
    if given.columns is None:
        with open_database(given, given.source) as database:
            source = database.source(table_of(given, given.source), long=given.long)
            return drawn_map(given, source)
    if given.source is not None:
        raise ParameterError("SOURCE and --columns are both given: give one")
    if given.table or given.long:
        raise ParameterError(
            "--table and --long belong to a SOURCE, and --columns is in place of it"
        )
    return drawn_map(given, given.columns)


COMMAND = Command(
    "SOURCE -o MAP [options]",
    "draw a map from the names and types of the columns",
    "warehouse.duckdb --table sales --pool hadamard -o sales.map.json",
    _add_arguments,
    _run,
)
