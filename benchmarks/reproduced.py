"""Published cells and what was measured in their place, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.distances import TERMS
from benchmarks.measuring import markdown
from benchmarks.published import Cell, Line, fixed_tolerance

__all__ = ["SUMMARY", "Cells", "Found", "by_pool", "by_size", "summary", "told", "within"]

#: The head of a table of what :func:`summary` gives.
SUMMARY = (
    "table",
    "cells within, p ≥ 200 or no pool",
    "smaller pools",
    "within the fixed limit",
    "median apart",
    "not run",
)


@dataclass(frozen=True)
class Found:
    """What was measured in place of a published cell, or of no cell."""

    values: Sequence[float]
    cell: Cell | None = None
    tolerance: float = 0.0
    digits: int = 3

    @property
    def is_within(self) -> bool:
        """Whether the mean is as near to the published one as it has to be."""
        assert self.cell is not None
        # As published: both are rounded.
        apart = abs(round(float(np.mean(self.values)), self.digits) - self.cell.mean)
        return apart <= self.tolerance + 1e-9

    @property
    def is_marked(self) -> bool:
        """Whether it was run, and is too far from what was published."""
        return self.cell is not None and len(self.values) > 0 and not self.is_within

    @property
    def text(self) -> str:
        """Mean ± standard deviation, those published, and a star if they are too far apart."""
        if not len(self.values):
            measured = "not run"
        else:
            measured = f"{np.mean(self.values):.{self.digits}f}"
            if len(self.values) > 1:
                measured += f" ± {np.std(self.values, ddof=1):.{self.digits}f}"
        if self.cell is None:
            return measured
        published = f"{self.cell.mean:.{self.digits}f}"
        if self.cell.sd is not None:
            published += f" ± {self.cell.sd:.{self.digits}f}"
        star = " *" if self.is_marked else ""
        return f"{measured} [{published}]{star}"


def told(line: Line) -> str:
    """A line's name in a table's head."""
    terms = f"t={line.t}" if line.t not in (None, TERMS) else ""
    return " ".join(word for word in (line.method, line.distribution, terms) if word)


#: By the line and the number of features.
Cells = dict[tuple[Line, int | None], Found]


def within(found: Iterable[Found]) -> str:
    """How many cells are, of those that were run."""
    run = [one for one in found if one.cell is not None and len(one.values)]
    return f"{sum(one.is_within for one in run)} of {len(run)}"


def summary(table: int, found: Cells) -> list[str]:
    """Of a table: how many cells are near enough to the published ones."""
    cells = {key: one for key, one in found.items() if one.cell is not None}
    large = [one for (line, _), one in cells.items() if line.p is None or line.p >= 200]
    small = [one for (line, _), one in cells.items() if line.p is not None and line.p < 200]
    run = [one for one in cells.values() if len(one.values)]
    strict = [replace(one, tolerance=fixed_tolerance(one.cell)) for one in run if one.cell]
    apart = [abs(float(np.mean(one.values)) - one.cell.mean) for one in run if one.cell]
    limit = f"{strict[0].tolerance:g}: {within(strict)}" if strict else ""
    middle = f"{np.median(apart):.4f}" if apart else ""
    return [str(table), within(large), within(small), limit, middle, str(len(cells) - len(run))]


def by_size(found: Cells, *more: list[str]) -> list[str]:
    """Lines that have no pool, and ours; then ``more``."""
    lines = list(dict.fromkeys(line for line, _ in found if line.p is None))
    sizes = sorted({k for _, k in found if k is not None})
    rows = [
        # What has no number of features stands under the first.
        [told(line), *(found[line, k].text if (line, k) in found else "" for k in sizes)]
        if (line, None) not in found
        else [told(line), found[line, None].text, *[""] * (len(sizes) - 1)]
        for line in lines
    ]
    return markdown(["map", *(f"k = {k:,}" for k in sizes)], [*rows, *more])


def by_pool(found: Cells) -> list[str]:
    """Lines that have one, as the paper has them: a column for each map."""
    cells = {(told(line), line.p, k): one for (line, k), one in found.items() if line.p is not None}
    names = list(dict.fromkeys(name for name, _, _ in cells))
    rows = [
        [f"{p:,}", f"{k:,}", *(cells[name, p, k].text if (name, p, k) in cells else ""
                               for name in names)]
        for p, k in dict.fromkeys((p, k) for _, p, k in cells)
    ]  # fmt: skip
    return markdown(["p", "k", *names], rows)
