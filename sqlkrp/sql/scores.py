"""Scores of full features against packed signs: a statement over two tables of features."""

from __future__ import annotations

from collections.abc import Sequence

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.job import Written
from sqlkrp.sql.names import TableName, number, quote, quote_table
from sqlkrp.sql.packing import bit_names, signed_by_bits
from sqlkrp.sql.preflight import require_fits
from sqlkrp.sql.statement import finished
from sqlkrp.sql.vectors import OUTPUTS, require_has

__all__ = ["scores_of_signs"]

_COLUMNS = ("full_key", "signs_key", "score")


def scores_of_signs(
    full: TableName,
    signs: TableName,
    keys: Sequence[str],
    dialect: Dialect,
    *,
    prefix: str,
    names: Sequence[str],
    output: str,
    factor: float,
    head: Sequence[str],
) -> str:
    """Of each row of a table of numbers against each of packed signs: factor * <numbers, signs>.

    ``output`` is what the numbers were written as.
    """
    kept = OUTPUTS[dialect.output if output == "auto" else output]
    assert kept.read is not None
    require_has(output, dialect)
    one, other = (quote(key, dialect) for key in keys)
    columns = [f"numbers.{quote(name, dialect)}" for name in kept.names(prefix, names)]
    values = kept.read(columns, len(names), dialect)
    bits = [f"bits.{quote(name, dialect)}" for name in bit_names(prefix, len(names))]
    score = f"({signed_by_bits(values, bits, dialect)}) * {number(factor, 'float64', dialect)}"
    items = zip((f"numbers.{one}", f"bits.{other}", score), _COLUMNS, strict=True)
    listed = ",\n".join(f"  {value} AS {name}" for value, name in items)
    select = (
        f"SELECT\n{listed}\nFROM {quote_table(full, dialect)} AS numbers\n"
        f"CROSS JOIN {quote_table(signs, dialect)} AS bits"
    )
    written = Written(select, len(_COLUMNS), {})
    text, sizes = finished(written, head, "scores", dialect, outputs=_COLUMNS)
    require_fits(sizes, dialect)
    return text
