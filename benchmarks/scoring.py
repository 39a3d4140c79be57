"""Scores where the data lives: against fetching, the polynomial against features, and the papers.

    python -m benchmarks.scoring --data DIR [--rows N] [--repeats N] [--only a,b] [--out FILE]

MNIST's 60,000 rows (``--rows``: as often as they are needed) to one and to ten-class labels in a
DuckDB table, against fetching them, PolynomialCountSketch, predict and writing back, and against
the best that we could write by hand with Arrow and BLAS; a million rows of diamonds by features
and as the polynomial that the model is; wine's model as that polynomial; and what two papers do
with sketches: votes of Fourier maps, and full sketches against signs. Writes
``benchmarks/results/scoring.md``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from sklearn.compose import ColumnTransformer
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.linear_model import RidgeClassifier, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import sqlkrp
from benchmarks import peers
from benchmarks.dense import mnist
from benchmarks.measuring import PAPER, Way, markdown, measure, versions

RESULTS = Path(__file__).parent / "results"
DIGITS = str(Path(__file__).parents[1] / "examples" / "digits.csv")
# Rows that a model is trained on: enough for weights as they are.
TRAINED_ON = 6_000
_ROWS_AT_ONCE = 8192
_ROWS_FETCHED = 60_000


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scoring",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--rows", type=int, default=60_000, help="of MNIST; default: 60000")
    parser.add_argument("--repeats", type=int, default=3, help="default: 3")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, with commas")
    parser.add_argument("--out", type=Path, default=RESULTS / "scoring.md")
    given = parser.parse_args()
    lines = ["# Scores\n", f"`python -m benchmarks.scoring --data DIR`; {versions()}\n"]
    for name in given.only.split(","):
        lines += SECTIONS[name](given)
        given.out.write_text("\n".join(lines))
    print(f"wrote {given.out}")


# --- MNIST against fetching -----------------------------------------------------------------------


def of_images(given: argparse.Namespace) -> list[str]:
    """One and ten-class labels of images, by each way."""
    with tempfile.TemporaryDirectory() as folder:
        connection = duckdb.connect(f"{folder}/images.duckdb")
        mnist(connection, given.data, given.rows)
        krp = sqlkrp.KRP(2, 1000, dtype="float32", random_state=0, **PAPER)
        krp.fit(sqlkrp.connect(connection).source("source"), exclude=["label"])
        lines = [f"## MNIST: {given.rows:,} rows to labels, in a DuckDB file\n"]
        rows: list[list[object]] = []
        for name, classes in (("is it a 3", 2), ("which of ten", 10)):
            ways, planning = ways_to_labels(connection, krp, classes)
            measure(ways, connection, given.repeats)
            best = ways[0].median
            rows += [
                [name, way.name, f"{way.median:.2f}", way.spread, f"{way.median / best:.2f}"]
                for way in ways
            ]
            lines.append(f"Planning ({name}): {planning:.2f} s of sqlkrp's.\n")
        return [*lines, *markdown(["labels", "way", "seconds", "spread", "× sqlkrp"], rows)]


def ways_to_labels(
    connection: duckdb.DuckDBPyConnection, krp: sqlkrp.KRP, classes: int
) -> tuple[list[Way], float]:
    """The ways, with what each needs to be trained before, and the seconds of planning."""
    frame = connection.execute(f"FROM source LIMIT {TRAINED_ON}").df()
    label = frame.pop("label").to_numpy()
    y = label if classes == 10 else label == 3
    pixels = frame.to_numpy(dtype="float32")
    model = sqlkrp.model(RidgeClassifier().fit(krp.transform(frame), y), krp).saying(["label"])
    sketch = make_pipeline(
        PolynomialCountSketch(degree=2, n_components=1000, random_state=0), RidgeClassifier()
    ).fit(pixels, y)
    ways = [
        Way("sqlkrp, in the database", lambda there: scored(there, model)),
        Way("fetch, PolynomialCountSketch, predict, write", lambda there: fetched(there, sketch)),
        Way("by hand: Arrow batches, BLAS", lambda there: by_hand(there, krp, model)),
    ]
    return ways, planning(connection, model)


def scored(connection: duckdb.DuckDBPyConnection, model: sqlkrp.Model) -> None:
    """What a user of sqlkrp runs."""
    db = sqlkrp.connect(connection)
    db.score(model, "source", into="features", keep=["label"], prefix="said_")


def fetched(connection: duckdb.DuckDBPyConnection, pipeline: Any) -> None:
    """What a user would do instead."""
    frame = connection.table("source").df()
    label = frame.pop("label").to_numpy()
    # In parts, as the sketches of 600,000 rows do not fit into 23 GB.
    parts = range(0, len(frame), _ROWS_FETCHED)
    pixels = (frame.iloc[i : i + _ROWS_FETCHED].to_numpy(dtype="float32") for i in parts)
    said = np.concatenate([pipeline.predict(part) for part in pixels])
    connection.register("arrived", pa.table({"label": label, "said": said}))
    connection.execute("CREATE TABLE features AS SELECT * FROM arrived")
    connection.unregister("arrived")


def by_hand(connection: duckdb.DuckDBPyConnection, krp: sqlkrp.KRP, model: sqlkrp.Model) -> None:
    """Arrow batches, single precision BLAS, the model's weights, one CREATE TABLE."""
    compute = peers.by_hand(krp)
    last = model.whole_.stages[model.after]
    weights = last.matrix().astype("float32")  # type: ignore[attr-defined]
    intercept = last.constant.astype("float32")[:, None]  # type: ignore[attr-defined]
    columns = ", ".join(f'"{name}"' for name in krp.program.prepare.columns)
    reader = connection.cursor().sql(f"SELECT label, {columns} FROM source")
    batches = reader.to_arrow_reader(_ROWS_AT_ONCE)
    classes = model.classes_
    schema = pa.schema([batches.schema.field("label"), ("said", pa.array(classes[:1]).type)])

    def made() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            inputs = np.stack([one.to_numpy(zero_copy_only=False) for one in batch.columns[1:]])
            decisions = weights @ compute(inputs.astype("float32")) + intercept
            ten = len(decisions) > 1
            place = decisions.argmax(axis=0) if ten else (decisions[0] > 0).astype("i8")
            arrays = [batch.column(0), pa.array(classes[place])]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    connection.register("arrived", pa.RecordBatchReader.from_batches(schema, made()))
    connection.execute("CREATE TABLE features AS SELECT * FROM arrived")
    connection.unregister("arrived")


