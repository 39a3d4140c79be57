"""What a model says of the rows of a table, held against their labels by aggregates there."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sqlkrp.engines.asking import query_of, written
from sqlkrp.engines.cells import binned_in
from sqlkrp.engines.distortion import Sample
from sqlkrp.engines.inputs import Input
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.source import NUMERIC
from sqlkrp.models.model import Model
from sqlkrp.report.found import Agreement, Calibrated, Residuals, Spent
from sqlkrp.sql.names import number, quote
from sqlkrp.sql.options import Options
from sqlkrp.training.metrics import METRICS

__all__ = ["agreement_in"]

_SCORING, _COUNTING = "scoring the rows", "counting what was said"
# Before the names of what a model says, so that none is that of a column that is kept.
_PREFIX = "sqlkrp_says_"
_BINS = 10
# Hexagons of predictions and labels, from the least to the largest.
_ACROSS = 26
# Strips of residuals a root mean square, and how many of these are shown on each side.
_STRIPS, _SIDES = 6, 4
_SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
# More classes are no matrix that anybody reads, and their pairs are many.
_MOST_CLASSES = 200
# A label may hold other values than the model's classes, but not one for each row.
_OTHER_VALUES = 1_000


def agreement_in(sample: Sample, model: Model, label: str | None) -> tuple[Agreement, Spent]:
    """What a model says of all rows, and the seconds that it took."""
    data = sample.whole
    if label is not None:
        match_columns([label], data.types, where=data.name)
        _require_kind(model, data, label)
    scores = _Scores(sample, model, label)
    with contextlib.ExitStack() as soon:
        spent = scores.made(soon)
        found = scores.of_classes() if model.answers is not None else scores.of_numbers()
    return found, spent


def _require_kind(model: Model, data: Input, label: str) -> None:
    """Raise an error unless a column can be what the model says."""
    is_number = data.kinds[label] in NUMERIC
    if model.answers is None:
        if not is_number:
            raise ColumnError(
                f"column {label!r} of {data.name} is of type {data.types[label]}, and the model "
                "predicts numbers: name its label, or leave it out"
            )
        if len(model.program.names) > 1:
            raise ParameterError(
                f"the model makes {len(model.program.names)} predictions of a row, and a report "
                "holds one against a label: leave label out"
            )
    elif is_number == isinstance(model.answers.classes[0], str):
        wanted = "texts" if is_number else "numbers"
        raise ColumnError(
            f"column {label!r} of {data.name} is of type {data.types[label]}, and the model's "
            f"classes are {wanted}: name its label, cast it in a view, or leave it out"
        )


class _Scores:
    """What a model says of each row beside its label, as a temporary table."""

    def __init__(self, sample: Sample, model: Model, label: str | None) -> None:
        self._sample, self._session, self._label = sample, sample.session, label
        self._model = model
        answers = model.answers
        if answers is not None:
            known = [one for one in ("label", "probability") if one in answers.says]
            model = model.saying(known)
        self._asked = model.prefixed(_PREFIX)

    def made(self, drops: contextlib.ExitStack) -> Spent:
        """Make the table, which is dropped at the end of a block."""
        keep = () if self._label is None else (self._label,)
        session = self._session
        query, _ = query_of(
            session, self._asked, self._sample.whole, Options(keep=keep), run_now=True
        )
        statement = written(session, query)
        name = self._sample.named("scores", drops)
        with session.holding(statement):
            started = time.perf_counter()
            session.rows(f"EXPLAIN {statement.text}", "planning the scores")
            planned = time.perf_counter()
            session.create_temporary(name, statement.text, _SCORING)
            ended = time.perf_counter()
        session.restore_names(("temp", name), statement.columns, view=False)
        self._table = quote(name, session.dialect)
        self._said = [quote(one, session.dialect) for one in statement.columns[statement.n_kept :]]
        planning = planned - started
        return Spent(self._sample.n_rows, planning, max(0.0, ended - planned - planning))

    @property
    def _true(self) -> str:
        assert self._label is not None
        return quote(self._label, self._session.dialect)

    def _rows(self, select: str) -> list[tuple[Any, ...]]:
        return self._session.rows(select, _COUNTING)

    # --- classes ----------------------------------------------------------------------------------

    def of_classes(self) -> Agreement:
        """How often each class is said, and is so."""
        answers = self._model.answers
        assert answers is not None
        place = _places(answers.classes)
        names = tuple(map(str, answers.classes))
        label = self._said[0]
        counts = np.zeros(len(names))
        for said, count in self._rows(
            f"SELECT {label}, COUNT(*) FROM {self._table} GROUP BY {label}"
        ):
            if said is not None:
                counts[place(said)] += count
        shares = counts / max(1.0, counts.sum())
        found = Agreement(
            self._sample.n_rows,
            tuple(zip(names, shares.tolist(), strict=True)),
            self._classes_before(names),
            classes=names,
        )
        if self._label is None or len(names) > _MOST_CLASSES:
            return found
        return self._confused(found, place)

    def _classes_before(self, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
        judged = _judged(self._model)
        if judged is None or "confusion" not in judged:
            return ()
        counts = np.array(judged["confusion"], dtype="f8").sum(axis=0)
        return tuple(zip(names, (counts / counts.sum()).tolist(), strict=True))

    def _confused(self, found: Agreement, place: Callable[[Any], int | None]) -> Agreement:
        """With the classes that are so."""
        size, label = len(found.classes), self._said[0]
        self._require_few_values(size)
        confusion, unknown, unlabelled = np.zeros((size, size)), 0, 0
        for true, said, count in self._rows(
            f"SELECT {self._true}, {label}, COUNT(*) FROM {self._table} "
            f"GROUP BY {self._true}, {label}"
        ):
            row = None if true is None else place(true)
            if true is None or true != true:
                unlabelled += int(count)
            elif row is None:
                unknown += int(count)
            elif said is None:
                unlabelled += int(count)
            else:
                confusion[row, place(said)] += count
        if not confusion.sum():
            raise ColumnError(
                f"column {self._label!r} of {self._sample.whole.name} holds no class of the model, "
                f"such as {', '.join(found.classes[:5])}: name its label, or leave it out"
            )
        return replace(
            found,
            unknown=unknown,
            unlabelled=unlabelled,
            confusion=tuple(tuple(map(int, row)) for row in confusion.tolist()),
            measures=_measures_of(confusion),
            calibrated=self._calibrated(place),
        )

    def _require_few_values(self, n_classes: int) -> None:
        """Raise ColumnError where a column holds so many values that it can be no label."""
        most = 2 * n_classes + _OTHER_VALUES
        values = f"SELECT DISTINCT {self._true} AS v FROM {self._table} LIMIT {most + 1}"
        ((count,),) = self._rows(f"SELECT COUNT(*) FROM ({values}) AS different")
        if count > most:
            raise ColumnError(
                f"column {self._label!r} of {self._sample.whole.name} has more than {most:,} "
                f"values, and the model knows {n_classes:,} classes: name its label, or leave it "
                "out"
            )

    def _calibrated(self, place: Callable[[Any], int | None]) -> tuple[Calibrated, ...]:
        """Of two classes how often the second is so where it is probable; of more the likeliest."""
        label, *probable = self._said
        if not probable:
            return ()
        several = len(probable) > 1
        largest = self._session.dialect.greatest.format(values=", ".join(probable))
        one = largest if several else probable[0]
        said = label if several else "1"
        # A tenth; what is exactly between two may be of either.
        tenth = f"ROUND({one} * {_BINS} - 0.5)"
        rows = self._rows(
            f"SELECT tenth, true_one, said, COUNT(*), SUM(p) FROM (SELECT {tenth} AS tenth, "
            f"{self._true} AS true_one, {said} AS said, {one} AS p FROM {self._table} "
            f"WHERE {probable[0]} IS NOT NULL AND {self._true} IS NOT NULL) AS tenths "
            "GROUP BY tenth, true_one, said"
        )
        sums = np.zeros((_BINS, 3))
        for tenth_of, true, answer, count, total in rows:
            at = min(_BINS - 1, max(0, round(tenth_of)))
            is_so = place(true) == (place(answer) if several else 1)
            sums[at] += (float(total), count if is_so else 0, count)
        return tuple(
            Calibrated(total / count, so / count, int(count)) for total, so, count in sums if count
        )

    # --- numbers ----------------------------------------------------------------------------------

    def of_numbers(self) -> Agreement:
        """What predictions are, and how far labels are from them."""
        quantiles = self._quantiles(self._said[0]) if len(self._said) == 1 else ()
        judged = _judged(self._model)
        before = {} if judged is None else judged.get("predictions", {})
        found = Agreement(
            self._sample.n_rows,
            quantiles,
            tuple((f"{float(share):.0%}", float(value)) for share, value in before.items()),
        )
        return found if self._label is None else self._predicted(found)

    def _quantiles(self, column: str) -> tuple[tuple[str, float], ...]:
        ((count,),) = self._rows(f"SELECT COUNT({column}) FROM {self._table}")
        ranks = {max(1, math.ceil(share * count)): share for share in _SHARES if count}
        if not ranks:
            return ()
        rows = self._rows(
            f"SELECT place, p FROM (SELECT {column} AS p, ROW_NUMBER() OVER (ORDER BY {column}) "
            f"AS place FROM {self._table} WHERE {column} IS NOT NULL) AS ranked "
            f"WHERE place IN ({', '.join(map(str, ranks))}) ORDER BY place ASC"
        )
        return tuple((f"{ranks[int(place)]:.0%}", float(value)) for place, value in rows)

    def _predicted(self, found: Agreement) -> Agreement:
        assert self._label is not None
        session, dialect = self._session, self._session.dialect
        value, is_there = self._sample.whole.finite_value(dialect, self._label, "float64")
        points = (
            f"(SELECT {self._said[0]} AS x, {value} AS y FROM {self._table} "
            f"WHERE {self._said[0]} IS NOT NULL AND {is_there})"
        )
        double = dialect.float_types["float64"]
        points = f"(SELECT CAST(x AS {double}) AS x, CAST(y AS {double}) AS y FROM {points} AS q)"
        pairs = binned_in(session, points, _ACROSS, _COUNTING)
        if pairs is None:
            raise ColumnError(
                f"column {self._label!r} of {self._sample.whole.name} has no value where the model "
                "says one: name its label, or leave it out"
            )
        ((mean, square, size, off),) = self._rows(
            "SELECT AVG(y), AVG((y - x) * (y - x)), AVG(ABS(y - x)), AVG(y - x) "
            f"FROM {points} AS points"
        )
        middle = number(float(mean), "float64", dialect)
        ((spread,),) = self._rows(
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
            unlabelled=self._sample.n_rows - pairs.count,
            measures=tuple(measures.items()),
            pairs=pairs,
            residuals=self._residuals(points, math.sqrt(square)),
        )

    def _residuals(self, points: str, root: float) -> Residuals | None:
        if not root:
            return None
        width = root / _STRIPS
        factor = number(1 / width, "float64", self._session.dialect)
        edge = _STRIPS * _SIDES
        # What is far off is one strip on each side, so that there are never more than a few.
        share = f"(y - x) * {factor}"
        held = f"CASE WHEN {share} > {edge} THEN {edge + 1} WHEN {share} < -{edge} THEN -{edge + 1}"
        rows = self._rows(
            f"SELECT strip, COUNT(*) FROM (SELECT {held} ELSE ROUND({share}) END AS strip "
            f"FROM {points} AS points) AS strips GROUP BY strip ORDER BY strip ASC"
        )
        counts = [(round(strip), int(count)) for strip, count in rows]
        inside = tuple(one for one in counts if abs(one[0]) <= edge)
        return Residuals(
            width, inside, sum(count for _, count in counts) - sum(n for _, n in inside)
        )


def _judged(model: Model) -> Mapping[str, Any] | None:
    """What rows that it had not seen said of a model, if that was kept."""
    if not model.training:
        return None
    found: Mapping[str, Any] | None = model.training["held_out"] or model.training["in_folds"]
    return found


def _places(classes: Sequence[Any]) -> Callable[[Any], int | None]:
    """From what an engine has of a class to its place; None of what is no class."""

    def key(value: Any) -> Any:
        return value if isinstance(value, str) else float(value)

    known = {key(one): place for place, one in enumerate(classes)}

    def place(value: Any) -> int | None:
        with contextlib.suppress(ValueError):  # a text among numbers, where an engine lets it be
            return known.get(key(value))
        return None

    return place


def _measures_of(confusion: Any) -> tuple[tuple[str, float], ...]:
    """Accuracy and its like, of how many rows of each class are said to be of each."""
    true, said = np.nonzero(confusion)
    weights = confusion[true, said]
    return tuple(
        (name, METRICS[name].value(true, said, weights))
        for name in ("accuracy", "balanced-accuracy", "f1-macro")
    )
