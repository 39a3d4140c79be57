"""What a command shows on the console: how far it is, and at its end what it did."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from sqlkrp.summaries.lines import aligned

__all__ = ["PASSING", "progress_bar", "say", "say_error"]

# Seconds of a statement from which on it is shown how far it is.
_PATIENCE = 1.0


class _PassingLine:
    """A line on standard error that gives way: to the next one, or to what is said for good."""

    _is_shown = False

    def show(self, line: str) -> None:
        """Show a line in the place of the last one."""
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        self._is_shown = True

    def clear(self) -> None:
        """Take away the line that is shown, if there is one."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._is_shown = False


PASSING = _PassingLine()


def say_error(line: str) -> None:
    """Print a line on standard error, and nothing else in it."""
    PASSING.clear()
    print(line, file=sys.stderr, flush=True)


def say(given: argparse.Namespace, pairs: Sequence[tuple[str, str]]) -> None:
    """Print what was done as lines of label and text, unless it is to be quiet."""
    if not given.quiet:
        PASSING.clear()
        # Features on standard output must not be mixed with words.
        stream = sys.stderr if getattr(given, "to", None) == "-" else sys.stdout
        print("\n".join(aligned(pairs)), file=stream)


def progress_bar() -> Callable[[float], None]:
    """A bar on standard error for statements that take longer than a second."""
    started = time.monotonic()

    def show(share: float) -> None:
        nonlocal started
        if share >= 1:
            PASSING.clear()
            started = time.monotonic()
        elif time.monotonic() - started > _PATIENCE:
            filled = int(30 * share)
            PASSING.show(f"  {share:4.0%} {'#' * filled}{'.' * (30 - filled)}")

    return show
