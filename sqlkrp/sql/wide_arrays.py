"""Sums of the wide form as functions of arrays: many inputs with as many literal numbers."""

from __future__ import annotations

from collections.abc import Iterator

from sqlkrp.sql.levels import Levels
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages.parts import inputs_of
from sqlkrp.stages.records import Distances, Linear

__all__ = ["functions_of_array"]


def functions_of_array(
    levels: Levels, function: str | None, stage: Linear | Distances, values: Vector
) -> Iterator[str]:
    """A function of one array of what a stage reads, and of each row of its matrix as a literal."""
    # In a path others may be no values any more.
    read = inputs_of(stage)
    matrix = stage.matrix()[:, read]
    values = Vector(values[i] for i in read.tolist())
    dialect, dtype = levels.dialect, levels.job.dtype
    assert function is not None
    type_name, count = levels.job.type_name, len(values)
    there = "complete = 1" if levels.complete else ""
    packed = Vector(values, there=there).as_array(dialect)
    (array,) = levels.level({"a": dialect.typed_array(packed, type_name, count)}).values()
    # So many digits are read as the same number again.
    digits = f"%.{9 if dtype == 'float32' else 17}g"
    for row in matrix.astype(dtype).tolist():
        numbers = ",".join(map(digits.__mod__, row))
        yield function.format(array=array, numbers=numbers, type=type_name, count=count)