def planning(connection: duckdb.DuckDBPyConnection, model: sqlkrp.Model) -> float:
    """The seconds of a score of no rows."""
    connection.execute("CREATE OR REPLACE TEMP VIEW nothing AS FROM source LIMIT 0")
    text = model.to_sql("nothing")
    started = time.perf_counter()
    connection.execute(text).fetchall()
    return time.perf_counter() - started


# --- the polynomial -------------------------------------------------------------------------------

NUMBERS, TEXTS = ["carat", "depth", "table", "x", "y", "z"], ["cut", "color", "clarity"]


def of_diamonds(given: argparse.Namespace) -> list[str]:
    """A million rows of diamonds, by features and as the polynomial."""
    connection = duckdb.connect()
    path = str(given.data / "diamonds.parquet")
    connection.execute(
        "CREATE TABLE source AS SELECT rows.* FROM read_parquet(?) AS rows, range(19) "
        "LIMIT 1000000",
        [path],
    )
    frame = connection.execute("FROM read_parquet(?)", [path]).df()
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), NUMBERS),
            ("texts", OneHotEncoder(sparse_output=False), TEXTS),
        ]
    )
    rows = []
    for degree in (2, 3):
        krp = sqlkrp.KRP(degree, 300, random_state=0)
        trained = make_pipeline(columns, krp, RidgeCV()).fit(frame, np.log(frame["price"]))
        model = sqlkrp.model(trained)
        taken = "polynomial" if sum(model.program.cost) < sum(model.twin.cost) else "features"
        for way in ("features", "polynomial"):
            seconds = best_of(partial(diamonds, connection, model, way), given.repeats)
            asked = model.written_as(way)
            rows.append(
                [
                    degree,
                    f"{way}{' (auto)' * (way == taken)}",
                    f"{sum(asked.program.cost):,}",
                    f"{len(asked.to_sql('source').encode()):,}",
                    f"{seconds:.2f}",
                ]
            )
    head = ["degree", "way", "operations a row", "bytes of SQL", "seconds"]
    title = "## Diamonds: 1,000,000 rows, 6 numbers and 20 categories, 300 features\n"
    return [title, *markdown(head, rows)]


