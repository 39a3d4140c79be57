"""What the papers found with these maps, in shape: tables and plots.

    python -m benchmarks.papers --data DIR [--quick]

- Delogne and Jacques, section 4: kernels of full and binary sketches, and training on the one and
  evaluating on the other.
- Rost and Zast: Fourier features, landmarks and principal components on MNIST with noise, and an
  ensemble; regression on wine and avocado.

Features are computed in DuckDB, those of large maps by the NumPy twin. Writes ``papers.md`` and
plots into ``benchmarks/results/``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import matplotlib
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import RidgeClassifier

import sqlkrp
from benchmarks.measuring import markdown, versions

matplotlib.use("Agg")
from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results"
# Larger statements take longer to plan than these few rows to compute.
_IN_SQL = 15_000
REPORTED = {"train full, evaluate binary": 0.742, "train binary, evaluate full": 0.795}


def main() -> None:
    """Run both and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="smaller, to see that it runs")
    given = parser.parse_args()
    report = [f"# What the papers found\n\n{versions()}\n"]
    report += delogne(quick=given.quick)
    report += rost_zast(given.data, quick=given.quick)
    report += regression(given.data, quick=given.quick)
    path = RESULTS / ("quick_papers.md" if given.quick else "papers.md")
    path.write_text("\n".join(report))
    print(f"wrote {path}")


def plot(
    name: str, curves: dict[str, tuple[Iterable[float], Iterable[float]]], **words: str
) -> None:
    """Curves over the number of features."""
    figure, axis = plt.subplots(figsize=(8, 3.6))
    for label, (xs, ys) in curves.items():
        axis.plot(list(xs), list(ys), "o-", label=label, markersize=4)
    axis.set_xscale("log")
    axis.set_xlabel(words["x"])
    axis.set_ylabel(words["y"])
    axis.set_yscale(words.get("scale", "linear"))
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=120)
    plt.close(figure)


def features(one: sqlkrp.FeatureMap, table: str, connection: duckdb.DuckDBPyConnection) -> Any:
    """A map's features of a table's rows: by DuckDB, or of large maps by their NumPy twin."""
    operations = sum(one.program.cost)
    if operations > _IN_SQL:
        return one.transform(connection.table(table).df())
    relation = sqlkrp.connect(connection).relation(one, table)
    return np.column_stack(list(relation.fetchnumpy().values()))


# --- Delogne and Jacques --------------------------------------------------------------------------


def delogne(*, quick: bool) -> list[str]:
    """10,000 points in 100 dimensions, of which two tell the classes apart."""
    n, sizes = (1_000, (50, 200)) if quick else (10_000, (100, 300, 1000, 3000, 5000))
    points, classes = make_classification(
        n, 100, n_informative=2, n_redundant=0, n_clusters_per_class=1, random_state=1
    )
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    train = np.arange(n) < n // 2
    wanted = (points[:200] @ points[:200].T) ** 2
    exact = accuracy(*[squares(points[part]) for part in (train, ~train)], classes, train)
    rows, errors, scores = [], {}, {}
    for m in sizes:
        full = sqlkrp.RankOneProjection(m, scaling=None, random_state=0).fit(points)
        signs = sqlkrp.RankOneProjection(m, binary=True, scaling=None, random_state=0).fit(points)
        phi = full.transform(points)
        psi = signs.transform(points) * np.pi / (2 * np.sqrt(m))
        kernels = {"φφ": (phi, phi), "φψ": (phi, psi), "ψψ": (psi, psi)}
        for name, (a, b) in kernels.items():
            found = a[:200] @ b[:200].T
            errors.setdefault(name, []).append(float(np.sqrt(np.mean((found - wanted) ** 2))))
        setups = {
            "train full, evaluate full": (phi, phi),
            "train full, evaluate binary": (phi, psi),
            "train binary, evaluate full": (psi, phi),
            "train binary, evaluate binary": (psi, psi),
        }
        for name, (a, b) in setups.items():
            scores.setdefault(name, []).append(accuracy(a[train], b[~train], classes, train))
        rows.append(
            [f"{m:,}", *(f"{errors[name][-1]:.3f}" for name in kernels)]
            + [f"{scores[name][-1]:.1%}" for name in setups]
        )
    plot(
        "quick_delogne_kernels" if quick else "delogne_kernels",
        {name: (sizes, values) for name, values in errors.items()},
        x="m", y="error of the kernel (root mean square)", scale="log",
    )  # fmt: skip
    curves: dict[str, Any] = {name: (sizes, values) for name, values in scores.items()}
    curves["all products of columns"] = (sizes, [exact] * len(sizes))
    for name, value in REPORTED.items():
        curves[f"{name}, reported at m = 5,000"] = ([5000], [value])
    plot("quick_delogne_accuracy" if quick else "delogne_accuracy", curves, x="m", y="accuracy")
    head = ["m", *(f"error of {name}" for name in errors), *scores]
    return [
        f"## Full and binary sketches: {n:,} points in 100 dimensions, two of them informative\n",
        "Root mean square errors of the kernel between points of length 1, and the accuracy of a "
        "ridge classifier on the other half of the points (with all products of columns: "
        f"{exact:.1%}). Reported at m = 5,000: "
        + ", ".join(f"{name} {value:.1%}" for name, value in REPORTED.items())
        + ". Their draw of the points is not published, so figures compare in shape only.\n",
        *markdown(head, rows),
    ]


