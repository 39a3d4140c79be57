"""The tables form: the stages' tables are loaded once and joined.

Every step reads a relation (row_id, feature, value) and gives one: a chain of common table
expressions, each a query of ``sql_templates/``. No step ever meets a NULL: rows with a missing
value leave the chain at the start (policy "propagate") and come back without features at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.sql.facts import Dialect, Unpivot
from sqlkrp.sql.names import number, quote, soft_cast, text
from sqlkrp.sql.packing import packed
from sqlkrp.sql.templates import bind, relations_of
from sqlkrp.stages import (
    Affine,
    Butterflies,
    Distances,
    Elementwise,
    Prepare,
    Program,
    Projection,
    Scale,
    SignedSums,
    Stage,
    SumOfProducts,
    Table,
    WeightedSums,
)

__all__ = [
    "Gathered",
    "LongInput",
    "create_side_table",
    "gather_rows",
    "load_side_table",
    "read_long",
    "side_tables",
    "tables_select",
]


@dataclass(frozen=True)
class LongInput:
    """Sparse input: a relation of (row, feature, value); an entry that is absent is 0."""

    row: str
    feature: str
    value: str
    keys: str | None = None
    """SQL of a relation with one row for each row of the answer, in a column named as ``row``."""


def read_long(long: Any, keys: str | None = None) -> LongInput:
    """What a user gives for the columns of sparse input; an error says what it should be."""
    names = list(long) if isinstance(long, (tuple, list)) else []
    if len(names) != 3 or not all(isinstance(name, str) for name in names) or len(set(names)) < 3:
        raise ParameterError(
            f"long={long!r} is not allowed: name three columns, such as ('row', 'feature', 'value')"
        )
    row, feature, value = names
    return LongInput(row, feature, value, keys)


def side_tables(
    program: Program, digest: str, token: str = ""
) -> dict[tuple[int, str], tuple[str, Table]]:
    """The tables to load for a program: (stage, name in its template) to (full name, columns).

    Full names begin with the map's digest; ``token`` tells apart those of two statements.
    """
    tables: dict[tuple[int, str], tuple[str, Table]] = {}
    for position, stage in enumerate(program.stages):
        for name, columns in stage.tables().items():
            again = sum(known == name for _, known in tables)
            full = f"{digest[:12]}_{token}{name}" + (f"_{again + 1}" if again else "")
            tables[position, name] = full, columns
    return tables


def create_side_table(
    name: str, columns: Table, dialect: Dialect, *, temporary: bool = False
) -> str:
    """The CREATE TABLE statement of a side table."""
    kind = "TEMPORARY TABLE" if temporary else "TABLE"
    shape = _shape(columns, dialect)
    return dialect.create_table.format(kind=kind, table=quote(name, dialect), columns=shape)


def load_side_table(name: str, columns: Table, file: str, format: str, dialect: Dialect) -> str:
    """The statements that fill a side table from a file."""
    return dialect.load_file[format].format(
        table=quote(name, dialect), file=text(file, dialect), columns=_shape(columns, dialect)
    )


def _shape(columns: Table, dialect: Dialect) -> str:
    types = dialect.side_table_types
    return ", ".join(f"{column} {types[array.dtype.name]}" for column, array in columns.items())


def tables_select(
    program: Program,
    relation: str,
    keep: Sequence[str],
    dialect: Dialect,
    names: Mapping[tuple[int, str], str],
    columns: Sequence[str],
    *,
    array: str | None = None,
    bits: Sequence[str] = (),
    guard: bool = True,
    long: LongInput | None = None,
    booleans: Collection[str] = (),
) -> tuple[str, int]:
    """The SELECT of a program's outputs from ``relation`` (SQL), joining its side tables.

    Also returns how many entries its widest SELECT has. ``names`` are the side tables by (stage,
    name), as SQL; ``columns`` are all that comes out.
    """
    if long is None:
        chain = _Chain(dialect, program.prepare.dtype, names, {relation.lower()})
        _dense_entries(chain, program.prepare, relation, keep, booleans)
        _prepare(chain, program.prepare, guard)
    else:
        # Sums over hyperplanes, and distances, know that an absent entry is 0.
        absent_is_zero = isinstance(program.stages[1], (Projection, Distances))
        chain = _sparse_chain(
            program, relation, long, keep, dialect, names, guard, booleans,
            fill_absent=not absent_is_zero,
        )  # fmt: skip
    for position, stage in enumerate(program.stages[1:], start=1):
        _STEPS[type(stage)](chain, stage, position)
    selected = [f"source.k{i} AS {quote(name, dialect)}" for i, name in enumerate(keep)]
    if long is not None:
        selected.insert(0, f"source.row_key AS {quote(long.row, dialect)}")
    collected, outputs = _outputs(program, array, bits, chain)
    chain.then("collected", "collect_values", {}, {"collected": collected})
    final = chain.bind(
        "collect",
        {"source": chain.source, "collected": chain.current},
        {"kept": selected, "outputs": outputs, "place": _place(columns)},
    )
    n_placed = 2 + len(keep) + (1 if long else len(program.prepare.columns))
    widest = max(n_placed, len(selected) + len(outputs), 1 + len(collected))
    return chain.text(final), widest


@dataclass(frozen=True)
class Gathered:
    """Sparse input as rows of prepared inputs, from which the wide form goes on.

    Its columns are the place of a row, what is carried, ``complete`` (1 in rows that have
    features), and x0, x1, ...
    """

    relation: str
    place: str
    """The first column's name, which no output has."""
    n_inputs: int
    widest: int
    """Entries of its widest SELECT."""
    chain: _Chain

    def statement(self, select: str) -> str:
        """A SELECT from the relation, with the steps to it before it."""
        return self.chain.text(select)


