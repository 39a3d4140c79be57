"""What the campaign is made of: random maps and models, and hostile tables to give to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from hostile import HOSTILE, INNER, spelt_apart
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import sqlkrp
from sqlkrp.errors import ColumnError, ParameterError

ID = "the id"
ENTRIES = ("the row", "the feature", "the value")


# --- tables ---------------------------------------------------------------------------------------

KINDS = {
    "dyadic": lambda rng, rows: rng.integers(-40, 41, rows) / 8,
    "whole": lambda rng, rows: rng.integers(-9, 10, rows),
    "truth": lambda rng, rows: rng.integers(0, 2, rows).astype(bool),
    "zero": lambda rng, rows: np.zeros(rows),
    "constant": lambda rng, rows: np.full(rows, 2.5),
    "single": lambda rng, rows: rng.normal(3, 2, rows).astype("float32"),
    "normal": lambda rng, rows: rng.normal(-2, 3, rows),
    "large": lambda rng, rows: rng.normal(1e9, 1e3, rows),
    "huge": lambda rng, rows: rng.normal(0, 1e25, rows),
    "tiny": lambda rng, rows: rng.normal(0, 1e-15, rows),
}
#: Tables of some kinds only: where all is dyadic, sums are exact; units differ elsewhere.
PALETTES = [("dyadic",), ("dyadic", "whole", "truth", "zero"), ("single",), tuple(KINDS)]


def names_of(rng, count, none):
    names = [str(name) for name in rng.permutation(HOSTILE + INNER) if name not in none]
    return spelt_apart(names)[:count]


def table(rng, kinds, rows, *, holes):
    """A table of columns of these kinds; with holes, some of its numbers are none."""
    frame = pd.DataFrame({name: KINDS[kind](rng, rows) for name, kind in kinds.items()})
    for name in frame:
        if holes and frame[name].dtype.kind == "f":
            where = rng.random(rows) < 0.1
            frame.loc[where, name] = rng.choice([np.nan, np.inf, -np.inf], where.sum())
    return frame


def entries_of(frame):
    """The same table as (row, feature, value) without its zeros, and the rows that there are."""
    values = frame.astype("float64").to_numpy()
    rows, features = np.nonzero(values)  # what is no number is none of these
    long = [rows, np.array(frame.columns, dtype=object)[features], values[rows, features]]
    return (
        pd.DataFrame(dict(zip(ENTRIES, long, strict=True))),
        pd.DataFrame({ENTRIES[0]: np.arange(len(frame))}),
    )


# --- maps -----------------------------------------------------------------------------------------


def one_of(rng, *values):
    return values[rng.integers(len(values))]


def shared(rng, **others):
    return {
        "scaling": one_of(rng, None, "auto", "standard", "minmax", "unit"),
        "clip": one_of(rng, "auto", "auto", None, 1.5),
        "nulls": one_of(rng, "error", "zero", "mean", "propagate"),
        "dtype": one_of(rng, "auto", "float64", "float32"),
        **others,
    }


def polynomial(rng):
    return {"coef0": one_of(rng, 0.0, 0.25, 1.0), "gamma": one_of(rng, "auto", 0.25, 1.0)}


def pool(rng, *pools):
    chosen = one_of(rng, *pools)
    return {
        "achlioptas": {"pool": chosen, "s": one_of(rng, 1, 3, 2.5, 50)},
        "hadamard": {"pool": chosen, "block_size": one_of(rng, 1, 2, 8, 64)},
        "gaussian": {"pool": chosen},
    }[chosen]


POOLS = ("achlioptas", "hadamard", "gaussian")
MAPS: dict[str, Any] = {
    "krp": lambda rng, k, **others: sqlkrp.KRP(
        one_of(rng, 1, 2, 3, 4), k, n_terms=one_of(rng, 1, 2, 5), **polynomial(rng),
        **pool(rng, *POOLS), **others,
    ),
    "mixed": lambda rng, k, **others: sqlkrp.MixedKRP(
        one_of(rng, 1, 2, 3), k, n_terms=one_of(rng, 1, 2), **polynomial(rng), **others
    ),
    "complex": lambda rng, k, **others: sqlkrp.ComplexKRP(
        one_of(rng, 1, 2, 3, 5), k + k % 2, n_terms=one_of(rng, 1, 2), **polynomial(rng),
        **{"pool": one_of(rng, "achlioptas", "hadamard")}, **others,
    ),
    "projection": lambda rng, k, **others: sqlkrp.RandomProjection(
        k, **pool(rng, *POOLS), **others
    ),
    "explicit": lambda rng, k, **others: sqlkrp.ExplicitRP(
        one_of(rng, 1, 2, 3), k, s=one_of(rng, 1, 3), **polynomial(rng), **others
    ),
    "monomials": lambda rng, k, **others: sqlkrp.Monomials(
        one_of(rng, 1, 2, 3), **polynomial(rng), **others
    ),
    "thresholds": lambda rng, k, **others: sqlkrp.Thresholds(k, **others),
    "prp": lambda rng, k, **others: sqlkrp.PRP(k, n_matrices=one_of(rng, 2, 4), **others),
    "maclaurin": lambda rng, k, **others: sqlkrp.RandomMaclaurin(
        k, degree=one_of(rng, 1, 2, 5), **polynomial(rng), **others
    ),
    "maclaurin, exponential": lambda rng, k, **others: sqlkrp.RandomMaclaurin(
        k, kernel="exponential", **others
    ),
    "sketch": lambda rng, k, **others: sqlkrp.TensorSketch(
        one_of(rng, 1, 2, 3), k, domain=one_of(rng, "fourier", "bucket"), **polynomial(rng),
        **others,
    ),
    "rank one": lambda rng, k, **others: sqlkrp.RankOneProjection(k, **others),
    "fourier": lambda rng, k, **others: sqlkrp.RandomFourier(
        k + k % 2, kernel=one_of(rng, "rbf", "laplacian"), paired=one_of(rng, False, True), **others
    ),
    "sorf": lambda rng, k, **others: sqlkrp.SORF(k, **others),
    "spherical": lambda rng, k, **others: sqlkrp.SphericalRandomFeatures(
        k, **{**others, "scaling": "unit", "clip": None}
    ),
    "nystroem": lambda rng, k, **others: sqlkrp.Nystroem(
        k, kernel=one_of(rng, "rbf", "polynomial", "linear"), **others
    ),
    "kgrp": lambda rng, k, **others: sqlkrp.KGRP(
        k, n_landmarks=12, n_marked=5, kernel=one_of(rng, "rbf", "polynomial"), **others
    ),
    "pca": lambda rng, k, **others: sqlkrp.PCA(k, **others),
}  # fmt: skip
#: Maps of signs and products alone: sums of dyadic numbers are exact.
TERNARY = ("krp", "complex", "projection", "explicit", "prp")


def map_of(rng, *, inside=True):
    """A map that is not fitted, and its kind."""
    kind = one_of(rng, *MAPS, *(("ensemble", "chain") if inside else ()))
    k = one_of(rng, 1, 2, 5, 9)
    if kind == "ensemble":
        return kind, sqlkrp.Ensemble(map_of(rng, inside=False)[1], one_of(rng, 1, 3))
    if kind == "chain":
        first = MAPS[one_of(rng, *MAPS)](rng, k, **shared(rng))
        behind = {"scaling": one_of(rng, None, "standard")}
        second = MAPS[one_of(rng, *(name for name in MAPS if name != "spherical"))](
            rng, 4, **behind
        )
        return kind, sqlkrp.chain(first, second)
    return kind, MAPS[kind](rng, k, **shared(rng))


# --- models ---------------------------------------------------------------------------------------

#: Labels of every type; texts that would get out of quotes are names of columns, too.
LABELS = (("no", "yes"), (False, True), (3, 8), ("'; DROP TABLE canary; --", 'x"; --', "ok"),
          ("a\\", "a'b", "*/", "\U0001f600"), (0, 1, 2))  # fmt: skip
PREFIXES = ("", "", "said_", 'x"; DROP TABLE canary; --', "a'b ")


def model_of(rng, one, frame):
    """A model on a map that is fitted: weights are drawn, and what it says, and how."""
    sizes = np.abs(one.transform(frame).astype("float64")).max(axis=0)
    names = len(sizes)
    kind = one_of(rng, "regression", "margins", "probabilities")
    if kind == "regression":
        weights, intercept = _weights(rng, sizes, 1)
        bound = one_of(rng, None, None, (-0.5, 0.75))
        ridge = Ridge()
        ridge.coef_, ridge.intercept_, ridge.n_features_in_ = weights[0], intercept[0], names
        model = sqlkrp.model(ridge, one, bound=bound)
    else:
        labels = one_of(rng, *LABELS)
        weights, intercept = _weights(rng, sizes, 1 if len(labels) == 2 else len(labels))
        threshold = one_of(rng, None, 0.3) if len(labels) == 2 else None
        given = LogisticRegression() if kind == "probabilities" else LinearSVC()
        given.coef_, given.intercept_, given.n_features_in_ = weights, intercept, names
        given.classes_ = np.array(labels)
        says = ("label", "decision", *(("probability",) if kind == "probabilities" else ()))
        chosen = [name for name in says if rng.random() < 0.6] or ["label"]
        model = sqlkrp.model(given, one, threshold=threshold, outputs=chosen)
    model = model.prefixed(one_of(rng, *PREFIXES))
    asked = model.written_as(one_of(rng, "auto", "features", "polynomial"))
    try:
        asked.program  # noqa: B018 - it is made when it is asked for
    except ParameterError as none:
        if "is no polynomial" not in str(none):
            raise
        return model
    return asked


def _weights(rng, sizes, count):
    """Weights and intercepts of decisions near 0, whatever the features' unit is."""
    unit = np.where(sizes > 0, sizes, 1.0) * np.sqrt(len(sizes))
    return rng.normal(0, 1, (count, len(sizes))) / unit, rng.normal(0, 0.3, count)


