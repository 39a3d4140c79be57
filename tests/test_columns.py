"""Columns that are no numbers: texts as indicators, dates as days."""

import contextlib
import datetime as dt
import json
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import forms_of, paper_krp, store

import sqlkrp
from sqlkrp.errors import ColumnError, MissingValueError, ParameterError
from sqlkrp.mapfile import _program_content
from sqlkrp.maps.reading import MOST_CATEGORIES
from sqlkrp.stages import Category, Prepare, Program, days_of

AUTO = {"categories": "auto", "dates": "auto"}
ROWS = 48
#: Each of them another value, to the letter.
WORDS = ["a", "A", "", " ", "a ", "O'Neil", 'a "b" -- c;', "x\\y", "käse", "😀", "NULL", "missing"]
EPOCH = dt.datetime(1970, 1, 1)


def table(seed=0):
    """Multiples of 1/8, also of days: what is summed up of them is exact."""
    rng = np.random.default_rng(seed)
    eighths = rng.integers(-80, 400, (2, ROWS))
    frame = pd.DataFrame(
        {
            "id": np.arange(ROWS),
            "n": rng.integers(-40, 41, ROWS) / 8,
            "word": [WORDS[i % len(WORDS)] for i in range(ROWS)],
            "two": np.where(rng.random(ROWS) < 0.3, "yes", "no"),
            "gap": [None if i % 5 == 0 else "xyz"[i % 3] for i in range(ROWS)],
            "day": [(EPOCH + dt.timedelta(days=int(i))).date() for i in eighths[0]],
            "time": pd.to_datetime([EPOCH + dt.timedelta(hours=3 * int(i)) for i in eighths[1]]),
            "flag": rng.random(ROWS) < 0.5,
        }
    )
    frame["time"] = frame.time.astype("datetime64[us]")
    return frame.astype(dict.fromkeys(("word", "two", "gap", "day"), object))


#: Features that are nothing but the inputs.
def bare(**options):
    return sqlkrp.Monomials(1, coef0=0.0, gamma=1.0, scaling=None, clip=None, **options)


def plain_krp():
    return paper_krp(2, 12, random_state=0)


def test_what_becomes_of_each_column_is_said():
    one = plain_krp().fit(table(), label="n", keep=["id"], **AUTO)
    assert one.columns_ == {
        "word": "12 indicators", "two": "1 indicator", "gap": "4 indicators", "day": "days",
        "time": "days", "flag": "boolean", "n": "label",
    }  # fmt: skip
    assert one.program.prepare.told[-5:-1] == ("gap=z", "gap=missing", "day (days)", "time (days)")
    assert one.left_out_ == {}
    assert one.feature_names_in_.tolist() == ["word", "two", "gap", "day", "time", "flag"]
    without = plain_krp().fit(table(), exclude=["id"])
    assert without.columns_["word"].startswith("left out: ")
    assert without.columns_["time"].startswith("left out: datetime64")


def test_indicators_are_to_the_letter_and_in_the_order_of_their_letters():
    frame = table()
    made = bare().fit(frame, include=["word", "two", "gap"], categories="auto")
    expected = [(frame.word == one) for one in sorted(WORDS)] + [frame.two == "yes"]
    expected += [frame.gap == one for one in "xyz"] + [frame.gap.isna()]
    assert np.array_equal(made.transform(frame), np.column_stack(expected).astype(float))


@pytest.mark.parametrize("form", ["wide", "array", "tables"])
def test_every_engine_computes_what_numpy_does(engine, form):
    if form not in forms_of(engine.name):
        pytest.skip("an engine without this form")
    frame = table()
    if engine.name == "bigquery":  # whose tables here hold no dates
        frame = frame.drop(columns=["day", "time"])
    one = plain_krp().fit(frame, exclude=["id"], **AUTO)
    unseen = frame.copy()
    unseen.loc[[0, 7], "word"] = ["new", None]
    unseen.loc[3, "two"] = None
    engine.store(unseen)
    found = engine.features(one, form=form, keep=["id"])
    assert np.array_equal(found[:, 1:], one.transform(unseen))


