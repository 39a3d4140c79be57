"""What ``train`` finds, beside what people would write, on tables that it is given as they are.

    python -m benchmarks.training --data DIR [--only tables,images,degrees,rows] [--out FILE]

- ``tables``: with nothing but the label (and what would give it away left out), the measure on rows
  that no model saw, beside a linear model of the raw columns, one of their products, and boosted
  trees;
- ``images``: one map of MNIST's 60,000 rows, ten classes, beside PolynomialCountSketch and
  RidgeClassifierCV: accuracy on its test rows, seconds, and peak memory of a process of its own;
- ``degrees``: the degree that folds choose on MNIST and w8a, and the best one on their test rows;
- ``rows``: 10,000,000 rows of ten columns, under a limit of DuckDB's memory.

Writes ``benchmarks/results/training.md``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.linear_model import LogisticRegressionCV, RidgeClassifierCV, RidgeCV
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import sqlkrp
from benchmarks.measuring import (
    in_its_own_process,
    markdown,
    named,
    peak_megabytes,
    versions,
)

RESULTS = Path(__file__).parent / "results" / "training.md"
SPLITS = 3
_MOST_VALUES = 50
_PENALTIES = np.logspace(-4, 6, 11)


@dataclass(frozen=True)
class Table:
    """A data set as a user has it."""

    file: str
    label: str
    is_number: bool
    exclude: tuple[str, ...] = ()
    most_rows: int = 60_000

    def load(self, data: Path) -> pd.DataFrame:
        """Its rows with a label; of many, some."""
        frame = pd.read_parquet(data / self.file).dropna(subset=[self.label])
        frame = frame.drop(columns=list(self.exclude))
        return frame.sample(min(len(frame), self.most_rows), random_state=0).reset_index(drop=True)


TABLES = {
    "spambase": Table("spambase.parquet", "label", False),
    "wine_red": Table("wine_red.parquet", "label", False),
    "wineqt": Table("wineqt.parquet", "label", False, ("Id",)),
    "diamonds": Table("diamonds.parquet", "price", True),
    "nycflights": Table("nycflights_flights.parquet", "arr_delay", True, ("dep_delay",)),
    "titanic": Table("titanic.parquet", "survived", False, ("boat", "body")),
    "avocado": Table("avocado.parquet", "AveragePrice", True),
}
RAW, PRODUCTS, TREES, OURS = (
    "linear, raw columns",
    "PolynomialFeatures(2)",
    "boosted trees",
    "train",
)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, with commas")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(ONE[given.one[0]](given.data, *given.one[1:])))
        return
    lines = [f"# From a table to a judged model\n\n{versions()}\n"]
    for name in given.only.split(","):
        lines += SECTIONS[name](given.data)
        given.out.write_text("\n".join(lines))  # whatever becomes of the next one
    print("\n".join(lines))


# --- tables ---------------------------------------------------------------------------------------


def tables(data: Path) -> list[str]:
    """The measure on a fifth of the rows, that no model saw; mean and deviation of some splits."""
    rows = []
    for name, table in TABLES.items():
        frame = table.load(data)
        found: dict[str, list[float]] = {}
        seconds: dict[str, list[float]] = {}
        taken = []
        for split in range(SPLITS):
            train, test = train_test_split(frame, test_size=0.2, random_state=split)
            for way, run in WAYS.items():
                started = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    score, told = run(table, train.reset_index(drop=True), test)
                seconds.setdefault(way, []).append(time.perf_counter() - started)
                found.setdefault(way, []).append(score)
                taken += [told] if told else []
                print(name, split, way, round(score, 4), told, file=sys.stderr, flush=True)
        means = {way: float(np.mean(found[way])) for way in WAYS}
        reach = means[TREES] - means[RAW]
        share = f"{(means[OURS] - means[RAW]) / reach:.0%}" if reach > 0 else "raw is above"
        rows.append([
            f"{name} ({'R²' if table.is_number else 'accuracy'})",
            *(f"{means[way]:.3f} ± {np.std(found[way]):.3f}" for way in WAYS),
            share,
            *(f"{np.median(seconds[way]):.1f}" for way in WAYS),
            "; ".join(dict.fromkeys(taken)),
        ])  # fmt: skip
    head = ["table", *WAYS, "of the way to trees", *(f"{way}, s" for way in WAYS), "taken"]
    return [f"## Tables as they are, {SPLITS} splits\n", *markdown(head, rows)]


Way = Callable[[Table, pd.DataFrame, pd.DataFrame], tuple[float, str]]


def ours(table: Table, train: pd.DataFrame, test: pd.DataFrame) -> tuple[float, str]:
    """``train`` with the label alone."""
    model = sqlkrp.train(train, table.label)
    inputs = test.drop(columns=table.label)
    return _score(table, test[table.label], model.predict(inputs)), model.training["taken"]


def scikit_learn(make: Callable[[Table], Any]) -> Way:
    """A pipeline of scikit-learn's, behind what people put in front of it."""

    def run(table: Table, train: pd.DataFrame, test: pd.DataFrame) -> tuple[float, str]:
        train, test = _plain(train, table.label), _plain(test, table.label)
        model = make(table).fit(train.drop(columns=table.label), train[table.label])
        said = model.predict(test.drop(columns=table.label))
        return _score(table, test[table.label], said), ""

    return run


