"""What a user does with a map in a database; the same for every engine.

A run has one path: look at the source, check it against the map, write the statement, load its
side tables, run it, drop the side tables. Creating is one transaction, where the engine has such;
exporting writes one file.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from sqlkrp.display import Shown
from sqlkrp.engines.checks import check_columns, check_values
from sqlkrp.engines.inputs import Input, look_at
from sqlkrp.engines.results import Result, opened
from sqlkrp.engines.samples import computed_of_sample, sample_of
from sqlkrp.engines.session import Session, TableOrFile, Target
from sqlkrp.engines.sources import TableSource, read_input
from sqlkrp.engines.stored import key_columns, rows_of_sample
from sqlkrp.engines.targets import (
    require_kept,
    require_same,
    require_view,
    storage_in,
    target_in,
)
from sqlkrp.engines.twin import written_by_twin
from sqlkrp.errors import ParameterError
from sqlkrp.files import require_other_file
from sqlkrp.maps.allowed import Number, Switch, Whole
from sqlkrp.maps.fitted import Fitted, require_fitted
from sqlkrp.sql.names import TableName, quote_table
from sqlkrp.sql.options import Options, with_options
from sqlkrp.sql.preflight import require_fits
from sqlkrp.sql.statement import Query, Statement, features_table, write
from sqlkrp.sql.vectors import VECTOR
from sqlkrp.stages import Array
from sqlkrp.verification import Stored, Verification, compare

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
    digest: str
    """That of the map or model."""

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
    def source(self, table: TableOrFile, *, options: Options) -> TableSource:
        """A table (or file) to fit a map to: ``krp.fit(db.source("t"))``.

        What creates, exports or verifies takes the source in the table's place. Its columns are
        then not looked at again, which of a CSV file takes longer than reading it.
        """
        return TableSource(self._session, look_at(self._session, table, options.long))

    @with_options()
    def create(
        self,
        fitted: Fitted,
        table: TableOrFile | TableSource,
        into: TableName,
        *,
        options: Options,
        view: bool = False,
        replace: bool = False,
        append: bool = False,
        format: str | None = None,
        partition_by: Iterable[str] = (),
    ) -> Run:
        """Create a table (or view) of features: in one transaction, whole or not at all.

        On an engine without transactions what was made is dropped if a later step fails, an old
        table is dropped when the new one is whole, and what others write meanwhile may be in the
        table.

        Spark has three more: ``append=True`` adds rows to a table that the same map made (or makes
        it), ``format`` is how the table is kept (``parquet`` unless it is given), and
        ``partition_by`` names kept columns to part it by.
        """
        Switch().require("view", view)
        storage = storage_in(self._session, replace, append, format, partition_by)
        if view:
            require_view(self._session, options, storage)
        with self._session.transaction():
            query, data = self._query(fitted, table, options, run_now=not view)
            require_kept(storage.partition_by, query.options.keep)
            sources = [data.table, options.rows]
            target = target_in(self._session, into, storage, sources, view=view)
            statement = self._written(query)
            self._require_fit(statement, query, view=view)
            # After the statement is written, so that one that is too large fails fast.
            check_values(self._session, query.program, data)
            told = f"sqlkrp {fitted.kind} {fitted.digest_}"
            if options.stage != "features":
                told += f", {options.stage}"
            count = self._made(target, statement, told, view=view)
        return Run(statement, count, fitted.digest_)

    def _made(self, target: Target, statement: Statement, told: str, *, view: bool) -> int | None:
        """Make what was written, or append it to what is there; how many rows came."""
        with self._session.holding(statement.side_tables):
            if target.storage.append and target.found is not None:
                require_same(self._session, target, statement, told)
                return self._session.append(target, statement.text)
            count = self._session.create(target, statement.text, view=view)
        try:
            self._finish(target, statement, told, view=view)
        except BaseException:
            # Where an old one was replaced, dropping the new one would leave nothing.
            if not self._session.can.transactions and target.found is None:
                self._drop(target, view=view)
            raise
        return count

    def _require_fit(self, statement: Statement, query: Query, *, view: bool) -> None:
        """Raise an error unless a table has room for the rows, or a view needs no side tables."""
        if not view:
            sizes = features_table(statement, query, self._session.dialect)
            require_fits(sizes, self._session.dialect)
        elif statement.side_tables:
            long = query.long is not None
            why = "of sparse input" if long else "in the tables form"
            instead = "create a table" if long else "use form='wide', or create a table"
            raise ParameterError(f"a view {why} would need side tables that stay: {instead}")

    def _finish(self, target: Target, statement: Statement, told: str, *, view: bool) -> None:
        """What is left to do for a table or view that was made."""
        self._session.restore_names(target.full, statement.columns, view=view)
        if view:
            # A view that came to read itself can be created, but not read.
            relation = quote_table(target.full, self._session.dialect)
            self._session.rows(f"SELECT * FROM {relation} LIMIT 0", "reading the view")
        if self._session.can.comments:
            self._session.comment(target, told, view=view)

    def _drop(self, target: Target, *, view: bool) -> None:
        name = quote_table(target.full, self._session.dialect)
        self._session.execute(f"DROP {'VIEW' if view else 'TABLE'} {name}", "cleaning up")

    @with_options()
    def export(
        self,
        fitted: Fitted,
        table: TableOrFile | TableSource,
        path: str | Path,
        *,
        options: Options,
        replace: bool = False,
        append: bool = False,
        format: str | None = None,
        partition_by: Iterable[str] = (),
    ) -> Run:
        """Stream the features to a .csv, .csv.gz or .parquet file (``-``: CSV to standard output).

        The file appears when it is whole; an existing one is replaced only on request. Spark writes
        a folder of files, and has ``append``, ``format`` and ``partition_by``, as :meth:`create`.
        """
        storage = storage_in(self._session, replace, append, format, partition_by)
        named = table.data.table if isinstance(table, TableSource) else table
        for source in (named, options.rows, *self._session.files()):
            if isinstance(source, Path):
                require_other_file(Path(path), source)
        # One transaction, so that what is checked is what is written.
        with (
            self._session.destination(path, storage) as write_to,
            self._session.transaction(keep=False),
        ):
            query, data = self._query(fitted, table, options, run_now=True)
            if query.options.output == "auto":  # a model's is columns already
                output = self._session.output_of(path, storage)
                query = changed(query, options=_with_output(query.options, output))
            require_kept(storage.partition_by, query.options.keep)
            statement = self._written(query)
            check_values(self._session, query.program, data)
            with self._session.holding(statement.side_tables):
                count = write_to(statement.text)
        return Run(statement, count, fitted.digest_)

    @with_options("form", "plan", "keep", "long", "rows")
    def score(
        self,
        model: Any,
        table: TableOrFile | TableSource | None = None,
        *,
        options: Options,
        features: TableOrFile | TableSource | None = None,
        holds: str = "features",
        into: TableName | None = None,
        path: str | Path | None = None,
        outputs: Iterable[str] | None = None,
        threshold: float | None = None,
        as_: str = "auto",
        prefix: str = "",
        view: bool = False,
        replace: bool = False,
    ) -> Run:
        """Score rows with a model: a table or view of what it says of each, or a file.

        Give the ``table`` that has the model's columns, or a table of its map's ``features``
        (which, of rank-one projections, ``holds`` features, their signs as bits, or the sketches
        whose signs were trained on); and a name to go ``into``, or the ``path`` of a file (as
        :meth:`create` and :meth:`export` have them). ``outputs`` and ``threshold`` are as
        :func:`sqlkrp.model` has them. ``as_`` chooses how a score is computed: by the map's
        ``features``, as the ``polynomial`` in the columns that it is with many maps, or ``auto``:
        what has fewer operations. What the names of the new columns begin with is the ``prefix``,
        for where a kept column is called ``label``.
        """
        from sqlkrp.models import scoring

        fitted, source = scoring(model, table, features, outputs, threshold, as_, prefix, holds)
        chosen = {name: getattr(options, name) for name in ("form", "plan", "keep", "long", "rows")}
        if (into is None) == (path is None):
            raise ParameterError("scores go into a table or to a file: give into=NAME or path=FILE")
        if into is not None:
            return self.create(fitted, source, into, view=view, replace=replace, **chosen)
        if view:
            raise ParameterError("a view is no file: give into=NAME, or leave out view")
        return self.export(fitted, source, path, replace=replace, **chosen)

    def importance(
        self, model: Any, table: TableOrFile | TableSource, *, sample: int = 1000
    ) -> Any:
        """How much each column matters to a model, on a sample of rows; it needs no labels.

        The values of a column are put to other rows; the mean change of the decision (or
        prediction) is told as a share of its standard deviation.
        """
        from sqlkrp.models.importance import decided, importance
        from sqlkrp.models.scoring import scoring

        Whole(2).require("sample", sample)
        fitted = decided(scoring(model, table, None, None, None)[0])
        self._require("temporary_tables", "explain(), if it is a polynomial")
        with self._session.transaction(keep=False):
            query, data = self._query(fitted, table, Options(), run_now=True)
            rows = check_values(self._session, query.program, data)
            columns = fitted.program.prepare.reads
            drawn = sample_of(self._session, query.relation, columns, sample, rows)
            return importance(self._session, query, fitted, drawn)

    @with_options()
    def relation(
        self, fitted: Fitted, table: TableOrFile | TableSource, *, options: Options
    ) -> Any:
        """The features as a lazy relation of the engine, to go on with: filter, join, ``.df()``.

        Nothing is read until the relation is; it stops itself at a missing value under
        ``nulls="error"``. In the tables form its side tables stay, as temporary tables, until
        :meth:`close`.
        """
        self._require("relations", "create a view (view=True), or take the SQL (to_sql)")
        query, _ = self._query(fitted, table, options, run_now=False)
        statement = self._written(query)
        for name, columns in statement.side_tables.items():
            self._kept.append(name)
            self._session.load(name, columns)
        return self._session.lazily(statement.text)

    @with_options("form", "plan", "long", "rows")
    def verify(
        self,
        fitted: Fitted,
        table: TableOrFile | TableSource,
        *,
        sample: int = 1000,
        options: Options,
        tolerance: float | None = None,
        result: TableOrFile | None = None,
        key: str | Iterable[str] = (),
        outputs: Iterable[str] | None = None,
        threshold: float | None = None,
        as_: str = "auto",
        prefix: str = "",
    ) -> Verification:
        """Compare what the engine computes of a sample of rows with the NumPy twin.

        With a ``result``, what is stored: a table of features or scores that is there already, or a
        file (.csv, .csv.gz, .tsv, .parquet), also one that another engine wrote. One that the
        source's engine does not read is read by DuckDB. ``key`` names the column, or several, that
        tell the rows apart in both; rows may be in any order, and those that the result lacks are
        a difference. ``outputs``, ``threshold``, ``as_`` and ``prefix`` are of a model, as
        :meth:`score` has them; without ``outputs`` all that the result has of what it says is
        compared.
        """
        Whole(1).require("sample", sample)
        if tolerance is not None:
            Number(0).require("tolerance", tolerance)
        require_fitted("fitted", fitted)
        asked = (outputs, threshold, as_, prefix)
        if asked != (None, None, "auto", ""):
            from sqlkrp.models import scoring

            fitted, _ = scoring(fitted, table, None, *asked)
        if result is not None or key:
            columns = key_columns(result, key, options)
            assert result is not None
            with self._session.transaction(keep=False), opened(self._session, result) as there:
                if outputs is None:
                    fitted = fitted.said_in(there.types, there.name)
                drawn = self._stored(fitted, table, options, there, columns, sample)
            inputs, found, stored = drawn
            return compare(fitted.twin.coded(), inputs, found, "stored", tolerance, stored)
        with self._session.transaction(keep=False):
            query, data = self._query(fitted, table, options, run_now=True)
            query = replace(query, program=query.program.coded())
            rows = check_values(self._session, query.program, data)
            statement, inputs, found = computed_of_sample(self._session, query, sample, rows)
        return compare(fitted.twin.coded(), inputs, found, statement.form, tolerance)

    def _stored(
        self,
        fitted: Fitted,
        table: TableOrFile | TableSource,
        options: Options,
        there: Result,
        key: tuple[str, ...],
        sample: int,
    ) -> tuple[Array, Array, Stored]:
        """A sample's inputs, what a result holds of its rows, and which these are."""
        query, data = self._query(fitted, table, options, run_now=True)
        check_values(self._session, query.program, data)
        return rows_of_sample(self._session, query, data, there, key, sample)

    def _require(self, capability: str, instead: str) -> None:
        self._session.can.require(capability, self._session.dialect.name, instead)

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
        self,
        fitted: Fitted,
        table: TableOrFile | TableSource,
        options: Options,
        *,
        run_now: bool,
    ) -> tuple[Query, Input]:
        """The query of a map over a source, after a look at the source's columns.

        What is run now, in a transaction that sees what was checked, needs no guard of its own. A
        view and a relation are read when their table may have changed.
        """
        require_fitted("fitted", fitted)
        data = read_input(self._session, table, options)
        prepare = fitted.program.prepare
        if fitted.label_ in (data.types if data.long is None else data.key_types or {}):
            options = replace(options, keep=(*options.keep, str(fitted.label_)))
        check_columns(prepare, data, options.keep)
        data = data.encoded(prepare, self._session.dialect)
        return replace(
            fitted.query(data.relation, options),
            keys=None if data.long is None else data.long.keys,
            booleans=data.booleans,
            token=f"{next(_uses)}_",
            guard=not (run_now and self._session.can.transactions),
        ), data

    def _written(self, query: Query) -> Statement:
        """The statement, if the engine takes it, and has room for its side tables."""
        as_vectors = query.options.output == VECTOR
        if as_vectors:
            self._require("vectors", "use output='array'")
            query = replace(query, options=_with_output(query.options, "array"))
        if query.options.how == "sql":
            statement = write(query, self._session.dialect)
        else:
            statement = written_by_twin(self._session, query)
        if statement.side_tables:
            self._require(
                "temporary_tables", "give rows with one column a feature, and form='wide'"
            )
        if as_vectors:
            text = self._session.with_vectors(statement.text, statement.columns[-1])
            statement = replace(statement, text=text)
        return statement


def _with_output(options: Options, output: str) -> Options:
    return replace(options, output=output)
