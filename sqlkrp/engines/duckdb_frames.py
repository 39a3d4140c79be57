"""Relations of DuckDB, and tables of other libraries in it: all that give a stream of Arrow's.

It needs no other library for these, where it is shown the stream and nothing else of the table.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.duckdb import DuckDB
from sqlkrp.engines.duckdb_running import explained, in_short
from sqlkrp.engines.inputs import Input
from sqlkrp.engines.statistics import statistics_of, values_of
from sqlkrp.engines.texts import dates_in, texts_in
from sqlkrp.errors import ColumnError
from sqlkrp.maps.arrays import ArraySource
from sqlkrp.maps.frames import (
    Columns,
    is_relation,
    is_streamed,
    kind_of,
    names_of,
    text_names,
    to_floats,
    within,
)
from sqlkrp.maps.source import NUMBER, Statistics
from sqlkrp.sql.encoding import made_of_columns
from sqlkrp.sql.names import quote
from sqlkrp.stages import Category, Program

__all__ = ["RelationSource", "columns_of", "keep_frame"]

# What NumPy has a type for; other numbers become doubles on the way.
_OF_NUMPY = re.compile(r"U?(TINY|SMALL|BIG)?INT(EGER)?|FLOAT|DOUBLE")
# Columns of pandas' that hold numbers as objects, or sparse ones: DuckDB reads some as texts.
_ODD = re.compile(r"object|decimal.*|Sparse.*")


class _Stream:
    """The stream of a table, and nothing else of it, by which DuckDB would know its library."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def columns_of(data: Any) -> Columns:
    """The columns of a relation, or of a table that gives a stream of Arrow's, as NumPy's arrays.

    Numbers are masked where they are missing; anything else is None, or no time, there.
    """
    with contextlib.ExitStack() as stack, _told(data):
        relation = data
        if not is_relation(data):
            relation = _streamed(stack.enter_context(contextlib.closing(duckdb.connect())), data)
        found = relation.project(_projected(relation)).fetchnumpy()
    return Columns((name, _filled(column)) for name, column in found.items())


def keep_frame(connection: duckdb.DuckDBPyConnection, name: str, frame: Any) -> None:
    """Make rows in memory a table or a view of this name, which is read as often as it takes."""
    frame = within(frame)
    with _told(frame):
        if is_streamed(frame) or is_relation(frame):
            relation = _streamed(connection, frame)
            relation.project(_projected(relation)).create(name)
            return
        connection.register(name, _plain(frame))


def _streamed(connection: duckdb.DuckDBPyConnection, table: Any) -> Any:
    names = getattr(table, "column_names", None)
    if isinstance(names, list):
        text_names(names)  # DuckDB would give one that is there twice another name
    return connection.from_arrow(_Stream(table))


def _projected(relation: Any) -> str:
    """The columns of a relation as NumPy has them."""
    columns = zip(relation.columns, map(str, relation.types), strict=True)
    return ", ".join(_column(quote(name, DuckDB.dialect), kind) for name, kind in columns)


def _column(name: str, kind: str) -> str:
    if kind == '"NULL"':  # a type of Arrow's for nothing, which not every library writes well
        return f"CAST(NULL AS VARCHAR) AS {name}"
    if kind.startswith("ENUM"):
        return f"CAST({name} AS VARCHAR) AS {name}"
    if DuckDB.kind(kind) == NUMBER and not _OF_NUMPY.fullmatch(kind):
        return f"CAST({name} AS DOUBLE) AS {name}"
    return name


def _filled(column: Any) -> NDArray[Any]:
    """A column of which only numbers are masked."""
    if not isinstance(column, np.ma.MaskedArray) or column.dtype.kind in "biuf":
        return np.asanyarray(column)
    nothing: Any = None if column.dtype.kind == "O" else np.array("NaT", column.dtype)
    return np.where(np.ma.getmaskarray(column), nothing, column.data)


def _plain(frame: Any) -> Any:
    """A DataFrame of pandas with numbers as numbers."""
    if isinstance(frame, Mapping):
        import pandas

        frame = pandas.DataFrame(frame)
    odd = [one for one in names_of(frame) if _ODD.fullmatch(str(frame[one].dtype))]
    numbers = [name for name in odd if kind_of(frame[name]) == NUMBER]
    return frame.assign(**{name: to_floats(name, frame[name]) for name in numbers})


@contextlib.contextmanager
def _told(data: Any) -> Iterator[None]:
    """What DuckDB cannot read of a table, in one line."""
    try:
        yield
    except (duckdb.Error, TypeError, ValueError) as bad:
        if isinstance(bad, ColumnError):
            raise
        raise ColumnError(f"cannot read this {type(data).__name__}: {in_short(bad)}") from bad


# What statements call a relation that is asked by itself.
_RELATION = "sqlkrp_relation"


class RelationSource:
    """A DuckDB relation of the user's own connection as something a map can be fitted to.

    The relation's connection is not to be had, and not needed: it aggregates by itself.
    """

    keys: Collection[str] = ()
    has_values = True
    is_sparse = False
    no_rows = ""

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        self.kinds = {name: DuckDB.kind(kind) for name, kind in types.items()}
        sorts = DuckDB.texts_and_dates(types)
        self._data = Input("", types, self.kinds, "the relation", texts_and_dates=sorts)

    def statistics(self, columns: Sequence[str]) -> Statistics:
        return statistics_of(columns, self._aggregate, DuckDB.dialect)

    def head(self, columns: Sequence[str], count: int) -> NDArray[np.float64]:
        with explained("a look at the first rows"):
            rows = self._column_values(columns).limit(count).fetchall()
        return np.array(rows, dtype="float64").reshape(-1, len(columns))

    def sample(
        self, columns: Sequence[str], count: int, rng: np.random.Generator, spare: int = 0
    ) -> NDArray[np.float64]:
        return self._fetched(columns).sample(columns, count, rng, spare)

    def means(self, program: Program) -> NDArray[np.float64]:
        return self._fetched(program.prepare.columns).means(program)

    def _fetched(self, columns: Sequence[str]) -> ArraySource:
        """These columns in memory: rows of a relation cannot be drawn where it is."""
        listed = ", ".join(quote(name, DuckDB.dialect) for name in columns)
        return ArraySource(columns_of(self._relation.project(listed)))

    @property
    def texts_and_dates(self) -> Mapping[str, str]:
        """By their types."""
        return self._data.texts_and_dates

    def dates_in(self, columns: Sequence[str]) -> list[str]:
        return dates_in(columns, _RELATION, self._rows, DuckDB.dialect)

    def values(self, columns: Sequence[str], at_most: int) -> dict[str, list[str | None] | None]:
        return texts_in(columns, at_most, _RELATION, self._rows, DuckDB.dialect)

    def encoded(self, made: Sequence[Category]) -> RelationSource:
        data = self._data
        items = made_of_columns(made, DuckDB.dialect, data.booleans, data.texts)
        return RelationSource(self._relation.project(", ".join(["*", *items])))

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement that reads the relation by a name that it alone has."""
        with explained("a look at its texts"):
            rows: list[tuple[Any, ...]] = self._relation.query(_RELATION, statement).fetchall()
        return rows

    def _aggregate(self, columns: Sequence[str], expressions: Sequence[str]) -> tuple[Any, ...]:
        with explained("computing the columns' statistics"):
            values = self._column_values(columns)
            rows: list[tuple[Any, ...]] = values.aggregate(", ".join(expressions)).fetchall()
        return rows[0]

    def _column_values(self, columns: Sequence[str]) -> Any:
        return self._relation.project(", ".join(values_of(self._data, DuckDB.dialect, columns)))