def test_every_engine_counts_microseconds_of_days(engine):
    if engine.name == "bigquery":
        pytest.skip("its tables here hold no dates")
    precise = 1000 if engine.name == "sqlite" else 1  # which counts milliseconds
    rng = np.random.default_rng(1)
    counts = rng.integers(-(10**15), 4 * 10**15, 40) // precise * precise
    times = pd.Series(counts.astype("datetime64[us]")).astype("datetime64[us]")
    frame = pd.DataFrame({"id": np.arange(40), "time": times})
    frame.loc[3, "time"] = pd.NaT
    one = bare(nulls="zero").fit(frame, include=["time"], dates="auto")
    known = np.where(np.arange(40) == 3, 0.0, counts / 86_400e6)
    assert np.array_equal(one.transform(frame)[:, 0], known)
    engine.store(frame)
    assert np.array_equal(engine.features(one, keep=["id"])[:, 1], known)


def test_a_map_fitted_where_the_rows_are_is_that_of_the_dataframe(place):
    frame = table()
    place.store(frame)
    source = place.database.source(("t",))
    for one in (plain_krp(), sqlkrp.KRP(2, 12, random_state=0)):
        there = sqlkrp.KRP(**one.get_params()).fit(source, exclude=["id"], **AUTO)
        here = one.fit(frame, exclude=["id"], **AUTO)
        assert there.columns_ == here.columns_
        assert there.program.prepare.told == here.program.prepare.told
        assert there.taken_ == here.taken_
    assert place.database.verify(there, ("t",)).ok
    assert np.allclose(sorted_rows(place, there), np.sort(here.transform(frame), axis=0))
    # Landmarks, and averages, are of what is made.
    for other in (sqlkrp.Nystroem(6, gamma=0.5, random_state=0), sqlkrp.PCA(3, random_state=0)):
        other.fit(source, exclude=["id"], **AUTO)
        assert place.database.verify(other, ("t",)).ok


def sorted_rows(place, one):
    place.database.create(one, ("t",), into="made", output="columns")
    return np.sort(np.array(place.rows("SELECT * FROM made"), dtype="f8"), axis=0)


def test_a_relation_is_read_as_its_table_is(connection):
    store(connection, table())
    db = sqlkrp.connect(connection)
    of_table = sqlkrp.KRP(2, 12, random_state=0).fit(db.source("t"), exclude=["id"], **AUTO)
    of_relation = sqlkrp.KRP(2, 12, random_state=0).fit(
        connection.sql("FROM t"), exclude=["id"], **AUTO
    )
    assert of_relation.digest_ == of_table.digest_


def test_indicators_are_neither_scaled_nor_held_and_days_are():
    one = sqlkrp.KRP(2, 12, random_state=0).fit(table(), exclude=["id"], **AUTO)
    prepare = one.program.prepare
    made = np.array(["=" in name for name in prepare.told])
    assert (prepare.scale[made] == 1).all()
    assert (prepare.shift[made] == 0).all()
    assert not prepare.held[made].any()
    days = [prepare.told.index("day (days)"), prepare.told.index("time (days)")]
    assert (prepare.scale[days] < 1).all()
    assert prepare.held[days].all()
    # Gamma counts the variance of all: 1 for each number, p(1 - p) for each indicator.
    X = one.inputs(table())
    zero_one = X[:, np.isin(X, (0, 1)).all(axis=0)]
    total = X.shape[1] - zero_one.shape[1] + zero_one.var(axis=0).sum()
    assert one.taken_["gamma"].value == pytest.approx(1 / total, rel=1e-5)


