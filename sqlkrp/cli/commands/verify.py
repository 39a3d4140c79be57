"""``sqlkrp verify``: the engine's numbers, or stored ones, against NumPy's."""

from __future__ import annotations

import argparse

from sqlkrp.cli.answers import add_answers, answers_of
from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.map_files import add_map, load_asked
from sqlkrp.cli.sources import (
    add_database,
    add_engine,
    add_sample,
    open_database,
    table_of,
)
from sqlkrp.cli.statements import add_long, add_sql, options_of_run
from sqlkrp.cli.typed import file_or_table, path
from sqlkrp.summaries.verifications import verification_lines

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    add_map(one)
    add_database(one, file=True)
    add_long(one)
    _add_result(one)
    output = one.group("output")
    add_sample(output, "how many rows to compare")
    output.add_argument(
        "--tolerance",
        type=float,
        metavar="SHARE",
        help="how far a feature may be off, as a share of its size (default: 1e-9, in float32 "
        "1e-3, and more only where rounding explains it)",
    )
    output.add_argument("--all", action="store_true", help="list every feature, not the worst 10")
    add_answers(one)
    add_sql(one)
    add_engine(one)


def _add_result(one: Parser) -> None:
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


def _run(given: argparse.Namespace) -> int:
    fitted = load_asked(given)
    with open_database(given, given.file) as database:
        result = database.verify(
            fitted,
            table_of(given, given.file),
            sample=given.sample,
            tolerance=given.tolerance,
            result=None if given.result is None else file_or_table(given.result),
            key=given.key,
            **answers_of(given),
            **options_of_run(given),
        )
    if not given.quiet:
        print("\n".join(verification_lines(result, every=given.all)))
    return 0 if result.ok else 1


COMMAND = Command(
    "MAP (--db DB --table NAME | --file FILE) [--result RESULT --key COLUMN] [options]",
    "compare the engine's numbers, or those that are stored, with NumPy's (exit code 1: they "
    "differ, or there are none)",
    "sales.map.json --db warehouse.duckdb --table sales --sample 1000",
    _add_arguments,
    _run,
)
