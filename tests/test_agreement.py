"""The engine, in both forms, against the NumPy twin."""

import duckdb
import numpy as np
import pandas as pd
import pytest
from support import FORMS, dyadic, paper_krp, store

import sqlkrp

POOLS = {
    "s=1": {"pool": "achlioptas", "s": 1, "n_hyperplanes": 40},
    "s=3": {"pool": "achlioptas", "s": 3, "n_hyperplanes": 40},
    "s=10": {"pool": "achlioptas", "s": 10, "n_hyperplanes": 40},
    "hadamard": {"pool": "hadamard", "block_size": 8},
    "gaussian": {"pool": "gaussian", "n_hyperplanes": 40},
}

HALVES, THIRDS = {"coef0": 1.0, "gamma": 4.0}, {"coef0": 3.0, "gamma": 4.0}


def features(db, krp, form, table="t", **options):
    return db.relation(krp, table, form=form, **options).df().to_numpy(dtype=float)


# Each pool and each degree, with the constant of the kernel and without. A third of 3/4, which is
# its share in each of three chunks, has a dyadic root.
@pytest.mark.parametrize(
    ("pool", "degree", "kernel"),
    [
        *zip(POOLS, (1, 2, 3, 4, 2), [{}] * 5, strict=True),
        *zip(POOLS, (4, 3, 2, 1, 3), [HALVES] * 3 + [THIRDS, HALVES], strict=True),
    ],
)
def test_both_forms_equal_numpy_on_dyadic_data(connection, pool, degree, kernel):
    frame = dyadic(60, 21, seed=degree)
    store(connection, frame)
    krp = paper_krp(degree, 9, n_terms=3, random_state=1, **POOLS[pool], **kernel).fit(frame)
    projected = krp.program_.projection().apply(frame.to_numpy())
    expected = krp.transform(frame)
    with sqlkrp.connect(connection) as db:
        for form in FORMS:
            found = features(db, krp, form, stage="projection")
            if pool == "gaussian":
                assert np.allclose(found, projected, rtol=1e-12, atol=1e-12)
            else:
                assert np.array_equal(found, projected), form
            # Relative to the feature's own size: sums over terms may cancel.
            error = np.abs(features(db, krp, form) - expected).max(axis=0)
            assert (error <= 1e-12 * np.abs(expected).max(axis=0)).all(), form


