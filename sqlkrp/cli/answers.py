"""What is asked of a model: what it says, and how it is computed."""

from __future__ import annotations

import argparse
from typing import Any

from sqlkrp.cli.command import Parser
from sqlkrp.cli.typed import names
from sqlkrp.maps.fitted import Fitted
from sqlkrp.models.model import WAYS
from sqlkrp.models.scoring import scoring

__all__ = ["add_answers", "add_terms", "add_way", "answered", "answers_of"]

# What is asked where nothing is: the model as its file has it.
_PLAIN: dict[str, Any] = {"outputs": None, "threshold": None, "as_": "auto", "prefix": ""}


def add_answers(one: Parser) -> None:
    """What a model says."""
    group = one.group("output")
    group.add_argument(
        "--outputs",
        type=names,
        metavar="A,B,...",
        help="of a classifier: what it says of a row: label, probability, decision (default: the "
        "first two that it has)",
    )
    group.add_argument(
        "--threshold",
        type=float,
        metavar="P",
        help="of two classes: the second is the label where its probability (or decision, where "
        "there are none) is not less than this",
    )
    group.add_argument(
        "--prefix",
        metavar="TEXT",
        default=_PLAIN["prefix"],
        help="of a model: what the names of its columns begin with, such as predicted_",
    )
    add_way(one)


def add_way(one: Parser) -> None:
    """How a model is computed."""
    one.group("the SQL").add_argument(
        "--as",
        dest="as_",
        choices=WAYS,
        metavar="HOW",
        default=_PLAIN["as_"],
        help="of a model: how it is computed: by the map's features, as the polynomial in the "
        "columns that it is with many maps, or auto: what has fewer operations (default: auto)",
    )
    add_terms(one, "of a model that is a polynomial in its columns: only its N strongest terms")


def add_terms(one: Parser, meaning: str, **more: Any) -> None:
    """How many terms of a model are left."""
    one.group("the SQL").add_argument("--terms", type=int, metavar="N", help=meaning, **more)


def answers_of(given: argparse.Namespace) -> dict[str, Any]:
    """What is asked of a model, by the names of the API."""
    return {name: getattr(given, name) for name in _PLAIN}


def answered(given: argparse.Namespace, fitted: Fitted, table: str) -> Fitted:
    """What was loaded, saying what is asked of it, where it is asked for anything."""
    asked = answers_of(given)
    if asked == _PLAIN:
        return fitted
    model, _ = scoring(fitted, table, None, **asked)
    return model
