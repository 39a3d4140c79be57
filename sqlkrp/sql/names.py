"""Identifiers, texts, numbers and long sums as SQL.

Only these functions put foreign text into a statement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.sql.facts import Dialect
from sqlkrp.stages import is_unicode

__all__ = [
    "TableName",
    "balanced",
    "firm_cast",
    "label",
    "listed",
    "number",
    "quote",
    "quote_table",
    "require_distinct",
    "soft_cast",
    "table_name",
    "text",
]

TableName = str | tuple[str, ...]

_FOLDS: dict[str, Callable[[str], str]] = {"": str, "lower": str.lower, "upper": str.upper}
_QUERY = re.compile(r"[\s(]*(SELECT|WITH|FROM|VALUES|TABLE)\s", re.IGNORECASE)
# In double quotes, or as in Spark and MySQL in backticks.
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^\W\d][\w$]*))\s*(\.|$)')


def quote(name: str, dialect: Dialect) -> str:
    """A quoted identifier: exactly this name, whatever it holds."""
    if not name or "\0" in name or not is_unicode(name):
        raise ColumnError(
            f"{name!r} cannot be a name in SQL: it is empty or holds a character that is no text"
        )
    for count, limit, unit in (
        (len(name.encode()), dialect.max_identifier_bytes, "bytes"),
        (len(name), dialect.max_identifier_characters, "characters"),
    ):
        if limit is not None and count > limit:
            raise ColumnError(
                f"{name!r} has {count} {unit}, and {dialect.name} cuts names after {limit}: "
                "use a shorter one"
            )
    if dialect.not_in_names and (found := re.search(dialect.not_in_names, name)):
        raise ColumnError(
            f"{name!r} holds {found[0]!r}, which {dialect.name} reads in no name: rename it"
        )
    return dialect.quote + _escaped(name, dialect.name_escapes) + dialect.quote


def table_name(table: TableName, dialect: Dialect | None = None) -> tuple[str, ...]:
    """The exact parts of a table's name: given as such, or written as SQL would write it.

    Bare parts are folded as the dialect folds them.

    >>> table_name('main."my table"'), table_name(("main", "a.b"))
    (('main', 'my table'), ('main', 'a.b'))
    """
    fold = _FOLDS[dialect.folds] if dialect else str
    if isinstance(table, tuple):
        if not table or not all(isinstance(part, str) for part in table):
            raise ParameterError(f"{table!r} is no table name: give a tuple of texts")
        return table
    if not isinstance(table, str):
        raise ParameterError(
            f"a {type(table).__name__} is no table name: give a text, or a tuple of exact parts"
        )
    parts, place = [], 0
    while True:
        match = _PART.match(table, place)
        if not match and _QUERY.match(table):
            raise ParameterError(
                f"{table!r} is no table name but a query: make a view of it, and name that"
            )
        if not match:
            raise ParameterError(
                f"{table!r} is no table name: write it as in SQL (schema.table, with double quotes "
                "around odd names), or in Python as a tuple of exact parts"
            )
        quoted, ticked, bare, separator = match.groups()
        if bare is not None:
            parts.append(fold(bare))
        else:
            parts.append(ticked.replace("``", "`") if quoted is None else quoted.replace('""', '"'))
        place = match.end()
        if not separator:
            return tuple(parts)


def quote_table(table: TableName, dialect: Dialect) -> str:
    """A table's name with every part quoted."""
    return ".".join(quote(part, dialect) for part in table_name(table, dialect))


def text(value: str, dialect: Dialect) -> str:
    """A text literal."""
    if "\0" in value or not is_unicode(value):
        raise ParameterError(f"{value!r} holds a character that SQL text cannot hold")
    if dialect.backslash_text and "\\" in value:
        return dialect.backslash_text + _escaped(value, {"\\": "\\\\", "'": "''"}) + "'"
    return "'" + _escaped(value, dialect.text_escapes) + "'"


def _escaped(value: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in value)


def number(value: float, dtype: str, dialect: Dialect) -> str:
    """A number literal of exactly this value and type."""
    if not math.isfinite(value):
        raise ParameterError(f"{value!r} cannot be a number in SQL: only finite ones can")
    # repr round-trips; the exponent makes it a double where a bare 0.1 would be a DECIMAL.
    digits = repr(float(value))
    written = digits if "e" in digits else digits + "e0"
    # In parentheses a minus can never meet another one, which would start a comment.
    signed = f"({written})" if written.startswith("-") else written
    return dialect.literals[dtype].format(number=signed, type=dialect.float_types[dtype])


def label(value: str | bool | int | float, dialect: Dialect) -> str:
    """A literal of the type that a label has."""
    if isinstance(value, str):
        return text(value, dialect)
    if isinstance(value, bool):
        return dialect.truths[value]
    if isinstance(value, float):
        return number(value, "float64", dialect)
    return f"({value})" if value < 0 else str(value)


def soft_cast(
    value: str, dtype: str, dialect: Dialect, *, boolean: bool = False, single: bool = False
) -> str:
    """A cast to a number type that, where the engine can, gives NULL for what does not fit."""
    return _number_cast(dialect.soft_cast, value, dtype, dialect, boolean, single)


def firm_cast(
    value: str, dtype: str, dialect: Dialect, *, boolean: bool = False, single: bool = False
) -> str:
    """A cast to a number type that fails loudly, for values known to fit."""
    return _number_cast(dialect.cast, value, dtype, dialect, boolean, single)


def _number_cast(
    how: str, value: str, dtype: str, dialect: Dialect, boolean: bool, single: bool
) -> str:
    """A cast of a truth value, of a number that single precision holds, or of any number."""
    if boolean:
        return dialect.boolean_cast.format(value=value, type=dialect.float_types[dtype])
    if dtype in dialect.cast_by_way_of and not single:
        value = how.format(value=value, type=dialect.cast_by_way_of[dtype])
    return how.format(value=value, type=dialect.float_types[dtype])


def require_distinct(names: Iterable[str], what: str, dialect: Dialect) -> None:
    """Raise ColumnError if two names are one name in this dialect."""
    seen: dict[str, str] = {}
    for name in names:
        key = _folded(name) if dialect.ignores_case else name
        if key in seen:
            other = seen[key]
            how = "is there twice" if other == name else f"and {other!r} differ only in case"
            raise ColumnError(
                f"{what} {name!r} {how}, which {dialect.name} cannot tell apart: "
                "rename one, or leave one out"
            )
        seen[key] = name


def _folded(name: str) -> str:
    # Engines fold ASCII only, as far as measured; folding more would refuse names that work.
    return "".join(c.lower() if c.isascii() else c for c in name)


def listed(items: Sequence[str], indent: str = "  ") -> str:
    """Items of a SELECT list, one a line."""
    return ",\n".join(indent + item for item in items)


# Terms side by side before a parenthesis opens: 10 keeps 10^n terms n parentheses deep.
_BLOCK = 10


def balanced(terms: Sequence[str], operator: str) -> str:
    """The terms joined by an operator, in blocks of blocks: depth grows as the logarithm."""
    while len(terms) > _BLOCK:
        blocks = [terms[i : i + _BLOCK] for i in range(0, len(terms), _BLOCK)]
        terms = [block[0] if len(block) == 1 else f"({operator.join(block)})" for block in blocks]
    return operator.join(terms)
