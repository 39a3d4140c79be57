"""What each stage computes in NumPy: the twin of the SQL.

Values stand as (value, row): what all rows have of one value lies side by side, so that a stage
takes, adds and multiplies whole pieces of memory. Each function here takes a stage and a dtype. It
returns what takes an array of inputs to one of outputs, and leaves the inputs as they are; what
that needs of the stage's tables is made once, for however many chunks of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sqlkrp.stages import closing
from sqlkrp.stages.prepare import Prepare, prepared
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts
from sqlkrp.stages.stage import Array

__all__ = [
    "SLAB_VALUES",
    "Values",
    "butterflies",
    "distances",
    "elementwise",
    "linear",
    "of_rows",
    "preparing",
    "sum_of_products",
]

Values = Callable[[Array], Array]

# Bounds the working memory: of a matrix, a slab of outputs at a time.
SLAB_VALUES = 4_000_000


def preparing(stage: Prepare, dtype: Any) -> Values:
    """From columns as they are to prepared inputs, in the stage's own dtype."""
    return lambda X: prepared(stage, X)


def linear(stage: Linear, dtype: Any) -> Values:
    """Sums of inputs, or a pick of them, and a constant each."""
    summed = _picked(stage, dtype) if stage.picks else _summed(stage, dtype)
    if stage.constant is None:
        return summed
    constant = _column(stage.constant, dtype)

    def compute(X: Array) -> Array:
        values = summed(X)
        values += constant
        return values

    return compute


def _column(numbers: Array, dtype: Any) -> Array:
    """A number for each value, in all rows."""
    return numbers.astype(dtype)[:, None]


def _picked(stage: Linear, dtype: Any) -> Values:
    factor = _column(stage.value, dtype)
    if np.array_equal(stage.input, np.arange(stage.n_inputs)):
        return lambda X: X * factor
    return lambda X: X.take(stage.input, axis=0) * factor


def _summed(stage: Linear, dtype: Any) -> Values:
    # Products of matrices also multiply by the zeros, which is harmless: a NaN here always marks a
    # whole row (policy "propagate").
    fits = stage.n_sums * stage.n_inputs <= SLAB_VALUES
    kept = list(_slabs(stage, dtype)) if fits else None

    def compute(X: Array) -> Array:
        out = np.empty((stage.n_sums, X.shape[1]), dtype=dtype)
        for outputs, matrix in kept or _slabs(stage, dtype):
            np.matmul(matrix, X, out=out[outputs])
        return out

    return compute


def _slabs(stage: Linear, dtype: Any) -> Iterator[tuple[slice, Array]]:
    """Its weights as matrices, each of a slab of outputs."""
    size = max(1, SLAB_VALUES // max(1, stage.n_inputs))
    for first in range(0, stage.n_sums, size):
        last = min(first + size, stage.n_sums)
        entries = slice(stage.starts[first], stage.starts[last])
        matrix = np.zeros((last - first, stage.n_inputs), dtype=dtype)
        matrix[stage.output[entries] - first, stage.input[entries]] = stage.value[entries]
        yield slice(first, last), matrix


def butterflies(stage: Butterflies, dtype: Any) -> Values:
    """Hadamard sums: pairs of halves are added and subtracted, which doubles what is summed."""
    place, sign = stage.place.ravel(), _column(stage.sign.ravel(), dtype)

    def compute(X: Array) -> Array:
        # What holds padding only (place -1) is 0, but not where a NaN marks the whole row.
        padding = np.where(np.isnan(X).all(axis=0), np.nan, 0).astype(dtype)
        values = np.concatenate([X, padding[None]]).take(place, axis=0)
        values *= sign
        half = 1
        while half < stage.outputs_a_row:
            pairs = values.reshape(-1, 2, half, X.shape[1])
            first, second = pairs[:, 0], pairs[:, 1]
            difference = first - second
            first += second
            second[:] = difference
            half *= 2
        return values

    return compute


def sum_of_products(stage: SumOfProducts, dtype: Any) -> Values:
    """Sums over terms, with signs, of products of inputs."""
    # (term, factor, component)
    factors = np.ascontiguousarray(stage.factors.transpose(1, 2, 0), dtype=np.intp)
    # The sign of a term is that of its first factor: a copy of the inputs has the other one.
    minus = stage.sign.T < 0
    factors[:, 0] += stage.n_inputs * minus
    has_minus = bool(minus.any())

    def compute(X: Array) -> Array:
        X = _with(X, has_minus, stage.is_ragged)
        total = _product(X, factors[0])
        for places in factors[1:]:
            total += _product(X, places)
        return total

    return compute


def _product(X: Array, places: Array) -> Array:
    """Products of the inputs at places (factor, component)."""
    product: Array = X.take(places[0], axis=0)
    for place in places[1:]:
        product *= X.take(place, axis=0)
    return product


def _with(X: Array, negative: bool, one: bool) -> Array:
    """Inputs, and behind them their negatives, and ones for a factor that is not there (-1)."""
    more = [-X] if negative else []
    more += [np.ones((1, X.shape[1]), dtype=X.dtype)] if one else []
    # In one piece, of which it is quicker to take parts.
    return np.concatenate([X, *more]) if more else np.ascontiguousarray(X)


def distances(stage: Distances, dtype: Any) -> Values:
    """Squared distances to points, over the inputs that each reads."""
    coordinates = stage.value.astype(dtype)
    entries = [slice(*ends) for ends in zip(stage.starts[:-1], stage.starts[1:], strict=True)]

    def compute(X: Array) -> Array:
        out = np.empty((stage.n_sums, X.shape[1]), dtype=dtype)
        for point, read in enumerate(entries):
            difference = X[stage.input[read]] - coordinates[read, None]
            np.einsum("ij,ij->j", difference, difference, out=out[point])
        return out

    return compute


def _sign(X: Array) -> Array:
    signs: Array = np.where(np.isnan(X), X, np.where(X >= 0, 1.0, -1.0)).astype(X.dtype)
    return signs


_FUNCTIONS: dict[str, Values] = {
    "cos": np.cos,
    "exp": np.exp,
    "sign": _sign,
    "sigmoid": closing.sigmoid,
}


def elementwise(stage: Elementwise, dtype: Any) -> Values:
    """A function of each input."""
    return _FUNCTIONS[stage.function]


def of_rows(values: Callable[[Any, Array], Array]) -> Callable[[Any, Any], Values]:
    """What is said of a row's few last values, from a function of arrays (row, value)."""
    return lambda stage, dtype: lambda X: values(stage, np.ascontiguousarray(X.T)).T
