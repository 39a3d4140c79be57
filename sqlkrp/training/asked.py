"""What may be asked of a training, and what it is where nobody asks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.maps import MAPS, FeatureMap

__all__ = ["FOLDS", "LOGISTIC", "LOSSES", "SAMPLE", "SQUARED_HINGE", "SQUARES", "TEST_SHARE",
           "maps_of"]  # fmt: skip

SAMPLE, FOLDS, TEST_SHARE = 5_000, 5, 0.2

SQUARES, LOGISTIC, SQUARED_HINGE = LOSSES = ("squares", "logistic", "squared-hinge")

_MAP = "krp"


def maps_of(
    kinds: Sequence[str] | None, degrees: Iterable[int] | None, components: Iterable[int] | None
) -> list[FeatureMap] | None:
    """A map of each kind for each degree and number of features; None if nothing is asked."""
    if kinds is None and degrees is None and components is None:
        return None
    found: list[FeatureMap] = []
    for kind in kinds or [_MAP]:
        if kind not in MAPS:
            raise ParameterError(f"map {kind!r} is not allowed: use one of {', '.join(MAPS)}")
        known = MAPS[kind].declared
        own = {"degree": degrees, "n_components": components}
        choices: list[dict[str, Any]] = [{}]
        for name, values in own.items():
            if values is not None and name in known:
                choices = [{**one, name: value} for one in choices for value in values]
        found += [MAPS[kind](**one) for one in choices]
    return found
