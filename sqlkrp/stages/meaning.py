"""What each stage means: its values in NumPy (the twin of the SQL), their rounding, its cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sqlkrp.stages import closing, values
from sqlkrp.stages.closing import Answers, Bounds, Shares, Votes
from sqlkrp.stages.prepare import Prepare, cost_of_preparing, rounding_of_prepared
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts
from sqlkrp.stages.stage import Array, Cost, Stage
from sqlkrp.stages.values import Values, of_rows

__all__ = ["MEANING", "Meaning", "apply", "cost", "rounding", "values_of"]


def values_of(stage: Stage, dtype: Any) -> Values:
    """What takes arrays (input, row) to arrays (output, row) of a dtype."""
    return MEANING[type(stage)].values(stage, dtype)


def apply(stage: Stage, X: Array) -> Array:
    """Rows of inputs to rows of outputs, in the dtype of ``X``."""
    return np.ascontiguousarray(values_of(stage, X.dtype)(np.ascontiguousarray(X.T)).T)


def rounding(stage: Stage, X: Array, errors: Array, eps: float) -> Array:
    """How far two ways of computing each output may be apart, by rounding alone.

    Given the inputs (in double precision), how far each of them may be off, and the share ``eps``
    of themselves that numbers are rounded to. To first order: a sum of n terms may have sqrt(n)
    times the error of its terms' sizes, however small it comes out.
    """
    return MEANING[type(stage)].rounding(stage, X, errors, eps)


def cost(stage: Stage) -> Cost:
    """The operations of a stage as it stands; the planner may know a cheaper way."""
    return MEANING[type(stage)].cost(stage)


# --- rounding ---------------------------------------------------------------------------------


def _rounding_of_linear(stage: Linear, X: Array, errors: Array, eps: float) -> Array:
    terms = 1 if stage.picks else stage.n_inputs
    # One more where there are weights: each is rounded to the dtype.
    roundings = math.sqrt(terms) + (not stage.is_signed)
    sizes = replace(stage, value=np.abs(stage.value), constant=None)
    found = apply(sizes, errors + eps * roundings * np.abs(X))
    if stage.constant is not None:
        found += eps * np.abs(stage.constant)
    return found


def _rounding_of_butterflies(stage: Butterflies, X: Array, errors: Array, eps: float) -> Array:
    size = stage.outputs_a_row
    each = errors + eps * size.bit_length() * np.abs(X)
    padded = np.column_stack([each, np.zeros(len(X))])
    chunks = padded[:, stage.place.ravel()].reshape(len(X), -1, size)
    return np.repeat(chunks.sum(axis=2), size, axis=1)


def _rounding_of_sum_of_products(
    stage: SumOfProducts, X: Array, errors: Array, eps: float
) -> Array:
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


def _rounding_of_distances(stage: Distances, X: Array, errors: Array, eps: float) -> Array:
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
    # Values of arguments that are not positive are between 0 and 1, however far off these are.
    "exp": lambda X, errors: np.minimum(np.exp(X) * np.expm1(errors), np.maximum(np.exp(X), 1.0)),
    "sign": lambda X, errors: np.where(np.abs(X) <= errors, 2.0, 0.0),
    "sigmoid": lambda X, errors: np.minimum(errors / 4, 1.0),
}


def _rounding_of_elementwise(stage: Elementwise, X: Array, errors: Array, eps: float) -> Array:
    # A few more, as engines have their own cosine and exponential.
    return _SPREADS[stage.function](X, errors) + 4 * eps * np.abs(apply(stage, X))


# --- cost -------------------------------------------------------------------------------------


def _cost_of_linear(stage: Linear) -> Cost:
    joined = len(stage.output) - int(np.count_nonzero(np.diff(stage.starts)))
    if stage.constant is None:
        added = 0
    elif stage.picks:  # what is multiplied by 0 is a constant column
        added = int(np.count_nonzero((stage.constant != 0) & (stage.value != 0)))
    else:
        added = int(np.count_nonzero(stage.constant))
    multiplied = (stage.value != 1) & (stage.value != 0) if stage.picks else stage.value
    return Cost(joined + added, 0 if stage.is_signed else int(np.count_nonzero(multiplied)))


def _cost_of_butterflies(stage: Butterflies) -> Cost:
    # A butterfly adds only where both of its inputs hold something; padding costs nothing.
    full = stage.place >= 0
    count, half = 0, 1
    while half < stage.outputs_a_row:
        pair = full.reshape(len(full), -1, 2, half)
        both = pair[:, :, 0] & pair[:, :, 1]
        either = pair[:, :, 0] | pair[:, :, 1]
        count += 2 * int(both.sum())
        full = np.stack([either, either], axis=2).reshape(len(full), -1)
        half *= 2
    return Cost(count)


def _cost_of_sum_of_products(stage: SumOfProducts) -> Cost:
    components, terms, _ = stage.factors.shape
    return Cost(components * (terms - 1), int(np.count_nonzero(stage.factors[:, :, 1:] >= 0)))


def _cost_of_distances(stage: Distances) -> Cost:
    return Cost(2 * len(stage.value) - stage.n_sums, len(stage.value))


def _cost_of_elementwise(stage: Elementwise) -> Cost:
    return Cost(0, stage.n_inputs)


class Meaning(NamedTuple):
    """What a kind of stage means."""

    values: Callable[[Any, Any], Values]
    rounding: Callable[[Any, Array, Array, float], Array]
    cost: Callable[[Any], Cost]


MEANING: dict[type[Stage], Meaning] = {
    Prepare: Meaning(values.preparing, rounding_of_prepared, cost_of_preparing),
    Linear: Meaning(values.linear, _rounding_of_linear, _cost_of_linear),
    Butterflies: Meaning(values.butterflies, _rounding_of_butterflies, _cost_of_butterflies),
    SumOfProducts: Meaning(
        values.sum_of_products, _rounding_of_sum_of_products, _cost_of_sum_of_products
    ),
    Distances: Meaning(values.distances, _rounding_of_distances, _cost_of_distances),
    Elementwise: Meaning(values.elementwise, _rounding_of_elementwise, _cost_of_elementwise),
    Bounds: Meaning(of_rows(closing.held), closing.rounding_of_held, closing.cost_of_held),
    Shares: Meaning(of_rows(closing.shares), closing.rounding_of_shares, closing.cost_of_groups),
    Votes: Meaning(of_rows(closing.votes), closing.rounding_of_votes, closing.cost_of_groups),
    Answers: Meaning(of_rows(closing.said), closing.rounding_of_answers, closing.cost_of_answers),
}
