"""What a form of SQL writes a statement for: everything decided, every name known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.planning import Plan
from sqlkrp.sql.side_tables import Table
from sqlkrp.sql.vectors import Output, Vector
from sqlkrp.stages import Program

__all__ = ["Job", "LongInput", "Written"]


@dataclass(frozen=True)
class LongInput:
    """Sparse input: a relation of (row, feature, value); an entry that is absent is 0."""

    row: str
    feature: str
    value: str
    keys: str | None = None
    """SQL of a relation with one row for each row of the answer, in a column named as ``row``."""


@dataclass(frozen=True)
class Job:
    """A statement to write."""

    program: Program
    plan: Plan | None
    """How it is computed by sums of columns; None where that is not asked for."""
    relation: str
    """The source, as SQL."""
    long: LongInput | None
    """Its columns, where it is sparse."""
    keep: tuple[str, ...]
    """The columns that are handed on; of sparse input, those of its table of rows."""
    output: Output
    output_names: tuple[str, ...]
    guard: bool
    """Whether a missing value under ``nulls="error"`` stops the statement."""
    booleans: Collection[str]
    """The input columns that are truth values."""
    singles: Collection[str]
    """Those whose numbers single precision is known to hold."""
    dialect: Dialect
    side: Mapping[tuple[int, str], tuple[str, Table]]
    """The side tables of the program."""

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns in front of the features: of sparse rows, the row is one of them."""
        return self.keep if self.long is None else (self.long.row, *self.keep)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the answer."""
        return (*self.kept, *self.output_names)

    @property
    def stops(self) -> bool:
        """Whether the statement stops at a missing value, and so looks at every column."""
        return self.guard and self.program.prepare.nulls == "error"

    @property
    def dtype(self) -> str:
        """The NumPy dtype that features are computed in."""
        return self.program.prepare.dtype

    @property
    def type_name(self) -> str:
        """Its SQL type."""
        return self.dialect.float_types[self.dtype]

    def outputs(self, values: Vector) -> list[str]:
        """The features as items of the outermost SELECT."""
        return self.output.items(values, self.output_names, self.type_name, self.dialect)


@dataclass(frozen=True)
class Written:
    """A statement as a form wrote it."""

    select: str
    widest: int
    """Entries of its widest SELECT."""
    side_tables: Mapping[str, Table]
    """Those that it joins, by their full names."""
