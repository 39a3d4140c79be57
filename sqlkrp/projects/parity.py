"""The rows that an engine computes in another way than the twin: a SELECT, and its seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sqlkrp.files import csv_text
from sqlkrp.projects.examples import BOOLEANS, DATES, NUMBERS, TEXTS, Examples
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import balanced, label, listed, number, quote
from sqlkrp.sql.preflight import table_checks
from sqlkrp.sql.vectors import OUTPUTS
from sqlkrp.stages import Program
from sqlkrp.verification import TOLERANCES

__all__ = ["MOST_BYTES", "Parity", "parity_of"]

#: dbt looks into a seed for changes up to this size.
MOST_BYTES = 2**20
# What the names of columns in the seed are; a user's may be any, and are in no file of CSV.
_KEY, _INPUT, _OUTPUT = "row_key", "x", "y"


@dataclass(frozen=True)
class Parity:
    """Rows to compare, and how the columns of a relation are held against them."""

    examples: Examples
    program: Program
    key: str
    columns: tuple[str, ...]
    """What features are called in the relation."""
    output: str
    dialect: Dialect
    compared: int
    """How many of the features are: as many as a row of the seed has room for."""

    @property
    def share(self) -> float:
        """How far a number may be off, as a share of its size."""
        return TOLERANCES[self.program.prepare.dtype]

    @property
    def seed(self) -> str:
        """The rows as CSV."""
        one = self.examples
        inputs = [] if one.inputs is None else list(one.inputs.values())
        names = [f"{_INPUT}{i}" for i in range(len(inputs))]
        names += [f"{_OUTPUT}{i}" for i in range(self.compared)]
        rows = (
            [key, *(_cell(values[place]) for values in inputs), *map(_cell, said)]
            for place, (key, said) in enumerate(
                zip(one.keys, one.expected[:, : self.compared].tolist(), strict=True)
            )
        )
        return csv_text([[_KEY, *names], *rows])

    @property
    def types(self) -> dict[str, str]:
        """The types of columns of the seed that do not look like them: dbt guesses the others."""
        one, double = self.examples, self.dialect.float_types["float64"]
        found = {_KEY: self.dialect.text_type} if isinstance(one.keys[0], str) else {}
        for place, (name, values) in enumerate((one.inputs or {}).items()):
            sort = (one.sorts or {})[name]
            if sort in (TEXTS, DATES):
                found[f"{_INPUT}{place}"] = self.dialect.text_type
            elif _are_whole(values):
                found[f"{_INPUT}{place}"] = double
        for place in range(self.compared):
            if _are_whole(one.expected[:, place].tolist()):
                found[f"{_OUTPUT}{place}"] = double
        return found

    def given(self, seed: str) -> str:
        """The SELECT of made-up rows from the seed, whose columns are called as the map's."""
        one = self.examples
        assert one.inputs is not None
        assert one.sorts is not None
        items = [f"{_KEY} AS {quote(self.key, self.dialect)}"]
        for place, name in enumerate(one.inputs):
            value = self._input(f"{_INPUT}{place}", one.sorts[name])
            items.append(f"{value} AS {quote(name, self.dialect)}")
        return f"SELECT\n{listed(items)}\nFROM {seed} s"

    def _input(self, name: str, sort: str) -> str:
        dialect = self.dialect
        cast = dialect.cast.format
        double = dialect.float_types["float64"]
        return {
            NUMBERS: cast(value=name, type=double),
            TEXTS: cast(value=name, type=dialect.text_type),
            DATES: cast(value=name, type=dialect.time_type),
            BOOLEANS: f"CASE WHEN {name} = 1 THEN {dialect.truths[1]} ELSE {dialect.truths[0]} END",
        }[sort]

    def differing(self, made: str, seed: str, share: str) -> str:
        """The SELECT of the rows of the seed that a relation lacks, or says otherwise.

        ``share`` is SQL: how far a number may be off, as a share of its size.
        """
        key, double = quote(self.key, self.dialect), self.dialect.float_types["float64"]
        allowed = self.dialect.cast.format(value=share, type=double)
        same = balanced(self._tests(), " AND ")
        return (
            f"SELECT expected.{_KEY}\nFROM {seed} expected\n"
            f"CROSS JOIN (SELECT {allowed} AS share) allowed\n"
            f"LEFT JOIN {made} made ON {self._same_key(key)}\n"
            f"WHERE CASE WHEN {same} THEN 0 ELSE 1 END = 1"
        )

    def _same_key(self, key: str) -> str:
        made = f"made.{key}"
        if isinstance(self.examples.keys[0], str):
            made = self.dialect.cast.format(value=made, type=self.dialect.text_type)
        return f"{made} = expected.{_KEY}"

    def _tests(self) -> list[str]:
        """Of each output, the test that it is what the twin says."""
        columns = [f"made.{quote(name, self.dialect)}" for name in self.columns]
        read = OUTPUTS[self.output].read
        assert read is not None
        values = read(columns, len(self.program.names), self.dialect)
        words, tests = self.program.words, []
        for place in range(self.compared):
            expected = f"expected.{_OUTPUT}{place}"
            if place in words:
                tests.append(self._same_word(values[place], expected, words[place]))
            else:
                tests.append(self._near(values[place], expected, place))
        return tests

    def _same_word(self, value: str, expected: str, words: Sequence[str | bool | float]) -> str:
        cases = " ".join(
            f"WHEN {place} THEN {label(word, self.dialect)}" for place, word in enumerate(words)
        )
        return f"{value} = CASE {expected} {cases} END"

    def _near(self, value: str, expected: str, place: int) -> str:
        off = f"ABS({value} - {expected})"
        size, rounding = (float(one[place]) for one in (self.examples.size, self.examples.rounding))
        near = f"{off} <= allowed.share * {number(size, 'float64', self.dialect)}"
        # As verify has it: what rounding explains is no mistake.
        if rounding > self.share * size and np.isfinite(rounding):
            near = f"({near} OR {off} <= {number(rounding, 'float64', self.dialect)})"
        return near


def parity_of(
    examples: Examples,
    program: Program,
    key: str,
    columns: tuple[str, ...],
    output: str,
    dialect: Dialect,
) -> Parity:
    """The comparison of as many features, and of as many rows, as a seed has room for."""
    n_inputs = len(examples.inputs or ())
    compared = len(program.names)
    while compared > 1 and not _fits(1 + n_inputs + compared, dialect):
        compared -= 1
    found = Parity(examples, program, key, columns, output, dialect, compared)
    size = len(found.seed.encode())
    if size <= MOST_BYTES:
        return found
    fewer = max(1, len(examples.keys) * MOST_BYTES // size - 1)
    return Parity(examples.first(fewer), program, key, columns, output, dialect, compared)


def _fits(count: int, dialect: Dialect) -> bool:
    return all(check.ok for check in table_checks(0, count, 8, "columns", dialect))


def _are_whole(values: Sequence[float]) -> bool:
    """Whether dbt would take all of them for whole numbers, of which some are too large."""
    return all(float(value).is_integer() for value in values)


def _cell(value: float | str | bool) -> str | int:
    if isinstance(value, bool):
        return int(value)
    return repr(value) if isinstance(value, float) else value
