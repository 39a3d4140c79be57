"""Tables of few rows in DuckDB: how long each form takes, and which one is taken.

    python -m benchmarks.few_rows [--repeats N] [--out FILE]

From these runs the costs of short forms in DuckDB's record are taken (``ShortCosts``), on the safe
side. A form that took over 20 seconds is not run on more rows. Writes
``benchmarks/results/few_rows.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

import sqlkrp
from benchmarks.measuring import markdown, versions

RESULTS = Path(__file__).parent / "results"
ROWS = (1, 10, 100, 300)
FORMS = ("wide", "array", "tables")
MAPS: dict[str, tuple[int, Any]] = {
    "hadamard, t=5": (784, sqlkrp.KRP(2, 1000, random_state=0)),
    "achlioptas s=3, t=1": (
        784,
        sqlkrp.KRP(2, 1000, random_state=0, pool="achlioptas", s=3, n_terms=1),
    ),
    "achlioptas s=1, t=30": (
        100,
        sqlkrp.KRP(2, 1000, random_state=0, pool="achlioptas", s=1, n_terms=30),
    ),
    "RandomFourier": (784, sqlkrp.RandomFourier(1000, random_state=0)),
}
_LONGEST = 20


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.few_rows",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "few_rows.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore", sqlkrp.errors.FitWarning)
    lines = [line for name in MAPS for line in measured(name, given.repeats)]
    head = ["map", "columns", "rows", *FORMS, "taken"]
    page = [
        "# Few rows\n",
        f"`python -m benchmarks.few_rows`; {versions()}\n",
        "Seconds to create a table of 1,000 features in DuckDB, all of it: the least of "
        f"{given.repeats} interleaved runs. What is taken is the form that `auto` chooses.\n",
        *markdown(head, lines),
    ]
    given.out.write_text("\n".join(page))
    print(f"wrote {given.out}")


def measured(name: str, repeats: int) -> Iterator[list[str]]:
    """A line for each number of rows."""
    n_columns, one = MAPS[name]
    values = np.random.default_rng(0).integers(-8, 9, size=(max(ROWS), n_columns))
    frame = pd.DataFrame(values.astype("float32"), columns=[f"c{i}" for i in range(n_columns)])
    one.fit(frame)
    left = list(FORMS)
    with duckdb.connect() as connection:
        db = sqlkrp.connect(connection)
        for rows in ROWS:
            connection.register("frame", frame.iloc[:rows])
            connection.execute("CREATE OR REPLACE TABLE source AS FROM frame")
            seconds: dict[str, list[float]] = {}
            for _ in range(repeats):
                for form in left:
                    started = time.perf_counter()
                    db.create(one, "source", "features", form=form, replace=True)
                    seconds.setdefault(form, []).append(time.perf_counter() - started)
            least = {form: min(found) for form, found in seconds.items()}
            taken = db.create(one, "source", "features", replace=True).statement.form
            left = [form for form in left if least[form] < _LONGEST]
            told = [f"{least[form]:.2f}" if form in least else "" for form in FORMS]
            line = [name, str(n_columns), f"{rows:,}", *told, taken]
            print(*line, sep="  ", file=sys.stderr, flush=True)
            yield line


if __name__ == "__main__":
    main()
