"""Lists of stages side by side, of any kinds: how values go past stages, unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sqlkrp.stages.stage import INPUTS, Stage, columns_of, require

__all__ = ["Paths", "numbered", "plain_stages"]


@dataclass(frozen=True, eq=False)
class Paths(Stage):
    """Lists of stages that all read the same inputs; the outputs of one stand behind another's.

    Values that go past stages are a path that only picks them. Each path begins with a stage that
    says which inputs it reads.
    """

    paths: tuple[tuple[Stage, ...], ...]

    def check(self) -> None:
        require(bool(self.paths) and all(self.paths), "there are no paths, or no stages in one")
        for path in self.paths:
            first = path[0]
            reads = any(what.holds == INPUTS for _, what, _ in columns_of(first))
            require(reads or isinstance(first, Paths), "a path does not say what it reads")
            require(first.n_inputs == self.n_inputs, "a path does not begin with the inputs")
            fit = all(one.n_outputs == other.n_inputs for one, other in pairwise(path))
            require(fit, "the stages of a path do not fit each other")
            require(not any(one.closes for one in path), "a path holds what stands at the end")

    @property
    def n_outputs(self) -> int:
        return sum(one.n_outputs for path in self.paths for one in path[-1:])

    @property
    def places(self) -> list[tuple[int, int]]:
        """The first output of each path, and the one behind its last."""
        ends = np.cumsum([0, *(path[-1].n_outputs for path in self.paths)])
        return list(pairwise(ends.tolist()))

    def numbered(self, number: int) -> Iterator[tuple[int, tuple[Stage, ...]]]:
        """Each path with the number of its first stage, where this stage has a number."""
        for path in self.paths:
            yield number + 1, path
            number += sum(map(_size, path))


def _size(stage: Stage) -> int:
    """How many stages it is, with those in it."""
    inside = stage.paths if isinstance(stage, Paths) else ()
    return 1 + sum(_size(one) for path in inside for one in path)


def numbered(stages: Sequence[Stage], first: int = 0) -> Iterator[tuple[int, Stage]]:
    """Stages with their numbers, which count those inside others too: no two have the same."""
    for stage in stages:
        yield first, stage
        first += _size(stage)


def plain_stages(stages: Sequence[Stage], first: int = 0) -> Iterator[tuple[int, Stage]]:
    """The stages that are no paths, and those that paths are made of, with their numbers."""
    for number, stage in numbered(stages, first):
        if isinstance(stage, Paths):
            for start, path in stage.numbered(number):
                yield from plain_stages(path, start)
        else:
            yield number, stage
