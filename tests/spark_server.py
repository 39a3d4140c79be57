"""A Spark session of the tests' own, in a temporary folder; Java is the machine's."""

import contextlib
import os
import sys
import tempfile
import warnings


@contextlib.contextmanager
def session(master="local[2]"):
    """A classic session, which ends with the block."""
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
        builder = SparkSession.builder.master(master)
        for name, value in (settings | {"spark.sql.warehouse.dir": f"{folder}/warehouse"}).items():
            builder = builder.config(name, value)
        one = builder.getOrCreate()
        try:
            yield one
        finally:
            one.stop()
