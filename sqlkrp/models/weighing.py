"""The program of a model: what it is asked to say, and sums of sums as one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from sqlkrp.stages import Answers, Array, Butterflies, Linear, Program

__all__ = ["answer_names", "folded", "saying"]


def saying(program: Program, outputs: tuple[str, ...]) -> Program:
    """A program whose classifier says these; that of a regression as it is."""
    last = program.stages[-1]
    if not isinstance(last, Answers) or outputs == last.says:
        return program
    last = replace(last, says=outputs)
    return Program((*program.stages[:-1], last), answer_names(last))


def folded(program: Program, after: int) -> Program:
    """A program whose decisions weigh what is first of all that only sums make of columns.

    The first ``after`` stages make the features.
    """
    head, decisions = list(program.stages[:after]), program.stages[after]
    assert isinstance(decisions, Linear)
    weights, constant = decisions.matrix(), decisions.constant
    assert constant is not None
    while isinstance(head[-1], (Linear, Butterflies)):
        last = head.pop().linear  # type: ignore[attr-defined]
        if last.constant is not None:
            constant = constant + weights @ last.constant
        weights = _times(weights, last)
    stages = (*head, Linear.dense(weights, constant), *program.stages[after + 1 :])
    return Program(stages, program.names).only(every_column=True)


def _times(weights: Array, stage: Linear) -> Array:
    """Weights of a stage's outputs as weights of its inputs."""
    found = np.zeros((len(weights), stage.n_inputs))
    np.add.at(found.T, stage.input, (weights[:, stage.output] * stage.value).T)
    return found


def answer_names(stage: Answers) -> tuple[str, ...]:
    """The names of what a classifier says.

    Classes that many engines would take for one name, as they differ in case, are numbered too.
    """
    texts = [str(one) for one in stage.classes]
    alike = Counter(text.casefold() for text in texts)
    ends = [
        f"{text}_{place}" if alike[text.casefold()] > 1 else text
        for place, text in enumerate(texts)
    ]
    names: list[str] = []
    for one in stage.says:
        several = one != "label" and len(stage.classes) > 2
        names += [f"{one}_{end}" for end in ends] if several else [one]
    return tuple(names)
