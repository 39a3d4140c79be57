"""What a user would do instead: fetch from DuckDB, compute in Python, write the features back.

Each peer makes the table ``features`` from the table ``source`` of a connection, with the label
first, as sqlkrp does.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import sqlkrp
from sqlkrp.stages import Linear, SumOfProducts

_ROWS_AT_ONCE = 8192


def in_database(
    connection: duckdb.DuckDBPyConnection, krp: sqlkrp.FeatureMap, how: str = "sql"
) -> None:
    """What a user of sqlkrp runs, with the checks before it."""
    sqlkrp.connect(connection).create(krp, "source", "features", keep=["label"], how=how)


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
    """An array as a table, by the quickest way that DuckDB has: Arrow, columns uncompressed."""
    columns = [pa.array(label), *(pa.array(np.ascontiguousarray(one)) for one in features.T)]
    names = ["label", *(f"f{i}" for i in range(features.shape[1]))]
    arrived = pa.table(columns, names=names)
    _insert(connection, arrived, names)


def _insert(connection: duckdb.DuckDBPyConnection, arrived: Any, names: Sequence[str]) -> None:
    """A table of a label and of features, which DuckDB does not try to compress."""
    connection.register("arrived", arrived)
    kind = dict(connection.execute("SELECT column_name, column_type FROM (DESCRIBE arrived)"
                                   " LIMIT 1").fetchall())["label"]  # fmt: skip
    columns = ", ".join(f"\"{name}\" FLOAT USING COMPRESSION 'uncompressed'" for name in names[1:])
    connection.execute("BEGIN")
    connection.execute(f"CREATE TABLE features (label {kind}, {columns})")
    connection.execute("INSERT INTO features SELECT * FROM arrived")
    connection.execute("COMMIT")
    connection.unregister("arrived")


def streamed(
    connection: duckdb.DuckDBPyConnection,
    krp: sqlkrp.FeatureMap,
    compute: Callable[[np.ndarray], np.ndarray],
) -> None:
    """By hand, as well as we could: Arrow batches, single precision BLAS, batches on all cores.

    ``compute`` is ``by_hand(krp)``, made before the clock runs.
    """
    columns = ", ".join(f'"{name}"' for name in krp.program.prepare.columns)
    reader = connection.cursor().sql(f"SELECT label, {columns} FROM source")
    batches = reader.to_arrow_reader(_ROWS_AT_ONCE)
    types = [pa.field("label", batches.schema.field("label").type)]
    types += [pa.field(name, pa.float32()) for name in krp.program.names]
    schema = pa.schema(types)

    def computed(batch: pa.RecordBatch) -> pa.RecordBatch:
        inputs = np.stack([one.to_numpy(zero_copy_only=False) for one in batch.columns[1:]])
        found = compute(inputs.astype("float32"))
        arrays = [batch.column(0), *(pa.array(row) for row in found)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    with ThreadPoolExecutor() as pool:
        made = _ahead(pool, computed, batches)
        reader = pa.RecordBatchReader.from_batches(schema, made)
        _insert(connection, reader, schema.names)


def _ahead(
    pool: ThreadPoolExecutor, call: Callable[[Any], Any], items: Iterable[Any]
) -> Iterator[Any]:
    """A function of each item, in order, while some of those behind it are at work."""
    waiting: deque[Any] = deque()
    for item in items:
        waiting.append(pool.submit(call, item))
        if len(waiting) > 2 * (os.cpu_count() or 1):
            yield waiting.popleft().result()
    yield from (one.result() for one in waiting)


def by_hand(krp: sqlkrp.FeatureMap) -> Callable[[np.ndarray], np.ndarray]:
    """Inputs to features; in both an array's columns are the rows of the source."""
    matrix, multiply = dense(krp), products(krp)
    return lambda inputs: multiply(matrix @ inputs)


def dense(krp: sqlkrp.FeatureMap) -> np.ndarray:
    """The hyperplanes as the rows of a matrix: what the projection makes of each column alone."""
    projection = krp.program.projection()
    return projection.apply(np.eye(len(krp.program.prepare.columns))).T.astype("float32")


def products(krp: sqlkrp.FeatureMap) -> Callable[[np.ndarray], np.ndarray]:
    """From the values of the hyperplanes to features."""
    *_, stage, scale = krp.program.stages
    assert isinstance(stage, SumOfProducts)
    assert isinstance(scale, Linear)
    factors, signs = stage.factors.tolist(), stage.sign.tolist()
    constant = np.float32(scale.factor)

    def compute(projected: np.ndarray) -> np.ndarray:
        found = multiplied(projected, factors, signs)
        found *= constant
        return found

    return compute


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
