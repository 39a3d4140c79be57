"""What is fitted: a row program over the columns of a table, with its SQL, digest and file."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import ColumnError, FitWarning, ParameterError, not_fitted
from sqlkrp.files import csv_text, write_folder, write_whole
from sqlkrp.mapfile import Content, digest, dumps, require_map_or_empty
from sqlkrp.maps.advice import counted, warn_user
from sqlkrp.maps.automatic import Taken
from sqlkrp.maps.columns import match_columns, match_spelling, require_order
from sqlkrp.maps.frames import (
    ARRAY,
    RESHAPE,
    has_order,
    in_slabs,
    is_table,
    local,
    names_of,
    to_array,
    to_floats,
)
from sqlkrp.maps.reading import what_becomes
from sqlkrp.sql.dialects import dialect as facts_of
from sqlkrp.sql.encoding import encoded_relation
from sqlkrp.sql.facts import ITSELF, Dialect
from sqlkrp.sql.jinja import is_reference, mark, templated
from sqlkrp.sql.names import TableName, quote, quote_table
from sqlkrp.sql.options import OF_TEXT, Options, name_list, with_options
from sqlkrp.sql.side_tables import Table, create_side_table, load_side_table
from sqlkrp.sql.statement import Preflight, Query, Statement, preflight, write
from sqlkrp.sql.tables import side_tables
from sqlkrp.stages import Category, Program, encoded
from sqlkrp.version import __version__

__all__ = ["Fitted", "require_fitted"]

# Numbers that the twin reads as they are.
_PRECISIONS = (np.float32, np.float64)
_OWN_FILES = re.compile(r"load\.sql|[0-9a-f]{12}_\w+\.(csv|parquet)")

SomeFitted = TypeVar("SomeFitted", bound="Fitted")


class Fitted:
    """What is fitted to the columns of a table: a row program, with its SQL, digest and file."""

    kind = "map"
    """What it is called."""
    prefix: str = "feature"
    """What the names of its outputs begin with."""
    program_: Program
    parameters_: dict[str, Any]
    """The parameters that the program was drawn with; later ``set_params`` do not change them."""
    seed_: int
    left_out_: dict[str, str]
    taken_: dict[str, Taken]
    """What was taken for parameters that are ``"auto"``."""
    label_: str | None
    """The column that the features are to predict: none of them, and kept beside them."""
    training: Any = None
    """How it was found by :func:`sqlkrp.train`, by name; None of what was not."""
    _order: tuple[str, ...] | None = None
    """The columns that a DataFrame is to have, in order; none of an array; None: in any order."""
    _renamed: tuple[Program, Any] | None = None
    """The program whose columns are spelt in another way, and what it is of."""

    @property
    def title(self) -> str:
        """What it is, in one line."""
        raise NotImplementedError

    @property
    def description(self) -> str:
        """What it is, with all its parameters."""
        raise NotImplementedError

    @property
    def outputs(self) -> tuple[str, str]:
        """What comes out of it: what that is called, and what there is of it."""
        raise NotImplementedError

    @property
    def alternative(self) -> str | None:
        """A map that would do better with these parameters, and why."""
        return None

    @property
    def error(self) -> str | None:
        """What it says is off by, where it leaves something out on purpose."""
        return None

    @property
    def legend(self) -> dict[str, dict[str, int]]:
        """What numbered outputs stand for, where others are named by it: columns to powers."""
        return {}

    def content(self) -> Content:
        """What its file holds."""
        raise NotImplementedError

    @property
    def program(self) -> Program:
        """The row program; an error that says what to do before ``fit``."""
        if not hasattr(self, "program_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self.program_

    def said_in(self: SomeFitted, columns: Collection[str], where: str) -> SomeFitted:
        """The same as far as a result of these columns says it; a map says all that it is."""
        return self

    @property
    def twin(self) -> Program:
        """What the SQL is held against, computed by NumPy."""
        return self.program

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The input columns' names, in order."""
        return np.array(self.program.prepare.reads, dtype=object)

    @property
    def columns_(self) -> dict[str, str]:
        """What becomes of each column: number, boolean, days, 16 indicators, label or left out."""
        return what_becomes(self.program.prepare, self.left_out_, self.label_)

    @property
    def n_features_in_(self) -> int:
        """How many input columns there are."""
        return len(self.program.prepare.reads)

    def computed(self, program: Program, X: Any) -> NDArray[Any]:
        """What a program of these columns makes of the rows of ``X``."""
        found = [program.apply(self.inputs(rows)) for rows in in_slabs(local(X))]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def inputs(self, X: Any) -> NDArray[Any]:
        """The input columns of ``X`` as one array, before Prepare."""
        X = local(X)
        return self._of_table(X) if is_table(X) else self._of_array(X)

    def _of_table(self, X: Any) -> NDArray[Any]:
        """The input columns of a table of named columns."""
        prepare = self.program.prepare
        spelt = self._columns_in(names_of(X), in_order=has_order(X))
        made = {one.name: _made(one, X[spelt[one.column]]) for one in prepare.categories}
        columns = (
            made[name] if name in made else to_floats(name, X[spelt[name]])
            for name in prepare.columns
        )
        return _beside(columns, len(prepare.columns), prepare.dtype)

    def _columns_in(self, names: list[str], *, in_order: bool) -> dict[str, str]:
        """What a table of these names calls each column that is read."""
        reads = self.program.prepare.reads
        if self._order and in_order:
            require_order(self._order, reads, names)
        elif self._order == () and in_order and not set(reads) <= set(names):
            self._require_as_many(len(names))
            warn_user(
                f"X has feature names, but {type(self).__name__} was fitted without feature names: "
                "its columns are read by their places",
                FitWarning,
            )
            return dict(zip(reads, names, strict=True))
        else:  # of a database, or of a file: any others may be there
            match_columns(reads, names)
        return {name: name for name in reads}

    def _require_as_many(self, count: int) -> None:
        """Raise ColumnError unless these are as many columns as are read."""
        expected = len(self.program.prepare.reads)
        if count != expected:
            raise ColumnError(
                f"X has {count} features, but {type(self).__name__} is expecting {expected} "
                f"features as input: give the columns that the {self.kind} was fitted to, in that "
                "order"
            )

    def _of_array(self, X: Any) -> NDArray[Any]:
        """The input columns of a table without names."""
        prepare = self.program.prepare
        if not all(one.is_column for one in prepare.categories):
            raise ParameterError(
                "columns of categories are known by their names: give a DataFrame, or compute in "
                "the database"
            )
        table = None if hasattr(X, "columns") else to_array(X)
        if table is None or not table.ndim:
            raise ParameterError(
                f"transform computes in NumPy and was given a {type(X).__name__}: give a DataFrame "
                "or an array, or compute in the database with db.relation or db.create"
            )
        if table.ndim != 2:
            raise ColumnError(
                f"expected rows and columns, got {counted(table.ndim, 'dimension')}, "
                f"of {len(table)}. {RESHAPE}"
            )
        self._require_as_many(table.shape[1])
        if self._order:
            warn_user(
                f"X does not have valid feature names, but {type(self).__name__} was fitted with "
                "feature names: its columns are read by their places",
                FitWarning,
            )
        if table.dtype not in _PRECISIONS:
            table = to_floats(ARRAY, table)
        again = {one.name: one.column for one in prepare.categories}
        if not again:
            return table
        places = {name: place for place, name in enumerate(prepare.reads)}
        return table[:, [places[again.get(name, name)] for name in prepare.columns]]

    @property
    def digest_(self) -> str:
        """SHA-256 of the fitted map's content; it stands in its SQL, views and side tables."""
        program = self._truth
        # A program is drawn once and never changed, so it can be asked once.
        if getattr(self, "_digest_of", None) is not program:
            self._digest, self._digest_of = digest(program), program
        return self._digest

    # --- SQL ----------------------------------------------------------------------------------

    @with_options(*OF_TEXT)
    def to_sql(self, table: TableName, *, options: Options, dialect: str = "duckdb") -> str:
        """The SELECT statement of this map's features, as text.

        ``table`` is written as SQL would write it, or a tuple of exact parts; or as dbt names it,
        ``{{ ref('x') }}`` or ``{{ source('a', 'b') }}``, and the text is a model of dbt's. In the
        ``tables`` form the statement joins side tables that begin with the map's digest;
        :meth:`statement` has them.
        """
        return self._write(table, options, dialect).text

    @with_options(*OF_TEXT)
    def statement(
        self, table: TableName, *, options: Options, dialect: str = "duckdb"
    ) -> Statement:
        """The SELECT statement of this map's features, with its form, columns and side tables.

        ``table`` is written as SQL would write it, or a tuple of exact parts.
        """
        return self._write(table, options, dialect)

    @with_options("form", "stage", "output", "plan", "keep")
    def preflight(self, *, options: Options, dialect: str = "duckdb") -> Preflight:
        """The sizes of the statement and of a table of its rows, against the dialect's limits."""
        facts = facts_of(dialect)
        source = encoded_relation(quote("source_table", facts), self.program.prepare, facts)
        return preflight(self.query(source, options), facts)

    def _write(self, table: TableName, options: Options, dialect: str) -> Statement:
        facts, pieces = facts_of(dialect), {}

        def relation(name: str, of: Any) -> str:
            if not is_reference(of):
                return quote_table(of, facts)
            pieces[name] = of.strip()
            return mark(name)

        keys = None if options.rows is None else relation("rows", options.rows)
        statement = self.statement_over(relation("table", table), options, facts, keys)
        if not pieces:
            return statement
        return replace(statement, text=templated(statement.text, pieces))

    def statement_over(
        self, relation: str, options: Options, facts: Dialect, keys: str | None = None
    ) -> Statement:
        """The statement over a relation, which is SQL already; ``keys`` is the one of rows."""
        source = encoded_relation(relation, self.program.prepare, facts)
        return write(replace(self.query(source, options), keys=keys), facts)

    def _with_program(self: SomeFitted, program: Program) -> SomeFitted:
        """A map of its own that has another program, and so another digest."""
        other = copy(self)
        other.program_, other._renamed = program, None
        return other

    def renamed(self: SomeFitted, columns: Iterable[str]) -> SomeFitted:
        """The map with its columns spelt as a table spells them: the same, or but for case.

        ``columns`` are the table's names. The SQL of the result reads them; its digest and its file
        are the map's own.
        """
        names = name_list("columns", columns)
        prepare = self.program.prepare
        spelt = match_spelling(prepare.reads, names)
        first = replace(
            prepare,
            columns=tuple(spelt.get(name, name) for name in prepare.columns),
            booleans=tuple(spelt.get(name, name) for name in prepare.booleans),
            categories=tuple(one._replace(column=spelt[one.column]) for one in prepare.categories),
        )
        program = replace(self.program, stages=(first, *self.program.stages[1:]))
        other = self._with_program(program)
        other._renamed, other._order = (program, self._original), None
        return other

    @property
    def _original(self: SomeFitted) -> SomeFitted:
        """The map whose columns are spelt in another way here; itself, where none are."""
        if self._renamed is None or self._renamed[0] is not self.program:
            return self  # also where it was fitted again since
        original: SomeFitted = self._renamed[1]
        return original

    @property
    def token(self) -> str:
        """What else the names of its side tables have, if there is more than one way to it."""
        return ""

    @property
    def _truth(self) -> Program:
        """What its file holds, and its digest is of."""
        return self._original.program

    def query(self, relation: str, options: Options) -> Query:
        """A statement to write over ``relation``, which is SQL already."""
        return Query(
            program=self.program,
            digest=self.digest_,
            title=self.title,
            kind=self.kind,
            relation=relation,
            array_name=self.prefix,
            options=options,
            booleans=self.program.prepare.booleans,
            token=self.token,
        )

    def report(self, X: Any, **options: Any) -> Any:
        """A page about this on rows in memory, a table with names: ``.save("report.html")``.

        The options are those of :meth:`Database.report`, which has it of tables where they are.
        """
        from sqlkrp.report.making import report_of_frame

        return report_of_frame(self, X, **options)

    # --- files --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, replace: bool = True) -> None:
        """Write the map file, whole or not at all; by default in place of a map that is there.

        A file that is no map is never replaced.
        """
        with self.saving(path, replace=replace):
            pass

    @contextlib.contextmanager
    def saving(self, path: str | os.PathLike[str], *, replace: bool = True) -> Iterator[None]:
        """Write the map file at the end of a block that ends well, with what it makes."""
        if replace:
            require_map_or_empty(Path(path))
        with write_whole(Path(path), replace=replace) as part:
            part.write_text(dumps(self.content(), __version__), encoding="utf-8")
            yield

    def save_tables(
        self,
        folder: str | os.PathLike[str],
        *,
        format: str = "csv",
        dialect: str = "duckdb",
        replace: bool = False,
    ) -> list[Path]:
        """Write the side tables of the ``tables`` form into a new folder, with their DDL.

        ``load.sql`` there creates and fills the tables that the statements of
        ``to_sql(form="tables")`` join, when it is run from inside the folder.
        """
        facts = facts_of(dialect)
        if format not in facts.load_file:
            allowed = " or ".join(map(repr, facts.load_file))
            raise ParameterError(f"format={format!r} is not one {dialect} loads: use {allowed}")
        tables = dict(side_tables(self.program, self.digest_, self.token).values())
        target = Path(folder)
        with write_folder(target, _OWN_FILES, replace=replace) as part:
            for name, columns in tables.items():
                _write_side_table(part / f"{name}.{format}", columns)
            load = [
                f"{create_side_table(name, columns, facts)};\n"
                + load_side_table(name, columns, f"{name}.{format}", format, facts)
                for name, columns in tables.items()
            ]
            head = f"-- Side tables of sqlkrp {self.kind} {self.digest_} for {dialect}.\n"
            # What stands in for an engine in the tests loads no files.
            if facts.executed == ITSELF:
                head += "-- Run this from inside its folder.\n"
            else:
                head += "-- Generated, and never executed there by sqlkrp's tests.\n"
            (part / "load.sql").write_text(head + "\n".join(load) + "\n", encoding="utf-8")
        return sorted(target.iterdir())

    @with_options("form", "output", "plan")
    def to_dbt(
        self,
        folder: str | os.PathLike[str],
        *,
        name: str,
        source: str,
        key: str,
        options: Options,
        key_type: str | None = None,
        rows: Any = None,
        dialect: str = "duckdb",
        incremental: bool = False,
        project: bool = False,
        sqlmesh: bool = False,
        replace: bool = False,
    ) -> dict[Path, bool]:
        """Write a model of this ``name`` into a project of dbt, with a macro, a seed and a test.

        ``source`` is the table that is read: ``schema.table``, which is declared as a source, or
        what the project has already, as ``{{ source('a', 'b') }}`` or ``{{ ref('x') }}``. The
        ``key`` tells its rows apart; ``key_type`` is its type (that of the ``rows``, or BIGINT).
        The test holds 20 rows against NumPy's features: the first of ``rows``, a
        ``db.source(table)`` of the same table, or without them made-up ones. An ``incremental``
        model adds the rows whose keys are new, and stops where another map made the others.
        ``project`` writes what is around models, too: ``dbt_project.yml`` and a profile. With
        ``sqlmesh`` it is a model of SQLMesh, with audits. What is there is replaced on request, if
        it is sqlkrp's own. The paths of all files come back, each with whether it was written, or
        was there as it is.
        """
        from sqlkrp.projects import to_project

        return to_project(
            self, folder, name=name, source=source, key=key, options=options, key_type=key_type,
            rows=rows, dialect=dialect, incremental=incremental, project=project, sqlmesh=sqlmesh,
            replace=replace,
        )  # fmt: skip


