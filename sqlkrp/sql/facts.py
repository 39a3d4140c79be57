"""The facts of a SQL dialect that generated text depends on: what a record holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

__all__ = [
    "DUCKDB_COSTS",
    "ITSELF",
    "Costs",
    "Dialect",
    "Limits",
    "LoopFacts",
    "ShortCosts",
    "Unpivot",
    "frozen",
]

#: What runs the text of a dialect, if that is the engine it is for.
ITSELF = "itself"


def frozen(**items: str) -> Mapping[str, str]:
    """Texts by name, read-only."""
    return MappingProxyType(items)


# e to the power of less is no normal number of the dtype.
_LEAST_EXPONENT = {"float32": "-87", "float64": "-708"}
# In an engine that only has doubles, a number that is none in single precision is missing, too.
_LARGEST = {"float32": "3.4028234663852886e38", "float64": "1.7976931348623157e308"}


def _default(items: dict[str, str]) -> Any:
    return field(default_factory=lambda: MappingProxyType(items))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a dialect's engine takes; None where there is no limit, or none is known."""

    select_columns: int | None = None
    """Entries of one SELECT, nested ones too."""
    table_columns: int | None = None
    row_bytes: int | None = None
    """Bytes of a row of a table, where numbers cannot be moved out of it."""
    depth: int | None = None
    """Parentheses inside each other."""
    nested_selects: int | None = None
    parser_stack: int | None = None
    """Parentheses, and six for each SELECT in another, where the parser has one stack for both."""
    text_bytes: int | None = None
    nodes: int | None = None
    """Names, numbers and operators of a statement."""
    array_items: int | None = None
    """Items of an array that is written out."""
    operations: int | None = None
    """Additions and products of a wide statement that were seen planned in reasonable time."""


#: Taken in place of ``Limits.operations`` where nobody measured it: what the slowest planner of
#: the engines that take statements of such size was seen to plan.
ASSUMED_OPERATIONS = 100_000


@dataclass(frozen=True, kw_only=True)
class ShortCosts:
    """Seconds, about, of the forms whose text is short: quick to plan, and slow in each row."""

    looped: float
    """One operation in a loop over an array, in one row."""
    joined: float
    """One addition of what is joined, in one row."""
    multiplied: float
    """One product of what is joined, in one row."""
    loaded: float
    """To load one operation's numbers into a side table, once."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds, about, in one engine: only what they are to each other decides anything."""

    engine: str
    """Where they were measured."""
    node: float
    """To parse, bind and plan one name or operator."""
    addition: float
    """One addition in one row."""
    column: float
    """One more column on the way, in one row: to be written and read again."""
    item: float = math.inf
    """To read one item of an array, in one row; infinite where there are no arrays."""
    short: ShortCosts | None = None
    """None where few rows gain nothing by such forms, or nobody measured that."""


#: Fitted to the runs of 18 plans of 60,000 x 784 FLOAT, on two cores.
DUCKDB_COSTS = Costs(engine="duckdb", node=13e-6, addition=5e-10, column=8e-10, item=1e-7)


@dataclass(frozen=True, kw_only=True)
class Unpivot:
    """A query (row_id, feature, value) with one row for each input x0, x1, ... of a row."""

    query: str
    """Of {entries} and {source}; {count} is how many entries there are, {rows} their places."""
    entry: str
    """One entry, of its {place} from 0 and its {value}; of {source} too in a union."""
    separator: str = ", "
    at_most: int | None = None
    """Entries of one query; more go into several, united."""


@dataclass(frozen=True, kw_only=True)
class LoopFacts:
    """How arrays are made, read and added up, where an engine has loops over them."""

    first: int
    """The place of an array's first item."""
    loop: str
    """An array of {body}, which reads an {array}, for each whole number i from 0 to {last}, the one
    before {end}; {zero} is a number of its type."""
    total: str
    """The sum of {body}, of a {type}, for each whole number e from {start} to before {end}."""
    item: str = "{array}[{place}]"
    """One item of an array."""
    numbers: str = "[{items}]"
    """An array of constants, which are of a {type}."""
    joined: str
    """Arrays, from {arrays} with commas, as one."""
    bits: str = "({value} & {mask})"
    """The bits of a whole number that a mask has."""
    innermost: str = "SELECT"
    """How the SELECT from the source begins."""
    never_null: str = "{value}"
    """A value as one that is never NULL, where loops ask for that, or are quicker so: a number of
    its type stands {otherwise}."""
    nan: str = "CAST('NaN' AS {type})"
    """The number of a {type} that is none."""
    message: str | None = "CONCAT({beginning}, {name})"
    """A message for people, of the {beginning} of all and a {name} that an array has. None where
    only a constant can be one: then columns are looked at before they are in an array."""


