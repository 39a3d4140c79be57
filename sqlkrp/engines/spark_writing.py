"""What is written in Spark: temporary views, tables, and folders of files."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from numpy.typing import NDArray
from pyspark.errors import PySparkException

from sqlkrp.engines.session import Storage, Target, Write
from sqlkrp.engines.spark_running import Running, of_python
from sqlkrp.errors import ColumnError, LimitError, ParameterError, TargetExistsError
from sqlkrp.files import own_number, told_written, writing_elsewhere
from sqlkrp.interrupts import interrupts_held, note_done
from sqlkrp.maps.advice import warn_user
from sqlkrp.sql.names import TableName, quote, quote_table, table_name, text
from sqlkrp.sql.side_tables import Table

__all__ = ["FORMATS", "Writing"]

#: The formats of folders, by the ends of their names.
FORMATS = {".parquet": "parquet", ".csv": "csv"}
# What Spark calls a folder of rows that are not all there yet.
_UNFINISHED = "_temporary"


class Writing(Running):
    """A SparkSession that makes tables, views and folders."""

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
        try:
            return self._count(name)
        except BaseException:
            if into.found is None:
                self.execute(f"DROP TABLE {name}", "cleaning up")
            raise

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
        with interrupts_held(f"{into.name!r} was replaced before, and is there"):
            try:
                self.execute(f"DROP TABLE {name}", f"dropping the old {into.name}")
            except BaseException:
                self.execute(f"DROP TABLE {new}", "cleaning up")
                raise
            self.execute(f"ALTER TABLE {new} RENAME TO {name}", f"naming {'.'.join(beside)} anew")

    def append(self, into: Target, select: str, columns: Sequence[str]) -> int:
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

    def told(self, into: Target) -> str | None:
        return self._about(into.full).get("Comment")

    def comment(self, into: Target, told: str | None, *, view: bool) -> None:
        if not view or told is None:
            return super().comment(into, told, view=view)
        name, written = quote_table(into.full, self.dialect), text(told, self.dialect)
        properties = f"ALTER VIEW {name} SET TBLPROPERTIES ('comment' = {written})"
        return self.execute(properties, f"naming the map of {into.name!r}")

    @contextlib.contextmanager
    def destination(self, path: str | Path, storage: Storage) -> Iterator[Write]:
        """A folder of files, as Spark writes them; ``_SUCCESS`` is there when it is whole."""
        target, place = Path(path), of_python(path)
        kind = _format_of(path, storage)
        # As other writers of CSV double a quote, and Spark would put a backslash before it.
        options = {"header": True, "escape": '"', "multiLine": True} if kind == "csv" else {}
        mode = "overwrite" if storage.replace else "append" if storage.append else "error"

        def rows() -> Any:
            return self.connection.read.format(kind).options(**options).load(place)

        def write(select: str, _: Any) -> int:
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
            note_done(told_written(target))

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
    inside = first.removeprefix(_without_scheme(of_python(path)))
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


def _format_of(path: str | Path, storage: Storage) -> str:
    kind = storage.format or FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        raise ParameterError(
            f"Spark writes folders of Parquet or CSV, and {str(path)!r} is no name for one: "
            "use .parquet or .csv, or name a format"
        )
    return kind


def _plain(array: NDArray[Any]) -> pa.Array:
    return pa.array(array.tolist() if array.dtype == object else array)
