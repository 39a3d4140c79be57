"""Models: what scikit-learn trained, as SQL; held against its own predictions."""

import dataclasses
import functools
import json
import math
from inspect import signature
from itertools import product

import duckdb
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn import preprocessing
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import VotingClassifier
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_classif
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    GammaRegressor,
    HuberRegressor,
    Lars,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier
from support import FORMS, dyadic, forms_of, rewrite, store, unwarned

import sqlkrp
from sqlkrp.errors import (
    ColumnError,
    MapFileError,
    MissingValueError,
    ParameterError,
    TargetExistsError,
)
from sqlkrp.maps.parameters import copied
from sqlkrp.models import scoring
from sqlkrp.models.estimators import ESTIMATORS
from sqlkrp.models.model import answer_names
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.names import quote
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import write
from sqlkrp.stages import Linear, Program, SumOfProducts, Votes, apply
from sqlkrp.summaries.models import explanation_lines

ROWS = 60


@functools.cache
def table():
    return dyadic(ROWS, 4).assign(id=np.arange(ROWS))


@functools.cache
def krp():
    return sqlkrp.KRP(2, 8, random_state=0).fit(table(), exclude=["id"])


@functools.cache
def features():
    return krp().transform(table())


@functools.cache
def numbers():
    noise = np.random.default_rng(0).normal(size=ROWS)
    return features() @ np.linspace(-1, 1, 8) + 0.1 * noise


def labels(*names):
    """Each of some labels for a part of the rows, of values that overlap."""
    edges = np.quantile(numbers(), np.linspace(0, 1, len(names) + 1)[1:-1])
    place = np.searchsorted(edges, numbers() + 0.3 * np.roll(numbers(), 1))
    return np.array(names)[place]


TWO = {"text": ("b", "C"), "truth": (False, True), "signs": (-1, 1), "numbers": (10, 2)}
THREE = ("b", "a", "C")

POSITIVE = {
    "poisson": PoissonRegressor,
    "gamma": GammaRegressor,
    "tweedie": functools.partial(TweedieRegressor, power=1.5),
    "tweedie, identity": functools.partial(TweedieRegressor, power=0),
    "log1p": lambda: TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1),
    "log": lambda: TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp),
}
REGRESSIONS = {
    one.__name__: one
    for one in (
        LinearRegression, Ridge, RidgeCV, Lasso, LassoCV, ElasticNet, ElasticNetCV, Lars,
        BayesianRidge, HuberRegressor, SGDRegressor, LinearSVR,
    )
}  # fmt: skip
# Of scikit-learn 1.8, which warns where it is not given.
NEWER = {"use_legacy_attributes": False}
NEWER = {name: NEWER[name] for name in NEWER if name in signature(LogisticRegressionCV).parameters}
CLASSIFIERS = {
    "logistic": LogisticRegression,
    "logistic, searched": lambda: LogisticRegressionCV(Cs=3, cv=3, **NEWER),
    "one vs rest": lambda: OneVsRestClassifier(LogisticRegression()),
    "one vs rest of margins": lambda: OneVsRestClassifier(LinearSVC(random_state=0)),
    "gradient": lambda: SGDClassifier(random_state=0),
    "gradient, logistic": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "support vectors": lambda: LinearSVC(random_state=0),
    "ridge": RidgeClassifier,
    "ridge, searched": RidgeClassifierCV,
    "perceptron": lambda: Perceptron(random_state=0),
    "calibrated": lambda: CalibratedClassifierCV(LinearSVC(random_state=0), cv=3),
    "calibrated once": lambda: CalibratedClassifierCV(RidgeClassifier(), ensemble=False),
    "votes": lambda: VotingClassifier(
        [("a", LogisticRegression()), ("b", LinearSVC(random_state=0)), ("c", RidgeClassifier())],
        weights=[1, 2, 1.5],
    ),
    "votes, equal": lambda: VotingClassifier(
        [("a", LogisticRegression()), ("b", LinearSVC(random_state=0))]
    ),
    "votes of probabilities": lambda: VotingClassifier(
        [("a", LogisticRegression()), ("b", LogisticRegression(C=0.01))],
        voting="soft",
        weights=[1, 3],
    ),
    "a scaler behind": lambda: make_pipeline(preprocessing.StandardScaler(), LogisticRegression()),
    "searched": lambda: GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=3),
}


@functools.cache
def trained(name):
    """An estimator that is trained on features, and the model of it."""
    kind, _, more = name.partition("/")
    if kind in REGRESSIONS:
        estimator, y = REGRESSIONS[kind](), numbers()
        if more:
            y = np.column_stack([y, y**2])
    elif kind in POSITIVE:
        estimator, y = POSITIVE[kind](), np.exp(numbers() / np.abs(numbers()).max())
    else:
        estimator, y = CLASSIFIERS[kind](), labels(*TWO.get(more, THREE))
    with unwarned():
        estimator.fit(features(), y)
    return estimator, sqlkrp.model(estimator, krp())


def everything(model):
    """The model, saying all that it can."""
    return model if model.answers is None else model.saying(model.answers.says)


def require_same(estimator, model, rows):
    """Raise AssertionError unless rows of ids and answers are what an estimator says."""
    rows = sorted(rows, key=lambda row: int(row[0]))
    assert [int(row[0]) for row in rows] == list(range(ROWS))
    names = everything(model).program.names
    said = {name: [row[place + 1] for row in rows] for place, name in enumerate(names)}
    if model.answers is None:
        expected = estimator.predict(features()).reshape(ROWS, -1)
        found = np.array([said[name] for name in names], dtype="f8").T
        assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()
        return
    kind = type(model.answers.classes[0])  # some engines have numbers for truth values
    assert [kind(one) for one in said["label"]] == estimator.predict(features()).tolist()
    for what, method in (("probability", "predict_proba"), ("decision", "decision_function")):
        if what in model.answers.says and hasattr(estimator, method):
            expected = getattr(estimator, method)(features()).reshape(ROWS, -1)
            if what == "probability" and expected.shape[1] == 2:
                expected = expected[:, 1:]
            found = [said[name] for name in names if name.startswith(what)]
            difference = np.abs(np.array(found, dtype="f8").T - expected).max()
            assert difference <= 1e-9 * np.abs(expected).max()


EVERY = [
    *REGRESSIONS,
    "Ridge/of two",
    *POSITIVE,
    *(f"{one}/{more}" for one in CLASSIFIERS for more in ("text", "three")),
    *(f"logistic/{more}" for more in ("truth", "signs", "numbers")),
    *(f"support vectors/{more}" for more in ("truth", "signs", "numbers")),
]


