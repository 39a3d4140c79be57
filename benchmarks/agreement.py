"""Every map in both forms, in DuckDB and Postgres, against its NumPy twin.

    python -m benchmarks.agreement --data DIR [--out FILE]

On wine (real data) and on dyadic rows, whose sums are exact. Needs the extra ``test``, whose
Postgres it starts. Writes ``benchmarks/results/agreement.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sqlkrp
from benchmarks.measuring import PAPER, markdown, versions
from sqlkrp.errors import ColumnError

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


RESULTS = Path(__file__).parent / "results"
SAME = "bit for bit"


def main() -> None:
    """Compare and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agreement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with wine_red.parquet")
    parser.add_argument("--rows", type=int, help="of wine; default: all")
    parser.add_argument("--out", type=Path, default=RESULTS / "agreement.md")
    given = parser.parse_args()
    wine = pd.read_parquet(given.data / "wine_red.parquet").drop(columns="label")
    wine = ((wine - wine.mean()) / wine.std()).head(given.rows or len(wine))
    rng = np.random.default_rng(0)
    dyadic = pd.DataFrame(rng.integers(-64, 65, (200, 11)) / 16, columns=list("abcdefghijk"))
    with engines() as sessions:
        found = {name: compared(name, one, wine, dyadic, sessions) for name, one in MAPS.items()}
    given.out.write_text("\n".join(report(found, len(wine))))
    print(f"wrote {given.out}")


def compared(
    name: str, one: Any, wine: pd.DataFrame, dyadic: pd.DataFrame, sessions: list[Any]
) -> tuple[list[float], str]:
    """The error of each data set, engine and form; and of the projection."""
    errors = []
    for data in (wine, dyadic):
        one.fit(data)
        for session in sessions:
            errors += [error(one, data, session, form) for form in ("wide", "tables")]
    print(name, *map(told, errors), sep="  ", file=sys.stderr, flush=True)
    return errors, projection(one, dyadic, sessions)


def report(found: dict[str, tuple[list[float], str]], rows: int) -> list[str]:
    """The page."""
    places = [
        f"{data}, {engine}, {form}"
        for data in ("wine", "dyadic")
        for engine in ("DuckDB", "Postgres")
        for form in ("wide", "tables")
    ]
    worst = max(one for errors, _ in found.values() for one in errors)
    projections = [same for _, same in found.values() if same]
    return [
        "# Agreement with the NumPy twin\n",
        f"`python -m benchmarks.agreement --data DIR`; {versions('psycopg')}\n",
        f"{rows:,} rows of wine and 200 dyadic rows, 11 columns each. Each cell is the largest "
        "difference of all features and rows, as a share of the largest feature; 0 is bit for bit. "
        "The last column is of the bare projection, where that is + and − only.\n",
        f"The largest difference is {told(worst)} of the largest feature. Of "
        f"{len(projections)} ternary projections of dyadic rows {projections.count(SAME)} agree "
        f"{SAME}.\n",
        *markdown(
            ["map", *places, "⟨x, r⟩ on dyadic rows"],
            [[name, *map(told, errors), same] for name, (errors, same) in found.items()],
        ),
    ]


@contextlib.contextmanager
def engines() -> Iterator[list[Any]]:
    """A DuckDB and a Postgres database, as the tests use them."""
    from tests import engines as of_tests
    from tests.postgres_server import Server, running

    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running(Server().create()))
        opened = [of_tests.DuckDB(), of_tests.Postgres(server.url)]
        for one in opened:
            stack.callback(one.close)
        yield opened


def found(one: Any, data: pd.DataFrame, session: Any, form: str, stage: str) -> np.ndarray:
    """The rows' features as the engine computes them."""
    session.store(data.assign(id=np.arange(len(data))))
    numbers: np.ndarray = session.features(one, keep=["id"], form=form, stage=stage)[:, 1:]
    return numbers


def error(one: Any, data: pd.DataFrame, session: Any, form: str) -> float:
    """The largest difference, as a share of the largest feature."""
    expected = one.transform(data)
    difference = np.abs(found(one, data, session, form, "features") - expected)
    return float(difference.max() / np.abs(expected).max())


def told(share: float) -> str:
    """One digit of it."""
    return f"{share:.0e}" if share else "0"


def projection(one: Any, data: pd.DataFrame, sessions: list[Any]) -> str:
    """Whether a projection by + and - alone comes out bit for bit, everywhere."""
    try:
        bare = one.program.projection()
    except ColumnError:
        return ""
    alone = bare.apply(np.eye(data.shape[1]))
    if not np.array_equal(alone, np.rint(alone)):
        return ""
    expected = bare.apply(data[list(one.feature_names_in_)].to_numpy())
    same = all(
        np.array_equal(found(one, data, session, form, "projection"), expected)
        for session in sessions
        for form in ("wide", "tables")
    )
    return SAME if same else "differs"


if __name__ == "__main__":
    main()
