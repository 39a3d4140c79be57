"""What NumPy computes of a statement's rows, where an engine can have it do so."""

from __future__ import annotations

from dataclasses import dataclass

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import label
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import Program

__all__ = ["Twin", "TwinRows", "in_words"]


@dataclass(frozen=True)
class Twin:
    """A program as a function of a row's inputs, which are numbers of its own type."""

    program: Program
    in_array: bool
    """Whether its values come out as one array, and not each by itself."""


@dataclass(frozen=True)
class TwinRows:
    """The rows that a twin computes from, as SQL."""

    name: str
    """What is made for them is called so; no other rows have it."""
    relation: str
    kept: tuple[str, ...]
    """The columns to hand on, as ``k0``, ``k1``, ..."""
    inputs: tuple[str, ...]
    """The program's inputs, as numbers of its type."""


def in_words(program: Program, values: Vector, dialect: Dialect) -> Vector:
    """Values of which some are the places of words, with the words in their place."""
    if not program.words:
        return values
    items = list(values)
    for place, words in program.words.items():
        cases = (f"WHEN {i} THEN {label(word, dialect)}" for i, word in enumerate(words))
        items[place] = f"CASE {items[place]} {' '.join(cases)} END"
    return Vector(items, there=values.there)
