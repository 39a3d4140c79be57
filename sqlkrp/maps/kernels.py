"""The kernels that maps claim: what is added up over two rows' inputs, and stages of that number.

What a record means in NumPy is here; in SQL, its stages are written as any other program's, and
what is added up is ``sql/pairs.py``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sqlkrp.stages import Array, Elementwise, Linear, Prepare, Program, Stage, SumOfProducts, apply

__all__ = [
    "PAIR_SUMS",
    "Kernel",
    "exponential",
    "laplacian",
    "linear",
    "polynomial",
    "rbf",
    "spherical",
]

# Rows whose differences from all others are there at once.
_ROWS_AT_ONCE = 8


@dataclass(frozen=True)
class Kernel:
    """A function of one number of two rows x and y: a sum over their inputs."""

    of: str
    """What is added up: one of :data:`PAIR_SUMS`."""
    stages: tuple[Stage, ...]
    """From that number to the kernel."""
    told: str
    """It as a formula, for people."""
    is_centred: bool = False
    """Whether features are of it only as far as distances tell: their inner products are of the
    kernel centred somewhere."""

    @property
    def program(self) -> Program:
        """From a column ``v`` of sums to the kernel, ``k``; a sum that is missing has none."""
        return Program((Prepare.plain(["v"], nulls="propagate"), *self.stages), ("k",))

    def sums(self, rows: Array) -> Array:
        """What is added up of each of some rows with each."""
        with np.errstate(all="ignore"):
            return PAIR_SUMS[self.of](rows.astype("float64"))

    def of_sums(self, sums: Array) -> Array:
        """The kernel, of such sums."""
        values = sums.reshape(-1, 1)
        with np.errstate(all="ignore"):
            for stage in self.stages:
                values = apply(stage, values)
        found: Array = values.reshape(sums.shape)
        return found

    def times(self, count: int) -> Kernel:
        """So many of it, added up."""
        if count == 1:
            return self
        stages = (*self.stages, Linear.scaled(1, float(count)))
        return replace(self, stages=stages, told=f"{count} {self.told}")


def _products(rows: Array) -> Array:
    found: Array = rows @ rows.T
    return found


def _of_differences(measure: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def found(rows: Array) -> Array:
        values = np.empty((len(rows), len(rows)))
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            some = slice(first, first + _ROWS_AT_ONCE)
            values[some] = measure(rows[some, None, :] - rows[None, :, :]).sum(axis=2)
        return values

    return found


#: Sums over the inputs of two rows, of all pairs of rows.
PAIR_SUMS: dict[str, Callable[[Array], Array]] = {
    "products": _products,
    "squares": _of_differences(np.square),
    "differences": _of_differences(np.abs),
}


def linear() -> Kernel:
    """<x, y>."""
    return Kernel("products", (), "⟨x, y⟩")


def polynomial(degree: int, gamma: float, coef0: float) -> Kernel:
    """(gamma <x, y> + coef0)^degree."""
    factor = "" if gamma == 1 else f"{gamma:g} "
    constant = f" + {coef0:g}" if coef0 else ""
    inner = f"{factor}⟨x, y⟩{constant}"
    told = inner if inner == "⟨x, y⟩" else f"({inner})"
    stages = (Linear.scaled(1, gamma, coef0), *_power(degree))
    return Kernel("products", stages, told if degree == 1 else f"{told}^{degree}")


def exponential(gamma: float) -> Kernel:
    """exp(gamma <x, y>)."""
    return Kernel("products", _exponential(gamma), f"exp({gamma:g} ⟨x, y⟩)")


def rbf(gamma: float) -> Kernel:
    """exp(-gamma |x - y|^2)."""
    return Kernel("squares", _exponential(-gamma), f"exp(−{gamma:g} ‖x − y‖²)")


def laplacian(gamma: float) -> Kernel:
    """exp(-gamma |x - y|_1)."""
    return Kernel("differences", _exponential(-gamma), f"exp(−{gamma:g} ‖x − y‖₁)")


def spherical(degree: int, a: float) -> Kernel:
    """(1 - |x - y|^2 / a^2)^degree."""
    stages = (Linear.scaled(1, -1 / a**2, 1.0), *_power(degree))
    return Kernel("squares", stages, f"(1 − ‖x − y‖²/{a:g}²)^{degree}")


def _exponential(factor: float) -> tuple[Stage, ...]:
    return Linear.scaled(1, factor), Elementwise(1, "exp")


def _power(degree: int) -> tuple[Stage, ...]:
    if degree == 1:
        return ()
    return (SumOfProducts.plain(1, np.zeros((1, 1, degree), dtype="i4")),)
