"""Janati's review of random features for polynomial kernels (2017), again, in shape.

Its data (USPS, Gisette) are not among ours: MNIST's digits, of as many columns as USPS has or so,
stand for them. The kernel is (1 - |x - y|^2 / a^2)^p with a = 4 on rows of length 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sklearn.svm import SVC

import sqlkrp
from benchmarks.kept import Kept
from benchmarks.linear_svm import predict, train
from benchmarks.measuring import markdown, named
from benchmarks.papers import plot, pooled
from benchmarks.published import Cell

__all__ = ["section"]

A = 4.0
DEGREES = (3, 7, 10, 20)
# (gamma <x, y> + coef0)^p is the same kernel on rows of length 1.
_GAMMA, _COEF0 = 2 / A**2, 1 - 2 / A**2
# As many rows as USPS has.
_TRAIN, _TEST = 7_291, 2_007
_PENALTY = 100.0

MAPS: dict[str, Callable[[int, int, int], sqlkrp.FeatureMap]] = {
    "RFF, γ = p/a²": lambda p, k, seed: sqlkrp.RandomFourier(
        k, gamma=p / A**2, scaling=None, random_state=seed
    ),
    "SRF": lambda p, k, seed: sqlkrp.SphericalRandomFeatures(
        k, degree=p, a=A, scaling=None, random_state=seed
    ),
    "Random Maclaurin": lambda p, k, seed: sqlkrp.RandomMaclaurin(
        k, degree=p, gamma=_GAMMA, coef0=_COEF0, scaling=None, random_state=seed
    ),
    "TensorSketch": lambda p, k, seed: sqlkrp.TensorSketch(
        p, k, gamma=_GAMMA, coef0=_COEF0, scaling=None, random_state=seed
    ),
    "KRP, Hadamard pool": lambda p, k, seed: sqlkrp.KRP(
        p, k, gamma=_GAMMA, coef0=_COEF0, scaling=None, random_state=seed
    ),
    "ComplexKRP": lambda p, k, seed: sqlkrp.ComplexKRP(
        p, k, gamma=_GAMMA, coef0=_COEF0, scaling=None, random_state=seed
    ),
}


def digits(data: Path, part: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of 14 x 14 pixels as rows of length 1, and their labels; made without a file."""
    if not (data / f"mnist_{part}.parquet").exists():
        images = np.random.default_rng(len(part)).random((rows, 196))
        return images / np.linalg.norm(images, axis=1, keepdims=True), images[:, :10].argmax(axis=1)
    with duckdb.connect() as connection:
        pooled(connection, data, part, rows, 0.0)
        found = connection.execute(f"FROM {part}").fetchnumpy()
    labels = found.pop("label").astype(int)
    images = np.column_stack(list(found.values())).astype("float64")
    return images / np.linalg.norm(images, axis=1, keepdims=True), labels


def kernel(a: np.ndarray, b: np.ndarray, p: int) -> np.ndarray:
    """What is estimated."""
    exact: np.ndarray = (_GAMMA * (a @ b.T) + _COEF0) ** p
    return exact


def section(data: Path, cells: Sequence[Cell], kept: Kept, *, quick: bool) -> list[str]:
    """Errors of kernels, and the accuracy of digits, beside the published one."""
    return [
        "## Janati's review: polynomial kernels on rows of length 1\n",
        *_errors(data, kept, quick=quick),
        *_accuracy(data, cells, kept, quick=quick),
    ]


def _told(found: dict[str, Any], name: str, digits: int) -> str:
    return f"{found[name]:.{digits}f}" if name in found else "not run"


# --- errors of kernels ----------------------------------------------------------------------------


