"""Rows that are stored already, held against the twin by their keys."""

import gzip

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from support import dyadic, paper_krp, store

import sqlkrp
from sqlkrp.errors import ColumnError, ParameterError, SqlkrpError

ROWS = 60


def table(rows=ROWS):
    """Rows with keys of several kinds, of which none is a feature."""
    frame = dyadic(rows, 4).assign(id=np.arange(rows) + 100)
    frame["code"] = [f"{number:03d}" for number in range(rows)]
    frame["half"] = np.arange(rows) / 2
    return frame


KEYS = ["id", "code", "half"]


@pytest.fixture
def krp():
    return sqlkrp.KRP(2, 8, random_state=0).fit(table(), exclude=["id", "half"])


@pytest.fixture
def db(connection, krp):
    """DuckDB with a source and its features."""
    store(connection, table())
    opened = sqlkrp.connect(connection)
    opened.create(krp, "t", "f", keep=["id", "code", "half"])
    return opened


# --- every engine, tables and files ---------------------------------------------------------------


@pytest.fixture
def made(place, krp):
    """Each engine with a source and its features in a table, in no order."""
    place.store(table())
    place.database.create(krp, "t", "made", keep=["id", "code"])
    place.execute("CREATE TABLE f AS SELECT * FROM made ORDER BY krp_3")
    return place


def test_a_shuffled_result_is_no_fault(made, krp):
    result = made.database.verify(krp, "t", result="f", key="id")
    assert (result.ok, result.rows, result.form) == (True, ROWS, "stored")
    assert made.database.verify(krp, "t", result="f", key="id", sample=7).rows == 7
    assert made.database.verify(krp, "t", result="f", key=["code"]).ok
    assert made.objects() == ["f", "made", "t"]


def test_nothing_is_created_not_even_a_temporary_table(made, krp, monkeypatch, tmp_path):
    made.database.export(krp, "t", tmp_path / "f.csv", keep=["id"])
    session = made.database._session
    for method in ("create_temporary", "load", "create"):
        monkeypatch.setattr(session, method, None)
    for result in ("f", tmp_path / "f.csv"):
        assert made.database.verify(krp, "t", result=result, key="id", sample=7).ok


def test_one_changed_value_is_found_by_its_key_and_its_column(made, krp):
    made.execute("UPDATE f SET krp_5 = krp_5 * 1.000001 WHERE id = 117")
    result = made.database.verify(krp, "t", result="f", key="id")
    assert not result.ok
    assert result.wrong == ["krp_5"]
    assert [(result.stored.keys[place], names) for place, names in result.wrong_rows()] == [
        ((117,), ["krp_5"])
    ]
    # What it runs itself is not what is stored.
    assert made.database.verify(krp, "t").ok


def test_a_row_of_the_source_that_the_result_lacks_is_a_fault(made, krp):
    made.execute("DELETE FROM f WHERE id = 117")
    result = made.database.verify(krp, "t", result="f", key="id")
    assert not result.ok
    assert (result.stored.missing, result.wrong, result.rows) == (((117,),), [], ROWS - 1)
    # Also where the sample does not have it: the result has fewer rows.
    few = made.database.verify(krp, "t", result="f", key="id", sample=1)
    assert (few.ok, few.stored.lacking) == (False, 1)


def test_rows_of_the_result_that_the_source_lacks_are_counted(made, krp):
    made.execute("DELETE FROM t WHERE id < 103")
    result = made.database.verify(krp, "t", result="f", key="id")
    assert (result.ok, result.stored.others, result.stored.is_whole) == (True, 3, True)


def test_keys_that_tell_no_rows_apart_are_an_error(made, krp):
    db = made.database
    made.execute("UPDATE f SET id = 118 WHERE id = 117")
    with pytest.raises(ColumnError, match="key 'id' is not unique in f, where '118' is there twi"):
        db.verify(krp, "t", result="f", key="id", sample=1)
    made.execute("UPDATE f SET id = NULL WHERE id = 118")
    with pytest.raises(ColumnError, match="key 'id' is NULL in 2 of 60 rows of f: "):
        db.verify(krp, "t", result="f", key="id")
    made.execute("UPDATE t SET code = '000'")
    with pytest.raises(ColumnError, match="key 'code' is not unique in t, where '000'"):
        db.verify(krp, "t", result="f", key="code")
    assert db.verify(krp, "t", result="made", key=["id"]).ok
    assert made.objects() == ["f", "made", "t"]


