"""Sources of rows: what a session knows of a table before anything is computed from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.errors import EngineError, MissingValueError, ParameterError
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.source import BOOLEAN, Statistics, choose_rows
from sqlkrp.sql.job import LongInput
from sqlkrp.sql.names import number, quote, soft_cast
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Query, write
from sqlkrp.stages import Program

__all__ = ["Input", "TableSource", "finite_value", "read_input"]

# Aggregates in one statement: what is planned grows with them.
_MEANS_AT_ONCE = 1500
# Columns whose statistics are one statement: 784 took 2.2 s to plan, and in parts .5 s.
_COLUMNS_AT_ONCE = 400

_MISSING = (
    "missing values (NULL, NaN or infinite) in the columns that the map is fitted to: draw it with "
    "nulls='zero', 'mean' or 'propagate', or clean the table"
)


@dataclass(frozen=True)
class Input:
    """A source as SQL: its relation, its columns and their types, and how it is laid out."""

    relation: str
    types: Mapping[str, str]
    name: str
    long: LongInput | None = None
    key_types: Mapping[str, str] | None = None
    """The columns of the table of rows, for sparse input that has one."""


def read_input(session: Session, table: TableOrFile, options: Options) -> Input:
    """Look at a table (or file): its columns, not its rows."""
    relation = session.relation(table)
    name = _spoken(table)
    types = session.describe(relation, name)
    long, rows = options.long, options.rows
    if long is None:
        return Input(relation, types, name)
    match_columns(long, types, where=name)
    if rows is None:
        return Input(relation, types, name, LongInput(*long))
    keys = session.relation(rows)
    key_types = session.describe(keys, _spoken(rows))
    match_columns([long[0]], key_types, where=_spoken(rows))
    return Input(relation, types, name, LongInput(*long, keys), key_types)


def _spoken(table: TableOrFile) -> str:
    """A table's name for messages, which are one line."""
    name = ".".join(table) if isinstance(table, tuple) else str(table)
    return name if name.isprintable() else repr(name)


def finite_value(session: Session, data: Input, column: str, dtype: str) -> tuple[str, str]:
    """A column as a number of this dtype, and the test that it is not missing, as SQL."""
    dialect = session.dialect
    truth = session.kind(data.types[column]) == BOOLEAN
    value = soft_cast(quote(column, dialect), dtype, dialect, boolean=truth)
    return value, dialect.finite(value, dtype)


