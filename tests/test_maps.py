"""Parameters, choosing columns, and scikit-learn's habits."""

import copy
import inspect
import pickle
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from support import dyadic, paper_krp, store

import sqlkrp
from sqlkrp.errors import ColumnError, FitWarning, NotFittedError, ParameterError
from sqlkrp.maps import CLASSES
from sqlkrp.maps.columns import near_matches


@pytest.mark.parametrize(
    "bad",
    [
        {"degree": 0}, {"degree": 1.5}, {"degree": True}, {"n_components": 0}, {"n_terms": -1},
        {"pool": "magic"}, {"n_hyperplanes": "many"}, {"n_hyperplanes": 0}, {"s": 0.5},
        {"s": float("nan")}, {"block_size": 48}, {"block_size": 0}, {"coef0": -1}, {"gamma": 0},
        {"gamma": float("inf")}, {"scaling": "robust"}, {"nulls": "drop"}, {"dtype": "float16"},
        {"random_state": -1}, {"random_state": 1.5}, {"random_state": np.random},
    ],
)  # fmt: skip
def test_parameters_that_are_not_allowed(bad):
    with pytest.raises(ParameterError) as error:
        paper_krp(**bad).fit(["a", "b"])
    name, value = next(iter(bad.items()))
    assert f"{name}={value!r}" in str(error.value)
    assert "use" in str(error.value)


def test_unknown_parameters_name_near_ones():
    with pytest.raises(ParameterError, match="did you mean 'degree'"):
        paper_krp().set_params(degre=3)
    with pytest.raises(TypeError):
        paper_krp(colour="red")
    with pytest.raises(TypeError):
        paper_krp(2, 10, 5)  # all but degree and n_components are keywords


@pytest.mark.parametrize("one", CLASSES.values(), ids=CLASSES)
def test_a_misspelt_parameter_of_a_constructor_is_named(one):
    # A TypeError as of any function, a ParameterError as of any parameter.
    with pytest.raises(TypeError, match=r"has no parameter 'random_stat': did you mean") as no:
        one(random_stat=3)
    assert isinstance(no.value, ParameterError)
    assert "\n" not in str(no.value)


@pytest.mark.parametrize("given", ["components", "n_component", "nComponents"])
def test_constructors_suggest_what_other_libraries_call_it(given):
    with pytest.raises(TypeError, match=f"^KRP has no parameter '{given}': did you mean 'n_comp"):
        sqlkrp.KRP(**{given: 100})
    krp = sqlkrp.KRP(3, n_components=7)
    assert copy.copy(krp).get_params() == pickle.loads(pickle.dumps(krp)).get_params()
    assert list(inspect.signature(sqlkrp.KRP).parameters) == sqlkrp.KRP.parameter_names()


@pytest.mark.parametrize(
    ("name", "present", "told"),
    [
        ("lable", ["label", "table", "x"], "did you mean 'label' or 'table'?"),
        ("Lable", ["label", "x"], "did you mean 'label'?"),
        ("hieght_mc", ["height_cm", "width_cm"], "did you mean 'height_cm'?"),
        # A number that is not there is another column; the next ones are named, not their cousins.
        ("pixel_0_3", [f"pixel_{i}_{j}" for i in range(8) for j in range(8) if (i, j) != (0, 3)],
         "the nearest are 'pixel_0_2', 'pixel_0_4', 'pixel_0_1'"),
        ("pixel_0_3", ["pixel_7_3", "pixel_0_9", "px_0_3"], "did you mean 'px_0_3'?"),
        ("pixel_0_3", ["pixel_7_3", "pixel_03"], "did you mean 'pixel_03'?"),
        ("pixel_0_3", ["pixel_7_4", "x"], "there are 'pixel_7_4', 'x'"),
        ("pixel_0_3x", ["pixel_0_2", "pixel_0_3"], "did you mean 'pixel_0_3'?"),
        ("c10", ["c1", "c7", "c9", "c11"], "the nearest are 'c11', 'c1'"),
        ("price", ["prices", "Price"], "did you mean 'Price'?"),
        ("a", ["b", "c"], "there are 'b', 'c'"),
        ("", [], "there are none"),
    ],
)  # fmt: skip
def test_near_matches_are_where_a_name_differs(name, present, told):
    assert near_matches(name, present) == f": {told}"


