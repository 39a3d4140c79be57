"""What candidates are worth on a sample in memory, by folds; and which of them is taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sqlkrp.display import Shown
from sqlkrp.errors import ParameterError
from sqlkrp.stages import Array
from sqlkrp.training.asked import SQUARES
from sqlkrp.training.candidates import Candidate, Drawn
from sqlkrp.training.folds import Split
from sqlkrp.training.judging import Judge, calibrated_apart
from sqlkrp.training.losses import Batch, Passes, fit_loss, here, logistic, squared_hinge
from sqlkrp.training.moments import Fit, Moments, solve, sum_of
from sqlkrp.training.seen import Sample, Seen

__all__ = ["BY_PASSES", "PENALTIES", "Tried", "chosen", "fold_scores", "try_all"]

#: The losses that take passes over the rows, by their names.
BY_PASSES = {one.name: one for one in (logistic, squared_hinge)}
#: Of least squares, a row; features have deviation 1.
PENALTIES = tuple(10.0**power for power in range(-8, 2))
# Of other losses, which take a fit each, that begins where the one before ended.
_FEWER_PENALTIES = (1e-2, 1e-3, 1e-4)
# As near as tells penalties apart.
_TOLERANCE, _PASSES = 2e-3, 25


@dataclass(frozen=True, repr=False)
class Tried(Shown):
    """A candidate and what it is worth."""

    drawn: Drawn
    penalty: float
    scores: tuple[float, ...]
    """Of each fold, with this penalty; more is better."""
    by_penalty: tuple[tuple[float, float], ...]
    """Each penalty that was tried, and the mean over the folds with it."""

    def _facts(self) -> dict[str, object]:
        return {"name": self.name, "mean": self.mean, "spread": self.spread}

    @property
    def name(self) -> str:
        """What it is called."""
        return self.drawn.candidate.name

    @property
    def mean(self) -> float:
        """Over the folds."""
        return float(np.nanmean(self.scores))

    @property
    def spread(self) -> float:
        """The standard deviation over the folds."""
        return _deviation(np.array(self.scores))

    def error_against(self, other: Tried) -> float:
        """The standard error of the difference to another, fold by fold."""
        apart = np.subtract(self.scores, other.scores)
        count = max(1, int(np.count_nonzero(~np.isnan(apart))))
        return _deviation(apart) / math.sqrt(count)


def _deviation(scores: Array) -> float:
    """Of the folds that say something."""
    there = scores[~np.isnan(scores)]
    return float(np.std(there, ddof=1)) if len(there) > 1 else 0.0


def try_all(
    candidates: Sequence[Candidate],
    seen: Seen,
    split: Split,
    judge: Judge,
    on_tried: Callable[[Tried], bool],
) -> list[Tried]:
    """What each is worth; ``on_tried`` says whether there is time for more."""
    found = []
    for one in candidates:
        found.append(_tried(one, seen, split, judge))
        if not on_tried(found[-1]):
            break
    return found


def _tried(candidate: Candidate, seen: Seen, split: Split, judge: Judge) -> Tried:
    drawn, sample = candidate.drawn(seen), seen.drawn
    features = drawn.features(sample.inputs).astype("f8")
    penalties = PENALTIES if candidate.loss == SQUARES else _FEWER_PENALTIES
    table = fold_scores(candidate.loss, penalties, features, sample, split, judge)
    if np.isnan(table).all():
        raise ParameterError(
            f"no fold says what a model's {judge.metric} is, as none has rows of each class that "
            "count: use another metric, or fewer folds"
        )
    says_something = ~np.isnan(table).all(axis=1)
    means = np.nanmean(table[says_something], axis=0)
    best = int(np.nanargmax(means))
    by_penalty = tuple(zip(penalties, means.tolist(), strict=True))
    return Tried(drawn, penalties[best], tuple(table[:, best].tolist()), by_penalty)


def fold_scores(
    loss: str,
    penalties: Sequence[float],
    features: Array,
    sample: Sample,
    split: Split,
    judge: Judge,
) -> Array:
    """Of each fold (row) what models of the others score, with each penalty (column)."""
    found = _fits(loss, penalties, features, sample, split, judge)
    folds, by_fold = zip(*found, strict=True)
    rows = [sample.only(sample.folds == fold) for fold in folds]
    table = np.empty((len(folds), len(penalties)))
    for place in range(len(penalties)):
        decisions = [
            fits[place].decisions(features[sample.folds == fold])
            for fold, fits in zip(folds, by_fold, strict=True)
        ]
        if loss == SQUARES and judge.reads_probabilities:
            decisions = calibrated_apart([
                (one, its.codes, its.learning_weights)
                for one, its in zip(decisions, rows, strict=True)
            ])  # fmt: skip
        for number, (found, of_fold) in enumerate(zip(decisions, rows, strict=True)):
            truths = of_fold.labels, of_fold.codes, of_fold.weights
            table[number, place] = judge.score(found, *truths)
    return table


def _fits(
    loss: str,
    penalties: Sequence[float],
    features: Array,
    sample: Sample,
    split: Split,
    judge: Judge,
) -> Iterator[tuple[int, Sequence[Fit]]]:
    """For each fold its number and the models of the others, one for each penalty."""
    for fold, before in _moments_before(features, sample, split, judge):
        if loss == SQUARES:
            yield fold, solve(before, penalties)
            continue
        inside = np.isin(sample.folds, list(split.before(fold)))
        weights = None if sample.learning_weights is None else sample.learning_weights[inside]
        rows: list[Batch] = [(features[inside], sample.codes[inside], weights)]
        (start,) = solve(before, [penalties[0]])
        found: list[Fit] = []
        for penalty in penalties:
            start = fit_loss(
                BY_PASSES[loss], _same(rows), features.shape[1], len(judge.classes),
                penalty, (before.means, before.deviations), start, _TOLERANCE, _PASSES,
            )  # fmt: skip
            found.append(start)
        yield fold, found


def _moments_before(
    features: Array, sample: Sample, split: Split, judge: Judge
) -> Iterator[tuple[int, Moments]]:
    """Each fold that can be predicted, with the moments of the rows that it is predicted from."""
    targets = judge.targets(sample.labels, sample.codes)
    pivot, middle = features.mean(axis=0), targets.mean(axis=0)
    parts = []
    for fold in range(split.n_folds):
        here = sample.folds == fold
        weights = None if sample.learning_weights is None else sample.learning_weights[here]
        moments = Moments.empty(pivot, judge.n_targets, middle)
        moments.add(features[here], targets[here], weights)
        parts.append(moments)
    for fold in split.predicted:
        before = sum_of([parts[one] for one in split.before(fold)])
        if parts[fold].rows and before.rows:  # of few rows, or few times, some have none
            yield fold, before


def _same(rows: list[Batch]) -> Passes:
    """Passes over rows that stay where they are."""
    return here(lambda: rows)


@dataclass(frozen=True)
class Choice:
    """The candidate that is taken, and why."""

    taken: Tried
    raw: Tried
    """The best of the columns alone."""
    why: str


def chosen(tried: Sequence[Tried], *, simplest: bool) -> Choice:
    """The best, but the columns alone unless it beats them by more than a standard error."""
    raw = max((one for one in tried if one.drawn.candidate.is_raw), key=lambda one: one.mean)
    others = [one for one in tried if not one.drawn.candidate.is_raw]
    if not others:
        return Choice(raw, raw, "nothing else was tried")
    best = max(others, key=lambda one: one.mean)
    gain, error = best.mean - raw.mean, best.error_against(raw)
    told = f"{best.name} gains {gain:+.4f} ± {error:.4f} on the columns alone"
    if not gain > error:
        return Choice(raw, raw, f"{told}, which is not more than its standard error: they are kept")
    if simplest:
        near = [one for one in others if best.mean - one.mean <= best.error_against(one)]
        simple = min(near, key=lambda one: one.drawn.n_features)
        if simple is not best:
            return Choice(simple, raw, f"{simple.name} is the simplest within a standard error")
    return Choice(best, raw, told)
