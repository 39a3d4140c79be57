"""The first stage of a map, of its parameters and of what the columns hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError
from sqlkrp.maps.parameters import Parameters
from sqlkrp.maps.reading import Reading
from sqlkrp.maps.source import BOOLEAN, Statistics
from sqlkrp.stages import Array, Prepare

__all__ = ["fits_in", "prepare_stage", "require_values"]


def prepare_stage(
    one: Parameters, reading: Reading, moments: Statistics | None, dtype: str
) -> Prepare:
    """The first stage of a map that is settled, but for its constant column."""
    d, kinds = len(reading.columns), reading.source.kinds
    fill, shift, scale = np.zeros(d), np.zeros(d), np.ones(d)
    low = high = None
    if moments is not None:
        if one.nulls == "mean" or one.scaling in ("standard", "minmax") or one.clip is not None:
            _require_column_range(reading.told, moments, dtype)
        if one.nulls == "mean":
            fill = moments.mean
        if one.scaling in ("standard", "minmax"):
            shift, scale = _scaled(moments, one.scaling)
        if one.clip is not None:
            low, high = _bounds(moments, float(one.clip), dtype)
            fill = np.clip(fill.astype(dtype), low, high)
    return Prepare(
        columns=reading.columns,
        fill=fill.astype(dtype),
        shift=shift.astype(dtype),
        scale=scale.astype(dtype),
        nulls=one.nulls,
        unit_length=one.scaling == "unit",
        dtype=dtype,
        booleans=tuple(name for name in reading.columns if kinds[name] == BOOLEAN),
        low=low,
        high=high,
        categories=reading.made,
    )


def require_values(columns: Sequence[str], moments: Statistics) -> None:
    """Raise ColumnError unless each column holds a value."""
    empty = [name for name, count in zip(columns, moments.count, strict=True) if not count]
    if empty:
        raise ColumnError(
            f"column {empty[0]!r} holds no value to compute its mean or range from: exclude it"
        )


def _require_column_range(columns: Sequence[str], moments: Statistics, dtype: str) -> None:
    fits = fits_in(moments, dtype)
    if not fits.all():
        worst = int(np.flatnonzero(~fits)[0])
        low, high = moments.min[worst], moments.max[worst]
        raise ColumnError(
            f"column {columns[worst]!r} holds values from {low:.4g} to {high:.4g}, which is too "
            f"large or too small for {dtype}: rescale it in a view first, or exclude it"
        )


def fits_in(moments: Statistics, dtype: str) -> NDArray[np.bool_]:
    """Whether each column can be moved and scaled in numbers of a dtype."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = moments.max - moments.min
    smallest, largest = np.finfo(dtype).tiny, np.finfo(dtype).max
    fits: NDArray[np.bool_] = np.isfinite(moments.mean) & np.isfinite(moments.std)
    fits &= (spread < largest) & (moments.size < largest)  # else what is rounded may be infinite
    fits &= (moments.std > smallest) | (spread == 0)
    return fits


def _scaled(moments: Statistics, scaling: str) -> tuple[Array, Array]:
    """What is subtracted from each column, and what it is then multiplied by."""
    # A constant column has no spread (its computed deviation may be 1e-17 instead of 0): like
    # scikit-learn, leave it as it is after the shift.
    varies = moments.varies
    if scaling == "minmax":
        return moments.min, 1.0 / np.where(varies, moments.max - moments.min, 1.0)
    # A rare indicator would become the largest number in its row.
    plain = moments.indicates
    return (
        np.where(plain, 0.0, moments.mean),
        1.0 / np.where(varies & ~plain, moments.std, 1.0),
    )


def _bounds(moments: Statistics, clip: float, dtype: str) -> tuple[Array, Array]:
    """What each column is held between; the ends of the dtype for one of 0 and 1."""
    end = np.finfo(dtype).max
    reach = clip * np.where(moments.varies, moments.std, 0.0)
    low = np.where(moments.indicates, -end, np.maximum(moments.mean - reach, -end))
    high = np.where(moments.indicates, end, np.minimum(moments.mean + reach, end))
    return low.astype(dtype), high.astype(dtype)
