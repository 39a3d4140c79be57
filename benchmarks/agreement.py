"""Every map in every form, in each engine that is executed, against its NumPy twin.

    python -m benchmarks.agreement --data DIR [--engines a,b] [--forms a,b] [--rows N] [--out FILE]

On wine (real data), on dyadic rows, whose sums are exact, and on dyadic rows of which some miss
values, by each policy for these, one of them in single precision. Needs the extras ``test`` and
``spark``, Java and MariaDB, as the slow tests do; SQLKRP_TEST_SPARK names another master, or
``connect``. Writes ``benchmarks/results/agreement.md``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

import sqlkrp
from benchmarks.measuring import PAPER, markdown, versions
from sqlkrp.errors import ColumnError, LimitError
from sqlkrp.sql.forms import FORMS

# Columns as they are, and no constant that is rounded: sums of dyadic rows are exact.
_AS_IT_IS: dict[str, Any] = {"scaling": None, "random_state": 0}
_KERNEL: dict[str, Any] = {**PAPER, "random_state": 0}
_RBF: dict[str, Any] = {**_AS_IT_IS, "gamma": 0.1}
MAPS: dict[str, sqlkrp.FeatureMap] = {
    "KRP": sqlkrp.KRP(2, 50, pool="achlioptas", n_terms=10, **_KERNEL),
    "KRP, hadamard": sqlkrp.KRP(3, 50, pool="hadamard", n_terms=10, **_KERNEL),
    "ComplexKRP": sqlkrp.ComplexKRP(4, 50, n_terms=10, **_KERNEL),
    "RandomProjection": sqlkrp.RandomProjection(50, pool="achlioptas", **_AS_IT_IS),
    "ExplicitRP": sqlkrp.ExplicitRP(2, 50, **_KERNEL),
    "Monomials": sqlkrp.Monomials(2, gamma=1.0, **_AS_IT_IS),
    "Thresholds": sqlkrp.Thresholds(8),
    "PRP": sqlkrp.PRP(50, **_AS_IT_IS),
    "RandomMaclaurin": sqlkrp.RandomMaclaurin(50, gamma=1.0, **_AS_IT_IS),
    "TensorSketch": sqlkrp.TensorSketch(2, 50, **_KERNEL),
    "TensorSketch, bucket": sqlkrp.TensorSketch(2, 50, domain="bucket", **_KERNEL),
    "RankOneProjection": sqlkrp.RankOneProjection(50, **_AS_IT_IS),
    "RankOneProjection, binary": sqlkrp.RankOneProjection(50, binary=True, **_AS_IT_IS),
    "RandomFourier, rbf": sqlkrp.RandomFourier(50, **_RBF),
    "RandomFourier, laplacian": sqlkrp.RandomFourier(50, kernel="laplacian", **_RBF),
    "SORF": sqlkrp.SORF(50, **_RBF),
    "SphericalRandomFeatures": sqlkrp.SphericalRandomFeatures(50, random_state=0),
    "Nystroem": sqlkrp.Nystroem(50, **_RBF),
    "KGRP": sqlkrp.KGRP(50, n_landmarks=60, **_KERNEL),
    "PCA": sqlkrp.PCA(8, scaling=None),
    "Ensemble": sqlkrp.Ensemble(
        sqlkrp.RandomFourier(20, gamma=0.1, scaling=None), 13, random_state=0
    ),
    "chain": sqlkrp.chain(
        sqlkrp.PCA(8, scaling=None),
        sqlkrp.KRP(3, 50, pool="achlioptas", n_terms=10, **PAPER),
        random_state=0,
    ),
}


#: What becomes of missing values, and the dtype that this is tried with.
POLICIES = {"zero": "float32", "mean": "float64", "propagate": "float64"}
TITLES = {name: f"dyadic, with missing values: {name}, {dtype}" for name, dtype in POLICIES.items()}
RESULTS = Path(__file__).parent / "results"
TESTS = Path(__file__).parents[1] / "tests"
# GoogleSQL ("bigquery") takes a minute or more for a map of this size, in the tables form.
ENGINES = "duckdb,postgres,sqlite,datafusion,clickhouse,mysql,spark"
SAME = "bit for bit"


def main() -> None:
    """Compare and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agreement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with wine_red.parquet")
    parser.add_argument(
        "--rows",
        type=int,
        help="default: all of wine, and 200",
    )
    parser.add_argument("--engines", default=ENGINES, help="names, with commas")
    parser.add_argument("--forms", default=",".join(FORMS), help="names, with commas")
    parser.add_argument("--out", type=Path, default=RESULTS / "agreement.md")
    given = parser.parse_args()
    sys.path.append(str(TESTS))  # whose modules import each other by their names
    wine = pd.read_parquet(given.data / "wine_red.parquet").drop(columns="label")
    wine = ((wine - wine.mean()) / wine.std()).head(given.rows or len(wine))
    rng = np.random.default_rng(0)
    few = min(200, given.rows or 200)
    dyadic = pd.DataFrame(rng.integers(-64, 65, (few, 11)) / 16, columns=list("abcdefghijk"))
    errors: Errors = {}
    same: dict[str, list[bool]] = {}
    forms = given.forms.split(",")
    for engine in given.engines.split(","):
        compare_engine(engine, {"wine": wine, "dyadic": dyadic}, forms, errors, same)
    rows = f"{len(wine):,} rows of wine and {few} dyadic rows"
    given.out.write_text("\n".join(report(errors, same, given.engines.split(","), rows)))
    print(f"wrote {given.out}")


