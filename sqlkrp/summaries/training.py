"""What a person reads about a training: what was tried, what was taken, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlkrp.errors import visible
from sqlkrp.maps.advice import counted
from sqlkrp.models.shortening import Shortening
from sqlkrp.summaries.lines import aligned, table_lines

__all__ = ["training_lines"]

# Columns that are named with what became of them.
_NAMED = 40


def training_lines(
    told: Mapping[str, Any],
    more: Sequence[tuple[str, str]] = (),
    *,
    short: Shortening | None = None,
) -> list[str]:
    """What was tried, best first, and what came of it: of a short model, before it was one."""
    return [*_candidates(told), "", *aligned([*_pairs(told, short), *more])]


def _candidates(told: Mapping[str, Any]) -> list[str]:
    """A table of them."""
    better = sorted(told["candidates"], key=lambda one: one["mean"])
    if not told["smaller_is_better"]:
        better.reverse()
    head = ("candidate", told["metric"], "±", "features", "penalty")
    rows = [
        (
            visible(one["name"]),
            f"{one['mean']:.4f}",
            f"{one['spread']:.4f}",
            f"{one['features']:,}",
            f"{one['penalty']:.0e}",
        )
        for one in better
    ]
    names = ["", *(one["name"] for one in better)]
    return [
        line + ("  <- taken" if name == told["taken"] else "")
        for line, name in zip(table_lines(head, rows), names, strict=True)
    ]


def _pairs(told: Mapping[str, Any], short: Shortening | None) -> list[tuple[str, str]]:
    """The rest, as labels and texts."""
    left_out = [
        ("without label", f"{counted(told['without_label'], 'row')} left out")
    ] if told["without_label"] else []  # fmt: skip
    if told["without_weight"]:
        left_out.append(("without weight", f"{counted(told['without_weight'], 'row')} left out"))
    if told["without_time"]:
        left_out.append(("without time", f"{counted(told['without_time'], 'row')} left out"))
    held_out, before = told["held_out"], ""
    model = "learned of all rows, those held out too, after it was judged"
    if short is not None:
        before, model = ", before it was shortened", f"{model}; then shortened to {short.title}"
    return [
        ("task", f"{told['task']} ({told['why']})"),
        ("rows", f"{told['rows']:,} to learn from, {told['test_rows']:,} held out"),
        *left_out,
        ("taken", _taken(told["taken"], told["taken_because"])),
        *([] if told["searched_all"] else [("budget", "reached: not all candidates were tried")]),
        (f"in folds{before}", _measures(told["in_folds"])),
        *([] if held_out is None else [(f"held out{before}", _measures(held_out))]),
        ("model", model),
        *(("leak?", _leak(told, one)) for one in told["leaks"]),
        ("columns", _columns(told["columns"])),
    ]


def _taken(name: str, why: str) -> str:
    return why if why.startswith(f"{name} ") else f"{name}: {why}"


def _measures(found: Mapping[str, Any]) -> str:
    numbers = {
        name: value
        for name, value in found.items()
        if name not in ("rows", "confusion", "residuals", "predictions")
    }
    return ", ".join(
        f"{name} {'unknown' if value is None else format(value, '.4g')}"
        for name, value in numbers.items()
    )


def _leak(told: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    return (
        f"{one['column']!r} alone gives {told['metric']} {one['score']:.3g}: is it known when you "
        "predict? If not: --exclude"
    )


def _columns(columns: Mapping[str, str]) -> str:
    shown: Sequence[str] = [f"{visible(name)}: {what}" for name, what in columns.items()]
    more = len(shown) - _NAMED
    return "; ".join(shown[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
