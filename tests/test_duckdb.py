"""Running maps inside DuckDB: creating, exporting, verifying, and leaving things as they were."""

import _thread
import contextlib
import gzip
import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from support import FORMS, dyadic, paper_krp, read_table, store

import sqlkrp
from sqlkrp import gzips
from sqlkrp.cli import main
from sqlkrp.engines import duckdb_running as engine
from sqlkrp.engines import duckdb_writing
from sqlkrp.engines.duckdb import DuckDB
from sqlkrp.errors import (
    ColumnError,
    EngineError,
    NotFittedError,
    ParameterError,
)


@pytest.fixture
def db(connection):
    store(connection, dyadic(40, 6).assign(id=range(40), name="n"))
    with sqlkrp.connect(connection) as opened:
        yield opened


def objects(connection):
    """Every table and view, temporary ones too."""
    rows = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
    return sorted(row[0] for row in rows)


def test_a_relation_goes_on_into_the_user_s_query(db, krp, connection):
    features = db.relation(krp, "t", keep=["id"])
    assert isinstance(features, duckdb.DuckDBPyRelation)
    assert features.filter("id < 3").aggregate("COUNT(*)").fetchall() == [(3,)]
    joined = connection.sql("SELECT COUNT(krp_0) FROM features JOIN t USING (id)")
    assert joined.fetchall() == [(40,)]


def test_side_tables_of_a_relation_go_when_the_database_is_closed(db, krp, connection):
    relation = db.relation(krp, "t", form="tables")
    assert len(objects(connection)) == 5
    assert len(relation.fetchall()) == 40
    db.close()
    assert objects(connection) == ["t"]
    assert connection.execute("SELECT 1").fetchone() == (1,)  # the user's, and still open


@pytest.mark.parametrize(
    ("suffix", "form"), [(".csv", "wide"), (".parquet", "wide"), (".parquet", "tables")]
)
def test_export_writes_the_features_in_order(db, krp, connection, tmp_path, suffix, form):
    path = tmp_path / f"it's f{suffix}"
    run = db.export(krp, "t", path, keep=["id"], form=form)
    assert run.rows == 40
    frame = read_table(path)
    assert frame.columns.tolist() == ["id", *krp.get_feature_names_out()]
    assert frame["id"].tolist() == list(range(40))
    expected = krp.transform(connection.table("t").df())
    assert np.array_equal(frame.iloc[:, 1:].to_numpy(), expected) or np.allclose(
        frame.iloc[:, 1:].to_numpy(), expected, rtol=1e-12
    )
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert objects(connection) == ["t"]


@pytest.mark.parametrize("form", FORMS)
def test_other_readers_read_arrays_with_rows_that_have_none(db, connection, tmp_path, form):
    frame = dyadic(12, 3).assign(id=range(12))
    frame.iloc[3, 1] = np.nan
    store(connection, frame, "some_rows")
    pair = "CAST(CASE WHEN id <> 5 THEN [[id], [1]] END AS INTEGER[1][2])"
    connection.execute(f"CREATE TABLE kept AS SELECT *, {pair} AS pair FROM some_rows")
    krp = sqlkrp.KRP(2, 64, n_terms=1, coef0=0.0, gamma=1.0, nulls="propagate", random_state=0)
    expected = krp.fit(["c0", "c1", "c2"]).transform(frame)
    path = tmp_path / "f.parquet"
    db.export(krp, "kept", path, keep=["pair", "id"], output="array", form=form)
    found = pyarrow.parquet.read_table(path).to_pydict()
    assert found["id"] == list(range(12))
    assert found["pair"] == [None if i == 5 else [[i], [1]] for i in range(12)]
    assert found["krp"].pop(3) is None
    assert np.allclose(found["krp"], np.delete(expected, 3, axis=0), rtol=1e-12)


def test_files_are_sources_too(krp, tmp_path, connection):
    frame = dyadic(30, 6)
    for i in range(3):
        frame[10 * i : 10 * i + 10].to_csv(tmp_path / f"part{i}.csv", index=False)
    connection.register("whole", frame)
    connection.execute(f"COPY (FROM whole) TO '{tmp_path}/all.parquet'")
    expected = krp.transform(frame)
    with sqlkrp.connect() as db:
        for path in (tmp_path / "part*.csv", tmp_path / "all.parquet"):
            found = db.relation(krp, path).df().to_numpy()
            assert np.allclose(found, expected, rtol=1e-12)
        with pytest.raises(ColumnError, match="cannot read"):
            db.relation(krp, tmp_path / "none.csv")
        with pytest.raises(ParameterError, match="no kind of file known"):
            db.relation(krp, tmp_path / "x.xlsx")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t*.csv"])
