"""DuckDB: the embedded engine."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from sqlkrp.engines.duckdb_running import explained, in_short
from sqlkrp.engines.duckdb_writing import PARQUET, Writing, suffix_of
from sqlkrp.engines.session import (
    Capabilities,
    TableOrFile,
)
from sqlkrp.errors import ColumnError, EngineError, ParameterError
from sqlkrp.files import own_folder, require_no_folder
from sqlkrp.maps.allowed import Whole
from sqlkrp.maps.source import BOOLEAN, DATE, FLOAT32, NUMBER, NUMERIC, TEXT
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.names import TableName, quote, table_name, text
from sqlkrp.sql.side_tables import Table
from sqlkrp.urls import File, Url, hidden, is_attached, is_url

__all__ = ["DuckDB", "write_parquet"]

_SORTS = {"VARCHAR": TEXT, "ENUM": TEXT, "DATE": DATE, "TIMESTAMP": DATE}
_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|BIGNUM|DECIMAL\(.*\)")
_NO_HIVE = "hive_partitioning = false"
# Types are taken from the whole CSV: from a sample, a later fraction would be rounded.
_CSV_OPTIONS = f"sample_size = -1, {_NO_HIVE}"
_CSV = ("read_csv", _CSV_OPTIONS)
# All as it stands there; an empty text that is quoted is none that is missing. The quotes are said,
# as DuckDB 2.0.0 guesses others where a text holds one of each kind, and loses the names.
_CSV_TEXTS = (
    "header = true, all_varchar = true, allow_quoted_nulls = false, quote = '\"', escape = '\"', "
    f"{_NO_HIVE}"
)
_READERS = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".tsv": _CSV,
    ".parquet": ("read_parquet", _NO_HIVE),
}
# What is found in a CSV, and the options that say it. Where there is no such mark, DuckDB says so.
_NONE = "(empty)"
_CSV_MARKS = {
    "Delimiter": "delim",
    "Quote": "quote",
    "Escape": "escape",
    "NewLineDelimiter": "new_line",
    "Comment": "comment",
}

# An amount of memory, as DuckDB reads it: without a limit, too.
_MEMORY = re.compile(
    r"\s*((?!0+(\.0+)?\D)\d+(\.\d+)?\s*([kmgt](i?b)?|b|bytes|%)|-1|none)\s*", re.IGNORECASE
)

# Who has a database open, as DuckDB tells another process.
_HOLDER = re.compile(r"lock is held in (.+? \(PID \d+\))")


class DuckDB(Writing):
    """A DuckDB connection that computes features."""

    can = Capabilities(
        transactions=True,
        temporary_tables=True,
        views=True,
        comments=True,
        appends=True,
        upserts=True,
        macros=True,
        relations=True,
        twin=True,
    )

    @classmethod
    def open(
        cls, path: str | os.PathLike[str] | None, *, read_only: bool = False, **settings: Any
    ) -> DuckDB:
        """Open a database, or an empty one in memory.

        Besides files these are what DuckDB attaches: ``md:warehouse``, ``s3://bucket/x.duckdb``.
        """
        _require_settings(**settings)
        config = dict(settings)
        name = ":memory:" if path is None else os.fspath(path)
        elsewhere = is_url(name)
        clean_up = contextlib.ExitStack()
        if path is None or elsewhere or is_attached(name):
            # What does not fit in memory is written to a folder of our own, not the user's.
            config["temp_directory"] = str(clean_up.enter_context(own_folder("spill")))
        _require_database(name)
        try:
            connection = duckdb.connect(
                ":memory:" if elsewhere else name,
                read_only=read_only and path is not None and not elsewhere,
                config=config,
            )
            clean_up.callback(connection.close)
            if elsewhere:
                _attach(connection, Url(name))
        except (duckdb.Error, OSError, RuntimeError) as bad:
            clean_up.close()
            what = "DuckDB" if path is None else hidden(name)
            raise EngineError(f"cannot open {what}: {_why_closed(bad)}") from bad

        # DuckDB measures progress only so; who shows it is on_progress, if anybody.
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        return cls(connection, clean_up.close)

    @staticmethod
    def is_connection(target: Any) -> bool:
        """Whether this is an open DuckDB connection."""
        return isinstance(target, duckdb.DuckDBPyConnection)

    # --- looking ------------------------------------------------------------------------------

    def look(self, table: TableOrFile, name: str) -> tuple[str, dict[str, str]]:
        if not isinstance(table, File):
            self._require_no_file(table)
            return super().look(table, name)
        require_no_folder(table)
        reader, path, options = _reader(table)
        if reader == "read_csv" and _is_one(table):
            if isinstance(table, Path) and table.is_file() and not table.stat().st_size:
                raise ColumnError(f"{str(table)!r} is empty: give a file with names and rows")
            with contextlib.suppress(EngineError):  # reading it tells what is wrong with it
                return self._sniffed(path, name)
        relation = _fenced(f"{reader}({path}, {options})")
        types = self.describe(relation, name)
        if reader == "read_csv" and (texts := self._texts(types)):
            relation = _fenced(f"read_csv({path}, {options}, types = {_struct(texts)})")
            types |= texts
        return relation, types

    def look_at_file(self, path: File, name: str) -> tuple[str, dict[str, str]] | None:
        reader, named, _ = _reader(path)
        if reader != "read_csv":
            return self.look(path, name)
        require_no_folder(path)
        relation = _fenced(f"read_csv({named}, {_CSV_TEXTS})")
        return relation, dict.fromkeys(self.describe(relation, name), "")

    def _require_no_file(self, table: TableName) -> None:
        """Raise ParameterError if this names a file: DuckDB would guess its types from a sample."""
        if not isinstance(table, str) or "." not in table or not os.path.isfile(table):
            return
        with contextlib.suppress(ParameterError):  # a name that no table could have
            if self.find(table):
                return
        raise ParameterError(
            f"{table!r} is a file, and no table: give pathlib.Path({table!r}), on the command line "
            "SOURCE or --file"
        )

    def _texts(self, types: Mapping[str, str]) -> dict[str, str]:
        """The columns of a CSV that can be no features, as texts.

        DuckDB guesses of a date which number is the month, and writes times in its own way.
        """
        return {name: "VARCHAR" for name, one in types.items() if self.kind(one) not in NUMERIC}

    def _sniffed(self, path: str, name: str) -> tuple[str, dict[str, str]]:
        """A CSV file with its types and marks, which are looked for in all of it, once.

        Each statement that looks for them again reads it twice, and first on one core.
        """
        look = f"SELECT * FROM sniff_csv({path}, {_CSV_OPTIONS})"
        (row,) = self.rows(look, f"a look at {name}")
        found = dict(zip((one[0] for one in self.connection.description), row, strict=True))
        types = {column["name"]: column["type"] for column in found["Columns"]}
        types |= self._texts(types)
        options = {
            "columns": _struct(types),
            "header": str(found["HasHeader"]),
            "skip": str(int(found["SkipRows"])),
        }
        for column, option in _CSV_MARKS.items():
            options[option] = _text("" if found[column] == _NONE else found[column])
        listed = ", ".join(f"{option} = {value}" for option, value in options.items())
        return _fenced(f"read_csv({path}, auto_detect = false, {_NO_HIVE}, {listed})"), types

    def describe(self, relation: str, name: str) -> dict[str, str]:
        try:
            rows = self.rows(f"DESCRIBE SELECT * FROM {relation}", f"a look at {name}")
        except EngineError as bad:
            cause = bad.__cause__ or bad
            kind = EngineError if _is_of_engine(cause, name) else ColumnError
            raise kind(f"cannot read {name}: {in_short(cause)}") from cause
        return {row[0]: row[1] for row in rows}

    def reads(self, relation: str) -> set[str]:
        # By the plan: get_table_names looks with tables that have no columns, which is an error
        # where a view joins USING some, and ends the transaction.
        what = "a look at what is read"
        with self._all_plans(what):
            plans = dict(self.rows(f"EXPLAIN (FORMAT json) SELECT * FROM {relation}", what))
        # In the first one nothing is left out, as a part that has no rows just now.
        plan = plans.get("logical_plan") or plans["physical_plan"]
        return {name.lower() for name in _scanned(json.loads(plan))}

    @contextlib.contextmanager
    def _all_plans(self, what: str) -> Iterator[None]:
        """A block in which EXPLAIN tells every plan, where settings may be changed."""
        asked = "current_setting('explain_output'), current_setting('lock_configuration')"
        ((before, is_locked),) = self.rows(f"SELECT {asked}", what)
        if is_locked:
            yield
            return
        self.execute("SET explain_output = 'all'", what)
        put_back = f"SET explain_output = {_text(before)}"
        try:
            yield
        finally:
            # In a transaction that failed nothing can be set before it has ended.
            if not self._is_set(put_back):
                self.after_transaction.callback(self._is_set, put_back)

    def _is_set(self, sql: str) -> bool:
        """Whether a setting can be set now, which it then is."""
        try:
            self.connection.execute(sql)
        except duckdb.Error:
            return False
        return True

    @staticmethod
    def kind(type_name: str) -> str:
        kinds = {"FLOAT": FLOAT32, "BOOLEAN": BOOLEAN}
        return kinds.get(type_name, NUMBER if _NUMBERS.fullmatch(type_name) else type_name)

    @staticmethod
    def texts_and_dates(types: Mapping[str, str]) -> dict[str, str]:
        sorts = {name: _SORTS.get(re.split(r"\W|_[A-Z]+\Z", one)[0]) for name, one in types.items()}
        return {
            name: sort
            for name, sort in sorts.items()
            if sort is not None and not types[name].endswith("]")
        }

    def has_rows(self, table: TableOrFile) -> bool:
        if isinstance(table, File):
            return suffix_of(table, _READERS) == ".parquet"
        return super().has_rows(table)

    def primary_key(self, table: TableName) -> list[str]:
        found = self.find(table)
        if found is None:
            return []
        with explained("a look at its keys"):
            rows = self.connection.execute(
                "SELECT UNNEST(constraint_column_names) FROM duckdb_constraints()"
                " WHERE constraint_type = 'PRIMARY KEY' AND database_name = ?"
                " AND schema_name = ? AND table_name = ?",
                list(found[0]),
            ).fetchall()
        return [row[0] for row in rows]

    def files(self) -> list[Path]:
        with explained("a look at its files"):
            rows = self.connection.execute(
                "SELECT path FROM duckdb_databases() WHERE path IS NOT NULL"
            ).fetchall()
        return [Path(row[0]) for row in rows]

    def sample(self, relation: str, columns: Sequence[str], count: int) -> str:
        listed = ", ".join(quote(name, self.dialect) for name in columns)
        return f"SELECT {listed} FROM {relation} AS every USING SAMPLE reservoir({count:d} ROWS)"


def _scanned(plan: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The bare names of the tables in a plan."""
    for step in plan:
        if named := step["extra_info"].get("Table"):
            if isinstance(named, list):  # the lines of a name
                named = "\n".join(named)
            try:
                yield table_name(named)[-1]  # DuckDB's own, in full and as SQL writes it
            except ParameterError:
                yield named  # of another database that is attached
        yield from _scanned(step["children"])