# --- cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A fitted map or a model, and a table to give to it."""

    fitted: Any
    frame: pd.DataFrame
    exact: bool
    sparse: bool
    output: str
    table: str
    """The names of the table, and of what is made of it."""
    into: str
    way: str = "rows"
    """What else is asked of it: to verify a sample, a file, or what cannot be."""

    def __str__(self) -> str:
        sizes = f"{len(self.frame)} rows, {len(self.frame.columns)} columns"
        kinds = ", ".join(sorted({str(kind) for kind in self.frame.dtypes}))
        sparse = " sparse" if self.sparse else ""
        return (
            f"{self.fitted.title} over{sparse} {sizes} ({kinds}), output={self.output!r}, "
            f"{self.table!r} into {self.into!r}, {self.way}"
        )

    @cached_property
    def program(self) -> Any:
        return self.fitted.twin.coded()

    @cached_property
    def inputs(self) -> np.ndarray:
        return getattr(self.fitted, "_original", self.fitted).inputs(self.frame)

    @cached_property
    def expected(self) -> np.ndarray:
        return self.program.apply(self.inputs).astype("float64")

    @property
    def is_in_range(self) -> bool:
        """Whether nothing leaves the range of numbers, which each engine tells in its own way."""
        prepare = self.program.prepare
        with np.errstate(over="ignore"):
            there = np.isfinite(self.inputs.astype(prepare.dtype)).all(axis=1)
        blank = ~there & (prepare.nulls == "propagate")
        return bool(np.isfinite(self.expected[~blank]).all())


