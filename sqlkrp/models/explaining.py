"""What a model says of its columns: the terms of the polynomial that it is, the strongest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqlkrp.display import Shown
from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import Whole
from sqlkrp.models.model import Model
from sqlkrp.models.polynomials import (
    Polynomials,
    polynomials_at,
    polynomials_of,
    product_name,
)
from sqlkrp.stages import Prepare

__all__ = ["Explanation", "Term", "explain"]


@dataclass(frozen=True)
class Term:
    """One term of a model's polynomials: a product of columns, and what it is multiplied by."""

    columns: tuple[str, ...]
    """The factors; none of a constant."""
    coefficients: tuple[float, ...]
    """Of columns as the model prepares them (scaled, if its map scales), one for each decision."""
    raw: tuple[float, ...] | None
    """Of columns as they are; None where that is no polynomial, as for rows of length one."""

    @property
    def name(self) -> str:
        """The product, as people write it.

        >>> Term(("age", "age"), (0.5,), None).name
        'age²'
        """
        return product_name(self.columns)

    @property
    def size(self) -> float:
        """The largest coefficient, whatever its sign."""
        return max(map(abs, self.coefficients))


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """The terms of a model, the strongest first, and what its decisions are called."""

    decisions: tuple[str, ...]
    constant: Term
    terms: tuple[Term, ...]
    n_terms: int
    """How many there are in all, beside the constant."""
    n_raw: int
    """How many more there are of raw columns alone, as what is shifted has lower terms too."""
    held: bool
    """Whether values of columns beyond some bounds are read as these."""
    error: str | None
    """Of a short model: what the terms that were dropped are worth."""

    def _facts(self) -> dict[str, Any]:
        return {"decisions": len(self.decisions), "terms": self.n_terms}

    def _rows(self) -> dict[str, Any]:
        return {
            term.name: ", ".join(f"{one:+.4g}" for one in term.coefficients) for term in self.terms
        }

    def as_plain(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        return {
            "decisions": list(self.decisions),
            "constant": _plain(self.constant),
            "terms": [_plain(one) for one in self.terms],
            "terms_in_all": self.n_terms,
            "terms_of_raw_columns_alone": self.n_raw,
            "held": self.held,
            "error": self.error,
        }


def _plain(term: Term) -> dict[str, Any]:
    return {
        "term": term.name,
        "columns": list(term.columns),
        "coefficients": list(term.coefficients),
        "raw": None if term.raw is None else list(term.raw),
    }


def explain(model: Model, top: int | None = 20) -> Explanation:
    """The strongest terms of a model that is a polynomial in its columns; of all, ``top=None``.

    A prediction or a decision is the sum of the terms' coefficients, each times its product of
    columns; a probability or a label follows from decisions.
    """
    if top is not None:
        Whole(1).require("top", top)
    program = model.twin
    place = model.sums_at(program)
    prepared = polynomials_at(program, place)
    if prepared is None:
        raise ParameterError(
            "this model is no polynomial of few enough terms in its columns: see how much each of "
            "them matters on rows (--db DB --table NAME, or in Python db.importance)"
        )
    prepare, stages = program.prepare, program.stages[1 : place + 1]
    raw = None if prepare.unit_length else polynomials_of(stages, _raw_columns(prepare))
    constant, *terms = _terms(prepare.told, prepared, raw)
    strongest = sorted(terms, key=lambda term: -term.size)
    return Explanation(
        _names(model, len(prepared.coefficients)),
        constant,
        tuple(strongest[:top]),
        len(prepared.strongest),
        len(terms) - len(prepared.strongest),
        bool(prepare.held.any()),
        model.error,
    )


def _raw_columns(prepare: Prepare) -> Polynomials:
    """The prepared columns as polynomials in those of the table."""
    scale, shift = prepare.scale.astype("f8"), prepare.shift.astype("f8")
    found = Polynomials.of_columns(scale, -shift * scale)
    return found if prepare.constant is None else found.with_constant(prepare.constant)


def _terms(columns: Sequence[str], prepared: Polynomials, raw: Polynomials | None) -> list[Term]:
    """The constant, and the terms that are there."""
    others = None if raw is None else raw.coefficients
    used = np.abs(prepared.coefficients).max(axis=0)
    if others is not None:
        used = used + np.abs(others).max(axis=0)
    return [
        Term(
            tuple(columns[place] for place in prepared.monomials[i]),
            tuple(prepared.coefficients[:, i].tolist()),
            None if others is None else tuple(others[:, i].tolist()),
        )
        for i in [0, *(np.flatnonzero(used[1:]) + 1).tolist()]
    ]


def _names(model: Model, count: int) -> tuple[str, ...]:
    """What each decision is called."""
    answers = model.answers
    if answers is None or count != answers.n_inputs:
        return model.twin.names if answers is None else tuple(f"sum {i}" for i in range(count))
    if count == 1:
        return (f"decision for {answers.classes[1]!r}",)
    return tuple(f"decision for {one!r}" for one in answers.classes)
