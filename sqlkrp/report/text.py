"""Texts of users in a page: the one place where they become HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from sqlkrp.errors import visible
from sqlkrp.maps.advice import counted

__all__ = ["Html", "brief", "element", "joined", "shortened", "words"]

# Characters of a name that a page shows.
_LONGEST = 120
# What stands in the parentheses of a map, of a map in it, and of one in that.
_INSIDE = r"[^()]*"
for _ in range(2):
    _INSIDE = rf"(?:[^()]|\({_INSIDE}\))*"


class Html(str):
    """A text that is HTML already: every other text is escaped before it is one."""

    __slots__ = ()


def shortened(value: Any, longest: int = _LONGEST) -> str:
    """A text in one line, of so many characters at most, with nothing that cannot be seen."""
    told = visible(str(value))
    return told if len(told) <= longest else f"{told[: longest - 1]}…"


def brief(told: str) -> str:
    """A text in which maps have few words, as what stands in their parentheses is long.

    Of maps in a map the last one says what comes out.

    >>> brief("columns + KRP(degree=3, n_components=200, pool='hadamard') gains")
    'columns + KRP of degree 3, 200 features gains'
    """
    return re.sub(rf"\b(\w+)\(({_INSIDE})\)", _in_few_words, shortened(told, 2000))


def _in_few_words(match: re.Match[str]) -> str:
    def of(name: str) -> str:
        found = re.findall(rf"\b{name}=([\d.]+(?:e[+-]?\d+)?)", match[2])
        return found[-1] if found else ""

    degree, gamma, size = of("degree"), of("gamma"), of("n_components")
    return (
        match[1]
        + (f" of degree {degree}" if degree else "")
        + (f", gamma {float(gamma):.3g}" if gamma else "")
        + (f", {counted(int(size), 'feature')}" if size.isdigit() else "")
    )


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
