"""The candidate that was taken, learned of all rows while they stream by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.session import Work
from sqlkrp.stages import Array
from sqlkrp.training.asked import SQUARES
from sqlkrp.training.candidates import Drawn
from sqlkrp.training.features import Features
from sqlkrp.training.folds import TEST, Copies, Split, mixed
from sqlkrp.training.judging import Calibration, Judge, calibrated_apart
from sqlkrp.training.labelled import Part, hashed
from sqlkrp.training.losses import Batch, fit_loss
from sqlkrp.training.moments import (
    Fit,
    Moments,
    decisions_of_all,
    solve,
    squared_error,
    sum_of,
)
from sqlkrp.training.rows import OnRows, Rows
from sqlkrp.training.searching import BY_PASSES, PENALTIES, Tried

__all__ = ["Learned", "learn"]

# Rows that are held out whose decisions are kept: a hashed sample of more.
_JUDGED = 200_000
_LARGEST_MARK = 2**64 - 1
# How far from what the sample says a penalty of all rows is looked for.
_FACTOR = 10.0
# The largest slope that is left, and the most passes: of models that say what rows held out are
# worth, and of the one that is kept.
_JUDGING, _KEEPING = (1e-4, 30), (1e-8, 100)


@dataclass(frozen=True)
class Judged:
    """Decisions of rows that the model did not see, with what is true of them."""

    decisions: Array
    labels: Array
    """Of a regression; of classes their codes."""
    codes: NDArray[np.int64]
    weights: Array | None
    learning_weights: Array | None
    """How much each counts where a model is learned, of which its calibration is a part."""

    def calibrated(self, calibration: Calibration | None) -> Judged:
        """With decisions that have probabilities."""
        if calibration is None:
            return self
        return replace(self, decisions=calibration.decisions(self.decisions))

    @classmethod
    def joined(cls, parts: Sequence[Judged]) -> Judged:
        """All rows."""
        return cls(*(
            _concatenated([getattr(one, name.name) for one in parts]) for name in fields(cls)
        ))  # fmt: skip

    @classmethod
    def calibrated_apart(cls, parts: Sequence[Judged]) -> Judged:
        """All rows, each with a calibration that did not see it: that of other folds."""
        decisions = calibrated_apart([
            (one.decisions, one.codes, one.learning_weights) for one in parts
        ])  # fmt: skip
        return cls.joined([
            replace(one, decisions=found) for one, found in zip(parts, decisions, strict=True)
        ])  # fmt: skip


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
        share = len(drawn.seen.drawn.inputs) / max(seen.rows, 1)
        penalties = _worth_trying(_near(taken.penalty, share), parts, by_fold, judge)
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
    parted = [
        [judged[fold][place] for fold in split.predicted if fold in judged]
        for place in range(len(penalties))
    ]
    calibrates = judge.is_classification and loss == SQUARES
    of_folds = (
        map(Judged.calibrated_apart, parted)
        if calibrates and judge.reads_probabilities
        else map(Judged.joined, parted)
    )
    best = int(np.argmax([
        judge.score(one.decisions, one.labels, one.codes, one.weights) for one in of_folds
    ]))  # fmt: skip
    calibration, folds = None, Judged.joined(parted[best])
    if calibrates:
        calibration = Calibration.of(folds.decisions, folds.codes, folds.learning_weights)
        folds = Judged.calibrated_apart(parted[best])
    whole = sum_of([seen, parts[TEST]]) if TEST in parts else seen
    if loss == SQUARES:
        (fit,) = solve(whole, [penalties[best]])
    else:
        fit = _fit(
            taken, rows, split, judge, whole, [*range(split.n_folds), TEST], _KEEPING, on_rows
        )
    test = judged[TEST][best].calibrated(calibration) if TEST in judged else None
    return Learned(
        fit,
        calibration,
        folds,
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
    nothing = partial(Moments.empty, pivot, judge.n_targets, middle)
    found = dict(rows.found(split, _Summing(drawn.writer, judge, nothing), on_rows))
    return {part: nothing() for part in range(split.n_folds)} | found


@dataclass(frozen=True)
class _Summing:
    """The pass that sums features and targets, of each part by itself."""

    features: Features
    judge: Judge
    nothing: Callable[[], Moments]

    def over(self, rows: Iterator[Part]) -> Iterator[tuple[int, Moments]]:
        """Sums of some rows."""
        sums: dict[int, Moments] = {}
        waiting: dict[int, list[tuple[Array, Array, Array | None]]] = {}

        def add(part: int) -> None:
            inputs, targets, weights = map(_concatenated, zip(*waiting.pop(part), strict=True))
            if part not in sums:
                sums[part] = self.nothing()
            for piece, features in self.features.pieces(inputs):
                counts = None if weights is None else weights[piece]
                sums[part].add(features, targets[piece], counts)

        for batch, codes, places, weights in rows:
            targets = self.judge.targets(batch.labels, codes)
            for part in np.unique(places).tolist():
                here = places == part
                counts = None if weights is None else weights[here]
                waiting.setdefault(part, []).append((batch.inputs[here], targets[here], counts))
                if sum(len(one) for one, _, _ in waiting[part]) >= self.features.rows_at_once:
                    add(part)
        for part in sorted(waiting):
            add(part)
        yield from sums.items()

    def added(self, found: Iterator[tuple[int, Moments]]) -> Iterator[tuple[int, Moments]]:
        """Those of all rows."""
        sums: dict[int, Moments] = {}
        for part, one in found:
            if part in sums:
                sums[part] += one
            else:
                sums[part] = one
        yield from sums.items()


def _near(of_sample: float, share: float) -> list[float]:
    """The penalties that may be best of all rows, of which the sample was this share.

    A penalty is a row's, and what it is to hold back falls no faster than by the number of rows.
    """
    least, most = of_sample * share / _FACTOR, of_sample * _FACTOR
    return [one for one in PENALTIES if 0.9 * least <= one <= 1.1 * most]


def _worth_trying(
    near: Sequence[float], parts: dict[int, Moments], by_fold: dict[int, Moments], judge: Judge
) -> Sequence[float]:
    """The penalties to compare by decisions: of a regression the one of the least error of all."""
    if judge.is_classification:
        return near
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

    def passes(work: Work) -> Iterator[Any]:
        return rows.found(split, _OfFeatures(work, drawn.writer, tuple(chosen)), on_rows)

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


@dataclass(frozen=True)
class _OfFeatures:
    """Work on features of the rows of some parts, as work on parted rows."""

    work: Work
    features: Features
    chosen: tuple[int, ...]

    def over(self, rows: Iterator[Part]) -> Iterator[Any]:
        """What it finds in some of the rows."""
        return self.work.over(chain.from_iterable(map(self._inside, rows)))

    def added(self, found: Iterator[Any]) -> Iterator[Any]:
        """What was found, added up."""
        return self.work.added(found)

    def _inside(self, part: Part) -> Iterator[Batch]:
        inside = np.isin(part.places, self.chosen)
        counts = None if part.weights is None else part.weights[inside]
        codes = part.codes[inside]
        for piece, features in self.features.pieces(part.batch.inputs[inside]):
            yield features, codes[piece], None if counts is None else counts[piece]


def _decisions(
    drawn: Drawn,
    rows: Rows,
    split: Split,
    judge: Judge,
    fits: dict[int, list[Fit]],
    total: int,
    on_rows: OnRows,
) -> dict[int, list[Judged]]:
    """Of each part the decisions of models that did not see it, for each penalty."""
    most = np.uint64(min(_LARGEST_MARK, int(2**64 * min(1.0, _JUDGED / max(total, 1)))))
    deciding = _Deciding(drawn.writer, judge, fits, rows.seed, most)
    kept: dict[int, list[_Decided]] = {}
    for part, one in rows.found(split, deciding, on_rows):
        kept.setdefault(part, []).append(one)
    return {part: _together(some, rows) for part, some in kept.items()}


@dataclass(frozen=True)
class _Deciding:
    """The pass that predicts some of the rows, each by models that did not see it."""

    features: Features
    judge: Judge
    fits: dict[int, list[Fit]]
    """Of each part those that its rows are predicted by."""
    seed: int
    most: np.uint64
    """The largest mark of a row that is predicted."""

    def over(self, rows: Iterator[Part]) -> Iterator[tuple[int, _Decided]]:
        """Of some rows, with the part that they are of."""
        kept: dict[int, list[_Decided]] = {}
        copies = Copies()
        for batch, codes, places, _ in rows:
            wanted = self._wanted(batch.row_marks, batch.labels, copies)
            for part in np.unique(places[wanted]).tolist():
                if part not in self.fits:  # the first of folds in the order of time
                    continue
                here = wanted & (places == part)
                pieces = self.features.pieces(batch.inputs[here])
                found = [decisions_of_all(self.fits[part], features) for _, features in pieces]
                decisions = [np.concatenate(one) for one in zip(*found, strict=True)]
                weights = None if batch.weights is None else batch.weights[here]
                labels = None if self.judge.is_classification else batch.labels[here]
                kept.setdefault(part, []).append((decisions, codes[here], labels, weights))
        for part, some in kept.items():
            yield part, _joined(some)

    def _wanted(
        self, marks: NDArray[np.uint64], labels: Array, copies: Copies
    ) -> NDArray[np.bool_]:
        """Which rows are predicted."""
        if self.most == _LARGEST_MARK:
            return np.ones(len(marks), bool)
        marks = copies.apart(marks, mixed(hashed(labels, self.seed)))
        found: NDArray[np.bool_] = mixed(marks, self.seed + 2) <= self.most
        return found

    def added(self, found: Iterator[tuple[int, _Decided]]) -> Iterator[tuple[int, _Decided]]:
        """The same, as nothing of it can be summed."""
        return found


#: Of some rows the decisions of each model, the codes of their classes in few bytes, labels that
#: are numbers, and weights.
_Decided = tuple[list[Array], Array, "Array | None", "Array | None"]


def _concatenated(parts: Sequence[Array | None]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)  # type: ignore[arg-type]


def _joined(some: Sequence[_Decided]) -> _Decided:
    """Those of all of them."""
    decisions, codes, labels, weights = zip(*some, strict=True)
    all_codes = np.concatenate(codes)
    return (
        [np.concatenate(of_model) for of_model in zip(*decisions, strict=True)],
        all_codes.astype(np.min_scalar_type(all_codes.max(initial=0))),
        None if labels[0] is None else np.concatenate(labels),
        None if weights[0] is None else np.concatenate(weights),
    )


def _together(kept: Sequence[_Decided], rows: Rows) -> list[Judged]:
    """For each penalty, the decisions of all rows."""
    decisions, short, numbers, weights = _joined(kept)
    codes = short.astype("i8")
    labels = codes if numbers is None else numbers
    learning = rows.learning_weights(weights, codes)
    return [Judged(one, labels, codes, weights, learning) for one in decisions]
