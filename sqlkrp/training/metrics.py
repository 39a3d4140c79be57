"""How good predictions are: of numbers, of classes, and of their probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sqlkrp.stages import Array

__all__ = ["DEFAULTS", "METRICS", "Metric", "confusion"]


@dataclass(frozen=True)
class Metric:
    """A metric of what is said of rows, against what is true, with how much each row counts."""

    task: str
    """``regression`` or ``classification``."""
    reads: str
    """What is said of rows: ``predictions`` (numbers), ``labels`` (places of classes),
    ``probabilities`` (a column for each class), or ``decision`` (a number, larger for the second of
    two classes)."""
    larger_is_better: bool
    value: Callable[[Array, Array, Array | None], float]
    """Of what is true (numbers, or places of classes), what is said, and weights or None."""


def r2(truths: Array, said: Array, weights: Array | None = None) -> float:
    """1 less the squared error as a share of that of the mean."""
    error = _mean((truths - said) ** 2, weights)
    spread = _mean((truths - _mean(truths, weights)) ** 2, weights)
    if spread > 0:
        return 1 - error / spread
    # Of truths that are all the same there is no share.
    return 0.0 if error > 0 else 1.0


def rmse(truths: Array, said: Array, weights: Array | None = None) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(_mean((truths - said) ** 2, weights)))


def mae(truths: Array, said: Array, weights: Array | None = None) -> float:
    """The mean absolute error."""
    return _mean(np.abs(truths - said), weights)


def accuracy(codes: Array, said: Array, weights: Array | None = None) -> float:
    """The share of rows that are said to be of their class."""
    return _mean(codes == said, weights)


def balanced_accuracy(codes: Array, said: Array, weights: Array | None = None) -> float:
    """The mean of the classes' shares of rows that are said to be theirs."""
    counts = confusion(codes, said, weights=weights)
    sizes = counts.sum(axis=1)
    met = sizes > 0
    return float((np.diag(counts)[met] / sizes[met]).mean())


def f1_macro(codes: Array, said: Array, weights: Array | None = None) -> float:
    """The mean of the classes' F1: of what is said and what is true, the share that is both."""
    counts = confusion(codes, said, weights=weights)
    both = counts.sum(axis=0) + counts.sum(axis=1)
    met = np.union1d(codes, said)
    shares = np.divide(2 * np.diag(counts), both, out=np.zeros(len(both)), where=both > 0)
    return float(shares[met].mean())


def log_loss(codes: Array, said: Array, weights: Array | None = None) -> float:
    """The mean of what the logarithm of the own class's probability lacks of 0."""
    own = np.asarray(said, np.float64)[np.arange(len(codes)), codes]
    eps = np.finfo(np.float64).eps
    return _mean(-np.log(np.clip(own, eps, 1 - eps)), weights)


def roc_auc(codes: Array, said: Array, weights: Array | None = None) -> float:
    """How often a row of the second class has the larger decision than one of the first.

    Equal decisions count half. NaN where there are rows of one class only.
    """
    counts = np.ones(len(codes)) if weights is None else np.asarray(weights, np.float64)
    _, place = np.unique(said, return_inverse=True)
    first, second = (np.bincount(place, counts * (codes == code)) for code in (0, 1))
    pairs = first.sum() * second.sum()
    below = np.cumsum(first) - first / 2
    return float((second * below).sum() / pairs) if pairs > 0 else float("nan")


def confusion(
    codes: Array, said: Array, n_classes: int | None = None, weights: Array | None = None
) -> Array:
    """How much each class (rows) is said to be each class (columns)."""
    size = n_classes or int(max(codes.max(initial=0), said.max(initial=0))) + 1
    counts = np.bincount(codes * size + said, weights, minlength=size * size)
    return counts.reshape(size, size)


def _mean(values: Array, weights: Array | None) -> float:
    if weights is not None and not np.sum(weights) > 0:
        return float("nan")
    return float(np.average(values, weights=weights))


METRICS: dict[str, Metric] = {
    "r2": Metric("regression", "predictions", True, r2),
    "rmse": Metric("regression", "predictions", False, rmse),
    "mae": Metric("regression", "predictions", False, mae),
    "accuracy": Metric("classification", "labels", True, accuracy),
    "balanced-accuracy": Metric("classification", "labels", True, balanced_accuracy),
    "f1-macro": Metric("classification", "labels", True, f1_macro),
    "log-loss": Metric("classification", "probabilities", False, log_loss),
    "roc-auc": Metric("classification", "decision", True, roc_auc),
}
#: What is optimised if nothing is said.
DEFAULTS = {"regression": "r2", "classification": "accuracy"}
