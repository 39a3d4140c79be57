"""Every dialect: executed by what, what its planner does, and sizes of statements (d=100, k=500).

python -m benchmarks.dialects
"""

from __future__ import annotations

import sqlkrp
from benchmarks.measuring import PAPER
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.facts import ITSELF

POOLS = {"hadamard": "hadamard", "achlioptas, p=1000": "achlioptas"}


def main() -> None:
    """Print both tables."""
    print("\n".join([*known(), "", *table()]))


def known() -> list[str]:
    """Markdown: what runs a dialect's text in the tests, and what its planner does."""
    lines = ["| dialect | executed by | nested SELECTs | fence |", "|---|---|---|---|"]
    for name, one in DIALECTS.items():
        executed = {ITSELF: "the engine itself", "": "generated only"}.get(
            one.executed, one.executed
        )
        hint = one.nested_select.removeprefix("SELECT").strip()
        fence = " ".join(f"`{part}`" for part in (one.fence, hint) if part) or "none"
        lines.append(f"| {name} | {executed} | {one.planner} | {fence} |")
    return lines


def table() -> list[str]:
    """Markdown: a line for each dialect, and for each pool the form that ``auto`` takes."""
    names = [f"c{i}" for i in range(100)]
    maps = [
        sqlkrp.KRP(2, 500, pool=pool, n_terms=10, random_state=0, **PAPER).fit(names)
        for pool in POOLS.values()
    ]
    pools = " | ".join(f"{pool}: form, bytes, parentheses, SELECTs" for pool in POOLS)
    lines = [f"| dialect | {pools} |", "|---|" + "---|" * len(maps)]
    for name in DIALECTS:
        lines.append(f"| {name} | {' | '.join(sizes(krp, name) for krp in maps)} |")
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
