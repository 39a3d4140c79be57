"""Inputs that are made of columns: whether one holds a category or has a bit, a date as days, or a
number again.

A number is read again where it is prepared in two ways, such as inside bounds and without.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any, NamedTuple

import numpy as np

from sqlkrp.stages.stage import Array, require

__all__ = ["DAY", "Category", "days_of", "encoded", "is_missing", "require_categories"]

#: Microseconds of a day. Engines count these, in whole numbers, and all divide them by this.
DAY = 86_400_000_000
_MICROSECOND = timedelta(microseconds=1)
_ISO = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?)?")


class Category(NamedTuple):
    """One category of a column, as an input of its own; or its days; or the column once more."""

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
    days: bool = False
    """In place of a value: the days from 1970-01-01 to the date or time that the column holds.

    A time has a fraction of a day, and counts as of UTC where it has a zone. What is missing stays
    so."""

    @property
    def is_indicator(self) -> bool:
        """Whether it is 0 or 1 in every row, and never missing."""
        return self.value is not None or self.missing or self.bit is not None

    @property
    def is_column(self) -> bool:
        """Whether it is the number that the column holds, and no category."""
        return not self.is_indicator and not self.days

    @property
    def stored(self) -> tuple[Any, ...]:
        """What map files hold: of those of before, all that they had, so that digests stay."""
        return tuple(self) if self.days else tuple(self)[:-1]

    @property
    def told(self) -> str:
        """What it is for people, as no name in SQL may be: of any length, and in any letters."""
        if self.bit is not None:
            return f"{self.column}, bit {self.bit}"
        if self.days:
            return f"{self.column} (days)"
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
        require(isinstance(one.days, bool), "a category is no date")
        require(not (one.days and one.is_indicator), "a category is a date and a value")
    names = [one.name for one in categories]
    require(len(set(names)) == len(names), "a category is there twice")
    looked_at = {one.column for one in categories}
    require(not looked_at & set(names), "a category looks at a category")


def encoded(category: Category, column: Any) -> Array:
    """The input of a category, from the values of its column: the NumPy twin."""
    if category.days:
        return days_of(column)
    values = np.asarray(column, dtype=object)
    holds = [
        category.missing if is_missing(value) else _is_held(value, category) for value in values
    ]
    return np.array(holds, dtype="f8")


def days_of(column: Any) -> Array:
    """The days since 1970-01-01 of dates and times, NaN for what is none.

    >>> days_of(["1970-01-03", "1970-01-01 12:00", date(1969, 12, 31), None, "soon"]).tolist()
    [2.0, 0.5, -1.0, nan, nan]
    """
    values = np.asarray(column)
    if values.dtype.kind == "M":
        whole = values.astype("datetime64[us]")
        microseconds = np.where(np.isnat(whole), np.nan, whole.astype("i8").astype("f8"))
    else:
        microseconds = np.array([_microseconds(value) for value in values.tolist()], dtype="f8")
    days: Array = microseconds / DAY
    return days


def _microseconds(value: Any) -> float:
    if isinstance(value, str):
        value = _parsed(value)
    if is_missing(value) or not isinstance(value, date):
        return np.nan
    if not isinstance(value, datetime):
        return float((value.toordinal() - date(1970, 1, 1).toordinal()) * DAY)
    zone = None if value.tzinfo is None else timezone.utc
    return float((value - datetime(1970, 1, 1, tzinfo=zone)) // _MICROSECOND)


def _parsed(text: str) -> datetime | None:
    """A date or time as ISO 8601 writes them; None for any other text."""
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    fraction, zone = found[3] or "", found[4] or ""
    plain = text.removesuffix(zone).removesuffix(fraction).replace("T", " ")
    digits = zone.replace("Z", "+00:00").replace(":", "")
    if digits:
        digits = f"{digits[:3]}:{digits[3:] or '00'}"
    try:
        return datetime.fromisoformat(
            f"{plain}{fraction.ljust(7, '0')[:7] if fraction else ''}{digits}"
        )
    except ValueError:  # such as the 30th of February
        return None


def is_missing(value: Any) -> bool:
    """Whether a value of an object column is none."""
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas' own, which may not be there
        return True
    return value is None or (isinstance(value, float) and value != value)


def _is_held(value: Any, category: Category) -> bool:
    if category.bit is not None:
        return bool((int(value) >> category.bit) & 1)
    if isinstance(value, str) or isinstance(category.value, str):
        return isinstance(value, str) and value == category.value
    return bool(value == category.value)
