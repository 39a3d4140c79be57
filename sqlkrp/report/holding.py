"""What the columns of a table hold, beside what they held where a map or model was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sqlkrp.engines.distortion import Sample
from sqlkrp.engines.sources import TableSource
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.fitted import Fitted
from sqlkrp.models.model import Model
from sqlkrp.report.found import Column
from sqlkrp.sql.names import quote
from sqlkrp.stages import Category

__all__ = ["held_in", "of_two_in"]

# Of shares that are added up.
_ROUNDING = 1e-9


def held_in(
    sample: Sample, fitted: Fitted
) -> tuple[tuple[Column, ...], tuple[tuple[str, float], ...]]:
    """What each input holds here, beside what it held where the map or model was made.

    And the columns of texts of which some are none that it reads.
    """
    prepare = fitted.twin.prepare
    session = sample.session
    source = TableSource(session, sample.whole.encoded(prepare, session.dialect))
    now = source.statistics(prepare.columns)
    is_known = _is_standard(fitted) & (prepare.scale > 0) & (prepare.scale != 1)
    again = {one.name for one in prepare.categories if one.is_column}
    means = dict(zip(prepare.columns, now.mean.tolist(), strict=True))
    unread = tuple(_unread(prepare.categories, means)) if _reads_all(fitted) else ()
    return tuple(_columns(prepare, now, is_known, again, sample.n_rows)), unread


def _reads_all(fitted: Fitted) -> bool:
    """Whether there is an indicator for each text; encoders of others may drop one on purpose."""
    if isinstance(fitted, Model) and fitted.shortening is not None:
        return False  # it has those of its terms
    return isinstance(fitted, FeatureMap) or bool(fitted.training)


def of_two_in(sample: Sample, fitted: Fitted) -> tuple[tuple[str, int], ...]:
    """Columns of two values, of which the second has an indicator, and how many they hold here.

    Any other value is read as the first, and which that was nobody kept.
    """
    if not _reads_all(fitted):
        return ()
    counts = Counter(
        one.column
        for one in fitted.twin.prepare.categories
        if isinstance(one.value, str) or one.missing
    )
    session = sample.session
    found = []
    for column in (name for name, count in counts.items() if count == 1):
        name = quote(column, session.dialect)
        ((values, there, rows),) = session.rows(
            f"SELECT COUNT(DISTINCT {name}), COUNT({name}), COUNT(*) FROM {sample.whole.relation}",
            "counting the values of a column",
        )
        found.append((column, int(values) + (there < rows)))
    return tuple(found)


def _unread(
    categories: Sequence[Category], means: Mapping[str, float]
) -> Iterator[tuple[str, float]]:
    """Columns of texts, with the share of rows that hold none of those that have an indicator."""
    by_column: dict[str, list[float]] = {}
    for one in categories:
        if one.value is not None or one.missing:
            by_column.setdefault(one.column, []).append(means[one.name])
    for column, shares in by_column.items():
        share = 1 - sum(shares)
        if len(shares) > 1 and share > _ROUNDING:  # of two texts the first has none
            yield column, share


def _columns(prepare: Any, now: Any, is_known: Any, again: set[str], rows: int) -> Iterator[Column]:
    for place, (name, told) in enumerate(zip(prepare.columns, prepare.told, strict=True)):
        if name in again:  # what was filled or held in another way, too
            continue
        before = is_known[place]
        yield Column(
            told,
            1 - float(now.count[place]) / max(1, rows),
            float(now.mean[place]),
            float(now.std[place]),
            float(prepare.shift[place]) if before else None,
            1 / float(prepare.scale[place]) if before else None,
        )


def _is_standard(fitted: Fitted) -> np.bool_:
    """Whether columns are shifted by their means, and divided by their standard deviations."""
    if fitted.training:
        return np.True_
    if isinstance(fitted, FeatureMap):
        return np.bool_(fitted.settled().first.scaling == "standard")
    features = fitted.features if isinstance(fitted, Model) else None
    return np.bool_(features is not None and features.first.scaling == "standard")
