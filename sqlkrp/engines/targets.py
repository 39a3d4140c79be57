"""Where results go: names that are free, or whose tables may be replaced or appended to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace as changed
from pathlib import Path

from sqlkrp.engines.session import Found, Session, Storage, TableOrFile, Target
from sqlkrp.errors import ColumnError, ParameterError, TargetExistsError
from sqlkrp.maps.allowed import Switch
from sqlkrp.sql.names import TableName, quote_table
from sqlkrp.sql.options import Options, name_list
from sqlkrp.sql.statement import Statement
from sqlkrp.sql.vectors import VECTOR

__all__ = ["require_kept", "require_same", "require_view", "storage_in", "target_in"]


def storage_in(
    session: Session,
    replace: bool,
    append: bool,
    format: str | None,
    partition_by: Iterable[str],
) -> Storage:
    """How a result is to be kept, if the engine can."""
    Switch().require("replace", replace)
    Switch().require("append", append)
    if replace and append:
        raise ParameterError("replace=True and append=True are both given: give one")
    if format is not None and not (isinstance(format, str) and format.isidentifier()):
        raise ParameterError(f"format={format!r} is no name of a format, such as 'parquet'")
    parted = tuple(dict.fromkeys(name_list("partition_by", partition_by)))
    storage = Storage(replace=replace, append=append, format=format, partition_by=parted)
    if not storage.is_plain:
        session.can.require("storage", session.dialect.name, "leave them out")
    return storage


def require_view(session: Session, options: Options, storage: Storage) -> None:
    """Raise an error unless the engine has views, and this can be one."""
    session.can.require("views", session.dialect.name, "create a table")
    if not storage.is_plain:
        raise ParameterError("append, format and partition_by are for tables: leave them out")
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
    *,
    view: bool,
) -> Target:
    """The name to create something under, if what is there may go or be added to."""
    if storage.replace and not session.can.transactions:
        instead = "drop the old one first, and leave out replace=True"
        session.can.require("replaces", session.dialect.name, instead)
    if view and not all(isinstance(one, (str, tuple, Path, type(None))) for one in sources):
        raise ParameterError("a view cannot read a DataFrame: give a table, or create a table")
    target = changed(session.target(into), storage=storage)
    if target.found is not None:
        for source in sources:
            if isinstance(source, (str, tuple)):  # else it is a file, or a DataFrame
                _require_other(session, target.found, source)
        _require_free(target, "view" if view else "table")
    return target


def _require_free(target: Target, wanted: str) -> None:
    assert target.found is not None
    name, existing = target.name, target.found[1]
    if not (target.storage.replace or target.storage.append):
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


def require_same(session: Session, target: Target, statement: Statement, told: str) -> None:
    """Raise an error unless a table was made by the same map, with the same columns."""
    there = session.told(target)
    if there != told:
        raise TargetExistsError(
            f"{target.name!r} was not made by this map ({told}), but says {there or 'nothing'}: "
            "append to a table that it made, or give another name"
        )
    columns = session.describe(quote_table(target.full, session.dialect), target.name)
    new = session.describe(f"(\n{statement.text}\n) AS appended", "what is appended")
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
