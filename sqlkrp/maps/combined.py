"""Maps made of maps: several draws of one side by side, and one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import By, Whole
from sqlkrp.maps.automatic import Seen, SeenFeatures
from sqlkrp.maps.base import Transformer
from sqlkrp.maps.feature_map import FeatureMap, require_map
from sqlkrp.maps.kernels import Kernel
from sqlkrp.maps.parameters import Parameter, with_parameters
from sqlkrp.maps.shared import RANDOM_STATE
from sqlkrp.maps.source import Inputs
from sqlkrp.stages import Linear, Prepare, Program, Stage, beside

__all__ = ["Chain", "Ensemble", "chain"]

_MOST_MEMBERS = 1000


@with_parameters
class Ensemble(FeatureMap):
    r"""n independent draws of a map side by side, their features named apart.

    Feature i of member j is called ``<prefix>_<j>_<i>``. Train one model on each member's features
    and let them vote: errors that come from the draw are then averaged away. (Inner products of
    all features together are n times one member's.)

    Reference: M. Rost, T. Zast, "Approximating Kernels with Random Fourier Features", Ulm
    University, 2023, section 5.4.

    >>> from sqlkrp.maps import KRP
    >>> ensemble = Ensemble(KRP(2, 2), n_members=2, random_state=0).fit(["a", "b"])
    >>> ensemble.get_feature_names_out().tolist()
    ['krp_0_0', 'krp_0_1', 'krp_1_0', 'krp_1_1']
    """

    headline = ("map", "n_members")

    map: FeatureMap = Parameter(
        By(require_map, "a map, not fitted"),
        "the map that is drawn, whose parameters are this one's as map__degree, and which says how "
        "columns are prepared",
    ).required()
    n_members: int = Parameter(Whole(1, _MOST_MEMBERS), "n, how often it is drawn").by_default(13)
    _: KW_ONLY
    random_state: Any = RANDOM_STATE.by_default(
        None, meaning="the seed of all draws, in place of the map's own"
    )

    def parts(self) -> dict[str, FeatureMap]:
        return {"map": self.map} if isinstance(self.map, FeatureMap) else {}

    @property
    def prefix(self) -> str:  # type: ignore[override]
        return self.map.prefix

    @property
    def first(self) -> Any:
        return self.map.first

    def settle(self, seen: Seen) -> None:
        self.map.settle(seen)

    def constant(self, n_columns: int) -> float | None:
        return self.map.constant(n_columns)

    def names(self, columns: Sequence[str]) -> list[str]:
        own = f"{self.prefix}_"
        # What is not numbered after the prefix may have a name as long as names can be.
        ends = [
            name.removeprefix(own) if name.startswith(own) else str(place)
            for place, name in enumerate(self.map.names(columns))
        ]
        return [f"{own}{member}_{end}" for member in range(self.n_members) for end in ends]

    def legend_of(self, program: Program) -> dict[str, dict[str, int]]:
        return self.map.legend_of(program)

    def estimated_kernel(self) -> Kernel | None:
        # A chain's kernel is of features, of which each member has its own.
        kernel = None if isinstance(self.map, Chain) else self.map.estimated_kernel()
        return kernel and kernel.times(self.n_members)

    @property
    def counted_by(self) -> str | None:
        inner = self.map.counted_by
        return inner and f"map__{inner}"

    @property
    def is_random(self) -> bool:
        return self.map.is_random

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        members = [self.map.draw(inputs, rng) for _ in range(self.n_members)]
        stages = []
        for position, (first, *others) in enumerate(zip(*members, strict=True)):
            stages.append(beside([first, *others], shared=position == 0))
        return stages


def _require_maps(name: str, value: Any) -> None:
    if not isinstance(value, (list, tuple)) or not value:
        raise ParameterError(f"{name}={value!r} is not allowed: give a list of maps")
    for one in value:
        require_map("a map", one)


@with_parameters
class Chain(FeatureMap):
    r"""Maps one after another, each reading the features of the one before: one statement.

    Choose it to shorten rows before a map whose cost grows with the columns:
    ``chain(PCA(50), KRP(3))``. Columns, missing values and dtype are the first map's affair; a
    later one may have ``scaling=None``, which ``"auto"`` is there, or ``"standard"``, of the
    features that it reads.
    """

    headline = ("maps",)

    maps: Sequence[FeatureMap] = Parameter(
        By(_require_maps, "a list of maps, not fitted"),
        "the maps in order, which are this one's parameters too, as 0, and theirs as 0__degree",
    ).required()
    _: KW_ONLY
    random_state: Any = RANDOM_STATE.by_default(
        None, meaning="the seed of all draws, in place of the maps' own"
    )

    def parts(self) -> dict[str, FeatureMap]:
        given = self.maps if isinstance(self.maps, (list, tuple)) else ()
        return {str(place): one for place, one in enumerate(given) if isinstance(one, FeatureMap)}

    def set_part(self, name: str, value: Any) -> None:
        self.maps = [*self.maps[: int(name)], value, *self.maps[int(name) + 1 :]]

    @property
    def prefix(self) -> str:  # type: ignore[override]
        return self.maps[-1].prefix

    @property
    def first(self) -> Any:
        return self.maps[0].first

    def settle(self, seen: Seen) -> None:
        self.maps[0].settle(seen)

    def check(self) -> None:
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

    def constant(self, n_columns: int) -> float | None:
        return self.maps[0].constant(n_columns)

    def names(self, columns: Sequence[str]) -> list[str]:
        names = list(columns)
        for one in self.maps:
            names = one.names(names)
        return names

    @property
    def last(self) -> Transformer:
        return self.maps[-1].last

    def stages_before(self, program: Program) -> int:
        return len(program.stages) - _count_stages(self.last)

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        stages = self.maps[0].draw(inputs, rng)
        for one in self.maps[1:]:
            seen = SeenFeatures(inputs.after(stages))
            one.settle(seen)
            stages += _prepared(one, seen)
            stages += one.draw(inputs.after(stages), rng)
        return stages


class _NoRows:
    """In the place of rows, where only the number of stages counts: made-up ones."""

    no_rows = ""
    has_values = True
    is_sparse = False

    def sample(
        self, columns: Sequence[str], count: int, rng: np.random.Generator, spare: int = 0
    ) -> Any:
        return rng.normal(size=(count + spare, len(columns)))


def _count_stages(one: Transformer) -> int:
    """How many stages a map draws."""
    source: Any = _NoRows()
    inputs = Inputs(Prepare.plain(["made-up"]), source)
    return len(one.draw(inputs, np.random.default_rng(0)))


def chain(*parts: FeatureMap, random_state: Any = None) -> Chain:
    """Maps one after another, as one map: ``chain(PCA(50), KRP(3))``."""
    return Chain(parts, random_state=random_state)


def _prepared(one: FeatureMap, seen: SeenFeatures) -> list[Stage]:
    """What Prepare does for a first map, for one that reads features."""
    d, constant = seen.count, one.constant(seen.count)
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
