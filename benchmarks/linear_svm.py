"""Linear support vector machines of many dense features, one against the rest.

The model is that of liblinear's ``-s 2``, which the paper took (scikit-learn's ``LinearSVC`` with
the squared hinge loss): each class has the w of least

    |w|^2 / 2 + C sum_i max(0, 1 - y_i <w, x_i>)^2,

with a last feature of ones for the intercept. liblinear passes over the rows of one class at a
time, in double precision: of 60,000 rows of 2,000 features that is half an hour and more. Here all
classes take Newton's steps together, found by conjugate gradients in single precision; a test
compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

__all__ = ["Features", "predict", "train"]

Array = NDArray[np.float32]
# Conjugate gradients stop at such a share of the residual, or after so many steps.
_RESIDUAL, _STEPS = 0.1, 20
# Newton's steps stop when the next would take such a share off what is minimised, or after so many.
_GAIN, _ROUNDS = 3e-4, 30
# The share of rows that is on the wrong side of its margin, about.
_ACTIVE = 0.2


@dataclass(frozen=True)
class Features:
    """Rows to train on, of mean length 1, and what makes all equations of them easier."""

    values: Array
    values_of_gram: NDArray[np.float64]
    vectors: Array

    @classmethod
    def of(cls, values: Array) -> Features:
        """Rows with a last column of ones."""
        found, vectors = eigh((values.T @ values).astype("float64"), overwrite_a=True)
        return cls(values, np.maximum(found, 0), vectors.astype("float32"))

    def solved(self, right: Array, penalty: float) -> Array:
        """An approximate inverse of the Hessian, times what is on the right."""
        inverse = 1 / (1 + 2 * penalty * _ACTIVE * self.values_of_gram)
        found: Array = self.vectors @ (
            inverse.astype("float32")[:, None] * (self.vectors.T @ right)
        )
        return found


def train(
    features: Features,
    labels: np.ndarray,
    classes: Sequence[int],
    penalty: float,
    start: Array | None = None,
) -> Array:
    """The weights of each class, as columns; of two classes there is one column, of the last."""
    values = features.values
    wanted = list(classes)[1:] if len(classes) == 2 else list(classes)
    signs = np.where(labels[:, None] == np.array(wanted), 1, -1).astype("float32")
    weights = np.zeros((values.shape[1], len(wanted)), "float32") if start is None else start
    scores = values @ weights
    for _ in range(_ROUNDS):
        slack = np.maximum(0, 1 - signs * scores)
        gradient = weights - 2 * penalty * (values.T @ (signs * slack))
        step = _newton(features, slack > 0, gradient, penalty)
        along = values @ step
        length = _lengths(weights, step, scores, along, signs, penalty)
        weights = weights + length * step
        scores = scores + length * along
        loss = _dot(weights, weights) / 2 + penalty * _dot(slack, slack)
        if (-_dot(gradient, step) / 2 <= _GAIN * loss).all():
            break
    return weights


def _newton(features: Features, active: np.ndarray, gradient: Array, penalty: float) -> Array:
    """Newton's step of each class, by preconditioned conjugate gradients."""
    values, weight = features.values, (2 * penalty * active).astype("float32")
    step, residual = np.zeros_like(gradient), -gradient
    better = features.solved(residual, penalty)
    direction, size = better, _dot(residual, better)
    enough = _RESIDUAL**2 * size
    for _ in range(_STEPS):
        image = direction + values.T @ (weight * (values @ direction))
        # A class that is done moves no more.
        moves = np.where(size > enough, size / np.maximum(_dot(direction, image), 1e-30), 0)
        step, residual = step + moves * direction, residual - moves * image
        better = features.solved(residual, penalty)
        new = _dot(residual, better)
        direction = better + new / np.maximum(size, 1e-30) * direction
        size = new
        if (size <= enough).all():
            break
    return step


def _dot(a: Array, b: Array) -> Array:
    found: Array = (a * b).sum(axis=0, dtype="float64").astype("float32")
    return found


def _lengths(
    weights: Array, step: Array, scores: Array, along: Array, signs: Array, penalty: float
) -> Array:
    """How far to go, of each class: Newton's method on a line, where the loss is convex."""
    lengths = np.ones(step.shape[1], "float64")
    own, cross = _dot(step, step).astype("float64"), _dot(weights, step).astype("float64")
    margin, change = (signs * scores).astype("float64"), (signs * along).astype("float64")
    for _ in range(8):
        slack = np.maximum(0, 1 - margin - lengths * change)
        slope = cross + lengths * own - 2 * penalty * (slack * change).sum(axis=0)
        bend = own + 2 * penalty * ((slack > 0) * change**2).sum(axis=0)
        lengths = np.maximum(lengths - slope / np.maximum(bend, 1e-300), 0)
    found: Array = lengths.astype("float32")
    return found


def predict(weights: Array, values: Array, classes: Sequence[int]) -> np.ndarray:
    """The class of each row."""
    scores = values @ weights
    if weights.shape[1] == 1:
        return np.where(scores[:, 0] > 0, classes[1], classes[0])
    return np.array(classes)[scores.argmax(axis=1)]
