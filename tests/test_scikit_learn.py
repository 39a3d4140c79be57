"""scikit-learn's own checks of every map, and what its tools do with maps and models."""

import io
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted
from support import dyadic

import sqlkrp
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps import CLASSES

#: What makes a map small, where it is a parameter of it; and what others are made of.
SMALL = {"n_components": 2, "n_landmarks": 3, "n_marked": 1, "random_state": 0}
MADE_OF = {"map": sqlkrp.KRP(2, 2), "maps": [sqlkrp.PCA(1), sqlkrp.KRP(2, 2)], "n_members": 2}


def small(one):
    given = SMALL | MADE_OF
    return one(**{name: value for name, value in given.items() if name in one.declared})


every_map = pytest.mark.parametrize("one", CLASSES.values(), ids=CLASSES)


def failures(one):
    """What scikit-learn finds wrong, and how many checks it made."""
    found = estimator_checks.check_estimator(one, on_fail=None)
    # Arrays of other libraries (GPUs') are checked only where an environment variable asks for it.
    found = [check for check in found if check["check_name"] != "check_array_api_input"]
    wrong = {check["check_name"]: check["exception"] for check in found}
    return {name: why for name, why in wrong.items() if why is not None}, len(found)


@every_map
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_wrong(one):
    wrong, count = failures(small(one))
    assert wrong == {}
    assert count > 40


#: Checks that check_estimator leaves to the authors of transformers. The one of messages about
#: names of columns is not among them: it wants several lines, and ours have one.
FURTHER = [
    "check_get_feature_names_out_error",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
]


@pytest.mark.slow
@every_map
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_wrong_with_names_and_outputs(one):
    for name in FURTHER:
        getattr(estimator_checks, name)(one.__name__, small(one))


@pytest.mark.slow
def test_scikit_learn_finds_nothing_wrong_without_pandas():
    code = """
import importlib.abc, sys, warnings
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
warnings.simplefilter("ignore")
from sklearn.utils.estimator_checks import check_estimator
from sqlkrp.maps import CLASSES, KRP, PCA
given = %r | {"map": KRP(2, 2), "maps": [PCA(1), KRP(2, 2)], "n_members": 2}
for one in CLASSES.values():
    few = {name: value for name, value in given.items() if name in one.declared}
    for check in check_estimator(one(**few), on_skip=None, on_fail=None):
        if check["exception"] is not None and check["status"] != "skipped":
            print(one.__name__, check["check_name"])
print("pandas" in sys.modules, len(CLASSES))
"""
    done = subprocess.run(
        [sys.executable, "-c", code % SMALL], capture_output=True, text=True, check=True
    )
    *wrong, last = done.stdout.splitlines()
    assert wrong == []
    assert last == f"False {len(CLASSES)}"


# --- maps in scikit-learn's tools -----------------------------------------------------------------


@pytest.fixture
def labelled():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    frame["colour"] = rng.choice(["red", "green", "blue"], 120)
    return frame, (frame["a"] * frame["b"] > 0).astype(int).to_numpy()


def test_what_an_encoder_gives_goes_in_searched_by_two_processes(labelled):
    frame, y = labelled
    columns = ColumnTransformer(
        [("numbers", sqlkrp.KRP(2, 20, random_state=0), ["a", "b", "c"]),
         ("texts", make_pipeline(OneHotEncoder(), sqlkrp.KRP(2, 4, random_state=0)), ["colour"])]
    )  # fmt: skip
    whole = make_pipeline(columns, StandardScaler(), LogisticRegression())
    grid = {"columntransformer__numbers__degree": [1, 2]}
    search = GridSearchCV(whole, grid, cv=2, n_jobs=2, error_score="raise").fit(frame, y)
    assert search.best_params_ == {"columntransformer__numbers__degree": 2}
    assert search.best_score_ > 0.75
    names = search.best_estimator_[:1].get_feature_names_out()
    assert (names[0], names[-1]) == ("numbers__krp_0", "texts__krp_3")
    # Before 1.7 scikit-learn knows no tables of today's polars here.
    knows_polars = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 7)
    for kind, library in (("pandas", pd), *([("polars", pl)] if knows_polars else ())):
        krp = sqlkrp.KRP(2, 4, random_state=0)
        out = ColumnTransformer([("numbers", krp, ["a", "b"])]).set_output(transform=kind)
        for data in (frame, *([pl.from_pandas(frame)] if knows_polars else ())):
            assert isinstance(out.fit_transform(data), library.DataFrame)


def test_the_output_of_all_is_that_of_one_unless_it_has_its_own():
    frame = dyadic(5, 3)
    krp, own = (sqlkrp.KRP(2, 3, random_state=0).fit(frame) for _ in range(2))
    own.set_output(transform="default")
    with sklearn.config_context(transform_output="polars"):
        assert isinstance(krp.transform(frame), pl.DataFrame)
        assert isinstance(own.transform(frame), np.ndarray)
    assert isinstance(krp.transform(frame), np.ndarray)
    assert krp.set_output(transform="polars").transform(frame).columns == [
        "krp_0",
        "krp_1",
        "krp_2",
    ]


def test_before_fit_the_error_is_scikit_learn_s_too():
    with pytest.raises(sklearn.exceptions.NotFittedError, match="call fit first") as no:
        sqlkrp.KRP().transform([[1.0]])
    again = pickle.loads(pickle.dumps(no.value))
    assert isinstance(again, sqlkrp.errors.NotFittedError)
    assert str(again) == str(no.value)


