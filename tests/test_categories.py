"""Pipelines as people write them: columns of text among those of numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from support import forms_of, store

import sqlkrp
from sqlkrp.errors import ColumnError, InconsistentMapError, MissingValueError, ParameterError
from sqlkrp.stages import Category, Prepare, encoded

ROWS = 60
#: To the letter: what a column holds is no other category for its case, quotes or spaces.
CITIES = ["Bonn", "bonn", "Köln's", 'a "b" -- c;', "x\\y"]


def people(missing=True):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": np.arange(ROWS),
            "age": rng.integers(0, 640, ROWS) / 8,
            "city": rng.choice(CITIES, ROWS),
            "rooms": rng.integers(1, 4, ROWS),
            "paid": rng.integers(-40, 41, ROWS) / 8,
        }
    )
    frame["city"] = frame.city.astype(object)
    if missing:
        frame.loc[[2, 11], "city"] = None
        frame.loc[[5, 11], "age"] = np.nan
    return frame


def churned(frame):
    return np.where((frame.age.fillna(30) > 40) ^ (frame.city == "bonn"), "yes", "no")


def pipeline(*behind, text=None, **options):
    """Numbers imputed and scaled, texts as categories, a map, and a model."""
    encoder = OneHotEncoder(sparse_output=False, **options)
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
             ["age", "paid"]),
            ("texts", encoder if text is None else make_pipeline(text, encoder), ["city"]),
            ("more", OneHotEncoder(sparse_output=False, drop="first"), ["rooms"]),
        ]
    )  # fmt: skip
    return make_pipeline(
        columns, sqlkrp.KRP(2, 12, random_state=0), StandardScaler(), *behind, LogisticRegression()
    )


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (None, {}),  # a missing text is a category of its own
        (None, {"handle_unknown": "ignore"}),
        (SimpleImputer(strategy="most_frequent", missing_values=None), {"drop": "first"}),
        (SimpleImputer(strategy="constant", fill_value="?", missing_values=None), {}),
    ],
    ids=["missing", "ignored", "most frequent", "constant"],
)
def test_a_pipeline_with_texts_says_the_same_in_every_engine(engine, text, options):
    frame = people()
    y = churned(frame)
    trained = pipeline(text=text, **options).fit(frame, y)
    model = sqlkrp.model(trained)
    assert model.feature_names_in_.tolist() == ["age", "paid", "city", "rooms"]
    expected, shares = trained.predict(frame).tolist(), trained.predict_proba(frame)[:, 1]
    assert model.predict(frame).tolist() == expected
    engine.store(frame)
    for form in forms_of(engine.name):
        statement = model.statement(("t",), keep=["id"], form=form, dialect=engine.name)
        rows = sorted(engine.run(statement), key=lambda row: int(row[0]))
        assert [row[1] for row in rows] == expected
        assert np.allclose([float(row[2]) for row in rows], shares, rtol=1e-9)


def test_it_runs_checks_and_verifies_where_the_rows_are(place):
    frame = people()
    trained = pipeline().fit(frame, churned(frame))
    model = sqlkrp.model(trained)
    place.store(frame)
    db = place.database
    assert db.score(model, ("t",), into="s", keep=["id"]).rows == ROWS
    found = sorted(place.rows("SELECT * FROM s"))
    assert [row[1] for row in found] == trained.predict(frame).tolist()
    for sample in (1000, 20):
        result = db.verify(model, ("t",), sample=sample)
        assert result.ok
        assert result.rows == min(sample, ROWS)


def test_a_category_that_was_never_seen_is_none_of_those_that_were(connection):
    frame = people(missing=False)
    trained = pipeline(handle_unknown="ignore").fit(frame, churned(frame))
    model = sqlkrp.model(trained)
    other = frame.assign(city="Ulm")
    store(connection, other)
    sqlkrp.connect(connection).score(model, "t", into="s", keep=["id"])
    found = connection.execute("SELECT probability FROM s ORDER BY id").fetchnumpy()
    assert np.allclose(found["probability"], trained.predict_proba(other)[:, 1])


def test_missing_numbers_that_nobody_imputed_are_an_error(connection):
    frame = people()
    columns = ColumnTransformer(
        [("numbers", MinMaxScaler(), ["age", "paid"]),
         ("texts", OneHotEncoder(sparse_output=False), ["city"])]
    )  # fmt: skip
    whole = frame.dropna()
    trained = make_pipeline(columns, sqlkrp.KRP(2, 6, random_state=0), Ridge())
    trained.fit(whole, whole.paid)
    model = sqlkrp.model(trained)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    with pytest.raises(MissingValueError, match=r"'age' \(2\)"):
        db.score(model, "t", into="s")
    connection.execute("CREATE TABLE whole AS FROM t WHERE age IS NOT NULL")
    assert db.score(model, "whole", into="s").rows == ROWS - 2


def test_a_model_without_a_map_may_have_texts(connection):
    frame = people(missing=False)
    columns = ColumnTransformer(
        [("texts", OneHotEncoder(), ["city"]), ("rest", "passthrough", slice("rooms", "paid"))],
        remainder="drop",
    )
    trained = make_pipeline(columns, Ridge()).fit(frame, frame.age)
    model = sqlkrp.model(trained)
    store(connection, frame)
    sqlkrp.connect(connection).score(model, "t", into="s", keep=["id"])
    found = connection.execute("SELECT prediction FROM s ORDER BY id").fetchnumpy()
    assert np.allclose(found["prediction"], trained.predict(frame))


def test_a_model_with_texts_is_saved_and_its_columns_may_be_spelt_in_another_way(tmp_path):
    frame = people()
    model = sqlkrp.model(pipeline().fit(frame, churned(frame)))
    model.save(tmp_path / "m.json")
    loaded = sqlkrp.load(tmp_path / "m.json")
    assert loaded.digest_ == model.digest_
    assert loaded.predict(frame).tolist() == model.predict(frame).tolist()
    spelt = loaded.renamed(["AGE", "City", "ROOMS", "paid"])
    assert '"City" = ' in spelt.to_sql("t")
    assert spelt.digest_ == model.digest_


def test_what_cannot_be_read_is_said(connection):
    frame = people(missing=False)
    y = churned(frame)
    model = sqlkrp.model(pipeline().fit(frame, y))
    db = sqlkrp.connect(connection)
    taken = next(one.name for one in model.program.prepare.categories if one.value == "Bonn")
    store(connection, frame.assign(**{taken: 1}))
    with pytest.raises(ColumnError, match="as the model calls the category 'city=Bonn'"):
        db.score(model, "t", into="s")
    with pytest.raises(ParameterError, match="known by their names: give a DataFrame"):
        model.predict(frame.to_numpy())
    store(connection, pd.DataFrame({"r": [1], "f": ["age"], "v": [1.0]}), "long")
    with pytest.raises(ParameterError, match="give a table that has the columns"):
        db.score(model, "long", into="s", long=("r", "f", "v"))
    for wrong, message in (
        (pipeline(min_frequency=2), "min_frequency or max_categories"),
        (pipeline(text=SimpleImputer(strategy="constant", fill_value="?", missing_values="x")),
         "missing_values='x'"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=message):
            sqlkrp.model(wrong.fit(frame, y))
    scaled = make_pipeline(StandardScaler(), OneHotEncoder(sparse_output=False), Ridge())
    with pytest.raises(ParameterError, match="OneHotEncoder of scaled columns"):
        sqlkrp.model(scaled.fit(frame[["rooms"]], frame.paid))
    half = ColumnTransformer([("a", SimpleImputer(), ["age"]), ("b", "passthrough", ["paid"])])
    with pytest.raises(ColumnError, match="'paid' is not imputed and others are"):
        sqlkrp.model(make_pipeline(half, Ridge()).fit(frame, frame.rooms))


def test_categories_in_numpy_are_to_the_letter():
    texts = ["a", "A", None, float("nan"), pd.NA, 1, "1"]
    assert encoded(Category("c=a", "c", "a"), texts).tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert encoded(Category("c=a", "c", "a", True), texts).tolist() == [1, 0, 1, 1, 1, 0, 0]
    assert encoded(Category("c=", "c", None, True), texts).tolist() == [0, 0, 1, 1, 1, 0, 0]
    assert encoded(Category("c=1", "c", 1), texts).tolist() == [0, 0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    "categories",
    [
        [("b", "c", "x", False)],  # no input
        [("a", "c", "x", False)] * 2,  # twice
        [("a", "a", "x", False)],  # of an input itself
        [("a", "a", None, False)],
        [("a", "c", [1], False)],  # no plain value
    ],
)
def test_categories_that_are_not_consistent_are_our_fault(categories):
    with pytest.raises(InconsistentMapError):
        Prepare(("a",), np.zeros(1), np.zeros(1), np.ones(1), categories=categories)


def test_weights_of_a_column_transformer_are_in_the_model():
    frame = people(missing=False)
    columns = ColumnTransformer(
        [("a", StandardScaler(), ["age", "paid"]),
         ("b", OneHotEncoder(sparse_output=False), ["city"])],
        transformer_weights={"a": 3.0, "b": 0.5},
    )  # fmt: skip
    for steps in ([], [sqlkrp.KRP(2, 9, random_state=0)]):
        trained = make_pipeline(columns, *steps, Ridge()).fit(frame, frame.rooms)
        assert np.allclose(sqlkrp.model(trained).predict(frame), trained.predict(frame))


@pytest.mark.parametrize(
    ("whole", "name"),
    [
        (lambda one: CalibratedClassifierCV(one, cv=2), "CalibratedClassifierCV"),
        (lambda one: VotingClassifier([("a", one), ("b", one)]), "VotingClassifier"),
        (OneVsRestClassifier, "OneVsRestClassifier"),
    ],
)
def test_steps_inside_of_others_are_to_be_put_in_front(whole, name):
    frame = people(missing=False)
    y = churned(frame)
    columns = ColumnTransformer(
        [("a", StandardScaler(), ["age"]), ("b", OneHotEncoder(sparse_output=False), ["city"])]
    )
    inside = whole(make_pipeline(columns, LinearSVC())).fit(frame, y)
    with pytest.raises(ParameterError, match=f"is not read inside a {name}: put the") as told:
        sqlkrp.model(inside)
    assert f"make_pipeline(ColumnTransformer(...), {name}(...))" in str(told.value)
    in_front = make_pipeline(columns, whole(LinearSVC())).fit(frame, y)
    assert sqlkrp.model(in_front).predict(frame).tolist() == in_front.predict(frame).tolist()


def test_texts_are_not_compared_with_numbers(connection):
    frame = people(missing=False).assign(zip=np.array(["01", "1", "9"])[np.arange(ROWS) % 3])
    encoder = ColumnTransformer([("zip", OneHotEncoder(sparse_output=False), ["zip"])])
    model = sqlkrp.model(make_pipeline(encoder, Ridge()).fit(frame, frame.paid))
    numbers = frame.assign(zip=frame.zip.astype(int))
    store(connection, numbers)
    with pytest.raises(ColumnError, match="categories that are texts: cast it in a view"):
        sqlkrp.connect(connection).score(model, "t", into="s")
    with pytest.raises(ColumnError, match="categories that are texts"):
        model.predict(numbers)
    other = ColumnTransformer([("r", OneHotEncoder(sparse_output=False), ["rooms"])])
    model = sqlkrp.model(make_pipeline(other, Ridge()).fit(frame, frame.paid))
    store(connection, frame.assign(rooms="1"), "words")
    with pytest.raises(ColumnError, match="categories that are numbers"):
        sqlkrp.connect(connection).score(model, "words", into="s")


@pytest.mark.parametrize("stored", [bool, int])
@pytest.mark.parametrize("seen", [bool, int, float])
def test_truth_values_and_numbers_are_the_same_categories(place, seen, stored):
    frame = people(missing=False)
    frame["flag"] = (frame.age > 40).astype(int)
    learned = frame.assign(flag=frame.flag.astype(seen))
    if seen is not bool:
        learned.loc[3, "flag"] = 2  # which no truth value is
    encoder = ColumnTransformer([("flag", OneHotEncoder(sparse_output=False), ["flag"])])
    model = sqlkrp.model(make_pipeline(encoder, Ridge()).fit(learned, frame.paid))
    rows = frame[["id"]].assign(flag=frame.flag.astype(stored))
    place.store(rows)
    expected = model.predict(frame.assign(flag=frame.flag.astype(seen)))
    place.database.score(model, ("t",), into="s", keep=["id"])
    found = [said for _, said in sorted(place.rows("SELECT * FROM s"))]
    assert len(set(found)) == 2
    assert np.allclose(found, expected, rtol=1e-12)
    assert list(place.database.importance(model, ("t",)).columns) == ["flag"]


def test_categories_that_a_table_cannot_have_are_refused():
    frame = people(missing=False)
    frame["two"] = pd.Series([["a", None, np.nan][i % 3] for i in range(ROWS)], dtype=object)
    frame["day"] = pd.Timestamp("2026-01-01")
    for column, message in (("two", "cannot tell apart"), ("day", "encode it as text")):
        encoder = ColumnTransformer([("c", OneHotEncoder(sparse_output=False), [column])])
        with pytest.raises(ParameterError, match=message):
            sqlkrp.model(make_pipeline(encoder, Ridge()).fit(frame, frame.paid))
