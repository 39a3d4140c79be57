"""How often the engine is asked, and how often a file is looked at: counted by the engines.

DuckDB logs statements and what it does with files, SQLite traces, and libpq writes down what goes
to the server.
"""

import contextlib
import gzip
import re
import sqlite3

import duckdb
import numpy as np
import psycopg
import pytest
from support import dyadic, paper_krp, store

import sqlkrp
from sqlkrp.cli import main
from sqlkrp.engines.duckdb import DuckDB
from sqlkrp.errors import ParameterError
from sqlkrp.summaries.lines import left_out_text

COLUMNS = ["c0", "c1", "c2", "c3"]


@pytest.fixture
def krp():
    return paper_krp(2, 5, random_state=0).fit(COLUMNS)


class Log:
    """What a DuckDB database did since the log was opened, or last read."""

    def __init__(self, connection):
        self._connection = connection.cursor()
        self._connection.execute("CALL enable_logging(storage = 'memory', level = 'trace')")
        self._seen = 0

    def _entries(self, kind):
        sql = "SELECT message FROM duckdb_logs WHERE type = ?"
        return [row[0] for row in self._connection.execute(sql, [kind]).fetchall()]

    def statements(self):
        every = [one for one in self._entries("QueryLog") if "duckdb_logs" not in one]
        found, self._seen = every[self._seen :], len(every)
        return found

    def opened(self, name):
        return sum(name in one and '"OPEN"' in one for one in self._entries("FileSystem"))


@pytest.fixture
def log(connection):
    store(connection, dyadic(20, 4).assign(id=range(20)))
    return Log(connection)


def words(statements):
    """The first word of each statement, or what it makes."""
    bare = [re.sub(r"--[^\n]*\n", "", one).split() for one in statements]
    return [" ".join(one[:2]) if one[0].upper() == "CREATE" else one[0].upper() for one in bare]


# --- statements -----------------------------------------------------------------------------------


#: Twice whether there is a transaction; its begin; the columns, the target, the values.
ASKED = ["SELECT", "SELECT", "BEGIN", "DESCRIBE", "SELECT", "SELECT"]
ENDED = ["COMMENT", "COMMIT"]


def test_create_sends_duckdb_nine_statements(connection, log, krp):
    db = sqlkrp.connect(connection)
    db.create(krp, "t", "f", keep=["id"])
    assert words(log.statements()) == [*ASKED, "CREATE TABLE", *ENDED]
    db.create(krp, "t", "f", keep=["id"], replace=True)
    # A target that is there is not to be what is read, which every plan tells.
    look = ["SELECT", "SET", "EXPLAIN", "SET"]
    assert words(log.statements()) == [*ASKED, *look, "SELECT", "CREATE OR", *ENDED]


@pytest.mark.skipif(duckdb.__version__ < "2", reason="it logs some statements as empty texts")
def test_each_side_table_is_made_filled_and_dropped_once(connection, log, krp):
    db = sqlkrp.connect(connection)
    run = db.create(krp, "t", "f", form="tables")
    found = words(log.statements())
    count = len(run.statement.side_tables)
    assert count == 4
    # With a view of its values, from which it is filled.
    created = ["CREATE TEMPORARY", "CREATE TEMPORARY", "INSERT", "DROP"]
    assert found == [*ASKED, *created * count, "CREATE TABLE", *["DROP"] * count, *ENDED]


def test_export_and_verify_read_the_source_twice(connection, log, krp, tmp_path):
    db = sqlkrp.connect(connection)
    db.export(krp, "t", tmp_path / "f.csv")
    exported = log.statements()
    assert words(exported)[-5:] == ["BEGIN", "DESCRIBE", "SELECT", "COPY", "ROLLBACK"]
    assert db.verify(krp, "t").ok
    verified = log.statements()
    # The rows are counted where missing values are, and the features are one statement.
    assert words(verified)[-5:] == ["BEGIN", "DESCRIBE", "SELECT", "WITH", "ROLLBACK"]


