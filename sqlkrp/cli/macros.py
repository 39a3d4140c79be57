"""A macro in place of rows: what any client calls with a table of its own."""

from __future__ import annotations

import argparse
from typing import Any

from sqlkrp.cli.command import Parser, option_given
from sqlkrp.cli.console import say
from sqlkrp.cli.sources import open_database
from sqlkrp.errors import ParameterError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.fitted import Fitted

__all__ = ["add_macro", "create_macro"]

# Options of rows, and of what is made of them.
_OF_ROWS = (
    "table", "file", "limit", "long", "rows", "features", "holds", "into", "path", "view", "append",
    "upsert", "key", "format", "partition_by",
)  # fmt: skip


def add_macro(one: Parser) -> None:
    """A macro in place of rows."""
    one.group("output").add_argument(
        "--macro",
        metavar="NAME",
        help="in place of --table and --into, in DuckDB: make a table macro, so that any client "
        "says FROM NAME('its_table')",
    )


def create_macro(given: argparse.Namespace, fitted: Fitted, asked: dict[str, Any]) -> int:
    """Make the macro that a command asks for, and say so."""
    option = option_given(given, (one for one in given.parsed_by._actions if one.dest in _OF_ROWS))
    if option is not None:
        raise ParameterError(f"a macro reads no rows before it is called: leave out {option}")
    if not given.db:
        raise ParameterError("a macro is kept in a database: give --db DB")
    if asked.pop("how") != "sql":
        raise ParameterError("a macro is SQL alone: leave out --how")
    for name in ("long", "rows"):
        del asked[name]
    with open_database(given, None, write=True) as database:
        run = database.macro(fitted, given.macro, replace=given.replace, **asked)
    columns, form = run.statement.columns, run.statement.form
    told = f"{given.macro}(table): {counted(len(columns), 'column')}, {form} form"
    say(given, [("macro", told), (fitted.kind, run.digest[:12])])
    return 0
