"""What a report says, as plain values: nothing of it is a row of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import Switch
from sqlkrp.models.explaining import Explanation
from sqlkrp.models.importance import Importance
from sqlkrp.models.shortening import Shortening
from sqlkrp.quality.asked import Asked, asked_of
from sqlkrp.quality.binned import Binned
from sqlkrp.quality.measured import Measured, Step
from sqlkrp.verification import Verification

__all__ = [
    "FEWEST_IN_CELL",
    "FEWEST_ROWS",
    "Agreement",
    "Calibrated",
    "Column",
    "Cost",
    "Distances",
    "Found",
    "Residuals",
    "Spent",
    "Wanted",
    "wanted_of",
]

#: Of fewer rows a page shows no means, quantiles or hexagons: they would be the rows.
FEWEST_ROWS = 20
#: A hexagon of labels is shown if it holds so many rows.
FEWEST_IN_CELL = 5


@dataclass(frozen=True)
class Wanted:
    """What is asked of a report."""

    asked: Asked
    """How many rows are drawn by which seed, and how often maps; no numbers of features: those
    around the map's own."""
    label: str | None
    timed: bool
    """Whether it says seconds, which are others each time."""
    command: str | None
    """What repeats it, if it is known."""


def wanted_of(
    rows: int, runs: int, seed: int, components: Any, label: Any, timed: bool, command: str | None
) -> Wanted:
    """It, or ParameterError if it is not allowed."""
    if not (label is None or isinstance(label, str)):
        raise ParameterError(f"label={label!r} is no name of a column: give a text")
    Switch().require("timed", timed)
    sizes = () if components is None else components
    return Wanted(asked_of(rows, runs, seed, sizes), label, timed, command)


@dataclass(frozen=True)
class Distances:
    """How far distances and the kernel of a sample are off."""

    measured: Measured
    other_pool: str | None
    """The pool that other maps were drawn of, which differ in nothing else."""
    others: tuple[Step, ...]
    pairs: Binned | None
    """The kernel of two rows, and its estimate; None of features of a centred one."""


@dataclass(frozen=True)
class Spent:
    """The seconds that a statement took."""

    rows: int
    planning: float
    running: float


@dataclass(frozen=True)
class Cost:
    """What the SQL takes."""

    dialect: str
    form: str
    because: str
    additions: int
    products: int
    sizes: tuple[tuple[str, int, int | None], ...]
    """What is limited, how much of it there is, and how much the engine takes."""
    problem: str | None
    """Why there is no statement, or none is run."""
    spent: Spent | None


@dataclass(frozen=True)
class Column:
    """An input, and how its values are beside those that the map or model was made on."""

    name: str
    share_missing: float
    mean: float
    std: float
    mean_before: float | None
    std_before: float | None

    @property
    def moved(self) -> float | None:
        """By how many of its former standard deviations the mean has moved; None if unknown."""
        if self.mean_before is None or self.std_before is None or self.share_missing == 1:
            return None
        return (self.mean - self.mean_before) / self.std_before


@dataclass(frozen=True)
class Calibrated:
    """Rows of probabilities near each other: the mean of these, the share that is so, how many."""

    said: float
    true: float
    rows: int


@dataclass(frozen=True)
class Residuals:
    """Of a regression: what labels are above predictions, counted in strips of a width."""

    width: float
    counts: tuple[tuple[int, int], ...]
    """The place of a strip, 0 in the middle, and how many rows are in it."""
    beyond: int
    """How many are in none of them."""


@dataclass(frozen=True)
class Agreement:
    """What a model says of the rows of the table, and where there is a label, how often rightly."""

    rows: int
    said: tuple[tuple[str, float], ...]
    """Of classes how often each is said; of predictions their quantiles."""
    said_before: tuple[tuple[str, float], ...]
    """The same where it was trained; nothing where nobody kept it."""
    unlabelled: int = 0
    unknown: int = 0
    """Rows of a class that the model does not know."""
    measures: tuple[tuple[str, float], ...] = ()
    classes: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    """How many rows of each class (row) are said to be of each (column)."""
    calibrated: tuple[Calibrated, ...] = ()
    pairs: Binned | None = None
    """Predictions and labels."""
    residuals: Residuals | None = None


@dataclass(frozen=True)
class Found:
    """All that a report says."""

    kind: str
    title: str
    digest: str
    table: str
    engine: str
    rows: int
    sample: int
    wanted: Wanted
    n_features: int
    columns: Mapping[str, str]
    """What became of each column of the table that it was drawn or trained on."""
    others: tuple[str, ...]
    """Columns of this table of which nothing is read, and nothing was recorded."""
    inputs: tuple[Column, ...]
    unread: tuple[tuple[str, float], ...]
    """Columns of texts, of which some share of the rows holds none that is read."""
    of_two: tuple[tuple[str, int], ...]
    """Columns of two values, read as one indicator, and how many values they hold here."""
    distances: Distances | None
    without_distances: str
    """Why there are none."""
    training: Mapping[str, Any] | None
    """How it was found; of a short model, how the whole one was, and what that one is worth."""
    shortening: Shortening | None
    agreement: Agreement | None
    cost: Cost
    terms: Explanation | Importance | None
    without_terms: str
    verification: Verification | None
    """None of what the engine does not take; then the cost says why."""
    version: str

    @property
    def is_small(self) -> bool:
        """Whether there are so few rows that means and quantiles would be their values."""
        return self.rows < FEWEST_ROWS
