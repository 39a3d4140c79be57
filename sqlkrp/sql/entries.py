"""A source as prepared entries (row_id, feature, value): where the steps of a chain begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.sql.chain import Chain, free_name
from sqlkrp.sql.facts import Dialect, Unpivot
from sqlkrp.sql.job import Job, LongInput
from sqlkrp.sql.names import quote, soft_cast, text
from sqlkrp.stages import Prepare

__all__ = ["Gathered", "gathered_rows", "gathered_values", "prepared_entries"]


def prepared_entries(job: Job, *, fill_absent: bool = False) -> Chain:
    """The steps from a source to its prepared entries; of sparse rows, absent ones on request."""
    chain = Chain(job)
    if job.long is None:
        _dense_entries(chain)
        _prepare(chain)
    else:
        _require_zero_stays_zero(job.program.prepare)
        _sparse_entries(chain, job.long)
        _prepare(chain, fill_absent=fill_absent)
    return chain


@dataclass(frozen=True)
class Gathered:
    """Rows of values at the end of a chain, from which the wide form goes on.

    Its columns are the place of a row, what is carried, ``complete`` (1 in rows that have
    features), and x0, x1, ...
    """

    relation: str
    place: str
    """The first column's name, which no output has."""
    n_inputs: int
    widest: int
    """Entries of its widest SELECT."""
    chain: Chain


def gathered_rows(job: Job, wanted: Prepare) -> Gathered:
    """Those of a program's prepared inputs that are wanted, as one row a row of sparse input."""
    dialect, prepare = job.dialect, job.program.prepare
    chain = prepared_entries(job)
    zero = chain.double(0.0)
    # An entry that adds nothing, so that a row without others is there as well.
    nothing = {"feature": "0", "constant": zero}
    chain.then("with_nothing", "add_constant", {"complete": chain.complete}, nothing)
    places = [prepare.columns.index(name) for name in wanted.columns]
    if wanted.constant is not None:
        places.append(len(prepare.columns))
    carried = ["source.row_key AS k0", *(f"source.k{i} AS k{i + 1}" for i in range(len(job.keep)))]
    inputs = [
        dialect.cast.format(value=f"collected.x{i}", type=job.type_name) for i in range(len(places))
    ]
    if dialect.pivot is not None:
        pivoted = _pivoted(dialect, places, chain.current)
        chain.current = chain.add_query("gathered_inputs", pivoted, chain.current)
        return _beside_kept(chain, carried, inputs)
    sums = [
        f"SUM(CASE WHEN feature = {place} THEN value ELSE {zero} END) AS x{i}"
        for i, place in enumerate(places)
    ]
    return gathered_values(chain, sums, carried, inputs)


def _pivoted(dialect: Dialect, places: Sequence[int], source: str) -> str:
    """The query of a row's values at places, from entries."""
    assert dialect.pivot is not None
    columns = [f"{dialect.pivoted.format(place=place)} AS x{i}" for i, place in enumerate(places)]
    listed = ", ".join(map(str, places))
    return dialect.pivot.format(columns=", ".join(columns), places=listed, source=source)


def gathered_values(
    chain: Chain, collected: Sequence[str], carried: Sequence[str], values: Sequence[str]
) -> Gathered:
    """The values of a chain's end as rows, by aggregates, beside what is carried."""
    chain.then("gathered_inputs", "collect_values", {}, {"collected": collected})
    return _beside_kept(chain, carried, values)


def _beside_kept(chain: Chain, carried: Sequence[str], values: Sequence[str]) -> Gathered:
    """The values of a chain's end, one row a row, beside what is carried."""
    inputs = [f"{value} AS x{i}" for i, value in enumerate(values)]
    place = free_name("place", chain.job.columns)
    relations = {"source": chain.source, "collected": chain.current}
    bound: dict[str, str | Sequence[str]] = {"kept": carried, "inputs": inputs, "place": place}
    relation = chain.add("gathered", "gather", relations, bound)
    chain.reads[relation] += 1
    return Gathered(relation, place, len(inputs), 2 + len(carried) + len(inputs), chain)


def _dense_entries(chain: Chain) -> None:
    job, dialect = chain.job, chain.dialect
    columns = job.program.prepare.columns
    soft = [
        chain.entry(_of("source", name, dialect), boolean=name in job.booleans) for name in columns
    ]
    inputs = [f"x{i}" for i in range(len(soft))]
    numbered = {
        "numbering": _numbering(dialect, "source", [*job.keep, *columns]),
        "kept": _kept("source", job),
        "inputs": [f"{value} AS {name}" for value, name in zip(soft, inputs, strict=True)],
    }
    chain.source = chain.add("source", "number_rows", {"source": job.relation}, numbered)
    chain.complete = chain.source
    unpivoted = _unpivot(dialect.unpivot, inputs, chain.source)
    chain.current = chain.add_query("entries", unpivoted, chain.source)


