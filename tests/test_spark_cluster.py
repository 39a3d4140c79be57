"""Spark where something fails: executors and drivers that are killed, and what is run twice."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

JOBS = Path(__file__).with_name("spark_jobs.py")
CLUSTER = "local-cluster[2,1,1024]"


@contextlib.contextmanager
def running(name, folder, master):
    """A job in a process group of its own, which is killed at the end; what it says is a file."""
    out, errors = folder / f"{name}.out", folder / f"{name}.err"
    with out.open("w") as said, errors.open("w") as failed:
        job = subprocess.Popen(
            [sys.executable, "-u", "-W", "ignore", JOBS, name, folder, master],
            stdout=said, stderr=failed, start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
    try:
        yield job, out, errors
    finally:
        # Also after a good end: a driver in Java whose executor was killed may go on.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def require_equal(name, folder, master):
    with running(name, folder, master) as (job, out, errors):
        job.wait(timeout=300)
        assert out.read_text().splitlines()[-1:] == ["equal"], errors.read_text()[-3000:]


@pytest.mark.parametrize(
    ("name", "master"),
    [
        ("killed_executor", CLUSTER),
        ("speculation", "cluster"),
        ("shuffles", CLUSTER),
        ("training", CLUSTER),
    ],
)
def test_two_executors(name, master, tmp_path):
    require_equal(name, tmp_path, master)


def test_after_a_driver_was_killed_nothing_is_there_and_the_next_run_works(tmp_path):
    for name in ("cut_off_table", "cut_off_folder"):
        with running(name, tmp_path, "local[2]") as (job, out, errors):
            while "writing" not in out.read_text():
                assert job.poll() is None, errors.read_text()[-3000:]
                time.sleep(0.05)
    require_equal("next_run", tmp_path, "local[2]")
