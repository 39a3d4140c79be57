"""How far features are from their kernels: known answers, theory, and every engine like NumPy."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from engines import Spark
from hostile import HOSTILE, INNER, spelt_apart
from sklearn.linear_model import Ridge
from support import assert_mean, store

import sqlkrp
from sqlkrp.errors import ColumnError, ParameterError
from sqlkrp.maps.arrays import as_source
from sqlkrp.maps.spherical import radial_fit
from sqlkrp.quality.asked import asked_of, family_of
from sqlkrp.quality.measured import draw_of
from sqlkrp.stages import Program

ROWS = 24


def table(rows=ROWS, columns=5, names=None):
    """Rows of numbers, of which the second is the first again."""
    values = np.random.default_rng(0).normal(size=(rows, columns))
    values[1] = values[0]
    return pd.DataFrame(values, columns=names or [f"c{i}" for i in range(columns)])


def numbers(told, at=""):
    """The numbers of a summary, by where they stand."""
    if isinstance(told, dict):
        pairs = told.items()
    elif isinstance(told, list):
        pairs = enumerate(told)
    else:
        return {at: told} if isinstance(told, (int, float)) else {}
    return {name: x for key, one in pairs for name, x in numbers(one, f"{at}.{key}").items()}


def assert_same(found, wanted):
    found, wanted = numbers(found.to_dict()), numbers(wanted.to_dict())
    assert [*found] == [*wanted]
    assert [*found.values()] == pytest.approx([*wanted.values()], rel=1e-9, abs=1e-12)


# --- known answers --------------------------------------------------------------------------------


def test_three_rows_by_hand():
    # Of rows 0, 1, 2 by <x, y>, and features 0, 1, 3: squared distances 1, 4, 1 become 1, 9, 4.
    exact, features = np.outer([0, 1, 2], [0, 1, 2]).astype("f8"), np.array([[0.0], [1], [3]])
    draw = draw_of(7, features, exact, is_centred=False)
    off = np.array([0, 5 / 4, 3])
    assert (draw.seed, draw.rows, draw.pairs, draw.zero) == (7, 3, 3, 0)
    assert (draw.mean, draw.bias) == pytest.approx((off.mean(), off.mean()))
    assert draw.std == pytest.approx(off.std())
    assert [*draw.quantiles.values()] == [0, 5 / 4, 3, 3, 3, 3]
    assert (draw.kernel_error, draw.kernel_bias) == pytest.approx((1 / 3, 1 / 3))
    assert draw.frobenius == pytest.approx(math.sqrt(25 + 2) / math.sqrt(1 + 16 + 2 * 4))


def test_rows_at_distance_0_are_counted_and_left_out():
    same = np.array([[1.0], [1], [2]])
    draw = draw_of(0, 2 * same, same @ same.T, is_centred=False)
    assert (draw.pairs, draw.zero, draw.mean) == (3, 1, 3)


def test_an_exact_map_has_no_distortion(place):
    place.store(table())
    exact = sqlkrp.Monomials(3).fit(place.database.source("t"))
    (found,) = place.database.distortion(exact, "t").maps
    assert found.draws[0].quantiles[1.0] < 1e-9
    assert found.draws[0].frobenius < 1e-12
    assert (len(found.draws), found.draws[0].zero) == (1, 1)  # nothing of it is drawn


# --- theory ---------------------------------------------------------------------------------------

UNBIASED = {
    "krp": sqlkrp.KRP(3, 20, n_terms=2, coef0=0.5, gamma=0.3),
    "iid": sqlkrp.KRP(2, 20, pool="achlioptas", n_hyperplanes=30, n_terms=2, gamma=0.5),
    "by degree": sqlkrp.MixedKRP(3, 20, n_terms=1, gamma=0.5),
    "complex": sqlkrp.ComplexKRP(3, 20, n_terms=1, gamma=0.5),
    "explicit": sqlkrp.ExplicitRP(2, 20, gamma=0.5),
    "tensor sketch": sqlkrp.TensorSketch(2, 20, gamma=0.5),
    "maclaurin": sqlkrp.RandomMaclaurin(20, degree=2, gamma=0.5),
    "exponential": sqlkrp.RandomMaclaurin(20, kernel="exponential", gamma=0.3),
    "projection": sqlkrp.RandomProjection(20),
    "prp": sqlkrp.PRP(20),
    "rank one": sqlkrp.RankOneProjection(20),
    "rbf": sqlkrp.RandomFourier(20, gamma=0.2),
    "laplacian": sqlkrp.RandomFourier(20, kernel="laplacian", gamma=0.2),
    "ensemble": sqlkrp.Ensemble(sqlkrp.KRP(2, 10, n_terms=2, gamma=0.5), 2),
    "chain": sqlkrp.chain(sqlkrp.PCA(2), sqlkrp.KRP(2, 20, n_terms=2, gamma=0.5)),
}


def difference(one, X, draws=400):
    """The mean of many draws' estimates less the kernel that is claimed, and its standard error."""
    family = family_of(one.set_params(random_state=0).fit(X))
    exact = family.kernel.of_sums(family.kernel.sums(family.before.apply(X.to_numpy())))
    programs = [family.drawn(as_source(X), seed) for seed in range(draws)]
    features = [program.apply(X.to_numpy()) for program in programs]
    estimates = np.array([one @ one.T for one in features])
    return np.abs(estimates.mean(axis=0) - exact), estimates.std(axis=0) / math.sqrt(draws)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNBIASED)
