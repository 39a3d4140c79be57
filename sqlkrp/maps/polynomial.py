"""Other features of dot-product kernels: monomials, squares, Maclaurin series."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from sqlkrp import pools
from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import Even, OneOf, Whole
from sqlkrp.maps.kernels import Kernel, exponential, polynomial
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import (
    COEF0,
    COMPONENTS,
    DEGREE,
    GAMMA,
    KERNEL,
    SPARSITY,
    PolynomialMap,
    SingleMap,
)
from sqlkrp.maps.source import Inputs
from sqlkrp.maps.variances import Pair
from sqlkrp.stages import Array, Linear, Stage, SumOfProducts

__all__ = ["PRP", "ExplicitRP", "RandomMaclaurin"]

# Monomials of the explicit map: each is a column on the way.
_MOST_MONOMIALS = 20_000
# Terms of higher degree have coefficients that no double knows from 0.
_HIGHEST_DEGREE = 30


@with_parameters
class ExplicitRP(PolynomialMap):
    r"""All monomials of degree g, then a ternary random projection: the baseline.

    f(x) = 1/sqrt(k) R phi(x), phi(x) being the d^g products of g columns (each in every order), so
    that E <f(x), f(y)> = (gamma <x, y> + coef0)^g, off by about 2/sqrt(pi k) of a squared
    distance, like any random projection of the kernel's feature space. (Its variance is
    (N^g + c^2g + (s - 3) S^g) / k with N = |x|^2 |y|^2, c = <x, y> and S = sum_i x_i^2 y_i^2.)

    Choose it to compare with; d^g is refused over 20,000. Of few columns :class:`Monomials` has
    the kernel without the projection's error; otherwise :class:`KRP` with a Hadamard pool is as
    good as this map at a fraction of the work.

    Reference: D. Lopez-Sanchez and others (2018), the baseline "phi(x) + RP".
    """

    prefix = "erp"
    headline = ("degree", "n_components")

    degree: int = DEGREE.by_default(2, check=Whole(1, _HIGHEST_DEGREE))
    n_components: int = COMPONENTS.by_default(100)
    _: KW_ONLY
    s: float = SPARSITY.by_default(3)

    def distance_variance(self, pair: Pair) -> Any:
        # In the kernel's feature space it is a plain projection.
        return 0 * pair.distance + 2 / self.n_components if self.s == 3 else None

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        d, g, k = inputs.count, self.degree, self.n_components
        if d**g > _MOST_MONOMIALS:
            raise ParameterError(
                f"{d} columns have {d**g:,} monomials of degree {g}, and this map takes up to "
                f"{_MOST_MONOMIALS:,}: use KRP"
            )
        factors = np.stack(list(np.indices((d,) * g)), axis=-1).reshape(-1, 1, g)
        monomials = SumOfProducts.plain(d, factors)
        table = pools.draw_achlioptas(rng, k, d**g, float(self.s))
        scale = math.sqrt(self.s / k) * self.gamma ** (g / 2)
        return [monomials, Linear.signed(d**g, k, table), Linear.scaled(k, scale)]


@with_parameters
class PRP(SingleMap):
    r"""Degree two by squares of projections, half of them subtracted.

    Component l of a row x is (sum_{r <= m/2} u_r^2 - sum_{r > m/2} u_r^2) / sqrt(2 m k), with
    u_r = <x, column l of matrix r>, so that

        E <f(x), f(y)> = <x, y>^2 + (kappa - 3)/2 * sum_i x_i^2 y_i^2,

    kappa being the fourth moment of the entries: s. With s = 3 (the default), as for Gaussian
    entries, the second term is 0; with **s = 1 the map is biased** by -sum_i x_i^2 y_i^2.

    Choose :class:`KRP` instead unless you compare with the paper.

    Reference: D. Lopez-Sanchez and others, Information Sciences 436 (2018).
    """

    prefix = "prp"
    headline = ("n_components", "n_matrices")

    n_components: int = COMPONENTS.by_default(100)
    _: KW_ONLY
    n_matrices: int = Parameter(
        Even(2, 10_000, why="half of them are subtracted"),
        "m, how many squares of projections make a feature, half of them subtracted",
        metavar="M",
    ).by_default(2)
    s: float = SPARSITY.by_default(3)

    @property
    def polynomial_degree(self) -> int:
        return 2

    def estimated_kernel(self) -> Kernel | None:
        return polynomial(2, 1.0, 0.0)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        k, m = self.n_components, self.n_matrices
        table = pools.draw_achlioptas(rng, k * m, inputs.count, float(self.s))
        squares = np.repeat(np.arange(k * m, dtype="i4").reshape(k, m, 1), 2, axis=2)
        signs = np.tile(np.repeat(np.array([1, -1], dtype="i1"), m // 2), (k, 1))
        return [
            Linear.signed(inputs.count, k * m, table),
            SumOfProducts(k * m, squares, signs),
            Linear.scaled(k, self.s / math.sqrt(2 * m * k)),
        ]


@with_parameters
class RandomMaclaurin(SingleMap):
    r"""Products of as many signed sums as a term of the kernel's series has factors.

    For a kernel sum_n a_n <x, y>^n, component l draws a degree n with probability q_n, about
    2^-(n+1), and is sqrt(a_n / (q_n k)) prod_{j <= n} <x, r_j>, with its own sign vectors r. So
    E <f(x), f(y)> is the kernel exactly:

    - ``polynomial``: (gamma <x, y> + coef0)^degree; a degree without a term is not drawn;
    - ``exponential``: exp(gamma <x, y>).

    Choose it for the exponential kernel, of scaled rows: the series ends at degree 30, which
    gamma <x, y> of more than some 15 outgrows. For polynomials :class:`KRP` with a Hadamard pool
    has less variance.

    Reference: P. Kar, H. Karnick, "Random feature maps for dot product kernels", AISTATS 2012.
    """

    prefix = "maclaurin"
    headline = ("n_components", "kernel")

    n_components: int = COMPONENTS.by_default(500)
    _: KW_ONLY
    kernel: str = KERNEL.by_default(
        "polynomial",
        check=OneOf(
            {"polynomial": "(gamma <x, y> + coef0)^degree", "exponential": "exp(gamma <x, y>)"}
        ),
    )
    degree: int = DEGREE.by_default(2, check=Whole(1, _HIGHEST_DEGREE))
    gamma: Any = GAMMA.by_default("auto")  # a number by the time of the draw
    coef0: float = COEF0.by_default(1.0)

    @property
    def polynomial_degree(self) -> int | None:
        return self.degree if self.kernel == "polynomial" else None

    def constant(self, n_columns: int) -> float | None:
        # A term of degree 0 is a product of nothing: this column.
        return 1.0

    def estimated_kernel(self) -> Kernel | None:
        return _KERNELS[self.kernel](self)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        k, d = self.n_components, inputs.count - 1
        series = _SERIES[self.kernel](self)
        chances = np.where(series > 0, 0.5 ** (1 + np.arange(len(series))), 0)
        if not (np.isfinite(series).all() and chances.any()):
            raise ParameterError(
                f"gamma={self.gamma!r}, coef0={self.coef0!r} and degree={self.degree!r} leave the "
                "range of numbers: use values nearer to 1"
            )
        chances /= chances.sum()
        degrees = rng.choice(len(series), size=k, p=chances)
        table = pools.draw_achlioptas(rng, int(degrees.sum()), d, 1)
        # Hyperplane 0 is the column of ones; those of a component follow each other.
        with_ones = (
            np.append([0], table.hyperplane + 1).astype("i4"),
            np.append([d], table.feature).astype("i4"),
            np.append([1], table.sign).astype("i1"),
        )
        sums = Linear.signed(d + 1, 1 + int(degrees.sum()), with_ones)
        longest = max(1, int(degrees.max()))
        place = np.arange(longest)
        first = 1 + np.cumsum(degrees) - degrees
        factors = np.where(place < degrees[:, None], first[:, None] + place, -1)
        factors[degrees == 0, 0] = 0
        products = SumOfProducts.plain(sums.n_outputs, factors[:, None, :])
        weights = np.sqrt(series[degrees] / (chances[degrees] * k))
        return [sums, products, Linear.picked(k, np.arange(k), weights)]


def _polynomial(one: RandomMaclaurin) -> Array:
    degrees = range(one.degree + 1)
    return np.array(
        [math.comb(one.degree, n) * one.gamma**n * one.coef0 ** (one.degree - n) for n in degrees]
    )


def _exponential(one: RandomMaclaurin) -> Array:
    return np.array([one.gamma**n / math.factorial(n) for n in range(_HIGHEST_DEGREE + 1)])


#: The coefficients of each kernel's series.
_SERIES = {"polynomial": _polynomial, "exponential": _exponential}
#: The kernels themselves.
_KERNELS: dict[str, Callable[[RandomMaclaurin], Kernel]] = {
    "polynomial": lambda one: polynomial(one.degree, one.gamma, one.coef0),
    "exponential": lambda one: exponential(one.gamma),
}
