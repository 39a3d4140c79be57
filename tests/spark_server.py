"""A Spark session of the tests' own, in a temporary folder; Java is the machine's."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

#: A classic session unless something else is asked for: another master, or ``connect``.
MASTER = os.environ.get("SQLKRP_TEST_SPARK", "local[2]")


@contextlib.contextmanager
def session(master=MASTER, more=()):
    """A session, which ends with the block; ``connect`` is one of Spark Connect."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        # It warns of pandas 3, which nothing here hands to it.
        warnings.simplefilter("ignore", FutureWarning)
        from pyspark.sql import SparkSession
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
    }
    with tempfile.TemporaryDirectory(prefix="sqlkrp-spark-") as folder:
        is_remote = master == "connect"
        builder = SparkSession.builder
        builder = builder.remote("local[2]") if is_remote else builder.master(master)
        settings |= {"spark.sql.warehouse.dir": f"{folder}/warehouse"} | dict(more)
        with warnings.catch_warnings():
            # A server of Connect that is there already warns of settings that it cannot change.
            warnings.simplefilter("ignore")
            one = builder.config(map=settings).getOrCreate()
        try:
            yield one
        finally:
            one.stop()


@contextlib.contextmanager
def cluster(folder, hosts=("127.0.0.2", "127.0.0.3")):
    """The URL of a cluster with an executor of one core on each of these hosts of this machine."""
    with contextlib.ExitStack() as ends:
        master = ends.enter_context(
            _deployed(folder, "Master", "--host", "127.0.0.1", "--port", "0")
        )
        url = _told(master, r"spark://127\.0\.0\.1:\d+")
        for host in hosts:
            sizes = ("--cores", "1", "--memory", "1g", "--work-dir", f"{folder}/work")
            worker = ends.enter_context(_deployed(folder, "Worker", "--host", host, *sizes, url))
            _told(worker, "Successfully registered with master")
        yield url


@contextlib.contextmanager
def _deployed(folder, kind, *arguments):
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
    quiet = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
    process = subprocess.Popen(
        [*command, *arguments, "--webui-port", "0"], cwd=folder, env=os.environ | quiet,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _told(process, pattern):
    """What a process says that looks so."""
    for line in process.stderr:
        if found := re.search(pattern, line):
            return found[0]
    raise RuntimeError(f"{process.args} ended")
