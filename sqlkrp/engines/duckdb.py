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
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.duckdb_twin import drop_function, make_function, relation_of
from sqlkrp.engines.inputs import Input
from sqlkrp.engines.session import (
    STATEMENT,
    Capabilities,
    Columns,
    Found,
    Session,
    Storage,
    TableOrFile,
    Target,
    Write,
)
from sqlkrp.engines.statistics import statistics_of, values_of
from sqlkrp.errors import ColumnError, EngineError, ParameterError
from sqlkrp.files import own_number, remove_dead, require_no_folder, reserve, write_whole
from sqlkrp.maps.source import BOOLEAN, FLOAT32, NUMBER, NUMERIC, Statistics
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.names import TableName, listed, quote, quote_table, table_name, text
from sqlkrp.sql.side_tables import Table, create_side_table
from sqlkrp.sql.twin import Twin
from sqlkrp.sql.vectors import Vector

__all__ = ["DuckDB", "RelationSource", "write_parquet"]

_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|BIGNUM|DECIMAL\(.*\)")
_ARRAY = re.compile(r"([A-Z][A-Z0-9_ ]*(?:\(\d+,\d+\))?)((?:\[\d*\])*\[\d+\](?:\[\d*\])*)")
# Of a group of rows in Parquet.
_GROUP_BYTES = 64_000_000
# Types without texts or names of users in them.
_PLAIN_TYPE = re.compile(r"[A-Z][A-Z0-9_ ]*(\(\d+(, ?\d+)?\))?")
_COPY_OPTIONS = {
    ".csv": "FORMAT csv, HEADER",
    ".csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
}
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

# Seconds in which an interrupt is to be heard.
_PATIENCE = 30.0
# Connections that hear none; what is not referred to would be closed, which waits for them.
_ABANDONED: list[Any] = []


class _Abandoned:
    """In the place of a connection that does not answer any more."""

    def __getattr__(self, name: str) -> Any:
        raise duckdb.ConnectionException(
            "the connection did not end the statement that was interrupted: end this process"
        )


