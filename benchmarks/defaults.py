"""What the defaults are worth: a linear model on raw columns, on features, and on exact ones.

    python -m benchmarks.defaults --data DIR [--sets a,b] [--out FILE]

For each data set with a label, on five random splits: the test R² of ridge regression, or the
accuracy of a linear classifier, on

- the raw columns;
- the features of the paper's kernel, which were the defaults once;
- the features of the defaults, with nothing set but how many, where there are fewer monomials;
- all monomials of degree two of columns prepared as the defaults prepare them, or where these are
  too many the exact kernel.

The model is the same for all of a set, and its penalty is chosen by cross-validation on the
training rows. Writes ``benchmarks/results/defaults.md``.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import sqlkrp
from benchmarks.measuring import markdown, versions
from benchmarks.tasks import MOST_ROWS, MOST_VALUES, TASKS, Task, ridge

RESULTS = Path(__file__).parent / "results"
SPLITS = 5
FEATURES = 1000
# The exact kernel takes a row and a column for each training row.
_EXACT_ROWS = 5_000

Split = tuple[pd.DataFrame, pd.DataFrame]
Arrays = tuple[np.ndarray, np.ndarray]
Features = Callable[[Split, int, int], Arrays]


@dataclass(frozen=True)
class Result:
    """The scores of each way to features, a score a split."""

    name: str
    shape: str
    k: int
    measure: str
    scores: dict[str, list[float]]

    def cells(self, ways: Iterable[str]) -> list[str]:
        """Means and standard deviations."""
        return [mean(self.scores[way]) if way in self.scores else "" for way in ways]

    def against(self, other: str, way: str = "new") -> str:
        """The difference split by split; and above, below, or within a standard deviation."""
        if other not in self.scores:
            return ""
        difference = np.subtract(self.scores[way], self.scores[other])
        return f"{mean(difference, '+')} ({self.verdict(other, way)})"

    def verdict(self, other: str, way: str = "new") -> str:
        """Whether the two means differ by more than the larger of their standard deviations."""
        one, two = self.scores[way], self.scores[other]
        difference = np.mean(one) - np.mean(two)
        if abs(difference) <= max(np.std(one), np.std(two)):
            return "within"
        return "above" if difference > 0 else "below"

    @property
    def falls_short(self) -> bool:
        """Not above the raw columns, or below the exact features."""
        short = "exact" in self.scores and self.verdict("exact") == "below"
        return short or self.verdict("raw") != "above"


def mean(values: Iterable[float], sign: str = "") -> str:
    """Mean and standard deviation, in one cell."""
    found = np.array(list(values))
    return f"{found.mean():{sign}.3f} ± {found.std():.3f}"


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.defaults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--sets", default=",".join(TASKS), help="names, with commas")
    parser.add_argument("--out", type=Path, default=RESULTS / "defaults.md")
    given = parser.parse_args()
    results, others = [], []
    for name in given.sets.split(","):
        for title, task, exact in variants(name):
            result = measured(title, task, given.data, WAYS | exact)
            results.append(result)
            if result.falls_short:
                tried = measured(title, task, given.data, OPTIONS)
                others.append(replace(tried, scores=result.scores | tried.scores))
    given.out.write_text("\n".join(report(results, others)))
    print(f"wrote {given.out}")


def variants(name: str) -> Iterable[tuple[str, Task, dict[str, Features]]]:
    """A set; and where it has too many monomials, fewer of its rows, for the exact kernel."""
    task = TASKS[name]
    yield name, task, {} if task.alike else {"exact": monomials}
    if task.alike:
        fewer = replace(task, rows=_EXACT_ROWS)
        yield f"{name}, {_EXACT_ROWS:,} rows", fewer, {"exact": exact_kernel}


def measured(name: str, task: Task, data: Path, ways: dict[str, Features]) -> Result:
    """The scores of a set."""
    inputs, target = task.load(data)
    k = monomials_of(inputs, 2)
    scores: dict[str, list[float]] = {way: [] for way in ways}
    for seed in range(SPLITS):
        train, test, known, wanted = train_test_split(
            inputs, target, test_size=0.25, random_state=seed
        )
        for way, features in ways.items():
            started = time.perf_counter()
            found = features((train, test), k, seed)
            # The kernel's own features are whitened if each is scaled.
            scale = [] if features is exact_kernel else [StandardScaler()]
            model = make_pipeline(*scale, task.model()).fit(found[0], known)
            scores[way].append(float(model.score(found[1], wanted)))
            told = f"{scores[way][-1]:.3f} in {time.perf_counter() - started:.1f} s"
            print(f"{name:<18} split {seed}, {way:<12} {told}", file=sys.stderr, flush=True)
    measure = "R²" if task.model is ridge else "accuracy"
    return Result(name, f"{len(inputs):,} × {inputs.shape[1]}", k, measure, scores)


def row(one: Result) -> list[str]:
    """A set's cells."""
    described = [one.name, one.shape, str(one.k), one.measure]
    return [*described, *one.cells([*WAYS, "exact"]), one.against("raw"), one.against("exact")]


def summary(results: list[Result]) -> str:
    """How many sets come out how."""
    sets = {
        "raw": [one for one in results if one.name in TASKS],
        "exact": [one for one in results if "exact" in one.scores],
    }
    told = []
    for other, of in sets.items():
        found = [one.verdict(other) for one in of]
        counts = [f"{word} on {found.count(word)}" for word in ("above", "within", "below")]
        told.append(f"against {other}: {', '.join(counts)} of {len(found)}")
    return f"The defaults {'; '.join(told)}.\n"


