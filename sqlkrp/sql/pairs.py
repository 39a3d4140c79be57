"""Sums over the columns of two rows, of all pairs of some rows, and what two such sums differ by.

Each function writes one SELECT over tables that are there; names in it are this file's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.names import balanced, listed, number

__all__ = [
    "BLOCK",
    "PAIR_COLUMNS",
    "compared_pairs",
    "items_as_columns",
    "kernels_of_pairs",
    "mean_deviation",
    "pairs_by_arrays",
    "pairs_by_columns",
    "ranks_of_errors",
    "summary_of_errors",
]

#: Columns of a table whose rows are read for each pair: more do not fit into a page of SQLite's,
#: and then take ten times as long.
BLOCK = 250

#: What a formula of a pair reads: sums and kernels of x with x, y with y, and x with y.
PAIR_COLUMNS = ("vxx", "vyy", "vxy", "kxx", "kyy", "kxy")

_TERMS = {
    "products": "x.{c} * y.{c}",
    "squares": "(x.{c} - y.{c}) * (x.{c} - y.{c})",
    "differences": "ABS(x.{c} - y.{c})",
}


def items_as_columns(columns: Sequence[str], place: str, relation: str, dialect: Dialect) -> str:
    """Columns as doubles ``c0``, ``c1``, ... of rows that are numbered ``i``."""
    double = dialect.float_types["float64"]
    items = [
        f"{dialect.cast.format(value=name, type=double)} AS c{c}" for c, name in enumerate(columns)
    ]
    return f"SELECT\n{listed([f'{place} AS i', *items])}\nFROM {relation} AS every"


def pairs_by_arrays(table: str, of: str, dialect: Dialect) -> str:
    """(i, j, v) for i <= j of a table (i, a) of arrays of doubles."""
    total = dialect.pair_sums[of].format(x="x.a", y="y.a")
    # What does not come out as a number is that of a row without values.
    pairs = f"SELECT x.i AS i, y.i AS j, {total} AS v FROM {table} x JOIN {table} y ON x.i <= y.i"
    return f"SELECT i, j, v FROM (\n{pairs}\n) AS pairs WHERE v IS NOT NULL"


def pairs_by_columns(tables: Sequence[tuple[str, int]], of: str) -> str:
    """The same of tables (i, c0, c1, ...), of so many columns each."""
    parts = []
    for table, count in tables:
        total = balanced([_TERMS[of].format(c=f"c{c}") for c in range(count)], " + ")
        parts.append(
            f"SELECT x.i AS i, y.i AS j, {total} AS v FROM {table} x JOIN {table} y ON x.i <= y.i"
        )
    whole = "\nUNION ALL\n".join(parts)
    if len(parts) == 1:
        return f"SELECT i, j, v FROM (\n{whole}\n) AS pairs WHERE v IS NOT NULL"
    return (
        f"SELECT i, j, SUM(v) AS v FROM (\n{whole}\n) AS pairs GROUP BY i, j "
        "HAVING SUM(v) IS NOT NULL"
    )


def compared_pairs(estimated: str, exact: str, zero: float, dialect: Dialect) -> str:
    """(i, j, k, d, r) of tables (i, j, v) and (i, j, k): of each pair the kernel, the error of it,
    and the relative error of the squared distance.

    That is NULL where the distance is no more than a share ``zero`` of the lengths.
    """
    apart = f"lengths - 2 * k > {number(zero, 'float64', dialect)} * lengths"
    both = (
        "SELECT e.i AS i, e.j AS j, e.v AS v, t.k AS k, ei.v + ej.v AS found, "
        "ti.k + tj.k AS lengths\n"
        f"FROM {estimated} e JOIN {exact} t ON t.i = e.i AND t.j = e.j\n"
        f"JOIN (SELECT i, v FROM {estimated} WHERE i = j) ei ON ei.i = e.i\n"
        f"JOIN (SELECT i, v FROM {estimated} WHERE i = j) ej ON ej.i = e.j\n"
        f"JOIN (SELECT i, k FROM {exact} WHERE i = j) ti ON ti.i = e.i\n"
        f"JOIN (SELECT i, k FROM {exact} WHERE i = j) tj ON tj.i = e.j"
    )
    return (
        f"SELECT i, j, k, v - k AS d, CASE WHEN i < j AND {apart} "
        f"THEN (found - 2 * v) / (lengths - 2 * k) - 1 END AS r\nFROM (\n{both}\n) AS pairs"
    )


def kernels_of_pairs(compared: str) -> str:
    """(x, y): of each pair of different rows the kernel, and what it is estimated to be."""
    return f"(SELECT k AS x, k + d AS y FROM {compared} pairs WHERE i < j)"


def summary_of_errors(compared: str) -> str:
    """What there is of pairs in one row: see ``Draw.of`` for what it means."""
    twice = "CASE WHEN i = j THEN 1 ELSE 2 END"
    items = (
        "COUNT(CASE WHEN i = j THEN 1 END)",
        "COUNT(CASE WHEN i < j THEN 1 END)",
        "COUNT(r)",
        "AVG(ABS(r))",
        "AVG(r * r)",
        "AVG(r)",
        "AVG(CASE WHEN i < j THEN ABS(d) END)",
        "AVG(CASE WHEN i < j THEN d END)",
        f"SUM({twice} * d * d)",
        f"SUM({twice} * k * k)",
    )
    return f"SELECT {', '.join(items)} FROM {compared} pairs"


def ranks_of_errors(compared: str, ranks: Sequence[int]) -> str:
    """The sizes of the relative errors at some ranks, from 1, the least of them first."""
    wanted = ", ".join(map(str, sorted(set(ranks))))
    ranked = (
        "SELECT ABS(r) AS error, ROW_NUMBER() OVER (ORDER BY ABS(r)) AS place "
        f"FROM {compared} pairs WHERE r IS NOT NULL"
    )
    return f"SELECT place, error FROM ({ranked}) AS ranked WHERE place IN ({wanted})"


def mean_deviation(exact: str, variance: str, zero: float, dialect: Dialect) -> str:
    """The mean over pairs of the root of a formula, of a table (i, j, v, k)."""
    pairs = (
        "SELECT ti.v AS vxx, tj.v AS vyy, t.v AS vxy, ti.k AS kxx, tj.k AS kyy, t.k AS kxy\n"
        f"FROM {exact} t JOIN (SELECT i, v, k FROM {exact} WHERE i = j) ti ON ti.i = t.i\n"
        f"JOIN (SELECT i, v, k FROM {exact} WHERE i = j) tj ON tj.i = t.j WHERE t.i < t.j"
    )
    apart = f"kxx + kyy - 2 * kxy > {number(zero, 'float64', dialect)} * (kxx + kyy)"
    formula = f"SELECT {variance} AS variance FROM (\n{pairs}\n) AS pairs WHERE {apart}"
    root = "CASE WHEN variance > 0 THEN SQRT(variance) ELSE 0 END"
    return f"SELECT AVG({root}) FROM (\n{formula}\n) AS formulas"
