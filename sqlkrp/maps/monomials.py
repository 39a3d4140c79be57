"""All monomials of a table's columns: the polynomial kernel, with nothing left to chance."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY
from itertools import chain, combinations_with_replacement
from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps.kernels import Kernel, polynomial
from sqlkrp.maps.parameters import with_parameters
from sqlkrp.maps.shared import COEF0, DEGREE, GAMMA, LARGEST, SingleMap
from sqlkrp.maps.source import Inputs
from sqlkrp.stages import Array, Linear, Program, Stage, SumOfProducts

__all__ = ["Monomials", "orders"]

# Each is a feature, and has a row of as many factors as the degree.
_MOST_MONOMIALS = 1_000_000
_MOST_FACTORS = 30_000_000
# From here on a number of monomials is told by its size.
_TOLD_IN_FULL = 10**15
# Postgres has the shortest names of all engines; the same map has the same names in each.
_LONGEST_NAME = 63
# Columns of whose names no clear ones are made: those of products, and of features.
_UNCLEAR = re.compile(r".*[*^].*|monomial_\d+", re.IGNORECASE | re.DOTALL)


@with_parameters
class Monomials(SingleMap):
    r"""All monomials of the columns up to degree g, weighted: the polynomial kernel, exactly.

    There is a feature for each product x^a of columns with |a| = a_1 + ... + a_d <= g,

        f_a(x) = sqrt(g! / (a_0! a_1! ... a_d!) * gamma^|a| * coef0^a_0) * x^a,  a_0 = g - |a|,

    so that <f(x), f(y)> = (gamma <x, y> + coef0)^g by the multinomial theorem, whatever the rows.
    With ``coef0=0`` there are those of degree g only. Nothing is random here.

    Choose it where d columns have few monomials, (d + g)! / (d! g!), and where a feature is to have
    a meaning; up to 1,000,000 are taken. For more, :class:`KRP` estimates the same kernel.

    A feature's name says which columns it multiplies: ``1``, ``age``, ``income``, ``age^2``,
    ``age*income``, by degree, then by columns, as scikit-learn's ``PolynomialFeatures`` has them.
    These are columns as they are prepared (scaled, held, filled), times the weight: ``age`` is not
    the table's. What has no clear name is numbered, as ``monomial_7``: where a column's own name
    holds * or ^ or looks like such a number, where two names are equal or differ only in case, and
    where one is longer than 63 bytes. ``legend`` has what these are, and ``sqlkrp inspect`` shows
    it. Take an array (``output="array"``) to keep a column beside them that has a feature's name,
    and in BigQuery, which has no columns with * or ^ in their names.

    >>> monomials = Monomials(degree=2, gamma=1.0).fit(["age", "income"])
    >>> monomials.get_feature_names_out().tolist()
    ['1', 'age', 'income', 'age^2', 'age*income', 'income^2']
    """

    prefix = "monomial"
    headline = ("degree",)

    degree: int = DEGREE.by_default(2)
    _: KW_ONLY
    coef0: float = COEF0.by_default(1.0)
    gamma: Any = GAMMA.by_default("auto")  # a number by the time of the draw

    def constant(self, n_columns: int) -> float | None:
        # The monomial of degree 0 is a product of nothing: this column.
        return 1.0 if self.coef0 else None

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        d = inputs.count - bool(self.coef0)
        self._require_fits(d)
        factors = self._factors(d)
        weights = self._weights(factors)
        if self.coef0:
            factors[0, 0] = d
        products = SumOfProducts.plain(inputs.count, factors[:, None, :])
        return [products, Linear.picked(len(factors), np.arange(len(factors)), weights)]

    def estimated_kernel(self) -> Kernel | None:
        return polynomial(self.degree, self.gamma, self.coef0)

    @property
    def counted_by(self) -> str | None:
        return None

    @property
    def is_random(self) -> bool:
        return False

    def names(self, columns: Sequence[str]) -> list[str]:
        products = [
            Counter(columns[place] for place in one) for one in self._products(len(columns))
        ]
        names = list(map(_name, products))
        alike = Counter(map(str.casefold, names))
        return [
            name if alike[name.casefold()] == 1 and _is_clear(name, one) else f"{self.prefix}_{i}"
            for i, (name, one) in enumerate(zip(names, products, strict=True))
        ]

    def legend_of(self, program: Program) -> dict[str, dict[str, int]]:
        _, products, weights = program.stages
        assert isinstance(products, SumOfProducts)
        assert isinstance(weights, Linear)
        columns = program.prepare.told
        found = {}
        for name, factors in zip(
            program.names, products.factors[weights.input, 0].tolist(), strict=True
        ):
            # Behind the columns is that of ones.
            product = Counter(columns[place] for place in factors if 0 <= place < len(columns))
            if name != _name(product):
                found[name] = dict(product)
        return found

    def _require_fits(self, d: int) -> None:
        g = self.degree
        count = math.comb(d + g, g) if self.coef0 else math.comb(d + g - 1, g)
        most = min(_MOST_MONOMIALS, _MOST_FACTORS // g)
        if count > most:
            told = f"{count:,}" if count < _TOLD_IN_FULL else f"about 10^{math.log10(count):.0f}"
            raise ParameterError(
                f"{d:,} columns have {told} monomials of degree {'up to ' * bool(self.coef0)}{g}, "
                f"and this map takes up to {most:,}: use fewer columns, a smaller degree, or "
                f"KRP(degree={g}), which estimates the same kernel"
            )

    def _products(self, d: int) -> Iterator[tuple[int, ...]]:
        """The columns that each monomial multiplies: by degree, then by columns."""
        for degree in range(0 if self.coef0 else self.degree, self.degree + 1):
            yield from combinations_with_replacement(range(d), degree)

    def _factors(self, d: int) -> Array:
        """The same as a table (monomial, factor), with -1 for what a monomial lacks."""
        g = self.degree
        rows = (one + (-1,) * (g - len(one)) for one in self._products(d))
        return np.fromiter(chain.from_iterable(rows), dtype="i4").reshape(-1, g)

    def _weights(self, factors: Array) -> Array:
        """The weights of such a table's monomials."""
        g, c, gamma = self.degree, self.coef0, self.gamma
        # As doubles: of whole numbers some would be too large for any integer of NumPy's.
        terms = np.array([math.comb(g, n) * gamma**n * c ** (g - n) for n in range(g + 1)], "f8")
        weights: Array = np.sqrt(terms[np.count_nonzero(factors >= 0, axis=1)] * orders(factors))
        if not ((weights > 1 / LARGEST) & (weights < LARGEST)).all():
            raise ParameterError(
                f"gamma={gamma!r}, coef0={c!r} and degree={g!r} leave the range of numbers: use "
                "values nearer to 1"
            )
        return weights


def orders(factors: Array) -> Array:
    """In how many orders each monomial's factors can stand: n! / (a_1! ... a_d!).

    One factor after another, so that each step is a whole number, and exact while it is small.
    """
    orders, run = np.ones(len(factors)), np.zeros(len(factors))
    for place, factor in enumerate(factors.T):
        again = factor == factors[:, place - 1] if place else np.zeros(len(factors), dtype=bool)
        run = np.where(again, run + 1, 1)
        orders = np.where(factor >= 0, orders * (place + 1) / run, orders)
    return orders


def _name(product: Mapping[str, int]) -> str:
    """What a product of columns, each to a power, is called."""
    return "*".join(_power(column, power) for column, power in product.items()) or "1"


def _power(column: str, power: int) -> str:
    return column if power == 1 else f"{column}^{power}"


def _is_clear(name: str, columns: Iterable[str]) -> bool:
    """Whether the name of a product of columns can be written, and be read in one way."""
    return len(name.encode()) <= _LONGEST_NAME and not any(map(_UNCLEAR.fullmatch, columns))
