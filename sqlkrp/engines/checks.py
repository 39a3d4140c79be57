"""What is checked before a statement runs, so that nothing is half written: types and values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sqlkrp.engines.inputs import Input
from sqlkrp.engines.session import Session
from sqlkrp.errors import ColumnError, MissingValueError, RangeWarning
from sqlkrp.maps.advice import warn_user
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.source import DATE, NUMERIC, TEXT
from sqlkrp.spelling import near_matches
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import LongInput
from sqlkrp.sql.names import balanced, quote
from sqlkrp.stages import Category, Prepare, Program, missing_message

__all__ = ["check_columns", "check_values"]


def check_columns(prepare: Prepare, data: Input, keep: Sequence[str], dialect: Dialect) -> None:
    """Raise ColumnError unless the source has the map's columns, as numbers, and those to keep."""
    if data.long is not None:
        match_columns(keep, data.key_types or {}, where="the table of rows")
        _require_numbers([data.long.value], data)
    else:
        match_columns([*prepare.reads, *keep], data.types, where=data.name)
        made = {one.name for one in prepare.categories}
        numbers = [name for name in prepare.columns if name not in made]
        numbers += [one.column for one in prepare.categories if one.is_column]
        _require_numbers(numbers, data)
        _require_categories(prepare, data, dialect)


def check_values(session: Session, program: Program, data: Input) -> int | None:
    """Read the source once for what the statement must not meet; how many rows it has, if seen."""
    prepare = program.prepare
    if data.long is not None:
        _require_single_entries(session, data.long, data)
        _require_known_features(session, prepare, data.long, data)
    if prepare.nulls != "error" and not session.dialect.overflow_is_error:
        return None
    rows, complete, largest = _look(session, prepare, data)
    _warn_of_range(session, program, largest)
    if prepare.nulls == "error" and complete < rows:
        count = _missing if data.long is None else _missing_entries
        missing = count(session, prepare, data)
        if any(missing.values()):
            raise MissingValueError(missing_message(missing))
    return rows


def _require_categories(prepare: Prepare, data: Input, dialect: Dialect) -> None:
    for one in prepare.categories:
        if one.name in data.types:
            raise ColumnError(
                f"{data.name} has a column {one.name!r}, as the model calls the category "
                f"{one.told!r}: rename it in a view"
            )
        if one.days:
            _require_date(one, data, dialect)
        is_number = data.kinds[one.column] in NUMERIC
        if one.value is not None and isinstance(one.value, str) == is_number:
            wanted = "texts" if is_number else "numbers"
            raise ColumnError(
                f"column {one.column!r} of {data.name} is of type {data.types[one.column]}, and "
                f"the model was trained on categories that are {wanted}: cast it in a view"
            )


def _require_date(one: Category, data: Input, dialect: Dialect) -> None:
    sort = data.texts_and_dates.get(one.column)
    if sort != DATE and (sort != TEXT or dialect.text_microseconds is None):
        raise ColumnError(
            f"column {one.column!r} of {data.name} is of type {data.types[one.column]}, and the "
            "map was drawn for a date or time there: cast it in a view"
        )


def _require_numbers(columns: Sequence[str], data: Input) -> None:
    for name in columns:
        if data.kinds[name] not in NUMERIC:
            raise ColumnError(
                f"column {name!r} of {data.name} is of type {data.types[name]}, and the map "
                "was drawn for a number there: cast it in a view"
            )


def _look(session: Session, prepare: Prepare, data: Input) -> tuple[int, int, float | None]:
    """The rows, those without a missing value, and where it matters the largest absolute value."""
    columns = prepare.columns if data.long is None else (data.long.value,)
    pairs = [data.finite_value(session.dialect, name, prepare.dtype) for name in columns]
    if session.dialect.overflow_is_error:
        size = _size(session.dialect, pairs, filled=prepare.fills)
        sized = f"SELECT {size} AS size FROM {data.relation} AS looked_at"
        relation = f"(\n{sized}\n{session.dialect.fence}\n)"
        test = session.dialect.finite("size", prepare.dtype)
        calls = [f"COUNT(CASE WHEN {test} THEN 1 END)", f"MAX(CASE WHEN {test} THEN size END)"]
    else:
        # One count in all is quick; where it finds something, each column is counted.
        relation, tests = data.relation, balanced([test for _, test in pairs], " AND ")
        calls = [f"COUNT(CASE WHEN {tests} THEN 1 END)"]
    ((total, whole, *largest),) = session.rows(
        f"SELECT COUNT(*), {', '.join(calls)} FROM {relation} AS looked_at",
        "counting missing values",
    )
    return total, whole, next(iter(largest), None)


