"""Charts of what candidates came to: by name, by the number of features, by the penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlkrp.report.axes import (
    DASHES,
    MARKERS,
    NAME,
    WIDE,
    few_ticks,
    legend_below,
    logarithmic,
    named_above,
    number_text,
)
from sqlkrp.report.drawing import COLOURS, MUTED, drawn
from sqlkrp.report.pieces import measure
from sqlkrp.report.text import Html, brief, shortened

__all__ = ["candidates_chart", "in_sight", "penalties_chart", "sizes_chart"]

# As many lines as can be told apart, and candidates as have room.
_LINES, _CANDIDATES = 5, 14


def candidates_chart(told: Mapping[str, Any], best_first: Sequence[Mapping[str, Any]]) -> Html:
    """What candidates came to in the folds, the best above, and the columns alone."""
    better = best_first[:_CANDIDATES][::-1]
    raw = next(one for one in told["candidates"] if one["name"] == told["raw"])

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        low, high = raw["mean"] - raw["spread"], raw["mean"] + raw["spread"]
        axes.axvspan(low, high, color=MUTED, alpha=0.15, lw=0)
        axes.axvline(raw["mean"], color=MUTED, lw=1.2, ls=DASHES[1])
        for place, one in enumerate(better):
            is_taken = one["name"] == told["taken"]
            axes.errorbar(
                [one["mean"]], [place], xerr=[one["spread"]],
                color=COLOURS[1 if is_taken else 0], marker="*" if is_taken else "o",
                ms=12 if is_taken else 6, capsize=3, elinewidth=1.2,
            )  # fmt: skip
            named_above(axes, place, brief(one["name"]) + (", taken" if is_taken else ""))
        axes.set_yticks([])
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_ylim(-0.6, len(better) - 0.1)
        axes.xaxis.set_major_locator(few_ticks(5))
        axes.xaxis.set_major_formatter(number_text)
        axes.set_xlabel(
            f"{measure(told['metric'])} in {told['folds']} folds, ± their standard deviation"
        )

    best = better[-1]
    words = (
        f"What {len(told['candidates'])} candidates came to: {brief(best['name'])} is the best, "
        f"with {measure(told['metric'])} {number_text(best['mean'])}, and the columns alone "
        f"{number_text(raw['mean'])}"
    )
    return drawn("candidates", words, (WIDE, 70 + 31 * len(better)), draw)


def sizes_chart(told: Mapping[str, Any], lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> Html:
    """The metric against the number of features, a line for each kind of map."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        _raw_line(axes, told)
        for place, (name, line) in enumerate(list(lines.items())[:_LINES]):
            axes.errorbar(
                [one["features"] for one in line],
                [one["mean"] for one in line],
                yerr=[one["spread"] for one in line],
                color=COLOURS[place], ls=DASHES[place], marker=MARKERS[place], capsize=3,
                elinewidth=1, label=shortened(name, NAME),
            )  # fmt: skip
        sizes = sorted({one["features"] for line in lines.values() for one in line})
        logarithmic(axes.xaxis, sizes)
        axes.set_xlabel("features, those of the columns too")
        axes.set_ylabel(measure(told["metric"]))
        axes.yaxis.set_major_formatter(number_text)
        legend_below(figure)

    words = f"{measure(told['metric'])} in folds against the number of features"
    return drawn("sizes", words, (WIDE, 280 + 20 * (len(lines) + 1)), draw)


def penalties_chart(told: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> Html:
    """The metric against the penalty, of the candidates that came farthest."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        _raw_line(axes, told)
        for place, one in enumerate(lines[:_LINES]):
            points = [(x, y) for x, y in one["by_penalty"] if y is not None]
            axes.plot(
                [x for x, _ in points], [y for _, y in points],
                color=COLOURS[place], ls=DASHES[place], marker=MARKERS[place], ms=5,
                label=shortened(brief(one["name"]), NAME),
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_ylim(
            *_worth_seeing(told, [y for one in lines[:_LINES] for _, y in one["by_penalty"]])
        )
        axes.set_xlabel("penalty, a row")
        axes.set_ylabel(measure(told["metric"]))
        axes.yaxis.set_major_formatter(number_text)
        axes.xaxis.set_major_formatter(lambda value, _: _power(value))
        legend_below(figure)

    words = f"{measure(told['metric'])} in folds against the penalty"
    return drawn("penalties", words, (WIDE, 280 + 20 * (min(len(lines), _LINES) + 1)), draw)


def in_sight(
    told: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Those of which something is where the chart of penalties looks."""
    low, high = _worth_seeing(told, [y for one in lines for _, y in one["by_penalty"]])
    return [
        one
        for one in lines
        if any(y is not None and low <= y <= high for _, y in one["by_penalty"])
    ]


def _worth_seeing(told: Mapping[str, Any], found: Sequence[float | None]) -> tuple[float, float]:
    """The values near the best: what is far worse would leave these no room."""
    sign = -1 if told["smaller_is_better"] else 1
    values = [sign * one for one in found if one is not None]
    raw = sign * told["raw_mean"]
    best = max(*values, raw)
    room = 3 * max(best - raw, 0.02 * abs(best), 1e-9)
    ends = sign * (max(min(*values, raw), best - room) - room / 20), sign * (best + room / 10)
    return min(ends), max(ends)


def _power(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-") if value < 1 else f"{value:g}"


def _raw_line(axes: Any, told: Mapping[str, Any]) -> None:
    axes.axhline(told["raw_mean"], color=MUTED, lw=1.2, ls=DASHES[1], label="columns alone")
