"""What the SQL looks like, and that no name or text gets out of its quotes."""

import dataclasses
import re

import duckdb
import numpy as np
import pytest
import sqlglot
from hostile import HOSTILE, spelt_apart
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from support import FORMS, dyadic, forms_of, paper_krp, store, unguarded

import sqlkrp
from sqlkrp.errors import ParameterError
from sqlkrp.sql.dialects import DIALECTS, dialect
from sqlkrp.sql.names import number, quote, table_name
from sqlkrp.sql.options import Options
from sqlkrp.sql.side_tables import create_side_table
from sqlkrp.sql.statement import write
from sqlkrp.sql.templates import bind, template_text
from sqlkrp.stages import cost

DUCKDB = dialect("duckdb")
TERNARY = [
    {"pool": "achlioptas", "s": 1, "n_hyperplanes": 30},
    {"pool": "achlioptas", "s": 3, "n_hyperplanes": 30},
    {"pool": "hadamard"},
    {"pool": "hadamard", "block_size": 4},
]


@pytest.mark.parametrize("pool", TERNARY)
@pytest.mark.parametrize("plan", ["auto", "plain", "shared"])
def test_the_projection_has_columns_casts_additions_and_nothing_else(pool, plan):
    krp = paper_krp(2, 5, n_terms=3, random_state=0, **pool).fit([f"c{i}" for i in range(21)])
    statement = unguarded(krp, stage="projection", plan=plan)
    text = statement.text
    allowed = (
        exp.Select, exp.From, exp.Subquery, exp.Table, exp.TableAlias, exp.Identifier, exp.Alias,
        exp.Column, exp.Cast, exp.DataType, exp.Add, exp.Sub, exp.Neg, exp.Paren, exp.Literal,
        exp.Star,
    )  # fmt: skip
    tree = sqlglot.parse_one(text, read="duckdb")
    others = {type(node).__name__ for node in tree.walk() if not isinstance(node, allowed)}
    assert others == set()
    additions = sum(1 for _ in tree.find_all(exp.Add, exp.Sub))
    assert additions == statement.plan.additions
    if plan == "plain":
        stage = krp.program_.stages[1]
        assert additions == cost(stage.linear).additions


@pytest.mark.parametrize("pool", [*TERNARY, {"pool": "gaussian", "n_hyperplanes": 30}])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("plan", ["auto", "plain"])
def test_counted_operations_are_those_of_the_statement(pool, degree, plan):
    plan = "auto" if pool["pool"] == "gaussian" else plan
    krp = paper_krp(degree, 5, n_terms=3, random_state=0, **pool).fit(["c0", "c1", "c2", "c3"])
    statement = unguarded(krp, plan=plan)
    tree = sqlglot.parse_one(statement.text, read="duckdb")
    assert sum(1 for _ in tree.find_all(exp.Add, exp.Sub)) == statement.plan.additions
    assert sum(1 for _ in tree.find_all(exp.Mul)) == statement.plan.products
    assert statement.plan.products <= krp.program_.cost.products


def test_a_hundred_thousand_terms_stay_shallow():
    krp = paper_krp(2, 40, s=1, n_terms=10, n_hyperplanes=20, random_state=0)
    text = krp.fit([f"c{i}" for i in range(5000)]).to_sql("t", form="wide", plan="plain")
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    assert deepest <= 20
    assert max(len(re.findall(r" [+-] ", block)) for block in re.split(r"[()]", text)) < 20


def test_the_same_map_writes_the_same_text():
    def text():
        return paper_krp(2, 5, random_state=3).fit(["a", "b"]).to_sql("t", keep=["id"])

    assert text() == text()


def test_the_head_names_the_map():
    krp = sqlkrp.KRP(3, 5, random_state=3).fit(["a", "b"])
    first, second = krp.to_sql("t").splitlines()[:2]
    assert first == f"-- sqlkrp map {krp.digest_}"
    assert second.startswith("-- KRP(degree=3, n_components=5, pool='hadamard'")


