"""What fitted transformers do that only select, move and scale columns, read by attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.spelling import near_names
from sqlkrp.stages import Array

__all__ = ["AFFINE", "Affine", "affine_of", "name_of", "not_understood"]


@dataclass(frozen=True)
class Affine:
    """Each output is one input times a scale, plus an offset."""

    n_inputs: int
    places: Array
    """The input of each output."""
    scale: Array
    offset: Array

    @property
    def keeps_names(self) -> bool:
        """Whether each output is the input of its number."""
        same = len(self.places) == self.n_inputs
        return same and bool((self.places == np.arange(self.n_inputs)).all())


def name_of(estimator: Any) -> str:
    """What a thing is called in messages: the name of its class."""
    return estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__


def affine_of(step: Any, count: int) -> Affine:
    """What a step does that gives so many outputs."""
    if step is None or step == "passthrough":
        return _affine(count)
    name = name_of(step)
    if name not in AFFINE:
        raise not_understood(name, "", AFFINE)
    found = AFFINE[name](step)
    if len(found.places) != count:
        raise ParameterError(
            f"the step {name} gives {len(found.places)} columns, and what follows reads {count}"
        )
    return found


def not_understood(name: str, where: str, allowed: Iterable[str]) -> ParameterError:
    """The error of a step that is none of those that are read there."""
    told = f"the step {name} is not understood{where}"
    if name in _MAPS:
        return ParameterError(f"{told}: use {_MAPS[name]} in its place, a map that is read")
    names = list(allowed)
    near = " or ".join(repr(one) for one in near_names(name, names))
    meant = f" (did you mean {near}?)" if near else ""
    return ParameterError(f"{told}{meant}: leave it out, or use one of {', '.join(names)}")


def _affine(count: int, scale: Any = None, offset: Any = None, places: Any = None) -> Affine:
    place = np.arange(count) if places is None else np.asarray(places)
    return Affine(
        count,
        place,
        np.ones(len(place)) if scale is None else np.asarray(scale, dtype="f8"),
        np.zeros(len(place)) if offset is None else np.asarray(offset, dtype="f8"),
    )


def _count(step: Any) -> int:
    if not hasattr(step, "n_features_in_"):
        raise ParameterError(f"this {name_of(step)} is not fitted: fit the whole pipeline first")
    return int(step.n_features_in_)


def _centred(step: Any, centre: str) -> Affine:
    """X less a centre, over a scale; either may be None."""
    count = _count(step)
    middle, spread = getattr(step, centre, None), getattr(step, "scale_", None)
    scale = np.ones(count) if spread is None else 1 / np.asarray(spread, dtype="f8")
    moved = np.zeros(count) if middle is None else np.asarray(middle, dtype="f8")
    return _affine(count, scale, -moved * scale)


def _standard(step: Any) -> Affine:
    middle = "mean_" if getattr(step, "with_mean", True) else ""
    return _centred(step, middle)


def _robust(step: Any) -> Affine:
    return _centred(step, "center_")


def _min_max(step: Any) -> Affine:
    if getattr(step, "clip", False):
        raise ParameterError("MinMaxScaler(clip=True) is not read: leave out clip")
    return _affine(_count(step), step.scale_, step.min_)


def _max_abs(step: Any) -> Affine:
    return _affine(_count(step), 1 / np.asarray(step.scale_, dtype="f8"))


def _selected(step: Any) -> Affine:
    count = _count(step)
    return _affine(count, places=step.get_support(indices=True))


#: The maps that compute what steps of scikit-learn's do.
_MAPS = {"PolynomialFeatures": "sqlkrp.Monomials"}

_SELECTORS = (
    "SelectKBest", "SelectPercentile", "SelectFpr", "SelectFdr", "SelectFwe", "SelectFromModel",
    "VarianceThreshold", "RFE", "RFECV", "SequentialFeatureSelector", "GenericUnivariateSelect",
)  # fmt: skip

#: How each is read.
AFFINE: dict[str, Callable[[Any], Affine]] = {
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    **dict.fromkeys(_SELECTORS, _selected),
}