def test_draws_estimate_the_kernel_that_their_map_claims(name):
    found, error = difference(UNBIASED[name], table(5, 3))
    assert (found < 5 * error + 1e-12).all()


@pytest.mark.parametrize("is_behind", [False, True])
def test_other_draws_of_a_map_of_a_time_when_one_chunk_had_the_constant(is_behind):
    X = table(8, 6)
    one = sqlkrp.KRP(1, 16, block_size=2, coef0=0.5, gamma=0.4, scaling=None, random_state=0)
    krp = (sqlkrp.chain(sqlkrp.PCA(6), one, random_state=0) if is_behind else one).fit(X)
    place = family_of(krp).n_before - 1
    stages = list(krp.program_.stages)
    reads, whole = stages[place], math.sqrt(0.5 / 0.4)
    constant = np.append(reads.constant[:-1], whole) if is_behind else whole
    stages[place] = replace(reads, constant=constant)
    krp.program_ = Program(tuple(stages), krp.program_.names)
    family = family_of(krp)
    inputs = family.before.apply(X.to_numpy())
    drawn = [family.drawn(as_source(X), seed).apply(X.to_numpy()) for seed in range(300)]
    assert_mean([features @ features.T for features in drawn], 0.4 * inputs @ inputs.T + 0.5)


@pytest.mark.slow
def test_maps_that_are_nearly_unbiased_are_near_what_they_claim():
    spherical = sqlkrp.SphericalRandomFeatures(20, degree=3, a=3)
    found, error = difference(spherical, table(5, 3))
    *_, off = radial_fit(3, 3, 3)  # of the kernel that the frequencies make
    assert (found < 5 * error + off).all()
    assert off < 0.05
    found, error = difference(sqlkrp.SORF(64, paired=True, gamma=0.01), table(5, 64), 100)
    assert (found < 5 * error + 0.01).all()


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
def test_landmarks_that_are_all_rows_have_the_kernel_itself(kernel):
    X = table(12)
    (found,) = sqlkrp.distortion(
        sqlkrp.Nystroem(12, kernel=kernel, degree=3, random_state=0).fit(X), X, runs=2
    ).maps
    assert max(draw.quantiles[1.0] for draw in found.draws) < 1e-6
    centred = sqlkrp.KGRP(9, n_landmarks=12, n_marked=4, kernel=kernel, random_state=0).fit(X)
    (found,) = sqlkrp.distortion(centred, X, runs=200).maps
    biases = np.array([draw.bias for draw in found.draws])
    assert abs(biases.mean()) < 5 * biases.std() / math.sqrt(len(biases))


@pytest.mark.parametrize(
    "one",
    [
        sqlkrp.KRP(2, 150, pool="gaussian", n_hyperplanes=60, n_terms=3),
        sqlkrp.KRP(3, 150, pool="achlioptas", n_hyperplanes=2000, n_terms=1, coef0=0.0),
        sqlkrp.RandomProjection(150, pool="gaussian"),
        sqlkrp.ExplicitRP(2, 150),
        sqlkrp.RankOneProjection(150),
        sqlkrp.RandomFourier(150),
        sqlkrp.RandomFourier(150, paired=True),
        sqlkrp.RandomFourier(150, kernel="laplacian"),
    ],
    ids=lambda one: one.prefix,
)
def test_what_theory_predicts_is_measured(one):
    X = table(40, 6)
    (found,) = sqlkrp.distortion(one.set_params(random_state=0).fit(X), X, runs=100).maps
    error = found.std / math.sqrt(len(found.draws))
    # Means of squares of 150 and more are normal to a few percent only.
    assert abs(found.mean - found.predicted) < 4 * error + 0.04 * found.predicted
    biases = np.array([draw.bias for draw in found.draws])
    assert abs(biases.mean()) < 5 * biases.std() / math.sqrt(len(biases))


