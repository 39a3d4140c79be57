"""The options of maps on the command line, made of what the maps declare of their parameters."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from sqlkrp.maps import MAPS
from sqlkrp.maps.parameters import Parameter

__all__ = [
    "MAP",
    "MAP_OPTIONS",
    "SEED",
    "argument",
    "map_help",
    "number_or",
    "options_of_map",
    "spelt",
    "summary",
]

#: The map and the seed that are drawn if no other is named.
MAP, SEED = "krp", 0


def options_of_map(kind: str) -> dict[str, Parameter]:
    """The parameters of a kind of map, by the names of their options."""
    return {one.option: one for one in MAPS[kind].declared.values() if one.flag is not None}


def _options_of_maps() -> dict[str, Parameter]:
    found = options_of_map(MAP)
    for kind in MAPS:
        for option, one in options_of_map(kind).items():
            found.setdefault(option, one)
    return found


#: The options of all maps, as the first map that has each of them declares it.
MAP_OPTIONS = _options_of_maps()


def argument(one: Parameter) -> dict[str, Any]:
    """A parameter as an argument of the command line, with its default."""
    told = f"{one.text(spelt)} (default: {spelt(one.default)})".replace("%", "%%")
    if one.check.reads is bool:
        return {"help": told, "action": "store_true"}
    words = list(map(spelt, one.check.words))
    return {"help": told, "metavar": one.metavar, "type": _reader(one.check.reads, words)}


def _reader(number: Callable[[str], Any] | None, words: list[str]) -> Callable[[str], Any]:
    if number is None:
        return _word
    return number_or(number, *words) if words else number


def number_or(read: Callable[[str], Any], *words: str) -> Callable[[str], Any]:
    """A reader of numbers and of some words, such as auto; ``none`` is None."""

    def reader(value: str) -> Any:
        if value in words:
            return _word(value)
        try:
            return read(value)
        except ValueError:
            allowed = " nor ".join(map(repr, words))
            raise argparse.ArgumentTypeError(
                f"{value!r} is neither a number nor {allowed}"
            ) from None

    return reader


def _word(value: str) -> str | None:
    """A text; ``none`` is None."""
    return None if value == "none" else value


def spelt(value: Any) -> str:
    """A parameter's value as it is written on the command line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def summary(kind: str) -> str:
    """What a kind of map is, in one line: the first of its class's documentation."""
    first = (MAPS[kind].__doc__ or "").partition("\n\n")[0]
    return " ".join(first.split())


def map_help(kind: str) -> str:
    """The options of one kind of map, with their defaults."""
    shown = argparse.ArgumentParser(
        usage=argparse.SUPPRESS,
        description=f"{kind}: {summary(kind)}",
        epilog=f"python -m pydoc sqlkrp.{MAPS[kind].__name__} has its formula, and when to choose "
        "it.",
        add_help=False,
    )
    group = shown.add_argument_group(
        "options", f"of sqlkrp featurize and sqlkrp draw, after --map {kind}"
    )
    for name, one in options_of_map(kind).items():
        group.add_argument(f"--{name}", **argument(one))
    return shown.format_help().rstrip("\n")