class DuckDB(Session):
    """A DuckDB connection that computes features."""

    dialect = dialect("duckdb")
    can = Capabilities(
        transactions=True,
        temporary_tables=True,
        views=True,
        comments=True,
        relations=True,
        twin=True,
    )

    def __init__(self, connection: Any, on_close: Callable[[], None] | None = None) -> None:
        self.connection = connection
        self._on_close = on_close

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
            raise kind(f"cannot read {name}: {_in_short(cause)}") from cause
        return {row[0]: row[1] for row in rows}

    def reads(self, relation: str) -> set[str]:
        with _explained("a look at what is read"):
            names = self.connection.get_table_names(f"SELECT * FROM {relation}")
        return {name.lower() for name in names}

    @staticmethod
    def kind(type_name: str) -> str:
        kinds = {"FLOAT": FLOAT32, "BOOLEAN": BOOLEAN}
        return kinds.get(type_name, NUMBER if _NUMBERS.fullmatch(type_name) else type_name)

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
        return f"SELECT {listed} FROM {relation} AS every USING SAMPLE reservoir({count:d} ROWS)"

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

        threading.Thread(target=run, name=STATEMENT, daemon=True).start()
        try:
            # Not Thread.join: a signal that meets it makes Python take the thread for ended.
            while not done.wait(0.1):
                self._report_progress()
            self._report_progress(1.0)
        except BaseException:
            self._interrupt(done)
            raise
        if failed:
            with _explained(what):
                raise failed[0]

    def _interrupt(self, done: threading.Event) -> None:
        """End the statement that runs; let go of a connection that hears no interrupt."""
        end = time.monotonic() + _PATIENCE
        with contextlib.suppress(KeyboardInterrupt):  # who asks again does not want to wait
            while time.monotonic() < end:
                if done.wait(0.1):
                    return
                self.connection.interrupt()
        # DuckDB 2.0.0 may wait for itself where Parquet is written. Nothing can be asked of that
        # connection any more: not even to be closed.
        _ABANDONED.append(self.connection)
        self.connection, self._on_close = _Abandoned(), None

    def _report_progress(self, share: float | None = None) -> None:
        if self.on_progress is not None:
            if share is None:
                share = self.connection.query_progress() / 100
            if share >= 0:
                self.on_progress(share)

    def load(self, name: str, columns: Table) -> None:
        table, view = quote(name, self.dialect), f"{name}_load"
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

    # --- NumPy inside statements --------------------------------------------------------------

    def by_twin(self, twin: Twin) -> tuple[str, Vector]:
        return relation_of(twin)

    def load_twin(self, twin: Twin) -> None:
        with _explained("a function of NumPy's"):
            make_function(self.connection, twin)

    def drop_twin(self, twin: Twin) -> None:
        drop_function(self.connection, twin)

    # --- creating -----------------------------------------------------------------------------

    def target(self, table: TableName) -> Target:
        full, there = self._named(table)
        return Target(full, there.get(_folded(full)))

    def find(self, table: TableName) -> Found | None:
        full, there = self._named(table)
        # An unqualified name is that of a temporary table first, as for DuckDB itself.
        temporary = ("temp", "main", full[-1])
        found = there.get(_folded(temporary)) if len(table_name(table)) == 1 else None
        return found or there.get(_folded(full))

    def _named(self, table: TableName) -> tuple[tuple[str, ...], dict[tuple[str, ...], Found]]:
        """The full name of what a table of this name would be, and all that ends as it does."""
        parts = table_name(table)
        with _explained(f"looking for {parts[-1]!r}"):
            rows = self.connection.execute(
                "SELECT current_catalog(), current_schema(),"
                " (SELECT LIST(LOWER(database_name)) FROM duckdb_databases()), named.*"
                " FROM (SELECT 1) AS here LEFT JOIN"
                " (SELECT table_catalog, table_schema, table_name, table_type"
                " FROM information_schema.tables WHERE LOWER(table_name) = LOWER(?)) AS named"
                " ON TRUE",
                [parts[-1]],
            ).fetchall()
        catalog, schema, databases = rows[0][:3]
        there = {
            _folded(row[3:6]): (tuple(row[3:6]), "view" if row[6] == "VIEW" else "table")
            for row in rows
            if row[6] is not None
        }
        if len(parts) == 1:
            return (catalog, schema, *parts), there
        # Two parts may be a schema or a database and a table.
        if len(parts) == 2 and parts[0].lower() in databases:
            return (parts[0], "main", parts[1]), there
        return (catalog, *parts) if len(parts) == 2 else parts, there

    def create(self, into: Target, select: str, *, view: bool) -> int | None:
        kind = "VIEW" if view else "TABLE"
        how = "CREATE OR REPLACE" if into.storage.replace else "CREATE"
        name, what = quote_table(into.full, self.dialect), f"creating {into.name!r}"
        if not view and (columns := self._declared(into)):
            self.execute(f"{how} TABLE {name} (\n{columns}\n)", what)
            self.execute(f"INSERT INTO {name}\n{select}", what)
        else:
            self.execute(f"{how} {kind} {name} AS\n{select}", what)
        return None if view else self._count()

    def _declared(self, into: Target) -> str:
        """The columns of a table, of which features are not compressed; empty where that is moot.

        They take as much room compressed, and DuckDB tries every way to that of each column, which
        takes a quarter of a run.
        """
        columns = into.columns
        if columns is None or columns.type != "FLOAT" or not self._is_file(into.full[0]):
            return ""
        if not all(map(_PLAIN_TYPE.fullmatch, columns.kept.values())):
            return ""
        kept = [f"{quote(name, self.dialect)} {kind}" for name, kind in columns.kept.items()]
        how = f"{columns.type} USING COMPRESSION 'uncompressed'"
        features = [f"{quote(name, self.dialect)} {how}" for name in columns.features]
        return listed([*kept, *features])

    def _is_file(self, database: str) -> bool:
        """Whether a database is a file of DuckDB's own; one in memory is not compressed at all."""
        with _explained(f"looking at the database {database!r}"):
            found = self.connection.execute(
                "SELECT 1 FROM duckdb_databases() WHERE LOWER(database_name) = LOWER(?)"
                " AND type = 'duckdb' AND path IS NOT NULL",
                [database],
            ).fetchall()
        return bool(found)

    # --- exporting ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def destination(self, path: str | Path, storage: Storage) -> Iterator[Write]:
        if str(path) == "-":
            yield lambda select, _: self._copy_to_stdout(select)
            return
        target = Path(path)
        suffix = _suffix(target, _COPY_OPTIONS)
        options = _COPY_OPTIONS[suffix]

        def write(select: str, columns: Columns | None) -> int:
            if suffix != ".parquet":
                return self._copy(select, part, options, str(target))
            size = "" if columns is None else _row_groups(columns)
            return self._copy(self._in_lists(select, columns), part, options + size, str(target))

        with write_whole(target, replace=storage.replace) as part:
            yield write

    def _in_lists(self, select: str, columns: Columns | None) -> str:
        """A SELECT with a list in place of each array of a fixed size."""
        # Where such an array is NULL, DuckDB writes entries for its items all the same. Some read
        # over them; pyarrow refuses the file. Lists are the same type in Parquet.
        casts = []
        if columns is None:  # asking takes half as long as planning
            described = f"DESCRIBE SELECT * FROM (\n{select}\n)"
            types = [row[:2] for row in self.rows(described, "the features")]
        else:
            types = list(columns.kept.items())
        for name, kind in types:
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


