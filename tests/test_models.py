"""Models: what scikit-learn trained, as SQL; held against its own predictions."""

import functools
import warnings

import numpy as np
import pytest
from sklearn import preprocessing
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingClassifier
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
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC, LinearSVR
from support import FORMS, dyadic, forms_of, store

import sqlkrp
from sqlkrp.models.estimators import ESTIMATORS

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
CLASSIFIERS = {
    "logistic": LogisticRegression,
    "logistic, searched": lambda: LogisticRegressionCV(Cs=3, cv=3, use_legacy_attributes=False),
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
    with warnings.catch_warnings(action="ignore"):
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


@pytest.mark.parametrize("name", EVERY)
def test_every_estimator_says_in_sql_what_it_says_in_python(name, connection):
    estimator, model = trained(name)
    found, expected = model.predict(table()), estimator.predict(features())
    if model.answers is None:
        assert np.allclose(found, expected, rtol=1e-9)
    else:
        assert found.tolist() == expected.tolist()
    store(connection, table())
    db = sqlkrp.connect(connection)
    db.create(krp(), "t", "f", keep=["id"])
    for number, form in enumerate(FORMS):
        db.score(everything(model), "t", into=f"s{number}", keep=["id"], form=form)
        require_same(estimator, model, connection.execute(f"FROM s{number}").fetchall())
    db.score(everything(model), features="f", into="of_features", keep=["id"])
    require_same(estimator, model, connection.execute("FROM of_features").fetchall())


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
    for form in forms_of(engine.name):
        statement = everything(model).statement(("t",), keep=["id"], form=form, dialect=engine.name)
        require_same(estimator, model, engine.run(statement))


def test_every_estimator_that_is_read_is_tested():
    tested = {type(trained(name)[0]).__name__ for name in EVERY}
    siblings = {
        "RandomizedSearchCV", "LarsCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "ARDRegression",
        "OrthogonalMatchingPursuit", "QuantileRegressor", "TheilSenRegressor", "MultiTaskLasso",
        "MultiTaskElasticNet",
    }  # fmt: skip
    assert set(ESTIMATORS) <= tested | siblings
