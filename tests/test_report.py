"""Reports: what they say, that they show every name as text, and that they ask for nothing."""

import contextlib
import html.parser
import math
import re
import sys
from collections import Counter
from pathlib import Path

import browser
import duckdb
import numpy as np
import pandas as pd
import pytest
from engines import Spark, SQLite
from hostile import HOSTILE
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import store

import sqlkrp
from sqlkrp.engines.cells import binned_in
from sqlkrp.engines.distortion import Bench, sample_in
from sqlkrp.errors import ColumnError, MissingValueError, ParameterError, TargetExistsError
from sqlkrp.maps.parameters import title_of
from sqlkrp.maps.source import choose_rows
from sqlkrp.pools import generator
from sqlkrp.quality.asked import asked_of, family_of
from sqlkrp.quality.binned import binned
from sqlkrp.report.page import LARGEST
from sqlkrp.report.text import brief, words

#: Names that would be part of a page, if it were not for what makes texts of them.
SHARP = [
    "<script>alert(1)</script>", '"><img src=x onerror="document.title=1">', "</svg><b>", "$x^2$",
    "a & b", "'><script src='https://example.com/x.js'></script>", "</style></title>", "é😀",
    'id="x" url(#y) #0a0b01', "--><!--",
]  # fmt: skip
FEW = {"rows": 20, "runs": 1}
OF_FOUR = {**FEW, "components": [4]}
#: What elements do that nothing in a page is to do.
RUNS = {"script", "iframe", "object", "embed", "link", "form", "base", "audio", "video", "img"}
NO_NUMBER = re.compile(r"\b(nan|inf)\b", re.IGNORECASE)
EMPTY = {"meta", "br", "path", "use", "stop"}


