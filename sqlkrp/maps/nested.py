"""Products of many factors as stages: products of two, mixed before they are multiplied again.

A product of g projections varies as 3^g: few of them are very large. A sum of a few products varies
as a projection does, whatever their degree. So products of two are mixed by butterflies, which keep
what all of them together know, and the mixed ones are multiplied as projections are: the variance
then grows with the number of factors, not with its power. (T. D. Ahle and others, "Oblivious
sketching of high-degree polynomial kernels", SODA 2020, have such a tree of sketches.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sqlkrp import pools
from sqlkrp.stages import Array, Butterflies, Stage, SumOfProducts

__all__ = ["mixed_products"]


def mixed_products(
    rng: np.random.Generator, leaves: Sequence[Array], wanted: int, size: int, n_inputs: int
) -> tuple[list[Stage], list[Array], float]:
    """Stages from pools of projections, a pool for each factor, to two pools of their products.

    A pool is the places of its members, and has about ``wanted`` products, or all that there are
    if these are fewer. ``size`` products are mixed, which makes squares of theirs so many times as
    large. Returns stages, the two pools, and how many times too large squares of a product of both
    are.
    """
    stages: list[Stage] = []
    nodes, mixed = list(leaves), 1.0
    while len(nodes) > 2:
        groups = _in_pairs(nodes)
        factors = [_products(rng, one, wanted, size) for one in groups]
        products = SumOfProducts.plain(n_inputs, np.concatenate(factors)[:, None])
        n_inputs = products.n_outputs
        ends = np.cumsum([len(one) for one in factors])
        nodes = np.split(np.arange(n_inputs), ends[:-1])
        place = np.concatenate([rng.permutation(one) for one in nodes]).astype("i4")
        sign = pools.draw_signs(rng, (n_inputs,))
        stages += [products, Butterflies(n_inputs, place.reshape(-1, size), sign.reshape(-1, size))]
        mixed *= float(size) ** len(nodes)
    return stages, nodes, mixed


def _in_pairs(nodes: Sequence[Array]) -> list[Sequence[Array]]:
    """Nodes in groups of two and then of one, so many that they can be halved from now on."""
    groups = 1 << (math.ceil(math.log2(len(nodes))) - 1)
    pairs = len(nodes) - groups
    return [nodes[2 * i : 2 * i + 2] for i in range(pairs)] + [
        nodes[i : i + 1] for i in range(2 * pairs, len(nodes))
    ]


def _products(rng: np.random.Generator, group: Sequence[Array], wanted: int, size: int) -> Array:
    """The factors of each product of a group's members: (product, 2), or what is there alone."""
    if len(group) == 1:
        return np.stack([group[0], np.full(len(group[0]), -1)], axis=1)
    first, second = group
    count = min(wanted, max(len(first) * len(second), size))
    chosen = pools.choose_pairs(rng, len(first), len(second), -(-count // size) * size)
    return np.stack([first[chosen[:, 0]], second[chosen[:, 1]]], axis=1)
