"""What parameters come to that are ``"auto"``: scaling by units, bounds, gamma by spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.source import Inputs, Statistics
from sqlkrp.stages import Linear, SumOfProducts

__all__ = ["Seen", "SeenColumns", "SeenFeatures", "Taken", "gamma_of"]

# Columns are of one unit if so many of them reach such a share of the largest absolute value.
_ALIKE_COLUMNS, _ALIKE_SHARE = 0.9, 0.25
# Squares of columns that lie further from 0 than this, beside their spread, are a kernel of means.
_FAR_FROM_ZERO = 10
# Standard deviations: 3, 4, 5 and the quantiles of .5 % differ little.
_CLIP = 3.0
# Of a total variance, so that kernels of it stay inside the range of single precision.
_LEAST = 1e-36


@dataclass(frozen=True)
class Taken:
    """A value that was taken for ``"auto"``, and why."""

    value: Any
    because: str


class Seen(Protocol):
    """What a map reads, as far as it was looked at."""

    @property
    def count(self) -> int:
        """How many inputs there are."""

    def scaling(self) -> Taken:
        """How these inputs are scaled."""

    def clip(self, scaling: str | None) -> Taken:
        """How many standard deviations they are held within."""

    def deviation(self, scaling: str | None) -> NDArray[np.float64] | None:
        """The standard deviation of each input, scaled so; None if only names are known."""


@dataclass(frozen=True)
class SeenColumns:
    """The columns of a source, with what they hold if that was read."""

    columns: Sequence[str]
    moments: Statistics | None
    is_sparse: bool = False

    @property
    def count(self) -> int:
        return len(self.columns)

    def scaling(self) -> Taken:
        if self.moments is None:
            return Taken(None, "only names are known")
        if self.is_sparse:
            return Taken(None, "rows are sparse")
        return _scaling_of(self.columns, self.moments)

    def clip(self, scaling: str | None) -> Taken:
        if self.moments is None or scaling != "standard":
            return Taken(None, "columns are not standardised")
        reach = _CLIP * self.moments.std
        mean = self.moments.mean
        beyond = (self.moments.min < mean - reach) | (self.moments.max > mean + reach)
        count = int(np.count_nonzero(beyond & ~self.moments.indicates & self.moments.varies))
        have = "has" if 1 in (count, self.count) else "have"
        return Taken(_CLIP, f"{count:,} of {counted(self.count, 'column')} {have} values beyond")

    def deviation(self, scaling: str | None) -> NDArray[np.float64] | None:
        return None if self.moments is None else _prepared_deviation(self.moments, scaling)


@dataclass(frozen=True)
class SeenFeatures:
    """The features of another map, which are read only if a parameter asks for it."""

    inputs: Inputs

    @property
    def count(self) -> int:
        return self.inputs.count

    def scaling(self) -> Taken:
        return Taken(None, "features of another map are of one unit")

    def clip(self, scaling: str | None) -> Taken:
        return Taken(None, "features of another map are not held")

    def deviation(self, scaling: str | None) -> NDArray[np.float64] | None:
        if not self.inputs.source.has_values:
            return None
        _, variance = self.moments()
        return np.sign(variance) if scaling == "standard" else np.sqrt(variance)

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean and the variance of each feature, in two looks: the exact way."""
        d = self.count
        mean = self.inputs.means()
        squares = SumOfProducts.squares(d)
        return mean, self.inputs.means(Linear.scaled(d, 1.0, -mean), squares)


def gamma_of(seen: Seen, scaling: str | None, power: int) -> Taken:
    """One over the sum of the inputs' deviations to a power: of squares, their total variance."""
    if scaling == "unit":
        return Taken(1.0, "rows are of length 1")
    deviation = seen.deviation(scaling)
    of_columns = counted(seen.count, "column")
    if deviation is None:
        return Taken(_short(1 / seen.count), f"1 over {of_columns}")
    if not deviation.any():
        return Taken(_short(1 / seen.count), f"1 over {of_columns}: nothing varies")
    with np.errstate(over="ignore", under="ignore"):
        total = float(np.sum(deviation**power))
    if not _LEAST < total < 1 / _LEAST:
        raise ColumnError(
            "gamma='auto' is 1 over the columns' total variance, which is too large or too small "
            "here: use scaling='standard', give a gamma, or rescale the columns in a view"
        )
    what = "total variance" if power == 2 else "sum of deviations"
    return Taken(_short(1 / total), f"1 over the {what} of {of_columns}")


def _short(number: float) -> float:
    """So many digits as a person reads, and as do not depend on the order of sums."""
    return float(f"{number:.6g}")


def _prepared_deviation(moments: Statistics, scaling: str | None) -> NDArray[np.float64]:
    """The standard deviation of each column behind its scaling, before any is held."""
    deviation = np.where(moments.varies, moments.std, 0.0)
    if scaling == "standard":
        return np.where(moments.indicates, deviation, np.sign(deviation))
    if scaling == "minmax":
        spread = np.where(moments.varies, moments.max - moments.min, 1.0)
        return deviation / spread
    return deviation


def _scaling_of(columns: Sequence[str], moments: Statistics) -> Taken:
    """``"standard"`` for a table whose columns are of different units, else None.

    It is about units, not about spread: pixels at the margin vary less than others, and are
    still grey levels.
    """
    numbers = np.flatnonzero(moments.varies & ~moments.indicates)
    if not len(numbers):
        return Taken(None, "no column but of 0 and 1 varies")
    if reason := _of_different_units(columns, moments, numbers):
        return Taken("standard", reason)
    if reason := _far_from_zero(columns, moments, numbers):
        return Taken("standard", reason)
    return Taken(None, "columns are of one unit")


def _of_different_units(
    columns: Sequence[str], moments: Statistics, numbers: NDArray[np.int64]
) -> str | None:
    size = moments.size[numbers]
    reach = np.append(size, 1.0) if moments.indicates.any() else size
    if np.mean(reach >= _ALIKE_SHARE * reach.max()) >= _ALIKE_COLUMNS:
        return None
    if _are_counts(moments, numbers):
        return None
    largest, smallest = (columns[numbers[place]] for place in (size.argmax(), size.argmin()))
    if largest == smallest:
        return f"{_shown(largest)} reaches {size.max():,.6g}, beside columns of 0 and 1"
    return f"{_shown(largest)} reaches {size.max():,.6g}, {_shown(smallest)} {size.min():,.6g}"


def _are_counts(moments: Statistics, numbers: NDArray[np.int64]) -> bool:
    """Whether they are like counts of words: whole, most columns mostly 0, whatever the maxima."""
    mostly_zero = 2 * moments.zeros[numbers] > moments.count[numbers]
    counts = moments.whole[numbers] & (moments.min[numbers] >= 0)
    return bool(counts.all() and mostly_zero.mean() >= _ALIKE_COLUMNS)


def _far_from_zero(
    columns: Sequence[str], moments: Statistics, numbers: NDArray[np.int64]
) -> str | None:
    mean, deviation = np.abs(moments.mean[numbers]), moments.std[numbers]
    if np.sum(mean**2) <= _FAR_FROM_ZERO * np.sum(deviation**2):
        return None
    place = int((mean / np.maximum(deviation, np.finfo(float).tiny)).argmax())
    return (
        f"{_shown(columns[numbers[place]])} is {moments.mean[numbers[place]]:,.6g} "
        f"± {deviation[place]:,.6g}, far from 0"
    )


def _shown(name: str) -> str:
    return name if name.isprintable() else repr(name)
