"""Compare an engine's features with the NumPy twin's, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.display import Shown
from sqlkrp.stages import Array, Program

__all__ = ["Verification", "compare"]

# Rounding differs between a balanced sum, a hash aggregate and BLAS; a wrong sign differs by far
# more than this share of a feature's own size.
_TOLERANCES = {"float64": 1e-9, "float32": 1e-3}
# How many roundings of a single operation are taken for one: orders of sums differ.
_ROUNDINGS = 4
_ROWS_AT_ONCE = 100


# Features in its table: the worst ones.
_SHOWN = 5


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

    def _facts(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "rows": self.rows,
            "features": len(self.names),
            "wrong": len(self.wrong),
            "form": self.form,
            "tolerance": self.tolerance,
        }

    def _rows(self) -> dict[str, Any]:
        worst = {
            f"relative error of {name}": f"{relative:.3g}"
            for name, _, relative in self.worst(_SHOWN)
        }
        return {**self._facts(), **worst}

    @property
    def ok(self) -> bool:
        """Whether there were rows to compare, and every feature is within tolerance."""
        return self.rows > 0 and not self.wrong

    @property
    def wrong(self) -> list[str]:
        """The features that are not."""
        bad = ~(self.unexplained <= self.tolerance)
        return [name for name, is_bad in zip(self.names, bad, strict=True) if is_bad]

    @property
    def is_beyond(self) -> bool:
        """Whether the tolerance is kept only because rounding explains some errors."""
        return self.ok and not (self.relative <= self.tolerance).all()

    def worst(self, count: int) -> list[tuple[str, float, float]]:
        """The features with the largest relative errors: (name, absolute, relative)."""
        order = np.lexsort((-self.relative, -self.unexplained))[:count]
        return [(self.names[i], float(self.absolute[i]), float(self.relative[i])) for i in order]


def compare(
    program: Program, inputs: Array, found: Array, form: str, tolerance: float | None
) -> Verification:
    """Errors of ``found`` against the twin's features; NaN stands for NULL and must meet NaN."""
    dtype = program.prepare.dtype
    expected = program.apply(inputs)
    k = len(program.names)
    if found.shape != expected.shape:
        infinite = np.full(k, np.inf)
        return Verification(program.names, len(found), form, 0.0, *[infinite] * 3)
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
    unexplained = np.where(explained, 0.0, difference).max(axis=0, initial=0.0)
    return Verification(
        program.names,
        len(found),
        form,
        _TOLERANCES[dtype] if tolerance is None else tolerance,
        absolute,
        _share(absolute, largest),
        _share(unexplained, largest),
    )


def _share(errors: Array, largest: Array) -> Array:
    infinite = np.where(errors > 0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.divide(errors, largest, out=infinite, where=largest > 0)
