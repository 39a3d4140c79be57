"""``sqlkrp score``: what a model says of rows."""

from __future__ import annotations

import argparse
from typing import Any

from sqlkrp.cli.answers import add_answers, answers_of
from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.console import say
from sqlkrp.cli.destinations import (
    add_growth,
    add_limit,
    add_replace,
    better_pairs,
    growth_of,
    rows_of,
    verb_of,
)
from sqlkrp.cli.macros import add_macro, create_macro
from sqlkrp.cli.map_files import add_model, load_scoring
from sqlkrp.cli.sources import add_database, add_engine, open_database, table_of
from sqlkrp.cli.statements import (
    add_how,
    add_keep,
    add_long,
    add_sql,
    options_of_run,
    options_of_statement,
)
from sqlkrp.models.sketches import HOLDS

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    add_model(one)
    add_database(one, file=True)
    one.group("input").add_argument(
        "--features",
        metavar="NAME",
        help="in place of --table: the table of DB that holds the features of the model's map",
    )
    one.group("input").add_argument(
        "--holds",
        choices=HOLDS,
        metavar="WHAT",
        default="features",
        help="of --features, for rank-one projections: features, bits (their signs, packed), or "
        "sketches (full ones, for a model of signs) (default: features)",
    )
    add_long(one)
    add_limit(one)
    output = one.group("output")
    output.add_argument("--into", metavar="NAME", help="the table or view of DB to create")
    output.add_argument(
        "--to",
        dest="path",
        metavar="DEST",
        help="in place of --into: the file to write: .csv, .csv.gz or .parquet, or - for CSV on "
        "standard output",
    )
    output.add_argument("--view", action="store_true", help="create a view, not a table")
    add_replace(output, "the table, view, file or macro if it exists")
    add_growth(one)
    add_macro(one)
    add_keep(one)
    add_answers(one)
    add_how(one)
    add_sql(one)
    add_engine(one)


def _run(given: argparse.Namespace) -> int:
    fitted, given.to = load_scoring(given), given.path
    if given.macro is not None:
        return create_macro(given, fitted, {**answers_of(given), **options_of_statement(given)})
    with open_database(given, given.file, write=given.into is not None) as database:
        run = database.score(
            fitted,
            _rows(given),
            features=given.features,
            holds=given.holds,
            into=given.into,
            path=given.path,
            view=given.view,
            replace=given.replace,
            limit=given.limit,
            **growth_of(given),
            **answers_of(given),
            **options_of_run(given),
        )
    said = ", ".join(run.statement.columns[run.statement.n_kept :])
    verb = "wrote" if given.into is None else verb_of(given, run)
    told = f"{given.into or given.path}: {rows_of(run)} of {said}; {run.statement.form} form"
    error = [] if fitted.error is None else [("error", fitted.error)]
    say(given, [(verb, told), *better_pairs(run), ("model", run.digest[:12]), *error])
    return 0


def _rows(given: argparse.Namespace) -> Any:
    """The rows to score, unless those of a table of features are given in their place."""
    if given.features and not (given.table or given.file):
        return None
    return table_of(given, given.file)


COMMAND = Command(
    "MODEL (--db DB --table NAME | --file FILE) (--into NAME | --to DEST | --macro NAME) [options]",
    "score rows with a model where they live: labels, probabilities or predictions",
    "churn.model.json --db sales.duckdb --table sales --into churn_scores --keep id",
    _add_arguments,
    _run,
)
