"""The values of a row on their way through a statement, and how they come out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlkrp.errors import LimitError
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import quote
from sqlkrp.sql.packing import bit_names, packed

__all__ = ["OUTPUTS", "VECTOR", "Output", "Vector", "require_has"]


class Vector(Sequence[str]):
    """Values as SQL: columns or expressions, or the items of one array.

    ``there`` is the test that a row has values at all; empty where all have. What is not
    ``is_named`` is an expression, which is computed again wherever it stands.
    """

    def __init__(
        self, items: Iterable[str], *, array: str = "", there: str = "", is_named: bool = False
    ) -> None:
        self._items = list(items)
        self._array = array
        self.there = there
        self.is_named = is_named

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        return self._items[place]

    def as_array(self, dialect: Dialect) -> str:
        """One array of them; none in a row that has no values, rather than one of NULLs."""
        if self._array:
            return self._array
        assert dialect.array is not None
        array = dialect.array.format(items=", ".join(self._items))
        return dialect.array_when.format(test=self.there, array=array) if self.there else array


@dataclass(frozen=True)
class Output:
    """How features come out: the names of their columns, and the items of a SELECT list."""

    names: Callable[[str, Sequence[str]], Sequence[str]]
    """Of a map's prefix, and of the names of its features."""
    values: Callable[[Vector, str, Dialect], Sequence[str]]
    """Of the features, and of their SQL type."""
    read: Callable[[Sequence[str], int, Dialect], Sequence[str]] | None = None
    """Each of so many features, from such columns of a table. None where they are not numbers."""

    def items(
        self, values: Vector, names: Sequence[str], type_name: str, dialect: Dialect
    ) -> list[str]:
        """What stands in the outermost SELECT."""
        written = self.values(values, type_name, dialect)
        pairs = zip(written, names, strict=True)
        return [f"{value} AS {quote(name, dialect)}" for value, name in pairs]


def _one_array(values: Vector, type_name: str, dialect: Dialect) -> list[str]:
    return [dialect.typed_array(values.as_array(dialect), type_name, len(values))]


def _items(columns: Sequence[str], count: int, dialect: Dialect) -> list[str]:
    (array,) = columns
    return [dialect.item(array, index) for index in range(count)]


def _bits(values: Vector, type_name: str, dialect: Dialect) -> list[str]:
    whole_numbers = packed(values, dialect)
    if not values.there:
        return whole_numbers
    return [f"CASE WHEN {values.there} THEN {number} END" for number in whole_numbers]


#: What a session makes of an array, where it can; no SQL does.
VECTOR = "vector"

#: By the names that users have for them.
OUTPUTS: dict[str, Output] = {
    "columns": Output(
        lambda prefix, names: names, lambda values, *_: values, lambda columns, *_: columns
    ),
    "array": Output(lambda prefix, names: [prefix], _one_array, _items),
    "bits": Output(lambda prefix, names: bit_names(prefix, len(names)), _bits),
}


def require_has(output: str, dialect: Dialect) -> None:
    """Raise LimitError if a dialect cannot write features so."""
    if output == "array" and dialect.array is None:
        raise LimitError(f"{dialect.name} has no arrays of numbers: use output='columns'")
