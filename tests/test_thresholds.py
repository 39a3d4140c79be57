"""Thresholds at a column's quantiles, and the side that each row is on."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from support import FORMS

import sqlkrp
from sqlkrp.errors import ColumnError


def column(*values):
    return pd.DataFrame({"a": np.array(values, dtype="f8")})


def sides(n_thresholds, frame):
    """In the order of thresholds, of one column."""
    return sqlkrp.Thresholds(n_thresholds).fit_transform(frame)


def test_a_column_of_two_values_has_one_threshold_between_them():
    assert sides(5, column(0, 1, 1, 0)).tolist() == [[-1], [1], [1], [-1]]


def test_thresholds_are_quantiles_half_way_between_values_that_occur():
    found = sqlkrp.Thresholds(3).fit(column(*range(1, 9)))
    # A quarter of eight values is below each.
    assert found.transform(column(2, 2.5, 4.5, 4.49, 6.5, 100)).tolist() == [
        [-1, -1, -1], [1, -1, -1], [1, 1, -1], [1, -1, -1], [1, 1, 1], [1, 1, 1],
    ]  # fmt: skip


def test_equal_thresholds_are_one():
    # Three quarters of the rows have the same value.
    assert (
        sqlkrp.Thresholds(9).fit(column(*[0] * 75, *range(1, 26))).transform(column(0)).shape[1] < 9
    )


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=30), st.integers(1, 40))
def test_thresholds_tell_apart_what_they_can_and_only_rise(values, n_thresholds):
    frame = column(*values)
    if frame["a"].nunique() < 2:
        with pytest.raises(ColumnError, match="no column has two values"):
            sides(n_thresholds, frame)
        return
    found = sides(n_thresholds, frame)
    assert 1 <= found.shape[1] <= n_thresholds
    assert set(np.unique(found)) == {-1, 1}  # each threshold has rows on both sides
    counts = (found[np.argsort(values, kind="stable")] > 0).sum(axis=1)
    assert (np.diff(counts) >= 0).all()
    if n_thresholds >= 2 * len(values):  # a quantile falls on each value, so all are told apart
        assert len(np.unique(counts)) == frame["a"].nunique()


def test_an_increasing_function_of_a_column_changes_nothing():
    values = np.random.default_rng(0).normal(size=400)
    assert np.array_equal(sides(7, column(*values)), sides(7, column(*np.exp(3 * values))))


def test_distances_of_ranks():
    values = np.arange(40.0)
    found = sides(39, column(*values))
    squared = ((found[:, None] - found[None]) ** 2).sum(axis=2)
    assert np.array_equal(squared, 4 * np.abs(values[:, None] - values))


def test_missing_values_do_not_shift_the_quantiles():
    there = sqlkrp.Thresholds(3, nulls="propagate").fit(column(*range(8)))
    gaps = sqlkrp.Thresholds(3, nulls="propagate").fit(column(*range(8), *[np.nan] * 8))
    rows = column(*np.arange(-1, 9, 0.25))
    assert np.array_equal(there.transform(rows), gaps.transform(rows))


def test_a_linear_model_of_thresholds_bends():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.lognormal(0, 2, size=(4000, 2)), columns=["a", "b"])
    label = np.abs(np.log(frame["a"])) + np.sign(np.log(frame["b"]))
    found = sqlkrp.Thresholds(30).fit_transform(frame)
    assert Ridge().fit(frame, label).score(frame, label) < 0.2
    assert Ridge().fit(found, label).score(found, label) > 0.95


@pytest.mark.parametrize("form", FORMS)
def test_neighbours_in_single_precision_are_told_apart_in_every_engine(engine, form):
    # Half way between two of them is a number in double precision, and none in theirs.
    one = np.float32(1.1)
    two = np.nextafter(one, np.float32(2))
    values = [one, two, np.nextafter(two, np.float32(2))]
    frame = pd.DataFrame({"a": np.array(values * 4, dtype="f4"), "id": range(12)})
    fitted = sqlkrp.Thresholds(5).fit(frame, exclude=["id"])
    assert fitted.program_.prepare.dtype == "float32"
    engine.store(frame)
    found = engine.features(fitted, keep=["id"], form=form)[:, 1:]
    assert found.tolist() == [[-1, -1], [1, -1], [1, 1]] * 4
