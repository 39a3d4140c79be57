"""From a table to a judged model: candidates on a sample, and the one that is taken on all rows."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sqlkrp.engines import connect
from sqlkrp.engines.sources import TableSource
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.advice import counted
from sqlkrp.maps.allowed import Number, OneOf, Whole
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.frames import is_relation, is_streamed, is_table
from sqlkrp.maps.reading import Reading, read_columns, what_becomes
from sqlkrp.maps.source import BOOLEAN, NUMERIC
from sqlkrp.models.model import Model
from sqlkrp.sql.options import name_list
from sqlkrp.stages import Prepare
from sqlkrp.training.asked import FOLDS, LOGISTIC, LOSSES, SAMPLE, SQUARES, TEST_SHARE, seconds_of
from sqlkrp.training.candidates import asked_for, by_default, raw, told_again
from sqlkrp.training.folds import Split
from sqlkrp.training.judging import Judge
from sqlkrp.training.labelled import Named
from sqlkrp.training.labels import CLASSIFICATION, Labels
from sqlkrp.training.leaks import leaks
from sqlkrp.training.learning import learn
from sqlkrp.training.making import made
from sqlkrp.training.recording import record, title_of
from sqlkrp.training.rows import Rows
from sqlkrp.training.searching import Tried, chosen, try_all
from sqlkrp.training.seen import Looking, Seen

__all__ = ["Progress", "train"]

_LARGEST_TEST = 0.9
# Of labels: sums of squares of what is nearer, or farther apart, are no numbers.
_LEAST_SPAN = 1e-120

#: Called with what is being done, and the rows that it has been done to.
Progress = Callable[[str, int], None]


def train(
    source: Any,
    label: str,
    *,
    maps: Iterable[FeatureMap] | None = None,
    like: Model | None = None,
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
    folds: int = FOLDS,
    test_share: float = TEST_SHARE,
    sample: int = SAMPLE,
    simplest: bool = False,
    budget: float | str | None = None,
    categories: str | None = "auto",
    dates: str | None = "auto",
    random_state: int = 0,
    on_progress: Progress = lambda _what, _rows: None,
) -> Model:
    """A model of a table's rows: maps beside its columns, compared by folds, the best one kept.

    ``source`` is ``db.source("t")`` or a DataFrame. Without ``maps`` the default search is made;
    with ``like``, a model that was trained before, nothing is tried but what was taken then.
    Candidates are compared on a ``sample`` of rows; the one that is taken is learned of all rows,
    which are read some at a time and not kept. ``test_share`` of the rows is held out of all of
    this, to say what the model is worth; the model that is returned has learned of these too.
    """
    given = dict(locals())
    if not isinstance(label, str):
        raise ParameterError(f"label={label!r} is no name of a column: give a text")
    if not isinstance(source, TableSource):
        return _of_frame(given)
    seconds = None if budget is None else seconds_of(budget)
    asked = _Asked(maps, like, metric, loss, class_weight, sample, simplest, seconds, random_state)
    asked.require_allowed()
    split = _split(folds, test_share, groups, time)
    named = Named(label, weights, groups, time)
    reading = _reading(source, named, include, exclude, keep, categories, dates)
    labels = Labels(label, source.kinds[label], task, source.texts_and_dates.get(label))
    # What leaves the range of numbers is seen in what comes out, or left out, and told in words.
    with source.session.transaction(keep=False), np.errstate(all="ignore"):
        return _Training(reading, named, labels, asked, on_progress).run(split)


def _of_frame(given: Mapping[str, Any]) -> Model:
    """The same of a DataFrame, by DuckDB in this process."""
    source = given["source"]
    if not (is_table(source) or is_streamed(source) or is_relation(source)):
        raise ParameterError(
            f"a {type(source).__name__} is no table of labelled rows: give db.source(name), or a "
            "DataFrame"
        )
    from sqlkrp.engines.duckdb_frames import keep_frame

    with connect() as database:
        keep_frame(database.connection, "frame", source)
        return train(**{**given, "source": database.source("frame")})


def _split(folds: int, test_share: float, groups: str | None, time: str | None) -> Split:
    """The parts that are asked for."""
    Whole(2).require("folds", folds)
    share = float(Number(0).require("test_share", test_share))
    if share > _LARGEST_TEST:
        raise ParameterError(
            f"test_share={test_share!r} is not allowed: hold out at most {_LARGEST_TEST}"
        )
    if groups is not None and time is not None:
        raise ParameterError(
            f"groups={groups!r} and time={time!r} both say which rows are held out: give one"
        )
    in_groups, in_order = groups is not None, time is not None
    by_class = not (in_groups or in_order)
    return Split(folds, share, by_class=by_class, in_order=in_order, in_groups=in_groups)


def _reading(
    source: TableSource,
    named: Named,
    include: Iterable[str] | None,
    exclude: Iterable[str],
    keep: Iterable[str],
    categories: str | None,
    dates: str | None,
) -> Reading:
    """The columns that are read, without those that are named beside them."""
    if source.is_sparse:
        raise ParameterError(
            f"{source.data.name} is (row, feature, value) input, and a model is trained on a table "
            "with one column a feature: give such a table"
        )
    for one in named.columns:
        if not isinstance(one, str):
            raise ParameterError(f"{one!r} is no name of a column: give a text")
    match_columns(named.columns, source.kinds, where=source.data.name)
    if named.weights is not None and source.kinds[named.weights] not in NUMERIC:
        raise ParameterError(
            f"column {named.weights!r} is of type {source.kinds[named.weights]}, and weights are "
            "numbers: cast it in a view"
        )
    included = None if include is None else name_list("include", include)
    if both := [one for one in named.columns if one in (included or ())]:
        raise ColumnError(f"column {both[0]!r} is both included and no feature: leave it out")
    beside = [*named.columns, *name_list("keep", keep)]
    return read_columns(
        source, included, name_list("exclude", exclude), beside, categories=categories, dates=dates
    )


@dataclass(frozen=True)
class _Asked:
    """How the search is to be made."""

    maps: Iterable[FeatureMap] | None
    like: Model | None
    metric: str | None
    loss: str
    class_weight: str | None
    sample: int
    simplest: bool
    budget: float | None
    seed: int

    def require_allowed(self) -> None:
        """Raise ParameterError unless it can be done."""
        OneOf(dict.fromkeys(LOSSES, "")).require("loss", self.loss)
        if self.like is not None:
            if self.maps is not None:
                raise ParameterError("a model to be like and maps to try are both given: give one")
            if not isinstance(self.like, Model) or not self.like.training:
                raise ParameterError(
                    f"{self.like!r} was not trained by sqlkrp.train: give a model that was"
                )
        if self.loss != SQUARES and self.maps is None:
            raise ParameterError(
                f"loss={self.loss!r} is for maps that are named, and none are: name some, or leave "
                "it out"
            )
        if self.class_weight is not None:
            OneOf({"balanced": ""}).require("class_weight", self.class_weight)
        Whole(10).require("sample", self.sample)
        Whole(0).require("random_state", self.seed)


@dataclass
class _Training:
    """One run: from the columns of a source to a model."""

    reading: Reading
    named: Named
    labels: Labels
    asked: _Asked
    on_progress: Progress

    def run(self, split: Split) -> Model:
        """All passes over the rows."""
        started = clock.perf_counter()
        source = self.reading.source
        assert isinstance(source, TableSource)
        seed = self.asked.seed
        rows = Rows(
            source.session, source.data, self.reading.columns, self.named, self.labels, seed
        )
        rows.split(split, partial(self.on_progress, "reading labels"))
        self._require_learnable(split)
        range = self.labels.least, self.labels.largest
        judge = Judge.of(self.labels.task, self._classes, self.asked.metric, range)
        if self.asked.class_weight is not None:
            if not judge.is_classification:
                raise ParameterError(
                    f"class_weight is for classes, and {self.labels.column!r} has numbers: leave "
                    "it out, or use task='classification'"
                )
            rows.balance(split)
        if self.asked.loss != SQUARES and not judge.is_classification:
            raise ParameterError(
                f"loss={self.asked.loss!r} is for classes, and {self.labels.column!r} has numbers: "
                f"use {SQUARES!r}"
            )
        seen = self._seen(rows, split, source)
        tried, in_time = self._search(seen, split, judge, started)
        choice = chosen(tried, simplest=self.asked.simplest)
        learned = learn(
            choice.taken, rows, split, judge, split.rows, partial(self.on_progress, "learning")
        )
        suspects = leaks(self._inputs_of(seen), seen, split, judge, choice.taken.mean)
        front = self._front(source)
        told = record(
            self.labels, judge, split, rows, tried, choice, learned, suspects,
            self._columns(front, seen), in_time=in_time,
            seconds=clock.perf_counter() - started, seed=seed,
        )  # fmt: skip
        return made(
            title_of(choice.taken), choice.taken.drawn, learned, judge, front, seed,
            self.reading.left_out, told,
        )  # fmt: skip

    def _seen(self, rows: Rows, split: Split, source: TableSource) -> Seen:
        """What the rows of training hold."""
        looking = Looking(self.asked.sample, self.asked.seed)
        (looked,) = rows.found(split, looking, partial(self.on_progress, "looking at columns"))
        if len(looked.folds) < 2:
            differ = self.named.groups or self.named.time
            alike = "are equal" if differ is None else f"have one value of {differ!r}"
            raise ParameterError(
                f"the rows to learn from are not in two folds, as nearly all {alike}: there is "
                "nothing to predict from others; give fewer folds, or another table or column"
            )
        seen = Seen(self.reading.columns, source.kinds, looked)
        if not seen.usable:
            raise ColumnError(
                f"no column of {source.data.name} has more than one value in the rows of training, "
                "in the range of numbers: there is nothing to learn from"
            )
        if self.labels.task == CLASSIFICATION and len(np.unique(seen.drawn.codes)) < 2:
            raise ParameterError(
                f"the rows to learn from have one class of {self.labels.column!r}, as all of the "
                "others are held out or too few: give more rows of them"
            )
        return seen

    def _search(
        self, seen: Seen, split: Split, judge: Judge, started: float
    ) -> tuple[list[Tried], bool]:
        """What candidates are worth, as far as there is time; and whether there was for all."""
        asked = self.asked

        def on_tried(one: Tried) -> bool:
            self.on_progress(one.name, len(seen.drawn.inputs))
            return asked.budget is None or clock.perf_counter() - started < asked.budget

        # The columns alone are always tried, and by both losses, but not held and unheld by both.
        hold = not split.in_order
        tried = try_all(raw(hold=hold), seen, split, judge, lambda _: True)
        others = []
        if judge.is_classification:
            best = max(tried, key=lambda one: one.mean)
            others.append(best.drawn.candidate.by(LOGISTIC))
        if asked.like is not None:
            self._require_same_task(asked.like)
            before = told_again(asked.like.training["candidate"])
            others += [] if before.is_raw else [before]
        elif asked.maps is None:
            others += by_default(seen, asked.seed, hold=hold)
        else:
            others += asked_for(asked.maps, asked.seed, asked.loss, hold=hold)
        more = try_all(others, seen, split, judge, on_tried)
        return [*tried, *more], len(more) == len(others)

    def _require_same_task(self, like: Model) -> None:
        task = like.training["task"]
        if task != self.labels.task:
            raise ParameterError(
                f"the model to be like was trained for a {task}, and this is a {self.labels.task}: "
                "give another model, or say the task"
            )

    @property
    def _classes(self) -> tuple[Any, ...]:
        return self.labels.classes if self.labels.task == CLASSIFICATION else ()

    def _require_learnable(self, split: Split) -> None:
        """Raise ParameterError unless there is something to be told apart, in every fold."""
        column, count = self.labels.column, split.rows
        if self.labels.task == CLASSIFICATION and not self.labels.are_told_apart:
            raise ParameterError(
                f"column {column!r} has whole numbers beyond 2^53, which are read as doubles and "
                "would not be told apart: cast it to text for classes, or to double"
            )
        classes = len(self.labels.codes)
        if self.labels.task == CLASSIFICATION and 2 * classes > count > 4:
            raise ParameterError(
                f"column {column!r} has {classes:,} classes in {count:,} rows, fewer than two "
                "each: name another label"
            )
        if self.labels.task == CLASSIFICATION and len(self.labels.codes) < 2:
            raise ParameterError(
                f"column {column!r} has one value in all labelled rows: there is nothing to tell "
                "apart"
            )
        if self.labels.task != CLASSIFICATION and not self.labels.largest > self.labels.least:
            raise ParameterError(
                f"column {column!r} is {self.labels.least:g} in all labelled rows: there is "
                "nothing to predict"
            )
        span = self.labels.largest - self.labels.least
        if self.labels.task != CLASSIFICATION and not _LEAST_SPAN < span < 1 / _LEAST_SPAN:
            raise ParameterError(
                f"column {column!r} has labels {span:.1g} apart, whose squares leave the range of "
                "numbers: rescale it in a view"
            )
        parts, what = split.n_folds + 1, "groups" if split.in_groups else "times"
        if (split.in_groups or split.in_order) and 0 < split.n_marks < parts:
            raise ParameterError(
                f"there are {split.n_marks} different {what}, fewer than {parts} parts to hold "
                "out: give fewer folds, or another column"
            )
        if count * (1 - split.test_share) < 2 * split.n_folds:
            raise ParameterError(
                f"{counted(count, 'labelled row')} are fewer than two for each of "
                f"{split.n_folds} folds: give more rows, or fewer folds"
            )

    def _inputs_of(self, seen: Seen) -> dict[str, list[int]]:
        """The places of the inputs that each column of the table makes."""
        columns = {one.name: one.column for one in self.reading.made}
        found: dict[str, list[int]] = {}
        for place, name in enumerate(seen.columns):
            found.setdefault(columns.get(name, name), []).append(place)
        return found

    def _columns(self, front: Prepare, seen: Seen) -> dict[str, str]:
        """What became of every column that was not kept aside."""
        found = what_becomes(front, self.reading.left_out, self.labels.column)
        useful = set(seen.usable)
        for column, places in self._inputs_of(seen).items():
            if not useful.intersection(seen.columns[place] for place in places):
                found[column] = "left out: it has one value, or values that leave the range"
        for role in ("weights", "groups", "time"):
            if (column := getattr(self.named, role)) is not None:
                found[column] = role
        return found

    def _front(self, source: TableSource) -> Prepare:
        """The inputs as a first stage."""
        plain = Prepare.plain(self.reading.columns)
        truths = tuple(one for one in plain.columns if source.kinds[one] == BOOLEAN)
        return replace(plain, categories=self.reading.made, booleans=truths)
