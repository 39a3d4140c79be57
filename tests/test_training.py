"""Training: the same model wherever the rows are, of rows that were held out as it says."""

import json
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pytest
from engines import SLOW_ENGINES
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import sqlkrp
from sqlkrp.errors import ParameterError, SqlkrpError
from sqlkrp.training import asked, candidates, training
from sqlkrp.training.folds import TEST, Split, hashes_of_rows
from sqlkrp.training.moments import solve

KRP = sqlkrp.KRP(2, 20, random_state=1)


def table(rows=400, seed=0):
    """Rows of two numbers, a text and a day, whose label is a product and a category."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "height": rng.normal(10, 3, rows).round(3),
        "width": rng.normal(-2, 1, rows).round(3),
        "kind": rng.choice(["a", "b'c", "ü"], rows),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), "D"),
    })  # fmt: skip
    frame.loc[::17, "height"] = np.nan
    frame.loc[::23, "kind"] = None
    signal = frame["height"].fillna(10) * frame["width"] + 5 * (frame["kind"] == "ü")
    frame["price"] = (signal + rng.normal(0, 1, rows)).round(4)
    frame["is_dear"] = np.where(frame["price"] > frame["price"].median(), "yes", "no")
    return frame


def trained(frame, label="price", **options):
    options = {"maps": [KRP], "sample": 300, **options}
    return sqlkrp.train(frame, label, **options)


def numbers(told):
    """What was measured, of all that is kept."""
    found = {f"{one['name']} {what}": one[what] for one in told["candidates"]
             for what in ("mean", "spread", "penalty")}  # fmt: skip
    for where in ("in_folds", "held_out"):
        found |= {f"{where} {name}": value for name, value in told[where].items()
                  if isinstance(value, float)}  # fmt: skip
    return found


# --- the same model everywhere --------------------------------------------------------------------


@pytest.mark.parametrize("label", ["price", "is_dear"])
def test_the_same_model_of_every_engine(place, label):
    same_model(place, label)


@pytest.mark.slow
def test_the_same_model_of_spark(spark_session, tmp_path):
    with SLOW_ENGINES["spark"].opened(tmp_path, spark_session) as spark:
        same_model(spark, "is_dear")


def same_model(engine, label):
    frame = table()
    frame["day"] = (frame["day"] - pd.Timestamp("1970-01-01")).dt.days  # SQLite has no dates
    other = "is_dear" if label == "price" else "price"
    engine.store(frame, "sales")
    here = trained(engine.database.source(("sales",)), label, exclude=[other])
    there = trained(frame, label, exclude=[other])
    assert numbers(here.training) == pytest.approx(numbers(there.training), rel=1e-8)
    features = ["height", "width", "kind", "day"]
    if label == "price":
        assert here.predict(frame[features]) == pytest.approx(there.predict(frame[features]))
    else:
        assert here.predict_proba(frame[features]) == pytest.approx(
            there.predict_proba(frame[features])
        )


def test_the_order_of_rows_changes_nothing():
    frame = table()
    mixed = frame.sample(frac=1, random_state=3).reset_index(drop=True)
    one, other = (trained(each, exclude=["is_dear"]) for each in (frame, mixed))
    assert one.predict(frame) == pytest.approx(other.predict(frame), rel=1e-8)
    assert numbers(one.training) == pytest.approx(numbers(other.training), rel=1e-8)


def test_its_sql_says_what_it_says(place):
    frame = table().drop(columns=["day"])
    place.store(frame, "sales")
    model = trained(place.database.source(("sales",)), "is_dear", exclude=["price"])
    found = place.database.verify(model, ("sales",), tolerance=1e-9)
    assert found.ok


# --- what is learned ------------------------------------------------------------------------------


def test_least_squares_are_those_of_scikit_learn():
    frame = table().drop(columns=["kind", "day", "is_dear"]).dropna()
    model = trained(frame, folds=4)
    assert model.training["taken"].startswith("columns + KRP")
    # The features that it weighs, as its own program has them, of all rows.
    program, after = model.whole_, model.after
    inputs = frame[list(program.prepare.reads)].to_numpy()
    names = [f"f{i}" for i in range(len(model.names))]
    features = type(program)(program.stages[:after], tuple(names)).apply(inputs)
    scaled = StandardScaler().fit_transform(features)
    ridge = Ridge(alpha=model.training["penalty"] * len(frame)).fit(scaled, frame["price"])
    expected = np.clip(ridge.predict(scaled), frame["price"].min(), frame["price"].max())
    assert model.predict(frame) == pytest.approx(expected, rel=1e-7)


def test_logistic_regression_is_that_of_scikit_learn(monkeypatch):
    alone = [one.by("logistic") for one in candidates.raw(hold=False)]
    monkeypatch.setattr(training, "raw", lambda hold: alone)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (500, 3)), columns=list("abc"))
    frame["y"] = np.where(frame["a"] - frame["b"] + rng.normal(0, 0.5, 500) > 0, "in", "out")
    model = sqlkrp.train(frame, "y", maps=[])
    scaled = StandardScaler().fit_transform(frame[["a", "b", "c"]])
    expected = LogisticRegression(C=1 / (model.training["penalty"] * len(frame)), tol=1e-10)
    expected.fit(scaled, frame["y"])
    found = model.predict_proba(frame[["a", "b", "c"]])
    assert found == pytest.approx(expected.predict_proba(scaled), abs=1e-6)


def test_rows_that_are_held_out_are_not_looked_at():
    frame = table()
    model = trained(frame, exclude=["is_dear"])
    spoilt = frame.copy()
    # What a row holds says whether it is held out, so its columns stay and its label goes.
    held = _held_out(model, frame)
    assert held.sum() == model.training["test_rows"] > 50
    spoilt.loc[held, "price"] = frame["price"].max()
    other = trained(spoilt, exclude=["is_dear"])
    assert other.training["candidates"] == model.training["candidates"]
    assert other.training["in_folds"] == model.training["in_folds"]
    assert other.training["held_out"]["r2"] < model.training["held_out"]["r2"]


def _held_out(model, frame):
    """Which rows were held out: what training reads of a row says so."""
    from sqlkrp.engines import connect
    from sqlkrp.maps.reading import read_columns

    with connect() as database:
        database.connection.register("frame", frame)
        source = database.source("frame")
        reading = read_columns(
            source, None, ["is_dear"], ["price"], categories="auto", dates="auto"
        )
        inputs = reading.source.head(reading.columns, len(frame))
    marks = hashes_of_rows(inputs, 0)
    split = Split(5, 0.2, by_class=False, in_order=False)
    split.look(marks, np.zeros(len(marks), "i8"))
    split.close(by_class=False)
    return split.parts(marks, np.zeros(len(marks), "i8")) == TEST


def test_rows_of_a_group_stay_together():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 10)
    # Each group has a label of its own, which only rows of the same group tell.
    frame = pd.DataFrame({"x": group + rng.normal(0, 0.1, 600), "team": group.astype(str)})
    frame["y"] = rng.normal(size=60)[group]
    maps = [sqlkrp.RandomFourier(400, gamma=500.0, random_state=0)]
    apart = sqlkrp.train(frame, "y", maps=maps, exclude=["team"])
    together = sqlkrp.train(frame, "y", maps=maps, groups="team")

    def of_map(model):
        (found,) = (one for one in model.training["candidates"] if one["maps"])
        return found["mean"]

    assert of_map(apart) > 0.5
    assert of_map(together) < 0.1


def test_a_row_that_many_are_equal_to_is_in_all_parts():
    rng = np.random.default_rng(0)
    marks = rng.integers(0, 2**63, 20_000).astype("u8")
    marks[rng.random(20_000) < 0.3] = 5  # in no part more than its share
    marks[:150] = 6  # less than a hundredth: together
    codes = (rng.random(20_000) < 0.1).astype("i8")
    split = Split(5, 0.2, by_class=True, in_order=False)
    split.look(marks, codes)
    split.close(by_class=True)
    parts = []
    split.begin()
    for first in range(0, 20_000, 777):
        rows = slice(first, first + 777)
        parts.append(split.parts(marks[rows], codes[rows]))
    found = np.concatenate(parts)
    for chosen in (codes == 0, codes == 1, marks == 5):
        shares = np.bincount(found[chosen] + 1) / chosen.sum()
        assert shares == pytest.approx([0.2, *[0.16] * 5], abs=0.015)
    assert all(len(set(found[(marks == 6) & (codes == code)])) == 1 for code in (0, 1))


def test_nothing_is_found_in_noise_of_many_classes():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1000, 2)), columns=["a", "b"])
    frame["y"] = [f"c{i % 20}" for i in range(1000)]
    told = trained(frame, "y", metric="log-loss", sample=1000).training
    assert told["taken"] == told["raw"]
    assert told["in_folds"]["accuracy"] < 0.1  # a twentieth, and twice the error of that
    assert told["in_folds"]["log-loss"] > 2.95  # of guesses log(20)


def test_rows_that_a_join_has_multiplied_are_not_held_out_from_themselves():
    rng = np.random.default_rng(0)
    few = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    few["y"] = rng.integers(0, 2, 300)
    frame = pd.concat([few] * 10, ignore_index=True)
    maps = [sqlkrp.RandomFourier(200, gamma=20.0, random_state=0)]
    told = sqlkrp.train(frame, "y", maps=maps).training
    assert told["held_out"]["accuracy"] < 0.65


def test_few_groups_stay_together_too():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 12, 500)
    split = Split(5, 0.2, by_class=False, in_order=False, in_groups=True)
    marks, codes = hashes_of_rows(group[:, None].astype(float), 0), np.zeros(500, "i8")
    split.look(marks, codes)
    split.close(by_class=False)
    split.begin()
    parts = split.parts(marks, codes)
    assert all(len(set(parts[group == one])) == 1 for one in range(12))


@pytest.mark.slow
def test_a_trend_goes_on_where_folds_are_in_time():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": np.arange(1000.0), "a": rng.normal(size=1000)})
    frame["day"], frame["y"] = np.arange(1000), frame["t"] / 50 + frame["a"]
    frame["y"] += rng.normal(0, 0.3, 1000)
    model = sqlkrp.train(frame.head(800), "y", time="day")
    said = model.predict(frame.tail(200))
    assert np.sqrt(np.mean((said - frame["y"].tail(200)) ** 2)) < 0.5


@pytest.mark.slow
def test_thresholds_are_tried_where_columns_have_tails_but_not_in_time():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.lognormal(0, 2, (1500, 3)), columns=["a", "b", "c"])
    ranks = np.log(frame[["a", "b"]])
    frame["y"] = np.sign(ranks["a"]) * np.sign(ranks["b"]) + rng.normal(0, 0.3, 1500)
    frame["day"] = np.arange(1500)
    told = sqlkrp.train(frame, "y", exclude=["day"], sample=1000).training
    assert told["taken"] == "columns + Fourier of thresholds"
    assert told["held_out"]["r2"] > 0.7  # of at most .92, as there is noise
    assert max(one["mean"] for one in told["candidates"] if not one["maps"]) < 0.1
    told = sqlkrp.train(frame, "y", time="day", sample=1000).training
    assert not any("thresholds" in one["name"] for one in told["candidates"])


def test_a_training_like_another_tries_what_was_taken_there(tmp_path):
    frame = table(600)
    one = trained(frame.head(300), exclude=["is_dear"], maps=[sqlkrp.chain(
        sqlkrp.Thresholds(5), sqlkrp.RandomFourier(50, gamma="auto", scaling="standard")
    )])  # fmt: skip
    assert one.training["taken"] != one.training["raw"]
    one.save(tmp_path / "one.model.json")
    again = sqlkrp.load(tmp_path / "one.model.json")
    other = sqlkrp.train(frame, "price", exclude=["is_dear"], like=again)
    raw = [c["name"] for c in other.training["candidates"] if not c["maps"]]
    assert [c["name"] for c in other.training["candidates"]] == [*raw, one.training["taken"]]
    assert other.training["candidate"] == one.training["candidate"]


def test_nothing_is_tried_like_what_was_not_trained_here():
    model = sqlkrp.model(Ridge().fit(table()[["width"]], table()["price"]))
    with pytest.raises(SqlkrpError, match=r"was not trained by sqlkrp\.train"):
        sqlkrp.train(table(), "price", like=model)
    with pytest.raises(SqlkrpError, match="a model to be like and maps to try"):
        sqlkrp.train(table(), "price", like=trained(table()), maps=[KRP])


def test_times_are_texts_in_order_or_none():
    frame = table()
    texts = frame["day"].dt.strftime("%d/%m/%Y")
    with pytest.raises(SqlkrpError, match="whose order is not that of time: make it a date"):
        trained(frame.assign(day=texts), exclude=["is_dear"], time="day")
    texts = frame["day"].dt.strftime("%Y-%m-%d").where(np.arange(400) % 10 > 0)
    told = trained(frame.assign(day=texts), exclude=["is_dear"], time="day").training
    assert told["without_time"] == 40
    assert told["rows"] + told["test_rows"] == 360


@pytest.mark.parametrize("factor", [1e-170, 1e160])
def test_labels_whose_squares_are_no_numbers_are_refused(factor):
    frame = table()
    with pytest.raises(SqlkrpError, match="whose squares leave the range of numbers: rescale"):
        trained(frame.assign(price=frame["price"] * factor), exclude=["is_dear"])


@pytest.mark.slow
def test_a_class_of_which_all_rows_are_held_out_is_told():
    def told(place):
        frame = table().assign(rare=np.arange(400) == place)
        try:
            return json.dumps(trained(frame, "rare").training)
        except SqlkrpError as bad:
            return str(bad)

    found = [told(place) for place in range(12)]  # of which some are held out
    assert any("the rows to learn from have one class of 'rare'" in one for one in found)
    assert not any("NaN" in one for one in found)


def test_options_that_no_map_takes_are_refused():
    with pytest.raises(SqlkrpError, match=r"^gamma=1\.0 is of none of these maps: thresholds"):
        asked.maps_of(["thresholds"], gamma=[1.0])
    assert len(asked.maps_of(["thresholds", "random-fourier"], gamma=[1.0, 2.0])) == 3


def test_what_is_like_another_has_its_task():
    frame = table()
    with pytest.raises(SqlkrpError, match="was trained for a regression, and this is a class"):
        sqlkrp.train(frame, "is_dear", like=trained(frame, exclude=["is_dear"]))


@pytest.mark.parametrize("label", [None, ["price"], 0])
def test_a_label_is_a_name(label):
    with pytest.raises(SqlkrpError, match="is no name of a column: give a text"):
        sqlkrp.train(table(), label)


def test_a_date_is_no_label_unless_it_is_said_to_be_one():
    with pytest.raises(SqlkrpError, match="a date, which is neither a class nor a number"):
        sqlkrp.train(table(), "day")
    frame = table()
    frame["day"] = frame["day"].dt.to_period("Q").dt.start_time
    assert trained(frame, "day", task="classification").training["task"] == "classification"


def test_what_became_of_every_column_is_told():
    frame = table()
    frame["same"], frame["none"], frame["count"] = 1.0, np.nan, 2
    found = trained(frame, exclude=["is_dear"], weights="count").training["columns"]
    assert found["same"].startswith("left out: it has one value")
    assert found["none"].startswith("left out: it has one value")
    assert found["count"] == "weights"
    assert found["price"] == "label"


def test_a_column_is_no_leak_where_all_together_say_little():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(800, 3)), columns=["a", "b", "c"])
    frame["y"] = frame["a"] + rng.normal(0, 3, 800)  # R² of .1, all of it a's
    assert trained(frame, "y").training["leaks"] == []
    frame["y"] = frame["a"] + rng.normal(0, 0.1, 800)
    assert [one["column"] for one in trained(frame, "y").training["leaks"]] == ["a"]


def test_probabilities_of_all_candidates_are_compared_alike():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (2000, 2)), columns=["a", "b"])
    frame["y"] = rng.random(2000) < 0.1  # which nothing tells: squares are as good as any
    told = sqlkrp.train(frame, "y", maps=[], metric="log-loss").training["candidates"]
    losses = [one["mean"] for one in told]
    assert max(losses) - min(losses) < 0.02


def test_folds_in_time_predict_what_comes_later():
    split = Split(4, 0.25, by_class=False, in_order=True)
    times = np.random.default_rng(0).permutation(100).astype(float)
    codes = np.zeros(100, "i8")
    split.look(times, codes)
    split.close(by_class=False)
    parts = split.parts(times, codes)
    assert (parts == TEST).sum() == 25
    assert times[parts == TEST].min() > times[parts != TEST].max()
    for fold in split.predicted:
        before = np.isin(parts, list(split.before(fold)))
        assert times[before].max() < times[parts == fold].min()


@pytest.mark.parametrize(
    ("which", "first", "seed"),
    [("time", 190, 0), ("time", 5, 0), *(("groups", 193, s) for s in range(4))],
)
def test_folds_of_nearly_all_rows_in_one_group_or_time_are_refused(which, first, seed):
    frame = table(200)
    # So many rows are of one value, and those after it of one more each; or the other way round.
    order = np.arange(200)
    frame["one"] = np.where(order < first, 0, order) if first > 100 else np.minimum(order, first)
    with pytest.raises(ParameterError, match="nearly all have one value of 'one'"):
        trained(frame, exclude=["is_dear"], random_state=seed, **{which: "one"})


@pytest.mark.parametrize("rows", [20_000, 250_000])  # predicted are 200,000 at the most
def test_a_sample_of_few_kinds_of_rows_has_all_of_them(rows):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (rows, 3)), columns=["a", "b", "c"])
    frame["y"] = np.where(rng.random(rows) < 0.1 + 0.8 * frame["a"], "yes", "no")
    told = sqlkrp.train(frame, "y", maps=[], sample=1000).training
    # A tenth of the rows is not what their a says.
    for found in (told["candidates"][0]["mean"], told["in_folds"]["accuracy"]):
        assert found == pytest.approx(0.9, abs=0.03)
    assert told["in_folds"]["rows"] == pytest.approx(min(0.8 * rows, 160_000), rel=0.01)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_parts_and_samples_do_not_depend_on_the_order_of_equal_rows(task):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 4, (3000, 3)), columns=["a", "b", "c"])
    frame["y"] = (frame["a"] * frame["b"] + rng.integers(0, 5, 3000)) // 4
    here, there = (
        numbers(sqlkrp.train(one, "y", maps=[], task=task, sample=300).training)
        for one in (frame, frame.sample(frac=1, random_state=1))
    )
    assert here == pytest.approx(there, rel=1e-8)


def test_folds_have_as_many_of_each_class():
    rng = np.random.default_rng(0)
    marks, codes = hashes_of_rows(rng.normal(size=(5000, 3)), 0), (rng.random(5000) < 0.1) * 1
    split = Split(5, 0.2, by_class=True, in_order=False)
    split.look(marks, codes)
    split.close(by_class=True)
    parts = split.parts(marks, codes)
    of_second = [codes[parts == one].mean() for one in range(-1, 5)]
    assert max(of_second) - min(of_second) < 2 / 800


def test_equal_rows_are_in_one_part_and_few_kinds_of_rows_in_all():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 2))
    marks = hashes_of_rows(np.vstack([rows, rows]), 0)
    codes = np.zeros(6000, "i8")
    split = Split(5, 0.2, by_class=False, in_order=False)
    split.look(marks, codes)
    split.close(by_class=False)
    parts = split.parts(marks, codes)
    assert (parts[:3000] == parts[3000:]).all()
    few = hashes_of_rows(rng.integers(0, 2, (6000, 2)).astype(float), 0)
    split = Split(5, 0.2, by_class=False, in_order=False)
    split.look(few, codes)
    split.close(by_class=False)
    split.begin()
    parts = split.parts(few, codes)
    assert all(abs((parts == one).mean() - 0.16) < 0.01 for one in range(5))


# --- what is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e308, 1e-310])
def test_weights_out_of_the_range_of_numbers_are_refused(size):
    with pytest.raises(ParameterError, match="leave the range of numbers: rescale it"):
        trained(table().assign(w=size), "is_dear", exclude=["price"], weights="w")


def test_a_leak_is_named():
    frame = table().drop(columns=["price"])
    frame["sold_to"] = np.where(frame["is_dear"] == "yes", "rich", "poor")
    model = trained(frame, "is_dear")
    assert [one["column"] for one in model.training["leaks"]] == ["sold_to"]
    assert trained(frame, "is_dear", exclude=["sold_to"]).training["leaks"] == []


@pytest.mark.parametrize("metric", ["log-loss", "roc-auc"])
def test_a_leak_is_named_by_any_measure(metric):
    frame = table().drop(columns=["price"])
    frame["sold_to"] = np.where(frame["is_dear"] == "yes", "rich", "poor")
    told = trained(frame, "is_dear", metric=metric).training
    assert [one["column"] for one in told["leaks"]] == ["sold_to"]


def test_the_columns_are_kept_unless_they_are_beaten():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
    frame["y"] = frame @ [1.0, -2.0, 0.5, 0.0] + rng.normal(0, 0.5, 600)
    model = sqlkrp.train(frame, "y", maps=[KRP])
    assert model.training["taken"] in ("columns", "columns, held within 3 sd")
    assert "not more than its standard error" in model.training["taken_because"]


def test_rows_without_a_label_are_counted():
    frame = table()
    frame.loc[:9, "price"] = np.nan
    model = trained(frame, exclude=["is_dear"])
    told = model.training
    assert told["without_label"] == 10
    assert told["rows"] + told["test_rows"] == len(frame) - 10


def test_classes_are_as_the_table_has_them():
    frame = table().drop(columns=["day", "kind"])
    for values in ([1, 2], [False, True], ["b", "C"], [-1, 1]):
        frame["y"] = np.where(frame["is_dear"] == "yes", values[1], values[0])
        model = trained(frame, "y", exclude=["price", "is_dear"])
        assert model.training["task"] == "classification"
        assert set(model.predict(frame[["height", "width"]])) <= set(values)
        assert sorted(model.classes_.tolist()) == sorted(values)


def test_whole_numbers_of_few_values_are_classes_unless_asked():
    frame = table().drop(columns=["is_dear"])
    frame["stars"] = pd.qcut(frame.pop("price"), 5, labels=False).astype(int)
    assert trained(frame, "stars").training["task"] == "classification"
    as_numbers = trained(frame, "stars", task="regression")
    assert as_numbers.training["task"] == "regression"
    found = as_numbers.predict(frame.drop(columns="stars"))
    assert found.min() >= -2  # half of the labels' range beyond
    assert found.max() <= 6


def test_balanced_classes_find_the_rare_one():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=2000)})
    frame["y"] = (frame["x"] + rng.normal(0, 1, 2000) > 2.3).astype(int)
    plain, balanced = (
        sqlkrp.train(frame, "y", maps=[], class_weight=one)
        .training["in_folds"]["balanced-accuracy"]
        for one in (None, "balanced")
    )  # fmt: skip
    assert balanced > plain + 0.1


@pytest.mark.parametrize("cuts", [[0.0], [-0.5, 0.5]], ids=["two classes", "three"])
def test_weights_say_how_much_rows_count_beside_each_other(cuts):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    frame["y"] = np.digitize(frame["a"] * frame["b"] + rng.normal(0, 0.1, 600), cuts)
    weights = rng.uniform(1, 2, 600)
    features = frame[["a", "b"]]
    ones, shares = (
        sqlkrp.train(frame.assign(w=w), "y", weights="w", maps=[sqlkrp.Monomials(2)])
        for w in (weights, weights / weights.sum())
    )
    assert "least squares" in ones.estimator  # which is calibrated
    assert ones.predict_proba(features) == pytest.approx(shares.predict_proba(features), abs=1e-6)


@pytest.mark.parametrize("cuts", [[1.5], [1.5, 2.0]], ids=["two classes", "three"])
def test_probabilities_of_balanced_classes_are_of_classes_that_count_as_much(cuts):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(4000, 2)), columns=["a", "b"])
    frame["y"] = np.digitize(frame["a"] * frame["b"] + rng.normal(0, 0.3, 4000), cuts)
    model = sqlkrp.train(
        frame, "y", maps=[sqlkrp.KRP(2, 20)], metric="balanced-accuracy", class_weight="balanced"
    )
    assert "KRP" in model.training["taken"]  # which learns by squares, and is calibrated
    (best,) = (
        one["mean"]
        for one in model.training["candidates"]
        if one["name"] == model.training["taken"]
    )
    assert model.training["in_folds"]["balanced-accuracy"] > best - 0.03
    assert model.training["held_out"]["balanced-accuracy"] > best - 0.1


def test_a_model_file_keeps_what_was_found(tmp_path):
    model = trained(table(), exclude=["is_dear"])
    model.save(tmp_path / "m.json")
    again = sqlkrp.load(tmp_path / "m.json")
    assert again.training == model.training
    assert again.digest_ == model.digest_


# --- for other learners ---------------------------------------------------------------------------


def test_batches_are_all_rows_with_their_labels(place):
    frame = table()[["height", "width", "price", "is_dear"]].fillna(10.0)
    place.store(frame, "sales")
    krp = sqlkrp.KRP(2, 7, random_state=0).fit(place.database.source(("sales",)), label="price")
    for label in ("price", "is_dear"):
        batches = list(place.database.batches(krp, ("sales",), label=label, rows=150))
        assert [len(X) for X, _ in batches] == [150, 150, 100]
        X, y = (np.concatenate(one) for one in zip(*batches, strict=True))
        assert pytest.approx(krp.transform(frame[["height", "width"]])) == X
        assert y.tolist() == frame[label].tolist()
    # The connection is free again, and nothing is left open in it.
    assert place.database.verify(krp, ("sales",)).ok


def test_sums_are_enough_for_least_squares(db_of_sales):
    db, frame = db_of_sales
    krp = sqlkrp.KRP(2, 7, random_state=0).fit(db.source("sales"), label="price")
    (fit,) = solve(db.gram(krp, "sales", label="price"), [1e-3])
    scaled = StandardScaler().fit(X := krp.transform(frame))
    ridge = Ridge(alpha=1e-3 * len(frame)).fit(scaled.transform(X), frame["price"])
    assert fit.decisions(X)[:, 0] == pytest.approx(ridge.predict(scaled.transform(X)))
    with pytest.raises(SqlkrpError, match="holds texts"):
        db.gram(krp, "sales", label="is_dear")


@pytest.fixture
def db_of_sales():
    frame = table()[["height", "width", "price", "is_dear"]].fillna(10.0)
    with sqlkrp.connect() as db:
        db.connection.register("sales", frame)
        yield db, frame


# --- the command line -----------------------------------------------------------------------------


def test_from_a_table_to_scores(run_cli, tmp_path):
    frame = table()
    frame.insert(0, "id", range(len(frame)))
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE sales AS FROM frame")
    said = run_cli(
        "train", "shop.duckdb", "--table", "sales", "--label", "is_dear", "--exclude", "price",
        "--keep", "id", "--map", "krp", "--components", "20", "-o", "dear.json",
    ).stdout  # fmt: skip
    assert "held out" in said
    assert "kind: 4 indicators" in said
    run_cli(
        "score", "dear.json", "--db", "shop.duckdb", "--table", "sales", "--into", "scores",
        "--keep", "id",
    )  # fmt: skip
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        right = connection.execute(
            "SELECT avg((label = is_dear)::INT) FROM scores JOIN sales USING (id)"
        ).fetchone()[0]
    assert right > 0.8


@pytest.mark.parametrize(
    ("change", "options", "told"),
    [
        (lambda t: t.assign(is_dear="yes"), {}, "one value in all labelled rows"),
        (lambda t: t.head(8), {}, "fewer than two for each of 5 folds"),
        (lambda t: t, {"include": ["is_dear", "height"]}, "both included and no feature"),
        (lambda t: t, {"task": "regression"}, "a regression is trained on numbers"),
        (lambda t: t[["is_dear"]].assign(x="a"), {}, "left"),
        (lambda t: t[["is_dear"]].assign(x=1.0), {}, "no column"),
        (lambda t: t.assign(is_dear=None), {}, "no row with a label"),
        (lambda t: t, {"metric": "r2"}, "metric='r2' is not allowed"),
        (lambda t: t, {"test_share": 1.5}, "test_share=1.5"),
        (lambda t: t, {"weights": "no_such"}, "'no_such' is not in"),
        (lambda t: t, {"weights": "kind"}, "weights are numbers"),
        (lambda t: t.assign(w=0.0), {"weights": "w"}, "no row has a weight in 'w'"),
        (lambda t: t.assign(g="one"), {"groups": "g"}, "there are 1 different groups"),
        (lambda t: t.assign(g=1), {"time": "g"}, "there are 1 different times"),
        (lambda t: t, {"time": "day", "groups": "kind"}, "give one"),
        (lambda t: t.assign(is_dear=t.price), {"loss": "logistic"}, "loss='logistic' is for"),
        (
            lambda t: t.assign(is_dear=range(len(t))).astype({"is_dear": str}),
            {},
            "fewer than two each",
        ),
        (lambda t: t.assign(is_dear=2**53 + np.arange(len(t)) % 3), {}, "beyond 2\\^53"),
        (lambda t: t, {"loss": "logistic", "maps": None}, "for maps that are named, and none are"),
        (lambda t: t, {"budget": -1}, "budget=-1"),
        (lambda t: t, {"budget": "soon"}, "budget='soon' is no time: give seconds, or 60s"),
        (lambda t: t, {"maps": KRP}, "give a list of maps"),
        (lambda t: t, {"maps": [sqlkrp.Ensemble([KRP])]}, "map is of type list, not a map"),
        (lambda t: t.assign(is_dear=t.price), {"class_weight": "balanced"}, "is for classes"),
    ],
)
def test_what_cannot_be_trained_is_said_in_one_line(change, options, told):
    with pytest.raises(SqlkrpError, match=told) as raised:
        trained(change(table()), "is_dear", **options)
    assert "\n" not in str(raised.value)


def test_a_map_of_numbers_is_not_learned_again_where_there_are_none():
    rng = np.random.default_rng(0)
    steps = pd.DataFrame(rng.uniform(-2, 2, (200, 2)), columns=["a", "b"])
    steps["y"] = np.sign(steps["a"]) + np.sign(steps["b"])
    before = sqlkrp.train(steps, "y", task="regression")
    assert before.training["candidate"]["numbers_only"]
    truths = pd.DataFrame(rng.random((200, 2)) > 0.5, columns=["a", "b"])
    with pytest.raises(ParameterError, match="reads numbers alone, and no column has others"):
        sqlkrp.train(truths.assign(y=steps["a"]), "y", like=before)


def test_a_budget_is_a_time_as_on_the_command_line():
    asked = {"exclude": ["is_dear"], "maps": [sqlkrp.KRP(degree, 9) for degree in (1, 2, 3)]}
    for budget, searched_all in (("0.0s", False), (0, False), ("1.5h", True)):
        told = trained(table(60), budget=budget, **asked).training
        assert told["searched_all"] == searched_all


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ("[id % 2]", r"BIGINT\[\]"), ("{'a': id % 2}", r"STRUCT\(a BIGINT\)"),
        ("TIME '10:00:00' + INTERVAL (id % 2) HOUR", "TIME"), ("INTERVAL (id % 2) DAY", "INTERVAL"),
        ("['x']", r"VARCHAR\[\]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("task", [None, "classification"])
def test_a_label_of_a_type_that_is_none_is_refused_by_name(connection, made, named, task):
    connection.execute(
        f"CREATE TABLE t AS SELECT range AS id, range / 4 AS a, {made.replace('id', 'range')} AS y "
        "FROM range(100)"
    )
    source = sqlkrp.connect(connection).source("t")
    with pytest.raises(
        ParameterError, match=f"'y' is of type {named}, and a label is a number, a truth value or"
    ):
        sqlkrp.train(source, "y", task=task)


def test_a_label_that_sqlite_computes_has_no_type_and_may_be_a_text():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a REAL)")
    connection.executemany("INSERT INTO t VALUES (?)", [(i / 4,) for i in range(100)])
    connection.execute(
        "CREATE VIEW v AS SELECT a, CASE WHEN a > 9 THEN 'y' ELSE 'n' END AS y FROM t"
    )
    model = sqlkrp.train(sqlkrp.connect(connection).source("v"), "y", budget=0)
    assert model.classes_.tolist() == ["n", "y"]


def test_maps_of_maps_are_tried():
    maps = [sqlkrp.chain(sqlkrp.PCA(2), sqlkrp.KRP(2, 20)), sqlkrp.Ensemble(sqlkrp.KRP(2, 5), 3)]
    told = trained(table(), exclude=["is_dear"], maps=maps).training["candidates"]
    assert [len(one["maps"]) for one in told] == [0, 0, 1, 1]


def test_columns_that_cannot_be_scaled_are_not_learned_of():
    frame = table().assign(huge=lambda t: t["width"] * 1e300, key=2**53 + 2 * np.arange(400))
    plain = trained(frame, exclude=["is_dear", "huge"])
    found = trained(frame, exclude=["is_dear"])
    assert (
        found.training["candidates"][0]["features"] == plain.training["candidates"][0]["features"]
    )


def test_constant_columns_and_more_features_than_rows_are_no_errors():
    frame = table(60).assign(same=3.0)
    model = trained(frame, exclude=["is_dear"], maps=[sqlkrp.KRP(3, 500, random_state=0)])
    assert np.isfinite(model.predict(frame)).all()
