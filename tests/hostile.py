"""Names that would get out of quotes, or meet what a statement names itself."""

HOSTILE = [
    'a"b', "a'b", "a`b", "a\\b", "a\\", "a;b", "--x", "--", "/* x */", "/*", "*/", "a b", " ",
    "a.b", "[a]", "{a}", "$1", "%s", ":a", "?", ";", '"', '""', "select", "order", "row", "NULL",
    "1", "\u00fc\u00f1\u0131", "\u00e4\u00f6\u00fc", "\U0001f600", "a\tb", "a\nb", "\n",
    "__proto__", "krp", 'x"; DROP TABLE canary; --', "'; DROP TABLE canary; --",
    "x`; DROP TABLE canary; --", "n" * 62,
]  # fmt: skip

#: Names that statements, templates and side tables have inside.
INNER = [
    "row_id", "feature", "value", "complete", "k0", "k1", "x0", "x1", "h0", "p0", "b0_0", "q0",
    "length", "lengths", "s", "source", "inputs", "columns", "entries", "entry", "given", "name",
    "row_key", "key_table", "keys", "place", "collected", "items", "f0", "hyperplane", "sign",
    "pool", "component", "term", "factor", "product", "point", "coordinate", "output", "constant",
    "fill", "shift", "scale", "t", "picks", "entry_values",
]  # fmt: skip


def spelt_apart(names):
    """These names but for those that are another's in other letters."""
    return [*{name.casefold(): name for name in reversed(names)}.values()][::-1]
