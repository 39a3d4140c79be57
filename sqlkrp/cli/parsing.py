"""The parser of the command line, made of the table of commands."""

from __future__ import annotations

import argparse

from sqlkrp.cli.command import Parser
from sqlkrp.cli.commands import COMMANDS
from sqlkrp.version import __version__

__all__ = ["parser"]


def parser() -> argparse.ArgumentParser:
    """The parser of the command line; what it finds knows the command to ``run``."""
    whole = Parser(
        prog="sqlkrp",
        description="Random features of the polynomial kernel by SUM/minus SQL, in the database.",
        epilog="example: sqlkrp featurize digits.csv --label label --to features.csv",
        allow_abbrev=False,
    )
    whole.add_argument("--version", action="version", version=f"sqlkrp {__version__}")
    subparsers = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        one: Parser = subparsers.add_parser(
            name,
            usage=f"sqlkrp {name} {command.usage}",
            help=command.does,
            description=f"{command.does[0].upper()}{command.does[1:]}.",
            epilog=f"example: sqlkrp {name} {command.example}",
            allow_abbrev=False,
        )
        one.set_defaults(run=command.run, parsed_by=one)
        one.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
        command.add_arguments(one)
    return whole
