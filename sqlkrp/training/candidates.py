"""What is tried: maps beside the columns themselves, and the losses that weigh their features."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.mapfile import unfitted
from sqlkrp.maps import CLASSES
from sqlkrp.maps.automatic import SeenColumns, gamma_of
from sqlkrp.maps.combined import chain
from sqlkrp.maps.feature_map import FeatureMap, require_map
from sqlkrp.maps.fourier import RandomFourier
from sqlkrp.maps.krp import KRP
from sqlkrp.maps.landmarks import Nystroem
from sqlkrp.maps.linear import PCA
from sqlkrp.maps.monomials import Monomials
from sqlkrp.maps.parameters import copied, plain, title_of
from sqlkrp.maps.thresholds import Thresholds
from sqlkrp.stages import Array
from sqlkrp.training.asked import SQUARES
from sqlkrp.training.features import Features
from sqlkrp.training.seen import Seen

__all__ = ["Candidate", "Drawn", "asked_for", "by_default", "raw", "told_again"]

# What the default search was tuned with; see docs/training.md.
_FEATURES, _LANDMARKS, _MANY_COLUMNS, _SHORTENED = 1_000, 300, 100, 50
_NARROW = 0.3
# Thresholds of a column, alone and where Fourier features read them; in all no more than there are
# features, and with fewer a column they say too little.
_THRESHOLDS, _THRESHOLDS_READ, _FEWEST_THRESHOLDS = 20, 10, 3
_NARROW_OF_THRESHOLDS = 0.2
_CLIP = 3.0
_PREPARED: dict[str, Any] = {"scaling": "standard", "nulls": "mean"}


@dataclass(frozen=True)
class Candidate:
    """Maps side by side, as they are before they are drawn."""

    name: str
    maps: tuple[FeatureMap, ...]
    numbers_only: frozenset[int] = frozenset()
    """The places of the maps that read no indicators."""
    loss: str = SQUARES
    is_raw: bool = False
    """Whether it weighs nothing but the columns themselves."""

    def told(self) -> dict[str, Any]:
        """The same in plain values."""
        return {
            "name": self.name,
            "maps": [plain(one) for one in self.maps],
            "numbers_only": sorted(self.numbers_only),
            "loss": self.loss,
            "is_raw": self.is_raw,
        }

    def by(self, loss: str) -> Candidate:
        """The same, learned by another loss."""
        return replace(self, name=f"{self.name}, {loss}", loss=loss)

    def drawn(self, seen: Seen) -> Drawn:
        """The same for the columns that were seen."""
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # more features than monomials: penalties see to it
            for place, one in enumerate(self.maps):
                names = seen.numbers if place in self.numbers_only else list(seen.usable)
                if not names:
                    raise ParameterError(
                        f"{self.name!r} reads numbers alone, and no column has others than of two "
                        "values: ask for other maps, or be like another model"
                    )
                found.append(copied(one).fit(seen, include=names))
        return Drawn(self, tuple(found), seen)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A candidate that was drawn: from rows of inputs to features."""

    candidate: Candidate
    maps: tuple[FeatureMap, ...]
    seen: Seen

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.writer.count

    @cached_property
    def writer(self) -> Features:
        """What makes its features, without what it was drawn from."""
        programs = [one.program for one in self.maps]
        return Features(programs, [self.seen.places(one.prepare.columns) for one in programs])

    def features(self, inputs: Array) -> Array:
        """Features (row, feature) of inputs (row, input)."""
        return self.writer.of(inputs)


def _columns(clip: float | None) -> Monomials:
    """The columns themselves."""
    return Monomials(1, coef0=0.0, gamma=1.0, clip=clip, **_PREPARED)


def _beside(name: str, one: FeatureMap, *, hold: bool, numbers_only: bool = False) -> Candidate:
    """A map beside the columns."""
    return Candidate(
        f"columns + {name}",
        (_columns(_CLIP if hold else None), one),
        frozenset({1}) if numbers_only else frozenset(),
    )


