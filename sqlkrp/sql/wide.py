"""The wide form: a row program as nested SELECTs over unrolled columns.

Each stage writes its outputs as expressions over the columns of the SELECT below it. A stage whose
inputs are used more than once has them named in a SELECT of their own first, so each is computed
once. Sums are balanced: however many terms, no expression is nested deeply.

Statements reach a hundred thousand terms, so they are joined as text over names that were quoted
once; they are never parsed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import balanced, firm_cast, listed, number, quote, soft_cast, text
from sqlkrp.sql.packing import packed
from sqlkrp.sql.planning import Plan
from sqlkrp.sql.sharing import Circuit, Pairs
from sqlkrp.sql.tables import Gathered
from sqlkrp.stages import (
    Affine,
    Distances,
    Elementwise,
    Prepare,
    Scale,
    Stage,
    SumOfProducts,
    WeightedSums,
)

__all__ = ["wide_select"]

# Names are for people, who do not read a statement of more operations column by column.
_READABLE = 5_000


def wide_select(
    plan: Plan,
    relation: str,
    keep: Sequence[str],
    dialect: Dialect,
    *,
    array: str | None = None,
    bits: Sequence[str] = (),
    guard: bool = True,
    booleans: Collection[str] = (),
    gathered: Gathered | None = None,
) -> tuple[str, int]:
    """The SELECT of a planned program's outputs from ``relation`` (SQL), in the wide form.

    Also returns how many entries its widest SELECT has. ``keep`` columns come first. With
    ``array`` the outputs are one array column of that name, with ``bits`` they are signs packed
    into columns of these names. With ``guard`` a missing value under
    ``nulls="error"`` stops the statement. Inputs that were ``gathered`` are prepared already.
    """
    program = plan.program
    carried = [f"k{i}" for i in range(len(keep))]
    sources = [quote(name, dialect) for name in keep]
    by_position = plan.additions + plan.products > _READABLE
    writer = _Writer(
        dialect, program.prepare.dtype, relation, guard, booleans, by_position, carried, sources
    )
    values: list[str] = []
    if gathered is not None:
        values = writer.go_on_from(gathered, complete=program.prepare.nulls != "propagate")
    for i, stage in enumerate(program.stages):
        if i == 0 and gathered is not None:
            continue
        if i and isinstance(program.stages[i - 1], _UNNAMED) and not isinstance(stage, Scale):
            values = writer.named(values, "p")
        if i in plan.chosen:
            values = _circuit(plan.chosen[i].circuit, values, writer)
        elif i in plan.pairs:
            values = _pairs(plan.pairs[i], stage, values, writer)
        else:
            values = _WRITERS[type(stage)](stage, values, writer)
    kept = [f"{alias} AS {quote(name, dialect)}" for alias, name in zip(carried, keep, strict=True)]
    if bits:
        outputs = [
            f"{writer.if_complete(value)} AS {quote(name, dialect)}"
            for value, name in zip(packed(values, dialect), bits, strict=True)
        ]
    elif array is None:
        outputs = [
            f"{value} AS {quote(name, dialect)}"
            for value, name in zip(values, program.names, strict=True)
        ]
    else:
        outputs = [f"{_as_array(values, writer)} AS {quote(array, dialect)}"]
    select = writer.select([*kept, *outputs])
    if gathered is None:
        return select, writer.widest
    return gathered.statement(f"{select}\nORDER BY s.{gathered.place}"), writer.widest


@dataclass
class _Writer:
    """The FROM clause below the SELECT that is being written, and what goes through to it."""

    dialect: Dialect
    dtype: str
    below: str
    """The relation, then the SELECTs over it."""
    guard: bool
    booleans: Collection[str] = ()
    by_position: bool = False
    """Whether to refer to columns by their places, where the dialect can."""
    carried: Sequence[str] = ()
    carry_sources: Sequence[str] = ()
    complete: bool = False
    """Whether a column ``complete`` is 1 in rows with features; else all rows have them."""
    levels: int = 0
    widest: int = 0
    """Entries of the widest SELECT so far."""

    @property
    def type(self) -> str:
        """The SQL type that features are computed in."""
        return self.dialect.float_types[self.dtype]

    def literal(self, value: float) -> str:
        """A number of that type."""
        return number(value, self.dtype, self.dialect)

    def if_complete(self, value: str) -> str:
        """A value, but NULL in a row without features."""
        return f"CASE WHEN complete = 1 THEN {value} END" if self.complete else value

    def zero(self) -> str:
        """The sum of nothing."""
        return self.if_complete(self.literal(0.0))

    def cast(self, value: str, dtype: str | None = None) -> str:
        """A cast to that type, or to another's."""
        kind = self.type if dtype is None else self.dialect.float_types[dtype]
        return self.dialect.cast.format(value=value, type=kind)

    def go_on_from(self, gathered: Gathered, *, complete: bool) -> list[str]:
        """Read inputs that are prepared already; some are NULL if not all rows are ``complete``."""
        self.below = f"{gathered.relation} s"
        self.carried = [gathered.place, *self.carried]
        self.complete = not complete
        self.levels, self.widest = 1, gathered.widest
        return [f"x{i}" for i in range(gathered.n_inputs)]

    def level(self, items: Mapping[str, str]) -> dict[str, str]:
        """Open a SELECT of these items (name to value) over what is below; carried ones go along.

        Returns how each is written from now on: its name, or an item of an array where there are
        more than a SELECT may have.
        """
        carried = list(self.carried)
        if not self.levels:
            pairs = zip(self.carry_sources, self.carried, strict=True)
            carried = [f"{column} AS {alias}" for column, alias in pairs]
        elif self.complete:
            carried.append("complete")
        columns, packed = self._split(items, len(carried))
        written = [
            name if value == name else f"{value} AS {name}" for name, value in columns.items()
        ]
        references = self._references(columns, 1 + len(carried))
        if packed:
            array = f"rest{self.levels}"
            assert self.dialect.array is not None
            values = self.dialect.array.format(items=", ".join(packed.values()))
            written.append(f"{values} AS {array}")
            references |= {name: self.dialect.item(array, i) for i, name in enumerate(packed)}
        self.widest = max(self.widest, len(carried) + len(written))
        fence = f"\n{self.dialect.fence}" if self.dialect.fence else ""
        listing = listed([*carried, *written])
        self.below = f"(\nSELECT\n{listing}\nFROM {self.below}{fence}\n) s"
        self.levels += 1
        return references

    def _references(self, columns: Iterable[str], first: int) -> dict[str, str]:
        """How columns are written in the next SELECT; they begin at a place."""
        position = self.dialect.position if self.by_position else None
        if position is None:
            return {name: name for name in columns}
        return {name: position.format(place=i) for i, name in enumerate(columns, start=first)}

    def _split(
        self, items: Mapping[str, str], n_carried: int
    ) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """What is a column of its own, and what goes into one array as there are too many."""
        limit = self.dialect.limits.select_columns
        fits = limit is None or n_carried + len(items) <= limit
        if limit is None or fits or self.dialect.array is None:
            return items, {}
        room, pairs = max(limit - n_carried - 1, 0), list(items.items())
        return dict(pairs[:room]), dict(pairs[room:])

    def named(self, values: Sequence[str], letter: str) -> list[str]:
        """Name each value in a SELECT of its own, so that it can be used more than once."""
        return list(self.level({f"{letter}{i}": value for i, value in enumerate(values)}).values())

    def select(self, items: Sequence[str]) -> str:
        """The whole statement, with these items outermost."""
        self.widest = max(self.widest, len(items))
        return f"SELECT\n{listed(items)}\nFROM {self.below}"


