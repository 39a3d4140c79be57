"""Spark: a session in, DataFrames and tables out; Spark does the work, and nothing is collected.

Only what every session has is used, SQL, DataFrames and temporary views: so a classic session, one
of Spark Connect and one of Databricks are alike. There are no transactions: a statement stops by
itself at a missing value, and a table appears when its job has ended.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

try:
    import pyarrow as pa
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import col, when
    from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType
except ImportError as _missing:
    raise ImportError(str(_missing), name="pyspark") from _missing

from sqlkrp.batches import batches_of_features
from sqlkrp.engines.session import Capabilities, Found, Session, Storage, Target
from sqlkrp.errors import ColumnError, EngineError, LimitError, ParameterError, TargetExistsError
from sqlkrp.files import own_number, writing_elsewhere
from sqlkrp.maps.advice import warn_user
from sqlkrp.maps.source import BOOLEAN, FLOAT32, NUMBER
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.names import TableName, quote, quote_table, table_name, text
from sqlkrp.sql.side_tables import Table
from sqlkrp.stages import Program

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
# What Spark calls a folder of rows that are not all there yet.
_UNFINISHED = "_temporary"
_tags = itertools.count(1)


class Spark(Session):
    """A SparkSession, classic or of Spark Connect."""

    dialect = DIALECTS["spark"]
    can = Capabilities(
        temporary_tables=True,
        views=True,
        comments=True,
        relations=True,
        replaces=True,
        storage=True,
        twin=True,
        vectors=True,
    )

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
        is_remote = url.startswith("sc://")
        builder = builder.remote(url) if is_remote else builder.master(url).config(map=_QUIET)
        if url.startswith("local"):
            # Its executors are of this machine, and may as well run this Python.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            with _without_pandas():
                session = builder.getOrCreate()
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
            relation = self._relation(table)
            return relation, self.describe(relation, "the DataFrame")
        if isinstance(table, Path):
            if table.suffix.lower() not in (".parquet", ""):
                raise ParameterError(
                    f"from files Spark reads Parquet here, and {str(table)!r} is no name for that: "
                    "give a .parquet file or a folder, or a DataFrame"
                )
            table = ("parquet", _of_python(table))
        return super().look(table, name)

    def look_at_file(self, path: Path, name: str) -> tuple[str, dict[str, str]] | None:
        return self.look(path, name) if path.suffix.lower() in (".parquet", "") else None

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

    def by_twin(self, select: str, program: Program) -> str:
        frame = self._sql(select)
        *kept, _ = frame.schema.fields
        number = DoubleType() if program.prepare.dtype == "float64" else FloatType()
        schema = StructType([*kept, StructField("a", ArrayType(number))])
        with _without_pandas():
            made = frame.mapInArrow(partial(batches_of_features, program), schema)
        return self._relation(made)

    def with_vectors(self, sql: str, column: str) -> str:
        frame, named = self._sql(sql), quote(column, self.dialect)
        with _without_pandas():
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
        """Run a job; an interrupt ends it on the cluster as well."""
        tag = f"sqlkrp-{next(_tags)}"
        self.connection.addTag(tag)
        try:
            return job()
        except (PySparkException, Py4JError) as bad:  # the latter: Java's own, as they came
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

    def create(self, into: Target, select: str, *, view: bool) -> int | None:
        name, what = quote_table(into.full, self.dialect), f"creating {into.name}"
        if view:
            how = "CREATE OR REPLACE VIEW" if into.storage.replace else "CREATE VIEW"
            self.execute(f"{how} {name} AS {select}", what)
            return None
        self._warn_of_catalogue(into)
        # Spark makes the table when its rows are there. What is there after a failure is another's,
        # who was quicker, and is not ours to drop.
        if into.found is None:
            self._create_table(into.full, select, into.storage, what)
        else:
            self._replace_table(into, select, what)
        return self._count(name)

    def _warn_of_catalogue(self, into: Target) -> None:
        """Say so where a table's name ends with the session, which nobody else has."""
        if self._on_close is None or len(into.full) > 2:
            return
        if self.connection.conf.get("spark.sql.catalogImplementation", "") == "in-memory":
            warn_user(
                f"the catalogue of this session ends with it, and no later one will know "
                f"{into.name!r}: export to a folder, or use a session with a metastore",
                RuntimeWarning,
            )

    def _create_table(self, table: TableName, select: str, storage: Storage, what: str) -> None:
        columns = [quote(column, self.dialect) for column in storage.partition_by]
        parted = f" PARTITIONED BY ({', '.join(columns)})" if columns else ""
        kind, name = storage.format or "parquet", quote_table(table, self.dialect)
        folder = self._folder_of(table)
        with writing_elsewhere(folder, _UNFINISHED) if folder else contextlib.nullcontext():
            self.execute(f"CREATE TABLE {name} USING {kind}{parted} AS {select}", what)

    def _folder_of(self, table: TableName) -> Path | None:
        """Where Spark keeps a table by default, if that is a folder of this machine."""
        *schema, bare = table_name(table, self.dialect)
        known = schema or [self.connection.catalog.currentDatabase()]
        try:
            told = self._sql(f"DESCRIBE SCHEMA {quote_table(tuple(known), self.dialect)}").collect()
        except PySparkException:
            return None  # not every catalogue tells
        place = {row[0]: row[1] for row in told}.get("Location", "")
        return Path(place.removeprefix("file:")) / bare.lower() if place[:5] == "file:" else None

    def _replace_table(self, into: Target, select: str, what: str) -> None:
        """Make a table beside the old one, and when it is whole give it the old one's name."""
        if into.storage.partition_by:
            raise LimitError(
                "Spark may lose the parts of a table that it renames: drop the old one first, or "
                "leave out partition_by"
            )
        name = quote_table(into.full, self.dialect)
        beside = (*into.full[:-1], f"{into.full[-1]}_sqlkrp_{own_number().replace('-', '_')}")
        new = quote_table(beside, self.dialect)
        self._create_table(beside, select, into.storage, what)
        self.execute(f"DROP TABLE {name}", f"dropping the old {into.name}")
        self.execute(f"ALTER TABLE {new} RENAME TO {name}", f"naming {'.'.join(beside)} anew")

    def append(self, into: Target, select: str) -> int:
        name = quote_table(into.full, self.dialect)
        kept = self._about(into.full).get("Provider", "")
        _require_alike(into.name, into.storage, kept, self._parted_by(name))
        before = self._count(name)
        self.execute(f"INSERT INTO {name} BY NAME {select}", f"appending to {into.name}")
        return self._count(name) - before

    def _parted_by(self, table: str) -> list[str]:
        """The columns that a table is parted by."""
        told = [row[0] for row in self._sql(f"DESCRIBE TABLE {table}").collect()]
        if "# Partition Information" not in told:
            return []
        return told[told.index("# Partition Information") + 2 :]  # below the heads of columns

    def _count(self, table: str) -> int:
        ((count,),) = self.rows(f"SELECT COUNT(*) FROM {table}", "counting the rows")
        return int(count)

    def told(self, into: Target) -> str | None:
        return self._about(into.full).get("Comment")

    def _about(self, table: TableName) -> dict[str, str]:
        """What Spark tells of a table besides its columns."""
        described = f"DESCRIBE TABLE EXTENDED {quote_table(table, self.dialect)}"
        return {row[0]: row[1] for row in self._sql(described).collect()}

    def comment(self, into: Target, told: str, *, view: bool) -> None:
        if not view:
            return super().comment(into, told, view=view)
        name, written = quote_table(into.full, self.dialect), text(told, self.dialect)
        properties = f"ALTER VIEW {name} SET TBLPROPERTIES ('comment' = {written})"
        return self.execute(properties, f"naming the map of {into.name!r}")

    @contextlib.contextmanager
    def destination(self, path: str | Path, storage: Storage) -> Iterator[Callable[[str], int]]:
        """A folder of files, as Spark writes them; ``_SUCCESS`` is there when it is whole."""
        target, place = Path(path), _of_python(path)
        kind = _format_of(path, storage)
        # As other writers of CSV double a quote, and Spark would put a backslash before it.
        options = {"header": True, "escape": '"', "multiLine": True} if kind == "csv" else {}
        mode = "overwrite" if storage.replace else "append" if storage.append else "error"

        def rows() -> Any:
            return self.connection.read.format(kind).options(**options).load(place)

        def write(select: str) -> int:
            frame, what = self._sql(select), f"writing {path}"
            before = 0
            if there and storage.append:
                self._run(lambda: _require_same_folder(path, storage, rows(), frame), what)
                before = self._run(lambda: rows().count(), what)
            elif storage.replace:  # also where only Spark sees the folder
                _require_not_read(place, self._run(frame.inputFiles, what))
            parted = frame.write.mode(mode).format(kind).options(**options)
            parted = parted.partitionBy(*storage.partition_by)
            self._run(lambda: parted.save(place), what)
            return int(self._run(lambda: rows().count(), what)) - before

        with writing_elsewhere(target, _UNFINISHED):
            there = target.exists()
            if there and mode == "error":
                raise TargetExistsError(
                    f"{str(path)!r} exists already: choose another name, or replace it "
                    "(replace=True)"
                )
            try:
                yield write
            except BaseException as bad:
                # What came to be there meanwhile is another's.
                if not there and "PATH_ALREADY_EXISTS" not in str(bad):
                    shutil.rmtree(target, ignore_errors=True)
                raise

    def output_of(self, path: str | Path, storage: Storage) -> str:
        return "columns" if _format_of(path, storage) == "csv" else self.dialect.output