def test_several_columns_may_be_the_key_together(place):
    frame = dyadic(40, 3).assign(day=[f"2024-01-{1 + i // 8:02d}" for i in range(40)])
    place.store(frame.assign(number=np.arange(40) % 8))
    krp = sqlkrp.KRP(2, 5, random_state=0).fit(place.database.source("t"), exclude=["number"])
    place.database.create(krp, "t", "f", keep=["day", "number"])
    verify = place.database.verify
    assert verify(krp, "t", result="f", key=["day", "number"], sample=11).rows == 11
    place.execute("UPDATE f SET krp_1 = 0 WHERE number = 3 AND day = '2024-01-02'")
    result = verify(krp, "t", result="f", key=["day", "number"])
    assert [result.stored.keys[at] for at, _ in result.wrong_rows()] == [("2024-01-02", 3)]
    with pytest.raises(ColumnError, match="key 'number' is not unique in t"):
        verify(krp, "t", result="f", key="number")


def test_a_csv_is_read_beside_every_engine(made, krp, tmp_path):
    path = tmp_path / "f.csv"
    made.database.export(krp, "t", path, keep=["id", "code"])
    for key in ("id", "code"):  # 000 is a text there, and no number
        assert made.database.verify(krp, "t", result=path, key=key).ok
    head, *lines = path.read_text().splitlines()
    lines[17] = ",".join([*lines[17].split(",")[:2], *(["999"] * 8)])
    path.write_text("\n".join([head, *reversed(lines)]))
    result = made.database.verify(krp, "t", result=path, key="id")
    (place,) = [place for place, _ in result.wrong_rows()]
    assert result.stored.keys[place] == (int(lines[17].split(",")[0]),)
    assert len(result.wrong) == 8


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet"])
def test_files_of_another_engine_are_read_beside_every_engine(made, krp, suffix, tmp_path):
    path = tmp_path / f"unloaded{suffix}"
    with duckdb.connect() as other:
        store(other, table())
        sqlkrp.connect(other).export(krp, "t", path, keep=["id"])
    result = made.database.verify(krp, "t", result=path, key="id")
    assert result.ok
    assert result.stored.through == ("" if made.name == "duckdb" else "duckdb")


def test_missing_features_are_the_twin_s(place, tmp_path):
    frame = dyadic(20, 3).assign(id=range(20))
    frame.loc[3, "c1"] = np.nan
    place.store(frame)
    source = place.database.source("t")
    krp = sqlkrp.KRP(2, 5, nulls="propagate", random_state=0).fit(source, exclude=["id"])
    place.database.create(krp, "t", "f", keep=["id"])
    place.database.export(krp, "t", tmp_path / "f.csv", keep=["id"])
    for stored in ("f", tmp_path / "f.csv"):
        assert place.database.verify(krp, "t", result=stored, key="id").ok
    place.execute("UPDATE f SET krp_0 = 0 WHERE id = 3")
    assert place.database.verify(krp, "t", result="f", key="id").wrong == ["krp_0"]
    place.execute("UPDATE f SET krp_0 = NULL WHERE id IN (3, 4)")
    assert place.database.verify(krp, "t", result="f", key="id").wrong == ["krp_0"]


