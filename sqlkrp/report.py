"""What a person reads about a map and about a run: facts as aligned lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from sqlkrp.errors import ColumnError, LimitError, visible
from sqlkrp.maps.advice import counted
from sqlkrp.maps.fitted import Fitted
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.forms import FORMS
from sqlkrp.sql.planning import ROWS, Plan, Way, by_numpy
from sqlkrp.sql.statement import Preflight
from sqlkrp.stages import Butterflies, Linear, Program, is_projection
from sqlkrp.verification import Stored, Verification

__all__ = [
    "aligned",
    "columns_text",
    "facts",
    "left_out_text",
    "made_pairs",
    "map_lines",
    "pool_text",
    "preflight_of",
    "taken_pairs",
    "verification_lines",
    "work_text",
]

_SHOWN_FEATURES = 10
_NAMED_COLUMNS = 20
# Rows of a result in a list, and columns of one of them.
_SHOWN_ROWS = 5


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
    first = list(legend.items())[:_SHOWN_FEATURES]
    pairs = [(f"  {name}", _product_text(product)) for name, product in first]
    more = len(legend) - len(first)
    return [*pairs, ("  ...", f"{more:,} more, all of them in JSON")] if more else pairs


def _product_text(product: dict[str, int]) -> str:
    """A product of columns, whose names may hold anything, in quotes as SQL has them."""
    quoted = {column.replace('"', '""'): power for column, power in product.items()}
    powers = (f'"{name}"' + (f"^{n}" if n > 1 else "") for name, n in quoted.items())
    return " * ".join(powers) or "1, the constant"


def _work_pairs(fitted: Fitted, found: Preflight | str) -> list[tuple[str, str]]:
    if isinstance(found, str):
        return []
    return [("work a row", work_text(found.form, found.plan, fitted))]


def _sql_text(found: Preflight) -> str:
    return f"for {found.dialect.name}: {found.form} form ({found.because})"


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


def _preflight_lines(found: Preflight, spelt: Callable[[str], str]) -> list[str]:
    plan = found.plan
    pairs = [] if plan is None else [("  sums", _plan_text(plan, stage)) for stage in plan.ways]
    if plan is not None and plan.pairs:
        pairs.append(("  products", f"{plan.products:,} a row, pairs of factors once"))
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


def _numpy_pairs(found: Preflight) -> list[tuple[str, str]]:
    """A line where NumPy is likely the quicker way, for engines that it computes for."""
    plan = found.plan if FORMS[found.form].plans else None
    seconds = None if plan is None else by_numpy(plan, found.dialect)
    if seconds is None:
        return []
    sql, moving = (f"{one:,.1f} s" for one in seconds)
    told = (
        f"how='arrow' may be quicker: by estimate, {ROWS:,} rows take {sql} to plan and compute in "
        f"SQL, and {moving} to move to NumPy and back"
    )
    return [("  NumPy", told)]


def work_text(form: str, plan: Plan | None, fitted: Fitted) -> str:
    """Operations a row, as a form computes them."""
    work = FORMS[form].cost(fitted.program, plan)
    return f"{work.additions:,} additions, {work.products:,} products"


def made_pairs(known: dict[str, Any]) -> list[tuple[str, str]]:
    """What inputs are made of columns that are no numbers: of few columns, or of the first."""
    made = [
        f"{name}: {known['became'][name]}"
        for name in known["columns"]
        if known["became"][name] not in ("number", "boolean")
    ]
    if not made:
        return []
    few = len(made) <= _NAMED_COLUMNS
    return [("made", ", ".join(made) if few else f"{', '.join(made[:10])}, ... ({len(made):,})")]


def left_out_text(left_out: dict[str, str]) -> str:
    """Columns that are not read, and why: all of a few, the first of many."""
    told = [f"{name} ({kind})" for name, kind in left_out.items()]
    if len(told) <= _NAMED_COLUMNS:
        return ", ".join(told)
    return f"{len(told):,}: {', '.join(told[:10])}, ..."


def verification_lines(result: Verification, *, every: bool) -> list[str]:
    """The errors of a verification: the worst features, or all, the rows, and the verdict."""
    if result.rows:
        lines = [*_feature_lines(result, every), *_row_lines(result)]
    elif result.stored is not None and result.stored.lacking:
        return [*_row_lines(result), f"NOT equal: {_missing_text(result.stored)}"]
    else:
        return ["nothing was compared: there are no rows to compare; verify a table that has some"]
    verdict = "equal to the NumPy twin" if result.ok else _wrong_text(result)
    beyond = " (more only where rounding explains it)" if result.is_beyond else ""
    lines.append(
        f"{verdict} within a relative error of {result.tolerance:g}{beyond}, on "
        f"{counted(result.rows, 'row')}{_where_text(result)}"
    )
    return lines


def _feature_lines(result: Verification, every: bool) -> list[str]:
    count = len(result.names) if every else min(_SHOWN_FEATURES, len(result.names))
    names = {name: visible(name) for name in result.names}
    width = max(map(len, names.values()))
    lines = [f"{'feature':<{width}}  largest absolute error  largest relative error"]
    for name, absolute, relative in result.worst(count):
        lines.append(f"{names[name]:<{width}}  {absolute:>22.3g}  {relative:>22.3g}")
    if count < len(result.names):
        more = len(result.names) - count
        verb = "is" if more == 1 else "are"
        lines.append(f"({counted(more, 'more feature')} {verb} no worse)")
    return lines


def _row_lines(result: Verification) -> list[str]:
    """Of stored rows: which differ, which are missing, and which the source has not."""
    stored = result.stored
    if stored is None:
        return []
    lines = []
    for place, names in itertools.islice(result.wrong_rows(), _SHOWN_ROWS):
        lines.append(f"differs: {_key_text(stored, stored.keys[place])} in {_few(names)}")
    more = int(result.differs.any(axis=1).sum()) - len(lines)
    if more > 0:
        lines.append(f"({counted(more, 'more row')} {'differs' if more == 1 else 'differ'})")
    if stored.missing:
        keys = [_key_text(stored, one) for one in stored.missing]
        lines.append(f"missing in {stored.name}: {_few(keys)}")
    if stored.others:
        lines.append(f"{stored.name} has {_bounded(stored, stored.others)} that the source has not")
    return [visible(line) for line in lines]


def _key_text(stored: Stored, key: Sequence[int | str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(stored.key, key, strict=True))


def _few(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_ROWS
    return "; ".join(names[:_SHOWN_ROWS]) + (f" and {more:,} more" if more > 0 else "")


def _bounded(stored: Stored, count: int) -> str:
    """A number of rows, of which a sample tells only how many there are at least."""
    return f"{'' if stored.is_whole else 'at least '}{counted(count, 'row')}"


def _missing_text(stored: Stored) -> str:
    verb = "is" if stored.lacking == 1 else "are"
    return visible(f"{_bounded(stored, stored.lacking)} of the source {verb} not in {stored.name}")


def _where_text(result: Verification) -> str:
    if result.stored is None:
        return f", {result.form} form"
    by = f", read by {result.stored.through}" if result.stored.through else ""
    return visible(f" of {result.stored.name}{by}")


def _wrong_text(result: Verification) -> str:
    told = []
    if result.stored is not None and result.stored.lacking:
        told.append(_missing_text(result.stored))
    wrong, of_all = len(result.wrong), counted(len(result.names), "feature")
    if wrong or not told:
        told.append(f"{wrong:,} of {of_all} {'is' if wrong == 1 else 'are'} wrong")
    else:
        told.append("the others are equal")
    return f"NOT equal: {', and '.join(told)}"


def aligned(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of label and text, the texts below each other; each stays one line."""
    width = max(len(label) for label, _ in pairs)
    return [f"{label:<{width}}  {visible(value)}" for label, value in pairs]


def pool_text(known: dict[str, Any]) -> str:
    """The hyperplanes of a map that begins with a projection."""
    pool = f" ({known['parameters']['pool']})" if "pool" in known["parameters"] else ""
    return f"{known['hyperplanes']:,}{pool}, {known['nonzeros']:,} nonzero entries"


def _hyperplanes_text(known: dict[str, Any]) -> str:
    if "hyperplanes" not in known:
        return "none"
    return f"{pool_text(known)}, {known['all_zero_hyperplanes']:,} all zero"


def taken_pairs(known: dict[str, Any]) -> list[tuple[str, str]]:
    """What was taken for parameters that are ``"auto"``, and why."""
    return [
        (
            name.removeprefix("n_"),
            f"{'none' if one['value'] is None else one['value']} ({one['because']})",
        )
        for name, one in known["taken"].items()
    ]


def columns_text(columns: Sequence[str]) -> str:
    """The columns of a map by name: all of a few, the first of many."""
    few = len(columns) <= _NAMED_COLUMNS
    shown = ", ".join(columns if few else columns[:10]) + ("" if few else ", ...")
    return f"{len(columns):,}: {shown}"
