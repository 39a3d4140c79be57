"""What the tests run in Spark sessions of other processes: clusters of executors, Spark Connect.

    python tests/spark_jobs.py NAME FOLDER MASTER

One process has one session. A job prints ``equal`` if all that it looks at is as it must be.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from spark_server import cluster, session
from support import dyadic, paper_krp

import sqlkrp
from sqlkrp.sql.forms import FORMS

COUNT = 200
FRAME = dyadic(COUNT, 6).assign(id=range(COUNT))
# A row takes so long, and is what it was.
SLOW = "SELECT *, IF(java_method('java.lang.Thread', 'sleep', {wait}L) = 'x', 1e0, c0) AS slow"


def krp():
    columns = ["slow", *(f"c{i}" for i in range(1, 6))]
    # In so few columns to need no sum that is not exact: features are the same to the bit.
    return paper_krp(2, 5, s=1, n_terms=1, random_state=0).fit(columns)


def source(spark, folder, wait, parted_by="id % 4"):
    """A view of rows that take milliseconds each, in four parts by an expression."""
    path = Path(folder, "t.parquet")
    if not path.exists():
        rows = pa.Table.from_pandas(FRAME, preserve_index=False)
        pq.write_table(rows.replace_schema_metadata(None), path)
    parts = f"(SELECT *, {parted_by} AS part FROM parquet.`{path}`)"
    parts = f"(SELECT /*+ REPARTITION(4, part) */ * FROM {parts})"
    spark.sql(f"{SLOW.format(wait=wait)} FROM {parts}").createOrReplaceTempView("slow_t")


def require_equal(one, rows):
    """Each row once, and its features those of the twin, to the bit."""
    found = sorted((row.id, list(row.krp)) for row in rows)
    assert [number for number, _ in found] == list(range(COUNT))
    expected = one.transform(FRAME.assign(slow=FRAME.c0))
    assert np.array_equal([features for _, features in found], expected)


def settings(folder):
    return {"spark.sql.warehouse.dir": f"{folder}/warehouse"}


def executors(spark):
    """The processes of a session's executors, which are on this machine."""
    told = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True)
    lines = [line.split(maxsplit=1) for line in told.stdout.splitlines()]
    ours = f":{spark.sparkContext.getConf().get('spark.driver.port')} --executor-id "
    return {
        int(pid) for pid, args in lines if "CoarseGrainedExecutorBackend" in args and ours in args
    }


def killed_executor(folder, master):
    """While a table is created, one of two executors is killed."""
    with session(master, settings(folder)) as spark:
        one, db = krp(), sqlkrp.connect(spark)
        source(spark, folder, wait=20)
        while len(before := executors(spark)) < 2:
            time.sleep(0.1)
        killed = []

        def kill():
            attempts = Path(folder, "warehouse", "f")
            while not list(attempts.glob("_temporary/0/_temporary/*/part-*")):
                time.sleep(0.05)
            killed.append(min(before))
            os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        run = db.create(one, "slow_t", "f", keep=["id"])
        assert killed
        assert run.rows == COUNT
        require_equal(one, spark.table("f").collect())


def speculation(folder, master):
    """What is slow is run twice, and counts once."""
    log = Path(folder, "events")
    log.mkdir()
    more = {
        "spark.speculation": "true", "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.1", "spark.speculation.quantile": "0.3",
        "spark.speculation.efficiency.enabled": "false",
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{log}",
        "spark.eventLog.compress": "false",
    }  # fmt: skip
    with session(master, settings(folder) | more) as spark:
        one, db = krp(), sqlkrp.connect(spark)
        source(
            spark, folder, wait=40, parted_by="IF(id < 180, 0, id)"
        )  # one part has most of the rows
        db.create(one, "slow_t", "f", keep=["id"])
        require_equal(one, spark.table("f").collect())
        db.export(one, "slow_t", f"{folder}/f.parquet", keep=["id"])
        require_equal(one, spark.read.parquet(f"{folder}/f.parquet").collect())
    assert any(task["Task Info"]["Speculative"] for task in tasks(log))


def tasks(log):
    """The tasks of an event log that ended."""
    for path in log.rglob("events_*"):
        for line in path.read_text().splitlines():
            if '"SparkListenerTaskEnd"' in line:
                yield json.loads(line)


