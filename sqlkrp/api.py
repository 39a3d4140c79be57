"""The public maps: a feature map of ``sqlkrp.maps`` that also writes SQL and files."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sqlkrp import maps
from sqlkrp.display import html_table
from sqlkrp.errors import MapFileError, ParameterError
from sqlkrp.files import write_folder, write_whole
from sqlkrp.mapfile import digest, dumps, loads
from sqlkrp.maps.base import match_spelling
from sqlkrp.sql.dialects import dialect as facts_of
from sqlkrp.sql.names import TableName, number, quote, quote_table
from sqlkrp.sql.packing import bit_names, signed_by_bits
from sqlkrp.sql.statement import Preflight, Query, Statement, preflight, write
from sqlkrp.sql.tables import create_side_table, load_side_table, read_long, side_tables
from sqlkrp.stages import Scale
from sqlkrp.version import __version__

__all__ = [
    "KGRP",
    "KRP",
    "MAPS",
    "MAP_NAMES",
    "PCA",
    "PRP",
    "SORF",
    "Chain",
    "ComplexKRP",
    "Ensemble",
    "ExplicitRP",
    "FeatureMap",
    "Nystroem",
    "RandomFourier",
    "RandomMaclaurin",
    "RandomProjection",
    "RankOneProjection",
    "SphericalRandomFeatures",
    "TensorSketch",
    "chain",
    "load",
]


_OWN_FILES = re.compile(r"load\.sql|[0-9a-f]{12}_\w+\.(csv|parquet)")

SomeFeatureMap = TypeVar("SomeFeatureMap", bound="FeatureMap")


class FeatureMap(maps.Map):
    """A map with its SQL, its digest and its file."""

    _named_from: Any = None
    """The map that this is with columns spelt in another way."""

    def fit(self: SomeFeatureMap, source: Any, y: Any = None, **options: Any) -> SomeFeatureMap:
        # A DuckDB relation aggregates where it is; it is known by its name, so that duckdb is
        # imported only for those who have it already.
        if type(source).__name__ == "DuckDBPyRelation":
            from sqlkrp.engines.duckdb import RelationSource

            source = RelationSource(source)
        return super().fit(source, y, **options)

    fit.__doc__ = maps.Map.fit.__doc__

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__():
            return html_table(_title(self, self.get_params(deep=False)), {"fitted": False})
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
        # A program is drawn once and never changed, so it can be asked once.
        if getattr(self, "_digest_of", None) is not self.program:
            self._digest, self._digest_of = digest(self.program), self.program
        return self._digest

    def to_sql(
        self,
        table: TableName,
        *,
        form: str = "auto",
        stage: str = "features",
        output: str = "columns",
        plan: str = "auto",
        keep: Iterable[str] = (),
        dialect: str = "duckdb",
        long: tuple[str, str, str] | None = None,
        rows: TableName | None = None,
    ) -> str:
        """The SELECT statement of this map's features, as text.

        ``table`` is written as SQL would write it, or a tuple of exact parts. ``keep`` names
        columns that come first, unchanged. ``stage="projection"`` stops at the bare <x, r>.
        ``output="array"`` gives one array column. ``plan`` forces how the sums of a ternary pool
        are computed in the wide form: ``"plain"``, ``"shared"`` or ``"butterflies"``.
        ``long=(row, feature, value)`` reads sparse input, and ``rows`` a table with one row for
        each row of the answer.

        In the ``tables`` form the statement joins side tables that begin with the map's digest;
        :meth:`statement` has them.
        """
        return self.statement(
            table,
            form=form,
            stage=stage,
            output=output,
            plan=plan,
            keep=keep,
            dialect=dialect,
            long=long,
            rows=rows,
        ).text

    def statement(
        self,
        table: TableName,
        *,
        form: str = "auto",
        stage: str = "features",
        output: str = "columns",
        plan: str = "auto",
        keep: Iterable[str] = (),
        dialect: str = "duckdb",
        long: tuple[str, str, str] | None = None,
        rows: TableName | None = None,
    ) -> Statement:
        """The same with what belongs to it: the form, the columns, and the side tables."""
        facts = facts_of(dialect)
        kept = tuple(dict.fromkeys(maps.name_list("keep", keep)))
        query = self.query(quote_table(table, facts), kept, form, stage, output, plan)
        if rows is not None and long is None:
            raise ParameterError("a table of rows belongs to (row, feature, value) input")
        if long is not None:
            keys = None if rows is None else quote_table(rows, facts)
            query = replace(query, long=read_long(long, keys))
        return write(query, facts)

    def preflight(
        self,
        *,
        form: str = "auto",
        stage: str = "features",
        output: str = "columns",
        plan: str = "auto",
        keep: Iterable[str] = (),
        dialect: str = "duckdb",
    ) -> Preflight:
        """The sizes of the statement and of a table of its rows, against the dialect's limits."""
        facts = facts_of(dialect)
        kept = tuple(dict.fromkeys(maps.name_list("keep", keep)))
        query = self.query(quote("source_table", facts), kept, form, stage, output, plan)
        return preflight(query, facts)

    def select(self: SomeFeatureMap, components: Iterable[int]) -> SomeFeatureMap:
        """The map of some of the features only, such as those that a trained model weighs.

        They keep their names and values; columns and hyperplanes that they do not need are left
        out (so the bare projection numbers its hyperplanes anew). It is a map of its own, with its
        own digest.

        >>> krp = KRP(2, 100, random_state=0).fit(["a", "b", "c"])
        >>> krp.select([3, 7]).get_feature_names_out().tolist()
        ['krp_3', 'krp_7']
        """
        count = len(self.program.names)
        if self._named_from is not None:
            whole: SomeFeatureMap = self._named_from.select(components)
            return whole.renamed(self.program.prepare.columns)
        chosen = sorted({maps.whole("a component", one, at_least=0) for one in components})
        if not chosen or chosen[-1] >= count:
            wrong = chosen[-1] if chosen else "none"
            raise ParameterError(f"component {wrong} is not allowed: name some of 0 to {count - 1}")
        other = copy(self)
        other.program_ = self.program.only(np.array(chosen))
        return other

    def renamed(self: SomeFeatureMap, columns: Iterable[str]) -> SomeFeatureMap:
        """The map with its columns spelt as a table spells them: the same, or but for case.

        ``columns`` are the table's names. The SQL of the result reads them; its digest is the
        map's own.
        """
        names = maps.name_list("columns", columns)
        prepare = self.program.prepare
        spelt = match_spelling(prepare.columns, names)
        other = copy(self)
        stages = (
            replace(
                prepare,
                columns=tuple(spelt[name] for name in prepare.columns),
                booleans=tuple(spelt[name] for name in prepare.booleans),
            ),
            *self.program.stages[1:],
        )
        other.program_ = replace(self.program, stages=stages)
        other._digest, other._digest_of = self.digest_, other.program_
        other._named_from = self
        return other

    def query(
        self,
        relation: str,
        keep: tuple[str, ...],
        form: str,
        stage: str,
        output: str,
        plan: str = "auto",
    ) -> Query:
        """A statement to write over ``relation``, which is SQL already."""
        return Query(
            program=self.program,
            digest=self.digest_,
            title=self.title,
            relation=relation,
            array_name=self.prefix,
            keep=keep,
            form=form,
            stage=stage,
            output=output,
            plan=plan,
        )

    @property
    def title(self) -> str:
        """The map in one line: its headline, and what is not at its default."""
        return _title(self, self.parameters_)

    def save(self, path: str | os.PathLike[str], *, replace: bool = True) -> None:
        """Write the map file, whole or not at all; by default in place of one that is there."""
        with self.saving(path, replace=replace):
            pass

    @contextlib.contextmanager
    def saving(self, path: str | os.PathLike[str], *, replace: bool = True) -> Iterator[None]:
        """The same, when a block ends well: a map and what is made with it appear together."""
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
        from sqlkrp.engines.duckdb import write_tables

        facts = facts_of(dialect)
        if format not in facts.load_file:
            allowed = " or ".join(map(repr, facts.load_file))
            raise ParameterError(f"format={format!r} is not one {dialect} loads: use {allowed}")
        tables = dict(side_tables(self.program, self.digest_).values())
        target = Path(folder)
        with write_folder(target, _OWN_FILES, replace=replace) as part:
            write_tables(tables, part, f".{format}")
            load = [
                f"{create_side_table(name, columns, facts)};\n"
                + load_side_table(name, columns, f"{name}.{format}", format, facts)
                for name, columns in tables.items()
            ]
            head = f"-- Side tables of sqlkrp map {self.digest_} for {dialect}.\n"
            if facts.executed:
                head += "-- Run this from inside its folder.\n"
            else:
                head += "-- Generated, and never executed there by sqlkrp's tests.\n"
            (part / "load.sql").write_text(head + "\n".join(load) + "\n", encoding="utf-8")
        return sorted(target.iterdir())


