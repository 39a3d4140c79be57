"""What a map learns from the data it is fitted to: names, kinds of columns, and at most moments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.memory import ENTRY_BYTES, require_memory
from sqlkrp.stages import (
    Category,
    Prepare,
    Program,
    Stage,
    SumOfProducts,
    apply,
)

__all__ = [
    "BOOLEAN",
    "DATE",
    "FLOAT32",
    "NUMBER",
    "NUMERIC",
    "TEXT",
    "Inputs",
    "NamesSource",
    "Source",
    "Statistics",
    "choose_rows",
]

#: The kinds of columns. Any other kind is left out, and its text says why.
FLOAT32 = "float32"
NUMBER = "number"
BOOLEAN = "boolean"
NUMERIC = (FLOAT32, NUMBER, BOOLEAN)
#: What else a column may be, of which inputs are made.
TEXT = "text"
DATE = "date"


@dataclass(frozen=True)
class Statistics:
    """What some columns hold, over their values that are not missing."""

    count: NDArray[np.int64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    min: NDArray[np.float64]
    max: NDArray[np.float64]
    zeros: NDArray[np.int64]
    """How many values are 0."""
    whole: NDArray[np.bool_]
    """Whether all values are whole numbers."""

    def rounded(self) -> Statistics:
        """With deviations of 24 bits, and means to as small a share of these.

        So they do not depend on the order of sums. A mean may be far larger than its deviation,
        and what is left when it is subtracted must not be rounding.
        """
        mean = np.where(self.varies, _rounded(self.mean, self.std), self.min)
        return replace(self, mean=mean, std=_rounded(self.std, self.std))

    def without_gaps(self) -> Statistics:
        """With zeros for columns that hold no value."""
        there = self.count > 0
        numbers = {
            name: np.where(there, getattr(self, name), 0.0)
            for name in ("mean", "std", "min", "max")
        }
        return replace(self, **numbers)

    @property
    def varies(self) -> NDArray[np.bool_]:
        """Whether a column holds more than one value."""
        return self.max > self.min

    @property
    def indicates(self) -> NDArray[np.bool_]:
        """Whether a column holds nothing but 0 and 1, both of them."""
        found: NDArray[np.bool_] = self.whole & (self.min == 0) & (self.max == 1)
        return found

    @property
    def size(self) -> NDArray[np.float64]:
        """The largest absolute value of each column."""
        return np.maximum(np.abs(self.min), np.abs(self.max))


def _rounded(numbers: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers to 2^-24 of the powers of two above some sizes."""
    _, power = np.frexp(sizes)
    rounded: NDArray[np.float64] = np.ldexp(np.round(np.ldexp(numbers, 24 - power)), power - 24)
    # What is shifted out of range is left as it is.
    return np.where(np.isfinite(rounded), rounded, numbers)


_FEWER = "use fewer landmarks (n_components of a Nystroem, n_landmarks of a KGRP)"


class Source(Protocol):
    """Anything a map can be fitted to."""

    @property
    def kinds(self) -> dict[str, str]:
        """Every column's kind, in order: one of ``NUMERIC``, or a type that is left out."""

    @property
    def keys(self) -> Collection[str]:
        """The columns that are known to name rows: no features unless they are asked for."""

    @property
    def has_values(self) -> bool:
        """Whether there are rows, and not only names."""

    @property
    def is_sparse(self) -> bool:
        """Whether rows come as (row, feature, value), where an absent value is 0."""

    def statistics(self, columns: Sequence[str]) -> Statistics:
        """What these columns hold; read only when the map needs it."""

    def head(self, columns: Sequence[str], count: int) -> NDArray[np.float64]:
        """These columns of the first so many rows, in no order; NaN for what is missing."""

    @property
    def no_rows(self) -> str:
        """Why it is no :class:`RowSource`, for a message; empty if it is one."""

    # --- what is made of columns that are no numbers ---

    @property
    def texts_and_dates(self) -> Mapping[str, str]:
        """The columns of texts (``TEXT``), and of dates and times (``DATE``)."""

    def dates_in(self, columns: Sequence[str]) -> list[str]:
        """Of columns of texts, those whose texts are all dates or times as ISO 8601 writes them."""

    def values(self, columns: Sequence[str], at_most: int) -> dict[str, list[str | None] | None]:
        """The texts that columns hold, in any order, with None if one is missing.

        None in their place of a column that has more than so many.
        """

    def encoded(self, made: Sequence[Category]) -> Source:
        """The source with what is made of its columns as columns of numbers beside them."""


class RowSource(Source, Protocol):
    """What rows can be drawn from, and programs be averaged over."""

    def sample(
        self, columns: Sequence[str], count: int, rng: np.random.Generator, spare: int = 0
    ) -> NDArray[np.float64]:
        """These columns of so many rows, drawn without replacement; NaN for what is missing.

        And of some to spare, as far as there are any.
        """

    def means(self, program: Program) -> NDArray[np.float64]:
        """The average of each output of a program, over the rows that have outputs."""


def _rows_of(source: Source) -> RowSource:
    """The source, if rows can be drawn from it."""
    if source.no_rows:
        raise ParameterError(source.no_rows)
    return cast(RowSource, source)


