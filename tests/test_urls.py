"""Files and databases that are named by more than a path, up to where the network begins.

Where the extensions of this DuckDB are installed as packages (``.ci/matrix`` does so), also beyond
it: against a server of S3 on this machine, and a lake of files.
"""

import contextlib
import functools
import http.server
import importlib
import shutil
import threading
import urllib.request
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support import dyadic, paper_krp, store

import sqlkrp
from sqlkrp.engines import is_database
from sqlkrp.engines.session import Storage
from sqlkrp.errors import ColumnError, EngineError, ParameterError
from sqlkrp.urls import as_file, as_named, hidden


@contextlib.contextmanager
def serving(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What DuckDB asks the network for: a server that has nothing stands in front of all."""
    if tuple(map(int, duckdb.__version__.split(".")[:3])) < (1, 5, 3):
        pytest.skip("this DuckDB asks the network itself")
    lines: list[str] = []

    class Nothing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            lines.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET  # noqa: N815 - the names of methods of HTTP
        do_CONNECT = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with serving(Nothing) as port:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        yield lines


@pytest.mark.parametrize(
    ("name", "extension"),
    [
        ("md:wh", "motherduck"),
        ("motherduck:wh?motherduck_token=secret", "motherduck"),
        ("ducklake:postgres:dbname=x password=secret", "ducklake"),
        ("s3://bucket/wh.duckdb", "httpfs"),
        ("https://me:secret@example.com/wh.duckdb?token=secret", "httpfs"),
        ("az://box/wh.duckdb", "azure"),
    ],
)
def test_a_database_reaches_duckdb_by_its_name(asked, name, extension):
    with pytest.raises(EngineError, match=f"cannot open .*{extension}") as caught:
        sqlkrp.connect(name)
    assert [extension in line for line in asked] == [True]
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["s3://bucket/a b/t.parquet", "gs://b/*.csv", "hf://datasets/a/b/t.parquet?x=secret"]
)
def test_a_file_reaches_duckdb_by_its_name(asked, name):
    with (
        sqlkrp.connect() as db,
        pytest.raises(EngineError, match=r"cannot read .*httpfs") as caught,
    ):
        db.source(name)
    assert all("httpfs" in line for line in asked)
    assert asked
    assert "secret" not in str(caught.value)
    assert name.partition("?")[0] in str(caught.value)


def test_commands_take_what_duckdb_attaches_and_reads(asked, run_cli):
    run_cli("draw", "--columns", "a,b", "--components", 4, "--gamma", 1, "-o", "m.json", "-q")
    for arguments, extension in (
        (["draw", "s3://x/y.parquet", "-o", "n.json"], "httpfs"),
        (["draw", "md:wh", "--table", "t", "-o", "n.json"], "motherduck"),
        (["featurize", "https://x/y.csv", "--to", "f.csv"], "httpfs"),
        (["export", "m.json", "--file", "https://x/y.csv", "--to", "f.csv"], "httpfs"),
        (["export", "m.json", "--file", "https://x/y.csv", "--to", "s3://x/f.csv"], "httpfs"),
        (["run", "m.json", "--db", "http://x/y.db", "--table", "t", "--into", "f"], "httpfs"),
        (["run", "m.json", "--db", "ducklake:md:x", "--table", "t", "--into", "f"], "ducklake"),
        (["verify", "m.json", "--db", "md:wh", "--table", "t"], "motherduck"),
    ):
        asked.clear()
        told = run_cli(*arguments, code=2).stderr
        assert (told.count("\n"), extension in told) == (1, True), told
        assert all(extension in line for line in asked)
        assert asked


def test_what_is_no_database_is_said_without_asking_the_network(asked, tmp_path, run_cli):
    db, krp = sqlkrp.connect(), paper_krp(n_components=4).fit(dyadic(4, 2))
    lite = sqlkrp.connect(tmp_path / "t.sqlite", create=True)
    for call, message in (
        (lambda: sqlkrp.connect("ducklake:none.ducklake"), "there is no database"),
        (lambda: sqlkrp.connect("ducklake:sqlite:none.db"), "there is no database"),
        (lambda: sqlkrp.connect("mysql://me:secret@h/db"), "no engine here is reached by mysql://"),
        (lambda: sqlkrp.connect("s3://b/t.parquet"), "is a data file, and no database"),
        (lambda: db.source("s3://b/t.orc"), "is no kind of file known here"),
        (lambda: db.source(Path("s3://b/t.parquet")), "give the text 's3://...'"),
        (lambda: db.export(krp, "t", Path("s3://b/t.csv")),
         "give the text 's3://...'"),
        (lambda: db.export(krp, "t", "https://b/t.csv"), "and cannot write it: give a path"),
        (lambda: lite.source("s3://b/t.csv"), "sqlite reads tables"),
        (lambda: lite.export(krp, "t", "s3://b/t.csv"), "is a URL: give a path"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=message.replace("(", r"\(")) as caught:
            call()
        assert "secret" not in str(caught.value)
    told = run_cli("featurize", "a.csv", "--to", "s3://b/f.csv", code=2).stderr
    assert "the map is a file of this machine: name it (--map-file FILE)" in told
    assert asked == []


def test_paths_stay_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = dyadic(20, 2)
    (tmp_path / "s3:").mkdir()
    frame.to_csv(tmp_path / "s3:" / "t.csv", index=False)
    with sqlkrp.connect() as db:
        assert db.source(Path("s3://t.csv")).kinds.keys() == {"c0", "c1"}
    assert as_file("s3:/t.csv") == Path("s3:/t.csv")


def test_a_file_url_is_a_path(tmp_path):
    frame = dyadic(20, 2)
    frame.to_csv(tmp_path / "a b.csv", index=False)
    url = (tmp_path / "a b.csv").as_uri()
    assert as_file(url) == tmp_path / "a b.csv"
    with sqlkrp.connect() as db:
        krp = paper_krp(n_components=4).fit(db.source(url))
        with pytest.raises(ParameterError, match="is read by this"):
            db.export(krp, url, url, replace=True)


def test_names_tell_files_databases_and_tables_apart():
    assert [is_database(name) for name in ("md:wh", "ducklake:a:b", "s3://b/x.ddb")] == [True] * 3
    assert [is_database(name) for name in ("s3://b/x.csv", "C:\\x.csv", "C:/x.csv")] == [False] * 3
    assert as_named("main.t") == "main.t"
    assert as_named('"a://b"') == '"a://b"'
    assert as_named(("s3://b",)) == ("s3://b",)
    assert as_named("s3://b/t.csv?s3_region=x").name == "t.csv"
    assert hidden("'https://u:p@h/x?k=1' and 'md:wh?token=2'") == "'https://h/x' and 'md:wh'"


# --- with the extensions of DuckDB ---------------------------------------------------------------

EXTENSIONS = ("httpfs", "ducklake", "sqlite_scanner")


@pytest.fixture
def extensions(tmp_path, monkeypatch):
    """A home folder in which the extensions are, as if DuckDB had fetched them."""
    connection = duckdb.connect()
    version, platform = connection.execute(
        "SELECT library_version, (SELECT platform FROM pragma_platform()) FROM pragma_version()"
    ).fetchone()
    target = tmp_path / "home" / ".duckdb" / "extensions" / version / platform
    target.mkdir(parents=True)
    for name in EXTENSIONS:
        try:
            package = importlib.import_module(f"duckdb_extension_{name}")
        except ImportError:
            pytest.skip(f"the package duckdb-extension-{name} is not installed")
        file = Path(package.__file__).parent / "extensions" / version / f"{name}.duckdb_extension"
        if not file.is_file():
            pytest.skip(f"duckdb-extension-{name} is of another DuckDB than {version}")
        shutil.copy(file, target)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def bucket(extensions, monkeypatch):
    """A bucket of a server on this machine, with a secret that DuckDB finds in the home folder."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    store_of = importlib.import_module("boto3").client(
        "s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1",
        aws_access_key_id="x", aws_secret_access_key="y",
    )  # fmt: skip
    store_of.create_bucket(Bucket="bucket")
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE PERSISTENT SECRET here (TYPE s3, KEY_ID 'x', SECRET 'y', REGION 'us-east-1', "
            f"ENDPOINT '{host}:{port}', URL_STYLE 'path', USE_SSL false)"
        )
    yield store_of
    urllib.request.urlopen(
        f"http://{host}:{port}/moto-api/reset", data=b""
    )  # it is one in a process
    server.stop()


