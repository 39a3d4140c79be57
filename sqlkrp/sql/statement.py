"""One SQL statement for a map: which form it takes, its text, and what heads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sqlkrp.display import Shown
from sqlkrp.errors import LimitError, ParameterError, visible
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.forms import FORMS, FewRows, Form, for_few_rows
from sqlkrp.sql.job import Job, LongInput, Written
from sqlkrp.sql.levels import Levels
from sqlkrp.sql.names import require_distinct
from sqlkrp.sql.options import Options
from sqlkrp.sql.planning import Plan, plan_program
from sqlkrp.sql.preflight import Check, require_fits, statement_checks, table_checks
from sqlkrp.sql.side_tables import Table
from sqlkrp.sql.tables import side_tables
from sqlkrp.sql.twin import Twin, in_words
from sqlkrp.sql.vectors import OUTPUTS, VECTOR, Vector, require_has
from sqlkrp.stages import Elementwise, Program

__all__ = [
    "Preflight",
    "Query",
    "Statement",
    "draft",
    "features_table",
    "finished",
    "preflight",
    "write",
    "write_reading",
]


@dataclass(frozen=True)
class Query:
    """What to write a statement for; relations are SQL whose names are quoted already."""

    program: Program
    digest: str
    title: str
    """One line that says what the map is; a comment, made of parameters only."""
    relation: str
    array_name: str
    options: Options = field(default_factory=Options)
    kind: str = "map"
    """What it is a query of: a map, or a model."""
    keys: str | None = None
    """Of sparse input, the relation with one row for each row of the answer."""
    booleans: Collection[str] = ()
    """The input columns that are truth values: of the source, or where none was seen at fit."""
    singles: Collection[str] = ()
    """Those whose numbers single precision holds, where that cannot change until it runs."""
    token: str = ""
    """In the names of this statement's side tables, if they must be its own."""
    guard: bool = True
    """Whether the statement itself stops at a missing value under ``nulls="error"``."""
    count: Callable[[int], int | None] = lambda _: None
    """How many rows there will be, if these are known and at most so many."""

    @property
    def long(self) -> LongInput | None:
        """Sparse input, if it is that."""
        return None if self.options.long is None else LongInput(*self.options.long, self.keys)

    @property
    def asked(self) -> Program:
        """The program that is asked for: the features, or the bare projection."""
        whole = self.options.stage == "features"
        return self.program if whole else self.program.projection()

    def decided(self, dialect: Dialect) -> Query:
        """The query with how features are written decided."""
        if self.options.output != "auto":
            return self
        return replace(self, options=replace(self.options, output=dialect.output))

    def guards(self, form: Form) -> bool:
        """Whether the statement in this form stops at a missing value."""
        has_room = form.guards_projection or self.options.stage == "features"
        # Entries that are joined have room for a guard, whatever is made of them.
        return self.guard and (has_room or self.long is not None)


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
    side_tables: Mapping[str, Table] = field(default_factory=dict)
    number_type: str = ""
    """The SQL type of features that are columns of numbers, hardly any of which is there twice;
    empty where they are something else."""
    twins: tuple[Twin, ...] = ()
    """What NumPy computes of it; nothing where SQL computes."""

    def _facts(self) -> dict[str, Any]:
        return {
            "columns": len(self.columns),
            "form": self.form,
            "bytes": len(self.text.encode()),
            "side_tables": len(self.side_tables),
        }

    @property
    def too_large(self) -> Check | None:
        """The first size that the engine does not take, if there is one."""
        return next((check for check in self.checks if not check.ok), None)


def write(query: Query, dialect: Dialect) -> Statement:
    """Write the statement of a query; LimitError if the engine would not take it."""
    statement = draft(query, dialect)
    require_fits(statement.checks, dialect)
    return statement


def draft(query: Query, dialect: Dialect) -> Statement:
    """Write the statement of a query, whatever its size.

    Of forms that suit, the first that the engine takes; of those that are all too large, the first.
    """
    query = query.decided(dialect)
    _require_output(query, dialect)
    drafts = []
    for statement in _drafts(query, dialect):
        if statement.too_large is None:
            return statement
        drafts.append(statement)
    return drafts[0]


def _drafts(query: Query, dialect: Dialect) -> Iterator[Statement]:
    """The statement in each form that is asked for and suits."""
    asked = query.options.form
    if asked != "auto":
        form = FORMS[asked]
        _require_form(form, dialect)
        plan = _plan(query, form, dialect) if form.plans else None
        yield _statement(query, form, "asked for", plan, dialect)
        return
    because = ""
    forms = _forms_of(dialect)
    plan = _plan(query, forms[0], dialect)
    few = _few_rows(query, plan, dialect)
    if few is not None and (rows := query.count(few.most)) is not None:
        yield _statement(query, few.form, f"{rows:,} rows; {few.because}", plan, dialect)
    for form in forms:
        suits, reason = form.suits(plan, query.long, dialect)
        because = reason or because
        if not suits:
            continue
        statement = _statement(query, form, because, plan, dialect)
        yield statement
        if over := statement.too_large:
            because = (
                f"{form.name} would have {over.found:,} {over.what}, and {dialect.name} takes "
                f"{over.limit:,}"
            )


def _few_rows(query: Query, plan: Plan, dialect: Dialect) -> FewRows | None:
    """What is taken for few rows, where a choice is left and it is another form."""
    if (query.options.form, query.options.plan) != ("auto", "auto"):
        return None
    forms = [form for form in _forms_of(dialect) if form.suits(plan, query.long, dialect)[0]]
    return for_few_rows(forms, plan, dialect)


def _forms_of(dialect: Dialect) -> list[Form]:
    """The forms that a dialect has all for."""
    return [form for form in FORMS.values() if not form.lacks(dialect)]


