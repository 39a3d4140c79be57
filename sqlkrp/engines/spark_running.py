"""What runs in Spark: statements, DataFrames that they read, jobs, and what their errors say."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.ml.functions import array_to_vector
from pyspark.sql.functions import col, when
from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType

from sqlkrp.batches import batches_of_features
from sqlkrp.engines.session import Session, Streamed, Work, rows_at_once, streamed
from sqlkrp.engines.spark_work import FOUND, added_up, found_in_rows, unpacked
from sqlkrp.errors import EngineError
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.names import TableName, quote, quote_table
from sqlkrp.sql.twin import Twin
from sqlkrp.sql.vectors import Vector
from sqlkrp.urls import File, Url

__all__ = ["Running", "in_short", "of_python", "without_pandas"]

_tags = itertools.count(1)
# At a time, where nobody says how many: what Spark has for a shuffle.
_TASKS = 200


class Running(Session):
    """A SparkSession that runs statements."""

    dialect = DIALECTS["spark"]

    def __init__(self, session: Any, on_close: Callable[[], None] | None = None) -> None:
        self.connection = session
        self._on_close = on_close
        self._frames: dict[str, Any] = {}

    def execute(self, sql: str, what: str) -> None:
        self._run(lambda: self._sql(sql).collect(), what)

    def rows(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        found = self._run(lambda: self._sql(sql).collect(), what)
        return [tuple(row) for row in found]

    def columns(self, sql: str, names: Sequence[str], what: str) -> NDArray[Any]:
        chosen = [quote(name, self.dialect) for name in names]
        rows = self._run(lambda: self._sql(sql).select(*chosen).collect(), what)
        return np.array(rows, dtype="float64").reshape(-1, len(names))

    def stream(
        self, relation: str, numbers: Sequence[str], texts: Sequence[str], what: str
    ) -> Iterator[Streamed]:
        size = rows_at_once(numbers, texts)
        with self._running(what):
            rows = self._listed(relation, numbers, texts).toLocalIterator()
            while some := list(itertools.islice(rows, size)):
                yield streamed([(*row[0], *row[1:]) for row in some], len(numbers))

    def found(
        self, relation: str, numbers: Sequence[str], texts: Sequence[str], work: Work, what: str
    ) -> Iterator[tuple[Any, int]]:
        tasks, size = self._tasks_at_once(), rows_at_once(numbers, texts)
        with self._running(what):
            frame = self._listed(relation, numbers, texts).coalesce(tasks)
            with without_pandas():
                found = frame.mapInArrow(partial(found_in_rows, work, size), FOUND)
                # A few of the executors add up what all have found, before it comes here.
                few = found.repartition(max(1, math.isqrt(tasks)))
                added = few.mapInArrow(partial(added_up, work), FOUND)
            for (one,) in added.toLocalIterator():
                yield unpacked(one), len(one)

    def _listed(self, relation: str, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        """A DataFrame of an array of numbers, and texts beside it."""
        assert self.dialect.array is not None
        array = self.dialect.array.format(items=", ".join(numbers))
        named = [f"{one} AS t{i}" for i, one in enumerate(texts)]
        return self._sql(f"SELECT {', '.join([f'{array} AS x', *named])} FROM {relation} AS every")

    def _tasks_at_once(self) -> int:
        """How many tasks the cluster runs at a time, as far as it says so."""
        told = self.connection.conf.get
        if told("spark.dynamicAllocation.enabled", "false") != "true":
            with contextlib.suppress(PySparkException, Py4JError):  # Connect does not say
                return int(self.connection.sparkContext.defaultParallelism)
        asked = told("spark.sql.shuffle.partitions")
        return int(asked) if asked.isdigit() else _TASKS

    def lazily(self, sql: str) -> Any:
        return self._sql(sql)

    def by_twin(self, twin: Twin) -> tuple[str, Vector]:
        """With an array column ``a``, which is NULL in rows without features."""
        assert self.dialect.array is not None
        inputs = self.dialect.array.format(items=", ".join(twin.inputs))
        columns = ", ".join([*twin.kept, f"{inputs} AS x"])
        frame, program = self._sql(f"SELECT {columns} FROM {twin.relation}"), twin.program
        *kept, _ = frame.schema.fields
        number = DoubleType() if program.prepare.dtype == "float64" else FloatType()
        schema = StructType([*kept, StructField("a", ArrayType(number))])
        with without_pandas():
            made = frame.mapInArrow(partial(batches_of_features, program), schema)
        items = [self.dialect.item("a", place) for place in range(len(program.names))]
        return self._relation(made), Vector(items, array="a", there="a IS NOT NULL")

    def load_twin(self, twin: Twin) -> None:
        """Nothing: the executors have it with the rows."""

    def drop_twin(self, twin: Twin) -> None:
        """Nothing: it goes with the rows."""

    def with_vectors(self, sql: str, column: str) -> str:
        frame, named = self._sql(sql), quote(column, self.dialect)
        with without_pandas():
            vectors = when(col(named).isNotNull(), array_to_vector(col(named)))
        return f"SELECT * FROM {self._relation(frame.withColumn(column, vectors))}"

    def _relation(self, frame: Any) -> str:
        """A DataFrame as a name that statements here can read."""
        relation = f"sqlkrp_frame_{next(_tags)}"
        self._frames[relation] = frame
        return relation

    def _sql(self, sql: str) -> Any:
        """A statement as a DataFrame, with the DataFrames that it reads put in by Spark itself."""
        read = {name: frame for name, frame in self._frames.items() if name in sql}
        if not read:
            return self.connection.sql(sql)
        sql = sql.replace("{", "{{").replace("}", "}}")
        for name in sorted(read, key=len, reverse=True):
            sql = re.sub(rf"\b{name}\b", f"{{{name}}}", sql)
        return self.connection.sql(sql, **read)

    def _run(self, job: Callable[[], Any], what: str) -> Any:
        """Run a job."""
        with self._running(what):
            return job()

    @contextlib.contextmanager
    def _running(self, what: str) -> Iterator[None]:
        """A block that runs jobs; an interrupt in it ends them on the cluster as well."""
        tag = f"sqlkrp-{next(_tags)}"
        self.connection.addTag(tag)
        try:
            yield
        except (PySparkException, Py4JError) as bad:  # the latter: Java's own, as they came
            raise EngineError(f"{what} failed in Spark: {in_short(bad)}") from bad
        except KeyboardInterrupt:
            self.connection.interruptTag(tag)
            raise
        finally:
            self.connection.removeTag(tag)

    def _count(self, table: str) -> int:
        ((count,),) = self.rows(f"SELECT COUNT(*) FROM {table}", "counting the rows")
        return int(count)

    def _about(self, table: TableName) -> dict[str, str]:
        """What Spark tells of a table besides its columns."""
        described = f"DESCRIBE TABLE EXTENDED {quote_table(table, self.dialect)}"
        return {row[0]: row[1] for row in self._sql(described).collect()}


@contextlib.contextmanager
def without_pandas() -> Iterator[None]:
    """Where Spark warns of pandas 3, which nothing here hands to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        yield