def _made(category: Category, column: Any) -> Any:
    """The input that is made of a column."""
    if category.is_column:
        return to_floats(category.column, column)
    return encoded(category, _texts(category, column))


def _beside(columns: Iterable[NDArray[Any]], count: int, dtype: str) -> NDArray[Any]:
    """So many columns as one array of rows, in which each column is one piece of memory."""
    table = np.empty((count, 0), dtype=dtype)
    with np.errstate(over="ignore"):  # what is too large is a missing value, as everywhere
        for place, column in enumerate(columns):
            if not place:
                table = np.empty((count, len(column)), dtype=dtype)
            table[place] = column
    return table.T


def _texts(category: Category, column: Any) -> Any:
    """A column, if it may hold a category: texts, where that is one."""
    values = np.asarray(column)
    if isinstance(category.value, str) and values.dtype.kind in "iufb":
        raise ColumnError(
            f"column {category.column!r} is of type {values.dtype}, and the model was trained on "
            "categories that are texts: cast it"
        )
    return column


def _write_side_table(path: Path, columns: Table) -> None:
    if path.suffix == ".parquet":
        from sqlkrp.engines.duckdb import write_parquet

        write_parquet(path, columns)
    else:
        rows = zip(*(array.tolist() for array in columns.values()), strict=True)
        # Line ends as they are: text is translated on some systems.
        path.write_bytes(csv_text([list(columns), *rows]).encode())


def require_fitted(name: str, value: Any, kind: type[Fitted] = Fitted) -> None:
    """Raise ParameterError unless this is a map or a model; whether it is fitted, it says."""
    if not isinstance(value, kind):
        given = type(value).__name__
        raise ParameterError(f"{name} is of type {given}, not a map: give one, such as KRP(2, 100)")
