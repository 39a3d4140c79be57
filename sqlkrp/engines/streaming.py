"""Rows that stream by: inputs and columns beside these, or features that NumPy makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sqlkrp.engines.asking import query_of
from sqlkrp.engines.inputs import Input
from sqlkrp.engines.session import Session, Streamed, TableOrFile
from sqlkrp.engines.sources import TableSource
from sqlkrp.engines.statistics import values_of
from sqlkrp.errors import ParameterError
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.fitted import Fitted
from sqlkrp.maps.source import NUMERIC
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import quote
from sqlkrp.sql.options import Options
from sqlkrp.stages import Array

__all__ = ["READING", "Listed", "batches_of_features"]

#: What is done, in an error.
READING = "reading the rows"


@dataclass(frozen=True)
class Listed:
    """Inputs, and columns beside them: which of these are numbers, and which texts."""

    inputs: int
    numbers: tuple[str, ...]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, data: Input, inputs: Sequence[str], beside: Sequence[str]) -> Listed:
        """Those of a source."""
        others = [one for one in beside if data.kinds[one] in NUMERIC]
        texts = [one for one in beside if data.kinds[one] not in NUMERIC]
        return cls(len(inputs), (*inputs, *others), tuple(texts))

    def asked(self, data: Input, dialect: Dialect) -> tuple[str, list[str], list[str]]:
        """A relation, and of it the expressions of numbers, and of texts."""
        listed = values_of(data, dialect, self.numbers)
        listed += [
            f"{dialect.cast.format(value=quote(one, dialect), type=dialect.text_type)} AS t{place}"
            for place, one in enumerate(self.texts)
        ]
        relation = f"(SELECT {', '.join(listed)} FROM {data.relation} AS named)"
        values = [f"v{place}" for place in range(len(self.numbers))]
        return relation, values, [f"t{place}" for place in range(len(self.texts))]

    def named(self, rows: Iterable[Streamed]) -> Iterator[tuple[Array, dict[str, Array]]]:
        """Inputs (row, input) of some rows at a time, and other columns by name: numbers, or texts.

        Numbers are doubles, NaN where they are missing.
        """
        count = self.inputs
        for table, columns in rows:
            found = dict(zip(self.texts, columns, strict=True))
            found |= dict(zip(self.numbers[count:], table[:, count:].T, strict=True))
            yield table[:, :count], found


def batches_of_features(
    session: Session, fitted: Fitted, table: TableOrFile | TableSource, label: str | None, rows: int
) -> Iterator[tuple[Array, Array | None]]:
    """Features of at most so many rows at a time, and their labels: numbers, or texts.

    All of it is in one transaction, so the rows are those of one moment.
    """
    beside = [] if label is None else [label]
    with session.transaction(keep=False):
        query, data = query_of(session, fitted, table, Options(), run_now=True)
        if data.long is not None:
            raise ParameterError(
                "rows stream out of a table with one column a feature, and this is (row, feature, "
                "value) input: give such a table"
            )
        match_columns(beside, data.types, where=data.name)
        program = query.program
        listed = Listed.of(data, program.prepare.columns, beside)
        rows_of = session.stream(*listed.asked(data, session.dialect), READING)
        for inputs, found in listed.named(rows_of):
            labels = None if label is None else np.ascontiguousarray(found[label])
            for first in range(0, len(inputs), rows):
                chosen = slice(first, first + rows)
                yield program.apply(inputs[chosen]), None if labels is None else labels[chosen]
