"""What a table is to be trained for: classes, or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ParameterError
from sqlkrp.maps.source import BOOLEAN, DATE, NUMERIC
from sqlkrp.stages import Array

__all__ = ["CLASSIFICATION", "REGRESSION", "TASKS", "Label", "Labels"]

CLASSIFICATION, REGRESSION = TASKS = ("classification", "regression")

#: Whole numbers of at most so many values are classes, if nobody says otherwise.
FEW_VALUES = 20
# More classes than this are no classes that a linear model is trained for.
_MOST_CLASSES = 1_000

# Below this doubles hold each whole number; this one stands for the next as well.
_EXACT = 2.0**53

# Of columns that hold nothing in DuckDB, and of those that SQLite computes, which may be texts.
_NO_TYPES = ('"NULL"', "")

Label = str | bool | int | float


@dataclass
class Labels:
    """The labels of a column, which are looked at in a first pass."""

    column: str
    kind: str
    """The column's kind, as the engine tells it."""
    asked: str | None = None
    """The task that was asked for."""
    sort: str | None = None
    """Whether it holds texts or dates, as the engine tells it; of any other type None."""
    codes: dict[Any, int] = field(default_factory=dict)
    """The number of each value, in the order that they came."""
    is_whole: bool = True
    least: float = np.inf
    largest: float = -np.inf

    def __post_init__(self) -> None:
        if self.asked is not None and self.asked not in TASKS:
            raise ParameterError(
                f"task={self.asked!r} is not allowed: use one of {', '.join(TASKS)}"
            )
        if self.is_text and self.sort is None and self.kind not in _NO_TYPES:
            raise ParameterError(
                f"column {self.column!r} is of type {self.kind}, and a label is a number, a truth "
                "value or a text: name another label, or cast it in a view"
            )
        if self.sort == DATE and self.asked is None:
            raise ParameterError(
                f"column {self.column!r} is of type {self.kind}, a date, which is neither a class "
                "nor a number: cast it to a number in a view, or use task='classification'"
            )
        if self.asked == REGRESSION and self.is_text:
            raise ParameterError(
                f"column {self.column!r} is of type {self.kind}, and a regression is trained on "
                "numbers: cast it in a view, or use task='classification'"
            )

    @property
    def is_text(self) -> bool:
        """Whether labels are read as texts."""
        return self.kind not in NUMERIC

    def look(self, values: Array) -> NDArray[np.int64]:
        """Some labels in the first pass; the number of each one's value."""
        if self.is_text:
            return self._numbered(values)
        self.least = min(self.least, float(values.min(initial=np.inf)))
        self.largest = max(self.largest, float(values.max(initial=-np.inf)))
        self.is_whole &= bool((values == np.round(values)).all())
        if self.task == REGRESSION:
            return np.zeros(len(values), dtype="i8")
        codes = self._numbered(values)
        if self.task == REGRESSION:  # of its values nothing is asked but that they are not few
            self.codes = dict(islice(self.codes.items(), FEW_VALUES + 1))
            return np.zeros_like(codes)
        return codes

    def add(self, other: Labels) -> NDArray[np.int64]:
        """What was looked at elsewhere; the numbers here of the values that have numbers there."""
        self.least = min(self.least, other.least)
        self.largest = max(self.largest, other.largest)
        self.is_whole &= other.is_whole
        if self.task == REGRESSION:
            return np.zeros(max(1, len(other.codes)), dtype="i8")
        return self._numbers_of(list(other.codes))

    def _numbered(self, values: Array) -> NDArray[np.int64]:
        different, places = np.unique(values, return_inverse=True)
        return self._numbers_of(different.tolist())[places.ravel()]

    def _numbers_of(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """Those of different values, of which some may be new."""
        for one in values:
            self.codes.setdefault(one, len(self.codes))
        if self.task == CLASSIFICATION and len(self.codes) > _MOST_CLASSES:
            raise ParameterError(
                f"column {self.column!r} has more than {_MOST_CLASSES:,} values, which are no "
                "classes to be told apart: name another label, or use task='regression'"
            )
        return np.array([self.codes[one] for one in values], dtype="i8")

    def codes_of(self, values: Array) -> NDArray[np.int64]:
        """The numbers of values in a later pass; of a regression nothing but zeros."""
        return self.look(values) if self.task == CLASSIFICATION else np.zeros(len(values), "i8")

    @property
    def task(self) -> str:
        """What it is, of all that was seen so far."""
        if self.asked is not None:
            return self.asked
        if self.is_text or self.kind == BOOLEAN:
            return CLASSIFICATION
        few = self.is_whole and len(self.codes) <= FEW_VALUES
        return CLASSIFICATION if few else REGRESSION

    @property
    def are_told_apart(self) -> bool:
        """Whether whole numbers are read as what they are, and not as others near them."""
        if self.is_text or not self.is_whole:
            return True
        return max(-self.least, self.largest) < _EXACT

    @property
    def why(self) -> str:
        """Why it is that task, in words."""
        if self.asked is not None:
            return "as asked"
        if self.is_text or self.kind == BOOLEAN:
            return f"{self.column!r} is of type {self.kind}"
        count = len(self.codes)
        if self.task == CLASSIFICATION:
            return f"{self.column!r} has {count} whole numbers; --task {REGRESSION} for numbers"
        return f"{self.column!r} has numbers"

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes in their order."""
        return tuple(self._label(one) for one in sorted(self.codes))

    def places_of(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places among the classes of values of these numbers; of a regression the same."""
        if self.task == REGRESSION:
            return codes
        ranked = {one: place for place, one in enumerate(sorted(self.codes))}
        return np.array([ranked[one] for one in self.codes], dtype="i8")[codes]

    def _label(self, value: Any) -> Label:
        if self.is_text:
            return str(value)
        if self.kind == BOOLEAN:
            return bool(value)
        return int(value) if self.is_whole else float(value)
