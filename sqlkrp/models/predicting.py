"""What a model says of rows in NumPy, as scikit-learn has it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ParameterError
from sqlkrp.models.trained import Trained

__all__ = ["Predicting"]


class Predicting(Trained):
    """A model that predicts: labels, probabilities, decisions, or numbers."""

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
        self._require_said(("probability",))
        found = self._said(X, "probability")
        return np.column_stack([1 - found, found]) if found.shape[1] == 1 else found

    def _said(self, X: Any, what: str) -> NDArray[Any]:
        return self._weighed((what,)).apply(self._inputs(X))

    def _inputs(self, X: Any) -> NDArray[Any]:
        return self._original.inputs(X)
