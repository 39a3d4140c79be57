"""Messages name parameters as Python writes them; the command line shows them as its options."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["as_options"]

_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ITEM = rf"(?:{_TEXT}|None)"
_NUMBER = r"-?(?:\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?|inf)|nan"
# One value or several of them, or a name in capitals for what is to be filled in.
_VALUE = rf"{_ITEM}(?:(?:, | or |, or ){_ITEM})*|True|False|{_NUMBER}|[A-Z]+\b"


def as_options(message: str, options: Mapping[str, str]) -> str:
    """A message with parameters spelt as options: ``nulls='mean'`` as ``--nulls mean``.

    ``options`` are the options by the parameters' names. What stands in quotes is somebody's name
    or text, and stays as it is.

    >>> as_options("column 's=3': use s=2 or scaling=None", {"s": "--sparsity", "scaling": "--sc"})
    "column 's=3': use --sparsity 2 or --sc none"
    """
    if not options:
        return message
    # The names with an underscore are no words of a sentence.
    bare = [name for name in options if "_" in name] or ["\0"]
    pattern = (
        rf"(?<!\w)(?:{_TEXT})"
        rf"|(?<![\w.])(?P<name>{_any(options)})=(?P<value>{_VALUE})"
        rf"|\b(?P<bare>{_any(bare)})\b|(?P<none>\bNone\b)"
    )

    def spelt(match: re.Match[str]) -> str:
        if match["name"]:
            return _option(options[match["name"]], match["value"])
        if match["bare"]:
            return options[match["bare"]]
        return "none" if match["none"] else match[0]

    return re.sub(pattern, spelt, message)


def _any(names: Mapping[str, str] | list[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def _option(option: str, value: str) -> str:
    if value in ("True", "False"):
        return option if value == "True" else f"no {option}"
    # A word needs no quotes there; other texts keep them.
    words = re.sub(r"'([\w.-]+)'|\bNone\b", lambda word: word[1] or "none", value)
    return f"{option} {words}"
