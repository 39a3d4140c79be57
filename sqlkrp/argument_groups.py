"""Groups of arguments that several commands have."""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from sqlkrp.errors import ParameterError
from sqlkrp.maps import MAPS
from sqlkrp.models.model import WAYS
from sqlkrp.options import MAP, MAP_OPTIONS, SEED, argument, number_or
from sqlkrp.spelling import near_names
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.options import OPTIONS

__all__ = [
    "NotForMaps",
    "Parser",
    "add_database",
    "add_destination",
    "add_dialect",
    "add_drawing",
    "add_engine",
    "add_how",
    "add_keep",
    "add_long",
    "add_map",
    "add_option",
    "add_replace_map",
    "add_result",
    "add_source",
    "add_sql",
    "add_storage",
    "add_terms",
    "add_written",
    "names",
    "path",
    "path_to_write",
]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are ours, and whose groups are found by their titles."""

    def error(self, message: str) -> NoReturn:
        raise ParameterError(f"{message}; see '{self.prog} --help'")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        # Of a command, argparse hands what is left over to the whole, whose help does not tell.
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}{self._meant(left)}")
        return found, left

    def _meant(self, left: Sequence[str]) -> str:
        """The options that may be meant by the first of what is left over."""
        name = next((one[2:].partition("=")[0] for one in left if one.startswith("--")), "")
        actions = self._option_string_actions
        known = {option[2:]: actions[option].dest for option in actions if option[2:]}
        near = near_names(name, [*known]) if name else []
        if name in ("force", "replace"):  # some commands have the one, some the other
            near = [option for option, dest in known.items() if dest == "replace"] or near
        return f" (did you mean {' or '.join(f'--{one}' for one in near)}?)" if near else ""

    def group(self, title: str, description: str | None = None) -> argparse._ArgumentGroup:
        """The group of this title in the help, which may be there already."""
        for one in self._action_groups:
            if one.title == title:
                return one
        return self.add_argument_group(title, description)


def add_map(one: Parser) -> None:
    """A map file, and which of its features."""
    group = one.group("input")
    group.add_argument(
        "map",
        metavar="MAP",
        type=path,
        help="a map file, from sqlkrp draw or featurize, or a model",
    )
    group.add_argument(
        "--components-only",
        type=_numbers,
        metavar="NUMBERS",
        help="compute only the features of these numbers, such as 0-99,120, and what they need; in "
        "the map's order, and each once",
    )


def add_model(one: Parser) -> None:
    """A model file."""
    one.group("input").add_argument(
        "map", metavar="MODEL", type=path, help="a model file, from Model.save in Python"
    )


def add_answers(one: Parser) -> None:
    """What a model says."""
    group = one.group("output")
    group.add_argument(
        "--outputs",
        type=names,
        metavar="A,B,...",
        help="of a classifier: what it says of a row: label, probability, decision (default: the "
        "first two that it has)",
    )
    group.add_argument(
        "--threshold",
        type=float,
        metavar="P",
        help="of two classes: the second is the label where its probability (or decision, where "
        "there are none) is not less than this",
    )
    group.add_argument(
        "--prefix",
        metavar="TEXT",
        default="",
        help="of a model: what the names of its columns begin with, such as predicted_",
    )
    add_way(one)


def add_way(one: Parser) -> None:
    """How a model is computed."""
    one.group("the SQL").add_argument(
        "--as",
        dest="as_",
        choices=WAYS,
        metavar="HOW",
        default="auto",
        help="of a model: how it is computed: by the map's features, as the polynomial in the "
        "columns that it is with many maps, or auto: what has fewer operations (default: auto)",
    )
    add_terms(one, "of a model that is a polynomial in its columns: only its N strongest terms")


def add_terms(one: Parser, meaning: str, **more: Any) -> None:
    """How many terms of a model are left."""
    one.group("the SQL").add_argument("--terms", type=int, metavar="N", help=meaning, **more)


def add_source(one: Parser, **more: Any) -> None:
    """The data that a map is drawn for."""
    group = one.group("input")
    group.add_argument(
        "source",
        metavar="SOURCE",
        type=path,
        help="the data: a .csv, .csv.gz, .tsv or .parquet file (or a glob), or with --table a "
        "database: a .duckdb or .sqlite file, postgresql://..., or for Spark local[2], spark://...",
        **more,
    )
    group.add_argument(
        "--table", metavar="NAME", help="the table of the database that SOURCE is, as SQL writes it"
    )
    add_long(one)


def add_database(one: Parser, *, file: bool = False) -> None:
    """A database and a table of it, or on request a file."""
    group = one.group("input")
    group.add_argument(
        "--db",
        metavar="DB",
        help="the database to read: a DuckDB or SQLite file, postgresql://..., or for Spark "
        "local[2], spark://... or sc://...",
    )
    group.add_argument("--table", metavar="NAME", help="the table of DB to read, as SQL writes it")
    if file:
        group.add_argument(
            "--file",
            metavar="FILE",
            type=path,
            help="a data file to read, in place of --db and --table",
        )


def add_long(one: Parser) -> None:
    """Sparse input."""
    group = one.group("input")
    add_option(group, "long", "ROW,FEATURE,VALUE", type=three_names)
    add_option(group, "rows", "TABLE")


def add_result(one: Parser) -> None:
    """Stored rows, and what tells them apart."""
    group = one.group("input")
    group.add_argument(
        "--result",
        metavar="RESULT",
        type=path,
        help="compare the rows that are stored here: a table of DB with features or scores, or a "
        ".csv, .csv.gz, .tsv or .parquet file with names, which may come from any engine",
    )
    group.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="COLUMN",
        help="of --result: the column that tells which row is which, there and in the source "
        "(repeat for more, which together do)",
    )


def add_destination(one: Parser, force: str) -> None:
    """The file that is written; ``force`` says what is replaced."""
    group = one.group("output")
    group.add_argument(
        "--to",
        metavar="DEST",
        required=True,
        help="the file to write: .csv, .csv.gz or .parquet, or - for CSV on standard output",
    )
    group.add_argument("--force", dest="replace", action="store_true", help=force)


def add_keep(one: Parser, more: str = "") -> None:
    """Columns that are handed on; ``more`` is what else there is to say."""
    one.group("output").add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help=f"hand this column on, unchanged and before the features{more} (repeat for more)",
    )


def add_written(one: Parser) -> None:
    """How features are written, and up to which stage."""
    group = one.group("output")
    add_option(group, "output", "HOW")
    add_option(group, "stage", "NAME")


def add_how(one: Parser) -> None:
    """What computes."""
    add_option(one.group("the engine"), "how", "NAME")


def add_storage(one: Parser) -> None:
    """How a result is kept, where an engine leaves a choice."""
    group = one.group("output")
    group.add_argument(
        "--append",
        action="store_true",
        help="in Spark: add to the rows that are there (of a table, if the same map made it)",
    )
    group.add_argument(
        "--format", metavar="NAME", help="in Spark: the format of the files, such as orc or delta"
    )
    group.add_argument(
        "--partition-by",
        type=names,
        metavar="COLUMNS",
        default=(),
        help="in Spark: kept columns that the rows are parted by, such as day or country,day",
    )


def add_option(group: argparse._ArgumentGroup, name: str, metavar: str, **reads: Any) -> None:
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


def add_dialect(one: Parser) -> None:
    """The dialect of what is printed."""
    one.group("the SQL").add_argument(
        "--dialect",
        choices=sorted(DIALECTS),
        default="duckdb",
        metavar="NAME",
        help=f"for which database the SQL is: {', '.join(sorted(DIALECTS))} (default: duckdb)",
    )


def add_sql(one: Parser) -> None:
    """How the SQL is made."""
    group = one.group("the SQL")
    add_option(group, "form", "NAME")
    add_option(group, "plan", "NAME")


def add_engine(one: Parser) -> None:
    """The engine's settings."""
    group = one.group("the engine")
    group.add_argument(
        "--memory-limit", metavar="SIZE", help="how much memory DuckDB may use, such as 4GB"
    )
    group.add_argument("--threads", type=int, metavar="N", help="how many threads DuckDB may use")


