"""Errors and warnings on the command line: in one line each, and in the command's own words."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlkrp.cli.console import say_error
from sqlkrp.errors import FitWarning, visible
from sqlkrp.maps import MAPS
from sqlkrp.options import MAP_OPTIONS
from sqlkrp.spelling import as_options

__all__ = ["Speaker", "options_of"]


class Speaker:
    """What says errors and warnings."""

    options: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        self._advice: list[str] = []

    def say(self, message: str) -> None:
        """Say an error, or another line."""
        line = as_options(" ".join(message.split()), self.options)
        say_error(f"sqlkrp: {visible(line)}")

    def warn(self, message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        """Say a warning, in place of ``warnings.showwarning``; advice is kept for later."""
        if issubclass(category, FitWarning):
            self._advice.append(str(message))
        else:
            self.say(f"warning: {message}")

    def advise(self) -> None:
        """Say what was noticed about a map, once it is there; an error stands alone."""
        for message in self._advice:
            self.say(f"warning: {message}")


def options_of(command: argparse.ArgumentParser) -> dict[str, str]:
    """The options by the names that they have in Python: a command's own, and those of maps.

    And what chooses a map, by the name of its class.
    """
    told = [one for one in command._actions if one.help != argparse.SUPPRESS]
    own = {one.dest: one.option_strings[-1] for one in told if one.option_strings}
    kinds = {one.__name__: f"--map {kind}" for kind, one in MAPS.items()}
    return kinds | {one.name: f"--{option}" for option, one in MAP_OPTIONS.items()} | own
