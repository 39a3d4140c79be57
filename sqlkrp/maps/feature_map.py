"""What every feature map does once it is fitted: its SQL, its digest and its file."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sqlkrp.display import html_table
from sqlkrp.errors import ParameterError
from sqlkrp.files import csv_text, write_folder, write_whole
from sqlkrp.mapfile import Content, digest, dumps, require_map_or_empty
from sqlkrp.maps.allowed import Whole
from sqlkrp.maps.automatic import Taken
from sqlkrp.maps.base import Transformer
from sqlkrp.maps.columns import match_spelling
from sqlkrp.maps.parameters import plain, title_of
from sqlkrp.sql.dialects import dialect as facts_of
from sqlkrp.sql.facts import ITSELF
from sqlkrp.sql.names import TableName, quote, quote_table
from sqlkrp.sql.options import OF_TEXT, Options, name_list, with_options
from sqlkrp.sql.side_tables import Table, create_side_table, load_side_table
from sqlkrp.sql.statement import Preflight, Query, Statement, preflight, write
from sqlkrp.sql.tables import side_tables
from sqlkrp.stages import Program
from sqlkrp.version import __version__

__all__ = ["FeatureMap", "require_map"]

_OWN_FILES = re.compile(r"load\.sql|[0-9a-f]{12}_\w+\.(csv|parquet)")

SomeFeatureMap = TypeVar("SomeFeatureMap", bound="FeatureMap")


class FeatureMap(Transformer):
    """A feature map: fitted and used as scikit-learn has it, and with its SQL and its file."""

    _renamed: tuple[Program, Any] | None = None
    """The program whose columns are spelt in another way, and the map that it is of."""

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__():
            return html_table(title_of(self, self.get_params(deep=False)), {"fitted": False})
        prepare, names = self.program.prepare, self.program.names
        rows = {
            "features": _ends(names),
            "columns": _ends(prepare.columns),
            "left out": len(self.left_out_),
            "computed as": prepare.dtype,
            "seed": str(self.seed_),
            "digest": self.digest_[:12],
        }
        return html_table(self.title, rows)

    @property
    def digest_(self) -> str:
        """SHA-256 of the fitted map's content; it stands in its SQL, views and side tables."""
        program = self._original.program
        # A program is drawn once and never changed, so it can be asked once.
        if getattr(self, "_digest_of", None) is not program:
            self._digest, self._digest_of = digest(program), program
        return self._digest

    # --- SQL ----------------------------------------------------------------------------------

    @with_options(*OF_TEXT)
    def to_sql(self, table: TableName, *, options: Options, dialect: str = "duckdb") -> str:
        """The SELECT statement of this map's features, as text.

        ``table`` is written as SQL would write it, or a tuple of exact parts. In the ``tables``
        form the statement joins side tables that begin with the map's digest; :meth:`statement`
        has them.
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
        return preflight(self.query(quote("source_table", facts), options), facts)

    @with_options("form", "stage", "output", "plan")
    def to_spark_ml(
        self, *, options: Options, keep: Iterable[str] | None = None, name: str | None = None
    ) -> Any:
        """The map as a stage of a pipeline of ``pyspark.ml``: an SQLTransformer.

        ``keep`` names the columns that go on beside the features; all do if it is left out, as with
        Spark's own transformers. ``name`` is that of the column of an array or vector.
        ``output="vector"`` is what Spark's models read: no SQL makes it, so this is a PipelineModel
        of an SQLTransformer, a VectorAssembler and another one. All of them are Spark's own, so a
        saved pipeline needs no sqlkrp.
        """
        from sqlkrp.engines.spark_ml import INPUT, stage_of_pipeline

        options = replace(options, keep=tuple(name_list("keep", keep)))
        query = self.query(INPUT, options)
        query = replace(query, array_name=query.array_name if name is None else name)
        return stage_of_pipeline(query, keep_all=keep is None)

    def _write(self, table: TableName, options: Options, dialect: str) -> Statement:
        facts = facts_of(dialect)
        query = self.query(quote_table(table, facts), options)
        rows: Any = options.rows
        if rows is not None:
            query = replace(query, keys=quote_table(rows, facts))
        return write(query, facts)

    def select(self: SomeFeatureMap, components: Iterable[int]) -> SomeFeatureMap:
        """The map of some of the features only, such as those that a trained model weighs.

        They keep their names and values; columns and hyperplanes that they do not need are left
        out (so the bare projection numbers its hyperplanes anew). Their order is that of the map,
        and a number that is given twice counts once. It is a map of its own, with its own digest.

        >>> from sqlkrp.maps import KRP
        >>> krp = KRP(2, 100, random_state=0).fit(["a", "b", "c"])
        >>> krp.select([3, 7]).get_feature_names_out().tolist()
        ['krp_3', 'krp_7']
        """
        count = len(self.program.names)
        if self._original is not self:
            selected: SomeFeatureMap = self._original.select(components)
            return selected.renamed(self.program.prepare.columns)
        if not isinstance(components, Iterable):
            raise ParameterError(
                f"components={components!r} is not allowed: give a list of numbers"
            )
        chosen = sorted({Whole(0).require("a component", one) for one in components})
        if not chosen or chosen[-1] >= count:
            wrong = chosen[-1] if chosen else "none"
            raise ParameterError(f"component {wrong} is not allowed: name some of 0 to {count - 1}")
        return self._with_program(self.program.only(np.array(chosen)))

    def _with_program(self: SomeFeatureMap, program: Program) -> SomeFeatureMap:
        """A map of its own that has another program, and so another digest."""
        other = copy(self)
        other.program_, other._renamed = program, None
        return other

    def renamed(self: SomeFeatureMap, columns: Iterable[str]) -> SomeFeatureMap:
        """The map with its columns spelt as a table spells them: the same, or but for case.

        ``columns`` are the table's names. The SQL of the result reads them; its digest and its file
        are the map's own.
        """
        names = name_list("columns", columns)
        prepare = self.program.prepare
        spelt = match_spelling(prepare.columns, names)
        first = replace(
            prepare,
            columns=tuple(spelt[name] for name in prepare.columns),
            booleans=tuple(spelt[name] for name in prepare.booleans),
        )
        program = replace(self.program, stages=(first, *self.program.stages[1:]))
        other = self._with_program(program)
        other._renamed = program, self._original
        return other

    @property
    def _original(self: SomeFeatureMap) -> SomeFeatureMap:
        """The map whose columns are spelt in another way here; itself, where none are."""
        if self._renamed is None or self._renamed[0] is not self.program:
            return self  # also where it was fitted again since
        original: SomeFeatureMap = self._renamed[1]
        return original

    def query(self, relation: str, options: Options) -> Query:
        """A statement to write over ``relation``, which is SQL already."""
        return Query(
            program=self.program,
            digest=self.digest_,
            title=self.title,
            relation=relation,
            array_name=self.prefix,
            options=options,
            booleans=self.program.prepare.booleans,
        )

    @property
    def title(self) -> str:
        """The map in one line: its headline, and what is not at its default."""
        return title_of(self, self.parameters_)

    # --- files --------------------------------------------------------------------------------

    def content(self) -> Content:
        """What the map's file holds."""
        program = self._original.program  # which says what to do before fit
        return Content(
            map=type(self).__name__,
            parameters={name: plain(value) for name, value in self.parameters_.items()},
            seed=self.seed_,
            left_out=self.left_out_,
            label=self.label_,
            taken={name: asdict(taken) for name, taken in self.taken_.items()},
            program=program,
        )

    def restore(self, content: Content) -> None:
        """Become the fitted map of a file, with whose parameters this one was made."""
        self.check_parameters()
        self.program_ = content.program
        self.parameters_ = self.get_params(deep=False)
        self.seed_ = content.seed
        self.left_out_ = content.left_out
        self.label_ = content.label
        self.taken_ = {name: Taken(**taken) for name, taken in content.taken.items()}

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
        tables = dict(side_tables(self.program, self.digest_).values())
        target = Path(folder)
        with write_folder(target, _OWN_FILES, replace=replace) as part:
            for name, columns in tables.items():
                _write_side_table(part / f"{name}.{format}", columns)
            load = [
                f"{create_side_table(name, columns, facts)};\n"
                + load_side_table(name, columns, f"{name}.{format}", format, facts)
                for name, columns in tables.items()
            ]
            head = f"-- Side tables of sqlkrp map {self.digest_} for {dialect}.\n"
            # What stands in for an engine in the tests loads no files.
            if facts.executed == ITSELF:
                head += "-- Run this from inside its folder.\n"
            else:
                head += "-- Generated, and never executed there by sqlkrp's tests.\n"
            (part / "load.sql").write_text(head + "\n".join(load) + "\n", encoding="utf-8")
        return sorted(target.iterdir())


def _write_side_table(path: Path, columns: Table) -> None:
    if path.suffix == ".parquet":
        from sqlkrp.engines.duckdb import write_parquet

        write_parquet(path, columns)
    else:
        rows = zip(*(array.tolist() for array in columns.values()), strict=True)
        # Line ends as they are: text is translated on some systems.
        path.write_bytes(csv_text([list(columns), *rows]).encode())


def _ends(names: Sequence[str]) -> str:
    """How many names there are, and the first and the last of them."""
    return f"{len(names):,}: {' ... '.join(dict.fromkeys((names[0], names[-1])))}"


def require_map(name: str, value: Any) -> None:
    """Raise ParameterError unless this is a map; whether it is fitted, it says itself."""
    if not isinstance(value, FeatureMap):
        kind = type(value).__name__
        raise ParameterError(f"{name} is of type {kind}, not a map: give one, such as KRP(2, 100)")
