"""The options of statements: as arguments, and as the API has them."""

from __future__ import annotations

import argparse
from typing import Any

from sqlkrp.cli.command import Parser
from sqlkrp.cli.typed import file_or_table, three_names
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.options import OPTIONS

__all__ = [
    "add_dialect",
    "add_how",
    "add_keep",
    "add_long",
    "add_sql",
    "add_written",
    "options_of_run",
    "options_of_statement",
]


def add_long(one: Parser) -> None:
    """Sparse input."""
    group = one.group("input")
    _add_option(group, "long", "ROW,FEATURE,VALUE", type=three_names)
    _add_option(group, "rows", "TABLE")


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
    _add_option(group, "output", "HOW")
    _add_option(group, "stage", "NAME")


def add_how(one: Parser) -> None:
    """What computes."""
    _add_option(one.group("the engine"), "how", "NAME")


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
    _add_option(group, "form", "NAME")
    _add_option(group, "plan", "NAME")


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


def options_of_statement(given: argparse.Namespace) -> dict[str, Any]:
    """The options of its statement that a command has, by the names of the API."""
    found = {name: getattr(given, name) for name in OPTIONS if hasattr(given, name)}
    label = getattr(given, "label", None)
    return found if label is None else found | {"keep": [*given.keep, label]}


def options_of_run(given: argparse.Namespace) -> dict[str, Any]:
    """The options of a statement that is run, where the table of rows may be a file."""
    options = options_of_statement(given)
    if given.rows:
        options["rows"] = file_or_table(given.rows)
    return options
