"""The candidate that was taken, learned of all rows while they stream by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlkrp.stages import Array
from sqlkrp.training.asked import SQUARES
from sqlkrp.training.candidates import Drawn
from sqlkrp.training.folds import TEST, Split, mixed
from sqlkrp.training.judging import Calibration, Judge
from sqlkrp.training.losses import Batch, fit_loss
from sqlkrp.training.moments import Fit, Moments, solve, squared_error, sum_of
from sqlkrp.training.rows import Rows
from sqlkrp.training.searching import BY_PASSES, PENALTIES, Tried

__all__ = ["Learned", "learn"]

# Rows that are held out whose decisions are kept: a hashed sample of more.
_JUDGED = 200_000
# The largest slope that is left, and the most passes: of models that say what rows held out are
# worth, and of the one that is kept.
_JUDGING, _KEEPING = (1e-4, 30), (1e-8, 100)

OnRows = Callable[[int], None]


@dataclass(frozen=True)
class Judged:
    """Decisions of rows that the model did not see, with what is true of them."""

    decisions: Array
    labels: Array
    codes: NDArray[np.int64]
    weights: Array | None

    def calibrated(self, calibration: Calibration | None) -> Judged:
        """With decisions that have probabilities."""
        if calibration is None:
            return self
        found = calibration.decisions(self.decisions)
        return Judged(found, self.labels, self.codes, self.weights)


@dataclass(frozen=True)
class Learned:
    """A model of all rows, and how it did on rows that it had not seen."""

    fit: Fit
    calibration: Calibration | None
    folds: Judged
    """Of the rows of training, each by a model of other folds."""
    test: Judged | None
    """Of the rows that were held out of everything."""
    rows: int
    test_rows: int


def learn(
    taken: Tried, rows: Rows, split: Split, judge: Judge, total: int, on_rows: OnRows
) -> Learned:
    """Moments of every part in one pass, decisions of the rows held out in another."""
    drawn = taken.drawn
    parts = _moments(drawn, rows, split, judge, on_rows)
    seen = sum_of([parts[one] for one in range(split.n_folds)])
    by_fold = {fold: sum_of([parts[one] for one in split.before(fold)]) for fold in split.predicted}
    loss = drawn.candidate.loss
    if loss == SQUARES:
        penalties = _worth_trying(parts, by_fold, judge)
        fits = {fold: solve(one, penalties) for fold, one in by_fold.items()}
        fits[TEST] = solve(seen, penalties)
    else:
        penalties = [taken.penalty]
        fits = {
            fold: [_fit(taken, rows, split, judge, one, split.before(fold), _JUDGING, on_rows)]
            for fold, one in by_fold.items()
        }
        everything = range(split.n_folds)
        fits[TEST] = [_fit(taken, rows, split, judge, seen, everything, _JUDGING, on_rows)]
    judged = _decisions(drawn, rows, split, judge, fits, total, on_rows)
    of_folds = [judged[0][place] for place in range(len(penalties))]
    best = int(np.argmax([
        judge.score(one.decisions, one.labels, one.codes, one.weights) for one in of_folds
    ]))  # fmt: skip
    calibration = None
    if judge.is_classification and loss == SQUARES:
        one = of_folds[best]
        calibration = Calibration.of(one.decisions, one.codes, one.weights)
    whole = sum_of([seen, parts[TEST]]) if TEST in parts else seen
    if loss == SQUARES:
        (fit,) = solve(whole, [penalties[best]])
    else:
        fit = _fit(
            taken, rows, split, judge, whole, [*range(split.n_folds), TEST], _KEEPING, on_rows
        )
    test = judged[1][best].calibrated(calibration) if judged[1] else None
    return Learned(
        fit,
        calibration,
        of_folds[best].calibrated(calibration),
        test,
        seen.rows,
        parts[TEST].rows if TEST in parts else 0,
    )


def _moments(
    drawn: Drawn, rows: Rows, split: Split, judge: Judge, on_rows: OnRows
) -> dict[int, Moments]:
    """Those of each part."""
    sample = drawn.seen.drawn
    pivot = drawn.features(sample.inputs).mean(axis=0, dtype="f8")
    middle = judge.targets(sample.labels, sample.codes).mean(axis=0)
    parts = {one: Moments.empty(pivot, judge.n_targets, middle) for one in range(split.n_folds)}
    for batch, codes, places in rows.parts(split):
        features = drawn.features(batch.inputs)
        targets = judge.targets(batch.labels, codes)
        weights = rows.weights_to_learn(batch, codes)
        for part in np.unique(places).tolist():
            if part not in parts:
                parts[part] = Moments.empty(pivot, judge.n_targets, middle)
            here = places == part
            counts = None if weights is None else weights[here]
            parts[part].add(features[here], targets[here], counts)
        on_rows(len(batch))
    return parts


def _worth_trying(
    parts: dict[int, Moments], by_fold: dict[int, Moments], judge: Judge
) -> Sequence[float]:
    """The penalties to compare by decisions: of a regression the one of the least error."""
    if judge.is_classification:
        return PENALTIES
    errors = np.zeros(len(PENALTIES))
    for fold, before in by_fold.items():
        errors += [squared_error(parts[fold], one).sum() for one in solve(before, PENALTIES)]
    return [PENALTIES[int(np.argmin(errors))]]


def _fit(
    taken: Tried,
    rows: Rows,
    split: Split,
    judge: Judge,
    moments: Moments,
    chosen: Sequence[int],
    precision: tuple[float, int],
    on_rows: OnRows,
) -> Fit:
    """Another loss than squares, which takes passes over the rows of some parts."""
    drawn = taken.drawn

    def passes() -> Iterator[Batch]:
        for batch, codes, places in rows.parts(split):
            inside = np.isin(places, list(chosen))
            weights = rows.weights_to_learn(batch, codes)
            counts = None if weights is None else weights[inside]
            yield drawn.features(batch.inputs[inside]), codes[inside], counts
            on_rows(len(batch))

    (start,) = solve(moments, [taken.penalty])
    return fit_loss(
        BY_PASSES[drawn.candidate.loss],
        passes,
        drawn.n_features,
        len(judge.classes),
        taken.penalty,
        (moments.means, moments.deviations),
        start,
        *precision,
    )


def _decisions(
    drawn: Drawn,
    rows: Rows,
    split: Split,
    judge: Judge,
    fits: dict[int, list[Fit]],
    total: int,
    on_rows: OnRows,
) -> tuple[list[Judged], list[Judged]]:
    """Of rows in folds, and of those held out of everything, by models that did not see them."""
    kept: tuple[list[tuple[list[Array], Array, NDArray[np.int64], Array | None]], ...] = ([], [])
    most = np.uint64(min(2**64 - 1, int(2**64 * min(1.0, _JUDGED / max(total, 1)))))
    for batch, codes, places in rows.parts(split):
        on_rows(len(batch))
        wanted = mixed(batch.row_marks, rows.seed + 2) <= most
        for part in np.unique(places[wanted]).tolist():
            if part not in fits:  # the first of folds in the order of time
                continue
            here = wanted & (places == part)
            features = drawn.features(batch.inputs[here])
            weights = None if batch.weights is None else batch.weights[here]
            found = [one.decisions(features) for one in fits[part]]
            kept[part == TEST].append((found, batch.labels[here], codes[here], weights))
    return _together(kept[0]), _together(kept[1])


def _together(
    kept: Sequence[tuple[list[Array], Array, NDArray[np.int64], Array | None]],
) -> list[Judged]:
    """For each penalty, the decisions of all rows."""
    if not kept:
        return []
    decisions, labels, codes, weights = zip(*kept, strict=True)
    all_weights = None if weights[0] is None else np.concatenate(weights)
    return [
        Judged(
            np.concatenate([one[place] for one in decisions]),
            np.concatenate(labels),
            np.concatenate(codes),
            all_weights,
        )
        for place in range(len(decisions[0]))
    ]
