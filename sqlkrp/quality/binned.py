"""Pairs of numbers counted in hexagons, and their means in strips: what a chart shows of many.

Hexagons are two lattices of points, one in the middles of the other's: a pair of numbers counts for
the nearest point (D. B. Carr et al., "Scatterplot matrix techniques for large N", JASA 82, 1987).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from sqlkrp.stages import Array

__all__ = ["Binned", "Grid", "binned"]

#: How much wider apart the points of a lattice are in one direction than in the other.
TALL = math.sqrt(3)


@dataclass(frozen=True)
class Grid:
    """A square of so many hexagons across, from the least of all numbers to the largest."""

    low: float
    high: float
    across: int

    @property
    def factors(self) -> tuple[float, float]:
        """What makes places in the lattices of numbers less the least."""
        # Of numbers that are all the same there is one place.
        across = self.across / (self.high - self.low) if self.high > self.low else 0.0
        return across, across / TALL

    def point(self, column: int, row: int) -> tuple[float, float]:
        """The middle of a hexagon."""
        across, down = self.factors
        if not across:
            return self.low, self.low
        return self.low + column / 2 / across, self.low + row / 2 / down


@dataclass(frozen=True)
class Binned:
    """How many pairs of numbers are in each hexagon, and what their mean is in each strip."""

    grid: Grid
    cells: tuple[tuple[int, int, int], ...]
    """Column and row of a hexagon in halves of the lattice's steps, and how many are in it."""
    strips: tuple[tuple[float, float, int], ...]
    """The mean of the first number, that of the second, and how many: first numbers near others."""

    def of_at_least(self, fewest: int) -> Binned:
        """Without hexagons and strips of fewer."""
        cells = tuple(one for one in self.cells if one[-1] >= fewest)
        strips = tuple(one for one in self.strips if one[-1] >= fewest)
        return replace(self, cells=cells, strips=strips)

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return sum(count for *_, count in self.cells)


def binned(first: Array, second: Array, across: int) -> Binned:
    """The same as in an engine, in NumPy."""
    grid = Grid(
        float(min(first.min(), second.min())), float(max(first.max(), second.max())), across
    )
    by, down = grid.factors
    u, v = (first - grid.low) * by, (second - grid.low) * down
    a, b, c, d = np.round(u), np.round(v), np.round(u - 0.5) + 0.5, np.round(v - 0.5) + 0.5
    is_first = (u - a) ** 2 + 3 * (v - b) ** 2 < (u - c) ** 2 + 3 * (v - d) ** 2
    columns, rows = 2 * np.where(is_first, a, c), 2 * np.where(is_first, b, d)
    cells = Counter(zip(columns.astype(int).tolist(), rows.astype(int).tolist(), strict=True))
    strips = []
    for strip in np.unique(np.round(u)):
        inside = np.round(u) == strip
        means = float(first[inside].mean()), float(second[inside].mean())
        strips.append((*means, int(inside.sum())))
    return Binned(grid, tuple((*at, count) for at, count in sorted(cells.items())), tuple(strips))