def _size(dialect: Dialect, pairs: Sequence[tuple[str, str]], *, filled: bool) -> str:
    """The largest absolute value of a row; of what is there of it, where the rest is filled.

    Else it is NULL, or as NaN and infinities no number, in a row that is not whole: these are the
    largest where overflow is an error. One test of it takes half the time of one of each value.
    """
    sizes = [f"ABS({value})" for value, _ in pairs]
    if filled:
        tests = zip(sizes, pairs, strict=True)
        sizes = [f"CASE WHEN {test} THEN {size} ELSE 0 END" for size, (_, test) in tests]
    largest = dialect.greatest.format(values=", ".join(sizes)) if len(sizes) > 1 else sizes[0]
    if filled:
        return largest
    there = balanced([f"{value} IS NOT NULL" for value, _ in pairs], " AND ")
    return f"CASE WHEN {there} THEN {largest} END"


def _warn_of_range(session: Session, program: Program, largest: float | None) -> None:
    """Warn of products that would leave the range of floats, where that ends the statement."""
    prepare = program.prepare
    if not largest or prepare.unit_length or np.any(prepare.shift) or np.any(prepare.scale != 1):
        return  # scaled inputs are of size 1
    limits = np.finfo(prepare.dtype)
    # If every number may be off by all of itself, features may be off by no less than the terms
    # that are added up to them. A sum whose terms cancel leaves a rounding error of these.
    sizes = np.array([[largest], [largest * float(limits.eps)], [1.0]])
    inputs = np.repeat(sizes, prepare.n_inputs, axis=1)
    errors = program.body.rounding(inputs, 1.0)
    high, low, ordinary = np.where(np.isnan(errors), np.inf, errors).max(axis=1).tolist()
    if not ordinary:
        return  # every sum is of nothing
    if high > float(limits.max) or low < float(limits.smallest_subnormal):
        how = "large" if high > float(limits.max) else "small"
        warn_user(
            f"values up to {largest:.3g} may give products too {how} for {prepare.dtype}, which "
            f"{session.dialect.name} refuses: draw the map with scaling='standard' or 'unit'",
            RangeWarning,
        )


def _missing(session: Session, prepare: Prepare, data: Input) -> dict[str, int]:
    tests = [data.finite_value(session.dialect, name, prepare.dtype)[1] for name in prepare.columns]
    limit = session.dialect.limits.select_columns or len(tests) + 1
    missing: list[int] = []
    for first in range(0, len(tests), limit - 1):
        part = tests[first : first + limit - 1]
        counts = ", ".join(f"COUNT(CASE WHEN {test} THEN 1 END)" for test in part)
        ((total, *whole),) = session.rows(
            f"SELECT COUNT(*), {counts} FROM {data.relation} AS looked_at",
            "counting missing values",
        )
        missing += [int(total - count) for count in whole]
    return dict(zip(prepare.told, missing, strict=True))


def _missing_entries(session: Session, prepare: Prepare, data: Input) -> dict[str, int]:
    assert data.long is not None
    dialect = session.dialect
    _, finite = data.finite_value(dialect, data.long.value, prepare.dtype)
    name = dialect.cast.format(value=quote(data.long.feature, dialect), type=dialect.text_type)
    counted = dict(
        session.rows(
            f"SELECT {name}, SUM(CASE WHEN {finite} THEN 0 ELSE 1 END) "
            f"FROM {data.relation} AS looked_at GROUP BY {name}",
            "counting missing values",
        )
    )
    return {name: int(counted.get(name, 0)) for name in prepare.columns}


def _require_single_entries(session: Session, long: LongInput, data: Input) -> None:
    row, feature = quote(long.row, session.dialect), quote(long.feature, session.dialect)
    twice = session.rows(
        f"SELECT {row}, {feature} FROM {data.relation} AS looked_at "
        f"WHERE {row} IS NOT NULL GROUP BY {row}, {feature} "
        "HAVING COUNT(*) > 1 LIMIT 1",
        "looking for entries given twice",
    )
    if twice:
        raise ColumnError(
            f"{data.name} has two entries for row {twice[0][0]!r}, feature {twice[0][1]!r}: "
            "add them up in a view, so that each (row, feature) is there once"
        )


def _require_known_features(
    session: Session, prepare: Prepare, long: LongInput, data: Input
) -> None:
    dialect = session.dialect
    name = dialect.cast.format(value=quote(long.feature, dialect), type=dialect.text_type)
    rows = session.rows(
        f"SELECT DISTINCT {name} FROM {data.relation} AS looked_at WHERE {name} IS NOT NULL",
        "listing the features",
    )
    names = [row[0] for row in rows]
    if names and not set(names) & set(prepare.columns):
        near = near_matches(prepare.columns[0], names)
        raise ColumnError(
            f"no feature of {data.name} is a column of the map; {prepare.columns[0]!r} is one{near}"
        )