def case_of(seed: int, none: Collection[str] = ()) -> Case:
    """The case of a seed; what no map can be fitted to is drawn again."""
    rng = np.random.default_rng(seed)
    while True:
        palette = one_of(rng, *PALETTES)
        names = names_of(rng, one_of(rng, 1, 2, 3, 8, 20), none)
        kinds = {name: one_of(rng, *palette) for name in names}
        kind, one = map_of(rng)
        one.random_state = int(rng.integers(2**32))
        policies = {one.get_params()[name] for name in one.get_params() if name.endswith("nulls")}
        holes = "error" not in policies and rng.random() < 0.7
        frame = table(rng, kinds, one_of(rng, 0, 1, 2, 7, 30), holes=holes)
        sparse = rng.random() < 0.2
        output = one_of(rng, "columns", "columns", "array")
        seen = table(rng, kinds, 30, holes=False)
        # Drawn apart, so that the map and the numbers of a seed stay what they were.
        more = np.random.default_rng([seed, 1])
        if not sparse and more.random() < 0.25:
            seen, frame = with_texts(more, seen, frame, none)
        try:
            one.fit(seen, categories=None if sparse else "auto")
        except (ParameterError, ColumnError):
            continue
        prepare = one.program_.prepare
        if sparse and (prepare.shift != 0).any():
            continue  # absent entries would not stay 0
        exact = bool(kind in TERNARY and palette in PALETTES[:2] and is_exact(one))
        # What only ends a comment or is cut with it is found as a column; a table has one name.
        tables = [name for name in spelt_apart(HOSTILE) if name not in none]
        place, into = (str(name) for name in more.permutation(tables)[:2])
        case = Case(one, frame, exact, bool(sparse), output, place, into, one_of(more, *WAYS))
        if not case.is_in_range:
            continue
        if more.random() < 0.35:
            model = model_of(more, one, seen)
            case = replace(case, fitted=model, exact=False, output="columns")
        if case.is_in_range:
            return case


#: Half of all are computed as they are, and nothing else is asked.
WAYS = ("rows", "rows", "rows", "rows", "verified", "file", "missing", "there already", "no column")


def is_exact(one):
    """Whether sums that a map makes of dyadic numbers are dyadic, and so the same in any order."""
    prepare, given = one.program_.prepare, one.get_params()
    plain = (prepare.scale == 1).all() and (prepare.shift == 0).all() and not prepare.bounds
    return (
        plain
        and (8 * prepare.fill % 1 == 0).all()
        and prepare.dtype == "float64"
        and (8 * (prepare.constant or 0)) % 1 == 0
        and given["scaling"] != "unit"
        and given.get("pool") != "gaussian"
    )


def with_texts(rng, seen, frame, none):
    """Both tables with a column or two of texts; the second holds some that the first has not."""
    taken = {name.casefold() for name in seen}
    others = names_of(rng, len(HOSTILE), none)
    names = [name for name in others if name.casefold() not in taken][: one_of(rng, 1, 2)]
    for name in names:
        texts = [None, *rng.permutation(HOSTILE)[: one_of(rng, 2, 3, 9)].tolist()]
        rows = [rng.choice(np.array(texts[:-1], dtype=object), len(one)) for one in (seen, frame)]
        if len(frame):
            rows[1][rng.integers(len(frame))] = texts[-1]
        where = int(rng.integers(len(seen.columns) + 1))
        seen.insert(where, name, rows[0])
        frame.insert(where, name, rows[1])
    return seen, frame
