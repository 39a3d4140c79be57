"""How far features are from their kernel, computed where the rows are: only a summary is fetched.

A sample of rows becomes a temporary table, features of it become others, and pairs of rows are
joined: first to sums over their columns, then to what these differ by.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sqlkrp.engines.asking import query_of
from sqlkrp.engines.cells import binned_in
from sqlkrp.engines.checks import check_values
from sqlkrp.engines.inputs import Input
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.engines.sources import TableSource, read_input
from sqlkrp.errors import ParameterError
from sqlkrp.files import own_number
from sqlkrp.maps.fitted import Fitted
from sqlkrp.maps.source import NUMBER, Source, choose_rows
from sqlkrp.maps.variances import Pair
from sqlkrp.pools import generator
from sqlkrp.quality.asked import Asked, Family
from sqlkrp.quality.binned import Binned
from sqlkrp.quality.measured import ZERO, Distortion, Draw
from sqlkrp.quality.measuring import measured
from sqlkrp.sql.chain import free_name
from sqlkrp.sql.formulas import Formula
from sqlkrp.sql.names import quote
from sqlkrp.sql.options import Options
from sqlkrp.sql.pairs import (
    BLOCK,
    PAIR_COLUMNS,
    compared_pairs,
    items_as_columns,
    kernels_of_pairs,
    mean_deviation,
    pairs_by_arrays,
    pairs_by_columns,
    ranks_of_errors,
    summary_of_errors,
)
from sqlkrp.sql.statement import Query, write
from sqlkrp.stages import Linear, Program

__all__ = ["Bench", "Sample", "distortion_in", "sample_in"]

_DRAWING, _COMPUTING, _JOINING = (
    "drawing a sample of rows", "the features of the sample", "joining pairs of rows",
)  # fmt: skip
# Features of one statement that are columns of a table: what a page of Postgres holds.
_COLUMNS = 1000


def distortion_in(
    session: Session, families: Sequence[Family], table: TableOrFile | TableSource, asked: Asked
) -> Distortion:
    """Several maps on the same rows of a table."""
    maps = [family.map for family in families]
    with sample_in(session, maps, table, asked, "distortion") as sample:
        found = [measured(family, Bench(sample, family), asked) for family in families]
    return Distortion(sample.count, asked.seed, tuple(found))


@contextlib.contextmanager
def sample_in(
    session: Session,
    several: Sequence[Fitted],
    table: TableOrFile | TableSource,
    asked: Asked,
    what: str,
) -> Iterator[Sample]:
    """Rows of a table for maps or models that read it, in a transaction that leaves nothing."""
    session.can.require("temporary_tables", session.dialect.name, "take sqlkrp.distortion in NumPy")
    with session.transaction(keep=False), contextlib.ExitStack() as drops:
        data = read_input(session, table, _options_of(table))
        if data.long is not None:
            raise ParameterError(
                f"{what} is of rows with one column a feature, and this is (row, feature, "
                "value) input: give such a table"
            )
        for one in several:
            query, own = query_of(session, one, data, Options(), run_now=True)
            check_values(session, query.program, own)
        yield Sample(session, data, several, asked, drops)


def _options_of(table: TableOrFile | TableSource) -> Options:
    """That a source is of sparse input is told with what was seen of it."""
    long = table.data.long if isinstance(table, TableSource) else None
    return Options() if long is None else Options(long=(long.row, long.feature, long.value))


class Sample:
    """Rows of a table, which stay the same, numbered in a temporary table."""

    def __init__(
        self,
        session: Session,
        data: Input,
        several: Sequence[Fitted],
        asked: Asked,
        drops: contextlib.ExitStack,
    ) -> None:
        self.session, self.whole, self._numbers = session, data, itertools.count(1)
        self.drops = drops
        self._prefix = f"sqlkrp_{own_number().replace('-', '_')}"
        reads = (one.program.prepare.reads for one in several)
        columns = list(dict.fromkeys(itertools.chain.from_iterable(reads)))
        self.place = free_name("place", columns)
        name = self.named("sample", drops)
        ((n_rows,),) = session.rows(f"SELECT COUNT(*) FROM {data.relation} AS every", _DRAWING)
        self.n_rows = int(n_rows)
        self.count = min(self.n_rows, asked.rows)
        session.create_temporary(name, self._select(columns, asked), _DRAWING)
        session.restore_names(("temp", name), [self.place, *columns], view=False)
        known = {one: data.types[one] for one in columns}
        self.data = replace(
            data,
            relation=quote(name, session.dialect),
            types={**known, self.place: session.dialect.whole_type},
            kinds={**{one: data.kinds[one] for one in columns}, self.place: NUMBER},
        )

    def _select(self, columns: Sequence[str], asked: Asked) -> str:
        """Rows by their numbers, which the seed draws."""
        dialect = self.session.dialect
        names = [quote(name, dialect) for name in columns]
        numbering = dialect.numbering.format(everything=", ".join(names))
        places = choose_rows(self.n_rows, asked.rows, generator(asked.seed)) + 1
        listed = ", ".join([self.place, *names])
        chosen = ", ".join(map(str, places.tolist())) or "0"
        return (
            f"SELECT {listed} FROM (SELECT {numbering} AS {self.place}, {', '.join(names)} "
            f"FROM {self.whole.relation} AS every) AS numbered WHERE {self.place} IN ({chosen})"
        )

    def source_of(self, family: Family) -> TableSource:
        """The whole table, to draw a map from."""
        prepare = family.map.program.prepare
        return TableSource(self.session, self.whole.encoded(prepare, self.session.dialect))

    def named(self, what: str, drops: contextlib.ExitStack) -> str:
        """The name of a temporary table that is dropped at the end of a block."""
        name = f"{self._prefix}_{next(self._numbers)}_{what}"
        drops.callback(self.session.drop_temporary, name)
        return name


class Bench:
    """The rows of a sample with one map's kernel of each pair, as temporary tables."""

    def __init__(self, sample: Sample, family: Family) -> None:
        self._sample, self._session = sample, sample.session
        self._kernel, self._variance = family.kernel, family.last.distance_variance
        self.source: Source = sample.source_of(family)
        options = Options(keep=(sample.place,))
        query, _ = query_of(self._session, family.map, sample.data, options, run_now=True)
        # Of the label the sample knows nothing, unless another map reads it.
        query = replace(query, options=options, count=self._count)
        self._query = query
        self._exact = self._pairs_of_kernel(family, sample.drops)

    def _count(self, most: int) -> int | None:
        return self._sample.count if self._sample.count <= most else None

    def _pairs_of_kernel(self, family: Family, drops: contextlib.ExitStack) -> str:
        """(i, j, v, k) of all pairs."""
        dialect = self._session.dialect
        with contextlib.ExitStack() as soon:
            sums = self._pair_sums(family.before, self._kernel.of, soon)
            query = Query(
                self._kernel.program, "", "kernel", sums, "k",
                Options(form="wide", output="columns", keep=("i", "j", "v")),
            )  # fmt: skip
            text = write(query, dialect).text
            select = f"SELECT i, j, v, k FROM (\n{text}\n) AS kernels WHERE k IS NOT NULL"
            return self._created("kernel", select, _JOINING, drops)

    def deviation(self) -> float | None:
        dialect = self._session.dialect
        found = self._variance(Pair(*(Formula(name, dialect) for name in PAIR_COLUMNS)))
        if found is None:
            return None
        select = mean_deviation(self._exact, found.text, ZERO, dialect)
        ((mean,),) = self._session.rows(select, _JOINING)
        return float(mean)

    def draw(self, seed: int, program: Program) -> Draw:
        with contextlib.ExitStack() as soon:
            compared = self._compared(program, soon)
            (sums,) = self._session.rows(summary_of_errors(compared), _JOINING)
            return Draw.of(
                seed,
                sums,
                lambda ranks: self._at(compared, ranks),
                is_centred=self._kernel.is_centred,
            )

    def binned(self, program: Program, across: int) -> Binned | None:
        """The kernel of pairs of different rows, and what features estimate it to be."""
        with contextlib.ExitStack() as soon:
            pairs = kernels_of_pairs(self._compared(program, soon))
            return binned_in(self._session, pairs, across, _JOINING)

    def _compared(self, program: Program, drops: contextlib.ExitStack) -> str:
        """A table of all pairs, with what estimates of features differ by."""
        with contextlib.ExitStack() as soon:
            estimated = self._pair_sums(program, "products", soon)
            select = compared_pairs(estimated, self._exact, ZERO, self._session.dialect)
            return self._created("compared", select, _JOINING, drops)

    def _at(self, compared: str, ranks: Sequence[int]) -> dict[int, float]:
        rows = self._session.rows(ranks_of_errors(compared, ranks), _JOINING)
        return {int(rank): float(error) for rank, error in rows}

    def _pair_sums(self, program: Program, of: str, drops: contextlib.ExitStack) -> str:
        """A table (i, j, v) of sums over the outputs of a program of the sample."""
        way = self._by_arrays if self._session.dialect.pair_sums else self._by_columns
        with contextlib.ExitStack() as soon:
            return self._created("pairs", way(program, of, soon), _JOINING, drops)

    def _by_arrays(self, program: Program, of: str, drops: contextlib.ExitStack) -> str:
        dialect, place = self._session.dialect, quote(self._sample.place, self._session.dialect)
        array = quote(self._query.array_name, dialect)
        double = dialect.float_types["float64"]
        items = dialect.typed_array(array, double, len(program.names))
        table = self._computed(program, "array", drops)
        select = f"SELECT {place} AS i, {items} AS a FROM {table}"
        return pairs_by_arrays(self._created("arrays", select, _COMPUTING, drops), of, dialect)

    def _by_columns(self, program: Program, of: str, drops: contextlib.ExitStack) -> str:
        dialect, place = self._session.dialect, quote(self._sample.place, self._session.dialect)
        blocks = []
        for start in range(0, len(program.names), _COLUMNS):
            width = min(_COLUMNS, len(program.names) - start)
            part = _part(program, start, width)
            names = [quote(name, dialect) for name in part.names]
            with contextlib.ExitStack() as soon:
                table = self._computed(part, "columns", soon)
                for first in range(0, width, BLOCK):
                    some = names[first : first + BLOCK]
                    select = items_as_columns(some, place, table, dialect)
                    blocks.append((self._created("block", select, _COMPUTING, drops), len(some)))
        return pairs_by_columns(blocks, of)

    def _computed(self, program: Program, output: str, drops: contextlib.ExitStack) -> str:
        """The outputs of a program of the sample, as a table."""
        options = replace(self._query.options, output=output)
        query = replace(self._query, program=program, options=options)
        statement = write(query, self._session.dialect)
        with self._session.holding(statement):
            # As it stands: inside another one, SQLite would compute what it names again and again.
            return self._created("features", statement.text, _COMPUTING, drops)

    def _created(self, what: str, select: str, doing: str, drops: contextlib.ExitStack) -> str:
        name = self._sample.named(what, drops)
        self._session.create_temporary(name, select, doing)
        return quote(name, self._session.dialect)


def _part(program: Program, start: int, width: int) -> Program:
    """Some outputs of a program, and nothing that they do not need."""
    places = np.arange(start, start + width)
    stages = (*program.stages, Linear.picked(len(program.names), places))
    return Program(stages, program.names[start : start + width]).only()
