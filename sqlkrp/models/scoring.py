"""What is asked of a model where it scores: of which rows, and what it is to say of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.models.model import Model
from sqlkrp.models.sketches import of_stored

__all__ = ["as_asked", "scoring"]


def scoring(
    model: Any,
    table: Any,
    features: Any,
    outputs: Iterable[str] | None,
    threshold: float | None,
    as_: str = "auto",
    prefix: str = "",
    holds: str = "features",
) -> tuple[Model, Any]:
    """The model as it is asked, and the rows that it reads."""
    _require_model(model)
    if (table is None) == (features is None):
        raise ParameterError("give the table of rows to score, or one of features (features=NAME)")
    model = as_asked(model, outputs, threshold, as_, prefix)
    if features is None and holds != "features":
        raise ParameterError("holds belongs to a table of features: name it (features=NAME)")
    return (model, table) if features is None else (of_stored(model, holds), features)


def as_asked(
    model: Any, outputs: Iterable[str] | None, threshold: float | None, as_: str, prefix: str
) -> Model:
    """The model as it is asked: what it says, where it cuts, how it is computed, its names."""
    asked = _require_model(model)
    if threshold is not None:
        asked = asked.cut_at(threshold)
    if outputs is not None:
        asked = asked.saying(outputs)
    return asked.written_as(as_).prefixed(prefix)


def _require_model(model: Any) -> Model:
    if not isinstance(model, Model):
        raise ParameterError(
            f"model is of type {type(model).__name__}, not a model: make one (sqlkrp.model), or "
            "create a table of a map's features (create)"
        )
    return model
