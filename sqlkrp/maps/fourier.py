"""Random Fourier features: cosines of random projections, for kernels of x - y."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sqlkrp import pools
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.parameters import choose, even, gamma_or_auto
from sqlkrp.maps.source import Inputs
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


def _check_paired(k: int, paired: bool) -> None:
    choose("paired", paired, (False, True))
    if paired:
        even("n_components", k, "paired features come in twos")


class RandomFourier(FeatureMap):
    r"""Random Fourier features of the Gaussian or the Laplacian kernel.

    Component l of a row x is sqrt(2/k) cos(<w_l, x> + b_l), b uniform on [0, 2 pi], and w from
    the kernel's spectrum, so that E <f(x), f(y)> is the kernel exactly:

    - ``rbf``: exp(-gamma |x - y|^2), w normal with standard deviation sqrt(2 gamma);
    - ``laplacian``: exp(-gamma |x - y|_1), w Cauchy with scale gamma.

    With ``paired`` there are k/2 frequencies, each with its cosine and its sine: less variance for
    the Gaussian kernel. Choose it for smooth functions of the columns, scaled to a like size.

    Parameters
    ----------
    n_components : k, the number of features.
    kernel : ``"rbf"`` or ``"laplacian"``.
    gamma : of the kernel, > 0. ``"auto"``: 1 / (columns * their mean variance) as they are
        prepared, as in :class:`KRP`; for ``laplacian`` 1 / the sum of their
        standard deviations.
    paired : cosines and sines of the same frequencies; k must be even.
    scaling, clip, nulls, dtype, random_state : as in :class:`KRP`.

    References: A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007;
    H. Janati, "Random Features for Polynomial Kernels", ENSAE ParisTech, 2017, section 2;
    M. Rost, T. Zast, "Approximating Kernels with Random Fourier Features", Ulm University, 2023.
    """

    prefix = "rff"
    headline = ("n_components", "kernel")

    def __init__(
        self,
        n_components: int = 500,
        *,
        kernel: str = "rbf",
        gamma: float | str = "auto",
        paired: bool = False,
        scaling: str | None = "auto",
        clip: float | str | None = "auto",
        nulls: str = "error",
        dtype: str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma: Any = gamma  # a number by the time of the draw
        self.paired = paired
        self.scaling = scaling
        self.clip = clip
        self.nulls = nulls
        self.dtype = dtype
        self.random_state = random_state

    def check(self) -> None:
        choose("kernel", self.kernel, tuple(_SPECTRA))
        gamma_or_auto(self.gamma)
        _check_paired(self.n_components, self.paired)

    @property
    def gamma_power(self) -> int:
        return 1 if self.kernel == "laplacian" else 2

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


class SORF(FeatureMap):
    r"""Structured orthogonal random features of the Gaussian kernel: + and -, then a cosine.

    As :class:`RandomFourier`, with w the rows of sqrt(2 gamma) sqrt(D) H D1 H D2 H D3, where H is
    the orthonormal Hadamard matrix of the D columns (padded to a power of two) and the D's are
    random signs. The projection is butterflies, 3 log2 D additions a column and no
    multiplication; frequencies are orthogonal in blocks of D. The estimate of
    exp(-gamma |x - y|^2) is nearly unbiased, the more the larger D. With ``paired`` there are k/2
    frequencies, each with its cosine and its sine: only then does being orthogonal lower the
    variance much, as random phases vary more than frequencies do.

    Choose it with ``paired=True`` in place of :class:`RandomFourier` for 64 columns and more.

    Parameters
    ----------
    n_components : k, the number of features; whole blocks of D are computed.
    gamma : of the kernel, > 0. ``"auto"``: 1 / (columns * their mean variance) as they are
        prepared, as in :class:`KRP`.
    paired : cosines and sines of the same frequencies; k must be even.
    scaling, clip, nulls, dtype, random_state : as in :class:`KRP`.

    Reference: F. Yu and others, "Orthogonal random features", NIPS 2016.
    """

    prefix = "sorf"

    def __init__(
        self,
        n_components: int = 500,
        *,
        gamma: float | str = "auto",
        paired: bool = False,
        scaling: str | None = "auto",
        clip: float | str | None = "auto",
        nulls: str = "error",
        dtype: str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.gamma: Any = gamma  # a number by the time of the draw
        self.paired = paired
        self.scaling = scaling
        self.clip = clip
        self.nulls = nulls
        self.dtype = dtype
        self.random_state = random_state

    def check(self) -> None:
        gamma_or_auto(self.gamma)
        _check_paired(self.n_components, self.paired)

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
