"""What is held against its kernel: a map in hand, other draws of it, and with more features."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import Whole
from sqlkrp.maps.base import Transformer
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.fitted import require_fitted
from sqlkrp.maps.kernels import Kernel
from sqlkrp.maps.parameters import copied
from sqlkrp.maps.source import Inputs, Source
from sqlkrp.pools import generator
from sqlkrp.stages import Linear, Prepare, Program, Stage

__all__ = ["Asked", "Family", "asked_of", "family_of"]

# In the seeds of fresh draws, so that none is a seed that a user may have drawn the map with.
_FRESH = 0x6B72700000
# Of more there are more than twelve million pairs, which tell nothing that fewer do not.
_MOST_ROWS = 5000
# Means of so many draws are known well enough.
_MOST_RUNS = 1000


@dataclass(frozen=True)
class Asked:
    """How much is measured."""

    rows: int
    runs: int
    seed: int
    components: tuple[int, ...]


def asked_of(rows: int, runs: int, seed: int, components: Iterable[int]) -> Asked:
    """It, or ParameterError if it is not allowed."""
    if isinstance(components, str) or not isinstance(components, Iterable):
        raise ParameterError(
            f"components={components!r} is not allowed: give a list of numbers, such as [100, 500]"
        )
    return Asked(
        Whole(2, _MOST_ROWS).require("rows", rows),
        Whole(1, _MOST_RUNS).require("runs", runs),
        Whole(0).require("seed", seed),
        tuple(sorted({Whole(1).require("one of components", one) for one in components})),
    )


@dataclass(frozen=True)
class Family:
    """A map, what its kernel is, and how others are drawn that differ in nothing but the seed."""

    map: FeatureMap
    last: Transformer
    """The map that its features come out of, not fitted; no parameter is ``"auto"`` any more."""
    kernel: Kernel
    n_before: int
    """How many stages of its program there are before those that estimate the kernel."""

    @property
    def before(self) -> Program:
        """From the table's columns to what the kernel is of."""
        stages = self.map.program.stages[: self.n_before]
        count = stages[-1].n_outputs
        if self.last.constant(count - 1) is not None:
            # The last of what the map reads, which the kernel's own constant tells of.
            stages = (*stages, Linear.picked(count, np.arange(count - 1)))
        return Program(stages, _numbered(stages[-1].n_outputs))

    def drawn(self, source: Source, seed: int, n_components: int | None = None) -> Program:
        """Another draw, for the same inputs; on request of another number of features."""
        one = self.last
        if n_components is not None:
            assert one.counted_by is not None
            one = copied(one).set_params(**{one.counted_by: n_components})
            one.check_parameters()
        *before, reads = self.map.program.stages[: self.n_before]
        before.append(_with_constant(reads, one))
        assert isinstance(before[0], Prepare)
        inputs = Inputs(before[0], source, tuple(before[1:]))
        with np.errstate(all="ignore"):
            stages = (*before, *one.draw(inputs, generator(seed)))
        return Program(stages, _numbered(stages[-1].n_outputs))

    def draws(self, source: Source, asked: Asked) -> Iterator[tuple[int, Program]]:
        """The map in hand, then as many others as are asked for, each with its seed."""
        program = self.map.program
        yield self.map.seed_, Program(program.stages, _numbered(len(program.names)))
        if self.last.is_random:
            for seed in self.seeds(asked)[1:]:
                yield seed, self.drawn(source, seed)

    def allows(self, n_components: int) -> bool:
        """Whether there can be a map of so many features."""
        if self.last.counted_by is None or not self.last.is_random:
            return False
        try:
            one = copied(self.last).set_params(**{self.last.counted_by: n_components})
            one.check_parameters()
        except ParameterError:
            return False
        return True

    def with_other_pool(self) -> tuple[str, Family] | None:
        """The same but for the pool of its hyperplanes, and that one's name; None without pools."""
        declared = self.last.declared.get("pool")
        if declared is None:
            return None
        for pool in declared.check.words:
            other = copied(self.last)
            if pool == other.get_params(deep=False)["pool"]:
                continue
            with contextlib.suppress(ParameterError):  # the others do not go with every pool
                other.set_params(pool=pool)
                other.check_parameters()
                return pool, replace(self, last=other)
        return None

    def seeds(self, asked: Asked) -> list[int]:
        """The seeds of so many draws."""
        return [_FRESH + 1_000_003 * asked.seed + run for run in range(asked.runs)]


def family_of(one: Any) -> Family:
    """The family of a map that claims a kernel; ParameterError if it claims none."""
    require_fitted("a map", one)
    if not isinstance(one, FeatureMap):
        raise ParameterError(
            f"{type(one).__name__} has no features of its own: give the map that it is of"
        )
    program = one.program
    settled = one.settled()
    last = settled.last
    kernel = last.estimated_kernel()
    if kernel is None:
        raise ParameterError(
            f"{one.title} estimates no kernel, which distances could be held against: give a map "
            "that does, such as KRP, RandomFourier or Nystroem"
        )
    family = Family(one, last, kernel, settled.stages_before(program))
    if len(last.names(family.before.names)) != len(program.names):
        raise ParameterError(
            "this is a selection of a map's features, and the kernel is that of all: give the map"
        )
    return family


def _with_constant(stage: Stage, one: Transformer) -> Stage:
    """The last stage before a map, with the constant column that a draw of today expects."""
    constant = one.constant(stage.n_outputs - 1)
    if constant is None:
        return stage
    if isinstance(stage, Prepare):
        return replace(stage, constant=constant)
    assert isinstance(stage, Linear)
    assert stage.constant is not None
    return replace(stage, constant=np.append(stage.constant[:-1], constant))


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"f{i}" for i in range(count))
