"""What scikit-learn asks of its transformers, without depending on it.

What only scikit-learn calls imports it: who calls it has it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.allowed import OneOf
from sqlkrp.maps.fitted import Fitted
from sqlkrp.maps.parameters import Parameters

__all__ = ["Estimator", "diagram_of"]

SomeEstimator = TypeVar("SomeEstimator", bound="Estimator")

_OUTPUTS = OneOf({"default": "an array", "pandas": "a DataFrame", "polars": "one of polars"})


class _Requests(dict[str, Any]):
    """What was asked of metadata, which scikit-learn's clone() takes for another estimator."""

    def __sklearn_clone__(self) -> _Requests:
        return _Requests(self)


class Estimator(Parameters, Fitted):
    """A map as scikit-learn knows one: tags, requests for metadata, kinds of output, a diagram."""

    @property
    def first(self) -> Any:
        """The map that reads the columns: of what is made of maps, the first."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "program_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(sparse=True, allow_nan=self.first.nulls != "error"),
        )

    # --- metadata -----------------------------------------------------------------------------

    @classmethod
    def _fit_options(cls) -> list[str]:
        """What ``fit`` takes beside rows and labels."""
        found = inspect.signature(cls.fit).parameters.values()  # type: ignore[attr-defined]
        return [one.name for one in found if one.kind is one.KEYWORD_ONLY]

    def set_fit_request(self: SomeEstimator, **requests: bool | str | None) -> SomeEstimator:
        """Say which options of ``fit`` a pipeline is to hand on, as scikit-learn's routing has it.

        True hands one on, False does not, None refuses it, and a text is its name outside.
        """
        self._require_known(requests, self._fit_options())
        for name, value in requests.items():
            if not (value is None or isinstance(value, (bool, str))):
                raise ParameterError(
                    f"{name}={value!r} is not allowed: use True, False, None, or a name"
                )
        # scikit-learn's own name, so that its clone() copies what was asked for.
        self._metadata_request = _Requests(getattr(self, "_metadata_request", {}) | requests)
        return self

    def get_metadata_routing(self) -> Any:
        """The requests for metadata, as scikit-learn's meta-estimators ask for them."""
        from sklearn.utils.metadata_routing import MetadataRequest

        routing = MetadataRequest(owner=self)
        requests = getattr(self, "_metadata_request", {})
        for name in self._fit_options():
            routing.fit.add_request(param=name, alias=requests.get(name))
        return routing

    # --- what comes out -----------------------------------------------------------------------

    def set_output(self: SomeEstimator, *, transform: str | None = None) -> SomeEstimator:
        """Choose what ``transform`` returns: ``"default"`` (an array), ``"pandas"``, ``"polars"``.

        Without it scikit-learn's ``set_config(transform_output=...)`` holds.
        """
        if transform is not None:
            _OUTPUTS.require("transform", transform)
            # scikit-learn's own name, so that its clone() copies the setting.
            self._sklearn_output_config = {"transform": transform}
        return self

    def given_back(self, features: NDArray[Any], X: Any) -> Any:
        """Features of the rows of ``X`` as what was chosen; those of pandas keep their index."""
        config: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        kind = config.get("transform") or _chosen_for_all()
        names = list(self.program.names)
        if kind == "pandas":
            import pandas

            index = X.index if hasattr(X, "iloc") else None
            return pandas.DataFrame(features, columns=names, index=index)
        if kind == "polars":
            import polars

            return polars.DataFrame(features, schema=names, orient="row")
        return features

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """The names of the features; ``input_features`` are those of ``fit``, if they are given."""
        names = np.array(self.program.names, dtype=object)
        if input_features is not None:
            given, known = list(input_features), self.feature_names_in_.tolist()
            if len(given) != len(known):
                raise ColumnError(
                    "input_features should have length equal to the number of columns that are "
                    f"read, {len(known)}, and has {len(given)}: leave them out"
                )
            if self._order != () and given != known:
                wrong = next(one for one, name in zip(given, known, strict=True) if one != name)
                raise ColumnError(
                    f"input_features is not equal to feature_names_in_: {wrong!r} is none of them, "
                    "or in another place; leave them out"
                )
        return names

    # --- in a notebook ------------------------------------------------------------------------

    def _get_params_html(self, *given: Any, **options: Any) -> Any:
        """The table of parameters in scikit-learn's diagrams."""
        from sklearn.base import BaseEstimator

        return BaseEstimator._get_params_html(self, *given, **options)


def diagram_of(one: Any) -> str:
    """scikit-learn's diagram of a map, where it is used; else nothing."""
    if "sklearn" not in sys.modules:
        return ""
    from sklearn.utils import estimator_html_repr

    diagram: str = estimator_html_repr(one)
    return diagram


def _chosen_for_all() -> str:
    """What scikit-learn's configuration says of all its transformers."""
    if "sklearn" not in sys.modules:
        return "default"
    from sklearn import get_config

    chosen: str = get_config()["transform_output"]
    return chosen
