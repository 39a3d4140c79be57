"""The NumPy twin beside Postgres: rows come out in binary, and go back so with their features.

One connection and one transaction: a cursor hands out some rows, and before the next ones these are
copied into a temporary table with what NumPy made of them. Columns that are handed on go through as
they are, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from sqlkrp.engines.session import Streamed, rows_at_once
from sqlkrp.sql.names import listed
from sqlkrp.sql.twin import Twin
from sqlkrp.sql.vectors import Vector
from sqlkrp.stages import Array

__all__ = ["fetched", "fill", "relation_of", "table_of"]

_TYPES = {"float32": "REAL", "float64": "DOUBLE PRECISION"}
# What an array in binary says its items are: their types' places in pg_type, which never change.
_OIDS = {"float32": 700, "float64": 701}
# Inputs and features of the rows of a batch.
_NUMBERS_AT_ONCE = 2_000_000
# The cursor that rows are streamed from.
_STREAM = "sqlkrp_stream"
# The ends of what COPY takes, and what stands there for a NULL.
_BEGINNING, _END, _NULL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff", b"\xff" * 4


def relation_of(twin: Twin) -> tuple[str, Vector]:
    """The temporary table, and the values in it."""
    count, table = len(twin.program.names), f"pg_temp.{twin.name}"
    if twin.in_array:
        items = [f"a[{place + 1}]" for place in range(count)]
        return table, Vector(items, array="a", there="a IS NOT NULL")
    return table, Vector((f"f{i}" for i in range(count)), there="f0 IS NOT NULL")


def table_of(twin: Twin, storage: str) -> str:
    """The statement that creates it, without rows."""
    number = _TYPES[twin.program.prepare.dtype]
    names = [f"f{i}" for i in range(len(twin.program.names))]
    values = [f"CAST(NULL AS {number}) AS {name}" for name in names]
    if twin.in_array:
        values = [f"CAST(NULL AS {number}[]) AS a"]
    return (
        f"CREATE TEMPORARY TABLE {twin.name} WITH ({storage}) ON COMMIT DROP AS\n"
        f"SELECT\n{listed([*twin.kept, *values])}\nFROM {twin.relation} AS every WITH NO DATA"
    )


def fill(cursor: Any, twin: Twin) -> None:
    """Compute all rows, some at a time, and copy them into the table."""
    reading, compute = f"{twin.name}rows", _computing(twin)
    cursor.execute(f"DECLARE {reading} NO SCROLL CURSOR FOR {_rows_of(twin)}", prepare=False)
    size = max(1, _NUMBERS_AT_ONCE // (len(twin.inputs) + len(twin.program.names)))
    while True:
        cursor.execute(f"FETCH {size} FROM {reading}", prepare=False, binary=True)
        rows = cursor.pgresult
        if not rows.ntuples:
            break
        with cursor.copy(f"COPY pg_temp.{twin.name} FROM STDIN (FORMAT binary)") as copy:
            copy.write(b"".join(_copied(rows, compute, len(twin.kept))))
    cursor.execute(f"CLOSE {reading}", prepare=False)


def fetched(
    cursor: Any, relation: str, numbers: Sequence[str], texts: Sequence[str]
) -> Iterator[Streamed]:
    """Rows in binary, some at a time: numbers as one array a row."""
    array = _array_of(numbers, "float64")
    chosen = listed([array, *(f"{one} AS t{i}" for i, one in enumerate(texts))])
    select = f"SELECT\n{chosen}\nFROM {relation} AS every"
    cursor.execute(f"DECLARE {_STREAM} NO SCROLL CURSOR FOR {select}", prepare=False)
    taken, size = _array("float64", len(numbers)), rows_at_once(numbers, texts)
    while True:
        cursor.execute(f"FETCH {size} FROM {_STREAM}", prepare=False, binary=True)
        rows = cursor.pgresult
        if not rows.ntuples:
            break
        table = _numbers((rows.get_value(row, 0) for row in range(rows.ntuples)), taken)
        yield (
            table.astype("float64"),
            [
                _texts(rows, place, cursor.connection.info.encoding)
                for place in range(1, len(texts) + 1)
            ],
        )
    cursor.execute(f"CLOSE {_STREAM}", prepare=False)


def _texts(rows: Any, place: int, encoding: str) -> Array:
    """A column of texts that was fetched."""
    values = (rows.get_value(row, place) for row in range(rows.ntuples))
    return np.array([None if one is None else one.decode(encoding) for one in values], dtype=object)


def _rows_of(twin: Twin) -> str:
    """What is read: an array of the inputs, and the columns to hand on."""
    array = _array_of(twin.inputs, twin.program.prepare.dtype)
    return f"SELECT\n{listed([array, *twin.kept])}\nFROM {twin.relation} AS every"


def _array_of(numbers: Sequence[str], dtype: str) -> str:
    """Numbers as one array."""
    # A NULL is as missing as a NaN, and has no bytes where every row is to have as many.
    items = ", ".join(f"COALESCE({one}, 'NaN')" for one in numbers)
    return f"CAST(ARRAY[{items}] AS {_TYPES[dtype]}[]) AS x"


def _numbers(arrays: Iterable[bytes], taken: np.dtype[Any]) -> Array:
    """Arrays in binary as one (row, item)."""
    # Without its length, which is the value's own no more.
    read = np.frombuffer(b"".join(part for one in arrays for part in (_NULL, one)), taken)
    numbers: Array = read["items"]["number"]
    return numbers


def _copied(
    rows: Any, compute: Callable[[Sequence[bytes]], list[Any]], n_kept: int
) -> Iterator[Any]:
    """What COPY takes for rows that were fetched, in pieces."""
    yield _BEGINNING
    found = compute([rows.get_value(row, 0) for row in range(rows.ntuples)])
    for row, (n_fields, values) in enumerate(found):
        yield (n_kept + n_fields).to_bytes(2, "big")
        for place in range(1, n_kept + 1):
            value = rows.get_value(row, place)
            yield from (_NULL,) if value is None else (len(value).to_bytes(4, "big"), value)
        yield values
    yield _END


def _computing(twin: Twin) -> Callable[[Sequence[bytes]], list[Any]]:
    """From rows' arrays of inputs to their features: how many fields these are, and their bytes."""
    write, prepare = twin.program.writer(), twin.program.prepare
    count = len(twin.program.names)
    taken, given = (_array(prepare.dtype, size) for size in (len(twin.inputs), count))
    # Columns are the items of an array without what stands before these.
    before = given.itemsize - count * (4 + np.dtype(prepare.dtype).itemsize)
    n_fields, start = (1, 0) if twin.in_array else (count, before)

    def compute(arrays: Sequence[bytes]) -> list[Any]:
        inputs = _numbers(arrays, taken).T
        values = np.empty((count, len(arrays)), dtype=prepare.dtype)
        write(inputs, values)
        written = memoryview(_in_binary(values, given).tobytes())
        ends = range(given.itemsize, len(written) + 1, given.itemsize)
        found = [written[end - given.itemsize + start : end] for end in ends]
        if prepare.nulls != "propagate":
            return [(n_fields, one) for one in found]
        whole = np.logical_and.reduce(np.isfinite(inputs)).tolist()
        pairs = zip(found, whole, strict=True)
        return [(n_fields, one if there else _NULL * n_fields) for one, there in pairs]

    return compute


def _array(dtype: str, count: int) -> np.dtype[Any]:
    """An array of so many numbers in binary, with its length in front."""
    number = np.dtype(dtype).newbyteorder(">")
    items = np.dtype([("size", ">i4"), ("number", number)])
    return np.dtype([("length", ">i4"), ("head", ">i4", (5,)), ("items", items, (count,))])


def _in_binary(values: Array, given: np.dtype[Any]) -> Array:
    """Values (value, row) as an array a row."""
    count, rows = values.shape
    out = np.empty(rows, dtype=given)
    out["length"] = given.itemsize - 4
    # Dimensions, whether there are NULLs, the items' type, how many there are, and from where.
    out["head"] = (1, 0, _OIDS[values.dtype.name], count, 1)
    out["items"]["size"] = values.itemsize
    out["items"]["number"] = values.T
    return out
