"""Everything side by side in one run, interleaved: sqlkrp in DuckDB against the round trips.

    python -m benchmarks --data DIR [--quick]

Writes Markdown tables into ``benchmarks/results/``, with the versions, the machine's cores and the
commit. Without the data sets in DIR, made ones of the same shape are used. Needs the extra
``bench``.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.random_projection import SparseRandomProjection

import sqlkrp
from benchmarks import peers
from benchmarks.distortion import load, mean_distortion

RESULTS = Path(__file__).parent / "results"


@dataclass
class Way:
    """One way to the features, and how long it took each time."""

    name: str
    run: Callable[[duckdb.DuckDBPyConnection], None]
    distortion: float | None = None
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Of the repeats."""
        return statistics.median(self.seconds)


def main() -> None:
    """Run everything and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="one repeat, fewer rows")
    given = parser.parse_args()
    repeats, rows = (1, 6_000) if given.quick else (3, 60_000)
    report = [f"# Benchmarks\n\n{versions()}\n"]
    with tempfile.TemporaryDirectory() as folder:
        connection = duckdb.connect(str(Path(folder) / "bench.duckdb"))
        mnist(connection, given.data, rows)
        report += mnist_section(connection, given.data, repeats, rows)
        report += planning_section(connection)
        report += export_section(connection, Path(folder))
        connection.close()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / ("quick.md" if given.quick else "results.md")
    path.write_text("\n".join(report) + "\n")
    print(f"wrote {path}")


def versions() -> str:
    """What was measured, and on what."""
    packages = ("duckdb", "numpy", "scikit-learn", "pandas", "pyarrow")
    found = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return (
        f"sqlkrp at {commit or 'no commit'}, Python {platform.python_version()}, {found}; "
        f"{os.cpu_count()} cores. Medians of interleaved runs, seconds."
    )


def mnist(connection: duckdb.DuckDBPyConnection, data: Path, rows: int) -> None:
    """The training images, or noise of the same shape."""
    path = data / "mnist_train.parquet"
    if path.exists():
        connection.execute(
            f"CREATE TABLE source AS SELECT * FROM read_parquet(?) LIMIT {rows}", [str(path)]
        )
    else:
        columns = ", ".join(f"(random() * 255)::FLOAT AS p{i}" for i in range(784))
        connection.execute(
            f"CREATE TABLE source AS SELECT i % 10 AS label, {columns} FROM range({rows}) AS r(i)"
        )


def draw(connection: duckdb.DuckDBPyConnection, **parameters: object) -> sqlkrp.KRP:
    """A map of the source's columns, in single precision as its pixels are."""
    krp = sqlkrp.KRP(2, 1000, dtype="float32", random_state=0, **parameters)
    return krp.fit(sqlkrp.connect(connection).source("source"), exclude=["label"])


MAPS = {
    "hadamard, t=10": {"pool": "hadamard", "n_terms": 10},
    "achlioptas s=3, p=488, t=1": {"s": 3, "n_hyperplanes": 488, "n_terms": 1},
    "achlioptas s=1, p=488, t=1": {"s": 1, "n_hyperplanes": 488, "n_terms": 1},
    "achlioptas s=3, p=976, t=30": {"s": 3, "n_hyperplanes": 976, "n_terms": 30},
}


def mnist_section(
    connection: duckdb.DuckDBPyConnection, data: Path, repeats: int, rows: int
) -> list[str]:
    """1,000 features of degree 2 by every way."""
    ways = [Way("(a) PolynomialCountSketch(1000), fetched and written back", sketch)]
    for name, parameters in MAPS.items():
        krp = draw(connection, **parameters)
        ways.append(Way(f"sqlkrp: {name}", lambda c, krp=krp: peers.in_database(c, krp)))
        ways.append(Way(f"(b) by hand: {name}", lambda c, krp=krp: peers.streamed(c, krp)))
    linear = sqlkrp.KRP(
        1, 1000, s=28, n_terms=1, n_hyperplanes=1000, dtype="float32", random_state=0
    ).fit(sqlkrp.connect(connection).source("source"), exclude=["label"])
    ways.append(Way("sqlkrp: g=1, s=28", lambda c: peers.in_database(c, linear)))
    ways.append(Way("(d) SparseRandomProjection, g=1", sparse_projection))
    floor = Way("the floor: copying the finished table", peers.copy_table)
    measure([*ways, floor], connection, repeats)
    path = data / "mnist_test.parquet"
    if path.exists():
        add_distortions(ways, load(path))
    lines = [f"## MNIST shape: {rows:,} x 784 FLOAT to 1,000 features, in a DuckDB file\n"]
    lines += ["| way | seconds | spread | distortion | × the floor |", "|---|---|---|---|---|"]
    for way in [*ways, floor]:
        known = "" if way.distortion is None else f"{way.distortion:.3f}"
        spread = f"{min(way.seconds):.1f} – {max(way.seconds):.1f}"
        over = way.median / floor.median
        lines.append(f"| {way.name} | {way.median:.2f} | {spread} | {known} | {over:.2f} |")
    return [*lines, ""]


