"""How a program is computed in the wide form: what it needs, and the cheapest way to each stage.

Nothing here changes what is computed: on numbers whose sums are exact every plan gives the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from sqlkrp.display import Shown
from sqlkrp.errors import ParameterError
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.sharing import (
    Circuit,
    Pairs,
    additions_of_groups,
    butterflies,
    paired,
    plain,
    shared,
)
from sqlkrp.stages import (
    Butterflies,
    Distances,
    Linear,
    Paths,
    Program,
    Stage,
    SumOfProducts,
    cost,
    numbered,
    plain_stages,
)

__all__ = ["PLANS", "ROWS", "Plan", "Way", "by_numpy", "plan_program", "seconds_to_plan"]

PLANS = ("auto", "plain", "shared", "butterflies")

# Larger groups have too many patterns to be worth it for any pool that a statement can hold.
_GROUP_SIZES = (2, 3, 4, 5, 6, 7, 8)
# Looking for patterns takes this many signs in memory, zeros too; more are no wide statement.
_LARGEST_TABLE = 2_000_000
# Entries of hyperplanes that no statement can hold as plain sums.
_LONGEST_SUMS = 10_000_000
#: What sums are planned for: of fewer rows the same ways are the quick ones, or nearly.
ROWS = 100_000
# Another way to compute is worth telling of if it is so many times as quick, and saves so much.
_TIMES_MOVED, _SECONDS_SAVED = 2, 1.0
# Putting the inputs of a row into an array takes as long as about so many sums of them; and fewer
# numbers are no text that anybody waits for, so they stay where people can read them.
_SUMS_AN_ARRAY, _NUMBERS_AN_ARRAY = 4, 2_000
# A column for each pair is worth it if so many terms find theirs computed already.
_PAIRS_SAVE = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class Way(Shown):
    """One way to compute the signed sums of a stage, worked out when it is looked at."""

    plan: str
    name: str
    at_least: float
    """Seconds that it takes in any case, known without working it out."""
    _work_out: Callable[[], Circuit]
    _cost: Callable[[Circuit], float]

    def _facts(self) -> dict[str, Any]:
        return {"name": self.name}  # what it costs is worked out only when it is asked for

    @cached_property
    def circuit(self) -> Circuit:
        """The sums."""
        return self._work_out()

    @cached_property
    def seconds(self) -> float:
        """About what it costs."""
        return self._cost(self.circuit)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """A program without what its outputs do not need, and the way chosen for each stage."""

    program: Program
    ways: dict[int, list[Way]]
    """Every way to a stage of signed sums, by the stage's number."""
    chosen: dict[int, Way]
    pairs: dict[int, Pairs]
    """Products that are computed once, by the number of their stage."""
    products_of: dict[int, SumOfProducts]
    """Stages of products as they are computed: with the signs of the sums that they read."""
    arrays: frozenset[int] = frozenset()
    """The numbers of stages that are functions of arrays."""

    def _facts(self) -> dict[str, Any]:
        sums = [way.name for way in self.chosen.values()]
        return {"additions": self.additions, "products": self.products, "sums": sums}

    @cached_property
    def additions(self) -> int:
        """Additions and subtractions a row."""
        return sum(
            self.chosen[i].circuit.additions if i in self.chosen else cost(stage).additions
            for i, stage in plain_stages(self.program.stages)
        )

    @cached_property
    def products(self) -> int:
        """Multiplications, divisions and functions a row."""
        saved = sum(pairs.saved for pairs in self.pairs.values())
        return self.program.cost.products - saved

    @cached_property
    def written(self) -> int:
        """Operations that a statement names: a function of an array is one of these."""
        inside = sum(sum(cost(one)) - one.n_inputs - one.n_outputs for one in self._packed())
        return self.additions + self.products - inside

    @cached_property
    def numbers(self) -> int:
        """Numbers of the arrays that stand in a statement."""
        return sum(one.n_inputs * one.n_outputs for one in self._packed())

    def _packed(self) -> list[Stage]:
        return [one for i, one in plain_stages(self.program.stages) if i in self.arrays]


def plan_program(
    program: Program, plan: str, dialect: Dialect, *, n_kept: int = 0, every_column: bool = False
) -> Plan:
    """The cheapest ways that ``plan`` allows and the engine's SELECT has room for.

    ``n_kept`` columns go along in every SELECT. ``every_column`` is looked at, needed or not.
    """
    program = program.only(every_column=every_column)
    limit = dialect.limits.select_columns
    room = None if limit is None else limit - n_kept - 1
    ways, chosen, pairs, arrays, products = {}, {}, {}, set(), {}
    for before, i, stage in _in_order(program.stages):
        if found := _ways(stage, plan, dialect, room):
            ways[i], chosen[i] = found, _choose(found, plan)
        if isinstance(stage, SumOfProducts) and (shared_pairs := _worth_pairs(stage, room)):
            pairs[i] = shared_pairs
        if _is_of_arrays(stage, dialect):
            arrays.add(i)
        if isinstance(stage, SumOfProducts) and before in chosen:
            chosen[before], products[i] = _signs_moved(chosen[before], stage)
    return Plan(program, ways, chosen, pairs, products, frozenset(arrays))


def _in_order(stages: Sequence[Stage], first: int = 0) -> Iterator[tuple[int | None, int, Stage]]:
    """Stages with their numbers; before each, that of the one that it reads, if it is no paths."""
    before = None
    for number, stage in numbered(stages, first):
        if isinstance(stage, Paths):
            for start, path in stage.numbered(number):
                yield from _in_order(path, start)
            before = None
        else:
            yield before, number, stage
            before = number