def gather_rows(
    program: Program,
    wanted: Prepare,
    relation: str,
    long: LongInput,
    keep: Sequence[str],
    dialect: Dialect,
    names: Mapping[tuple[int, str], str],
    columns: Sequence[str],
    *,
    guard: bool = True,
    booleans: Collection[str] = (),
) -> Gathered:
    """Those of a program's prepared inputs that are wanted, as one row a row of sparse input."""
    chain = _sparse_chain(program, relation, long, keep, dialect, names, guard, booleans)
    prepare = program.prepare
    # An entry that adds nothing, so that a row without others is there as well.
    nothing = {"feature": "0", "constant": chain.double(0.0)}
    chain.then("with_nothing", "add_constant", {"complete": chain.complete}, nothing)
    places = [prepare.columns.index(name) for name in wanted.columns]
    if wanted.constant is not None:
        places.append(len(prepare.columns))
    zero = chain.double(0.0)
    sums = [
        f"SUM(CASE WHEN feature = {place} THEN value ELSE {zero} END) AS x{i}"
        for i, place in enumerate(places)
    ]
    chain.then("gathered_inputs", "collect_values", {}, {"collected": sums})
    inputs = [
        f"{dialect.cast.format(value=f'collected.x{i}', type=chain.type)} AS x{i}"
        for i in range(len(places))
    ]
    place = _place(columns)
    carried = ["source.row_key AS k0", *(f"source.k{i} AS k{i + 1}" for i in range(len(keep)))]
    relations = {"source": chain.source, "collected": chain.current}
    values: dict[str, str | Sequence[str]] = {"kept": carried, "inputs": inputs, "place": place}
    gathered = chain.add("gathered", "gather", relations, values)
    chain.reads[gathered] += 1
    widest = 2 + len(carried) + len(inputs)
    return Gathered(gathered, place, len(inputs), widest, chain)


def _sparse_chain(
    program: Program,
    relation: str,
    long: LongInput,
    keep: Sequence[str],
    dialect: Dialect,
    names: Mapping[tuple[int, str], str],
    guard: bool,
    booleans: Collection[str],
    *,
    fill_absent: bool = False,
) -> _Chain:
    """The steps from sparse input to prepared entries."""
    prepare = program.prepare
    _require_zero_stays_zero(prepare)
    taken = {relation.lower(), (long.keys or "").lower()}
    chain = _Chain(dialect, prepare.dtype, names, taken)
    _sparse_entries(chain, relation, long, keep, booleans)
    _prepare(chain, prepare, guard, fill_absent=fill_absent)
    return chain


