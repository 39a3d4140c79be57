"""Parts of stages, and stages side by side: the same for all, by what their columns hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from sqlkrp.stages.paths import Paths
from sqlkrp.stages.prepare import Prepare
from sqlkrp.stages.records import Linear
from sqlkrp.stages.stage import (
    ENTRY,
    INPUTS,
    OUTPUT,
    OUTPUTS,
    Array,
    Stage,
    columns_of,
    require,
)

__all__ = ["beside", "inputs_of", "only", "only_of", "path_from", "reading"]


def only(stage: Stage, outputs: Array) -> tuple[Stage, Array, Array]:
    """A stage without what these outputs (sorted) do not need.

    Beside it, the outputs that it has left, which may be more where some come only together, and
    the inputs that it needs.
    """
    if isinstance(stage, Prepare):
        return _only_columns(stage, outputs)
    if isinstance(stage, Paths):
        return _only_paths(stage, outputs)
    if stage.closes:
        return stage, np.arange(stage.n_outputs), np.arange(stage.n_inputs)
    together = stage.outputs_a_row
    rows = np.unique(outputs // together)
    kept = (rows[:, None] * together + np.arange(together)).ravel()
    changed: dict[str, Any] = _counts(stage, n_sums=len(kept))
    entries = _entries_of(stage, kept)
    for name, what, array in columns_of(stage):
        left = array[rows] if what.by == OUTPUT else array[entries]
        changed[name] = _places_in(kept, left) if what.holds == OUTPUTS else left
    reads = [changed[name] for name, what, _ in columns_of(stage) if what.holds == INPUTS]
    if not reads:  # each output reads the input of its number
        return replace(stage, n_inputs=len(kept), **changed), kept, kept
    read = np.unique(np.concatenate([one.ravel() for one in reads]))
    return replace(stage, **changed), kept, read[read >= 0]


def only_of(stages: Sequence[Stage], outputs: Array) -> tuple[tuple[Stage, ...], Array, Array]:
    """The same of stages one after another."""
    found: list[Stage] = []
    wanted = outputs
    for stage in reversed(stages):
        # What only adds up nothing still stands on something.
        left, kept, wanted = only(stage, wanted if len(wanted) else np.arange(1))
        if found:
            found[-1] = reading(found[-1], kept)
        else:
            outputs = kept
        found.append(left)
    return tuple(reversed(found)), outputs, wanted


def inputs_of(stage: Stage) -> Array:
    """The inputs that a stage reads."""
    return only(stage, np.arange(stage.n_outputs))[2]


def reading(stage: Stage, inputs: Array) -> Stage:
    """A stage where these inputs (sorted, all that are used) are all there are."""
    changed: dict[str, Any] = {}
    if isinstance(stage, Paths):
        paths = ((reading(first, inputs), *later) for first, *later in stage.paths)
        changed["paths"] = tuple(paths)
    for name, what, array in columns_of(stage):
        if what.holds == INPUTS:
            changed[name] = np.where(array < 0, -1, _places_in(inputs, array)).astype(array.dtype)
    return replace(stage, n_inputs=len(inputs), **changed)


def path_from(entry: Linear, stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Stages that read what an entry picks; where that is inputs as they are, without it."""
    as_they_are = entry.constant is None and bool((entry.value == 1).all())
    if not (stages and as_they_are and (np.diff(entry.input) > 0).all() and _says(stages[0])):
        return (entry, *stages)
    return (_moved(stages[0], entry.input, entry.n_inputs), *stages[1:])


def _says(stage: Stage) -> bool:
    """Whether a stage says which inputs it reads, other than that of an output's number."""
    return any(what.holds == INPUTS for _, what, _ in columns_of(stage))


def _moved(stage: Stage, places: Array, n_inputs: int) -> Stage:
    """A stage whose inputs are at these places (increasing) of more."""
    changed: dict[str, Any] = {}
    for name, what, array in columns_of(stage):
        if what.holds == INPUTS:
            changed[name] = np.where(array < 0, -1, places[array]).astype(array.dtype)
    return replace(stage, n_inputs=n_inputs, **changed)


