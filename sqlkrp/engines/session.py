"""What an engine is to the rest: a connection that looks, runs, fetches and writes.

An engine is one file: a subclass of :class:`Session`, with a record of what its engine can do, and
its record of facts in ``sqlkrp.sql.dialects``. It knows what a source is, and no maps.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import LimitError, ParameterError
from sqlkrp.files import write_whole
from sqlkrp.gzips import GzipWriter
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import TableName, quote, quote_table, text
from sqlkrp.sql.side_tables import Table
from sqlkrp.sql.statement import Statement
from sqlkrp.sql.twin import Twin
from sqlkrp.sql.vectors import Vector
from sqlkrp.urls import File, Url, as_file

__all__ = [
    "NUMBERS_AT_ONCE",
    "STATEMENT",
    "Capabilities",
    "Found",
    "Session",
    "Storage",
    "Streamed",
    "TableOrFile",
    "Target",
    "Work",
    "Write",
    "csv_file",
    "rows_at_once",
    "streamed",
]

#: The name of a thread that runs a statement.
STATEMENT = "sqlkrp-statement"

#: A table's name, or the path of a file that the engine reads by itself.
TableOrFile = TableName | File

#: A table or view that is there: the full name that the engine keeps it under, and which it is.
Found = tuple[tuple[str, ...], str]


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What an engine can do beyond tables and SELECTs; what it cannot, nobody pretends."""

    transactions: bool = False
    """A block is whole or not at all, and sees the source as it was when it began. Without: a
    statement guards itself, what failed is dropped, and a table cannot be replaced."""
    temporary_tables: bool = False
    """Side tables and samples that nobody else sees. Without: no tables form, no sparse input."""
    views: bool = False
    comments: bool = False
    """Of tables and views, by COMMENT ON."""
    appends: bool = False
    """Rows can be added to a table that says which map made it."""
    upserts: bool = False
    """Rows of a table can be replaced."""
    macros: bool = False
    """A query can be a function of a table's name, which any client calls."""
    relations: bool = False
    """A query can be a lazy relation of the engine's own."""
    replaces: bool = False
    """Without transactions: a table is replaced once the new one is whole."""
    storage: bool = False
    """Rows are kept in a format that is asked for, parted by columns, and files can be added to."""
    twin: bool = False
    """NumPy can compute where the rows are."""
    vectors: bool = False
    """An array of features can become a vector of the engine's own library."""
    work: bool = False
    """NumPy can work through all rows where they are, and hand back what it found."""

    def require(self, name: str, engine: str, instead: str) -> None:
        """Raise LimitError unless the engine can do what is in the field of this name."""
        if not getattr(self, name):
            raise LimitError(f"{engine} has no {_WORDS.get(name, name)}: {instead}")


_WORDS = {
    "temporary_tables": "temporary tables",
    "relations": "lazy relations",
    "replaces": "transactions",
    "storage": "format or partition_by here, and no files that are appended to",
    "appends": "tables that say which map made them",
    "upserts": "rows that are replaced here",
    "macros": "table macros",
    "twin": "how='arrow'",
    "vectors": "output='vector'",
}


@dataclass(frozen=True, kw_only=True)
class Storage:
    """How a result is kept; format and parts are for engines that leave a choice."""

    replace: bool = False
    """In the place of what is there."""
    append: bool = False
    """Beside the rows that are there."""
    upsert: bool = False
    """So, and in the place of those that have the same key."""
    key: tuple[str, ...] = ()
    """The columns that tell rows apart: of rows to append, those that are there are left out."""
    format: str | None = None
    partition_by: tuple[str, ...] = ()
    """Columns that are handed on; rows of equal values there are kept together."""

    @property
    def grows(self) -> bool:
        """Whether rows go into a table that may be there."""
        return self.append or self.upsert


@dataclass(frozen=True)
class Columns:
    """What a table of features is to hold, where these are columns of numbers."""

    kept: Mapping[str, str]
    """The types of the columns in front, by name."""
    features: tuple[str, ...]
    type: str
    """The type of each feature."""


#: Writes the rows of a SELECT, of which it may be known what they hold; returns how many.
Write = Callable[[str, "Columns | None"], int]


#: Doubles (row, expression) of some rows, with NaN for NULL; and the texts of others, or None.
Streamed = tuple[NDArray[np.float64], list[NDArray[Any]]]


class Work(Protocol):
    """What is done to rows, here or where they are: so it is pickled, and so is what it finds."""

    def over(self, rows: Iterator[Any]) -> Iterator[Any]:
        """What it finds in some of the rows, which come some at a time."""

    def added(self, found: Iterator[Any]) -> Iterator[Any]:
        """What was found in rows that several did it to, added up as far as that is possible."""


#: Numbers of the rows that are streamed at a time.
NUMBERS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Target:
    """A name to create something under."""

    full: tuple[str, ...]
    found: Found | None
    """What is there already."""
    storage: Storage = field(default_factory=Storage)
    told: str = ""
    """What it is to say of the map that made it."""
    columns: Columns | None = None
    """What is to be in it, where that is known beforehand."""
    reads_at_most: Callable[[int], bool] = lambda _: False
    """Whether it is known to be made of at most so many rows."""

    @property
    def name(self) -> str:
        """Its name for messages."""
        return ".".join(self.full)


