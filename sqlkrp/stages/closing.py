"""The stages that models end with: shares, votes, and what is said of a row's last values.

They are of few values, of which each output reads many, so every form of SQL writes them over
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sqlkrp.stages.stage import (
    NUMBERS,
    OUTPUT,
    Array,
    Cost,
    Stage,
    column,
    require,
    require_range,
)

__all__ = [
    "Answers",
    "Bounds",
    "Shares",
    "Votes",
    "cost_of_answers",
    "cost_of_groups",
    "cost_of_held",
    "held",
    "rounding_of_answers",
    "rounding_of_held",
    "rounding_of_shares",
    "rounding_of_votes",
    "said",
    "shares",
    "sigmoid",
    "votes",
]

# An exponent whose exponential is still a number.
_FURTHEST = 700.0


@dataclass(frozen=True, eq=False)
class _Groups(Stage):
    """A stage of groups of inputs, one after another, all of one size."""

    closes: ClassVar[bool] = True

    groups: int = 1

    def check(self) -> None:
        whole = type(self.groups) is int and self.groups > 0 and self.n_inputs % self.groups == 0
        require(whole and self.n_inputs > 0, "the inputs are not groups of one size")

    @property
    def n_outputs(self) -> int:
        return self.n_inputs

    @property
    def size(self) -> int:
        """How many inputs a group has."""
        return self.n_inputs // self.groups


@dataclass(frozen=True, eq=False)
class Shares(_Groups):
    """Each output is the share that its input has in the sum of its group.

    In a group whose sum is zero, all have the same share.
    """

    exponentials: bool = False
    """Whether the shares are those of the inputs' exponentials: softmax."""

    def check(self) -> None:
        super().check()
        require(type(self.exponentials) is bool, "shares are of values or of exponentials")


@dataclass(frozen=True, eq=False)
class Votes(_Groups):
    """Each output is 1 if its input is the first of the largest of its group, else 0."""


@dataclass(frozen=True, eq=False)
class Bounds(Stage):
    """Each output is its input, held between a least and a largest value."""

    closes: ClassVar[bool] = True

    low: Array = column(NUMBERS, OUTPUT)
    high: Array = column(NUMBERS, OUTPUT)

    def check(self) -> None:
        require(self.low.dtype.kind == self.high.dtype.kind == "f", "a bound is no number")
        require(self.low.ndim == 1 and self.low.shape == self.high.shape, "bounds differ in number")
        require(bool((self.low <= self.high).all()), "a least value is more than the largest")

    @property
    def n_outputs(self) -> int:
        return self.n_inputs


@dataclass(frozen=True, eq=False)
class Answers(Stage):
    """What a classifier says of a row: its label, probabilities, and the decisions themselves.

    The inputs are the decisions, one a class, or for two classes one: that for the second. What
    ``says`` names comes out, in that order. A label is the class of the largest decision (the first
    of several), or of two classes the second where the decision is more than its middle; with a
    ``threshold``, where the probability (the decision, if there is none) is not less than that.
    """

    closes: ClassVar[bool] = True
    LINKS: ClassVar[tuple[str, ...]] = ("none", "sigmoid", "softmax", "shares", "given")
    SAYS: ClassVar[tuple[str, ...]] = ("label", "probability", "decision")

    classes: tuple[str | bool | int | float, ...]
    """The labels, in the order of the decisions."""
    link: str = "none"
    """What makes a decision a probability: nothing does, the sigmoid (of two classes), softmax, the
    shares of sigmoids, or it is one already."""
    says: tuple[str, ...] = ("label",)
    threshold: float | None = None

    def check(self) -> None:
        count = len(self.classes)
        require(
            count >= 2 and self.n_inputs == (1 if count == 2 else count), "decisions and classes"
        )
        kinds = {type(one) for one in self.classes}
        require(len(kinds) == 1 and kinds <= {str, bool, int, float}, "classes differ in type")
        require(len(set(self.classes)) == count, "a class is there twice")
        require(self.link in self.LINKS, f"unknown link {self.link!r}")
        require((self.link == "sigmoid") <= (count == 2), "a sigmoid of more than two classes")
        require((self.link in ("softmax", "shares")) <= (count > 2), "a softmax of two classes")
        known = set(self.SAYS) - ({"probability"} if self.link == "none" else set())
        known -= {"decision"} if self.link == "given" else set()
        require(bool(self.says) and set(self.says) <= known, "it says what it does not know")
        if self.threshold is not None:
            require(count == 2, "a threshold of more than two classes")
            require_range(bool(np.isfinite(self.threshold)), "the threshold is not finite")

    @property
    def n_outputs(self) -> int:
        return sum(1 if one == "label" else self.n_inputs for one in self.says)

    @property
    def middle(self) -> float:
        """What the decision for the second of two classes is more than."""
        return 0.5 if self.link == "given" else 0.0

    def coded(self) -> Answers:
        """The same with the numbers of classes, from 0, for labels."""
        return replace(self, classes=tuple(range(len(self.classes))))

    @property
    def words(self) -> Mapping[int, tuple[Any, ...]]:
        if "label" not in self.says:
            return {}
        before = self.says[: self.says.index("label")]
        return {len(before) * self.n_inputs: self.classes}


