"""A map or a model written into a project of dbt or of SQLMesh."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

from sqlkrp.engines.sources import TableSource
from sqlkrp.errors import ParameterError
from sqlkrp.files import write_files
from sqlkrp.maps.allowed import Switch
from sqlkrp.maps.fitted import Fitted
from sqlkrp.projects.asked import Asked
from sqlkrp.projects.dbt import dbt_files, dbt_project_files
from sqlkrp.projects.examples import made_up, of_table
from sqlkrp.projects.relation import relation_of
from sqlkrp.projects.sqlmesh import sqlmesh_files, sqlmesh_project_files
from sqlkrp.sql.dialects import dialect as facts_of
from sqlkrp.sql.options import Options

__all__ = ["WRITERS", "to_project"]

# What stands in every model, and in no file of somebody else's.
_OURS = re.compile(r"sqlkrp (map|model) [0-9a-f]{64}")
#: What writes the files of each kind of project: those of a model, and those around it.
WRITERS = {
    "dbt": (dbt_files, dbt_project_files),
    "sqlmesh": (sqlmesh_files, sqlmesh_project_files),
}


def to_project(
    fitted: Fitted,
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
    """Write the files, all of them or none that was not there; :meth:`Fitted.to_dbt` says what.

    Each file's path comes back, and whether it was written or there as it is.
    """
    switches = {"incremental": incremental, "project": project, "sqlmesh": sqlmesh}
    for switch, value in (switches | {"replace": replace}).items():
        Switch().require(switch, value)
    facts = facts_of(dialect)
    if facts.array is not None:  # one column of features makes a short contract
        facts = dataclasses.replace(facts, output="array")
    relation = relation_of(source, facts)
    examples = made_up(fitted, key) if rows is None else of_table(fitted, _source(rows), key)
    asked = Asked(
        fitted=fitted,
        name=name,
        relation=relation,
        key=key,
        key_type=key_type or examples.key_type or facts.whole_type,
        dialect=facts,
        options=dataclasses.replace(options, keep=(key,)),
        examples=examples,
        grows=incremental,
    )
    of_model, around = WRITERS["sqlmesh" if sqlmesh else "dbt"]
    files, target = of_model(asked), Path(folder)
    model = target / "models" / f"{name}.sql"
    is_ours = model.is_file() and bool(_OURS.search(model.read_text(encoding="utf-8")))
    whose = dict.fromkeys(files, is_ours)
    if project:  # which users change
        files |= (more := around(asked))
        whose |= dict.fromkeys(more, False)
    written = set(write_files(target, files, whose, replace=replace))
    return {path: path in written for path in (target / name for name in files)}


def _source(rows: Any) -> TableSource:
    if not isinstance(rows, TableSource):
        raise ParameterError(
            f"rows is of type {type(rows).__name__}: give db.source(table), or leave it out"
        )
    return rows
