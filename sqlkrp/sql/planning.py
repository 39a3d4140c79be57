"""How a program is computed in the wide form: what it needs, and the cheapest way to each stage.

Nothing here changes what is computed: on numbers whose sums are exact every plan gives the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.sharing import Circuit, Pairs, butterflies, paired, plain, shared
from sqlkrp.stages import Butterflies, Program, SignedSums, SumOfProducts

__all__ = ["PLANS", "Plan", "Way", "plan_program"]

PLANS = ("auto", "plain", "shared", "butterflies")

# Larger groups have too many patterns to be worth it for any pool that a statement can hold.
_GROUP_SIZES = (2, 3, 4, 5, 6, 7, 8)
# Looking for patterns takes this many signs in memory, zeros too; more are no wide statement.
_LARGEST_TABLE = 2_000_000
# What a statement is planned for; how many rows there are is not counted before.
_ROWS = 100_000
# A column for each pair is worth it if so many terms find theirs computed already.
_PAIRS_SAVE = 0.25


@dataclass(frozen=True, eq=False)
class Way:
    """One way to compute the signed sums of a stage, and about what it costs."""

    plan: str
    name: str
    circuit: Circuit
    seconds: float


@dataclass(frozen=True, eq=False)
class Plan:
    """A program without what its outputs do not need, and the way chosen for each stage."""

    program: Program
    ways: dict[int, list[Way]]
    """Every way to a stage of signed sums, by its position."""
    chosen: dict[int, Way]
    pairs: dict[int, Pairs]
    """Products that are computed once, by the position of their stage."""

    @cached_property
    def additions(self) -> int:
        """Additions and subtractions a row."""
        stages = enumerate(self.program.stages)
        return sum(
            self.chosen[i].circuit.additions if i in self.chosen else stage.additions
            for i, stage in stages
        )

    @cached_property
    def products(self) -> int:
        """Multiplications and divisions a row."""
        saved = sum(pairs.saved for pairs in self.pairs.values())
        return self.program.products - saved


def plan_program(
    program: Program, plan: str, dialect: Dialect, *, n_kept: int = 0, every_column: bool = False
) -> Plan:
    """The cheapest ways that ``plan`` allows and the engine's SELECT has room for.

    ``n_kept`` columns go along in every SELECT. ``every_column`` is looked at, needed or not.
    """
    program = program.only(every_column=every_column)
    limit = dialect.limits.select_columns
    room = None if limit is None else limit - n_kept - 1
    ways, chosen, pairs = {}, {}, {}
    for i, stage in enumerate(program.stages):
        if isinstance(stage, (SignedSums, Butterflies)):
            ways[i] = _ways(stage, plan, dialect, room)
            chosen[i] = _choose(ways[i], plan)
        elif isinstance(stage, SumOfProducts):
            found = paired(stage)
            fits = room is None or len(found.pairs) + len(np.unique(found.others)) <= room
            if fits and found.saved > _PAIRS_SAVE * found.place.size:
                pairs[i] = found
    return Plan(program, ways, chosen, pairs)


def _choose(ways: list[Way], plan: str) -> Way:
    allowed = [way for way in ways if plan in ("auto", way.plan)]
    if not allowed and plan == "butterflies":
        raise ParameterError("plan='butterflies' is for Hadamard pools: use 'auto' or 'shared'")
    return min(allowed or ways, key=lambda way: way.seconds)


def _ways(
    stage: SignedSums | Butterflies, plan: str, dialect: Dialect, room: int | None
) -> list[Way]:
    """Every way that there may be, the plainest first."""
    table = stage.signed_sums if isinstance(stage, Butterflies) else stage
    circuits = {("plain", "plain"): plain(table)}
    few = table.n_sums * table.n_inputs <= _LARGEST_TABLE
    sizes = _GROUP_SIZES[: max(0, table.n_inputs - 1)] if few and plan != "plain" else ()
    for size in sizes:
        circuits["shared", f"shared, groups of {size}"] = shared(table, size)
    if isinstance(stage, Butterflies):
        circuits["butterflies", "butterflies"] = butterflies(stage)
    return [
        Way(way, name, circuit, _seconds(circuit, dialect, room))
        for (way, name), circuit in circuits.items()
    ]


def _seconds(circuit: Circuit, dialect: Dialect, room: int | None) -> float:
    costs = dialect.costs
    nodes = 2 * circuit.additions + circuit.columns
    a_row = circuit.additions * costs.addition + circuit.columns * costs.column
    # What a SELECT has no room for goes on in an array, or cannot be.
    if room is not None and circuit.widest > room:
        packed = (circuit.widest - room) / circuit.widest
        item = math.inf if dialect.array is None else costs.item
        a_row += packed * (len(circuit.terms) + circuit.columns) * item
    return nodes * costs.node + _ROWS * a_row
