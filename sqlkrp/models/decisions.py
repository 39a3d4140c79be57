"""Weighted sums of features and what follows them: what an estimator comes to, and sums of such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.models.transformers import Affine
from sqlkrp.stages import Answers, Array, Elementwise, Linear, Shares, Stage, Votes

__all__ = ["Decisions", "Label", "average_of", "exponential", "of_inputs", "votes_of"]

Label = str | bool | int | float


@dataclass(frozen=True)
class Decisions:
    """Weighted sums of features, and what follows them."""

    weights: Array
    """Of each decision (row), a weight for each feature."""
    intercept: Array
    classes: tuple[Label, ...] = ()
    """The labels; none of a regression."""
    link: str = "none"
    """What makes decisions of classes probabilities, as in :class:`Answers`."""
    later: tuple[Stage, ...] = ()
    """The stages between the sums and the answers."""
    features: tuple[str, ...] | None = None
    """The names of the features, where the estimator saw such."""

    def stages(self) -> list[Stage]:
        """Everything behind the features."""
        stages: list[Stage] = [Linear.dense(self.weights, self.intercept), *self.later]
        if self.classes:
            says = [one for one in Answers.SAYS if one != self._lacks]
            stages.append(Answers(stages[-1].n_outputs, self.classes, self.link, tuple(says)))
        return stages

    @property
    def _lacks(self) -> str:
        return {"none": "probability", "given": "decision"}.get(self.link, "")


def exponential(decisions: Decisions, more: float = 0.0) -> Decisions:
    """The exponentials of predictions, plus a number."""
    count = len(decisions.weights)
    added = [Linear.scaled(count, 1.0, more)] if more else []
    return replace(decisions, later=(*decisions.later, Elementwise(count, "exp"), *added))


def of_inputs(decisions: Decisions, affine: Affine) -> Decisions:
    """The same decisions of what is moved and scaled to be weighed."""
    weights = np.zeros((len(decisions.weights), affine.n_inputs))
    np.add.at(weights.T, affine.places, (decisions.weights * affine.scale).T)
    intercept = decisions.intercept + decisions.weights @ affine.offset
    return replace(decisions, weights=weights, intercept=intercept)


def votes_of(members: Sequence[Decisions], weights: Array) -> Decisions:
    """What most of some classifiers say; each has so many votes."""
    labels = _one_set_of_classes(members)
    if any(one.later for one in members):
        raise ParameterError("votes of calibrated classifiers or of votes are not read")
    count = len(labels)
    rows, constants = [], []
    for one in members:
        if count == 2:  # against the first class, whose decision is 0
            rows.append(np.zeros_like(one.weights))
            constants.append(np.zeros(1))
        rows.append(one.weights)
        constants.append(one.intercept)
    total = np.kron(weights, np.eye(count))
    if count == 2:
        total = total[1:] - total[:1]
    stages = (Votes(count * len(members), groups=len(members)), Linear.dense(total))
    return Decisions(np.concatenate(rows), np.concatenate(constants), labels, "none", stages)


def average_of(members: Sequence[Decisions], weights: Array) -> Decisions:
    """The weighted mean of the probabilities of some classifiers."""
    labels = _one_set_of_classes(members)
    links = {one.link for one in members}
    if len(links) > 1 or links <= {"none", "given"} or any(one.later for one in members):
        raise ParameterError(
            "probabilities are averaged of classifiers that have them in one way: train them alike"
        )
    (link,) = links
    rows = np.concatenate([one.weights for one in members])
    stages: list[Stage] = []
    if link != "softmax":
        stages.append(Elementwise(len(rows), "sigmoid"))
    if len(labels) > 2:
        exponentials = link == "softmax"
        stages.append(Shares(len(rows), groups=len(members), exponentials=exponentials))
    each = len(rows) // len(members)
    mean = Linear.dense(np.kron(weights / weights.sum(), np.eye(each)))
    constants = np.concatenate([one.intercept for one in members])
    return Decisions(
        rows, constants, labels, "given", (*stages, mean), features=members[0].features
    )


def _one_set_of_classes(members: Sequence[Decisions]) -> tuple[Label, ...]:
    labels = {one.classes for one in members}
    if len(labels) != 1 or not members[0].classes:
        raise ParameterError("the members do not know the same classes: train each on all of them")
    return members[0].classes
