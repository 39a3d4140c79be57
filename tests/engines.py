"""Every engine that generated SQL is run in, with the same few things to ask of each."""

import contextlib
import itertools
import sqlite3
import uuid
from datetime import date
from pathlib import Path
from urllib.parse import quote as url_quote

import datafusion
import duckdb
import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pymysql
import pytest
import zetasql.types as googlesql
from zetasql.api import (
    Analyzer,
    CatalogBuilder,
    PreparedQuery,
    TableBuilder,
    TypeFactory,
)

import sqlkrp
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.names import quote
from sqlkrp.sql.side_tables import create_side_table

_numbers = itertools.count()


class Engine:
    """A database to put tables in; ``features`` goes the way that users of this engine go."""

    name: str
    #: The fixture of the server that it connects to.
    server: str | None = None
    #: Names that are none there.
    its_own: tuple[str, ...] = ()

    @classmethod
    def opened(cls, folder, server):
        """One of these, with a folder or what its server's fixture gave, until the block ends."""
        return contextlib.closing(cls())

    def quoted(self, name):
        return quote(name, dialect(self.name))

    def store(self, frame, table="t"):
        """A DataFrame as a table of exactly this name, with columns of exactly these names."""
        self.drop(table)
        plain = frame.set_axis([f"v{i}" for i in range(frame.shape[1])], axis=1)
        load = f"load_{next(_numbers)}"
        self.load(plain, load)
        columns = ", ".join(f"v{i} AS {self.quoted(name)}" for i, name in enumerate(frame))
        self.execute(
            f"CREATE TABLE {self.quoted(table)}{self.engine} AS SELECT {columns} FROM {load}"
        )
        self.execute(f"DROP TABLE {load}")

    engine = ""
    #: Of random ones.
    most_cases = 1000

    @classmethod
    def database_of(cls, url):
        """The same database, opened again."""
        return contextlib.closing(cls(url))

    def drop(self, table):
        self.execute(f"DROP TABLE IF EXISTS {self.quoted(table)}")

    def features(self, krp, table="t", into=None, **options):
        """The rows that a map gives, sorted: every column as a number, NaN for NULL.

        Of a label that is the number of its class. Where there is a table it is ``into`` this.
        """
        options = {"output": "columns", **options}
        into = into or f"features_{next(_numbers)}"
        try:
            self.database.create(krp, (table,), (into,), **options)
            rows = self.rows(f"SELECT * FROM {self.quoted(into)}")
        finally:
            self.drop(into)
        return as_numbers(krp, rows, options)

    def run(self, statement):
        """The rows of a statement, with its side tables there while it runs."""
        try:
            for name, columns in statement.side_tables.items():
                self.make_side_table(name, columns)
            return self.rows(statement.text)
        finally:
            for name in statement.side_tables:
                self.drop(name)

    def make_side_table(self, name, columns):
        """A side table by the printed DDL, and its rows."""
        self.execute(create_side_table(name, columns, dialect(self.name)))
        self.fill(pd.DataFrame(columns), self.quoted(name))

    def fill(self, frame, table):
        """Rows into a table that is there."""
        load = f"load_{next(_numbers)}"
        self.load(frame, load)
        self.execute(f"INSERT INTO {table} SELECT * FROM {load}")
        self.execute(f"DROP TABLE {load}")

    def keep(self, statement, table):
        """The rows of a statement that joins nothing, as a table."""
        self.drop(table)
        self.execute(f"CREATE TABLE {self.quoted(table)}{self.engine} AS {statement.text}")


def kind_of(column):
    """The type of a column of a DataFrame; of days and times, which they are."""
    if column.dtype.kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype):
        return "time" if getattr(column.dtype, "tz", None) is None else "zoned time"
    whole = column.dropna()
    return "day" if len(whole) and isinstance(whole.iloc[0], date) else str(column.dtype)


