"""A Ctrl-C that comes where it may not be heard, and is heard after that; what it finds done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["COMMITTED", "interrupts_held", "note_done", "noted_run", "told_of_interrupt"]

#: What an interrupt says that came when nothing could be taken back any more.
COMMITTED = "what was asked for was committed before, and is there"

# What stays of each run that goes on, whatever becomes of the rest of it: as lines that say so.
_runs: list[list[str]] = []


@contextlib.contextmanager
def interrupts_held(done: str = "") -> Iterator[None]:
    """A block that no Ctrl-C interrupts: it is raised at its end, and says what was ``done``.

    A commit that is interrupted may go through all the same, and nobody would know.
    """
    heard: list[tuple[int, Any]] = []
    before = _handlers()
    try:
        for number in before:
            signal.signal(number, lambda *one: heard.append(one))
        yield
        note_done(done)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number, frame in heard[:1]:
        try:
            before[number](number, frame)
        except KeyboardInterrupt as bad:
            raise KeyboardInterrupt(*filter(None, [done])) from bad


@contextlib.contextmanager
def noted_run() -> Iterator[None]:
    """A run of which it is noted what is done, so that an interrupt in it can say so."""
    _runs.append([])
    try:
        yield
    finally:
        _runs.pop()


def note_done(done: str) -> None:
    """Note for the run that goes on, if there is one, what was done and stays."""
    if done and _runs and done not in _runs[-1]:
        _runs[-1].append(done)


def told_of_interrupt() -> str:
    """What an interrupt finds done in a run."""
    return "; ".join(_runs[-1]) or "nothing was left behind"


def _handlers() -> dict[int, Any]:
    """What hears the signals that end a run; other threads than the first hear none."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    return {number: handler for number, handler in found.items() if callable(handler)}
