"""MNIST's shape: sqlkrp in DuckDB against the round trips, planning, files, and monomials."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.random_projection import SparseRandomProjection

import sqlkrp
from benchmarks import peers
from benchmarks.distortion import load, mean_distortion
from benchmarks.measuring import PAPER, Way, markdown, measure, named
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import write

_IID = {"pool": "achlioptas"}
MAPS: dict[str, dict[str, Any]] = {
    "hadamard, t=5": {"pool": "hadamard", "n_terms": 5},  # what the default is for degree 2
    "hadamard, t=10": {"pool": "hadamard", "n_terms": 10},
    "achlioptas s=3, p=488, t=1": {**_IID, "s": 3, "n_hyperplanes": 488, "n_terms": 1},
    "achlioptas s=1, p=488, t=1": {**_IID, "s": 1, "n_hyperplanes": 488, "n_terms": 1},
    "achlioptas s=3, p=976, t=30": {**_IID, "s": 3, "n_hyperplanes": 976, "n_terms": 30},
}
SKETCH = "(a) PolynomialCountSketch, fetched and written back"
FLOOR = "the floor: copying the finished table"


def mnist(connection: duckdb.DuckDBPyConnection, data: Path, rows: int) -> None:
    """The training images as often as they are needed, or noise of the same shape."""
    path = data / "mnist_train.parquet"
    if path.exists():
        connection.execute(
            "CREATE TABLE source AS SELECT images.* FROM read_parquet(?) AS images, range(?) AS "
            f"again LIMIT {rows}",
            [str(path), -(-rows // 60_000)],
        )
    else:
        columns = ", ".join(f"(random() * 255)::UTINYINT AS p{i}" for i in range(784))
        connection.execute(
            f"CREATE TABLE source AS SELECT i % 10 AS label, {columns} FROM range({rows}) AS r(i)"
        )


def draw(
    connection: duckdb.DuckDBPyConnection, degree: int = 2, k: int = 1000, **parameters: Any
) -> sqlkrp.KRP:
    """A map of the source's columns, in single precision as its pixels have a few bits."""
    krp = sqlkrp.KRP(degree, k, dtype="float32", random_state=0, **PAPER, **parameters)
    return krp.fit(sqlkrp.connect(connection).source("source"), exclude=["label"])


def by_sqlkrp(krp: sqlkrp.KRP, how: str = "sql") -> Callable[[duckdb.DuckDBPyConnection], None]:
    """What a user of sqlkrp runs."""
    return lambda connection: peers.in_database(connection, krp, how)


def by_hand(krp: sqlkrp.KRP) -> Callable[[duckdb.DuckDBPyConnection], None]:
    """Peer (b): what ``benchmarks.peers`` does by hand."""
    return partial(peers.streamed, krp=krp, compute=peers.by_hand(krp))


def by_sketch(connection: duckdb.DuckDBPyConnection) -> None:
    """Peer (a): the nearest that scikit-learn has."""
    peers.scikit_learn(connection, PolynomialCountSketch(degree=2, n_components=1000))


def by_sparse_projection(connection: duckdb.DuckDBPyConnection) -> None:
    """Peer (d): what scikit-learn has for degree 1."""
    peers.scikit_learn(connection, SparseRandomProjection(1000))


def ways_section(
    connection: duckdb.DuckDBPyConnection, _: Path, data: Path, repeats: int, rows: int
) -> list[str]:
    """1,000 features of degree 2 by every way."""
    ways = [Way(SKETCH, by_sketch)]
    for name, parameters in MAPS.items():
        krp = draw(connection, **parameters)
        ways.append(Way(f"sqlkrp: {name}", by_sqlkrp(krp)))
        ways.append(Way(f"sqlkrp, how='arrow': {name}", by_sqlkrp(krp, "arrow")))
        ways.append(Way(f"(b) by hand: {name}", by_hand(krp)))
    linear = draw(connection, 1, **_IID, s=28, n_terms=1, n_hyperplanes=1000)
    ways.append(Way("sqlkrp: g=1, s=28", by_sqlkrp(linear)))
    ways.append(Way("(d) SparseRandomProjection, g=1", by_sparse_projection))
    floor = Way(FLOOR, peers.copy_table, needs_features=True)
    measure([*ways, floor], connection, repeats)
    if (path := data / "mnist_test.parquet").exists():
        add_distortions(ways, load(path))
    what = named(data, "mnist_train.parquet", "MNIST")
    title = f"## {what}: {rows:,} rows × 784 columns to 1,000 features, in a DuckDB file\n"
    lines = [
        [
            way.name,
            f"{way.median:.2f}",
            way.spread,
            "" if way.distortion is None else f"{way.distortion:.3f}",
            f"{way.median / floor.median:.2f}",
        ]
        for way in [*ways, floor]
    ]
    return [title, *markdown(["way", "seconds", "spread", "distortion", "× the floor"], lines)]


