"""Features beside columns, and beside other features: FeatureUnion and ColumnTransformer."""

import functools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from support import FORMS, dyadic, forms_of, paper_krp, rewrite, store, unwarned

import sqlkrp
from sqlkrp.errors import (
    ColumnError,
    InconsistentMapError,
    MapFileError,
    MissingValueError,
    ParameterError,
)
from sqlkrp.stages import Category, Linear, Paths, Prepare, Program

ROWS = 60
NUMBERS = ["age", "fare", "rooms"]


@functools.cache
def people():
    """Columns of different units, with values that maps hold by default."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.arange(ROWS),
            "age": rng.normal(40, 9, ROWS),
            "fare": rng.gamma(1, 200, ROWS),
            "rooms": rng.integers(1, 4, ROWS),
            "city": rng.choice(["Bonn", "Ulm", "Köln"], ROWS),
        }
    )


def with_gaps():
    frame = people().copy()
    frame.loc[[2, 11], "age"] = np.nan
    frame.loc[[5, 11], "fare"] = np.nan
    return frame


def krp(**more):
    return sqlkrp.KRP(2, 8, random_state=0, **more)


def fourier(**more):
    return sqlkrp.RandomFourier(6, random_state=1, **more)


def union(*parts, **more):
    return FeatureUnion([(f"part{i}", one) for i, one in enumerate(parts)], **more)


def apart(*parts, **more):
    return ColumnTransformer([(f"part{i}", *one) for i, one in enumerate(parts)], **more)


def one_hot(**more):
    return OneHotEncoder(sparse_output=False, **more)


def numeric(*more, strategy="mean"):
    return make_pipeline(SimpleImputer(strategy=strategy), StandardScaler(), *more)


#: What stands between the table and the model, and the columns that it reads.
TOGETHER = {
    "raw": ([SimpleImputer(), StandardScaler(), union(krp(), "passthrough")], NUMBERS),
    "raw in front": ([union("passthrough", krp())], NUMBERS),
    "scaled in two ways": ([union(make_pipeline(StandardScaler(), krp()), MinMaxScaler())],
                           NUMBERS),
    "scaled behind": ([union(make_pipeline(krp(), StandardScaler()), "passthrough"),
                       StandardScaler()], NUMBERS),
    "weighed": ([union(krp(), "passthrough", transformer_weights={"part0": 0.25, "part1": 3.0})],
                NUMBERS),
    "selected": ([union(krp(), fourier(), "passthrough"), SelectKBest(f_classif, k=9)], NUMBERS),
    "texts": ([apart((make_pipeline(StandardScaler(), krp()), NUMBERS), (one_hot(), ["city"]))],
              [*NUMBERS, "city"]),
    "a number as category too": ([apart((one_hot(drop="first"), ["rooms", "city"]),
                                        (krp(clip=1.0), NUMBERS), ("passthrough", ["rooms"]))],
                                 [*NUMBERS, "city"]),
    "the rest": ([apart((krp(), ["fare", "age"]), remainder="passthrough")], NUMBERS),
    "two maps": ([StandardScaler(), union(krp(), fourier())], NUMBERS),
    "two maps and columns": ([union(make_pipeline(MinMaxScaler(), fourier()), krp(scaling="minmax"),
                                    sqlkrp.KRP(3, 5, coef0=0.0, random_state=3), "passthrough",
                                    "drop")], NUMBERS),
    "of one length": ([union(krp(scaling="unit"), sqlkrp.KRP(1, 4, coef0=0.5, scaling="unit"))],
                      NUMBERS),
    "union in a union": ([union(union(krp(), "passthrough"), StandardScaler())], NUMBERS),
    "a union of columns": ([apart((union(krp(), "passthrough"), ["age", "fare"]),
                                  (one_hot(), ["city"]))], [*NUMBERS, "city"]),
    "no products": ([union(sqlkrp.PCA(2), "passthrough")], NUMBERS),
    "columns alone": ([union(StandardScaler(), "passthrough")], NUMBERS),
}  # fmt: skip
FILLED = {
    "filled in two ways": ([union(numeric(krp()), numeric(fourier(), strategy="median"))], NUMBERS),
    "filled apart": ([apart((numeric(krp()), ["age", "fare"]),
                            (numeric(strategy="median"), NUMBERS),
                            (one_hot(), ["city"]))], [*NUMBERS, "city"]),
}  # fmt: skip
NO_POLYNOMIAL = {"selected", "two maps", "two maps and columns", "filled in two ways"}


@functools.cache
def trained(name):
    """A frame, a pipeline that was trained on it, and the model of that, saved and loaded."""
    steps, columns = {**TOGETHER, **FILLED}[name]
    frame = people() if name in TOGETHER else with_gaps()
    y = np.where((people().age > 40) ^ (people().fare > 150), "yes", "no")
    pipeline = make_pipeline(*steps, LogisticRegression(max_iter=5000))
    with unwarned():
        pipeline.fit(frame[columns], y)
    return frame, columns, pipeline, sqlkrp.model(pipeline)


def forms_and_ways(dialect, name):
    """Each form of a model's statement, and one of its polynomial if it has one."""
    forms = forms_of(dialect)
    polynomial = [] if name in NO_POLYNOMIAL else [(forms[0], "polynomial")]
    return [*((form, "features") for form in forms), *polynomial]


