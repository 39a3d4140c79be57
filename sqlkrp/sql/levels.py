"""SELECTs over SELECTs: what the wide form writes its stages into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlkrp.sql.chain import free_name
from sqlkrp.sql.entries import Gathered
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import Job
from sqlkrp.sql.names import balanced, listed, number, quote
from sqlkrp.sql.planning import Plan
from sqlkrp.sql.sharing import Circuit
from sqlkrp.sql.vectors import Vector

__all__ = ["Levels"]


@dataclass
class Levels:
    """What lies below the SELECT that is being written, and what goes through to it."""

    job: Job
    innermost: str = ""
    """How the SELECT from the source begins, if not as the others."""
    by_position: bool = False
    """Whether to refer to columns by their places, where the dialect can."""
    complete: bool = False
    """Whether a column ``complete`` is 1 in rows with features; else all rows have them."""
    below: str = field(init=False)
    """The relation, then the SELECTs over it."""
    alias: str = field(init=False)
    """What is below is called this, as no column is."""
    carried: list[str] = field(default_factory=list)
    past: list[str] = field(default_factory=list)
    """Values that go along beside what is written, as other paths read them."""
    levels: int = 0
    widest: int = 0
    """Entries of the widest SELECT so far."""

    def __post_init__(self) -> None:
        # The relation's own name may be that of a column, and would be read in its place.
        names = (*self.job.program.prepare.columns, *self.job.columns)
        self.alias = free_name("s", names)
        self.below = f"{self.job.relation} {self.alias}"
        self.carried = [f"k{i}" for i in range(len(self.job.kept))]

    @property
    def dialect(self) -> Dialect:
        """The dialect that is written."""
        return self.job.dialect

    @property
    def plan(self) -> Plan:
        """How the stages are computed."""
        assert self.job.plan is not None
        return self.job.plan

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

    def held(self, value: str, least: float, most: float) -> str:
        """A value inside bounds; by CASE, as a missing one is to stay missing everywhere."""
        low, high = self.literal(least), self.literal(most)
        cases = f"WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high}"
        return f"CASE {cases} ELSE {value} END"

    def circuit_at(self, position: int) -> Circuit | None:
        """The planned sums of a stage, where there are such."""
        way = None if self.job.plan is None else self.job.plan.chosen.get(position)
        return None if way is None else way.circuit

    def is_of_arrays(self, position: int) -> bool:
        """Whether a stage is planned as functions of arrays."""
        return self.job.plan is not None and position in self.job.plan.arrays

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
        self.below = f"{gathered.relation} {self.alias}"
        self.carried = [gathered.place, *self.carried]
        self.complete = self.job.program.prepare.nulls == "propagate"
        self.levels, self.widest = 1, gathered.widest
        return Vector((f"x{i}" for i in range(gathered.n_inputs)), is_named=True)

    def level(self, items: Mapping[str, str]) -> dict[str, str]:
        """Open a SELECT of these items (name to value) over what is below; carried ones go along.

        Returns how each is written from now on: its name, or an item of an array where there are
        more than a SELECT may have.
        """
        past = {f"y{self.levels}_{i}": value for i, value in enumerate(dict.fromkeys(self.past))}
        columns = self._opened({**items, **past})
        there = {value: columns[name] for name, value in past.items()}
        self.past = [there[value] for value in self.past]
        return {name: columns[name] for name in items}

    def _opened(self, items: Mapping[str, str]) -> dict[str, str]:
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
        begin = (not self.levels and self.innermost) or self.dialect.nested_select
        listing = listed([*carried, *written])
        self.below = f"(\n{begin}\n{listing}\nFROM {self.below}{fence}\n) {self.alias}"
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

    def beside(
        self, others: Sequence[str], write: Callable[[], Sequence[str]]
    ) -> tuple[Sequence[str], list[str]]:
        """What is written, and how other values are written behind it."""
        count = len(self.past)
        self.past += others
        made = write()
        there = self.past[count:]
        del self.past[count:]
        return made, there

    def named(self, values: Sequence[str], letter: str) -> Vector:
        """Name each value in a SELECT of its own, so that it can be used more than once."""
        items = {f"{letter}{i}": value for i, value in enumerate(values)}
        return Vector(self.level(items).values(), is_named=True)

    def select(self, values: Vector) -> str:
        """The whole statement, with what is handed on and the values outermost."""
        job = self.job
        aliases = self.carried[len(self.carried) - len(job.kept) :]
        kept = zip(aliases, job.kept, strict=True)
        items = [f"{alias} AS {quote(name, self.dialect)}" for alias, name in kept]
        items += job.outputs(values)
        self.widest = max(self.widest, len(items))
        return f"SELECT\n{listed(items)}\nFROM {self.below}"