def test_one_row_without_brackets_is_told_how_to_be_one():
    krp = sqlkrp.KRP(2, 3, random_state=0).fit(["a", "b", "c"])
    row = np.array([1.0, 2.0, 3.0])
    for one in (row, [1, 2, 3], pd.Series(row)):
        with pytest.raises(ColumnError, match=r"Reshape your data: X\.reshape\(1, -1\) is one row"):
            krp.transform(one)
    assert krp.transform(row.reshape(1, -1)).shape == (1, 3)


def test_a_message_is_one_line_whatever_a_name_holds():
    message = str(ColumnError("column a\nb\x1b[2J\u202e is no column"))
    assert message == r"column a\nb\x1b[2J\u202e is no column"
    with pytest.raises(ColumnError) as no:
        sqlkrp.KRP(2, 3).fit(["a\nb"], exclude=["a\r\x07"])
    assert str(no.value).isprintable()


def test_numpy_numbers_are_numbers(tmp_path):
    krp = paper_krp(np.int64(2), np.int32(5), s=np.float64(3), random_state=np.int64(7))
    krp.fit(["a", "b"]).save(tmp_path / "m.json")
    assert sqlkrp.load(tmp_path / "m.json").digest_ == krp.digest_


def test_columns_are_chosen_by_kind_and_by_name():
    frame = dyadic(4, 3).assign(
        label=[0, 1, 0, 1], flag=True, text="x", when=pd.Timestamp("2026-01-01"), cat=1
    )
    frame["cat"] = frame["cat"].astype("category")
    krp = paper_krp(2, 3).fit(frame, exclude=["label"])
    assert krp.feature_names_in_.tolist() == ["c0", "c1", "c2", "flag"]
    assert set(krp.left_out_) == {"text", "when", "cat"}
    kept = paper_krp(2, 3).fit(frame, keep=["label", "text"])
    assert kept.feature_names_in_.tolist() == ["c0", "c1", "c2", "flag"]
    assert set(kept.left_out_) == {"when", "cat"}
    both = paper_krp(2, 3).fit(frame, include=["c2", "label"], keep=["label"])
    assert both.feature_names_in_.tolist() == ["c2", "label"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exclude": ["labl"]}, "'labl' is not in the data: did you mean 'label'"),
        ({"include": ["C0"]}, "did you mean 'c0'"),
        ({"include": ["text"]}, "'text' is of type"),
        ({"include": ["c0"], "exclude": ["c0"]}, "both included and excluded"),
        ({"exclude": ["c0", "c1", "label"]}, "no numeric column is left"),
        ({"keep": ["nothing"]}, "'nothing' is not in the data"),
    ],
)
def test_columns_that_cannot_be_chosen(options, message):
    frame = dyadic(4, 2).assign(label=[0, 1, 0, 1], text="x")
    with pytest.raises(ColumnError, match=message):
        paper_krp(2, 3).fit(frame, **options)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "stand twice"),
        (pd.DataFrame({"a": [1], 2: [3]}), "must be text"),
        (np.arange(3.0), "1 dimension"),
        (["a", "a"], "given twice"),
        ("table", "given the text 'table'"),
        ([], "no numeric column"),
    ],
)
def test_sources_that_cannot_be_fitted(source, message):
    with pytest.raises((ColumnError, ParameterError), match=message):
        paper_krp(2, 3).fit(source)


def test_statistics_need_data_and_values():
    for parameters in ({"scaling": "standard"}, {"nulls": "mean"}):
        with pytest.raises(ParameterError, match="only column names were given"):
            paper_krp(2, 3, **parameters).fit(["a"])
        with pytest.raises(ColumnError, match="'b' holds no value"):
            paper_krp(2, 3, **parameters).fit(pd.DataFrame({"a": [1.0], "b": [np.nan]}))
    with pytest.raises(ColumnError, match="too large or too small for float64"):
        paper_krp(2, 3, scaling="standard").fit(pd.DataFrame({"a": [1e308, -1e308, 1e308]}))


