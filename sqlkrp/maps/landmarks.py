"""Maps fitted to landmarks, rows of the table itself: Nystroem, and Kulis and Grauman's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np

from sqlkrp.maps.allowed import OneOf, Whole
from sqlkrp.maps.kernels import Kernel, linear, polynomial, rbf
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import COEF0, COMPONENTS, DEGREE, GAMMA, KERNEL, SingleMap
from sqlkrp.maps.source import Inputs
from sqlkrp.stages import (
    Array,
    Distances,
    Elementwise,
    Linear,
    Stage,
    SumOfProducts,
    apply,
)

__all__ = ["KGRP", "Nystroem"]

# Eigenvalues below this share of their sum are taken for rounding errors of zero.
_LEAST = 1e-12


def _kernel(
    kind: str, points: Array, gamma: float, coef0: float, degree: int, size: float = 1.0
) -> list[Stage]:
    """The stages from a row to its kernel with each of the points, divided by size^degree."""
    count = len(points)
    places = np.arange(count, dtype="i4")
    if kind == "rbf":
        negative = Linear.scaled(count, -gamma)
        return [Distances.to_points(points), negative, Elementwise(count, "exp")]
    if kind == "linear":
        return [Linear.dense(points.astype("float64") / size)]
    base = Linear.scaled(count, gamma / size, coef0 / size)
    power = SumOfProducts.plain(count, np.repeat(places[:, None, None], degree, axis=2))
    return [Linear.dense(points), base, power]


def _size(kind: str, points: Array, gamma: float, coef0: float) -> float:
    """The largest number that is raised to the degree among the points; 1 if there is none."""
    squares = float(np.square(points, dtype="float64").sum(axis=1).max())
    sizes = {"linear": squares, "polynomial": gamma * squares + coef0, "rbf": 1.0}
    return sizes[kind] or 1.0


def _balanced(one: Nystroem | KGRP, points: Array) -> tuple[list[Stage], Array]:
    """The stages from a row to its kernel with each point, and the kernel of the points.

    Features are K(x, S) K(S, S)^(-1/2). With the size s of what is raised to the degree g, the
    first is divided by s^(g/2), which makes it of the features' own size, and the second by s^g:
    so each is in the range of numbers where features are.
    """
    size = _size(one.kernel, points, one.gamma, one.coef0)
    kind = one.kernel, points, one.gamma, one.coef0, one.degree
    stages = _kernel(*kind, math.sqrt(size))
    if not math.isfinite(size) or not np.isfinite(_applied(stages, points)).all():
        raise OverflowError("features of the landmarks are no numbers")
    return stages, _applied(_kernel(*kind, size), points)


def _applied(stages: list[Stage], rows: Array) -> Array:
    values = rows.astype("float64")
    for stage in stages:
        values = apply(stage, values)
    return values


def _inverse_root(matrix: Array, size: float, dtype: str) -> Array:
    """K^(-1/2) of a symmetric matrix without negative eigenvalues, on what is not zero of it.

    What is small against ``size``, of the matrix that it was made of, is a rounding error, or
    would make much of those of the features.
    """
    values, vectors = np.linalg.eigh(matrix)
    least = max(_LEAST, float(np.finfo(dtype).eps))
    there = values > least * max(size, np.finfo(float).tiny)
    root: Array = (vectors[:, there] / np.sqrt(values[there])) @ vectors[:, there].T
    return root


_KERNEL = replace(
    KERNEL,
    check=OneOf(
        {
            "linear": "<x, y>",
            "polynomial": "(gamma <x, y> + coef0)^degree",
            "rbf": "exp(-gamma |x - y|^2)",
        }
    ),
)


@with_parameters
class _LandmarkMap(SingleMap):
    """What maps share that are made of a kernel and of rows of the table."""

    n_components: int = COMPONENTS.by_default(100)
    _: KW_ONLY
    kernel: str = _KERNEL.by_default("rbf")
    degree: int = DEGREE.by_default(2)
    gamma: Any = GAMMA.by_default("auto")  # a number by the time of the draw
    coef0: float = COEF0.by_default(1.0)

    def estimated_kernel(self) -> Kernel | None:
        return _KERNELS[self.kernel](self)


#: The kernels as what they are, beside the stages above that compute them with landmarks.
_KERNELS: dict[str, Callable[[Any], Kernel]] = {
    "linear": lambda one: linear(),
    "polynomial": lambda one: polynomial(one.degree, one.gamma, one.coef0),
    "rbf": lambda one: rbf(one.gamma),
}


@with_parameters
class Nystroem(_LandmarkMap):
    r"""The kernel with k landmark rows, turned so that inner products come out right on these.

    f(x) = K(x, S) W^(-1/2), with S the landmarks, k rows of the table drawn without replacement
    by the seed, and W = K(S, S). <f(x), f(y)> is the kernel's projection on the landmarks' span:
    exact for landmarks (in single precision: to about 1e-3, as directions in which they hardly
    differ are left out), and biased towards 0 for rows that are unlike all of them.

    Choose it where rows resemble each other, for smooth kernels: its few features then beat
    random ones. It costs multiplications, k a column.

    Reference: C. Williams, M. Seeger, "Using the Nystroem method to speed up kernel machines",
    NIPS 2000.
    """

    prefix = "nystroem"
    headline = ("n_components", "kernel")

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        points = inputs.rows(self.n_components, rng)
        stages, kernel = _balanced(self, points)
        root = _inverse_root(kernel, np.trace(kernel), inputs.prepare.dtype)
        return [*stages, Linear.dense(root)]


@with_parameters
class KGRP(_LandmarkMap):
    r"""Random projections in the kernel's own feature space, from p rows of the table.

    f(x) = 1/sqrt(k) K(x, S) W, with S the landmarks, K the kernel centred on them, and column l of
    W being c K^(-1/2) e_l, where e_l marks t of the p landmarks: nearly Gaussian directions of the
    feature space, by the central limit theorem. With c^2 = p (p - 1) / (t (p - t)) the inverse
    of what marks vary, <f(x), f(y)> is on average the centred kernel's projection on the
    landmarks' span (with the paper's (p - 1) / t, a share t/p less); more components do not mend
    what the landmarks do not span.

    Choose it for kernels that have no features of their own, where random directions are wanted
    (hashing); otherwise :class:`Nystroem` is better at the same cost.

    Reference: B. Kulis, K. Grauman, "Kernelized locality-sensitive hashing", IEEE TPAMI 2012.
    """

    prefix = "kgrp"
    headline = ("n_components", "n_landmarks", "kernel")

    _: KW_ONLY
    n_landmarks: int = Parameter(
        Whole(2), "p, how many rows of the table are drawn", metavar="P"
    ).by_default(300)
    n_marked: int = Parameter(
        Whole(1), "t, how many of the rows drawn make a direction", metavar="T"
    ).by_default(30)
    kernel: str = _KERNEL.by_default("polynomial")

    def check(self) -> None:
        Whole(1, self.n_landmarks - 1).require("n_marked", self.n_marked)

    def estimated_kernel(self) -> Kernel | None:
        return replace(_KERNELS[self.kernel](self), is_centred=True)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        points = inputs.rows(self.n_landmarks, rng)
        p, k = len(points), self.n_components
        stages, kernel = _balanced(self, points)
        centre = np.eye(p) - 1 / p
        t = self.n_marked
        marks = np.zeros((p, k))
        for column in marks.T:
            column[rng.choice(p, t, replace=False)] = 1
        spread = math.sqrt(p * (p - 1) / (t * (p - t)))
        root = _inverse_root(centre @ kernel @ centre, np.trace(kernel), inputs.prepare.dtype)
        directions = spread * root
        weights = (centre @ directions @ marks / math.sqrt(k)).T
        constant = -weights @ _applied(stages, points).mean(axis=0)
        return [*stages, Linear.dense(weights), Linear.scaled(k, 1.0, constant)]
