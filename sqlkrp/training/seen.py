"""What the rows of training hold: statistics of all, and some in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.maps.preparing import fits_in
from sqlkrp.maps.source import NUMBER, Statistics, choose_rows
from sqlkrp.stages import Array, Program
from sqlkrp.training.folds import TEST, Copies, mixed
from sqlkrp.training.labelled import Part, hashed

__all__ = ["Looking", "Sample", "Seen"]

Codes = NDArray[np.int64]

# What of a column's size its deviation has to be.
_LEAST_SHARE = 1e-13


@dataclass(frozen=True)
class Sample:
    """Some rows of training, in memory, in an order that does not depend on the engine."""

    inputs: Array
    labels: Array
    codes: Codes
    folds: Codes
    weights: Array | None
    learning_weights: Array | None
    """How much each row counts where a model is learned."""

    def only(self, chosen: NDArray[np.bool_]) -> Sample:
        """Some of the rows."""
        weights, learning = (
            None if one is None else one[chosen] for one in (self.weights, self.learning_weights)
        )
        return Sample(
            self.inputs[chosen],
            self.labels[chosen],
            self.codes[chosen],
            self.folds[chosen],
            weights,
            learning,
        )


class Looked:
    """What rows of training hold: sums of their columns, and some of them, as drawn by a hash."""

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._seed = size, seed
        self._moments: _Moments | None = None
        self._parts: list[tuple[NDArray[np.uint64], Sample]] = []
        self._largest: np.uint64 | None = None

    def look(self, part: Part, copies: Copies) -> None:
        """Rows, of which those that are held out are not looked at."""
        batch, training = part.batch, part.places != TEST
        rows = Sample(
            batch.inputs, batch.labels, part.codes, part.places, batch.weights, part.weights
        )
        rows, marks = rows.only(training), batch.row_marks[training]
        if not len(marks):
            return
        if self._moments is None:
            self._moments = _Moments(rows.inputs)
        self._moments.look(rows.inputs)
        labels = mixed(hashed(rows.labels, self._seed))
        # Each of equal rows has a place of its own: else a sample would be of them alone.
        self._draw(mixed(copies.apart(marks, labels) ^ labels, self._seed + 1), rows)

    def add(self, other: Looked) -> None:
        """Rows that were looked at elsewhere."""
        if self._moments is None:
            self._moments = other._moments
        elif other._moments is not None:
            self._moments.add(other._moments)
        for order, rows in other._parts:
            self._draw(order, rows)

    def _draw(self, order: NDArray[np.uint64], rows: Sample) -> None:
        if self._largest is not None:
            few = order < self._largest
            rows, order = rows.only(few), order[few]
        self._parts.append((order, rows))
        if sum(len(one) for one, _ in self._parts) > 2 * self._size:
            self.cut()

    def cut(self) -> None:
        """Keep no more rows than were asked for."""
        if not self._parts:
            return
        order = np.concatenate([one for one, _ in self._parts])
        places = np.argsort(order, kind="stable")[: self._size]
        together = [_joined([getattr(rows, name) for _, rows in self._parts], places)
                    for name in (one.name for one in fields(Sample))]  # fmt: skip
        self._parts = [(order[places], Sample(*together))]
        if len(places) == self._size:
            self._largest = order[places[-1]]

    @property
    def folds(self) -> set[int]:
        """Those that rows were drawn from."""
        return {one for _, rows in self._parts for one in np.unique(rows.folds).tolist()}

    def all(self) -> tuple[Statistics, Sample]:
        """What all rows hold that were looked at, and some of them."""
        self.cut()
        ((_, drawn),) = self._parts
        assert self._moments is not None
        return self._moments.statistics(), drawn


@dataclass(frozen=True)
class Looking:
    """The pass that looks at rows, to draw so many of them."""

    size: int
    seed: int

    def over(self, rows: Iterator[Part]) -> Iterator[Looked]:
        """Some rows."""
        looked, copies = Looked(self.size, self.seed), Copies()
        for part in rows:
            looked.look(part, copies)
        looked.cut()
        yield looked

    def added(self, found: Iterator[Looked]) -> Iterator[Looked]:
        """All rows."""
        looked = Looked(self.size, self.seed)
        for one in found:
            looked.add(one)
        looked.cut()
        yield looked


class Seen:
    """What the rows of training hold, as something a map can be fitted to."""

    keys: Sequence[str] = ()
    has_values = True
    is_sparse = False
    no_rows = ""

    def __init__(self, columns: Sequence[str], kinds: Mapping[str, str], looked: Looked) -> None:
        self.columns = tuple(columns)
        self.kinds = {name: kinds.get(name, NUMBER) for name in columns}
        self._all, self.drawn = looked.all()

    @property
    def usable(self) -> list[str]:
        """The inputs that hold more than one value: the others say nothing."""
        all_of_them = self._all
        fits = fits_in(all_of_them, "float64")
        fits &= all_of_them.std > _LEAST_SHARE * all_of_them.size  # else it is rounding
        chosen = all_of_them.varies & fits
        return [name for name, useful in zip(self.columns, chosen, strict=True) if useful]

    @property
    def numbers(self) -> list[str]:
        """Those of them that are more than indicators."""
        plain = dict(zip(self.columns, self._all.indicates, strict=True))
        return [name for name in self.usable if not plain[name]]

    # --- as a source ------------------------------------------------------------------------------

    def statistics(self, columns: Sequence[str]) -> Statistics:
        """What these columns hold."""
        places = self.places(columns)
        return Statistics(*(getattr(self._all, name)[places] for name in vars(self._all)))

    def head(self, columns: Sequence[str], count: int) -> Array:
        """The first rows of the sample."""
        return self.drawn.inputs[:count, self.places(columns)]

    def places(self, columns: Sequence[str]) -> list[int]:
        """Where these columns are among the inputs."""
        known = {name: place for place, name in enumerate(self.columns)}
        return [known[name] for name in columns]

    def sample(
        self, columns: Sequence[str], count: int, rng: np.random.Generator, spare: int = 0
    ) -> Array:
        """So many rows of the sample."""
        places = choose_rows(len(self.drawn.inputs), count, rng, spare)
        return self.drawn.inputs[places][:, self.places(columns)]

    def means(self, program: Program) -> Array:
        """The average of each output of a program, over the sample."""
        values = program.apply(self.drawn.inputs[:, self.places(program.prepare.columns)])
        whole: Array = values.astype("f8")
        whole = whole[~np.isnan(whole).any(axis=1)]
        return np.asarray(whole.mean(axis=0))


def _joined(parts: Sequence[Any], places: NDArray[np.int64]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)[places]


class _Moments:
    """Sums that say what columns hold, of all rows that go by."""

    def __init__(self, first: Array) -> None:
        with np.errstate(all="ignore"):
            self.pivot = np.nan_to_num(np.nanmean(np.vstack([first, np.zeros(first.shape[1])]), 0))
        count = first.shape[1]
        self.count, self.sum, self.squares, self.zeros, self.fractions = np.zeros((5, count))
        self.low, self.high = np.full(count, np.inf), np.full(count, -np.inf)

    def look(self, inputs: Array) -> None:
        there = np.isfinite(inputs)
        missing = None if there.all() else ~there
        self.count += len(inputs) if missing is None else there.sum(axis=0)
        moved = inputs - self.pivot
        if missing is not None:
            moved[missing] = 0
        self.sum += moved.sum(axis=0)
        self.squares += np.einsum("ij,ij->j", moved, moved)
        self.zeros += (inputs == 0).sum(axis=0)
        # What is missing counts as whole.
        parts = np.mod(inputs if missing is None else np.where(there, inputs, 0), 1)
        self.fractions += np.count_nonzero(parts, axis=0)
        low, high = (inputs, inputs) if missing is None else (
            np.where(there, inputs, np.inf), np.where(there, inputs, -np.inf)
        )  # fmt: skip
        self.low = np.minimum(self.low, low.min(axis=0))
        self.high = np.maximum(self.high, high.max(axis=0))

    def add(self, other: _Moments) -> None:
        """Other rows' sums, which are about another pivot."""
        apart = other.pivot - self.pivot
        self.squares += other.squares + 2 * apart * other.sum + other.count * apart**2
        self.sum += other.sum + other.count * apart
        self.count += other.count
        self.zeros += other.zeros
        self.fractions += other.fractions
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)

    def statistics(self) -> Statistics:
        count = np.maximum(self.count, 1)
        mean = self.sum / count
        deviation = np.sqrt(np.maximum(self.squares / count - mean**2, 0))
        there = self.count > 0
        return Statistics(
            count=self.count.astype("i8"),
            mean=np.where(there, self.pivot + mean, np.nan),
            std=np.where(there, deviation, np.nan),
            min=np.where(there, self.low, np.nan),
            max=np.where(there, self.high, np.nan),
            zeros=self.zeros.astype("i8"),
            whole=there & (self.fractions == 0),
        )
