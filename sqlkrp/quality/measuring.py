"""Measuring: whatever computes, the same draws of the same maps are held against their kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps.arrays import as_source
from sqlkrp.maps.fitted import Fitted
from sqlkrp.maps.frames import local
from sqlkrp.maps.source import Source, choose_rows
from sqlkrp.pools import generator
from sqlkrp.quality.asked import Asked, Family, asked_of, family_of
from sqlkrp.quality.measured import (
    Distortion,
    Draw,
    Measured,
    Step,
    deviation_of,
    draw_of,
    predicted_of,
)
from sqlkrp.stages import Array, Program

__all__ = ["Bench", "curve_of", "distortion", "families_of", "measured"]


class Bench(Protocol):
    """Rows of one sample, on which draws of one map are measured."""

    source: Source
    """The table that the rows are of, to draw maps from."""

    def deviation(self) -> float | None:
        """The mean deviation of a squared distance that theory has for these rows, as a share."""

    def draw(self, seed: int, program: Program) -> Draw:
        """What is measured of the features that a program makes of the rows."""


def families_of(maps: Any) -> list[Family]:
    """Of one map, or of several."""
    several = [maps] if isinstance(maps, Fitted) or not isinstance(maps, Iterable) else list(maps)
    if not several:
        raise ParameterError("there is no map to measure: give one, or several in a list")
    return [family_of(one) for one in several]


def measured(family: Family, bench: Bench, asked: Asked) -> Measured:
    """A map and its family on a bench."""
    draws = tuple(bench.draw(seed, program) for seed, program in family.draws(bench.source, asked))
    return Measured(
        components=len(family.map.program.names),
        draws=draws,
        title=family.map.title,
        digest=family.map.digest_,
        kernel=family.kernel.told,
        predicted=predicted_of(bench.deviation()),
        curve=tuple(curve_of(family, bench, asked)),
    )


def curve_of(family: Family, bench: Bench, asked: Asked) -> Iterator[Step]:
    """The same with other numbers of features, where these can be chosen."""
    if family.last.counted_by is None:
        return
    for count in asked.components:
        draws, width = [], count
        for seed in family.seeds(asked):
            program = family.drawn(bench.source, seed, count)
            width = len(program.names)
            draws.append(bench.draw(seed, program))
        yield Step(width, tuple(draws))


def distortion(
    maps: Any,
    X: Any,
    *,
    rows: int = 500,
    runs: int = 10,
    seed: int = 0,
    components: Iterable[int] = (),
) -> Distortion:
    """How far features are from the kernel that their map claims, on a sample of rows of ``X``.

    The same as :meth:`Database.distortion`, computed by NumPy, of a table in memory.
    """
    asked, families = asked_of(rows, runs, seed, components), families_of(maps)
    X = local(X)
    first, *_ = (family.map.inputs(X) for family in families[:1])
    places = choose_rows(len(first), asked.rows, generator(asked.seed))
    found = []
    for family in families:
        inputs = family.map.inputs(X)[places]
        source = as_source(X)
        made = family.map.program.prepare.categories
        source = source.encoded(made) if made else source
        found.append(measured(family, _InMemory(family, source, inputs), asked))
    return Distortion(len(places), asked.seed, tuple(found))


class _InMemory:
    """Rows in memory, on which NumPy measures."""

    def __init__(self, family: Family, source: Source, inputs: Array) -> None:
        before = family.before.apply(inputs)
        self._whole = np.isfinite(before).all(axis=1)
        self._is_centred = family.kernel.is_centred
        self._sums = family.kernel.sums(before[self._whole])
        self._exact = family.kernel.of_sums(self._sums)
        self._variance = family.last.distance_variance
        self._inputs = inputs
        self.source = source

    def deviation(self) -> float | None:
        return deviation_of(self._variance, self._sums, self._exact)

    def draw(self, seed: int, program: Program) -> Draw:
        features = program.apply(self._inputs)[self._whole]
        return draw_of(seed, features, self._exact, is_centred=self._is_centred)
