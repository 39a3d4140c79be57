"""Models of what was trained: a pipeline taken apart into columns, a map, and what weighs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.feature_map import FeatureMap, require_map
from sqlkrp.maps.parameters import copied
from sqlkrp.models.estimators import (
    ESTIMATORS,
    Decisions,
    behind,
    read_estimator,
    votes_of,
    with_inverse,
)
from sqlkrp.models.fronts import Value, first_stage, front_of, plain_stage
from sqlkrp.models.model import PREDICTION, Model, answer_names
from sqlkrp.models.transformers import name_of
from sqlkrp.sql.options import name_list
from sqlkrp.stages import Answers, Bounds, Prepare, Program, Stage

__all__ = ["model"]


def model(
    estimator: Any = None,
    map: FeatureMap | None = None,
    *,
    columns: Iterable[str] | None = None,
    coef: Any = None,
    intercept: Any = 0.0,
    classes: Any = None,
    outputs: Iterable[str] | None = None,
    threshold: float | None = None,
    bound: tuple[float, float] | None = None,
) -> Model:
    """A model of what was trained, to be scored where the data lives.

    ``estimator`` is a linear one of scikit-learn's, trained on the features of ``map``, or a
    pipeline that holds the map; or plain numbers (``coef``, ``intercept``, and the ``classes`` of a
    classifier). It is read by its attributes. A list of estimators is one for each member of an
    :class:`Ensemble`, which vote. ``columns`` names the columns of a pipeline that was fitted to an
    array. ``outputs`` is what its SQL says (``label``, ``probability``, ``decision``),
    ``threshold`` cuts two classes elsewhere than at the middle, and ``bound`` holds the predictions
    of a regression between two numbers, such as the least and the largest label in training.

    >>> import sqlkrp
    >>> krp = sqlkrp.KRP(2, 2, random_state=0).fit(["height", "width"])
    >>> sqlkrp.model(map=krp, coef=[0.5, -1.0], intercept=3.0)
    <Model weights on KRP(degree=2, n_components=2, pool='hadamard', random_state=0)>
    """
    named = None if columns is None else _in_their_order(columns)
    parts = _parts(estimator, map, coef, intercept, classes)
    program, names, after = _program(parts, named)
    if bound is not None:
        program = _bounded(program, bound)
    made = Model(parts.name, _as_drawn(parts.map), names, after, _default_says(program))
    source = parts.map
    made.become(
        program,
        0 if source is None else source.seed_,
        {} if source is None else dict(source.left_out_),
    )
    if threshold is not None:
        made = made.cut_at(threshold)
    return made if outputs is None else made.saying(outputs)


def _in_their_order(columns: Iterable[str]) -> list[str]:
    if not isinstance(columns, (str, list, tuple, np.ndarray)):
        raise ParameterError("columns have an order: give a list of their names")
    return name_list("columns", columns)


@dataclass(frozen=True)
class _Parts:
    """What was trained, taken apart."""

    name: str
    before: Sequence[Any]
    """The steps in front of the map, or of the model, where there is none."""
    map: FeatureMap | None
    decisions: Decisions
    columns: tuple[str, ...] | None
    """The names of the columns that it saw."""


def _as_drawn(one: FeatureMap | None) -> FeatureMap | None:
    """A map of its own with the parameters that another was drawn with, whatever becomes of it."""
    if one is None:
        return None
    drawn = {name: copied(value) for name, value in one.parameters_.items()}
    made: FeatureMap = type(one)(**drawn)
    return made


def _parts(estimator: Any, map: Any, coef: Any, intercept: Any, classes: Any) -> _Parts:
    if map is not None:
        require_map("map", map)
    if coef is not None:
        if estimator is not None:
            raise ParameterError("an estimator and coef are both given: give one")
        if map is None:
            raise ParameterError("coef weighs the features of a map: give it (map=...)")
        return _Parts("weights", (), map, _given(coef, intercept, classes), None)
    if estimator is None:
        raise ParameterError("nothing that was trained is given: an estimator, or coef=")
    if classes is not None:
        raise ParameterError("classes belong to coef: an estimator knows its own")
    if isinstance(estimator, (list, tuple)):
        return _members(list(estimator), map)
    if map is not None:
        return _Parts(name_of(_last(estimator)), (), map, read_estimator(estimator), None)
    return _taken_apart(estimator)


def _given(coef: Any, intercept: Any, classes: Any) -> Decisions:
    """Decisions of plain numbers."""

    class weights:  # noqa: N801 - what messages call it
        coef_, intercept_ = coef, intercept

    if classes is None:
        return ESTIMATORS["LinearRegression"](weights())
    weights.classes_ = classes  # type: ignore[attr-defined]
    return ESTIMATORS["LinearSVC"](weights())


def _members(members: list[Any], map: Any) -> _Parts:
    """One estimator for each member of an ensemble, which vote."""
    count = getattr(map, "n_members", None)
    if count != len(members):
        raise ParameterError(
            f"{counted(len(members), 'estimator')} in a list vote for the members of an Ensemble, "
            f"one each, and map is {map!r}: give as many as it has members"
        )
    read = [read_estimator(one) for one in members]
    size = len(map.program.names) // len(members)
    placed = []
    for place, one in enumerate(read):
        _require_count(one, size, f"a member of {type(map).__name__}")
        weights = np.zeros((len(one.weights), size * len(members)))
        weights[:, place * size : (place + 1) * size] = one.weights
        placed.append(replace(one, weights=weights, features=None))
    decisions = votes_of(placed, np.ones(len(placed)))
    return _Parts(f"{len(members)} votes of {name_of(_last(members[0]))}", (), map, decisions, None)


def _last(estimator: Any) -> Any:
    """The estimator at the end of pipelines and searches."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        else:
            return estimator


