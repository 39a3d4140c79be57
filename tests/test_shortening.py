"""Short models: a few terms of the polynomial that a model is, and what is said of the others."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from support import dyadic, rewrite, store

import sqlkrp
from sqlkrp.errors import ColumnError, MapFileError, ParameterError
from sqlkrp.stages import Linear, Prepare, Program, SumOfProducts

ROWS = 60


def square(weights=(1.0, 2.0), **prepared):
    """A map of one feature of columns a and b: the square of their weighed sum."""
    one = sqlkrp.RandomProjection(1, scaling=None, random_state=0).fit(["a", "b"])
    first = {"fill": np.zeros(2), "shift": np.zeros(2), "scale": np.ones(2)}
    for name, given in prepared.items():
        first[name] = np.array(given) if isinstance(given, list) else given
    sums = Linear.dense(np.array([weights], dtype="f8"))
    stages = (Prepare(("a", "b"), **first), sums, SumOfProducts.squares(1))
    return one._with_program(Program(stages, ("f",)))


def table():
    return dyadic(ROWS, 4).assign(id=np.arange(ROWS))


def classified(estimator, *names):
    """A model of labels, on a map that standardises its columns."""
    X = table()[["c0", "c1", "c2", "c3"]]
    krp = sqlkrp.KRP(2, 12, scaling="standard", random_state=0).fit(X)
    values = X.c0 * X.c1 + 3 * X.c2
    place = np.searchsorted(np.quantile(values, np.linspace(0, 1, len(names) + 1)[1:-1]), values)
    return sqlkrp.model(estimator.fit(krp.transform(X), np.array(names)[place]), krp)


def test_a_short_model_is_the_strongest_terms_and_the_constant(connection):
    """3 (a + 2b)^2 + 7 = 3 a^2 + 12 ab + 12 b^2 + 7, of which two terms are 12 b (a + b) + 7."""
    whole = sqlkrp.model(map=square(), coef=[3.0], intercept=7.0)
    rows = pd.DataFrame({"a": [2.0, 1.0, 0.0], "b": [0.5, 1.0, 1.0]})
    short = whole.shortened(2, on=rows)
    assert short.predict(rows).tolist() == [12 * 0.5 * 2.5 + 7, 12 * 2 + 7, 12 + 7]
    store(connection, rows)
    found = connection.sql(short.to_sql("t")).fetchall()
    assert sorted(found) == sorted((one,) for one in short.predict(rows).tolist())
    assert [term.name for term in short.explain().terms] == ["a × b", "b²"]
    assert (short.shortening.terms, short.shortening.of) == (2, 3)
    # What is dropped is 3 a^2: 12, 3 and 0.
    error = short.shortening.measured
    assert (error.rows, error.what, error.largest, error.labels) == (3, "prediction", 12.0, None)
    assert error.root_mean_square == pytest.approx(np.sqrt((144 + 9 + 0) / 3))
    assert error.deviation == pytest.approx(np.std([34, 34, 19]))
    # It is a model of its own, whatever it was measured on.
    assert short.digest_ != whole.digest_
    assert short.digest_ == whole.shortened(2).digest_ != whole.shortened(1).digest_
    assert short.title == f"{whole.title}, the strongest 2 of 3 terms"
    # Of two of a size, the first in the order of columns.
    assert [term.name for term in whole.shortened(1).explain().terms] == ["a × b"]


@pytest.mark.parametrize(
    ("weights", "prepared", "terms", "bound"),
    [
        # a is -1 ... 2 and b is 0 ... 4: a^2 is 0 ... 4, and the others are kept.
        ((1, 2), {"low": [-1.0, 0.0], "high": [2.0, 4.0]}, 2, 4.0),
        # (b - 1) / 2 is -0.5 ... 1.5: of (a - b/2)^2 the terms -ab, -3 ... 1.5, and b^2 / 4, up to
        # 0.5625, add -3 ... 2.0625.
        (
            (1, -0.5),
            {"low": [-1.0, 0.0], "high": [2.0, 4.0], "shift": [0.0, 1.0], "scale": [1.0, 0.5]},
            1,
            3.0,
        ),
        # A negative scale turns the bounds around: -b is -4 ... 0.
        ((2, 1), {"low": [-1.0, 0.0], "high": [2.0, 4.0], "scale": [1.0, -1.0]}, 2, 16.0),
        # b is not held: its end is that of the numbers.
        ((2, 1), {"low": [-1.0, 0.0], "high": [2.0, np.finfo("f8").max]}, 2, None),
        ((1, 2), {"low": [-1.0, 0.0], "high": [2.0, np.finfo("f8").max]}, 2, 4.0),
        ((1, 2), {}, 2, None),
        # Rows of length one.
        ((1, 2), {"unit_length": True}, 2, 1.0),
    ],
)
def test_what_is_dropped_adds_at_most_what_the_bounds_of_columns_say(
    weights, prepared, terms, bound
):
    short = sqlkrp.model(map=square(weights, **prepared), coef=[1.0]).shortened(terms)
    assert short.shortening.bound == bound
    assert ("no bound is known" in short.error) == (bound is None)


@pytest.mark.parametrize("degree", [2, 3])
def test_no_row_is_beyond_the_bound(degree):
    """Corners of the box, its inside, and far outside of it, where values are held."""
    frame = dyadic(ROWS, 3)
    krp = sqlkrp.KRP(degree, 20, scaling="standard", clip=2.0, random_state=1).fit(frame)
    coef = np.random.default_rng(0).normal(size=(2, 20))
    whole = sqlkrp.model(map=krp, coef=coef)
    short = whole.shortened(3)
    low, high = krp.program.prepare.bounds
    values = [[-1e9, low[i], (low[i] + high[i]) / 2, high[i], 1e9] for i in range(3)]
    rows = pd.DataFrame(itertools.product(*values), columns=list(frame))
    off = np.abs(whole.predict(rows) - short.predict(rows)).max()
    # It is not far off: on some corner all but the mixed terms are at their ends.
    assert short.shortening.bound / 4 < off <= short.shortening.bound * (1 + 1e-9)


def test_a_category_is_zero_or_one():
    X = pd.DataFrame({"kind": ["x", "y", "z", "x", "y", "z"]})
    pipeline = make_pipeline(OneHotEncoder(sparse_output=False), Ridge())
    pipeline.fit(X, [1.0, 2.0, 9.0, 1.5, 2.5, 9.5])
    short = sqlkrp.model(pipeline).shortened(1)
    smallest, middle, largest = sorted(pipeline[-1].coef_, key=abs)
    # Each of the two that are dropped is 0 or 1.
    sides = [sum(one for one in (smallest, middle) if one * sign > 0) for sign in (1, -1)]
    assert short.shortening.bound == pytest.approx(max(map(abs, sides)))
    assert largest == pytest.approx(short.explain().terms[0].coefficients[0])
    expected = pipeline[-1].intercept_ + np.where(X.kind == "z", largest, 0)
    assert np.allclose(short.predict(X), expected)


@pytest.mark.parametrize(
    ("estimator", "names"),
    [
        (LogisticRegression(), ("no", "yes")),
        (LinearSVC(random_state=0), ("a", "b", "c")),
    ],
    ids=["two classes", "three classes"],
)
def test_the_error_on_rows_is_what_numpy_finds(place, estimator, names):
    whole = classified(estimator, *names)
    X = table()
    place.store(X)
    short = place.database.shorten(whole, ("t",), 4)
    error, values = short.shortening.measured, whole.decision_function(X)
    off = np.abs(values - short.decision_function(X))
    assert (error.rows, error.what) == (ROWS, "decision")
    assert error.largest == pytest.approx(off.max())
    assert error.root_mean_square == pytest.approx(np.sqrt((off**2).mean()))
    assert error.deviation == pytest.approx(np.sqrt(values.var(axis=0).mean()))
    changed = (whole.predict(X) != short.predict(X)).mean()
    assert 0 < changed == pytest.approx(error.labels)
    assert 0 < error.largest <= short.shortening.bound
    # The same of a DataFrame, and of other rows where they are fewer.
    assert whole.shortened(4, on=X).shortening.measured == pytest.approx(error)
    assert place.database.shorten(whole, ("t",), 4, sample=20).shortening.measured.rows == 20
    # All decisions have the same products, of largest coefficients in any of them.
    sizes = {one.name: one.size for one in whole.explain(top=None).terms}
    kept = sorted(sizes, key=sizes.get)[-4:]
    assert {term.name for term in short.explain(top=4).terms} == set(kept)
    assert place.database.verify(short, ("t",)).ok


def test_probabilities_and_links_follow_from_the_terms_that_are_left():
    whole = classified(LogisticRegression(), "no", "yes")
    short, X = whole.shortened(5), table()
    shares = 1 / (1 + np.exp(-short.decision_function(X)))
    assert np.allclose(short.predict_proba(X)[:, 1], shares)
    cut = short.cut_at(0.8)
    assert (cut.predict(X) == np.where(shares >= 0.8, "yes", "no")).all()
    assert cut.title == short.title
    y = np.exp(X.c0 / 8)
    poisson = sqlkrp.model(PoissonRegressor().fit(X[["c0", "c1"]], y)).shortened(1, on=X)
    (term,) = poisson.explain().terms
    (start,) = poisson.explain().constant.coefficients
    assert term.name == "c0"
    assert np.allclose(poisson.predict(X), np.exp(start + term.coefficients[0] * X.c0))


def test_a_short_model_reads_only_the_columns_of_its_terms(connection):
    X = table()[["c0", "c1"]]
    one = Ridge().fit(X, X.c0)
    one.coef_, one.intercept_ = np.array([2.0, 0.5]), 1.0
    whole = sqlkrp.model(one)
    short = whole.shortened(1)
    assert short.feature_names_in_.tolist() == ["c0"]
    assert short.left_out_ == {"c1": "in no term that is left"}
    missing = pd.DataFrame({"c0": [1.0, 2.0], "c1": [None, 5.0]}, dtype="float64")
    assert short.predict(missing).tolist() == [3.0, 5.0]
    store(connection, missing)
    db = sqlkrp.connect(connection)
    db.score(short, "t", into="scores")
    assert connection.sql("FROM scores").fetchall() == [(3.0,), (5.0,)]
    with pytest.raises(sqlkrp.errors.MissingValueError, match="c1"):
        db.shorten(whole, "t", 1)


def test_rows_without_an_answer_are_not_measured():
    krp = sqlkrp.KRP(2, 8, nulls="propagate", random_state=0).fit(table(), exclude=["id"])
    whole = sqlkrp.model(map=krp, coef=np.linspace(-1, 1, 8))
    X = table()
    X.loc[5:, "c3"] = np.nan
    short = whole.shortened(3, on=X)
    assert short.shortening.measured.rows == 5
    assert np.isnan(short.predict(X)[5:]).all()
    X["c0"] = np.nan
    with pytest.raises(ColumnError, match="no row of those to measure the error on has an answer"):
        whole.shortened(3, on=X)


def test_the_error_is_measured_on_sparse_rows(connection):
    X = table()[["c0", "c1", "c2"]]
    krp = sqlkrp.KRP(2, 12, random_state=0, scaling=None).fit(X)
    whole = sqlkrp.model(map=krp, coef=np.linspace(-1, 1, 12))
    entries = X.assign(row=range(ROWS)).melt("row", var_name="feature")
    store(connection, entries[entries.value != 0])
    db = sqlkrp.connect(connection)
    short = db.shorten(whole, "t", 3, long=("row", "feature", "value"))
    there = X[(X != 0).any(axis=1)]
    assert short.shortening.measured == pytest.approx(
        whole.shortened(3, on=there).shortening.measured
    )


def test_a_short_model_is_saved_and_read_again(tmp_path):
    whole = classified(LinearSVC(random_state=0), "a", "b", "c")
    for short in (whole.shortened(4), whole.shortened(4, on=table())):
        short.save(tmp_path / "short.json")
        loaded = sqlkrp.load(tmp_path / "short.json")
        assert (loaded.digest_, loaded.title) == (short.digest_, short.title)
        assert (loaded.shortening, loaded.error) == (short.shortening, short.error)
        assert loaded.to_sql("t") == short.to_sql("t")
        assert loaded.left_out_ == short.left_out_
        assert loaded.written_as("features").digest_ == short.digest_
        assert loaded.renamed(["C0", "C1", "C2", "C3"]).to_sql("t").count('"C') == 4


@pytest.mark.parametrize(
    "shortening",
    [
        [4, 14], [3, 14, None, None], [4, 4, None, None], ["4", 14, None, None], 5,
        [4, 14, -1.0, None], [4, 14, "x", None],
        [4, 14, None, [0, "decision", 1.0, 1.0, 1.0, None]],
        [4, 14, None, [9, 5, 1.0, 1.0, 1.0, None]], [4, 14, None, [9, "decision"]],
    ],
    ids=str,
)  # fmt: skip
def test_a_shortening_that_was_made_up_is_said_to_be_damaged(tmp_path, shortening):
    classified(LinearSVC(random_state=0), "a", "b").shortened(4).save(tmp_path / "m.json")
    change = {"shortening": shortening}
    rewrite(tmp_path / "m.json", lambda made: made["parameters"].update(change), forge=True)
    with pytest.raises(MapFileError, match="is damaged"):
        sqlkrp.load(tmp_path / "m.json")


def test_what_cannot_be_shortened_is_refused():
    whole = sqlkrp.model(map=square(), coef=[3.0])
    for terms in (0, -1, 1.5, "2"):
        with pytest.raises(ParameterError, match="terms="):
            whole.shortened(terms)
    with pytest.raises(ParameterError, match="this model has 3 terms, of which none"):
        whole.shortened(3)
    with pytest.raises(ParameterError, match="has the strongest 2 of 3 terms: shorten the whole"):
        whole.shortened(2).shortened(1)
    with pytest.raises(ParameterError, match="no features"):
        whole.shortened(2).of_features()
    fourier = sqlkrp.RandomFourier(8, random_state=0).fit(["a", "b"])
    with pytest.raises(ParameterError, match="is no polynomial of few enough terms"):
        sqlkrp.model(map=fourier, coef=np.ones(8)).shortened(2)


def test_explain_counts_the_terms_that_are_left():
    """Of (a - 1)^2 alone, raw columns have a lower term and a constant: a^2 - 2a + 1."""
    whole = sqlkrp.model(map=square((1.0, 0.5), shift=[1.0, 2.0]), coef=[1.0])
    found = whole.shortened(1).explain()
    assert (found.n_terms, found.n_raw) == (1, 1)
    # (a - 1)^2 and (a - 1)(b - 2) are of one size.
    assert [(term.name, term.coefficients, term.raw) for term in found.terms] == [
        ("a²", (1.0,), (1.0,)), ("a", (0.0,), (-2.0,)),
    ]  # fmt: skip
    assert found.constant.raw == (1.0,)


def beside(steps, *behind, apart=False):
    """A model of a map and of other steps side by side, of columns of very different sizes.

    The map reads all columns, or ``apart`` the one that the others do not.
    """
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"small": rng.normal(size=400), "large": rng.normal(5000, 1000, 400)})
    y = (X.large / 1000 - 5 + 0.1 * X.small) > 0
    krp = sqlkrp.KRP(2, 6, scaling="standard", random_state=0)
    parts = FeatureUnion([("map", krp), ("columns", steps)])
    if apart:
        parts = ColumnTransformer([("map", krp, ["small"]), ("columns", steps, ["large"])])
    estimator = LogisticRegression(solver="newton-cholesky")
    pipeline = make_pipeline(parts, *behind, estimator).fit(X, y)
    return sqlkrp.model(pipeline), X, pipeline.predict_proba(X)


def test_a_column_that_is_read_again_has_no_bounds_of_the_map_s():
    whole, X, _ = beside("passthrough")
    short = whole.shortened(1, on=X)
    dropped = {name for term in whole.explain(top=None).terms[1:] for name in term.columns}
    assert any("again" in name for name in dropped)
    assert short.shortening.bound is None  # what is not held may be anything
    assert "no bound is known" in str(short.error)


@pytest.mark.parametrize(
    ("steps", "behind", "apart"),
    [
        (StandardScaler(), (), False),
        (StandardScaler(), (), True),
        ("passthrough", (StandardScaler(),), False),
        ("passthrough", (), False),
    ],
)
def test_terms_are_told_apart_in_columns_of_one_scale(steps, behind, apart):
    """Whoever trained it scaled the columns, or the map did: a large unit is no small effect."""
    whole, X, expected = beside(steps, *behind, apart=apart)
    assert np.abs(whole.predict_proba(X) - expected).max() < 1e-9
    assert whole.explain(top=1).terms[0].name.startswith("large")
    terms = len(whole.explain(top=None).terms)
    assert whole.shortened(min(4, terms - 1), on=X).shortening.measured.labels < 0.1
