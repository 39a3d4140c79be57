"""Passes over rows where they are: whoever has which rows, it is the same model, of few bytes."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines import SLOW_ENGINES
from test_training import KRP, numbers, table

import sqlkrp
from sqlkrp.engines import spark_work
from sqlkrp.engines.duckdb import DuckDB
from sqlkrp.errors import ParameterError
from sqlkrp.training import folds

ROWS = 1_500  # of fewer than a thousand, parts are told by counting them here


def wide_table(rows, columns=20):
    """Rows of as many numbers, whose label is a product of two."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(rows, columns)).round(6)
    frame = pd.DataFrame(numbers, columns=[f"c{i}" for i in range(columns)])
    frame["y"] = numbers[:, 0] * numbers[:, 1] + numbers[:, 2] + rng.normal(0, 0.3, rows)
    return frame


def sales():
    frame = table(ROWS)
    rng = np.random.default_rng(1)
    frame["weight"] = rng.choice([0.0, 0.5, 1.0, 2.0], ROWS)
    frame["shop"] = rng.choice([f"shop {i}" for i in range(40)], ROWS)
    frame["sort"] = np.where(frame["price"] < -30, "low", frame["is_dear"])
    frame.loc[::31, "is_dear"] = None
    frame.loc[::37, "price"] = np.nan
    return frame


CASES = {
    "numbers": ("price", {}),
    "classes": ("is_dear", {}),
    "three classes": ("sort", {}),
    "rare classes": ("is_dear", {"class_weight": "balanced", "weights": "weight"}),
    "weights": ("price", {"weights": "weight"}),
    "groups": ("price", {"groups": "shop"}),
    "time": ("price", {"time": "day"}),
    "a loss by passes": ("sort", {"loss": "squared-hinge", "weights": "weight"}),
}


def trained(source, label, options):
    beside = {"price", "is_dear", "sort", "weight", "shop"} - {label, *options.values()}
    options = {"maps": [KRP], "sample": 400, "exclude": sorted(beside), **options}
    return sqlkrp.train(source, label, **options)


def require_same(there, here, frame):
    assert numbers(there.training) == pytest.approx(numbers(here.training), rel=1e-8)
    for one in ("rows", "test_rows", "without_label", "without_weight", "taken", "task", "columns"):
        assert there.training[one] == here.training[one]
    read = frame.drop(columns=["price", "is_dear", "sort"])
    says = "decision_function" if here.training["task"] == "classification" else "predict"
    found, expected = (getattr(model, says)(read) for model in (there, here))
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-10)


# --- in this process, as executors would ----------------------------------------------------------


@pytest.fixture
def executors(monkeypatch):
    """Five tasks that do work in DuckDB's place, each with every fifth row."""
    tasks, came = 5, []

    def found(session, relation, numbers, texts, work, what):
        ((table, columns),) = session.stream(relation, numbers, texts, what)
        parts = [
            [
                pa.RecordBatch.from_arrays(
                    [pa.array(list(table[rows])), *(pa.array(one[rows]) for one in columns)],
                    names=["x", *texts],
                )
                for rows in np.array_split(np.arange(task, len(table), tasks), 3)
            ]
            for task in range(tasks)
        ]
        parts.append([])  # and one who has no rows
        found = [list(spark_work.found_in_rows(work, 100, batches)) for batches in parts]
        # In an order of their own, two and two; one who adds up is given nothing.
        pairs = itertools.zip_longest(*[iter(found[::-1])] * 2, fillvalue=[])
        for pair in [*pairs, ()]:
            for batch in spark_work.added_up(work, itertools.chain(*pair)):
                (one,) = batch.column(0).to_pylist()
                came.append(len(one))
                yield spark_work.unpacked(one), len(one)

    monkeypatch.setattr(DuckDB, "can", replace(DuckDB.can, work=True))
    monkeypatch.setattr(DuckDB, "found", found, raising=False)
    return came


