"""Projections <x, r> on a pool of hyperplanes: signed sums, butterflies, weighted sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sqlkrp.stages import base
from sqlkrp.stages.base import (
    Array,
    Stage,
    Table,
    alike,
    all_inputs,
    first_inputs,
    require,
    require_counts,
    require_indices,
    require_range,
)

__all__ = [
    "Butterflies",
    "Distances",
    "Projection",
    "SignedSums",
    "WeightedSums",
    "hadamard_matrix",
]


class Projection(Stage):
    """A stage whose outputs are <x, r> for a pool of hyperplanes r."""

    @property
    def n_all_zero(self) -> int:
        """How many hyperplanes are all zero."""
        raise NotImplementedError

    @property
    def n_nonzero(self) -> int:
        """Nonzero entries of all hyperplanes."""
        raise NotImplementedError

    def _pool_table(self) -> Table:
        """One row for each hyperplane; an all-zero one has no row of its own elsewhere."""
        return {"hyperplane": np.arange(self.n_outputs, dtype=np.int32)}


@dataclass(frozen=True, eq=False)
class SignedSums(Projection):
    """Each output is a sum of inputs with signs: sum over an index/sign table, no multiplication.

    The table is sorted by output; an output without entries is the constant 0.
    """

    n_inputs: int
    n_sums: int
    hyperplane: Array
    feature: Array
    sign: Array

    def __post_init__(self) -> None:
        sizes = {self.hyperplane.shape, self.feature.shape, self.sign.shape}
        require(len(sizes) == 1 and self.sign.ndim == 1, "the index/sign columns differ in length")
        require_counts(self.n_inputs, self.n_sums)
        require_indices(self.hyperplane, self.n_sums, "hyperplane")
        require_indices(self.feature, self.n_inputs, "feature")
        require(bool(np.isin(self.sign, (-1, 1)).all()), "a sign is neither -1 nor +1")
        place = self.hyperplane.astype("int64") * self.n_inputs + self.feature
        require(bool((np.diff(place) > 0).all()), "entries are out of order, or given twice")

    @property
    def n_outputs(self) -> int:
        return self.n_sums

    @cached_property
    def starts(self) -> Array:
        """Where each output's entries begin; one more at the end."""
        return np.searchsorted(self.hyperplane, np.arange(self.n_sums + 1))

    @property
    def n_all_zero(self) -> int:
        return int(np.count_nonzero(np.diff(self.starts) == 0))

    @property
    def n_nonzero(self) -> int:
        return len(self.sign)

    @property
    def additions(self) -> int:
        return self.n_nonzero - (self.n_sums - self.n_all_zero)

    def magnitude(self, largest: Array) -> Array:
        return largest * int(np.diff(self.starts).max(initial=0))

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        sizes = replace(self, sign=np.abs(self.sign))
        return sizes.apply(errors + eps * math.sqrt(self.n_inputs) * np.abs(X))

    def apply(self, X: Array) -> Array:
        # One matrix product a slab of hyperplanes. It also multiplies by the zeros, which is
        # harmless: a NaN here always marks a whole row (policy "propagate").
        out = np.empty((len(X), self.n_sums), dtype=X.dtype)
        slab = max(1, base.SLAB_VALUES // max(1, self.n_inputs))
        for first in range(0, self.n_sums, slab):
            last = min(first + slab, self.n_sums)
            entries = slice(self.starts[first], self.starts[last])
            matrix = np.zeros((last - first, self.n_inputs), dtype=X.dtype)
            matrix[self.hyperplane[entries] - first, self.feature[entries]] = self.sign[entries]
            out[:, first:last] = X @ matrix.T
        return out

    def tables(self) -> dict[str, Table]:
        return {
            "hyperplanes": {
                "hyperplane": self.hyperplane.astype(np.int32),
                "feature": self.feature.astype(np.int32),
                "sign": self.sign.astype(np.int8),
            },
            "pool": self._pool_table(),
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        of_them = np.isin(self.hyperplane, outputs)
        hyperplane = np.searchsorted(outputs, self.hyperplane[of_them]).astype("i4")
        table = hyperplane, self.feature[of_them], self.sign[of_them]
        left = SignedSums(self.n_inputs, len(outputs), *table)
        return left, outputs, np.unique(left.feature)

    def reading(self, inputs: Array) -> Stage:
        feature = np.searchsorted(inputs, self.feature).astype("i4")
        return replace(self, n_inputs=len(inputs), feature=feature)

    def beside(self, others: Sequence[Stage], *, shared: bool) -> Stage:
        stages = alike(SignedSums, self, others)
        firsts = first_inputs(stages, shared=shared)
        before = np.cumsum([0, *(stage.n_sums for stage in stages)]).tolist()
        hyperplanes = zip(stages, before[:-1], strict=True)
        return SignedSums(
            all_inputs(stages, shared=shared),
            before[-1],
            np.concatenate([one.hyperplane + n for one, n in hyperplanes]).astype("i4"),
            np.concatenate(
                [one.feature + first for one, first in zip(stages, firsts, strict=True)]
            ).astype("i4"),
            np.concatenate([stage.sign for stage in stages]),
        )


@dataclass(frozen=True, eq=False)
class Butterflies(Projection):
    """The same as :class:`SignedSums` of a Hadamard pool, in m log2 m additions a chunk.

    Block b puts the signed inputs on places; each chunk of m places is transformed by the
    Hadamard matrix H_m. Output ``b * places + q * m + a`` is sum_i H_m[a, i] * sign * input at
    place i of chunk q.
    """

    n_inputs: int
    block_size: int
    place_column: Array
    place_sign: Array

    def __post_init__(self) -> None:
        size = self.block_size
        require_counts(self.n_inputs, size)
        require(size >= 1 and size & (size - 1) == 0, f"block size {size} is no power of two")
        require(self.place_column.ndim == 2, "the places of a block are not a table")
        require(self.place_column.shape == self.place_sign.shape, "places and signs differ")
        require(self.place_column.shape[1] % size == 0, "a block is not a whole number of chunks")
        require_indices(self.place_column + 1, self.n_inputs + 1, "place")
        require(bool(np.isin(self.place_sign, (-1, 1)).all()), "a sign is neither -1 nor +1")

    @property
    def n_outputs(self) -> int:
        return int(self.place_column.size)

    @cached_property
    def signed_sums(self) -> SignedSums:
        """The index/sign table of the same hyperplanes."""
        size = self.block_size
        column = self.place_column.reshape(-1, 1, size)
        sign = self.place_sign.reshape(-1, 1, size)
        signs = hadamard_matrix(size)[None] * sign
        columns = np.broadcast_to(column, signs.shape).reshape(-1, size)
        signs = signs.reshape(-1, size)
        order = np.argsort(columns, axis=1, kind="stable")
        columns = np.take_along_axis(columns, order, axis=1)
        signs = np.take_along_axis(signs, order, axis=1)
        hyperplane, place = np.nonzero(columns >= 0)
        return SignedSums(
            n_inputs=self.n_inputs,
            n_sums=self.n_outputs,
            hyperplane=hyperplane.astype("i4"),
            feature=columns[hyperplane, place].astype("i4"),
            sign=signs[hyperplane, place].astype("i1"),
        )

    @property
    def n_all_zero(self) -> int:
        return self.signed_sums.n_all_zero

    @property
    def n_nonzero(self) -> int:
        return self.signed_sums.n_nonzero

    @property
    def additions(self) -> int:
        # A butterfly adds only where both of its inputs hold something; padding costs nothing.
        full = (self.place_column >= 0).reshape(-1, self.block_size)
        count, half = 0, 1
        while half < self.block_size:
            pair = full.reshape(len(full), -1, 2, half)
            both = pair[:, :, 0] & pair[:, :, 1]
            either = pair[:, :, 0] | pair[:, :, 1]
            count += 2 * int(both.sum())
            full = np.stack([either, either], axis=2).reshape(len(full), -1)
            half *= 2
        return count

    def magnitude(self, largest: Array) -> Array:
        return largest * min(self.block_size, self.n_inputs)

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        each = errors + eps * self.block_size.bit_length() * np.abs(X)
        padded = np.column_stack([each, np.zeros(len(X))])
        chunks = padded[:, self.place_column.ravel()].reshape(len(X), -1, self.block_size)
        return np.repeat(chunks.sum(axis=2), self.block_size, axis=1)

    def apply(self, X: Array) -> Array:
        # What holds padding only is 0, but not where a NaN marks the whole row.
        padding = np.where(np.isnan(X).all(axis=1), np.nan, 0).astype(X.dtype)
        padded = np.column_stack([X, padding])
        values = padded[:, self.place_column.ravel()] * self.place_sign.ravel().astype(X.dtype)
        half = 1
        while half < self.block_size:
            pair = values.reshape(len(X), -1, 2, half)
            values = np.stack(
                [pair[:, :, 0] + pair[:, :, 1], pair[:, :, 0] - pair[:, :, 1]], axis=2
            )
            half *= 2
        outputs: Array = values.reshape(len(X), -1)
        return outputs

    def tables(self) -> dict[str, Table]:
        return self.signed_sums.tables()

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        # The hyperplanes of a chunk come together. Chunks are rows of one block here.
        size = self.block_size
        chunks = np.unique(outputs // size)
        left = replace(
            self,
            place_column=self.place_column.reshape(-1, size)[chunks].reshape(1, -1),
            place_sign=self.place_sign.reshape(-1, size)[chunks].reshape(1, -1),
        )
        columns = np.unique(left.place_column)
        kept = (chunks[:, None] * size + np.arange(size)).ravel()
        return left, kept, columns[columns >= 0]

    def reading(self, inputs: Array) -> Stage:
        column = np.searchsorted(inputs, self.place_column)
        column[self.place_column < 0] = -1
        return replace(
            self, n_inputs=len(inputs), place_column=column.astype(self.place_column.dtype)
        )

    def beside(self, others: Sequence[Stage], *, shared: bool) -> Stage:
        stages = alike(Butterflies, self, others)
        shapes = {(stage.block_size, stage.place_column.shape[1]) for stage in stages}
        require(len(shapes) == 1, "blocks beside each other differ in size")
        firsts = first_inputs(stages, shared=shared)
        columns = [
            np.where(stage.place_column < 0, -1, stage.place_column + first)
            for stage, first in zip(stages, firsts, strict=True)
        ]
        signs = np.concatenate([stage.place_sign for stage in stages])
        n_inputs = all_inputs(stages, shared=shared)
        return Butterflies(n_inputs, self.block_size, np.concatenate(columns).astype("i4"), signs)


@dataclass(frozen=True, eq=False)
class WeightedSums(Projection):
    """Each output is a weighted sum of all inputs: the fallback, which multiplies."""

    weights: Array
    n_inputs: int = field(init=False)

    def __post_init__(self) -> None:
        require(self.weights.ndim == 2, "the weights are not a matrix")
        require_range(bool(np.isfinite(self.weights).all()), "a weight is not a finite number")
        object.__setattr__(self, "n_inputs", self.weights.shape[1])

    @property
    def n_outputs(self) -> int:
        return len(self.weights)

    @property
    def n_all_zero(self) -> int:
        return int(np.count_nonzero(~self.weights.any(axis=1)))

    @property
    def n_nonzero(self) -> int:
        return int(np.count_nonzero(self.weights))

    @property
    def additions(self) -> int:
        return self.n_nonzero - (self.n_outputs - self.n_all_zero)

    @property
    def products(self) -> int:
        return self.n_nonzero

    def magnitude(self, largest: Array) -> Array:
        return largest * float(np.abs(self.weights).sum(axis=1, dtype="float64").max(initial=0))

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        # One more: a weight is rounded to the dtype.
        each = errors + eps * (1 + math.sqrt(self.n_inputs)) * np.abs(X)
        found: Array = each @ np.abs(self.weights).T.astype("float64")
        return found

    def apply(self, X: Array) -> Array:
        sums: Array = X @ self.weights.T.astype(X.dtype)
        return sums

    def tables(self) -> dict[str, Table]:
        hyperplane, feature = np.nonzero(self.weights)
        return {
            "hyperplanes": {
                "hyperplane": hyperplane.astype(np.int32),
                "feature": feature.astype(np.int32),
                "weight": self.weights[hyperplane, feature].astype(np.float64),
            },
            "pool": self._pool_table(),
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        weights = self.weights[outputs]
        return WeightedSums(weights), outputs, np.flatnonzero(weights.any(axis=0))

    def reading(self, inputs: Array) -> Stage:
        return WeightedSums(self.weights[:, inputs])

    def beside(self, others: Sequence[Stage], *, shared: bool) -> Stage:
        stages = alike(WeightedSums, self, others)
        weights = np.zeros(
            (sum(stage.n_outputs for stage in stages), all_inputs(stages, shared=shared)),
            dtype=np.result_type(*(stage.weights for stage in stages)),
        )
        row = 0
        for stage, first in zip(stages, first_inputs(stages, shared=shared), strict=True):
            block = slice(row, row + stage.n_outputs), slice(first, first + stage.n_inputs)
            weights[block] = stage.weights
            row += stage.n_outputs
        return WeightedSums(weights)


@dataclass(frozen=True, eq=False)
class Distances(Stage):
    """Each output is the squared distance of a row to a point: sum over columns (x - point)^2.

    A coordinate that is NaN is no coordinate: the point does not read that input.
    """

    points: Array
    n_inputs: int = field(init=False)

    def __post_init__(self) -> None:
        require(self.points.ndim == 2, "the points are not a table")
        require_range(not np.isinf(self.points).any(), "a point has a coordinate that is no number")
        require(not np.isnan(self.points).all(axis=1).any(), "a point has no coordinate")
        object.__setattr__(self, "n_inputs", self.points.shape[1])

    @property
    def n_outputs(self) -> int:
        return len(self.points)

    @property
    def additions(self) -> int:
        return 2 * self.products - self.n_outputs

    @property
    def products(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.points)))

    def magnitude(self, largest: Array) -> Array:
        farthest = np.abs(np.nan_to_num(self.points)).max(initial=0)
        bound: Array = (largest + farthest) ** 2 * self.n_inputs
        return bound

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        found = np.empty((len(X), self.n_outputs))
        for i, point in enumerate(self.points.astype("float64")):
            read = ~np.isnan(point)
            far = np.abs(X[:, read] - point[read])
            each = errors[:, read] + eps * np.abs(point[read])
            found[:, i] = (2 * far * each + each**2).sum(axis=1)
            found[:, i] += eps * (2 + math.sqrt(self.n_inputs)) * (far**2).sum(axis=1)
        return found

    def apply(self, X: Array) -> Array:
        out = np.empty((len(X), self.n_outputs), dtype=X.dtype)
        for i, point in enumerate(self.points.astype(X.dtype)):
            read = ~np.isnan(point)
            difference = X[:, read] - point[read]
            out[:, i] = np.einsum("ij,ij->i", difference, difference)
        return out

    def tables(self) -> dict[str, Table]:
        point, feature = np.nonzero(~np.isnan(self.points))
        return {
            "points": {
                "point": point.astype(np.int32),
                "feature": feature.astype(np.int32),
                "coordinate": self.points[point, feature].astype(np.float64),
            }
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        points = self.points[outputs]
        return Distances(points), outputs, np.flatnonzero(~np.isnan(points).all(axis=0))

    def reading(self, inputs: Array) -> Stage:
        return Distances(self.points[:, inputs])

    def beside(self, others: Sequence[Stage], *, shared: bool) -> Stage:
        stages = alike(Distances, self, others)
        points = np.full(
            (sum(stage.n_outputs for stage in stages), all_inputs(stages, shared=shared)), np.nan
        )
        row = 0
        for stage, first in zip(stages, first_inputs(stages, shared=shared), strict=True):
            block = slice(row, row + stage.n_outputs), slice(first, first + stage.n_inputs)
            points[block] = stage.points
            row += stage.n_outputs
        return Distances(points)


def hadamard_matrix(size: int) -> NDArray[np.int8]:
    """The Sylvester Hadamard matrix: H[a, i] = (-1)^(number of bits set in both a and i)."""
    matrix = np.ones((1, 1), dtype=np.int8)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix
