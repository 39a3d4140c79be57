"""The steps before a map, as what is done to the columns of a table.

Each value that they make is one column: filled where it is missing, times a scale, plus an offset;
or it is 1 where the column holds a category. All of it is one first stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.models.transformers import AFFINE, name_of
from sqlkrp.sql.chain import free_name
from sqlkrp.stages import Array, Category, Prepare

__all__ = ["FRONTS", "Value", "first_stage", "front_of", "plain_stage"]


@dataclass(frozen=True)
class Value:
    """A value that steps make of a column."""

    column: str
    fill: Any = None
    """What a missing value of the column is read as; None where it is not filled."""
    scale: float = 1.0
    offset: float = 0.0
    category: Category | None = None
    """The category of the column, if the value tells whether it is there."""

    def moved(self, scale: float, offset: float) -> Value:
        """The value times a scale, plus an offset."""
        return replace(self, scale=self.scale * scale, offset=self.offset * scale + offset)


Front = tuple[Value, ...]


def plain_stage(front: Front) -> Prepare:
    """Values as the first stage of a program that has no map."""
    none = Prepare.plain([f"x{i}" for i in range(len(front))])
    return first_stage(none, front)


def first_stage(prepare: Prepare, values: Sequence[Value]) -> Prepare:
    """A first stage that reads values, each as one of its inputs, as one that reads columns."""
    values = _with_names(values)
    names = tuple(one.column if one.category is None else one.category.name for one in values)
    scale, offset = (np.array([getattr(one, of) for one in values]) for of in ("scale", "offset"))
    if (scale == 0).any():
        nothing = names[int(np.argmin(scale != 0))]
        raise ParameterError(f"column {nothing!r} is scaled to nothing: leave it out")
    low, high = _bounds(prepare, scale, offset)
    fill, fills = _fill(prepare, values, scale, offset)
    categories = tuple(one.category for one in values if one.category is not None)
    spelt = dict(zip(prepare.columns, names, strict=True))
    looked_at = {one.name for one in categories}
    return replace(
        prepare,
        columns=names,
        fill=fill if low is None else np.clip(fill, low, high),
        shift=(prepare.shift - offset) / scale,
        scale=prepare.scale * scale,
        nulls="mean" if fills else prepare.nulls,
        booleans=tuple(spelt[one] for one in prepare.booleans if spelt[one] not in looked_at),
        low=low,
        high=high,
        categories=categories,
    )


def _with_names(values: Sequence[Value]) -> list[Value]:
    """The same, each once, where categories have names that every engine takes."""
    columns = [one.column for one in values if one.category is None]
    twice = {name for name in columns if columns.count(name) > 1}
    twice |= {one.column for one in values if one.category is not None and one.column in columns}
    if twice:
        raise ColumnError(f"column {min(twice)!r} is read twice in front of the map: give it once")
    found = []
    for place, one in enumerate(values):
        if one.category is not None:
            name = free_name(f"sqlkrp_category_{place}", columns)
            one = replace(one, category=one.category._replace(name=name))
        found.append(one)
    return found


def _fill(
    prepare: Prepare, values: Sequence[Value], scale: Array, offset: Array
) -> tuple[Array, bool]:
    """What is read for missing values of each column, and whether steps before the map say so."""
    numbers = [one for one in values if one.category is None]
    filled = [one for one in numbers if one.fill is not None]
    if not filled:
        return (prepare.fill - offset) / scale, False
    if len(filled) < len(numbers):
        without = next(one for one in numbers if one.fill is None)
        raise ColumnError(
            f"column {without.column!r} is not imputed and others are: impute all columns of "
            "numbers, or none"
        )
    # Whether a category is there is never missing.
    return np.array([0.0 if one.category else float(one.fill) for one in values]), True


def _bounds(prepare: Prepare, scale: Array, offset: Array) -> tuple[Array | None, Array | None]:
    """The bounds of values as bounds of their columns."""
    if not prepare.bounds:
        return None, None
    end = np.finfo(prepare.dtype).max
    ends = [np.where(prepare.held, (one - offset) / scale, one) for one in prepare.bounds]
    low, high = np.minimum(*ends), np.maximum(*ends)
    return np.maximum(low, -end), np.minimum(high, end)


# --- steps --------------------------------------------------------------------------------------


def front_of(steps: Sequence[Any], columns: Sequence[str]) -> Front:
    """The values that steps make of columns."""
    front = tuple(Value(name) for name in columns)
    for step in steps:
        front = _behind(front, step)
    return front


def _behind(front: Front, step: Any) -> Front:
    """The values behind one more step."""
    if step is None or step == "passthrough":
        return front
    name = name_of(step)
    if name not in FRONTS:
        raise ParameterError(
            f"the step {name} is not understood in front of a map: leave it out, or use one of "
            f"{', '.join(FRONTS)}"
        )
    seen = getattr(step, "n_features_in_", len(front))
    if seen != len(front):
        raise ColumnError(
            f"the step {name} was fitted to {seen} columns, and {len(front)} are named"
        )
    return FRONTS[name](front, step)


def _affine(front: Front, step: Any) -> Front:
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


def _columns_apart(front: Front, step: Any) -> Front:
    """The values of a ColumnTransformer: those of each of its parts, one after another."""
    found: list[Value] = []
    weights = getattr(step, "transformer_weights", None) or {}
    for name, part, columns in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        chosen = tuple(front[place] for place in _places(front, columns))
        values = _steps_behind(chosen, part) if chosen else ()
        found += [value.moved(float(weights.get(name, 1.0)), 0.0) for value in values]
    return tuple(found)


def _places(front: Front, columns: Any) -> list[int]:
    """Where a ColumnTransformer's columns are, which are named or numbered."""
    names = [value.column for value in front]
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


def _steps_behind(front: Front, step: Any) -> Front:
    """The values behind a step that may be a pipeline of several."""
    for one in [one for _, one in step.steps] if hasattr(step, "steps") else [step]:
        front = _behind(front, one)
    return front


def _pipeline(front: Front, step: Any) -> Front:
    return _steps_behind(front, step)


def _function(front: Front, step: Any) -> Front:
    if getattr(step, "func", None) is not None:
        raise ParameterError(
            "FunctionTransformer is not read, as its function could be anything: compute that "
            "column in a view"
        )
    return front


#: How each kind of step is read.
FRONTS: dict[str, Callable[[Front, Any], Front]] = {
    "SimpleImputer": _imputed,
    "OneHotEncoder": _one_hot,
    "ColumnTransformer": _columns_apart,
    "Pipeline": _pipeline,
    "FunctionTransformer": _function,
    **dict.fromkeys(AFFINE, _affine),
}
