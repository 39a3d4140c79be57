"""Rows in memory as something a map can be fitted to, and what a user passes to ``fit``."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError, MissingValueError, ParameterError
from sqlkrp.maps.frames import (
    has_order,
    is_relation,
    is_sparse,
    is_table,
    kind_of,
    local,
    names_of,
    to_floats,
    without_names,
)
from sqlkrp.maps.source import DATE, TEXT, NamesSource, Source, Statistics, choose_rows
from sqlkrp.stages import Category, Program, days_of, encoded, is_missing, missing_message
from sqlkrp.stages.values import SLAB_VALUES

__all__ = ["ArraySource", "SparseSource", "as_source", "order_of", "require_whole"]


class ArraySource:
    """A table in memory: an array of two dimensions (columns x0, x1, ...), or columns by name."""

    keys: Collection[str] = ()
    has_values = True
    is_sparse = False
    no_rows = ""

    order: tuple[str, ...] | None = ()
    """The names of its columns, in order; none where there are only places; None without order."""
    _has_names = False

    def __init__(self, data: Any) -> None:
        if is_table(data):
            names = names_of(data)
            self._has_names, self.order = True, tuple(names) if has_order(data) else None
            self._columns = {name: data[name] for name in names}
            shape = len(next(iter(self._columns.values()), ())), len(names)
        else:
            table = without_names(data)
            self._columns = {f"x{i}": table[:, i] for i in range(table.shape[1])}
            shape = table.shape
        _require_size(shape)
        self._n_rows = shape[0]
        self.kinds = {name: kind_of(column) for name, column in self._columns.items()}

    def statistics(self, columns: Sequence[str]) -> Statistics:
        rows = [self._moments(name) for name in columns]
        return Statistics(*(np.array(column) for column in zip(*rows, strict=True)))

    def _moments(self, name: str) -> tuple[Any, ...]:
        values = to_floats(name, self._columns[name])
        return _moments(values[np.isfinite(values)])

    def missing(self, columns: Sequence[str], moments: Statistics | None = None) -> dict[str, int]:
        """How many values these columns miss, by name; what is known of them says it at once."""
        if moments is None:
            return {name: self._missing_of(name) for name in columns}
        counts = (self._n_rows - moments.count).tolist()
        return dict(zip(columns, counts, strict=True))

    def _missing_of(self, name: str) -> int:
        column = self._columns[name]
        plain = isinstance(column, np.ndarray) and not isinstance(column, np.ma.MaskedArray)
        values = column if plain and column.dtype.kind in "biuf" else to_floats(name, column)
        return int(np.count_nonzero(~np.isfinite(values)))

    def head(self, columns: Sequence[str], count: int) -> NDArray[np.float64]:
        return self._values(columns, slice(count))

    def sample(
        self, columns: Sequence[str], count: int, rng: np.random.Generator, spare: int = 0
    ) -> NDArray[np.float64]:
        places = choose_rows(self._n_rows, count, rng, spare)
        return self._values(columns, places)

    def means(self, program: Program) -> NDArray[np.float64]:
        # A slab of rows at a time: there may be as many outputs as pairs of columns.
        slab = max(1, SLAB_VALUES // len(program.names))
        total, count = np.zeros(len(program.names)), 0
        with np.errstate(over="ignore", invalid="ignore"):
            for inputs in self._slabs(program.prepare.columns, slab):
                values = program.apply(inputs).astype("float64")
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

    def _values(self, columns: Sequence[str], rows: Any) -> NDArray[np.float64]:
        """These columns of some rows."""
        return np.column_stack([to_floats(name, self._columns[name])[rows] for name in columns])

    def _slabs(self, columns: Sequence[str], size: int) -> Iterator[NDArray[np.float64]]:
        """These columns of all rows, so many at a time."""
        inputs = self._values(columns, slice(None))
        for first in range(0, len(inputs), size):
            yield inputs[first : first + size]


class SparseSource(ArraySource):
    """The rows of a sparse matrix of SciPy's: those of the array that it stands for.

    An entry that is not there is 0, as in the array, so columns are scaled as any others.
    """

    def __init__(self, data: Any) -> None:
        if len(data.shape) != 2:
            without_names(data)  # which says how it is to be
        _require_size(data.shape)
        table = data.tocsc()
        if not table.has_canonical_format:
            table = table.copy()  # it may be the user's own
            table.sum_duplicates()
        self._by_columns, self._by_rows = table, data.tocsr()
        self._n_rows = table.shape[0]
        self._places = {f"x{i}": i for i in range(table.shape[1])}
        kind = kind_of(without_names(table[:0])[:, 0])
        self.kinds = dict.fromkeys(self._places, kind)

    def _entries(self, name: str) -> NDArray[np.float64]:
        """What a column has of entries."""
        table, place = self._by_columns, self._places[name]
        return to_floats(name, table.data[table.indptr[place] : table.indptr[place + 1]])

    def _moments(self, name: str) -> tuple[Any, ...]:
        entries = self._entries(name)
        return _moments(entries[np.isfinite(entries)], self._n_rows - len(entries))

    def _missing_of(self, name: str) -> int:
        return int(np.count_nonzero(~np.isfinite(self._entries(name))))

    def _values(self, columns: Sequence[str], rows: Any) -> NDArray[np.float64]:
        places = [self._places[name] for name in columns]
        return without_names(self._by_rows[rows][:, places]).astype("float64")

    def _slabs(self, columns: Sequence[str], size: int) -> Iterator[NDArray[np.float64]]:
        size = min(size, max(1, SLAB_VALUES // len(columns)))
        for first in range(0, self._n_rows, size):
            yield self._values(columns, slice(first, first + size))


def _require_size(shape: tuple[int, ...]) -> None:
    """Raise ColumnError unless there are rows and columns; in words that users of others know."""
    for count, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if not count:
            raise ColumnError(
                f"there are 0 {what} (shape={shape}) while a minimum of 1 is required: give rows "
                "of columns, or a list of the columns' names"
            )


def _moments(values: NDArray[np.float64], absent: int = 0) -> tuple[Any, ...]:
    """The fields of Statistics, of a column without missing values, and of zeros beside them."""
    if not len(values):
        count = absent
        return (count, 0.0, 0.0, 0.0, 0.0, count, True) if count else _NO_VALUE
    low, high = float(values.min()), float(values.max())
    # By a power of two, which rounds nothing, so that no sum or square leaves the range.
    power = int(np.frexp(max(abs(low), abs(high)))[1])
    shares = np.ldexp(values, -power)
    mean, deviation = (math.ldexp(float(one), power) for one in _spread(shares, absent))
    zeros = int(np.count_nonzero(values == 0)) + absent
    whole = bool((values == np.round(values)).all())
    if absent:
        low, high = min(low, 0.0), max(high, 0.0)
    return len(values) + absent, mean, deviation, low, high, zeros, whole


def _spread(values: NDArray[np.float64], absent: int) -> tuple[float, float]:
    """The mean and the deviation of values, and of zeros beside them."""
    if not absent:
        return float(values.mean()), float(values.std())
    count = len(values) + absent
    mean = float(values.sum()) / count
    squares = float(np.square(values - mean).sum()) + absent * mean**2
    return mean, math.sqrt(squares / count)


_NO_VALUE = (0, np.nan, np.nan, np.nan, np.nan, 0, False)


def as_source(data: Any) -> Source:
    """Wrap what a user passes to ``fit``."""
    if is_relation(data):  # it aggregates where it is
        from sqlkrp.engines.duckdb_frames import RelationSource

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
    return SparseSource(data) if is_sparse(data) else ArraySource(local(data))


def order_of(source: Source) -> tuple[str, ...] | None:
    """The names of columns in the order that rows in memory have them; None of a database."""
    return source.order if isinstance(source, ArraySource) else None


def require_whole(
    source: Source, columns: Sequence[str], told: Sequence[str], moments: Statistics | None
) -> None:
    """Raise MissingValueError if rows in memory miss values; a database is not asked for it."""
    if isinstance(source, ArraySource):
        counts = source.missing(columns, moments)
        if any(counts.values()):
            named = zip(told, counts.values(), strict=True)
            raise MissingValueError(missing_message(dict(named)))


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
