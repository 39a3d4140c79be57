"""The wide form: a row program as nested SELECTs over unrolled columns.

Each stage writes its outputs as expressions over the columns of the SELECT below it. A stage whose
inputs are used more than once has them named in a SELECT of their own first, so each is computed
once. Sums are balanced: however many terms, no expression is nested deeply.

Statements reach a hundred thousand terms, so they are joined as text over names that were quoted
once; they are never parsed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from sqlkrp.sql.entries import Gathered, gathered_rows
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import Job, Written
from sqlkrp.sql.names import balanced, firm_cast, listed, number, quote, soft_cast, text
from sqlkrp.sql.planning import Plan
from sqlkrp.sql.sharing import Circuit, Pairs
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import (
    Butterflies,
    Distances,
    Elementwise,
    Linear,
    Prepare,
    Stage,
    SumOfProducts,
)

__all__ = ["WRITERS", "write_wide_form"]

# Names are for people, who do not read a statement of more operations column by column.
_READABLE = 5_000


def write_wide_form(job: Job) -> Written:
    """The SELECT of a planned program's outputs from the source."""
    plan = job.plan
    assert plan is not None
    writer = _Writer(job, plan, by_position=plan.additions + plan.products > _READABLE)
    first, *later = plan.program.stages
    gathered = None
    if job.long is None:
        values = WRITERS[type(first)](writer, first, 0, Vector([]))
    else:
        gathered = gathered_rows(job, plan.program.prepare)
        values = writer.go_on_from(gathered)
    for position, stage in enumerate(later, start=1):
        if not values.is_named and not _reads_once(stage):
            values = writer.named(values, "p")
        values = WRITERS[type(stage)](writer, stage, position, values)
    aliases = writer.carried[len(writer.carried) - len(job.kept) :]
    kept = zip(aliases, job.kept, strict=True)
    items = [f"{alias} AS {quote(name, job.dialect)}" for alias, name in kept]
    outputs = Vector(values, there="complete = 1" if writer.complete else "")
    select = writer.select([*items, *job.outputs(outputs)])
    if gathered is None:
        return Written(select, writer.widest, {})
    chain = gathered.chain
    ordered = f"{select}\nORDER BY s.{gathered.place}"
    return Written(chain.text(ordered), writer.widest, chain.side_tables)


def _reads_once(stage: Stage) -> bool:
    """Whether a stage writes each of its inputs once at most, so that none needs a name."""
    if not (isinstance(stage, Linear) and stage.picks):
        return False
    return len(np.unique(stage.input)) == len(stage.input)


@dataclass
class _Writer:
    """What lies below the SELECT that is being written, and what goes through to it."""

    job: Job
    plan: Plan
    by_position: bool
    """Whether to refer to columns by their places, where the dialect can."""
    complete: bool = False
    """Whether a column ``complete`` is 1 in rows with features; else all rows have them."""
    below: str = ""
    """The relation, then the SELECTs over it."""
    carried: list[str] = field(default_factory=list)
    levels: int = 0
    widest: int = 0
    """Entries of the widest SELECT so far."""

    def __post_init__(self) -> None:
        self.below = self.below or self.job.relation
        self.carried = [f"k{i}" for i in range(len(self.job.kept))]

    @property
    def dialect(self) -> Dialect:
        """The dialect that is written."""
        return self.job.dialect

    def literal(self, value: float) -> str:
        """A number of the type that features are computed in."""
        return number(value, self.job.dtype, self.dialect)

    def if_complete(self, value: str) -> str:
        """A value, but NULL in a row without features."""
        return f"CASE WHEN complete = 1 THEN {value} END" if self.complete else value

    def cast(self, value: str, dtype: str | None = None) -> str:
        """A cast to that type, or to that of another NumPy dtype."""
        kind = self.dialect.float_types[dtype or self.job.dtype]
        return self.dialect.cast.format(value=value, type=kind)

    def sum_of(self, plus: Sequence[str], minus: Sequence[str], constant: float = 0.0) -> str:
        """Sum of ``plus`` minus sum of ``minus``, balanced, and a constant."""
        if not plus and not minus:
            return self.if_complete(self.literal(constant))
        if constant:
            plus = [*plus, self.literal(constant)]
        if not minus:
            return balanced(plus, " + ")
        if not plus:
            return f"-({balanced(minus, ' + ')})"
        return f"({balanced(plus, ' + ')}) - ({balanced(minus, ' + ')})"

    def go_on_from(self, gathered: Gathered) -> Vector:
        """Read inputs that are prepared already; some are NULL if not all rows are complete."""
        self.below = f"{gathered.relation} s"
        self.carried = [gathered.place, *self.carried]
        self.complete = self.job.program.prepare.nulls == "propagate"
        self.levels, self.widest = 1, gathered.widest
        return Vector((f"x{i}" for i in range(gathered.n_inputs)), is_named=True)

    def level(self, items: Mapping[str, str]) -> dict[str, str]:
        """Open a SELECT of these items (name to value) over what is below; carried ones go along.

        Returns how each is written from now on: its name, or an item of an array where there are
        more than a SELECT may have.
        """
        carried = list(self.carried)
        if not self.levels:
            pairs = zip(self.job.kept, self.carried, strict=True)
            carried = [f"{quote(column, self.dialect)} AS {alias}" for column, alias in pairs]
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

    def named(self, values: Sequence[str], letter: str) -> Vector:
        """Name each value in a SELECT of its own, so that it can be used more than once."""
        items = {f"{letter}{i}": value for i, value in enumerate(values)}
        return Vector(self.level(items).values(), is_named=True)

    def select(self, items: Sequence[str]) -> str:
        """The whole statement, with these items outermost."""
        self.widest = max(self.widest, len(items))
        return f"SELECT\n{listed(items)}\nFROM {self.below}"


