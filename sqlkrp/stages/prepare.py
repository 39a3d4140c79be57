"""The first stage: casts, missing values, outliers, scaling, unit length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sqlkrp.errors import MissingValueError
from sqlkrp.stages.categories import Category, require_categories
from sqlkrp.stages.stage import Array, Cost, Stage, require, require_names

__all__ = [
    "Prepare",
    "cost_of_preparing",
    "missing_error",
    "missing_message",
    "prepared",
    "rounding_of_prepared",
]


@dataclass(frozen=True, eq=False)
class Prepare(Stage):
    """Cast, missing values, outliers, (x - shift) * scale, unit length, and a constant column.

    A value is *missing* when it is NULL, NaN or infinite: one rule for every engine and type.
    One beyond ``low`` or ``high`` is read as these.
    """

    n_inputs: int = field(init=False)
    columns: tuple[str, ...]
    fill: Array
    """What a missing value is read as; used by the policies ``zero`` and ``mean``."""
    shift: Array
    scale: Array
    nulls: str = "error"
    unit_length: bool = False
    constant: float | None = None
    dtype: str = "float64"
    booleans: tuple[str, ...] = ()
    """The columns that were truth values at fit; some engines cast these in two steps."""
    low: Array | None = None
    """What each column is held above, before it is shifted and scaled; None: nothing is held.

    A column that is not held has the least number of the dtype."""
    high: Array | None = None
    """What each column is held below."""
    categories: tuple[Category, ...] = field(default=(), metadata={"new": True})
    """The inputs that are 1 where a column holds one of its categories, or a column once more."""

    POLICIES: ClassVar[tuple[str, ...]] = ("error", "zero", "mean", "propagate")

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_inputs", len(self.columns))
        # A map file has them as lists.
        object.__setattr__(self, "categories", tuple(Category(*one) for one in self.categories))
        super().__post_init__()

    @classmethod
    def plain(cls, columns: Sequence[str], nulls: str = "error", dtype: str = "float64") -> Prepare:
        """Of columns as they are."""
        count = len(columns)
        zeros, ones = np.zeros(count), np.ones(count)
        return cls(tuple(columns), zeros, zeros, ones, nulls=nulls, dtype=dtype)

    def check(self) -> None:
        require((self.low is None) == (self.high is None), "one of two bounds is missing")
        for numbers in (self.fill, self.shift, self.scale, *self.bounds):
            require(numbers.shape == (len(self.columns),), "columns and statistics differ")
            require(bool(np.isfinite(numbers).all()), "a statistic is not a finite number")
        if self.bounds:
            inside = (self.bounds[0] <= self.fill) & (self.fill <= self.bounds[1])
            require(bool(inside.all()), "what is filled in lies out of bounds")
        require_names(self.columns, "column")
        require_categories(self.categories, self.columns)
        require(set(self.booleans) <= set(self.columns), "a boolean column is no column")
        require(self.nulls in self.POLICIES, f"unknown policy for missing values {self.nulls!r}")
        require(self.dtype in ("float32", "float64"), f"unknown dtype {self.dtype!r}")

    @property
    def n_outputs(self) -> int:
        return len(self.columns) + (self.constant is not None)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the table: the inputs, and in place of categories what they look at."""
        looked_at = {one.name: one.column for one in self.categories}
        return tuple(dict.fromkeys(looked_at.get(name, name) for name in self.columns))

    @property
    def told(self) -> tuple[str, ...]:
        """The inputs for people: columns, and categories of columns."""
        made = {one.name: one.told for one in self.categories}
        return tuple(made.get(name, name) for name in self.columns)

    @property
    def fills(self) -> bool:
        """Whether missing values are replaced."""
        return self.nulls in ("zero", "mean")

    @property
    def bounds(self) -> tuple[Array, Array] | tuple[()]:
        """The least and the largest value of each column; nothing where none is held."""
        return () if self.low is None or self.high is None else (self.low, self.high)

    @property
    def held(self) -> Array:
        """Whether each column has bounds."""
        if not self.bounds:
            return np.zeros(len(self.columns), dtype=bool)
        end = np.finfo(self.dtype).max
        held: Array = (self.bounds[0] > -end) | (self.bounds[1] < end)
        return held


