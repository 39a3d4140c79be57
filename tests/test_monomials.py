"""All monomials with their weights: the kernel, their names, and how many there may be."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from hostile import HOSTILE, INNER, spelt_apart
from sklearn.preprocessing import PolynomialFeatures
from support import FORMS, dyadic, store

import sqlkrp
from sqlkrp import KRP, PCA, Ensemble, Monomials, chain
from sqlkrp.errors import ColumnError, LimitError, ParameterError
from sqlkrp.maps import monomials as room


def exact(degree=2, **parameters):
    """A map of columns as they are."""
    return Monomials(degree, **{"scaling": None, "gamma": 0.25, **parameters})


# --- the kernel -----------------------------------------------------------------------------------


@pytest.mark.parametrize("coef0", [0.0, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7])
def test_inner_products_are_the_kernel(degree, coef0):
    frame = dyadic(20, 3) / 4
    features = exact(degree, coef0=coef0).fit(frame).transform(frame)
    inner = frame.to_numpy() @ frame.to_numpy().T
    kernel = (0.25 * inner + coef0) ** degree
    # Against the largest sum of sizes that a kernel's terms can have: they may cancel.
    most = (0.25 * np.abs(frame.to_numpy()) @ np.abs(frame.to_numpy()).T + coef0) ** degree
    assert (np.abs(features @ features.T - kernel) <= 1e-14 * most).all()


def test_weights_by_hand():
    # (x y / 4 + z w / 4 + 1)^2, whose terms are 1, x/2, z/2, x^2/16, x z/8 and z^2/16.
    one = exact(coef0=1.0).fit(["x", "z"])
    found = one.transform([[2.0, 4.0]])
    root = math.sqrt(2)
    assert np.allclose(found, [[1, root, 2 * root, 1, 2 * root, 4]], rtol=1e-15, atol=0)
    # Roots of powers of four are exact.
    assert found[0, [0, 3, 5]].tolist() == [1, 1, 4]


@pytest.mark.parametrize("coef0", [0.0, 0.5])
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_monomials_are_scikit_learn_s_times_weights(degree, coef0):
    frame = dyadic(15, 4)
    lowest = 0 if coef0 else degree
    theirs = PolynomialFeatures((lowest, degree), include_bias=not lowest).fit(frame)
    ours = exact(degree, coef0=coef0).fit(frame)
    factorials = np.vectorize(math.factorial)
    powers = theirs.powers_
    lacking = degree - powers.sum(axis=1)
    orders = math.factorial(degree) / factorials(powers).prod(axis=1) / factorials(lacking)
    weights = np.sqrt(orders * 0.25 ** powers.sum(axis=1) * coef0**lacking)
    assert np.allclose(ours.transform(frame), theirs.transform(frame) * weights, rtol=1e-13)
    names = [name.replace(" ", "*") for name in theirs.get_feature_names_out()]
    assert ours.get_feature_names_out().tolist() == names


def test_nothing_is_drawn():
    frame = dyadic(30, 4)
    digests = {Monomials(random_state=seed).fit(frame).digest_ for seed in (0, 1, None)}
    assert len(digests) == 1


@pytest.mark.parametrize("number", [int, float])
@pytest.mark.parametrize("degree", [40, 100])
def test_a_column_to_a_high_power(degree, number):
    # Of one column the kernel is a binomial, with coefficients beyond whole numbers of 64 bits.
    one = exact(degree, gamma=number(1), coef0=number(1)).fit(["x"])
    found = one.transform([[2.0]])[0]
    expected = [math.comb(degree, n) * 4.0**n for n in range(degree + 1)]
    assert np.allclose(found**2, expected, rtol=1e-13)


# --- in engines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_engine_computes_them_whatever_columns_are_called(engine, form):
    # Of degree 1 every name of a column is one of a feature: the statement's own names as well.
    names = spelt_apart([one for one in (*INNER, *HOSTILE) if one not in engine.its_own])
    frame = dyadic(8, len(names), names=names) / 8
    engine.store(frame.assign(row_number=np.arange(8)))
    one = exact(1).fit(frame)
    assert one.get_feature_names_out().tolist()[1:3] == names[:2]
    found = engine.features(one, keep=["row_number"], form=form)
    assert np.allclose(found[:, 1:], one.transform(frame), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_products_in_every_engine(engine, form):
    frame = dyadic(10, 4, names=["x0", "p0", "value", "k0"])
    frame.iloc[3, 2] = np.nan
    frame.iloc[6] = 0.0
    engine.store(frame.assign(id=np.arange(10)))
    one = exact(3, nulls="propagate").fit(frame)
    expected = one.transform(frame)
    assert np.isnan(expected).all(axis=1).tolist() == [row == 3 for row in range(10)]
    found = engine.features(one, keep=["id"], form=form)[:, 1:]
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("nulls", ["zero", "mean"])
def test_missing_values_are_read_as_the_policy_says(connection, nulls):
    frame = dyadic(10, 3)
    one = exact(2, nulls=nulls).fit(frame)
    filled = {"zero": 0.0, "mean": frame["c1"].mean()}[nulls]
    holes = frame.copy()
    holes.iloc[4, 1] = np.nan
    expected = one.transform(holes.fillna(filled))
    assert np.allclose(one.transform(holes), expected, rtol=1e-6)
    store(connection, holes)
    with sqlkrp.connect(connection) as db:
        for form in FORMS:
            assert db.verify(one, "t", form=form).ok


@pytest.mark.parametrize("coef0", [0.0, 1.0])
@pytest.mark.parametrize("form", FORMS)
def test_sparse_rows(connection, form, coef0):
    # Absent is 0, and so is each product with it: all but the constant, in a row of nothing.
    frame = dyadic(12, 5, names=list("01234"))
    frame = frame.where(np.random.default_rng(1).random(frame.shape) < 0.4, 0.0)
    frame.iloc[4] = 0.0
    long = frame.stack().rename("v").reset_index().set_axis(["r", "f", "v"], axis=1)
    store(connection, long[long["v"] != 0], "entries")
    store(connection, pd.DataFrame({"r": range(12)}), "keys")
    one = exact(2, coef0=coef0).fit(frame)
    sparse = {"long": ("r", "f", "v"), "rows": "keys", "form": form}
    with sqlkrp.connect(connection) as db:
        assert db.verify(one, "entries", **sparse).ok
        # A feature's name is that of the constant, too.
        assert not coef0 or one.get_feature_names_out()[0] == "monomial_0"
        found = np.array(db.relation(one, "entries", **sparse).fetchall())
    assert np.allclose(found[found[:, 0].argsort(), 1:], one.transform(frame), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_the_constant_alone(connection, form):
    store(connection, dyadic(5, 3))
    one = exact(2, coef0=3.0).fit(dyadic(5, 3)).select([0])
    with sqlkrp.connect(connection) as db:
        found = db.relation(one, "t", form=form).fetchall()
    assert found == [(3.0,)] * 5


def test_a_kept_column_that_has_a_feature_s_name_is_told(connection):
    store(connection, dyadic(5, 2))
    one = exact(2).fit(["c0", "c1"])
    with pytest.raises(ColumnError, match="output column 'c0' is there twice"):
        one.to_sql("t", keep=["c0"])
    assert '"monomial"' in one.to_sql("t", keep=["c0"], output="array")


# --- names ----------------------------------------------------------------------------------------


def names(columns, degree=2, **parameters):
    return exact(degree, **parameters).fit(columns).get_feature_names_out().tolist()


def test_names_say_what_is_multiplied():
    assert names(["age", "income"], 3) == [
        "1", "age", "income", "age^2", "age*income", "income^2",
        "age^3", "age^2*income", "age*income^2", "income^3",
    ]  # fmt: skip
    assert names(["age", "income"], coef0=0) == ["age^2", "age*income", "income^2"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["a*b", "c"], ["1", "monomial_1", "c", "monomial_3", "monomial_4", "c^2"]),
        (["a^2", "b"], ["1", "monomial_1", "b", "monomial_3", "monomial_4", "b^2"]),
        (["a\n*", "b"], ["1", "monomial_1", "b", "monomial_3", "monomial_4", "b^2"]),
        (["1", "b"], ["monomial_0", "monomial_1", "b", "1^2", "1*b", "b^2"]),
        (["B", "b"], ["1", "monomial_1", "monomial_2", "monomial_3", "B*b", "monomial_5"]),
        (["Monomial_3", "b"], ["1", "monomial_1", "b", "monomial_3", "monomial_4", "b^2"]),
        (["\u00fc" * 31, "b"],
         ["1", "\u00fc" * 31, "b", "monomial_3", "monomial_4", "b^2"]),
        (["n" * 61, "b"], ["1", "n" * 61, "b", "n" * 61 + "^2", "n" * 61 + "*b", "b^2"]),
        (["n" * 62, "b"], ["1", "n" * 62, "b", "monomial_3", "monomial_4", "b^2"]),
    ],
)  # fmt: skip
def test_what_has_no_clear_name_is_numbered(columns, expected):
    assert names(columns) == expected


def test_a_legend_says_what_numbers_stand_for(tmp_path):
    one = exact().fit(["a*b", 'c"d', "e"])
    # The names that are clear need none.
    expected = {
        "monomial_1": {"a*b": 1}, "monomial_4": {"a*b": 2}, "monomial_5": {"a*b": 1, 'c"d': 1},
        "monomial_6": {"a*b": 1, "e": 1},
    }  # fmt: skip
    assert one.legend == expected
    one.save(tmp_path / "m.json")
    assert sqlkrp.load(tmp_path / "m.json").legend == expected
    # Of some features, whose tables are numbered anew.
    assert one.select([2, 5, 8]).legend == {"monomial_5": {"a*b": 1, 'c"d': 1}}
    assert exact().fit(["a", "b"]).legend == {}
    assert KRP(2, 3).fit(["a"]).legend == {}


def test_inspect_shows_the_legend(run_cli, tmp_path):
    exact().fit(["a*b", 'c"d', "e"]).save(tmp_path / "m.json")
    told = run_cli("inspect", "m.json").stdout.splitlines()
    start = next(i for i, line in enumerate(told) if line.startswith("features"))
    assert [" ".join(line.split()) for line in told[start + 1 : start + 5]] == [
        'monomial_1 "a*b"', 'monomial_4 "a*b"^2', 'monomial_5 "a*b" * "c""d"',
        'monomial_6 "a*b" * "e"',
    ]  # fmt: skip
    legend = json.loads(run_cli("inspect", "m.json", "--json").stdout)["legend"]
    assert legend["monomial_5"] == {"a*b": 1, 'c"d': 1}
    exact().fit(["1", *(f"*{i}" for i in range(4))]).save(tmp_path / "n.json")
    told = run_cli("inspect", "n.json").stdout
    assert re.search("^  monomial_0 +1, the constant$", told, re.MULTILINE)
    assert re.search(r"^  \.\.\. +10 more, all of them in JSON$", told, re.MULTILINE)
    exact().fit(["a", "b"]).save(tmp_path / "o.json")
    assert "legend" not in json.loads(run_cli("inspect", "o.json", "--json").stdout)


def test_names_of_maps_that_are_made_of_maps():
    frame = dyadic(20, 3)
    one = chain(PCA(2), Monomials(2)).fit(frame)
    assert one.get_feature_names_out().tolist() == [
        "1", "pca_0", "pca_1", "pca_0^2", "pca_0*pca_1", "pca_1^2",
    ]  # fmt: skip
    ensemble = Ensemble(Monomials(1), 2).fit(frame)
    assert ensemble.get_feature_names_out()[[1, 4]].tolist() == ["monomial_0_1", "monomial_1_0"]
    assert ensemble.legend["monomial_1_3"] == {"c2": 1}
    nested = Ensemble(Ensemble(KRP(1, 2), 2), 2, random_state=0).fit(frame)
    assert nested.get_feature_names_out()[[1, 4]].tolist() == ["krp_0_0_1", "krp_1_0_0"]


# --- how many there may be ------------------------------------------------------------------------


def test_too_many_are_refused_with_what_to_do(run_cli):
    with pytest.raises(ParameterError) as no:
        exact(3).fit([f"c{i}" for i in range(200)])
    assert str(no.value) == (
        "200 columns have 1,373,701 monomials of degree up to 3, and this map takes up to "
        "1,000,000: use fewer columns, a smaller degree, or KRP(degree=3), which estimates the "
        "same kernel"
    )
    with pytest.raises(ParameterError, match=r"1,353,400 monomials of degree 3, and"):
        exact(3, coef0=0).fit([f"c{i}" for i in range(200)])
    with pytest.raises(ParameterError, match=r"have about 10\^1453 monomials .* up to 30,000: "):
        exact(1000).fit([f"c{i}" for i in range(10_000)])
    columns = ",".join(f"c{i}" for i in range(200))
    drawn = ("draw", "--columns", columns, "-o", "m.json", "--map", "monomials", "--degree", 3)
    told = run_cli(*drawn, "--gamma", 1, code=2).stderr
    assert "use fewer columns, a smaller degree, or --map krp --degree 3, which estimates" in told


@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_as_many_as_are_allowed_are_taken(monkeypatch, coef0):
    columns = ["a", "b", "c", "d"]
    count = len(names(columns, 3, coef0=coef0))
    assert count == (math.comb(7, 3) if coef0 else math.comb(6, 3))
    monkeypatch.setattr(room, "_MOST_MONOMIALS", count)
    assert len(names(columns, 3, coef0=coef0)) == count
    monkeypatch.setattr(room, "_MOST_MONOMIALS", count - 1)
    with pytest.raises(ParameterError, match=f"have {count} monomials"):
        names(columns, 3, coef0=coef0)


def test_an_engine_says_what_it_does_not_take():
    one = exact(2).fit([f"c{i}" for i in range(60)])  # 1,891 of them
    with pytest.raises(LimitError, match=r"at most 1,664 entries in a SELECT.*has 1,891"):
        one.to_sql("t", dialect="postgres")
    assert one.preflight(dialect="postgres").problems
    assert one.to_sql("t", dialect="postgres", output="array")


def test_the_warning_of_too_many_features_names_this_map(run_cli, tmp_path):
    dyadic(60, 4).to_csv(tmp_path / "t.csv", index=False)
    told = run_cli("draw", "t.csv", "-o", "m.json", "--components", 20).stderr
    assert told == (
        "sqlkrp: warning: 20 features of 4 columns: the kernel has only 15 monomials, and more "
        "features than that add nothing; --map monomials --degree 2 computes it exactly, and "
        "--components 15 will do\n"
    )
    others = ("--components", 20, "--coef0", 0, "--degree", 1)
    told = run_cli("draw", "t.csv", "-o", "n.json", *others).stderr
    assert "; --map monomials --degree 1 --coef0 0 computes it exactly, and --comp" in told
    exactly = ("draw", "t.csv", "-o", "o.json", "--map", "monomials", "--degree", 2)
    assert not run_cli(*exactly).stderr
