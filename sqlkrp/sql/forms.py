"""The forms of SQL that a program can be written in, in the order that ``auto`` tries them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import Job, LongInput, Written
from sqlkrp.sql.planning import Plan
from sqlkrp.sql.tables import write_tables_form
from sqlkrp.sql.wide import write_wide_form

__all__ = ["FORMS", "Form"]

# Gathering sparse rows looks at every entry once for each column; beyond so many, joins are faster.
_GATHERED = 2_000


@dataclass(frozen=True)
class Form:
    """A form of SQL."""

    name: str
    write: Callable[[Job], Written]
    suits: Callable[[Plan, LongInput | None, Dialect], tuple[bool, str]]
    """Whether it is a good form for a plan, and why or why not; its size is another matter."""
    joins: bool
    """Whether its statement joins the tables of stages."""
    guards_projection: bool
    """Whether it can stop at a missing value where only the bare projection is asked for."""


def _suits_wide(plan: Plan, long: LongInput | None, dialect: Dialect) -> tuple[bool, str]:
    n_columns = len(plan.program.prepare.columns)
    if long is not None and n_columns > _GATHERED:
        return False, f"{n_columns:,} columns, and up to {_GATHERED:,} entries are gathered"
    operations = plan.additions + plan.products
    limit, known = dialect.most_operations()
    few = operations <= limit
    return few, (
        f"{operations:,} additions and products a row, {'at most' if few else 'over'} {known}"
    )


#: By their names. The bare projection of columns is casts, + and - only in the wide form: it has
#: no room for a guard.
FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form("wide", write_wide_form, _suits_wide, joins=False, guards_projection=False),
        Form(
            "tables",
            write_tables_form,
            lambda *_: (True, ""),
            joins=True,
            guards_projection=True,
        ),
    )
}
