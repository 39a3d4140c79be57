"""What a map learns from the data it is fitted to: names, kinds of columns, and at most moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError, ParameterError

__all__ = ["FLOAT32", "NUMBER", "ArraySource", "NamesSource", "Source", "Statistics", "as_source"]

#: The kinds of columns. Any other kind is left out, and its text says why.
FLOAT32 = "float32"
NUMBER = "number"


@dataclass(frozen=True)
class Statistics:
    """Moments of some columns over their values that are not missing."""

    count: NDArray[np.int64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    min: NDArray[np.float64]
    max: NDArray[np.float64]


class Source(Protocol):
    """Anything a map can be fitted to."""

    @property
    def kinds(self) -> dict[str, str]:
        """Every column's kind, in order: ``FLOAT32``, ``NUMBER``, or a type that is left out."""

    def statistics(self, columns: Sequence[str]) -> Statistics:
        """Moments of these columns; read only when the map needs them."""


class NamesSource:
    """A bare list of column names, taken as numbers; there is no data to compute moments from."""

    def __init__(self, names: Sequence[str]) -> None:
        self.kinds = dict.fromkeys(names, NUMBER)
        if len(self.kinds) < len(names):
            raise ColumnError(f"a column name is given twice in {list(names)!r}: name each once")

    def statistics(self, columns: Sequence[str]) -> Statistics:
        raise ParameterError(
            "scaling and nulls='mean' need data, and only column names were given: "
            "fit to a table or a DataFrame, or use scaling=None and another policy"
        )


class ArraySource:
    """A two-dimensional array (columns x0, x1, ...) or a pandas DataFrame."""

    def __init__(self, data: Any) -> None:
        if hasattr(data, "columns"):
            self._columns = {name: data[name] for name in _text_names(data.columns)}
        else:
            table = np.asarray(data)
            if table.ndim != 2:
                raise ParameterError(
                    f"expected a table of rows and columns, got {table.ndim} dimension(s): "
                    "reshape it to (rows, columns)"
                )
            self._columns = {f"x{i}": table[:, i] for i in range(table.shape[1])}
        self.kinds = {name: _kind(column.dtype) for name, column in self._columns.items()}

    def statistics(self, columns: Sequence[str]) -> Statistics:
        rows = []
        for name in columns:
            values = to_floats(self._columns[name])
            values = values[np.isfinite(values)]
            rows.append((len(values), *_moments(values)))
        count, *moments_of = (np.array(column) for column in zip(*rows, strict=True))
        return Statistics(count, *moments_of)


def _moments(values: NDArray[np.float64]) -> tuple[float, ...]:
    if not len(values):
        return (np.nan,) * 4
    with np.errstate(over="ignore", invalid="ignore"):
        return values.mean(), values.std(), values.min(), values.max()


def as_source(data: Any) -> Source:
    """Wrap what a user passes to ``fit``."""
    if hasattr(data, "kinds") and hasattr(data, "statistics"):
        source: Source = data
        return source
    if isinstance(data, (list, tuple)) and all(isinstance(name, str) for name in data):
        return NamesSource(data)
    if isinstance(data, (str, bytes)):
        raise ParameterError(
            f"fit was given the text {data!r}: give a DataFrame, an array, a list of column names, "
            "or a table of a connected database (db.source(name))"
        )
    return ArraySource(data)


def to_floats(column: Any) -> NDArray[np.float64]:
    """One column as doubles, with NaN for what is missing (also pandas' nullable types)."""
    if hasattr(column, "to_numpy"):
        floats: NDArray[np.float64] = column.to_numpy(dtype="float64", na_value=np.nan)
        return floats
    return np.asarray(column, dtype="float64")


def _text_names(names: Any) -> list[str]:
    texts = [name for name in names if isinstance(name, str)]
    if len(texts) < len(names):
        raise ColumnError("a DataFrame's column names must be text: use df.columns.astype(str)")
    if len(set(texts)) < len(texts):
        twice = sorted({name for name in texts if texts.count(name) > 1})
        raise ColumnError(f"column names stand twice in the DataFrame: {twice!r}; rename them")
    return texts


def _kind(dtype: Any) -> str:
    # pandas' nullable types (Int64, Float32, boolean) carry NumPy's letter in .kind as well.
    if getattr(dtype, "kind", "O") not in "biuf" or str(dtype) == "category":
        return str(dtype)
    return FLOAT32 if str(dtype).lower().startswith("float32") else NUMBER
