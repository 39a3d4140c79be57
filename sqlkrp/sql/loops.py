"""The array form: a row program as a few SELECTs, each a loop over one array column.

The text has the stages' tables as lists of whole numbers, and one body for all outputs of a stage:
it is a fifth to a half of the wide form's, and there are no columns for an engine to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sqlkrp.sql.arrays import ONE, VALUES, ZERO, Loops
from sqlkrp.sql.entries import Gathered
from sqlkrp.sql.job import Job, Written
from sqlkrp.sql.levels import Levels
from sqlkrp.sql.names import balanced, firm_cast, soft_cast
from sqlkrp.sql.vectors import Vector
from sqlkrp.sql.wide import begun, ended, written
from sqlkrp.sql.wide_inputs import casts
from sqlkrp.stages import Array, Paths, Prepare, Stage
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts

__all__ = ["BODIES", "write_loops"]

# Layers of butterflies in one loop: more bodies are longer, and fewer loops are read and written.
_LAYERS = 3


def write_loops(job: Job) -> Written:
    """The SELECT of a program's outputs by loops over arrays."""
    program = job.program.only(every_column=job.stops)
    first, *later = program.stages[: program.closing]
    assert isinstance(first, Prepare)
    assert job.dialect.loops is not None
    levels = Levels(job, innermost=job.dialect.loops.innermost)
    loops, gathered = _begun(levels, first)
    _go_through(loops, later)
    values, closing = loops.outputs(), program.stages[program.closing :]
    if closing:
        values = written(levels, closing, program.closing, values)
    return ended(levels, gathered, values)


def _go_through(loops: Loops, stages: Sequence[Stage]) -> None:
    for stage in stages:
        loops.put(BODIES[type(stage)](loops, stage), stage.n_outputs)


def _begun(levels: Levels, prepare: Prepare) -> tuple[Loops, Gathered | None]:
    """The prepared inputs: by a loop, but where they must be columns until then."""
    assert levels.dialect.loops is not None
    if levels.job.long is None and levels.dialect.loops.message is not None:
        return _prepared(levels, prepare), None
    values, gathered = begun(levels, prepare)
    return Loops(levels, values), gathered


# --- the first stage --------------------------------------------------------------------------


def _prepared(levels: Levels, stage: Prepare) -> Loops:
    """Columns as they come in one array, and a loop that does the rest; the constant goes along."""
    is_looked_at = levels.job.stops or stage.nulls != "error"
    values = casts(levels, stage, soft_cast if is_looked_at else firm_cast)
    if stage.constant is not None:
        values.append(levels.literal(stage.constant))
    loops = Loops(levels, Vector(values))
    if is_looked_at:
        loops.columns = Vector(map(loops.nan_for_null, values))
    if is_looked_at or _changes(stage):
        array = loops.behind_constants()
        value = loops.read_at(array, "i", VALUES)
        held = _shifted(loops, stage, _treated(loops, stage, value, is_looked_at))
        loops.put(held, stage.n_outputs)
        if stage.nulls == "propagate":
            _mark_complete(loops, stage, loops.read_at(array, "e", VALUES))
    if stage.unit_length:
        _go_to_unit_length(loops, stage)
    return loops


def _changes(stage: Prepare) -> bool:
    """Whether numbers do not stay as they are, but for the length of rows."""
    return bool(stage.bounds) or bool(np.any(stage.shift)) or bool(np.any(stage.scale != 1))


def _treated(loops: Loops, stage: Prepare, value: str, is_looked_at: bool) -> str:
    """What is read of a value inside its bounds, or where it is missing."""
    held = _held(loops, stage, value)
    if not is_looked_at:
        return held
    dialect = loops.levels.dialect
    if stage.fills:
        otherwise = loops.number_of(_of_all(stage, stage.fill, 0.0))
    elif stage.nulls == "propagate":
        otherwise = loops.levels.literal(0.0)  # of a row that has no features
    else:
        message = loops.message_of("missing value in column ", _names(stage))
        otherwise = dialect.error(message, value, dialect.float_types[loops.dtype])
    return f"CASE WHEN {dialect.finite(value, stage.dtype)} THEN {held} ELSE {otherwise} END"


