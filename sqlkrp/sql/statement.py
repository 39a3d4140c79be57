"""One SQL statement for a map: which form it takes, its text, and what heads it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sqlkrp.display import Shown
from sqlkrp.errors import LimitError, ParameterError
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import quote, require_distinct
from sqlkrp.sql.packing import bit_names
from sqlkrp.sql.planning import PLANS, Plan, plan_program
from sqlkrp.sql.preflight import Check, checks, require, table_checks
from sqlkrp.sql.tables import LongInput, gather_rows, side_tables, tables_select
from sqlkrp.sql.wide import wide_select
from sqlkrp.stages import Elementwise, Program, Table

__all__ = [
    "FORMS",
    "OUTPUTS",
    "STAGES",
    "Preflight",
    "Query",
    "Statement",
    "features_table",
    "preflight",
    "write",
]

FORMS = ("auto", "wide", "tables")
STAGES = ("features", "projection")
OUTPUTS = ("columns", "array", "bits")

# Gathering sparse rows looks at every entry once for each column; beyond so many, joins are faster.
_GATHERED = 2_000


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
    plan: str = "auto"
    """How sums of a ternary pool are computed."""
    guard: bool = True
    """Whether the statement itself stops at a missing value under ``nulls="error"``."""


@dataclass(frozen=True, repr=False)
class Statement(Shown):
    """A SELECT, and the side tables it joins (full name to columns; none in the wide form)."""

    text: str
    form: str
    because: str
    """Why it has this form."""
    columns: tuple[str, ...]
    n_kept: int
    """How many of the columns are handed on; the others are features."""
    plan: Plan | None
    """How the wide form computes them, or would; None where it was not asked for."""
    checks: list[Check]
    """Its sizes, against what the engine takes."""
    side_tables: dict[str, Table] = field(default_factory=dict)

    def _facts(self) -> dict[str, Any]:
        return {
            "columns": len(self.columns),
            "form": self.form,
            "bytes": len(self.text.encode()),
            "side_tables": len(self.side_tables),
        }

    def fits(self) -> bool:
        """Whether the engine takes it."""
        return all(check.ok for check in self.checks)


def write(query: Query, dialect: Dialect) -> Statement:
    """Write the statement of a query; LimitError if the engine would not take it."""
    statement = draft(query, dialect)
    require(statement.checks, dialect)
    return statement


def draft(query: Query, dialect: Dialect) -> Statement:
    """The same, whatever its size."""
    _check(query, dialect)
    plan = None if query.form == "tables" else _plan(query, dialect)
    form, because = _choose_form(query, plan, dialect)
    statement = _write(query, form, because, plan, dialect)
    if query.form == "auto" and form == "wide" and not statement.fits():
        over = next(check for check in statement.checks if not check.ok)
        because = (
            f"wide would have {over.found:,} {over.what}, and {dialect.name} takes {over.limit:,}"
        )
        other = _write(query, "tables", because, plan, dialect)
        return other if other.fits() else statement
    return statement


@dataclass(frozen=True, repr=False)
class Preflight(Shown):
    """What a statement would be, before anything is shown or run."""

    dialect: Dialect
    form: str
    because: str
    plan: Plan | None
    checks: list[Check]
    """The statement's sizes."""
    table_checks: list[Check]
    """Those of a table of its rows."""

    def _facts(self) -> dict[str, Any]:
        problems, table_problems = len(self.problems), len(self.table_problems)
        return {
            "dialect": self.dialect.name,
            "form": self.form,
            "problems": problems,
            "table_problems": table_problems,
        }

    def _rows(self) -> dict[str, Any]:
        sizes = {
            check.what: f"{check.found:,}"
            + ("" if check.limit is None else f" of at most {check.limit:,}")
            for check in (*self.checks, *self.table_checks)
        }
        return {**self._facts(), **sizes}

    @property
    def problems(self) -> list[str]:
        """What is over a limit, and what to change; each a line."""
        return [check.problem(self.dialect) for check in self.checks if not check.ok]

    @property
    def table_problems(self) -> list[str]:
        """The same, of a table of its rows."""
        return [check.problem(self.dialect) for check in self.table_checks if not check.ok]


def preflight(query: Query, dialect: Dialect) -> Preflight:
    """Measure the statement of a query."""
    statement = draft(query, dialect)
    table = features_table(statement, query, dialect)
    return Preflight(
        dialect, statement.form, statement.because, statement.plan, statement.checks, table
    )


def features_table(statement: Statement, query: Query, dialect: Dialect) -> list[Check]:
    """The sizes of a table of a statement's rows."""
    number_bytes = 8 if query.output == "bits" else np.dtype(query.program.prepare.dtype).itemsize
    n_features = len(statement.columns) - statement.n_kept
    return table_checks(statement.n_kept, n_features, number_bytes, query.output, dialect)