def test_sparse_rows_are_told_apart_by_their_row(place):
    frame = dyadic(20, 6).where(np.random.default_rng(1).random((20, 6)) < 0.4, 0.0)
    frame.iloc[4] = 0.0
    long = frame.stack().rename("v").reset_index().set_axis(["r", "f", "v"], axis=1)
    place.store(long[long["v"] != 0], "entries")
    place.store(pd.DataFrame({"r": range(20)}), "rows_of_it")
    krp = paper_krp(2, 5, n_terms=2, coef0=0.25, random_state=0).fit(frame)
    db, sparse = place.database, {"long": ("r", "f", "v"), "rows": "rows_of_it"}
    db.create(krp, "entries", "f", **sparse)
    result = db.verify(krp, "entries", result="f", key="r", **sparse)
    assert (result.ok, result.rows) == (True, 20)
    assert db.verify(krp, "entries", result="f", key="r", sample=3, **sparse).rows == 3
    # Without its table, a row without an entry is none of the source's.
    result = db.verify(krp, "entries", result="f", key="r", long=sparse["long"])
    assert (result.ok, result.stored.others) == (True, 20 - frame.any(axis=1).sum())
    place.execute("UPDATE f SET krp_0 = 7 WHERE r = 4")
    result = db.verify(krp, "entries", result="f", key="r", **sparse)
    assert [result.stored.keys[at] for at, _ in result.wrong_rows()] == [(4,)]
    with pytest.raises(ParameterError, match="input are told apart by 'r': give key='r'"):
        db.verify(krp, "entries", result="f", key="v", **sparse)


@pytest.mark.parametrize("size", [1, 3])
def test_the_keys_of_large_samples_go_in_parts(db, krp, monkeypatch, size):
    monkeypatch.setattr("sqlkrp.engines.stored._KEYS_AT_ONCE", size)
    db.connection.execute("UPDATE f SET krp_5 = 0 WHERE id = 117")
    result = db.verify(krp, "t", result="f", key="id", sample=50_000)
    assert result.rows == ROWS
    assert [result.stored.keys[place] for place, _ in result.wrong_rows()] == [(117,)]


# --- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["duckdb", "postgres"], indirect=True)
def test_features_may_be_in_an_array(place, krp, tmp_path):
    place.store(table())
    db, path = place.database, tmp_path / "f.csv"
    db.create(krp, "t", "f", keep=["id"], output="array")
    db.export(krp, "t", path, keep=["id"], output="array")
    for result in ("f", path):
        assert db.verify(krp, "t", result=result, key="id").ok
    literal = {"duckdb": "[{}]", "postgres": "ARRAY[{}]"}[place.name]
    place.execute(f"UPDATE f SET krp = {literal.format('0, 1, 9, 3, 4, 5, 6, 7')} WHERE id = 117")
    assert "krp_2" in db.verify(krp, "t", result="f", key="id").wrong
    path.write_text(path.read_text().replace("[", "[x").replace("{", "{x"))
    assert db.verify(krp, "t", result=path, key="id").wrong == ["krp_0"]


def test_a_result_that_holds_no_features_is_refused(db, krp):
    def verify(one, name):
        return db.verify(one, "t", result=name, key="id")

    bare = "holds the bare projection \\(stage='projection'\\), and what is compared are features"
    db.create(krp, "t", "sums", keep=["id"], stage="projection")
    with pytest.raises(ColumnError, match=bare):
        verify(krp, "sums")
    db.create(krp, "t", "array_of_sums", keep=["id"], stage="projection", output="array")
    with pytest.raises(ColumnError, match="'krp' of array_of_sums has arrays of|" + bare):
        verify(krp, "array_of_sums")
    # As many sums as features, by which an array does not tell.
    random = sqlkrp.RandomProjection(8, scaling=None).fit(table(), exclude=["id", "half"])
    db.create(random, "t", "as_many", keep=["id"], stage="projection", output="array")
    assert len(db.connection.execute("SELECT rp FROM as_many").fetchone()[0]) == 8
    with pytest.raises(ColumnError, match=bare):
        verify(random, "as_many")
    db.create(random, "t", "array", keep=["id"], output="array")
    assert verify(random, "array").ok
    signs = sqlkrp.RankOneProjection(70, binary=True).fit(table(), exclude=["id", "half"])
    db.create(signs, "t", "bits", keep=["id"], output="bits")
    with pytest.raises(ColumnError, match=r"bits holds signs as bits \(output='bits'\)"):
        verify(signs, "bits")
    db.create(krp, "t", "whole", keep=["id"], output="array")
    with pytest.raises(ColumnError, match="has arrays of 8, and there are 3 features"):
        verify(krp.select([0, 1, 2]), "whole")


