"""Labelled rows, and their parts, made of rows that are read: here, or where the rows are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.session import Streamed, Work
from sqlkrp.engines.streaming import Listed
from sqlkrp.errors import ParameterError
from sqlkrp.stages import Array
from sqlkrp.training.folds import Split, hashes_of_rows, hashes_of_texts, mixed
from sqlkrp.training.labels import Labels

__all__ = ["Afar", "Batch", "Counts", "InParts", "Labelled", "Named", "Part", "Parting", "hashed",
           "learning_weights"]  # fmt: skip

Codes = NDArray[np.int64]

# Sums and squares of weights up to this, and of features times these, are numbers.
_LARGEST_WEIGHT = 1e100

# Texts whose order is that of what they say, from years to times of day.
_IN_ORDER = re.compile(r"\d{4}(([-/.]?\d\d){0,2}([ T].*)?|-?[QW]\d{1,2})")


@dataclass(frozen=True)
class Named:
    """The columns that are named beside features."""

    label: str
    weights: str | None = None
    groups: str | None = None
    time: str | None = None

    @property
    def columns(self) -> list[str]:
        """All of them, each once."""
        names = (self.label, self.weights, self.groups, self.time)
        return [name for name in dict.fromkeys(names) if name is not None]


@dataclass(frozen=True)
class Batch:
    """Some labelled rows."""

    inputs: Array
    """Doubles (row, input); NaN is missing."""
    labels: Array
    """Numbers, or texts."""
    weights: Array | None
    row_marks: NDArray[np.uint64]
    marks: Array
    """What says the part that a row is in."""

    def __len__(self) -> int:
        return len(self.inputs)

    def packed(self) -> Batch:
        """The same, of inputs in half the bytes where they are as exact in these."""
        with np.errstate(over="ignore"):
            short = self.inputs.astype("f4")
        same = short == self.inputs
        exact = same.all() or (same | np.isnan(self.inputs)).all()
        return replace(self, inputs=short if exact else np.array(self.inputs))

    def only(self, chosen: NDArray[np.bool_]) -> Batch:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        return Batch(
            self.inputs[chosen],
            self.labels[chosen],
            weights,
            self.row_marks[chosen],
            self.marks[chosen],
        )


class Part(NamedTuple):
    """Some labelled rows, of any parts."""

    batch: Batch
    codes: Codes
    """The places of their labels among the classes."""
    places: Codes
    """The fold of each, or TEST."""
    weights: Array | None
    """How much each counts where a model is learned; what it is worth is not weighed so."""


@dataclass
class Counts:
    """How many rows there are, and how many more that are left out."""

    rows: int = 0
    unlabelled: int = 0
    unweighted: int = 0
    untimed: int = 0

    def add(self, other: Counts) -> None:
        """Those of other rows."""
        self.rows += other.rows
        self.unlabelled += other.unlabelled
        self.unweighted += other.unweighted
        self.untimed += other.untimed


@dataclass(frozen=True)
class Labelled:
    """How labelled rows are made of those that are read."""

    listed: Listed
    named: Named
    seed: int

    def of(self, rows: Iterable[Streamed], counts: Counts) -> Iterator[Batch]:
        """The labelled rows, some at a time; they are counted."""
        for inputs, found in self.listed.named(rows):
            batch = self._batch(inputs, found, counts)
            counts.rows += len(batch)
            yield batch

    def _batch(self, inputs: Array, found: dict[str, Array], counts: Counts) -> Batch:
        named = self.named
        labels = found[named.label]
        there = ~_missing(labels)
        counts.unlabelled += int(np.count_nonzero(~there))
        weights = None if named.weights is None else found[named.weights]
        if weights is not None:
            weighed = np.isfinite(weights) & (weights > 0)
            counts.unweighted += int(np.count_nonzero(there & ~weighed))
            there &= weighed
            _require_in_range(named.weights, weights[there])
        if named.time is not None:
            timed = ~_missing(found[named.time])
            counts.untimed += int(np.count_nonzero(there & ~timed))
            there &= timed
        row_marks = hashes_of_rows(inputs, self.seed)
        batch = Batch(inputs, labels, weights, row_marks, self._marks(row_marks, found))
        return batch if there.all() else batch.only(there)

    def _marks(self, row_marks: NDArray[np.uint64], found: dict[str, Array]) -> Array:
        if self.named.time is not None:
            return _as_ordered(self.named.time, found[self.named.time])
        if self.named.groups is not None:
            return hashed(found[self.named.groups], self.seed)
        return row_marks


@dataclass(frozen=True)
class Parting:
    """How labelled rows are parted."""

    labels: Labels
    split: Split
    class_weights: Array | None = None

    def of(self, batches: Iterable[Batch]) -> Iterator[Part]:
        """All rows, some at a time."""
        self.split.begin()
        for batch in batches:
            codes = self.labels.codes_of(batch.labels)
            places = self.split.parts(batch.marks, codes, self._told_apart(batch.labels))
            codes = self.labels.places_of(codes)
            yield Part(batch, codes, places, learning_weights(
                batch.weights, codes, self.class_weights
            ))  # fmt: skip

    def _told_apart(self, labels: Array) -> NDArray[np.uint64] | None:
        """Marks of labels that are no classes, where equal rows are in several parts."""
        if self.split.by_class or not self.split.counts_equal_rows:
            return None
        return mixed(hashed(labels, 0))


def learning_weights(
    weights: Array | None, codes: Codes, class_weights: Array | None
) -> Array | None:
    """How much rows count where a model is learned: by their own weights and their class's."""
    if class_weights is None:
        return weights
    of_class: Array = class_weights[codes]
    return of_class if weights is None else of_class * weights


