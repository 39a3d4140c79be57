"""Tables of other libraries: what goes in, what comes out, and what is not imported for it."""

import decimal
import subprocess
import sys
from datetime import date
from fractions import Fraction

import duckdb
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from support import dyadic

import sqlkrp
from sqlkrp.errors import ColumnError, MissingValueError, ParameterError
from sqlkrp.maps import CLASSES


def frame(count=60):
    one = dyadic(count, 3, names=["a", "b", "c"], seed=3)
    return one.assign(y=(one["a"] * one["b"] > 0).astype(int))


def arrow(one):
    return pa.Table.from_pandas(one, preserve_index=False)


def exact(one):
    return one.map(lambda value: decimal.Decimal(float(value)))


#: The same table of numbers by each library; those that are functions give it once.
TABLES = {
    "pandas": lambda one: one,
    "pandas, nullable": lambda one: one.convert_dtypes(),
    "pandas, Arrow": lambda one: one.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, decimals": lambda one: exact(one),
    "pandas, Arrow's decimals": lambda one: pd.DataFrame(
        {name: pd.array(exact(one)[name], dtype=pd.ArrowDtype(pa.decimal128(20, 6)))
         for name in one}),
    "pandas, objects": lambda one: one.astype(object),
    "pandas, sparse": lambda one: one.astype(pd.SparseDtype("float64")),
    "polars": pl.from_pandas,
    "pyarrow": arrow,
    "pyarrow, a batch": lambda one: arrow(one).combine_chunks().to_batches()[0],
    "pyarrow, a stream": lambda one: arrow(one).to_reader(max_chunksize=7),
    "DuckDB": lambda one: duckdb.connect().from_df(one),
    "narwhals": lambda one: narwhals.from_native(pl.from_pandas(one)),
    "narwhals of pandas": lambda one: narwhals.from_native(one),
}  # fmt: skip
every_library = pytest.mark.parametrize("library", TABLES.values(), ids=TABLES)


@every_library
def test_a_table_of_any_library_is_that_table(library):
    given = frame().drop(columns="y")
    of_pandas = sqlkrp.KRP(2, 8, random_state=0).fit(given)
    expected = of_pandas.transform(given)
    krp = sqlkrp.KRP(2, 8, random_state=0).fit(library(given))
    assert krp.digest_ == of_pandas.digest_  # which the names of columns are part of
    assert krp.feature_names_in_.tolist() == ["a", "b", "c"]
    found = krp.transform(library(given))
    assert type(found) is np.ndarray
    assert np.array_equal(found, expected)
    assert np.array_equal(krp.fit_transform(library(given)), expected)
    for kind, output in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        out = krp.set_output(transform=kind).transform(library(given))
        assert type(out) is output
        assert list(out.columns) == krp.get_feature_names_out().tolist()
        assert np.array_equal(out.to_numpy(), expected)
    model = sqlkrp.model(map=of_pandas, coef=np.arange(1.0, 9), classes=["no", "yes"])
    assert np.array_equal(model.predict(library(given)), model.predict(given))
    with pytest.raises(ColumnError, match="in the same order: 'b' stands where 'a' stood"):
        of_pandas.transform(library(given[["b", "a", "c"]]))


def test_a_frame_without_names_is_an_array():
    X = dyadic(9, 3).to_numpy()
    krp = sqlkrp.KRP(2, 4, random_state=0).fit(X)
    for frame in (pd.DataFrame(X), pd.DataFrame(X, dtype="Float64"), pd.DataFrame(X, dtype=object)):
        same = sqlkrp.KRP(2, 4, random_state=0).fit(frame)
        assert same.digest_ == krp.digest_
        assert np.array_equal(same.transform(frame), krp.transform(X))
        assert np.array_equal(krp.transform(frame), krp.transform(X))
    labelled = krp.set_output(transform="pandas").transform(pd.DataFrame(X, index=range(5, 14)))
    assert labelled.index.tolist() == list(range(5, 14))


