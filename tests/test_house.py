"""The architecture's rules, and what the documents promise."""

import ast
import contextlib
import doctest
import importlib
import os
import pkgutil
import re
import runpy
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from support import dyadic, store

import sqlkrp
from sqlkrp.cli import COMMANDS, parser
from sqlkrp.maps import CLASSES, MAPS

ROOT = Path(__file__).parents[1]
PACKAGE = Path(sqlkrp.__file__).parent  # which may be installed

# A room may import the rooms before it, never one after it.
ORDER = [
    "errors", "version", "display", "spelling", "urls", "interrupts", "files", "gzips", "memory",
    "pools", "stages", "batches", "sql", "mapfile", "maps", "quality", "verification", "engines",
    "models", "training", "projects", "summaries", "report", "public", "keeping", "options", "cli",
    "__main__",
]  # fmt: skip
# When it is called, a map takes a DuckDB relation, and has DuckDB read the tables of other
# libraries and write its side tables to files.
LATE = {
    ("engines/database.py", "models"),
    ("engines/database.py", "training"),
    ("engines/database.py", "report"),
    ("maps/arrays.py", "engines"),
    ("maps/frames.py", "engines"),
    ("maps/feature_map.py", "engines"),
    ("maps/fitted.py", "engines"),
    ("maps/fitted.py", "projects"),
    ("maps/fitted.py", "report"),
}


def imports():
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlkrp"):
                names = [node.module] if "." in node.module else []
                names = names or [f"sqlkrp.{alias.name}" for alias in node.names]
                for name in names:
                    yield path, room, name.split(".")[1], node.col_offset


def test_imports_go_one_way():
    for path, room, other, indent in imports():
        if room == "__init__" or room == other:
            continue
        if indent and (path.relative_to(PACKAGE).as_posix(), other) in LATE:
            continue
        assert ORDER.index(other) < ORDER.index(room), f"{path.name}: {room} imports {other}"


def test_a_command_is_one_file_and_one_line_of_the_table():
    folder = PACKAGE / "cli" / "commands"
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *COMMANDS}
    for path in folder.glob("[!_]*.py"):
        assert "sqlkrp.cli.commands" not in path.read_text(), f"{path.name} needs another command"


def test_only_dialects_know_dialects_and_only_maps_know_maps():
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if path.name != "dialects.py":
            assert not re.search(r"dialect(\.name)? *(==|!=|in \()", text), path
        if path.parent.name in ("sql", "engines"):
            assert "sqlkrp.maps.krp" not in text, path
            assert "KRP" not in text, path


def test_contributing_names_every_room():
    told = (ROOT / "CONTRIBUTING.md").read_text()
    for path in PACKAGE.rglob("*.py"):
        is_command = path.parent.name == "commands"  # of which the table tells
        if path.name not in ("__init__.py", "__main__.py") and not is_command:
            full, short = path.relative_to(PACKAGE).as_posix(), path.name
            assert f"`{full}`" in told or f"`{short}`" in told, full


def test_importing_sqlkrp_loads_no_driver():
    code = (
        "import sys, sqlkrp; sqlkrp.KRP(2, 3).fit(['a']).to_sql('t');"
        "print([m for m in ('duckdb', '_duckdb', 'pandas', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_public_names_are_imported_when_they_are_asked_for():
    code = (
        "import signal, sys, sqlkrp; before = signal.getsignal(signal.SIGINT);"
        "print('numpy' in sys.modules, hasattr(sqlkrp, 'no_such_name'));"
        "names = dir(sqlkrp); from sqlkrp import *;"
        "print(KRP is sqlkrp.KRP, {*sqlkrp.__all__} == {*names} <= {*globals()});"
        "print(signal.getsignal(signal.SIGINT) is before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True", "True", "True"]


#: What imports its driver at once is tested with the slow tests, which have it.
DRIVERS = {f"sqlkrp.engines.{name}" for name in ("spark", "spark_running", "spark_writing")}


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(one.name, marks=pytest.mark.slow if one.name in DRIVERS else ())
        for one in pkgutil.walk_packages(sqlkrp.__path__, "sqlkrp.")
    ],
)
def test_doctests(module):
    if module != "sqlkrp.__main__":
        assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_the_installed_package_holds_its_templates_and_its_types():
    from importlib.resources import files

    from sqlkrp.sql.templates import template_text

    for path in (ROOT / "sql_templates").glob("*.sql"):
        assert template_text(path.stem) == path.read_text()
    assert files("sqlkrp").joinpath("py.typed").is_file()


