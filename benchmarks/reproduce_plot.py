"""Distortions over the number of features: what was measured beside what was published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

__all__ = ["Curve", "draw"]


@dataclass(frozen=True)
class Curve:
    """A map's distortions by the number of features."""

    name: str
    sizes: Sequence[int]
    means: Sequence[float]
    deviations: Sequence[float]
    published: Sequence[float]
    """Of as many numbers of features; none where nothing was published."""


def draw(panels: dict[str, Sequence[Curve]], path: Path) -> None:
    """A panel for each table: lines are measured, crosses published."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 8), squeeze=False)
    names = list(dict.fromkeys(curve.name for curves in panels.values() for curve in curves))
    colours = dict(zip(names, plt.get_cmap("tab10").colors, strict=False))
    for axis, (title, curves) in zip(axes.flat, panels.items(), strict=False):
        for curve in curves:
            colour = colours[curve.name]
            axis.errorbar(curve.sizes, curve.means, curve.deviations, color=colour, capsize=3,
                          label=curve.name)  # fmt: skip
            if curve.published:
                axis.plot(curve.sizes, curve.published, "x", color=colour, markersize=8)
        sizes = sorted({k for curve in curves for k in curve.sizes})
        floor = [2 / np.sqrt(np.pi * k) for k in sizes]
        axis.plot(sizes, floor, ":", color="black", label="2/√(πk)")
        axis.set(title=title, xscale="log", yscale="log", xlabel="features k", ylabel="distortion")
        axis.set_xticks(sizes, [f"{k:,}" for k in sizes])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
