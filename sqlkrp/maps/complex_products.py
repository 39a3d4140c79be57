"""Products of complex numbers as stages, which know real numbers only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import Whole
from sqlkrp.maps.shared import (
    DEGREE,
)
from sqlkrp.stages import Array, Stage, SumOfProducts

__all__ = ["SMOOTH_DEGREE", "complex_sums", "without_factors"]


def complex_sums(places: Array, term_signs: Array, n_inputs: int) -> list[Stage]:
    """Stages from places (component, term, factor, part) to sums over terms of complex products.

    Part 0 of a complex number is the real and 1 the imaginary one; outputs are (component, part).
    Products of many factors are made of products of fewer, which take fewer multiplications.
    """
    stages: list[Stage] = []
    components, terms, g, _ = places.shape
    while (p := _smallest_prime(g)) < g:
        factors, signs = _complex_terms(places.reshape(-1, p, 2))
        count = len(factors)
        stages.append(SumOfProducts(n_inputs, *_flat(2 * count, factors, signs)))
        g, n_inputs = g // p, 2 * count
        places = np.arange(n_inputs).reshape(components, terms, g, 2)
    factors, signs = _complex_terms(places.reshape(-1, p, 2))
    signs = signs.reshape(components, terms, *signs.shape[1:]) * term_signs[:, :, None, None]
    factors = factors.reshape(components, terms, *factors.shape[1:])
    # (component, term, part, product) to (component, part, term, product)
    merged = factors.transpose(0, 2, 1, 3, 4), signs.transpose(0, 2, 1, 3)
    stages.append(SumOfProducts(n_inputs, *_flat(2 * components, *merged)))
    return stages


def without_factors(degree: int, largest: int) -> int:
    """What is left of a degree that is divided by all its prime factors up to the largest."""
    for factor in range(2, largest + 1):
        while degree % factor == 0:
            degree //= factor
    return degree


def require_factors(name: str, degree: int) -> None:
    """Raise ParameterError if products of so many complex numbers are made of too many terms."""
    left = without_factors(degree, 7)
    if left > 1:
        raise ParameterError(
            f"{name}={degree} is not allowed: a product of {left} complex numbers has too many "
            "terms; use a degree whose prime factors are 2, 3, 5 and 7, or KRP"
        )


SMOOTH_DEGREE = replace(
    DEGREE,
    check=Whole(1, 1000, also=require_factors),
    meaning=f"{DEGREE.meaning}, without prime factors over 7",
)


def _smallest_prime(n: int) -> int:
    return next((p for p in range(2, n + 1) if not n % p), 1)


def _flat(n_outputs: int, factors: Array, signs: Array) -> tuple[Array, Array]:
    degree = factors.shape[-1]
    return (
        factors.reshape(n_outputs, -1, degree).astype("i4"),
        signs.reshape(n_outputs, -1).astype("i1"),
    )


def _complex_terms(places: Array) -> tuple[Array, Array]:
    """Products of complex numbers at (product, factor, part), as (product, part, term, factor).

    A choice of the real or the imaginary part of each factor makes a real term where an even
    number is imaginary, and an imaginary one else; with the sign of i to that power.
    """
    n_factors = places.shape[1]
    choices = np.stack(list(np.indices((2,) * n_factors)), axis=-1).reshape(-1, n_factors)
    imaginary = choices.sum(axis=1)
    by_part = [choices[imaginary % 2 == part] for part in (0, 1)]
    factors = np.stack(
        [np.stack([places[:, j, one[:, j]] for j in range(n_factors)], axis=-1) for one in by_part],
        axis=1,
    )
    signs = np.stack([np.where(one.sum(axis=1) // 2 % 2, -1, 1) for one in by_part])
    return factors, np.broadcast_to(signs, (len(places), *signs.shape))
