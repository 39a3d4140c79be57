"""What benchmarks do beside measuring: fetch data sets, and write reports."""

import gzip
import hashlib
import http.server
import importlib
import re
import struct
import sys
import threading
from functools import partial
from pathlib import Path

import duckdb
import pytest

import sqlkrp

ROOT = Path(__file__).parents[1]
# At the end, so that the package that is installed is the one that is tested.
sys.path.append(str(ROOT))
fetching = importlib.import_module("benchmarks.fetch")
measuring = importlib.import_module("benchmarks.measuring")
public_data = importlib.import_module("benchmarks.public_data")

ROWS = b"age,name,label\n1.5,Ada,0\n?,,1\n"
# Names; which values are missing; then doubles, or texts.
SUM = hashlib.sha256(
    b"age\0" + b"\0\1" + struct.pack("<dd", 1.5, 0)
    + b"first name\0" + b"\0\1" + b"Ada\0"
    + b"label\0" + b"\0\0" + struct.pack("<dd", 0, 1)
).hexdigest()  # fmt: skip


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """A folder, and the address at which its files are public."""
    (tmp_path / "www").mkdir()
    handler = partial(Quiet, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield tmp_path / "www", f"http://127.0.0.1:{one.server_port}"
        one.shutdown()
        thread.join()


def people(address, checksum=SUM):
    types = {"age": "DOUBLE", "first name": "VARCHAR", "label": "UTINYINT"}
    settings = {"file": "people.csv", "table": "people", "types": types, "missing": "?"}
    read = partial(public_data.separated, **settings)
    return public_data.DataSet((f"{address}/people.csv.gz",), "ours", read, {"people": checksum})


def test_a_data_set_is_fetched_once(server, tmp_path):
    folder, address = server
    (folder / "people.csv.gz").write_bytes(gzip.compress(ROWS))
    (path,) = fetching.fetch(people(address), tmp_path / "data")
    assert duckdb.execute(f"FROM '{path}'").fetchall() == [(1.5, "Ada", 0), (None, None, 1)]
    (folder / "people.csv.gz").unlink()
    assert fetching.fetch(people(address), tmp_path / "data") == []


@pytest.mark.parametrize(
    ("content", "checksum", "message"),
    [
        (None, SUM, "cannot be fetched .*404"),
        (gzip.compress(ROWS)[:-9], SUM, "cannot be read as before"),
        (gzip.compress(b"age,name\n1.5,Ada\n"), SUM, "cannot be read as before"),
        (gzip.compress(ROWS.replace(b"Ada", b"Bob")), SUM, "not the data that was measured"),
        (gzip.compress(ROWS), "0" * 64, f"has the sum {SUM}, and not 0000"),
    ],
    # What is compressed holds the time, which another worker of the tests has a second later.
    ids=["absent", "cut off", "other columns", "other rows", "other sum"],
)
def test_or_nothing_is_written(content, checksum, message, server, tmp_path):
    folder, address = server
    if content is not None:
        (folder / "people.csv.gz").write_bytes(content)
    with pytest.raises(fetching.FetchError, match=message):
        fetching.fetch(people(address, checksum), tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_what_is_there_is_not_written_over(server, tmp_path):
    mine = tmp_path / "people.parquet"
    duckdb.execute(f"COPY (SELECT 1 AS age) TO '{mine}'")
    before = mine.read_bytes()
    with pytest.raises(fetching.FetchError, match="is there already and holds something else"):
        fetching.fetch(people(server[1]), tmp_path)
    assert mine.read_bytes() == before


# --- the handbook's figures -----------------------------------------------------------------------

RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
MEASURED = (ROOT / "docs" / "measured.md").read_text()


def test_tables_of_a_section_stand_in_the_results_file_that_it_names():
    named = 0
    for section in re.split(r"^## ", MEASURED, flags=re.MULTILINE)[1:]:
        for file in set(re.findall(r"\(\.\./(benchmarks/results/\w+\.md)\)", section)):
            results = (ROOT / file).read_text()
            shown = set(re.findall(r"^\|.*$", section, re.MULTILINE))
            assert shown <= set(results.splitlines()), (file, shown - set(results.splitlines()))
            commit = re.search(r"sqlkrp at (\w+)", results)[1]
            assert f"Commit {commit}" in section, file
            named += 1
    assert named >= 4


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.stem)
def test_a_results_file_was_measured_with_this_release(file):
    """Not at each commit: what a release says of itself, it measured."""
    found = re.findall(r"sqlkrp at \w+(?: with changes)? \(version (.+?)\)", file.read_text())
    assert found == [sqlkrp.__version__], f"{file.name} is of another release: measure it again"


def test_a_commit_that_figures_name_is_in_the_history():
    if measuring.git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("no whole clone: what was unpacked has no history")
    pages = [*RESULTS, *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    for page in pages:
        named = set(re.findall(r"\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7}\b", page.read_text()))
        for commit in named:
            assert measuring.git("cat-file", "-t", commit) == "commit", (page.name, commit)


def test_benchmarks_write_the_version_into_their_results():
    written = re.search(r"\(version (.+?)\)", measuring.versions())
    assert written is not None
    assert written[1] == sqlkrp.__version__