@pytest.mark.parametrize("form", FORMS)
def test_order_of_columns_and_extra_columns_do_not_matter(connection, form):
    frame = dyadic(30, 7)
    krp = paper_krp(2, 5, random_state=0).fit(frame)
    shuffled = frame[["c3", "c0", "c6", "c1", "c5", "c2", "c4"]].assign(other="text")
    store(connection, shuffled)
    with sqlkrp.connect(connection) as db:
        assert np.array_equal(features(db, krp, form), krp.transform(frame))
    # A mapping has no order either; of a DataFrame it is asked for (test_maps.py).
    assert np.array_equal(krp.transform(dict(shuffled)), krp.transform(frame))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_rows_keep_their_order(connection, form, rows):
    frame = dyadic(rows, 3).assign(id=np.random.default_rng(0).permutation(rows))
    store(connection, frame)
    krp = paper_krp(1, 2, n_terms=1, random_state=0).fit(dyadic(1, 3))
    with sqlkrp.connect(connection) as db:
        found = db.relation(krp, "t", form=form, keep=["id"]).df()
    assert found.columns.tolist() == ["id", "krp_0", "krp_1"]
    assert found["id"].tolist() == frame["id"].tolist()
    expected = krp.transform(frame.drop(columns="id"))
    assert np.allclose(found[["krp_0", "krp_1"]].to_numpy(dtype=float), expected, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pool", ["s=3", "hadamard", "gaussian"])
def test_one_column(connection, form, pool):
    frame = dyadic(4, 1)
    store(connection, frame)
    parameters = {**POOLS[pool], "n_hyperplanes": "auto"}
    krp = paper_krp(2, 3, n_terms=2, random_state=0, **parameters).fit(frame)
    with sqlkrp.connect(connection) as db:
        assert np.allclose(features(db, krp, form), krp.transform(frame), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_a_pool_of_all_zero_hyperplanes_gives_zeros(connection, form):
    frame = dyadic(4, 2)
    store(connection, frame)
    krp = paper_krp(2, 3, n_terms=1, s=1e9, n_hyperplanes=4, random_state=0).fit(frame)
    with sqlkrp.connect(connection) as db:
        assert features(db, krp, form).tolist() == [[0.0] * 3] * 4


def with_holes(frame):
    holes = frame.copy()
    holes.iloc[1, 0] = None
    holes.iloc[3, 2] = np.inf
    holes.iloc[4, 1] = -np.inf
    return holes


def store_with_nan(connection, frame):
    """A table with NULL in row 1, NaN in row 5 and infinities."""
    store(connection, frame)
    connection.execute("ALTER TABLE t ADD COLUMN n INTEGER")
    connection.execute("UPDATE t SET n = rowid")
    connection.execute("UPDATE t SET c3 = 'nan' WHERE n = 5")
    connection.execute("ALTER TABLE t DROP COLUMN n")


@pytest.mark.parametrize("nulls", ["zero", "mean", "propagate"])
@pytest.mark.parametrize(
    ("scaling", "output"),
    [(None, "columns"), ("standard", "array"), ("minmax", "columns"), ("unit", "array")],
)
def test_policies_and_scalings_agree(connection, nulls, scaling, output):
    frame = with_holes(dyadic(12, 5))
    frame.iloc[7] = 0.0
    store_with_nan(connection, frame)
    frame.iloc[5, 3] = np.nan
    with sqlkrp.connect(connection) as db:
        krp = paper_krp(2, 4, nulls=nulls, scaling=scaling, coef0=0.5, random_state=0)
        krp.fit(db.source("t"))
        twin = paper_krp(2, 4, nulls=nulls, scaling=scaling, coef0=0.5, random_state=0).fit(frame)
        expected = twin.transform(frame)
        gone = np.isnan(expected).all(axis=1)
        assert gone.tolist() == [nulls == "propagate" and i in (1, 3, 4, 5) for i in range(12)]
        for form in FORMS:
            rows = db.relation(krp, "t", form=form, output=output).fetchall()
            if output == "array":
                assert [row[0] is None for row in rows] == gone.tolist()
                rows = [row[0] if row[0] is not None else [None] * 4 for row in rows]
            found = np.array(rows, dtype=float)
            assert np.allclose(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True), form


@pytest.mark.parametrize("form", FORMS)
def test_missing_values_are_an_error_by_default(connection, form):
    store_with_nan(connection, with_holes(dyadic(12, 5)))
    krp = paper_krp(2, 4).fit([f"c{i}" for i in range(5)])
    with sqlkrp.connect(connection) as db:
        with pytest.raises(sqlkrp.errors.MissingValueError, match=r"'c0'.*'c1'.*'c2'.*'c3'"):
            db.create(krp, "t", "f", form=form)
        assert connection.execute("SHOW TABLES").fetchall() == [("t",)]
    # The printed statement checks by itself, as nobody counts before it runs.
    text = krp.to_sql("t", form="wide")
    with pytest.raises(duckdb.Error, match="missing value in column c"):
        connection.execute(text)


NUMBERS = ["TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT",
           "UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(4,0)", "DECIMAL(9,0)", "DECIMAL(18,3)",
           "DECIMAL(38,0)", "BIGNUM", "FLOAT", "DOUBLE", "BOOLEAN"]  # fmt: skip


@pytest.mark.parametrize(
    ("type_name", "dtype"),
    [
        *((name, "float64") for name in NUMBERS),
        *((name, "float32") for name in ("TINYINT", "BIGINT", "DECIMAL(18,3)", "BOOLEAN")),
    ],
)
def test_every_numeric_type_is_read_without_overflow(connection, type_name, dtype):
    # Near the type's limit, so that an integer sum would overflow.
    top = {
        "TINYINT": 127, "UTINYINT": 255, "SMALLINT": 32767, "USMALLINT": 65535, "BOOLEAN": 1,
        "DECIMAL(4,0)": 9999,
    }.get(type_name, 10**8)  # fmt: skip
    columns = ", ".join(f"c{i} {type_name}" for i in range(6))
    connection.execute(f"CREATE TABLE t ({columns})")
    values = [[top] * 6, [0] * 6, [1, 0, 1, 0, 1, 1]]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", values)
    with sqlkrp.connect(connection) as db:
        krp = paper_krp(2, 8, s=1, n_terms=2, dtype=dtype, coef0=0.0, gamma=1.0, random_state=0)
        krp.fit(db.source("t"))
        assert krp.n_features_in_ == 6
        expected = krp.transform(np.array(values, dtype=float))
        close = {"rtol": 100 * np.finfo(dtype).eps, "atol": 100 * np.finfo(dtype).eps * top**2}
        for form in FORMS:
            assert np.allclose(features(db, krp, form), expected, **close), form
            assert db.verify(krp, "t", form=form).ok, form
        # Printed for anybody's rows it casts softly, and guards itself.
        printed = connection.execute(krp.to_sql("t", form="wide")).fetchnumpy()
        assert np.allclose(np.column_stack(list(printed.values())), expected, **close)


def test_auto_dtype_is_single_only_if_all_inputs_are(connection):
    connection.execute("CREATE TABLE f AS SELECT 1::FLOAT AS a, 2::FLOAT AS b")
    connection.execute("CREATE TABLE m AS SELECT 1::FLOAT AS a, 2::DOUBLE AS b")
    with sqlkrp.connect(connection) as db:
        single = paper_krp(2, 3).fit(db.source("f"))
        mixed = paper_krp(2, 3).fit(db.source("m"))
        assert db.relation(single, "f").types == ["FLOAT"] * 3
        assert db.relation(mixed, "m").types == ["DOUBLE"] * 3
        assert db.relation(single, "f", output="array").types == ["FLOAT[3]"]
    assert single.transform([[1.0, 2.0]]).dtype == np.float32


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pool", POOLS)
def test_single_precision_agrees_to_its_own_precision(connection, form, pool):
    store(connection, dyadic(40, 12).astype("float32"))
    with sqlkrp.connect(connection) as db:
        krp = paper_krp(2, 6, n_terms=2, random_state=0, **POOLS[pool]).fit(db.source("t"))
        assert db.verify(krp, "t", form=form, tolerance=1e-5).ok


# --- sparse input -------------------------------------------------------------------------------


def as_long(frame):
    long = frame.stack().rename("value").reset_index()
    long.columns = ["row", "feature", "value"]
    return long[long["value"] != 0]


@pytest.mark.parametrize(
    ("pool", "scaling"), [("s=3", None), ("hadamard", "unit"), ("gaussian", None)]
)
@pytest.mark.parametrize("form", FORMS)
def test_sparse_input_equals_the_wide_table(connection, form, pool, scaling):
    frame = dyadic(20, 9).where(np.random.default_rng(1).random((20, 9)) < 0.3, 0.0)
    frame.iloc[4] = 0.0
    store(connection, as_long(frame), "entries")
    store(connection, pd.DataFrame({"row": range(20), "label": [f"r{i}" for i in range(20)]}), "r")
    krp = paper_krp(2, 5, n_terms=2, coef0=0.25, scaling=scaling, random_state=0, **POOLS[pool])
    expected = krp.fit(frame).transform(frame)
    long = ("row", "feature", "value")
    with sqlkrp.connect(connection) as db:
        options = {"long": long, "form": form}
        found = db.relation(krp, "entries", rows="r", keep=["label"], **options).df()
        assert found.columns[:2].tolist() == ["row", "label"]
        assert found["label"].tolist() == [f"r{i}" for i in range(20)]
        assert np.allclose(found.iloc[:, 2:].to_numpy(dtype=float), expected, rtol=1e-12)
        without = db.relation(krp, "entries", **options).df()
        assert without["row"].tolist() == [i for i in range(20) if frame.iloc[i].any()]
        assert db.verify(krp, "entries", rows="r", **options).form == form
        assert db.verify(krp, "entries", rows="r", **options).ok
        assert db.verify(krp, "entries", sample=7, **options).rows == 7


def test_sparse_input_that_cannot_be_right_is_refused(connection):
    store(connection, as_long(dyadic(9, 4)), "entries")
    long = ("row", "feature", "value")
    names = [f"c{i}" for i in range(4)]
    with sqlkrp.connect(connection) as db:
        shifted = paper_krp(2, 3, scaling="standard").fit(dyadic(9, 4))
        with pytest.raises(sqlkrp.errors.ParameterError, match="absent entries"):
            db.verify(shifted, "entries", long=long)
        krp = paper_krp(2, 3, random_state=0).fit(db.source("entries", long=long))
        assert krp.feature_names_in_.tolist() == names
        connection.execute("INSERT INTO entries SELECT * FROM entries LIMIT 1")
        with pytest.raises(sqlkrp.errors.ColumnError, match="two entries for row 0"):
            db.verify(krp, "entries", long=long)
        connection.execute("CREATE TABLE holes AS SELECT 1 AS row, 'c1' AS feature, NULL::INT AS v")
        with pytest.raises(sqlkrp.errors.MissingValueError, match=r"'c1' \(1\)"):
            db.verify(krp, "holes", long=("row", "feature", "v"))


@pytest.mark.parametrize("form", FORMS)
def test_the_bare_projection_of_sparse_rows_does_not_take_a_missing_entry_for_zero(
    connection, form
):
    connection.execute("CREATE TABLE e (r INT, f VARCHAR, v DOUBLE)")
    connection.execute("INSERT INTO e VALUES (1, 'a', 1), (1, 'b', NULL)")
    krp = paper_krp(1, 3, n_terms=1, n_hyperplanes=3, random_state=0).fit(["a", "b"])
    sparse = {"long": ("r", "f", "v"), "form": form, "stage": "projection"}
    with sqlkrp.connect(connection) as db, pytest.raises(duckdb.Error, match="missing value"):
        db.relation(krp, "e", **sparse).fetchall()


@pytest.mark.parametrize(
    "long", [("r", "f"), ("r", "f", "v", "w"), 5, ("r", "f", 5), "rfv", ("r", "r", "v")]
)
def test_what_cannot_name_three_columns_is_refused(connection, long):
    connection.execute("CREATE TABLE e (r INT, f VARCHAR, v DOUBLE)")
    krp = paper_krp(1, 3, random_state=0).fit(["a", "b"])
    with pytest.raises(sqlkrp.errors.ParameterError, match="name three columns"):
        krp.to_sql("e", long=long)
    with (
        sqlkrp.connect(connection) as db,
        pytest.raises(sqlkrp.errors.ParameterError, match="name three columns"),
    ):
        db.create(krp, "e", "f", long=long)


# --- large tables -------------------------------------------------------------------------------


@pytest.mark.slow
def test_4862_columns_simply_work(connection):
    frame = dyadic(300, 4862)
    store(connection, frame)
    with sqlkrp.connect(connection) as db:
        krp = paper_krp(2, 200, random_state=0).fit(db.source("t"))
        result = db.verify(krp, "t")
    assert result.form == "tables"
    assert (result.rows, result.ok) == (300, True)


@pytest.mark.slow
def test_a_thousand_features_of_784_columns(connection):
    store(connection, dyadic(3000, 784))
    with sqlkrp.connect(connection) as db:
        for pool in ({"pool": "hadamard"}, {"n_hyperplanes": 488, "n_terms": 1}):
            krp = paper_krp(2, 1000, random_state=0, **pool).fit(db.source("t"))
            assert db.verify(krp, "t", sample=3000, form="wide").ok
            assert db.verify(krp, "t", sample=50, form="tables").ok


# --- what was wrong once ------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["columns", "array"])
@pytest.mark.parametrize(
    "one",
    [
        paper_krp(2, 6, n_terms=1, pool="achlioptas", s=50, n_hyperplanes=20, random_state=0),
        paper_krp(2, 6, n_terms=1, pool="hadamard", random_state=0),
        # Of the two parts of each chunk, one holds its only column and the other none.
        sqlkrp.ComplexKRP(1, 6, n_terms=1, pool="hadamard", block_size=1, random_state=0),
    ],
    ids=["achlioptas", "hadamard", "complex"],
)
def test_features_of_all_zero_hyperplanes_are_null_in_incomplete_rows(connection, output, one):
    frame = dyadic(3, 3)
    frame.iloc[1, 1] = np.nan
    store(connection, frame)
    krp = one.set_params(nulls="propagate", coef0=0.0, gamma=1.0).fit(frame)
    assert np.isnan(krp.transform(frame)).tolist() == [[False] * 6, [True] * 6, [False] * 6]
    with sqlkrp.connect(connection) as db:
        for form in FORMS:
            assert db.verify(krp, "t", form=form).ok
            rows = db.relation(krp, "t", form=form, output=output).fetchall()
            assert rows[1] == ((None,) if output == "array" else (None,) * 6)
            assert all(None not in row for row in (rows[0], rows[2]))


@pytest.mark.parametrize("form", FORMS)
def test_a_descending_default_order_changes_nothing(connection, form):
    frame = dyadic(5, 3)
    store(connection, frame)
    store(connection, as_long(frame), "entries")
    connection.execute("SET default_order = 'DESC'")
    with sqlkrp.connect(connection) as db:
        krp = paper_krp(2, 4, random_state=0).fit(frame)
        assert np.allclose(features(db, krp, form), krp.transform(frame), rtol=1e-12)
        source = db.source("entries", long=("row", "feature", "value"))
        assert list(source.kinds) == ["c0", "c1", "c2"]


@pytest.mark.parametrize("name", ["source", "entries", "prepared", "Source"])
def test_tables_named_like_the_steps_of_a_statement(connection, name):
    frame = dyadic(6, 3)
    store(connection, as_long(frame), name)
    store(connection, pd.DataFrame({"row": range(6)}), "sums_1")
    krp = paper_krp(2, 4, random_state=0, nulls="propagate", scaling="unit").fit(frame)
    with sqlkrp.connect(connection) as db:
        long = {"long": ("row", "feature", "value"), "rows": "sums_1"}
        found = db.relation(krp, name, **long).df().iloc[:, 1:].to_numpy(dtype=float)
    assert np.allclose(found, krp.transform(frame), rtol=1e-12)


def test_sparse_features_that_differ_in_case_are_two_features(connection):
    connection.execute("CREATE TABLE e AS SELECT 1 AS r, 'Ab' AS f, 2.0 AS v UNION ALL "
                       "SELECT 1, 'aB', 3.0 UNION ALL SELECT NULL, 'aB', 1 UNION ALL "
                       "SELECT NULL, 'aB', 1")  # fmt: skip
    with sqlkrp.connect(connection) as db:
        long = ("r", "f", "v")
        krp = paper_krp(2, 4, random_state=0).fit(db.source("e", long=long))
        assert krp.feature_names_in_.tolist() == ["Ab", "aB"]
        found = db.relation(krp, "e", long=long).df().iloc[:, 1:].to_numpy()
        assert np.allclose(found, krp.transform([[2.0, 3.0]]), rtol=1e-12)


def test_sparse_input_of_other_features_is_refused(connection):
    store(connection, as_long(dyadic(3, 3)), "e")
    krp = paper_krp(2, 4).fit(["d0", "d1"])
    with (
        sqlkrp.connect(connection) as db,
        pytest.raises(
            sqlkrp.errors.ColumnError,
            match=r"'d0' is one: (there|did you|the nearest)",
        ),
    ):
        db.create(krp, "e", "f", long=("row", "feature", "value"))


@pytest.mark.parametrize("key", ["[1, 2]", "'NaN'::DOUBLE", "'text'", "DATE '2026-01-01'"])
def test_sparse_rows_have_keys_of_any_type(connection, key):
    connection.execute(f"CREATE TABLE e AS SELECT {key} AS r, 'c0' AS f, 2.5 AS v")
    krp = paper_krp(2, 4, random_state=0).fit(["c0", "c1"])
    with sqlkrp.connect(connection) as db:
        assert db.verify(krp, "e", long=("r", "f", "v")).ok


def test_verify_does_not_take_rounding_for_a_difference(connection):
    x = np.arange(1, 8) / 10
    frame = pd.DataFrame({"a": x, "b": -x, "c": x, "d": -x})
    store(connection, frame)
    with sqlkrp.connect(connection) as db:
        for seed in range(40):  # some of these cancel to 0 exactly in one order of adding only
            krp = paper_krp(1, 1, n_terms=4, n_hyperplanes=4, s=1, random_state=seed).fit(frame)
            assert db.verify(krp, "t").ok
