"""Where rows come from: a file, or a table of a database, and the engine that reads it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from sqlkrp.cli.command import Parser, option_given
from sqlkrp.cli.console import progress_bar
from sqlkrp.cli.statements import add_long
from sqlkrp.cli.typed import path
from sqlkrp.engines import (
    Database,
    connect,
    is_database,
    require_no_other_url,
    require_there,
)
from sqlkrp.errors import ParameterError
from sqlkrp.files import require_no_folder
from sqlkrp.urls import File, as_file, is_attached

__all__ = [
    "add_database",
    "add_engine",
    "add_sample",
    "add_source",
    "let_rows_be_left_out",
    "names_rows",
    "open_database",
    "table_of",
]


# --- as arguments -----------------------------------------------------------------------------


def add_source(one: Parser, **more: Any) -> None:
    """The data that a map is drawn for."""
    group = one.group("input")
    group.add_argument(
        "source",
        metavar="SOURCE",
        type=path,
        help="the data: a .csv, .csv.gz, .tsv or .parquet file (or a glob, or a URL such as "
        "s3://... or https://...), or with --table a database: a .duckdb or .sqlite file, md:..., "
        "ducklake:..., postgresql://..., or for Spark local[2], spark://...",
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
        help="the database to read: a DuckDB or SQLite file, what DuckDB attaches (md:..., "
        "ducklake:..., s3://....duckdb), postgresql://..., or for Spark local[2], spark://... or "
        "sc://...",
    )
    group.add_argument("--table", metavar="NAME", help="the table of DB to read, as SQL writes it")
    if file:
        group.add_argument(
            "--file",
            metavar="FILE",
            type=path,
            help="a data file to read, or a URL of one, in place of --db and --table",
        )


def add_sample(group: argparse._ArgumentGroup, meaning: str) -> None:
    """How many rows are read for numbers about all."""
    group.add_argument(
        "--sample",
        type=int,
        default=1000,
        metavar="ROWS",
        help=f"{meaning}, drawn at random (default: 1000)",
    )


def add_engine(one: Parser) -> None:
    """The engine's settings."""
    group = one.group("the engine")
    group.add_argument(
        "--memory-limit", metavar="SIZE", help="how much memory DuckDB may use, such as 4GB"
    )
    group.add_argument("--threads", type=int, metavar="N", help="how many threads DuckDB may use")


def let_rows_be_left_out(one: Parser) -> None:
    """Of a command that may do without rows: know which of its options are of these."""
    groups = (one.group("input"), one.group("the engine"))
    options = [option for group in groups for option in group._group_actions]
    one.set_defaults(of_rows=tuple(option for option in options if option.option_strings))


# --- as the API has them ------------------------------------------------------------------------


def open_database(
    given: argparse.Namespace, source: str | None, *, write: bool = False
) -> Database:
    """The database of a table, or one that reads a file."""
    where = _database_path(given, source)
    if where is not None:
        require_there(where)
    database = connect(
        where,
        read_only=not write,
        memory_limit=given.memory_limit,
        threads=given.threads,
    )
    if sys.stderr.isatty() and not given.quiet:
        database.on_progress = progress_bar()
    return database


def table_of(given: argparse.Namespace, source: str | None) -> Any:
    """The table of a database, or the file, that rows are read of."""
    if _database_path(given, source) is None:
        assert source is not None
        file = as_file(source)
        _require_file(file, source)
        require_no_folder(file)
        if given.table:
            raise ParameterError(f"--table belongs to a database, and {str(file)!r} is a data file")
        return file
    if not given.table:
        raise ParameterError("which table of the database? give --table NAME")
    return given.table


def _require_file(file: File, source: str) -> None:
    """Raise ParameterError if there is no file whose name, by itself, is a database's: ./md:sales.

    What else is not there, the engine tells.
    """
    name = Path(source).name
    if isinstance(file, Path) and is_attached(name) and not os.path.lexists(source):
        raise ParameterError(
            f"there is no file {source!r}: give one that is there, or {name!r}, which DuckDB "
            "attaches"
        )


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


def names_rows(given: argparse.Namespace) -> bool:
    """Whether a command that may read rows was told which; if not, nothing is said of them."""
    if given.db is not None or given.file is not None:
        return True
    option = option_given(given, given.of_rows)
    if option is not None:
        raise ParameterError(
            f"{option} is of rows to read, and none are named: {_ways_to_name_a_source(given)}"
        )
    return False
