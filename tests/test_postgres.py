"""PostgreSQL as an engine: tables, views, exports, privileges, limits. On a real server."""

import contextlib
import csv
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pglast
import psycopg
import pytest
from engines import Postgres as Place
from pglast.visitors import Visitor
from postgres_server import Server, running
from support import dyadic, forms_of, paper_krp, wait_until

import sqlkrp
from sqlkrp.engines import database
from sqlkrp.engines.postgres import Postgres
from sqlkrp.errors import (
    ColumnError,
    EngineError,
    LimitError,
    ParameterError,
    RangeWarning,
)

FORMS = forms_of("postgres")

COLUMNS = [f"c{i}" for i in range(6)]
FRAME = dyadic(40, 6).assign(id=range(40))


def store(connection, frame, table="t"):
    types = {
        "float64": "DOUBLE PRECISION",
        "float32": "REAL",
        "int64": "INTEGER",
        "bool": "BOOLEAN",
    }
    columns = ", ".join(f'"{name}" {types.get(str(frame[name].dtype), "TEXT")}' for name in frame)
    connection.execute(f"CREATE TABLE {table} ({columns})")
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False):
            copy.write_row(row)


@pytest.fixture
def stored(postgres):
    store(postgres, FRAME.assign(name="x"))
    return postgres


@pytest.fixture
def db(stored):
    with sqlkrp.connect(stored) as opened:
        yield opened


def objects(connection):
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND ("
        " relnamespace = current_schema()::regnamespace OR relpersistence = 't') ORDER BY 1"
    ).fetchall()
    return [row[0] for row in rows]


def features(connection, table="f", skip=0):
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    return np.array([row[skip:] for row in rows], dtype=float)


# --- versions -------------------------------------------------------------------------------------


class Unnamed(Visitor):
    """Looks for what stands in FROM as a SELECT without a name, which Postgres has from 16 on."""

    def __init__(self):
        super().__init__()
        self.found = False

    def visit_RangeSubselect(self, ancestors, node):  # noqa: N802 - so it is called
        self.found = self.found or node.alias is None


@pytest.fixture
def sent(monkeypatch):
    """Every statement that is sent."""
    statements = []
    for name in ("execute", "copy"):
        send = getattr(psycopg.Cursor, name)

        def noted(cursor, query, *more, send=send, **others):
            statements.append(query)
            return send(cursor, query, *more, **others)

        monkeypatch.setattr(psycopg.Cursor, name, noted)
    return statements


def unnamed(statements):
    """Those that Postgres 15 would not parse."""
    for statement in dict.fromkeys(statements):
        looked = Unnamed()
        looked(pglast.parse_sql(statement.replace("%s", "NULL")))
        if looked.found:
            yield statement


def test_what_is_selected_from_has_a_name(sent, postgres):
    """Of texts as categories, of rows that a key or limit chooses, and of sparse input."""
    frame = FRAME.assign(kind=np.array(["a", "b", None])[np.arange(40) % 3], y=FRAME.c0 * FRAME.c1)
    store(postgres, frame)
    names = ["c0", "c1", "kind"]
    long = [(i, f"c{c}", float(i + c)) for i in range(9) for c in range(2)]
    store(postgres, pd.DataFrame(long, columns=["r", "feature", "v"]), "entries")
    store(postgres, pd.DataFrame({"r": range(9), "v": range(9)}), "keys")
    sparse = {"long": ("r", "feature", "v")}
    with sqlkrp.connect(postgres) as db:
        model = sqlkrp.train(db.source("t"), "y", include=names)
        assert any(one.name not in frame for one in model.program.prepare.categories)
        db.report(model, "t", label="y", rows=20, runs=1)
        db.distortion(paper_krp(2, 5, random_state=0).fit(db.source("t"), ["c0", "c1"]), "t",
                      rows=20, runs=1)  # fmt: skip
        for limit, growth in ((5, "append"), (9, "append"), (9, "upsert"), (None, "append")):
            db.score(model, "t", into="scored", key="id", limit=limit, **{growth: True})
        db.score(model, "t", into="some", limit=5)
        assert db.verify(model, "t", result="scored", key="id").ok
        krp = sqlkrp.KRP(2, 5, random_state=0).fit(db.source("entries", **sparse))
        for others in ({}, {"rows": "keys"}):
            postgres.execute("DROP TABLE IF EXISTS f")
            for growth in ("append", "append", "upsert"):
                db.create(krp, "entries", "f", **sparse, **others, key="r", **{growth: True},
                          limit=7)  # fmt: skip
            assert db.verify(krp, "entries", **sparse, **others).ok
            assert db.verify(krp, "entries", result="f", key="r", **sparse, **others).ok
    assert len(sent) > 100
    assert list(unnamed(sent)) == []
    assert list(unnamed(["SELECT 1 FROM (SELECT 2)"]))


