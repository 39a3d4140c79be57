"""More rows than fit in memory: features in a DuckDB file, under a limit of memory.

python -m benchmarks.out_of_core make|run FOLDER ROWS COLUMNS FEATURES TYPE LIMIT
(prints JSON; python -m benchmarks runs it)
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import sqlkrp
from benchmarks.measuring import PAPER, in_its_own_process, markdown, peak_megabytes


class Shape(NamedTuple):
    """A table, and what is made of it."""

    rows: int
    columns: int
    features: int
    dtype: str = "float32"
    limit: str = "2GB"


#: The last is no test of a limit: what the main job takes of itself, in double precision.
SHAPES = (
    Shape(100_000, 100, 200),
    Shape(1_000_000, 100, 200),
    Shape(10_000_000, 100, 200),
    Shape(60_000, 784, 1_000, "float64", "none"),
)
QUICK = (Shape(10_000, 100, 200), Shape(100_000, 100, 200))


def section(quick: bool) -> list[str]:
    """Rows a second, small and large."""
    lines = []
    for shape in QUICK if quick else SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            of_shape = [folder, *(str(one) for one in shape)]
            in_its_own_process("benchmarks.out_of_core", "make", *of_shape)
            found = in_its_own_process("benchmarks.out_of_core", "run", *of_shape)
        speed = f"{shape.rows / found['seconds']:,.0f}"
        made = f"{shape.columns} → {shape.features:,} {shape.dtype}"
        seconds, peak = f"{found['seconds']:.1f}", f"{found['peak_mb']:,} MB"
        lines.append([f"{shape.rows:,}", made, shape.limit, seconds, speed, peak])
    head = ["rows", "columns → features", "limit", "seconds", "rows a second", "peak memory"]
    return ["## Out of core: a Hadamard pool of five terms\n", *markdown(head, lines)]


def main() -> None:
    """Make the table, or compute its features."""
    what, folder, *given = sys.argv[1:]
    rows, columns, features = (int(one) for one in given[:3])
    dtype, limit = given[3:]
    path, create = Path(folder) / "rows.duckdb", what == "make"
    bound = None if limit == "none" else limit
    with sqlkrp.connect(path, create=create, memory_limit=bound) as database:
        if what == "make":
            made = ", ".join(
                f"(hash(i, {j}) / 2.0 ** 64 - 0.5)::FLOAT AS c{j}" for j in range(columns)
            )
            database.connection.execute(
                f"CREATE TABLE source AS SELECT {made} FROM range({rows}) AS r(i)"
            )
            print("{}")
            return
        map_of = {"pool": "hadamard", "n_terms": 5, "random_state": 0, **PAPER}
        krp = sqlkrp.KRP(2, features, dtype=dtype, **map_of)
        krp.fit(database.source("source"))
        started = time.perf_counter()
        database.create(krp, "source", "features")
        seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "peak_mb": peak_megabytes()}))


if __name__ == "__main__":
    main()
