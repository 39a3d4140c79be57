"""What a user would do instead: fetch from DuckDB, compute in Python, write the features back.

Each peer makes the table ``features`` from the table ``source`` of a connection, with the label
first, as sqlkrp does.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import sqlkrp
from sqlkrp.stages import Butterflies, Scale, SignedSums, SumOfProducts

_ROWS_AT_ONCE = 4096


def in_database(connection: duckdb.DuckDBPyConnection, krp: sqlkrp.FeatureMap) -> None:
    """What a user of sqlkrp runs, with the checks before it."""
    sqlkrp.connect(connection).create(krp, "source", "features", keep=["label"])


def copy_table(connection: duckdb.DuckDBPyConnection) -> None:
    """The floor of any way to make a table: copying the finished one."""
    connection.execute("CREATE TABLE copied AS SELECT * FROM features")


def scikit_learn(connection: duckdb.DuckDBPyConnection, transformer: Any) -> None:
    """Fetch, fit and transform, write back."""
    frame = connection.table("source").df()
    label = frame.pop("label").to_numpy()
    features = transformer.fit_transform(frame.to_numpy(dtype="float32"))
    write_back(connection, label, np.asarray(features, dtype="float32"))


def write_back(connection: duckdb.DuckDBPyConnection, label: Any, features: np.ndarray) -> None:
    """An array as a table, by the quickest way that DuckDB has: Arrow."""
    columns = [pa.array(label), *(pa.array(np.ascontiguousarray(one)) for one in features.T)]
    names = ["label", *(f"f{i}" for i in range(features.shape[1]))]
    connection.register("arrived", pa.table(columns, names=names))
    connection.execute("CREATE TABLE features AS SELECT * FROM arrived")
    connection.unregister("arrived")


def streamed(connection: duckdb.DuckDBPyConnection, krp: sqlkrp.FeatureMap) -> None:
    """By hand, as well as we could: Arrow batches, single precision BLAS, products in one piece."""
    _, projection, products, scale = krp.program.stages
    assert isinstance(projection, (SignedSums, Butterflies))
    assert isinstance(products, SumOfProducts)
    assert isinstance(scale, Scale)
    matrix = dense(projection)
    names = ["label", *krp.program.names]
    shape = ", ".join(f"{name} FLOAT" for name in names[1:])
    writer = connection.cursor()
    writer.execute(f"CREATE TABLE features (label BIGINT, {shape})")
    columns = [f'"{name}"' for name in krp.program.prepare.columns]
    reader = connection.execute(f"SELECT label, {', '.join(columns)} FROM source").to_arrow_reader(
        _ROWS_AT_ONCE
    )
    factors, signs = products.factors.tolist(), products.sign.tolist()
    for batch in reader:
        inputs = np.stack([column.to_numpy(zero_copy_only=False) for column in batch.columns[1:]])
        found = multiplied(matrix @ inputs.astype("float32"), factors, signs)
        found *= np.float32(scale.constant)
        arrays = [batch.column(0), *(pa.array(row) for row in found)]
        writer.register("arrived", pa.table(arrays, names=names))
        writer.execute("INSERT INTO features SELECT * FROM arrived")
        writer.unregister("arrived")


def dense(projection: SignedSums | Butterflies) -> np.ndarray:
    """The signs as a matrix."""
    table = projection.signed_sums if isinstance(projection, Butterflies) else projection
    matrix = np.zeros((table.n_sums, table.n_inputs), dtype="float32")
    matrix[table.hyperplane, table.feature] = table.sign
    return matrix


def multiplied(values: np.ndarray, factors: list[Any], signs: list[Any]) -> np.ndarray:
    """Sums over terms of products of rows, each row in one piece."""
    found = np.zeros((len(factors), values.shape[1]), dtype="float32")
    product = np.empty(values.shape[1], dtype="float32")
    for component, (terms, sign) in enumerate(zip(factors, signs, strict=True)):
        total = found[component]
        for term, plus in zip(terms, sign, strict=True):
            if len(term) == 1:
                part = values[term[0]]
            else:
                part = np.multiply(values[term[0]], values[term[1]], out=product)
                for factor in term[2:]:
                    part = np.multiply(part, values[factor], out=product)
            (np.add if plus > 0 else np.subtract)(total, part, out=total)
    return found


def monomials(connection: duckdb.DuckDBPyConnection) -> None:
    """Every product of two columns, in plain SQL."""
    names = [column[0] for column in connection.execute("FROM source LIMIT 0").description][1:]
    products = [
        f'"{a}" * "{b}" * {1 if a == b else 2**0.5!r}::FLOAT AS m{i}_{j}'
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if j >= i
    ]
    connection.execute(f"CREATE TABLE features AS SELECT label, {', '.join(products)} FROM source")
