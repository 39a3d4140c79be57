"""The polynomial kernel degree by degree: low degrees exactly, the others by random products."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from itertools import combinations_with_replacement

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import Whole
from sqlkrp.maps.krp import BLOCK_SIZE, KRP, N_TERMS
from sqlkrp.maps.monomials import orders
from sqlkrp.maps.parameters import with_parameters
from sqlkrp.maps.shared import DEGREE, LARGEST, PolynomialMap
from sqlkrp.maps.source import Inputs
from sqlkrp.stages import Linear, Paths, Stage, SumOfProducts

__all__ = ["MixedKRP"]

# Coefficients of higher degrees leave the range of numbers.
_HIGHEST_DEGREE = 30
# Monomials of one degree take this share of what features are left at the most: else the other
# degrees would be estimated badly.
_MOST_EXACT = 0.5


@with_parameters
class MixedKRP(PolynomialMap):
    r"""KRP for high degrees, beside all monomials of low ones: less error on few columns.

    The kernel is a sum over degrees n of a_n <x, y>^n, with
    a_n = binom(g, n) * gamma^n * coef0^(g - n). From the lowest on, a degree whose monomials fit
    into half of the features that are left is exact (the constant, the columns, their products);
    those above, the highest always, have a :class:`KRP` each, with shares of the other features as
    these degrees have shares of the kernel. So

        E <f(x), f(y)> = (gamma * <x, y> + coef0) ** degree,

    and only what is above the exact degrees varies. Where not even the columns fit, this is
    :class:`KRP`.

    Choose it where columns are standardised, as those of tables are by default, and few beside the
    features. Columns that lie far from 0, as pixels do, make high degrees weigh more than is
    counted on here: leave these to :class:`KRP`. Features are of different kinds, lower degrees
    first, and differ in size as the kernel's terms do: a model that scales them anew has another
    kernel.

    References: as of :class:`KRP`; for degrees apart, J. Wacker, M. Kanagawa, M. Filippone,
    "Improved random features for dot product kernels", 2022.

    >>> mixed = MixedKRP(degree=2, n_components=40, random_state=0).fit(["a", "b", "c"])
    >>> mixed.transform([[1.0, 0.0, 2.0]]).shape
    (1, 40)
    """

    prefix = "mkrp"
    headline = ("degree", "n_components")

    degree: int = DEGREE.by_default(2, check=Whole(1, _HIGHEST_DEGREE))
    _: KW_ONLY
    n_terms: int | str = N_TERMS.by_default("auto")
    block_size: int = BLOCK_SIZE.by_default(64)

    def constant(self, n_columns: int) -> float | None:
        # It is a feature of its own, or a column of KRP's, which is made where that is drawn.
        return None

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        d = inputs.count
        coefficients = self._coefficients()
        degrees = [n for n, a in enumerate(coefficients) if a]
        counts = {n: math.comb(d + n - 1, n) for n in degrees}
        exact, left = list[int](), self.n_components
        for n in degrees[:-1]:
            if counts[n] > _MOST_EXACT * left:
                break
            exact.append(n)
            left -= counts[n]
        others = degrees[len(exact) :]
        if 1 in others or len(others) > left:
            return [Paths(d, (self._whole(d, rng),))]
        features = _shared_out(left, [self._weight(n) for n in others])
        paths = [_monomials(d, n, coefficients[n]) for n in exact]
        for n, k in zip(others, features, strict=True):
            one = self._krp(n, k, gamma=coefficients[n] ** (1 / n), coef0=0.0)
            paths.append(tuple(one.stages(d, rng)))
        return [Paths(d, tuple(paths))]

    def _coefficients(self) -> list[float]:
        """What each degree's power of the inner product is multiplied by."""
        g = self.degree
        found = [self._weight(n) * self.gamma**n for n in range(g + 1)]
        if not all(a == 0 or 1 / LARGEST < a < LARGEST for a in found) or not found[g]:
            raise ParameterError(
                f"gamma={self.gamma!r}, coef0={self.coef0!r} and degree={g!r} leave the range of "
                "numbers: use values nearer to 1"
            )
        return found

    def _weight(self, n: int) -> float:
        """The same where gamma <x, y> is about 1."""
        return float(math.comb(self.degree, n) * self.coef0 ** (self.degree - n))

    def _krp(self, degree: int, k: int, gamma: float, coef0: float) -> KRP:
        return KRP(
            degree, k, n_terms=self.n_terms, block_size=self.block_size, gamma=gamma, coef0=coef0
        )

    def _whole(self, d: int, rng: np.random.Generator) -> tuple[Stage, ...]:
        """All degrees at once."""
        krp = self._krp(self.degree, self.n_components, self.gamma, self.coef0)
        constant = krp.constant(d)
        places, factor, added = np.arange(d), np.ones(d), np.zeros(d)
        if constant is not None:
            places, factor = np.append(places, 0), np.append(factor, 0.0)
            added = np.append(added, constant)
        reads = Linear.picked(d, places, factor, added)
        return (reads, *krp.stages(reads.n_outputs, rng))


def _shared_out(count: int, weights: list[float]) -> list[int]:
    """So many features in shares of these weights, at least one each."""
    rest = count - len(weights)
    ends = np.floor(rest * np.cumsum(weights) / sum(weights) + 1e-9).astype(int)
    found: list[int] = (1 + np.diff(ends, prepend=0)).tolist()
    return found


def _monomials(d: int, n: int, coefficient: float) -> tuple[Stage, ...]:
    """All products of n of d columns, weighted so that their inner product is the power's."""
    if n == 0:
        return (Linear.picked(d, np.zeros(1, dtype="i4"), 0.0, math.sqrt(coefficient)),)
    factors = np.array(list(combinations_with_replacement(range(d), n)), dtype="i4")
    weights = np.sqrt(coefficient * orders(factors))
    if n == 1:
        return (Linear.picked(d, factors[:, 0], weights),)
    products = SumOfProducts.plain(d, factors[:, None])
    return (products, Linear.picked(len(factors), np.arange(len(factors)), weights))
