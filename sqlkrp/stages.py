"""The stages of a row program and their NumPy twins.

A feature map is a short list of stages, each taking a vector of inputs to the next. A stage holds
its numbers (they are the truth: nothing is drawn again), knows what it computes (``apply``), what
it costs (``additions``, ``products``), and which tables describe it to a database (``tables``).
How it is written in SQL is in ``sqlkrp.sql``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError, MapFileError, MissingValueError

__all__ = [
    "STAGES",
    "Butterflies",
    "Prepare",
    "Program",
    "Projection",
    "Scale",
    "SignedSums",
    "Stage",
    "SumOfProducts",
    "WeightedSums",
]

Array = NDArray[Any]
Table = dict[str, Array]

# Bounds the working memory of the twins: a slab of rows (or of hyperplanes) at a time.
_SLAB_VALUES = 4_000_000


class Stage:
    """One step of a row program: ``n_inputs`` values in, ``n_outputs`` values out, per row."""

    n_inputs: int

    @property
    def n_outputs(self) -> int:
        """How many values a row has after this stage."""
        raise NotImplementedError

    @property
    def additions(self) -> int:
        """Additions and subtractions a row."""
        return 0

    @property
    def products(self) -> int:
        """Multiplications and divisions a row."""
        return 0

    def apply(self, X: Array) -> Array:
        """The NumPy twin: rows of inputs to rows of outputs, in the dtype of ``X``."""
        raise NotImplementedError

    def magnitude(self, largest: Array) -> Array:
        """A bound on the terms that are added on the way, given one on each row's inputs.

        Rounding errors are in proportion to it, however small a sum comes out.
        """
        return largest

    def tables(self) -> dict[str, Table]:
        """The tables that describe this stage to a database, by name."""
        return {}

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        """The stage without what these outputs (sorted) do not need.

        Beside it, the outputs that it has left, which may be more where some come only together,
        and the inputs that it needs.
        """
        raise NotImplementedError

    def reading(self, inputs: Array) -> Stage:
        """The same stage where these inputs (sorted, all that are used) are all there are."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Prepare(Stage):
    """Cast, missing values, (x - shift) * scale, unit length of the row, and a constant column.

    A value is *missing* when it is NULL, NaN or infinite: one rule for every engine and type.
    """

    columns: tuple[str, ...]
    fill: Array
    """What a missing value is read as; used by the policies ``zero`` and ``mean``."""
    shift: Array
    scale: Array
    nulls: str = "error"
    unit_length: bool = False
    constant: float | None = None
    dtype: str = "float64"
    booleans: tuple[str, ...] = ()
    """The columns that were truth values at fit; some engines cast these in two steps."""
    n_inputs: int = field(init=False)

    POLICIES: ClassVar[tuple[str, ...]] = ("error", "zero", "mean", "propagate")

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_inputs", len(self.columns))
        for numbers in (self.fill, self.shift, self.scale):
            _require(numbers.shape == (len(self.columns),), "columns and statistics differ")
            _require(bool(np.isfinite(numbers).all()), "a statistic is not a finite number")
        _require_names(self.columns, "column")
        _require(set(self.booleans) <= set(self.columns), "a boolean column is no column")
        _require(self.nulls in self.POLICIES, f"unknown policy for missing values {self.nulls!r}")
        _require(self.dtype in ("float32", "float64"), f"unknown dtype {self.dtype!r}")

    @property
    def n_outputs(self) -> int:
        return len(self.columns) + (self.constant is not None)

    @property
    def fills(self) -> bool:
        """Whether missing values are replaced."""
        return self.nulls in ("zero", "mean")

    @property
    def additions(self) -> int:
        return int(np.count_nonzero(self.shift)) + (len(self.columns) if self.unit_length else 0)

    @property
    def products(self) -> int:
        unit = 2 * len(self.columns) if self.unit_length else 0
        return int(np.count_nonzero(self.scale != 1)) + unit

    def apply(self, X: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.array(X, dtype=self.dtype)
            missing = ~np.isfinite(values)
            left_blank = missing.any(axis=1) & (self.nulls == "propagate")
            self._treat(values, missing)
            values[left_blank] = np.nan
            values -= self.shift.astype(self.dtype)
            values *= self.scale.astype(self.dtype)
            if self.unit_length:
                norm = np.sqrt(np.sum(values * values, axis=1, keepdims=True))
                # A row of zeros has no direction: it stays a row of zeros.
                values = np.where(norm == 0, values, values / np.where(norm == 0, 1, norm))
        if self.constant is not None:
            ones = np.where(left_blank, np.nan, self.constant)
            values = np.column_stack([values, ones.astype(self.dtype)])
        return values

    def _treat(self, values: Array, missing: Array) -> None:
        if self.nulls == "error" and missing.any():
            counts = missing.sum(axis=0)
            raise MissingValueError(missing_message(dict(zip(self.columns, counts, strict=True))))
        if self.fills:
            np.copyto(values, self.fill.astype(self.dtype), where=missing)

    def tables(self) -> dict[str, Table]:
        return {
            "columns": {
                "feature": np.arange(len(self.columns), dtype=np.int32),
                "name": np.array(self.columns, dtype=object),
                "fill": self.fill.astype(self.dtype),
                "shift": self.shift.astype(self.dtype),
                "scale": self.scale.astype(self.dtype),
            }
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        d = len(self.columns)
        if self.unit_length or self.nulls == "propagate":
            # Every column decides what a row becomes.
            return self, np.arange(self.n_outputs), np.arange(d)
        kept = outputs[outputs < d]
        if not len(kept):
            kept = np.arange(1)  # a table has at least a column
        constant = self.constant if d in outputs else None
        names = [self.columns[i] for i in kept.tolist()]
        left = replace(
            self,
            columns=tuple(names),
            fill=self.fill[kept],
            shift=self.shift[kept],
            scale=self.scale[kept],
            constant=constant,
            booleans=tuple(name for name in self.booleans if name in names),
        )
        return left, np.append(kept, d) if constant is not None else kept, kept


class Projection(Stage):
    """A stage whose outputs are <x, r> for a pool of hyperplanes r."""

    @property
    def n_all_zero(self) -> int:
        """How many hyperplanes are all zero."""
        raise NotImplementedError

    @property
    def n_nonzero(self) -> int:
        """Nonzero entries of all hyperplanes."""
        raise NotImplementedError

    def _pool_table(self) -> Table:
        """One row for each hyperplane; an all-zero one has no row of its own elsewhere."""
        return {"hyperplane": np.arange(self.n_outputs, dtype=np.int32)}


@dataclass(frozen=True, eq=False)
class SignedSums(Projection):
    """Each output is a sum of inputs with signs: sum over an index/sign table, no multiplication.

    The table is sorted by output; an output without entries is the constant 0.
    """

    n_inputs: int
    n_sums: int
    hyperplane: Array
    feature: Array
    sign: Array

    def __post_init__(self) -> None:
        sizes = {self.hyperplane.shape, self.feature.shape, self.sign.shape}
        _require(len(sizes) == 1 and self.sign.ndim == 1, "the index/sign columns differ in length")
        _require_counts(self.n_inputs, self.n_sums)
        _require_indices(self.hyperplane, self.n_sums, "hyperplane")
        _require_indices(self.feature, self.n_inputs, "feature")
        _require(bool(np.isin(self.sign, (-1, 1)).all()), "a sign is neither -1 nor +1")
        place = self.hyperplane.astype("int64") * self.n_inputs + self.feature
        _require(bool((np.diff(place) > 0).all()), "entries are out of order, or given twice")

    @property
    def n_outputs(self) -> int:
        return self.n_sums

    @cached_property
    def starts(self) -> Array:
        """Where each output's entries begin; one more at the end."""
        return np.searchsorted(self.hyperplane, np.arange(self.n_sums + 1))

    @property
    def n_all_zero(self) -> int:
        return int(np.count_nonzero(np.diff(self.starts) == 0))

    @property
    def n_nonzero(self) -> int:
        return len(self.sign)

    @property
    def additions(self) -> int:
        return self.n_nonzero - (self.n_sums - self.n_all_zero)

    def magnitude(self, largest: Array) -> Array:
        return largest * int(np.diff(self.starts).max(initial=0))

    def apply(self, X: Array) -> Array:
        # One matrix product a slab of hyperplanes. It also multiplies by the zeros, which is
        # harmless: a NaN here always marks a whole row (policy "propagate").
        out = np.empty((len(X), self.n_sums), dtype=X.dtype)
        slab = max(1, _SLAB_VALUES // max(1, self.n_inputs))
        for first in range(0, self.n_sums, slab):
            last = min(first + slab, self.n_sums)
            entries = slice(self.starts[first], self.starts[last])
            matrix = np.zeros((last - first, self.n_inputs), dtype=X.dtype)
            matrix[self.hyperplane[entries] - first, self.feature[entries]] = self.sign[entries]
            out[:, first:last] = X @ matrix.T
        return out

    def tables(self) -> dict[str, Table]:
        return {
            "hyperplanes": {
                "hyperplane": self.hyperplane.astype(np.int32),
                "feature": self.feature.astype(np.int32),
                "sign": self.sign.astype(np.int8),
            },
            "pool": self._pool_table(),
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        of_them = np.isin(self.hyperplane, outputs)
        hyperplane = np.searchsorted(outputs, self.hyperplane[of_them]).astype("i4")
        table = hyperplane, self.feature[of_them], self.sign[of_them]
        left = SignedSums(self.n_inputs, len(outputs), *table)
        return left, outputs, np.unique(left.feature)

    def reading(self, inputs: Array) -> Stage:
        feature = np.searchsorted(inputs, self.feature).astype("i4")
        return replace(self, n_inputs=len(inputs), feature=feature)


@dataclass(frozen=True, eq=False)
class Butterflies(Projection):
    """The same as :class:`SignedSums` of a Hadamard pool, in m log2 m additions a chunk.

    Block b puts the signed inputs on places; each chunk of m places is transformed by the
    Hadamard matrix H_m. Output ``b * places + q * m + a`` is sum_i H_m[a, i] * sign * input at
    place i of chunk q.
    """

    n_inputs: int
    block_size: int
    place_column: Array
    place_sign: Array

    def __post_init__(self) -> None:
        size = self.block_size
        _require_counts(self.n_inputs, size)
        _require(size >= 1 and size & (size - 1) == 0, f"block size {size} is no power of two")
        _require(self.place_column.ndim == 2, "the places of a block are not a table")
        _require(self.place_column.shape == self.place_sign.shape, "places and signs differ")
        _require(self.place_column.shape[1] % size == 0, "a block is not a whole number of chunks")
        _require_indices(self.place_column + 1, self.n_inputs + 1, "place")
        _require(bool(np.isin(self.place_sign, (-1, 1)).all()), "a sign is neither -1 nor +1")

    @property
    def n_outputs(self) -> int:
        return int(self.place_column.size)

    @cached_property
    def signed_sums(self) -> SignedSums:
        """The index/sign table of the same hyperplanes."""
        size = self.block_size
        column = self.place_column.reshape(-1, 1, size)
        sign = self.place_sign.reshape(-1, 1, size)
        signs = hadamard_matrix(size)[None] * sign
        columns = np.broadcast_to(column, signs.shape).reshape(-1, size)
        signs = signs.reshape(-1, size)
        order = np.argsort(columns, axis=1, kind="stable")
        columns = np.take_along_axis(columns, order, axis=1)
        signs = np.take_along_axis(signs, order, axis=1)
        hyperplane, place = np.nonzero(columns >= 0)
        return SignedSums(
            n_inputs=self.n_inputs,
            n_sums=self.n_outputs,
            hyperplane=hyperplane.astype("i4"),
            feature=columns[hyperplane, place].astype("i4"),
            sign=signs[hyperplane, place].astype("i1"),
        )

    @property
    def n_all_zero(self) -> int:
        return self.signed_sums.n_all_zero

    @property
    def n_nonzero(self) -> int:
        return self.signed_sums.n_nonzero

    @property
    def additions(self) -> int:
        # A butterfly adds only where both of its inputs hold something; padding costs nothing.
        full = (self.place_column >= 0).reshape(-1, self.block_size)
        count, half = 0, 1
        while half < self.block_size:
            pair = full.reshape(len(full), -1, 2, half)
            both = pair[:, :, 0] & pair[:, :, 1]
            either = pair[:, :, 0] | pair[:, :, 1]
            count += 2 * int(both.sum())
            full = np.stack([either, either], axis=2).reshape(len(full), -1)
            half *= 2
        return count

    def magnitude(self, largest: Array) -> Array:
        return largest * min(self.block_size, self.n_inputs)

    def apply(self, X: Array) -> Array:
        padded = np.column_stack([X, np.zeros(len(X), dtype=X.dtype)])
        values = padded[:, self.place_column.ravel()] * self.place_sign.ravel().astype(X.dtype)
        half = 1
        while half < self.block_size:
            pair = values.reshape(len(X), -1, 2, half)
            values = np.stack(
                [pair[:, :, 0] + pair[:, :, 1], pair[:, :, 0] - pair[:, :, 1]], axis=2
            )
            half *= 2
        outputs: Array = values.reshape(len(X), -1)
        return outputs

    def tables(self) -> dict[str, Table]:
        return self.signed_sums.tables()

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        # The hyperplanes of a chunk come together. Chunks are rows of one block here.
        size = self.block_size
        chunks = np.unique(outputs // size)
        left = replace(
            self,
            place_column=self.place_column.reshape(-1, size)[chunks].reshape(1, -1),
            place_sign=self.place_sign.reshape(-1, size)[chunks].reshape(1, -1),
        )
        columns = np.unique(left.place_column)
        kept = (chunks[:, None] * size + np.arange(size)).ravel()
        return left, kept, columns[columns >= 0]

    def reading(self, inputs: Array) -> Stage:
        column = np.searchsorted(inputs, self.place_column)
        column[self.place_column < 0] = -1
        return replace(
            self, n_inputs=len(inputs), place_column=column.astype(self.place_column.dtype)
        )


@dataclass(frozen=True, eq=False)
class WeightedSums(Projection):
    """Each output is a weighted sum of all inputs: the fallback, which multiplies."""

    weights: Array
    n_inputs: int = field(init=False)

    def __post_init__(self) -> None:
        _require(self.weights.ndim == 2, "the weights are not a matrix")
        _require(bool(np.isfinite(self.weights).all()), "a weight is not a finite number")
        object.__setattr__(self, "n_inputs", self.weights.shape[1])

    @property
    def n_outputs(self) -> int:
        return len(self.weights)

    @property
    def n_all_zero(self) -> int:
        return int(np.count_nonzero(~self.weights.any(axis=1)))

    @property
    def n_nonzero(self) -> int:
        return int(np.count_nonzero(self.weights))

    @property
    def additions(self) -> int:
        return self.n_nonzero - (self.n_outputs - self.n_all_zero)

    @property
    def products(self) -> int:
        return self.n_nonzero

    def magnitude(self, largest: Array) -> Array:
        return largest * float(np.abs(self.weights).sum(axis=1, dtype="float64").max(initial=0))

    def apply(self, X: Array) -> Array:
        sums: Array = X @ self.weights.T.astype(X.dtype)
        return sums

    def tables(self) -> dict[str, Table]:
        hyperplane, feature = np.nonzero(self.weights)
        return {
            "hyperplanes": {
                "hyperplane": hyperplane.astype(np.int32),
                "feature": feature.astype(np.int32),
                "weight": self.weights[hyperplane, feature].astype(np.float64),
            },
            "pool": self._pool_table(),
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        weights = self.weights[outputs]
        return WeightedSums(weights), outputs, np.flatnonzero(weights.any(axis=0))

    def reading(self, inputs: Array) -> Stage:
        return WeightedSums(self.weights[:, inputs])


@dataclass(frozen=True, eq=False)
class SumOfProducts(Stage):
    """Each output is a sum over terms, with a sign, of a product of inputs.

    ``factors[c, t, j]`` is the input that is factor j of term t of component c.
    """

    n_inputs: int
    factors: Array
    sign: Array

    def __post_init__(self) -> None:
        _require_counts(self.n_inputs)
        _require(self.factors.ndim == 3, "the factors are not (component, term, factor)")
        _require(self.factors.size > 0, "a component has no terms, or a term no factors")
        _require(self.sign.shape == self.factors.shape[:2], "signs and terms differ in number")
        _require_indices(self.factors, self.n_inputs, "factor")
        _require(bool(np.isin(self.sign, (-1, 1)).all()), "a sign is neither -1 nor +1")

    @property
    def n_outputs(self) -> int:
        return len(self.factors)

    @property
    def additions(self) -> int:
        components, terms, _ = self.factors.shape
        return int(components * (terms - 1))

    @property
    def products(self) -> int:
        components, terms, degree = self.factors.shape
        return int(components * terms * (degree - 1))

    def magnitude(self, largest: Array) -> Array:
        _, terms, degree = self.factors.shape
        with np.errstate(over="ignore"):
            bound: Array = terms * largest**degree
        return bound

    def apply(self, X: Array) -> Array:
        total = np.zeros((len(X), self.n_outputs), dtype=X.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for term in range(self.factors.shape[1]):
                product = X[:, self.factors[:, term, 0]]
                for factor in range(1, self.factors.shape[2]):
                    product = product * X[:, self.factors[:, term, factor]]
                total += product * self.sign[:, term].astype(X.dtype)
        return total

    def tables(self) -> dict[str, Table]:
        component, term, factor = (index.ravel() for index in np.indices(self.factors.shape))
        return {
            "components": {
                "component": component.astype(np.int32),
                "term": term.astype(np.int32),
                "factor": factor.astype(np.int32),
                "hyperplane": self.factors.ravel().astype(np.int32),
                "sign": np.repeat(self.sign.ravel(), self.factors.shape[2]).astype(np.int8),
            }
        }

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        left = replace(self, factors=self.factors[outputs], sign=self.sign[outputs])
        return left, outputs, np.unique(left.factors)

    def reading(self, inputs: Array) -> Stage:
        factors = np.searchsorted(inputs, self.factors).astype(self.factors.dtype)
        return replace(self, n_inputs=len(inputs), factors=factors)


@dataclass(frozen=True, eq=False)
class Scale(Stage):
    """Every input times one constant: where all delayed factors go."""

    n_inputs: int
    constant: float

    def __post_init__(self) -> None:
        _require_counts(self.n_inputs)
        _require(bool(np.isfinite(self.constant)), "the scale is not a finite number")

    @property
    def n_outputs(self) -> int:
        return self.n_inputs

    @property
    def products(self) -> int:
        return self.n_inputs

    def magnitude(self, largest: Array) -> Array:
        return largest * abs(self.constant)

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        return Scale(len(outputs), self.constant), outputs, outputs

    def reading(self, inputs: Array) -> Stage:
        return Scale(len(inputs), self.constant)

    def apply(self, X: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            scaled: Array = X * np.asarray(self.constant, dtype=X.dtype)
        return scaled


#: Every kind of stage by the name that map files use.
STAGES: dict[str, type[Stage]] = {
    "prepare": Prepare,
    "signed_sums": SignedSums,
    "butterflies": Butterflies,
    "weighted_sums": WeightedSums,
    "sum_of_products": SumOfProducts,
    "scale": Scale,
}


@dataclass(frozen=True, eq=False)
class Program:
    """A row program: Prepare, then stages, with a name for each output."""

    stages: tuple[Stage, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(bool(self.stages) and isinstance(self.stages[0], Prepare), "no first stage")
        later = self.stages[1:]
        _require(not any(isinstance(stage, Prepare) for stage in later), "two first stages")
        _require_names(self.names, "feature")
        for before, after in zip(self.stages, self.stages[1:], strict=False):
            _require(before.n_outputs == after.n_inputs, "the stages do not fit each other")
        _require(self.stages[-1].n_outputs == len(self.names), "names and outputs differ")

    @property
    def prepare(self) -> Prepare:
        """The first stage."""
        first = self.stages[0]
        assert isinstance(first, Prepare)
        return first

    @property
    def additions(self) -> int:
        """Additions and subtractions a row."""
        return sum(stage.additions for stage in self.stages)

    @property
    def products(self) -> int:
        """Multiplications and divisions a row."""
        return sum(stage.products for stage in self.stages)

    def apply(self, X: Array) -> Array:
        """The NumPy twin of the whole program."""
        prepared = self.prepare.apply(X)
        out = np.empty((len(prepared), len(self.names)), dtype=prepared.dtype)
        widest = max(stage.n_outputs for stage in self.stages)
        slab = max(1, _SLAB_VALUES // max(1, widest))
        for first in range(0, len(prepared), slab):
            values = prepared[first : first + slab]
            for stage in self.stages[1:]:
                values = stage.apply(values)
            out[first : first + slab] = values
        return out

    def magnitude(self, X: Array) -> Array:
        """A bound on the terms that each row's outputs are sums of."""
        prepared = np.abs(self.prepare.apply(X).astype("float64"))
        largest: Array = np.nan_to_num(prepared).max(axis=1, initial=0.0)
        for stage in self.stages[1:]:
            largest = stage.magnitude(largest)
        return largest

    def only(self, outputs: Array | None = None, *, every_column: bool = False) -> Program:
        """Some outputs (sorted; None: all), and no hyperplane or column that they do not need.

        With ``every_column`` all columns stay, to be looked at for missing values.
        """
        wanted = np.arange(len(self.names)) if outputs is None else outputs
        names = tuple(self.names[i] for i in wanted.tolist())
        stages: list[Stage] = []
        for stage in reversed(self.stages):
            if isinstance(stage, Prepare) and every_column:
                wanted = np.arange(stage.n_outputs)
            left, kept, wanted = stage.only(wanted)
            if stages:
                stages[-1] = stages[-1].reading(kept)
            stages.append(left)
        return Program(tuple(reversed(stages)), names)

    def projection(self) -> Program:
        """The program up to and with its projection: the bare <x, r>, before any delayed factor."""
        for count, stage in enumerate(self.stages, start=1):
            if isinstance(stage, Projection):
                names = tuple(f"hyperplane_{i}" for i in range(stage.n_outputs))
                return replace(self, stages=self.stages[:count], names=names)
        raise ColumnError("this map has no projection stage: ask for stage='features'")


def hadamard_matrix(size: int) -> NDArray[np.int8]:
    """The Sylvester Hadamard matrix: H[a, i] = (-1)^(number of bits set in both a and i)."""
    matrix = np.ones((1, 1), dtype=np.int8)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def missing_message(counts: dict[str, int]) -> str:
    """The one sentence for missing values under ``nulls="error"``."""
    found = [f"{name!r} ({count:,})" for name, count in counts.items() if count]
    shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more columns" if len(found) > 5 else "")
    return (
        f"missing values (NULL, NaN or infinite) in {shown}: "
        "draw the map with nulls='zero', 'mean' or 'propagate', or clean the table"
    )


def _require(condition: bool, what: str) -> None:
    # Maps that this library draws are consistent; a map file from elsewhere may not be.
    if not condition:
        raise MapFileError(f"the map is not consistent: {what}")


def _require_counts(*counts: int) -> None:
    fits = all(type(count) is int and 0 <= count < 2**31 for count in counts)
    _require(fits, "a count is not a whole number that a table could have")


def _require_names(names: tuple[str, ...], what: str) -> None:
    is_text = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    _require(is_text and len(set(names)) == len(names) > 0, f"the {what} names are no names")
    _require(
        all(name.isascii() or _is_unicode(name) for name in names), f"a {what} name is no text"
    )


def _is_unicode(name: str) -> bool:
    try:
        return bool(name.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _require_indices(index: Array, limit: int, what: str) -> None:
    _require(index.dtype.kind == "i", f"a {what} index is not a whole number")
    inside = index.size == 0 or (index.min() >= 0 and index.max() < limit)
    _require(bool(inside), f"a {what} index lies outside 0..{limit - 1}")
