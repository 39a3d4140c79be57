"""Sums over rows of features and targets, and ridge regression from these sums alone.

Sums of disjoint rows can be added and subtracted: one for each fold gives every fold's model, and
its error on the rows held out, without a further look at the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ParameterError
from sqlkrp.stages import Array
from sqlkrp.training.definite import Spectrum, factor, solved

__all__ = ["Fit", "Moments", "decisions_of_all", "gram_of", "solve", "squared_error", "sum_of"]


@dataclass(frozen=True, eq=False)
class Fit:
    """A linear model: ``Z @ coef.T + intercept``."""

    penalty: float
    """A row's: what it comes to for all rows is this times their weight."""
    coef: Array
    """A row for each target, in the features' own units."""
    intercept: Array
    conditioned: bool = True
    """False where eigenvalues as small as rounding were left out."""

    def decisions(self, Z: Array) -> Array:
        """A column for each target."""
        result: Array = Z @ self.coef.T + self.intercept
        return result


def decisions_of_all(fits: Sequence[Fit], Z: Array) -> list[Array]:
    """The decisions of each model, by one product for all."""
    together = Z @ np.vstack([one.coef for one in fits]).T
    together += np.concatenate([one.intercept for one in fits])
    return np.split(together, len(fits), axis=1)


@dataclass(eq=False)
class Moments:
    """Weighted sums over rows, of features and targets less their pivots, in double precision.

    A pivot is any number near the middle of a column. Without it, the squares of a column with a
    mean of 10⁸ and a deviation of 1 would have no digits left for the deviation.
    """

    pivot: Array
    target_pivot: Array
    rows: int
    weight: float
    sums: Array
    gram: Array
    cross: Array
    """Of features (rows) with targets (columns)."""
    target_sums: Array
    target_squares: Array

    @classmethod
    def empty(cls, pivot: Array, n_targets: int, target_pivot: Array | None = None) -> Moments:
        """No rows yet."""
        pivot = np.array(pivot, np.float64)
        middle = np.zeros(n_targets) if target_pivot is None else np.array(target_pivot, np.float64)
        k = len(pivot)
        return cls(
            pivot=pivot,
            target_pivot=middle,
            rows=0,
            weight=0.0,
            sums=np.zeros(k),
            gram=np.zeros((k, k)),
            cross=np.zeros((k, n_targets)),
            target_sums=np.zeros(n_targets),
            target_squares=np.zeros(n_targets),
        )

    @property
    def n_features(self) -> int:
        return len(self.pivot)

    @property
    def means(self) -> Array:
        """Of each feature; its pivot, where there are no rows."""
        result: Array = self.pivot + self.sums / self._divisor
        return result

    @property
    def deviations(self) -> Array:
        """Of each feature; 0 where it is constant but for rounding."""
        size = np.diag(self.gram) / self._divisor
        variance = size - (self.sums / self._divisor) ** 2
        # Rounding of the sums, and of the values themselves: a column of .1s, whose mean is not .1.
        eps = float(np.finfo(np.float64).eps)
        constant = variance <= 64 * eps * size + (8 * eps * self.means) ** 2
        result: Array = np.sqrt(np.where(constant, 0.0, variance))
        return result

    @property
    def _divisor(self) -> float:
        return self.weight if self.weight > 0 else 1.0

    def add(self, Z: Array, Y: Array, weights: Array | None = None) -> None:
        """Rows of features and of targets, and how much each row counts."""
        features = np.subtract(Z, self.pivot, dtype=np.float64)
        targets = np.subtract(Y, self.target_pivot, dtype=np.float64)
        self.rows += len(features)
        if weights is None:
            self.weight += len(features)
            self.sums += features.sum(axis=0)
            self.target_sums += targets.sum(axis=0)
        else:
            counts = np.asarray(weights, np.float64)
            self.weight += float(counts.sum())
            self.sums += counts @ features
            self.target_sums += counts @ targets
            roots = np.sqrt(counts)[:, None]
            features *= roots
            targets *= roots
        # Of an array with itself, NumPy has half of the product computed, and the rest mirrored.
        self.gram += features.T @ features
        self.cross += features.T @ targets
        self.target_squares += np.einsum("ij,ij->j", targets, targets)

    def __getstate__(self) -> dict[str, Any]:
        """To be pickled: of the Gram, which is symmetric, one half."""
        return {**vars(self), "gram": self.gram[_half(self.n_features)]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        half, k = _half(self.n_features), self.n_features
        self.gram = np.zeros((k, k))
        self.gram[half] = state["gram"]
        self.gram.T[half] = state["gram"]

    def __iadd__(self, other: Moments) -> Moments:
        self._take(other, 1)
        return self

    def __add__(self, other: Moments) -> Moments:
        return self._with(other, 1)

    def __sub__(self, other: Moments) -> Moments:
        return self._with(other, -1)

    def _with(self, other: Moments, sign: int) -> Moments:
        result = self._copy()
        result._take(other, sign)
        return result

    def _copy(self) -> Moments:
        return self.only(range(self.n_features))

    def _take(self, other: Moments, sign: int) -> None:
        same = np.array_equal(self.pivot, other.pivot)
        if not (same and np.array_equal(self.target_pivot, other.target_pivot)):
            raise ValueError("moments about different pivots have no sum: give all the same pivots")
        self.rows += sign * other.rows
        self.weight += sign * other.weight
        for mine, others in (
            (self.sums, other.sums),
            (self.gram, other.gram),
            (self.cross, other.cross),
            (self.target_sums, other.target_sums),
            (self.target_squares, other.target_squares),
        ):
            # In place: a Gram of 2,000 features is 32 MB.
            (np.add if sign > 0 else np.subtract)(mine, others, out=mine)

    def only(self, places: Sequence[int] | Array) -> Moments:
        """Of some of the features, in this order."""
        kept = np.asarray(places, np.intp)
        return Moments(
            pivot=self.pivot[kept],
            target_pivot=self.target_pivot,
            rows=self.rows,
            weight=self.weight,
            sums=self.sums[kept],
            gram=self.gram[np.ix_(kept, kept)],
            cross=self.cross[kept],
            target_sums=self.target_sums.copy(),
            target_squares=self.target_squares.copy(),
        )


def _half(size: int) -> NDArray[np.bool_]:
    """Where a symmetric matrix has its diagonal, and what is on one side of it."""
    return np.tri(size, dtype=bool)


def gram_of(batches: Iterable[tuple[Array, Array]], label: str) -> Moments:
    """Of rows of features with a label that is a number; rows without one do not count."""
    found: Moments | None = None
    for features, labels in batches:
        if labels.dtype == object:
            raise ParameterError(f"column {label!r} holds texts, and sums are of numbers: cast it")
        there = ~np.isnan(labels)
        if found is None and there.any():
            pivot, middle = features[there].mean(axis=0, dtype="f8"), [labels[there].mean()]
            found = Moments.empty(pivot, 1, np.array(middle))
        if found is not None:
            found.add(features[there], labels[there, None])
    if found is None:
        raise ParameterError(f"no row has a label in {label!r}: there is nothing to sum")
    return found


def sum_of(parts: Sequence[Moments]) -> Moments:
    """The moments of all the rows."""
    result = parts[0]._copy()
    for part in parts[1:]:
        result._take(part, 1)
    return result


def solve(moments: Moments, penalties: Sequence[float], standardise: bool = True) -> list[Fit]:
    """Ridge regression on these rows, for every penalty; intercepts are not penalised.

    A penalty is a row's: scikit-learn's ``Ridge(alpha)`` has ``alpha = penalty * weight``, the sum
    of the rows' weights. So a penalty means the same on a sample as on all rows. With
    ``standardise`` it is of features with deviation 1, as behind a ``StandardScaler``.
    """
    divisor = moments._divisor
    deviations = moments.deviations
    varies = deviations > 0
    # What features are multiplied by, before they are weighted; none of a constant feature is left.
    scale = np.divide(
        1, deviations if standardise else 1, out=np.zeros_like(deviations), where=varies
    )
    offsets, target_offsets = moments.sums / divisor, moments.target_sums / divisor
    system = moments.gram / divisor
    system -= np.outer(offsets, offsets)
    system *= scale
    system *= scale[:, None]
    diagonal = np.einsum("ii->i", system)
    diagonal[~varies] = 1.0
    right = (moments.cross / divisor - np.outer(offsets, target_offsets)) * scale[:, None]
    means = moments.means
    target_means = moments.target_pivot + target_offsets
    spectrum = None
    fits = []
    for penalty in penalties:
        lower = _penalised_factor(system, penalty)
        if lower is not None:
            weights = solved(lower, right)
        else:
            spectrum = spectrum or Spectrum(system)
            weights = spectrum.solved(right, penalty)
        coef = (weights * scale[:, None]).T
        intercept = target_means - coef @ means
        fits.append(Fit(penalty, coef, intercept, lower is not None))
    return fits


def _penalised_factor(system: Array, penalty: float) -> Array | None:
    penalised = system.copy()
    np.einsum("ii->i", penalised)[:] += penalty
    return factor(penalised)


def squared_error(moments: Moments, fit: Fit) -> Array:
    """Of each target the weighted sum of these rows' squared residuals, from their sums alone."""
    divisor = moments._divisor
    offsets, target_offsets = moments.sums / divisor, moments.target_sums / divisor
    coef = fit.coef
    squares = np.einsum("ij,ij->i", coef @ moments.gram, coef) / divisor - (coef @ offsets) ** 2
    products = np.einsum("ij,ji->i", coef, moments.cross) / divisor
    products -= (coef @ offsets) * target_offsets
    spread = moments.target_squares / divisor - target_offsets**2 - 2 * products + squares
    # About the rows' own means: what the residuals have in common is a term of its own.
    common = moments.target_pivot + target_offsets - fit.decisions(moments.means)
    result: Array = moments.weight * np.maximum(spread + common**2, 0.0)
    return result
