"""What is printed for each dialect: strict parsers, an allowlist of words, and sizes."""

import dataclasses
import re

import datafusion
import duckdb
import numpy as np
import pandas as pd
import pglast
import pytest
from sqlfluff.core import FluffConfig, Linter
from support import EVERY_STAGE, dyadic, forms_of, paper_krp, store

import sqlkrp
from sqlkrp.errors import ColumnError, LimitError, ParameterError
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.names import quote, text
from sqlkrp.sql.options import Options
from sqlkrp.sql.preflight import statement_checks
from sqlkrp.sql.side_tables import create_side_table
from sqlkrp.sql.statement import write
from sqlkrp.stages import Linear, Paths, Program
from sqlkrp.summaries.facts import facts

EXECUTED = ("duckdb", "postgres", "sqlite", "datafusion", "clickhouse", "spark")
STAND_INS = {
    "bigquery": "Google's reference implementation of GoogleSQL",
    "mysql": "MariaDB",
    "databricks": "Spark",
}
NAMES = ["height", "Width", "is new", "a'b"]
POOLS = {
    "achlioptas": {"n_hyperplanes": 6},
    "hadamard": {"pool": "hadamard", "block_size": 4},
    "gaussian": {"pool": "gaussian", "n_hyperplanes": 6},
}


def drawn(**parameters):
    data = {name: [1.0, 2.5] for name in NAMES} | {"is new": [True, False]}
    return paper_krp(2, 3, n_terms=2, random_state=0, **parameters).fit(data)


def statements(name, krp):
    """Every kind of statement for a dialect, and its side tables' DDL."""
    outputs = ("columns", "array") if DIALECTS[name].array else ("columns",)
    for form in forms_of(name):
        for output in outputs:
            one = krp.statement("lake.t", form=form, output=output, keep=["id"], dialect=name)
            yield one.text
        sparse = {"long": ("r", "f", "v"), "form": form, "dialect": name}
        yield krp.statement("lake.t", **sparse).text
        yield krp.statement("lake.t", rows="r", keep=["id"], **sparse).text
    for table, columns in one.side_tables.items():
        yield create_side_table(table, columns, DIALECTS[name])


def of_twelve_rows():
    return pd.DataFrame({name: [1.0, 2.5, 0.5] * 4 for name in NAMES} | {"is new": [True] * 12})


def of_landmarks(name):
    """Statements of distances, exponentials and cosines, which are words and no other syntax."""
    scaled = {"scaling": "standard", "clip": 1.0, "nulls": "mean"}
    one = EVERY_STAGE["distances"](**scaled, size=2).fit(of_twelve_rows())
    for form in forms_of(name):
        yield one.to_sql("lake.t", form=form, dialect=name)


def of_every_stage(name):
    """Statements that have, together, each kind of stage, policy, source and output."""
    data = of_twelve_rows()
    products = EVERY_STAGE["products"](nulls="propagate", scaling="unit", size=2).fit(data)
    signs = sqlkrp.RankOneProjection(3, binary=True, random_state=0).fit(NAMES)
    output = "array" if DIALECTS[name].array else "columns"
    sparse, tables = {"long": ("r", "f", "v")}, {}
    for one, options in (
        (products, {"form": "wide", "output": output, "keep": ["id"]}),
        (products, {"form": "tables", "rows": "r", "keep": ["id"], **sparse}),
        (drawn(), {"form": "wide"}),  # which guards itself
        (drawn(), {"form": "wide", **sparse}),
        (signs, {"form": "tables", "output": "bits"}),
    ):
        statement = one.statement("lake.t", dialect=name, **options)
        yield statement.text
        tables |= {tuple(one.dtype for one in columns.values()): (table, columns)
                   for table, columns in statement.side_tables.items()}  # fmt: skip
    for table, columns in tables.values():  # one of those whose columns are of the same types
        yield create_side_table(table, columns, DIALECTS[name])
    beside = with_columns(signs)
    yield from (beside.to_sql("lake.t", form=form, dialect=name) for form in forms_of(name))
    full = sqlkrp.RankOneProjection(3, random_state=0).fit(NAMES)
    yield full.score_sql("a", "b", keys=("id", "id"), dialect=name)


def with_columns(one):
    """A map's features with two columns beside them."""
    prepare, *stages = one.program.stages
    columns = Linear.picked(prepare.n_outputs, np.array([1, 0]), np.array([1.0, 0.5]))
    paths = Paths(prepare.n_outputs, (tuple(stages), (columns,)))
    return one._with_program(Program((prepare, paths), (*one.program.names, "one", "other")))