def as_numbers(krp, rows, options):
    first = len(options.get("keep", ())) + ("long" in options)
    for place, words in krp.program.words.items():
        number = {word: i for i, word in enumerate(words)} | {None: None}
        at = first + place
        rows = [(*row[:at], number[row[at]], *row[at + 1 :]) for row in rows]
    if options.get("output") == "array":
        empty = [None] * len(krp.program.names)
        rows = [(*row[:-1], *(row[-1] if row[-1] is not None and len(row[-1]) else empty))
                for row in rows]  # fmt: skip
    count = first + (
        krp.program.projection().stages[-1].n_outputs
        if options.get("stage") == "projection"
        else len(krp.program.names)
    )
    table = np.array(rows, dtype="float64").reshape(-1, count)
    return (
        table[np.argsort(table[:, 0], kind="stable")] if {"keep", "long"} & set(options) else table
    )


class DuckDB(Engine):
    name = "duckdb"
    error = duckdb.Error
    #: A number that cannot be computed, in a row or more of a table.
    broken = "error('no row')::DOUBLE"
    missing = ("NULL", "'nan'", "'inf'")

    def __init__(self, url=":memory:"):
        self.url = str(url)
        self.connection = duckdb.connect(self.url)
        self.database = sqlkrp.connect(self.connection)

    def objects(self):
        """Every table and view, temporary ones too."""
        rows = self.rows("SELECT table_name FROM information_schema.tables")
        return sorted(row[0] for row in rows)

    def comment(self, name):
        """What a table or a view says of its map."""
        ((found,),) = self.rows(
            f"SELECT comment FROM duckdb_tables() WHERE table_name = '{name}' UNION ALL"
            f" SELECT comment FROM duckdb_views() WHERE view_name = '{name}'"
        )
        return found

    def spelt_in_full(self, name):
        return f"main.{name}", f"w.main.{name}"

    def in_transaction(self):
        # Nothing tells but that a second one cannot be begun.
        try:
            self.connection.begin()
        except duckdb.TransactionException:
            return True
        self.connection.rollback()
        return False

    def load(self, frame, table):
        self.connection.register("frame", frame)
        self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM frame")
        self.connection.unregister("frame")

    def execute(self, sql):
        self.connection.execute(sql)

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def close(self):
        self.connection.close()


class Postgres(Engine):
    name = "postgres"
    error = psycopg.Error
    broken = "1 / (id - 7)"
    missing = ("NULL", "'nan'", "'inf'")

    server = "postgres_server"

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder, server):
        with schema_of_its_own(server) as url, contextlib.closing(cls(url)) as one:
            yield one

    def __init__(self, url):
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self.database = sqlkrp.connect(self.connection)

    def objects(self):
        # Of other sessions' temporary tables none: the server drops those of one that is closed
        # when it gets to it.
        rows = self.rows(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v')"
            " AND relnamespace IN (current_schema()::regnamespace, pg_my_temp_schema())"
        )
        return sorted(row[0] for row in rows)

    def comment(self, name):
        return self.rows(f"SELECT obj_description('{name}'::regclass)")[0][0]

    def spelt_in_full(self, name):
        ((schema,),) = self.rows("SELECT current_schema()")
        return f"{schema}.{name}", f"postgres.{schema}.{name}"

    def in_transaction(self):
        return self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def load(self, frame, table):
        types = {"float32": "REAL", "float64": "DOUBLE PRECISION", "int64": "BIGINT"}
        types |= {"int8": "SMALLINT", "int32": "INTEGER", "bool": "BOOLEAN"}
        types |= {"day": "DATE", "time": "TIMESTAMP", "zoned time": "TIMESTAMPTZ"}
        columns = ", ".join(
            f"{name} {types.get(kind_of(frame[name]), 'VARCHAR')}" for name in frame
        )
        self.execute(f"CREATE TABLE {table} ({columns})")
        with self.connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False):
                copy.write_row(row)

    def execute(self, sql):
        self.connection.execute(sql)

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def close(self):
        self.connection.close()


