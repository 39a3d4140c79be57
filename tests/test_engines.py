"""Every engine that is executed, in both forms, against the NumPy twin."""

import csv
import re

import campaign_cases
import numpy as np
import pandas as pd
import pytest
from hostile import HOSTILE, INNER, spelt_apart
from support import EVERY_STAGE, FORMS, dyadic, paper_krp

import sqlkrp
from sqlkrp.errors import LimitError, SqlkrpError
from sqlkrp.sql.dialects import dialect

POOLS = {
    "s=1": {"pool": "achlioptas", "s": 1, "n_hyperplanes": 40},
    "s=3": {"pool": "achlioptas", "s": 3, "n_hyperplanes": 40},
    "hadamard": {"pool": "hadamard", "block_size": 8},
    "gaussian": {"pool": "gaussian", "n_hyperplanes": 40},
}


def shuffled(frame, seed=0):
    """Rows in an order that is not that of their numbers."""
    order = np.random.default_rng(seed).permutation(len(frame))
    return frame.iloc[order].assign(id=order).reset_index(drop=True)


def expected_of(values, frame):
    """The twin's values, in the order of the rows' numbers."""
    return values[np.argsort(frame["id"].to_numpy(), kind="stable")]


# Each pool, and each way to multiply: no factor but one, two, and a pair with one more.
@pytest.mark.parametrize(
    ("pool", "degree"), [("s=1", 1), ("s=3", 3), ("hadamard", 2), ("gaussian", 2)]
)
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


def test_products_of_many_factors_are_planned_as_any(engine):
    # DataFusion took all memory to plan an aggregate for each over partitions without an order.
    frame = dyadic(5, 3).clip(-1, 1).assign(id=range(5))
    engine.store(frame)
    krp = paper_krp(14, 2, n_terms=2, random_state=0, **POOLS["s=1"]).fit(frame, keep=["id"])
    found = engine.features(krp, keep=["id"], form="tables")[:, 1:]
    assert np.array_equal(found, krp.transform(frame))


def test_every_stage_is_there():
    frame = dyadic(30, 5)

    def stages_of(one):
        stages = one.fit(frame).program_.stages
        return {(type(stage).__name__, getattr(stage, "function", None)) for stage in stages}

    drawn = (make(np.random.default_rng(seed), 4) for make in campaign_cases.MAPS.values()
             for seed in range(12))  # fmt: skip
    ours = (make() for make in EVERY_STAGE.values())
    assert set().union(*map(stages_of, drawn)) <= set().union(*map(stages_of, ours))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("kind", "nulls", "scaling"),
    [("products", "zero", "unit"), ("products", "mean", "standard"),
     ("products", "propagate", "unit"), ("distances", "propagate", "standard"),
     ("paths", "propagate", "standard"), ("paths", "zero", "unit")],
)  # fmt: skip
def test_every_stage_agrees_whatever_is_missing(engine, form, kind, scaling, nulls):
    frame = dyadic(12, 5)
    one = EVERY_STAGE[kind](nulls=nulls, scaling=scaling).fit(dyadic(40, 5, seed=1))
    frame.iloc[1, 0] = np.nan
    frame.iloc[3, 2] = np.inf
    frame.iloc[4, 1] = -np.inf
    frame.iloc[7] = 0.0
    frame = shuffled(frame)
    engine.store(frame)
    expected = expected_of(one.transform(frame.drop(columns="id")), frame)
    gone = [nulls == "propagate" and i in (1, 3, 4) for i in range(12)]
    assert np.isnan(expected).all(axis=1).tolist() == gone
    for output in ("columns", "array"):
        options = {"keep": ["id"], "form": form, "output": output}
        if output == "array" and engine.name in ("sqlite", "mysql"):
            with pytest.raises(LimitError, match=f"{engine.name} has no arrays"):
                engine.features(one, **options)
            break
        found = engine.features(one, **options)[:, 1:]
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-9, equal_nan=True), output


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "columns", "pool"), [(0, 3, "hadamard"), (1, 1, "s=3")])
def test_the_smallest_tables(engine, form, rows, columns, pool):
    frame = shuffled(dyadic(rows, columns))
    engine.store(frame)
    krp = paper_krp(2, 3, n_terms=1, random_state=0, **POOLS[pool])
    krp.fit([f"c{i}" for i in range(columns)])
    found = engine.features(krp, keep=["id"], form=form)[:, 1:]
    assert np.allclose(found, krp.transform(frame).reshape(rows, 3), rtol=1e-13)


