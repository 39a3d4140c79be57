"""How DuckDB keeps features: tables and views under their names, CSV and Parquet."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import duckdb

from sqlkrp.engines.duckdb_running import Running, explained
from sqlkrp.engines.session import Columns, Found, Storage, Target, Write
from sqlkrp.errors import ParameterError
from sqlkrp.files import own_folder, require_free, told_written, write_whole
from sqlkrp.gzips import GzipWriter
from sqlkrp.interrupts import note_done
from sqlkrp.memory import bytes_text
from sqlkrp.sql.names import TableName, listed, quote, quote_table, table_name, text
from sqlkrp.urls import File, Url, as_file

__all__ = ["PARQUET", "Writing", "suffix_of"]

_ARRAY = re.compile(r"([A-Z][A-Z0-9_ ]*(?:\(\d+,\d+\))?)((?:\[\d*\])*\[\d+\](?:\[\d*\])*)")
# Of a group of rows in Parquet.
_GROUP_BYTES = 64_000_000
# Of a group of rows as DuckDB has them by itself, in tables and files.
_GROUP_ROWS = 122_880
# Of a CSV from which on Parquet is spoken of.
_LARGE_CSV = 100_000_000
# Characters of a statement whose rows take longer than to be handed out in small tasks.
_MUCH_WORK = 100_000
_SMALL_TASKS = "verify_parallelism"
# Whether a pipe can be opened by a name.
_HAS_PIPES = os.path.isdir("/dev/fd")
# URLs that are only read.
_ONLY_READ = ("https://", "http://", "hf://")
# Other engines' databases, whose tables DuckDB says nothing about.
_WITHOUT_COMMENTS = ("sqlite", "postgres", "mysql")
# Types without texts or names of users in them.
_PLAIN_TYPE = re.compile(r"[A-Z][A-Z0-9_ ]*(\(\d+(, ?\d+)?\))?")
_COPY_OPTIONS = {
    ".csv": "FORMAT csv, HEADER",
    ".csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
    ".parquet": "FORMAT parquet",
}
_PACKED = ", COMPRESSION zstd"
#: The options of a side table's file.
PARQUET = _COPY_OPTIONS[".parquet"] + _PACKED


class Writing(Running):
    """A DuckDB connection that makes tables, views and files."""

    _attached_by: Mapping[str, str] = MappingProxyType({})
    """What attached each database, when a name was last looked for."""

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
        with explained(f"looking for {parts[-1]!r}"):
            rows = self.connection.execute(
                "SELECT current_catalog(), current_schema(),"
                " (SELECT LIST([LOWER(database_name), type]) FROM duckdb_databases()), named.*"
                " FROM (SELECT 1) AS here LEFT JOIN"
                " (SELECT table_catalog, table_schema, table_name, table_type"
                " FROM information_schema.tables WHERE LOWER(table_name) = LOWER(?)) AS named"
                " ON TRUE",
                [parts[-1]],
            ).fetchall()
        catalog, schema, attached = rows[0][:3]
        databases = self._attached_by = dict(attached)
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
        if not view:
            self._use_all_cores(into, select)
        kind = "VIEW" if view else "TABLE"
        how = "CREATE OR REPLACE" if into.storage.replace else "CREATE"
        name, what = quote_table(into.full, self.dialect), f"creating {into.name!r}"
        if not view and (columns := self._declared(into)):
            self.execute(f"{how} TABLE {name} (\n{columns}\n)", what)
            self.execute(f"INSERT INTO {name}\n{select}", what)
        else:
            self.execute(f"{how} {kind} {name} AS\n{select}", what)
        return None if view else self._count()

    def _use_all_cores(self, into: Target, select: str) -> None:
        """Work in small tasks on much that is computed of few rows, which one core would read."""
        much = into.columns is None and len(select) > _MUCH_WORK
        if much and into.reads_at_most(_GROUP_ROWS):
            self.after_transaction.enter_context(self._in_small_tasks())

    def append(self, into: Target, select: str, columns: Sequence[str]) -> int:
        self._use_all_cores(into, select)
        return super().append(into, select, columns)

    def change(self, sql: str, what: str) -> int:
        self.execute(sql, what)
        return self._count()

    def told(self, into: Target) -> str | None:
        assert into.found is not None
        with explained(f"a look at {into.name!r}"):
            rows = self.connection.execute(
                "SELECT comment FROM duckdb_tables()"
                " WHERE database_name = ? AND schema_name = ? AND table_name = ?",
                list(into.found[0]),
            ).fetchall()
        return rows[0][0] if rows else None

    # --- macros -------------------------------------------------------------------------------

    def named_relation(self, parameter: str) -> str:
        return f"query_table({quote(parameter, self.dialect)})"

    def find_macro(self, name: TableName) -> tuple[tuple[str, ...], bool]:
        full, _ = self._named(name)
        with explained(f"looking for {full[-1]!r}"):
            own = self.connection.execute(
                "SELECT 1 FROM duckdb_functions() WHERE internal AND LOWER(function_name) = ?",
                [_folded(full)[-1]],
            ).fetchall()
            if own:
                raise ParameterError(
                    f"{full[-1]!r} is a function of DuckDB's own, which a macro of that name would "
                    "hide: use another name"
                )
            rows = self.connection.execute(
                "SELECT 1 FROM duckdb_functions() WHERE function_type = 'table_macro'"
                " AND LOWER(database_name) = ? AND LOWER(schema_name) = ?"
                " AND LOWER(function_name) = ?",
                list(_folded(full)),
            ).fetchall()
        return full, bool(rows)

    def create_macro(self, into: Target, parameter: str, select: str) -> None:
        name, given = quote_table(into.full, self.dialect), quote(parameter, self.dialect)
        what = f"creating the macro {into.name!r}"
        self.execute(f"CREATE OR REPLACE MACRO {name}({given}) AS TABLE\n{select}", what)
        told = text(into.told, self.dialect)
        self.execute(f"COMMENT ON MACRO TABLE {name} IS {told}", what)

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
        with explained(f"looking at the database {database!r}"):
            found = self.connection.execute(
                "SELECT 1 FROM duckdb_databases() WHERE LOWER(database_name) = LOWER(?)"
                " AND type = 'duckdb' AND path IS NOT NULL",
                [database],
            ).fetchall()
        return bool(found)

    def comment(self, into: Target, told: str | None, *, view: bool) -> None:
        if self._attached_by.get(into.full[0].lower()) not in _WITHOUT_COMMENTS:
            super().comment(into, told, view=view)

    # --- exporting ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def destination(self, path: str | Path, storage: Storage) -> Iterator[Write]:
        with self._written(path, storage) as write, contextlib.ExitStack() as after:

            def write_on_all_cores(select: str, columns: Columns | None) -> int:
                if columns is not None and _group_rows(columns) < _GROUP_ROWS:
                    # Until the transaction has ended: in one that failed nothing can be set.
                    after.enter_context(self._in_small_tasks())
                return write(select, columns)

            yield write_on_all_cores

    @contextlib.contextmanager
    def _in_small_tasks(self) -> Iterator[None]:
        """Several cores at work on a table that is one group of rows, which one reads by itself.

        A task is a vector of rows then, and their order stays; less waits in memory, and an
        interrupt is heard sooner. DuckDB has this for its own tests: where a release has it no
        more, one core goes on. For narrow rows it is not worth it.
        """
        # What is unknown ends a transaction, so it is asked for.
        known = f"SELECT 1 FROM duckdb_functions() WHERE function_name = '{_SMALL_TASKS}'"
        if not self.rows(known, "a look at what it can"):
            yield
            return
        with explained("working in small tasks"):
            self.connection.execute(f"PRAGMA {_SMALL_TASKS}")
        try:
            yield
        finally:
            # Refused in a transaction of the user's that failed; it then stays until the next one.
            with contextlib.suppress(duckdb.Error):
                self.connection.execute(f"PRAGMA disable_{_SMALL_TASKS}")

    @contextlib.contextmanager
    def _written(self, path: str | Path, storage: Storage) -> Iterator[Write]:
        if str(path) == "-":
            through = self._copy_through if _HAS_PIPES else self._copy_after
            yield lambda select, _: through(select, _write_out, "-")
            return
        target = as_file(path)
        suffix = suffix_of(target, _COPY_OPTIONS)
        options = _COPY_OPTIONS[suffix]
        if isinstance(target, Url):
            _require_writable(target)
            if not storage.replace:
                self._require_free(target)
            yield lambda select, columns: self._upload(self._in_lists(select, columns), target)
            note_done(told_written(target))
            return

        def write(select: str, columns: Columns | None) -> int:
            if suffix == ".csv.gz" and _HAS_PIPES:
                return self._copy_through(select, partial(_compress, part), str(target))
            if suffix != ".parquet":
                return self._copy(select, part, options, str(target))
            more = _PACKED if columns is None else _row_groups(columns)
            return self._copy(self._in_lists(select, columns), part, options + more, str(target))

        with write_whole(target, replace=storage.replace) as part:
            yield write

    def better_file(self, path: str | Path, columns: Columns | None, rows: int) -> str | None:
        if str(path) == "-" or columns is None or isinstance(as_file(path), Url):
            return None
        is_csv = suffix_of(Path(path), _COPY_OPTIONS) != ".parquet"
        size = Path(path).stat().st_size
        if not is_csv or size <= _LARGE_CSV:
            return None
        packed = rows * _row_bytes(columns)
        return (
            f".parquet, several times as quick to write and to read: about {bytes_text(packed)} in "
            f"place of {bytes_text(size)}"
        )

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

    def _require_free(self, target: Url) -> None:
        """Raise TargetExistsError if there is a file of this name."""
        # As a pattern that only it matches: DuckDB takes a name without one to be there.
        pattern = re.sub(r"[^?](?=\?|$)", r"[\g<0>]", target.url, count=1)
        look = f"SELECT 1 FROM glob({text(pattern, self.dialect)})"
        found = self.rows(look, f"a look at {target}")
        require_free(target, is_there=bool(found))

    def _upload(self, select: str, target: Url) -> int:
        """Write a file that is named by a URL, from features that are whole already.

        Of a statement that fails while it uploads, DuckDB ends the file where it was.
        """
        options = _COPY_OPTIONS[suffix_of(target, _COPY_OPTIONS)]
        with own_folder("upload") as folder:
            folder.mkdir(mode=0o700)
            part = folder / "features.parquet"
            self._copy(select, part, PARQUET, str(target))
            whole = f"SELECT * FROM read_parquet({text(str(part), self.dialect)})"
            return self._copy(whole, target.url, options, str(target))

    def _copy(self, select: str, path: Path | str, options: str, named: str) -> int:
        self.execute(
            f"COPY (\n{select}\n) TO {text(str(path), self.dialect)} ({options})",
            f"writing {named}",
        )
        return self._count()

    def _copy_through(self, select: str, take: Callable[[BinaryIO], None], named: str) -> int:
        """Write CSV through a pipe to what takes it there."""
        read_end, write_end = os.pipe()
        broken: list[BaseException] = []

        def forward() -> None:
            with os.fdopen(read_end, "rb") as stream:
                try:
                    take(stream)
                except BaseException as bad:
                    broken.append(bad)  # closing the stream then ends the COPY as well

        forwarder = threading.Thread(target=forward, name="sqlkrp-pipe")
        forwarder.start()
        try:
            return self._copy(select, Path(f"/dev/fd/{write_end}"), _COPY_OPTIONS[".csv"], named)
        finally:
            os.close(write_end)
            forwarder.join()
            if broken:
                raise broken[0]

    def _copy_after(self, select: str, take: Callable[[BinaryIO], None], named: str) -> int:
        """Write CSV to a file, and hand it on: where a pipe has no name that DuckDB could open."""
        with own_folder("output") as folder:
            folder.mkdir(mode=0o700)
            part = folder / "features.csv"
            count = self._copy(select, part, _COPY_OPTIONS[".csv"], named)
            with part.open("rb") as stream:
                take(stream)
        return count

    def _count(self) -> int:
        """The rows that the last statement wrote."""
        row = self.connection.fetchone()
        return int(row[0])


def _require_writable(target: Url) -> None:
    """Raise ParameterError if DuckDB only reads there, which it would say when all is computed."""
    if target.url.lower().startswith(_ONLY_READ):
        raise ParameterError(
            f"DuckDB reads {str(target)!r}, and cannot write it: give a path, or a URL of a store "
            "that it writes, such as s3://..."
        )


def _row_bytes(columns: Columns) -> int:
    """What the features of a row take in Parquet, where they are noise."""
    return len(columns.features) * (4 if columns.type == "FLOAT" else 8)


def _group_rows(columns: Columns) -> int:
    """Rows whose features take some 64 MB, in whole vectors of DuckDB's."""
    return max(_GROUP_BYTES // _row_bytes(columns) // 2048, 1) * 2048


def _row_groups(columns: Columns) -> str:
    """The options for rows that are mostly features: groups of some 64 MB, packed in a hurry.

    DuckDB works on several groups at once, and by itself takes as many rows as of a table, which
    are half a gigabyte of a thousand features. Of noise zstd saves 7%, for a tenth of the run;
    numbers split by their bytes (PARQUET_VERSION v2) save a little more, and take longer.
    """
    rows = _group_rows(columns)
    return f", ROW_GROUP_SIZE {rows}, COMPRESSION snappy" if rows < _GROUP_ROWS else _PACKED


def _write_out(stream: BinaryIO) -> None:
    """Copy a stream of UTF-8 text to standard output, whatever that is just now.

    Through a pipe, as opening /dev/stdout would truncate a file that it was redirected to.
    """
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        shutil.copyfileobj(stream, sys.stdout.buffer)
    else:  # a text stream that somebody put in its place
        shutil.copyfileobj(codecs.getreader("utf-8")(stream), sys.stdout)
    sys.stdout.flush()


def _compress(path: Path, stream: BinaryIO) -> None:
    """Compress a stream to a file, on all cores; DuckDB does so on one, and more slowly."""
    with GzipWriter(path) as file:
        shutil.copyfileobj(stream, file, 1 << 16)  # by itself Python 3.15 reads much at once


def _folded(full: Sequence[str]) -> tuple[str, ...]:
    """A full name to compare, as DuckDB ignores case."""
    return tuple(part.lower() for part in full)


def suffix_of(path: File, known: Collection[str]) -> str:
    """The end of a file's name, which must be one of those known."""
    name = path.name.lower()
    for suffix in sorted(known, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    allowed = ", ".join(known)
    raise ParameterError(f"{str(path)!r} is no kind of file known here: use one of {allowed}")
