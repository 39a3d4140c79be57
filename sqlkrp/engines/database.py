"""What a user does with a map in a database; the same for every engine.

A run has one path: look at the source, check it against the map, write the statement, load its
side tables, run it, drop the side tables. Creating is one transaction, where the engine has such;
exporting writes one file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from sqlkrp.display import Shown
from sqlkrp.engines.asking import query_of, with_output, written
from sqlkrp.engines.checks import check_values
from sqlkrp.engines.creating import columns_of, made, require_room
from sqlkrp.engines.distortion import distortion_in
from sqlkrp.engines.growing import chosen_rows, few_rows, with_key
from sqlkrp.engines.inputs import look_at
from sqlkrp.engines.keys import named_key
from sqlkrp.engines.macros import macro_made
from sqlkrp.engines.samples import inputs_of_sample, sample_of
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.engines.sources import TableSource, read_input
from sqlkrp.engines.streaming import batches_of_features
from sqlkrp.engines.targets import (
    require_kept,
    require_view,
    storage_in,
    target_in,
)
from sqlkrp.engines.verifying import require_measures, verified, verified_as_stored
from sqlkrp.errors import ParameterError
from sqlkrp.files import require_other_file
from sqlkrp.maps.allowed import Switch, Whole
from sqlkrp.maps.fitted import Fitted, require_fitted
from sqlkrp.quality.asked import asked_of
from sqlkrp.quality.measured import Distortion
from sqlkrp.quality.measuring import families_of
from sqlkrp.sql.names import TableName
from sqlkrp.sql.options import Options, with_options
from sqlkrp.sql.statement import Statement
from sqlkrp.urls import File, as_file, as_named
from sqlkrp.verification import Verification

__all__ = ["Database", "Run"]


@dataclass(frozen=True, repr=False)
class Run(Shown):
    """What a run did."""

    statement: Statement
    rows: int | None
    """Rows written; None for a view, which has none of its own."""
    digest: str
    """That of the map or model."""
    better: str | None = None
    """What kind of file would have been quicker, if a large one was written; None if none would."""
    replaced: int = 0
    """Rows of a table that were there, and gave their places to some of these."""

    def _facts(self) -> dict[str, Any]:
        better = {} if self.better is None else {"better": self.better}
        replaced = {"replaced": self.replaced} if self.replaced else {}
        return {"rows": self.rows, **replaced, **self.statement._facts(), **better}


class Database(Shown):
    """A database that computes features where the data lives."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept = ExitStack()

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
        upsert: bool = False,
        key: str | Iterable[str] = (),
        limit: int | None = None,
        format: str | None = None,
        partition_by: Iterable[str] = (),
    ) -> Run:
        """Create a table (or view) of features: in one transaction, whole or not at all.

        ``append=True`` adds rows to a table that the same map made (or makes it). With a ``key``,
        the column (or several) that tells rows apart, it adds those whose key is not there yet, and
        ``upsert=True`` also replaces those whose key is. The key is handed on, kept or not. With a
        ``limit`` only so many rows of the source are read.

        On an engine without transactions what was made is dropped if a later step fails, an old
        table is dropped when the new one is whole, and what others write meanwhile may be in the
        table, also rows with a key that is appended.

        Spark has two more: ``format`` is how the table is kept (``parquet`` unless it is given),
        and ``partition_by`` names kept columns to part it by.
        """
        require_fitted("fitted", fitted)
        Switch().require("view", view)
        _require_limit(limit)
        session = self._session
        storage = storage_in(session, replace, append, format, partition_by, upsert, key)
        if view:
            require_view(session, options, storage)
        options = with_key(options, storage)
        with session.transaction(grows=into if storage.grows else None):
            data = read_input(session, table, options)
            told = _told(fitted, options)
            sources = [data.table, options.rows]
            target = target_in(session, into, storage, sources, told, view=view)
            chosen = chosen_rows(session, data, target, limit)
            query, data = query_of(
                session, fitted, chosen, options, run_now=not view, any_rows=limit is not None
            )
            require_kept(storage.partition_by, query.options.keep)
            statement = written(session, query)
            require_room(session, statement, query, view=view)
            # After the statement is written, so that one that is too large fails fast.
            check_values(session, query.program, data)
            target = changed(
                target,
                columns=columns_of(statement, query, data),
                reads_at_most=lambda most: query.count(most) is not None,
            )
            count, old = made(session, target, statement, chosen, view=view)
        return Run(statement, count, fitted.digest_, replaced=old)

    @with_options("form", "stage", "output", "plan", "keep")
    def macro(
        self,
        fitted: Fitted,
        into: TableName,
        *,
        options: Options,
        replace: bool = False,
        outputs: Iterable[str] | None = None,
        threshold: float | None = None,
        as_: str = "auto",
        prefix: str = "",
    ) -> Run:
        """Create a table macro, which any client calls with a table: ``FROM churn_features('t')``.

        It is of DuckDB only. What it is called with is read when it is called, and has the columns
        of the map or model, and those to keep. ``outputs``, ``threshold``, ``as_`` and ``prefix``
        are of a model, as :meth:`score` has them.
        """
        require_fitted("fitted", fitted)
        Switch().require("replace", replace)
        self._require("macros", "create a view (view=True)")
        fitted = _as_asked(fitted, outputs, threshold, as_, prefix)
        with self._session.transaction():
            told = _told(fitted, options)
            statement = macro_made(self._session, fitted, into, options, told, replace=replace)
        return Run(statement, None, fitted.digest_)

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
        limit: int | None = None,
        format: str | None = None,
        partition_by: Iterable[str] = (),
    ) -> Run:
        """Stream the features to a .csv, .csv.gz or .parquet file (``-``: CSV to standard output).

        The file appears when it is whole; an existing one is replaced only on request. With a
        ``limit`` only so many rows of the source are read. Spark writes a folder of files, and has
        ``append``, ``format`` and ``partition_by``, as :meth:`create`.
        """
        require_fitted("fitted", fitted)
        _require_limit(limit)
        storage = storage_in(self._session, replace, append, format, partition_by, in_files=True)
        named = table.data.table if isinstance(table, TableSource) else as_named(table)
        for source in (named, options.rows, *self._session.files()):
            if isinstance(source, File):
                require_other_file(as_file(path), source)
        # One transaction, so that what is checked is what is written.
        with (
            self._session.destination(path, storage) as write_to,
            self._session.transaction(keep=False),
        ):
            data = few_rows(self._session, read_input(self._session, table, options), limit)
            query, data = query_of(
                self._session, fitted, data, options, run_now=True, any_rows=limit is not None
            )
            if query.options.output == "auto":  # a model's is columns already
                output = self._session.output_of(path, storage)
                query = with_output(query, output)
            require_kept(storage.partition_by, query.options.keep)
            statement = written(self._session, query)
            check_values(self._session, query.program, data)
            with self._session.holding(statement):
                columns = columns_of(statement, query, data)
                count = write_to(statement.text, columns)
        better = self._session.better_file(path, columns, count)
        return Run(statement, count, fitted.digest_, better)

    @with_options("form", "plan", "keep", "long", "rows", "how")
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
        append: bool = False,
        upsert: bool = False,
        key: str | Iterable[str] = (),
        limit: int | None = None,
    ) -> Run:
        """Score rows with a model: a table or view of what it says of each, or a file.

        Give the ``table`` that has the model's columns, or a table of its map's ``features``
        (which, of rank-one projections, ``holds`` features, their signs as bits, or the sketches
        whose signs were trained on); and a name to go ``into``, or the ``path`` of a file (as
        :meth:`create` and :meth:`export` have them; ``append``, ``upsert``, ``key`` and ``limit``,
        too). ``outputs`` and ``threshold`` are as
        :func:`sqlkrp.model` has them. ``as_`` chooses how a score is computed: by the map's
        ``features``, as the ``polynomial`` in the columns that it is with many maps, or ``auto``:
        what has fewer operations. What the names of the new columns begin with is the ``prefix``,
        for where a kept column is called ``label``.
        """
        from sqlkrp.models import scoring

        fitted, source = scoring(model, table, features, outputs, threshold, as_, prefix, holds)
        names = ("form", "plan", "keep", "long", "rows", "how")
        chosen = {name: getattr(options, name) for name in names}
        if (into is None) == (path is None):
            raise ParameterError("scores go into a table or to a file: give into=NAME or path=FILE")
        chosen |= {"replace": replace, "append": append, "limit": limit}
        if into is not None:
            return self.create(fitted, source, into, view=view, upsert=upsert, key=key, **chosen)
        if view:
            raise ParameterError("a view is no file: give into=NAME, or leave out view")
        if upsert or named_key(key):
            raise ParameterError("upsert and key are for tables, and no files: give into=NAME")
        return self.export(fitted, source, path, **chosen)

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
            query, data = query_of(self._session, fitted, table, Options(), run_now=True)
            rows = check_values(self._session, query.program, data)
            columns = fitted.program.prepare.reads
            drawn = sample_of(self._session, query.relation, columns, sample, rows)
            return importance(self._session, query, fitted, drawn)

    @with_options("long", "rows")
    def shorten(
        self,
        model: Any,
        table: TableOrFile | TableSource,
        terms: int,
        *,
        options: Options,
        sample: int = 1000,
    ) -> Any:
        """The model of the strongest terms of one that is a polynomial, and its error on rows.

        As :meth:`Model.shortened`, with the error measured on a sample of the table's rows: the
        largest difference and the root mean square one, and the share of labels that change.
        """
        from sqlkrp.models.scoring import scoring

        Whole(1).require("sample", sample)
        whole = scoring(model, table, None, None, None)[0]
        short = whole.shortened(terms)
        with self._session.transaction(keep=False):
            query, data = query_of(self._session, whole, table, options, run_now=True)
            rows = check_values(self._session, query.program, data)
            _, inputs = inputs_of_sample(self._session, query, (), (), sample, rows)
        return short.compared_with(whole, inputs)

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
        query, _ = query_of(self._session, fitted, table, options, run_now=False)
        statement = written(self._session, query)
        self._kept.enter_context(self._session.holding(statement))
        return self._session.lazily(statement.text)

    def batches(
        self,
        fitted: Fitted,
        table: TableOrFile | TableSource,
        *,
        label: str | None = None,
        rows: int = 10_000,
    ) -> Iterator[tuple[Any, Any]]:
        """Features of some rows at a time, and their labels, for whoever learns as they come.

        ``for X, y in db.batches(krp, "t", label="y"): classifier.partial_fit(X, y, classes=...)``.
        Columns stream out of the database, and NumPy makes features of them here; no row is kept.
        The connection does nothing else until the last batch is taken. Without a ``label`` each y
        is None.
        """
        Whole(1).require("rows", rows)
        require_fitted("fitted", fitted)
        return batches_of_features(self._session, fitted, table, label, rows)

    def gram(self, fitted: Fitted, table: TableOrFile | TableSource, *, label: str) -> Any:
        """Sums of products of features, and with a label of numbers, over all rows that have one.

        Least squares need no more: ``sqlkrp.training.moments.solve(db.gram(krp, "t", label="y"),
        [1e-3])``.
        """
        from sqlkrp.training.moments import gram_of

        return gram_of(self.batches(fitted, table, label=label), label)

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
        require_measures(sample, tolerance)
        require_fitted("fitted", fitted)
        fitted = _as_asked(fitted, outputs, threshold, as_, prefix)
        wanted = (self._session, fitted, table, options, sample, tolerance)
        if result is None and not key:
            return verified(*wanted)
        return verified_as_stored(*wanted, result, key, all_said=outputs is None)

    def distortion(
        self,
        maps: Any,
        table: TableOrFile | TableSource,
        *,
        rows: int = 500,
        runs: int = 10,
        seed: int = 0,
        components: Iterable[int] = (),
    ) -> Distortion:
        """How far features are from the kernel that their map claims, on a sample of the rows.

        ``maps`` is one or several, which are measured on the same ``rows``, drawn by the ``seed``.
        All pairs of these are joined in the database, and only a summary is fetched: by how much
        squared distances are off, and inner products from the kernel. Of each map that is told of
        the map in hand, which is the first of the ``runs``, and of others that differ in nothing
        but the seed they are drawn with. With ``components`` it is told of other numbers of
        features, too.
        """
        asked = asked_of(rows, runs, seed, components)
        return distortion_in(self._session, families_of(maps), table, asked)

    def report(
        self,
        fitted: Fitted,
        table: TableOrFile | TableSource,
        *,
        label: str | None = None,
        map: Any = None,
        rows: int = 200,
        runs: int = 3,
        seed: int = 0,
        components: Iterable[int] = (),
        timed: bool = True,
        command: str | None = None,
    ) -> Any:
        """A page about a map or a model on a table, to be sent around: ``.save("report.html")``.

        It says how far distances are off on a sample of so many ``rows``, drawn by the ``seed``;
        for maps of other sizes and another pool, too, of which there are as many ``runs``, and for
        other numbers of features if you name these ``components``. Of a model it says how it was
        found, and what it says of the table: with a ``label`` how often rightly. ``map`` is the one
        whose features a model weighs. It says what the SQL costs, whether it equals NumPy,
        and what the columns hold beside what they held before. Only aggregates are fetched. Without
        ``timed`` it says no seconds, and is the same page each time. What the page says repeats it
        is the ``command``, or else this call.
        """
        from sqlkrp.report.making import report_in

        return report_in(
            self._session, fitted, table, label=label, map=map, rows=rows, runs=runs,
            seed=seed, components=components, timed=timed, command=command,
        )  # fmt: skip

    def _require(self, capability: str, instead: str) -> None:
        self._session.can.require(capability, self._session.dialect.name, instead)

    def close(self) -> None:
        """Drop what the library still holds in the connection; close it if it opened it."""
        self._kept.close()
        self._session.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _told(fitted: Fitted, options: Options) -> str:
    """What a table, view or macro says of the map or model that made it."""
    told = f"sqlkrp {fitted.kind} {fitted.digest_}"
    return told if options.stage == "features" else f"{told}, {options.stage}"


def _require_limit(limit: Any) -> None:
    if limit is not None:
        Whole(1, 2**63 - 1).require("limit", limit)


def _as_asked(
    fitted: Fitted,
    outputs: Iterable[str] | None,
    threshold: float | None,
    as_: str,
    prefix: str,
) -> Fitted:
    """A map as it is; a model as it is asked to be."""
    if (outputs, threshold, as_, prefix) == (None, None, "auto", ""):
        return fitted
    from sqlkrp.models import as_asked

    asked: Fitted = as_asked(fitted, outputs, threshold, as_, prefix)
    return asked