def sketch(connection: duckdb.DuckDBPyConnection) -> None:
    """The nearest that scikit-learn has."""
    peers.scikit_learn(connection, PolynomialCountSketch(degree=2, n_components=1000))


def sparse_projection(connection: duckdb.DuckDBPyConnection) -> None:
    """The same for degree 1."""
    peers.scikit_learn(connection, SparseRandomProjection(1000))


def measure(ways: list[Way], connection: duckdb.DuckDBPyConnection, repeats: int) -> None:
    """Interleaved; each from a connection without the tables that it makes."""
    for _ in range(repeats):
        for way in ways:
            connection.execute("DROP TABLE IF EXISTS copied")
            if way.run is not peers.copy_table:
                connection.execute("DROP TABLE IF EXISTS features")
            connection.execute("CHECKPOINT")
            started = time.perf_counter()
            way.run(connection)
            way.seconds.append(time.perf_counter() - started)
            print(f"{way.name:<60} {way.seconds[-1]:>7.2f}", file=sys.stderr, flush=True)


def add_distortions(ways: list[Way], pixels: np.ndarray) -> None:
    """The mean distortion of each map of degree 2, beside its time: 500 rows, 3 draws."""
    for name, parameters in MAPS.items():
        found = []
        for run in range(3):
            inputs = pixels[np.random.default_rng(run).choice(len(pixels), 500, replace=False)]
            krp = sqlkrp.KRP(2, 1000, random_state=run, **parameters).fit(inputs)
            features = krp.transform(inputs)
            found.append(mean_distortion(features @ features.T, (inputs @ inputs.T) ** 2))
        for way in ways:
            if way.name.endswith(name):
                way.distortion = float(np.mean(found))
    found = []
    for run in range(3):
        inputs = pixels[np.random.default_rng(run).choice(len(pixels), 500, replace=False)]
        features = PolynomialCountSketch(
            degree=2, n_components=1000, random_state=run
        ).fit_transform(inputs)
        found.append(mean_distortion(features @ features.T, (inputs @ inputs.T) ** 2))
    ways[0].distortion = float(np.mean(found))


def planning_section(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """From submitting the statement to having its plan, as a share of the whole run."""
    lines = ["## Planning\n", "| map | planning | whole | share |", "|---|---|---|---|"]
    for name, parameters in MAPS.items():
        krp = draw(connection, **parameters)
        connection.execute("DROP TABLE IF EXISTS features")
        started = time.perf_counter()
        text = krp.to_sql("source", keep=["label"])
        connection.execute(f"EXPLAIN CREATE TABLE features AS {text}").fetchall()
        planning = time.perf_counter() - started
        started = time.perf_counter()
        peers.in_database(connection, krp)
        whole = time.perf_counter() - started
        share = planning / whole
        lines.append(f"| {name} | {planning:.2f} | {whole:.2f} | {share:.0%} |")
    return [*lines, ""]


def export_section(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[str]:
    """The features as files, against pandas with the same features in memory."""
    krp = draw(connection, **MAPS["hadamard, t=10"])
    connection.execute("DROP TABLE IF EXISTS features")
    database = sqlkrp.connect(connection)
    lines = ["## Files\n", "| file | sqlkrp export | pandas, features in memory | ratio |"]
    lines.append("|---|---|---|---|")
    peers.in_database(connection, krp)
    frame = connection.execute("SELECT * FROM features LIMIT 6000").df()
    connection.execute("CREATE OR REPLACE TABLE few AS SELECT * FROM source LIMIT 6000")
    for suffix, write in (
        ("csv", lambda path: frame.to_csv(path, index=False)),
        ("parquet", lambda path: frame.to_parquet(path, index=False)),
    ):
        started = time.perf_counter()
        database.export(krp, "few", folder / f"ours.{suffix}", keep=["label"])
        ours = time.perf_counter() - started
        started = time.perf_counter()
        write(folder / f"theirs.{suffix}")
        theirs = time.perf_counter() - started
        lines.append(
            f"| .{suffix} (6,000 rows) | {ours:.2f} | {theirs:.2f} | {theirs / ours:.1f} |"
        )
    return [*lines, ""]


if __name__ == "__main__":
    main()