def write_parquet(path: Path, columns: Table) -> None:
    """Write a side table to a file."""
    with contextlib.closing(DuckDB.open(None)) as session:
        session.load("side_table", columns)
        session._copy("SELECT * FROM side_table", path, PARQUET, str(path))


def _is_one(file: File) -> bool:
    """Whether this names one file, which is there as far as that can be told."""
    return not file.is_pattern if isinstance(file, Url) else file.exists()


def _reader(path: File) -> tuple[str, str, str]:
    """The function that reads a file, the file's name in it, and its options."""
    reader, options = _READERS[suffix_of(path, _READERS)]
    if isinstance(path, Url):
        return reader, _text(path.url), options
    name = str(path)
    if path.exists():
        # This file, and not the others that its name would match as a pattern.
        name = re.sub(r"[\[*?]", r"[\g<0>]", name)
    return reader, _text(name), options


def _require_settings(memory_limit: Any = None, threads: Any = None) -> None:
    """Raise ParameterError for what no DuckDB has as a setting."""
    if threads is not None:
        Whole(1).require("threads", threads)
    if memory_limit is not None and not _MEMORY.fullmatch(str(memory_limit)):
        raise ParameterError(
            f"memory_limit={memory_limit!r} is not allowed: use an amount with its unit, such as "
            "4GB, 512MB or 80%"
        )


