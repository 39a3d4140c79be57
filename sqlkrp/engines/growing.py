"""Which rows of a source go into a table: all of them, the first few, or those it does not have.

The rows are chosen in the source, so that nothing is checked or computed of any others. A table
that grows is told by a key what it has: the columns whose values every row has, and has alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlkrp.engines.inputs import Input
from sqlkrp.engines.keys import count_rows, require_key_of_long, rows_of, told
from sqlkrp.engines.session import Session, Storage, Target
from sqlkrp.errors import ColumnError
from sqlkrp.maps.columns import match_columns
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import quote, quote_table
from sqlkrp.sql.options import Options

__all__ = ["chosen_rows", "few_rows", "replaced", "with_key"]


def with_key(options: Options, storage: Storage) -> Options:
    """The options with the key among the columns that are handed on; in front, if it was not."""
    if options.long is not None:
        require_key_of_long(options.long[0], storage.key)
        return options
    more = tuple(name for name in storage.key if name not in options.keep)
    return replace(options, keep=(*more, *options.keep))


def chosen_rows(session: Session, data: Input, target: Target, limit: int | None) -> Input:
    """The source with the rows only that are to be written to a target, each with its own key."""
    storage, key = target.storage, target.storage.key
    if not key:
        return few_rows(session, data, limit)
    match_columns(key, data.types if data.key_types is None else data.key_types, where=data.name)
    if target.found is not None:
        _require_key_there(session, data, target)
        if not storage.upsert:
            data = _only(data, _lacking(session, _rows(data), target), session.dialect)
    data = few_rows(session, data, limit, key)
    # Of sparse input the rows are those of its keys: each is there once, whatever entries it has.
    if data.long is None or data.long.keys is not None:
        count_rows(session, _rows(data), key, data.name)
    return data


def few_rows(session: Session, data: Input, limit: int | None, key: Sequence[str] = ()) -> Input:
    """The source with so many of its rows only: the first of a key, if there is one."""
    if limit is None:
        return data
    dialect = session.dialect
    if data.long is not None:
        key = (data.long.row,)
    order = ", ".join(f"{quote(name, dialect)} ASC" for name in key)
    source = rows_of(data.relation, data.long, dialect)
    ordered = f" ORDER BY {order}" if order else ""
    return _only(data, f"(SELECT * FROM {source} AS every{ordered} LIMIT {limit:d})", dialect)


def replaced(session: Session, target: Target, data: Input) -> int:
    """Delete the rows of a target whose keys the source has; how many they were."""
    dialect = session.dialect
    listed = ", ".join(quote(name, dialect) for name in target.storage.key)
    tested = f"({listed})" if len(target.storage.key) > 1 else listed
    return session.change(
        f"DELETE FROM {quote_table(target.full, dialect)} "
        f"WHERE {tested} IN (SELECT {listed} FROM {_rows(data)} AS every)",
        f"replacing rows of {target.name!r}",
    )


def _rows(data: Input) -> str:
    """The relation that has the rows of the answer: of sparse input their table, if it has one."""
    return data.relation if data.long is None or data.long.keys is None else data.long.keys


def _lacking(session: Session, source: str, target: Target) -> str:
    """The rows of a relation whose keys a target does not have."""
    # As a join, which no engine goes through once a row; keys are never NULL there.
    dialect = session.dialect
    names = [quote(name, dialect) for name in target.storage.key]
    keys = ", ".join(f"{name} AS k{place}" for place, name in enumerate(names))
    same = " AND ".join(f"there.k{place} = every.{name}" for place, name in enumerate(names))
    return (
        f"(SELECT every.* FROM {source} AS every LEFT JOIN "
        f"(SELECT {keys} FROM {quote_table(target.full, dialect)} AS grown) AS there "
        f"ON {same} WHERE there.k0 IS NULL)"
    )


def _only(data: Input, rows: str, dialect: Dialect) -> Input:
    """The source with these rows only; of sparse input, with the entries of these."""
    if data.long is None:
        return replace(data, relation=rows)
    row = quote(data.long.row, dialect)
    entries = (
        f"(SELECT every.* FROM {data.relation} AS every JOIN "
        f"(SELECT DISTINCT {row} AS k0 FROM {rows} AS few) AS there ON there.k0 = every.{row})"
    )
    keys = None if data.long.keys is None else rows
    return replace(data, relation=entries, long=replace(data.long, keys=keys))


def _require_key_there(session: Session, data: Input, target: Target) -> None:
    """Raise ColumnError unless a target has the key, of the same types, and it is one there."""
    dialect, key = session.dialect, target.storage.key
    listed = ", ".join(quote(name, dialect) for name in key)
    there, new = session.columns_beside(target, f"SELECT {listed} FROM {_rows(data)} AS every")
    match_columns(key, there, where=target.name)
    for name in key:
        if there[name] != new[name]:
            raise ColumnError(
                f"{told(key)} is of type {new[name] or 'none'} in {data.name} and of type "
                f"{there[name] or 'none'} in {target.name}: cast it in a view of the source"
            )
    kept_apart = {*session.primary_key(target.full)}  # by the database itself
    if not kept_apart or not kept_apart <= {*key}:
        count_rows(session, quote_table(target.full, dialect), key, target.name)
