"""Features that NumPy computes where the rows are (how="arrow"), against those of the SQL."""

import _thread
import contextlib
import sqlite3

import numpy as np
import pandas as pd
import psycopg
import pytest
from engines import DuckDB, Postgres
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from support import EVERY_STAGE, dyadic, of_columns_as_they_are, paper_krp

import sqlkrp
from sqlkrp.engines import duckdb_twin
from sqlkrp.errors import EngineError, LimitError, MissingValueError, ParameterError, SqlkrpError
from sqlkrp.summaries.facts import preflight_of
from sqlkrp.summaries.maps import map_lines

COLUMNS = [f"c{i}" for i in range(6)]
# More rows than DuckDB hands to a function at once.
FRAME = dyadic(5_000, 6).assign(id=range(5_000), name="x")
in_both = pytest.mark.parametrize("place", ["duckdb", "postgres"], indirect=True)


@pytest.fixture
def stored(place):
    place.store(FRAME)
    return place


def both(place, krp, table="t", order="id", **options):
    """The rows of the SQL and of NumPy, and their columns' types, which are to be the same."""
    found = []
    for into, how in (("by_sql", "sql"), ("by_numpy", "arrow")):
        place.database.create(krp, table, into, how=how, replace=True, **options)
        found.append(place.rows(f"SELECT * FROM {into} ORDER BY {order}"))
    session = place.database._session
    types = [session.describe(into, into) for into in ("by_sql", "by_numpy")]
    assert types[0] == types[1]
    return found


# --- the same as the SQL --------------------------------------------------------------------------


@in_both
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("output", ["columns", "array"])
@pytest.mark.parametrize("nulls", ["zero", "propagate"])
def test_numpy_agrees_with_the_sql_bit_for_bit(place, dtype, output, nulls):
    frame = FRAME.copy()
    frame.loc[3, "c1"] = frame.loc[4_999, "c5"] = np.nan
    place.store(frame)
    place.execute("UPDATE t SET c2 = 'inf' WHERE id = 77")
    krp = paper_krp(2, 5, n_terms=2, dtype=dtype, nulls=nulls, random_state=0).fit(COLUMNS)
    by_sql, by_numpy = both(place, krp, keep=["name", "id"], output=output)
    assert by_sql == by_numpy
    assert [row[1] for row in by_numpy] == list(range(5_000))
    none = [row[1] for row in by_numpy if row[2] is None]
    assert none == ([3, 77, 4_999] if nulls == "propagate" else [])


@in_both
@pytest.mark.parametrize("pool", ["hadamard", "achlioptas", "gaussian"])
def test_every_pool_agrees(stored, pool):
    krp = sqlkrp.KRP(2, 7, pool=pool, nulls="mean", random_state=1).fit(FRAME[COLUMNS])
    by_sql, by_numpy = both(stored, krp, keep=["id"])
    by_sql, by_numpy = (np.array(rows, dtype=float) for rows in (by_sql, by_numpy))
    assert np.allclose(by_sql, by_numpy, rtol=1e-9, atol=1e-12)


@in_both
@pytest.mark.parametrize("name", EVERY_STAGE)
def test_every_stage_agrees(stored, name):
    one = of_columns_as_they_are(EVERY_STAGE[name]()).fit(FRAME[COLUMNS])
    by_sql, by_numpy = (np.array(rows, dtype=float) for rows in both(stored, one, keep=["id"]))
    assert np.allclose(by_sql, by_numpy, rtol=1e-9, atol=1e-12)
    stage = {"stage": "projection"} if name == "products" else {}
    by_sql, by_numpy = both(stored, one, keep=["id"], **stage)
    assert len(by_sql) == len(by_numpy) == 5_000


@in_both
def test_signs_are_packed_as_the_sql_packs_them(stored):
    one = sqlkrp.RankOneProjection(70, binary=True, random_state=0).fit(FRAME[COLUMNS])
    by_sql, by_numpy = both(stored, one, keep=["id"], output="bits")
    assert by_sql == by_numpy
    assert len(by_numpy[0]) == 3


@in_both
@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_and_none(place, krp, rows):
    place.store(FRAME.head(rows))
    for output in ("columns", "array"):
        by_sql, by_numpy = both(place, krp, keep=["id", "name"], output=output)
        assert by_sql == by_numpy
        assert len(by_numpy) == rows


