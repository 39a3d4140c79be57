"""What the program of a model is asked to say, and the names of that."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sqlkrp.stages import Answers, Program

__all__ = ["answer_names", "saying"]


def saying(program: Program, outputs: tuple[str, ...]) -> Program:
    """A program whose classifier says these; that of a regression as it is."""
    last = program.stages[-1]
    if not isinstance(last, Answers) or outputs == last.says:
        return program
    last = replace(last, says=outputs)
    return Program((*program.stages[:-1], last), answer_names(last))


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