def test_dates_and_times_of_a_csv_stay_as_they_stand(tmp_path, name):
    rows = ["02/08/2024,0:00,2024-1-2T3:04,1", "31/12/2024,9:30,2024-1-2 3:05,2"]
    text = "\n".join(["day,hour,moment,a", *rows, ""])
    opened = gzip.open if name.endswith("gz") else open
    with opened(tmp_path / name.replace("*", "1"), "wt") as file:
        file.write(text)
    with sqlkrp.connect() as db:
        source = db.source(tmp_path / name)
        krp = sqlkrp.KRP(1, 2, random_state=0).fit(source)
        assert krp.left_out_ == dict.fromkeys(["day", "hour", "moment"], "VARCHAR")
        db.export(krp, source, tmp_path / "f.csv", keep=["day", "hour", "moment", "a"])
    lines = (tmp_path / "f.csv").read_text().splitlines()
    assert [",".join(line.split(",")[:4]) for line in lines] == text.splitlines()


def test_a_file_that_is_named_as_a_table_is_told_from_one(connection, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    db = sqlkrp.connect(connection)
    krp = sqlkrp.KRP(1, 2, random_state=0).fit(["c0", "c1"])
    for name in ("x.csv", "./x.csv", "my file.csv"):
        dyadic(5, 2).to_csv(name, index=False)
        with pytest.raises(ParameterError, match=r"give pathlib\.Path\('.*x?.csv'\)"):
            db.source(name)
        with pytest.raises(ParameterError, match="is a file, and no table"):
            db.create(krp, name, "f")
        assert db.create(krp, Path(name), "f", replace=True).rows == 5
    connection.execute("CREATE SCHEMA x; CREATE TABLE x.csv AS SELECT 1 AS only_here")
    assert list(db.source("x.csv").kinds) == ["only_here"]


def test_transform_says_where_a_table_of_a_database_is_computed(db, krp):
    for source in (db.source("t"), Path("t.csv")):
        with pytest.raises(ParameterError, match=r"computes in NumPy and was given a .*: give a"):
            krp.transform(source)
    relation = db.connection.table("t")  # which has its rows at hand, and is a table by itself
    assert np.array_equal(krp.transform(relation), krp.transform(relation.df()))


def test_an_interrupt_ends_the_statement_at_once(db, krp, connection):
    connection.execute("CREATE TABLE big AS SELECT t.* FROM t, range(200_000)")
    krp = paper_krp(2, 2000, pool="hadamard", random_state=0).fit([f"c{i}" for i in range(6)])
    seen = threading.Event()

    def interrupt(share):
        seen.set()
        raise KeyboardInterrupt

    db.on_progress = interrupt
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    with pytest.raises(KeyboardInterrupt):
        db.create(krp, "big", "f")
    assert seen.is_set()
    db.on_progress = None
    assert objects(connection) == ["big", "t"]
    assert connection.execute("SELECT 1").fetchone() == (1,)


ENDLESS = "CREATE TABLE f AS SELECT sum(a.i * b.i) FROM range(9000000) a(i), range(9000000) b(i)"


def test_an_interrupt_while_a_statement_begins_ends_it(db, connection, monkeypatch):
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        db._session.execute(ENDLESS, "a test")
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_an_interrupt_that_comes_as_two_signals_is_one(db, connection, monkeypatch):
    """As of timeout -s INT, which sends it to the process and to its group."""
    signals = iter(range(2))

    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            if timeout is not None and next(signals, None) is not None:
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(threading, "Event", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        db._session.execute(ENDLESS, "a test")
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_connect_takes_files_connections_and_nothing_else(tmp_path):
    options = {"threads": 1, "memory_limit": "1GB"}
    with sqlkrp.connect(tmp_path / "x.duckdb", create=True, **options) as db:
        db.connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        settings = db.connection.execute(
            "SELECT current_setting('threads'), current_setting('memory_limit')"
        ).fetchone()
        assert settings == (1, "953.6 MiB")
    with sqlkrp.connect(tmp_path / "x.duckdb", read_only=True) as db:
        krp = paper_krp(1, 2, random_state=0).fit(db.source("t"))
        assert db.verify(krp, "t", form="tables").ok  # temporary tables only
        with pytest.raises(EngineError, match="read-only"):
            db.create(krp, "t", "f")
    for target in (3, "postgresql://nowhere/x" and object()):
        with pytest.raises(ParameterError, match="cannot connect to"):
            sqlkrp.connect(target)
    with pytest.raises(EngineError, match="cannot open"):
        sqlkrp.connect(tmp_path)
    for wrong in ({"memory_limit": "plenty"}, {"memory_limit": "1000"}, {"memory_limit": "0GB"},
                  {"threads": 0}):  # fmt: skip
        with pytest.raises(ParameterError, match=f"^{next(iter(wrong))}=.* is not allowed: use "):
            sqlkrp.connect(**wrong)
    share = ("80%",) if duckdb.__version__ >= "2" else ()
    for amount in ("1.5 GB", "512mib", *share, "2g", "none"):
        sqlkrp.connect(memory_limit=amount, threads=1).close()
    with sqlkrp.connect(memory_limit="1MB") as db:
        told = r"had too little memory for .* \(.* used\): allow more by memory_limit"
        db.connection.execute("CREATE TABLE small AS SELECT 0.5 AS a")
        with pytest.raises(EngineError, match=told):
            db.create(sqlkrp.KRP(2, 3).fit(["a"]), "small", "f")
    with pytest.raises(ParameterError, match="open connection"):
        sqlkrp.connect(duckdb.connect(), threads=2)


# --- what was wrong once ------------------------------------------------------------------------


def test_a_lazy_relation_guards_itself(db, krp, connection):
    for form in FORMS:
        relation = db.relation(krp, "t", form=form)
        connection.execute("INSERT INTO t (c0, c1) VALUES (1, NULL)")
        with pytest.raises(duckdb.Error, match="missing value"):
            relation.fetchall()
        connection.execute("DELETE FROM t WHERE c1 IS NULL")


def test_a_relation_outlives_the_next_use_of_its_map(db, krp):
    first, second = db.relation(krp, "t", form="tables"), db.relation(krp, "t", form="tables")
    db.verify(krp, "t", form="tables")
    db.create(krp, "t", "f", form="tables")
    assert first.fetchall() == second.fetchall()


def test_a_temporary_table_of_the_same_name_is_left_alone(db, krp, connection):
    connection.execute("CREATE TEMPORARY TABLE f AS SELECT 1 AS mine")
    db.create(krp, "t", "f")
    assert connection.execute("FROM temp.f").fetchall() == [(1,)]
    comments = connection.execute(
        "SELECT database_name, comment IS NOT NULL FROM duckdb_tables() WHERE table_name = 'f'"
    ).fetchall()
    assert sorted(comments) == [("memory", True), ("temp", False)]


def test_two_databases_in_memory_spill_to_folders_of_their_own():
    with sqlkrp.connect() as first:
        folder = first.connection.execute("SELECT current_setting('temp_directory')").fetchone()[0]
        Path(folder).mkdir()
        with sqlkrp.connect() as second:
            assert Path(folder).exists()
            other = second.connection.execute("SELECT current_setting('temp_directory')")
            assert other.fetchone()[0] != folder
    assert not Path(folder).exists()


def test_exports_to_one_target_at_a_time_do_not_disturb_each_other(tmp_path):
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        store(connection, dyadic(2000, 6))
        krp = paper_krp(2, 50, random_state=0).fit([f"c{i}" for i in range(6)])
        failed = []

        def export(cursor):
            try:
                sqlkrp.connect(cursor).export(krp, "t", tmp_path / "f.csv", replace=True)
            except Exception as bad:
                failed.append(bad)

        threads = [threading.Thread(target=export, args=[connection.cursor()]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failed == []
    assert len(read_table(tmp_path / "f.csv")) == 2000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.csv", "w.duckdb"]


def test_a_file_name_with_brackets_is_that_file(tmp_path, krp):
    dyadic(3, 6).to_csv(tmp_path / "q1.csv", index=False)
    dyadic(5, 6).to_csv(tmp_path / "q[1].csv", index=False)
    with sqlkrp.connect() as db:
        assert len(db.relation(krp, tmp_path / "q[1].csv").fetchall()) == 5
        assert len(db.relation(krp, tmp_path / "q[0-9].csv").fetchall()) == 3


def test_very_long_names_of_files_work(db, krp, tmp_path):
    db.export(krp, "t", tmp_path / ("x" * 240 + ".csv"))
    assert [len(p.name) for p in tmp_path.iterdir()] == [244]


def test_standard_output_may_be_redirected_in_python(db, krp):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        print("before")
        db.export(krp, "t", "-")
        print("after")
    lines = text.getvalue().splitlines()
    assert (lines[0], lines[1][:6], lines[-1], len(lines)) == ("before", "krp_0,", "after", 43)


def test_what_is_no_table_is_said_in_one_line(db, krp):
    for table in (pd.DataFrame({"a": range(100)}), 3, None, ("a\nb",), "np"):
        with pytest.raises((ParameterError, ColumnError, EngineError)) as error:
            db.create(krp, table, "f")
        assert "\n" not in str(error.value)
    closed = duckdb.connect()
    closed.close()
    with pytest.raises(EngineError):
        sqlkrp.connect(closed).source("t")


@pytest.mark.parametrize("name", ["typo.duckdb", "typo.sqlite", "no folder/typo.db"])
def test_a_path_that_is_not_there_is_a_database_only_on_request(tmp_path, name):
    path = tmp_path / name
    with pytest.raises(ParameterError, match=r"no database '.*typo.*create=True for a new one"):
        sqlkrp.connect(path)
    assert list(tmp_path.iterdir()) == []
    path.parent.mkdir(exist_ok=True)
    with sqlkrp.connect(path, create=True) as db:
        db.connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    for create in (False, True):  # what is there stays as it is
        with sqlkrp.connect(str(path), create=create) as db:
            assert db.connection.execute("SELECT a FROM t").fetchall() == [(1,)]
    with sqlkrp.connect(":memory:") as db:
        assert db.connection.execute("SHOW TABLES").fetchall() == []


def test_only_maps_compute_features(db, krp, tmp_path):
    calls = (
        lambda one: db.create(one, "t", "f"),
        lambda one: db.export(one, "t", tmp_path / "f.csv"),
        lambda one: db.relation(one, "t"),
        lambda one: db.verify(one, "t"),
    )
    for call in calls:
        for one in ("m.json", None, sqlkrp.KRP, pd.DataFrame(), krp.program_):
            with pytest.raises(
                ParameterError, match=r"^fitted is of type .*, not a map: give"
            ) as no:
                call(one)
            assert "not a map: give one" in str(no.value)
            assert "\n" not in str(no.value)
        with pytest.raises(NotFittedError, match="call fit first"):
            call(paper_krp(2, 3))
    assert list(tmp_path.iterdir()) == []


def test_a_statement_that_hears_no_interrupt_is_let_go(monkeypatch):
    monkeypatch.setattr(engine, "_PATIENCE", 0.5)
    slept = threading.Event()

    def sleep(seconds):
        slept.wait(seconds)  # a function of Python's is not interrupted
        return seconds

    connection = duckdb.connect()
    connection.create_function("sleep", sleep, ["DOUBLE"], "DOUBLE")
    session = DuckDB(connection)
    try:
        threading.Timer(0.3, _thread.interrupt_main).start()
        with pytest.raises(KeyboardInterrupt), session.transaction():
            session.execute("SELECT sleep(60)", "sleeping")
        with pytest.raises(EngineError, match="end this process"):
            session.rows("SELECT 1", "going on")
        session.drop_temporary("t")
        session.close()
    finally:
        slept.set()


# --- how a table is kept --------------------------------------------------------------------------


def compressions(connection, table):
    """How the numbers of each column are kept."""
    rows = connection.execute(
        "SELECT column_name, compression FROM pragma_storage_info(?)"
        " WHERE segment_type IN ('FLOAT', 'DOUBLE')",
        [table],
    ).fetchall()
    return {name: [how for other, how in rows if other == name] for name, _ in rows}


@pytest.fixture
def file(tmp_path):
    """A database in a file, as only such a one is compressed."""
    with contextlib.closing(duckdb.connect(tmp_path / "w.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT (random() * 16)::FLOAT AS a, (i % 7)::FLOAT AS b,"
            " (i / 7)::FLOAT AS c, i AS id FROM range(3000) AS s(i)"
        )
        yield connection


SINGLE = sqlkrp.KRP(2, 6, dtype="float32", random_state=0)

KEPT = {
    "decimal": "(i / 8)::DECIMAL(18,3)",
    "moment": "TIMESTAMPTZ '2026-01-01 00:00:00+00' + INTERVAL (i) MINUTE",
    "text": "'it''s ' || i",
    "mood": "(CASE i % 2 WHEN 0 THEN 'a''b' ELSE 'c' END)::mood",
    "record": "{'a \"b\"': i, 'c': [i, i]}",
    "nothing": "NULL",
}


@pytest.mark.parametrize("kept", KEPT)
def test_a_table_that_is_declared_holds_what_the_plain_one_does(file, kept):
    """Features in single precision do not get smaller, and are not tried to be made so."""
    file.execute("CREATE TYPE mood AS ENUM ('a''b', 'c')")
    file.execute(f'CREATE TABLE k AS SELECT a, b, c, {KEPT[kept]} AS "k ""1""" FROM t, range(1, 2) '
                 "AS s(i)")  # fmt: skip
    krp = SINGLE.fit(["a", "b", "c"])
    with sqlkrp.connect(file) as db:
        db.create(krp, "k", "f", keep=['k "1"'])
        db.create(krp, "k", "f", keep=['k "1"'], replace=True)
        there = db.relation(krp, "k", keep=['k "1"'])
        texts = "SELECT COLUMNS(*)::VARCHAR FROM "
        assert file.execute(f"{texts} f").fetchall() == file.execute(f"{texts} there").fetchall()
        types = dict(zip(there.columns, map(str, there.types), strict=True))
    assert {row[0]: row[1] for row in file.execute("DESCRIBE f").fetchall()} == types
    file.execute("CHECKPOINT")
    plain = kept not in ("mood", "record", "nothing")  # types with texts in them, or no name
    found = compressions(file, "f")
    assert all(set(found[name]) == {"Uncompressed"} for name in krp.program.names) or not plain


def test_what_gets_smaller_is_compressed(file):
    file.execute("CREATE TABLE doubles AS SELECT a::DOUBLE AS a, b::DOUBLE AS b, c FROM t")
    signs = sqlkrp.RankOneProjection(6, binary=True, random_state=0).fit(["a", "b", "c"])
    krp = sqlkrp.KRP(2, 6, random_state=0, dtype="float64").fit(["a", "b", "c"])
    with sqlkrp.connect(file) as db:
        db.create(signs, "t", "s")
        db.create(krp, "doubles", "d")
    file.execute("CHECKPOINT")
    for table in ("s", "d"):
        assert not any("Uncompressed" in how for how in compressions(file, table).values())


def test_a_database_in_memory_is_made_the_plain_way(file):
    krp = SINGLE.fit(["a", "b", "c"])
    file.execute("ATTACH ':memory:' AS other")
    with sqlkrp.connect(file) as db:
        # One transaction writes to one database: the comment, and all that makes the table, too.
        assert db.create(krp, "t", "other.main.f").rows == 3000
        assert db.create(krp, "t", "f", keep=["id"]).rows == 3000


def test_a_declared_table_that_fails_is_not_there(file):
    krp = SINGLE.fit(["a", "b", "c"])
    with sqlkrp.connect(file) as db:
        db.create(krp, "t", "f")
        file.execute("CREATE VIEW v AS SELECT CASE WHEN id = 2999 THEN error('gone') END AS a, b, c"
                     " FROM t")  # fmt: skip
        with pytest.raises(sqlkrp.SqlkrpError):
            db.create(krp, "v", "f", replace=True)
    assert file.execute("SELECT COUNT(*) FROM f").fetchone() == (3000,)


def test_numbers_that_single_precision_holds_are_cast_once(file):
    krp = SINGLE.fit(["a", "b", "c"])
    with sqlkrp.connect(file) as db:
        run = db.create(krp, "t", "f")
        assert "DOUBLE" not in run.statement.text
        # There is no cast from BIGNUM to FLOAT; and who reads a view may find another type.
        file.execute("CREATE TABLE big AS SELECT a, b::BIGINT::BIGNUM AS b, c FROM t")
        file.execute("CREATE TABLE little AS SELECT a, b::UTINYINT AS b, c FROM t")
        assert "DOUBLE" not in db.create(krp, "little", "i").statement.text
        assert db.create(krp, "big", "g").statement.text.count("AS DOUBLE") == 1
        assert db.create(krp, "t", "h", view=True).statement.text.count("AS DOUBLE") == 3
    assert file.execute("FROM f").fetchall() == file.execute("FROM g").fetchall()
    assert file.execute("FROM f").fetchall() == file.execute("FROM h").fetchall()
    assert file.execute("FROM f").fetchall() == file.execute("FROM i").fetchall()


def test_parquet_has_groups_of_rows_that_fit_into_memory(file, tmp_path):
    """By itself DuckDB makes groups of 122,880 rows, whatever these hold."""
    krp = sqlkrp.KRP(2, 2000, dtype="float32", random_state=0).fit(["a", "b", "c"])
    two = "CAST(CASE WHEN id > 5 THEN [a, b] END AS FLOAT[2]) AS two"
    file.execute(f"CREATE TABLE more AS SELECT a, b, c, {two} FROM t, range(7)")
    with sqlkrp.connect(file) as db:
        db.export(krp, "more", tmp_path / "wide.parquet", keep=["two"])
        db.export(krp.select(range(3)), "more", tmp_path / "few.parquet")
    wide, few = (
        pyarrow.parquet.ParquetFile(tmp_path / f"{one}.parquet") for one in ("wide", "few")
    )
    assert wide.metadata.num_rows == few.metadata.num_rows == 21_000
    # 2,000 features of 4 bytes: 8,000 rows are 64 MB, and groups are whole vectors of 2,048.
    sizes = [wide.metadata.row_group(i).num_rows for i in range(wide.num_row_groups)]
    assert max(sizes) == 6_144
    assert few.num_row_groups == 1
    # Where rows are mostly noise, little is saved by packing it well.
    packed = [one.metadata.row_group(0).column(2).compression for one in (wide, few)]
    assert packed == ["SNAPPY", "ZSTD"]
    assert wide.read(["two"]).column(0).null_count == 7 * 6  # arrays of a fixed size, as lists


@pytest.fixture
def met_by_two_threads(file):
    """A view that only two threads can read; by itself DuckDB reads a group of rows in one."""
    met, known = threading.Barrier(2), threading.local()

    def meet(value: float) -> float:
        if not hasattr(known, "met"):
            known.met = met.wait(timeout=20)  # it fails where no second thread comes
        return value

    file.execute("SET threads = 2")
    file.create_function("meet", meet, side_effects=True)
    file.execute("CREATE VIEW v AS SELECT meet(a) AS a, b, c, id FROM t")
    return "v"


def threads_that_read(file):
    seen = set()
    file.create_function("see", lambda value: seen.add(threading.get_ident()) or value, ["BIGINT"],
                         "BIGINT", side_effects=True)  # fmt: skip
    file.execute("SELECT sum(see(id)) FROM t")
    return len(seen)


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz", "f.parquet"])
def test_wide_rows_of_a_small_table_are_computed_by_several_threads(
    file, tmp_path, met_by_two_threads, name
):
    krp = sqlkrp.KRP(2, 140, dtype="float32", nulls="zero", random_state=0).fit(["a", "b", "c"])
    with sqlkrp.connect(file) as db:
        db.export(krp, met_by_two_threads, tmp_path / name, keep=["id"])
    ids = file.execute(f"SELECT id FROM '{tmp_path / name}'").fetchall()
    assert ids == [(i,) for i in range(3000)]  # their order stays
    assert threads_that_read(file) == 1  # afterwards the connection is as it was


@pytest.mark.parametrize("fails", [False, True])
def test_much_work_for_few_rows_is_done_by_several_threads(
    file, met_by_two_threads, monkeypatch, fails
):
    monkeypatch.setattr(duckdb_writing, "_MUCH_WORK", 1_000)
    # Only of a table are rows counted before, and no table can wait for a second thread.
    monkeypatch.setattr(duckdb_writing.Writing, "has_rows", lambda self, table: True)
    krp = sqlkrp.KRP(2, 20, nulls="zero", random_state=0).fit(["a", "b", "c"])
    with sqlkrp.connect(file) as db:
        if fails:
            monkeypatch.setattr(type(db._session), "comment", raising)
            with pytest.raises(RuntimeError, match="no comment"):
                db.create(krp, met_by_two_threads, "f", keep=["id"], output="array")
        else:
            db.create(krp, met_by_two_threads, "f", keep=["id"], output="array")
            ids = file.execute("SELECT id FROM f").fetchall()
            assert ids == [(i,) for i in range(3000)]
    assert threads_that_read(file) == 1


def raising(*_, **__):
    raise RuntimeError("no comment")


def test_wide_rows_are_written_where_duckdb_has_no_small_tasks(file, tmp_path, monkeypatch):
    monkeypatch.setattr(duckdb_writing, "_SMALL_TASKS", "no_such_pragma")
    krp = sqlkrp.KRP(2, 140, dtype="float32", random_state=0).fit(["a", "b", "c"])
    with sqlkrp.connect(file) as db:
        assert db.export(krp, "t", tmp_path / "f.csv").rows == 3000


@pytest.mark.parametrize("rows", [0, 3000])
def test_gzip_is_compressed_in_parts_that_are_one_file(file, tmp_path, monkeypatch, rows):
    monkeypatch.setattr(gzips, "_PART_BYTES", 10_000)
    file.execute(f"CREATE TABLE part AS FROM t LIMIT {rows}")
    krp = SINGLE.fit(["a", "b", "c"])
    with sqlkrp.connect(file) as db:
        for name in ("f.csv", "f.csv.gz"):
            db.export(krp, "part", tmp_path / name, keep=["id"])
    packed, plain = (tmp_path / "f.csv.gz").read_bytes(), (tmp_path / "f.csv").read_bytes()
    assert gzip.decompress(packed) == plain
    assert (packed.count(b"\x1f\x8b\x08\x00\x00") > 1) == (rows > 0)  # how each part begins
    read = "FROM read_csv('{}', header = true, all_varchar = true)"
    found = [
        file.execute(read.format(tmp_path / name)).fetchall() for name in ("f.csv", "f.csv.gz")
    ]
    assert found[0] == found[1]
    assert len(found[0]) == rows


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk")
def test_a_failed_gzip_tells_why(tmp_path):
    file = gzips.GzipWriter(Path("/dev/full"))
    file.write(b"1,2")
    with pytest.raises(OSError, match="No space left"):
        file.close()
    assert file.closed


def test_after_a_large_csv_the_quicker_kind_of_file_is_named(file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(duckdb_writing, "_LARGE_CSV", 150_000)
    monkeypatch.setattr(duckdb_writing, "_HAS_PIPES", False)  # as where DuckDB itself compresses
    krp = SINGLE.fit(["a", "b", "c"])
    krp.save(tmp_path / "map.json")
    with sqlkrp.connect(file) as db:
        better = {
            name: db.export(krp.select(range(count)), "t", tmp_path / name).better
            for name, count in (("few.csv", 3), ("f.csv", 6), ("f.parquet", 6))
        }
        assert "better='.parquet" in repr(db.export(krp, "t", tmp_path / "f.csv", replace=True))
    size = (tmp_path / "f.csv").stat().st_size
    assert better["few.csv"] is None
    assert better["f.parquet"] is None
    # 3,000 rows of 6 features of 4 bytes.
    sizes = f"about {72_000 / 1024:.3g} kB in place of {size / 1024:.0f} kB"
    assert better["f.csv"] == f".parquet, several times as quick to write and to read: {sizes}"
    file.close()
    where = ["--db", str(tmp_path / "w.duckdb"), "--table", "t", "--to", str(tmp_path / "g.csv.gz")]
    monkeypatch.setattr(duckdb_writing, "_LARGE_CSV", 50_000)
    assert main(["export", str(tmp_path / "map.json"), *where]) == 0
    told = capsys.readouterr()
    assert "better  .parquet, several times as quick" in told.out + told.err


def test_an_export_of_features_is_planned_once(file, tmp_path, monkeypatch):
    """What it holds is known, and asking DuckDB takes half as long as planning."""
    asked, rows = [], DuckDB.rows
    monkeypatch.setattr(DuckDB, "rows", lambda *of: asked.append(of[1]) or rows(*of))
    krp = SINGLE.fit(["a", "b", "c"])
    with sqlkrp.connect(file) as db:
        db.export(krp, "t", tmp_path / "f.parquet", keep=["id"])
    assert not [one for one in asked if "krp_0" in one]


@pytest.mark.parametrize("holds", ["read", "write"])
def test_a_database_that_another_process_holds_is_told_with_what_to_do(
    tmp_path, monkeypatch, capsys, holds
):
    """In one line, which says who holds it; one that reads stands in the way of who writes."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("x.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1.5 AS a, 2.5 AS b")
    assert main(["draw", "x.duckdb", "--table", "t", "-o", "m.json", "--quiet"]) == 0
    held = f"duckdb.connect('x.duckdb', read_only={holds == 'read'})"
    code = f"import duckdb; one = {held}; print('open', flush=True); input()"
    run = ["run", "m.json", "--db", "x.duckdb", "--table", "t", "--into", "f"]
    draw = ["draw", "x.duckdb", "--table", "t", "-o", "other.json"]
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "open\n"
        capsys.readouterr()
        for command in [run] if holds == "read" else [run, draw]:
            assert main(command) == 2
            told = capsys.readouterr().err
            assert told.startswith("sqlkrp: cannot open x.duckdb: ")
            assert f"(PID {process.pid}) has it open, and one process may write to it" in told
            assert told.endswith("close it there, or try again when that has ended\n")
            assert told.count("\n") == 1
        process.communicate("\n")
    assert main(run) == 0


def test_a_database_that_is_open_in_this_process_is_told_with_what_to_do(tmp_path):
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        with pytest.raises(EngineError, match=r"cannot open .*: it is open in this process with"):
            sqlkrp.connect(tmp_path / "x.duckdb", read_only=True)
        assert sqlkrp.connect(connection).source("t")


@pytest.mark.parametrize("join", ["JOIN more USING (id)", "NATURAL JOIN more"])
def test_rows_of_joins_by_names_are_added_to_a_table_that_is_there(connection, join):
    """Of such a view DuckDB does not list the tables, by which it is seen what would be lost."""
    frame = dyadic(20, 4).assign(id=range(20))
    store(connection, frame[["id", "c0", "c1"]], "t")
    store(connection, frame[["id", "c2", "c3"]], "more")
    connection.execute(f"CREATE VIEW v AS SELECT * FROM t {join}")
    connection.execute('CREATE TABLE "a.b" AS FROM more')
    connection.execute('CREATE VIEW w AS SELECT * FROM t JOIN (FROM "a.b") USING (id)')
    connection.execute('CREATE TABLE "two\nlines" AS FROM more')
    connection.execute('CREATE VIEW x AS SELECT * FROM t JOIN (FROM "two\nlines") USING (id)')
    with sqlkrp.connect(connection) as db:
        krp = paper_krp(2, 5, random_state=0).fit([f"c{i}" for i in range(4)])
        for storage in ({"append": True}, {"append": True}, {"upsert": True}):
            rows = db.create(krp, "v", "f", key="id", **storage).rows
        assert rows == 20
        assert db.create(krp, "v", "f", replace=True).rows == 20
        for view, into in (
            ("v", "t"), ("v", "more"), ("v", "MAIN.more"), ("w", ("a.b",)), ("x", ("two\nlines",)),
        ):  # fmt: skip
            with pytest.raises(ParameterError, match="is read by this"):
                db.create(krp, view, into, replace=True)
        # Nor is one lost of which a view has no rows just now.
        connection.execute("CREATE VIEW few AS FROM v WHERE id > 100 AND id < 50")
        with pytest.raises(ParameterError, match="is read by this"):
            db.create(krp, "few", "more", replace=True)
        setting = "SELECT current_setting('explain_output')"
        assert connection.execute(setting).fetchone() == ("PHYSICAL_ONLY",)
        connection.execute("CREATE TABLE gone (id INTEGER); CREATE VIEW bad AS FROM v JOIN gone "
                           "USING (id); DROP TABLE gone")  # fmt: skip
        with pytest.raises(EngineError, match="gone"), db._session.transaction():
            db._session.reads('"bad"')
        assert connection.execute(setting).fetchone() == ("PHYSICAL_ONLY",)
        connection.execute("SET lock_configuration = true")
        with pytest.raises(ParameterError, match="is read by this"):
            db.create(krp, "v", "more", replace=True)
        assert connection.execute(setting).fetchone() == ("PHYSICAL_ONLY",)
    assert connection.execute("SELECT COUNT(c2) FROM more").fetchone() == (20,)
