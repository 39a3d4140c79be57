"""SQL inside the templates of dbt: as it is, but for references to other models and sources.

dbt reads a model as a Jinja template. So the SQL stands where Jinja changes nothing, whatever names
it holds, and only what is a reference to the letter stands outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlkrp.errors import ParameterError

__all__ = ["filled", "is_reference", "mark", "raw", "templated"]

_NAME = r"""\s*(?:'[\w.-]+'|"[\w.-]+")\s*"""
_REFERENCE = re.compile(
    rf"\{{\{{\s*(?:ref\({_NAME}(?:,{_NAME})?\)|source\({_NAME},{_NAME}\))\s*\}}\}}", re.ASCII
)
# What would end a raw block, and the end of a line that Jinja writes as another one.
_CHANGED = {"{%": '{{ "{%" }}', "\r": '{{ "\\r" }}'}


def is_reference(table: Any) -> bool:
    """Whether a table is named as dbt names one: ``{{ ref('x') }}`` or ``{{ source('a', 'b') }}``.

    An error says what is none and can be nothing else.

    >>> is_reference("{{ ref('sales') }}"), is_reference("shop.sales")
    (True, False)
    """
    if not isinstance(table, str) or not table.lstrip().startswith("{{"):
        return False
    _require_reference(table)
    return True


def _require_reference(table: str) -> None:
    """Raise ParameterError unless this is a reference of dbt, to the letter."""
    if not _REFERENCE.fullmatch(table.strip()):
        raise ParameterError(
            f"{table!r} is no reference of dbt: write {{{{ ref('model') }}}} or "
            "{{ source('schema', 'table') }}, with names of letters, digits and _ . -"
        )


def mark(name: str) -> str:
    """What marks the place of a piece of Jinja in SQL, as nothing else can: no name holds it."""
    return f"\0{name}\0"


def templated(text: str, pieces: Mapping[str, str]) -> str:
    """The template that gives a text, but for its marks: there stand pieces of Jinja, by name.

    >>> templated(f"SELECT 1 FROM {mark('table')} s", {"table": "{{ ref('sales') }}"})
    "{% raw %}SELECT 1 FROM {% endraw %}{{ ref('sales') }}{% raw %} s{% endraw %}"
    """
    return filled(text, pieces, raw)


def filled(text: str, pieces: Mapping[str, str], between: Callable[[str], str] = str) -> str:
    """A text with pieces in place of its marks; what is ``between`` these may be changed."""
    # Texts and names of marks by turns.
    parts = enumerate(text.split("\0"))
    return "".join(pieces[part] if place % 2 else between(part) for place, part in parts if part)


def raw(text: str) -> str:
    """A template that gives exactly this text."""
    inside = re.sub(r"\{%|\r", lambda it: f"{{% endraw %}}{_CHANGED[it[0]]}{{% raw %}}", text)
    return f"{{% raw %}}{inside}{{% endraw %}}"