def _require_not_read(place: str, files: Sequence[str]) -> None:
    """Raise ParameterError if files of a folder are read: it is emptied before they are."""
    folder = _without_scheme(place) + "/"
    if any((_without_scheme(file) + "/").startswith(folder) for file in files):
        raise ParameterError(f"{place!r} is read by this: write to another folder")


def _without_scheme(place: str) -> str:
    """A path that can be compared with others: of this machine without links, and no ``file:``."""
    if "://" in place and not place.startswith("file:"):
        return place
    return os.path.realpath(re.sub("^file:/*", "/", unquote(place)))


def _require_same_folder(path: str | Path, storage: Storage, there: Any, more: Any) -> None:
    """Raise an error unless a folder's rows have the columns of those that are appended."""
    first = _without_scheme("".join(there.inputFiles()[:1]))
    inside = first.removeprefix(_without_scheme(_of_python(path)))
    parted = re.findall(r"/([^/=]+)=", inside)
    _require_alike(str(path), storage, storage.format or "", parted, must=True)
    known, new = (
        {one.name: one.dataType.simpleString() for one in frame.schema if one.name not in parted}
        for frame in (there, more)
    )
    # A CSV file has no types, and its columns are told by their places.
    is_text = set(known.values()) == {"string"}
    if list(known) != list(new) if is_text else known != new:
        raise ColumnError(
            f"{str(path)!r} and what is appended do not have the same columns: it has "
            f"{_columns_of(known)}, and this {_columns_of(new)}"
        )


