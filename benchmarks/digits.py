"""What features of digits are worth to a linear model: a report of ``examples/digits.py``.

    python -m benchmarks.digits [--out FILE]

Writes ``benchmarks/results/digits.md``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import versions

RESULTS = Path(__file__).parent / "results"
EXAMPLE = Path(__file__).parents[1] / "examples" / "digits.py"


def main() -> None:
    """Run the example, and write what it prints."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.digits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "digits.md")
    given = parser.parse_args()
    command = [sys.executable, str(EXAMPLE)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    head, *figures = printed.splitlines()
    report = [
        "# Digits\n",
        f"`python -m benchmarks.digits`; {versions()}\n",
        f"What `python examples/digits.py` prints, {head}\n",
        *(f"- {line}" for line in figures),
        "",
    ]
    given.out.write_text("\n".join(report))
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
