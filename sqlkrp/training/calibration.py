"""Probabilities from decisions: one sigmoid for two classes, one softmax for more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sqlkrp.stages import Array
from sqlkrp.stages.closing import sigmoid
from sqlkrp.training.losses import Batch, fit_loss, here, logistic

__all__ = ["multinomial_of", "sigmoid_of"]

_ROUNDS = 100
_AT_A_TIME = 4_096


def sigmoid_of(
    decisions: Array, truths: Array, weights: Array | None = None
) -> tuple[float, float]:
    """Slope and shift of Platt's sigmoid: the second class has 1 / (1 + exp(-slope · d - shift)).

    ``truths`` are true for the second of two classes. Instead of 1 and 0 it is fitted to (a + 1) /
    (a + 2) and 1 / (b + 2), of a and b rows of the two classes: so it exists on decisions that tell
    the classes apart. (Platt, Probabilistic outputs for support vector machines, 1999;
    scikit-learn's ``_SigmoidCalibration`` has both numbers with the other sign.)
    """
    counts = np.ones(len(decisions)) if weights is None else np.asarray(weights, np.float64)
    second = np.asarray(truths) > 0
    a, b = float(counts[second].sum()), float(counts[~second].sum())
    targets = np.where(second, (a + 1) / (a + 2), 1 / (b + 2))
    values = np.asarray(decisions, np.float64)
    middle = float(np.average(values, weights=counts))
    spread = float(np.sqrt(np.average((values - middle) ** 2, weights=counts)))
    # Decisions that are all the same say nothing.
    size = spread if spread > 1e-12 * abs(middle) else np.inf
    columns = np.column_stack([(values - middle) / size, np.ones(len(values))])
    slope, shift = _least(columns, targets, counts, np.array([0.0, np.log((a + 1) / (b + 1))]))
    return slope / size, shift - slope / size * middle


def _least(columns: Array, targets: Array, counts: Array, start: Array) -> list[float]:
    """Newton's steps, halved where they lead up."""

    def loss(at: Array) -> float:
        values = columns @ at
        return float(counts @ (np.logaddexp(0, values) - targets * values))

    at, least = start, loss(start)
    for _ in range(_ROUNDS):
        shares = sigmoid(columns @ at)
        slope = columns.T @ (counts * (shares - targets))
        bends = (columns.T * (counts * shares * (1 - shares))) @ columns
        # Decisions that are all the same leave a zero on the diagonal.
        step: Array = np.linalg.lstsq(bends, slope, rcond=None)[0]
        if slope @ step <= 1e-20 * counts.sum():
            break
        while (reached := loss(at - step)) > least and np.abs(step).max() > 1e-12:
            step = step / 2
        if reached >= least:
            break
        at, least = at - step, reached
    result: list[float] = at.tolist()
    return result


def multinomial_of(
    decisions: Array, codes: Array, weights: Array | None = None
) -> tuple[Array, Array]:
    """Matrix and shift with softmax(decisions @ matrix.T + shift) as the classes' probabilities.

    Multinomial logistic regression on the decisions of three classes and more, standardised, with
    scikit-learn's own penalty (``C=1``): so it exists on decisions that tell the classes apart.
    """
    n_classes = decisions.shape[1]
    weight = float(len(codes) if weights is None else np.sum(weights))
    means = np.average(decisions, axis=0, weights=weights)
    deviations = np.sqrt(np.average((decisions - means) ** 2, axis=0, weights=weights))
    deviations[deviations <= 1e-12 * np.abs(means)] = 0
    fit = fit_loss(
        logistic,
        here(lambda: _few_at_a_time(decisions, codes, weights)),
        n_classes,
        n_classes,
        1 / weight,
        (means, deviations),
    )
    return fit.coef, fit.intercept


def _few_at_a_time(decisions: Array, codes: Array, weights: Array | None) -> Iterator[Batch]:
    """Rows that fit into a cache."""
    for first in range(0, len(codes), _AT_A_TIME):
        rows = slice(first, first + _AT_A_TIME)
        yield decisions[rows], codes[rows], None if weights is None else weights[rows]
