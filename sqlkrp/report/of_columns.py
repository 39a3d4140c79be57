"""The section on columns: what matters most, what they hold and held, and what is left out."""

from __future__ import annotations

from typing import Any

from sqlkrp.maps.advice import counted
from sqlkrp.models.explaining import Explanation
from sqlkrp.models.importance import Importance
from sqlkrp.report.found import FEWEST_ROWS, Column, Found
from sqlkrp.report.pieces import (
    MOST_ROWS,
    figure,
    numbers,
    percent,
    plain,
    section,
    sentence,
    table,
)
from sqlkrp.report.score_charts import strongest_chart
from sqlkrp.report.text import Html, element, joined, shortened

__all__ = ["columns"]

# Rows of the table that are seen at once.
_SEEN = 12
# A column that has moved so far, in its own standard deviations, is no longer what it was.
_FAR = 0.5
# What is less is written as 0.
_LEAST = 0.005


def columns(found: Found) -> Html:
    """Columns."""
    inside = element("div", _inputs(found))
    if found.terms is not None:
        strongest = element("div", _strongest(found.terms))
        inside = element("div", strongest, inside, class_="charts")
    return section("Columns", inside, _left_out(found), _without_terms(found))


def _inputs(found: Found) -> Html:
    """What each holds, those first that are no longer what they were."""
    known = any(one.moved is not None for one in found.inputs)
    told = (
        "Means and standard deviations of this table; “moved” is by how many standard "
        "deviations of then the mean has."
        if known
        else "Means and standard deviations of this table; of those before nothing is kept."
    )
    # What is the same in all rows says least.
    ordered = sorted(found.inputs, key=lambda one: (-abs(one.moved or 0.0), one.std == 0))
    rows = [_column_row(one, known) for one in ordered[:MOST_ROWS]]
    moved, then = (["moved"], ["then", "±"]) if known else ([], [])
    head = ["input", *moved, "mean", "±", *then, "missing"]
    title = element("h3", counted(len(found.inputs), "input"))
    if found.is_small:
        text = (
            f"{shortened(found.table, 80)} has {counted(found.rows, 'row')}, and of fewer than "
            f"{FEWEST_ROWS} means would tell the rows: they are left out."
        )
        return joined(title, _unread(found), element("p", text, class_="note"))
    lines = [
        title,
        _farthest(ordered[0]) if known else Html(),
        _unread(found),
        _of_two(found),
        element("p", told, class_="note"),
        table(head, rows[:_SEEN]),
    ]
    if len(rows) > _SEEN:
        others = table(head, rows[_SEEN:], len(found.inputs) - len(rows), "input")
        lines.append(numbers(counted(len(found.inputs) - _SEEN, "other input"), others))
    return joined(*lines)


def _left_out(found: Found) -> Html:
    """What is not read, and why."""
    named = [
        (shortened(name, 80), shortened(what.removeprefix("left out: "), 120))
        for name, what in found.columns.items()
        if what.startswith("left out")
    ]
    if not named:
        return _others(found)
    rows = named[:MOST_ROWS]
    was = "drawn" if found.kind == "map" else "trained"
    return joined(
        element("h3", f"{counted(len(named), 'column')} left out when the {found.kind} was {was}"),
        element(
            "p",
            f"Of the table of then, which may be another than {shortened(found.table, 80)}: what "
            "could not be read as it was. What was excluded or kept beside, or not among what was "
            "included, is not recorded.",
            class_="note",
        ),
        element(
            "div", table(("column", "why"), rows, len(named) - len(rows), "column"), class_="texts"
        ),
        _others(found),
    )


def _others(found: Found) -> Html:
    """Columns of this table that nothing is known of."""
    if not found.others:
        return Html()
    names = ", ".join(shortened(one, 60) for one in found.others[:_SEEN])
    more = len(found.others) - _SEEN
    told = (
        f"{shortened(found.table, 80)} has {counted(len(found.others), 'other column')}, not read "
        f"by the {found.kind}: {names}" + (f" and {more:,} more." if more > 0 else ".")
    )
    return element("p", told, class_="note")


def _farthest(one: Column) -> Html:
    """The column that has moved by the most."""
    moved = abs(one.moved or 0.0)
    if moved > _FAR:
        text = f"{shortened(one.name, 80)} has moved by {moved:.2f} standard deviations since then."
        return element("p", text, class_="bad")
    if moved < _LEAST:
        return element("p", "No mean has moved.")
    return element("p", f"No mean has moved by more than {moved:.2f} standard deviations.")


def _unread(found: Found) -> Html:
    """Texts that are no category that is read."""
    return joined(*(
        element("p", f"{shortened(name, 80)}: {percent(share)} of the rows hold none of the values "
                "that are read.", class_="bad")
        for name, share in found.unread[:MOST_ROWS]
    ))  # fmt: skip


def _of_two(found: Found) -> Html:
    """Texts of two, of which only one is known."""
    lines = []
    for name, count in found.of_two[:MOST_ROWS]:
        told = (
            f"{shortened(name, 80)} had two values, and is read as whether it holds the second: "
            "any other counts as the first, which nobody kept."
        )
        told += f" Here it holds {counted(count, 'value')}"
        if count > 2:
            told += f", so {counted(count - 2, 'value')} at least must be new."
        else:
            told += ", and whether one of them is new cannot be known."
        lines.append(element("p", told, class_="bad" if count > 2 else "note"))
    return joined(*lines)


def _column_row(one: Column, known: bool) -> list[Any]:
    """A row of the table; nothing where nobody knows what was before."""
    moved, then = [], []
    if known and one.moved is None:
        moved, then = [""], ["", ""]
    elif one.moved is not None:
        told = f"{one.moved:+.2f}" if abs(one.moved) >= _LEAST else "0"
        moved = [element("span", told, class_="bad" if abs(one.moved) > _FAR else None)]
        then = [f"{one.mean_before:.4g}", f"{one.std_before:.3g}"]
    missing = percent(one.share_missing) if one.share_missing else "0"
    return [
        shortened(one.name, 80), *moved, plain(one.mean), plain(one.std, 3), *then, missing,
    ]  # fmt: skip


def _without_terms(found: Found) -> Html:
    """Why nothing is said of what matters most."""
    if not found.without_terms:
        return Html()
    return element("p", sentence(found.without_terms), class_="note")


def _strongest(told: Explanation | Importance) -> Html:
    """What weighs most."""
    if isinstance(told, Explanation):
        several = len(told.decisions) > 1
        caption = (
            f"The strongest of {counted(told.n_terms, 'term')} of the polynomial that it is"
            + (", by the decision that each weighs most in" if several else "")
            + ". Hatched bars are below 0."
        )
    else:
        caption = (
            f"How much the {told.what} changes where a column has the values of other rows, on "
            f"{counted(told.rows, 'row')}."
        )
    if isinstance(told, Explanation) and not told.terms:
        return element("p", "The model is a constant.", class_="note")
    title = "What matters most"
    return joined(element("h3", title), figure(strongest_chart(told), caption))
