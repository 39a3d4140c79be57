"""What is taken where nothing is said: units, bounds, gamma, terms; and what a fit warns of."""

import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from support import FORMS, dyadic, store

import sqlkrp
from sqlkrp.engines.duckdb_frames import RelationSource
from sqlkrp.errors import ColumnError, FitWarning, MapFileError, ParameterError
from sqlkrp.maps.arrays import ArraySource
from sqlkrp.maps.parameters import title_of
from sqlkrp.stages import apply


def table(**columns):
    return pd.DataFrame(columns)


def random(seed=0):
    return np.random.default_rng(seed)


def taken(frame, map_=None, **options):
    fitted = (map_ or sqlkrp.KRP(2, 3, random_state=0)).fit(frame, **options)
    return {name: one.value for name, one in fitted.taken_.items()}


# --- scaling ------------------------------------------------------------------------------------

PIXELS = {f"p{i}": random(i).integers(0, 17, 300) * (random(-i + 99).random(300) < 0.1 * (i + 1))
          for i in range(9)}  # fmt: skip
COUNTS = {f"w{i}": random(i).poisson(0.3 if i else 1.0, 400) for i in range(12)} | {
    "the": random(1).poisson(40, 400) * (random(2).random(400) < 0.4)
}
MIXED = {"income": np.arange(300) * 333.0, "age": 18 + np.arange(300) % 72}
FLAGS = {f"f{i}": (np.arange(300) % (i + 2) == 0).astype(int) for i in range(12)}


@pytest.mark.parametrize(
    ("columns", "scaling"),
    [
        (PIXELS, None),  # of one unit, though their spreads differ
        (COUNTS, None),  # counts of words, whatever the most frequent one reaches
        (FLAGS, None),
        (MIXED, "standard"),
        (FLAGS | {"age": MIXED["age"]}, "standard"),  # one number beside many indicators
        ({"kelvin": 290 + random().normal(0, 3, 50), "other": 280 + random(1).normal(0, 3, 50)},
         "standard"),  # alike, and their squares would be all that a kernel sees
        ({"a": [5.0] * 9, "b": [7.0] * 9}, None),  # nothing varies
    ],
)  # fmt: skip
def test_a_table_is_standardised_if_its_columns_are_of_different_units(columns, scaling):
    frame = pd.DataFrame(columns)
    assert taken(frame)["scaling"] == scaling
    assert taken(frame.to_numpy(dtype=float))["scaling"] == scaling  # arrays as well
    assert taken(frame)["clip"] == (3.0 if scaling else None)


def test_what_was_taken_says_why_and_is_stored(tmp_path):
    krp = sqlkrp.KRP(2, 3, random_state=0).fit(pd.DataFrame(MIXED))
    assert krp.taken_["scaling"].because == "income reaches 99,567, age 89"
    assert krp.get_params()["scaling"] == "auto"
    krp.save(tmp_path / "m.json")
    assert sqlkrp.load(tmp_path / "m.json").taken_ == krp.taken_


def test_names_and_sparse_rows_are_not_scaled():
    assert taken(["a", "b"]) == {"scaling": None, "clip": None, "gamma": 0.5, "n_terms": 5}
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE e AS SELECT 1 AS r, 'a' AS f, 900.0 AS v UNION ALL "
                           "SELECT 2, 'b', 1.0")  # fmt: skip
        db = sqlkrp.connect(connection)
        source = db.source("e", long=("r", "f", "v"))
        assert taken(source)["scaling"] is None
        with pytest.raises(ParameterError, match="one column a feature"):
            sqlkrp.KRP(2, 3, clip=2.0).fit(source)


def test_columns_of_0_and_1_are_left_as_they_are():
    frame = pd.DataFrame(FLAGS | MIXED | {"true": np.arange(300) % 3 == 0})
    prepared = sqlkrp.KRP(2, 3, coef0=0, random_state=0).fit(frame)
    values = apply(prepared.program_.prepare, frame.to_numpy(dtype=float))
    flags = [name for name in frame if name not in MIXED]
    places = [frame.columns.get_loc(name) for name in flags]
    assert np.array_equal(values[:, places], frame[flags].to_numpy(dtype=float))
    numbers = np.delete(values, places, axis=1)
    assert np.allclose(numbers.std(axis=0), 1, atol=1e-6)


