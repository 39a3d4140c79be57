"""How far distances and kernels are off: the records, and the same in NumPy.

The distortion of a pair of rows is | |f(x) - f(y)|^2 / |phi(x) - phi(y)|^2 - 1 |, where f are
features, and the true distance is K(x, x) + K(y, y) - 2 K(x, y) (Lopez-Sanchez et al. 2018,
equations 18 and 19).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sqlkrp.display import Shown
from sqlkrp.errors import ColumnError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.variances import Pair
from sqlkrp.stages import Array

__all__ = [
    "QUANTILES",
    "ZERO",
    "Distortion",
    "Draw",
    "Measured",
    "NoDistanceError",
    "Step",
    "deviation_of",
    "draw_of",
    "predicted_of",
    "ranks",
]

#: Shares of the pairs, whose largest distortion is told.
QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
#: A squared distance of less, as a share of the lengths, is that of equal rows but for rounding.
ZERO = 1e-12
# The mean of a normal number's size, over its standard deviation.
_NORMAL = math.sqrt(2 / math.pi)
# More features help if distortion is lower by such a share, and by so many standard errors.
_WORTH, _SURE = 0.05, 2.0


class NoDistanceError(ColumnError):
    """All rows are equal by the kernel, or it has no numbers for them."""


@dataclass(frozen=True)
class Draw:
    """What was measured of one draw of a map, over all pairs of the rows."""

    seed: int
    rows: int
    pairs: int
    zero: int
    """Pairs at distance 0, of which no distortion is measured."""
    mean: float
    """The mean distortion: how far a squared distance is off, as a share of it."""
    std: float
    """The standard deviation of distortions over the pairs."""
    bias: float
    """The mean of what distances are off with their sign: above 0 they are too large."""
    quantiles: dict[float, float]
    """Of the pairs such a share has at most such a distortion."""
    kernel_error: float | None
    """The mean error of the kernel of two rows, without its sign; None where features are of a
    kernel that is centred somewhere."""
    kernel_bias: float | None
    """The same with its sign."""
    frobenius: float | None
    """The relative error of the kernel's matrix, in the Frobenius norm."""

    @classmethod
    def of(
        cls,
        seed: int,
        sums: Sequence[Any],
        at_ranks: Callable[[list[int]], Mapping[int, float]],
        *,
        is_centred: bool,
    ) -> Draw:
        """Of counts and averages over pairs, and of the distortions at some ranks."""
        rows, pairs, apart, mean, square, bias, error, kernel_bias, errors, sizes = sums
        _require_in_range(errors, sizes, apart)
        if not apart:
            raise NoDistanceError(
                f"of {counted(int(rows), 'row')} no two are at a distance by the kernel: there is "
                "nothing to measure; give a table of rows that differ"
            )
        wanted = ranks(int(apart))
        found = at_ranks(wanted)
        values: tuple[float | None, ...] = (None, None, None)
        if not is_centred:
            values = float(error), float(kernel_bias), math.sqrt(errors / sizes)
        return cls(
            seed,
            int(rows),
            int(pairs),
            int(pairs - apart),
            float(mean),
            math.sqrt(max(0.0, square - mean * mean)),
            float(bias),
            {share: float(found[rank]) for share, rank in zip(QUANTILES, wanted, strict=True)},
            *values,
        )


def _require_in_range(errors: Any, sizes: Any, apart: Any) -> None:
    """Raise NoDistanceError where sums of squares, of kernels and of errors, are no numbers."""
    overflows = not all(math.isfinite(one or 0.0) for one in (errors, sizes))
    if overflows or (apart and not sizes):
        raise NoDistanceError(
            "kernels of these rows, or their squares, leave the range of numbers: there is nothing "
            "to measure; draw the map with scaling='standard', or rescale the columns in a view"
        )


def ranks(count: int, shares: Sequence[float] = QUANTILES) -> list[int]:
    """The rank of each quantile among so many numbers: the least that so many are not above."""
    return [max(1, math.ceil(share * count - 1e-9)) for share in shares]


def predicted_of(deviation: float | None) -> float | None:
    """The mean distortion of estimates that deviate so from their distances, if that is known.

    As of a normal number, which sums of many nearly are. What deviates by more than the distance
    itself is none, as no estimate is below 0.
    """
    return _NORMAL * deviation if deviation is not None and deviation <= 1 else None


def deviation_of(variance: Callable[[Pair], Any], sums: Array, exact: Array) -> float | None:
    """The mean over pairs of the deviation that theory has, where it has a variance."""
    first, second = np.triu_indices(len(exact), 1)
    own, kernels = np.diag(sums), np.diag(exact)
    lengths, shared = kernels[first] + kernels[second], exact[first, second]
    there = lengths - 2 * shared > ZERO * lengths
    columns = own[first], own[second], sums[first, second], kernels[first], kernels[second], shared
    with np.errstate(over="ignore", invalid="ignore"):  # of high degrees
        found = variance(Pair(*(column[there] for column in columns)))
        return None if found is None else float(np.sqrt(np.maximum(found, 0)).mean())


def draw_of(seed: int, features: Array, exact: Array, *, is_centred: bool) -> Draw:
    """The same in NumPy: of features of rows, and the kernel of each with each."""
    with np.errstate(all="ignore"):  # what leaves the range of numbers is told in words
        return _draw_of(seed, features.astype("float64"), exact, is_centred=is_centred)


