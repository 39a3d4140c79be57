"""Sums, losses, metrics and calibration of training, against scikit-learn and SciPy."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn import metrics as theirs
from sklearn.calibration import _SigmoidCalibration
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from sqlkrp.training import losses
from sqlkrp.training.calibration import multinomial_of, sigmoid_of
from sqlkrp.training.definite import Spectrum, factor, solved
from sqlkrp.training.losses import fit_loss, here, logistic, squared_hinge
from sqlkrp.training.metrics import DEFAULTS, METRICS, confusion
from sqlkrp.training.moments import Moments, solve, squared_error, sum_of

PENALTIES = [10.0**power for power in range(-8, 1)]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads of several libraries that wait for each other take a hundred times as long."""
    with threadpool_limits(1):
        yield


def regression(rows=240, k=12, m=2, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rows, k)) * rng.uniform(0.01, 100, k) + rng.normal(size=k) * 50
    Y = (Z / Z.std(axis=0)) @ rng.normal(size=(k, m)) + rng.normal(size=(rows, m)) + 30
    return Z, Y


def classes(n_classes, rows=600, k=9, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rows, k)) @ rng.normal(size=(k, k)) + 3 * rng.normal(size=k)
    scores = (Z - Z.mean(axis=0)) / Z.std(axis=0) @ rng.normal(size=(k, n_classes))
    return Z, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1), rng.uniform(0.1, 3, rows)


def moments(Z, Y, weights=None, pivot=None):
    result = Moments.empty(Z.mean(axis=0) if pivot is None else pivot, Y.shape[1])
    result.add(Z, Y, weights)
    return result


def parts_of(sums):
    return [
        sums.rows,
        sums.weight,
        sums.sums,
        sums.gram,
        sums.cross,
        sums.target_sums,
        sums.target_squares,
    ]


def same_sums(one, other):
    for a, b in zip(parts_of(one), parts_of(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-10 * np.abs(b).max())


# --- Moments -------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 40), max_size=6),
    st.booleans(),
    st.sampled_from(["f4", "f8"]),
)
@settings(max_examples=40, deadline=None)
def test_rows_in_batches_sum_to_what_they_sum_to_at_once(cuts, weighted, dtype):
    Z, Y = regression(rows=40, k=5)
    Z = Z.astype(dtype)
    weights = np.linspace(0, 2, 40) if weighted else np.ones(40)
    batches = np.split(np.arange(40), sorted(cuts))
    given_weights = [weights[b] if weighted else None for b in batches]
    parts = [moments(Z[b], Y[b], w, Z[0]) for b, w in zip(batches, given_weights, strict=True)]
    whole = moments(Z, Y, weights if weighted else None, Z[0])
    expected = (Z.astype("f8") - Z[0]).T @ ((Z.astype("f8") - Z[0]) * weights[:, None])
    np.testing.assert_allclose(whole.gram, expected, rtol=1e-12, atol=1e-9)
    same_sums(sum_of(parts), whole)
    one = Moments.empty(Z[0], 2)
    for b, w in zip(batches, given_weights, strict=True):
        one.add(Z[b], Y[b], w)
    same_sums(one, whole)
    before = [np.copy(part) for part in parts_of(whole)]
    same_sums(whole - parts[0] + parts[0], whole)
    rest = [moments(Z[:0], Y[:0], None, Z[0]), *parts[1:]]
    same_sums(sum_of(rest), whole - parts[0])
    for old, new in zip(before, parts_of(whole), strict=True):
        np.testing.assert_array_equal(old, new)


def test_moments_of_some_features_are_those_of_these_alone():
    Z, Y = regression()
    places = [7, 0, 3]
    whole = moments(Z, Y, pivot=Z[0])
    same_sums(whole.only(places), moments(Z[:, places], Y, pivot=Z[0, places]))
    assert moments(Z, Y).only(range(6)).n_features == 6


