"""How large a statement is, against what the dialect's engine takes.

A statement is measured as it was written, not estimated; text that is too much for an engine is
refused before anybody sees it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from sqlkrp.errors import LimitError
from sqlkrp.sql.facts import Dialect

__all__ = ["Check", "require_fits", "statement_checks", "table_checks"]


@dataclass(frozen=True)
class Check:
    """One size of a statement or of a table, and what the engine takes."""

    what: str
    found: int
    limit: int | None
    cures: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the engine takes it."""
        return self.limit is None or self.found <= self.limit

    def problem(self, dialect: Dialect) -> str:
        """What is wrong and what to do, in one line."""
        cures = [*self.cures[:-2], " or ".join(self.cures[-2:])]
        return (
            f"{dialect.name} takes at most {self.limit:,} {self.what}, and this statement has "
            f"{self.found:,}: use {', '.join(cures)}"
        )


def statement_checks(
    text: str,
    other_forms: Sequence[str],
    dialect: Dialect,
    *,
    widest: int,
    outputs: int,
    items: int,
) -> list[Check]:
    """The sizes of a statement.

    ``widest`` are the entries of its widest SELECT, ``outputs`` those of the outermost, and
    ``items`` how many features are in one array (0: they are columns). ``other_forms`` are those
    that are shorter.
    """
    limits, bare = dialect.limits, _without_names(text, dialect)
    depth, nested = _depths(bare)
    fewer = ("fewer components",)
    forms = tuple(f"form={name!r}" for name in other_forms)
    shorter = (*(forms or ("fewer columns",)), *fewer)
    narrow = ("output='array'",) if not items and dialect.array else ()
    # Where the features themselves are too many, the other form has as many.
    many = limits.select_columns is not None and outputs > limits.select_columns
    slimmer = (*narrow, *fewer) if many else shorter
    return [
        Check("entries in a SELECT", widest, limits.select_columns, slimmer),
        Check("parentheses inside each other", depth, limits.depth, shorter),
        Check("SELECTs inside each other", nested, limits.nested_selects, shorter),
        Check(
            "places of the parser's stack", depth + 6 * (nested - 1), limits.parser_stack, shorter
        ),
        Check("items of an array", items, limits.array_items, fewer),
        Check("bytes", len(text.encode()), limits.text_bytes, (*narrow, *shorter)),
        Check("names, numbers and operators", _nodes(bare), limits.nodes, (*narrow, *shorter)),
    ]


def table_checks(
    n_kept: int, n_features: int, number_bytes: int, output: str, dialect: Dialect
) -> list[Check]:
    """The sizes of a table of the statement's rows."""
    limits = dialect.limits
    cures = (*(("output='array'",) if dialect.array else ()), "fewer components")
    columns = n_kept + n_features
    # With a header of 24 bytes; what kept columns take, only the engine knows.
    row = 24 + number_bytes * n_features if output != "array" else 0
    return [
        Check("columns in a table", columns, limits.table_columns, cures),
        Check("bytes in a row of a table", row, limits.row_bytes, cures),
    ]


def require_fits(found: Collection[Check], dialect: Dialect) -> None:
    """Raise LimitError at the first size that is more than the engine takes."""
    for check in found:
        if not check.ok:
            raise LimitError(check.problem(dialect))


def _without_names(text: str, dialect: Dialect) -> str:
    """The text without comments, and with nothing in its quotes."""
    parts = [r"--[^\n]*"]
    for mark, escapes in (("'", dialect.text_escapes), (dialect.quote, dialect.name_escapes)):
        inside = rf"[^{mark}\\]|\\." if "\\" in escapes else rf"[^{mark}]"
        parts.append(rf"{mark}(?:{inside}|{mark}{mark})*{mark}")
    return re.sub("|".join(parts), "_", text, flags=re.DOTALL)


def _depths(bare: str) -> tuple[int, int]:
    """The most parentheses, and the most SELECTs, inside each other."""
    letters = np.frombuffer(bare.encode("utf-8", "replace"), dtype=np.uint8)
    step = (letters == ord("(")).astype(np.int8) - (letters == ord(")")).astype(np.int8)
    depth = int(np.cumsum(step, dtype=np.int32).max(initial=0))
    # A parenthesis that opens a SELECT is written right before it.
    nested = most = 0
    open_selects: list[bool] = []
    for found in re.findall(r"\(\s*(?:SELECT|WITH)\b|[()]", bare):
        if found == ")":
            nested -= open_selects.pop()
        else:
            open_selects.append(len(found) > 1)
            nested += open_selects[-1]
            most = max(most, nested)
    return depth, most + 1


def _nodes(bare: str) -> int:
    # A list of numbers is one constant where such are counted.
    bare = re.sub(r"\[[\d,.e+-]+\]", "[0]", bare)
    return len(re.findall(r"[A-Za-z_][\w.]*|\d[\w.]*|[-+*/<>=|]+", bare))
