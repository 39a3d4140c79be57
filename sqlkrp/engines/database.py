"""What a user does with a map in a database; the same for every engine.

A run has one path: look at the source, check it against the map, write the statement, load its
side tables, run it, drop the side tables. Creating is one transaction; exporting writes one file.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlkrp.display import Shown
from sqlkrp.engines.checks import check_columns, check_values
from sqlkrp.engines.inputs import Input, TableSource, read_input
from sqlkrp.engines.samples import computed_in_place, sampled
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.errors import LimitError, ParameterError, TargetExistsError
from sqlkrp.files import require_other_file
from sqlkrp.maps.allowed import Number, Whole
from sqlkrp.maps.feature_map import FeatureMap, require_map
from sqlkrp.maps.source import BOOLEAN, Source
from sqlkrp.sql.names import TableName
from sqlkrp.sql.options import Options, with_options
from sqlkrp.sql.preflight import require_fits
from sqlkrp.sql.statement import Query, Statement, draft, features_table, write
from sqlkrp.stages import Array
from sqlkrp.verification import Verification, compare

__all__ = ["Database", "Run"]


# In the names of temporary tables: one that could not be dropped, or that a relation still needs,
# is not in the way of the next use of the same map.
_uses = itertools.count(1)


@dataclass(frozen=True, repr=False)
class Run(Shown):
    """What a run did."""

    statement: Statement
    rows: int | None
    """Rows written; None for a view, which has none of its own."""

    def _facts(self) -> dict[str, Any]:
        return {"rows": self.rows, **self.statement._facts()}


class Database(Shown):
    """A database that computes features where the data lives."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: list[str] = []

    def _facts(self) -> dict[str, Any]:
        # Not where it is: a URL may hold a password.
        return {"engine": self._session.dialect.name}

    @property
    def connection(self) -> Any:
        """The engine's own connection."""
        return self._session.connection

    @property
    def on_progress(self) -> Callable[[float], None] | None:
        """Called with the share done (0 to 1) while a long statement runs."""
        return self._session.on_progress

    @on_progress.setter
    def on_progress(self, call: Callable[[float], None] | None) -> None:
        self._session.on_progress = call

    @with_options("long")
    def source(self, table: TableOrFile, *, options: Options) -> Source:
        """A table (or file) to fit a map to: ``krp.fit(db.source("t"))``."""
        data = read_input(self._session, table, options)
        if options.long is not None or isinstance(table, Path):
            return TableSource(self._session, data)
        return TableSource(self._session, data, self._session.primary_key(table))

    @with_options()
    def create(
        self,
        fitted: FeatureMap,
        table: TableOrFile,
        into: TableName,
        *,
        options: Options,
        view: bool = False,
        replace: bool = False,
    ) -> Run:
        """Create a table (or view) of features: in one transaction, whole or not at all."""
        with self._session.transaction():
            data, query = self._query(fitted, table, options)
            full = self._session.full_name(into)
            self._require_free(full, [table, options.rows], view=view, replace=replace)
            # A view is read when its table may have changed, so it guards itself.
            statement = self._checked(query, data, guard=view)
            if not view:
                table_sizes = features_table(statement, query, self._session.dialect)
                require_fits(table_sizes, self._session.dialect)
            if view and statement.side_tables:
                why = "of sparse input" if options.long else "in the tables form"
                instead = "create a table" if options.long else "use form='wide', or create a table"
                raise ParameterError(f"a view {why} would need side tables that stay: {instead}")
            with self._side_tables(statement):
                count = self._session.create(full, statement.text, view=view, replace=replace)
            self._session.restore_names(full, statement.columns, view=view)
            if view:
                # A view that came to read itself can be created, but not read.
                relation = self._session.relation(full)
                self._session.rows(f"SELECT * FROM {relation} LIMIT 0", "reading the view")
            self._session.comment(full, f"sqlkrp map {fitted.digest_}", view=view)
        return Run(statement, count)

    @with_options()
    def export(
        self,
        fitted: FeatureMap,
        table: TableOrFile,
        path: str | Path,
        *,
        options: Options,
        replace: bool = False,
    ) -> Run:
        """Stream the features to a .csv, .csv.gz or .parquet file (``-``: CSV to standard output).

        The file appears when it is whole; an existing one is replaced only on request.
        """
        for source in (table, options.rows, *self._session.files()):
            if isinstance(source, Path):
                require_other_file(Path(path), source)
        # One transaction, so that what is checked is what is written.
        with (
            self._session.destination(path, replace=replace) as write_to,
            self._session.transaction(keep=False),
        ):
            data, query = self._query(fitted, table, options)
            statement = self._checked(query, data, guard=False)
            with self._side_tables(statement):
                count = write_to(statement.text)
        return Run(statement, count)

    @with_options()
    def relation(
        self,
        fitted: FeatureMap,
        table: TableOrFile,
        *,
        options: Options,
    ) -> Any:
        """The features as a lazy relation of the engine, to go on with: filter, join, ``.df()``.

        Nothing is read until the relation is; it stops itself at a missing value under
        ``nulls="error"``. In the tables form its side tables stay, as temporary tables, until
        :meth:`close`.
        """
        if not self._session.has_relations:
            raise LimitError(
                f"{self._session.dialect.name} has no lazy relations: create a view (view=True), "
                "or take the SQL (to_sql)"
            )
        _, query = self._query(fitted, table, options)
        statement = write(query, self._session.dialect)
        for name, columns in statement.side_tables.items():
            self._kept.append(name)
            self._session.load(name, columns)
        return self._session.lazily(statement.text)

    @with_options("form", "plan", "long", "rows")
    def verify(
        self,
        fitted: FeatureMap,
        table: TableOrFile,
        *,
        sample: int = 1000,
        options: Options,
        tolerance: float | None = None,
    ) -> Verification:
        """Compare the engine's features of a sample of rows with the NumPy twin's."""
        Whole(1).require("sample", sample)
        if tolerance is not None:
            Number(0).require("tolerance", tolerance)
        with self._session.transaction(keep=False):
            data, query = self._query(fitted, table, options)
            check_values(self._session, query.program, data)
            query = replace(query, guard=False, options=options)
            used, inputs, found = self._computed(query, sample)
        return compare(fitted.program, inputs, found, used, tolerance)

    def _computed(self, query: Query, count: int) -> tuple[str, Array, Array]:
        """The form used, and the inputs and the engine's features of a sample of rows."""
        form = draft(query, self._session.dialect).form
        in_columns = form == "wide" and query.long is None
        if in_columns and self._session.dialect.array is not None:
            return (form, *computed_in_place(self._session, query, count))
        with sampled(self._session, query, count) as (small, inputs):
            statement = write(small, self._session.dialect)
            with self._side_tables(statement):
                found = self._session.columns(
                    statement.text, query.program.names, "the features of the sample"
                )
        return statement.form, inputs, found

    def close(self) -> None:
        """Drop what the library still holds in the connection; close it if it opened it."""
        for name in self._kept:
            self._session.drop_temporary(name)
        self._kept.clear()
        self._session.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _query(
        self, fitted: FeatureMap, table: TableOrFile, options: Options
    ) -> tuple[Input, Query]:
        """The source, and the query of a map over it, after a look at the source's columns."""
        require_map("fitted", fitted)
        data = read_input(self._session, table, options)
        prepare = fitted.program.prepare
        if fitted.label_ in (data.types if data.long is None else data.key_types or {}):
            options = replace(options, keep=(*options.keep, str(fitted.label_)))
        check_columns(self._session, prepare, data, options.keep)
        query = fitted.query(data.relation, options)
        kinds = {name: self._session.kind(kind) for name, kind in data.types.items()}
        booleans = frozenset(name for name, kind in kinds.items() if kind == BOOLEAN)
        keys = None if data.long is None else data.long.keys
        return data, replace(query, keys=keys, booleans=booleans, token=f"{next(_uses)}_")

    def _checked(self, query: Query, data: Input, *, guard: bool) -> Statement:
        """The statement, written before the source's values are read: a bad one fails fast."""
        statement = write(replace(query, guard=guard), self._session.dialect)
        check_values(self._session, query.program, data)
        return statement

    def _require_free(
        self,
        into: tuple[str, ...],
        sources: Sequence[TableOrFile | None],
        *,
        view: bool,
        replace: bool,
    ) -> None:
        found = self._session.find(into)
        if found is None:
            return
        name = ".".join(into)
        for source in sources:
            if source is not None and not isinstance(source, Path):
                self._require_other(found, source)
        existing, wanted = found[1], "view" if view else "table"
        if not replace:
            raise TargetExistsError(
                f"{name!r} exists already: choose another name, or replace it (replace=True)"
            )
        if existing != wanted:
            raise TargetExistsError(
                f"{name!r} is a {existing} and a {wanted} was asked for: drop it first"
            )

    def _require_other(self, target: tuple[tuple[str, ...], str], source: TableName) -> None:
        read = self._session.find(source)
        below = self._session.reads(self._session.relation(source))
        if read is not None and read[1] == "table":
            below -= {read[0][-1].lower()}  # itself; the rest are parts of it
        if read == target or target[0][-1].lower() in below:
            raise ParameterError(
                f"{'.'.join(target[0])!r} is read by this: give the features another name"
            )

    @contextlib.contextmanager
    def _side_tables(self, statement: Statement) -> Iterator[None]:
        """The statement's side tables, for the length of a block."""
        with contextlib.ExitStack() as drops:
            for name, columns in statement.side_tables.items():
                drops.callback(self._session.drop_temporary, name)
                self._session.load(name, columns)
            yield