def test_moments_about_other_pivots_have_no_sum():
    Z, Y = regression()
    with pytest.raises(ValueError, match="different pivots"):
        moments(Z, Y) + moments(Z, Y, pivot=np.zeros(12))


def test_a_mean_far_from_zero_costs_no_digits_with_a_pivot():
    Z, Y = regression()
    far = Moments.empty(np.full(12, 2.0**40), 2, np.full(2, 2.0**40))
    rounded, targets = np.round(Z * 16) / 16, np.round(Y * 16) / 16
    far.add(rounded + 2.0**40, targets + 2.0**40)
    near = moments(rounded, targets, pivot=np.zeros(12))
    np.testing.assert_array_equal(far.gram, near.gram)
    np.testing.assert_allclose(far.deviations, rounded.std(axis=0), rtol=1e-12)
    there, here = solve(far, [1e-3])[0], solve(near, [1e-3])[0]
    np.testing.assert_array_equal(there.coef, here.coef)
    errors = [squared_error(far, there), squared_error(near, here)]
    np.testing.assert_allclose(*errors, rtol=1e-4)  # 2^40 is in the intercept


@pytest.mark.parametrize("value", [0.1, 1e9 / 3, -7.0, 0.0])
@pytest.mark.parametrize("pivot", [0.0, 0.1, 1.0])
def test_constant_features_have_no_deviation_and_no_weight(value, pivot):
    Z, Y = regression()
    Z[:, 4] = value
    sums = moments(Z, Y, np.linspace(0.1, 1, 240), np.full(12, pivot))
    assert np.flatnonzero(sums.deviations == 0).tolist() == [4]
    for standardise in (True, False):
        for fit in solve(sums, [0.0, 1e-3], standardise):
            assert fit.conditioned
            assert (fit.coef[:, 4] == 0).all()
            assert (fit.coef[:, :4] != 0).all()


# --- Ridge ---------------------------------------------------------------------------------------


def hard(rows=240):
    """Features of which some are nearly others, and some are others."""
    Z, Y = regression(rows)
    noise = np.random.default_rng(1).normal(size=rows)
    return np.column_stack([Z, Z[:, 0] + 1e-7 * noise, Z[:, 1], np.full(rows, 3.0)]), Y


def standardised(Z, rest, weights):
    """StandardScaler finds negative variances in weighted columns that are constant."""
    inner = Z - np.average(Z[rest], axis=0, weights=weights[rest])
    inner[:, np.ptp(Z, axis=0) == 0] = 0
    deviations = np.sqrt(np.average(inner[rest] ** 2, axis=0, weights=weights[rest]))
    return inner / np.where(deviations > 0, deviations, 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [regression, hard])
def test_sums_a_fold_give_cross_validation(make, weighted):
    Z, Y = make()
    weights = np.random.default_rng(2).uniform(0.2, 2, 240) if weighted else np.ones(240)
    folds = [held for _, held in KFold(4, shuffle=True, random_state=0).split(Z)]
    pivot = Z[:10].mean(axis=0)
    sums = [moments(Z[f], Y[f], weights[f] if weighted else None, pivot) for f in folds]
    for i, held in enumerate(folds):
        rest = np.setdiff1d(np.arange(240), held)
        others = sum_of(sums[:i] + sums[i + 1 :])
        inner = standardised(Z, rest, weights)
        for fit in solve(others, PENALTIES):
            ridge = Ridge(alpha=fit.penalty * weights[rest].sum(), solver="svd")
            ridge.fit(inner[rest], Y[rest], sample_weight=weights[rest])
            expected = ridge.predict(inner[held])
            scale = np.abs(Y).max()
            np.testing.assert_allclose(fit.decisions(Z[held]), expected, atol=1e-8 * scale)
            errors = weights[held] @ (Y[held] - expected) ** 2
            size = weights[held] @ (Y[held] - Y[held].mean(axis=0)) ** 2
            np.testing.assert_array_less(np.abs(squared_error(sums[i], fit) - errors), 1e-8 * size)