def test_templates_are_all_used():
    sources = "".join(path.read_text() for path in (PACKAGE / "sql").glob("*.py"))
    for path in (ROOT / "sql_templates").glob("*.sql"):
        assert f'"{path.stem}"' in sources, path.name


# --- README and docs/ ----------------------------------------------------------------------------

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Parts of a command that are not run here, and where they are.
NOT_RUN = {
    "pip install": "needs the network; .ci/run runs the README's",
    "pytest": "is what runs this; .ci/run runs it from a clean clone",
    "DUCKDB_PATH=": "runs dbt or SQLMesh, which tests/test_dbt.py does",
}
#: The page of Spark is run with the slow tests, which have Java.
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
# What pages say is run, which takes a while: with the fast tests of those that are read first.
READ_FIRST = ("README.md", "how-it-works.md", "maps.md")
run_pages = pytest.mark.parametrize(
    "page",
    [pytest.param(one, marks=() if one.name in READ_FIRST else pytest.mark.slow) for one in PAGES],
    ids=lambda page: page.name,
)


def blocks(page, language=r"\w*"):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def prose(page):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def desk(tmp_path, run_cli):
    """A folder with the files that the pages' commands read; it runs a command there."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "digits.csv").symlink_to(ROOT / "examples" / "digits.csv")
    frame = dyadic(50, 6).assign(id=range(50))
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as warehouse:
        store(warehouse, frame, "sales")
        warehouse.execute("ALTER TABLE sales ADD PRIMARY KEY (id)")
    with contextlib.closing(sqlite3.connect(tmp_path / "notes.sqlite")) as notes:
        frame.to_sql("notes", notes, index=False)
    with duckdb.connect(str(tmp_path / "sales.duckdb")) as sales:
        store(sales, frame.assign(churned=["yes", "no"] * 25), "sales")
    churn = sqlkrp.KRP(2, 4, random_state=0).fit(frame, exclude=["id"])
    classes = {"classes": ["no", "yes"]}
    sqlkrp.model(map=churn, coef=[1, 2, 3, 4], **classes).save(tmp_path / "churn.model.json")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(command):
        program, *arguments = shlex.split(command)
        if program == "sqlkrp" and not set("|&;<>*?$`") & set(command):  # nothing for a shell
            return run_cli(*arguments).stdout
        done = subprocess.run(
            ["bash", "-c", command],
            capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PATH": path},
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    return run


@every_page
def test_all_code_of_a_page_is_of_a_kind_that_is_run(page):
    kinds = set(re.findall(r"^```(.*)\n(?:.*\n)*?^```$", page.read_text(), re.MULTILINE))
    usages = {"text"} if page.name == "cli.md" else set()
    assert kinds <= {"sh", "console", "python"} | usages


@run_pages
def test_the_python_of_a_page_runs_twice_in_a_row(page, desk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        there = {"__name__": "__main__"}  # a page is read from its beginning
        for block in blocks(page, "python"):
            exec(compile(block, page.name, "exec"), there)


@run_pages
def test_the_commands_of_a_page_run(page, desk, request):
    for block in blocks(page, "sh"):
        for part in re.split(r" && |\n", block.strip()):
            if part.startswith(tuple(NOT_RUN)):
                continue
            if "postgresql://" in part:
                url = request.getfixturevalue("postgres_with_sales")
                part = part.replace("postgresql://me@warehouse/shop", f"'{url}'")
                assert "me@" not in part
            desk(part)


@pytest.fixture
def postgres_with_sales(postgres_url, postgres):
    columns = ", ".join(f"c{i} double precision" for i in range(6))
    postgres.execute(f"CREATE TABLE sales (id int PRIMARY KEY, {columns})")
    values = "i, i / 8.0, i % 5, i % 7, i % 3, -i / 4.0, i % 11"
    postgres.execute(f"INSERT INTO sales SELECT {values} FROM generate_series(1, 50) AS i")
    return postgres_url


@run_pages
def test_the_console_of_a_page_prints_what_it_says(page, desk):
    """Run the console blocks line by line, and compare what they print with what they show."""
    for block in blocks(page, "console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            found = desk(command)
            assert same_words(found, shown), (command, found, shown)


def same_words(found, shown):
    """Equal but for times, and for floating-point errors, which depend on the machine."""

    def plain(text):
        text = re.sub(r"^(seconds +).*$", r"\1-", text, flags=re.MULTILINE)
        return re.sub(r"\d(\.\d+)?e-\d+", "-", text).rstrip()

    return plain(found) == plain(shown)


@every_page
def test_commands_that_a_page_names_exist(page):
    """Those in the middle of a sentence, which are patterns and cannot be run."""
    (commands,) = (one.choices for one in parser()._actions if isinstance(one.choices, dict))
    options = {name for one in commands.values() for name in one._option_string_actions}
    for code in re.findall(r"`([^`]+)`", prose(page)):
        code = " ".join(code.split())
        if named := re.match(r"sqlkrp (\w+)", code):
            assert named[1] in commands or named[1] == "COMMAND", code
        if re.match(r"sqlkrp |--", code) and code not in ("--quick", "--only"):  # of the benchmarks
            assert set(re.findall(r"--[\w-]+", code)) <= options, code
        if module := re.match(r"python -m (benchmarks[.\w]*)", code):
            path = ROOT / module[1].replace(".", "/")
            assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), code
        if script := re.match(r"python (\w+/\w+\.py)", code):
            assert (ROOT / script[1]).is_file(), code
        if name := re.match(r"python -m pydoc sqlkrp\.(\w+)$", code):
            assert hasattr(sqlkrp, name[1]), code


@every_page
def test_links_of_a_page_lead_somewhere(page):
    text = prose(page)
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not heading or heading in headings(target), link


def headings(page):
    """The anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_map_is_on_the_pages_that_tell_which_to_choose():
    readme = (ROOT / "README.md").read_text()
    page = (ROOT / "docs" / "maps.md").read_text()
    for name in CLASSES:
        assert f"`{'chain' if name == 'Chain' else name}`" in readme, name
        assert f"(parameters.md#{name.lower()})" in page, name
    for name in MAPS:
        assert f"`--map {name}`" in page, name


