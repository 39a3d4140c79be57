"""Models as what many of them are: polynomials in the prepared columns, with exact coefficients."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from sqlkrp.stages import (
    Array,
    Butterflies,
    Linear,
    Paths,
    Prepare,
    Program,
    Stage,
    SumOfProducts,
    cost,
)

__all__ = [
    "Monomial",
    "Polynomials",
    "by_monomials",
    "cheaper_as_polynomial",
    "degree_of",
    "few_monomials",
    "monomials_of",
    "polynomial_program",
    "polynomials_at",
    "polynomials_of",
    "prepared_columns",
    "product_name",
]

# More monomials are no text that anybody reads, and no engine computes them quickly.
_MOST_MONOMIALS = 50_000
# Numbers in the products of two polynomials that are worked out at once.
_NUMBERS_AT_ONCE = 20_000_000

Monomial = tuple[int, ...]


@dataclass(frozen=True)
class Polynomials:
    """Polynomials in some columns: of each (row) the coefficient of each monomial.

    A monomial is the places of its factors, in order; the first has none.
    """

    n_columns: int
    degree: int
    coefficients: Array

    @property
    def monomials(self) -> tuple[Monomial, ...]:
        """The monomials of at most this degree."""
        return monomials_of(self.n_columns, self.degree)

    @property
    def strongest(self) -> Array:
        """The monomials that are there, without the constant: those of large coefficients first."""
        sizes = np.abs(self.coefficients[:, 1:]).max(axis=0)
        order: Array = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)] + 1
        return order

    @classmethod
    def of_columns(cls, scale: Array, offset: Array) -> Polynomials:
        """Each of some columns, times a scale, plus an offset."""
        return cls(len(scale), 1, np.column_stack([offset, np.diag(scale)]))

    def with_constant(self, value: float) -> Polynomials:
        """These, and behind them a polynomial that is a number."""
        row = np.zeros((1, self.coefficients.shape[1]))
        row[0, 0] = value
        rows = np.concatenate([self.coefficients, row])
        return Polynomials(self.n_columns, self.degree, rows)


_POWERS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def product_name(columns: Sequence[str]) -> str:
    """A product of columns, as people write it.

    >>> product_name(["age", "age"])
    'age²'
    """
    factors = (
        name + (str(count).translate(_POWERS) if count > 1 else "")
        for name, count in Counter(columns).items()
    )
    return " × ".join(factors) or "1"


@cache
def monomials_of(n_columns: int, degree: int) -> tuple[Monomial, ...]:
    """All monomials of so many columns up to a degree: by degree, then by columns."""
    places = range(n_columns)
    return tuple(
        one for count in range(degree + 1) for one in combinations_with_replacement(places, count)
    )


def degree_of(stages: Sequence[Stage]) -> int | None:
    """The degree of what stages make of inputs, if each of it is a polynomial."""
    degree = 1
    for stage in stages:
        if isinstance(stage, SumOfProducts):
            degree *= stage.factors.shape[2]
        elif isinstance(stage, Paths):
            degrees = [degree_of(path) for path in stage.paths]
            if None in degrees:
                return None
            degree *= max(one for one in degrees if one is not None)
        elif not isinstance(stage, (Linear, Butterflies)):
            return None
    return degree


def polynomials_of(stages: Sequence[Stage], inputs: Polynomials) -> Polynomials:
    """What stages make of inputs that are polynomials."""
    found = inputs
    for stage in stages:
        if isinstance(stage, SumOfProducts):
            found = _sums_of_products(stage, found)
        elif isinstance(stage, Paths):
            found = _side_by_side([polynomials_of(path, found) for path in stage.paths])
        else:
            assert isinstance(stage, (Linear, Butterflies))
            found = _sums(stage.linear, found)
    return found


def _side_by_side(parts: Sequence[Polynomials]) -> Polynomials:
    """All of some polynomials: the monomials of a degree begin with those of a lower one."""
    degree = max(one.degree for one in parts)
    width = max(one.coefficients.shape[1] for one in parts)
    rows = [
        np.pad(one.coefficients, [(0, 0), (0, width - one.coefficients.shape[1])]) for one in parts
    ]
    return Polynomials(parts[0].n_columns, degree, np.concatenate(rows))


def _sums(stage: Linear, inputs: Polynomials) -> Polynomials:
    rows = np.zeros((stage.n_sums, inputs.coefficients.shape[1]))
    np.add.at(rows, stage.output, stage.value[:, None] * inputs.coefficients[stage.input])
    if stage.constant is not None:
        rows[:, 0] += stage.constant
    return Polynomials(inputs.n_columns, inputs.degree, rows)


def _sums_of_products(stage: SumOfProducts, inputs: Polynomials) -> Polynomials:
    _, _, n_factors = stage.factors.shape
    # What a term lacks is 1, behind all others.
    rows = inputs.with_constant(1.0).coefficients
    count = len(monomials_of(inputs.n_columns, inputs.degree * n_factors))
    found = np.zeros((stage.n_outputs, count))
    size = max(1, _NUMBERS_AT_ONCE // (count * stage.factors.shape[1]))
    for first in range(0, stage.n_outputs, size):
        factors = stage.factors[first : first + size]
        product, degree = rows[factors[:, :, 0]], inputs.degree
        for place in range(1, n_factors):
            product = _times(product, degree, rows[factors[:, :, place]], inputs)
            degree += inputs.degree
        signs = stage.sign[first : first + size].astype("f8")
        found[first : first + size] = np.einsum("ct,ctm->cm", signs, product)
    return Polynomials(inputs.n_columns, inputs.degree * n_factors, found)


def _times(one: Array, degree: int, other: Array, inputs: Polynomials) -> Array:
    """Products of polynomials of some degree with others of the degree of inputs."""
    place = _places_of_products(inputs.n_columns, degree, inputs.degree)
    count = len(monomials_of(inputs.n_columns, degree + inputs.degree))
    found = np.zeros((*one.shape[:2], count))
    for column in np.flatnonzero(other.any(axis=(0, 1))):
        # Within a column each place is there once.
        found[:, :, place[:, column]] += one * other[:, :, column, None]
    return found


@cache
def _places_of_products(n_columns: int, degree: int, other: int) -> Array:
    """Where the product of two monomials is among those of their degrees together."""
    places = {one: i for i, one in enumerate(monomials_of(n_columns, degree + other))}
    second = monomials_of(n_columns, other)
    return np.array(
        [
            [places[tuple(sorted(one + more))] for more in second]
            for one in monomials_of(n_columns, degree)
        ]
    )


# --- programs -----------------------------------------------------------------------------------


def polynomial_program(program: Program, last: int) -> Program | None:
    """The same program by monomials of its prepared columns, up to the sums at a place.

    None if these are no polynomials, or have too many monomials.
    """
    found = polynomials_at(program, last)
    return None if found is None else by_monomials(program, last, found)


def polynomials_at(program: Program, last: int) -> Polynomials | None:
    """The sums at a place of a program as polynomials in its prepared columns.

    None if these are no polynomials, or have too many monomials.
    """
    prepare, stages = program.prepare, program.stages[1 : last + 1]
    degree = degree_of(stages)
    if degree is None or not few_monomials(len(prepare.columns), degree):
        return None
    return polynomials_of(stages, prepared_columns(prepare))


def prepared_columns(prepare: Prepare) -> Polynomials:
    """The prepared columns as polynomials in themselves."""
    count = len(prepare.columns)
    found = Polynomials.of_columns(np.ones(count), np.zeros(count))
    return found if prepare.constant is None else found.with_constant(prepare.constant)


def few_monomials(n_columns: int, degree: int) -> bool:
    """Whether there are few enough monomials to be written down."""
    return math.comb(n_columns + degree, degree) <= _MOST_MONOMIALS


def by_monomials(program: Program, last: int, polynomials: Polynomials) -> Program:
    """The program whose sums at a place are these polynomials in its prepared columns."""
    used = np.flatnonzero(polynomials.coefficients.any(axis=0))
    used = used[used > 0]
    monomials = [polynomials.monomials[place] for place in used.tolist()]
    prepare = _without_constant(program.prepare)
    weights = Linear.dense(polynomials.coefficients[:, used], polynomials.coefficients[:, 0].copy())
    if not monomials:  # a number, whatever the columns hold
        factors: list[Stage] = [Linear.picked(prepare.n_outputs, np.zeros(1, dtype="i4"))]
        weights = Linear.dense(np.zeros((len(weights.matrix()), 1)), weights.constant)
    else:
        factors = [_products(prepare.n_outputs, monomials)]
    return Program((prepare, *factors, weights, *program.stages[last + 1 :]), program.names)


def _without_constant(prepare: Prepare) -> Prepare:
    return replace(prepare, constant=None)


def _products(n_inputs: int, monomials: Sequence[Monomial]) -> SumOfProducts:
    width = max(map(len, monomials))
    factors = np.full((len(monomials), 1, width), -1, dtype="i4")
    for place, monomial in enumerate(monomials):
        factors[place, 0, : len(monomial)] = monomial
    return SumOfProducts(n_inputs, factors, np.ones((len(monomials), 1), dtype="i1"))


def cheaper_as_polynomial(program: Program, last: int) -> Program | None:
    """The same program by monomials, if that has fewer operations a row."""
    stages = program.stages[1 : last + 1]
    degree = degree_of(stages)
    if degree is None or degree < 2:
        return None
    n_columns = len(program.prepare.columns)
    count = math.comb(n_columns + degree, degree)
    operations = sum(sum(cost(stage)) for stage in stages)
    # Each monomial has a product for each factor but one, and for each decision one more and a sum.
    if count * (degree - 1 + 2 * stages[-1].n_outputs) >= operations:
        return None
    return polynomial_program(program, last)
