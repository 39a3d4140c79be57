"""Other features of dot-product kernels: monomials, squares, Maclaurin series, count sketches."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np

from sqlkrp import pools
from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import Even, OneOf, Whole
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
from sqlkrp.stages import (
    Array,
    Linear,
    Stage,
    SumOfProducts,
)

__all__ = [
    "PRP",
    "SMOOTH_DEGREE",
    "ExplicitRP",
    "RandomMaclaurin",
    "TensorSketch",
    "complex_sums",
    "without_factors",
]

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

    Choose it for few columns, or to compare with; d^g is refused over 20,000. Otherwise
    :class:`KRP` with a Hadamard pool is as good at a fraction of the work.

    Reference: D. Lopez-Sanchez and others (2018), the baseline "phi(x) + RP".
    """

    prefix = "erp"
    headline = ("degree", "n_components")

    degree: int = DEGREE.by_default(2, check=Whole(1, _HIGHEST_DEGREE))
    n_components: int = COMPONENTS.by_default(100)
    _: KW_ONLY
    s: float = SPARSITY.by_default(3)

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
        Even(2, why="half of them are subtracted"),
        "m, how many squares of projections make a feature, half of them subtracted",
        metavar="M",
    ).by_default(2)
    s: float = SPARSITY.by_default(3)

    @property
    def polynomial_degree(self) -> int:
        return 2

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

    def constant(self) -> float | None:
        # A term of degree 0 is a product of nothing: this column.
        return 1.0

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


def complex_sums(places: Array, term_signs: Array, n_inputs: int) -> list[Stage]:
    """Stages from places (component, term, factor, part) to sums over terms of complex products.

    Part 0 of a complex number is the real and 1 the imaginary one; outputs are (component, part).
    Products of many factors are made of products of fewer, which take fewer multiplications.
    """
    stages: list[Stage] = []
    components, terms, g, _ = places.shape
    while (p := _smallest_prime(g)) < g:
        factors, signs = _complex_terms(places.reshape(-1, p, 2))
        count = len(factors)
        stages.append(SumOfProducts(n_inputs, *_flat(2 * count, factors, signs)))
        g, n_inputs = g // p, 2 * count
        places = np.arange(n_inputs).reshape(components, terms, g, 2)
    factors, signs = _complex_terms(places.reshape(-1, p, 2))
    signs = signs.reshape(components, terms, *signs.shape[1:]) * term_signs[:, :, None, None]
    factors = factors.reshape(components, terms, *factors.shape[1:])
    # (component, term, part, product) to (component, part, term, product)
    merged = factors.transpose(0, 2, 1, 3, 4), signs.transpose(0, 2, 1, 3)
    stages.append(SumOfProducts(n_inputs, *_flat(2 * components, *merged)))
    return stages


def without_factors(degree: int, largest: int) -> int:
    """What is left of a degree that is divided by all its prime factors up to the largest."""
    for factor in range(2, largest + 1):
        while degree % factor == 0:
            degree //= factor
    return degree


def require_factors(name: str, degree: int) -> None:
    """Raise ParameterError if products of so many complex numbers are made of too many terms."""
    left = without_factors(degree, 7)
    if left > 1:
        raise ParameterError(
            f"{name}={degree} is not allowed: a product of {left} complex numbers has too many "
            "terms; use a degree whose prime factors are 2, 3, 5 and 7, or KRP"
        )


SMOOTH_DEGREE = replace(
    DEGREE,
    check=Whole(1, also=require_factors),
    meaning=f"{DEGREE.meaning}, without prime factors over 7",
)


def _smallest_prime(n: int) -> int:
    return next((p for p in range(2, n + 1) if not n % p), 1)


def _flat(n_outputs: int, factors: Array, signs: Array) -> tuple[Array, Array]:
    degree = factors.shape[-1]
    return (
        factors.reshape(n_outputs, -1, degree).astype("i4"),
        signs.reshape(n_outputs, -1).astype("i1"),
    )


