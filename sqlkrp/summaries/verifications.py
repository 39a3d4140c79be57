"""The lines of ``sqlkrp verify``: the errors, the rows that differ, and the verdict."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sqlkrp.errors import visible
from sqlkrp.maps.advice import counted
from sqlkrp.summaries.lines import SHOWN_FEATURES
from sqlkrp.verification import Stored, Verification

__all__ = ["verification_lines"]

# Rows of a result in a list, and columns of one of them.
_SHOWN_ROWS = 5


def verification_lines(result: Verification, *, every: bool) -> list[str]:
    """The errors of a verification: the worst features, or all, the rows, and the verdict."""
    if result.rows:
        lines = [*_feature_lines(result, every), *_row_lines(result)]
    elif result.stored is not None and result.stored.lacking:
        return [*_row_lines(result), f"NOT equal: {_missing_text(result.stored)}"]
    else:
        return ["nothing was compared: there are no rows to compare; verify a table that has some"]
    verdict = "equal to the NumPy twin" if result.ok else _wrong_text(result)
    beyond = " (more only where rounding explains it)" if result.is_beyond else ""
    lines.append(
        f"{verdict} within a relative error of {result.tolerance:g}{beyond}, on "
        f"{counted(result.rows, 'row')}{_where_text(result)}"
    )
    return lines


def _feature_lines(result: Verification, every: bool) -> list[str]:
    count = len(result.names) if every else min(SHOWN_FEATURES, len(result.names))
    names = {name: visible(name) for name in result.names}
    width = max(map(len, names.values()))
    lines = [f"{'feature':<{width}}  largest absolute error  largest relative error"]
    for name, absolute, relative in result.worst(count):
        lines.append(f"{names[name]:<{width}}  {absolute:>22.3g}  {relative:>22.3g}")
    if count < len(result.names):
        more = len(result.names) - count
        verb = "is" if more == 1 else "are"
        lines.append(f"({counted(more, 'more feature')} {verb} no worse)")
    return lines


def _row_lines(result: Verification) -> list[str]:
    """Of stored rows: which differ, which are missing, and which the source has not."""
    stored = result.stored
    if stored is None:
        return []
    lines = []
    for place, names in itertools.islice(result.wrong_rows(), _SHOWN_ROWS):
        lines.append(f"differs: {_key_text(stored, stored.keys[place])} in {_few(names)}")
    more = int(result.differs.any(axis=1).sum()) - len(lines)
    if more > 0:
        lines.append(f"({counted(more, 'more row')} {'differs' if more == 1 else 'differ'})")
    if stored.missing:
        keys = [_key_text(stored, one) for one in stored.missing]
        lines.append(f"missing in {stored.name}: {_few(keys)}")
    if stored.others:
        lines.append(f"{stored.name} has {_bounded(stored, stored.others)} that the source has not")
    return [visible(line) for line in lines]


def _key_text(stored: Stored, key: Sequence[int | str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(stored.key, key, strict=True))


def _few(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_ROWS
    return "; ".join(names[:_SHOWN_ROWS]) + (f" and {more:,} more" if more > 0 else "")


def _bounded(stored: Stored, count: int) -> str:
    """A number of rows, of which a sample tells only how many there are at least."""
    return f"{'' if stored.is_whole else 'at least '}{counted(count, 'row')}"


def _missing_text(stored: Stored) -> str:
    verb = "is" if stored.lacking == 1 else "are"
    return visible(f"{_bounded(stored, stored.lacking)} of the source {verb} not in {stored.name}")


def _where_text(result: Verification) -> str:
    if result.stored is None:
        return f", {result.form} form"
    by = f", read by {result.stored.through}" if result.stored.through else ""
    return visible(f" of {result.stored.name}{by}")


def _wrong_text(result: Verification) -> str:
    told = []
    if result.stored is not None and result.stored.lacking:
        told.append(_missing_text(result.stored))
    wrong, of_all = len(result.wrong), counted(len(result.names), "feature")
    if wrong or not told:
        told.append(f"{wrong:,} of {of_all} {'is' if wrong == 1 else 'are'} wrong")
    else:
        told.append("the others are equal")
    return f"NOT equal: {', and '.join(told)}"
