"""Charts of what a model says: how often rightly, how far off, and what matters to it most."""

from __future__ import annotations

from typing import Any

from sqlkrp.models.explaining import Explanation
from sqlkrp.models.importance import Importance
from sqlkrp.report.axes import DASHES, HIGH, WIDE, few_ticks, named_above, number_text, percents
from sqlkrp.report.drawing import COLOURS, INK, MUTED, PAPER, drawn
from sqlkrp.report.found import Agreement, Residuals
from sqlkrp.report.text import Html, shortened

__all__ = ["calibration_chart", "residuals_chart", "strongest_chart"]

# Columns that are shown of many.
_STRONGEST = 15


def calibration_chart(found: Agreement) -> Html:
    """How often that is so which is said to be probable."""
    what = f"{found.classes[1]!r}" if len(found.classes) == 2 else "the label said"

    def draw(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        above.plot([0, 1], [0, 1], color=MUTED, lw=1.2, ls=DASHES[1], label="as said")
        above.plot(
            [one.said for one in found.calibrated], [one.true for one in found.calibrated],
            color=COLOURS[0], marker="o", label="as it is",
        )  # fmt: skip
        above.set_ylabel("share that is so")
        above.yaxis.set_major_formatter(percents)
        above.set_ylim(-0.03, 1.03)
        above.legend(loc="upper left")
        tenths = [(min(9, int(one.said * 10)) + 0.5) / 10 for one in found.calibrated]
        below.bar(tenths, [one.rows for one in found.calibrated], width=0.08, color=COLOURS[0])
        below.set_ylabel("rows")
        below.yaxis.set_major_locator(few_ticks(2))
        below.yaxis.set_major_formatter(number_text)
        below.xaxis.set_major_formatter(percents)
        below.set_xlabel(f"probability of {shortened(what, 30)}")

    return drawn("calibration", "How often it is so where it is probable", (WIDE, WIDE), draw)


def residuals_chart(found: Residuals) -> Html:
    """How many labels are how far above their predictions."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.bar(
            [place * found.width for place, _ in found.counts],
            [count for _, count in found.counts],
            width=found.width * 0.9, color=COLOURS[0],
        )  # fmt: skip
        axes.axvline(0, color=INK, lw=1)
        axes.grid(axis="x", visible=False)
        axes.set_xlabel("label less prediction")
        axes.set_ylabel("rows")
        axes.xaxis.set_major_locator(few_ticks(6))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(number_text)

    return drawn("residuals", "How many labels are how far from predictions", (WIDE, HIGH), draw)


def strongest_chart(found: Explanation | Importance) -> Html:
    """The strongest terms of a polynomial, or the columns that matter most."""
    if isinstance(found, Explanation):
        pairs = [
            (term.name, max(term.coefficients, key=abs)) for term in found.terms if term.size > 0
        ]
        across = "coefficient, of columns as the model reads them"
    else:
        pairs = list(found.columns.items())[:_STRONGEST]
        across = f"change of the {found.what}, in its standard deviations"
    pairs = pairs[::-1]

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for place, (name, value) in enumerate(pairs):
            sign = value < 0
            axes.barh(
                place, value, height=0.32, lw=0.5, color=COLOURS[sign], edgecolor=PAPER,
                hatch="////" if sign else None,
            )  # fmt: skip
            named_above(axes, place, name)
        axes.axvline(0, color=MUTED, lw=1)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", visible=False)
        axes.set_ylim(-0.5, len(pairs) - 0.1)
        axes.xaxis.set_major_locator(few_ticks(5))
        axes.xaxis.set_major_formatter(number_text)
        axes.set_xlabel(across)

    first = pairs[-1][0] if pairs else "none"
    return drawn("strongest", f"The strongest: {first}", (WIDE, 70 + 28 * max(1, len(pairs))), draw)
