"""``sqlkrp maps``: the kinds of maps, and their options."""

from __future__ import annotations

import argparse

from sqlkrp.cli.command import Command, Parser
from sqlkrp.maps import MAPS
from sqlkrp.options import map_help, summary
from sqlkrp.summaries.lines import aligned

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    one.group("input").add_argument(
        "kind", nargs="?", choices=tuple(MAPS), metavar="NAME", help="a kind of map"
    )


def _run(given: argparse.Namespace) -> int:
    if given.kind is not None:
        print(map_help(given.kind))
        return 0
    pairs = [(kind, summary(kind)) for kind in MAPS]
    print("\n".join([*aligned(pairs), "", "sqlkrp maps NAME lists the options of one."]))
    return 0


COMMAND = Command(
    "[NAME]",
    "list the kinds of maps, or the options of one with their defaults",
    "krp",
    _add_arguments,
    _run,
)
