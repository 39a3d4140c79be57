"""Every dialect: executed or generated, and the size of its statement for d=100, k=500.

python -m benchmarks.dialects
"""

from __future__ import annotations

import sqlkrp
from benchmarks.measuring import PAPER
from sqlkrp.sql.dialects import DIALECTS

POOLS = {"hadamard": "hadamard", "achlioptas, p=1000": "achlioptas"}


def main() -> None:
    """Print the table."""
    print("\n".join(table()))


def table() -> list[str]:
    """Markdown: a line for each dialect, and for each pool the form that ``auto`` takes."""
    names = [f"c{i}" for i in range(100)]
    maps = [
        sqlkrp.KRP(2, 500, pool=pool, n_terms=10, random_state=0, **PAPER).fit(names)
        for pool in POOLS.values()
    ]
    pools = " | ".join(f"{pool}: form, bytes, parentheses, SELECTs" for pool in POOLS)
    lines = [f"| dialect | | {pools} |", "|---|---|" + "---|" * len(maps)]
    for name, dialect in DIALECTS.items():
        how = "executed" if dialect.executed else "generated only"
        lines.append(f"| {name} | {how} | {' | '.join(sizes(krp, name) for krp in maps)} |")
    return lines


def sizes(krp: sqlkrp.FeatureMap, name: str) -> str:
    """One cell: the sizes of one statement, or what stands in the way."""
    found = krp.preflight(dialect=name)
    if any(not check.ok for check in found.checks):
        return next(check.problem(found.dialect) for check in found.checks if not check.ok)
    size = {check.what: check.found for check in found.checks}
    depth, nested = size["parentheses inside each other"], size["SELECTs inside each other"]
    return f"{found.form}, {size['bytes']:,}, {depth}, {nested}"


if __name__ == "__main__":
    main()
