"""Counts of pairs of numbers in hexagons, and their means in strips, as SELECTs.

Each reads a relation of rows (x, y), which is SQL already; ``ROUND`` is all that it asks of an
engine, as some have no ``FLOOR``. What a lattice is, ``quality/binned.py`` says.
"""

from __future__ import annotations

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import number

__all__ = ["cells_of", "extent_of", "strips_of"]


def extent_of(points: str) -> str:
    """The least and the largest x and y, and how many there are."""
    return f"SELECT MIN(x), MAX(x), MIN(y), MAX(y), COUNT(*) FROM {points} AS points"


def cells_of(points: str, low: float, factors: tuple[float, float], dialect: Dialect) -> str:
    """(column, row, count) of each hexagon that holds a point, in halves of a lattice's steps."""
    least, across, down = (number(one, "float64", dialect) for one in (low, *factors))
    placed = f"SELECT (x - {least}) * {across} AS u, (y - {least}) * {down} AS v FROM {points} AS p"
    near = (
        "SELECT u, v, ROUND(u) AS a, ROUND(v) AS b, ROUND(u - 0.5) + 0.5 AS c, "
        f"ROUND(v - 0.5) + 0.5 AS d FROM ({placed}) AS placed"
    )
    to_first, to_second = (
        f"(u - {one}) * (u - {one}) + 3 * (v - {two}) * (v - {two})" for one, two in ("ab", "cd")
    )
    is_first = f"{to_first} < {to_second}"
    cells = (
        f"SELECT CASE WHEN {is_first} THEN 2 * a ELSE 2 * c END AS g, "
        f"CASE WHEN {is_first} THEN 2 * b ELSE 2 * d END AS h FROM ({near}) AS near"
    )
    return f"SELECT g, h, COUNT(*) FROM ({cells}) AS cells GROUP BY g, h ORDER BY g ASC, h ASC"


def strips_of(points: str, low: float, factor: float, dialect: Dialect) -> str:
    """(strip, mean x, mean y, count) of strips of x."""
    least, across = (number(one, "float64", dialect) for one in (low, factor))
    placed = f"SELECT x, y, ROUND((x - {least}) * {across}) AS s FROM {points} AS p"
    return f"SELECT s, AVG(x), AVG(y), COUNT(*) FROM ({placed}) AS strips GROUP BY s ORDER BY s ASC"
