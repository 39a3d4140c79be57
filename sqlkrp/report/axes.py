"""What charts share: how numbers are written on their axes, and how lines differ.

Lines differ in colour, in their dashes and in their markers, so no colour has to be told from
another; the colours are those of M. Okabe and K. Ito, "Color universal design", 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlkrp.report.text import shortened

__all__ = [
    "DASHES", "HIGH", "MARKERS", "NAME", "WIDE", "few_ticks", "legend_below", "logarithmic",
    "named_above", "number_text", "percents",
]  # fmt: skip

#: Pixels of a chart, where there is room.
WIDE, HIGH = 400, 370
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 3)),
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v")
#: Characters of a name in a chart.
NAME = 40


def percents(value: float, _place: Any = None) -> str:
    """A share as a tick of an axis has it."""
    return f"{100 * value:.3g}%"


def number_text(value: float, _place: Any = None) -> str:
    """A number of few characters."""
    size = abs(value)
    for least, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if least <= size < 1e12:
            unit = {"G": 1e9, "M": 1e6, "k": 1e3}[letter]
            return f"{value / unit:.4g}{letter}".replace("-", "\N{MINUS SIGN}")
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}")


def logarithmic(axis: Any, ticks: Sequence[float]) -> None:
    """Make an axis one of powers, with ticks where there are points."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.axes.set_xscale("log")
    # Of many, those that have room.
    shown = [one for place, one in enumerate(ticks) if place == 0 or one / ticks[place - 1] > 1.2]
    axis.set_major_locator(FixedLocator(shown))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def few_ticks(count: int) -> Any:
    """What finds at most so many round numbers for ticks."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count)


def named_above(axes: Any, place: int, name: str) -> None:
    """Write the name of a row of a chart above it, where it has all the room."""
    axes.annotate(
        shortened(name, 52), (0, place), (0, 7), xycoords=("axes fraction", "data"),
        textcoords="offset points", va="bottom", fontsize=11,
    )  # fmt: skip


def legend_below(figure: Any) -> None:
    """What lines are, below all, where no line is."""
    figure.legend(loc="outside lower left", fontsize=11, handlelength=3.2)
