"""Digits: features computed in DuckDB lift a linear model above the best one on raw pixels.

The data: scikit-learn's copy of the UCI "Optical Recognition of Handwritten Digits" test set,
1,797 images of 8 x 8 pixels with values 0 to 16, in digits.csv. Needs scikit-learn, for the models.
"""

from pathlib import Path

import duckdb
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sqlkrp

SEEDS = range(5)

connection = duckdb.connect()
connection.execute(
    "CREATE TABLE digits AS SELECT row_number() OVER () AS id, * FROM read_csv(?)",
    [str(Path(__file__).with_name("digits.csv"))],
)
database = sqlkrp.connect(connection)


# 1. Draw a map, create its features where the data lives, and check them against NumPy.
def create_features(seed: int) -> str:
    """The name of a table of features."""
    krp = sqlkrp.KRP(n_components=500, random_state=seed)
    krp.fit(database.source("digits"), label="label", exclude=["id"])
    table = f"digits_krp_{seed}"
    database.create(krp, table="digits", into=table, keep=["id"])
    check = database.verify(krp, "digits")
    assert check.ok, check.wrong
    return table


# 2. Train linear models on a random half of the rows, with penalties by cross-validation.
RIDGE = RidgeClassifierCV(np.logspace(-2, 4, 13))
LOGISTIC = GridSearchCV(LogisticRegression(max_iter=1000), {"C": [0.01, 0.1, 1]}, cv=3)


def accuracy(table: str, seed: int, *models: BaseEstimator) -> float:
    """Accuracy of the best of these models on the other half."""
    data = connection.execute(f"SELECT * EXCLUDE (id) FROM {table} ORDER BY id").fetchnumpy()
    labels = data.pop("label")
    rows = np.column_stack(list(data.values()))
    train, test, y_train, y_test = train_test_split(
        rows, labels, test_size=0.5, random_state=seed, stratify=labels
    )
    scaled = [make_pipeline(StandardScaler(), model) for model in models]
    return max(float(model.fit(train, y_train).score(test, y_test)) for model in scaled)


raw = np.array([accuracy("digits", seed, RIDGE, LOGISTIC) for seed in SEEDS])
lifted = np.array([accuracy(create_features(seed), seed, RIDGE) for seed in SEEDS])
print("linear models, mean ± deviation of five splits and seeds:")
print(f"on 64 pixels, the better of ridge and logistic {raw.mean():.1%} ± {raw.std():.1%}")
print(f"on 500 features of degree 2, ridge {lifted.mean():.1%} ± {lifted.std():.1%}")
assert (lifted > raw).all()