# --- creating -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "kind"), [("float32", "real[]"), ("float64", "double precision[]")]
)
def test_an_array_column_and_how_it_is_stored(db, stored, dtype, kind):
    krp = paper_krp(2, 900, dtype=dtype, n_terms=2, random_state=0).fit(COLUMNS)
    db.create(krp, "t", "f", output="array")
    ((found, pages),) = stored.execute(
        "SELECT pg_typeof(krp)::text, (SELECT COUNT(*) FROM pg_class c JOIN pg_class t"
        " ON t.oid = c.reltoastrelid WHERE c.relname = 'f' AND pg_relation_size(t.oid) > 0)"
        " FROM f LIMIT 1"
    ).fetchall()
    # The arrays stay in their rows, whole: nothing is moved to the side.
    assert (found, pages) == (kind, 0)
    values = np.array([row[0] for row in stored.execute("SELECT krp FROM f").fetchall()])
    assert np.allclose(
        values, krp.transform(FRAME[COLUMNS]), rtol=1e-4 if dtype == "float32" else 1e-12
    )


def test_what_others_depend_on_is_not_replaced(db, krp, stored):
    db.create(krp, "t", "f")
    stored.execute("CREATE VIEW w AS SELECT * FROM f")
    with pytest.raises(EngineError, match="drop what depends on it first"):
        db.create(krp, "t", "f", replace=True)
    assert objects(stored) == ["f", "t", "w"]


def test_types_of_every_kind_of_number(db, stored):
    stored.execute(
        "CREATE TABLE n (a SMALLINT, b INTEGER, c BIGINT, d NUMERIC(20, 3), e REAL,"
        " f DOUBLE PRECISION, g BOOLEAN, h TEXT, i NUMERIC);"
        "INSERT INTO n VALUES (1, 2, 3, 4.5, 5.5, 6.5, true, 'x', 7),"
        " (-32768, 2147483647, 9223372036854775807, -1.125, 0, 1e300, false, 'y', 1e-7)"
    )
    krp = paper_krp(1, 4, s=1, n_terms=2, random_state=0).fit(db.source("n"))
    assert krp.feature_names_in_.tolist() == ["a", "b", "c", "d", "e", "f", "g", "i"]
    assert krp.left_out_ == {"h": "text"}
    for form in FORMS:
        assert db.verify(krp, "n", form=form).ok
    single = paper_krp(2, 4).fit(db.source("n"), include=["e"])
    assert single.program_.prepare.dtype == "float32"


# --- transactions and settings --------------------------------------------------------------------


def test_inside_the_user_s_transaction_it_is_the_user_s_to_end(postgres_url, krp):
    with psycopg.connect(postgres_url) as connection:  # not in autocommit, as psycopg's default
        store(connection, FRAME)
        connection.commit()
        db = sqlkrp.connect(connection)
        # Looking leaves no transaction open, so that creating is one of its own.
        paper_krp(2, 3).fit(db.source("t"))
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        db.create(krp, "t", "f")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        connection.execute("INSERT INTO t SELECT * FROM t")
        db.create(krp, "t", "g", form="tables")
        before = connection.execute("SHOW jit").fetchone()
        connection.rollback()
        assert objects(connection) == ["f", "t"]
        assert connection.execute("SELECT COUNT(*) FROM f").fetchone() == (40,)
        assert connection.execute("SHOW jit").fetchone() == before


