"""DuckDB: the embedded engine."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.duckdb_running import explained, in_short
from sqlkrp.engines.duckdb_writing import PARQUET, Writing, suffix_of
from sqlkrp.engines.inputs import Input
from sqlkrp.engines.session import (
    Capabilities,
    TableOrFile,
)
from sqlkrp.engines.statistics import statistics_of, values_of
from sqlkrp.engines.texts import dates_in, texts_in
from sqlkrp.errors import ColumnError, EngineError, ParameterError
from sqlkrp.files import own_number, remove_dead, require_no_folder, reserve
from sqlkrp.maps.source import BOOLEAN, DATE, FLOAT32, NUMBER, NUMERIC, TEXT, Statistics
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.encoding import made_of_columns
from sqlkrp.sql.names import TableName, quote, text
from sqlkrp.sql.side_tables import Table
from sqlkrp.stages import Category

__all__ = ["DuckDB", "RelationSource", "write_parquet"]

_SORTS = {"VARCHAR": TEXT, "ENUM": TEXT, "DATE": DATE, "TIMESTAMP": DATE}
_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|BIGNUM|DECIMAL\(.*\)")
_NO_HIVE = "hive_partitioning = false"
# Types are taken from the whole CSV: from a sample, a later fraction would be rounded.
_CSV_OPTIONS = f"sample_size = -1, {_NO_HIVE}"
_CSV = ("read_csv", _CSV_OPTIONS)
# All as it stands there; an empty text that is quoted is none that is missing. The quotes are said,
# as DuckDB 2.0.0 guesses others where a text holds one of each kind, and loses the names.
_CSV_TEXTS = (
    "header = true, all_varchar = true, allow_quoted_nulls = false, quote = '\"', escape = '\"', "
    f"{_NO_HIVE}"
)
_READERS = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".tsv": _CSV,
    ".parquet": ("read_parquet", _NO_HIVE),
}
# What is found in a CSV, and the options that say it. Where there is no such mark, DuckDB says so.
_NONE = "(empty)"
_CSV_MARKS = {
    "Delimiter": "delim",
    "Quote": "quote",
    "Escape": "escape",
    "NewLineDelimiter": "new_line",
    "Comment": "comment",
}


class DuckDB(Writing):
    """A DuckDB connection that computes features."""

    can = Capabilities(
        transactions=True,
        temporary_tables=True,
        views=True,
        comments=True,
        relations=True,
        twin=True,
    )

    @classmethod
    def open(
        cls, path: str | os.PathLike[str] | None, *, read_only: bool = False, **settings: Any
    ) -> DuckDB:
        """Open a database file, or an empty database in memory."""
        config = dict(settings)
        if path is not None:
            _require_database(Path(path))
        clean_up = contextlib.ExitStack()
        if path is None:
            # What does not fit in memory is written to a folder of our own, not the user's.
            config["temp_directory"] = clean_up.enter_context(_spill_folder())
        try:
            name = ":memory:" if path is None else os.fspath(path)
            connection = duckdb.connect(
                name, read_only=read_only and path is not None, config=config
            )
        except (duckdb.Error, OSError, RuntimeError) as bad:
            clean_up.close()
            raise EngineError(f"cannot open {path or 'DuckDB'}: {in_short(bad)}") from bad

        # DuckDB measures progress only so; who shows it is on_progress, if anybody.
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")

        def close() -> None:
            connection.close()
            clean_up.close()

        return cls(connection, close)

    @staticmethod
    def is_connection(target: Any) -> bool:
        """Whether this is an open DuckDB connection."""
        return isinstance(target, duckdb.DuckDBPyConnection)

    # --- looking ------------------------------------------------------------------------------

    def look(self, table: TableOrFile, name: str) -> tuple[str, dict[str, str]]:
        if not isinstance(table, Path):
            self._require_no_file(table)
            return super().look(table, name)
        require_no_folder(table)
        reader, path, options = _reader(table)
        if reader == "read_csv" and table.exists():
            if table.is_file() and not table.stat().st_size:
                raise ColumnError(f"{str(table)!r} is empty: give a file with names and rows")
            with contextlib.suppress(EngineError):  # reading it tells what is wrong with it
                return self._sniffed(path, name)
        relation = _fenced(f"{reader}({path}, {options})")
        types = self.describe(relation, name)
        if reader == "read_csv" and (texts := self._texts(types)):
            relation = _fenced(f"read_csv({path}, {options}, types = {_struct(texts)})")
            types |= texts
        return relation, types

    def look_at_file(self, path: Path, name: str) -> tuple[str, dict[str, str]] | None:
        reader, named, _ = _reader(path)
        if reader != "read_csv":
            return self.look(path, name)
        require_no_folder(path)
        relation = _fenced(f"read_csv({named}, {_CSV_TEXTS})")
        return relation, dict.fromkeys(self.describe(relation, name), "")

    def _require_no_file(self, table: TableName) -> None:
        """Raise ParameterError if this names a file: DuckDB would guess its types from a sample."""
        if not isinstance(table, str) or "." not in table or not os.path.isfile(table):
            return
        with contextlib.suppress(ParameterError):  # a name that no table could have
            if self.find(table):
                return
        raise ParameterError(
            f"{table!r} is a file, and no table: give pathlib.Path({table!r}), on the command line "
            "SOURCE or --file"
        )

    def _texts(self, types: Mapping[str, str]) -> dict[str, str]:
        """The columns of a CSV that can be no features, as texts.

        DuckDB guesses of a date which number is the month, and writes times in its own way.
        """
        return {name: "VARCHAR" for name, one in types.items() if self.kind(one) not in NUMERIC}

    def _sniffed(self, path: str, name: str) -> tuple[str, dict[str, str]]:
        """A CSV file with its types and marks, which are looked for in all of it, once.

        Each statement that looks for them again reads it twice, and first on one core.
        """
        look = f"SELECT * FROM sniff_csv({path}, {_CSV_OPTIONS})"
        (row,) = self.rows(look, f"a look at {name}")
        found = dict(zip((one[0] for one in self.connection.description), row, strict=True))
        types = {column["name"]: column["type"] for column in found["Columns"]}
        types |= self._texts(types)
        options = {
            "columns": _struct(types),
            "header": str(found["HasHeader"]),
            "skip": str(int(found["SkipRows"])),
        }
        for column, option in _CSV_MARKS.items():
            options[option] = _text("" if found[column] == _NONE else found[column])
        listed = ", ".join(f"{option} = {value}" for option, value in options.items())
        return _fenced(f"read_csv({path}, auto_detect = false, {_NO_HIVE}, {listed})"), types

    def describe(self, relation: str, name: str) -> dict[str, str]:
        try:
            rows = self.rows(f"DESCRIBE SELECT * FROM {relation}", f"a look at {name}")
        except EngineError as bad:
            cause = bad.__cause__ or bad
            kind = EngineError if isinstance(cause, duckdb.ConnectionException) else ColumnError
            raise kind(f"cannot read {name}: {in_short(cause)}") from cause
        return {row[0]: row[1] for row in rows}

    def reads(self, relation: str) -> set[str]:
        with explained("a look at what is read"):
            names = self.connection.get_table_names(f"SELECT * FROM {relation}")
        return {name.lower() for name in names}

    @staticmethod
    def kind(type_name: str) -> str:
        kinds = {"FLOAT": FLOAT32, "BOOLEAN": BOOLEAN}
        return kinds.get(type_name, NUMBER if _NUMBERS.fullmatch(type_name) else type_name)

    @staticmethod
    def texts_and_dates(types: Mapping[str, str]) -> dict[str, str]:
        sorts = {name: _SORTS.get(re.split(r"\W|_[A-Z]+\Z", one)[0]) for name, one in types.items()}
        return {
            name: sort
            for name, sort in sorts.items()
            if sort is not None and not types[name].endswith("]")
        }

    def has_rows(self, table: TableOrFile) -> bool:
        if isinstance(table, Path):
            return suffix_of(table, _READERS) == ".parquet"
        return super().has_rows(table)

    def primary_key(self, table: TableName) -> list[str]:
        found = self.find(table)
        if found is None:
            return []
        with explained("a look at its keys"):
            rows = self.connection.execute(
                "SELECT UNNEST(constraint_column_names) FROM duckdb_constraints()"
                " WHERE constraint_type = 'PRIMARY KEY' AND database_name = ?"
                " AND schema_name = ? AND table_name = ?",
                list(found[0]),
            ).fetchall()
        return [row[0] for row in rows]

    def files(self) -> list[Path]:
        with explained("a look at its files"):
            rows = self.connection.execute(
                "SELECT path FROM duckdb_databases() WHERE path IS NOT NULL"
            ).fetchall()
        return [Path(row[0]) for row in rows]

    def sample(self, relation: str, columns: Sequence[str], count: int) -> str:
        listed = ", ".join(quote(name, self.dialect) for name in columns)
        return f"SELECT {listed} FROM {relation} AS every USING SAMPLE reservoir({count:d} ROWS)"


def write_parquet(path: Path, columns: Table) -> None:
    """Write a side table to a file."""
    with contextlib.closing(DuckDB.open(None)) as session:
        session.load("side_table", columns)
        session._copy("SELECT * FROM side_table", path, PARQUET, str(path))


# What statements call a relation that is asked by itself.
_RELATION = "sqlkrp_relation"
_NEEDS_TABLE = (
    "this map is fitted to rows of a table, and was given a relation: make a view of it, and give "
    "db.source(view)"
)


class RelationSource:
    """A DuckDB relation of the user's own connection as something a map can be fitted to.

    The relation's connection is not to be had, and not needed: it aggregates by itself.
    """

    keys: Collection[str] = ()
    has_values = True
    is_sparse = False
    no_rows = _NEEDS_TABLE

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


def _reader(path: Path) -> tuple[str, str, str]:
    """The function that reads a file, the file's name in it, and its options."""
    reader, options = _READERS[suffix_of(path, _READERS)]
    name = str(path)
    if path.exists():
        # This file, and not the others that its name would match as a pattern.
        name = re.sub(r"[\[*?]", r"[\g<0>]", name)
    return reader, _text(name), options


def _fenced(call: str) -> str:
    # Behind the fence, as DuckDB else moves our casts into the CSV reader, which then reads 2.5 or
    # 'true' as another type than it said the column has.
    return f"(SELECT * FROM {call} OFFSET 0)"


def _struct(texts: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_text(name)}: {_text(one)}" for name, one in texts.items()) + "}"


def _text(value: str) -> str:
    return text(value, dialect("duckdb"))


def _require_database(path: Path) -> None:
    # DuckDB also opens data files, as databases of which nothing that is created stays.
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as file:
            if file.read(12)[8:] != b"DUCK":
                raise EngineError(f"{str(path)!r} is no DuckDB database: give one")


@contextlib.contextmanager
def _spill_folder() -> Iterator[str]:
    parent = Path(tempfile.gettempdir())
    remove_dead(parent, re.compile(r"sqlkrp-spill-(\d+)-\d+"))
    with reserve(parent / f"sqlkrp-spill-{own_number()}") as folder:
        yield str(folder)  # DuckDB creates it when there is something to spill