#: Where nothing is better: one SELECT an input.
UNION = Unpivot(
    query="{entries}",
    entry="SELECT row_id, {place} AS feature, {value} AS value FROM {source}",
    separator="\nUNION ALL\n",
)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One dialect. The defaults are what most have in common."""

    name: str
    sqlglot: str
    """Its name for sqlglot."""
    executed: str = ""
    """What the tests run the text in: ``ITSELF``, or what stands in for it; empty if nothing does.
    Unless it is the engine itself, the statement's first line says so."""

    # --- names and texts ----------------------------------------------------------------------
    quote: str = '"'
    """The character around identifiers."""
    name_escapes: Mapping[str, str] = _default({'"': '""'})
    """What is written for a character inside an identifier."""
    text_escapes: Mapping[str, str] = _default({"'": "''"})
    """What is written for a character inside a text."""
    backslash_text: str = ""
    """What a text that holds a backslash begins with, where it then has escapes of its own."""
    ignores_case: bool = False
    """Whether two quoted names that differ only in case are one name."""
    folds: str = "lower"
    """How a bare name is folded: ``"lower"``, ``"upper"``, or not at all."""
    max_identifier_bytes: int | None = None
    """Longer names are cut or refused by the engine, so they are refused here."""
    max_identifier_characters: int | None = None
    """Longer names are refused, where an engine counts characters and not bytes."""
    not_in_names: str = ""
    """What no name may hold, however it is quoted, as a pattern."""

    # --- numbers ------------------------------------------------------------------------------
    float_types: Mapping[str, str] = _default({"float32": "REAL", "float64": "DOUBLE PRECISION"})
    """The type of each NumPy dtype that features are computed in."""
    literals: Mapping[str, str] = _default(
        dict.fromkeys(("float32", "float64"), "CAST({number} AS {type})")
    )
    """How a number is written so that its type is exactly that of a NumPy dtype."""
    cast: str = "CAST({value} AS {type})"
    """A cast that fails loudly, for values known to fit."""
    soft_cast: str = "CAST({value} AS {type})"
    """A cast that, where there is such, gives NULL for a value that does not fit."""
    cast_by_way_of: Mapping[str, str] = _default({})
    """The type that a number is cast to before it is cast to that of one of these NumPy dtypes."""
    singles: frozenset[str] = frozenset()
    """Types of columns that are cast to single precision at once, as it holds all their numbers."""
    boolean_cast: str = "CAST(CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END AS {type})"
    """A truth value as 0 or 1."""
    is_finite: str = "ABS({value}) <= CAST({largest} AS {double})"
    """True for a number, false or NULL for NaN, an infinity and NULL."""
    functions: Mapping[str, str] = _default(
        {
            "cos": "COS({value})",
            "exp": "EXP({value})",
            "sign": "CASE WHEN {value} >= 0 THEN 1 WHEN {value} < 0 THEN -1 END",
        }
    )
    """Functions of one number."""
    greatest: str = "GREATEST({values})"
    """The largest of two and more numbers, none of which is NULL."""
    same_text: str = "{value} = {text}"
    """The test that a text is another one, to the letter."""
    exact_text: str = "{value}"
    """A text whose letters of both cases, and whose spaces, an engine tells apart in DISTINCT."""
    microseconds: str = ""
    """Microseconds from 1970-01-01 to a date or a time, which is in UTC or in no time zone."""
    text_microseconds: str | None = None
    """The same of a text as ISO 8601 writes dates and times, NULL for others; None where texts are
    not read as dates."""
    truths: tuple[str, str] = ("FALSE", "TRUE")
    """The truth values."""
    whole_type: str = "BIGINT"
    """Whole numbers of 64 bits."""
    bit: str = "({value} >> {place}) & 1"
    """Bit number {place}, from 0, of a whole number."""
    overflow_is_error: bool = False
    """Whether a float that grows too large, or shrinks to nothing, ends the statement."""
    raise_error: str = (
        "CAST(CONCAT({message}, COALESCE(SUBSTR(CAST({value} AS {text}), 1, 0), '')) AS {type})"
    )
    """An expression of {value}'s row that stops the statement with a message.

    Where no function raises, a text that is no number does when it is cast. The row's own value
    in it keeps a planner from casting it beforehand."""
    text_type: str = "VARCHAR"
    time_type: str = "TIMESTAMP"
    """That of a date with a time, in no time zone."""
    truth_type: str = "BOOLEAN"

    output: str = "columns"
    """How features are written where nobody says."""

    # --- arrays; all of it None where there are none ------------------------------------------
    array: str | None = None
    """An array of {items}."""
    array_type: str | None = None
    """The type of an array of {count} items of a {type}."""
    array_cast: str = "CAST({array} AS {array_type})"
    """An {array} as one of such a type."""
    array_item: str | None = None
    """One item of an {array}: number {place} from 1, {index} from 0."""
    array_when: str = "CASE WHEN {test} THEN {array} END"
    """An {array} in rows that pass a {test}, and none in the others."""
    inner_product: str | None = None
    """The sum of products of the items of an {array} and of {count} {numbers} of a {type}."""
    squared_distance: str | None = None
    """The sum of squares of what these are apart."""
    pair_sums: Mapping[str, str] = _default({})
    """What is added up over the items of two arrays of doubles, {x} and {y}: products, squares of
    differences, and differences. Empty where columns are quicker."""
    collect: str | None = None
    """The aggregate of column value as an array, in the order of column feature."""
    loops: LoopFacts | None = None
    """How to loop over arrays; None where an engine cannot, or nobody tried."""

    # --- queries ------------------------------------------------------------------------------
    position: str | None = None
    """How column number {place}, from 1, of the only relation below is written, if that is parsed
    faster than its name."""
    fence: str = ""
    """What keeps a nested SELECT from being inlined and computed again; empty where it is not."""
    nested_select: str = "SELECT"
    """How a nested SELECT begins, where a hint keeps it from being inlined."""
    computes_once: bool = False
    """Whether what a nested SELECT names is computed once, however often it is used: by the planner
    itself, or by the fence. Without, nobody could find out."""
    planner: str = ""
    """What its planner does with nested SELECTs, and how that is known."""
    materialized: str = "AS"
    """How a common table expression is computed once."""
    numbering: str = "ROW_NUMBER() OVER (ORDER BY {everything})"
    """Numbers the rows of a relation. Where it may be computed twice, it must come out the same:
    ordered by {everything} that is read of a row, rows that tie are equal."""
    unpivot: Unpivot = UNION
    pivot: str | None = None
    """A query of the {columns} that values of a {source} become, summed up for each row_id, where
    that reads every entry once: those of the features {places}. None where nothing is better than
    an aggregate a column, which reads all of them each time."""
    pivoted: str = ""
    """One of these columns, of its {place}: 0 where there is no entry."""
    product: str | None = None
    """A window aggregate that multiplies."""
    factor: str = "MAX(CASE WHEN components.factor = {factor} THEN {value} END) OVER ({window})"
    """Where there is none: the {value} of one factor of a term, seen from the term's first."""
    settings: str = ""
    """What ends a statement."""
    limits: Limits = field(default_factory=Limits)
    costs: Costs = DUCKDB_COSTS
    """What operations cost there. Where nobody measured that, DuckDB's costs are taken."""
    moved: float = math.inf
    """Seconds, about, to hand one number of one row to NumPy or back; infinite where NumPy does not
    compute for the engine, or nobody measured that."""

    # --- side tables --------------------------------------------------------------------------
    side_table_types: Mapping[str, str] = _default(
        {
            "int8": "SMALLINT",
            "int32": "INTEGER",
            "float32": "REAL",
            "float64": "DOUBLE PRECISION",
            "object": "VARCHAR",
        }
    )
    """The column type of a side table for each NumPy dtype."""
    create_table: str = "CREATE {kind} {table} ({columns})"
    load_file: Mapping[str, str] = _default(
        {"csv": "-- load {file} (CSV with a header) into {table}"}
    )
    """What fills a side table from a file, for each format."""

    def most_operations(self) -> tuple[int, str]:
        """How many additions and products a wide statement should have, and how that is known."""
        most = self.limits.operations
        if most is not None:
            where = self.name if self.executed == ITSELF else self.executed
            return most, f"the {most:,} that {where} plans quickly"
        most = ASSUMED_OPERATIONS
        unknown = f"nobody measured what {self.name} plans quickly"
        return most, f"the {most:,} that are assumed: {unknown}"

    def caution(self) -> str:
        """What is to be said of every text for it; empty where the tests run it in the engine."""
        if self.executed == ITSELF:
            return ""
        never = f"generated for {self.name}, and never executed there by sqlkrp's tests"
        return f"{never}, but in {self.executed}" if self.executed else never

    def finite(self, value: str, dtype: str) -> str:
        """The test that a value is a number of this NumPy dtype."""
        return self.is_finite.format(
            value=value, largest=_LARGEST[dtype], double=self.float_types["float64"]
        )

    def function(self, name: str, value: str, dtype: str) -> str:
        """A function of a value, which it may read more than once, of this NumPy dtype."""
        if name == "sigmoid":  # of which no part leaves the range of numbers
            small, large = (self.function("exp", one, dtype) for one in (value, f"-{value}"))
            return f"CASE WHEN {value} >= 0 THEN 1 / (1 + {large}) ELSE {small} / (1 + {small}) END"
        result = self.functions[name].format(value=value)
        if name == "exp" and self.overflow_is_error:
            return f"CASE WHEN {value} < {_LEAST_EXPONENT[dtype]} THEN 0 ELSE {result} END"
        return result

    def error(self, message: str, value: str, type_name: str) -> str:
        """An expression that stops the statement; ``message`` is a literal."""
        return self.raise_error.format(
            message=message, value=value, type=type_name, text=self.text_type
        )

    def array_of(self, type_name: str, count: int) -> str:
        """The type of an array of so many numbers of a type."""
        assert self.array_type is not None
        return self.array_type.format(type=type_name, count=count)

    def typed_array(self, array: str, type_name: str, count: int) -> str:
        """An array as one of that type."""
        return self.array_cast.format(array=array, array_type=self.array_of(type_name, count))

    def item(self, array: str, index: int) -> str:
        """One item of an array, from 0."""
        assert self.array_item is not None
        return self.array_item.format(array=array, index=index, place=index + 1)
