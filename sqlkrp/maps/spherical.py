"""Spherical random features: Fourier features of polynomial kernels on rows of length 1."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from functools import cache

import numpy as np

from sqlkrp import pools
from sqlkrp.maps.allowed import Number
from sqlkrp.maps.fourier import cosines
from sqlkrp.maps.kernels import Kernel, spherical
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import COMPONENTS, DEGREE, SCALING, SingleMap
from sqlkrp.maps.source import Inputs
from sqlkrp.stages import Array, Linear, Stage

__all__ = ["SphericalRandomFeatures", "radial_fit"]

_N_DISTANCES, _N_RADII, _N_NODES = 200, 300, 600


@with_parameters
class SphericalRandomFeatures(SingleMap):
    r"""Fourier features of a polynomial kernel between rows of length 1.

    On the unit sphere (1 - |x - y|^2 / a^2)^p is the polynomial kernel
    (1 - 2/a^2)^p (1 + <x, y> / (a^2/2 - 1))^p, a function of x - y; but no probability has it as
    its characteristic function, so that Fourier features can only come near. The frequencies are
    drawn with uniform directions, and with radii from the distribution that comes nearest: of all
    measures on radii, the one with the least squared error over distances 0 to 2 (non-negative
    least squares; the paper's clipped mixtures of Gaussians are some of these measures).

    Component l of a row x is sqrt(2/k) cos(<w_l, x> + b_l); |f|^2 is about 1. The estimate is
    unbiased for the fitted kernel, whose largest error :func:`radial_fit` returns.

    Choose it for high degrees on rows of length 1, where products of projections vary too much.
    It is not for rows that another map made, which no scaling brings to length 1. Rows have length
    1 by ``scaling="unit"``, which is the default here, or must have it already. With ``a=2``,
    opposite rows have the kernel 0.

    Reference: J. Pennington, F. Yu, S. Kumar, "Spherical random features for polynomial kernels",
    NIPS 2015; H. Janati, "Random Features for Polynomial Kernels", ENSAE ParisTech, 2017,
    section 3.
    """

    prefix = "srf"
    headline = ("n_components", "degree")

    n_components: int = COMPONENTS.by_default(500)
    _: KW_ONLY
    degree: int = DEGREE.by_default(3, meaning="p, the degree of the polynomial kernel")
    a: float = Parameter(
        Number(2), "the a in the kernel (1 - |x - y|^2 / a^2)^degree", metavar="A"
    ).by_default(4.0)
    scaling: str | None = SCALING.by_default("unit")

    def estimated_kernel(self) -> Kernel | None:
        return spherical(self.degree, self.a)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        k, d = self.n_components, inputs.count
        radii, chances, _ = radial_fit(self.degree, self.a, d)
        directions = pools.draw_gaussian(rng, k, d).astype("f8")
        directions /= np.sqrt((directions**2).sum(axis=1, keepdims=True))
        weights = directions * rng.choice(radii, size=k, p=chances)[:, None]
        phases = pools.draw_phases(rng, k)
        return [Linear.dense(weights), *cosines(np.arange(k), k, 1.0, phases)]


@cache
def radial_fit(degree: int, a: float, n_inputs: int) -> tuple[Array, Array, float]:
    """Radii, their probabilities, and the largest error of the kernel that these make."""
    distances = np.linspace(0, 2, _N_DISTANCES)
    wanted = (1 - distances**2 / a**2) ** degree
    # A radius r makes about exp(-r^2 z^2 / 2d); the kernel is about exp(-p z^2 / a^2).
    typical = math.sqrt(2 * n_inputs * degree) / a
    radii = np.linspace(0, 4 * typical, _N_RADII)
    shapes = _sphere_average(np.outer(distances, radii), n_inputs)
    # Probabilities add up to 1: the row of distance 0 says so, and it counts most.
    weight = np.ones((_N_DISTANCES, 1))
    weight[0] = 1e3
    masses = _nonnegative_least_squares(shapes * weight, wanted * weight[:, 0])
    chances = masses / masses.sum()
    return radii, chances, float(np.abs(shapes @ chances - wanted).max())


def _sphere_average(t: Array, n_inputs: int) -> Array:
    """The average of cos(t u) for a coordinate u of a point on the unit sphere.

    By quadrature over the angle, whose density is cos^(d - 2); in logarithms, for any dimension.
    """
    if n_inputs == 1:
        cosine: Array = np.cos(t)
        return cosine
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    furthest = min(math.pi / 2, 12 / math.sqrt(n_inputs))
    angles = nodes * furthest
    with np.errstate(divide="ignore"):
        density = weights * np.exp((n_inputs - 2) * np.log(np.cos(angles)))
    density /= density.sum()
    average = np.zeros_like(t)
    for angle, share in zip(np.sin(angles), density, strict=True):
        if share:
            average += share * np.cos(t * angle)
    return average


def _nonnegative_least_squares(matrix: Array, wanted: Array) -> Array:
    """Lawson and Hanson's method: columns join while they help, and leave where they would be
    negative.
    """
    n_columns = matrix.shape[1]
    found = np.zeros(n_columns)
    inside = np.zeros(n_columns, dtype=bool)
    for _ in range(3 * n_columns):
        gain = matrix.T @ (wanted - matrix @ found)
        gain[inside] = -np.inf
        best = int(gain.argmax())
        if gain[best] <= 1e-12 * np.abs(wanted).sum():
            break
        inside[best] = True
        while True:
            trial = np.zeros(n_columns)
            trial[inside] = np.linalg.lstsq(matrix[:, inside], wanted, rcond=None)[0]
            negative = inside & (trial <= 0)
            if not negative.any():
                found = trial
                break
            steps = found[negative] / (found[negative] - trial[negative])
            found = found + steps.min() * (trial - found)
            inside &= found > 1e-15
            found[~inside] = 0
    return found
