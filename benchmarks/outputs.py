"""Features as columns or as one array column: what it costs those who read them.

python -m benchmarks.outputs --data DIR [--out FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np

import sqlkrp
from benchmarks import dense
from benchmarks.measuring import PAPER, markdown, versions

RESULTS = Path(__file__).parent / "results" / "outputs.md"
ROWS, REPEATS = 60_000, 3
Reading = Callable[[duckdb.DuckDBPyConnection], Any]


def main() -> None:
    """Measure both, interleaved."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outputs", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "outputs.duckdb"
        with contextlib.closing(duckdb.connect(str(path))) as connection:
            dense.mnist(connection, given.data, ROWS)
            found = measured(connection, Path(name))
    rows = [
        [what, *(f"{median(found[what, output]):.2f}" for output in ("columns", "array"))]
        for what in dict.fromkeys(what for what, _ in found)
    ]
    lines = [
        "# Columns or one array\n",
        f"{versions('polars')} Seconds, medians of {REPEATS} interleaved runs; {ROWS:,} MNIST rows "
        "to 1,000 features of FLOAT in a DuckDB file.\n",
        *markdown(["what", "1,000 columns", "one array column"], rows),
    ]
    given.out.write_text("\n".join(lines))
    print("\n".join(lines))


def measured(
    connection: duckdb.DuckDBPyConnection, folder: Path
) -> dict[tuple[str, str], list[float]]:
    """Seconds of all that is done with features."""
    database = sqlkrp.connect(connection)
    krp = sqlkrp.KRP(2, 1000, dtype="float32", random_state=0, **PAPER)
    krp.fit(database.source("source"), exclude=["label"])
    found: dict[tuple[str, str], list[float]] = {}

    def timed(what: str, output: str, run: Callable[[], Any]) -> None:
        started = time.perf_counter()
        run()
        found.setdefault((what, output), []).append(time.perf_counter() - started)
        print(what, output, found[what, output][-1], flush=True)

    for _ in range(REPEATS):
        for output in ("columns", "array"):
            connection.execute("DROP TABLE IF EXISTS features")
            connection.execute("CHECKPOINT")

            def make(output: str = output) -> None:
                database.create(krp, "source", "features", output=output)

            timed("create the table", output, make)
            for what, read in {**READ[output], **of_files(folder)}.items():
                timed(what, output, lambda read=read: read(connection))  # type: ignore[misc]
    return found


def matrix_of_columns(connection: duckdb.DuckDBPyConnection) -> np.ndarray:
    """A matrix for scikit-learn, by Arrow."""
    table = connection.sql("FROM features").to_arrow_table()
    return np.column_stack([one.to_numpy() for one in table.columns])


def matrix_of_array(connection: duckdb.DuckDBPyConnection) -> np.ndarray:
    """The same of one array a row, which is a matrix in memory."""
    table = connection.sql("FROM features").to_arrow_table()
    values = table.column(0).combine_chunks().flatten().to_numpy()
    return np.ascontiguousarray(values.reshape(table.num_rows, -1))


def frame_as_matrix(connection: duckdb.DuckDBPyConnection) -> np.ndarray:
    """What people write who have one array column."""
    return np.stack(connection.sql("FROM features").df().iloc[:, 0])


READ: dict[str, dict[str, Reading]] = {
    "columns": {
        "a matrix by Arrow": matrix_of_columns,
        "a matrix by pandas": lambda c: c.sql("FROM features").df().to_numpy(),
        "a polars frame": lambda c: c.sql("FROM features").pl(),
        "one feature's mean": lambda c: c.sql("SELECT avg(krp_7) FROM features").fetchall(),
        "all features' means": lambda c: c.sql("SELECT avg(COLUMNS(*)) FROM features").fetchall(),
        "copy the table": lambda c: copied(c),
    },
    "array": {
        "a matrix by Arrow": matrix_of_array,
        "a matrix by pandas": frame_as_matrix,
        "a polars frame": lambda c: c.sql("FROM features").pl(),
        "one feature's mean": lambda c: c.sql("SELECT avg(krp[8]) FROM features").fetchall(),
        "all features' means": lambda c: c.sql(
            "SELECT avg(v) FROM (SELECT unnest(krp) AS v, generate_subscripts(krp, 1) AS i "
            "FROM features) GROUP BY i"
        ).fetchall(),
        "copy the table": lambda c: copied(c),
    },
}


def copied(connection: duckdb.DuckDBPyConnection) -> None:
    """Another table of the same rows."""
    connection.execute("CREATE OR REPLACE TABLE copied AS FROM features")
    connection.execute("DROP TABLE copied")


def of_files(folder: Path) -> dict[str, Reading]:
    """The same rows written to files."""
    return {
        f"COPY to .{kind}": lambda c, kind=kind: c.execute(  # type: ignore[misc]
            f"COPY features TO '{folder / f'features.{kind}'}' (FORMAT {kind})"
        )
        for kind in ("parquet", "csv")
    }


if __name__ == "__main__":
    main()
