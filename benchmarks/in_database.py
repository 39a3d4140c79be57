"""60,000 x 784 MNIST training rows to 1,000 features inside DuckDB: seconds and peak memory.

Each case runs in a process of its own, so that its peak memory is its own.

    python -m benchmarks.in_database --data DIR
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import duckdb

import sqlkrp

CASES = {
    "hadamard, t=10": {"pool": "hadamard", "n_terms": 10},
    "achlioptas s=3, p=488, t=1": {"s": 3, "n_hyperplanes": 488, "n_terms": 1},
    "the default (s=3, p=1000)": {},
}


def main() -> None:
    """Print a line for each case and number type."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with mnist_train.parquet")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(run_case(given.data, *given.case)))
        return
    print(f"{'pool':<28} {'dtype':<8} {'seconds':>8} {'copy of the table':>18} {'peak memory':>12}")
    for case in CASES:
        for dtype in ("float32", "float64"):
            command = [sys.executable, "-m", "benchmarks.in_database", "--data", str(given.data)]
            out = subprocess.run(
                [*command, "--case", case, dtype], check=True, capture_output=True, text=True
            ).stdout
            found = json.loads(out)
            print(
                f"{case:<28} {dtype:<8} {found['seconds']:>8.1f} {found['copy']:>16.1f} s "
                f"{found['peak_mb']:>9,.0f} MB",
                flush=True,
            )


def run_case(data: Path, case: str, dtype: str) -> dict[str, float]:
    """Create the feature table once in a fresh database in memory."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE mnist AS SELECT * FROM read_parquet(?)", [str(data / "mnist_train.parquet")]
    )
    database = sqlkrp.connect(connection)
    krp = sqlkrp.KRP(2, 1000, dtype=dtype, random_state=0, **CASES[case])
    krp.fit(database.source("mnist"), exclude=["label"])
    started = time.perf_counter()
    database.create(krp, "mnist", "features", keep=["label"])
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    connection.execute("CREATE TABLE copied AS SELECT * FROM features")
    copy = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "copy": copy, "peak_mb": peak}


if __name__ == "__main__":
    main()
