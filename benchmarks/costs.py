"""What is known of the engines that are executed: what they plan, and what operations cost them.

    python -m benchmarks.costs [--engines a,b] [--seconds S] [--out FILE]

- Planning: wide statements of as many additions as ``Limits.operations`` of the engine's record
  allows, and of a quarter of them, on no rows.
- Costs: each plan (plain, shared, butterflies) of the sums of three pools, on one row and on so
  many that the plainest takes about S seconds. From these the engine's costs are fitted, to stand
  beside those of its record.

``--engines spark --repeats 1`` measures Spark as users run it: statements that are new to it, whose
Java is compiled. It needs the extra ``spark``; the others need ``test``. Writes
``benchmarks/results/costs.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

import sqlkrp
from benchmarks.measuring import PAPER, markdown, versions
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.names import balanced, quote

RESULTS = Path(__file__).parent / "results"
ENGINES = ("duckdb", "postgres", "sqlite", "datafusion", "clickhouse")
COLUMNS = 64
POOLS: dict[str, dict[str, Any]] = {
    "hadamard": {"pool": "hadamard", "n_terms": 1},
    "achlioptas s=1": {"pool": "achlioptas", "s": 1, "n_hyperplanes": 150, "n_terms": 1},
    "achlioptas s=3": {"pool": "achlioptas", "s": 3, "n_hyperplanes": 150, "n_terms": 1},
}
_MOST_ROWS = 400_000


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.costs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--engines", default=",".join(ENGINES), help="names, with commas")
    parser.add_argument("--seconds", type=float, default=3, help="about, for the plainest sums")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "costs.md")
    given = parser.parse_args()
    # More features than monomials are meant here.
    warnings.simplefilter("ignore", sqlkrp.errors.FitWarning)
    planned: list[list[str]] = []
    runs: list[list[str]] = []
    fitted: list[list[str]] = []
    for name in given.engines.split(","):
        with opened(name) as engine:
            planned += planning(engine)
            measured = list(measure(engine, given.seconds, given.repeats))
            runs += [[name, *map(told, one)] for one in measured]
            fitted += fit(name, measured)
    given.out.write_text("\n".join(report(planned, runs, fitted)))
    print(f"wrote {given.out}")


def report(planned: list[list[str]], runs: list[list[str]], fitted: list[list[str]]) -> list[str]:
    """The page."""
    head = ["engine", "pool", "plan", "additions", "columns on the way", "hyperplanes"]
    return [
        "# What operations cost\n",
        f"`python -m benchmarks.costs`; {versions('datafusion', 'chdb', 'psycopg')}\n",
        "## Planning: wide statements on no rows\n",
        *markdown(["engine", "additions a row", "MB of SQL", "seconds"], planned),
        f"## Plans of the sums of {COLUMNS} columns\n",
        "The least seconds of interleaved runs.\n",
        *markdown([*head, "rows", "seconds on one row", "seconds on the rows"], runs),
        "## Costs, fitted to these runs\n",
        "Seconds; in brackets the record's, and whose they are. What is not here (an array's item, "
        "the overhead of a statement and of a row) is no part of the fit.\n",
        *markdown(["engine", "a name or operator", "an addition", "a column"], fitted),
    ]


@contextlib.contextmanager
def opened(name: str) -> Iterator[Any]:
    """An engine as the tests use it."""
    from tests import engines
    from tests.postgres_server import Server, running

    with contextlib.ExitStack() as stack:
        if name == "postgres":
            server = stack.enter_context(running(Server().create()))
            one: Any = engines.Postgres(server.url)
        elif name == "spark":
            from tests.spark_server import session

            folder = stack.enter_context(tempfile.TemporaryDirectory())
            one = engines.Spark(stack.enter_context(session()))
            # Of files: it computes rows that a plan holds while it plans.
            one.store = partial(store_files, one, Path(folder))
        elif name == "clickhouse":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            one = engines.ClickHouse(Path(folder))
        else:
            kinds = {"duckdb": engines.DuckDB, "sqlite": engines.SQLite}
            one = {**kinds, "datafusion": engines.DataFusion}[name]()
        stack.callback(one.close)
        yield one


def store_files(engine: Any, folder: Path, frame: pd.DataFrame, table: str) -> None:
    """A table of Spark's as two files."""
    path = Path(tempfile.mkdtemp(dir=folder))
    for half in (0, 1):
        frame.iloc[half::2].to_parquet(path / f"{half}.parquet")
    engine.connection.read.parquet(str(path)).createOrReplaceTempView(table)