def _taken_apart(estimator: Any) -> _Parts:
    """A pipeline as what is before its map, the map, and what is behind."""
    if hasattr(estimator, "best_estimator_"):
        return _taken_apart(estimator.best_estimator_)
    if hasattr(estimator, "regressor_"):
        inner = _taken_apart(estimator.regressor_)
        decisions = with_inverse(estimator, inner.decisions)
        return replace(inner, decisions=decisions, columns=inner.columns or _seen(estimator))
    if not hasattr(estimator, "steps"):
        read = read_estimator(estimator)
        return _Parts(name_of(estimator), (), None, read, _seen(estimator))
    *before, last = _flat(estimator)
    found = _taken_apart(last)
    maps = [place for place, step in enumerate(before) if isinstance(step, FeatureMap)]
    if len(maps) + (found.map is not None) > 1:
        raise ParameterError("a pipeline of several maps is not read: chain them (sqlkrp.chain)")
    columns = _seen(estimator) if before else _seen(estimator) or found.columns
    if not maps:
        return replace(found, before=(*before, *found.before), columns=columns)
    decisions = found.decisions
    for step in reversed([*before[maps[0] + 1 :], *found.before]):
        decisions = behind(step, decisions)
    return _Parts(found.name, before[: maps[0]], before[maps[0]], decisions, columns)


def _flat(pipeline: Any) -> list[Any]:
    """The steps of a pipeline, and of pipelines in it that hold a map."""
    found: list[Any] = []
    for _, step in pipeline.steps:
        inner = _flat(step) if hasattr(step, "steps") else [step]
        found += inner if any(isinstance(one, FeatureMap) for one in inner) else [step]
    return found


def _seen(estimator: Any) -> tuple[str, ...] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(one) for one in names)


# --- the program --------------------------------------------------------------------------------


def _program(parts: _Parts, named: Sequence[str] | None) -> tuple[Program, tuple[str, ...], int]:
    """The program of all that is said, the names of what is weighed, and the stages before."""
    stages: list[Stage]
    if parts.map is None:
        front = _front(parts, named, parts.decisions.weights.shape[1])
        stages, names = [plain_stage(front)], _names(front)
    else:
        program = parts.map.program
        stages, names = list(program.stages), list(program.names)
        if parts.before or named is not None or parts.columns is not None:
            stages[0] = _composed(parts, named, program.prepare)
    decisions = parts.decisions
    if parts.map is None and parts.before:  # they give other names, in their order
        decisions = replace(decisions, features=None)
    after, decisions = len(stages), _in_order(decisions, names)
    stages += decisions.stages()
    last = stages[-1]
    outputs = answer_names(last) if isinstance(last, Answers) else _predictions(last.n_outputs)
    return Program(tuple(stages), outputs), tuple(names), after


