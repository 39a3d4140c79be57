"""The wide form's sums: of inputs, of products, and of squared differences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sqlkrp.sql.levels import Levels
from sqlkrp.sql.names import balanced
from sqlkrp.sql.vectors import Vector
from sqlkrp.sql.wide_arrays import functions_of_array
from sqlkrp.sql.wide_shared import terms_of_pairs, written_circuit
from sqlkrp.stages.records import Butterflies, Distances, Linear, SumOfProducts

__all__ = ["butterflies", "distances", "linear", "sum_of_products"]


def linear(levels: Levels, stage: Linear, position: int, values: Vector) -> Vector:
    """Signed or weighted sums of inputs: the way that the plan or the dialect has for them."""
    if stage.picks:
        return _picks(levels, stage, values)
    constants = _constants(levels, stage)
    circuit = levels.circuit_at(position)
    if circuit is not None:
        return written_circuit(levels, circuit, values, constants)
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


# Names, places and products of them.
_PRODUCT = re.compile(r"[\w#\[\] *]+")


def _as_factor(value: str) -> str:
    """An expression as it stands in a product."""
    return value if _PRODUCT.fullmatch(value) else f"({value})"


def _picks(levels: Levels, stage: Linear, values: Vector) -> Vector:
    factors = _numbers(levels, stage.value)
    constants = _constants(levels, stage)
    items = []
    for place, factor, constant in zip(stage.input.tolist(), factors, constants, strict=True):
        if not factor:
            items.append(levels.if_complete(levels.literal(constant)))
            continue
        value = values[place] if values.is_named else f"({values[place]})"
        item = f"{value} * {levels.literal(factor)}" if factor != 1 else value
        items.append(f"{item} + {levels.literal(constant)}" if constant else item)
    as_they_are = stage.constant is None and set(factors) <= {1.0}
    return Vector(items, is_named=values.is_named and as_they_are)


def butterflies(levels: Levels, stage: Butterflies, position: int, values: Vector) -> Vector:
    """Signed sums of a Hadamard pool, by its butterflies."""
    circuit = levels.circuit_at(position)
    assert circuit is not None
    return written_circuit(levels, circuit, values, [0.0] * stage.n_outputs)


def sum_of_products(levels: Levels, stage: SumOfProducts, position: int, values: Vector) -> Vector:
    """Signed sums of products of inputs."""
    stage = levels.plan.products_of.get(position, stage)
    if position in levels.plan.pairs:
        terms = terms_of_pairs(levels, levels.plan.pairs[position], values)
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


def distances(levels: Levels, stage: Distances, position: int, values: Vector) -> Vector:
    """Squared distances from points."""
    if levels.is_of_arrays(position):
        function = levels.dialect.squared_distance
        return levels.named(list(functions_of_array(levels, function, stage, values)), "h")
    differences = [
        f"({values[place]} - {levels.literal(coordinate)})" if coordinate else values[place]
        for place, coordinate in zip(
            stage.input.tolist(), _numbers(levels, stage.value), strict=True
        )
    ]
    squares = [f"{one} * {one}" for one in differences]
    sums = [balanced(squares[first:last], " + ") for first, last in pairwise(stage.starts.tolist())]
    return levels.named(sums, "h")


def _inner_products(
    levels: Levels, stage: Linear, values: Vector, constants: Sequence[float]
) -> Vector:
    """Sums as inner products of one array of the inputs with the weights, each one literal."""
    products = functions_of_array(levels, levels.dialect.inner_product, stage, values)
    sums = [
        levels.sum_of([product], [], constant)
        for product, constant in zip(products, constants, strict=True)
    ]
    return levels.named(sums, "h")


def _constants(levels: Levels, stage: Linear) -> list[float]:
    """What is added to each sum."""
    return [0.0] * stage.n_sums if stage.constant is None else _numbers(levels, stage.constant)


def _numbers(levels: Levels, array: Any) -> list[float]:
    """Numbers as the features' type has them."""
    found: list[float] = array.astype(levels.job.dtype).tolist()
    return found
