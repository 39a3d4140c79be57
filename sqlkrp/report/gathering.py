"""From a map or a model and a table to what a report says, by aggregates where the rows are."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sqlkrp.engines.asking import query_of, written
from sqlkrp.engines.creating import require_room
from sqlkrp.engines.distortion import Bench, Sample, sample_in
from sqlkrp.engines.growing import few_rows
from sqlkrp.engines.session import Session
from sqlkrp.engines.sources import TableSource
from sqlkrp.engines.verifying import verified
from sqlkrp.errors import LimitError, ParameterError
from sqlkrp.maps.feature_map import FeatureMap, require_map
from sqlkrp.maps.fitted import Fitted, require_fitted
from sqlkrp.models.explaining import Explanation, explain
from sqlkrp.models.importance import Importance, decided, importance
from sqlkrp.models.model import Model
from sqlkrp.quality.asked import Family, family_of
from sqlkrp.quality.measuring import curve_of, measured
from sqlkrp.report.agreeing import agreement_in
from sqlkrp.report.found import Agreement, Column, Cost, Distances, Found, Spent, Wanted
from sqlkrp.sql.forms import FORMS
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Preflight
from sqlkrp.stages import Category
from sqlkrp.summaries.facts import preflight_of
from sqlkrp.version import __version__

__all__ = ["gathered"]

# Hexagons of kernels, from the least to the largest.
_ACROSS = 26
# Of the map's own number of features, where maps of other sizes are drawn.
_SIZES = (0.25, 0.5, 1, 2)
# Rows that features are computed of to see how long it takes, but no more than so many numbers; a
# model says something of all.
_TIMED_ROWS, _TIMED_NUMBERS = 20_000, 10_000_000
_TERMS = 15
# To exchange the values of more columns would take longer than all else.
_MOST_COLUMNS = 300
# Of shares that are added up.
_ROUNDING = 1e-9


def gathered(
    session: Session, fitted: Any, table: Any, wanted: Wanted, of_map: Any = None
) -> Found:
    """All that a report says; ``of_map`` is the map whose features a model weighs."""
    require_fitted("fitted", fitted)
    one = _map_of(fitted, of_map)
    several = [fitted] if one is None or one is fitted else [fitted, one]
    with sample_in(session, several, table, wanted.asked, "a report") as sample:
        if not sample.count:
            raise ParameterError(
                f"{sample.whole.name} has no rows: give a table that has some for a report"
            )
        distances, why_not = _distances(sample, one, wanted)
        agreement, spent = _agreement(sample, fitted, wanted)
        terms, no_terms = _terms(sample, fitted)
        inputs, unread = _inputs(sample, fitted)
        drawn = TableSource(session, sample.data)
        check = verified(session, fitted, drawn, Options(), sample.count, None)
        return Found(
            kind=fitted.kind,
            title=fitted.title,
            digest=fitted.digest_,
            table=sample.whole.name,
            engine=session.dialect.name,
            rows=sample.n_rows,
            sample=sample.count,
            wanted=wanted,
            n_features=_n_features(fitted),
            columns=fitted.training["columns"] if fitted.training else fitted.columns_,
            inputs=inputs,
            unread=unread,
            distances=distances,
            without_distances=why_not,
            training=fitted.training,
            agreement=agreement,
            cost=_cost(sample, fitted, wanted, spent),
            terms=terms,
            without_terms=no_terms,
            verification=check,
            version=__version__,
        )


def _map_of(fitted: Fitted, given: Any) -> FeatureMap | None:
    """The map that is measured: what is reported on, or the one that a model's features are of."""
    if isinstance(fitted, FeatureMap):
        if given is not None:
            raise ParameterError("map is of a model, and this is one itself: leave it out")
        return fitted
    if given is None:
        return None
    require_map("map", given)
    assert isinstance(fitted, Model)
    if not set(given.program.names) & set(fitted.names):
        raise ParameterError(
            f"the model weighs no feature of {given.title}: give the map that it was trained with"
        )
    found: FeatureMap = given
    return found


def _n_features(fitted: Fitted) -> int:
    return len(fitted.names) if isinstance(fitted, Model) else len(fitted.program.names)


# --- distances ------------------------------------------------------------------------------------


def _distances(
    sample: Sample, one: FeatureMap | None, wanted: Wanted
) -> tuple[Distances | None, str]:
    """How far they are off, or why nobody knows."""
    if one is None:
        return None, (
            "a model weighs features and estimates no kernel itself: give the map that it was "
            "trained with (--map-file MAP), or see what sqlkrp distortion says of that"
        )
    try:
        family = family_of(one)
    except ParameterError as bad:
        return None, str(bad)
    if sample.count < 2:
        return None, "there are no two rows, between which there would be a distance"
    bench = Bench(sample, family)
    asked = replace(wanted.asked, components=())
    own = measured(family, bench, asked)
    sizes = wanted.asked.components or _sizes(own.components)
    found = replace(own, curve=_curve(family, bench, sizes, wanted, own.components))
    other = family.with_other_pool()
    if not wanted.asked.components:  # of independent entries, larger maps take most of the time
        sizes = tuple(size for size in sizes if size <= own.components)
    others = () if other is None else _curve(other[1], bench, sizes, wanted)
    pairs = None if family.kernel.is_centred else bench.binned(family.map.program, _ACROSS)
    return Distances(found, other and other[0] if others else None, others, pairs), ""