def test_what_is_checked_is_what_is_written(stored, db, krp, postgres_url, monkeypatch):
    check = database.check_values

    def checked_and_changed(*given):
        found = check(*given)
        with psycopg.connect(postgres_url, autocommit=True) as another:
            another.execute("UPDATE t SET c1 = NULL")
        return found

    monkeypatch.setattr(database, "check_values", checked_and_changed)
    db.create(krp, "t", "f")
    assert stored.execute("SELECT COUNT(c1) FROM t").fetchone() == (0,)
    assert np.allclose(features(stored), krp.transform(FRAME), rtol=1e-12)


def test_jit_is_off_for_the_statement_only(db, krp, stored):
    stored.execute("CREATE VIEW s AS SELECT t.*, current_setting('jit') AS jit FROM t")
    stored.execute("SET jit = on")
    db.create(krp, "s", "f", keep=["jit"])
    assert stored.execute("SELECT DISTINCT jit FROM f").fetchall() == [("off",)]
    assert stored.execute("SHOW jit").fetchone() == ("on",)


def test_parallel_plans_are_allowed_through_the_fences(stored):
    krp = paper_krp(2, 5, pool="hadamard", block_size=4, n_terms=2, random_state=0).fit(COLUMNS)
    stored.execute(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
        "SET min_parallel_table_scan_size = 0"
    )
    text = krp.to_sql("t", form="wide", dialect="postgres", output="array")
    plan = [row[0] for row in stored.execute(f"EXPLAIN (COSTS OFF) {text}").fetchall()]
    assert plan[0].startswith("Gather")
    # Fenced: every stage is a step of its own, computed once a row.
    assert sum("Subquery Scan" in line for line in plan) == text.count("OFFSET '0'") >= 4


def workers(stored, fitted, table):
    """How many workers a run's statement is planned for, as the run itself would plan it."""
    session = Postgres(stored)
    text = fitted.to_sql(table, form="wide", dialect="postgres", output="array")
    with session.transaction():
        plan = session.rows(f"EXPLAIN (FORMAT JSON) {text}", "planning")[0][0][0]["Plan"]
    return plan.get("Workers Planned", 0)


def test_a_run_has_workers_where_the_work_is_worth_them(stored):
    names = [f"c{i}" for i in range(60)]
    krp = paper_krp(2, 200, pool="hadamard", random_state=0).fit(names)
    columns = ", ".join(f"i * {place} AS {name}" for place, name in enumerate(names))
    for table, rows in (("few", 20), ("many", 5_000)):
        made = f"SELECT {columns} FROM generate_series(1, {rows}) AS i"
        stored.execute(f"CREATE TABLE {table} AS {made}; ANALYZE {table}")
    ((size,),) = stored.execute("SELECT pg_relation_size('many')").fetchall()
    assert size < 8 * 2**20  # by default there are no workers for less
    assert (workers(stored, krp, "few"), workers(stored, krp, "many")) == (0, 2)
    # As many as the user allows, and no more.
    stored.execute("SET max_parallel_workers_per_gather = 0")
    assert workers(stored, krp, "many") == 0


def test_no_setting_is_left_behind(stored, krp):
    asked = "SELECT name, setting FROM pg_settings ORDER BY name"
    before = stored.execute(asked).fetchall()
    db = sqlkrp.connect(stored)
    db.create(krp, "t", "f")
    assert stored.execute(asked).fetchall() == before
    with stored.transaction():
        stored.execute("SET LOCAL parallel_setup_cost = 7")
        within = stored.execute(asked).fetchall()
        db.create(krp, "t", "g")
        assert stored.execute(asked).fetchall() == within


# --- exporting ------------------------------------------------------------------------------------