# --- keys -----------------------------------------------------------------------------------------


def test_numbers_are_one_key_however_they_are_written(db, krp, tmp_path):
    verify = db.verify
    for kind in ("VARCHAR", "DOUBLE", "DECIMAL(20, 3)", "HUGEINT", "UTINYINT"):
        db.connection.execute(
            f"CREATE OR REPLACE TABLE g AS SELECT CAST(id AS {kind}) AS id, * EXCLUDE (id) FROM f"
        )
        assert verify(krp, "t", result="g", key="id").ok, kind
        assert verify(krp, "t", result="g", key="id").rows == ROWS
    rows = db.connection.execute("SELECT id, * EXCLUDE (id, code, half) FROM f").fetchall()
    for written in ("{}.0", "{}.000", "{:08d}", "{:e}", " {} "):
        text = "\n".join(",".join([written.format(row[0]), *map(repr, row[1:])]) for row in rows)
        (tmp_path / "g.csv").write_text("id," + ",".join(krp.program.names) + "\n" + text)
        assert verify(krp, "t", result=tmp_path / "g.csv", key="id").ok, written
    (tmp_path / "g.csv").write_text((tmp_path / "g.csv").read_text() + "\n0117,1,1,1,1,1,1,1,1")
    with pytest.raises(ColumnError, match=r"key 'id' is not unique in .*g\.csv, where '117' is"):
        verify(krp, "t", result=tmp_path / "g.csv", key="id")


def test_large_numbers_are_told_apart_though_they_are_one_double(db, krp, monkeypatch):
    db.connection.execute(
        "UPDATE t SET id = id + (1::BIGINT << 60); UPDATE f SET id = id + (1::BIGINT << 60)"
    )
    assert db.verify(krp, "t", result="f", key="id").rows == ROWS
    assert db.verify(krp, "t", result="f", key="id", sample=9).ok
    monkeypatch.setattr("sqlkrp.engines.stored._KEYS_AT_ONCE", 4)
    assert db.verify(krp, "t", result="f", key="id").ok


def test_numbers_that_are_not_whole_are_no_key(db, krp):
    with pytest.raises(
        ColumnError, match=r"key 'half' of t has \d*\.5, a number that is not whole"
    ):
        db.verify(krp, "t", result="f", key="half")


def test_keys_are_other_things_too(db, krp, tmp_path):
    made = {
        "day": "DATE '2024-01-01' + CAST(id AS INTEGER)",
        "moment": "TIMESTAMP '2024-01-01 10:00:00.5' + INTERVAL 1 HOUR * id",
        "mark": "CAST(md5(id::VARCHAR) AS UUID)",
        "odd": "id || ' ''\" , Ü'",
    }
    for name, expression in made.items():
        db.connection.execute(
            f"CREATE OR REPLACE TABLE u AS SELECT *, {expression} AS {name} FROM t"
        )
        for suffix in (".csv", ".parquet"):
            path = tmp_path / f"{name}{suffix}"
            db.export(krp, "u", path, keep=[name])
            result = db.verify(krp, "u", result=path, key=name)
            assert (result.ok, result.rows) == (True, ROWS), path
    db.connection.execute("ALTER TABLE t ADD COLUMN flag BOOLEAN DEFAULT TRUE")
    db.connection.execute("ALTER TABLE f ADD COLUMN flag BOOLEAN DEFAULT TRUE")
    with pytest.raises(ColumnError, match="key 'flag' of t is a truth value, and tells no rows"):
        db.verify(krp, "t", result="f", key="flag")


def test_names_may_be_in_the_case_that_a_warehouse_has(db, krp, tmp_path):
    db.export(krp, "t", tmp_path / "f.csv", keep=["id"])
    head, _, rest = (tmp_path / "f.csv").read_text().partition("\n")
    (tmp_path / "f.csv").write_text(f"{head.upper()}\n{rest}")
    assert db.verify(krp, "t", result=tmp_path / "f.csv", key="id").ok