def _signs_moved(way: Way, stage: SumOfProducts) -> tuple[Way, SumOfProducts]:
    """Sums that are a column each, or minus one, without these signs; products that have them.

    A term takes the signs of its factors, which its own sign has room for: so nothing has to be
    negated, and the columns need no other names.
    """
    circuit = way.circuit
    if not (circuit.layers and (np.diff(circuit.starts) == 1).all()):
        return way, stage
    of_factor = np.append(np.sign(circuit.terms), 1)  # what is no factor, -1, has no sign
    signs = stage.sign * of_factor[stage.factors].prod(axis=2)
    found = replace(circuit, terms=np.abs(circuit.terms))
    unsigned = replace(way, _work_out=lambda: found)
    return unsigned, replace(stage, sign=signs.astype(stage.sign.dtype))


def _worth_pairs(stage: SumOfProducts, room: int | None) -> Pairs | None:
    """The pairs of factors to compute once, if that saves enough and there is room for them."""
    if stage.is_ragged:
        return None
    found = paired(stage)
    fits = room is None or len(found.pairs) + len(np.unique(found.others)) <= room
    return found if fits and found.saved > _PAIRS_SAVE * found.place.size else None


def _is_of_arrays(stage: Stage, dialect: Dialect) -> bool:
    """Whether sums with weights, or distances, are quicker as functions of arrays.

    Each is then one function of one literal, in place of thousands of operations to be planned.
    """
    if isinstance(stage, Linear):
        function = None if stage.is_signed or stage.picks else dialect.inner_product
    elif isinstance(stage, Distances):
        # A point that does not read an input says nothing of it; an array would.
        whole = len(stage.value) == stage.n_sums * stage.n_inputs
        function = dialect.squared_distance if whole else None
    else:
        return False
    enough = len(stage.value) >= max(_SUMS_AN_ARRAY * stage.n_inputs, _NUMBERS_AN_ARRAY)
    return function is not None and enough


def _choose(ways: list[Way], plan: str) -> Way:
    allowed = [way for way in ways if plan in ("auto", way.plan)]
    if not allowed and plan == "butterflies":
        raise ParameterError("plan='butterflies' is for Hadamard pools: use 'auto' or 'shared'")
    best, *others = sorted(allowed or ways, key=lambda way: way.at_least)
    for way in others:
        if way.at_least < best.seconds and way.seconds < best.seconds:
            best = way
    return best


def _ways(stage: Stage, plan: str, dialect: Dialect, room: int | None) -> list[Way]:
    """Every way to a stage that only adds and subtracts, the plainest first; else none."""
    if not isinstance(stage, (Linear, Butterflies)):
        return []
    cost_of = partial(_seconds, dialect=dialect, room=room)

    def way(plan: str, name: str, additions: int, work_out: Callable[[], Circuit]) -> Way:
        return Way(plan, name, _seconds_of(additions, 0, dialect), work_out, cost_of)

    if isinstance(stage, Butterflies) and _is_long(stage, plan):
        return [way("butterflies", "butterflies", 0, partial(butterflies, stage))]
    table = stage.linear
    if table.picks or not table.is_signed:
        return []
    ways = [way("plain", "plain", cost(table).additions, partial(plain, table))]
    few = table.n_sums * table.n_inputs <= _LARGEST_TABLE
    for size in _GROUP_SIZES[: max(0, table.n_inputs - 1)] if few and plan != "plain" else ():
        name = f"shared, groups of {size}"
        least = additions_of_groups(table, size)
        ways.append(way("shared", name, least, partial(shared, table, size)))
    if isinstance(stage, Butterflies):
        ways.append(way("butterflies", "butterflies", 0, partial(butterflies, stage)))
    return ways


def _is_long(stage: Butterflies, plan: str) -> bool:
    """Whether its hyperplanes written out are no statement, so that nobody need see them."""
    return plan in ("auto", "butterflies") and stage.n_entries > _LONGEST_SUMS


def _seconds(circuit: Circuit, dialect: Dialect, room: int | None) -> float:
    seconds = _seconds_of(circuit.additions, circuit.columns, dialect)
    # What a SELECT has no room for goes on in an array, or cannot be.
    if room is not None and circuit.widest > room:
        packed = (circuit.widest - room) / circuit.widest
        item = math.inf if dialect.array is None else dialect.costs.item
        seconds += ROWS * packed * (len(circuit.terms) + circuit.columns) * item
    return seconds


def _seconds_of(additions: int, columns: int, dialect: Dialect) -> float:
    costs = dialect.costs
    a_row = additions * costs.addition + columns * costs.column
    return (2 * additions + columns) * costs.node + ROWS * a_row


def seconds_to_plan(plan: Plan, dialect: Dialect) -> float:
    """About how long the engine plans a wide statement, whatever rows there are."""
    return 2 * plan.written * dialect.costs.node


def by_numpy(
    plan: Plan, dialect: Dialect, short: tuple[float, float] | None = None
) -> tuple[float, float] | None:
    """About how long the SQL takes, and moving ROWS rows to NumPy and back, if that is far less.

    What NumPy computes is left out, as its own operations cost little beside a number's way. Of a
    form whose text is ``short`` that says how long it takes at once, and in each row.
    """
    sql = short[0] + ROWS * short[1] if short else _seconds_of(plan.written, 0, dialect)
    values = len(plan.program.prepare.columns) + len(plan.program.names)
    moving = ROWS * values * dialect.moved
    return (sql, moving) if sql > max(_TIMES_MOVED * moving, moving + _SECONDS_SAVED) else None