def sigmoid(X: Array) -> Array:
    """1 / (1 + exp(-x)), of which no part leaves the range of numbers."""
    small = np.exp(-np.abs(X))
    result: Array = np.where(X >= 0, 1 / (1 + small), small / (1 + small))
    return result


def held(stage: Bounds, X: Array) -> Array:
    """The values of a stage of bounds."""
    return np.clip(X, stage.low.astype(X.dtype), stage.high.astype(X.dtype))


def shares(stage: Shares, X: Array) -> Array:
    """The values of a stage of shares."""
    return _of_groups(stage, X, _softmax if stage.exponentials else _shares_of_last)


def votes(stage: Votes, X: Array) -> Array:
    """The values of a stage of votes."""
    return _of_groups(stage, X, _first_of_largest)


def _largest(X: Array) -> Array:
    """The place of the first of the largest values of each row; NaN where it has none."""
    missing: Array = np.isnan(X).max(axis=1)
    return np.where(missing, np.nan, np.argmax(np.where(missing[:, None], 0, X), axis=1))


def said(stage: Answers, X: Array) -> Array:
    """What is said of each row; a label as the number of its class."""
    known = {"decision": X, "label": _labels(stage, X)[:, None].astype(X.dtype)}
    if stage.link != "none":
        known["probability"] = _probabilities(stage, X)
    return np.column_stack([known[one] for one in stage.says])


def _of_groups(stage: _Groups, X: Array, function: Callable[[Array], Array]) -> Array:
    groups = X.reshape(len(X) * stage.groups, stage.size)
    values: Array = function(groups).reshape(X.shape)
    return values


def _shares_of_last(X: Array) -> Array:
    total = X.sum(axis=1, keepdims=True)
    same = np.full_like(X, 1 / X.shape[1])
    found: Array = np.divide(X, total, out=same, where=total != 0)
    return found


def _softmax(X: Array) -> Array:
    return _shares_of_last(np.exp(X - X.max(axis=1, keepdims=True)))


def _first_of_largest(X: Array) -> Array:
    place = _largest(X)[:, None]
    ones = (np.arange(X.shape[1]) == place).astype(X.dtype)
    return np.where(np.isnan(place), np.nan, ones).astype(X.dtype)


def _probabilities(stage: Answers, X: Array) -> Array:
    if stage.link == "given":
        return X
    if stage.link == "softmax":
        return _softmax(X)
    values = sigmoid(X)
    return values if stage.link == "sigmoid" else _shares_of_last(values)


def _labels(stage: Answers, X: Array) -> Array:
    if len(stage.classes) > 2:
        return _largest(X)
    if stage.threshold is None:
        second = X[:, 0] > stage.middle
    else:
        looked_at = X if stage.link == "none" else _probabilities(stage, X)
        second = looked_at[:, 0] >= np.array(stage.threshold, dtype=X.dtype)
    return np.where(np.isnan(X[:, 0]), np.nan, second)


# --- rounding ---------------------------------------------------------------------------------


def rounding_of_held(stage: Bounds, X: Array, errors: Array, eps: float) -> Array:
    """How far two ways of holding values may be apart."""
    return errors


