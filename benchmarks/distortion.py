"""Mean distortion of squared distances, by the protocol of Lopez-Sanchez et al. (2018).

500 random test rows, all pairs: the mean of | |f(x) - f(y)|^2 / |phi(x) - phi(y)|^2 - 1 |, where
the denominator comes from the kernel itself; mean and standard deviation of the runs. MNIST is
scaled as x / 128 - 1; pairs of equal rows are left out. First the paper's own tables; then the
defaults beside independent entries, on three data sets, and what both cost.

    python -m benchmarks.distortion --data DIR [--runs N] [--out FILE]

Writes ``benchmarks/results/distortion.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import sqlkrp
from benchmarks import measuring
from benchmarks.measuring import PAPER, Way, markdown, versions
from sqlkrp.stages import apply

RESULTS = Path(__file__).parent / "results"
# (label, published means for k = 200, 500, 1000 by degree)
PUBLISHED = {
    "gaussian p=122": {2: (0.177, 0.151, 0.135)},
    "s=1 p=122": {2: (0.152, 0.136, 0.159)},
    "s=3 p=122": {2: (0.177, 0.150, 0.159)},
    "gaussian p=976": {2: (0.092, 0.079, 0.059), 3: (0.119, 0.095, 0.092)},
    "s=1 p=976": {2: (0.094, 0.068, 0.059), 3: (0.109, 0.092, 0.080)},
    "s=3 p=976": {2: (0.098, 0.072, 0.060), 3: (0.114, 0.117, 0.088)},
}
MAPS: dict[str, dict[str, Any]] = {
    f"{name} p={p}": {**pool, "n_hyperplanes": p, "n_terms": 30, **PAPER}
    for p in (122, 976)
    for name, pool in {
        "gaussian": {"pool": "gaussian"},
        "s=1": {"pool": "achlioptas", "s": 1},
        "s=3": {"pool": "achlioptas", "s": 3},
    }.items()
} | {
    "hadamard t=10": {"pool": "hadamard", "n_terms": 10, **PAPER},
    "hadamard t=30": {"pool": "hadamard", "n_terms": 30, **PAPER},
}
INDEPENDENT = {"pool": "achlioptas", "s": 3, "n_hyperplanes": 1000, "n_terms": 10}
DEFAULTS: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "achlioptas, else the defaults": INDEPENDENT,
    "hadamard, the paper's kernel": PAPER,
    "achlioptas, the paper's kernel": {**INDEPENDENT, **PAPER},
}
COMPONENTS = (200, 500, 1000)
DEGREES = (2, 3, 4)
COLUMNS = [f"k = {k:,}" for k in COMPONENTS]


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.distortion",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=3, help="of each time that is measured")
    parser.add_argument("--out", type=Path, default=RESULTS / "distortion.md")
    given = parser.parse_args()
    pixels = load(given.data / "mnist_test.parquet")
    sets = {
        "MNIST": pixels,
        "w8a": columns(given.data / "w8a_test.parquet"),
        "spambase": columns(given.data / "spambase.parquet"),
    }
    report = [f"# Distortion\n\n`python -m benchmarks.distortion --data DIR`; {versions()}\n"]
    report.append(
        "Mean relative error of squared distances in the kernel's feature space, over all pairs of "
        f"{given.rows} rows: mean ± standard deviation of {given.runs} draws. The floor, "
        "2/√(πk), is what a random projection from that space itself reaches.\n"
    )
    report += published_section(pixels, given.runs, given.rows)
    report += defaults_section(sets, given.runs, given.rows)
    report += work_section(pixels, given.repeats)
    given.out.write_text("\n".join(report))
    print(f"wrote {given.out}")


def load(path: Path) -> np.ndarray:
    """The pixels of a Parquet file of MNIST, scaled."""
    return columns(path) / 128 - 1


def columns(path: Path) -> np.ndarray:
    """The columns of a Parquet file but its label."""
    frame = duckdb.execute("SELECT * EXCLUDE (label) FROM read_parquet(?)", [str(path)]).df()
    return frame.to_numpy(dtype="float64")


def published_section(pixels: np.ndarray, runs: int, rows: int) -> list[str]:
    """The paper's tables 2 and 3."""
    lines = []
    for degree in (2, 3):
        for label, parameters in MAPS.items():
            cells = []
            for i, k in enumerate(COMPONENTS):
                found = measure(pixels, degree, k, parameters, runs, rows)
                published = PUBLISHED.get(label, {}).get(degree)
                cells.append(cell(found) + (f" [{published[i]:.3f}]" if published else ""))
            lines.append(told([label, str(degree), *cells]))
        lines.append(["2/√(πk)", str(degree), *floors()])
    title = "## The paper's tables: MNIST, ⟨x, y⟩^g; in brackets the paper's figures\n"
    return [title, *markdown(["pool", "g", *COLUMNS], lines)]


