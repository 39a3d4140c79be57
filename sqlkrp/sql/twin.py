"""What NumPy computes of a statement's rows, where an engine can have it do so."""

from __future__ import annotations

from dataclasses import dataclass

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import label
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import Program

__all__ = ["Twin", "in_words"]


@dataclass(frozen=True)
class Twin:
    """A program that NumPy computes of rows where they are, which are SQL."""

    name: str
    """What is made for it there is called so; no other twin is."""
    program: Program
    in_array: bool
    """Whether its values are wanted as one array, and not each by itself."""
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