def test_fit_looks_a_table_s_key_up_once(connection, log):
    sqlkrp.KRP(2, 5, random_state=0).fit(sqlkrp.connect(connection).source("t"))
    found = log.statements()
    assert words(found) == ["DESCRIBE", "SELECT", "SELECT", "SELECT", "SELECT"]
    assert sum("information_schema" in one for one in found) == 1


def test_verify_plans_and_writes_the_statement_that_it_runs(connection, krp, monkeypatch):
    """Once, in the form that it names; what is run is what was written, over a sample."""
    from sqlkrp.sql import statement

    written, planned = [], []
    write, plan = statement._statement, statement.plan_program
    monkeypatch.setattr(
        statement, "_statement", lambda *given: written.append(write(*given)) or written[-1]
    )
    monkeypatch.setattr(
        statement,
        "plan_program",
        lambda *given, **named: planned.append(1) or plan(*given, **named),
    )
    store(connection, dyadic(20, 4).assign(id=range(20)))
    db, log = sqlkrp.connect(connection), Log(connection)
    for form, plans in (("auto", 1), ("wide", 1), ("tables", 0)):
        written.clear()
        planned.clear()
        result = db.verify(krp, "t", form=form)
        assert result.ok
        assert (len(written), len(planned)) == (1, plans)
        assert result.form == written[0].form == ("tables" if form == "tables" else "wide")
        text = re.sub(r"^(--[^\n]*\n)*", "", written[0].text)  # as DuckDB logs it
        assert sum(text in one for one in log.statements()) == 1
        # The features are the columns that create makes.
        assert written[0].columns[written[0].n_kept :] == krp.program_.names


def test_sqlite_drops_only_the_side_tables_that_were_made(krp):
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        dyadic(20, 4).assign(id=range(20)).to_sql("t", connection, index=False)
        sent = []
        connection.set_trace_callback(sent.append)
        run = sqlkrp.connect(connection).create(krp, "t", "f", form="tables")
    drops = [one for one in sent if one.startswith("DROP TABLE")]
    assert len(drops) == len(run.statement.side_tables) == 4
    assert sum("sqlite_master" in one for one in sent) == 1


def test_create_sends_postgres_ten_statements(postgres_url, krp, tmp_path):
    with psycopg.connect(postgres_url, autocommit=True, prepare_threshold=None) as connection:
        columns = ", ".join(f"{name} double precision" for name in COLUMNS)
        connection.execute(f"CREATE TABLE t (id int, {columns})")
        connection.execute("INSERT INTO t SELECT i, i, i, i, i FROM generate_series(1, 20) AS i")
        with (tmp_path / "sent").open("w+") as file:
            connection.pgconn.trace(file.fileno())
            sqlkrp.connect(connection).create(krp, "t", "f", keep=["id"])
            connection.pgconn.untrace()
            file.seek(0)
            sent = re.findall(r"\tF\t\d+\t(?:Query|Parse)\t[^\t]*", file.read())
    assert len(sent) == 10, sent
    # Whether it is there, and how large it is, is seen of a value at once.
    (look,) = (one for one in sent if "SELECT COUNT(*)" in one)
    assert look.count("ABS(CAST(") == len(COLUMNS)


# --- files ----------------------------------------------------------------------------------------


def test_featurize_looks_for_a_csv_s_types_once(monkeypatch, tmp_path):
    """What the command's own database did, read before it is closed."""
    dyadic(20, 4).to_csv(tmp_path / "t.csv", index=False)
    connect, close, did = duckdb.connect, DuckDB.close, []
    opened = []

    def opening(*given, **named):
        connection = connect(*given, **named)
        opened.append(Log(connection))
        return connection

    def closing(session):
        if opened:
            log = opened.pop()
            did.append((log.statements(), log.opened("t.csv")))
        close(session)

    monkeypatch.setattr(duckdb, "connect", opening)
    monkeypatch.setattr(DuckDB, "close", closing)
    arguments = ["featurize", str(tmp_path / "t.csv"), "--to", str(tmp_path / "f.csv"), "-q"]
    assert main([*arguments, "--components", "5"]) == 0
    ((statements, times),) = did
    of_file = [one for one in statements if "t.csv" in one]
    looks = [one for one in of_file if "auto_detect = false" not in one]
    assert [one.split("(")[0] for one in looks] == ["SELECT * FROM sniff_csv"]
    # The statistics (in two statements), what is missing, and the features.
    assert len(of_file) == 1 + 4
    assert times == 1 + 4


