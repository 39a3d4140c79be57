"""How messages spell names: near ones where one is unknown; parameters as options, in a command.

Messages name parameters as Python writes them; the command line shows them as its options.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["as_options", "near_matches", "near_names"]

# Names that a message suggests.
_SHOWN_NAMES = 3

_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ITEM = rf"(?:{_TEXT}|None)"
_NUMBER = r"-?(?:\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?|inf)|nan"
# One value or several of them, or a name in capitals for what is to be filled in.
_VALUE = rf"{_ITEM}(?:(?:, | or |, or ){_ITEM})*|True|False|{_NUMBER}|[A-Z]+\b"


def as_options(message: str, options: Mapping[str, str]) -> str:
    """A message with parameters spelt as options: ``nulls='mean'`` as ``--nulls mean``.

    ``options`` are the options by the parameters' names, and what chooses a map by the name of its
    class. What stands in quotes is somebody's name or text, and stays as it is.

    >>> as_options("column 's=3': use s=2 or scaling=None", {"s": "--sparsity", "scaling": "--sc"})
    "column 's=3': use --sparsity 2 or --sc none"
    >>> as_options("draw PCA(s=2, t=3)", {"s": "--sparsity", "t": "--to", "PCA": "--map pca"})
    'draw --map pca --sparsity 2 --to 3'
    """
    if not options:
        return message
    # The names with an underscore are no words of a sentence.
    bare = [name for name in options if "_" in name] or ["\0"]
    one = rf"({_any(options)})=({_VALUE})"
    several = rf"(?:{_any(options)})=(?:{_VALUE})"
    pattern = (
        rf"(?<!\w)(?:{_TEXT})"
        rf"|(?<![\w.])(?P<name>{_any(options)})=(?P<value>{_VALUE})"
        rf"|\b(?P<map>{_any(options)})\((?P<its>{several}(?:, {several})*)\)"
        rf"|\b(?P<bare>{_any(bare)})\b|(?P<none>\bNone\b)"
    )

    def spelt(match: re.Match[str]) -> str:
        if match["map"]:
            its = (_option(options[name], value) for name, value in re.findall(one, match["its"]))
            return " ".join([options[match["map"]], *its])
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


def near_matches(name: str, present: Iterable[str]) -> str:
    """The end of an error message: what may have been meant."""
    names = [str(one) for one in present]
    if near := near_names(name, names):
        return ": did you mean " + " or ".join(repr(one) for one in near) + "?"
    _, numbers = _nearest(name, names)
    if numbers:
        return ": the nearest are " + ", ".join(repr(one) for one in numbers)
    shown = ", ".join(repr(one) for one in names[:8]) + (", ..." if len(names) > 8 else "")
    return f": there are {shown or 'none'}"


def near_names(name: str, names: Sequence[str]) -> list[str]:
    """The names that this one may be misspelt of."""
    folded = [one for one in names if one.lower() == name.lower()]
    same_numbers = [one for one in names if _numbers(one) == _numbers(name)]
    letters, _ = _nearest(name, names)
    return folded or letters or difflib.get_close_matches(name, same_numbers, n=_SHOWN_NAMES)


def _nearest(name: str, present: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names that differ from this one at one place only, and least: in letters, in numbers.

    At least half of a name must be the same; two letters that are exchanged are as one. A name with
    another number is another column, and none misspelt: of these the nearest differ as far back as
    possible, and by the least.

    >>> _nearest("pixel_0_3", ["pixel_7_3", "pixel_0_9", "pixel_0_4", "px_0_3"])
    (['px_0_3'], ['pixel_0_4', 'pixel_0_9'])
    """
    found: dict[bool, list[tuple[tuple[int, int], int, str]]] = {False: [], True: []}
    for other in present:
        start, ours, its = _difference(name.lower(), other.lower())
        stretch = max(len(ours), len(its)) - (len(ours) == 2 and ours == its[::-1])
        if 2 * stretch > max(len(name), len(other)):
            continue
        if not _numbers(ours + its):
            found[False].append(((stretch, 0), 0, other))
        elif (ours + its).isdecimal():
            pairs = zip(_numbers(name), _numbers(other), strict=False)
            # Of very long numbers, which Python would not read, the end.
            apart = sum(abs(int(one[-18:]) - int(two[-18:])) for one, two in pairs)
            found[True].append(((stretch, -start), apart, other))
    letters, numbers = (
        [other for how, _, other in sorted(near) if how == min(near)[0]][:_SHOWN_NAMES]
        for near in found.values()
    )
    return letters, numbers


def _difference(one: str, other: str) -> tuple[int, str, str]:
    """Where two names begin to differ, and what stands there before they agree to the end."""
    start = _agreement(one, other)
    one, other = one[start:], other[start:]
    end = _agreement(one[::-1], other[::-1])
    return start, one[: len(one) - end], other[: len(other) - end]


def _agreement(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _numbers(name: str) -> list[str]:
    return re.findall(r"\d+", name)