@dataclass(frozen=True)
class InParts:
    """Work on parted rows, as work on labelled ones."""

    work: Work
    parting: Parting

    def over(self, rows: Iterator[Batch]) -> Iterator[Any]:
        """What it finds in some of the rows."""
        return self.work.over(self.parting.of(rows))

    def added(self, found: Iterator[Any]) -> Iterator[Any]:
        """What was found, added up."""
        return self.work.added(found)


@dataclass(frozen=True)
class Afar:
    """Work on labelled rows, as work on rows that are read; what it finds ends with Counts."""

    work: Work
    labelled: Labelled

    def over(self, rows: Iterator[Streamed]) -> Iterator[Any]:
        """What it finds in some of the rows."""
        counts = Counts()
        yield from self.work.over(self.labelled.of(rows, counts))
        yield counts

    def added(self, found: Iterator[Any]) -> Iterator[Any]:
        """What was found, added up."""
        counts = Counts()

        def others() -> Iterator[Any]:
            for one in found:
                if isinstance(one, Counts):
                    counts.add(one)
                else:
                    yield one

        yield from self.work.added(others())
        yield counts


def _require_in_range(name: str | None, weights: Array) -> None:
    """Raise ParameterError unless weights can be added up and multiplied as numbers."""
    least, most = weights.min(initial=1.0), weights.max(initial=1.0)
    if least < 1 / _LARGEST_WEIGHT or most > _LARGEST_WEIGHT:
        raise ParameterError(
            f"column {name!r} has weights of {least:.1g} to {most:.1g}, which leave the range of "
            "numbers: rescale it in a view"
        )


def _missing(values: Array) -> NDArray[np.bool_]:
    if values.dtype == object:
        return np.array([one is None for one in values.tolist()], dtype=bool)
    found: NDArray[np.bool_] = np.isnan(values)
    return found


def hashed(values: Array, seed: int) -> NDArray[np.uint64]:
    """A whole number for each value of a column, texts or numbers."""
    if values.dtype == object:
        return hashes_of_texts(values, seed)
    return hashes_of_rows(values.astype("f8")[:, None], seed)


def _as_ordered(name: str, values: Array) -> Array:
    """Values in the order of time; what is missing is left out later."""
    if values.dtype != object:
        return np.where(np.isnan(values), -np.inf, values)
    texts = ["" if one is None else one for one in values.tolist()]
    for one in texts:
        if one and not _IN_ORDER.fullmatch(one):
            raise ParameterError(
                f"column {name!r} holds texts such as {one!r}, whose order is not that of time: "
                "make it a date in a view, or write dates as 2020-12-31"
            )
    return np.array(texts, dtype=object)