def test_exported_floats_read_back_as_they_were(db, stored, tmp_path):
    stored.execute("SET extra_float_digits = -5")
    krp = paper_krp(1, 3, n_terms=1, scaling="standard", random_state=0)
    krp.fit(db.source("t"), include=COLUMNS)
    db.create(krp, "t", "f")
    db.export(krp, "t", tmp_path / "f.csv")
    stored.execute("SET extra_float_digits = 1")
    with (tmp_path / "f.csv").open() as file:
        found = np.array(list(csv.reader(file))[1:], dtype=float)
    assert np.array_equal(found, features(stored))


def test_a_role_that_may_only_read_exports_and_verifies(db, krp, stored, postgres_url, tmp_path):
    role = f"reader_{os.getpid()}"
    stored.execute(f"CREATE ROLE {role}; GRANT {role} TO CURRENT_USER")
    try:
        schema = stored.execute("SELECT current_schema()").fetchone()[0]
        stored.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON t TO {role}")
        stored.execute(f"CREATE TABLE secret AS SELECT * FROM t; SET ROLE {role}")
        assert db.verify(krp, "t").ok
        assert db.verify(krp, "t", form="tables").ok
        assert db.export(krp, "t", tmp_path / "f.csv").rows == 40
        with pytest.raises(EngineError, match=r"permission denied for schema .*only need SELECT"):
            db.create(krp, "t", "f")
        with pytest.raises(EngineError, match="permission denied for table secret"):
            db.verify(krp, "secret")
    finally:
        stored.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


