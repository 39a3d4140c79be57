"""More rows than fit in memory: 64 columns to 256 features in a DuckDB file, under a 1 GB limit.

python -m benchmarks.out_of_core ROWS      (prints JSON; python -m benchmarks runs it)
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import sqlkrp
from benchmarks.measuring import PAPER, in_its_own_process, markdown, peak_megabytes

ROWS = (100_000, 2_000_000)


def section(quick: bool) -> list[str]:
    """Rows a second, small and large."""
    lines = []
    for rows in (10_000, 100_000) if quick else ROWS:
        with tempfile.TemporaryDirectory() as folder:
            in_its_own_process("benchmarks.out_of_core", str(rows), folder, "make")
            found = in_its_own_process("benchmarks.out_of_core", str(rows), folder, "run")
        speed = f"{rows / found['seconds']:,.0f}"
        lines.append([f"{rows:,}", f"{found['seconds']:.1f}", speed, f"{found['peak_mb']:,} MB"])
    title = "## Out of core: 64 columns to 256 features, Hadamard, under a limit of 1 GB\n"
    return [title, *markdown(["rows", "seconds", "rows a second", "peak memory"], lines)]


def main() -> None:
    """Make the table, or compute its features."""
    rows, folder, what = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    path, create = folder / "rows.duckdb", what == "make"
    with sqlkrp.connect(path, create=create, memory_limit="1GB") as database:
        if what == "make":
            columns = ", ".join(f"hash(i, {j}) / 2.0 ** 64 - 0.5 AS c{j}" for j in range(64))
            database.connection.execute(
                f"CREATE TABLE source AS SELECT {columns} FROM range({rows}) AS r(i)"
            )
            print("{}")
            return
        krp = sqlkrp.KRP(2, 256, pool="hadamard", n_terms=10, random_state=0, **PAPER)
        krp.fit(database.source("source"))
        started = time.perf_counter()
        database.create(krp, "source", "features")
        seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "peak_mb": peak_megabytes()}))


if __name__ == "__main__":
    main()
