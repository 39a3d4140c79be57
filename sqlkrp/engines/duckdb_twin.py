"""The NumPy twin inside DuckDB's statements: a function of columns of Arrow, in the same process.

DuckDB calls it with a vector of 2,048 rows at a time, so that memory stays small; the statement
around it is like any other: it reads what its transaction sees, and is whole or nothing.
"""

from __future__ import annotations

import contextlib
from typing import Any

import duckdb
import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.sql.names import listed
from sqlkrp.sql.twin import Twin, TwinRows
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import Array

__all__ = ["drop_function", "make_function", "relation_of"]

_TYPES = {"float32": "FLOAT", "float64": "DOUBLE"}
# DuckDB holds no reference to a function of Python: were one collected whose name is still there
# (as its removal was rolled back), a statement would call what is in its place in memory.
_FUNCTIONS: dict[str, _Function] = {}


class _Function:
    """A program as a function of columns of numbers, which are arrays of Arrow."""

    def __init__(self, twin: Twin) -> None:
        self.write: Any = twin.program.writer()
        self.twin = twin

    def __call__(self, *columns: Any) -> Any:
        if self.write is None:
            raise RuntimeError("the database that made this was closed: make it again")
        program = self.twin.program
        dtype = program.prepare.dtype
        inputs = np.empty((len(columns), len(columns[0])), dtype=dtype)
        for row, column in zip(inputs, columns, strict=True):
            row[:] = column.to_numpy()
        shape = len(program.names), inputs.shape[1]
        rows = np.empty(shape[::-1], dtype=dtype) if self.twin.in_array else None
        values = np.empty(shape, dtype=dtype) if rows is None else rows.T
        self.write(inputs, values)
        return _as_arrow(values, _blank(program.prepare.nulls, inputs), self.twin.in_array)

    def forget(self) -> None:
        """Let go of what it holds; its name may outlive that."""
        self.write = None


def relation_of(rows: TwinRows, twin: Twin) -> tuple[str, Vector]:
    """Rows with what the function of their name makes of them."""
    call = f"{rows.name}({listed(rows.inputs)}) AS a"
    made = f"SELECT {listed([*rows.kept, call])} FROM {rows.relation}"
    count = len(twin.program.names)
    if twin.in_array:
        items = [f"a[{place + 1}]" for place in range(count)]
        return f"(\n{made}\n)", Vector(items, array="a", there="a IS NOT NULL")
    kept = [f"k{i}" for i in range(len(rows.kept))]
    # The fields of the struct by themselves, which are columns without being copied.
    fields = f"SELECT {', '.join([*kept, 'UNNEST(a)'])} FROM (\n{made}\n) AS made"
    return f"(\n{fields}\n)", Vector((f"f{i}" for i in range(count)), there="f0 IS NOT NULL")


def make_function(connection: Any, name: str, twin: Twin) -> None:
    """Make a twin's function."""
    _require_pyarrow()
    function, number = _Function(twin), duckdb.type(_TYPES[twin.program.prepare.dtype])
    count = len(twin.program.names)
    made = (
        duckdb.array_type(number, count)
        if twin.in_array
        else duckdb.struct_type({f"f{i}": number for i in range(count)})
    )
    _FUNCTIONS[name] = function
    connection.create_function(name, function, None, made, type="arrow", null_handling="special")


def drop_function(connection: Any, name: str) -> None:
    """Drop a twin's function."""
    # In a transaction that failed every statement is refused, and what it made goes with it.
    with contextlib.suppress(duckdb.Error):
        connection.remove_function(name)
    if name in _FUNCTIONS:
        _FUNCTIONS[name].forget()


def _blank(nulls: str, inputs: Array) -> Array | None:
    """Whether each row has no features; None if all have."""
    if nulls != "propagate":
        return None
    blank: Array = np.logical_not(np.isfinite(inputs)).any(axis=0)
    return blank if blank.any() else None


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
