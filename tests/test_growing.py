"""Tables that grow: rows are added or replaced by their keys, once, all or none, by one map."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import psycopg
import pytest
from support import bytes_of, dyadic, paper_krp, wait_until

import sqlkrp
from sqlkrp.errors import (
    ColumnError,
    EngineError,
    MissingValueError,
    ParameterError,
    TargetExistsError,
)

COLUMNS = [f"c{i}" for i in range(6)]
FRAME = dyadic(40, 6).assign(id=range(40), name="x")
#: As a user asks for it.
GROWING = {"append": True, "key": "id"}


@pytest.fixture
def stored(place):
    place.store(FRAME[:30])
    return place


def sorted_rows(place, table="f", by="id"):
    return place.rows(f"SELECT * FROM {table} ORDER BY {by}")


def features(place, table="f", by="id"):
    """The features of a table's rows, in the order of their keys, which are one column."""
    return np.array([row[1:] for row in sorted_rows(place, table, by)], dtype=float)


# --- appending ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "form"), [(10_000, "auto"), (100, "tables")], ids=["auto", "tables"]
)
def test_ten_parts_are_what_all_at_once_are(place, rows, form):
    frame = dyadic(rows, 6).assign(id=range(rows))
    krp = paper_krp(2, 5, n_terms=2, random_state=0).fit(COLUMNS)
    db, part = place.database, rows // 10
    place.execute("BEGIN")  # else SQLite waits for the disk at each row
    place.store(frame, "every_row")
    place.store(frame[:0], "t")
    place.execute("COMMIT")
    for first in range(0, rows, part):
        new = f"id >= {first} AND id < {first + part}"
        place.execute(f"INSERT INTO t SELECT * FROM every_row WHERE {new}")
        assert db.create(krp, "t", "f", **GROWING, form=form).rows == part
    assert db.create(krp, "t", "f", **GROWING, form=form).rows == 0
    db.create(krp, "t", "g", keep=["id"], form=form)
    grown, at_once = sorted_rows(place), sorted_rows(place, "g")
    assert grown == at_once  # to the bit
    assert len(grown) == rows
    assert np.array_equal(features(place), krp.transform(frame))
    assert db.verify(krp, "t", result="f", key="id").ok
    assert place.objects() == ["every_row", "f", "g", "t"]


def test_only_new_rows_are_checked_and_computed(db, krp, stored):
    assert db.create(krp, "t", "f", **GROWING, keep=["name"]).rows == 30
    before = sorted_rows(stored)
    stored.execute("UPDATE t SET c0 = NULL WHERE id < 10")
    stored.execute("UPDATE t SET name = 'y' WHERE id = 7")
    stored.fill(FRAME[30:], "t")
    assert db.create(krp, "t", "f", **GROWING, keep=["name"]).rows == 10
    rows = sorted_rows(stored)
    assert [row[:2] for row in rows] == [(i, "x") for i in range(40)]
    assert rows[:30] == before
    stored.execute("UPDATE t SET id = id + 100, c1 = NULL WHERE id = 5")
    stored.execute("UPDATE t SET c0 = 1 WHERE id >= 100")
    with pytest.raises(MissingValueError, match=r"'c1' \(1\)"):
        db.create(krp, "t", "f", **GROWING, keep=["name"])
    assert sorted_rows(stored) == rows


def test_a_limit_is_a_first_look_and_then_the_next_rows(db, krp, stored, tmp_path):
    look = db.create(krp, "t", "look", limit=7)
    assert look.rows == 7
    # It may read other rows than were checked, so that it checks them itself.
    assert "missing value in column" in look.statement.text
    assert "missing value in column" not in db.create(krp, "t", "all_rows").statement.text
    assert db.export(krp, "t", tmp_path / "f.csv", limit=3).rows == 3
    for rows in (12, 12, 6, 0):
        assert db.create(krp, "t", "f", **GROWING, limit=12).rows == rows
    assert np.allclose(features(stored), krp.transform(FRAME[:30]), rtol=1e-12)
    stored.execute("UPDATE t SET c0 = NULL")
    with pytest.raises(MissingValueError):
        db.create(krp, "t", "g", limit=5)
    with pytest.raises(ParameterError, match="limit=0"):
        db.create(krp, "t", "g", limit=0)
    assert stored.objects() == ["all_rows", "f", "look", "t"]


