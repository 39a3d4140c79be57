"""What a parameter may be: records that check a value, and say in words what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from sqlkrp.errors import ParameterError

__all__ = [
    "GENERATORS",
    "Allowed",
    "By",
    "Even",
    "Number",
    "OneOf",
    "PowerOfTwo",
    "Seed",
    "Switch",
    "Whole",
]

#: What seeds are drawn from.
GENERATORS = (np.random.Generator, np.random.RandomState)
#: How a value is written: as Python does, or as the command line or a page does.
Spell = Callable[[Any], str]


@dataclass(frozen=True)
class Allowed:
    """What a parameter may be."""

    words: Mapping[Any, str] = field(default_factory=dict, kw_only=True)
    """The values that are no numbers, each with what it means where its name does not say it."""
    reads: ClassVar[type[Any] | None] = None
    """What makes a number of a text, if it may be a number; ``bool`` for yes or no."""

    def require(self, name: str, value: Any) -> Any:
        """The value, or a ParameterError that says what the parameter of this name may be."""
        raise NotImplementedError

    def told(self, spell: Spell) -> str:
        """What is allowed, in words; ``spell`` writes the values."""
        words = [spell(one) + (f" ({means})" if means else "") for one, means in self.words.items()]
        *others, last = [*self._numbers(), *words]
        return f"{', '.join(others)}, or {last}" if others else last

    def _numbers(self) -> list[str]:
        return []

    def _is_word(self, value: Any) -> bool:
        # Not by ==: 1 is no True, and an array is compared entry by entry.
        return any(value is one or (isinstance(value, str) and value == one) for one in self.words)

    def _refused(self, name: str, value: Any, use: str) -> ParameterError:
        others = " or ".join(map(repr, self.words))
        use += f", or {others}" if others else ""
        return ParameterError(f"{name}={value!r} is not allowed: use {use}")


@dataclass(frozen=True)
class OneOf(Allowed):
    """One of some values.

    >>> OneOf({"zero": "", "mean": "the column's", None: ""}).told(str)
    "zero, mean (the column's), or None"
    """

    words: Mapping[Any, str]

    def require(self, name: str, value: Any) -> Any:
        if not self._is_word(value):
            listed = ", ".join(map(repr, self.words))
            raise ParameterError(f"{name}={value!r} is not allowed: use one of {listed}")
        return value


@dataclass(frozen=True)
class Switch(OneOf):
    """Yes or no."""

    words: Mapping[Any, str] = field(default_factory=lambda: {False: "", True: ""})
    reads = bool

    def told(self, spell: Spell) -> str:
        return ""


@dataclass(frozen=True)
class Number(Allowed):
    """A finite number, or one of some words.

    >>> Number(0, above=True, words={"auto": "as large as will do"}).told(repr)
    "a number > 0, or 'auto' (as large as will do)"
    """

    at_least: float
    above: bool = False
    """Whether it is to be more than ``at_least``."""
    reads = float

    def require(self, name: str, value: Any) -> Any:
        if self._is_word(value):
            return value
        fits = isinstance(value, Real) and not isinstance(value, bool) and _is_double(value)
        if not fits or value < self.at_least or (self.above and value == self.at_least):
            raise self._refused(name, value, *self._numbers())
        return float(value)

    def _numbers(self) -> list[str]:
        return [f"a number {'>' if self.above else '>='} {self.at_least:g}"]


@dataclass(frozen=True)
class Whole(Allowed):
    """A whole number, or one of some words.

    >>> Whole(1, words={"auto": "as many as will do"}).told(repr)
    "a whole number >= 1, or 'auto' (as many as will do)"
    """

    at_least: int
    at_most: int | None = None
    also: Callable[[str, int], None] | None = None
    """What else is checked of the number."""
    what: ClassVar[str] = "a whole number"
    reads = int

    def require(self, name: str, value: Any) -> Any:
        if self._is_word(value):
            return value
        if isinstance(value, bool) or not isinstance(value, Integral) or value < self.at_least:
            raise self._refused(name, value, f"a whole number >= {self.at_least}")
        if self.at_most is not None and int(value) > self.at_most:
            raise self._refused(name, value, f"a whole number <= {self.at_most}")
        if self.also is not None:
            self.also(name, int(value))
        return int(value)

    def _numbers(self) -> list[str]:
        if self.at_most is None:
            return [f"{self.what} >= {self.at_least}"]
        return [f"{self.what} from {self.at_least} to {self.at_most:,}"]


@dataclass(frozen=True)
class Even(Whole):
    """A whole number that is even, for a reason."""

    why: str = ""
    what = "an even number"

    def require(self, name: str, value: Any) -> Any:
        number = super().require(name, value)
        if number % 2:
            raise ParameterError(f"{name}={number} is odd, and {self.why}: use {number + 1}")
        return number


@dataclass(frozen=True)
class PowerOfTwo(Whole):
    """A power of two."""

    what = "a power of two"

    def require(self, name: str, value: Any) -> Any:
        size = super().require(name, value)
        if size & (size - 1):
            below = 1 << (size.bit_length() - 1)
            raise ParameterError(
                f"{name}={size} is not allowed: use a power of two, such as {below} or {2 * below}"
            )
        return size


@dataclass(frozen=True)
class Seed(Whole):
    """The seed of a draw. To leave it out is no advice for who gave a wrong one."""

    def require(self, name: str, value: Any) -> Any:
        is_drawn = value is None or isinstance(value, GENERATORS)
        return value if is_drawn else Whole(self.at_least).require(name, value)

    def _numbers(self) -> list[str]:
        return [*super()._numbers(), "a Generator or RandomState of NumPy, which draws the seed"]


@dataclass(frozen=True)
class By(Allowed):
    """What a function checks; no option of the command line reads it."""

    check: Callable[[str, Any], None]
    what: str

    def require(self, name: str, value: Any) -> Any:
        self.check(name, value)
        return value

    def told(self, spell: Spell) -> str:
        return self.what


def _is_double(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond them
        return False