# --- numbers out of range -------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "how"), [(1e150, "large"), (1e-200, "small")])
def test_numbers_that_leave_the_range_are_foreseen_and_explained(db, stored, size, how):
    store(stored, dyadic(10, 4) * size, "odd")
    krp = paper_krp(3, 4, s=1, n_terms=2, random_state=0).fit(db.source("odd"))
    with (
        pytest.warns(RangeWarning, match=f"too {how} for float64, which postgres refuses"),
        pytest.raises(EngineError, match=r"leaves the range of its type.*scaling='standard'"),
    ):
        db.create(krp, "odd", "f")
    cured = paper_krp(3, 4, s=1, n_terms=2, scaling="standard", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert db.create(cured.fit(db.source("odd")), "odd", "f").rows == 10
        db.create(paper_krp(2, 4).fit(db.source("t"), include=COLUMNS), "t", "g")


@pytest.mark.parametrize("nulls", ["zero", "propagate"])
@pytest.mark.parametrize("missing", [None, np.nan, np.inf])
def test_what_is_missing_does_not_hide_the_largest_number(db, stored, nulls, missing):
    odd = dyadic(10, 4)
    odd.iloc[3, 0], odd.iloc[3, 1] = missing, 1e200
    store(stored, odd, "odd")
    krp = paper_krp(2, 4, s=1, n_terms=2, nulls=nulls, random_state=0)
    krp.fit(db.source("odd"))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with contextlib.suppress(EngineError):
            db.create(krp, "odd", "f")
    # A row that has no features computes nothing of its other numbers.
    foreseen = [one for one in told if issubclass(one.category, RangeWarning)]
    assert len(foreseen) == (nulls == "zero")
    assert (objects(stored) == ["odd", "t"]) == (nulls == "zero")


# --- limits ---------------------------------------------------------------------------------------


def test_a_row_that_does_not_fit_is_refused_before_anything_runs(db, stored):
    krp = paper_krp(2, 1018, n_terms=1, random_state=0).fit(COLUMNS)
    with pytest.raises(LimitError, match=r"8,160 bytes in a row .*output='array'"):
        db.create(krp, "t", "f")
    assert db.create(krp, "t", "f", output="array").rows == 40
    fits = paper_krp(2, 1017, n_terms=1, random_state=0).fit(COLUMNS)
    assert db.create(fits, "t", "g").rows == 40
    # Text that is kept may be longer than was foreseen; the engine says so then.
    stored.execute("ALTER TABLE t ADD big1 BIGINT[]; UPDATE t SET big1 = ARRAY[1, 2, 3]")
    narrow = paper_krp(2, 1015, n_terms=1, random_state=0).fit(COLUMNS)
    with pytest.raises(EngineError, match=r"row is too big.*output='array'"):
        db.create(narrow, "t", "h", keep=["big1"])


def test_what_postgres_cannot_do_is_said(db, krp, tmp_path):
    with pytest.raises(ParameterError, match="is a file: load it there"):
        db.verify(krp, tmp_path / "x.csv")
    with pytest.raises(ColumnError, match='relation "nowhere" does not exist'):
        db.verify(krp, "nowhere")
    with pytest.raises(EngineError, match='schema "nowhere" does not exist'):
        db.create(krp, "t", "nowhere.f")
    with pytest.raises(ParameterError, match="memory_limit and threads are DuckDB's"):
        sqlkrp.connect("postgresql://nowhere", threads=2)


def test_a_server_that_is_not_there_is_one_line(run_cli):
    url = "postgresql://me:pa55word@/db?host=/nowhere"
    done = run_cli("draw", url, "--table", "t", "-o", "m.json", code=2)
    assert "cannot connect to Postgres at /nowhere" in done.stderr
    assert "pa55word" not in done.stderr


def test_without_the_driver_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['psycopg'] = None; import sqlkrp\n"
        "try: sqlkrp.connect('postgresql://x')\n"
        "except sqlkrp.errors.ParameterError as bad: print(bad)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'sqlkrp[postgres]'" in done.stdout


# --- the command line -----------------------------------------------------------------------------


def test_arrays_and_warnings_on_the_command_line(run_cli, stored, postgres_url, tmp_path):
    paper_krp(2, 6, n_terms=1, random_state=0).fit(COLUMNS).save(tmp_path / "m.json")
    options = ("m.json", "--db", postgres_url, "--table", "t")
    run_cli("run", *options, "--into", "a", "--output", "array", "--form", "tables")
    assert stored.execute("SELECT pg_typeof(krp)::text FROM a LIMIT 1").fetchone() == (
        "double precision[]",
    )  # fmt: skip
    stored.execute("UPDATE t SET c1 = c1 * 1e200")
    done = run_cli("run", *options, "--into", "g", code=None)
    assert done.stderr.splitlines()[0].startswith("sqlkrp: warning: values up to")


# --- servers that go away, and servers that only read ---------------------------------------------


@pytest.fixture(scope="module")
def mortal():
    """A server of this module's own, to be killed and started again."""
    with running(Server().create()) as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE big AS SELECT "
                + ", ".join(f"random() AS c{i}" for i in range(6))
                + " FROM generate_series(1, 300000);"
                "CREATE TABLE t AS SELECT * FROM big LIMIT 10"
            )
        yield server


def is_busy(server):
    with psycopg.connect(server.url, autocommit=True) as connection:
        ((count,),) = connection.execute(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND (query LIKE 'CREATE TABLE%' OR query LIKE 'COPY (%')"
            " AND state = 'active' AND backend_type = 'client backend'"
        ).fetchall()
    return count > 0


ACTS = {"run": ("--into", "f"), "export": ("--to", "f.csv")}


