"""The architecture's rules, and what the documents promise."""

import ast
import doctest
import importlib
import os
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import sqlkrp

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sqlkrp"

# A room may import the rooms before it, never one after it.
ORDER = [
    "errors", "version", "display", "spelling", "files", "pools", "stages", "sql", "mapfile",
    "maps", "verification", "engines", "report", "keeping", "options", "arguments", "cli",
    "__main__",
]  # fmt: skip
# When it is called, a map takes a DuckDB relation, and has DuckDB write its side tables to files.
LATE = {("maps/source.py", "engines"), ("maps/feature_map.py", "engines")}


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


def test_only_dialects_know_dialects_and_only_maps_know_maps():
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if path.name != "dialects.py":
            assert not re.search(r"dialect(\.name)? *(==|!=|in \()", text), path
        if path.parent.name in ("sql", "engines"):
            assert "sqlkrp.maps.krp" not in text, path
            assert "KRP" not in text, path


def test_importing_sqlkrp_loads_no_driver():
    code = (
        "import sys, sqlkrp; sqlkrp.KRP(2, 3).fit(['a']).to_sql('t');"
        "print([m for m in ('duckdb', '_duckdb', 'pandas', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "module", [m.name for m in pkgutil.walk_packages(sqlkrp.__path__, "sqlkrp.")]
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


def readme_blocks(language):
    readme = (ROOT / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)


def test_the_readme_s_python_runs_twice_in_a_row(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in readme_blocks("python") * 2:
        subprocess.run([sys.executable, "-c", block], check=True, cwd=tmp_path)


def test_the_readme_s_tour_prints_what_it_says(tmp_path):
    """Run the console blocks line by line, and compare what they print with what they show."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (console,) = (block for block in readme_blocks("console") if "sqlkrp inspect" in block)
    steps = re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
    assert len(steps) >= 5
    for step in steps:
        command, _, shown = step.partition("\n")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=True,
            env={**os.environ, "PATH": path},
        )  # fmt: skip
        assert same_words(done.stdout, shown), (command, done.stdout, shown)


def same_words(found, shown):
    """Equal but for times, and for floating-point errors, which depend on the machine."""

    def plain(text):
        text = re.sub(r"^(seconds +).*$", r"\1-", text, flags=re.MULTILINE)
        return re.sub(r"\d(\.\d+)?e-\d+", "-", text).rstrip()

    if shown.rstrip().endswith("..."):
        return plain(found).startswith(plain(shown.rstrip()[:-3]).rstrip())
    return plain(found) == plain(shown)


def test_reference_pages_are_what_the_declarations_say():
    """After a change of options or parameters: python docs/generate.py."""
    code = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    for name, text in code["pages"]().items():
        assert (ROOT / "docs" / name).read_text() == text, name


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path, tmp_path):
    subprocess.run([sys.executable, str(path)], check=True, cwd=tmp_path)


def test_the_readme_s_table_of_dialects_is_what_its_command_prints():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.dialects"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout in (ROOT / "README.md").read_text()


def test_the_readme_s_performance_is_the_benchmark_s_output():
    readme = (ROOT / "README.md").read_text()
    section = readme.partition("## Performance")[2].partition("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    results = (ROOT / "benchmarks" / "results" / "results.md").read_text()
    assert len(tables) >= 5
    assert all(table in results for table in tables)
