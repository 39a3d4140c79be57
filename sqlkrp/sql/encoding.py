"""A source with what is made of its columns, such as categories as 0 and 1, beside these."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlkrp.sql.chain import free_name
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import label, listed, number, quote, soft_cast
from sqlkrp.stages import DAY, Category, Prepare

__all__ = ["encoded_relation", "made_of_columns"]


def encoded_relation(
    relation: str,
    prepare: Prepare,
    dialect: Dialect,
    booleans: Collection[str] | None = None,
    texts: Collection[str] = (),
) -> str:
    """The relation that a first stage reads: the source, or a SELECT of it and its categories.

    Where the source's types are known, ``booleans`` are the columns of truth values, and ``texts``
    those of texts.
    """
    if not prepare.categories:
        return relation
    alias = free_name("s", [*prepare.reads, *prepare.columns])
    items = [f"{alias}.*", *made_of_columns(prepare.categories, dialect, booleans, texts)]
    return f"(\nSELECT\n{listed(items)}\nFROM {relation} {alias}\n)"


def made_of_columns(
    categories: Sequence[Category],
    dialect: Dialect,
    booleans: Collection[str] | None,
    texts: Collection[str],
) -> list[str]:
    """Items of a SELECT: what is made of columns, each with its name."""
    items = []
    for one in categories:
        truths = None if booleans is None else one.column in booleans
        value = _value(one, truths, one.column in texts, dialect)
        items.append(f"{value} AS {quote(one.name, dialect)}")
    return items


def _value(one: Category, truths: bool | None, is_text: bool, dialect: Dialect) -> str:
    value = quote(one.column, dialect)
    if one.is_column:
        return value
    if one.days:
        return _days(value, is_text, dialect)
    tests = [f"{value} IS NULL"] if one.missing else []
    if one.bit is not None:
        tests.append(f"{dialect.bit.format(value=value, place=one.bit)} = 1")
    elif isinstance(one.value, str):
        tests.append(dialect.same_text.format(value=value, text=label(one.value, dialect)))
    elif one.value is not None:
        tests.append(_same_number(value, one.value, truths, dialect))
    return f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END"


def _days(value: str, is_text: bool, dialect: Dialect) -> str:
    how = dialect.text_microseconds if is_text else None
    microseconds = (how or dialect.microseconds).format(value=value)
    double = dialect.cast.format(value=microseconds, type=dialect.float_types["float64"])
    return f"{double} / {number(DAY, 'float64', dialect)}"


def _same_number(
    value: str, wanted: bool | int | float, truths: bool | None, dialect: Dialect
) -> str:
    """The test that a column of truth values, or one of numbers, holds this one."""
    # Not every engine compares a truth value with a number.
    if truths and not isinstance(wanted, bool):
        value = soft_cast(value, "float64", dialect, boolean=True)
    elif truths is False and isinstance(wanted, bool):
        wanted = int(wanted)
    return f"{value} = {label(wanted, dialect)}"