def _errors(data: Path, kept: Kept, *, quick: bool) -> list[str]:
    sizes = (64, 256) if quick else (64, 256, 1024)
    rows, _ = digits(data, "test", 200)
    lines, curves = [], {}
    for p in DEGREES:
        exact = kernel(rows, rows, p)
        for name, make in MAPS.items():
            found = [
                kept.get(
                    {"what": "kernel error", "map": name, "degree": p, "k": k, "rows": len(rows)},
                    partial(_error, make, p, k, rows, exact),
                )
                for k in sizes
            ]
            lines.append([str(p), name, *(_told(one, "error", 4) for one in found)])
            if p in (3, 20):
                curves[f"{name}, p = {p}"] = (sizes, [one.get("error", np.nan) for one in found])
    picture = "quick_review" if quick else "review"
    plot(picture, curves, x="features k", y="error of the kernel (root mean square)", scale="log")
    name = named(data, "mnist_test.parquet", "MNIST")
    return [
        f"Root mean square errors of the kernel between {len(rows)} rows of length 1 ({name}, 14 × "
        "14 pixels), of five draws. RFF are of the Gaussian kernel that comes nearest for high "
        "degrees, and have its difference from the polynomial one as well. The kernel's constant "
        "is a column that is longer than all others together, of which every hyperplane has a "
        "share.\n",
        *markdown(["p", "map", *(f"k = {k:,}" for k in sizes)], lines),
        f"![Errors of the kernel over the number of features]({picture}.png)\n",
    ]


def _error(
    make: Callable[[int, int, int], sqlkrp.FeatureMap], p: int, k: int,
    rows: np.ndarray, exact: np.ndarray,
) -> dict[str, Any]:  # fmt: skip
    errors = []
    for seed in range(5):
        features = make(p, k, seed).fit(rows).transform(rows)
        errors.append(np.mean((features @ features.T - exact) ** 2))
    return {"error": float(np.sqrt(np.mean(errors)))}


# --- accuracy -------------------------------------------------------------------------------------


def _accuracy(data: Path, cells: Sequence[Cell], kept: Kept, *, quick: bool) -> list[str]:
    sizes = (512,) if quick else (512, 1024, 2048)
    train_rows, test_rows = (1_000, 500) if quick else (_TRAIN, _TEST)
    rows, labels = digits(data, "train", train_rows)
    test, wanted = digits(data, "test", test_rows)
    published = {(one.degree, one.k): one for one in cells if one.data == "usps"}
    lines = []
    for p in DEGREES:
        of: dict[str, Any] = {"what": "SRF accuracy", "degree": p, "rows": train_rows}
        found = [
            kept.get({**of, "k": k}, partial(_srf, p, k, rows, labels, test, wanted)) for k in sizes
        ]
        exact = kept.get({**of, "k": None}, partial(_exact, p, rows, labels, test, wanted))
        texts = [
            f"{_told(one, 'accuracy', 2)} [{published[p, k].mean:.2f}]"
            for k, one in zip((*sizes, None), (*found, exact), strict=True)
        ]
        lines.append([str(p), *texts])
    name = named(data, "mnist_train.parquet", "MNIST")
    return [
        f"Accuracy of a linear machine on spherical features (one draw), and of a machine with the "
        f"kernel itself: {train_rows:,} rows of {name} to train on, {test_rows:,} to test; in "
        "brackets what the review has of USPS, whose digits are others.\n",
        *markdown(["p", *(f"k = {k:,}" for k in sizes), "the kernel"], lines),
    ]


def _srf(
    p: int, k: int, rows: np.ndarray, labels: np.ndarray, test: np.ndarray, wanted: np.ndarray
) -> dict[str, Any]:
    one = MAPS["SRF"](p, k, 0).fit(rows)
    values, others = (one.transform(part).astype("float32") for part in (rows, test))
    weights = train(values, labels, range(10), _PENALTY)
    return {"accuracy": 100 * float((predict(weights, others, range(10)) == wanted).mean())}


def _exact(
    p: int, rows: np.ndarray, labels: np.ndarray, test: np.ndarray, wanted: np.ndarray
) -> dict[str, Any]:
    model = SVC(C=_PENALTY, kernel=partial(kernel, p=p)).fit(rows, labels)
    return {"accuracy": 100 * float((model.predict(test) == wanted).mean())}
