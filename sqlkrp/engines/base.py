"""What every engine does with a map; an engine adds how it runs, loads and fetches.

A run has one path: look at the source, check it against the map, write the statement, load its
side tables, run it, drop the side tables. Creating is one transaction; exporting writes one file.
"""

from __future__ import annotations

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError, MissingValueError, ParameterError, TargetExistsError
from sqlkrp.maps.base import match_columns
from sqlkrp.maps.source import FLOAT32, NUMBER, Source, Statistics
from sqlkrp.sql.dialects import Dialect
from sqlkrp.sql.names import TableName, quote
from sqlkrp.sql.statement import Query, Statement, write
from sqlkrp.sql.tables import LongInput
from sqlkrp.stages import Prepare, Program, Table, missing_message
from sqlkrp.verification import Verification, compare

__all__ = ["Database", "Fitted", "Input", "Run", "TableOrFile", "TableSource"]

#: A table's name, or the path of a file that the engine reads by itself.
TableOrFile = TableName | Path


class Fitted(Protocol):
    """What an engine needs of a fitted map."""

    @property
    def program(self) -> Program:
        """Its row program."""

    @property
    def digest_(self) -> str:
        """The digest of its content."""

    def query(
        self, relation: str, keep: tuple[str, ...], form: str, stage: str, output: str
    ) -> Query:
        """A statement to write over a relation that is SQL already."""


@dataclass(frozen=True)
class Run:
    """What a run did."""

    statement: Statement
    rows: int | None
    """Rows written; None for a view, which has none of its own."""


@dataclass(frozen=True)
class Input:
    """A source as SQL: its relation, its columns and their types, and how it is laid out."""

    relation: str
    types: Mapping[str, str]
    name: str
    long: LongInput | None = None
    key_types: Mapping[str, str] | None = None
    """The columns of the table of rows, for sparse input that has one."""