@pytest.mark.parametrize(
    ("values", "became"),
    [
        ([f"v{i}" for i in range(MOST_CATEGORIES)], "50 indicators"),
        ([f"v{i}" for i in range(MOST_CATEGORIES)] + [None], "51 indicators"),
        ([f"v{i}" for i in range(MOST_CATEGORIES + 1)], "left out: more than 50 values"),
        (["a", "a"], "left out: one value only"),
        (["a", None], "1 indicator"),
        (["a", "b", None], "3 indicators"),
    ],
)
def test_how_many_values_a_column_may_have(place, values, became):
    rows = [values[i % len(values)] for i in range(120)]
    frame = pd.DataFrame({"n": np.arange(120) / 8, "c": pd.Series(rows, dtype=object)})
    place.store(frame)
    for source in (frame, place.database.source(("t",))):
        assert bare().fit(source, **AUTO).columns_["c"] == became


def test_a_column_of_one_value_in_its_first_rows_is_looked_at_whole(connection):
    connection.execute(
        "CREATE TABLE t AS SELECT i / 8 AS n, CASE WHEN i < 20000 THEN 'a' ELSE 'k' || i END"
        " AS late,"
        " 'k' || i AS keys, CASE WHEN i < 20000 THEN '2020-01-01' ELSE 'soon' END AS almost,"
        " CASE WHEN i > 20000 THEN '2020-01-0' || (i % 7 + 1) END AS days FROM range(30000) t(i)"
    )
    one = bare().fit(sqlkrp.connect(connection).source("t"), **AUTO)
    assert one.columns_ == {
        "n": "number", "almost": "1 indicator", "days": "days",
        "late": "left out: more than 50 values", "keys": "left out: more than 50 values",
    }  # fmt: skip


def test_missing_dates_go_the_way_of_missing_numbers(place):
    frame = table()
    frame.loc[4, "time"] = pd.NaT
    place.store(frame)
    with pytest.raises(MissingValueError, match=r"'time \(days\)' \(1\)"):
        place.database.create(
            bare().fit(frame, include=["time"], dates="auto"), ("t",), into="made"
        )
    one = bare(nulls="mean").fit(place.database.source(("t",)), include=["time"], dates="auto")
    mean = one.inputs(frame)[frame.time.notna(), 0].mean()
    assert one.program.prepare.fill[0] == pytest.approx(mean)
    assert one.transform(frame)[4, 0] == pytest.approx(mean)
    assert place.database.verify(one, ("t",)).ok


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_time_of_a_zone_is_a_point_in_time_and_no_other_has_one(connection, postgres, zone):
    rows = pd.DataFrame(
        {
            "time": pd.to_datetime(["2024-03-10 02:30:00.000", "2024-07-01 12:00:00.250"]),
            "zoned": pd.to_datetime(["2024-03-10 02:30:00.000", "2024-07-01 12:00:00.250"])
            .tz_localize("UTC")
            .tz_convert("Asia/Kolkata"),
            "day": [dt.date(2024, 3, 10), dt.date(1960, 2, 29)],
        }
    )
    one = bare().fit(rows, dates="auto")
    assert one.transform(rows)[:, 0].tolist() == one.transform(rows)[:, 1].tolist()
    create = (
        "CREATE TABLE t(time TIMESTAMP, zoned TIMESTAMPTZ, day DATE);"
        "INSERT INTO t VALUES ('2024-03-10 02:30:00', '2024-03-10 08:00:00+05:30', '2024-03-10'),"
        " ('2024-07-01 12:00:00.25', '2024-07-01 17:30:00.25+05:30', '1960-02-29')"
    )
    for opened, setting in ((connection, "TimeZone"), (postgres, "TIME ZONE")):
        opened.execute(f"SET {setting} {'=' if opened is connection else ''} '{zone}'")
        opened.execute(create)
        db = sqlkrp.connect(opened)
        assert bare().fit(db.source("t"), dates="auto").columns_ == one.columns_
        db.create(one, "t", into="made", output="columns")
        found = np.array(opened.execute("SELECT * FROM made").fetchall())
        assert np.array_equal(np.sort(found, axis=0), np.sort(one.transform(rows), axis=0))