def squares(points: np.ndarray) -> np.ndarray:
    """All products of two columns: the kernel's own features."""
    first, second = np.triu_indices(points.shape[1])
    weights = np.where(first == second, 1, np.sqrt(2))
    return points[:, first] * points[:, second] * weights


def accuracy(a: np.ndarray, b: np.ndarray, classes: np.ndarray, train: np.ndarray) -> float:
    """The accuracy of a ridge classifier trained on ``a`` and evaluated on ``b``."""
    size = np.sqrt((a**2).sum(axis=1).mean())
    cut, wanted = 4 * len(a) // 5, classes[train]

    def score(penalty: float) -> float:
        model = RidgeClassifier(alpha=penalty).fit(a[:cut] / size, wanted[:cut])
        return float(model.score(a[cut:] / size, wanted[cut:]))

    best = max((0.1, 1.0, 10.0, 100.0), key=score)
    model = RidgeClassifier(alpha=best).fit(a / size, wanted)
    return float(model.score(b / size, classes[~train]))


# --- Rost and Zast --------------------------------------------------------------------------------


def rost_zast(data: Path, *, quick: bool) -> list[str]:
    """MNIST rows, max-pooled 2 x 2 in SQL, with some pixels replaced by noise."""
    n_train, n_test, sizes = (500, 200, (10, 50)) if quick else (5_000, 2_000, SIZES)
    connection = duckdb.connect()
    lines, curves = [], {}
    for noise in (0.0, 0.1, 0.2, 0.5):
        for part, rows in (("train", n_train), ("test", n_test)):
            pooled(connection, data, part, rows, noise)
        labels = [
            connection.execute(f"SELECT label FROM {part}").fetchnumpy()["label"]
            for part in ("train", "test")
        ]
        for k in sizes:
            scores = {
                name: ridge_accuracy(make(k), connection, labels)
                for name, make in MNIST_MAPS.items()
                if name != "pca" or k <= 196
            }
            lines.append(
                [f"{noise:g}", f"{k:,}"]
                + [f"{scores[name]:.1%}" if name in scores else "" for name in MNIST_MAPS]
            )
            for name, score in scores.items():
                label = f"{name}, p = {noise:g}"
                xs, ys = curves.setdefault(label, ([], []))
                xs.append(k)
                ys.append(score)
    for noise in ("0", "0.5"):
        chosen = {name: curve for name, curve in curves.items() if name.endswith(f"p = {noise}")}
        words = {"x": "features (of each member)", "y": "accuracy"}
        plot(f"{'quick_' if quick else ''}rost_zast_noise_{noise}", chosen, **words)
    title = f"## MNIST, max-pooled to 14 × 14: {n_train:,} rows to train on, {n_test:,} to test\n"
    told = (
        "Accuracy of a closed-form ridge classifier; a share p of the pixels is replaced by noise. "
        "The ensemble is 13 draws, a classifier each, and their majority.\n"
    )
    return [title, told, *markdown(["p", "k", *MNIST_MAPS], lines)]


SIZES = (10, 30, 100, 300, 1000)
# Pixels are scaled to 0..1; squared distances are about 50.
_GAMMA = 0.02
MNIST_MAPS: dict[str, Any] = {
    "fourier": lambda k: sqlkrp.RandomFourier(k, gamma=_GAMMA, scaling=None, random_state=0),
    "ensemble of 13": lambda k: sqlkrp.Ensemble(
        sqlkrp.RandomFourier(k, gamma=_GAMMA, scaling=None), 13, random_state=0
    ),
    "nystroem": lambda k: sqlkrp.Nystroem(k, gamma=_GAMMA, scaling=None, random_state=0),
    "pca": lambda k: sqlkrp.PCA(k, scaling=None, random_state=0),
}


