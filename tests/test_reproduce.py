"""The benchmark that repeats published tables: what it reads, marks and keeps."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import sqlkrp

ROOT = Path(__file__).parents[1]
# At the end, so that the package that is installed is the one that is tested.
sys.path.append(str(ROOT))
published = importlib.import_module("benchmarks.published")
distances = importlib.import_module("benchmarks.distances")
linear_svm = importlib.import_module("benchmarks.linear_svm")
reproduce = importlib.import_module("benchmarks.reproduce")
reproduced = importlib.import_module("benchmarks.reproduced")
keeping = importlib.import_module("benchmarks.kept")

HEAD = "source,table,data,degree,method,distribution,p,t,k,metric,mean,sd\n"
TABLES = HEAD + (
    "krp2018,8,w8a,2,phi+RP,s=3,,,10,distortion,0.36,0.02\n"
    "krp2018,8,w8a,2,Nystroem,,,,10,distortion,9.9,0.02\n"
    "krp2018,8,w8a,2,KRP,s=1,210,30,10,distortion,0.37,0.1\n"
    "krp2018,8,w8a,2,KRP,s=1,210,30,20,distortion,0.26,0.02\n"
    "krp2018,8,w8a,2,KG-RP,,70,30,10,distortion,0.9,\n"
    'krp2018,10,w8a,2,"linear SVM on raw columns, C=1",,,,,f1,0.7343,\n'
    "krp2018,10,w8a,2,KRP,s=1,70,1,20,f1,0.9,0.1\n"
)


@pytest.fixture
def tables(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text(TABLES)
    return path


def test_a_published_cell_is_read(tables):
    explicit, _, krp, *_, kgrp, raw, _ = published.read(tables)
    assert krp.line == published.Line("KRP", "s=1", 210, 30)
    assert (krp.table, krp.degree, krp.k, krp.mean, krp.sd) == (8, 2, 10, 0.37, 0.1)
    assert (explicit.line.p, explicit.line.t, kgrp.sd) == (None, None, None)
    assert (raw.line.method, raw.k) == ("linear SVM on raw columns, C=1", None)


def test_all_that_was_published_is_read():
    cells = published.read(ROOT / "benchmarks" / "published.csv")
    of = [cell for cell in cells if cell.source == "krp2018" and cell.metric == "distortion"]
    assert {cell.table for cell in of} == {2, 3, 5, 6, 8, 9}
    # Degree two has four more maps than degree three, of three sizes.
    assert sum(cell.table == 8 for cell in of) - sum(cell.table == 9 for cell in of) == 12
    assert len(set(cells)) == len(cells)


def test_runs_that_differ_much_may_be_further_apart(tables):
    cells = published.read(tables)
    limits = published.tolerances(cells)
    by_method = {(cell.line.method, cell.table): limits[cell] for cell in cells}
    # Of two means of ten runs each the difference has the deviation sqrt(2 / 10) of one run's.
    assert by_method["KRP", 8] == pytest.approx(3 * np.sqrt(0.2 * (0.1**2 + 0.02**2) / 2))
    assert by_method["KG-RP", 8] == 0.015
    assert by_method["KRP", 10] == 0.015


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.1, 0.12], "0.110 ± 0.014 [0.120 ± 0.010]"),
        ([0.1054], "0.105 [0.120 ± 0.010]"),
        ([0.104], "0.104 [0.120 ± 0.010] *"),
        ([0.136], "0.136 [0.120 ± 0.010] *"),
        ([], "not run [0.120 ± 0.010]"),
    ],
)
def test_a_cell_that_is_too_far_off_has_a_star(values, text):
    line = published.Line("KRP", "s=1", 976, 30)
    cell = published.Cell("a", 2, "mnist", 2, line, 200, "distortion", 0.12, 0.01)
    assert reproduced.Found(values, cell, 0.015).text == text


@pytest.mark.parametrize("method", [name for name, way in distances.WAYS.items() if way.by_prefix])
def test_the_first_components_of_a_draw_are_a_draw_of_fewer(method):
    rows = np.random.default_rng(0).standard_normal((80, 5))
    sample = distances.Sample(3, rows, rows)
    line = published.Line(method, "s=3", 70, 30)
    draw = distances.WAYS[method].draw
    many, few = (draw(line, 2, k, sample).transform(rows) for k in (90, 20))
    assert np.abs(many[:, :20] * np.sqrt(90 / 20) - few).max() < 1e-9 * np.abs(few).max()


@pytest.mark.parametrize("distribution", ["gaussian", "s=1", "s=3"])
def test_the_explicit_projection_has_the_kernel_on_average(distribution):
    rows = np.random.default_rng(0).standard_normal((4, 3))
    exact = (rows @ rows.T) ** 2
    k = 200_000
    features = distances.explicit(rows, k, distribution, 0)
    # The entries of R have fourth moments of at most 3.
    deviations = np.sqrt(3 * np.outer(np.diag(exact), np.diag(exact)) / k)
    assert (np.abs(features @ features.T - exact) < 5 * deviations).all()


@pytest.mark.parametrize("classes", [2, 4])
def test_linear_machines_are_liblinears(classes):
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.standard_normal((600, 20)) / 5, np.ones((600, 1))]).astype("float32")
    labels = (rows[:, :classes] + 0.1 * rng.standard_normal((600, classes))).argmax(axis=1)
    weights = linear_svm.train(rows, labels, range(classes), 8.0)
    model = LinearSVC(C=8.0, fit_intercept=False, dual=False, tol=1e-8).fit(rows, labels)
    found = linear_svm.predict(weights, rows, range(classes))
    assert (found == model.predict(rows)).mean() > 0.99
    assert np.abs(weights - model.coef_.T).max() < 0.02 * np.abs(model.coef_).max()


def test_what_was_measured_is_not_measured_again(tmp_path):
    path, calls = tmp_path / "kept.jsonl", []

    def measure():
        calls.append(1)
        return {"mean": 0.5}

    for _ in range(2):
        assert keeping.Kept(path).get({"k": 10, "p": None}, measure) == {"mean": 0.5}
    assert len(calls) == 1
    assert json.loads(path.read_text())["of"] == {"k": 10, "p": None}


def test_a_tiny_run_of_made_rows(tmp_path, tables, monkeypatch):
    out = tmp_path / "report.md"
    arguments = ["reproduce", "--data", str(tmp_path), "--published", str(tables), "--quick"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--only", "8", "--out", str(out)])
    reproduce.main()
    report = out.read_text()
    assert "made rows of the shape of w8a, degree 2" in report
    assert f"(version {sqlkrp.__version__})" in report
    assert "[9.900 ± 0.020] *" in report
    assert "not run [" not in report
    # The one that cannot be right is of those without a pool.
    assert "| 8 | 3 of 4 | " in report
    for line in out.with_suffix(".jsonl").read_text().splitlines():
        assert json.loads(line)["found"].get("apart", 0) < 1e-9


def test_a_tiny_run_of_scores(tmp_path, tables, monkeypatch):
    out = tmp_path / "report.md"
    arguments = ["reproduce", "--data", str(tmp_path), "--published", str(tables), "--quick"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--only", "10", "--out", str(out)])
    reproduce.main()
    assert "f1, made rows of the shape of w8a" in out.read_text()