def shuffles(folder, master):
    """What each form sends from executor to executor."""
    log = Path(folder, "events")
    log.mkdir()
    more = {
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{log}",
        "spark.eventLog.compress": "false", "spark.sql.shuffle.partitions": "2",
    }  # fmt: skip
    jobs = {}
    pq.write_table(pa.Table.from_pandas(FRAME, preserve_index=False), f"{folder}/t.parquet")
    with session(master, settings(folder) | more) as spark:
        columns = [f"c{i}" for i in range(6)]
        one = paper_krp(2, 5, s=1, n_terms=1, random_state=0).fit(columns)
        db = sqlkrp.connect(spark)
        rows = spark.read.parquet(f"{folder}/t.parquet").repartition(4)
        rows.write.parquet(f"{folder}/parts.parquet")
        for form in FORMS:
            made = db.relation(one, Path(folder, "parts.parquet"), keep=["id"], form=form)
            spark.sparkContext.setJobGroup(form, form)
            made.write.format("noop").mode("overwrite").save()
            stages = [
                stage
                for job in spark.sparkContext.statusTracker().getJobIdsForGroup(form)
                for stage in spark.sparkContext.statusTracker().getJobInfo(job).stageIds
            ]
            jobs[form] = set(stages)
    sent = dict.fromkeys(FORMS, 0)
    for task in tasks(log):
        for form, stages in jobs.items():
            if task["Stage ID"] in stages:
                written = task["Task Metrics"]["Shuffle Write Metrics"]
                sent[form] += written["Shuffle Bytes Written"]
    print(json.dumps(sent))
    assert sent["wide"] == sent["array"] == 0
    assert sent["tables"] > 0


def training(folder, master):
    """It is the executors that look at the rows: what all tasks hand back says so, too."""
    log = Path(folder, "log")
    log.mkdir()
    more = {
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{log}",
        "spark.eventLog.compress": "false",
    }  # fmt: skip
    values = np.random.default_rng(0).normal(size=(20_000, 21)).round(6)
    values[:, 20] += values[:, 0] * values[:, 1]
    names = [*(f"c{i}" for i in range(20)), "y"]
    table = pa.table(dict(zip(names, values.T, strict=True)))
    pq.write_table(table, f"{folder}/t.parquet")
    options = {"maps": [sqlkrp.KRP(2, 20, random_state=1)], "sample": 500}
    with session(master, settings(folder) | more) as spark:
        parted = spark.read.parquet(f"{folder}/t.parquet").repartition(4)
        there = sqlkrp.train(sqlkrp.connect(spark).source(parted), "y", **options)
    here = sqlkrp.train(table.to_pandas(), "y", **options)
    assert np.allclose(there.predict(values[:, :20]), here.predict(values[:, :20]), rtol=1e-8)
    handed_back = sum(task["Task Metrics"]["Result Size"] for task in tasks(log))
    read = there.training["bytes_read"]
    print(json.dumps({"read": read, "handed back": handed_back, "table": values.nbytes}))
    # Spark has a byte in one or two, and some thousands about each task.
    assert read < handed_back < 1.6 * read + 100_000
    assert handed_back < 0.35 * values.nbytes


def cut_off_table(folder, master):
    """It says when rows are written, and takes long enough to be killed."""
    with session(master, settings(folder)) as spark:
        one, db = krp(), sqlkrp.connect(spark)
        source(spark, folder, wait=50)
        threading.Thread(target=tell, args=(Path(folder, "warehouse", "f"),), daemon=True).start()
        db.create(one, "slow_t", "f", keep=["id"])


def cut_off_folder(folder, master):
    """The same with a folder."""
    with session(master, settings(folder)) as spark:
        one, db = krp(), sqlkrp.connect(spark)
        source(spark, folder, wait=50)
        threading.Thread(target=tell, args=(Path(folder, "f.parquet"),), daemon=True).start()
        db.export(one, "slow_t", f"{folder}/f.parquet", keep=["id"])


def tell(path):
    while not list(path.glob("_temporary/0/_temporary/*/part-*")):
        time.sleep(0.05)
    print("writing", flush=True)


def next_run(folder, master):
    """After a driver was killed: neither is there, and both can be made."""
    for made in (Path(folder, "warehouse", "f"), Path(folder, "f.parquet")):
        assert made.exists()
        assert not (made / "_SUCCESS").exists()
    with session(master, settings(folder)) as spark:
        one, db = krp(), sqlkrp.connect(spark)
        source(spark, folder, wait=0)
        assert not spark.catalog.tableExists("f")
        db.create(one, "slow_t", "f", keep=["id"])
        db.export(one, "slow_t", f"{folder}/f.parquet", keep=["id"])
        require_equal(one, spark.table("f").collect())
        require_equal(one, spark.read.parquet(f"{folder}/f.parquet").collect())
    left = [path.name for path in Path(folder).rglob(".*.part")]
    assert not left, left


JOBS = {
    one.__name__: one
    for one in (
        killed_executor, speculation, shuffles, training, cut_off_table, cut_off_folder, next_run,
    )
}  # fmt: skip

if __name__ == "__main__":
    name, folder, master = sys.argv[1:]
    # Its two executors are on hosts of two names: no task is tried twice on one host.
    with cluster(folder) if master == "cluster" else contextlib.nullcontext(master) as url:
        JOBS[name](folder, url)
    print("equal")
