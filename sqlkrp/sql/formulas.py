"""Arithmetic that is written rather than done: formulas with operators become SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import number

__all__ = ["Formula"]


@dataclass(frozen=True)
class Formula:
    """A double as SQL, which numbers and others can be added to and so on."""

    text: str
    dialect: Dialect

    def of(self, value: Any) -> Formula:
        """Another one, of a formula or a number."""
        if isinstance(value, Formula):
            return value
        return Formula(number(float(value), "float64", self.dialect), self.dialect)

    def _with(self, operator: str, other: Any) -> Formula:
        return Formula(f"({self.text} {operator} {self.of(other).text})", self.dialect)

    def __add__(self, other: Any) -> Formula:
        return self._with("+", other)

    def __radd__(self, other: Any) -> Formula:
        return self.of(other)._with("+", self)

    def __sub__(self, other: Any) -> Formula:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Formula:
        return self.of(other)._with("-", self)

    def __mul__(self, other: Any) -> Formula:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> Formula:
        return self.of(other)._with("*", self)

    def __truediv__(self, other: Any) -> Formula:
        return self._with("/", other)

    def __pow__(self, power: int) -> Formula:
        return Formula(f"POWER({self.text}, {power:d})", self.dialect)