def test_fold_sums_equal_a_grid_search():
    Z, Y = regression(m=1)
    folds = list(KFold(5).split(Z))
    alphas = [penalty * 192 for penalty in PENALTIES]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": alphas},
        cv=folds,
        scoring="neg_mean_squared_error",
    ).fit(Z, Y)
    sums = [moments(Z[held], Y[held], pivot=np.zeros(12)) for _, held in folds]
    whole = sum_of(sums)
    errors = [
        [squared_error(part, fit)[0] / part.rows for fit in solve(whole - part, PENALTIES)]
        for part in sums
    ]
    found = -search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(np.mean(errors, axis=0), found, rtol=1e-8)


@pytest.mark.parametrize(("rows", "k"), [(20, 50), (30, 1), (2, 3), (300, 150)])
def test_ridge_of_any_shape_is_ridge(rows, k):
    Z, Y = regression(rows, k, 3)
    scaler = StandardScaler().fit(Z)
    for standardise in (True, False):
        inner = scaler.transform(Z) if standardise else Z
        for fit in solve(moments(Z, Y), [1e-4, 1.0], standardise):
            ridge = Ridge(alpha=fit.penalty * rows, solver="svd").fit(inner, Y)
            expected = ridge.predict(inner)
            np.testing.assert_allclose(
                fit.decisions(Z), expected, atol=1e-8 * np.abs(expected).max()
            )


def test_ill_conditioned_sums_are_said_and_solved():
    Z, Y = regression(rows=20, k=50)
    loose, tight = solve(moments(Z, Y), [0.0, 1e-2])
    assert not loose.conditioned
    assert tight.conditioned
    # More features than rows: without a penalty every row is met, by the least coefficients.
    np.testing.assert_allclose(loose.decisions(Z), Y, rtol=1e-8)
    inner = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    least = np.linalg.pinv(inner) @ (Y - Y.mean(axis=0))
    np.testing.assert_allclose(loose.coef.T * Z.std(axis=0)[:, None], least, atol=1e-8)
    assert np.all(squared_error(moments(Z, Y), loose) >= 0)


def test_no_rows_give_a_fit_of_nothing():
    empty = Moments.empty(np.zeros(3), 2)
    (fit,) = solve(empty, [1e-3])
    assert not fit.coef.any()
    assert squared_error(empty, fit).tolist() == [0, 0]


@pytest.mark.parametrize("size", [1, 127, 128, 129, 300])
def test_a_factor_solves_in_blocks(size):
    rng = np.random.default_rng(size)
    half, right = rng.normal(size=(size, size + 3)), rng.normal(size=(size, 4))
    matrix = half @ half.T + np.eye(size)
    lower = factor(matrix)
    np.testing.assert_allclose(matrix @ solved(lower, right), right, atol=1e-10)
    spectrum = Spectrum(matrix).solved(right, 0.5)
    np.testing.assert_allclose((matrix + 0.5 * np.eye(size)) @ spectrum, right, atol=1e-10)


def test_a_matrix_that_is_singular_but_for_rounding_has_no_factor():
    rows = np.random.default_rng(0).normal(size=(50, 4))
    double = np.column_stack([rows, rows @ [1, 2, 3, 4]]) * [1e6, 1, 1, 1, 1e-6]
    assert factor(double.T @ double) is None
    assert factor(rows.T @ rows * 1e-30) is not None


# --- Losses --------------------------------------------------------------------------------------


def fitted(loss, Z, codes, weights, penalty, **options):
    n_classes = codes.max() + 1
    means = np.average(Z, axis=0, weights=weights)
    deviations = np.sqrt(np.average((Z - means) ** 2, axis=0, weights=weights))
    called = []

    def passes():
        called.append(1)
        for rows in np.array_split(np.arange(len(Z)), 3):
            yield Z[rows], codes[rows], None if weights is None else weights[rows]

    fit = fit_loss(
        loss, here(passes), Z.shape[1], n_classes, penalty, (means, deviations), **options
    )
    assert fit.passes == len(called)
    return fit, (Z - means) / deviations, deviations