def _of(relation: str, name: str, dialect: Dialect) -> str:
    """A column with its relation: alone it may be read as an alias of ours, or as a relation."""
    return f"{relation}.{quote(name, dialect)}"


def _kept(relation: str, job: Job) -> list[str]:
    names = enumerate(job.keep)
    return [f"{_of(relation, name, job.dialect)} AS k{i}" for i, name in names]


def _numbering(dialect: Dialect, relation: str, read: Sequence[str]) -> str:
    columns = [_of(relation, name, dialect) for name in dict.fromkeys(read)]
    return dialect.numbering.format(everything=", ".join(columns))


def _unpivot(how: Unpivot, inputs: Sequence[str], source: str) -> str:
    places = range(len(inputs))
    size = how.at_most or len(inputs)
    queries = []
    for part in (places[i : i + size] for i in range(0, len(inputs), size)):
        entries = [how.entry.format(place=i, value=inputs[i], source=source) for i in part]
        rows = ", ".join(f"({i})" for i in part)
        query = how.query.format(
            entries=how.separator.join(entries), source=source, count=len(part), rows=rows
        )
        queries.append(query)
    if len(queries) == 1:
        return queries[0]
    return "\nUNION ALL\n".join(f"SELECT * FROM (\n{query}\n) part" for query in queries)


def _sparse_entries(chain: Chain, long: LongInput) -> None:
    job, dialect = chain.job, chain.dialect
    if long.keys is None:
        relations = {"entries": job.relation}
        key = _of("entries", long.row, dialect)
        chain.source = chain.add("source", "distinct_keys", relations, {"key": key})
    else:
        keys: dict[str, str | Sequence[str]] = {
            "numbering": _numbering(dialect, "key_table", [long.row, *job.keep]),
            "key": _of("key_table", long.row, dialect),
            "kept": _kept("key_table", job),
        }
        chain.source = chain.add("source", "number_keys", {"key_table": long.keys}, keys)
    chain.complete = chain.source
    entry = {
        role: _of("entries", name, dialect)
        for role, name in (("key", long.row), ("name", long.feature), ("value", long.value))
    }
    entry["name"] = dialect.cast.format(value=entry["name"], type=dialect.text_type)
    entry["value"] = chain.entry(entry["value"], boolean=long.value in job.booleans)
    given = chain.add("given", "read_entries", {"entries": job.relation}, entry)
    matched = {"given": given, "source": chain.source, "columns": chain.side(0, "columns")}
    chain.current = chain.add("entries", "match_entries", matched)


def _require_zero_stays_zero(prepare: Prepare) -> None:
    if np.any(prepare.shift != 0):
        name = prepare.columns[int(np.flatnonzero(prepare.shift)[0])]
        raise ParameterError(
            f"the scaling shifts column {name!r}, so that absent entries would no longer be 0: "
            "for (row, feature, value) input draw the map with scaling=None or 'unit', or give a "
            "table with one column a feature"
        )


# What is filled in for a missing value is inside the bounds already.
_HELD = (
    "CASE WHEN inputs.value < columns.low THEN columns.low "
    "WHEN inputs.value > columns.high THEN columns.high ELSE inputs.value END"
)


def _prepare(chain: Chain, *, fill_absent: bool = False) -> None:
    prepare = chain.job.program.prepare
    columns = {"columns": chain.side(0, "columns")}
    values = {
        "finite": chain.dialect.finite("inputs.value", prepare.dtype),
        "value": _HELD if prepare.bounds else "inputs.value",
        "missing": _instead_of_missing(chain),
    }
    chain.then("prepared", "prepare", columns, values)
    if prepare.nulls == "propagate":
        rows = {"source": chain.source, "inputs": chain.current}
        chain.complete = chain.add("complete", "complete_rows", rows)
        chain.then("kept_rows", "only_complete", {"complete": chain.complete})
    if prepare.unit_length:
        chain.then("directions", "unit_length")
    if fill_absent:
        everywhere = {"complete": chain.complete, **columns}
        chain.then("filled", "fill_absent", everywhere, {"zero": chain.double(0.0)})
    if prepare.constant is not None:
        constant = chain.double(prepare.constant)
        values = {"feature": str(len(prepare.columns)), "constant": constant}
        chain.then("with_constant", "add_constant", {"complete": chain.complete}, values)


def _instead_of_missing(chain: Chain) -> str:
    prepare = chain.job.program.prepare
    if prepare.fills:
        return "columns.fill"
    if prepare.nulls == "error" and chain.job.guard:
        message = text("missing value (NULL, NaN or infinite) in an input column", chain.dialect)
        return chain.dialect.error(message, "inputs.value", chain.double_type)
    return soft_cast("NULL", "float64", chain.dialect)
