"""One run of the command line: its exit code, and what is said of errors and interrupts."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from sqlkrp.cli.console import say_error
from sqlkrp.cli.messages import Speaker, options_of
from sqlkrp.cli.parsing import parser
from sqlkrp.engines.session import STATEMENT
from sqlkrp.errors import ParameterError, SqlkrpError
from sqlkrp.interrupts import noted_run, told_of_interrupt

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 (verify found a difference), or 2 (an error)."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        with warnings.catch_warnings(), noted_run():  # the first puts showwarning back
            return _run_command(arguments)
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _run_command(arguments: Sequence[str] | None) -> int:
    speaker = Speaker()
    warnings.showwarning = speaker.warn
    try:
        if sys.stdout is None:
            raise ParameterError("standard output is closed: redirect it to /dev/null")
        given = parser().parse_args(arguments)
        speaker.options = options_of(given.parsed_by)
        code: int = given.run(given)
        sys.stdout.flush()
        if not given.quiet:
            speaker.advise()
        return code
    except SqlkrpError as bad:
        speaker.say(str(bad))
        return 2
    except BrokenPipeError:
        return _reader_went_away()
    except UnicodeEncodeError as bad:
        return _cannot_be_shown(bad)
    except (OSError, MemoryError) as bad:
        where = f" {bad.filename!r}" if isinstance(bad, OSError) and bad.filename else ""
        what = getattr(bad, "strerror", None) or str(bad) or "out of memory: ask for less"
        speaker.say(f"{what}{where}")
        return 2
    except KeyboardInterrupt:
        return _interrupted()


def _stop(signum: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _interrupted() -> int:
    say_error(f"sqlkrp: interrupted; {told_of_interrupt()}")
    if _a_statement_goes_on():
        os._exit(130)  # it hears no interrupt, and would be waited for
    return 130


def _a_statement_goes_on() -> bool:
    """Whether one still runs a moment after it was interrupted."""
    running = [one for one in threading.enumerate() if one.name == STATEMENT]
    for one in running:
        one.join(1.0)  # its thread ends a little after the statement
    return any(one.is_alive() for one in running)


def _reader_went_away() -> int:
    # As with `| head`: the reader has what it wanted, and Python must not complain at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def _cannot_be_shown(bad: UnicodeEncodeError) -> int:
    told = f"standard output cannot show {bad.object[bad.start]!r} in {bad.encoding}"
    line = f"sqlkrp: {told}: set PYTHONIOENCODING=utf-8"
    say_error(line.encode("ascii", "replace").decode())
    return 2
