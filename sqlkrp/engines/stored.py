"""A sample of a source's rows, and what was stored of them before, found by key.

What holds the result may be read by another engine than the source (a file, by DuckDB). So what
goes from one to the other are keys: they stand as values in the statement that looks for them, and
nothing is created anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from sqlkrp.engines.inputs import Input
from sqlkrp.engines.keys import (
    Key,
    Keys,
    count_rows,
    keys_of,
    lookup,
    named_key,
    not_unique,
    require_key_of_long,
    rows_of,
    told,
)
from sqlkrp.engines.results import PROJECTION, Layout, Result, layout_of, not_features
from sqlkrp.engines.samples import inputs_of_sample
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.sql.names import quote
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Query
from sqlkrp.stages import Array, Program
from sqlkrp.verification import Stored

__all__ = ["key_columns", "rows_of_sample"]

# Keys in one statement, each of which reads the whole result.
_KEYS_AT_ONCE = 5000
_LOOKING = "looking for the sample in the result"


def key_columns(result: TableOrFile | None, key: Any, options: Options) -> tuple[str, ...]:
    """The columns of a key, if what is asked of a result goes together."""
    columns = named_key(key)
    if result is None:
        raise ParameterError("a key belongs to stored rows: give their table or file (result=NAME)")
    if not columns:
        raise ParameterError(
            "stored rows come in no order: name the column (or several) that tells them apart, in "
            "the source and in the result (key=NAME)"
        )
    if (options.form, options.plan) != ("auto", "auto"):
        raise ParameterError(
            "form and plan are of a statement, and stored rows are compared as they are: leave "
            "them out"
        )
    if options.long is not None:
        require_key_of_long(options.long[0], columns)
    return columns


def rows_of_sample(
    session: Session, query: Query, data: Input, result: Result, key: Sequence[str], count: int
) -> tuple[Array, Array, Stored]:
    """The inputs of a sample's rows that the result has, what it holds of them, and its keys."""
    keys = keys_of(data, result, key)
    layout = layout_of(result, query)
    source = rows_of(query.relation, query.long, session.dialect)
    source_rows = count_rows(session, source, keys.source, data.name)
    stored_rows = count_rows(result.session, result.relation, keys.stored, result.name)
    drawn, inputs = _drawn(session, query, data, keys, count, source_rows)
    name = f"{query.digest[:12]}_{query.token}keys"
    places, values = _found(result, keys, drawn, layout, name)
    there = [place for place, one in enumerate(drawn) if one in places]
    stored = Stored(
        name=result.name,
        through="" if result.session is session else result.session.dialect.name,
        key=tuple(key),
        keys=tuple(drawn[place] for place in there),
        missing=tuple(one for one in drawn if one not in places),
        source_rows=source_rows,
        rows=stored_rows,
    )
    inputs, values = inputs[there], values[[places[one] for one in stored.keys]]
    if layout.in_array:
        _require_no_projection(query.program, inputs, values, result.name)
    return inputs, values, stored


def _require_no_projection(program: Program, inputs: Array, values: Array, name: str) -> None:
    """Raise ColumnError if an array, whose name does not tell, holds the projection."""
    try:
        bare = program.projection()
    except ColumnError:
        return  # the map has none
    if len(bare.names) != len(program.names):
        return
    projected, features = (
        np.allclose(one.apply(inputs), values, 1e-5, equal_nan=True) for one in (bare, program)
    )
    if projected and not features:
        raise not_features(name, PROJECTION)


def _drawn(
    session: Session, query: Query, data: Input, keys: Keys, count: int, rows_in_all: int
) -> tuple[list[Key], Array]:
    """The keys of a sample, and the inputs of its rows."""
    items = keys.items(keys.source, session.dialect)
    rows, inputs = inputs_of_sample(session, query, keys.source, items, count, rows_in_all)
    drawn: list[Key] = []
    for row in rows:
        one = keys.read(row)
        if one is None:
            raise ColumnError(
                f"{told(keys.source)} of {data.name} has {', '.join(map(str, row))}, a number that "
                "is not whole, which others may write otherwise: name a key of whole numbers, "
                "texts or dates"
            )
        drawn.append(one)
    if twice := [one for one, times in Counter(drawn).items() if times > 1]:
        raise not_unique(keys.source, twice[0], data.name)  # 1 and '1', in a column of no type
    return drawn, inputs


def _found(
    result: Result, keys: Keys, drawn: Sequence[Key], layout: Layout, name: str
) -> tuple[dict[Key, int], Array]:
    """What the result says of the rows of a sample that it has, and where in that each of them is.

    Of so many rows at once, whose numbers take a tenth of the room that the engine's rows do.
    """
    dialect = result.session.dialect
    items = keys.items(keys.stored, dialect)
    chosen = ", ".join([*items, *(quote(one, dialect) for one in layout.columns)])
    places: dict[Key, int] = {}
    parts = [layout.read([])]
    for first in range(0, len(drawn), _KEYS_AT_ONCE):
        part = drawn[first : first + _KEYS_AT_ONCE]
        wanted, values = set(part), []
        for row in result.session.rows(lookup(result, keys, part, chosen, name), _LOOKING):
            one = keys.read(row[: len(items)])
            if one is None or one not in wanted:
                continue
            if one in places:  # 1 and 01, of a file without types
                raise not_unique(keys.stored, one, result.name)
            places[one] = len(places)
            values.append(row[len(items) :])
        parts.append(layout.read(values))
    return places, np.concatenate(parts)