def of_python(path: str | File) -> str:
    """A path as this process means it: Java has a working folder of its own."""
    if isinstance(path, Url):
        return path.url
    return str(path) if "://" in str(path) else str(Path(path).absolute())


def in_short(bad: Exception) -> str:
    """An error of Spark's in one line: what it says first, and not where it was raised."""
    told = str(bad).strip()
    if "Traceback (most recent call last)" in told:
        return _of_executors(told)
    if java := re.search(r"An error occurred while calling [^\n]*\n: (?:[\w.$]+: )?(.+)", told):
        told = java[1]
    raised = re.search(r"\[USER_RAISED_EXCEPTION\] (.*?) SQLSTATE", told, re.DOTALL)
    first = raised[1] if raised else told.partition(" SQLSTATE")[0]
    return " ".join(first.split("\n\tat ")[0].splitlines()[:1]).strip() or type(bad).__name__


def _of_executors(told: str) -> str:
    """An error of Python's on an executor: the line in which a traceback ends."""
    ends = re.findall(r"^(?:[a-z_]\w*\.)*([A-Z]\w*(?:: .*)?)$", told, re.MULTILINE)
    line: str = ends[-1] if ends else told.splitlines()[0]
    if line.startswith("ModuleNotFoundError"):
        line += " (how='arrow' and train need sqlkrp, numpy and pyarrow in the executors' Python)"
    return line
