"""One frozen record of facts per dialect.

Nothing else in the package asks which dialect it writes; it asks for a fact. Facts of the engines
that are executed were measured; those of the others are their documentation's, or are read in their
source where that is said.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from sqlkrp.errors import ParameterError
from sqlkrp.sql.facts import (
    DUCKDB_COSTS,
    ITSELF,
    Costs,
    Dialect,
    Limits,
    LoopFacts,
    ShortCosts,
    Unpivot,
    frozen,
)

__all__ = ["DIALECTS", "Dialect", "dialect"]

_BACKTICK_DOUBLED = MappingProxyType({"`": "``"})
_BACKSLASH = MappingProxyType({"\\": "\\\\", "'": "\\'"})
_BACKSLASH_DOUBLED = MappingProxyType({"\\": "\\\\", "'": "''"})

_LINE_ENDS = MappingProxyType({"\n": "\\n", "\r": "\\r"})

_LATERAL_VALUES = Unpivot(
    query=(
        "SELECT row_id, entry.feature, entry.value FROM {source} "
        "CROSS JOIN LATERAL (VALUES {entries}) AS entry(feature, value)"
    ),
    entry="({place}, {value})",
)

_ISO_DATE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"

_DUCKDB = Dialect(
    name="duckdb",
    microseconds="EPOCH_US({value})",
    # Of a time without a zone (before 2.0 DuckDB reads none after minutes), of a date, and of what
    # has a zone; the session's own counts nowhere.
    text_microseconds=(
        f"CASE WHEN {{value}} GLOB '{_ISO_DATE}' THEN EPOCH_US(COALESCE("
        "TRY_CAST({value} || '+00' AS TIMESTAMPTZ), "
        "TRY_CAST({value} || ':00+00' AS TIMESTAMPTZ), "
        "TRY_CAST({value} || ' 00:00:00+00' AS TIMESTAMPTZ), "
        "TRY_CAST({value} AS TIMESTAMPTZ))) END"
    ),
    sqlglot="duckdb",
    executed=ITSELF,
    ignores_case=True,
    folds="",
    float_types=frozen(float32="FLOAT", float64="DOUBLE"),
    literals=frozen(float32="CAST({number} AS {type})", float64="{number}"),
    soft_cast="TRY_CAST({value} AS {type})",
    # There is no cast from BIGNUM to FLOAT.
    cast_by_way_of=frozen(float32="DOUBLE"),
    singles=frozenset(("FLOAT", "TINYINT", "UTINYINT", "SMALLINT", "USMALLINT")),
    boolean_cast="CAST({value} AS {type})",
    is_finite="ISFINITE({value})",
    raise_error="CAST(ERROR({message}) AS {type})",
    array="[{items}]",
    array_type="{type}[{count}]",
    array_item="{array}[{place}]",
    inner_product="ARRAY_INNER_PRODUCT({array}, CAST('[{numbers}]' AS {type}[{count}]))",
    squared_distance=(
        "CAST(POWER(ARRAY_DISTANCE({array}, CAST('[{numbers}]' AS {type}[{count}])), 2) AS {type})"
    ),
    pair_sums=frozen(
        products="ARRAY_INNER_PRODUCT({x}, {y})",
        squares="POWER(ARRAY_DISTANCE({x}, {y}), 2)",
        differences=(
            "LIST_SUM(LIST_TRANSFORM(LIST_ZIP(CAST({x} AS DOUBLE[]), CAST({y} AS DOUBLE[])), "
            "LAMBDA e: ABS(e[1] - e[2])))"
        ),
    ),
    collect="LIST(value ORDER BY feature ASC)",
    loops=LoopFacts(
        first=1,
        loop="LIST_TRANSFORM(RANGE({end}), LAMBDA i: {body})",
        total="LIST_SUM(LIST_TRANSFORM(RANGE({start}, {end}), LAMBDA e: {body}))",
        numbers="CAST('[{items}]' AS {type}[])",
        joined="LIST_CONCAT({arrays})",
    ),
    materialized="AS MATERIALIZED",
    numbering="ROW_NUMBER() OVER ()",
    unpivot=Unpivot(
        query=(
            "SELECT row_id, UNNEST(RANGE({count})) AS feature, UNNEST([{entries}]) AS value "
            "FROM {source}"
        ),
        entry="{value}",
    ),
    position="#{place}",
    pivot=(
        "SELECT row_id, {columns} FROM"
        " (PIVOT {source} ON feature IN ({places}) USING SUM(value) GROUP BY row_id)"
    ),
    pivoted='COALESCE("{place}", 0e0)',
    product="PRODUCT({value}) OVER ({window})",
    # Planning takes about 18 KB an operation: 4.5 GB at so many.
    computes_once=True,
    planner="keeps them: its plans, in the tests",
    limits=Limits(depth=900, nested_selects=200, operations=250_000),
    # On the safe side of what python -m benchmarks.few_rows measures.
    costs=replace(
        DUCKDB_COSTS, short=ShortCosts(looped=5e-8, joined=2e-8, multiplied=5e-7, loaded=1e-6)
    ),
    moved=5e-9,
    side_table_types=frozen(
        int8="TINYINT", int32="INTEGER", float32="FLOAT", float64="DOUBLE", object="VARCHAR"
    ),
    load_file=frozen(
        csv="COPY {table} FROM {file} (FORMAT csv, HEADER);",
        parquet="COPY {table} FROM {file} (FORMAT parquet);",
    ),
)

_POSTGRES = Dialect(
    name="postgres",
    # An enum is compared with none but its own values, and a collation may ignore case.
    same_text='CAST({value} AS TEXT) COLLATE "C" = {text}',
    exact_text='CAST({value} AS TEXT) COLLATE "C"',
    # A NUMERIC before it is a double, so that no part of a second is rounded.
    microseconds="EXTRACT(EPOCH FROM {value}) * 1000000",
    sqlglot="postgres",
    executed=ITSELF,
    max_identifier_bytes=63,
    # What a backslash in a plain text means depends on a setting.
    backslash_text="E'",
    # A bare 1e0 is NUMERIC here, so every number is cast. There is no cast that gives NULL.
    boolean_cast="CAST(CAST({value} AS INTEGER) AS {type})",
    overflow_is_error=True,
    text_type="TEXT",
    array="ARRAY[{items}]",
    array_type="{type}[]",
    array_item="{array}[{place}]",
    collect="ARRAY_AGG(value ORDER BY feature)",
    # Without it a nested SELECT is inlined, and a shared column computed for each use. It is a
    # text so that it is a constant when parallel plans are considered: OFFSET 0 forbids them.
    fence="OFFSET '0'",
    materialized="AS MATERIALIZED",
    numbering="ROW_NUMBER() OVER ()",
    unpivot=_LATERAL_VALUES,
    computes_once=True,
    planner="inlines what has no OFFSET: its plans, in the tests",
    limits=Limits(
        select_columns=1664,
        table_columns=1600,
        row_bytes=8160,
        depth=5000,
        nested_selects=200,
        operations=400_000,
    ),
    costs=Costs(engine="postgres", node=2e-6, addition=1e-8, column=5e-9, item=4e-8),
    moved=1e-7,
    side_table_types=frozen(
        int8="SMALLINT",
        int32="INTEGER",
        float32="REAL",
        float64="DOUBLE PRECISION",
        object="TEXT",
    ),
    load_file=frozen(csv="\\copy {table} FROM {file} WITH (FORMAT csv, HEADER)"),
)

# A column may hold anything in SQLite, and a text would be cast to 0.
_IF_NUMBER = "CASE WHEN TYPEOF({value}) IN ('integer', 'real') THEN CAST({value} AS {type}) END"

# It counts milliseconds. What is no text as it writes dates, may be taken for a day or for a time.
_OF_SQLITE = (
    f"CASE WHEN {{value}} GLOB '{_ISO_DATE}' "
    "THEN ROUND((JULIANDAY({value}) - 2440587.5) * 86400000.0) * 1000.0 END"
)

_SQLITE = Dialect(
    name="sqlite",
    same_text="{value} = {text} COLLATE BINARY",
    exact_text="CAST({value} AS TEXT) COLLATE BINARY",
    microseconds=_OF_SQLITE,
    text_microseconds=_OF_SQLITE,
    greatest="MAX({values})",
    whole_type="INTEGER",
    sqlglot="sqlite",
    executed=ITSELF,
    # In double quotes a name that is no column would be a text.
    quote="`",
    name_escapes=_BACKTICK_DOUBLED,
    ignores_case=True,
    folds="",
    float_types=frozen(float32="REAL", float64="REAL"),
    literals=frozen(float32="{number}", float64="{number}"),
    soft_cast=_IF_NUMBER,
    boolean_cast=_IF_NUMBER,
    is_finite="ABS({value}) <= {largest}",
    # A path that is none is an error that repeats it.
    raise_error=(
        "CAST(JSON_EXTRACT('{{}}', {message} || COALESCE(SUBSTR({value}, 1, 0), '')) AS {type})"
    ),
    text_type="TEXT",
    fence="LIMIT -1 OFFSET 0",
    materialized="AS MATERIALIZED",
    numbering="ROW_NUMBER() OVER ()",
    # In parts: one SELECT an input would take memory in proportion to their square, and one CASE
    # over all of them time.
    unpivot=Unpivot(
        query=(
            "SELECT row_id, entry.column1 AS feature, CASE entry.column1 {entries} END AS value "
            "FROM {source} CROSS JOIN (VALUES {rows}) AS entry"
        ),
        entry="WHEN {place} THEN {value}",
        separator=" ",
        at_most=40,
    ),
    computes_once=True,
    planner="flattens what has no LIMIT: its opcodes, in the tests",
    limits=Limits(
        select_columns=2000,
        table_columns=2000,
        parser_stack=85,  # a view is what takes most of it before the SELECT
        text_bytes=1_000_000_000,
        operations=400_000,
    ),
    costs=Costs(engine="sqlite", node=1e-6, addition=5e-8, column=3e-8),
    side_table_types=frozen(
        int8="INTEGER", int32="INTEGER", float32="REAL", float64="REAL", object="TEXT"
    ),
    load_file=frozen(csv=".import --csv --skip 1 {file} {table}"),
)

_DATAFUSION = Dialect(
    name="datafusion",
    microseconds=(
        "CAST(ARROW_CAST({value}, 'Timestamp(Microsecond, Some(\"+00:00\"))') AS BIGINT)"
    ),
    sqlglot="postgres",
    executed=ITSELF,
    float_types=frozen(float32="REAL", float64="DOUBLE"),
    soft_cast="TRY_CAST({value} AS {type})",
    boolean_cast="CAST({value} AS {type})",
    array="[{items}]",
    array_type="{type}[]",
    array_item="{array}[{place}]",
    collect="ARRAY_AGG(value ORDER BY feature)",
    unpivot=Unpivot(
        query=(
            "SELECT row_id, UNNEST(RANGE({count})) AS feature, UNNEST([{entries}]) AS value "
            "FROM {source}"
        ),
        entry="{value}",
    ),
    # An aggregate more over partitions without an order is planned five times as long: 29 s of ten.
    factor="LEAD({value}, {factor}) OVER ({window} ORDER BY components.factor)",
    # Its parser goes down 50 levels at most: two for a SELECT in another, one for a parenthesis.
    computes_once=True,
    planner="keeps them: its plans, in the tests",
    limits=Limits(depth=28, nested_selects=20, operations=100_000),
    side_table_types=frozen(
        int8="SMALLINT", int32="INTEGER", float32="REAL", float64="DOUBLE", object="VARCHAR"
    ),
    # With the table's own types: it would take names such as 007 for numbers.
    load_file=frozen(
        csv=(
            "CREATE EXTERNAL TABLE sqlkrp_load ({columns}) STORED AS CSV LOCATION {file} "
            "OPTIONS ('format.has_header' 'true', 'format.newlines_in_values' 'true');\n"
            "INSERT INTO {table} SELECT * FROM sqlkrp_load;\nDROP TABLE sqlkrp_load;"
        ),
        parquet=(
            "CREATE EXTERNAL TABLE sqlkrp_load STORED AS PARQUET LOCATION {file};\n"
            "INSERT INTO {table} SELECT * FROM sqlkrp_load;\nDROP TABLE sqlkrp_load;"
        ),
    ),
)

_CLICKHOUSE = Dialect(
    name="clickhouse",
    time_type="DateTime64(6)",
    truth_type="Bool",
    microseconds="toUnixTimestamp64Micro(toDateTime64({value}, 6, 'UTC'))",
    whole_type="Int64",
    bit="bitTest({value}, {place})",
    sqlglot="clickhouse",
    executed=ITSELF,
    name_escapes=MappingProxyType({"\\": "\\\\", '"': '""'}),
    text_escapes=_BACKSLASH_DOUBLED,
    folds="",
    float_types=frozen(float32="Float32", float64="Float64"),
    # A type holds no NULL unless it says so.
    cast="CAST({value} AS Nullable({type}))",
    soft_cast="CAST({value} AS Nullable({type}))",
    boolean_cast="CAST({value} AS Nullable({type}))",
    is_finite="isFinite({value})",
    # Its condition holds only where it is meant, so it may be computed for every row.
    raise_error=(
        "CAST(throwIf(NOT coalesce(isFinite({value}), 0), {message}) AS Nullable({type}))"
    ),
    text_type="String",
    array="[{items}]",
    array_type="Array(Nullable({type}))",
    array_item="{array}[{place}]",
    array_when="if({test}, {array}, [])",  # an array cannot be NULL: it is empty
    # An array of what cannot be NULL would give 0 for an item that it does not have.
    collect=(
        "arrayMap(entry -> CAST(entry.2 AS Nullable(Float64)), "
        "arraySort(groupArray((feature, value))))"
    ),
    loops=LoopFacts(
        first=1,
        loop="arrayMap(i -> {body}, range({end}))",
        total="arraySum(e -> {body}, range({start}, {end}))",
        joined="arrayConcat({arrays})",
        bits="bitAnd({value}, {mask})",
        never_null="ifNull({value}, 0)",  # an array of what may be NULL is not added up
        message=None,
    ),
    unpivot=Unpivot(
        query=(
            "SELECT row_id, entry.1 AS feature, entry.2 AS value FROM {source} "
            "ARRAY JOIN [{entries}] AS entry"
        ),
        entry="({place}, {value})",
    ),
    # Without these, an unmatched outer join gives 0, and a column named as one of our aliases is
    # taken for that.
    settings="SETTINGS join_use_nulls = 1, prefer_column_name_to_alias = 1",
    # It counts lists of arguments as well: 50,000 of its elements are 36,000 of ours, or more.
    # An operation is two of them, and a column on the way more: hardly more operations ever fit.
    computes_once=True,
    planner="inlines them, and computes equal expressions once: its plans, in the tests",
    limits=Limits(
        depth=900, nested_selects=99, text_bytes=262_144, nodes=35_000, operations=15_000
    ),
    side_table_types=frozen(
        int8="Int8", int32="Int32", float32="Float32", float64="Float64", object="String"
    ),
    create_table="CREATE {kind} {table} ({columns}) ENGINE = MergeTree ORDER BY tuple()",
    load_file=frozen(
        csv="INSERT INTO {table} FROM INFILE {file} FORMAT CSVWithNames;",
        parquet="INSERT INTO {table} FROM INFILE {file} FORMAT Parquet;",
    ),
)

_SPARK = Dialect(
    name="spark",
    # A TIMESTAMP is a point in time; what is none has the same text in UTC.
    microseconds=(
        "UNIX_MICROS(CASE WHEN TYPEOF({value}) = 'timestamp' THEN CAST({value} AS TIMESTAMP) ELSE "
        "CAST(CONCAT(CAST(CAST({value} AS TIMESTAMP_NTZ) AS STRING), 'Z') AS TIMESTAMP) END)"
    ),
    bit="GETBIT({value}, {place})",
    sqlglot="spark",
    executed=ITSELF,
    quote="`",
    name_escapes=_BACKTICK_DOUBLED,
    text_escapes=_BACKSLASH,
    ignores_case=True,
    folds="",
    not_in_names=r"\$\{",  # replaced before the statement is parsed
    float_types=frozen(float32="FLOAT", float64="DOUBLE"),
    literals=frozen(float32="CAST({number} AS {type})", float64="{number}"),
    soft_cast="TRY_CAST({value} AS {type})",
    boolean_cast="CAST({value} AS {type})",
    raise_error="CAST(RAISE_ERROR({message}) AS {type})",
    text_type="STRING",
    # A thousand columns are planned and compiled one by one.
    output="array",
    array="ARRAY({items})",
    array_type="ARRAY<{type}>",
    array_item="ELEMENT_AT({array}, {place})",
    pair_sums=frozen(
        **{
            of: f"AGGREGATE(ZIP_WITH({{x}}, {{y}}, (p, q) -> {term}), 0e0, (s, e) -> s + e)"
            for of, term in {
                "products": "p * q",
                "squares": "(p - q) * (p - q)",
                "differences": "ABS(p - q)",
            }.items()
        }
    ),
    collect="TRANSFORM(ARRAY_SORT(COLLECT_LIST(STRUCT(feature, value))), entry -> entry.value)",
    loops=LoopFacts(
        first=0,
        # An array that is read in one place only would be made again in each round of the loop:
        # Spark then takes the two SELECTs for one. And what is never NULL is not looked at for it.
        loop=(
            "CASE WHEN SIZE({array}) < 0 THEN {array} "
            "ELSE TRANSFORM(SEQUENCE(0, {last}), i -> COALESCE({body}, {zero})) END"
        ),
        # A quotient of floats is a double, and the sum would have another type than it began with.
        total=(
            "AGGREGATE(SEQUENCE({start}, {end} - 1), CAST(0 AS {type}), "
            "(s, e) -> CAST(s + {body} AS {type}))"
        ),
        numbers="CAST(SPLIT('{items}', ',') AS ARRAY<{type}>)",
        joined="CONCAT({arrays})",
        # Rows that are in the plan itself (of createDataFrame) are computed while it is optimized,
        # one by one and with the lists read anew for each output. They are not, above a change of
        # partitions; as many as there are at most stay as they are.
        innermost="SELECT /*+ COALESCE(1000000) */",
        never_null="COALESCE({value}, {otherwise})",  # else each operation looks for NULLs
    ),
    unpivot=Unpivot(
        query="SELECT row_id, STACK({count}, {entries}) AS (feature, value) FROM {source}",
        entry="{place}, {value}",
    ),
    computes_once=True,
    planner=(
        "keeps what is used more than once, from 3.3 on and unless "
        "spark.sql.optimizer.collapseProjectAlwaysInline: CollapseProject in its source"
    ),
    # From 500 operations on loops were as quick or quicker; 3,700 took 2.9 s, and in loops .9.
    limits=Limits(depth=900, nested_selects=64, operations=500),
    # Of statements that are new to it, whose Java is compiled; a column costs no more than its sum.
    costs=Costs(engine="spark", node=1e-4, addition=1e-8, column=0.0),
    side_table_types=frozen(
        int8="TINYINT", int32="INT", float32="FLOAT", float64="DOUBLE", object="STRING"
    ),
    load_file=frozen(
        csv=(
            "-- the path as Spark sees it; texts are cast as they are inserted\n"
            "SET spark.sql.storeAssignmentPolicy = legacy;\n"
            "CREATE OR REPLACE TEMPORARY VIEW sqlkrp_load USING csv "
            "OPTIONS (path {file}, header 'true', multiLine 'true', escape '\"');\n"
            "INSERT INTO {table} SELECT * FROM sqlkrp_load;"
        ),
        parquet=(
            "CREATE OR REPLACE TEMPORARY VIEW sqlkrp_load USING parquet OPTIONS (path {file});\n"
            "INSERT INTO {table} SELECT * FROM sqlkrp_load;"
        ),
    ),
)

_SNOWFLAKE = Dialect(
    name="snowflake",
    time_type="TIMESTAMP_NTZ",
    microseconds="DATEDIFF(MICROSECOND, DATE '1970-01-01', {value})",
    bit="BITAND(BITSHIFTRIGHT({value}, {place}), 1)",
    sqlglot="snowflake",
    text_escapes=_BACKSLASH_DOUBLED,
    folds="upper",
    max_identifier_bytes=255,
    float_types=frozen(float32="FLOAT", float64="FLOAT"),
    array="ARRAY_CONSTRUCT({items})",
    array_type="ARRAY",
    array_cast="{array}",
    array_item="CAST(GET({array}, {index}) AS FLOAT)",
    collect="ARRAY_AGG(value) WITHIN GROUP (ORDER BY feature)",
    planner="nobody can know: its documentation says nothing",
    limits=Limits(text_bytes=1_000_000),
    side_table_types=frozen(
        int8="SMALLINT", int32="INTEGER", float32="FLOAT", float64="FLOAT", object="VARCHAR"
    ),
    load_file=frozen(
        csv=(
            "-- first: PUT file://... @sqlkrp_stage AUTO_COMPRESS = FALSE (a stage of yours)\n"
            "COPY INTO {table} FROM @sqlkrp_stage FILES = ({file}) FILE_FORMAT = (TYPE = CSV "
            "SKIP_HEADER = 1 FIELD_OPTIONALLY_ENCLOSED_BY = '\"' ESCAPE_UNENCLOSED_FIELD = NONE);"
        ),
        parquet=(
            "-- first: PUT file://... @sqlkrp_stage AUTO_COMPRESS = FALSE (a stage of yours)\n"
            "COPY INTO {table} FROM @sqlkrp_stage FILES = ({file}) "
            "FILE_FORMAT = (TYPE = PARQUET) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE;"
        ),
    ),
)

_BIGQUERY = Dialect(
    name="bigquery",
    truth_type="BOOL",
    microseconds="UNIX_MICROS(CAST({value} AS TIMESTAMP))",
    whole_type="INT64",
    sqlglot="bigquery",
    executed="Google's reference implementation of GoogleSQL",
    quote="`",
    name_escapes=MappingProxyType({"\\": "\\\\", "`": "\\`", **_LINE_ENDS}),
    text_escapes=MappingProxyType({"\\": "\\\\", "'": "\\'", **_LINE_ENDS}),
    ignores_case=True,
    folds="",
    max_identifier_characters=300,
    float_types=frozen(float32="FLOAT64", float64="FLOAT64"),
    soft_cast="SAFE_CAST({value} AS {type})",
    boolean_cast="CAST(CAST({value} AS INT64) AS {type})",
    overflow_is_error=True,
    raise_error="CAST(ERROR({message}) AS {type})",
    text_type="STRING",
    array="[{items}]",
    array_type="ARRAY<{type}>",
    array_cast="{array}",
    array_item="{array}[ORDINAL({place})]",
    collect="ARRAY_AGG(value ORDER BY feature)",
    loops=LoopFacts(
        first=0,
        loop="ARRAY(SELECT {body} FROM UNNEST(GENERATE_ARRAY(0, {last})) AS i ORDER BY i)",
        total="(SELECT SUM({body}) FROM UNNEST(GENERATE_ARRAY({start}, {end} - 1)) AS e)",
        item="{array}[OFFSET({place})]",
        joined="ARRAY_CONCAT({arrays})",
    ),
    unpivot=Unpivot(
        query=(
            "SELECT row_id, feature, value FROM {source} "
            "CROSS JOIN UNNEST([{entries}]) AS value WITH OFFSET AS feature"
        ),
        entry="{value}",
    ),
    planner=(
        "nobody can know: its documentation says that a WITH is computed for each use, and of "
        "nested SELECTs nothing"
    ),
    limits=Limits(select_columns=10_000, table_columns=10_000, text_bytes=1_000_000),
    side_table_types=frozen(
        int8="INT64", int32="INT64", float32="FLOAT64", float64="FLOAT64", object="STRING"
    ),
    load_file=frozen(
        csv=(
            "-- upload the file to a bucket of yours, and name it here\n"
            "LOAD DATA INTO {table} FROM FILES "
            "(format = 'CSV', skip_leading_rows = 1, allow_quoted_newlines = true, "
            "uris = [{file}]);"
        ),
        parquet=(
            "-- upload the file to a bucket of yours, and name it here\n"
            "LOAD DATA INTO {table} FROM FILES (format = 'PARQUET', uris = [{file}]);"
        ),
    ),
)

_REDSHIFT = Dialect(
    name="redshift",
    microseconds="DATEDIFF(MICROSECOND, DATE '1970-01-01', {value})",
    sqlglot="redshift",
    text_escapes=_BACKSLASH_DOUBLED,
    ignores_case=True,
    max_identifier_bytes=127,
    # As a text: a number of so many digits may be read as a DECIMAL.
    is_finite="ABS({value}) <= CAST('{largest}' AS {double})",
    overflow_is_error=True,
    text_type="VARCHAR(65535)",  # else it is one of 256
    # OFFSET 0 is a fence in the Postgres that it was made of; its documentation wants one above 0.
    planner="nobody can know: its documentation says nothing",
    limits=Limits(select_columns=1600, table_columns=1600, text_bytes=16_000_000),
    side_table_types=frozen(
        int8="SMALLINT",
        int32="INTEGER",
        float32="REAL",
        float64="DOUBLE PRECISION",
        object="VARCHAR(65535)",
    ),
    load_file=frozen(
        csv=(
            "-- upload the file to a bucket of yours, and name it here\n"
            "COPY {table} FROM {file} IAM_ROLE DEFAULT CSV IGNOREHEADER 1;"
        ),
        parquet=(
            "-- upload the file to a bucket of yours, and name it here\n"
            "COPY {table} FROM {file} IAM_ROLE DEFAULT FORMAT AS PARQUET;"
        ),
    ),
)

_TRINO = Dialect(
    name="trino",
    microseconds="ROUND(TO_UNIXTIME({value}) * 1e6)",
    bit="BITWISE_AND(BITWISE_RIGHT_SHIFT_ARITHMETIC({value}, {place}), 1)",
    sqlglot="trino",
    ignores_case=True,
    float_types=frozen(float32="REAL", float64="DOUBLE"),
    soft_cast="TRY_CAST({value} AS {type})",
    boolean_cast="CAST({value} AS {type})",
    array="ARRAY[{items}]",
    array_type="ARRAY({type})",
    array_item="{array}[{place}]",
    collect="ARRAY_AGG(value ORDER BY feature)",
    unpivot=Unpivot(
        query=(
            "SELECT row_id, entry.feature, entry.value FROM {source} "
            "CROSS JOIN UNNEST(ARRAY[{entries}]) AS entry(feature, value)"
        ),
        entry="ROW({place}, {value})",
        at_most=254,  # what an array that is written out may hold
    ),
    computes_once=True,
    planner="inlines what is used once only: InlineProjections in its source",
    limits=Limits(text_bytes=1_000_000, array_items=254),
    side_table_types=frozen(
        # Not every connector has SMALLINT.
        int8="INTEGER",
        int32="INTEGER",
        float32="REAL",
        float64="DOUBLE",
        object="VARCHAR",
    ),
)

_TSQL = Dialect(
    name="tsql",
    time_type="DATETIME2",
    truth_type="BIT",
    microseconds="DATEDIFF_BIG(MICROSECOND, '1970-01-01', {value})",
    bit="GET_BIT({value}, {place})",
    sqlglot="tsql",
    truths=("CAST(0 AS BIT)", "CAST(1 AS BIT)"),
    # Its default collations take letters of both cases for one.
    same_text="{value} COLLATE Latin1_General_BIN2 = {text}",
    ignores_case=True,
    folds="",
    max_identifier_characters=128,
    float_types=frozen(float32="REAL", float64="FLOAT(53)"),
    soft_cast="TRY_CAST({value} AS {type})",
    # A truth value is a BIT, which is a number.
    boolean_cast="CAST({value} AS {type})",
    overflow_is_error=True,
    # Only the refusal of a whole number repeats the text.
    raise_error=(
        "CAST(CAST(CONCAT({message}, SUBSTRING(CAST({value} AS {text}), 1, 0)) AS INT) AS {type})"
    ),
    text_type="NVARCHAR(4000)",
    unpivot=replace(
        _LATERAL_VALUES,
        query=(
            "SELECT row_id, entry.feature, entry.value FROM {source} "
            "CROSS APPLY (VALUES {entries}) AS entry(feature, value)"
        ),
    ),
    planner=(
        "nobody can know: it unnests them, and computes a scalar where it is used; no fence is "
        "documented"
    ),
    limits=Limits(
        select_columns=4096,
        table_columns=1024,
        row_bytes=8060,
        nested_selects=32,
        text_bytes=268_435_456,
    ),
    side_table_types=frozen(
        int8="SMALLINT",
        int32="INT",
        float32="REAL",
        float64="FLOAT(53)",
        object="NVARCHAR(4000) COLLATE Latin1_General_100_BIN2",  # names have case
    ),
    load_file=frozen(
        csv=(
            "-- the path as the server sees it\n"
            "BULK INSERT {table} FROM {file} WITH "
            "(FORMAT = 'CSV', FIRSTROW = 2, ROWTERMINATOR = '0x0a', CODEPAGE = '65001');"
        )
    ),
)

_MYSQL = Dialect(
    name="mysql",
    time_type="DATETIME",
    microseconds="TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {value})",
    # Its default collations take letters of both cases for one.
    same_text="CAST(CONVERT({value} USING utf8mb4) AS BINARY) = CAST({text} AS BINARY)",
    whole_type="SIGNED",
    sqlglot="mysql",
    executed="MariaDB",
    quote="`",
    name_escapes=_BACKTICK_DOUBLED,
    text_escapes=_BACKSLASH_DOUBLED,
    ignores_case=True,
    folds="",
    max_identifier_characters=64,
    # Of Unicode its first plane, and no white space at the end.
    not_in_names=r"[^\0-\uffff]|[ \t-\r]\Z",
    float_types=frozen(float32="FLOAT", float64="DOUBLE"),
    boolean_cast="CAST({value} AS {type})",
    overflow_is_error=True,
    # A text that is no number is cast to 0. A number out of range is refused, and the refusal
    # repeats what was asked.
    raise_error=(
        "CAST(EXP(LENGTH(CONCAT({message}, COALESCE(SUBSTR({value}, 1, 0), ''))) + 1e6) AS {type})"
    ),
    text_type="CHAR",
    fence="LIMIT 18446744073709551615",
    computes_once=True,
    planner="merges what has no LIMIT: Reference Manual, Optimizing Derived Tables",
    limits=Limits(
        select_columns=4096,
        table_columns=1017,
        row_bytes=65_535,
        nested_selects=61,
        text_bytes=67_108_864,
    ),
    side_table_types=frozen(
        # Names as bytes: else they would be compared without case and accents.
        int8="SMALLINT",
        int32="INT",
        float32="FLOAT",
        float64="DOUBLE",
        object="VARBINARY(4000)",
    ),
    load_file=frozen(
        csv=(
            "LOAD DATA LOCAL INFILE {file} INTO TABLE {table} CHARACTER SET utf8mb4 "
            "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' IGNORE 1 LINES;"
        )
    ),
)

_ORACLE = Dialect(
    name="oracle",
    truth_type="NUMBER(1)",
    microseconds="(CAST({value} AS DATE) - DATE '1970-01-01') * 86400000000",  # whole seconds
    truths=("0", "1"),
    whole_type="NUMBER(19)",
    bit="BITAND(FLOOR({value} / POWER(2, {place})), 1)",
    sqlglot="oracle",
    folds="upper",
    max_identifier_bytes=128,
    not_in_names='"',
    float_types=frozen(float32="BINARY_FLOAT", float64="BINARY_DOUBLE"),
    # Truth values are numbers before version 23.
    boolean_cast="CAST(CAST({value} AS NUMBER) AS {type})",
    # A literal is a NUMBER first, and those end at 1e126. NaN is larger than all others.
    is_finite="ABS({value}) < BINARY_DOUBLE_INFINITY",
    text_type="VARCHAR2(4000)",
    raise_error=("CAST({message} || SUBSTR(CAST({value} AS {text}), 1, 0) AS {type})"),
    nested_select="SELECT /*+ NO_MERGE */",
    computes_once=True,
    planner="merges what has no such hint: SQL Language Reference, NO_MERGE",
    limits=Limits(select_columns=1000, table_columns=1000),
    side_table_types=frozen(
        int8="NUMBER(3)",
        int32="NUMBER(10)",
        float32="BINARY_FLOAT",
        float64="BINARY_DOUBLE",
        object="VARCHAR2(4000)",
    ),
    load_file=frozen(csv="-- in SQLcl or SQL Developer:\nLOAD {table} {file}"),
)

DIALECTS: dict[str, Dialect] = {
    one.name: one
    for one in (
        _DUCKDB,
        _POSTGRES,
        _SQLITE,
        _DATAFUSION,
        _CLICKHOUSE,
        _SPARK,
        _SNOWFLAKE,
        _BIGQUERY,
        _REDSHIFT,
        _TRINO,
        _TSQL,
        _MYSQL,
        _ORACLE,
        replace(_SPARK, name="databricks", sqlglot="databricks", executed="Spark"),
    )
}


def dialect(name: str) -> Dialect:
    """The facts of a dialect by name."""
    if not isinstance(name, str) or name not in DIALECTS:
        allowed = ", ".join(sorted(DIALECTS))
        raise ParameterError(f"dialect={name!r} is not known: use one of {allowed}")
    return DIALECTS[name]
