"""Rows in memory, whichever library holds them, as columns and numbers of NumPy.

No library is imported for it: what a user gives is known by what it can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError, ColumnTypeError, ParameterError
from sqlkrp.maps.source import BOOLEAN, FLOAT32, NUMBER, NUMERIC
from sqlkrp.stages import is_missing

__all__ = [
    "ARRAY",
    "RESHAPE",
    "Columns",
    "has_order",
    "in_slabs",
    "is_relation",
    "is_sparse",
    "is_streamed",
    "is_table",
    "kind_of",
    "local",
    "names_of",
    "text_names",
    "to_array",
    "to_floats",
    "within",
    "without_names",
]

#: What a table without names is called where a column would have a name.
ARRAY = "an array"
#: What to do with one dimension; in scikit-learn's words, which its users look for.
RESHAPE = "Reshape your data: X.reshape(1, -1) is one row, X.reshape(-1, 1) one column"

# Of sparse rows so many values are dense at a time, half a gigabyte: each part has fixed costs.
_DENSE_VALUES = 2**26
# What objects may be to be numbers, and the types of those that are missing.
_NUMBERS = (Real, Decimal, np.bool_)
_MISSING = ("NoneType", "NAType", "NaTType")  # two are pandas' own, which may not be there


class Columns(dict[str, Any]):
    """Columns by name that have an order, as a DataFrame's have and a mapping's have not."""

    @property
    def columns(self) -> list[str]:
        """The names, in order."""
        return list(self)


# --- tables --------------------------------------------------------------------------------------


def local(data: Any) -> Any:
    """Rows as columns that NumPy reads; what is read already as it is.

    A table of Arrow's, such as polars' and pyarrow's, becomes such columns, and so does a relation.
    """
    data = within(data)
    if isinstance(data, Mapping) and not is_sparse(data):
        _require_one_length(data)
    if is_relation(data) or is_streamed(data):
        from sqlkrp.engines.duckdb_frames import columns_of

        for name in getattr(data, "column_names", ()) or getattr(data, "columns", ()):
            if "\0" in name:  # which ends the process in some libraries
                raise ColumnError(f"column name {name!r} holds a zero byte: rename it")
        return columns_of(data)
    if hasattr(data, "collect_schema"):
        raise ParameterError(
            f"a {type(data).__name__} is a plan and has no rows yet: give its .collect()"
        )
    return data.to_numpy() if _has_no_names(data) else data


def _has_no_names(data: Any) -> bool:
    """Whether this is a DataFrame of no texts for names, which scikit-learn takes for an array."""
    is_frame = hasattr(data, "iloc") and hasattr(data, "columns")
    return is_frame and not any(isinstance(name, str) for name in data.columns)


def _require_one_length(columns: Mapping[Any, Any]) -> None:
    """Raise ColumnError unless all columns of a mapping are lists of as many values."""
    rows: int | None = None
    for name, column in columns.items():
        is_list = isinstance(column, Sized) and not isinstance(column, str)
        if not is_list or getattr(column, "ndim", 1) != 1:
            raise ColumnError(f"column {name!r} is no list of values: give a value for each row")
        count = len(column)
        if rows is not None and count != rows:
            raise ColumnError(
                f"column {name!r} has {count:,} values, and those before it have {rows:,}: give "
                "one for each row"
            )
        rows = count


def within(data: Any) -> Any:
    """The table of another library that narwhals stands around; else what is given."""
    return data.to_native() if hasattr(data, "to_native") else data


def is_relation(data: Any) -> bool:
    """Whether this is a DuckDB relation; by its name, so that duckdb is not imported for it."""
    return type(data).__name__ == "DuckDBPyRelation"


def is_streamed(data: Any) -> bool:
    """Whether this is a table that gives its rows as a stream of Arrow's.

    pandas does so too, where pyarrow is installed, and its columns are NumPy's own already. A
    column by itself has a type.
    """
    is_column = hasattr(data, "dtype") or hasattr(data, "type")
    return hasattr(data, "__arrow_c_stream__") and not hasattr(data, "iloc") and not is_column


def is_table(data: Any) -> bool:
    """Whether this has named columns of values: a DataFrame, or a mapping of arrays."""
    return isinstance(data, Mapping) or (hasattr(data, "columns") and hasattr(data, "to_numpy"))


def is_sparse(data: Any) -> bool:
    """Whether these are the rows of a sparse matrix of SciPy's."""
    return hasattr(data, "tocsr")


def has_order(table: Any) -> bool:
    """Whether the columns of a table have an order, and not only names."""
    return hasattr(table, "columns")


def names_of(table: Any) -> list[str]:
    """The names of a table's columns."""
    return text_names(table.columns if has_order(table) else table)


def text_names(names: Any) -> list[str]:
    """Names of columns, or a ColumnError: each is text, and there once."""
    texts = [name for name in names if isinstance(name, str)]
    if len(texts) < len(names):
        raise ColumnError("a DataFrame's column names must be text: use df.columns.astype(str)")
    if len(set(texts)) < len(texts):
        twice = sorted({name for name in texts if texts.count(name) > 1})
        raise ColumnError(f"column names stand twice in the DataFrame: {twice!r}; rename them")
    return texts


