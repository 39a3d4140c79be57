"""What is made of projections: products, functions, constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sqlkrp.stages.base import (
    Array,
    Stage,
    Table,
    alike,
    all_inputs,
    first_inputs,
    require,
    require_counts,
    require_indices,
    require_range,
)

__all__ = ["Affine", "Elementwise", "Scale", "SumOfProducts"]


@dataclass(frozen=True, eq=False)
class SumOfProducts(Stage):
    """Each output is a sum over terms, with a sign, of a product of inputs.

    ``factors[c, t, j]`` is the input that is factor j of term t of component c. A term may have
    fewer factors than another: what it lacks is -1, behind those that it has.
    """

    n_inputs: int
    factors: Array
    sign: Array

    def __post_init__(self) -> None:
        require_counts(self.n_inputs)
        require(self.factors.ndim == 3, "the factors are not (component, term, factor)")
        require(self.factors.size > 0, "a component has no terms, or a term no factors")
        require(self.sign.shape == self.factors.shape[:2], "signs and terms differ in number")
        require_indices(self.factors[:, :, 0], self.n_inputs, "factor")
        require_indices(self.factors[:, :, 1:] + 1, self.n_inputs + 1, "factor")
        there = self.factors >= 0
        require(bool((there[:, :, :-1] | ~there[:, :, 1:]).all()), "a factor behind none")
        require(bool(np.isin(self.sign, (-1, 1)).all()), "a sign is neither -1 nor +1")

    @property
    def n_outputs(self) -> int:
        return len(self.factors)

    @cached_property
    def is_ragged(self) -> bool:
        """Whether some terms have fewer factors."""
        return bool((self.factors < 0).any())

    @property
    def additions(self) -> int:
        components, terms, _ = self.factors.shape
        return int(components * (terms - 1))

    @property
    def products(self) -> int:
        return int(np.count_nonzero(self.factors[:, :, 1:] >= 0))

    def magnitude(self, largest: Array) -> Array:
        _, terms, degree = self.factors.shape
        base = np.maximum(largest, 1) if self.is_ragged else largest
        bound: Array = terms * base**degree
        return bound

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        sizes = np.abs(X)
        found = np.zeros((len(X), self.n_outputs))
        _, terms, degree = self.factors.shape
        for term in range(terms):
            place = self.factors[:, term, 0]
            size, error = sizes[:, place], errors[:, place]
            for factor in range(1, degree):
                place = self.factors[:, term, factor]
                there = place >= 0
                other, its = sizes[:, place[there]], errors[:, place[there]]
                error[:, there] = error[:, there] * (other + its) + size[:, there] * its
                size[:, there] *= other
            found += error + eps * (degree + math.sqrt(terms)) * size
        return found

    def apply(self, X: Array) -> Array:
        total = np.zeros((len(X), self.n_outputs), dtype=X.dtype)
        for term in range(self.factors.shape[1]):
            product = X[:, self.factors[:, term, 0]]
            for factor in range(1, self.factors.shape[2]):
                place = self.factors[:, term, factor]
                there = place >= 0
                product[:, there] = product[:, there] * X[:, place[there]]
            total += product * self.sign[:, term].astype(X.dtype)
        return total

    def tables(self) -> dict[str, Table]:
        component, term, factor = np.nonzero(self.factors >= 0)
        return {
            "components": {
                "component": component.astype(np.int32),
                "term": term.astype(np.int32),
                "factor": factor.astype(np.int32),
                "hyperplane": self.factors[component, term, factor].astype(np.int32),
                "sign": self.sign[component, term].astype(np.int8),
            }
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        left = replace(self, factors=self.factors[outputs], sign=self.sign[outputs])
        return left, outputs, np.unique(left.factors[left.factors >= 0])

    def reading(self, inputs: Array) -> Stage:
        place = np.searchsorted(inputs, self.factors)
        factors = np.where(self.factors < 0, -1, place).astype(self.factors.dtype)
        return replace(self, n_inputs=len(inputs), factors=factors)

    def beside(self, others: Sequence[Stage], *, shared: bool) -> Stage:
        stages = alike(SumOfProducts, self, others)
        widest = max(stage.factors.shape[2] for stage in stages)
        factors = []
        for stage, first in zip(stages, first_inputs(stages, shared=shared), strict=True):
            moved = np.where(stage.factors < 0, -1, stage.factors + first)
            lacking = widest - moved.shape[2]
            factors.append(np.pad(moved, ((0, 0), (0, 0), (0, lacking)), constant_values=-1))
        return SumOfProducts(
            all_inputs(stages, shared=shared),
            np.concatenate(factors).astype("i4"),
            np.concatenate([stage.sign for stage in stages]),
        )


@dataclass(frozen=True, eq=False)
class Scale(Stage):
    """Every input times one constant: where all delayed factors go."""

    n_inputs: int
    constant: float

    def __post_init__(self) -> None:
        require_counts(self.n_inputs)
        require_range(bool(np.isfinite(self.constant)), "the scale is not a finite number")
        require_range(self.constant != 0, "the scale is zero")

    @property
    def n_outputs(self) -> int:
        return self.n_inputs

    @property
    def products(self) -> int:
        return self.n_inputs

    def magnitude(self, largest: Array) -> Array:
        return largest * abs(self.constant)

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        found: Array = abs(self.constant) * (errors + 2 * eps * np.abs(X))
        return found

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        return Scale(len(outputs), self.constant), outputs, outputs

    def reading(self, inputs: Array) -> Stage:
        return Scale(len(inputs), self.constant)

    def apply(self, X: Array) -> Array:
        scaled: Array = X * np.asarray(self.constant, dtype=X.dtype)
        return scaled

    def beside(self, others: Sequence[Stage], *, shared: bool) -> Stage:
        stages = alike(Scale, self, others)
        require(len({stage.constant for stage in stages}) == 1, "scales beside each other differ")
        require(not shared or len(stages) == 1, "scales beside each other share their inputs")
        return Scale(all_inputs(stages, shared=shared), self.constant)


@dataclass(frozen=True, eq=False)
class Affine(Stage):
    """Each output is one input times a factor plus a constant: this also picks and repeats.

    With the factor 0 an output is a constant column.
    """

    n_inputs: int
    place: Array
    factor: Array
    constant: Array

    def __post_init__(self) -> None:
        require_counts(self.n_inputs)
        sizes = {self.place.shape, self.factor.shape, self.constant.shape}
        require(len(sizes) == 1 and self.place.ndim == 1, "places, factors and constants differ")
        require_indices(self.place, self.n_inputs, "place")
        numbers = np.isfinite(self.factor).all() and np.isfinite(self.constant).all()
        require_range(bool(numbers), "a factor or a constant is not a finite number")

    @property
    def n_outputs(self) -> int:
        return len(self.place)

    @property
    def additions(self) -> int:
        return int(np.count_nonzero((self.constant != 0) & (self.factor != 0)))

    @property
    def products(self) -> int:
        return int(np.count_nonzero((self.factor != 1) & (self.factor != 0)))

    def magnitude(self, largest: Array) -> Array:
        scaled = largest * float(np.abs(self.factor).max(initial=0))
        bound: Array = scaled + float(np.abs(self.constant).max(initial=0))
        return bound

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        each = errors[:, self.place] + 2 * eps * np.abs(X[:, self.place])
        found: Array = np.abs(self.factor) * each + eps * np.abs(self.constant)
        return found

    def apply(self, X: Array) -> Array:
        values = X[:, self.place]
        values *= self.factor.astype(X.dtype)
        values += self.constant.astype(X.dtype)
        return values

    def tables(self) -> dict[str, Table]:
        return {
            "affine": {
                "output": np.arange(self.n_outputs, dtype=np.int32),
                "place": self.place.astype(np.int32),
                "factor": self.factor.astype(np.float64),
                "constant": self.constant.astype(np.float64),
            }
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        parts = self.place[outputs], self.factor[outputs], self.constant[outputs]
        return Affine(self.n_inputs, *parts), outputs, np.unique(parts[0])

    def reading(self, inputs: Array) -> Stage:
        place = np.searchsorted(inputs, self.place).astype(self.place.dtype)
        return replace(self, n_inputs=len(inputs), place=place)

    def beside(self, others: Sequence[Stage], *, shared: bool) -> Stage:
        stages = alike(Affine, self, others)
        firsts = first_inputs(stages, shared=shared)
        places = [stage.place + first for stage, first in zip(stages, firsts, strict=True)]
        return Affine(
            all_inputs(stages, shared=shared),
            np.concatenate(places).astype("i4"),
            np.concatenate([stage.factor for stage in stages]),
            np.concatenate([stage.constant for stage in stages]),
        )


def _sign(X: Array) -> Array:
    signs: Array = np.where(np.isnan(X), X, np.where(X >= 0, 1.0, -1.0)).astype(X.dtype)
    return signs


#: What a function of one number is in NumPy; dialects have theirs under the same names.
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {"cos": np.cos, "exp": np.exp, "sign": _sign}

#: How far its values may be apart where numbers are apart by so much.
_SPREADS: dict[str, Callable[[Array, Array], Array]] = {
    "cos": lambda X, errors: np.minimum(errors, 2.0),
    "exp": lambda X, errors: np.exp(X) * np.expm1(errors),
    "sign": lambda X, errors: np.where(np.abs(X) <= errors, 2.0, 0.0),
}


@dataclass(frozen=True, eq=False)
class Elementwise(Stage):
    """Each output is a function of its input: ``cos``, ``exp``, or ``sign`` (of 0: +1)."""

    n_inputs: int
    function: str

    def __post_init__(self) -> None:
        require_counts(self.n_inputs)
        require(self.function in _FUNCTIONS, f"unknown function {self.function!r}")

    @property
    def n_outputs(self) -> int:
        return self.n_inputs

    @property
    def products(self) -> int:
        return self.n_inputs

    def magnitude(self, largest: Array) -> Array:
        # Slopes are at most 1 (of exp, where arguments are not positive): what is rounded away
        # of the argument comes out again.
        bound: Array = np.maximum(largest, 1)
        return bound

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        # A few more, as engines have their own cosine and exponential.
        found: Array = _SPREADS[self.function](X, errors) + 4 * eps * np.abs(self.apply(X))
        return found

    def apply(self, X: Array) -> Array:
        values: Array = _FUNCTIONS[self.function](X)
        return values

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        return replace(self, n_inputs=len(outputs)), outputs, outputs

    def reading(self, inputs: Array) -> Stage:
        return replace(self, n_inputs=len(inputs))

    def beside(self, others: Sequence[Stage], *, shared: bool) -> Stage:
        stages = alike(Elementwise, self, others)
        require(
            len({stage.function for stage in stages}) == 1, "functions beside each other differ"
        )
        require(not shared or len(stages) == 1, "functions beside each other share their inputs")
        return Elementwise(all_inputs(stages, shared=shared), self.function)
