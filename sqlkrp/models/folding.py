"""Sums in front of weights as weights of what these read: nothing is added up twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sqlkrp.stages import Array, Butterflies, Linear, Paths, Program, Stage

__all__ = ["folded"]


def folded(program: Program, after: int) -> Program:
    """A program whose decisions weigh what is first of all that only sums make of columns.

    The first ``after`` stages make the features.
    """
    head, decisions = list(program.stages[:after]), program.stages[after]
    assert isinstance(decisions, Linear)
    weights, constant = decisions.matrix(), decisions.constant
    assert constant is not None
    before, weights, constant = _into_weights(head, weights, constant)
    stages = (*before, Linear.dense(weights, constant), *program.stages[after + 1 :])
    return Program(stages, program.names).only(every_column=True)


def _into_weights(
    stages: Sequence[Stage], weights: Array, constant: Array
) -> tuple[list[Stage], Array, Array]:
    """Stages without the sums that they end with, which go into what weighs them."""
    left = list(stages)
    while left and isinstance(left[-1], (Linear, Butterflies)):
        last = left.pop().linear  # type: ignore[attr-defined]
        if last.constant is not None:
            constant = constant + weights @ last.constant
        weights = _times(weights, last)
    if left and isinstance(left[-1], Paths):
        left[-1], weights, constant = _paths_into_weights(left[-1], weights, constant)
    return left, weights, constant


def _paths_into_weights(
    stage: Paths, weights: Array, constant: Array
) -> tuple[Paths, Array, Array]:
    paths, found = [], []
    for path, (first, end) in zip(stage.paths, stage.places, strict=True):
        left, its, constant = _into_weights(path, weights[:, first:end], constant)
        # What is nothing but sums hands on all inputs.
        paths.append(tuple(left) or (Linear.scaled(stage.n_inputs, 1.0),))
        found.append(its)
    return Paths(stage.n_inputs, tuple(paths)), np.concatenate(found, axis=1), constant


def _times(weights: Array, stage: Linear) -> Array:
    """Weights of a stage's outputs as weights of its inputs."""
    found = np.zeros((len(weights), stage.n_inputs))
    np.add.at(found.T, stage.input, (weights[:, stage.output] * stage.value).T)
    return found
