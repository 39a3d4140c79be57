"""The section on what a model says of the table, and how often rightly."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

from sqlkrp.maps.advice import counted
from sqlkrp.quality.binned import Binned
from sqlkrp.report.distance_charts import hexagons_chart, levels_of
from sqlkrp.report.found import FEWEST_IN_CELL, FEWEST_ROWS, Agreement, Found
from sqlkrp.report.pieces import MOST_ROWS, figure, key, measure, percent, plain, section, table
from sqlkrp.report.score_charts import calibration_chart, residuals_chart
from sqlkrp.report.text import Html, element, joined, shortened

__all__ = ["scores"]

# Classes of a matrix, and mistakes that are listed of more classes than that.
_CLASSES, _MISTAKES = 12, 10
# Characters of a class at the edges of the matrix.
_NAME = 20


def scores(found: Found) -> Html:
    """What a model says."""
    told = found.agreement
    if told is None:
        return Html()
    label = found.wanted.label
    if label is None:
        text = "No label was given, so this says what the model says, and not how often rightly."
        return section("What it says of this table", element("p", text), _said(told, found))
    lines = [
        element(
            "p",
            "Predictions of all rows, held against ", element("b", label),
            ". Where the model was trained on these rows, or on some of them, this says less than "
            "rows that were held out.",
        )
    ]  # fmt: skip
    for count, why in ((told.unlabelled, "without a label or a prediction"),
                       (told.unknown, "of classes that the model does not know")):  # fmt: skip
        if count:
            lines.append(element("p", f"{counted(count, 'row')} {why}: left out.", class_="note"))
    measures = [(measure(name), plain(value)) for name, value in told.measures]
    if any(not math.isfinite(value) for _, value in told.measures):
        text = "R² compares errors with how far labels differ, and these are all the same."
        lines.append(element("p", text, class_="note"))
    charts = []
    if told.calibrated and not found.is_small:
        caption = (
            "Probabilities in tenths: what is said, and how often it is so. Below, how many rows "
            "each has."
        )
        charts.append(figure(calibration_chart(told), caption))
    if told.pairs is not None and not found.is_small:
        charts.append(_predictions(told.pairs))
    if told.residuals is not None and not found.is_small:
        beyond = told.residuals.beyond
        caption = f"{counted(beyond, 'row')} beyond." if beyond else ""
        charts.append(figure(residuals_chart(told.residuals), caption))
    tables = element("div", table(("measure", "this table"), measures), _confusion(told))
    charts = [*charts, tables, element("div", _said(told, found))]
    lines.append(element("div", *charts, class_="charts"))
    return section("How it does on this table", *lines)


def _predictions(pairs: Binned) -> Html:
    """Predictions and labels, where hexagons hold so many that none tells of a row."""
    shown = pairs.of_at_least(FEWEST_IN_CELL)
    others = pairs.count - shown.count
    if not shown.cells:
        text = (
            f"No hexagon of predictions and labels holds {FEWEST_IN_CELL} rows, and of fewer none "
            "is shown."
        )
        return element("p", text, class_="note")
    return figure(
        hexagons_chart("predictions", shown, "prediction", "label", "mean label"),
        f"{counted(shown.count, 'row')}, counted in hexagons of {FEWEST_IN_CELL} rows or more: ",
        element("div", key(levels_of(shown))),
        f"{counted(others, 'row')} more in others, which are not shown." if others else "",
    )


def _confusion(told: Agreement) -> Html:
    if not told.confusion:
        return Html()
    size = len(told.classes)
    if size > _CLASSES:
        return _mistakes(told)
    shares = [[count / max(1, sum(row)) for count in row] for row in told.confusion]
    order = _in_order(told.classes)
    rows = [
        element(
            "tr", _class_name(told.classes[row], "row"),
            *(
                element("td", f"{count:,}", style=_shade(shares[row][column]) if count else None)
                for column, count in ((one, told.confusion[row][one]) for one in order)
            ),
        )
        for row in order
    ]  # fmt: skip
    head = element(
        "tr",
        element("th", "is ↓  said →", scope="col"),
        *(_class_name(told.classes[one], "col") for one in order),
    )
    table = element("table", element("thead", head), element("tbody", *rows), class_="grid")
    return joined(
        element("h3", "What is said of which class"),
        element("div", table, class_="scroll", tabindex="0"),
        element("p", "Rows of each class, by what is said of them; the darker or brighter the "
                "ground, the larger the share of the class.", class_="note"),
    )  # fmt: skip


def _in_order(classes: Sequence[str]) -> list[int]:
    """The places of classes as people count: numbers by their size, others as the model has them.

    A model whose labels were texts has 10 before 9.
    """
    places = [*range(len(classes))]
    with contextlib.suppress(ValueError):
        sizes = [float(one) for one in classes]
        if all(map(math.isfinite, sizes)):
            places.sort(key=lambda one: sizes[one])
    return places


def _class_name(name: str, scope: str) -> Html:
    """A class at an edge of the matrix; what has no room there is seen on pointing at it."""
    told = shortened(name, _NAME)
    return element("th", told, scope=scope, title=None if told == name else shortened(name, 300))


def _shade(share: float) -> str:
    level = min(7, 1 + int(share * 7))
    return f"background:var(--h{level});color:var(--t{level})"


def _mistakes(told: Agreement) -> Html:
    pairs = [
        (count, place, said)
        for place, row in enumerate(told.confusion)
        for said, count in enumerate(row)
        if count and place != said
    ]
    rows = [
        (shortened(told.classes[place], 60), shortened(told.classes[said], 60), f"{count:,}")
        for count, place, said in sorted(pairs, key=lambda one: (-one[0], one[1:]))[:_MISTAKES]
    ]
    head = ("is", "is said to be", "rows")
    return joined(element("h3", "The most frequent mistakes"), table(head, rows))


def _said(told: Agreement, found: Found) -> Html:
    """What is said, beside what was said where the model was trained."""
    if not told.said:
        return Html()
    if found.is_small and not told.classes:
        text = (
            f"Of {counted(found.rows, 'row')}, fewer than {FEWEST_ROWS}, quantiles and charts of "
            "predictions would tell the rows: they are left out."
        )
        return element("p", text, class_="note")
    before = dict(told.said_before)
    is_share = bool(told.classes)
    rows = []
    shown = told.said
    if is_share:
        shown = tuple(told.said[one] for one in _in_order(told.classes))
        if len(shown) > MOST_ROWS:  # the most frequent
            shown = tuple(sorted(shown, key=lambda one: -one[1]))
    for name, value in shown[:MOST_ROWS]:
        row = [shortened(name, 60), percent(value) if is_share else plain(value, 5)]
        if before:
            old = before.get(name)
            row.append("" if old is None else percent(old) if is_share else plain(old, 5))
        rows.append(row)
    what = "class" if is_share else "share of rows below"
    then = "said in training" + ("" if found.shortening is None else ", before it was shortened")
    head = [what, "said here", *([then] if before else [])]
    more = len(told.said) - len(rows)
    return joined(element("h3", "What is said, how often" if is_share else "What is predicted"),
                  table(head, rows, more, "class"))  # fmt: skip
