"""The published tables of Lopez-Sanchez et al. (2018), cell by cell, and of Janati's review.

    python -m benchmarks.reproduce --data DIR [--quick] [--only 2,3,8,9,4,10,tried,review]
        [--out FILE]

Tables 2 and 3 (distances of MNIST), 8 and 9 (of w8a), 4 (accuracy on MNIST) and 10 (F1 on w8a).
``benchmarks/published.csv`` has the tables as they were read off the papers. What is measured is
kept in a file of JSON lines beside the report, so that a run that was stopped goes on;
without its file everything is measured again. Writes ``benchmarks/results/reproduce.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import classifying, distances
from benchmarks.kept import Kept
from benchmarks.measuring import markdown, named, versions
from benchmarks.published import RUNS, Cell, Line, read, tolerances
from benchmarks.reproduced import SUMMARY, Found, by_pool, by_size, summary, told

RESULTS = Path(__file__).parent / "results"
PAPER, REVIEW = "krp2018", "janati2017"
DISTANCES, SCORES = (2, 3, 8, 9), (4, 10)


@dataclass(frozen=True)
class Asked:
    """What is to be measured."""

    data: Path
    cells: Sequence[Cell]
    kept: Kept
    rows: int
    runs: int
    in_sql: int
    draws: int
    features: Sequence[int]
    report: bool
    quick: bool


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    lines: Sequence[str]
    summary: Sequence[str] = ()
    """Of a published table, a row of the table of all."""


def main() -> None:
    """Measure what is not kept, and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reproduce",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument(
        "--published", type=Path, default=Path(__file__).parent / "published.csv", help="the tables"
    )
    parser.add_argument("--quick", action="store_true", help="fewer runs, rows and features")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, with commas")
    parser.add_argument(
        "--in-sql", type=int, default=1, help="of how many runs DuckDB computes the features"
    )
    parser.add_argument("--draws", type=int, default=1, help="of each map of tables 4 and 10")
    parser.add_argument(
        "--features", default="", help="for tables 4 and 10 only so many, with commas"
    )
    parser.add_argument("--report", action="store_true", help="of what is kept; measure nothing")
    parser.add_argument("--plot", action="store_true", help="a picture of distances, too")
    parser.add_argument("--kept", type=Path, help="default: beside the report, as .jsonl")
    parser.add_argument("--out", type=Path, help="default: results/reproduce.md")
    given = parser.parse_args()
    path = given.out or RESULTS / f"{'quick_' * given.quick}reproduce.md"
    kept = Kept(given.kept or path.with_suffix(".jsonl"), closed=given.report)
    asked = Asked(
        given.data,
        read(given.published),
        kept,
        rows=100 if given.quick else 500,
        runs=2 if given.quick else RUNS,
        in_sql=given.in_sql,
        draws=given.draws,
        features=[int(k) for k in given.features.split(",") if k],
        report=given.report,
        quick=given.quick,
    )
    sections = [SECTIONS[name](asked) for name in given.only.split(",")]
    report = [f"# Published tables, again\n\n{versions()}\n", *_how(asked)]
    report += markdown(SUMMARY, [one.summary for one in sections if one.summary])
    if given.plot:
        report += _picture(asked, path.with_suffix(".png"))
    for one in sections:
        report += one.lines
    path.write_text("\n".join(report))
    print(f"wrote {path}")


def _how(asked: Asked) -> list[str]:
    """What all tables have in common."""
    return [
        f"Numbers were measured at {', '.join(kept_at)}.\n"
        if (kept_at := asked.kept.commits)
        else "Nothing was measured.\n",
        "Each cell has the mean ± standard deviation that was measured and, in brackets, the "
        "published one. A star marks means that are further apart than "
        "[benchmarks/published.py](../published.py) allows: distances .015 at degree 2 and .05 at "
        "degree 3; where pools are small and runs differ more, three standard errors of the "
        "difference of two means of ten runs, of the published standard deviations of all cells of "
        "that table, method and p; .3 points of accuracy, .015 of F1.\n",
        f"Distances: {asked.runs} runs of fresh draws, each of {asked.rows} random test rows, all "
        "pairs but those at distance 0; landmarks are training rows; t = 30. A draw of k = 1,000 "
        "components serves k = 200 and 500 by its first components where these are a draw of fewer "
        "(KRP with an independent pool, P-RP, KG-RP, φ+RP); others are drawn for each k. Distances "
        "are computed by NumPy from features of DuckDB and of the NumPy twin; φ+RP has too many "
        "products for `ExplicitRP`, and is NumPy's alone.\n",
        f"Scores: {asked.draws} draw of each map, all rows, features of the twin. C is "
        "1 on w8a, as the paper has it for the raw columns and for the exact polynomial; on MNIST, "
        "whose C of .5 is not of features of this size, it is chosen by rows that are held back. "
        "Cells that are not run say so.\n",
    ]