class SQLite(Engine):
    name = "sqlite"
    error = sqlite3.Error
    broken = "abs(-9223372036854775807 - (id = 7))"
    missing = ("NULL", "'nan'", "9e999")

    def __init__(self, url=":memory:"):
        self.url = str(url)
        self.connection = sqlite3.connect(self.url, isolation_level=None)
        self.database = sqlkrp.connect(self.connection)

    def objects(self):
        rows = self.rows(
            "SELECT name FROM sqlite_master UNION ALL SELECT name FROM temp.sqlite_master"
        )
        return sorted(row[0] for row in rows)

    def comment(self, name):
        """SQLite has no comments: only a view keeps its text, and with it the statement's head."""
        ((kind, text),) = self.rows(f"SELECT type, sql FROM sqlite_master WHERE name = '{name}'")
        return text if kind == "view" else None

    def spelt_in_full(self, name):
        return (f"main.{name}",)

    def in_transaction(self):
        return self.connection.in_transaction

    def store(self, frame, table="t"):
        # CREATE TABLE AS would declare other types.
        self.drop(table)
        self.load(frame, table)

    def load(self, frame, table):
        types = {"f": "REAL", "i": "INTEGER", "b": "BOOLEAN"}
        days = {"day": "DATE", "time": "TIMESTAMP", "zoned time": "TIMESTAMP"}
        columns = ", ".join(
            f"{self.quoted(name)} {days.get(kind, types.get(frame[name].dtype.kind, 'TEXT'))}"
            for name, kind in ((name, kind_of(frame[name])) for name in frame)
        )
        self.execute(f"CREATE TABLE {self.quoted(table)} ({columns})")
        places = ", ".join("?" for _ in frame)
        rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False)
        self.connection.executemany(
            f"INSERT INTO {self.quoted(table)} VALUES ({places})",
            ([str(one) if isinstance(one, date) else one for one in row] for row in rows),
        )

    def execute(self, sql):
        self.connection.execute(sql)

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def close(self):
        self.connection.close()


class Printed(Engine):
    """An engine that only ever sees printed SQL, and side tables made by the printed DDL."""

    def features(self, krp, table="t", into=None, **options):
        options = {"output": "columns", **options}
        statement = krp.statement((table,), dialect=self.name, **options)
        rows = self.run(statement)
        return as_numbers(krp, rows, options)


class DataFusion(Printed):
    name = "datafusion"

    def __init__(self):
        self.context = datafusion.SessionContext()

    def load(self, frame, table):
        # Without what pandas notes in a schema, which DataFusion would ask of every step.
        arrow = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        batches = arrow.to_batches() or [pa.RecordBatch.from_pylist([], schema=arrow.schema)]
        self.context.register_record_batches(table, [batches])

    def execute(self, sql):
        self.context.sql(sql).collect()

    def rows(self, sql):
        return [tuple(row.values()) for row in self.context.sql(sql).to_arrow_table().to_pylist()]

    def close(self):
        pass


class ClickHouse(Printed):
    name = "clickhouse"
    engine = " ENGINE = Memory"  # made and dropped sooner than files

    @classmethod
    def opened(cls, folder, server):
        return contextlib.closing(cls(folder))

    def __init__(self, folder: Path):
        self.folder = folder
        sessions = pytest.importorskip("chdb.session", reason="chdb is not of this Python")
        self.session = sessions.Session(str(folder / "chdb"))
        # The database that is there at first takes names of tables for patterns of files.
        self.execute("CREATE DATABASE tests ENGINE = Atomic")
        self.execute("USE tests")
        # Of a few rows: to compile what is computed takes up to tens of times as long.
        self.execute("SET compile_expressions = 0, max_threads = 1")

    def load(self, frame, table):
        self.execute(f"CREATE TABLE {table}{self.engine} AS {self.rows_of(frame)}")

    def fill(self, frame, table):
        self.execute(f"INSERT INTO {table} {self.rows_of(frame)}")

    def rows_of(self, frame):
        path = self.folder / "rows.parquet"
        pyarrow.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
        return f"SELECT * FROM file('{path}', Parquet)"

    def execute(self, sql):
        self.session.query(sql)

    def rows(self, sql):
        found = self.session.query(sql, "Arrow").bytes()
        table = pa.ipc.open_file(pa.BufferReader(found)).read_all()
        return [
            tuple(column) for column in zip(*(c.to_pylist() for c in table.columns), strict=True)
        ]

    def close(self):
        self.session.close()