MAPS = {
    "plain": {},
    "propagate": {"nulls": "propagate", "scaling": "unit", "coef0": 0.5},
    "mean": {"nulls": "mean"},
}


def of_pools():
    """A map of each pool, and of each kind."""
    return [drawn(**POOLS[pool], **MAPS[kind]) for pool, kind in zip(POOLS, MAPS, strict=True)]


# --- an independent parser ------------------------------------------------------------------------

# DataFusion has none of its own there; its SQL is near Postgres's, and it is executed anyway.
FLUFF = {"spark": "sparksql", "datafusion": "postgres"}


def require_parsed(name, statements):
    settings = {"dialect": FLUFF.get(name, name), "templater": "raw"}
    # Of its own steps, of which loops in loops take many.
    settings |= {"large_file_skip_byte_limit": 0, "max_parse_depth": 2000}
    linter = Linter(config=FluffConfig(overrides=settings))
    for statement in dict.fromkeys(statements):
        assert linter.parse_string(statement).violations == [], statement


# What is executed is parsed by its engine, in every test that runs it.
PRINTED = [name for name in DIALECTS if name not in EXECUTED]


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTED)
def test_a_parser_of_the_dialect_accepts_every_stage(name):
    require_parsed(name, of_every_stage(name))


def test_databricks_reads_what_spark_reads():
    texts = [
        [re.sub(r"(?m)^--.*\n", "", one) for one in (*of_every_stage(name), *of_landmarks(name))]
        for name in ("spark", "databricks")
    ]
    assert texts[0] == texts[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark", *(name for name in DIALECTS if name not in EXECUTED)])
def test_a_parser_of_the_dialect_accepts_what_is_made_of_columns(name):
    days = pd.date_range("2020-01-01", periods=4)
    frame = pd.DataFrame({"day": days, "text": ["a", "b's", None, "b's"]})
    one = paper_krp(1, 2, n_terms=1, random_state=0)
    one.fit(frame, categories="auto", dates="auto")
    statement = one.to_sql("t", dialect=name, form="wide")
    require_parsed(name, [statement])
    # A name that is no function's would be parsed as one.
    counted = DIALECTS[name].microseconds.format(value=quote("day", DIALECTS[name]))
    assert counted in statement


@pytest.mark.slow
@pytest.mark.parametrize(("pool", "kind"), list(zip(POOLS, MAPS, strict=True)))
@pytest.mark.parametrize("name", DIALECTS)
def test_a_parser_of_the_dialect_accepts_every_statement(name, pool, kind):
    require_parsed(name, of_landmarks(name))
    require_parsed(name, statements(name, drawn(**POOLS[pool], **MAPS[kind])))


# Commands of clients, which are no SQL; DataFusion's script is run.
LOADED_BY_CLIENTS = {"sqlite", "clickhouse", "oracle", "datafusion"}


def test_a_parser_of_the_dialect_accepts_the_script_that_loads_side_tables(tmp_path):
    for name in set(DIALECTS) - LOADED_BY_CLIENTS:
        for format in DIALECTS[name].load_file:
            folder = tmp_path / f"{name} {format}"
            drawn().save_tables(folder, dialect=name, format=format)
            require_parsed(name, [(folder / "load.sql").read_text()])


def test_that_parser_rejects_what_another_dialect_writes():
    for name, wrong in (
        ("tsql", "SELECT a FROM t LIMIT 5"),
        ("sqlite", "SELECT a FROM LATERAL (VALUES (1)) AS t"),
        ("postgres", "SELECT `a` FROM t"),
        ("snowflake", "COPY t FROM 't.csv' (FORMAT csv, HEADER);"),
    ):
        linter = Linter(config=FluffConfig(overrides={"dialect": name, "templater": "raw"}))
        assert linter.parse_string(wrong).violations, name


def test_postgres_own_parser_accepts_every_statement():
    for one in of_pools():
        for statement in statements("postgres", one):
            assert len(pglast.parse_sql(statement)) == 1
    for statement in (*of_every_stage("postgres"), *of_landmarks("postgres")):
        assert len(pglast.parse_sql(statement)) == 1


# --- an allowlist ---------------------------------------------------------------------------------

COMMON = """
    ABS ALL AND AS ASC BY CASE CAST COALESCE COS CREATE CROSS DISTINCT ELSE END EXP FROM GROUP IS
    JOIN LEFT MAX NOT NULL ON OR ORDER OVER PARTITION ROW_NUMBER SELECT SQRT SUM TABLE THEN UNION
    WHEN WHERE WITH
"""
# By the engines' own documentation: functions, clauses and types that the others need not have.
OWN = {
    "duckdb": "BIGINT DOUBLE VARCHAR TINYINT INTEGER TRY_CAST ISFINITE ERROR LIST UNNEST "
    "PIVOT IN USING RANGE PRODUCT MATERIALIZED LIST_TRANSFORM LAMBDA LIST_CONCAT LIST_SUM CONCAT",
    "postgres": "BIGINT DOUBLE PRECISION TEXT SMALLINT INTEGER OFFSET ARRAY ARRAY_AGG LATERAL "
    "VALUES CONCAT SUBSTR MATERIALIZED",
    "sqlite": "REAL INTEGER TEXT TYPEOF IN LIMIT OFFSET JSON_EXTRACT SUBSTR MATERIALIZED "
    "VALUES column1",
    "datafusion": "BIGINT DOUBLE VARCHAR SMALLINT INTEGER TRY_CAST ARRAY_AGG UNNEST RANGE "
    "CONCAT SUBSTR LEAD",
    "clickhouse": "Int64 bitTest Nullable Float64 Int8 Int32 String ARRAY isFinite coalesce "
    "throwIf arrayMap arraySort groupArray if Array SETTINGS ENGINE MergeTree tuple bitAnd range "
    "arrayConcat arraySum ifNull",
    "spark": "BIGINT GETBIT DOUBLE STRING TINYINT INT TRY_CAST STACK ARRAY ELEMENT_AT "
    "TRANSFORM ARRAY_SORT COLLECT_LIST STRUCT RAISE_ERROR AGGREGATE CONCAT SEQUENCE SIZE "
    "SPLIT",
    "snowflake": "BIGINT BITAND BITSHIFTRIGHT FLOAT VARCHAR SMALLINT INTEGER CONCAT SUBSTR "
    "ARRAY_CONSTRUCT GET ARRAY_AGG WITHIN",
    "bigquery": "FLOAT64 INT64 STRING SAFE_CAST ERROR UNNEST OFFSET ORDINAL ARRAY_AGG ARRAY "
    "ARRAY_CONCAT GENERATE_ARRAY CONCAT",
    "redshift": "BIGINT DOUBLE PRECISION VARCHAR SMALLINT INTEGER CONCAT SUBSTR",
    "trino": "BIGINT BITWISE_AND BITWISE_RIGHT_SHIFT_ARITHMETIC DOUBLE VARCHAR INTEGER "
    "TRY_CAST CONCAT SUBSTR UNNEST ARRAY ROW ARRAY_AGG",
    "tsql": "BIGINT GET_BIT FLOAT NVARCHAR COLLATE Latin1_General_100_BIN2 SMALLINT INT "
    "TRY_CAST CONCAT SUBSTRING APPLY VALUES",
    "mysql": "SIGNED DOUBLE CHAR VARBINARY SMALLINT INT CONCAT SUBSTR LENGTH LIMIT",
    "oracle": "BITAND FLOOR POWER BINARY_DOUBLE BINARY_DOUBLE_INFINITY VARCHAR2 NUMBER SUBSTR "
    "NO_MERGE",
}
OWN["databricks"] = OWN["spark"]
# What this package names by itself.
OURS = re.compile(
    r"[xhbfkpqs]\d*|entry_values|picks|picked_\d+|b\d+_\d+|rest\d+|(sums|products|scaled)_\d+|row_id|row_key|feature|value|entry|"
    r"entries|given|source|inputs|columns|complete|incomplete|prepared|kept_rows|directions|lengths?|"
    r"with_constant|with_nothing|gathered|gathered_inputs|hyperplanes?|pool|entry_values|weight|sign|components?|term|terms|"
    r"picks|place|output|constant|points?|coordinates?|filled|(picked|distances|cos|exp|sign)_\d+|"
    r"beside_\d+|behind|y\d+_\d+|"
    r"numbers|bits|score|full_key|signs_key|"
    r"factors?|product|collected|items|key_table|all_keys|name|fill|shift|scale|low|high|part|"
    r"join_use_nulls|prefer_column_name_to_alias|e\d+|d|a|z|i|e|s"
)


def words(statement, dialect):
    parts = [r"--[^\n]*"]
    for one in (dialect.quote, "'"):
        parts.append(rf"{one}(?:[^{one}\\]|\\.|{one}{one})*{one}")
    statement = re.sub("|".join(parts), " ", statement)
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(r"\d[\d.]*e-?\d+d?", " ", statement)))