@pytest.mark.parametrize("parameters", [{"scaling": "standard"}, {"nulls": "mean"}])
def test_a_value_that_the_dtype_does_not_hold_is_named(parameters):
    # One row has no spread that could be too large.
    krp = sqlkrp.KRP(2, 3, dtype="float32", coef0=0.0, gamma=1.0).set_params(**parameters)
    message = "column 'b' holds values from 1e\\+39 to 1e\\+39, .* float32: rescale it in a view"
    with pytest.raises(ColumnError, match=message):
        krp.fit(pd.DataFrame({"a": [1.0], "b": [1e39]}))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pool", ["achlioptas", "hadamard", "gaussian"])
def test_what_leaves_the_range_of_numbers_leaves_it_without_warnings(connection, dtype, pool):
    # A warning is an error in these tests. NumPy gives infinities and NaN, as the engine does.
    frame = pd.DataFrame(np.tile([[1.0], [-1.0], [0.5]], (1, 4)) * float(np.finfo(dtype).max))
    frame = frame.set_axis(list("abcd"), axis=1)
    krp = paper_krp(3, 4, n_terms=2, pool=pool, block_size=4, coef0=1.0, dtype=dtype)
    found = krp.set_params(random_state=0).fit(frame).transform(frame)
    assert not np.isfinite(found).all()
    store(connection, frame)
    with sqlkrp.connect(connection) as db:
        assert db.verify(krp, "t", form="wide").rows == 3


def test_before_fit_everything_says_so():
    krp = paper_krp()
    for use in (
        lambda: krp.transform([[1]]),
        lambda: krp.to_sql("t"),
        lambda: krp.digest_,
        krp.get_feature_names_out,
        lambda: krp.save("x"),
    ):
        with pytest.raises(NotFittedError, match="call fit first"):
            use()


def test_transform_checks_names_and_order_and_takes_arrays_by_position(tmp_path):
    frame = dyadic(5, 4).assign(text="x")
    krp = paper_krp(2, 3, random_state=0).fit(frame, exclude=["c1"])
    expected = krp.transform(frame)
    numbers = frame[["c0", "c2", "c3"]]
    assert np.array_equal(krp.transform(numbers), expected)
    assert np.array_equal(krp.transform(frame[["text", "c0", "c1", "c2", "c3"]]), expected)
    assert np.array_equal(krp.transform(frame.convert_dtypes()), expected)
    with pytest.warns(FitWarning, match="X does not have valid feature names, but KRP was fitted"):
        assert np.array_equal(krp.transform(numbers.to_numpy()), expected)
    with pytest.raises(ColumnError, match="'c2' is not in the data"):
        krp.transform(frame.drop(columns="c2"))
    with pytest.raises(ColumnError, match="passed during fit: 'z' and 1 more column unseen at fit"):
        krp.transform(frame.assign(z=1, y=1))
    with pytest.raises(ColumnError, match="in the same order: 'c3' stands where 'c0' stood"):
        krp.transform(frame[["c3", "c2", "c0"]])
    with pytest.raises(ColumnError, match="X has 2 features, but KRP is expecting 3 features as"):
        krp.transform(numbers.to_numpy()[:, :2])
    # A database's columns, and a mapping's, have no order; a file does not say which others were.
    krp.save(tmp_path / "m.json")
    assert np.array_equal(sqlkrp.load(tmp_path / "m.json").transform(frame.assign(z=1)), expected)
    by_name = {name: frame[name] for name in ("c3", "c2", "z", "c0") if name in frame}
    assert np.array_equal(krp.transform(by_name), expected)


def test_names_that_are_included_in_another_order_are_in_order():
    frame = dyadic(5, 3)
    krp = paper_krp(2, 3, random_state=0).fit(frame, include=["c2", "c0"])
    expected = krp.transform(frame)
    assert np.array_equal(krp.transform(frame[list(krp.feature_names_in_)]), expected)


