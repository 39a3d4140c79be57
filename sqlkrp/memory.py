"""What would take more memory than a run may is refused before it is begun, in one line."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from sqlkrp.errors import LimitError, ParameterError

__all__ = ["ENTRY_BYTES", "bytes_text", "memory_limit", "require_memory"]

#: About what an entry of a table takes while it is drawn and checked: its number, its two places,
#: and the arrays that these are made of.
ENTRY_BYTES = 80

_VARIABLE = "SQLKRP_MEMORY_GB"
_SHARE = 0.5
_UNITS = ((2**30, "GB"), (2**20, "MB"), (2**10, "kB"), (1, "bytes"))
# Where nobody says how much there is.
_USUAL = 8 * 2**30
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_limit() -> float:
    """How many bytes one step of a run may take.

    SQLKRP_MEMORY_GB says it; else it is half of the memory of the machine, or of what its container
    is allowed. That does not depend on what else runs, so that the same is refused every time.
    """
    said = os.environ.get(_VARIABLE)
    if said is None:
        return _SHARE * _there_is(_CGROUPS)
    try:
        limit = float(said) * 2**30
    except ValueError:
        limit = 0.0
    if not limit > 0:
        raise ParameterError(f"{_VARIABLE}={said!r} is no number of gigabytes above 0: give one")
    return limit


def require_memory(needed: float, what: str, cure: str) -> None:
    """Raise LimitError if a step would take more than it may."""
    limit = memory_limit()
    if needed > limit:
        raise LimitError(
            f"{what} would take about {bytes_text(needed)} of memory, and {bytes_text(limit)} are "
            f"allowed: use {cure}, or allow more by {_VARIABLE}"
        )


def bytes_text(count: float) -> str:
    """A number of bytes in the largest unit that there is one of."""
    size, unit = next((pair for pair in _UNITS if count >= pair[0]), _UNITS[-1])
    number = count / size
    # Three digits, and no exponent.
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


@cache
def _there_is(cgroups: tuple[str, ...]) -> int:
    found = [number for path in cgroups if (number := _number_in(path))]
    if hasattr(os, "sysconf"):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(found, default=_USUAL)


def _number_in(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
