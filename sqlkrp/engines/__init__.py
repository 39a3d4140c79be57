"""Databases to run a map in: one file per engine, whose driver is imported when it is used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlkrp.engines.database import Database
from sqlkrp.errors import ParameterError, UnknownParameterError
from sqlkrp.spelling import near_matches
from sqlkrp.urls import file_behind, hidden, is_attached, is_url

__all__ = [
    "Database",
    "connect",
    "is_database",
    "is_there",
    "require_no_other_url",
    "require_there",
]


@dataclass(frozen=True)
class _Engine:
    """How an engine is recognised without importing its driver."""

    module: str
    session: str
    drivers: tuple[str, ...]
    """The packages that its connections are of."""
    extra: str = ""
    """What to install for it, if it does not come with sqlkrp."""
    schemes: tuple[str, ...] = ()
    """How its URLs begin."""
    stores: tuple[str, ...] = ()
    """How URLs of files begin that it reads, which are databases if they end as its files do."""
    suffixes: tuple[str, ...] = ()
    magic: tuple[int, bytes] | None = None
    """Where in its files there are which bytes."""
    settings: tuple[str, ...] = ()
    """What :func:`connect` hands to it by these names."""

    def knows(self, beginning: bytes) -> bool:
        """Whether a file that begins so is one of this engine's."""
        return self.magic is not None and beginning[self.magic[0] :].startswith(self.magic[1])


#: Every engine; the first is that of a database in memory, and of files that nobody knows.
_ENGINES = (
    _Engine(
        "duckdb",
        "DuckDB",
        drivers=("duckdb", "_duckdb"),
        suffixes=(".duckdb", ".ddb", ".db"),
        magic=(8, b"DUCK"),
        stores=(
            *("s3://", "s3a://", "s3n://", "gs://", "gcs://", "r2://", "https://", "http://"),
            *("hf://", "az://", "azure://", "abfss://", "file://"),
        ),
        settings=("memory_limit", "threads"),
    ),
    _Engine(
        "sqlite",
        "SQLite",
        drivers=("sqlite3",),
        suffixes=(".sqlite", ".sqlite3"),
        magic=(0, b"SQLite format 3\0"),
    ),
    _Engine(
        "postgres",
        "Postgres",
        drivers=("psycopg",),
        extra="postgres",
        schemes=("postgresql://", "postgres://"),
    ),
    _Engine(
        "spark",
        "Spark",
        drivers=("pyspark",),
        extra="spark",
        schemes=("spark://", "local[", "sc://"),
    ),
)
# What DuckDB calls a database that is no file; a name may follow.
_IN_MEMORY = ":memory:"


def connect(
    target: Any = None, *, create: bool = False, read_only: bool = False, **settings: Any
) -> Database:
    """Connect to a database, or wrap an open connection (which is left as it was).

    ``target`` is the path of a DuckDB or SQLite file, a URL ``postgresql://...``, ``spark://...``,
    ``sc://...`` or ``local[2]``, None for an empty DuckDB database in memory, or an open connection
    of one of these (duckdb, sqlite3, psycopg, a SparkSession). What DuckDB attaches by a name is
    one of its databases too: ``md:warehouse``, ``ducklake:metadata.ducklake``, and to be read
    ``s3://bucket/x.duckdb`` or ``https://...``. A path that is not there is an error, or with
    ``create=True`` a new database.
    Nothing is created in it until :meth:`Database.create` is called. ``settings`` are the engine's
    own: DuckDB has ``memory_limit`` and ``threads``. (Two things are not put back: a sqlite3
    connection's progress handler, and what a DuckDB connection had pending.)
    """
    settings = {name: value for name, value in settings.items() if value is not None}
    _require_known(settings)
    if target is None or isinstance(target, (str, os.PathLike)):
        engine = _engine_of(target)
        _require_settings(engine, settings)
        session = _session_class(engine)
        if target is not None and not create:
            require_there(os.fspath(target), ", or create=True for a new one")
        return Database(session.open(target, read_only=read_only, **settings))
    packages = {base.__module__.partition(".")[0] for base in type(target).__mro__}
    for engine in _ENGINES:
        if packages & set(engine.drivers) and _session_class(engine).is_connection(target):
            if read_only or settings:
                raise ParameterError(
                    f"{_listed(['read_only', *_owners()])} cannot be set on an open connection: "
                    "set them where you opened it"
                )
            return Database(_session_class(engine)(target))
    raise ParameterError(
        f"cannot connect to {type(target).__name__}: give {_known_targets()}, an open connection, "
        "or nothing for a database in memory"
    )


