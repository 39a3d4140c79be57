"""Load the queries of ``sql_templates/`` and bind their relations and values.

A template is a plain query in DuckDB's dialect. Binding works on its tree: a relation becomes
another one under the same alias, a ``$name`` becomes SQL that was written by ``sqlkrp.sql.names``
and the dialect's facts. What is bound must be exactly what the template names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from sqlglot import Dialect as SqlglotDialect
from sqlglot import ErrorLevel, exp, parse_one

from sqlkrp.sql.facts import Dialect

__all__ = ["bind", "relations_of", "template_text"]


def template_text(name: str) -> str:
    """The text of a template, from the installed package or from the folder beside it."""
    installed = files("sqlkrp").joinpath("sql_templates", f"{name}.sql")
    if installed.is_file():
        return installed.read_text(encoding="utf-8")
    beside = Path(__file__).parents[2] / "sql_templates" / f"{name}.sql"
    return beside.read_text(encoding="utf-8")


@cache
def relations_of(name: str) -> Counter[str]:
    """The relations that a template names, and how often it reads each: to be read only."""
    return Counter(table.name for table in _parsed(name).find_all(exp.Table))


@cache
def _values_of(name: str) -> set[str]:
    return {str(place.this) for place in _parsed(name).find_all(exp.Placeholder)}


@cache
def _parsed(name: str) -> exp.Expr:
    return parse_one(template_text(name), read="duckdb")


def bind(
    name: str,
    dialect: Dialect,
    relations: Mapping[str, str],
    values: Mapping[str, str | Sequence[str]] | None = None,
) -> str:
    """The text of a template with its relations and values bound.

    A value that is a list stands for several items of a SELECT list, or for none.
    """
    values = values or {}
    _require_same(name, "relations", set(relations_of(name)), set(relations))
    _require_same(name, "values", _values_of(name), set(values))
    nothing = frozenset(role for role, value in values.items() if not (value or value == ""))
    text, places = _printed(name, dialect.sqlglot, nothing)
    bound = {**relations, **{f"${role}": _items(value) for role, value in values.items()}}
    # Pretty printing would indent the lines of a name that holds a line break, so what is bound
    # goes in after it; in one pass, so that bound text is never searched.
    return _MARK.sub(lambda mark: bound[places[int(mark[1])]], text)


def _items(value: str | Sequence[str]) -> str:
    # One verbatim item holds them all: a tree of ten thousand columns would be slow.
    return value if isinstance(value, str) else ",\n  ".join(value)


@cache
def _printed(name: str, sqlglot: str, nothing: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """A template in the words of a dialect, marks where something is bound, and what that is.

    It does not depend on what is bound, but for values that are lists of nothing: so sqlglot
    prints it once, and not in every statement.
    """
    tree = _parsed(name).copy()
    places: list[str] = []
    for table in list(tree.find_all(exp.Table)):
        relation = exp.Table(this=_mark(table.name, places))
        table.replace(exp.alias_(relation, table.alias or table.name, table=True))
    for place in list(tree.find_all(exp.Placeholder)):
        role = str(place.this)
        if role in nothing:
            place.pop()
        else:
            place.replace(_mark(f"${role}", places))
    _leave_as_it_stands(tree, sqlglot)
    text = tree.sql(sqlglot, pretty=True, comments=False, unsupported_level=ErrorLevel.RAISE)
    return text, tuple(places)


_MARK = re.compile(r"sqlkrp_bound_(\d+)_")


def _mark(what: str, places: list[str]) -> exp.Var:
    places.append(what)
    return exp.var(f"sqlkrp_bound_{len(places) - 1}_")


def _leave_as_it_stands(tree: exp.Expr, sqlglot: str) -> None:
    """Keep sqlglot from writing out what differs between dialects, but not for our values."""
    target = SqlglotDialect.get_or_raise(sqlglot)
    # What templates order by is never NULL; where the engine would put NULLs need not be said.
    for ordered in tree.find_all(exp.Ordered):
        ordered.set("nulls_first", target.NULL_ORDERING == "nulls_are_small")
    # What they divide are floats, and not by zero.
    for division in tree.find_all(exp.Div):
        division.set("typed", target.TYPED_DIVISION)
        division.set("safe", target.SAFE_DIVISION)


def _require_same(name: str, what: str, found: set[str], given: set[str]) -> None:
    if found != given:
        raise AssertionError(f"template {name} names {what} {found}, and {given} were bound")
