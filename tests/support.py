"""What several test files use."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import time
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

import sqlkrp
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.forms import FORMS as FORMS_BY_NAME
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import write

#: Every form of SQL: what is tested in one, is in all.
FORMS = tuple(FORMS_BY_NAME)


def forms_of(name: str) -> list[str]:
    """The forms that a dialect has."""
    return [form.name for form in FORMS_BY_NAME.values() if not form.lacks(dialect(name))]


#: The paper's map: the homogeneous kernel, of columns as they are, and independent entries.
#: Nothing in it depends on the data, and dyadic numbers stay exact.
PAPER = {
    "coef0": 0.0, "gamma": 1.0, "pool": "achlioptas", "n_terms": 10, "scaling": None, "clip": None,
}  # fmt: skip
paper_krp = functools.partial(sqlkrp.KRP, **PAPER)


#: Maps that have, together, each kind of stage but the last of RankOneProjection(binary=True).
#: All in one would be nested more deeply than SQLite and DataFusion parse.
EVERY_STAGE = {
    "products": lambda size=6, **options: sqlkrp.chain(
        # Butterflies, and then signed sums whose products have unequal numbers of factors.
        sqlkrp.ComplexKRP(3, size, n_terms=2, block_size=4, gamma=0.125, coef0=0.5, **options),
        sqlkrp.RandomMaclaurin(size + 1, degree=3, scaling="standard"),
        random_state=0,
    ),
    "distances": lambda size=6, **options: sqlkrp.chain(
        # Distances, exponentials and a matrix, and then another one with cosines.
        sqlkrp.Nystroem(size, gamma=0.05, **options),
        sqlkrp.RandomFourier(size, scaling="standard", gamma=0.05),
        random_state=0,
    ),
    "thresholds": lambda size=6, **options: sqlkrp.Thresholds(size, **options),
    # Stages side by side: columns as they are, and products of two and of three.
    "paths": lambda size=6, **options: sqlkrp.MixedKRP(
        3, 4 * size, n_terms=2, block_size=4, gamma=0.125, coef0=0.5, random_state=0, **options
    ),
}


def of_columns_as_they_are(one):
    """A map whose columns are not scaled, if nothing else was said."""
    scalings = [name for name in one.get_params() if name.endswith("scaling")]
    automatic = [name for name in scalings if one.get_params()[name] == "auto"]
    return one.set_params(**dict.fromkeys(automatic))


def dyadic(rows: int, columns: int, seed: int = 0, names=None) -> pd.DataFrame:
    """Multiples of 1/8: every sum and product of a few is exact in DOUBLE."""
    values = np.random.default_rng(seed).integers(-40, 41, (rows, columns)) / 8
    return pd.DataFrame(values, columns=names or [f"c{i}" for i in range(columns)])


def matrix(stage) -> np.ndarray:
    """A stage's table of entries as a matrix (output, input)."""
    dense = np.zeros((stage.n_outputs, stage.n_inputs))
    dense[stage.output, stage.input] = stage.value
    return dense


@contextlib.contextmanager
def unwarned():
    """A block whose warnings are of no interest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def store(connection, frame: pd.DataFrame, table: str = "t") -> None:
    """A DataFrame as a table."""
    connection.register("frame_to_store", frame)
    connection.execute(f'CREATE TABLE "{table}" AS SELECT * FROM frame_to_store')
    connection.unregister("frame_to_store")


def read_table(path: Path) -> pd.DataFrame:
    """A file of features; Parquet by DuckDB, as pandas would need yet another package."""
    if path.suffix == ".parquet":
        return duckdb.execute("FROM read_parquet(?)", [str(path)]).df()
    return pd.read_csv(path)


def unguarded(krp, table: str = "t", *, stage: str = "features", plan: str = "auto"):
    """The wide statement that a run sends after its preflight: without guards of its own."""
    query = krp.query(f'"{table}"', Options(form="wide", stage=stage, plan=plan))
    return write(dataclasses.replace(query, guard=False), dialect("duckdb"))


def flipped_query(krp):
    """In place of a map's ``query``: one that sends the engine a map with one sign flipped."""
    original = type(krp).query
    prepare, projection, products, *others = krp.program.stages
    sign = projection.value.copy()
    used = np.isin(projection.output, products.factors[0])
    sign[np.flatnonzero(used)[0]] *= -1
    wrong = dataclasses.replace(projection, value=sign)
    sent = dataclasses.replace(krp.program, stages=(prepare, wrong, products, *others))

    def query(self, *arguments):
        return dataclasses.replace(original(self, *arguments), program=sent)

    return query


def rewrite(path, change, *, forge=False):
    """Edit a map file; with ``forge``, by someone who knows how to make the checksum right."""
    document = json.loads(path.read_text())
    change(document)
    if forge:
        del document["checksum"]
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
        document["checksum"] = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(document))


def bytes_of(path: Path) -> int:
    """How large a file is; 0 if it is gone, as the trial of a folder is at once."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def wait_until(condition, process, seconds=60):
    """Wait for what a process does; it must not end before."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, (process.returncode, process.communicate())
        assert time.monotonic() < end
        time.sleep(0.02)


def assert_mean(draws, wanted, errors=4.5):
    """The mean of independent draws, along the first axis, is the wanted one.

    It may be off by so many standard errors, which the draws tell. The mean of squared deviations
    from a known mean is a variance, and its error is that of the fourth moment.
    """
    draws = np.asarray(draws)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    off = np.abs(draws.mean(axis=0) - wanted)
    # Some do not vary at all: 1e-9 is their rounding.
    assert (off <= errors * error + 1e-9).all(), f"{off} off, with a standard error of {error}"
