"""The table that a map reads in a project: a source that is declared, or a reference as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlkrp.errors import ParameterError
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.jinja import is_reference
from sqlkrp.sql.names import quote_table, table_name

__all__ = ["Relation", "relation_of", "require_plain", "template_text"]

# What a template would read, and what dbt does not double inside the quotes that it writes.
_NOT_PLAIN = ("{{", "{%", "{#", '"', "`", "[", "]", "\\")


@dataclass(frozen=True)
class Relation:
    """The table that is read."""

    told: str
    """As the user named it."""
    template: str
    """As dbt's templates name it."""
    sql: str = ""
    """As SQL names it; empty of a reference, which only dbt knows."""
    typed: tuple[str, ...] = ()
    """The parts of its name, as they were written; none of a reference."""
    parts: tuple[str, ...] = ()
    """The same as the dialect folds them."""


def relation_of(source: str, dialect: Dialect) -> Relation:
    """The table that is named as SQL does, with its schema, or as dbt does."""
    if is_reference(source):
        return Relation(source.strip(), source.strip())
    typed, parts = table_name(source), table_name(source, dialect)
    if len(typed) not in (2, 3):
        raise ParameterError(
            f"source={source!r} has no schema, or too many parts: name it as schema.table, "
            "database.schema.table, or as dbt does: {{ ref('model') }}"
        )
    for part in typed:
        require_plain("source", part)
    names = ", ".join(map(template_text, typed[-2:]))
    template = f"{{{{ source({names}) }}}}"
    return Relation(".".join(typed), template, quote_table(parts, dialect), typed, parts)


def require_plain(what: str, name: str) -> None:
    """Raise ParameterError unless a project's own files and statements can hold a name."""
    mark = next((mark for mark in _NOT_PLAIN if mark in name), None)
    if mark is not None or not name.isprintable():
        held = repr(mark) if mark else "what cannot be printed"
        raise ParameterError(
            f"{what}={name!r} holds {held}, which dbt does not read or write as part of a name: "
            "rename it, or make a view that does"
        )


def template_text(value: str) -> str:
    """A text as Jinja, YAML and JSON have it."""
    return json.dumps(value, ensure_ascii=False)