def require_same(name, rows):
    """Raise AssertionError unless rows of id, label, probability, decision are a pipeline's."""
    frame, columns, pipeline, _ = trained(name)
    rows = sorted(rows, key=lambda row: int(row[0]))
    assert [int(row[0]) for row in rows] == list(range(ROWS))
    assert [row[1] for row in rows] == pipeline.predict(frame[columns]).tolist()
    shares = pipeline.predict_proba(frame[columns])[:, 1]
    decisions = pipeline.decision_function(frame[columns])
    for place, expected in ((2, shares), (3, decisions)):
        found = np.array([row[place] for row in rows], dtype="f8")
        assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()


SAYS = ["label", "probability", "decision"]


@pytest.mark.parametrize("name", [*TOGETHER, *FILLED])
def test_what_stands_side_by_side_is_in_the_model(name, connection, tmp_path):
    frame, _, _, model = trained(name)
    model.save(tmp_path / "m.json")
    loaded = sqlkrp.load(tmp_path / "m.json")
    assert loaded.digest_ == model.digest_
    store(connection, frame)
    db = sqlkrp.connect(connection)
    for form, way in forms_and_ways("duckdb", name):
        asked = loaded.written_as(way).saying(SAYS)
        db.score(asked, "t", into="s", keep=["id"], form=form, as_=way, replace=True)
        require_same(name, connection.execute("FROM s").fetchall())
    assert db.verify(loaded.saying(SAYS), "t").ok
    if name in NO_POLYNOMIAL:
        with pytest.raises(ParameterError, match="is no polynomial"):
            model.written_as("polynomial").to_sql("t")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["raw in front", "a number as category too", "selected", *FILLED])
def test_every_engine_says_what_stands_side_by_side(engine, name):
    frame, _, _, model = trained(name)
    engine.store(frame)
    for form, way in forms_and_ways(engine.name, name):
        said = model.written_as(way).saying(SAYS)
        statement = said.statement(("t",), keep=["id"], form=form, dialect=engine.name)
        require_same(name, engine.run(statement))


