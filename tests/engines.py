"""Every engine that generated SQL is run in, with the same few things to ask of each."""

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

    def __init__(self):
        self.connection = duckdb.connect()
        self.database = sqlkrp.connect(self.connection)

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

    def __init__(self, url):
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self.database = sqlkrp.connect(self.connection)

    def load(self, frame, table):
        types = {"float32": "REAL", "float64": "DOUBLE PRECISION", "int64": "BIGINT"}
        types |= {"int8": "SMALLINT", "int32": "INTEGER"}
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

    def __init__(self):
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.database = sqlkrp.connect(self.connection)

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
        arrow = pa.Table.from_pandas(frame, preserve_index=False)
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
