"""Features that NumPy computes where the rows are: what it reads, and what is read of it."""

from __future__ import annotations

from dataclasses import replace

from sqlkrp.engines.samples import numbers
from sqlkrp.engines.session import Session
from sqlkrp.errors import ParameterError
from sqlkrp.sql.names import quote
from sqlkrp.sql.statement import Query, Statement, write_reading
from sqlkrp.sql.twin import Twin

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
    query = query.decided(dialect)
    program, names = query.asked, query.options.keep
    twin = Twin(
        name=f"sqlkrp_twin_{query.token}",
        program=program,
        in_array=query.options.output == "array",
        relation=query.relation,
        kept=tuple(f"{quote(name, dialect)} AS k{i}" for i, name in enumerate(names)),
        inputs=tuple(numbers(query, program.prepare.dtype, dialect)),
    )
    relation, values = session.by_twin(twin)
    statement = write_reading(replace(query, relation=relation), values, dialect)
    return replace(statement, twins=(twin,))