@pytest.mark.parametrize("name", DIALECTS)
def test_every_word_is_one_that_the_dialect_is_known_to_have(name):
    used = set()
    for one in of_pools():
        for statement in statements(name, one):
            used |= words(statement, DIALECTS[name])
    for statement in (*of_every_stage(name), *of_landmarks(name)):
        used |= words(statement, DIALECTS[name])
    foreign = {word for word in used if not OURS.fullmatch(word)} - set(
        (COMMON + OWN[name]).split()
    )
    assert foreign == set()
    assert set(OWN[name].split()) <= used, "the allowlist names what is not written any more"


def test_a_fence_never_leaks_to_another_dialect():
    fences = {one.fence for one in DIALECTS.values() if one.fence}
    for name, one in DIALECTS.items():
        wide = drawn().to_sql("t", form="wide", dialect=name)
        for fence in fences - {one.fence}:
            # OFFSET '0' of Postgres is no part of SQLite's LIMIT -1 OFFSET 0, nor the reverse.
            assert f"\n{fence}\n" not in wide, (name, fence)
        assert (one.fence in wide) or not one.fence


# --- what is said of it ---------------------------------------------------------------------------


def test_what_nobody_measured_is_not_told_as_a_fact():
    krp = drawn(pool="hadamard")
    for name in DIALECTS:
        found = krp.preflight(dialect=name)
        measured = name in EXECUTED or name == "databricks"
        told = "that" if measured else "that are assumed: nobody measured what"
        where = "Spark" if name == "databricks" else name
        assert re.search(rf"at most the [\d,]+ {told} {where} plans quickly$", found.because)
        own = name if name in ("postgres", "sqlite", "spark") else "duckdb"
        own = "spark" if name == "databricks" else own
        assert facts(krp, found)["seconds_measured_in"] == own, name


