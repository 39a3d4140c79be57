"""The first stage: casts, missing values, outliers, scaling, unit length."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from sqlkrp.errors import MissingValueError
from sqlkrp.stages.base import Array, Stage, Table, require, require_names

__all__ = ["Prepare", "missing_message"]


@dataclass(frozen=True, eq=False)
class Prepare(Stage):
    """Cast, missing values, outliers, (x - shift) * scale, unit length, and a constant column.

    A value is *missing* when it is NULL, NaN or infinite: one rule for every engine and type.
    One beyond ``low`` or ``high`` is read as these.
    """

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
    n_inputs: int = field(init=False)

    POLICIES: ClassVar[tuple[str, ...]] = ("error", "zero", "mean", "propagate")

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_inputs", len(self.columns))
        require((self.low is None) == (self.high is None), "one of two bounds is missing")
        for numbers in (self.fill, self.shift, self.scale, *self.bounds):
            require(numbers.shape == (len(self.columns),), "columns and statistics differ")
            require(bool(np.isfinite(numbers).all()), "a statistic is not a finite number")
        if self.bounds:
            inside = (self.bounds[0] <= self.fill) & (self.fill <= self.bounds[1])
            require(bool(inside.all()), "what is filled in lies out of bounds")
        require_names(self.columns, "column")
        require(set(self.booleans) <= set(self.columns), "a boolean column is no column")
        require(self.nulls in self.POLICIES, f"unknown policy for missing values {self.nulls!r}")
        require(self.dtype in ("float32", "float64"), f"unknown dtype {self.dtype!r}")

    @property
    def n_outputs(self) -> int:
        return len(self.columns) + (self.constant is not None)

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

    @property
    def additions(self) -> int:
        return int(np.count_nonzero(self.shift)) + (len(self.columns) if self.unit_length else 0)

    @property
    def products(self) -> int:
        unit = 2 * len(self.columns) if self.unit_length else 0
        return int(np.count_nonzero(self.scale != 1)) + unit

    def apply(self, X: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.array(X, dtype=self.dtype)
            missing = ~np.isfinite(values)
            left_blank = missing.any(axis=1) & (self.nulls == "propagate")
            self._treat(values, missing)
            values[left_blank] = np.nan
            if self.bounds:
                np.clip(values, *(bound.astype(self.dtype) for bound in self.bounds), out=values)
            values -= self.shift.astype(self.dtype)
            values *= self.scale.astype(self.dtype)
            if self.unit_length:
                # In double precision, as squares leave the range of single precision soon.
                wide = values.astype("float64")
                norm = np.sqrt(np.sum(wide * wide, axis=1, keepdims=True)).astype(self.dtype)
                # A row of zeros has no direction: it stays a row of zeros.
                values = np.where(norm == 0, values, values / np.where(norm == 0, 1, norm))
        if self.constant is not None:
            ones = np.where(left_blank, np.nan, self.constant)
            values = np.column_stack([values, ones.astype(self.dtype)])
        return values

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        # Some engines compute in double precision whatever the dtype: the cast counts as well.
        values = np.where(np.isfinite(X), X, self.fill)
        if self.bounds:
            values = np.clip(values, *self.bounds)
        scaled = (values - self.shift) * self.scale
        sizes = (np.abs(values) + np.abs(self.shift)) * np.abs(self.scale)
        found: Array = eps * (sizes + 2 * np.abs(scaled))
        if self.unit_length:
            norm = np.sqrt(np.sum(scaled * scaled, axis=1, keepdims=True))
            norm[norm == 0] = 1
            of_norm = np.sqrt(np.sum(found * found, axis=1, keepdims=True)) / norm
            of_norm += eps * math.sqrt(len(self.columns))
            found = found / norm + np.abs(scaled) / norm * of_norm
        if self.constant is not None:
            found = np.column_stack([found, np.full(len(found), eps * abs(self.constant))])
        return found

    def _treat(self, values: Array, missing: Array) -> None:
        if self.nulls == "error" and missing.any():
            counts = missing.sum(axis=0)
            raise MissingValueError(missing_message(dict(zip(self.columns, counts, strict=True))))
        if self.fills:
            np.copyto(values, self.fill.astype(self.dtype), where=missing)

    def tables(self) -> dict[str, Table]:
        names = ("fill", "shift", "scale", *(("low", "high") if self.bounds else ()))
        return {
            "columns": {
                "feature": np.arange(len(self.columns), dtype=np.int32),
                "name": np.array(self.columns, dtype=object),
                **{name: getattr(self, name).astype(self.dtype) for name in names},
            }
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        d = len(self.columns)
        if self.unit_length or self.nulls == "propagate":
            # Every column decides what a row becomes.
            return self, np.arange(self.n_outputs), np.arange(d)
        kept = outputs[outputs < d]
        if not len(kept):
            kept = np.arange(1)  # a table has at least a column
        constant = self.constant if d in outputs else None
        names = [self.columns[i] for i in kept.tolist()]
        left = replace(
            self,
            columns=tuple(names),
            fill=self.fill[kept],
            shift=self.shift[kept],
            scale=self.scale[kept],
            low=None if self.low is None else self.low[kept],
            high=None if self.high is None else self.high[kept],
            constant=constant,
            booleans=tuple(name for name in self.booleans if name in names),
        )
        return left, np.append(kept, d) if constant is not None else kept, kept


def missing_message(counts: dict[str, int]) -> str:
    """The one sentence for missing values under ``nulls="error"``."""
    found = [f"{name!r} ({count:,})" for name, count in counts.items() if count]
    shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    return (
        f"missing values (NULL, NaN or infinite) in {shown}: "
        "draw the map with nulls='zero', 'mean' or 'propagate', or clean the table"
    )
