"""A sample of a source that stays the same while the engine and NumPy compute from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sqlkrp.engines.keys import rows_of
from sqlkrp.engines.session import Session
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import LongInput
from sqlkrp.sql.names import quote, soft_cast
from sqlkrp.sql.statement import Query, Statement, draft, write
from sqlkrp.stages import Array

__all__ = ["computed_of_sample", "doubles", "inputs_of_sample", "numbers", "sample_of"]

_DRAWING, _COMPUTING, _READING = (
    "drawing a sample of rows", "the features of the sample", "reading the sample",
)  # fmt: skip


def computed_of_sample(
    session: Session, query: Query, count: int, rows: int | None
) -> tuple[Statement, Array, Array]:
    """A sample's statement, which is written once; its inputs; and what the engine computed.

    ``rows`` is how many the source has, if somebody counted.
    """
    if session.dialect.array is None or query.long is not None:
        return _beside_each_other(session, query, count, rows)
    return _in_one_row(session, query, count, rows)


def inputs_of_sample(
    session: Session,
    query: Query,
    names: Sequence[str],
    items: Sequence[str],
    count: int,
    rows_in_all: int | None,
) -> tuple[list[tuple[Any, ...]], Array]:
    """Of a sample's rows what ``items`` make of the columns of these names, and the inputs."""
    dialect, columns = session.dialect, query.program.prepare.columns
    if query.long is not None:
        return _inputs_of_long(session, query, query.long, items, count)
    everything = list(dict.fromkeys([*names, *columns]))
    drawn = sample_of(session, query.relation, everything, count, rows_in_all)
    chosen = ", ".join([*items, *doubles(query, dialect)])
    rows = session.rows(f"SELECT {chosen} FROM (\n{drawn}\n) AS drawn", _READING)
    inputs = _array([row[len(items) :] for row in rows], len(columns))
    return [row[: len(items)] for row in rows], inputs


def _inputs_of_long(
    session: Session, query: Query, long: LongInput, items: Sequence[str], count: int
) -> tuple[list[tuple[Any, ...]], Array]:
    dialect, (name, keys) = session.dialect, _names(query)
    small = replace(query, relation=quote(name, dialect), keys=quote(keys, dialect))
    with _temporary(session, name, keys):
        _draw_long(session, query, long, name, keys, count)
        inputs = _sparse_inputs(session, small, long)
        # As the inputs are numbered.
        numbering = dialect.numbering.format(everything=quote(long.row, dialect))
        named = [f"{item} AS i{place}" for place, item in enumerate(items)]
        chosen = ", ".join([f"{numbering} AS place", *named])
        rows = session.rows(
            f"SELECT * FROM (SELECT {chosen} FROM {small.keys}) AS keys ORDER BY place ASC",
            _READING,
        )
    return [row[1:] for row in rows], inputs


def _in_one_row(
    session: Session, query: Query, count: int, rows: int | None
) -> tuple[Statement, Array, Array]:
    """With a row's inputs as an array before its features.

    A statement that joins no side tables has the sample in a WITH before it, and so nothing is
    created.
    """
    dialect, columns = session.dialect, query.program.prepare.columns
    beside = "sqlkrp_inputs"
    while beside in {name.lower() for name in columns}:
        beside += "_"
    assert dialect.array is not None
    inputs = dialect.array.format(items=", ".join(doubles(query, dialect)))
    listed = ", ".join(quote(name, dialect) for name in columns)
    drawn = sample_of(session, query.relation, columns, count, rows)
    sample = f"SELECT {listed}, {inputs} AS {quote(beside, dialect)} FROM (\n{drawn}\n) AS drawn"
    name, _ = _names(query)
    small = replace(query, relation=quote(name, dialect))
    statement, in_array = _written(small, beside, dialect)
    if statement.side_tables:
        with _temporary(session, name), session.holding(statement):
            session.create_temporary(name, sample, _DRAWING)
            found = session.rows(statement.text, _COMPUTING)
    else:
        # In parentheses, as the statement may have a WITH of its own.
        whole = f"SELECT * FROM (\n{statement.text}\n) AS made"
        found = session.rows(f"WITH {small.relation} AS (\n{sample}\n)\n{whole}", _COMPUTING)
    return statement, *_taken_apart(found, len(columns), len(query.program.names), in_array)


def _written(query: Query, beside: str, dialect: Dialect) -> tuple[Statement, bool]:
    """The statement as it is by default, or where columns are too many with an array."""
    query = replace(query, options=replace(query.options, keep=(beside,))).decided(dialect)
    statement = draft(query, dialect)
    if statement.too_large is None:
        return statement, query.options.output == "array"
    return write(replace(query, options=replace(query.options, output="array")), dialect), True


def _taken_apart(
    rows: Sequence[Sequence[Any]], n_inputs: int, n_features: int, in_array: bool
) -> tuple[Array, Array]:
    """The inputs and the features of rows that have the inputs in front."""
    nothing = [None] * n_features
    found = [(row[1] or nothing) if in_array else row[1:] for row in rows]
    return _array([row[0] for row in rows], n_inputs), _array(found, n_features)


def _array(rows: Sequence[Any], width: int) -> Array:
    return np.array(rows, dtype="float64").reshape(-1, width)