# --- the first stage --------------------------------------------------------------------------


def _prepare(writer: _Writer, stage: Prepare, position: int, values: Sequence[str]) -> Vector:
    constant = [] if stage.constant is None else [writer.literal(stage.constant)]
    if stage.nulls == "error" and not writer.job.guard:
        values = _casts(writer, stage, firm_cast)
    else:
        values = writer.named(_casts(writer, stage, soft_cast), "x")
        values = _treated(writer, stage, values)
        constant = [writer.if_complete(value) for value in constant]
    values = [
        _shifted(writer, value, float(shift), float(scale))
        for value, shift, scale in zip(
            _held(writer, stage, values), stage.shift, stage.scale, strict=True
        )
    ]
    if stage.unit_length:
        return _unit_length(writer, values, constant)
    return writer.named([*values, *constant], "x")


def _casts(writer: _Writer, stage: Prepare, cast: Callable[..., str]) -> list[str]:
    job = writer.job
    return [
        cast(quote(name, job.dialect), job.dtype, job.dialect, boolean=name in job.booleans)
        for name in stage.columns
    ]


def _treated(writer: _Writer, stage: Prepare, values: Sequence[str]) -> list[str]:
    """What is read where a value is missing."""
    finite = [writer.dialect.finite(value, stage.dtype) for value in values]
    if stage.nulls == "propagate":
        complete = f"CASE WHEN {balanced(finite, ' AND ')} THEN 1 ELSE 0 END"
        inputs = {f"x{i}": value for i, value in enumerate(values)}
        above = writer.level({"complete": complete, **inputs})
        writer.complete = True
        return [writer.if_complete(above[name]) for name in inputs]
    if stage.fills:
        otherwise = [writer.literal(float(fill)) for fill in stage.fill]
    else:
        otherwise = [
            writer.dialect.error(
                text(f"missing value in column {name}", writer.dialect),
                value,
                writer.job.type_name,
            )
            for name, value in zip(stage.columns, values, strict=True)
        ]
    return [
        f"CASE WHEN {test} THEN {value} ELSE {instead} END"
        for test, value, instead in zip(finite, values, otherwise, strict=True)
    ]


def _held(writer: _Writer, stage: Prepare, values: Sequence[str]) -> Sequence[str]:
    """Values inside their bounds; by CASE, as a missing one is to stay missing everywhere."""
    if not stage.bounds:
        return values
    low, high = (bound.astype(stage.dtype).tolist() for bound in stage.bounds)
    values = writer.named(values, "x")
    return [
        f"CASE WHEN {value} < {writer.literal(least)} THEN {writer.literal(least)} "
        f"WHEN {value} > {writer.literal(most)} THEN {writer.literal(most)} ELSE {value} END"
        if held
        else value
        for value, least, most, held in zip(values, low, high, stage.held.tolist(), strict=True)
    ]


def _shifted(writer: _Writer, value: str, shift: float, scale: float) -> str:
    if shift:
        value = f"({value} - {writer.literal(shift)})"
    return f"{value} * {writer.literal(scale)}" if scale != 1 else value


def _unit_length(writer: _Writer, values: Sequence[str], constant: Sequence[str]) -> Vector:
    named = writer.named([*values, *constant], "x")
    # In double precision, as squares leave the range of single precision soon.
    doubles = named[: len(values)]
    if writer.job.dtype != "float64":
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


# --- the others -------------------------------------------------------------------------------


def _linear(writer: _Writer, stage: Linear, position: int, values: Vector) -> Vector:
    if stage.picks:
        return _picks(writer, stage, values)
    constants = [0.0] * stage.n_sums if stage.constant is None else _numbers(writer, stage.constant)
    if position in writer.plan.chosen:
        return _circuit(writer, writer.plan.chosen[position].circuit, values, constants)
    terms = [
        f"{values[place]} * {writer.literal(weight)}"
        for place, weight in zip(stage.input.tolist(), _numbers(writer, stage.value), strict=True)
    ]
    ends = pairwise(stage.starts.tolist())
    sums = [
        writer.sum_of(terms[first:last], [], constant)
        for (first, last), constant in zip(ends, constants, strict=True)
    ]
    return writer.named(sums, "h")


