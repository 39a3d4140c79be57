"""Complex-to-real random features of the polynomial kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sqlkrp import pools
from sqlkrp.errors import ParameterError
from sqlkrp.maps.krp import SumsOfProducts, whole_or_auto
from sqlkrp.maps.parameters import choose, dot_product, even, power_of_two, whole
from sqlkrp.maps.polynomial import complex_sums, require_factors
from sqlkrp.maps.source import Inputs
from sqlkrp.stages import Array, Butterflies, Linear, Stage

__all__ = ["ComplexKRP"]


class ComplexKRP(SumsOfProducts):
    r"""KRP with hyperplanes of +1, -1, +i and -i: less variance, more so in high degrees.

    z_l(x) = sum_{i<t} +-prod_{j<g} <x, r_{l,i,j}> with complex hyperplanes r, whose real and
    imaginary parts are two complementary ternary sums. The features are the real and the
    imaginary part of z_l / sqrt(t k/2), so that

        E <f(x), f(y)> = (gamma * <x, y> + coef0) ** degree.

    All is ternary. Choose it in place of :class:`KRP` for degrees 6, 8, 9 and more, where it has
    less error for the same work on most tables; below, it gains no more than it costs, and
    products of 5 or 7 complex numbers cost too much. The degree has no prime factor over 7, as
    products of so many complex numbers have too many terms.

    Parameters
    ----------
    degree : g, of the kernel.
    n_components : k, an even number: half of the features are real parts.
    n_terms : t, products summed in a component; ``"auto"``: as in :class:`KRP`.
    pool : ``"hadamard"`` (blocks of butterflies), or ``"achlioptas"`` (independent entries,
        without zeros).
    n_hyperplanes : complex ones in an ``achlioptas`` pool; ``"auto"``: 500, or t * g.
    block_size, coef0, gamma, scaling, clip, nulls, dtype, random_state : as in :class:`KRP`.

    Reference: J. Wacker, R. Ohana, M. Filippone, "Complex-to-real sketches for tensor products
    with applications to the polynomial kernel", AISTATS 2023.
    """

    prefix = "ckrp"
    headline = ("degree", "n_components", "pool")

    def __init__(
        self,
        degree: int = 4,
        n_components: int = 1000,
        *,
        n_terms: int | str = "auto",
        pool: str = "hadamard",
        n_hyperplanes: int | str = "auto",
        block_size: int = 64,
        coef0: float = 1.0,
        gamma: float | str = "auto",
        scaling: str | None = "auto",
        clip: float | str | None = "auto",
        nulls: str = "error",
        dtype: str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.degree = degree
        self.n_components = n_components
        self.n_terms = n_terms
        self.pool = pool
        self.n_hyperplanes = n_hyperplanes
        self.block_size = block_size
        self.coef0 = coef0
        self.gamma: Any = gamma  # a number by the time of the draw
        self.scaling = scaling
        self.clip = clip
        self.nulls = nulls
        self.dtype = dtype
        self.random_state = random_state

    def check(self) -> None:
        require_factors(whole("degree", self.degree, at_least=1))
        whole_or_auto("n_terms", self.n_terms)
        choose("pool", self.pool, ("hadamard", "achlioptas"))
        power_of_two("block_size", self.block_size)
        dot_product(self.gamma, self.coef0)
        even("n_components", self.n_components, "real and imaginary parts come in twos")
        if self.n_hyperplanes != "auto":
            if self.pool == "hadamard":
                raise ParameterError(
                    f"n_hyperplanes={self.n_hyperplanes!r} is of pool='achlioptas': leave it "
                    "'auto', as blocks have a size of their own"
                )
            whole("n_hyperplanes", self.n_hyperplanes, at_least=self.slots)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        draw = self._hadamard if self.pool == "hadamard" else self._achlioptas
        projection, places, variance = draw(inputs.count, rng)
        signs = pools.draw_signs(rng, (self.n_components // 2, self.terms))
        stages = complex_sums(places, signs, projection.n_outputs)
        scale = (variance * self.gamma) ** (self.degree / 2)
        delayed = math.sqrt(self.terms * self.n_components / 2)
        return [projection, *stages, Linear.scaled(self.n_components, scale / delayed)]

    def _achlioptas(self, d: int, rng: np.random.Generator) -> tuple[Stage, Array, float]:
        p = max(500, self.slots) if self.n_hyperplanes == "auto" else int(self.n_hyperplanes)
        turned = rng.integers(0, 2, size=(p, d))
        hyperplane = (2 * np.arange(p)[:, None] + turned).ravel()
        feature = np.tile(np.arange(d), p)
        order = np.lexsort([feature, hyperplane])
        signs = pools.draw_signs(rng, (p * d,))
        table = hyperplane[order].astype("i4"), feature[order].astype("i4"), signs
        chosen = pools.choose_hyperplanes(rng, p, self.n_components // 2, self.terms, self.degree)
        places = np.stack([2 * chosen, 2 * chosen + 1], axis=-1)
        return Linear.signed(d, 2 * p, table), places, 1.0

    def _hadamard(self, d: int, rng: np.random.Generator) -> tuple[Stage, Array, float]:
        size = pools.hadamard_block_size(d, self.block_size)
        per_block = -(-d // size) * size
        blocks = max(self.degree, -(-self.slots // per_block))
        column, sign = pools.draw_hadamard(rng, blocks, d, size)
        turned = rng.integers(0, 2, size=column.shape) == 1
        parts = np.where(turned, -1, column), np.where(turned, column, -1)
        columns = np.stack(parts, axis=1).reshape(2 * blocks, per_block)
        chosen = pools.choose_hadamard_hyperplanes(
            rng, blocks, per_block, self.n_components // 2, self.terms, self.degree
        )
        block, place = np.divmod(chosen, per_block)
        first = 2 * block * per_block + place
        places = np.stack([first, first + per_block], axis=-1)
        projection = Butterflies.of_blocks(
            d, size, columns.astype("i4"), np.repeat(sign, 2, axis=0)
        )
        return projection, places, per_block / size
