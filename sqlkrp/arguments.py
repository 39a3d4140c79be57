"""The arguments of the command line: every command's options, help and example."""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from sqlkrp.api import MAP_NAMES
from sqlkrp.errors import ParameterError
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.planning import PLANS
from sqlkrp.sql.statement import FORMS, OUTPUTS, STAGES
from sqlkrp.version import __version__

__all__ = ["MAP", "MAP_OPTIONS", "SEED", "Command", "parser"]

#: The map and the seed that are drawn if no other is named.
MAP, SEED = "krp", 0

#: What a command does with its arguments; it returns the exit code.
Command = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ParameterError(f"{message}; see '{self.prog} --help'")


def parser(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """The parser of the command line; ``commands`` are what runs, by name."""
    whole = _Parser(
        prog="sqlkrp",
        description="Random features of the polynomial kernel by SUM/minus SQL, in the database.",
        epilog="example: sqlkrp featurize digits.csv --keep label --to features.csv",
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"sqlkrp {__version__}")
    subparsers = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, does: str, example: str) -> argparse.ArgumentParser:
        one = subparsers.add_parser(
            name,
            help=does,
            description=f"{does[0].upper()}{does[1:]}.",
            epilog=f"example: sqlkrp {name} {example}",
            allow_abbrev=False,
        )
        one.set_defaults(run=commands[name])
        one.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
        return one

    one = command(
        "featurize",
        "draw a map, compute the features and write them to a file, in one go",
        "digits.csv --exclude label --keep label --components 256 --to features.csv",
    )
    _add_source(one)
    one.add_argument(
        "--use",
        metavar="MAP",
        help="compute the features of this saved map, such as that of the training data, in place "
        "of drawing one",
    )
    _add_destination(one)
    group = _add_drawing(one)
    group.add_argument(
        "--map-file", metavar="FILE", help="where to save the map (default: beside DEST)"
    )
    _add_replace_map(group)
    one.set_defaults(drawing=[(a.option_strings[0], a.dest, a.default) for a in _actions(group)])
    _add_reading(one, tables=True)
    _add_writing(one)
    _add_engine(one)

    one = command(
        "draw",
        "draw a map from the names and types of the columns",
        "warehouse.duckdb --table sales --pool hadamard -o sales.map.json",
    )
    _add_source(one, nargs="?")
    one.add_argument(
        "--columns",
        type=_names,
        metavar="A,B,...",
        help="in place of SOURCE: the columns' names, of a table that is not looked at",
    )
    one.add_argument("-o", "--out", metavar="MAP", required=True, help="where to save the map")
    one.add_argument("--force", action=_NotForMaps, nargs=0, help=argparse.SUPPRESS)
    _add_replace_map(_add_drawing(one))
    _add_reading(one, tables=True)
    _add_engine(one)

    one = command(
        "sql",
        "print the SQL of a map's features, and nothing else",
        "sales.map.json --table main.sales --keep id",
    )
    _add_map(one)
    one.add_argument("--table", metavar="NAME", required=True, help="the table, as SQL writes it")
    _add_dialect(one)
    one.add_argument(
        "--columns",
        type=_names,
        metavar="A,B,...",
        help="the table's columns, if it spells the map's in another case",
    )
    _add_reading(one, tables=False)
    _add_writing(one)

    one = command(
        "tables",
        "write the index/sign table and the component table, with their DDL",
        "sales.map.json -o tables/",
    )
    _add_map(one)
    one.add_argument("-o", "--out", metavar="DIR", required=True, help="a folder for the files")
    one.add_argument("--format", choices=("csv", "parquet"), default="csv")
    _add_dialect(one)
    one.add_argument("--force", action="store_true", help="replace the folder's files")

    one = command(
        "run",
        "create a table or view of features inside a database",
        "sales.map.json --db warehouse.duckdb --table sales --into sales_krp --keep id",
    )
    _add_map(one)
    _add_database(one)
    one.add_argument("--into", metavar="NAME", required=True, help="the table or view to create")
    one.add_argument("--view", action="store_true", help="create a view")
    one.add_argument("--replace", action="store_true", help="replace it if it exists")
    _add_reading(one, tables=False)
    _add_writing(one)
    _add_engine(one)

    one = command(
        "export",
        "compute the features and write them to a file",
        "sales.map.json --db warehouse.duckdb --table sales --keep id --to features.parquet",
    )
    _add_map(one)
    _add_database(one)
    _add_file(one)
    _add_destination(one)
    _add_reading(one, tables=False)
    _add_writing(one)
    _add_engine(one)

    one = command(
        "verify",
        "compare the engine's features with NumPy's (exit code 1 if they differ)",
        "sales.map.json --db warehouse.duckdb --table sales --sample 1000",
    )
    _add_map(one)
    _add_database(one)
    _add_file(one)
    one.add_argument("--sample", type=int, default=1000, metavar="ROWS", help="(default: 1000)")
    one.add_argument(
        "--tolerance", type=float, help="relative error to accept, whatever explains it"
    )
    one.add_argument("--all", action="store_true", help="list every feature, not the worst 10")
    one.add_argument("--form", choices=FORMS, default="auto", help="of the SQL (auto)")
    _add_plan(one)
    _add_long(one)
    _add_engine(one)

    one = command(
        "inspect",
        "say what a map is, and measure its SQL against a dialect's limits (exit code 1: over one)",
        "sales.map.json --dialect postgres --output array",
    )
    _add_map(one)
    _add_dialect(one)
    _add_keep(one)
    _add_writing(one)
    one.add_argument("--json", action="store_true", help="as JSON")
    return whole


