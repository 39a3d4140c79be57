"""What the attributes of trained estimators hold: weights, intercepts, names and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.models.decisions import Label
from sqlkrp.models.transformers import name_of
from sqlkrp.stages import Array, is_unicode

__all__ = ["fitted", "labels_of", "names_seen", "sums"]


def fitted(estimator: Any, *names: str) -> list[Any]:
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


def sums(estimator: Any) -> tuple[Array, Array]:
    """The weights of each output, and its intercept."""
    coefficients, intercept = fitted(estimator, "coef_", "intercept_")
    weights = np.atleast_2d(_numbers("coef_", coefficients))
    constants = _numbers("intercept_", intercept).ravel()
    if weights.ndim != 2 or len(constants) not in (1, len(weights)):
        raise ParameterError(
            f"coef_ has {len(weights)} decisions, and intercept_ {len(constants)}: give one each"
        )
    return weights, np.broadcast_to(constants, len(weights)).copy()


def names_seen(estimator: Any) -> tuple[str, ...] | None:
    """The names of what it was fitted to, where it saw such."""
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
