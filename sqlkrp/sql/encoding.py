"""A source with what is made of its columns, such as categories as 0 and 1, beside these."""

from __future__ import annotations

from sqlkrp.sql.chain import free_name
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import label, listed, quote
from sqlkrp.stages import Category, Prepare

__all__ = ["encoded_relation"]


def encoded_relation(relation: str, prepare: Prepare, dialect: Dialect) -> str:
    """The relation that a first stage reads: the source, or a SELECT of it and its categories."""
    if not prepare.categories:
        return relation
    alias = free_name("s", [*prepare.reads, *prepare.columns])
    items = [f"{_value(one, dialect)} AS {quote(one.name, dialect)}" for one in prepare.categories]
    return f"(\nSELECT\n{listed([f'{alias}.*', *items])}\nFROM {relation} {alias}\n)"


def _value(one: Category, dialect: Dialect) -> str:
    value = quote(one.column, dialect)
    if one.is_column:
        return value
    tests = [f"{value} IS NULL"] if one.missing else []
    if one.bit is not None:
        tests.append(f"{dialect.bit.format(value=value, place=one.bit)} = 1")
    elif isinstance(one.value, str):
        tests.append(dialect.same_text.format(value=value, text=label(one.value, dialect)))
    elif one.value is not None:
        tests.append(f"{value} = {label(one.value, dialect)}")
    return f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END"
