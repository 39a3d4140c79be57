"""A map or a model as a table macro of DuckDB, which any of its clients calls."""

import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pytest
from support import dyadic, paper_krp, store

import sqlkrp
from sqlkrp.errors import LimitError, ParameterError, TargetExistsError

COLUMNS = [f"c{i}" for i in range(6)]
FRAME = dyadic(40, 6).assign(id=range(40), flag=[i % 2 == 0 for i in range(40)])


@pytest.fixture
def db(connection):
    store(connection, FRAME)
    return sqlkrp.connect(connection)


def macros(connection):
    return connection.execute(
        "SELECT function_name, comment FROM duckdb_functions()"
        " WHERE function_type = 'table_macro' AND NOT internal ORDER BY ALL"
    ).fetchall()


def numbers(connection, query):
    return np.array(connection.execute(query).fetchall(), dtype=float)


@pytest.mark.parametrize("form", ["auto", "wide", "array"])
def test_any_client_calls_a_macro_with_any_table(db, connection, krp, tmp_path, form):
    run = db.macro(krp, "churn_features", keep=["id"], form=form)
    assert (run.rows, run.digest) == (None, krp.digest_)
    assert macros(connection) == [("churn_features", f"sqlkrp map {krp.digest_}")]
    found = numbers(connection, "FROM churn_features('t') ORDER BY id")
    assert np.array_equal(found[:, 1:], krp.transform(FRAME))
    connection.execute("CREATE SCHEMA s; CREATE VIEW s.few AS FROM t WHERE id < 5")
    assert len(numbers(connection, "SELECT krp_0 FROM churn_features('s.few')")) == 5
    prepared = connection.execute("SELECT id FROM churn_features(?) WHERE id > 37", ["t"])
    assert sorted(prepared.fetchall()) == [(38,), (39,)]
    # What is wrong with the rows stops it, as it stops a view.
    connection.execute("UPDATE t SET c1 = NULL WHERE id = 3")
    with pytest.raises(duckdb.Error, match="missing value in column c1"):
        connection.execute("FROM churn_features('t')").fetchall()


def test_a_macro_is_replaced_only_on_request_and_is_in_its_schema(db, connection, krp):
    connection.execute("CREATE SCHEMA s")
    other = paper_krp(2, 3, random_state=1).fit(COLUMNS)
    db.macro(krp, "s.f")
    with pytest.raises(TargetExistsError, match=r"macro '.*\.s\.F' exists already"):
        db.macro(other, "s.F")
    db.macro(other, "s.f", replace=True)
    assert macros(connection) == [("f", f"sqlkrp map {other.digest_}")]
    assert np.allclose(numbers(connection, "FROM s.f('t')"), other.transform(FRAME), rtol=1e-12)
    connection.execute("BEGIN")
    db.macro(krp, "g")
    connection.execute("ROLLBACK")
    assert [name for name, _ in macros(connection)] == ["f"]


def test_no_name_becomes_sql_and_no_column_is_taken_for_the_table(connection):
    names = ["source_table", "Source_Table_", "x'); DROP TABLE t; --", 'q"q', "query_table"]
    frame = dyadic(20, 5, names=names)
    store(connection, frame)
    krp = paper_krp(2, 3, random_state=0).fit(names)
    macro = 'm"(a) AS TABLE SELECT 1; --'
    sqlkrp.connect(connection).macro(krp, (macro,), keep=[names[0]])
    quoted = '"' + macro.replace('"', '""') + '"'
    found = numbers(connection, f"FROM {quoted}('t')")
    assert np.array_equal(found[:, 0], frame[names[0]])
    assert np.array_equal(found[:, 1:], krp.transform(frame))
    for hostile in ("t; DROP TABLE t", "(SELECT 1)", "range(3)"):
        with pytest.raises(duckdb.Error):
            connection.execute(f"FROM {quoted}(?)", [hostile]).fetchall()
    assert connection.execute("SELECT COUNT(*) FROM t").fetchone() == (20,)


def test_models_and_categories_as_macros(db, connection):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "b", "a", "c"]})
    store(connection, frame, "k")
    krp = paper_krp(2, 4, random_state=0).fit(db.source("k"), categories="auto")
    db.macro(krp, "with_kinds")
    assert np.allclose(numbers(connection, "FROM with_kinds('k')"), krp.transform(frame))
    whole = paper_krp(2, 5, random_state=0).fit(COLUMNS)
    model = sqlkrp.model(map=whole, coef=np.arange(5.0), classes=["no", "yes"])
    run = db.macro(model, "churn_scores", keep=["id"], outputs=["label"], prefix="said_")
    assert run.statement.columns == ("id", "said_label")
    assert macros(connection)[0] == ("churn_scores", f"sqlkrp model {model.digest_}")
    found = connection.execute("SELECT said_label FROM churn_scores('t') ORDER BY id").fetchall()
    assert [row[0] for row in found] == model.predict(FRAME).tolist()


def test_what_cannot_be_a_macro_is_told(db, krp, connection):
    with pytest.raises(ParameterError, match="side tables that stay"):
        db.macro(krp, "f", form="tables")
    with pytest.raises(ParameterError, match="output='vector' is made by a session of Spark"):
        db.macro(krp, "f", output="vector")
    other = sqlkrp.connect(sqlite3.connect(":memory:"))
    with pytest.raises(LimitError, match="sqlite has no table macros: create a view"):
        other.macro(krp, "f")
    other.connection.close()
    assert macros(connection) == []


def test_macros_on_the_command_line(run_cli, tmp_path, krp):
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        store(connection, FRAME, "sales")
    krp.save(tmp_path / "m.json")
    sqlkrp.model(map=krp, coef=np.arange(5.0)).save(tmp_path / "model.json")
    at = ("--db", "shop.duckdb", "--keep", "id")
    told = run_cli("run", "m.json", "--macro", "churn_features", *at).stdout
    assert told.startswith("macro  churn_features(table): 6 columns, wide form\nmap    ")
    run_cli("score", "model.json", "--macro", "churn_scores", *at, "--prefix", "p_")
    with duckdb.connect(str(path)) as connection:
        found = numbers(connection, "FROM churn_features('sales') ORDER BY id")
        assert np.array_equal(found[:, 1:], krp.transform(FRAME))
        scores = connection.execute("FROM churn_scores('sales')")
        assert [one[0] for one in scores.description] == ["id", "p_prediction"]
    for more, message in (
        (["--table", "sales"], "leave out --table"),
        (["--into", "x"], "leave out --into"),
        (["--key", "id"], "leave out --key"),
        (["--how", "arrow"], "leave out --how"),
        ([], "exists already: choose another name, or replace it (--replace)"),
    ):
        asked = ("run", "m.json", "--macro", "churn_features", *at, *more)
        assert message in run_cli(*asked, code=2).stderr
    for more in (["--holds", "bits"], ["--limit", 0], ["--to", "s.csv"]):
        refused = run_cli("score", "model.json", "--macro", "s", *at, *more, code=2).stderr
        assert f"leave out {more[0]}\n" in refused
    asked = ("run", "m.json", "--macro", "f")
    assert "give --db DB" in run_cli(*asked, code=2).stderr
    assert "--into or --macro NAME" in run_cli("run", "m.json", *at, code=2).stderr
    run_cli("run", "m.json", "--macro", "churn_features", *at, "--replace")


@pytest.mark.parametrize("name", ["range", "READ_CSV", "main.query_table"])
def test_a_macro_takes_no_name_of_duckdb_s_own_functions(db, krp, name):
    with pytest.raises(ParameterError, match="is a function of DuckDB's own"):
        db.macro(krp, name)