# --- distances ------------------------------------------------------------------------------------


def distance_section(table: int) -> Callable[[Asked], Section]:
    """The section of one published table of distortions."""

    def section(asked: Asked) -> Section:
        cells = [
            cell for cell in asked.cells
            if (cell.source, cell.table, cell.metric) == (PAPER, table, "distortion")
        ]  # fmt: skip
        settings = {"rows": asked.rows, "runs": asked.runs, "in_sql": asked.in_sql}
        if not asked.report:
            distances.measure(cells, asked.data, asked.kept, **settings)
        limits = tolerances(cells)
        found = {
            (cell.line, cell.k): Found(_values(asked, cell, cell.line), cell, limits[cell])
            for cell in cells
        }
        ours = {
            (line, cell.k): Found(_values(asked, cell, line))
            for cell in cells for line in distances.OURS
        }  # fmt: skip
        one = cells[0]
        name = named(asked.data, f"{one.data}_test.parquet", one.data)
        floor = [f"{2 / np.sqrt(np.pi * k):.3f}" for k in sorted({k for _, k in found if k})]
        lines = [
            f"## Table {table}: distortion, {name}, degree {one.degree}\n",
            _in_sql(asked, cells),
            *by_size({**found, **ours}, ["2/√(πk)", *floor]),
            *by_pool(found),
        ]
        return Section(lines, summary(table, found))

    return section


def _in_sql(asked: Asked, cells: Sequence[Cell]) -> str:
    """What DuckDB computed, and how far NumPy is from it."""
    found = []
    for line in dict.fromkeys([*(cell.line for cell in cells), *distances.OURS]):
        k = max(cell.k for cell in cells if cell.k is not None)
        one = cells[0]
        for run in range(asked.runs):
            kept = asked.kept.find(distances.key(one.data, one.degree, line, k, run, asked.rows))
            if kept is not None and "apart" in kept:
                found.append((kept["features in SQL"], k, kept["apart"]))
    whole = sum(count == k for count, k, _ in found)
    apart = max((apart for *_, apart in found), default=0.0)
    return (
        f"DuckDB computed all features of {whole} draws and some of {len(found) - whole} more; "
        f"NumPy, which computed the other draws, is {apart:.1e} of the largest feature from it at "
        "most.\n"
    )


def _picture(asked: Asked, path: Path) -> list[str]:
    """Some lines of all tables of distances over k."""
    # Only here, as it needs matplotlib.
    from benchmarks import reproduce_plot

    panels = {}
    for table in DISTANCES:
        cells = [cell for cell in asked.cells if (cell.source, cell.table) == (PAPER, table)]
        one, curves = cells[0], []
        pools = sorted({cell.line.p for cell in cells if cell.line.distribution == "s=1"
                        and cell.line.p is not None})  # fmt: skip
        lines = [Line("Nystroem"), distances.OURS[0]]
        lines += [Line("KRP", "s=1", p, distances.TERMS) for p in (pools[-1], pools[0])]
        lines += [Line("KG-RP", "", pools[-1], distances.TERMS)]
        for line in lines:
            sizes = sorted({cell.k for cell in cells if cell.k is not None})
            published = {cell.k: cell.mean for cell in cells if cell.line == line}
            values = [_values(asked, replace(one, k=k), line) for k in sizes]
            if not all(values):
                continue
            large = {pools[-1]: "largest p", pools[0]: "least p"}.get(line.p or 0, "")
            curves.append(
                reproduce_plot.Curve(
                    " ".join(word for word in (told(line), large) if word),
                    sizes,
                    [float(np.mean(one)) for one in values],
                    [float(np.std(one, ddof=1)) for one in values],
                    [published[k] for k in sizes if k in published],
                )
            )
        panels[f"Table {table}: {one.data}, degree {one.degree}"] = curves
    reproduce_plot.draw(panels, path)
    return [f"![Distortion over k; crosses are published]({path.name})\n"]


def _values(asked: Asked, cell: Cell, line: Line) -> list[float]:
    keys = (
        distances.key(cell.data, cell.degree, line, cell.k, run, asked.rows)
        for run in range(asked.runs)
    )
    return [found["mean"] for found in map(asked.kept.find, keys) if found is not None]


# --- scores ---------------------------------------------------------------------------------------