def report(results: list[Result], others: list[Result]) -> list[str]:
    """The page."""
    head = ("data", "rows × columns", "k", "measure", *WAYS, "exact", "new - raw", "new - exact")
    return [
        "# What the defaults are worth\n",
        f"`python -m benchmarks.defaults --data DIR`; {versions()}\n",
        f"Test R² of ridge regression, or accuracy of logistic regression, on {SPLITS} random "
        "splits, 3 : 1: mean ± standard deviation. Penalties by cross-validation on the training "
        "rows; every model's inputs "
        f"standardised. At most {MOST_ROWS:,} rows; text of at most {MOST_VALUES} values as "
        "indicators, other text left out; missing values take the training rows' mean. "
        f"k = {FEATURES:,} features, the map's own number, or as many as there are monomials.\n",
        "- old: `KRP(2, k, coef0=0, gamma=1, pool='achlioptas', n_terms=10, scaling=None)`\n"
        "- new: `KRP(n_components=k)`\n"
        "- exact: all monomials of degree two of columns that are standardised and held within "
        "±3, but for 0/1 columns; for mnist and w8a the kernel (gamma ⟨x, y⟩ + 1)² of the columns "
        "as they are, on fewer rows\n"
        "- new - raw, new - exact: of the same split, mean ± standard deviation; in brackets "
        "whether the two means differ by more than the larger of their own standard deviations\n",
        *markdown(head, [row(one) for one in results]),
        summary(results),
        "## Where the defaults are not above the raw columns, or below the exact features\n",
        "Scores of the defaults with one thing changed, less those of the raw columns.\n",
        *markdown(
            ("data", "the defaults", *OPTIONS),
            [[one.name, *(one.against("raw", way) for way in ("new", *OPTIONS))] for one in others],
        ),
    ]


# --- The ways: training and test rows to features -------------------------------------------------


def raw(split: Split, k: int, seed: int) -> Arrays:
    """The columns, missing values filled."""
    del k, seed
    train, test = filled(split)
    return train.to_numpy(), test.to_numpy()


def old(split: Split, k: int, seed: int) -> Arrays:
    """The paper's homogeneous kernel, in the paper's pool."""
    krp = sqlkrp.KRP(
        2, k, coef0=0.0, gamma=1.0, pool="achlioptas", s=3, n_terms=10, scaling=None,
        random_state=seed,
    )  # fmt: skip
    train, test = filled(split)
    return krp.fit_transform(train), krp.transform(test)


def new(split: Split, k: int, seed: int) -> Arrays:
    """The defaults."""
    return drawn(sqlkrp.KRP(n_components=k, random_state=seed), split)


def degree_three(split: Split, k: int, seed: int) -> Arrays:
    """The defaults but for the degree."""
    return drawn(sqlkrp.KRP(3, monomials_of(split[0], 3), random_state=seed), split)


def more(split: Split, k: int, seed: int) -> Arrays:
    """Four times as many features, where there are so many monomials."""
    return new(split, monomials_of(split[0], 2, 4 * FEATURES), seed)


def beside(split: Split, k: int, seed: int) -> Arrays:
    """The defaults' features and the raw columns."""
    pairs = zip(raw(split, k, seed), new(split, k, seed), strict=True)
    train, test = (np.hstack(pair) for pair in pairs)
    return train, test


def fourier(split: Split, k: int, seed: int) -> Arrays:
    """The Gaussian kernel by its own defaults."""
    return drawn(sqlkrp.RandomFourier(FEATURES, random_state=seed), split)


def drawn(one: sqlkrp.FeatureMap, split: Split) -> Arrays:
    """A map of the training rows; only what to do with missing values has to be said."""
    train, test = split
    if train.isna().any(axis=None):
        one.set_params(nulls="mean")
    return one.fit_transform(train), one.transform(test)


def monomials_of(inputs: pd.DataFrame, degree: int, most: int = FEATURES) -> int:
    """How many there are: more features than these add nothing."""
    return min(most, math.comb(inputs.shape[1] + degree, degree))


WAYS: dict[str, Features] = {"raw": raw, "old": old, "new": new}
OPTIONS: dict[str, Features] = {
    "degree=3": degree_three,
    f"n_components={4 * FEATURES}": more,
    "beside the raw columns": beside,
    "RandomFourier": fourier,
}


def monomials(split: Split, k: int, seed: int) -> Arrays:
    """All of degree one and two."""
    del k, seed
    train, test = prepared(split)
    every = PolynomialFeatures(2, include_bias=False)
    return every.fit_transform(train), every.transform(test)


def exact_kernel(split: Split, k: int, seed: int) -> Arrays:
    """As many features as training rows, whose products are the kernel exactly."""
    del k, seed
    train, test = (part.to_numpy() for part in filled(split))
    gamma = 1 / train.var(axis=0).sum()
    values, vectors = np.linalg.eigh((gamma * train @ train.T + 1) ** 2)
    there = values > 1e-10 * values[-1]
    roots, vectors = np.sqrt(values[there]), vectors[:, there]
    # One scale for all, so that the same penalties suit.
    size = np.sqrt(np.mean((vectors * roots).var(axis=0)))
    kernel = (gamma * test @ train.T + 1) ** 2
    return vectors * roots / size, kernel @ (vectors / roots) / size


def prepared(split: Split) -> Arrays:
    """Standardised and held within three standard deviations; 0/1 columns as they are."""
    train, test = filled(split)
    spread = train.std(ddof=0).replace(0, 1)
    indicators = train.columns[train.isin([0, 1]).all()]
    found = []
    for part in (train, test):
        one = ((part - train.mean()) / spread).clip(-3, 3)
        one[indicators] = part[indicators]
        found.append(one.to_numpy())
    return found[0], found[1]


def filled(split: Split) -> Split:
    """Missing values become the mean of the training rows."""
    train, test = split
    return train.fillna(train.mean()), test.fillna(train.mean())


if __name__ == "__main__":
    main()