@in_both
def test_hostile_names_and_inputs_of_every_type(place):
    names = ['a"b', "k0", "a", "x", "f0", "every", "Select 1; --"]
    frame = dyadic(50, len(names), names=names)
    frame["k0"] = np.arange(50)
    frame["x"] = frame["x"].astype("float32")
    frame["f0"] = frame["f0"] > 0
    place.store(frame)
    krp = paper_krp(2, 5, n_terms=2, random_state=0).fit(frame)
    by_sql, by_numpy = both(place, krp, order="k0", keep=["k0", 'a"b'])
    assert by_sql == by_numpy


ODD = {
    "duckdb": (
        "id, name, CASE WHEN id % 3 > 0 THEN 'ü' || id END AS text_, CAST(id AS DECIMAL(30, 4)) AS"
        " decimal_, TIMESTAMP '2020-02-29 12:00:00.5' + to_days(CAST(id AS INTEGER)) AS at_,"
        " [id, NULL] AS list_, {'a': id, 'b': NULL} AS struct_, CAST('ab' AS BLOB) AS blob_,"
        " NULL AS null_, CAST(id AS HUGEINT) * 12345678901234567890 AS huge_, uuid() AS uuid_,"
        " CAST('a' AS ENUM ('a', 'b')) AS enum_"
    ),
    "postgres": (
        "id, name, CASE WHEN id % 3 > 0 THEN 'ü' || id END AS text_, CAST(id AS NUMERIC(30, 4)) AS"
        " decimal_, TIMESTAMP '2020-02-29 12:00:00.5' + id * INTERVAL '1 day' AS at_,"
        " ARRAY[id, NULL] AS list_, CAST('{\"a\": 1}' AS JSONB) AS struct_,"
        " CAST('ab' AS BYTEA) AS blob_, gen_random_uuid() AS uuid_, INTERVAL '3 days' AS span_,"
        " TIMESTAMPTZ '2020-01-01 00:00:00+02' AS tz_, CAST('x' AS CHAR(5)) AS char_"
    ),
}


@in_both
def test_columns_of_odd_types_are_handed_on_as_they_are(stored, krp):
    columns = ", ".join(COLUMNS)
    stored.execute(f"CREATE TABLE odd AS SELECT {columns}, {ODD[stored.name]} FROM t")
    kept = [name for name in stored.database._session.describe("odd", "odd") if name[0] != "c"]
    kept += [name for name in ("char_",) if stored.name == "postgres"]
    by_sql, by_numpy = both(stored, krp, "odd", keep=kept)
    assert by_sql == by_numpy
    there = ", ".join(dict.fromkeys(kept))
    assert [row[: len(set(kept))] for row in by_numpy] == stored.rows(
        f"SELECT {there} FROM odd ORDER BY id"
    )


@in_both
def test_a_view_is_read_and_files_are_written(stored, krp, tmp_path):
    stored.execute("CREATE VIEW v AS SELECT * FROM t WHERE id % 50 = 0")
    by_sql, by_numpy = both(stored, krp, "v", keep=["id"])
    assert by_sql == by_numpy
    assert len(by_numpy) == 100
    for how in ("sql", "arrow"):
        run = stored.database.export(krp, "v", tmp_path / f"{how}.csv", keep=["id"], how=how)
        assert (run.rows, len(run.statement.side_tables)) == (100, 0)
    assert (tmp_path / "sql.csv").read_text() == (tmp_path / "arrow.csv").read_text()


def test_files_are_read_and_written_in_duckdb(tmp_path, krp):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    FRAME.to_parquet(tmp_path / "t.parquet")
    with sqlkrp.connect() as db:
        for source in ("t.csv", "t.parquet"):
            path = tmp_path / f"f_{source}.parquet"
            db.export(krp, tmp_path / source, path, keep=["id"], how="arrow", output="array")
            frame = pd.read_parquet(path)
            assert frame["id"].tolist() == list(range(5_000))  # in the order of the source
            assert np.array_equal(np.stack(frame["krp"]), krp.transform(FRAME))