def _prepare(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, Prepare)
    dialect = writer.dialect
    columns = [quote(name, dialect) for name in stage.columns]
    constant = [] if stage.constant is None else [writer.literal(stage.constant)]
    if stage.nulls == "error" and not writer.guard:
        values = [
            firm_cast(column, writer.dtype, dialect, boolean=name in writer.booleans)
            for column, name in zip(columns, stage.columns, strict=True)
        ]
    else:
        soft = [
            soft_cast(column, writer.dtype, dialect, boolean=name in writer.booleans)
            for column, name in zip(columns, stage.columns, strict=True)
        ]
        values = writer.named(soft, "x")
        finite = [dialect.finite(value, stage.dtype) for value in values]
        if stage.nulls == "propagate":
            complete = f"CASE WHEN {balanced(finite, ' AND ')} THEN 1 ELSE 0 END"
            inputs = {f"x{i}": value for i, value in enumerate(values)}
            above = writer.level({"complete": complete, **inputs})
            writer.complete = True
            values = [writer.if_complete(above[name]) for name in inputs]
            constant = [writer.if_complete(value) for value in constant]
        else:
            values = [
                f"CASE WHEN {test} THEN {value} ELSE {otherwise} END"
                for test, value, otherwise in zip(
                    finite, values, _instead_of_missing(stage, values, writer), strict=True
                )
            ]
    values = _held(stage, values, writer)
    values = [
        _affine(value, float(shift), float(scale), writer)
        for value, shift, scale in zip(values, stage.shift, stage.scale, strict=True)
    ]
    if stage.unit_length:
        return _unit_length(values, constant, writer)
    return writer.named([*values, *constant], "x")


