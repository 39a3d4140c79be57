"""A model: weights and a link behind the program of a map, and so with all that a map has."""

from __future__ import annotations

import contextlib
import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlkrp.display import html_table
from sqlkrp.errors import ColumnError, NotFittedError, ParameterError, TargetExistsError
from sqlkrp.mapfile import Content, digest, kind_in
from sqlkrp.maps.allowed import Number
from sqlkrp.maps.automatic import Taken
from sqlkrp.maps.columns import spelt_in
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.fitted import Fitted
from sqlkrp.maps.parameters import plain, title_of
from sqlkrp.models.folding import folded
from sqlkrp.models.polynomials import cheaper_as_polynomial, polynomial_program
from sqlkrp.sql.options import Options, name_list
from sqlkrp.sql.statement import Query
from sqlkrp.stages import (
    Answers,
    Linear,
    Prepare,
    Program,
    require,
)

__all__ = ["PREDICTION", "Model", "answer_names"]

SomeModel = TypeVar("SomeModel", bound="Model")

#: What a regression says.
PREDICTION = "prediction"

#: How a model may be computed.
WAYS = ("auto", "features", "polynomial")


class Model(Fitted):
    """A trained linear model on the features of a map, or on columns as they are.

    :func:`sqlkrp.model` makes one of what scikit-learn trained, and :func:`sqlkrp.load` reads one.
    Its SQL gives labels, probabilities and decisions, or predictions, and no features.
    """

    kind = "model"
    prefix = PREDICTION
    label_ = None
    taken_: dict[str, Taken] = {}  # noqa: RUF012 - there is nothing to take

    def __init__(
        self,
        estimator: str,
        features: FeatureMap | None = None,
        names: Iterable[str] = (),
        after: int = 1,
        says: Iterable[str] = (),
    ) -> None:
        self.estimator = estimator
        """What was trained, in one line."""
        self.features = features
        """The map whose features it weighs, as it was before it was fitted; None: columns."""
        self.names = tuple(names)
        """What the weighed features are called."""
        self.after = after
        """How many stages make them."""
        self.says = tuple(says)
        """What its SQL says if nothing else is asked for."""
        self.as_ = "auto"
        """How it is computed."""
        self.before_names = ""
        """What the names of its columns begin with, where they would be those of others."""

    # --- what it is -----------------------------------------------------------------------------

    @property
    def title(self) -> str:
        if self.features is None:
            return self.estimator
        return f"{self.estimator} on {title_of(self.features, self.features.get_params(False))}"

    @property
    def description(self) -> str:
        return self.title

    @property
    def outputs(self) -> tuple[str, str]:
        return "says", ", ".join(self.program.names)

    @property
    def token(self) -> str:
        # By features, as a polynomial, or of stored features: other tables each time.
        return f"{digest(self.program.body)[:8]}_"

    @property
    def parameters_(self) -> dict[str, Any]:  # type: ignore[override]
        answers = self.answers
        return {
            "estimator": self.estimator,
            "features": None if self.features is None else plain(self.features),
            "says": list(self.says),
            "classes": None if answers is None else list(answers.classes),
            "threshold": None if answers is None else answers.threshold,
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title}>"

    def _repr_html_(self) -> str:
        rows = {
            "trained": self.estimator,
            "columns": f"{len(self.program.prepare.columns):,}",
            "says": ", ".join(self.program.names[:10]),
            "digest": self.digest_[:12],
        }
        return html_table(self.title, rows)

    @property
    def answers(self) -> Answers | None:
        """The last stage of a classifier; None of a regression."""
        last = self._truth.stages[-1]
        return last if isinstance(last, Answers) else None

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of probabilities and decisions."""
        return np.array(self._classifier().classes)

    @property
    def _truth(self) -> Program:
        # What is asked of it is less than what it can say.
        if "whole_" not in vars(self._original):
            raise NotFittedError("this Model has no weights: make one with sqlkrp.model")
        whole: Program = self._original.whole_
        return whole

    def content(self) -> Content:
        return Content(
            map=type(self).__name__,
            parameters={
                "estimator": self.estimator,
                "features": None if self.features is None else plain(self.features),
                "names": list(self.names),
                "after": self.after,
                "says": list(self.says),
            },
            seed=self.seed_,
            left_out=self.left_out_,
            label=None,
            taken={},
            program=self._truth,
        )

    @contextlib.contextmanager
    def saving(self, path: str | os.PathLike[str], *, replace: bool = True) -> Iterator[None]:
        """Write the model file at the end of a block that ends well; never over a map's."""
        kind = kind_in(Path(path))
        if kind not in (None, type(self).__name__):
            raise TargetExistsError(
                f"{str(path)!r} holds a map ({kind}), which this may need: give the model another "
                "name"
            )
        with super().saving(path, replace=replace):
            yield

    def restore(self, content: Content) -> None:
        """Become the model of a file, with whose parameters this one was made."""
        self._require_consistent(content.program)
        self.become(content.program, content.seed, content.left_out)

    def _require_consistent(self, program: Program) -> None:
        """Raise InconsistentMapError unless a program goes together with what a file says of it."""
        after, stages = self.after, program.stages
        require(isinstance(self.estimator, str), "what was trained has no name")
        features = self.features
        require(features is None or isinstance(features, FeatureMap), "its map is no map")
        inside = type(after) is int and 0 < after < len(stages)
        require(inside, "its decisions are not there")
        weights = stages[after] if inside else None
        require(isinstance(weights, Linear), "its decisions are no sums")
        assert isinstance(weights, Linear)
        require(weights.constant is not None, "its decisions have no intercept")
        require(len(self.names) == weights.n_inputs, "its features and weights differ in number")
        last = stages[-1]
        known = last.says if isinstance(last, Answers) else (PREDICTION,)
        require(bool(self.says) and set(self.says) <= set(known), "it says what it does not know")

    def become(self, program: Program, seed: int, left_out: dict[str, str]) -> None:
        """Take the program of all that it can say."""
        self.whole_ = program
        self.seed_, self.left_out_ = seed, left_out

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
                f"{self.title} is no polynomial of few enough terms: leave out as_='polynomial'"
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
        known = (PREDICTION,) if self.answers is None else self.answers.says
        unknown = [one for one in outputs if one not in known]
        if "probability" in unknown and self.answers is not None:
            raise ParameterError(
                f"{self.estimator} has decisions and no probabilities: train one that has them, "
                "such as LogisticRegression, or calibrate it with "
                "CalibratedClassifierCV(method='sigmoid')"
            )
        if unknown or not outputs:
            raise ParameterError(
                f"outputs={list(outputs)!r} is not allowed: this model says {', '.join(known)}"
            )
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

    def _weighed(self, says: tuple[str, ...]) -> Program:
        """The program of this, where sums of sums are one, and nothing is computed in vain."""
        program = folded(_saying(self._truth, says), self.after)
        names = tuple(self.before_names + name for name in program.names)
        return replace(program, names=names)

    def of_features(self: SomeModel) -> SomeModel:
        """The same model over a table that holds its map's features, under their names."""
        prepare = self._truth.prepare
        nulls = "propagate" if prepare.nulls == "propagate" else "error"
        return self.behind(Prepare.plain(self.names, nulls, prepare.dtype))

    def behind(self: SomeModel, first: Prepare, factor: float = 1.0) -> SomeModel:
        """The same model over stored values, which a first stage reads; each times a factor."""
        truth = self._truth
        decisions = truth.stages[self.after]
        assert isinstance(decisions, Linear)
        weights = replace(decisions, value=decisions.value * factor)
        whole = Program((first, weights, *truth.stages[self.after + 1 :]), truth.names)
        program = _saying(whole, self.says).only(every_column=True)
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

    def query(self, relation: str, options: Options) -> Query:
        if options.output not in ("auto", "columns"):
            raise ParameterError(
                f"output={options.output!r} is for features: what a model says are columns"
            )
        if options.how != "sql":
            raise ParameterError(f"how={options.how!r} is for features: leave it out")
        return super().query(relation, replace(options, output="columns"))

    def explain(self, top: int | None = 20) -> Any:
        """The strongest terms of the polynomial that the model is; see :func:`explain`."""
        from sqlkrp.models.explaining import explain

        return explain(self, top)

    # --- as scikit-learn has it -------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """The labels of rows, or their predictions, computed by NumPy."""
        if self.answers is None:
            found = self._weighed(self.says).apply(self._inputs(X))
            return found[:, 0] if found.shape[1] == 1 else found
        places = self._said(X, "label")[:, 0]
        missing = np.isnan(places)
        labels = self.classes_[np.where(missing, 0, places).astype(int)]
        return np.where(missing, None, labels) if missing.any() else labels

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The decisions: one a class, or of two classes that for the second."""
        if "decision" not in self._classifier().says:
            raise ParameterError(f"{self.estimator} has no decisions: ask for predict_proba")
        found = self._said(X, "decision")
        return found[:, 0] if found.shape[1] == 1 else found

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class."""
        self._classifier()
        self.saying(["probability"])  # which says so if there are none
        found = self._said(X, "probability")
        return np.column_stack([1 - found, found]) if found.shape[1] == 1 else found

    def _said(self, X: Any, what: str) -> NDArray[Any]:
        return self._weighed((what,)).apply(self._inputs(X))

    def _inputs(self, X: Any) -> NDArray[Any]:
        return self._original.inputs(X)

    def _classifier(self) -> Answers:
        if self.answers is None:
            raise ParameterError(f"{self.estimator} is a regression: it has predictions alone")
        return self.answers


def _threshold(stage: Answers, threshold: Any) -> float:
    is_share = stage.link != "none"
    number = float(Number(0 if is_share else -math.inf).require("threshold", threshold))
    if is_share and number > 1:
        raise ParameterError(f"threshold={threshold!r} is no probability: give one of 0 to 1")
    return number


def _saying(program: Program, outputs: tuple[str, ...]) -> Program:
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
