"""What is kept of a training: what was tried, what it came to, and what became of every column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sqlkrp.maps.parameters import title_of as title_of_map
from sqlkrp.stages import Array
from sqlkrp.training.asked import SQUARES
from sqlkrp.training.folds import Split
from sqlkrp.training.judging import Judge
from sqlkrp.training.labels import Labels
from sqlkrp.training.leaks import Leak
from sqlkrp.training.learning import Judged, Learned
from sqlkrp.training.rows import Rows
from sqlkrp.training.searching import Choice, Tried

__all__ = ["record", "title_of"]

_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_LOSS_NAMES = {SQUARES: "least squares"}


def title_of(taken: Tried) -> str:
    """What was trained, in one line."""
    loss = taken.drawn.candidate.loss
    maps = [title_of_map(one, one.parameters_) for one in taken.drawn.maps[1:]]
    return f"{_LOSS_NAMES.get(loss, loss)} on {' and '.join(['columns', *maps])}"


def record(
    labels: Labels,
    judge: Judge,
    split: Split,
    rows: Rows,
    tried: Sequence[Tried],
    choice: Choice,
    learned: Learned,
    leaks: Sequence[Leak],
    columns: Mapping[str, str],
    *,
    in_time: bool,
    seconds: float,
    seed: int,
) -> dict[str, Any]:
    """All that is kept, in plain values."""
    sign = 1 if judge.larger_is_better else -1
    found: dict[str, Any] = {
        "label": labels.column,
        "task": labels.task,
        "why": labels.why,
        "metric": judge.metric,
        "smaller_is_better": not judge.larger_is_better,
        "seed": seed,
        "folds": split.n_folds,
        "rows": learned.rows,
        "test_rows": learned.test_rows,
        "without_label": rows.counts.unlabelled,
        "without_weight": rows.counts.unweighted,
        "without_time": rows.counts.untimed,
        "bytes_read": rows.bytes_read,
        "seconds": round(seconds, 3),
        "searched_all": in_time,
        "candidates": [
            {
                "name": one.name,
                "features": one.drawn.n_features,
                "penalty": one.penalty,
                "mean": sign * one.mean,
                "spread": one.spread,
                "by_penalty": [
                    [penalty, float(f"{sign * mean:.6g}")] for penalty, mean in one.by_penalty
                ],
                "maps": [title_of_map(each, each.parameters_) for each in one.drawn.maps[1:]],
            }
            for one in tried
        ],
        "taken": choice.taken.name,
        "candidate": choice.taken.drawn.candidate.told(),
        "taken_because": choice.why,
        "raw": choice.raw.name,
        "penalty": learned.fit.penalty,
        "in_folds": _measures(judge, learned.folds),
        "held_out": None if learned.test is None else _measures(judge, learned.test),
        "leaks": [{"column": one.column, "score": sign * one.score} for one in leaks],
        "columns": dict(columns),
    }
    if learned.calibration is not None:
        found["probabilities"] = "calibrated on decisions of rows in folds"
    finite: dict[str, Any] = _finite(found)
    return finite


def _finite(value: Any) -> Any:
    """The same with None for what is no number, which JSON does not know."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _measures(judge: Judge, judged: Judged) -> dict[str, Any]:
    """What rows that were not seen say of a model."""
    given = judged.decisions, judged.labels, judged.codes, judged.weights
    found: dict[str, Any] = {"rows": len(judged.labels), **judge.values(*given)}
    if judge.is_classification:
        found["confusion"] = judge.confusion(*given)
    else:
        said = judge.said(judged.decisions)[:, 0]
        found["residuals"] = _quantiles(judged.labels.astype("f8") - said)
        found["predictions"] = _quantiles(said)
    return found


def _quantiles(values: Array) -> dict[str, float]:
    return dict(zip(map(str, _QUANTILES), np.quantile(values, _QUANTILES).tolist(), strict=True))
