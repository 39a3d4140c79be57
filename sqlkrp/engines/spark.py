"""Spark: a session in, DataFrames and tables out; Spark does the work, and nothing is collected.

Only what every session has is used, SQL, DataFrames and temporary views: so a classic session, one
of Spark Connect and one of Databricks are alike. There are no transactions: a statement stops by
itself at a missing value, and a table appears when its job has ended.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
except ImportError as _missing:
    raise ImportError(str(_missing), name="pyspark") from _missing

from sqlkrp.engines.session import Capabilities, Found, Session, Target
from sqlkrp.errors import ColumnError, EngineError, ParameterError, TargetExistsError
from sqlkrp.maps.source import BOOLEAN, FLOAT32, NUMBER
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.names import TableName, quote, quote_table, table_name, text
from sqlkrp.sql.side_tables import Table

__all__ = ["Spark"]

_KINDS = {
    "boolean": BOOLEAN,
    "float": FLOAT32,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "double", "decimal"), NUMBER),
}
_FORMATS = {".parquet": "parquet", ".csv": "csv"}
# Settings of a session that is opened for one command.
_QUIET: dict[str, Any] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.debug.maxToStringFields": "1000",
}
_tags = itertools.count(1)


class Spark(Session):
    """A SparkSession, classic or of Spark Connect."""

    dialect = DIALECTS["spark"]
    can = Capabilities(temporary_tables=True, views=True, comments=True, relations=True)

    def __init__(self, session: Any, on_close: Callable[[], None] | None = None) -> None:
        self.connection = session
        self._on_close = on_close
        self._frames: dict[str, Any] = {}

    @classmethod
    def open(cls, url: str, *, read_only: bool = False) -> Spark:
        """Open a session: ``local[2]``, ``spark://...``, or ``sc://...`` for Spark Connect.

        ``read_only`` changes nothing, as Spark has no such sessions.
        """
        there = SparkSession.getActiveSession()
        builder = SparkSession.builder.appName("sqlkrp")
        builder = builder.remote(url) if url.startswith("sc://") else builder.master(url)
        try:
            with warnings.catch_warnings():
                # Of pandas 3, which nothing here hands to it.
                warnings.simplefilter("ignore", FutureWarning)
                session = builder.config(map=_QUIET).getOrCreate()
        except Exception as bad:  # Java's own errors, which have no common type in Python
            raise EngineError(f"cannot open {url}: {_in_short(bad)}") from bad
        if there is None:
            # What fails is told once, as an error of this library's.
            logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        # A process has one session: what was there before is not ours to stop.
        return cls(session, session.stop if there is None else None)

    @staticmethod
    def is_connection(target: Any) -> bool:
        """Whether this is a SparkSession."""
        return type(target).__name__ == "SparkSession"

    def close(self) -> None:
        if self._on_close is not None:
            self._on_close()
            self._on_close = None
        self._frames.clear()

    # --- looking --------------------------------------------------------------------------------

    def look(self, table: Any, name: str) -> tuple[str, dict[str, str]]:
        """A table, a folder or file of Parquet, or a DataFrame."""
        if _is_frame(table):
            if table.isStreaming:
                raise ParameterError(
                    "this DataFrame is of Structured Streaming, which has no end to look at: give "
                    "one of rows, or the SQL to a query of yours (to_sql)"
                )
            relation = f"sqlkrp_frame_{next(_tags)}"
            self._frames[relation] = table
            return relation, self.describe(relation, "the DataFrame")
        if isinstance(table, Path):
            if table.suffix.lower() not in (".parquet", ""):
                raise ParameterError(
                    f"from files Spark reads Parquet here, and {str(table)!r} is no name for that: "
                    "give a .parquet file or a folder, or a DataFrame"
                )
            table = ("parquet", _of_python(table))
        return super().look(table, name)

    def describe(self, relation: str, name: str) -> dict[str, str]:
        try:
            schema = self._sql(f"SELECT * FROM {relation} LIMIT 0").schema
        except PySparkException as bad:
            raise ColumnError(f"cannot read {name}: {_in_short(bad)}") from bad
        return {field.name: field.dataType.simpleString() for field in schema.fields}

    def kind(self, type_name: str) -> str:
        return _KINDS.get(type_name.partition("(")[0], type_name)

    def target(self, table: TableName) -> Target:
        parts = table_name(table, self.dialect)
        return Target(parts, self.find(parts))

    def find(self, table: TableName) -> Found | None:
        parts = table_name(table, self.dialect)
        if len(parts) == 2 and parts[0].lower() in _FORMATS.values():
            return None  # a folder of files
        try:
            rows = self._sql(
                f"DESCRIBE TABLE EXTENDED {quote_table(parts, self.dialect)}"
            ).collect()
        except PySparkException:
            return None
        about = {row[0]: row[1] for row in rows}
        kind = "view" if "VIEW" in (about.get("Type") or "VIEW").upper() else "table"
        return tuple(part.lower() for part in parts[-1:]), kind

    def reads(self, relation: str) -> set[str]:
        return set()  # nothing is replaced here, so nothing that is read can be

    # --- running --------------------------------------------------------------------------------

    def execute(self, sql: str, what: str) -> None:
        self._run(lambda: self._sql(sql).collect(), what)

    def rows(self, sql: str, what: str) -> list[tuple[Any, ...]]:
        found = self._run(lambda: self._sql(sql).collect(), what)
        return [tuple(row) for row in found]

    def columns(self, sql: str, names: Sequence[str], what: str) -> NDArray[Any]:
        chosen = [quote(name, self.dialect) for name in names]
        rows = self._run(lambda: self._sql(sql).select(*chosen).collect(), what)
        return np.array(rows, dtype="float64").reshape(-1, len(names))

    def lazily(self, sql: str) -> Any:
        return self._sql(sql)

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
        """Run a job; an interrupt ends it on the cluster as well."""
        tag = f"sqlkrp-{next(_tags)}"
        self.connection.addTag(tag)
        try:
            return job()
        except PySparkException as bad:
            raise EngineError(f"{what} failed in Spark: {_in_short(bad)}") from bad
        except KeyboardInterrupt:
            self.connection.interruptTag(tag)
            raise
        finally:
            self.connection.removeTag(tag)

    # --- writing --------------------------------------------------------------------------------

    def load(self, name: str, columns: Table) -> None:
        arrow = pa.table({key: _plain(array) for key, array in columns.items()})
        self._as_view(name, arrow)

    def create_temporary(self, name: str, select: str, what: str) -> None:
        # Its rows, not its query: a sample is to be the same whenever it is read.
        self._as_view(name, self._run(lambda: self._sql(select).toArrow(), what))

    def _as_view(self, name: str, rows: pa.Table) -> None:
        # They are small, and every executor reads all of them.
        frame = self.connection.createDataFrame(rows).hint("broadcast")
        frame.createOrReplaceTempView(quote(name, self.dialect))

    def drop_temporary(self, name: str) -> None:
        with contextlib.suppress(Exception):  # so that it can clean up after any failure
            self.connection.sql(f"DROP VIEW IF EXISTS {quote(name, self.dialect)}")

    def create(self, into: Target, select: str, *, view: bool, replace: bool) -> int | None:
        name, what = quote_table(into.full, self.dialect), f"creating {into.name}"
        if view:
            self.execute(f"CREATE VIEW {name} AS {select}", what)
            return None
        # Spark makes the table when its rows are there. What is there after a failure is another's,
        # who was quicker, and is not ours to drop.
        self.execute(f"CREATE TABLE {name} USING parquet AS {select}", what)
        ((count,),) = self.rows(f"SELECT COUNT(*) FROM {name}", "counting the rows")
        return int(count)

    def comment(self, into: Target, told: str, *, view: bool) -> None:
        if not view:
            return super().comment(into, told, view=view)
        name, written = quote_table(into.full, self.dialect), text(told, self.dialect)
        properties = f"ALTER VIEW {name} SET TBLPROPERTIES ('comment' = {written})"
        return self.execute(properties, f"naming the map of {into.name!r}")

    @contextlib.contextmanager
    def destination(self, path: str | Path, *, replace: bool) -> Iterator[Callable[[str], int]]:
        """A folder of files, as Spark writes them; ``_SUCCESS`` is there when it is whole."""
        target, place = Path(path), _of_python(path)
        kind = _FORMATS.get(target.suffix.lower())
        # As other writers of CSV double a quote, and Spark would put a backslash before it.
        options = {"header": True, "escape": '"', "multiLine": True} if kind == "csv" else {}
        if kind is None:
            raise ParameterError(
                f"Spark writes folders of Parquet or CSV, and {str(path)!r} is no name for one: "
                "use .parquet or .csv"
            )
        if target.exists() and not replace:
            raise TargetExistsError(
                f"{str(path)!r} exists already: choose another name, or replace it (replace=True)"
            )

        def write(select: str) -> int:
            writer = self._sql(select).write.mode("overwrite" if replace else "error")
            self._run(lambda: writer.format(kind).options(**options).save(place), f"writing {path}")
            return int(self.connection.read.format(kind).options(**options).load(place).count())

        there = target.exists()
        try:
            yield write
        except BaseException as bad:
            # What came to be there meanwhile is another's.
            if not there and "PATH_ALREADY_EXISTS" not in str(bad):
                shutil.rmtree(target, ignore_errors=True)
            raise


def _is_frame(table: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or of Connect."""
    return any(base.__module__.startswith("pyspark.sql") for base in type(table).__mro__)


def _of_python(path: str | Path) -> str:
    """A path as this process means it: Java has a working folder of its own."""
    return str(path) if "://" in str(path) else str(Path(path).absolute())


def _plain(array: NDArray[Any]) -> pa.Array:
    return pa.array(array.tolist() if array.dtype == object else array)


def _in_short(bad: Exception) -> str:
    """An error of Spark's in one line: what it says first, and not where in Java it was raised."""
    told = str(bad).strip()
    raised = re.search(r"\[USER_RAISED_EXCEPTION\] (.*?) SQLSTATE", told, re.DOTALL)
    first = raised[1] if raised else told.partition(" SQLSTATE")[0]
    return " ".join(first.split("\n\tat ")[0].splitlines()[:1]).strip() or type(bad).__name__
