"""``sqlkrp train``: a model of a table's rows, found and judged by folds."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sqlkrp.cli.command import Command, Parser
from sqlkrp.cli.console import PASSING
from sqlkrp.cli.destinations import add_replace
from sqlkrp.cli.drawing import add_reading, reading_of
from sqlkrp.cli.map_files import load_model
from sqlkrp.cli.sources import add_engine, add_source, open_database, table_of
from sqlkrp.cli.typed import counts, degrees, path, path_to_write
from sqlkrp.files import require_other_file, require_place
from sqlkrp.mapfile import require_map_or_empty
from sqlkrp.summaries.training import training_lines
from sqlkrp.training import asked, labels
from sqlkrp.urls import as_file

__all__ = ["COMMAND"]

# Seconds between two lines of how far it is.
_PATIENCE = 1.0


def _add_arguments(one: Parser) -> None:
    add_source(one)
    _add_rows(one.group("the rows"))
    _add_search(one.group("the search"))
    output = one.group("output")
    output.add_argument(
        "-o", "--out", metavar="MODEL", type=path_to_write, required=True,
        help="where to save the model",
    )  # fmt: skip
    add_replace(output, "MODEL if it exists")
    add_engine(one)


def _add_rows(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--label", metavar="COLUMN", required=True, help="the column to predict")
    for name, what in (
        ("exclude", "do not read this column (repeat for more)"),
        ("include", "read only this column, and others included so (repeat for more)"),
        ("keep", "do not read this column: it names rows (repeat for more)"),
    ):
        default: list[str] | None = None if name == "include" else []
        group.add_argument(
            f"--{name}", action="append", default=default, metavar="COLUMN", help=what
        )
    group.add_argument("--weights", metavar="COLUMN", help="how much each row counts")
    group.add_argument(
        "--groups", metavar="COLUMN", help="rows of one value stay together: in one fold, or out"
    )
    group.add_argument(
        "--time",
        metavar="COLUMN",
        help="folds in this order: each is predicted from those before it, and the latest rows are "
        "held out",
    )
    group.add_argument(
        "--test-share",
        type=float,
        default=asked.TEST_SHARE,
        metavar="SHARE",
        help=f"the share of rows that is held out of everything (default: {asked.TEST_SHARE})",
    )
    group.add_argument(
        "--folds", type=int, default=asked.FOLDS, metavar="N",
        help=f"how many folds the others have (default: {asked.FOLDS})",
    )  # fmt: skip
    add_reading(group, "auto")


def _add_search(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--task", choices=labels.TASKS, metavar="TASK",
        help=f"{' or '.join(labels.TASKS)} (default: by the label)",
    )  # fmt: skip
    group.add_argument("--metric", metavar="NAME", help="what models are compared by")
    group.add_argument(
        "--loss", choices=asked.LOSSES, default=asked.LOSSES[0], metavar="LOSS",
        help=f"what maps that are named learn by: {', '.join(asked.LOSSES)}",
    )  # fmt: skip
    group.add_argument(
        "--map", dest="maps", action="append", metavar="NAME",
        help="a map to try beside the columns, such as krp (repeat for more; default: the search)",
    )  # fmt: skip
    group.add_argument(
        "--degree", type=degrees, metavar="G,G,...", help="the degrees of maps that have one"
    )
    group.add_argument(
        "--components", type=counts, metavar="K,K,...", help="how many features they have"
    )
    group.add_argument(
        "--gamma", type=_gammas, metavar="C,C,...",
        help="the gammas of maps that have one: numbers, or auto",
    )  # fmt: skip
    group.add_argument(
        "--like", metavar="MODEL", type=path,
        help="try nothing but what this model was taken for, from another training",
    )  # fmt: skip
    group.add_argument(
        "--class-weight", choices=("balanced",), metavar="HOW",
        help="balanced: rare classes count as much as others",
    )  # fmt: skip
    group.add_argument(
        "--sample", type=int, default=asked.SAMPLE, metavar="ROWS",
        help=f"how many rows candidates are compared on (default: {asked.SAMPLE:,})",
    )  # fmt: skip
    group.add_argument(
        "--simplest", action="store_true",
        help="take the simplest map within a standard error of the best",
    )  # fmt: skip
    group.add_argument("--budget", metavar="60s", help="try no more candidates after so long")
    group.add_argument(
        "--seed", dest="random_state", type=int, default=0, metavar="N",
        help="the same number gives the same model again (default: 0)",
    )  # fmt: skip


def _gammas(value: str) -> list[float | str]:
    try:
        return [one if one == "auto" else float(one) for one in value.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} are no numbers or auto, as auto,0.1") from None


def _run(given: argparse.Namespace) -> int:
    from sqlkrp.training.training import train

    started = time.monotonic()
    require_other_file(Path(given.out), as_file(given.source))
    require_map_or_empty(Path(given.out))
    require_place(Path(given.out), replace=given.replace)
    names = (
        "task", "metric", "loss", "include", "exclude", "keep", "weights", "groups", "time",
        "class_weight", "folds", "test_share", "sample", "simplest", "budget", "random_state",
    )  # fmt: skip
    with open_database(given, given.source) as database:
        source = database.source(table_of(given, given.source), long=given.long)
        model = train(
            source,
            given.label,
            maps=asked.maps_of(
                given.maps, degree=given.degree, n_components=given.components, gamma=given.gamma
            ),
            like=None if given.like is None else load_model(given.like),
            **reading_of(given),
            on_progress=_progress(given),
            **{name: getattr(given, name) for name in names},
        )
    model.save(given.out, replace=given.replace)
    if not given.quiet:
        seconds = f"{time.monotonic() - started:.1f}"
        wrote = f"{given.out} (digest {model.digest_[:12]})"
        more = [
            ("seconds", seconds),
            ("wrote", wrote),
            ("again", f"--like {shlex.quote(str(given.out))} tries nothing else, on other rows"),
        ]
        PASSING.clear()
        print("\n".join(training_lines(model.training, more)))
    return 0


def _progress(given: argparse.Namespace) -> Callable[[str, int], None]:
    """Lines on standard error of what is being done, where somebody sees them."""
    if given.quiet or not sys.stderr.isatty():
        return lambda _what, _rows: None
    last, rows, before = time.monotonic(), 0, ""

    def show(what: str, count: int) -> None:
        nonlocal last, rows, before
        rows = rows + count if what == before else count
        before = what
        if time.monotonic() - last > _PATIENCE:
            PASSING.show(f"  {what}: {rows:,} rows")
            last = time.monotonic()

    return show


COMMAND = Command(
    "SOURCE --label COLUMN -o MODEL [options]",
    "find a model of a table's rows: maps beside its columns, compared by folds, the best one kept",
    "sales.duckdb --table sales --label churned --keep id -o churned.model.json",
    _add_arguments,
    _run,
)