def defaults_section(sets: dict[str, np.ndarray], runs: int, rows: int) -> list[str]:
    """The defaults beside independent entries, by their own kernel and by the paper's."""
    lines = []
    for name, inputs in sets.items():
        for degree in DEGREES:
            for label, parameters in DEFAULTS.items():
                found = [measure(inputs, degree, k, parameters, runs, rows) for k in COMPONENTS]
                lines.append(told([name, str(degree), label, *map(cell, found)]))
    lines.append(["all", "", "2/√(πk)", *floors()])
    title = "## The defaults, beside independent entries (s = 3, p = 1,000, t = 10)\n"
    text = (
        "The defaults' kernel is (gamma ⟨x, y⟩ + 1)^g of columns as they prepare them; the "
        "paper's is ⟨x, y⟩^g of columns as they are.\n"
    )
    return [title, text, *markdown(["data", "g", "map", *COLUMNS], lines)]


def work_section(pixels: np.ndarray, repeats: int) -> list[str]:
    """Operations a row, and seconds in DuckDB: all of MNIST's test rows, interleaved runs."""
    connection = stored(pixels)
    lines = []
    for degree in DEGREES:
        for k in COMPONENTS:
            maps = [
                sqlkrp.KRP(degree, k, random_state=0, **parameters).fit(
                    sqlkrp.connect(connection).source("source")
                )
                for parameters in ({}, INDEPENDENT)
            ]
            ways = [
                Way(f"g={degree}, k={k}, {krp.pool}", partial(in_database, krp=krp)) for krp in maps
            ]
            measuring.measure(ways, connection, repeats)
            seconds = [f"{way.median:.2f} ({way.spread})" for way in ways]
            work = [f"{operations(krp):,}" for krp in maps]
            lines.append([str(degree), f"{k:,}", *work, *seconds])
    head = ["g", "k", "operations a row: the defaults", "achlioptas"]
    head += ["seconds: the defaults", "achlioptas"]
    title = f"## What both cost: MNIST, {len(pixels):,} rows × 784 columns, in DuckDB\n"
    text = (
        "Additions and products a row, as planned; seconds from a table to a table of features.\n"
    )
    return [title, text, *markdown(head, lines)]


def stored(rows: np.ndarray) -> duckdb.DuckDBPyConnection:
    """A connection whose table ``source`` holds these, as FLOAT."""
    connection = duckdb.connect()
    names = [f"p{i}" for i in range(rows.shape[1])]
    arrived = dict(zip(names, rows.T.astype("float32"), strict=True))
    connection.register("arrived", pa.table(arrived))
    connection.execute("CREATE TABLE source AS SELECT * FROM arrived")
    return connection


def in_database(connection: duckdb.DuckDBPyConnection, krp: sqlkrp.FeatureMap) -> None:
    """What a user of sqlkrp runs, with the checks before it."""
    sqlkrp.connect(connection).create(krp, "source", "features")


def operations(krp: sqlkrp.FeatureMap) -> int:
    """Additions and products a row of the wide form, as planned."""
    plan = krp.preflight(form="wide").plan
    assert plan is not None
    return plan.additions + plan.products


def measure(
    inputs: np.ndarray,
    degree: int,
    k: int,
    parameters: dict[str, Any],
    runs: int,
    rows: int,
    kind: type[sqlkrp.KRP | sqlkrp.MixedKRP] = sqlkrp.KRP,
) -> tuple[float, float]:
    """Mean and standard deviation over runs of the mean distortion."""
    found = []
    for run in range(runs):
        sample = np.random.default_rng(run).choice(len(inputs), rows, replace=False)
        krp = kind(degree, k, random_state=run, **parameters).fit(inputs[sample])
        features = krp.transform(inputs[sample])
        found.append(mean_distortion(features @ features.T, kernel(krp, inputs[sample])))
    return float(np.mean(found)), float(np.std(found))


def kernel(krp: sqlkrp.KRP | sqlkrp.MixedKRP, inputs: np.ndarray) -> np.ndarray:
    """What a map estimates: (gamma <x, y> + coef0)^g of the columns as it prepares them."""
    prepare = replace(krp.program.prepare, constant=None)
    values = apply(prepare, inputs).astype("float64")
    taken = krp.taken_.get("gamma")
    gamma = krp.gamma if taken is None else taken.value
    exact: np.ndarray = (gamma * (values @ values.T) + krp.coef0) ** krp.degree
    return exact


def mean_distortion(estimated: np.ndarray, exact: np.ndarray) -> float:
    """Mean relative error of squared distances, from two Gram matrices."""
    first, second = np.triu_indices(len(exact), 1)
    lengths = np.diag(exact)[first] + np.diag(exact)[second]
    true = lengths - 2 * exact[first, second]
    # Equal rows differ by rounding.
    apart = true > 1e-12 * lengths
    diagonal = np.diag(estimated)
    found = diagonal[first] + diagonal[second] - 2 * estimated[first, second]
    return float(np.mean(np.abs(found[apart] / true[apart] - 1)))


def cell(found: tuple[float, float]) -> str:
    """Mean and standard deviation."""
    return f"{found[0]:.3f} ± {found[1]:.3f}"


def floors() -> list[str]:
    """The best that there is, for each number of components."""
    return [f"{2 / np.sqrt(np.pi * k):.3f}" for k in COMPONENTS]


def told(line: Iterable[str]) -> list[str]:
    """A line of a table, said as soon as it is known."""
    found = list(line)
    print(*found, sep="  ", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
