"""What every feature map shares before SQL: fitting to columns, and the NumPy twin.

Names and behaviour are scikit-learn's, without depending on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps.advice import warn_of_columns, warn_of_features
from sqlkrp.maps.arrays import as_source, order_of, require_whole
from sqlkrp.maps.automatic import Seen, SeenColumns, Taken, gamma_of
from sqlkrp.maps.columns import label_columns
from sqlkrp.maps.estimator import Estimator
from sqlkrp.maps.frames import local
from sqlkrp.maps.kernels import Kernel
from sqlkrp.maps.parameters import copied
from sqlkrp.maps.preparing import prepare_stage, require_values
from sqlkrp.maps.reading import Reading, read_columns
from sqlkrp.maps.source import FLOAT32, Inputs, Statistics
from sqlkrp.maps.variances import Pair
from sqlkrp.pools import generator, seed_of
from sqlkrp.sql.options import name_list
from sqlkrp.stages import Program, Stage, plain_stages

__all__ = ["Transformer"]

SomeMap = TypeVar("SomeMap", bound="Transformer")


class Transformer(Estimator):
    """A feature map as scikit-learn knows one: parameters, and after ``fit`` a row program.

    A concrete map declares its parameters, and defines ``draw`` (its stages after Prepare) and,
    if not all values of them go together, ``check``.
    """

    # --- what a concrete map says -------------------------------------------------------------

    def constant(self, n_columns: int) -> float | None:
        """The value of a constant column beside so many inputs, or None for no such column."""
        return None

    def draw(self, inputs: Inputs, rng: np.random.Generator) -> list[Stage]:
        """The stages after Prepare; most maps read no more of the inputs than their number."""
        raise NotImplementedError

    def names(self, columns: Sequence[str]) -> list[str]:
        """The names of its features, of inputs of these names."""
        return [f"{self.prefix}_{i}" for i in range(self.n_components)]

    def legend_of(self, program: Program) -> dict[str, dict[str, int]]:
        """Of a map whose features are named by what they multiply: what the numbered ones do.

        Each one's columns and their powers, as ``program`` has them.
        """
        return {}

    # --- fitting ------------------------------------------------------------------------------

    def fit(
        self: SomeMap,
        source: Any,
        y: Any = None,
        *,
        label: str | None = None,
        include: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        keep: Iterable[str] = (),
        categories: str | None = None,
        dates: str | None = None,
    ) -> SomeMap:
        """Draw the map for the columns of ``source``.

        Where there are rows, each column's statistics are read, by aggregates, unless no parameter
        asks for them (``scaling``, ``clip`` and ``gamma`` are ``"auto"``, and ask). The ``label``
        and the columns in ``exclude`` are no features. Those in ``keep``, and those that the
        database knows as keys, are none unless ``include`` names them; with ``include`` only those
        it names are. Columns that are not numbers are left out (``left_out_`` says why). The label
        is kept beside the features that a database makes.

        With ``categories="auto"`` a column of at most 50 texts (or of an enum) is read as 0 and 1:
        one input for each text that it holds here, and one for missing values if it has such. With
        ``dates="auto"`` a date or time is read as days from 1970-01-01. ``columns_`` says what
        becomes of each column.
        """
        drawn = copied(self)
        drawn.check_parameters()
        exclude, keep = name_list("exclude", exclude), name_list("keep", keep)
        include = None if include is None else name_list("include", include)
        described = as_source(source)
        kept = [*label_columns(label, described, include), *keep]
        reading = read_columns(
            described, include, exclude, kept, categories=categories, dates=dates
        )
        order = order_of(described)
        described, columns = reading.source, reading.columns
        kinds = described.kinds
        dtype = self.first.dtype
        if dtype == "auto":
            single = all(kinds[name] == FLOAT32 for name in columns)
            dtype = "float32" if single else "float64"
        # What leaves the range of numbers is looked for, and told in words.
        with np.errstate(over="ignore", invalid="ignore"):
            moments = drawn.first.look(reading)
            if drawn.first.nulls == "error":
                require_whole(described, columns, reading.told, moments)
            drawn.settle(SeenColumns(reading.told, moments, described.is_sparse))
            prepare = prepare_stage(drawn.first, reading, moments, dtype)
        prepare = replace(prepare, constant=drawn.constant(prepare.n_outputs))
        seed = seed_of(self.random_state)
        try:
            with np.errstate(all="ignore"):
                stages = drawn.draw(Inputs(prepare, described), generator(seed))
                _require_range(stages, dtype)
        except (ArithmeticError, np.linalg.LinAlgError) as bad:
            raise ParameterError(
                f"this {type(self).__name__} leaves the range of numbers ({bad}): use parameters "
                "nearer to 1, or scale the columns"
            ) from bad
        self.program_ = Program((prepare, *stages), tuple(drawn.names(reading.told)))
        self.parameters_ = copied(self).get_params(deep=False)
        self.seed_ = seed
        self.left_out_ = reading.left_out
        self.taken_ = drawn.all_taken()
        self.label_ = label
        self._order = order
        warn_of_columns(described, columns, reading.told, moments, chosen=include is not None)
        drawn.first.warn_of_rank(len(columns))
        return self

    def warn_of_rank(self, n_columns: int) -> None:
        """Warn of more features than the kernel has products of columns."""
        degree = self.polynomial_degree
        if degree is not None:
            # A constant term adds the products of fewer columns.
            coef0 = getattr(self, "coef0", 0.0)
            monomials = math.comb(n_columns - (not coef0) + degree, degree)
            warn_of_features(self.n_components, monomials, n_columns, degree, coef0)

    def look(self, reading: Reading) -> Statistics | None:
        """What the inputs hold, if a parameter asks for it and there are rows."""
        source = reading.source
        asked = (
            self.nulls == "mean"
            or self.scaling in ("standard", "minmax")
            or self.clip not in (None, "auto")
        )
        if asked and source.is_sparse:
            raise ParameterError(
                "scaling, clip and nulls='mean' need one column a feature: for (row, feature, "
                "value) input use scaling=None or 'unit', clip=None, and another policy"
            )
        wanted = "auto" in (self.scaling, getattr(self, "gamma", None))
        if not asked and not (wanted and source.has_values):
            return None
        moments = source.statistics(reading.columns).rounded()
        if asked:
            require_values(reading.told, moments)
        return moments.without_gaps()

    def settle(self, seen: Seen) -> None:
        """Put values in the place of parameters that are ``"auto"``, and note them."""
        found = self.automatic(seen)
        for name, taken in found.items():
            setattr(self, name, taken.value)
        # The second member of an ensemble takes what the first did, and finds nothing to take.
        self.taken_ = {**getattr(self, "taken_", {}), **found}

    def automatic(self, seen: Seen) -> dict[str, Taken]:
        """What the parameters come to that are ``"auto"``."""
        taken: dict[str, Taken] = {}
        if self.scaling == "auto":
            taken["scaling"] = seen.scaling()
        scaling = taken["scaling"].value if taken else self.scaling
        if self.clip == "auto":
            taken["clip"] = seen.clip(scaling)
        if getattr(self, "gamma", None) == "auto":
            taken["gamma"] = gamma_of(seen, scaling, self.gamma_power)
        return taken

    @property
    def gamma_power(self) -> int:
        """The power of the columns' unit that gamma is one over."""
        return 2

    @property
    def polynomial_degree(self) -> int | None:
        """The degree of the polynomial kernel that its features estimate, where they do."""
        return None

    def estimated_kernel(self) -> Kernel | None:
        """The kernel that features estimate, of what the map reads; None if they estimate none.

        Of parameters that are settled: none is ``"auto"`` any more.
        """
        return None

    def distance_variance(self, pair: Pair) -> Any:
        """How much draws' estimates of a pair's squared distance vary; None where nobody knows."""
        return None

    @property
    def last(self) -> Transformer:
        """The map that its features come out of: of several after each other the last."""
        return self

    def stages_before(self, program: Program) -> int:
        """How many stages of its program there are before those of the last map."""
        return 1

    @property
    def counted_by(self) -> str | None:
        """The parameter that says how many features there are; None where columns do."""
        return "n_components"

    @property
    def is_random(self) -> bool:
        """Whether another seed draws another map."""
        return True

    def all_taken(self) -> dict[str, Taken]:
        """What was taken here and in the maps that it is made of."""
        found = dict(getattr(self, "taken_", {}))
        for part, one in self.parts().items():
            found |= {f"{part}__{name}": taken for name, taken in one.all_taken().items()}
        return found

    # --- use ----------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """The features of the rows of ``X``, computed by NumPy: the twin of the SQL.

        ``X`` is an array, a sparse matrix, or a table of any library: pandas, polars, pyarrow, a
        DuckDB relation, or what else gives a stream of Arrow's. Columns of a table have names,
        which are to be those of ``fit``, in that order; of a map that was fitted in a database, or
        read from a file, in any order, and others are ignored. Returns an array, or a DataFrame
        after ``set_output(transform="pandas")`` or ``"polars"``.
        """
        return self.given_back(self.computed(self.program, X), X)

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit to ``X``, then transform it."""
        X = local(X)  # a stream is read once
        return self.fit(X, y, **options).transform(X)


def _require_range(stages: Sequence[Stage], dtype: str) -> None:
    """Raise OverflowError if a number that was drawn is infinite in the dtype."""
    for _, stage in plain_stages(stages):
        for numbers in map(np.asarray, vars(stage).values()):
            if numbers.dtype.kind == "f" and np.isinf(numbers.astype(dtype)).any():
                raise OverflowError(f"a number of it is too large for {dtype}")