ODD = {
    "quoted line ends": b'a,"b\nc",t\n1,2.5,"x\ny"\n3,4.5,"""z"",w"\n',
    "equal names": b"a,a,A,a_1\n1,2,3,4\n5,6,7,8\n",
    "no names": b"1,2.5\n3,4.5\n",
    "empty names": b",b,\n1,2,3\n4,5,6\n",
    "odd names": b'\'a\',"b""c",{d},%e,$f\n1,2,3,4,5\n6,7,8,9,1\n',
    "marks": b"# told\na;b\n1,5;true\n# more\n2,5;false\n",
    "large numbers": b"a,b,c\n9223372036854775808,1.50,007\n" + b"1" * 60 + b",1e300,8\n",
    "a title": b"a title\nof two lines\na,b\n1,2\n3,4\n",
    "a late fraction": b"a,b\n" + b"1,2\n" * 30000 + b"2.5,true\n",
    "missing values": b'a,b\n,""\n1,"x"\n',
    "no last line end": b"a,b\n1,2\n3,4",
    "a mark of bytes": b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
    "names only": b"a,b\n",
}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_a_csv_is_read_as_duckdb_reads_it_by_itself(connection, content, suffix, tmp_path):
    path = tmp_path / f"it's [odd]{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    name = str(path).replace("[", "[[]").replace("'", "''")
    itself = f"read_csv('{name}', sample_size = -1, hive_partitioning = false)"
    types = dict(row[:2] for row in connection.execute(f"DESCRIBE FROM {itself}").fetchall())
    data = sqlkrp.connect(connection).source(path).data
    assert "auto_detect = false" in data.relation
    assert dict(data.types) == types
    rows = connection.execute(f"SELECT * FROM {data.relation}").fetchall()
    assert rows == connection.execute(f"FROM {itself}").fetchall()
    described = connection.execute(f"DESCRIBE SELECT * FROM {data.relation}").fetchall()
    assert dict(row[:2] for row in described) == types


def test_several_files_are_found_as_before(connection, tmp_path):
    frame = dyadic(20, 4)
    for place, part in enumerate((frame[:10], frame[10:])):
        part.to_csv(tmp_path / f"t{place}.csv", index=False)
    db = sqlkrp.connect(connection)
    source = db.source(tmp_path / "t*.csv")
    krp = sqlkrp.KRP(2, 5, random_state=0).fit(source)
    found = db.relation(krp, source).fetchnumpy()
    assert np.allclose(np.column_stack(list(found.values())), krp.transform(frame), rtol=1e-9)


def test_a_source_is_handed_on_only_to_what_it_is_of(connection, krp, tmp_path):
    store(connection, dyadic(9, 4).assign(id=range(9)))
    db = sqlkrp.connect(connection)
    source = db.source("t")
    assert db.create(krp, source, "f").rows == 9
    assert db.export(krp, source, tmp_path / "f.csv").rows == 9
    assert db.verify(krp, source).ok
    with pytest.raises(ParameterError, match=r"t' is read by this: give"):
        db.create(krp, source, "t", replace=True)
    with pytest.raises(ParameterError, match="t is a source of another database"):
        sqlkrp.connect().create(krp, source, "f")
    with pytest.raises(ParameterError, match=r"was made a source with another long"):
        db.create(krp, source, "g", long=("id", "c0", "c1"))
    path = tmp_path / "t.csv"
    dyadic(9, 4).to_csv(path, index=False)
    with pytest.raises(ParameterError, match="is read by this: write to another file"):
        db.export(krp, db.source(path), path, replace=True)


def test_many_columns_that_are_left_out_are_counted():
    few, many = ({f"c{i}": "text" for i in range(count)} for count in (2, 300))
    assert left_out_text(few) == "c0 (text), c1 (text)"
    told = left_out_text(many)
    assert told.startswith("300: c0 (text), c1 (text)")
    assert len(told) < 200
