"""Forms of SQL in Spark, beside NumPy on the executors and scikit-learn in a pandas UDF.

    python -m benchmarks.spark [--rounds N] [--out FILE]

Parquet in, nothing written. Each measurement is a process and a session of its own, and in a round
every way has its turn (those that are slower by far in the first only); what is told is the best of
the rounds. Cold is a statement's first run, warm the third. Planning (until there is a physical
plan) and compiling (of Java, by Spark's own count) are parts of the cold run. Needs the extras
``spark`` and ``bench``, Java, and the tests' folder. Writes ``benchmarks/results/spark.md``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sqlkrp
from benchmarks.measuring import markdown, versions

RESULTS = Path(__file__).parent / "results"
RUNS = 3
LOCAL = "local[2]"
#: Columns, features, rows, ways, and in how many rounds.
SIZES = (
    (64, 256, 10_000, ("wide", "array", "tables", "arrow", "sklearn"), 2),
    (64, 256, 100_000, ("wide", "array", "arrow", "sklearn"), 2),
    (64, 256, 1_000_000, ("wide", "array", "arrow", "sklearn"), 1),
    (784, 1000, 10_000, ("wide", "array", "arrow", "sklearn"), 2),
    (784, 1000, 100_000, ("array", "arrow", "sklearn"), 1),
)
SLOW = ("wide", "tables")  # by so much that one round tells it
NAMES = {"arrow": "how='arrow' (mapInArrow)", "sklearn": "PolynomialCountSketch, pandas UDF"}
SCALING_ROWS, BILLION = 500_000, 10**9


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, help="at most so many, for a first look")
    parser.add_argument("--rows", type=int, help="at most so many, for a first look")
    parser.add_argument("--out", type=Path, default=RESULTS / "spark.md")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(**given.one)))
        return
    with tempfile.TemporaryDirectory() as folder:
        page = report(Path(folder), given.rounds or 9, given.rows or 10**9)
    given.out.write_text("\n".join(page))
    print(f"wrote {given.out}")


def report(folder: Path, rounds: int, most: int) -> list[str]:
    """The page."""
    rows, rate = [], 0.0
    for columns, features, count, ways, in_rounds in SIZES:
        if count > most:
            continue
        size = {"columns": columns, "features": features, "rows": count}
        best = dict(best_of(ways, min(in_rounds, rounds), size, folder))
        rows += list(cells(size, best))
        if columns == SIZES[0][0]:
            rate = count / best["array"]["warm"] / 2
    numbers = {"columns": 64, "features": 256, "rows": min(SCALING_ROWS, most)}
    masters = [f"local-cluster[{n},1,2048]" for n in (1, 2)]
    one, two = (best_of_one("array", 2, numbers, folder, master) for master in masters)
    ratio = one["warm"] / two["warm"]
    days = BILLION / rate / 3600
    head = ["columns → features", "rows", "way", "bytes of SQL", "cold, s", "warm, s",
            "planning, s", "compiling, s", "cold / arrow", "warm / arrow"]  # fmt: skip
    return [
        "# Spark\n",
        f"`python -m benchmarks.spark`; {versions('pyspark')}\n",
        "KRP of degree 2 with its defaults, features as one array, in `local[2]`; Parquet in, "
        "nothing written; each way in processes of its own.\n",
        *markdown(head, rows),
        f"\nOne and two executors of one core (`{masters[0]}`, `{masters[1]}`), array form, 64 → "
        f"256, {numbers['rows']:,} rows, warm: {one['warm']:.1f} s and {two['warm']:.1f} s, "
        f"{ratio:.2f} ×.\n",
        f"An estimate, and no measurement: the array form went through {rate:,.0f} rows a second "
        f"and core at 64 → 256 in its largest run, so 10⁹ rows are {days:,.1f} hours of one core, "
        "and on more cores as much less as the cluster scales.\n",
    ]


def best_of(
    ways: tuple[str, ...], rounds: int, size: dict[str, int], folder: Path
) -> Iterator[tuple[str, dict[str, float]]]:
    """The best of the rounds for each way, each of which has its turn in every round."""
    path = stored(folder, size["rows"], size["columns"])
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for turn in range(rounds):
        for way in ways:
            if turn and way in SLOW:
                continue
            found[way].append(in_a_process(way=way, path=path, master=LOCAL, **size))
            print(size, way, found[way][-1], flush=True)
    for way, runs in found.items():
        yield way, {key: min(run[key] for run in runs) for key in runs[0]}


def best_of_one(
    way: str, rounds: int, size: dict[str, int], folder: Path, master: str
) -> dict[str, float]:
    """The best of a few processes."""
    path = stored(folder, size["rows"], size["columns"])
    runs = [in_a_process(way=way, path=path, master=master, **size) for _ in range(rounds)]
    print(size, master, runs, flush=True)
    return {key: min(run[key] for run in runs) for key in runs[0]}


def cells(size: dict[str, int], best: dict[str, dict[str, float]]) -> Iterator[list[str]]:
    """The lines of one size."""
    peer = best["arrow"]
    for way, run in best.items():
        shares = [f"{run[key] / peer[key]:.2f}" for key in ("cold", "warm")]
        seconds = [f"{run[key]:.1f}" for key in ("cold", "warm")]
        inside = [f"{run[key]:.1f}" for key in ("planning", "compiling")]
        what = f"{size['columns']} → {size['features']:,}"
        text = f"{run['bytes']:,.0f}" if run["bytes"] else ""
        yield [what, f"{size['rows']:,}", NAMES.get(way, way), text, *seconds, *inside, *shares]


def stored(folder: Path, rows: int, columns: int) -> str:
    """A folder of Parquet with so many rows, in eight files."""
    path = folder / f"{rows}_{columns}.parquet"
    if not path.exists():
        path.mkdir()
        rng, parts = np.random.default_rng(0), 8
        for part in range(parts):
            values = rng.normal(size=(rows // parts, columns))
            table = pa.table({f"c{i}": column for i, column in enumerate(values.T)})
            pq.write_table(table, path / f"part-{part}.parquet")
    return str(path)


def in_a_process(**one: Any) -> dict[str, float]:
    """What one process measures."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.spark", "--one", json.dumps(one)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(
    way: str, path: str, master: str, rows: int, columns: int, features: int
) -> dict[str, float]:
    """Seconds of the first and the last run, and what of the first is planning and compiling."""
    from tests.spark_server import session

    names = [f"c{i}" for i in range(columns)]
    krp = sqlkrp.KRP(2, features, scaling=None, gamma=1.0, random_state=0).fit(names)
    with session(master) as spark:
        spark.range(10).selectExpr("SUM(id)").collect()
        java = spark.sparkContext._jvm.org.apache.spark.sql.catalyst.expressions.codegen
        make, size = job(way, spark, krp, path)
        seconds, planning, compiling = [], 0.0, java.CodeGenerator.compileTime()
        for _ in range(RUNS):
            started = time.perf_counter()
            frame = make()
            frame._jdf.queryExecution().executedPlan()
            planning = planning or time.perf_counter() - started
            frame.write.format("noop").mode("overwrite").save()
            seconds.append(time.perf_counter() - started)
            if len(seconds) == 1:
                compiling = (java.CodeGenerator.compileTime() - compiling) / 1e9
        return {
            "bytes": size,
            "cold": seconds[0],
            "warm": seconds[-1],
            "planning": planning,
            "compiling": compiling,
        }