@pytest.mark.parametrize("how", ["server", "interrupt"])
@pytest.mark.parametrize("act", ACTS)
def test_what_is_stopped_half_way_leaves_nothing(mortal, tmp_path, act, how, run_cli):
    krp = paper_krp(2, 400, pool="hadamard", random_state=0).fit(COLUMNS)
    krp.save(tmp_path / "m.json")

    def command(table):
        return [act, "m.json", "--db", mortal.url, "--table", table, *ACTS[act]]

    process = subprocess.Popen(
        [sys.executable, "-m", "sqlkrp", *command("big")], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_until(lambda: is_busy(mortal), process)
    if how == "server":
        mortal.kill()
        out, err = process.communicate(timeout=60)
        assert process.returncode == 2
        assert "the connection to Postgres was lost during" in err
        assert len(err.splitlines()) == 1
        mortal.start()
    else:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (
            130, "sqlkrp: interrupted; nothing was left behind\n",
        )  # fmt: skip
    assert out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
    with psycopg.connect(mortal.url, autocommit=True) as connection:
        assert objects(connection) == ["big", "t"]
        run_cli(*command("t"))
        connection.execute("DROP TABLE IF EXISTS f")


def test_a_read_replica_exports_and_verifies(mortal, tmp_path, krp):
    replica = Server()
    mortal.run("pg_basebackup", "-h", mortal.folder, "-U", "postgres", "-D", replica.data, "-R",
               "-c", "fast", "--no-sync")  # fmt: skip
    with running(replica), sqlkrp.connect(replica.url) as db:
        ((recovers,),) = db.connection.execute("SELECT pg_is_in_recovery()").fetchall()
        assert recovers
        assert db.verify(krp, "t").ok
        assert db.export(krp, "t", tmp_path / "f.csv").rows == 10
        with pytest.raises(EngineError, match="nothing can be created"):
            db.create(krp, "t", "f")


# --- what was wrong once ---------------------------------------------------------------------


def test_names_get_out_of_no_text_whatever_backslashes_mean(stored):
    stored.execute("SET escape_string_warning = off; SET standard_conforming_strings = off")
    stored.execute("CREATE VIEW v AS SELECT 1 AS alive")
    hostile = [
        "\\')AS real)END x0,1 x1 FROM(SELECT 1 x0)s)s)s;DROP VIEW v;/*",
        "*/SELECT FROM(SELECT FROM(SELECT--",
    ]
    columns = ", ".join('"' + name.replace('"', '""') + '" REAL' for name in hostile)
    stored.execute(f"CREATE TABLE inj ({columns}); INSERT INTO inj VALUES (1, 2)")
    krp = paper_krp(1, 1, n_terms=1, n_hyperplanes=1, random_state=0).fit(hostile)
    sqlkrp.connect(stored).create(krp, "inj", "x", view=True)
    assert len(stored.execute("SELECT * FROM x").fetchall()) == 1
    stored.execute(krp.to_sql("inj", dialect="postgres"))
    assert stored.execute("SELECT * FROM v").fetchall() == [(1,)]


def test_a_part_of_the_source_is_not_replaced(stored, krp):
    columns = ", ".join(f"{name} DOUBLE PRECISION" for name in COLUMNS)
    stored.execute(
        f"CREATE TABLE p ({columns}) PARTITION BY RANGE (c0);"
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (-100) TO (100);"
        f"INSERT INTO p SELECT {', '.join(COLUMNS)} FROM t; CREATE VIEW over AS SELECT * FROM p"
    )
    db = sqlkrp.connect(stored)
    for table in ("p", "over"):
        with pytest.raises(ParameterError, match="is read by this"):
            db.create(krp, table, "p1", replace=True)
    assert stored.execute("SELECT COUNT(*) FROM p").fetchone() == (40,)
    assert db.create(krp, "p", "f").rows == 40


@pytest.mark.parametrize("factory", ["dict_row", "namedtuple_row", "scalar_row"])
def test_the_user_s_way_with_rows_is_the_user_s(postgres_url, factory, krp):
    make = getattr(psycopg.rows, factory)
    with psycopg.connect(postgres_url, row_factory=make, cursor_factory=psycopg.RawCursor) as own:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            store(other, FRAME)
        db = sqlkrp.connect(own)
        scaled = paper_krp(2, 3, scaling="standard", random_state=0).fit(db.source("t"))
        for form in FORMS:
            assert db.create(scaled, "t", f"f_{form}", form=form).rows == 40
            assert db.verify(krp, "t", form=form).ok
        assert own.row_factory is make


def test_in_pipeline_mode_it_says_so(stored, krp):
    with stored.pipeline(), pytest.raises(EngineError, match="pipeline mode: leave it"):
        sqlkrp.connect(stored).verify(krp, "t")


def test_a_view_may_have_longer_rows_than_a_table(db, krp, stored):
    many = paper_krp(2, 1100, n_terms=1, random_state=0).fit(COLUMNS)
    db.create(many, "t", "v", view=True)
    assert len(stored.execute("SELECT * FROM v LIMIT 1").fetchone()) == 1100


def test_truth_values_as_sparse_values(db, stored):
    stored.execute(
        "CREATE TABLE e AS SELECT 1 AS r, 'c0' AS f, true AS v UNION SELECT 2, 'c1', false"
    )
    krp = paper_krp(2, 3, random_state=0).fit(["c0", "c1"])
    assert db.verify(krp, "e", long=("r", "f", "v")).ok


def test_another_database_is_not_this_one(db, krp, stored):
    with pytest.raises(ParameterError, match="in another database than 'postgres'"):
        db.create(krp, "t", "elsewhere.public.f")
    schema = stored.execute("SELECT current_schema()").fetchone()[0]
    assert db.create(krp, "t", f"postgres.{schema}.f").rows == 40


@pytest.mark.parametrize("password", ["hunter2%x", "se@cret"])
def test_no_message_repeats_a_password(password):
    with pytest.raises(ParameterError, match="%XX") as error:
        sqlkrp.connect(f"postgresql://me:{password}@nowhere/db")
    assert "hunter2" not in str(error.value)
    assert "cret" not in str(error.value)
    with pytest.raises(ParameterError, match="by a URL"):
        sqlkrp.connect("host=nowhere password=hunter2")


def test_a_stricter_isolation_is_kept(stored, krp):
    stored.execute("SET default_transaction_isolation = 'serializable'")
    stored.execute(
        "CREATE VIEW s AS SELECT t.*, current_setting('transaction_isolation') AS i FROM t"
    )
    sqlkrp.connect(stored).create(krp, "s", "f", keep=["i"])
    assert stored.execute("SELECT DISTINCT i FROM f").fetchall() == [("serializable",)]


def test_the_range_is_seen_in_incomplete_rows_and_sparse_input(db, stored):
    store(stored, pd.DataFrame({"a": [1e200, 1.0], "b": [np.nan, 1.0]}), "holes")
    store(stored, pd.DataFrame({"r": [1], "f": ["a"], "v": [1e200]}).astype({"f": object}), "e")
    krp = paper_krp(2, 3, nulls="zero", s=1, n_terms=1, random_state=0).fit(["a", "b"])
    for options in ({"table": "holes"}, {"table": "e", "long": ("r", "f", "v")}):
        with pytest.warns(RangeWarning), pytest.raises(EngineError, match="leaves the range"):
            db.create(krp, into="f", **options)


def test_what_is_there_is_told_of_this_session_alone(postgres_url):
    with (
        contextlib.closing(Place(postgres_url)) as one,
        contextlib.closing(Place(postgres_url)) as other,
    ):
        other.execute("CREATE TEMPORARY TABLE theirs AS SELECT 1 AS a")
        one.execute("CREATE TEMPORARY TABLE ours AS SELECT 1 AS a")
        assert one.objects() == ["ours"]


def test_a_connection_that_is_lost_in_a_commit_is_told_as_such(stored, postgres_url):
    """Only the server knows whether that went through: it is not said that nothing was made."""
    krp = paper_krp(2, 4, random_state=0).fit(COLUMNS)
    with sqlkrp.connect(stored) as db:
        db.create(krp, "t", "f")
    stored.execute(
        "CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';"
        "CREATE CONSTRAINT TRIGGER gone AFTER INSERT ON f DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION gone()"
    )
    with (
        sqlkrp.connect(postgres_url) as db,
        pytest.raises(EngineError, match="was lost while it committed, and what was asked for may"),
    ):
        db.create(krp, "t", "f", append=True)
