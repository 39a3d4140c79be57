"""Inputs that are made of columns: whether one holds a category or has a bit, or its number again.

A number is read again where it is prepared in two ways, such as inside bounds and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sqlkrp.stages.stage import Array, require

__all__ = ["Category", "encoded", "require_categories"]


class Category(NamedTuple):
    """One category of a column, as an input of its own; or, of no value, the column once more."""

    name: str
    """What the input is called."""
    column: str
    """The column that it looks at."""
    value: str | bool | int | float | None
    """What the column holds where the input is 1; None: nothing but a missing value, or any."""
    missing: bool = False
    """Whether it is 1 where the column's value is missing."""
    bit: int | None = None
    """In place of a value: the number of the bit that the column's whole number has, from 0."""

    @property
    def is_column(self) -> bool:
        """Whether it is the number that the column holds, and no category."""
        return self.value is None and not self.missing and self.bit is None

    @property
    def told(self) -> str:
        """What it is for people, as no name in SQL may be: of any length, and in any letters."""
        if self.bit is not None:
            return f"{self.column}, bit {self.bit}"
        if self.is_column:
            return f"{self.column} (again)"
        return f"{self.column}={'missing' if self.value is None else self.value}"


def require_categories(categories: Sequence[Category], inputs: Sequence[str]) -> None:
    """Raise InconsistentMapError unless categories are inputs, each once."""
    for one in categories:
        texts = isinstance(one.name, str) and isinstance(one.column, str)
        require(texts and one.name in inputs, "a category is no input")
        plain = one.value is None or isinstance(one.value, (str, bool, int, float))
        require(plain and isinstance(one.missing, bool), "a category is no plain value")
        is_bit = type(one.bit) is int and 0 <= one.bit < 64 and one.value is None
        require(one.bit is None or is_bit, "a category is no bit")
    names = [one.name for one in categories]
    require(len(set(names)) == len(names), "a category is there twice")
    looked_at = {one.column for one in categories}
    require(not looked_at & set(names), "a category looks at a category")


def encoded(category: Category, column: Any) -> Array:
    """The input of a category, from the values of its column: the NumPy twin."""
    values = np.asarray(column, dtype=object)
    holds = [
        category.missing if _is_missing(value) else _is_held(value, category) for value in values
    ]
    return np.array(holds, dtype="f8")


def _is_missing(value: Any) -> bool:
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas' own, which may not be there
        return True
    return value is None or (isinstance(value, float) and value != value)


def _is_held(value: Any, category: Category) -> bool:
    if category.bit is not None:
        return bool((int(value) >> category.bit) & 1)
    if isinstance(value, str) or isinstance(category.value, str):
        return isinstance(value, str) and value == category.value
    return bool(value == category.value)
