"""What a stage costs a row, computed as it stands; the planner may know a cheaper way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sqlkrp.stages.prepare import Prepare
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts
from sqlkrp.stages.stage import Stage

__all__ = ["COST", "Cost", "cost"]


class Cost(NamedTuple):
    """Operations a row."""

    additions: int = 0
    """Additions and subtractions."""
    products: int = 0
    """Multiplications, divisions and functions."""


def cost(stage: Stage) -> Cost:
    """The operations of a stage."""
    found: Cost = COST[type(stage)](stage)
    return found


def _prepare(stage: Prepare) -> Cost:
    d = len(stage.columns)
    of_length = (d, 2 * d) if stage.unit_length else (0, 0)
    shifted, scaled = np.count_nonzero(stage.shift), np.count_nonzero(stage.scale != 1)
    return Cost(int(shifted) + of_length[0], int(scaled) + of_length[1])


def _linear(stage: Linear) -> Cost:
    joined = len(stage.output) - int(np.count_nonzero(np.diff(stage.starts)))
    if stage.constant is None:
        added = 0
    elif stage.picks:  # what is multiplied by 0 is a constant column
        added = int(np.count_nonzero((stage.constant != 0) & (stage.value != 0)))
    else:
        added = int(np.count_nonzero(stage.constant))
    multiplied = (stage.value != 1) & (stage.value != 0) if stage.picks else stage.value
    return Cost(joined + added, 0 if stage.is_signed else int(np.count_nonzero(multiplied)))


def _butterflies(stage: Butterflies) -> Cost:
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


def _sum_of_products(stage: SumOfProducts) -> Cost:
    components, terms, _ = stage.factors.shape
    return Cost(components * (terms - 1), int(np.count_nonzero(stage.factors[:, :, 1:] >= 0)))


def _distances(stage: Distances) -> Cost:
    return Cost(2 * len(stage.value) - stage.n_sums, len(stage.value))


def _elementwise(stage: Elementwise) -> Cost:
    return Cost(0, stage.n_inputs)


COST: dict[type[Stage], Callable[[Any], Cost]] = {
    Prepare: _prepare,
    Linear: _linear,
    Butterflies: _butterflies,
    SumOfProducts: _sum_of_products,
    Distances: _distances,
    Elementwise: _elementwise,
}