def _plain(frame: pd.DataFrame, label: str) -> pd.DataFrame:
    """Dates as days, texts of few values as categories, others left out."""
    found = {}
    for name, column in frame.items():
        if pd.api.types.is_datetime64_any_dtype(column):
            found[name] = (column - pd.Timestamp("1970-01-01", tz=column.dt.tz)).dt.total_seconds()
        elif name == label or pd.api.types.is_numeric_dtype(column):
            found[name] = column
        elif column.nunique() <= _MOST_VALUES:
            found[name] = column.astype(object).where(column.notna(), "missing")
    return pd.DataFrame(found)


def _score(table: Table, truths: Any, said: Any) -> float:
    found = r2_score(truths, said) if table.is_number else accuracy_score(truths, said)
    return float(found)


def _columns() -> Any:
    texts = make_column_selector(dtype_exclude="number")
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    categories = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")), (categories, texts)
    )


def _linear(table: Table, *, many: bool = False) -> Any:
    if table.is_number:
        return RidgeCV(_PENALTIES, gcv_mode="eigen" if many else "auto")
    return LogisticRegressionCV(Cs=np.logspace(-4, 1, 6), cv=3, max_iter=300)


def _trees(table: Table) -> Any:
    kind = HistGradientBoostingRegressor if table.is_number else HistGradientBoostingClassifier
    return make_pipeline(_columns(), kind(random_state=0))


WAYS: dict[str, Way] = {
    RAW: scikit_learn(lambda table: make_pipeline(_columns(), _linear(table))),
    PRODUCTS: scikit_learn(
        lambda table: make_pipeline(
            _columns(),
            PolynomialFeatures(2, include_bias=False),
            StandardScaler(),
            _linear(table),
        )
    ),
    OURS: ours,
    TREES: scikit_learn(_trees),
}


# --- images ---------------------------------------------------------------------------------------


def images(data: Path) -> list[str]:
    """Ten classes of MNIST by one map, each way in a process of its own, in turns."""
    rows = []
    for features in (1000, 2000):
        for way in ("ours", "sketch"):
            runs = [_alone(data, "images", way, str(features)) for _ in range(2)]
            accuracy = np.mean([one["accuracy"] for one in runs])
            seconds = np.median([one["seconds"] for one in runs])
            peak = max(one["peak_mb"] for one in runs)
            told = {"ours": "sqlkrp.train", "sketch": "PolynomialCountSketch, RidgeClassifierCV"}
            rows.append(
                [f"{features:,}", told[way], f"{accuracy:.4f}", f"{seconds:.1f}", f"{peak:,}"]
            )
    title = named(data, "mnist_train.parquet", "MNIST")
    head = ["features", "way", "test accuracy", "seconds", "peak MB"]
    return [f"## {title}: 60,000 × 784, ten classes, degree 2\n", *markdown(head, rows)]


def _alone(data: Path, *what: str) -> dict[str, Any]:
    return in_its_own_process("benchmarks.training", "--data", str(data), "--one", *what)


