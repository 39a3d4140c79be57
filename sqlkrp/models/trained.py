"""What was trained: weights and answers behind a map's program, as a model file holds them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import NotSaidError, ParameterError, TargetExistsError, not_fitted
from sqlkrp.mapfile import Content, kind_in
from sqlkrp.maps.automatic import Taken
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.fitted import Fitted
from sqlkrp.maps.parameters import plain, require_known
from sqlkrp.models.folding import folded
from sqlkrp.models.shortening import Shortening
from sqlkrp.models.weighing import saying
from sqlkrp.stages import Answers, Linear, Program, require

__all__ = ["PREDICTION", "Trained"]

#: What a regression says.
PREDICTION = "prediction"


class Trained(Fitted):
    """Weights behind the program of a map, and what is made of what they add up to."""

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
        shortening: Any = None,
        training: Any = None,
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
        self.shortening = Shortening.from_file(shortening)
        """Of a short model, which weighs products of columns: of how many terms, and its error."""
        self.training = training
        """What :func:`sqlkrp.train` kept of how it was found, by name; None of another's."""
        self.as_ = "auto"
        """How it is computed."""
        self.before_names = ""
        """What the names of its columns begin with, where they would be those of others."""

    @property
    def parameters_(self) -> dict[str, Any]:  # type: ignore[override]
        answers = self.answers
        return {
            "estimator": self.estimator,
            "features": None if self.features is None else plain(self.features),
            "says": list(self.says),
            "classes": None if answers is None else list(answers.classes),
            "threshold": None if answers is None else answers.threshold,
            **({} if self.shortening is None else {"shortening": self.shortening.as_plain()}),
        }

    @property
    def answers(self) -> Answers | None:
        """The last stage of a classifier; None of a regression."""
        last = self._truth.stages[-1]
        return last if isinstance(last, Answers) else None

    @property
    def number(self) -> str:
        """What it says in numbers: predictions, or behind labels decisions, else probabilities."""
        if self.answers is None:
            return PREDICTION
        return "decision" if "decision" in self.answers.says else "probability"

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of probabilities and decisions."""
        return np.array(self._classifier().classes)

    @property
    def _truth(self) -> Program:
        # What is asked of it is less than what it can say.
        if "whole_" not in vars(self._original):
            raise not_fitted("this Model has no weights: make one with sqlkrp.model")
        whole: Program = self._original.whole_
        return whole

    def content(self) -> Content:
        require_known(self.features)
        return Content(
            map=type(self).__name__,
            parameters={
                "estimator": self.estimator,
                "features": None if self.features is None else plain(self.features),
                "names": list(self.names),
                "after": self.after,
                "says": list(self.says),
                **({} if self.shortening is None else {"shortening": self.shortening}),
                **({} if self.training is None else {"training": self.training}),
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
        told = self.training
        require(told is None or isinstance(told, dict), "what is told of its training is no record")
        short = self.shortening
        require(short is None or short.is_of(len(self.names)), "what was dropped is told wrongly")
        last = stages[-1]
        known = last.says if isinstance(last, Answers) else (PREDICTION,)
        require(bool(self.says) and set(self.says) <= set(known), "it says what it does not know")

    def become(self, program: Program, seed: int, left_out: dict[str, str]) -> None:
        """Take the program of all that it can say."""
        self.whole_ = program
        self.seed_, self.left_out_ = seed, left_out

    def _require_said(self, outputs: tuple[str, ...]) -> None:
        """Raise ParameterError unless it knows to say these, and they are at least one."""
        known = (PREDICTION,) if self.answers is None else self.answers.says
        unknown = [one for one in outputs if one not in known]
        if "probability" in unknown and self.answers is not None:
            raise NotSaidError(
                f"{self.estimator} has decisions and no probabilities: train one that has them, "
                "such as LogisticRegression, or calibrate it with "
                "CalibratedClassifierCV(method='sigmoid')"
            )
        if unknown or not outputs:
            raise ParameterError(
                f"outputs={list(outputs)!r} is not allowed: this model says {', '.join(known)}"
            )

    def _classifier(self) -> Answers:
        if self.answers is None:
            raise NotSaidError(f"{self.estimator} is a regression: it has predictions alone")
        return self.answers

    def _weighed(self, says: tuple[str, ...]) -> Program:
        """The program of this, where sums of sums are one, and nothing is computed in vain."""
        program = folded(saying(self._truth, says), self.after)
        names = tuple(self.before_names + name for name in program.names)
        return replace(program, names=names)
