"""Thresholds: on which side of some of its own values each column is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY

import numpy as np

from sqlkrp.errors import ColumnError
from sqlkrp.maps.allowed import Whole
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import CLIP, SCALING, SingleMap
from sqlkrp.maps.source import Inputs
from sqlkrp.pools import generator
from sqlkrp.stages import Array, Elementwise, Linear, Stage

__all__ = ["Thresholds"]

# Rows that say where a column's values lie; the same ones whatever the seed.
_ROWS, _SEED = 5_000, 0
_MOST = 1_000


@with_parameters
class Thresholds(SingleMap):
    r"""For each column some thresholds, and 1 or -1 for the side that a row is on.

    Thresholds lie at the quantiles of up to 5,000 rows, half way between two values that occur, and
    each is there once: a column of two values has one. A linear model of them is a sum of curves in
    steps, one a column, and it is the same whatever an increasing function has done to a column.
    Nothing is random here.

    Rows differ in the thresholds that lie between them, so |f(x) - f(y)|^2 is four times the
    distance of their ranks, summed over columns: ``chain(Thresholds(), RandomFourier(500))`` has
    features of the kernel exp(-c |rank(x) - rank(y)|_1), which sees interactions as trees do.

    Choose it where columns have long tails, or where the label follows them in bends and jumps.

    References: T. Hastie, R. Tibshirani, "Generalized Additive Models", 1990; for kernels of
    distances by coordinate, A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel
    Machines", NIPS 2007, section 4.
    """

    prefix = "threshold"
    headline = ("n_thresholds",)

    n_thresholds: int = Parameter(
        Whole(1, _MOST), "the most thresholds that a column has"
    ).by_default(10)
    _: KW_ONLY
    # As they are: thresholds are the columns' own.
    scaling: str | None = SCALING.by_default(None)
    clip: float | str | None = CLIP.by_default(None)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        rows = inputs.some_rows(_ROWS, generator(_SEED))
        found = [_thresholds(column, self.n_thresholds) for column in rows.T]
        places = np.repeat(np.arange(inputs.count), [len(one) for one in found])
        if not len(places):
            raise ColumnError(
                f"no column has two values, between which there would be a threshold (n_samples="
                f"{len(rows)}): give rows that differ"
            )
        self._count = len(places)
        beyond = Linear.picked(inputs.count, places, 1.0, -np.concatenate(found))
        return [beyond, Elementwise(len(places), "sign")]

    def names(self, columns: Sequence[str]) -> list[str]:
        return [f"{self.prefix}_{i}" for i in range(self._count)]


def _thresholds(column: Array, most: int) -> Array:
    """At the quantiles, half way between a value and the one before it."""
    values = np.unique(column)
    shares = np.arange(1, most + 1) / (most + 1)
    reached = np.unique(np.quantile(column, shares, method="higher"))
    places = np.searchsorted(values, reached)
    # What would be below all values is put above the least one.
    places = np.unique(np.maximum(places, 1)) if len(values) > 1 else places[:0]
    lower, upper = (values[one].astype("f8") for one in (places - 1, places))
    # A number of the column's own precision: engines compare it in that, or in a higher one.
    half = (lower + (upper - lower) / 2).astype(column.dtype)
    # Between two neighbours there is no number: then the upper one, at which the step is.
    found: Array = np.where(half > lower, half, upper)
    return found
