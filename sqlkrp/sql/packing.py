"""Signs as bits: 64 features in one whole number, and the score of numbers against such bits."""

from __future__ import annotations

from collections.abc import Sequence

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import balanced

__all__ = ["BITS", "bit_names", "packed", "signed_by_bits"]

#: Signs in one whole number.
BITS = 64


def bit_names(prefix: str, n_signs: int) -> list[str]:
    """The names of the columns that so many signs are packed into."""
    return [f"{prefix}_bits_{i}" for i in range(-(-n_signs // BITS))]


def packed(values: Sequence[str], dialect: Dialect) -> list[str]:
    """Whole numbers whose bit i, from the lowest, is 1 where value i of theirs is above 0."""
    columns = []
    for first in range(0, len(values), BITS):
        bits = [
            f"CASE WHEN {value} > 0 THEN {_weight(i, dialect)} ELSE {_whole('0', dialect)} END"
            for i, value in enumerate(values[first : first + BITS])
        ]
        columns.append(balanced(bits, " + "))
    return columns


def signed_by_bits(values: Sequence[str], bits: Sequence[str], dialect: Dialect) -> str:
    """The sum of the values, each with the sign that its bit stands for."""
    terms = []
    for i, value in enumerate(values):
        bit = dialect.bit.format(value=bits[i // BITS], place=i % BITS)
        terms.append(f"CASE WHEN {bit} = 1 THEN {value} ELSE -{value} END")
    return balanced(terms, " + ")


def _weight(place: int, dialect: Dialect) -> str:
    # The last bit is the sign; its weight cannot be written as minus a number of the type.
    if place == BITS - 1:
        return f"({_whole(str(1 - 2**place), dialect)} - {_whole('1', dialect)})"
    return _whole(str(2**place), dialect)


def _whole(number: str, dialect: Dialect) -> str:
    return dialect.cast.format(value=number, type=dialect.whole_type)
