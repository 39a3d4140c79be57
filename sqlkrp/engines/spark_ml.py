"""A map as a stage of Spark's own pipelines, which are saved and run without sqlkrp."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlkrp.errors import ColumnError, LimitError, ParameterError
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.names import quote
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Query, Statement, write
from sqlkrp.sql.vectors import VECTOR

__all__ = ["INPUT", "stage_of_pipeline"]

#: What SQLTransformer puts the name of its input for, wherever it stands.
INPUT = "__THIS__"
_SPARK = DIALECTS["spark"]


def stage_of_pipeline(query: Query, *, keep_all: bool) -> Any:
    """An SQLTransformer; with vectors a few stages in one, as no SQL makes them."""
    from pyspark.ml import PipelineModel
    from pyspark.ml.feature import SQLTransformer, VectorAssembler

    if query.options.output != VECTOR:
        return SQLTransformer(statement=_statement(query, keep_all))
    if query.program.prepare.nulls == "propagate":
        raise ParameterError(
            "Spark's VectorAssembler stops at a missing value, which nulls='propagate' hands on: "
            "draw the map with another policy, or take output='array'"
        )
    # Names that no input has, as they are beside all of its columns for a while.
    names = [f"{query.digest[:12]}_{name}" for name in query.asked.names]
    query = replace(query, program=replace(query.program, names=tuple(names)))
    columns = _statement(_with(query, output="columns"), keep_all)
    left_out = f"* EXCEPT ({', '.join(quote(name, _SPARK) for name in names)})"
    return PipelineModel(
        [
            SQLTransformer(statement=columns),
            VectorAssembler(inputCols=names, outputCol=query.array_name),
            SQLTransformer(statement=f"SELECT {left_out} FROM {INPUT}"),
        ]
    )


def _with(query: Query, **options: Any) -> Query:
    changed: Options = replace(query.options, **options)
    return replace(query, options=changed)


def _statement(query: Query, keep_all: bool) -> str:
    """The statement over whatever goes in, with all of its columns or those that are kept."""
    if not keep_all:
        return _checked(write(query, _SPARK))
    all_columns = f"sqlkrp_{query.digest[:12]}"
    row = quote(all_columns, _SPARK)
    rows = f"(SELECT *, STRUCT(*) AS {row} FROM {query.relation})"
    made = write(_with(replace(query, relation=rows), keep=(all_columns,)), _SPARK)
    features = ", ".join(quote(name, _SPARK) for name in made.columns[made.n_kept :])
    return f"SELECT {row}.*, {features} FROM (\n{_checked(made)}\n) AS made"


def _checked(statement: Statement) -> str:
    if statement.side_tables:
        raise LimitError(
            "a stage of a pipeline has no room for side tables: use form='array', or fewer "
            "components"
        )
    if statement.text.count(INPUT) > 1:
        raise ColumnError(
            f"a column's name holds {INPUT}, which is Spark's word for the input: rename it"
        )
    return statement.text
