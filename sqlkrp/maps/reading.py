"""What becomes of each column of a source: read as it is, made into inputs, or left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.columns import choose_columns, match_columns
from sqlkrp.maps.source import DATE, TEXT, Source
from sqlkrp.sql.chain import free_name
from sqlkrp.stages import Category, Prepare, is_unicode

__all__ = ["MOST_CATEGORIES", "Reading", "read_columns", "what_becomes"]

#: Texts of a column that become inputs; of one that has more, none do.
MOST_CATEGORIES = 50


@dataclass(frozen=True)
class Reading:
    """The inputs of a map, what is made of columns among them, and why columns are left out."""

    source: Source
    """What is read, with what is made of its columns beside these."""
    columns: tuple[str, ...]
    """The inputs by name, in the order of their columns."""
    made: tuple[Category, ...]
    """Those that are made of columns."""
    left_out: dict[str, str]

    @property
    def told(self) -> tuple[str, ...]:
        """The inputs for people."""
        made = {one.name: one.told for one in self.made}
        return tuple(made.get(name, name) for name in self.columns)


def read_columns(
    source: Source,
    include: Sequence[str] | None,
    exclude: Sequence[str],
    keep: Sequence[str],
    *,
    categories: str | None = None,
    dates: str | None = None,
) -> Reading:
    """The columns of a source that a map reads, and what it reads of them.

    With ``categories="auto"`` a column of at most 50 texts becomes an input for each, which is 1 in
    the rows that hold it, and one for missing values if it has such; where that would be two
    inputs, it is the second alone. With ``dates="auto"`` a column of dates or times becomes the
    days from 1970-01-01 to each. Columns of numbers and truth values are read as they are.
    """
    _require_allowed(source, categories=categories, dates=dates)
    made: dict[str, list[Category]] = {}
    reasons: dict[str, str] = {}
    if categories or dates:
        wanted = _looked_at(source, include, exclude, keep)
        made, reasons = _made_of(source, wanted, bool(categories), bool(dates))
    columns, left_out = choose_columns(source, include, exclude, keep, made, reasons)
    chosen = [one for name in columns for one in made.get(name, ())]
    if chosen:
        source = source.encoded(chosen)
    inputs = (made_of for name in columns for made_of in _inputs(name, made))
    return Reading(source, tuple(inputs), tuple(chosen), left_out)


def what_becomes(
    prepare: Prepare, left_out: Mapping[str, str], label: str | None = None
) -> dict[str, str]:
    """Each column by name: number, boolean, days, 16 indicators, label, or left out and why."""
    indicators = Counter(one.column for one in prepare.categories if one.is_indicator)
    days = {one.column for one in prepare.categories if one.days}
    found = {}
    for name in prepare.reads:
        parts = ["days"] if name in days else []
        if name in indicators:
            parts.append(counted(indicators[name], "indicator"))
        if name in prepare.columns or not parts:
            parts.insert(0, "boolean" if name in prepare.booleans else "number")
        found[name] = ", ".join(parts)
    if label is not None:
        found[label] = "label"
    return found | {name: f"left out: {why}" for name, why in left_out.items()}


def _inputs(name: str, made: Mapping[str, Sequence[Category]]) -> list[str]:
    return [one.name for one in made[name]] if name in made else [name]


def _require_allowed(source: Source, **given: Any) -> None:
    for name, value in given.items():
        if value not in (None, "auto"):
            raise ParameterError(f"{name}={value!r} is not allowed: use 'auto' or None")
        if value and source.is_sparse:
            raise ParameterError(
                f"{name}='auto' is for a table with one column a feature, and this is (row, "
                f"feature, value) input, whose values are numbers: leave {name} out"
            )
        if value and not source.has_values:
            raise ParameterError(
                f"{name}='auto' needs data, and only column names were given: fit to a table or a "
                f"DataFrame, or leave {name} out"
            )


def _looked_at(
    source: Source, include: Sequence[str] | None, exclude: Sequence[str], keep: Sequence[str]
) -> dict[str, str]:
    """The columns of texts and of dates that may be read, and which they are."""
    match_columns(include or (), source.kinds)
    without = {*exclude, *keep, *(source.keys if include is None else ())}
    names = source.kinds if include is None else dict.fromkeys(include)
    sorts = source.texts_and_dates
    return {name: sorts[name] for name in names if name in sorts and name and name not in without}


def _made_of(
    source: Source, wanted: Mapping[str, str], categories: bool, dates: bool
) -> tuple[dict[str, list[Category]], dict[str, str]]:
    """What is made of columns, and why nothing is made of others."""
    texts = [name for name, sort in wanted.items() if sort == TEXT]
    days = [name for name, sort in wanted.items() if sort == DATE] if dates else []
    if dates and texts:
        days += source.dates_in(texts)
    texts = [name for name in texts if name not in days] if categories else []
    values = source.values(texts, MOST_CATEGORIES) if texts else {}
    made: dict[str, list[Category]] = {}
    reasons: dict[str, str] = {}
    for name in (one for one in wanted if one in days or one in texts):
        if name in days:
            made[name] = [Category("", name, None, days=True)]
            continue
        found, why = _indicators(name, values[name])
        if found:
            made[name] = found
        else:
            reasons[name] = why
    return _named(made, source), reasons


def _indicators(name: str, values: Sequence[str | None] | None) -> tuple[list[Category], str]:
    """An input for each value that a column holds, but for the first of two; or why there is none.

    A missing value is one of them, and the last.
    """
    if values is None:
        return [], f"more than {MOST_CATEGORIES} values"
    texts = sorted(one for one in values if one is not None)
    if any(not is_unicode(one) or "\0" in one for one in texts):
        return [], "texts with characters that SQL cannot hold"
    found = [Category("", name, one) for one in texts]
    if len(texts) < len(values):
        found.append(Category("", name, None, missing=True))
    if len(found) < 2:
        return [], "one value only" if texts else "no value"
    return found[1:] if len(found) == 2 else found, ""


def _named(made: Mapping[str, Sequence[Category]], source: Source) -> dict[str, list[Category]]:
    """With names that every engine takes, and no column has."""
    taken = [name for name in source.kinds if name.lower().startswith("sqlkrp_")]
    places = count()
    return {
        column: [
            one._replace(name=free_name(f"sqlkrp_{_what(one)}_{next(places)}", taken))
            for one in inputs
        ]
        for column, inputs in made.items()
    }


def _what(one: Category) -> str:
    return "days" if one.days else "category"
