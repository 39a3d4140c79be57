"""From a map or a model and a table to what a report says, by aggregates where the rows are."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from sqlkrp.engines.asking import query_of
from sqlkrp.engines.distortion import Bench, Sample, sample_in
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
from sqlkrp.quality.measured import NoDistanceError
from sqlkrp.quality.measuring import curve_of, measured
from sqlkrp.report.agreeing import agreement_in
from sqlkrp.report.costing import cost_of
from sqlkrp.report.found import Agreement, Distances, Found, Spent, Wanted
from sqlkrp.report.holding import held_in, of_two_in
from sqlkrp.sql.options import Options
from sqlkrp.version import __version__

__all__ = ["gathered"]

# Hexagons of kernels, from the least to the largest.
_ACROSS = 26
# Of the map's own number of features, where maps of other sizes are drawn.
_SIZES = (0.25, 0.5, 1, 2)
_TERMS = 15
# To exchange the values of more columns would take longer than all else.
_MOST_COLUMNS = 300


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
        columns = fitted.training["columns"] if fitted.training else fitted.columns_
        inputs, unread = held_in(sample, fitted)
        drawn = TableSource(session, sample.data)
        check = None
        with contextlib.suppress(LimitError):
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
            columns=columns,
            others=tuple(
                one for one in sample.whole.types if one not in columns and one != wanted.label
            ),
            inputs=inputs,
            unread=unread,
            of_two=of_two_in(sample, fitted),
            distances=distances,
            without_distances=why_not,
            training=fitted.training,
            shortening=fitted.shortening if isinstance(fitted, Model) else None,
            agreement=agreement,
            cost=cost_of(sample, fitted, wanted, spent),
            terms=terms,
            without_terms=no_terms,
            verification=check,
            version=__version__,
        )


def _map_of(fitted: Fitted, given: Any) -> FeatureMap | None:
    """The map that is measured: what is reported on, or the one that a model's features are of."""
    if isinstance(fitted, FeatureMap):
        if given is not None:
            raise ParameterError(
                "map (--map-file) belongs to the report of a model, and this is one of a map: "
                "leave it out"
            )
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
        _require_none_chosen(wanted, "a model weighs the features that it has")
        return None, (
            "a model weighs features and estimates no kernel itself: give the map that it was "
            "trained with (--map-file MAP), or see what sqlkrp distortion says of that"
        )
    try:
        family = family_of(one)
    except ParameterError as bad:
        _require_none_chosen(wanted, "this one estimates no kernel")
        return None, str(bad)
    if not family.last.is_random or family.last.counted_by is None:
        _require_none_chosen(
            wanted, "this one is no random draw, which alone has any number of them"
        )
    if sample.count < 2:
        return None, "there are no two rows, between which there would be a distance"
    bench = Bench(sample, family)
    asked = replace(wanted.asked, components=())
    try:
        own = measured(family, bench, asked)
    except NoDistanceError as bad:
        return None, str(bad)
    sizes = wanted.asked.components or _sizes(own.components)
    found = replace(own, curve=_curve(family, bench, sizes, wanted, own.components))
    other = family.with_other_pool()
    if not wanted.asked.components:  # of independent entries, larger maps take most of the time
        sizes = tuple(size for size in sizes if size <= own.components)
    others = () if other is None else _curve(other[1], bench, sizes, wanted)
    pairs = None if family.kernel.is_centred else bench.binned(family.map.program, _ACROSS)
    return Distances(found, other and other[0] if others else None, others, pairs), ""


def _require_none_chosen(wanted: Wanted, why: str) -> None:
    """Raise ParameterError if other numbers of features are asked for, and there can be none."""
    if wanted.asked.components:
        raise ParameterError(
            f"components={wanted.asked.components[0]} is of maps whose number of features can be "
            f"chosen, and {why}: leave it out"
        )


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
    try:
        return agreement_in(sample, fitted, wanted.label)
    except LimitError:  # which the cost says, too
        return None, None


def _terms(sample: Sample, fitted: Fitted) -> tuple[Explanation | Importance | None, str]:
    """The strongest terms of a polynomial, or of another model how much each column matters."""
    if not isinstance(fitted, Model):
        return None, "a map weighs nothing: which products matter, a model of its features says"
    with contextlib.suppress(ParameterError):
        found: Explanation = explain(fitted, _TERMS)
        return found, ""
    if sample.count < 2:
        return None, "there are no two rows, whose values could be exchanged"
    if len(fitted.program.prepare.reads) > _MOST_COLUMNS:
        return None, "of so many columns sqlkrp explain MODEL --db DB --table NAME says it"
    session, model = sample.session, decided(fitted)
    query, _ = query_of(session, model, TableSource(session, sample.data), Options(), run_now=True)
    listed = f"SELECT * FROM {sample.data.relation} AS every"
    return importance(session, query, model, listed), ""