def test_the_readme_is_one_page():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_readme_s_two_commands_are_what_ci_runs():
    commands = [block.strip() for block in blocks(ROOT / "README.md", "sh")]
    assert len(commands) == 2
    assert set(commands) <= set((ROOT / ".ci" / "run").read_text().splitlines())


def test_reference_pages_are_what_the_declarations_say():
    """After a change of options or parameters: python docs/generate.py."""
    code = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    for name, text in code["pages"]().items():
        assert (ROOT / "docs" / name).read_text() == text, name


# It fits five models to each of its maps.
LONG = [ROOT / "examples" / "digits.py"]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow if path in LONG else (), id=path.name)
     for path in sorted((ROOT / "examples").glob("*.py"))],
)  # fmt: skip
def test_examples_run(path, tmp_path):
    subprocess.run([sys.executable, str(path)], check=True, cwd=tmp_path)


def test_the_table_of_dialects_is_what_its_command_prints():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.dialects"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    for table in done.stdout.split("\n\n"):
        assert table.strip() in (ROOT / "docs" / "dialects.md").read_text()


RESULTS = ROOT / "benchmarks" / "results" / "results.md"


def test_measured_tables_of_duckdb_are_the_benchmark_s_output():
    measured = (ROOT / "docs" / "measured.md").read_text()
    section = measured.partition("\n## DuckDB\n")[2].partition("\n## Postgres\n")[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    results = "".join(path.read_text() for path in RESULTS.parent.glob("*.md"))
    assert len(tables) == 8
    assert all(table in results for table in tables)


def test_the_readme_s_performance_is_the_benchmark_s_output():
    readme = (ROOT / "README.md").read_text()
    section = readme.partition("\n## How fast\n")[2].partition("\n## ")[0]
    (shown,) = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    measured = re.findall(r"(?:^\|.*\n)+", RESULTS.read_text(), re.MULTILINE)[0]
    known = {row["way"]: row for row in rows_of(measured)}
    rows = rows_of(shown)
    assert len(rows) == 4
    assert all(row.items() <= known[row["way"]].items() for row in rows)
    assert RESULTS.read_text().partition("sqlkrp at ")[2][:7] in section


def rows_of(table):
    """A Markdown table's rows, by the names of its columns."""
    head, _, *rows = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()
    )
    return [dict(zip(head, row, strict=True)) for row in rows]
