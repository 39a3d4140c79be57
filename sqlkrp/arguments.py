"""The arguments of the command line: every command's options, help and example.

An option is stored under the name that the Python API has for it (``dest``), a map's parameter
under ``map_`` and its name: so a message that names a parameter can name the option.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from sqlkrp.errors import ParameterError
from sqlkrp.maps import MAPS
from sqlkrp.options import MAP, MAP_OPTIONS, SEED, argument, number_or
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.options import OPTIONS
from sqlkrp.version import __version__

__all__ = ["Command", "options_of", "parser"]

#: What a command does with its arguments; it returns the exit code.
Command = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ParameterError(f"{message}; see '{self.prog} --help'")

    def group(self, title: str, description: str | None = None) -> argparse._ArgumentGroup:
        """The group of this title in the help, which may be there already."""
        for one in self._action_groups:
            if one.title == title:
                return one
        return self.add_argument_group(title, description)


def parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """The parser of the command line; ``commands`` are what runs, by name."""
    whole = _Parser(
        prog="sqlkrp",
        description="Random features of the polynomial kernel by SUM/minus SQL, in the database.",
        epilog="example: sqlkrp featurize digits.csv --label label --to features.csv",
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"sqlkrp {__version__}")
    subparsers = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, usage: str, does: str, example: str) -> _Parser:
        one: _Parser = subparsers.add_parser(
            name,
            usage=f"sqlkrp {name} {usage}",
            help=does,
            description=f"{does[0].upper()}{does[1:]}.",
            epilog=f"example: sqlkrp {name} {example}",
            allow_abbrev=False,
        )
        one.set_defaults(run=commands[name], parsed_by=one)
        one.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
        return one

    one = command(
        "featurize",
        "SOURCE --to DEST [options]",
        "draw a map, compute the features and write them to a file, in one go",
        "digits.csv --label label --components 256 --to features.csv",
    )
    _add_source(one)
    one.group("input").add_argument(
        "--use",
        metavar="MAP",
        help="draw no map, but compute the features of this saved one: for test data, that of the "
        "training data",
    )
    _add_destination(one, "replace DEST if it exists, and the map beside it")
    _add_keep(one, "; the map does not read it")
    _add_written(one)
    group = _add_drawing(one)
    group.add_argument(
        "--map-file", metavar="FILE", help="where to save the map (default: beside DEST)"
    )
    _add_replace_map(group)
    one.set_defaults(drawing=tuple(group._group_actions))
    _add_sql(one)
    _add_engine(one)

    one = command(
        "draw",
        "SOURCE -o MAP [options]",
        "draw a map from the names and types of the columns",
        "warehouse.duckdb --table sales --pool hadamard -o sales.map.json",
    )
    _add_source(one, nargs="?")
    one.group("input").add_argument(
        "--columns",
        type=_names,
        metavar="A,B,...",
        help="in place of SOURCE: the columns' names, of a table that is not looked at",
    )
    output = one.group("output")
    output.add_argument("-o", "--out", metavar="MAP", required=True, help="where to save the map")
    output.add_argument("--force", action=_NotForMaps, nargs=0, help=argparse.SUPPRESS)
    _add_replace_map(output)
    group = _add_drawing(one)
    group.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="do not read this column: it is to be kept beside the features (repeat for more)",
    )
    _add_engine(one)

    one = command(
        "maps",
        "[NAME]",
        "list the kinds of maps, or the options of one with their defaults",
        "krp",
    )
    one.group("input").add_argument(
        "kind", nargs="?", choices=tuple(MAPS), metavar="NAME", help="a kind of map"
    )

    one = command(
        "sql",
        "MAP --table NAME [options]",
        "print the SQL of a map's features, and nothing else",
        "sales.map.json --table main.sales --keep id",
    )
    _add_map(one)
    source = one.group("input")
    source.add_argument(
        "--table", metavar="NAME", required=True, help="the table to read, as SQL writes it"
    )
    source.add_argument(
        "--columns",
        type=_names,
        metavar="A,B,...",
        help="the table's columns, if it spells the map's in another case",
    )
    _add_long(one)
    _add_keep(one)
    _add_written(one)
    _add_dialect(one)
    _add_sql(one)

    one = command(
        "tables",
        "MAP -o DIR [options]",
        "write the index/sign table and the component table, with their DDL",
        "sales.map.json -o tables/",
    )
    _add_map(one)
    output = one.group("output")
    output.add_argument("-o", "--out", metavar="DIR", required=True, help="a folder for the files")
    output.add_argument(
        "--format",
        choices=("csv", "parquet"),
        metavar="NAME",
        default="csv",
        help="the format of the tables' files: csv or parquet (default: csv)",
    )
    output.add_argument(
        "--force", dest="replace", action="store_true", help="replace files of sqlkrp in DIR"
    )
    _add_dialect(one)

    one = command(
        "run",
        "MAP --db DB --table NAME --into NAME [options]",
        "create a table or view of features inside a database",
        "sales.map.json --db warehouse.duckdb --table sales --into sales_krp --keep id",
    )
    _add_map(one)
    _add_database(one)
    _add_long(one)
    output = one.group("output")
    output.add_argument("--into", metavar="NAME", required=True, help="the table or view to create")
    output.add_argument("--view", action="store_true", help="create a view, not a table")
    output.add_argument(
        "--replace", action="store_true", help="replace the table or view if it exists"
    )
    _add_keep(one)
    _add_written(one)
    _add_sql(one)
    _add_engine(one)

    one = command(
        "export",
        "MAP (--db DB --table NAME | --file FILE) --to DEST [options]",
        "compute the features and write them to a file",
        "sales.map.json --db warehouse.duckdb --table sales --keep id --to features.parquet",
    )
    _add_map(one)
    _add_database(one, file=True)
    _add_long(one)
    _add_destination(one, "replace DEST if it exists")
    _add_keep(one)
    _add_written(one)
    _add_sql(one)
    _add_engine(one)

    one = command(
        "verify",
        "MAP (--db DB --table NAME | --file FILE) [options]",
        "compare the engine's features with NumPy's (exit code 1: they differ, or there are none)",
        "sales.map.json --db warehouse.duckdb --table sales --sample 1000",
    )
    _add_map(one)
    _add_database(one, file=True)
    _add_long(one)
    output = one.group("output")
    output.add_argument(
        "--sample",
        type=int,
        default=1000,
        metavar="ROWS",
        help="how many rows to compare, drawn at random (default: 1000)",
    )
    output.add_argument(
        "--tolerance",
        type=float,
        metavar="SHARE",
        help="how far a feature may be off, as a share of its size (default: 1e-9, in float32 "
        "1e-3, and more only where rounding explains it)",
    )
    output.add_argument("--all", action="store_true", help="list every feature, not the worst 10")
    _add_sql(one)
    _add_engine(one)

    one = command(
        "inspect",
        "MAP [options]",
        "say what a map is, and measure its SQL against a dialect's limits (exit code 1: over one)",
        "sales.map.json --dialect postgres --output array",
    )
    _add_map(one)
    _add_keep(one)
    _add_written(one)
    one.group("output").add_argument("--json", action="store_true", help="print JSON, not lines")
    _add_dialect(one)
    _add_sql(one)
    return whole


def options_of(command: argparse.ArgumentParser) -> dict[str, str]:
    """The options by the names that they have in Python: a command's own, and those of maps."""
    own = {one.dest: one.option_strings[-1] for one in command._actions if one.option_strings}
    return {one.name: f"--{option}" for option, one in MAP_OPTIONS.items()} | own


