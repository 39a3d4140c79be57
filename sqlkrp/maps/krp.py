"""The kernelized random projection of Lopez-Sanchez et al. (2018)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from sqlkrp import pools
from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import OneOf, PowerOfTwo, Whole
from sqlkrp.maps.automatic import Seen, Taken
from sqlkrp.maps.nested import mixed_products
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import LARGEST, MOST_FEATURES, SPARSITY, PolynomialMap
from sqlkrp.maps.source import Inputs
from sqlkrp.maps.variances import Pair, of_products
from sqlkrp.stages import Array, Butterflies, Linear, Stage, SumOfProducts

__all__ = ["BLOCK_SIZE", "KRP", "N_HYPERPLANES", "N_TERMS", "POOL", "SumsOfProducts"]

_AUTO_IID_HYPERPLANES = 1000
# The fewest terms whose distances come near the best that k components can have, in the default
# kernel (python -m benchmarks.floors). Above, they would have to grow beyond use.
_AUTO_TERMS = {1: 1, 2: 5, 3: 20}
_AUTO_TERMS_ABOVE = 50
# Factors of the features are delayed to the end, where they cost least. Products of more
# projections would leave the range of single precision before it: there each one is scaled.
_MOST_DELAYED = 16
# Degrees of which a term is a product of two mixed products, and how many terms are enough then.
# Below, that gains no more than it costs; above, it would leave the range of single precision.
_NESTED_DEGREES = range(4, 65)
_NESTED_TERMS = 20
# Products that are mixed: four of them are nearly normal already, and cost two additions each.
_MIXED = 4

N_TERMS = Parameter(
    Whole(1, words={"auto": "the fewest that come near the best at this degree"}),
    "t, how many products are added up in a feature (more estimate better, and cost more)",
    metavar="T",
    common=True,
)
POOL = Parameter(
    OneOf(
        {
            "hadamard": "in orthogonal blocks: cheaper, and as a rule better",
            "achlioptas": "each entry by itself, as the paper does",
            "gaussian": "not ternary: it multiplies",
        }
    ),
    "how the hyperplanes are drawn",
    common=True,
)
N_HYPERPLANES = Parameter(
    Whole(
        1,
        MOST_FEATURES,
        words={"auto": "1,000 or what a feature takes; of hadamard the fewest blocks that do"},
    ),
    "p, how many hyperplanes there are to make products of (hadamard: rounded up to whole blocks)",
    metavar="P",
)
BLOCK_SIZE = Parameter(
    PowerOfTwo(1),
    "how many columns a hyperplane of a hadamard pool reads",
    metavar="M",
)


class SumsOfProducts(PolynomialMap):
    """What maps share whose features are sums of t products of g projections."""

    n_terms: int | str
    pool: str
    block_size: int

    @property
    def terms(self) -> int:
        """Products summed in a component, t."""
        return self._auto_terms if self.n_terms == "auto" else int(self.n_terms)

    @property
    def _auto_terms(self) -> int:
        return _AUTO_TERMS.get(self.degree, _AUTO_TERMS_ABOVE)

    @property
    def slots(self) -> int:
        """Hyperplanes that one component takes: t * g."""
        return self.terms * self.degree

    def automatic(self, seen: Seen) -> dict[str, Taken]:
        found = super().automatic(seen)
        if self.n_terms == "auto":
            found["n_terms"] = Taken(self.terms, f"for degree {self.degree}")
        return found

    def constant(self, n_columns: int) -> float | None:
        whole = super().constant(n_columns)
        if whole is None or self.pool != "hadamard":
            return whole
        size = pools.hadamard_block_size(n_columns + 1, self.block_size)
        return whole / math.sqrt(pools.chunks_with_constant(n_columns + 1, size))

    def _chunks(self, d: int) -> int:
        """How many chunks each Hadamard block has; the kernel's constant is one of d inputs."""
        size = pools.hadamard_block_size(d, self.block_size)
        return pools.hadamard_chunks(d, size, bool(self.coef0))


