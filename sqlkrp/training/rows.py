"""The rows of a source with their labels: passes over them, as many as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.engines.inputs import Input
from sqlkrp.engines.session import Session, Streamed, Work
from sqlkrp.engines.streaming import READING, Listed
from sqlkrp.errors import ParameterError
from sqlkrp.stages import Array
from sqlkrp.training.folds import Split
from sqlkrp.training.labelled import (
    Afar,
    Batch,
    Codes,
    Counts,
    InParts,
    Labelled,
    Named,
    Part,
    Parting,
    learning_weights,
)
from sqlkrp.training.labels import CLASSIFICATION, Labels

__all__ = ["OnRows", "Rows"]

# Bytes of rows that stay in memory, so that a table that is not large is read once.
_HELD = 256_000_000

#: Called with the number of rows that something has been done to.
OnRows = Callable[[int], None]


class Rows:
    """The labelled rows of a table.

    A pass over them is work, that is done where they are if the engine can, and else here.
    """

    def __init__(
        self,
        session: Session,
        data: Input,
        inputs: Sequence[str],
        named: Named,
        labels: Labels,
        seed: int,
    ) -> None:
        self._session = session
        self._data = data
        self.named = named
        self.labels = labels
        self.seed = seed
        self.counts = Counts()
        self.bytes_read = 0
        listed = Listed.of(data, inputs, named.columns)
        self._asked = listed.asked(data, session.dialect)
        self._labelled = Labelled(listed, named, seed)
        self._held: list[Batch] | None = None
        self._class_weights: Array | None = None

    # --- passes -----------------------------------------------------------------------------------

    def split(self, split: Split, on_rows: OnRows = lambda _: None) -> None:
        """The first pass: labels, and what says which part each row is in."""
        labelling = _Labelling(deepcopy(self.labels), deepcopy(split))
        for labels, marks in self._worked(labelling, on_rows, afar=self._session.can.work):
            split.add(marks, self.labels.add(labels))
        split.close(by_class=self.labels.task == CLASSIFICATION)
        if not split.rows and self.counts.unweighted:
            raise ParameterError(
                f"no row has a weight in {self.named.weights!r} that is a number above 0: nothing "
                "can be trained"
            )
        if not split.rows:
            raise ParameterError(
                f"{self._data.name} has no row with a label in {self.named.label!r}: nothing can "
                "be trained"
            )

    def found(self, split: Split, work: Work, on_rows: OnRows = lambda _: None) -> Iterator[Any]:
        """Another pass: what work finds in all rows, which it is given in their parts."""
        # Who counts equal rows has to see them all.
        afar = self._session.can.work and not split.counts_equal_rows
        parting = Parting(self.labels, split, self._class_weights)
        return self._worked(InParts(work, parting), on_rows, afar=afar)

    def balance(self, split: Split) -> None:
        """Count rows of rare classes more, so that all classes count as much."""
        (counts,) = self.found(split, _Counting(len(self.labels.codes)))
        self._class_weights = counts.sum() / (len(counts) * np.maximum(counts, 1e-300))

    def learning_weights(self, weights: Array | None, codes: Codes) -> Array | None:
        """How much rows of these weights and classes count where a model is learned."""
        return learning_weights(weights, codes, self._class_weights)

    def batches(self) -> Iterator[Batch]:
        """All labelled rows, some at a time."""
        if self._held is not None:
            yield from (replace(one, inputs=one.inputs.astype("f8")) for one in self._held)
            return
        held: list[Batch] = []
        size, self.counts = 0, Counts()
        for batch in self._labelled.of(self._streamed(), self.counts):
            if size <= _HELD:
                held.append(batch.packed())
                size += held[-1].inputs.nbytes
            else:
                held = []
            yield batch
        self._held = held if size <= _HELD else None

    # --- reading ----------------------------------------------------------------------------------

    def _worked(self, work: Work, on_rows: OnRows, *, afar: bool) -> Iterator[Any]:
        """What work finds in all labelled rows, added up."""
        if not afar:
            yield from work.added(work.over(_told(self.batches(), on_rows)))
            return
        there = Afar(work, self._labelled)
        for one in there.added(self._came(there)):
            if isinstance(one, Counts):
                self.counts = one
                on_rows(one.rows)
            else:
                yield one

    def _came(self, work: Work) -> Iterator[Any]:
        for found, size in self._session.found(*self._asked, work, READING):
            self.bytes_read += size
            yield found

    def _streamed(self) -> Iterator[Streamed]:
        for numbers, texts in self._session.stream(*self._asked, READING):
            self.bytes_read += numbers.nbytes + sum(map(_size, texts))
            yield numbers, texts


@dataclass(frozen=True)
class _Labelling:
    """The first pass: of labels and marks of rows, before any were seen."""

    labels: Labels
    split: Split

    def over(self, rows: Iterator[Batch]) -> Iterator[tuple[Labels, Split]]:
        """Those of some rows."""
        labels, split = deepcopy((self.labels, self.split))
        for batch in rows:
            split.look(batch.marks, labels.look(batch.labels))
        yield labels, split

    def added(self, found: Iterator[tuple[Labels, Split]]) -> Iterator[tuple[Labels, Split]]:
        """Those of all; of an order in time, which all rows' marks say, as they come."""
        if self.split.in_order:
            yield from found
            return
        labels, split = deepcopy((self.labels, self.split))
        for its_labels, marks in found:
            split.add(marks, labels.add(its_labels))
        yield labels, split


@dataclass(frozen=True)
class _Counting:
    """How much the rows of each class count."""

    classes: int

    def over(self, rows: Iterator[Part]) -> Iterator[Array]:
        """Those of some rows."""
        counts = np.zeros(self.classes)
        for batch, codes, _, _ in rows:
            counts += np.bincount(codes, batch.weights, self.classes)
        yield counts

    def added(self, found: Iterator[Array]) -> Iterator[Array]:
        """Those of all rows."""
        yield sum(found, np.zeros(self.classes))


def _told(batches: Iterator[Batch], on_rows: OnRows) -> Iterator[Batch]:
    """Telling of each when it is done."""
    for batch in batches:
        yield batch
        on_rows(len(batch))


def _size(column: Array) -> int:
    """The bytes of its values."""
    if column.dtype != object:
        return column.nbytes
    return sum(len(one.encode()) for one in column.tolist() if one is not None)