def test_infinite_dates_are_missing(connection, postgres):
    for opened in (connection, postgres):
        opened.execute("CREATE TABLE t AS SELECT DATE 'infinity' AS d, TIMESTAMP '-infinity' AS t")
        opened.execute("INSERT INTO t VALUES ('1970-01-02', '1970-01-01 12:00')")
        db = sqlkrp.connect(opened)
        one = bare(nulls="zero").fit(db.source("t"), dates="auto")
        db.create(one, "t", into="made", output="columns")
        assert sorted(opened.execute("SELECT * FROM made").fetchall()) == [(0.0, 0.0), (1.0, 0.5)]


def test_enums_are_texts(connection, postgres):
    for opened in (connection, postgres):
        opened.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
        opened.execute("CREATE TYPE other AS ENUM ('glad', 'ok')")
        opened.execute("CREATE TABLE t(m mood, n INTEGER)")
        opened.execute("INSERT INTO t VALUES ('sad', 1), ('ok', 2), ('happy', 3)")
        opened.execute("CREATE TABLE u(m other, n INTEGER)")
        opened.execute("INSERT INTO u VALUES ('glad', 1), ('ok', 2)")
        db = sqlkrp.connect(opened)
        one = bare().fit(db.source("t"), **AUTO)
        assert one.program.prepare.told == ("m=happy", "m=ok", "m=sad", "n")
        # Of another enum, which does not have all of them.
        db.create(one, "u", into="made", output="columns")
        found = sorted(opened.execute("SELECT * FROM made").fetchall())
        assert found == [(0.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 2.0)]


def test_letters_of_both_cases_differ_whatever_the_column_says():
    with opened_sqlite() as (connection, db):
        connection.execute("CREATE TABLE t(c TEXT COLLATE NOCASE, d TEXT COLLATE RTRIM, n REAL)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [("a", "x", 1.0), ("A", "x ", 2.0), ("b", "y", 3.0)]
        )
        one = bare().fit(db.source("t"), **AUTO)
        assert one.program.prepare.told == ("c=A", "c=a", "c=b", "d=x", "d=x ", "d=y", "n")
        db.create(one, "t", into="made", output="columns")
        found = sorted(connection.execute("SELECT * FROM made").fetchall(), key=lambda row: row[-1])
        assert [row[:3] for row in found] == [(0, 1, 0), (1, 0, 0), (0, 0, 1)]
        assert [row[3:6] for row in found] == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


def test_dates_of_sqlite_are_texts_of_columns_that_are_called_so():
    with opened_sqlite() as (connection, db):
        connection.execute("CREATE TABLE t(d DATE, t DATETIME, s TEXT, h TIME, n REAL)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?, ?)",
            [
                ("1970-01-03", "1970-01-01 12:00:00", "1970-01-02T06:00:00Z", "12:00", 1.0),
                ("now", "12:00", "1970-01-02 06:00:00+06:00", "13:00", 2.0),
                (2440587, None, "1970-01-02", "13:00", 3.0),
            ],
        )
        one = bare(nulls="zero").fit(db.source("t"), **AUTO)
        assert one.columns_ == {"d": "days", "t": "days", "s": "days", "n": "number",
                                "h": "left out: TIME"}  # fmt: skip
        db.create(one, "t", into="made", output="columns")
        found = sorted(connection.execute("SELECT * FROM made").fetchall(), key=lambda row: row[-1])
        # What is no date as texts write it is missing: not today, and no day of another count.
        assert found == [(2.0, 0.5, 1.25, 1.0), (0.0, 0.0, 1.0, 2.0), (0.0, 0.0, 1.0, 3.0)]


@contextlib.contextmanager
def opened_sqlite():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        yield connection, sqlkrp.connect(connection)