@with_parameters
class KRP(SumsOfProducts):
    r"""Random features of the polynomial kernel, by products of few ternary projections.

    Component l of a row x is

        f_l(x) = sqrt(1/k) * sum_{i<t} sqrt(1/t) * +-prod_{j<g} <x, r_{l,i,j}>

    with t * g distinct hyperplanes r of a pool, so that over the draw

        E <f(x), f(y)> = (gamma * <x, y> + coef0) ** degree.

    The sign in front of a term is +1 for the iid pools and random for ``hadamard``. Entries of a
    Hadamard pool have Achlioptas' distribution, with s = padded columns / block size, and a block
    has as many hyperplanes as padded columns; the kernel's constant stands in all of them. Degree 1
    is the plain random projection. With ``coef0=0``, the paper's homogeneous kernel, a map of even
    degree cannot see a linear effect.

    Of degrees 4 to 64 a Hadamard pool's terms have two factors. Each is a sum of four products of
    fewer projections, made in the same way: sums vary less than products of many factors, and one
    is a factor of several terms.

    References: D. Lopez-Sanchez, J. M. Corchado, A. Gonzalez Arrieta, "Data-independent random
    projections from the feature-space of the homogeneous polynomial kernel", Pattern Recognition
    82 (2018), and for degree two Information Sciences 436 (2018); D. Achlioptas,
    "Database-friendly random projections", PODS 2001.

    >>> krp = KRP(degree=2, n_components=4, random_state=0).fit(["a", "b", "c"])
    >>> krp.transform([[1.0, 0.0, 2.0]]).shape
    (1, 4)
    """

    prefix = "krp"
    headline = ("degree", "n_components", "pool")

    _: KW_ONLY
    n_terms: int | str = N_TERMS.by_default("auto")
    pool: str = POOL.by_default("hadamard")
    n_hyperplanes: int | str = N_HYPERPLANES.by_default("auto")
    s: float = SPARSITY.by_default(3)
    block_size: int = BLOCK_SIZE.by_default(64)

    def check(self) -> None:
        factors = self.slots * self.n_components
        if factors >= 2**31:
            raise ParameterError(
                f"n_components * n_terms * degree is {factors:,} factors, and a map has less than "
                "2^31: use fewer"
            )

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        return self.stages(inputs.count, rng)

    def stages(self, n_inputs: int, rng: np.random.Generator) -> list[Stage]:
        """Its stages for so many inputs, of which the last is the kernel's constant, if any."""
        draw, variance_of = _POOLS[self.pool]
        # The variance of a hyperplane's entries, and gamma.
        factor = variance_of(self, n_inputs) * self.gamma
        delayed = math.sqrt(self.terms * self.n_components)
        (projection, *products), mixed = draw(self, n_inputs, rng)
        delayed *= math.sqrt(mixed)
        is_delayed = self.degree <= _MOST_DELAYED
        logarithm = math.log(factor) * self.degree / 2 - math.log(delayed)
        if abs(logarithm) > math.log(LARGEST if is_delayed else sys.float_info.max):
            raise ParameterError(
                f"gamma={self.gamma!r} to the power degree/2={self.degree / 2:g} leaves the range "
                "of numbers: use a gamma nearer to 1, or a smaller degree"
            )
        if not is_delayed:
            scaled = Linear.scaled(projection.n_outputs, math.sqrt(factor))
            return [projection, scaled, *products, Linear.scaled(self.n_components, 1 / delayed)]
        scale = factor ** (self.degree / 2) / delayed
        return [projection, *products, Linear.scaled(self.n_components, scale)]

    def distance_variance(self, pair: Pair) -> Any:
        if not _ARE_NORMAL[self.pool](self):
            return None
        return of_products(
            pair,
            degree=self.degree,
            gamma=self.gamma,
            coef0=self.coef0,
            components=self.n_components,
            terms=self.terms,
            hyperplanes=self._iid_hyperplanes(),
        )

    def _iid_hyperplanes(self) -> int:
        if self.n_hyperplanes == "auto":
            return max(_AUTO_IID_HYPERPLANES, self.slots)
        given = int(self.n_hyperplanes)
        if given < self.slots:
            raise ParameterError(
                f"n_hyperplanes={given} is too few: a component takes n_terms * degree = "
                f"{self.slots} distinct hyperplanes; use {self.slots} or more, or 'auto'"
            )
        return given

    def _iid_products(self, n_hyperplanes: int, rng: np.random.Generator) -> SumOfProducts:
        factors = pools.choose_hyperplanes(
            rng, n_hyperplanes, self.n_components, self.terms, self.degree
        )
        plus = np.ones((self.n_components, self.terms), dtype=np.int8)
        return SumOfProducts(n_inputs=n_hyperplanes, factors=factors, sign=plus)

    def _achlioptas(self, d: int, rng: np.random.Generator) -> tuple[list[Stage], float]:
        p = self._iid_hyperplanes()
        table = pools.draw_achlioptas(rng, p, d, float(self.s))
        return [Linear.signed(d, p, table), self._iid_products(p, rng)], 1.0

    def _gaussian(self, d: int, rng: np.random.Generator) -> tuple[list[Stage], float]:
        p = self._iid_hyperplanes()
        weights = pools.draw_gaussian(rng, p, d)
        return [Linear.dense(weights), self._iid_products(p, rng)], 1.0

    def _hadamard(self, d: int, rng: np.random.Generator) -> tuple[list[Stage], float]:
        size = pools.hadamard_block_size(d, self.block_size)
        per_block = self._chunks(d) * size
        n_blocks = self._hadamard_blocks(per_block)
        column, sign = pools.draw_hadamard(rng, n_blocks, d, size, bool(self.coef0))
        projection = Butterflies.of_blocks(d, size, column, sign)
        nested, mixed = list[Stage](), 1.0
        if self._is_nested:
            nested, factors, mixed = self._of_products(projection.n_outputs, per_block, size, rng)
        else:
            factors = pools.choose_hadamard_hyperplanes(
                rng, n_blocks, per_block, self.n_components, self.terms, self.degree
            )
        # Terms share blocks: with a random sign each, they are uncorrelated whatever these hold.
        signs = pools.draw_signs(rng, (self.n_components, self.terms))
        stages = [projection, *nested]
        return [*stages, SumOfProducts(stages[-1].n_outputs, factors, signs)], mixed

    def _of_products(
        self, n_hyperplanes: int, per_block: int, size: int, rng: np.random.Generator
    ) -> tuple[list[Stage], Array, float]:
        """Stages to mixed products, the two of each term, and how large mixing makes these."""
        # The factors of a product come from different blocks.
        factor = np.arange(n_hyperplanes) // per_block % self.degree
        leaves = [np.flatnonzero(factor == one) for one in range(self.degree)]
        # About as much of the variance is theirs as of the terms if there are half as many.
        wanted = max(self.terms, self.terms * self.n_components // 2)
        stages, ends, mixed = mixed_products(rng, leaves, wanted, min(_MIXED, size), n_hyperplanes)
        chosen = pools.choose_members(rng, [*map(len, ends)], self.n_components, self.terms)
        factors = np.stack([one[chosen[..., i]] for i, one in enumerate(ends)], axis=-1)
        return stages, factors.astype("i4"), mixed

    @property
    def _is_nested(self) -> bool:
        """Whether products are made of sums of products of fewer factors."""
        return self.pool == "hadamard" and self.degree in _NESTED_DEGREES

    @property
    def _auto_terms(self) -> int:
        return _NESTED_TERMS if self._is_nested else super()._auto_terms

    def _hadamard_blocks(self, per_block: int) -> int:
        # g blocks keep the factors of a term apart; more, if a block is too small for t terms.
        fewest = self.degree if self._is_nested else max(self.degree, -(-self.slots // per_block))
        if self.n_hyperplanes == "auto":
            return fewest
        given = int(self.n_hyperplanes)
        blocks = -(-given // per_block)
        if blocks < fewest:
            raise ParameterError(
                f"n_hyperplanes={given} is too few: that is {blocks} Hadamard block(s) of "
                f"{per_block}, and degree {self.degree} with {self.terms} term(s) takes "
                f"{fewest}; use {fewest * per_block} or more, or 'auto'"
            )
        return blocks


#: The draw of each pool, (map, columns, generator) -> projection, products; and the variance of an
#: entry of its hyperplanes, which is not in the entries.
_POOLS: dict[str, tuple[Any, Callable[[KRP, int], float]]] = {
    "achlioptas": (KRP._achlioptas, lambda krp, d: float(krp.s)),
    # A hyperplane has the entries of one chunk.
    "hadamard": (KRP._hadamard, lambda krp, d: float(krp._chunks(d))),
    "gaussian": (KRP._gaussian, lambda krp, d: 1.0),
}

#: Whether the entries of each pool are independent, and have a normal number's first four moments.
_ARE_NORMAL: dict[str, Callable[[KRP], bool]] = {
    "achlioptas": lambda krp: krp.s == 3,
    "hadamard": lambda krp: False,
    "gaussian": lambda krp: True,
}