def _complex_terms(places: Array) -> tuple[Array, Array]:
    """Products of complex numbers at (product, factor, part), as (product, part, term, factor).

    A choice of the real or the imaginary part of each factor makes a real term where an even
    number is imaginary, and an imaginary one else; with the sign of i to that power.
    """
    n_factors = places.shape[1]
    choices = np.stack(list(np.indices((2,) * n_factors)), axis=-1).reshape(-1, n_factors)
    imaginary = choices.sum(axis=1)
    by_part = [choices[imaginary % 2 == part] for part in (0, 1)]
    factors = np.stack(
        [np.stack([places[:, j, one[:, j]] for j in range(n_factors)], axis=-1) for one in by_part],
        axis=1,
    )
    signs = np.stack([np.where(one.sum(axis=1) // 2 % 2, -1, 1) for one in by_part])
    return factors, np.broadcast_to(signs, (len(places), *signs.shape))


@with_parameters
class TensorSketch(PolynomialMap):
    r"""Count sketches of the columns, convolved: features of the polynomial kernel.

    Each of g sketches adds every column, with a sign, to one of k buckets; their circular
    convolution f has E <f(x), f(y)> = (gamma <x, y> + coef0)^g.

    ``domain="fourier"`` (the default) leaves out the inverse transform: inner products are the
    same in the frequency domain (Parseval), where features are products of g projections on
    roots of unity. ``domain="bucket"`` transforms back, and equals scikit-learn's
    ``PolynomialCountSketch`` with the same hashes and signs.

    Choose it to compare with scikit-learn. For the same number of features :class:`KRP` with a
    Hadamard pool varies less up to degree 6 or so, :class:`ComplexKRP` at higher ones as well, and
    both cost less in a database, as this multiplies.

    Reference: N. Pham, R. Pagh, "Fast and scalable polynomial kernels via explicit feature maps",
    KDD 2013.
    """

    prefix = "ts"
    headline = ("degree", "n_components")

    degree: int = SMOOTH_DEGREE.by_default(2)
    n_components: int = COMPONENTS.by_default(
        100, meaning=f"{COMPONENTS.meaning}, and buckets of a sketch"
    )
    _: KW_ONLY
    domain: str = Parameter(
        OneOf(
            {
                "fourier": "as products of sums",
                "bucket": "as scikit-learn's PolynomialCountSketch gives them",
            }
        ),
        "where sketches are convolved",
    ).by_default("fourier")

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        shape = self.degree, inputs.count
        buckets = rng.integers(0, self.n_components, size=shape)
        return self.stages(buckets, pools.draw_signs(rng, shape))

    def stages(self, buckets: Array, signs: Array) -> list[Stage]:
        """The stages for these hashes and signs, both (sketch, column)."""
        k, g = self.n_components, self.degree
        scale = self.gamma ** (g / 2)
        if self.domain == "fourier":
            return [*self._spectrum(buckets, signs), *self._real_features(scale)]
        sums = _bucket_sums(buckets, signs, k)
        if g == 1:
            return [sums, Linear.scaled(k, scale)]
        return [sums, *self._transform(), *self._back(), Linear.scaled(k, scale)]

    @property
    def _frequencies(self) -> Array:
        return np.arange(self.n_components // 2 + 1)

    @property
    def _alone(self) -> Array:
        """Which frequencies are there once: the others stand for their conjugate as well."""
        once: Array = (self._frequencies == 0) | (2 * self._frequencies == self.n_components)
        return once

    def _waves(self, positions: Array) -> Array:
        """(frequency, part, position): cosines and minus sines, of the transform of buckets."""
        k = self.n_components
        turns = np.outer(self._frequencies, positions) % k * (2 * math.pi / k)
        return np.stack([np.cos(turns), -np.sin(turns)], axis=1)

    def _spectrum(self, buckets: Array, signs: Array) -> list[Stage]:
        """Columns to the products of all sketches' transforms, at half of the frequencies."""
        waves = [self._waves(hashes) * sign for hashes, sign in zip(buckets, signs, strict=True)]
        # (frequency, sketch, part, column)
        weights = np.stack(waves, axis=1).reshape(-1, buckets.shape[1])
        return [Linear.dense(weights), *self._product()]

    def _product(self) -> list[Stage]:
        """The transforms of all sketches, multiplied at each frequency."""
        shape = len(self._frequencies), 1, self.degree, 2
        places = np.arange(math.prod(shape)).reshape(shape)
        return complex_sums(places, np.ones((len(places), 1)), places.size)

    def _real_features(self, scale: float) -> list[Stage]:
        """Real and imaginary parts, each weighed by how often its frequency is there."""
        k = self.n_components
        alone = self._alone
        part = np.stack([np.where(alone, 1, 2), np.where(alone, 0, 2)], axis=1).ravel() / k
        places = np.flatnonzero(part)
        weights = scale * np.sqrt(part[places])
        return [Linear.picked(2 * len(alone), places, weights)]

    def _transform(self) -> list[Stage]:
        """Bucket sums of all sketches to the products of their transforms."""
        k, g = self.n_components, self.degree
        waves = self._waves(np.arange(k))
        weights = np.zeros((len(self._frequencies), g, 2, g, k))
        for sketch in range(g):
            weights[:, sketch, :, sketch] = waves
        return [Linear.dense(weights.reshape(-1, g * k)), *self._product()]

    def _back(self) -> list[Stage]:
        """Half of the frequencies to the buckets of the convolution."""
        k = self.n_components
        times = np.where(self._alone, 1, 2)[:, None, None] / k
        waves = self._waves(np.arange(k)) * times
        return [Linear.dense(waves.transpose(2, 0, 1).reshape(k, -1))]


def _bucket_sums(buckets: Array, signs: Array, k: int) -> Linear:
    """The count sketches: bucket b of sketch j is output j * k + b."""
    g, d = buckets.shape
    bucket = (buckets + k * np.arange(g)[:, None]).ravel()
    column = np.tile(np.arange(d), g)
    order = np.lexsort([column, bucket])
    index = bucket[order].astype("i4"), column[order].astype("i4")
    return Linear.signed(d, g * k, (*index, signs.ravel()[order].astype("i1")))