def test_the_first_rows_are_those_of_the_key(db, krp, stored):
    stored.execute("CREATE TABLE turned AS SELECT * FROM t ORDER BY id DESC")
    db.create(krp, "turned", "f", **GROWING, limit=4)
    assert [row[0] for row in sorted_rows(stored)] == [0, 1, 2, 3]


def test_numpy_adds_rows_too(db, krp, stored):
    how = "sql" if stored.name == "sqlite" else "arrow"  # which it has not
    db.create(krp, "t", "f", **GROWING, limit=20)
    assert db.create(krp, "t", "f", **GROWING, how=how).rows == 10
    assert db.create(krp, "t", "f", upsert=True, key="id", how=how).replaced == 30
    assert np.array_equal(features(stored), krp.transform(FRAME[:30]))
    assert stored.objects() == ["f", "t"]


def test_a_connection_that_may_only_read_adds_nothing(db, krp, stored):
    db.create(krp, "t", "f", keep=["id"], limit=20)
    stored.connection.close()
    with sqlkrp.connect(stored.url, read_only=True) as reading:
        for how in ("append", "upsert"):
            with pytest.raises(EngineError, match=r"(?i)read-?only"):
                reading.create(krp, "t", "f", key="id", **{how: True})
    with type(stored).database_of(stored.url) as again:
        assert again.rows("SELECT COUNT(*) FROM f") == [(20,)]


def test_without_a_key_all_rows_are_added(db, krp, stored):
    for times in (1, 2):
        assert db.create(krp, "t", "f", keep=["id"], append=True).rows == 30
        assert stored.rows("SELECT COUNT(*) FROM f") == [(30 * times,)]


def test_a_key_of_several_columns_with_any_names(place):
    names = ["every", 'th"ere', "k0", "x'; --"]
    frame = dyadic(20, 4).set_axis([*names[2:], "c2", "c3"], axis=1)
    keys = pd.DataFrame([divmod(i, 4) for i in range(20)], columns=names[:2])
    frame = pd.concat([frame, keys], axis=1)
    krp = paper_krp(2, 5, random_state=0).fit([*names[2:], "c2", "c3"])
    place.store(frame[:11])
    options = {"append": True, "key": names[:2]}
    assert place.database.create(krp, "t", "f", **options).rows == 11
    place.store(frame[11:], "more")
    place.execute("INSERT INTO t SELECT * FROM more")
    assert place.database.create(krp, "t", "f", **options).rows == 9
    by = ", ".join(map(place.quoted, names[:2]))
    found = np.array(sorted_rows(place, by=by), dtype=float)
    assert found[:, :2].tolist() == frame[names[:2]].to_numpy().tolist()
    assert np.array_equal(found[:, 2:], krp.transform(frame))
    assert place.database.create(krp, "t", "f", upsert=True, key=names[:2]).replaced == 20


@pytest.mark.parametrize("rows", [None, "keys"])
def test_sparse_rows_are_added_by_their_key(place, rows):
    wide = dyadic(12, 4)
    long = pd.DataFrame(
        [(i, name, v) for i, row in wide.iterrows() for name, v in row.items() if v],
        columns=["r", "feature", "v"],
    )
    place.store(long[long.r < 8], "e")
    place.store(pd.DataFrame({"r": range(8), "name": "x"}), "keys")
    krp = paper_krp(2, 5, random_state=0).fit(list(wide))
    options = {"long": ("r", "feature", "v"), "rows": rows, "append": True}
    with pytest.raises(ParameterError, match="give key='r'"):
        place.database.create(krp, "e", "f", **options, key="name")
    assert place.database.create(krp, "e", "f", **options, key="r", limit=5).rows == 5
    place.fill(long[long.r >= 8], "e")
    place.fill(pd.DataFrame({"r": range(8, 12), "name": "x"}), "keys")
    assert place.database.create(krp, "e", "f", **options, key="r").rows == 7
    assert np.array_equal(features(place, by="r"), krp.transform(wide))
    found = place.database.create(
        krp, "e", "f", **{**options, "append": False}, upsert=True, key="r"
    )
    assert (found.rows, found.replaced) == (12, 12)
    assert np.array_equal(features(place, by="r"), krp.transform(wide))


