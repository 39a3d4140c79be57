"""The tables of stages as a database has them: for each kind of stage, and their DDL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import quote, text
from sqlkrp.stages import (
    Array,
    Butterflies,
    Distances,
    Elementwise,
    Linear,
    Prepare,
    Program,
    Stage,
    SumOfProducts,
)

__all__ = ["TABLES", "SideTables", "Table", "create_side_table", "load_side_table", "side_tables"]

#: A table by its columns.
Table = dict[str, Array]
#: Side tables by (stage, name in its template): their full names, and their columns.
SideTables = dict[tuple[int, str], tuple[str, Table]]


def side_tables(program: Program, digest: str, token: str = "") -> SideTables:
    """The tables to load for a program.

    Full names begin with the map's digest; ``token`` tells apart those of two statements.
    """
    tables: SideTables = {}
    for position, stage in enumerate(program.stages):
        for name, columns in TABLES[type(stage)](stage).items():
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


def _prepare(stage: Prepare) -> dict[str, Table]:
    names = ("fill", "shift", "scale", *(("low", "high") if stage.bounds else ()))
    return {
        "columns": {
            "feature": _index(np.arange(len(stage.columns))),
            "name": np.array(stage.columns, dtype=object),
            **{name: getattr(stage, name).astype(stage.dtype) for name in names},
        }
    }


def _linear(stage: Linear) -> dict[str, Table]:
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


def _sum_of_products(stage: SumOfProducts) -> dict[str, Table]:
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


def _distances(stage: Distances) -> dict[str, Table]:
    index = {"point": _index(stage.output), "feature": _index(stage.input)}
    return {"points": {**index, "coordinate": stage.value.astype("f8")}}


def _index(numbers: Array) -> Array:
    return numbers.astype(np.int32)


TABLES: dict[type[Stage], Callable[[Any], dict[str, Table]]] = {
    Prepare: _prepare,
    Linear: _linear,
    Butterflies: lambda stage: _linear(stage.linear),
    SumOfProducts: _sum_of_products,
    Distances: _distances,
    Elementwise: lambda stage: {},
}