def planning(engine: Any) -> Iterator[list[str]]:
    """Statements of a quarter of the operations that the record allows, and of all of them."""
    most = DIALECTS[engine.name].limits.operations
    assert most is not None
    for operations in (most // 4, most):
        # Few for few additions, as each is cast; many for many, as a SELECT takes few hyperplanes.
        n_columns = 100 if most < 50_000 else 400
        krp = sums(n_columns, pool="achlioptas", s=1, n_hyperplanes=operations // n_columns)
        store(engine, n_columns, 0)
        statement = krp.statement(
            ("sums",), dialect=engine.name, form="wide", stage="projection", plan="plain"
        )
        seconds = timed(engine, statement.text)
        megabytes = len(statement.text) / 1e6
        found = [f"{statement.plan.additions:,}", f"{megabytes:.2f}", f"{seconds:.2f}"]
        print(engine.name, *found, sep="  ", file=sys.stderr, flush=True)
        yield [engine.name, *found]


def sums(n_columns: int, **pool: Any) -> sqlkrp.KRP:
    """A map of degree 1 that uses every hyperplane."""
    n_components = pool.get("n_hyperplanes", 256)
    krp = sqlkrp.KRP(1, n_components, random_state=0, **{"n_terms": 1, **pool}, **PAPER)
    return krp.fit([f"c{i}" for i in range(n_columns)])


def store(engine: Any, n_columns: int, rows: int) -> None:
    """A table of single numbers."""
    values = np.random.default_rng(0).normal(size=(rows, n_columns)).astype("float32")
    engine.store(pd.DataFrame(values, columns=[f"c{i}" for i in range(n_columns)]), "sums")


def timed(engine: Any, text: str) -> float:
    """Seconds of a statement."""
    started = time.perf_counter()
    engine.rows(text)
    return time.perf_counter() - started


Run = tuple[str, str, int, int, int, int, float, float]


def measure(engine: Any, wanted: float, repeats: int) -> Iterator[Run]:
    """Each pool by each of its plans."""
    dialect = DIALECTS[engine.name]
    texts: dict[tuple[str, str], tuple[str, Any, int]] = {}
    for pool, parameters in POOLS.items():
        krp = sums(COLUMNS, **parameters)
        for plan in ("plain", "shared", "butterflies")[: 3 if pool == "hadamard" else 2]:
            options = {"form": "wide", "stage": "projection", "plan": plan, "output": "columns"}
            statement = krp.statement(("sums",), dialect=engine.name, **options)
            names = [quote(name, dialect) for name in statement.columns]
            # Of one number a row, so that what is measured is neither written nor fetched.
            text = f"SELECT SUM({balanced(names, ' + ')}) AS s FROM (\n{statement.text}\n) AS t"
            (way,) = statement.plan.chosen.values()
            texts[pool, plan] = text, way.circuit, len(names)
    most = max(circuit.additions for _, circuit, _ in texts.values())
    rows = int(min(_MOST_ROWS, wanted / (most * dialect.costs.addition)))
    seconds: dict[tuple[str, str, int], list[float]] = {}
    for there in (1, rows):  # Spark leaves all out where there is none
        store(engine, COLUMNS, there)
        for _ in range(repeats):
            for key, (text, *_) in texts.items():
                seconds.setdefault((*key, there), []).append(timed(engine, text))
    for (pool, plan), (_, circuit, n_sums) in texts.items():
        least = [min(seconds[pool, plan, there]) for there in (1, rows)]
        yield (pool, plan, circuit.additions, circuit.columns, n_sums, rows, least[0], least[1])


def fit(name: str, runs: list[Run]) -> Iterator[list[str]]:
    """The engine's costs: of planning from the runs on one row, of rows from the rest."""
    additions, columns, n_sums, rows, none, some = (
        np.array([one[i] for one in runs], dtype="float64") for i in range(2, 8)
    )
    written = 2 * additions + columns
    (node, _), _ = nnls(np.column_stack([written, np.ones(len(runs))]), none)
    work = rows[:, None] * np.column_stack([additions, columns, n_sums, np.ones(len(runs))])
    (addition, column, *_), _ = nnls(work, some - none)
    known = DIALECTS[name].costs
    cells = [
        f"{found:.1e} [{recorded:.1e}, {known.engine}]"
        for found, recorded in (
            (node, known.node),
            (addition, known.addition),
            (column, known.column),
        )
    ]
    print(name, *cells, sep="  ", file=sys.stderr, flush=True)
    yield [name, *cells]


def told(cell: object) -> str:
    """A cell of the table of runs."""
    if isinstance(cell, float):
        return f"{cell:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


if __name__ == "__main__":
    main()
