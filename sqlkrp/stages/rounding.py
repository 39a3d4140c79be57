"""How far two ways of computing a stage may be apart by rounding alone.

To first order, for numbers that are rounded to a share ``eps`` of themselves. A sum of n terms may
have sqrt(n) times the error of its terms' sizes, however small it comes out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sqlkrp.stages.prepare import Prepare
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts
from sqlkrp.stages.stage import Array, Stage
from sqlkrp.stages.twin import apply

__all__ = ["ROUNDING", "rounding"]


def rounding(stage: Stage, X: Array, errors: Array, eps: float) -> Array:
    """The error of each output, given the inputs (in double precision) and the error of each."""
    found: Array = ROUNDING[type(stage)](stage, X, errors, eps)
    return found


def _prepare(stage: Prepare, X: Array, errors: Array, eps: float) -> Array:
    # Some engines compute in double precision whatever the dtype: the cast counts as well.
    values = np.where(np.isfinite(X), X, stage.fill)
    if stage.bounds:
        values = np.clip(values, *stage.bounds)
    scaled = (values - stage.shift) * stage.scale
    sizes = (np.abs(values) + np.abs(stage.shift)) * np.abs(stage.scale)
    found: Array = eps * (sizes + 2 * np.abs(scaled))
    if stage.unit_length:
        norm = np.sqrt(np.sum(scaled * scaled, axis=1, keepdims=True))
        norm[norm == 0] = 1
        of_norm = np.sqrt(np.sum(found * found, axis=1, keepdims=True)) / norm
        of_norm += eps * math.sqrt(len(stage.columns))
        found = found / norm + np.abs(scaled) / norm * of_norm
    if stage.constant is not None:
        found = np.column_stack([found, np.full(len(found), eps * abs(stage.constant))])
    return found


def _linear(stage: Linear, X: Array, errors: Array, eps: float) -> Array:
    terms = 1 if stage.picks else stage.n_inputs
    # One more where there are weights: each is rounded to the dtype.
    roundings = math.sqrt(terms) + (not stage.is_signed)
    sizes = replace(stage, value=np.abs(stage.value), constant=None)
    found = apply(sizes, errors + eps * roundings * np.abs(X))
    if stage.constant is not None:
        found += eps * np.abs(stage.constant)
    return found


def _butterflies(stage: Butterflies, X: Array, errors: Array, eps: float) -> Array:
    size = stage.outputs_a_row
    each = errors + eps * size.bit_length() * np.abs(X)
    padded = np.column_stack([each, np.zeros(len(X))])
    chunks = padded[:, stage.place.ravel()].reshape(len(X), -1, size)
    return np.repeat(chunks.sum(axis=2), size, axis=1)


def _sum_of_products(stage: SumOfProducts, X: Array, errors: Array, eps: float) -> Array:
    sizes = np.abs(X)
    found = np.zeros((len(X), stage.n_outputs))
    _, terms, degree = stage.factors.shape
    for term in range(terms):
        place = stage.factors[:, term, 0]
        size, error = sizes[:, place], errors[:, place]
        for factor in range(1, degree):
            place = stage.factors[:, term, factor]
            there = place >= 0
            other, its = sizes[:, place[there]], errors[:, place[there]]
            error[:, there] = error[:, there] * (other + its) + size[:, there] * its
            size[:, there] *= other
        found += error + eps * (degree + math.sqrt(terms)) * size
    return found


def _distances(stage: Distances, X: Array, errors: Array, eps: float) -> Array:
    found = np.empty((len(X), stage.n_sums))
    coordinates = stage.value.astype("float64")
    for point in range(stage.n_sums):
        entries = slice(stage.starts[point], stage.starts[point + 1])
        read, coordinate = stage.input[entries], coordinates[entries]
        far = np.abs(X[:, read] - coordinate)
        each = errors[:, read] + eps * np.abs(coordinate)
        found[:, point] = (2 * far * each + each**2).sum(axis=1)
        found[:, point] += eps * (2 + math.sqrt(stage.n_inputs)) * (far**2).sum(axis=1)
    return found


#: How far values of a function may be apart where numbers are apart by so much.
_SPREADS: dict[str, Callable[[Array, Array], Array]] = {
    "cos": lambda X, errors: np.minimum(errors, 2.0),
    "exp": lambda X, errors: np.exp(X) * np.expm1(errors),
    "sign": lambda X, errors: np.where(np.abs(X) <= errors, 2.0, 0.0),
}


def _elementwise(stage: Elementwise, X: Array, errors: Array, eps: float) -> Array:
    # A few more, as engines have their own cosine and exponential.
    return _SPREADS[stage.function](X, errors) + 4 * eps * np.abs(apply(stage, X))


ROUNDING: dict[type[Stage], Callable[[Any, Array, Array, float], Array]] = {
    Prepare: _prepare,
    Linear: _linear,
    Butterflies: _butterflies,
    SumOfProducts: _sum_of_products,
    Distances: _distances,
    Elementwise: _elementwise,
}
