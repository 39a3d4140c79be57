"""A source with what is made of its columns, such as categories as 0 and 1, beside these."""

from __future__ import annotations

from collections.abc import Collection

from sqlkrp.sql.chain import free_name
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import label, listed, quote, soft_cast
from sqlkrp.stages import Category, Prepare

__all__ = ["encoded_relation"]


def encoded_relation(
    relation: str, prepare: Prepare, dialect: Dialect, booleans: Collection[str] | None = None
) -> str:
    """The relation that a first stage reads: the source, or a SELECT of it and its categories.

    ``booleans`` are the columns of truth values, where the source's types are known.
    """
    if not prepare.categories:
        return relation
    alias = free_name("s", [*prepare.reads, *prepare.columns])
    items = []
    for one in prepare.categories:
        truths = None if booleans is None else one.column in booleans
        items.append(f"{_value(one, truths, dialect)} AS {quote(one.name, dialect)}")
    return f"(\nSELECT\n{listed([f'{alias}.*', *items])}\nFROM {relation} {alias}\n)"


def _value(one: Category, truths: bool | None, dialect: Dialect) -> str:
    value = quote(one.column, dialect)
    if one.is_column:
        return value
    tests = [f"{value} IS NULL"] if one.missing else []
    if one.bit is not None:
        tests.append(f"{dialect.bit.format(value=value, place=one.bit)} = 1")
    elif isinstance(one.value, str):
        tests.append(dialect.same_text.format(value=value, text=label(one.value, dialect)))
    elif one.value is not None:
        tests.append(_same_number(value, one.value, truths, dialect))
    return f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END"


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