def _sizes(own: int) -> tuple[int, ...]:
    """Even numbers, as pairs of features come out of some maps."""
    return tuple(sorted({max(2, round(share * own / 2) * 2) for share in _SIZES}))


def _curve(
    family: Family, bench: Bench, sizes: tuple[int, ...], wanted: Wanted, but: int = 0
) -> tuple[Any, ...]:
    """What others of such sizes come to, where there can be such."""
    found: list[Any] = []
    for size in sizes:
        if size != but and family.allows(size):
            with contextlib.suppress(ParameterError):  # such as more landmarks than rows
                found += curve_of(family, bench, replace(wanted.asked, components=(size,)))
    return tuple(found)


# --- models ---------------------------------------------------------------------------------------


def _agreement(
    sample: Sample, fitted: Fitted, wanted: Wanted
) -> tuple[Agreement | None, Spent | None]:
    if not isinstance(fitted, Model):
        if wanted.label is not None:
            raise ParameterError(
                f"label={wanted.label!r} is held against what a model says, and a map says "
                "nothing: leave it out"
            )
        return None, None
    return agreement_in(sample, fitted, wanted.label)


def _terms(sample: Sample, fitted: Fitted) -> tuple[Explanation | Importance | None, str]:
    """The strongest terms of a polynomial, or of another model how much each column matters."""
    if not isinstance(fitted, Model):
        return None, "a map weighs nothing: which products matter, a model of its features says"
    with contextlib.suppress(ParameterError):
        found: Explanation = explain(fitted, _TERMS)
        return found, ""
    if len(fitted.program.prepare.reads) > _MOST_COLUMNS or sample.count < 2:
        return None, "of so many columns sqlkrp explain MODEL --db DB --table NAME says it"
    session, model = sample.session, decided(fitted)
    query, _ = query_of(session, model, TableSource(session, sample.data), Options(), run_now=True)
    listed = f"SELECT * FROM {sample.data.relation}"
    return importance(session, query, model, listed), ""


# --- columns --------------------------------------------------------------------------------------


def _inputs(
    sample: Sample, fitted: Fitted
) -> tuple[tuple[Column, ...], tuple[tuple[str, float], ...]]:
    """What each input holds here, beside what it held where the map or model was made.

    And the columns of texts of which some are none that it reads.
    """
    prepare = fitted.twin.prepare
    session = sample.session
    source = TableSource(session, sample.whole.encoded(prepare, session.dialect))
    now = source.statistics(prepare.columns).without_gaps()
    is_known = _is_standard(fitted) & (prepare.scale > 0) & (prepare.scale != 1)
    again = {one.name for one in prepare.categories if one.is_column}
    means = dict(zip(prepare.columns, now.mean.tolist(), strict=True))
    unread = tuple(_unread(prepare.categories, means)) if _reads_all(fitted) else ()
    return tuple(_columns(prepare, now, is_known, again, sample.n_rows)), unread


def _reads_all(fitted: Fitted) -> bool:
    """Whether there is an indicator for each text; encoders of others may drop one on purpose."""
    return isinstance(fitted, FeatureMap) or bool(fitted.training)


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


# --- the SQL --------------------------------------------------------------------------------------


def _cost(sample: Sample, fitted: Fitted, wanted: Wanted, spent: Spent | None) -> Cost:
    """What its statement takes, and how long it took."""
    dialect = sample.session.dialect
    found = preflight_of(fitted, dialect=dialect.name)
    work = fitted.program.cost
    nothing = Cost(dialect.name, "", "", work.additions, work.products, (), None, None)
    if isinstance(found, str):
        return replace(nothing, problem=found)
    work = FORMS[found.form].cost(fitted.program, found.plan)
    problem = None
    if wanted.timed and spent is None:
        try:
            spent = _spent(sample, fitted)
        except LimitError as bad:
            problem = str(bad)
    return replace(
        nothing,
        form=found.form,
        because=found.because,
        additions=work.additions,
        products=work.products,
        sizes=_sizes_of(found),
        problem=problem,
        spent=spent if wanted.timed else None,
    )


def _sizes_of(found: Preflight) -> tuple[tuple[str, int, int | None], ...]:
    return tuple(
        (check.what, check.found, check.limit) for check in (*found.checks, *found.table_checks)
    )


def _spent(sample: Sample, fitted: Fitted) -> Spent:
    """The features of some rows as a temporary table, which takes as long as a table does."""
    session, width = sample.session, len(fitted.program.names)
    rows = min(sample.n_rows, _TIMED_ROWS, max(1, _TIMED_NUMBERS // width))
    data = few_rows(session, sample.whole, None if rows == sample.n_rows else rows)
    query, _ = query_of(session, fitted, data, Options(), run_now=True)
    query = replace(query, options=replace(query.options, keep=()))
    statement = written(session, query)
    require_room(session, statement, query, view=False)
    with contextlib.ExitStack() as soon, session.holding(statement):
        name = sample.named("timed", soon)
        started = time.perf_counter()
        session.rows(f"EXPLAIN {statement.text}", "planning features")
        planned = time.perf_counter()
        session.create_temporary(name, statement.text, "computing features")
        ended = time.perf_counter()
    planning = planned - started
    return Spent(rows, planning, max(0.0, ended - planned - planning))
