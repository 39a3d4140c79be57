"""The wide form: a row program as nested SELECTs over unrolled columns.

Each stage writes its outputs as expressions over the columns of the SELECT below it. A stage whose
inputs are used more than once has them named in a SELECT of their own first, so each is computed
once. Sums are balanced: however many terms, no expression is nested deeply.

Statements reach a hundred thousand terms, so they are joined as text over names that were quoted
once; they are never parsed again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sqlkrp.memory import require_memory
from sqlkrp.sql import answers
from sqlkrp.sql.entries import Gathered, gathered_rows
from sqlkrp.sql.job import Job, Written
from sqlkrp.sql.levels import Levels
from sqlkrp.sql.names import balanced, firm_cast, quote, soft_cast, text
from sqlkrp.sql.sharing import Circuit, Pairs
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import Answers, Array, Bounds, Prepare, Shares, Stage, Votes
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts

__all__ = ["WRITERS", "begun", "casts", "ended", "write_wide_form", "written"]

# Names are for people, who do not read a statement of more operations column by column.
_READABLE = 5_000
# About what an addition or a product takes while it is written.
_OPERATION_BYTES = 400


def write_wide_form(job: Job) -> Written:
    """The SELECT of a planned program's outputs from the source."""
    plan = job.plan
    assert plan is not None
    operations = plan.additions + plan.products
    require_memory(
        _OPERATION_BYTES * operations,
        f"a wide statement of {operations:,} additions and products",
        "form='tables' or fewer components",
    )
    levels = Levels(job, by_position=operations > _READABLE)
    values, gathered = begun(levels, plan.program.prepare)
    values = written(levels, plan.program.stages[1:], 1, values)
    return ended(levels, gathered, Vector(values, there="complete = 1" if levels.complete else ""))


def written(levels: Levels, stages: Sequence[Stage], first: int, values: Vector) -> Vector:
    """Values after stages, of which the first has this position."""
    for position, stage in enumerate(stages, start=first):
        if not values.is_named and not _is_written_in(stage, levels):
            values = levels.named(values, "p")
        values = WRITERS[type(stage)](levels, stage, position, values)
    return values


def begun(levels: Levels, prepare: Prepare) -> tuple[Vector, Gathered | None]:
    """The prepared inputs as columns; of sparse input, where they were gathered."""
    if levels.job.long is None:
        return _prepare(levels, prepare), None
    gathered = gathered_rows(levels.job, prepare)
    return levels.go_on_from(gathered), gathered


def ended(levels: Levels, gathered: Gathered | None, values: Vector) -> Written:
    """The statement that ends with these values."""
    select = levels.select(values)
    if gathered is None:
        return Written(select, levels.widest, {})
    chain = gathered.chain
    ordered = f"{select}\nORDER BY {levels.alias}.{gathered.place}"
    return Written(chain.text(ordered), levels.widest, chain.side_tables)


def _is_written_in(stage: Stage, levels: Levels) -> bool:
    """Whether a stage's inputs stand in what it writes, and so need no names.

    It reads each once at most; and only moves and scales them, or the statement is for people to
    read. In a large one, names are quicker.
    """
    if not isinstance(stage, Linear) or (levels.by_position and not stage.picks):
        return False
    return len(np.unique(stage.input)) == len(stage.input)


# --- the first stage --------------------------------------------------------------------------


def _prepare(levels: Levels, stage: Prepare) -> Vector:
    constant = [] if stage.constant is None else [levels.literal(stage.constant)]
    values: Sequence[str]
    if stage.nulls == "error" and not levels.job.guard:
        values = casts(levels, stage, firm_cast)
    else:
        values = levels.named(casts(levels, stage, soft_cast), "x")
        values = _treated(levels, stage, values)
        constant = [levels.if_complete(value) for value in constant]
    values = [
        _shifted(levels, value, float(shift), float(scale))
        for value, shift, scale in zip(
            _held(levels, stage, values), stage.shift, stage.scale, strict=True
        )
    ]
    if stage.unit_length:
        return _unit_length(levels, values, constant)
    return levels.named([*values, *constant], "x")


def casts(levels: Levels, stage: Prepare, cast: Callable[..., str]) -> list[str]:
    """The columns of the source as numbers, by one of the casts of names."""
    job = levels.job
    return [
        cast(quote(name, job.dialect), job.dtype, job.dialect, boolean=name in job.booleans)
        for name in stage.columns
    ]