def _plan(query: Query, dialect: Dialect) -> Plan:
    program = _program(query)
    guarded = _guarded(query) and program.prepare.nulls == "error"
    n_kept = len(query.keep)
    return plan_program(program, query.plan, dialect, n_kept=n_kept, every_column=guarded)


def _guarded(query: Query) -> bool:
    # The bare projection of columns is casts, + and - only: it has no room for a guard.
    return query.guard and query.stage == "features"


def _choose_form(query: Query, plan: Plan | None, dialect: Dialect) -> tuple[str, str]:
    """The form to try first, and why."""
    if plan is None or query.form != "auto":
        return query.form, "asked for"
    n_columns = len(plan.program.prepare.columns)
    if query.long is not None and n_columns > _GATHERED:
        return "tables", f"{n_columns:,} columns, and up to {_GATHERED:,} entries are gathered"
    operations = plan.additions + plan.products
    limit = dialect.limits.operations
    short = operations <= limit
    return ("wide" if short else "tables"), (
        f"{operations:,} additions and products a row, {'at most' if short else 'over'} the "
        f"{limit:,} that {dialect.name} plans quickly"
    )


def _write(query: Query, form: str, because: str, plan: Plan | None, dialect: Dialect) -> Statement:
    program = _program(query)
    array = query.array_name if query.output == "array" else None
    bits = _bit_names(query)
    kept = (*(() if query.long is None else (query.long.row,)), *query.keep)
    columns = (*kept, *(bits or (program.names if array is None else (array,))))
    if query.long is None:  # else they are data, not names
        require_distinct(program.prepare.columns, "input column", dialect)
    require_distinct(columns, "output column", dialect)
    # Entries that are joined have room for a guard, whatever is made of them.
    guard = query.guard if form == "tables" or query.long is not None else _guarded(query)
    booleans = program.prepare.booleans if query.booleans is None else query.booleans
    side: dict[tuple[int, str], tuple[str, Table]] = {}
    if form == "tables" or query.long is not None:
        side = side_tables(program, query.digest, query.token)
    names = {key: quote(full, dialect) for key, (full, _) in side.items()}
    if form == "wide":
        assert plan is not None
        gathered = None
        if query.long is not None:
            side = {key: found for key, found in side.items() if key[0] == 0}
            gathered = gather_rows(
                program, plan.program.prepare, query.relation, query.long, query.keep,
                dialect, names, columns, guard=guard, booleans=booleans,
            )  # fmt: skip
        select, widest = wide_select(
            plan, query.relation, kept, dialect,
            array=array, bits=bits, guard=guard, booleans=booleans, gathered=gathered,
        )  # fmt: skip
    else:
        select, widest = tables_select(
            program, query.relation, query.keep, dialect, names, columns,
            array=array, bits=bits, guard=guard, long=query.long, booleans=booleans,
        )  # fmt: skip
    end = f"\n{dialect.settings}" if dialect.settings else ""
    text = _head(query, form, dialect) + select + end
    items = 0 if array is None else len(program.names)
    found = checks(text, form, dialect, widest=widest, outputs=len(columns), items=items)
    return Statement(text, form, because, columns, len(kept), plan, found, dict(side.values()))


def _program(query: Query) -> Program:
    """What is asked for: the features, or the bare projection."""
    return query.program if query.stage == "features" else query.program.projection()


def _bit_names(query: Query) -> list[str]:
    """The columns of packed signs, if that is what is asked for."""
    if query.output != "bits":
        return []
    last = _program(query).stages[-1]
    if not (isinstance(last, Elementwise) and last.function == "sign"):
        raise ParameterError(
            "output='bits' is for features that are signs: draw RankOneProjection(binary=True)"
        )
    return bit_names(query.array_name, last.n_outputs)


def _check(query: Query, dialect: Dialect) -> None:
    for name, value, allowed in (
        ("form", query.form, FORMS),
        ("stage", query.stage, STAGES),
        ("output", query.output, OUTPUTS),
        ("plan", query.plan, PLANS),
    ):
        if value not in allowed:
            raise ParameterError(f"{name}={value!r} is not allowed: use one of {allowed}")
    if query.output == "array" and dialect.array is None:
        raise LimitError(f"{dialect.name} has no arrays of numbers: use output='columns'")
    if query.long is not None and query.long.keys is None and query.keep:
        raise ParameterError(
            f"columns to keep ({', '.join(map(repr, query.keep))}) come from a table of rows: "
            "name it (rows=TABLE)"
        )


def _head(query: Query, form: str, dialect: Dialect) -> str:
    lines = [
        f"sqlkrp map {query.digest}",
        f"{query.title}; {query.stage}, {form} form",
    ]
    if not dialect.executed:
        lines.insert(
            0,
            f"generated for {dialect.name}, and never executed there by sqlkrp's tests: "
            "compare a few rows with the map's transform first",
        )
    if form == "tables" or query.long is not None:
        lines.append("joins side tables of this map: sqlkrp tables MAP writes them, with load.sql")
    return "".join(f"-- {line}\n" for line in lines)
