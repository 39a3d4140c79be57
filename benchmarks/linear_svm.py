"""Linear support vector machines of many dense features, one against the rest.

The model is that of liblinear's ``-s 2``, which the paper took (scikit-learn's ``LinearSVC``): each
class has the w of least

    |w|^2 / 2 + C sum_i max(0, 1 - y_i <w, x_i>)^2.

liblinear passes over the rows again and again, on one core and in double precision: of 60,000 rows
of 2,000 features that takes an hour. Here Newton's steps are solved exactly, which takes few of
them, as only rows on the wrong side of their margin count in one: those are few, from a start at
the weights of a part of the rows. A test compares the two.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

__all__ = ["predict", "train"]

Array = NDArray[np.float32]
_WORKERS = 2
# Steps stop when one takes less than such a share off what is minimised, or after so many; of a
# part of the rows, which is a start only, sooner.
_GAIN, _GAIN_OF_PART, _STEPS = 1e-4, 3e-2, 60
# Of sums of products in single precision, as a share of their trace: the least that does.
_ROUNDINGS = (1e-7, 1e-6, 1e-5)
# The first part of the rows; each next is so many times as long.
_PART, _TIMES = 4_000, 4


def train(values: Array, labels: np.ndarray, classes: Sequence[int], penalty: float) -> Array:
    """The weights of each class, as columns; of two classes there is one column, of the last.

    Rows are in no order: the first of them stand for all.
    """
    wanted = list(classes)[1:] if len(classes) == 2 else list(classes)

    def trained(one: int) -> NDArray[np.float64]:
        return _one(values, np.where(labels == one, 1, -1).astype("float32"), penalty)

    # Most of the work is BLAS's, which other threads do not wait for.
    with ThreadPoolExecutor(_WORKERS) as pool:
        return np.column_stack(list(pool.map(trained, wanted))).astype("float32")


def _one(values: Array, signs: Array, penalty: float) -> NDArray[np.float64]:
    weights = np.zeros(values.shape[1])
    part = _PART
    while part < len(values):
        # As if there were as many of them as of all.
        penalty_of_part = penalty * len(values) / part
        weights = _steps(values[:part], signs[:part], penalty_of_part, weights, _GAIN_OF_PART)
        part *= _TIMES
    return _steps(values, signs, penalty, weights, _GAIN)


def _steps(
    values: Array, signs: Array, penalty: float, weights: NDArray[np.float64], gain: float
) -> NDArray[np.float64]:
    margins = _margins(values, signs, weights)
    for _ in range(_STEPS):
        slack = np.maximum(0, 1 - margins)
        loss = weights @ weights / 2 + penalty * slack @ slack
        (active,) = np.nonzero(slack)
        if not len(active):
            break
        gradient = weights - 2 * penalty * _sums(values[active], signs[active] * slack[active])
        step = -_solved(values[active], gradient / (2 * penalty), 1 / (2 * penalty))
        change = _margins(values, signs, step)
        length = _length(weights, step, margins, change, penalty)
        weights = weights + length * step
        margins = margins + length * change
        slack = np.maximum(0, 1 - margins)
        if loss - (weights @ weights / 2 + penalty * slack @ slack) <= gain * loss:
            break
    return weights


def _margins(values: Array, signs: Array, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = signs * (values @ weights.astype("float32")).astype("float64")
    return found


def _sums(values: Array, factors: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = (values.T @ factors.astype("float32")).astype("float64")
    return found


def _solved(active: Array, right: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """What the Hessian of these rows maps to what is on the right.

    Products in single precision are twice as fast. What they may be off is added to the ridge: the
    step is shorter where rows hardly differ, and goes down all the same.
    """
    hessian = (active.T @ active).astype("float64")
    own = np.diag(hessian).copy()
    for rounding in _ROUNDINGS:
        hessian[np.diag_indices_from(hessian)] = own + max(ridge, rounding * own.sum())
        with contextlib.suppress(LinAlgError):
            return np.asarray(cho_solve(cho_factor(hessian), right))
    return right / (own + ridge)


def _length(
    weights: NDArray[np.float64], step: NDArray[np.float64], margins: NDArray[np.float64],
    change: NDArray[np.float64], penalty: float,
) -> float:  # fmt: skip
    """How far to go: Newton's method on a line, where the loss is convex."""
    length, own, cross = 1.0, step @ step, weights @ step
    for _ in range(10):
        slack = np.maximum(0, 1 - margins - length * change)
        slope = cross + length * own - 2 * penalty * (slack @ change)
        bend = own + 2 * penalty * (change[slack > 0] ** 2).sum()
        if bend <= 0 or abs(slope) <= 1e-6 * abs(cross):
            break
        length = max(0.0, length - slope / bend)
    return length


def predict(weights: Array, values: Array, classes: Sequence[int]) -> np.ndarray:
    """The class of each row."""
    scores = values @ weights
    if weights.shape[1] == 1:
        return np.where(scores[:, 0] > 0, classes[1], classes[0])
    return np.array(classes)[scores.argmax(axis=1)]
