"""What a map is made with: parameters, as scikit-learn has them, each declared once.

A declaration is a dataclass field that holds a :class:`Parameter`. Constructor, documentation,
checks, options of the command line and the reference page are made of it.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, replace
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from sqlkrp.errors import ParameterError, UnknownParameterError
from sqlkrp.maps.allowed import GENERATORS, Allowed, Spell
from sqlkrp.maps.columns import near_matches

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:  # Python 3.10 has none, and only type checkers look at it.

    def dataclass_transform(**_):
        return lambda decorator: decorator


__all__ = [
    "Parameter",
    "Parameters",
    "copied",
    "plain",
    "require_known",
    "title_of",
    "with_parameters",
]

SomeParameters = TypeVar("SomeParameters", bound="Parameters")


@dataclass(frozen=True)
class Parameter:
    """What is declared of a parameter."""

    check: Allowed
    meaning: str
    """What it is, in one line that does not end in a full stop."""
    metavar: str = "NAME"
    """What stands for its value in the help of the command line."""
    flag: str | None = ""
    """Its option's name, if that is not its own; None if it is no option of maps."""
    common: bool = False
    """Whether its option is shown where no map is named."""
    default: Any = inspect.Parameter.empty
    name: str = ""

    def by_default(self, value: Any, **changes: Any) -> Any:
        """The field of a map that has this parameter, with its default and what else differs."""
        one = replace(self, default=value, **changes)
        return field(default=value, metadata={"declared": one})

    def required(self) -> Any:
        """The field of a map that is not made without this parameter."""
        return field(metadata={"declared": self})

    @property
    def has_default(self) -> bool:
        """Whether a map may be made without it."""
        return self.default is not inspect.Parameter.empty

    @property
    def option(self) -> str:
        """The name of its option, without the dashes."""
        return self.flag or self.name.removeprefix("n_").replace("_", "-")

    def text(self, spell: Spell) -> str:
        """What it is, and what it may be; ``spell`` writes the values."""
        allowed = self.check.told(spell)
        return f"{self.meaning}: {allowed}" if allowed else self.meaning


@dataclass_transform(eq_default=False)
def with_parameters(cls: type[SomeParameters]) -> type[SomeParameters]:
    """Make a class's constructor and the section of its documentation of what it declares.

    Its own parameters come before those of its bases, and what is declared anew keeps its place.
    """
    own = {
        name: replace(one.metadata["declared"], name=name)
        for name, one in vars(cls).items()
        if isinstance(one, Field)
    }
    new = {name: one for name, one in own.items() if name not in cls.declared}
    declared = {**new, **cls.declared, **own}
    dataclass(eq=False, repr=False, match_args=False)(cls)
    init: Any = vars(cls)["__init__"]
    # A dataclass has those of its bases first. All but a few are keywords, whose order is for
    # people to read.
    made = inspect.signature(init)
    ordered = sorted((made.parameters[name] for name in ("self", *declared)), key=_kind)
    init.__signature__ = made.replace(parameters=ordered)
    cls.declared = MappingProxyType({one.name: declared[one.name] for one in ordered[1:]})
    about, mark, references = inspect.cleandoc(cls.__doc__ or "").partition("\n\nReference")
    cls.__doc__ = f"{about}\n\n{_section(cls.declared.values())}{mark}{references}"
    return cls


def _kind(one: inspect.Parameter) -> int:
    return one.kind


def _section(declared: Iterable[Parameter]) -> str:
    """The section of a docstring about parameters, as numpydoc has it."""
    entries = ["Parameters\n----------"]
    for one in declared:
        default = f" (default: {one.default!r})" if one.has_default else ""
        entry = f"{one.name} : {one.text(repr)}{default}"
        entries.append(textwrap.fill(entry, 96, subsequent_indent="    ", break_on_hyphens=False))
    return "\n".join(entries)


class Parameters:
    """Something made with parameters, which are attributes of the same names. Every map has these.

    As in scikit-learn, the constructor keeps what it is given, and checks nothing: parameters may
    be set later, too.
    """

    n_components: int
    scaling: str | None
    clip: float | str | None
    nulls: str
    dtype: str
    random_state: Any

    declared: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})
    """Its parameters by name, in order."""

    headline: tuple[str, ...] = ("n_components",)
    """The parameters that its one-line title names even at their defaults."""

    def __new__(cls: type[SomeParameters], *given: Any, **parameters: Any) -> SomeParameters:
        # Before the constructor's own TypeErrors, which do not say what parameters there are.
        cls._require_known(parameters, cls.parameter_names())
        cls._require_few(given)
        return super().__new__(cls)

    @classmethod
    def _require_known(cls, given: Iterable[str], known: Iterable[str]) -> None:
        for name in given:
            if name not in known:
                near = near_matches(name, known)
                raise UnknownParameterError(f"{cls.__name__} has no parameter {name!r}{near}")

    @classmethod
    def _require_few(cls, given: tuple[Any, ...]) -> None:
        signature = inspect.signature(cls.__init__).parameters.values()
        first = [one.name for one in signature if one.kind is one.POSITIONAL_OR_KEYWORD][1:]
        if len(given) > len(first):
            raise UnknownParameterError(
                f"{cls.__name__} was given {len(given)} values without a name, and takes "
                f"{' and '.join(first)} so: name the others"
            )

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The names of the constructor's parameters."""
        return list(cls.declared)

    @classmethod
    def default_params(cls) -> dict[str, Any]:
        """The parameters that have a default, with it."""
        return {name: one.default for name, one in cls.declared.items() if one.has_default}

    def check_parameters(self) -> None:
        """Raise ParameterError unless each parameter is allowed, and all of them together."""
        for name, one in self.declared.items():
            one.check.require(name, getattr(self, name))
        for part in self.parts().values():
            part.check_parameters()
        self.check()

    def check(self) -> None:
        """Raise ParameterError unless parameters that are allowed each go together."""

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
    return repr(plain(value))


def plain(value: Any) -> Any:
    """A parameter as a file holds it."""
    if isinstance(value, Parameters):
        parameters = {name: plain(one) for name, one in value.get_params(deep=False).items()}
        return {"map": type(value).__name__, "parameters": parameters}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return _scalar(value)


def require_known(value: Any) -> None:
    """Raise ParameterError if this is or has a map of a class that no file can be read as."""
    if isinstance(value, (list, tuple)):
        for one in value:
            require_known(one)
    if not isinstance(value, Parameters):
        return
    if not type(value).__module__.startswith("sqlkrp."):
        raise ParameterError(
            f"{type(value).__name__} is a class of yours, and sqlkrp could not read its file "
            "again: save a map of sqlkrp's own classes, or keep the SQL (to_sql)"
        )
    for one in value.get_params(deep=False).values():
        require_known(one)


def copied(value: Any) -> Any:
    """A parameter for a draw: a copy, whose numbers are Python's own.

    NumPy's small whole numbers overflow, and its floats compute in their own precision.
    """
    if isinstance(value, Parameters):
        return type(value)(**{name: copied(one) for name, one in value.get_params(False).items()})
    if isinstance(value, (list, tuple)):
        return type(value)(map(copied, value))
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, GENERATORS):
        return None  # the seed that it drew is the map's
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)
