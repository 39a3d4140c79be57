"""Where results go, and how they are kept."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sqlkrp.cli.command import Parser
from sqlkrp.cli.typed import names
from sqlkrp.engines.database import Run
from sqlkrp.files import require_free
from sqlkrp.maps.advice import counted
from sqlkrp.urls import as_file

__all__ = [
    "add_destination",
    "add_growth",
    "add_limit",
    "add_replace",
    "add_storage",
    "better_pairs",
    "growth_of",
    "require_new",
    "rows_of",
    "storage_of",
    "verb_of",
]


def add_replace(group: argparse._ArgumentGroup, what: str) -> None:
    """Leave to replace what is there."""
    group.add_argument("--replace", action="store_true", help=f"replace {what}")
    # Its name of earlier versions where a file is written.
    group.add_argument("--force", dest="replace", action="store_true", help=argparse.SUPPRESS)


def add_destination(one: Parser, replace: str) -> None:
    """The file that is written; ``replace`` says what is replaced."""
    group = one.group("output")
    group.add_argument(
        "--to",
        metavar="DEST",
        required=True,
        help="the file to write, or a URL of one such as s3://...: .csv, .csv.gz or .parquet, or - "
        "for CSV on standard output",
    )
    add_replace(group, replace)


def add_growth(one: Parser) -> None:
    """Rows that are added to a table that may be there."""
    group = one.group("output")
    group.add_argument(
        "--append",
        action="store_true",
        help="add rows to a table that the same map or model made, or make it; with --key, those "
        "whose key is not there yet",
    )
    group.add_argument(
        "--upsert",
        action="store_true",
        help="with --key: add rows so, and replace those whose key is there",
    )
    group.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="COLUMN",
        help="the column that tells rows apart, which is handed on (repeat for more, which "
        "together do)",
    )


def growth_of(given: argparse.Namespace) -> dict[str, Any]:
    """How rows are added to a table, by the names of the API."""
    return {name: getattr(given, name) for name in ("append", "upsert", "key")}


def verb_of(given: argparse.Namespace, run: Run) -> str:
    """What became of a table or view."""
    if not (given.append or given.upsert):
        return "created"
    return "updated" if run.replaced else "added to"


def rows_of(run: Run) -> str:
    """The rows of a table that was made, or those that were added to one."""
    if run.rows is None:
        return "a view"
    more = f", {run.replaced:,} of them in place of old ones" if run.replaced else ""
    return counted(run.rows, "row") + more


def add_limit(one: Parser) -> None:
    """How many rows are read."""
    one.group("input").add_argument(
        "--limit",
        type=int,
        metavar="N",
        help="read so many rows only, for a first look (with --key, the first of it)",
    )


def add_storage(one: Parser) -> None:
    """How a result is kept, where an engine leaves a choice."""
    group = one.group("output")
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


def storage_of(given: argparse.Namespace) -> dict[str, Any]:
    """How a result is kept, by the names of the API."""
    return {name: getattr(given, name) for name in ("replace", "format", "partition_by")}


def require_new(path: str, replace: bool) -> None:
    """Raise TargetExistsError if a file is in the way: before the work, not after it."""
    target = as_file(path)
    if not replace and isinstance(target, Path) and not target.is_dir():  # else the engine looks
        require_free(target)


def better_pairs(run: Run) -> list[tuple[str, str]]:
    """A line where another kind of file would have been quicker."""
    return [] if run.better is None else [("better", run.better)]