def test_where_nothing_is_known_long_statements_are_still_avoided():
    """Achlioptas with s = 1 has no zeros: 799 additions a hyperplane, and a product for each."""
    krp = paper_krp(1, 150, pool="achlioptas", s=1, n_hyperplanes=150, n_terms=1, random_state=0)
    krp.fit([f"c{i}" for i in range(800)])
    found = krp.preflight(dialect="oracle", plan="plain")
    assert found.because == (
        "120,000 additions and products a row, over the 100,000 that are assumed: "
        "nobody measured what oracle plans quickly"
    )
    assert (found.form, krp.preflight(dialect="postgres", plan="plain").form) == ("tables", "wide")


@pytest.mark.parametrize("name", DIALECTS)
def test_what_is_only_generated_says_so_first(name):
    first = drawn().to_sql("t", dialect=name).splitlines()[0]
    assert first.startswith("-- ")
    assert ("never executed there" in first) == (name not in EXECUTED)
    assert re.findall(", but in (.*): compare a few rows", first) == [
        STAND_INS[one] for one in STAND_INS if one == name
    ]


@pytest.mark.parametrize("name", DIALECTS)
def test_side_tables_come_with_ddl_and_how_to_load_them(name, tmp_path):
    files = drawn().save_tables(tmp_path / "side", dialect=name)
    script = (tmp_path / "side" / "load.sql").read_text()
    for path in files:
        if path.suffix == ".csv":
            assert f"{path.stem}{DIALECTS[name].quote} (" in script
            assert script.count(path.name) == 1
    assert ("never executed" in script) == (name not in EXECUTED)
    if "parquet" not in DIALECTS[name].load_file:
        with pytest.raises(ParameterError, match="use 'csv'"):
            drawn().save_tables(tmp_path / "other", dialect=name, format="parquet")


def test_names_and_texts_of_each_dialect():
    for name, quoted, literal in (
        ("postgres", '"a""b`c\\d"', "E'it''s \\\\'"),
        ("sqlite", '`a"b``c\\d`', "'it''s \\'"),
        ("mysql", '`a"b``c\\d`', "'it''s \\\\'"),
        ("bigquery", '`a"b\\`c\\\\d`', "'it\\'s \\\\'"),
        ("clickhouse", '"a""b`c\\\\d"', "'it''s \\\\'"),
        ("spark", '`a"b``c\\d`', "'it\\'s \\\\'"),
    ):
        assert quote('a"b`c\\d', DIALECTS[name]) == quoted
        assert text("it's \\", DIALECTS[name]) == literal


