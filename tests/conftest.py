from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


@pytest.fixture
def run_cli(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the installed command line in an empty folder, as a user would."""
    command = shutil.which("sqlkrp") or str(Path(sys.executable).with_name("sqlkrp"))

    def run(*arguments: object, code: int = 0, **options) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [command, *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path, **options
        )
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        if code == 2:
            assert len(done.stderr.splitlines()) == 1, done.stderr
        return done

    return run
