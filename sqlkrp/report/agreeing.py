"""What a model says of the rows of a table, held against their labels by aggregates there."""

from __future__ import annotations

import contextlib

from sqlkrp.engines.distortion import Sample
from sqlkrp.engines.inputs import Input
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.source import NUMERIC
from sqlkrp.models.model import Model
from sqlkrp.report.found import Agreement, Spent
from sqlkrp.report.said_classes import of_classes
from sqlkrp.report.said_numbers import of_numbers
from sqlkrp.report.scored import Scores

__all__ = ["agreement_in"]


def agreement_in(sample: Sample, model: Model, label: str | None) -> tuple[Agreement, Spent]:
    """What a model says of all rows, and the seconds that it took."""
    if label is not None:
        match_columns([label], sample.whole.types, where=sample.whole.name)
        _require_kind(model, sample.whole, label)
    scores = Scores(sample, model, label)
    with contextlib.ExitStack() as soon:
        spent = scores.made(soon)
        found = of_numbers(scores) if model.answers is None else of_classes(scores)
    return found, spent


def _require_kind(model: Model, data: Input, label: str) -> None:
    """Raise an error unless a column can be what the model says."""
    is_number = data.kinds[label] in NUMERIC
    if model.answers is None:
        if not is_number:
            raise ColumnError(
                f"column {label!r} of {data.name} is of type {data.types[label]}, and the model "
                "predicts numbers: name its label, or leave it out"
            )
        if len(model.program.names) > 1:
            raise ParameterError(
                f"the model makes {len(model.program.names)} predictions of a row, and a report "
                "holds one against a label: leave label out"
            )
    elif is_number == isinstance(model.answers.classes[0], str):
        wanted = "texts" if is_number else "numbers"
        raise ColumnError(
            f"column {label!r} of {data.name} is of type {data.types[label]}, and the model's "
            f"classes are {wanted}: name its label, cast it in a view, or leave it out"
        )