def test_hostile_names_and_texts_are_only_names_and_texts(db, tmp_path):
    key, odd = 'k "; DROP TABLE t', "'); DROP TABLE t; --"
    frame = dyadic(9, 3).assign(**{key: [f"{odd}{i}" for i in range(9)]})
    store(db.connection, frame, "odd ones")
    krp = sqlkrp.KRP(2, 3).fit(db.source('"odd ones"'))
    db.create(krp, ("odd ones",), ('f "x',), keep=[key])
    for result in (('f "x',), tmp_path / "a 'b.csv"):
        if not isinstance(result, tuple):
            db.export(krp, ("odd ones",), result, keep=[key])
        assert db.verify(krp, ("odd ones",), result=result, key=key).rows == 9


# --- models ---------------------------------------------------------------------------------------

CLASSES = {
    "text": ("no", "yes"),
    "truth": (False, True),
    "number": (10, 2),
    "three": ("b", "a", "C"),
    "numbers": (3, 1, 2),
    "fractions": (0.1, 0.25, 0.5),
}


def trained(krp, classes, estimator=LogisticRegression):
    values = krp.transform(table())[:, 0]
    edges = np.quantile(values, np.linspace(0, 1, len(classes) + 1)[1:-1])
    y = np.array(classes)[np.searchsorted(edges, values)]
    if isinstance(classes[0], float):  # scikit-learn takes them for a regression's
        weights = np.vander(np.arange(3), 8) / 100
        return sqlkrp.model(map=krp, coef=weights, classes=classes)
    return sqlkrp.model(estimator().fit(krp.transform(table()), y), krp)


@pytest.mark.parametrize("kind", CLASSES)
def test_what_a_model_said_is_compared(place, krp, kind, tmp_path):
    model = trained(krp, CLASSES[kind])
    place.store(table())
    db, path = place.database, tmp_path / "s.csv"
    db.score(model, "t", into="s", keep=["id"])
    db.score(model, "t", path=path, keep=["id"])
    for result in ("s", path):
        verified = db.verify(model, "t", result=result, key="id")
        assert (verified.ok, verified.rows) == (True, ROWS)
        assert verified.names[0] == "label"
    said = dict(place.rows("SELECT id, label FROM s"))
    other = next(number for number, label in said.items() if label != said[117])
    place.execute(
        f"UPDATE s SET label = (SELECT x.label FROM s x WHERE x.id = {other}) WHERE id = 117"
    )
    verified = db.verify(model, "t", result="s", key="id")
    assert verified.wrong == ["label"]
    assert [verified.stored.keys[at] for at, _ in verified.wrong_rows()] == [(117,)]


def test_a_label_that_is_no_class_is_wrong(db, krp, tmp_path):
    for kind, none in (("text", "maybe"), ("number", "3"), ("truth", "7"), ("numbers", "x")):
        model, path = trained(krp, CLASSES[kind]), tmp_path / "s.csv"
        db.score(model, "t", path=path, keep=["id"], replace=True)
        head, *rows = path.read_text().splitlines()
        for label in (none, ""):
            number, _, *rest = rows[7].split(",")
            path.write_text(
                "\n".join([head, *rows[:7], ",".join([number, label, *rest]), *rows[8:]])
            )
            verified = db.verify(model, "t", result=path, key="id")
            assert verified.wrong == ["label"], (kind, label)
            assert np.isinf(verified.absolute[0])


@pytest.mark.parametrize("written", ["true/false", "True/False", "t/f", "1/0", "1.0/0.0"])
def test_truth_values_are_known_as_engines_write_them(db, krp, written, tmp_path):
    model, path = trained(krp, CLASSES["truth"]), tmp_path / "s.csv"
    yes, no = written.split("/")
    db.score(model, "t", path=path, keep=["id"], outputs=["label"])
    text = path.read_text().replace("true", "YES").replace("false", "NO")
    path.write_text(text.replace("YES", yes).replace("NO", no))
    assert db.verify(model, "t", result=path, key="id").ok


