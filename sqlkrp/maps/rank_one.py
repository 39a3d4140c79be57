"""Rank-one projections, and their signs."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from sqlkrp import pools
from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import OneOf, Switch
from sqlkrp.maps.kernels import Kernel, polynomial
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import COMPONENTS, SingleMap
from sqlkrp.maps.source import Inputs
from sqlkrp.maps.variances import Pair, of_products
from sqlkrp.sql.dialects import dialect as facts_of
from sqlkrp.sql.names import TableName
from sqlkrp.sql.scores import scores_of_signs
from sqlkrp.stages import Array, Elementwise, Linear, Stage, SumOfProducts

__all__ = ["RankOneProjection", "pack_signs"]

_OUTPUT = OneOf(dict.fromkeys(("auto", "columns", "array"), ""))


@with_parameters
class RankOneProjection(SingleMap):
    r"""Differences of two squared projections, and on request only their signs.

    B_l(x) = <a_l, x>^2 - <b_l, x>^2 = <a_l - b_l, x> <a_l + b_l, x> with Gaussian a and b.
    Features are B_l(x) / (2 sqrt(m)), so that E <f(x), f(y)> = <x, y>^2.

    With ``binary`` they are the signs of B, +1 or -1, one bit each. A full sketch against a
    binary one estimates the kernel of the directions: E <f(x), sign B(y)> = (2 sqrt(m) / pi)
    <x, y>^2 / |y|^2, for rows y of length 1 the kernel itself but for a factor.

    In SQL, ``output="bits"`` packs 64 signs into a whole number, as :func:`pack_signs` does, and
    :meth:`score_sql` is the statement that scores full sketches against packed ones.

    Choose it where sketches are stored or sent: a binary one takes a bit a component. For features
    to train on, :class:`KRP` is cheaper.

    Reference: R. Delogne, L. Jacques, "Quadratic polynomial kernel approximation with asymmetric
    embeddings"; V. Schellekens, L. Jacques, "Asymmetric compressive learning guarantees", 2022.
    """

    prefix = "rop"
    headline = ("n_components", "binary")

    n_components: int = COMPONENTS.by_default(1000, meaning="m, how many features to compute")
    _: KW_ONLY
    binary: bool = Parameter(
        Switch(), "give the sign of each feature, 1 or -1, in place of numbers"
    ).by_default(False)

    @property
    def polynomial_degree(self) -> int:
        return 2

    def estimated_kernel(self) -> Kernel | None:
        # Two sketches of signs estimate no kernel; one of signs and one of numbers do.
        return None if self.binary else polynomial(2, 1.0, 0.0)

    def distance_variance(self, pair: Pair) -> Any:
        return of_products(pair, degree=2, components=self.n_components)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        m, d = self.n_components, inputs.count
        a, b = pools.draw_gaussian(rng, 2 * m, d).astype("f8").reshape(2, m, d)
        weights = np.stack([a - b, a + b], axis=1).reshape(2 * m, d)
        products = SumOfProducts.plain(2 * m, np.arange(2 * m).reshape(m, 1, 2))
        delayed = 0.5 / math.sqrt(m)
        last: Stage = Elementwise(m, "sign") if self.binary else Linear.scaled(m, delayed)
        return [Linear.dense(weights), products, last]

    def score_sql(
        self,
        full: TableName,
        signs: TableName,
        *,
        keys: tuple[str, str],
        dialect: str = "duckdb",
        output: str = "auto",
    ) -> str:
        """The SELECT that scores each row of full features against each of packed signs.

        ``full`` is a table of a map's features and ``signs`` one of the same map's with
        ``binary=True`` and ``output="bits"``, drawn with the same seed; ``keys`` are the columns
        that name their rows. The score of x and y is pi / (2 sqrt(m)) <f(x), sign B(y)>, which
        estimates <x, y>^2 / |y|^2. Either table may hold the queries, and the other what is
        searched. ``output`` is what ``full`` was written as, columns or array.
        """
        last = self.program.stages[-1]
        factor = last.factor if isinstance(last, Linear) else None
        if factor is None:
            raise ParameterError("score_sql is of a map with binary=False: its numbers are scored")
        if not (isinstance(keys, (tuple, list)) and [type(key) for key in keys] == [str, str]):
            raise ParameterError(f"keys={keys!r} is not allowed: name the two tables' columns")
        _OUTPUT.require("output", output)
        names = self.program.names
        return scores_of_signs(
            full,
            signs,
            keys,
            facts_of(dialect),
            prefix=self.prefix,
            names=names,
            output=output,
            factor=math.pi / (4 * len(names) * factor),
            head=[f"sqlkrp map {self.digest_}", f"{self.title}; scores of packed signs"],
        )


def pack_signs(signs: Array) -> Array:
    """Rows of signs as rows of whole numbers, 64 a number; bit i of one is 1 where sign i is +.

    The twin of ``output="bits"``.

    >>> pack_signs(np.array([[1.0, -1.0, 1.0]])).tolist()
    [[5]]
    """
    bits = np.asarray(signs) > 0
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 64)))
    numbers: Array = np.packbits(padded, axis=1, bitorder="little").view("<i8")
    return numbers
