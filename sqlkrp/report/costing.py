"""What the SQL of a map or a model takes: operations, sizes, and seconds."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace

from sqlkrp.engines.asking import query_of, written
from sqlkrp.engines.creating import require_room
from sqlkrp.engines.distortion import Sample
from sqlkrp.engines.growing import few_rows
from sqlkrp.errors import LimitError
from sqlkrp.maps.fitted import Fitted
from sqlkrp.report.found import Cost, Spent, Wanted
from sqlkrp.sql.forms import FORMS
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Preflight
from sqlkrp.summaries.facts import preflight_of

__all__ = ["cost_of"]

# Rows that features are computed of to see how long it takes, but no more than so many numbers; a
# model says something of all.
_TIMED_ROWS, _TIMED_NUMBERS = 20_000, 10_000_000


def cost_of(sample: Sample, fitted: Fitted, wanted: Wanted, spent: Spent | None) -> Cost:
    """What its statement takes, and how long it took."""
    dialect = sample.session.dialect
    found = preflight_of(fitted, dialect=dialect.name)
    work = fitted.program.cost
    nothing = Cost(dialect.name, "", "", work.additions, work.products, (), None, None)
    if isinstance(found, str):
        return replace(nothing, problem=found)
    work = FORMS[found.form].cost(fitted.program, found.plan)
    problem = next(iter(found.problems), None)
    if wanted.timed and spent is None and problem is None:
        try:
            spent = _spent(sample, fitted)
        except LimitError as bad:
            problem = str(bad)
    return replace(
        nothing,
        form=found.form,
        because=found.because,
        additions=work.additions,
        products=work.products,
        sizes=_sizes_of(found),
        problem=problem,
        spent=spent if wanted.timed else None,
    )


def _sizes_of(found: Preflight) -> tuple[tuple[str, int, int | None], ...]:
    return tuple(
        (check.what, check.found, check.limit) for check in (*found.checks, *found.table_checks)
    )


def _spent(sample: Sample, fitted: Fitted) -> Spent:
    """The features of some rows as a temporary table, which takes as long as a table does."""
    session, width = sample.session, len(fitted.program.names)
    rows = min(sample.n_rows, _TIMED_ROWS, max(1, _TIMED_NUMBERS // width))
    data = few_rows(session, sample.whole, None if rows == sample.n_rows else rows)
    query, _ = query_of(session, fitted, data, Options(), run_now=True)
    query = replace(query, options=replace(query.options, keep=()))
    statement = written(session, query)
    require_room(session, statement, query, view=False)
    with contextlib.ExitStack() as soon, session.holding(statement):
        name = sample.named("timed", soon)
        started = time.perf_counter()
        session.rows(f"EXPLAIN {statement.text}", "planning features")
        planned = time.perf_counter()
        session.create_temporary(name, statement.text, "computing features")
        ended = time.perf_counter()
    planning = planned - started
    return Spent(rows, planning, max(0.0, ended - planned - planning))