def missing_message(counts: dict[str, int]) -> str:
    """What is said of missing values where it is known which columns miss how many."""
    found = [f"{name!r} ({count:,})" for name, count in counts.items() if count]
    shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    return (
        f"missing values (NULL, NaN or infinite) in {shown}: "
        "draw the map with nulls='zero', 'mean' or 'propagate', or clean the table (a model "
        "without a map: or train it behind a SimpleImputer)"
    )


def prepared(stage: Prepare, X: Array) -> Array:
    """The NumPy twin, of arrays (column, row) and (prepared input, row)."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array(X, dtype=stage.dtype, order="C")
        missing = ~np.isfinite(values)
        left_blank = missing.any(axis=0) & (stage.nulls == "propagate")
        _treat_missing(stage, values, missing)
        values[:, left_blank] = np.nan
        if stage.bounds:
            np.clip(values, *(_of_columns(stage, bound) for bound in stage.bounds), out=values)
        values -= _of_columns(stage, stage.shift)
        values *= _of_columns(stage, stage.scale)
        if stage.unit_length:
            values = _of_length_one(values)
    if stage.constant is not None:
        ones = np.where(left_blank, np.nan, stage.constant)
        values = np.concatenate([values, ones.astype(stage.dtype)[None]])
    return values


def _of_columns(stage: Prepare, numbers: Array) -> Array:
    """A number for each column, in all rows."""
    return numbers.astype(stage.dtype)[:, None]


def missing_error(stage: Prepare, X: Array) -> MissingValueError:
    """What is raised where values are missing of an array (column, row)."""
    with np.errstate(over="ignore"):
        counts = [int((~np.isfinite(column.astype(stage.dtype))).sum()) for column in X]
    return MissingValueError(missing_message(dict(zip(stage.told, counts, strict=True))))


def _treat_missing(stage: Prepare, values: Array, missing: Array) -> None:
    if stage.nulls == "error" and missing.any():
        raise missing_error(stage, values)
    if stage.fills:
        np.copyto(values, _of_columns(stage, stage.fill), where=missing)


def _of_length_one(values: Array) -> Array:
    # In double precision, as squares leave the range of single precision soon.
    wide = values.astype("float64")
    norm = np.sqrt(np.sum(wide * wide, axis=0)).astype(values.dtype)
    # A row of zeros has no direction: it stays a row of zeros.
    return np.where(norm == 0, values, values / np.where(norm == 0, 1, norm))


def rounding_of_prepared(stage: Prepare, X: Array, errors: Array, eps: float) -> Array:
    """How far two ways of preparing inputs may be apart, by rounding alone."""
    # Some engines compute in double precision whatever the dtype: the cast counts as well.
    values = np.where(np.isfinite(X), X, stage.fill).astype("f8")  # squares of singles have room
    if stage.bounds:
        values = np.clip(values, *stage.bounds)
    scaled = (values - stage.shift) * stage.scale
    sizes = (np.abs(values) + np.abs(stage.shift)) * np.abs(stage.scale)
    found: Array = eps * (sizes + 2 * np.abs(scaled))
    if stage.unit_length:
        norm = np.sqrt(np.sum(scaled * scaled, axis=1, keepdims=True))
        norm[norm == 0] = 1
        of_norm = np.sqrt(np.sum(found * found, axis=1, keepdims=True)) / norm
        of_norm += eps * math.sqrt(len(stage.columns))
        found = found / norm + np.abs(scaled) / norm * of_norm
    if stage.constant is not None:
        found = np.column_stack([found, np.full(len(found), eps * abs(stage.constant))])
    return found


def cost_of_preparing(stage: Prepare) -> Cost:
    """Its operations a row."""
    d = len(stage.columns)
    of_length = (d, 2 * d) if stage.unit_length else (0, 0)
    shifted, scaled = np.count_nonzero(stage.shift), np.count_nonzero(stage.scale != 1)
    return Cost(int(shifted) + of_length[0], int(scaled) + of_length[1])