class Spark(Engine):
    name = "spark"
    server = "spark_session"
    most_cases = 30

    @classmethod
    def opened(cls, folder, server):
        return contextlib.closing(cls(server))

    def __init__(self, session):
        self.connection = session
        self.database = sqlkrp.connect(session)

    def store(self, frame, table="t"):
        # Of one column and no rows, Arrow would not know the type.
        arrow = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        self.connection.createDataFrame(arrow).createOrReplaceTempView(self.quoted(table))

    def drop(self, table):
        self.execute(f"DROP VIEW IF EXISTS {self.quoted(table)}")

    def features(self, krp, table="t", into=None, **options):
        options = {"output": "columns", **options}
        made = self.database.relation(krp, (table,), **options)
        return as_numbers(krp, [tuple(row) for row in made.collect()], options)

    def make_side_table(self, name, columns):
        self.store(pd.DataFrame(columns), name)

    def keep(self, statement, table):
        self.connection.sql(statement.text).createOrReplaceTempView(self.quoted(table))

    def execute(self, sql):
        self.connection.sql(sql)

    def rows(self, sql):
        return [tuple(row) for row in self.connection.sql(sql).collect()]

    def close(self):
        self.database.close()


class MariaDB(Printed):
    """What is printed for MySQL, in its nearest relative."""

    name = "mysql"
    its_own = ("\U0001f600", " ", "\n")
    server = "mariadb_server"
    most_cases = 30

    @classmethod
    def opened(cls, folder, server):
        return contextlib.closing(cls(server))

    def __init__(self, socket):
        self.connection = pymysql.connect(
            unix_socket=socket, user="root", database="tests", charset="utf8mb4", autocommit=True
        )

    def load(self, frame, table):
        types, texts = {"f": "DOUBLE", "i": "BIGINT", "b": "BOOLEAN"}, "VARBINARY(4000)"
        days = {"day": "DATE", "time": "DATETIME(6)"}
        columns = ", ".join(
            f"{name} {days.get(kind_of(frame[name]), types.get(frame[name].dtype.kind, texts))}"
            for name in frame
        )
        self.execute(f"CREATE TABLE {table} ({columns})")
        places = ", ".join(["%s"] * frame.shape[1])
        numbers = frame.replace([np.inf, -np.inf], np.nan)  # it holds no others
        rows = numbers.astype(object).where(numbers.notna(), None).to_numpy().tolist()
        with self.connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES ({places})", rows)

    def execute(self, sql):
        self.rows(sql)

    def rows(self, sql):
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def close(self):
        self.connection.close()


