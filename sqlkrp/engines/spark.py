"""Spark: a session in, DataFrames and tables out; Spark does the work, and nothing is collected.

Only what every session has is used, SQL, DataFrames and temporary views: so a classic session, one
of Spark Connect and one of Databricks are alike. There are no transactions: a statement stops by
itself at a missing value, and a table appears when its job has ended.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from sqlkrp.engines.spark_running import in_short, of_python, without_pandas
    from sqlkrp.engines.spark_writing import FORMATS, Writing
except ImportError as _missing:
    raise ImportError(str(_missing), name="pyspark") from _missing

from sqlkrp.engines.session import Capabilities, Found, Target
from sqlkrp.errors import ColumnError, EngineError, ParameterError
from sqlkrp.maps.source import BOOLEAN, DATE, FLOAT32, NUMBER, TEXT
from sqlkrp.sql.names import TableName, quote_table, table_name
from sqlkrp.urls import File

__all__ = ["Spark"]

_KINDS = {
    "boolean": BOOLEAN,
    "float": FLOAT32,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "double", "decimal"), NUMBER),
}
_SORTS = {
    **dict.fromkeys(("string", "varchar", "char"), TEXT),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), DATE),
}
# Settings of a session that is opened for one command.
_QUIET: dict[str, Any] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.debug.maxToStringFields": "1000",
}


class Spark(Writing):
    """A SparkSession, classic or of Spark Connect."""

    can = Capabilities(
        temporary_tables=True,
        views=True,
        comments=True,
        appends=True,
        relations=True,
        replaces=True,
        storage=True,
        twin=True,
        vectors=True,
        work=True,
    )

    @classmethod
    def open(cls, url: str, *, read_only: bool = False) -> Spark:
        """Open a session: ``local[2]``, ``spark://...``, or ``sc://...`` for Spark Connect.

        ``read_only`` changes nothing, as Spark has no such sessions.
        """
        there = SparkSession.getActiveSession()
        builder = SparkSession.builder.appName("sqlkrp")
        is_remote = url.startswith("sc://")
        builder = builder.remote(url) if is_remote else builder.master(url).config(map=_QUIET)
        if url.startswith("local"):
            # Its executors are of this machine, and may as well run this Python.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            with without_pandas():
                session = builder.getOrCreate()
        except Exception as bad:  # Java's own errors, which have no common type in Python
            raise EngineError(f"cannot open {url}: {in_short(bad)}") from bad
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
            relation = self._relation(table)
            return relation, self.describe(relation, "the DataFrame")
        if isinstance(table, File):
            if not _is_parquet(table):
                raise ParameterError(
                    f"from files Spark reads Parquet here, and {str(table)!r} is no name for that: "
                    "give a .parquet file or a folder, or a DataFrame"
                )
            table = ("parquet", of_python(table))
        return super().look(table, name)

    def look_at_file(self, path: File, name: str) -> tuple[str, dict[str, str]] | None:
        return self.look(path, name) if _is_parquet(path) else None

    def describe(self, relation: str, name: str) -> dict[str, str]:
        try:
            schema = self._sql(f"SELECT * FROM {relation} LIMIT 0").schema
        except PySparkException as bad:
            raise ColumnError(f"cannot read {name}: {in_short(bad)}") from bad
        return {field.name: field.dataType.simpleString() for field in schema.fields}

    def kind(self, type_name: str) -> str:
        return _KINDS.get(type_name.partition("(")[0], type_name)

    def texts_and_dates(self, types: Mapping[str, str]) -> dict[str, str]:
        bases = {name: one.partition("(")[0] for name, one in types.items()}
        return {name: _SORTS[base] for name, base in bases.items() if base in _SORTS}

    def target(self, table: TableName) -> Target:
        parts = table_name(table, self.dialect)
        return Target(parts, self.find(parts))

    def find(self, table: TableName) -> Found | None:
        parts = table_name(table, self.dialect)
        if len(parts) == 2 and parts[0].lower() in FORMATS.values():
            return None  # a folder of files
        try:
            # First, as Spark logs an error at length where a table is not there.
            if not self.connection.catalog.tableExists(quote_table(parts, self.dialect)):
                return None
            about = self._about(parts)
        except PySparkException:
            return None
        kind = "view" if "VIEW" in (about.get("Type") or "VIEW").upper() else "table"
        return tuple(part.lower() for part in parts[-1:]), kind

    def reads(self, relation: str) -> set[str]:
        return set()  # an old table is dropped when the new one is whole, whatever was read


def _is_parquet(file: File) -> bool:
    """Whether this is named as Parquet is, or as a folder."""
    return Path(file.name).suffix.lower() in (".parquet", "")


def _is_frame(table: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or of Connect."""
    return any(base.__module__.startswith("pyspark.sql") for base in type(table).__mro__)
