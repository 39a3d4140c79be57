"""Linear maps: the plain random projection of Achlioptas (2001), and principal components."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.kernels import Kernel, linear
from sqlkrp.maps.krp import BLOCK_SIZE, KRP, POOL
from sqlkrp.maps.parameters import with_parameters
from sqlkrp.maps.shared import COMPONENTS, SPARSITY, SingleMap
from sqlkrp.maps.source import Inputs
from sqlkrp.maps.variances import Pair
from sqlkrp.memory import require_memory
from sqlkrp.stages import Array, Linear, Stage, SumOfProducts

__all__ = ["PCA", "RandomProjection"]

# About what a pair of columns takes: its two places, its name and its average.
_PAIR_BYTES = 250


@with_parameters
class RandomProjection(SingleMap):
    r"""The plain random projection: sums and differences of columns, and one factor.

    Component l of a row x is <x, r_l> / sqrt(k) with hyperplanes r of variance 1, so that
    E <f(x), f(y)> = <x, y>, and distances are kept as well as k allows (Johnson-Lindenstrauss).

    Choose it to shorten wide rows for a linear model; for squares and products of columns, take
    :class:`KRP`.

    Reference: D. Achlioptas, "Database-friendly random projections", PODS 2001.
    """

    prefix = "rp"
    headline = ("n_components", "pool")

    n_components: int = COMPONENTS.by_default(100)
    _: KW_ONLY
    pool: str = POOL.by_default("hadamard")
    s: float = SPARSITY.by_default(3)
    block_size: int = BLOCK_SIZE.by_default(64)

    @property
    def polynomial_degree(self) -> int:
        return 1

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        return self._as_krp().draw(inputs, rng)

    def estimated_kernel(self) -> Kernel | None:
        return linear()

    def distance_variance(self, pair: Pair) -> Any:
        return self._as_krp().distance_variance(pair)

    def _as_krp(self) -> KRP:
        """A KRP that is this map: of degree 1, with one term, and a hyperplane a component."""
        return KRP(
            1,
            self.n_components,
            n_terms=1,
            n_hyperplanes=self.n_components,
            pool=self.pool,
            s=self.s,
            block_size=self.block_size,
            coef0=0.0,
            gamma=1.0,
        )


@with_parameters
class PCA(SingleMap):
    r"""Principal components: (x - mean) on the directions in which the rows vary most.

    Component l of a row x is <x - mu, v_l>, v_l being the eigenvector of the covariance with the
    l-th largest eigenvalue. Means and covariance are aggregates in the database (no row is
    fetched), eigenvectors are LAPACK's; a vector's largest entry is positive. Features estimate
    no kernel: among all projections to k numbers this one loses least of the rows' variance.
    Nothing is random here.

    Choose it before a map whose cost grows with the columns, as in ``chain(PCA(50), KRP(3))``. For
    d columns it takes d (d + 1) / 2 averages: beyond some hundred columns these take long, and
    :class:`RandomProjection` needs none.

    Reference: M. Rost, T. Zast, "Approximating Kernels with Random Fourier Features", Ulm
    University, 2023, section 5.3.2.
    """

    prefix = "pca"

    n_components: int = COMPONENTS.by_default(
        50, meaning=f"{COMPONENTS.meaning}, at most the number of columns"
    )

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        if self.n_components > inputs.count:
            raise ParameterError(
                f"n_components={self.n_components} is more than the "
                f"{counted(inputs.count, 'column')} given: use {inputs.count} or fewer"
            )
        pairs = inputs.count * (inputs.count + 1) // 2
        require_memory(
            _PAIR_BYTES * pairs,
            f"a PCA of {inputs.count:,} columns, of which there are {pairs:,} pairs,",
            "fewer columns, or RandomProjection",
        )
        mean, covariance = _moments(inputs)
        _, vectors = np.linalg.eigh(covariance)
        directions = vectors.T[::-1][: self.n_components]
        largest = np.abs(directions).argmax(axis=1)
        directions = directions * np.sign(directions[np.arange(len(directions)), largest])[:, None]
        centred = Linear.scaled(self.n_components, 1.0, -directions @ mean)
        return [Linear.dense(directions), centred]


def _moments(inputs: Inputs) -> tuple[Array, Array]:
    """The mean and the covariance of the prepared inputs, in two passes: the exact way."""
    d = inputs.count
    mean = inputs.means()
    centred = Linear.scaled(d, 1.0, -mean)
    first, second = np.triu_indices(d)
    products = SumOfProducts.plain(d, np.column_stack([first, second])[:, None, :])
    covariance = np.empty((d, d))
    covariance[first, second] = covariance[second, first] = inputs.means(centred, products)
    return mean, covariance