# --- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("nulls", "dtype"),
    [("error", "float64"), ("zero", "float32"), ("mean", "float64"), ("propagate", "float32")],
)
def test_values_beyond_the_bounds_are_read_as_these(engine, form, nulls, dtype):
    frame = pd.DataFrame({"a": random(0).normal(5, 2, 50), "b": random(1).normal(-90, 40, 50),
                          "flag": np.arange(50) % 2.0})  # fmt: skip
    options = {"scaling": "standard", "nulls": nulls, "dtype": dtype, "random_state": 0}
    krp = sqlkrp.KRP(1, 4, n_terms=1, coef0=0, gamma=1, clip=1.5, **options).fit(frame)
    new = pd.DataFrame({"a": [5.0, 1e6, -1e6, 8.1], "b": [-90.0, 1e9, -1e9, -60.0],
                        "flag": [0.0, 1.0, 7.0, 1.0]})  # fmt: skip
    if nulls != "error":
        new.loc[4] = [np.nan, 1e9, 1.0]
    engine.store(new.assign(id=np.arange(len(new))))
    found = engine.features(krp, keep=["id"], form=form)[:, 1:]
    expected = krp.transform(new)
    tolerance = 1e-12 if dtype == "float64" and form == "wide" else 1e-5
    assert np.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    # By hand: deviations from the mean, at most 1.5 of them, on the stored hyperplanes.
    deviations = (new[["a", "b"]] - frame[["a", "b"]].mean()) / frame[["a", "b"]].std(ddof=0)
    held = np.column_stack([deviations.clip(-1.5, 1.5), new["flag"]])
    held = held[:4]
    program = krp.program_
    by_hand = held
    for stage in program.stages[1:]:
        by_hand = apply(stage, by_hand)
    assert np.allclose(expected[:4], by_hand, rtol=1e-5, atol=1e-5)


def test_without_clip_nothing_is_held():
    frame = pd.DataFrame(MIXED)
    krp = sqlkrp.KRP(2, 3, clip=None, random_state=0).fit(frame)
    assert krp.program_.prepare.bounds == ()
    assert "WHEN" not in krp.to_sql("t", form="wide").replace("CASE WHEN ISFINITE", "")


def test_bounds_are_of_standard_deviations_whatever_the_scaling():
    frame = dyadic(80, 3)
    for scaling in (None, "minmax", "standard", "unit"):
        prepare = sqlkrp.KRP(2, 3, scaling=scaling, clip=2.0).fit(frame).program_.prepare
        mean, deviation = frame.mean(), frame.std(ddof=0)
        assert np.allclose(prepare.low, mean - 2 * deviation, rtol=1e-6)
        assert np.allclose(prepare.high, mean + 2 * deviation, rtol=1e-6)


def test_a_heavy_tail_does_not_spoil_a_model():
    # A few rows carry nearly all of the square of a column: without bounds they are the features.
    rng = random(4)
    frame = pd.DataFrame({"price": rng.lognormal(0, 2.5, 3000), "size": rng.normal(100, 15, 3000)})
    target = np.log(frame["price"]).clip(-2, 4) + (frame["size"] - 100) / 15
    scores = {clip: r2_of(sqlkrp.KRP(2, 200, clip=clip, random_state=0), frame, target)
              for clip in ("auto", None)}  # fmt: skip
    assert scores["auto"] > 0.6 > scores[None]


# --- kernels ------------------------------------------------------------------------------------


