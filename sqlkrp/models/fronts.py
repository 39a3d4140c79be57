"""The steps of a pipeline, as what they make of the columns of a table.

Behind some steps there are items: values of columns, and features of maps. A step that selects,
moves or scales does so to any of them, and what stands side by side is one item after another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.models.transformers import AFFINE, name_of, not_understood
from sqlkrp.models.values import Feature, Front, Item, Reader, Value
from sqlkrp.stages import Category, Prepare

__all__ = ["FRONTS", "front_of", "is_numbered", "require_steps_inside"]

Items = tuple[Item, ...]


def front_of(steps: Sequence[Any], front: Items) -> Items:
    """What steps make of items."""
    for step in steps:
        front = _named_by(step, _behind(front, step))
    return front


def _named_by(step: Any, front: Items) -> Items:
    """The same, with the names that a step gives where it makes DataFrames."""
    names: list[str] = []
    if hasattr(step, "get_feature_names_out"):
        # Of names that would not be different, or of steps inside that give none.
        with contextlib.suppress(ValueError, AttributeError):
            names = list(step.get_feature_names_out())
    if len(names) != len(front):
        return front
    return tuple(
        replace(one, name=name) if isinstance(one, Value) else one
        for one, name in zip(front, names, strict=True)
    )


def _behind(front: Items, step: Any) -> Items:
    """The items behind one more step."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return front
    if isinstance(step, FeatureMap):
        return _mapped(front, step)
    name = name_of(step)
    values = tuple(one for one in front if isinstance(one, Value))
    if name not in FRONTS or (len(values) < len(front) and name not in _OF_ANY):
        if len(values) == len(front):
            raise not_understood(name, " in front of a map", FRONTS)
        raise not_understood(name, " behind a map", _OF_ANY)
    # What holds other steps knows no more of its columns than these.
    seen = vars(step).get("n_features_in_", len(front))
    if seen != len(front):
        raise ColumnError(
            f"the step {name} was fitted to {seen} columns, and {len(front)} are named"
        )
    return FRONTS[name](front, step)


# --- maps ---------------------------------------------------------------------------------------


def _mapped(front: Items, one: FeatureMap) -> Items:
    """The features of a map."""
    values = tuple(one for one in front if isinstance(one, Value))
    if len(values) < len(front):
        raise ParameterError("a pipeline of several maps is not read: chain them (sqlkrp.chain)")
    prepare = one.program.prepare
    if any(made.column in {value.told for value in values} for made in prepare.categories):
        read = _made_by(prepare, values)
    else:
        read = tuple(values[place] for place in _read_by(prepare, values))
    reader = Reader(one, read)
    return tuple(Feature(reader, place) for place in range(len(one.program.names)))


def _made_by(prepare: Prepare, front: Front) -> tuple[Value, ...]:
    """The values of a map that makes inputs of columns by itself."""
    names = [one.name or one.told for one in front]
    match_columns(prepare.reads, names, where="what the steps before the map give")
    made = {one.name: one for one in prepare.categories}
    for one in made.values():
        value = front[names.index(one.column)]
        if value.unmoved != Value(one.column) or (value.scale, value.offset) != (1.0, 0.0):
            raise ParameterError(
                f"the map makes inputs of column {one.column!r} by itself, and a step before it "
                "changes that: leave the step out, or draw the map without categories and dates"
            )
    return tuple(
        Value(made[name].column, category=made[name]) if name in made else front[names.index(name)]
        for name in prepare.columns
    )


def _read_by(prepare: Prepare, front: Front) -> list[int]:
    """Which values a map reads: by their places, if it was fitted to an array."""
    count = len(prepare.columns)
    names = [one.name or one.told for one in front]
    there = set(prepare.columns) <= set(names)
    by_name = [names.index(name) for name in prepare.columns] if there else []
    by_place = list(range(count)) if is_numbered(prepare) and count == len(front) else []
    if not (by_name or by_place):
        missing = next(name for name in prepare.columns if name not in names)
        raise ColumnError(
            f"the map reads a column {missing!r}, and the steps before it give {', '.join(names)}: "
            "name the columns that the pipeline was fitted to (columns=[...])"
        )
    if by_name and by_place and by_name != by_place:
        if front == tuple(Value(one.column) for one in front):  # as they were named
            return by_place
        if front == tuple(Value(one.column, name=one.column) for one in front):  # as it saw them
            return by_name
        raise ColumnError(
            "columns called x0, x1, ... in another order cannot be told from an array's places: "
            "rename them"
        )
    return by_name or by_place


def is_numbered(prepare: Prepare) -> bool:
    """Whether columns are called as those of an array are."""
    return prepare.columns == tuple(f"x{i}" for i in range(len(prepare.columns)))


# --- steps --------------------------------------------------------------------------------------


def _affine(front: Items, step: Any) -> Items:
    affine = AFFINE[name_of(step)](step)
    numbers = zip(affine.places.tolist(), affine.scale, affine.offset, strict=True)
    return tuple(
        front[place].moved(float(scale), float(offset)) for place, scale, offset in numbers
    )


def _imputed(front: Front, step: Any) -> Front:
    if getattr(step, "add_indicator", False):
        raise ParameterError("SimpleImputer(add_indicator=True) is not read: leave it out")
    missing = getattr(step, "missing_values", np.nan)
    if not (missing is None or missing != missing or name_of(missing) == "NAType"):
        raise ParameterError(
            f"SimpleImputer(missing_values={missing!r}) is not read: a missing value is NULL or NaN"
        )
    instead = list(step.statistics_)
    if len(instead) != len(front) or any(one != one for one in instead):
        raise ParameterError("SimpleImputer has a column without any value: leave that column out")
    return tuple(map(_filled, front, instead))