def test_a_map_of_an_array_reads_a_frame_by_its_places():
    frame = dyadic(5, 3)
    krp = paper_krp(2, 3, random_state=0).fit(frame.to_numpy())
    with pytest.warns(FitWarning, match="fitted without feature names"):
        assert np.array_equal(krp.transform(frame), krp.transform(frame.to_numpy()))
    with pytest.raises(ColumnError, match="X has 2 features"):
        krp.transform(frame[["c0", "c1"]])


def test_pandas_output_keeps_the_index():
    frame = dyadic(5, 4).set_index(pd.Index(list("abcde")))
    krp = paper_krp(2, 3, random_state=0).set_output(transform="pandas").fit(frame)
    out = krp.transform(frame)
    assert out.columns.tolist() == krp.get_feature_names_out().tolist()
    assert out.index.tolist() == list("abcde")


def test_scikit_learn_can_clone_search_and_pipe_it():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    y = (X["a"] * X["b"] > 0).astype(int)
    krp = paper_krp(2, 60, random_state=0)
    copy = clone(krp.fit(X))
    assert copy.get_params() == krp.get_params()
    assert not hasattr(copy, "program_")
    pipeline = make_pipeline(paper_krp(2, 60, random_state=0), LogisticRegression(max_iter=2000))
    # A linear model on raw columns cannot tell the sign of a product; on the features it can.
    search = GridSearchCV(pipeline, {"krp__degree": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_ == {"krp__degree": 2}
    assert search.best_score_ > 0.9
    pipeline.set_output(transform="pandas")
    names = pipeline.fit(X, y)[:-1].get_feature_names_out()
    assert names.tolist() == [f"krp_{i}" for i in range(60)]


def test_an_unseeded_draw_is_recorded_and_can_be_drawn_again():
    first, second = (paper_krp(2, 5).fit(["a", "b"]) for _ in range(2))
    assert first.seed_ != second.seed_
    again = paper_krp(2, 5, random_state=first.seed_).fit(["a", "b"])
    assert again.digest_ == first.digest_ != second.digest_


# --- what was wrong once ------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.1, 1e9 + 0.1, -3.3, 0.0])
@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_a_constant_column_has_scale_one_whatever_its_computed_deviation(value, scaling):
    frame = pd.DataFrame({"a": np.full(1000, value), "b": np.arange(1000.0)})
    prepare = paper_krp(2, 3, scaling=scaling).fit(frame).program_.prepare
    assert prepare.scale[0] == 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"gamma": 1e300, "degree": 3},
        {"gamma": 1e-300, "degree": 3},
        {"gamma": 1e-6, "degree": 16},
        {"gamma": 1e-2, "degree": 1000},
        {"coef0": 1e300, "gamma": 1e-300},
    ],
)
def test_constants_that_overflow_are_refused(parameters):
    with pytest.raises(ParameterError, match=r"range of numbers|too far apart"):
        paper_krp(n_components=2, **parameters).fit(["a"])


def test_a_spread_that_single_precision_cannot_hold_is_refused():
    frame = pd.DataFrame({"a": np.array([0, 1e-42], "f4")})
    with pytest.raises(ColumnError, match="too small for float32"):
        paper_krp(2, 3, scaling="minmax").fit(frame)


def test_clone_keeps_the_output_setting():
    krp = paper_krp(2, 3, random_state=0).set_output(transform="pandas")
    assert isinstance(clone(krp).fit(dyadic(2, 2)).transform(dyadic(2, 2)), pd.DataFrame)