def test_names_that_an_engine_cannot_read_are_refused():
    for name, odd in (("spark", "a${b}"), ("databricks", "${"), ("oracle", 'a"b'),
                      ("mysql", "a\U0001f600"), ("mysql", "a ")):  # fmt: skip
        with pytest.raises(ColumnError, match=f"which {name} reads in no name"):
            quote(odd, DIALECTS[name])
    with pytest.raises(ColumnError, match="has 65 characters, and mysql cuts names after 64"):
        quote("\u00e9" * 65, DIALECTS["mysql"])
    assert len(quote("\u00e9" * 64, DIALECTS["mysql"])) == 66


def test_names_that_an_engine_would_cut_are_refused():
    krp = paper_krp(1, 2, n_terms=1, random_state=0).fit(["\u00e9" * 32])
    with pytest.raises(ColumnError, match="has 64 bytes, and postgres cuts names after 63"):
        krp.to_sql("t", dialect="postgres")
    assert "\u00e9" * 32 in krp.to_sql("t", dialect="sqlite")


def test_a_bare_table_name_folds_as_the_dialect_folds_it():
    krp = drawn()
    assert 'FROM "LAKE"."T"' in krp.to_sql("Lake.t", dialect="snowflake")
    assert 'FROM "lake"."t"' in krp.to_sql("Lake.T", dialect="postgres")
    assert 'FROM "Lake"."t"' in krp.to_sql('Lake."t"', dialect="duckdb")


# --- limits ---------------------------------------------------------------------------------------


def preflight(krp, name, **options):
    return krp.preflight(dialect=name, **options)


def size(found, what):
    (check,) = (one for one in found.checks + found.table_checks if one.what == what)
    return check


def test_sizes_are_those_of_the_statement():
    krp = paper_krp(2, 3, n_terms=1, pool="hadamard", block_size=2, random_state=0)
    krp.fit(["a", "b", "(c"])
    options = {"form": "wide", "plan": "butterflies", "keep": ["id"]}
    found = preflight(krp, "sqlite", **options)
    statement = krp.to_sql("source_table", dialect="sqlite", **options)
    assert size(found, "bytes").found == len(statement.encode())
    # Two blocks of four places, of which the last is empty: a chunk of one column gives its two
    # hyperplanes as one column. Beside them goes the kept one.
    assert size(found, "entries in a SELECT").found == 1 + 2 * 3
    # Casts, guards, a layer of butterflies, and the features.
    assert size(found, "SELECTs inside each other").found == 4
    # Three nested SELECTs; inside, at most a cast of a function's argument in the guard's branch.
    assert size(found, "parentheses inside each other").found == 3 + 3
    assert size(found, "columns in a table").found == 4


@pytest.mark.parametrize(
    ("name", "options", "parameters", "message"),
    [
        ("postgres", {}, {"n_components": 1700}, "at most 1,664 entries in a SELECT.*has 1,700: "
         "use output='array' or fewer components"),
        ("sqlite", {}, {"n_components": 2500}, "at most 2,000 entries in a SELECT.*fewer comp"),
        ("sqlite", {"form": "wide"}, {"n_components": 900, "n_hyperplanes": 2100},
         "at most 2,000.*use form='tables' or"),
        ("clickhouse", {"form": "wide"}, {"n_components": 4000}, "262,144 bytes.*form='tables'"),
        ("oracle", {}, {"n_components": 1200}, "oracle takes at most 1,000 entries"),
        ("trino", {"output": "array"}, {"n_components": 300}, "at most 254 items of an array"),
    ],
)  # fmt: skip
def test_over_a_limit_sql_refuses_in_the_words_of_inspect(name, options, parameters, message):
    krp = paper_krp(2, **{"n_components": 5, "n_terms": 2, "random_state": 0, **parameters})
    krp.fit([f"c{i}" for i in range(20)])
    found = preflight(krp, name, **options)
    with pytest.raises(LimitError, match=message) as refusal:
        krp.to_sql("source_table", dialect=name, **options)
    assert str(refusal.value) == found.problems[0]


def test_auto_takes_the_tables_where_wide_is_too_much():
    # So many components that every hyperplane is needed.
    krp = paper_krp(2, 900, n_hyperplanes=2100, n_terms=2, random_state=0)
    krp.fit([f"c{i}" for i in range(20)])
    assert preflight(krp, "duckdb").form == "wide"
    found = preflight(krp, "sqlite")
    assert (found.form, found.problems) == ("tables", [])
    assert "wide would have 2,100 entries in a SELECT, and sqlite takes 2,000" in found.because


