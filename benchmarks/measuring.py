"""How things are measured: side by side, interleaved, medians of repeats."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

import sqlkrp

__all__ = [
    "PAPER",
    "Way",
    "in_its_own_process",
    "markdown",
    "measure",
    "named",
    "peak_megabytes",
    "versions",
]


#: The homogeneous kernel <x, y>^g of columns as they are, which the papers' tables are of; the
#: defaults are another.
PAPER: dict[str, Any] = {"coef0": 0.0, "gamma": 1.0, "scaling": None}


@dataclass
class Way:
    """One way to the features, and how long it took each time."""

    name: str
    run: Callable[[duckdb.DuckDBPyConnection], Any]
    needs_features: bool = False
    """Whether it starts from the table that the way before it made."""
    distortion: float | None = None
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the repeats' seconds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> str:
        """The seconds of the fastest and of the slowest repeat."""
        return f"{min(self.seconds):.2f} – {max(self.seconds):.2f}"


def measure(ways: Sequence[Way], connection: duckdb.DuckDBPyConnection, repeats: int) -> None:
    """Run them in turns, each in a database without the tables that it makes."""
    for _ in range(repeats):
        for way in ways:
            tables = ["copied"] if way.needs_features else ["copied", "features"]
            for table in tables:
                connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute("CHECKPOINT")
            started = time.perf_counter()
            way.run(connection)
            way.seconds.append(time.perf_counter() - started)
            print(f"{way.name:<70} {way.seconds[-1]:>7.2f}", file=sys.stderr, flush=True)


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table's lines."""
    lines = [list(head), ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines] + [""]


def named(data: Path, file: str, name: str) -> str:
    """What to call rows that stand for a data set: made ones are not it."""
    return name if (data / file).exists() else f"made rows of the shape of {name}"


def versions(*others: str) -> str:
    """What was measured, and on what; ``others`` are more packages."""
    packages = ("duckdb", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", *others)
    found = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    commit = git("rev-parse", "--short", "HEAD")
    # Reports of other runs change nothing that is measured.
    others_than_reports = ["--", ":(top)", ":(top,exclude)benchmarks/results"]
    if git("status", "--porcelain", "--untracked-files=no", *others_than_reports):
        commit += " with changes"
    measured = f"sqlkrp at {commit or 'no commit'} (version {sqlkrp.__version__})"
    return f"{measured}, Python {platform.python_version()}, {found}; {os.cpu_count()} cores."


def git(*command: str) -> str:
    """What git says of this clone; nothing if it is none."""
    where = ["git", "-C", str(Path(__file__).parent)]
    done = subprocess.run([*where, *command], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def in_its_own_process(module: str, *arguments: str) -> dict[str, Any]:
    """What a module prints as JSON, from a process that did nothing before it."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    print(module, *arguments, done.stdout.strip(), file=sys.stderr, flush=True)
    return found


def peak_megabytes() -> int:
    """The most memory that this process ever had."""
    # Not getrusage: its figure begins with that of the process that started this one.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    raise RuntimeError("this system does not tell a process's peak memory")