def test_names_of_inputs_that_are_others_are_refused():
    krp = sqlkrp.KRP(2, 3).fit(["a", "b"])
    assert krp.get_feature_names_out(["a", "b"]).tolist() == ["krp_0", "krp_1", "krp_2"]
    for wrong, told in (
        (["zzz"], "length equal to the number of columns that are read, 2"),
        (["a", "zzz"], "'zzz' is none of them"),
        (["b", "a"], "another place"),
    ):
        with pytest.raises(ColumnError, match=told):
            krp.get_feature_names_out(wrong)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_draws_the_seed_which_is_recorded(make, tmp_path):
    frame = dyadic(30, 3)
    for one in (sqlkrp.KRP(2, 4, random_state=make(3)),
                sqlkrp.Ensemble(sqlkrp.KRP(2, 2, random_state=make(3)), 2, random_state=make(3)),
                sqlkrp.chain(sqlkrp.PCA(2), sqlkrp.KRP(2, 4), random_state=make(3))):  # fmt: skip
        same, digest = clone(one).fit(frame), one.fit(frame).digest_
        assert same.digest_ == digest
        assert one.fit(frame).digest_ != digest  # the next seed of that generator
        assert clone(one).set_params(random_state=same.seed_).fit(frame).digest_ == digest
        same.save(tmp_path / "m.json")
        again = sqlkrp.load(tmp_path / "m.json")
        assert (again.digest_, again.seed_, again.random_state) == (digest, same.seed_, None)


def test_options_of_fit_are_routed_where_they_are_asked_for(labelled):
    frame, y = labelled
    frame = frame.drop(columns="colour")
    krp = sqlkrp.KRP(2, 4, random_state=0).set_fit_request(exclude=True, keep="kept")
    with sklearn.config_context(enable_metadata_routing=True):
        whole = make_pipeline(clone(krp), Ridge()).fit(frame, y, exclude=["a"], kept=["b"])
        assert whole[0].feature_names_in_.tolist() == ["c"]
        with pytest.raises(ValueError, match=r"label.* not explicitly set as requested"):
            make_pipeline(krp, Ridge()).fit(frame, y, label="a")
    with pytest.raises(ParameterError, match="no parameter 'weights'"):
        krp.set_fit_request(weights=True)
    with pytest.raises(ParameterError, match="keep=3 is not allowed: use True, False, None, or a"):
        krp.set_fit_request(keep=3)


@every_map
def test_maps_are_kept_by_pickle_and_joblib(one):
    frame = dyadic(30, 4)
    fitted = small(one).fit(frame)
    file = io.BytesIO()
    joblib.dump(fitted, file)
    for again in (pickle.loads(pickle.dumps(fitted)), joblib.load(io.BytesIO(file.getvalue()))):
        assert again.digest_ == fitted.digest_
        assert np.array_equal(again.transform(frame), fitted.transform(frame))
        with pytest.raises(ColumnError, match="in the same order"):
            again.transform(frame[["c1", "c0", "c2", "c3"]])


# --- models ---------------------------------------------------------------------------------------


@pytest.fixture
def models(labelled):
    """Models of one map by what was trained, and the pipelines that they are of."""
    frame, y = labelled
    frame = frame[["a", "b", "c"]]
    made = {}
    for last, target in (
        (RidgeClassifier(), y),
        (LogisticRegression(), y),
        (LogisticRegression(), y + (frame["c"] > 1)),
        (Ridge(), frame["a"] * frame["b"]),
    ):
        trained = make_pipeline(sqlkrp.KRP(2, 30, random_state=0), last).fit(frame, target)
        name = f"{type(last).__name__}, {len(np.unique(target))}"
        made[name] = sqlkrp.model(trained), trained, frame, target
    return made


def test_scikit_learn_knows_a_model_as_what_it_is(models):
    for model, trained, frame, target in models.values():
        check_is_fitted(model)
        assert (is_classifier(model), is_regressor(model)) == (
            is_classifier(trained), is_regressor(trained)
        )  # fmt: skip
        for name in ("predict_proba", "decision_function", "classes_"):
            assert hasattr(model, name) == hasattr(trained, name), name
        scores = ["accuracy", "balanced_accuracy"] if is_classifier(trained) else ["r2"]
        scores += ["neg_log_loss"] if hasattr(trained, "predict_proba") else []
        scores += ["roc_auc"] if is_classifier(trained) and len(trained.classes_) == 2 else []
        for name in scores:
            scorer = get_scorer(name)
            assert scorer(model, frame, target) == pytest.approx(scorer(trained, frame, target))
        weights = np.arange(1.0, 121)
        for weighed in (None, weights):
            expected = trained[-1].score(trained[0].transform(frame), target, weighed)
            assert model.score(frame, target, weighed) == pytest.approx(expected)
        found = permutation_importance(model, frame, target, n_repeats=2, random_state=0)
        assert found.importances_mean[:2].min() > found.importances_mean[2]


def test_a_model_is_not_fitted_again(models):
    for model, _, frame, target in models.values():
        for use in (
            lambda m=model: clone(m),
            lambda m=model, X=frame, y=target: m.fit(X, y),
            lambda m=model, X=frame, y=target: cross_val_predict(m, X, y),
            lambda m=model, X=frame, y=target: cross_val_score(m, X, y),
        ):
            with pytest.raises(ParameterError, match="is a trained model, which is not fitted"):
                use()
    model, _, frame, target = models["RidgeClassifier, 2"]
    frozen = CalibratedClassifierCV(FrozenEstimator(model)).fit(frame, target)
    assert frozen.score(frame, target) > 0.9