def test_a_table_of_too_many_or_too_long_columns_is_foreseen():
    krp = paper_krp(2, 1018, n_terms=1, random_state=0).fit(["a", "b"])
    # Measured on a server: 1,017 doubles are a row, 1,018 are not.
    assert preflight(krp, "postgres").problems == []
    (problem,) = preflight(krp, "postgres").table_problems
    assert "8,160 bytes in a row of a table, and this statement has 8,168" in problem
    assert preflight(krp, "postgres", output="array").table_problems == []
    fits = paper_krp(2, 1017, n_terms=1, random_state=0).fit(["a", "b"])
    assert preflight(fits, "postgres").table_problems == []


def test_what_does_not_fit_a_select_goes_on_in_an_array():
    """The same statement with a narrow SELECT: as many entries as allowed, the rest packed."""
    krp = paper_krp(2, 5, pool="hadamard", n_terms=2, random_state=0)
    frame = dyadic(6, 20)
    krp.fit(frame)
    narrow = dataclasses.replace(
        DIALECTS["duckdb"], limits=dataclasses.replace(DIALECTS["duckdb"].limits, select_columns=9)
    )
    query = krp.query('"t"', Options(form="wide", keep=("id",)))
    statement = write(query, narrow)
    assert "rest" in statement.text
    (widest,) = (c.found for c in statement.checks if c.what == "entries in a SELECT")
    assert widest == 9
    with duckdb.connect() as connection:
        store(connection, frame.assign(id=range(6)))
        found = np.array(connection.execute(statement.text).fetchall())
    assert np.allclose(found[found[:, 0].argsort(), 1:], krp.transform(frame), rtol=1e-12)


def test_names_and_texts_do_not_count_as_parentheses():
    for name, one in DIALECTS.items():
        odd = "((--'`\"".replace(one.not_in_names or "\0", "")
        odd = quote(odd, one) + text("(((SELECT", one)
        found = statement_checks(
            f"SELECT (1) -- ((\n, {odd}", "wide", one, widest=2, outputs=2, items=0
        )
        assert [check.found for check in found[1:3]] == [1, 1], name


def test_two_columns_are_not_spelt_as_one():
    with pytest.raises(ColumnError, match="one column of those named"):
        paper_krp(2, 3).fit(["a", "A"]).renamed(["A"])


def test_columns_may_be_spelt_as_the_warehouse_spells_them():
    krp = paper_krp(2, 3, random_state=0).fit(["height", "Width"])
    upper = krp.renamed(["ID", "HEIGHT", "WIDTH"])
    statement = upper.to_sql("t", dialect="snowflake")
    assert '"HEIGHT"' in statement
    assert '"height"' not in statement
    assert upper.digest_ == krp.digest_
    assert krp.renamed(["Width", "WIDTH", "height"]).feature_names_in_.tolist() == [
        "height", "Width",
    ]  # fmt: skip
    with pytest.raises(ColumnError, match="may be any of"):
        krp.renamed(["WIDTH", "width", "height"])
    with pytest.raises(ColumnError, match="'height' is not in the columns named"):
        krp.renamed(["Width", "heigth"])


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["duckdb", "datafusion"])
def test_load_sql_loads_names_as_they_are(name, format, tmp_path, monkeypatch):
    """Names that look like numbers, and odd ones: as the printed script loads them."""
    names = ["007", "1.50", "2020", "TRUE", 'a"b', "x,y", "c\nd"]
    krp = paper_krp(2, 3, n_terms=1, random_state=0).fit(names)
    krp.save_tables(tmp_path / "side", dialect=name, format=format)
    script = (tmp_path / "side" / "load.sql").read_text()
    monkeypatch.chdir(tmp_path / "side")
    side = next(full for full in krp.statement("t", form="tables").side_tables if "columns" in full)
    if name == "duckdb":
        with duckdb.connect() as connection:
            connection.execute(script)
            found = connection.execute(f'SELECT name FROM "{side}" ORDER BY feature').fetchall()
    else:
        context = datafusion.SessionContext()
        for statement in re.sub(r"--[^\n]*", "", script).split(";"):
            if statement.strip():
                context.sql(statement).collect()
        table = context.sql(f'SELECT name FROM "{side}" ORDER BY feature').to_arrow_table()
        found = [(one,) for one in table["name"].to_pylist()]
    assert [row[0] for row in found] == names
