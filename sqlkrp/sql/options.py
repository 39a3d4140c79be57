"""The options of a statement: each declared once, checked where it is made, handed on as one."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field, fields
from functools import wraps
from typing import Any, TypeVar

from sqlkrp.errors import ParameterError, UnknownParameterError
from sqlkrp.spelling import near_matches
from sqlkrp.sql.forms import FORMS
from sqlkrp.sql.names import TableName
from sqlkrp.sql.planning import PLANS
from sqlkrp.sql.vectors import OUTPUTS, VECTOR
from sqlkrp.urls import File, as_named

__all__ = ["OF_TEXT", "OPTIONS", "Options", "name_list", "with_options"]

Result = TypeVar("Result")


def _option(default: Any, meaning: str, allowed: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"meaning": meaning, "allowed": allowed})


_FORMS = ", ".join(f"{form.name} ({form.meaning})" for form in FORMS.values())


@dataclass(frozen=True)
class Options:
    """What a statement is asked to be; an error says which option is not allowed, and what is."""

    form: str = _option(
        "auto",
        f"how the SQL is made: {_FORMS}, or auto: the first of these that the engine has, and "
        "plans quickly",
        ("auto", *FORMS),
    )
    stage: str = _option(
        "features",
        "what is computed: features, or projection, the bare sums of columns that features are "
        "made of",
        ("features", "projection"),
    )
    output: str = _option(
        "auto",
        "how features are written: columns (one each), array (all in one column), vector (of "
        "Spark's MLlib, where it runs), bits (signs, 64 in a whole number), or auto: columns, and "
        "an array in Spark",
        ("auto", *OUTPUTS, VECTOR),
    )
    plan: str = _option(
        "auto",
        "how hyperplanes are added up in the wide form: plain (each by itself), shared (what "
        "several have in common is computed once), butterflies (of a hadamard pool), or auto: the "
        "cheapest",
        PLANS,
    )
    keep: tuple[str, ...] = _option(
        (), "the columns that are handed on, unchanged and before the features"
    )
    long: tuple[str, str, str] | None = _option(
        None,
        "the names of three columns (row, feature, value) of a table that is sparse, with one row "
        "for each value",
    )
    rows: TableName | File | None = _option(  # noqa: RUF009 - it is a field
        None,
        "of sparse input: a table with one row for each row of the answer, so that rows without a "
        "value are there too",
    )

    how: str = _option(
        "sql",
        "what computes: sql (the engine), or arrow (NumPy where the rows are: inside DuckDB, "
        "beside Postgres, in Spark on executors that have sqlkrp)",
        ("sql", "arrow"),
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            value, allowed = getattr(self, one.name), one.metadata["allowed"]
            if allowed and value not in allowed:
                raise ParameterError(f"{one.name}={value!r} is not allowed: use one of {allowed}")
        kept = tuple(dict.fromkeys(name_list("keep", self.keep)))
        object.__setattr__(self, "keep", kept)
        object.__setattr__(self, "rows", as_named(self.rows))
        if self.long is not None:
            object.__setattr__(self, "long", _three_names(self.long))
        if self.how != "sql" and (self.form, self.plan) != ("auto", "auto"):
            raise ParameterError(f"form and plan are of SQL: leave them out with how={self.how!r}")
        if self.long is None and self.rows is not None:
            raise ParameterError("a table of rows belongs to (row, feature, value) input")
        if self.long is not None and self.rows is None and kept:
            raise ParameterError(
                f"columns to keep ({', '.join(map(repr, kept))}) come from a table of rows: "
                "name it (rows=TABLE)"
            )


#: The options by name, as they are declared: ``default``, and ``metadata`` of meaning and allowed.
OPTIONS: dict[str, Field[Any]] = {one.name: one for one in fields(Options)}

#: Those of a text that nobody runs here.
OF_TEXT = tuple(name for name in OPTIONS if name != "how")


def name_list(what: str, names: Iterable[str] | None) -> list[str]:
    """Column names as a list; one text is an error, not a list of its letters."""
    if names is None:
        return []
    if isinstance(names, str):
        raise ParameterError(f"{what}={names!r} is one text: give a list of column names")
    listed = list(names) if isinstance(names, Iterable) else [None]
    if not all(isinstance(name, str) for name in listed):
        raise ParameterError(f"{what}={names!r} is not allowed: give a list of column names")
    return listed


def _three_names(long: Any) -> tuple[str, ...]:
    names = tuple(long) if isinstance(long, (tuple, list)) else ()
    if len(names) != 3 or not all(isinstance(name, str) for name in names) or len(set(names)) < 3:
        raise ParameterError(
            f"long={long!r} is not allowed: name three columns, such as ('row', 'feature', 'value')"
        )
    return names


def with_options(*names: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a method options as keywords; it has them as one, which is its ``options``.

    Without ``names`` it takes them all. Its signature and its documentation have each keyword, with
    the default and the meaning that are declared.
    """
    chosen = names or tuple(OPTIONS)

    def decorate(method: Callable[..., Result]) -> Callable[..., Result]:
        own = inspect.signature(method)
        others = [one for one in own.parameters.values() if one.name != "options"]
        shown = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=OPTIONS[name].default,
                annotation=OPTIONS[name].type,
            )
            for name in chosen
        ]
        # Python has what may be given by place first, whose kinds are the smaller ones.
        known = sorted([*others, *shown], key=lambda one: one.kind)
        by_name = {one.name for one in known}
        by_place = [one.name for one in known if one.kind is one.POSITIONAL_OR_KEYWORD]

        @wraps(method)
        def call(*given: Any, **named: Any) -> Result:
            for name in named:
                if name not in by_name:
                    near = near_matches(name, [one.name for one in known[1:]])
                    raise UnknownParameterError(f"{method.__name__} has no option {name!r}{near}")
            if len(given) > len(by_place):
                raise UnknownParameterError(
                    f"{method.__name__} takes {' and '.join(by_place[1:])} without a name: name "
                    f"the others, such as {chosen[0]}=..."
                )
            options = {name: named.pop(name) for name in chosen if name in named}
            return method(*given, **named, options=Options(**options))

        call.__signature__ = own.replace(parameters=known)  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n\n{_documentation(chosen)}"
        return call

    return decorate


def _documentation(names: Iterable[str]) -> str:
    """The options in the words of their declaration, as a section of a documentation."""
    lines = ["Options", "-------"]
    for name in names:
        one = OPTIONS[name]
        told = f"{name} = {one.default!r} : {one.metadata['meaning']}"
        lines += textwrap.wrap(told, 90, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines)
