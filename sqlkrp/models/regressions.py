"""How each kind of linear regression is read, and what stands behind its predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.models.attributes import names_seen, sums
from sqlkrp.models.decisions import Decisions, exponential
from sqlkrp.models.transformers import name_of

__all__ = ["log_link", "regression", "tweedie", "with_inverse"]


def regression(estimator: Any) -> Decisions:
    """A regression that predicts weighted sums."""
    return Decisions(*sums(estimator), features=names_seen(estimator))


def log_link(estimator: Any) -> Decisions:
    """A regression that predicts their exponentials."""
    return exponential(regression(estimator))


def tweedie(estimator: Any) -> Decisions:
    """A regression whose link follows from its power, if it is not given."""
    link = getattr(estimator, "link", "auto")
    if link == "auto":
        link = "log" if getattr(estimator, "power", 0) > 0 else "identity"
    return log_link(estimator) if link == "log" else regression(estimator)


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
    return exponential(decisions, more)
