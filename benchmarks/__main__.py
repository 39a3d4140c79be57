"""Everything side by side in one run, interleaved: sqlkrp in DuckDB against the round trips.

    python -m benchmarks --data DIR [--quick] [--only ways,sparse] [--out FILE]

Writes Markdown tables and a plot into ``benchmarks/results/``, with the versions, the machine's
cores and the commit. Without the data sets in DIR, made ones of the same shape are used. Needs the
extra ``bench``.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb

from benchmarks import dense, out_of_core, scaling, sparse
from benchmarks.measuring import versions

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run everything and write the report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="one repeat, fewer rows")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, with commas")
    parser.add_argument("--out", type=Path, help="default: results.md, or quick.md")
    given = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    report = [f"# Benchmarks\n\n{versions()} Seconds are medians of interleaved runs.\n"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for section in given.only.split(","):
            report += SECTIONS[section](folder, given.data, 1 if given.quick else 3, given.quick)
    path = given.out or RESULTS / ("quick.md" if given.quick else "results.md")
    path.write_text("\n".join(report))
    print(f"wrote {path}")


Section = Callable[[Path, Path, int, bool], list[str]]


def of_images(section: Callable[..., list[str]]) -> Section:
    """A section about MNIST's rows, in a database of its own."""

    def run(folder: Path, data: Path, repeats: int, quick: bool) -> list[str]:
        rows = 6_000 if quick else 60_000
        with contextlib.closing(duckdb.connect(str(folder / f"{section.__name__}.duckdb"))) as one:
            dense.mnist(one, data, rows)
            return section(one, folder, data, repeats, rows)

    return run


#: By the names that ``--only`` takes.
SECTIONS: dict[str, Section] = {
    "ways": of_images(dense.ways_section),
    "planning": of_images(dense.planning_section),
    "files": of_images(dense.files_section),
    "monomials": dense.monomials_section,
    "sparse": sparse.section,
    "memory": lambda _folder, _data, _repeats, quick: out_of_core.section(quick),
    "scaling": lambda folder, _, repeats, quick: scaling.section(folder, RESULTS, repeats, quick),
}


if __name__ == "__main__":
    main()
