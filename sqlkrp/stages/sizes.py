"""How large the terms may be that a stage adds up, given the largest input of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sqlkrp.stages.prepare import Prepare
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts
from sqlkrp.stages.stage import Array, Stage

__all__ = ["SIZES", "size"]


def size(stage: Stage, largest: Array) -> Array:
    """A bound on the terms of each row's outputs, given one on its inputs."""
    bound: Array = SIZES[type(stage)](stage, largest)
    return bound


def _prepare(stage: Prepare, largest: Array) -> Array:
    # Of inputs that are prepared already: what is looked at begins behind this stage.
    return largest


def _linear(stage: Linear, largest: Array) -> Array:
    sums = np.bincount(stage.output, np.abs(stage.value.astype("f8")), stage.n_sums)
    bound: Array = largest * float(sums.max(initial=0))
    if stage.constant is not None:
        bound = bound + float(np.abs(stage.constant).max(initial=0))
    return bound


def _butterflies(stage: Butterflies, largest: Array) -> Array:
    bound: Array = largest * min(stage.outputs_a_row, stage.n_inputs)
    return bound


def _sum_of_products(stage: SumOfProducts, largest: Array) -> Array:
    _, terms, degree = stage.factors.shape
    base = np.maximum(largest, 1) if stage.is_ragged else largest
    bound: Array = terms * base**degree
    return bound


def _distances(stage: Distances, largest: Array) -> Array:
    farthest = np.abs(stage.value).max(initial=0)
    bound: Array = (largest + farthest) ** 2 * stage.n_inputs
    return bound


def _elementwise(stage: Elementwise, largest: Array) -> Array:
    # Slopes are at most 1 (of exp, where arguments are not positive): what is rounded away of the
    # argument comes out again.
    bound: Array = np.maximum(largest, 1)
    return bound


SIZES: dict[type[Stage], Callable[[Any, Array], Array]] = {
    Prepare: _prepare,
    Linear: _linear,
    Butterflies: _butterflies,
    SumOfProducts: _sum_of_products,
    Distances: _distances,
    Elementwise: _elementwise,
}