def _names(stage: Prepare) -> list[str]:
    return [*stage.told, *([] if stage.constant is None else [""])]


def _of_all(stage: Prepare, numbers: Array, of_constant: float) -> Array:
    """Numbers of the columns, and one for the constant, which is to stay what it is."""
    return numbers if stage.constant is None else np.append(numbers, of_constant)


def _held(loops: Loops, stage: Prepare, value: str) -> str:
    if not stage.bounds:
        return value
    end = float(np.finfo(stage.dtype).max)
    low, high = stage.bounds
    least = loops.number_of(_of_all(stage, low, -end))
    most = loops.number_of(_of_all(stage, high, end))
    return (
        f"CASE WHEN {value} < {least} THEN {least} WHEN {value} > {most} THEN {most} "
        f"ELSE {value} END"
    )


def _shifted(loops: Loops, stage: Prepare, value: str) -> str:
    if np.any(stage.shift):
        value = f"({value} - {loops.number_of(_of_all(stage, stage.shift, 0.0))})"
    if np.any(stage.scale != 1):
        value = f"{value} * {loops.number_of(_of_all(stage, stage.scale, 1.0))}"
    return value


def _mark_complete(loops: Loops, stage: Prepare, value: str) -> None:
    """Whether a row has features, as a column that goes along from here on."""
    missing = f"CASE WHEN {loops.levels.dialect.finite(value, stage.dtype)} THEN 0 ELSE 1 END"
    count = loops.total_of_first(stage.n_inputs, missing, "float64")
    loops.stored(complete=f"CASE WHEN {count} = 0 THEN 1 ELSE 0 END")
    loops.levels.complete = True


def _go_to_unit_length(loops: Loops, stage: Prepare) -> None:
    """Rows divided by their length; the constant is no part of it."""
    levels, array = loops.levels, loops.stored()
    # In double precision, as squares leave the range of single precision soon.
    one = loops.read_at(array, "e")
    one = one if loops.dtype == "float64" else levels.cast(one, "float64")
    squares = loops.total_of_first(stage.n_inputs, f"{one} * {one}", "float64")
    array = loops.stored(length=levels.cast(f"SQRT({squares})"))
    value = loops.read_at(array, "i")
    # A row of zeros has no direction: it stays a row of zeros.
    stays = "length = 0" if stage.constant is None else f"length = 0 OR i = {stage.n_inputs}"
    loops.put(f"CASE WHEN {stays} THEN {value} ELSE {value} / length END", stage.n_outputs)


# --- the others -------------------------------------------------------------------------------


def _linear(loops: Loops, stage: Linear) -> str:
    body = _picked(loops, stage) if stage.picks else _sum(loops, stage)
    return body if stage.constant is None else f"{body} + {loops.number_of(stage.constant)}"


def _picked(loops: Loops, stage: Linear) -> str:
    if stage.factor is not None and loops.body and not loops.array:
        (factor,) = np.full(1, stage.factor).astype(loops.dtype).tolist()
        return f"({loops.body}) * {loops.levels.literal(factor)}"
    array = loops.stored()
    return f"{loops.item(array, stage.input)} * {loops.number_of(stage.value)}"


def _sum(loops: Loops, stage: Linear) -> str:
    """The entries of an output are a part of all; one that has none reads a 0."""
    array = loops.signed()
    empty = stage.starts[:-1][np.diff(stage.starts) == 0]
    place = loops.places(stage.input, stage.value if stage.is_signed else None)
    body = loops.item(array, np.insert(place, empty, ZERO), "e")
    if not stage.is_signed:
        body = f"{body} * {loops.number_of(np.insert(stage.value, empty, 0.0), 'e')}"
    ends = np.cumsum(np.maximum(np.diff(stage.starts), 1))
    return loops.total(body, np.append(0, ends[:-1]), ends)


