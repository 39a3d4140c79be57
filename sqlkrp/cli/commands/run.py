"""``sqlkrp run``: create a table or view of features."""

from __future__ import annotations

import argparse

from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.console import say
from sqlkrp.cli.destinations import (
    add_growth,
    add_limit,
    add_replace,
    add_storage,
    growth_of,
    rows_of,
    storage_of,
    verb_of,
)
from sqlkrp.cli.macros import add_macro, create_macro
from sqlkrp.cli.map_files import add_map, load_asked
from sqlkrp.cli.sources import add_database, add_engine, open_database, table_of
from sqlkrp.cli.statements import (
    add_how,
    add_keep,
    add_long,
    add_sql,
    add_written,
    options_of_run,
    options_of_statement,
)
from sqlkrp.errors import ParameterError
from sqlkrp.maps.advice import counted, listed

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    add_map(one)
    add_database(one)
    add_long(one)
    add_limit(one)
    output = one.group("output")
    output.add_argument("--into", metavar="NAME", help="the table or view to create")
    output.add_argument("--view", action="store_true", help="create a view, not a table")
    add_replace(output, "the table, view or macro if it exists")
    add_growth(one)
    add_macro(one)
    add_storage(one)
    add_keep(one)
    add_written(one)
    add_how(one)
    add_sql(one)
    add_engine(one)


def _run(given: argparse.Namespace) -> int:
    fitted = load_asked(given)
    if given.macro is not None:
        return create_macro(given, fitted, options_of_statement(given))
    if given.into is None:
        raise ParameterError("features go into a table, view or macro: give --into or --macro NAME")
    with open_database(given, None, write=True) as database:
        run = database.create(
            fitted,
            table_of(given, None),
            given.into,
            view=given.view,
            limit=given.limit,
            **growth_of(given),
            **storage_of(given),
            **options_of_run(given),
        )
    what = rows_of(run)
    form = f"{counted(len(run.statement.columns), 'column')}, {run.statement.form} form"
    twice = [name for name in given.keep if name in fitted.program.prepare.reads]
    say(
        given,
        [
            (verb_of(given, run), f"{given.into}: {what}, {form}"),
            (fitted.kind, run.digest[:12]),
            *([("note", f"{listed(twice)}: kept, and read by the map as well")] if twice else []),
        ],
    )
    return 0


COMMAND = Command(
    "MAP --db DB (--table NAME --into NAME | --macro NAME) [options]",
    "create a table or view of features inside a database, or add rows to one",
    "sales.map.json --db warehouse.duckdb --table sales --into sales_krp --keep id",
    _add_arguments,
    _run,
)
