"""Maps and models in projects of dbt and SQLMesh: what is written, and what these make of it."""

import ast
import contextlib
import csv
import fcntl
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import jinja2
import numpy as np
import pandas as pd
import psycopg
import psycopg.conninfo
import pytest
import yaml
from engines import DuckDB
from hostile import HOSTILE
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from support import dyadic
from test_every_map import EVERY

import sqlkrp
from sqlkrp.errors import ColumnError, ParameterError, TargetExistsError
from sqlkrp.projects.parity import MOST_BYTES
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.jinja import mark, raw, templated
from sqlkrp.sql.names import quote

NAME = "sales_features"

#: Names that would get out of a template.
BRACES = [
    "{% endraw %}", "{%- endraw -%}{{ 1 / 0 }}", "{{ ref('nothing') }}", "{# note", "#}", "{", "{%",
    "}}", "a\rb", "a\r\nb", "{% raw %}", "{{% endraw %}", "{%\r endraw %}", "{% endmacro %}",
]  # fmt: skip


def rendered(text, **names):
    """What Jinja makes of a template, which dbt reads with the same settings."""
    return jinja2.Environment(autoescape=False).from_string(text).render(**names)


# --- references -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*HOSTILE, *BRACES])
def test_names_stand_in_a_template_as_they_are(name):
    assert rendered(raw(name)) == name
    text = f"{name}{mark('table')}{name}"
    assert rendered(templated(text, {"table": "{{ 1 + 1 }}"})) == f"{name}2{name}"


@given(st.text(st.sampled_from("{}%# \r\nendraw-+'\"\\")))
def test_any_text_stands_in_a_template_as_it_is(text):
    assert rendered(raw(text)) == text


REFERENCES = [
    "{{ ref('sales') }}", '{{ref("sales")}}', "{{ ref('shop', 'sales') }}",
    "{{ source('shop', 'sales') }}", " {{  source( 'shop','sales-2.x' )  }} ",
]  # fmt: skip


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("form", ["wide", "tables"])
def test_a_reference_makes_a_model_of_the_statement(krp, reference, form):
    model = krp.to_sql(reference, form=form)
    expected = krp.to_sql(("somewhere", "t"), form=form)
    found = rendered(model, ref=lambda *_: '"somewhere"."t"', source=lambda *_: '"somewhere"."t"')
    assert found == expected
    assert reference.strip() in model


@pytest.mark.parametrize(
    "table",
    [
        "{{ ref('t'); 1 }}", "{{ ref(t) }}", "{{ ref('t') }} s; DROP TABLE x", "{{ source('t') }}",
        "{{ ref('a'b') }}", "{{ ref('t') ~ run_query('x') }}", "{{ run_query('t') }}", "{{ this }}",
        "{{ ref('t' }}", "{{ ref('\u00e4') }}", "{{ ref('a\\'b') }}", "{{", "{{ ref('a b') }}",
        "{{ ref('t') }}{{ ref('t') }}", "{{ ref('t', 'u', 'v') }}", "{{ ref('t\n') }}",
    ],
)  # fmt: skip
def test_what_is_no_reference_to_the_letter_is_refused(krp, table):
    with pytest.raises(ParameterError, match=r"no reference of dbt: write \{\{ ref"):
        krp.to_sql(table)


@pytest.mark.parametrize("table", ["{% x %}", "{# x #}", "t {{ ref('t') }}", "{ref}"])
def test_other_jinja_is_no_table(krp, table):
    with pytest.raises(ParameterError, match="is no table name"):
        krp.to_sql(table)


def test_an_identifier_may_look_like_a_reference(krp):
    quoted = """ "{{ ref('t') }}" """
    assert """FROM "{{ ref('t') }}" s""" in krp.to_sql(quoted, form="wide")


def test_a_reference_to_the_rows_of_sparse_input(krp):
    options = {"long": ("r", "f", "v"), "form": "wide"}
    model = krp.to_sql("{{ ref('t') }}", rows="{{ ref('rows') }}", **options)
    expected = krp.to_sql("t", rows="rows", **options)
    assert rendered(model, ref='"{}"'.format) == expected


def test_the_command_prints_a_model_that_works_as_it_is(run_cli, krp, tmp_path):
    krp.save(tmp_path / "m.json")
    printed = run_cli("sql", "m.json", "--table", "{{ ref('t') }}").stdout
    assert rendered(printed, ref='"{}"'.format) == krp.to_sql("t").rstrip("\n")
    assert run_cli("sql", "m.json", "--table", "t").stdout.endswith(";\n")
    run_cli("sql", "m.json", "--table", "{{ ref(t) }}", code=2)


# --- what is written ------------------------------------------------------------------------------


def written(fitted, folder, **options):
    """The files of a model, by their paths in its project."""
    options = {"name": NAME, "source": "shop.sales", "key": "id", **options}
    paths = fitted.to_dbt(folder, **options)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