def test_a_label_may_be_an_empty_text(db, krp, tmp_path):
    model, path = trained(krp, ("", "yes")), tmp_path / "s.csv"
    db.score(model, "t", path=path, keep=["id"])
    assert db.verify(model, "t", result=path, key="id").ok


def test_any_part_of_what_a_model_says_is_compared(db, krp):
    model = trained(krp, CLASSES["three"])
    everything = ["label", "probability", "decision"]
    db.score(model, "t", into="s", keep=["id"], outputs=everything)
    assert len(db.verify(model, "t", result="s", key="id").names) == 7
    for one, count in zip(everything, (1, 3, 3), strict=True):
        db.score(model, "t", into="one", keep=["id"], outputs=[one], replace=True)
        verified = db.verify(model.saying(["label"]), "t", result="one", key="id")
        assert (verified.ok, len(verified.names)) == (True, count)
    assert db.verify(model, "t", result="s", key="id", outputs=["decision"]).names == (
        "decision_C", "decision_a", "decision_b",
    )  # fmt: skip
    db.connection.execute("ALTER TABLE s DROP probability_a")
    with pytest.raises(ColumnError, match="column 'probability_a' is not in s"):
        db.verify(model, "t", result="s", key="id")
    with pytest.raises(ColumnError, match="f has no column of what the model says, which is label"):
        db.verify(model, "t", result="f", key="id")


def test_a_threshold_is_of_the_scores_that_it_cut(db, krp):
    model = trained(krp, CLASSES["text"])
    db.score(model, "t", into="s", keep=["id"], threshold=0.9)
    assert db.verify(model, "t", result="s", key="id").wrong == ["label"]
    assert db.verify(model, "t", result="s", key="id", threshold=0.9).ok
    assert db.verify(model, "t", threshold=0.9, outputs=["decision"]).names == ("decision",)


def test_regressions_and_margins_are_compared(db, krp):
    values = krp.transform(table())
    y = np.column_stack([values[:, 0], values[:, 1] ** 2])
    for number, one in enumerate((values[:, 0], y)):
        model = sqlkrp.model(LinearRegression().fit(values, one), krp)
        db.score(model, "t", into=f"p{number}", keep=["id"])
        assert db.verify(model, "t", result=f"p{number}", key="id").ok
    margins = trained(krp, CLASSES["three"], LinearSVC)
    db.score(margins, "t", into="m", keep=["id"])
    assert db.verify(margins, "t", result="m", key="id").names[:2] == ("label", "decision_C")


def test_what_a_model_says_of_missing_values_is_nothing(place, tmp_path):
    frame = table().assign(c1=lambda one: one["c1"].where(one["id"] != 117))
    place.store(frame)
    krp = sqlkrp.KRP(2, 8, nulls="propagate", random_state=0).fit(
        place.database.source("t"), exclude=["id", "half"]
    )
    model = sqlkrp.model(map=krp, coef=np.arange(8), classes=["no", "yes"])
    db, path = place.database, tmp_path / "s.csv"
    db.score(model, "t", into="s", keep=["id"])
    db.score(model, "t", path=path, keep=["id"])
    for result in ("s", path):
        assert db.verify(model, "t", result=result, key="id").ok
    place.execute("UPDATE s SET label = 'no' WHERE id = 117")
    assert db.verify(model, "t", result="s", key="id").wrong == ["label"]