@pytest.fixture(scope="module")
def stored():
    """DuckDB with the table, and its features in another."""
    with duckdb.connect() as opened:
        store(opened, table())
        db = sqlkrp.connect(opened)
        db.create(krp(), "t", "f", keep=["id"])
        yield opened, db


@pytest.mark.parametrize("name", EVERY)
def test_every_estimator_says_in_sql_what_it_says_in_python(name, stored):
    # In one form: what their models are made of is in all of them in each engine, below.
    connection, db = stored
    estimator, model = trained(name)
    found, expected = model.predict(table()), estimator.predict(features())
    if model.answers is None:
        assert np.allclose(found, expected, rtol=1e-9)
    else:
        assert found.tolist() == expected.tolist()
    options = {"into": "s", "keep": ["id"], "replace": True}
    for source in (
        {"table": "t"},
        {"table": "t", "as_": "polynomial"},
        {"features": "f"},
    ):
        db.score(everything(model), **source, **options)
        require_same(estimator, model, connection.execute("FROM s").fetchall())


#: Together they have each stage that a model has, each link, and each type of label.
SOME = [
    "Ridge/of two", "poisson", "log1p", "logistic/truth", "logistic/three", "one vs rest/three",
    "support vectors/numbers", "calibrated/three", "votes/three", "votes/text",
    "votes of probabilities/three",
]  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_models_say_in_every_engine_what_they_say_in_python(engine, name):
    estimator, model = trained(name)
    engine.store(table())
    forms = forms_of(engine.name)
    for form, way in [*product(forms, ["features"]), (forms[0], "polynomial")]:
        asked = everything(model).written_as(way)
        statement = asked.statement(("t",), keep=["id"], form=form, dialect=engine.name)
        require_same(estimator, model, engine.run(statement))


def test_every_estimator_that_is_read_is_tested():
    tested = {type(trained(name)[0]).__name__ for name in EVERY}
    # Each has the attributes and the meaning of one that is.
    siblings = {
        "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "LarsCV",
        "LassoLars", "LassoLarsCV", "LassoLarsIC", "ARDRegression", "OrthogonalMatchingPursuit",
        "QuantileRegressor", "TheilSenRegressor", "MultiTaskLasso", "MultiTaskElasticNet",
    }  # fmt: skip
    assert set(ESTIMATORS) <= tested | siblings


# --- polynomials ----------------------------------------------------------------------------------

#: Maps whose features are polynomials in the columns.
POLYNOMIAL = {
    "krp": sqlkrp.KRP(3, 9, coef0=0.5, scaling="standard", clip=2.0, random_state=0),
    "achlioptas": sqlkrp.KRP(2, 9, pool="achlioptas", s=2, gamma=0.25, random_state=0),
    "products of products": sqlkrp.KRP(4, 9, n_terms=2, gamma=0.25, random_state=0),
    "by degree": sqlkrp.MixedKRP(3, 30, n_terms=2, gamma=0.25, random_state=0),
    "complex": sqlkrp.ComplexKRP(3, 8, gamma=0.25, coef0=0.5, random_state=0),
    "explicit": sqlkrp.ExplicitRP(n_components=9, gamma=0.25, random_state=0),
    "prp": sqlkrp.PRP(n_components=9, random_state=0),
    "projection": sqlkrp.RandomProjection(9, random_state=0),
    "sketch": sqlkrp.TensorSketch(2, 8, random_state=0),
    "maclaurin": sqlkrp.RandomMaclaurin(9, degree=3, random_state=0),
    "rank one": sqlkrp.RankOneProjection(9, random_state=0),
    "pca": sqlkrp.PCA(3),
    "chain": sqlkrp.chain(sqlkrp.PCA(3), sqlkrp.KRP(2, 9), random_state=0),
    "ensemble": sqlkrp.Ensemble(sqlkrp.KRP(2, 4), 2, random_state=0),
}
NO_POLYNOMIAL = {
    "fourier": sqlkrp.RandomFourier(8, random_state=0),
    "landmarks": sqlkrp.Nystroem(5, random_state=0),
    "signs": sqlkrp.RankOneProjection(9, binary=True, random_state=0),
}


def weighed(kind):
    """A model of arbitrary weights on a map."""
    one = copied({**POLYNOMIAL, **NO_POLYNOMIAL}[kind])
    one = one.fit(table(), exclude=["id"])
    coef = np.random.default_rng(1).normal(size=(2, len(one.program.names)))
    return one, sqlkrp.model(map=one, coef=coef, intercept=[0.5, -1])


@pytest.mark.parametrize("kind", POLYNOMIAL)
def test_a_model_of_a_polynomial_kernel_is_a_polynomial(kind, connection):
    one, model = weighed(kind)
    X = table()
    expected = model.predict(X)
    polynomial = model.written_as("polynomial").program
    assert polynomial.stages[-1].n_outputs == 2
    inputs = X[list(one.feature_names_in_)].to_numpy()
    found = polynomial.apply(inputs)
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    store(connection, X)
    assert sqlkrp.connect(connection).verify(model.written_as("polynomial"), "t").ok


@pytest.mark.parametrize("kind", NO_POLYNOMIAL)
def test_a_model_of_another_kernel_is_none(kind):
    _, model = weighed(kind)
    with pytest.raises(ParameterError, match="is no polynomial of few enough terms"):
        model.written_as("polynomial").to_sql("t")
    with pytest.raises(ParameterError, match="is no polynomial of few enough terms"):
        model.explain()
    assert model.to_sql("t") == model.written_as("features").to_sql("t")


def test_the_way_with_fewer_operations_is_taken():
    """12 columns have 91 monomials of degree two, and 2,000 columns two million."""
    few, many = (
        sqlkrp.KRP(2, 60, scaling=None, random_state=0).fit([f"c{i}" for i in range(count)])
        for count in (8, 2000)
    )
    for one, way in ((few, "polynomial"), (many, "features")):
        model = sqlkrp.model(map=one, coef=np.ones(60))
        asked = model.written_as(way)
        assert sum(model.program.cost) == sum(asked.program.cost)
    with pytest.raises(ParameterError, match="few enough terms"):
        sqlkrp.model(map=many, coef=np.ones(60)).written_as("polynomial").to_sql("t")


