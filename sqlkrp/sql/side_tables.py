"""Side tables: the tables of stages as a database has them, and their DDL."""

from __future__ import annotations

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import quote, text
from sqlkrp.stages import Array

__all__ = ["SideTables", "Table", "create_side_table", "load_side_table"]

#: A table by its columns.
Table = dict[str, Array]
#: Side tables by (stage, name in its template): their full names, and their columns.
SideTables = dict[tuple[int, str], tuple[str, Table]]


def create_side_table(
    name: str, columns: Table, dialect: Dialect, *, temporary: bool = False
) -> str:
    """The CREATE TABLE statement of a side table."""
    kind = "TEMPORARY TABLE" if temporary else "TABLE"
    shape = _shape(columns, dialect)
    return dialect.create_table.format(kind=kind, table=quote(name, dialect), columns=shape)


def load_side_table(name: str, columns: Table, file: str, format: str, dialect: Dialect) -> str:
    """The statements that fill a side table from a file."""
    return dialect.load_file[format].format(
        table=quote(name, dialect), file=text(file, dialect), columns=_shape(columns, dialect)
    )


def _shape(columns: Table, dialect: Dialect) -> str:
    types = dialect.side_table_types
    return ", ".join(f"{column} {types[array.dtype.name]}" for column, array in columns.items())
