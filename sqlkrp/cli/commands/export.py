"""``sqlkrp export``: write features to a file."""

from __future__ import annotations

import argparse

from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.console import say
from sqlkrp.cli.destinations import (
    add_destination,
    add_limit,
    add_storage,
    better_pairs,
    storage_of,
)
from sqlkrp.cli.map_files import add_map, load_asked
from sqlkrp.cli.sources import add_database, add_engine, open_database, table_of
from sqlkrp.cli.statements import (
    add_how,
    add_keep,
    add_long,
    add_sql,
    add_written,
    options_of_run,
)
from sqlkrp.maps.advice import counted

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    add_map(one)
    add_database(one, file=True)
    add_long(one)
    add_limit(one)
    add_destination(one, "DEST if it exists")
    one.group("output").add_argument(
        "--append", action="store_true", help="in Spark: add to the files that are there"
    )
    add_storage(one)
    add_keep(one)
    add_written(one)
    add_how(one)
    add_sql(one)
    add_engine(one)


def _run(given: argparse.Namespace) -> int:
    fitted = load_asked(given)
    with open_database(given, given.file) as database:
        run = database.export(
            fitted,
            table_of(given, given.file),
            given.to,
            append=given.append,
            limit=given.limit,
            **storage_of(given),
            **options_of_run(given),
        )
    form = f"{counted(len(run.statement.columns), 'column')}, {run.statement.form} form"
    wrote = f"{given.to}: {counted(run.rows or 0, 'row')}, {form}"
    say(given, [("wrote", wrote), *better_pairs(run), (fitted.kind, run.digest[:12])])
    return 0


COMMAND = Command(
    "MAP (--db DB --table NAME | --file FILE) --to DEST [options]",
    "compute the features and write them to a file",
    "sales.map.json --db warehouse.duckdb --table sales --keep id --to features.parquet",
    _add_arguments,
    _run,
)
