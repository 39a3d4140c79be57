"""The section on distances and kernels, which only maps have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlkrp.maps.advice import counted
from sqlkrp.quality.measured import Step
from sqlkrp.report.distance_charts import curve_chart, hexagons_chart, levels_of
from sqlkrp.report.found import FEWEST_ROWS, Found
from sqlkrp.report.pieces import figure, is_rounding, key, numbers, off, percent, section, table
from sqlkrp.report.text import Html, element, joined

__all__ = ["distances"]


def distances(found: Found) -> Html:
    """Distances and kernels."""
    title = "How far distances are off"
    if found.distances is None and found.kind == "model":
        return Html()
    if found.distances is None:
        return section(title, element("p", f"Not measured: {found.without_distances}."))
    told, own = found.distances, found.distances.measured
    first = own.draws[0]
    charts = [
        figure(
            curve_chart(told),
            element("b", _beside_floor(own)),
            f" at {counted(own.components, 'feature')}, over {counted(len(own.draws), 'draw')}. ",
            "Bars are standard deviations over draws. ",
            _enough(told.measured.curve, own),
        )
    ]
    is_few = first.rows < FEWEST_ROWS
    if told.pairs is not None and not is_few:
        charts.append(_kernels(found))
    lines = [
        element(
            "p",
            f"Each pair of {first.rows:,} rows has a true squared distance, by the kernel ",
            element("code", own.kernel),
            " of the columns as the map prepares them, and an estimate by its features. Distortion "
            "is how far the estimate is off, as a share of the true one.",
        ),
        element("div", *charts, class_="charts"),
        numbers("The numbers", joined(_of_draws(found), _of_curve(found))),
    ]
    if is_few and told.pairs is not None:
        lines.append(
            element("p", f"Pairs are shown of {FEWEST_ROWS} rows or more: those of "
                    f"{counted(first.rows, 'row')} would tell of these.", class_="note")
        )  # fmt: skip
    if told.pairs is None:
        lines.append(
            element("p", "Its inner products are of the kernel as it is centred: only distances "
                    "are held against it.", class_="note")
        )  # fmt: skip
    return section(title, *lines)


def _beside_floor(own: Step) -> str:
    if is_rounding(own.mean):
        return "Exact but for rounding"
    return f"{own.mean / own.floor:.2f} times the floor"


def _enough(curve: Sequence[Step], own: Step) -> str:
    """What more features would do, as far as larger maps were drawn."""
    larger = [step for step in curve if step.components > own.components]
    if not larger:
        return ""
    most = max(larger, key=lambda step: step.components)
    gain = 1 - most.mean / own.mean if own.mean else 0.0
    if gain < 0.05:
        return f"{counted(most.components, 'feature')} would hardly be better."
    return f"{counted(most.components, 'feature')} would be off by {percent(gain)} less."


def _kernels(found: Found) -> Html:
    assert found.distances is not None
    pairs = found.distances.pairs
    assert pairs is not None
    first = found.distances.measured.draws[0]
    return figure(
        hexagons_chart("kernels", pairs, "kernel", "estimate", "mean estimate"),
        f"{counted(pairs.count, 'pair')}, counted in hexagons: ",
        element("div", key(levels_of(pairs))),
        "" if is_rounding(found.distances.measured.draws[0].mean) else
        f"Where the line of means leaves the dashed one, estimates are biased there: on average "
        f"{first.kernel_bias:+.3g}, and off by {first.kernel_error:.3g}.",
    )  # fmt: skip


def _of_draws(found: Found) -> Html:
    assert found.distances is not None
    own = found.distances.measured
    first = own.draws[0]
    rows: list[tuple[Any, ...]] = [
        ("mean distortion", off(first.mean), f"{off(own.mean)} ± {off(own.std)}" if own.std else
         off(own.mean)),
        *(
            (f"{share:.0%} of pairs within", off(first.quantiles[share]),
             off(own.quantile(share)))
            for share in (0.5, 0.9, 0.99)
        ),
        ("bias of a squared distance", _signed(first.bias),
         _signed(own.average("bias") or 0.0)),
    ]  # fmt: skip
    if first.frobenius is not None:
        rows.append(
            ("relative error of the kernel's matrix", off(first.frobenius),
             off(own.average("frobenius") or 0.0))
        )  # fmt: skip
    if own.predicted is not None:
        rows.append(("predicted by theory", "", percent(own.predicted)))
    rows.append(("pairs at distance 0, left out", f"{first.zero:,}", ""))
    return table(("", "this map", counted(len(own.draws), "draw")), rows)


def _signed(share: float) -> str:
    return off(share) if is_rounding(share) else f"{100 * share:+.3g}%"


def _of_curve(found: Found) -> Html:
    assert found.distances is not None
    told = found.distances
    lines = {"this pool" if told.other_pool else "this kind": [*told.measured.curve, told.measured]}
    if told.other_pool:
        lines[f"{told.other_pool} pool"] = [*told.others]
    rows = [
        (
            name,
            f"{step.components:,}",
            off(step.mean),
            off(step.std) if step.std else "0",
            percent(step.floor),
        )
        for name, steps in lines.items()
        for step in sorted(steps, key=lambda step: step.components)
    ]
    return table(("maps", "features", "distortion", "±", "floor"), rows)