@pytest.mark.parametrize("kind", ["krp", "complex", "pca", "sketch"])
def test_terms_add_up_to_the_prediction(kind):
    one, model = weighed(kind)
    X = table()[list(one.feature_names_in_)]
    found = model.explain(top=None)
    prepared = dict(zip(X, apply(one.program.prepare, X.to_numpy()).T, strict=False))
    assert found.terms[0].size == max(term.size for term in found.terms)
    held = {name: np.clip(X[name], *bounds) for name, bounds in bounds_of(one).items()}
    for values, which in ((prepared, "coefficients"), (held, "raw")):
        total = np.zeros((ROWS, 2))
        for term in (found.constant, *found.terms):
            factors = [values[name] for name in term.columns]
            total += np.multiply.outer(
                np.prod(factors, axis=0) + np.zeros(ROWS), getattr(term, which)
            )
        assert np.allclose(total, model.predict(X), rtol=1e-9, atol=1e-9)


def bounds_of(one):
    prepare = one.program.prepare
    none = [(-np.inf, np.inf)] * len(prepare.columns)
    bounds = list(zip(*prepare.bounds, strict=True)) if prepare.bounds else none
    return dict(zip(prepare.columns, bounds, strict=True))


def test_terms_are_the_strongest_first_and_have_names():
    """(a + 2b)^2 with the weight 3, from a map that is just that."""
    one = sqlkrp.RandomProjection(1, scaling=None, random_state=0).fit(["a", "b"])
    signs = Linear.dense(np.array([[1.0, 2.0]]))
    square = SumOfProducts.squares(1)
    one = one._with_program(Program((one.program.prepare, signs, square), ("f",)))
    found = sqlkrp.model(map=one, coef=[3.0], intercept=7.0).explain(top=2)
    assert [(term.name, term.coefficients) for term in found.terms] == [
        ("a × b", (12.0,)), ("b²", (12.0,)),
    ]  # fmt: skip
    assert (found.constant.coefficients, found.n_terms) == ((7.0,), 3)
    with pytest.raises(ParameterError, match="top=0"):
        sqlkrp.model(map=one, coef=[3.0]).explain(top=0)


def test_columns_matter_by_what_they_change(place):
    """A model of a sum: what a column of other rows changes is a hand calculation."""
    frame = dyadic(400, 3, seed=1).assign(id=np.arange(400))
    weights = np.array([1.0, -0.25, 0.0])
    one = Ridge().fit(frame[["c0", "c1", "c2"]], frame.c0)
    one.coef_ = weights
    model = sqlkrp.model(one)
    place.store(frame)
    found = place.database.importance(model, ("t",))
    assert (found.rows, found.what) == (400, "prediction")
    spread = (frame[["c0", "c1", "c2"]] @ weights).std(ddof=0)
    # Of two rows of 81 values each, the mean difference is a third of their range.
    expected = np.abs(weights) * (80 / 8) / 3 / spread
    assert list(found.columns) == ["c0", "c1", "c2"]
    assert np.allclose(list(found.columns.values()), expected, rtol=0.15)
    assert found.columns["c2"] == 0
    assert place.database.importance(model, ("t",), sample=50).rows == 50


def test_any_model_may_be_asked_which_columns_matter(connection):
    X = table()[["c0", "c1"]]
    fourier = sqlkrp.RandomFourier(60, random_state=0).fit(X)
    y = labels("a", "b", "c")
    model = sqlkrp.model(LogisticRegression().fit(fourier.transform(X), y), fourier)
    store(connection, table())
    db = sqlkrp.connect(connection)
    found = db.importance(model, "t")
    values = model.decision_function(X)
    rng = np.random.default_rng(1)
    for name in X:
        changes = []
        for _ in range(40):
            changed = model.decision_function(X.assign(**{name: rng.permutation(X[name])}))
            changes.append((np.abs(changed - values).mean(axis=0) / values.std(axis=0)).mean())
        # One exchange of all rows is as far from the mean of many as each of these is.
        assert abs(found.columns[name] - np.mean(changes)) < 4 * np.std(changes)
    periodic = pd.DataFrame({"a": np.arange(ROWS) % 2 * 1.0, "b": rng.normal(size=ROWS)})
    store(connection, periodic, "periodic")
    halves = sqlkrp.model(Ridge(1e-6).fit(periodic, periodic.a))
    # Of two values half and half, an exchange changes every other row by two deviations.
    assert db.importance(halves, "periodic").columns["a"] == pytest.approx(1, abs=0.4)
    with pytest.raises(ParameterError, match="sample=1"):
        db.importance(model, "t", sample=1)
    connection.execute("CREATE TABLE one AS FROM t LIMIT 1")
    with pytest.raises(ColumnError, match="two rows and more"):
        db.importance(model, "one")
    left = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert sorted(left) == [("one",), ("periodic",), ("t",)]


# --- what is asked of a model ---------------------------------------------------------------------


def test_a_model_is_saved_and_read_again(tmp_path):
    for name in ("logistic/three", "calibrated/text", "votes/three", "log1p", "logistic/truth"):
        _, model = trained(name)
        model.save(tmp_path / "m.json")
        loaded = sqlkrp.load(tmp_path / "m.json")
        assert loaded.digest_ == model.digest_
        assert loaded.title == model.title
        assert loaded.to_sql("t") == model.to_sql("t")
        assert np.array_equal(loaded.predict(table()), model.predict(table()))
        if model.answers is not None:
            assert loaded.classes_.tolist() == model.classes_.tolist()


def test_a_changed_weight_is_seen(tmp_path):
    trained("logistic/text")[1].save(tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text())
    weights = document["stages"][-2]["value"]
    weights["zlib_base64"] = weights["zlib_base64"][:-8] + "AAAAAAA="
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(MapFileError, match="was changed after it was saved"):
        sqlkrp.load(tmp_path / "m.json")


def test_what_it_says_can_be_chosen():
    _, model = trained("logistic/three")
    assert model.program.names[:2] == ("label", "probability_C")
    asked = model.saying(["decision", "label"])
    assert asked.program.names == ("decision_C", "decision_a", "decision_b", "label")
    assert asked.digest_ == model.digest_
    for outputs in (["score"], [], ["prediction"]):
        with pytest.raises(ParameterError, match="says label, probability, decision"):
            model.saying(outputs)
    _, margins = trained("support vectors/text")
    with pytest.raises(ParameterError, match="calibrate it with CalibratedClassifierCV"):
        margins.saying(["probability"])
    with pytest.raises(ParameterError, match="calibrate it"):
        margins.predict_proba(table())
    _, calibrated = trained("calibrated/text")
    with pytest.raises(ParameterError, match="no decisions"):
        calibrated.decision_function(table())
    with pytest.raises(ParameterError, match="is a regression"):
        trained("Ridge")[1].predict_proba(table())
    with pytest.raises(ParameterError, match="output='array' is for features"):
        model.to_sql("t", output="array")