def _butterflies(loops: Loops, stage: Butterflies) -> str:
    array = loops.signed()
    loops.put(loops.item(array, loops.places(stage.place, stage.sign).ravel()), stage.n_outputs)
    stride = 1
    while stride < stage.outputs_a_row:
        radix = min(2**_LAYERS, stage.outputs_a_row // stride)
        loops.put(_layers(loops, loops.stored(), stride, radix), stage.n_outputs)
        stride *= radix
    return loops.body


def _layers(loops: Loops, array: str, stride: int, radix: int) -> str:
    """Some layers at once: what differs in one digit of its number, added up with signs."""
    first = f"i - {loops.bits(stride * (radix - 1))}"
    terms = [
        loops.read_at(array, f"{first} + {digit * stride}" if digit else first)
        for digit in range(radix)
    ]
    step = stride
    while len(terms) > 1:
        plus, minus = (loops.levels.literal(sign) for sign in (1.0, -1.0))
        sign = f"CASE WHEN {loops.bits(step)} = 0 THEN {plus} ELSE {minus} END"
        pairs = zip(terms[::2], terms[1::2], strict=True)
        terms = [f"({one} + {other} * {sign})" for one, other in pairs]
        step *= 2
    return terms[0]


def _sum_of_products(loops: Loops, stage: SumOfProducts) -> str:
    write = _ragged_products if stage.is_ragged else _products
    return balanced(write(loops, stage), " + ")


def _products(loops: Loops, stage: SumOfProducts) -> list[str]:
    """Where every term has all its factors, the values as they are will do, and are no copy."""
    array, terms = loops.stored(), []
    for term, signs in enumerate(stage.sign.T):
        factors = [loops.item(array, places) for places in stage.factors[:, term].T]
        if np.any(signs < 0):
            factors.append(loops.number_of(signs))
        terms.append(" * ".join(factors))
    return terms


def _ragged_products(loops: Loops, stage: SumOfProducts) -> list[str]:
    array, terms = loops.signed(), []
    for term in range(stage.factors.shape[1]):
        first, *others = stage.factors[:, term].T
        factors = [loops.places(first, stage.sign[:, term])]
        factors += [loops.places(other, absent=ONE) for other in others]
        terms.append(" * ".join(loops.item(array, place) for place in factors))
    return terms


def _distances(loops: Loops, stage: Distances) -> str:
    array = loops.stored()
    apart = f"({loops.item(array, stage.input, 'e')} - {loops.number_of(stage.value, 'e')})"
    return loops.total(f"{apart} * {apart}", stage.starts[:-1], stage.starts[1:])


def _elementwise(loops: Loops, stage: Elementwise) -> str:
    levels, value = loops.levels, loops.read_at(loops.stored(), "i")
    result = levels.dialect.function(stage.function, value, loops.dtype)
    return loops.never_null(levels.cast(result))


def _paths(loops: Loops, stage: Paths) -> str:
    """An array for each path; the inputs and the arrays that are there go along as columns."""
    levels, arrays = loops.levels, [loops.stored()]
    for path in stage.paths:
        write = partial(_array_of, levels, arrays[0], path)
        made, arrays = levels.beside(arrays, write)
        arrays += made
    return loops.read_at(loops.joined(arrays[1:]), "i")


def _array_of(levels: Levels, inputs: str, path: Sequence[Stage]) -> list[str]:
    loops = Loops(levels, Vector([]), array=inputs, read=inputs, count=path[0].n_inputs)
    _go_through(loops, path)
    return [loops.stored()]


BODIES: dict[type[Stage], Callable[[Loops, Any], str]] = {
    Linear: _linear,
    Butterflies: _butterflies,
    SumOfProducts: _sum_of_products,
    Distances: _distances,
    Elementwise: _elementwise,
    Paths: _paths,
}
