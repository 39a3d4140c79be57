"""The kernelized random projection of Lopez-Sanchez et al. (2018)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sqlkrp import pools
from sqlkrp.errors import ParameterError
from sqlkrp.maps.automatic import Seen, Taken
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.parameters import (
    LARGEST,
    choose,
    dot_product,
    kernel_constant,
    power_of_two,
    real,
    whole,
)
from sqlkrp.maps.polynomial import without_factors
from sqlkrp.maps.source import Inputs
from sqlkrp.stages import Butterflies, Linear, Stage, SumOfProducts

__all__ = ["KRP", "SumsOfProducts", "whole_or_auto"]

_AUTO_IID_HYPERPLANES = 1000
# The fewest terms whose distances are within 10% of the best that k components can have at degree
# 2, within 25% at degree 3 and within 40% at degree 4, on eight tables and in the default kernel
# (python -m benchmarks.distortion). Above, they would have to grow beyond use.
_AUTO_TERMS = {1: 1, 2: 5, 3: 20}
_AUTO_TERMS_ABOVE = 50


def whole_or_auto(name: str, value: Any) -> None:
    """Raise ParameterError unless this is a number from 1, or ``"auto"``."""
    if isinstance(value, str) and value != "auto":
        raise ParameterError(f"{name}={value!r} is not allowed: use a number, or 'auto'")
    if value != "auto":
        whole(name, value, at_least=1)


class SumsOfProducts(FeatureMap):
    """What maps share whose features are sums of t products of g projections."""

    degree: int
    n_terms: int | str
    coef0: float
    gamma: Any

    @property
    def polynomial_degree(self) -> int:
        return self.degree

    @property
    def terms(self) -> int:
        """Products summed in a component, t."""
        if self.n_terms == "auto":
            return _AUTO_TERMS.get(self.degree, _AUTO_TERMS_ABOVE)
        return int(self.n_terms)

    @property
    def slots(self) -> int:
        """Hyperplanes that one component takes: t * g."""
        return self.terms * self.degree

    def automatic(self, seen: Seen) -> dict[str, Taken]:
        found = super().automatic(seen)
        if self.n_terms == "auto":
            found["n_terms"] = Taken(self.terms, f"for degree {self.degree}")
        return found

    def constant(self) -> float | None:
        return kernel_constant(self.gamma, self.coef0)


class KRP(SumsOfProducts):
    r"""Random features of the polynomial kernel, by products of few ternary projections.

    Component l of a row x is

        f_l(x) = sqrt(1/k) * sum_{i<t} sqrt(1/t) * +-prod_{j<g} <x, r_{l,i,j}>

    with t * g distinct hyperplanes r of a pool, so that over the draw

        E <f(x), f(y)> = (gamma * <x, y> + coef0) ** degree.

    The sign in front of a term is +1 for the iid pools and random for ``hadamard``.

    Parameters
    ----------
    degree : g, the degree of the kernel, >= 1. Degree 1 is the plain random projection.
    n_components : k, the number of features.
    n_terms : t, products summed in a component: more bring its estimates nearer to the best that
        k components can have. ``"auto"``: the fewest that come near it at this degree.
    pool : where hyperplanes come from. ``"hadamard"``: ternary hyperplanes whose entries have
        Achlioptas' distribution (+1, 0, -1 with s = padded columns / block size), drawn together
        in orthogonal blocks; ``"achlioptas"`` draws each entry independently, as the paper does;
        ``"gaussian"``: the fallback, which multiplies.
    n_hyperplanes : p, the size of the pool. ``"auto"``: 1,000 (never fewer than t * g), or for
        ``hadamard`` the fewest blocks that will do. A Hadamard pool comes in whole blocks of the
        padded number of columns, so p is rounded up to them.
    s : sparsity of ``achlioptas``: a share 1/s of the entries is not zero. 1 has no zeros.
    block_size : the chunk of a Hadamard block, a power of two; a hyperplane has so many entries.
    coef0 : of the kernel, >= 0. With 0, the paper's homogeneous kernel, a map of even degree
        cannot see a linear effect.
    gamma : of the kernel, > 0. ``"auto"``: 1 / (columns * their mean variance) as they are
        prepared, 1 / columns where only names are known, 1 for rows of length 1.
    scaling : None, ``"standard"`` (columns of 0 and 1 are left as they are), ``"minmax"`` or
        ``"unit"`` (each row to length 1); statistics are taken at fit and stored. ``"auto"``:
        ``"standard"`` if the columns are of different units, else None.
    clip : values further from their column's mean than so many standard deviations are read as
        if they were so far; columns of 0 and 1 are not held. None holds nothing; ``"auto"``: 3
        with ``scaling="standard"``, else None.
    nulls : ``"error"``, ``"zero"``, ``"mean"`` (stored at fit) or ``"propagate"`` (that row's
        features are NULL). NaN and infinities count as missing.
    dtype : ``"float32"``, ``"float64"``, or ``"auto"``: float32 if all inputs are.
    random_state : the seed; None draws one. Either way ``seed_`` records it.

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

    def __init__(
        self,
        degree: int = 2,
        n_components: int = 1000,
        *,
        n_terms: int | str = "auto",
        pool: str = "hadamard",
        n_hyperplanes: int | str = "auto",
        s: float = 3,
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
        self.s = s
        self.block_size = block_size
        self.coef0 = coef0
        self.gamma: Any = gamma  # a number by the time of the draw
        self.scaling = scaling
        self.clip = clip
        self.nulls = nulls
        self.dtype = dtype
        self.random_state = random_state

    def check(self) -> None:
        whole("degree", self.degree, at_least=1)
        whole_or_auto("n_terms", self.n_terms)
        choose("pool", self.pool, tuple(_POOLS))
        whole_or_auto("n_hyperplanes", self.n_hyperplanes)
        real("s", self.s, at_least=1)
        power_of_two("block_size", self.block_size)
        dot_product(self.gamma, self.coef0)
        factors = self.slots * self.n_components
        if factors >= 2**31:
            raise ParameterError(
                f"n_components * n_terms * degree is {factors:,} factors, and a map has less than "
                "2^31: use fewer"
            )

    @property
    def alternative(self) -> str | None:
        # Measured on eight tables at the same operations a row: of degree 4 it is 8% better to 30%
        # worse, of 5 always worse, of 6 up to 22% better, of 8 up to 45%.
        if self.degree < 6 or without_factors(self.degree, 3) > 1:
            return None
        return "ComplexKRP: of this degree it varies less for the same work, as a rule"

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        n_inputs = inputs.count
        draw, variance_of = _POOLS[self.pool]
        # The variance of a hyperplane's entries, 1/t, 1/k and gamma: all delayed to the end.
        factor = variance_of(self, n_inputs) * self.gamma
        delayed = math.sqrt(self.terms * self.n_components)
        logarithm = math.log(factor) * self.degree / 2 - math.log(delayed)
        if abs(logarithm) > math.log(LARGEST):
            raise ParameterError(
                f"gamma={self.gamma!r} to the power degree/2={self.degree / 2:g} leaves the range "
                "of numbers: use a gamma nearer to 1, or a smaller degree"
            )
        projection, products = draw(self, n_inputs, rng)
        scale = factor ** (self.degree / 2) / delayed
        return [projection, products, Linear.scaled(products.n_outputs, scale)]

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

    def _achlioptas(self, d: int, rng: np.random.Generator) -> tuple[Stage, Stage]:
        p = self._iid_hyperplanes()
        table = pools.draw_achlioptas(rng, p, d, float(self.s))
        return Linear.signed(d, p, table), self._iid_products(p, rng)

    def _gaussian(self, d: int, rng: np.random.Generator) -> tuple[Stage, Stage]:
        p = self._iid_hyperplanes()
        weights = pools.draw_gaussian(rng, p, d)
        return Linear.dense(weights), self._iid_products(p, rng)

    def _hadamard(self, d: int, rng: np.random.Generator) -> tuple[Stage, Stage]:
        size = pools.hadamard_block_size(d, self.block_size)
        per_block = -(-d // size) * size
        n_blocks = self._hadamard_blocks(per_block)
        column, sign = pools.draw_hadamard(rng, n_blocks, d, size)
        factors = pools.choose_hadamard_hyperplanes(
            rng, n_blocks, per_block, self.n_components, self.terms, self.degree
        )
        # Terms share blocks: with a random sign each, they are uncorrelated whatever these hold.
        signs = pools.draw_signs(rng, (self.n_components, self.terms))
        projection = Butterflies.of_blocks(d, size, column, sign)
        products = SumOfProducts(projection.n_outputs, factors, signs)
        return projection, products

    def _hadamard_blocks(self, per_block: int) -> int:
        # g blocks keep the factors of a term apart; more, if a block is too small for t terms.
        fewest = max(self.degree, -(-self.slots // per_block))
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


def _spread(krp: KRP, d: int) -> float:
    """Of a Hadamard pool: a hyperplane has ``size`` entries among those of a padded block."""
    size = pools.hadamard_block_size(d, krp.block_size)
    return -(-d // size)


#: The draw of each pool, (map, columns, generator) -> projection, products; and the variance of an
#: entry of its hyperplanes, which is not in the entries.
_POOLS: dict[str, tuple[Any, Callable[[KRP, int], float]]] = {
    "achlioptas": (KRP._achlioptas, lambda krp, d: float(krp.s)),
    "hadamard": (KRP._hadamard, _spread),
    "gaussian": (KRP._gaussian, lambda krp, d: 1.0),
}