@dataclass
class _Chain:
    """The common table expressions so far, and the name of the last (row_id, feature, value)."""

    dialect: Dialect
    dtype: str
    side: Mapping[tuple[int, str], str]
    taken: set[str]
    """The user's relations: a step of such a name would hide it from the steps after it."""
    steps: list[tuple[str, str]] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)
    current: str = ""
    source: str = ""
    complete: str = ""

    @property
    def type(self) -> str:
        """The SQL type that features are given in."""
        return self.dialect.float_types[self.dtype]

    @property
    def double_type(self) -> str:
        """The SQL type that this form adds in: the sum of single numbers is single in some."""
        return self.dialect.float_types["float64"]

    def entry(self, value: str, *, boolean: bool) -> str:
        """An input rounded to the map's type, as a double."""
        rounded = soft_cast(value, self.dtype, self.dialect, boolean=boolean)
        if self.dtype == "float64":
            return rounded
        return self.dialect.cast.format(value=rounded, type=self.double_type)

    def add(
        self,
        name: str,
        template: str,
        relations: Mapping[str, str],
        values: Mapping[str, str | Sequence[str]] | None = None,
    ) -> str:
        """One more step; the name it really got."""
        return self.add_query(name, self.bind(template, relations, values))

    def add_query(self, name: str, query: str, *reads: str) -> str:
        """The same with a query that is written already, and what it reads."""
        while quote(name, self.dialect) in self.taken:
            name += "_"
        self.reads.update(reads)
        self.steps.append((name, query))
        return name

    def then(
        self,
        name: str,
        template: str,
        relations: Mapping[str, str],
        values: Mapping[str, str | Sequence[str]] | None = None,
    ) -> None:
        """The same on the inputs so far; the next step reads from this one."""
        self.current = self.add(name, template, {"inputs": self.current, **relations}, values)

    def bind(
        self,
        template: str,
        relations: Mapping[str, str],
        values: Mapping[str, str | Sequence[str]] | None = None,
    ) -> str:
        """A template's text; how often it reads each relation is counted."""
        for role, times in relations_of(template).items():
            self.reads[relations[role]] += times
        return bind(template, self.dialect, relations, values)

    def double(self, value: float) -> str:
        """A number to calculate with: this form adds in double precision."""
        return number(value, "float64", self.dialect)

    def text(self, final: str) -> str:
        """The whole statement."""
        # What is read twice is computed once: else a source could be numbered differently.
        steps = ",\n".join(
            f"{name} {self.dialect.materialized if self.reads[name] > 1 else 'AS'} (\n{query}\n)"
            for name, query in self.steps
        )
        return f"WITH {steps}\n{final}"


def _dense_entries(
    chain: _Chain,
    prepare: Prepare,
    relation: str,
    keep: Sequence[str],
    booleans: Collection[str],
) -> None:
    dialect = chain.dialect
    soft = [chain.entry(quote(name, dialect), boolean=name in booleans) for name in prepare.columns]
    inputs = [f"x{i}" for i in range(len(soft))]
    casts = [f"{value} AS {name}" for value, name in zip(soft, inputs, strict=True)]
    numbered = {
        "numbering": _numbering(dialect, "source", [*keep, *prepare.columns]),
        "kept": _kept(dialect, keep),
        "inputs": casts,
    }
    chain.source = chain.add("source", "number_rows", {"source": relation}, numbered)
    chain.complete = chain.source
    chain.current = chain.add_query(
        "entries", _unpivot(dialect.unpivot, inputs, chain.source), chain.source
    )


def _kept(dialect: Dialect, keep: Sequence[str]) -> list[str]:
    return [f"{quote(name, dialect)} AS k{i}" for i, name in enumerate(keep)]


def _place(columns: Sequence[str]) -> str:
    """A name to order by that is none of these: some engines would find two of it."""
    name, taken = "place", {column.lower() for column in columns}
    while name in taken:
        name += "_"
    return name


