"""Count sketches of the columns, convolved."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY

import numpy as np

from sqlkrp import pools
from sqlkrp.maps.allowed import OneOf
from sqlkrp.maps.complex_products import SMOOTH_DEGREE, complex_sums
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import (
    COMPONENTS,
    PolynomialMap,
)
from sqlkrp.maps.source import Inputs
from sqlkrp.memory import ENTRY_BYTES, require_memory
from sqlkrp.stages import Array, Linear, Stage

__all__ = ["TensorSketch"]


@with_parameters
class TensorSketch(PolynomialMap):
    r"""Count sketches of the columns, convolved: features of the polynomial kernel.

    Each of g sketches adds every column, with a sign, to one of k buckets; their circular
    convolution f has E <f(x), f(y)> = (gamma <x, y> + coef0)^g.

    ``domain="fourier"`` (the default) leaves out the inverse transform: inner products are the
    same in the frequency domain (Parseval), where features are products of g projections on
    roots of unity. ``domain="bucket"`` transforms back, and equals scikit-learn's
    ``PolynomialCountSketch`` with the same hashes and signs.

    Choose it to compare with scikit-learn. For the same number of features :class:`KRP` with a
    Hadamard pool varies less, and costs less in a database, as this multiplies.

    Reference: N. Pham, R. Pagh, "Fast and scalable polynomial kernels via explicit feature maps",
    KDD 2013.
    """

    prefix = "ts"
    headline = ("degree", "n_components")

    degree: int = SMOOTH_DEGREE.by_default(2)
    n_components: int = COMPONENTS.by_default(
        100, meaning=f"{COMPONENTS.meaning}, and buckets of a sketch"
    )
    _: KW_ONLY
    domain: str = Parameter(
        OneOf(
            {
                "fourier": "as products of sums",
                "bucket": "as scikit-learn's PolynomialCountSketch gives them",
            }
        ),
        "where sketches are convolved",
    ).by_default("fourier")

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        shape = self.degree, inputs.count
        buckets = rng.integers(0, self.n_components, size=shape)
        return self.stages(buckets, pools.draw_signs(rng, shape))

    def stages(self, buckets: Array, signs: Array) -> list[Stage]:
        """The stages for these hashes and signs, both (sketch, column)."""
        self._require_room(buckets.shape[1])
        k, g = self.n_components, self.degree
        scale = self.gamma ** (g / 2)
        if self.domain == "fourier":
            return [*self._spectrum(buckets, signs), *self._real_features(scale)]
        sums = _bucket_sums(buckets, signs, k)
        if g == 1:
            return [sums, Linear.scaled(k, scale)]
        return [sums, *self._transform(), *self._back(), Linear.scaled(k, scale)]

    def _require_room(self, n_inputs: int) -> None:
        """Raise LimitError if the tables of waves take too much memory."""
        k, g = self.n_components, self.degree
        # Real and imaginary parts; of buckets, the transforms of g sketches beside each other.
        to, back = (n_inputs, 0) if self.domain == "fourier" else (g * k, k)
        require_memory(
            ENTRY_BYTES * 2 * len(self._frequencies) * (g * to + back),
            f"a sketch of {n_inputs:,} columns in {k:,} buckets (domain={self.domain!r})",
            "fewer components, or KRP",
        )

    @property
    def _frequencies(self) -> Array:
        return np.arange(self.n_components // 2 + 1)

    @property
    def _alone(self) -> Array:
        """Which frequencies are there once: the others stand for their conjugate as well."""
        once: Array = (self._frequencies == 0) | (2 * self._frequencies == self.n_components)
        return once

    def _waves(self, positions: Array) -> Array:
        """(frequency, part, position): cosines and minus sines, of the transform of buckets."""
        k = self.n_components
        turns = np.outer(self._frequencies, positions) % k * (2 * math.pi / k)
        return np.stack([np.cos(turns), -np.sin(turns)], axis=1)

    def _spectrum(self, buckets: Array, signs: Array) -> list[Stage]:
        """Columns to the products of all sketches' transforms, at half of the frequencies."""
        waves = [self._waves(hashes) * sign for hashes, sign in zip(buckets, signs, strict=True)]
        # (frequency, sketch, part, column)
        weights = np.stack(waves, axis=1).reshape(-1, buckets.shape[1])
        return [Linear.dense(weights), *self._product()]

    def _product(self) -> list[Stage]:
        """The transforms of all sketches, multiplied at each frequency."""
        shape = len(self._frequencies), 1, self.degree, 2
        places = np.arange(math.prod(shape)).reshape(shape)
        return complex_sums(places, np.ones((len(places), 1)), places.size)

    def _real_features(self, scale: float) -> list[Stage]:
        """Real and imaginary parts, each weighed by how often its frequency is there."""
        k = self.n_components
        alone = self._alone
        part = np.stack([np.where(alone, 1, 2), np.where(alone, 0, 2)], axis=1).ravel() / k
        places = np.flatnonzero(part)
        weights = scale * np.sqrt(part[places])
        return [Linear.picked(2 * len(alone), places, weights)]

    def _transform(self) -> list[Stage]:
        """Bucket sums of all sketches to the products of their transforms."""
        k, g = self.n_components, self.degree
        waves = self._waves(np.arange(k))
        weights = np.zeros((len(self._frequencies), g, 2, g, k))
        for sketch in range(g):
            weights[:, sketch, :, sketch] = waves
        return [Linear.dense(weights.reshape(-1, g * k)), *self._product()]

    def _back(self) -> list[Stage]:
        """Half of the frequencies to the buckets of the convolution."""
        k = self.n_components
        times = np.where(self._alone, 1, 2)[:, None, None] / k
        waves = self._waves(np.arange(k)) * times
        return [Linear.dense(waves.transpose(2, 0, 1).reshape(k, -1))]


def _bucket_sums(buckets: Array, signs: Array, k: int) -> Linear:
    """The count sketches: bucket b of sketch j is output j * k + b."""
    g, d = buckets.shape
    bucket = (buckets + k * np.arange(g)[:, None]).ravel()
    column = np.tile(np.arange(d), g)
    order = np.lexsort([column, bucket])
    index = bucket[order].astype("i4"), column[order].astype("i4")
    return Linear.signed(d, g * k, (*index, signs.ravel()[order].astype("i1")))
