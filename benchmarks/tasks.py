"""What is predicted from each data set with a label, and by which linear model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV

__all__ = ["MOST_ROWS", "MOST_VALUES", "TASKS", "Task", "logistic", "ridge"]

MOST_ROWS = 20_000
# Text of more values is no category: names, tickets, dates.
MOST_VALUES = 60
_PENALTIES = np.logspace(-2, 6, 9)


def ridge() -> Any:
    """Ridge regression; the penalty by leaving one out."""
    # The default way is far slower where rows are many, for the same answer.
    return RidgeCV(_PENALTIES, gcv_mode="svd")


def logistic() -> Any:
    """Logistic regression; the penalty by three folds."""
    model = LogisticRegression(max_iter=1000)
    return GridSearchCV(model, {"C": [0.001, 0.01, 0.1, 1.0, 10.0]}, cv=3)


@dataclass(frozen=True)
class Task:
    """A file, what is predicted, and how."""

    file: str
    target: str
    model: Callable[[], Any]
    leave_out: tuple[str, ...] = ()
    rows: int = MOST_ROWS
    alike: bool = False
    """Columns of one unit, which the defaults leave as they are; too many for monomials."""

    def load(self, data: Path) -> tuple[pd.DataFrame, np.ndarray]:
        """Inputs and target: rows drawn at random, categories as indicators."""
        frame = pd.read_parquet(data / self.file).dropna(subset=[self.target])
        frame = frame.sample(min(self.rows, len(frame)), random_state=0)
        target = frame.pop(self.target).to_numpy(dtype="float64")
        frame = frame.drop(columns=list(self.leave_out)).reset_index(drop=True)
        texts = frame.select_dtypes(exclude="number")
        few = [texts.pop(name) for name in list(texts) if texts[name].nunique() <= MOST_VALUES]
        indicators = [pd.get_dummies(one, prefix=one.name, dtype="float64") for one in few]
        numbers = frame.select_dtypes("number").astype("float64")
        return pd.concat([numbers, *indicators], axis=1), target


TASKS = {
    "spambase": Task("spambase.parquet", "label", logistic),
    "wine_red": Task("wine_red.parquet", "label", ridge),
    "wineqt": Task("wineqt.parquet", "label", ridge, ("Id",)),
    "diamonds": Task("diamonds.parquet", "price", ridge),
    "titanic": Task("titanic.parquet", "survived", logistic, ("boat", "body")),
    "avocado": Task("avocado.parquet", "AveragePrice", ridge, ("Unnamed: 0",)),
    # All that is known when the flight has landed but how late it left; the year is one.
    "nycflights": Task("nycflights_flights.parquet", "arr_delay", ridge, ("dep_delay", "year")),
    "mnist": Task("mnist_test.parquet", "label", logistic, rows=10_000, alike=True),
    "w8a": Task("w8a_train.parquet", "label", logistic, rows=10_000, alike=True),
}