def r2_of(map_, frame, target):
    train, test, y_train, y_test = train_test_split(frame, target, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        map_.fit(train)
    model = Ridge(1e-3).fit(map_.transform(train), y_train)
    return model.score(map_.transform(test), y_test)


def test_the_default_kernel_sees_linear_effects_and_products():
    frame = pd.DataFrame(random(2).normal(size=(4000, 10)), columns=[f"c{i}" for i in range(10)])
    target = frame["c0"] + frame["c1"] / 2 + frame["c2"] * frame["c3"]
    assert r2_of(sqlkrp.KRP(2, 300, random_state=0), frame, target) > 0.95
    # A homogeneous kernel of even degree is the same for x and -x.
    assert r2_of(sqlkrp.KRP(2, 300, coef0=0, random_state=0), frame, target) < 0.6


@pytest.mark.parametrize("scaling", [None, "standard", "minmax"])
def test_gamma_is_one_over_the_total_variance_of_prepared_columns(scaling):
    frame = dyadic(200, 5).assign(flag=np.arange(200) % 4 == 0)
    krp = sqlkrp.KRP(2, 3, scaling=scaling, clip=None, coef0=0, random_state=0).fit(frame)
    prepared = apply(krp.program_.prepare, frame.to_numpy(dtype=float))
    assert krp.taken_["gamma"].value == pytest.approx(1 / prepared.var(axis=0).sum(), rel=1e-5)


def test_gamma_of_other_kernels_and_rows():
    frame = dyadic(200, 5)
    assert taken(frame, sqlkrp.KRP(2, 3, scaling="unit"))["gamma"] == 1
    laplacian = taken(frame, sqlkrp.RandomFourier(4, kernel="laplacian", scaling=None))["gamma"]
    assert laplacian == pytest.approx(1 / frame.std(ddof=0).sum(), rel=1e-5)
    with pytest.raises(ColumnError, match="too large or too small"):
        sqlkrp.KRP(2, 3, scaling=None).fit(frame * 1e200)


def test_gamma_behind_another_map_is_of_its_features(connection):
    frame = dyadic(200, 5)
    store(connection, frame)
    first = sqlkrp.PCA(3, scaling=None).fit(frame)
    variance = first.transform(frame).var(axis=0).sum()
    for data in (frame, sqlkrp.connect(connection).source("t")):
        both = sqlkrp.chain(sqlkrp.PCA(3, scaling=None), sqlkrp.KRP(2, 4), random_state=0).fit(data)
        assert both.taken_["1__gamma"].value == pytest.approx(1 / variance, rel=1e-5)
    ensemble = sqlkrp.Ensemble(sqlkrp.KRP(2, 4), 2, random_state=0).fit(frame)
    assert ensemble.taken_["map__gamma"].value == pytest.approx(1 / frame.var(ddof=0).sum(), 1e-5)


def test_sparse_rows_have_the_gamma_of_the_same_rows_in_full(connection):
    dense = dyadic(60, 4).where(random(3).random((60, 4)) < 0.4, 0.0)
    long = dense.stack().rename("v").reset_index().set_axis(["r", "f", "v"], axis=1)
    store(connection, long)  # with its zeros, so that every row has an entry
    db = sqlkrp.connect(connection)
    whole = taken(dense, sqlkrp.KRP(2, 3, scaling=None))["gamma"]
    assert taken(db.source("t", long=("r", "f", "v")))["gamma"] == pytest.approx(whole, rel=1e-5)
    connection.execute("DELETE FROM t WHERE v = 0 AND f <> 'c0'")
    assert taken(db.source("t", long=("r", "f", "v")))["gamma"] == pytest.approx(whole, rel=1e-5)


def test_entries_have_achlioptas_distribution_in_a_hadamard_pool():
    # 40 columns padded to 48 in chunks of 16: s = 3, so two thirds are 0.
    krp = sqlkrp.KRP(2, 100, block_size=16, coef0=0, gamma=1, random_state=0)
    signs = np.concatenate([
        krp.set_params(random_state=seed).fit([f"c{i}" for i in range(40)])
        .program_.stages[1].linear.value
        for seed in range(20)
    ])  # fmt: skip
    draws, entries = 20, 2 * 48 * 40
    share = len(signs) / (draws * entries)
    assert share == pytest.approx(1 / 3, abs=1e-12)  # each column is in one chunk of three
    plus = np.mean(signs == 1)
    assert abs(plus - 0.5) < 4.5 * 0.5 / np.sqrt(draws * 2 * 40)  # signs are per column and block


# --- statistics ---------------------------------------------------------------------------------


def test_the_number_of_threads_does_not_change_a_digest(tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT sin(i) * 1e3 AS a, cos(i * 7) AS b, sqrt(i) AS c "
            "FROM range(400000) AS r(i)"
        )
    digests = set()
    for threads in (1, 2, 5):
        with sqlkrp.connect(str(path), threads=threads, read_only=True) as db:
            digests.add(sqlkrp.KRP(2, 3, random_state=0).fit(db.source("t")).digest_)
    with duckdb.connect(str(path), read_only=True) as connection:
        digests.add(sqlkrp.KRP(2, 3, random_state=0).fit(connection.table("t").df()).digest_)
        digests.add(sqlkrp.KRP(2, 3, random_state=0).fit(connection.table("t")).digest_)
    assert len(digests) == 1


def test_wide_tables_are_looked_at_in_parts(connection, monkeypatch):
    frame = dyadic(5, 900)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    sent = []
    run = type(db._session).rows
    monkeypatch.setattr(
        type(db._session), "rows", lambda self, sql, what: sent.append(sql) or run(self, sql, what)
    )
    sqlkrp.KRP(2, 3, random_state=0).fit(db.source("t"))
    looks = [sql.count("ISFINITE") for sql in sent if "AVG(" in sql]
    assert looks == [400, 400, 400, 400, 100, 100]


def test_every_source_has_the_same_statistics(connection):
    frame = dyadic(30, 3).assign(
        whole=np.arange(30), zero=0, flag=np.arange(30) % 2, gone=np.nan, huge=np.arange(30) * 1e150
    )
    frame.iloc[4, 0] = np.nan
    store(connection, frame)
    names = list(frame)
    of_frame = ArraySource(frame).statistics(names)
    for source in (sqlkrp.connect(connection).source("t"),
                   RelationSource(connection.table("t"))):  # fmt: skip
        found = source.statistics(names)
        for name in ("count", "min", "max", "zeros", "whole"):
            expected = getattr(of_frame, name)
            assert np.array_equal(getattr(found, name), expected, equal_nan=True), name
        for name in ("mean", "std"):
            expected = getattr(of_frame, name)
            assert np.allclose(getattr(found, name), expected, rtol=1e-12, equal_nan=True), name
        assert np.array_equal(source.head(["whole"], 7), np.arange(7.0)[:, None])


# --- what a fit leaves out and warns of -----------------------------------------------------------


def test_the_label_is_no_feature_and_is_kept(connection, tmp_path):
    frame = dyadic(9, 3).assign(label=np.arange(9))
    store(connection, frame)
    db = sqlkrp.connect(connection)
    krp = sqlkrp.KRP(2, 3, random_state=0).fit(db.source("t"), label="label")
    assert krp.feature_names_in_.tolist() == ["c0", "c1", "c2"]
    krp.save(tmp_path / "m.json")
    again = sqlkrp.load(tmp_path / "m.json")
    assert again.label_ == "label"
    db.create(again, "t", "f", keep=["c0"])
    names = [row[0] for row in connection.execute("DESCRIBE f").fetchall()]
    assert names == ["c0", "label", "krp_0", "krp_1", "krp_2"]
    assert db.verify(again, "t").ok
    connection.execute("ALTER TABLE t DROP COLUMN label")  # new rows have none
    assert db.relation(again, "t").columns == ["krp_0", "krp_1", "krp_2"]
    with pytest.raises(ColumnError, match="'lable' is not in the data"):
        krp.fit(frame, label="lable")


KEYED = "CREATE TABLE keyed ({}, a DOUBLE PRECISION, b DOUBLE PRECISION{})"


def test_primary_keys_are_left_out(tmp_path, postgres_url):
    for url in (str(tmp_path / "k.duckdb"), str(tmp_path / "k.sqlite"), postgres_url):
        make(url, KEYED.format("sale INTEGER PRIMARY KEY", ""))
        with sqlkrp.connect(url) as db:
            source = db.source("keyed")
            krp = sqlkrp.KRP(2, 3, random_state=0).fit(source)
            assert krp.feature_names_in_.tolist() == ["a", "b"]
            assert krp.left_out_ == {"sale": "a key"}
            both = sqlkrp.KRP(2, 3).fit(source, include=["sale", "a"])
            assert both.feature_names_in_.tolist() == ["sale", "a"]


def make(url, statement):
    if url.startswith("postgres"):
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement)
    elif url.endswith(".sqlite"):
        import sqlite3

        with sqlite3.connect(url) as connection:
            connection.execute(statement)
        connection.close()
    else:
        with duckdb.connect(url) as connection:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("columns", "warned"),
    [
        ({"id": [1, 1, 2]}, "column 'id' looks like a key"),
        ({"shop_id": [1, 1, 2], "Cust Id": [1, 2, 2]}, "columns 'shop_id', 'Cust Id' look like"),
        ({"number": range(100, 240)}, "column 'number' looks like a key"),
        ({"five": [5, 5, 5]}, "column 'five' is constant"),
        ({"none": [np.nan] * 3}, "column 'none' holds no value, which tells a model nothing"),
        ({"n": [np.inf, np.nan, np.nan], "m": [np.nan] * 3}, "columns 'n', 'm' hold no value"),
        ({"two": [2, np.inf, np.nan]}, "column 'two' holds one finite value, and missing ones"),
    ],
)
def test_columns_that_tell_nothing_are_named(connection, columns, warned):
    frame = pd.DataFrame(columns)
    frame["a"] = random(0).normal(size=len(frame))
    store(connection, frame)
    for data in (frame, sqlkrp.connect(connection).source("t")):
        with pytest.warns(FitWarning, match=warned) as caught:
            sqlkrp.KRP(2, 3, nulls="propagate", random_state=0).fit(data)
        assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        if not {"five", "none", "n", "two"} & {*columns}:  # what is named is wanted
            sqlkrp.KRP(2, 3, random_state=0).fit(frame, include=list(frame))


