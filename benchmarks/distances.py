"""Tables 2, 3, 8 and 9 of Lopez-Sanchez et al. (2018): distortions of squared distances.

Each run has a seed of its own, which draws 500 test rows, the training rows that landmarks are
drawn from, and the map. Of the first run DuckDB computes the features; what it returns is held
against the NumPy twin, whose features of the same draws are the other runs'. Distances are computed
by NumPy from either.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import sqlkrp
from benchmarks.distortion import mean_distortion
from benchmarks.kept import Kept
from benchmarks.measuring import PAPER
from benchmarks.published import RUNS, Cell, Line

__all__ = ["OURS", "TERMS", "WAYS", "Sample", "explicit", "in_sql", "key", "measure", "rows_of"]

TERMS = 30
# Rows that landmarks are drawn from: a random part of the training rows is as good as all.
_TRAIN = 2_000
# Operations a row of statements that are not too slow to plan, some seconds.
_IN_SQL = 4_000_000
# Of larger maps so many features are computed in SQL, beside the twin's.
_SOME = 5

#: How the columns of each data set are read, and made where there is no file.
DATA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mnist": lambda pixels: pixels / 128 - 1,
    "w8a": lambda words: words,
}
_MADE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "mnist": lambda rng, rows: rng.integers(0, 256, (rows, 784)),
    "w8a": lambda rng, rows: rng.random((rows, 300)) < 0.0388,
}
_MADE_ROWS = {"train": 3_000, "test": 1_000}


def rows_of(data: Path, name: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a data set as the paper scales them, and their labels."""
    path = data / f"{name}_{part}.parquet"
    if path.exists():
        frame = duckdb.execute("SELECT * FROM read_parquet(?)", [str(path)]).df()
        labels = frame.pop("label").to_numpy(dtype=int)
        return DATA[name](frame.to_numpy(dtype="float64")), labels
    rng = np.random.default_rng(len(part))
    made = _MADE[name](rng, _MADE_ROWS[part]).astype("float64")
    return DATA[name](made), 2 * (made[:, 0] > made[:, 0].mean()).astype(int) - 1


#: Maps of ours that stand beside the published ones.
OURS = tuple(map(Line, ("KRP, Hadamard pool", "ComplexKRP", "TensorSketch")))

_POOLS: dict[str, dict[str, Any]] = {
    "gaussian": {"pool": "gaussian"},
    "s=1": {"pool": "achlioptas", "s": 1},
    "s=3": {"pool": "achlioptas", "s": 3},
}


@dataclass(frozen=True)
class Sample:
    """The rows of one run."""

    run: int
    test: np.ndarray
    train: np.ndarray


def samples(data: Path, name: str, rows: int, runs: Iterable[int]) -> Iterator[Sample]:
    """Of each run its rows."""
    test, train = (rows_of(data, name, part)[0] for part in ("test", "train"))
    for run in runs:
        rng = np.random.default_rng(run)
        yield Sample(
            run,
            test[rng.choice(len(test), min(rows, len(test)), replace=False)],
            train[rng.choice(len(train), min(_TRAIN, len(train)), replace=False)],
        )


# --- the maps -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """How a published line's features are made."""

    draw: Callable[[Line, int, int, Sample], sqlkrp.FeatureMap]
    """(line, degree, k, sample) to a fitted map."""
    by_prefix: bool = False
    """Whether the first of a draw's components, scaled anew, are a draw of fewer: components are
    drawn one after the other, from the same distribution, and share the same pool."""
    factor: Callable[[Line], float] = lambda line: 1.0
    """What features are multiplied by to be the paper's."""


def _terms(line: Line) -> int:
    return line.t or TERMS


def _krp(line: Line, degree: int, k: int, sample: Sample) -> sqlkrp.FeatureMap:
    pool = _POOLS[line.distribution]
    one = sqlkrp.KRP(degree, k, n_terms=_terms(line), n_hyperplanes=line.p,
                     random_state=sample.run, **pool, **PAPER)  # fmt: skip
    return one.fit(sample.test)


