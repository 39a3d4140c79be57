"""The wide form: a row program as nested SELECTs over unrolled columns.

Each stage writes its outputs as expressions over the columns of the SELECT below it. A stage whose
inputs are used more than once has them named in a SELECT of their own first, so each is computed
once. Sums are balanced: however many terms, no expression is nested deeply.

Statements reach a hundred thousand terms, so they are joined as text over names that were quoted
once; they are never parsed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlkrp.sql.dialects import Dialect
from sqlkrp.sql.names import listed, number, quote, soft_cast, text
from sqlkrp.stages import (
    Butterflies,
    Prepare,
    Program,
    Scale,
    SignedSums,
    Stage,
    SumOfProducts,
    WeightedSums,
)

__all__ = ["wide_select"]

# Terms side by side before a parenthesis opens: 10 keeps 10^n terms n parentheses deep.
_BLOCK = 10


def wide_select(
    program: Program,
    relation: str,
    keep: Sequence[str],
    dialect: Dialect,
    *,
    array: str | None = None,
    guard: bool = True,
    booleans: Collection[str] = (),
) -> str:
    """The SELECT of a program's outputs from ``relation`` (SQL), in the wide form.

    ``keep`` columns come first. With ``array`` the outputs are one array column of that name.
    With ``guard`` a missing value under ``nulls="error"`` stops the statement.
    """
    carried = [f"k{i}" for i in range(len(keep))]
    sources = [quote(name, dialect) for name in keep]
    writer = _Writer(dialect, program.prepare.dtype, relation, guard, booleans, carried, sources)
    values: list[str] = []
    for stage in program.stages:
        values = _WRITERS[type(stage)](stage, values, writer)
    kept = [f"{alias} AS {quote(name, dialect)}" for alias, name in zip(carried, keep, strict=True)]
    if array is None:
        outputs = [
            f"{value} AS {quote(name, dialect)}"
            for value, name in zip(values, program.names, strict=True)
        ]
    else:
        outputs = [f"{_as_array(values, writer)} AS {quote(array, dialect)}"]
    return writer.select([*kept, *outputs])


@dataclass
class _Writer:
    """The FROM clause below the SELECT that is being written, and what goes through to it."""

    dialect: Dialect
    dtype: str
    below: str
    """The relation, then the SELECTs over it."""
    guard: bool
    booleans: Collection[str] = ()
    carried: Sequence[str] = ()
    carry_sources: Sequence[str] = ()
    complete: str = ""
    """A column that is true in rows with features; empty where all rows have them."""
    levels: int = 0

    @property
    def type(self) -> str:
        """The SQL type that features are computed in."""
        return self.dialect.float_types[self.dtype]

    def literal(self, value: float) -> str:
        """A number of that type."""
        return number(value, self.dtype, self.dialect)

    def zero(self) -> str:
        """The sum of nothing: 0, but NULL in a row without features."""
        zero = self.literal(0.0)
        return f"CASE WHEN {self.complete} THEN {zero} END" if self.complete else zero

    def cast(self, value: str) -> str:
        """A cast to that type."""
        return self.dialect.cast.format(value=value, type=self.type)

    def level(self, items: Sequence[str]) -> None:
        """Open a SELECT of these items over what is below; carried columns go along."""
        carried = list(self.carried)
        if not self.levels:
            pairs = zip(self.carry_sources, self.carried, strict=True)
            carried = [f"{column} AS {alias}" for column, alias in pairs]
        elif self.complete:
            carried.append(self.complete)
        fence = f"\n{self.dialect.fence}" if self.dialect.fence else ""
        columns = listed([*carried, *items])
        self.below = f"(\nSELECT\n{columns}\nFROM {self.below}{fence}\n) AS s"
        self.levels += 1

    def named(self, values: Sequence[str], letter: str) -> list[str]:
        """Name each value in a SELECT of its own, so that it can be used more than once."""
        names = [f"{letter}{i}" for i in range(len(values))]
        self.level([f"{value} AS {name}" for value, name in zip(values, names, strict=True)])
        return names

    def select(self, items: Sequence[str]) -> str:
        """The whole statement, with these items outermost."""
        return f"SELECT\n{listed(items)}\nFROM {self.below}"


def _prepare(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, Prepare)
    dialect = writer.dialect
    columns = [quote(name, dialect) for name in stage.columns]
    constant = [] if stage.constant is None else [writer.literal(stage.constant)]
    if stage.nulls == "error" and not writer.guard:
        values = [
            (dialect.boolean_cast if name in writer.booleans else dialect.cast).format(
                value=column, type=writer.type
            )
            for column, name in zip(columns, stage.columns, strict=True)
        ]
    else:
        soft = [
            soft_cast(column, writer.dtype, dialect, boolean=name in writer.booleans)
            for column, name in zip(columns, stage.columns, strict=True)
        ]
        values = writer.named(soft, "x")
        finite = [dialect.is_finite.format(value=value) for value in values]
        if stage.nulls == "propagate":
            writer.level([*values, f"{_balanced(finite, ' AND ')} AS complete"])
            writer.complete = "complete"
            values = [f"CASE WHEN complete THEN {value} END" for value in values]
            constant = [f"CASE WHEN complete THEN {value} END" for value in constant]
        else:
            values = [
                f"CASE WHEN {test} THEN {value} ELSE {otherwise} END"
                for test, value, otherwise in zip(
                    finite, values, _instead_of_missing(stage, writer), strict=True
                )
            ]
    values = [
        _affine(value, float(shift), float(scale), writer)
        for value, shift, scale in zip(values, stage.shift, stage.scale, strict=True)
    ]
    if stage.unit_length:
        return _unit_length(values, constant, writer)
    return writer.named([*values, *constant], "x")


def _instead_of_missing(stage: Prepare, writer: _Writer) -> list[str]:
    if stage.fills:
        return [writer.literal(float(fill)) for fill in stage.fill]
    messages = [text(f"missing value in column {name}") for name in stage.columns]
    error = writer.dialect.raise_error
    return [
        error.format(message=message, value=f"x{i}", type=writer.type)
        for i, message in enumerate(messages)
    ]


def _affine(value: str, shift: float, scale: float, writer: _Writer) -> str:
    if shift:
        value = f"({value} - {writer.literal(shift)})"
    return f"{value} * {writer.literal(scale)}" if scale != 1 else value


def _unit_length(values: list[str], constant: list[str], writer: _Writer) -> list[str]:
    named = writer.named([*values, *constant], "x")
    inputs, constant = named[: len(values)], named[len(values) :]
    squares = _balanced([f"{name} * {name}" for name in inputs], " + ")
    writer.level([*named, f"{writer.cast(f'SQRT({squares})')} AS length"])
    # A row of zeros has no direction: it stays a row of zeros.
    scaled = [f"CASE WHEN length = 0 THEN {name} ELSE {name} / length END" for name in inputs]
    return writer.named([*scaled, *constant], "x")


def _signed_sums(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, SignedSums)
    features, signs = stage.feature.tolist(), stage.sign.tolist()
    sums = []
    for first, last in zip(stage.starts, stage.starts[1:], strict=False):
        plus: list[str] = []
        minus: list[str] = []
        for i in range(first, last):
            (plus if signs[i] > 0 else minus).append(values[features[i]])
        sums.append(_difference(plus, minus, writer))
    return writer.named(sums, "h")


class _Signed(NamedTuple):
    """A column that stands for plus or minus a value; the sign is paid for only at the end."""

    column: str
    negative: bool


def _butterflies(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, Butterflies)
    places: list[_Signed | None] = [
        _Signed(values[column], sign < 0) if column >= 0 else None
        for column, sign in zip(
            stage.place_column.ravel().tolist(), stage.place_sign.ravel().tolist(), strict=True
        )
    ]
    half, layer = 1, 0
    while half < stage.block_size:
        places = _butterfly_layer(places, half, layer, writer)
        half, layer = 2 * half, layer + 1
    zero = writer.zero()
    outputs = [
        zero if place is None else f"-{place.column}" if place.negative else place.column
        for place in places
    ]
    return writer.named(outputs, "h")


def _butterfly_layer(
    places: list[_Signed | None], half: int, layer: int, writer: _Writer
) -> list[_Signed | None]:
    """One layer a +- b of every pair that lies ``half`` apart, as one SELECT."""
    out: list[_Signed | None] = [None] * len(places)
    items: dict[str, str] = {}
    for first in range(0, len(places), 2 * half):
        for low in range(first, first + half):
            high = low + half
            a, b = places[low], places[high]
            for place, other in ((low, b), (high, _negated(b))):
                name = f"b{layer}_{place}"
                expression, out[place] = _add(a, other, name)
                # A lone input goes through under its own name, once.
                items[_column_of(out[place])] = expression
    writer.level([item for name, item in items.items() if name])
    return out


def _column_of(place: _Signed | None) -> str:
    """The column of a place; empty for a place that holds nothing."""
    return place.column if place else ""


def _add(a: _Signed | None, b: _Signed | None, name: str) -> tuple[str, _Signed | None]:
    """The item that computes a + b, and the signed column that it then is."""
    if a is None or b is None:
        lone = a or b
        return _column_of(lone), lone
    if a.negative == b.negative:
        return f"{a.column} + {b.column} AS {name}", _Signed(name, a.negative)
    first, second = (b, a) if a.negative else (a, b)
    return f"{first.column} - {second.column} AS {name}", _Signed(name, False)


def _negated(place: _Signed | None) -> _Signed | None:
    return place and _Signed(place.column, not place.negative)


def _weighted_sums(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, WeightedSums)
    sums = []
    for weights in stage.weights.tolist():
        terms = [
            f"{value} * {writer.literal(weight)}"
            for value, weight in zip(values, weights, strict=True)
            if weight
        ]
        sums.append(_difference(terms, [], writer))
    return writer.named(sums, "h")


def _sum_of_products(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, SumOfProducts)
    sums = []
    for factors, signs in zip(stage.factors.tolist(), stage.sign.tolist(), strict=True):
        plus: list[str] = []
        minus: list[str] = []
        for term, sign in zip(factors, signs, strict=True):
            (plus if sign > 0 else minus).append(" * ".join(values[i] for i in term))
        sums.append(_difference(plus, minus, writer))
    return sums


def _scale(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, Scale)
    constant = writer.literal(stage.constant)
    return [f"({value}) * {constant}" for value in values]


_WRITERS: dict[type[Stage], Callable[[Any, list[str], _Writer], list[str]]] = {
    Prepare: _prepare,
    SignedSums: _signed_sums,
    Butterflies: _butterflies,
    WeightedSums: _weighted_sums,
    SumOfProducts: _sum_of_products,
    Scale: _scale,
}


def _difference(plus: Sequence[str], minus: Sequence[str], writer: _Writer) -> str:
    """Sum of ``plus`` minus sum of ``minus``, balanced; the constant 0 when both are empty."""
    if not plus and not minus:
        return writer.zero()
    if not minus:
        return _balanced(plus, " + ")
    if not plus:
        return f"-({_balanced(minus, ' + ')})"
    return f"({_balanced(plus, ' + ')}) - ({_balanced(minus, ' + ')})"


def _balanced(terms: Sequence[str], operator: str) -> str:
    """The terms joined by an operator, in blocks of blocks: depth grows as the logarithm."""
    while len(terms) > _BLOCK:
        blocks = [terms[i : i + _BLOCK] for i in range(0, len(terms), _BLOCK)]
        terms = [block[0] if len(block) == 1 else f"({operator.join(block)})" for block in blocks]
    return operator.join(terms)


def _as_array(values: list[str], writer: _Writer) -> str:
    array = writer.dialect.array.format(items=", ".join(values))
    if writer.complete:
        # A row without features has no array, rather than an array of NULLs.
        array = f"CASE WHEN {writer.complete} THEN {array} END"
    return writer.dialect.array_cast.format(array=array, type=writer.type, count=len(values))
