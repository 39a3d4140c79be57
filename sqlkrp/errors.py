"""The errors a user can meet.

Each message is one line: what was given, what is allowed, what to do.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = [
    "ColumnError",
    "ColumnTypeError",
    "EngineError",
    "FitWarning",
    "InconsistentMapError",
    "LimitError",
    "MapFileError",
    "MissingValueError",
    "NotFittedError",
    "NotSaidError",
    "ParameterError",
    "RangeWarning",
    "SqlkrpError",
    "TargetExistsError",
    "UnknownParameterError",
    "not_fitted",
    "visible",
]


def visible(text: str) -> str:
    r"""A text with what would not be seen, or would move the cursor, as its escape.

    >>> print(visible("a\nb\x1b[2J"))
    a\nb\x1b[2J
    """
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


class SqlkrpError(Exception):
    """Base of every error that sqlkrp raises on purpose; its message stays one line."""

    def __init__(self, message: str) -> None:
        super().__init__(visible(message))


class ParameterError(SqlkrpError, ValueError):
    """A parameter has a value that is not allowed."""


class UnknownParameterError(ParameterError, TypeError):
    """A parameter does not exist."""


class NotSaidError(ParameterError, AttributeError):
    """A model is asked for what it does not say; to scikit-learn it has no such attribute."""


class ColumnError(SqlkrpError, ValueError):
    """A column or table is missing, ambiguous, or of a type that cannot be used."""


class ColumnTypeError(ColumnError, TypeError):
    """A table without names holds what is no number."""


class InconsistentMapError(SqlkrpError):
    """A map's stages do not fit each other: a fault of sqlkrp, unless a file says so."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the map is not consistent: {what}; this is a fault of sqlkrp: please report it, with "
            "the map's parameters and columns"
        )
        self.what = what


class MissingValueError(SqlkrpError, ValueError):
    """NULL, NaN or infinite values were met under ``nulls="error"``."""


class NotFittedError(SqlkrpError, ValueError, AttributeError):
    """The map is not fitted yet."""


def not_fitted(message: str) -> NotFittedError:
    """The error, which is scikit-learn's own too where that is used: its users catch that one."""
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return NotFittedError(message)

    class BothError(NotFittedError, theirs.NotFittedError):  # type: ignore[misc, name-defined]
        def __reduce__(self) -> Any:  # between processes
            return not_fitted, (str(self),)

    BothError.__name__ = BothError.__qualname__ = NotFittedError.__name__
    return BothError(message)


class MapFileError(SqlkrpError, ValueError):
    """A map file is damaged, edited, truncated, or of another format."""


class TargetExistsError(SqlkrpError, ValueError):
    """The file or table to write is already there and replacing it was not asked for."""


class LimitError(SqlkrpError, ValueError):
    """What was asked for is more than the engine can take."""


class FitWarning(UserWarning):
    """A map was drawn, and something about its columns is likely not what was meant."""


class RangeWarning(UserWarning):
    """The engine may stop at a number that is too large or too small."""


class EngineError(SqlkrpError, RuntimeError):
    """The database refused a statement; the message names the statement."""