def write_parquet(path: Path, columns: Table) -> None:
    """Write a side table to a file."""
    with contextlib.closing(DuckDB.open(None)) as session:
        session.load("side_table", columns)
        session._copy("SELECT * FROM side_table", path, _COPY_OPTIONS[".parquet"], str(path))


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
        self._data = Input("", types, self.kinds, "the relation")

    def statistics(self, columns: Sequence[str]) -> Statistics:
        return statistics_of(columns, self._aggregate, DuckDB.dialect)

    def head(self, columns: Sequence[str], count: int) -> NDArray[np.float64]:
        with _explained("a look at the first rows"):
            rows = self._column_values(columns).limit(count).fetchall()
        return np.array(rows, dtype="float64").reshape(-1, len(columns))

    def _aggregate(self, columns: Sequence[str], expressions: Sequence[str]) -> tuple[Any, ...]:
        with _explained("computing the columns' statistics"):
            values = self._column_values(columns)
            rows: list[tuple[Any, ...]] = values.aggregate(", ".join(expressions)).fetchall()
        return rows[0]

    def _column_values(self, columns: Sequence[str]) -> Any:
        return self._relation.project(", ".join(values_of(self._data, DuckDB.dialect, columns)))


def _row_groups(columns: Columns) -> str:
    """The option for groups of rows of some 64 MB: DuckDB works on several groups at once.

    By itself it takes 122,880 rows, which are half a gigabyte of a thousand features.
    """
    rows = _GROUP_BYTES // (4 * len(columns.features))
    return f", ROW_GROUP_SIZE {max(rows // 2048, 1) * 2048}" if rows < 122_880 else ""


def _write_out(stream: BinaryIO) -> None:
    """Copy a stream of UTF-8 text to standard output, whatever that is just now."""
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        shutil.copyfileobj(stream, sys.stdout.buffer)
    else:  # a text stream that somebody put in its place
        shutil.copyfileobj(codecs.getreader("utf-8")(stream), sys.stdout)
    sys.stdout.flush()


def _reader(path: Path) -> tuple[str, str, str]:
    """The function that reads a file, the file's name in it, and its options."""
    reader, options = _READERS[_suffix(path, _READERS)]
    name = str(path)
    if path.exists():
        # This file, and not the others that its name would match as a pattern.
        name = re.sub(r"[\[*?]", r"[\g<0>]", name)
    return reader, _text(name), options


def _folded(full: Sequence[str]) -> tuple[str, ...]:
    """A full name to compare, as DuckDB ignores case."""
    return tuple(part.lower() for part in full)


def _fenced(call: str) -> str:
    # Behind the fence, as DuckDB else moves our casts into the CSV reader, which then reads 2.5 or
    # 'true' as another type than it said the column has.
    return f"(SELECT * FROM {call} OFFSET 0)"


def _struct(texts: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_text(name)}: {_text(one)}" for name, one in texts.items()) + "}"


def _text(value: str) -> str:
    return text(value, dialect("duckdb"))


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
