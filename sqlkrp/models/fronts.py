"""The steps before a map, as what is done to the columns of a table: filled, moved and scaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.models.transformers import AFFINE, name_of
from sqlkrp.stages import Array, Prepare

__all__ = ["Front", "front_of"]


@dataclass(frozen=True)
class Front:
    """Values that are each a column, filled where it is missing, times a scale, plus an offset."""

    names: tuple[str, ...]
    """What the values are called."""
    columns: tuple[str, ...]
    """The column of each."""
    fill: Array
    """What a missing value of the column is read as; NaN where it is not filled."""
    scale: Array
    offset: Array

    def prepared(self) -> Prepare:
        """The values as the first stage of a program, which has no map."""
        count = len(self.columns)
        none = Prepare(self.names, np.zeros(count), np.zeros(count), np.ones(count))
        return self.before(none, self.names)

    def before(self, prepare: Prepare, names: Sequence[str]) -> Prepare:
        """A first stage that reads these values, as one that reads the columns."""
        places = [self.names.index(name) for name in names]
        columns = tuple(self.columns[place] for place in places)
        if len(set(columns)) < len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            raise ColumnError(f"column {twice!r} is read twice by the map: give it once")
        scale, offset, fill = self.scale[places], self.offset[places], self.fill[places]
        if (scale == 0).any():
            raise ParameterError(
                f"column {columns[int(np.argmin(scale != 0))]!r} is scaled to nothing"
            )
        filled = np.isfinite(fill)
        if filled.any() and not filled.all():
            raise ColumnError(
                f"column {columns[int(np.argmin(filled))]!r} is not imputed and others are: impute "
                "all columns, or none"
            )
        low, high = _bounds(prepare, scale, offset)
        instead = fill if filled.all() else (prepare.fill - offset) / scale
        if low is not None:
            instead = np.clip(instead, low, high)
        spelt = dict(zip(prepare.columns, columns, strict=True))
        return replace(
            prepare,
            columns=columns,
            fill=instead,
            shift=(prepare.shift - offset) / scale,
            scale=prepare.scale * scale,
            nulls="mean" if filled.all() else prepare.nulls,
            booleans=tuple(spelt[name] for name in prepare.booleans),
            low=low,
            high=high,
        )


def _bounds(prepare: Prepare, scale: Array, offset: Array) -> tuple[Array | None, Array | None]:
    """The bounds of values as bounds of their columns."""
    if not prepare.bounds:
        return None, None
    end = np.finfo(prepare.dtype).max
    ends = [np.where(prepare.held, (one - offset) / scale, one) for one in prepare.bounds]
    low, high = np.minimum(*ends), np.maximum(*ends)
    return np.maximum(low, -end), np.minimum(high, end)


def front_of(steps: Sequence[Any], columns: Sequence[str]) -> Front:
    """The values that steps make of columns."""
    count = len(columns)
    front = Front(
        tuple(columns), tuple(columns), np.full(count, np.nan), np.ones(count), np.zeros(count)
    )
    for step in steps:
        front = _behind(front, step)
    return front


def _behind(front: Front, step: Any) -> Front:
    """The values behind one more step."""
    if step is None or step == "passthrough":
        return front
    name = name_of(step)
    seen = getattr(step, "n_features_in_", len(front.names))
    if seen != len(front.names):
        raise ColumnError(
            f"the step {name} was fitted to {seen} columns, and {len(front.names)} are named"
        )
    if name == "SimpleImputer":
        return _imputed(front, step)
    if name not in AFFINE:
        raise ParameterError(
            f"the step {name} is not understood in front of a map: leave it out, or use one of "
            f"SimpleImputer, {', '.join(AFFINE)}"
        )
    affine = AFFINE[name](step)
    places = affine.places
    return Front(
        tuple(front.names[place] for place in places),
        tuple(front.columns[place] for place in places),
        front.fill[places],
        front.scale[places] * affine.scale,
        front.offset[places] * affine.scale + affine.offset,
    )


def _imputed(front: Front, step: Any) -> Front:
    if getattr(step, "add_indicator", False):
        raise ParameterError("SimpleImputer(add_indicator=True) is not read: leave it out")
    missing = getattr(step, "missing_values", np.nan)
    if isinstance(missing, (int, float)) and missing == missing:
        raise ParameterError(
            f"SimpleImputer(missing_values={missing!r}) is not read: a missing value is NULL or NaN"
        )
    try:
        instead = np.array(step.statistics_, dtype="f8")
    except (TypeError, ValueError):
        raise ParameterError("SimpleImputer of texts is not read in front of a map") from None
    if not np.isfinite(instead).all():
        raise ParameterError("SimpleImputer has a column without any value: leave that column out")
    raw = (instead - front.offset) / front.scale
    return replace(front, fill=np.where(np.isnan(front.fill), raw, front.fill))