class Project:
    """A project as dbt would run it in an engine that is open: seeds, the model, and the test."""

    def __init__(self, files, place, source="t"):
        self.files, self.place = files, place
        self.relations = {"shop.sales": place.quoted(source)}
        for path in files:
            if path.endswith(".csv"):
                self._seed(Path(path).stem)

    def _seed(self, name):
        text = self.files[f"seeds/{name}.csv"]
        properties = yaml.safe_load(self.files[f"models/{NAME}.yml"])
        (its,) = [one for one in properties["seeds"] if one["name"] == name]
        head, *rows = csv.reader(io.StringIO(text, newline=""))
        types = its["config"]["column_types"]
        double = dialect(self.place.name).float_types["float64"]
        columns = [f"{one} {types.get(one, double)}" for one in head]
        table = self.place.quoted(name)
        self.place.drop(name)
        self.place.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        values = [", ".join("'" + cell.replace("'", "''") + "'" for cell in row) for row in rows]
        self.place.execute(f"INSERT INTO {table} VALUES {', '.join(f'({one})' for one in values)}")

    def render(self, path, **more):
        names = {
            "ref": self.place.quoted,
            "source": lambda *parts: self.relations[".".join(parts)],
            "var": lambda name, default: default,
            "config": lambda **_: "",
            "execute": False,
            "is_incremental": lambda: False,
        }
        return rendered(self.files[path], **names, **more)

    def macro(self, relation):
        environment = jinja2.Environment(autoescape=False)
        template = environment.from_string(self.files[f"macros/{NAME}.sql"])
        return getattr(template.make_module({"ref": self.place.quoted}), NAME)(relation)

    def build(self):
        self.place.drop(NAME)
        model = self.render(f"models/{NAME}.sql")
        self.place.execute(f"CREATE TABLE {self.place.quoted(NAME)} AS {model}")

    def failing(self):
        """The rows that the test finds."""
        return self.place.rows(self.render(f"tests/{NAME}_parity.sql", **{NAME: self.macro}))


def with_key(frame):
    return frame.assign(id=range(10, 10 + len(frame)))


@pytest.fixture
def sales(place):
    place.store(with_key(dyadic(50, 6)))
    return place


FEW = ("nystroem, rbf", "fourier", "rank one, signs", "tensor sketch", "complex", "monomials")


@pytest.mark.parametrize("form", ["wide", "tables"])
@pytest.mark.parametrize("rows", [False, True], ids=["made up", "of the table"])
def test_the_test_passes_and_finds_what_is_wrong(sales, tmp_path, rows, form):
    source = sales.database.source("t")
    krp = sqlkrp.KRP(2, 5, random_state=0).fit(source, exclude=["id"])
    options = {"rows": source if rows else None, "form": form, "dialect": sales.name}
    project = Project(written(krp, tmp_path, output="columns", **options), sales)
    project.build()
    assert project.failing() == []
    assert len(sales.rows(f"SELECT * FROM {NAME}")) == 50
    if rows:
        sales.execute(f"UPDATE {NAME} SET krp_3 = krp_3 + 0.001 WHERE id = 12")
        assert [int(key) for (key,) in project.failing()] == [12]
        sales.execute(f"DELETE FROM {NAME} WHERE id = 11")
        sales.execute(f"UPDATE {NAME} SET krp_0 = NULL WHERE id = 10")
        assert sorted(int(key) for (key,) in project.failing()) == [10, 11, 12]
    else:
        project._seed(f"{NAME}_expected")
        sales.execute(f"UPDATE {NAME}_expected SET x3 = x3 + 0.5 WHERE row_key = 7")
        assert [int(key) for (key,) in project.failing()] == [7]


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("rows", [False, True], ids=["made up", "of the table"])
def test_every_kind_of_map_passes(connection_place, tmp_path, name, rows):
    place = connection_place
    fitted = EVERY[name].fit(place.database.source("t"), exclude=["id"])
    source = place.database.source("t") if rows else None
    project = Project(written(fitted, tmp_path, rows=source), place)
    project.build()
    assert project.failing() == []


@pytest.fixture
def connection_place(tmp_path):
    with contextlib.closing(DuckDB(tmp_path / "w.duckdb")) as place:
        place.store(with_key(dyadic(50, 6)))
        yield place