@pytest.mark.parametrize("pool", ["hadamard", "achlioptas"])
def test_values_that_go_past_stages_are_the_same_bit_for_bit(engine, pool):
    """Nothing rounds: sums of eighths, and what is beside them in a program of paths in paths."""
    frame = dyadic(40, 6)
    one = paper_krp(2, 7, n_terms=2, pool=pool, coef0=1.0, random_state=0).fit(frame)
    prepare, *stages, _ = one.program.stages  # without the last factor
    count = prepare.n_outputs
    past = Linear.picked(count, np.array([3, 0, 3]))
    moved = Linear.picked(count, np.array([5, 1]), np.array([-0.5, 0.25]), 0.125)
    inner = Paths(count, ((past,), tuple(stages)))
    ends = Linear.picked(inner.n_outputs, np.arange(inner.n_outputs)[::-1])
    paths = Paths(count, ((moved,), (inner, ends), tuple(stages), (past,)))
    sums = np.random.default_rng(0).integers(-8, 9, (2, paths.n_outputs)) / 8
    program = Program((prepare, paths), tuple(f"f{i}" for i in range(paths.n_outputs)))
    engine.store(frame.assign(id=range(40)))
    for asked in (program, program.then([Linear.dense(sums)], ["a", "b"])):
        made = one._with_program(asked)
        expected = asked.apply(frame.to_numpy())
        for form in forms_of(engine.name):
            statement = made.statement(("t",), keep=["id"], form=form, output="columns",
                                       dialect=engine.name)  # fmt: skip
            rows = sorted(engine.run(statement), key=lambda row: int(row[0]))
            found = np.array([row[1:] for row in rows], dtype="f8")
            assert np.array_equal(found, expected), form


def test_what_is_not_needed_of_paths_is_not_computed():
    frame = dyadic(10, 8)
    one = paper_krp(2, 9, random_state=0).fit(frame)
    prepare, *stages = one.program.stages
    past = Linear.picked(8, np.array([6, 2]))
    program = Program((prepare, Paths(8, (tuple(stages), (past,)))), tuple("abcdefghijk"))
    values = program.apply(frame.to_numpy())
    column = program.only(np.array([10]))
    assert column.prepare.columns == ("c2",)
    assert [len(path) for path in column.stages[1].paths] == [1]
    assert np.array_equal(column.apply(frame[["c2"]].to_numpy()), values[:, [10]])
    some = program.only(np.array([3, 9]))
    assert sum(some.cost) < sum(program.cost) / 3
    assert np.array_equal(some.apply(frame[[*some.prepare.columns]].to_numpy()), values[:, [3, 9]])


def test_a_column_is_read_once_unless_it_is_held_or_filled_in_two_ways():
    def columns(*parts):
        frame = people()[NUMBERS]
        model = sqlkrp.model(make_pipeline(union(*parts), Ridge()).fit(frame, people().rooms))
        assert model.feature_names_in_.tolist() == NUMBERS
        return len(model.program.prepare.columns)

    scaled = make_pipeline(StandardScaler(), krp(clip=None))
    assert columns(scaled, MinMaxScaler(), "passthrough") == 3
    # Of ages and fares some are beyond three standard deviations, and rooms are held too.
    assert columns(krp(), "passthrough") == 6
    assert columns(krp(), krp(coef0=0.0)) == 3


def test_a_union_is_a_polynomial_of_the_columns():
    frame = people()[NUMBERS]
    raw = make_pipeline(union(krp(scaling="standard", clip=None), "passthrough"), Ridge())
    model = sqlkrp.model(raw.fit(frame, people().rooms))
    found = model.explain(top=None)
    assert found.n_terms == math.comb(3 + 2, 2) - 1
    total = found.constant.raw[0] + sum(
        term.raw[0] * frame[list(term.columns)].prod(axis=1) for term in found.terms
    )
    assert np.allclose(total, raw.predict(frame), rtol=1e-9)
    held = sqlkrp.model(make_pipeline(union(krp(), "passthrough"), Ridge()).fit(frame, frame.age))
    assert {"age (again)"} <= {term.name for term in held.explain(top=None).terms}


def test_a_union_of_arrays_has_columns_in_their_order():
    frame, y = people()[NUMBERS], people().rooms
    for parts in ((krp(), "passthrough"), ("passthrough", krp())):
        pipeline = make_pipeline(union(*parts), Ridge()).fit(frame.to_numpy(), y)
        with pytest.raises(ParameterError, match=r"name them in that order \(columns="):
            sqlkrp.model(pipeline)
        model = sqlkrp.model(pipeline, columns=NUMBERS)
        expected = pipeline.predict(frame.to_numpy())
        assert np.allclose(model.predict(frame), expected, rtol=1e-9)
        assert np.allclose(model.predict(frame.to_numpy()), expected, rtol=1e-9)