def test_the_tables_form_sums_and_multiplies_in_windows():
    krp = paper_krp(2, 5, random_state=3).fit(["a", "b"])
    statement = krp.statement("t", form="tables")
    signed = "CASE WHEN hyperplanes.sign > 0 THEN inputs.value ELSE -inputs.value END"
    assert signed in statement.text
    tree = sqlglot.parse_one(statement.text, read="duckdb")
    partitions = {
        tuple(column.name for column in window.args["partition_by"])
        for window in tree.find_all(exp.Window)
        if window.args.get("partition_by")
    }
    assert partitions == {("row_id", "component", "term"), ("row_id", "component")}
    # What is read twice is computed once: else a row could be numbered differently.
    assert "WITH source AS MATERIALIZED (" in statement.text
    assert all(name.startswith(krp.digest_[:12] + "_") for name in statement.side_tables)
    assert sorted(name[13:] for name in statement.side_tables) == [
        "columns", "components", "hyperplanes", "pool",
    ]  # fmt: skip


def test_the_tables_form_is_short_whatever_the_size():
    few = paper_krp(2, 10).fit([f"c{i}" for i in range(10)])
    many = paper_krp(2, 10, n_hyperplanes=5000).fit([f"c{i}" for i in range(10)])
    sizes = [len(krp.to_sql("t", form="tables")) for krp in (few, many)]
    assert abs(sizes[0] - sizes[1]) < 100


def test_auto_takes_the_form_that_is_planned_quickly():
    narrow = paper_krp(2, 10).fit([f"c{i}" for i in range(64)])
    broad = paper_krp(2, 100).fit([f"c{i}" for i in range(4862)])
    structured = paper_krp(2, 10, pool="hadamard").fit([f"c{i}" for i in range(4862)])
    forms = [krp.statement("t").form for krp in (narrow, broad, structured)]
    assert forms == ["wide", "tables", "wide"]


def test_a_form_that_a_dialect_has_nothing_for_is_refused():
    krp = paper_krp(2, 10).fit(["a", "b"])
    told = "^postgres has no loops over arrays: use form='wide' or form='tables'$"
    with pytest.raises(sqlkrp.errors.LimitError, match=told):
        krp.to_sql("t", form="array", dialect="postgres")
    assert {name for name in DIALECTS if "array" in forms_of(name)} == {
        "duckdb", "clickhouse", "bigquery", "spark", "databricks",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["duckdb", "clickhouse", "bigquery", "spark"])
def test_loops_are_short(name):
    """MNIST's size, 1,000 features: a quarter of a megabyte, where that is the limit."""
    krp = sqlkrp.KRP(2, 1000, random_state=0).fit([f"c{i}" for i in range(784)])
    for output in ("columns", "array"):
        text = krp.to_sql("t", form="array", output=output, dialect=name)
        assert len(text) <= 256 * 1024
        assert "b0_0" not in text  # no column of butterflies


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_relation_has_the_columns_names_as_they_are(connection, form):
    names = spelt_apart([*HOSTILE, "x" * 300])
    frame = dyadic(6, len(names), names=names)
    store(connection, frame)
    krp = paper_krp(2, 3, random_state=0, coef0=1.0).fit(frame)
    with sqlkrp.connect(connection) as db:
        found = db.relation(krp, "t", form=form, keep=names)
        assert found.columns == [*names, "krp_0", "krp_1", "krp_2"]
        assert np.allclose(found.df().iloc[:, -3:].to_numpy(), krp.transform(frame), rtol=1e-12)
    assert connection.execute("SHOW TABLES").fetchall() == [("t",)]