def test_a_relation_computes_when_it_is_read(krp):
    with contextlib.closing(DuckDB()) as place:
        place.store(FRAME)
        with contextlib.closing(sqlkrp.connect(place.connection)) as db:
            lazy = db.relation(krp, "t", keep=["id"], how="arrow")
            two = lazy.filter("id IN (7, 4711)").order("id").fetchall()
            assert np.array_equal([row[1:] for row in two], krp.transform(FRAME.iloc[[7, 4711]]))
            place.execute("UPDATE t SET c1 = NULL WHERE id = 3")
            with pytest.raises(place.error, match=r"missing values .* in 'c1' \(1\)"):
                lazy.fetchall()
        assert functions(place) == 0


def functions(place):
    ((count,),) = place.rows(
        "SELECT COUNT(*) FROM duckdb_functions() WHERE function_name LIKE 'sqlkrp%'"
    )
    return count


# --- models ---------------------------------------------------------------------------------------


@in_both
def test_models_score_with_their_words(stored):
    label = np.where(FRAME["c0"] > 1, "yes'", "no")
    trained = make_pipeline(sqlkrp.KRP(2, 20, random_state=0), LogisticRegression(max_iter=500))
    model = sqlkrp.model(trained.fit(FRAME[COLUMNS], label))
    for how in ("sql", "arrow"):
        stored.database.score(model, "t", into=f"s_{how}", keep=["id"], how=how,
                              outputs=["label", "decision"])  # fmt: skip
    rows = [stored.rows(f"SELECT * FROM s_{how} ORDER BY id") for how in ("sql", "arrow")]
    assert [row[:2] for row in rows[0]] == [row[:2] for row in rows[1]]
    assert {row[1] for row in rows[1]} == {"yes'", "no"}
    assert np.allclose([row[2] for row in rows[0]], [row[2] for row in rows[1]], rtol=1e-9)


# --- whole or not at all --------------------------------------------------------------------------


@in_both
def test_missing_values_are_named_and_nothing_is_made(stored, krp, tmp_path):
    stored.execute("UPDATE t SET c1 = NULL WHERE id < 3")
    stored.execute(f"UPDATE t SET c2 = {stored.missing[2]} WHERE id = 4000")
    for act in (
        lambda: stored.database.create(krp, "t", "f", how="arrow"),
        lambda: stored.database.export(krp, "t", tmp_path / "f.csv", how="arrow"),
    ):
        with pytest.raises(MissingValueError, match=r"'c1' \(3\), 'c2' \(1\)"):
            act()
        assert stored.objects() == ["t"]
    assert list(tmp_path.iterdir()) == []


@in_both
def test_a_failure_in_the_middle_leaves_nothing_behind(stored, krp, tmp_path):
    broken = stored.broken.replace("7", "4000").replace("'no row'", "'no row'")
    if stored.name == "duckdb":
        broken = f"CASE WHEN id = 4000 THEN {broken} ELSE 1 END"
    stored.execute(f"CREATE VIEW broken AS SELECT t.*, {broken} AS c9 FROM t")
    stored.execute("CREATE TABLE old AS SELECT 1 AS precious")
    other = paper_krp(2, 5, nulls="zero", random_state=0).fit([*COLUMNS, "c9"])
    for act in (
        lambda: stored.database.create(other, "broken", "f", how="arrow"),
        lambda: stored.database.create(other, "broken", "old", how="arrow", replace=True),
        lambda: stored.database.export(other, "broken", tmp_path / "f.csv", how="arrow"),
    ):
        with pytest.raises(EngineError) as error:
            act()
        assert "\n" not in str(error.value)
        assert stored.objects() == ["broken", "old", "t"]
        assert not stored.in_transaction()
    assert stored.rows("SELECT * FROM old") == [(1,)]
    assert list(tmp_path.iterdir()) == []
    assert stored.database.create(krp, "t", "f", how="arrow").rows == 5_000


@in_both
def test_a_stop_in_the_middle_leaves_nothing(stored, krp, monkeypatch):
    session = type(stored.database._session)

    def stop(*_, **__):
        raise KeyboardInterrupt

    # When the function or the rows are there, and the table is not.
    monkeypatch.setattr(session, "create", stop)
    with pytest.raises(KeyboardInterrupt):
        stored.database.create(krp, "t", "f", how="arrow")
    assert stored.objects() == ["t"]
    assert not stored.in_transaction()
    assert stored.name != "duckdb" or functions(stored) == 0