def _require_form(form: Form, dialect: Dialect) -> None:
    if missing := form.lacks(dialect):
        others = " or ".join(f"form={one.name!r}" for one in _forms_of(dialect))
        raise LimitError(f"{dialect.name} has no {missing}: use {others}")


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
    few: FewRows | None
    """What tables of few rows take in its place."""

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
        """What is over a limit in a table of its rows, and what to change; each a line."""
        return [check.problem(self.dialect) for check in self.table_checks if not check.ok]


def preflight(query: Query, dialect: Dialect) -> Preflight:
    """Measure the statement of a query."""
    statement = draft(query, dialect)
    table = features_table(statement, query, dialect)
    plan = statement.plan
    few = None if plan is None else _few_rows(query, plan, dialect)
    return Preflight(dialect, statement.form, statement.because, plan, statement.checks, table, few)


def features_table(statement: Statement, query: Query, dialect: Dialect) -> list[Check]:
    """The sizes of a table of a statement's rows."""
    output, dtype = query.decided(dialect).options.output, query.program.prepare.dtype
    number_bytes = 8 if output == "bits" else np.dtype(dtype).itemsize
    n_features = len(statement.columns) - statement.n_kept
    return table_checks(statement.n_kept, n_features, number_bytes, output, dialect)


def write_reading(query: Query, values: Vector, dialect: Dialect) -> Statement:
    """The statement that reads values which were computed without SQL.

    The query's relation has them, and columns ``k0``, ``k1``, ... to hand on.
    """
    query = query.decided(dialect)
    _require_output(query, dialect)
    job = replace(_job(query, FORMS["wide"], None, dialect), guard=False)
    levels = Levels(job)
    select = levels.select(in_words(job.program, values, dialect))
    written = Written(select, levels.widest, {})
    return _finished(query, written, query.options.how, "asked for", None, job, dialect)


def _plan(query: Query, form: Form, dialect: Dialect) -> Plan:
    program = query.asked
    return plan_program(
        program,
        query.options.plan,
        dialect,
        n_kept=len(query.options.keep),
        every_column=query.guards(form) and program.prepare.nulls == "error",
    )


def _statement(
    query: Query, form: Form, because: str, plan: Plan | None, dialect: Dialect
) -> Statement:
    job = _job(query, form, plan, dialect)
    if query.long is None:  # else they are data, not names
        require_distinct(job.program.prepare.columns, "input column", dialect)
    require_distinct(job.columns, "output column", dialect)
    return _finished(query, form.write(job), form.name, because, plan, job, dialect)


def _finished(
    query: Query,
    written: Written,
    form: str,
    because: str,
    plan: Plan | None,
    job: Job,
    dialect: Dialect,
) -> Statement:
    lines = [
        f"sqlkrp {query.kind} {query.digest}",
        f"{query.title}; {query.options.stage}, {form} form",
    ]
    if job.side:
        name = query.kind.upper()
        lines.append(
            f"joins side tables of this {query.kind}: sqlkrp tables {name} writes them, with "
            "load.sql"
        )
    items = len(job.program.names) if query.options.output == "array" else 0
    text, found = finished(written, lines, form, dialect, outputs=job.columns, items=items)
    return Statement(
        text,
        form,
        because,
        job.columns,
        len(job.kept),
        plan,
        found,
        written.side_tables,
        job.type_name if _are_numbers(query) else "",
    )


def _job(query: Query, form: Form, plan: Plan | None, dialect: Dialect) -> Job:
    program, long = query.asked, query.long
    output = OUTPUTS[query.options.output]
    joins = form.joins or long is not None
    return Job(
        program=program,
        plan=plan,
        relation=query.relation,
        long=long,
        keep=query.options.keep,
        output=output,
        output_names=tuple(output.names(query.array_name, program.names)),
        guard=query.guards(form),
        booleans=query.booleans,
        singles=query.singles,
        dialect=dialect,
        side=side_tables(program, query.digest, query.token) if joins else {},
    )


def finished(
    written: Written,
    lines: Sequence[str],
    form: str,
    dialect: Dialect,
    *,
    outputs: Sequence[str],
    items: int = 0,
) -> tuple[str, list[Check]]:
    """The text of a statement with its head, and its sizes.

    ``items`` are the features of one array, 0 if they are columns.
    """
    if caution := dialect.caution():
        lines = [f"{caution}: compare a few rows with the map's transform first", *lines]
    head = "".join(f"-- {visible(line)}\n" for line in lines)
    end = f"\n{dialect.settings}" if dialect.settings else ""
    text = head + written.select + end
    names = [one.name for one in _forms_of(dialect)]
    others = names[names.index(form) + 1 :] if form in names else []
    return text, statement_checks(
        text, others, dialect, widest=written.widest, outputs=len(outputs), items=items
    )


def _require_output(query: Query, dialect: Dialect) -> None:
    if query.options.output == VECTOR:
        raise ParameterError(
            "output='vector' is made by a session of Spark's, and not by SQL: print an array, or "
            "take to_spark_ml()"
        )
    require_has(query.options.output, dialect)
    if query.options.output == "bits" and not _are_signs(query.asked):
        raise ParameterError(
            "output='bits' is for features that are signs: draw RankOneProjection(binary=True)"
        )


def _are_numbers(query: Query) -> bool:
    """Whether columns of numbers come out, each row with its own."""
    whole = query.options.stage == "features" and query.options.output == "columns"
    program = query.program
    return whole and program.closing == len(program.stages) and not _are_signs(program)


def _are_signs(program: Program) -> bool:
    last = program.stages[-1]
    return isinstance(last, Elementwise) and last.function == "sign"