def _prp(line: Line, degree: int, k: int, sample: Sample) -> sqlkrp.FeatureMap:
    one = sqlkrp.PRP(k, n_matrices=_terms(line), s=1, scaling=None, random_state=sample.run)
    return one.fit(sample.test)


def _nystroem(line: Line, degree: int, k: int, sample: Sample) -> sqlkrp.FeatureMap:
    one = sqlkrp.Nystroem(k, kernel="polynomial", degree=degree, random_state=sample.run,
                          dtype="float64", **PAPER)  # fmt: skip
    return one.fit(sample.train)


def _kgrp(line: Line, degree: int, k: int, sample: Sample) -> sqlkrp.FeatureMap:
    one = sqlkrp.KGRP(k, n_landmarks=line.p, n_marked=_terms(line), kernel="polynomial",
                      degree=degree, random_state=sample.run, dtype="float64", **PAPER)  # fmt: skip
    return one.fit(sample.train)


def _as_published(line: Line) -> float:
    """The paper's (p - 1) / t, where ours is p (p - 1) / (t (p - t)), which does not shrink."""
    assert line.p is not None
    return float(np.sqrt((line.p - _terms(line)) / line.p))


def _hadamard(line: Line, degree: int, k: int, sample: Sample) -> sqlkrp.FeatureMap:
    one = sqlkrp.KRP(degree, k, n_terms=_terms(line), random_state=sample.run, **PAPER)
    return one.fit(sample.test)


def _complex(line: Line, degree: int, k: int, sample: Sample) -> sqlkrp.FeatureMap:
    one = sqlkrp.ComplexKRP(degree, k, n_terms=_terms(line), random_state=sample.run, **PAPER)
    return one.fit(sample.test)


def _sketch(line: Line, degree: int, k: int, sample: Sample) -> sqlkrp.FeatureMap:
    return sqlkrp.TensorSketch(degree, k, random_state=sample.run, **PAPER).fit(sample.test)


WAYS = {
    "KRP": Way(_krp, by_prefix=True),
    "P-RP": Way(_prp, by_prefix=True),
    "Nystroem": Way(_nystroem),
    "KG-RP": Way(_kgrp, by_prefix=True, factor=_as_published),
    "KRP, Hadamard pool": Way(_hadamard),
    "ComplexKRP": Way(_complex),
    "TensorSketch": Way(_sketch),
}

# What an entry of R is, each with the same probability.
_SIGNS = {"s=1": np.array([1, -1]), "s=3": np.array([1, -1, 0, 0, 0, 0]) * np.sqrt(3)}


def explicit(rows: np.ndarray, k: int, distribution: str, seed: int) -> np.ndarray:
    """The products of two columns, in both orders, projected: R phi(x) / sqrt(k).

    ``sqlkrp.ExplicitRP`` refuses so many products. A product's two orders have entries of their
    own in R, which are drawn as their sum; R is drawn a column of the table at a time.
    """
    rng = np.random.default_rng(seed)
    if distribution == "gaussian":
        # With Gaussian entries a component of all rows is Gaussian, and the kernel its covariance.
        return _root((rows @ rows.T) ** 2) @ rng.standard_normal((len(rows), k)) / np.sqrt(k)
    values = rows.astype("float32")
    found = np.zeros((len(rows), k), dtype="float32")
    for i in range(values.shape[1]):
        others = values[:, i:] * values[:, [i]]
        found += others @ _entries(rng, (others.shape[1], k), _SIGNS[distribution])
    return found.astype("float64") / np.sqrt(k)


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    found: np.ndarray = vectors * np.sqrt(np.maximum(values, 0))
    return found


