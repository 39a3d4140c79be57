"""What a map is made with: parameters, as scikit-learn has them, and their checks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from sqlkrp.errors import ParameterError, UnknownParameterError
from sqlkrp.maps.columns import near_matches

__all__ = ["Parameters", "choose", "even", "plain", "power_of_two", "real", "title_of", "whole"]

SomeParameters = TypeVar("SomeParameters", bound="Parameters")


class Parameters:
    """Something made with parameters: the keyword names of ``__init__`` equal attribute names.

    Every map has these.
    """

    n_components: int
    scaling: str | None
    clip: float | str | None
    nulls: str
    dtype: str
    random_state: int | None

    headline: tuple[str, ...] = ("n_components",)
    """The parameters that its one-line title names even at their defaults."""

    def __new__(cls: type[SomeParameters], *_: Any, **parameters: Any) -> SomeParameters:
        # Before the constructor's own TypeError, which names no parameter that there is.
        cls._require_known(parameters, cls.parameter_names())
        return super().__new__(cls)

    @classmethod
    def _require_known(cls, given: Iterable[str], known: Iterable[str]) -> None:
        for name in given:
            if name not in known:
                near = near_matches(name, known)
                raise UnknownParameterError(f"{cls.__name__} has no parameter {name!r}{near}")

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The names of the constructor's parameters."""
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    @classmethod
    def default_params(cls) -> dict[str, Any]:
        """The parameters that have a default, with it."""
        signature = inspect.signature(cls.__init__)
        return {
            name: one.default
            for name, one in signature.parameters.items()
            if one.default is not inspect.Parameter.empty
        }

    def parts(self) -> Mapping[str, Any]:
        """The maps that it is made of, by the names that their parameters have here."""
        return {}

    def set_part(self, name: str, value: Any) -> None:
        """Put another map in the place of a part that is no parameter by itself."""
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; ``deep``, also those of its parts, as ``part__name``."""
        found = {name: getattr(self, name) for name in self.parameter_names()}
        for part, one in self.parts().items() if deep else ():
            inner = {f"{part}__{name}": value for name, value in one.get_params().items()}
            found |= {part: one} | inner
        return found

    def set_params(self: SomeParameters, **parameters: Any) -> SomeParameters:
        """Set parameters by name; a name that does not exist is an error."""
        known = self.get_params()
        # A part before its own parameters: the new part is what they are of.
        for name, value in sorted(parameters.items(), key=lambda given: given[0].count("__")):
            self._require_known([name], known)
            part, inner, its = name.partition("__")
            if inner:
                self.parts()[part].set_params(**{its: value})
            elif name in self.parameter_names():
                setattr(self, name, value)
            else:
                self.set_part(name, value)
            known = self.get_params()
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params(False).items())
        return f"{type(self).__name__}({given})"


def title_of(one: Parameters, parameters: Mapping[str, Any]) -> str:
    """A map in one line; those that it is made of too."""
    defaults = one.default_params()
    given = [
        f"{name}={_told(value)}"
        for name, value in parameters.items()
        if name in one.headline or name not in defaults or value != defaults[name]
    ]
    return f"{type(one).__name__}({', '.join(given)})"


def _told(value: Any) -> str:
    if isinstance(value, Parameters):
        return title_of(value, value.get_params(deep=False))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_told, value))}]"
    return repr(value)


def plain(value: Any) -> Any:
    """A parameter as a file holds it."""
    if isinstance(value, Parameters):
        parameters = {name: plain(one) for name, one in value.get_params(deep=False).items()}
        return {"map": type(value).__name__, "parameters": parameters}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def choose(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """One of the allowed values, or an error that lists them."""
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise ParameterError(f"{name}={value!r} is not allowed: use one of {_listed(allowed)}")
    return value


def whole(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """A whole number that is not too small, nor too large."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise ParameterError(f"{name}={value!r} is not allowed: use a whole number >= {at_least}")
    if at_most is not None and int(value) > at_most:
        raise ParameterError(f"{name}={value!r} is not allowed: use a whole number <= {at_most}")
    return int(value)


def even(name: str, value: int, why: str) -> None:
    """Raise ParameterError unless a whole number is even."""
    if value % 2:
        raise ParameterError(f"{name}={value!r} is odd, and {why}: use {value + 1}")


def gamma_or_auto(gamma: Any) -> None:
    """Raise ParameterError unless this may be a kernel's gamma."""
    if gamma != "auto":
        real("gamma", gamma, at_least=0, above=True, instead="'auto'")


def dot_product(gamma: Any, coef0: float) -> None:
    """Raise ParameterError unless there is such a kernel (gamma <x, y> + coef0)^g."""
    gamma_or_auto(gamma)
    real("coef0", coef0, at_least=0)


# Constants beyond this (or its inverse) would overflow even in single precision.
LARGEST = 1e38


def kernel_constant(gamma: float, coef0: float) -> float | None:
    """The column that makes (gamma <x, y> + coef0)^g of gamma^g <x, y>^g; None if there is none."""
    constant = math.sqrt(coef0 / gamma) if coef0 else None
    if constant is not None and not 0 < constant < LARGEST:
        raise ParameterError(
            f"coef0={coef0!r} and gamma={gamma!r} are too far apart: "
            "use values of which neither dwarfs the other"
        )
    return constant


def power_of_two(name: str, value: Any) -> int:
    """A power of two, from 1."""
    size = whole(name, value, at_least=1)
    if size & (size - 1):
        below = 1 << (size.bit_length() - 1)
        raise ParameterError(
            f"{name}={size} is not allowed: use a power of two, such as {below} or {2 * below}"
        )
    return size


def real(
    name: str, value: Any, *, at_least: float, above: bool = False, instead: str = ""
) -> float:
    """A finite number that is not too small; ``instead`` is what else may stand there."""
    fits = isinstance(value, Real) and not isinstance(value, bool) and _is_double(value)
    if not fits or value < at_least or (above and value == at_least):
        sign = ">" if above else ">="
        others = f", or {instead}" if instead else ""
        raise ParameterError(
            f"{name}={value!r} is not allowed: use a number {sign} {at_least:g}{others}"
        )
    return float(value)


def _is_double(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond them
        return False


def _listed(allowed: Sequence[Any]) -> str:
    return ", ".join(repr(one) for one in allowed)
