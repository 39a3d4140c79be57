"""The array form: a row program as a few SELECTs, each a loop over one array column.

The text has the stages' tables as lists of whole numbers, and one body for all outputs of a stage:
it is a quarter to a half of the wide form's, and there are no columns for an engine to plan.

A loop reads an array that begins with 0 and 1 and has each value twice, as it is and negated. So a
sign, an absent factor and a padded place are each nothing but the place that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sqlkrp.sql.job import Job, Written
from sqlkrp.sql.levels import Levels
from sqlkrp.sql.names import balanced
from sqlkrp.sql.vectors import Vector
from sqlkrp.sql.wide import begun, ended
from sqlkrp.stages import Array, Prepare, Stage
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts

__all__ = ["BODIES", "write_loops"]

# Places of the array that loops read.
_ZERO, _ONE, _VALUES = 0, 1, 2
# Layers of butterflies in one loop: more bodies are longer, and fewer loops are read and written.
_LAYERS = 3


def write_loops(job: Job) -> Written:
    """The SELECT of a program's outputs by loops over arrays."""
    first, *later = job.program.only(every_column=job.stops).stages
    assert isinstance(first, Prepare)
    assert job.dialect.loops is not None
    levels = Levels(job, innermost=job.dialect.loops.innermost)
    values, gathered = begun(levels, first)
    loops = Loops(levels, values)
    for stage in later:
        loops.go_through(stage)
    return ended(levels, gathered, loops.outputs())


@dataclass
class Loops:
    """The values so far: columns, or a body that gives the value of output number ``i``."""

    levels: Levels
    columns: Vector
    body: str = ""
    read: str = ""
    """The array that the body reads."""
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(self.columns)
        assert self.levels.dialect.loops is not None
        self._facts = self.levels.dialect.loops

    @property
    def dtype(self) -> str:
        """The NumPy dtype that is computed in."""
        return self.levels.job.dtype

    def go_through(self, stage: Stage) -> None:
        """Go on to the outputs of a stage."""
        self.put(BODIES[type(stage)](self, stage), stage.n_outputs)

    def put(self, body: str, count: int) -> None:
        """Go on to so many outputs of a body."""
        self.body, self.count = body, count

    def outputs(self) -> Vector:
        """The values at the end."""
        array, levels = self.stored(), self.levels
        items = [self._read(array, str(place + self._facts.first)) for place in range(self.count)]
        if levels.complete:
            array = levels.dialect.array_when.format(test="complete = 1", array=array)
        there = "complete = 1" if levels.complete else ""
        return Vector(map(levels.if_complete, items), array=array, there=there)

    # --- arrays -----------------------------------------------------------------------------------

    def stored(self) -> str:
        """The values as an array column, which is its name."""
        array = self._loop(self.body, self.read) if self.body else self._array(self._items())
        return self._named("a", array)

    def signed(self) -> str:
        """The values as an array column with 0, 1 and each value negated."""
        constants = self._array([self.levels.literal(number) for number in (0.0, 1.0)])
        if self.body:
            array, skipped = self.stored(), 0
            front = f"{constants}, {array}"
        else:
            # Columns are written once, and already behind the constants: Spark would write an array
            # of nothing but columns again in each round of a loop that reads it.
            both = f"{constants}, {self._array(self._items())}"
            array = front = self._named("a", self._facts.joined.format(arrays=both))
            skipped = _VALUES
        value = self.read_at(array, f"i + {skipped}" if skipped else "i")
        arrays = f"{front}, {self._loop(f'-{value}', array)}"
        return self._named("z", self._facts.joined.format(arrays=arrays))

    def _named(self, name: str, array: str) -> str:
        """An array as the column that the next body reads."""
        self.levels.level({name: array})
        self.read = name
        return name

    def never_null(self, value: str) -> str:
        """A value as one that the engine knows not to be NULL, where that is of use."""
        return self._facts.never_null.format(value=value, zero=self.levels.literal(0.0))

    def _items(self) -> list[str]:
        return [self.never_null(value) for value in self.columns]

    def _array(self, items: Sequence[str]) -> str:
        assert self.levels.dialect.array is not None
        return self.levels.dialect.array.format(items=", ".join(items))

    def _loop(self, body: str, array: str) -> str:
        """An array of the outputs of a body, which reads an array."""
        zero, last = self.levels.literal(0.0), self.count - 1
        return self._facts.loop.format(body=body, array=array, zero=zero, end=self.count, last=last)

    def places(self, index: Array, sign: Array | None = None, absent: int = _ZERO) -> Array:
        """Where a signed array has inputs (-1: none) with their signs."""
        found = index.astype("i8") + _VALUES
        if sign is not None:
            found = np.where(sign < 0, found + self.count, found)
        return np.where(index < 0, absent, found)

    def total(self, body: str, starts: Array, ends: Array) -> str:
        """The sum of a body for each number ``e`` of a part of the whole numbers."""
        kind = self.levels.dialect.float_types[self.dtype]
        parts = {"start": self.number_of(starts), "end": self.number_of(ends)}
        return self._facts.total.format(body=body, type=kind, **parts)

    def number_of(self, numbers: Array, at: str = "i") -> str:
        """The number that belongs to an output: a whole one, or one to compute with."""
        dialect, is_number = self.levels.dialect, numbers.dtype.kind == "f"
        if is_number:  # as the features' type has it, to be written in full
            numbers = numbers.astype(self.dtype).astype("f8")
        kind = dialect.float_types[self.dtype] if is_number else dialect.side_table_types["int32"]
        items = ",".join(map(repr, numbers.tolist()))
        return self.read_at(self._facts.numbers.format(items=items, type=kind), at)

    def item(self, array: str, places: Array, at: str = "i") -> str:
        """What an array has at the place that belongs to an output."""
        return self._read(array, self.number_of(places + self._facts.first, at))

    def read_at(self, array: str, number: str) -> str:
        """What an array has at a place that is counted from 0."""
        return self._read(array, f"{number} + {self._facts.first}" if self._facts.first else number)

    def _read(self, array: str, place: str) -> str:
        return self._facts.item.format(array=array, place=place)

    def bits(self, mask: int) -> str:
        """The bits of the number of an output that a mask has."""
        return self._facts.bits.format(value="i", mask=mask)


