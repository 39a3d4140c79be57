"""``sqlkrp dbt``: write a map or a model into a project of dbt or SQLMesh."""

from __future__ import annotations

import argparse
import contextlib
import re
from pathlib import Path
from typing import Any

from sqlkrp.cli.answers import add_answers, answered
from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.console import say
from sqlkrp.cli.destinations import add_replace
from sqlkrp.cli.map_files import add_map, load_asked
from sqlkrp.cli.sources import (
    add_database,
    add_engine,
    let_rows_be_left_out,
    names_rows,
    open_database,
    table_of,
)
from sqlkrp.cli.statements import add_dialect, add_sql, options_of_statement
from sqlkrp.cli.typed import path_to_write
from sqlkrp.models import Model

__all__ = ["COMMAND"]

_ENDINGS = re.compile(r"(\.(map|model))?\.json$")


def _add_arguments(one: Parser) -> None:
    add_database(one, file=True)
    add_engine(one)
    let_rows_be_left_out(one)  # of which the options are those so far
    add_map(one)
    source = one.group("input")
    source.add_argument(
        "--source",
        metavar="NAME",
        required=True,
        help="the table that the model reads: schema.table, which is declared as a source; or what "
        "the project has, as {{ source('a', 'b') }} or {{ ref('x') }}",
    )
    source.add_argument(
        "--key", metavar="COLUMN", required=True, help="the column that tells its rows apart"
    )
    source.add_argument(
        "--key-type",
        metavar="TYPE",
        help="the type of this column in the database (default: as it is in --db or --file, or "
        "else whole numbers of 64 bits)",
    )
    output = one.group("output")
    output.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        type=path_to_write,
        required=True,
        help="the folder of the project, which may hold other files",
    )
    output.add_argument(
        "--name",
        metavar="NAME",
        help="what the model is called (default: as the map's file, and _features or _scores)",
    )
    output.add_argument(
        "--incremental",
        action="store_true",
        help="add the rows whose keys are new, and stop if another map made those that are there",
    )
    output.add_argument(
        "--project", action="store_true", help="write what is around models in a project, too"
    )
    output.add_argument("--sqlmesh", action="store_true", help="for SQLMesh, and not for dbt")
    add_replace(output, "files of sqlkrp in DIR")
    output.add_argument(
        "--output",
        choices=("auto", "array", "columns"),
        metavar="HOW",
        default="auto",
        help="how features are written: array (all in one column, so that the contract is short), "
        "columns (one each), or auto: an array where the dialect has such (default: auto)",
    )
    add_answers(one)
    add_dialect(one)
    add_sql(one)


def _run(given: argparse.Namespace) -> int:
    fitted = answered(given, load_asked(given), given.source)
    name = given.name if given.name is not None else _name(given.map, isinstance(fitted, Model))
    with contextlib.ExitStack() as opened:
        files = fitted.to_dbt(
            given.out,
            name=name,
            source=given.source,
            key=given.key,
            key_type=given.key_type,
            rows=_rows(given, opened),
            dialect=given.dialect,
            incremental=given.incremental,
            project=given.project,
            sqlmesh=given.sqlmesh,
            replace=given.replace,
            **options_of_statement(given),
        )
    told = [("wrote" if is_new else "as it was", str(path)) for path, is_new in files.items()]
    say(given, [*told, (fitted.kind, fitted.digest_[:12])])
    return 0


def _rows(given: argparse.Namespace, opened: contextlib.ExitStack) -> Any:
    """The table whose rows are compared, if it is named."""
    if not names_rows(given):
        return None
    database = opened.enter_context(open_database(given, given.file))
    return database.source(table_of(given, given.file))


def _name(path: str, is_model: bool) -> str:
    """A model's name from that of a file."""
    stem = re.sub(r"\W", "_", _ENDINGS.sub("", Path(path).name), flags=re.ASCII)
    return f"{stem}_{'scores' if is_model else 'features'}"


COMMAND = Command(
    "MAP --source NAME --key COLUMN -o DIR [options]",
    "write a model of dbt or SQLMesh, with a test that holds its features against NumPy's",
    "sales.map.json --source shop.sales --key id -o my_dbt_project",
    _add_arguments,
    _run,
)