def _ends(names: Sequence[str]) -> str:
    """How many names there are, and the first and the last of them."""
    return f"{len(names):,}: {' ... '.join(dict.fromkeys((names[0], names[-1])))}"


def _title(one: maps.Map, parameters: Mapping[str, Any]) -> str:
    """A map in one line; those that it is made of too."""
    defaults = one.default_params()
    given = [
        f"{name}={_told(value)}"
        for name, value in parameters.items()
        if name in one.headline or name not in defaults or value != defaults[name]
    ]
    return f"{type(one).__name__}({', '.join(given)})"


def _told(value: Any) -> str:
    if isinstance(value, maps.Map):
        return _title(value, value.get_params(deep=False))
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_told, value))}]"
    return repr(value)


class KRP(FeatureMap, maps.KRP):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.KRP.__doc__


class RandomProjection(FeatureMap, maps.RandomProjection):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.RandomProjection.__doc__


class ExplicitRP(FeatureMap, maps.ExplicitRP):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.ExplicitRP.__doc__


class PRP(FeatureMap, maps.PRP):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.PRP.__doc__


class KGRP(FeatureMap, maps.KGRP):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.KGRP.__doc__


class Nystroem(FeatureMap, maps.Nystroem):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.Nystroem.__doc__


class RandomFourier(FeatureMap, maps.RandomFourier):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.RandomFourier.__doc__