@pytest.mark.parametrize("name", ["logistic/text", "support vectors/text", "calibrated/text"])
@pytest.mark.parametrize("threshold", [0.25, 0.5, 0.75])
def test_two_classes_are_cut_where_a_threshold_says(name, threshold, connection):
    """As scikit-learn's FixedThresholdClassifier does it."""
    estimator, model = trained(name)
    cut = model.cut_at(threshold)
    assert cut.digest_ != model.digest_
    method = "decision_function" if name.startswith("support") else "predict_proba"
    fixed = FixedThresholdClassifier(
        FrozenEstimator(estimator),
        threshold=threshold,
        response_method=method,
        pos_label=model.classes_[1],
    ).fit(features(), labels(*TWO["text"]))
    expected = fixed.predict(features()).tolist()
    assert cut.predict(table()).tolist() == expected
    store(connection, table())
    db = sqlkrp.connect(connection)
    for form in FORMS:
        db.score(
            model, "t", into="s", keep=["id"], outputs=["label"], threshold=threshold, form=form,
            replace=True,
        )  # fmt: skip
        found = connection.execute("SELECT label FROM s ORDER BY id").fetchall()
        assert [one for (one,) in found] == expected


def test_a_threshold_is_a_number_of_two_classes():
    _, model = trained("logistic/text")
    for wrong in (-0.1, 1.5, float("nan"), "0.5", True):
        with pytest.raises(ParameterError, match="threshold="):
            model.cut_at(wrong)
    with pytest.raises(ParameterError, match="cuts two classes, and there are 3"):
        trained("logistic/three")[1].cut_at(0.5)


def test_predictions_are_held_between_bounds(connection):
    estimator, _ = trained("Ridge")
    low, high = np.quantile(numbers(), [0.2, 0.8])
    model = sqlkrp.model(estimator, krp(), bound=(low, high))
    expected = np.clip(estimator.predict(features()), low, high)
    assert np.allclose(model.predict(table()), expected)
    assert (expected == low).any()
    store(connection, table())
    db = sqlkrp.connect(connection)
    for form in FORMS:
        db.score(model, "t", into="s", keep=["id"], form=form, replace=True)
        found = connection.execute("SELECT prediction FROM s ORDER BY id").fetchnumpy()
        assert np.allclose(found["prediction"], expected, rtol=1e-12)
    for wrong in ((1, 0), (0,), 3, (0, float("inf")), ("a", "b")):
        with pytest.raises(ParameterError, match="give the least and the largest"):
            sqlkrp.model(estimator, krp(), bound=wrong)
    with pytest.raises(ParameterError, match="predictions of a regression"):
        sqlkrp.model(trained("logistic/text")[0], krp(), bound=(0, 1))


def test_rows_with_missing_values_have_no_answer(engine):
    frame = table().copy()
    frame.loc[[3, 7], "c1"] = np.nan
    one = sqlkrp.KRP(2, 8, nulls="propagate", random_state=0).fit(frame, exclude=["id"])
    whole = frame.dropna()
    y = np.where(whole.c0 * whole.c1 + whole.c2 > 0, "yes", "no")
    estimator = LogisticRegression().fit(one.transform(whole), y)
    model = sqlkrp.model(estimator, one)
    engine.store(frame)
    for form in forms_of(engine.name):
        statement = model.statement(("t",), keep=["id"], form=form, dialect=engine.name)
        found = {int(row[0]): row[1:] for row in engine.run(statement)}
        assert all(value is None or value != value for id in (3, 7) for value in found[id])
        expected = estimator.predict(one.transform(whole))
        assert [found[id][0] for id in whole.id] == expected.tolist()


def test_scores_go_where_they_are_asked_to(connection, tmp_path):
    _, model = trained("logistic/text")
    store(connection, table())
    db = sqlkrp.connect(connection)
    run = db.score(model, "t", into="s", keep=["id"])
    assert (run.rows, run.digest) == (ROWS, model.digest_)
    comment = connection.execute(
        "SELECT comment FROM duckdb_tables() WHERE table_name = 's'"
    ).fetchone()
    assert comment == (f"sqlkrp model {model.digest_}",)
    db.score(model, "t", into="v", view=True)
    assert connection.execute("SELECT count(*), count(label) FROM v").fetchone() == (ROWS, ROWS)
    db.score(model, "t", path=tmp_path / "s.csv", keep=["id"], outputs=["label"])
    assert (tmp_path / "s.csv").read_text().splitlines()[0] == "id,label"
    with pytest.raises(TargetExistsError):
        db.score(model, "t", into="s")
    for wrong, message in (
        (lambda: db.score(model, "t"), "into=NAME or path=FILE"),
        (lambda: db.score(model, "t", into="x", path="y.csv"), "into=NAME or path=FILE"),
        (lambda: db.score(model, "t", path=tmp_path / "y.csv", view=True), "a view is no file"),
        (lambda: db.score(model, into="x"), "give the table of rows to score"),
        (lambda: db.score(krp(), "t", into="x"), "not a model"),
        (lambda: db.score(model, "t", into="x", as_="magic"), "as_='magic' is not allowed"),
    ):
        with pytest.raises(ParameterError, match=message):
            wrong()
    assert db.verify(model, "t").ok
    run = db.score(model, "t", into="named", keep=["id"], prefix="predicted_")
    assert run.statement.columns == ("id", "predicted_label", "predicted_probability")
    db.create(krp(), "t", "f")
    again = db.score(model, features="f", into="again", prefix="predicted_")
    assert again.statement.columns == run.statement.columns[1:]
    with pytest.raises(ParameterError, match="prefix=1"):
        db.score(model, "t", into="x", prefix=1)


# --- what is read ---------------------------------------------------------------------------------


def test_a_pipeline_s_steps_are_in_the_model(connection):
    frame = table().drop(columns="id") * 3 + 5
    frame.loc[4, "c2"] = np.nan
    y = labels(*TWO["text"])
    pipeline = make_pipeline(
        SimpleImputer(strategy="median"),
        preprocessing.MinMaxScaler((-1, 2)),
        preprocessing.StandardScaler(),
        sqlkrp.KRP(2, 10, clip=1.5, random_state=0),
        VarianceThreshold(),
        preprocessing.RobustScaler(),
        SelectKBest(f_classif, k=6),
        preprocessing.MaxAbsScaler(),
        LogisticRegression(),
    ).fit(frame, y)
    model = sqlkrp.model(pipeline)
    assert model.feature_names_in_.tolist() == list(frame)
    assert model.predict(frame).tolist() == pipeline.predict(frame).tolist()
    assert np.allclose(model.predict_proba(frame), pipeline.predict_proba(frame), atol=1e-12)
    store(connection, frame.assign(id=range(ROWS)))
    db = sqlkrp.connect(connection)
    for form in FORMS:
        db.score(model, "t", into="s", keep=["id"], form=form, replace=True)
        found = connection.execute("SELECT label, probability FROM s ORDER BY id").fetchnumpy()
        assert found["label"].tolist() == pipeline.predict(frame).tolist()
        assert np.allclose(found["probability"], pipeline.predict_proba(frame)[:, 1], atol=1e-12)