@pytest.mark.parametrize("degree", [6, 900])
def test_nothing_is_predicted_where_estimates_vary_by_more_than_distances(degree):
    """A mean distortion is at most 2, as no estimate is below 0 and their mean is the distance."""
    X = table(12, 3)
    one = sqlkrp.KRP(degree, 4, pool="gaussian", n_terms=1, gamma=1.0, coef0=0.0, scaling="unit")
    (found,) = sqlkrp.distortion(one.set_params(random_state=0).fit(X), X, runs=1).maps
    assert found.predicted is None


def test_a_projection_of_the_kernel_s_space_reaches_the_floor():
    X = table(40, 6)
    (found,) = sqlkrp.distortion(sqlkrp.ExplicitRP(2, 150, random_state=0).fit(X), X, runs=2).maps
    assert found.floor == pytest.approx(2 / math.sqrt(math.pi * 150))
    assert found.predicted == pytest.approx(found.floor)


# --- engines like NumPy ---------------------------------------------------------------------------

MAPS = {
    "krp": sqlkrp.KRP(2, 30, pool="gaussian", n_hyperplanes=40, n_terms=2, random_state=0),
    "rbf": sqlkrp.RandomFourier(30, random_state=0),
    "laplacian": sqlkrp.RandomFourier(12, kernel="laplacian", paired=True, random_state=0),
    "spherical": sqlkrp.SphericalRandomFeatures(12, random_state=0),
    "exponential": sqlkrp.RandomMaclaurin(12, kernel="exponential", random_state=0),
    "projection": sqlkrp.RandomProjection(12, random_state=0),
    "of length 1": sqlkrp.KRP(3, 12, scaling="unit", random_state=0),
    "centred": sqlkrp.KGRP(6, n_landmarks=10, n_marked=3, random_state=0),
    "ensemble": sqlkrp.Ensemble(sqlkrp.KRP(2, 6), 2, random_state=0),
    "chain": sqlkrp.chain(
        sqlkrp.Thresholds(3), sqlkrp.Nystroem(8, scaling="standard"), random_state=0
    ),
}


@pytest.mark.parametrize("name", [
    name if name in ("krp", "laplacian", "centred") else pytest.param(name, marks=pytest.mark.slow)
    for name in MAPS
])  # fmt: skip
def test_an_engine_finds_what_numpy_does(place, name):
    X = table()
    place.store(X)
    one = MAPS[name].fit(X)
    # The rows that are drawn for landmarks are other ones where a table is sorted otherwise.
    runs = 1 if name in ("centred", "chain") else 3
    components = () if runs == 1 else [4, 8]
    given = {"rows": ROWS, "runs": runs, "components": components}
    found = place.database.distortion(one, "t", **given)
    assert_same(found, sqlkrp.distortion(one, X, **given))
    assert place.objects() == ["t"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["krp", "rbf", "laplacian"])
def test_spark_finds_what_numpy_does(spark_session, name):
    spark, X = Spark(spark_session), table()
    spark.store(X, "rows_of_distortion")
    try:
        one, given = MAPS[name].fit(X), {"rows": ROWS, "runs": 2}
        found = spark.database.distortion(one, "rows_of_distortion", **given)
    finally:
        spark.drop("rows_of_distortion")
    assert_same(found, sqlkrp.distortion(one, X, **given))
    assert not [one for one in spark_session.catalog.listTables() if "sqlkrp" in one.name]


def test_many_features_are_added_up_in_parts(place, monkeypatch):
    monkeypatch.setattr("sqlkrp.engines.distortion.BLOCK", 7)
    monkeypatch.setattr("sqlkrp.engines.distortion._COLUMNS", 20)
    X = table(ROWS, 23)
    place.store(X)
    for one in (sqlkrp.KRP(2, 47), sqlkrp.RandomFourier(9, scaling="unit", nulls="propagate")):
        one = one.set_params(random_state=0).fit(X)
        found = place.database.distortion(one, "t", runs=1)
        assert_same(found, sqlkrp.distortion(one, X, runs=1))


