"""The stages behind the first one, as records of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sqlkrp.memory import ENTRY_BYTES, require_memory
from sqlkrp.stages.closing import Answers, Bounds, Shares, Votes
from sqlkrp.stages.prepare import Prepare
from sqlkrp.stages.stage import (
    INPUTS,
    NUMBERS,
    OUTPUT,
    OUTPUTS,
    Array,
    Stage,
    column,
    require,
    require_range,
)

__all__ = [
    "FUNCTIONS",
    "RECORDS",
    "Butterflies",
    "Distances",
    "Elementwise",
    "Linear",
    "SumOfProducts",
    "hadamard_matrix",
]

#: Functions of one number; ``sign`` of 0 is +1.
FUNCTIONS = ("cos", "exp", "sign", "sigmoid")


@dataclass(frozen=True, eq=False)
class _Entries(Stage):
    """A stage whose outputs are sums over a table of entries: (output, input, value)."""

    n_sums: int
    output: Array = column(OUTPUTS)
    input: Array = column(INPUTS)
    value: Array = column(NUMBERS)

    @property
    def n_outputs(self) -> int:
        return self.n_sums

    def check(self) -> None:
        require(self.value.ndim == 1, "entries are not (output, input, value)")
        require(not (self.output < 0).any() and not (self.input < 0).any(), "an entry of nothing")
        place = self.output.astype("int64") * self.n_inputs + self.input
        require(bool((np.diff(place) > 0).all()), "entries are out of order, or given twice")

    @cached_property
    def starts(self) -> Array:
        """Where each output's entries begin; one more at the end."""
        return np.searchsorted(self.output, np.arange(self.n_sums + 1))

    def matrix(self) -> Array:
        """Its values as a matrix (output, input)."""
        found = np.zeros((self.n_sums, self.n_inputs))
        found[self.output, self.input] = self.value
        return found


@dataclass(frozen=True, eq=False)
class Linear(_Entries):
    """y = A x + b: each output is a sum of inputs with signs or weights, and a constant.

    The table holds what is not zero of A, sorted by output; an output without entries is its
    constant, or 0. Values that are whole numbers are signs: they only add and subtract.
    """

    constant: Array | None = column(NUMBERS, OUTPUT, default=None)
    picks: bool = False
    """Whether each output reads one input, so that nothing is added up."""

    def check(self) -> None:
        super().check()
        if self.constant is not None:
            require(self.constant.dtype.kind == "f", "a constant is no number")
        one_each = len(self.output) == self.n_sums and (np.diff(self.starts) == 1).all()
        require(not self.picks or bool(one_each), "what picks does not read one input each")
        require(not (self.picks and self.is_signed), "what picks has signs for weights")

    @classmethod
    def signed(cls, n_inputs: int, n_sums: int, table: Sequence[Array]) -> Linear:
        """Sums with signs, of the columns (output, input, sign) of a table."""
        output, input, sign = table
        return cls(n_inputs, n_sums, output, input, sign)

    @classmethod
    def dense(cls, weights: Array, constant: Array | None = None) -> Linear:
        """Sums with the weights of a matrix (output, input), and a constant each."""
        require(weights.ndim == 2, "the weights are not a matrix")
        require_memory(
            ENTRY_BYTES * weights.size, f"a table of {weights.size:,} weights", "fewer features"
        )
        output, input = np.nonzero(weights)
        n_sums, n_inputs = weights.shape
        index = output.astype("i4"), input.astype("i4")
        return cls(n_inputs, n_sums, *index, weights[output, input], constant)

    @classmethod
    def picked(
        cls,
        n_inputs: int,
        place: Array,
        factor: Array | float = 1.0,
        constant: Array | float = 0.0,
    ) -> Linear:
        """One input each, times a factor, plus a constant; with the factor 0 a constant column."""
        count = len(place)
        index = np.arange(count, dtype="i4"), np.asarray(place).astype("i4")
        factors, constants = (
            np.broadcast_to(np.asarray(one, dtype="f8"), count).copy() for one in (factor, constant)
        )
        added = constants if constants.any() else None
        return cls(n_inputs, count, *index, factors, added, picks=True)

    @classmethod
    def scaled(cls, count: int, factor: float, constant: Array | float = 0.0) -> Linear:
        """So many inputs, each times the same factor: where all delayed factors go."""
        require_range(factor != 0, "the factor is zero")
        return cls.picked(count, np.arange(count), factor, constant)

    @property
    def linear(self) -> Linear:
        """It is its own table of hyperplanes."""
        return self

    @property
    def n_entries(self) -> int:
        """How many entries of its hyperplanes are not zero."""
        return len(self.value)

    @property
    def n_blank(self) -> int:
        """How many of its hyperplanes are all zero."""
        return int(np.count_nonzero(np.diff(self.starts) == 0))

    @property
    def is_signed(self) -> bool:
        """Whether it only adds and subtracts."""
        return self.value.dtype.kind == "i"

    @cached_property
    def factor(self) -> float | None:
        """The one factor of all inputs, where there is nothing more to it; else None."""
        as_they_are = self.n_sums == self.n_inputs and bool((self.output == self.input).all())
        if not (self.picks and as_they_are and self.constant is None and len(self.value)):
            return None
        first = float(self.value[0])
        return first if bool((self.value == first).all()) else None