def _treated(levels: Levels, stage: Prepare, values: Sequence[str]) -> list[str]:
    """What is read where a value is missing."""
    finite = [levels.dialect.finite(value, stage.dtype) for value in values]
    if stage.nulls == "propagate":
        complete = f"CASE WHEN {balanced(finite, ' AND ')} THEN 1 ELSE 0 END"
        inputs = {f"x{i}": value for i, value in enumerate(values)}
        above = levels.level({"complete": complete, **inputs})
        levels.complete = True
        return [levels.if_complete(above[name]) for name in inputs]
    if stage.fills:
        otherwise = [levels.literal(float(fill)) for fill in stage.fill]
    else:
        otherwise = [
            levels.dialect.error(
                text(f"missing value in column {name}", levels.dialect),
                value,
                levels.job.type_name,
            )
            for name, value in zip(stage.columns, values, strict=True)
        ]
    return [
        f"CASE WHEN {test} THEN {value} ELSE {instead} END"
        for test, value, instead in zip(finite, values, otherwise, strict=True)
    ]


def _held(levels: Levels, stage: Prepare, values: Sequence[str]) -> Sequence[str]:
    """Values inside their bounds."""
    if not stage.bounds:
        return values
    low, high = (bound.astype(stage.dtype).tolist() for bound in stage.bounds)
    values = levels.named(values, "x")
    return [
        levels.held(value, least, most) if held else value
        for value, least, most, held in zip(values, low, high, stage.held.tolist(), strict=True)
    ]


def _shifted(levels: Levels, value: str, shift: float, scale: float) -> str:
    if shift:
        value = f"({value} - {levels.literal(shift)})"
    return f"{value} * {levels.literal(scale)}" if scale != 1 else value


def _unit_length(levels: Levels, values: Sequence[str], constant: Sequence[str]) -> Vector:
    named = levels.named([*values, *constant], "x")
    # In double precision, as squares leave the range of single precision soon.
    doubles = named[: len(values)]
    if levels.job.dtype != "float64":
        doubles = [levels.cast(value, "float64") for value in doubles]
    squares = balanced([f"{value} * {value}" for value in doubles], " + ")
    columns = {f"x{i}": value for i, value in enumerate(named)}
    length = {"length": levels.cast(f"SQRT({squares})")}
    above = list(levels.level(length | columns).values())[1:]
    # A row of zeros has no direction: it stays a row of zeros.
    scaled = [
        f"CASE WHEN length = 0 THEN {value} ELSE {value} / length END"
        for value in above[: len(values)]
    ]
    return levels.named([*scaled, *above[len(values) :]], "x")


# --- the others -------------------------------------------------------------------------------


def _linear(levels: Levels, stage: Linear, position: int, values: Vector) -> Vector:
    if stage.picks:
        return _picks(levels, stage, values)
    constants = [0.0] * stage.n_sums if stage.constant is None else _numbers(levels, stage.constant)
    circuit = levels.circuit_at(position)
    if circuit is not None:
        return _circuit(levels, circuit, values, constants)
    if levels.is_of_arrays(position):
        return _inner_products(levels, stage, values, constants)
    written = values if values.is_named else [_as_factor(value) for value in values]
    terms = [
        f"{written[place]} * {levels.literal(weight)}"
        for place, weight in zip(stage.input.tolist(), _numbers(levels, stage.value), strict=True)
    ]
    ends = pairwise(stage.starts.tolist())
    sums = [
        levels.sum_of(terms[first:last], [], constant)
        for (first, last), constant in zip(ends, constants, strict=True)
    ]
    return levels.named(sums, "h")


def _inner_products(
    levels: Levels, stage: Linear, values: Vector, constants: Sequence[float]
) -> Vector:
    """Sums as inner products of one array of the inputs with the weights, each one literal."""
    products = _with_arrays(levels, levels.dialect.inner_product, stage.matrix(), values)
    sums = [
        levels.sum_of([product], [], constant)
        for product, constant in zip(products, constants, strict=True)
    ]
    return levels.named(sums, "h")


def _with_arrays(
    levels: Levels, function: str | None, matrix: Array, values: Vector
) -> Iterator[str]:
    """A function of one array of the values, and of each row of a matrix as one literal."""
    dialect, dtype = levels.dialect, levels.job.dtype
    assert function is not None
    assert dialect.array_cast is not None
    facts = {"type": levels.job.type_name, "count": len(values)}
    there = "complete = 1" if levels.complete else ""
    packed = Vector(values, there=there).as_array(dialect)
    (array,) = levels.level({"a": dialect.array_cast.format(array=packed, **facts)}).values()
    # So many digits are read as the same number again.
    digits = f"%.{9 if dtype == 'float32' else 17}g"
    for row in matrix.astype(dtype).tolist():
        numbers = ",".join(map(digits.__mod__, row))
        yield function.format(array=array, numbers=numbers, **facts)


# Names, places and products of them.
_PRODUCT = re.compile(r"[\w#\[\] *]+")


def _as_factor(value: str) -> str:
    """An expression as it stands in a product."""
    return value if _PRODUCT.fullmatch(value) else f"({value})"


def _numbers(levels: Levels, array: Any) -> list[float]:
    """Numbers as the features' type has them."""
    numbers: list[float] = array.astype(levels.job.dtype).tolist()
    return numbers