def test_names_are_no_sql(place):
    names = spelt_apart(
        [name for name in ("i", "j", "k", "v", "r", "d", "c0", "place_", *HOSTILE, *INNER)
         if name not in place.its_own]
    )  # fmt: skip
    X = table(6, len(names), names)
    place.store(X)
    for one in (sqlkrp.KRP(2, 5, random_state=0), sqlkrp.RandomFourier(5, random_state=0)):
        one = one.fit(X, include=names)
        given = {"rows": 6, "runs": 2}
        found = place.database.distortion(one, "t", **given)
        assert_same(found, sqlkrp.distortion(one, X, **given))


def test_rows_without_features_are_left_out(place):
    X = table()
    X.iloc[5, 2] = np.nan
    place.store(X)
    one = sqlkrp.KRP(2, 9, nulls="propagate", random_state=0).fit(X)
    found = place.database.distortion(one, "t", runs=1)
    assert_same(found, sqlkrp.distortion(one, X, runs=1))
    assert found.maps[0].draws[0].rows == ROWS - 1


def test_categories_are_inputs(place):
    X = table().assign(kind=["a", "b", "c"] * 8)
    place.store(X)
    one = sqlkrp.KRP(2, 9, random_state=0).fit(place.database.source("t"), categories="auto")
    given = {"rows": ROWS, "runs": 2}
    assert_same(place.database.distortion(one, "t", **given), sqlkrp.distortion(one, X, **given))


# --- what is read, made and left ------------------------------------------------------------------


def test_only_summaries_are_fetched_and_nothing_stays(place, monkeypatch):
    place.store(table(100))
    one = sqlkrp.KRP(2, 20, random_state=0).fit(place.database.source("t"))
    session, fetched, there = place.database._session, [], set()
    rows, create, drop = session.rows, session.create_temporary, session.drop_temporary

    def spied_rows(sql, what):
        fetched.append(len(found := rows(sql, what)))
        return found

    monkeypatch.setattr(session, "rows", spied_rows)
    monkeypatch.setattr(session, "columns", None)
    monkeypatch.setattr(
        session, "create_temporary", lambda name, *rest: (create(name, *rest), there.add(name))
    )
    monkeypatch.setattr(session, "drop_temporary", lambda name: (drop(name), there.discard(name)))
    place.database.distortion(one, "t", runs=2)
    assert max(fetched) <= 6
    assert not there

    def failing(*given, **named):
        raise ColumnError("this is a test")

    monkeypatch.setattr("sqlkrp.quality.measured.Draw.of", failing)
    with pytest.raises(ColumnError, match="this is a test"):
        place.database.distortion(one, "t", runs=2)
    assert not there


def test_a_seed_draws_rows_and_maps(connection):
    store(connection, table(200))
    db = sqlkrp.connect(connection)
    one = sqlkrp.KRP(2, 20, random_state=3).fit(db.source("t"))
    first, again, other = (
        db.distortion(one, "t", rows=20, runs=2, seed=seed) for seed in (0, 0, 1)
    )
    assert first.to_dict() == again.to_dict()
    assert first.rows == 20
    assert first.maps[0].draws[0].seed == other.maps[0].draws[0].seed == 3
    assert first.maps[0].draws[0].mean != other.maps[0].draws[0].mean
    assert first.maps[0].draws[1].seed != other.maps[0].draws[1].seed


def test_a_map_of_a_file_and_several_side_by_side(connection, tmp_path):
    X = table()
    store(connection, X)
    db = sqlkrp.connect(connection)
    maps = [sqlkrp.KRP(2, 20, random_state=0).fit(X), sqlkrp.RandomFourier(9, random_state=1)]
    maps[1] = maps[1].fit(X, include=["c1", "c3"])
    maps[0].save(tmp_path / "m.json")
    read = sqlkrp.load(tmp_path / "m.json")
    both = db.distortion([read, maps[1]], "t", runs=2)
    alone = [db.distortion(one, "t", runs=2) for one in maps]
    assert [one.title for one in both.maps] == [one.title for one in maps]
    for one, found in zip(alone, both.maps, strict=True):
        assert found.draws == one.maps[0].draws