def without_names(data: Any) -> NDArray[Any]:
    """A table without names as an array of rows and columns; of objects, their numbers."""
    table = to_array(data)
    if not table.ndim:
        raise ParameterError(
            f"a {type(data).__name__} is no table of rows and columns: give a DataFrame, an array, "
            "or a table of a connected database (db.source(name))"
        )
    if table.ndim != 2:
        raise ColumnError(
            f"expected rows and columns, got {table.ndim} dimension(s), of shape {table.shape}. "
            f"{RESHAPE}"
        )
    return to_floats(ARRAY, table) if table.dtype.kind in "Oc" else table


def to_array(data: Any) -> NDArray[Any]:
    """A table without names as an array; masked entries are missing."""
    if isinstance(data, np.ma.MaskedArray):
        return np.ma.filled(data.astype("float64"), np.nan)
    try:
        return np.asarray(data.toarray() if is_sparse(data) else data)
    except ValueError as bad:  # which NumPy tells in its own terms
        raise ColumnError(
            f"cannot read this {type(data).__name__} as rows and columns: give as many numbers in "
            f"each row ({bad})"
        ) from bad


def in_slabs(data: Any) -> Iterator[Any]:
    """Sparse rows in parts that may become dense; all else as it is, at once."""
    if not is_sparse(data):
        yield data
        return
    table = data.tocsr()
    size = max(1, _DENSE_VALUES // max(1, table.shape[1]))
    for first in range(0, max(1, table.shape[0]), size):
        yield table[first : first + size]


# --- columns -------------------------------------------------------------------------------------


def kind_of(column: Any) -> str:
    """What a column holds: numbers, single or not, truth values, or anything else, by its type.

    Of objects it is asked what they are.
    """
    dtype = _dtype(column)
    name = str(dtype)
    if _is_of_objects(dtype):
        return _kind_of_objects(np.asarray(column, dtype=object)) or name
    # pandas' nullable and Arrow types (Int64, Float32, boolean) carry NumPy's letter in .kind.
    if getattr(dtype, "kind", "O") not in "biuf" or name == "category":
        return name
    if dtype.kind == "b":
        return BOOLEAN
    single = name.lower().startswith("float32") or name == "float[pyarrow]"
    return FLOAT32 if single else NUMBER


def to_floats(name: str, column: Any) -> NDArray[np.float64]:
    """Values as doubles, with NaN for what is missing (also in pandas' nullable types)."""
    kind = kind_of(column)
    objects = np.asarray(column, dtype=object) if _is_of_objects(_dtype(column)) else None
    if kind not in NUMERIC and (objects is None or _types_in(objects)):
        raise _no_numbers(name, kind, objects)
    if objects is not None:
        return _floats_of(objects)
    if hasattr(column, "to_numpy"):
        floats: NDArray[np.float64] = column.to_numpy(dtype="float64", na_value=np.nan)
        return floats
    return to_array(column).astype("float64")


def _dtype(column: Any) -> Any:
    return column.dtype if hasattr(column, "dtype") else np.asarray(column).dtype


def _is_of_objects(dtype: Any) -> bool:
    """Whether values are Python's own, of any types; those of exact decimals of Arrow's are too."""
    name = str(dtype)
    return name == "object" or name.startswith("decimal")


def _types_in(objects: NDArray[Any]) -> set[type[Any]]:
    """The types of what is not missing."""
    types = set(map(type, objects.ravel().tolist()))
    return {one for one in types if one.__name__ not in _MISSING}


def _kind_of_objects(objects: NDArray[Any]) -> str:
    """The kind of what is there; empty if nothing is, or things of several types."""
    types = _types_in(objects)
    if types and all(issubclass(one, (bool, np.bool_)) for one in types):
        return BOOLEAN
    if types and all(issubclass(one, _NUMBERS) for one in types):
        return NUMBER
    return types.pop().__name__ if len(types) == 1 else ""


def _floats_of(objects: NDArray[Any]) -> NDArray[np.float64]:
    numbers = [_float_of(value) for value in objects.ravel().tolist()]
    return np.array(numbers, dtype="float64").reshape(objects.shape)


def _float_of(value: Any) -> float:
    if is_missing(value):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # a whole number beyond them
        return np.inf if value > 0 else -np.inf


def _no_numbers(name: str, kind: str, objects: NDArray[Any] | None) -> ColumnError:
    """What is raised of values that are no numbers."""
    if name != ARRAY:
        return ColumnError(
            f"column {name!r} is of type {kind}, and the map was drawn for a number there: cast it"
        )
    if objects is None:
        no = "Complex data not supported: " if kind.startswith("complex") else ""
        return ColumnError(f"{no}the array is of type {kind}: give numbers")
    wrong = sorted(one.__name__ for one in _types_in(objects) if not issubclass(one, _NUMBERS))
    return ColumnTypeError(
        f"the array is of type object and holds a {wrong[0]}: an argument must be no string and no "
        "other thing, but a number; give such, or a DataFrame, of which columns are chosen"
    )
