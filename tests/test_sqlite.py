"""SQLite as an engine: tables, views, exports, limits, and columns that may hold anything."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
from support import bytes_of, dyadic, forms_of, paper_krp

import sqlkrp
from sqlkrp.engines.sqlite import SQLite
from sqlkrp.errors import (
    ColumnError,
    EngineError,
    LimitError,
    MissingValueError,
    ParameterError,
)
from sqlkrp.sql.dialects import DIALECTS

FORMS = forms_of("sqlite")

COLUMNS = [f"c{i}" for i in range(6)]
FRAME = dyadic(40, 6).assign(id=range(40))


def store(connection, frame, table="t"):
    types = {"float64": "DOUBLE", "int64": "INTEGER"}
    columns = ", ".join(f'"{name}" {types.get(str(frame[name].dtype), "TEXT")}' for name in frame)
    connection.execute(f"CREATE TABLE {table} ({columns})")
    places = ", ".join("?" for _ in frame)
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False)
    connection.executemany(f"INSERT INTO {table} VALUES ({places})", map(tuple, rows))
    connection.commit()


@pytest.fixture
def path(tmp_path):
    (tmp_path / "db").mkdir()
    file = tmp_path / "db" / "w.sqlite"
    connection = sqlite3.connect(file)
    store(connection, FRAME.assign(name="x"))
    connection.close()
    return file


@pytest.fixture
def stored(path):
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


@pytest.fixture
def db(stored):
    with sqlkrp.connect(stored) as opened:
        yield opened


def objects(connection):
    rows = connection.execute(
        "SELECT name FROM sqlite_master UNION ALL SELECT name FROM temp.sqlite_master ORDER BY name"
    )
    return [row[0] for row in rows]


def test_inside_the_user_s_transaction_it_is_the_user_s_to_end(db, krp, stored):
    stored.execute("INSERT INTO t SELECT * FROM t")
    assert stored.in_transaction
    db.create(krp, "t", "f", form="tables")
    with pytest.raises(EngineError):
        db.create(krp, "t", "nowhere.f")
    assert stored.in_transaction
    stored.rollback()
    assert objects(stored) == ["t"]
    assert stored.execute("SELECT COUNT(*) FROM t").fetchone() == (40,)


# --- columns that may hold anything ---------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_text_in_a_column_of_numbers_is_missing_and_not_zero(db, krp, stored, form):
    stored.execute("CREATE TABLE loose (c0, c1 INTEGER, c2 REAL, c3 NUMERIC, c4 DOUBLE, c5 INT)")
    stored.execute("INSERT INTO loose VALUES (1, 2, 3, 4, 5, 6), (1.5, 'abc', 3, 4, 5, 6)")
    stored.commit()
    with pytest.raises(MissingValueError, match=r"'c1' \(1\)"):
        db.create(krp, "loose", "f", form=form)
    zero = paper_krp(2, 5, n_terms=2, nulls="zero", random_state=0).fit(db.source("loose"))
    assert zero.n_features_in_ == 6
    assert db.verify(zero, "loose", form=form).ok
    db.create(zero, "loose", "f", form=form)
    found = np.array(stored.execute("SELECT * FROM f").fetchall())
    twin = zero.transform([[1, 2, 3, 4, 5, 6], [1.5, np.nan, 3, 4, 5, 6]])
    assert np.allclose(np.sort(found, axis=0), np.sort(twin, axis=0), rtol=1e-12)


def test_the_types_of_a_view_s_expressions_are_those_of_their_values(db, stored):
    stored.execute("CREATE VIEW v AS SELECT c0 + 1 AS a, name || '!' AS b, c1, NULL AS n FROM t")
    krp = paper_krp(2, 3).fit(db.source("v"))
    assert krp.feature_names_in_.tolist() == ["a", "c1", "n"]
    assert krp.left_out_ == {"b": "TEXT"}


def test_truth_values_and_declared_types(db, stored):
    stored.execute(
        "CREATE TABLE n (a BOOLEAN, b DECIMAL(10, 2), c VARCHAR(10), d DATETIME, e BIGINT, f FLOAT)"
    )
    stored.execute("INSERT INTO n VALUES (1, 2.5, 'x', '2020-01-01', 9007199254740993, 0.1)")
    krp = paper_krp(2, 3, random_state=0).fit(db.source("n"))
    assert krp.feature_names_in_.tolist() == ["a", "b", "e", "f"]
    assert krp.program_.prepare.booleans == ("a",)
    assert db.verify(krp, "n").ok


# --- limits ---------------------------------------------------------------------------------------


def test_more_columns_than_a_union_has_branches(db, stored):
    frame = dyadic(5, 1100)
    store(stored, frame, "broad")
    krp = paper_krp(2, 6, n_terms=2, random_state=0).fit(db.source("broad"))
    for form in FORMS:
        assert db.verify(krp, "broad", form=form).ok


@pytest.mark.slow
def test_what_is_too_wide_goes_by_tables_or_is_refused(db, stored):
    krp = paper_krp(2, 900, n_hyperplanes=2100, n_terms=2, random_state=0).fit(COLUMNS)
    stored.execute("DELETE FROM t WHERE id > 4")
    stored.commit()
    assert db.create(krp, "t", "f").statement.form == "tables"
    assert db.verify(krp, "t").ok
    with pytest.raises(LimitError, match="at most 2,000 entries in a SELECT"):
        db.create(krp, "t", "g", form="wide")
    with pytest.raises(LimitError, match="sqlite has no arrays"):
        db.create(krp, "t", "g", output="array")
    many = paper_krp(2, 2001, n_terms=1, random_state=0).fit(COLUMNS)
    with pytest.raises(LimitError, match="fewer components"):
        db.export(many, "t", "f.csv")
    assert objects(stored) == ["f", "t"]


# --- files ----------------------------------------------------------------------------------------


def test_files_are_known_by_what_they_hold(path, tmp_path, krp):
    other = tmp_path / "w.db"  # a DuckDB file as a rule
    other.write_bytes(path.read_bytes())
    with sqlkrp.connect(other, read_only=True) as db:
        assert db.verify(krp, "t").ok
        assert db.verify(krp, "t", form="tables").ok
        with pytest.raises(EngineError, match="readonly"):
            db.create(krp, "t", "f")
    with sqlkrp.connect(tmp_path / "new.sqlite", create=True) as db:
        assert isinstance(db.connection, sqlite3.Connection)
    with pytest.raises(ParameterError, match="SQLite has neither"):
        sqlkrp.connect(path, threads=2)
    with pytest.raises(ParameterError, match="no engine here is reached by mysql://"):
        sqlkrp.connect("mysql://x")
    with pytest.raises(ColumnError, match="no such table: nowhere"), sqlkrp.connect(path) as db:
        db.source("nowhere")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("act", ["run", "export"])
def test_what_is_stopped_half_way_leaves_nothing(path, tmp_path, act, number, stored, run_cli):
    columns = ", ".join(f"abs(random() % 1000) / 8.0 AS c{i}" for i in range(6))
    stored.execute(
        f"CREATE TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        f" WHERE i < 200000) SELECT {columns} FROM n"
    )
    stored.close()
    krp = paper_krp(2, 300, pool="hadamard", random_state=0).fit(COLUMNS)
    krp.save(tmp_path / "m.json")
    target = {"run": ["--into", "f"], "export": ["--to", "f.csv"]}[act]

    def command(table):
        return [act, "m.json", "--db", str(path), "--table", table, *target]

    def begun():
        grown = [p for p in path.parent.iterdir() if p.name.endswith("-journal")]
        return grown or any(bytes_of(p) > 100_000 for p in parts())

    def parts():
        return [p for p in tmp_path.iterdir() if ".sqlkrp-" in p.name]

    process = subprocess.Popen(
        [sys.executable, "-m", "sqlkrp", *command("big")], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not begun():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    if number == signal.SIGINT:
        assert (process.returncode, err) == (
            130, "sqlkrp: interrupted; nothing was left behind\n",
        )  # fmt: skip
        assert parts() == []
    assert not (tmp_path / "f.csv").exists()
    run_cli(*command("t"))
    assert parts() == []
    with sqlite3.connect(path) as connection:
        assert objects(connection) == (["big", "f", "t"] if act == "run" else ["big", "t"])
    connection.close()


# --- what was wrong once ---------------------------------------------------------------------


def test_a_commit_that_fails_leaves_no_transaction_open(path, krp):
    reader, writer = sqlite3.connect(path), sqlite3.connect(path, timeout=0)
    pending = reader.execute("SELECT * FROM t")
    pending.fetchone()
    db = sqlkrp.connect(writer)
    with pytest.raises(EngineError, match="locked"):
        db.create(krp, "t", "f")
    assert not writer.in_transaction
    pending.close()
    reader.close()
    assert db.create(krp, "t", "g").rows == 40
    writer.close()
    again = sqlite3.connect(path)
    assert objects(again) == ["g", "t"]
    again.close()


def test_a_name_that_is_no_column_is_an_error_and_not_a_text(stored):
    krp = paper_krp(2, 3, nulls="zero", random_state=0).fit(["c0", "nope"])
    for stage in ("features", "projection"):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            stored.execute(krp.to_sql("t", dialect="sqlite", stage=stage))


def test_the_user_s_ways_are_the_user_s(stored, krp):
    def as_dict(cursor, row):
        return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}

    def guard(action, table, *others):
        return sqlite3.SQLITE_DENY if table == "secret" else sqlite3.SQLITE_OK

    stored.execute("CREATE TABLE secret AS SELECT 1 AS a")
    stored.row_factory, stored.text_factory = as_dict, bytes
    stored.set_authorizer(guard)
    db = sqlkrp.connect(stored)
    scaled = paper_krp(2, 3, scaling="standard", random_state=0).fit(db.source("t"))
    for form in FORMS:
        db.create(scaled, "t", "f", form=form, replace=True)
        assert db.verify(krp, "t", form=form).ok
    assert (stored.row_factory, stored.text_factory) == (as_dict, bytes)
    with pytest.raises(sqlite3.DatabaseError, match="prohibited"):
        stored.execute("SELECT * FROM secret")


def test_only_a_signal_is_taken_for_a_signal(stored, krp):
    threading.Timer(0.3, stored.interrupt).start()
    columns = ", ".join(f"abs(random() % 1000) / 8.0 AS c{i}" for i in range(6))
    slow = (
        "CREATE VIEW slow AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE"
        f" i < 50000000) SELECT {columns} FROM n"
    )
    stored.execute(slow)
    with pytest.raises(EngineError, match="interrupted"):
        sqlkrp.connect(stored).create(krp, "slow", "f")

    def ring(number, frame):
        raise TimeoutError("too long")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(TimeoutError, match="too long"):
            sqlkrp.connect(stored).create(krp, "slow", "f")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert objects(stored) == ["slow", "t"]


def test_the_parser_s_stack_is_foreseen(db, stored):
    names = [f"c{i}" for i in range(500)]
    store(stored, dyadic(3, 500, names=names), "broad")
    krp = paper_krp(
        2,
        6,
        n_terms=2,
        pool="hadamard",
        block_size=512,
        nulls="propagate",
        scaling="unit",
        random_state=0,
    )
    krp.fit(names)
    with pytest.raises(LimitError, match="places of the parser's stack"):
        db.create(krp, "broad", "f", form="wide")
    assert krp.statement("broad", dialect="sqlite").form == "tables"


@pytest.mark.parametrize("nulls", ["error", "zero", "propagate"])
def test_what_is_no_number_in_single_precision_is_missing(db, stored, nulls):
    stored.execute("CREATE TABLE huge (a REAL, b REAL)")
    stored.execute("INSERT INTO huge VALUES (1e300, 1), (2, 3)")
    krp = paper_krp(2, 3, dtype="float32", nulls=nulls, n_terms=1, random_state=0).fit(["a", "b"])
    for form in FORMS:
        if nulls == "error":
            with pytest.raises(MissingValueError):
                db.verify(krp, "huge", form=form)
        else:
            assert db.verify(krp, "huge", form=form).ok


def test_subclasses_are_connections_and_closed_ones_are_said(path, krp):
    class Own(sqlite3.Connection):
        pass

    own = sqlite3.connect(path, factory=Own)
    db = sqlkrp.connect(own)
    assert db.verify(krp, "t").ok
    own.close()
    with pytest.raises((EngineError, ColumnError), match="closed"):
        db.create(krp, "t", "f")


def test_any_sqlite_file_is_a_source(run_cli, path, tmp_path):
    (tmp_path / "data.s3db").write_bytes(path.read_bytes())
    assert (
        "6: c0, c1, c2, c3, c4, c5"
        in run_cli("draw", "data.s3db", "--table", "t", "--exclude", "id", "-o", "m.json").stdout
    )


@pytest.mark.parametrize("form", FORMS)
def test_an_open_cursor_is_in_nobody_s_way(stored, krp, form):
    cursor = stored.execute("SELECT * FROM t")
    assert cursor.fetchone()
    db = sqlkrp.connect(stored)
    for into in ("f", "g"):
        assert db.verify(krp, "t", form=form).ok
        db.create(krp, "t", into, form=form)
    assert len(cursor.fetchall()) == 39
    db.close()
    assert objects(stored) == ["f", "g", "t"]


def test_an_export_does_not_replace_the_database_it_reads(run_cli, path, tmp_path):
    (tmp_path / "w.csv").write_bytes(path.read_bytes())
    run_cli("draw", "w.csv", "--table", "t", "--exclude", "id", "-o", "m.json")
    options = ("m.json", "--db", "w.csv", "--table", "t", "--to", "w.csv", "--replace")
    assert "is read by this" in run_cli("export", *options, code=2).stderr
    assert (tmp_path / "w.csv").read_bytes() == path.read_bytes()


def test_a_run_waits_for_another_writer(path, krp):
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("CREATE TABLE other (a)")
    threading.Timer(0.5, writer.execute, ["COMMIT"]).start()
    with sqlkrp.connect(path) as db:
        assert db.create(krp, "t", "f").rows == 40
        writer.execute("BEGIN IMMEDIATE")
        db.connection.execute("PRAGMA busy_timeout = 100")
        with pytest.raises(EngineError, match="locked: another connection is at work"):
            db.create(krp, "t", "g")
        assert db.verify(krp, "t").ok  # reading waits for nobody
    writer.close()


def test_rows_that_are_fetched_in_parts_are_all_written_and_counted(
    db, stored, krp, tmp_path, monkeypatch
):
    monkeypatch.setattr("sqlkrp.engines.sqlite._ROWS_AT_ONCE", 7)
    assert db.export(krp, "t", tmp_path / "f.csv", keep=["id"]).rows == 40
    assert sorted(pd.read_csv(tmp_path / "f.csv")["id"]) == list(range(40))


def test_kept_blobs_are_written_as_hexadecimal(db, stored, krp, tmp_path):
    stored.execute("ALTER TABLE t ADD b BLOB")
    stored.execute("UPDATE t SET b = x'01ff'")
    db.export(krp, "t", tmp_path / "f.csv", keep=["b"])
    assert (tmp_path / "f.csv").read_text().splitlines()[1].startswith("01ff,")


def test_the_tables_form_reads_wide_tables_in_few_parts():
    krp = paper_krp(2, 3, random_state=0).fit([f"c{i}" for i in range(1990)])
    text = krp.to_sql("t", form="tables", dialect="sqlite")
    # Each part copies the whole SELECT of its source while the statement is read.
    assert text.count("FROM source CROSS JOIN") == -(-1990 // 40)


def test_sparse_rows_may_have_texts_for_keys():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE e (r TEXT, f TEXT, v REAL)")
    connection.execute("INSERT INTO e VALUES ('x', 'a', 1), ('y', 'b', 2)")
    connection.commit()
    krp = paper_krp(2, 3, n_hyperplanes=20, random_state=0).fit(["a", "b"])
    for form in FORMS:
        with sqlkrp.connect(connection) as db:
            assert db.verify(krp, "e", long=("r", "f", "v"), form=form).ok


def test_a_signal_is_heard_whenever_it_comes(stored):
    session = SQLite(stored)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000)"

    def ring(number, frame):
        raise TimeoutError("too long")

    def count_for(seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        session.rows(f"{numbers} SELECT COUNT(*) FROM n", "counting")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for microseconds in range(50, 5000, 50):  # some of them before the engine asks at first
            with pytest.raises(TimeoutError, match="too long"):
                count_for(microseconds / 1e6)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["true", "False"])
def test_columns_named_as_truth_values_keep_their_names(db, stored, form, name, tmp_path):
    frame = dyadic(5, 3, names=[name, "b", "column1"]).assign(**{f"{name} ": 1.0})
    store(stored, frame, "truths")
    krp = paper_krp(2, 3, n_terms=1, coef0=0.0, gamma=1.0, random_state=0)
    krp.fit(db.source("truths"), exclude=[f"{name} "])
    assert db.verify(krp, "truths", form=form).rows == 5
    assert db.verify(krp, "truths", form=form, sample=2).ok
    names = [name, "column1", "krp_0", "krp_1", "krp_2"]
    db.create(krp, "truths", "f", keep=[name, "column1"], form=form)
    assert [row[1] for row in stored.execute("PRAGMA table_info(f)")] == names
    found = stored.execute("SELECT * FROM f").fetchall()
    assert np.allclose(np.array(found)[:, :2], frame[[name, "column1"]])
    db.export(krp, "truths", tmp_path / "f.csv", keep=[name], form=form)
    assert pd.read_csv(tmp_path / "f.csv").columns[0] == name
    if form == "wide":
        with pytest.raises(ColumnError, match=f"no views with a column named '{name}'"):
            db.create(krp, "truths", "v", keep=[name], view=True)
        assert "v" not in objects(stored)


def test_bytes_of_any_row_are_exported_as_hexadecimal_digits(tmp_path):
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (id, a REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [("x", 1.0), (b"\x01\xff", 2.0)])
        krp = paper_krp(2, 2, random_state=0).fit(["a"])
        sqlkrp.connect(connection).export(krp, "t", tmp_path / "f.csv", keep=["id"])
    rows = (tmp_path / "f.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["x", "01ff"]


def test_a_view_of_what_the_limit_allows_fits_on_the_parser_s_stack():
    limit = DIALECTS["sqlite"].limits.parser_stack
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a)")
    for selects in range(1, 13):
        # A SELECT in another takes seven places: one of them is its parenthesis.
        parentheses = limit - 7 * (selects - 1)
        sql = f"SELECT {'(' * parentheses}a{')' * parentheses} AS a FROM t"
        for _ in range(selects - 1):
            sql = f"SELECT a FROM ({sql}) AS inner_one"
        connection.execute(f"CREATE TEMPORARY VIEW v{selects} AS\n{sql}")


def test_a_file_that_cannot_be_opened_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "text.sqlite").write_text("no database at all")
    opened, connect = [], sqlite3.connect

    def noted(*names, **how):
        opened.append(connect(*names, **how))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    with pytest.raises(EngineError, match="is no SQLite database: give one"):
        sqlkrp.connect(tmp_path / "text.sqlite")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[-1].execute("SELECT 1")


@pytest.mark.slow
def test_a_file_that_is_written_to_is_told_with_what_to_do(tmp_path):
    path = tmp_path / "w.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (a REAL)")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(EngineError, match="another program is writing to it; try again when"):
            sqlkrp.connect(path)
