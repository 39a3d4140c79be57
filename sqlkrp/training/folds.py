"""Which rows are held out: by what is in a row, never by where it stands.

So the same rows are held out in every engine, whatever the order that they come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.stages import Array

__all__ = ["TEST", "Split", "hashes_of_rows", "hashes_of_texts", "mixed"]

#: In the place of a fold's number: the row is held out of everything.
TEST = -1
# The marks of more rows than this are not held: the hash of each says its place well enough.
_MOST_HELD = 2_000_000
# Of fewer different rows, equal ones are spread over the folds: together, some would be empty.
_FEW_DIFFERENT = 1_000

Marks = NDArray[np.uint64]


def mixed(values: Marks, seed: int = 0) -> Marks:
    """Whole numbers mixed so that each bit depends on all (the end of splitmix64)."""
    with np.errstate(over="ignore"):
        found = values + np.uint64((0x9E3779B97F4A7C15 * (seed + 1)) & 0xFFFFFFFFFFFFFFFF)
        found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return found ^ (found >> np.uint64(31))


def hashes_of_rows(inputs: Array, seed: int) -> Marks:
    """A whole number for each row (row, input), equal where all inputs are."""
    total = np.zeros(len(inputs), dtype="u8")
    factors = mixed(np.arange(inputs.shape[1], dtype="u8"), seed) | np.uint64(1)
    with np.errstate(over="ignore"):
        for column, factor in zip(inputs.T, factors, strict=True):
            # Plus zero: there are two zeros, and many numbers that are none.
            bits = np.where(np.isnan(column), np.nan, column + 0.0).view("u8")
            total += (bits ^ (bits >> np.uint64(32))) * factor
    return mixed(total, seed)


def hashes_of_texts(texts: Array, seed: int) -> Marks:
    """The same of texts, of which None is one."""
    from pandas.util import hash_array  # which takes its time to import

    plain = np.array(["\0" if one is None else one for one in texts.tolist()], dtype=object)
    return mixed(hash_array(plain, categorize=True).astype("u8"), seed)


class Split:
    """The parts of a table: some rows that are held out of everything, and folds of the others.

    Rows are told apart by a mark, a number that no two different ones share; within a class their
    marks' order says the part. Where there is a time, that is the mark: what is latest is held out,
    and each fold is predicted from what was before it.
    """

    def __init__(
        self,
        n_folds: int,
        test_share: float,
        *,
        by_class: bool,
        in_order: bool,
        in_groups: bool = False,
    ) -> None:
        self.n_folds = n_folds
        self.test_share = test_share
        self.by_class = by_class
        self.in_order = in_order
        self.in_groups = in_groups
        self.n_marks = 0
        """How many different marks there are, if they were counted."""
        self._marks: list[Array] = []
        self._codes: list[NDArray[np.int64]] = []
        self._sorted: dict[int, Array] = {}
        self._seen: dict[tuple[int, Any], int] = {}
        self._spread = False
        self.rows = 0

    def look(self, marks: Array, codes: NDArray[np.int64]) -> None:
        """Rows, at the first pass."""
        self.rows += len(marks)
        if self.in_order or self.rows <= _MOST_HELD:
            self._marks.append(marks)
            self._codes.append(codes)
        else:
            self._marks, self._codes = [], []

    def close(self, *, by_class: bool) -> None:
        """The first pass is over, and it is known whether labels are classes."""
        self.by_class &= by_class
        if not self._marks:
            return
        marks, codes = np.concatenate(self._marks), np.concatenate(self._codes)
        codes = codes if self.by_class else np.zeros_like(codes)
        self.n_marks = len(np.unique(marks))
        together = self.in_order or self.in_groups
        self._spread = not together and self.n_marks < _FEW_DIFFERENT
        self._sorted = {code: np.sort(marks[codes == code]) for code in np.unique(codes).tolist()}
        self._marks, self._codes = [], []

    def begin(self) -> None:
        """Another pass begins."""
        self._seen = {}

    def parts(self, marks: Array, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The fold of each row, or TEST."""
        codes = codes if self.by_class else np.zeros_like(codes)
        place = self._places(marks, codes)
        if self.in_order:  # the latest are held out
            place = 1 - place
        # Folds have what is left, in parts of one size.
        left = np.maximum(place - self.test_share, 0.0) / max(1 - self.test_share, 1e-9)
        fold = np.minimum((left * self.n_folds).astype("i8"), self.n_folds - 1)
        if self.in_order:
            fold = self.n_folds - 1 - fold
        return np.where(place < self.test_share, TEST, fold)

    def _places(self, marks: Array, codes: NDArray[np.int64]) -> Array:
        """Where each row stands among those of its class, from 0 to 1."""
        if not self._sorted:
            return marks.astype("f8") / 2.0**64
        found = np.zeros(len(marks))
        for code, its in self._sorted.items():
            here = codes == code
            before = np.searchsorted(its, marks[here], side="left").astype("f8")
            if self._spread:
                before += self._nth(code, marks[here])
            # In the middle of its own place, so that no part begins with a row more than others.
            found[here] = (before + 0.5) / len(its)
            if self.by_class:  # small classes would all have their first rows in one part
                found[here] = (found[here] + float(its[0]) / 2.0**64) % 1.0
        return found

    def _nth(self, code: int, marks: Array) -> Array:
        """How many equal rows came before each, in this pass."""
        numbers = []
        for mark in marks.tolist():
            number = self._seen.get((code, mark), 0)
            self._seen[code, mark] = number + 1
            numbers.append(number)
        return np.array(numbers, dtype="f8")

    def before(self, fold: int) -> Sequence[int]:
        """The folds that a fold's rows are predicted from."""
        if self.in_order:
            return range(fold)
        return [one for one in range(self.n_folds) if one != fold]

    @property
    def predicted(self) -> Sequence[int]:
        """The folds that are predicted from others."""
        return range(1, self.n_folds) if self.in_order else range(self.n_folds)
