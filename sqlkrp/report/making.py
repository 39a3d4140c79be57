"""Reports: what is found in a database, and a page of it."""

from __future__ import annotations

from typing import Any

from sqlkrp.engines.session import Session
from sqlkrp.errors import ParameterError
from sqlkrp.maps.frames import is_relation, is_streamed, is_table
from sqlkrp.report.drawing import require_matplotlib
from sqlkrp.report.found import wanted_of
from sqlkrp.report.gathering import gathered
from sqlkrp.report.page import Report

__all__ = ["report_in", "report_of_frame"]


def report_in(session: Session, fitted: Any, table: Any, *, map: Any, **options: Any) -> Report:
    """A report of a map or a model on a table."""
    wanted = wanted_of(**options)
    require_matplotlib()  # before the work, and not after it
    return Report(gathered(session, fitted, table, wanted, map))


def report_of_frame(fitted: Any, frame: Any, **options: Any) -> Report:
    """The same on rows in memory, by DuckDB in this process."""
    from sqlkrp.engines import connect
    from sqlkrp.engines.duckdb_frames import keep_frame

    require_matplotlib()
    if not (is_table(frame) or is_streamed(frame) or is_relation(frame)):
        raise ParameterError(
            f"a {type(frame).__name__} is no table with names of columns: give a DataFrame, or a "
            "table of a database (db.report)"
        )
    with connect() as database:
        keep_frame(database.connection, "frame", frame)
        found: Report = database.report(fitted, "frame", **options)
        return found