TEXTS_OF_DAYS = {
    "1970-01-03": 2.0, "1970-01-01 12:00": 0.5, "1970-01-01T06:00:00Z": 0.25,
    "1970-01-01 06:00:00+06:00": 0.0, "1969-12-31T18:00:00.000-03": -0.125,
    "1970-01-01 00:00:00.000001": 1 / 86_400e6,
}  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_texts_that_are_all_dates_are_days(connection, tmp_path, zone):
    frame = pd.DataFrame({"text": [*TEXTS_OF_DAYS], "n": np.arange(len(TEXTS_OF_DAYS)) / 8})
    one = bare().fit(frame, **AUTO)
    assert one.columns_ == {"text": "days", "n": "number"}
    assert one.transform(frame)[:, 0].tolist() == [*TEXTS_OF_DAYS.values()]
    frame.to_csv(tmp_path / "days.csv", index=False)
    connection.execute(f"SET TimeZone = '{zone}'")
    db = sqlkrp.connect(connection)
    of_file = bare().fit(db.source(tmp_path / "days.csv"), **AUTO)
    assert of_file.digest_ == one.digest_
    db.export(of_file, tmp_path / "days.csv", tmp_path / "made.csv")
    found = pd.read_csv(tmp_path / "made.csv").sort_values("n")
    assert found.iloc[:, 0].tolist() == [*TEXTS_OF_DAYS.values()]


def test_of_days_what_is_none_is_missing():
    told = [pd.NaT, None, float("nan"), "soon", "1970-02-30", "1970", 7, pd.Timestamp("1970-01-02")]
    assert np.array_equal(days_of(told), [*[np.nan] * 7, 1.0], equal_nan=True)


def test_a_date_is_no_key_though_each_row_has_another(recwarn):
    days = pd.date_range("2020-01-01", periods=300)
    frame = pd.DataFrame({"day": days, "n": np.tile([0.5, 1.5], 150)})
    bare().fit(frame, **AUTO)
    assert not recwarn.list


def test_another_type_at_scoring_is_refused(place):
    frame = table()
    one = bare().fit(frame, include=["word", "time"], **AUTO)
    place.store(frame.assign(time=1.5), "numbers")
    with pytest.raises(ColumnError, match="drawn for a date or time there"):
        place.database.create(one, ("numbers",), into="made")
    place.store(frame.assign(word=1.5), "words")
    with pytest.raises(ColumnError, match="categories that are texts"):
        place.database.create(one, ("words",), into="made")


def test_what_cannot_be_is_one_line(connection):
    frame = table()
    for options, message in (
        ({"categories": "all"}, "categories='all' is not allowed: use 'auto' or None"),
        ({"include": ["word"]}, "texts are read by categories='auto'"),
        ({"include": ["long"], **AUTO}, "column 'long' has more than 50 values"),
        ({"include": ["none"], **AUTO}, "is not in the data"),
    ):
        given = frame.assign(long=[f"k{i}" for i in range(ROWS)])
        given = pd.concat([given, given.assign(long=[f"l{i}" for i in range(ROWS)])])
        with pytest.raises((ColumnError, ParameterError), match=message) as told:
            bare().fit(given, **options)
        assert "\n" not in str(told.value)
    with pytest.raises(ParameterError, match="needs data, and only column names were given"):
        bare().fit(["a", "b"], dates="auto")
    store(connection, pd.DataFrame({"r": [1], "f": ["a"], "v": [1.0]}), "long")
    with pytest.raises(ParameterError, match="leave categories out"):
        bare().fit(sqlkrp.connect(connection).source("long", long=("r", "f", "v")), **AUTO)
    with pytest.raises(ParameterError, match="known by their names: give a DataFrame"):
        bare().fit(frame, **AUTO).transform(frame.to_numpy())


def test_names_of_what_is_made_are_none_that_columns_have(connection):
    frame = table()[["two", "day", "n"]].rename(columns={"two": "sqlkrp_category_0"})
    store(connection, frame)
    one = plain_krp().fit(frame, **AUTO)
    assert one.columns_ == {"sqlkrp_category_0": "1 indicator", "day": "days", "n": "number"}
    assert sqlkrp.connect(connection).verify(one, "t").ok


