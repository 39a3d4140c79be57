"""What is known of a map and of its statement's sizes, as plain values: JSON, or lines."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from sqlkrp.errors import ColumnError, LimitError
from sqlkrp.maps.fitted import Fitted
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.planning import Plan
from sqlkrp.sql.statement import Preflight
from sqlkrp.stages import Butterflies, Linear, Program, is_projection

__all__ = ["facts", "preflight_of"]


def preflight_of(fitted: Fitted, **options: Any) -> Preflight | str:
    """The sizes of a map's statement; a text if its names cannot stand side by side."""
    try:
        return fitted.preflight(**options)
    except ColumnError as bad:
        return f"for (row, feature, value) input only: {bad}"
    except LimitError as bad:
        return f"none: {bad}"


def facts(fitted: Fitted, found: Preflight | str | None = None) -> dict[str, Any]:
    """Everything ``inspect`` knows of a map, for people (as lines) and programs (as JSON)."""
    program = fitted.program
    return {
        "map": type(fitted).__name__,
        "digest": fitted.digest_,
        "parameters": fitted.parameters_,
        "seed": fitted.seed_,
        "columns": list(program.prepare.reads),
        "became": fitted.columns_,
        "left_out": fitted.left_out_,
        "label": fitted.label_,
        "taken": {name: asdict(taken) for name, taken in fitted.taken_.items()},
        "dtype": program.prepare.dtype,
        "features": len(program.names),
        **_legend_facts(fitted),
        **_projection_facts(program),
        "additions_a_row": program.cost.additions,
        "products_a_row": program.cost.products,
        **({} if fitted.training is None else {"training": fitted.training}),
        **_preflight_facts(found),
    }


def _legend_facts(fitted: Fitted) -> dict[str, Any]:
    """What numbered features stand for, where others have telling names."""
    legend = fitted.legend
    return {"legend": legend} if legend else {}


def _projection_facts(program: Program) -> dict[str, Any]:
    """Of the bare projection, if the map begins with one."""
    if not any(map(is_projection, program.stages[1:2])):
        return {}
    projection = program.projection().stages[-1]
    assert isinstance(projection, (Linear, Butterflies))
    return {
        "hyperplanes": projection.n_outputs,
        "all_zero_hyperplanes": projection.n_blank,
        "nonzeros": projection.n_entries,
    }


def _preflight_facts(found: Preflight | str | None) -> dict[str, Any]:
    if found is None:
        return {}
    if isinstance(found, str):
        return {"problems": [found]}
    return {
        "dialect": found.dialect.name,
        "executed": found.dialect.executed,
        "nested_selects": found.dialect.planner,
        "computes_once": found.dialect.computes_once,
        "form": found.form,
        "form_because": found.because,
        **({} if found.plan is None else _plan_facts(found.plan, found.dialect)),
        "few_rows": found.few and {"form": found.few.form.name, "at_most": found.few.most},
        "sizes": {
            check.what: {"found": check.found, "limit": check.limit}
            for check in (*found.checks, *found.table_checks)
        },
        "problems": found.problems,
        "table_problems": found.table_problems,
    }


def _plan_facts(plan: Plan, dialect: Dialect) -> dict[str, Any]:
    sums = [
        {
            "chosen": plan.chosen[stage].name,
            "additions_a_row": {way.name: way.circuit.additions for way in ways},
            # A way that the engine has no room for costs no number of seconds.
            "seconds_in_100_000_rows": {
                way.name: way.seconds for way in ways if math.isfinite(way.seconds)
            },
        }
        for stage, ways in plan.ways.items()
    ]
    return {
        "sums": sums,
        # An engine whose costs nobody measured is taken for another.
        "seconds_measured_in": dialect.costs.engine,
        "wide_additions_a_row": plan.additions,
        "wide_products_a_row": plan.products,
    }
