"""The NumPy twin inside DuckDB's statements: a function of columns of Arrow, in the same process.

DuckDB calls it with a vector of 2,048 rows at a time, so that memory stays small; the statement
around it is like any other: it reads what its transaction sees, and is whole or nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.sql.names import listed
from sqlkrp.sql.twin import Twin
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import Array

__all__ = ["drop_function", "make_function", "relation_of"]

_TYPES = {"float32": "FLOAT", "float64": "DOUBLE"}
# DuckDB holds no reference to a function of Python: were one collected whose name is still there
# (as its removal was rolled back), a statement would call what is in its place in memory.
_FUNCTIONS: dict[str, _Function] = {}


class _Function:
    """What DuckDB calls with arrays of Arrow, for as long as it is to."""

    def __init__(self, twin: Twin) -> None:
        self.compute: Callable[[Sequence[Any]], Any] | None = _computing(twin)

    def __call__(self, *columns: Any) -> Any:
        if self.compute is None:
            raise RuntimeError("the database that made this was closed: make it again")
        return self.compute(columns)


def _computing(twin: Twin) -> Callable[[Sequence[Any]], Any]:
    """From columns of numbers to one of features."""
    write, names, prepare = twin.program.writer(), twin.program.names, twin.program.prepare

    def compute(columns: Sequence[Any]) -> Any:
        inputs = np.empty((len(columns), len(columns[0])), dtype=prepare.dtype)
        for row, column in zip(inputs, columns, strict=True):
            row[:] = column.to_numpy(zero_copy_only=False)
        shape = len(names), inputs.shape[1]
        # An array is of a row, and a column of what all rows have.
        order: Any = "F" if twin.in_array else "C"
        values = np.empty(shape, dtype=prepare.dtype, order=order)
        write(inputs, values)
        return _as_arrow(values, _blank(prepare.nulls, inputs), twin.in_array)

    return compute


def relation_of(twin: Twin) -> tuple[str, Vector]:
    """Rows with what the twin's function makes of them."""
    call = f"{twin.name}({listed(twin.inputs)}) AS a"
    made = f"SELECT {listed([*twin.kept, call])} FROM {twin.relation} AS every"
    count = len(twin.program.names)
    if twin.in_array:
        items = [f"a[{place + 1}]" for place in range(count)]
        return f"(\n{made}\n)", Vector(items, array="a", there="a IS NOT NULL")
    kept = [f"k{i}" for i in range(len(twin.kept))]
    # The fields of the struct by themselves, which are columns without being copied.
    fields = f"SELECT {', '.join([*kept, 'UNNEST(a)'])} FROM (\n{made}\n) AS made"
    return f"(\n{fields}\n)", Vector((f"f{i}" for i in range(count)), there="f0 IS NOT NULL")


def make_function(connection: Any, twin: Twin) -> None:
    """Make a twin's function."""
    _require_pyarrow()
    function, number = _Function(twin), duckdb.type(_TYPES[twin.program.prepare.dtype])
    count = len(twin.program.names)
    made = (
        duckdb.array_type(number, count)
        if twin.in_array
        else duckdb.struct_type({f"f{i}": number for i in range(count)})
    )
    _FUNCTIONS[twin.name] = function
    connection.create_function(
        twin.name, function, None, made, type="arrow", null_handling="special"
    )


def drop_function(connection: Any, twin: Twin) -> None:
    """Drop a twin's function."""
    # In a transaction that failed every statement is refused, and what it made goes with it.
    with contextlib.suppress(duckdb.Error):
        connection.remove_function(twin.name)
    if twin.name in _FUNCTIONS:
        _FUNCTIONS[twin.name].compute = None


def _blank(nulls: str, inputs: Array) -> Array | None:
    """Whether each row has no features; None if all have."""
    if nulls != "propagate":
        return None
    whole: Array = np.logical_and.reduce(np.isfinite(inputs))
    return None if whole.all() else ~whole


def _as_arrow(values: Array, blank: Array | None, in_array: bool) -> Any:
    """Values (value, row) as one column, which is NULL where a row is blank."""
    import pyarrow as pa

    mask = None if blank is None else pa.array(blank)
    if in_array:
        items = pa.array(values.T.reshape(-1))
        return pa.FixedSizeListArray.from_arrays(items, len(values), mask=mask)
    names = [f"f{i}" for i in range(len(values))]
    return pa.StructArray.from_arrays([pa.array(one) for one in values], names=names, mask=mask)


def _require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401 - DuckDB calls such functions with its arrays
    except ImportError as bad:
        raise ParameterError(
            "how='arrow' needs pyarrow, which is not installed: pip install 'sqlkrp[arrow]'"
        ) from bad
