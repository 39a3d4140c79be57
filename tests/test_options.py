"""The options of a statement: declared once, and the same for every way to give them."""

import inspect
import pydoc

import pytest
from support import dyadic, paper_krp, store

import sqlkrp
from sqlkrp.cli import parser
from sqlkrp.errors import ParameterError, SqlkrpError, UnknownParameterError
from sqlkrp.sql.options import OPTIONS, Options

#: What takes them all, and what takes some.
ALL = [sqlkrp.Database.create, sqlkrp.Database.export, sqlkrp.Database.relation]
OF_TEXT = [name for name in OPTIONS if name != "how"]  # nothing is run
SOME = {
    sqlkrp.KRP.to_sql: OF_TEXT,
    sqlkrp.KRP.statement: OF_TEXT,
    sqlkrp.KRP.preflight: ["form", "stage", "output", "plan", "keep"],
    sqlkrp.Database.verify: ["form", "plan", "long", "rows"],
    sqlkrp.Database.source: ["long"],
}
TAKEN = {method: list(OPTIONS) for method in ALL} | SOME


@pytest.mark.parametrize("method", TAKEN, ids=lambda one: one.__name__)
def test_help_and_signature_show_each_option_with_its_default(method):
    keywords = {
        name: one.default
        for name, one in inspect.signature(method).parameters.items()
        if one.kind is one.KEYWORD_ONLY and name in OPTIONS
    }
    assert list(keywords) == TAKEN[method]
    assert keywords == {name: getattr(Options(), name) for name in keywords}
    shown = " ".join(pydoc.render_doc(method, renderer=pydoc.plaintext).split())
    for name in keywords:
        assert f"{name} = {OPTIONS[name].default!r} : {OPTIONS[name].metadata['meaning']}" in shown
    assert "options" not in inspect.signature(method).parameters


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            {"form": "wider"},
            "use one of ('auto', 'wide', 'array', 'tables')",
        ),
        ({"stage": "sums"}, "stage='sums' is not allowed"),
        ({"output": "list"}, "output='list' is not allowed"),
        ({"plan": "best"}, "plan='best' is not allowed"),
        ({"keep": "id"}, "keep='id' is one text: give a list of column names"),
        ({"long": ("r", "f")}, "long=('r', 'f') is not allowed: name three columns"),
        ({"long": ("r", "f", "f")}, "is not allowed: name three columns"),
        ({"rows": "k"}, "a table of rows belongs to (row, feature, value) input"),
        (
            {"long": ("r", "f", "v"), "keep": ["id"]},
            "columns to keep ('id') come from a table of rows: name it (rows=TABLE)",
        ),
        ({"from_": "wide"}, "has no option 'from_'"),
        ({"outputs": "array"}, "has no option 'outputs': did you mean 'output'?"),
    ],
)
def test_a_wrong_option_is_told_in_one_line_wherever_it_is_given(connection, wrong, told, tmp_path):
    store(connection, dyadic(3, 2))
    krp = paper_krp(2, 2, n_terms=1, random_state=0).fit(["c0", "c1"])
    db = sqlkrp.connect(connection)
    calls = [
        lambda: krp.to_sql("t", **wrong),
        lambda: krp.statement("t", **wrong),
        lambda: db.create(krp, "t", "f", **wrong),
        lambda: db.export(krp, "t", tmp_path / "f.csv", **wrong),
        lambda: db.relation(krp, "t", **wrong),
    ]
    for call in calls:
        with pytest.raises(SqlkrpError) as bad:
            call()
        assert told in str(bad.value)
        assert "\n" not in str(bad.value)
    assert connection.sql("SHOW TABLES").fetchall() == [("t",)]


def test_an_unknown_option_is_no_option_of_another_method():
    krp = sqlkrp.KRP(2, 2, random_state=0).fit(["a"])
    with pytest.raises(UnknownParameterError, match="preflight has no option 'rows'"):
        krp.preflight(rows="k")
    with pytest.raises(TypeError, match="to_sql"):
        krp.to_sql("t", "wide")
    with pytest.raises(TypeError, match="table"):
        krp.to_sql(form="wide")


def test_options_are_one_value_that_cannot_change():
    options = Options(keep=iter(["id", "id", "name"]), long=["r", "f", "v"], rows="k")
    assert options.keep == ("id", "name")
    assert options.long == ("r", "f", "v")
    assert options == Options(keep=("id", "name"), long=("r", "f", "v"), rows="k")
    with pytest.raises(AttributeError):
        options.form = "wide"
    with pytest.raises(ParameterError):
        Options(form=None)


def test_the_command_line_has_the_declared_choices_defaults_and_meanings():
    (commands,) = (one.choices for one in parser()._actions if isinstance(one.choices, dict))
    known = {one.dest: one for one in commands["run"]._actions}
    for name in ("form", "stage", "output", "plan", "long", "rows"):
        one, declared = known[name], OPTIONS[name]
        assert one.default == declared.default
        assert tuple(one.choices or ()) == declared.metadata["allowed"]
        assert one.help.startswith(declared.metadata["meaning"])


def test_options_by_place_and_answers_that_are_no_answers_are_told_in_one_line(connection):
    krp = sqlkrp.KRP(2, 3).fit(["a"])
    with pytest.raises(UnknownParameterError, match=r"to_sql takes table without a name.*form="):
        krp.to_sql("t", "duckdb")
    assert krp.to_sql("t", keep=None) == krp.to_sql("t")
    with pytest.raises(ParameterError, match="replace='no' is not allowed"):
        sqlkrp.connect(connection).create(krp, "t", "f", replace="no")