def require_there(target: str, instead: str = "") -> None:
    """Raise ParameterError if there is no such database; ``instead`` is what else may be done."""
    if not is_there(target):
        raise ParameterError(
            f"there is no database {hidden(target)!r}: give {_known_targets()}{instead}"
        )


def _known_targets() -> str:
    """What names a database, in words."""
    files = " or ".join(engine.session for engine in _ENGINES if engine.suffixes)
    urls = " or ".join(f"{engine.schemes[0]}..." for engine in _ENGINES if engine.schemes)
    return f"the path of a {files} file, a URL {urls}, or what DuckDB attaches, as md:..."


def _owners() -> dict[str, list[str]]:
    """The engines that take a setting, by its name."""
    names = dict.fromkeys(name for engine in _ENGINES for name in engine.settings)
    return {name: [one.session for one in _ENGINES if name in one.settings] for name in names}


def _require_known(settings: Iterable[str]) -> None:
    known = ["create", "read_only", *_owners()]
    for name in settings:
        if name not in known:
            raise UnknownParameterError(f"connect has no {name!r}{near_matches(name, known)}")


def _require_settings(engine: _Engine, settings: Iterable[str]) -> None:
    wrong = [name for name in settings if name not in engine.settings]
    if wrong:
        # With all that are whose the first one is.
        whose = _owners()[wrong[0]]
        names = [name for name, owners in _owners().items() if owners == whose]
        are = "are" if len(names) > 1 else "is"
        none = {1: "no such setting", 2: "neither"}.get(len(names), "none of them")
        raise ParameterError(
            f"{_listed(names)} {are} {_listed(whose)}'s: {engine.session} has {none}"
        )


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def is_database(target: str) -> bool:
    """Whether this names a database, rather than a data file."""
    beginning = _beginning(target)
    return (
        _is_server(target)
        or is_attached(target)
        or any(
            target.lower().endswith(engine.suffixes) or engine.knows(beginning)
            for engine in _ENGINES
        )
    )


def is_there(target: str) -> bool:
    """Whether a database is there to be opened; of a server, only connecting tells."""
    if is_attached(target):
        behind = file_behind(target)
        return behind is None or os.path.exists(behind)
    is_elsewhere = _is_server(target) or _is_stored(target)
    return is_elsewhere or target.startswith(_IN_MEMORY) or os.path.exists(target)


def _is_stored(target: str) -> bool:
    """Whether this is a URL of a file that an engine reads."""
    stores = tuple(store for engine in _ENGINES for store in engine.stores)
    return target.lower().startswith(stores)


def _is_server(target: str) -> bool:
    """Whether this is a URL of an engine's own."""
    schemes = tuple(scheme for engine in _ENGINES for scheme in engine.schemes)
    return target.lower().startswith(schemes)


def _engine_of(target: str | os.PathLike[str] | None) -> _Engine:
    if target is None:
        return _ENGINES[0]
    name = os.fspath(target)
    if is_attached(name) or _is_stored(name):
        return next(engine for engine in _ENGINES if engine.stores)
    beginning = _beginning(name)
    for engine in _ENGINES:
        if name.lower().startswith(engine.schemes or "\0") or engine.knows(beginning):
            return engine
    if not beginning and re.match(r"\s*(host|hostaddr|port|dbname|user|service)\s*=", name):
        (scheme, *_), *_ = (engine.schemes for engine in _ENGINES if engine.schemes)
        raise ParameterError(f"connect to a server by a URL: {scheme}user@host/dbname")
    require_no_other_url(name)
    # Where no engine knows a file by its content, its name says whose it is meant to be.
    named = (one for one in _ENGINES if name.lower().endswith(one.suffixes))
    return next(named, _ENGINES[0])


def require_no_other_url(target: str) -> None:
    """Raise ParameterError if this is a URL of what nothing here reads."""
    known = _is_server(target) or _is_stored(target)
    if is_url(target) and not known and not os.path.exists(target):
        schemes = ", ".join(
            scheme for engine in _ENGINES for scheme in (*engine.schemes, *engine.stores)
        )
        raise ParameterError(
            f"no engine here is reached by {target.partition('://')[0]}://, and no file is read "
            f"from there: use {schemes} or a file of this machine"
        )


def _beginning(name: str) -> bytes:
    """The first bytes of a file; none if there is no such file."""
    path = Path(name)
    if _is_server(name) or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(16)


def _session_class(engine: _Engine) -> Any:
    try:
        module = import_module(f"sqlkrp.engines.{engine.module}")
    except ImportError as bad:
        raise ParameterError(
            f"{engine.session} needs a driver that is not installed ({bad.name}): "
            f"pip install 'sqlkrp[{engine.extra}]'"
        ) from bad
    return getattr(module, engine.session)
