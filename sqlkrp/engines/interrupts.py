"""A Ctrl-C that comes where it may not be heard, and is heard after that."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["COMMITTED", "interrupts_held"]

#: What an interrupt says that came when nothing could be taken back any more.
COMMITTED = "what was asked for was committed before, and is there"


@contextlib.contextmanager
def interrupts_held(told: str = "") -> Iterator[None]:
    """A block that no Ctrl-C interrupts: it is raised at its end, and says what is ``told``.

    A commit that is interrupted may go through all the same, and nobody would know.
    """
    heard: list[tuple[int, Any]] = []
    before = _handlers()
    try:
        for number in before:
            signal.signal(number, lambda *one: heard.append(one))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number, frame in heard[:1]:
        try:
            before[number](number, frame)
        except KeyboardInterrupt as bad:
            raise KeyboardInterrupt(*filter(None, [told])) from bad


def _handlers() -> dict[int, Any]:
    """What hears the signals that end a run; other threads than the first hear none."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    return {number: handler for number, handler in found.items() if callable(handler)}
