"""One SQL statement for a map: which form it takes, its text, and what heads it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlkrp.errors import LimitError, ParameterError
from sqlkrp.sql.dialects import Dialect
from sqlkrp.sql.names import quote, require_distinct
from sqlkrp.sql.tables import LongInput, side_tables, tables_select
from sqlkrp.sql.wide import wide_select
from sqlkrp.stages import Program, Table

__all__ = ["FORMS", "OUTPUTS", "STAGES", "Query", "Statement", "choose_form", "write"]

FORMS = ("auto", "wide", "tables")
STAGES = ("features", "projection")
OUTPUTS = ("columns", "array")


@dataclass(frozen=True)
class Query:
    """What to write a statement for; relations are SQL whose names are quoted already."""

    program: Program
    digest: str
    title: str
    """One line that says what the map is; a comment, made of parameters only."""
    relation: str
    array_name: str
    keep: Sequence[str] = ()
    form: str = "auto"
    stage: str = "features"
    output: str = "columns"
    long: LongInput | None = None
    booleans: Collection[str] | None = None
    """The input columns that are truth values; None for those that were at fit."""
    token: str = ""
    """In the names of this statement's side tables, if they must be its own."""
    guard: bool = True
    """Whether the statement itself stops at a missing value under ``nulls="error"``."""


@dataclass(frozen=True)
class Statement:
    """A SELECT, and the side tables it joins (full name to columns; none in the wide form)."""

    text: str
    form: str
    columns: tuple[str, ...]
    n_kept: int
    """How many of the columns are handed on; the others are features."""
    side_tables: dict[str, Table] = field(default_factory=dict)


def choose_form(program: Program, form: str, dialect: Dialect) -> tuple[str, str]:
    """The form that ``auto`` means for a program, and why."""
    operations = program.additions + program.products
    limit = dialect.max_wide_operations
    short = operations <= limit
    why = (
        f"{operations:,} additions and products a row, {'at most' if short else 'over'} the "
        f"{limit:,} that {dialect.name} plans quickly"
    )
    if form != "auto":
        return form, "asked for"
    return ("wide" if short else "tables"), why


def write(query: Query, dialect: Dialect) -> Statement:
    """Write the statement of a query."""
    _check(query)
    program = query.program if query.stage == "features" else query.program.projection()
    array = query.array_name if query.output == "array" else None
    kept = (*(() if query.long is None else (query.long.row,)), *query.keep)
    columns = (*kept, *(program.names if array is None else (array,)))
    if query.long is None:  # else they are data, not names
        require_distinct(program.prepare.columns, "input column", dialect)
    require_distinct(columns, "output column", dialect)
    # The bare projection is columns, casts, + and - only: it has no room for a guard.
    guard = query.guard and query.stage == "features"
    form, _ = choose_form(program, query.form, dialect)
    if query.long is not None:
        form = "tables"
    booleans = program.prepare.booleans if query.booleans is None else query.booleans
    if form == "wide":
        select = wide_select(
            program,
            query.relation,
            query.keep,
            dialect,
            array=array,
            guard=guard,
            booleans=booleans,
        )
        return Statement(_head(query, form) + select, form, columns, len(kept))
    side = side_tables(program, query.digest, query.token)
    names = {key: quote(full, dialect) for key, (full, _) in side.items()}
    select = tables_select(
        program,
        query.relation,
        query.keep,
        dialect,
        names,
        array=array,
        guard=guard,
        long=query.long,
        booleans=booleans,
    )
    return Statement(_head(query, form) + select, form, columns, len(kept), dict(side.values()))


def _check(query: Query) -> None:
    for name, value, allowed in (
        ("form", query.form, FORMS),
        ("stage", query.stage, STAGES),
        ("output", query.output, OUTPUTS),
    ):
        if value not in allowed:
            raise ParameterError(f"{name}={value!r} is not allowed: use one of {allowed}")
    if query.long is not None and query.form == "wide":
        raise LimitError(
            "form='wide' reads one column a feature, and the input is (row, feature, value): "
            "use form='tables' or 'auto'"
        )
    if query.long is not None and query.long.keys is None and query.keep:
        raise ParameterError(
            f"columns to keep ({', '.join(query.keep)}) come from a table of rows: name it"
        )


def _head(query: Query, form: str) -> str:
    lines = [f"sqlkrp map {query.digest}", f"{query.title}; {query.stage}, {form} form"]
    if form == "tables":
        lines.append("joins side tables of this map: sqlkrp tables MAP writes them, with load.sql")
    return "".join(f"-- {line}\n" for line in lines)
