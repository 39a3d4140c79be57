"""Charts of distortion against the number of features, and of pairs in hexagons."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sqlkrp.maps.advice import counted
from sqlkrp.quality.binned import TALL, Binned
from sqlkrp.report.axes import (
    DASHES,
    HIGH,
    MARKERS,
    WIDE,
    few_ticks,
    logarithmic,
    number_text,
    percents,
)
from sqlkrp.report.drawing import COLOURS, INK, LEVELS, MUTED, drawn
from sqlkrp.report.found import Distances
from sqlkrp.report.text import Html

__all__ = ["curve_chart", "hexagons_chart", "levels_of"]


def curve_chart(found: Distances) -> Html:
    """Distortion against the number of features: this pool, the other one, and the floor."""
    own = found.measured
    steps = sorted([*found.measured.curve, own], key=lambda step: step.components)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        sizes = sorted({step.components for step in (*steps, *found.others)})
        ends = np.geomspace(sizes[0] / 1.15, sizes[-1] * 1.15, 60)
        axes.plot(ends, 2 / np.sqrt(np.pi * ends), color=MUTED, lw=1.4, ls=(0, (1.5, 1.5)),
                  label="floor, 2/√(πk)")  # fmt: skip
        named = "this map's kind" if found.other_pool is None else "this pool"
        for place, (name, line) in enumerate(
            ((named, steps), (f"{found.other_pool} pool", found.others))
        ):
            if line:
                axes.errorbar(
                    [one.components for one in line],
                    [one.mean for one in line],
                    yerr=[one.std for one in line],
                    color=COLOURS[place], ls=DASHES[place], marker=MARKERS[place],
                    capsize=3, elinewidth=1, label=name,
                )  # fmt: skip
        axes.plot([own.components], [own.draws[0].mean], color=INK, ls="", marker="*", ms=11,
                  label="this map", zorder=5)  # fmt: skip
        logarithmic(axes.xaxis, sizes)
        axes.set_xlabel("features, k")
        axes.set_ylabel("mean distortion")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(percents)
        axes.legend(loc="upper right")

    told = (
        f"Distortion against the number of features: {percents(own.mean)} at "
        f"{own.components:,}, where the floor is {percents(own.floor)}"
    )
    return drawn("curve", told, (WIDE, HIGH), draw)


def levels_of(found: Binned) -> list[int]:
    """From how many on a hexagon has each of the levels: powers of a number, up to the most."""
    most = max(count for *_, count in found.cells)
    steps = len(LEVELS)
    least = min(count for *_, count in found.cells)
    levels = [math.ceil(least * (most / least) ** (place / steps)) for place in range(steps)]
    return list(dict.fromkeys(levels))


def hexagons_chart(name: str, found: Binned, across: str, up: str, line: str) -> Html:
    """Counts of pairs in hexagons, with where both are equal, and the mean in each strip."""
    levels = levels_of(found)

    def draw(figure: Any) -> None:
        from matplotlib.collections import PolyCollection

        axes = figure.add_subplot()
        grid = found.grid
        step = 1 / grid.factors[0] if grid.factors[0] else 1.0
        half, side = step / 2, step * TALL / 6
        hexagon = [(0, 2 * side), (half, side), (half, -side), (0, -2 * side), (-half, -side),
                   (-half, side)]  # fmt: skip
        for place, colour in enumerate(LEVELS[: len(levels)]):
            end = levels[place + 1] if place + 1 < len(levels) else math.inf
            points = [grid.point(*at) for *at, count in found.cells if levels[place] <= count < end]
            if points:
                shapes = [[(x + dx, y + dy) for dx, dy in hexagon] for x, y in points]
                axes.add_collection(PolyCollection(shapes, facecolors=colour, edgecolors="none"))
        ends = [grid.low - step, grid.high + step]
        axes.plot(ends, ends, color=MUTED, lw=1.2, ls=DASHES[1], label="equal")
        strips = [one for one in found.strips if one[2] > 1] or list(found.strips)
        axes.plot([one[0] for one in strips], [one[1] for one in strips], color=COLOURS[1],
                  lw=1.8, marker="o", ms=3.5, label=line)  # fmt: skip
        axes.set_xlim(*ends)
        axes.set_ylim(*ends)
        axes.set_aspect("equal")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(number_text)
            axis.set_major_locator(few_ticks(5))
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.legend(loc="upper left")

    counts = f"{counted(found.count, 'pair')} counted in {counted(len(found.cells), 'hexagon')}"
    told = f"{up} against {across}, {counts}"
    return drawn(name, told, (WIDE, WIDE), draw)