#: Of a data set, a map and an engine: the error of each form that the engine has.
Errors = dict[tuple[str, str, str], list[float]]


def compare_engine(
    engine: str,
    data: dict[str, pd.DataFrame],
    wanted: list[str],
    errors: Errors,
    same: dict[str, list[bool]],
) -> None:
    """The errors of one engine, and whether projections by + and - alone come out bit for bit."""
    from campaign import opened
    from support import forms_of

    with opened(engine) as session:
        for name, one in MAPS.items():
            for kind, rows in data.items():
                one.fit(rows)
                forms = [form for form in forms_of(engine) if form in wanted]
                found = [error(one, rows, session, form) for form in forms]
                errors[kind, name, engine] = found
                print(engine, kind, name, *map(told, found), file=sys.stderr, flush=True)
            for policy in POLICIES:
                found = with_holes(one, data["dyadic"], policy, session, forms)
                errors[policy, name, engine] = found
                print(engine, policy, name, *map(told, found), file=sys.stderr, flush=True)
            one.fit(data["dyadic"])
            same.setdefault(name, []).extend(projection(one, data["dyadic"], session, forms))


def report(errors: Errors, same: dict[str, list[bool]], engines: list[str], rows: str) -> list[str]:
    """The page."""
    double = [found for (kind, *_), found in errors.items() if POLICIES.get(kind) != "float32"]
    worst = max(one for found in double for one in found if not np.isnan(one))
    ternary = {name: all(found) for name, found in same.items() if found}
    page = [
        "# Agreement with the NumPy twin\n",
        f"`python -m benchmarks.agreement --data DIR`; {versions('psycopg', 'pyspark')}\n",
        f"{rows}, 11 columns each. Each cell has the largest "
        "difference of all features and rows, as a share of the largest feature, in the forms "
        "wide, array (where the engine has loops) and tables; 0 is bit for bit, and a dash is a "
        "statement that the engine has no room for. MySQL's text is run by MariaDB.\n",
        f"The largest difference is {told(worst)} of the largest feature in double precision. Of "
        f"{len(ternary)} ternary projections ⟨x, r⟩ of dyadic rows {sum(ternary.values())} agree "
        f"{SAME}, in every engine and form.\n",
    ]
    for kind in ("wine", "dyadic", *POLICIES):
        cells = [
            [name, *(" / ".join(map(told, errors[kind, name, engine])) for engine in engines)]
            for name in MAPS
        ]
        page += [f"## {TITLES.get(kind, kind)}\n", *markdown(["map", *engines], cells), ""]
    return page


def with_holes(
    one: Any, rows: pd.DataFrame, policy: str, session: Any, forms: list[str]
) -> list[float]:
    """The errors of a map with this policy, on rows of which every third misses a value."""
    parameters = one.get_params()
    dtypes = {name: POLICIES[policy] for name in parameters if name.endswith("dtype")}
    nulls = next(name for name in parameters if name.endswith("nulls"))  # the first map's
    other = clone(one).set_params(**dtypes, **{nulls: policy}).fit(rows)
    holes = rows.copy()
    holes.iloc[::3, 2] = np.nan
    return [error(other, holes, session, form) for form in forms]


def found(one: Any, data: pd.DataFrame, session: Any, form: str, stage: str) -> np.ndarray:
    """The rows' features as the engine computes them."""
    session.store(data.assign(id=np.arange(len(data))))
    numbers: np.ndarray = session.features(one, keep=["id"], form=form, stage=stage)[:, 1:]
    return numbers


def error(one: Any, data: pd.DataFrame, session: Any, form: str) -> float:
    """The largest difference, as a share of the largest feature; NaN where there is no room."""
    expected = one.transform(data)
    try:
        there = found(one, data, session, form, "features")
    except LimitError:
        return np.nan
    if not np.array_equal(np.isnan(there), np.isnan(expected)):
        return np.inf
    return float(np.nanmax(np.abs(there - expected)) / np.nanmax(np.abs(expected)))


def told(share: float) -> str:
    """One digit of it."""
    if np.isnan(share):
        return "-"
    return f"{share:.0e}" if share else "0"


def projection(one: Any, data: pd.DataFrame, session: Any, forms: list[str]) -> list[bool]:
    """Of a projection by + and - alone: whether each form comes out bit for bit."""
    try:
        bare = one.program.projection()
    except ColumnError:
        return []
    alone = bare.apply(np.eye(data.shape[1]))
    if not np.array_equal(alone, np.rint(alone)):
        return []
    expected = bare.apply(data[list(one.feature_names_in_)].to_numpy())
    return [
        np.array_equal(found(one, data, session, form, "projection"), expected)
        for form in forms
        if not np.isnan(error(one, data, session, form))
    ]


if __name__ == "__main__":
    main()
