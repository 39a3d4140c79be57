"""What each SQL dialect is like: one frozen record of facts per dialect.

Nothing else in the package asks which dialect it writes; it asks for a fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlkrp.errors import ParameterError

__all__ = ["DIALECTS", "Dialect", "dialect"]


@dataclass(frozen=True)
class Dialect:
    """The facts of one dialect that generated SQL depends on."""

    name: str
    """As sqlglot knows it, too."""
    quote: str
    """The character around identifiers; doubled inside them."""
    ignores_case: bool
    """Whether two quoted names that differ only in case are one name."""
    folds: str
    """How a bare name is folded: ``"lower"``, ``"upper"``, or not at all."""
    max_identifier_bytes: int | None
    """Longer names are cut by the engine, so they are refused."""
    float_types: Mapping[str, str]
    """The type of each NumPy dtype that features are computed in."""
    literals: Mapping[str, str]
    """How a number is written with exactly that type."""
    cast: str
    """A cast that fails loudly, for values known to fit."""
    soft_cast: str
    """A cast that gives NULL where the value does not fit."""
    boolean_cast: str
    """The same of a truth value, as 0 or 1."""
    is_finite: str
    """True for a number, false or NULL for NaN, an infinity and NULL."""
    raise_error: str
    """An expression of {value}'s row that stops the statement with a message."""
    text_type: str
    materialized: str
    """How a common table expression is computed once."""
    array: str
    """A list of items."""
    array_cast: str
    """A list as an array of so many items of one type."""
    array_item: str
    """Item number {place}, from 1, of an array."""
    numbers: str
    """The numbers 0, 1, ... as rows of a SELECT list."""
    product: str | None
    """A window aggregate that multiplies; None where there is none."""
    fence: str
    """What keeps a nested SELECT from being inlined and computed again; empty where it is not."""
    max_wide_operations: int
    """Additions and products of a wide statement that are still planned in reasonable time."""
    load_file: Mapping[str, str]
    """A statement that fills a side table from a file, for each format."""
    side_table_types: Mapping[str, str]
    """The column type of a side table for each NumPy dtype."""


_DUCKDB = Dialect(
    name="duckdb",
    quote='"',
    ignores_case=True,
    folds="",
    max_identifier_bytes=None,
    float_types=MappingProxyType({"float32": "FLOAT", "float64": "DOUBLE"}),
    literals=MappingProxyType({"float32": "CAST({number} AS FLOAT)", "float64": "{number}"}),
    cast="CAST({value} AS {type})",
    soft_cast="TRY_CAST({value} AS {type})",
    boolean_cast="CAST({value} AS {type})",
    is_finite="ISFINITE({value})",
    raise_error="CAST(ERROR({message}) AS {type})",
    text_type="VARCHAR",
    materialized="AS MATERIALIZED",
    array="[{items}]",
    array_cast="CAST({array} AS {type}[{count}])",
    array_item="{array}[{place}]",
    numbers="UNNEST(RANGE({count}))",
    product="PRODUCT({value}) OVER ({window})",
    # DuckDB keeps the projection of a nested SELECT; it computes a shared column once.
    fence="",
    # Measured: planning takes about 30 microseconds and 7 KB a node, so 10 s and 3 GB here.
    max_wide_operations=400_000,
    load_file=MappingProxyType(
        {
            "csv": "COPY {table} FROM {file} (FORMAT csv, HEADER);",
            "parquet": "COPY {table} FROM {file} (FORMAT parquet);",
        }
    ),
    side_table_types=MappingProxyType(
        {
            "int8": "TINYINT",
            "int32": "INTEGER",
            "float32": "FLOAT",
            "float64": "DOUBLE",
            "object": "VARCHAR",
        }
    ),
)

DIALECTS: dict[str, Dialect] = {one.name: one for one in (_DUCKDB,)}


def dialect(name: str) -> Dialect:
    """The facts of a dialect by name."""
    if name not in DIALECTS:
        allowed = ", ".join(sorted(DIALECTS))
        raise ParameterError(f"dialect={name!r} is not known: use one of {allowed}")
    return DIALECTS[name]
