"""From rows of inputs to features: what of a candidate goes to where rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sqlkrp.stages import Array, Program

__all__ = ["Features"]

# Numbers of features; products of fewer rows take as long to add up as to compute.
_AT_ONCE = 4_000_000


class Features:
    """Those of maps side by side."""

    def __init__(self, programs: Sequence[Program], places: Sequence[Sequence[int]]) -> None:
        self._programs = programs
        self._places = places
        """Of each program where its columns are among the inputs."""

    def __reduce__(self) -> Any:
        return Features, (self._programs, self._places)

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(one.names) for one in self._programs)

    @property
    def rows_at_once(self) -> int:
        """Of so many rows features are soon computed, and gone again."""
        return max(1, _AT_ONCE // max(1, self.count))

    def pieces(self, inputs: Array) -> Iterator[tuple[slice, Array]]:
        """Features of all rows, of so few at a time that they are soon gone again."""
        rows = len(inputs)
        pieces = max(1, rows // self.rows_at_once)
        for piece in range(pieces):
            chosen = slice(rows * piece // pieces, rows * (piece + 1) // pieces)
            yield chosen, self.of(inputs[chosen])

    @cached_property
    def _writers(self) -> list[Callable[[Array, Array], None]]:
        return [one.writer() for one in self._programs]

    def of(self, inputs: Array) -> Array:
        """Features (row, feature) of inputs (row, input)."""
        out = np.empty((self.count, len(inputs)), dtype=self._programs[0].prepare.dtype)
        first = 0
        for write, places, one in zip(self._writers, self._places, self._programs, strict=True):
            end = first + len(one.names)
            write(inputs[:, places].T, out[first:end])
            first = end
        return out.T