def diamonds(connection: duckdb.DuckDBPyConnection, model: sqlkrp.Model, way: str) -> None:
    """A table of predictions."""
    db = sqlkrp.connect(connection)
    db.score(model, "source", into="scores", keep=["price"], as_=way, replace=True)


def best_of(run: Callable[[], object], repeats: int) -> float:
    """The seconds of the quickest of some runs."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return min(found)


def of_wine(given: argparse.Namespace) -> list[str]:
    """The whole polynomial of a model of wine."""
    connection = duckdb.connect()
    path = str(given.data / "wine_red.parquet")
    connection.execute("CREATE TABLE wine AS FROM read_parquet(?)", [path])
    frame = connection.table("wine").df()
    krp = sqlkrp.KRP(2, 78, random_state=0)
    krp.fit(sqlkrp.connect(connection).source("wine"), label="label")
    trained = RidgeCV(np.logspace(-4, 4, 9)).fit(krp.transform(frame), frame["label"])
    model = sqlkrp.model(trained, krp)
    found = model.explain(top=None)
    terms = [found.constant, *found.terms]
    rows = [[one.name, f"{one.coefficients[0]:+.4f}", f"{one.raw[0]:+.4g}"] for one in terms]
    head = ["term", "of standardised columns", "of raw columns"]
    text = model.to_sql("wine")
    return [
        f"## Red wine's quality: {len(rows)} terms, and {len(text):,} bytes of SQL\n",
        *markdown(head, rows),
        "```sql",
        text,
        "```",
        "",
    ]


# --- the papers -----------------------------------------------------------------------------------


def of_papers(given: argparse.Namespace) -> list[str]:
    """Votes of Fourier maps, and full sketches against signs, in SQL and in NumPy."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE digits AS SELECT row_number() OVER () AS n, * FROM read_csv(?)", [DIGITS]
    )
    for part, rows in (("train", "n <= 1200"), ("test", "n > 1200")):
        connection.execute(f"CREATE TABLE {part} AS SELECT * EXCLUDE (n) FROM digits WHERE {rows}")
    train, test = (connection.table(part).df() for part in ("train", "test"))
    return [*votes(connection, train, test), *asymmetric(connection, train, test)]


