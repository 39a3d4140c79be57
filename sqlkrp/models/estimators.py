"""What trained estimators compute of features, read by their attributes; nothing is imported.

An estimator is known by the name of its class, as the same attributes mean other things in others.
What is not known is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.models.classifiers import classifier, logistic, stochastic
from sqlkrp.models.decisions import Decisions
from sqlkrp.models.regressions import log_link, regression, tweedie
from sqlkrp.models.transformers import name_of
from sqlkrp.models.wrappers import (
    Reader,
    calibrated,
    one_vs_rest,
    pipeline,
    searched,
    transformed,
    voting,
)

__all__ = ["ESTIMATORS", "read_estimator"]


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


_PLAIN = (
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV",
    "Lars", "LarsCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "OrthogonalMatchingPursuit",
    "BayesianRidge", "ARDRegression", "HuberRegressor", "SGDRegressor", "LinearSVR",
    "QuantileRegressor", "TheilSenRegressor", "MultiTaskLasso", "MultiTaskElasticNet",
)  # fmt: skip
_MARGINS = ("LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "Perceptron")
_SEARCHES = (
    "GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV",
)  # fmt: skip

_WRAPPERS: dict[str, Callable[[Reader, Any], Decisions]] = {
    "TransformedTargetRegressor": transformed,
    "OneVsRestClassifier": one_vs_rest,
    "CalibratedClassifierCV": calibrated,
    "VotingClassifier": voting,
    "Pipeline": pipeline,
    **dict.fromkeys(_SEARCHES, searched),
}

#: How each kind is read.
ESTIMATORS: dict[str, Reader] = {
    **dict.fromkeys(_PLAIN, regression),
    **dict.fromkeys(("PoissonRegressor", "GammaRegressor"), log_link),
    "TweedieRegressor": tweedie,
    **dict.fromkeys(("LogisticRegression", "LogisticRegressionCV"), logistic),
    "SGDClassifier": stochastic,
    **dict.fromkeys(_MARGINS, classifier),
    **{name: partial(reader, read_estimator) for name, reader in _WRAPPERS.items()},
}
