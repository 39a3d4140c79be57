"""How near the defaults come to the best that k features can do, at what cost, on every data set.

    python -m benchmarks.floors --data DIR [--sets a,b] [--runs N] [--out FILE]

No option is set but the degree and how many features. For each data set: the mean distortion of
squared distances (as in ``benchmarks.distortion``) as a multiple of 2/sqrt(pi k), which a random
projection of the kernel's own feature space comes to; and the additions and products of a row, as
planned. Distortions are computed by NumPy, whose features are those of the SQL. What 500 features
take in DuckDB is measured once for each. Writes ``benchmarks/results/floors.md``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import sqlkrp
from benchmarks.distortion import (
    COMPONENTS,
    DEGREES,
    columns,
    in_database,
    load,
    measure,
    operations,
    stored,
    told,
)
from benchmarks.measuring import markdown, versions
from benchmarks.tasks import TASKS

RESULTS = Path(__file__).parent / "results"
#: What the defaults are to stay below, by degree.
AIMS = {2: 1.08, 3: 1.15, 4: 1.30}
#: The features that are timed.
_TIMED = 500

Kind = type[sqlkrp.KRP | sqlkrp.MixedKRP]


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.floors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--sets", default=",".join(TASKS), help="names, with commas")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--out", type=Path, default=RESULTS / "floors.md")
    given = parser.parse_args()
    # Samples have columns in which nothing varies, and small tables fewer monomials than features.
    warnings.simplefilter("ignore", sqlkrp.errors.FitWarning)
    names = given.sets.split(",")
    lines, multiples = table(names, given.data, sqlkrp.KRP, given.runs, given.rows)
    of_mixed, _ = table(names, given.data, sqlkrp.MixedKRP, given.runs, given.rows)
    head = ["data", "rows × columns", "g", *(f"k = {k:,}" for k in COMPONENTS), "seconds"]
    report = [
        f"# Multiples of the floor\n\n`python -m benchmarks.floors --data DIR`; {versions()}\n",
        "The defaults, with no option but the degree: `KRP(degree=g, n_components=k)`. The mean "
        "relative error of squared distances in the kernel's feature space over all pairs of "
        f"{given.rows} rows, as a multiple of 2/√(πk): mean ± standard deviation of {given.runs} "
        "draws, each of other rows; then additions and products a row, as planned. By NumPy.\n",
        f"Seconds are one run from a table of all rows to one of {_TIMED} features in DuckDB, and "
        "those of the processor; the machine was at other work, too.\n",
        *markdown(head, lines),
        *summary(multiples),
        "## Low degrees exactly\n",
        "The same of `MixedKRP(degree=g, n_components=k)`.\n",
        *markdown(head, of_mixed),
    ]
    given.out.write_text("\n".join(report))
    print(f"wrote {given.out}")


def table(
    names: list[str], data: Path, kind: Kind, runs: int, sample: int
) -> tuple[list[list[str]], list[tuple[int, float]]]:
    """A line for each data set and degree; and of each cell the degree and the multiple."""
    lines, multiples = [], []
    for name in names:
        rows = rows_of(name, data)
        for degree in DEGREES:
            found = [of_floor(rows, degree, k, kind, runs, sample) for k in COMPONENTS]
            multiples += [(degree, mean) for mean, _ in found]
            maps = [kind(degree, k, random_state=0).fit(rows[:sample]) for k in COMPONENTS]
            cells = [
                f"{mean:.2f} ± {spread:.2f}; {operations(one):,}"
                for (mean, spread), one in zip(found, maps, strict=True)
            ]
            shape = f"{len(rows):,} × {rows.shape[1]}"
            lines.append(told([name, shape, str(degree), *cells, seconds(rows, degree, kind)]))
    return lines, multiples


def rows_of(name: str, data: Path) -> np.ndarray:
    """The inputs of a data set: MNIST as the paper scales it, categories as indicators."""
    if name == "mnist":
        return load(data / "mnist_test.parquet")
    if name == "w8a":
        return columns(data / "w8a_test.parquet")
    inputs, _ = TASKS[name].load(data)
    return inputs.fillna(inputs.mean()).to_numpy(dtype="float64")


def of_floor(
    rows: np.ndarray, degree: int, k: int, kind: Kind, runs: int, sample: int
) -> tuple[float, float]:
    """The mean distortion and its standard deviation, as multiples of the floor."""
    floor = 2 / np.sqrt(np.pi * k)
    mean, spread = measure(rows, degree, k, {}, runs, sample, kind)
    return mean / floor, spread / floor


def summary(multiples: list[tuple[int, float]]) -> list[str]:
    """The worst of each degree, beside what it is to stay below."""
    lines = []
    for degree, aim in AIMS.items():
        of_degree = [mean for g, mean in multiples if g == degree]
        below = sum(mean <= aim for mean in of_degree)
        shares = [f"{np.mean(of_degree):.2f}", f"{max(of_degree):.2f}", f"{aim:.2f}"]
        lines.append([str(degree), *shares, f"{below} of {len(of_degree)}"])
    return markdown(["g", "mean", "worst", "aim", "within it"], lines)


def seconds(rows: np.ndarray, degree: int, kind: Kind) -> str:
    """From a table to a table of features: by the clock, and of the processor."""
    connection = stored(rows)
    krp = kind(degree, _TIMED, random_state=0)
    krp.fit(sqlkrp.connect(connection).source("source"))
    started, worked = time.perf_counter(), time.process_time()
    in_database(connection, krp)
    return f"{time.perf_counter() - started:.1f}; {time.process_time() - worked:.1f}"


if __name__ == "__main__":
    main()