@pytest.fixture(params=["newton", "l-bfgs"])
def way(request, monkeypatch):
    """Both ways down, for each of which there are too many features for the other."""
    if request.param == "l-bfgs":
        monkeypatch.setattr(losses, "_NEWTON_NUMBERS", 0)
    return request.param


@pytest.mark.parametrize("penalty", [1e-5, 1e-2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_logistic_is_logistic_regression(way, n_classes, weighted, penalty):
    Z, codes, weights = classes(n_classes)
    weights = weights if weighted else None
    fit, inner, deviations = fitted(logistic, Z, codes, weights, penalty)
    weight = len(Z) if weights is None else weights.sum()
    model = LogisticRegression(C=1 / (penalty * weight), tol=1e-10, max_iter=10_000)
    model.fit(inner, codes, sample_weight=weights)
    assert fit.converged
    assert fit.passes <= (8 if way == "newton" else 25)
    scale = np.abs(model.coef_).max()
    np.testing.assert_allclose(fit.coef * deviations, model.coef_, atol=1e-4 * scale)
    expected = model.decision_function(inner).reshape(len(Z), -1)
    np.testing.assert_allclose(fit.decisions(Z), expected, atol=1e-3)


@pytest.mark.parametrize("penalty", [1e-5, 1e-2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_squared_hinge_is_a_linear_svm(way, n_classes, weighted, penalty):
    Z, codes, weights = classes(n_classes)
    weights = weights if weighted else None
    fit, inner, deviations = fitted(squared_hinge, Z, codes, weights, penalty)
    assert fit.converged
    assert fit.passes <= (9 if way == "newton" else 20)
    counts = np.ones(len(Z)) if weights is None else weights
    sides = [1] if n_classes == 2 else range(n_classes)
    for side, coef in zip(sides, fit.coef * deviations, strict=True):
        signs = np.where(codes == side, 1, -1)

        def objective(at, signs=signs):
            missing = np.maximum(1 - signs * (inner @ at[:-1] + at[-1]), 0)
            slope = -2 * counts * signs * missing / counts.sum()
            total = counts @ missing**2 / counts.sum() + penalty / 2 * at[:-1] @ at[:-1]
            return total, np.append(slope @ inner + penalty * at[:-1], slope.sum())

        best = minimize(objective, np.zeros(10), jac=True, method="BFGS", options={"gtol": 1e-9}).x
        np.testing.assert_allclose(coef, best[:-1], atol=1e-4 * np.abs(best).max())


def test_squared_hinge_is_liblinear_with_an_intercept_that_is_all_but_free():
    Z, codes, _ = classes(4)
    fit, inner, deviations = fitted(squared_hinge, Z, codes, None, 1e-3)
    model = LinearSVC(
        C=1 / (1e-3 * len(Z)), dual=False, intercept_scaling=1e4, tol=1e-10, max_iter=100_000
    ).fit(inner, codes)
    scale = np.abs(model.coef_).max()
    np.testing.assert_allclose(fit.coef * deviations, model.coef_, atol=1e-4 * scale)


@pytest.mark.parametrize("loss", [logistic, squared_hinge])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_start_at_the_end_is_one_pass(way, loss, n_classes):
    Z, codes, weights = classes(n_classes)
    fit, _, _ = fitted(loss, Z, codes, weights, 1e-3)
    again, _, _ = fitted(loss, Z, codes, weights, 1e-3, start=fit, tolerance=1e-7)
    assert again.passes == 1
    np.testing.assert_allclose(again.coef, fit.coef, rtol=1e-9)


@pytest.mark.parametrize("loss", [logistic, squared_hinge])
def test_a_bad_start_leads_to_the_same(way, loss):
    Z, codes, weights = classes(3)
    fit, _, deviations = fitted(loss, Z, codes, weights, 1e-3)
    bad = losses.Fit(0.0, 40 / deviations * np.array([[1], [-1], [2]]), np.array([9.0, 0, -9]))
    again, _, _ = fitted(loss, Z, codes, weights, 1e-3, start=bad)
    assert again.converged
    np.testing.assert_allclose(again.coef, fit.coef, atol=1e-4 * np.abs(fit.coef).max())


@pytest.mark.parametrize("loss", [logistic, squared_hinge])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_constant_and_doubled_features_and_float32_are_no_trouble(way, loss, n_classes):
    Z, codes, _ = classes(n_classes)
    Z = np.column_stack([Z, Z[:, 0], np.full(len(Z), 5)]).astype("f4")
    means, deviations = Z.mean(axis=0, dtype="f8"), Z.std(axis=0, dtype="f8")
    passes = here(lambda: [(Z, codes, None)])
    fit = fit_loss(loss, passes, 11, n_classes, 1e-6, (means, deviations))
    assert fit.converged
    assert (fit.coef[:, 10] == 0).all()
    np.testing.assert_allclose(fit.coef[:, 0], fit.coef[:, 9], atol=1e-3 * np.abs(fit.coef).max())


def test_newton_gets_through_outliers_in_features_that_are_nearly_others():
    """Full steps lead too far here, to where other rows decide on the curvature."""
    rng = np.random.default_rng(0)
    X = np.exp(2 * rng.normal(size=(1000, 15)))
    codes = np.log(X[:, :4]).sum(axis=1) / 2 + 0.7 * rng.normal(size=1000) > 0
    turns = 0.1 * X / X.std(axis=0) @ rng.normal(size=(15, 100))
    Z = np.cos(turns + rng.uniform(0, 2 * np.pi, 100))
    fit, _, _ = fitted(squared_hinge, Z, codes.astype(int), None, 1e-6)
    assert fit.converged
    assert fit.passes < 30


def test_what_does_not_converge_is_said():
    Z, _, _ = classes(2)
    apart, _, _ = fitted(logistic, Z, (Z[:, 0] > Z[:, 0].mean()) * 1, None, 0.0, max_passes=5)
    assert not apart.converged
    assert apart.passes == 5
    assert np.isfinite(apart.coef).all()


# --- Metrics -------------------------------------------------------------------------------------

REGRESSION = {
    "r2": theirs.r2_score,
    "rmse": theirs.root_mean_squared_error,
    "mae": theirs.mean_absolute_error,
}
LABELS = {
    "accuracy": theirs.accuracy_score,
    "balanced-accuracy": theirs.balanced_accuracy_score,
    "f1-macro": lambda *args, **options: theirs.f1_score(*args, average="macro", **options),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_metrics_are_those_of_scikit_learn(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    weights = rng.uniform(0.1, 3, 200) if weighted else None
    truths, said = rng.normal(size=(2, 200)) + 3
    # No row is of the last class, and none is said to be of the first.
    codes, labels = (
        rng.integers(0, n_classes - (n_classes > 2), 200),
        rng.integers(1, n_classes, 200),
    )
    decisions = np.round(rng.normal(size=200) + codes, 1)
    shares = softmax(rng.normal(size=(200, n_classes)) * 20, axis=1)
    expected = {name: one(truths, said, sample_weight=weights) for name, one in REGRESSION.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are said, and met in no row
        for name, one in LABELS.items():
            expected[name] = one(codes, labels, sample_weight=weights)
    expected["log-loss"] = theirs.log_loss(
        codes, shares, sample_weight=weights, labels=range(n_classes)
    )
    second = (codes > 0).astype(int)
    expected["roc-auc"] = theirs.roc_auc_score(second, decisions, sample_weight=weights)
    assert expected.keys() == METRICS.keys()
    given_to = {
        "predictions": (truths, said),
        "labels": (codes, labels),
        "probabilities": (codes, shares),
        "decision": (second, decisions),
    }
    for name, metric in METRICS.items():
        found = metric.value(*given_to[metric.reads], weights)
        np.testing.assert_allclose(found, expected[name], rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(
        confusion(codes, labels, n_classes, weights),
        theirs.confusion_matrix(codes, labels, labels=range(n_classes), sample_weight=weights),
    )


def test_metrics_at_the_edges():
    ones = np.ones(4)
    assert METRICS["r2"].value(ones, ones, None) == 1
    assert METRICS["r2"].value(ones, ones * 2, None) == 0
    assert np.isnan(METRICS["roc-auc"].value(np.ones(4, int), ones, None))
    certain = np.array([[1.0, 0.0], [1.0, 0.0]])
    found = METRICS["log-loss"].value(np.array([0, 1]), certain, None)
    assert found == pytest.approx(theirs.log_loss([0, 1], certain))


def test_every_task_has_a_metric_by_default():
    assert {METRICS[name].task: name for name in DEFAULTS.values()} == DEFAULTS
    assert {metric.task for metric in METRICS.values()} == DEFAULTS.keys()
    assert {name for name, one in METRICS.items() if not one.larger_is_better} == {
        "rmse",
        "mae",
        "log-loss",
    }


# --- Calibration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.3, 1.0, 1e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_sigmoid_is_platts(weighted, scale):
    rng = np.random.default_rng(0)
    decisions = rng.normal(size=300) * scale
    truths = rng.uniform(size=300) < expit(2 * decisions / scale - 1)
    weights = rng.uniform(0.1, 3, 300) if weighted else None
    slope, shift = sigmoid_of(decisions, truths, weights)
    theirs_ = _SigmoidCalibration().fit(decisions, truths, sample_weight=weights)
    found = expit(slope * decisions + shift)
    np.testing.assert_allclose(found, theirs_.predict(decisions), atol=2e-5)


def test_a_sigmoid_of_separated_and_of_equal_decisions_is_finite():
    truths = np.arange(10) > 4
    slope, shift = sigmoid_of(np.where(truths, 1.0, -1.0), truths)
    # Both targets are met: 6/7 and 1/7.
    np.testing.assert_allclose([slope, shift], [np.log(6), 0], atol=1e-8)
    slope, shift = sigmoid_of(np.full(10, 0.3), np.arange(10) > 6)
    assert slope == 0
    np.testing.assert_allclose(expit(shift), np.mean([4 / 5] * 3 + [1 / 9] * 7), rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_softmax_is_multinomial_regression(weighted):
    Z, codes, weights = classes(4)
    weights = weights if weighted else None
    decisions = Z[:, :4] * [1, 10, 0.1, 1] + 7
    matrix, shift = multinomial_of(decisions, codes, weights)
    means = np.average(decisions, axis=0, weights=weights)
    inner = decisions - means
    inner /= np.sqrt(np.average(inner**2, axis=0, weights=weights))
    model = LogisticRegression(C=1, tol=1e-10, max_iter=10_000)
    model.fit(inner, codes, sample_weight=weights)
    found = softmax(decisions @ matrix.T + shift, axis=1)
    np.testing.assert_allclose(found, model.predict_proba(inner), atol=1e-6)


def test_a_softmax_of_separated_decisions_is_finite():
    codes = np.arange(30) % 3
    matrix, shift = multinomial_of(np.eye(3)[codes] * 2 - 1, codes)
    shares = softmax((np.eye(3) * 2 - 1) @ matrix.T + shift, axis=1)
    assert np.isfinite(matrix).all()
    assert (np.diag(shares) > 0.9).all()
    assert (shares < 1).all()
