"""Facts as aligned lines, and as texts of such lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlkrp.errors import visible
from sqlkrp.maps.fitted import Fitted
from sqlkrp.sql.forms import FORMS
from sqlkrp.sql.planning import Plan

__all__ = [
    "SHOWN_FEATURES",
    "aligned",
    "columns_text",
    "left_out_text",
    "made_pairs",
    "pool_text",
    "table_lines",
    "taken_pairs",
    "work_text",
]

#: Of many features, so many are shown.
SHOWN_FEATURES = 10
_NAMED_COLUMNS = 20


def aligned(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of label and text, the texts below each other; each stays one line."""
    width = max(len(label) for label, _ in pairs)
    return [f"{label:<{width}}  {visible(value)}" for label, value in pairs]


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: texts to the left in its first column, and to the right in the others."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for first, *others in (head, *rows):
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]))
    return lines


def columns_text(columns: Sequence[str]) -> str:
    """The columns of a map by name: all of a few, the first of many."""
    few = len(columns) <= _NAMED_COLUMNS
    shown = ", ".join(columns if few else columns[:10]) + ("" if few else ", ...")
    return f"{len(columns):,}: {shown}"


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


def taken_pairs(known: dict[str, Any]) -> list[tuple[str, str]]:
    """What was taken for parameters that are ``"auto"``, and why."""
    return [
        (
            name.removeprefix("n_"),
            f"{'none' if one['value'] is None else one['value']} ({one['because']})",
        )
        for name, one in known["taken"].items()
    ]


def pool_text(known: dict[str, Any]) -> str:
    """The hyperplanes of a map that begins with a projection."""
    pool = f" ({known['parameters']['pool']})" if "pool" in known["parameters"] else ""
    return f"{known['hyperplanes']:,}{pool}, {known['nonzeros']:,} nonzero entries"


def work_text(form: str, plan: Plan | None, fitted: Fitted) -> str:
    """Operations a row, as a form computes them."""
    work = FORMS[form].cost(fitted.program, plan)
    return f"{work.additions:,} additions, {work.products:,} products"
