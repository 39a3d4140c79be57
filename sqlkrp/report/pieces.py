"""What sections are made of: tables, charts with captions, numbers that open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sqlkrp.maps.advice import counted
from sqlkrp.report.text import Html, element, joined

__all__ = [
    "MOST_ROWS", "NONE", "figure", "is_rounding", "key", "measure", "numbers", "off", "percent",
    "plain", "section", "sentence", "table",
]  # fmt: skip

# A map that is drawn at random comes to no such distortion, and one that is exact to less.
_ROUNDING = 1e-6
#: In the place of a number that there is none of.
NONE = "\N{EN DASH}"
#: Rows of a table of what there may be many of.
MOST_ROWS = 30
# How measures are called where there is room for more than a word.
_MEASURES = {"r2": "R²", "rmse": "root mean square error", "mae": "mean absolute error"}


def percent(share: float) -> str:
    """A share in few characters."""
    return f"{100 * share:.3g}%" if math.isfinite(share) else NONE


def off(share: float) -> str:
    """How far a distance is off, as a share; rounding is no error of a map."""
    return "rounding" if is_rounding(share) else percent(share)


def is_rounding(share: float) -> bool:
    """Whether a distortion is that of a map which is exact."""
    return abs(share) < _ROUNDING


def plain(value: float, digits: int = 4) -> str:
    """A number in so many digits; a dash for what is none."""
    return f"{value:.{digits}g}" if math.isfinite(value) else NONE


def measure(name: str) -> str:
    """A measure's name in words."""
    return _MEASURES.get(name, name.replace("-", " "))


def sentence(text: str) -> str:
    """A remark as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def section(title: str, *inside: Any) -> Html:
    """A section with its title."""
    return element("section", element("h2", title), *inside)


def table(
    head: Sequence[Any], rows: Sequence[Sequence[Any]], more: int = 0, what: str = ""
) -> Html:
    """A table that scrolls by itself where it is too wide; ``more`` is how many rows it lacks."""
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", one) for one in others))
        for first, *others in rows
    ]
    whole = element(
        "table",
        element("thead", element("tr", *(element("th", one, scope="col") for one in head))),
        element("tbody", *body),
    )
    left = element("p", f"and {counted(more, what)} more", class_="note") if more > 0 else ""
    return joined(element("div", whole, class_="scroll", tabindex="0"), left)


def figure(chart: Html, *caption: Any) -> Html:
    """A chart with its caption."""
    return element("figure", chart, element("figcaption", *caption))


def numbers(name: str, inside: Html) -> Html:
    """A table that opens on request."""
    return element("details", element("summary", name), inside)


def key(levels: Sequence[int]) -> Html:
    """From how many on each colour is."""
    return joined(*(
        element("span", element("i", style=f"background:var(--h{place})"), f"{least:,}+",
                class_="key")
        for place, least in enumerate(levels, 1)
    ))  # fmt: skip
