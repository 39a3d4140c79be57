"""How a map is drawn: its parameters as arguments, the map of them, and what is said of it."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

from sqlkrp.cli.command import Parser
from sqlkrp.errors import ParameterError
from sqlkrp.keeping import another_map_beside, used_again
from sqlkrp.maps import MAPS, Ensemble, FeatureMap
from sqlkrp.options import MAP, MAP_OPTIONS, SEED, argument, number_or, options_of_map
from sqlkrp.summaries.lines import columns_text, left_out_text, made_pairs, taken_pairs

__all__ = [
    "add_drawing",
    "add_reading",
    "add_replace_map",
    "column_pairs",
    "drawn_map",
    "reading_of",
    "warn_of_others",
]


# --- as arguments -----------------------------------------------------------------------------


def add_drawing(one: Parser) -> argparse._ArgumentGroup:
    """A map and its parameters, the seed, and the columns that it reads."""
    group = one.group(
        "the map",
        f"Defaults are those of {MAP}. Other maps have others, and options of their own: see "
        "'sqlkrp maps' and 'sqlkrp maps NAME'.",
    )
    _add_parameters(group)
    _add_draw(group)
    _add_columns(group)
    return group


def _add_parameters(group: argparse._ArgumentGroup) -> None:
    """The kind of map, and the parameters of all kinds."""
    group.add_argument(
        "--map",
        dest="kind",
        choices=tuple(MAPS),
        metavar="NAME",
        help=f"the kind of map: {', '.join(MAPS)} (default: {MAP})",
    )
    for option, one_of_maps in MAP_OPTIONS.items():
        read = argument(one_of_maps)
        if not one_of_maps.common:
            read["help"] = argparse.SUPPRESS
        # None is a value of some; what is not given is not there.
        group.add_argument(
            f"--{option}", dest=f"map_{one_of_maps.name}", default=argparse.SUPPRESS, **read
        )


def _add_draw(group: argparse._ArgumentGroup) -> None:
    """How often it is drawn, and from which seed."""
    group.add_argument(
        "--ensemble",
        dest="n_members",
        type=int,
        metavar="N",
        help="draw the map so many times, side by side, for so many models that vote",
    )
    group.add_argument(
        "--seed",
        dest="random_state",
        type=number_or(int, "random"),
        metavar="N",
        help="the same number draws the same map again; random draws another each time "
        f"(default: {SEED})",
    )


def _add_columns(group: argparse._ArgumentGroup) -> None:
    """Which columns it reads."""
    group.add_argument(
        "--label",
        metavar="COLUMN",
        help="the column to predict: it is not read, and handed on beside the features",
    )
    group.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="COLUMN",
        help="do not read this column (repeat for more)",
    )
    group.add_argument(
        "--include",
        action="append",
        metavar="COLUMN",
        help="read only this column, and others included so (repeat for more)",
    )
    add_reading(group, "none")


def add_reading(group: argparse._ArgumentGroup, default: str) -> None:
    """What is made of columns that are no numbers."""
    for name, what in (
        ("categories", "a column of texts of at most 50 values is read as 0 and 1, an input for "
         "each value"),
        ("dates", "dates and times are read as days since 1970-01-01"),
    ):  # fmt: skip
        group.add_argument(
            f"--{name}",
            choices=("auto", "none"),
            metavar="HOW",
            default=default,
            help=f"auto: {what}; none: such columns are left out (default: {default})",
        )


def reading_of(given: argparse.Namespace) -> dict[str, Any]:
    """The same by the names of the API."""
    asked = {name: getattr(given, name) for name in ("categories", "dates")}
    return {name: None if value == "none" else value for name, value in asked.items()}


def add_replace_map(one: argparse._ArgumentGroup) -> None:
    """Leave to replace a map."""
    one.add_argument(
        "--replace-map",
        action="store_true",
        help="replace the map file even if it holds another map, which a model may need",
    )


# --- as the API has it --------------------------------------------------------------------------


def drawn_map(given: argparse.Namespace, source: Any) -> FeatureMap:
    """The map that is asked for, drawn for the columns of a source."""
    return _new_map(given).fit(
        source,
        label=given.label,
        include=given.include,
        exclude=given.exclude,
        keep=[] if given.long else given.keep,  # there they are columns of the table of rows
        **reading_of(given),
    )


def _new_map(given: argparse.Namespace) -> FeatureMap:
    seed = SEED if given.random_state is None else given.random_state
    seed = None if seed == "random" else seed
    name = given.kind or MAP
    kind: Any = MAPS[name]
    one: FeatureMap = kind(**_parameters(given, name), random_state=seed)
    if given.n_members is None:
        return one
    return Ensemble(one, given.n_members, random_state=seed)


def _parameters(given: argparse.Namespace, name: str) -> dict[str, Any]:
    """The parameters that are given, which must be of this kind of map."""
    parameters, known = {}, options_of_map(name)
    for option, its in MAP_OPTIONS.items():
        if not hasattr(given, f"map_{its.name}"):
            continue
        if option not in known:
            own = ", ".join(f"--{one}" for one in known)
            raise ParameterError(f"--map {name} has no --{option}: leave it out; it has {own}")
        parameters[its.name] = getattr(given, f"map_{its.name}")
    return parameters


# --- what is said of it -------------------------------------------------------------------------


def warn_of_others(given: argparse.Namespace, path: str, fitted: FeatureMap) -> None:
    """Warn if another map of the same columns is beside the file where this one is written."""
    other = None if given.quiet else another_map_beside(Path(path), fitted)
    if other is not None:
        warnings.warn(
            f"{other!r} is a map of the same columns, and this draws another, whose features do "
            f"not go together with that one's: {used_again(other)} uses it",
            stacklevel=1,
        )


def column_pairs(known: dict[str, Any]) -> list[tuple[str, str]]:
    """Which columns a map reads, which it does not, and how it takes them."""
    left_out = left_out_text(known["left_out"])
    return [
        ("columns", columns_text(known["columns"])),
        *made_pairs(known),
        *([("left out", left_out)] if left_out else []),
        *([("label", known["label"])] if known["label"] is not None else []),
        *taken_pairs(known),
    ]
