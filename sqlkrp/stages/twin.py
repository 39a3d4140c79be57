"""What stages mean in NumPy: the twin that every SQL is proved equal to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sqlkrp.errors import MissingValueError
from sqlkrp.stages.prepare import Prepare, missing_message
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts
from sqlkrp.stages.stage import Array, Stage

__all__ = ["APPLY", "SLAB_VALUES", "apply"]

# Bounds the working memory: a slab of rows (or of outputs) at a time.
SLAB_VALUES = 4_000_000


def apply(stage: Stage, X: Array) -> Array:
    """Rows of inputs to rows of outputs, in the dtype of ``X``."""
    values: Array = APPLY[type(stage)](stage, X)
    return values


def _prepare(stage: Prepare, X: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array(X, dtype=stage.dtype)
        missing = ~np.isfinite(values)
        left_blank = missing.any(axis=1) & (stage.nulls == "propagate")
        _treat_missing(stage, values, missing)
        values[left_blank] = np.nan
        if stage.bounds:
            np.clip(values, *(bound.astype(stage.dtype) for bound in stage.bounds), out=values)
        values -= stage.shift.astype(stage.dtype)
        values *= stage.scale.astype(stage.dtype)
        if stage.unit_length:
            values = _of_length_one(values)
    if stage.constant is not None:
        ones = np.where(left_blank, np.nan, stage.constant)
        values = np.column_stack([values, ones.astype(stage.dtype)])
    return values


def _treat_missing(stage: Prepare, values: Array, missing: Array) -> None:
    if stage.nulls == "error" and missing.any():
        counts = missing.sum(axis=0)
        raise MissingValueError(missing_message(dict(zip(stage.columns, counts, strict=True))))
    if stage.fills:
        np.copyto(values, stage.fill.astype(stage.dtype), where=missing)


def _of_length_one(values: Array) -> Array:
    # In double precision, as squares leave the range of single precision soon.
    wide = values.astype("float64")
    norm = np.sqrt(np.sum(wide * wide, axis=1, keepdims=True)).astype(values.dtype)
    # A row of zeros has no direction: it stays a row of zeros.
    return np.where(norm == 0, values, values / np.where(norm == 0, 1, norm))


def _linear(stage: Linear, X: Array) -> Array:
    if stage.picks:
        values = X[:, stage.input]
        values *= stage.value.astype(X.dtype)
    else:
        values = _sums(stage, X)
    if stage.constant is not None:
        values += stage.constant.astype(X.dtype)
    return values


def _sums(stage: Linear, X: Array) -> Array:
    # One matrix product a slab of outputs. It also multiplies by the zeros, which is harmless: a
    # NaN here always marks a whole row (policy "propagate").
    out = np.empty((len(X), stage.n_sums), dtype=X.dtype)
    slab = max(1, SLAB_VALUES // max(1, stage.n_inputs))
    for first in range(0, stage.n_sums, slab):
        last = min(first + slab, stage.n_sums)
        entries = slice(stage.starts[first], stage.starts[last])
        matrix = np.zeros((last - first, stage.n_inputs), dtype=X.dtype)
        matrix[stage.output[entries] - first, stage.input[entries]] = stage.value[entries]
        out[:, first:last] = X @ matrix.T
    return out


def _butterflies(stage: Butterflies, X: Array) -> Array:
    # What holds padding only is 0, but not where a NaN marks the whole row.
    padding = np.where(np.isnan(X).all(axis=1), np.nan, 0).astype(X.dtype)
    padded = np.column_stack([X, padding])
    values = padded[:, stage.place.ravel()] * stage.sign.ravel().astype(X.dtype)
    half = 1
    while half < stage.outputs_a_row:
        pair = values.reshape(len(X), -1, 2, half)
        values = np.stack([pair[:, :, 0] + pair[:, :, 1], pair[:, :, 0] - pair[:, :, 1]], axis=2)
        half *= 2
    outputs: Array = values.reshape(len(X), -1)
    return outputs


def _sum_of_products(stage: SumOfProducts, X: Array) -> Array:
    total = np.zeros((len(X), stage.n_outputs), dtype=X.dtype)
    for term in range(stage.factors.shape[1]):
        product = X[:, stage.factors[:, term, 0]]
        for factor in range(1, stage.factors.shape[2]):
            place = stage.factors[:, term, factor]
            there = place >= 0
            product[:, there] = product[:, there] * X[:, place[there]]
        total += product * stage.sign[:, term].astype(X.dtype)
    return total


def _distances(stage: Distances, X: Array) -> Array:
    out = np.empty((len(X), stage.n_sums), dtype=X.dtype)
    coordinates = stage.value.astype(X.dtype)
    for point in range(stage.n_sums):
        entries = slice(stage.starts[point], stage.starts[point + 1])
        difference = X[:, stage.input[entries]] - coordinates[entries]
        out[:, point] = np.einsum("ij,ij->i", difference, difference)
    return out


def _sign(X: Array) -> Array:
    signs: Array = np.where(np.isnan(X), X, np.where(X >= 0, 1.0, -1.0)).astype(X.dtype)
    return signs


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {"cos": np.cos, "exp": np.exp, "sign": _sign}


def _elementwise(stage: Elementwise, X: Array) -> Array:
    return _FUNCTIONS[stage.function](X)


APPLY: dict[type[Stage], Callable[[Any, Array], Array]] = {
    Prepare: _prepare,
    Linear: _linear,
    Butterflies: _butterflies,
    SumOfProducts: _sum_of_products,
    Distances: _distances,
    Elementwise: _elementwise,
}