# --- replacing ------------------------------------------------------------------------------------


def test_changed_rows_are_replaced_and_new_ones_added(db, krp, stored):
    db.create(krp, "t", "f", keep=["id"])
    stored.execute("DELETE FROM t WHERE id < 5")
    stored.execute("UPDATE t SET c0 = c0 + 1 WHERE id = 20")
    stored.fill(FRAME[30:], "t")
    run = db.create(krp, "t", "f", upsert=True, key="id")
    assert (run.rows, run.replaced) == (35, 25)
    expected = FRAME.copy()
    expected.loc[20, "c0"] += 1
    assert np.array_equal(features(stored), krp.transform(expected))
    # Of both, upsert says more.
    assert db.create(krp, "t", "f", upsert=True, append=True, key="id", limit=4).replaced == 4
    assert len(sorted_rows(stored)) == 40
    assert stored.objects() == ["f", "t"]


def test_rows_are_replaced_under_a_primary_key_of_the_user_s(db, krp, stored):
    if stored.name == "sqlite":  # which adds none to a table that is there
        stored.execute("CREATE TABLE k (id INTEGER)")
        db.create(krp, "t", "f", keep=["id"])
        stored.execute("CREATE UNIQUE INDEX one_each ON f (id)")
    else:
        db.create(krp, "t", "f", keep=["id"])
        stored.execute("ALTER TABLE f ADD PRIMARY KEY (id)")
    stored.execute("UPDATE t SET c0 = c0 + 1")
    assert db.create(krp, "t", "f", upsert=True, key="id").replaced == 30
    expected = FRAME[:30].assign(c0=FRAME.c0 + 1)
    assert np.array_equal(features(stored), krp.transform(expected))


def test_scores_grow_too(db, krp, stored, tmp_path):
    model = sqlkrp.model(map=krp, coef=np.arange(5.0), intercept=1.0)
    assert db.score(model, "t", into="s", **GROWING).rows == 30
    stored.fill(FRAME[30:], "t")
    assert db.score(model, "t", into="s", **GROWING, limit=4).rows == 4
    assert db.score(model, "t", into="s", upsert=True, key="id").replaced == 34
    assert np.allclose(features(stored, "s")[:, 0], model.predict(FRAME), rtol=1e-12)
    with pytest.raises(ParameterError, match="upsert and key are for tables"):
        db.score(model, "t", path=tmp_path / "s.csv", key="id")
    with pytest.raises(TargetExistsError, match="was not made by this map"):
        db.score(sqlkrp.model(map=krp, coef=np.ones(5)), "t", into="s", **GROWING)


# --- refusing -------------------------------------------------------------------------------------


def test_only_the_map_that_made_a_table_adds_to_it(db, krp, stored):
    db.create(krp, "t", "f", keep=["id"])
    db.create(krp, "t", "p", keep=["id"], stage="projection")
    stored.execute("CREATE TABLE precious AS SELECT * FROM f")
    other = paper_krp(2, 5, n_terms=2, random_state=1).fit(COLUMNS)
    for one, into in ((other, "f"), (krp, "p"), (krp, "precious")):
        for how in ("append", "upsert"):
            with pytest.raises(TargetExistsError, match="was not made by this map"):
                db.create(one, "t", into, key="id", **{how: True})
    assert stored.rows("SELECT COUNT(*) FROM precious") == [(30,)]
    # What is said of a table goes with it.
    stored.execute("ALTER TABLE f RENAME TO g")
    stored.execute("DELETE FROM g WHERE id = 3")
    assert db.create(krp, "t", "g", **GROWING).rows == 1