def test_hostile_table_names_work_as_exact_parts(connection):
    frame = dyadic(6, 3)
    store(connection, frame, "last")
    connection.execute("CREATE TABLE canary AS SELECT 1 AS alive")
    krp = paper_krp(2, 3, random_state=0).fit(frame)
    before = "last"
    with sqlkrp.connect(connection) as db:
        for name in spelt_apart([*HOSTILE, "x" * 300]):
            connection.execute(
                f"ALTER TABLE {quote(before, DUCKDB)} RENAME TO {quote(name, DUCKDB)}"
            )
            into, before = ("memory", "main", f"into {name}"), name
            db.create(krp, ("main", name), into)
            found = connection.execute(f"FROM {quote(into[2], DUCKDB)}").fetchall()
            assert np.allclose(found, krp.transform(frame), rtol=1e-12), name
    assert connection.execute("FROM canary").fetchall() == [(1,)]


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_names_that_cannot_be_are_refused(name):
    with pytest.raises(sqlkrp.errors.ColumnError, match=r"name"):
        paper_krp(2, 3).fit([name, "b"]).to_sql("t")
    for names in ({"table": ""}, {"table": "t", "keep": [""]}):
        with pytest.raises((sqlkrp.errors.ColumnError, sqlkrp.errors.ParameterError)):
            paper_krp(2, 3).fit(["a"]).to_sql(**names)
    assert paper_krp(2, 3).fit(["", "b"]).left_out_ == {"": "a name that is empty"}


def test_case_twins_are_refused_where_case_is_ignored():
    krp = paper_krp(2, 3).fit(["a", "A"])
    with pytest.raises(sqlkrp.errors.ColumnError, match="differ only in case"):
        krp.to_sql("t")
    with pytest.raises(sqlkrp.errors.ColumnError, match="differ only in case"):
        paper_krp(2, 3).fit(["a"]).to_sql("t", keep=["KRP_1"])
    with pytest.raises(sqlkrp.errors.ColumnError, match="is there twice"):
        paper_krp(2, 3).fit(["a"]).to_sql("t", keep=["krp_1"])


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("t", ("t",)),
        ("main.t", ("main", "t")),
        ('db."my schema"."a.b"', ("db", "my schema", "a.b")),
        ('"a""b"', ('a"b',)),
        ("tür_1$", ("tür_1$",)),
        ((";",), (";",)),
    ],
)
def test_table_names_as_sql_writes_them(written, parts):
    assert table_name(written) == parts


@pytest.mark.parametrize(
    "written",
    ["", "a b", "a;", "t; DROP TABLE t", 'x"; DROP TABLE t; --', "a..b", '"a', "1a", "a.", "a-b",
     "t -- c", "(SELECT 1)", "a,b", (), (1,), None, 3],
)  # fmt: skip
def test_what_is_no_table_name_is_refused(written):
    with pytest.raises(sqlkrp.errors.ParameterError, match="is no table name"):
        table_name(written)


@settings(deadline=None)
@given(st.text(min_size=1, max_size=30).filter(lambda s: "\0" not in s and s.isprintable()))
def test_any_printable_name_goes_through_duckdb_unchanged(name):
    row = duckdb.execute(f"SELECT 1 AS {quote(name, DUCKDB)}")
    assert row.description[0][0] == name


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_literals_are_exact_doubles(value):
    text = number(value, "float64", DUCKDB)
    found, kind = duckdb.execute(f"SELECT 0 - {text}, typeof({text})").fetchone()
    assert (found, kind) == (0 - value, "DOUBLE")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_sql_cannot_hold_are_refused(value):
    with pytest.raises(sqlkrp.errors.ParameterError, match="only finite"):
        number(value, "float64", DUCKDB)


# --- templates ----------------------------------------------------------------------------------


def test_templates_take_exactly_what_they_name():
    with pytest.raises(AssertionError, match="names values"):
        bind("scale", DUCKDB, {"inputs": "t"}, {})
    with pytest.raises(AssertionError, match="names relations"):
        bind("scale", DUCKDB, {}, {"constant": "2"})
    with pytest.raises(AssertionError, match="names relations"):
        bind("scale", DUCKDB, {"inputs": "t", "other": "u"}, {"constant": "2"})
    bound = bind("scale", DUCKDB, {"inputs": '"t;"'}, {"constant": "2e0"})
    assert " ".join(bound.split()) == (
        'SELECT row_id, feature, value * 2e0 AS value FROM "t;" AS inputs'
    )


