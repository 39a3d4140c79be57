"""DuckDB: the embedded engine."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.inputs import Input, TableSource
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.errors import ColumnError, EngineError, ParameterError
from sqlkrp.files import own_number, remove_dead, reserve, write_whole
from sqlkrp.maps.source import BOOLEAN, FLOAT32, NUMBER
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.names import TableName, quote, quote_table, table_name, text
from sqlkrp.sql.side_tables import Table, create_side_table

__all__ = ["DuckDB", "RelationSource", "write_tables"]

_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|BIGNUM|DECIMAL\(.*\)")
_ARRAY = re.compile(r"([A-Z][A-Z0-9_ ]*(?:\(\d+,\d+\))?)((?:\[\d*\])*\[\d+\](?:\[\d*\])*)")
_COPY_OPTIONS = {
    ".csv": "FORMAT csv, HEADER",
    ".csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
}
# Types are taken from the whole CSV: from a sample, a later fraction would be rounded.
_CSV = ("read_csv", "sample_size = -1, hive_partitioning = false")
_READERS = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".tsv": _CSV,
    ".parquet": ("read_parquet", "hive_partitioning = false"),
}


class DuckDB(Session):
    """A DuckDB connection that computes features."""

    dialect = dialect("duckdb")
    has_relations = True

    def __init__(self, connection: Any, on_close: Callable[[], None] | None = None) -> None:
        self.connection = connection
        self._on_close = on_close

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        *,
        read_only: bool = False,
        memory_limit: str | None = None,
        threads: int | None = None,
    ) -> DuckDB:
        """Open a database file, or an empty database in memory."""
        config: dict[str, Any] = {}
        if memory_limit is not None:
            config["memory_limit"] = memory_limit
        if threads is not None:
            config["threads"] = threads
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
            raise EngineError(f"cannot open {path or 'DuckDB'}: {_in_short(bad)}") from bad

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

    def close(self) -> None:
        if self._on_close is not None:
            self._on_close()
            self._on_close = None

    # --- looking ------------------------------------------------------------------------------

    def relation(self, table: TableOrFile) -> str:
        if isinstance(table, Path):
            return _file_relation(table)
        return super().relation(table)

    def describe(self, relation: str, name: str) -> dict[str, str]:
        try:
            rows = self.connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        except duckdb.ConnectionException as bad:
            raise EngineError(f"cannot read {name}: {_in_short(bad)}") from bad
        except duckdb.Error as bad:
            raise ColumnError(f"cannot read {name}: {_in_short(bad)}") from bad
        return {row[0]: row[1] for row in rows}

    def reads(self, relation: str) -> set[str]:
        with _explained("a look at what is read"):
            names = self.connection.get_table_names(f"SELECT * FROM {relation}")
        return {name.lower() for name in names}

    def kind(self, type_name: str) -> str:
        if type_name == "FLOAT":
            return FLOAT32
        if type_name == "BOOLEAN":
            return BOOLEAN
        return NUMBER if _NUMBERS.fullmatch(type_name) else type_name

    def primary_key(self, table: TableName) -> list[str]:
        found = self.find(table)
        if found is None:
            return []
        with _explained("a look at its keys"):
            rows = self.connection.execute(
                "SELECT UNNEST(constraint_column_names) FROM duckdb_constraints()"
                " WHERE constraint_type = 'PRIMARY KEY' AND database_name = ?"
                " AND schema_name = ? AND table_name = ?",
                list(found[0]),
            ).fetchall()
        return [row[0] for row in rows]

    def files(self) -> list[Path]:
        with _explained("a look at its files"):
            rows = self.connection.execute(
                "SELECT path FROM duckdb_databases() WHERE path IS NOT NULL"
            ).fetchall()
        return [Path(row[0]) for row in rows]

    def rows(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        self.execute(sql, what)
        rows: list[tuple[Any, ...]] = self.connection.fetchall()
        return rows

    def columns(self, sql: str, names: Sequence[str], what: str) -> NDArray[Any]:
        self.execute(sql, what)
        fetched = self.connection.fetchnumpy()
        arrays = [
            np.ma.filled(np.ma.asarray(fetched[name]).astype("float64"), np.nan) for name in names
        ]
        return np.column_stack(arrays)

    def lazily(self, sql: str) -> Any:
        with _explained("the features"):
            return self.connection.sql(sql)

    def sample(self, relation: str, columns: Sequence[str], count: int) -> str:
        listed = ", ".join(quote(name, self.dialect) for name in columns)
        return f"SELECT {listed} FROM {relation} USING SAMPLE reservoir({count:d} ROWS)"

    # --- running ------------------------------------------------------------------------------

    def execute(self, sql: str, what: str) -> None:
        # The driver looks at signals rarely: a Ctrl-C could go unheard for minutes. So the
        # statement runs in a thread of its own, and this one hears the signal and interrupts it.
        failed: list[BaseException] = []
        done = threading.Event()

        def run() -> None:
            try:
                self.connection.execute(sql)
            except BaseException as bad:
                failed.append(bad)
            finally:
                done.set()

        threading.Thread(target=run, name="sqlkrp-statement").start()
        try:
            # Not Thread.join: a signal that meets it makes Python take the thread for ended.
            while not done.wait(0.1):
                self._report_progress()
            self._report_progress(1.0)
        except BaseException:
            while not done.wait(0.1):
                self.connection.interrupt()
            raise
        if failed:
            with _explained(what):
                raise failed[0]

    def _report_progress(self, share: float | None = None) -> None:
        if self.on_progress is not None:
            if share is None:
                share = self.connection.query_progress() / 100
            if share >= 0:
                self.on_progress(share)

    def load(self, name: str, columns: Table) -> None:
        table, view = quote(name, self.dialect), f"{name}_load"
        self.drop_temporary(name)
        with _explained(f"loading the side table {name}"):
            self.connection.execute(create_side_table(name, columns, self.dialect, temporary=True))
            if not len(next(iter(columns.values()))):
                return
            self.connection.register(view, columns)
            try:
                self.connection.execute(
                    f"INSERT INTO {table} SELECT * FROM {quote(view, self.dialect)}"
                )
            finally:
                self.connection.unregister(view)

    def create_temporary(self, name: str, select: str, what: str) -> None:
        self.drop_temporary(name)
        self.execute(f"CREATE TEMPORARY TABLE {quote(name, self.dialect)} AS {select}", what)

    def drop_temporary(self, name: str) -> None:
        # In a transaction that failed every statement is refused, and its tables go with it.
        with contextlib.suppress(duckdb.Error):
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{quote(name, self.dialect)}")

    @contextlib.contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[None]:
        if self._in_transaction():
            yield  # the user's own, which is the user's to end
            return
        self.connection.begin()
        try:
            yield
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                self.connection.rollback()
            raise
        with _explained("committing" if keep else "ending its transaction"):
            self.connection.commit() if keep else self.connection.rollback()

    def _in_transaction(self) -> bool:
        # Asking by a second BEGIN would end the first. Outside, each statement is numbered anew.
        with _explained("looking for a transaction"):
            ids = {self.connection.execute("SELECT txid_current()").fetchall()[0] for _ in range(2)}
        return len(ids) == 1

    # --- creating -----------------------------------------------------------------------------

    def find(self, table: TableName) -> tuple[tuple[str, ...], str] | None:
        parts = table_name(table)
        full = ("temp", "main", *parts) if len(parts) == 1 else self.full_name(table)
        # An unqualified name is that of a temporary table first, as for DuckDB itself.
        return self._look_up(full) or self._look_up(self.full_name(table))

    def full_name(self, table: TableName) -> tuple[str, ...]:
        parts = table_name(table)
        with _explained(f"looking for {table!r}"):
            catalog, schema = self.connection.execute(
                "SELECT current_catalog(), current_schema()"
            ).fetchall()[0]
            databases = self.connection.execute(
                "SELECT lower(database_name) FROM duckdb_databases()"
            ).fetchall()
        if len(parts) == 1:
            return (catalog, schema, *parts)
        # Two parts may be a schema or a database and a table.
        if len(parts) == 2 and (parts[0].lower(),) in databases:
            return (parts[0], "main", parts[1])
        return (catalog, *parts) if len(parts) == 2 else parts

    def _look_up(self, full: tuple[str, ...]) -> tuple[tuple[str, ...], str] | None:
        with _explained(f"looking for {full[-1]!r}"):
            rows = self.connection.execute(
                "SELECT table_catalog, table_schema, table_name, table_type"
                " FROM information_schema.tables WHERE lower(table_catalog) = lower(?)"
                " AND lower(table_schema) = lower(?) AND lower(table_name) = lower(?)",
                list(full),
            ).fetchall()
        if not rows:
            return None
        return tuple(rows[0][:3]), "view" if rows[0][3] == "VIEW" else "table"

    def create(self, into: TableName, select: str, *, view: bool, replace: bool) -> int | None:
        kind = "VIEW" if view else "TABLE"
        how = "CREATE OR REPLACE" if replace else "CREATE"
        name = quote_table(into, self.dialect)
        self.execute(f"{how} {kind} {name} AS\n{select}", f"creating {into!r}")
        return None if view else self._count()

    def comment(self, into: TableName, text_of: str, *, view: bool) -> None:
        kind = "VIEW" if view else "TABLE"
        name = quote_table(into, self.dialect)
        self.execute(
            f"COMMENT ON {kind} {name} IS {text(text_of, self.dialect)}",
            f"naming the map of {into!r}",
        )

    # --- exporting ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def destination(self, path: str | Path, *, replace: bool) -> Iterator[Callable[[str], int]]:
        if str(path) == "-":
            yield self._copy_to_stdout
            return
        target = Path(path)
        suffix = _suffix(target, _COPY_OPTIONS)
        options = _COPY_OPTIONS[suffix]
        with write_whole(target, replace=replace) as part:
            if suffix == ".parquet":
                yield lambda select: self._copy(self._in_lists(select), part, options, str(target))
            else:
                yield lambda select: self._copy(select, part, options, str(target))

    def _in_lists(self, select: str) -> str:
        """A SELECT with a list in place of each array of a fixed size."""
        # Where such an array is NULL, DuckDB writes entries for its items all the same. Some read
        # over them; pyarrow refuses the file. Lists are the same type in Parquet.
        casts = []
        described = f"DESCRIBE SELECT * FROM (\n{select}\n)"
        for name, kind, *_ in self.rows(described, "the features"):
            if found := _ARRAY.fullmatch(kind):
                column, depth = quote(name, self.dialect), found[2].count("[")
                casts.append(f"CAST({column} AS {found[1]}{'[]' * depth}) AS {column}")
        replaced = f"SELECT * REPLACE ({', '.join(casts)}) FROM (\n{select}\n)"
        return replaced if casts else select

    def _copy(self, select: str, path: Path, options: str, named: str) -> int:
        self.execute(
            f"COPY (\n{select}\n) TO {text(str(path), self.dialect)} ({options})",
            f"writing {named}",
        )
        return self._count()

    def _copy_to_stdout(self, select: str) -> int:
        # Through a pipe, as opening /dev/stdout would truncate a file that it was redirected to.
        read_end, write_end = os.pipe()
        broken: list[BaseException] = []

        def forward() -> None:
            with os.fdopen(read_end, "rb") as stream:
                try:
                    _write_out(stream)
                except BaseException as bad:
                    broken.append(bad)  # closing the stream then ends the COPY as well

        forwarder = threading.Thread(target=forward, name="sqlkrp-stdout")
        forwarder.start()
        try:
            return self._copy(select, Path(f"/dev/fd/{write_end}"), _COPY_OPTIONS[".csv"], "-")
        finally:
            os.close(write_end)
            forwarder.join()
            if broken:
                raise broken[0]

    def _count(self) -> int:
        """The rows that the last statement wrote."""
        row = self.connection.fetchone()
        return int(row[0])


def write_tables(tables: dict[str, Table], folder: Path, suffix: str) -> None:
    """Write side tables to files of a folder, each under its full name."""
    options = _COPY_OPTIONS[suffix]
    with contextlib.closing(DuckDB.open(None)) as session:
        for name, columns in tables.items():
            session.load(name, columns)
            select = f"SELECT * FROM {quote(name, session.dialect)}"
            session._copy(select, folder / f"{name}{suffix}", options, name)


_NEEDS_TABLE = (
    "this map is fitted to rows of a table, and was given a relation: make a view of it, and give "
    "db.source(view)"
)


class RelationSource(TableSource):
    """A DuckDB relation of the user's own connection as something a map can be fitted to."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        # The relation's connection is not to be had, and not needed: it aggregates by itself.
        super().__init__(DuckDB(None), Input("", types, "the relation"))

    def head(self, columns: Sequence[str], count: int) -> NDArray[np.float64]:
        with _explained("a look at the first rows"):
            rows = self._column_values(columns).limit(count).fetchall()
        return np.array(rows, dtype="float64").reshape(-1, len(columns))

    def sample(self, *_: Any) -> NDArray[np.float64]:
        raise ParameterError(_NEEDS_TABLE)

    def means(self, *_: Any) -> NDArray[np.float64]:
        raise ParameterError(_NEEDS_TABLE)

    def _aggregate(self, columns: Sequence[str], expressions: Sequence[str]) -> tuple[Any, ...]:
        with _explained("computing the columns' statistics"):
            values = self._column_values(columns)
            rows: list[tuple[Any, ...]] = values.aggregate(", ".join(expressions)).fetchall()
        return rows[0]

    def _column_values(self, columns: Sequence[str]) -> Any:
        return self._relation.project(", ".join(self._value_items(columns)))


