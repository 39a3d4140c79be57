"""What a command of the command line is, and the parser of its arguments.

An argument is stored under the name that the Python API has for it (``dest``), a map's parameter
under ``map_`` and its name: so a message that names a parameter can name the option.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from sqlkrp.errors import ParameterError
from sqlkrp.spelling import near_names

__all__ = ["Command", "Parser", "option_given"]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are ours, and whose groups are found by their titles."""

    def error(self, message: str) -> NoReturn:
        raise ParameterError(f"{message}; see '{self.prog} --help'")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        # Of a command, argparse hands what is left over to the whole, whose help does not tell.
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}{self._meant(left)}")
        return found, left

    def _meant(self, left: Sequence[str]) -> str:
        """The options that may be meant by the first of what is left over."""
        name = next((one[2:].partition("=")[0] for one in left if one.startswith("--")), "")
        known = [option[2:] for option in self._option_string_actions if option[2:]]
        near = near_names(name, known) if name else []
        return f" (did you mean {' or '.join(f'--{one}' for one in near)}?)" if near else ""

    def group(self, title: str, description: str | None = None) -> argparse._ArgumentGroup:
        """The group of this title in the help, which may be there already."""
        for one in self._action_groups:
            if one.title == title:
                return one
        return self.add_argument_group(title, description)


def option_given(given: argparse.Namespace, options: Iterable[argparse.Action]) -> str | None:
    """The first of some options that is given another value than its default."""
    for option in options:
        if getattr(given, option.dest, option.default) != option.default:
            return option.option_strings[0]
    return None


@dataclass(frozen=True)
class Command:
    """A command: what its help says, its arguments, and what it does with them."""

    usage: str
    does: str
    """What it does, as a line of the list of commands."""
    example: str
    """Its arguments in an example."""
    add_arguments: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int]
    """From arguments to the exit code."""
