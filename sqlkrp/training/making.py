"""What was learned as a model: the same stages that a trained pipeline becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sqlkrp.models.decisions import Decisions, of_inputs
from sqlkrp.models.model import PREDICTION, Model, answer_names
from sqlkrp.models.together import made_of
from sqlkrp.models.values import Feature, Reader, Value
from sqlkrp.stages import Answers, Array, Bounds, Category, Prepare, Program
from sqlkrp.training.candidates import Drawn
from sqlkrp.training.judging import Judge
from sqlkrp.training.learning import Learned

__all__ = ["made"]


def made(
    title: str,
    drawn: Drawn,
    learned: Learned,
    judge: Judge,
    front: Prepare,
    seed: int,
    left_out: Mapping[str, str],
    training: Mapping[str, Any],
) -> Model:
    """The model of what was learned."""
    values = _values(front)
    readers = [
        Reader(one, tuple(values[name] for name in one.program.prepare.columns))
        for one in drawn.maps
    ]
    items = [
        Feature(reader, place)
        for reader in readers
        for place in range(len(reader.map.program.names))
    ]
    stages = made_of(items)
    decisions = of_inputs(_decisions(learned, judge), stages.items)
    whole = [*stages.stages, *decisions.stages()]
    last = whole[-1]
    if isinstance(last, Answers):
        outputs, says = answer_names(last), last.says[:2]
    else:
        whole.append(Bounds(1, *(np.array([one]) for one in judge.bounds)))
        outputs, says = (PREDICTION,), (PREDICTION,)
    found = Model(title, None, stages.names, len(stages.stages), says, training=training)
    found.become(Program(tuple(whole), outputs), seed, dict(left_out))
    return found


def _values(front: Prepare) -> dict[str, Value]:
    """What each input is of the table."""
    made: dict[str, Category] = {one.name: one for one in front.categories}
    return {
        name: Value(made[name].column, category=made[name]) if name in made else Value(name)
        for name in front.columns
    }


def _decisions(learned: Learned, judge: Judge) -> Decisions:
    weights, intercept = learned.fit.coef, learned.fit.intercept
    if not judge.is_classification:
        return Decisions(weights, intercept)
    if learned.calibration is not None:
        matrix: Array = learned.calibration.matrix
        intercept = learned.calibration.decisions(intercept[None])[0]
        weights = matrix @ weights
    link = "sigmoid" if judge.n_targets == 1 else "softmax"
    return Decisions(weights, intercept, judge.classes, link)