# Of dense rows there are 307,720 products of two columns: each draw would take half an hour.
_NOT_RUN = {("mnist", "phi+RP")}
# The largest pools of both tables have at least so many hyperplanes.
LARGEST_OF_SCORES = 446
_DIGITS = {"accuracy": 2, "f1": 4}
# Why marked cells are off, as far as it was found.
_WHY = {
    4: "Nyström at k = 2,000 is .32 points behind, by one draw, and with the C that was chosen for "
    "KRP, the least of three; its own was not looked for.\n",
    10: "Nyström at k = 2,000 is behind, by one draw with C = 1, which is near the published score "
    "at k = 1,500: C = 4 gives .8610 for the "
    "same draw, so the paper seems to have chosen C for each k.\n",
}


def score_section(table: int) -> Callable[[Asked], Section]:
    """The section of one published table of scores."""

    def section(asked: Asked) -> Section:
        cells = [
            cell for cell in asked.cells
            if (cell.source, cell.table) == (PAPER, table) and cell.metric in _DIGITS
        ]  # fmt: skip
        one, most = cells[0], 10_000 if asked.quick else None
        sizes = [500] if asked.quick else sorted({cell.k for cell in cells if cell.k is not None})
        now = [k for k in sizes if not asked.features or k in asked.features]
        published_lines = sorted({cell.line for cell in cells}, key=_order)
        all_lines = (*published_lines, *classifying.OURS)
        run = [line for line in all_lines if _is_run(one.data, line)]
        settings = {"runs": range(asked.draws), "most": most}
        if not asked.report:
            classifying.measure(cells, run, now, asked.data, asked.kept, **settings)
        limits = tolerances(cells)
        published = {(cell.line, cell.k): cell for cell in cells}
        found = {}
        for line in all_lines:
            for k in sizes if line.method in distances.WAYS or line.method == "phi+RP" else [None]:
                cell = published.get((line, k))
                values = _scores(asked, one, line, k, most)
                limit = limits[cell] if cell else 0.0
                found[line, k] = Found(values, cell, limit, _DIGITS[one.metric])
        name = named(asked.data, f"{one.data}_test.parquet", one.data)
        lines = [
            f"## Table {table}: {one.metric}, {name}, degree {one.degree}\n",
            *([_WHY[table]] if any(one.is_marked for one in found.values()) else []),
            *by_size(found),
            *by_pool(found),
        ]
        return Section(lines, summary(table, found))

    return section


def _order(line: Line) -> tuple[object, ...]:
    """What the paper is about first: ternary pools, large before small; the slowest last."""
    methods = (classifying.RAW, "KRP", "Nystroem", "KG-RP", "phi+RP", "P-RP")
    starts = [line.method.startswith(name) for name in methods]
    rank = starts.index(True) if True in starts else len(starts)
    first = rank < 3 and (line.p is None or line.p >= LARGEST_OF_SCORES)
    ternary = line.distribution != "gaussian"
    return not first, not ternary, rank, -(line.p or 0), line.t or 0, line.distribution


def _is_run(data: str, line: Line) -> bool:
    return (data, line.method) not in _NOT_RUN and (
        line.method in distances.WAYS
        or line.method == "phi+RP"
        or line.method.startswith(classifying.RAW)
    )


def _scores(asked: Asked, one: Cell, line: Line, k: int | None, most: int | None) -> list[float]:
    keys = (classifying.key(one.data, one.degree, line, k, run, most) for run in range(asked.draws))
    return [found["score"] for found in map(asked.kept.find, keys) if found is not None]


def tried_section(asked: Asked) -> Section:
    """What was changed to see where small differences come from."""
    rows = []
    for trial in distances.TRIALS:
        found = distances.tried(trial, asked.data, asked.kept, rows=asked.rows, runs=asked.runs)
        rows.append([trial.told, *(Found(values).text for values in found)])
    head = ["what was changed", *(f"k = {k:,}" for k in distances.TRIED_SIZES)]
    return Section(["## Tried\n", *markdown(head, rows)])


def review_section(asked: Asked) -> Section:
    """What a review of such features shows."""
    # Only here, as it needs matplotlib.
    from benchmarks import review

    cells = [cell for cell in asked.cells if cell.source == REVIEW]
    return Section(review.section(asked.data, cells, asked.kept, quick=asked.quick))


#: By the names that ``--only`` takes.
SECTIONS: dict[str, Callable[[Asked], Section]] = {
    **{str(table): distance_section(table) for table in DISTANCES},
    **{str(table): score_section(table) for table in SCORES},
    "tried": tried_section,
    "review": review_section,
}


if __name__ == "__main__":
    main()