def _add_map(one: _Parser) -> None:
    group = one.group("input")
    group.add_argument("map", metavar="MAP", help="a map file, from sqlkrp draw or featurize")
    group.add_argument(
        "--components-only",
        type=_numbers,
        metavar="NUMBERS",
        help="compute only the features of these numbers, such as 0-99,120, and what they need",
    )


def _add_source(one: _Parser, **more: Any) -> None:
    group = one.group("input")
    group.add_argument(
        "source",
        metavar="SOURCE",
        help="the data: a .csv, .csv.gz, .tsv or .parquet file (or a glob), or with --table a "
        "database: a .duckdb or .sqlite file, or postgresql://...",
        **more,
    )
    group.add_argument(
        "--table", metavar="NAME", help="the table of the database that SOURCE is, as SQL writes it"
    )
    _add_long(one)


def _add_database(one: _Parser, *, file: bool = False) -> None:
    group = one.group("input")
    group.add_argument(
        "--db",
        metavar="DB",
        help="the database to read: a DuckDB or SQLite file, or postgresql://...",
    )
    group.add_argument("--table", metavar="NAME", help="the table of DB to read, as SQL writes it")
    if file:
        group.add_argument(
            "--file", metavar="FILE", help="a data file to read, in place of --db and --table"
        )


def _add_long(one: _Parser) -> None:
    group = one.group("input")
    _add_option(group, "long", "ROW,FEATURE,VALUE", type=_three_names)
    _add_option(group, "rows", "TABLE")


def _add_destination(one: _Parser, force: str) -> None:
    group = one.group("output")
    group.add_argument(
        "--to",
        metavar="DEST",
        required=True,
        help="the file to write: .csv, .csv.gz or .parquet, or - for CSV on standard output",
    )
    group.add_argument("--force", dest="replace", action="store_true", help=force)


