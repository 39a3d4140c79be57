"""``sqlkrp explain``: a model's strongest terms, or how much each column matters to it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.map_files import add_model, load_model
from sqlkrp.cli.sources import (
    add_database,
    add_engine,
    add_sample,
    let_rows_be_left_out,
    names_rows,
    open_database,
    table_of,
)
from sqlkrp.maps.allowed import Whole
from sqlkrp.models.explaining import explain
from sqlkrp.summaries.models import explanation_lines, importance_lines

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    add_model(one)
    add_database(one, file=True)
    add_sample(one.group("input"), "with a table: on how many rows")
    output = one.group("output")
    output.add_argument(
        "--top", type=int, default=20, metavar="N", help="how many terms or columns (default: 20)"
    )
    output.add_argument("--json", action="store_true", help="print JSON, not lines")
    add_engine(one)
    let_rows_be_left_out(one)


def _run(given: argparse.Namespace) -> int:
    fitted = load_model(given.map)
    Whole(1).require("top", given.top)
    if not names_rows(given):
        terms = explain(fitted, given.top)
        plain, lines = terms.as_plain(), explanation_lines(terms)
    else:
        with open_database(given, given.file) as database:
            found = database.importance(fitted, table_of(given, given.file), sample=given.sample)
        plain, lines = asdict(found), importance_lines(found, given.top)
    print(json.dumps(plain, indent=1, ensure_ascii=False) if given.json else "\n".join(lines))
    return 0


COMMAND = Command(
    "MODEL [--db DB --table NAME | --file FILE] [options]",
    "list the strongest terms of a model that is a polynomial in its columns; or with a table "
    "how much each column matters to any model on its rows",
    "churn.model.json --top 20",
    _add_arguments,
    _run,
)
