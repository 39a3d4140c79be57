"""The stages at the end of a model over columns: shares, votes, and what is said of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.levels import Levels
from sqlkrp.sql.names import balanced, label
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import Answers, Bounds, Shares, Votes

__all__ = ["answers", "bounds", "shares", "votes"]

# Arguments of one call that finds the largest; some engines take no more than a hundred.
_ARGUMENTS = 50


def bounds(levels: Levels, stage: Bounds, position: int, values: Vector) -> Vector:
    """Values held between bounds."""
    numbers = zip(values, *(_numbers(levels, one) for one in (stage.low, stage.high)), strict=True)
    return Vector(levels.held(value, least, most) for value, least, most in numbers)


def shares(levels: Levels, stage: Shares, position: int, values: Vector) -> Vector:
    """Shares of the sums of groups."""
    if stage.exponentials:
        _, values = _exponentials(levels, values, stage.size)
    return _shares(levels, values, stage.size)


def votes(levels: Levels, stage: Votes, position: int, values: Vector) -> Vector:
    """Votes for the first of the largest of a group."""
    largest = [_largest(group, levels.dialect) for group in _groups(values, stage.size)]
    named, tops = _with(levels, values, "t", largest)
    items = []
    for group, top in zip(_groups(named, stage.size), tops, strict=True):
        for place, value in enumerate(group):
            before = [f"{other} < {top}" for other in group[:place]]
            test = balanced([f"{value} = {top}", *before], " AND ")
            items.append(f"CASE WHEN {test} THEN {levels.literal(1)} ELSE {levels.literal(0)} END")
    return Vector(map(levels.if_complete, items))


def answers(levels: Levels, stage: Answers, position: int, values: Vector) -> Vector:
    """What is said of decisions."""
    known: dict[str, Sequence[str]] = {"decision": values}
    if _needs_probabilities(stage):
        values, known["probability"] = _probabilities(levels, stage, values)
        known["decision"] = values
    if "label" in stage.says:
        known["label"] = [levels.if_complete(_label(levels, stage, values, known))]
    return Vector(item for one in stage.says for item in known[one])


def _needs_probabilities(stage: Answers) -> bool:
    is_cut = stage.threshold is not None and stage.link != "none"
    return "probability" in stage.says or ("label" in stage.says and is_cut)


def _probabilities(levels: Levels, stage: Answers, values: Vector) -> tuple[Vector, Vector]:
    """The decisions and the probabilities, each with a name."""
    count = len(values)
    if stage.link == "given":
        return values, values
    if stage.link == "softmax":
        values, found = _exponentials(levels, values, count)
    else:
        values, found = _with(levels, values, "f", _functions(levels, "sigmoid", values))
    if stage.link == "sigmoid":
        return values, found
    both = _shares(levels, Vector([*values, *found], is_named=True), count, carried=count)
    return Vector(both[:count], is_named=True), Vector(both[count:])


def _exponentials(levels: Levels, values: Vector, size: int) -> tuple[Vector, Vector]:
    """Values, and their exponentials less the largest of their group, so that none is too large."""
    largest = [_largest(group, levels.dialect) for group in _groups(values, size)]
    values, tops = _with(levels, values, "t", largest)
    lower = [f"({value} - {tops[place // size]})" for place, value in enumerate(values)]
    return _with(levels, values, "f", _functions(levels, "exp", lower))


def _functions(levels: Levels, function: str, values: Sequence[str]) -> list[str]:
    dtype, dialect = levels.job.dtype, levels.dialect
    return [levels.cast(dialect.function(function, value, dtype)) for value in values]


def _shares(levels: Levels, values: Vector, size: int, carried: int = 0) -> Vector:
    """The shares of groups of values; so many in front of these only go along."""
    totals = [balanced(group, " + ") for group in _groups(values[carried:], size)]
    named, sums = _with(levels, values, "t", totals)
    same = levels.literal(1 / size)
    items = [
        f"CASE WHEN {total} = 0 THEN {same} ELSE {value} / {total} END"
        for group, total in zip(_groups(named[carried:], size), sums, strict=True)
        for value in group
    ]
    return Vector([*named[:carried], *map(levels.if_complete, items)])


def _label(levels: Levels, stage: Answers, values: Vector, known: dict[str, Sequence[str]]) -> str:
    """The label of a row that has one."""
    labels = [label(one, levels.dialect) for one in stage.classes]
    if len(labels) > 2:
        tests = [
            balanced([f"{value} >= {other}" for other in values[place + 1 :]], " AND ")
            for place, value in enumerate(values[:-1])
        ]
        cases = zip(tests, labels, strict=False)
        written = " ".join(f"WHEN {test} THEN {one}" for test, one in cases)
        return f"CASE {written} ELSE {labels[-1]} END"
    if stage.threshold is None:
        test = f"{values[0]} > {levels.literal(stage.middle)}"
    else:
        looked_at = known.get("probability", values)[0]
        test = f"{looked_at} >= {levels.literal(_numbers(levels, np.array(stage.threshold)))}"
    return f"CASE WHEN {test} THEN {labels[1]} ELSE {labels[0]} END"


def _with(
    levels: Levels, values: Vector, letter: str, more: Sequence[str]
) -> tuple[Vector, Vector]:
    """Values, and more of them that get names."""
    items = {f"v{i}": value for i, value in enumerate(values)}
    items |= {f"{letter}{i}": value for i, value in enumerate(more)}
    named = list(levels.level(items).values())
    return Vector(named[: len(values)], is_named=True), Vector(named[len(values) :], is_named=True)


def _groups(values: Sequence[str], size: int) -> list[Sequence[str]]:
    return [values[first : first + size] for first in range(0, len(values), size)]


def _largest(values: Sequence[str], dialect: Dialect) -> str:
    """The largest of some values, in one expression."""
    while len(values) > 1:
        values = [
            dialect.greatest.format(values=", ".join(group)) if len(group) > 1 else group[0]
            for group in _groups(values, _ARGUMENTS)
        ]
    return values[0]


def _numbers(levels: Levels, array: Any) -> Any:
    """Numbers as the features' type has them."""
    return array.astype(levels.job.dtype).tolist()