def visits(n=60):
    """Numbers, texts, truth values and dates."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": [f"v-{i}" for i in range(n)],
            "price": rng.integers(-40, 41, n) / 8,
            "city": rng.choice(["Bonn", "bonn ", "", "K'oln", "null"], n),
            "paid": rng.choice([True, False], n),
            "day": pd.date_range("2021-03-01", periods=n, freq="17h"),
            "size": rng.choice([1.0, 2.0, 30.0], n),
            "kind": rng.choice(["x", "y", "z"], n),
        }
    )


@pytest.mark.parametrize("rows", [False, True], ids=["made up", "of the table"])
def test_categories_dates_and_truth_values_pass(tmp_path, rows):
    with contextlib.closing(DuckDB(tmp_path / "w.duckdb")) as place:
        place.store(visits())
        source = place.database.source("t")
        krp = sqlkrp.KRP(2, 6, random_state=0).fit(
            source, exclude=["id", "kind"], categories="auto", dates="auto"
        )
        options = {"rows": source} if rows else {"key_type": "VARCHAR"}
        files = written(krp, tmp_path / "p", **options)
        project = Project(files, place)
        project.build()
        assert project.failing() == []
        assert len(project.files[f"seeds/{NAME}_expected.csv"].splitlines()) == 21


def test_the_longest_name_leaves_room_for_those_of_seeds(tmp_path):
    frame, limit = visits()[["price", "size", "paid"]], 63  # of Postgres
    few, waves = sqlkrp.KRP(2, 5, random_state=0), sqlkrp.RandomFourier(5, random_state=0)
    options = {"name": "a" * 51, "form": "tables", "dialect": "postgres"}
    for number, one in enumerate((few, waves)):
        fitted = one.fit(frame, exclude=["paid"])
        model = sqlkrp.model(LogisticRegression().fit(fitted.transform(frame), frame.paid), fitted)
        folder = tmp_path / str(number)
        if one is waves:  # whose model adds up two times
            with pytest.raises(ParameterError, match="use a name with 2 letters fewer"):
                written(model, folder, **options)
            options["name"] = "a" * 49
        seeds = [path for path in written(model, folder, **options) if path.endswith(".csv")]
        assert len(seeds) > 3
        assert all(len(Path(path).stem) <= limit for path in seeds)


def test_a_key_that_is_not_there_is_told_by_the_columns_of_the_table(tmp_path):
    with contextlib.closing(DuckDB(tmp_path / "w.duckdb")) as place:
        place.store(visits()[["id", "price", "kind"]])
        source = place.database.source("t")
        krp = sqlkrp.KRP(2, 6, random_state=0).fit(source, exclude=["id"], categories="auto")
        with pytest.raises(ColumnError, match=r"there are 'id', 'price', 'kind'$"):
            written(krp, tmp_path / "p", rows=source, key="nothing")


NO_TEXTS = ["", " ", "null", " NULL ", "NA", "None", "nan", "n/a"]


@pytest.mark.parametrize("rows", [False, True], ids=["made up", "of the table"])
def test_texts_that_projects_take_for_none_are_in_no_seed(tmp_path, rows):
    frame = visits()
    frame["city"] = np.resize([*NO_TEXTS, "Bonn", "Ulm"], len(frame))
    frame.loc[: len(NO_TEXTS) - 1, "id"] = NO_TEXTS
    with contextlib.closing(DuckDB(tmp_path / "w.duckdb")) as place:
        place.store(frame)
        source = place.database.source("t")
        krp = sqlkrp.KRP(2, 6, random_state=0).fit(
            source, include=["price", "city"], categories="auto"
        )
        options = {"rows": source} if rows else {"key_type": "VARCHAR"}
        files = written(krp, tmp_path / "p", **options)
    seed = files[f"seeds/{NAME}_expected.csv"]
    assert not pd.read_csv(io.StringIO(seed)).isna().any(axis=None)  # as SQLMesh reads it
    cells = [cell for row in csv.reader(io.StringIO(seed)) for cell in row]
    assert not {"", "null"} & {one.strip().lower() for one in cells}  # as dbt does


MODELS = {
    "classes": lambda one: LogisticRegression().fit(one[["price", "size"]], one.kind),
    "numbers": lambda one: Ridge().fit(one[["price", "size"]], one.price * one["size"]),
    "truths": lambda one: LogisticRegression().fit(one[["price", "size"]], one.paid),
    "whole": lambda one: LogisticRegression().fit(one[["price", "size"]], one["size"].astype(int)),
    "categories": lambda one: make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["city"]),
            (StandardScaler(), ["price", "size"]),
        ),
        LogisticRegression(),
    ).fit(one, one.kind),
}


@pytest.mark.parametrize("rows", [False, True], ids=["made up", "of the table"])
@pytest.mark.parametrize("name", MODELS)
def test_models_pass_and_have_the_types_of_their_contract(tmp_path, name, rows):
    frame = visits()
    model = sqlkrp.model(MODELS[name](frame))
    with contextlib.closing(DuckDB(tmp_path / "w.duckdb")) as place:
        place.store(frame)
        options = {"rows": place.database.source("t")} if rows else {"key_type": "VARCHAR"}
        project = Project(written(model, tmp_path / "p", **options), place)
        project.build()
        assert project.failing() == []
        assert contract(project) == place.rows(
            f"SELECT column_name, column_type FROM (DESCRIBE {NAME})"
        )
        if rows:
            column = place.quoted(model.program.names[0])
            place.execute(f"UPDATE {NAME} SET {column} = (SELECT MAX({column}) FROM {NAME})")
            assert project.failing()


def contract(project):
    """Columns and types, as the properties have them."""
    (model,) = yaml.safe_load(project.files[f"models/{NAME}.yml"])["models"]
    return [(one["name"], one["data_type"]) for one in model["columns"]]


@pytest.mark.parametrize("output", ["array", "columns"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_contract_has_the_types_of_the_table(connection_place, tmp_path, output, dtype):
    place = connection_place
    source = place.database.source("t")
    krp = sqlkrp.KRP(2, 5, dtype=dtype, random_state=0).fit(source, exclude=["id"])
    project = Project(written(krp, tmp_path, rows=source, output=output), place)
    project.build()
    assert project.failing() == []
    assert contract(project) == place.rows(
        f"SELECT column_name, column_type FROM (DESCRIBE {NAME})"
    )


def test_a_contract_is_short_by_default(krp, tmp_path):
    for name, type_name in {"duckdb": "DOUBLE[5]", "postgres": "DOUBLE PRECISION[]"}.items():
        files = written(krp, tmp_path / name, dialect=name)
        (model,) = yaml.safe_load(files[f"models/{NAME}.yml"])["models"]
        assert [one["name"] for one in model["columns"]] == ["id", "krp"]
        assert model["columns"][1]["data_type"] == type_name
        assert model["config"]["contract"] == {"enforced": True}
        assert model["columns"][0]["data_tests"] == ["not_null", "unique"]


def test_what_a_model_and_its_macro_hold(krp, tmp_path):
    files = written(krp, tmp_path)
    model, macro = files[f"models/{NAME}.sql"], files[f"macros/{NAME}.sql"]
    statement = krp.to_sql('{{ source("shop", "sales") }}', keep=["id"], output="array")
    assert model.endswith(f"}}}}\n{statement}\n")
    assert not model.rstrip().endswith(";")
    assert model.count("{{") == 2  # the configuration, and the source
    assert krp.digest_ in model.partition("{% raw %}")[0]
    made = jinja2.Environment(autoescape=False).from_string(macro).make_module({})
    plain = krp.to_sql("t", keep=["id"], output="array")
    assert getattr(made, NAME)('"t"') == plain
    assert len(files[f"README_{NAME}.md"].splitlines()) == 3


def test_a_reference_is_declared_nowhere(krp, tmp_path):
    files = written(krp, tmp_path, source="{{ ref('staged') }}")
    assert "sources" not in yaml.safe_load(files[f"models/{NAME}.yml"])
    assert "{{ ref('staged') }}" in files[f"models/{NAME}.sql"]


@pytest.mark.parametrize("name", ["null", "True", "not", "ref", "config", "", "a-b"])
def test_names_that_mean_something_else_are_refused(krp, tmp_path, name):
    with pytest.raises(ParameterError, match="name="):
        krp.to_dbt(tmp_path, source="shop.sales", key="id", name=name)
    assert not list(tmp_path.iterdir())


def test_a_source_is_found_by_its_exact_name(krp, tmp_path):
    files = written(krp, tmp_path, source='db."odd shop"."a.b"')
    (source,) = yaml.safe_load(files[f"models/{NAME}.yml"])["sources"]
    assert (source["database"], source["schema"]) == ("db", "odd shop")
    assert source["tables"] == [{"name": "a.b", "identifier": "a.b"}]
    assert '{{ source("odd shop", "a.b") }}' in files[f"models/{NAME}.sql"]


def test_hostile_columns_stay_in_their_quotes(tmp_path):
    names = [*BRACES, 'weird "name"', "@x", "x'; DROP TABLE t; --", "\u00e4"]
    key = "the 'key', of it; --"
    frame = with_key(dyadic(30, len(names), names=names)).rename(columns={"id": key})
    with contextlib.closing(DuckDB(tmp_path / "w.duckdb")) as place:
        place.store(frame)
        source = place.database.source("t")
        krp = sqlkrp.KRP(2, 5, random_state=0).fit(source, exclude=[key])
        for rows in (None, source):
            folder = tmp_path / f"p{rows is None}"
            project = Project(written(krp, folder, key=key, rows=rows), place)
            project.build()
            assert project.failing() == []
            properties = yaml.safe_load(project.files[f"models/{NAME}.yml"])
            assert 'weird "name"' in rendered(properties["models"][0]["description"])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"name": "1x"}, "name='1x' is not allowed"),
        ({"name": "a-b"}, "name='a-b' is not allowed"),
        ({"name": "{{x}}"}, "is not allowed"),
        ({"name": "sales"}, "that of the table that is read"),
        ({"key": "{{ x }}"}, "holds '{{', which dbt does not read"),
        ({"key": 'the "key"'}, "holds '\"', which dbt does not"),
        ({"key": "a`b"}, "holds '`', which dbt does not"),
        ({"source": 'shop."a""b"'}, "holds '\"', which dbt does not"),
        ({"key": "c0"}, "key='c0' is a column that the map reads"),
        ({"key_type": "INT); DROP"}, "key_type='INT\\); DROP' is not allowed"),
        ({"source": "sales"}, "has no schema"),
        ({"source": 'a."{% x"'}, "holds '{%'"),
        ({"source": "{{ this }}"}, "no reference of dbt"),
        ({"source": "SELECT 1"}, "no table name"),
        ({"rows": pd.DataFrame()}, "give db.source"),
        ({"output": "bits"}, "no numbers that a test could compare"),
        ({"project": "yes"}, "project='yes' is not allowed"),
        ({"dialect": "no"}, "dialect"),
        ({"sqlmesh": True, "source": "{{ ref('x') }}"}, "is a reference of dbt"),
        ({"sqlmesh": True, "key": "a@b"}, "holds '@', which SQLMesh reads"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_nothing_written(krp, tmp_path, wrong, told):
    with pytest.raises(ParameterError, match=told):
        written(krp, tmp_path / "p", **wrong)
    assert not (tmp_path / "p").exists()


def test_rows_need_a_key_that_tells_them_apart(connection_place, tmp_path):
    place = connection_place
    place.execute("CREATE TABLE twice AS SELECT * REPLACE (1 AS id), 0.5 AS half FROM t")
    krp = sqlkrp.KRP(2, 5, random_state=0).fit([f"c{i}" for i in range(6)])
    for key, told in {"id": "not unique", "half": "not whole", "no": "'no' is not in"}.items():
        with pytest.raises(ColumnError, match=told):
            written(krp, tmp_path / "p", key=key, rows=place.database.source("twice"))
    assert not (tmp_path / "p").exists()


def test_a_key_that_a_row_lacks_is_refused_wherever_it_is(connection_place, tmp_path):
    place = connection_place
    # Neither among the rows that are compared nor near them.
    place.execute("UPDATE t SET id = NULL WHERE id = (SELECT MAX(id) FROM t)")
    krp = sqlkrp.KRP(2, 5, random_state=0).fit([f"c{i}" for i in range(6)])
    with pytest.raises(ColumnError, match=r"key 'id' of .* is NULL in 1 row: name"):
        written(krp, tmp_path / "p", rows=place.database.source("t"))
    assert not (tmp_path / "p").exists()


def test_rows_with_missing_values_are_no_examples(connection_place, tmp_path):
    place = connection_place
    place.execute("UPDATE t SET c1 = NULL WHERE id IN (10, 13)")
    krp = sqlkrp.KRP(2, 5, nulls="propagate", random_state=0)
    source = place.database.source("t")
    krp.fit(source, exclude=["id"])
    project = Project(written(krp, tmp_path, rows=source), place)
    project.build()
    assert project.failing() == []
    keys = [line.split(",")[0] for line in project.files[f"seeds/{NAME}_expected.csv"].split()]
    assert keys[1:4] == ["11", "12", "14"]
    assert len(keys) == 21


def test_files_of_others_stay(krp, tmp_path):
    mine = tmp_path / "seeds" / f"{NAME}_expected.csv"
    mine.parent.mkdir()
    mine.write_text("mine")
    for replace in (False, True):
        with pytest.raises(TargetExistsError, match=r"_expected\.csv"):
            written(krp, tmp_path, replace=replace)
    assert mine.read_text() == "mine"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seeds"]


def test_the_same_again_is_no_change_and_another_map_replaces_on_request(krp, tmp_path):
    files = written(krp, tmp_path, project=True)
    times = {path: (tmp_path / path).stat().st_mtime_ns for path in files}
    assert written(krp, tmp_path, project=True) == files
    assert {path: (tmp_path / path).stat().st_mtime_ns for path in files} == times
    other = sqlkrp.KRP(2, 3, random_state=1).fit([f"c{i}" for i in range(6)])
    with pytest.raises(TargetExistsError, match="exists already"):
        written(other, tmp_path)
    changed = written(other, tmp_path, replace=True)
    assert other.digest_ in changed[f"models/{NAME}.sql"]
    assert not [path for path in tmp_path.rglob("*") if ".part" in path.name]
    (tmp_path / "dbt_project.yml").write_text("mine")
    with pytest.raises(TargetExistsError, match="not of sqlkrp"):
        written(other, tmp_path, project=True, replace=True)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    ("place", "put", "told"),
    [
        (f"models/{NAME}.sql", Path.mkdir, "is a folder, where a file goes: move it away"),
        (f"models/{NAME}.yml", "/no/where", "is a link to nothing, where a file goes: move it"),
        ("dbt_project.yml", Path.mkdir, "is a folder, where a file goes: move it away"),
        ("seeds", Path.touch, "is a file, where a folder of files goes: move it away"),
        ("seeds", "/no/where", "is a link to nothing, where a folder of files goes: move it"),
        ("", "/no/where", "is a link to nothing, where a folder of files goes: move it"),
    ],
)  # fmt: skip
def test_what_is_in_the_way_of_a_file_is_named(krp, tmp_path, place, put, told, replace):
    there = tmp_path / "p" / place
    there.parent.mkdir(parents=True, exist_ok=True)
    there.symlink_to(put) if isinstance(put, str) else put(there)
    with pytest.raises(ParameterError) as raised:
        written(krp, tmp_path / "p", project=True, replace=replace)
    assert f"{str(there)!r} {told}" in str(raised.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] in ([], [there])


def test_all_files_are_written_or_none(krp, tmp_path):
    before = written(krp, tmp_path)
    in_the_way = tmp_path / "tests" / f"{NAME}_parity.sql"
    in_the_way.unlink()
    in_the_way.mkdir()
    other = sqlkrp.KRP(2, 3, random_state=1).fit([f"c{i}" for i in range(6)])
    with pytest.raises(ParameterError, match="is a folder"):
        written(other, tmp_path, replace=True)
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path).as_posix() for path in files} == {*before} - {
        f"tests/{NAME}_parity.sql"
    }
    assert all(path.read_text() == before[path.relative_to(tmp_path).as_posix()] for path in files)


def test_a_seed_stays_below_what_dbt_looks_into(tmp_path):
    krp = sqlkrp.KRP(2, 3000, random_state=0).fit([f"c{i}" for i in range(6)])
    files = written(krp, tmp_path)
    seed = files[f"seeds/{NAME}_expected.csv"]
    assert MOST_BYTES / 2 < len(seed.encode()) <= MOST_BYTES
    assert len(seed.splitlines()) < 21


def test_a_seed_has_no_more_columns_than_a_row_of_postgres_has_room_for(tmp_path):
    krp = sqlkrp.KRP(2, 900, random_state=0).fit([f"c{i}" for i in range(400)])
    files = written(krp, tmp_path, dialect="postgres")
    head = files[f"seeds/{NAME}_expected.csv"].partition("\n")[0].split(",")
    assert 24 + 8 * len(head) <= 8160
    assert len(head) > 1000
    assert f"(the first {len(head) - 401:,}, which" in files[f"models/{NAME}.yml"]


def test_the_command_writes_what_python_does(run_cli, krp, tmp_path):
    krp.save(tmp_path / "sales.map.json")
    command = ("dbt", "sales.map.json", "--source", "shop.sales", "--key", "id", "-o", "p")
    done = run_cli(*command, "--project")
    assert f"wrote  p/models/{NAME}.sql\n" in done.stdout
    files = written(krp, tmp_path / "q", project=True)
    assert {path: (tmp_path / "p" / path).read_text() for path in files} == files
    again = run_cli(*command, "--project").stdout  # they are there as they would be written
    assert again == done.stdout.replace("wrote  ", "as it was  ").replace("map    ", "map        ")
    run_cli(*command, "--incremental", code=2)
    run_cli(*command, "--incremental", "--replace")
    run_cli(*command[:-1], "no/such/folder", code=2)
    run_cli(*command[:-1], "q2", "--threads", "2", code=2)  # which reads no rows
    assert not (tmp_path / "q2").exists()


def test_the_command_reads_rows_where_they_are(run_cli, connection_place, tmp_path):
    place = connection_place
    krp = sqlkrp.KRP(2, 5, random_state=0).fit(place.database.source("t"), exclude=["id"])
    krp.save(tmp_path / "sales.map.json")
    frame = with_key(dyadic(50, 6))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    command = ("dbt", "sales.map.json", "--source", "shop.sales", "--key", "id")
    run_cli(*command, "-o", "p", "--file", "rows.csv", "--output", "columns")
    seed = (tmp_path / "p" / "seeds" / f"{NAME}_expected.csv").read_text().splitlines()
    assert seed[0] == "row_key,y0,y1,y2,y3,y4"
    expected = krp.transform(frame[[f"c{i}" for i in range(6)]].to_numpy())
    found = np.array([line.split(",") for line in seed[1:]], dtype=float)
    assert found[:, 0].tolist() == list(range(10, 30))
    assert np.array_equal(found[:, 1:], expected[:20])


# --- in dbt and SQLMesh themselves ----------------------------------------------------------------

#: What the virtual environments of these tests have; dbt-core 1.12 needs the network to install.
PACKAGES = {
    "dbt": ["dbt-core>=1.10,<1.12", "dbt-duckdb>=1.10,<1.12", "dbt-postgres>=1.10,<1.12"],
    "sqlmesh": ["sqlmesh>=0.230,<1"],
}


@pytest.fixture(scope="session")
def environments(tmp_path_factory):
    """A folder for virtual environments, which all processes of the tests share."""
    if given := os.environ.get("SQLKRP_TEST_PROJECTS"):
        folder = Path(given)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def program(environments, name):
    """A program of a virtual environment of its own, which is made where it is not there yet."""
    folder = environments / f"{name}-environment"
    with (environments / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "installed"
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
            subprocess.run([*pip, *PACKAGES[name]], check=True)
            done.touch()
    return folder / "bin" / name


class Runner:
    """A program that runs in a project's folder."""

    def __init__(self, command, folder, **variables):
        self.command, self.folder = command, folder
        quiet = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1"}
        quiet |= {"SQLMESH_DISABLE_ANONYMIZED_ANALYTICS": "1", "NO_COLOR": "1", "COLUMNS": "200"}
        self.environment = {**os.environ, **quiet, **variables}
        self.environment.pop("PYTHONPATH", None)

    def __call__(self, *arguments, ok=True):
        done = subprocess.run(
            [self.command, *arguments],
            capture_output=True, text=True, cwd=self.folder, env=self.environment,
        )  # fmt: skip
        told = done.stdout + done.stderr
        assert (done.returncode == 0) == ok, told
        return told


