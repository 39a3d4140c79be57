"""What a stage is: a frozen record that declares what its tables hold, and is checked by that.

What a stage means stands in rooms of its own (``meaning`` for NumPy, and one room a form of SQL),
each a dict from record to functions. What is the same for every stage, because its tables say what
they hold (pruning, renumbering, joining side by side, checks, the map file), is written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import InconsistentMapError

__all__ = [
    "ENTRY",
    "INPUTS",
    "NUMBERS",
    "OUTPUT",
    "OUTPUTS",
    "Array",
    "Column",
    "Cost",
    "Stage",
    "column",
    "columns_of",
    "is_unicode",
    "require",
    "require_names",
    "require_range",
]

Array = NDArray[Any]

#: What a column holds: numbers of inputs (-1 for none), numbers of outputs, or numbers to compute
#: with, which are signs (+1 and -1) where they are whole.
INPUTS, OUTPUTS, NUMBERS = "inputs", "outputs", "numbers"
#: What a row of a column is of: an entry of a table, or an output (or a group of outputs).
ENTRY, OUTPUT = "entry", "output"


class Cost(NamedTuple):
    """Operations a row."""

    additions: int = 0
    """Additions and subtractions."""
    products: int = 0
    """Multiplications, divisions and functions."""


@dataclass(frozen=True)
class Column:
    """A column of a stage's tables."""

    holds: str
    by: str = ENTRY


def column(holds: str, by: str = ENTRY, **more: Any) -> Any:
    """Declare a field of a stage as a column."""
    return field(metadata={"column": Column(holds, by)}, **more)


@dataclass(frozen=True, eq=False)
class Stage:
    """One step of a row program: ``n_inputs`` values in, ``n_outputs`` values out, per row."""

    closes: ClassVar[bool] = False
    """Whether it is of the few values at the end, of which an output reads many."""

    n_inputs: int

    def __post_init__(self) -> None:
        _require_count(self.n_inputs)
        _require_count(self.n_outputs)
        lengths = set()
        for name, what, array in columns_of(self):
            require(isinstance(array, np.ndarray) and array.ndim >= 1, f"{name} is no table")
            self._check_numbers(name, what, array)
            if what.by == OUTPUT:
                rows = self.n_outputs // self.outputs_a_row
                require(len(array) == rows, f"{name} and the outputs differ in number")
            else:
                lengths.add(array.shape)
        require(len(lengths) <= 1, "the columns of a table differ in length")
        self.check()

    @property
    def n_outputs(self) -> int:
        """How many values a row has after this stage."""
        raise NotImplementedError

    @property
    def outputs_a_row(self) -> int:
        """How many outputs come only together, as one row of the columns that are by output."""
        return 1

    def coded(self) -> Stage:
        """The same with numbers for what it says in words."""
        return self

    @property
    def words(self) -> Mapping[int, tuple[Any, ...]]:
        """What it may say in words, of each output that does: by place, in the numbers' order."""
        return {}

    def check(self) -> None:
        """Raise InconsistentMapError unless what only this kind of stage asks for holds."""

    def _check_numbers(self, name: str, what: Column, array: Array) -> None:
        if what.holds == NUMBERS:
            if array.dtype.kind == "f":
                finite = bool(np.isfinite(array).all())
                require_range(finite, f"a {name} is not a finite number")
            else:
                signs = bool(np.isin(array, (-1, 1)).all())
                require(signs, f"a {name} is neither -1 nor +1")
            return
        limit = self.n_inputs if what.holds == INPUTS else self.n_outputs
        require(array.dtype.kind == "i", f"{name} is not a whole number")
        inside = array.size == 0 or (array.min() >= -1 and array.max() < limit)
        require(bool(inside), f"{name} lies outside 0..{limit - 1}")


def columns_of(stage: Stage) -> Iterator[tuple[str, Column, Array]]:
    """The columns that a stage has: names, what they hold, and the arrays."""
    for one in fields(stage):
        array = getattr(stage, one.name)
        if "column" in one.metadata and array is not None:
            yield one.name, one.metadata["column"], array


def require(condition: bool, what: str) -> None:
    """Raise InconsistentMapError unless a condition holds."""
    # Maps that this library draws are consistent; a map file from elsewhere may not be.
    if not condition:
        raise InconsistentMapError(what)


def require_range(condition: bool, what: str) -> None:
    """Raise OverflowError unless numbers are finite; whether they are, parameters decide."""
    if not condition:
        raise OverflowError(what)


def require_names(names: tuple[str, ...], what: str) -> None:
    """Raise InconsistentMapError unless these are names, and each is there once."""
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


def _require_count(count: int) -> None:
    fits = type(count) is int and 0 <= count < 2**31
    require(fits, "a count is not a whole number that a table could have")
