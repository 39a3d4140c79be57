"""What a model says of rows in NumPy, as scikit-learn has it, and what scikit-learn asks of it."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import NotSaidError, ParameterError
from sqlkrp.models.trained import Trained

__all__ = ["Predicting"]


class _WhereSaid:
    """A method of models that say such a thing; others have no such attribute."""

    def __init__(self, method: Callable[[Any, Any], NDArray[Any]]) -> None:
        self.__doc__, self._method = method.__doc__, method

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self
        model._require_method(self._method.__name__)
        return MethodType(self._method, model)


class Predicting(Trained):
    """A model that predicts: labels, probabilities, decisions, or numbers."""

    def predict(self, X: Any) -> Any:
        """The labels of rows, or their predictions, computed by NumPy."""
        if self.answers is None:
            found = self._computed(self.says, X)
            return found[:, 0] if found.shape[1] == 1 else found
        places = self._computed(("label",), X)[:, 0]
        missing = np.isnan(places)
        labels = self.classes_[np.where(missing, 0, places).astype(int)]
        return np.where(missing, None, labels) if missing.any() else labels

    @_WhereSaid
    def decision_function(self, X: Any) -> NDArray[Any]:
        """The decisions: one a class, or of two classes that for the second."""
        found = self._computed(("decision",), X)
        return found[:, 0] if found.shape[1] == 1 else found

    @_WhereSaid
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class."""
        found = self._computed(("probability",), X)
        return np.column_stack([1 - found, found]) if found.shape[1] == 1 else found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labels that are right; of a regression R², averaged over its predictions."""
        said, true = self.predict(X), np.asarray(y)
        if self.answers is not None:
            return float(np.average(said == true, weights=sample_weight))
        weights = None if sample_weight is None else np.asarray(sample_weight)
        middle = np.average(true, axis=0, weights=weights)
        left, there = (
            np.average(np.square(true - one), axis=0, weights=weights) for one in (said, middle)
        )
        # As scikit-learn has it: what does not vary is predicted wholly, or not at all.
        shares = np.where(there == 0, left != 0, left / np.where(there == 0, 1, there))
        return float(np.mean(1 - shares))

    def _require_method(self, name: str) -> None:
        """Raise NotSaidError unless what a method tells is said."""
        says = self._classifier().says
        if name == "predict_proba":
            self._require_said(("probability",))
        elif "decision" not in says:
            raise NotSaidError(f"{self.estimator} has no decisions: ask for predict_proba")

    def _computed(self, what: tuple[str, ...], X: Any) -> NDArray[Any]:
        return self._original.computed(self._weighed(what), X)

    def _inputs(self, X: Any) -> NDArray[Any]:
        return self._original.inputs(X)

    # --- for scikit-learn ---------------------------------------------------------------------

    @property
    def _estimator_type(self) -> str:
        """What it is to scikit-learn; those before 1.6 ask for this alone."""
        return "regressor" if self.answers is None else "classifier"

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn calls this, so it is there to be imported.
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        kinds = {"classifier_tags": ClassifierTags, "regressor_tags": RegressorTags}
        kind = f"{self._estimator_type}_tags"
        return Tags(
            estimator_type=self._estimator_type,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(sparse=True, allow_nan=self._truth.prepare.nulls != "error"),
            requires_fit=False,
            **{kind: kinds[kind]()},
        )

    def __sklearn_is_fitted__(self) -> bool:
        return "whole_" in vars(self._original)

    def __sklearn_clone__(self) -> NoReturn:
        self.fit()

    def fit(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a model is trained, and what it was trained with is not in it."""
        raise ParameterError(
            f"{self.estimator} is a trained model, which is not fitted again: cross-validate the "
            "pipeline that it was made of (sqlkrp.train has held out rows itself), or wrap the "
            "model in scikit-learn's FrozenEstimator"
        )
