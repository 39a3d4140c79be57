"""What a person reads about a model: its strongest terms, and how much each column matters."""

from __future__ import annotations

from sqlkrp.errors import visible
from sqlkrp.maps.advice import counted
from sqlkrp.models.explaining import Explanation
from sqlkrp.models.importance import Importance

__all__ = ["explanation_lines", "importance_lines"]

# Characters of the longest bar.
_BAR = 30


def explanation_lines(found: Explanation) -> list[str]:
    """The strongest terms of a model, with a bar for each."""
    lines = []
    several = len(found.decisions) > 1
    for place, decision in enumerate(found.decisions):
        if several:
            lines.append(f"{decision}:")
        lines += _term_lines(found, place)
    shown = sum(term.size > 0 for term in found.terms)
    of_what = "columns as the model reads them (scaled, if its map scales them)"
    lines.append(
        f"{counted(shown, 'term')}"
        + (f" of {found.n_terms:,}, the strongest" if shown < found.n_terms else "")
        + (
            f", and {len(found.terms) - shown:,} of raw columns alone, as these are shifted"
            if shown < len(found.terms)
            else ""
        )
        + f"; coefficients of {of_what}"
        + ("" if found.constant.raw is None else ", and of raw ones")
    )
    if found.error is not None:
        lines.append(f"of a short model: {found.error}")
    if found.held:
        lines.append("values of columns beyond the map's bounds are read as these (clip)")
    return lines


def _term_lines(found: Explanation, place: int) -> list[str]:
    names = [visible(term.name) for term in found.terms]
    width = max(map(len, ["constant", *names]))
    largest = max((abs(term.coefficients[place]) for term in found.terms), default=0.0) or 1.0
    lines = []
    for name, term in [("constant", found.constant), *zip(names, found.terms, strict=True)]:
        value = term.coefficients[place]
        length = max(1, round(_BAR * abs(value) / largest)) if value and term.columns else 0
        raw = f"  {term.raw[place]:>+11.4g}" if term.raw is not None else ""
        lines.append(f"{name:<{width}}  {value:>+11.4g}{raw}  {'█' * length}".rstrip())
    return lines


def importance_lines(found: Importance, top: int) -> list[str]:
    """How much columns matter to a model, with a bar for each."""
    shown = list(found.columns.items())[:top]
    width = max(len(visible(name)) for name, _ in shown)
    largest = max(value for _, value in shown) or 1.0
    lines = [
        f"{visible(name):<{width}}  {value:>8.3g}  {'█' * round(_BAR * value / largest)}".rstrip()
        for name, value in shown
    ]
    left = len(found.columns) - len(shown)
    more = f"; {counted(left, 'other column')} less so" if left else ""
    return [
        *lines,
        f"mean change of the {found.what} on {counted(found.rows, 'row')} where a column has the "
        f"values of other rows, as a share of its standard deviation{more}",
    ]
