"""Components are independent draws: estimates have the mean and the variance of the theory.

A mean cannot see whether the components of a map share what each should draw for itself; the
variance of an estimate from k of them can: it is the k-th part of one component's.
"""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn import decomposition
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler
from support import assert_mean, of_columns_as_they_are, store

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
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    RandomProjection,
    RankOneProjection,
    SphericalRandomFeatures,
    TensorSketch,
    chain,
)
from sqlkrp.maps.spherical import radial_fit

#: Three columns, so that all hyperplanes of a ternary pool can be counted.
POINTS = np.array([[0.9, -0.4, 0.7], [0.5, 0.6, 0.8]])
FIRST_SEED = 0
DRAWS = 1000


def draws_of(make, points, draws=DRAWS):
    """<f(x), f(y)> between all points, of so many independent maps."""
    found = np.empty((draws, len(points), len(points)))
    for i in range(draws):
        one = of_columns_as_they_are(make(FIRST_SEED + i))
        features = one.fit(points).transform(points)
        found[i] = features @ features.T
    return found


# --- the theory: functions of x and y that return the mean and the variance of an estimate --------


def parts(x, y, gamma=1.0, coef0=0.0):
    """N = |x|^2 |y|^2, c = <x, y> and S = sum x_i^2 y_i^2, with the kernel's constant column."""
    x, y = (math.sqrt(gamma) * np.append(one, math.sqrt(coef0 / gamma)) for one in (x, y))
    return (x @ x) * (y @ y), x @ y, (x**2 * y**2).sum()


def explicit(k, g, s, **kernel):
    def theory(x, y):
        n, c, squares = parts(x, y, **kernel)
        return c**g, (n**g + c ** (2 * g) + (s - 3) * squares**g) / k

    return theory


def maclaurin(k, series):
    """For the coefficients a_n of a kernel's series; degree n has the chance q_n."""
    a = np.array(series)
    degree = np.flatnonzero(a)
    q = 0.5**degree / (0.5**degree).sum()

    def theory(x, y):
        n, c, squares = parts(x, y)
        kernel = (a[degree] * c**degree).sum()
        of_signs = n + 2 * c**2 - 2 * squares
        return kernel, ((a[degree] ** 2 / q * of_signs**degree).sum() - kernel**2) / k

    return theory


def waves(k, kernel, paired=False):
    """Of cosines whose frequencies have this kernel of x - y."""

    def theory(x, y):
        once, twice = kernel(x - y), kernel(2 * (x - y))
        if paired:
            return once, ((1 + twice) / 2 - once**2) * 2 / k
        return once, (1 + twice / 2 - once**2) / k

    return theory


def gaussian(gamma):
    return lambda difference: math.exp(-gamma * difference @ difference)


def laplacian(gamma):
    return lambda difference: math.exp(-gamma * np.abs(difference).sum())


def spherical(k, degree, a):
    """In three dimensions the average of a wave over the sphere is sin(t) / t."""

    def kernel(difference):
        radii, chances, _ = radial_fit(degree, a, 3)
        return chances @ np.sinc(radii * np.linalg.norm(difference) / math.pi)

    def theory(x, y):
        return waves(k, kernel)(x / np.linalg.norm(x), y / np.linalg.norm(y))

    return theory


def structured(blocks, gamma):
    """SORF of three columns: all signs of a block of four frequencies, which are dependent."""
    signs = np.array(list(itertools.product([1, -1], repeat=12))).reshape(-1, 3, 4)
    hadamard = np.kron([[1, 1], [1, -1]], [[1, 1], [1, -1]])

    def theory(x, y):
        turned = np.append(x - y, 0.0)
        for layer in range(3):
            turned = (turned * signs[:, layer]) @ hadamard
        of_a_block = np.cos(math.sqrt(2 * gamma) / 4 * turned).mean(axis=1)
        # The phases add a half for each of the components.
        return of_a_block.mean(), of_a_block.var() / blocks + 0.5 / (4 * blocks)

    return theory


