"""Estimators that hold others: how each is read, given how the others are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.models.attributes import fitted, labels_of, names_seen
from sqlkrp.models.decisions import Decisions, average_of, of_inputs, votes_of
from sqlkrp.models.fronts import require_steps_inside
from sqlkrp.models.regressions import with_inverse
from sqlkrp.models.transformers import affine_of, name_of

__all__ = ["Reader", "calibrated", "one_vs_rest", "pipeline", "searched", "transformed", "voting"]

#: What says of an estimator what it computes of features.
Reader = Callable[[Any], Decisions]


def transformed(read: Reader, estimator: Any) -> Decisions:
    """A regression whose labels were transformed before it was trained."""
    (inner,) = fitted(estimator, "regressor_")
    found = with_inverse(estimator, read(inner))
    return replace(found, features=found.features or names_seen(estimator))


def pipeline(read: Reader, estimator: Any) -> Decisions:
    """What a pipeline computes whose steps before the last only move and scale features."""
    (steps,) = fitted(estimator, "steps")
    *before, (_, last) = steps
    found = read(last)
    for _, step in reversed(before):
        found = _behind(step, found)
    return found


def _behind(step: Any, decisions: Decisions) -> Decisions:
    """The same decisions of what a step that moves and scales features reads."""
    affine = affine_of(step, decisions.weights.shape[1])
    features = names_seen(step)
    if affine.keeps_names:
        features = features or decisions.features
    return replace(of_inputs(decisions, affine), features=features)


def searched(read: Reader, estimator: Any) -> Decisions:
    """The best that a search of parameters found."""
    if getattr(estimator, "refit", True) is False:
        raise ParameterError(f"{name_of(estimator)}(refit=False) has no model: use refit=True")
    (best,) = fitted(estimator, "best_estimator_")
    return read(best)


def one_vs_rest(read: Reader, estimator: Any) -> Decisions:
    """A classifier of two classes for each class against the others."""
    members, classes = fitted(estimator, "estimators_", "classes_")
    if getattr(estimator, "multilabel_", False):
        raise ParameterError("OneVsRestClassifier of several labels a row is not read")
    inner = [_member(read, estimator, one) for one in members]
    for one, member in zip(inner, members, strict=True):
        if len(one.classes) != 2 or one.later:
            raise ParameterError(f"OneVsRestClassifier of a {name_of(member)} is not read")
    links = {one.link for one in inner}
    link = links.pop() if len(links) == 1 else "none"
    several = len(inner) > 1
    return Decisions(
        np.concatenate([one.weights for one in inner]),
        np.concatenate([one.intercept for one in inner]),
        labels_of(classes),
        "shares" if several and link == "sigmoid" else link,
        features=names_seen(estimator) or inner[0].features,
    )


def calibrated(read: Reader, estimator: Any) -> Decisions:
    """Classifiers whose decisions a sigmoid of their own makes probabilities."""
    members, classes = fitted(estimator, "calibrated_classifiers_", "classes_")
    labels = labels_of(classes)
    parts = []
    for one in members:
        if getattr(one, "method", "sigmoid") != "sigmoid":
            raise ParameterError(
                f"CalibratedClassifierCV with method={one.method!r} is not read: use 'sigmoid'"
            )
        inner = _member(read, estimator, one.estimator)
        if inner.later or inner.classes != labels:
            raise ParameterError(
                f"CalibratedClassifierCV of a {name_of(one.estimator)} is not read, or one of its "
                "parts did not see all classes"
            )
        slopes = np.array([float(each.a_) for each in one.calibrators])
        shifts = np.array([float(each.b_) for each in one.calibrators])
        # 1 / (1 + exp(a d + b)) is the sigmoid of -a d - b.
        weights = -slopes[:, None] * inner.weights
        features = inner.features
        parts.append(Decisions(weights, -slopes * inner.intercept - shifts, labels, "sigmoid"))
    parts = [replace(one, features=names_seen(estimator) or features) for one in parts]
    return average_of(parts, np.ones(len(parts)))


def voting(read: Reader, estimator: Any) -> Decisions:
    """Classifiers that vote, or whose probabilities are averaged."""
    members, encoder = fitted(estimator, "estimators_", "le_")
    labels = labels_of(encoder.classes_)
    numbers = tuple(range(len(labels)))
    inner = [_member(read, estimator, one) for one in members]
    for one, member in zip(inner, members, strict=True):
        if one.classes != numbers:  # they are trained on numbers
            raise ParameterError(f"VotingClassifier with a {name_of(member)} is not read")
    inner = [replace(one, classes=labels) for one in inner]
    given = getattr(estimator, "weights", None)
    there = [old not in (None, "drop") for _, old in estimator.estimators]
    weights = np.ones(len(there)) if given is None else np.array(given, dtype="f8")
    together = average_of if getattr(estimator, "voting", "hard") == "soft" else votes_of
    features = names_seen(estimator) or inner[0].features
    return replace(together(inner, weights[there]), features=features)


def _member(read: Reader, whole: Any, estimator: Any) -> Decisions:
    """One of those that something holds."""
    require_steps_inside(whole, estimator)
    return read(estimator)
