"""Compare an engine's features with the NumPy twin's, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sqlkrp.stages import Array, Program

__all__ = ["Verification", "compare"]

# Rounding differs between a balanced sum, a hash aggregate and BLAS; a wrong sign differs by far
# more than this share of a feature's own size.
_TOLERANCES = {"float64": 1e-9, "float32": 1e-3}


@dataclass(frozen=True, eq=False)
class Verification:
    """The largest errors of each feature over the compared rows."""

    names: tuple[str, ...] = field(repr=False)
    rows: int
    form: str
    tolerance: float
    absolute: NDArray[np.float64] = field(repr=False)
    relative: NDArray[np.float64] = field(repr=False)
    """Absolute error as a share of the feature's largest absolute value."""

    @property
    def ok(self) -> bool:
        """Whether every feature is within tolerance."""
        return not self.wrong

    @property
    def wrong(self) -> list[str]:
        """The features that are not."""
        bad = ~(self.relative <= self.tolerance)
        return [name for name, is_bad in zip(self.names, bad, strict=True) if is_bad]

    def worst(self, count: int) -> list[tuple[str, float, float]]:
        """The features with the largest relative errors: (name, absolute, relative)."""
        order = np.argsort(-np.nan_to_num(self.relative, nan=np.inf), kind="stable")[:count]
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
        return Verification(program.names, len(found), form, 0.0, infinite, infinite)
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
    # A sum whose terms cancel keeps the rounding errors of its terms.
    rounding = 8 * np.finfo(dtype).eps * program.magnitude(inputs)
    difference = np.where(difference <= rounding[:, None], 0.0, difference)
    absolute = difference.max(axis=0, initial=0.0)
    relative = np.divide(
        absolute, largest, out=np.where(absolute > 0, np.inf, 0.0), where=largest > 0
    )
    allowed = _TOLERANCES[dtype] if tolerance is None else tolerance
    return Verification(program.names, len(found), form, allowed, absolute, relative)