def test_a_zero_byte_in_a_name_is_refused_before_a_library_ends_the_process():
    with pytest.raises(ColumnError, match=r"column name 'b\\x00' holds a zero byte"):
        sqlkrp.KRP(2, 4).fit(pl.DataFrame({"a": [1.0], "b\0": [2.0]}))


@every_library
def test_training_takes_a_table_of_any_library(library):
    expected = sqlkrp.train(frame(), "y", maps=[sqlkrp.KRP(2, 8)], folds=2)
    found = sqlkrp.train(library(frame()), "y", maps=[sqlkrp.KRP(2, 8)], folds=2)
    assert found.feature_names_in_.tolist() == expected.feature_names_in_.tolist()
    assert np.allclose(found.decision_function(frame()), expected.decision_function(frame()))


@pytest.mark.parametrize(
    "one", [sqlkrp.PCA(2), sqlkrp.Nystroem(5), sqlkrp.KGRP(3, n_landmarks=9, n_marked=2)]
)
def test_a_relation_gives_maps_the_rows_that_they_are_fitted_to(one):
    given = frame().drop(columns="y")
    if "random_state" in one.declared:
        one.set_params(random_state=0)
    expected = one.fit(given).transform(given)
    relation = duckdb.connect().from_df(given)
    assert np.allclose(one.fit(relation).transform(relation), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_sparse_rows_are_those_of_the_array(shape, kind, monkeypatch):
    dense = np.where(np.arange(240).reshape(60, 4) % 3, 0, dyadic(60, 4).to_numpy())
    dense[:, 3] = 0  # no entry at all
    rows = kind(dense).asformat(shape)
    for name, one in CLASSES.items():
        given = {"n_components": 3, "n_landmarks": 5, "n_marked": 2, "random_state": 0,
                 "map": sqlkrp.KRP(2, 2), "maps": [sqlkrp.PCA(2), sqlkrp.KRP(2, 2)]}  # fmt: skip
        made = one(**{key: value for key, value in given.items() if key in one.declared})
        expected = made.fit(dense).transform(dense)
        assert np.allclose(made.fit(rows).transform(rows), expected, rtol=1e-9, atol=1e-12), name
        monkeypatch.setattr("sqlkrp.maps.frames._DENSE_VALUES", 28)  # seven rows at a time
        assert np.allclose(made.transform(rows), expected, rtol=1e-9, atol=1e-12), name


def test_sparse_rows_are_never_dense_at_once(monkeypatch):
    monkeypatch.setattr("sqlkrp.maps.frames._DENSE_VALUES", 100_000)
    entries = scipy.sparse.random_array((5_000, 400), density=0.01, rng=np.random.default_rng(0))
    rows = entries.tocsr()
    krp = sqlkrp.KRP(2, 3, random_state=0).fit(rows)
    seen = []
    inputs = type(krp).inputs
    monkeypatch.setattr(
        type(krp), "inputs", lambda self, X: seen.append(X.shape) or inputs(self, X)
    )
    assert krp.transform(rows).shape == (5_000, 3)
    assert seen == [(250, 400)] * 20


def test_entries_that_are_there_twice_are_added_and_the_user_s_stay_two():
    rows = scipy.sparse.csr_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    krp, dense = sqlkrp.KRP(2, 3, random_state=0), np.array([[3.0, 0], [0, 3]])
    assert np.array_equal(krp.fit_transform(rows), krp.fit_transform(dense))
    columns = scipy.sparse.csc_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    assert np.array_equal(krp.fit_transform(columns), krp.fit_transform(dense))
    assert rows.nnz == columns.nnz == 3


# --- what columns hold ----------------------------------------------------------------------------


@every_library
def test_what_is_missing_is_missing(library):
    if library in (TABLES["pandas, decimals"], TABLES["pandas, Arrow's decimals"]):
        pytest.skip("decimals are made of numbers here")
    given = frame(20).drop(columns="y")
    given.loc[3, "b"] = np.nan
    krp = sqlkrp.KRP(2, 3, nulls="mean", random_state=0).fit(library(given))
    assert np.array_equal(krp.transform(library(given)), krp.transform(given))
    assert krp.program_.prepare.fill[1] == pytest.approx(given["b"].mean(), rel=1e-6)
    strict = sqlkrp.KRP(2, 3, random_state=0)
    if library is not TABLES["DuckDB"]:  # which is a database, where rows may be mended later
        with pytest.raises(MissingValueError, match=r"missing values .* in 'b' \(1\)"):
            strict.fit(library(given))
    with pytest.raises(MissingValueError, match=r"in 'b' \(1\)"):
        strict.fit(given.fillna(0)).transform(library(given))


MIXED = pl.DataFrame(
    {
        "a": [1.0, 2.0, 3.0, 4.0],
        "true": [True, False, True, True],
        "text": ["x", "y", "x", None],
        "when": [date(2020, 1, day) for day in (1, 2, 3, 4)],
        # Before 2 DuckDB takes Arrow's type of nothing for whole numbers.
        **({"nothing": [None] * 4} if duckdb.__version__ >= "2" else {}),
        "small": pl.Series([1, 2, 3, 4], dtype=pl.UInt8),
        "chosen": pl.Series(["u", "v", "u", "v"], dtype=pl.Enum(["u", "v"])),
        "lists": [[1], [2], [3], [4]],
    }
)


def test_columns_of_polars_are_what_they_hold():
    krp = sqlkrp.KRP(2, 4, random_state=0).fit(MIXED)
    assert [name for name, what in krp.columns_.items() if not what.startswith("left")] == [
        "a", "true", "small"
    ]  # fmt: skip
    krp.fit(MIXED, categories="auto", dates="auto")
    assert {name: what for name, what in krp.columns_.items() if not what.startswith("left")} == {
        "a": "number", "true": "boolean", "text": "3 indicators", "when": "days",
        "small": "number", "chosen": "1 indicator",
    }  # fmt: skip
    single = MIXED.select(pl.col("a").cast(pl.Float32))
    assert sqlkrp.KRP(2, 3).fit(single).program_.prepare.dtype == "float32"


def test_objects_that_are_numbers_are_numbers():
    given = pd.DataFrame(
        {
            "whole": [1, 2, None],
            "any": pd.Series([1, Fraction(1, 2), decimal.Decimal("0.25")], dtype=object),
            "true": pd.Series([True, None, np.bool_(False)], dtype=object),
            "texts": ["1", "2", "3"],
            "mixed": pd.Series([1, "2", 3], dtype=object),
            "nothing": pd.Series([None] * 3, dtype=object),
            "beyond": pd.Series([10**400, -(10**400), 1], dtype=object),
        }
    ).astype({"whole": object})
    krp = sqlkrp.KRP(2, 3, nulls="propagate", random_state=0).fit(given)
    assert {name: what for name, what in krp.columns_.items() if not what.startswith("left")} == {
        "whole": "number", "any": "number", "true": "boolean", "beyond": "number"
    }  # fmt: skip
    inputs = krp.inputs(given)
    assert inputs[:, 1].tolist() == [1, 0.5, 0.25]
    assert np.isnan(inputs[2, 0])
    assert np.isinf(inputs[:2, 3]).all()


def test_a_column_that_is_empty_by_now_is_missing():
    krp = sqlkrp.KRP(2, 3, nulls="zero", random_state=0).fit(
        pl.DataFrame({"a": [1.0, 2], "b": [3, 4]})
    )
    empty = pl.DataFrame({"a": [None, None], "b": [3, 4]})
    assert np.array_equal(krp.transform(empty), krp.transform(empty.to_pandas().fillna(0)))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            pl.LazyFrame({"a": [1.0]}),
            "a LazyFrame is a plan and has no rows yet: give its .collect",
        ),
        (narwhals.from_native(pl.LazyFrame({"a": [1.0]})), "give its .collect"),
        (pl.Series([1.0]), r"Reshape your data: X.reshape\(1, -1\) is one row"),
        (pa.chunked_array([[1.0]]), "Reshape your data"),
        (pl.DataFrame(), "cannot read this DataFrame: .*at least one column"),
        (pl.DataFrame({"a": pl.Series([], dtype=pl.Float64)}), r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pa.table([[1.0], [2.0]], names=["a", "a"]), "stand twice in the DataFrame: 'a'|'a'"),
        (pl.DataFrame({"a": pl.Series([1], dtype=pl.Int128)}), "cannot read this DataFrame: "),
        (scipy.sparse.coo_array(np.ones(3)), "Reshape your data"),
        (scipy.sparse.csr_array((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\)"),
        (scipy.sparse.csr_array(np.eye(2) * 1j), "Complex data not supported"),
        (np.array([[1, {}]], dtype=object), "holds a dict: an argument must be no string"),
        (np.array([[1, "x"]], dtype=object), "holds a str: an argument must be no string"),
        ([[1.0, 2.0], [3.0]], "cannot read this list .*: give as many numbers in each row"),
    ],
)
def test_what_is_no_table_of_numbers_is_told_in_one_line(given, told):
    with pytest.raises((ColumnError, ParameterError), match=told) as no:
        sqlkrp.KRP(2, 3).fit(given)
    assert "\n" not in str(no.value)


