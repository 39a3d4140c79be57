"""Features while rows stream by, for whoever learns of them: computed by NumPy in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sqlkrp.engines.asking import query_of
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.engines.sources import TableSource
from sqlkrp.engines.statistics import values_of
from sqlkrp.errors import ParameterError
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.fitted import Fitted
from sqlkrp.maps.source import NUMERIC
from sqlkrp.sql.names import quote
from sqlkrp.sql.options import Options
from sqlkrp.stages import Array

__all__ = ["batches_of_features"]

Batch = tuple[Array, "Array | None"]


def batches_of_features(
    session: Session, fitted: Fitted, table: TableOrFile | TableSource, label: str | None, rows: int
) -> Iterator[Batch]:
    """Features of at most so many rows at a time, and their labels: numbers, or texts.

    All of it is in one transaction, so the rows are those of one moment.
    """
    with session.transaction(keep=False):
        query, data = query_of(session, fitted, table, Options(), run_now=True)
        if data.long is not None:
            raise ParameterError(
                "rows stream out of a table with one column a feature, and this is (row, feature, "
                "value) input: give such a table"
            )
        names, dialect = list(query.program.prepare.columns), session.dialect
        texts = []
        if label is not None:
            match_columns([label], data.types, where=data.name)
            if data.kinds[label] in NUMERIC:
                names.append(label)
            else:
                value = quote(label, dialect)
                texts.append(dialect.cast.format(value=value, type=dialect.text_type) + " AS t0")
        listed = ", ".join([*values_of(data, dialect, names), *texts])
        relation = f"(SELECT {listed} FROM {data.relation} AS named)"
        values = [f"v{place}" for place in range(len(names))]
        streamed = session.stream(relation, values, ["t0"] * len(texts), "reading the rows")
        count = len(query.program.prepare.columns)
        for table_of, others in streamed:
            labels = _labels(table_of[:, count:], others)
            for first in range(0, len(table_of), rows):
                chosen = slice(first, first + rows)
                features = query.program.apply(table_of[chosen, :count])
                yield features, None if labels is None else labels[chosen]


def _labels(numbers: Array, texts: list[Any]) -> Array | None:
    if numbers.shape[1]:
        found: Array = np.ascontiguousarray(numbers[:, 0])
        return found
    return texts[0] if texts else None
