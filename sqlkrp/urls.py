"""Files and databases that are named by more than a path: s3://bucket/sales.parquet, md:warehouse.

A path would lose a slash of a URL, so it never becomes one. An engine opens what is named, or says
that it cannot: nothing here does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sqlkrp.errors import ParameterError

__all__ = [
    "File",
    "Url",
    "as_file",
    "as_named",
    "file_behind",
    "hidden",
    "is_attached",
    "is_url",
]

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# What pathlib leaves of one.
_CUT = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)", re.IGNORECASE)
# Who attaches a database, as DuckDB has it; a letter by itself is a drive of Windows.
_ATTACHED = re.compile(r"[a-z][a-z0-9_]+:(?!//)", re.IGNORECASE)
# Of these, what keeps its tables in a file, or tells by one where they are.
_BY_FILE = re.compile(r"(?:(?:ducklake|sqlite|duckdb):)+(?![a-z0-9_]+:)(.*)", re.IGNORECASE)
# What may be a password or a token: before a host, as options at the end, or as what it is.
_SECRETS = re.compile(r"(?<=://)[^/@\s'\"]*@|\?[^\s'\"/]*=[^\s'\"]*")
_PASSWORD = re.compile(r"(password\s*=\s*).*", re.IGNORECASE)


@dataclass(frozen=True)
class Url:
    """A file, or with a pattern several, that is named by a URL."""

    url: str

    @property
    def name(self) -> str:
        """The last part of its path, by whose end a kind of file is known."""
        return hidden(self.url).rpartition("/")[2]

    @property
    def is_pattern(self) -> bool:
        """Whether this may name several files."""
        return any(sign in hidden(self.url) for sign in "*[")

    def __str__(self) -> str:
        return hidden(self.url)


#: What is read as a file is one of these.
File = Path | Url


def is_url(value: str) -> bool:
    """Whether a text is a URL."""
    return _URL.match(value) is not None


def is_attached(value: str) -> bool:
    """Whether a text names a database that DuckDB attaches, as ``md:warehouse`` does."""
    return _ATTACHED.match(value) is not None


def file_behind(value: str) -> str | None:
    """The file of this machine that such a database is made of; None if there is none."""
    found = _BY_FILE.fullmatch(value)
    return None if found is None else found[1].partition("?")[0]


def hidden(told: str) -> str:
    """A name, or a message that may repeat it, without what may be a password or a token."""
    return _SECRETS.sub("", _PASSWORD.sub(r"\1...", told))


def as_file(value: str | File) -> File:
    """The file that is named so."""
    named = as_named(value)
    return named if isinstance(named, File) else Path(named)


def as_named(value: Any) -> Any:
    """What a user named: a URL as such, one of a file of this machine as a path, the rest as is."""
    if isinstance(value, Path):
        cut = _CUT.fullmatch(str(value))
        if cut and not value.exists():
            raise ParameterError(
                f"{str(value)!r} is what a path leaves of a URL: give the text '{cut[1]}://...'"
            )
    if not isinstance(value, str) or not is_url(value):
        return value
    if value.lower().startswith("file://"):
        return Path(unquote(urlsplit(value).path))
    return Url(value)
