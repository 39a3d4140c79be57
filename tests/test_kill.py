"""A process that is stopped half way leaves nothing half made."""

import _thread
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest
from support import bytes_of, read_table, wait_until

import sqlkrp
from sqlkrp.cli.running import main
from sqlkrp.engines.duckdb_running import Running

ROWS = 800_000
MAP = "m.json"


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    folder = tmp_path_factory.mktemp("big")
    with duckdb.connect(str(folder / "w.duckdb")) as connection:
        columns = ", ".join(f"random() AS c{i}" for i in range(8))
        connection.execute(f"CREATE TABLE t AS SELECT {columns} FROM range({ROWS})")
        connection.execute("CREATE TABLE small AS FROM t LIMIT 10")
    krp = sqlkrp.KRP(2, 100, pool="hadamard", random_state=0).fit([f"c{i}" for i in range(8)])
    krp.save(folder / MAP)
    return folder


def start(folder, *arguments):
    command = [sys.executable, "-m", "sqlkrp", *arguments]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process):
    """What a process said, when it ends; one that does not end is an error, not a wait."""
    try:
        return process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise


def parts(folder):
    return [path for path in folder.iterdir() if ".sqlkrp-" in path.name]


EXPORT = ("export", MAP, "--db", "w.duckdb", "--table", "t", "--to", "f.parquet")
RUN = ("run", MAP, "--db", "w.duckdb", "--table", "t", "--into", "f")


def written(folder):
    return any(bytes_of(path) > 1_000_000 for path in parts(folder))


def test_kill_9_during_an_export(big):
    process = start(big, *EXPORT)
    wait_until(lambda: written(big), process)
    process.kill()
    ended(process)
    assert not (big / "f.parquet").exists()
    assert [p.name for p in parts(big)] == [f".f.parquet.sqlkrp-{process.pid}-0.part"]
    # The next run to the same target clears it and works.
    small = [*EXPORT]
    small[small.index("t")] = "small"
    again = start(big, *small)
    said = ended(again)
    assert again.returncode == 0, said
    assert parts(big) == []
    assert len(read_table(big / "f.parquet")) == 10
    (big / "f.parquet").unlink()


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_ctrl_c_during_an_export_leaves_nothing_at_all(big, number):
    before = sorted(p.name for p in big.iterdir())
    process = start(big, *EXPORT)
    wait_until(lambda: written(big), process)
    sent = time.monotonic()
    os.kill(process.pid, number)
    out, err = ended(process)
    assert time.monotonic() - sent < 60  # DuckDB may hear it never: then it is let go after 30
    assert process.returncode == 130
    assert err == "sqlkrp: interrupted; nothing was left behind\n"
    assert out == ""
    assert sorted(p.name for p in big.iterdir()) == before


def tables(folder):
    with duckdb.connect(str(folder / "w.duckdb")) as connection:
        return sorted(row[0] for row in connection.execute("SHOW TABLES").fetchall())


