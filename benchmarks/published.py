"""The cells of published tables, and how far from one a measured number may be."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RUNS", "Cell", "Line", "fixed_tolerance", "read", "tolerance", "tolerances"]

#: Of which the published tables of distances are means.
RUNS = 10
# By the degree: how far means of distortions may be apart where a pool is large.
_DISTORTION = {2: 0.015, 3: 0.05}
# In points of a percentage, and as it is.
_SCORES = {"accuracy": 0.3, "f1": 0.015}
# Standard errors of the difference of two means: one in 400 is beyond.
_ERRORS = 3.0


@dataclass(frozen=True)
class Line:
    """What was measured, but for the number of features."""

    method: str
    distribution: str = ""
    p: int | None = None
    t: int | None = None


@dataclass(frozen=True)
class Cell:
    """One published number."""

    source: str
    table: int
    data: str
    degree: int
    line: Line
    k: int | None
    metric: str
    mean: float
    sd: float | None


def read(path: Path) -> list[Cell]:
    """All cells of a file, in its order; of a number that was only described, none."""
    with path.open(newline="") as file:
        return [_cell(row) for row in csv.DictReader(file)]


def _cell(row: dict[str, str]) -> Cell:
    metric, mean, sd = row["metric"], row["mean"], row["sd"]
    return Cell(
        row["source"],
        int(row["table"]),
        row["data"],
        int(row["degree"]),
        Line(row["method"], row["distribution"], _whole(row["p"]), _whole(row["t"])),
        _whole(row["k"]),
        metric,
        float(mean),
        float(sd) if sd else None,
    )


def _whole(text: str) -> int | None:
    return int(text) if text else None


def fixed_tolerance(cell: Cell) -> float:
    """How far it may be whatever runs differ by."""
    if cell.metric == "distortion":
        return _DISTORTION[cell.degree]
    return _SCORES[cell.metric]


def tolerance(cell: Cell, alike: Iterable[Cell]) -> float:
    """How far from a published mean another one of as many runs may be.

    Of scores it is a number. Of distances it is one for large pools; of smaller ones, whose runs
    differ more, three standard errors of the difference of two means. What runs differ by is told
    by the standard deviations of cells alike, together: a single one of ten runs says little.
    """
    if cell.metric != "distortion":
        return fixed_tolerance(cell)
    spreads = [one.sd**2 for one in alike if one.sd is not None]
    spread = math.sqrt(sum(spreads) / len(spreads)) if spreads else 0.0
    return max(fixed_tolerance(cell), _ERRORS * math.sqrt(2 / RUNS) * spread)


def tolerances(cells: Sequence[Cell]) -> dict[Cell, float]:
    """The tolerance of each cell; alike are those of a table, a method and a pool's size."""
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_group(cell), []).append(cell)
    return {cell: tolerance(cell, groups[_group(cell)]) for cell in cells}


def _group(cell: Cell) -> object:
    return cell.source, cell.table, cell.metric, cell.line.method, cell.line.p