class TableSource:
    """A relation of an engine as something a map can be fitted to."""

    has_values = True

    def __init__(self, session: Session, data: Input, keys: Collection[str] = ()) -> None:
        self._session = session
        self._data = data
        self.keys = keys
        self.is_sparse = data.long is not None
        self.kinds = self._long_kinds() if data.long else self._dense_kinds()

    def _dense_kinds(self) -> dict[str, str]:
        return {name: self._session.kind(kind) for name, kind in self._data.types.items()}

    def _long_kinds(self) -> dict[str, str]:
        data, dialect = self._data, self._session.dialect
        assert data.long is not None
        feature = quote(data.long.feature, dialect)
        name = dialect.cast.format(value="feature", type=dialect.text_type)
        rows = self._session.rows(
            f"SELECT {name} FROM (SELECT DISTINCT {feature} AS feature FROM {data.relation} "
            f"WHERE {feature} IS NOT NULL) AS names ORDER BY feature ASC",
            "listing the features",
        )
        return dict.fromkeys(
            (row[0] for row in rows), self._session.kind(data.types[data.long.value])
        )

    def statistics(self, columns: Sequence[str]) -> Statistics:
        """What columns hold, by aggregates; missing values do not count, absent ones are 0."""
        if self._data.long is not None:
            return self._sparse_statistics(columns, self._data.long)
        parts = [
            self._dense_statistics(columns[first : first + _COLUMNS_AT_ONCE])
            for first in range(0, len(columns), _COLUMNS_AT_ONCE)
        ]
        return Statistics(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _dense_statistics(self, columns: Sequence[str]) -> tuple[NDArray[Any], ...]:
        """The fields of Statistics."""
        names = [f"v{i}" for i in range(len(columns))]
        calls = ("COUNT", "AVG", "MIN", "MAX")
        table = self._numbers(columns, [f"{call}({name})" for name in names for call in calls])
        count, mean, low, high = table.reshape(-1, 4).T
        # In a second look, as not every engine knows a deviation, and this is the exact way; as
        # shares of the column's size, whose squares leave no engine's range.
        size = np.nan_to_num(np.maximum(np.abs(low), np.abs(high)))
        size[size == 0] = 1
        middles = np.nan_to_num(mean).tolist()
        looks = [
            look
            for name, middle, largest in zip(names, middles, size.tolist(), strict=True)
            for look in (
                f"AVG({self._square(name, middle, largest)})",
                f"COUNT(CASE WHEN {name} = 0 THEN 1 END)",
                f"COUNT(CASE WHEN {name} <> ROUND({name}) THEN 1 END)",
            )
        ]
        square, zeros, fractions = self._numbers(columns, looks).reshape(-1, 3).T
        with np.errstate(over="ignore"):
            deviation = size * np.sqrt(square)
        whole = (count > 0) & (fractions == 0)
        return count.astype("int64"), mean, deviation, low, high, zeros.astype("int64"), whole

    def _sparse_statistics(self, columns: Sequence[str], long: LongInput) -> Statistics:
        """Of all rows that have an entry; one that a row has not is 0."""
        session, dialect, data = self._session, self._session.dialect, self._data
        value, finite = finite_value(session, data, long.value, "float64")
        key, feature = quote(long.row, dialect), quote(long.feature, dialect)
        name = dialect.cast.format(value=feature, type=dialect.text_type)
        ((n_rows,),) = session.rows(
            f"SELECT COUNT(DISTINCT {key}) FROM {data.relation}", "counting rows"
        )
        entries = f"SELECT {name} AS name, CASE WHEN {finite} THEN {value} END AS v"
        entries = f"({entries} FROM {data.relation}) AS entry_values"
        rows = number(float(max(n_rows, 1)), "float64", dialect)
        # Squares of what is left of the mean, as squares of values may be nothing but their means.
        found = session.rows(
            "SELECT entry_values.name, COUNT(v), MIN(middle), "
            "SUM((v - middle) * (v - middle)), MIN(v), MAX(v), "
            "COUNT(CASE WHEN v = 0 THEN 1 END), COUNT(CASE WHEN v <> ROUND(v) THEN 1 END) "
            f"FROM {entries} JOIN (SELECT name, SUM(v) / {rows} AS middle FROM {entries} "
            "GROUP BY name) AS middles ON middles.name = entry_values.name "
            "GROUP BY entry_values.name",
            "computing the features' statistics",
        )
        of_name = {row[0]: [0.0 if one is None else one for one in row[1:]] for row in found}
        table = np.array([of_name[name] for name in columns], dtype="float64")
        count, mean, squares, low, high, zeros, fractions = table.T
        absent = n_rows - count
        return Statistics(
            count=np.full(len(columns), n_rows),
            mean=mean,
            std=np.sqrt((squares + absent * mean**2) / max(n_rows, 1)),
            min=np.where(absent > 0, np.minimum(low, 0), low),
            max=np.where(absent > 0, np.maximum(high, 0), high),
            zeros=(zeros + absent).astype("int64"),
            whole=fractions == 0,
        )

    def head(self, columns: Sequence[str], count: int) -> NDArray[np.float64]:
        """The first rows as they come."""
        names = [f"v{i}" for i in range(len(columns))]
        return self._session.columns(
            f"SELECT {', '.join(names)} FROM ({self._values(columns)}) AS column_values "
            f"LIMIT {count:d}",
            names,
            "a look at the first rows",
        )

    def _values(self, columns: Sequence[str]) -> str:
        """The SELECT of columns as doubles v0, v1, ..."""
        return f"SELECT {', '.join(self._value_items(columns))} FROM {self._data.relation}"

    def _value_items(self, columns: Sequence[str]) -> list[str]:
        """Columns as doubles v0, v1, ...; NULL for what is missing."""
        items = []
        for i, name in enumerate(columns):
            value, finite = finite_value(self._session, self._data, name, "float64")
            items.append(f"CASE WHEN {finite} THEN {value} END AS v{i}")
        return items

    def sample(
        self, columns: Sequence[str], count: int, rng: np.random.Generator, spare: int = 0
    ) -> NDArray[np.float64]:
        """Rows by their numbers, which the generator draws: the same ones for the same seed."""
        self._require_rows()
        session, relation = self._session, self._data.relation
        ((n_rows,),) = session.rows(f"SELECT COUNT(*) FROM {relation}", "counting rows")
        places = ", ".join(
            str(place + 1) for place in choose_rows(n_rows, count, rng, spare).tolist()
        )
        values = self._value_items(columns)
        names = [f"v{i}" for i in range(len(columns))]
        return session.columns(
            f"SELECT {', '.join(names)} FROM (SELECT {', '.join(values)}, ROW_NUMBER() OVER () AS "
            f"place FROM {relation}) AS numbered WHERE place IN ({places}) ORDER BY place ASC",
            names,
            "drawing rows",
        )

    def means(self, program: Program) -> NDArray[np.float64]:
        """Averages by aggregates over the program's own statement, in parts of so many outputs."""
        self._require_rows()
        dialect, found = self._session.dialect, []
        for first in range(0, len(program.names), _MEANS_AT_ONCE):
            outputs = np.arange(first, min(first + _MEANS_AT_ONCE, len(program.names)))
            part = program.only(outputs)
            query = Query(part, "", "averages", self._data.relation, "", Options(form="wide"))
            columns = ", ".join(
                f"AVG({dialect.cast.format(value=quote(name, dialect), type=self._double)})"
                for name in part.names
            )
            statement = f"SELECT {columns} FROM (\n{write(query, dialect).text}\n) AS averaged"
            try:
                (row,) = self._session.rows(statement, "computing averages")
            except EngineError as bad:
                if "missing value" not in str(bad):
                    raise
                raise MissingValueError(_MISSING) from bad
            found += [np.nan if value is None else value for value in row]
        return np.array(found, dtype="float64")

    @property
    def _double(self) -> str:
        return self._session.dialect.float_types["float64"]

    def _require_rows(self) -> None:
        if self._data.long is not None:
            raise ParameterError(
                "this map is fitted to rows with one column a feature, and was given "
                "(row, feature, value) input: give such a table"
            )

    def _square(self, value: str, middle: float, size: float) -> str:
        """How far a value is from the middle, as a share of a size, squared."""
        dialect = self._session.dialect
        share = f"(({value} - {number(middle, 'float64', dialect)}) "
        share += f"/ {number(size, 'float64', dialect)})"
        least = number(1e-150, "float64", dialect)
        return f"CASE WHEN ABS({share}) < {least} THEN {share} * 0 ELSE {share} * {share} END"

    def _numbers(self, columns: Sequence[str], expressions: Sequence[str]) -> NDArray[np.float64]:
        """Aggregates of columns, which are v0, v1, ... there."""
        limit = self._session.dialect.limits.select_columns or len(expressions)
        row: list[Any] = []
        for first in range(0, len(expressions), limit):
            row += self._aggregate(columns, expressions[first : first + limit])
        return np.array([np.nan if value is None else value for value in row], dtype="float64")

    def _aggregate(self, columns: Sequence[str], expressions: Sequence[str]) -> tuple[Any, ...]:
        return self._session.rows(
            f"SELECT {', '.join(expressions)} FROM ({self._values(columns)}) AS column_values",
            "computing the columns' statistics",
        )[0]