@in_both
@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT"])
def test_inside_the_user_s_transaction_it_sees_what_that_sees(stored, krp, end):
    stored.execute("BEGIN")
    stored.execute("INSERT INTO t SELECT * FROM t")
    stored.execute("CREATE TEMPORARY TABLE mine AS SELECT * FROM t WHERE id < 7")
    assert stored.database.create(krp, "t", "f", how="arrow").rows == 10_000
    assert stored.database.create(krp, "mine", "g", how="arrow").rows == 14
    stored.execute(end)
    made = ["f", "g", "mine"] if end == "COMMIT" else []
    assert stored.objects() == sorted([*made, "t"])
    assert stored.rows("SELECT COUNT(*) FROM t") == [(10_000 if made else 5_000,)]
    assert stored.name != "duckdb" or functions(stored) == 0


def test_ctrl_c_between_batches_leaves_nothing_in_duckdb(krp, monkeypatch):
    made, batches = duckdb_twin._as_arrow, []

    def interrupted(*of_a_batch):
        batches.append(None)
        if len(batches) == 2:  # once, as who asks again does not want to wait
            _thread.interrupt_main()
        return made(*of_a_batch)

    monkeypatch.setattr(duckdb_twin, "_as_arrow", interrupted)
    with contextlib.closing(DuckDB()) as place:
        place.store(FRAME)
        with pytest.raises(KeyboardInterrupt):
            place.database.create(krp, "t", "f", how="arrow")
        assert place.objects() == ["t"]
        assert functions(place) == 0
        monkeypatch.undo()
        assert place.database.create(krp, "t", "f", how="arrow").rows == 5_000


def test_ctrl_c_between_batches_leaves_nothing_in_postgres(stored_postgres, krp, monkeypatch):
    writes, write = [], psycopg.Copy.write

    def interrupted(self, data):
        writes.append(len(data))
        if len(writes) == 3:
            raise KeyboardInterrupt
        write(self, data)

    monkeypatch.setattr(psycopg.Copy, "write", interrupted)
    monkeypatch.setattr("sqlkrp.engines.postgres_twin._NUMBERS_AT_ONCE", 11 * 700)
    with pytest.raises(KeyboardInterrupt):
        stored_postgres.database.create(krp, "t", "f", how="arrow")
    assert stored_postgres.objects() == ["t"]
    assert not stored_postgres.in_transaction()
    monkeypatch.undo()
    assert stored_postgres.database.create(krp, "t", "f", how="arrow").rows == 5_000


def test_a_relation_outlives_its_database_without_harm(krp):
    """Where closing drops the function in a transaction that is rolled back, its name is back."""
    with contextlib.closing(DuckDB()) as place:
        place.store(FRAME)
        db = sqlkrp.connect(place.connection)
        lazy = db.relation(krp, "t", how="arrow")
        place.connection.begin()
        db.close()
        place.connection.rollback()
        assert functions(place) == 1
        with pytest.raises(place.error, match="the database that made this was closed"):
            lazy.fetchall()


def test_memory_is_of_batches(stored_postgres, krp, monkeypatch):
    """Rows come and go some at a time; their order stays."""
    sizes = []
    ends = psycopg.Copy.write
    monkeypatch.setattr(
        psycopg.Copy, "write", lambda self, data: (sizes.append(len(data)), ends(self, data))[1]
    )
    monkeypatch.setattr("sqlkrp.engines.postgres_twin._NUMBERS_AT_ONCE", 11 * 700)
    run = stored_postgres.database.create(krp, "t", "f", keep=["id"], how="arrow")
    assert run.rows == 5_000
    assert len(sizes) == 8
    # Of a row: fields, the id (4 + 8 bytes), and five doubles with their lengths.
    assert max(sizes) == 19 + 700 * (2 + 12 + 5 * 12) + 2
    assert [row[0] for row in stored_postgres.rows("SELECT id FROM f")] == list(range(5_000))


@pytest.fixture
def stored_postgres(postgres_url):
    with contextlib.closing(Postgres(postgres_url)) as one:
        one.store(FRAME)
        yield one