def add_distortions(ways: list[Way], pixels: np.ndarray) -> None:
    """The mean distortion of each map of degree 2, beside its time: 500 rows, 3 draws."""
    maps = {name: sqlkrp.KRP(2, 1000, **PAPER, **parameters) for name, parameters in MAPS.items()}
    for name, one in {**maps, SKETCH: PolynomialCountSketch(degree=2, n_components=1000)}.items():
        found = []
        for run in range(3):
            inputs = pixels[np.random.default_rng(run).choice(len(pixels), 500, replace=False)]
            features = one.set_params(random_state=run).fit_transform(inputs)
            found.append(mean_distortion(features @ features.T, (inputs @ inputs.T) ** 2))
        for way in ways:
            if way.name.endswith(name):
                way.distortion = float(np.mean(found))


def planning_section(
    connection: duckdb.DuckDBPyConnection, _: Path, __: Path, repeats: int, rows: int
) -> list[str]:
    """From submitting the statement to its first row, as a share of the whole run."""
    connection.execute("CREATE TEMP TABLE no_rows AS SELECT * FROM source LIMIT 0")
    rows = []
    for name, parameters in MAPS.items():
        krp = draw(connection, **parameters)
        query = krp.query('"source"', Options(keep=("label",)))
        text = write(replace(query, guard=False), dialect("duckdb")).text
        text = text.replace('FROM "source"', "FROM no_rows")

        def plan(connection: duckdb.DuckDBPyConnection, text: str = text) -> None:
            connection.execute(f"CREATE TABLE features AS {text}")

        planning, whole = Way(f"planning: {name}", plan), Way(f"whole: {name}", by_sqlkrp(krp))
        measure([planning, whole], connection, repeats)
        share = planning.median / whole.median
        rows.append([name, f"{planning.median:.2f}", f"{whole.median:.2f}", f"{share:.0%}"])
    title = "## Planning: statements of the ways above, on no rows\n"
    return [title, *markdown(["map", "seconds", "the whole run", "share"], rows)]


def files_section(
    connection: duckdb.DuckDBPyConnection, folder: Path, _: Path, repeats: int, rows: int
) -> list[str]:
    """The features as files, against pandas with the same features in memory."""
    krp = draw(connection, **MAPS["hadamard, t=5"])
    connection.execute("DROP TABLE IF EXISTS features")
    peers.in_database(connection, krp)
    frame = connection.execute(f"SELECT * FROM features LIMIT {rows}").df()
    connection.execute(f"CREATE OR REPLACE TABLE few AS SELECT * FROM source LIMIT {rows}")
    database, lines = sqlkrp.connect(connection), []
    for suffix, write_frame in (
        ("csv", frame.to_csv),
        ("parquet", frame.to_parquet),
    ):
        ours, theirs = folder / f"ours.{suffix}", folder / f"theirs.{suffix}"

        def export(_: Any, path: Path = ours) -> None:
            database.export(krp, "few", path, keep=["label"], replace=True)

        def by_pandas(_: Any, path: Path = theirs, write_frame: Any = write_frame) -> None:
            write_frame(path, index=False)

        ways = Way(f"sqlkrp export: .{suffix}", export), Way(f"pandas: .{suffix}", by_pandas)
        for _ in range(repeats):
            for way in ways:
                started = time.perf_counter()
                way.run(connection)
                way.seconds.append(time.perf_counter() - started)
                print(f"{way.name:<70} {way.seconds[-1]:>7.2f}", file=sys.stderr, flush=True)
        seconds = [f"{way.median:.2f}" for way in ways]
        lines.append([f".{suffix}", *seconds, f"{ways[1].median / ways[0].median:.1f}"])
    title = f"## Files: {rows:,} rows of them; sqlkrp computes the features as well\n"
    head = ["file", "sqlkrp export", "pandas, features in memory", "times as fast"]
    return [title, *markdown(head, lines)]


def monomials_section(folder: Path, data: Path, repeats: int, quick: bool) -> list[str]:
    """Peer (c): every product of two columns, where there are few columns."""
    connection = duckdb.connect(str(folder / "few_columns.duckdb"))
    rows = 5_000 if quick else 60_000
    path = data / "spambase.parquet"
    if path.exists():
        names = [
            row[0]
            for row in connection.execute("DESCRIBE FROM read_parquet(?)", [str(path)]).fetchall()
        ]
        *inputs, label = names
        columns = ", ".join(f'"{name}"::FLOAT AS "{name}"' for name in inputs)
        connection.execute(
            f'CREATE TABLE source AS SELECT "{label}" AS label, {columns} FROM read_parquet(?), '
            f"range(20) AS again LIMIT {rows}",
            [str(path)],
        )
    else:
        columns = ", ".join(f"random()::FLOAT AS c{i}" for i in range(57))
        connection.execute(
            f"CREATE TABLE source AS SELECT 1 AS label, {columns} FROM range({rows})"
        )
    ways = [Way("(c) all 1,653 monomials in plain SQL (exact)", peers.monomials)]
    for k in (200, 500, 1653):
        krp = draw(connection, k=k, **MAPS["hadamard, t=10"])
        ways.append(Way(f"sqlkrp: hadamard, t=10, k={k:,}", by_sqlkrp(krp)))
    measure(ways, connection, repeats)
    connection.close()
    what = named(data, "spambase.parquet", "spambase")
    title = f"## Few columns: {rows:,} rows × 57 columns ({what}, repeated), degree 2\n"
    lines = [[way.name, f"{way.median:.2f}", way.spread] for way in ways]
    return [title, *markdown(["way", "seconds", "spread"], lines)]