def _filled(value: Value, instead: Any) -> Value:
    if value.fill is not None or value.category is not None:
        return value  # nothing is missing any more
    if isinstance(instead, str):
        return replace(value, fill=instead)
    return replace(value, fill=(float(instead) - value.offset) / value.scale)


def _one_hot(front: Front, step: Any) -> Front:
    if getattr(step, "min_frequency", None) or getattr(step, "max_categories", None):
        raise ParameterError(
            "OneHotEncoder with min_frequency or max_categories is not read: leave these out"
        )
    dropped = getattr(step, "drop_idx_", None)
    found = []
    for place, (value, categories) in enumerate(zip(front, step.categories_, strict=True)):
        if (value.scale, value.offset) != (1.0, 0.0) or value.category is not None:
            raise ParameterError(
                "OneHotEncoder of scaled columns is not read: encode them as they are"
            )
        left_out = None if dropped is None else dropped[place]
        if sum(map(_is_missing, categories.tolist())) > 1:
            raise ParameterError(
                f"OneHotEncoder has None and NaN as categories of {value.column!r}, which a table "
                "cannot tell apart: make them one"
            )
        found += [
            Value(value.column, category=_category(value, one))
            for number, one in enumerate(categories.tolist())
            if number != left_out
        ]
    return tuple(found)


def _is_missing(category: Any) -> bool:
    return category is None or bool(category != category)


def _category(value: Value, category: Any) -> Category:
    """A category of a column, whose missing values may be read as one."""
    none = _is_missing(category)
    if not none and not isinstance(category, (str, bool, int, float)):
        raise ParameterError(
            f"OneHotEncoder has categories of type {name_of(category)} of {value.column!r}, and "
            "texts, numbers and truth values are read: encode it as text"
        )
    plain = None if none else category
    # Where a missing value was filled in, it is the category of that name.
    missing = none if value.fill is None else bool(category == value.fill)
    return Category(
        f"{value.column}={'missing' if none else category}", value.column, plain, missing
    )


def _columns_apart(front: Items, step: Any) -> Items:
    """The items of a ColumnTransformer: those of each of its parts, one after another."""
    return _beside(
        step, ((name, part, _chosen(front, columns)) for name, part, columns in step.transformers_)
    )


def _union(front: Items, step: Any) -> Items:
    """The items of a FeatureUnion: those of each of its parts, of the same columns."""
    return _beside(step, ((name, part, front) for name, part in step.transformer_list))


def _beside(step: Any, parts: Iterable[tuple[str, Any, Items]]) -> Items:
    weights = getattr(step, "transformer_weights", None) or {}
    found: list[Item] = []
    for name, part, front in parts:
        if front and not (isinstance(part, str) and part == "drop"):
            items = _behind(front, part)
            found += [one.moved(float(weights.get(name, 1.0)), 0.0) for one in items]
    return tuple(found)


def _chosen(front: Items, columns: Any) -> Items:
    return tuple(front[place] for place in _places(front, columns))


def _places(front: Items, columns: Any) -> list[int]:
    """Where a ColumnTransformer's columns are, which are named or numbered."""
    names = [one.column if isinstance(one, Value) else "" for one in front]
    if isinstance(columns, (str, int)):
        columns = [columns]
    if isinstance(columns, slice):
        ends = [names.index(end) if isinstance(end, str) else end
                for end in (columns.start, columns.stop)]  # fmt: skip
        last = ends[1] + 1 if isinstance(columns.stop, str) else ends[1]
        return list(range(len(names)))[slice(ends[0], last, columns.step)]
    listed = list(columns)
    if listed and all(isinstance(one, (bool, np.bool_)) for one in listed):
        return [place for place, one in enumerate(listed) if one]
    unknown = [one for one in listed if isinstance(one, str) and one not in names]
    if unknown:
        raise ColumnError(f"ColumnTransformer reads {unknown[0]!r}, which is not there")
    return [names.index(one) if isinstance(one, str) else int(one) for one in listed]


def _pipeline(front: Items, step: Any) -> Items:
    return front_of([one for _, one in step.steps], front)


def _function(front: Items, step: Any) -> Items:
    if getattr(step, "func", None) is not None:
        raise ParameterError(
            "FunctionTransformer is not read, as its function could be anything: compute that "
            "column in a view"
        )
    return front


def require_steps_inside(whole: Any, member: Any) -> None:
    """Raise ParameterError if what others vote with has a step that is read in front of them only.

    Each was fitted to a part of the rows, and so holds another step of that kind.
    """
    for _, step in getattr(getattr(member, "best_estimator_", member), "steps", [])[:-1]:
        name = name_of(step)
        if isinstance(step, FeatureMap) or (name in FRONTS and name not in AFFINE):
            raise ParameterError(
                f"the step {name} is not read inside a {name_of(whole)}: put the steps in front of "
                f"it, make_pipeline({name}(...), {name_of(whole)}(...))"
            )


#: How each kind of step is read.
FRONTS: dict[str, Callable[[Any, Any], Items]] = {
    "SimpleImputer": _imputed,
    "OneHotEncoder": _one_hot,
    "ColumnTransformer": _columns_apart,
    "FeatureUnion": _union,
    "Pipeline": _pipeline,
    "FunctionTransformer": _function,
    **dict.fromkeys(AFFINE, _affine),
}

#: Those that do the same to features as to values.
_OF_ANY = ("ColumnTransformer", "FeatureUnion", "Pipeline", "FunctionTransformer", *AFFINE)
