"""The values of a row as one array column, and what loops read of it: what the array form is of.

A loop reads an array that begins with 0 and 1. Where signs differ it has each value twice, as it is
and negated. So a sign, an absent factor and a padded place are each nothing but the place that is
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sqlkrp.sql.levels import Levels
from sqlkrp.sql.names import text
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import Array

__all__ = ["ONE", "VALUES", "ZERO", "Loops"]

# Places of the array that loops read.
ZERO, ONE, VALUES = 0, 1, 2


@dataclass
class Loops:
    """The values so far: columns, an array column, or a body for the value of output ``i``."""

    levels: Levels
    columns: Vector
    array: str = ""
    """The array column that the values are, if they are one."""
    body: str = ""
    read: str = ""
    """The array that the body reads."""
    count: int = 0

    def __post_init__(self) -> None:
        self.count = self.count or len(self.columns)
        assert self.levels.dialect.loops is not None
        self._facts = self.levels.dialect.loops

    @property
    def dtype(self) -> str:
        """The NumPy dtype that is computed in."""
        return self.levels.job.dtype

    def put(self, body: str, count: int) -> None:
        """Go on to so many outputs of a body."""
        self.body, self.count, self.array = body, count, ""

    def outputs(self) -> Vector:
        """The values at the end."""
        array, levels = self.stored(), self.levels
        items = [self._read(array, str(place + self._facts.first)) for place in range(self.count)]
        if levels.complete:
            array = levels.dialect.array_when.format(test="complete = 1", array=array)
        there = "complete = 1" if levels.complete else ""
        return Vector(map(levels.if_complete, items), array=array, there=there)

    # --- arrays -----------------------------------------------------------------------------------

    def stored(self, **others: str) -> str:
        """The values as an array column, which is its name; beside it others are computed."""
        if not self.array or others:
            self.array = self._named("a", self._values(), **others)
        return self.array

    def joined(self, arrays: Sequence[str]) -> str:
        """Array columns, one behind another, as one."""
        return self._named("a", self._facts.joined.format(arrays=", ".join(arrays)))

    def signed(self) -> str:
        """The values as an array column with 0, 1 and each value negated."""
        if self.columns_only:
            array, skipped = self.behind_constants(), VALUES
            front = array
        else:
            array, skipped = self.stored(), 0
            front = f"{self._constants()}, {array}"
        value = self.read_at(array, "i", skipped)
        arrays = f"{front}, {self._loop(f'-{value}', array)}"
        return self._named("z", self._facts.joined.format(arrays=arrays))

    @property
    def columns_only(self) -> bool:
        """Whether the values are columns, of which there is no array yet."""
        return not (self.array or self.body)

    def behind_constants(self) -> str:
        """Columns as an array column that begins with 0 and 1.

        Spark would write an array of nothing but columns again in each round of a loop that reads
        it.
        """
        arrays = f"{self._constants()}, {self._array(self._items())}"
        return self._named("a", self._facts.joined.format(arrays=arrays))

    def _constants(self) -> str:
        return self._array([self.levels.literal(number) for number in (0.0, 1.0)])

    def _values(self) -> str:
        if self.columns_only:
            return self._array(self._items())
        return self.array or self._loop(self.body, self.read)

    def _named(self, name: str, array: str, **others: str) -> str:
        """An array as the column that the next body reads."""
        self.levels.level({**others, name: array})
        self.read, self.array = name, ""
        return name

    def never_null(self, value: str) -> str:
        """A value as one that the engine knows not to be NULL, where that is of use."""
        return self._facts.never_null.format(value=value, otherwise=self.levels.literal(0.0))

    def nan_for_null(self, value: str) -> str:
        """The same, of a value that is looked at later: it stays a missing one."""
        kind = self.levels.dialect.float_types[self.dtype]
        nan = self._facts.nan.format(type=kind)
        return self._facts.never_null.format(value=value, otherwise=nan)

    def _items(self) -> list[str]:
        return [self.never_null(value) for value in self.columns]

    def _array(self, items: Sequence[str]) -> str:
        assert self.levels.dialect.array is not None
        return self.levels.dialect.array.format(items=", ".join(items))

    def _loop(self, body: str, array: str) -> str:
        """An array of the outputs of a body, which reads an array."""
        zero, last = self.levels.literal(0.0), self.count - 1
        return self._facts.loop.format(body=body, array=array, zero=zero, end=self.count, last=last)

    # --- sums -------------------------------------------------------------------------------------

    def total(self, body: str, starts: Array, ends: Array) -> str:
        """The sum of a body for each number ``e`` of a part of the whole numbers."""
        return self._total(body, self.number_of(starts), self.number_of(ends), self.dtype)

    def total_of_first(self, count: int, body: str, dtype: str) -> str:
        """The sum of a body, of this dtype, for each number ``e`` from 0 to before a count."""
        return self._total(body, "0", str(count), dtype)

    def _total(self, body: str, start: str, end: str, dtype: str) -> str:
        kind = self.levels.dialect.float_types[dtype]
        return self._facts.total.format(body=body, type=kind, start=start, end=end)

    # --- constants, and what is read --------------------------------------------------------------

    def places(self, index: Array, sign: Array | None = None, absent: int = ZERO) -> Array:
        """Where a signed array has inputs (-1: none) with their signs."""
        found = index.astype("i8") + VALUES
        if sign is not None:
            found = np.where(sign < 0, found + self.count, found)
        return np.where(index < 0, absent, found)

    def number_of(self, numbers: Array, at: str = "i") -> str:
        """The number that belongs to an output: a whole one, or one to compute with."""
        dialect, is_number = self.levels.dialect, numbers.dtype.kind == "f"
        if is_number:  # as the features' type has it, to be written in full
            numbers = numbers.astype(self.dtype).astype("f8")
        kind = dialect.float_types[self.dtype] if is_number else dialect.side_table_types["int32"]
        items = ",".join(map(repr, numbers.tolist()))
        return self.read_at(self._facts.numbers.format(items=items, type=kind), at)

    def message_of(self, beginning: str, names: Sequence[str]) -> str:
        """A text for people that ends with the name that belongs to an output."""
        assert self._facts.message is not None
        texts = [text(name, self.levels.dialect) for name in names]
        name = self.read_at(self._array(texts), "i")
        return self._facts.message.format(beginning=text(beginning, self.levels.dialect), name=name)

    def item(self, array: str, places: Array, at: str = "i") -> str:
        """What an array has at the place that belongs to an output."""
        return self._read(array, self.number_of(places + self._facts.first, at))

    def read_at(self, array: str, number: str, skipped: int = 0) -> str:
        """What an array has at a place that is counted from 0, behind some others."""
        more = self._facts.first + skipped
        return self._read(array, f"{number} + {more}" if more else number)

    def _read(self, array: str, place: str) -> str:
        return self._facts.item.format(array=array, place=place)

    def bits(self, mask: int) -> str:
        """The bits of the number of an output that a mask has."""
        return self._facts.bits.format(value="i", mask=mask)
