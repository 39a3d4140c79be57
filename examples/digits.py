"""Digits: features computed in DuckDB lift a linear model above one on raw pixels.

The data: scikit-learn's copy of the UCI "Optical Recognition of Handwritten Digits" test set,
1,797 images of 8 x 8 pixels with values 0 to 16, in digits.csv.
"""

from pathlib import Path

import duckdb
import numpy as np

import sqlkrp

connection = duckdb.connect()
connection.execute(
    "CREATE TABLE digits AS SELECT row_number() OVER () AS id, * FROM read_csv(?)",
    [str(Path(__file__).with_name("digits.csv"))],
)

# 1. Draw: names and types are all it reads; scaling also takes each column's range, in SQL.
database = sqlkrp.connect(connection)
krp = sqlkrp.KRP(degree=2, n_components=500, pool="hadamard", coef0=1.0, scaling="minmax")
krp.set_params(random_state=0)
krp.fit(database.source("digits"), exclude=["id", "label"])

# 2. Create the features where the data lives, and check them against NumPy.
database.create(krp, table="digits", into="digits_krp", keep=["id", "label"])
check = database.verify(krp, "digits")
assert check.ok, check.wrong
print(f"verified {check.rows:,} rows: largest relative error {check.relative.max():.1g}")


# 3. Train a ridge classifier on either table, in closed form.
def accuracy(table: str) -> float:
    """Accuracy on the last third of the rows of a classifier trained on the others."""
    data = connection.execute(f"SELECT * EXCLUDE (id) FROM {table} ORDER BY id").fetchnumpy()
    labels = data.pop("label")
    features = np.column_stack([*data.values(), np.ones(len(labels))])
    targets = np.where(labels[:, None] == np.arange(10), 1.0, -1.0)
    train, test = slice(0, 1200), slice(1200, None)
    gram = features[train].T @ features[train]
    ridge = 1e-3 * np.trace(gram) / len(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram + ridge, features[train].T @ targets[train])
    return float(np.mean((features[test] @ weights).argmax(axis=1) == labels[test]))


raw, lifted = accuracy("digits"), accuracy("digits_krp")
print(f"linear model on 64 pixels: {raw:.1%}; on 500 features of degree 2: {lifted:.1%}")
assert lifted > raw + 0.03
