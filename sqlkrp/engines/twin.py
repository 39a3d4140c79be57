"""Features that NumPy computes where the rows are: what it reads, and what is read of it."""

from __future__ import annotations

from dataclasses import replace

from sqlkrp.engines.samples import doubles
from sqlkrp.engines.session import Session
from sqlkrp.errors import ParameterError
from sqlkrp.sql.names import quote
from sqlkrp.sql.statement import Query, Statement, write_reading

__all__ = ["written_by_twin"]


def written_by_twin(session: Session, query: Query) -> Statement:
    """The statement that reads features from what NumPy computes where the rows are."""
    dialect = session.dialect
    session.can.require("twin", dialect.name, "leave it out, and SQL computes")
    if query.long is not None:
        raise ParameterError(
            "how='arrow' reads rows with one column a feature: leave it out for (row, feature, "
            "value) input"
        )
    assert dialect.array is not None
    kept = [f"{quote(name, dialect)} AS k{i}" for i, name in enumerate(query.options.keep)]
    inputs = dialect.array.format(items=", ".join(doubles(query, dialect)))
    select = f"SELECT {', '.join([*kept, f'{inputs} AS x'])} FROM {query.relation}"
    return write_reading(replace(query, relation=session.by_twin(select, query.asked)), dialect)
