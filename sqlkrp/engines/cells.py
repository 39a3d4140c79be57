"""Pairs of numbers of a relation, counted where they are."""

from __future__ import annotations

from sqlkrp.engines.session import Session
from sqlkrp.quality.binned import Binned, Grid
from sqlkrp.sql.cells import cells_of, extent_of, strips_of

__all__ = ["binned_in"]


def binned_in(session: Session, points: str, across: int, doing: str) -> Binned | None:
    """Rows (x, y) of a relation in so many hexagons across; None where there are no rows."""
    ((*ends, count),) = session.rows(extent_of(points), doing)
    if not count:
        return None
    low, high = (float(pick(ends)) for pick in (min, max))
    grid = Grid(low, high, across)
    cells = session.rows(cells_of(points, low, grid.factors, session.dialect), doing)
    strips = session.rows(strips_of(points, low, grid.factors[0], session.dialect), doing)
    return Binned(
        grid,
        tuple((round(g), round(h), int(number)) for g, h, number in cells),
        tuple((float(x), float(y), int(number)) for _, x, y, number in strips),
    )