def _front(parts: _Parts, named: Sequence[str] | None, count: int) -> tuple[Value, ...]:
    columns: Sequence[str] | None = parts.columns
    if columns is None and not parts.before:
        columns = parts.decisions.features
    if columns is not None and named is not None and list(named) != list(columns):
        raise ParameterError(
            f"what was trained saw columns of the names {', '.join(columns)}: leave out columns="
        )
    columns = columns or named
    if columns is None:
        first = next(iter(parts.before), None)
        seen = getattr(first, "n_features_in_", count)
        raise ParameterError(
            f"what was trained saw an array, and no names of its {seen} columns: name them in "
            "that order (columns=[...])"
        )
    return front_of(parts.before, columns)


def _composed(parts: _Parts, named: Sequence[str] | None, prepare: Prepare) -> Prepare:
    """The first stage of a map behind the steps before it."""
    if named is None and parts.columns is None and not parts.before:
        return prepare
    front = _front(parts, named, len(prepare.columns))
    return first_stage(prepare, [front[place] for place in _read_by(prepare, front, parts)])


def _names(front: Sequence[Value]) -> list[str]:
    """What the values before a map are called; those of categories as scikit-learn calls them."""
    return [
        one.column if one.category is None else f"{one.column}_{one.category.value}"
        for one in front
    ]


def _read_by(prepare: Prepare, front: Sequence[Value], parts: _Parts) -> list[int]:
    """Which of the values before a map it reads: by their places, if it was fitted to an array."""
    count = len(prepare.columns)
    numbered = prepare.columns == tuple(f"x{i}" for i in range(count))
    names = _names_told(parts, front)
    there = set(prepare.columns) <= set(names)
    by_name = [names.index(name) for name in prepare.columns] if there else []
    by_place = list(range(count)) if numbered and count == len(front) else []
    if not (by_name or by_place):
        missing = next(name for name in prepare.columns if name not in names)
        raise ColumnError(
            f"the map reads a column {missing!r}, and the steps before it give {', '.join(names)}: "
            "name the columns that the pipeline was fitted to (columns=[...])"
        )
    if by_name and by_place and by_name != by_place:
        if not parts.before and parts.columns is None:
            return by_place
        if not parts.before:
            return by_name
        raise ColumnError(
            "columns called x0, x1, ... in another order cannot be told from an array's places: "
            "rename them"
        )
    return by_name or by_place


def _names_told(parts: _Parts, front: Sequence[Value]) -> list[str]:
    """What a map saw as names, if the steps before it give DataFrames."""
    if parts.before and hasattr(parts.before[-1], "get_feature_names_out"):
        with contextlib.suppress(ValueError):  # of names that would not be different
            return list(parts.before[-1].get_feature_names_out())
    return _names(front)


def _in_order(decisions: Decisions, names: Sequence[str]) -> Decisions:
    """Decisions with a weight for each feature, in the order of these."""
    seen = decisions.features
    if seen is None or list(seen) == list(names):
        _require_count(decisions, len(names), "the map")
        return decisions
    unknown = [name for name in seen if name not in set(names)]
    if unknown:
        raise ColumnError(
            f"the model was trained on {unknown[0]!r}, which the map does not give: train it on "
            f"{names[0]} ... {names[-1]} alone"
        )
    weights = np.zeros((len(decisions.weights), len(names)))
    places = {name: place for place, name in enumerate(names)}
    weights[:, [places[name] for name in seen]] = decisions.weights
    return replace(decisions, weights=weights, features=None)


def _require_count(decisions: Decisions, count: int, what: str) -> None:
    found = decisions.weights.shape[1]
    if found != count:
        raise ParameterError(
            f"the model has {found} coefficients a decision, and {what} gives "
            f"{counted(count, 'feature')}: give the map that it was trained on"
        )


def _bounded(program: Program, bound: Any) -> Program:
    last = program.stages[-1]
    if isinstance(last, Answers):
        raise ParameterError("bound holds the predictions of a regression: leave it out")
    try:
        low, high = (np.full(len(program.names), float(one)) for one in bound)
    except (TypeError, ValueError):
        low, high = np.ones(1), np.zeros(1)
    if not (np.isfinite([low, high]).all() and (low <= high).all()):
        raise ParameterError(
            f"bound={bound!r} is not allowed: give the least and the largest prediction"
        )
    return program.then([Bounds(len(program.names), low, high)], program.names)


def _predictions(count: int) -> tuple[str, ...]:
    return (PREDICTION,) if count == 1 else tuple(f"{PREDICTION}_{i}" for i in range(count))


def _default_says(program: Program) -> tuple[str, ...]:
    last = program.stages[-1]
    if not isinstance(last, Answers):
        return (PREDICTION,)
    return last.says[:2]