def complex_products(k, g, t, **kernel):
    """Of k/2 pairs, each with t products of its own hyperplanes of +1, -1, +i and -i."""

    def theory(x, y):
        n, c, squares = parts(x, y, **kernel)
        own = ((n + c**2 - squares) ** g + (2 * c**2 - squares) ** g) / 2 - c ** (2 * g)
        others = (n**g + c ** (2 * g)) / 2
        return c**g, (own / t + (1 - 1 / t) * others) * 2 / k

    return theory


def differences(k, m, s):
    """PRP: all values of two squares' difference, and of two such differences' sum."""
    entries = np.array(list(itertools.product([-1, 0, 1], repeat=3)))
    chance = np.where(entries == 0, 1 - 1 / s, 0.5 / s).prod(axis=1)

    def theory(x, y):
        a, b, p = (entries @ x) ** 2 * s, (entries @ y) ** 2 * s, chance
        a, b, p = (np.subtract.outer(a, a), np.subtract.outer(b, b), np.multiply.outer(p, p))
        if m == 4:
            a, b = np.add.outer(a, a), np.add.outer(b, b)
            p = np.multiply.outer(p, p)
        second = (p * (a * b / (2 * m)) ** 2).sum()
        _, c, squares = parts(x, y)
        mean = c**2 + (s - 3) / 2 * squares  # biased with s = 1, as its documentation says
        return mean, (second - mean**2) / k

    return theory


def rank_one(k):
    """B(x) is <p, x> <q, x>, with independent Gaussian p and q."""

    def theory(x, y):
        n, c, _ = parts(x, y)
        return c**2, ((n + 2 * c**2) ** 2 - c**4) / k

    return theory


def rank_one_signs(k):
    def theory(x, y):
        n, c, _ = parts(x, y)
        mean = (2 / math.pi * math.asin(min(1.0, c / math.sqrt(n)))) ** 2
        return k * mean, k * (1 - mean**2)

    return theory


def sketches(k):
    """Two count sketches of three columns: all hashes and signs."""
    hashes = np.array(list(itertools.product(range(k), repeat=3)))
    signs = np.array(list(itertools.product([1, -1], repeat=3)))
    table = signs[None, :, :, None] * np.eye(k)[hashes][:, None]  # hash, sign, column, bucket
    table = table.reshape(-1, 3, k)

    def theory(x, y):
        first, second = (np.fft.fft(np.einsum("d,tdk->tk", one, table)) for one in (x, y))
        of_one = first * second.conj()
        found = (of_one[:, None] * of_one).real.mean(axis=2)
        return (x @ y) ** 2, found.var()

    return theory


def side_by_side(count, one):
    def theory(x, y):
        mean, variance = one(x, y)
        return count * mean, count * variance

    return theory