@pytest.fixture
def dbt(environments, tmp_path):
    def runner(**variables):
        command = program(environments, "dbt")
        return Runner(command, tmp_path / "p", DBT_USE_COLORS="false", **variables)

    return runner


@pytest.fixture(params=["duckdb", "postgres"])
def warehouse(request, tmp_path, dbt):
    """A database with a table to build on, and dbt in a project of it."""
    if request.param == "duckdb":
        with Warehouse.duckdb(tmp_path, dbt) as one:
            yield one
    else:
        with Warehouse.postgres(request.getfixturevalue("postgres_url"), dbt) as one:
            yield one


class Warehouse:
    """A database that dbt builds in, which is open only where nobody else has it open."""

    def __init__(self, name, schema, open_, dbt):
        self.name, self.schema, self.open, self.dbt = name, schema, open_, dbt
        self.source = f"{schema}.sales"

    @classmethod
    @contextlib.contextmanager
    def duckdb(cls, folder, dbt):
        path = folder / "warehouse.duckdb"
        one = cls("duckdb", "main", lambda: duckdb.connect(str(path)), dbt(DUCKDB_PATH=str(path)))
        yield one

    @classmethod
    @contextlib.contextmanager
    def postgres(cls, url, dbt):
        facts = psycopg.conninfo.conninfo_to_dict(url)
        schema = facts["options"].partition("search_path=")[2]
        names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD",
                 "dbname": "PGDATABASE"}  # fmt: skip
        variables = {names[key]: str(value) for key, value in facts.items() if key in names}
        opened = lambda: psycopg.connect(url, autocommit=True)  # noqa: E731
        yield cls("postgres", schema, opened, dbt(DBT_SCHEMA=schema, **variables))

    def rows(self, statement):
        with contextlib.closing(self.open()) as connection:
            found = connection.execute(statement)
            return [tuple(row) for row in found.fetchall()] if found.description else []

    def fill(self, frame, table="sales"):
        """A table of numbers, with names that are quoted."""
        facts = dialect(self.name)
        columns = ", ".join(quote(name, facts) for name in frame)
        types = {"i": "BIGINT", "f": facts.float_types["float64"]}
        shape = ", ".join(
            f"{quote(name, facts)} {types[kind.kind]}" for name, kind in frame.dtypes.items()
        )
        values = ", ".join(str(tuple(row)) for row in frame.astype(object).to_numpy().tolist())
        self.rows(f"CREATE TABLE IF NOT EXISTS {self.source} ({shape})")
        self.rows(f"INSERT INTO {self.source} ({columns}) VALUES {values}")

    @contextlib.contextmanager
    def seen(self):
        """The table as a source of sqlkrp's."""
        with contextlib.closing(self.open()) as connection, sqlkrp.connect(connection) as database:
            yield database.source(self.source)