def _columns_of(columns: Mapping[str, str]) -> str:
    told = [f"{name} ({kind})" for name, kind in columns.items()]
    return ", ".join(told[:4]) + (f" and {len(told) - 4} more" if len(told) > 4 else "")


def _require_alike(
    name: str, storage: Storage, kept: str, parted: Sequence[str], *, must: bool = False
) -> None:
    """Raise ParameterError if what is appended to is kept in another way than is asked for."""
    if storage.format and storage.format.lower() != kept.lower():
        raise ParameterError(f"{name!r} is kept as {kept}: append to it without format")
    if (must or storage.partition_by) and list(storage.partition_by) != list(parted):
        asked = f"partition_by={list(parted)}" if parted else "no partition_by"
        raise ParameterError(
            f"{name!r} is {'parted otherwise' if parted else 'not parted'}: give {asked}"
        )


@contextlib.contextmanager
def _without_pandas() -> Iterator[None]:
    """Where Spark warns of pandas 3, which nothing here hands to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        yield


def _format_of(path: str | Path, storage: Storage) -> str:
    kind = storage.format or _FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        raise ParameterError(
            f"Spark writes folders of Parquet or CSV, and {str(path)!r} is no name for one: "
            "use .parquet or .csv, or name a format"
        )
    return kind


def _is_frame(table: Any) -> bool:
    """Whether this is a DataFrame of Spark, classic or of Connect."""
    return any(base.__module__.startswith("pyspark.sql") for base in type(table).__mro__)


def _of_python(path: str | Path) -> str:
    """A path as this process means it: Java has a working folder of its own."""
    return str(path) if "://" in str(path) else str(Path(path).absolute())


def _plain(array: NDArray[Any]) -> pa.Array:
    return pa.array(array.tolist() if array.dtype == object else array)


def _in_short(bad: Exception) -> str:
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
        line += " (how='arrow' needs sqlkrp, numpy and pyarrow in the executors' Python)"
    return line