def test_names_that_frames_have_are_followed():
    frame, y = people()[[*NUMBERS, "city"]], people().age
    pipeline = make_pipeline(
        apart((StandardScaler(), ["fare", "age"]), (one_hot(), ["city"])),
        union(krp(), "passthrough"),
        Ridge(),
    ).set_output(transform="pandas")
    pipeline.fit(frame, y)
    assert np.allclose(sqlkrp.model(pipeline).predict(frame), pipeline.predict(frame), rtol=1e-9)


def test_stored_features_beside_their_columns_are_scored(connection):
    frame = people()
    one = krp().fit(frame[NUMBERS])
    pipeline = make_pipeline(union(krp(), StandardScaler()), Ridge()).fit(frame[NUMBERS], frame.age)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    db.create(one, "t", "f", keep=["id", *NUMBERS])
    db.score(sqlkrp.model(pipeline), features="f", into="s", keep=["id"])
    found = connection.execute("SELECT prediction FROM s ORDER BY id").fetchnumpy()
    assert np.allclose(found["prediction"], pipeline.predict(frame[NUMBERS]), rtol=1e-9)


def test_two_maps_of_one_kind_have_features_of_different_names():
    _, _, _, model = trained("two maps and columns")
    assert len(set(model.names)) == len(model.names) == 6 + 8 + 5 + 3
    assert {"krp_0", "krp_0_2", "fourier_0", "age"} <= {*model.names, "fourier_0"}
    assert model.title.startswith("LogisticRegression on RandomFourier(")
    assert model.title.endswith(" beside 3 columns")


def test_columns_that_are_read_again_are_looked_at(connection):
    """Columns read again are truth values, texts, or missing as they are in the table."""
    frame = people().assign(paid=people().rooms > 1)
    columns = [*NUMBERS, "paid"]
    pipeline = make_pipeline(union(krp(clip=0.5, scaling="standard"), "passthrough"), Ridge())
    model = sqlkrp.model(pipeline.fit(frame[columns], frame.age))
    store(connection, frame)
    db = sqlkrp.connect(connection)
    db.score(model, "t", into="s", keep=["id"])
    found = connection.execute("SELECT prediction FROM s ORDER BY id").fetchnumpy()
    assert np.allclose(found["prediction"], pipeline.predict(frame[columns]), rtol=1e-9)
    assert db.verify(model, "t").ok
    assert next(iter(db.importance(model, "t").columns)) == "age"
    spelt = model.renamed(["AGE", "Fare", "ROOMS", "Paid"])
    assert '"AGE" AS sqlkrp_again_' in spelt.to_sql("t").replace('AS "', "AS ")
    connection.execute("UPDATE t SET fare = NULL WHERE id = 3")
    with pytest.raises(MissingValueError, match=r"'fare' \(1\), 'fare \(again\)' \(1\)"):
        db.score(model, "t", into="s2")
    connection.execute("ALTER TABLE t ALTER fare TYPE VARCHAR")
    with pytest.raises(ColumnError, match="the map was drawn for a number there"):
        db.score(model, "t", into="s2")


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([union(krp(nulls="propagate"), krp(nulls="zero"))], "in different ways"),
        (
            [union(krp(nulls="mean"), "passthrough")],
            r"\('error' and 'mean'\): impute",
        ),
        ([union(krp(scaling="unit"), "passthrough")], "draw the map with another scaling"),
        ([union(krp(dtype="float32"), krp(dtype="float64"))], "draw them with one dtype"),
        ([union(krp(), "passthrough"), fourier()], "chain them"),
        ([union(krp(), "passthrough"), SimpleImputer()], "SimpleImputer is not understood behind"),
        ([union(krp(), SimpleImputer(), SimpleImputer(strategy="median"))], "filled differently"),
        ([union(SimpleImputer(), SimpleImputer(strategy="median"))], "put one imputer in front"),
        ([union("passthrough", MinMaxScaler()), krp()], "is read twice in front of the map"),
        ([union(krp(), MinMaxScaler(clip=True))], "clip=True"),
    ],
)
def test_what_cannot_stand_side_by_side_is_refused(steps, message):
    frame = people()[NUMBERS]
    with unwarned():
        pipeline = make_pipeline(*steps, Ridge()).fit(frame, frame.age)
    with pytest.raises((ParameterError, ColumnError), match=message) as told:
        sqlkrp.model(pipeline)
    assert "\n" not in str(told.value)


