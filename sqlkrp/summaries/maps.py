"""The lines of ``sqlkrp inspect``: what a map is, and the sizes of its statement."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sqlkrp.maps.fitted import Fitted
from sqlkrp.sql.forms import FORMS
from sqlkrp.sql.planning import ROWS, Plan, Way, by_numpy
from sqlkrp.sql.statement import Preflight
from sqlkrp.summaries.facts import facts
from sqlkrp.summaries.lines import (
    SHOWN_FEATURES,
    aligned,
    columns_text,
    left_out_text,
    made_pairs,
    pool_text,
    taken_pairs,
    work_text,
)

__all__ = ["map_lines"]


def map_lines(
    fitted: Fitted, found: Preflight | str, spelt: Callable[[str], str] = str
) -> list[str]:
    """The facts of a map for a person, to whom ``spelt`` names parameters."""
    known = facts(fitted, found)
    outputs, which = fitted.outputs
    lines = aligned(
        [
            (fitted.kind, fitted.description),
            ("digest", known["digest"]),
            ("seed", str(known["seed"])),
            ("columns", columns_text(known["columns"])),
            *made_pairs(known),
            ("left out", left_out_text(known["left_out"]) or "none"),
            *([("label", known["label"])] if known["label"] is not None else []),
            *taken_pairs(known),
            *([] if fitted.error is None else [("error", fitted.error)]),
            *([] if fitted.alternative is None else [("better", fitted.alternative)]),
            (outputs, f"{which}, computed as {known['dtype']}"),
            *_legend_pairs(known.get("legend", {})),
            ("hyperplanes", _hyperplanes_text(known)),
            *_work_pairs(fitted, found),
            ("SQL", found if isinstance(found, str) else _sql_text(found)),
        ]
    )
    return lines if isinstance(found, str) else [*lines, *_preflight_lines(found, spelt)]


def _legend_pairs(legend: dict[str, dict[str, int]]) -> list[tuple[str, str]]:
    """What numbered features stand for: the first of many."""
    first = list(legend.items())[:SHOWN_FEATURES]
    pairs = [(f"  {name}", _product_text(product)) for name, product in first]
    more = len(legend) - len(first)
    return [*pairs, ("  ...", f"{more:,} more, all of them in JSON")] if more else pairs


def _product_text(product: dict[str, int]) -> str:
    """A product of columns, whose names may hold anything, in quotes as SQL has them."""
    quoted = {column.replace('"', '""'): power for column, power in product.items()}
    powers = (f'"{name}"' + (f"^{n}" if n > 1 else "") for name, n in quoted.items())
    return " * ".join(powers) or "1, the constant"


def _hyperplanes_text(known: dict[str, Any]) -> str:
    if "hyperplanes" not in known:
        return "none"
    return f"{pool_text(known)}, {known['all_zero_hyperplanes']:,} all zero"


def _work_pairs(fitted: Fitted, found: Preflight | str) -> list[tuple[str, str]]:
    if isinstance(found, str):
        return []
    return [("work a row", work_text(found.form, found.plan, fitted))]


def _sql_text(found: Preflight) -> str:
    return f"for {found.dialect.name}: {found.form} form ({found.because})"


def _preflight_lines(found: Preflight, spelt: Callable[[str], str]) -> list[str]:
    plan = found.plan
    pairs = [] if plan is None else [("  sums", _plan_text(plan, stage)) for stage in plan.ways]
    if plan is not None and plan.pairs:
        pairs.append(("  products", f"{plan.products:,} a row, pairs of factors once"))
    if (few := found.few) is not None:
        pairs.append(
            ("  few rows", f"a table of up to {few.most:,}: {few.form.name} form, as {few.because}")
        )
    pairs += [(name, spelt(told)) for name, told in _numpy_pairs(found)]
    for check in (*found.checks, *found.table_checks):
        limit = "" if check.limit is None else f" of at most {check.limit:,}"
        pairs.append((f"  {check.what}", f"{check.found:,}{limit}"))
    return [
        *aligned(pairs),
        *(f"caution: {spelt(one)}" for one in _cautions(found)),
        *(f"too large: {spelt(problem)}" for problem in found.problems),
        *(f"too large for a table: {spelt(problem)}" for problem in found.table_problems),
    ]


def _plan_text(plan: Plan, stage: int) -> str:
    """The way chosen for a stage's sums, and what the best of the others would cost."""
    chosen = plan.chosen[stage]
    others: dict[str, Way] = {}
    for way in sorted(plan.ways[stage], key=lambda way: way.seconds):
        if way.plan != chosen.plan:
            others.setdefault(way.plan, way)
    told = ", ".join(f"{way.name}: {way.circuit.additions:,}" for way in others.values())
    return f"{chosen.name}: {chosen.circuit.additions:,} additions a row" + (
        f" ({told})" if told else ""
    )


def _numpy_pairs(found: Preflight) -> list[tuple[str, str]]:
    """A line where NumPy is likely the quicker way, for engines that it computes for."""
    form, plan, costs = FORMS[found.form], found.plan, found.dialect.costs.short
    if plan is None or not (form.plans or costs):
        return []
    short = None if form.plans or costs is None else form.short(plan.program, costs)
    seconds = by_numpy(plan, found.dialect, short)
    if seconds is None or not math.isfinite(seconds[0]):
        return []
    sql, moving = (f"{one:,.1f} s" for one in seconds)
    told = (
        f"how='arrow' may be quicker: by estimate, {ROWS:,} rows take {sql} to plan and compute in "
        f"SQL, and {moving} to move to NumPy and back"
    )
    return [("  NumPy", told)]


def _cautions(found: Preflight) -> list[str]:
    """What is to be known of a dialect before its text is trusted."""
    dialect, told = found.dialect, []
    if caution := dialect.caution():
        told.append(caution)
    if FORMS[found.form].nests and not dialect.computes_once:
        told.append(
            f"whether {dialect.name} computes a column of a nested SELECT again for each use, "
            f"{dialect.planner}; form='tables' nests none"
        )
    return told
