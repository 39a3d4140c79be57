"""Where results go: names that are free, or whose tables may be replaced or appended to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from sqlkrp.engines.keys import named_key
from sqlkrp.engines.session import Found, Session, Storage, TableOrFile, Target
from sqlkrp.errors import ColumnError, ParameterError, TargetExistsError
from sqlkrp.maps.allowed import Switch
from sqlkrp.sql.names import TableName, quote_table
from sqlkrp.sql.options import Options, name_list
from sqlkrp.sql.statement import Statement
from sqlkrp.sql.vectors import VECTOR
from sqlkrp.urls import Url

__all__ = [
    "require_kept",
    "require_same_columns",
    "require_view",
    "storage_in",
    "target_in",
]


def storage_in(
    session: Session,
    replace: bool,
    append: bool,
    format: str | None,
    partition_by: Iterable[str],
    upsert: bool = False,
    key: Any = (),
    *,
    in_files: bool = False,
) -> Storage:
    """How a result is to be kept, if the engine can."""
    for name, value in (("replace", replace), ("append", append), ("upsert", upsert)):
        Switch().require(name, value)
    for name, value in (("append", append), ("upsert", upsert)):
        if replace and value:
            raise ParameterError(f"replace=True and {name}=True are both given: give one")
    columns = named_key(key)
    if columns and not (append or upsert):
        raise ParameterError(
            "a key belongs to rows that are added: give append=True or upsert=True, too"
        )
    if upsert and not columns:
        raise ParameterError(
            "which rows are replaced? name the column (or several) that tells them apart (key=NAME)"
        )
    if format is not None and not (isinstance(format, str) and format.isidentifier()):
        raise ParameterError(f"format={format!r} is no name of a format, such as 'parquet'")
    parted = tuple(dict.fromkeys(name_list("partition_by", partition_by)))
    if format or parted or (in_files and append):
        session.can.require("storage", session.dialect.name, "leave them out")
    if append:
        session.can.require("appends", session.dialect.name, "create another table")
    if upsert:
        instead = "append, by the same key, which adds the rows that are new"
        session.can.require("upserts", session.dialect.name, instead)
    return Storage(
        replace=replace, append=append, upsert=upsert, key=columns, format=format,
        partition_by=parted,
    )  # fmt: skip


def require_view(session: Session, options: Options, storage: Storage) -> None:
    """Raise an error unless the engine has views, and this can be one."""
    session.can.require("views", session.dialect.name, "create a table")
    for name in ("append", "upsert", "format", "partition_by"):
        if value := getattr(storage, name):
            raise ParameterError(
                f"view=True and {name}={value!r} are both given: a view keeps no rows, so give one "
                "of them"
            )
    for name, allowed in (("how", options.how == "sql"), ("output", options.output != VECTOR)):
        if not allowed:
            raise ParameterError(
                f"a view is SQL alone: leave out {name}={getattr(options, name)!r}, or create a "
                "table"
            )


def target_in(
    session: Session,
    into: TableName,
    storage: Storage,
    sources: Sequence[TableOrFile | None],
    told: str,
    *,
    view: bool,
) -> Target:
    """The name to create something under, if what is there may go or be added to.

    ``told`` is what it is to say of the map, as a table that rows are added to does.
    """
    if storage.replace and not session.can.transactions:
        instead = "drop the old one first, and leave out replace=True"
        session.can.require("replaces", session.dialect.name, instead)
    if view and not all(isinstance(one, (str, tuple, Path, Url, type(None))) for one in sources):
        raise ParameterError("a view cannot read a DataFrame: give a table, or create a table")
    target = changed(session.target(into), storage=storage, told=told)
    if target.found is not None:
        for source in sources:
            if isinstance(source, (str, tuple)):  # else it is a file, or a DataFrame
                _require_other(session, target.found, source)
        _require_free(target, "view" if view else "table")
        if storage.grows:
            _require_same_map(session, target)
    return target


def _require_free(target: Target, wanted: str) -> None:
    assert target.found is not None
    name, existing = target.name, target.found[1]
    if not (target.storage.replace or target.storage.grows):
        raise TargetExistsError(
            f"{name!r} exists already: choose another name, or replace it (replace=True)"
        )
    if existing != wanted:
        raise TargetExistsError(
            f"{name!r} is a {existing} and a {wanted} was asked for: drop it first"
        )


def _require_other(session: Session, target: Found, source: TableName) -> None:
    read = session.find(source)
    below = session.reads(quote_table(source, session.dialect))
    if read is not None and read[1] == "table":
        below -= {read[0][-1].lower()}  # itself; the rest are parts of it
    if read == target or target[0][-1].lower() in below:
        raise ParameterError(
            f"{'.'.join(target[0])!r} is read by this: give the features another name"
        )


def _require_same_map(session: Session, target: Target) -> None:
    """Raise TargetExistsError unless a table was made by the same map."""
    there = session.told(target)
    if there != target.told:
        raise TargetExistsError(
            f"{target.name!r} was not made by this map ({target.told}), but says "
            f"{there or 'nothing'}: append to a table that it made, or give another name"
        )


def require_same_columns(session: Session, target: Target, statement: Statement) -> None:
    """Raise ColumnError unless a table has the columns of what is appended."""
    columns, new = session.columns_beside(target, statement.text)
    other = sorted(name for name, _ in {*columns.items()} ^ {*new.items()})
    if other:
        raise ColumnError(
            f"{target.name!r} and what is appended do not have the same columns: "
            f"{', '.join(map(repr, dict.fromkeys(other[:5])))} is not in both, or of another type"
        )


def require_kept(names: Sequence[str], kept: Sequence[str]) -> None:
    """Raise ColumnError unless columns to part by are handed on."""
    for name in names:
        if name not in kept:
            raise ColumnError(f"partition_by={name!r} is not handed on: keep it, too (keep=[...])")
