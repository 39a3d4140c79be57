"""What every stage says of itself, and the checks that stages make of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import InconsistentMapError

__all__ = [
    "SLAB_VALUES",
    "Array",
    "Stage",
    "Table",
    "alike",
    "all_inputs",
    "first_inputs",
    "is_unicode",
    "require",
    "require_counts",
    "require_indices",
    "require_names",
    "require_range",
]

Array = NDArray[Any]
Table = dict[str, Array]

# Bounds the working memory of the twins: a slab of rows (or of hyperplanes) at a time.
SLAB_VALUES = 4_000_000


class Stage:
    """One step of a row program: ``n_inputs`` values in, ``n_outputs`` values out, per row."""

    n_inputs: int

    @property
    def n_outputs(self) -> int:
        """How many values a row has after this stage."""
        raise NotImplementedError

    @property
    def additions(self) -> int:
        """Additions and subtractions a row."""
        return 0

    @property
    def products(self) -> int:
        """Multiplications and divisions a row."""
        return 0

    def apply(self, X: Array) -> Array:
        """The NumPy twin: rows of inputs to rows of outputs, in the dtype of ``X``."""
        raise NotImplementedError

    def magnitude(self, largest: Array) -> Array:
        """A bound on the terms that are added on the way, given one on each row's inputs."""
        return largest

    def rounding(self, X: Array, errors: Array, eps: float) -> Array:
        """How far two ways of computing this may be apart, given that of each input.

        To first order, for numbers that are rounded to a share ``eps`` of themselves. A sum of n
        terms may have sqrt(n) times the error of its terms' sizes, however small it comes out.
        """
        raise NotImplementedError

    def tables(self) -> dict[str, Table]:
        """The tables that describe this stage to a database, by name."""
        return {}

    def only(self, outputs: Array) -> tuple[Stage, Array, Array]:
        """The stage without what these outputs (sorted) do not need.

        Beside it, the outputs that it has left, which may be more where some come only together,
        and the inputs that it needs.
        """
        raise NotImplementedError

    def reading(self, inputs: Array) -> Stage:
        """The same stage where these inputs (sorted, all that are used) are all there are."""
        raise NotImplementedError

    def beside(self, others: Sequence[Stage], *, shared: bool) -> Stage:
        """One stage of this and others of its kind, which share all inputs or have their own."""
        raise NotImplementedError


SomeStage = TypeVar("SomeStage", bound=Stage)


def alike(kind: type[SomeStage], first: SomeStage, others: Sequence[Stage]) -> list[SomeStage]:
    """Stages as a list, all of this kind."""
    stages = [first, *(other for other in others if isinstance(other, kind))]
    require(len(stages) == 1 + len(others), "stages beside each other are of different kinds")
    return stages


def first_inputs(stages: Sequence[Stage], *, shared: bool) -> list[int]:
    """Where each stage's inputs begin among those of all."""
    counts = [0, *(stage.n_inputs for stage in stages)]
    return [0] * len(stages) if shared else np.cumsum(counts)[:-1].tolist()


def all_inputs(stages: Sequence[Stage], *, shared: bool) -> int:
    """How many inputs they have together."""
    return stages[0].n_inputs if shared else sum(stage.n_inputs for stage in stages)


def require(condition: bool, what: str) -> None:
    """Raise InconsistentMapError unless a condition holds."""
    # Maps that this library draws are consistent; a map file from elsewhere may not be.
    if not condition:
        raise InconsistentMapError(what)


def require_range(condition: bool, what: str) -> None:
    """Raise OverflowError unless numbers are finite; whether they are, parameters decide."""
    if not condition:
        raise OverflowError(what)


def require_counts(*counts: int) -> None:
    """The same of whole numbers that a table could have."""
    fits = all(type(count) is int and 0 <= count < 2**31 for count in counts)
    require(fits, "a count is not a whole number that a table could have")


def require_names(names: tuple[str, ...], what: str) -> None:
    """The same of names that are there, and each once."""
    is_text = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    require(is_text and len(set(names)) == len(names) > 0, f"the {what} names are no names")
    require(all(map(is_unicode, names)), f"a {what} name is no text")


def is_unicode(text: str) -> bool:
    """Whether a text is one that can be written: Python's may hold halves of characters."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def require_indices(index: Array, limit: int, what: str) -> None:
    """The same of whole numbers from 0 and below a limit."""
    require(index.dtype.kind == "i", f"a {what} index is not a whole number")
    inside = index.size == 0 or (index.min() >= 0 and index.max() < limit)
    require(bool(inside), f"a {what} index lies outside 0..{limit - 1}")