def _picks(levels: Levels, stage: Linear, values: Vector) -> Vector:
    factors = _numbers(levels, stage.value)
    constants = [0.0] * stage.n_sums if stage.constant is None else _numbers(levels, stage.constant)
    items = []
    for place, factor, constant in zip(stage.input.tolist(), factors, constants, strict=True):
        if not factor:
            items.append(levels.if_complete(levels.literal(constant)))
            continue
        value = values[place] if values.is_named else f"({values[place]})"
        item = f"{value} * {levels.literal(factor)}" if factor != 1 else value
        items.append(f"{item} + {levels.literal(constant)}" if constant else item)
    return Vector(items)


def _butterflies(levels: Levels, stage: Butterflies, position: int, values: Vector) -> Vector:
    circuit = levels.circuit_at(position)
    assert circuit is not None
    return _circuit(levels, circuit, values, [0.0] * stage.n_outputs)


def _circuit(
    levels: Levels, circuit: Circuit, values: Vector, constants: Sequence[float]
) -> Vector:
    below: Sequence[str] = values
    for depth, layer in enumerate(circuit.layers):
        pairs = zip(layer.first.tolist(), layer.second.tolist(), strict=True)
        items = {f"b{depth}_{i}": _pair(*pair, below) for i, pair in enumerate(pairs)}
        if items:  # all hyperplanes may be all zero
            below = list(levels.level(items).values())
    terms = circuit.terms.tolist()
    sums = []
    for (first, last), constant in zip(pairwise(circuit.starts.tolist()), constants, strict=True):
        plus = [below[place - 1] for place in terms[first:last] if place > 0]
        minus = [below[-place - 1] for place in terms[first:last] if place < 0]
        sums.append(levels.sum_of(plus, minus, constant))
    return levels.named(sums, "h")


def _pair(first: int, second: int, values: Sequence[str]) -> str:
    """One column of a layer."""
    if not second:
        return values[first - 1]
    return f"{values[first - 1]} {'+' if second > 0 else '-'} {values[abs(second) - 1]}"


def _sum_of_products(levels: Levels, stage: SumOfProducts, position: int, values: Vector) -> Vector:
    if position in levels.plan.pairs:
        terms = _terms_of_pairs(levels, levels.plan.pairs[position], values)
    else:
        terms = [
            [" * ".join(values[i] for i in factors if i >= 0) for factors in terms_of]
            for terms_of in stage.factors.tolist()
        ]
    sums = []
    for products, signs in zip(terms, stage.sign.tolist(), strict=True):
        plus = [product for product, sign in zip(products, signs, strict=True) if sign > 0]
        minus = [product for product, sign in zip(products, signs, strict=True) if sign < 0]
        sums.append(levels.sum_of(plus, minus))
    return Vector(sums)


def _terms_of_pairs(levels: Levels, pairs: Pairs, values: Vector) -> list[list[str]]:
    """Terms where many products of two factors are in more than one: each computed once."""
    single = sorted(set(pairs.others.ravel().tolist()))
    products = {f"q{i}": f"{values[a]} * {values[b]}" for i, (a, b) in enumerate(pairs.pairs)}
    above = levels.level(products | {f"h{i}": values[i] for i in single})
    return [
        [
            " * ".join([above[f"q{pair}"], *(above[f"h{i}"] for i in others)])
            for pair, others in zip(pairs_of, others_of, strict=True)
        ]
        for pairs_of, others_of in zip(pairs.place.tolist(), pairs.others.tolist(), strict=True)
    ]


def _distances(levels: Levels, stage: Distances, position: int, values: Vector) -> Vector:
    if levels.is_of_arrays(position):
        function = levels.dialect.squared_distance
        return levels.named(list(_with_arrays(levels, function, stage.matrix(), values)), "h")
    differences = [
        f"({values[place]} - {levels.literal(coordinate)})" if coordinate else values[place]
        for place, coordinate in zip(
            stage.input.tolist(), _numbers(levels, stage.value), strict=True
        )
    ]
    squares = [f"{one} * {one}" for one in differences]
    sums = [balanced(squares[first:last], " + ") for first, last in pairwise(stage.starts.tolist())]
    return levels.named(sums, "h")


def _elementwise(levels: Levels, stage: Elementwise, position: int, values: Vector) -> Vector:
    dialect, dtype = levels.dialect, levels.job.dtype
    return Vector(levels.cast(dialect.function(stage.function, value, dtype)) for value in values)


WRITERS: dict[type[Stage], Callable[[Levels, Any, int, Vector], Vector]] = {
    Linear: _linear,
    Butterflies: _butterflies,
    SumOfProducts: _sum_of_products,
    Distances: _distances,
    Elementwise: _elementwise,
    Bounds: answers.bounds,
    Shares: answers.shares,
    Votes: answers.votes,
    Answers: answers.answers,
}