def votes(connection: duckdb.DuckDBPyConnection, train: Any, test: Any) -> list[str]:
    """13 Fourier maps, a linear model of each, and most of their votes."""
    rows = []
    for k in (50, 100, 200):
        ensemble = sqlkrp.Ensemble(sqlkrp.RandomFourier(k, scaling=None), 13, random_state=0)
        ensemble.fit(train, exclude=["label"])
        parts = np.split(ensemble.transform(train), 13, axis=1)
        members = [RidgeClassifier().fit(part, train["label"]) for part in parts]
        tested = np.split(ensemble.transform(test), 13, axis=1)
        said = np.array([one.predict(part) for one, part in zip(members, tested, strict=True)])
        alone = (said == test["label"].to_numpy()).mean(axis=1)
        in_numpy = np.array([np.bincount(column, minlength=10).argmax() for column in said.T])
        in_sql = labels_in_sql(connection, sqlkrp.model(members, ensemble))
        rows.append(
            [
                k,
                f"{alone.mean():.4f} ± {alone.std():.4f}",
                f"{(in_sql == test['label'].to_numpy()).mean():.4f}",
                f"{(in_sql == in_numpy).sum():,} of {len(in_sql):,}",
            ]
        )
    head = ["features a map", "one map alone", "13 vote", "labels of SQL as NumPy's"]
    title = "## Votes of 13 Fourier maps (Rost and Zast, 5.4): digits, 1,200 training rows\n"
    return [title, *markdown(head, rows)]


def labels_in_sql(connection: duckdb.DuckDBPyConnection, model: sqlkrp.Model) -> np.ndarray:
    """The test rows' labels, in their order."""
    db = sqlkrp.connect(connection)
    db.score(model, "test", into="said", outputs=["label"], replace=True)
    return connection.table("said").fetchnumpy()["label"]


def asymmetric(connection: duckdb.DuckDBPyConnection, train: Any, test: Any) -> list[str]:
    """A model of full sketches against bits, and one of signs against full sketches."""
    y, truth = train["label"] % 2 == 1, (test["label"] % 2 == 1).to_numpy()
    rows = []
    for m in (100, 300, 1000):
        full = sqlkrp.RankOneProjection(m, scaling="unit", random_state=0)
        signs = sqlkrp.RankOneProjection(m, binary=True, scaling="unit", random_state=0)
        full.fit(train, exclude=["label"]), signs.fit(train, exclude=["label"])
        db = sqlkrp.connect(connection)
        db.create(full, "test", "full", keep=["label"], replace=True)
        db.create(signs, "test", "bits", keep=["label"], output="bits", replace=True)
        row: list[object] = [m]
        same = 0
        for one, others in ((full, ("features", "bits")), (signs, ("bits", "sketches"))):
            model = sqlkrp.model(RidgeClassifier().fit(one.transform(train), y), one)
            for holds in others:
                table = "bits" if holds == "bits" else "full"
                db.score(
                    model, features=table, into="scores", outputs=["decision"], holds=holds,
                    replace=True,
                )  # fmt: skip
                found = connection.table("scores").fetchnumpy()["decision"]
                row.append(f"{((found > 0) == truth).mean():.4f}")
                same += int(np.allclose(found, in_numpy(model, one, full, signs, holds, test)))
        rows.append([*row, f"{same} of 4"])
    head = [
        "m", "full, scored on full", "full, scored on bits", "signs, scored on bits",
        "signs, scored on full", "scores of SQL as NumPy's",
    ]  # fmt: skip
    title = "## Full sketches and signs (Delogne and Jacques): digits, odd or even\n"
    return [title, *markdown(head, rows)]


def in_numpy(
    model: sqlkrp.Model, trained: Any, full: Any, signs: Any, holds: str, test: Any
) -> np.ndarray:
    """The decisions by the formula of the paper."""
    stage = model.whole_.stages[model.after]
    weights, intercept = stage.matrix()[0], stage.constant[0]  # type: ignore[attr-defined]
    stored = signs if holds == "bits" else full
    is_other = (stored is signs) != (trained is signs)
    root = np.sqrt(len(weights))
    factor = np.pi / 2 * (root if trained is signs else 1 / root) if is_other else 1.0
    decisions: np.ndarray = factor * stored.transform(test) @ weights + intercept
    return decisions


SECTIONS: dict[str, Callable[[argparse.Namespace], list[str]]] = {
    "images": of_images,
    "diamonds": of_diamonds,
    "wine": of_wine,
    "papers": of_papers,
}

if __name__ == "__main__":
    main()