def build(warehouse, *arguments, ok=True):
    told = warehouse.dbt("build", *arguments, ok=ok)
    assert ok == ("Completed successfully" in told), told
    return told


def passed(told):
    (count,) = re.findall(r"PASS=(\d+) WARN=0 ERROR=0 SKIP=0", told)
    return int(count)


def map_of(source, seed=0, **options):
    return sqlkrp.KRP(2, 5, random_state=seed, **options).fit(source, exclude=["id"])


def in_project(warehouse, fitted, **options):
    return written(
        fitted, warehouse.dbt.folder, source=warehouse.source, dialect=warehouse.name,
        **{"project": True, **options},
    )  # fmt: skip


def features_of(warehouse, fitted):
    """The features that are stored, and those of the twin, in the order of keys."""
    with warehouse.seen() as source:
        columns = list(fitted.feature_names_in_)
        rows = source.session.columns(
            f'SELECT {", ".join(quote(one, dialect(warehouse.name)) for one in columns)} '
            f"FROM {warehouse.source} ORDER BY id", columns, "reading"
        )  # fmt: skip
    found = warehouse.rows(f"SELECT krp FROM {warehouse.schema}.{NAME} ORDER BY id")
    return np.array([row[0] for row in found]), fitted.transform(rows)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "rows"), [("wide", True), ("tables", False)])