def job(way: str, spark: Any, krp: Any, path: str) -> tuple[Callable[[], Any], int]:
    """What makes a DataFrame of all rows' features, and the bytes of its SQL."""
    if way == "sklearn":
        return lambda: by_sklearn(spark.read.parquet(path), krp.n_components), 0
    if way == "arrow":
        database = sqlkrp.connect(spark)
        source = database.source(Path(path))
        return lambda: database.relation(krp, source, how="arrow"), 0
    statement = krp.statement(("parquet", path), dialect="spark", form=way)
    for name, columns in statement.side_tables.items():
        sqlkrp.connect(spark)._session.load(name, columns)
    return lambda: spark.sql(statement.text), len(statement.text)


def by_sklearn(frame: Any, count: int) -> Any:
    """The features of scikit-learn's sketch, by a function of pandas columns."""
    import pandas as pd
    from pyspark.sql.functions import pandas_udf
    from sklearn.kernel_approximation import PolynomialCountSketch

    width = len(frame.columns)
    sketch = PolynomialCountSketch(degree=2, coef0=1, n_components=count, random_state=0)
    sketch.fit(np.zeros((1, width)))

    def features(*columns: Any) -> Any:
        return pd.Series(list(sketch.transform(np.column_stack(columns))))

    features.__annotations__ = {"columns": pd.Series, "return": pd.Series}
    return frame.select(pandas_udf(features, "array<double>")(*frame.columns).alias("krp"))


if __name__ == "__main__":
    main()