def test_parameters_set_after_fit_are_not_those_of_the_map(tmp_path):
    krp = paper_krp(2, 4, random_state=0).fit(["a", "b"])
    krp.set_params(n_components=99, degree=7)
    krp.save(tmp_path / "m.json")
    assert sqlkrp.load(tmp_path / "m.json").get_params()["n_components"] == 4
    assert "degree=2, n_components=4" in krp.to_sql("t")


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"a": ["1", "2"]}),
        pd.DataFrame({"a": pd.to_datetime(["2026-01-01", "2026-01-02"])}),
        np.array([["1"], ["2"]]),
        np.array([[1 + 1j], [2]]),
        np.array([[None], ["x"]], dtype=object),
    ],
)
def test_transform_refuses_what_the_database_refuses(data):
    krp = paper_krp(2, 3).fit(["a"])
    with pytest.raises(ColumnError, match="is of type"):
        krp.transform(data)


def test_masked_values_are_missing():
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    krp = paper_krp(2, 3, nulls="mean", random_state=0).fit(masked)
    assert krp.program_.prepare.fill.tolist() == [2, 4]
    assert np.array_equal(krp.transform(masked), krp.transform([[1.0, 4.0], [3.0, 4.0]]))


def test_mappings_and_wrong_objects():
    krp = paper_krp(2, 3, random_state=0).fit({"a": [1.0, 2.0], "b": np.array([3, 4])})
    expected = krp.transform(pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}))
    assert np.array_equal(krp.transform({"b": [3, 4], "a": [1.0, 2.0]}), expected)
    with pytest.raises(ParameterError, match=r"db\.relation"):
        krp.transform(duckdb.connect())
    with pytest.raises((ColumnError, ParameterError)):
        krp.fit(duckdb.connect())
    for option in ("keep", "exclude", "include"):
        with pytest.raises(ParameterError, match="is one text"):
            krp.fit({"a": [1.0], "b": [2.0], "ab": [3.0]}, **{option: "ab"})


def test_a_renamed_map_that_is_fitted_again_is_that_map():
    frame = dyadic(20, 2, names=["a", "b"])
    renamed = sqlkrp.KRP(2, 4, random_state=0).fit(["a", "b"]).renamed(["A", "B"])
    renamed.set_params(random_state=9).fit(frame)
    assert np.array_equal(renamed.select([1]).transform(frame), renamed.transform(frame)[:, [1]])
    assert renamed.digest_ == sqlkrp.KRP(2, 4, random_state=9).fit(frame).digest_


def test_a_renamed_map_has_the_file_and_the_digest_of_its_own(tmp_path):
    krp = sqlkrp.KRP(2, 4, random_state=0).fit(["a", "b"])
    renamed = krp.renamed(["A", "B"])
    renamed.save(tmp_path / "m.json")
    assert sqlkrp.load(tmp_path / "m.json").digest_ == renamed.digest_ == krp.digest_
    assert renamed.renamed(["a", "b"]).to_sql("t") == krp.to_sql("t")


def test_numbers_of_any_kind_are_kept_as_numbers(tmp_path):
    krp = sqlkrp.KRP(np.int64(2), 4, gamma=Fraction(1, 2), random_state=0).fit(["a", "b"])
    krp.save(tmp_path / "m.json")
    loaded = sqlkrp.load(tmp_path / "m.json")
    title = "KRP(degree=2, n_components=4, pool='hadamard', gamma=0.5, random_state=0)"
    assert loaded.title == krp.title == title
    assert loaded.get_params()["gamma"] == 0.5


def test_lists_of_names_and_numbers_that_are_none_are_told_in_one_line():
    krp = sqlkrp.KRP(2, 4).fit(["a", "b"])
    for wrong in (
        lambda: krp.to_sql("t", keep=[1]),
        lambda: krp.to_sql("t", keep=5),
        lambda: krp.to_sql("t", dialect=["duckdb"]),
        lambda: sqlkrp.KRP().fit(["a", "b"], include=5),
        lambda: krp.select(3),
        lambda: sqlkrp.RankOneProjection(3).fit(["a"]).score_sql("t", "u", keys=(1, 2)),
        lambda: (
            sqlkrp.RankOneProjection(3)
            .fit(["a"])
            .score_sql("t", "u", keys=("a", "b"), output="bits")
        ),
    ):
        with pytest.raises(ParameterError, match=r"not allowed|not known"):
            wrong()
