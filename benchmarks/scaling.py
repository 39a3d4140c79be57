"""How the time grows with rows, columns, features, terms and degree; a plot of each."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import matplotlib
from sklearn.kernel_approximation import PolynomialCountSketch

import sqlkrp
from benchmarks import peers
from benchmarks.measuring import PAPER, Way, markdown, measure

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SHAPE = {"rows": 60_000, "d": 784, "k": 1000, "t": 5, "g": 2}
CURVES = {
    "rows": (2_000, 6_000, 20_000, 60_000, 200_000, 600_000),
    "d": (16, 64, 256, 784, 2048),
    "k": (16, 64, 250, 1000, 4000),
    "t": (1, 3, 10, 30),
    "g": (1, 2, 3, 4),
}
QUICK = {"rows": (500, 2_000), "d": (16, 64), "k": (16, 64), "t": (1, 3), "g": (1, 2)}
# scikit-learn computes in double precision in memory: a copy of all features, and more.
SKETCH_ROWS = 60_000
ARROW, SQL = "sqlkrp, how='arrow'", "sqlkrp, in SQL"
BY_HAND, SKETCH, FLOOR = "(b) by hand", "(a) PolynomialCountSketch", "the floor"
WAYS = (SQL, ARROW, BY_HAND, SKETCH, FLOOR)


def section(folder: Path, results: Path, repeats: int, quick: bool) -> list[str]:
    """A table and a plot of every curve."""
    curves = QUICK if quick else CURVES
    won: dict[str, list[bool]] = {SQL: [], ARROW: []}
    lines = [
        "## Scaling: made rows of FLOAT, a Hadamard pool, in a DuckDB file\n",
        "All but what a table varies: "
        + ", ".join(f"{name} = {value:,}" for name, value in SHAPE.items())
        + ". Seconds.\n",
    ]
    found = {}
    for name, values in curves.items():
        # The sketch takes longer than all others together: one curve says how it grows.
        ways = {"sketch": name == "rows", "rows": SHAPE["rows"] if not quick else QUICK["rows"][-1]}
        found[name] = [
            seconds(folder, repeats, **{**SHAPE, **ways, name: value}) for value in values
        ]
        rows = [
            [f"{value:,}", *(f"{one[way]:.2f}" if way in one else "" for way in WAYS)]
            for value, one in zip(values, found[name], strict=True)
        ]
        lines += markdown([name, *WAYS], rows)
        for way, those in won.items():
            those += [one[way] <= one[BY_HAND] for one in found[name]]
    lines += [
        f"{way}: {sum(those)} of {len(those)} rows won against by hand.\n"
        for way, those in won.items()
    ]
    plot(curves, found, results / ("quick.png" if quick else "scaling.png"))
    return lines


def seconds(folder: Path, repeats: int, **shape: int) -> dict[str, float]:
    """The median seconds of each way to features of this shape."""
    path = folder / "scaling.duckdb"
    path.unlink(missing_ok=True)
    connection = duckdb.connect(str(path))
    columns = ", ".join(
        f"(hash(i, {j}) / 2.0 ** 64 - 0.5)::FLOAT AS c{j}" for j in range(shape["d"])
    )
    connection.execute(
        f"CREATE TABLE source AS SELECT i AS label, {columns} FROM range({shape['rows']}) AS r(i)"
    )
    ways = [Way(f"{name} {shape}", run) for name, run in ways_of(connection, **shape)]
    measure([*ways, floor := Way(FLOOR, peers.copy_table, True)], connection, repeats)
    connection.close()
    path.unlink()
    return {
        name: statistics.median(way.seconds)
        for name in WAYS
        for way in [*ways, floor]
        if way.name.startswith(name)
    }


def ways_of(
    connection: duckdb.DuckDBPyConnection,
    rows: int,
    d: int,
    k: int,
    t: int,
    g: int,
    sketch: bool,
) -> Iterable[tuple[str, Any]]:
    """The ways to compare; the last is sqlkrp's, so that its table is what the floor copies."""
    del d
    if sketch and rows <= SKETCH_ROWS:
        transformer = PolynomialCountSketch(degree=g, n_components=k, random_state=0)
        yield SKETCH, lambda c: peers.scikit_learn(c, transformer)
    krp = sqlkrp.KRP(g, k, pool="hadamard", n_terms=t, dtype="float32", random_state=0, **PAPER)
    krp.fit(sqlkrp.connect(connection).source("source"), exclude=["label"])
    yield BY_HAND, partial(peers.streamed, krp=krp, compute=peers.by_hand(krp))
    yield ARROW, lambda c: peers.in_database(c, krp, how="arrow")
    yield SQL, lambda c: peers.in_database(c, krp)


def plot(curves: dict[str, Any], found: dict[str, Any], path: Path) -> None:
    """Seconds over each of what varies, on log axes."""
    figure, axes = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.6), sharey=True)
    marks = dict(zip(WAYS, ("o-", "d-.", "s--", "^:", "k-"), strict=True))
    labels = {"rows": "rows", "d": "columns d", "k": "features k", "t": "terms t", "g": "degree g"}
    for axis, (name, values) in zip(axes, curves.items(), strict=True):
        for way, mark in marks.items():
            points = [
                (v, one[way]) for v, one in zip(values, found[name], strict=True) if way in one
            ]
            axis.plot(*zip(*points, strict=True), mark, label=way, markersize=4)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(values, [f"{value:,}" for value in values], rotation=45, fontsize=8)
        axis.minorticks_off()
        axis.set_xlabel(labels[name])
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