def pooled(
    connection: duckdb.DuckDBPyConnection, data: Path, part: str, rows: int, noise: float
) -> None:
    """A table of the images' 14 x 14 largest pixels, 0 to 1."""
    path = data / f"mnist_{part}.parquet"
    described = connection.execute(f"DESCRIBE FROM '{path}' LIMIT 0").fetchall()
    names = [f'"{row[0]}"' for row in described if row[0] != "label"]
    assert len(names) == 784
    columns = []
    for i in range(14):
        for j in range(14):
            four = [names[28 * (2 * i + a) + 2 * j + b] for a in (0, 1) for b in (0, 1)]
            pixel = f"GREATEST({', '.join(four)}) / 255.0"
            place = f"n, {14 * i + j}, '{part}'"
            noisy = f"hash({place}) / 2.0 ** 64 < {noise}"
            value = f"hash('value', {place}) / 2.0 ** 64"
            columns.append(f"(CASE WHEN {noisy} THEN {value} ELSE {pixel} END)::FLOAT AS p{i}_{j}")
    connection.execute(
        f"CREATE OR REPLACE TABLE {part} AS SELECT label, {', '.join(columns)} FROM "
        f"(SELECT *, row_number() OVER () AS n FROM '{path}' LIMIT {rows})"
    )


def ridge_accuracy(
    one: sqlkrp.FeatureMap, connection: duckdb.DuckDBPyConnection, labels: list[np.ndarray]
) -> float:
    """The accuracy of ridge regression on the classes; several members vote."""
    one.fit(connection.table("train").df(), exclude=["label"])
    train, test = (features(one, part, connection) for part in ("train", "test"))
    members = getattr(one, "n_members", 1)
    k = train.shape[1] // members
    votes = np.zeros((len(test), 10))
    for member in range(members):
        chosen = slice(member * k, (member + 1) * k)
        scores = ridge(train[:, chosen], np.eye(10)[labels[0]], test[:, chosen], 1e-3)
        votes[np.arange(len(test)), scores.argmax(axis=1)] += 1
        votes += 1e-6 * scores  # a tie goes to the surer
    return float((votes.argmax(axis=1) == labels[1]).mean())


def ridge(train: np.ndarray, wanted: np.ndarray, test: np.ndarray, penalty: float) -> np.ndarray:
    """Predictions of ridge regression with an intercept, in closed form."""
    middle, mean = train.mean(axis=0), wanted.mean(axis=0)
    centred = train - middle
    gram = centred.T @ centred
    gram[np.diag_indices_from(gram)] += penalty * gram.trace() / len(gram)
    weights = np.linalg.solve(gram, centred.T @ (wanted - mean))
    return (test - middle) @ weights + mean


def best_penalty(train: np.ndarray, wanted: np.ndarray) -> float:
    """The penalty that predicts the last fifth of the rows best from the others."""
    cut = 4 * len(train) // 5

    def error(penalty: float) -> float:
        found = ridge(train[:cut], wanted[:cut], train[cut:], penalty)
        return float(np.mean((found - wanted[cut:]) ** 2))

    return min((10.0**power for power in range(-5, 2)), key=error)


def regression(data: Path, *, quick: bool) -> list[str]:
    """Kernel ridge regression by Fourier features: the error over the number of features."""
    sizes = (10, 50) if quick else (10, 30, 100, 300, 1000)
    connection, rows, curves = duckdb.connect(), [], {}
    for name, (file, target) in REGRESSIONS.items():
        path = data / file
        connection.execute(
            "CREATE OR REPLACE TABLE everything AS SELECT * FROM "
            f"'{path}' ORDER BY hash(row(COLUMNS(*))) LIMIT {2_000 if quick else 20_000}"
        )
        for part, keep in (("train", "n % 5 > 0"), ("test", "n % 5 = 0")):
            connection.execute(
                f"CREATE OR REPLACE TABLE {part} AS SELECT * EXCLUDE n FROM "
                f"(SELECT *, row_number() OVER () AS n FROM everything) WHERE {keep}"
            )
        wanted = [
            connection.execute(f'SELECT "{target}"::DOUBLE AS t FROM {part}').fetchnumpy()["t"]
            for part in ("train", "test")
        ]
        errors = []
        for k in sizes:
            one = sqlkrp.RandomFourier(k, gamma=0.05, scaling="standard", clip=None, random_state=0)
            one.fit(sqlkrp.connect(connection).source("train"), exclude=[target])
            train, test = (features(one, part, connection) for part in ("train", "test"))
            penalty = best_penalty(train, wanted[0][:, None])
            found = ridge(train, wanted[0][:, None], test, penalty)[:, 0]
            errors.append(float(np.mean((found - wanted[1]) ** 2)))
        curves[name] = (sizes, [error / np.var(wanted[1]) for error in errors])
        rows.append([name, f"{np.var(wanted[1]):.4f}", *(f"{error:.4f}" for error in errors)])
    words = {"x": "features k", "y": "mean squared error / variance"}
    plot("quick_regression" if quick else "regression", curves, **words)
    head = ["data", "variance of the target", *(f"k = {k:,}" for k in sizes)]
    title = "## Regression by Fourier features (gamma = .05, columns scaled): mean squared error\n"
    return [title, *markdown(head, rows)]


REGRESSIONS = {
    "wine (quality)": ("wine_red.parquet", "label"),
    "avocado (price)": ("avocado.parquet", "AveragePrice"),
}


if __name__ == "__main__":
    main()
