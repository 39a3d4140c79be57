"""``sqlkrp sql``: print the SQL of a map or model."""

from __future__ import annotations

import argparse

from sqlkrp.cli.answers import add_answers, answered
from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.map_files import add_map, load_asked
from sqlkrp.cli.statements import (
    add_dialect,
    add_keep,
    add_long,
    add_sql,
    add_written,
    options_of_statement,
)
from sqlkrp.cli.typed import names
from sqlkrp.sql.jinja import is_reference

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    add_map(one)
    source = one.group("input")
    source.add_argument(
        "--table",
        metavar="NAME",
        required=True,
        help="the table to read, as SQL writes it; or as dbt does, {{ ref('x') }} or "
        "{{ source('a', 'b') }}: then what is printed is a model of dbt's",
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


def _run(given: argparse.Namespace) -> int:
    fitted = answered(given, load_asked(given), given.table)
    if given.columns is not None:
        fitted = fitted.renamed(given.columns)
    text = fitted.to_sql(given.table, dialect=given.dialect, **options_of_statement(given))
    # dbt puts a model inside other statements.
    print(text if is_reference(given.table) else f"{text};")
    return 0


COMMAND = Command(
    "MAP --table NAME [options]",
    "print the SQL of a map's features or of a model's scores, and nothing else",
    "sales.map.json --table main.sales --keep id",
    _add_arguments,
    _run,
)
