"""The forms of SQL that a program can be written in, in the order that ``auto`` tries them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlkrp.sql.facts import Dialect, ShortCosts
from sqlkrp.sql.job import Job, LongInput, Written
from sqlkrp.sql.loops import write_loops
from sqlkrp.sql.planning import Plan, seconds_to_plan
from sqlkrp.sql.tables import cost_of_joins, write_tables_form
from sqlkrp.sql.wide import write_wide_form
from sqlkrp.stages import Butterflies, Cost, Program, cost, plain_stages

__all__ = ["FORMS", "FewRows", "Form", "for_few_rows"]

# Gathering sparse rows without a pivot looks at every entry once for each column; beyond so many,
# joins are faster.
_GATHERED = 2_000
# Numbers in the lists of an array form's text, a megabyte and more; beyond, tables are read sooner.
_NUMBERS = 200_000
# Weights in the inner products of a wide statement: 20 MB of text, and two seconds to plan.
_WEIGHTS = 2_000_000
# For few rows a statement is another one than for many if planning that takes so many seconds, and
# so many times as long as all of the other.
_LONG_TO_PLAN, _TIMES_AS_LONG = 0.3, 2
# Numbers in the lists of an array form that are read in no time; each round of a loop in DuckDB has
# its own copy of longer ones.
_SHORT_LISTS = 20_000


@dataclass(frozen=True, kw_only=True)
class Form:
    """A form of SQL."""

    name: str
    meaning: str
    """What it is, in a few words."""
    write: Callable[[Job], Written]
    cost: Callable[[Program, Plan | None], Cost]
    """The operations a row."""
    plans: bool = False
    """Whether its statement is planned: which sums are computed how, by what they cost."""
    lacks: Callable[[Dialect], str] = lambda _: ""
    """What a dialect does not have for it; empty where it can be written."""
    suits: Callable[[Plan, LongInput | None, Dialect], tuple[bool, str]] = lambda *_: (True, "")
    """Whether it is a good form for a plan, and why or why not; its size is another matter."""
    short: Callable[[Program, ShortCosts], tuple[float, float]] = lambda *_: (math.inf, 0.0)
    """Seconds, about, that it takes in any case, and in each row, where its text is short."""
    joins: bool = False
    """Whether its statement joins the tables of stages."""
    nests: bool = False
    """Whether its nested SELECTs name what is used more than once."""
    guards_projection: bool = True
    """Whether it can stop at a missing value where only the bare projection is asked for."""


def _suits_wide(plan: Plan, long: LongInput | None, dialect: Dialect) -> tuple[bool, str]:
    few, because = _suits_gathered(plan, long, dialect)
    if not few:
        return few, because
    if plan.numbers > _WEIGHTS:
        return False, f"{plan.numbers:,} weights, and up to {_WEIGHTS:,} stand in a statement"
    operations = plan.written
    limit, known = dialect.most_operations()
    few = operations <= limit
    return few, (
        f"{operations:,} additions and products a row, {'at most' if few else 'over'} {known}"
    )


def _suits_gathered(plan: Plan, long: LongInput | None, dialect: Dialect) -> tuple[bool, str]:
    n_columns = len(plan.program.prepare.columns)
    if long is None or n_columns <= _GATHERED or dialect.pivot is not None:
        return True, ""
    return False, f"{n_columns:,} columns, and up to {_GATHERED:,} entries are gathered"


def _suits_loops(plan: Plan, long: LongInput | None, dialect: Dialect) -> tuple[bool, str]:
    few, because = _suits_gathered(plan, long, dialect)
    if not few:
        return few, because
    return _numbers_in_lists(plan.program) <= _NUMBERS, ""


def _numbers_in_lists(program: Program) -> int:
    """Numbers that stand one by one in the text of an array form; butterflies do not."""
    return sum(
        stage.n_outputs if isinstance(stage, Butterflies) else sum(cost(stage))
        for _, stage in plain_stages(program.stages)
    )


def _short_loops(program: Program, costs: ShortCosts) -> tuple[float, float]:
    few = _numbers_in_lists(program) <= _SHORT_LISTS
    return (0.0 if few else math.inf), sum(program.cost) * costs.looped


def _short_joins(program: Program, costs: ShortCosts) -> tuple[float, float]:
    work = cost_of_joins(program)
    a_row = work.additions * costs.joined + work.products * costs.multiplied
    return sum(work) * costs.loaded, a_row


def _planned_cost(_: Program, plan: Plan | None) -> Cost:
    assert plan is not None
    return Cost(plan.additions, plan.products)


def _lacks_loops(dialect: Dialect) -> str:
    return "" if dialect.loops else "loops over arrays"


#: By their names. A form is shorter than those before it. The bare projection of columns is casts,
#: + and - only in the wide form: it has no room for a guard.
FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form(
            name="wide",
            meaning="sums of columns, the faster one",
            write=write_wide_form,
            cost=_planned_cost,
            plans=True,
            suits=_suits_wide,
            nests=True,
            guards_projection=False,
        ),
        Form(
            name="array",
            meaning="loops over one array, where the engine has such",
            write=write_loops,
            cost=lambda program, _: program.cost,
            lacks=_lacks_loops,
            suits=_suits_loops,
            short=_short_loops,
        ),
        Form(
            name="tables",
            meaning="joins with side tables, short whatever the map",
            write=write_tables_form,
            cost=lambda program, _: cost_of_joins(program),
            short=_short_joins,
            joins=True,
        ),
    )
}


@dataclass(frozen=True)
class FewRows:
    """A form that is quicker than the wide one as long as rows are few."""

    form: Form
    most: int
    """Up to so many rows."""
    planning: float
    """Seconds, about, to plan the wide form."""

    @property
    def because(self) -> str:
        """Why, in a few words."""
        return f"the wide form takes {self.planning:.1f} s to plan, by estimate"


def for_few_rows(forms: Sequence[Form], plan: Plan, dialect: Dialect) -> FewRows | None:
    """The form to take for few rows in place of the first of these, if one is quicker.

    Planning a wide statement takes its time even for one row.
    """
    costs, planning = dialect.costs.short, seconds_to_plan(plan, dialect)
    if costs is None or planning < _LONG_TO_PLAN or not forms[0].plans:
        return None
    found = []
    for form in forms[1:]:
        at_once, a_row = form.short(plan.program, costs)
        if (left := planning / _TIMES_AS_LONG - at_once) >= a_row:
            found.append(FewRows(form, int(left / a_row), planning))
    return max(found, key=lambda one: one.most, default=None)