def _add_keep(one: _Parser, more: str = "") -> None:
    one.group("output").add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help=f"hand this column on, unchanged and before the features{more} (repeat for more)",
    )


def _add_written(one: _Parser) -> None:
    group = one.group("output")
    _add_option(group, "output", "HOW")
    _add_option(group, "stage", "NAME")


def _add_option(group: argparse._ArgumentGroup, name: str, metavar: str, **reads: Any) -> None:
    """An option of statements, as it is declared."""
    declared = OPTIONS[name]
    default = f" (default: {declared.default})" if declared.default else ""
    group.add_argument(
        f"--{name}",
        choices=declared.metadata["allowed"] or None,
        metavar=metavar,
        default=declared.default,
        help=declared.metadata["meaning"] + default,
        **reads,
    )


def _add_dialect(one: _Parser) -> None:
    one.group("the SQL").add_argument(
        "--dialect",
        choices=sorted(DIALECTS),
        default="duckdb",
        metavar="NAME",
        help=f"for which database the SQL is: {', '.join(sorted(DIALECTS))} (default: duckdb)",
    )


def _add_sql(one: _Parser) -> None:
    group = one.group("the SQL")
    _add_option(group, "form", "NAME")
    _add_option(group, "plan", "NAME")


def _add_engine(one: _Parser) -> None:
    group = one.group("the engine")
    group.add_argument(
        "--memory-limit", metavar="SIZE", help="how much memory DuckDB may use, such as 4GB"
    )
    group.add_argument("--threads", type=int, metavar="N", help="how many threads DuckDB may use")


class _NotForMaps(argparse.Action):
    """--force where a map is written: it is not to be replaced in passing."""

    def __call__(self, *_: Any) -> NoReturn:
        raise ParameterError(
            "--force is for features, and draw writes a map: leave it out (an equal map is no "
            "obstacle), or give --replace-map"
        )


def _add_replace_map(one: argparse._ArgumentGroup) -> None:
    one.add_argument(
        "--replace-map",
        action="store_true",
        help="replace the map file even if it holds another map, which a model may need",
    )


def _add_drawing(one: _Parser) -> argparse._ArgumentGroup:
    group = one.group(
        "the map",
        f"Defaults are those of {MAP}. Other maps have others, and options of their own: see "
        "'sqlkrp maps' and 'sqlkrp maps NAME'.",
    )
    group.add_argument(
        "--map",
        dest="kind",
        choices=tuple(MAPS),
        metavar="NAME",
        help=f"the kind of map: {', '.join(MAPS)} (default: {MAP})",
    )
    for option, one_of_maps in MAP_OPTIONS.items():
        read = argument(one_of_maps)
        if not one_of_maps.common:
            read["help"] = argparse.SUPPRESS
        # None is a value of some; what is not given is not there.
        group.add_argument(
            f"--{option}", dest=f"map_{one_of_maps.name}", default=argparse.SUPPRESS, **read
        )
    group.add_argument(
        "--ensemble",
        dest="n_members",
        type=int,
        metavar="N",
        help="draw the map so many times, side by side, for so many models that vote",
    )
    group.add_argument(
        "--seed",
        dest="random_state",
        type=number_or(int, "random"),
        metavar="N",
        help="the same number draws the same map again; random draws another each time "
        f"(default: {SEED})",
    )
    group.add_argument(
        "--label",
        metavar="COLUMN",
        help="the column to predict: it is not read, and handed on beside the features",
    )
    group.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="COLUMN",
        help="do not read this column (repeat for more)",
    )
    group.add_argument(
        "--include",
        action="append",
        metavar="COLUMN",
        help="read only this column, and others included so (repeat for more)",
    )
    return group


def _numbers(value: str) -> list[int]:
    """Numbers and ranges of them, such as 0-99,120."""
    numbers: list[int] = []
    for part in value.split(","):
        match = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise argparse.ArgumentTypeError(f"{part!r} is no number or range, such as 0-99,120")
        numbers += range(first, last + 1)
    return numbers


def _names(value: str) -> list[str]:
    """Names separated by commas; one that holds a comma stands in double quotes."""
    try:
        (names,) = csv.reader([value], skipinitialspace=True, strict=True) if value else ([],)
    except (csv.Error, ValueError):
        names = []
    if not all(names) or not names:
        raise argparse.ArgumentTypeError("name columns, such as height,width or 'a,\"b,c\"'")
    return names


def _three_names(value: str) -> tuple[str, ...]:
    names = tuple(_names(value))
    if len(names) != 3:
        raise argparse.ArgumentTypeError("name three columns, such as row,feature,value")
    return names