# --- what it costs --------------------------------------------------------------------------------


def test_arrays_of_numbers_are_read_where_they_are():
    krp = sqlkrp.KRP(2, 3, random_state=0).fit(["a", "b", "c"])
    for dtype in ("float32", "float64"):
        for order in "CF":
            rows = np.ones((10, 3), dtype=dtype, order=order)
            assert krp.inputs(rows) is rows


def test_no_library_is_imported_that_the_user_has_not():
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in %r:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import sqlkrp
%s
krp = sqlkrp.KRP(2, 3, random_state=0)
print(krp.fit(table).transform(table).shape, [one for one in %r if one in sys.modules])
"""
    others = ["pyarrow", "narwhals", "sklearn", "scipy", "pandas"]
    of_duckdb = "import duckdb; table = duckdb.sql('SELECT 1.5 AS a, 2 AS b FROM range(2)')"
    for absent, table in (
        (others, "import polars; table = polars.DataFrame({'a': [1.0, 2], 'b': [3, 4]})"),
        ([*others, "polars"], of_duckdb),
        ([*others, "polars", "duckdb"], "import numpy; table = numpy.eye(2)"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code % (absent, table, absent)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip().endswith("(2, 3) []")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"a": 1, "b": 2}, "column 'a' is no list of values"),
        ({"a": None, "b": None}, "column 'a' is no list of values"),
        ({"a": [1, 2], "b": [1]}, "column 'b' has 1 values, and those before it have 2"),
        ({"a": [1, 2], "b": [1, 2, 3]}, "column 'b' has 3 values, and those before it have 2"),
    ],
)
def test_columns_of_a_mapping_have_one_length(columns, told):
    one = sqlkrp.KRP(2, 3, random_state=0).fit(["a", "b"])
    with pytest.raises(ColumnError, match=told):
        one.transform(columns)
    with pytest.raises(ColumnError, match=told):
        sqlkrp.KRP(2, 3, random_state=0).fit(columns)


def test_each_column_of_a_frame_is_read_or_told():
    prices = [decimal.Decimal(place) / 4 for place in range(30)]
    frame = pd.DataFrame(
        {
            "plain": np.arange(30) / 4,
            "price": prices,
            "some prices": [None, *prices[1:]],
            "phase": np.arange(30) * 1j,
            "phases": pd.Series([1j] * 30, dtype=object),
            "tags": [[place] for place in range(30)],
            "facts": [{"a": place} for place in range(30)],
            "note": ["x", "y"] * 15,
            "mixed": ["x", [1]] * 15,
        }
    )
    krp = sqlkrp.KRP(2, 4, nulls="mean", random_state=0).fit(frame)
    assert krp.feature_names_in_.tolist() == ["plain", "price", "some prices"]
    told = {"phase": "complex128", "phases": "complex", "tags": "list", "facts": "dict"}
    assert krp.left_out_ == told | {"note": "str", "mixed": "object"}
    assert krp.columns_["tags"] == "left out: list"
    as_floats = frame.assign(
        **{name: frame[name].astype(float) for name in ("price", "some prices")}
    )
    assert np.array_equal(krp.transform(frame), krp.transform(as_floats))
