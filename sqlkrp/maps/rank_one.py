"""Rank-one projections, and their signs."""

from __future__ import annotations

import math

import numpy as np

from sqlkrp import pools
from sqlkrp.maps.base import Map, choose
from sqlkrp.maps.source import Inputs
from sqlkrp.stages import Array, Elementwise, Scale, Stage, SumOfProducts, WeightedSums

__all__ = ["RankOneProjection", "pack_signs"]


class RankOneProjection(Map):
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

    Parameters
    ----------
    n_components : m, the number of features.
    binary : signs in place of numbers.
    scaling, clip, nulls, dtype, random_state : as in :class:`KRP`.

    Reference: R. Delogne, L. Jacques, "Quadratic polynomial kernel approximation with asymmetric
    embeddings"; V. Schellekens, L. Jacques, "Asymmetric compressive learning guarantees", 2022.
    """

    prefix = "rop"
    headline = ("n_components", "binary")

    def __init__(
        self,
        n_components: int = 1000,
        *,
        binary: bool = False,
        scaling: str | None = "auto",
        clip: float | str | None = "auto",
        nulls: str = "error",
        dtype: str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.binary = binary
        self.scaling = scaling
        self.clip = clip
        self.nulls = nulls
        self.dtype = dtype
        self.random_state = random_state

    def check(self) -> None:
        choose("binary", self.binary, (False, True))

    @property
    def polynomial_degree(self) -> int:
        return 2

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        m, d = self.n_components, inputs.count
        a, b = (pools.draw_gaussian(rng, m, d).astype("f8") for _ in range(2))
        weights = np.stack([a - b, a + b], axis=1).reshape(2 * m, d)
        factors = np.arange(2 * m, dtype="i4").reshape(m, 1, 2)
        products = SumOfProducts(2 * m, factors, np.ones((m, 1), dtype="i1"))
        last: Stage = Elementwise(m, "sign") if self.binary else Scale(m, 0.5 / math.sqrt(m))
        return [WeightedSums(weights), products, last]


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