class GoogleSQL(Printed):
    """What is printed for BigQuery, in Google's own analyzer and reference implementation.

    It has no tables that stay: the rows that a query reads go in with it.
    """

    name = "bigquery"
    its_own = ("$1",)
    most_cases = 30

    def __init__(self):
        language = googlesql.LanguageOptions.maximum_features()
        language.product_mode = googlesql.ProductMode.PRODUCT_EXTERNAL
        # CREATE TABLE is analyzed as well as SELECT.
        language.supported_statement_kinds = []
        self.options = googlesql.AnalyzerOptions(language_options=language)
        self.functions = googlesql.ZetaSQLBuiltinFunctionOptions(language_options=language)
        self.tables = {}

    def store(self, frame, table="t"):
        self.tables[table] = frame

    def drop(self, table):
        self.tables.pop(table, None)

    def make_side_table(self, name, columns):
        self.execute(create_side_table(name, columns, dialect(self.name)))
        self.store(pd.DataFrame(columns), name)

    def keep(self, statement, table):
        self.store(pd.DataFrame(self.rows(statement.text), columns=statement.columns), table)

    def execute(self, sql):
        """Only analyzed: there is nothing that a statement could make."""
        Analyzer(self.options, self.catalog()).analyze_statement(sql)

    def rows(self, sql):
        content = {name: content_of(rows_of(one)) for name, one in self.tables.items()}
        query = PreparedQuery.builder().set_sql(sql).set_analyzer_options(self.options)
        with query.set_catalog(self.catalog()).set_table_content(content).prepare() as prepared:
            found = prepared.execute().content.table_data
        # No table is no row.
        return [tuple(map(value_of, row.cell)) for row in (found.row if found else ())]

    def catalog(self):
        """The tables that are there, each with the types of its columns."""
        catalog = CatalogBuilder("tests").with_builtin_functions(self.functions)
        kinds = googlesql.TypeKind
        types = {"f": kinds.TYPE_DOUBLE, "i": kinds.TYPE_INT64, "b": kinds.TYPE_BOOL}
        for name, frame in self.tables.items():
            table = TableBuilder(name)
            for column in frame:
                kind = types.get(frame[column].dtype.kind, kinds.TYPE_STRING)
                if any(isinstance(one, list) for one in frame[column][:1]):
                    kind = TypeFactory.create_array_type(TypeFactory.create_simple_type(types["f"]))
                table.add_column(column, kind)
            catalog.add_table(table.build())
        return catalog.build()

    def close(self):
        pass


def rows_of(frame):
    """Rows as GoogleSQL takes them; of the numbers that are missing, every other one is NULL."""
    numbers = [frame[name].dtype.kind == "f" for name in frame]
    rows = frame.astype(object).where(frame.notna() | numbers, None).to_numpy().tolist()
    nulls = itertools.cycle((None, float("nan")))
    return [[next(nulls) if one != one else one for one in row] for row in rows]


def content_of(rows):
    """Rows as a table of GoogleSQL's, also of arrays, which the package's function refuses."""
    made = [googlesql.TableData.Row(cell=[cell_of(one) for one in row]) for row in rows]
    return googlesql.TableContent(table_data=googlesql.TableData(row=made))


def cell_of(value):
    if isinstance(value, list):
        items = googlesql.Value.Array(element=[cell_of(one) for one in value])
        return googlesql.Value(array_value=items)
    kinds = {bool: "bool_value", int: "int64_value", float: "double_value", str: "string_value"}
    return googlesql.Value() if value is None else googlesql.Value(**{kinds[type(value)]: value})


def value_of(cell):
    """A value that GoogleSQL gave, as Python's."""
    if cell.array_value is not None:
        return [value_of(one) for one in cell.array_value.element]
    kinds = ("double_value", "int64_value", "bool_value", "string_value")
    return next((one for one in (getattr(cell, kind) for kind in kinds) if one is not None), None)


@contextlib.contextmanager
def schema_of_its_own(server: str):
    """The same server, as a URL that leads into an empty schema."""
    name = f"sqlkrp_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}")
        joint = "&" if "?" in server else "?"
        yield f"{server}{joint}options={url_quote(f'-c search_path={name}')}"
        admin.execute(f"SET client_min_messages = warning; DROP SCHEMA {name} CASCADE")


#: By the dialect that each runs; those of the slow tests start slowly, or come with no wheel.
ENGINES = {one.name: one for one in (DuckDB, Postgres, SQLite, DataFusion)}
#: Those that take a second or more for some statements.
SLOW_ENGINES = {one.name: one for one in (ClickHouse, GoogleSQL, MariaDB, Spark)}