def _fenced(call: str) -> str:
    # Behind the fence, as DuckDB else moves our casts into the CSV reader, which then reads 2.5 or
    # 'true' as another type than it said the column has.
    return f"(SELECT * FROM {call} OFFSET 0)"


def _struct(texts: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_text(name)}: {_text(one)}" for name, one in texts.items()) + "}"


def _text(value: str) -> str:
    return text(value, dialect("duckdb"))


def _is_of_engine(bad: BaseException, name: str) -> bool:
    """Whether the engine could not read, whatever it was to read."""
    if isinstance(bad, duckdb.IOException):
        return is_url(name)
    # The last one is raised as such where an extension cannot be had.
    return isinstance(bad, duckdb.ConnectionException) or type(bad) is duckdb.Error


def _attach(connection: Any, url: Url) -> None:
    """Read the database that a URL names, as what is meant where a table is named."""
    name = quote(Path(url.name).stem, dialect("duckdb"))
    connection.execute(f"ATTACH {_text(url.url)} AS {name} (READ_ONLY)")
    connection.execute(f"USE {name}")


def _why_closed(bad: BaseException) -> str:
    """Why a database cannot be opened, with what to do where that is known."""
    told = " ".join(str(bad).split())
    if holder := _HOLDER.search(told):
        return (
            f"{holder[1]} has it open, and one process may write to it, or several may read: close "
            "it there, or try again when that has ended"
        )
    if "different configuration" in told:
        return "it is open in this process with other settings: give that connection, or close it"
    return in_short(bad)


def _require_database(name: str) -> None:
    # DuckDB also opens data files, as databases of which nothing that is created stays.
    if is_url(name):
        if Url(name).name.lower().endswith(tuple(_READERS)):
            raise ParameterError(
                f"{hidden(name)} is a data file, and no database: give it where a table or file is "
                "named, on the command line SOURCE or --file"
            )
        return
    path = Path(name)
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as file:
            if file.read(12)[8:] != b"DUCK":
                raise EngineError(f"{str(path)!r} is no DuckDB database: give one")
