"""A table or view that is made whole or not at all: room for it, what follows, and clearing up.

Where an engine has transactions they see to it; where it has none, what could not be finished is
dropped here.
"""

from __future__ import annotations

from sqlkrp.engines.growing import replaced
from sqlkrp.engines.inputs import Input
from sqlkrp.engines.session import Columns, Session, Target
from sqlkrp.engines.targets import require_same_columns
from sqlkrp.errors import ParameterError
from sqlkrp.interrupts import COMMITTED, note_done
from sqlkrp.sql.names import quote_table
from sqlkrp.sql.preflight import require_fits
from sqlkrp.sql.statement import Query, Statement, features_table

__all__ = ["columns_of", "made", "require_room"]


def columns_of(statement: Statement, query: Query, data: Input) -> Columns | None:
    """What the rows of a statement hold, where features are columns of numbers."""
    if not statement.number_type:
        return None
    types = dict(data.types if data.key_types is None else data.key_types)
    if query.long is not None:
        types[query.long.row] = data.types[query.long.row]
    names, features = statement.columns[: statement.n_kept], statement.columns[statement.n_kept :]
    return Columns({name: types[name] for name in names}, features, statement.number_type)


def made(
    session: Session,
    target: Target,
    statement: Statement,
    data: Input,
    *,
    view: bool,
) -> tuple[int | None, int]:
    """Make what was written, or add it to what is there; how many rows came, and were replaced."""
    with session.holding(statement):
        if target.storage.grows and target.found is not None:
            require_same_columns(session, target, statement)
            old = replaced(session, target, data) if target.storage.upsert else 0
            return session.append(target, statement.text, statement.columns), old
        count = session.create(target, statement.text, view=view)
    try:
        _finish(session, target, statement, view=view)
    except BaseException:
        # Where an old one was replaced, dropping the new one would leave nothing.
        if not session.can.transactions and target.found is None:
            _drop(session, target, view=view)
        raise
    if not session.can.transactions:
        note_done(COMMITTED)
    return count, 0


def require_room(session: Session, statement: Statement, query: Query, *, view: bool) -> None:
    """Raise an error unless a table has room for the rows, or a view needs no side tables."""
    if not view:
        sizes = features_table(statement, query, session.dialect)
        require_fits(sizes, session.dialect)
    elif statement.side_tables:
        long = query.long is not None
        why = "of sparse input" if long else "in the tables form"
        instead = "create a table" if long else "use form='wide', or create a table"
        raise ParameterError(f"a view {why} would need side tables that stay: {instead}")


def _finish(session: Session, target: Target, statement: Statement, *, view: bool) -> None:
    """What is left to do for a table or view that was made."""
    session.restore_names(target.full, statement.columns, view=view)
    if view:
        # A view that came to read itself can be created, but not read.
        relation = quote_table(target.full, session.dialect)
        session.rows(f"SELECT * FROM {relation} LIMIT 0", "reading the view")
    if session.can.comments:
        session.comment(target, target.told, view=view)


def _drop(session: Session, target: Target, *, view: bool) -> None:
    name = quote_table(target.full, session.dialect)
    session.execute(f"DROP {'VIEW' if view else 'TABLE'} {name}", "cleaning up")
