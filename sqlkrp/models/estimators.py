"""What trained estimators compute of features, read by their attributes; nothing is imported.

An estimator is known by the name of its class, as the same attributes mean other things in others.
What is not known is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.models.fronts import require_steps_inside
from sqlkrp.models.transformers import Affine, affine_of, name_of
from sqlkrp.stages import Answers, Array, Elementwise, Linear, Shares, Stage, Votes, is_unicode

__all__ = [
    "ESTIMATORS",
    "Decisions",
    "average_of",
    "labels_of",
    "of_inputs",
    "read_estimator",
    "votes_of",
    "with_inverse",
]

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


_LINEAR = "use one such as Ridge, LogisticRegression or LinearSVC (docs/models.md lists all)"
_INSTEAD = dict.fromkeys(
    ("FixedThresholdClassifier", "TunedThresholdClassifierCV"),
    "give the classifier inside it, and threshold=",
)


def read_estimator(estimator: Any) -> Decisions:
    """What a trained estimator computes of features."""
    name = name_of(estimator)
    if name not in ESTIMATORS:
        raise ParameterError(
            f"a {name} is not read as a linear model: {_INSTEAD.get(name, _LINEAR)}, or give its "
            "numbers (coef=, intercept=, classes=)"
        )
    return ESTIMATORS[name](estimator)


def _fitted(estimator: Any, *names: str) -> list[Any]:
    """Attributes of a fitted estimator."""
    if isinstance(estimator, type):
        raise ParameterError(f"{name_of(estimator)} is a class: give one that is trained")
    missing = [name for name in names if not hasattr(estimator, name)]
    if missing:
        raise ParameterError(
            f"this {name_of(estimator)} is not fitted (it has no {missing[0]}): fit it first"
        )
    return [getattr(estimator, name) for name in names]


def _numbers(what: str, values: Any) -> Array:
    """Weights as an array of doubles; of a sparse matrix, too."""
    values = values.toarray() if hasattr(values, "toarray") else values
    try:
        numbers = np.array(values, dtype="f8")
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{what} is no table of numbers: give one row a decision") from None
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{what} holds NaN or an infinity: train the model again")
    return numbers


def _sums(estimator: Any, coef: str = "coef_") -> tuple[Array, Array]:
    """The weights of each output, and its intercept."""
    coefficients, intercept = _fitted(estimator, coef, "intercept_")
    weights = np.atleast_2d(_numbers(coef, coefficients))
    constants = _numbers("intercept_", intercept).ravel()
    if weights.ndim != 2 or len(constants) not in (1, len(weights)):
        raise ParameterError(
            f"{coef} has {len(weights)} decisions, and intercept_ {len(constants)}: give one each"
        )
    return weights, np.broadcast_to(constants, len(weights)).copy()


def _names_seen(estimator: Any) -> tuple[str, ...] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def labels_of(values: Any) -> tuple[Label, ...]:
    """Classes as plain values of one type."""
    if not isinstance(values, (list, tuple, np.ndarray)):
        raise ParameterError(f"classes={values!r} is not allowed: give a list, in their order")
    listed = [one.item() if isinstance(one, np.generic) else one for one in values]
    kinds = {type(one) for one in listed}
    if len(kinds) != 1 or not kinds <= {str, bool, int, float}:
        told = ", ".join(sorted(one.__name__ for one in kinds))
        raise ParameterError(
            f"the classes are of the types {told}: labels are texts, whole numbers, numbers or "
            "truth values"
        )
    if len(set(listed)) < len(listed):
        raise ParameterError(f"the classes {listed!r} are not different: give each once")
    if not all(is_unicode(str(one)) for one in listed):
        raise ParameterError("a class holds a character that is no text: rename it")
    return tuple(listed)


# --- regressions ------------------------------------------------------------------------------


def _regression(estimator: Any) -> Decisions:
    return Decisions(*_sums(estimator), features=_names_seen(estimator))


def _log_link(estimator: Any) -> Decisions:
    return _exponential(_regression(estimator))


def _tweedie(estimator: Any) -> Decisions:
    link = getattr(estimator, "link", "auto")
    if link == "auto":
        link = "log" if getattr(estimator, "power", 0) > 0 else "identity"
    return _log_link(estimator) if link == "log" else _regression(estimator)


def _exponential(decisions: Decisions, more: float = 0.0) -> Decisions:
    """The exponentials of predictions, plus a number."""
    count = len(decisions.weights)
    added = [Linear.scaled(count, 1.0, more)] if more else []
    return replace(decisions, later=(*decisions.later, Elementwise(count, "exp"), *added))


def _transformed(estimator: Any) -> Decisions:
    (inner,) = _fitted(estimator, "regressor_")
    found = with_inverse(estimator, read_estimator(inner))
    return replace(found, features=found.features or _names_seen(estimator))


# What stands behind the exponential of a prediction.
_INVERSES = ((np.exp, 0.0), (np.expm1, -1.0))


def with_inverse(estimator: Any, decisions: Decisions) -> Decisions:
    """Decisions behind which a TransformedTargetRegressor puts its inverse."""
    function, other = (
        getattr(estimator, "inverse_func", None),
        getattr(estimator, "transformer", None),
    )
    if decisions.classes:
        raise ParameterError("a TransformedTargetRegressor of a classifier is no regression")
    if function is None and other is None:
        return decisions
    more = next((more for one, more in _INVERSES if one is function), None)
    if other is not None or more is None:
        told = name_of(other) if other is not None else getattr(function, "__name__", function)
        raise ParameterError(
            "of TransformedTargetRegressor the inverses np.exp and np.expm1 are read, and this one "
            f"has {told}: train the model with one of these, or without"
        )
    return _exponential(decisions, more)


# --- classifiers ------------------------------------------------------------------------------


def _classifier(estimator: Any, link: str = "none") -> Decisions:
    """Decisions of classes; ``link`` is that of more than two."""
    weights, intercept = _sums(estimator)
    (classes,) = _fitted(estimator, "classes_")
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
    return Decisions(weights, intercept, labels, link, features=_names_seen(estimator))


def _logistic(estimator: Any) -> Decisions:
    several = getattr(estimator, "multi_class", "auto")  # until scikit-learn 1.8
    one_by_one = several == "ovr" or getattr(estimator, "solver", "") == "liblinear"
    found = _classifier(estimator, "shares" if one_by_one else "softmax")
    if several == "multinomial" and len(found.classes) == 2:
        raise ParameterError(
            "multi_class='multinomial' of two classes has probabilities of its own: train with "
            "its default"
        )
    return found


def _stochastic(estimator: Any) -> Decisions:
    loss = getattr(estimator, "loss", "")
    return _classifier(estimator, "shares" if loss == "log_loss" else "none")


def _one_vs_rest(estimator: Any) -> Decisions:
    members, classes = _fitted(estimator, "estimators_", "classes_")
    if getattr(estimator, "multilabel_", False):
        raise ParameterError("OneVsRestClassifier of several labels a row is not read")
    read = [_member(estimator, one) for one in members]
    for one, member in zip(read, members, strict=True):
        if len(one.classes) != 2 or one.later:
            raise ParameterError(f"OneVsRestClassifier of a {name_of(member)} is not read")
    links = {one.link for one in read}
    link = links.pop() if len(links) == 1 else "none"
    several = len(read) > 1
    return Decisions(
        np.concatenate([one.weights for one in read]),
        np.concatenate([one.intercept for one in read]),
        labels_of(classes),
        "shares" if several and link == "sigmoid" else link,
        features=_names_seen(estimator) or read[0].features,
    )


def _member(whole: Any, estimator: Any) -> Decisions:
    """One of those that something holds."""
    require_steps_inside(whole, estimator)
    return read_estimator(estimator)


def _calibrated(estimator: Any) -> Decisions:
    members, classes = _fitted(estimator, "calibrated_classifiers_", "classes_")
    labels = labels_of(classes)
    parts = []
    for one in members:
        if getattr(one, "method", "sigmoid") != "sigmoid":
            raise ParameterError(
                f"CalibratedClassifierCV with method={one.method!r} is not read: use 'sigmoid'"
            )
        read = _member(estimator, one.estimator)
        if read.later or read.classes != labels:
            raise ParameterError(
                f"CalibratedClassifierCV of a {name_of(one.estimator)} is not read, or one of its "
                "parts did not see all classes"
            )
        slopes = np.array([float(each.a_) for each in one.calibrators])
        shifts = np.array([float(each.b_) for each in one.calibrators])
        # 1 / (1 + exp(a d + b)) is the sigmoid of -a d - b.
        weights = -slopes[:, None] * read.weights
        features = read.features
        parts.append(Decisions(weights, -slopes * read.intercept - shifts, labels, "sigmoid"))
    parts = [replace(one, features=_names_seen(estimator) or features) for one in parts]
    return average_of(parts, np.ones(len(parts)))


def _voting(estimator: Any) -> Decisions:
    members, encoder = _fitted(estimator, "estimators_", "le_")
    labels = labels_of(encoder.classes_)
    numbers = tuple(range(len(labels)))
    read = [_member(estimator, one) for one in members]
    for one, member in zip(read, members, strict=True):
        if one.classes != numbers:  # they are trained on numbers
            raise ParameterError(f"VotingClassifier with a {name_of(member)} is not read")
    read = [replace(one, classes=labels) for one in read]
    given = getattr(estimator, "weights", None)
    there = [old not in (None, "drop") for _, old in estimator.estimators]
    weights = np.ones(len(there)) if given is None else np.array(given, dtype="f8")
    together = average_of if getattr(estimator, "voting", "hard") == "soft" else votes_of
    features = _names_seen(estimator) or read[0].features
    return replace(together(read, weights[there]), features=features)


# --- what wraps others ------------------------------------------------------------------------


def _pipeline(estimator: Any) -> Decisions:
    """What a pipeline computes whose steps before the last only move and scale features."""
    (steps,) = _fitted(estimator, "steps")
    *before, (_, last) = steps
    found = read_estimator(last)
    for _, step in reversed(before):
        found = behind(step, found)
    return found


def behind(step: Any, decisions: Decisions) -> Decisions:
    """The same decisions of what a step that moves and scales features reads."""
    affine = affine_of(step, decisions.weights.shape[1])
    names = getattr(step, "feature_names_in_", None)
    features = None if names is None else tuple(map(str, names))
    if affine.keeps_names:
        features = features or decisions.features
    return replace(of_inputs(decisions, affine), features=features)


def of_inputs(decisions: Decisions, affine: Affine) -> Decisions:
    """The same decisions of what is moved and scaled to be weighed."""
    weights = np.zeros((len(decisions.weights), affine.n_inputs))
    np.add.at(weights.T, affine.places, (decisions.weights * affine.scale).T)
    intercept = decisions.intercept + decisions.weights @ affine.offset
    return replace(decisions, weights=weights, intercept=intercept)


def _searched(estimator: Any) -> Decisions:
    if getattr(estimator, "refit", True) is False:
        raise ParameterError(f"{name_of(estimator)}(refit=False) has no model: use refit=True")
    (best,) = _fitted(estimator, "best_estimator_")
    return read_estimator(best)


# --- several together -------------------------------------------------------------------------


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


_SEARCHES = (
    "GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV",
)  # fmt: skip

Reader = Callable[[Any], Decisions]

_PLAIN = (
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV",
    "Lars", "LarsCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "OrthogonalMatchingPursuit",
    "BayesianRidge", "ARDRegression", "HuberRegressor", "SGDRegressor", "LinearSVR",
    "QuantileRegressor", "TheilSenRegressor", "MultiTaskLasso", "MultiTaskElasticNet",
)  # fmt: skip
_MARGINS = ("LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "Perceptron")

#: How each kind is read.
ESTIMATORS: dict[str, Reader] = {
    **dict.fromkeys(_PLAIN, _regression),
    **dict.fromkeys(("PoissonRegressor", "GammaRegressor"), _log_link),
    "TweedieRegressor": _tweedie,
    "TransformedTargetRegressor": _transformed,
    **dict.fromkeys(("LogisticRegression", "LogisticRegressionCV"), _logistic),
    "SGDClassifier": _stochastic,
    **dict.fromkeys(_MARGINS, _classifier),
    "OneVsRestClassifier": _one_vs_rest,
    "CalibratedClassifierCV": _calibrated,
    "VotingClassifier": _voting,
    "Pipeline": _pipeline,
    **dict.fromkeys(_SEARCHES, _searched),
}