def _numbering(dialect: Dialect, relation: str, read: Sequence[str]) -> str:
    # With the relation's name, as some engines would take a column that is named as one of our
    # aliases for that.
    columns = [f"{relation}.{quote(name, dialect)}" for name in dict.fromkeys(read)]
    everything = ", ".join(columns)
    return dialect.numbering.format(everything=everything)


def _unpivot(how: Unpivot, inputs: Sequence[str], source: str) -> str:
    places = range(len(inputs))
    size = how.at_most or len(inputs)
    queries = []
    for part in (places[i : i + size] for i in range(0, len(inputs), size)):
        entries = [how.entry.format(place=i, value=inputs[i], source=source) for i in part]
        rows = ", ".join(f"({i})" for i in part)
        query = how.query.format(
            entries=how.separator.join(entries), source=source, count=len(part), rows=rows
        )
        queries.append(query)
    if len(queries) == 1:
        return queries[0]
    return "\nUNION ALL\n".join(f"SELECT * FROM (\n{query}\n) part" for query in queries)


def _sparse_entries(
    chain: _Chain,
    relation: str,
    long: LongInput,
    keep: Sequence[str],
    booleans: Collection[str],
) -> None:
    dialect = chain.dialect
    if long.keys is None:
        key = {"key": quote(long.row, dialect)}
        chain.source = chain.add("source", "distinct_keys", {"entries": relation}, key)
    else:
        keys: dict[str, str | Sequence[str]] = {
            "numbering": _numbering(dialect, "key_table", [long.row, *keep]),
            "key": quote(long.row, dialect),
            "kept": _kept(dialect, keep),
        }
        chain.source = chain.add("source", "number_keys", {"key_table": long.keys}, keys)
    chain.complete = chain.source
    entry = {
        role: f"entries.{quote(name, dialect)}"
        for role, name in (("key", long.row), ("name", long.feature), ("value", long.value))
    }
    entry["name"] = dialect.cast.format(value=entry["name"], type=dialect.text_type)
    entry["value"] = chain.entry(entry["value"], boolean=long.value in booleans)
    given = chain.add("given", "read_entries", {"entries": relation}, entry)
    chain.current = chain.add(
        "entries",
        "match_entries",
        {"given": given, "source": chain.source, "columns": chain.side[0, "columns"]},
    )


def _require_zero_stays_zero(prepare: Prepare) -> None:
    if np.any(prepare.shift != 0):
        name = prepare.columns[int(np.flatnonzero(prepare.shift)[0])]
        raise ParameterError(
            f"the scaling shifts column {name!r}, so that absent entries would no longer be 0: "
            "for (row, feature, value) input draw the map with scaling=None or 'unit', or give a "
            "table with one column a feature"
        )


# What is filled in for a missing value is inside the bounds already.
_HELD = (
    "CASE WHEN inputs.value < columns.low THEN columns.low "
    "WHEN inputs.value > columns.high THEN columns.high ELSE inputs.value END"
)


def _prepare(chain: _Chain, prepare: Prepare, guard: bool, *, fill_absent: bool = False) -> None:
    if prepare.fills:
        missing = "columns.fill"
    elif prepare.nulls == "error" and guard:
        message = text("missing value (NULL, NaN or infinite) in an input column", chain.dialect)
        missing = chain.dialect.error(message, "inputs.value", chain.double_type)
    else:
        missing = soft_cast("NULL", "float64", chain.dialect)
    columns = {"columns": chain.side[0, "columns"]}
    finite = chain.dialect.finite("inputs.value", prepare.dtype)
    value = _HELD if prepare.bounds else "inputs.value"
    values = {"finite": finite, "value": value, "missing": missing}
    chain.then("prepared", "prepare", columns, values)
    if prepare.nulls == "propagate":
        rows = {"source": chain.source, "inputs": chain.current}
        chain.complete = chain.add("complete", "complete_rows", rows)
        chain.then("kept_rows", "only_complete", {"complete": chain.complete})
    if prepare.unit_length:
        chain.then("directions", "unit_length", {})
    if fill_absent:
        everywhere = {"complete": chain.complete, **columns}
        chain.then("filled", "fill_absent", everywhere, {"zero": chain.double(0.0)})
    if prepare.constant is not None:
        values = {
            "feature": str(len(prepare.columns)),
            "constant": chain.double(prepare.constant),
        }
        chain.then("with_constant", "add_constant", {"complete": chain.complete}, values)