def _draw_of(seed: int, features: Array, exact: Array, *, is_centred: bool) -> Draw:
    estimated = features @ features.T
    first, second = np.triu_indices(len(exact), 1)
    lengths = np.diag(exact)[first] + np.diag(exact)[second]
    true = lengths - 2 * exact[first, second]
    apart = true > ZERO * lengths
    diagonal = np.diag(estimated)
    found = diagonal[first] + diagonal[second] - 2 * estimated[first, second]
    off = found[apart] / true[apart] - 1
    sizes, errors = np.sort(np.abs(off)), estimated - exact
    pairs = errors[first, second]
    sums = (
        len(exact), len(true), len(off), *_means(sizes, off * off, off, np.abs(pairs), pairs),
        np.sum(errors**2), np.sum(exact**2),
    )  # fmt: skip
    return Draw.of(
        seed, sums, lambda places: {at: sizes[at - 1] for at in places}, is_centred=is_centred
    )


def _means(*values: Array) -> list[float]:
    return [float(one.mean()) if len(one) else 0.0 for one in values]


@dataclass(frozen=True)
class Step:
    """Draws with another number of features."""

    components: int
    draws: tuple[Draw, ...]

    @property
    def mean(self) -> float:
        """The mean distortion over the draws."""
        return _mean([draw.mean for draw in self.draws])

    @property
    def std(self) -> float:
        """Its standard deviation over the draws."""
        return _std([draw.mean for draw in self.draws])

    @property
    def floor(self) -> float:
        """What a random projection from the kernel's feature space itself comes to."""
        return 2 / math.sqrt(math.pi * self.components)


@dataclass(frozen=True)
class Measured(Step):
    """What was measured of a map: in hand, the first of the draws, and of others like it."""

    title: str
    digest: str
    kernel: str
    """The kernel that it claims, of its columns as they are prepared."""
    predicted: float | None
    """The mean distortion that theory has for draws of this map on these rows, where it has one."""
    curve: tuple[Step, ...]

    def average(self, name: str) -> float | None:
        """A number of each draw, on average over the draws."""
        values = [getattr(draw, name) for draw in self.draws]
        return None if None in values else _mean(values)

    def quantile(self, share: float) -> float:
        """Such a quantile of distortions, on average over the draws."""
        return _mean([draw.quantiles[share] for draw in self.draws])

    @property
    def enough(self) -> int | None:
        """The number of features from which no more of the curve's are better by 5 % and surely.

        None where there is no curve, or where more would still help.
        """
        for place, step in enumerate(self.curve[:-1]):
            if not any(_is_better(later, step) for later in self.curve[place + 1 :]):
                return step.components
        return None


def _is_better(one: Step, other: Step) -> bool:
    # Draws of the same seed resemble each other, whatever the number of features.
    pairs = zip(one.draws, other.draws, strict=True)
    lower = [right.mean - left.mean for left, right in pairs]
    sure = _SURE * _std(lower) / math.sqrt(max(1, len(lower) - 1))
    return _mean(lower) > max(sure, _WORTH * other.mean)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _std(values: Sequence[float]) -> float:
    middle = _mean(values)
    return math.sqrt(_mean([(value - middle) ** 2 for value in values]))


@dataclass(frozen=True, repr=False)
class Distortion(Shown):
    """How far features of a sample of rows are from their kernels."""

    rows: int
    seed: int
    """That of the sample."""
    maps: tuple[Measured, ...]

    def _facts(self) -> dict[str, Any]:
        means = [round(one.mean, 4) for one in self.maps]
        return {"rows": self.rows, "maps": len(self.maps), "mean": means}

    def _rows(self) -> dict[str, Any]:
        facts = {"rows": self.rows, "seed": self.seed}
        return facts | {
            f"{place}: {one.title}": f"{one.mean:.4f} ± {one.std:.4f} (floor {one.floor:.4f})"
            for place, one in enumerate(self.maps, 1)
        }

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, texts, lists and dicts, as JSON has them."""
        return {"rows": self.rows, "seed": self.seed, "maps": list(map(_as_dict, self.maps))}


def _as_dict(one: Measured) -> dict[str, Any]:
    return {
        "map": one.title,
        "digest": one.digest,
        "kernel": one.kernel,
        **_step_dict(one),
        "predicted": one.predicted,
        **{name: one.average(name) for name in ("bias", "kernel_error", "kernel_bias",
                                                "frobenius")},
        "quantiles": {f"{share:g}": one.quantile(share) for share in QUANTILES},
        "draws": [_draw_dict(draw) for draw in one.draws],
        "curve": [_step_dict(step) for step in one.curve],
        "enough": one.enough,
    }  # fmt: skip


def _step_dict(step: Step) -> dict[str, Any]:
    return {"components": step.components, "runs": len(step.draws), "mean": step.mean,
            "std": step.std, "floor": step.floor}  # fmt: skip


def _draw_dict(draw: Draw) -> dict[str, Any]:
    found = asdict(draw)
    found["quantiles"] = {f"{share:g}": value for share, value in draw.quantiles.items()}
    return found