def test_whole_numbers_that_repeat_are_no_key():
    frame = pd.DataFrame({"year": 1990 + np.arange(60) % 30, "a": random(0).normal(size=60)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        sqlkrp.KRP(2, 3, random_state=0).fit(frame)


def test_rows_that_are_all_alike_are_said_to_be():
    for frame in (dyadic(1, 4), pd.DataFrame({"a": [2, np.inf, np.nan]})):
        krp = sqlkrp.KRP(2, 3, scaling="standard", nulls="propagate", random_state=0)
        with pytest.warns(FitWarning, match="no column holds more than one finite value here"):
            krp.fit(frame)


@pytest.mark.parametrize(
    ("map_", "monomials", "exact"),
    [
        (sqlkrp.KRP(2, 300), 45, sqlkrp.Monomials(degree=2)),  # 36 products, 8 columns, 1
        (sqlkrp.KRP(2, 300, coef0=0), 36, sqlkrp.Monomials(degree=2, coef0=0)),
        (sqlkrp.KRP(3, 300, coef0=0), 120, sqlkrp.Monomials(degree=3, coef0=0)),
        (sqlkrp.ComplexKRP(2, 300), 45, sqlkrp.Monomials(degree=2)),
        (sqlkrp.TensorSketch(2, 300, coef0=0.5), 45, sqlkrp.Monomials(degree=2, coef0=0.5)),
        (sqlkrp.RandomProjection(9), 8, sqlkrp.Monomials(degree=1, coef0=0)),
        (sqlkrp.PRP(40), 36, sqlkrp.Monomials(degree=2, coef0=0)),
        (sqlkrp.Ensemble(sqlkrp.KRP(2, 300), 2), 45, sqlkrp.Monomials(degree=2)),
    ],
)
def test_more_features_than_monomials_are_said_to_add_nothing(map_, monomials, exact):
    names = [f"c{i}" for i in range(8)]
    with pytest.warns(FitWarning, match=f"has only {monomials} monomials") as caught:
        map_.fit(names)
    assert f"; {title_of(exact, exact.get_params())} computes it exactly" in str(caught[0].message)
    assert len(exact.fit(names).program_.names) == monomials
    inner = getattr(map_, "map", map_)
    inner.set_params(n_components=monomials - monomials % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        map_.fit(names)


def test_so_many_monomials_are_the_rank_of_the_features():
    frame = dyadic(400, 8) / 8
    features = sqlkrp.KRP(2, 60, random_state=0).fit(frame).transform(frame)
    assert np.linalg.matrix_rank(features) == 45


def test_an_older_map_file_says_what_to_do(tmp_path):
    krp = sqlkrp.KRP(2, 3, random_state=0).fit(["a", "b"])
    path = tmp_path / "m.json"
    krp.save(path)
    path.write_text(path.read_text().replace('"format_version": 3', '"format_version": 2'))
    with pytest.raises(MapFileError, match=r"before the first release.*draw the map again"):
        sqlkrp.load(path)


# --- what an attack on these found ----------------------------------------------------------------


@pytest.mark.parametrize(("middle", "spread"), [(1e9 + 32, 1.0), (2459000.31, 0.01), (48.1, 1e-6)])
def test_what_is_left_of_a_large_mean_is_not_rounding(connection, middle, spread):
    frame = pd.DataFrame({"a": random(5).normal(middle, spread, 200), "b": range(200)})
    store(connection, frame)
    for data in (frame, sqlkrp.connect(connection).source("t")):
        prepare = sqlkrp.KRP(2, 3, coef0=0, clip=None, random_state=0).fit(data).program_.prepare
        values = apply(prepare, frame.to_numpy())
        # As near as doubles of this size are to each other.
        least = 1e-6 + 8 * np.finfo(float).eps * middle / spread
        assert np.allclose(values.mean(axis=0), 0, atol=least)
        assert np.allclose(values.std(axis=0), 1, atol=least)


@pytest.mark.parametrize("size", [1e160, 1e300, 1e-160])
def test_statistics_stay_in_range_and_are_the_same_for_every_source(connection, size):
    frame = pd.DataFrame({"a": random(0).normal(size=80) * size, "b": random(1).normal(size=80)})
    store(connection, frame)
    plain = (frame / [size, 1]).std(ddof=0) * [size, 1]
    for source in (ArraySource(frame), sqlkrp.connect(connection).source("t")):
        assert np.allclose(source.statistics(["a", "b"]).std, plain, rtol=1e-12, atol=0)


def test_sparse_statistics_do_not_cancel(connection):
    dense = pd.DataFrame(1e9 + random(3).normal(size=(40, 3)), columns=list("abc"))
    long = dense.stack().rename("v").reset_index().set_axis(["r", "f", "v"], axis=1)
    store(connection, long)
    gamma = taken(sqlkrp.connect(connection).source("t", long=("r", "f", "v")))["gamma"]
    assert gamma == pytest.approx(1 / dense.var(ddof=0).sum(), rel=1e-5)


def test_what_varies_too_little_for_a_kernel_is_not_told_to_be_constant():
    with pytest.raises(ColumnError, match="too large or too small"):
        sqlkrp.KRP(2, 3, scaling=None).fit(random(0).normal(size=(50, 2)) * 1e-300)


def test_a_label_is_one_column_that_is_not_read(connection):
    frame = dyadic(9, 3)
    with pytest.raises(ColumnError, match="'c1' is both included and the label"):
        sqlkrp.KRP(2, 3).fit(frame, label="c1", include=["c0", "c1"])
    for wrong in (5, ["c1"]):
        with pytest.raises(ParameterError, match="name one column"):
            sqlkrp.KRP(2, 3).fit(frame, label=wrong)
    long = frame.stack().rename("v").reset_index().set_axis(["r", "f", "v"], axis=1)
    store(connection, long, "entries")
    store(connection, pd.DataFrame({"r": range(9), "y": range(9)}), "keys")
    db = sqlkrp.connect(connection)
    source = db.source("entries", long=("r", "f", "v"))
    with pytest.raises(ColumnError, match="'c1' is a feature of the sparse rows"):
        sqlkrp.KRP(2, 3).fit(source, label="c1")
    krp = sqlkrp.KRP(2, 3, random_state=0).fit(source, label="y")
    found = db.relation(krp, "entries", long=("r", "f", "v"), rows="keys")
    assert found.columns == ["r", "y", "krp_0", "krp_1", "krp_2"]


def test_an_ensemble_of_chains_tells_what_its_parts_took():
    inner = sqlkrp.chain(sqlkrp.RandomProjection(3), sqlkrp.KRP(2, 4))
    fitted = sqlkrp.Ensemble(inner, 3, random_state=0).fit(dyadic(50, 4))
    assert {"map__0__scaling", "map__1__gamma", "map__1__n_terms"} <= set(fitted.taken_)


def test_a_warning_is_where_the_map_is_fitted():
    with pytest.warns(FitWarning) as caught:
        sqlkrp.KRP(2, 3, random_state=0).fit(dyadic(1, 4))
    assert caught[0].filename == __file__


def test_rows_without_values_are_said_to_tell_nothing(connection):
    store(connection, dyadic(2, 4))
    connection.execute("DELETE FROM t")  # a table may be filled later, and a DataFrame is not
    with pytest.warns(FitWarning, match="no column holds a value here"):
        sqlkrp.KRP(2, 3, random_state=0).fit(sqlkrp.connect(connection).source("t"))
    with pytest.raises(ColumnError, match=r"0 sample\(s\) \(shape=\(0, 4\)\) while a minimum of 1"):
        sqlkrp.KRP(2, 3, random_state=0).fit(dyadic(0, 4))
