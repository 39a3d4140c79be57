"""What a parameter may be: records that check a value, and say in words what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol

from sqlkrp.errors import ParameterError

__all__ = [
    "Allowed",
    "By",
    "Even",
    "Number",
    "OneOf",
    "Seed",
    "Switch",
    "Whole",
    "choose",
    "even",
    "power_of_two",
    "real",
    "whole",
]

#: How a value is written: as Python does, or as the command line or a page does.
Spell = Callable[[Any], str]


class Allowed(Protocol):
    """What a parameter may be."""

    @property
    def reads(self) -> type[Any] | None:
        """What makes a number of a text, if it may be a number; ``bool`` for yes or no."""

    @property
    def words(self) -> Mapping[Any, str]:
        """The values that it may be and that are no numbers, with what each one means."""

    def require(self, name: str, value: Any) -> None:
        """Raise ParameterError unless the parameter of this name may be this value."""

    def told(self, spell: Spell) -> str:
        """What is allowed, in words; ``spell`` writes the values."""


@dataclass(frozen=True)
class OneOf:
    """One of some values, each with what it means (or nothing, where its name says it).

    >>> OneOf({"zero": "", "mean": "the column's", None: ""}).told(str)
    "zero, mean (the column's), or None"
    """

    words: Mapping[Any, str]
    reads: ClassVar[type[Any] | None] = None

    def require(self, name: str, value: Any) -> None:
        choose(name, value, self.words)

    def told(self, spell: Spell) -> str:
        return _either(_worded(self.words, spell))


@dataclass(frozen=True)
class Switch(OneOf):
    """Yes or no."""

    words: Mapping[Any, str] = field(default_factory=lambda: {False: "", True: ""})
    reads: ClassVar[type[Any] | None] = bool

    def told(self, spell: Spell) -> str:
        return ""


@dataclass(frozen=True)
class Whole:
    """A whole number, or one of some words.

    >>> Whole(1, words={"auto": "as many as will do"}).told(repr)
    "a whole number >= 1, or 'auto' (as many as will do)"
    """

    at_least: int
    at_most: int | None = None
    words: Mapping[Any, str] = field(default_factory=dict)
    also: Callable[[str, int], None] | None = None
    """What else is checked of the number."""
    what: str = "a whole number"
    reads: ClassVar[type[Any] | None] = int

    def require(self, name: str, value: Any) -> None:
        if not _is_among(value, self.words):
            least, most = self.at_least, self.at_most
            number = whole(name, value, at_least=least, at_most=most, instead=self.words)
            if self.also is not None:
                self.also(name, number)

    def told(self, spell: Spell) -> str:
        limits = f">= {self.at_least}"
        if self.at_most is not None:
            limits = f"from {self.at_least} to {self.at_most:,}"
        return _either([f"{self.what} {limits}", *_worded(self.words, spell)])


@dataclass(frozen=True)
class Even(Whole):
    """A whole number that is even, for a reason."""

    why: str = ""
    what: str = "an even number"

    def require(self, name: str, value: Any) -> None:
        super().require(name, value)
        even(name, value, self.why)


@dataclass(frozen=True)
class Seed(Whole):
    """The seed of a draw. What to do without one is no advice for who gave a wrong one."""

    def require(self, name: str, value: Any) -> None:
        if value is not None:
            whole(name, value, at_least=self.at_least)


@dataclass(frozen=True)
class Number:
    """A finite number, or one of some words.

    >>> Number(0, above=True).told(repr)
    'a number > 0'
    """

    at_least: float
    above: bool = False
    """Whether it is to be more than ``at_least``."""
    words: Mapping[Any, str] = field(default_factory=dict)
    reads: ClassVar[type[Any] | None] = float

    def require(self, name: str, value: Any) -> None:
        if not _is_among(value, self.words):
            real(name, value, at_least=self.at_least, above=self.above, instead=self.words)

    def told(self, spell: Spell) -> str:
        sign = ">" if self.above else ">="
        return _either([f"a number {sign} {self.at_least:g}", *_worded(self.words, spell)])


@dataclass(frozen=True)
class By:
    """What a function checks; no option of the command line reads it."""

    require: Callable[[str, Any], None]
    what: str
    words: Mapping[Any, str] = field(default_factory=dict)
    reads: ClassVar[type[Any] | None] = None

    def told(self, spell: Spell) -> str:
        return self.what


def choose(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Raise ParameterError unless this is one of the allowed values; the error lists them."""
    if not _is_among(value, allowed):
        listed = ", ".join(map(repr, allowed))
        raise ParameterError(f"{name}={value!r} is not allowed: use one of {listed}")


def whole(
    name: str,
    value: Any,
    *,
    at_least: int,
    at_most: int | None = None,
    instead: Iterable[Any] = (),
) -> int:
    """A whole number that is not too small, nor too large; ``instead``: what else it may be."""
    refused = f"{name}={value!r} is not allowed: use a whole number"
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise ParameterError(f"{refused} >= {at_least}{_or_else(instead)}")
    if at_most is not None and int(value) > at_most:
        raise ParameterError(f"{refused} <= {at_most}{_or_else(instead)}")
    return int(value)


def real(
    name: str, value: Any, *, at_least: float, above: bool = False, instead: Iterable[Any] = ()
) -> float:
    """A finite number that is not too small; ``instead``: what else it may be."""
    fits = isinstance(value, Real) and not isinstance(value, bool) and _is_double(value)
    if not fits or value < at_least or (above and value == at_least):
        sign = ">" if above else ">="
        raise ParameterError(
            f"{name}={value!r} is not allowed: use a number {sign} {at_least:g}{_or_else(instead)}"
        )
    return float(value)


def even(name: str, value: int, why: str) -> None:
    """Raise ParameterError unless a whole number is even."""
    if value % 2:
        raise ParameterError(f"{name}={value!r} is odd, and {why}: use {value + 1}")


def power_of_two(name: str, value: int) -> None:
    """Raise ParameterError unless a whole number from 1 is a power of two."""
    if value & (value - 1):
        below = 1 << (value.bit_length() - 1)
        raise ParameterError(
            f"{name}={value} is not allowed: use a power of two, such as {below} or {2 * below}"
        )


def _is_among(value: Any, allowed: Iterable[Any]) -> bool:
    # Not by ==: 1 is no True, and an array is compared entry by entry.
    return any(value is one or (isinstance(value, str) and value == one) for one in allowed)


def _is_double(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond them
        return False


def _or_else(words: Iterable[Any]) -> str:
    others = " or ".join(map(repr, words))
    return f", or {others}" if others else ""


def _worded(words: Mapping[Any, str], spell: Spell) -> list[str]:
    return [spell(word) + (f" ({means})" if means else "") for word, means in words.items()]


def _either(told: list[str]) -> str:
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])}, or {told[-1]}"
