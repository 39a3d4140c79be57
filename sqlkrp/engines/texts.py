"""What columns of texts hold: their values, or dates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import quote

__all__ = ["dates_in", "texts_in"]

#: The rows of a statement.
Rows = Callable[[str], list[tuple[Any, ...]]]

# So many rows tell of most columns that they hold too many texts, or others than dates: nobody
# groups ten million keys, or reads them as dates.
_FIRST_ROWS = 10_000
# Columns of one statement; SQLite takes 500 SELECTs as one.
_COLUMNS_AT_ONCE = 100


def texts_in(
    columns: Sequence[str], at_most: int, relation: str, rows: Rows, dialect: Dialect
) -> dict[str, list[str | None] | None]:
    """The texts of columns, with None if one is missing; None of a column with more than so many.

    A statement for the first rows, and one for all of them.
    """
    found: dict[str, list[str | None] | None] = dict.fromkeys(columns)
    distinct = [f"COUNT(DISTINCT {_exact(name, dialect)})" for name in columns]
    counts = _counted(distinct, _first_rows(columns, relation, dialect), rows)
    few = [name for name, count in zip(columns, counts, strict=True) if count <= at_most]
    for first in range(0, len(few), _COLUMNS_AT_ONCE):
        part = few[first : first + _COLUMNS_AT_ONCE]
        # One more than is wanted, and a missing one, are enough to know.
        selects = [
            f"SELECT * FROM (SELECT DISTINCT {place} AS place, {_exact(name, dialect)} AS held "
            f"FROM {relation} AS held_{place} LIMIT {at_most + 2:d}) AS values_{place}"
            for place, name in enumerate(part)
        ]
        held: list[list[str | None]] = [[] for _ in part]
        for place, value in rows("\nUNION ALL\n".join(selects)):
            held[place].append(value)
        for name, values in zip(part, held, strict=True):
            found[name] = values if sum(one is not None for one in values) <= at_most else None
    return found


def dates_in(columns: Sequence[str], relation: str, rows: Rows, dialect: Dialect) -> list[str]:
    """Of columns of texts, those whose texts are all dates, where the engine reads these."""
    how = dialect.text_microseconds
    if how is None:
        return []
    found = list(columns)
    for whole in (False, True):
        pairs = [
            item
            for value in (quote(name, dialect) for name in found)
            for item in (f"COUNT({value})", f"COUNT({how.format(value=value)})")
        ]
        source = relation if whole or not found else _first_rows(found, relation, dialect)
        counts = _counted(pairs, source, rows)
        texts, dates = counts[::2], counts[1::2]
        every = zip(found, texts, dates, strict=True)
        # Of first rows that hold nothing, nothing is known.
        found = [name for name, text, day in every if text == day and (text or not whole)]
    return found


def _exact(name: str, dialect: Dialect) -> str:
    return dialect.exact_text.format(value=quote(name, dialect))


def _first_rows(columns: Sequence[str], relation: str, dialect: Dialect) -> str:
    listed = ", ".join(quote(name, dialect) for name in columns)
    return f"(SELECT {listed} FROM {relation} AS every LIMIT {_FIRST_ROWS:d})"


def _counted(aggregates: Sequence[str], relation: str, rows: Rows) -> list[int]:
    """Aggregates over a relation, in parts of as many as every engine takes at once."""
    found: list[int] = []
    for first in range(0, len(aggregates), _COLUMNS_AT_ONCE):
        part = ", ".join(aggregates[first : first + _COLUMNS_AT_ONCE])
        ((*counts,),) = rows(f"SELECT {part} FROM {relation} AS looked_at")
        found += counts
    return found
