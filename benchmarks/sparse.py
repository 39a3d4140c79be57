"""Sparse rows, (row_id, feature, value): in the database, and by SciPy with a round trip."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import scipy.sparse

import sqlkrp
from benchmarks import peers
from benchmarks.measuring import PAPER, Way, markdown, measure, named

LONG = ("row_id", "feature", "value")
N_FEATURES = 300
MAPS = {
    "achlioptas s=3, p=446, t=1": {
        "pool": "achlioptas",
        "s": 3,
        "n_hyperplanes": 446,
        "n_terms": 1,
    },
    "hadamard, t=1": {"pool": "hadamard", "n_terms": 1},
}


def section(folder: Path, data: Path, repeats: int, quick: bool) -> list[str]:
    """1,000 features of degree 2 of w8a, or of made rows of its shape."""
    connection = duckdb.connect(str(folder / "sparse.duckdb"))
    load(connection, data)
    if quick:
        connection.execute("DELETE FROM entries WHERE row_id >= 5000")
        connection.execute("DELETE FROM labels WHERE row_id >= 5000")
    ways = []
    for name, parameters in MAPS.items():
        krp = sqlkrp.KRP(2, 1000, dtype="float32", random_state=0, **PAPER, **parameters)
        krp.fit([str(i) for i in range(N_FEATURES)])
        forms = ("wide", "tables") if quick or "hadamard" in name else ("wide",)
        for form in forms:
            run = in_database(krp, form)
            ways.append(Way(f"sqlkrp, {form} form: {name}", run))
        ways.append(Way(f"SciPy, fetched and written back: {name}", by_scipy(krp)))
    ways.append(Way("the floor: copying the finished table", peers.copy_table, True))
    measure(ways, connection, repeats)
    (rows,), (entries,) = (
        connection.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)
        for table in ("labels", "entries")
    )
    connection.close()
    what = named(data, "w8a_train_long.parquet", "w8a")
    title = f"## Sparse rows: {rows:,} rows of {what}, {entries:,} entries, 300 columns\n"
    lines = [[way.name, f"{way.median:.2f}", way.spread] for way in ways]
    return [title, *markdown(["way", "seconds", "spread"], lines)]


def load(connection: duckdb.DuckDBPyConnection, data: Path) -> None:
    """The tables ``entries`` and ``labels``."""
    entries = data / "w8a_train_long.parquet"
    if entries.exists():
        labels = data / "w8a_train_long_labels.parquet"
        for table, path in (("entries", entries), ("labels", labels)):
            connection.execute(
                f"CREATE TABLE {table} AS SELECT * FROM read_parquet(?)", [str(path)]
            )
        return
    connection.execute(
        "CREATE TABLE labels AS SELECT i AS row_id, 1 AS label FROM range(49749) r(i)"
    )
    connection.execute(
        "CREATE TABLE entries AS SELECT row_id, feature, 1 AS value FROM labels, "
        f"range({N_FEATURES}) f(feature) WHERE hash(row_id, feature) / 2.0 ** 64 < 0.0388"
    )


def in_database(krp: sqlkrp.KRP, form: str):
    """What a user of sqlkrp runs."""

    def run(connection: duckdb.DuckDBPyConnection) -> None:
        sqlkrp.connect(connection).create(
            krp, "entries", "features", long=LONG, rows="labels", keep=["label"], form=form
        )

    return run


def by_scipy(krp: sqlkrp.KRP):
    """Fetch the entries, multiply sparse by sparse, products by NumPy, write back."""
    matrix = scipy.sparse.csr_matrix(peers.dense(krp).T)
    multiply = peers.products(krp)

    def run(connection: duckdb.DuckDBPyConnection) -> None:
        entries = connection.execute("SELECT row_id, feature, value FROM entries").fetchnumpy()
        labels = connection.execute("SELECT row_id, label FROM labels").fetchnumpy()
        place = np.empty(int(labels["row_id"].max()) + 1, dtype="int64")
        place[labels["row_id"]] = np.arange(len(labels["row_id"]))
        coordinates = place[entries["row_id"]], entries["feature"]
        shape = len(labels["row_id"]), N_FEATURES
        rows = scipy.sparse.csr_matrix((entries["value"].astype("float32"), coordinates), shape)
        projected = np.ascontiguousarray((rows @ matrix).T.toarray())
        found = multiply(projected)
        peers.write_back(connection, labels["label"], found.T)

    return run
