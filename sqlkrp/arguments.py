"""The arguments of the command line: every command's options, help and example.

An option is stored under the name that the Python API has for it (``dest``), a map's parameter
under ``map_`` and its name: so a message that names a parameter can name the option.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlkrp.argument_groups import (
    NotForMaps,
    Parser,
    add_answers,
    add_database,
    add_destination,
    add_dialect,
    add_drawing,
    add_engine,
    add_how,
    add_keep,
    add_long,
    add_map,
    add_model,
    add_replace_map,
    add_result,
    add_source,
    add_sql,
    add_storage,
    add_terms,
    add_way,
    add_written,
    names,
    path,
    path_to_write,
)
from sqlkrp.maps import MAPS
from sqlkrp.models.sketches import HOLDS
from sqlkrp.options import MAP_OPTIONS
from sqlkrp.version import __version__

__all__ = ["Command", "options_of", "parser"]

#: What a command does with its arguments; it returns the exit code.
Command = Callable[[argparse.Namespace], int]


def _featurize(one: Parser) -> None:
    add_source(one)
    one.group("input").add_argument(
        "--use",
        metavar="MAP",
        type=path,
        help="draw no map, but compute the features of this saved one: for test data, that of the "
        "training data",
    )
    add_destination(one, "replace DEST if it exists, and the map beside it")
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


def _draw(one: Parser) -> None:
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
    output.add_argument("--force", action=NotForMaps, nargs=0, help=argparse.SUPPRESS)
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


def _maps(one: Parser) -> None:
    one.group("input").add_argument(
        "kind", nargs="?", choices=tuple(MAPS), metavar="NAME", help="a kind of map"
    )


def _sql(one: Parser) -> None:
    add_map(one)
    source = one.group("input")
    source.add_argument(
        "--table", metavar="NAME", required=True, help="the table to read, as SQL writes it"
    )
    source.add_argument(
        "--columns",
        type=names,
        metavar="A,B,...",
        help="the table's columns, if it spells the map's in another case",
    )
    add_long(one)
    add_keep(one)
    add_written(one)
    add_answers(one)
    add_dialect(one)
    add_sql(one)


def _tables(one: Parser) -> None:
    add_map(one)
    output = one.group("output")
    output.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        type=path_to_write,
        required=True,
        help="a folder for the files",
    )
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
    add_way(one)
    add_dialect(one)


def _run(one: Parser) -> None:
    add_map(one)
    add_database(one)
    add_long(one)
    output = one.group("output")
    output.add_argument("--into", metavar="NAME", required=True, help="the table or view to create")
    output.add_argument("--view", action="store_true", help="create a view, not a table")
    output.add_argument(
        "--replace", action="store_true", help="replace the table or view if it exists"
    )
    add_storage(one)
    add_keep(one)
    add_written(one)
    add_how(one)
    add_sql(one)
    add_engine(one)


def _export(one: Parser) -> None:
    add_map(one)
    add_database(one, file=True)
    add_long(one)
    add_destination(one, "replace DEST if it exists")
    add_storage(one)
    add_keep(one)
    add_written(one)
    add_how(one)
    add_sql(one)
    add_engine(one)


def _score(one: Parser) -> None:
    add_model(one)
    add_database(one, file=True)
    one.group("input").add_argument(
        "--features",
        metavar="NAME",
        help="in place of --table: the table of DB that holds the features of the model's map",
    )
    one.group("input").add_argument(
        "--holds",
        choices=HOLDS,
        metavar="WHAT",
        default="features",
        help="of --features, for rank-one projections: features, bits (their signs, packed), or "
        "sketches (full ones, for a model of signs) (default: features)",
    )
    add_long(one)
    output = one.group("output")
    output.add_argument("--into", metavar="NAME", help="the table or view of DB to create")
    output.add_argument(
        "--to",
        dest="path",
        metavar="DEST",
        help="in place of --into: the file to write: .csv, .csv.gz or .parquet, or - for CSV on "
        "standard output",
    )
    output.add_argument("--view", action="store_true", help="create a view, not a table")
    output.add_argument(
        "--replace", action="store_true", help="replace the table, view or file if it exists"
    )
    add_keep(one)
    add_answers(one)
    add_how(one)
    add_sql(one)
    add_engine(one)


def _verify(one: Parser) -> None:
    add_map(one)
    add_database(one, file=True)
    add_long(one)
    add_result(one)
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
    add_answers(one)
    add_sql(one)
    add_engine(one)


def _inspect(one: Parser) -> None:
    add_map(one)
    add_keep(one)
    add_written(one)
    one.group("output").add_argument("--json", action="store_true", help="print JSON, not lines")
    add_dialect(one)
    add_sql(one)


def _explain(one: Parser) -> None:
    add_model(one)
    add_database(one, file=True)
    one.group("input").add_argument(
        "--sample",
        type=int,
        default=1000,
        metavar="ROWS",
        help="with a table: on how many rows, drawn at random (default: 1000)",
    )
    output = one.group("output")
    output.add_argument(
        "--top", type=int, default=20, metavar="N", help="how many terms or columns (default: 20)"
    )
    output.add_argument("--json", action="store_true", help="print JSON, not lines")
    add_engine(one)


def _shorten(one: Parser) -> None:
    add_model(one)
    add_database(one, file=True)
    add_long(one)
    one.group("input").add_argument(
        "--sample",
        type=int,
        default=1000,
        metavar="ROWS",
        help="with a table: on how many rows the error is measured, drawn at random (default: "
        "1000)",
    )
    add_terms(one, "how many terms are left, the strongest", required=True)
    output = one.group("output")
    output.add_argument(
        "-o",
        "--out",
        metavar="SHORT",
        type=path_to_write,
        help="where to save the short model (default: nowhere, its error is told)",
    )
    output.add_argument("--replace", action="store_true", help="replace SHORT if it exists")
    add_engine(one)


@dataclass(frozen=True)
class _Told:
    """What the help says of a command, and what adds its arguments."""

    add: Callable[[Parser], None]
    usage: str
    does: str
    example: str


_TOLD = {
    "featurize": _Told(
        _featurize,
        "SOURCE --to DEST [options]",
        "draw a map, compute the features and write them to a file, in one go",
        "digits.csv --label label --components 256 --to features.csv",
    ),
    "draw": _Told(
        _draw,
        "SOURCE -o MAP [options]",
        "draw a map from the names and types of the columns",
        "warehouse.duckdb --table sales --pool hadamard -o sales.map.json",
    ),
    "maps": _Told(
        _maps,
        "[NAME]",
        "list the kinds of maps, or the options of one with their defaults",
        "krp",
    ),
    "sql": _Told(
        _sql,
        "MAP --table NAME [options]",
        "print the SQL of a map's features or of a model's scores, and nothing else",
        "sales.map.json --table main.sales --keep id",
    ),
    "tables": _Told(
        _tables,
        "MAP -o DIR [options]",
        "write the side tables of the tables form as files, with load.sql to create and fill them",
        "sales.map.json -o tables/",
    ),
    "run": _Told(
        _run,
        "MAP --db DB --table NAME --into NAME [options]",
        "create a table or view of features inside a database",
        "sales.map.json --db warehouse.duckdb --table sales --into sales_krp --keep id",
    ),
    "export": _Told(
        _export,
        "MAP (--db DB --table NAME | --file FILE) --to DEST [options]",
        "compute the features and write them to a file",
        "sales.map.json --db warehouse.duckdb --table sales --keep id --to features.parquet",
    ),
    "score": _Told(
        _score,
        "MODEL (--db DB --table NAME | --file FILE) (--into NAME | --to DEST) [options]",
        "score rows with a model where they live: labels, probabilities or predictions",
        "churn.model.json --db sales.duckdb --table sales --into churn_scores --keep id",
    ),
    "explain": _Told(
        _explain,
        "MODEL [--db DB --table NAME | --file FILE] [options]",
        "list the strongest terms of a model that is a polynomial in its columns; or with a table "
        "how much each column matters to any model on its rows",
        "churn.model.json --top 20",
    ),
    "shorten": _Told(
        _shorten,
        "MODEL --terms N [--db DB --table NAME | --file FILE] [-o SHORT] [options]",
        "make a short model of the strongest terms of one that is a polynomial in its columns, and "
        "say what the others are worth: at most, and with a table on its rows",
        "churn.model.json --terms 20 --db sales.duckdb --table sales -o short.model.json",
    ),
    "verify": _Told(
        _verify,
        "MAP (--db DB --table NAME | --file FILE) [--result RESULT --key COLUMN] [options]",
        "compare the engine's numbers, or those that are stored, with NumPy's (exit code 1: they "
        "differ, or there are none)",
        "sales.map.json --db warehouse.duckdb --table sales --sample 1000",
    ),
    "inspect": _Told(
        _inspect,
        "MAP [options]",
        "say what a map or model is, and measure its SQL against a dialect's limits (exit code 1: "
        "over one)",
        "sales.map.json --dialect postgres --output array",
    ),
}


def parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """The parser of the command line; ``commands`` are what runs, by name."""
    whole = Parser(
        prog="sqlkrp",
        description="Random features of the polynomial kernel by SUM/minus SQL, in the database.",
        epilog="example: sqlkrp featurize digits.csv --label label --to features.csv",
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"sqlkrp {__version__}")
    subparsers = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, told in _TOLD.items():
        one: Parser = subparsers.add_parser(
            name,
            usage=f"sqlkrp {name} {told.usage}",
            help=told.does,
            description=f"{told.does[0].upper()}{told.does[1:]}.",
            epilog=f"example: sqlkrp {name} {told.example}",
            allow_abbrev=False,
        )
        one.set_defaults(run=commands[name], parsed_by=one)
        one.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
        told.add(one)
    return whole


def options_of(command: argparse.ArgumentParser) -> dict[str, str]:
    """The options by the names that they have in Python: a command's own, and those of maps.

    And what chooses a map, by the name of its class.
    """
    own = {one.dest: one.option_strings[-1] for one in command._actions if one.option_strings}
    kinds = {one.__name__: f"--map {kind}" for kind, one in MAPS.items()}
    return kinds | {one.name: f"--{option}" for option, one in MAP_OPTIONS.items()} | own
