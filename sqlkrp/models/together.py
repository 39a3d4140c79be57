"""Features of maps and values of columns side by side, behind one first stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.models.transformers import Affine
from sqlkrp.models.values import Feature, Item, Reader, Value, first_stage, plain_stage
from sqlkrp.sql.chain import free_name
from sqlkrp.stages import Array, Category, Linear, Paths, Prepare, Stage, path_from

__all__ = ["Made", "made_of"]


@dataclass(frozen=True)
class Made:
    """Stages of a program, the names of what comes out, and how items are made of that."""

    stages: tuple[Stage, ...]
    names: tuple[str, ...]
    items: Affine


@dataclass(frozen=True)
class _Part:
    """What stands beside others: a first stage of its own, and the stages that go on from it."""

    first: Prepare
    stages: tuple[Stage, ...]
    names: tuple[str, ...]
    read: Prepare
    """The first stage that scales its columns as whoever trained the model did."""


def made_of(items: Sequence[Item]) -> Made:
    """What makes items: the features of each map that is among them, then columns."""
    readers = list(dict.fromkeys(one.reader for one in items if isinstance(one, Feature)))
    scaled: dict[Value, Value] = {}
    for one in items:
        if isinstance(one, Value):
            scaled.setdefault(one.unmoved, one)
    # Beside features they come out as the table has them, which may be one of these features.
    columns = {one: one for one in scaled} if readers else scaled
    parts = [_part(reader) for reader in readers]
    if columns:
        others = [one.first for one in parts]
        parts.append(_part_of_columns(list(columns.values()), list(scaled.values()), others))
    ends = np.cumsum([0, *(len(one.names) for one in parts)]).tolist()
    starts: dict[Reader | Value, int] = dict(zip(readers, ends, strict=False))
    starts |= {one: ends[len(readers)] + place for place, one in enumerate(columns)}
    made = [_moved(one, columns, starts) for one in items]
    places, scale, offset = (np.array(one) for one in zip(*made, strict=True))
    affine = Affine(ends[-1], places.astype("i8"), scale, offset)
    return Made(tuple(_side_by_side(parts)), _names(parts), affine)


def _part(reader: Reader) -> _Part:
    program = reader.map.program
    first = first_stage(program.prepare, reader.values)
    return _Part(first, program.stages[1:], program.names, first)


def _part_of_columns(
    columns: Sequence[Value], scaled: Sequence[Value], others: Sequence[Prepare]
) -> _Part:
    """Columns, whose missing values are what they are to the maps beside them."""
    nulls, dtype = next(((one.nulls, one.dtype) for one in others), ("error", "float64"))
    nulls = "error" if nulls in ("zero", "mean") else nulls
    first, read = (plain_stage(one, nulls, dtype) for one in (columns, scaled))
    return _Part(first, (), tuple(one.told for one in columns), read)


def _moved(
    item: Item, columns: dict[Value, Value], starts: dict[Reader | Value, int]
) -> tuple[int, float, float]:
    """The place that an item is made of, and how it is moved."""
    if isinstance(item, Feature):
        return starts[item.reader] + item.place, item.scale, item.offset
    base = columns[item.unmoved]
    scale = item.scale / base.scale
    return starts[item.unmoved], scale, item.offset - base.offset * scale


def _names(parts: Sequence[_Part]) -> tuple[str, ...]:
    """The names of all; those that are there already get a number."""
    found: dict[str, None] = {}
    for name in (name for one in parts for name in one.names):
        number, told = 2, name
        while told in found:
            number, told = number + 1, f"{name}_{number}"
        found[told] = None
    return tuple(found)


# --- one first stage ----------------------------------------------------------------------------


def _side_by_side(parts: Sequence[_Part]) -> list[Stage]:
    """The stages of all parts, which share one first stage."""
    if len(parts) == 1:
        return [parts[0].first, *parts[0].stages]
    first, entries = _joined([one.first for one in parts], [one.read for one in parts])
    paths = (path_from(entry, one.stages) for entry, one in zip(entries, parts, strict=True))
    return [first, Paths(first.n_outputs, tuple(paths))]


#: A column or a category, what it is filled with, and its bounds.
_Treated = tuple[Category, float, float, float]


def _joined(firsts: Sequence[Prepare], reads: Sequence[Prepare]) -> tuple[Prepare, list[Linear]]:
    """One first stage in place of several, and of each what it makes of its outputs.

    A column is read once for each way of filling and holding it. Scaling can be undone: it is that
    of the first of ``reads``, so that a model's terms can be told apart by their sizes.
    """
    model = firsts[0]
    nulls = _policy(firsts)
    _require_one_way(firsts)
    shared = {one: place for place, one in enumerate(dict.fromkeys(
        treated for first in firsts for treated in _treated(first)
    ))}  # fmt: skip
    places = [np.array([shared[one] for one in _treated(first)]) for first in firsts]
    shift, scale = np.zeros(len(shared)), np.ones(len(shared))
    for read, place in reversed(list(zip(reads, places, strict=True))):
        shift[place], scale[place] = read.shift, read.scale
    _scale_as_elsewhere([one for one, *_ in shared], shift, scale)
    constants = [one.constant for one in firsts if one.constant is not None]
    categories, fill, low, high = zip(*shared, strict=True)
    named = _named(categories)
    truths = {name for one in firsts for name in one.booleans}
    whole = Prepare(
        columns=tuple(one.name for one in named),
        fill=np.clip(fill, low, high),  # where nothing is filled in, it is any number
        shift=shift,
        scale=scale,
        nulls=nulls,
        unit_length=model.unit_length,
        constant=next(iter(constants), None),
        dtype=model.dtype,
        booleans=tuple(one.name for one in named if one.is_column and one.column in truths),
        low=np.array(low),
        high=np.array(high),
        categories=tuple(one for one in named if one.name != one.column),
    )
    if not whole.held.any():
        whole = replace(whole, low=None, high=None)
    entries = [_entry(whole, one, place) for one, place in zip(firsts, places, strict=True)]
    return whole, entries


def _scale_as_elsewhere(read: Sequence[Category], shift: Array, scale: Array) -> None:
    """A column that is read again as it is, is scaled as where it is read otherwise."""
    is_scaled = (scale != 1) | (shift != 0)
    known = {read[place].column: place for place in np.flatnonzero(is_scaled)[::-1].tolist()}
    for place in np.flatnonzero(~is_scaled).tolist():
        other = known.get(read[place].column, place) if read[place].is_column else place
        shift[place], scale[place] = shift[other], scale[other]


def _treated(first: Prepare) -> list[_Treated]:
    """What a first stage reads, but for the scaling."""
    end = float(np.finfo(first.dtype).max)
    made = {one.name: one._replace(name="") for one in first.categories}
    low, high = first.bounds or (np.full(first.n_inputs, -end), np.full(first.n_inputs, end))
    fill = first.fill if first.fills else np.zeros(first.n_inputs)
    numbers = zip(fill.tolist(), low.tolist(), high.tolist(), strict=True)
    columns = (made.get(name, Category("", name, None)) for name in first.columns)
    return [(column, *one) for column, one in zip(columns, numbers, strict=True)]


def _named(categories: Sequence[Category]) -> list[Category]:
    """What is read, with names: a column's own, where it is read as it is for the first time."""
    columns = [one.column for one in categories]
    found: list[Category] = []
    own: set[str] = set()
    for place, one in enumerate(categories):
        name = free_name(f"sqlkrp_{'again' if one.is_column else 'category'}_{place}", columns)
        if one.is_column and one.column not in own:
            name = one.column
            own.add(name)
        found.append(one._replace(name=name))
    return found


