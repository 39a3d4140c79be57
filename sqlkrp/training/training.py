"""From a table to a judged model: candidates on a sample, and the one that is taken on all rows."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqlkrp.engines.sources import TableSource
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.allowed import Number, OneOf, Whole
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.monomials import Monomials
from sqlkrp.models.model import Model
from sqlkrp.sql.options import name_list
from sqlkrp.stages import Prepare
from sqlkrp.training.candidates import LOSSES, SQUARES, asked_for, by_default
from sqlkrp.training.folds import Split
from sqlkrp.training.judging import Judge
from sqlkrp.training.labels import Labels
from sqlkrp.training.leaks import Leak, leaks
from sqlkrp.training.learning import Learned, learn
from sqlkrp.training.making import made
from sqlkrp.training.rows import Named, Rows
from sqlkrp.training.searching import Choice, Tried, chosen, try_all
from sqlkrp.training.seen import Seen

__all__ = ["Progress", "train"]

#: Called with what is being done, and the rows that it has been done to.
Progress = Callable[[str, int], None]

_SAMPLE, _FOLDS, _TEST_SHARE = 5_000, 5, 0.2


def train(
    source: Any,
    label: str,
    *,
    maps: Iterable[FeatureMap] | None = None,
    task: str | None = None,
    metric: str | None = None,
    loss: str = SQUARES,
    include: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    keep: Iterable[str] = (),
    weights: str | None = None,
    groups: str | None = None,
    time: str | None = None,
    class_weight: str | None = None,
    folds: int = _FOLDS,
    test_share: float = _TEST_SHARE,
    sample: int = _SAMPLE,
    simplest: bool = False,
    budget: float | None = None,
    categories: str | None = "auto",
    dates: str | None = "auto",
    random_state: int = 0,
    on_progress: Progress = lambda _what, _rows: None,
) -> Model:
    """A model of a table's rows: maps beside its columns, compared by folds, the best one kept.

    ``source`` is ``db.source("t")`` or a DataFrame. Without ``maps`` the default search is made.
    Candidates are compared on a ``sample`` of rows; the one that is taken is learned of all rows,
    which are read some at a time and not kept. ``test_share`` of the rows is held out of all of
    this, to say what the model is worth; the model that is returned has learned of these too.
    """
    started = clock.perf_counter()
    if not isinstance(source, TableSource):
        return _of_frame(source, label, locals())
    OneOf(dict.fromkeys(LOSSES, "")).require("loss", loss)
    if class_weight is not None:
        OneOf({"balanced": ""}).require("class_weight", class_weight)
    Whole(2).require("folds", folds)
    Whole(10).require("sample", sample)
    share = float(Number(0).require("test_share", test_share))
    if share > 0.9:
        raise ParameterError(f"test_share={test_share!r} is not allowed: hold out at most 0.9")
    named = Named(label, weights, groups, time)
    excluded, kept = name_list("exclude", exclude), name_list("keep", keep)
    included = None if include is None else name_list("include", include)
    front = _front(source, named, included, excluded, kept, categories, dates)
    kinds = source.data.kinds
    labels = Labels(label, kinds[label], task)
    rows = Rows(source.session, source.data, front.program.prepare, named, labels, random_state)
    with source.session.transaction(keep=False):
        return _Trained(source, front, rows, labels).run(
            started=started, maps=maps, metric=metric, loss=loss, folds=folds, share=share,
            sample=sample, simplest=simplest, budget=budget, seed=random_state,
            class_weight=class_weight, on_progress=on_progress,
        )  # fmt: skip
