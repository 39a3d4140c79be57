"""Random Fourier features: cosines of random projections, for kernels of x - y."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from sqlkrp import pools
from sqlkrp.maps.allowed import Even, OneOf, Switch
from sqlkrp.maps.kernels import Kernel, laplacian, rbf
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import COMPONENTS, GAMMA, KERNEL, SingleMap
from sqlkrp.maps.source import Inputs
from sqlkrp.maps.variances import Pair, of_cosines, of_pairs_of_cosines
from sqlkrp.stages import Array, Butterflies, Elementwise, Linear, Stage

__all__ = ["SORF", "RandomFourier"]


def cosines(places: Array, n_inputs: int, factor: float, phases: Array) -> list[Stage]:
    """sqrt(2/k) cos(factor * u + phase) of k of the inputs u."""
    k = len(places)
    return [
        Linear.picked(n_inputs, places, factor, phases),
        Elementwise(k, "cos"),
        Linear.scaled(k, math.sqrt(2 / k)),
    ]


def _frequencies(k: int, paired: bool) -> int:
    return k // 2 if paired else k


def _phases(rng: np.random.Generator, k: int, paired: bool) -> Array:
    if paired:  # a sine is a cosine a quarter turn later
        return np.repeat([0.0, -math.pi / 2], k // 2)
    return pools.draw_phases(rng, k)


@with_parameters
class _Cosines(SingleMap):
    """What maps share whose features are cosines of projections."""

    n_components: int = COMPONENTS.by_default(500)
    _: KW_ONLY
    gamma: Any = GAMMA.by_default("auto")  # a number by the time of the draw
    paired: bool = Parameter(
        Switch(),
        "take the cosine and the sine of each frequency, in place of cosines of twice as many (k "
        "is even)",
    ).by_default(False)

    def check(self) -> None:
        if self.paired:
            Even(2, why="paired features come in twos").require("n_components", self.n_components)


@with_parameters
class RandomFourier(_Cosines):
    r"""Random Fourier features of the Gaussian or the Laplacian kernel.

    Component l of a row x is sqrt(2/k) cos(<w_l, x> + b_l), b uniform on [0, 2 pi], and w from
    the kernel's spectrum, so that E <f(x), f(y)> is the kernel exactly:

    - ``rbf``: exp(-gamma |x - y|^2), w normal with standard deviation sqrt(2 gamma);
    - ``laplacian``: exp(-gamma |x - y|_1), w Cauchy with scale gamma.

    With ``paired`` there are k/2 frequencies, each with its cosine and its sine: less variance for
    the Gaussian kernel. ``gamma="auto"`` of the Laplacian kernel is 1 over the sum of the columns'
    standard deviations. Choose it for smooth functions of the columns, scaled to a like size.

    References: A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007;
    H. Janati, "Random Features for Polynomial Kernels", ENSAE ParisTech, 2017, section 2;
    M. Rost, T. Zast, "Approximating Kernels with Random Fourier Features", Ulm University, 2023.
    """

    prefix = "rff"
    headline = ("n_components", "kernel")

    _: KW_ONLY
    kernel: str = KERNEL.by_default(
        "rbf",
        check=OneOf({"rbf": "exp(-gamma |x - y|^2)", "laplacian": "exp(-gamma |x - y|_1)"}),
    )

    @property
    def gamma_power(self) -> int:
        return 1 if self.kernel == "laplacian" else 2

    def estimated_kernel(self) -> Kernel | None:
        return _KERNELS[self.kernel](self.gamma)

    def distance_variance(self, pair: Pair) -> Any:
        doubled = pair.kernel_xy ** _DOUBLED[self.kernel]
        variance = of_pairs_of_cosines if self.paired else of_cosines
        return variance(pair.kernel_xy, doubled, self.n_components)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        k = self.n_components
        frequencies = _frequencies(k, self.paired)
        weights = _SPECTRA[self.kernel](rng, frequencies, inputs.count, self.gamma)
        phases = _phases(rng, k, self.paired)
        places = np.arange(k) % frequencies
        return [Linear.dense(weights), *cosines(places, frequencies, 1.0, phases)]


def _gaussian(rng: np.random.Generator, k: int, d: int, gamma: float) -> Array:
    return pools.draw_gaussian(rng, k, d) * np.float32(math.sqrt(2 * gamma))


def _cauchy(rng: np.random.Generator, k: int, d: int, gamma: float) -> Array:
    return pools.draw_cauchy(rng, k, d) * np.float32(gamma)


#: The frequencies of each kernel.
_SPECTRA = {"rbf": _gaussian, "laplacian": _cauchy}
#: The power of each kernel that it is at twice the difference.
_DOUBLED = {"rbf": 4, "laplacian": 2}
_KERNELS: dict[str, Callable[[float], Kernel]] = {"rbf": rbf, "laplacian": laplacian}


@with_parameters
class SORF(_Cosines):
    r"""Structured orthogonal random features of the Gaussian kernel: + and -, then a cosine.

    As :class:`RandomFourier`, with w the rows of sqrt(2 gamma) sqrt(D) H D1 H D2 H D3, where H is
    the orthonormal Hadamard matrix of the D columns (padded to a power of two) and the D's are
    random signs. The projection is butterflies, 3 log2 D additions a column and no
    multiplication; frequencies are orthogonal in blocks of D, of which whole ones are computed.
    The estimate of exp(-gamma |x - y|^2) is nearly unbiased, the more the larger D. With
    ``paired`` there are k/2 frequencies, each with its cosine and its sine: only then does being
    orthogonal lower the variance much, as random phases vary more than frequencies do.

    Choose it with ``paired=True`` in place of :class:`RandomFourier` for 64 columns and more.

    Reference: F. Yu and others, "Orthogonal random features", NIPS 2016.
    """

    prefix = "sorf"

    def estimated_kernel(self) -> Kernel | None:
        return rbf(self.gamma)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        d, k = inputs.count, self.n_components
        size = 1 << max(0, d - 1).bit_length()
        frequencies = _frequencies(k, self.paired)
        blocks = -(-frequencies // size)
        columns = np.tile(np.where(np.arange(size) < d, np.arange(size), -1), (blocks, 1))
        before = np.arange(blocks * size).reshape(blocks, size)
        stages: list[Stage] = []
        for n_inputs, of_block in ((d, columns), *[(blocks * size, before)] * 2):
            signs = pools.draw_signs(rng, (blocks, size))
            stages.append(Butterflies.of_blocks(n_inputs, size, of_block.astype("i4"), signs))
        phases = _phases(rng, k, self.paired)
        places = np.arange(k) % frequencies
        # Three matrices of +-1 are sqrt(D)^3 times orthonormal ones.
        factor = math.sqrt(2 * self.gamma) / size
        return [*stages, *cosines(places, blocks * size, factor, phases)]