def _entries(rng: np.random.Generator, shape: tuple[int, int], of: np.ndarray) -> np.ndarray:
    """Entries for a column's products with itself, in the first row, and with those behind it."""
    one = of.astype("float32")
    two = np.add.outer(one, one).ravel()
    entries: np.ndarray = two[rng.integers(0, len(two), shape, dtype="uint8")]
    entries[0] = one[rng.integers(0, len(one), shape[1])]
    return entries


# --- measuring ------------------------------------------------------------------------------------


def key(data: str, degree: int, line: Line, k: int | None, run: int, rows: int) -> dict[str, Any]:
    """What a number is of, as the file of kept ones has it."""
    return {
        "what": "distortion", "data": data, "degree": degree, "method": line.method,
        "distribution": line.distribution, "p": line.p, "k": k, "run": run, "rows": rows,
    }  # fmt: skip


def measure(
    cells: Iterable[Cell], data: Path, kept: Kept, *, rows: int, runs: int = RUNS, in_sql: int = 1
) -> None:
    """All cells that are not kept yet, and ours beside them."""
    wanted: dict[str, dict[tuple[int, Line], set[int]]] = {}
    for cell in cells:
        assert cell.k is not None
        of_data = wanted.setdefault(cell.data, {})
        for line in (cell.line, *OURS):
            of_data.setdefault((cell.degree, line), set()).add(cell.k)
    for name, lines in wanted.items():
        todo = [
            (sample, degree, line, sizes)
            for sample in samples(data, name, rows, range(runs))
            for (degree, line), sizes in lines.items()
        ]
        # What takes long comes last: a run that is stopped has most cells.
        todo.sort(key=lambda one: (one[2].method == "phi+RP", one[0].run < in_sql, one[0].run))
        for sample, degree, line, sizes in todo:
            missing = [
                k for k in sorted(sizes)
                if kept.find(key(name, degree, line, k, sample.run, rows)) is None
            ]  # fmt: skip
            if not missing:
                continue
            started = time.perf_counter()
            with_sql = sample.run < in_sql
            for k, found in _measured(line, degree, missing, sample, with_sql=with_sql):
                kept.add(key(name, degree, line, k, sample.run, rows), found)
            told = name, degree, line, sample.run, round(time.perf_counter() - started, 1)
            print(*told, file=sys.stderr, flush=True)


