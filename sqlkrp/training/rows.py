"""The rows of a source with their labels, read some at a time and as often as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.inputs import Input
from sqlkrp.engines.session import Session
from sqlkrp.engines.streaming import inputs_of_rows
from sqlkrp.errors import ParameterError
from sqlkrp.stages import Array
from sqlkrp.training.folds import Split, hashes_of_rows, hashes_of_texts
from sqlkrp.training.labels import CLASSIFICATION, Labels

__all__ = ["Batch", "Named", "Rows", "hashed"]

# Numbers of rows that stay in memory, so that a small table is read once.
_HELD = 8_000_000

Codes = NDArray[np.int64]


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


class Rows:
    """The labelled rows of a table."""

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
        self.inputs = inputs
        self.named = named
        self.labels = labels
        self.seed = seed
        self.unlabelled = 0
        self.unweighted = 0
        self.bytes_read = 0
        self._held: list[Batch] | None = None
        self._class_weights: Array | None = None

    # --- passes -----------------------------------------------------------------------------------

    def split(self, split: Split, on_batch: Callable[[int], None] = lambda _: None) -> None:
        """The first pass: labels, and what says which part each row is in."""
        for batch in self.batches():
            split.look(batch.marks, self.labels.look(batch.labels))
            on_batch(len(batch))
        split.close(by_class=self.labels.task == CLASSIFICATION)
        if not split.rows and self.unweighted:
            raise ParameterError(
                f"no row has a weight in {self.named.weights!r} that is a number above 0: nothing "
                "can be trained"
            )
        if not split.rows:
            raise ParameterError(
                f"{self._data.name} has no row with a label in {self.named.label!r}: nothing can "
                "be trained"
            )

    def parts(self, split: Split) -> Iterator[tuple[Batch, Codes, Codes]]:
        """Another pass: batches with the places of their labels' classes, and their parts."""
        split.begin()
        for batch in self.batches():
            codes = self.labels.codes_of(batch.labels)
            yield batch, self.labels.places_of(codes), split.parts(batch.marks, codes)

    def balance(self, split: Split) -> None:
        """Count rows of rare classes more, so that all classes count as much."""
        counts = np.zeros(len(self.labels.codes))
        for batch, codes, _ in self.parts(split):
            counts += np.bincount(codes, batch.weights, len(counts))
        self._class_weights = counts.sum() / (len(counts) * np.maximum(counts, 1e-300))

    def weights_to_learn(self, batch: Batch, codes: Codes) -> Array | None:
        """How much each row counts where a model is learned; what it is worth is not weighed so."""
        if self._class_weights is None:
            return batch.weights
        of_class: Array = self._class_weights[codes]
        return of_class if batch.weights is None else of_class * batch.weights

    def batches(self) -> Iterator[Batch]:
        """All labelled rows, some at a time."""
        if self._held is not None:
            yield from self._held
            return
        held: list[Batch] = []
        size, self.unlabelled, self.unweighted = 0, 0, 0
        for batch in self._read():
            size += batch.inputs.size
            held = [*held, batch] if size <= _HELD else []
            yield batch
        self._held = held if size <= _HELD else None

    # --- reading ----------------------------------------------------------------------------------

    def _read(self) -> Iterator[Batch]:
        rows = inputs_of_rows(self._session, self._data, self.inputs, self.named.columns)
        for inputs, found in rows:
            self.bytes_read += inputs.nbytes + sum(map(_size, found.values()))
            yield self._batch(inputs, found)

    def _batch(self, inputs: Array, found: dict[str, Array]) -> Batch:
        """The labelled rows of some."""
        named = self.named
        labels = found[named.label]
        there = ~_missing(labels)
        self.unlabelled += int(np.count_nonzero(~there))
        weights = None if named.weights is None else found[named.weights]
        if weights is not None:
            weighed = np.isfinite(weights) & (weights > 0)
            self.unweighted += int(np.count_nonzero(there & ~weighed))
            there &= weighed
        row_marks = hashes_of_rows(inputs, self.seed)
        batch = Batch(inputs, labels, weights, row_marks, self._marks(row_marks, found))
        return batch if there.all() else batch.only(there)

    def _marks(self, row_marks: NDArray[np.uint64], found: dict[str, Array]) -> Array:
        if self.named.time is not None:
            return _as_ordered(found[self.named.time])
        if self.named.groups is not None:
            return hashed(found[self.named.groups], self.seed)
        return row_marks


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


def _as_ordered(values: Array) -> Array:
    """Values in an order; one that is missing is before all."""
    if values.dtype == object:
        return np.array(["" if one is None else one for one in values.tolist()], dtype=object)
    return np.where(np.isnan(values), -np.inf, values)


def _size(column: Array) -> int:
    """The bytes of its values."""
    if column.dtype != object:
        return column.nbytes
    return sum(len(one.encode()) for one in column.tolist() if one is not None)
