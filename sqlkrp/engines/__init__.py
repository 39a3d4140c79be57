"""Databases to run a map in: one file per engine, whose driver is imported when it is used."""

from __future__ import annotations

import os
from typing import Any

from sqlkrp.engines.database import Database
from sqlkrp.errors import ParameterError

__all__ = ["Database", "connect"]


def connect(
    target: Any = None,
    *,
    read_only: bool = False,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> Database:
    """Connect to a database, or wrap an open connection (which is left as it was).

    ``target`` is the path of a DuckDB file, None for an empty database in memory, or an open
    DuckDB connection. Nothing is created in it until ``create`` is called.
    """
    from sqlkrp.engines.duckdb import DuckDB

    if target is None or isinstance(target, (str, os.PathLike)):
        return Database(
            DuckDB.open(target, read_only=read_only, memory_limit=memory_limit, threads=threads)
        )
    if DuckDB.is_connection(target):
        if read_only or memory_limit or threads:
            raise ParameterError(
                "read_only, memory_limit and threads cannot be set on an open connection: "
                "set them where you opened it"
            )
        return Database(DuckDB(target))
    raise ParameterError(
        f"cannot connect to {type(target).__name__}: give the path of a DuckDB file, an open "
        "DuckDB connection, or nothing for a database in memory"
    )
