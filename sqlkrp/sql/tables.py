"""The tables form: the stages' tables are loaded once and joined.

Every step reads a relation (row_id, feature, value) and gives one: short whatever the map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sqlkrp.sql.chain import Chain, free_name
from sqlkrp.sql.entries import gathered_values, prepared_entries
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import Job, Written
from sqlkrp.sql.levels import Levels
from sqlkrp.sql.names import quote
from sqlkrp.sql.side_tables import SideTables, Table
from sqlkrp.sql.vectors import Vector
from sqlkrp.sql.wide import ended, written
from sqlkrp.stages import (
    Array,
    Cost,
    Paths,
    Prepare,
    Program,
    Stage,
    cost,
    is_projection,
    numbered,
    plain_stages,
)
from sqlkrp.stages.records import Butterflies, Distances, Elementwise, Linear, SumOfProducts

__all__ = ["STEPS", "cost_of_joins", "side_tables", "write_tables_form"]


def side_tables(program: Program, digest: str, token: str = "") -> SideTables:
    """The tables to load for a program.

    Full names begin with the map's digest; ``token`` tells apart those of two statements.
    """
    tables: SideTables = {}
    for position, stage in plain_stages(program.stages[: program.closing]):
        for name, columns in STEPS[type(stage)].tables(stage).items():
            again = sum(known == name for _, known in tables)
            full = f"{digest[:12]}_{token}{name}" + (f"_{again + 1}" if again else "")
            tables[position, name] = full, columns
    return tables


def write_tables_form(job: Job) -> Written:
    """The SELECT of a program's outputs, joining its side tables."""
    program = job.program
    later, closing = program.stages[1 : program.closing], program.stages[program.closing :]
    # Sums over hyperplanes, and distances, know that an absent entry is 0.
    knows = bool(later) and (is_projection(later[0]) or isinstance(later[0], Distances))
    chain = prepared_entries(job, fill_absent=not knows)
    _go_through(chain, later, 1)
    if closing:
        return _closed(chain, closing)
    collected, values = _collected(job, len(program.names))
    chain.then("collected", "collect_values", {}, {"collected": collected})
    selected = [f"{key} AS {quote(name, job.dialect)}" for key, name in _kept(job)]
    outputs = job.outputs(values)
    final = chain.bind(
        "collect",
        {"source": chain.source, "collected": chain.current},
        # Some engines would find two columns to order by, if an output had the name.
        {"kept": selected, "outputs": outputs, "place": free_name("place", job.columns)},
    )
    widest = max(_numbered(job), len(selected) + len(outputs), 1 + len(collected))
    return Written(chain.text(final), widest, chain.side_tables)


def _go_through(chain: Chain, stages: Sequence[Stage], first: int) -> None:
    """The steps of stages, of which the first has this number."""
    for position, stage in numbered(stages, first):
        STEPS[type(stage)].write(chain, stage, position)


def _closed(chain: Chain, closing: Sequence[Stage]) -> Written:
    """The statement that goes on with the last few values as columns."""
    job, position = chain.job, chain.job.program.closing
    collected, values = _collected(job, closing[0].n_inputs)
    aliases = [f"k{i}" for i in range(len(job.kept))]
    kept = [f"{key} AS {alias}" for (key, _), alias in zip(_kept(job), aliases, strict=True)]
    gathered = gathered_values(chain, collected, kept, values)
    levels = Levels(job)
    answers = written(levels, closing, position, levels.go_on_from(gathered))
    finished = ended(levels, gathered, answers)
    return replace(finished, widest=max(finished.widest, _numbered(job), 1 + len(collected)))


def _kept(job: Job) -> list[tuple[str, str]]:
    """What is handed on: where the chain's source has it, and its name."""
    keys = [f"source.k{i}" for i in range(len(job.keep))]
    if job.long is not None:
        keys.insert(0, "source.row_key")
    return list(zip(keys, job.kept, strict=True))


def _numbered(job: Job) -> int:
    """Entries of the SELECT that numbers the rows."""
    return 2 + len(job.keep) + (1 if job.long else len(job.program.prepare.columns))


def cost_of_joins(program: Program) -> Cost:
    """The operations a row: each hyperplane is added up by itself."""
    plain = (stage for _, stage in plain_stages(program.stages))
    stages = [one.linear if isinstance(one, Butterflies) else one for one in plain]
    additions, products = zip(*map(cost, stages), strict=True)
    return Cost(sum(additions), sum(products))


def _collected(job: Job, count: int) -> tuple[list[str], Vector]:
    """The aggregates that collect so many values of a row, and the values as these have them."""
    dialect = job.dialect
    if dialect.collect is None:
        collected = [f"MAX(CASE WHEN feature = {i} THEN value END) AS f{i}" for i in range(count)]
        items, array = [f"collected.f{i}" for i in range(count)], ""
    else:
        collected, array = [f"{dialect.collect} AS items"], "collected.items"
        items = [dialect.item(array, i) for i in range(count)]
    cast = [dialect.cast.format(value=item, type=job.type_name) for item in items]
    return collected, Vector(cast, array=array, there="collected.row_id IS NOT NULL")


def _nothing(chain: Chain, stage: Stage, position: int) -> None:
    """Entries are prepared where the chain begins."""


def _linear(chain: Chain, stage: Linear, position: int) -> None:
    if stage.factor is not None:
        constant = {"constant": chain.double(stage.factor)}
        chain.then(f"scaled_{position}", "scale", {}, constant)
    elif stage.picks:
        chain.then(f"picked_{position}", "picks", {"picks": chain.side(position, "picks")})
    else:
        _sums(chain, stage, position)


