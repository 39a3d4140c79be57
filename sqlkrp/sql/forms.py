"""The forms of SQL that a program can be written in, in the order that ``auto`` tries them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import Job, LongInput, Written
from sqlkrp.sql.loops import write_loops
from sqlkrp.sql.planning import Plan
from sqlkrp.sql.tables import cost_of_joins, write_tables_form
from sqlkrp.sql.wide import write_wide_form
from sqlkrp.stages import Butterflies, Cost, Program, cost, plain_stages

__all__ = ["FORMS", "Form"]

# Gathering sparse rows without a pivot looks at every entry once for each column; beyond so many,
# joins are faster.
_GATHERED = 2_000
# Numbers in the lists of an array form's text, a megabyte and more; beyond, tables are read sooner.
_NUMBERS = 200_000
# Weights in the inner products of a wide statement: 20 MB of text, and two seconds to plan.
_WEIGHTS = 2_000_000


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
    # One by one they stand in its text; butterflies do not.
    numbers = sum(
        stage.n_outputs if isinstance(stage, Butterflies) else sum(cost(stage))
        for _, stage in plain_stages(plan.program.stages)
    )
    return numbers <= _NUMBERS, ""


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
        ),
        Form(
            name="tables",
            meaning="joins with side tables, short whatever the map",
            write=write_tables_form,
            cost=lambda program, _: cost_of_joins(program),
            joins=True,
        ),
    )
}
