"""Warnings of what can be drawn, and is likely not what was meant."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import FitWarning
from sqlkrp.maps.source import Source, Statistics

__all__ = ["counted", "listed", "warn_of_columns", "warn_of_features", "warn_user"]

_IDENTIFIES = re.compile(r"id|.*[_ ]id", re.IGNORECASE)
# Fewer values may all be different without naming rows.
_FEWEST_KEYS = 100
_SAMPLE = 1000
_SHOWN = 5


def warn_of_columns(
    source: Source,
    columns: Sequence[str],
    told: Sequence[str],
    moments: Statistics | None,
    *,
    chosen: bool,
) -> None:
    """Warn of columns that seem to name rows, unless they were chosen, and that do not vary.

    ``told`` is what the inputs are for people: that of what is made of a column is not its name.
    """
    if not chosen and (keys := _likely_keys(source, columns, told, moments)):
        _warn(
            f"{listed(keys)} {_verb(keys, 'looks', 'look')} like a key, which tells a model "
            "nothing: exclude it, or include it by name"
        )
    if moments is None:
        return
    if not moments.count.any():
        _warn("no column holds a value here, so nothing is known of them: give rows")
        return
    if not moments.varies.any():
        _warn(
            "no column holds more than one finite value here, so the features of all rows are "
            "equal: give more rows"
        )
        return
    # Where others hold more values, a column has missing ones beside its own.
    one, whole = ~moments.varies & (moments.count > 0), moments.count == moments.count.max()
    _warn_of_some(told, one & whole, "is", "are", "constant, which tells a model nothing")
    _warn_of_some(told, one & ~whole, "holds", "hold", "one finite value, and missing ones")
    _warn_of_some(
        told, moments.count == 0, "holds", "hold", "no value, which tells a model nothing"
    )


def warn_of_features(count: int, monomials: int, columns: int, degree: int, coef0: float) -> None:
    """Warn of more features than there are products of columns to tell apart."""
    if count > monomials:
        constant = "" if coef0 == 1 else f", coef0={coef0:g}"
        _warn(
            f"{count:,} features of {counted(columns, 'column')}: the kernel has only "
            f"{counted(monomials, 'monomial')}, and more features than that add nothing; "
            f"Monomials(degree={degree}{constant}) computes it exactly, and "
            f"n_components={monomials} will do"
        )


def counted(count: int, what: str) -> str:
    """A number of things in words."""
    several = "es" if what.endswith("s") else "s"  # such as classes
    return f"{count:,} {what}" + ("" if count == 1 else several)


def listed(names: Sequence[str]) -> str:
    """Names for a message: all, or the first few and how many more."""
    shown = ", ".join(map(repr, names[:_SHOWN]))
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{'column' if len(names) == 1 else 'columns'} {shown}{more}"


def _likely_keys(
    source: Source, columns: Sequence[str], told: Sequence[str], moments: Statistics | None
) -> list[str]:
    named = {name for name in told if _IDENTIFIES.fullmatch(name)}
    if moments is None:
        return [name for name in columns if name in named]
    # Whole numbers that are all different span at least as many values as there are.
    spans = (moments.max - moments.min >= moments.count - 1) & (moments.count >= _FEWEST_KEYS)
    candidates = [columns[i] for i in np.flatnonzero(moments.whole & spans).tolist()]
    # A date is no key, even where each row has another.
    candidates = [name for name in candidates if name not in named and name in told]
    if candidates and not source.is_sparse:
        values = source.head(candidates, _SAMPLE)
        different = [len(np.unique(one)) == len(one) for one in values.T]
        named |= {name for name, all_of_it in zip(candidates, different, strict=True) if all_of_it}
    return [name for name in columns if name in named]


def _warn_of_some(
    columns: Sequence[str], chosen: NDArray[np.bool_], is_: str, are: str, what: str
) -> None:
    names = [columns[i] for i in np.flatnonzero(chosen).tolist()]
    if names:
        _warn(f"{listed(names)} {_verb(names, is_, are)} {what}")


def _warn(message: str) -> None:
    warn_user(message, FitWarning)


def _verb(names: Sequence[Any], one: str, several: str) -> str:
    return one if len(names) == 1 else several


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn where the user's own code is."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("sqlkrp."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