def rounding_of_shares(stage: Shares, X: Array, errors: Array, eps: float) -> Array:
    """How far two ways of computing shares may be apart."""
    values, off = (one.reshape(-1, stage.size) for one in (X, errors))
    found = _rounding_of_softmax if stage.exponentials else _rounding_of_share
    return found(values, off, eps).reshape(X.shape)


def _rounding_of_softmax(X: Array, errors: Array, eps: float) -> Array:
    # Relative errors of exponentials are errors of the exponents.
    off = errors + errors.max(axis=1, keepdims=True) + eps * (2 + np.abs(X))
    sizes = np.exp(X - X.max(axis=1, keepdims=True))
    return _rounding_of_share(sizes, sizes * np.expm1(np.minimum(off, _FURTHEST)), eps)


def _rounding_of_share(X: Array, errors: Array, eps: float) -> Array:
    sizes = np.abs(X)
    others, their_errors = (one.sum(axis=1, keepdims=True) - one for one in (sizes, errors))
    share = _share(sizes, others)
    # Errors may be as large as a step: so the share is taken where it is largest, and least.
    largest = _share(sizes + errors, np.maximum(others - their_errors, 0))
    least = _share(np.maximum(sizes - errors, 0), others + their_errors)
    off = np.maximum(largest - share, share - least)
    found: Array = off + share * eps * (2 + np.sqrt(sizes.shape[1]))
    return found


def _share(part: Array, others: Array) -> Array:
    total = part + others
    found: Array = np.divide(part, total, out=np.zeros_like(total), where=total > 0)
    return found


def rounding_of_votes(stage: Votes, X: Array, errors: Array, eps: float) -> Array:
    """How far votes may be apart: not at all, or in a group with a near tie by all of it."""
    near = _near_ties(X.reshape(-1, stage.size), errors.reshape(-1, stage.size))
    return np.repeat(np.where(near, np.inf, 0.0), stage.size).reshape(X.shape)


def _near_ties(X: Array, errors: Array) -> Array:
    """Whether another value of a row could be its largest."""
    most = (X - errors).max(axis=1)
    near: Array = (X + errors >= most[:, None]).sum(axis=1) > 1
    return near


def rounding_of_answers(stage: Answers, X: Array, errors: Array, eps: float) -> Array:
    """How far two answers may be apart; a label at a near tie by any number."""
    probability = _rounding_of_probabilities(stage, X, errors, eps)
    if len(stage.classes) > 2:
        near = _near_ties(X, errors)
    elif stage.threshold is None:
        near = np.abs(X[:, 0] - stage.middle) <= errors[:, 0]
    else:
        margin = stage.link == "none"
        looked_at, off = (X, errors) if margin else (_probabilities(stage, X), probability)
        near = np.abs(looked_at[:, 0] - stage.threshold) <= off[:, 0] + eps * abs(stage.threshold)
    label = np.where(near, np.inf, 0.0)[:, None]
    known = {"label": label, "probability": probability, "decision": errors}
    return np.column_stack([known[one] for one in stage.says])


def _rounding_of_probabilities(stage: Answers, X: Array, errors: Array, eps: float) -> Array:
    if stage.link in ("none", "given"):
        return errors
    if stage.link == "softmax":
        return _rounding_of_softmax(X, errors, eps)
    values, far = sigmoid(X), errors + eps * np.abs(X)
    off = np.maximum(sigmoid(X + far) - values, values - sigmoid(X - far)) + 4 * eps * values
    return off if stage.link == "sigmoid" else _rounding_of_share(values, off, eps)


# --- costs ------------------------------------------------------------------------------------


def cost_of_held(stage: Bounds) -> Cost:
    """Operations a row."""
    return Cost(0, stage.n_inputs)


def cost_of_groups(stage: _Groups) -> Cost:
    """Operations a row of shares or votes."""
    return Cost(stage.n_inputs - stage.groups, stage.n_inputs)


def cost_of_answers(stage: Answers) -> Cost:
    """Operations a row."""
    functions = 0 if "probability" not in stage.says else stage.n_inputs
    more = stage.n_inputs - 1 if functions and stage.link in ("softmax", "shares") else 0
    return Cost(more, 2 * functions)
