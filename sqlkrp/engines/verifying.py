"""Verifying: what an engine computes of a sample, or what is stored of it, held against NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlkrp.engines.asking import query_of
from sqlkrp.engines.checks import check_values
from sqlkrp.engines.results import opened
from sqlkrp.engines.samples import computed_of_sample
from sqlkrp.engines.session import Session, TableOrFile
from sqlkrp.engines.sources import TableSource
from sqlkrp.engines.stored import key_columns, rows_of_sample
from sqlkrp.maps.allowed import Number, Whole
from sqlkrp.maps.fitted import Fitted
from sqlkrp.sql.options import Options
from sqlkrp.verification import Verification, compare

__all__ = ["require_measures", "verified", "verified_as_stored"]


def require_measures(sample: int, tolerance: float | None) -> None:
    """Raise ParameterError unless rows can be drawn and differences be judged so."""
    Whole(1).require("sample", sample)
    if tolerance is not None:
        Number(0).require("tolerance", tolerance)


def verified(
    session: Session,
    fitted: Fitted,
    table: TableOrFile | TableSource,
    options: Options,
    sample: int,
    tolerance: float | None,
) -> Verification:
    """What the engine computes of a sample of rows, compared with the twin."""
    with session.transaction(keep=False):
        query, data = query_of(session, fitted, table, options, run_now=True)
        query = replace(query, program=query.program.coded())
        rows = check_values(session, query.program, data)
        statement, inputs, found = computed_of_sample(session, query, sample, rows)
    return compare(fitted.twin.coded(), inputs, found, statement.form, tolerance)


def verified_as_stored(
    session: Session,
    fitted: Fitted,
    table: TableOrFile | TableSource,
    options: Options,
    sample: int,
    tolerance: float | None,
    result: TableOrFile | None,
    key: str | Iterable[str],
    *,
    all_said: bool,
) -> Verification:
    """What a result holds of a sample of rows, compared with the twin.

    With ``all_said`` that is all which it has of what a model can say.
    """
    columns = key_columns(result, key, options)
    assert result is not None
    with session.transaction(keep=False), opened(session, result) as there:
        if all_said:
            fitted = fitted.said_in(there.types, there.name)
        query, data = query_of(session, fitted, table, options, run_now=True)
        check_values(session, query.program, data)
        drawn = rows_of_sample(session, query, data, there, columns, sample)
    inputs, found, stored = drawn
    return compare(fitted.twin.coded(), inputs, found, "stored", tolerance, stored)