class NotForMaps(argparse.Action):
    """--force where a map is written: it is not to be replaced in passing."""

    def __call__(self, *_: Any) -> NoReturn:
        raise ParameterError(
            "--force is for features, and draw writes a map: leave it out (an equal map is no "
            "obstacle), or give --replace-map"
        )


def add_replace_map(one: argparse._ArgumentGroup) -> None:
    """Leave to replace a map."""
    one.add_argument(
        "--replace-map",
        action="store_true",
        help="replace the map file even if it holds another map, which a model may need",
    )


def add_drawing(one: Parser) -> argparse._ArgumentGroup:
    """A map and its parameters, the seed, and the columns that it reads."""
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
    group.add_argument(
        "--categories",
        choices=("auto", "none"),
        metavar="HOW",
        default="none",
        help="auto: read a column of texts of at most 50 values as 0 and 1, an input for each "
        "value (default: none, such columns are left out)",
    )
    group.add_argument(
        "--dates",
        choices=("auto", "none"),
        metavar="HOW",
        default="none",
        help="auto: read dates and times as days since 1970-01-01 (default: none, they are left "
        "out)",
    )
    return group


def path(value: str) -> str:
    """A path that is not empty, as that would be the folder that the command runs in."""
    if not value:
        raise argparse.ArgumentTypeError("the name is empty: give one")
    return value


def path_to_write(value: str) -> str:
    """The path of what is not written to standard output, as features are."""
    if value == "-":
        raise argparse.ArgumentTypeError("this is not written to standard output: give a name")
    return path(value)


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


def names(value: str) -> list[str]:
    """Names separated by commas; one that holds a comma stands in double quotes."""
    try:
        (names,) = csv.reader([value], skipinitialspace=True, strict=True) if value else ([],)
    except (csv.Error, ValueError):
        names = []
    if not all(names) or not names:
        raise argparse.ArgumentTypeError("name columns, such as height,width or 'a,\"b,c\"'")
    return names


def three_names(value: str) -> tuple[str, ...]:
    three = tuple(names(value))
    if len(three) != 3:
        raise argparse.ArgumentTypeError("name three columns, such as row,feature,value")
    return three
