"""What steps make of columns: values of one column each, and features of maps that read these.

A value is its column, filled where it is missing, times a scale, plus an offset; or it is 1 where
the column holds a category. All values that a map reads are one first stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.sql.chain import free_name
from sqlkrp.stages import Array, Category, Prepare

__all__ = ["Feature", "Front", "Item", "Reader", "Value", "first_stage", "plain_stage"]


@dataclass(frozen=True)
class Value:
    """A value that steps make of a column."""

    column: str
    fill: Any = None
    """What a missing value of the column is read as; None where it is not filled."""
    scale: float = 1.0
    offset: float = 0.0
    category: Category | None = None
    """The category of the column, if the value tells whether it is there."""
    name: str = ""
    """What the last step calls it, where that says so."""

    def moved(self, scale: float, offset: float) -> Value:
        """The value times a scale, plus an offset."""
        return replace(self, scale=self.scale * scale, offset=self.offset * scale + offset)

    @property
    def unmoved(self) -> Value:
        """The value as the column holds it."""
        return replace(self, scale=1.0, offset=0.0, name="")

    @property
    def told(self) -> str:
        """What it is called; of a category, as scikit-learn calls it."""
        return self.column if self.category is None else f"{self.column}_{self.category.value}"


@dataclass(frozen=True, eq=False)
class Reader:
    """A map, and the values that it reads."""

    map: FeatureMap
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Feature:
    """A feature of a map: times a scale, plus an offset."""

    reader: Reader
    place: int
    scale: float = 1.0
    offset: float = 0.0

    def moved(self, scale: float, offset: float) -> Feature:
        """The feature times a scale, plus an offset."""
        return replace(self, scale=self.scale * scale, offset=self.offset * scale + offset)


Front = tuple[Value, ...]
Item = Value | Feature


def plain_stage(front: Sequence[Value], nulls: str = "error", dtype: str = "float64") -> Prepare:
    """Values as a first stage that has no map behind it."""
    if twice := _given_twice(front):
        raise ColumnError(
            f"column {twice!r} is filled differently by two parts that read it: put one imputer in "
            "front of both"
        )
    none = Prepare.plain([f"x{i}" for i in range(len(front))], nulls, dtype)
    return first_stage(none, front)


def first_stage(prepare: Prepare, values: Sequence[Value]) -> Prepare:
    """A first stage that reads values, each as one of its inputs, as one that reads columns."""
    if [replace(one, name="") for one in values] == [Value(name) for name in prepare.columns]:
        return prepare
    values = _with_names(values)
    names = tuple(one.column if one.category is None else one.category.name for one in values)
    scale, offset = (np.array([getattr(one, of) for one in values]) for of in ("scale", "offset"))
    if (scale == 0).any():
        nothing = names[int(np.argmin(scale != 0))]
        raise ParameterError(f"column {nothing!r} is scaled to nothing: leave it out")
    low, high = _bounds(prepare, scale, offset)
    fill, fills = _fill(prepare, values, scale, offset)
    categories = tuple(one.category for one in values if one.category is not None)
    spelt = dict(zip(prepare.columns, names, strict=True))
    looked_at = {one.name for one in categories}
    return replace(
        prepare,
        columns=names,
        fill=fill if low is None else np.clip(fill, low, high),
        shift=(prepare.shift - offset) / scale,
        scale=prepare.scale * scale,
        nulls="mean" if fills else prepare.nulls,
        booleans=tuple(spelt[one] for one in prepare.booleans if spelt[one] not in looked_at),
        low=low,
        high=high,
        categories=categories,
    )


def _with_names(values: Sequence[Value]) -> list[Value]:
    """The same, each column once, where categories have names that every engine takes."""
    columns = [one.column for one in values if one.category is None]
    if twice := _given_twice(values):
        raise ColumnError(f"column {twice!r} is read twice in front of the map: give it once")
    found = []
    for place, one in enumerate(values):
        if one.category is not None:
            name = free_name(f"sqlkrp_category_{place}", columns)
            one = replace(one, category=one.category._replace(name=name))
        found.append(one)
    return found


def _given_twice(values: Sequence[Value]) -> str | None:
    """A column that is there as a number more than once."""
    columns = [one.column for one in values if one.category is None]
    return min((name for name in columns if columns.count(name) > 1), default=None)


def _fill(
    prepare: Prepare, values: Sequence[Value], scale: Array, offset: Array
) -> tuple[Array, bool]:
    """What is read for missing values of each column, and whether steps before the map say so."""
    numbers = [one for one in values if one.category is None or one.category.days]
    filled = [one for one in numbers if one.fill is not None]
    if not filled:
        return (prepare.fill - offset) / scale, False
    if len(filled) < len(numbers):
        without = next(one for one in numbers if one.fill is None)
        raise ColumnError(
            f"column {without.column!r} is not imputed and others are: impute all columns of "
            "numbers, or none"
        )
    # Whether a category is there is never missing.
    return np.array([0.0 if one.category else float(one.fill) for one in values]), True


def _bounds(prepare: Prepare, scale: Array, offset: Array) -> tuple[Array | None, Array | None]:
    """The bounds of values as bounds of their columns."""
    if not prepare.bounds:
        return None, None
    end = np.finfo(prepare.dtype).max
    ends = [np.where(prepare.held, (one - offset) / scale, one) for one in prepare.bounds]
    low, high = np.minimum(*ends), np.maximum(*ends)
    return np.maximum(low, -end), np.minimum(high, end)
