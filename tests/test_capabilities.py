"""What an engine cannot do is said, and not pretended; what it takes is its own."""

import contextlib
import csv
import inspect
import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from support import dyadic, paper_krp

import sqlkrp
from sqlkrp import engines
from sqlkrp.engines.session import Capabilities, Session
from sqlkrp.engines.sqlite import SQLite
from sqlkrp.errors import (
    EngineError,
    LimitError,
    MissingValueError,
    ParameterError,
    UnknownParameterError,
)


class Plain(SQLite):
    """SQLite without its transactions and temporary tables: each statement stands alone."""

    can = Capabilities()
    transaction = Session.transaction


@pytest.fixture
def connection():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        dyadic(20, 4).assign(id=range(20)).to_sql("t", opened, index=False)
        yield opened


@pytest.fixture
def krp():
    return paper_krp(2, 5, random_state=0).fit(["c0", "c1", "c2", "c3"])


def names(connection):
    return [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]


def test_an_engine_of_single_statements_creates_and_exports(connection, krp, tmp_path):
    db = sqlkrp.Database(Plain(connection))
    run = db.create(krp, "t", "f", keep=["id"])
    assert run.rows == 20
    # No transaction sees what was checked, so the statement stops by itself.
    assert "missing value" in run.statement.text
    assert "missing value" not in sqlkrp.connect(connection).create(krp, "t", "g").statement.text
    found = np.array(connection.execute("SELECT * FROM f ORDER BY id").fetchall())
    expected = krp.transform(dyadic(20, 4))
    assert np.allclose(found[:, 1:], expected, rtol=1e-12)
    db.export(krp, "t", tmp_path / "f.csv")
    assert np.allclose(pd.read_csv(tmp_path / "f.csv"), expected, rtol=1e-12)
    connection.execute("UPDATE t SET c1 = NULL WHERE id = 7")
    with pytest.raises(MissingValueError, match="c1"):
        db.create(krp, "t", "h")
    assert "h" not in names(connection)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda db, krp: db.create(krp, "t", "f", view=True), "no views: create a table"),
        (
            lambda db, krp: db.create(krp, "t", "f", replace=True),
            "no transactions: drop the old one first",
        ),
        (lambda db, krp: db.relation(krp, "t"), "no lazy relations"),
        (
            lambda db, krp: db.create(krp, "t", "f", form="tables"),
            "temporary tables: .*form='wide'",
        ),
        (
            lambda db, krp: db.create(krp, "t", "f", long=("id", "c0", "c1")),
            "no temporary tables: give rows with one column a feature",
        ),
        (lambda db, krp: db.verify(krp, "t"), "no temporary tables: the sample needs one"),
    ],
)
def test_what_it_cannot_promise_is_refused_before_anything_is_made(connection, krp, call, told):
    before = names(connection)
    with pytest.raises(LimitError, match=told):
        call(sqlkrp.Database(Plain(connection)), krp)
    assert names(connection) == before


def test_without_transactions_what_was_made_is_dropped_when_a_later_step_fails(connection, krp):
    """SQLite has no COMMENT ON, whatever this record says."""

    class Told(Plain):
        can = Capabilities(comments=True)

    with pytest.raises(EngineError, match=r"naming the map of 'main\.f'"):
        sqlkrp.Database(Told(connection)).create(krp, "t", "f")
    assert names(connection) == ["t"]


def test_the_contract_is_small():
    assert len(Session.__abstractmethods__) <= 12
    assert "memory_limit" not in str(inspect.signature(SQLite.open))


# --- settings -------------------------------------------------------------------------------------


def test_settings_are_the_engine_s_own(tmp_path):
    told = r"^memory_limit and threads are DuckDB's: SQLite has neither$"
    for settings in ({"threads": 2}, {"memory_limit": "1GB"}):
        with pytest.raises(ParameterError, match=told):
            sqlkrp.connect(tmp_path / "t.sqlite", create=True, **settings)
    with pytest.raises(UnknownParameterError, match=r"did you mean 'memory_limit'\?$"):
        sqlkrp.connect(memory_limits="1GB")
    with sqlkrp.connect(threads=None) as db:
        assert db.connection.execute("SELECT 1").fetchall() == [(1,)]


def test_an_engine_is_one_record_of_the_list(monkeypatch, tmp_path):
    """A record alone, with a session there already, opens files of its own kind."""
    toy = engines._Engine("sqlite", "SQLite", ("sqlite3",), suffixes=(".toy",), settings=("speed",))
    monkeypatch.setattr(engines, "_ENGINES", (*engines._ENGINES, toy))
    assert engines.is_database("a.toy")
    with sqlkrp.connect(tmp_path / "a.toy", create=True) as db:
        assert isinstance(db.connection, sqlite3.Connection)
    with pytest.raises(ParameterError, match=r"^speed is SQLite's: DuckDB has no such setting$"):
        sqlkrp.connect(tmp_path / "a.duckdb", create=True, speed=1)


# --- side tables as files -------------------------------------------------------------------------


def test_side_tables_in_csv_need_no_engine(tmp_path):
    paper_krp(2, 5, random_state=0).fit(["a", "b"]).save(tmp_path / "m.json")
    code = (
        "import sys; from sqlkrp.cli import main;"
        "assert main(['tables', 'm.json', '-o', 'side', '--dialect', 'oracle', '-q']) == 0;"
        "print([name for name in ('duckdb', '_duckdb', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "[]\n"
    assert len(list((tmp_path / "side").glob("*.csv"))) == 4


HOSTILE = ['a"b', "a,b", "a\nb", "a\rb", "a\r\nb", " a ", "'", "NULL", "1e5", "\u00fc", "#", ";"]


def test_side_tables_in_csv_hold_what_the_map_holds(tmp_path):
    frame = dyadic(30, len(HOSTILE), names=HOSTILE) / 3
    krp = sqlkrp.KRP(2, 7, scaling="standard", random_state=0).fit(frame)
    statement = krp.statement("t", form="tables")
    krp.save_tables(tmp_path / "side")
    for name, columns in statement.side_tables.items():
        with (tmp_path / "side" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        assert head == list(columns)
        for place, array in enumerate(columns.values()):
            found = [row[place] for row in rows]
            assert (found if array.dtype == object else list(map(float, found))) == array.tolist()
    # And an engine reads the same of it.
    (name,) = (one for one in statement.side_tables if one.endswith("_columns"))
    with sqlkrp.connect() as db:
        path = str(tmp_path / "side" / f"{name}.csv").replace("'", "''")
        read = db.connection.execute(
            f"SELECT name, shift, scale FROM read_csv('{path}')"
        ).fetchall()
    assert [row[0] for row in read] == HOSTILE
    shift, scale = krp.program_.prepare.shift.tolist(), krp.program_.prepare.scale.tolist()
    assert [row[1:] for row in read] == list(zip(shift, scale, strict=True))
