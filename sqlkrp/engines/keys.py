"""The columns that tell rows apart, and the same row of two engines by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlkrp.engines.inputs import Input
from sqlkrp.engines.results import Result, whole
from sqlkrp.engines.session import Session
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.columns import match_columns, spelt_in
from sqlkrp.maps.source import BOOLEAN, FLOAT32, NUMBER
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import LongInput
from sqlkrp.sql.names import number, quote, soft_cast, text
from sqlkrp.sql.options import name_list

__all__ = [
    "Key",
    "Keys",
    "count_rows",
    "keys_of",
    "lookup",
    "named_key",
    "not_unique",
    "require_key_of_long",
    "rows_of",
    "told",
]

_COUNTING = "counting the rows of each key"
# Kinds of columns that may hold whole numbers.
_WHOLE = (NUMBER, FLOAT32)

#: The values that tell a row from others: whole numbers, and texts of all else.
Key = tuple[int | str, ...]


@dataclass(frozen=True)
class Keys:
    """The columns of a key, as the source and as the result spell them.

    Where both have numbers these are compared, so that 1, 1.0 and the 1 of a CSV are one key; else
    the texts that the engines make of them.
    """

    source: tuple[str, ...]
    stored: tuple[str, ...]
    are_numbers: tuple[bool, ...]

    def items(self, columns: Sequence[str], dialect: Dialect) -> list[str]:
        """What is fetched of such columns."""
        pairs = zip(columns, self.are_numbers, strict=True)
        return [
            quote(name, dialect) if is_number else _as_text(name, dialect)
            for name, is_number in pairs
        ]

    def compared(self, dialect: Dialect) -> list[str]:
        """What is held against keys in the result; of large numbers several may be one double."""
        pairs = zip(self.stored, self.are_numbers, strict=True)
        return [
            soft_cast(quote(name, dialect), "float64", dialect)
            if is_number
            else _as_text(name, dialect)
            for name, is_number in pairs
        ]

    def read(self, values: Sequence[Any]) -> Key | None:
        """A key as it is compared in the end; None if there can be none such."""
        pairs = zip(values, self.are_numbers, strict=True)
        found = [whole(value) if is_number else value for value, is_number in pairs]
        there = tuple(one for one in found if one is not None)
        return there if len(there) == len(found) else None


def _as_text(name: str, dialect: Dialect) -> str:
    return dialect.cast.format(value=quote(name, dialect), type=dialect.text_type)


def named_key(key: Any) -> tuple[str, ...]:
    """The columns of a key that is given as one name, or as several."""
    return tuple(dict.fromkeys([key] if isinstance(key, str) else name_list("key", key)))


def require_key_of_long(row: str, key: Sequence[str]) -> None:
    """Raise ParameterError unless a key, if there is one, is that of the rows of sparse input."""
    if key and tuple(key) != (row,):
        raise ParameterError(
            f"the rows of (row, feature, value) input are told apart by {row!r}: give key={row!r}"
        )


def rows_of(relation: str, long: LongInput | None, dialect: Dialect) -> str:
    """A relation with one row for each row of the answer."""
    if long is None:
        return relation
    key = quote(long.row, dialect)
    every = f"(SELECT DISTINCT {key} FROM {relation} AS entries WHERE {key} IS NOT NULL)"
    return long.keys or every


def keys_of(data: Input, result: Result, key: Sequence[str]) -> Keys:
    """The columns of a key, as far as both have them."""
    types, kinds = data.types, data.kinds
    match_columns(key, types, where=data.name)
    spelt = spelt_in(result.types, key)
    match_columns([name for name in key if name not in spelt], result.types, where=result.name)
    for name in key:
        if kinds[name] == BOOLEAN:
            raise ColumnError(
                f"key {name!r} of {data.name} is a truth value, and tells no rows apart: name "
                "columns of whole numbers, texts or dates"
            )
    numbers = [kinds[name] in _WHOLE and result.may_be(_WHOLE, spelt[name]) for name in key]
    return Keys(tuple(key), tuple(spelt[name] for name in key), tuple(numbers))


def count_rows(session: Session, relation: str, columns: Sequence[str], name: str) -> int:
    """How many rows there are; an error unless the columns tell each from the others."""
    dialect = session.dialect
    quoted = [quote(column, dialect) for column in columns]
    missing = " OR ".join(f"{one} IS NULL" for one in quoted)
    listed = ", ".join(quoted)
    grouped = (
        f"SELECT COUNT(*) AS n_rows, MAX(CASE WHEN {missing} THEN 1 ELSE 0 END) AS n_missing "
        f"FROM {relation} AS every GROUP BY {listed}"
    )
    ((rows, most, missing_keys),) = session.rows(
        "SELECT SUM(n_rows), MAX(CASE WHEN n_missing = 0 THEN n_rows END), "
        f"SUM(n_missing * n_rows) FROM ({grouped}) AS counted",
        _COUNTING,
    )
    if missing_keys:
        raise ColumnError(
            f"{told(columns)} is NULL in {int(missing_keys):,} of {int(rows):,} rows of {name}: "
            "name a key that every row has, or leave these out in a view"
        )
    if (most or 0) > 1:
        (example,) = session.rows(
            f"SELECT {listed} FROM {relation} AS every GROUP BY {listed} "
            "HAVING COUNT(*) > 1 LIMIT 1",
            _COUNTING,
        )
        raise not_unique(columns, example, name)
    return int(rows or 0)


def told(columns: Sequence[str]) -> str:
    """A key in a message."""
    return f"key {', '.join(map(repr, columns))}"


def not_unique(columns: Sequence[str], example: Sequence[Any], name: str) -> ColumnError:
    """The error that columns do not tell rows apart."""
    values = ", ".join(str(value) for value in example)
    return ColumnError(
        f"{told(columns)} is not unique in {name}, where {values!r} is there twice: name columns "
        "that together tell all rows apart"
    )


def lookup(result: Result, keys: Keys, wanted: Sequence[Key], chosen: str, name: str) -> str:
    """The SELECT of what is ``chosen`` of the rows whose keys are wanted, and may be of a few more.

    ``name`` is what the keys are called in it, which no table is.
    """
    dialect = result.session.dialect
    columns = ", ".join(f"k{place}" for place in range(len(keys.stored)))
    values = ",\n".join(f"({', '.join(_literals(one, dialect))})" for one in wanted)
    compared = ", ".join(keys.compared(dialect))
    # In parentheses where there are several: they are one row.
    tested = f"({compared})" if len(keys.stored) > 1 else compared
    # IN, and not a join, for which SQLite may go through the result once a key.
    return (
        f"WITH {quote(name, dialect)}({columns}) AS (VALUES\n{values}\n)\n"
        f"SELECT {chosen} FROM {result.relation} AS stored "
        f"WHERE {tested} IN (SELECT {columns} FROM {quote(name, dialect)})"
    )


def _literals(key: Key, dialect: Dialect) -> Iterator[str]:
    for value in key:
        if isinstance(value, int):
            yield number(float(value), "float64", dialect)
        else:
            yield text(value, dialect)
