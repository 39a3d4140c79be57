"""A chain of common table expressions, each a query of ``sql_templates/`` over the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import Job
from sqlkrp.sql.names import number, quote, soft_cast
from sqlkrp.sql.side_tables import Table
from sqlkrp.sql.templates import bind, relations_of

__all__ = ["Chain", "free_name"]

Values = Mapping[str, str | Sequence[str]]


@dataclass
class Chain:
    """The steps so far, and the name of the last relation (row_id, feature, value).

    No step ever meets a NULL: rows with a missing value leave the chain at the start (policy
    "propagate") and come back without features at the end.
    """

    job: Job
    steps: list[tuple[str, str]] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)
    current: str = ""
    source: str = ""
    complete: str = ""
    """The rows that have features."""
    side_tables: dict[str, Table] = field(default_factory=dict)
    """Those that the steps join, by their full names."""

    @property
    def dialect(self) -> Dialect:
        """The dialect that is written."""
        return self.job.dialect

    @property
    def double_type(self) -> str:
        """The SQL type that this form adds in: the sum of single numbers is single in some."""
        return self.dialect.float_types["float64"]

    def double(self, value: float) -> str:
        """A number of that type."""
        return number(value, "float64", self.dialect)

    def entry(self, value: str, *, boolean: bool) -> str:
        """An input rounded to the map's type, as a double."""
        rounded = soft_cast(value, self.job.dtype, self.dialect, boolean=boolean)
        if self.job.dtype == "float64":
            return rounded
        return self.dialect.cast.format(value=rounded, type=self.double_type)

    def side(self, position: int, name: str) -> str:
        """A side table of a stage, as SQL."""
        full, columns = self.job.side[position, name]
        self.side_tables[full] = columns
        return quote(full, self.dialect)

    def add(
        self,
        name: str,
        template: str,
        relations: Mapping[str, str],
        values: Values | None = None,
    ) -> str:
        """One more step; the name it really got."""
        return self.add_query(name, self.bind(template, relations, values))

    def add_query(self, name: str, query: str, *reads: str) -> str:
        """One more step whose query is written already, and what it reads."""
        # The user's relations: a step of such a name would hide it from the steps after it.
        keys = None if self.job.long is None else self.job.long.keys
        taken = {self.job.relation.lower(), (keys or "").lower()}
        while quote(name, self.dialect) in taken:
            name += "_"
        self.reads.update(reads)
        self.steps.append((name, query))
        return name

    def then(
        self,
        name: str,
        template: str,
        relations: Mapping[str, str] | None = None,
        values: Values | None = None,
    ) -> None:
        """One more step on the inputs so far; the next step reads from this one."""
        read = {"inputs": self.current, **(relations or {})}
        self.current = self.add(name, template, read, values)

    def bind(self, template: str, relations: Mapping[str, str], values: Values | None) -> str:
        """A template's text; how often it reads each relation is counted."""
        for role, times in relations_of(template).items():
            self.reads[relations[role]] += times
        return bind(template, self.dialect, relations, values)

    def text(self, final: str) -> str:
        """The whole statement."""
        # What is read twice is computed once: else a source could be numbered differently.
        steps = ",\n".join(
            f"{name} {self.dialect.materialized if self.reads[name] > 1 else 'AS'} (\n{query}\n)"
            for name, query in self.steps
        )
        return f"WITH {steps}\n{final}"


def free_name(name: str, taken: Sequence[str]) -> str:
    """A name like this one that is none of those taken, whatever its case."""
    folded = {one.lower() for one in taken}
    while name.lower() in folded:
        name += "_"
    return name
