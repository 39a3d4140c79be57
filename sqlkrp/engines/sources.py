"""A table of an engine as something a map can be fitted to, and its features be computed from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sqlkrp.engines.inputs import Input, look_at, spoken
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.engines.statistics import statistics_of, values_of
from sqlkrp.engines.texts import dates_in, texts_in
from sqlkrp.errors import MissingValueError, ParameterError
from sqlkrp.maps.columns import match_columns
from sqlkrp.maps.source import Statistics, choose_rows
from sqlkrp.sql.job import LongInput
from sqlkrp.sql.names import number, quote
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Query, write
from sqlkrp.stages import Category, Prepare, Program
from sqlkrp.urls import File

__all__ = ["TableSource", "read_input"]

# Aggregates in one statement: what is planned grows with them.
_MEANS_AT_ONCE = 1500

_MISSING = (
    "missing values (NULL, NaN or infinite) in the columns that the map is fitted to: draw it with "
    "nulls='zero', 'mean' or 'propagate', or clean the table"
)
_NEEDS_COLUMNS = (
    "this map is fitted to rows with one column a feature, and was given (row, feature, value) "
    "input: give such a table"
)


def read_input(
    session: Session, table: TableOrFile | TableSource | Input, options: Options
) -> Input:
    """Look at a table (or file): its columns, not its rows. A source was looked at already."""
    if isinstance(table, Input):
        return table
    if isinstance(table, TableSource):
        data = table.seen_by(session, options)
    else:
        data = look_at(session, table, options.long)
    if options.rows is None:
        return data
    assert options.long is not None
    name = spoken(options.rows)
    keys, key_types = session.look(options.rows, name)
    match_columns([options.long[0]], key_types, where=name)
    return replace(data, long=LongInput(*options.long, keys), key_types=key_types)


class TableSource:
    """A relation of an engine as something a map can be fitted to."""

    has_values = True

    def __init__(self, session: Session, data: Input) -> None:
        self.session = session
        self.data = data
        self.is_sparse = data.long is not None
        self.no_rows = "" if data.long is None else _NEEDS_COLUMNS

    # Both are looked up for a fit, and by nobody else.

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Every column's kind, in order; of sparse input every feature's."""
        return self._long_kinds(self.data.long) if self.data.long else dict(self.data.kinds)

    @cached_property
    def keys(self) -> Collection[str]:
        """The table's primary key."""
        table = self.data.table
        if self.data.long is not None or isinstance(table, File):
            return ()
        return self.session.primary_key(table)

    def seen_by(self, session: Session, options: Options) -> Input:
        """What was seen, for another use of the same source; an error if it is not the same."""
        if session is not self.session:
            raise ParameterError(
                f"{self.data.name} is a source of another database: make one by this one's source()"
            )
        long = self.data.long
        if options.long != (long and (long.row, long.feature, long.value)):
            raise ParameterError(
                f"{self.data.name} was made a source with another long: give that one here, too"
            )
        return self.data

    def _long_kinds(self, long: LongInput) -> dict[str, str]:
        dialect = self.session.dialect
        feature = quote(long.feature, dialect)
        name = dialect.cast.format(value="feature", type=dialect.text_type)
        rows = self.session.rows(
            f"SELECT {name} AS name FROM (SELECT DISTINCT {feature} AS feature "
            f"FROM {self.data.relation} AS every WHERE {feature} IS NOT NULL) AS names "
            "ORDER BY feature ASC",
            "listing the features",
        )
        return dict.fromkeys((row[0] for row in rows), self.data.kinds[long.value])

    def statistics(self, columns: Sequence[str]) -> Statistics:
        """What columns hold, by aggregates; missing values do not count, absent ones are 0."""
        if self.data.long is not None:
            return self._sparse_statistics(columns, self.data.long)
        return statistics_of(columns, self._aggregate, self.session.dialect)

    def _sparse_statistics(self, columns: Sequence[str], long: LongInput) -> Statistics:
        """Of all rows that have an entry; one that a row has not is 0."""
        session, dialect, data = self.session, self.session.dialect, self.data
        value, finite = data.finite_value(dialect, long.value, "float64")
        key, feature = quote(long.row, dialect), quote(long.feature, dialect)
        name = dialect.cast.format(value=feature, type=dialect.text_type)
        ((n_rows,),) = session.rows(
            f"SELECT COUNT(DISTINCT {key}) FROM {data.relation} AS every", "counting rows"
        )
        entries = f"SELECT {name} AS name, CASE WHEN {finite} THEN {value} END AS v"
        entries = f"({entries} FROM {data.relation} AS every) AS entry_values"
        rows = number(float(max(n_rows, 1)), "float64", dialect)
        # Squares of what is left of the mean, as squares of values may be nothing but their means.
        found = session.rows(
            "SELECT entry_values.name, COUNT(v), MIN(middle), "
            "SUM((v - middle) * (v - middle)), MIN(v), MAX(v), "
            "COUNT(CASE WHEN v = 0 THEN 1 END), COUNT(CASE WHEN v <> ROUND(v) THEN 1 END) "
            f"FROM {entries} JOIN (SELECT name, SUM(v) / {rows} AS middle FROM {entries} "
            "GROUP BY name) AS middles ON middles.name = entry_values.name "
            "GROUP BY entry_values.name",
            "computing the features' statistics",
        )
        of_name = {row[0]: [0.0 if one is None else one for one in row[1:]] for row in found}
        table = np.array([of_name[name] for name in columns], dtype="float64")
        count, mean, squares, low, high, zeros, fractions = table.T
        absent = n_rows - count
        return Statistics(
            count=np.full(len(columns), n_rows),
            mean=mean,
            std=np.sqrt((squares + absent * mean**2) / max(n_rows, 1)),
            min=np.where(absent > 0, np.minimum(low, 0), low),
            max=np.where(absent > 0, np.maximum(high, 0), high),
            zeros=(zeros + absent).astype("int64"),
            whole=fractions == 0,
        )

    def head(self, columns: Sequence[str], count: int) -> NDArray[np.float64]:
        """The first rows as they come."""
        names = [f"v{i}" for i in range(len(columns))]
        return self.session.columns(
            f"SELECT {', '.join(names)} FROM ({self._values(columns)}) AS column_values "
            f"LIMIT {count:d}",
            names,
            "a look at the first rows",
        )

    def _values(self, columns: Sequence[str]) -> str:
        """The SELECT of columns as doubles v0, v1, ..."""
        items = ", ".join(values_of(self.data, self.session.dialect, columns))
        return f"SELECT {items} FROM {self.data.relation} AS every"

    def sample(
        self, columns: Sequence[str], count: int, rng: np.random.Generator, spare: int = 0
    ) -> NDArray[np.float64]:
        """Rows by their numbers, which the generator draws: the same ones for the same seed."""
        session, relation = self.session, self.data.relation
        ((n_rows,),) = session.rows(f"SELECT COUNT(*) FROM {relation} AS every", "counting rows")
        places = ", ".join(
            str(place + 1) for place in choose_rows(n_rows, count, rng, spare).tolist()
        )
        values = values_of(self.data, session.dialect, columns)
        names = [f"v{i}" for i in range(len(columns))]
        everything = ", ".join(quote(name, session.dialect) for name in columns)
        numbering = session.dialect.numbering.format(everything=everything)
        return session.columns(
            f"SELECT {', '.join(names)} FROM (SELECT {', '.join(values)}, {numbering} AS place "
            f"FROM {relation} AS every) AS numbered WHERE place IN ({places}) ORDER BY place ASC",
            names,
            "drawing rows",
        )

    def means(self, program: Program) -> NDArray[np.float64]:
        """Averages by aggregates over the program's own statement, in parts of so many outputs."""
        dialect, found = self.session.dialect, []
        double = dialect.float_types["float64"]
        # Rows with a missing value come without outputs and are counted, whatever the policy.
        prepare = program.prepare
        if prepare.nulls == "error":
            prepare = replace(prepare, nulls="propagate")
        whole = replace(program, stages=(prepare, *program.stages[1:]))
        for first in range(0, len(program.names), _MEANS_AT_ONCE):
            outputs = np.arange(first, min(first + _MEANS_AT_ONCE, len(program.names)))
            part = whole.only(outputs)
            options = Options(form="wide", output="columns")
            query = Query(
                part, "", "averages", self.data.relation, "", options, booleans=self.data.booleans
            )
            names = [quote(name, dialect) for name in part.names]
            means = [f"AVG({dialect.cast.format(value=name, type=double)})" for name in names]
            statement = f"SELECT COUNT(*), COUNT({names[0]}), {', '.join(means)} FROM (\n"
            statement += f"{write(query, dialect).text}\n) AS averaged"
            ((rows, complete, *row),) = self.session.rows(statement, "computing averages")
            if complete < rows and program.prepare.nulls == "error":
                raise MissingValueError(_MISSING)
            found += [np.nan if value is None else value for value in row]
        return np.array(found, dtype="float64")

    @property
    def texts_and_dates(self) -> Mapping[str, str]:
        """By their types."""
        return self.data.texts_and_dates

    def dates_in(self, columns: Sequence[str]) -> list[str]:
        """By a look at the first rows, and then at all."""
        return dates_in(columns, self.data.relation, self._rows, self.session.dialect)

    def values(self, columns: Sequence[str], at_most: int) -> dict[str, list[str | None] | None]:
        """By a look at the first rows, and then at all."""
        dialect = self.session.dialect
        return texts_in(columns, at_most, self.data.relation, self._rows, dialect)

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.session.rows(statement, "a look at its texts")

    def encoded(self, made: Sequence[Category]) -> TableSource:
        """The same table, read as a SELECT of it and of what is made of its columns."""
        names = Prepare.plain([one.name for one in made])
        prepare = replace(names, categories=tuple(made))
        return TableSource(self.session, self.data.encoded(prepare, self.session.dialect))

    def _aggregate(self, columns: Sequence[str], expressions: Sequence[str]) -> tuple[Any, ...]:
        return self.session.rows(
            f"SELECT {', '.join(expressions)} FROM ({self._values(columns)}) AS column_values",
            "computing the columns' statistics",
        )[0]
