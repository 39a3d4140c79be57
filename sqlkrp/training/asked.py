"""What may be asked of a training, and what it is where nobody asks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.maps import MAPS, FeatureMap
from sqlkrp.maps.allowed import Number

__all__ = ["FOLDS", "LOGISTIC", "LOSSES", "SAMPLE", "SQUARED_HINGE", "SQUARES", "TEST_SHARE",
           "maps_of", "seconds_of"]  # fmt: skip

SAMPLE, FOLDS, TEST_SHARE = 5_000, 5, 0.2

SQUARES, LOGISTIC, SQUARED_HINGE = LOSSES = ("squares", "logistic", "squared-hinge")

_MAP = "krp"
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds_of(budget: Any) -> float:
    """How many seconds a time has: a number of them, or a text such as ``60s``, ``5m`` or ``1h``.

    >>> seconds_of("1.5m")
    90.0
    """
    if not isinstance(budget, str):
        return float(Number(0).require("budget", budget))
    found = _TIME.fullmatch(budget)
    if not found:
        raise ParameterError(f"budget={budget!r} is no time: give seconds, or 60s, 5m or 1h")
    return float(found[1]) * _SECONDS[found[2]]


def maps_of(kinds: Sequence[str] | None, **own: Iterable[Any] | None) -> list[FeatureMap] | None:
    """A map of each kind for each value of its parameters; None if nothing is asked."""
    if kinds is None and not any(own.values()):
        return None
    found: list[FeatureMap] = []
    taken: set[str] = set()
    for kind in kinds or [_MAP]:
        if kind not in MAPS:
            raise ParameterError(f"map {kind!r} is not allowed: use one of {', '.join(MAPS)}")
        known = MAPS[kind].declared
        taken |= known.keys() & own.keys()
        choices: list[dict[str, Any]] = [{}]
        for name, values in own.items():
            if values is not None and name in known:
                choices = [{**one, name: value} for one in choices for value in values]
        found += [MAPS[kind](**one) for one in choices]
    for name, values in own.items():
        if values is not None and name not in taken:
            first = next(iter(values))
            raise ParameterError(
                f"{name}={first!r} is of none of these maps: {', '.join(kinds or [_MAP])}"
            )
    return found
