"""A map or model as a table macro: a query that any client of the engine calls with a table."""

from __future__ import annotations

from sqlkrp.engines.session import Session, Target
from sqlkrp.errors import ParameterError, TargetExistsError
from sqlkrp.maps.fitted import Fitted
from sqlkrp.sql.chain import free_name
from sqlkrp.sql.encoding import encoded_relation
from sqlkrp.sql.names import TableName
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Statement, write

__all__ = ["macro_made"]

# What a macro calls the table that it is called with.
_PARAMETER = "source_table"


def macro_made(
    session: Session,
    fitted: Fitted,
    into: TableName,
    options: Options,
    told: str,
    *,
    replace: bool,
) -> Statement:
    """Make the macro of a map; the statement that it is of."""
    full, is_there = session.find_macro(into)
    if is_there and not replace:
        raise TargetExistsError(
            f"the macro {'.'.join(full)!r} exists already: choose another name, or replace it "
            "(replace=True)"
        )
    parameter = _free_parameter(fitted, options)
    relation = encoded_relation(
        session.named_relation(parameter), fitted.program.prepare, session.dialect
    )
    statement = write(fitted.query(relation, options), session.dialect)
    if statement.side_tables:
        raise ParameterError(
            "a macro in the tables form would need side tables that stay: use form='wide', or "
            "create a table"
        )
    session.create_macro(Target(full, None, told=told), parameter, statement.text)
    return statement


def _free_parameter(fitted: Fitted, options: Options) -> str:
    """The parameter's name: none of the columns', for which the engine would put its value."""
    prepare = fitted.program.prepare
    inputs = [*prepare.columns, *prepare.reads, *options.keep]
    return free_name(_PARAMETER, [*inputs, *fitted.program.names])