def names_in(bucket):
    return [one["Key"] for one in bucket.list_objects_v2(Bucket="bucket").get("Contents", [])]


@pytest.mark.slow
def test_features_go_from_bucket_to_bucket(bucket, run_cli, tmp_path):
    frame = dyadic(500, 6)
    frame["c0"] = np.arange(500)
    frame.to_csv(tmp_path / "t.csv", index=False)
    with duckdb.connect(str(tmp_path / "wh.duckdb")) as connection:
        store(connection, frame)
    for name in ("t.csv", "wh.duckdb"):
        bucket.upload_file(str(tmp_path / name), "bucket", name)
    drawing = ("--components", 8, "--scaling", "none", "--gamma", 0.125)
    run_cli("draw", "s3://bucket/t.csv", *drawing, "-o", "m.json")
    run_cli("draw", "s3://bucket/wh.duckdb", "--table", "t", *drawing, "-o", "m.json")  # the same
    expected = sqlkrp.load(tmp_path / "m.json").transform(frame)
    export = ("export", "m.json", "--file", "s3://bucket/t.csv", "--to")
    for name in ("f.csv", "f.csv.gz", "f.parquet"):
        run_cli(*export, f"s3://bucket/{name}")
        with duckdb.connect() as connection:
            found = connection.execute(f"FROM 's3://bucket/{name}'").df().to_numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert "exists already" in run_cli(*export, f"s3://bucket/{name}", code=2).stderr
        run_cli(*export, f"s3://bucket/{name}", "--replace")
    assert "is read by this" in run_cli(*export, "s3://bucket/t.csv", "--replace", code=2).stderr
    run_cli("verify", "m.json", "--db", "s3://bucket/wh.duckdb", "--table", "t")
    run_cli(*export, "s3://bucket/kept.parquet", "--keep", "c0")
    result = ("--result", "s3://bucket/kept.parquet", "--key", "c0")
    run_cli("verify", "m.json", "--file", "t.csv", *result)
    into = ("run", "m.json", "--db", "s3://bucket/wh.duckdb", "--table", "t", "--into", "f")
    assert "read-only" in run_cli(*into, code=2).stderr
    assert "404" in run_cli("draw", "s3://bucket/none.csv", "-o", "n.json", code=2).stderr
    assert names_in(bucket) == [
        "f.csv", "f.csv.gz", "f.parquet", "kept.parquet", "t.csv", "wh.duckdb"
    ]  # fmt: skip