class Page(html.parser.HTMLParser):
    """The elements of a page, each closed where it should be, and its texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.used, self.texts = Counter(), [], [], []
        self.open, self.charts = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids.append(value)
            if name in ("href", "xlink:href", "src", "action", "data"):
                self.used.append(value)
            if name in ("style", "clip-path", "fill"):
                self.used += re.findall(r"url\(([^)]*)\)", value)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)
            if "svg" in self.open:
                self.charts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def checked(report):
    """The page of a report that is whole, small, and loads and runs nothing."""
    text = report.html
    page = Page(text)
    assert len(text.encode()) <= LARGEST
    assert not RUNS & set(page.tags)
    assert all(one.startswith("#") for one in page.used), page.used
    assert len(set(page.ids)) == len(page.ids)
    assert {one[1:] for one in page.used} <= set(page.ids)
    styles = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert "url(" not in styles
    assert "@import" not in styles
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"" in text
    return page


def table(rows=40, names=("a", "b", "c")):
    """Rows of numbers, with a class and a number that follow of them."""
    values = np.random.default_rng(0).normal(size=(rows, len(names)))
    frame = pd.DataFrame(values, columns=[*names])
    total = values.sum(axis=1)
    return frame.assign(y=np.where(total > 0, "yes", "no"), z=total + values[:, 0] ** 2)


def columns_of(frame):
    return [name for name in frame if name not in ("y", "z")]


def a_map(frame, **options):
    options = {"n_terms": 2, "random_state": 0, **options}
    return sqlkrp.KRP(2, 8, **options).fit(frame[columns_of(frame)])


def classifier(frame, label="y"):
    features = frame[columns_of(frame)]
    front = a_map(frame)
    fitted = LogisticRegression().fit(front.transform(features), frame[label])
    return sqlkrp.model(fitted, front), front


def regression(frame):
    features = frame[columns_of(frame)]
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(features, frame.z)
    return sqlkrp.model(pipeline)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (sqlkrp.RandomFourier(100, gamma=2.5e-5), "RandomFourier, gamma 2.5e-05, 100 features"),
        (
            sqlkrp.chain(sqlkrp.PCA(50), sqlkrp.KRP(3, 200, gamma=1e-7)),
            "Chain of degree 3, gamma 1e-07, 200 features",
        ),
        (
            sqlkrp.chain(sqlkrp.PCA(50), sqlkrp.Ensemble(sqlkrp.KRP(2, 100), 3)),
            "Chain of degree 2, 100 features",
        ),
    ],
)
def test_maps_have_few_words_that_are_true(one, told):
    title = title_of(one, one.get_params(deep=False))
    assert brief(f"columns + {title} gains .1") == f"columns + {told} gains .1"


# --- the page -------------------------------------------------------------------------------------


def test_a_map_s_page_says_what_was_measured(place):
    frame = table()
    place.store(frame)
    krp = a_map(frame)
    report = place.database.report(krp, "t", timed=False, **OF_FOUR)
    page = checked(report)
    for one in (krp.title, krp.digest_, "drawn with the seed 0", "How far distances are off",
                "What it costs", "Columns", "SQL against NumPy", "Again", "achlioptas pool",
                f"Measured in {place.name} on 20 rows"):  # fmt: skip
        assert one in page.text, one
    # The same draws as the instrument's own, of the same rows.
    (told,) = place.database.distortion(krp, "t", **OF_FOUR).maps
    own = report.found.distances.measured
    assert (own.draws, own.curve) == (told.draws, told.curve)
    assert f"{100 * own.draws[0].mean:.3g}%" in page.text
    assert report.found.verification.ok
    assert page.tags["svg"] == 2
    assert "drawn with" not in checked(place.database.report(krp, "t", runs=1)).text


def test_the_page_is_the_same_each_time(connection, tmp_path):
    frame = table()
    store(connection, frame)
    db = sqlkrp.connect(connection)
    model, _ = classifier(frame)
    for fitted, label in ((a_map(frame), None), (model, "y"), (regression(frame), "z")):
        pages = [db.report(fitted, "t", label=label, timed=False, **FEW).html for _ in range(2)]
        assert pages[0] == pages[1]
        assert " s to plan" not in pages[0]
    assert " s to plan" in db.report(fitted, "t", **FEW).html


def test_the_user_s_own_settings_change_no_chart(connection):
    import matplotlib

    frame = table()
    store(connection, frame)
    db = sqlkrp.connect(connection)
    one = db.report(a_map(frame), "t", timed=False, **FEW)
    before = one.html
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert db.report(a_map(frame), "t", timed=False, **FEW).html == before
        assert matplotlib.rcParams["font.size"] == 30


def test_no_value_of_a_row_is_in_the_page(connection):
    frame = table().assign(secret=[f"value{i}" for i in range(40)])
    frame["c"] = 123456.789 + np.arange(40)
    store(connection, frame)
    krp = sqlkrp.KRP(2, 8, random_state=0).fit(sqlkrp.connect(connection).source("t"), label="z")
    page = checked(sqlkrp.connect(connection).report(krp, "t", **FEW))
    assert "secret" in page.text  # it is left out, and that is told
    assert not re.search(r"value\d|1234[56]\d\.789", page.text)


@pytest.mark.parametrize("rows", [1, 3, 19])
def test_no_value_of_a_row_is_in_the_page_of_a_few(connection, rows):
    frame = table(rows)
    frame["a"] = 1000.0 + 4.125 * np.arange(rows)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    before = table(100).assign(a=1000.0 + np.arange(100))
    for label in (None, "z"):
        page = checked(db.report(regression(before), "t", label=label, **FEW))
        said = regression(before).predict(frame[["a", "b", "c"]])
        assert not re.search(r"\b10\d\d\b", page.text.partition("Again")[0])
        for value in (*frame.b, *said):
            assert f"{value:.4g}" not in page.text
        assert "predictions" not in "".join(page.ids)
        assert "quantiles and charts of predictions would tell the rows" in page.text
        assert "of fewer than 20 means would tell the rows" in page.text
    page = checked(db.report(a_map(before, scaling="standard"), "t", **FEW))
    assert "moved" not in page.text
    assert "kernels" not in "".join(page.ids)
    assert rows == 1 or "Pairs are shown of 20 rows or more" in page.text


def test_hexagons_of_labels_hold_five_rows_at_least(connection):
    frame = table(400)
    frame.loc[:9, "z"] += 100
    store(connection, frame)
    report = sqlkrp.connect(connection).report(regression(frame), "t", label="z", **FEW)
    counts = [count for *_, count in report.found.agreement.pairs.cells]
    few = sum(count for count in counts if count < 5)
    assert few
    text = checked(report).text
    assert f"{400 - few} rows, counted in hexagons of 5 rows or more: " in text
    assert "1+" not in checked(report).texts
    assert f"{few} row{'s' * (few > 1)} more in others, which are not shown." in text


@pytest.mark.parametrize("label", ["y", None])
def test_hostile_names_are_texts(connection, label):
    names = [*SHARP, *HOSTILE[:8]]
    frame = table(60, names)
    frame["y"] = np.where(frame[names[0]] > 0, SHARP[0], SHARP[2])
    connection.register("frame", frame)
    connection.execute(f'CREATE TABLE "{SHARP[0]}" AS SELECT * FROM frame')
    db = sqlkrp.connect(connection)
    model = sqlkrp.train(frame, "y", exclude=["z"], sample=50, maps=[sqlkrp.KRP(2, 4)], folds=2)
    plain, _ = classifier(frame)
    for one in (model, plain):
        report = db.report(one, (SHARP[0],), label=label, **FEW)
        page = checked(report)
        for name in (SHARP[0], SHARP[2]):
            assert name in page.text
        for name in SHARP:
            assert name in page.text or words(name) in report.html, name
        assert page.tags["b"] == report.html.count("<b>") + report.html.count("<b ")
    krp = a_map(frame)
    page = checked(db.report(krp, (SHARP[0],), **FEW))
    for name in SHARP:
        assert name in page.text, name


def test_hostile_names_are_texts_of_charts(connection):
    frame = table(60, SHARP)
    store(connection, frame)
    model = sqlkrp.model(LinearRegression().fit(frame[SHARP], frame.z))
    page = checked(sqlkrp.connect(connection).report(model, "t", label="z", **FEW))
    for name in SHARP:
        assert name in page.charts, name


def test_long_names_and_many_columns_leave_the_page_small(connection):
    names = [f"{'n' * 900}{i}" for i in range(150)]
    frame = table(60, names)
    store(connection, frame)
    model = sqlkrp.train(frame, "y", exclude=["z"], sample=50, maps=[sqlkrp.KRP(2, 4)], folds=2)
    page = checked(sqlkrp.connect(connection).report(model, "t", label="y", **FEW))
    assert "…" in page.text


def test_two_reports_in_one_notebook_have_names_of_their_own(connection):
    frame = table()
    store(connection, frame)
    db = sqlkrp.connect(connection)
    shown = [db.report(one, "t", **FEW)._repr_html_()
             for one in (a_map(frame), a_map(frame, random_state=1))]  # fmt: skip
    page = Page("".join(shown))
    assert len(set(page.ids)) == len(page.ids)
    assert page.tags["svg"] == 2
    model = Page(db.report(regression(frame), "t", **FEW)._repr_html_())
    assert model.tags["svg"] == 0


# --- numbers --------------------------------------------------------------------------------------


def test_pairs_are_counted_as_in_numpy(place):
    frame = table()
    place.store(frame)
    krp = a_map(frame)
    asked = asked_of(20, 1, 3, ())
    session = place.database._session
    with sample_in(session, [krp], "t", asked, "a test") as sample:
        bench = Bench(sample, family_of(krp))
        found = bench.binned(krp.program, 10)
    rows = frame.iloc[choose_rows(len(frame), 20, generator(3))]
    family = family_of(krp)
    exact = family.kernel.of_sums(
        family.kernel.sums(family.before.apply(rows[columns_of(frame)].to_numpy()))
    )
    features = krp.transform(rows[columns_of(frame)])
    first, second = np.triu_indices(20, 1)
    wanted = binned(exact[first, second], (features @ features.T)[first, second], 10)
    assert found.cells == wanted.cells
    assert found.count == 190
    assert np.array(found.strips) == pytest.approx(np.array(wanted.strips))
    assert (found.grid.low, found.grid.high) == pytest.approx((wanted.grid.low, wanted.grid.high))


def test_a_point_is_in_the_hexagon_whose_middle_is_nearest():
    points = np.random.default_rng(0).uniform(-1, 3, (2, 500))
    found = binned(*points, 12)
    step = 1 / found.grid.factors[0]
    for x, y in points.T:
        middles = [(math.dist((x, y), found.grid.point(column, row)), count)
                   for column, row, count in found.cells]  # fmt: skip
        assert min(middles)[0] <= step / math.sqrt(3) * (1 + 1e-9)  # the corner of a hexagon
    assert sum(count for *_, count in found.cells) == 500


def test_pairs_that_are_all_the_same_are_one_hexagon(connection):
    session = sqlkrp.connect(connection)._session
    found = binned_in(session, "(SELECT 2.0 AS x, 2.0 AS y FROM range(5))", 10, "a test")
    assert found.cells == ((0, 0, 5),)
    assert binned_in(session, "(SELECT 1.0 AS x, 1.0 AS y WHERE 1 = 2)", 10, "a test") is None


def test_a_classifier_is_held_against_its_label(place):
    frame = table()
    model, krp = classifier(frame)
    frame = frame.assign(y=np.where(frame.a > -0.5, "yes", "no"))  # so that it is often wrong
    place.store(frame)
    found = place.database.report(model, "t", label="y", map=krp, **FEW).found
    said = model.predict(frame[columns_of(frame)])
    wanted = [[int(((frame.y == true) & (said == one)).sum()) for one in ("no", "yes")]
              for true in ("no", "yes")]  # fmt: skip
    assert wanted[0][1] != wanted[1][0]
    assert [[*row] for row in found.agreement.confusion] == wanted
    assert dict(found.agreement.measures)["accuracy"] == pytest.approx((said == frame.y).mean())
    likely = model.predict_proba(frame[columns_of(frame)])[:, 1]
    tenths = np.minimum(9, np.floor(likely * 10))
    wanted = [(likely[tenths == one].mean(), (frame.y == "yes")[tenths == one].mean())
              for one in np.unique(tenths)]  # fmt: skip
    told = [(one.said, one.true) for one in found.agreement.calibrated]
    assert np.array(told) == pytest.approx(np.array(wanted))
    assert found.distances is not None  # of the map that was given


def test_a_regression_is_held_against_its_label(place):
    frame = table()
    place.store(frame)
    model = regression(frame)
    report = place.database.report(model, "t", label="z", **FEW)
    said = model.predict(frame[columns_of(frame)])
    off = frame.z - said
    told = dict(report.found.agreement.measures)
    assert told["r2"] == pytest.approx(model.score(frame[columns_of(frame)], frame.z))
    assert told["rmse"] == pytest.approx(math.sqrt((off**2).mean()))
    assert told["mae"] == pytest.approx(off.abs().mean())
    residuals = report.found.agreement.residuals
    assert sum(count for _, count in residuals.counts) + residuals.beyond == 40
    assert report.found.agreement.pairs.count == 40
    assert "label less prediction" in checked(report).text


@pytest.mark.parametrize("size", [1e200, 1.0])
def test_measures_of_labels_of_any_size_are_numbers(connection, size):
    frame = table()
    model = regression(frame)
    store(connection, frame.assign(z=frame.z * size))
    report = sqlkrp.connect(connection).report(model, "t", label="z", **FEW)
    told = dict(report.found.agreement.measures)
    said, true = model.predict(frame[columns_of(frame)]) / size, frame.z
    off = true - said
    assert told["r2"] == pytest.approx(1 - (off**2).mean() / true.var(ddof=0))
    assert told["rmse"] / size == pytest.approx(math.sqrt((off**2).mean()))
    assert told["mae"] / size == pytest.approx(off.abs().mean())
    assert not NO_NUMBER.search(checked(report).text)


@pytest.mark.parametrize("size", [1e200, 1e30])
def test_predictions_that_are_no_numbers_are_left_out(connection, size):
    frame = table()
    krp = a_map(frame, dtype="float32" if size == 1e30 else "float64")
    fitted = LinearRegression().fit(krp.transform(frame[["a", "b", "c"]]), frame.z)
    model = sqlkrp.model(fitted, krp)
    frame.loc[:2, ["a", "b", "c"]] = size
    assert not np.isfinite(model.predict(frame[["a", "b", "c"]])[:3]).any()
    store(connection, frame)
    report = sqlkrp.connect(connection).report(model, "t", label="z", **FEW)
    told = report.found.agreement
    assert (told.unlabelled, told.pairs.count) == (3, 37)
    assert all(math.isfinite(value) for _, value in (*told.said, *told.measures))
    assert "3 rows without a label or a prediction" in checked(report).text


def test_a_measure_that_there_is_none_of_is_a_dash_with_a_reason(place):
    frame = table()
    model = regression(frame)
    for rows in (frame.head(1), frame.assign(z=0.1)):
        place.store(rows)
        page = checked(place.database.report(model, "t", label="z", **FEW))
        assert not NO_NUMBER.search(page.text)
        assert "whose labels are all the same" in page.text
        assert "R² compares errors with how far labels differ" in page.text
    place.store(frame.assign(z=1e300))
    with pytest.raises(ColumnError, match=r"numbers of size 1e\+300, and a report takes them up"):
        place.database.report(model, "t", label="z", **FEW)


@pytest.mark.parametrize("kind", [bool, int, float])
def test_classes_that_are_numbers_are_told_apart(place, kind):
    frame = table()
    frame["y"] = (frame.a > 0).astype(kind)
    place.store(frame)
    plain = RidgeClassifier().fit(frame[columns_of(frame)], frame.y)
    found = place.database.report(sqlkrp.model(plain), "t", label="y", **FEW).found.agreement
    assert sum(map(sum, found.confusion)) == 40
    assert found.calibrated == ()  # it has decisions alone


def test_rows_without_a_label_or_of_another_class_are_counted_apart(connection):
    frame = table()
    model, _ = classifier(frame)
    frame.loc[:2, "y"] = None
    frame.loc[3:4, "y"] = "perhaps"
    store(connection, frame)
    report = sqlkrp.connect(connection).report(model, "t", label="y", **FEW)
    assert (report.found.agreement.unlabelled, report.found.agreement.unknown) == (3, 2)
    assert "3 rows without a label" in checked(report).text


def test_rows_of_other_classes_are_left_out_of_calibration_too(place):
    frame = table()
    model, _ = classifier(frame)
    likely = model.predict_proba(frame[columns_of(frame)])[:, 1]
    others = likely > 0.7
    assert 0 < others.sum() < 20
    place.store(frame.assign(y=np.where(others, "perhaps", frame.y)))
    found = place.database.report(model, "t", label="y", **FEW).found.agreement
    assert found.unknown == others.sum()
    assert sum(one.rows for one in found.calibrated) == 40 - others.sum()
    kept = likely[~others]
    tenths = np.floor(kept * 10)
    wanted = [(kept[tenths == one].mean(), (frame.y == "yes")[~others][tenths == one].mean())
              for one in np.unique(tenths)]  # fmt: skip
    told = [(one.said, one.true) for one in found.calibrated]
    assert np.array(told) == pytest.approx(np.array(wanted))


def test_rows_whose_features_leave_the_range_of_numbers_are_left_out_of_calibration(connection):
    frame = table()
    model, krp = classifier(frame)
    frame.loc[0, ["a", "b", "c"]] = 1e200
    store(connection, frame)
    assert np.isnan(krp.transform(frame[["a", "b", "c"]])[0]).any()
    report = sqlkrp.connect(connection).report(model, "t", label="y", **FEW)
    assert sum(one.rows for one in report.found.agreement.calibrated) == 39


@pytest.mark.parametrize("known", [0, 1, 19])
def test_a_column_of_which_most_rows_are_of_no_class_is_no_label(connection, known):
    frame = table()
    frame["y"] = (frame.a > 0).astype(int)
    plain = sqlkrp.model(LogisticRegression().fit(frame[columns_of(frame)], frame.y))
    frame["num"] = np.where(np.arange(40) < known, 1.0, frame.b)
    store(connection, frame)
    told = (
        f"'num' of t holds a class of the model in {known} of 40 rows .* its classes are 0, 1: name"
    )
    with pytest.raises(ColumnError, match=told):
        sqlkrp.connect(connection).report(plain, "t", label="num", **FEW)
    connection.execute("UPDATE t SET num = NULL WHERE num NOT IN (0, 1)")
    if known:
        sqlkrp.connect(connection).report(plain, "t", label="num", **FEW)


@pytest.mark.parametrize("label", ["DATE '2020-01-01'", "[1, 2]", "TIME '10:00'"])
def test_a_column_of_neither_texts_nor_numbers_is_no_label(connection, label):
    frame = table()
    model, _ = classifier(frame)
    store(connection, frame)
    connection.execute(f"CREATE TABLE other AS SELECT * EXCLUDE y, {label} AS y FROM t")
    with pytest.raises(ColumnError, match="'y' of other holds a class of the model in 0 of 40"):
        sqlkrp.connect(connection).report(model, "other", label="y", **FEW)


def test_classes_that_are_large_whole_numbers_are_told_apart(connection):
    frame = table()
    frame["y"] = np.where(frame.a > 0, 2**53, 2**53 + 1)
    store(connection, frame)
    plain = LogisticRegression().fit(frame[["a", "b", "c"]], frame.y)
    found = sqlkrp.connect(connection).report(sqlkrp.model(plain), "t", label="y", **FEW).found
    assert dict(found.agreement.measures)["accuracy"] == plain.score(
        frame[["a", "b", "c"]], frame.y
    )
    rows = [int((frame.y == one).sum()) for one in (2**53, 2**53 + 1)]
    assert [sum(row) for row in found.agreement.confusion] == rows


def test_many_classes_are_a_list_of_mistakes(connection):
    frame = table(400)
    frame["y"] = [f"class{int(one)}" for one in (frame.a * 5 + 15).clip(0, 29)]
    store(connection, frame)
    model = sqlkrp.model(
        LogisticRegression(max_iter=30, C=0.1).fit(frame[["a", "b", "c"]], frame.y)
    )
    report = sqlkrp.connect(connection).report(model, "t", label="y", **FEW)
    page = checked(report)
    assert "The most frequent mistakes" in page.text
    assert sum(map(sum, report.found.agreement.confusion)) == 400


def test_columns_that_have_moved_are_told(place):
    frame = table()
    krp = a_map(frame, scaling="standard")
    later = frame.assign(b=frame.b + 2 * frame.b.std(ddof=0))
    place.store(later)
    report = place.database.report(krp, "t", **FEW)
    moved = {one.name: one.moved for one in report.found.inputs}
    assert moved == pytest.approx({"a": 0, "b": 2, "c": 0}, abs=1e-6)
    assert "b has moved by 2.00 standard deviations" in checked(report).text


def test_a_column_that_holds_nothing_any_more_has_no_mean(place):
    frame = table()
    krp = a_map(frame, scaling="standard", nulls="mean")
    place.store(frame.assign(b=np.nan))
    report = place.database.report(krp, "t", **FEW)
    (column,) = (one for one in report.found.inputs if one.name == "b")
    assert (column.share_missing, column.moved) == (1.0, None)
    assert math.isnan(column.mean)
    page = checked(report)
    assert not NO_NUMBER.search(page.text)
    assert "100%" in page.text


def test_what_is_said_is_told_beside_what_was_said_in_training(connection):
    frame = table(200)
    model = sqlkrp.train(frame, "y", exclude=["z"], maps=[sqlkrp.KRP(2, 4)])
    numbers = sqlkrp.train(frame, "z", exclude=["y"], maps=[sqlkrp.KRP(2, 4)])
    later = frame.assign(a=frame.a + 4)
    store(connection, later)
    db = sqlkrp.connect(connection)
    told = db.report(model, "t", **FEW).found.agreement
    said = model.predict(later[["a", "b", "c"]])
    assert dict(told.said) == pytest.approx({one: (said == one).mean() for one in ("no", "yes")})
    counts = np.array(model.training["held_out"]["confusion"]).sum(axis=0)
    assert dict(told.said_before)["yes"] == pytest.approx(counts[1] / counts.sum())
    told = db.report(numbers, "t", **FEW).found.agreement
    said = np.sort(numbers.predict(later[["a", "b", "c"]]))
    assert dict(told.said)["50%"] == pytest.approx(said[99])  # the 100th of 200
    assert dict(told.said_before)["50%"] == numbers.training["held_out"]["predictions"]["0.5"]
    assert dict(told.said)["50%"] > dict(told.said_before)["95%"]


def test_texts_that_are_none_of_those_that_are_read_are_told(connection):
    frame = table().assign(kind=["x", "y", "x", "z"] * 10)
    read = frame[["a", "b", "c", "kind"]]
    krp = sqlkrp.KRP(2, 8, random_state=0).fit(read, categories="auto")
    store(connection, frame.assign(kind=["x", "y", "new", "y"] * 10))
    report = sqlkrp.connect(connection).report(krp, "t", **FEW)
    assert report.found.unread == (("kind", 0.25),)
    assert "25% of the rows hold none of the values that are read" in checked(report).text


def test_what_is_not_read_is_told_of_the_table_that_it_is_of(connection):
    frame = table().assign(text="k", id=np.arange(40))
    krp = sqlkrp.KRP(2, 4, random_state=0).fit(frame, include=["a", "b"])
    store(connection, frame.drop(columns="text").assign(more=1))
    report = sqlkrp.connect(connection).report(krp, "t", **FEW)
    assert report.found.others == ("c", "z", "id", "more")
    text = checked(report).text
    assert "2 columns left out when the map was drawn" in text  # text and y
    assert "Of the table of then, which may be another than t" in text
    assert "t has 4 other columns, not read by the map: c, z, id, more." in text


def test_new_texts_of_a_column_of_two_are_told_as_far_as_can_be_known(place):
    frame = table().assign(kind=["x", "y"] * 20)
    read = frame[["a", "b", "c", "kind"]]
    krp = sqlkrp.KRP(2, 8, random_state=0).fit(read, categories="auto")
    place.store(frame.assign(kind=["x", "new", "newer", None] * 10))
    report = place.database.report(krp, "t", **FEW)
    assert report.found.of_two == (("kind", 4),)
    assert "Here it holds 4 values, so 2 values at least must be new" in checked(report).text
    place.store(frame)
    text = checked(place.database.report(krp, "t", **FEW)).text
    assert "Here it holds 2 values, and whether one of them is new cannot be known" in text
    place.store(frame.assign(kind=["x", "y", None, "y"] * 10))
    of_three = sqlkrp.KRP(2, 8, random_state=0).fit(
        place.database.source("t"), include=["a", "kind"], categories="auto"
    )
    assert place.database.report(of_three, "t", **FEW).found.of_two == ()


def test_a_short_model_reads_fewer_texts_on_purpose(connection):
    frame = table(120).assign(kind=["x", "y", "x", "z"] * 30)
    frame["z"] += np.where(frame.kind == "z", 9, 0)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    model = sqlkrp.train(db.source("t"), "z", exclude=["y"], maps=[sqlkrp.KRP(2, 8)])
    short = model.shortened(1)
    assert [one.value for one in short.program.prepare.categories] != ["x", "y", "z"]
    found = db.report(short, "t", **FEW).found
    assert (found.unread, found.of_two) == ((), ())


def test_a_training_is_told_as_far_as_it_was_recorded(connection):
    frame = table(120)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    maps = [sqlkrp.KRP(degree, size) for degree in (2, 3) for size in (4, 8)]
    model = sqlkrp.train(db.source("t"), "z", exclude=["y"], maps=maps)
    report = db.report(model, "t", label="z", **FEW)
    page = checked(report)
    assert "KRP of degree 2" in page.text  # a line against the number of features
    assert "penalty, a row" in page.text
    assert "said in training" in page.text
    assert f"{model.training['held_out']['r2']:.4g}" in page.text
    for one in model.training["candidates"]:
        means = [mean for _, mean in one["by_penalty"]]
        assert max(means) == pytest.approx(one["mean"], rel=1e-5)
        assert one["penalty"] in [penalty for penalty, _ in one["by_penalty"]]
        del one["by_penalty"]  # as in a file of before
    for part in ("held_out", "in_folds"):
        del model.training[part]["predictions"]
    page = checked(db.report(model, "t", **FEW))
    assert "penalty, a row" not in page.text
    assert "How it was found" in page.text


def test_what_the_whole_model_is_worth_is_not_told_of_a_short_one(connection, run_cli, tmp_path):
    frame = table(120)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    model = sqlkrp.train(db.source("t"), "y", exclude=["z"], maps=[sqlkrp.KRP(2, 8)])
    page = checked(db.report(model, "t", **FEW))
    assert "rows held out" in page.text
    assert "before it was shortened" not in page.text
    short = model.shortened(1)
    page = checked(db.report(short, "t", **FEW))
    assert page.text.count("rows held out") == page.text.count("rows held out, before it was short")
    assert "before it was shortened to the strongest 1 of" in page.text
    assert " gains" not in page.text.partition("How it was found")[0]
    assert "said in training, before it was shortened" in page.text
    short.save(tmp_path / "short.json")
    told = run_cli("inspect", "short.json").stdout
    assert "held out, before it was shortened  " in told
    assert "\nheld out  " not in told
    assert all("before it was shortened" in one for one in short._judged() if "columns" not in one)


def test_the_chart_of_penalties_names_no_line_that_it_does_not_show(connection):
    frame = table(120)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    model = sqlkrp.train(db.source("t"), "z", exclude=["y"], maps=[sqlkrp.KRP(2, 40)])
    columns, *_ = (one for one in model.training["candidates"] if one["name"] == "columns")
    krp = next(one for one in model.training["candidates"] if one["maps"])
    columns["by_penalty"] = [[x, -50.0] for x, _ in krp["by_penalty"]]
    found = db.report(model, "t", **FEW)
    chart = found.html.partition("against the penalty")[2].partition("</svg>")[0]
    assert "KRP" in chart
    assert ">columns<" not in chart
    assert "1 other candidate, which came to less" in checked(found).text


def test_of_errors_the_least_is_the_best(connection):
    frame = table(120)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    maps = [sqlkrp.KRP(degree, size) for degree in (2, 1) for size in (20, 40)]
    model = sqlkrp.train(db.source("t"), "z", exclude=["y"], maps=maps, metric="rmse")
    best = {}
    for one in model.training["candidates"]:
        for degree in (1, 2):
            if f"KRP(degree={degree}" in one["name"]:
                best[degree] = min(best.get(degree, math.inf), one["mean"])
    html = db.report(model, "t", **FEW).html
    chart = html.partition("against the number of features")[2].partition("</svg>")[0]
    places = {degree: chart.index(f"KRP of degree {degree}") for degree in best}
    assert sorted(places, key=places.get) == sorted(best, key=best.get)
    # What came to no number is nowhere in the charts.
    one = next(one for one in model.training["candidates"] if "KRP(degree=1" in one["name"])
    one["mean"] = one["spread"] = None
    charts = " ".join(checked(db.report(model, "t", **FEW)).charts)
    assert brief(one["name"]) not in charts
    assert "KRP of degree 2" in charts


def test_classes_that_are_numbers_are_in_the_order_of_numbers(connection):
    frame = table(300)
    frame["y"] = np.array(["9", "10", "100"])[np.digitize(frame.a, [-0.5, 0.5])]
    store(connection, frame)
    model = sqlkrp.model(LogisticRegression().fit(frame[["a", "b", "c"]], frame.y))
    report = sqlkrp.connect(connection).report(model, "t", label="y", **FEW)
    assert report.found.agreement.classes == ("10", "100", "9")
    grid = report.html.partition('class="grid"')[2].partition("</table>")[0]
    assert re.findall(r'<th scope="row">(\d+)', grid) == ["9", "10", "100"]
    assert re.findall(r'<th scope="col">(\d+)', grid) == ["9", "10", "100"]
    cells = np.array(re.findall(r"<td[^>]*>(\d+)", grid), dtype=int).reshape(3, 3)
    said = model.predict(frame[["a", "b", "c"]])
    assert cells[0, 1] == ((frame.y == "9") & (said == "10")).sum()
    assert cells[2, 2] == ((frame.y == "100") & (said == "100")).sum()


def test_of_many_classes_the_most_frequent_are_listed(connection):
    frame = table(2000)
    frame["y"] = [f"class{int(one)}" for one in (frame.a * 12 + 20).clip(0, 39)]
    store(connection, frame)
    model = sqlkrp.model(LogisticRegression(max_iter=30).fit(frame[["a", "b", "c"]], frame.y))
    report = sqlkrp.connect(connection).report(model, "t", label="y", **FEW)
    said = pd.Series(model.predict(frame[["a", "b", "c"]])).value_counts()
    listed = report.html.partition("What is said, how often")[2].partition("</table>")[0]
    names = re.findall(r'<th scope="row">(class\d+)', listed)
    assert len(names) == 30
    assert [said.get(one, 0) for one in names] == sorted(said, reverse=True)[:30]
    assert "and 10 classes more" in checked(report).text


def test_long_names_of_classes_are_cut_in_the_matrix(connection):
    frame = table()
    names = ["a" * 60, "<b" + "b" * 60]
    frame["y"] = np.where(frame.a > 0, *names)
    store(connection, frame)
    model = sqlkrp.model(LogisticRegression().fit(frame[["a", "b", "c"]], frame.y))
    report = sqlkrp.connect(connection).report(model, "t", label="y", **FEW)
    checked(report)
    grid = report.html.partition('class="grid"')[2].partition("</table>")[0]
    for name in names:
        cut = f'title="{words(name)}">{words(name[:19])}…</th>'
        assert grid.count(cut) == 2


def test_one_of_a_thing_is_no_plural(connection):
    frame = table()
    store(connection, frame.head(1))
    db = sqlkrp.connect(connection)
    pages = [db.report(a_map(frame), "t"), db.report(regression(frame), "t", label="z"),
             db.report(classifier(frame)[0], "t", label="y")]  # fmt: skip
    store(connection, frame.head(2), "two")
    pages.append(db.report(a_map(frame), "two", rows=2))
    for page in pages:
        assert not re.search(r"\b1 (?:rows|pairs|features|inputs|columns|draws)\b|classs",
                             checked(page).text + page.html)  # fmt: skip


def head(page):
    return page.text.partition("This page holds")[0]


def test_the_head_says_in_plain_words_that_the_columns_are_kept(connection):
    frame = table(200)
    frame["w"] = frame.a + 2 * frame.b
    frame["w"] += np.random.default_rng(1).normal(size=200)
    store(connection, frame)
    db = sqlkrp.connect(connection)
    options = {"include": ["a", "b", "c"], "folds": 3}
    model = sqlkrp.train(db.source("t"), "w", maps=[sqlkrp.KRP(2, 4)], **options)
    assert model.training["taken"] == model.training["raw"]
    told = model.training["taken_because"]
    gain = re.search(r"gains (\S+ ± \S+) on", told)[1]
    page = checked(db.report(model, "t", label="w", **FEW))
    assert "The columns alone are kept: the best map beside them, " in head(page)
    assert f"4 features, gained {gain}." in head(page)
    assert "they are kept" not in head(page)
    assert "200 rows; it may have been trained on them" in head(page)
    model.training["taken_because"] = "nothing else was tried"
    page = checked(db.report(model, "t", **FEW))
    assert "The columns alone are kept: nothing else was tried." in head(page)


def test_the_head_says_what_is_no_longer_as_it_was(connection):
    frame = table().assign(kind=["x", "y", "x", "z"] * 10, two=["x", "y"] * 20)
    read = [*"abc", "kind", "two"]
    krp = sqlkrp.KRP(2, 8, scaling="standard", random_state=0)
    krp.fit(frame[read], categories="auto")
    store(connection, frame)
    db = sqlkrp.connect(connection)
    page = checked(db.report(krp, "t", **FEW))
    assert not re.search("has moved|holds texts", head(page))
    later = frame.assign(
        b=frame.b + 2 * frame.b.std(ddof=0), c=frame.c - 1.5 * frame.c.std(ddof=0),
        kind=["x", "y", "new", "y"] * 10, two=["x", "y", "new", "y"] * 10,
    )  # fmt: skip
    store(connection, later, "later")
    text = head(checked(db.report(krp, "later", **FEW)))
    assert "b has moved by 2 standard deviations since the map was made, and 1 other input" in text
    assert "kind holds texts that are not read, in 25% of the rows." in text
    assert "two holds texts that the map does not know." in text


# --- what there may be ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        sqlkrp.Monomials(2),
        sqlkrp.PCA(2),
        sqlkrp.Thresholds(2),
        sqlkrp.Nystroem(6, random_state=0),
        sqlkrp.KGRP(4, n_landmarks=8, n_marked=3, random_state=0),
        sqlkrp.RandomFourier(6, paired=True, random_state=0),
        sqlkrp.RandomProjection(6, pool="gaussian", random_state=0),
        sqlkrp.Ensemble(sqlkrp.KRP(2, 4), 2, random_state=0),
        sqlkrp.chain(sqlkrp.PCA(2), sqlkrp.KRP(2, 4), random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_kind_of_map_has_a_page(connection, one):
    frame = table()
    store(connection, frame)
    one.fit(frame[["a", "b", "c"]])
    report = sqlkrp.connect(connection).report(one, "t", rows=15, runs=1)
    page = checked(report)
    measured = report.found.distances is not None
    assert measured == (type(one).__name__ not in ("PCA", "Thresholds"))
    assert ("Not measured" in page.text) != measured


def test_a_map_that_is_exact_is_said_to_be(connection):
    frame = table()
    store(connection, frame)
    exact = sqlkrp.Monomials(2).fit(frame[["a", "b", "c"]])
    page = checked(sqlkrp.connect(connection).report(exact, "t", rows=30))
    assert "Squared distances are exact but for rounding." in page.text
    assert "times the floor" not in page.text
    assert not re.search(r"\de-\d+%", page.text)


def test_equal_rows_have_a_page_that_says_that_nothing_was_measured(place):
    frame = pd.DataFrame({"a": [1.5] * 50, "b": [2.5] * 50})
    place.store(frame)
    report = place.database.report(a_map(table(names=("a", "b"))), "t", **FEW)
    told = "Not measured: of 20 rows no two are at a distance by the kernel: there is nothing to"
    assert told in checked(report).text


def test_of_one_row_no_values_are_exchanged(connection):
    frame = table()
    front = sqlkrp.RandomFourier(10, random_state=0).fit(frame[["a", "b", "c"]])
    fitted = LinearRegression().fit(front.transform(frame[["a", "b", "c"]]), frame.z)
    store(connection, frame.head(1))
    report = sqlkrp.connect(connection).report(sqlkrp.model(fitted, front), "t", **FEW)
    assert "There are no two rows, whose values could be exchanged." in checked(report).text


def test_numbers_of_features_are_refused_where_they_cannot_be_chosen(connection, run_cli, tmp_path):
    frame = table()
    store(connection, frame)
    db = sqlkrp.connect(connection)
    model, front = classifier(frame)
    for one in (sqlkrp.PCA(2), sqlkrp.Monomials(2)):
        one.fit(frame[["a", "b", "c"]])
        with pytest.raises(ParameterError, match="components=4 is of maps whose number"):
            db.report(one, "t", **OF_FOUR)
    with pytest.raises(ParameterError, match="a model weighs the features that it has: leave it"):
        db.report(model, "t", **OF_FOUR)
    sizes = {**FEW, "components": np.array([4])}
    assert db.report(model, "t", map=front, **sizes).found.distances.measured.curve
    sqlkrp.PCA(2).fit(frame[["a", "b"]]).save(tmp_path / "pca.json")
    frame.to_csv(tmp_path / "t.csv", index=False)
    told = run_cli("report", "pca.json", "--file", "t.csv", "--components", 4, "-o", "r.html",
                   code=2).stderr  # fmt: skip
    assert "--components 4 is of maps whose number of features can be chosen" in told
    assert len(told.strip().splitlines()) == 1


def test_rows_of_zeros_and_a_single_column_have_a_page(place):
    frame = pd.DataFrame({"a": [0.0] * 5 + [1.0, 2.0, -1.0]})
    place.store(frame)
    krp = sqlkrp.KRP(2, 4, scaling=None, random_state=0).fit(frame)
    page = checked(place.database.report(krp, "t", timed=False, rows=8, runs=2))
    assert "pairs at distance 0" in page.text
    model = sqlkrp.model(LinearRegression().fit(frame, np.zeros(8)))
    place.store(frame.assign(y=0.0))
    checked(place.database.report(model, "t", label="y"))


def test_tables_of_one_row_and_of_none(connection):
    frame = table()
    store(connection, frame.head(1))
    db = sqlkrp.connect(connection)
    page = checked(db.report(a_map(frame), "t"))
    assert "there are no two rows" in page.text
    connection.execute("DELETE FROM t")
    with pytest.raises(ParameterError, match="has no rows: give a table that has some"):
        db.report(a_map(frame), "t")


def test_what_an_engine_does_not_take_is_told(tmp_path):
    frame = table()
    wide = sqlkrp.RandomProjection(2100, random_state=0).fit(frame[["a", "b", "c"]])
    weights = {"intercept": 0.0, "coef": np.ones(2100)}
    with contextlib.closing(SQLite(tmp_path / "t.sqlite")) as sqlite:
        sqlite.store(frame)
        given = {"rows": 5, "runs": 1}
        page = checked(sqlite.database.report(wide, "t", components=[10], **given))
        assert "sqlite takes at most 2,000 entries in a SELECT" in page.text
        assert "Not compared, as sqlite does not take the SQL" in page.text
        model = sqlkrp.model(map=wide, **weights)
        page = checked(sqlite.database.report(model, "t", label="z", **given))  # as a polynomial
        assert "How it does on this table" in page.text
        model = sqlkrp.model(map=wide, **weights).written_as("features")
        checked(sqlite.database.report(model, "t", label="z", **given))
        assert sqlite.objects() == ["t"]


def test_rows_in_memory_have_a_page_too(tmp_path):
    frame = table()
    krp = a_map(frame)
    krp.report(frame, **FEW).save(tmp_path / "map.html")
    checked_text = (tmp_path / "map.html").read_text()
    assert krp.digest_ in checked_text
    model, _ = classifier(frame)
    assert model.report(frame, label="y", **FEW).found.agreement.confusion


def test_a_column_of_a_value_a_row_is_no_label(connection):
    frame = table(2000)
    model, _ = classifier(frame)
    store(connection, frame.assign(y=[f"row {i}" for i in range(2000)]))
    with pytest.raises(ColumnError, match="more than 1,004 values, and the model knows 2 classes"):
        sqlkrp.connect(connection).report(model, "t", label="y", **FEW)


def test_what_is_not_allowed_is_said_in_a_line(connection, place):
    frame = table()
    store(connection, frame)
    db = sqlkrp.connect(connection)
    krp, (model, front) = a_map(frame), classifier(frame)
    for wrong, told in (
        ({"label": "y"}, "a map says nothing"),
        ({"map": krp}, r"^map \(--map-file\) belongs to the report of a model"),
        ({"rows": 1}, "rows=1"),
        ({"timed": 3}, "timed=3"),
    ):
        with pytest.raises(ParameterError, match=told):
            db.report(krp, "t", **wrong)
    with pytest.raises(ColumnError, match="column 'yy' is not in"):
        db.report(model, "t", label="yy")
    with pytest.raises(ColumnError, match="classes are texts"):
        db.report(model, "t", label="a")
    with pytest.raises(ColumnError, match="predicts numbers"):
        db.report(regression(frame), "t", label="y")
    with pytest.raises(ParameterError, match="weighs no feature of"):
        db.report(model, "t", map=sqlkrp.RandomFourier(4, random_state=0).fit(frame[["a"]]))
    with pytest.raises(ParameterError, match="not a map"):
        db.report(frame, "t")
    with pytest.raises(ParameterError, match="ndarray is no table with names"):
        krp.report(frame[["a", "b", "c"]].to_numpy())
    place.store(pd.DataFrame({"row": [1, 2], "feature": ["a", "b"], "value": [1.0, 2]}))
    long = place.database.source("t", long=("row", "feature", "value"))
    with pytest.raises(ParameterError, match="one column a feature"):
        place.database.report(sqlkrp.KRP(2, 4, random_state=0).fit(["a", "b"]), long)
    connection.execute("UPDATE t SET a = NULL WHERE b > 0")
    with pytest.raises(MissingValueError, match="missing values"):
        db.report(front, "t", **FEW)


def test_nothing_stays_in_the_database(place):
    frame = table()
    place.store(frame)
    before = place.objects()
    model, _ = classifier(frame)
    place.database.report(model, "t", label="y", **FEW)
    with pytest.raises(ColumnError):
        place.database.report(model, "t", label="a", **FEW)
    assert place.objects() == before
    assert not place.in_transaction()


def test_without_matplotlib_it_says_what_to_install(connection, monkeypatch, run_cli, tmp_path):
    frame = table()
    krp = a_map(frame)
    krp.save(tmp_path / "krp.map.json")
    for name in [one for one in sys.modules if one.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match=r"pip install 'sqlkrp\[report\]'"):
        krp.report(frame)
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run_cli("report", "krp.map.json", "--file", "t.csv", "-o", "r.html", code=2)
    assert "pip install 'sqlkrp[report]'" in done.stderr
    assert not (tmp_path / "r.html").exists()


@pytest.mark.slow
def test_spark_finds_what_duckdb_does(spark_session, connection):
    spark, frame = Spark(spark_session), table()
    (model, krp), number = classifier(frame), regression(frame)
    store(connection, frame)
    spark.store(frame, "rows_of_report")
    try:
        for one, label, options in ((model, "y", {"map": krp}), (number, "z", {})):
            here = sqlkrp.connect(connection).report(
                one, "t", label=label, rows=40, runs=1, **options
            )
            there = spark.database.report(
                one, "rows_of_report", label=label, rows=40, runs=1, **options
            )
            checked(there)
            assert there.found.agreement.confusion == here.found.agreement.confusion
            told, wanted = there.found.agreement.measures, here.found.agreement.measures
            assert dict(told) == pytest.approx(dict(wanted))
            if label == "y":  # all rows are drawn, in whatever order
                found, known = (one.found.distances.measured for one in (there, here))
                assert found.draws[0].mean == pytest.approx(known.draws[0].mean)
    finally:
        spark.drop("rows_of_report")
    assert not [one for one in spark_session.catalog.listTables() if "sqlkrp" in one.name]


# --- files and the command ------------------------------------------------------------------------


def test_a_page_is_written_whole_or_not_at_all(connection, tmp_path, monkeypatch):
    frame = table()
    store(connection, frame)
    report = sqlkrp.connect(connection).report(a_map(frame), "t", **FEW)
    path = tmp_path / "report.html"
    report.save(path)
    with pytest.raises(TargetExistsError, match="exists already"):
        report.save(path)
    path.write_text("mine")
    monkeypatch.setattr(Path, "write_bytes", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.save(path, replace=True)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "mine"


def test_the_command_writes_a_page_that_says_how_to_repeat_it(run_cli, tmp_path):
    frame = table()
    frame.to_csv(tmp_path / "t.csv", index=False)
    a_map(frame).save(tmp_path / "krp.map.json")
    given = ["report", "krp.map.json", "--file", "t.csv", "--rows", 20, "--runs", 1, "--untimed"]
    done = run_cli(*given, "-o", "r.html")
    assert done.stdout.startswith("wrote  r.html: ")
    page = (tmp_path / "r.html").read_text()
    told = "sqlkrp report krp.map.json --file t.csv --rows 20 --runs 1 --seed 0 --untimed -o r.html"
    assert told in Page(page).text
    assert "exists already" in run_cli(*given, "-o", "r.html", code=2).stderr
    assert run_cli(*told.split()[1:], "--replace", "--quiet").stdout == ""
    assert (tmp_path / "r.html").read_text() == page
    run_cli("report", "krp.map.json", "--file", "t.csv", "-o", "t.csv", "--replace", code=2)
    run_cli("report", "krp.map.json", "--file", "t.csv", code=2)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_the_command_does_not_write_over_the_database_that_it_reads(run_cli, tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    if kind == "duckdb":
        with duckdb.connect(path) as connection:
            store(connection, table())
    else:
        with contextlib.closing(SQLite(path)) as sqlite:
            sqlite.store(table())
    a_map(table()).save(tmp_path / "krp.json")
    (tmp_path / "link").symlink_to(path)
    before = path.read_bytes()
    name = path.name
    for db, out in ((name, f"./{name}"), ("link", str(path)), (f"{kind}:{name}", "link")):
        done = run_cli("report", "krp.json", "--db", db, "--table", "t", "-o", out, "--replace",
                       code=2)  # fmt: skip
        assert "is read by this: write to another file" in done.stderr
        assert path.read_bytes() == before


def test_the_command_of_a_model_takes_its_label_and_its_map(run_cli, tmp_path):
    # What no reader takes for truth values.
    frame = table().replace({"y": {"yes": "above", "no": "below"}})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model, krp = classifier(frame)
    model.save(tmp_path / "m.json")
    krp.save(tmp_path / "krp.json")
    run_cli("report", "m.json", "--file", "t.csv", "--label", "y", "--map-file", "krp.json",
            "--rows", 10, "--runs", 1, "-q", "-o", "r.html")  # fmt: skip
    text = Page((tmp_path / "r.html").read_text()).text
    assert "--label y --map-file krp.json" in text
    assert "How far distances are off" in text
    done = run_cli("report", "krp.json", "--file", "t.csv", "--label", "y", "-o", "s.html", code=2)
    assert "a map says nothing" in done.stderr


def test_a_password_is_not_in_the_page(postgres, postgres_url, run_cli, tmp_path):
    krp = sqlkrp.KRP(2, 4, random_state=0).fit(["a"])
    krp.save(tmp_path / "krp.json")
    postgres.execute("CREATE TABLE t (a double precision)")
    postgres.execute("INSERT INTO t SELECT i FROM generate_series(1, 9) AS i")
    sign = "&" if "?" in postgres_url else "?"
    run_cli("report", "krp.json", "--db", f"{postgres_url}{sign}password=hunter2", "--table", "t",
            "-o", "r.html")  # fmt: skip
    assert "hunter2" not in (tmp_path / "r.html").read_text()


# --- in a browser ---------------------------------------------------------------------------------

# For every text that is seen: how far its colour is from what is behind it, as WCAG 2 has it.
CONTRASTS = """
(() => {
  const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = one => {
    for (; one; one = one.parentElement) {
      const found = numbers(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), one = walker.currentNode.parentElement;
    if (!text) continue;
    const style = getComputedStyle(one), inside = one.closest('svg') !== null;
    const [a, b] = [light(numbers(inside ? style.fill : style.color)), light(behind(one))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), text]);
  }
  return found;
})()
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of each kind, of a table whose names are sharp."""
    folder = tmp_path_factory.mktemp("pages")
    frame = table(300, SHARP)
    frame["y"] = np.array(SHARP)[:3][np.digitize(frame[SHARP[0]], [-0.5, 0.5])]
    of_numbers = sqlkrp.train(frame, "z", exclude=["y"], maps=[sqlkrp.KRP(2, 8), sqlkrp.KRP(2, 4)])
    of_classes = sqlkrp.train(frame, "y", exclude=["z"], maps=[sqlkrp.KRP(2, 8)])
    a_map(frame).report(frame, rows=60, runs=2).save(folder / "map.html")
    of_numbers.report(frame, label="z").save(folder / "regression.html")
    of_classes.report(frame, label="y").save(folder / "classifier.html")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def tab():
    if browser.command() is None:
        pytest.skip("no Chromium: .ci/run installs it")
    with browser.running() as one:
        yield one


@pytest.mark.slow
def test_in_a_browser_a_page_asks_for_nothing_and_runs_nothing(pages, tab):
    for path in pages:
        tab.open(path)
        assert tab.requests() == [path.as_uri()]
        assert tab.evaluate("document.title") in path.read_text()
        assert tab.evaluate("document.querySelectorAll('script, img, iframe').length") == 0
        wrong = [one for one in tab.events
                 if one.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown",
                                          "Page.javascriptDialogOpening")]  # fmt: skip
        assert wrong == []
        text = tab.evaluate("document.body.textContent")
        for name in SHARP[:3]:
            assert name in text


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 768, 1200])
def test_in_a_browser_no_page_is_wider_than_its_window(pages, tab, width):
    for path in pages:
        tab.open(path, width=width, phone=width < 500)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, path.name
        charts = (
            "[...document.querySelectorAll('svg')].map(one => one.getBoundingClientRect().width)"
        )
        assert all(100 < one <= width for one in tab.evaluate(charts))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_texts_stand_out_by_day_and_by_night(pages, tab, scheme):
    grounds = set()
    for path in pages:
        tab.open(path, scheme=scheme)
        found = tab.evaluate(CONTRASTS)
        assert len(found) > 80
        assert [one for one in found if one[0] < 4.5] == [], path.name
        grounds.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == {"rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 29)"}


@pytest.mark.slow
def test_in_a_browser_a_page_can_be_printed(pages, tab, tmp_path):
    for path in pages:
        tab.open(path, scheme="dark")
        tab.print(tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
