"""Texts of users in a page: the one place where they become HTML."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from sqlkrp.errors import visible

__all__ = ["Html", "element", "joined", "shortened", "words"]

# Characters of a name that a page shows.
_LONGEST = 120


class Html(str):
    """A text that is HTML already: every other text is escaped before it is one."""

    __slots__ = ()


def shortened(value: Any, longest: int = _LONGEST) -> str:
    """A text in one line, of so many characters at most, with nothing that cannot be seen."""
    told = visible(str(value))
    return told if len(told) <= longest else f"{told[: longest - 1]}…"


def words(value: Any) -> Html:
    """A text as HTML that shows it; what is HTML already stays.

    >>> words("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return value if isinstance(value, Html) else Html(escape(shortened(value, 2000)))


def element(name: str, *inside: Any, **attributes: Any) -> Html:
    """An element; ``class_`` is the attribute of that name, as are others with an underscore.

    >>> element("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    return Html(f"<{name}{_written(attributes)}>{joined(*inside)}</{name}>")


def joined(*parts: Any) -> Html:
    """Parts after each other."""
    return Html("".join(map(words, parts)))


def _written(attributes: Mapping[str, Any]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{words(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