def test_a_file_of_paths_that_do_not_fit_is_damaged(tmp_path):
    model = trained("two maps")[-1]
    model.save(tmp_path / "m.json")

    def without_a_stage(document):
        (paths,) = (one["paths"] for one in document["stages"] if one["stage"] == "paths")
        paths[0] = paths[0][1:]

    rewrite(tmp_path / "m.json", without_a_stage, forge=True)
    with pytest.raises(MapFileError, match="is damaged"):
        sqlkrp.load(tmp_path / "m.json")


def test_a_column_read_again_is_none_that_is_made():
    again = Category("b", "c", None)
    assert again.is_column
    one = np.ones(2)
    Prepare(("c", "b"), one, one, one, categories=(again,))
    with pytest.raises(InconsistentMapError, match="looks at a category"):
        Prepare(("c", "b"), one, one, one, categories=(again, Category("c", "b", None)))


@pytest.mark.parametrize("form", FORMS)
def test_sparse_rows_have_values_beside_features(connection, form):
    frame = dyadic(20, 4).assign(id=range(20))
    X = frame.drop(columns="id")
    with unwarned():
        pipeline = make_pipeline(union(krp(scaling=None), "passthrough"), Ridge())
        pipeline.fit(X, X.c0 * X.c1)
    model = sqlkrp.model(pipeline).written_as("features")
    long = frame.melt("id", var_name="f", value_name="v")
    store(connection, long[long.v != 0])
    db = sqlkrp.connect(connection)
    db.score(model, "t", into="s", long=("id", "f", "v"), form=form, as_="features")
    found = connection.execute("SELECT prediction FROM s ORDER BY id").fetchnumpy()
    there = (X != 0).any(axis=1).to_numpy()
    assert np.allclose(found["prediction"], pipeline.predict(X)[there], rtol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_a_map_of_single_numbers_beside_columns(connection, form):
    frame = people()[NUMBERS].astype("float32")
    pipeline = make_pipeline(union("passthrough", krp()), Ridge()).fit(frame, people().age)
    model = sqlkrp.model(pipeline)
    assert model.program.prepare.dtype == "float32"
    store(connection, frame.assign(id=np.arange(ROWS)))
    db = sqlkrp.connect(connection)
    db.score(model, "t", into="s", keep=["id"], form=form)
    found = connection.execute("SELECT prediction FROM s ORDER BY id").fetchnumpy()
    assert np.allclose(found["prediction"], pipeline.predict(frame), rtol=1e-4)
    assert db.verify(model, "t", form=form).ok


@pytest.mark.parametrize("form", FORMS)
def test_rows_with_missing_values_have_no_answer_beside_columns(connection, form):
    frame = people()
    parts = [krp(nulls="propagate"), fourier(nulls="propagate"), "passthrough"]
    pipeline = make_pipeline(union(*parts), Ridge())
    model = sqlkrp.model(pipeline.fit(frame[NUMBERS], frame.age))
    store(connection, with_gaps())
    sqlkrp.connect(connection).score(model, "t", into="s", keep=["id"], form=form)
    rows = connection.execute("SELECT id, prediction FROM s ORDER BY id").fetchall()
    assert [row[0] for row in rows if row[1] is None] == [2, 5, 11]
    there = [row[0] for row in rows if row[1] is not None]
    expected = pipeline.predict(frame[NUMBERS])[there]
    assert np.allclose([rows[i][1] for i in there], expected, rtol=1e-9)