def test_every_template_says_what_it_does():
    for name in ("linear", "sum_of_products", "prepare", "collect"):
        assert template_text(name).startswith("-- ")


# --- what the facts of a dialect decide ---------------------------------------------------------
# DuckDB runs these statements, too; its record is changed in one fact to see that path at work.


def written(krp, other, **options):
    query = krp.query('"t"', Options(form=options.get("form", "wide")))
    return write(query, other).text


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_products_without_a_window_that_multiplies(connection, degree):
    frame = dyadic(8, 5)
    store(connection, frame)
    krp = paper_krp(degree, 4, n_terms=3, random_state=0).fit(frame)
    plain = dataclasses.replace(DUCKDB, product=None)
    text = written(krp, plain, form="tables")
    assert "PRODUCT(" not in text
    for name, columns in krp.statement("t", form="tables").side_tables.items():
        connection.execute(create_side_table(name, columns, DUCKDB))
        connection.register("side", columns)
        connection.execute(f'INSERT INTO "{name}" FROM side')
    found = connection.execute(text).df().to_numpy(dtype=float)
    assert np.allclose(found, krp.transform(frame), rtol=1e-12)


def test_bare_names_fold_and_long_names_are_refused_as_the_dialect_says():
    other = dataclasses.replace(DUCKDB, folds="lower", max_identifier_bytes=63)
    assert table_name('Main."My Table"', other) == ("main", "My Table")
    assert quote("x" * 63, other) == '"' + "x" * 63 + '"'
    with pytest.raises(sqlkrp.errors.ColumnError, match="has 64 bytes"):
        quote("\u00e9" * 32, other)


def test_truth_values_are_cast_in_the_dialect_s_own_way(connection):
    connection.execute("CREATE TABLE t AS SELECT true AS a, 2.5 AS b UNION ALL SELECT false, 1")
    with sqlkrp.connect(connection) as db:
        krp = paper_krp(2, 4, random_state=0).fit(db.source("t"))
        assert krp.program_.prepare.booleans == ("a",)
        # A map drawn for a number reads a truth value, and the other way round.
        other = paper_krp(2, 4, random_state=0).fit({"a": [1.0], "b": [True]})
        assert db.verify(other, "t").ok
    steps = dataclasses.replace(DUCKDB, boolean_cast="CAST(CAST({value} AS INT) AS {type})")
    for text in (written(krp, steps), written(krp, steps, form="tables")):
        assert re.search(r'CAST\(CAST\((source\.)?"a" AS INT\) AS DOUBLE\)', text)
        assert 'CAST("b" AS INT)' not in text


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM t", " select\n1", "(SELECT 1)", "WITH a AS (SELECT 1) FROM a", "FROM 'x.csv'"],
)
def test_a_query_is_no_table_but_a_view_of_it_is(query, connection):
    krp = sqlkrp.KRP(2, 3, random_state=0).fit(["a"])
    with sqlkrp.connect(connection) as db:
        for use in (krp.to_sql, db.source, lambda table: db.create(krp, table, "f")):
            with pytest.raises(ParameterError, match="but a query: make a view of it") as no:
                use(query)
            assert "\n" not in str(no.value)
    assert table_name('"SELECT 1"') == ("SELECT 1",)


def test_a_title_of_several_lines_stays_a_comment():
    class Gamma(float):
        def __repr__(self):
            return "1.0\nDROP TABLE t; --"

    krp = paper_krp(2, 3, random_state=0).set_params(gamma=Gamma(1)).fit(["a", "b"])
    assert not [line for line in krp.to_sql("t").splitlines() if line.startswith("DROP")]
