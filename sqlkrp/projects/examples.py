"""A few rows with what the twin says of them, which a project's own engine is held against.

They are rows of the user's table, told by their keys, or made up: then their inputs are told too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from sqlkrp.engines.asking import query_of
from sqlkrp.engines.results import whole
from sqlkrp.engines.samples import doubles
from sqlkrp.engines.session import Session
from sqlkrp.engines.sources import TableSource
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.fitted import Fitted
from sqlkrp.maps.source import BOOLEAN, NUMERIC
from sqlkrp.sql.names import quote
from sqlkrp.sql.options import Options
from sqlkrp.stages import Array, Category, Prepare

__all__ = ["BOOLEANS", "COUNT", "DATES", "NUMBERS", "TEXTS", "Examples", "made_up", "of_table"]

#: Rows in all.
COUNT = 20
#: What the inputs of made-up rows are.
NUMBERS, TEXTS, BOOLEANS, DATES = "number", "text", "boolean", "date"

# Of which these are the first without missing values.
_LOOKED_AT = 1000
_ROUNDINGS = 4
_FIRST_DAY = datetime(2020, 1, 1)
# Between these, of what a column varies by.
_SPREAD = 2.0
# dbt takes these texts in a seed for none, in any case and with spaces around them.
_NO_TEXT = ("", "null")
# And SQLMesh, which reads seeds by pandas, takes these for none.
_NO_TEXT_OF_PANDAS = {
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
    "N/A", "NA", "NaN", "None", "n/a", "nan",
}  # fmt: skip


@dataclass(frozen=True)
class Examples:
    """Rows, with the twin's numbers of each; of what is said in words, the words' places."""

    keys: tuple[int | str, ...]
    expected: Array
    rounding: Array
    """How far each number may be off by rounding alone, for each output."""
    size: Array
    """How large each output is."""
    key_type: str | None = None
    """The type of the key, where a table was seen."""
    inputs: Mapping[str, Sequence[Any]] | None = None
    """The columns of made-up rows; None where the rows are the table's."""
    sorts: Mapping[str, str] | None = None
    """What each of these columns is."""

    def first(self, count: int) -> Examples:
        """Some of the rows."""
        inputs = self.inputs
        if inputs is not None:
            inputs = {name: values[:count] for name, values in inputs.items()}
        return replace(self, keys=self.keys[:count], expected=self.expected[:count], inputs=inputs)


def made_up(fitted: Fitted, key: str) -> Examples:
    """Rows that no table has, the same for the same map, around what it was fitted to."""
    prepare = fitted.program.prepare
    if key in prepare.reads:
        raise ParameterError(
            f"key={key!r} is a column that the {fitted.kind} reads: name one that tells rows apart "
            f"and is no input, or draw the map without it (exclude)"
        )
    # The digest, so that the same map has the same rows: they decide nothing.
    rng = np.random.default_rng(int(fitted.digest_[:16], 16))
    made: dict[str, list[Category]] = {name: [] for name in prepare.reads}
    for one in prepare.categories:
        made[one.column].append(one)
    values, sorts = {}, {}
    for name in prepare.reads:
        sorts[name] = _sort(name, prepare, made[name])
        values[name] = _VALUES[sorts[name]](name, prepare, made[name], rng)
    import pandas as pd

    frame = pd.DataFrame({name: pd.Series(column) for name, column in values.items()})
    keys = tuple(range(1, COUNT + 1))
    return _said(fitted, fitted.inputs(frame), keys, inputs=values, sorts=sorts)


def of_table(fitted: Fitted, source: TableSource, key: str) -> Examples:
    """The rows of a table whose keys come first."""
    session = source.session
    dialect, options = session.dialect, Options()
    # Before inputs that are made of columns stand among these.
    match_columns([key], source.kinds, where=source.data.name)
    query, data = query_of(session, fitted, source, options, run_now=True)
    if data.kinds[key] == BOOLEAN:
        raise ColumnError(f"key {key!r} of {data.name} is a truth value, and tells no rows apart")
    named, is_number = quote(key, dialect), data.kinds[key] in NUMERIC
    told = named if is_number else dialect.cast.format(value=named, type=dialect.text_type)
    chosen = ", ".join([told, *doubles(query, dialect)])
    _require_keys(session, query.relation, key, named, data.name)
    rows = session.rows(
        f"SELECT {chosen} FROM {query.relation} AS every ORDER BY {named} ASC LIMIT {_LOOKED_AT:d}",
        "reading the first rows",
    )
    keys = tuple(_key(row[0], key, is_number=is_number) for row in rows)
    if len(set(keys)) < len(keys):
        raise ColumnError(f"key {key!r} is not unique in {data.name}: name one that is")
    inputs = np.array([row[1:] for row in rows], dtype="float64")
    inputs = inputs.reshape(len(rows), len(query.program.prepare.columns))
    # A seed has no word for what is missing.
    told_apart = [isinstance(one, int) or not _is_none_in_seeds(one) for one in keys]
    finite = np.isfinite(fitted.twin.coded().apply(inputs)).all(axis=1)
    there = np.flatnonzero(finite & np.array(told_apart, bool))[:COUNT]
    if not len(there):
        raise ParameterError(f"{data.name} has no rows to compare: name no table")
    found = tuple(keys[place] for place in there.tolist())
    return _said(fitted, inputs[there], found, key_type=data.types[key])


