"""Steps over chunks of rows, on all cores: what lies between inputs and outputs stays small."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from sqlkrp.stages.stage import Array
from sqlkrp.stages.values import SLAB_VALUES, Values

__all__ = ["Step", "run"]

# Values of a chunk where it is widest: a few of these arrays fit into a core's cache together.
_CHUNK_VALUES = 500_000
_CHUNK_ROWS = range(48, 497)
# Products of matrices use all cores themselves, and are quick on many rows.
_SLAB_ROWS = 2032

Each = Callable[[Callable[[int], None], Sequence[int]], Any]


class Step(NamedTuple):
    """A stage's computation, from arrays (input, row) to arrays (output, row)."""

    values: Values
    n_outputs: int
    is_matrix: bool = False
    """Whether it is a product of matrices."""


def run(steps: Sequence[Step], X: Array, out: Array) -> None:
    """Fill an array (output, row) from an array (column, row).

    Where rows are cut depends on no number of threads, and so no result does.
    """
    groups = [list(group) for _, group in groupby(steps, key=lambda step: step.is_matrix)]
    widest = max(step.n_outputs for step in steps)
    slab = max(1, X.shape[1])
    if len(groups) > 1:
        slab = _whole_lines(min(SLAB_VALUES // widest, _SLAB_ROWS))
    with _threads(X.shape[1]) as each:
        for first in range(0, X.shape[1], slab):
            values, found = X[:, first : first + slab], out[:, first : first + slab]
            for group in groups[:-1]:
                between = np.empty((group[-1].n_outputs, values.shape[1]), dtype=out.dtype)
                _in_chunks(group, values, between, widest, each)
                values = between
            _in_chunks(groups[-1], values, found, widest, each)


def _in_chunks(steps: Sequence[Step], X: Array, out: Array, widest: int, each: Each) -> None:
    """Fill an array by steps that are all products of matrices, or none is."""
    at_once = steps[0].is_matrix
    size = max(1, X.shape[1]) if at_once else _chunk_rows(widest)

    def fill(first: int) -> None:
        values = X[:, first : first + size]
        # What leaves the range of numbers is infinite or NaN, in the engines as well as here.
        with np.errstate(all="ignore"):
            for step in steps:
                values = step.values(values)
        out[:, first : first + size] = values

    each(fill, range(0, X.shape[1], size))


def _chunk_rows(widest: int) -> int:
    rows = min(max(_CHUNK_VALUES // widest, _CHUNK_ROWS[0]), _CHUNK_ROWS[-1])
    return _whole_lines(min(rows, SLAB_VALUES // widest))


def _whole_lines(rows: int) -> int:
    """About so many rows: where they are many, an odd number of lines of the cache.

    Were it a power of two, the values of a row would all take turns in a few places of the cache.
    """
    return 16 * (rows // 16 - 1 | 1) if rows >= 16 else max(1, rows)


@contextmanager
def _threads(n_rows: int) -> Iterator[Each]:
    """A way to call a function with each of some numbers: for many rows on all cores."""
    count = _cores() if n_rows > _CHUNK_ROWS[0] else 1
    if count < 2:
        yield lambda call, numbers: list(map(call, numbers))
        return
    with ThreadPoolExecutor(count) as pool:
        yield lambda call, numbers: list(pool.map(call, numbers))


def _cores() -> int:
    """How many threads may run: OMP_NUM_THREADS, as for products of matrices, or one a core."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    if said.isdecimal():
        return int(said)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
