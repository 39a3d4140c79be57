"""``sqlkrp report``: a page about a map or a model on a table, to be sent around."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.console import say
from sqlkrp.cli.destinations import add_replace
from sqlkrp.cli.map_files import load_map
from sqlkrp.cli.sources import add_database, add_engine, open_database, table_of
from sqlkrp.cli.typed import counts, path, path_to_write
from sqlkrp.files import require_other_file, require_place
from sqlkrp.models import load
from sqlkrp.report.drawing import require_matplotlib
from sqlkrp.urls import as_file, file_behind, hidden

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    group = one.group("input")
    group.add_argument(
        "map",
        metavar="MAP",
        type=path,
        help="a map file, from sqlkrp draw or featurize, or a model",
    )
    add_database(one, file=True)
    group.add_argument(
        "--label",
        metavar="COLUMN",
        help="of a model: the column that it predicts, to say how often rightly",
    )
    group.add_argument(
        "--map-file",
        metavar="MAP",
        type=path,
        help="of a model: the file of the map whose features it weighs, to say how far distances "
        "of these are off",
    )
    _add_sample(group)
    output = one.group("output")
    output.add_argument(
        "-o",
        "--out",
        metavar="PAGE",
        type=path_to_write,
        required=True,
        help="where to write the page, such as report.html",
    )
    add_replace(output, "PAGE if it exists")
    output.add_argument(
        "--untimed",
        dest="timed",
        action="store_false",
        help="say no seconds: the same table then gives the same page, byte by byte",
    )
    add_engine(one)


def _add_sample(group: argparse._ArgumentGroup) -> None:
    for name, default, what in (
        ("rows", 200, "how many rows to draw, of which all pairs are measured"),
        ("runs", 3, "how many draws of each map, the map itself being the first"),
        ("seed", 0, "the seed of what is drawn"),
    ):
        group.add_argument(
            f"--{name}",
            type=int,
            default=default,
            metavar="N",
            help=f"{what} (default: {default})",
        )
    group.add_argument(
        "--components",
        type=counts,
        default=(),
        metavar="NUMBERS",
        help="draw maps of so many features too, such as 100,200,500 (default: a quarter, half "
        "and twice the map's own)",
    )


def _run(given: argparse.Namespace) -> int:
    require_matplotlib()
    for one in _read(given):
        require_other_file(Path(given.out), as_file(one))
    require_place(Path(given.out), replace=given.replace)
    fitted = load(given.map)
    weighed = None if given.map_file is None else load_map(given.map_file)
    with open_database(given, given.file) as database:
        found = database.report(
            fitted,
            table_of(given, given.file),
            label=given.label,
            map=weighed,
            rows=given.rows,
            runs=given.runs,
            seed=given.seed,
            components=given.components,
            timed=given.timed,
            command=_command(given),
        )
    found.save(given.out, replace=given.replace)
    size = f"{len(found.html.encode()):,} bytes"
    say(given, [("wrote", f"{given.out}: {size}"), (fitted.kind, fitted.digest_[:12])])
    return 0


def _read(given: argparse.Namespace) -> list[str]:
    """All that is read, which the page is not to be written over."""
    several = [given.map, given.map_file, given.file, given.db]
    several.append(None if given.db is None else file_behind(given.db))
    return [one for one in several if one]


def _command(given: argparse.Namespace) -> str:
    """What repeats it, without what nobody else is to see."""
    words = ["sqlkrp", "report", given.map]
    for name in ("db", "table", "file", "label", "map_file"):
        value = getattr(given, name)
        if value is not None:
            words += [f"--{name.replace('_', '-')}", hidden(value)]
    for name in ("rows", "runs", "seed"):
        words += [f"--{name}", str(getattr(given, name))]
    if given.components:
        words += ["--components", ",".join(map(str, given.components))]
    if not given.timed:
        words.append("--untimed")
    return shlex.join([*words, "-o", given.out])


COMMAND = Command(
    "MAP (--db DB --table NAME | --file FILE) -o PAGE [options]",
    "write a page about a map or a model on a table: how far distances are off, what was tried, "
    "what it says, what it costs, and whether it is right",
    "churn.model.json --db sales.duckdb --table sales --label churned -o report.html",
    _add_arguments,
    _run,
)