def _sums(template: str) -> Callable[[_Chain, Any, int], None]:
    def step(chain: _Chain, stage: Stage, position: int) -> None:
        relations = {
            "hyperplanes": chain.side[position, "hyperplanes"],
            "pool": chain.side[position, "pool"],
            "complete": chain.complete,
        }
        chain.then(f"sums_{position}", template, relations, {"zero": chain.double(0.0)})

    return step


def _sum_of_products(chain: _Chain, stage: SumOfProducts, position: int) -> None:
    components = {"components": chain.side[position, "components"]}
    product = _product(chain.dialect, stage)
    chain.then(f"products_{position}", "sum_of_products", components, {"product": product})


def _product(dialect: Dialect, stage: SumOfProducts) -> str:
    """The product over the factors of a term, as a window aggregate."""
    window = "PARTITION BY inputs.row_id, components.component, components.term"
    if dialect.product is not None:
        return dialect.product.format(value="inputs.value", window=window)
    # exp(sum(ln)) would not be exact; picking each factor is.
    factors = [
        f"MAX(CASE WHEN components.factor = {factor} THEN inputs.value END) OVER ({window})"
        for factor in range(stage.factors.shape[2])
    ]
    if stage.is_ragged:
        factors = [f"COALESCE({factor}, 1)" for factor in factors]
    return " * ".join(factors)


def _scale(chain: _Chain, stage: Scale, position: int) -> None:
    constant = {"constant": chain.double(stage.constant)}
    chain.then(f"scaled_{position}", "scale", {}, constant)


def _affine(chain: _Chain, stage: Affine, position: int) -> None:
    affine = {"affine": chain.side[position, "affine"]}
    chain.then(f"affine_{position}", "affine", affine)


def _elementwise(chain: _Chain, stage: Elementwise, position: int) -> None:
    result = chain.dialect.function(stage.function, "inputs.value", "float64")
    chain.then(f"{stage.function}_{position}", "elementwise", {}, {"result": result})


def _distances(chain: _Chain, stage: Distances, position: int) -> None:
    relations = {"points": chain.side[position, "points"], "complete": chain.complete}
    zero = {"zero": chain.double(0.0)}
    chain.then(f"distances_{position}", "distances", relations, zero)


_STEPS: dict[type[Stage], Callable[[_Chain, Any, int], None]] = {
    SignedSums: _sums("signed_sums"),
    Butterflies: _sums("signed_sums"),
    WeightedSums: _sums("weighted_sums"),
    SumOfProducts: _sum_of_products,
    Scale: _scale,
    Affine: _affine,
    Elementwise: _elementwise,
    Distances: _distances,
}


def _outputs(
    program: Program, array: str | None, bits: Sequence[str], chain: _Chain
) -> tuple[list[str], list[str]]:
    """The aggregates that collect a row's values, and the outputs that are made of them."""
    dialect, count = chain.dialect, len(program.names)
    if dialect.collect is None:
        collected = [f"MAX(CASE WHEN feature = {i} THEN value END) AS f{i}" for i in range(count)]
        items = [f"collected.f{i}" for i in range(count)]
    else:
        collected = [f"{dialect.collect} AS items"]
        items = [dialect.item("collected.items", i) for i in range(count)]
    if bits:
        there = "CASE WHEN collected.row_id IS NOT NULL THEN {value} END"
        return collected, [
            f"{there.format(value=value)} AS {quote(name, dialect)}"
            for value, name in zip(packed(items, dialect), bits, strict=True)
        ]
    if array is None:
        return collected, [
            f"{dialect.cast.format(value=item, type=chain.type)} AS {quote(name, dialect)}"
            for item, name in zip(items, program.names, strict=True)
        ]
    assert dialect.array_cast is not None
    whole = dialect.array_cast.format(array="collected.items", type=chain.type, count=count)
    return collected, [f"{whole} AS {quote(array, dialect)}"]