# --- what is refused ------------------------------------------------------------------------------


@in_both
def test_what_it_cannot_do_is_said(stored, krp):
    db = stored.database
    with pytest.raises(ParameterError, match="reads rows with one column a feature"):
        db.create(krp, "t", "f", how="arrow", long=("id", "name", "c0"))
    with pytest.raises(ParameterError, match="a view is SQL alone"):
        db.create(krp, "t", "f", how="arrow", view=True)
    with pytest.raises(ParameterError, match="form and plan are of SQL"):
        db.create(krp, "t", "f", how="arrow", form="wide")
    with pytest.raises(SqlkrpError, match=r"no lazy relations|no option|Postgres"):
        db.verify(krp, "t", how="arrow")
    assert stored.objects() == ["t"]


def test_an_engine_without_it_says_so(krp):
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        FRAME.to_sql("t", connection, index=False)
        told = r"^sqlite has no how='arrow': leave it out, and SQL computes$"
        with pytest.raises(LimitError, match=told):
            sqlkrp.connect(connection).create(krp, "t", "f", how="arrow")


def test_a_read_only_database_can_be_read(tmp_path, krp):
    with contextlib.closing(DuckDB(tmp_path / "w.duckdb")) as place:
        place.store(FRAME)
    with sqlkrp.connect(tmp_path / "w.duckdb", read_only=True) as db:
        assert db.export(krp, "t", tmp_path / "f.csv", how="arrow").rows == 5_000
        with pytest.raises(EngineError, match=r"read-?only"):
            db.create(krp, "t", "f", how="arrow")


def test_without_pyarrow_it_says_what_to_install(krp, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with contextlib.closing(DuckDB()) as place:
        place.store(FRAME)
        told = r"^how='arrow' needs pyarrow, which is not installed: pip install 'sqlkrp\[arrow\]'$"
        with pytest.raises(ParameterError, match=told):
            place.database.create(krp, "t", "f", how="arrow")
        assert place.objects() == ["t"]


# --- the command line -----------------------------------------------------------------------------


@in_both
def test_the_command_line_has_it(run_cli, stored, tmp_path):
    label = np.where(FRAME["c0"] > 1, "yes", "no")
    trained = make_pipeline(sqlkrp.KRP(2, 20, random_state=0), LogisticRegression(max_iter=500))
    sqlkrp.model(trained.fit(FRAME[COLUMNS], label)).save(tmp_path / "s.json")
    paper_krp(2, 5, random_state=0).fit(COLUMNS).save(tmp_path / "m.json")
    stored.connection.close()
    at = ("--db", stored.url, "--table", "t", "--keep", "id", "--how", "arrow")
    assert (
        "f: 5,000 rows, 6 columns, arrow form"
        in run_cli("run", "m.json", *at, "--into", "f").stdout
    )
    assert "5,000 rows" in run_cli("export", "m.json", *at, "--to", "f.csv").stdout
    assert "5,000 rows" in run_cli("score", "s.json", *at, "--into", "s").stdout
    with type(stored).database_of(stored.url) as again:
        assert again.objects() == ["f", "s", "t"]
        assert again.rows("SELECT COUNT(*) FROM s WHERE label IN ('yes', 'no')") == [(5_000,)]


def test_inspect_tells_where_numpy_is_likely_quicker():
    large = paper_krp(2, 1_000, n_terms=1, random_state=0).fit([f"p{i}" for i in range(784)])
    small = paper_krp(2, 50, n_terms=1, random_state=0).fit([f"p{i}" for i in range(20)])
    high = sqlkrp.KRP(20, 500, random_state=0).fit([f"p{i}" for i in range(20)])
    for one, dialect, told in (
        (large, "duckdb", True),
        (large, "postgres", True),
        (large, "sqlite", False),  # which cannot
        (high, "duckdb", True),  # in the tables form
        (high, "sqlite", False),
        (small, "duckdb", False),
        (small, "postgres", False),
    ):
        lines = [
            line for line in map_lines(one, preflight_of(one, dialect=dialect)) if "NumPy" in line
        ]
        assert len(lines) == told
        assert all("how='arrow' may be quicker: by estimate" in line for line in lines)