def test_columns_of_a_pipeline_of_arrays_are_named():
    X, y = table().drop(columns="id"), numbers()
    pipeline = make_pipeline(
        preprocessing.StandardScaler(), sqlkrp.KRP(2, 5, random_state=0), Ridge()
    )
    pipeline.fit(X.to_numpy(), y)
    with pytest.raises(ParameterError, match=r"name them in that order \(columns="):
        sqlkrp.model(pipeline)
    model = sqlkrp.model(pipeline, columns=list(X))
    assert np.allclose(model.predict(X), pipeline.predict(X.to_numpy()))
    with pytest.raises(ColumnError, match="fitted to 4 columns, and 3 are named"):
        sqlkrp.model(pipeline, columns=list(X)[:3])


def test_a_model_of_columns_as_they_are():
    X = table().drop(columns="id")
    pipeline = make_pipeline(preprocessing.StandardScaler(), Ridge()).fit(X, numbers())
    model = sqlkrp.model(pipeline)
    assert np.allclose(model.predict(X), pipeline.predict(X))
    assert model.to_sql("t").count("SELECT") <= 4
    logged = TransformedTargetRegressor(pipeline, func=np.log1p, inverse_func=np.expm1)
    logged.fit(X, np.exp(numbers() / np.abs(numbers()).max()))
    assert np.allclose(sqlkrp.model(logged).predict(X), logged.predict(X))


def test_a_regression_of_a_log_around_a_pipeline():
    X, y = table().drop(columns="id"), np.exp(numbers() / np.abs(numbers()).max())
    pipeline = make_pipeline(
        preprocessing.StandardScaler(), sqlkrp.KRP(2, 9, random_state=0), Ridge()
    )
    logged = TransformedTargetRegressor(pipeline, func=np.log1p, inverse_func=np.expm1).fit(X, y)
    assert np.allclose(sqlkrp.model(logged).predict(X), logged.predict(X))


def test_members_of_an_ensemble_vote(connection):
    """13 Fourier maps and 13 linear models, of which most decide."""
    one = sqlkrp.Ensemble(sqlkrp.RandomFourier(6), 13, random_state=0)
    F = one.fit(table(), exclude=["id"]).transform(table())
    for y in (labels("b", "C"), labels(*THREE)):
        parts = np.split(F, 13, axis=1)
        members = [LinearSVC(random_state=0).fit(part, y) for part in parts]
        said = np.array([member.predict(part) for member, part in zip(members, parts, strict=True)])
        classes = sorted(set(y))
        votes = np.array([(said == one).sum(axis=0) for one in classes])
        expected = np.array(classes)[votes.argmax(axis=0)].tolist()
        model = sqlkrp.model(members, one)
        assert model.predict(table()).tolist() == expected
        connection.execute("DROP TABLE IF EXISTS t")
        store(connection, table())
        for form in FORMS:
            sqlkrp.connect(connection).score(
                model, "t", into="s", keep=["id"], form=form, replace=True
            )
            found = connection.execute("SELECT label FROM s ORDER BY id").fetchall()
            assert [one for (one,) in found] == expected
    with pytest.raises(ParameterError, match="give as many as it has members"):
        sqlkrp.model(members[:5], one)


@pytest.mark.parametrize("trained_on", ["numbers", "signs"])
def test_models_score_sketches_of_the_other_kind(engine, trained_on):
    """Row by row against NumPy: pi / 2 <w, sketch>, by sqrt m, where the kinds differ."""
    m, X = 70, table()
    full = sqlkrp.RankOneProjection(m, random_state=0).fit(X, exclude=["id"])
    signs = sqlkrp.RankOneProjection(m, binary=True, random_state=0).fit(X, exclude=["id"])
    one = full if trained_on == "numbers" else signs
    model = sqlkrp.model(RidgeClassifier().fit(one.transform(X), labels("b", "C")), one)
    weights = model.whole_.stages[model.after].matrix()[0]
    intercept = model.whole_.stages[model.after].constant[0]
    engine.store(X)
    kept = {
        "bits": signs.statement("t", keep=["id"], output="bits", dialect=engine.name),
        "sketches": full.statement("t", keep=["id"], output="columns", dialect=engine.name),
    }
    factor = {"bits": trained_on == "numbers", "sketches": trained_on == "signs"}
    values = {"bits": signs.transform(X), "sketches": full.transform(X)}
    for holds in ("bits", "sketches") if trained_on == "signs" else ("bits",):
        engine.keep(kept[holds], "kept_sketches")
        try:
            asked, _ = scoring(
                model.saying(["decision", "label"]), None, "f", None, None, holds=holds
            )
            statement = asked.statement(("kept_sketches",), keep=["id"], dialect=engine.name)
            rows = sorted(engine.run(statement), key=lambda row: int(row[0]))
        finally:
            engine.drop("kept_sketches")
        power = 0.5 if trained_on == "signs" else -0.5
        scale = math.pi / 2 * m**power if factor[holds] else 1.0
        expected = scale * values[holds] @ weights + intercept
        assert np.allclose([float(row[1]) for row in rows], expected, rtol=1e-9, atol=1e-9)
        assert [row[2] for row in rows] == np.where(expected > 0, "b", "C").tolist()


def test_other_sketches_are_of_rank_one_projections(connection):
    _, model = trained("logistic/text")
    full = sqlkrp.RankOneProjection(8, random_state=0).fit(table(), exclude=["id"])
    other = sqlkrp.model(map=full, coef=np.ones(8))
    db = sqlkrp.connect(connection)
    for one, holds, message in (
        (model, "bits", "train the model on its features"),
        (other, "sketches", "is for a model of signs"),
        (other, "words", "holds='words' is not allowed"),
    ):
        with pytest.raises(ParameterError, match=message):
            db.score(one, features="f", into="s", holds=holds)
    with pytest.raises(ParameterError, match="belongs to a table of features"):
        db.score(other, "t", into="s", holds="bits")


