"""What a map learns from the data it is fitted to: names, kinds of columns, and at most moments."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
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
    days_of,
    encoded,
    is_missing,
)
from sqlkrp.stages.values import SLAB_VALUES

__all__ = [
    "BOOLEAN",
    "DATE",
    "FLOAT32",
    "NUMBER",
    "NUMERIC",
    "TEXT",
    "ArraySource",
    "Inputs",
    "NamesSource",
    "Source",
    "Statistics",
    "as_source",
    "choose_rows",
    "is_table",
    "to_array",
    "to_floats",
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
            prepared = drawn
            for stage in (self.prepare, *self.before):
                prepared = apply(stage, prepared)
            whole_rows: NDArray[Any] = prepared[np.isfinite(prepared).all(axis=1)]
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


class ArraySource:
    """A two-dimensional array (columns x0, x1, ...) or a pandas DataFrame."""

    keys: Collection[str] = ()
    has_values = True
    is_sparse = False
    no_rows = ""

    def __init__(self, data: Any) -> None:
        self._has_names = is_table(data)
        if self._has_names:
            names = data.columns if hasattr(data, "columns") else data
            self._columns = {name: data[name] for name in _text_names(names)}
        else:
            table = to_array(data)
            if table.ndim != 2:
                raise ParameterError(
                    f"expected a table of rows and columns, got {table.ndim} dimension(s): "
                    "reshape it to (rows, columns)"
                )
            self._columns = {f"x{i}": table[:, i] for i in range(table.shape[1])}
        self.kinds = {name: _kind(_dtype(column)) for name, column in self._columns.items()}

    def statistics(self, columns: Sequence[str]) -> Statistics:
        rows = []
        for name in columns:
            values = to_floats(name, self._columns[name])
            rows.append(_moments(values[np.isfinite(values)]))
        return Statistics(*(np.array(column) for column in zip(*rows, strict=True)))

    def head(self, columns: Sequence[str], count: int) -> NDArray[np.float64]:
        return np.column_stack([to_floats(one, self._columns[one][:count]) for one in columns])

    def sample(
        self, columns: Sequence[str], count: int, rng: np.random.Generator, spare: int = 0
    ) -> NDArray[np.float64]:
        places = choose_rows(len(self._columns[columns[0]]), count, rng, spare)
        return self._values(columns)[places]

    def means(self, program: Program) -> NDArray[np.float64]:
        inputs = self._values(program.prepare.columns)
        # A slab of rows at a time: there may be as many outputs as pairs of columns.
        slab = max(1, SLAB_VALUES // len(program.names))
        total, count = np.zeros(len(program.names)), 0
        with np.errstate(over="ignore", invalid="ignore"):
            for first in range(0, len(inputs), slab):
                values = program.apply(inputs[first : first + slab]).astype("float64")
                whole_rows = values[~np.isnan(values).any(axis=1)]
                total += whole_rows.sum(axis=0)
                count += len(whole_rows)
            found: NDArray[np.float64] = total / count if count else np.full_like(total, np.nan)
        return found

    @cached_property
    def texts_and_dates(self) -> Mapping[str, str]:
        """By what they hold, as columns of objects may be anything."""
        if not self._has_names:
            return {}
        sorts = {name: _sort_of(column) for name, column in self._columns.items()}
        return {name: sort for name, sort in sorts.items() if sort is not None}

    def dates_in(self, columns: Sequence[str]) -> list[str]:
        held = {name: self._held(name) - {None} for name in columns}
        return [
            name for name, texts in held.items() if texts and np.isfinite(days_of([*texts])).all()
        ]

    def values(self, columns: Sequence[str], at_most: int) -> dict[str, list[str | None] | None]:
        held = {name: self._held(name) for name in columns}
        return {
            name: [*texts] if len(texts - {None}) <= at_most else None
            for name, texts in held.items()
        }

    def _held(self, name: str) -> set[str | None]:
        """The texts of a column, and None for what is missing."""
        values = np.asarray(self._columns[name], dtype=object).tolist()
        return {None if is_missing(value) else value for value in values}

    def encoded(self, made: Sequence[Category]) -> Source:
        return ArraySource(
            self._columns | {one.name: encoded(one, self._columns[one.column]) for one in made}
        )

    def _values(self, columns: Sequence[str]) -> NDArray[np.float64]:
        return np.column_stack([to_floats(name, self._columns[name]) for name in columns])


def choose_rows(
    n_rows: int, count: int, rng: np.random.Generator, spare: int = 0
) -> NDArray[np.int64]:
    """The places of so many of the rows, in order, and of some to spare."""
    if count > n_rows:
        raise ParameterError(
            f"{count:,} rows are to be drawn, and the table has {n_rows:,}: {_FEWER}"
        )
    places: NDArray[np.int64] = np.sort(
        rng.choice(n_rows, min(n_rows, count + spare), replace=False)
    )
    return places


def _moments(values: NDArray[np.float64]) -> tuple[Any, ...]:
    """The fields of Statistics, of a column without missing values."""
    if not len(values):
        return 0, np.nan, np.nan, np.nan, np.nan, 0, False
    low, high = float(values.min()), float(values.max())
    # By a power of two, which rounds nothing, so that no sum or square leaves the range.
    power = int(np.frexp(max(abs(low), abs(high)))[1])
    shares = np.ldexp(values, -power)
    mean, deviation = (math.ldexp(float(one), power) for one in (shares.mean(), shares.std()))
    zeros = int(np.count_nonzero(values == 0))
    whole = bool((values == np.round(values)).all())
    return len(values), mean, deviation, low, high, zeros, whole


def as_source(data: Any) -> Source:
    """Wrap what a user passes to ``fit``."""
    # A DuckDB relation aggregates where it is; it is known by its name, so that duckdb is
    # imported only for those who have it already.
    if type(data).__name__ == "DuckDBPyRelation":
        from sqlkrp.engines.duckdb import RelationSource

        return RelationSource(data)
    if hasattr(data, "kinds") and hasattr(data, "statistics"):
        source: Source = data
        return source
    if isinstance(data, (list, tuple)) and all(isinstance(name, str) for name in data):
        return NamesSource(data)
    if isinstance(data, (str, bytes)):
        raise ParameterError(
            f"fit was given the text {data!r}: give a DataFrame, an array, a list of column names, "
            "or a table of a connected database (db.source(name))"
        )
    return ArraySource(data)


def is_table(data: Any) -> bool:
    """Whether this has named columns of values: a DataFrame, or a mapping of arrays."""
    return isinstance(data, Mapping) or (hasattr(data, "columns") and hasattr(data, "to_numpy"))


def to_array(data: Any) -> NDArray[Any]:
    """A table without names as an array; masked entries are missing."""
    if isinstance(data, np.ma.MaskedArray):
        return np.ma.filled(data.astype("float64"), np.nan)
    if hasattr(data, "tocsr"):
        raise ColumnError(
            "a sparse matrix is not read here: give dense rows (from OneHotEncoder by "
            "sparse_output=False), or in a database (row, feature, value) input"
        )
    return np.asarray(data)


def to_floats(name: str, column: Any) -> NDArray[np.float64]:
    """Values as doubles, with NaN for what is missing (also in pandas' nullable types)."""
    kind = _kind(_dtype(column))
    if kind not in NUMERIC:
        raise ColumnError(
            f"column {name!r} is of type {kind}, and the map was drawn for a number there: cast it"
            if name != "an array"
            else f"the array is of type {kind}: give numbers"
        )
    if hasattr(column, "to_numpy"):
        floats: NDArray[np.float64] = column.to_numpy(dtype="float64", na_value=np.nan)
        return floats
    return to_array(column).astype("float64")


def _dtype(column: Any) -> Any:
    return column.dtype if hasattr(column, "dtype") else np.asarray(column).dtype


def _text_names(names: Any) -> list[str]:
    texts = [name for name in names if isinstance(name, str)]
    if len(texts) < len(names):
        raise ColumnError("a DataFrame's column names must be text: use df.columns.astype(str)")
    if len(set(texts)) < len(texts):
        twice = sorted({name for name in texts if texts.count(name) > 1})
        raise ColumnError(f"column names stand twice in the DataFrame: {twice!r}; rename them")
    return texts


def _sort_of(column: Any) -> str | None:
    """Whether a column holds texts, or dates and times; None: neither, or nothing."""
    values = np.asarray(column)
    if values.dtype.kind == "M":
        return DATE
    if values.dtype.kind not in "OU":
        return None
    kinds = {type(value) for value in values.tolist() if not is_missing(value)}
    for kind, sort in ((str, TEXT), (date, DATE)):
        if kinds and all(issubclass(one, kind) for one in kinds):
            return sort
    return None


def _kind(dtype: Any) -> str:
    # pandas' nullable and Arrow types (Int64, Float32, boolean) carry NumPy's letter in .kind.
    if getattr(dtype, "kind", "O") not in "biuf" or str(dtype) == "category":
        return str(dtype)
    if dtype.kind == "b":
        return BOOLEAN
    single = str(dtype).lower().startswith("float32") or str(dtype) == "float[pyarrow]"
    return FLOAT32 if single else NUMBER