def _sums(chain: Chain, stage: Linear, position: int) -> None:
    relations = {
        "hyperplanes": chain.side(position, "hyperplanes"),
        "pool": chain.side(position, "pool"),
        "complete": chain.complete,
    }
    signed = "CASE WHEN hyperplanes.sign > 0 THEN inputs.value ELSE -inputs.value END"
    weighed = "inputs.value * hyperplanes.weight"
    values = {
        "entry": signed if stage.is_signed else weighed,
        "constant": chain.double(0.0) if stage.constant is None else "pool.constant",
    }
    chain.then(f"sums_{position}", "linear", relations, values)


def _butterflies(chain: Chain, stage: Butterflies, position: int) -> None:
    _sums(chain, stage.linear, position)


def _sum_of_products(chain: Chain, stage: SumOfProducts, position: int) -> None:
    components = {"components": chain.side(position, "components")}
    product = _product(chain.dialect, stage)
    chain.then(f"products_{position}", "sum_of_products", components, {"product": product})


def _product(dialect: Dialect, stage: SumOfProducts) -> str:
    """The product over the factors of a term, as a window aggregate."""
    window = "PARTITION BY inputs.row_id, components.component, components.term"
    if dialect.product is not None:
        return dialect.product.format(value="inputs.value", window=window)
    # exp(sum(ln)) would not be exact; picking each factor is.
    factors = [
        dialect.factor.format(value="inputs.value", factor=factor, window=window)
        for factor in range(stage.factors.shape[2])
    ]
    if stage.is_ragged:
        factors = [f"COALESCE({factor}, 1)" for factor in factors]
    return " * ".join(factors)


def _distances(chain: Chain, stage: Distances, position: int) -> None:
    relations = {"points": chain.side(position, "points"), "complete": chain.complete}
    zero = {"zero": chain.double(0.0)}
    chain.then(f"distances_{position}", "distances", relations, zero)


def _elementwise(chain: Chain, stage: Elementwise, position: int) -> None:
    result = chain.dialect.function(stage.function, "inputs.value", "float64")
    chain.then(f"{stage.function}_{position}", "elementwise", {}, {"result": result})


def _paths(chain: Chain, stage: Paths, position: int) -> None:
    """Each path goes out from the inputs; then its values get the numbers that they have here."""
    inputs, found = chain.current, ""
    for (first, path), (place, _) in zip(stage.numbered(position), stage.places, strict=True):
        chain.current = inputs
        _go_through(chain, path, first)
        if found:
            behind = {"behind": chain.current}
            chain.current = found
            chain.then(f"beside_{first}", "beside", behind, {"place": str(place)})
        found = chain.current


# --- the tables that steps join ---------------------------------------------------------------


def _prepare_tables(stage: Prepare) -> dict[str, Table]:
    names = ("fill", "shift", "scale", *(("low", "high") if stage.bounds else ()))
    return {
        "columns": {
            "feature": _index(np.arange(len(stage.columns))),
            "name": np.array(stage.columns, dtype=object),
            **{name: getattr(stage, name).astype(stage.dtype) for name in names},
        }
    }


def _linear_tables(stage: Linear) -> dict[str, Table]:
    if stage.factor is not None:
        return {}  # one number, which stands in the statement
    output, feature = _index(stage.output), {"feature": _index(stage.input)}
    value = {"sign": stage.value} if stage.is_signed else {"weight": stage.value.astype("f8")}
    constant = {} if stage.constant is None else {"constant": stage.constant.astype("f8")}
    if stage.picks:
        none = {"constant": np.zeros(stage.n_sums)}
        return {"picks": {"output": output, **feature, **value, **none, **constant}}
    # One row for each output: what is all zero has no row of its own among the hyperplanes.
    pool = {"hyperplane": _index(np.arange(stage.n_sums)), **constant}
    return {"hyperplanes": {"hyperplane": output, **feature, **value}, "pool": pool}


def _sum_of_products_tables(stage: SumOfProducts) -> dict[str, Table]:
    component, term, factor = np.nonzero(stage.factors >= 0)
    return {
        "components": {
            "component": _index(component),
            "term": _index(term),
            "factor": _index(factor),
            "hyperplane": _index(stage.factors[component, term, factor]),
            "sign": stage.sign[component, term].astype(np.int8),
        }
    }


def _distances_tables(stage: Distances) -> dict[str, Table]:
    index = {"point": _index(stage.output), "feature": _index(stage.input)}
    return {"points": {**index, "coordinate": stage.value.astype("f8")}}


def _index(numbers: Array) -> Array:
    return numbers.astype(np.int32)


class Step(NamedTuple):
    """How a kind of stage is written, and the tables of it that are joined, by name."""

    write: Callable[[Chain, Any, int], None]
    tables: Callable[[Any], dict[str, Table]]


STEPS: dict[type[Stage], Step] = {
    Prepare: Step(_nothing, _prepare_tables),
    Linear: Step(_linear, _linear_tables),
    Butterflies: Step(_butterflies, lambda stage: _linear_tables(stage.linear)),
    SumOfProducts: Step(_sum_of_products, _sum_of_products_tables),
    Distances: Step(_distances, _distances_tables),
    Elementwise: Step(_elementwise, lambda stage: {}),
    Paths: Step(_paths, lambda stage: {}),
}
