"""A chart of matplotlib as a piece of SVG inside a page: its colours and letters are the page's."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.report.text import Html, words

__all__ = ["COLOURS", "GRID", "INK", "LEVELS", "MUTED", "PAPER", "drawn", "require_matplotlib"]

#: Colours that stand for those of the page, which are others in the dark: by what they are for.
INK, MUTED, GRID, PAPER = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04"
#: Lines and points that are to be told apart.
COLOURS = ("#0a0c01", "#0a0c02", "#0a0c03", "#0a0c04", "#0a0c05")
#: From few to many.
LEVELS = tuple(f"#0a0d0{place}" for place in range(1, 8))

_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "line",
    PAPER: "paper",
    **{colour: f"c{place}" for place, colour in enumerate(COLOURS, 1)},
    **{colour: f"h{place}" for place, colour in enumerate(LEVELS, 1)},
}
# A unit of a figure is a pixel of the page, where there is room.
_PIXELS = 72
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sqlkrp",
    "text.parse_math": False,  # a name may hold a $
    "text.usetex": False,
    "axes.formatter.use_mathtext": False,
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # which comes with matplotlib, so sizes are always the same
    "font.size": 12,
    "axes.labelsize": 12,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "hatch.linewidth": 1.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 7,
    "axes.unicode_minus": True,
}
_NOTHING = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def require_matplotlib() -> None:
    """Raise ParameterError unless charts can be drawn."""
    try:
        import matplotlib  # noqa: F401 - whether it is there
    except ImportError as bad:
        raise ParameterError(
            "a report draws its charts by matplotlib, which is not installed: "
            "pip install 'sqlkrp[report]'"
        ) from bad


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """Whatever the user has set, charts look the same; what is set stays."""
    import matplotlib

    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.simplefilter("ignore")  # of letters that its font has not, and browsers have
        matplotlib.rcdefaults()
        settings: Any = matplotlib.rcParams
        settings.update(_SETTINGS)
        yield


def drawn(name: str, told: str, size: tuple[int, int], draw: Any) -> Html:
    """What ``draw`` makes of an empty figure of so many pixels, as an element of a page.

    ``name`` begins all names inside, which are then its own; ``told`` says what is seen.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with _settings():
        figure = Figure(figsize=(size[0] / _PIXELS, size[1] / _PIXELS), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata=_NOTHING, dpi=_PIXELS)
    return _in_page(file.getvalue(), name, told, size)


def _in_page(text: str, name: str, told: str, size: tuple[int, int]) -> Html:
    inside = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    for pattern in _LEFT_OUT:
        inside = re.sub(pattern, "", inside, flags=re.DOTALL)
    # What stands between tags may be a text of the user's.
    inside = re.sub(r"<[^>]*>", lambda tag: _tag_in_page(tag[0], name), inside)
    inside = re.sub(r">\s+<", "><", inside)
    return Html(
        f'<svg viewBox="0 0 {size[0]} {size[1]}" role="img" aria-label="{words(told)}" '
        f'style="max-width:{size[0] * 1.25:.0f}px">{inside.strip()}</svg>'
    )


# A style would hold for the whole page.
_LEFT_OUT = (
    r"<metadata>.*?</metadata>", r"<style[^>]*>.*?</style>", r"<defs>\s*</defs>", r"<!--.*?-->",
)  # fmt: skip


def _tag_in_page(tag: str, name: str) -> str:
    """A tag with names, letters and colours as they are to be in the page."""
    for pattern, instead in (
        (r'\bid="', f'id="{name}-'),
        (r"url\(#", f"url(#{name}-"),
        (r'(?:xlink:)?href="#', f'href="#{name}-'),
        (r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px"),
        (r"(-?\d+\.\d\d)\d+", r"\1"),
    ):
        tag = re.sub(pattern, instead, tag)
    for colour, variable in _VARIABLES.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return tag
