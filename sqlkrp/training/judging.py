"""How good decisions are, in the measure that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ParameterError
from sqlkrp.stages import Array
from sqlkrp.stages.closing import sigmoid
from sqlkrp.training.calibration import multinomial_of, sigmoid_of
from sqlkrp.training.labels import CLASSIFICATION, Label
from sqlkrp.training.metrics import DEFAULTS, METRICS, Metric, confusion

__all__ = ["Calibration", "Judge", "calibrated_apart"]

# Of the range of labels, how far predictions may be beyond it.
_BEYOND = 0.5

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Calibration:
    """What makes probabilities of decisions: of two classes a sigmoid, else shares."""

    matrix: Array
    """A row for each decision that has a probability."""
    shift: Array

    @classmethod
    def of(cls, decisions: Array, codes: Codes, weights: Array | None) -> Calibration:
        """That of rows which the model did not see.

        Weights say how much rows count beside each other. A calibration also asks how many rows
        there are, which weights that sum to 1 do not say.
        """
        if weights is not None:
            weights = weights / weights.mean()
        if decisions.shape[1] == 1:
            slope, shift = sigmoid_of(decisions[:, 0], codes == 1, weights)
            return cls(np.array([[slope]]), np.array([shift]))
        return cls(*multinomial_of(decisions, codes, weights))

    def decisions(self, decisions: Array) -> Array:
        """The decisions that have probabilities."""
        found: Array = decisions @ self.matrix.T + self.shift
        return found


def calibrated_apart(
    folds: Sequence[tuple[Array, Codes, Array | None]],
) -> list[Array]:
    """Decisions of each fold with probabilities, by calibrations of every second other fold.

    A calibration of many classes has as many numbers as these have pairs: on the rows that it was
    made of, it says more than there is to say.
    """
    halves = [folds[place::2] for place in range(2)]
    others = halves[::-1] if halves[1] else halves[:1]  # of one fold there is no other
    calibrations = []
    for half in others:
        decisions, codes, weights = zip(*half, strict=True)
        counts = None if weights[0] is None else np.concatenate(weights)
        one = Calibration.of(np.concatenate(decisions), np.concatenate(codes), counts)
        calibrations.append(one)
    return [
        calibrations[place % len(calibrations)].decisions(one)
        for place, (one, _, _) in enumerate(folds)
    ]


@dataclass(frozen=True)
class Judge:
    """A task, its targets in numbers, and the measure that models of it are compared by."""

    task: str
    classes: tuple[Label, ...]
    metric: str
    """Its name."""
    range: tuple[float, float] = (-np.inf, np.inf)
    """The least and the largest label of a regression."""

    @classmethod
    def of(
        cls,
        task: str,
        classes: tuple[Label, ...],
        metric: str | None,
        range: tuple[float, float],
    ) -> Judge:
        """The judge of a task, by the measure of this name."""
        allowed = _measures(task, len(classes))
        if metric is not None and metric not in allowed:
            raise ParameterError(
                f"metric={metric!r} is not allowed for a {task} of this label: use one of "
                f"{', '.join(allowed)}"
            )
        return cls(task, classes, DEFAULTS[task] if metric is None else metric, range)

    @property
    def larger_is_better(self) -> bool:
        """Whether more of the measure is better."""
        return METRICS[self.metric].larger_is_better

    @property
    def is_classification(self) -> bool:
        """Whether labels are classes."""
        return self.task == CLASSIFICATION

    @property
    def reads_probabilities(self) -> bool:
        """Whether the measure is of probabilities, and not only of which is the largest."""
        return METRICS[self.metric].reads == "probabilities"

    @property
    def bounds(self) -> tuple[float, float]:
        """What predictions are held within: a polynomial of an outlier knows no end.

        Not the range of labels, as what comes later may be beyond.
        """
        low, high = self.range
        beyond = _BEYOND * (high - low)
        return low - beyond, high + beyond

    @property
    def n_targets(self) -> int:
        """How many numbers are learned of a row."""
        return 1 if len(self.classes) < 3 else len(self.classes)

    def targets(self, labels: Array, codes: Codes) -> Array:
        """What least squares learn (row, target): of classes 1 for its own and -1 for others."""
        if not self.is_classification:
            return labels.astype("f8")[:, None]
        if self.n_targets == 1:
            return np.where(codes == 1, 1.0, -1.0)[:, None]
        return np.where(codes[:, None] == np.arange(len(self.classes)), 1.0, -1.0)

    def said(self, decisions: Array) -> Array:
        """What a model says of decisions: its predictions, or the probabilities of classes."""
        if not self.is_classification:
            return np.clip(decisions, *self.bounds)
        if self.n_targets == 1:
            second = sigmoid(decisions)
            return np.hstack([1 - second, second])
        shares = np.exp(decisions - decisions.max(axis=1, keepdims=True))
        found: Array = shares / shares.sum(axis=1, keepdims=True)
        return found

    def score(self, decisions: Array, labels: Array, codes: Codes, weights: Array | None) -> float:
        """By the measure; more is better."""
        value = self._value(METRICS[self.metric], self.said(decisions), labels, codes, weights)
        return value if self.larger_is_better else -value

    def values(
        self, decisions: Array, labels: Array, codes: Codes, weights: Array | None
    ) -> dict[str, float]:
        """By all measures of the task."""
        said = self.said(decisions)
        return {
            name: self._value(one, said, labels, codes, weights)
            for name, one in _measures(self.task, len(self.classes)).items()
        }

    def confusion(
        self, decisions: Array, labels: Array, codes: Codes, weights: Array | None
    ) -> list[list[float]]:
        """How many rows of each class (row) are said to be of each (column)."""
        del labels
        said = self.said(decisions).argmax(axis=1)
        counts = confusion(codes, said, len(self.classes), weights)
        found: list[list[float]] = counts.tolist()
        return found

    def _value(
        self, metric: Metric, said: Array, labels: Array, codes: Codes, weights: Array | None
    ) -> float:
        read = _READ[metric.reads](said)
        return metric.value(codes if self.is_classification else labels.astype("f8"), read, weights)


# What is read of what a model says, by what a measure calls it.
_READ: dict[str, Callable[[Array], Array]] = {
    "predictions": lambda said: said[:, 0],
    "labels": lambda said: said.argmax(axis=1),
    "probabilities": lambda said: said,
    "decision": lambda said: said[:, 1],
}


def _measures(task: str, n_classes: int) -> dict[str, Metric]:
    return {
        name: one
        for name, one in METRICS.items()
        if one.task == task and (n_classes == 2 or one.reads != "decision")
    }