def _measured(
    line: Line, degree: int, sizes: list[int], sample: Sample, *, with_sql: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """By the number of features, the distortion of one run."""
    exact = (sample.test @ sample.test.T) ** degree
    largest = max(sizes)
    if line.method == "phi+RP":
        features = explicit(sample.test, largest, line.distribution, sample.run)
        yield from _prefixes(features, sizes, exact, {})
        return
    way = WAYS[line.method]
    for some in [sizes] if way.by_prefix else [[k] for k in sizes]:
        one = way.draw(line, degree, max(some), sample)
        features = one.transform(sample.test)
        told: dict[str, Any] = {}
        if with_sql and some[-1] == largest:
            features, told = _in_both(one, sample.test, features)
        yield from _prefixes(features * way.factor(line), some, exact, told)


def _prefixes(
    features: np.ndarray, sizes: Sequence[int], exact: np.ndarray, told: dict[str, Any]
) -> Iterator[tuple[int, dict[str, Any]]]:
    for k in sizes:
        first = features[:, :k] * np.sqrt(features.shape[1] / k)
        yield k, {"mean": mean_distortion(first @ first.T, exact), **told}


def _in_both(
    one: sqlkrp.FeatureMap, rows: np.ndarray, twin: np.ndarray
) -> tuple[np.ndarray, dict[str, Any]]:
    """Features as DuckDB computes them, and how far from them NumPy's are at most.

    Of maps whose statement would be too large some features are, and the others are NumPy's.
    """
    count = twin.shape[1]
    plan = one.preflight(form="wide").plan if _operations(one) <= 10 * _IN_SQL else None
    if plan is None or plan.additions + plan.products > _IN_SQL:
        count = _SOME
    found = in_sql(one.select(range(count)) if count < twin.shape[1] else one, rows)
    apart = float(np.abs(found - twin[:, :count]).max() / np.abs(twin[:, :count]).max())
    whole = np.hstack([found, twin[:, count:]])
    return whole, {"features in SQL": count, "apart": apart}


def _operations(one: sqlkrp.FeatureMap) -> int:
    return sum(one.program.cost)


def in_sql(one: sqlkrp.FeatureMap, rows: np.ndarray) -> np.ndarray:
    """The features of rows, in their order, as DuckDB computes them."""
    with duckdb.connect() as connection:
        # Maps that were fitted to arrays call their columns so.
        arrived = {f"x{i}": column for i, column in enumerate(rows.T)}
        arrived["place"] = np.arange(len(rows))
        connection.register("arrived", pa.table(arrived))
        connection.execute("CREATE TABLE sample AS FROM arrived")
        database = sqlkrp.connect(connection)
        relation = database.relation(one, "sample", form="wide", output="array", keep=["place"])
        found = relation.fetchnumpy()
        (features,) = (values for name, values in found.items() if name != "place")
        return np.stack(list(features[np.argsort(found["place"])]))


# --- trials ---------------------------------------------------------------------------------------

TRIED_SIZES = (200, 500, 1000)


@dataclass(frozen=True)
class Trial:
    """A line with something changed."""

    told: str
    data: str
    degree: int
    line: Line
    same_rows: bool = False
    """Whether all runs have the same test rows."""
    factor: Callable[[Line], float] | None = None
    most_runs: int = RUNS


#: To find where a published number comes from.
TRIALS = (
    Trial("Nyström, MNIST, g = 2: the same 500 rows in all runs", "mnist", 2, Line("Nystroem"),
          same_rows=True),
    Trial("Nyström, w8a, g = 2: the same 500 rows in all runs", "w8a", 2, Line("Nystroem"),
          same_rows=True),
    Trial("KRP s=1, p = 488, MNIST, g = 2: the same 500 rows in all runs", "mnist", 2,
          Line("KRP", "s=1", 488, TERMS), same_rows=True),
    Trial("P-RP s=1, w8a: 60 matrices, not 30 (3 runs)", "w8a", 2,
          Line("P-RP", "s=1", None, 2 * TERMS), most_runs=3),
    Trial("KG-RP, p = 223, w8a, g = 2: scaled as sqlkrp does, not as published", "w8a", 2,
          Line("KG-RP", "", 223, TERMS), factor=lambda line: 1.0),
)  # fmt: skip


def tried(trial: Trial, data: Path, kept: Kept, *, rows: int, runs: int) -> list[list[float]]:
    """By the number of features, the distortion of each run."""
    found: list[list[float]] = [[] for _ in TRIED_SIZES]
    first: Sample | None = None
    for sample in samples(data, trial.data, rows, range(min(runs, trial.most_runs))):
        first = first or sample
        one = replace(sample, test=first.test) if trial.same_rows else sample
        of = {"what": "tried", "told": trial.told, "run": sample.run, "rows": rows}
        values = kept.get(of, partial(_tried, trial, one))
        for place, value in enumerate(values.get("means", ())):
            found[place].append(value)
    return found


def _tried(trial: Trial, sample: Sample) -> dict[str, Any]:
    exact = (sample.test @ sample.test.T) ** trial.degree
    way, means = WAYS[trial.line.method], []
    factor = (trial.factor or way.factor)(trial.line)
    for some in [TRIED_SIZES] if way.by_prefix else [[k] for k in TRIED_SIZES]:
        features = way.draw(trial.line, trial.degree, max(some), sample).transform(sample.test)
        means += [found["mean"] for _, found in _prefixes(features * factor, some, exact, {})]
    return {"means": means}
