"""Models of what was trained: a pipeline taken apart into columns, a map, and what weighs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.feature_map import FeatureMap, require_map
from sqlkrp.models.decisions import Decisions, of_inputs, votes_of
from sqlkrp.models.estimators import ESTIMATORS, read_estimator
from sqlkrp.models.fronts import front_of, is_numbered
from sqlkrp.models.model import PREDICTION, Model, answer_names
from sqlkrp.models.regressions import with_inverse
from sqlkrp.models.together import made_of
from sqlkrp.models.transformers import name_of
from sqlkrp.models.values import Feature, Item, Value
from sqlkrp.sql.options import name_list
from sqlkrp.stages import Answers, Bounds, Program

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
    items = _items(parts, named)
    program, names, after = _program(parts.decisions, items)
    if bound is not None:
        program = _bounded(program, bound)
    source = _only_map(items)
    name = parts.name if source else f"{parts.name}{_told_beside(items)}"
    made = Model(name, source and source.as_drawn(), names, after, _default_says(program))
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
    steps: tuple[Any, ...]
    """The steps in front of the model, maps among them."""
    decisions: Decisions
    columns: tuple[str, ...] | None
    """The names of the columns that it saw."""


def _parts(estimator: Any, map: Any, coef: Any, intercept: Any, classes: Any) -> _Parts:
    if map is not None:
        require_map("map", map)
    if coef is not None:
        if estimator is not None:
            raise ParameterError("an estimator and coef are both given: give one")
        if map is None:
            raise ParameterError("coef weighs the features of a map: give it (map=...)")
        return _Parts("weights", (map,), _given(coef, intercept, classes), None)
    if estimator is None:
        raise ParameterError("nothing that was trained is given: an estimator, or coef=")
    if classes is not None:
        raise ParameterError("classes belong to coef: an estimator knows its own")
    if isinstance(estimator, (list, tuple)):
        return _members(list(estimator), map)
    if map is not None:
        return _Parts(name_of(_last(estimator)), (map,), read_estimator(estimator), None)
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
    name = f"{len(members)} votes of {name_of(_last(members[0]))}"
    return _Parts(name, (map,), decisions, None)


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
    """A pipeline as its steps, and what is behind them."""
    if hasattr(estimator, "best_estimator_"):
        return _taken_apart(estimator.best_estimator_)
    if hasattr(estimator, "regressor_"):
        inner = _taken_apart(estimator.regressor_)
        decisions = with_inverse(estimator, inner.decisions)
        return replace(inner, decisions=decisions, columns=inner.columns or _seen(estimator))
    if not hasattr(estimator, "steps"):
        read = read_estimator(estimator)
        return _Parts(name_of(estimator), (), read, _seen(estimator))
    *before, (_, last) = estimator.steps
    found = _taken_apart(last)
    steps = (*(step for _, step in before), *found.steps)
    columns = _seen(estimator) if before else _seen(estimator) or found.columns
    # What it weighs are all items of the steps, in their order.
    decisions = replace(found.decisions, features=None) if steps else found.decisions
    return replace(found, steps=steps, decisions=decisions, columns=columns)


def _seen(estimator: Any) -> tuple[str, ...] | None:
    """The names of the columns that something saw; of what stands side by side, of most."""
    if hasattr(estimator, "steps"):
        return _seen(estimator.steps[0][1])
    if hasattr(estimator, "transformer_list"):
        seen = [_seen(part) or () for _, part in estimator.transformer_list]
        return max(seen, key=len) or None
    if isinstance(estimator, FeatureMap) and is_numbered(estimator.program.prepare):
        return None  # it saw an array, or what could be one
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(one) for one in names)


# --- the program --------------------------------------------------------------------------------


def _program(decisions: Decisions, items: Sequence[Item]) -> tuple[Program, tuple[str, ...], int]:
    """The program of all that is said, the names of what is weighed, and the stages before."""
    made = made_of(items)
    if decisions.features is None:
        _require_count(decisions, len(items), "the map")
        decisions = of_inputs(decisions, made.items)
    decisions = _in_order(decisions, made.names)
    stages = [*made.stages, *decisions.stages()]
    last = stages[-1]
    outputs = answer_names(last) if isinstance(last, Answers) else _predictions(last.n_outputs)
    return Program(tuple(stages), outputs), made.names, len(made.stages)


def _items(parts: _Parts, named: Sequence[str] | None) -> tuple[Item, ...]:
    """What is weighed, as made of the columns that were seen, or that are named."""
    seen = parts.columns
    if seen is None and not parts.steps:
        seen = parts.decisions.features
    first = next(iter(parts.steps), None)
    if seen is None and named is None and isinstance(first, FeatureMap):
        seen = first.program.prepare.columns
    if seen is not None and named is not None and list(named) != list(seen):
        raise ParameterError(
            f"what was trained saw columns of the names {', '.join(seen)}: leave out columns="
        )
    if seen is None and named is None:
        count = getattr(first, "n_features_in_", parts.decisions.weights.shape[1])
        raise ParameterError(
            f"what was trained saw an array, and no names of its {count} columns: name them in "
            "that order (columns=[...])"
        )
    front = [Value(name) for name in named or ()] if seen is None else [
        Value(name, name=name) for name in seen
    ]  # fmt: skip
    return front_of(parts.steps, tuple(front))


def _maps_of(items: Sequence[Item]) -> list[FeatureMap]:
    return list(dict.fromkeys(one.reader.map for one in items if isinstance(one, Feature)))


def _only_map(items: Sequence[Item]) -> FeatureMap | None:
    """The map whose features are all that is weighed, if there is such a one."""
    maps = _maps_of(items)
    alone = len(maps) == 1 and all(isinstance(one, Feature) for one in items)
    return maps[0] if alone else None


def _told_beside(items: Sequence[Item]) -> str:
    """What stands side by side, in one line; of columns alone nothing."""
    maps = [one.title for one in _maps_of(items)]
    columns = {one.column for one in items if isinstance(one, Value)}
    told = [*maps, *([counted(len(columns), "column")] if columns else [])]
    return f" on {' beside '.join(told)}" if maps else ""


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
