"""How results show themselves: in one line, and in a notebook as a small table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from sqlkrp.errors import visible

__all__ = ["Shown", "html_table"]


def html_table(title: str, rows: Mapping[str, Any]) -> str:
    """A small table of labels and values, for a notebook; every text is escaped."""
    # Hardly a style: a notebook has its own, for tables too. But to the right, labels would stand
    # far from under a long title.
    left = 'style="text-align: left"'
    lines = [
        f"<tr><th {left}>{escape(visible(label))}</th>"
        f"<td {left}>{escape(visible(_worded(value)))}</td></tr>"
        for label, value in rows.items()
    ]
    # A row, as a caption would be as narrow as the facts, and a long one many lines.
    head = f'<tr><th colspan="2" {left}>{escape(visible(title))}</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"


def _worded(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


class Shown:
    """What shows itself by a few facts: in one line, and in a notebook as a table."""

    def _facts(self) -> dict[str, Any]:
        """The facts that the line shows, by their labels."""
        raise NotImplementedError

    def _rows(self) -> dict[str, Any]:
        """The facts that the notebook's table shows, which has room for more than the line."""
        return self._facts()

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self._facts().items())
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._rows())
