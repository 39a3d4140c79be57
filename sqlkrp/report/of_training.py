"""The section on how a model was found, as far as that was kept."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlkrp.maps.advice import counted
from sqlkrp.report.found import Found
from sqlkrp.report.pieces import MOST_ROWS, figure, measure, numbers, plain, section, table
from sqlkrp.report.text import Html, brief, element, joined, shortened
from sqlkrp.report.training_charts import (
    candidates_chart,
    in_sight,
    penalties_chart,
    sizes_chart,
)

__all__ = ["training"]

# Lines against the penalty that can be told apart.
_LINES = 4


def training(found: Found) -> Html:
    """How a model was found."""
    told = found.training
    title = "How it was found"
    if found.kind != "model":
        return Html()
    if not told:
        return section(
            title,
            element("p", "Nothing was kept of how this model was trained: it was made of an "
                    "estimator that was trained elsewhere."),
        )  # fmt: skip
    raw = next(one for one in told["candidates"] if one["name"] == told["raw"])
    if raw["mean"] is None:
        return section(title, element("p", "The folds say nothing of the columns alone."))
    told = {**told, "raw_mean": raw["mean"]}
    charts = [
        figure(
            candidates_chart(told, _best_first(told)),
            f"What candidates came to on held-out folds of a sample: {measure(told['metric'])}, "
            f"{'less' if told['smaller_is_better'] else 'more'} is better. The dashed line is the "
            "columns alone, with a standard deviation to both sides.",
        )
    ]
    lines = _by_size(told)
    if lines:
        charts.append(
            figure(sizes_chart(told, lines), "What more features, or a higher degree, bring.")
        )
    penalties = [one for one in _best_first(told) if len(one.get("by_penalty", ())) > 2]
    if penalties:
        caption = "What the penalty does: too little learns noise, too much learns nothing."
        shown = in_sight(told, penalties[:_LINES])
        if len(shown) < len(penalties):
            others = counted(len(penalties) - len(shown), "other candidate")
            caption += f" {others}, which came to less, are in the numbers."
        charts.append(figure(penalties_chart(told, shown), caption))
    rows = [
        (shortened(one["name"], 80), f"{one['mean']:.4f}", f"{one['spread']:.4f}",
         f"{one['features']:,}", f"{one['penalty']:.0e}")
        for one in _best_first(told)
    ]  # fmt: skip
    all_of_them = table(("candidate", told["metric"], "±", "features", "penalty"), rows[:MOST_ROWS])
    return section(
        title,
        element(
            "p",
            f"A {told['task']} of ", element("b", told["label"]),
            f": {counted(told['rows'], 'row')} to learn from in {told['folds']} folds, "
            f"{told['test_rows']:,} held out of everything.",
        ),
        _before(found),
        _leaks(told),
        element("div", *charts, element("div", _judged(told, found)), class_="charts"),
        numbers("The numbers", all_of_them),
    )  # fmt: skip


def _best_first(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    there = [one for one in told["candidates"] if one["mean"] is not None]
    return sorted(there, key=lambda one: one["mean"], reverse=not told["smaller_is_better"])


def _by_size(told: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Candidates that differ in nothing but how many features they have, the best line first."""
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in _best_first(told):
        if one["maps"]:
            alike = re.sub(r"n_components=\d+,? ?", "", "; ".join(one["maps"]))
            found[brief(alike)].append(one)
    return {
        name: sorted(line, key=lambda one: one["features"])
        for name, line in found.items()
        if len({one["features"] for one in line}) > 1
    }


def _leaks(told: Mapping[str, Any]) -> Html:
    return joined(*(
        element("p", element("b", "Is it known when you predict? "),
                f"{one['column']} alone gives {told['metric']} {one['score']:.3g}.", class_="bad")
        for one in told["leaks"][:MOST_ROWS]
    ))  # fmt: skip


def _before(found: Found) -> Html:
    """Of what model all this is told, where it is another."""
    if found.shortening is None:
        return Html()
    text = (
        f"All of this is of the model before it was shortened to {found.shortening.title}: of the "
        "short one nothing was measured there."
    )
    return element("p", text, class_="bad")


def _judged(told: Mapping[str, Any], found: Found) -> Html:
    """What rows said that were held out."""
    judged, where = told["held_out"], "held out"
    if judged is None:
        judged, where = told["in_folds"], "in folds"
    apart = ("rows", "confusion", "residuals", "predictions")
    rows = [
        (measure(name), _of_folds(value),
         _of_folds(told["in_folds"].get(name)))
        for name, value in judged.items()
        if name not in apart
    ]  # fmt: skip
    how = "which it had not seen" if found.shortening is None else "before it was shortened"
    return joined(
        element("h3", f"On {counted(judged['rows'], 'row')} {where}, {how}"),
        table(("measure", where, "in folds"), rows),
    )


def _of_folds(value: float | None) -> str:
    return "unknown" if value is None else plain(value)
