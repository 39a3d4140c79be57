"""What is known of a source before anything is computed from it: its columns, not its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.errors import ParameterError
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.source import BOOLEAN, NUMBER, TEXT
from sqlkrp.sql.encoding import encoded_relation
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import LongInput
from sqlkrp.sql.names import quote, soft_cast
from sqlkrp.stages import Prepare
from sqlkrp.urls import as_named

__all__ = ["Input", "look_at", "spoken"]

# Whole numbers and doubles: none that single precision holds, wherever that matters.
_TYPE_OF_MADE = "INTEGER"


@dataclass(frozen=True)
class Input:
    """A source that was looked at: what it is as SQL, its columns, and how it is laid out."""

    relation: str
    types: Mapping[str, str]
    kinds: Mapping[str, str]
    """What the types are to a map, as the engine's session says."""
    name: str
    """What messages call it."""
    table: TableOrFile = ""
    """What the user named."""
    long: LongInput | None = None
    key_types: Mapping[str, str] | None = None
    """The columns of the table of rows, for sparse input that has one."""
    texts_and_dates: Mapping[str, str] = field(default_factory=dict)
    """The columns of texts, and of dates and times, as the engine's session says."""

    @property
    def booleans(self) -> frozenset[str]:
        """The columns of truth values, which are cast in a way of their own."""
        return frozenset(name for name, kind in self.kinds.items() if kind == BOOLEAN)

    @property
    def texts(self) -> frozenset[str]:
        """The columns of texts."""
        return frozenset(name for name, sort in self.texts_and_dates.items() if sort == TEXT)

    def singles(self, dialect: Dialect) -> frozenset[str]:
        """The columns whose numbers single precision holds: they need no cast by another type."""
        return frozenset(name for name, kind in self.types.items() if kind in dialect.singles)

    def encoded(self, prepare: Prepare, dialect: Dialect) -> Input:
        """The same with what a first stage makes of columns, such as categories, as columns."""
        if not prepare.categories:
            return self
        if self.long is not None:
            raise ParameterError(
                "what is made of columns, such as categories, is of a table with one column a "
                "feature, and this is (row, feature, value) input: give a table that has the "
                "columns"
            )
        types, kinds = dict(self.types), dict(self.kinds)
        for one in prepare.categories:
            again = one.is_column
            types[one.name] = self.types[one.column] if again else _TYPE_OF_MADE
            kinds[one.name] = self.kinds[one.column] if again else NUMBER
        relation = encoded_relation(self.relation, prepare, dialect, self.booleans, self.texts)
        return replace(self, relation=relation, types=types, kinds=kinds)

    def finite_value(self, dialect: Dialect, column: str, dtype: str) -> tuple[str, str]:
        """A column as a number of this dtype, and the test that it is not missing, as SQL."""
        truth, single = self.kinds[column] == BOOLEAN, self.types[column] in dialect.singles
        value = soft_cast(quote(column, dialect), dtype, dialect, boolean=truth, single=single)
        return value, dialect.finite(value, dtype)


def look_at(
    session: Session, table: TableOrFile, long: tuple[str, str, str] | None = None
) -> Input:
    """Look at a table (or file), once."""
    table = as_named(table)
    name = spoken(table)
    relation, types = session.look(table, name)
    match_columns(long or (), types, where=name)
    kinds = {column: session.kind(kind) for column, kind in types.items()}
    return Input(
        relation,
        types,
        kinds,
        name,
        table,
        LongInput(*long) if long else None,
        texts_and_dates=session.texts_and_dates(types),
    )


def spoken(table: Any) -> str:
    """A table's name for messages, which are one line."""
    name = ".".join(table) if isinstance(table, tuple) else str(table)
    return name if name.isprintable() else repr(name)