def _add_map(one: argparse.ArgumentParser) -> None:
    one.add_argument("map", metavar="MAP", help="a map file, from sqlkrp draw or featurize")
    one.add_argument(
        "--components-only",
        type=_numbers,
        metavar="0-99,120",
        help="only these features, and what they need",
    )


def _add_source(one: argparse.ArgumentParser, **more: Any) -> None:
    one.add_argument(
        "source",
        metavar="SOURCE",
        help="a .csv, .csv.gz, .tsv or .parquet file (or a glob), or with --table a database: a "
        ".duckdb or .sqlite file, or postgresql://...",
        **more,
    )


def _add_dialect(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--dialect",
        choices=sorted(DIALECTS),
        default="duckdb",
        metavar="NAME",
        help=f"of the SQL: {', '.join(sorted(DIALECTS))} (duckdb)",
    )


def _add_destination(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--to",
        metavar="DEST",
        required=True,
        help="a .csv, .csv.gz or .parquet file, or - for CSV on standard output",
    )
    one.add_argument("--force", action="store_true", help="replace a file of features that exists")


def _add_database(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--db", metavar="DB", help="a DuckDB or SQLite database file, or postgresql://..."
    )
    one.add_argument("--table", metavar="NAME", help="its table, as SQL writes it")


def _add_file(one: argparse.ArgumentParser) -> None:
    one.add_argument("--file", metavar="FILE", help="a data file, in place of --db and --table")


class _NotForMaps(argparse.Action):
    """--force where a map is written: it is not to be replaced in passing."""

    def __call__(self, *_: Any) -> NoReturn:
        raise ParameterError(
            "--force is for features, and draw writes a map: leave it out (an equal map is no "
            "obstacle), or give --replace-map"
        )


def _add_replace_map(one: argparse._ActionsContainer) -> None:
    one.add_argument(
        "--replace-map",
        action="store_true",
        help="replace the map file if it holds another map",
    )


def _actions(group: argparse._ArgumentGroup) -> list[argparse.Action]:
    return group._group_actions


def _add_drawing(one: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = one.add_argument_group("the map")
    group.add_argument(
        "--map",
        dest="kind",
        choices=sorted(MAP_NAMES),
        metavar="NAME",
        help=f"its kind: {', '.join(MAP_NAMES)} (krp); each has some of these options, in its own "
        "defaults, which `python -m pydoc sqlkrp.CLASS` describes",
    )
    group.add_argument("--ensemble", type=int, metavar="N", help="so many draws side by side")
    for name, (parameter, options) in MAP_OPTIONS.items():
        group.add_argument(f"--{name}", dest=f"map_{parameter}", **options)
    group.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        help="the same number draws the same map again; random draws another one each time "
        f"(default: {SEED})",
    )
    group.add_argument(
        "--exclude", action="append", default=[], metavar="COLUMN", help="repeat for more columns"
    )
    group.add_argument(
        "--include", action="append", metavar="COLUMN", help="use only these (repeat for more)"
    )
    return group