def test_features_are_matched_by_their_names():
    F = pd.DataFrame(features(), columns=krp().get_feature_names_out())
    shuffled = F[list(F)[::-1]]
    expected = Ridge().fit(F, numbers()).predict(F)
    assert np.allclose(
        sqlkrp.model(Ridge().fit(shuffled, numbers()), krp()).predict(table()), expected
    )
    some = Ridge().fit(F[list(F)[2:5]], numbers())
    found = sqlkrp.model(some, krp()).predict(table())
    assert np.allclose(found, some.predict(F[list(F)[2:5]]))
    more = Ridge().fit(F.assign(id=range(ROWS)), numbers())
    with pytest.raises(ColumnError, match="trained on 'id', which the map does not give"):
        sqlkrp.model(more, krp())


def test_plain_numbers_are_a_model():
    coef = np.arange(8.0)
    model = sqlkrp.model(map=krp(), coef=coef, intercept=2)
    assert np.allclose(model.predict(table()), features() @ coef + 2)
    three = np.arange(24.0).reshape(3, 8) % 5 - 2
    model = sqlkrp.model(map=krp(), coef=three, intercept=[0, 1, 2], classes=["x", "y", "z"])
    expected = np.array(["x", "y", "z"])[np.argmax(features() @ three.T + [0, 1, 2], axis=1)]
    assert model.predict(table()).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: [DecisionTreeClassifier().fit(features(), labels("a", "b")), krp()],
         "DecisionTreeClassifier is not read as a linear model"),
        (lambda: [GaussianNB(), krp()], "GaussianNB is not read"),
        (lambda: [Ridge(), krp()], r"this Ridge is not fitted \(it has no coef_\)"),
        (lambda: [Ridge, krp()], "Ridge is a class: give one that is trained"),
        (lambda: [Ridge().fit(features()[:, :5], numbers()), krp()],
         "5 coefficients a decision, and the map gives 8 features"),
        (lambda: [make_pipeline(preprocessing.Normalizer(), Ridge()).fit(features(), numbers()),
                  krp()], "the step Normalizer is not understood"),
        (lambda: [make_pipeline(preprocessing.Normalizer(), sqlkrp.KRP(2, 5, random_state=0),
                                Ridge()).fit(table(), numbers())],
         "the step Normalizer is not understood in front of a map"),
        (lambda: [make_pipeline(preprocessing.MinMaxScaler(clip=True), Ridge())
                  .fit(features(), numbers()), krp()], "clip=True"),
        (lambda: [Ridge().fit(features(), numbers()), "m.json"], "map is of type str, not a map"),
        (lambda: [], "nothing that was trained is given"),
        (lambda: [LogisticRegression().fit(features(), labels(1.5, 2.5).astype(str)).fit, krp()],
         "a method is not read"),
        (lambda: [TransformedTargetRegressor(Ridge(), func=np.sqrt, inverse_func=np.square)
                  .fit(features(), numbers() ** 2), krp()], "the inverses np.exp and np.expm1"),
        (lambda: [CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2)
                  .fit(features(), labels("a", "b")), krp()], "method='isotonic' is not read"),
        (lambda: [OneVsRestClassifier(DecisionTreeClassifier())
                  .fit(features(), labels(*THREE)), krp()], "DecisionTreeClassifier is not read"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_by_name(arguments, message):
    with pytest.raises(ParameterError, match=message) as told:
        sqlkrp.model(*arguments())
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (preprocessing.Normalizer(), "in front of a map: leave it out, or use one of Simple"),
        (preprocessing.OrdinalEncoder(),
         "in front of a map (did you mean 'OneHotEncoder'?): leave it out, or use one of Simple"),
        (preprocessing.PolynomialFeatures(), "in front of a map: use sqlkrp.Monomials in its"),
    ],
)  # fmt: skip
def test_what_to_use_in_place_of_a_step_is_said_once(step, message):
    with pytest.raises(ParameterError) as told:
        sqlkrp.model(make_pipeline(step, Ridge()).fit(table(), numbers()))
    assert f"the step {type(step).__name__} is not understood {message}" in str(told.value)
    assert str(told.value).count("StandardScaler") <= 1


def test_weights_are_numbers():
    broken = Ridge().fit(features(), numbers())
    broken.coef_[3] = np.nan
    with pytest.raises(ParameterError, match="coef_ holds NaN"):
        sqlkrp.model(broken, krp())
    for coef, classes, message in (
        (np.ones(7), None, "7 coefficients"),
        (np.ones((3, 8)), ["a", "b"], "3 decisions for 2 classes"),
        (np.ones(8), ["a"], "one class alone"),
        (np.ones(8), ["a", 1], "of the types"),
        (np.ones(8), [None, "a"], "of the types"),
    ):
        with pytest.raises(ParameterError, match=message):
            sqlkrp.model(map=krp(), coef=coef, classes=classes)


def test_a_column_that_the_table_lacks_is_named(connection):
    store(connection, table().drop(columns="c2"))
    db = sqlkrp.connect(connection)
    with pytest.raises(ColumnError, match="'c2'"):
        db.score(trained("Ridge")[1], "t", into="s")
    assert connection.execute("SHOW TABLES").fetchall() == [("t",)]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_has_scores(name):
    for kind in ("logistic/truth", "logistic/three", "poisson", "votes/three"):
        text = everything(trained(kind)[1]).to_sql("t", dialect=name)
        assert text.startswith("-- ")


# --- what a user found ----------------------------------------------------------------------------


def test_columns_called_as_an_array_s_places_are():
    X = table()[["c0", "c1"]].set_axis(["x1", "x0"], axis=1)
    y = labels("a", "b")
    with pytest.raises(ColumnError, match="cannot be told from an array's places"):
        sqlkrp.model(
            make_pipeline(preprocessing.StandardScaler(), sqlkrp.KRP(2, 6), LogisticRegression())
            .fit(X, y)
        )  # fmt: skip
    direct = make_pipeline(sqlkrp.KRP(2, 6, random_state=0), LogisticRegression()).fit(X, y)
    assert sqlkrp.model(direct).predict(X).tolist() == direct.predict(X).tolist()
    one = sqlkrp.KRP(2, 6, random_state=0).fit(X.to_numpy())
    estimator = Ridge().fit(one.transform(X.to_numpy()), numbers())
    model = sqlkrp.model(estimator, one, columns=["x1", "x0"])
    assert np.allclose(model.predict(X), estimator.predict(one.transform(X.to_numpy())))


