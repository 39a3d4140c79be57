"""Where results go, and how they are kept."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sqlkrp.cli.command import Parser
from sqlkrp.cli.typed import names
from sqlkrp.engines.database import Run
from sqlkrp.files import require_free

__all__ = ["add_destination", "add_storage", "better_pairs", "require_new", "storage_of"]


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


def storage_of(given: argparse.Namespace) -> dict[str, Any]:
    """How a result is kept, by the names of the API."""
    return {name: getattr(given, name) for name in ("replace", "append", "format", "partition_by")}


def require_new(path: str, replace: bool) -> None:
    """Raise TargetExistsError if a file is in the way: before the work, not after it."""
    if not replace and not Path(path).is_dir():
        require_free(Path(path))


def better_pairs(run: Run) -> list[tuple[str, str]]:
    """A line where another kind of file would have been quicker."""
    return [] if run.better is None else [("better", run.better)]