def _beside_each_other(
    session: Session, query: Query, count: int, rows: int | None
) -> tuple[Statement, Array, Array]:
    """With the sample as a temporary table, of which both are read in the same order."""
    dialect, (name, keys) = session.dialect, _names(query)
    options = replace(query.options, keep=(), output="columns")
    small = replace(query, relation=quote(name, dialect), options=options)
    if query.long is not None:
        small = replace(small, keys=quote(keys, dialect))
    statement = write(small, dialect)
    with _temporary(session, name, keys), session.holding(statement):
        if query.long is None:
            _draw(session, name, query.relation, query.program.prepare.columns, count, rows)
            inputs = _dense_inputs(session, small)
        else:
            _draw_long(session, query, query.long, name, keys, count)
            inputs = _sparse_inputs(session, small, query.long)
        found = session.columns(statement.text, query.program.names, _COMPUTING)
    return statement, inputs, found


def _names(query: Query) -> tuple[str, str]:
    """The temporary tables of a sample: of its rows, or entries and keys."""
    prefix = f"{query.digest[:12]}_{query.token}"
    return f"{prefix}sample", f"{prefix}sample_keys"


@contextlib.contextmanager
def _temporary(session: Session, *names: str) -> Iterator[None]:
    """A block at whose end temporary tables of these names are dropped."""
    session.can.require(
        "temporary_tables", session.dialect.name, "the sample needs one; use form='wide', if there "
        "are arrays"
    )  # fmt: skip
    try:
        yield
    finally:
        for name in names:
            session.drop_temporary(name)


def _draw_long(
    session: Session, query: Query, long: LongInput, name: str, keys: str, count: int
) -> None:
    key, chosen = quote(long.row, session.dialect), quote(keys, session.dialect)
    every = rows_of(query.relation, long, session.dialect)
    _draw(session, keys, every, [long.row], count, None)
    listed = ", ".join(quote(one, session.dialect) for one in (long.row, long.feature, long.value))
    session.create_temporary(
        name,
        f"SELECT {listed} FROM {query.relation} AS entries WHERE EXISTS "
        f"(SELECT 1 FROM {chosen} AS keys WHERE keys.{key} = entries.{key})",
        _DRAWING,
    )
    session.restore_names(("temp", name), (long.row, long.feature, long.value), view=False)


def _draw(
    session: Session,
    name: str,
    relation: str,
    columns: Sequence[str],
    count: int,
    rows: int | None,
) -> None:
    sample = sample_of(session, relation, columns, count, rows)
    session.create_temporary(name, sample, _DRAWING)
    session.restore_names(("temp", name), columns, view=False)


def sample_of(
    session: Session, relation: str, columns: Sequence[str], count: int, rows: int | None
) -> str:
    """The SELECT of so many rows, or of all if there are no more."""
    if rows is None:
        ((rows,),) = session.rows(f"SELECT COUNT(*) FROM {relation} AS counted", "counting rows")
    listed = ", ".join(quote(column, session.dialect) for column in columns)
    everything = f"SELECT {listed} FROM {relation} AS every"
    return everything if rows <= count else session.sample(relation, columns, count)


def _dense_inputs(session: Session, query: Query) -> Array:
    columns = query.program.prepare.columns
    names = [f"x{i}" for i in range(len(columns))]
    inputs = zip(doubles(query, session.dialect), names, strict=True)
    casts = ", ".join(f"{value} AS {name}" for value, name in inputs)
    return session.columns(f"SELECT {casts} FROM {query.relation} AS drawn", names, _READING)


def _sparse_inputs(session: Session, query: Query, long: LongInput) -> Array:
    dialect = session.dialect
    key = quote(long.row, dialect)
    # With the relation's name, as a column may be named as one of our keys'.
    feature, value = (f"entries.{quote(one, dialect)}" for one in (long.feature, long.value))
    name = dialect.cast.format(value=feature, type=dialect.text_type)
    ((count,),) = session.rows(f"SELECT COUNT(*) FROM {query.keys}", _READING)
    double = soft_cast(value, "float64", dialect, boolean=long.value in query.booleans)
    # As the statement numbers them.
    numbering = dialect.numbering.format(everything=key)
    entries = session.rows(
        f"SELECT keys.place, {name}, {double} "
        f"FROM {query.relation} AS entries "
        f"JOIN (SELECT {numbering} AS place, {key} AS row_key FROM {query.keys}) AS keys "
        f"ON keys.row_key = entries.{key}",
        _READING,
    )
    columns = {name: i for i, name in enumerate(query.program.prepare.columns)}
    inputs = np.zeros((count, len(columns)))
    for place, name, value in entries:
        if name in columns:
            inputs[place - 1, columns[name]] = np.nan if value is None else value
    return inputs


def doubles(query: Query, dialect: Dialect) -> list[str]:
    """The input columns as doubles."""
    return numbers(query, "float64", dialect)


def numbers(query: Query, dtype: str, dialect: Dialect) -> list[str]:
    """The input columns as numbers of a NumPy dtype."""
    return [
        soft_cast(quote(name, dialect), dtype, dialect, boolean=name in query.booleans)
        for name in query.program.prepare.columns
    ]
