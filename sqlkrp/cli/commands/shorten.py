"""``sqlkrp shorten``: a model of the strongest terms of another."""

from __future__ import annotations

import argparse
from pathlib import Path

from sqlkrp.cli.answers import add_terms
from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.console import say
from sqlkrp.cli.destinations import add_replace
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
from sqlkrp.cli.statements import add_long, options_of_run
from sqlkrp.cli.typed import path_to_write
from sqlkrp.files import require_other_file, require_place
from sqlkrp.mapfile import require_map_or_empty

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    add_model(one)
    add_database(one, file=True)
    add_long(one)
    add_sample(one.group("input"), "with a table: on how many rows the error is measured")
    add_terms(one, "how many terms are left, the strongest", required=True)
    output = one.group("output")
    output.add_argument(
        "-o",
        "--out",
        metavar="SHORT",
        type=path_to_write,
        help="where to save the short model (default: nowhere, its error is told)",
    )
    add_replace(output, "SHORT if it exists")
    add_engine(one)
    let_rows_be_left_out(one)


def _run(given: argparse.Namespace) -> int:
    whole, out = load_model(given.map), given.out
    if out is not None:
        require_other_file(Path(out), given.map)
        require_map_or_empty(Path(out))
        require_place(Path(out), replace=given.replace)
    if not names_rows(given):
        short = whole.shortened(given.terms)
    else:
        with open_database(given, given.file) as database:
            short = database.shorten(
                whole,
                table_of(given, given.file),
                given.terms,
                sample=given.sample,
                **options_of_run(given),
            )
    if out is not None:
        short.save(out, replace=given.replace)
    wrote = [] if out is None else [("wrote", f"{out} (digest {short.digest_[:12]})")]
    say(given, [*wrote, ("model", short.title), ("error", str(short.error))])
    return 0


COMMAND = Command(
    "MODEL --terms N [--db DB --table NAME | --file FILE] [-o SHORT] [options]",
    "make a short model of the strongest terms of one that is a polynomial in its columns, and "
    "say what the others are worth: at most, and with a table on its rows",
    "churn.model.json --terms 20 --db sales.duckdb --table sales -o short.model.json",
    _add_arguments,
    _run,
)
