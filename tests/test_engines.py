"""Every engine that is executed, in both forms, against the NumPy twin."""

import csv

import numpy as np
import pandas as pd
import pytest
from support import dyadic, paper_krp

from sqlkrp.errors import LimitError, SqlkrpError
from sqlkrp.sql.dialects import dialect

POOLS = {
    "s=1": {"pool": "achlioptas", "s": 1, "n_hyperplanes": 40},
    "s=3": {"pool": "achlioptas", "s": 3, "n_hyperplanes": 40},
    "hadamard": {"pool": "hadamard", "block_size": 8},
    "gaussian": {"pool": "gaussian", "n_hyperplanes": 40},
}
FORMS = ("wide", "tables")


def shuffled(frame, seed=0):
    """Rows in an order that is not that of their numbers."""
    order = np.random.default_rng(seed).permutation(len(frame))
    return frame.iloc[order].assign(id=order).reset_index(drop=True)


def expected_of(values, frame):
    """The twin's values, in the order of the rows' numbers."""
    return values[np.argsort(frame["id"].to_numpy(), kind="stable")]


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_every_engine_equals_numpy_on_dyadic_data(engine, form, degree, pool):
    frame = shuffled(dyadic(40, 21, seed=degree))
    engine.store(frame)
    krp = paper_krp(degree, 9, n_terms=3, random_state=1, **POOLS[pool]).fit(frame, keep=["id"])
    inputs = frame[list(krp.feature_names_in_)].to_numpy()
    projected = expected_of(krp.program_.projection().apply(inputs), frame)
    found = engine.features(krp, keep=["id"], form=form, stage="projection")[:, 1:]
    if pool == "gaussian":
        assert np.allclose(found, projected, rtol=1e-12, atol=1e-12)
    else:
        assert np.array_equal(found, projected)
    features = expected_of(krp.transform(frame), frame)
    error = np.abs(engine.features(krp, keep=["id"], form=form)[:, 1:] - features).max(axis=0)
    # Relative to the feature's own size: sums over terms may cancel.
    assert (error <= 1e-12 * np.abs(features).max(axis=0)).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("output", ["columns", "array"])
@pytest.mark.parametrize("scaling", [None, "standard", "unit"])
@pytest.mark.parametrize("nulls", ["zero", "mean", "propagate"])
def test_policies_scalings_and_outputs_agree(engine, form, output, scaling, nulls):
    frame = dyadic(12, 5)
    frame.iloc[1, 0] = np.nan
    frame.iloc[3, 2] = np.inf
    frame.iloc[4, 1] = -np.inf
    frame.iloc[7] = 0.0
    frame = shuffled(frame)
    engine.store(frame)
    krp = paper_krp(2, 4, nulls=nulls, scaling=scaling, coef0=0.5, random_state=0)
    krp.fit(frame, keep=["id"])
    options = {"keep": ["id"], "form": form, "output": output}
    if output == "array" and engine.name == "sqlite":
        with pytest.raises(LimitError, match="sqlite has no arrays"):
            engine.features(krp, **options)
        return
    expected = expected_of(krp.transform(frame), frame)
    found = engine.features(krp, **options)[:, 1:]
    assert np.isnan(expected).any() == (nulls == "propagate")
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("pool", [{"pool": "hadamard"}, {"n_hyperplanes": 9}])
def test_the_smallest_tables(engine, form, rows, columns, pool):
    frame = shuffled(dyadic(rows, columns))
    engine.store(frame)
    krp = paper_krp(2, 3, n_terms=1, random_state=0, **pool).fit([f"c{i}" for i in range(columns)])
    found = engine.features(krp, keep=["id"], form=form)[:, 1:]
    assert np.allclose(found, krp.transform(frame).reshape(rows, 3), rtol=1e-13)


def as_entries(frame):
    """The same table as (r, f, v), without its zeros; a row's number is 10 and its place."""
    rows, features = np.nonzero(frame.to_numpy())
    values = frame.to_numpy()[rows, features]
    return pd.DataFrame({"r": rows + 10, "f": features, "v": values})


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scaling", [None, "unit"])
def test_sparse_input_gives_what_its_table_gives(engine, form, pool, scaling):
    frame = dyadic(15, 6).where(np.random.default_rng(1).random((15, 6)) < 0.3, 0.0)
    frame.columns = [str(i) for i in range(6)]
    frame.iloc[4] = 0.0
    engine.store(as_entries(frame), "entries")
    engine.store(pd.DataFrame({"r": np.arange(10, 25), "id": np.arange(15) * 2}), "keys")
    krp = paper_krp(2, 5, coef0=0.25, scaling=scaling, random_state=0, **POOLS[pool]).fit(frame)
    sparse = {"long": ("r", "f", "v"), "form": form}
    found = engine.features(krp, "entries", rows="keys", keep=["id"], **sparse)
    assert np.array_equal(found[:, :2], np.column_stack([np.arange(10, 25), np.arange(15) * 2]))
    assert np.allclose(found[:, 2:], krp.transform(frame), rtol=1e-12, atol=1e-12)
    without = engine.features(krp, "entries", **sparse)
    there = frame.any(axis=1).to_numpy()
    assert np.array_equal(without[:, 0], np.arange(10, 25)[there])
    assert np.allclose(without[:, 1:], krp.transform(frame[there]), rtol=1e-12, atol=1e-12)
    if scaling is None and pool != "gaussian":
        projected = engine.features(krp, "entries", rows="keys", stage="projection", **sparse)
        twin = krp.program_.projection().apply(frame.to_numpy())
        assert np.array_equal(projected[:, 1:], twin)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nulls", ["zero", "mean", "propagate"])
