"""``sqlkrp tables``: write the side tables of the tables form as files."""

from __future__ import annotations

import argparse

from sqlkrp.cli.answers import add_way
from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.console import say
from sqlkrp.cli.destinations import add_replace
from sqlkrp.cli.map_files import add_map, load_asked
from sqlkrp.cli.statements import add_dialect
from sqlkrp.cli.typed import path_to_write
from sqlkrp.models import Model

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
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
    add_replace(output, "files of sqlkrp in DIR")
    add_way(one)
    add_dialect(one)


def _run(given: argparse.Namespace) -> int:
    fitted = load_asked(given)
    if isinstance(fitted, Model):
        fitted = fitted.written_as(given.as_)
    files = fitted.save_tables(
        given.out, format=given.format, dialect=given.dialect, replace=given.replace
    )
    say(given, [("wrote", str(path)) for path in files])
    return 0


COMMAND = Command(
    "MAP -o DIR [options]",
    "write the side tables of the tables form as files, with load.sql to create and fill them",
    "sales.map.json -o tables/",
    _add_arguments,
    _run,
)
