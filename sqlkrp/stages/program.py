"""A row program: stages, one after the other, and the names of what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqlkrp.display import Shown
from sqlkrp.errors import ColumnError, MissingValueError
from sqlkrp.stages.chunks import Step, run
from sqlkrp.stages.meaning import apply, cost, rounding, values_of
from sqlkrp.stages.parts import only, only_of, reading
from sqlkrp.stages.paths import plain_stages
from sqlkrp.stages.prepare import Prepare, missing_error
from sqlkrp.stages.records import Butterflies, Linear
from sqlkrp.stages.stage import Array, Cost, Stage, require, require_names

__all__ = ["Program", "hyperplane_names", "is_projection"]


@dataclass(frozen=True, eq=False, repr=False)
class Program(Shown):
    """A row program: Prepare, then stages, with a name for each output."""

    stages: tuple[Stage, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        require(bool(self.stages) and isinstance(self.stages[0], Prepare), "no first stage")
        later = self.stages[1:]
        require(not any(isinstance(stage, Prepare) for stage in later), "two first stages")
        require_names(self.names, "feature")
        for before, after in zip(self.stages, self.stages[1:], strict=False):
            require(before.n_outputs == after.n_inputs, "the stages do not fit each other")
        require(self.stages[-1].n_outputs == len(self.names), "names and outputs differ")

    def _facts(self) -> dict[str, Any]:
        stages = [type(stage).__name__ for stage in self.stages]
        return {"columns": len(self.prepare.columns), "features": len(self.names), "stages": stages}

    @property
    def prepare(self) -> Prepare:
        """The first stage."""
        first = self.stages[0]
        assert isinstance(first, Prepare)
        return first

    def then(self, stages: Sequence[Stage], names: Sequence[str]) -> Program:
        """A program that goes on with these stages, to outputs of these names."""
        return Program((*self.stages, *stages), tuple(names))

    @property
    def closing(self) -> int:
        """The place of the first of the stages at the end that read many values at once."""
        places = (i for i, stage in enumerate(self.stages) if stage.closes)
        return next(places, len(self.stages))

    @property
    def body(self) -> Program:
        """The program before those."""
        stages = self.stages[: self.closing]
        return Program(stages, tuple(f"value_{i}" for i in range(stages[-1].n_outputs)))

    def coded(self) -> Program:
        """The same with numbers for what is said in words."""
        return replace(self, stages=tuple(stage.coded() for stage in self.stages))

    @property
    def words(self) -> Mapping[int, tuple[Any, ...]]:
        """What outputs may say in words, by their places: a number is a place in these."""
        return self.stages[-1].words

    @property
    def cost(self) -> Cost:
        """Operations a row, of the stages as they stand."""
        additions, products = zip(*map(cost, self.stages), strict=True)
        return Cost(sum(additions), sum(products))

    def apply(self, X: Array) -> Array:
        """The NumPy twin of the whole program: rows of columns to rows of outputs."""
        out = np.empty((len(X), len(self.names)), dtype=self.prepare.dtype)
        self.writer()(X.T, out.T)
        return out

    def writer(self) -> Callable[[Array, Array], None]:
        """What writes outputs into an array (output, row), from an array (column, row).

        What it needs of the stages' tables is made once, for however many arrays.
        """
        steps = [
            Step(values_of(stage, np.dtype(self.prepare.dtype)), stage.n_outputs, is_matrix(stage))
            for stage in self.stages
        ]
        widest = max(stage.n_outputs for _, stage in plain_stages(self.stages))

        def write(X: Array, out: Array) -> None:
            try:
                run(steps, X, out, widest)
            except MissingValueError:  # which tells of some rows only
                raise missing_error(self.prepare, X) from None

        return write

    def rounding(self, X: Array, eps: float) -> Array:
        """How far two ways of computing each output may be apart, by rounding alone."""
        values = apply(self.prepare, X).astype("float64")
        with np.errstate(all="ignore"):
            errors = rounding(self.prepare, X, np.zeros(np.shape(X)), eps)
            for stage in self.stages[1:]:
                errors, values = rounding(stage, values, errors, eps), apply(stage, values)
        return errors

    def only(self, outputs: Array | None = None, *, every_column: bool = False) -> Program:
        """Some outputs (sorted; None: all), and no hyperplane or column that they do not need.

        With ``every_column`` all columns stay, to be looked at for missing values.
        """
        wanted = np.arange(len(self.names)) if outputs is None else outputs
        names = tuple(self.names[i] for i in wanted.tolist())
        later, _, wanted = only_of(self.stages[1:], wanted)
        if every_column:
            wanted = np.arange(self.prepare.n_outputs)
        first, kept, _ = only(self.prepare, wanted)
        if later:
            later = (reading(later[0], kept), *later[1:])
        return Program((first, *later), names)

    def projection(self) -> Program:
        """The program up to and with its projection: the bare <x, r>, before any delayed factor."""
        kinds = [is_projection(stage) for stage in self.stages]
        if True not in kinds:
            raise ColumnError("this map has no projection stage: ask for stage='features'")
        last = kinds.index(True)
        while last + 1 < len(kinds) and isinstance(self.stages[last + 1], Butterflies):
            last += 1
        names = hyperplane_names(self.stages[last].n_outputs)
        return Program(self.stages[: last + 1], names)


def is_projection(stage: Stage) -> bool:
    """Whether the outputs of a stage are <x, r> for a pool of hyperplanes r."""
    return isinstance(stage, Butterflies) or is_matrix(stage)


def is_matrix(stage: Stage) -> bool:
    """Whether NumPy computes a stage as a product of matrices."""
    return isinstance(stage, Linear) and not stage.picks


def hyperplane_names(count: int) -> tuple[str, ...]:
    """The names of so many outputs of a projection."""
    return tuple(f"hyperplane_{i}" for i in range(count))