class Database(ABC):
    """A database that computes features where the data lives."""

    dialect: Dialect
    on_progress: Callable[[float], None] | None = None
    """Called with the share done (0 to 1) while a long statement runs."""

    # --- for users ----------------------------------------------------------------------------

    def source(self, table: TableOrFile, *, long: tuple[str, str, str] | None = None) -> Source:
        """A table (or file) to fit a map to: ``krp.fit(db.source("t"))``."""
        return TableSource(self, self._input(table, long, None))

    def create(
        self,
        fitted: Fitted,
        table: TableOrFile,
        into: TableName,
        *,
        keep: Iterable[str] = (),
        form: str = "auto",
        stage: str = "features",
        output: str = "columns",
        view: bool = False,
        replace: bool = False,
        long: tuple[str, str, str] | None = None,
        rows: TableOrFile | None = None,
    ) -> Run:
        """Create a table (or view) of features: in one transaction, whole or not at all."""
        data = self._input(table, long, rows)
        with self._transaction():
            self._require_free(into, table, view=view, replace=replace)
            query = self._query(fitted, data, keep, form, stage, output)
            # A view is read when its table may have changed, so it guards itself.
            statement = write(dataclasses.replace(query, guard=view), self.dialect)
            if view and statement.side_tables:
                raise ParameterError(
                    "a view in the tables form would need side tables that stay: "
                    "use form='wide', or create a table"
                )
            with self._side_tables(statement):
                count = self._create(into, statement.text, view=view, replace=replace)
            self._comment(into, f"sqlkrp map {fitted.digest_}", view=view)
        return Run(statement, count)

    def export(
        self,
        fitted: Fitted,
        table: TableOrFile,
        path: str | Path,
        *,
        keep: Iterable[str] = (),
        form: str = "auto",
        stage: str = "features",
        output: str = "columns",
        replace: bool = False,
        long: tuple[str, str, str] | None = None,
        rows: TableOrFile | None = None,
    ) -> Run:
        """Stream the features to a .csv, .csv.gz or .parquet file (``-``: CSV to standard output).

        The file appears when it is whole; an existing one is replaced only on request.
        """
        data = self._input(table, long, rows)
        with self._destination(path, replace=replace) as write_to:
            query = self._query(fitted, data, keep, form, stage, output)
            statement = write(query, self.dialect)
            with self._side_tables(statement):
                count = write_to(statement.text)
        return Run(statement, count)

    def verify(
        self,
        fitted: Fitted,
        table: TableOrFile,
        *,
        sample: int = 1000,
        form: str = "auto",
        tolerance: float | None = None,
        long: tuple[str, str, str] | None = None,
        rows: TableOrFile | None = None,
    ) -> Verification:
        """Compare the engine's features of a sample of rows with the NumPy twin's."""
        if sample < 1:
            raise ParameterError(f"sample={sample} is not allowed: use a whole number >= 1")
        data = self._input(table, long, rows)
        query = self._query(fitted, data, (), form, "features", "columns")
        with self._sample(query, data, sample) as (sampled, inputs):
            statement = write(sampled, self.dialect)
            with self._side_tables(statement):
                found = self._fetch(statement.text, fitted.program.names)
        expected = fitted.program.apply(inputs)
        return compare(fitted.program, expected, found, statement.form, tolerance)

    @abstractmethod
    def close(self) -> None:
        """Drop what the library still holds in the connection; close it if it opened it."""

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- what an engine adds ------------------------------------------------------------------

    @abstractmethod
    def _relation(self, table: TableOrFile) -> str:
        """A table or file as SQL."""

    @abstractmethod
    def _describe(self, relation: str, name: str) -> dict[str, str]:
        """The columns of a relation and their types; ColumnError if there is no such relation."""

    @abstractmethod
    def _kind(self, type_name: str) -> str:
        """The kind of a column of this type: FLOAT32, NUMBER, or the type's name."""

    @abstractmethod
    def _fetch_row(self, sql: str, what: str) -> tuple[Any, ...]:
        """The first row of a query."""

    @abstractmethod
    def _fetch_rows(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        """All rows of a small query."""

    @abstractmethod
    def _fetch(self, sql: str, columns: Sequence[str]) -> NDArray[Any]:
        """Some columns of a query as one array of doubles, NaN for NULL."""

    @abstractmethod
    def _execute(self, sql: str, what: str) -> None:
        """Run one statement; an interrupt ends it."""

    @abstractmethod
    def _load(self, name: str, columns: Table) -> None:
        """Load a side table as a temporary table."""

    @abstractmethod
    def _transaction(self) -> contextlib.AbstractContextManager[None]:
        """All or nothing; inside a transaction of the user's, a part of that."""

    @abstractmethod
    def _find(self, table: TableName) -> tuple[tuple[str, ...], str] | None:
        """The full name of a table or view, and which it is; None if there is none."""

    @abstractmethod
    def _create(self, into: TableName, select: str, *, view: bool, replace: bool) -> int | None:
        """Create a table or view from a SELECT; how many rows the table has."""

    @abstractmethod
    def _comment(self, into: TableName, text: str, *, view: bool) -> None:
        """Attach a comment to what was created."""

    @abstractmethod
    def _destination(
        self, path: str | Path, *, replace: bool
    ) -> contextlib.AbstractContextManager[Callable[[str], int]]:
        """A function that writes a SELECT's rows to a file, published when the block ends well."""

    @abstractmethod
    def _sampled(self, relation: str, columns: Sequence[str], rows: int) -> str:
        """The SELECT of so many random rows of a relation."""

    # --- shared -------------------------------------------------------------------------------

    def _input(
        self,
        table: TableOrFile,
        long: tuple[str, str, str] | None,
        rows: TableOrFile | None,
    ) -> Input:
        relation = self._relation(table)
        name = str(table) if isinstance(table, (str, Path)) else ".".join(table)
        types = self._describe(relation, name)
        if long is None:
            if rows is not None:
                raise ParameterError("a table of rows belongs to (row, feature, value) input")
            return Input(relation, types, name)
        if len(long) != 3:
            raise ParameterError(f"long={long!r} is not allowed: name row, feature, value")
        match_columns(long, types, where=str(table))
        if rows is None:
            return Input(relation, types, name, LongInput(*long))
        keys = self._relation(rows)
        key_types = self._describe(keys, str(rows))
        match_columns([long[0]], key_types, where=str(rows))
        return Input(relation, types, name, LongInput(*long, keys=keys), key_types)

    def _query(
        self,
        fitted: Fitted,
        data: Input,
        keep: Iterable[str],
        form: str,
        stage: str,
        output: str,
    ) -> Query:
        """The query of a map over a source, after the source was checked against the map."""
        keep = tuple(dict.fromkeys(keep))
        prepare = fitted.program.prepare
        query = fitted.query(data.relation, keep, form, stage, output)
        if data.long is not None:
            self._check_long(prepare, data, keep)
            query = dataclasses.replace(query, long=data.long)
        else:
            match_columns([*prepare.columns, *keep], data.types, where=data.name)
            self._require_numbers(prepare.columns, data)
            if prepare.nulls == "error":
                self._require_complete(prepare, data)
        return dataclasses.replace(query, guard=False)

    def _require_numbers(self, columns: Sequence[str], data: Input) -> None:
        for name in columns:
            if self._kind(data.types[name]) not in (FLOAT32, NUMBER):
                raise ColumnError(
                    f"column {name!r} of {data.name} is of type {data.types[name]}, and the map "
                    "was drawn for a number there: cast it in a view"
                )

    def _require_complete(self, prepare: Prepare, data: Input) -> None:
        soft = self.dialect.soft_cast
        type_name = self.dialect.float_types[prepare.dtype]
        finite = [
            self.dialect.is_finite.format(
                value=soft.format(value=quote(name, self.dialect), type=type_name)
            )
            for name in prepare.columns
        ]
        counts = ", ".join(f"COUNT(CASE WHEN {test} THEN 1 END)" for test in finite)
        total, *whole = self._fetch_row(
            f"SELECT COUNT(*), {counts} FROM {data.relation}", "counting missing values"
        )
        missing = {
            name: int(total - count) for name, count in zip(prepare.columns, whole, strict=True)
        }
        if any(missing.values()):
            raise MissingValueError(missing_message(missing))

    def _check_long(self, prepare: Prepare, data: Input, keep: Sequence[str]) -> None:
        assert data.long is not None
        match_columns(keep, data.key_types or {}, where="the table of rows")
        row = quote(data.long.row, self.dialect)
        feature = quote(data.long.feature, self.dialect)
        if self._kind(data.types[data.long.value]) not in (FLOAT32, NUMBER):
            raise ColumnError(
                f"the values {data.long.value!r} of {data.name} are of type "
                f"{data.types[data.long.value]}: they must be numbers"
            )
        twice = self._fetch_rows(
            f"SELECT {row}, {feature} FROM {data.relation} GROUP BY {row}, {feature} "
            "HAVING COUNT(*) > 1 LIMIT 1",
            "looking for entries given twice",
        )
        if twice:
            raise ColumnError(
                f"{data.name} has two entries for row {twice[0][0]!r}, feature {twice[0][1]!r}: "
                "add them up in a view, so that each (row, feature) is there once"
            )
        if prepare.nulls == "error":
            self._require_complete_entries(prepare, data)

    def _require_complete_entries(self, prepare: Prepare, data: Input) -> None:
        assert data.long is not None
        value = self.dialect.soft_cast.format(
            value=quote(data.long.value, self.dialect),
            type=self.dialect.float_types[prepare.dtype],
        )
        finite = self.dialect.is_finite.format(value=value)
        name = self.dialect.cast.format(
            value=quote(data.long.feature, self.dialect), type=self.dialect.text_type
        )
        counted = dict(
            self._fetch_rows(
                f"SELECT {name}, COUNT(*) FROM {data.relation} "
                f"WHERE NOT COALESCE({finite}, FALSE) GROUP BY 1",
                "counting missing values",
            )
        )
        missing = {name: counted[name] for name in prepare.columns if name in counted}
        if missing:
            raise MissingValueError(missing_message(missing))

    def _require_free(
        self, into: TableName, table: TableOrFile, *, view: bool, replace: bool
    ) -> None:
        found = self._find(into)
        if found is None:
            return
        if not isinstance(table, Path) and found == self._find(table):
            raise ParameterError(f"{into!r} is the table to read: give the features another name")
        existing, wanted = found[1], "view" if view else "table"
        if not replace:
            raise TargetExistsError(
                f"{into!r} exists already: choose another name, or replace it (--replace, "
                "or replace=True)"
            )
        if existing != wanted:
            raise TargetExistsError(
                f"{into!r} is a {existing} and a {wanted} was asked for: drop it first"
            )

    @contextlib.contextmanager
    def _side_tables(self, statement: Statement) -> Iterator[None]:
        """The statement's side tables, for the length of a block."""
        with contextlib.ExitStack() as drops:
            for name, columns in statement.side_tables.items():
                drops.callback(self._drop_temporary, name)
                self._load(name, columns)
            yield

    @abstractmethod
    def _drop_temporary(self, name: str) -> None:
        """Drop a temporary table if it is there; never raises, so it can clean up."""

    @contextlib.contextmanager
    def _sample(self, query: Query, data: Input, rows: int) -> Iterator[tuple[Query, NDArray[Any]]]:
        """The query over a sample of its source that stays the same, and the sample's inputs."""
        name = f"{query.digest[:12]}_sample"
        keys_name = f"{query.digest[:12]}_sample_keys"
        with contextlib.ExitStack() as drops:
            for temporary in (name, keys_name):
                drops.callback(self._drop_temporary, temporary)
            if data.long is None:
                select = self._sampled(data.relation, query.program.prepare.columns, rows)
                self._create_temporary(name, select)
                sampled = dataclasses.replace(query, relation=quote(name, self.dialect))
                yield sampled, self._dense_inputs(sampled)
            else:
                sampled = self._sample_long(query, data.long, name, keys_name, rows)
                yield sampled, self._sparse_inputs(sampled)

    def _create_temporary(self, name: str, select: str) -> None:
        self._drop_temporary(name)
        table = quote(name, self.dialect)
        self._execute(f"CREATE TEMPORARY TABLE {table} AS {select}", "drawing a sample of rows")

    def _dense_inputs(self, query: Query) -> NDArray[Any]:
        columns = query.program.prepare.columns
        double = self.dialect.float_types["float64"]
        casts = ", ".join(
            self.dialect.cast.format(value=quote(name, self.dialect), type=double) + f" AS x{i}"
            for i, name in enumerate(columns)
        )
        names = [f"x{i}" for i in range(len(columns))]
        return self._fetch(f"SELECT {casts} FROM {query.relation}", names)

    def _sample_long(
        self, query: Query, long: LongInput, name: str, keys_name: str, rows: int
    ) -> Query:
        key = quote(long.row, self.dialect)
        all_keys = long.keys or (
            f"(SELECT DISTINCT {key} FROM {query.relation} WHERE {key} IS NOT NULL) AS every"
        )
        self._create_temporary(keys_name, self._sampled(all_keys, [long.row], rows))
        keys = quote(keys_name, self.dialect)
        entries = f"SELECT * FROM {query.relation} WHERE {key} IN (SELECT {key} FROM {keys})"
        self._create_temporary(name, entries)
        return dataclasses.replace(
            query,
            relation=quote(name, self.dialect),
            long=dataclasses.replace(long, keys=keys),
            keep=(),
        )

    def _sparse_inputs(self, query: Query) -> NDArray[Any]:
        long = query.long
        assert long is not None
        assert long.keys is not None
        key, feature, value = (
            quote(name, self.dialect) for name in (long.row, long.feature, long.value)
        )
        text_type = self.dialect.text_type
        keys = [
            row[0] for row in self._fetch_rows(f"SELECT {key} FROM {long.keys}", "reading keys")
        ]
        entries = self._fetch_rows(
            f"SELECT {key}, {self.dialect.cast.format(value=feature, type=text_type)}, "
            f"{self.dialect.cast.format(value=value, type=self.dialect.float_types['float64'])} "
            f"FROM {query.relation}",
            "reading entries",
        )
        columns = {name: i for i, name in enumerate(query.program.prepare.columns)}
        by_key: dict[Any, list[tuple[int, float]]] = {}
        for row, name, number in entries:
            if name in columns:
                entry = (columns[name], np.nan if number is None else number)
                by_key.setdefault(row, []).append(entry)
        inputs = np.zeros((len(keys), len(columns)))
        for i, row in enumerate(keys):
            for column, number in by_key.get(row, ()):
                inputs[i, column] = number
        return inputs


class TableSource:
    """A relation of an engine as something a map can be fitted to."""

    def __init__(self, database: Database, data: Input) -> None:
        self._database = database
        self._data = data
        self.kinds = self._kinds()

    def _kinds(self) -> dict[str, str]:
        database, data = self._database, self._data
        if data.long is None:
            return {name: database._kind(type_name) for name, type_name in data.types.items()}
        kind = database._kind(data.types[data.long.value])
        feature = quote(data.long.feature, database.dialect)
        name = database.dialect.cast.format(value="feature", type=database.dialect.text_type)
        rows = database._fetch_rows(
            f"SELECT {name} FROM (SELECT DISTINCT {feature} AS feature FROM {data.relation} "
            f"WHERE {feature} IS NOT NULL) AS names ORDER BY feature",
            "listing the features",
        )
        return {row[0]: kind for row in rows}

    def statistics(self, columns: Sequence[str]) -> Statistics:
        """Moments by one aggregate query; missing values do not count."""
        if self._data.long is not None:
            raise ParameterError(
                "scaling and nulls='mean' need one column a feature: for (row, feature, value) "
                "input use scaling=None or 'unit', and another policy"
            )
        dialect = self._database.dialect
        moments = []
        for name in columns:
            value = dialect.soft_cast.format(
                value=quote(name, dialect), type=dialect.float_types["float64"]
            )
            finite = dialect.is_finite.format(value=value)
            known = f"CASE WHEN {finite} THEN {value} END"
            calls = ("COUNT", "AVG", "STDDEV_POP", "MIN", "MAX")
            moments += [f"{call}({known})" for call in calls]
        row = self._aggregate(moments)
        table = np.array([np.nan if value is None else value for value in row], dtype="float64")
        count, mean, std, low, high = table.reshape(-1, 5).T
        return Statistics(count.astype("int64"), mean, std, low, high)

    def _aggregate(self, expressions: Sequence[str]) -> tuple[Any, ...]:
        return self._database._fetch_row(
            f"SELECT {', '.join(expressions)} FROM {self._data.relation}",
            "computing the columns' statistics",
        )