def _require_keys(session: Session, relation: str, key: str, named: str, where: str) -> None:
    """Raise ColumnError if a row has no key: the project's tests say that each has one."""
    ((count,),) = session.rows(
        f"SELECT COUNT(*) FROM {relation} AS every WHERE {named} IS NULL", "counting keys"
    )
    if count:
        rows = counted(count, "row")
        raise ColumnError(
            f"key {key!r} of {where} is NULL in {rows}: name a key that each row has, or leave "
            "such rows out in a view"
        )


def _key(value: Any, key: str, *, is_number: bool) -> int | str:
    found = whole(value) if is_number else value
    if not isinstance(found, (int, str)):
        raise ColumnError(
            f"key {key!r} has {value}, a number that is not whole: name a key of whole numbers, "
            "texts or dates"
        )
    return found


def _is_none_in_seeds(text: str) -> bool:
    """Whether a project takes a text in a seed for none."""
    return text.strip().lower() in _NO_TEXT or text in _NO_TEXT_OF_PANDAS


def _said(fitted: Fitted, X: Array, keys: tuple[int | str, ...], **more: Any) -> Examples:
    """What the twin says of inputs."""
    twin = fitted.twin.coded()
    expected = twin.apply(X).astype("float64")
    eps = _ROUNDINGS * float(np.finfo(twin.prepare.dtype).eps)
    rounding = twin.rounding(X, eps).max(axis=0, initial=0.0)
    largest = np.abs(np.where(np.isfinite(expected), expected, 0.0)).max(axis=0, initial=0.0)
    # What happens to be tiny in these rows is measured against the others.
    size = np.maximum(largest, np.sqrt(np.mean(largest**2)) if largest.size else 0.0)
    return Examples(keys, expected, rounding, size, **more)


# --- what the inputs of made-up rows are ----------------------------------------------------------


def _sort(name: str, prepare: Prepare, made: Sequence[Category]) -> str:
    if any(one.days for one in made):
        return DATES
    if any(isinstance(one.value, str) for one in made):
        return TEXTS
    if name in prepare.booleans or any(isinstance(one.value, bool) for one in made):
        return BOOLEANS
    return NUMBERS


def _numbers(name: str, prepare: Prepare, made: Sequence[Category], rng: Any) -> list[float]:
    """Numbers around the middle of a column, of those that it is known to hold some."""
    if any(one.bit is not None for one in made):
        top = max(one.bit or 0 for one in made)
        return [float(one) for one in rng.integers(0, 2 ** min(top + 1, 30), COUNT)]
    known = [float(one.value) for one in made if one.value is not None]
    if known:
        return [known[place % len(known)] if place % 4 else 0.5 for place in range(COUNT)]
    again = next((one.name for one in made if one.is_column), name)
    place = prepare.columns.index(name if name in prepare.columns else again)
    scale = abs(float(prepare.scale[place]))
    spread = _SPREAD / scale if scale else 0.0
    middle = float(prepare.shift[place])
    # Multiples of an eighth: with as few digits as the column's own scale leaves.
    return [middle + spread * one / 16 for one in rng.integers(-16, 17, COUNT).tolist()]


def _texts(name: str, prepare: Prepare, made: Sequence[Category], rng: Any) -> list[str]:
    known = [str(one.value) for one in made if isinstance(one.value, str)]
    known = [one for one in known if not _is_none_in_seeds(one)] + ["another"]
    return [known[place % len(known)] for place in range(COUNT)]


def _booleans(name: str, prepare: Prepare, made: Sequence[Category], rng: Any) -> list[bool]:
    return [bool(one) for one in rng.integers(0, 2, COUNT)]


def _dates(name: str, prepare: Prepare, made: Sequence[Category], rng: Any) -> list[str]:
    days = rng.integers(0, 2000, COUNT).tolist()
    return [f"{_FIRST_DAY + timedelta(days=day):%Y-%m-%d}" for day in days]


_VALUES = {NUMBERS: _numbers, TEXTS: _texts, BOOLEANS: _booleans, DATES: _dates}
