"""How much each column matters to a model on rows of a table, computed where these are.

A column's values in a sample are put to other rows, and the mean change of what the model says is
compared with how far that spreads. It needs no labels, and asks nothing of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.display import Shown
from sqlkrp.engines.session import Session
from sqlkrp.errors import ColumnError
from sqlkrp.models.model import Model
from sqlkrp.sql.chain import free_name
from sqlkrp.sql.encoding import encoded_relation
from sqlkrp.sql.names import balanced, quote
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Query, write
from sqlkrp.stages import Array

__all__ = ["Importance", "decided", "importance"]

# Columns that are exchanged in one statement; SQLite unites no more than 500 SELECTs.
_AT_ONCE = 50
_WHAT = "exchanging columns"


@dataclass(frozen=True, repr=False)
class Importance(Shown):
    """How much each column matters, the most first: the mean change over what is usual."""

    columns: dict[str, float]
    rows: int
    what: str
    """What of the model changes: decisions, probabilities or predictions."""

    def _facts(self) -> dict[str, Any]:
        return {"columns": len(self.columns), "rows": self.rows, "what": self.what}

    def _rows(self) -> dict[str, Any]:
        return {name: f"{value:.3g}" for name, value in list(self.columns.items())[:20]}


def decided(model: Model) -> Model:
    """The model, saying the numbers behind its labels."""
    return model.saying([model.number])


def importance(session: Session, query: Query, model: Model, rows: str) -> Importance:
    """Of the columns of a query's program, on the rows of a SELECT that is a sample."""
    prepare = query.program.prepare
    names = _Names(query, prepare.reads)
    listed = ", ".join(quote(name, session.dialect) for name in prepare.reads)
    numbering = session.dialect.numbering.format(everything=listed)
    numbered = f"SELECT {numbering} AS {names.row}, {listed} FROM (\n{rows}\n) AS drawn"
    try:
        session.create_temporary(names.sample, numbered, "drawing a sample of rows")
        ((count,),) = session.rows(
            f"SELECT COUNT(*) FROM {quote(names.sample, session.dialect)}", _WHAT
        )
        session.load(names.others, _others(int(count)))
        changes = dict(_changes(session, query, names, prepare.reads))
    finally:
        session.drop_temporary(names.sample)
        session.drop_temporary(names.others)
    strongest = sorted(changes.items(), key=lambda pair: -pair[1])
    return Importance(dict(strongest), int(count), model.number)


class _Names:
    """Names that are none of the table's."""

    def __init__(self, query: Query, columns: Sequence[str]) -> None:
        self.row, self.exchanged = free_name("n", columns), free_name("exchanged", columns)
        prefix = f"{query.digest[:12]}_{query.token}"
        self.sample, self.scores = f"{prefix}sample", f"{prefix}scores"
        self.others = f"{prefix}others"


def _others(count: int) -> dict[str, Array]:
    """Another row for each row, none of it the same: in no order that a table could have."""
    if count < 2:
        raise ColumnError("there is nothing to exchange: give a table of two rows and more")
    shuffled = np.random.default_rng(0).permutation(count).astype("i4") + 1
    # Each has the values of the one behind it in a circle of all.
    return {"place": shuffled, "other": np.roll(shuffled, -1)}


def _changes(
    session: Session, query: Query, names: _Names, columns: Sequence[str]
) -> Iterator[tuple[str, float]]:
    for first in range(0, len(columns), _AT_ONCE):
        part = list(columns[first : first + _AT_ONCE])
        relation = _exchanged(session, names, columns, part)
        prepare = query.program.prepare
        source = encoded_relation(relation, prepare, session.dialect, query.booleans)
        options = Options(keep=(names.exchanged, names.row))
        asked = replace(query, relation=source, options=replace(options, output="columns"))
        yield from zip(part, _mean_changes(session, asked, names), strict=True)


def _exchanged(session: Session, names: _Names, columns: Sequence[str], part: Sequence[str]) -> str:
    """The sample once as it is, and once for each of some columns with that of another row."""
    dialect = session.dialect
    sample, others = (quote(name, dialect) for name in (names.sample, names.others))
    items = [f"variants.v AS {names.exchanged}", f"one.{names.row} AS {names.row}"]
    for name in columns:
        quoted = quote(name, dialect)
        value = f"one.{quoted}"
        if name in part:
            place = part.index(name) + 1
            value = f"CASE WHEN variants.v = {place} THEN other.{quoted} ELSE {value} END"
        items.append(f"{value} AS {quoted}")
    variants = " UNION ALL ".join(f"SELECT {i} AS v" for i in range(len(part) + 1))
    return (
        f"(\nSELECT {', '.join(items)}\nFROM {sample} one\n"
        f"JOIN {others} places ON places.place = one.{names.row}\n"
        f"JOIN {sample} other ON other.{names.row} = places.other\n"
        f"CROSS JOIN ({variants}) variants\n)"
    )


def _mean_changes(session: Session, query: Query, names: _Names) -> list[float]:
    """The mean change in each variant, as a share of the standard deviation without any."""
    dialect = session.dialect
    statement = write(query, dialect)
    values = [quote(name, dialect) for name in statement.columns[2:]]
    changed = ", ".join(f"AVG(ABS(a.{value} - b.{value}))" for value in values)
    moments = ", ".join(f"AVG({value}), AVG({value} * {value})" for value in values)
    scores, exchanged = quote(names.scores, dialect), quote(names.exchanged, dialect)
    try:
        with session.holding(statement):
            session.create_temporary(names.scores, statement.text, _WHAT)
        (found,) = session.rows(f"SELECT {moments} FROM {scores} WHERE {exchanged} = 0", _WHAT)
        tests = [f"a.{quote(names.row, dialect)} = b.{quote(names.row, dialect)}",
                 f"b.{exchanged} = 0"]  # fmt: skip
        rows = session.rows(
            f"SELECT a.{exchanged}, {changed} FROM {scores} a JOIN {scores} b "
            f"ON {balanced(tests, ' AND ')} GROUP BY a.{exchanged} ORDER BY 1",
            _WHAT,
        )
    finally:
        session.drop_temporary(names.scores)
    means, squares = np.array(found, dtype="f8").reshape(-1, 2).T
    spread = np.sqrt(np.maximum(squares - means**2, 0))
    changes = np.array([row[1:] for row in rows[1:]], dtype="f8")
    shares = np.divide(changes, spread, out=np.zeros_like(changes), where=spread > 0)
    return [float(one) for one in shares.mean(axis=1)]
