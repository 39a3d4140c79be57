"""A map in a pipeline of Spark's, beside Spark's own model on the raw columns.

    python -m benchmarks.spark_pipeline --data DIR [--out FILE]

Spambase, four folds by a hash of the row, with LogisticRegression of pyspark.ml: its defaults, but
50 iterations and a small penalty. On a classic session and on Spark Connect, each a process. Each
fitted pipeline is saved and loaded before it is scored. Needs the extra ``spark``, Java, and the
tests' folder. Writes ``benchmarks/results/spark_pipeline.md``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sqlkrp
from benchmarks.measuring import markdown, versions

RESULTS = Path(__file__).parent / "results"
SESSIONS = {"classic": "local[2]", "connect": "connect"}
FOLDS = 4


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark_pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with spambase.parquet")
    parser.add_argument("--out", type=Path, default=RESULTS / "spark_pipeline.md")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(list(accuracies(given.data, given.one))))
        return
    rows = []
    for session, master in SESSIONS.items():
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.spark_pipeline"]
        command += ["--data", str(given.data), "--one", master]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        raw, features = np.array(json.loads(done.stdout.splitlines()[-1])).T
        gain = features - raw
        cells = [f"{one.mean():.3f} ± {one.std(ddof=1):.3f}" for one in (raw, features)]
        cells.append(f"{gain.mean():+.3f} ± {gain.std(ddof=1):.3f}")
        rows.append([session, *cells])
        print(*rows[-1], flush=True)
    head = ["session", "raw columns", "to_spark_ml(output='vector')", "difference"]
    page = [
        "# A map in a pipeline of Spark's\n",
        f"`python -m benchmarks.spark_pipeline --data DIR`; {versions('pyspark')}\n",
        "Accuracy on spambase, mean and standard deviation of four folds. KRP with its defaults "
        "and 1,000 components; each fitted pipeline is saved, loaded, and then scored.\n",
        *markdown(head, rows),
    ]
    given.out.write_text("\n".join(page))
    print(f"wrote {given.out}")


def accuracies(data: Path, master: str) -> Iterator[tuple[float, float]]:
    """Of each fold: the accuracy of the raw columns, and that of the features."""
    from tests.spark_server import session

    warnings.simplefilter("ignore")
    with session(master) as spark, tempfile.TemporaryDirectory() as folder:
        from pyspark.ml.feature import VectorAssembler

        path = str((data / "spambase.parquet").resolve())
        names = [name for name in spark.read.parquet(path).columns if name != "label"]
        rows = spark.sql(
            f"SELECT *, CAST(label AS DOUBLE) AS y, PMOD(XXHASH64(*), {FOLDS}) AS fold "
            f"FROM parquet.`{path}`"
        )
        for fold in range(FOLDS):
            train, test = rows.filter(f"fold <> {fold}"), rows.filter(f"fold = {fold}")
            krp = sqlkrp.KRP(n_components=1000, random_state=0)
            krp.fit(sqlkrp.connect(spark).source(train), exclude=["label", "y", "fold"])
            raw = VectorAssembler(inputCols=names, outputCol="krp")
            first = [raw, krp.to_spark_ml(output="vector", keep=["y"])]
            yield tuple(accuracy(one, train, test, f"{folder}/{fold}") for one in first)  # type: ignore[misc]


def accuracy(first: Any, train: Any, test: Any, folder: str) -> float:
    """The share of rows that a saved pipeline predicts."""
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.classification import LogisticRegression

    model = LogisticRegression(featuresCol="krp", labelCol="y", maxIter=50, regParam=1e-3)
    Pipeline(stages=[first, model]).fit(train).write().overwrite().save(folder)
    scored = PipelineModel.load(folder).transform(test)
    ((share,),) = scored.selectExpr("AVG(CAST(prediction = y AS DOUBLE))").collect()
    return float(share)


if __name__ == "__main__":
    main()