class SORF(FeatureMap, maps.SORF):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.SORF.__doc__


class SphericalRandomFeatures(FeatureMap, maps.SphericalRandomFeatures):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.SphericalRandomFeatures.__doc__


class RandomMaclaurin(FeatureMap, maps.RandomMaclaurin):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.RandomMaclaurin.__doc__


class TensorSketch(FeatureMap, maps.TensorSketch):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.TensorSketch.__doc__


class RankOneProjection(FeatureMap, maps.RankOneProjection):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.RankOneProjection.__doc__

    def score_sql(
        self,
        full: TableName,
        signs: TableName,
        *,
        keys: tuple[str, str],
        dialect: str = "duckdb",
    ) -> str:
        """The SELECT that scores each row of full features against each of packed signs.

        ``full`` is a table of a map's features and ``signs`` one of the same map's with
        ``binary=True`` and ``output="bits"``, drawn with the same seed; ``keys`` are the columns
        that name their rows. The score of x and y is pi / (2 sqrt(m)) <f(x), sign B(y)>, which
        estimates <x, y>^2 / |y|^2. Either table may hold the queries, and the other what is
        searched.
        """
        facts = facts_of(dialect)
        names, last = self.program.names, self.program.stages[-1]
        if not isinstance(last, Scale):
            raise ParameterError("score_sql is of a map with binary=False: its numbers are scored")
        if not (isinstance(keys, (tuple, list)) and len(keys) == 2):
            raise ParameterError(f"keys={keys!r} is not allowed: name the two tables' columns")
        one, other = (quote(key, facts) for key in keys)
        values = [f"numbers.{quote(name, facts)}" for name in names]
        bits = [f"bits.{quote(name, facts)}" for name in bit_names(self.prefix, len(names))]
        scale = number(math.pi / (4 * len(names) * last.constant), "float64", facts)
        return (
            f"SELECT\n  numbers.{one} AS full_key,\n  bits.{other} AS signs_key,\n"
            f"  ({signed_by_bits(values, bits, facts)}) * {scale} AS score\n"
            f"FROM {quote_table(full, facts)} AS numbers\n"
            f"CROSS JOIN {quote_table(signs, facts)} AS bits"
        )


class PCA(FeatureMap, maps.PCA):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.PCA.__doc__


class ComplexKRP(FeatureMap, maps.ComplexKRP):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.ComplexKRP.__doc__


class Ensemble(FeatureMap, maps.Ensemble):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.Ensemble.__doc__


class Chain(FeatureMap, maps.Chain):  # noqa: D101 - its documentation is the map's
    __doc__ = maps.Chain.__doc__


def chain(*parts: maps.Map, random_state: int | None = None) -> Chain:
    """Maps one after another, as one map: ``chain(PCA(50), KRP(3))``."""
    return Chain(parts, random_state=random_state)


#: Every public map by the name that map files use.
MAPS: dict[str, type[FeatureMap]] = {
    one.__name__: one
    for one in (
        KRP,
        RandomProjection,
        ExplicitRP,
        PRP,
        KGRP,
        Nystroem,
        RandomFourier,
        SORF,
        SphericalRandomFeatures,
        RandomMaclaurin,
        TensorSketch,
        RankOneProjection,
        PCA,
        ComplexKRP,
        Ensemble,
        Chain,
    )
}


#: The maps that the command line draws, by the names that it has for them.
MAP_NAMES: dict[str, type[FeatureMap]] = {
    "krp": KRP,
    "complex-krp": ComplexKRP,
    "random-projection": RandomProjection,
    "explicit-rp": ExplicitRP,
    "prp": PRP,
    "random-maclaurin": RandomMaclaurin,
    "tensor-sketch": TensorSketch,
    "rank-one": RankOneProjection,
    "random-fourier": RandomFourier,
    "sorf": SORF,
    "spherical": SphericalRandomFeatures,
    "nystroem": Nystroem,
    "kgrp": KGRP,
    "pca": PCA,
}


def load(path: str | os.PathLike[str]) -> FeatureMap:
    """Read a map file; an error says what is wrong with one that is damaged or was edited."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as bad:
        reason = getattr(bad, "strerror", None) or "not text"
        raise MapFileError(
            f"cannot read the map {str(path)!r} ({reason}): give a file written by sqlkrp draw"
        ) from bad
    return loads(text, MAPS, repr(str(path)))
