"""A DuckDB connection that runs statements, and hears an interrupt while they run."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.duckdb_twin import drop_function, make_function, relation_of
from sqlkrp.engines.session import STATEMENT, Session, Streamed, rows_at_once
from sqlkrp.errors import EngineError
from sqlkrp.interrupts import COMMITTED, interrupts_held
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.names import TableName, quote
from sqlkrp.sql.side_tables import Table, create_side_table
from sqlkrp.sql.twin import Twin
from sqlkrp.sql.vectors import Vector
from sqlkrp.urls import hidden

__all__ = ["Running", "explained", "in_short"]

# Seconds in which an interrupt is to be heard.
_PATIENCE = 30.0
# And so many within which a second interrupt is one with the first.
_ONE_REQUEST = 1.0
# A DataFrame of more rows is no quicker.
_MOST_VECTORS = 40
# Connections that hear none; what is not referred to would be closed, which waits for them.
_ABANDONED: list[Any] = []


def _texts(column: Any) -> NDArray[Any]:
    """A column of a DataFrame as texts, None where there is none."""
    found: NDArray[Any] = column.to_numpy(dtype=object, copy=True)
    found[column.isna().to_numpy()] = None
    return found


class _Abandoned:
    """In the place of a connection that does not answer any more."""

    def __getattr__(self, name: str) -> Any:
        raise duckdb.ConnectionException(
            "the connection did not end the statement that was interrupted: end this process"
        )


class Running(Session):
    """A DuckDB connection that runs statements."""

    dialect = dialect("duckdb")

    def __init__(self, connection: Any, on_close: Callable[[], None] | None = None) -> None:
        self.connection = connection
        self._on_close = on_close
        self.after_transaction = contextlib.ExitStack()
        """What is put back when a transaction has ended: in one that failed nothing can be set."""

    def close(self) -> None:
        if self._on_close is not None:
            self._on_close()
            self._on_close = None

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

    def stream(
        self, relation: str, numbers: Sequence[str], texts: Sequence[str], what: str
    ) -> Iterator[Streamed]:
        named = [f"{one} AS v{i}" for i, one in enumerate([*numbers, *texts])]
        # Vectors of 2,048 rows, which is how DuckDB has them.
        vectors = max(1, min(_MOST_VECTORS, rows_at_once(numbers, texts) // 2048))
        with explained(what):
            self.connection.execute(f"SELECT {', '.join(named)} FROM {relation} AS every")
            while len(frame := self.connection.fetch_df_chunk(vectors)):
                table = frame.iloc[:, : len(numbers)].to_numpy(dtype="float64", na_value=np.nan)
                yield table, [_texts(frame.iloc[:, i]) for i in range(len(numbers), len(named))]

    def lazily(self, sql: str) -> Any:
        with explained("the features"):
            return self.connection.sql(sql)

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

        thread = threading.Thread(target=run, name=STATEMENT, daemon=True)
        try:
            with interrupts_held():  # else nobody would know whether it runs
                thread.start()
            # Not Thread.join: a signal that meets it makes Python take the thread for ended.
            while not done.wait(0.1):
                self._report_progress()
            self._report_progress(1.0)
        except BaseException:
            if thread.ident is not None:
                self._interrupt(done)
            raise
        if failed:
            with explained(what):
                raise failed[0]

    def _interrupt(self, done: threading.Event) -> None:
        """End the statement that runs; let go of a connection that hears no interrupt."""
        begun = time.monotonic()
        while time.monotonic() < begun + _PATIENCE:
            try:
                self.connection.interrupt()
                if done.wait(0.1):
                    return
            except KeyboardInterrupt:
                # Who asks again does not want to wait; but one request may come as two signals.
                if time.monotonic() > begun + _ONE_REQUEST:
                    break
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
        with explained(f"loading the side table {name}"):
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
    def transaction(self, *, keep: bool = True, grows: TableName | None = None) -> Iterator[None]:
        with self.after_transaction:
            if self._in_transaction():
                self._claim(grows)
                yield  # the user's own, which is the user's to end
                return
            self.connection.begin()
            try:
                self._claim(grows)
                yield
                self._end(keep=keep)
            except BaseException:
                # One that was committed all the same has nothing to roll back.
                with interrupts_held(), contextlib.suppress(duckdb.Error):
                    self.connection.rollback()
                raise

    def _end(self, *, keep: bool) -> None:
        """End a transaction, whole: the driver would hear a Ctrl-C, and commit nevertheless."""
        what, done = ("committing", COMMITTED) if keep else ("ending its transaction", "")
        with interrupts_held(done), explained(what):
            self.connection.commit() if keep else self.connection.rollback()

    def _claim(self, table: TableName | None) -> None:
        """Let nobody else add to a table until the transaction ends, nor since it has begun.

        DuckDB has no locks, and lets two transactions add the same rows. That both change what is
        said of the table, it refuses to the second: so each says again what is said of it.
        """
        target = None if table is None else self.target(table)
        if target is None or target.found is None or target.found[1] != "table":
            return
        try:
            self.comment(target, self.told(target), view=False)
        except EngineError as bad:
            if not isinstance(bad.__cause__, duckdb.TransactionException):
                raise
            raise EngineError(
                f"another transaction is at work on {target.name!r}, or was since this one began: "
                "nothing was added; try again when that has ended"
            ) from bad

    def _in_transaction(self) -> bool:
        # Asking by a second BEGIN would end the first. Outside, each statement begins one of its
        # own, at another time; only DuckDB's own tables have numbers for them.
        began = "SELECT epoch_us(transaction_timestamp())"
        with explained("looking for a transaction"):
            times = {self.connection.execute(began).fetchall()[0] for _ in range(2)}
        return len(times) == 1

    # --- NumPy inside statements --------------------------------------------------------------

    def by_twin(self, twin: Twin) -> tuple[str, Vector]:
        return relation_of(twin)

    def load_twin(self, twin: Twin) -> None:
        with explained("a function of NumPy's"):
            make_function(self.connection, twin)

    def drop_twin(self, twin: Twin) -> None:
        drop_function(self.connection, twin)


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """Raise DuckDB's errors as ours, which say what was tried, and a Ctrl-C as the one it was."""
    try:
        yield
    except RuntimeError as bad:
        # As the driver says it where it heard one itself.
        if type(bad) is RuntimeError and "interrupted" in str(bad):
            raise KeyboardInterrupt from bad
        raise
    except duckdb.OutOfMemoryException as bad:
        used = re.search(r"\([^()]* used\)", str(bad))
        if not used:  # of the room for what is spilled
            raise EngineError(f"DuckDB refused {what}: {in_short(bad)}") from bad
        raise EngineError(
            f"DuckDB had too little memory for {what} {used[0]}: allow more by memory_limit, or "
            "fewer threads"
        ) from bad
    except duckdb.Error as bad:
        raise EngineError(f"DuckDB refused {what}: {in_short(bad)}") from bad


def in_short(bad: BaseException) -> str:
    """The beginning of DuckDB's message, without the excerpt of the statement."""
    lines = [line.strip() for line in str(bad).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("LINE ", "^"))][:3]
    return hidden(" ".join(told))[:300] or type(bad).__name__