@dataclass(frozen=True)
class Inputs:
    """What a map is drawn from: how many inputs there are, and for some maps their values."""

    prepare: Prepare
    source: Source
    before: tuple[Stage, ...] = ()
    """Stages that the inputs have gone through already, behind Prepare."""

    @property
    def count(self) -> int:
        """The inputs of a row."""
        return (self.prepare, *self.before)[-1].n_outputs

    def after(self, stages: Sequence[Stage]) -> Inputs:
        """The inputs of what comes behind these stages."""
        return Inputs(self.prepare, self.source, (*self.before, *stages))

    def rows(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """So many prepared rows of the source that have no missing value."""
        require_memory(
            ENTRY_BYTES * count * (self.count + count),
            f"{count:,} landmarks of {self.count:,} columns",
            _FEWER.removeprefix("use "),
        )
        spare = 0
        while True:
            drawn = _rows_of(self.source).sample(self.prepare.columns, count, rng, spare)
            if len(drawn) < count:
                raise ParameterError(
                    f"{count:,} rows are to be drawn, and the table has {len(drawn):,} "
                    f"(n_samples={len(drawn)}): {_FEWER}"
                )
            whole_rows = self._whole_rows(drawn)
            if len(whole_rows) == count:
                return whole_rows
            if len(whole_rows) > count:
                return whole_rows[np.sort(rng.choice(len(whole_rows), count, replace=False))]
            if len(drawn) < count + spare:
                raise ColumnError(
                    f"{count:,} rows without a missing value are to be drawn, and there are "
                    f"{len(whole_rows):,}: {_FEWER}, or clean the table"
                )
            spare = 2 * spare + count

    def some_rows(self, most: int, rng: np.random.Generator) -> NDArray[Any]:
        """Prepared rows of so many of the source, or of all, without those that miss a value.

        At least one, or ColumnError.
        """
        drawn = _rows_of(self.source).sample(self.prepare.columns, most, rng)
        whole_rows = self._whole_rows(drawn)
        if not len(whole_rows):
            raise ColumnError(
                "no row is without a missing value: clean the table, or use nulls='mean'"
            )
        return whole_rows

    def _whole_rows(self, drawn: NDArray[np.float64]) -> NDArray[Any]:
        """Rows of the source as inputs, without those that miss a value."""
        values: NDArray[Any] = drawn
        for stage in (self.prepare, *self.before):
            values = apply(stage, values)
        whole_rows: NDArray[Any] = values[np.isfinite(values).all(axis=1)]
        return whole_rows

    def means(self, *stages: Stage) -> NDArray[np.float64]:
        """The averages of what these stages make of the inputs."""
        whole = (self.prepare, *self.before, *stages)
        names = tuple(f"m{i}" for i in range(whole[-1].n_outputs))
        found = _rows_of(self.source).means(Program(whole, names))
        if not np.isfinite(found).all():
            raise ColumnError(
                "there is no average to compute: no row is without a missing value, or values are "
                "too large; clean the table, or rescale it in a view"
            )
        return found

    def rounding(self) -> NDArray[np.float64]:
        """How much of each input may be rounding, in a row of columns of their usual size."""
        d = self.prepare.n_inputs
        none, one = np.zeros(d), np.ones(d)
        plain = replace(self.prepare, shift=none, scale=one, unit_length=False, constant=None)
        found = Inputs(plain, self.source).means(SumOfProducts.squares(d))
        stages = (self.prepare, *self.before)
        names = tuple(f"r{i}" for i in range(self.count))
        eps = float(np.finfo(self.prepare.dtype).eps)
        (rounded,) = Program(stages, names).rounding(np.sqrt(found)[None], eps)
        return np.asarray(rounded)


_NEEDS_DATA = (
    "this map is fitted to rows, and only column names were given: fit it to a table or a DataFrame"
)


class NamesSource:
    """A bare list of column names, taken as numbers; there is no data to compute moments from."""

    keys: Collection[str] = ()
    has_values = False
    is_sparse = False
    no_rows = _NEEDS_DATA
    texts_and_dates: Mapping[str, str] = MappingProxyType({})

    def __init__(self, names: Sequence[str]) -> None:
        self.kinds = dict.fromkeys(names, NUMBER)
        if len(self.kinds) < len(names):
            twice = next(name for name in self.kinds if list(names).count(name) > 1)
            raise ColumnError(f"column name {twice!r} is given twice: name each once")

    def statistics(self, columns: Sequence[str]) -> Statistics:
        raise ParameterError(
            "scaling and nulls='mean' need data, and only column names were given: "
            "fit to a table or a DataFrame, or use scaling=None and another policy"
        )

    def head(self, columns: Sequence[str], count: int) -> NDArray[np.float64]:
        raise ParameterError(_NEEDS_DATA)

    def dates_in(self, columns: Sequence[str]) -> list[str]:
        raise ParameterError(_NEEDS_DATA)

    def values(self, columns: Sequence[str], at_most: int) -> dict[str, list[str | None] | None]:
        raise ParameterError(_NEEDS_DATA)

    def encoded(self, made: Sequence[Category]) -> Source:
        raise ParameterError(_NEEDS_DATA)


def choose_rows(
    n_rows: int, count: int, rng: np.random.Generator, spare: int = 0
) -> NDArray[np.int64]:
    """The places of so many of the rows and of some to spare, or of all, in order."""
    places: NDArray[np.int64] = np.sort(
        rng.choice(n_rows, min(n_rows, count + spare), replace=False)
    )
    return places
