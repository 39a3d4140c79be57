"""Everything side by side in one run, interleaved: sqlkrp in DuckDB against the round trips.

    python -m benchmarks --data DIR [--quick]

Writes Markdown tables and a plot into ``benchmarks/results/``, with the versions, the machine's
cores and the commit. Without the data sets in DIR, made ones of the same shape are used. Needs the
extra ``bench``.
"""

from __future__ import annotations

import argparse
import tempfile
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
    given = parser.parse_args()
    repeats, rows = (1, 6_000) if given.quick else (3, 60_000)
    RESULTS.mkdir(exist_ok=True)
    report = [f"# Benchmarks\n\n{versions()} Seconds are medians of interleaved runs.\n"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        connection = duckdb.connect(str(folder / "bench.duckdb"))
        dense.mnist(connection, given.data, rows)
        report += dense.ways_section(connection, given.data, repeats, rows)
        report += dense.planning_section(connection, repeats)
        report += dense.files_section(connection, folder, repeats, rows)
        connection.close()
        report += dense.monomials_section(folder, given.data, repeats, given.quick)
        report += sparse.section(folder, given.data, repeats, given.quick)
        report += out_of_core.section(given.quick)
        report += scaling.section(folder, RESULTS, repeats, given.quick)
    path = RESULTS / ("quick.md" if given.quick else "results.md")
    path.write_text("\n".join(report))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