def _entry(whole: Prepare, first: Prepare, places: Array) -> Linear:
    """What a first stage makes of columns, of what another makes of them."""
    factor = first.scale / whole.scale[places]
    constant = (whole.shift[places] - first.shift) * first.scale
    if first.constant is not None:
        same = first.constant == whole.constant
        places = np.append(places, whole.n_inputs)
        factor = np.append(factor, float(same))
        constant = np.append(constant, 0.0 if same else first.constant)
    return Linear.picked(whole.n_outputs, places, factor, constant)


# --- what cannot be -----------------------------------------------------------------------------


def _policy(firsts: Sequence[Prepare]) -> str:
    """What all parts do with missing values; what reads indicators alone meets none."""
    reading = [
        one for one in firsts if sum(made.is_indicator for made in one.categories) < one.n_inputs
    ]
    policies = {"mean" if one.fills else one.nulls for one in reading or firsts}
    if len(policies) > 1:
        told = " and ".join(repr(one) for one in sorted(policies))
        raise ParameterError(
            f"what stands side by side treats missing values in different ways ({told}): impute "
            "all columns of numbers in front of it, or none"
        )
    return policies.pop()


def _require_one_way(firsts: Sequence[Prepare]) -> None:
    """Raise ParameterError unless one first stage can be all of these."""
    if len({one.dtype for one in firsts}) > 1:
        raise ParameterError(
            "maps side by side compute in float32 and float64: draw them with one dtype"
        )
    alike = {(tuple(_treated(one)), (*one.shift, *one.scale), one.unit_length) for one in firsts}
    if len(alike) > 1 and any(one.unit_length for one in firsts):
        raise ParameterError(
            "scaling='unit' divides a row by the length of all that is read, also by what "
            "stands beside the map: draw the map with another scaling"
        )
