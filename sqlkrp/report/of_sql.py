"""The sections on the SQL: what it costs, whether it is right, and what repeats all this."""

from __future__ import annotations

from typing import Any

from sqlkrp.maps.advice import counted
from sqlkrp.report.found import Found
from sqlkrp.report.pieces import section, table
from sqlkrp.report.text import Html, element, joined, shortened, words

__all__ = ["again", "cost", "verification"]


def cost(found: Found) -> Html:
    """What it costs."""
    told = found.cost
    lines: list[Any] = [
        element("p", f"{told.additions:,} additions and {told.products:,} products a row, in "
                f"{told.dialect}" + (f" by the {told.form} form." if told.form else "."))
    ]  # fmt: skip
    if told.spent is not None:
        spent = told.spent
        speed = f", {spent.rows / spent.running:,.0f} rows a second" if spent.running > 0 else ""
        lines.append(
            element("p", f"{spent.planning:.2f} s to plan, and {spent.running:.2f} s to compute "
                    f"{counted(spent.rows, 'row')} into a temporary table{speed}.")
        )  # fmt: skip
    if told.problem is not None:
        lines.append(element("p", f"Not run: {told.problem}.", class_="bad"))
    if told.sizes:
        limited = [one for one in told.sizes if one[2] is not None or one[0] == "bytes"]
        rows = [(what, f"{there:,}", *_limit(there, limit)) for what, there, limit in limited]
        lines.append(table(("size of the SQL", "here", f"{told.dialect} takes", "share"), rows))
    return section("What it costs", *lines)


def _limit(there: int, limit: int | None) -> tuple[Any, Any]:
    if limit is None:
        return "no limit known", ""
    share = there / limit
    width = min(100.0, 100 * share)
    bar = element("span", element("i", style=f"width:{width:.1f}%"), class_="bar")
    return f"{limit:,}", joined(bar, f" {share:.0%}" if share >= 0.01 else " <1%")


def verification(found: Found) -> Html:
    """What the SQL computes of a sample, held against NumPy."""
    check, title = found.verification, "SQL against NumPy"
    if check is None:
        told = f"Not compared, as {found.cost.dialect} does not take the SQL: see what it costs."
        return section(title, element("p", told))
    verdict = (
        element("b", "Equal", class_="good")
        if check.ok
        else element("b", f"NOT equal: {counted(len(check.wrong), 'output')} wrong", class_="bad")
    )
    rows = [
        (shortened(name, 80), f"{absolute:.3g}", f"{relative:.3g}")
        for name, absolute, relative in check.worst(3)
    ]
    return section(
        title,
        element("p", verdict, f" within a relative error of {check.tolerance:g}, on "
                f"{counted(check.rows, 'row')}, {check.form} form; the largest differences:"),
        table(("output", "absolute", "relative"), rows),
    )  # fmt: skip


def again(found: Found) -> Html:
    """What repeats it."""
    lines = [words(found.wanted.command)] if found.wanted.command else map(words, _call(found))
    return section("Again", element("pre", element("code", Html("\n".join(lines)))))


def _call(found: Found) -> tuple[str, str]:
    """What repeats it in Python."""
    asked, label = found.wanted.asked, found.wanted.label
    options = [] if label is None else [f"label={label!r}"]
    options += [f"rows={asked.rows}", f"runs={asked.runs}", f"seed={asked.seed}"]
    if asked.components:
        options.append(f"components={list(asked.components)}")
    if not found.wanted.timed:
        options.append("timed=False")
    return (
        f'{found.kind} = sqlkrp.load("{found.kind.upper()}")  # digest {found.digest[:12]}',
        f'db.report({found.kind}, {found.table!r}, {", ".join(options)}).save("report.html")',
    )