def as_entries(frame):
    """The same table as (r, f, v), without its zeros; a row's number is 10 and its place."""
    rows, features = np.nonzero(frame.to_numpy())
    values = frame.to_numpy()[rows, features]
    return pd.DataFrame({"r": rows + 10, "f": features, "v": values})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("pool", "scaling"), [("s=3", None), ("hadamard", "unit")])
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
    if scaling is None:
        projected = engine.features(krp, "entries", rows="keys", stage="projection", **sparse)
        twin = krp.program_.projection().apply(frame.to_numpy())
        assert np.array_equal(projected[:, 1:], twin)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("nulls", "output"), [("zero", "columns"), ("mean", "columns"), ("propagate", "array")]
)
def test_missing_entries_are_not_absent_ones(engine, form, nulls, output):
    output = output if dialect(engine.name).array else "columns"
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
    found = engine.features(krp, "entries", **options)[:, 1:]
    expected = krp.transform(frame)
    assert np.isnan(expected).any() == (nulls == "propagate")
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)
    if hasattr(engine, "database"):
        del options["output"]
        assert engine.database.verify(krp, "entries", **options).ok


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


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "postgres"], indirect=True)
@pytest.mark.parametrize(
    ("form", "pool"), [("wide", {"n_hyperplanes": 30}), ("tables", {"pool": "hadamard"})]
)
def test_1500_columns(engine, form, pool):
    # Single precision, as 1,500 doubles are more than a row of Postgres holds.
    frame = dyadic(20, 1500).astype("float32")
    engine.store(frame.assign(id=np.arange(20)))
    krp = paper_krp(3, 40, n_terms=2, dtype="float64", random_state=0, **pool).fit(frame)
    features = krp.transform(frame)
    found = engine.features(krp, keep=["id"], form=form)[:, 1:]
    assert np.abs(found - features).max() <= 1e-12 * np.abs(features).max()
    if form == "wide":
        projected = krp.program_.projection().apply(frame.to_numpy())
        found = engine.features(krp, keep=["id"], form=form, stage="projection")[:, 1:]
        assert np.array_equal(found, projected)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_are_columns_as_any(engine, form):
    engine.store(pd.DataFrame({"alive": [1.0]}), "canary")
    names = [name for name in spelt_apart(HOSTILE + INNER) if name not in engine.its_own]
    frame = dyadic(6, len(names), names=names)
    frame.iloc[2, 3] = np.nan
    engine.store(frame.assign(**{"the id": range(6)}), "source")
    krp = paper_krp(2, 3, n_hyperplanes=9, n_terms=1, coef0=1.0)
    krp.set_params(random_state=0, nulls="propagate", scaling="unit").fit(frame)
    found = engine.features(krp, "source", keep=["the id", *names], form=form)
    assert np.array_equal(found[:, 1:-3], frame, equal_nan=True)
    assert np.allclose(found[:, -3:], krp.transform(frame), rtol=1e-12, equal_nan=True)
    if hasattr(engine, "database"):
        assert engine.database.verify(krp, "source", form=form, sample=4).ok
    assert engine.rows("SELECT * FROM canary") == [(1.0,)]


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_are_tables_as_any(engine, form):
    engine.store(pd.DataFrame({"alive": [1.0]}), "canary")
    frame = dyadic(6, 2).assign(id=range(6))
    krp = paper_krp(1, 1, n_terms=1, n_hyperplanes=3, random_state=0).fit(["c0", "c1"])
    # Those of signs are one name, but for what ends a quote or a comment at once.
    none = ("*/", "--", '""', *engine.its_own)
    signs = "".join(name for name in HOSTILE if len(name) <= 2 and name not in none)
    for name in (signs, "*/ --", " ", "select", "1", "a\\", '"', *HOSTILE[-4:], "source", "inputs"):
        if name in engine.its_own:
            continue
        engine.store(frame, name)
        try:
            found = engine.features(krp, name, keep=["id"], form=form)[:, 1:]
        finally:
            engine.drop(name)
        assert np.allclose(found, krp.transform(frame), rtol=1e-12), name
    assert engine.rows("SELECT * FROM canary") == [(1.0,)]


