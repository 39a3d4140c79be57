"""What every feature map does once it is fitted: its SQL, its digest and its file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from sqlkrp.display import html_table
from sqlkrp.errors import ParameterError
from sqlkrp.mapfile import Content
from sqlkrp.maps.allowed import Whole
from sqlkrp.maps.automatic import Taken
from sqlkrp.maps.base import Transformer
from sqlkrp.maps.estimator import diagram_of
from sqlkrp.maps.fitted import require_fitted
from sqlkrp.maps.parameters import copied, plain, require_known, title_of
from sqlkrp.sql.options import Options, name_list, with_options

__all__ = ["FeatureMap", "require_map"]

SomeFeatureMap = TypeVar("SomeFeatureMap", bound="FeatureMap")


class FeatureMap(Transformer):
    """A feature map: fitted and used as scikit-learn has it, and with its SQL and its file."""

    def _repr_html_(self) -> str:
        return diagram_of(self) + self._facts_html()

    def _facts_html(self) -> str:
        if not self.__sklearn_is_fitted__():
            return html_table(title_of(self, self.get_params(deep=False)), {"fitted": False})
        prepare, names = self.program.prepare, self.program.names
        kernel = self.settled().last.estimated_kernel()
        floor = 2 / math.sqrt(math.pi * len(names))
        estimates = {
            "estimates": f"{kernel.told} of its columns as it prepares them",
            "distances": f"squared ones at best within {floor:.1%} on average (sqlkrp report)",
        } if kernel is not None else {}  # fmt: skip
        rows = {
            "features": _ends(names),
            "columns": _ends(prepare.told),
            "left out": len(self.left_out_),
            **estimates,
            "computed as": prepare.dtype,
            "seed": str(self.seed_),
            "digest": self.digest_[:12],
        }
        return html_table(self.title, rows)

    @with_options("form", "stage", "output", "plan")
    def to_spark_ml(
        self, *, options: Options, keep: Iterable[str] | None = None, name: str | None = None
    ) -> Any:
        """The map as a stage of a pipeline of ``pyspark.ml``: an SQLTransformer.

        ``keep`` names the columns that go on beside the features; all do if it is left out, as with
        Spark's own transformers. ``name`` is that of the column of an array or vector.
        ``output="vector"`` is what Spark's models read: no SQL makes it, so this is a PipelineModel
        of an SQLTransformer, a VectorAssembler and another one. All of them are Spark's own, so a
        saved pipeline needs no sqlkrp.
        """
        from sqlkrp.engines.spark_ml import INPUT, stage_of_pipeline

        options = replace(options, keep=tuple(name_list("keep", keep)))
        query = self.query(INPUT, options)
        query = replace(query, array_name=query.array_name if name is None else name)
        return stage_of_pipeline(query, keep_all=keep is None)

    def select(self: SomeFeatureMap, components: Iterable[int]) -> SomeFeatureMap:
        """The map of some of the features only, such as those that a trained model weighs.

        They keep their names and values; columns and hyperplanes that they do not need are left
        out (so the bare projection numbers its hyperplanes anew). Their order is that of the map,
        and a number that is given twice counts once. It is a map of its own, with its own digest.

        >>> from sqlkrp.maps import KRP
        >>> krp = KRP(2, 100, random_state=0).fit(["a", "b", "c"])
        >>> krp.select([3, 7]).get_feature_names_out().tolist()
        ['krp_3', 'krp_7']
        """
        count = len(self.program.names)
        if self._original is not self:
            selected: SomeFeatureMap = self._original.select(components)
            return selected.renamed(self.program.prepare.reads)
        if not isinstance(components, Iterable):
            raise ParameterError(
                f"components={components!r} is not allowed: give a list of numbers"
            )
        chosen = sorted({Whole(0).require("a component", one) for one in components})
        if not chosen or chosen[-1] >= count:
            wrong = chosen[-1] if chosen else "none"
            raise ParameterError(f"component {wrong} is not allowed: name some of 0 to {count - 1}")
        return self._with_program(self.program.only(np.array(chosen)))

    def as_drawn(self: SomeFeatureMap) -> SomeFeatureMap:
        """A map of its own, not fitted, with the parameters that this one was drawn with."""
        return type(self)(**{name: copied(value) for name, value in self.parameters_.items()})

    def settled(self: SomeFeatureMap) -> SomeFeatureMap:
        """The same with what was taken for the parameters that are ``"auto"``."""
        found = self.as_drawn()
        found.set_params(**{name: taken.value for name, taken in self.taken_.items()})
        return found

    @property
    def title(self) -> str:
        """The map in one line: its headline, and what is not at its default."""
        return title_of(self, self.parameters_)

    @property
    def description(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters_.items())
        return f"{type(self).__name__}({given})"

    @property
    def outputs(self) -> tuple[str, str]:
        return "features", f"{len(self.program.names):,}"

    @property
    def legend(self) -> dict[str, dict[str, int]]:
        return self.legend_of(self.program)

    # --- files --------------------------------------------------------------------------------

    def content(self) -> Content:
        """What the map's file holds."""
        require_known(self)
        program = self._truth  # which says what to do before fit
        return Content(
            map=type(self).__name__,
            parameters={name: plain(value) for name, value in self.parameters_.items()},
            seed=self.seed_,
            left_out=self.left_out_,
            label=self.label_,
            taken={name: asdict(taken) for name, taken in self.taken_.items()},
            program=program,
        )

    def restore(self, content: Content) -> None:
        """Become the fitted map of a file, with whose parameters this one was made."""
        self.check_parameters()
        self.program_ = content.program
        self.parameters_ = {name: copied(one) for name, one in self.get_params(deep=False).items()}
        self.seed_ = content.seed
        self.left_out_ = content.left_out
        self.label_ = content.label
        self.taken_ = {name: Taken(**taken) for name, taken in content.taken.items()}


def _ends(names: Sequence[str]) -> str:
    """How many names there are, and the first and the last of them."""
    return f"{len(names):,}: {' ... '.join(dict.fromkeys((names[0], names[-1])))}"


def require_map(name: str, value: Any) -> None:
    """Raise ParameterError unless this is a map; whether it is fitted, it says itself."""
    require_fitted(name, value, FeatureMap)
