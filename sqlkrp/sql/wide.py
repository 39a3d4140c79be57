"""The wide form: a row program as nested SELECTs over unrolled columns.

Each stage writes its outputs as expressions over the columns of the SELECT below it. A stage whose
inputs are used more than once has them named in a SELECT of their own first, so each is computed
once. Sums are balanced: however many terms, no expression is nested deeply.

Statements reach a hundred thousand terms, so they are joined as text over names that were quoted
once; they are never parsed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sqlkrp.memory import require_memory
from sqlkrp.sql import answers
from sqlkrp.sql.entries import Gathered, gathered_rows
from sqlkrp.sql.job import Job, Written
from sqlkrp.sql.levels import Levels
from sqlkrp.sql.vectors import Vector
from sqlkrp.sql.wide_inputs import prepared
from sqlkrp.sql.wide_sums import butterflies, distances, linear, sum_of_products
from sqlkrp.stages import Answers, Bounds, Paths, Prepare, Shares, Stage, Votes, numbered
from sqlkrp.stages.parts import inputs_of
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts

__all__ = ["WRITERS", "begun", "ended", "write_wide_form", "written"]


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
    for position, stage in numbered(stages, first):
        if not values.is_named and not _is_written_in(stage, levels):
            values = levels.named(values, "p")
        values = WRITERS[type(stage)](levels, stage, position, values)
    return values


def begun(levels: Levels, prepare: Prepare) -> tuple[Vector, Gathered | None]:
    """The prepared inputs as columns; of sparse input, where they were gathered."""
    if levels.job.long is None:
        return prepared(levels, prepare), None
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


def _elementwise(levels: Levels, stage: Elementwise, position: int, values: Vector) -> Vector:
    dialect, dtype = levels.dialect, levels.job.dtype
    return Vector(levels.cast(dialect.function(stage.function, value, dtype)) for value in values)


def _paths(levels: Levels, stage: Paths, position: int, values: Vector) -> Vector:
    """One path after the other; what is to be read later, and what was found, goes along."""
    inputs, found = dict(enumerate(values)), list[str]()
    paths = [path for _, path in stage.numbered(position)]
    for place, (first, path) in enumerate(stage.numbered(position)):
        read = Vector([inputs.get(i, "") for i in range(len(values))], is_named=True)
        later = sorted({i for one in paths[place + 1 :] for i in inputs_of(one[0]).tolist()})
        made, there = levels.beside(
            [*(inputs[i] for i in later), *found], partial(written, levels, path, first, read)
        )
        inputs = dict(zip(later, there, strict=False))
        found = [*there[len(later) :], *made]
    return Vector(found)


WRITERS: dict[type[Stage], Callable[[Levels, Any, int, Vector], Vector]] = {
    Linear: linear,
    Butterflies: butterflies,
    SumOfProducts: sum_of_products,
    Distances: distances,
    Elementwise: _elementwise,
    Paths: _paths,
    Bounds: answers.bounds,
    Shares: answers.shares,
    Votes: answers.votes,
    Answers: answers.answers,
}
