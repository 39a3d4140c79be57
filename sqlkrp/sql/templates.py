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


def relations_of(name: str) -> Counter[str]:
    """The relations that a template names, and how often it reads each."""
    return Counter(table.name for table in _parsed(name).find_all(exp.Table))


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
    tree = _parsed(name).copy()
    bound: list[str] = []
    _bind_relations(tree, name, relations, bound)
    _bind_values(tree, name, values or {}, bound)
    _leave_as_it_stands(tree, dialect)
    text = tree.sql(
        dialect.sqlglot, pretty=True, comments=False, unsupported_level=ErrorLevel.RAISE
    )
    # Pretty printing would indent the lines of a name that holds a line break, so what is bound
    # goes in after it; in one pass, so that bound text is never searched.
    return _MARK.sub(lambda mark: bound[int(mark[1])], text)


_MARK = re.compile(r"sqlkrp_bound_(\d+)_")


def _mark(sql: str, bound: list[str]) -> exp.Var:
    bound.append(sql)
    return exp.var(f"sqlkrp_bound_{len(bound) - 1}_")


def _bind_relations(
    tree: exp.Expr, name: str, relations: Mapping[str, str], bound: list[str]
) -> None:
    tables = list(tree.find_all(exp.Table))
    _require_same(name, "relations", {table.name for table in tables}, set(relations))
    for table in tables:
        alias = table.alias or table.name
        relation = exp.Table(this=_mark(relations[table.name], bound))
        table.replace(exp.alias_(relation, alias, table=True))


def _bind_values(
    tree: exp.Expr, name: str, values: Mapping[str, str | Sequence[str]], bound: list[str]
) -> None:
    places = list(tree.find_all(exp.Placeholder))
    _require_same(name, "values", {str(place.this) for place in places}, set(values))
    for place in places:
        value = values[str(place.this)]
        if isinstance(value, str):
            place.replace(_mark(value, bound))
        elif value:
            # One verbatim item holds them all: a tree of ten thousand columns would be slow.
            place.replace(_mark(",\n  ".join(value), bound))
        else:
            place.pop()


def _leave_as_it_stands(tree: exp.Expr, dialect: Dialect) -> None:
    """Keep sqlglot from writing out what differs between dialects, but not for our values."""
    target = SqlglotDialect.get_or_raise(dialect.sqlglot)
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