def test_columns_that_were_seen_are_not_named_again():
    X = table()[["c0", "c1"]]
    trained_on = make_pipeline(preprocessing.StandardScaler(), Ridge()).fit(X, numbers())
    with pytest.raises(ParameterError, match="saw columns of the names c0, c1"):
        sqlkrp.model(trained_on, columns=["c1", "c0"])
    with pytest.raises(ParameterError, match="columns have an order"):
        sqlkrp.model(trained_on, columns={"c0", "c1"})
    one = sqlkrp.KRP(2, 2, random_state=0).fit(X)
    with pytest.raises(ColumnError, match="trained on 'c0', which the map does not give"):
        sqlkrp.model(Ridge().fit(X, numbers()), one)


def test_labels_of_several_kinds_a_row_are_refused():
    y = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]] * 20)
    with pytest.raises(ParameterError, match="several labels a row"):
        sqlkrp.model(RidgeClassifier().fit(features(), y), krp())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coef": "abc"}, "is no table of numbers"),
        ({"coef": [[1.0] * 8, [1.0]]}, "is no table of numbers"),
        ({"coef": [10**400] * 8}, "is no table of numbers"),
        ({"coef": np.ones((3, 8)), "intercept": [1, 2]}, "give one each"),
        ({"coef": np.ones(8), "intercept": "x"}, "is no table of numbers"),
        ({"coef": np.ones(8), "classes": {"a", "b"}}, "give a list, in their order"),
        ({"coef": np.ones(8), "classes": "ab"}, "give a list, in their order"),
        ({"coef": np.ones(8), "classes": ["a", "a"]}, "are not different"),
        ({"coef": np.ones(8), "classes": ["a", "\udc80"]}, "no text"),
    ],
)
def test_numbers_that_are_none_are_said(arguments, message):
    with pytest.raises(ParameterError, match=message):
        sqlkrp.model(map=krp(), **arguments)


def test_a_row_without_an_answer_has_none_in_python_too():
    frame = table().copy()
    frame.loc[3, "c1"] = np.nan
    one = sqlkrp.KRP(2, 8, nulls="propagate", random_state=0).fit(frame, exclude=["id"])
    for classes in (["a", "b"], ["a", "b", "c"]):
        coef = np.ones(8) if len(classes) == 2 else np.arange(24.0).reshape(3, 8)
        said = sqlkrp.model(map=one, coef=coef, classes=classes).predict(frame)
        assert [place for place, label in enumerate(said) if label is None] == [3]


def test_a_map_that_is_changed_later_changes_no_model():
    one = sqlkrp.KRP(2, 8, random_state=0).fit(table(), exclude=["id"])
    model = sqlkrp.model(map=one, coef=np.ones(8))
    title = model.title
    one.set_params(n_components=5, degree=4)
    assert model.title == title


def test_a_pipeline_in_a_pipeline_may_hold_the_map():
    X, y = table().drop(columns="id"), numbers()
    scaler, one = preprocessing.StandardScaler, sqlkrp.KRP(2, 6, random_state=0)
    for trained_on in (
        make_pipeline(scaler(), make_pipeline(one, Ridge())),
        make_pipeline(make_pipeline(scaler(), one), scaler(), Ridge()),
        make_pipeline(
            scaler(),
            TransformedTargetRegressor(
                make_pipeline(one, Ridge()), func=np.log1p, inverse_func=np.expm1
            ),
        ),
    ):
        trained_on.fit(X, np.exp(y / np.abs(y).max()))
        assert np.allclose(sqlkrp.model(trained_on).predict(X), trained_on.predict(X))


@pytest.mark.parametrize(
    "change",
    [
        {"after": 99}, {"after": "x"}, {"after": 0}, {"after": -1}, {"features": "x"},
        {"says": ["foo"]}, {"says": []}, {"names": ["a"]}, {"estimator": 5},
    ],
    ids=str,
)  # fmt: skip
def test_a_file_that_was_made_up_is_said_to_be_damaged(tmp_path, change):
    trained("logistic/text")[1].save(tmp_path / "m.json")
    rewrite(tmp_path / "m.json", lambda made: made["parameters"].update(change), forge=True)
    with pytest.raises(MapFileError, match="is damaged"):
        sqlkrp.load(tmp_path / "m.json")


class Mine(sqlkrp.KRP):
    """A class of a user's, of whose name no other process knows."""


def test_a_file_that_could_not_be_read_again_is_not_written(tmp_path):
    mine = Mine(2, 4, random_state=0)
    fitted = mine.fit(table(), exclude=["id"])
    weights = sqlkrp.model(map=fitted, coef=np.ones(4))
    both = sqlkrp.Ensemble(mine, 2, random_state=0).fit(table(), exclude=["id"])
    votes = sqlkrp.model(map=both, coef=np.ones(8))
    for one in (weights, votes, fitted, both):
        with pytest.raises(ParameterError, match="Mine is a class of yours"):
            one.save(tmp_path / "m.json")
        assert not list(tmp_path.iterdir())
        assert one.to_sql("t")


def test_a_model_without_a_map_is_not_told_to_draw_one(connection):
    X = table()[["c0", "c1"]].copy()
    model = sqlkrp.model(Ridge().fit(X, X.c0))
    X.loc[3, "c1"] = np.nan
    store(connection, X)
    for score in (
        lambda: model.predict(X),
        lambda: sqlkrp.connect(connection).score(model, "t", into="s"),
    ):
        with pytest.raises(MissingValueError, match=r"'c1' \(1\).* behind a SimpleImputer"):
            score()


def test_raw_coefficients_of_several_decisions_are_shown():
    """2 (a - 3) = 2 a - 6, and for the other decision 5 (a - 3) = 5 a - 15."""
    frame = pd.DataFrame({"a": [1.0, 5.0]})
    one = Ridge().fit(frame, [[0, 0], [1, 1]])
    one.coef_, one.intercept_ = np.array([[2.0], [5.0]]), np.zeros(2)
    pipeline = make_pipeline(preprocessing.StandardScaler(with_std=False).fit(frame), one)
    lines = explanation_lines(sqlkrp.model(pipeline, columns=["a"]).explain())
    assert [line.split()[:3] for line in lines[:6]] == [
        ["prediction_0:"], ["constant", "+0", "-6"], ["a", "+2", "+2"],
        ["prediction_1:"], ["constant", "+0", "-15"], ["a", "+5", "+5"],
    ]  # fmt: skip
    assert "and of raw ones" in lines[6]


