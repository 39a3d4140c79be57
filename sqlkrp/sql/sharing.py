"""Signed sums as circuits: the same sums in fewer additions.

A circuit is layers of columns, each a sum or difference of two columns below, and on top of them
the sums. There are three ways to one, and all give the same numbers wherever sums are exact:

- ``plain``: no layers, one sum a hyperplane.
- ``shared``: columns are cut into groups, and what some hyperplane makes of a group (a pattern of
  signs, up to a global one) is computed once for all of them ("four Russians").
- ``butterflies``: the chunks of a Hadamard pool in log2 m layers.

What one column stands for may be plus or minus what is asked; the sign is paid for at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sqlkrp.stages import Butterflies, Linear, SumOfProducts

__all__ = [
    "Circuit",
    "Layer",
    "Pairs",
    "additions_of_groups",
    "butterflies",
    "paired",
    "plain",
    "shared",
]

#: Places, from 1, of a layer below; a negative one stands for minus its column, 0 for nothing.
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layer:
    """Columns that are ``first + second``; without a second one, a column goes through."""

    first: Places
    second: Places

    @property
    def additions(self) -> int:
        """Additions and subtractions a row."""
        return int(np.count_nonzero(self.second))


@dataclass(frozen=True, eq=False)
class Circuit:
    """Layers, and the sums of places of the last one (or of the inputs, if there is none)."""

    layers: tuple[Layer, ...]
    starts: Places
    """Where each sum's terms begin; one more at the end."""
    terms: Places

    @property
    def additions(self) -> int:
        """Additions and subtractions a row."""
        sizes = np.diff(self.starts)
        in_sums = int(sizes.sum() - np.count_nonzero(sizes))
        return sum(layer.additions for layer in self.layers) + in_sums

    @cached_property
    def is_named(self) -> bool:
        """Whether each sum is a column of the last layer, as it stands."""
        one_each = bool((np.diff(self.starts) == 1).all())
        return bool(self.layers) and one_each and bool((self.terms > 0).all())

    @property
    def columns(self) -> int:
        """Columns of all layers: what a row needs room for on the way."""
        return sum(len(layer.first) for layer in self.layers)

    @property
    def widest(self) -> int:
        """Columns of the widest layer."""
        return max((len(layer.first) for layer in self.layers), default=0)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Products of two inputs, each computed once, and the terms as a pair times other inputs."""

    pairs: NDArray[np.int64]
    """(pair, 2): the two inputs."""
    place: NDArray[np.int64]
    """(component, term): the pair in it."""
    others: NDArray[np.int64]
    """(component, term, degree - 2): the inputs that it is multiplied by."""

    @property
    def saved(self) -> int:
        """How many products fewer there are."""
        return int(self.place.size - len(self.pairs))


def paired(stage: SumOfProducts) -> Pairs:
    """In each term, the pair of factors that most terms have in common."""
    n_components, n_terms, degree = stage.factors.shape
    factors = np.sort(stage.factors.astype("int64"), axis=2).reshape(-1, degree)
    first, second = np.triu_indices(degree, k=1)
    keys = factors[:, first] * stage.n_inputs + factors[:, second]
    if not keys.size:  # a single factor has no pair
        nothing = np.zeros((0, 2), dtype="int64")
        return Pairs(nothing, np.zeros((0, 0), dtype="int64"), factors)
    _, place, count = np.unique(keys, return_inverse=True, return_counts=True)
    best = count[place.reshape(keys.shape)].argmax(axis=1)
    rows = np.arange(len(factors))
    chosen, place = np.unique(keys[rows, best], return_inverse=True)
    left = np.ones_like(factors, dtype=bool)
    left[rows, first[best]] = left[rows, second[best]] = False
    pairs = np.column_stack([chosen // stage.n_inputs, chosen % stage.n_inputs])
    shape = n_components, n_terms
    others = factors[left].reshape(*shape, degree - 2)
    return Pairs(pairs, place.reshape(shape), others)


def plain(stage: Linear) -> Circuit:
    """Each sum by itself."""
    terms = (stage.input.astype("int64") + 1) * stage.value
    return Circuit((), stage.starts.astype("int64"), terms)


def shared(stage: Linear, size: int) -> Circuit:
    """What hyperplanes have in common on a group of so many columns, once for all of them."""
    matrix = np.zeros((stage.n_sums, stage.n_inputs), dtype="int64")
    matrix[stage.output, stage.input] = (stage.input.astype("int64") + 1) * stage.value
    n_groups = -(-stage.n_inputs // size)
    padded = np.zeros((stage.n_sums, n_groups * size), dtype="int64")
    padded[:, : stage.n_inputs] = matrix
    groups = padded.reshape(stage.n_sums, n_groups, size)
    layers = []
    while groups.shape[2] > 1:
        if groups.shape[2] % 2:
            groups = np.concatenate([groups, np.zeros_like(groups[:, :, :1])], axis=2)
        layer, groups = _joined(groups[:, :, ::2], groups[:, :, 1::2])
        layers.append(layer)
    places = groups[:, :, 0]
    counts = np.count_nonzero(places, axis=1)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Circuit(tuple(layers), starts, places[places != 0])


def additions_of_groups(stage: Linear, size: int) -> int:
    """The additions that :func:`shared` needs for the sums alone, however much is shared."""
    met = np.zeros((stage.n_sums, -(-stage.n_inputs // size)), dtype=bool)
    met[stage.output, stage.input // size] = True
    return int(np.count_nonzero(met) - np.count_nonzero(met.any(axis=1)))


def butterflies(stage: Butterflies) -> Circuit:
    """The layers a +- b of every pair of places that lie 1, 2, 4, ... apart."""
    values = (stage.place.astype("int64") + 1) * stage.sign
    layers, half = [], 1
    while half < stage.outputs_a_row:
        pairs = values.reshape(len(values), -1, 2, half)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        both = np.stack([low, low], axis=2), np.stack([high, -high], axis=2)
        layer, joined = _joined(*both)
        layers.append(layer)
        values, half = joined.reshape(values.shape), 2 * half
    flat = values.ravel()
    starts = np.concatenate([[0], np.cumsum(flat != 0)])
    return Circuit(tuple(layers), starts, flat[flat != 0])


def _joined(a: Places, b: Places) -> tuple[Layer, Places]:
    """A layer of all that is different among a + b, and where in it each of them is."""
    lone = np.where(a == 0, b, a)
    sign = np.where(lone < 0, -1, 1)
    first = np.abs(lone)
    second = np.where(a == 0, 0, b * sign)
    many = int(max(first.max(initial=0), np.abs(second).max(initial=0))) + 1
    keys, place = np.unique(first * (2 * many) + second + many, return_inverse=True)
    # Nothing and nothing is nothing: its key is the smallest, if it is there at all.
    nothing = int(keys.size and keys[0] == many)
    places = (place.reshape(a.shape) + 1 - nothing) * sign
    keys = keys[nothing:]
    return Layer(keys // (2 * many), keys % (2 * many) - many), places