def test_dbt_builds_it(warehouse, form, rows):
    warehouse.fill(with_key(dyadic(50, 6)))
    with warehouse.seen() as source:
        krp = map_of(source)
        in_project(warehouse, krp, form=form, rows=source if rows else None)
    assert passed(build(warehouse)) == (5 if form == "wide" else 9)
    found, expected = features_of(warehouse, krp)
    assert np.allclose(found, expected, rtol=1e-12)
    manifest = json.loads((warehouse.dbt.folder / "target" / "manifest.json").read_text())
    node = manifest["nodes"][f"model.{NAME}.{NAME}"]
    assert node["config"]["meta"] == {"sqlkrp_digest": krp.digest_}
    assert node["columns"].keys() == {"id", "krp"}
    assert "{%" not in node["description"]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [False, True], ids=["made up", "of the table"])
def test_the_test_of_dbt_fails_where_features_are_tampered_with(warehouse, rows):
    warehouse.fill(with_key(dyadic(50, 6)))
    with warehouse.seen() as source:
        files = in_project(warehouse, map_of(source), rows=source if rows else None)
    build(warehouse)
    if rows:
        facts = dialect(warehouse.name)
        array = facts.typed_array(facts.array.format(items="1, 2, 3, 4, 5"), "float", 5)
        warehouse.rows(f"UPDATE {warehouse.schema}.{NAME} SET krp = {array} WHERE id = 12")
    else:
        macro = warehouse.dbt.folder / "macros" / f"{NAME}.sql"
        wrong = files[f"macros/{NAME}.sql"].replace(" - (", " + (", 1)
        assert macro.read_text() != wrong
        macro.write_text(wrong)
    told = warehouse.dbt("test", ok=False)
    assert re.search(rf"FAIL \d+ {NAME}_parity", told), told
    assert "PASS=2" in told
    warehouse.dbt("test", "--vars", "sqlkrp_tolerance: 1000")


