"""What a model says of each row beside its label, as a temporary table."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from sqlkrp.engines.asking import query_of, written
from sqlkrp.engines.distortion import Sample
from sqlkrp.models.model import Model
from sqlkrp.report.found import Spent
from sqlkrp.sql.names import quote
from sqlkrp.sql.options import Options

__all__ = ["COUNTING", "Scores"]

#: What is done, in an error.
COUNTING = "counting what was said"
_SCORING = "scoring the rows"
# Before the names of what a model says, so that none is that of a column that is kept.
_PREFIX = "sqlkrp_says_"


class Scores:
    """What a model says of each row beside its label, as a temporary table."""

    table: str
    """Its name as SQL."""
    said: list[str]
    """The columns of what is said, as SQL: of classes the label, and probabilities."""

    def __init__(self, sample: Sample, model: Model, label: str | None) -> None:
        self.source, self.n_rows, self.session = sample.whole, sample.n_rows, sample.session
        self.model, self.label = model, label
        self._sample = sample

    def made(self, drops: contextlib.ExitStack) -> Spent:
        """Make the table, which is dropped at the end of a block; the seconds that it took."""
        keep = () if self.label is None else (self.label,)
        session = self.session
        query, _ = query_of(session, self._asked, self.source, Options(keep=keep), run_now=True)
        statement = written(session, query)
        name = self._sample.named("scores", drops)
        with session.holding(statement):
            started = time.perf_counter()
            session.rows(f"EXPLAIN {statement.text}", "planning the scores")
            planned = time.perf_counter()
            session.create_temporary(name, statement.text, _SCORING)
            ended = time.perf_counter()
        session.restore_names(("temp", name), statement.columns, view=False)
        self.table = quote(name, session.dialect)
        self.said = [quote(one, session.dialect) for one in statement.columns[statement.n_kept :]]
        planning = planned - started
        return Spent(self.n_rows, planning, max(0.0, ended - planned - planning))

    @property
    def _asked(self) -> Model:
        """The model, saying what is counted."""
        model = self.model
        if model.answers is not None:
            known = [one for one in ("label", "probability") if one in model.answers.says]
            model = model.saying(known)
        return model.prefixed(_PREFIX)

    @property
    def true(self) -> str:
        """The column of labels, as SQL."""
        assert self.label is not None
        return quote(self.label, self.session.dialect)

    @property
    def judged(self) -> Mapping[str, Any]:
        """What rows said of the model that it had not seen, if that was kept."""
        told = self.model.training
        return {} if not told else told["held_out"] or told["in_folds"]

    def rows(self, select: str) -> list[tuple[Any, ...]]:
        """The rows of a small query."""
        return self.session.rows(select, COUNTING)