def database_bytes(folder):
    return sum(bytes_of(p) for p in folder.iterdir() if p.name.startswith("w.duckdb"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_stopping_a_run_leaves_no_table(big, number):
    size = database_bytes(big)
    process = start(big, *RUN)
    wait_until(lambda: database_bytes(big) > size + 1_000_000, process)
    os.kill(process.pid, number)
    ended(process)
    assert tables(big) == ["small", "t"]
    again = start(big, "run", MAP, "--db", "w.duckdb", "--table", "small", "--into", "f")
    said = ended(again)
    assert again.returncode == 0, said
    assert tables(big) == ["f", "small", "t"]
    with duckdb.connect(str(big / "w.duckdb")) as connection:
        assert connection.execute("SELECT COUNT(*) FROM f").fetchone() == (10,)
        connection.execute("DROP TABLE f")
    assert sorted(p.name for p in big.iterdir()) == [MAP, "w.duckdb"]


@pytest.fixture
def folder(big, tmp_path, monkeypatch):
    shutil.copy(big / MAP, tmp_path)
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        columns = ", ".join(f"random() AS c{i}" for i in range(8))
        connection.execute(f"CREATE TABLE t AS SELECT {columns} FROM range(20_000)")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_ctrl_c_while_a_run_commits_says_that_the_table_is_there(folder, monkeypatch, capsys):
    """The driver hears one in the middle of a commit, and the commit goes through."""
    end = Running._end

    def interrupted(session, *, keep):
        # Again and again, of which some come while DuckDB is at work.
        over = threading.Event()

        def interrupt():
            while not over.wait(0.001):
                _thread.interrupt_main()

        thread = threading.Thread(target=interrupt)

        class Connection:
            def commit(self):
                thread.start()
                try:
                    of_the_driver.commit()
                finally:
                    over.set()
                    thread.join()

            def __getattr__(self, name):
                return getattr(of_the_driver, name)

        of_the_driver, session.connection = session.connection, Connection()
        try:
            end(session, keep=keep)
        finally:
            session.connection = of_the_driver

    monkeypatch.setattr(Running, "_end", interrupted)
    assert main([*RUN]) == 130
    said = "sqlkrp: interrupted; what was asked for was committed before, and is there\n"
    assert capsys.readouterr().err == said
    with duckdb.connect("w.duckdb") as connection:
        assert connection.execute("SELECT COUNT(*) FROM f").fetchone() == (20_000,)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_just_before_a_commit_leaves_no_table(folder, monkeypatch, capsys, number):
    def interrupted(session, *, keep):
        signal.raise_signal(number)

    monkeypatch.setattr(Running, "_end", interrupted)
    assert main([*RUN]) == 130
    assert capsys.readouterr().err == "sqlkrp: interrupted; nothing was left behind\n"
    assert tables(folder) == ["t"]


def test_ctrl_c_while_a_database_is_closed_after_a_commit(folder, monkeypatch, capsys):
    close = Running.close

    def interrupted(session):
        signal.raise_signal(signal.SIGINT)
        close(session)

    monkeypatch.setattr(Running, "close", interrupted)
    assert main([*RUN]) == 130
    said = "sqlkrp: interrupted; what was asked for was committed before, and is there\n"
    assert capsys.readouterr().err == said
    assert tables(folder) == ["f", "t"]


TABLE = ("--db", "w.duckdb", "--table", "t")


@pytest.mark.parametrize(
    ("command", "there"),
    [
        (RUN, "what was asked for was committed before, and is there"),
        (("run", MAP, *TABLE, "--into", "v", "--view"), "what was asked for was committed before, "
         "and is there"),
        (("export", MAP, *TABLE, "--to", "f.csv"), "'f.csv' was written before, and is there"),
        (("draw", "w.duckdb", "--table", "t", "-o", "d.json"),
         "'d.json' was written before, and is there"),
        (("tables", MAP, "-o", "side"), "'side' was written before, and is there"),
        (("featurize", "w.duckdb", "--table", "t", "--to", "f.csv"),
         "'f.csv' was written before, and is there; 'f.map.json' was written before, and is there"),
    ],
)  # fmt: skip
def test_ctrl_c_after_the_work_says_what_is_there(folder, monkeypatch, capsys, command, there):
    """While it is told what was done, when a database is closed already."""
    monkeypatch.setattr(
        "sqlkrp.cli.console.aligned", lambda _: [signal.raise_signal(signal.SIGINT)]
    )
    assert main([*command]) == 130
    assert capsys.readouterr().err == f"sqlkrp: interrupted; {there}\n"
    # The next run in this process has done nothing yet.
    monkeypatch.setattr(Running, "_end", lambda *_, keep: signal.raise_signal(signal.SIGINT))
    assert main(["run", MAP, *TABLE, "--into", "other"]) == 130
    assert capsys.readouterr().err == "sqlkrp: interrupted; nothing was left behind\n"


def folders_with(folder):
    """What files the folders hold, of which one is to be there at any time."""
    return {one.name: sorted(os.listdir(one)) for one in folder.iterdir() if one.is_dir()}


def test_ctrl_c_while_a_folder_is_replaced_leaves_one_that_is_whole(folder, monkeypatch, capsys):
    tables = ["tables", MAP, "-o", "side"]
    assert main(tables) == 0
    before = folders_with(folder)
    replace = Path.replace

    def interrupted(path, target):
        signal.raise_signal(signal.SIGINT)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    capsys.readouterr()
    assert main([*tables, "--replace"]) == 130
    said = "sqlkrp: interrupted; 'side' was written before, and is there\n"
    assert capsys.readouterr().err == said
    assert folders_with(folder) == before
    assert list(before) == ["side"]


def test_a_folder_that_cannot_be_replaced_stays(folder, monkeypatch, capsys):
    tables = ["tables", MAP, "-o", "side"]
    assert main(tables) == 0
    before = folders_with(folder)

    def refused(path, target):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "replace", refused)
    assert main([*tables, "--replace"]) == 2
    assert folders_with(folder) == before
    assert list(before) == ["side"]


@pytest.mark.parametrize("name", ["wide.csv", pytest.param("wide*.csv", marks=pytest.mark.slow)])
def test_ctrl_c_while_a_csv_s_types_are_looked_for(tmp_path, name):
    """All of the file is read for them, which the driver does not end for a signal by itself."""
    columns = ", ".join(f"round(random(), 3) AS c{i}" for i in range(300))
    path = tmp_path / "wide.csv"
    duckdb.execute(f"COPY (SELECT {columns} FROM range(40_000)) TO '{path}' (HEADER)")
    process = start(tmp_path, "draw", name, "-o", MAP)
    files = f"/proc/{process.pid}/fd"

    def opened():
        try:
            return str(path) in map(os.path.realpath, (f"{files}/{n}" for n in os.listdir(files)))
        except OSError:  # one of them was closed meanwhile
            return False

    wait_until(opened, process)
    os.kill(process.pid, signal.SIGINT)
    out, err = ended(process)
    assert (process.returncode, out) == (130, ""), err
    assert err == "sqlkrp: interrupted; nothing was left behind\n"
    assert [one.name for one in tmp_path.iterdir()] == ["wide.csv"]