def _held(stage: Prepare, values: list[str], writer: _Writer) -> list[str]:
    """Values inside their bounds; by CASE, as a missing one is to stay missing everywhere."""
    if not stage.bounds:
        return values
    low, high = (bound.astype(writer.dtype).tolist() for bound in stage.bounds)
    values = writer.named(values, "x")
    return [
        f"CASE WHEN {value} < {writer.literal(least)} THEN {writer.literal(least)} "
        f"WHEN {value} > {writer.literal(most)} THEN {writer.literal(most)} ELSE {value} END"
        if held
        else value
        for value, least, most, held in zip(values, low, high, stage.held.tolist(), strict=True)
    ]


def _instead_of_missing(stage: Prepare, values: list[str], writer: _Writer) -> list[str]:
    if stage.fills:
        return [writer.literal(float(fill)) for fill in stage.fill]
    return [
        writer.dialect.error(
            text(f"missing value in column {name}", writer.dialect), value, writer.type
        )
        for name, value in zip(stage.columns, values, strict=True)
    ]


def _affine(value: str, shift: float, scale: float, writer: _Writer) -> str:
    if shift:
        value = f"({value} - {writer.literal(shift)})"
    return f"{value} * {writer.literal(scale)}" if scale != 1 else value


def _unit_length(values: list[str], constant: list[str], writer: _Writer) -> list[str]:
    named = writer.named([*values, *constant], "x")
    # In double precision, as squares leave the range of single precision soon.
    doubles = named[: len(values)]
    if writer.dtype != "float64":
        doubles = [writer.cast(value, "float64") for value in doubles]
    squares = balanced([f"{value} * {value}" for value in doubles], " + ")
    columns = {f"x{i}": value for i, value in enumerate(named)}
    length = {"length": writer.cast(f"SQRT({squares})")}
    above = list(writer.level(length | columns).values())[1:]
    # A row of zeros has no direction: it stays a row of zeros.
    scaled = [
        f"CASE WHEN length = 0 THEN {value} ELSE {value} / length END"
        for value in above[: len(values)]
    ]
    return writer.named([*scaled, *above[len(values) :]], "x")


def _circuit(circuit: Circuit, values: list[str], writer: _Writer) -> list[str]:
    for depth, layer in enumerate(circuit.layers):
        pairs = zip(layer.first.tolist(), layer.second.tolist(), strict=True)
        items = {f"b{depth}_{i}": _pair(*pair, values) for i, pair in enumerate(pairs)}
        if items:  # all hyperplanes may be all zero
            values = list(writer.level(items).values())
    starts, terms = circuit.starts.tolist(), circuit.terms.tolist()
    sums = []
    for first, last in pairwise(starts):
        plus = [values[place - 1] for place in terms[first:last] if place > 0]
        minus = [values[-place - 1] for place in terms[first:last] if place < 0]
        sums.append(_difference(plus, minus, writer))
    return writer.named(sums, "h")


