"""Short models: the strongest terms of the polynomial that a model is, and the error of the rest.

The terms are chosen in the prepared columns, where the sizes of coefficients can be compared. Two
things are said of those that are dropped: what they add at most, which the bounds of the columns
tell without any row, and what they add on rows that somebody has.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.advice import counted
from sqlkrp.models.polynomials import (
    Monomial,
    Polynomials,
    by_monomials,
    polynomials_at,
    product_name,
)
from sqlkrp.stages import Array, Prepare, Program

__all__ = ["Measured", "Shortening", "measured", "shortened"]


class Measured(NamedTuple):
    """What a short model says of rows, compared with what the whole one says."""

    rows: int
    """How many rows, of those that have an answer."""
    what: str
    """What of the models is compared: decisions, probabilities or predictions."""
    largest: float
    """The largest difference."""
    root_mean_square: float
    deviation: float
    """The standard deviation of what the whole model says: what the differences are to be held
    against."""
    labels: float | None
    """The share of rows whose label is another; None of a regression."""

    def told(self) -> str:
        """The differences in words."""
        text = (
            f"on {counted(self.rows, 'row')} at most {self.largest:.3g} of a {self.what}, root "
            f"mean square {self.root_mean_square:.3g}, where its standard deviation is "
            f"{self.deviation:.3g}"
        )
        return text if self.labels is None else f"{text}; {self.labels:.2%} of labels differ"


class Shortening(NamedTuple):
    """How many terms of how many a short model has, and the error that this causes."""

    terms: int
    of: int
    bound: float | None
    """What the dropped terms add at most to a sum of terms; None where a column has no bounds."""
    measured: Measured | None = None

    @classmethod
    def from_file(cls, value: Any) -> Shortening | None:
        """The same of the list that a model file has."""
        if value is None:
            return None
        terms, of, bound, found = value
        return cls(terms, of, bound, None if found is None else Measured(*found))

    def is_of(self, count: int) -> bool:
        """Whether this can be told of a model with so many terms."""
        numbers = [] if self.bound is None else [self.bound]
        if self.measured is not None:
            rows, what, *rest = self.measured
            if type(rows) is not int or rows < 1 or not isinstance(what, str):
                return False
            numbers += [one for one in rest if one is not None]
        whole = type(self.terms) is int and type(self.of) is int and count == self.terms < self.of
        return whole and all(isinstance(one, float) and one >= 0 for one in numbers)

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"the strongest {self.terms:,} of {counted(self.of, 'term')}"

    @property
    def error(self) -> str:
        """What the dropped terms are worth, in words."""
        if self.bound is None:
            at_most = "no bound is known, as columns of dropped terms are not held (clip)"
        else:
            at_most = f"at most {self.bound:.3g} in a sum of terms, whatever a row holds"
        on_rows = "not measured on rows" if self.measured is None else self.measured.told()
        return f"{at_most}; {on_rows}"

    def as_plain(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        found = None if self.measured is None else self.measured._asdict()
        return self._asdict() | {"measured": found}


def shortened(
    program: Program, last: int, terms: int
) -> tuple[Program, tuple[str, ...], Shortening]:
    """A program whose sums at a place are of their strongest terms, and the names of these.

    It reads no column that none of them has, unless such a column decides what a row becomes.
    """
    found = polynomials_at(program, last)
    if found is None:
        raise ParameterError(
            "this model is no polynomial of few enough terms in its columns: it has none to drop, "
            "so score it as it is"
        )
    order = found.strongest
    if terms >= len(order):
        raise ParameterError(
            f"terms={terms} is not allowed: this model has {counted(len(order), 'term')}, of which "
            "none would be dropped; give fewer"
        )
    kept, dropped = np.sort(order[:terms]), order[terms:]
    coefficients = np.zeros_like(found.coefficients)
    there = np.append(0, kept)  # the constant stays
    coefficients[:, there] = found.coefficients[:, there]
    short = by_monomials(program, last, replace(found, coefficients=coefficients)).only()
    told = program.prepare.told
    names = tuple(
        product_name([told[place] for place in found.monomials[one]]) for one in kept.tolist()
    )
    return short, names, Shortening(terms, len(order), _bound(program.prepare, found, dropped))


def measured(whole: Array, short: Array, what: str, *, has_labels: bool) -> Measured:
    """How far what a short model says is off; the last column may be labels.

    Of the rows of which the whole model has an answer, which is a number.
    """
    there = np.isfinite(whole).all(axis=1)
    if not there.any():
        raise ColumnError("no row of those to measure the error on has an answer: give others")
    before, after = whole[there].astype("f8"), short[there].astype("f8")
    labels = None
    if has_labels:
        labels = float(np.mean(before[:, -1] != after[:, -1]))
        before, after = before[:, :-1], after[:, :-1]
    with np.errstate(all="ignore"):  # of numbers at the end of their range
        off = np.where(np.isfinite(after), np.abs(before - after), np.inf)
        root_mean_square = math.sqrt(float(np.mean(off**2)))
        deviation = math.sqrt(float(np.mean(before.var(axis=0))))
    return Measured(len(before), what, float(off.max()), root_mean_square, deviation, labels)


# --- what terms add at most -----------------------------------------------------------------------


def _bound(prepare: Prepare, found: Polynomials, terms: Array) -> float | None:
    """What these terms add at most to a sum, whatever its sign."""
    low, high = _ranges(prepare)
    least, most = np.zeros((2, len(found.coefficients)))
    for term in terms.tolist():
        ends = _range_of(found.monomials[term], low, high)
        if not np.isfinite(ends).all():
            return None
        values = np.multiply.outer(found.coefficients[:, term], ends)
        least, most = least + values.min(axis=1), most + values.max(axis=1)
    return float(max(np.abs(least).max(), np.abs(most).max()))


def _ranges(prepare: Prepare) -> tuple[Array, Array]:
    """The least and the largest value of each prepared column; infinite where nothing is known."""
    count = len(prepare.columns)
    if prepare.unit_length:
        return np.full(count, -1.0), np.ones(count)
    made = {one.name for one in prepare.categories if one.is_indicator}
    is_made = np.array([name in made for name in prepare.columns])  # 0 or 1
    ends = np.array([np.where(is_made, 0, -np.inf), np.where(is_made, 1, np.inf)])
    if prepare.bounds:
        end = np.finfo(prepare.dtype).max
        low, high = (one.astype("f8") for one in prepare.bounds)
        low, high = np.where(low <= -end, -np.inf, low), np.where(high >= end, np.inf, high)
        ends = np.clip(ends, low, high)
    scale, shift = prepare.scale.astype("f8"), prepare.shift.astype("f8")
    with np.errstate(invalid="ignore"):
        scaled = np.where(scale == 0, 0.0, (ends - shift) * scale)
    return scaled.min(axis=0), scaled.max(axis=0)


def _range_of(monomial: Monomial, low: Array, high: Array) -> Array:
    """The least and the largest value of a product of columns, each on its own."""
    ends = np.ones(2)
    for column, power in Counter(monomial).items():
        least, most = low[column], high[column]
        powers = [least**power, most**power]
        if power % 2 == 0 and least < 0 < most:
            powers.append(0.0)
        with np.errstate(invalid="ignore"):  # of what has no bounds
            products = np.multiply.outer(ends, powers)
        ends = np.array([products.min(), products.max()])
    return ends