@pytest.mark.slow
def test_of_features_that_fail_nothing_is_uploaded(bucket):
    failing = "SELECT CASE WHEN range < 99999 THEN 1 ELSE error('no') END FROM range(100000)"
    with sqlkrp.connect() as db:
        with (
            pytest.raises(EngineError, match=r"writing s3://bucket/f.csv: .* no"),
            db._session.destination("s3://bucket/f.csv", Storage()) as write,
        ):
            write(failing, None)
        with pytest.raises(duckdb.Error):
            db.connection.execute(f"COPY ({failing}) TO 's3://bucket/by_duckdb.csv'")
    # Which is why features are whole before they are uploaded.
    assert names_in(bucket) == ["by_duckdb.csv"]


@pytest.mark.slow
def test_files_of_a_web_server_are_read(extensions, run_cli, tmp_path):
    dyadic(500, 6).to_csv(tmp_path / "t.csv", index=False)
    handler = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": print})
    with serving(functools.partial(handler, directory=str(tmp_path))) as port:
        url = f"http://127.0.0.1:{port}"
        run_cli("draw", f"{url}/t.csv?key=secret", "--components", 4, "-o", "m.json")
        told = run_cli("verify", "m.json", "--file", f"{url}/t.csv", "--sample", 50).stdout
        assert "on 50 rows" in told
        told = run_cli("draw", f"{url}/none.csv?key=secret", "-o", "n.json", code=2).stderr
        assert ("404" in told, "secret" in told) == (True, False)


@pytest.mark.slow
def test_a_lake_and_another_engines_file_are_databases(extensions, run_cli, monkeypatch):
    monkeypatch.chdir(extensions)
    frame = dyadic(200, 3)
    krp = paper_krp(n_components=4).fit(frame)
    krp.save("m.json")
    for name in ("ducklake:meta.ducklake", "sqlite:shop.db"):
        with pytest.raises(ParameterError, match="there is no database"):
            sqlkrp.connect(name)
        with sqlkrp.connect(name, create=True) as db:
            store(db.connection, frame)
        run_cli("run", "m.json", "--db", name, "--table", "t", "--into", "f", "--keep", "c0")
        assert "exists already" in run_cli(
            "run", "m.json", "--db", name, "--table", "t", "--into", "f", code=2
        ).stderr  # fmt: skip
        run_cli("verify", "m.json", "--db", name, "--table", "t")
        with sqlkrp.connect(duckdb.connect(name)) as db:  # an open connection is as good
            found = db.connection.execute("SELECT * EXCLUDE (c0) FROM f").df().to_numpy()
            with pytest.raises(ColumnError, match="cannot read none"):
                db.source("none")
            db.connection.close()
        np.testing.assert_allclose(
            np.sort(found, axis=0), np.sort(krp.transform(frame), axis=0), rtol=1e-12
        )
