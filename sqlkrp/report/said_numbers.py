"""Of the numbers that a model says: what they are, and how far labels are from them."""

from __future__ import annotations

import math
from dataclasses import replace

from sqlkrp.engines.cells import binned_in
from sqlkrp.errors import ColumnError
from sqlkrp.report.found import Agreement, Residuals
from sqlkrp.report.scored import COUNTING, Scores
from sqlkrp.sql.names import number

__all__ = ["of_numbers"]

# Hexagons of predictions and labels, from the least to the largest.
_ACROSS = 26
# Strips of residuals a root mean square, and how many of these are shown on each side.
_STRIPS, _SIDES = 6, 4
_SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def of_numbers(scores: Scores) -> Agreement:
    """What predictions are, and how far labels are from them."""
    quantiles = _quantiles(scores, scores.said[0]) if len(scores.said) == 1 else ()
    before = scores.judged.get("predictions", {})
    found = Agreement(
        scores.n_rows,
        quantiles,
        tuple((f"{float(share):.0%}", float(value)) for share, value in before.items()),
    )
    return found if scores.label is None else _predicted(scores, found)


def _quantiles(scores: Scores, column: str) -> tuple[tuple[str, float], ...]:
    ((count,),) = scores.rows(f"SELECT COUNT({column}) FROM {scores.table}")
    ranks = {max(1, math.ceil(share * count)): share for share in _SHARES if count}
    if not ranks:
        return ()
    rows = scores.rows(
        f"SELECT place, p FROM (SELECT {column} AS p, ROW_NUMBER() OVER (ORDER BY {column}) "
        f"AS place FROM {scores.table} WHERE {column} IS NOT NULL) AS ranked "
        f"WHERE place IN ({', '.join(map(str, ranks))}) ORDER BY place ASC"
    )
    return tuple((f"{ranks[int(place)]:.0%}", float(value)) for place, value in rows)


def _predicted(scores: Scores, found: Agreement) -> Agreement:
    assert scores.label is not None
    session, dialect = scores.session, scores.session.dialect
    value, is_there = scores.source.finite_value(dialect, scores.label, "float64")
    points = (
        f"(SELECT {scores.said[0]} AS x, {value} AS y FROM {scores.table} "
        f"WHERE {scores.said[0]} IS NOT NULL AND {is_there})"
    )
    double = dialect.float_types["float64"]
    points = f"(SELECT CAST(x AS {double}) AS x, CAST(y AS {double}) AS y FROM {points} AS q)"
    pairs = binned_in(session, points, _ACROSS, COUNTING)
    if pairs is None:
        raise ColumnError(
            f"column {scores.label!r} of {scores.source.name} has no value where the model "
            "says one: name its label, or leave it out"
        )
    ((mean, square, size, off),) = scores.rows(
        "SELECT AVG(y), AVG((y - x) * (y - x)), AVG(ABS(y - x)), AVG(y - x) "
        f"FROM {points} AS points"
    )
    middle = number(float(mean), "float64", dialect)
    ((spread,),) = scores.rows(
        f"SELECT AVG((y - {middle}) * (y - {middle})) FROM {points} AS points"
    )
    measures = {
        "r2": 1 - float(square) / float(spread) if spread else math.nan,
        "rmse": math.sqrt(square),
        "mae": float(size),
        "mean residual": float(off) if abs(off) > 1e-9 * math.sqrt(square) else 0.0,
    }
    return replace(
        found,
        unlabelled=scores.n_rows - pairs.count,
        measures=tuple(measures.items()),
        pairs=pairs,
        residuals=_residuals(scores, points, math.sqrt(square)),
    )


def _residuals(scores: Scores, points: str, root: float) -> Residuals | None:
    if not root:
        return None
    width = root / _STRIPS
    factor = number(1 / width, "float64", scores.session.dialect)
    edge = _STRIPS * _SIDES
    # What is far off is one strip on each side, so that there are never more than a few.
    share = f"(y - x) * {factor}"
    held = f"CASE WHEN {share} > {edge} THEN {edge + 1} WHEN {share} < -{edge} THEN -{edge + 1}"
    rows = scores.rows(
        f"SELECT strip, COUNT(*) FROM (SELECT {held} ELSE ROUND({share}) END AS strip "
        f"FROM {points} AS points) AS strips GROUP BY strip ORDER BY strip ASC"
    )
    counts = [(round(strip), int(count)) for strip, count in rows]
    inside = tuple(one for one in counts if abs(one[0]) <= edge)
    return Residuals(width, inside, sum(count for _, count in counts) - sum(n for _, n in inside))
