"""``sqlkrp inspect``: what a map or model is, and the sizes of its SQL."""

from __future__ import annotations

import argparse
import json

from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.map_files import add_map, load_asked
from sqlkrp.cli.messages import options_of
from sqlkrp.cli.statements import (
    add_dialect,
    add_keep,
    add_sql,
    add_written,
    options_of_statement,
)
from sqlkrp.models.model import Model
from sqlkrp.spelling import as_options
from sqlkrp.summaries.facts import facts, preflight_of
from sqlkrp.summaries.maps import map_lines
from sqlkrp.summaries.training import training_lines

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    add_map(one)
    add_keep(one)
    add_written(one)
    one.group("output").add_argument("--json", action="store_true", help="print JSON, not lines")
    add_dialect(one)
    add_sql(one)


def _run(given: argparse.Namespace) -> int:
    fitted = load_asked(given)
    found = preflight_of(fitted, dialect=given.dialect, **options_of_statement(given))
    if given.json:
        print(json.dumps(facts(fitted, found), indent=1, ensure_ascii=False))
    else:
        spoken = options_of(given.parsed_by)
        lines = map_lines(fitted, found, lambda text: as_options(text, spoken))
        if isinstance(fitted, Model) and fitted.training is not None:
            lines += ["", *training_lines(fitted.training, short=fitted.shortening)]
        print("\n".join(lines))
    # A map for sparse input has no statement to measure, and that is no fault.
    return 0 if isinstance(found, str) or not found.problems else 1


COMMAND = Command(
    "MAP [options]",
    "say what a map or model is, and measure its SQL against a dialect's limits (exit code 1: "
    "over one)",
    "sales.map.json --dialect postgres --output array",
    _add_arguments,
    _run,
)