# --- bodies of stages ---------------------------------------------------------------------------


def _linear(loops: Loops, stage: Linear) -> str:
    body = _picked(loops, stage) if stage.picks else _sum(loops, stage)
    return body if stage.constant is None else f"{body} + {loops.number_of(stage.constant)}"


def _picked(loops: Loops, stage: Linear) -> str:
    if stage.factor is not None and loops.body:
        (factor,) = np.full(1, stage.factor).astype(loops.dtype).tolist()
        return f"({loops.body}) * {loops.levels.literal(factor)}"
    array = loops.stored()
    return f"{loops.item(array, stage.input)} * {loops.number_of(stage.value)}"


def _sum(loops: Loops, stage: Linear) -> str:
    """The entries of an output are a part of all; one that has none reads a 0."""
    array = loops.signed()
    empty = stage.starts[:-1][np.diff(stage.starts) == 0]
    place = loops.places(stage.input, stage.value if stage.is_signed else None)
    body = loops.item(array, np.insert(place, empty, _ZERO), "e")
    if not stage.is_signed:
        body = f"{body} * {loops.number_of(np.insert(stage.value, empty, 0.0), 'e')}"
    ends = np.cumsum(np.maximum(np.diff(stage.starts), 1))
    return loops.total(body, np.append(0, ends[:-1]), ends)


def _butterflies(loops: Loops, stage: Butterflies) -> str:
    array = loops.signed()
    loops.put(loops.item(array, loops.places(stage.place, stage.sign).ravel()), stage.n_outputs)
    stride = 1
    while stride < stage.outputs_a_row:
        radix = min(2**_LAYERS, stage.outputs_a_row // stride)
        loops.put(_layers(loops, loops.stored(), stride, radix), stage.n_outputs)
        stride *= radix
    return loops.body


def _layers(loops: Loops, array: str, stride: int, radix: int) -> str:
    """Some layers at once: what differs in one digit of its number, added up with signs."""
    first = f"i - {loops.bits(stride * (radix - 1))}"
    terms = [
        loops.read_at(array, f"{first} + {digit * stride}" if digit else first)
        for digit in range(radix)
    ]
    step = stride
    while len(terms) > 1:
        plus, minus = (loops.levels.literal(sign) for sign in (1.0, -1.0))
        sign = f"CASE WHEN {loops.bits(step)} = 0 THEN {plus} ELSE {minus} END"
        pairs = zip(terms[::2], terms[1::2], strict=True)
        terms = [f"({one} + {other} * {sign})" for one, other in pairs]
        step *= 2
    return terms[0]


def _sum_of_products(loops: Loops, stage: SumOfProducts) -> str:
    array = loops.signed()
    terms = []
    for term in range(stage.factors.shape[1]):
        first, *others = stage.factors[:, term].T
        factors = [loops.places(first, stage.sign[:, term])]
        factors += [loops.places(other, absent=_ONE) for other in others]
        terms.append(" * ".join(loops.item(array, place) for place in factors))
    return balanced(terms, " + ")


def _distances(loops: Loops, stage: Distances) -> str:
    array = loops.stored()
    apart = f"({loops.item(array, stage.input, 'e')} - {loops.number_of(stage.value, 'e')})"
    return loops.total(f"{apart} * {apart}", stage.starts[:-1], stage.starts[1:])


def _elementwise(loops: Loops, stage: Elementwise) -> str:
    levels, value = loops.levels, loops.read_at(loops.stored(), "i")
    result = levels.dialect.function(stage.function, value, loops.dtype)
    return loops.never_null(levels.cast(result))


BODIES: dict[type[Stage], Callable[[Loops, Any], str]] = {
    Linear: _linear,
    Butterflies: _butterflies,
    SumOfProducts: _sum_of_products,
    Distances: _distances,
    Elementwise: _elementwise,
}