@pytest.mark.slow
def test_dbt_adds_new_rows_and_stops_at_another_map(warehouse):
    frame = with_key(dyadic(50, 6))
    warehouse.fill(frame[:30])
    with warehouse.seen() as source:
        krp = map_of(source)
        other = map_of(source, seed=1)
    in_project(warehouse, krp, incremental=True, key_type="BIGINT")
    assert passed(build(warehouse)) == 5
    warehouse.rows(f"UPDATE {warehouse.schema}.{NAME} SET sqlkrp_digest = sqlkrp_digest")
    warehouse.fill(frame[30:])
    # Rows that are there are not computed again: what stands in their columns now is not seen.
    warehouse.rows(f"UPDATE {warehouse.source} SET c0 = c0 + 1 WHERE id = 10")
    assert passed(build(warehouse)) == 5
    found, expected = features_of(warehouse, krp)
    assert len(found) == 50
    assert not np.allclose(found[0], expected[0], rtol=1e-12)
    assert np.allclose(found[1:], expected[1:], rtol=1e-12)

    in_project(warehouse, other, incremental=True, replace=True, key_type="BIGINT")
    told = build(warehouse, ok=False)
    assert f"{NAME} holds rows that another map made: run --full-refresh" in told
    assert np.array_equal(features_of(warehouse, krp)[0], found)
    assert passed(build(warehouse, "--full-refresh")) == 5
    found, expected = features_of(warehouse, other)
    assert np.allclose(found, expected, rtol=1e-12)
    assert passed(build(warehouse)) == 5


@pytest.mark.slow
def test_dbt_stops_where_rows_tell_nothing_of_what_made_them(warehouse):
    warehouse.fill(with_key(dyadic(50, 6)))
    with warehouse.seen() as source:
        krp = map_of(source)
    in_project(warehouse, krp)
    build(warehouse)
    in_project(warehouse, krp, incremental=True, replace=True)
    assert "run --full-refresh" in build(warehouse, ok=False)
    build(warehouse, "--full-refresh")
    # Another number of features, in a table that is made anew each time.
    bigger = sqlkrp.KRP(2, 9, random_state=0).fit([f"c{i}" for i in range(6)])
    in_project(warehouse, bigger, replace=True)
    assert passed(build(warehouse)) == 5


@pytest.mark.slow
def test_dbt_scores_with_a_model(warehouse):
    frame = with_key(dyadic(50, 6))
    warehouse.fill(frame)
    columns = [f"c{i}" for i in range(6)]
    labels = np.where(frame.c0 * frame.c1 > 0, "it's", 'no "')
    with warehouse.seen() as source:
        krp = map_of(source)
        classifier = LogisticRegression().fit(krp.transform(frame[columns]), labels)
        model = sqlkrp.model(classifier, krp)
        for rows in (None, source):
            in_project(warehouse, model, rows=rows, replace=True)
    assert passed(build(warehouse)) == 5
    found = warehouse.rows(f"SELECT label FROM {warehouse.schema}.{NAME} ORDER BY id")
    assert [label for (label,) in found] == model.predict(frame[columns]).tolist()


