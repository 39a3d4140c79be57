"""A model: weights and a link behind the program of a map, and so with all that a map has."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

from sqlkrp.display import html_table
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.mapfile import digest
from sqlkrp.maps.allowed import Number, Whole
from sqlkrp.maps.columns import spelt_in
from sqlkrp.maps.parameters import title_of
from sqlkrp.models.folding import folded
from sqlkrp.models.polynomials import cheaper_as_polynomial, polynomial_program
from sqlkrp.models.predicting import Predicting
from sqlkrp.models.shortening import measured, shortened
from sqlkrp.models.trained import PREDICTION
from sqlkrp.models.weighing import answer_names, saying
from sqlkrp.sql.options import Options, name_list
from sqlkrp.sql.statement import Query
from sqlkrp.stages import Answers, Array, Linear, Prepare, Program

__all__ = ["PREDICTION", "Model", "answer_names"]

SomeModel = TypeVar("SomeModel", bound="Model")

#: How a model may be computed.
WAYS = ("auto", "features", "polynomial")


class Model(Predicting):
    """A trained linear model on the features of a map, or on columns as they are.

    :func:`sqlkrp.model` makes one of what scikit-learn trained, and :func:`sqlkrp.load` reads one.
    Its SQL gives labels, probabilities and decisions, or predictions, and no features.
    """

    # --- what it is -----------------------------------------------------------------------------

    @property
    def title(self) -> str:
        title, one = self.estimator, self.features
        if one is not None:
            title += f" on {title_of(one, one.get_params(False))}"
        return title if self.shortening is None else f"{title}, {self.shortening.title}"

    @property
    def description(self) -> str:
        return self.title

    @property
    def error(self) -> str | None:
        return None if self.shortening is None else self.shortening.error

    @property
    def outputs(self) -> tuple[str, str]:
        return "says", ", ".join(self.program.names)

    @property
    def token(self) -> str:
        # By features, as a polynomial, or of stored features: other tables each time.
        return f"{digest(self.program.body)[:8]}_"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title}>"

    def _repr_html_(self) -> str:
        names = self.program.names
        rows = {
            "trained": self.estimator,
            "columns": f"{len(self.program.prepare.columns):,}",
            "says": ", ".join(names if len(names) <= 12 else [*names[:10], "...", names[-1]]),
            "digest": self.digest_[:12],
            **self._judged(),
            **({} if self.error is None else {"error": self.error}),
        }
        return html_table(self.title, rows)

    def _judged(self) -> dict[str, Any]:
        """What rows that it had not seen said of it, and of the columns alone, as facts."""
        told = self.training
        if not told:
            return {}
        metric, where = told["metric"], "in folds" if told["held_out"] is None else "held out"
        where += "" if self.shortening is None else ", before it was shortened"
        value = (told["held_out"] or told["in_folds"]).get(metric)
        raw = next(one["mean"] for one in told["candidates"] if one["name"] == told["raw"])
        found = {f"{metric}, {where}": value, f"{metric} of columns alone, in folds": raw}
        return {name: f"{one:.4g}" for name, one in found.items() if one is not None}

    @property
    def program(self) -> Program:
        """The row program of what its SQL says."""
        if "program_" not in vars(self):  # it may take a second, so only when it is asked for
            self.program_ = self._written()
        return self.program_

    @property
    def twin(self) -> Program:
        return self._weighed(self.says)

    def sums_at(self, program: Program) -> int:
        """Where a program of it, in which sums of sums are one, has the sums of its decisions."""
        return len(program.stages) - (len(self._truth.stages) - self.after)

    def _written(self) -> Program:
        """What is said, by features or as a polynomial."""
        weighed = self.twin
        if self.as_ == "features":
            return weighed
        if self.as_ == "auto":
            return cheaper_as_polynomial(weighed, self.sums_at(weighed)) or weighed
        found = polynomial_program(weighed, self.sums_at(weighed))
        if found is None:
            raise ParameterError(
                "this model is no polynomial of few enough terms: leave out as_='polynomial'"
            )
        return found

    def _changed(self: SomeModel, **changes: Any) -> SomeModel:
        """The same model but for this; its program is made anew when it is asked for."""
        other = copy(self)
        for name in ("program_", "_renamed"):
            vars(other).pop(name, None)
        vars(other).update(changes)
        if self._renamed is None:
            return other
        return other.renamed(self.program.prepare.reads)

    def written_as(self: SomeModel, as_: str) -> SomeModel:
        """The same model, computed by its map's features, or as the polynomial that it is.

        ``auto`` is what has fewer operations.
        """
        if as_ not in WAYS:
            raise ParameterError(f"as_={as_!r} is not allowed: use one of {', '.join(WAYS)}")
        return self._changed(as_=as_)

    # --- what is asked of it ----------------------------------------------------------------------

    def saying(self: SomeModel, outputs: Iterable[str]) -> SomeModel:
        """The same model, of which its SQL says these: label, probability, decision."""
        outputs = tuple(dict.fromkeys(name_list("outputs", outputs)))
        self._require_said(outputs)
        return self._changed(says=outputs)

    def prefixed(self: SomeModel, prefix: str) -> SomeModel:
        """The same model, whose columns have names that begin so, such as ``predicted_``."""
        if not isinstance(prefix, str):
            raise ParameterError(f"prefix={prefix!r} is not allowed: give a text")
        return self._changed(before_names=prefix)

    def said_in(self: SomeModel, columns: Collection[str], where: str) -> SomeModel:
        """The same model, saying those of its outputs that have columns of their names."""
        answers = self.answers
        if answers is None:
            return self
        names = {
            one: [self.before_names + name for name in answer_names(replace(answers, says=(one,)))]
            for one in answers.says
        }
        there = [one for one, its in names.items() if spelt_in(columns, its)]
        if not there:
            raise ColumnError(
                f"{where} has no column of what the model says, which is {', '.join(names)}: give "
                "the table or file of its scores"
            )
        return self.saying(there)

    def of_features(self: SomeModel) -> SomeModel:
        """The same model over a table that holds its map's features, under their names."""
        prepare = self._truth.prepare
        nulls = "propagate" if prepare.nulls == "propagate" else "error"
        return self.behind(Prepare.plain(self.names, nulls, prepare.dtype))

    def behind(self: SomeModel, first: Prepare, factor: float = 1.0) -> SomeModel:
        """The same model over stored values, which a first stage reads; each times a factor."""
        if self.shortening is not None:
            raise ParameterError(
                "a short model weighs products of columns and no features: give the table of its "
                "columns, or the whole model"
            )
        truth = self._truth
        decisions = truth.stages[self.after]
        assert isinstance(decisions, Linear)
        weights = replace(decisions, value=decisions.value * factor)
        whole = Program((first, weights, *truth.stages[self.after + 1 :]), truth.names)
        program = saying(whole, self.says).only(every_column=True)
        program = replace(program, names=self.twin.names)
        other = self._with_program(program)
        other._renamed = program, self._original
        return other

    def cut_at(self: SomeModel, threshold: float) -> SomeModel:
        """The model of two classes that cuts them elsewhere than at the middle.

        A row is of the second class where its probability (or its decision, if there are no
        probabilities) is not less than the threshold. It is a model of its own, with its own
        digest.
        """
        answers = self._classifier()
        if len(answers.classes) != 2:
            raise ParameterError(
                f"a threshold cuts two classes, and there are {len(answers.classes)}: leave it out"
            )
        last = replace(answers, threshold=_threshold(answers, threshold))
        stages = (*self._truth.stages[:-1], last)
        return self._changed(whole_=replace(self._truth, stages=stages))

    def shortened(self: SomeModel, terms: int, on: Any = None) -> SomeModel:
        """The model of so many terms, the strongest of the polynomial that this one is.

        Strong are terms of large coefficients in the columns as the model reads them (scaled, if
        its map scales them), as :meth:`explain` lists them; the constant stays and is not counted.
        It is a model of its own, with its own digest, which says what the dropped terms add at
        most, where the columns have bounds; and with rows to be compared ``on`` (a DataFrame or an
        array) how far it is from this one there. :meth:`sqlkrp.Database.shorten` compares them on
        rows of a table.
        """
        if self.shortening is not None:
            raise ParameterError(f"this model has {self.shortening.title}: shorten the whole one")
        whole = folded(self._truth, self.after)
        kept = int(Whole(1).require("terms", terms))
        program, names, what = shortened(whole, self.sums_at(whole), kept)
        unread = set(whole.prepare.reads) - set(program.prepare.reads)
        left_out = dict.fromkeys(sorted(unread), "in no term that is left")
        short = self._changed(
            whole_=program,
            after=2,
            names=names,
            shortening=what,
            left_out_=self.left_out_ | left_out,
        )
        return short if on is None else short.compared_with(self, self._inputs(on))

    def compared_with(self: SomeModel, whole: SomeModel, inputs: Array) -> SomeModel:
        """The short model, saying how far it is from the whole one on rows of that one's inputs."""
        assert self.shortening is not None
        says = (self.number,) if self.answers is None else (self.number, "label")
        columns = whole._truth.prepare.columns
        read = [columns.index(one) for one in self._truth.prepare.columns]
        before, after = (
            whole._weighed(says).apply(inputs),
            self._weighed(says).apply(inputs[:, read]),
        )
        found = measured(before, after, self.number, has_labels=self.answers is not None)
        return self._changed(shortening=self.shortening._replace(measured=found))

    def query(self, relation: str, options: Options) -> Query:
        if options.output not in ("auto", "columns"):
            raise ParameterError(
                f"output={options.output!r} is for features: what a model says are columns"
            )
        return super().query(relation, replace(options, output="columns"))

    def explain(self, top: int | None = 20) -> Any:
        """The strongest terms of the polynomial that the model is; see :func:`explain`."""
        from sqlkrp.models.explaining import explain

        return explain(self, top)


def _threshold(stage: Answers, threshold: Any) -> float:
    is_share = stage.link != "none"
    number = float(Number(0 if is_share else -math.inf).require("threshold", threshold))
    if is_share and number > 1:
        raise ParameterError(f"threshold={threshold!r} is no probability: give one of 0 to 1")
    return number
