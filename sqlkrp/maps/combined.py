"""Maps made of maps: several draws of one side by side, and one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps.automatic import Seen, SeenFeatures
from sqlkrp.maps.base import Transformer
from sqlkrp.maps.feature_map import FeatureMap, require_map
from sqlkrp.maps.parameters import whole
from sqlkrp.maps.source import Inputs
from sqlkrp.stages import Linear, Stage, beside

__all__ = ["Chain", "Ensemble", "chain"]

_MOST_MEMBERS = 1000


class Ensemble(FeatureMap):
    r"""n independent draws of a map side by side, their features named apart.

    Feature i of member j is called ``<prefix>_<j>_<i>``. Train one model on each member's features
    and let them vote: errors that come from the draw are then averaged away. (Inner products of
    all features together are n times one member's.)

    Parameters
    ----------
    map : the map, not fitted; its scaling, policy and dtype are the ensemble's. Its parameters are
        this one's as ``map__degree``.
    n_members : n, how often it is drawn; at most 1,000.
    random_state : the seed of all draws; the map's own is not used.

    Reference: M. Rost, T. Zast, "Approximating Kernels with Random Fourier Features", Ulm
    University, 2023, section 5.4.

    >>> from sqlkrp.maps import KRP
    >>> ensemble = Ensemble(KRP(2, 2), n_members=2, random_state=0).fit(["a", "b"])
    >>> ensemble.get_feature_names_out().tolist()
    ['krp_0_0', 'krp_0_1', 'krp_1_0', 'krp_1_1']
    """

    headline = ("map", "n_members")

    def __init__(
        self, map: FeatureMap, n_members: int = 13, *, random_state: int | None = None
    ) -> None:
        self.map = map
        self.n_members = n_members
        self.random_state = random_state

    def parts(self) -> dict[str, FeatureMap]:
        return {"map": self.map} if isinstance(self.map, FeatureMap) else {}

    @property
    def prefix(self) -> str:  # type: ignore[override]
        return self.map.prefix

    @property
    def n_components(self) -> int:  # type: ignore[override]
        return self.n_members * self.map.n_components

    @property
    def first(self) -> Transformer:
        return self.map.first

    def settle(self, seen: Seen) -> None:
        self.map.settle(seen)

    def check_common(self) -> None:
        require_map("map", self.map)
        whole("n_members", self.n_members, at_least=1, at_most=_MOST_MEMBERS)
        self.map.check_common()

    def check(self) -> None:
        self.map.check()

    def constant(self) -> float | None:
        return self.map.constant()

    def names(self, count: int) -> list[str]:
        each = count // self.n_members
        return [
            name.replace(self.prefix, f"{self.prefix}_{member}", 1)
            for member in range(self.n_members)
            for name in self.map.names(each)
        ]

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        members = [self.map.draw(inputs, rng) for _ in range(self.n_members)]
        stages = []
        for position, (first, *others) in enumerate(zip(*members, strict=True)):
            stages.append(beside([first, *others], shared=position == 0))
        return stages


class Chain(FeatureMap):
    r"""Maps one after another, each reading the features of the one before: one statement.

    Choose it to shorten rows before a map whose cost grows with the columns:
    ``chain(PCA(50), KRP(3))``. Columns, missing values and dtype are the first map's affair; a
    later one may have ``scaling=None``, which ``"auto"`` is there, or ``"standard"``, of the
    features that it reads.

    Parameters
    ----------
    maps : the maps, in order, not fitted. They are this one's parameters too, as ``0``, and
        theirs as ``0__degree``.
    random_state : the seed of all draws; the maps' own are not used.
    """

    headline = ("maps",)

    def __init__(self, maps: Sequence[FeatureMap], *, random_state: int | None = None) -> None:
        self.maps = maps
        self.random_state = random_state

    def parts(self) -> dict[str, FeatureMap]:
        given = self.maps if isinstance(self.maps, (list, tuple)) else ()
        return {str(place): one for place, one in enumerate(given) if isinstance(one, FeatureMap)}

    def set_part(self, name: str, value: Any) -> None:
        self.maps = [*self.maps[: int(name)], value, *self.maps[int(name) + 1 :]]

    @property
    def prefix(self) -> str:  # type: ignore[override]
        return self.maps[-1].prefix

    @property
    def n_components(self) -> int:  # type: ignore[override]
        return self.maps[-1].n_components

    @property
    def first(self) -> Transformer:
        return self.maps[0].first

    def settle(self, seen: Seen) -> None:
        self.maps[0].settle(seen)

    def check_common(self) -> None:
        if not isinstance(self.maps, (list, tuple)) or not self.maps:
            raise ParameterError(f"maps={self.maps!r} is not allowed: give a list of maps")
        for one in self.maps:
            require_map("a map", one)
            one.check_common()

    def check(self) -> None:
        for one in self.maps:
            one.check()
        for one in self.maps[1:]:
            reads = one.first
            if reads.scaling not in ("auto", None, "standard"):
                raise ParameterError(
                    f"scaling={reads.scaling!r} is not allowed behind another map: use None or "
                    "'standard'"
                )
            if reads.clip not in ("auto", None):
                raise ParameterError(
                    f"clip={reads.clip!r} is not allowed behind another map: leave it out"
                )

    def constant(self) -> float | None:
        return self.maps[0].constant()

    def names(self, count: int) -> list[str]:
        return self.maps[-1].names(count)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        stages = self.maps[0].draw(inputs, rng)
        for one in self.maps[1:]:
            seen = SeenFeatures(inputs.after(stages))
            one.settle(seen)
            stages += _prepared(one, seen)
            stages += one.draw(inputs.after(stages), rng)
        return stages


def chain(*parts: FeatureMap, random_state: int | None = None) -> Chain:
    """Maps one after another, as one map: ``chain(PCA(50), KRP(3))``."""
    return Chain(parts, random_state=random_state)


def _prepared(one: FeatureMap, seen: SeenFeatures) -> list[Stage]:
    """What Prepare does for a first map, for one that reads features."""
    d, constant = seen.count, one.constant()
    places = np.arange(d, dtype="i4")
    factor, shift = np.ones(d), np.zeros(d)
    if one.first.scaling == "standard":
        mean, variance = seen.moments()
        # A constant feature is only shifted: what varies of it is rounding, here or in averages.
        varies = np.sqrt(variance) > seen.inputs.rounding() + 1e-12 * np.abs(mean)
        factor = 1 / np.sqrt(np.where(varies, variance, 1))
        shift = -mean * factor
    elif constant is None:
        return []
    if constant is not None:
        places, factor = np.append(places, 0).astype("i4"), np.append(factor, 0.0)
        shift = np.append(shift, constant)
    return [Linear.picked(d, places, factor, shift)]