def _write_out(stream: BinaryIO) -> None:
    """Copy a stream of UTF-8 text to standard output, whatever that is just now."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        shutil.copyfileobj(stream, sys.stdout.buffer)
    else:  # a text stream that somebody put in its place
        shutil.copyfileobj(codecs.getreader("utf-8")(stream), sys.stdout)
    sys.stdout.flush()


def _file_relation(path: Path) -> str:
    reader, options = _READERS[_suffix(path, _READERS)]
    name = str(path)
    if path.exists():
        # This file, and not the others that its name would match as a pattern.
        name = re.sub(r"[\[*?]", r"[\g<0>]", name)
    # Behind the fence, as DuckDB else moves our casts into the CSV reader, which then reads 2.5 or
    # 'true' as another type than it said the column has.
    return f"(SELECT * FROM {reader}({text(name, dialect('duckdb'))}, {options}) OFFSET 0)"


def _suffix(path: Path, known: Collection[str]) -> str:
    name = path.name.lower()
    for suffix in sorted(known, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    allowed = ", ".join(known)
    raise ParameterError(f"{str(path)!r} is no kind of file known here: use one of {allowed}")


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except duckdb.Error as bad:
        raise EngineError(f"DuckDB refused {what}: {_in_short(bad)}") from bad


def _in_short(bad: BaseException) -> str:
    """The beginning of DuckDB's message, without the excerpt of the statement."""
    lines = [line.strip() for line in str(bad).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("LINE ", "^"))][:3]
    return " ".join(told)[:300] or type(bad).__name__


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
