"""PostgreSQL, through psycopg 3."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from sqlkrp.engines.postgres_twin import fetched, fill, relation_of, table_of
from sqlkrp.engines.session import (
    Capabilities,
    Found,
    Session,
    Storage,
    Streamed,
    Target,
    Write,
    csv_file,
)
from sqlkrp.errors import ColumnError, EngineError, ParameterError
from sqlkrp.files import own_number
from sqlkrp.interrupts import COMMITTED, interrupts_held
from sqlkrp.maps.source import BOOLEAN, DATE, FLOAT32, NUMBER, TEXT
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.names import TableName, quote, quote_table, table_name
from sqlkrp.sql.side_tables import Table, create_side_table
from sqlkrp.sql.twin import Twin
from sqlkrp.sql.vectors import Vector

__all__ = ["Postgres"]

_SORTS = {
    **dict.fromkeys(("text", "varchar", "bpchar"), TEXT),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), DATE),
}
_NUMBERS = ("int2", "int4", "int8", "float8", "numeric")
# Of the statement's transaction only. Compiling thousands of terms takes longer than it saves;
# floats are written so that they read back as they were; a backslash in a text is one. A row takes
# thousands of operations, so workers are worth it for less than the 8 MB of rows that they are for
# by default; but each reads a plan as large, which takes as long as 20,000 of the planner's units.
_SETTINGS = {
    "jit": "off",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "min_parallel_table_scan_size": "256kB",
    "parallel_setup_cost": "20000",
}
# Rows of up to a page stay whole: by default, arrays of more than 2 KB are compressed and moved
# out, which took longer than computing them.
_STORAGE = "toast_tuple_target = 8160"
_RELKINDS = {"v": "view", "m": "materialized view"}
_OF_OID = (
    "LEFT JOIN pg_class ON pg_class.oid = named.oid"
    " LEFT JOIN pg_namespace ON pg_namespace.oid = relnamespace"
)
_LOAD_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

# psycopg logs that it could not roll back over a lost connection; that error is raised here.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Postgres(Session):
    """A psycopg connection that computes features."""

    dialect = dialect("postgres")
    can = Capabilities(
        transactions=True,
        temporary_tables=True,
        views=True,
        comments=True,
        appends=True,
        upserts=True,
        twin=True,
    )

    def __init__(self, connection: Any, *, read_only: bool = False, owned: bool = False) -> None:
        self.connection = connection
        self._read_only = read_only
        self._owned = owned
        self._locked: Found | None = None

    @classmethod
    def open(cls, url: str, *, read_only: bool = False) -> Postgres:
        """Connect to a server."""
        where = _where(url)
        try:
            connection = psycopg.connect(url, autocommit=True)
        except psycopg.Error as bad:
            raise EngineError(f"cannot connect to {where}: {_in_short(bad)}") from bad
        return cls(connection, read_only=read_only, owned=True)

    @staticmethod
    def is_connection(target: Any) -> bool:
        """Whether this is an open psycopg connection."""
        return isinstance(target, psycopg.Connection)

    def close(self) -> None:
        if self._owned:
            self.connection.close()

    # --- looking ------------------------------------------------------------------------------

    def describe(self, relation: str, name: str) -> dict[str, str]:
        with self._told(f"a look at {name}"), self._at_rest():
            try:
                cursor = self._send(f"SELECT * FROM {relation} LIMIT 0")
            except (errors.UndefinedTable, errors.InvalidSchemaName, errors.WrongObjectType) as bad:
                raise ColumnError(f"cannot read {name}: {_in_short(bad)}") from bad
            return {column.name: column.type_display for column in cursor.description or ()}

    def kind(self, type_name: str) -> str:
        base = type_name.partition("(")[0]
        kinds = {"float4": FLOAT32, "bool": BOOLEAN, **dict.fromkeys(_NUMBERS, NUMBER)}
        return kinds.get(base, type_name)

    def texts_and_dates(self, types: Mapping[str, str]) -> dict[str, str]:
        bases = {name: one.partition("(")[0] for name, one in types.items()}
        # Types of the user's own are known by their numbers only.
        unknown = {one for one in bases.values() if one not in _SORTS and one.isdigit()}
        own = dict.fromkeys(self._texts_of_their_own(unknown), TEXT) if unknown else {}
        sorts = _SORTS | own
        return {name: sorts[base] for name, base in bases.items() if base in sorts}

    def _texts_of_their_own(self, types: Collection[str]) -> list[str]:
        """Of the numbers of types, those of enums, and of citext, which is not built in."""
        rows = self._ask(
            "SELECT CAST(oid AS text) FROM pg_type"
            " WHERE oid = ANY(CAST(%s AS oid[])) AND (typtype = 'e' OR typname = 'citext')",
            [sorted(types)],
        )
        return [row[0] for row in rows]

    def reads(self, relation: str) -> set[str]:
        rows = self._ask(
            # Through the rules of views, and to the parts of partitioned tables.
            "WITH RECURSIVE below(above, oid) AS ("
            " SELECT ev_class, refobjid FROM pg_rewrite"
            " JOIN pg_depend ON objid = pg_rewrite.oid AND classid = 'pg_rewrite'::regclass"
            " AND refclassid = 'pg_class'::regclass"
            " UNION SELECT inhparent, inhrelid FROM pg_inherits),"
            " used(oid) AS (SELECT CAST(to_regclass(%s) AS oid) UNION"
            " SELECT below.oid FROM used JOIN below ON below.above = used.oid)"
            " SELECT lower(relname) FROM used JOIN pg_class ON pg_class.oid = used.oid",
            [relation],
        )
        return {row[0] for row in rows}

    def target(self, table: TableName) -> Target:
        parts = table_name(table, self.dialect)
        inside = [quote(part, self.dialect) for part in parts[-2:]]
        schema = inside[0] if len(parts) > 1 else None
        ((current, database, *found),) = self._ask(
            "SELECT current_schema(), current_database(), nspname, relname, relkind"
            " FROM (SELECT to_regclass(COALESCE(%s, quote_ident(current_schema())) || '.' || %s)"
            f" AS oid) AS named {_OF_OID}",
            [schema, inside[-1]],
        )
        if len(parts) > 3 or (len(parts) == 3 and parts[0] != database):
            raise ParameterError(
                f"{'.'.join(parts)!r} is in another database than {database!r}, to which this is "
                "connected: connect to that one"
            )
        if len(parts) == 1 and current is None:
            raise EngineError(
                f"Postgres has no schema to create {parts[0]!r} in: name one (schema.table)"
            )
        full = parts[-2:] if len(parts) > 1 else (current, *parts)
        return Target(full, _found(*found))

    def find(self, table: TableName) -> Found | None:
        (found,) = self._ask(
            "SELECT nspname, relname, relkind FROM (SELECT to_regclass(%s) AS oid) AS named"
            f" {_OF_OID}",
            [quote_table(table, self.dialect)],
        )
        return _found(*found)

    def primary_key(self, table: TableName) -> list[str]:
        rows = self._ask(
            "SELECT attname FROM pg_index JOIN pg_attribute"
            " ON attrelid = indrelid AND attnum = ANY (indkey)"
            " WHERE indisprimary AND indrelid = to_regclass(%s)",
            [quote_table(table, self.dialect)],
        )
        return [row[0] for row in rows]

    def _ask(self, sql: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        with self._told("a look at its tables"), self._at_rest():
            rows: list[tuple[Any, ...]] = self._send(sql, values).fetchall()
        return rows

    # --- running ------------------------------------------------------------------------------

    def execute(self, sql: str, what: str) -> None:
        self._run(sql, what)

    def rows(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        with self._told(what), self._at_rest():
            rows: list[tuple[Any, ...]] = self._send(sql).fetchall()
        return rows

    def columns(self, sql: str, names: Sequence[str], what: str) -> NDArray[Any]:
        with self._told(what), self._at_rest():
            cursor = self._send(sql)
            found = [column.name for column in cursor.description]
            table = np.array(cursor.fetchall(), dtype="float64").reshape(-1, len(found))
        return table[:, [found.index(name) for name in names]]

    def stream(
        self, relation: str, numbers: Sequence[str], texts: Sequence[str], what: str
    ) -> Iterator[Streamed]:
        with self._told(what):
            yield from fetched(self._cursor(), relation, numbers, texts)

    def _send(self, sql: str, values: Sequence[Any] | None = None) -> Any:
        # Not as a prepared statement: the tables it names may be others the next time.
        return self._cursor().execute(sql, values, prepare=False)

    def _cursor(self) -> Any:
        """A cursor of our own kind, whatever the user's connection makes of rows."""
        if self.connection.pgconn.pipeline_status:
            raise EngineError("the connection is in pipeline mode: leave it, and run this outside")
        return psycopg.Cursor(self.connection, row_factory=tuple_row)

    def _run(self, sql: str, what: str) -> int:
        """Run a statement; how many rows it wrote."""
        with self._told(what), self._at_rest():
            return int(self._send(sql).rowcount)

    def _at_rest(self) -> contextlib.AbstractContextManager[Any]:
        """What leaves no transaction open on a connection that had none."""
        idle = self.connection.info.transaction_status == TransactionStatus.IDLE
        if idle and not self.connection.autocommit:
            block: contextlib.AbstractContextManager[Any] = self.connection.transaction()
            return block
        return contextlib.nullcontext()

    # --- writing ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self, *, keep: bool = True, grows: TableName | None = None) -> Iterator[None]:
        own = self.connection.info.transaction_status == TransactionStatus.IDLE
        # Any look at the tables fixes what the transaction sees, so it comes before.
        growing = None if grows is None else self.target(grows).found
        with (
            self._told("its transaction"),
            contextlib.ExitStack() as unheard,
            self.connection.transaction(force_rollback=not keep),
        ):
            ((level,),) = self._send("SHOW transaction_isolation").fetchall()
            if own and level.startswith("read"):
                # So that what is checked is what is written.
                self._send("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._locked = None
            if growing is not None and growing[1] == "table":
                self._lock(growing, sees_the_latest=own or level.startswith("read"))
            with contextlib.nullcontext() if own else self._put_back():
                self._ask_for(_SETTINGS)
                yield
            if keep and own:
                unheard.enter_context(self._told_of_commit())
            unheard.enter_context(interrupts_held(COMMITTED if keep and own else ""))

    @contextlib.contextmanager
    def _told_of_commit(self) -> Iterator[None]:
        """A connection that is lost in a commit does not say whether that went through."""
        try:
            yield
        except psycopg.Error as bad:
            if not self.connection.closed:
                raise
            raise EngineError(
                "the connection to Postgres was lost while it committed, and what was asked for "
                f"may be there: look for it before you run this again: {_in_short(bad)}"
            ) from bad

    def _lock(self, found: Found, *, sees_the_latest: bool) -> None:
        """Let nobody else write to a table until the transaction ends; reading goes on."""
        name = ".".join(found[0])
        if not sees_the_latest:
            raise EngineError(
                f"your transaction may not see the latest rows of {name!r}, and would add some "
                "again: add rows outside of it, or in one that is READ COMMITTED"
            )
        with self._told(f"a lock on {name!r}"):
            table = quote_table(found[0], self.dialect)
            self._send(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
        self._locked = found

    @contextlib.contextmanager
    def _put_back(self) -> Iterator[None]:
        """The settings as they were: in a transaction of the user's they would stay to its end."""
        shown = ", ".join("current_setting(%s)" for _ in _SETTINGS)
        (before,) = self._send(f"SELECT {shown}", list(_SETTINGS)).fetchall()
        yield
        # After a failure they are rolled back.
        self._ask_for(dict(zip(_SETTINGS, before, strict=True)))

    def _ask_for(self, settings: Mapping[str, str]) -> None:
        """Settings of this transaction."""
        asked = ", ".join("set_config(%s, %s, true)" for _ in settings)
        self._send(f"SELECT {asked}", [one for pair in settings.items() for one in pair])

    def load(self, name: str, columns: Table) -> None:
        table = quote(name, self.dialect)
        lists = [
            [str(value).translate(_LOAD_ESCAPES) for value in array.tolist()]
            for array in columns.values()
        ]
        with self._told(f"loading the side table {name}"), self._at_rest():
            self._send(create_side_table(name, columns, self.dialect, temporary=True))
            with self._cursor().copy(f"COPY pg_temp.{table} FROM STDIN") as copy:
                copy.write("".join("\t".join(row) + "\n" for row in zip(*lists, strict=True)))
            # The planner knows nothing of a new table otherwise, and may join it badly.
            self._send(f"ANALYZE pg_temp.{table}")

    def drop_temporary(self, name: str) -> None:
        # In a transaction that failed every statement is refused, and its tables go with it. A
        # refusal of this one (nothing may be written here) must not fail the user's transaction.
        with contextlib.suppress(psycopg.Error), self.connection.transaction():
            self._send(f"DROP TABLE IF EXISTS pg_temp.{quote(name, self.dialect)}")

    def by_twin(self, twin: Twin) -> tuple[str, Vector]:
        return relation_of(twin)

    def load_twin(self, twin: Twin) -> None:
        with self._told("the features that NumPy computes"), self._at_rest():
            self._send(table_of(twin, _STORAGE))
            fill(self._cursor(), twin)

    def drop_twin(self, twin: Twin) -> None:
        self.drop_temporary(twin.name)

    def create(self, into: Target, select: str, *, view: bool) -> int | None:
        if self._read_only:
            raise EngineError(f"the connection is read-only: {into.name!r} was not created")
        what, kind = f"creating {into.name!r}", "VIEW" if view else "TABLE"
        *schema, name = into.full
        # Beside an old one, which is locked only for the moment in which it is replaced.
        first = f"sqlkrp_{own_number()}" if into.storage.replace else name
        made = quote_table((*schema, first), self.dialect)
        storage = "" if view else f" WITH ({_STORAGE})"
        count = self._run(f"CREATE {kind} {made}{storage} AS\n{select}", what)
        if into.storage.replace:
            full = quote_table(into.full, self.dialect)
            self._run(f"DROP {kind} IF EXISTS {full}", what)
            self._run(f"ALTER {kind} {made} RENAME TO {quote(name, self.dialect)}", what)
        return None if view else count

    def append(self, into: Target, select: str, columns: Sequence[str]) -> int:
        if into.found != self._locked:  # what others added is not seen here
            raise EngineError(f"another run made {into.name!r} at the same time: run this again")
        return super().append(into, select, columns)

    def change(self, sql: str, what: str) -> int:
        if self._read_only:
            raise EngineError(f"the connection is read-only, and refuses {what}")
        return self._run(sql, what)

    def told(self, into: Target) -> str | None:
        assert into.found is not None
        ((told,),) = self._ask(
            "SELECT obj_description(to_regclass(%s), 'pg_class')",
            [quote_table(into.found[0], self.dialect)],
        )
        return None if told is None else str(told)

    @contextlib.contextmanager
    def destination(self, path: str | Path, storage: Storage) -> Iterator[Write]:
        if str(path) == "-":
            sys.stdout.flush()
            yield lambda select, _: self._copy(select, _standard_output(), "standard output")
            return
        with csv_file(path, self.dialect.name, replace=storage.replace) as file:
            yield lambda select, _: self._copy(select, file, str(path))

    def _copy(self, select: str, file: IO[bytes], named: str) -> int:
        options = "FORMAT csv, HEADER, ENCODING 'UTF8'"
        with self._told(f"writing {named}"), self._at_rest(), self._cursor() as cursor:
            with cursor.copy(f"COPY (\n{select}\n) TO STDOUT WITH ({options})") as copy:
                for block in copy:
                    file.write(block)
            file.flush()
            return int(cursor.rowcount)

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """A refusal in words, with what to do where that is known."""
        try:
            yield
        except psycopg.Error as bad:
            if self.connection.closed:
                raise EngineError(
                    f"the connection to Postgres was lost during {what}, and nothing was made: "
                    f"{_in_short(bad)}"
                ) from bad
            cure = next((told for kind, told in _CURES.items() if isinstance(bad, kind)), "")
            raise EngineError(f"Postgres refused {what}: {_in_short(bad)}{cure}") from bad


_CURES = {
    errors.NumericValueOutOfRange: (
        ": some sum or product leaves the range of its type, which Postgres refuses; draw the map "
        "with scaling='standard' or 'unit'"
    ),
    errors.InsufficientPrivilege: (
        ": ask for the privilege; export and verify in the wide form only need SELECT on the table"
    ),
    errors.ReadOnlySqlTransaction: (
        ": here nothing can be created, not even a temporary table; export and verify in the "
        "wide form (form='wide') need none"
    ),
    errors.ProgramLimitExceeded: ": use output='array', or fewer components",
    errors.UniqueViolation: ": another run made it at the same time",
    errors.LockNotAvailable: ": another transaction holds it; try again when that has ended",
    errors.QueryCanceled: ": it took longer than the server allows (statement_timeout)",
    errors.DependentObjectsStillExist: ": drop what depends on it first",
}


def _in_short(bad: BaseException) -> str:
    """The server's message in one line, without the excerpt of the statement."""
    told = str(getattr(getattr(bad, "diag", None), "message_primary", None) or bad)
    return " ".join(told.split())[:300] or type(bad).__name__


def _where(url: str) -> str:
    """Where a URL leads, without its password; an error that does not repeat it, either."""
    try:
        host = conninfo_to_dict(url).get("host")
    except psycopg.Error:
        host = "@"
    if host and "@" in str(host):
        raise ParameterError(
            "the postgresql:// URL cannot be read: write odd characters of names and passwords as "
            "%XX (an @ is %40, a % is %25)"
        ) from None
    return f"Postgres at {host}" if host else "Postgres"


def _found(schema: str | None, name: str | None, kind: str | None) -> Found | None:
    if schema is None or name is None:
        return None
    return (schema, name), _RELKINDS.get(kind or "", "table")


def _standard_output() -> IO[bytes]:
    sys.stdout.flush()
    buffer: IO[bytes] | None = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        raise ParameterError("standard output takes no bytes here: write to a file")
    return buffer
