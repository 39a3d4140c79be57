"""SQLite, through the standard library."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote as url_quote

import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.session import (
    Capabilities,
    Found,
    Session,
    Storage,
    Streamed,
    Target,
    Write,
    csv_file,
    rows_at_once,
    streamed,
)
from sqlkrp.errors import ColumnError, EngineError
from sqlkrp.files import csv_text, own_number
from sqlkrp.interrupts import COMMITTED, interrupts_held
from sqlkrp.maps.source import BOOLEAN, DATE, NUMBER, TEXT
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.names import TableName, listed, quote, quote_table, table_name
from sqlkrp.sql.side_tables import Table, create_side_table

__all__ = ["SQLite"]

_NUMBERS = re.compile(r"INT|REAL|FLOA|DOUB|NUM|DEC", re.IGNORECASE)
_TEXTS = re.compile(r"CHAR|CLOB|TEXT|BLOB|DATE|TIME", re.IGNORECASE)
_WORDS = re.compile(r"CHAR|CLOB|TEXT|STRING|ENUM", re.IGNORECASE)
_DATES = re.compile(r"DATE|TIMESTAMP", re.IGNORECASE)
_AFFINITIES = {"INT": "INT", "CHAR|CLOB|TEXT": "TEXT", "BLOB": "", "REAL|FLOA|DOUB": "REAL"}
_ROWS_AT_ONCE = 1000
_COLUMNS_AT_ONCE = 1000
# Steps of the engine between two looks at signals.
_STEPS = 100_000


def _why_closed(path: str, told: str) -> str:
    """Why a file cannot be opened, with what to do where that is known."""
    if "not a database" in told:
        return f"{path!r} is no SQLite database: give one"
    if "locked" in told:
        return f"cannot open {path}: another program is writing to it; try again when it has ended"
    return f"cannot open {path}: {told}"


class SQLite(Session):
    """A SQLite connection that computes features."""

    dialect = dialect("sqlite")
    can = Capabilities(
        transactions=True, temporary_tables=True, views=True, appends=True, upserts=True
    )

    connection: sqlite3.Connection

    def __init__(self, connection: sqlite3.Connection, *, owned: bool = False) -> None:
        self.connection = connection
        self._owned = owned
        self._undropped: set[str] = set()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False) -> SQLite:
        """Open a database file."""
        name = os.path.abspath(os.fspath(path))
        with contextlib.ExitStack() as on_failure:
            try:
                connection = sqlite3.connect(
                    f"file:{url_quote(name)}?mode={'ro' if read_only else 'rwc'}",
                    uri=True,
                    isolation_level=None,
                )
                on_failure.callback(connection.close)
                connection.execute("SELECT 1 FROM sqlite_master").fetchall()
            except sqlite3.Error as bad:
                raise EngineError(_why_closed(os.fspath(path), str(bad))) from bad
            on_failure.pop_all()
        return cls(connection, owned=True)

    @staticmethod
    def is_connection(target: Any) -> bool:
        """Whether this is an open SQLite connection."""
        return isinstance(target, sqlite3.Connection)

    def close(self) -> None:
        for name in list(self._undropped):
            self.drop_temporary(name)
        if self._owned:
            self.connection.close()

    # --- looking ------------------------------------------------------------------------------

    def describe(self, relation: str, name: str) -> dict[str, str]:
        try:
            with self._listening():
                cursor = self._send(f"SELECT * FROM {relation} LIMIT 0")
                columns = [column[0] for column in cursor.description]
                declared = self._declared_types(relation)
        except sqlite3.Error as bad:
            raise ColumnError(f"cannot read {name}: {bad}") from bad
        types = {column: declared.get(column, "") for column in columns}
        return types | self._found_types(relation, [one for one, kind in types.items() if not kind])

    def _declared_types(self, relation: str) -> dict[str, str]:
        parts = re.findall("`((?:[^`]|``)+)`", relation)  # as relation() wrote them
        *schema, name = [part.replace("``", "`") for part in parts]
        places = ", ".join("?" for _ in (name, *schema))
        sql = f"SELECT name, type FROM pragma_table_info({places})"
        return dict(self._send(sql, [name, *schema]).fetchall())

    def _found_types(self, relation: str, columns: Sequence[str]) -> dict[str, str]:
        """What columns hold that declare no type, such as a view's expressions."""
        types: dict[str, str] = {}
        for first in range(0, len(columns), _COLUMNS_AT_ONCE):
            part = columns[first : first + _COLUMNS_AT_ONCE]
            tests = [f"MAX(TYPEOF({quote(one, self.dialect)}) IN ('text', 'blob'))" for one in part]
            (found,) = self.rows(
                f"SELECT {', '.join(tests)} FROM {relation}", "a look at what columns hold"
            )
            pairs = zip(part, found, strict=True)
            types |= {name: "TEXT" if holds_text else "REAL" for name, holds_text in pairs}
        return types

    def kind(self, type_name: str) -> str:
        if type_name.upper().startswith("BOOL"):
            return BOOLEAN
        is_number = _NUMBERS.search(type_name) and not _TEXTS.search(type_name)
        return NUMBER if is_number else type_name

    def texts_and_dates(self, types: Mapping[str, str]) -> dict[str, str]:
        # It has no dates but texts in columns that are called so; a time alone is none.
        sorts = {
            name: DATE if _DATES.search(one) else TEXT if _WORDS.search(one) else None
            for name, one in types.items()
        }
        return {name: sort for name, sort in sorts.items() if sort is not None}

    def reads(self, relation: str) -> set[str]:
        # The plan opens tables and indexes by their database and root page.
        with _told("a look at what is read"), self._listening():
            plan = self._send(f"EXPLAIN SELECT * FROM {relation}").fetchall()
            opened = {(step[4], step[3]) for step in plan if step[1] == "OpenRead"}
            databases = self._send("SELECT seq, name FROM pragma_database_list").fetchall()
            return {
                table.lower()
                for place, name in databases
                for page, table in self._send(
                    f"SELECT rootpage, tbl_name FROM {quote(name, self.dialect)}.sqlite_master"
                ).fetchall()
                if (place, page) in opened
            }

    def primary_key(self, table: TableName) -> list[str]:
        found = self.find(table)
        if found is None:
            return []
        (schema, name), _ = found
        with _told("a look at its keys"), self._listening():
            rows = self._send(
                "SELECT name FROM pragma_table_info(?, ?) WHERE pk > 0", [name, schema]
            ).fetchall()
        return [row[0] for row in rows]

    def files(self) -> list[Path]:
        with _told("a look at its files"), self._listening():
            rows = self._send("SELECT file FROM pragma_database_list").fetchall()
        return [Path(file) for (file,) in rows if file]

    def target(self, table: TableName) -> Target:
        parts = table_name(table, self.dialect)
        full = parts if len(parts) > 1 else ("main", *parts)
        return Target(full, self._look_in(full[-2], full[-1]))

    def find(self, table: TableName) -> Found | None:
        parts = table_name(table, self.dialect)
        # An unqualified name is that of a temporary table first, as for SQLite itself.
        places = [parts[-2]] if len(parts) > 1 else ["temp", "main"]
        found = (self._look_in(place, parts[-1]) for place in places)
        return next((one for one in found if one is not None), None)

    def _look_in(self, place: str, name: str) -> Found | None:
        with _told(f"looking for {name!r}"), self._listening():
            rows = self._send(
                f"SELECT name, type FROM {quote(place, self.dialect)}.sqlite_master"
                " WHERE type IN ('table', 'view') AND lower(name) = lower(?)",
                [name],
            ).fetchall()
        return ((place.lower(), rows[0][0]), rows[0][1]) if rows else None

    # --- running ------------------------------------------------------------------------------

    def execute(self, sql: str, what: str) -> None:
        with _told(what), self._listening():
            self._send(sql)

    def rows(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        with _told(what), self._listening():
            rows: list[tuple[Any, ...]] = self._send(sql).fetchall()
        return rows

    def columns(self, sql: str, names: Sequence[str], what: str) -> NDArray[Any]:
        with _told(what), self._listening():
            cursor = self._send(sql)
            found = [column[0] for column in cursor.description]
            places = [found.index(name) for name in names]
            rows = [[row[place] for place in places] for row in cursor.fetchall()]
        return np.array(rows, dtype="float64").reshape(-1, len(names))

    def stream(
        self, relation: str, numbers: Sequence[str], texts: Sequence[str], what: str
    ) -> Iterator[Streamed]:
        size = rows_at_once(numbers, texts)
        with _told(what), self._listening():
            cursor = self._send(f"SELECT {', '.join([*numbers, *texts])} FROM {relation} AS every")
        while True:
            with _told(what), self._listening():
                rows = cursor.fetchmany(size)
            if not rows:
                return
            yield streamed(rows, len(numbers))

    def _send(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement on a cursor of our own kind, whatever the user's makes of rows."""
        cursor = self.connection.cursor(sqlite3.Cursor)
        cursor.row_factory = None
        return cursor.execute(sql, values)

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Hear a Ctrl-C, for which the engine would not stop before it is done; texts are texts."""
        heard: list[BaseException] = []
        looks = _look_at_signals(heard)
        next(looks)  # into its try: what is raised on the way there only sqlite3 would see
        texts = self.connection.text_factory
        try:
            self.connection.text_factory = str
            self.connection.set_progress_handler(looks.__next__, _STEPS)
            yield
        except sqlite3.OperationalError:
            if heard:
                raise heard[0] from None
            raise
        finally:
            self.connection.set_progress_handler(None, 0)
            self.connection.text_factory = texts

    # --- writing ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self, *, keep: bool = True, grows: TableName | None = None) -> Iterator[None]:
        # Inside a transaction of the user's, a part of it. One that writes is alone in the file.
        with _told("a look at its transaction"):
            inside = self.connection.in_transaction
        begin, end, undo = (
            ("SAVEPOINT sqlkrp", "RELEASE sqlkrp", "ROLLBACK TO sqlkrp; RELEASE sqlkrp")
            if inside
            # To write, it waits for others who do; later there would be no waiting.
            else ("BEGIN IMMEDIATE" if keep else "BEGIN", "COMMIT", "ROLLBACK")
        )
        self.execute(begin, "beginning")
        try:
            yield
            # Also where nothing is to stay: rolling back would end what the user has pending, and
            # the temporary tables have been dropped.
            with interrupts_held(COMMITTED if keep and not inside else ""):
                self.execute(end, "committing")
        except BaseException:
            for statement in undo.split("; "):
                with contextlib.suppress(sqlite3.Error):
                    self._send(statement)
            raise

    def load(self, name: str, columns: Table) -> None:
        places = ", ".join("?" for _ in columns)
        with _told(f"loading the side table {name}"):
            self._send(create_side_table(name, columns, self.dialect, temporary=True))
            self.connection.executemany(
                f"INSERT INTO temp.{quote(name, self.dialect)} VALUES ({places})",
                zip(*(array.tolist() for array in columns.values()), strict=True),
            )

    def drop_temporary(self, name: str) -> None:
        try:
            self._send(f"DROP TABLE IF EXISTS temp.{quote(name, self.dialect)}")
            self._undropped.discard(name)
        except sqlite3.Error:
            self._undropped.add(name)  # while a cursor of the user's is open, none can be dropped

    def create(self, into: Target, select: str, *, view: bool) -> int | None:
        kind = "VIEW" if view else "TABLE"
        name = quote_table(into.full, self.dialect)
        what = f"creating {into.name!r}"
        if into.storage.replace:
            self.execute(f"DROP {kind} IF EXISTS {name}", what)
        if view:
            self.execute(f"CREATE VIEW {name} AS\n{select}", what)
            return None
        types = self._types_of(select)
        if into.columns is not None:
            types |= dict.fromkeys(into.columns.features, into.columns.type)
        declared = [f"{quote(one, self.dialect)} {kind}".rstrip() for one, kind in types.items()]
        # It has no comments on tables, but keeps those in the text that a table is created by.
        self.execute(f"CREATE TABLE {name} (/* {into.told} */\n{listed(declared)}\n)", what)
        return self.append(into, select, list(types))

    def _types_of(self, select: str) -> dict[str, str]:
        """The columns of a SELECT, and the types of a table that is made of it; nothing is read."""
        view = f"sqlkrp_{own_number()}"
        what = "a look at what is computed"
        self.execute(f"CREATE TEMPORARY VIEW {quote(view, self.dialect)} AS\n{select}", what)
        try:
            with _told(what), self._listening():
                sql = "SELECT name, type FROM pragma_table_info(?, 'temp')"
                return {name: _affinity(kind) for name, kind in self._send(sql, [view]).fetchall()}
        finally:
            self.execute(f"DROP VIEW temp.{quote(view, self.dialect)}", what)

    def change(self, sql: str, what: str) -> int:
        with _told(what), self._listening():
            return self._send(sql).rowcount

    def told(self, into: Target) -> str | None:
        assert into.found is not None
        place, name = into.found[0]
        with _told(f"a look at {name!r}"), self._listening():
            rows = self._send(
                f"SELECT sql FROM {quote(place, self.dialect)}.sqlite_master WHERE name = ?", [name]
            ).fetchall()
        found = re.search(r"\(/\* (sqlkrp [^*]*) \*/\n", rows[0][0])
        return found and found[1]

    def columns_beside(self, into: Target, select: str) -> tuple[dict[str, str], dict[str, str]]:
        # By types as they are declared: what columns hold without one would be looked for.
        with _told(f"a look at {into.name!r}"), self._listening():
            there = self._declared_types(quote_table(into.full, self.dialect))
        kinds = {name: _affinity(kind) for name, kind in there.items()}
        new = self._types_of(select)
        if into.columns is not None:
            new |= {name: into.columns.type for name in into.columns.features if name in new}
        return kinds, new

    def restore_names(self, table: tuple[str, ...], names: Sequence[str], *, view: bool) -> None:
        # What a SELECT calls true or false, it takes for no name: it creates a column1 there.
        full = quote_table(table, self.dialect)
        with _told("a look at what was created"), self._listening():
            found = self._declared_types(full)
        for given, name in zip(found, names, strict=True):
            if given == name:
                continue
            if view:
                raise ColumnError(
                    f"SQLite has no views with a column named {name!r}: create a table, or leave "
                    "the column out"
                )
            self.execute(
                f"ALTER TABLE {full} RENAME COLUMN {quote(given, self.dialect)} "
                f"TO {quote(name, self.dialect)}",
                f"naming the column {name!r}",
            )

    @contextlib.contextmanager
    def destination(self, path: str | Path, storage: Storage) -> Iterator[Write]:
        if str(path) == "-":
            yield lambda select, _: self._write_csv(select, sys.stdout, "standard output")
            return
        with (
            csv_file(path, self.dialect.name, replace=storage.replace) as file,
            io.TextIOWrapper(file, encoding="utf-8", newline="") as text,
        ):
            yield lambda select, _: self._write_csv(select, text, str(path))

    def _write_csv(self, select: str, file: TextIO, named: str) -> int:
        count = 0
        with _told(f"writing {named}"), self._listening():
            cursor = self._send(select)
            file.write(csv_text([[column[0] for column in cursor.description]]))
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                # Any row may hold bytes: types are the values', not the columns'.
                file.write(csv_text([list(map(_as_text, row)) for row in rows]))
                count += len(rows)
        file.flush()
        return count


def _affinity(declared: str) -> str:
    """The type that a table made of a column of this type has; the rules are SQLite's own."""
    for part, kind in _AFFINITIES.items():
        if re.search(part, declared, re.IGNORECASE):
            return kind
    return "NUM" if declared else ""


def _as_text(value: Any) -> Any:
    """A value as CSV has it: bytes as hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else value


def _look_at_signals(heard: list[BaseException]) -> Iterator[int]:
    """What the engine asks now and then: 0, or 1 to stop as a signal's handler raised something.

    A generator, as a handler runs as soon as Python does, and here that is inside of the try.
    """
    try:
        while True:
            yield 0
    except GeneratorExit:
        return
    except BaseException as stop:
        heard.append(stop)
    while True:
        yield 1


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as bad:
        told = " ".join(str(bad).split())[:300]
        cure = ": another connection is at work in it; try again when that is done"
        raise EngineError(f"SQLite refused {what}: {told}{cure if _is_busy(bad) else ''}") from bad


def _is_busy(bad: sqlite3.Error) -> bool:
    """Whether another connection holds what this one needs."""
    code = getattr(bad, "sqlite_errorcode", None)
    if code is None:  # before Python 3.11 there was only the text
        return "locked" in str(bad)
    return code & 0xFF in (5, 6)  # SQLITE_BUSY, SQLITE_LOCKED