class Session(ABC):
    """A connection to a database, and how that engine does what every engine must."""

    dialect: Dialect
    can: Capabilities
    connection: Any
    on_progress: Callable[[float], None] | None = None
    """Called with the share done (0 to 1) while a long statement runs."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, if the library opened it."""

    # --- looking ------------------------------------------------------------------------------

    def look(self, table: TableOrFile, name: str) -> tuple[str, dict[str, str]]:
        """A table, or where the engine reads them a file, as SQL; its columns and their types."""
        if isinstance(table, File):
            raise ParameterError(
                f"{self.dialect.name} reads tables, and {str(table)!r} is a file: load it there "
                "first"
            )
        relation = quote_table(table, self.dialect)
        return relation, self.describe(relation, name)

    def look_at_file(self, path: File, name: str) -> tuple[str, dict[str, str]] | None:
        """A file of results, as SQL, and its columns' types; None if the engine reads none such.

        Where a file has no types its columns are texts, and their types empty: what looks like a
        number there may be none (``007``), and what reads it knows what it is to be.
        """
        return None

    @abstractmethod
    def describe(self, relation: str, name: str) -> dict[str, str]:
        """The columns of a relation and their types; ColumnError if there is no such relation."""

    @abstractmethod
    def kind(self, type_name: str) -> str:
        """The kind of a column of this type: FLOAT32, NUMBER, or the type's name."""

    def texts_and_dates(self, types: Mapping[str, str]) -> dict[str, str]:
        """Of columns of these types, those of texts (TEXT), and of dates and times (DATE).

        Nothing is made of columns where an engine does not say so.
        """
        return {}

    @abstractmethod
    def target(self, table: TableName) -> Target:
        """The name that a table of this name would be created under, and what is there."""

    @abstractmethod
    def find(self, table: TableName) -> Found | None:
        """The table or view that a statement would read by this name; None if there is none."""

    @abstractmethod
    def reads(self, relation: str) -> set[str]:
        """The bare names of what a relation reads, through views and as parts, in lower case."""

    def has_rows(self, table: TableOrFile) -> bool:
        """Whether the rows of this source stand there, and need not be computed or parsed."""
        found = None if isinstance(table, File) else self.find(table)
        return found is not None and found[1] == "table"

    def primary_key(self, table: TableName) -> list[str]:
        """The columns of a table's primary key; none of a view, or where there is none."""
        return []

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

    @abstractmethod
    def stream(
        self, relation: str, numbers: Sequence[str], texts: Sequence[str], what: str
    ) -> Iterator[Streamed]:
        """What expressions make of the rows of a relation, some rows at a time.

        Whoever reads it is in a transaction, and runs no other statement until it is read.
        """

    def found(
        self, relation: str, numbers: Sequence[str], texts: Sequence[str], work: Work, what: str
    ) -> Iterator[tuple[Any, int]]:
        """What work finds in what would be streamed, where the rows are and the engine can.

        With the bytes that each came in. It is yet to be added up by whoever reads it.
        """
        raise NotImplementedError

    def lazily(self, sql: str) -> Any:
        """A query as a lazy relation, where the engine has such."""
        raise NotImplementedError

    def by_twin(self, twin: Twin) -> tuple[str, Vector]:
        """What NumPy computes, where the engine can, as a relation, and the values in it.

        It has the columns to hand on as ``k0``, ``k1``, ... beside them. What it reads may be there
        only while the engine is ``holding`` a statement of this twin.
        """
        raise NotImplementedError

    def with_vectors(self, sql: str, column: str) -> str:
        """A query whose column of arrays has become one of vectors, where the engine can."""
        raise NotImplementedError

    def sample(self, relation: str, columns: Sequence[str], count: int) -> str:
        """The SELECT of so many random rows of a relation."""
        listed = ", ".join(quote(name, self.dialect) for name in columns)
        return f"SELECT {listed} FROM {relation} AS every ORDER BY RANDOM() LIMIT {count:d}"

    # --- writing ------------------------------------------------------------------------------

    def transaction(
        self, *, keep: bool = True, grows: TableName | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """All or nothing; inside a transaction of the user's, a part of that.

        What ``grows`` is a table to which rows will be added by what is not in it yet: others who
        would do the same wait until this has ended, or fail.

        Without ``keep`` it is to change nothing: who makes temporary tables in it drops them, and
        an engine may undo the rest. Where the engine has no transactions this is a block like any
        other.
        """
        if self.can.transactions:
            raise NotImplementedError
        return contextlib.nullcontext()

    def load(self, name: str, columns: Table) -> None:
        """Load a side table as a temporary table, where the engine has such."""
        raise NotImplementedError

    def create_temporary(self, name: str, select: str, what: str) -> None:
        """Create a temporary table from a SELECT."""
        self.execute(f"CREATE TEMPORARY TABLE {quote(name, self.dialect)} AS {select}", what)

    def drop_temporary(self, name: str) -> None:
        """Drop a temporary table if it is there; never raises, so it can clean up."""
        raise NotImplementedError

    def load_twin(self, twin: Twin) -> None:
        """Make what statements read of a twin."""
        raise NotImplementedError

    def drop_twin(self, twin: Twin) -> None:
        """Drop that if it is there; never raises, so it can clean up."""
        raise NotImplementedError

    @contextlib.contextmanager
    def holding(self, statement: Statement) -> Iterator[None]:
        """What a statement needs beside it, for the length of a block."""
        with contextlib.ExitStack() as drops:
            for name, columns in statement.side_tables.items():
                drops.callback(self.drop_temporary, name)
                self.load(name, columns)
            for twin in statement.twins:
                drops.callback(self.drop_twin, twin)
                self.load_twin(twin)
            yield

    @abstractmethod
    def create(self, into: Target, select: str, *, view: bool) -> int | None:
        """Create a table or view from a SELECT; how many rows the table has."""

    def restore_names(  # noqa: B027 - most engines take every name as it is
        self, table: tuple[str, ...], names: Sequence[str], *, view: bool
    ) -> None:
        """Give what was just created columns of these names, where the engine chose others."""

    def change(self, sql: str, what: str) -> int:
        """Run a statement that adds or deletes rows, where the engine can; how many."""
        raise NotImplementedError

    def append(self, into: Target, select: str, columns: Sequence[str]) -> int:
        """Append the rows of a SELECT, of these columns, to a table; how many."""
        name = quote_table(into.full, self.dialect)
        names = ", ".join(quote(column, self.dialect) for column in columns)
        return self.change(f"INSERT INTO {name} ({names})\n{select}", f"appending to {into.name!r}")

    def told(self, into: Target) -> str | None:
        """What a table that is there says of the map that made it."""
        raise NotImplementedError

    def columns_beside(self, into: Target, select: str) -> tuple[dict[str, str], dict[str, str]]:
        """The types of a table's columns, and those of the columns of rows to append to it."""
        there = self.describe(quote_table(into.full, self.dialect), into.name)
        return there, self.describe(f"(\n{select}\n) AS appended", "what is appended")

    def named_relation(self, parameter: str) -> str:
        """The table that a macro is called with, as SQL inside it, where the engine has macros."""
        raise NotImplementedError

    def find_macro(self, name: TableName) -> tuple[tuple[str, ...], bool]:
        """The full name that a macro of this name would have, and whether there is one."""
        raise NotImplementedError

    def create_macro(self, into: Target, parameter: str, select: str) -> None:
        """Create a macro of a SELECT that reads the table which it is called with."""
        raise NotImplementedError

    def comment(self, into: Target, told: str | None, *, view: bool) -> None:
        """Attach a comment to what was created, where the engine has such; None takes it away."""
        kind, name = "VIEW" if view else "TABLE", quote_table(into.full, self.dialect)
        written = "NULL" if told is None else text(told, self.dialect)
        self.execute(f"COMMENT ON {kind} {name} IS {written}", f"naming the map of {into.name!r}")

    @abstractmethod
    def destination(
        self, path: str | Path, storage: Storage
    ) -> contextlib.AbstractContextManager[Write]:
        """A function that writes a SELECT's rows to a file, published if the block ends well."""

    def better_file(self, path: str | Path, columns: Columns | None, rows: int) -> str | None:
        """What kind of file would have been quicker than a large one that was written."""
        return None

    def output_of(self, path: str | Path, storage: Storage) -> str:
        """How features are written there where nobody says."""
        return self.dialect.output


def rows_at_once(numbers: Sequence[str], texts: Sequence[str]) -> int:
    """How many rows of so many columns are streamed at a time."""
    return max(1, NUMBERS_AT_ONCE // max(1, len(numbers) + len(texts)))


def streamed(rows: Sequence[Sequence[Any]], n_numbers: int) -> Streamed:
    """Rows of numbers, then texts, as they are streamed."""
    columns = list(zip(*rows, strict=True))
    table = np.array(columns[:n_numbers], dtype="float64").reshape(n_numbers, len(rows)).T
    return table, [np.array(column, dtype=object) for column in columns[n_numbers:]]


@contextlib.contextmanager
def csv_file(path: str | Path, engine: str, *, replace: bool) -> Iterator[IO[bytes]]:
    """A .csv or .csv.gz file to write, published if the block ends well."""
    target = as_file(path)
    if isinstance(target, Url):
        raise ParameterError(
            f"from {engine} features go to files of this machine, and {str(target)!r} is a URL: "
            "give a path"
        )
    openers: dict[str, Any] = {".csv": partial(open, mode="wb"), ".csv.gz": GzipWriter}
    suffix = next((one for one in openers if target.name.lower().endswith(one)), None)
    if suffix is None:
        raise ParameterError(
            f"from {engine} features are written as CSV, and {str(target)!r} is no name for that: "
            "use .csv or .csv.gz"
        )
    with write_whole(target, replace=replace) as part, openers[suffix](part) as file:
        yield file
        file.close()  # all of it must be there before it is published