def _numbers(writer: _Writer, array: Any) -> list[float]:
    """Numbers as the features' type has them."""
    numbers: list[float] = array.astype(writer.job.dtype).tolist()
    return numbers


def _picks(writer: _Writer, stage: Linear, values: Vector) -> Vector:
    factors = _numbers(writer, stage.value)
    constants = [0.0] * stage.n_sums if stage.constant is None else _numbers(writer, stage.constant)
    items = []
    for place, factor, constant in zip(stage.input.tolist(), factors, constants, strict=True):
        if not factor:
            items.append(writer.if_complete(writer.literal(constant)))
            continue
        value = values[place] if values.is_named else f"({values[place]})"
        item = f"{value} * {writer.literal(factor)}" if factor != 1 else value
        items.append(f"{item} + {writer.literal(constant)}" if constant else item)
    return Vector(items)


def _butterflies(writer: _Writer, stage: Butterflies, position: int, values: Vector) -> Vector:
    constants = [0.0] * stage.n_outputs
    return _circuit(writer, writer.plan.chosen[position].circuit, values, constants)


def _circuit(
    writer: _Writer, circuit: Circuit, values: Vector, constants: Sequence[float]
) -> Vector:
    below: Sequence[str] = values
    for depth, layer in enumerate(circuit.layers):
        pairs = zip(layer.first.tolist(), layer.second.tolist(), strict=True)
        items = {f"b{depth}_{i}": _pair(*pair, below) for i, pair in enumerate(pairs)}
        if items:  # all hyperplanes may be all zero
            below = list(writer.level(items).values())
    terms = circuit.terms.tolist()
    sums = []
    for (first, last), constant in zip(pairwise(circuit.starts.tolist()), constants, strict=True):
        plus = [below[place - 1] for place in terms[first:last] if place > 0]
        minus = [below[-place - 1] for place in terms[first:last] if place < 0]
        sums.append(writer.sum_of(plus, minus, constant))
    return writer.named(sums, "h")


def _pair(first: int, second: int, values: Sequence[str]) -> str:
    """One column of a layer."""
    if not second:
        return values[first - 1]
    return f"{values[first - 1]} {'+' if second > 0 else '-'} {values[abs(second) - 1]}"


def _sum_of_products(
    writer: _Writer, stage: SumOfProducts, position: int, values: Vector
) -> Vector:
    if position in writer.plan.pairs:
        terms = _terms_of_pairs(writer, writer.plan.pairs[position], values)
    else:
        terms = [
            [" * ".join(values[i] for i in factors if i >= 0) for factors in terms_of]
            for terms_of in stage.factors.tolist()
        ]
    sums = []
    for products, signs in zip(terms, stage.sign.tolist(), strict=True):
        plus = [product for product, sign in zip(products, signs, strict=True) if sign > 0]
        minus = [product for product, sign in zip(products, signs, strict=True) if sign < 0]
        sums.append(writer.sum_of(plus, minus))
    return Vector(sums)


def _terms_of_pairs(writer: _Writer, pairs: Pairs, values: Vector) -> list[list[str]]:
    """Terms where many products of two factors are in more than one: each computed once."""
    single = sorted(set(pairs.others.ravel().tolist()))
    products = {f"q{i}": f"{values[a]} * {values[b]}" for i, (a, b) in enumerate(pairs.pairs)}
    above = writer.level(products | {f"h{i}": values[i] for i in single})
    return [
        [
            " * ".join([above[f"q{pair}"], *(above[f"h{i}"] for i in others)])
            for pair, others in zip(pairs_of, others_of, strict=True)
        ]
        for pairs_of, others_of in zip(pairs.place.tolist(), pairs.others.tolist(), strict=True)
    ]


def _distances(writer: _Writer, stage: Distances, position: int, values: Vector) -> Vector:
    differences = [
        f"({values[place]} - {writer.literal(coordinate)})" if coordinate else values[place]
        for place, coordinate in zip(
            stage.input.tolist(), _numbers(writer, stage.value), strict=True
        )
    ]
    squares = [f"{one} * {one}" for one in differences]
    sums = [balanced(squares[first:last], " + ") for first, last in pairwise(stage.starts.tolist())]
    return writer.named(sums, "h")


def _elementwise(writer: _Writer, stage: Elementwise, position: int, values: Vector) -> Vector:
    dialect, dtype = writer.dialect, writer.job.dtype
    return Vector(writer.cast(dialect.function(stage.function, value, dtype)) for value in values)


WRITERS: dict[type[Stage], Callable[[_Writer, Any, int, Vector], Vector]] = {
    Prepare: _prepare,
    Linear: _linear,
    Butterflies: _butterflies,
    SumOfProducts: _sum_of_products,
    Distances: _distances,
    Elementwise: _elementwise,
}