def one_of_images(data: Path, way: str, features: str) -> dict[str, Any]:
    """Train on the table in a file of DuckDB; the accuracy is not timed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.duckdb"
        with duckdb.connect(str(path)) as connection:
            columns = "COLUMNS(* EXCLUDE label) / 128.0 - 1"
            source = data / "mnist_train.parquet"
            connection.execute(
                f"CREATE TABLE images AS SELECT label, CAST({columns} AS FLOAT) FROM '{source}'"
            )
        started = time.perf_counter()
        predict = {"ours": _trained, "sketch": _sketched}[way](path, int(features))
        seconds, peak = time.perf_counter() - started, peak_megabytes()
    test = pd.read_parquet(data / "mnist_test.parquet")
    inputs = (test.drop(columns="label") / 128 - 1).astype("float32")
    found = float((predict(inputs) == test["label"]).mean())
    return {"accuracy": found, "seconds": seconds, "peak_mb": peak}


def _trained(path: Path, features: int) -> Callable[[pd.DataFrame], Any]:
    krp = sqlkrp.KRP(2, features, random_state=0)
    with sqlkrp.connect(path, read_only=True) as database:
        model = sqlkrp.train(database.source("images"), "label", maps=[krp])
    print(model.training["taken"], model.training["held_out"]["accuracy"], file=sys.stderr)
    return lambda frame: model.predict(frame)


def _sketched(path: Path, features: int) -> Callable[[pd.DataFrame], Any]:
    with duckdb.connect(str(path), read_only=True) as connection:
        frame = connection.sql("FROM images").df()
    label = frame.pop("label")
    sketch = PolynomialCountSketch(degree=2, n_components=features, random_state=0, **_SKETCH)
    model = make_pipeline(sketch, StandardScaler(), RidgeClassifierCV(_PENALTIES[3:]))
    model.fit(frame.to_numpy(dtype="float32"), label)
    return lambda rows: model.predict(rows.to_numpy(dtype="float32"))


_SKETCH = {"gamma": 1 / 784, "coef0": 1}


# --- degrees --------------------------------------------------------------------------------------


def degrees(data: Path) -> list[str]:
    """The degree that folds choose, and what each degree is worth on the test rows.

    That is the procedure of the KRP paper's table 11, on the data sets of its others.
    """
    rows = []
    for name, metric in (("mnist", "accuracy"), ("w8a", "f1-macro")):
        frame, test = (
            pd.read_parquet(data / f"{name}_{part}.parquet") for part in ("train", "test")
        )
        maps = {degree: sqlkrp.KRP(degree, 1000, random_state=0) for degree in _DEGREES}
        asked: dict[str, Any] = {"metric": metric, "sample": _MORE_ROWS, "test_share": 0}
        told = sqlkrp.train(frame, "label", maps=list(maps.values()), **asked).training
        of_maps = [one for one in told["candidates"] if one["maps"]]
        in_folds = dict(zip(maps, of_maps, strict=True))
        on_test, taken = {}, {}
        for degree, one in maps.items():
            model = sqlkrp.train(frame, "label", maps=[one], **asked)
            said = model.predict(test.drop(columns="label"))
            on_test[degree] = _SCORES[metric](test["label"], said)
            is_map = model.training["taken"] != model.training["raw"]
            taken[degree] = "the map" if is_map else "the columns alone, kept"
            print(name, degree, on_test[degree], taken[degree], file=sys.stderr, flush=True)
        chosen = max(maps, key=lambda degree: in_folds[degree]["mean"])
        best = max(maps, key=lambda degree: on_test[degree])
        for degree in maps:
            marks = ["chosen by folds"] * (degree == chosen) + ["best of tests"] * (degree == best)
            rows.append([
                f"{name}, {metric}", str(degree),
                f"{in_folds[degree]['mean']:.4f} ± {in_folds[degree]['spread']:.4f}",
                f"{on_test[degree]:.4f} ({taken[degree]})", " and ".join(marks),
            ])  # fmt: skip
    head = ["data", "degree", f"folds of {_MORE_ROWS:,} rows", "test rows", ""]
    return [
        "## The degree, by folds: KRP of 1,000 features beside the columns\n",
        *markdown(head, rows),
    ]


_DEGREES, _MORE_ROWS = (1, 2, 3, 4), 20_000
_SCORES: dict[str, Callable[..., float]] = {
    "accuracy": accuracy_score,
    "f1-macro": lambda truths, said: f1_score(truths, said, average="macro"),
}


# --- rows -----------------------------------------------------------------------------------------


def rows(data: Path) -> list[str]:
    """Many rows of few columns."""
    found = _alone(data, "rows", "10000000")
    head = ["what", "seconds", "peak MB"]
    lines = [
        ["train, no option but the label", f"{found['train']:.1f}", f"{found['train_mb']:,}"],
        ["score into a table", f"{found['score']:.1f}", f"{found['score_mb']:,}"],
    ]
    title = "## 10,000,000 rows × 10 columns, DuckDB limited to 1 GB\n"
    told = f"Taken: {found['taken']}; R² {found['r2']:.4f} on the rows held out.\n"
    return [title, told, *markdown(head, lines)]


def one_of_rows(_: Path, count: str) -> dict[str, Any]:
    """Make the table, train, and score it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.duckdb"
        with duckdb.connect(str(path)) as connection:
            noise = "hash(i * 11 + {}) / 2.0 ** 64 - 0.5"
            columns = ", ".join(f"{noise.format(j)} AS c{j}" for j in range(10))
            connection.execute(
                "CREATE TABLE t AS SELECT * EXCLUDE i, "
                f"c0 * c1 + c2 * c2 + c3 + ({noise.format(10)}) AS y "
                f"FROM (SELECT i, {columns} FROM range({count}) AS r(i))"
            )
        with sqlkrp.connect(path, memory_limit="1GB") as database:
            started = time.perf_counter()
            model = sqlkrp.train(database.source("t"), "y")
            trained, peak = time.perf_counter() - started, peak_megabytes()
            started = time.perf_counter()
            database.score(model, "t", into="scores")
            scored = time.perf_counter() - started
    told = model.training
    return {
        "train": trained,
        "train_mb": peak,
        "score": scored,
        "score_mb": peak_megabytes(),
        "taken": told["taken"],
        "r2": told["held_out"]["r2"],
    }


SECTIONS: dict[str, Callable[[Path], list[str]]] = {
    "tables": tables,
    "images": images,
    "degrees": degrees,
    "rows": rows,
}
ONE: dict[str, Callable[..., dict[str, Any]]] = {"images": one_of_images, "rows": one_of_rows}

if __name__ == "__main__":
    main()
