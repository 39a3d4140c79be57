"""What a command shows on the console: how far it is, and at its end what it did."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from sqlkrp.summaries.lines import aligned

__all__ = ["progress_bar", "say"]


def say(given: argparse.Namespace, pairs: Sequence[tuple[str, str]]) -> None:
    """Print what was done as lines of label and text, unless it is to be quiet."""
    if not given.quiet:
        # Features on standard output must not be mixed with words.
        stream = sys.stderr if getattr(given, "to", None) == "-" else sys.stdout
        print("\n".join(aligned(pairs)), file=stream)


def progress_bar() -> Callable[[float], None]:
    """A bar on standard error for statements that take longer than a second."""
    started = time.monotonic()
    shown = False

    def show(share: float) -> None:
        nonlocal started, shown
        if share >= 1:
            if shown:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            started, shown = time.monotonic(), False
        elif time.monotonic() - started > 1:
            filled = int(30 * share)
            line = f"  {share:4.0%} {'#' * filled}{'.' * (30 - filled)}"
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
            shown = True

    return show
