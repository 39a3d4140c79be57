"""Of the numbers that a model says: what they are, and how far labels are from them."""

from __future__ import annotations

import math
from dataclasses import replace

from sqlkrp.engines.cells import binned_in
from sqlkrp.errors import ColumnError
from sqlkrp.quality.measured import ranks
from sqlkrp.report.found import Agreement, Residuals
from sqlkrp.report.scored import COUNTING, Scores
from sqlkrp.sql.cells import extent_of
from sqlkrp.sql.names import number

__all__ = ["of_numbers"]

# Hexagons of predictions and labels, from the least to the largest.
_ACROSS = 26
# Strips of residuals a root mean square, and how many of these are shown on each side.
_STRIPS, _SIDES = 6, 4
# Sums of more than a thousand million of such numbers have room in the range.
_LARGEST = 1e290
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
    there = scores.session.dialect.finite(column, "float64")
    ((count,),) = scores.rows(f"SELECT COUNT(*) FROM {scores.table} WHERE {there}")
    if not count:
        return ()
    shares = dict(zip(ranks(int(count), _SHARES), _SHARES, strict=True))
    rows = scores.rows(
        f"SELECT place, p FROM (SELECT {column} AS p, ROW_NUMBER() OVER (ORDER BY {column}) "
        f"AS place FROM {scores.table} WHERE {there}) AS ranked "
        f"WHERE place IN ({', '.join(map(str, shares))}) ORDER BY place ASC"
    )
    return tuple((f"{shares[int(place)]:.0%}", float(value)) for place, value in rows)


def _predicted(scores: Scores, found: Agreement) -> Agreement:
    assert scores.label is not None
    session, dialect = scores.session, scores.session.dialect
    value, is_there = scores.source.finite_value(dialect, scores.label, "float64")
    points = (
        f"(SELECT {scores.said[0]} AS x, {value} AS y FROM {scores.table} "
        f"WHERE {dialect.finite(scores.said[0], 'float64')} AND {is_there})"
    )
    double = dialect.float_types["float64"]
    points = f"(SELECT CAST(x AS {double}) AS x, CAST(y AS {double}) AS y FROM {points} AS q)"
    _require_in_range(scores, points)
    pairs = binned_in(session, points, _ACROSS, COUNTING)
    if pairs is None:
        raise ColumnError(
            f"column {scores.label!r} of {scores.source.name} has no value where the model "
            "says one: name its label, or leave it out"
        )
    root, measures = _measures(scores, points, max(abs(pairs.grid.low), abs(pairs.grid.high)))
    return replace(
        found,
        unlabelled=scores.n_rows - pairs.count,
        measures=tuple(measures.items()),
        pairs=pairs,
        residuals=_residuals(scores, points, root),
    )


def _measures(scores: Scores, points: str, largest: float) -> tuple[float, dict[str, float]]:
    """The root mean square of what labels are off, and what is told of that.

    In units of about the largest number, a power of 2 as that rounds nothing: squares of others may
    leave the range.
    """
    dialect = scores.session.dialect
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
    by = number(1 / unit, "float64", dialect)
    small = f"(SELECT x * {by} AS x, y * {by} AS y FROM {points} AS points)"
    ((mean, square, size, off, least, most),) = scores.rows(
        "SELECT AVG(y), AVG((y - x) * (y - x)), AVG(ABS(y - x)), AVG(y - x), MIN(y), MAX(y) "
        f"FROM {small} AS small"
    )
    middle = number(float(mean), "float64", dialect)
    ((spread,),) = scores.rows(f"SELECT AVG((y - {middle}) * (y - {middle})) FROM {small} AS small")
    differ = most > least and spread > 0
    root = math.sqrt(square) * unit
    return root, {
        "r2": 1 - float(square) / float(spread) if differ else math.nan,
        "rmse": root,
        "mae": float(size) * unit,
        "mean residual": float(off) * unit if abs(off) > 1e-9 * math.sqrt(square) else 0.0,
    }


def _require_in_range(scores: Scores, points: str) -> None:
    """Raise ColumnError where differences of numbers, or sums of many, may leave the range."""
    ((*ends, count),) = scores.rows(extent_of(points))
    largest = max((abs(float(one)) for one in ends), default=0.0) if count else 0.0
    if largest > _LARGEST:
        raise ColumnError(
            f"column {scores.label!r} of {scores.source.name}, or what is predicted of it, has "
            f"numbers of size {largest:.3g}, and a report takes them up to {_LARGEST:g}: leave "
            "label out, or scale it in a view"
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