@dataclass(frozen=True, eq=False)
class Butterflies(Stage):
    """Signed sums of a Hadamard pool, in m log2 m additions a chunk of m outputs.

    A chunk puts m of the inputs (-1: none) on places, with signs, and the Hadamard matrix H_m
    transforms it: output ``chunk * m + a`` is sum_i H_m[a, i] * sign * input at place i.
    """

    place: Array = column(INPUTS, OUTPUT)
    sign: Array = column(NUMBERS, OUTPUT)

    def check(self) -> None:
        size = self.outputs_a_row
        require(self.place.ndim == 2, "the places of a chunk are not a table")
        require(self.place.shape == self.sign.shape, "places and signs differ")
        require(self.sign.dtype.kind == "i", "a sign is no sign")
        require(size >= 1 and size & (size - 1) == 0, f"chunk size {size} is no power of two")

    @property
    def n_outputs(self) -> int:
        return int(self.place.size)

    @property
    def outputs_a_row(self) -> int:
        return int(self.place.shape[-1])

    @property
    def n_entries(self) -> int:
        """How many entries of its hyperplanes are not zero."""
        return int(np.count_nonzero(self.place >= 0)) * self.outputs_a_row

    @property
    def n_blank(self) -> int:
        """How many of its hyperplanes are all zero."""
        return int((self.place < 0).all(axis=1).sum()) * self.outputs_a_row

    @classmethod
    def of_blocks(cls, n_inputs: int, size: int, place: Array, sign: Array) -> Butterflies:
        """Of blocks (block, place) of whole chunks, each so many places."""
        return cls(n_inputs, place.reshape(-1, size), sign.reshape(-1, size))

    @cached_property
    def linear(self) -> Linear:
        """Its hyperplanes as a table of signs."""
        size = self.outputs_a_row
        require_memory(
            ENTRY_BYTES * size * self.place.size,
            f"{self.n_outputs:,} hyperplanes of {size:,} columns, written out,",
            "butterflies (form='wide'), smaller blocks or fewer components",
        )
        signs = hadamard_matrix(size)[None] * self.sign[:, None]
        columns = np.broadcast_to(self.place[:, None], signs.shape).reshape(-1, size)
        signs = signs.reshape(-1, size)
        order = np.argsort(columns, axis=1, kind="stable")
        columns = np.take_along_axis(columns, order, axis=1)
        signs = np.take_along_axis(signs, order, axis=1)
        output, place = np.nonzero(columns >= 0)
        table = output.astype("i4"), columns[output, place].astype("i4"), signs[output, place]
        return Linear(self.n_inputs, self.n_outputs, *table)


@dataclass(frozen=True, eq=False)
class SumOfProducts(Stage):
    """Each output is a sum over terms, with a sign, of a product of inputs.

    ``factors[c, t, j]`` is the input that is factor j of term t of component c. A term may have
    fewer factors than another: what it lacks is -1, behind those that it has.
    """

    factors: Array = column(INPUTS, OUTPUT)
    sign: Array = column(NUMBERS, OUTPUT)

    def check(self) -> None:
        require(self.factors.ndim == 3, "the factors are not (component, term, factor)")
        require(self.factors.size > 0, "a component has no terms, or a term no factors")
        require(self.sign.shape == self.factors.shape[:2], "signs and terms differ in number")
        require(self.sign.dtype.kind == "i", "a sign is no sign")
        there = self.factors >= 0
        require(bool(there[:, :, 0].all()), "a term without a factor")
        require(bool((there[:, :, :-1] | ~there[:, :, 1:]).all()), "a factor behind none")

    @property
    def n_outputs(self) -> int:
        return len(self.factors)

    @cached_property
    def is_ragged(self) -> bool:
        """Whether some terms have fewer factors."""
        return bool((self.factors < 0).any())

    @classmethod
    def plain(cls, n_inputs: int, factors: Array) -> SumOfProducts:
        """Sums of products without signs, of factors (component, term, factor)."""
        return cls(n_inputs, factors.astype("i4"), np.ones(factors.shape[:2], dtype="i1"))

    @classmethod
    def squares(cls, count: int) -> SumOfProducts:
        """The square of each of so many inputs."""
        return cls.plain(count, np.repeat(np.arange(count)[:, None, None], 2, axis=2))


@dataclass(frozen=True, eq=False)
class Distances(_Entries):
    """Each output is the squared distance of a row to a point: sum over columns (x - value)^2.

    A point does not read the inputs that it has no entry of.
    """

    def check(self) -> None:
        super().check()
        require(self.value.dtype.kind == "f", "a coordinate is no number")
        require(bool((np.diff(self.starts) > 0).all()), "a point has no coordinate")

    @classmethod
    def to_points(cls, points: Array) -> Distances:
        """Of points (point, input), which read all inputs."""
        n_points, n_inputs = points.shape
        output, input = (place.ravel().astype("i4") for place in np.indices(points.shape))
        return cls(n_inputs, n_points, output, input, points.ravel())


@dataclass(frozen=True, eq=False)
class Elementwise(Stage):
    """Each output is a function of its input."""

    function: str

    def check(self) -> None:
        require(self.function in FUNCTIONS, f"unknown function {self.function!r}")

    @property
    def n_outputs(self) -> int:
        return self.n_inputs


def hadamard_matrix(size: int) -> NDArray[np.int8]:
    """The Sylvester Hadamard matrix: H[a, i] = (-1)^(number of bits set in both a and i)."""
    matrix = np.ones((1, 1), dtype=np.int8)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


#: Every kind of stage by the name that map files use.
RECORDS: dict[str, type[Stage]] = {
    "prepare": Prepare,
    "linear": Linear,
    "butterflies": Butterflies,
    "sum_of_products": SumOfProducts,
    "distances": Distances,
    "elementwise": Elementwise,
    "bounds": Bounds,
    "shares": Shares,
    "votes": Votes,
    "answers": Answers,
}