def _pair(first: int, second: int, values: list[str]) -> str:
    """One column of a layer."""
    if not second:
        return values[first - 1]
    return f"{values[first - 1]} {'+' if second > 0 else '-'} {values[abs(second) - 1]}"


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
    terms = [
        [" * ".join(values[i] for i in factors if i >= 0) for factors in terms_of]
        for terms_of in stage.factors.tolist()
    ]
    return _sums_of_terms(terms, stage, writer)


def _pairs(shared: Pairs, stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    """The same, where many products of two factors are in more than one term."""
    assert isinstance(stage, SumOfProducts)
    single = sorted(set(shared.others.ravel().tolist()))
    products = {f"q{i}": f"{values[a]} * {values[b]}" for i, (a, b) in enumerate(shared.pairs)}
    above = writer.level(products | {f"h{i}": values[i] for i in single})
    terms = [
        [
            " * ".join([above[f"q{pair}"], *(above[f"h{i}"] for i in others)])
            for pair, others in zip(pairs_of, others_of, strict=True)
        ]
        for pairs_of, others_of in zip(shared.place.tolist(), shared.others.tolist(), strict=True)
    ]
    return _sums_of_terms(terms, stage, writer)


def _sums_of_terms(terms: list[list[str]], stage: SumOfProducts, writer: _Writer) -> list[str]:
    sums = []
    for products, signs in zip(terms, stage.sign.tolist(), strict=True):
        plus = [product for product, sign in zip(products, signs, strict=True) if sign > 0]
        minus = [product for product, sign in zip(products, signs, strict=True) if sign < 0]
        sums.append(_difference(plus, minus, writer))
    return sums


def _scale(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, Scale)
    constant = writer.literal(stage.constant)
    return [f"({value}) * {constant}" for value in values]


def _affine_places(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, Affine)
    dtype = writer.dtype
    columns = (stage.place, stage.factor.astype(dtype), stage.constant.astype(dtype))
    items = []
    for place, factor, constant in zip(*(column.tolist() for column in columns), strict=True):
        if not factor:
            items.append(writer.if_complete(writer.literal(constant)))
            continue
        item = f"{values[place]} * {writer.literal(factor)}" if factor != 1 else values[place]
        items.append(f"{item} + {writer.literal(constant)}" if constant else item)
    return items


def _elementwise(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, Elementwise)
    dialect = writer.dialect
    return [writer.cast(dialect.function(stage.function, value, writer.dtype)) for value in values]


def _distances(stage: Stage, values: list[str], writer: _Writer) -> list[str]:
    assert isinstance(stage, Distances)
    sums = []
    for point in stage.points.astype(writer.dtype).tolist():
        differences = [
            f"({value} - {writer.literal(coordinate)})" if coordinate else value
            for value, coordinate in zip(values, point, strict=True)
            if not math.isnan(coordinate)
        ]
        sums.append(balanced([f"{one} * {one}" for one in differences], " + "))
    return writer.named(sums, "h")


_WRITERS: dict[type[Stage], Callable[[Any, list[str], _Writer], list[str]]] = {
    Prepare: _prepare,
    WeightedSums: _weighted_sums,
    SumOfProducts: _sum_of_products,
    Scale: _scale,
    Affine: _affine_places,
    Elementwise: _elementwise,
    Distances: _distances,
}


# What these give is an expression; a stage that reads a value more than once has it named first.
_UNNAMED = (SumOfProducts, Scale, Affine, Elementwise)


def _difference(plus: Sequence[str], minus: Sequence[str], writer: _Writer) -> str:
    """Sum of ``plus`` minus sum of ``minus``, balanced; the constant 0 when both are empty."""
    if not plus and not minus:
        return writer.zero()
    if not minus:
        return balanced(plus, " + ")
    if not plus:
        return f"-({balanced(minus, ' + ')})"
    return f"({balanced(plus, ' + ')}) - ({balanced(minus, ' + ')})"


def _as_array(values: list[str], writer: _Writer) -> str:
    dialect = writer.dialect
    assert dialect.array is not None
    assert dialect.array_cast is not None
    array = dialect.array.format(items=", ".join(values))
    if writer.complete:
        # A row without features has no array, rather than an array of NULLs.
        array = dialect.array_when.format(test="complete = 1", array=array)
    return dialect.array_cast.format(array=array, type=writer.type, count=len(values))
