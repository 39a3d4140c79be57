"""The command line: from arguments to the Python API, where each command has a twin."""

from sqlkrp.cli.commands import COMMANDS
from sqlkrp.cli.parsing import parser
from sqlkrp.cli.running import main

__all__ = ["COMMANDS", "main", "parser"]
