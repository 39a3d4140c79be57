"""Forms of SQL in Spark, beside the NumPy twin on the executors.

    python -m benchmarks.spark [--rows N] [--out FILE]

Parquet in, nothing written. Cold is the first run of a statement in a session that has run another
one, warm the third. Needs the extra ``spark``, Java, and the tests' folder. Writes
``benchmarks/results/spark.md``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sqlkrp
from benchmarks.measuring import markdown, versions

RESULTS = Path(__file__).parent / "results"
SIZES = ((64, 256), (784, 1000))
RUNS = 3


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=RESULTS / "spark.md")
    given = parser.parse_args()
    rows = []
    for columns, features in SIZES:
        for way in ("wide", "array", "mapInArrow"):
            size, seconds = measured(way, given.rows, columns, features)
            cells = [f"{columns} → {features:,}", way, f"{size:,}" if size else ""]
            rows.append([*cells, f"{seconds[0]:.1f}", f"{seconds[-1]:.1f}"])
            print(*rows[-1], flush=True)
    page = [
        "# Spark\n",
        f"`python -m benchmarks.spark`; {versions('pyspark')}\n",
        f"{given.rows:,} rows from Parquet, KRP of degree 2 with its defaults, in `local[2]`; each "
        "way in a session of its own. Nothing is written.\n",
        *markdown(["columns → features", "way", "bytes of SQL", "cold, s", "warm, s"], rows),
    ]
    given.out.write_text("\n".join(page))
    print(f"wrote {given.out}")


def measured(way: str, rows: int, columns: int, features: int) -> tuple[int, list[float]]:
    """Bytes of SQL, and the seconds of each run."""
    from tests.spark_server import session

    names = [f"c{i}" for i in range(columns)]
    krp = sqlkrp.KRP(2, features, scaling=None, gamma=1.0, random_state=0).fit(names)
    values = np.random.default_rng(0).normal(size=(rows, columns))
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        path = f"{folder}/rows.parquet"
        table = pa.table(dict(zip(names, values.T, strict=True)))
        pq.write_table(table, path, row_group_size=max(rows // 4, 1))
        spark.range(10).selectExpr("SUM(id)").collect()
        size, run = job(way, spark, krp, path)
        return size, [timed(run) for _ in range(RUNS)]


def job(way: str, spark: Any, krp: Any, path: str) -> tuple[int, Callable[[], Any]]:
    """Bytes of SQL, and what runs all rows through a map."""
    if way == "mapInArrow":

        def twin(batches: Any) -> Any:
            for batch in batches:
                X = np.column_stack([column.to_numpy() for column in batch.columns])
                made = pa.array(list(krp.transform(X)))
                yield pa.RecordBatch.from_arrays([made], ["krp"])

        frame = spark.read.parquet(path).mapInArrow(twin, "krp ARRAY<DOUBLE>")
        return 0, lambda: frame.write.format("noop").mode("overwrite").save()
    text = krp.to_sql(("parquet", path), dialect="spark", form=way, output="array")
    return len(text), lambda: spark.sql(text).write.format("noop").mode("overwrite").save()


def timed(run: Callable[[], Any]) -> float:
    """Seconds of one run."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
