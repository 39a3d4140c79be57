"""What holds stored rows, a table or a file, and what its columns hold as the twin says it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from sqlkrp.engines.inputs import spoken
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.errors import ColumnError
from sqlkrp.maps.columns import match_columns, spelt_in
from sqlkrp.maps.source import NUMERIC
from sqlkrp.sql.packing import bit_names
from sqlkrp.sql.statement import Query
from sqlkrp.stages import Array, hyperplane_names
from sqlkrp.urls import File, as_named

__all__ = ["PROJECTION", "Layout", "Result", "layout_of", "not_features", "opened", "whole"]

PROJECTION = "the bare projection (stage='projection')"
# Truth values as engines write them into CSV.
_TRUTHS = {"true": True, "t": True, "false": False, "f": False}


@dataclass(frozen=True)
class Result:
    """What holds stored rows: a table or a file, and the session that reads it."""

    session: Session
    relation: str
    types: Mapping[str, str]
    """Empty ones are of columns of texts that may stand for anything."""
    name: str

    def may_be(self, kinds: Sequence[str], column: str) -> bool:
        """Whether a column is of one of these kinds, or of texts that may stand for anything."""
        return not self.types[column] or self.session.kind(self.types[column]) in kinds


@contextlib.contextmanager
def opened(session: Session, result: TableOrFile) -> Iterator[Result]:
    """A result in the source's session, or if that reads no such files, in a DuckDB of its own."""
    result = as_named(result)
    name = spoken(result)
    if not isinstance(result, File):
        yield Result(session, *session.look(result, name), name)
        return
    found = session.look_at_file(result, name)
    if found is not None:
        yield Result(session, *found, name)
        return
    from sqlkrp.engines.duckdb import DuckDB  # which another engine's user may not have used

    with contextlib.closing(DuckDB.open(None)) as reader:
        found = reader.look_at_file(result, name)
        assert found is not None
        yield Result(reader, *found, name)


def whole(value: Any) -> int | None:
    """A whole number, however it is written; None if it is none."""
    try:
        found = Decimal(value) if isinstance(value, str) else value
        # Of the finite ones only: a text may name more digits than there is room for.
        return int(found) if math.isfinite(float(found)) and found == int(found) else None
    except (ArithmeticError, TypeError, ValueError):
        return None


@dataclass(frozen=True)
class Layout:
    """How a result holds what the twin says of a row: in a column each, or all in an array."""

    columns: tuple[str, ...]
    read: Callable[[Sequence[Sequence[Any]]], Array]
    """Of the columns' values in some rows: the numbers."""
    in_array: bool = False


def layout_of(result: Result, query: Query) -> Layout:
    """How a result holds what a query's program says; an error if it does not."""
    names, words = query.program.names, query.program.words
    spelt = spelt_in(result.types, names)
    array = spelt_in(result.types, [query.array_name]).get(query.array_name)
    if not spelt and array is not None:
        read = partial(_of_arrays, count=len(names), column=array, name=result.name)
        return Layout((array,), read, in_array=True)
    if missing := [name for name in names if name not in spelt]:
        _require_features(result, query)
        match_columns(missing, result.types, where=result.name)
    columns = tuple(spelt.values())
    _require_numbers(result, [one for place, one in enumerate(columns) if place not in words])
    return Layout(columns, partial(_of_columns, count=len(names), words=words))


def _require_features(result: Result, query: Query) -> None:
    """Raise ColumnError where a result has what is no features, but was made by the same map."""
    count = len(query.program.names)
    others = {
        PROJECTION: hyperplane_names(1),
        "signs as bits (output='bits')": bit_names(query.array_name, count)[:1],
    }
    for what, names in others.items():
        if spelt_in(result.types, names):
            raise not_features(result.name, what)


def not_features(name: str, what: str) -> ColumnError:
    """The error that a result holds something else."""
    return ColumnError(
        f"{name} holds {what}, and what is compared are features: give a result that has these, as "
        "columns or as an array"
    )


def _require_numbers(result: Result, columns: Sequence[str]) -> None:
    for name in columns:
        if not result.may_be(NUMERIC, name):
            raise ColumnError(
                f"column {name!r} of {result.name} is of type {result.types[name]}, and what is "
                "compared is a number there: name the table or file that the map or model made"
            )


def _of_columns(
    rows: Sequence[Sequence[Any]], count: int, words: Mapping[int, tuple[Any, ...]]
) -> Array:
    found = np.empty((len(rows), count))
    for place in range(count):
        values = [row[place] for row in rows]
        coded = _numbers if place not in words else _codes_of(words[place])
        found[:, place] = coded(values)
    return found


def _of_arrays(rows: Sequence[Sequence[Any]], count: int, column: str, name: str) -> Array:
    found = np.full((len(rows), count), np.nan)
    for place, (array,) in enumerate(rows):
        # Of a file without types: as DuckDB, Spark or Postgres writes it into CSV.
        items = array.strip(" []{}").split(",") if isinstance(array, str) else array
        if items is None:
            continue
        if not hasattr(items, "__len__") or len(items) != count:
            has = f"arrays of {len(items):,}" if hasattr(items, "__len__") else f"{items!r}"
            raise ColumnError(
                f"column {column!r} of {name} has {has}, and there are {count:,} features: name "
                "the features of this map, and not a projection or another map's"
            )
        found[place] = _numbers(list(items))
    return found


def _numbers(values: Sequence[Any]) -> Array:
    """Numbers, NaN for NULL; what is neither is infinite, and so never equal."""
    try:
        return np.array(values, dtype="float64")
    except (TypeError, ValueError):
        return np.array([_number(value) for value in values])


def _number(value: Any) -> float:
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "null")):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.inf


def _codes_of(classes: Sequence[Any]) -> Callable[[Sequence[Any]], Array]:
    """What gives each label the number of its class; one that is no class is infinitely far."""
    # Equal numbers are one key of a dict, whatever their types are: True, 1, 1.0, Decimal(1).
    codes = {one: place for place, one in enumerate(classes)}
    meant = _MEANT[type(classes[0])]

    def code(value: Any) -> float:
        if value is None or (value == "" and "" not in codes) or value != value:
            return math.nan
        return float(codes.get(meant(value), math.inf))

    return lambda values: np.array([code(value) for value in values])


def _as_text_label(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _as_number(value: Any) -> float:
    found = whole(value)
    return _number(value) if found is None else found


def _as_truth(value: Any) -> float:
    known = _TRUTHS.get(value.strip().lower()) if isinstance(value, str) else None
    return _as_number(value) if known is None else known


#: What a stored label means where classes are of a type: engines without truth values have 0 and 1,
#: and a CSV has texts.
_MEANT: dict[type, Callable[[Any], Any]] = {
    str: _as_text_label,
    bool: _as_truth,
    int: _as_number,
    float: _as_number,
}
