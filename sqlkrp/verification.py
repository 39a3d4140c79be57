"""Compare an engine's features with the NumPy twin's, feature by feature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.display import Shown
from sqlkrp.stages import Array, Program

__all__ = ["TOLERANCES", "Stored", "Verification", "compare"]

#: Rounding differs between a balanced sum, a hash aggregate and BLAS; a wrong sign differs by far
#: more than this share of a feature's own size.
TOLERANCES = {"float64": 1e-9, "float32": 1e-3}
# How many roundings of a single operation are taken for one: orders of sums differ.
_ROUNDINGS = 4
_ROWS_AT_ONCE = 100
# Features in a notebook's table of a verification: the worst ones.
_SHOWN = 5


@dataclass(frozen=True)
class Stored:
    """What was found of stored rows, whose values are compared, beside these values."""

    name: str
    """What holds them."""
    through: str
    """The engine that read them."""
    key: tuple[str, ...]
    """The columns that tell which row is which."""
    keys: tuple[tuple[int | str, ...], ...]
    """The key of each row that was compared."""
    missing: tuple[tuple[int | str, ...], ...]
    """The keys of the sample that are not there."""
    source_rows: int
    rows: int
    """How many there are in all."""

    @property
    def drawn(self) -> int:
        """How many rows of the source were looked for."""
        return len(self.keys) + len(self.missing)

    @property
    def lacking(self) -> int:
        """At least so many rows of the source are not there; no key is there twice."""
        return max(len(self.missing), self.source_rows - self.rows)

    @property
    def others(self) -> int:
        """At least so many rows are none of the source's."""
        return max(0, self.rows - (self.source_rows - len(self.missing)))

    @property
    def is_whole(self) -> bool:
        """Whether all rows of the source were looked for, and so both numbers are exact."""
        return self.drawn == self.source_rows


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Shown):
    """The largest errors of each feature over the compared rows."""

    names: tuple[str, ...]
    rows: int
    form: str
    tolerance: float
    absolute: NDArray[np.float64]
    relative: NDArray[np.float64]
    """Absolute error as a share of the feature's largest absolute value."""
    unexplained: NDArray[np.float64]
    """The relative error where it is more than rounding explains (with a given tolerance: all)."""
    differs: NDArray[np.bool_]
    """In which rows, of those compared, which features are not within tolerance."""
    stored: Stored | None = None
    """Of rows that were stored before; None where the engine computed them now."""

    def _facts(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "rows": self.rows,
            "features": len(self.names),
            "wrong": len(self.wrong),
            "form": self.form,
            "tolerance": self.tolerance,
            **({} if self.stored is None else {"missing": self.stored.lacking}),
        }

    def _rows(self) -> dict[str, Any]:
        worst = {
            f"relative error of {name}": f"{relative:.3g}"
            for name, _, relative in self.worst(_SHOWN)
        }
        return {**self._facts(), **worst}

    @property
    def ok(self) -> bool:
        """Whether there were rows to compare, none is missing, and every feature is right."""
        lacking = 0 if self.stored is None else self.stored.lacking
        return self.rows > 0 and not self.wrong and not lacking

    @property
    def wrong(self) -> list[str]:
        """The features that are not."""
        bad = ~(self.unexplained <= self.tolerance)
        return [name for name, is_bad in zip(self.names, bad, strict=True) if is_bad]

    def wrong_rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows that differ, by their places among those compared, and their wrong features."""
        for place in np.flatnonzero(self.differs.any(axis=1)).tolist():
            yield place, [self.names[i] for i in np.flatnonzero(self.differs[place]).tolist()]

    @property
    def is_beyond(self) -> bool:
        """Whether the tolerance is kept only because rounding explains some errors."""
        return self.ok and not (self.relative <= self.tolerance).all()

    def worst(self, count: int) -> list[tuple[str, float, float]]:
        """The features with the largest relative errors: (name, absolute, relative)."""
        order = np.lexsort((-self.relative, -self.unexplained))[:count]
        return [(self.names[i], float(self.absolute[i]), float(self.relative[i])) for i in order]


def compare(
    program: Program,
    inputs: Array,
    found: Array,
    form: str,
    tolerance: float | None,
    stored: Stored | None = None,
) -> Verification:
    """Errors of ``found`` against the twin's features; NaN stands for NULL and must meet NaN."""
    dtype = program.prepare.dtype
    expected = program.apply(inputs)
    k = len(program.names)
    if found.shape != expected.shape:
        off, differs = np.full(k, np.inf), np.ones((len(found), k), dtype=bool)
        return Verification(program.names, len(found), form, 0.0, off, off, off, differs, stored)
    expected = expected.astype("float64")
    with np.errstate(invalid="ignore", over="ignore"):
        same = (expected == found) | (np.isnan(expected) & np.isnan(found))
        difference = np.where(same, 0.0, np.abs(expected - found))
    # Where only one of the two is a number, no difference is small.
    difference = np.where(np.isnan(difference), np.inf, difference)
    size = np.where(np.isfinite(expected), np.abs(expected), 0.0)
    largest = size.max(axis=0, initial=0.0)
    # A feature that happens to be tiny in the sample is measured against the others.
    peak = largest.max(initial=0.0) or 1.0  # so that no square leaves the range
    typical = peak * np.sqrt(np.mean((size / peak) ** 2)) if size.size else 0.0
    largest = np.maximum(largest, typical)
    absolute = difference.max(axis=0, initial=0.0)
    # What rounding explains is no mistake; a sum whose terms cancel keeps the errors of its terms.
    eps = _ROUNDINGS * float(np.finfo(dtype).eps)
    rounding = np.zeros_like(difference)
    if tolerance is None:
        for first in range(0, len(inputs), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            rounding[rows] = program.rounding(inputs[rows], eps)
    explained = np.isfinite(difference) & (difference <= rounding)
    unexplained = _share(np.where(explained, 0.0, difference), largest)
    tolerance = TOLERANCES[dtype] if tolerance is None else tolerance
    return Verification(
        program.names,
        len(found),
        form,
        tolerance,
        absolute,
        _share(absolute, largest),
        unexplained.max(axis=0, initial=0.0),
        ~(unexplained <= tolerance),
        stored,
    )


def _share(errors: Array, largest: Array) -> Array:
    infinite = np.where(errors > 0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.divide(errors, largest, out=infinite, where=largest > 0)
