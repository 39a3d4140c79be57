"""Every engine that generated SQL is run in, with the same few things to ask of each."""

import contextlib
import itertools
import sqlite3
from pathlib import Path

import chdb.session
import datafusion
import duckdb
import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet

import sqlkrp
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.names import quote
from sqlkrp.sql.side_tables import create_side_table

_numbers = itertools.count()


class Engine:
    """A database to put tables in; ``features`` goes the way that users of this engine go."""

    name: str

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

    @classmethod
    def database_of(cls, url):
        """The same database, opened again."""
        return contextlib.closing(cls(url))

    def drop(self, table):
        self.execute(f"DROP TABLE IF EXISTS {self.quoted(table)}")

    def features(self, krp, table="t", **options):
        """The rows that a map gives, sorted: every column as a number, NaN for NULL."""
        into = f"features_{next(_numbers)}"
        try:
            self.database.create(krp, (table,), (into,), **options)
            rows = self.rows(f"SELECT * FROM {into}")
        finally:
            self.drop(into)
        return as_numbers(krp, rows, options)

    def run(self, statement):
        """The rows of a statement, with its side tables there while it runs."""
        try:
            for name, columns in statement.side_tables.items():
                self.execute(create_side_table(name, columns, dialect(self.name)))
                load = f"load_{next(_numbers)}"
                self.load(pd.DataFrame(columns), load)
                self.execute(f"INSERT INTO {self.quoted(name)} SELECT * FROM {load}")
                self.execute(f"DROP TABLE {load}")
            return self.rows(statement.text)
        finally:
            for name in statement.side_tables:
                self.drop(name)

    def keep(self, statement, table):
        """The rows of a statement that joins nothing, as a table."""
        self.drop(table)
        self.execute(f"CREATE TABLE {self.quoted(table)}{self.engine} AS {statement.text}")


def as_numbers(krp, rows, options):
    if options.get("output") == "array":
        empty = [None] * krp.n_components
        rows = [(*row[:-1], *(row[-1] if row[-1] is not None and len(row[-1]) else empty))
                for row in rows]  # fmt: skip
    count = (
        len(options.get("keep", ()))
        + ("long" in options)
        + (
            krp.program_.projection().stages[-1].n_outputs
            if options.get("stage") == "projection"
            else krp.n_components
        )
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

    def __init__(self, url):
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self.database = sqlkrp.connect(self.connection)

    def objects(self):
        rows = self.rows(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND ("
            " relnamespace = current_schema()::regnamespace OR relpersistence = 't')"
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
        columns = ", ".join(
            f"{name} {types.get(str(frame[name].dtype), 'VARCHAR')}" for name in frame
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

    def load(self, frame, table):
        types = {"f": "REAL", "i": "INTEGER", "b": "BOOLEAN"}
        columns = ", ".join(f"{name} {types.get(frame[name].dtype.kind, 'TEXT')}" for name in frame)
        self.execute(f"CREATE TABLE {table} ({columns})")
        places = ", ".join("?" for _ in frame)
        rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False)
        self.connection.executemany(f"INSERT INTO {table} VALUES ({places})", map(tuple, rows))

    def execute(self, sql):
        self.connection.execute(sql)

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def close(self):
        self.connection.close()


class Printed(Engine):
    """An engine that only ever sees printed SQL, and side tables made by the printed DDL."""

    def features(self, krp, table="t", **options):
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
    engine = " ENGINE = MergeTree ORDER BY tuple()"

    def __init__(self, folder: Path):
        self.folder = folder
        self.session = chdb.session.Session(str(folder / "chdb"))
        # The database that is there at first takes names of tables for patterns of files.
        self.execute("CREATE DATABASE tests ENGINE = Atomic")
        self.execute("USE tests")

    def load(self, frame, table):
        path = self.folder / f"{table}.parquet"
        pyarrow.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
        self.execute(f"CREATE TABLE {table}{self.engine} AS SELECT * FROM file('{path}', Parquet)")

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
