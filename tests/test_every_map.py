"""Every map: SQL against its NumPy twin, means against kernels, and scikit-learn's own."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import decomposition, kernel_approximation
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import SparseRandomProjection
from support import FORMS, dyadic, matrix, store

import sqlkrp
from sqlkrp import (
    KGRP,
    KRP,
    PCA,
    PRP,
    SORF,
    ComplexKRP,
    Ensemble,
    ExplicitRP,
    MixedKRP,
    Monomials,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    RandomProjection,
    RankOneProjection,
    SphericalRandomFeatures,
    TensorSketch,
    Thresholds,
    chain,
)
from sqlkrp.errors import (
    ColumnError,
    InconsistentMapError,
    LimitError,
    MapFileError,
    ParameterError,
)
from sqlkrp.maps import CLASSES, MAPS
from sqlkrp.maps.rank_one import pack_signs
from sqlkrp.maps.spherical import radial_fit
from sqlkrp.sql.dialects import dialect
from sqlkrp.stages import Elementwise, SumOfProducts
from sqlkrp.verification import compare

#: A few of each kind; all that a test needs to know of one is how to make it.
EVERY = {
    "random projection": RandomProjection(5, random_state=0),
    "random projection, hadamard": RandomProjection(20, pool="hadamard", random_state=0),
    "explicit": ExplicitRP(3, 5, coef0=0.25, gamma=1.0, scaling=None, random_state=0),
    "monomials": Monomials(3, coef0=0.5, gamma=0.25, random_state=0),
    "monomials, homogeneous": Monomials(2, coef0=0, random_state=0),
    "thresholds": Thresholds(4),
    "prp": PRP(5, n_matrices=4, random_state=0),
    "nystroem, rbf": Nystroem(9, gamma=0.125, random_state=0),
    "nystroem, polynomial": Nystroem(9, kernel="polynomial", degree=3, coef0=1, random_state=0),
    "kgrp": KGRP(6, n_landmarks=12, n_marked=5, random_state=0),
    "kgrp, rbf": KGRP(6, n_landmarks=12, n_marked=5, kernel="rbf", gamma=0.125, random_state=0),
    "fourier": RandomFourier(6, gamma=0.25, random_state=0),
    "fourier, paired": RandomFourier(6, gamma=0.25, paired=True, random_state=0),
    "fourier, laplacian": RandomFourier(6, kernel="laplacian", gamma=0.25, random_state=0),
    "sorf": SORF(11, gamma=0.125, random_state=0),
    "sorf, paired": SORF(20, gamma=0.125, paired=True, random_state=0),
    "spherical": SphericalRandomFeatures(6, degree=7, random_state=0),
    "maclaurin": RandomMaclaurin(12, degree=3, coef0=0.5, random_state=0),
    "maclaurin, exponential": RandomMaclaurin(12, kernel="exponential", gamma=0.1, random_state=0),
    "tensor sketch": TensorSketch(3, 8, coef0=0.5, random_state=0),
    "tensor sketch, odd": TensorSketch(2, 7, random_state=0),
    "tensor sketch, buckets": TensorSketch(3, 6, domain="bucket", random_state=0),
    "rank one": RankOneProjection(6, random_state=0),
    "rank one, signs": RankOneProjection(6, binary=True, random_state=0),
    "pca": PCA(3, scaling="standard"),
    "complex": ComplexKRP(
        4, 6, n_terms=2, block_size=4, coef0=0, gamma=1, scaling=None, random_state=0
    ),
    "complex, independent": ComplexKRP(
        3,
        6,
        n_terms=2,
        pool="achlioptas",
        n_hyperplanes=20,
        coef0=0,
        gamma=1,
        scaling=None,
        random_state=0,
    ),
    "by degree": MixedKRP(3, 30, n_terms=2, coef0=0.5, gamma=0.125, random_state=0),
    "by degree, too few features": MixedKRP(2, 4, block_size=4, gamma=0.125, random_state=0),
    "ensemble by degree": Ensemble(MixedKRP(2, 20, gamma=0.125), 2, random_state=0),
    "products of products": KRP(
        5, 6, n_terms=3, block_size=4, coef0=0.5, gamma=0.125, random_state=0
    ),
    "odd complex": ComplexKRP(3, 5, n_terms=2, block_size=4, gamma=0.125, random_state=0),
    "ensemble": Ensemble(RandomFourier(4, gamma=0.25), 3, random_state=0),
    "ensemble of products": Ensemble(KRP(2, 4, pool="hadamard", coef0=1), 2, random_state=0),
    "ensemble of landmarks": Ensemble(Nystroem(4, gamma=0.125), 2, random_state=0),
    "ensemble of chains": Ensemble(chain(PCA(3), Nystroem(4, gamma=0.125)), 2, random_state=0),
    "ensemble of monomials": Ensemble(chain(PCA(3), Monomials(2)), 2, random_state=0),
    "chain": chain(PCA(4), KRP(3, 6, n_terms=2, coef0=0.5), random_state=0),
    "chain, scaled": chain(PCA(4), RandomFourier(6, scaling="standard"), random_state=0),
    "chain of thresholds": chain(
        Thresholds(4), RandomFourier(6, gamma=0.125, scaling="standard"), random_state=0
    ),
    "ensemble of thresholds": Ensemble(
        chain(Thresholds(3), KRP(2, 4, pool="hadamard")), 2, random_state=0
    ),
    "chain of three": chain(PCA(4), Nystroem(6, gamma=0.02), PCA(3), random_state=0),
}
TERNARY = [name for name in EVERY if name.startswith(("random", "explicit", "prp", "complex"))]


@pytest.fixture(params=EVERY)
def named(request):
    return request.param, clone(EVERY[request.param])


def rows(count=40, columns=7):
    return dyadic(count, columns, seed=3)


# --- the twin -------------------------------------------------------------------------------------


def test_every_map_equals_numpy(connection, named):
    # In DuckDB; what a map is made of runs on every engine in test_engines.py.
    name, one = named
    frame = rows()
    store(connection, frame, "t")
    expected = one.fit(frame).transform(frame)
    # A share of what is added on the way: of a landmark map that may be far more than the sum.
    size = np.maximum(np.abs(expected).max(axis=0), 1e-3)
    few = one.select([1])
    with sqlkrp.connect(connection) as db:
        for form in FORMS:
            found = np.array(db.relation(one, "t", form=form).fetchall(), dtype=float)
            assert found.shape == expected.shape
            assert (np.abs(found - expected).max(axis=0) <= 1e-9 * size).all(), form
            if name in TERNARY:
                twin = one.program_.projection().apply(frame.to_numpy())
                bare = db.relation(one, "t", form=form, stage="projection").fetchall()
                assert np.array_equal(np.array(bare, dtype=float), twin), form
            assert db.verify(few, "t", form=form).ok, form


@pytest.mark.parametrize("name", ["maclaurin", "nystroem, rbf"])
def test_what_is_never_null_on_its_way_is_null_in_rows_that_miss_a_value(engine, name):
    # A product of fewer factors than others, and a distance, read 1 or 0 for what is not there.
    one = clone(EVERY[name]).set_params(nulls="propagate")
    frame = rows().assign(id=np.arange(40))
    frame.iloc[3, 2] = np.nan
    engine.store(frame)
    one.fit(frame, keep=["id"])
    for found in (one.transform(frame), engine.features(one, keep=["id"], form="tables")[:, 1:]):
        assert np.isnan(found[3]).all()
        assert not np.isnan(np.delete(found, 3, axis=0)).any()


@pytest.mark.parametrize("name", EVERY)
def test_missing_values_and_sparse_rows(connection, name):
    # Each map in one form and type: each stage is in all of them in test_engines.py.
    wide = [*EVERY].index(name) % 2
    form, dtype = ("wide", "float32") if wide else ("tables", "float64")
    inner = one = clone(EVERY[name])
    while hasattr(inner, "map") or hasattr(inner, "maps"):
        inner = inner.map if hasattr(inner, "map") else inner.maps[0]
    inner.nulls, inner.dtype = "propagate", dtype
    frame = rows()
    frame.iloc[3, 2] = np.nan
    frame.iloc[5, 1] = np.inf
    store(connection, frame, "t")
    with sqlkrp.connect(connection) as db:
        one.fit(db.source("t"))
        assert np.isnan(one.transform(frame)).any(axis=1).tolist() == [
            i in (3, 5) for i in range(40)
        ]
        assert db.verify(one, "t", form=form).ok
        if (one.program_.prepare.shift != 0).any():
            return  # absent entries would not stay 0
        frame = frame.drop([3, 5]).reset_index(drop=True)
        frame = frame.where(np.random.default_rng(1).random(frame.shape) < 0.4, 0.0)
        frame.iloc[4] = 0.0
        long = frame.stack().rename("v").reset_index().set_axis(["r", "f", "v"], axis=1)
        store(connection, long[long["v"] != 0], "entries")
        store(connection, pd.DataFrame({"r": range(len(frame))}), "keys")
        sparse = {"long": ("r", "f", "v"), "rows": "keys", "form": form}
        assert db.verify(one, "entries", **sparse).ok


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_error_of_a_percent_is_found_in_every_map(named, dtype):
    _, one = named
    dtypes = [name for name in one.get_params() if name.split("__")[-1] == "dtype"]
    one.set_params(**dict.fromkeys(dtypes, dtype))
    inputs = rows(40).to_numpy()
    program = one.fit(rows(40)).program_
    found = program.apply(inputs).astype("float64")
    assert compare(program, inputs, found, "wide", None).ok
    # All but one feature right: constant features are no measure, and stay as they are.
    worst = np.abs(found).max(axis=0).argmax()
    found[:, worst] *= 1.02
    assert compare(program, inputs, found, "wide", None).wrong == [program.names[worst]]


def test_verify_takes_no_null_for_a_number_nor_a_number_for_null():
    frame = rows()
    frame.iloc[3, 2] = np.nan
    program = PRP(5, nulls="propagate", random_state=0).fit(frame).program_
    found = program.apply(frame.to_numpy())
    assert compare(program, frame.to_numpy(), found, "wide", None).ok
    for row, value in ((0, np.nan), (3, 0.0)):
        other = found.copy()
        other[row, 1] = value
        assert compare(program, frame.to_numpy(), other, "wide", None).wrong == ["prp_1"]


@pytest.mark.parametrize(
    "one",
    [
        RandomMaclaurin(50, kernel="exponential", gamma=1e-4, random_state=0),
        RandomMaclaurin(50, degree=6, dtype="float32", random_state=0),
        ComplexKRP(7, 50, dtype="float32", random_state=0),
        TensorSketch(4, 50, domain="bucket", dtype="float32", random_state=0),
        KRP(5, 50, dtype="float32", random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_rounding_explains_is_less_than_the_features(one):
    # Wide rows and high degrees: the worst case of each sum is far from what sums come to.
    inputs = np.random.default_rng(0).integers(0, 17, size=(30, 64)).astype("float64")
    program = one.fit(inputs).program_
    found = program.apply(inputs).astype("float64")
    assert compare(program, inputs, found, "wide", None).ok
    assert not compare(program, inputs, 0 * found, "wide", None).ok
    assert not compare(program, inputs, 1.01 * found, "wide", None).ok


def test_a_map_is_the_same_whether_fitted_to_a_table_or_to_a_frame(connection, named):
    _, one = named
    frame = rows()
    store(connection, frame, "t")
    with sqlkrp.connect(connection) as db:
        there = one.fit(db.source("t")).transform(frame)
    assert np.allclose(one.fit(frame).transform(frame), there, rtol=1e-6, atol=1e-6)


def test_map_files_and_selections(tmp_path, named):
    _, one = named
    frame = rows()
    expected = one.fit(frame).transform(frame)
    one.save(tmp_path / "m.json")
    loaded = sqlkrp.load(tmp_path / "m.json")
    assert type(loaded) is type(one)
    assert loaded.digest_ == one.digest_
    assert loaded.title == one.title
    assert np.array_equal(loaded.transform(frame), expected)
    chosen = [0, expected.shape[1] - 1]
    few = one.select(chosen)
    assert np.allclose(few.transform(frame), expected[:, chosen], rtol=1e-12, atol=1e-14)
    assert len(set(one.get_feature_names_out())) == expected.shape[1]


# --- what they estimate ---------------------------------------------------------------------------

POINTS = np.random.default_rng(5).normal(size=(2, 6)) * 0.6


def test_structured_frequencies_are_orthogonal():
    one = SORF(16, gamma=0.5, random_state=0).fit([f"c{i}" for i in range(16)])
    frequencies = one.program_.projection().apply(np.eye(16)).T * math.sqrt(2 * 0.5) / 16
    assert np.allclose(frequencies @ frequencies.T, np.eye(16) * 16, atol=1e-12)


@pytest.mark.parametrize(("degree", "most"), [(3, 0.02), (7, 0.02), (10, 0.015), (20, 0.006)])
def test_the_spherical_fit(degree, most):
    radii, chances, error = radial_fit(degree, 4.0, 256)
    assert (chances >= 0).all()
    assert chances.sum() == pytest.approx(1)
    assert error < most
    # The same kernel from draws of frequencies, which know nothing of quadrature.
    rng = np.random.default_rng(0)
    first, others = rng.normal(size=40_000), rng.chisquare(255, size=40_000)
    along = first / np.sqrt(first**2 + others) * rng.choice(radii, size=40_000, p=chances)
    for distance in (0.5, 1.0, 2.0):
        waves = np.cos(distance * along)
        wanted = (1 - distance**2 / 16) ** degree
        assert abs(waves.mean() - wanted) <= error + 4 * waves.std() / 200


def test_the_spherical_fit_is_stable_in_high_dimensions():
    errors = [radial_fit(7, 4.0, d)[2] for d in (784, 4096)]
    assert errors[0] == pytest.approx(errors[1], rel=0.05)


def test_landmark_maps_are_exact_where_the_landmarks_span_everything():
    points = np.random.default_rng(0).normal(size=(12, 5))
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    one = Nystroem(12, gamma=0.3, random_state=0).fit(points)
    features = one.transform(points)
    assert np.allclose(features @ features.T, np.exp(-0.3 * squared), atol=1e-9)
    centred = KGRP(60, n_landmarks=12, n_marked=4, random_state=0).fit(points)
    assert np.allclose(centred.transform(points).sum(axis=0), 0, atol=1e-8)


# --- others' implementations, given the same random parts -------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("k", [8, 9])
def test_bucket_sketches_are_scikit_learn_s(degree, k):
    X = np.random.default_rng(0).normal(size=(6, 5))
    theirs = kernel_approximation.PolynomialCountSketch(
        degree=degree, n_components=k, gamma=0.7, coef0=0.4, random_state=0
    ).fit(X)
    ours = TensorSketch(degree, k, domain="bucket", gamma=0.7, coef0=0.4).fit(X)
    stages = ours.stages(theirs.indexHash_, theirs.bitHash_.astype("i1"))
    ours.program_ = sqlkrp.stages.Program((ours.program_.prepare, *stages), ours.program_.names)
    assert np.allclose(ours.transform(X), theirs.transform(X), rtol=1e-10, atol=1e-10)


def test_fourier_features_are_scikit_learn_s():
    X = np.random.default_rng(0).normal(size=(6, 5))
    ours = RandomFourier(8, gamma=0.3, random_state=0).fit(X)
    theirs = kernel_approximation.RBFSampler(gamma=0.3, n_components=8).fit(X)
    _, sums, affine, *_ = ours.program_.stages
    theirs.random_weights_, theirs.random_offset_ = matrix(sums).T, affine.constant
    assert np.allclose(ours.transform(X), theirs.transform(X), atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
def test_nystroem_is_scikit_learn_s(kernel):
    X = np.random.default_rng(0).normal(size=(30, 5))
    options = {} if kernel == "linear" else {"gamma": 0.3}
    if kernel == "polynomial":
        options |= {"degree": 3, "coef0": 0.5}
    ours = Nystroem(8, kernel=kernel, random_state=0, **options).fit(X)
    theirs = kernel_approximation.Nystroem(kernel=kernel, n_components=8, **options)
    points = matrix(ours.program_.stages[1])
    theirs.fit(points)  # all of them are landmarks, in an order of its own
    expected = theirs.transform(X) @ theirs.transform(X).T
    found = ours.transform(X) @ ours.transform(X).T
    assert np.allclose(found, expected, atol=1e-6)


def test_pca_is_scikit_learn_s(connection):
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(50, 6)) @ np.diag([5, 4, 3, 2, 1, 0.5]),
        columns=list("abcdef"),
    )
    theirs = decomposition.PCA(4).fit(frame.to_numpy())
    store(connection, frame, "t")
    with sqlkrp.connect(connection) as db:
        ours = PCA(4, scaling=None).fit(db.source("t")).transform(frame)
    expected = theirs.transform(frame.to_numpy())
    signs = np.sign((ours * expected).sum(axis=0))
    assert np.allclose(ours, expected * signs, atol=1e-9)


def test_sparse_projections_are_scikit_learn_s():
    X = np.random.default_rng(0).normal(size=(6, 50))
    ours = RandomProjection(8, pool="achlioptas", s=3, scaling=None, random_state=0).fit(X)
    theirs = SparseRandomProjection(8, density=1 / 3, random_state=0).fit(X)
    dense = matrix(ours.program_.stages[1])
    used = ours.program_.stages[2].factors[:, 0, 0]  # which of the pool is whose
    theirs.components_ = theirs.components_.__class__(dense[used] * math.sqrt(3 / 8))
    assert np.allclose(ours.transform(X), theirs.transform(X), atol=1e-12)


# --- signs as bits --------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "numbers"), [(1, 1), (63, 1), (64, 1), (65, 2), (128, 2)])
def test_sixty_four_signs_are_a_number(m, numbers):
    one = RankOneProjection(m, binary=True, random_state=0).fit(["a", "b"])
    sql = one.statement("t", output="bits")
    assert sql.columns == tuple(f"rop_bits_{i}" for i in range(numbers))


@pytest.mark.parametrize("form", FORMS)
def test_signs_are_packed_in_every_engine(engine, form):
    m = 130  # two whole numbers, and a part of one
    frame = rows()
    frame.iloc[7, 0] = np.nan
    frame.iloc[9] = 0.0  # whose sign is +
    engine.store(frame.assign(id=np.arange(40)))
    one = RankOneProjection(m, binary=True, nulls="propagate", random_state=0).fit(frame)
    sql = one.statement("t", keep=["id"], form=form, output="bits", dialect=engine.name)
    assert sql.columns == ("id", *(f"rop_bits_{i}" for i in range(-(-m // 64))))
    found = engine.run(sql)
    expected = pack_signs(one.transform(frame))
    for row in found:
        wanted = [None] * expected.shape[1] if row[0] == 7 else expected[row[0]].tolist()
        assert [None if value is None else int(value) for value in row[1:]] == wanted


@pytest.mark.parametrize("output", ["auto", "other"])
def test_scores_of_numbers_against_bits(engine, output):
    if output == "other":
        output = "columns" if dialect(engine.name).output == "array" else "array"
    frame = rows(12)
    full = RankOneProjection(70, random_state=0).fit(frame)
    signs = RankOneProjection(70, binary=True, random_state=0).fit(frame)
    engine.store(frame.assign(id=np.arange(12)))
    if output == "array" and dialect(engine.name).array is None:
        with pytest.raises(LimitError, match="no arrays"):
            full.score_sql("a", "b", keys=("id", "id"), dialect=engine.name, output=output)
        return
    engine.keep(full.statement("t", keep=["id"], dialect=engine.name, output=output), "numbers_of")
    engine.keep(signs.statement("t", keep=["id"], output="bits", dialect=engine.name), "bits_of")
    try:
        found = engine.rows(
            full.score_sql(
                "numbers_of", "bits_of", keys=("id", "id"), dialect=engine.name, output=output
            )
        )
    finally:
        engine.drop("numbers_of")
        engine.drop("bits_of")
    expected = full.transform(frame) @ signs.transform(frame).T
    expected *= math.pi / (2 * math.sqrt(70))
    assert len(found) == 144
    for first, second, score in found:
        assert score == pytest.approx(expected[int(first), int(second)], rel=1e-9, abs=1e-9)


def test_bits_are_for_signs():
    with pytest.raises(ParameterError, match=r"RankOneProjection\(binary=True\)"):
        KRP(2, 3).fit(["a"]).to_sql("t", output="bits")


# --- the rest -------------------------------------------------------------------------------------


def test_members_of_an_ensemble_are_draws_of_their_own():
    frame = rows()
    one = Ensemble(RandomFourier(5), 3, random_state=0).fit(frame)
    features = one.transform(frame).reshape(len(frame), 3, 5)
    assert not np.allclose(features[:, 0], features[:, 1])
    assert one.get_feature_names_out()[5] == "rff_1_0"


def test_a_chain_is_scikit_learn_s_pipeline():
    frame = rows()
    ours = chain(PCA(4), Nystroem(40, gamma=0.125), random_state=0).fit(frame).transform(frame)
    components = decomposition.PCA(4).fit_transform(frame.to_numpy())
    # With every row a landmark, the kernel is exact.
    assert np.allclose(ours @ ours.T, rbf_kernel(components, gamma=0.125), atol=1e-9)


def test_parameters_of_parts_can_be_searched():
    X = rows(60, 4)
    y = np.arange(60) % 2
    both = chain(PCA(2), Ensemble(KRP(2, 4), 2), random_state=0)
    assert clone(both).get_params()["1__map__degree"] == 2
    search = GridSearchCV(
        make_pipeline(both, RidgeClassifier()),
        {"chain__0__n_components": [2, 3], "chain__1__map__degree": [1, 2]},
        cv=2,
    ).fit(X, y)
    found = search.best_estimator_[0]
    assert found.parameters_["maps"][1].map.degree == search.best_params_["chain__1__map__degree"]
    with pytest.raises(ParameterError, match="did you mean '1__map__degree'"):
        both.set_params(**{"1__map__degre": 3})
    both.set_params(**{"0__n_components": 4, "maps": [PCA(3), KRP(2, 8)]})
    assert both.maps[0].n_components == 4
    both.set_params(**{"1__gamma": 0.5, "1": SORF(8)})
    assert (type(both.maps[1]), both.maps[1].gamma, len(both.maps)) == (SORF, 0.5, 2)


def test_every_map_is_on_the_command_line_but_those_made_of_maps():
    public = {one for one in vars(sqlkrp).values() if isinstance(one, type)}
    maps = {one for one in public if issubclass(one, sqlkrp.FeatureMap)} - {sqlkrp.FeatureMap}
    assert set(CLASSES.values()) == maps
    assert set(MAPS.values()) == maps - {sqlkrp.Ensemble, sqlkrp.Chain}


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (ExplicitRP(3), "monomials of degree 3"),
        (Monomials(6), "40 columns have 9,366,819 monomials of degree up to 6, and this map takes"),
        (PRP(n_matrices=3), "half of them are subtracted: use 4"),
        (RandomFourier(5, paired=True), "use 6"),
        (SORF(7, paired=True), "use 8"),
        (ComplexKRP(n_hyperplanes=5000), "n_hyperplanes=5000 is of pool='achlioptas'"),
        (KRP(2, 10**8), "n_components=100000000 is not allowed: use a whole number <= 10000000"),
        (Ensemble(KRP(), 10**6), "n_members=1000000 is not allowed: use a whole number <= 1000"),
        (RandomFourier(kernel="cosine"), "use one of 'rbf', 'laplacian'"),
        (ComplexKRP(block_size=12), "use a power of two, such as 8 or 16"),
        (KGRP(n_landmarks=5, n_marked=6), "n_marked=6 is not allowed: use a whole number <= 4"),
        (KGRP(n_landmarks=500), "500 rows are to be drawn, and the table has 40"),
        (Nystroem(41), "41 rows are to be drawn, and the table has 40"),
        (RandomMaclaurin(degree=31), "<= 30"),
        (PCA(41), "more than the 40 columns"),
        (SphericalRandomFeatures(a=1), "a=1 is not allowed"),
        (Ensemble("krp"), "map is of type str, not a map: give one"),
        (Ensemble(KRP(), 0), "n_members=0"),
        (chain(), "give a list of maps"),
        (chain(PCA(2), KRP(scaling="unit")), "behind another map"),
    ],
)
def test_what_cannot_be_is_said(one, told):
    with pytest.raises(ParameterError) as found:
        one.fit(rows(40, 40))
    assert told in str(found.value)


@pytest.mark.parametrize("degree", [20, 21])
@pytest.mark.parametrize("kernel", ["polynomial", "linear"])
def test_landmark_features_are_there_where_their_kernel_is_no_number(connection, kernel, degree):
    # With one column, <x, p>^g / |p|^g is x^g up to a sign, whatever row the landmark is. The
    # kernel itself, x^g p^g, is far below (or above) what single precision holds.
    options = {"kernel": kernel, "degree": degree, "coef0": 0.0, "gamma": 1.0, "dtype": "float32"}
    options["scaling"] = None
    power = degree if kernel == "polynomial" else 1
    for size in (0.0155, 60.0) if power > 1 else (1e-25, 1e25):
        frame = pd.DataFrame({"x": np.array([0.9, 1.0, 1.1]) * size})
        one = Nystroem(1, random_state=0, **options).fit(frame)
        found = one.transform(frame)
        assert np.allclose(np.abs(found[:, 0]), frame["x"] ** power, rtol=1e-4, atol=0)
        store(connection, frame, "t")
        with sqlkrp.connect(connection) as db:
            assert db.verify(one, "t", form="wide").ok
        connection.execute("DROP TABLE t")


@pytest.mark.parametrize("one", [PCA(2), Nystroem(2), KGRP(2)])
def test_maps_that_are_fitted_need_rows(connection, one):
    with pytest.raises(ParameterError, match="fitted to rows"):
        one.fit(["a", "b"])
    connection.execute("CREATE TABLE e AS SELECT 1 AS r, 'a' AS f, 2.0 AS v")
    with sqlkrp.connect(connection) as db:
        connection.execute("INSERT INTO e VALUES (1, 'b', 2.0)")
        with pytest.raises(ParameterError, match="fitted to rows"):
            one.fit(db.source("e", long=("r", "f", "v")))
    holes = pd.DataFrame({"a": [np.nan] * 4, "b": [1.0] * 4})
    if not isinstance(one, PCA):
        one = type(one)(**one.get_params(deep=False) | {"nulls": "propagate"})
        if isinstance(one, KGRP):
            one.n_landmarks, one.n_marked = 2, 1
        with pytest.raises(ColumnError, match="missing value"):
            one.fit(holes)


def test_stages_are_checked():
    for make in (
        lambda: Elementwise(3, "tan"),
        lambda: SumOfProducts(3, np.array([[[-1, 0]]], dtype="i4"), np.ones((1, 1), dtype="i1")),
        lambda: SumOfProducts(3, np.array([[[0, -1, 1]]], dtype="i4"), np.ones((1, 1), dtype="i1")),
    ):
        with pytest.raises(InconsistentMapError):
            make()


def test_a_wrong_index_in_a_draw_is_told_as_our_fault():
    class Wrong(RandomProjection):
        def draw(self, inputs, rng):
            beyond = np.array([[[inputs.count]]], dtype="i4")
            return [SumOfProducts(inputs.count, beyond, np.ones((1, 1), dtype="i1"))]

    with pytest.raises(InconsistentMapError, match=r"factors lies outside.*report it") as bug:
        Wrong(1).fit(["a", "b"])
    assert not isinstance(bug.value, ValueError)


# --- what was wrong once --------------------------------------------------------------------------


def test_a_chain_behind_a_map_is_the_flat_chain():
    frame = rows() + 10
    last = {"scaling": "standard"}
    flat = chain(PCA(3), PRP(4), KRP(2, 5, **last), random_state=0).fit(frame).transform(frame)
    nested = chain(PCA(3), chain(PRP(4), KRP(2, 5, **last)), random_state=0).fit(frame)
    assert np.allclose(nested.transform(frame), flat, rtol=1e-9)
    assert chain(PCA(3), chain(PCA(2), Nystroem(5))).fit(frame).transform(frame).shape == (40, 5)


def test_landmarks_are_as_many_as_were_asked_for_whatever_is_missing(connection):
    frame = rows()
    frame.iloc[::3, 0] = np.nan
    store(connection, frame, "t")
    with sqlkrp.connect(connection) as db:
        for source in (frame, db.source("t")):
            for seed in range(5):
                one = Ensemble(Nystroem(20, nulls="propagate"), 2, random_state=seed).fit(source)
                assert one.get_feature_names_out()[20] == "nystroem_1_0"
    with pytest.raises(ColumnError, match="30 rows without a missing value"):
        Nystroem(30, nulls="propagate", random_state=0).fit(frame)


def test_a_constant_feature_of_a_chain_is_only_shifted(connection):
    frame = rows()
    one = chain(RandomMaclaurin(20), KRP(2, 4, scaling="standard"), random_state=0).fit(frame)
    assert np.abs(one.program_.stages[4].value).max() < 1e3
    store(connection, frame, "t")
    with sqlkrp.connect(connection) as db:
        there = type(one)(**one.get_params(deep=False)).fit(db.source("t"))
    assert np.allclose(one.transform(frame), there.transform(frame), rtol=1e-6)


def test_an_odd_number_of_complex_features_has_one_imaginary_part_less():
    for pool in ("hadamard", "achlioptas"):
        even, odd = (
            ComplexKRP(3, k, pool=pool, random_state=0).fit(rows()).transform(rows())
            for k in (6, 5)
        )
        assert np.allclose(odd, even[:, :5] * math.sqrt(6 / 5), rtol=1e-12)


def test_equal_landmarks_give_zeros_and_not_noise():
    equal = np.tile([0.1, 0.7, 0.3], (20, 1))
    one = KGRP(4, n_landmarks=10, n_marked=3, random_state=0).fit(equal)
    assert not one.transform(equal).any()
    assert not one.select([1]).transform(equal).any()


def test_scores_of_a_selection_are_of_its_features(connection):
    frame = rows(6)
    full, signs = (
        RankOneProjection(64, binary=b, random_state=0).fit(frame) for b in (False, True)
    )
    few, bits = full.select(range(4)), signs.select(range(4))
    store(connection, frame.assign(id=np.arange(6)), "t")
    connection.execute(f"CREATE TABLE a AS {few.to_sql('t', keep=['id'])}")
    connection.execute(f"CREATE TABLE b AS {bits.to_sql('t', keep=['id'], output='bits')}")
    found = connection.execute(few.score_sql("a", "b", keys=("id", "id"))).fetchall()
    numbers = few.transform(frame) * 2 * math.sqrt(64)
    expected = numbers @ bits.transform(frame).T * math.pi / (4 * 4)
    assert all(score == pytest.approx(expected[i, j], abs=1e-9) for i, j, score in found)
    for keys in ("id", ("id",)):
        with pytest.raises(ParameterError, match="name the two tables' columns"):
            few.score_sql("a", "b", keys=keys)


@pytest.mark.parametrize(
    "one",
    [
        ComplexKRP(4, gamma=1e200),
        ExplicitRP(4, gamma=1e200),
        ExplicitRP(40),
        TensorSketch(4, gamma=1e200),
        TensorSketch(11),
        ComplexKRP(22),
        RandomMaclaurin(degree=30, gamma=1e12),
        Monomials(4, gamma=1e30),
        Monomials(4, gamma=1e-30),
        Monomials(4, gamma=1e200),
        Monomials(coef0=1e300),
        RandomMaclaurin(4, degree=4, coef0=0.0, gamma=1e-200),
        SphericalRandomFeatures(a=1e200),
        RandomFourier(gamma=1e200),
        Nystroem(3, kernel="polynomial", degree=1000, gamma=10.0),
        Nystroem(3, kernel="polynomial", gamma=1e308),
        KGRP(3, n_landmarks=9, n_marked=2, degree=3, gamma=1e30, dtype="float32"),
        ComplexKRP(4, 4, coef0=1e300, gamma=1e-300),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_leaves_the_range_of_numbers_is_refused(one):
    with pytest.raises(ParameterError):
        one.fit(rows(10, 3))


def test_principal_components_of_nothing_are_refused(connection):
    with pytest.raises(ColumnError, match="a minimum of 1 is required"):
        PCA(1).fit(rows().iloc[:0])
    frame = rows()
    with pytest.raises(ColumnError, match="no average"):
        PCA(1, nulls="propagate").fit(
            frame.assign(
                c0=np.where(frame.index % 2, 1, np.nan), c1=np.where(frame.index % 2, np.nan, 1)
            )
        )
    frame.iloc[2, 2] = np.nan
    store(connection, frame, "t")
    with sqlkrp.connect(connection) as db, pytest.raises(sqlkrp.errors.MissingValueError):
        PCA(1).fit(db.source("t"))


def test_a_fitted_map_of_a_map_does_not_change_with_it(tmp_path):
    one = Ensemble(KRP(2, 4), 2, random_state=0).fit(rows())
    title = one.title
    one.map.set_params(degree="x")
    assert one.title == title
    one.save(tmp_path / "m.json")
    loaded = sqlkrp.load(tmp_path / "m.json")
    loaded.map.set_params(degree=3)
    assert loaded.title == title


@pytest.mark.parametrize(
    "one", [Ensemble(KRP(2, 4), 2, random_state=0), chain(PCA(2), KRP(2, 4), random_state=0)]
)
def test_a_fitted_map_of_maps_does_not_change_where_it_is_looked_at(one, tmp_path):
    one.fit(rows())
    one.save(tmp_path / "before.json")
    one._repr_html_()
    sqlkrp.distortion(one, rows(), runs=1)
    one.save(tmp_path / "after.json")
    assert (tmp_path / "after.json").read_bytes() == (tmp_path / "before.json").read_bytes()


@pytest.mark.parametrize(
    ("one", "name", "value"),
    [(chain(PCA(2), PCA(1)), "maps", []), (Ensemble(PCA(1), 2), "n_members", "x"),
     (Nystroem(3), "n_components", -1), (PCA(2), "scaling", "x")],
)  # fmt: skip
def test_files_with_parameters_that_cannot_be_are_damaged(tmp_path, one, name, value):
    one.fit(rows())
    one.parameters_[name] = value
    one.save(tmp_path / "m.json")
    with pytest.raises(MapFileError, match="is damaged"):
        sqlkrp.load(tmp_path / "m.json")


def test_what_varies_by_rounding_alone_is_only_shifted(connection):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    frame["c"] = frame.a + frame.b  # so that a third direction has nothing of its own
    store(connection, frame, "t")
    one = chain(PCA(3), KRP(2, 4, scaling="standard"), random_state=0)
    with sqlkrp.connect(connection) as db:
        for source in (frame, db.source("t")):
            scaled = one.fit(source).transform(frame)
            assert np.abs(one.program_.stages[3].value).max() < 10
        found = connection.execute(one.to_sql("t")).fetchnumpy()
    assert np.allclose(np.column_stack(list(found.values())), scaled, atol=1e-9)


def test_what_varies_little_but_for_certain_is_scaled():
    times = pd.DataFrame({"time": 1.7e9 + 1000 * np.random.default_rng(0).normal(size=300)})
    first = RandomProjection(2, pool="achlioptas", s=1, scaling=None)
    one = chain(first, Nystroem(300, scaling="standard", gamma=1), random_state=0)
    features = one.fit(times).transform(times)
    scaled = (times - times.mean()) / times.std(ddof=0)
    projected = np.repeat(scaled.to_numpy(), 2, axis=1)
    assert np.allclose(features @ features.T, rbf_kernel(projected, gamma=1), atol=1e-5)


def test_series_of_which_only_the_constant_is_drawn(connection):
    store(connection, rows(5, 3), "t")
    constant = set()
    with sqlkrp.connect(connection) as db:
        for seed in range(6):
            for one in (
                RandomMaclaurin(1, random_state=seed),
                Ensemble(RandomMaclaurin(1), 1, random_state=seed),
                chain(KRP(2, 3), RandomMaclaurin(1), TensorSketch(2, 4), random_state=seed),
            ):
                for form in FORMS:
                    assert db.verify(one.fit(rows(5, 3)), "t", form=form).ok
                if np.ptp(one.transform(rows(5, 3)), axis=0).max() == 0:
                    constant.add(type(one).__name__)
    assert constant == {"RandomMaclaurin", "Ensemble", "Chain"}


def test_landmarks_in_single_precision_keep_the_kernel():
    X = np.random.default_rng(0).normal(size=(200, 5)).astype("float32")
    one = Nystroem(200, gamma=0.01, random_state=0).fit(X)
    features = one.transform(X)
    assert features.dtype == "float32"
    # Close landmarks make small eigenvalues, whose inverses would make errors of 1e-2.
    assert np.allclose(features @ features.T, rbf_kernel(X, gamma=0.01), atol=1e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1e20, 1e-24])
def test_lengths_of_rows_of_floats_do_not_leave_their_range(engine, form, size):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)) * size, columns=list("abc"))
    frame = frame.astype("float32")
    one = RandomProjection(4, scaling="unit", s=1, random_state=0).fit(frame)
    directions = frame / np.linalg.norm(frame.astype("float64"), axis=1)[:, None]
    expected = RandomProjection(4, s=1, random_state=0).fit(frame).transform(directions)
    assert np.allclose(one.transform(frame), expected, rtol=1e-5, atol=1e-6)
    engine.store(frame.assign(id=np.arange(20)))
    found = engine.features(one, keep=["id"], form=form)[:, 1:]
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_values_that_leave_the_range_are_compared_without_a_warning(connection):
    frame = rows(20, 3).astype("float64") * 1e160
    store(connection, frame, "t")
    with sqlkrp.connect(connection) as db, warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = {"gamma": 1.0, "scaling": None, "random_state": 0}
        for one in (Nystroem(5, **plain), KRP(3, 5, **plain)):
            assert db.verify(one.fit(db.source("t")), "t", form="wide").ok


def test_signs_that_are_the_other_way_round_are_wrong():
    inputs = rows(40).to_numpy()
    program = RankOneProjection(6, binary=True, random_state=0).fit(rows(40)).program_
    found = program.apply(inputs).astype("float64")
    assert compare(program, inputs, found, "wide", None).ok
    assert compare(program, inputs, -found, "wide", None).wrong == list(program.names)