@pytest.fixture(scope="module")
def here():
    """The models that this process learns of all rows."""
    return {name: trained(sales(), *case) for name, case in CASES.items()}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_same_model_whoever_has_which_rows(case, here, executors):
    model = trained(sales(), *CASES[case])
    require_same(model, here[case], sales())
    assert model.training["bytes_read"] == sum(executors)


def test_of_few_different_rows_all_are_read_here(executors):
    frame = table()
    frame["n"] = frame["height"].round()
    options = {"include": ["n"], "sample": 100, "maps": [KRP]}
    model = sqlkrp.train(frame, "price", **options)
    assert model.training["bytes_read"] == sum(executors) + 2 * 8 * len(frame)


def test_marks_that_are_too_many_are_not_held_by_anyone(executors, here, monkeypatch):
    monkeypatch.setattr(folds, "_MOST_HELD", 700)  # less than all rows, more than those of a task
    there = trained(sales(), "price", {})
    marks = min(executors)
    with monkeypatch.context() as alone:
        alone.setattr(DuckDB, "can", replace(DuckDB.can, work=False))
        require_same(there, trained(sales(), "price", {}), sales())
    assert there.training["in_folds"] != here["numbers"].training["in_folds"]
    assert marks < 1_000


def test_what_executors_cannot_do_is_said_as_it_is_here(executors):
    frame = pd.DataFrame({"x": np.arange(3_000.0), "y": [f"a{i}" for i in range(3_000)]})
    with pytest.raises(ParameterError, match="column 'y' has more than 1,000 values, which are no"):
        sqlkrp.train(frame, "y")
    with pytest.raises(ParameterError, match="frame has no row with a label in 'y'"):
        sqlkrp.train(frame.assign(y=np.nan), "y")


@pytest.mark.parametrize("sort", ["whole", "few", "rest"])
def test_labels_are_what_all_of_them_are(sort, executors):
    frame = wide_table(ROWS, 3)
    whole = (frame["y"] * 10).round()
    # Whole numbers of many values; of few; and of few but in one row.
    frame["y"] = whole if sort == "whole" else whole.clip(-2, 2)
    if sort == "rest":
        frame.loc[ROWS - 1, "y"] = 0.5
    options = {"maps": [KRP], "sample": 300}
    model = sqlkrp.train(frame, "y", **options)
    assert model.training["task"] == ("classification" if sort == "few" else "regression")
    with pytest.MonkeyPatch.context() as alone:
        alone.setattr(DuckDB, "can", replace(DuckDB.can, work=False))
        here = sqlkrp.train(frame, "y", **options)
    assert numbers(model.training) == pytest.approx(numbers(here.training), rel=1e-8)


# --- in Spark -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("case", ["numbers", "rare classes", "time", "a loss by passes"])
def test_the_same_model_of_sparks_executors(case, here, spark_session, tmp_path):
    with SLOW_ENGINES["spark"].opened(tmp_path, spark_session) as spark:
        spark.store(sales())
        spark_session.table("t").repartition(5).createOrReplaceTempView("parted")
        model = trained(spark.database.source("parted"), *CASES[case])
    require_same(model, here[case], sales())


@pytest.mark.slow
@pytest.mark.parametrize("label", ["y", "is_high"])
def test_few_bytes_leave_spark(label, spark_session, tmp_path):
    frame = wide_table(20_000)
    frame["is_high"] = frame["y"] > 0
    with SLOW_ENGINES["spark"].opened(tmp_path, spark_session) as spark:
        spark.store(frame)
        source = spark.database.source("t")
        other = "is_high" if label == "y" else "y"
        model = sqlkrp.train(source, label, maps=[KRP], sample=500, exclude=[other])
    assert model.training["rows"] + model.training["test_rows"] == len(frame)
    # Marks are 9 bytes a row, decisions and labels 16 or, of each penalty, 8.
    assert model.training["bytes_read"] < 0.3 * (8 * 21 * len(frame))