EXPONENTIAL = [1.2**n / math.factorial(n) for n in range(31)]
CASES = {
    "random projection, s=1": (
        lambda seed: RandomProjection(8, pool="achlioptas", s=1, random_state=seed),
        explicit(8, 1, 1),
    ),
    "random projection": (
        lambda seed: RandomProjection(8, pool="achlioptas", random_state=seed),
        explicit(8, 1, 3),
    ),
    "random projection, gaussian": (
        lambda seed: RandomProjection(8, pool="gaussian", random_state=seed),
        explicit(8, 1, 3),
    ),
    "explicit": (
        lambda seed: ExplicitRP(2, 8, coef0=0.5, gamma=0.8, random_state=seed),
        explicit(8, 2, 3, coef0=0.5, gamma=0.8),
    ),
    "explicit, s=1": (
        lambda seed: ExplicitRP(3, 8, s=1, coef0=0, gamma=1, random_state=seed),
        explicit(8, 3, 1),
    ),
    "maclaurin": (  # (c/2 + 0.7)^3
        lambda seed: RandomMaclaurin(24, degree=3, coef0=0.7, gamma=0.5, random_state=seed),
        maclaurin(24, [0.343, 0.735, 0.525, 0.125]),
    ),
    "maclaurin, homogeneous": (
        lambda seed: RandomMaclaurin(24, degree=2, coef0=0, gamma=1, random_state=seed),
        maclaurin(24, [0, 0, 1]),
    ),
    "maclaurin, exponential": (
        lambda seed: RandomMaclaurin(24, kernel="exponential", gamma=1.2, random_state=seed),
        maclaurin(24, EXPONENTIAL),
    ),
    "fourier": (
        lambda seed: RandomFourier(8, gamma=0.1, random_state=seed),
        waves(8, gaussian(0.1)),
    ),
    "fourier, paired": (
        lambda seed: RandomFourier(8, gamma=0.4, paired=True, random_state=seed),
        waves(8, gaussian(0.4), paired=True),
    ),
    "fourier, laplacian": (
        lambda seed: RandomFourier(8, kernel="laplacian", gamma=0.1, random_state=seed),
        waves(8, laplacian(0.1)),
    ),
    "fourier, laplacian, paired": (
        lambda seed: RandomFourier(
            8, kernel="laplacian", gamma=0.4, paired=True, random_state=seed
        ),
        waves(8, laplacian(0.4), paired=True),
    ),
    "ensemble": (
        lambda seed: Ensemble(RandomFourier(2, gamma=0.4, paired=True), 4, random_state=seed),
        side_by_side(4, waves(2, gaussian(0.4), paired=True)),
    ),
    "spherical": (
        lambda seed: SphericalRandomFeatures(8, degree=7, random_state=seed),
        spherical(8, 7, 4.0),
    ),
    "sorf": (lambda seed: SORF(16, gamma=2.0, random_state=seed), structured(4, 2.0)),
    "prp": (lambda seed: PRP(8, random_state=seed), differences(8, 2, 3)),
    "prp, s=1": (lambda seed: PRP(8, s=1, random_state=seed), differences(8, 2, 1)),
    "prp, more matrices": (
        lambda seed: PRP(8, n_matrices=4, random_state=seed),
        differences(8, 4, 3),
    ),
    "rank one": (lambda seed: RankOneProjection(16, random_state=seed), rank_one(16)),
    "rank one, signs": (
        lambda seed: RankOneProjection(16, binary=True, random_state=seed),
        rank_one_signs(16),
    ),
    # As many hyperplanes as are used, so that no two components meet.
    "complex, one term": (
        lambda seed: ComplexKRP(
            2, 8, n_terms=1, pool="achlioptas", n_hyperplanes=8, coef0=0, gamma=1, random_state=seed
        ),
        complex_products(8, 2, 1),
    ),
    "complex": (
        lambda seed: ComplexKRP(
            3,
            8,
            n_terms=2,
            pool="achlioptas",
            n_hyperplanes=24,
            coef0=0.3,
            gamma=0.8,
            random_state=seed,
        ),
        complex_products(8, 3, 2, coef0=0.3, gamma=0.8),
    ),
    "tensor sketch": (
        lambda seed: TensorSketch(2, 4, coef0=0, gamma=1, random_state=seed),
        sketches(4),
    ),
    "tensor sketch, buckets": (
        lambda seed: TensorSketch(2, 3, domain="bucket", coef0=0, gamma=1, random_state=seed),
        sketches(3),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_estimates_have_the_mean_and_the_variance_of_the_theory(name):
    make, theory = CASES[name]
    found = draws_of(make, POINTS)
    wanted = np.array([[theory(x, y) for y in POINTS] for x in POINTS])
    mean, variance = wanted[..., 0], wanted[..., 1]
    assert_mean(found, mean)
    assert_mean((found - mean) ** 2, variance)


# --- the mean alone, of other degrees and pools ---------------------------------------------------

BROAD = np.random.default_rng(5).normal(size=(2, 6)) * 0.6


def power_of(degree, gamma=1.0, coef0=0.0):
    return lambda x, y: (gamma * (x @ y) + coef0) ** degree


KERNELS = {
    **{
        f"tensor sketch {g}, {domain}": (
            lambda s, g=g, domain=domain: TensorSketch(
                g, 9 - g % 2, domain=domain, coef0=0.3, gamma=0.8, random_state=s
            ),
            power_of(g, 0.8, 0.3),
        )
        for g in (1, 2, 3, 4)
        for domain in ("fourier", "bucket")
    },
    **{
        f"complex {g}": (
            lambda s, g=g: ComplexKRP(
                g, 8, n_terms=2, block_size=4, coef0=0.3, gamma=0.8, random_state=s
            ),
            power_of(g, 0.8, 0.3),
        )
        for g in (1, 2, 3, 4, 5)
    },
    # Chunks of three columns and the kernel's constant; from degree 4 on products of products.
    **{
        f"krp {g}, hadamard": (
            lambda s, g=g: KRP(g, 8, n_terms=3, block_size=4, coef0=0.3, gamma=0.8, random_state=s),
            power_of(g, 0.8, 0.3),
        )
        for g in (1, 2, 3, 4, 5, 6, 7, 9)
    },
    **{
        f"by degree, {g} in {k}": (
            lambda s, g=g, k=k: MixedKRP(
                g, k, n_terms=2, block_size=4, coef0=0.3, gamma=0.8, random_state=s
            ),
            power_of(g, 0.8, 0.3),
        )
        # In the fewest not even the columns fit; in the most, products of two.
        for g, k in ((2, 5), (2, 20), (3, 20), (3, 60), (4, 30), (5, 60))
    },
    "by degree, homogeneous": (
        lambda s: MixedKRP(3, 9, n_terms=2, coef0=0, gamma=0.8, random_state=s),
        power_of(3, 0.8),
    ),
    "krp 4, homogeneous": (
        lambda s: KRP(4, 8, n_terms=2, coef0=0, gamma=0.8, random_state=s),
        power_of(4, 0.8),
    ),
    "krp 4, two blocks a factor": (
        lambda s: KRP(
            4, 8, n_terms=2, n_hyperplanes=64, block_size=4, coef0=0.3, gamma=0.8, random_state=s
        ),
        power_of(4, 0.8, 0.3),
    ),
    "chain": (  # principal components turn and shift, and the second map sees what they leave
        lambda s: chain(PCA(1), KRP(2, 8, n_hyperplanes=40, coef0=0.5, gamma=1), random_state=s),
        lambda x, y: power_of(2, 1, 0.5)(x - BROAD.mean(axis=0), y - BROAD.mean(axis=0)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_the_mean_estimate_is_the_kernel(name):
    make, kernel = KERNELS[name]
    x, y = BROAD
    wanted = np.array([[kernel(x, x), kernel(x, y)], [kernel(y, x), kernel(y, y)]])
    assert_mean(draws_of(make, BROAD, 300), wanted)


def test_signs_against_numbers_estimate_the_kernel_of_directions():
    x, y = BROAD
    found = []
    for seed in range(FIRST_SEED, FIRST_SEED + 300):
        full = RankOneProjection(20, random_state=seed).fit(BROAD).transform(BROAD)
        signs = RankOneProjection(20, binary=True, random_state=seed).fit(BROAD).transform(BROAD)
        assert np.array_equal(np.where(full >= 0, 1, -1), signs)
        found.append(full[0] @ signs[1] * math.pi / (2 * math.sqrt(20)))
    wanted = (x @ y) ** 2 / (y @ y)
    assert_mean(found, wanted)


# --- fitted to rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 16])
def test_directions_from_landmarks_are_independent_and_centred(k):
    points = np.random.default_rng(0).normal(size=(8, 5))
    found = draws_of(
        lambda seed: KGRP(k, n_landmarks=8, n_marked=3, coef0=0, gamma=1, random_state=seed),
        points,
        500,
    )
    centre = np.eye(8) - 1 / 8
    kernel = centre @ (points @ points.T) ** 2 @ centre
    values, vectors = np.linalg.eigh(kernel)
    root = vectors * np.sqrt(values.clip(0)) @ vectors.T
    # All that three of eight landmarks can mark, of variance 1.
    marks = np.array(
        [[i in three for i in range(8)] for three in itertools.combinations(range(8), 3)]
    )
    one = (marks - 3 / 8) / math.sqrt(3 / 8 * 5 / 8 * 8 / 7) @ root
    products = one[:, :, None] * one[:, None]
    assert np.allclose(products.mean(axis=0), kernel)
    assert_mean(found, kernel)
    assert_mean((found - kernel) ** 2, products.var(axis=0) / k)


@pytest.mark.parametrize("missing", [0, 4])
def test_every_row_is_as_likely_a_landmark(missing):
    points = np.random.default_rng(0).normal(size=(12, 4))
    points[:missing, 0] = np.nan
    whole = points[missing:]
    chosen = []
    for seed in range(FIRST_SEED, FIRST_SEED + 400):
        one = Nystroem(3, gamma=0.5, nulls="propagate", random_state=seed).fit(points)
        # Landmarks have their kernel with themselves, 1; other rows less.
        chosen.append((one.transform(whole) ** 2).sum(axis=1) > 1 - 1e-6)
    chosen = np.array(chosen)
    assert (chosen.sum(axis=1) == 3).all()
    n = len(whole)
    assert_mean(chosen, 3 / n)
    together = chosen[:, :, None] & chosen[:, None]
    assert_mean(together, np.where(np.eye(n), 3 / n, 3 * 2 / (n * (n - 1))))


def test_small_eigenvalues_count():
    points = np.random.default_rng(0).normal(size=(12, 2))
    kernel = rbf_kernel(points, gamma=0.05)
    share = np.linalg.eigvalsh(kernel) / np.trace(kernel)
    assert ((share > 1e-10) & (share < 1e-5)).sum() >= 3
    features = Nystroem(12, gamma=0.05, dtype="float64").fit(points).transform(points)
    assert np.abs(features @ features.T - kernel).max() < 1e-9


# --- chains that scale ----------------------------------------------------------------------------

ROWS = np.random.default_rng(1).normal(size=(12, 4)) * [3, 1, 0.5, 0.2] + [1, 0, 2, -1]


def all_rows(**kernel):
    """Exact where all rows are landmarks, whatever the seed."""
    return Nystroem(len(ROWS), dtype="float64", **{"scaling": None, **kernel})


#: First maps with nothing random in them; the means of the second's features are not 0.
FIRST = {
    "pca": (PCA(3, scaling=None), decomposition.PCA(3).fit_transform(ROWS)),
    "nystroem": (all_rows(gamma=0.3), all_rows(gamma=0.3).fit(ROWS).transform(ROWS)),
}


@pytest.mark.parametrize("where", ["frame", "table"])
@pytest.mark.parametrize("first", FIRST)
def test_a_scaled_chain_is_scikit_learn_s_scaler(connection, first, where):
    before, theirs = FIRST[first]
    scaled = StandardScaler().fit_transform(theirs)
    rbf = {"gamma": 0.2}
    cubes = {"degree": 3, "gamma": 0.5, "coef0": 1.0}
    second = {
        all_rows(**rbf, scaling="standard"): rbf_kernel(scaled, **rbf),
        all_rows(kernel="polynomial", **cubes, scaling="standard"): polynomial_kernel(
            scaled, **cubes
        ),
    }
    frame = pd.DataFrame(ROWS, columns=list("abcd"))
    store(connection, frame, "t")
    with sqlkrp.connect(connection) as db:
        for behind, kernel in second.items():
            one = chain(before, behind).fit(frame if where == "frame" else db.source("t"))
            features = one.transform(frame)
            assert np.abs(features @ features.T - kernel).max() < 1e-7 * kernel.max()


def test_the_constant_of_a_kernel_is_not_scaled():
    before, theirs = FIRST["nystroem"]
    scaled = StandardScaler().fit_transform(theirs)
    products = {"n_terms": 1, "n_hyperplanes": 20, "scaling": "standard"}
    found = draws_of(
        lambda seed: chain(before, KRP(2, 10, coef0=5.0, gamma=0.5, **products), random_state=seed),
        ROWS,
        250,
    )
    assert_mean(found, polynomial_kernel(scaled, degree=2, gamma=0.5, coef0=5.0))


# --- structured projections -----------------------------------------------------------------------


@pytest.mark.parametrize("columns", [16, 64])
def test_structured_frequencies_are_nearly_unbiased(columns):
    gamma, blocks = 0.5, 32_000 // columns
    points = np.random.default_rng(2).normal(size=(2, columns)) / math.sqrt(columns)
    one = SORF(blocks * columns, gamma=gamma, scaling=None, random_state=FIRST_SEED).fit(points)
    x, y = one.transform(points)
    found = (x * y).reshape(blocks, columns).sum(axis=1) * blocks
    # A frequency's entries have the kurtosis 3 - 6/D, which takes z^2/D of the kernel exp(-z).
    z = gamma * ((points[0] - points[1]) ** 2).sum()
    assert_mean(found, math.exp(-z) * (1 - z**2 / columns))


def test_a_whole_hadamard_block_is_a_rotation():
    points = np.random.default_rng(0).normal(size=(5, 8))
    features = RandomProjection(8, pool="hadamard", random_state=0).fit(points).transform(points)
    assert np.allclose(features @ features.T, points @ points.T)


@pytest.mark.parametrize("block_size", [1, 2, 4, 8, 16])
def test_whole_hadamard_blocks_have_the_kernel_s_constant_exactly(block_size):
    points = np.random.default_rng(0).normal(size=(5, 9))
    one = KRP(
        1, 1, n_terms=1, block_size=block_size, coef0=0.5, gamma=0.25, scaling=None, random_state=0
    )
    hyperplanes = one.fit(points).program_.projection().stages[-1].n_outputs
    features = one.set_params(n_components=hyperplanes).fit(points).transform(points)
    assert np.allclose(features @ features.T, 0.25 * points @ points.T + 0.5)


@pytest.mark.parametrize(("k", "exact"), [(40, 1), (80, 2)])
def test_low_degrees_that_fit_are_exact_and_only_the_others_vary(k, exact):
    """Of 6 columns there are 1, 6 and 21 monomials of degrees 0, 1 and 2."""
    points = np.random.default_rng(3).normal(size=(4, 6)) / 3
    one = MixedKRP(3, k, coef0=1, gamma=1, scaling=None, random_state=0).fit(points)
    features, inner = one.transform(points), points @ points.T
    counts = [math.comb(6 + n - 1, n) for n in range(exact + 1)]
    for n, (end, count) in enumerate(zip(np.cumsum(counts), counts, strict=True)):
        of_degree = features[:, end - count : end]
        assert np.allclose(of_degree @ of_degree.T, math.comb(3, n) * inner**n)
    others = features[:, sum(counts) :]
    rest = sum(math.comb(3, n) * inner**n for n in range(exact + 1, 4))
    assert not np.allclose(others @ others.T, rest)


def test_a_constant_in_each_chunk_varies_no_more_than_the_columns_do():
    """A row of the constant alone has the same square on every hyperplane."""
    nothing = np.zeros((2, 40))
    features = [
        KRP(1, 1, block_size=4, coef0=0.7, gamma=1, scaling=None, random_state=seed)
        .fit(nothing)
        .transform(nothing)
        for seed in range(20)
    ]
    assert np.allclose(np.square(features), 0.7)


def test_products_of_mixed_products_vary_less_than_products_of_all_factors():
    # A product of 8 normal numbers has a square of the relative variance 3^8 - 1: of 20 products a
    # component and 100 components that is 3.3, beside the 2/100 of any projection.
    points = np.random.default_rng(1).normal(size=(1, 200)) / math.sqrt(200)
    length = (points @ points.T).item()
    found = draws_of(lambda seed: KRP(8, 100, coef0=0, gamma=1, random_state=seed), points, 300)
    relative = found[:, 0, 0] / length**8
    assert_mean(relative, 1.0)
    assert relative.var() < 3.3 / 10


def test_orthogonal_frequencies_vary_less_in_pairs():
    points = np.zeros((2, 64))
    points[0, :16] = points[1, :16] = 0.25
    points[1, 16:32] = 0.25  # at a distance of 1
    spread = {
        kind: draws_of(
            lambda seed, kind=kind: kind(128, gamma=0.5, paired=True, random_state=seed),
            points,
            draws=100,
        )[:, 0, 1].std()
        for kind in (SORF, RandomFourier)
    }
    # Twice is far from what 100 draws of each could show by chance.
    assert 2 * spread[SORF] < spread[RandomFourier]
