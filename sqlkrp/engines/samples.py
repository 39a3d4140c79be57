"""A sample of a source that stays the same while the engine and NumPy compute from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.session import Session
from sqlkrp.sql.job import LongInput
from sqlkrp.sql.names import quote, soft_cast
from sqlkrp.sql.statement import Query, write

__all__ = ["sampled"]

_WHAT = "drawing a sample of rows"


def computed_in_place(
    session: Session, query: Query, count: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The inputs and the engine's features of a sample, by one statement that creates nothing."""
    dialect, columns = session.dialect, query.program.prepare.columns
    assert dialect.array is not None
    beside = "sqlkrp_inputs"
    while beside in {name.lower() for name in columns}:
        beside += "_"
    doubles = ", ".join(_inputs(session, query))
    inputs = dialect.array.format(items=doubles)
    sample = _sample(session, query.relation, columns, count)
    listed = ", ".join(quote(name, dialect) for name in columns)
    relation = (
        f"(SELECT {listed}, {inputs} AS {quote(beside, dialect)} FROM (\n{sample}\n) AS drawn)"
        " AS sample"
    )
    options = replace(query.options, keep=(beside,), form="wide", output="array")
    small = replace(query, relation=relation, options=options)
    rows = session.rows(write(small, dialect).text, "the features of the sample")
    width = len(query.program.names)
    found = [[None] * width if features is None else features for _, features in rows]
    return _array([row[0] for row in rows], len(columns)), _array(found, width)


def _array(rows: list[Any], width: int) -> NDArray[Any]:
    return np.array(rows, dtype="float64").reshape(-1, width)


@contextlib.contextmanager
def sampled(session: Session, query: Query, count: int) -> Iterator[tuple[Query, NDArray[Any]]]:
    """The query over a sample of its source, as temporary tables, and the sample's inputs."""
    prefix = f"{query.digest[:12]}_{query.token}"
    name, keys = (f"{prefix}{part}" for part in ("sample", "sample_keys"))
    with contextlib.ExitStack() as drops:
        for temporary in (name, keys):
            drops.callback(session.drop_temporary, temporary)
        if query.long is None:
            columns = query.program.prepare.columns
            _draw(session, name, query.relation, columns, count)
            query = replace(query, relation=quote(name, session.dialect))
            yield query, _dense_inputs(session, query)
        else:
            long = _sample_long(session, query, query.long, name, keys, count)
            query = replace(query, relation=quote(name, session.dialect), keys=long.keys)
            yield query, _sparse_inputs(session, query, long)


def _sample_long(
    session: Session, query: Query, long: LongInput, name: str, keys: str, count: int
) -> LongInput:
    key = quote(long.row, session.dialect)
    every = long.keys or (
        f"(SELECT DISTINCT {key} FROM {query.relation} WHERE {key} IS NOT NULL) AS every"
    )
    _draw(session, keys, every, [long.row], count)
    chosen = quote(keys, session.dialect)
    listed = ", ".join(quote(one, session.dialect) for one in (long.row, long.feature, long.value))
    session.create_temporary(
        name,
        f"SELECT {listed} FROM {query.relation} AS entries WHERE EXISTS "
        f"(SELECT 1 FROM {chosen} AS keys WHERE keys.{key} = entries.{key})",
        _WHAT,
    )
    session.restore_names(("temp", name), (long.row, long.feature, long.value), view=False)
    return replace(long, keys=chosen)


def _draw(session: Session, name: str, relation: str, columns: Sequence[str], count: int) -> None:
    session.create_temporary(name, _sample(session, relation, columns, count), _WHAT)
    session.restore_names(("temp", name), columns, view=False)


def _sample(session: Session, relation: str, columns: Sequence[str], count: int) -> str:
    """The SELECT of so many rows, or of all if there are no more."""
    ((rows,),) = session.rows(f"SELECT COUNT(*) FROM {relation}", "counting rows")
    listed = ", ".join(quote(column, session.dialect) for column in columns)
    everything = f"SELECT {listed} FROM {relation}"
    return everything if rows <= count else session.sample(relation, columns, count)


def _dense_inputs(session: Session, query: Query) -> NDArray[Any]:
    columns = query.program.prepare.columns
    names = [f"x{i}" for i in range(len(columns))]
    inputs = zip(_inputs(session, query), names, strict=True)
    casts = ", ".join(f"{value} AS {name}" for value, name in inputs)
    return session.columns(f"SELECT {casts} FROM {query.relation}", names, "reading the sample")


def _sparse_inputs(session: Session, query: Query, long: LongInput) -> NDArray[Any]:
    dialect = session.dialect
    key = quote(long.row, dialect)
    # With the relation's name, as a column may be named as one of our keys'.
    feature, value = (f"entries.{quote(one, dialect)}" for one in (long.feature, long.value))
    name = dialect.cast.format(value=feature, type=dialect.text_type)
    ((count,),) = session.rows(f"SELECT COUNT(*) FROM {long.keys}", "reading the sample")
    double = soft_cast(value, "float64", dialect, boolean=long.value in (query.booleans or ()))
    entries = session.rows(
        f"SELECT keys.place, {name}, {double} "
        f"FROM {query.relation} AS entries "
        f"JOIN (SELECT ROW_NUMBER() OVER () AS place, {key} AS row_key FROM {long.keys}) AS keys "
        f"ON keys.row_key = entries.{key}",
        "reading the sample",
    )
    columns = {name: i for i, name in enumerate(query.program.prepare.columns)}
    inputs = np.zeros((count, len(columns)))
    for place, name, value in entries:
        if name in columns:
            inputs[place - 1, columns[name]] = np.nan if value is None else value
    return inputs


def _inputs(session: Session, query: Query) -> list[str]:
    """The input columns as doubles."""
    dialect, prepare = session.dialect, query.program.prepare
    booleans = prepare.booleans if query.booleans is None else query.booleans
    return [
        soft_cast(quote(name, dialect), "float64", dialect, boolean=name in booleans)
        for name in prepare.columns
    ]