def beside(stages: Sequence[Stage], *, shared: bool) -> Stage:
    """One stage of several of a kind, which share all inputs or have their own."""
    first = stages[0]
    require(all(type(one) is type(first) for one in stages), "stages side by side differ in kind")
    if isinstance(first, Paths):
        require(shared or len(stages) == 1, "paths side by side have inputs of their own")
        return Paths(first.n_inputs, tuple(path for one in stages for path in _paths_of(one)))
    counts = [one.n_inputs for one in stages]
    own = not shared
    changed: dict[str, Any] = {"n_inputs": sum(counts) if own else counts[0]}
    changed |= _counts(first, n_sums=sum(one.n_outputs for one in stages))
    offsets = {
        INPUTS: np.cumsum([0, *counts])[:-1] * own,
        OUTPUTS: np.cumsum([0, *(one.n_outputs for one in stages)])[:-1],
    }
    # A column that only some of them have, such as constants, is zeros in the others.
    columns = {name: what for one in stages for name, what, _ in columns_of(one)}
    for name, what in columns.items():
        arrays = [
            np.zeros(one.n_outputs) if getattr(one, name) is None else getattr(one, name)
            for one in stages
        ]
        if what.holds in offsets:
            moved = zip(arrays, offsets[what.holds].tolist(), strict=True)
            arrays = [np.where(array < 0, -1, array + offset) for array, offset in moved]
            changed[name] = np.concatenate(_of_one_width(arrays)).astype("i4")
        else:
            changed[name] = np.concatenate(arrays)
    for one in fields(first):
        if one.init and one.name not in {*changed, *columns}:
            value = getattr(first, one.name)
            same = all(getattr(other, one.name) == value for other in stages)
            require(same, f"stages side by side differ in {one.name}")
    some_read = any(what.holds == INPUTS for what in columns.values())
    require(some_read or own or len(stages) == 1, "stages side by side share their inputs")
    return replace(first, **changed)


def _counts(stage: Stage, **counts: int) -> dict[str, Any]:
    """Those of the counts that this stage has as fields."""
    names = {one.name for one in fields(stage)}
    return {name: count for name, count in counts.items() if name in names}


def _entries_of(stage: Stage, outputs: Array) -> Array:
    """Which entries of its table belong to these outputs; none where it has no such table."""
    for _, what, array in columns_of(stage):
        if what.holds == OUTPUTS and what.by == ENTRY:
            return np.isin(array, outputs)
    return np.zeros(0, dtype=bool)


def _places_in(sorted_numbers: Array, numbers: Array) -> Array:
    places: Array = np.searchsorted(sorted_numbers, numbers).astype(numbers.dtype)
    return places


def _of_one_width(arrays: list[Array]) -> list[Array]:
    """Tables of input numbers, with -1 (none) behind where another is wider."""
    if arrays[0].ndim == 1:
        return arrays
    widest = max(array.shape[-1] for array in arrays)
    return [
        np.pad(
            array,
            [(0, 0)] * (array.ndim - 1) + [(0, widest - array.shape[-1])],
            constant_values=-1,
        )
        for array in arrays
    ]


def _paths_of(stage: Stage) -> tuple[tuple[Stage, ...], ...]:
    assert isinstance(stage, Paths)
    return stage.paths


def _only_paths(stage: Paths, outputs: Array) -> tuple[Stage, Array, Array]:
    """Without the paths of which nothing is needed."""
    found, kept, read = [], [], []
    for path, (first, end) in zip(stage.paths, stage.places, strict=True):
        wanted = outputs[(outputs >= first) & (outputs < end)] - first
        if len(wanted):
            stages, its, reads = only_of(path, wanted)
            found.append(stages)
            kept.append(its + first)
            read.append(reads)
    left = Paths(stage.n_inputs, tuple(found))
    return left, np.concatenate(kept), np.unique(np.concatenate(read))


def _only_columns(prepare: Prepare, outputs: Array) -> tuple[Stage, Array, Array]:
    d = len(prepare.columns)
    if prepare.unit_length or prepare.nulls == "propagate":
        # Every column decides what a row becomes.
        return prepare, np.arange(prepare.n_outputs), np.arange(d)
    kept = outputs[outputs < d]
    if not len(kept):
        kept = np.arange(1)  # a table has at least a column
    constant = prepare.constant if d in outputs else None
    names = [prepare.columns[i] for i in kept.tolist()]
    left = replace(
        prepare,
        columns=tuple(names),
        fill=prepare.fill[kept],
        shift=prepare.shift[kept],
        scale=prepare.scale[kept],
        low=None if prepare.low is None else prepare.low[kept],
        high=None if prepare.high is None else prepare.high[kept],
        constant=constant,
        booleans=tuple(name for name in prepare.booleans if name in names),
        categories=tuple(one for one in prepare.categories if one.name in names),
    )
    return left, np.append(kept, d) if constant is not None else kept, kept