@pytest.mark.parametrize("output", ["columns", "array"])
def test_missing_entries_are_not_absent_ones(engine, form, nulls, output):
    frame = dyadic(8, 4).set_axis([str(i) for i in range(4)], axis=1)
    krp = paper_krp(2, 4, n_terms=2, nulls=nulls, coef0=0.5, random_state=0).fit(frame)
    frame.iloc[2, 1] = 0.0
    frame.iloc[6] = 0.0
    entries = as_entries(frame)
    entries.loc[entries["r"].eq(15) & entries["f"].eq(3), "v"] = np.nan
    frame.iloc[5, 3] = np.nan
    engine.store(entries, "entries")
    engine.store(pd.DataFrame({"r": np.arange(10, 18)}), "keys")
    options = {"long": ("r", "f", "v"), "rows": "keys", "form": form, "output": output}
    if output == "array" and engine.name == "sqlite":
        with pytest.raises(LimitError, match="sqlite has no arrays"):
            engine.features(krp, "entries", **options)
        return
    found = engine.features(krp, "entries", **options)[:, 1:]
    expected = krp.transform(frame)
    assert np.isnan(expected).any() == (nulls == "propagate")
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("form", FORMS)
def test_equal_rows_are_each_a_row(engine, form):
    frame = pd.concat([dyadic(3, 4)] * 4, ignore_index=True).assign(id=1)
    engine.store(frame)
    krp = paper_krp(2, 3, n_terms=1, random_state=0).fit(frame, keep=["id"])
    found = engine.features(krp, keep=["id"], form=form)[:, 1:]
    expected = krp.transform(frame)
    assert found.shape == expected.shape
    order = [np.lexsort(np.round(table, 9).T) for table in (found, expected)]
    assert np.allclose(found[order[0]], expected[order[1]], rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_printed_sql_stops_at_a_missing_value(engine, form):
    frame = dyadic(5, 3)
    krp = paper_krp(2, 3, n_terms=1, random_state=0).fit(frame)
    engine.store(frame)
    assert engine.features(krp, form=form).shape == (5, 3)
    frame.iloc[3, 1] = np.nan
    engine.store(frame)
    with pytest.raises(Exception, match="missing value"):
        engine.features(krp, form=form)
    if form == "wide":
        with pytest.raises(Exception, match="missing value in column c1"):
            engine.rows(krp.to_sql("t", dialect=engine.name))


@pytest.mark.parametrize("engine", ["duckdb", "postgres"], indirect=True)
@pytest.mark.parametrize("pool", [{"pool": "hadamard"}, {"n_hyperplanes": 30}])
def test_1500_columns(engine, pool):
    # Single precision, as 1,500 doubles are more than a row of Postgres holds.
    frame = dyadic(20, 1500).astype("float32")
    engine.store(frame)
    krp = paper_krp(3, 40, n_terms=2, dtype="float64", random_state=0, **pool).fit(frame)
    for form in FORMS:
        projected = krp.program_.projection().apply(frame.to_numpy())
        features = krp.transform(frame)
        assert engine.database.verify(krp, "t", form=form).ok
        found = engine.features(krp, form=form)
        assert np.abs(found - features).max() <= 1e-12 * np.abs(features).max()
        if form == "wide" and projected.shape[1] < 1600:
            found = engine.features(krp, form=form, stage="projection")
            assert np.array_equal(found, projected)


# --- names ----------------------------------------------------------------------------------------

HOSTILE = [
    'a"b', "a'b", "a`b", "a\\b", "a\\", "a;b", "--x", "/* x */", "a b", " ", "a.b", "[a]", "{a}",
    "$1", "%s", ":a", "?", "select", "order", "\u00fc\u00f1\u0131", "\U0001f600", "a\tb", "a\nb",
    "__proto__", "x0", "h0", "k0", "complete", "entries", "value", "row_id", "s", "NULL", "1",
    'x"; DROP TABLE canary; --', "'; DROP TABLE canary; --", "x`; DROP TABLE canary; --",
    "n" * 63, "n" * 200,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_give_the_right_answer_or_a_clear_refusal(engine, form, name):
    engine.store(pd.DataFrame({"alive": [1.0]}), "canary")
    frame = dyadic(6, 3, names=[name, "b", f"{name}2"]).assign(**{"the id": range(6)})
    krp = paper_krp(2, 3, n_terms=1, random_state=0).fit(frame, keep=["the id"])
    limit = dialect(engine.name).max_identifier_bytes
    if limit is not None and len(name.encode()) + 1 > limit:
        with pytest.raises(SqlkrpError, match=f"bytes, and {engine.name} cuts names after {limit}"):
            krp.to_sql((name,), keep=["the id"], form=form, dialect=engine.name)
    else:
        engine.store(frame, name)
        found = engine.features(krp, name, keep=["the id"], form=form)[:, 1:]
        assert np.allclose(found, krp.transform(frame), rtol=1e-12)
        engine.drop(name)
    assert engine.rows("SELECT * FROM canary") == [(1.0,)]


# Names that statements, templates and side tables have inside.
INNER = [
    "row_id", "feature", "value", "complete", "k0", "k1", "x0", "x1", "h0", "p0", "b0_0", "q0",
    "length", "lengths", "s", "source", "inputs", "columns", "entries", "entry", "given", "name",
    "row_key", "key_table", "keys", "place", "collected", "items", "f0", "hyperplane", "sign",
    "pool", "component", "term", "factor", "product", "point", "coordinate", "output", "constant",
    "fill", "shift", "scale", "t",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scaling", [None, "unit"])
def test_the_names_inside_a_statement_do_not_meet_the_table_s(engine, form, scaling):
    frame = dyadic(6, len(INNER), names=INNER)
    frame.iloc[2, 3] = np.nan
    engine.store(frame.assign(**{"the id": range(6)}), "source")
    krp = paper_krp(2, 3, n_hyperplanes=9, n_terms=1, coef0=1.0)
    krp.set_params(random_state=0, nulls="propagate", scaling=scaling).fit(frame)
    found = engine.features(krp, "source", keep=["the id", *INNER], form=form)
    assert np.array_equal(found[:, 1:-3], frame, equal_nan=True)
    assert np.allclose(found[:, -3:], krp.transform(frame), rtol=1e-12, equal_nan=True)
    if hasattr(engine, "database"):
        assert engine.database.verify(krp, "source", form=form, sample=4).ok


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "long", [("row_id", "feature", "value"), ("k0", "row_key", "place"), ("keys", "name", "x0")]
)
def test_nor_those_of_sparse_input(engine, form, long):
    frame = dyadic(8, 4, names=["0", "1", "2", "3"]).assign(**{"3": 1.0})
    krp = paper_krp(2, 4, n_hyperplanes=9, n_terms=2, coef0=0.5)
    krp.set_params(random_state=0, nulls="propagate").fit(frame)
    engine.store(as_entries(frame).set_axis(list(long), axis=1), "source")
    kept = [name for name in INNER if name != long[0]]
    keys = dyadic(8, len(kept), names=kept).assign(**{long[0]: np.arange(10, 18)})
    engine.store(keys, "inputs")
    found = engine.features(krp, "source", long=long, rows="inputs", form=form, keep=kept)
    assert np.array_equal(found[:, :-4], keys[[long[0], *kept]])
    assert np.allclose(found[:, -4:], krp.transform(frame), rtol=1e-12)
    found = engine.features(krp, "source", long=long, form=form)
    assert np.allclose(found[:, 1:], krp.transform(frame), rtol=1e-12)
    if hasattr(engine, "database"):
        for rows in ("inputs", None):
            assert engine.database.verify(
                krp, "source", long=long, rows=rows, form=form, sample=5
            ).ok


def test_case_twins_are_two_columns_or_refused(engine):
    krp = paper_krp(2, 3, n_terms=1, random_state=0).fit(["a", "A"])
    frame = dyadic(4, 2, names=["a", "A"])
    if engine.name in ("duckdb", "sqlite"):
        with pytest.raises(SqlkrpError, match="differ only in case"):
            krp.to_sql("t", dialect=engine.name)
        return
    engine.store(frame, "twins")
    found = np.sort(engine.features(krp, "twins", form="wide"), axis=0)
    assert np.allclose(found, np.sort(krp.transform(frame), axis=0), rtol=1e-12)


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "sqlite"], indirect=True)
@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_in_names_and_texts_are_exported_as_they_are(engine, end, tmp_path):
    frame = dyadic(3, 2, names=[end, f"a{end}b"]).assign(told=["x", f"x{end}y", end])
    engine.store(frame, "ends")
    krp = paper_krp(2, 2, n_terms=1, coef0=0.0, gamma=1.0, random_state=0).fit([*frame][:2])
    kept = list(frame)
    engine.database.export(krp, "ends", tmp_path / "f.csv", keep=kept)
    # Not in text mode, which would read each of these as a line feed.
    with (tmp_path / "f.csv").open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    assert names == [*kept, "krp_0", "krp_1"]
    assert sorted(row[2] for row in rows) == sorted(frame["told"])