def test_a_curve_says_from_where_more_does_not_help():
    X = table(60, 6)
    few = sqlkrp.KRP(2, 50, pool="gaussian", n_hyperplanes=60, n_terms=5, random_state=0).fit(X)
    (found,) = sqlkrp.distortion(few, X, runs=12, components=[400, 3, 800, 1600]).maps
    assert [step.components for step in found.curve] == [3, 400, 800, 1600]
    assert found.enough == 400  # sixty hyperplanes are shared, however many features there are
    (found,) = sqlkrp.distortion(
        sqlkrp.RandomFourier(50, random_state=0).fit(X), X, runs=12, components=[10, 100]
    ).maps
    assert found.enough is None


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (sqlkrp.PCA(2), "PCA.* estimates no kernel"),
        (sqlkrp.Thresholds(2), "Thresholds.* estimates no kernel"),
        (sqlkrp.RankOneProjection(5, binary=True), "estimates no kernel"),
        (sqlkrp.Ensemble(sqlkrp.chain(sqlkrp.PCA(2), sqlkrp.KRP(2, 5)), 2), "estimates no kernel"),
    ],
)
def test_maps_without_a_kernel_say_so(one, message):
    X = table()
    with pytest.raises(ParameterError, match=message):
        sqlkrp.distortion(one.set_params(random_state=0).fit(X), X)


@pytest.mark.parametrize("size", [1e-160, 1e80])
def test_kernels_that_leave_the_range_of_numbers_are_told(connection, size):
    X = table(20, 3) * size
    store(connection, X)
    one = sqlkrp.PRP(4, scaling=None, random_state=0).fit(X)
    if size < 1:
        one = sqlkrp.RandomProjection(4, scaling=None, random_state=0).fit(X)
    for measure in (
        lambda: sqlkrp.distortion(one, X, runs=1),
        lambda: sqlkrp.connect(connection).distortion(one, "t", runs=1),
    ):
        with pytest.raises(ColumnError, match="leave the range of numbers"):
            measure()


def test_what_cannot_be_measured_says_so(connection):
    X = table()
    store(connection, X)
    db = sqlkrp.connect(connection)
    krp = sqlkrp.KRP(2, 5, random_state=0).fit(X)
    with pytest.raises(ParameterError, match="selection of a map's features"):
        db.distortion(krp.select([1, 2]), "t")
    model = sqlkrp.model(Ridge().fit(krp.transform(X), X.c0), krp)
    with pytest.raises(ParameterError, match="give the map"):
        db.distortion(model, "t")
    with pytest.raises(ParameterError, match="one column a feature"):
        db.distortion(krp, db.source("t", long=("c0", "c1", "c2")))
    with pytest.raises(ParameterError, match="there is no map to measure"):
        db.distortion([], "t")
    store(connection, X.iloc[[0, 1]], "same")
    with pytest.raises(ColumnError, match="no two are at a distance"):
        db.distortion(krp, "same")
    store(connection, X.iloc[:0], "empty")
    with pytest.raises(ColumnError, match="of 0 rows no two"):
        db.distortion(krp, "empty")
    for wrong in (
        {"rows": 1},
        {"rows": 5001},
        {"runs": 0},
        {"runs": 1001},
        {"seed": -1},
        {"components": 5},
        {"components": np.int64(5)},
        {"components": None},
        {"components": [0]},
        {"components": [4, "5"]},
    ):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            db.distortion(krp, "t", **wrong)
    assert asked_of(2, 1, 0, [5, 3, 5]).components == (3, 5)
    (found,) = db.distortion(krp, "t", rows=20, runs=np.int64(1), components=np.array([4, 8])).maps
    assert [step.components for step in found.curve] == [4, 8]


# --- the command ----------------------------------------------------------------------------------


def test_the_command_tells_and_prints_json(run_cli, tmp_path):
    table(40).to_csv(tmp_path / "t.csv", index=False)
    run_cli("draw", "t.csv", "--components", 30, "-o", "a.json")
    run_cli("draw", "t.csv", "--map", "kgrp", "--landmarks", 20, "--marked", 5, "-o", "b.json")
    given = ("distortion", "a.json", "b.json", "--file", "t.csv", "--runs", 2)
    told = run_cli(*given, "--components", "10,20").stdout
    assert told.count("distortion  ") >= 2
    for words in ("floor", "at distance 0 left out", "bias", "⟨x, y⟩", "kernel as it is centred"):
        assert words in told
    found = json.loads(run_cli(*given, "--json").stdout)
    assert [one["components"] for one in found["maps"]] == [30, 100]
    assert found["maps"][1]["kernel_error"] is None
    assert run_cli(*given, "-q").stdout == ""
    for count, told in (("100000000", "use numbers up to 9,999,999, such as 100,200,500"),
                        ("9-3", "is no number or range, such as 100,200,500")):  # fmt: skip
        assert told in run_cli(*given, "--components", count, code=2).stderr
    assert "--runs 0 is not allowed" in run_cli(*given[:-1], 0, code=2).stderr
