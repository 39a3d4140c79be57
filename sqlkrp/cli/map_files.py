"""The files of maps and models that commands read: as arguments, and loaded."""

from __future__ import annotations

import argparse

from sqlkrp.cli.command import Parser
from sqlkrp.cli.typed import numbers, path
from sqlkrp.errors import ParameterError
from sqlkrp.maps import FeatureMap
from sqlkrp.maps.fitted import Fitted
from sqlkrp.models import Model, load

__all__ = ["add_map", "add_model", "load_asked", "load_map", "load_model", "load_scoring"]


def add_map(one: Parser) -> None:
    """A map file, and which of its features."""
    group = one.group("input")
    group.add_argument(
        "map",
        metavar="MAP",
        type=path,
        help="a map file, from sqlkrp draw or featurize, or a model",
    )
    group.add_argument(
        "--components-only",
        type=numbers,
        metavar="NUMBERS",
        help="compute only the features of these numbers, such as 0-99,120, and what they need; in "
        "the map's order, and each once",
    )


def add_model(one: Parser) -> None:
    """A model file."""
    one.group("input").add_argument(
        "map", metavar="MODEL", type=path, help="a model file, from Model.save in Python"
    )


def load_asked(given: argparse.Namespace) -> Fitted:
    """The map or model of a command, or as much of it as is asked for."""
    components, terms = (getattr(given, name, None) for name in ("components_only", "terms"))
    if components is not None and terms is not None:
        raise ParameterError(
            f"terms={terms} is of a model, and components_only of a map: give one of them"
        )
    if terms is not None:
        return load_model(given.map).shortened(terms)
    if components is not None:
        return load_map(given.map).select(components)
    fitted: Fitted = load(given.map)
    return fitted


def load_scoring(given: argparse.Namespace) -> Model:
    """The model of a command that scores, or as much of it as is asked for."""
    fitted = load_asked(given)
    if not isinstance(fitted, Model):
        raise ParameterError(
            f"{given.map!r} holds a map, which is not a model: give one, or make a table of its "
            "features (sqlkrp run)"
        )
    return fitted


def load_model(path: str) -> Model:
    """The model of a file that must hold one."""
    fitted = load(path)
    if not isinstance(fitted, Model):
        raise ParameterError(f"{path!r} holds a map, which weighs nothing: give a model")
    return fitted


def load_map(path: str) -> FeatureMap:
    """The map of a file that must hold one."""
    fitted = load(path)
    if not isinstance(fitted, FeatureMap):
        raise ParameterError(
            f"{path!r} holds a model, which has no features of its own: score it (sqlkrp score)"
        )
    return fitted