# --- what is refused, and the command line --------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"result": "f"}, "stored rows come in no order: name the column .* \\(key=NAME\\)"),
        ({"key": "id"}, "a key belongs to stored rows: give their table or file \\(result=NAME\\)"),
        ({"result": "f", "key": "id", "form": "wide"}, "form and plan are of a statement"),
        ({"result": "f", "key": "no_id"}, "column 'no_id' is not in t"),
        ({"result": "g", "key": "id"}, "cannot read g: "),
        ({"result": "t", "key": "id"}, "column 'krp_0' \\(and 7 more columns\\) is not in t"),
        ({"result": "no_key", "key": "id"}, "column 'id' is not in no_key"),
        ({"result": "no_krp_3", "key": "id"}, "column 'krp_3' is not in no_krp_3"),
        ({"result": "texts", "key": "id"}, "column 'krp_3' of texts is of type VARCHAR, and what"),
        ({"result": "f", "key": 3}, "key=3 is not allowed: give a list of column names"),
        ({"outputs": ["label"]}, "fitted is of type KRP, not a model|model is of type KRP, not a"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_told_in_one_line(db, krp, given, told):
    db.connection.execute("CREATE TABLE no_key AS SELECT * EXCLUDE (id) FROM f")
    db.connection.execute("CREATE TABLE no_krp_3 AS SELECT * EXCLUDE (krp_3) FROM f")
    db.connection.execute("CREATE TABLE texts AS SELECT * REPLACE ('x' AS krp_3) FROM f")
    with pytest.raises(SqlkrpError, match=told) as bad:
        db.verify(krp, "t", **given)
    assert "\n" not in str(bad.value)


def test_files_that_cannot_be_read_are_told_in_one_line(made, krp, tmp_path):
    (tmp_path / "empty.csv").touch()
    (tmp_path / "no.parquet").write_text("x")
    (tmp_path / "folder.csv").mkdir()
    for name in ("empty.csv", "no.parquet", "folder.csv", "nothing.csv", "f.xlsx"):
        with pytest.raises(SqlkrpError) as bad:
            made.database.verify(krp, "t", result=tmp_path / name, key="id")
        assert "\n" not in str(bad.value)
        assert name in str(bad.value)


def test_texts_in_the_place_of_numbers_are_wrong(db, krp, tmp_path):
    path = tmp_path / "f.csv"
    db.export(krp, "t", path, keep=["id"])
    head, first, *rows = path.read_text().splitlines()
    for bad in ("abc", "", "NULL", "1,5"):
        values = first.split(",")
        path.write_text("\n".join([head, ",".join([*values[:4], f'"{bad}"', *values[5:]]), *rows]))
        assert db.verify(krp, "t", result=path, key="id").wrong == ["krp_3"], bad


@pytest.fixture
def warehouse(tmp_path, krp):
    """A database on disk, with a map beside it."""
    with duckdb.connect(str(tmp_path / "w.duckdb")) as opened:
        store(opened, table())
        sqlkrp.connect(opened).create(krp, "t", "f", keep=["id", "code"])
        sqlkrp.connect(opened).export(krp, "t", tmp_path / "f.csv", keep=["id", "code"])
    krp.save(tmp_path / "m.json")
    return tmp_path


VERIFY = ["verify", "m.json", "--db", "w.duckdb", "--table", "t"]


def test_the_command_says_what_it_found(run_cli, warehouse):
    options = [*VERIFY, "--key", "id"]
    equal = "equal to the NumPy twin within a relative error of 1e-09, on 60 rows of"
    assert run_cli(*options, "--result", "f").stdout.splitlines()[-1] == f"{equal} f"
    assert run_cli(*options, "--result", "f.csv").stdout.splitlines()[-1] == f"{equal} f.csv"
    assert run_cli(*options, "--key", "code", "--result", "f").stdout.endswith(f"{equal} f\n")
    with duckdb.connect(str(warehouse / "w.duckdb")) as opened:
        opened.execute("UPDATE f SET krp_2 = 999, krp_7 = 9 WHERE id = 117")
        opened.execute("UPDATE f SET id = -1 WHERE id = 118")
    lines = run_cli(*options, "--result", "f", code=1).stdout.splitlines()
    assert lines[-4:] == [
        "differs: id 117 in krp_2; krp_7",
        "missing in f: id 118",
        "f has 1 row that the source has not",
        "NOT equal: 1 row of the source is not in f, and 2 of 8 features are wrong within a "
        "relative error of 1e-09, on 59 rows of f",
    ]
    assert run_cli(*options, "--result", "f", "-q", code=1).stdout == ""
    assert run_cli(*VERIFY).returncode == 0  # which runs a statement of its own
    done = run_cli(*VERIFY, "--result", "f", code=2)
    assert "tells them apart, in the source and in the result (--key NAME)" in done.stderr
    assert "--key code" in run_cli(*options, "--result", "f", "--long", "code,a,b", code=2).stderr
    with duckdb.connect(str(warehouse / "w.duckdb")) as opened:
        opened.execute("UPDATE f SET id = id + 1000")
    assert run_cli(*options, "--result", "f", "--sample", 9, code=1).stdout.splitlines()[-2:] == [
        "f has at least 9 rows that the source has not",
        "NOT equal: at least 9 rows of the source are not in f",
    ]


def test_many_differences_are_told_in_a_few_lines(run_cli, warehouse):
    with duckdb.connect(str(warehouse / "w.duckdb")) as opened:
        opened.execute(f"UPDATE f SET {', '.join(f'krp_{i} = 9' for i in range(8))}")
        opened.execute("DELETE FROM f WHERE id < 110")
    lines = run_cli(*VERIFY, "--key", "id", "--result", "f", code=1).stdout.splitlines()
    assert sum(line.startswith("differs: ") for line in lines) == 5
    assert "(45 more rows differ)" in lines
    assert all(line.endswith(" and 3 more") for line in lines if line.startswith("differs: "))
    (missing,) = (line for line in lines if line.startswith("missing in f: "))
    assert missing.count(";") == 4
    assert missing.endswith(" and 5 more")


def test_scores_are_verified_on_the_command_line(run_cli, warehouse, krp):
    trained(krp, CLASSES["text"]).save(warehouse / "s.json")
    where = ["s.json", "--db", "w.duckdb", "--table", "t"]
    cut = ["--threshold", 0.8, "--outputs", "label"]
    run_cli("score", *where, "--to", "s.csv", "--keep", "id", *cut)
    done = run_cli("verify", *where, "--result", "s.csv", "--key", "id", *cut)
    assert done.stdout.endswith("on 60 rows of s.csv\n")
    assert "label" in run_cli("verify", *where, "--result", "s.csv", "--key", "id", code=1).stdout
    with gzip.open(warehouse / "s.csv.gz", "wb") as packed:
        packed.write((warehouse / "s.csv").read_bytes())
    run_cli("verify", *where, "--result", "s.csv.gz", "--key", "id", *cut)


def test_a_verification_of_stored_rows_shows_itself(db, krp):
    db.connection.execute("DELETE FROM f WHERE id = 117")
    assert repr(db.verify(krp, "t", result="f", key="id")) == (
        "Verification(ok=False, rows=59, features=8, wrong=0, form='stored', tolerance=1e-09, "
        "missing=1)"
    )


COUNT = 1_000_000
SERIES = {
    "duckdb": f"(SELECT range AS id FROM range({COUNT})) AS s",
    "postgres": f"generate_series(0, {COUNT - 1}) AS s(id)",
    "sqlite": "(WITH RECURSIVE s(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM s "
    f"WHERE id < {COUNT - 1}) SELECT id FROM s) AS s",
}


@pytest.mark.slow
def test_a_million_rows_of_a_hundred_features(place):
    columns = ", ".join(
        f"CAST(((id * {7 + 2 * i}) % {31 + i}) / 8.0 AS DOUBLE PRECISION) AS c{i}"
        for i in range(10)
    )
    place.execute(f"CREATE TABLE t AS SELECT id, {columns} FROM {SERIES[place.name]}")
    place.execute("CREATE VIEW few AS SELECT * FROM t WHERE id % 1000 = 777")
    krp = sqlkrp.KRP(2, 100, random_state=0).fit(place.database.source("t"), exclude=["id"])
    place.database.create(krp, "t", "made", keep=["id"])
    place.execute("CREATE TABLE f AS SELECT * FROM made ORDER BY RANDOM()")
    verify = place.database.verify
    assert verify(krp, "t", result="f", key="id").ok
    place.execute("UPDATE f SET krp_42 = krp_42 + 0.001 WHERE id = 123777")
    result = verify(krp, "few", result="f", key="id")
    assert [(result.stored.keys[at], names) for at, names in result.wrong_rows()] == [
        ((123777,), ["krp_42"])
    ]