def test_other_columns_are_refused(db, krp, stored):
    db.create(krp, "t", "f", keep=["id"])
    with pytest.raises(ColumnError, match="'name' is not in both"):
        db.create(krp, "t", "f", **GROWING, keep=["name"])
    if stored.name != "sqlite":  # which has no types
        stored.execute(
            "CREATE VIEW v AS SELECT c0, c1, c2, c3, c4, c5, CAST(id AS TEXT) AS id FROM t"
        )
        with pytest.raises(
            ColumnError, match=r"key 'id' is of type .* in v and of type .*: cast it"
        ):
            db.create(krp, "v", "f", **GROWING)
    stored.execute("ALTER TABLE f ADD COLUMN note TEXT")
    with pytest.raises(ColumnError, match="'note' is not in both"):
        db.create(krp, "t", "f", **GROWING)
    with pytest.raises(ColumnError, match="'idd' is not in t: did you mean 'id'"):
        db.create(krp, "t", "g", append=True, key="idd")
    db.create(krp, "t", "h")
    with pytest.raises(ColumnError, match=r"'id' is not in .*h"):
        db.create(krp, "t", "h", **GROWING)
    assert stored.rows("SELECT COUNT(*) FROM f") == [(30,)]


@pytest.mark.parametrize("how", ["append", "upsert"])
def test_a_key_is_there_once_and_never_missing(db, krp, stored, how):
    options = {how: True, "key": "id"}
    stored.execute("INSERT INTO t SELECT * FROM t WHERE id = 3")
    with pytest.raises(ColumnError, match="'id' is not unique in t, where '3' is there twice"):
        db.create(krp, "t", "f", **options)
    assert stored.objects() == ["t"]
    db.create(krp, "t", "twice", keep=["id"])
    with pytest.raises(ColumnError, match=r"'id' is not unique in .*twice"):
        db.create(krp, "t", "twice", **options)
    stored.execute("DELETE FROM t WHERE id = 3")
    db.create(krp, "t", "f", **options)
    stored.execute("UPDATE t SET id = NULL WHERE id > 27")
    with pytest.raises(ColumnError, match="'id' is NULL in 2 of"):
        db.create(krp, "t", "f", **options)
    stored.execute("DELETE FROM t WHERE id IS NULL")
    stored.execute("UPDATE f SET id = NULL WHERE id = 5")
    with pytest.raises(ColumnError, match=r"'id' is NULL in 1 of 29 rows of .*f"):
        db.create(krp, "t", "f", **options)
    assert stored.rows("SELECT COUNT(*) FROM f") == [(29,)]


