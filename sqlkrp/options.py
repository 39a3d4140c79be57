"""The options of maps: one declaration, of which the arguments and their help are made."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlkrp.maps import MAPS

__all__ = ["MAP", "MAP_OPTIONS", "SEED", "MapOption", "map_help", "number_or", "spelt", "summary"]

#: The map and the seed that are drawn if no other is named.
MAP, SEED = "krp", 0


@dataclass(frozen=True)
class MapOption:
    """An option of maps."""

    parameter: str
    """The constructor's parameter."""
    help: str
    """What it is, without its default, which the constructor has."""
    single: bool
    """Whether it is of single maps, and not shown where none is named."""
    reads: dict[str, Any]
    """How it is read."""


def _option(parameter: str, help: str, *, single: bool = False, **reads: Any) -> MapOption:
    return MapOption(parameter, help, single, reads)


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


#: The options of maps, by their names; what is not given is the map's default.
MAP_OPTIONS: dict[str, MapOption] = {
    "components": _option("n_components", "how many features to compute", type=int, metavar="K"),
    "degree": _option("degree", "the degree of the polynomial kernel", type=int, metavar="G"),
    "terms": _option(
        "n_terms",
        "how many products are added up in a feature: more estimate better, and cost more; a "
        "number, or auto",
        type=number_or(int, "auto"),
        metavar="T",
    ),
    "pool": _option(
        "pool",
        "how the hyperplanes are drawn: hadamard (in blocks: cheaper, and as a rule better), "
        "achlioptas (each entry by itself, as the paper has it), or gaussian (not ternary)",
        metavar="NAME",
    ),
    "hyperplanes": _option(
        "n_hyperplanes",
        "how many hyperplanes there are to make products of; a number, or auto",
        single=True,
        type=number_or(int, "auto"),
        metavar="P",
    ),
    "sparsity": _option(
        "s",
        "one in S entries of a hyperplane is not zero, where each is drawn by itself; 1: no zeros",
        single=True,
        type=float,
        metavar="S",
    ),
    "block-size": _option(
        "block_size",
        "how many columns a hyperplane of a hadamard pool reads, a power of two",
        single=True,
        type=int,
        metavar="M",
    ),
    "kernel": _option(
        "kernel",
        "which kernel to estimate: rbf, laplacian, polynomial, linear or exponential, of those "
        "that the map has",
        single=True,
        metavar="NAME",
    ),
    "coef0": _option(
        "coef0",
        "the constant in the kernel (gamma <x, y> + coef0)^degree; 0 leaves all lower degrees out",
        type=float,
        metavar="C0",
    ),
    "gamma": _option(
        "gamma",
        "the factor gamma in the kernel; a number, or auto: by the columns' number and variance",
        type=number_or(float, "auto"),
        metavar="GAMMA",
    ),
    "paired": _option(
        "paired",
        "take the cosine and the sine of each frequency, in place of cosines of twice as many",
        single=True,
        action="store_true",
    ),
    "landmarks": _option(
        "n_landmarks", "how many rows of the table are drawn", single=True, type=int, metavar="P"
    ),
    "marked": _option(
        "n_marked",
        "how many of the rows drawn make a direction",
        single=True,
        type=int,
        metavar="T",
    ),
    "matrices": _option(
        "n_matrices",
        "how many squares of projections make a feature, half of them subtracted",
        single=True,
        type=int,
        metavar="M",
    ),
    "a": _option(
        "a",
        "the a in the kernel (1 - |x - y|^2 / a^2)^degree, at least 2",
        single=True,
        type=float,
        metavar="A",
    ),
    "domain": _option(
        "domain",
        "where sketches are convolved: fourier (as products of sums) or bucket (as scikit-learn's "
        "PolynomialCountSketch gives them)",
        single=True,
        metavar="NAME",
    ),
    "binary": _option(
        "binary", "give the sign of each feature, 1 or -1", single=True, action="store_true"
    ),
    "scaling": _option(
        "scaling",
        "how columns are scaled first: standard (mean 0, deviation 1), minmax (0 to 1), unit (each "
        "row to length 1), none, or auto: standard if they are of different units",
        type=_word,
        metavar="NAME",
    ),
    "clip": _option(
        "clip",
        "how many standard deviations from its column's mean a value is read as at most; a number, "
        "none, or auto: 3 if columns are standardised",
        type=number_or(float, "auto", "none"),
        metavar="N",
    ),
    "nulls": _option(
        "nulls",
        "what a missing value is: error (nothing is computed), zero, mean (the column's), or "
        "propagate (the row's features are NULL)",
        metavar="POLICY",
    ),
    "dtype": _option(
        "dtype",
        "what is computed in: float32, float64, or auto: float32 if all columns are",
        metavar="NAME",
    ),
}


def summary(kind: str) -> str:
    """What a kind of map is, in one line: the first of its class's documentation."""
    first = (MAPS[kind].__doc__ or "").partition("\n\n")[0]
    return " ".join(first.split())


def map_help(kind: str) -> str:
    """The options of one kind of map, with the defaults of its constructor."""
    one = MAPS[kind]
    defaults = one.default_params()
    shown = argparse.ArgumentParser(
        usage=argparse.SUPPRESS,
        description=f"{kind}: {summary(kind)}",
        epilog=f"python -m pydoc sqlkrp.{one.__name__} has its formula, and when to choose it.",
        add_help=False,
    )
    group = shown.add_argument_group(
        "options", f"of sqlkrp featurize and sqlkrp draw, after --map {kind}"
    )
    for name, option in MAP_OPTIONS.items():
        if option.parameter in defaults:
            told = f"{option.help} (default: {spelt(defaults[option.parameter])})"
            group.add_argument(f"--{name}", **{**option.reads, "help": told})
    return shown.format_help().rstrip("\n")


def spelt(value: Any) -> str:
    """A parameter's value as it is written on the command line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
