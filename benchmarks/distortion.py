"""Mean distortion of squared distances, by the protocol of Lopez-Sanchez et al. (2018).

500 random test rows, all pairs: the mean of | |f(x) - f(y)|^2 / |phi(x) - phi(y)|^2 - 1 |, where
the denominator comes from the kernel itself; mean and standard deviation of the runs. MNIST is
scaled as x / 128 - 1; pairs at distance 0 are left out.

    python -m benchmarks.distortion --data DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path

import duckdb
import numpy as np

import sqlkrp
from benchmarks.measuring import PAPER

# (label, parameters, published means for k = 200, 500, 1000 by degree)
PUBLISHED = {
    "gaussian p=122": {2: (0.177, 0.151, 0.135)},
    "s=1 p=122": {2: (0.152, 0.136, 0.159)},
    "s=3 p=122": {2: (0.177, 0.150, 0.159)},
    "gaussian p=976": {2: (0.092, 0.079, 0.059), 3: (0.119, 0.095, 0.092)},
    "s=1 p=976": {2: (0.094, 0.068, 0.059), 3: (0.109, 0.092, 0.080)},
    "s=3 p=976": {2: (0.098, 0.072, 0.060), 3: (0.114, 0.117, 0.088)},
}
MAPS = {
    f"{name} p={p}": {**pool, "n_hyperplanes": p, "n_terms": 30}
    for p in (122, 976)
    for name, pool in {
        "gaussian": {"pool": "gaussian"},
        "s=1": {"pool": "achlioptas", "s": 1},
        "s=3": {"pool": "achlioptas", "s": 3},
    }.items()
} | {
    "hadamard t=10": {"pool": "hadamard", "n_terms": 10},
    "hadamard t=30": {"pool": "hadamard", "n_terms": 30},
}
COMPONENTS = (200, 500, 1000)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with mnist_test.parquet")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500)
    given = parser.parse_args()
    pixels = load(given.data / "mnist_test.parquet")
    print(f"{given.runs} runs of {given.rows} MNIST test rows; in brackets: published")
    print(f"{'':>15} {'g':>2}  " + "".join(f"{f'k={k}':>22}" for k in COMPONENTS))
    for degree in (2, 3):
        for label, parameters in MAPS.items():
            cells = []
            for i, k in enumerate(COMPONENTS):
                mean, spread = measure(pixels, degree, k, parameters, given.runs, given.rows)
                published = PUBLISHED.get(label, {}).get(degree)
                known = f"[{published[i]:.3f}]" if published else ""
                cells.append(f"{mean:.3f} ±{spread:.3f} {known}".ljust(21))
            print(f"{label:>15} {degree:>2}    " + " ".join(cells), flush=True)
        floor = "".join(f"{2 / np.sqrt(np.pi * k):.3f}".ljust(22) for k in COMPONENTS)
        print(f"{'2/sqrt(pi k)':>15} {degree:>2}    {floor}")


def load(path: Path) -> np.ndarray:
    """The pixels of a Parquet file of MNIST, scaled."""
    frame = duckdb.execute("SELECT * EXCLUDE (label) FROM read_parquet(?)", [str(path)]).df()
    return frame.to_numpy(dtype="float64") / 128 - 1


def measure(
    pixels: np.ndarray, degree: int, k: int, parameters: dict, runs: int, rows: int
) -> tuple[float, float]:
    """Mean and standard deviation over runs of the mean distortion."""
    found = []
    for run in range(runs):
        sample = np.random.default_rng(run).choice(len(pixels), rows, replace=False)
        inputs = pixels[sample]
        krp = sqlkrp.KRP(degree, k, random_state=run, **PAPER, **parameters).fit(inputs)
        features = krp.transform(inputs)
        found.append(mean_distortion(features @ features.T, (inputs @ inputs.T) ** degree))
    return float(np.mean(found)), float(np.std(found))


def mean_distortion(estimated: np.ndarray, exact: np.ndarray) -> float:
    """Mean relative error of squared distances, from two Gram matrices."""
    above = np.triu_indices(len(exact), 1)

    def squared_distances(gram: np.ndarray) -> np.ndarray:
        diagonal = np.diag(gram)
        return diagonal[above[0]] + diagonal[above[1]] - 2 * gram[above]

    true = squared_distances(exact)
    apart = true > 0
    return float(np.mean(np.abs(squared_distances(estimated)[apart] / true[apart] - 1)))


if __name__ == "__main__":
    main()