@pytest.mark.slow
def test_dbt_takes_hostile_names(warehouse):
    limit = dialect(warehouse.name).max_identifier_bytes or 100
    names = [one for one in (*BRACES, *HOSTILE) if len(one.encode()) <= limit]
    names = [*dict.fromkeys(name.lower() for name in names)]
    key = "the 'key', of it; --"
    frame = with_key(dyadic(30, len(names), names=names)).rename(columns={"id": key})
    warehouse.fill(frame)
    with warehouse.seen() as source:
        krp = sqlkrp.KRP(2, 5, random_state=0).fit(source, exclude=[key])
        for number, options in enumerate([{}, {"rows": source}, {"incremental": True}]):
            name = f"{NAME}_{number}"
            # It is declared once.
            there = f"{{{{ source('{warehouse.schema}', 'sales') }}}}"
            read = there if number else warehouse.source
            options |= {"source": read, "name": name, "key": key}
            krp.to_dbt(
                warehouse.dbt.folder, dialect=warehouse.name, project=not number, **options
            )  # fmt: skip
    assert passed(build(warehouse)) == 15
    assert passed(build(warehouse)) == 15
    for number in range(3):
        ((count,),) = warehouse.rows(f"SELECT COUNT(*) FROM {warehouse.schema}.{NAME}_{number}")
        assert count == 30
    warehouse.dbt("docs", "generate", "--no-compile")


@pytest.mark.slow
def test_what_sql_prints_is_a_model_of_dbt(warehouse, run_cli):
    warehouse.fill(with_key(dyadic(50, 6)))
    with warehouse.seen() as source:
        krp = map_of(source)
        in_project(warehouse, krp)
    models = warehouse.dbt.folder / "models"
    (models / "t.sql").write_text(f"SELECT * FROM {warehouse.source}")
    krp.save(warehouse.dbt.folder / "m.json")
    printed = run_cli(
        "sql", warehouse.dbt.folder / "m.json", "--table", "{{ ref('t') }}", "--keep", "id",
        "--dialect", warehouse.name, "--output", "array",
    )  # fmt: skip
    (models / "printed.sql").write_text(printed.stdout)
    assert passed(build(warehouse)) == 7
    same = f"SELECT id, krp FROM {warehouse.schema}.{{}} ORDER BY id"
    assert warehouse.rows(same.format("printed")) == warehouse.rows(same.format(NAME))


@pytest.fixture
def mesh(environments, tmp_path, monkeypatch):
    """A database and a project of SQLMesh's, whose DuckDB is an older one of its own."""
    command = program(environments, "sqlmesh")
    path = tmp_path / "warehouse.duckdb"
    (tmp_path / "p").mkdir()
    frame = with_key(dyadic(50, 6))
    frame.to_csv(tmp_path / "rows.csv", index=False)

    def run(code):
        said = f"import duckdb; c = duckdb.connect({str(path)!r}); {code}"
        python = command.with_name("python")
        done = subprocess.run([python, "-c", said], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("c.execute('CREATE SCHEMA shop')")
    run(f"c.execute(\"CREATE TABLE shop.sales AS FROM '{tmp_path / 'rows.csv'}'\")")
    runner = Runner(command, tmp_path / "p", DUCKDB_PATH=str(path))
    runner.run, runner.frame = run, frame
    return runner


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "options"),
    [(True, {"incremental": True}), (False, {"form": "tables"}), (False, {"output": "columns"})],
)
def test_sqlmesh_plans_and_audits_it(mesh, connection_place, rows, options):
    place = connection_place
    source = place.database.source("t")
    krp = map_of(source)
    written(krp, mesh.folder, rows=source if rows else None, sqlmesh=True, project=True, **options)
    told = mesh("plan", "--auto-apply", "--no-prompts")
    assert "audits passed 3" in told
    assert "Found 3 audit(s)" in mesh("audit")
    values = "COLUMNS('krp_.*')" if options.get("output") else "krp"
    shown = mesh.run(f'print(c.sql("SELECT {values} FROM shop.{NAME} ORDER BY id").fetchall())')
    found = np.array(ast.literal_eval(shown)).reshape(50, 5)
    assert np.allclose(found, krp.transform(mesh.frame[[f"c{i}" for i in range(6)]]), rtol=1e-12)
    # Another map is another model, and all rows are made anew.
    written(
        map_of(source, seed=1), mesh.folder, rows=source if rows else None, sqlmesh=True,
        project=True, replace=True, **options,
    )  # fmt: skip
    assert "audits passed 3" in mesh("plan", "--auto-apply", "--no-prompts")


@pytest.mark.slow
def test_the_audit_of_sqlmesh_fails_where_features_are_tampered_with(mesh, connection_place):
    source = connection_place.database.source("t")
    files = written(map_of(source), mesh.folder, rows=source, sqlmesh=True, project=True)
    model = mesh.folder / "models" / f"{NAME}.sql"
    model.write_text(files[f"models/{NAME}.sql"].replace(" - (", " + (", 1))
    assert model.read_text() != files[f"models/{NAME}.sql"]
    told = mesh("plan", "--auto-apply", "--no-prompts", ok=False)
    assert f"'{NAME}_parity' audit error" in told
