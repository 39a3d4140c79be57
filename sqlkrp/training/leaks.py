"""Columns that alone say nearly all: what is known only once the label is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sqlkrp.stages import Array
from sqlkrp.training.asked import SQUARES
from sqlkrp.training.folds import Split
from sqlkrp.training.judging import Judge
from sqlkrp.training.searching import fold_scores
from sqlkrp.training.seen import Sample, Seen

__all__ = ["Leak", "leaks"]

# The share of what all columns gain on guessing that one alone is suspected for.
_SUSPICIOUS = 0.9
_PENALTIES = (1e-6, 1e-3)
# The share of what is to be gained on guessing that all have to gain: where they say little, one of
# them may well say nearly as much.
_TELLING = 0.5
# So many columns are looked at, those that say most of the targets.
_LOOKED_AT = 20


@dataclass(frozen=True)
class Leak:
    """A column that is suspected, and what it scores alone."""

    column: str
    score: float


def leaks(
    columns: Mapping[str, Sequence[int]], seen: Seen, split: Split, judge: Judge, best: float
) -> list[Leak]:
    """The columns, as the places of their inputs, that get nearly as far as all of them."""
    sample = seen.drawn
    guessed = _score(np.zeros((len(sample.inputs), 0)), sample, split, judge)
    perfect = 1.0 if judge.larger_is_better else 0.0
    if len(columns) < 2 or not best - guessed >= _TELLING * (perfect - guessed):
        return []
    found = []
    shares = _shares(sample, judge)
    telling = sorted(columns, key=lambda one: -shares[columns[one]].sum())
    for column in telling[:_LOOKED_AT]:
        alone = _score(_alone(sample.inputs[:, columns[column]]), sample, split, judge)
        if alone - guessed >= _SUSPICIOUS * (best - guessed):
            found.append(Leak(column, alone))
    return sorted(found, key=lambda one: -one.score)


def _shares(sample: Sample, judge: Judge) -> Array:
    """Of each input the share of the targets that it says, in a straight line, a curve or a gap."""
    targets = judge.targets(sample.labels, sample.codes)
    targets = targets - targets.mean(axis=0)
    said = _alone(sample.inputs)
    said = said - said.mean(axis=0)
    squares = (said**2).sum(axis=0)[:, None] * (targets**2).sum(axis=0)
    products = (said.T @ targets) ** 2
    of_targets = np.divide(products, squares, out=np.zeros_like(products), where=squares > 0)
    found: Array = of_targets.sum(axis=1).reshape(3, -1).sum(axis=0)
    return found


def _alone(inputs: Array) -> Array:
    """What one column's inputs say: their numbers and squares, and whether they are missing."""
    missing = np.isnan(inputs)
    with np.errstate(all="ignore"):
        middle = np.nan_to_num(np.nanmean(np.where(missing.all(axis=0), 0.0, inputs), axis=0))
        spread = np.nan_to_num(np.nanstd(np.where(missing.all(axis=0), 0.0, inputs), axis=0))
    values = np.where(missing, 0.0, (inputs - middle) / np.where(spread > 0, spread, 1.0))
    return np.hstack([values, values**2, missing.astype("f8")])


def _score(features: Array, sample: Sample, split: Split, judge: Judge) -> float:
    """The mean over folds, with the better of the penalties."""
    scores = fold_scores(SQUARES, _PENALTIES, features, sample, split, judge)
    return float(np.max(np.nanmean(scores, axis=0)))
