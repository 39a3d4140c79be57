"""What an engine is to the rest: a connection that runs, loads, fetches and writes.

An engine is one file: a subclass of :class:`Session`, and its record of facts in
``sqlkrp.sql.dialects``. It knows nothing of maps.
"""

from __future__ import annotations

import contextlib
import gzip
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from sqlkrp.errors import ParameterError
from sqlkrp.files import write_whole
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import TableName, quote, quote_table
from sqlkrp.sql.side_tables import Table

__all__ = ["Session", "TableOrFile", "csv_file"]

#: A table's name, or the path of a file that the engine reads by itself.
TableOrFile = TableName | Path


class Session(ABC):
    """A connection to a database, and how that engine does what every engine must."""

    dialect: Dialect
    connection: Any
    on_progress: Callable[[float], None] | None = None
    """Called with the share done (0 to 1) while a long statement runs."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, if the library opened it."""

    # --- looking ------------------------------------------------------------------------------

    def relation(self, table: TableOrFile) -> str:
        """A table, or where the engine reads them a file, as SQL."""
        if isinstance(table, Path):
            raise ParameterError(
                f"{self.dialect.name} reads tables, and {str(table)!r} is a file: load it there "
                "first"
            )
        return quote_table(table, self.dialect)

    @abstractmethod
    def describe(self, relation: str, name: str) -> dict[str, str]:
        """The columns of a relation and their types; ColumnError if there is no such relation."""

    @abstractmethod
    def kind(self, type_name: str) -> str:
        """The kind of a column of this type: FLOAT32, NUMBER, or the type's name."""

    @abstractmethod
    def reads(self, relation: str) -> set[str]:
        """The bare names of what a relation reads, through views and as parts, in lower case."""

    @abstractmethod
    def full_name(self, table: TableName) -> tuple[str, ...]:
        """The name that a table of this name would be created under."""

    @abstractmethod
    def find(self, table: TableName) -> tuple[tuple[str, ...], str] | None:
        """The full name of a table or view, and which it is; None if there is none."""

    @abstractmethod
    def primary_key(self, table: TableName) -> list[str]:
        """The columns of a table's primary key; none of a view, or where there is none."""

    def files(self) -> list[Path]:
        """The database's own files, which no export may replace."""
        return []

    # --- running ------------------------------------------------------------------------------

    @abstractmethod
    def execute(self, sql: str, what: str) -> None:
        """Run one statement; an interrupt ends it. ``what`` names it in an error."""

    @abstractmethod
    def rows(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        """All rows of a small query."""

    @abstractmethod
    def columns(self, sql: str, names: Sequence[str], what: str) -> NDArray[Any]:
        """Some columns of a query as one array of doubles, NaN for NULL."""

    has_relations = False
    """Whether a query can be a lazy relation of the engine's own."""

    def lazily(self, sql: str) -> Any:
        """A query as such a relation."""
        raise NotImplementedError

    def sample(self, relation: str, columns: Sequence[str], count: int) -> str:
        """The SELECT of so many random rows of a relation."""
        listed = ", ".join(quote(name, self.dialect) for name in columns)
        return f"SELECT {listed} FROM {relation} ORDER BY RANDOM() LIMIT {count:d}"

    # --- writing ------------------------------------------------------------------------------

    @abstractmethod
    def transaction(self, *, keep: bool = True) -> contextlib.AbstractContextManager[None]:
        """All or nothing; inside a transaction of the user's, a part of that.

        Without ``keep`` nothing that was created in it stays.
        """

    @abstractmethod
    def load(self, name: str, columns: Table) -> None:
        """Load a side table as a temporary table."""

    @abstractmethod
    def create_temporary(self, name: str, select: str, what: str) -> None:
        """Create a temporary table from a SELECT."""

    @abstractmethod
    def drop_temporary(self, name: str) -> None:
        """Drop a temporary table if it is there; never raises, so it can clean up."""

    @abstractmethod
    def create(self, into: TableName, select: str, *, view: bool, replace: bool) -> int | None:
        """Create a table or view from a SELECT; how many rows the table has."""

    def restore_names(  # noqa: B027 - most engines take every name as it is
        self, table: tuple[str, ...], names: Sequence[str], *, view: bool
    ) -> None:
        """Give what was just created columns of these names, where the engine chose others."""

    @abstractmethod
    def comment(self, into: TableName, text: str, *, view: bool) -> None:
        """Attach a comment to what was created."""

    @abstractmethod
    def destination(
        self, path: str | Path, *, replace: bool
    ) -> contextlib.AbstractContextManager[Callable[[str], int]]:
        """A function that writes a SELECT's rows to a file, published if the block ends well."""


@contextlib.contextmanager
def csv_file(target: Path, engine: str, *, replace: bool) -> Iterator[IO[bytes]]:
    """A .csv or .csv.gz file to write, published if the block ends well."""
    openers: dict[str, Any] = {".csv": open, ".csv.gz": gzip.open}
    suffix = next((one for one in openers if target.name.lower().endswith(one)), None)
    if suffix is None:
        raise ParameterError(
            f"from {engine} features are written as CSV, and {str(target)!r} is no name for that: "
            "use .csv or .csv.gz"
        )
    with write_whole(target, replace=replace) as part, openers[suffix](part, "wb") as file:
        yield file
        file.close()  # all of it must be there before it is published
