"""What a notebook's last line shows: one line as text, and a small table as HTML."""

import re
import sys
from html.parser import HTMLParser

import pandas as pd
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr
from support import dyadic, store

import sqlkrp
from sqlkrp.errors import visible

HOSTILE = "<script>alert('&')</script>\x1b[2J\n"


class Page(HTMLParser):
    """The tags of a page, each closed in its turn, and its texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts = set(), [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert {name for name, _ in attrs} <= {"colspan", "style"}  # nothing is loaded
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def shown(connection):
    """One of each thing that a call may leave on a notebook's last line."""
    frame = dyadic(30, 20, names=[HOSTILE, *(f"c{i}" for i in range(19))])
    store(connection, frame)
    krp = sqlkrp.KRP(2, 500, pool="hadamard", random_state=0).fit(frame)
    db = sqlkrp.connect(connection)
    return {
        "Run": db.create(krp, "t", "f"),
        "Database": db,
        "Verification": db.verify(krp, "t"),
        "Statement": krp.statement("t"),
        "Preflight": krp.preflight(),
        "Plan": krp.statement("t").plan,
        "Program": krp.program_,
        "KRP": krp,
        "Ensemble": sqlkrp.Ensemble(sqlkrp.KRP(2, 3), 13).fit([HOSTILE]),
        "Chain": sqlkrp.chain(sqlkrp.PCA(3), sqlkrp.KRP(2, 3)),
    }


def test_everything_has_a_repr_of_one_line(shown):
    for name, one in shown.items():
        assert repr(one).startswith(f"{name}(")
        assert len(repr(one)) < 400, name
        assert repr(one).isprintable()
    assert repr(shown["Run"]).startswith("Run(rows=30, columns=500, form='wide', ")
    assert repr(shown["Database"]) == "Database(engine='duckdb')"
    assert repr(shown["Verification"]) == (
        "Verification(ok=True, rows=30, features=500, wrong=0, form='wide', tolerance=1e-09)"
    )


def test_everything_is_a_small_table_in_a_notebook(shown, monkeypatch):
    monkeypatch.delitem(sys.modules, "sklearn", raising=False)
    for name, one in shown.items():
        page = Page(one._repr_html_())
        assert page.tags == {"table", "thead", "tbody", "tr", "th", "td"}, name
        assert name in page.texts[0]
        assert one._repr_html_().count("<tr>") <= 16
        assert "".join(page.texts).isprintable()
    assert (
        r"20: <script>alert('&')</script>\x1b[2J\n ... c18"
        in Page(shown["KRP"]._repr_html_()).texts
    )


def test_beside_scikit_learn_a_map_has_its_diagram_in_front_of_the_table(shown):
    named = sqlkrp.Monomials(1).fit([HOSTILE, "a"])
    for one in (shown["KRP"], shown["Ensemble"], named):
        diagram, table, facts = one._repr_html_().partition("<table><thead><tr><th colspan")
        assert re.search(r'class="sk-(label|estimator) fitted', diagram)
        assert "coef0" in diagram  # in its table of parameters
        assert "<script>alert" not in diagram
        assert table + facts == one._facts_html()
    pipeline = estimator_html_repr(make_pipeline(StandardScaler(), sqlkrp.KRP(2, 7)))
    assert re.search(r"StandardScaler.*KRP.*n_components.*7", pipeline, re.DOTALL)


def test_an_unfitted_map_shows_that_it_is_not_fitted(monkeypatch):
    monkeypatch.delitem(sys.modules, "sklearn", raising=False)
    page = Page(sqlkrp.KRP(3, 7)._repr_html_())
    assert page.texts == ["KRP(degree=3, n_components=7, pool='hadamard')", "fitted", "no"]


def test_a_model_of_many_classes_shows_its_last_name():
    frame = pd.DataFrame({"a": range(40), "b": range(40, 0, -1)})
    model = sqlkrp.model(RidgeClassifier().fit(frame, frame.a % 20))
    assert "label, decision_0, " in model._repr_html_()
    assert "decision_8, ..., decision_19<" in model._repr_html_()


def test_a_map_shows_which_kernel_it_estimates(monkeypatch):
    monkeypatch.delitem(sys.modules, "sklearn", raising=False)
    texts = Page(sqlkrp.KRP(2, 100, coef0=0.5, gamma=2).fit(["a", "b"])._repr_html_()).texts
    assert "(2 ⟨x, y⟩ + 0.5)^2 of its columns as it prepares them" in texts
    assert "squared ones at best within 11.3% on average (sqlkrp report)" in texts
    assert "estimates" not in Page(sqlkrp.PCA(1).fit(dyadic(9, 2))._repr_html_()).texts


def test_a_trained_model_shows_what_it_is_worth():
    frame = dyadic(60, 2).assign(y=range(60))
    model = sqlkrp.train(frame, "y", maps=[sqlkrp.KRP(2, 4)])
    texts = Page(model._repr_html_()).texts
    assert f"{model.training['held_out']['r2']:.4g}" in texts
    assert texts[texts.index("r2 of columns alone, in folds") + 1]


def test_visible_texts_are_left_as_they_are():
    assert visible("Größe 'x' \\n 😀") == "Größe 'x' \\n 😀"
    # Right to left override, a lone surrogate, a line separator: as Python escapes them.
    assert visible("\u202e\ud800\u2028\x00\r") == r"\u202e\ud800\u2028\x00\r"