def test_a_model_is_not_saved_over_a_map(tmp_path):
    krp().save(tmp_path / "k.map.json")
    _, model = trained("Ridge")
    with pytest.raises(TargetExistsError, match=r"holds a map \(KRP\)"):
        model.save(tmp_path / "k.map.json")
    model.save(tmp_path / "m.json")
    model.save(tmp_path / "m.json")
    assert sqlkrp.load(tmp_path / "k.map.json").digest_ == krp().digest_


def test_classes_that_differ_in_case_have_columns_of_their_own(connection):
    names = ("a", "A", "b")
    model = sqlkrp.model(LogisticRegression().fit(features(), labels(*names)), krp())
    assert model.program.names[1:] == ("probability_A_0", "probability_a_1", "probability_b")
    store(connection, table())
    assert sqlkrp.connect(connection).score(model, "t", into="s").rows == ROWS


def test_what_an_encoder_gives_sparsely_goes_into_a_map_and_out_of_a_model(connection):
    frame = pd.DataFrame({"id": range(60), "colour": list("rgb") * 20, "size": list("SMLX") * 15})
    encoder = ColumnTransformer([("texts", preprocessing.OneHotEncoder(), ["colour", "size"])])
    assert scipy.sparse.issparse(encoder.fit_transform(frame))
    trained = make_pipeline(encoder, sqlkrp.KRP(2, 8, random_state=0), RidgeClassifier())
    trained.fit(frame, np.arange(60) % 4 % 3)
    model = sqlkrp.model(trained)
    assert np.allclose(model.decision_function(frame), trained.decision_function(frame))
    store(connection, frame)
    assert sqlkrp.connect(connection).verify(model, "t").ok


# --- where it could be wrong ----------------------------------------------------------------------


def of_columns(coef, classes=None, intercept=0.0, columns=("a", "b")):
    """A model whose decisions are sums of columns as they are."""
    one = sqlkrp.RandomProjection(len(columns), scaling=None, random_state=0).fit(list(columns))
    same = Linear.dense(np.eye(len(columns)), np.zeros(len(columns)))
    names = tuple(f"f{i}" for i in range(len(columns)))
    one = one._with_program(Program((one.program.prepare, same), names))
    return sqlkrp.model(map=one, coef=coef, intercept=intercept, classes=classes)


def test_a_tie_is_the_first_s(engine):
    """As NumPy's argmax has it, in labels and in votes."""
    X = pd.DataFrame({"a": [1.0, 0.0, 2.0, 1.0], "b": [1.0, 0.0, 1.0, 3.0]})
    model = of_columns([[1, 0], [0, 1], [0, 1]], ["x", "y", "z"]).saying(["label"])
    votes = Program((*model.whole_.stages[:3], Votes(3, groups=1)), ("x", "y", "z"))
    labels_of_rows = [("x",), ("x",), ("x",), ("y",)]
    ones = [(1, 0, 0), (1, 0, 0), (1, 0, 0), (0, 1, 0)]
    assert model.predict(X).tolist() == [one for (one,) in labels_of_rows]
    assert list(map(tuple, votes.apply(X.to_numpy()))) == ones
    engine.store(X.assign(id=range(4)))
    facts = DIALECTS[engine.name]
    query = model.query(quote("t", facts), Options(keep=("id",)))
    for program, expected in ((model.program, labels_of_rows), (votes, ones)):
        statement = write(dataclasses.replace(query, program=program), facts)
        rows = sorted(engine.run(statement), key=lambda row: int(row[0]))
        assert [tuple(row[1:]) for row in rows] == expected


def test_large_decisions_leave_no_range(engine):
    """1e308 and its like: no engine overflows, and the largest takes all."""
    X = pd.DataFrame({"a": [1000.0, -1000.0, 1e300, 0.0], "b": [0.0, 0.0, -1e300, 0.0]})
    two = of_columns([1, -1], ["no", "yes"]).saying(["label", "decision"])
    several = of_columns([[1, 0], [0, 1], [-1, 0]], ["x", "y", "z"])
    last = dataclasses.replace(several.answers, link="softmax", says=("label", "probability"))
    program = Program((*several.whole_.stages[:-1], last), answer_names(last))
    expected = program.apply(X.to_numpy())
    assert np.isfinite(expected).all()
    assert np.allclose(expected[:3, 1:], [[1, 0, 0], [0, 0, 1], [1, 0, 0]])
    one = dataclasses.replace(two.answers, link="sigmoid", says=("label", "probability"))
    sigmoid = Program((*two.whole_.stages[:-1], one), answer_names(one))
    assert sigmoid.apply(X.to_numpy())[:, 1].tolist() == [1, 0, 1, 0.5]
    engine.store(X.assign(id=range(4)))
    facts = DIALECTS[engine.name]
    for model, asked in ((several, program), (two, sigmoid)):
        query = model.query(quote("t", facts), Options(keep=("id",)))
        statement = write(dataclasses.replace(query, program=asked), facts)
        rows = sorted(engine.run(statement), key=lambda row: int(row[0]))
        found = np.array([[float(one) for one in row[2:]] for row in rows])
        assert np.allclose(found, asked.apply(X.to_numpy())[:, 1:], atol=1e-12)


def test_constants_of_features_are_in_the_model():
    """f = x + 1, so that 2 f + 3 is 2 x + 5."""
    one = sqlkrp.RandomProjection(1, scaling=None, random_state=0).fit(["a"])
    moved = Linear.picked(1, np.zeros(1), 1.0, 1.0)
    one = one._with_program(Program((one.program.prepare, moved), ("f",)))
    model = sqlkrp.model(map=one, coef=[2.0], intercept=3.0)
    assert model.predict(pd.DataFrame({"a": [0.0, 10.0]})).tolist() == [5, 25]


def test_each_way_has_side_tables_of_its_own(connection, tmp_path, monkeypatch):
    """So that the statement of one way never joins the tables of another."""
    _, model = trained("Ridge")
    store(connection, table())
    expected = model.predict(table())
    for way in ("features", "polynomial"):
        asked = model.written_as(way)
        asked.save_tables(tmp_path / way)
        monkeypatch.chdir(tmp_path / way)
        connection.execute((tmp_path / way / "load.sql").read_text())
    for way in ("features", "polynomial", "auto"):
        text = model.written_as(way).to_sql("t", form="tables")
        found = connection.execute(text).fetchnumpy()["prediction"]
        assert np.allclose(found, expected, rtol=1e-9)
    assert {*side_tables_of(model, "auto")} == {*side_tables_of(model, "polynomial")}
    assert not {*side_tables_of(model, "auto")} & {*side_tables_of(model, "features")}


def side_tables_of(model, way):
    return model.written_as(way).statement("t", form="tables").side_tables