def _add_reading(one: argparse.ArgumentParser, *, tables: bool) -> None:
    if tables:
        one.add_argument("--table", metavar="NAME", help="the table, if SOURCE is a database")
    _add_keep(one)
    _add_long(one)


def _add_keep(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="hand this column on, unchanged and first (repeat for more)",
    )


def _add_long(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--long",
        type=_three_names,
        metavar="ROW,FEATURE,VALUE",
        help="the table is sparse: these are its three columns",
    )
    one.add_argument(
        "--rows", metavar="TABLE", help="with --long: a table with one row for each row"
    )


def _add_writing(one: argparse.ArgumentParser) -> None:
    one.add_argument("--form", choices=FORMS, default="auto", help="of the SQL (auto)")
    one.add_argument(
        "--stage",
        choices=STAGES,
        default="features",
        help="features, or the bare <x, r> before products and functions (features)",
    )
    one.add_argument(
        "--output",
        choices=OUTPUTS,
        default="columns",
        help="a column each, one array, or signs packed 64 to a whole number (columns)",
    )
    _add_plan(one)


def _add_plan(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--plan", choices=PLANS, default="auto", help="of a ternary pool's sums (auto)"
    )


def _add_engine(one: argparse.ArgumentParser) -> None:
    one.add_argument("--memory-limit", metavar="SIZE", help="of DuckDB, such as 4GB")
    one.add_argument("--threads", type=int, metavar="N", help="of DuckDB")


def _option(parameter: str, help_text: str, **options: Any) -> tuple[str, dict[str, Any]]:
    return parameter, {"help": help_text, "default": None, **options}


def _whole_or_auto(value: str) -> int | str:
    try:
        return value if value == "auto" else int(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is neither a number nor 'auto'") from None


def _seed(value: str) -> int | str:
    try:
        return value if value == "random" else int(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is neither a number nor 'random'") from None


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


#: The options of maps: the constructor's parameter, and how it is read. None is the map's default.
MAP_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "components": _option("n_components", "features (krp: 1000)", type=int, metavar="K"),
    "degree": _option("degree", "of a polynomial kernel (2)", type=int, metavar="G"),
    "terms": _option("n_terms", "products in each feature (10)", type=int, metavar="T"),
    "pool": _option(
        "pool",
        "achlioptas (krp's default), hadamard (cheaper, as a rule better) or gaussian",
        metavar="NAME",
    ),
    "hyperplanes": _option("n_hyperplanes", "in the pool (auto)", type=_whole_or_auto, metavar="P"),
    "sparsity": _option("s", "a share 1/S is not zero (3)", type=float, metavar="S"),
    "block-size": _option("block_size", "of hadamard, a power of two (64)", type=int, metavar="M"),
    "kernel": _option(
        "kernel", "rbf, laplacian, polynomial, linear or exponential", metavar="NAME"
    ),
    "coef0": _option("coef0", "c0 of (gamma <x,y> + c0)^g (0)", type=float, metavar="C0"),
    "gamma": _option("gamma", "gamma of the kernel (1)", type=float, metavar="GAMMA"),
    "paired": _option("paired", "cosines and sines of one frequency", action="store_true"),
    "landmarks": _option("n_landmarks", "rows that kgrp draws (300)", type=int, metavar="P"),
    "marked": _option("n_marked", "of them in a direction (30)", type=int, metavar="T"),
    "matrices": _option("n_matrices", "of prp (2)", type=int, metavar="M"),
    "a": _option("a", "of spherical: (1 - |x-y|^2 / A^2)^degree (4)", type=float, metavar="A"),
    "domain": _option("domain", "of tensor-sketch: fourier or bucket (fourier)", metavar="NAME"),
    "binary": _option("binary", "signs of rank-one", action="store_true"),
    "dtype": _option("dtype", "float32, float64 or auto (auto)", metavar="NAME"),
    "nulls": _option("nulls", "error, zero, mean or propagate (error)", metavar="POLICY"),
    "scaling": _option("scaling", "standard, minmax or unit (none)", metavar="NAME"),
}