def test_monomials_are_named_by_what_is_made():
    one = sqlkrp.Monomials(2).fit(table()[["two", "day"]], **AUTO)
    names = one.get_feature_names_out().tolist()
    assert names == [
        "1",
        "two=yes",
        "day (days)",
        "two=yes^2",
        "two=yes*day (days)",
        "day (days)^2",
    ]


def test_map_files_keep_it_and_those_of_before_have_their_digests(tmp_path):
    one = plain_krp().fit(table(), exclude=["id"], **AUTO)
    one.save(tmp_path / "m.json")
    loaded = sqlkrp.load(tmp_path / "m.json")
    assert loaded.digest_ == one.digest_
    assert loaded.columns_ == one.columns_
    assert np.array_equal(loaded.transform(table()), one.transform(table()))
    prepare = Prepare.plain(["c", "d"])
    before = [Category("c", "x", "a"), Category("d", "y", None, bit=3)]
    prepare = replace(prepare, categories=tuple(before))
    (stage,) = _program_content(Program((prepare,), ("c", "d")), lambda array: None)["stages"]
    assert stage["categories"] == [["c", "x", "a", False, None], ["d", "y", None, False, 3]]


def test_models_go_on_from_it(place):
    frame = table()
    krp = sqlkrp.KRP(2, 24, random_state=0).fit(frame, label="n", exclude=["id"], **AUTO)
    model = sqlkrp.model(Ridge().fit(krp.transform(frame), frame.n), krp)
    place.store(frame)
    place.database.score(model, ("t",), into="scores", keep=["id"])
    found = [row[-1] for row in sorted(place.rows("SELECT id, prediction FROM scores"))]
    assert np.allclose(found, model.predict(frame))
    assert any("day (days)" in one.name for one in model.explain(top=50).terms)
    assert model.columns_ == {name: became for name, became in krp.columns_.items() if name != "n"}
    bound = model.shortened(5)
    assert place.database.verify(bound, ("t",)).ok


def test_a_pipeline_that_begins_with_such_a_map_is_read():
    frame = table()[["word", "two", "day", "n"]]
    y = np.arange(ROWS) / 8
    krp = sqlkrp.KRP(2, 12, random_state=0)
    trained = make_pipeline(krp, StandardScaler(), Ridge())
    trained.fit(frame, y, krp__categories="auto", krp__dates="auto")
    model = sqlkrp.model(trained)
    assert np.allclose(model.predict(frame), trained.predict(frame))
    assert model.columns_["word"] == "12 indicators"


def test_the_command_line_draws_featurizes_and_says_so(run_cli, tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    told = run_cli(
        "draw", "t.csv", "--exclude", "id", "--components", "8", "--categories", "auto",
        "--dates", "auto", "-o", "m.json",
    ).stdout  # fmt: skip
    assert "word: 12 indicators, gap: 4 indicators" in told
    assert "day: days, time: days" in told
    said = run_cli("inspect", "m.json").stdout
    assert "day: days, time: days" in said
    became = json.loads(run_cli("inspect", "m.json", "--json").stdout)["became"]
    assert became["two"] == "boolean"  # yes and no, as DuckDB reads them
    assert " / " in run_cli("sql", "m.json", "--table", "t").stdout
    run_cli(
        "featurize", "t.csv", "--exclude", "id", "--components", "8", "--categories", "auto",
        "--to", "f.csv",
    )  # fmt: skip
    assert "46 indicators" in sqlkrp.load(tmp_path / "f.map.json").columns_["day"]  # texts
    run_cli("verify", "m.json", "--file", "t.csv")
    refused = run_cli("draw", "--columns", "a,b", "--dates", "auto", "-o", "n.json", code=2)
    assert "--dates" in refused.stderr