def by_default(seen: Seen, seed: int, *, hold: bool) -> list[Candidate]:
    """The maps beside the columns that are tried where nobody asks for others."""
    beside = partial(_beside, hold=hold)
    found = []
    count, numbers = len(seen.usable), seen.numbers
    own: dict[str, Any] = {"random_state": seed, "clip": _CLIP, **_PREPARED}
    for degree in (2, 3):
        # As many products as there are columns to choose from, with the constant.
        if math.comb(count + degree, degree) <= _FEATURES:
            found.append(beside(f"monomials of degree {degree}", Monomials(degree, **own)))
    if math.comb(count + 3, 3) > _FEATURES:
        found.append(beside("KRP of degree 3", KRP(3, _FEATURES, n_terms=1, **own)))
    wide = total_variance(seen, list(seen.usable))
    if numbers:
        narrow = _NARROW / total_variance(seen, numbers)
        found.append(beside(
            "Fourier, numbers", RandomFourier(_FEATURES, gamma=narrow, **own), numbers_only=True
        ))  # fmt: skip
        found.append(beside(
            "landmarks, numbers", _landmarks(seen, narrow, own), numbers_only=True
        ))  # fmt: skip
    found.append(beside("Fourier", RandomFourier(_FEATURES, gamma=1 / wide, **own)))
    found.append(beside("landmarks", _landmarks(seen, 1 / wide, own)))
    if hold:  # beyond the last threshold nothing goes on
        found += _of_thresholds(seen, seed)
    if len(numbers) > _MANY_COLUMNS:
        shorter = PCA(_SHORTENED, clip=_CLIP, **_PREPARED)
        longer = KRP(2, _FEATURES, scaling=None, clip=None, nulls="mean")
        both = chain(shorter, longer, random_state=seed)
        found.append(beside(f"PCA({_SHORTENED}) and KRP of degree 2", both))
    return found


def _of_thresholds(seen: Seen, seed: int) -> list[Candidate]:
    """Thresholds of the numbers; and Fourier features of them: an indicator has one."""
    found = []
    count, n_numbers = len(seen.usable), len(seen.numbers)
    many, few = (
        min(most, (_FEATURES - others) // max(1, n_numbers))
        for most, others in ((_THRESHOLDS, 0), (_THRESHOLDS_READ, count - n_numbers))
    )
    if n_numbers and few >= _FEWEST_THRESHOLDS:
        thresholds = Thresholds(many, nulls="mean")
        found.append(_beside("thresholds", thresholds, hold=True, numbers_only=True))
        width = _NARROW_OF_THRESHOLDS / (few * n_numbers + count - n_numbers)
        fourier = RandomFourier(_FEATURES, gamma=width, scaling="standard", clip=None, nulls="mean")
        both = chain(Thresholds(few, nulls="mean"), fourier, random_state=seed)
        found.append(_beside("Fourier of thresholds", both, hold=True))
    return found


def raw(*, hold: bool) -> list[Candidate]:
    """The columns alone, as they are and held.

    Not where time goes on: what grows with it would stand still.
    """
    found = [Candidate("columns", (_columns(None),), is_raw=True)]
    if hold:
        found.append(Candidate("columns, held within 3 sd", (_columns(_CLIP),), is_raw=True))
    return found


def _landmarks(seen: Seen, gamma: float, own: dict[str, Any]) -> Nystroem:
    return Nystroem(min(_LANDMARKS, max(2, len(seen.drawn.inputs) // 4)), gamma=gamma, **own)


def total_variance(seen: Seen, columns: Sequence[str]) -> float:
    """That of these columns, as they are prepared."""
    moments = seen.statistics(columns).rounded().without_gaps()
    return 1 / float(gamma_of(SeenColumns(columns, moments, False), "standard", 2).value)


def told_again(told: Mapping[str, Any]) -> Candidate:
    """The candidate of plain values."""
    maps = tuple(unfitted(one["map"], one["parameters"], CLASSES) for one in told["maps"])
    return Candidate(
        told["name"], maps, frozenset(told["numbers_only"]), told["loss"], told["is_raw"]
    )


def asked_for(maps: Iterable[FeatureMap], seed: int, loss: str, *, hold: bool) -> list[Candidate]:
    """The maps that were named, each beside the columns."""
    if isinstance(maps, FeatureMap) or not isinstance(maps, Iterable):
        raise ParameterError(f"maps={maps!r} is not allowed: give a list of maps")
    found = []
    for one in maps:
        require_map("maps", one)
        mine = copied(one)
        mine.check_parameters()
        if getattr(mine.first, "nulls", "error") not in ("mean", "error"):
            raise ParameterError(
                f"maps are trained with nulls='mean', and {one!r} has another: leave nulls out"
            )
        mine.first.set_params(nulls="mean")
        if mine.get_params(deep=False).get("random_state", seed) is None:
            mine.set_params(random_state=seed)
        name = title_of(mine, mine.get_params(deep=False))
        found.append(replace(_beside(name, mine, hold=hold), loss=loss))
    return found
