"""``sqlkrp distortion``: how far features are from the kernels that their maps claim."""

from __future__ import annotations

import argparse
import json

from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.map_files import load_map
from sqlkrp.cli.sources import add_database, add_engine, open_database, table_of
from sqlkrp.cli.typed import counts, path
from sqlkrp.summaries.distortion import distortion_lines

__all__ = ["COMMAND"]


def _add_arguments(one: Parser) -> None:
    group = one.group("input")
    group.add_argument(
        "maps",
        metavar="MAP",
        nargs="+",
        type=path,
        help="map files, from sqlkrp draw or featurize, to be measured on the same rows",
    )
    add_database(one, file=True)
    group.add_argument(
        "--rows",
        type=int,
        default=500,
        metavar="N",
        help="how many rows to draw, of which all pairs are measured (default: 500)",
    )
    group.add_argument(
        "--seed", type=int, default=0, metavar="N", help="the seed of what is drawn (default: 0)"
    )
    output = one.group("output")
    output.add_argument(
        "--runs",
        type=int,
        default=10,
        metavar="N",
        help="how many draws of each map, the map itself being the first (default: 10)",
    )
    output.add_argument(
        "--components",
        type=counts,
        default=(),
        metavar="NUMBERS",
        help="draw maps of so many features too, such as 100,200,500,1000",
    )
    output.add_argument("--json", action="store_true", help="print JSON, not lines")
    add_engine(one)


def _run(given: argparse.Namespace) -> int:
    maps = [load_map(one) for one in given.maps]
    with open_database(given, given.file) as database:
        found = database.distortion(
            maps,
            table_of(given, given.file),
            rows=given.rows,
            runs=given.runs,
            seed=given.seed,
            components=given.components,
        )
    if given.json:
        print(json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
    elif not given.quiet:
        print("\n".join(distortion_lines(found)))
    return 0


COMMAND = Command(
    "MAP [MAP ...] (--db DB --table NAME | --file FILE) [options]",
    "measure how far features are from the kernel that their map claims, on a sample of rows",
    "sales.map.json --db warehouse.duckdb --table sales --rows 500 --runs 10",
    _add_arguments,
    _run,
)