def test_what_does_not_go_together_is_told(db, krp, stored):
    for options, told in (
        ({"append": True, "replace": True}, "replace=True and append=True are both given"),
        ({"upsert": True, "replace": True, "key": "id"}, "replace=True and upsert=True"),
        ({"upsert": True}, "which rows are replaced"),
        ({"key": "id"}, "give append=True or upsert=True"),
        ({"append": True, "key": 3}, "key=3 is not allowed"),
        (
            {"append": True, "view": True},
            "view=True and append=True are both given: .* one of them",
        ),
        ({"append": 1}, "append=1"),
    ):
        with pytest.raises(ParameterError, match=told):
            db.create(krp, "t", "f", **options)
    stored.execute("CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(TargetExistsError, match="is a view and a table was asked for"):
        db.create(krp, "t", "v", **GROWING)
    with pytest.raises(ParameterError, match="is read by this"):
        db.create(krp, "v", "t", **GROWING)
    assert stored.objects() == ["t", "v"]


# --- all or none, and once ------------------------------------------------------------------------


def test_a_failure_adds_and_replaces_nothing(db, stored):
    stored.execute(f"CREATE VIEW broken AS SELECT t.*, {stored.broken} AS c9 FROM t WHERE id <> 7")
    krp = paper_krp(2, 5, n_terms=2, random_state=0).fit([*COLUMNS, "c9"])
    stored.execute("CREATE VIEW whole AS SELECT t.*, 1.0 AS c9 FROM t WHERE id < 5")
    db.create(krp, "whole", "f", **GROWING)
    before = sorted_rows(stored)
    stored.execute("DROP VIEW broken")
    stored.execute(f"CREATE VIEW broken AS SELECT t.*, {stored.broken} AS c9 FROM t")
    for how in ("append", "upsert"):
        with pytest.raises(EngineError) as error:
            db.create(krp, "broken", "f", key="id", **{how: True})
        assert "\n" not in str(error.value)
        assert sorted_rows(stored) == before
        assert not stored.in_transaction()


def test_a_stop_between_deleting_and_adding_keeps_the_old_rows(db, krp, stored, monkeypatch):
    db.create(krp, "t", "f", keep=["id"])
    before = sorted_rows(stored)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as here:
        here.setattr(type(db._session), "append", stop)
        with pytest.raises(KeyboardInterrupt):
            db.create(krp, "t", "f", upsert=True, key="id")
    assert sorted_rows(stored) == before
    assert db.create(krp, "t", "f", upsert=True, key="id").replaced == 30


def test_inside_the_user_s_transaction_it_is_the_user_s_to_end(db, krp, stored):
    db.create(krp, "t", "f", keep=["id"])
    stored.execute("BEGIN")
    stored.execute("DELETE FROM f WHERE id >= 10")
    assert db.create(krp, "t", "f", **GROWING).rows == 20
    assert db.create(krp, "t", "f", upsert=True, key="id").replaced == 30
    assert stored.in_transaction()
    stored.execute("ROLLBACK")
    assert len(sorted_rows(stored)) == 30


def test_two_connections_at_once_add_no_row_twice(krp, stored):
    """The second waits for the first, or fails; whichever began to look first."""
    stored.database.create(krp, "t", "f", keep=["id"])
    stored.fill(FRAME[30:], "t")
    told = []
    began = threading.Barrier(2)

    def grow():
        # In one process, DuckDB has a file opened once.
        at = stored.connection.cursor() if stored.name == "duckdb" else stored.url
        with sqlkrp.connect(at) as db:
            began.wait()
            try:
                told.append(db.create(krp, "t", "f", **GROWING).rows)
            except EngineError as bad:
                told.append(str(bad))

    for _ in range(5):
        stored.execute("DELETE FROM f WHERE id >= 30")
        told.clear()
        threads = [threading.Thread(target=grow) for _ in range(2)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert [row[0] for row in sorted_rows(stored)] == list(range(40)), told
        assert all(one in (0, 10) or "another" in one for one in told), told


def test_a_transaction_that_began_before_others_added_rows_adds_none_again(krp, stored):
    """It sees what was there when it began: its own look would find the rows new."""
    stored.database.create(krp, "t", "f", keep=["id"])
    stored.fill(FRAME[30:], "t")
    with contextlib.ExitStack() as closing:
        if stored.name == "duckdb":
            old, cure = stored.connection.cursor(), "another transaction is at work on"
            old.begin()
        elif stored.name == "postgres":
            old, cure = psycopg.connect(stored.url), "may not see the latest rows of"
            old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        else:
            old, cure = sqlite3.connect(stored.url, isolation_level=None), "refused"
            old.execute("BEGIN")
        closing.callback(old.close)
        assert old.execute("SELECT COUNT(*) FROM f").fetchall() == [(30,)]
        if stored.name == "sqlite":  # whose readers keep others from writing, unless they wait
            stored.execute("PRAGMA busy_timeout = 0")
            with pytest.raises(EngineError, match="another connection is at work"):
                stored.database.create(krp, "t", "f", **GROWING)
            assert sqlkrp.connect(old).create(krp, "t", "f", **GROWING).rows == 10
            old.execute("COMMIT")
        else:
            assert stored.database.create(krp, "t", "f", **GROWING).rows == 10
            with pytest.raises(EngineError, match=cure) as error:
                sqlkrp.connect(old).create(krp, "t", "f", **GROWING)
            assert "\n" not in str(error.value)
    assert [row[0] for row in sorted_rows(stored)] == list(range(40))


def test_postgres_sees_what_was_added_while_it_waited(postgres_url, krp):
    """In a transaction of the user's that is READ COMMITTED, too."""
    with contextlib.ExitStack() as closing:
        first, second = (closing.enter_context(psycopg.connect(postgres_url)) for _ in range(2))
        second.autocommit = True
        columns = ", ".join(f"i / 8.0::float8 AS c{j}" for j in range(6))
        second.execute(f"CREATE TABLE t AS SELECT i AS id, {columns} FROM generate_series(1, 9) i")
        one, two = map(sqlkrp.connect, (first, second))
        two.create(krp, "t", "f", keep=["id"], limit=4)
        first.execute("SELECT 1")  # which begins its transaction
        assert one.create(krp, "t", "f", **GROWING).rows == 5  # not committed yet
        found = []
        waiting = threading.Thread(
            target=lambda: found.append(two.create(krp, "t", "f", **GROWING).rows)
        )
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
        first.commit()
        waiting.join()
        assert found == [0]
        assert second.execute("SELECT COUNT(*) FROM f").fetchone() == (9,)


# --- processes ------------------------------------------------------------------------------------

#: Rows whose features take an engine long enough to be met in the middle.
MANY = {"duckdb": 300_000, "postgres": 60_000, "sqlite": 60_000}


@pytest.fixture
def many(place, tmp_path):
    """A database with a table of many rows, and the features of ten of them; nobody has it open."""
    names = [f"c{i}" for i in range(8)]
    krp = sqlkrp.KRP(2, 100, pool="hadamard", random_state=0).fit(names)
    krp.save(tmp_path / "m.json")
    count, double = MANY[place.name], "CAST(i % 97 AS DOUBLE PRECISION)"
    columns = ", ".join(f"{double} / {j + 8} AS c{j}" for j in range(8))
    place.execute(
        f"CREATE TABLE t AS WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r "
        f"WHERE i < {count - 1}) SELECT i AS id, {columns} FROM r"
        if place.name != "duckdb"
        else f"CREATE TABLE t AS SELECT i AS id, {columns} FROM range({count}) AS r(i)"
    )
    place.database.create(krp, "t", "f", keep=["id"], limit=10, **SHAPE[place.name])
    if place.name != "postgres":
        place.connection.close()  # DuckDB lets one process in
    return place


#: A row of Postgres has no room for so many columns that are written in a hurry.
SHAPE = {"duckdb": {}, "sqlite": {}, "postgres": {"output": "array"}}


def start(place, folder, how):
    more = [f"--{name}={value}" for name, value in SHAPE[place.name].items()]
    command = [
        sys.executable, "-m", "sqlkrp", "run", "m.json", "--db", place.url, "--table", "t",
        "--into", "f", f"--{how}", "--key", "id", *more,
    ]  # fmt: skip
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def bytes_written(place):
    """What the database takes on the disk: also of rows that nobody sees yet."""
    if place.name == "postgres":
        return place.rows("SELECT pg_relation_size('f')")[0][0]
    path = Path(place.url)
    return sum(bytes_of(one) for one in path.parent.iterdir() if one.name.startswith(path.name))


def in_the_middle(place, process):
    before = bytes_written(place)
    wait_until(lambda: bytes_written(place) > before + 1_000_000, process)


def rows_there(place):
    """How many rows there are, and how many of them have a key of their own."""
    with type(place).database_of(place.url) as again:
        return again.rows("SELECT COUNT(*), COUNT(DISTINCT id) FROM f")[0]


@pytest.mark.parametrize("how", ["append", pytest.param("upsert", marks=pytest.mark.slow)])
def test_kill_9_while_rows_are_added_leaves_the_old_ones(many, tmp_path, how):
    process = start(many, tmp_path, how)
    in_the_middle(many, process)
    process.kill()
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert rows_there(many) == (10, 10)
    again = start(many, tmp_path, how)
    said = again.communicate(timeout=120)
    assert again.returncode == 0, said
    count = MANY[many.name]
    assert rows_there(many) == (count, count)
    assert f": {count - 10:,} rows" in said[0] if how == "append" else "updated" in said[0]


def test_two_processes_at_once_add_no_row_twice(many, tmp_path):
    first = start(many, tmp_path, "append")
    in_the_middle(many, first)
    second = start(many, tmp_path, "append")
    said = [one.communicate(timeout=240) for one in (first, second)]
    assert first.returncode == 0, said
    # Postgres waits, SQLite waits for a while, and DuckDB not at all.
    told = {"duckdb": "cannot open", "sqlite": "another connection is at work in it"}
    if second.returncode:
        assert second.returncode == 2
        assert told[many.name] in said[1][1]
        assert said[1][1].count("\n") == 1
    else:
        assert "f: 0 rows" in said[1][0]
    count = MANY[many.name]
    assert rows_there(many) == (count, count)
