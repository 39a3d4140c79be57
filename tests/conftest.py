from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb
import psycopg
import pytest
import threadpoolctl
from engines import ENGINES, SLOW_ENGINES, schema_of_its_own
from hypothesis import is_hypothesis_test, settings
from mariadb_server import running as running_mariadb
from postgres_server import url_of_its_own as postgres_server_of_its_own
from spark_server import MASTER as SPARK
from spark_server import session as spark_of_its_own
from support import paper_krp

from sqlkrp.cli import main
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.forms import FORMS

# A shell starts background jobs deaf to Ctrl-C, and they would hand that on to what tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    """With ``-m slow`` the tests of properties run again, with ten times the examples."""
    if SPARK == "connect":  # whose own code warns so wherever rows are collected
        told = "ignore:PySpark does not yet fully support pandas:FutureWarning"
        config.addinivalue_line("filterwarnings", told)
    threadpoolctl.threadpool_limits(1, "blas")  # threads would wait for each other's few numbers
    # No test is held to seconds: machines are busy, and the first example imports what it needs.
    settings.register_profile("calm", deadline=None)
    settings.load_profile("calm")
    settings.register_profile("thorough", deadline=None, max_examples=1000)
    if config.getoption("markexpr") == "slow":
        settings.load_profile("thorough")


def pytest_collection_finish():
    # What was imported stays, and need not be looked through again and again.
    gc.set_threshold(50_000, 20, 100)


def exists(item):
    """Whether an engine has the form that a case is of; one test asks for those that it has not."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    engine = params.get("engine", params.get("place"))
    form = FORMS.get(params.get("form"))
    return not (engine and form) or not form.lacks(dialect(engine))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if exists(item)]
    for item in items:
        if config.getoption("markexpr") == "slow" and is_hypothesis_test(item.function):
            item.add_marker("slow")
        if hasattr(item, "callspec") and item.callspec.params.get("engine") in SLOW_ENGINES:
            item.add_marker("slow")


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


class Done(NamedTuple):
    """What a command did, as ``subprocess.run`` tells it."""

    returncode: int
    stdout: str
    stderr: str


def checked(done, code):
    assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    if code == 2:
        assert len(done.stderr.splitlines()) == 1, done.stderr
    return done


@pytest.fixture
def run_cli(tmp_path, monkeypatch, capsys) -> Callable[..., Done]:
    """Run one command in an empty folder: in this process, as to start one takes longer."""

    def run(*arguments: object, code: int | None = 0, **variables: str) -> Done:
        capsys.readouterr()
        terminated = signal.getsignal(signal.SIGTERM)
        with monkeypatch.context() as here, warnings.catch_warnings():
            here.chdir(tmp_path)
            for name, value in variables.items():
                here.setenv(name, value)
            warnings.simplefilter("default", UserWarning)  # as in a process of its own
            try:
                found = main([*map(str, arguments)])
            except SystemExit as end:
                found = end.code
            finally:
                signal.signal(signal.SIGTERM, terminated)
        return checked(Done(found, *capsys.readouterr()), code)

    return run


@pytest.fixture
def run_installed(tmp_path) -> Callable[..., Done]:
    """Run the installed command in a process of its own, as a user would."""
    command = shutil.which("sqlkrp") or str(Path(sys.executable).with_name("sqlkrp"))

    def run(*arguments: object, code: int | None = 0, **options) -> Done:
        done = subprocess.run(
            [command, *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path, **options
        )
        return checked(Done(done.returncode, done.stdout, done.stderr), code)

    return run


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a running Postgres: the tests' own, or the one that is asked for."""
    if given := os.environ.get("SQLKRP_TEST_POSTGRES"):
        yield given
        return
    with postgres_server_of_its_own() as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_server():
    """The socket of a running MariaDB."""
    with running_mariadb() as socket:
        yield socket


@pytest.fixture(scope="session")
def spark_session():
    """A session of the tests' own, in this process; another one would not start."""
    with spark_of_its_own() as session:
        yield session


@pytest.fixture
def postgres_url(postgres_server):
    with schema_of_its_own(postgres_server) as url:
        yield url


@pytest.fixture
def postgres(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True, prepare_threshold=None) as opened:
        yield opened


@pytest.fixture(scope="session", params=[*ENGINES, *SLOW_ENGINES])
def engine(request, tmp_path_factory):
    """Each engine that generated SQL is executed in."""
    kind = (ENGINES | SLOW_ENGINES)[request.param]
    server = request.getfixturevalue(kind.server) if kind.server else None
    with kind.opened(tmp_path_factory.mktemp(kind.name), server) as one:
        yield one


@pytest.fixture(params=["duckdb", "postgres", "sqlite"])
def place(request, tmp_path_factory):
    """A database of its own in each engine that has sessions; it can be opened by its URL, too."""
    folder, kind = tmp_path_factory.mktemp(request.param), ENGINES[request.param]
    if kind.server:
        opened = kind.opened(folder, request.getfixturevalue(kind.server))
    else:
        opened = contextlib.closing(kind(folder / f"w.{kind.name}"))
    with opened as one:
        yield one


# What many files ask for; those that need another map or database have their own.


@pytest.fixture
def krp():
    return paper_krp(2, 5, n_terms=2, random_state=0).fit([f"c{i}" for i in range(6)])


@pytest.fixture
def db(stored):
    return stored.database
