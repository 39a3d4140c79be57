"""What every feature map shares: parameters, fitting to columns, and the NumPy twin.

Names and behaviour are scikit-learn's, without depending on it.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import (
    ColumnError,
    NotFittedError,
    ParameterError,
    UnknownParameterError,
)
from sqlkrp.mapfile import Content
from sqlkrp.maps.advice import counted, warn_of_columns, warn_of_features
from sqlkrp.maps.automatic import Seen, SeenColumns, Taken, gamma_of
from sqlkrp.maps.source import (
    BOOLEAN,
    FLOAT32,
    NUMERIC,
    Inputs,
    Source,
    Statistics,
    as_source,
    is_table,
    to_array,
    to_floats,
)
from sqlkrp.pools import generator
from sqlkrp.stages import Array, Prepare, Program, Stage
from sqlkrp.stages.base import is_unicode

__all__ = ["Map", "match_columns"]

SomeMap = TypeVar("SomeMap", bound="Map")

_SCALINGS = ("auto", None, "standard", "minmax", "unit")
_DTYPES = ("auto", "float32", "float64")
# Names that a message suggests.
_SHOWN_NAMES = 3
# More would not fit in memory as they are drawn, nor in any table.
_MOST_FEATURES = 10_000_000


class Map:
    """A feature map: parameters, then after ``fit`` a row program.

    A concrete map sets its parameters in ``__init__`` (keyword names equal attribute names) and
    defines ``check`` (its parameters are allowed) and ``draw`` (its stages after Prepare).
    """

    prefix: str = "feature"
    """What the feature names begin with."""

    headline: tuple[str, ...] = ("n_components",)
    """The parameters that its one-line title names even at their defaults."""

    n_components: int
    scaling: str | None
    clip: float | str | None
    nulls: str
    dtype: str
    random_state: int | None

    program_: Program
    parameters_: dict[str, Any]
    """The parameters that the program was drawn with; later ``set_params`` do not change them."""
    seed_: int
    left_out_: dict[str, str]
    taken_: dict[str, Taken]
    """What was taken for parameters that are ``"auto"``."""
    label_: str | None
    """The column that the features are to predict: none of them, and kept beside them."""

    # --- what a concrete map says -------------------------------------------------------------

    def check(self) -> None:
        """Raise ParameterError unless the parameters are allowed."""
        raise NotImplementedError

    def constant(self) -> float | None:
        """The value of a constant column beside the inputs, or None for no such column."""
        return None

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        """The stages after Prepare; most maps read no more of the inputs than their number."""
        raise NotImplementedError

    def names(self, count: int) -> list[str]:
        """The names of so many features."""
        return [f"{self.prefix}_{i}" for i in range(count)]

    # --- parameters ---------------------------------------------------------------------------

    def __new__(cls: type[SomeMap], *_: Any, **parameters: Any) -> SomeMap:
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

    def parts(self) -> dict[str, Map]:
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

    def set_params(self: SomeMap, **parameters: Any) -> SomeMap:
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "program_")

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn calls this, so it is there to be imported.
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(allow_nan=self.first.nulls != "error"),
        )

    # --- fitting ------------------------------------------------------------------------------

    def fit(
        self: SomeMap,
        source: Any,
        y: Any = None,
        *,
        label: str | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        keep: Iterable[str] = (),
    ) -> SomeMap:
        """Draw the map for the columns of ``source``.

        Where there are rows, each column's statistics are read, by aggregates, unless no parameter
        asks for them (``scaling``, ``clip`` and ``gamma`` are ``"auto"``, and ask). The ``label``,
        the columns in ``exclude`` and ``keep``, and those that the database knows as keys are no
        features, unless ``include`` names them; with ``include`` only those it names are. Columns
        that are not numbers are left out (``left_out_`` says why). The label is kept beside the
        features that a database makes.
        """
        self.check_common()
        self.check()
        exclude, keep = name_list("exclude", exclude), name_list("keep", keep)
        include = None if include is None else name_list("include", include)
        described = as_source(source)
        kinds = described.kinds
        labels = _label_of(label, described, include)
        columns, left_out = _choose_columns(described, include, exclude, [*labels, *keep])
        dtype = self.first.dtype
        if dtype == "auto":
            single = all(kinds[name] == FLOAT32 for name in columns)
            dtype = "float32" if single else "float64"
        drawn = type(self)(**copy.deepcopy(self.get_params(deep=False)))
        # What leaves the range of numbers is looked for, and told in words.
        with np.errstate(over="ignore", invalid="ignore"):
            moments = drawn.first.look(described, columns)
            drawn.settle(SeenColumns(columns, moments, described.is_sparse))
            prepare = _prepare(drawn.first, columns, moments, dtype, kinds)
        prepare = replace(prepare, constant=drawn.constant())
        seed = _seed(self.random_state)
        try:
            with np.errstate(all="ignore"):
                stages = drawn.draw(Inputs(prepare, described), generator(seed))
                _require_range(stages, dtype)
        except (ArithmeticError, np.linalg.LinAlgError) as bad:
            raise ParameterError(
                f"this {type(self).__name__} leaves the range of numbers ({bad}): use parameters "
                "nearer to 1, or scale the columns"
            ) from bad
        self.program_ = Program((prepare, *stages), tuple(self.names(stages[-1].n_outputs)))
        self.parameters_ = copy.deepcopy(self.get_params(deep=False))
        self.seed_ = seed
        self.left_out_ = left_out
        self.taken_ = drawn.all_taken()
        self.label_ = label
        warn_of_columns(described, columns, moments, chosen=include is not None)
        drawn.first.warn_of_rank(len(columns))
        return self

    def warn_of_rank(self, n_columns: int) -> None:
        """Warn of more features than the kernel has products of columns."""
        degree = self.polynomial_degree
        if degree is not None:
            # A constant term adds the products of fewer columns.
            others = n_columns - (not getattr(self, "coef0", 0.0))
            warn_of_features(self.n_components, math.comb(others + degree, degree), n_columns)

    def check_common(self) -> None:
        """Raise ParameterError unless the parameters that all maps have are allowed."""
        choose("scaling", self.scaling, _SCALINGS)
        choose("nulls", self.nulls, Prepare.POLICIES)
        choose("dtype", self.dtype, _DTYPES)
        if self.clip is not None and self.clip != "auto":
            real("clip", self.clip, at_least=0, above=True, instead="'auto' or None")
        whole("n_components", self.n_components, at_least=1, at_most=_MOST_FEATURES)

    def look(self, source: Source, columns: Sequence[str]) -> Statistics | None:
        """What the columns hold, if a parameter asks for it and there are rows."""
        asked = (
            self.nulls == "mean"
            or self.scaling in ("standard", "minmax")
            or self.clip not in (None, "auto")
        )
        if asked and source.is_sparse:
            raise ParameterError(
                "scaling, clip and nulls='mean' need one column a feature: for (row, feature, "
                "value) input use scaling=None or 'unit', clip=None, and another policy"
            )
        wanted = "auto" in (self.scaling, getattr(self, "gamma", None))
        if not asked and not (wanted and source.has_values):
            return None
        moments = source.statistics(columns).rounded()
        if asked:
            _require_values(columns, moments)
        return moments.without_gaps()

    def settle(self, seen: Seen) -> None:
        """Put values in the place of parameters that are ``"auto"``, and note them."""
        found = self.automatic(seen)
        for name, taken in found.items():
            setattr(self, name, taken.value)
        # The second member of an ensemble takes what the first did, and finds nothing to take.
        self.taken_ = {**getattr(self, "taken_", {}), **found}

    def automatic(self, seen: Seen) -> dict[str, Taken]:
        """What the parameters come to that are ``"auto"``."""
        taken: dict[str, Taken] = {}
        if self.scaling == "auto":
            taken["scaling"] = seen.scaling()
        scaling = taken["scaling"].value if taken else self.scaling
        if self.clip == "auto":
            taken["clip"] = seen.clip(scaling)
        if getattr(self, "gamma", None) == "auto":
            taken["gamma"] = gamma_of(seen, scaling, self.gamma_power)
        return taken

    @property
    def gamma_power(self) -> int:
        """The power of the columns' unit that gamma is one over."""
        return 2

    @property
    def alternative(self) -> str | None:
        """A map that would do better with these parameters, and why."""
        return None

    @property
    def polynomial_degree(self) -> int | None:
        """The degree of its kernel, if that is a polynomial."""
        return None

    def all_taken(self) -> dict[str, Taken]:
        """What was taken here and in the maps that it is made of."""
        found = dict(getattr(self, "taken_", {}))
        for part, one in self.parts().items():
            found |= {f"{part}__{name}": taken for name, taken in one.all_taken().items()}
        return found

    @property
    def first(self) -> Map:
        """The map that reads the columns: of what is made of maps, the first."""
        return self

    # --- files --------------------------------------------------------------------------------

    def content(self) -> Content:
        """What the map's file holds."""
        return Content(
            map=type(self).__name__,
            parameters={name: _plain(value) for name, value in self.parameters_.items()},
            seed=self.seed_,
            left_out=self.left_out_,
            label=self.label_,
            taken={name: asdict(taken) for name, taken in self.taken_.items()},
            program=self.program,
        )

    def restore(self, content: Content) -> None:
        """Become the fitted map of a file, with whose parameters this one was made."""
        self.check_common()
        self.check()
        self.program_ = content.program
        self.parameters_ = self.get_params(deep=False)
        self.seed_ = content.seed
        self.left_out_ = content.left_out
        self.label_ = content.label
        self.taken_ = {name: Taken(**taken) for name, taken in content.taken.items()}

    # --- use ----------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """The features of the rows of ``X``, computed by NumPy: the twin of the SQL.

        A DataFrame's columns are matched by name (others are ignored), an array's by position.
        Returns an array, or a DataFrame after ``set_output(transform="pandas")``.
        """
        features = self.program.apply(self.inputs(X))
        if self._output == "pandas":
            import pandas

            index = X.index if hasattr(X, "index") else None
            return pandas.DataFrame(features, columns=list(self.program.names), index=index)
        return features

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit to ``X``, then transform it."""
        return self.fit(X, y, **options).transform(X)

    def inputs(self, X: Any) -> NDArray[Any]:
        """The input columns of ``X`` as one array, before Prepare."""
        prepare = self.program.prepare
        if is_table(X):
            names = list(X.columns) if hasattr(X, "columns") else list(X)
            match_columns(prepare.columns, names)
            return np.column_stack([to_floats(name, X[name]) for name in prepare.columns])
        if hasattr(X, "columns"):
            raise ParameterError(
                f"transform computes in NumPy and was given a {type(X).__name__}: give a DataFrame "
                "or an array, or compute in the database with db.relation or db.create"
            )
        table = to_array(X)
        if table.ndim == 1:
            raise ColumnError(
                f"expected rows and columns, got one dimension, of {len(table)}: "
                "X.reshape(1, -1) is one row, X.reshape(-1, 1) one column"
            )
        if table.ndim != 2 or table.shape[1] != len(prepare.columns):
            raise ColumnError(
                f"expected {len(prepare.columns)} columns, got an array of shape {table.shape}: "
                "give the columns the map was fitted to, in that order"
            )
        return to_floats("an array", table)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features."""
        return np.array(self.program.names, dtype=object)

    def set_output(self: SomeMap, *, transform: str | None = None) -> SomeMap:
        """Choose what ``transform`` returns: ``"default"`` (an array) or ``"pandas"``."""
        if transform is not None:
            choose("transform", transform, ("default", "pandas"))
            # scikit-learn's own name, so that its clone() copies the setting.
            self._sklearn_output_config = {"transform": transform}
        return self

    @property
    def _output(self) -> str:
        config: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        return config.get("transform", "default")

    @property
    def program(self) -> Program:
        """The row program; an error that says what to do before ``fit``."""
        if not hasattr(self, "program_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self.program_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The input columns' names, in order."""
        return np.array(self.program.prepare.columns, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many input columns there are."""
        return len(self.program.prepare.columns)


def _plain(value: Any) -> Any:
    """A parameter as a file holds it."""
    if isinstance(value, Map):
        parameters = {name: _plain(one) for name, one in value.get_params(deep=False).items()}
        return {"map": type(value).__name__, "parameters": parameters}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def match_columns(wanted: Iterable[str], present: Iterable[str], where: str = "the data") -> None:
    """Raise ColumnError, with near matches, unless every wanted column is present."""
    present = list(present)
    known = set(present)
    missing = [name for name in wanted if name not in known]
    if missing:
        near = near_matches(missing[0], present)
        more = f" (and {counted(len(missing) - 1, 'more column')})" if len(missing) > 1 else ""
        raise ColumnError(f"column {missing[0]!r}{more} is not in {where}{near}")


def match_spelling(wanted: Iterable[str], present: Iterable[str]) -> dict[str, str]:
    """Each wanted name as it is spelt among those present: exactly, or but for case."""
    names = list(present)
    found = {}
    for name in wanted:
        same = [one for one in names if one == name]
        near = same or [one for one in names if one.lower() == name.lower()]
        if len(near) > 1 and not same:
            raise ColumnError(f"column {name!r} may be any of {near!r}: name one of them")
        if not near:
            match_columns([name], names, where="the columns named")
        found[name] = near[0]
    if len(set(found.values())) < len(found):
        raise ColumnError(f"some of {list(found)!r} are one column of those named: {names!r}")
    return found


def near_matches(name: str, present: Iterable[str]) -> str:
    """The end of an error message: what may have been meant."""
    names = [str(one) for one in present]
    folded = [one for one in names if one.lower() == name.lower()]
    same_numbers = [one for one in names if _numbers(one) == _numbers(name)]
    letters, numbers = _nearest(name, names)
    near = folded or letters or difflib.get_close_matches(name, same_numbers, n=_SHOWN_NAMES)
    if near:
        return ": did you mean " + " or ".join(repr(one) for one in near) + "?"
    if numbers:
        return ": the nearest are " + ", ".join(repr(one) for one in numbers)
    shown = ", ".join(repr(one) for one in names[:8]) + (", ..." if len(names) > 8 else "")
    return f": there are {shown or 'none'}"


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


def require_map(name: str, value: Any) -> None:
    """Raise ParameterError unless this is a map; whether it is fitted, it says itself."""
    if not isinstance(value, Map):
        kind = type(value).__name__
        raise ParameterError(f"{name} is of type {kind}, not a map: give one, such as KRP(2, 100)")


def _is_double(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond them
        return False


def _listed(allowed: Sequence[Any]) -> str:
    return ", ".join(repr(one) for one in allowed)


def _label_of(label: Any, source: Source, include: Sequence[str] | None) -> list[str]:
    """The label as a column that is no feature; of sparse rows it is in another table."""
    if label is None:
        return []
    if not isinstance(label, str):
        raise ParameterError(f"label={label!r} is not allowed: name one column")
    if label in (include or ()):
        raise ColumnError(f"column {label!r} is both included and the label: choose one")
    if not source.is_sparse:
        return [label]
    if label in source.kinds:
        raise ColumnError(f"label {label!r} is a feature of the sparse rows: exclude it there")
    return []


def _choose_columns(
    source: Source,
    include: Sequence[str] | None,
    exclude: Sequence[str],
    keep: Sequence[str],
) -> tuple[list[str], dict[str, str]]:
    kinds = source.kinds
    match_columns([*exclude, *keep], kinds)
    # A feature of sparse input may have an empty name, which no column could have.
    usable = {name for name, kind in kinds.items() if kind in NUMERIC and name}
    if include is not None:
        columns = list(dict.fromkeys(include))
        match_columns(columns, kinds)
        unusable = [name for name in columns if name not in usable]
        if unusable:
            raise ColumnError(
                f"column {unusable[0]!r} is of type {kinds[unusable[0]]}: "
                "features are numbers or booleans; cast it in a view, or do not include it"
            )
        both = [name for name in columns if name in exclude]
        if both:
            raise ColumnError(f"column {both[0]!r} is both included and excluded: choose one")
    else:
        usable -= {*exclude, *keep, *source.keys}
        columns = [name for name in kinds if name in usable]
    if not columns:
        raise ColumnError(
            "no numeric column is left to project: there must be at least one column of a numeric "
            "or boolean type that is neither excluded nor kept"
        )
    unwritten = [name for name in columns if not is_unicode(name)]
    if unwritten:
        raise ColumnError(
            f"column name {unwritten[0]!r} holds a character that is no text: rename it"
        )
    chosen = {*columns, *exclude, *keep}
    return columns, {
        name: _why_left_out(name, kind, source)
        for name, kind in kinds.items()
        if name not in chosen and (name not in usable or include is None)
    }


def _why_left_out(name: str, kind: str, source: Source) -> str:
    if not name:
        return "a name that is empty"
    return "a key" if name in source.keys and kind in NUMERIC else kind


def _seed(random_state: Any) -> int:
    if random_state is None:
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
        return entropy
    return whole("random_state", random_state, at_least=0)


def _require_values(columns: Sequence[str], moments: Statistics) -> None:
    empty = [name for name, count in zip(columns, moments.count, strict=True) if not count]
    if empty:
        raise ColumnError(
            f"column {empty[0]!r} holds no value to compute its mean or range from: exclude it"
        )


def _require_column_range(columns: Sequence[str], moments: Statistics, dtype: str) -> None:
    with np.errstate(over="ignore"):
        spread = moments.max - moments.min
    smallest, largest = np.finfo(dtype).tiny, np.finfo(dtype).max
    fits = np.isfinite(moments.mean) & np.isfinite(moments.std) & (spread < largest)
    fits &= moments.size < largest  # else what is rounded to the dtype may be infinite
    fits &= (moments.std > smallest) | (spread == 0)
    if not fits.all():
        worst = int(np.flatnonzero(~fits)[0])
        low, high = moments.min[worst], moments.max[worst]
        raise ColumnError(
            f"column {columns[worst]!r} holds values from {low:.4g} to {high:.4g}, which is too "
            f"large or too small for {dtype}: rescale it in a view first, or exclude it"
        )


def _require_range(stages: Sequence[Stage], dtype: str) -> None:
    """Raise OverflowError if a number that was drawn is infinite in the dtype."""
    for stage in stages:
        for numbers in map(np.asarray, vars(stage).values()):
            if numbers.dtype.kind == "f" and np.isinf(numbers.astype(dtype)).any():
                raise OverflowError(f"a number of it is too large for {dtype}")


def _prepare(
    one: Map,
    columns: Sequence[str],
    moments: Statistics | None,
    dtype: str,
    kinds: Mapping[str, str],
) -> Prepare:
    """The first stage of a map that is settled, but for its constant column."""
    d = len(columns)
    fill, shift, scale = np.zeros(d), np.zeros(d), np.ones(d)
    low = high = None
    if moments is not None:
        if one.nulls == "mean" or one.scaling in ("standard", "minmax") or one.clip is not None:
            _require_column_range(columns, moments, dtype)
        if one.nulls == "mean":
            fill = moments.mean
        if one.scaling in ("standard", "minmax"):
            shift, scale = _scaled(moments, one.scaling)
        if one.clip is not None:
            low, high = _bounds(moments, float(one.clip), dtype)
            fill = np.clip(fill.astype(dtype), low, high)
    return Prepare(
        columns=tuple(columns),
        fill=fill.astype(dtype),
        shift=shift.astype(dtype),
        scale=scale.astype(dtype),
        nulls=one.nulls,
        unit_length=one.scaling == "unit",
        dtype=dtype,
        booleans=tuple(name for name in columns if kinds[name] == BOOLEAN),
        low=low,
        high=high,
    )


def _scaled(moments: Statistics, scaling: str) -> tuple[Array, Array]:
    """What is subtracted from each column, and what it is then multiplied by."""
    # A constant column has no spread (its computed deviation may be 1e-17 instead of 0): like
    # scikit-learn, leave it as it is after the shift.
    varies = moments.varies
    if scaling == "minmax":
        return moments.min, 1.0 / np.where(varies, moments.max - moments.min, 1.0)
    # A rare indicator would become the largest number in its row.
    plain = moments.indicates
    return (
        np.where(plain, 0.0, moments.mean),
        1.0 / np.where(varies & ~plain, moments.std, 1.0),
    )


def _bounds(moments: Statistics, clip: float, dtype: str) -> tuple[Array, Array]:
    """What each column is held between; the ends of the dtype for one of 0 and 1."""
    end = np.finfo(dtype).max
    reach = clip * np.where(moments.varies, moments.std, 0.0)
    low = np.where(moments.indicates, -end, np.maximum(moments.mean - reach, -end))
    high = np.where(moments.indicates, end, np.minimum(moments.mean + reach, end))
    return low.astype(dtype), high.astype(dtype)


def name_list(what: str, names: Iterable[str]) -> list[str]:
    """Column names as a list; one text is an error, not a list of its letters."""
    if isinstance(names, str):
        raise ParameterError(f"{what}={names!r} is one text: give a list of column names")
    return list(names)
