"""How each kind of linear classifier is read."""

from __future__ import annotations

from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.models.attributes import fitted, labels_of, names_seen, sums
from sqlkrp.models.decisions import Decisions
from sqlkrp.models.transformers import name_of

__all__ = ["classifier", "logistic", "stochastic"]


def classifier(estimator: Any, link: str = "none") -> Decisions:
    """Decisions of classes; ``link`` is that of more than two."""
    weights, intercept = sums(estimator)
    (classes,) = fitted(estimator, "classes_")
    binarizer = getattr(estimator, "_label_binarizer", None)
    if str(getattr(binarizer, "y_type_", "")).startswith("multilabel"):
        raise ParameterError(f"{name_of(estimator)} of several labels a row is not read")
    labels = labels_of(classes)
    if len(labels) < 2:
        raise ParameterError(f"this {name_of(estimator)} knows one class alone: {labels}")
    if len(weights) != (1 if len(labels) == 2 else len(labels)):
        raise ParameterError(
            f"this {name_of(estimator)} has {len(weights)} decisions for {len(labels)} classes: "
            "models of several labels a row are not read"
        )
    if link != "none" and len(labels) == 2:
        link = "sigmoid"
    return Decisions(weights, intercept, labels, link, features=names_seen(estimator))


def logistic(estimator: Any) -> Decisions:
    """A logistic regression, whose link depends on how it was trained."""
    several = getattr(estimator, "multi_class", "auto")  # until scikit-learn 1.8
    one_by_one = several == "ovr" or getattr(estimator, "solver", "") == "liblinear"
    found = classifier(estimator, "shares" if one_by_one else "softmax")
    if several == "multinomial" and len(found.classes) == 2:
        raise ParameterError(
            "multi_class='multinomial' of two classes has probabilities of its own: train with "
            "its default"
        )
    return found


def stochastic(estimator: Any) -> Decisions:
    """A classifier that has probabilities only of the logistic loss."""
    loss = getattr(estimator, "loss", "")
    return classifier(estimator, "shares" if loss == "log_loss" else "none")
