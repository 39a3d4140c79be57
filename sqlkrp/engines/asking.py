"""What is asked of a source: the query of a map or a model over it, and its statement."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

from sqlkrp.engines.checks import check_columns
from sqlkrp.engines.inputs import Input
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.engines.sources import TableSource, read_input
from sqlkrp.engines.twin import written_by_twin
from sqlkrp.maps.fitted import Fitted, require_fitted
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Query, Statement, write
from sqlkrp.sql.vectors import VECTOR

__all__ = ["query_of", "with_output", "written"]

# In the names of temporary tables: one that could not be dropped, or that a relation still needs,
# is not in the way of the next use of the same map.
_uses = itertools.count(1)


def query_of(
    session: Session,
    fitted: Fitted,
    table: TableOrFile | TableSource | Input,
    options: Options,
    *,
    run_now: bool,
    any_rows: bool = False,
) -> tuple[Query, Input]:
    """The query of a map over a source, after a look at the source's columns.

    What is run now, in a transaction that sees what was checked, needs no guard of its own. A
    view and a relation are read when their table may have changed; and ``any_rows`` of a table may
    be others each time.
    """
    require_fitted("fitted", fitted)
    data = read_input(session, table, options)
    prepare = fitted.program.prepare
    if fitted.label_ in (data.types if data.long is None else data.key_types or {}):
        options = replace(options, keep=(*options.keep, str(fitted.label_)))
    check_columns(prepare, data, options.keep, session.dialect)
    data = data.encoded(prepare, session.dialect)
    query = replace(
        fitted.query(data.relation, options),
        keys=None if data.long is None else data.long.keys,
        booleans=data.booleans,
        singles=data.singles(session.dialect) if run_now else (),
        token=f"{next(_uses)}_",
        guard=any_rows or not (run_now and session.can.transactions),
    )
    if run_now and data.long is None:
        query = replace(query, count=partial(_count, session, data))
    return query, data


def _count(session: Session, data: Input, most: int) -> int | None:
    """How many rows there are, if that is seen at once: at most so many, in no view."""
    if not session.has_rows(data.table):
        return None
    first = f"SELECT 1 AS one FROM {data.relation} AS every LIMIT {most + 1:d}"
    ((count,),) = session.rows(f"SELECT COUNT(*) FROM ({first}) AS few", "counting rows")
    return int(count) if count <= most else None


def written(session: Session, query: Query) -> Statement:
    """The statement, if the engine takes it, and has room for its side tables."""
    as_vectors = query.options.output == VECTOR
    if as_vectors:
        session.can.require("vectors", session.dialect.name, "use output='array'")
        query = with_output(query, "array")
    if query.options.how == "sql":
        statement = write(query, session.dialect)
    else:
        statement = written_by_twin(session, query)
    if statement.side_tables:
        instead = "give rows with one column a feature, and form='wide'"
        session.can.require("temporary_tables", session.dialect.name, instead)
    if as_vectors:
        text = session.with_vectors(statement.text, statement.columns[-1])
        statement = replace(statement, text=text)
    return statement


def with_output(query: Query, output: str) -> Query:
    """The query with another way to hand its values on."""
    return replace(query, options=replace(query.options, output=output))
