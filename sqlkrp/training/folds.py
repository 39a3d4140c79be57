"""Which rows are held out: by what is in a row, never by where it stands.

So the same rows are held out in every engine, whatever the order that they come in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sqlkrp.stages import Array

__all__ = ["TEST", "Copies", "Split", "hashes_of_rows", "hashes_of_texts", "mixed"]

#: In the place of a fold's number: the row is held out of everything.
TEST = -1
# The marks of more rows than this are not held: the hash of each says its place well enough.
_MOST_HELD = 2_000_000
# So many different rows are counted.
_MOST_COUNTED = 500_000
# Of fewer different rows a part, equal ones are spread over the parts: together, some would be
# empty. So are those that are many and more than this share of all: they would make one part unlike
# the others.
_FEW_A_PART, _FEW_EQUAL, _COMMON = 10, 10, 0.01
# The multiples of it, less their whole parts, are spread evenly however many there are.
_GOLDEN = (math.sqrt(5) - 1) / 2

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


class Copies:
    """Which of equal rows each is, by what says so of a row, as rows go by."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def nth(self, marks: Array) -> NDArray[np.int64]:
        """How many rows with its mark came before each."""
        different, place, counts = np.unique(marks, return_inverse=True, return_counts=True)
        order = np.argsort(place, kind="stable")
        numbers = np.empty(len(marks), "i8")
        numbers[order] = np.arange(len(marks)) - np.repeat(np.cumsum(counts) - counts, counts)
        named = different.tolist()
        before = np.array([self._seen.get(one, 0) for one in named], "i8")
        # Of too many, those that are there often enough to matter are among the first.
        is_full = len(self._seen) >= _MOST_COUNTED
        after = zip(named, (before + counts).tolist(), strict=True)
        self._seen.update(one for one in after if not is_full or one[0] in self._seen)
        found: NDArray[np.int64] = numbers + before[place.ravel()]
        return found

    def apart(self, marks: Marks, labels: Marks) -> Marks:
        """Other marks, which equal rows do not share; those that came first have the old ones.

        Rows of equal labels are counted by themselves: so it is all one which of them came first.
        """
        before: Marks = self.nth(marks ^ labels).astype(np.uint64)
        with np.errstate(over="ignore"):
            found: Marks = marks + before * np.uint64(0x9E3779B97F4A7C15)
        return found


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
        self._codes: list[Array] = []
        self._bounds: dict[int, tuple[Array, NDArray[np.int64]]] = {}
        self._sorted: dict[int, Array] = {}
        self._spread: Array = np.empty(0, "u8")
        self._copies: dict[int, Copies] = {}
        self.counts_equal_rows = False
        """Whether equal rows are in several parts, by how many of them came before."""
        self.rows = 0

    def look(self, marks: Array, codes: NDArray[np.int64]) -> None:
        """Rows, at the first pass."""
        self._hold(len(marks), [marks], [codes.astype(np.min_scalar_type(codes.max(initial=0)))])

    def add(self, other: Split, numbers: NDArray[np.int64]) -> None:
        """Rows that were looked at elsewhere, and the numbers here of the classes there."""
        short = numbers.astype(np.min_scalar_type(numbers.max(initial=0)))
        self._hold(other.rows, other._marks, [short[codes] for codes in other._codes])

    def _hold(self, rows: int, marks: Sequence[Array], codes: Sequence[Array]) -> None:
        self.rows += rows
        if self.in_order or self.rows <= _MOST_HELD:
            self._marks += marks
            self._codes += codes
        else:
            self._marks, self._codes = [], []

    def close(self, *, by_class: bool) -> None:
        """The first pass is over, and it is known whether labels are classes."""
        self.by_class &= by_class
        if not self._marks:
            return
        marks, codes = np.concatenate(self._marks), np.concatenate(self._codes)
        codes = codes if self.by_class else np.zeros_like(codes)
        different, counts = np.unique(marks, return_counts=True)
        self.n_marks = len(different)
        if not (self.in_order or self.in_groups):
            few = self.n_marks < _FEW_A_PART * (self.n_folds + 1)
            self._spread = different[few | (counts > max(_FEW_EQUAL, _COMMON * len(marks)))]
        self.counts_equal_rows = len(self._spread) > 0
        self._marks, self._codes = [], []
        in_order = {code: np.sort(marks[codes == code]) for code in np.unique(codes).tolist()}
        if self.counts_equal_rows:
            self._sorted = {
                code: its[~np.isin(its, self._spread)] for code, its in in_order.items()
            }
        else:
            self._bounds = {code: self._bounds_of(its) for code, its in in_order.items()}

    def begin(self) -> None:
        """Another pass begins."""
        self._copies = {}

    def parts(
        self, marks: Array, codes: NDArray[np.int64], labels: Marks | None = None
    ) -> NDArray[np.int64]:
        """The fold of each row, or TEST.

        ``labels`` tell equal rows apart where their classes do not, so that it is all one which of
        them comes first.
        """
        codes = codes if self.by_class else np.zeros_like(codes)
        if not self._bounds:
            return self._parts_of(self._places(marks, codes, labels))
        found = np.full(len(marks), TEST)
        for code, (firsts, parts) in self._bounds.items():
            here = codes == code
            before = np.searchsorted(firsts, marks[here], side="right")
            found[here] = parts[np.maximum(before - 1, 0)]
        return found

    def _bounds_of(self, its: Array) -> tuple[Array, NDArray[np.int64]]:
        """Of the marks of a class, in order, those that a part begins with; and these parts.

        They say of all marks what their places say, and are few enough to go to where rows are.
        """
        marks, before = np.unique(its, return_index=True)
        parts = self._parts_of(self._within_class(before.astype("f8"), its))
        begins = np.flatnonzero(np.concatenate([[True], parts[1:] != parts[:-1]]))
        return marks[begins], parts[begins]

    def _parts_of(self, place: Array) -> NDArray[np.int64]:
        """The part of each place."""
        if self.in_order:  # the latest are held out
            place = 1 - place
        # Folds have what is left, in parts of one size.
        left = np.maximum(place - self.test_share, 0.0) / max(1 - self.test_share, 1e-9)
        fold = np.minimum((left * self.n_folds).astype("i8"), self.n_folds - 1)
        if self.in_order:
            fold = self.n_folds - 1 - fold
        return np.where(place < self.test_share, TEST, fold)

    def _places(self, marks: Array, codes: NDArray[np.int64], labels: Marks | None = None) -> Array:
        """Where each row stands among those of its class, from 0 to 1."""
        if not self._sorted:
            return marks.astype("f8") / 2.0**64
        found = np.zeros(len(marks))
        for code, its in self._sorted.items():
            here = codes == code
            mine = marks[here]
            common = np.isin(mine, self._spread)
            place = np.empty(len(mine))
            if not common.all():
                before = np.searchsorted(its, mine[~common], side="left").astype("f8")
                place[~common] = self._within_class(before, its)
            equal = mine if labels is None else mixed(mine ^ labels[here])
            place[common] = self._far_apart(code, equal[common])
            found[here] = place
        return found

    def _within_class(self, before: Array, its: Array) -> Array:
        """The places of rows that have so many of their class before them."""
        # In the middle of its own place, so that no part begins with a row more than others.
        place = (before + 0.5) / len(its)
        # Else small classes would all have their first rows in one part.
        return (place + float(its[0]) / 2.0**64) % 1.0 if self.by_class else place

    def _far_apart(self, code: int, marks: Array) -> Array:
        """Places of which those of one mark are spread evenly, as far as each pass goes."""
        before = self._copies.setdefault(code, Copies()).nth(marks)
        return (marks.astype("f8") / 2.0**64 + before * _GOLDEN) % 1.0

    def before(self, fold: int) -> Sequence[int]:
        """The folds that a fold's rows are predicted from."""
        if self.in_order:
            return range(fold)
        return [one for one in range(self.n_folds) if one != fold]

    @property
    def predicted(self) -> Sequence[int]:
        """The folds that are predicted from others."""
        return range(1, self.n_folds) if self.in_order else range(self.n_folds)
