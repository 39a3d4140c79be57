"""Of the classes that a model says: how often each is said, and how often that is so."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sqlkrp.errors import ColumnError
from sqlkrp.maps.advice import counted
from sqlkrp.report.found import Agreement, Calibrated
from sqlkrp.report.scored import Scores
from sqlkrp.report.text import shortened
from sqlkrp.training.metrics import METRICS

__all__ = ["of_classes"]

_BINS = 10
# More classes are no matrix that anybody reads, and their pairs are many.
_MOST_CLASSES = 200
# A label may hold other values than the model's classes, but not one for each row.
_OTHER_VALUES = 1_000
# Classes that an error names.
_NAMED = 5

#: From what an engine has of a class to its place; None of what is no class.
Place = Callable[[Any], int | None]


def of_classes(scores: Scores) -> Agreement:
    """How often each class is said, and is so."""
    answers = scores.model.answers
    assert answers is not None
    place = _places(answers.classes)
    names = tuple(map(str, answers.classes))
    label = scores.said[0]
    counts = np.zeros(len(names))
    for said, count in scores.rows(
        f"SELECT {label}, COUNT(*) FROM {scores.table} GROUP BY {label}"
    ):
        at = None if said is None else place(said)
        if at is not None:
            counts[at] += count
    shares = counts / max(1.0, counts.sum())
    found = Agreement(
        scores.n_rows,
        tuple(zip(names, shares.tolist(), strict=True)),
        _classes_before(scores, names),
        classes=names,
    )
    if scores.label is None or len(names) > _MOST_CLASSES:
        return found
    return _confused(scores, found, place)


def _classes_before(scores: Scores, names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    judged = scores.judged
    if "confusion" not in judged:
        return ()
    counts = np.array(judged["confusion"], dtype="f8").sum(axis=0)
    return tuple(zip(names, (counts / counts.sum()).tolist(), strict=True))


def _confused(scores: Scores, found: Agreement, place: Place) -> Agreement:
    """With the classes that are so."""
    size, label = len(found.classes), scores.said[0]
    _require_few_values(scores, size)
    confusion, unknown, unlabelled = np.zeros((size, size)), 0, 0
    for true, said, count in scores.rows(
        f"SELECT {scores.true}, {label}, COUNT(*) FROM {scores.table} "
        f"GROUP BY {scores.true}, {label}"
    ):
        row, column = (None if one is None else place(one) for one in (true, said))
        if true is None or true != true or column is None:
            unlabelled += int(count)
        elif row is None:
            unknown += int(count)
        else:
            confusion[row, column] += count
    known = int(confusion.sum())
    if unknown > known or not known:
        raise ColumnError(
            f"column {scores.label!r} of {scores.source.name} holds a class of the model in "
            f"{known:,} of {counted(known + unknown, 'row')} that have a label; its classes are "
            f"{_listed(found.classes)}: name its label, or leave it out"
        )
    return replace(
        found,
        unknown=unknown,
        unlabelled=unlabelled,
        confusion=tuple(tuple(map(int, row)) for row in confusion.tolist()),
        measures=_measures_of(confusion),
        calibrated=_calibrated(scores, place),
    )


def _listed(classes: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    told = ", ".join(shortened(one, 40) for one in classes[:_NAMED])
    return told + (f" and {len(classes) - _NAMED:,} more" if len(classes) > _NAMED else "")


def _require_few_values(scores: Scores, n_classes: int) -> None:
    """Raise ColumnError where a column holds so many values that it can be no label."""
    most = 2 * n_classes + _OTHER_VALUES
    values = f"SELECT DISTINCT {scores.true} AS v FROM {scores.table} LIMIT {most + 1}"
    ((count,),) = scores.rows(f"SELECT COUNT(*) FROM ({values}) AS different")
    if count > most:
        raise ColumnError(
            f"column {scores.label!r} of {scores.source.name} has more than {most:,} "
            f"values, and the model knows {n_classes:,} classes: name its label, or leave it "
            "out"
        )


def _calibrated(scores: Scores, place: Place) -> tuple[Calibrated, ...]:
    """Of two classes how often the second is so where it is probable; of more the likeliest."""
    label, *probable = scores.said
    if not probable:
        return ()
    several = len(probable) > 1
    largest = scores.session.dialect.greatest.format(values=", ".join(probable))
    one = largest if several else probable[0]
    said = label if several else "1"
    # A tenth; what is exactly between two may be of either.
    tenth = f"ROUND({one} * {_BINS} - 0.5)"
    rows = scores.rows(
        f"SELECT tenth, true_one, said, COUNT(*), SUM(p) FROM (SELECT {tenth} AS tenth, "
        f"{scores.true} AS true_one, {said} AS said, {one} AS p FROM {scores.table} "
        f"WHERE {probable[0]} IS NOT NULL AND {scores.true} IS NOT NULL) AS tenths "
        "GROUP BY tenth, true_one, said"
    )
    sums = np.zeros((_BINS, 3))
    for tenth_of, true, answer, count, total in rows:
        is_of = place(true)
        # Of a class that the model does not know, or of features that leave the range of numbers.
        if is_of is None or math.isnan(tenth_of):
            continue
        at = min(_BINS - 1, max(0, round(tenth_of)))
        is_so = is_of == (place(answer) if several else 1)
        sums[at] += (float(total), count if is_so else 0, count)
    return tuple(
        Calibrated(total / count, so / count, int(count)) for total, so, count in sums if count
    )


def _places(classes: Sequence[Any]) -> Place:
    """From what an engine has of a class to its place; None of what is no class."""

    def key(value: Any) -> Any:
        # Of whole numbers there are more than floats tell apart.
        return value if isinstance(value, (str, int)) else float(value)

    known = {key(one): place for place, one in enumerate(classes)}

    def place(value: Any) -> int | None:
        with contextlib.suppress(TypeError, ValueError):  # a date, a list: no number, and no text
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