@pytest.mark.parametrize("form", FORMS)
def test_names_that_the_engine_would_cut_are_refused(engine, form):
    limit = {"postgres": "63", "mysql": "64"}.get(engine.name)
    name = "n" * 200
    krp = paper_krp(2, 3, n_terms=1, random_state=0).fit([name, "b"])
    if limit is not None:
        with pytest.raises(SqlkrpError, match=f"and {engine.name} cuts names after {limit}"):
            krp.to_sql("t", form=form, dialect=engine.name)
        return
    frame = dyadic(6, 2, names=[name, "b"]).assign(id=range(6))
    engine.store(frame, name)
    found = engine.features(krp, name, keep=["id"], form=form)[:, 1:]
    engine.drop(name)
    assert np.allclose(found, krp.transform(frame), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "long", [("row_id", "feature", "value"), ("k0", "row_key", "place"), ("keys", "name", "x0")]
)
def test_the_names_inside_a_statement_are_keys_as_any(engine, form, long):
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
    if engine.name in ("duckdb", "sqlite", "bigquery", "mysql", "spark"):
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


def test_long_chains_are_written_so_that_the_engine_reads_them(engine):
    frame = shuffled(dyadic(8, 4))
    engine.store(frame)
    for count in (2, 5, 7):
        parts = [sqlkrp.KRP(2, 4, n_terms=1, gamma=0.01) for _ in range(count)]
        one = sqlkrp.chain(*parts, random_state=0).fit(frame, exclude=["id"])
        found = engine.features(one, keep=["id"])[:, 1:]
        expected = expected_of(one.transform(frame), frame)
        assert np.allclose(found, expected, rtol=1e-9), count


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "sqlite", "datafusion", "clickhouse"],
                         indirect=True)  # fmt: skip
def test_what_a_nested_select_names_is_computed_once(engine):
    """Inlined, the sums of n levels would be 2^n - 1."""
    explain, addition = PLANS[engine.name]
    engine.store(pd.DataFrame({"c0": [1.0, 2.0]}))
    facts = dialect(engine.name)
    for levels in (4, 12):
        below = "t"
        for level in range(levels):
            value = "h + h * 3" if level else "c0 + c0 * 3"
            below = f"({facts.nested_select} {value} AS h FROM {below} {facts.fence}) s"
        rows = engine.rows(f"{explain} SELECT * FROM {below}")
        plan = "\n".join(str(column) for row in rows for column in row)
        assert levels <= len(re.findall(addition, plan)) <= 2 * levels + 2, plan
    assert facts.computes_once


#: How an engine tells its plan, and what stands there for an addition. DuckDB does not print it:
#: where a SELECT is inlined, its projection is gone.
PLANS = {
    "duckdb": ("EXPLAIN (FORMAT json)", "PROJECTION"),
    "postgres": ("EXPLAIN (VERBOSE)", r" \+ "),
    "sqlite": ("EXPLAIN", r"'Add'|\bAdd\b"),
    "datafusion": ("EXPLAIN", r" \+ "),
    "clickhouse": ("EXPLAIN json = 1, actions = 1", r'"plus\(|"plus'),
}
