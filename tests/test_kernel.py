"""The estimates are unbiased, and vary as much as the theory says."""

import numpy as np
import pytest
from support import assert_mean, paper_krp

import sqlkrp

X = np.array([1.0, -0.5, 2.0, 0.25])
Y = np.array([0.5, 1.0, 1.5, -1.0])
C = X @ Y
N = (X @ X) * (Y @ Y)
SIGMA = np.sum(X**2 * Y**2)

POOLS = {
    "s=1": {"pool": "achlioptas", "s": 1},
    "s=3": {"pool": "achlioptas", "s": 3},
    "s=2.5": {"pool": "achlioptas", "s": 2.5},
    "gaussian": {"pool": "gaussian"},
    "hadamard m=2": {"pool": "hadamard", "block_size": 2},
    "hadamard": {"pool": "hadamard"},
}


def estimates(draws, degree, k, seed=0, **parameters):
    """<f(x), f(y)> of so many independent maps."""
    both = np.stack([X, Y])
    found = np.empty(draws)
    for i in range(draws):
        krp = paper_krp(degree, k, random_state=seed + i, **parameters).fit(both)
        x, y = krp.transform(both)
        found[i] = x @ y
    return found


KERNELS = {"c^g": {}, "(gc+c0)^g": {"coef0": 0.5, "gamma": 0.8}}


# Each pool with one of the two kernels, and each degree with both.
@pytest.mark.parametrize(
    ("pool", "degree", "kernel"),
    [*((pool, 2, [*KERNELS][place % 2]) for place, pool in enumerate(POOLS)),
     ("s=3", 1, "(gc+c0)^g"), ("hadamard", 1, "c^g"),
     ("s=3", 3, "(gc+c0)^g"), ("hadamard", 3, "c^g")],
)  # fmt: skip
def test_the_mean_estimate_is_the_kernel(pool, degree, kernel):
    kernel = KERNELS[kernel]
    parameters = dict(POOLS[pool])
    if parameters["pool"] != "hadamard":
        parameters["n_hyperplanes"] = 12  # small, so that components share hyperplanes
    found = estimates(700, degree, k=3, n_terms=2, **kernel, **parameters)
    exact = (kernel.get("gamma", 1) * C + kernel.get("coef0", 0)) ** degree
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - exact) < 4 * error


def one_component_variance(pool, degree, terms, hadamard_places=None):
    """By the moments of ternary entries, and of signs on m of d' random places."""
    if pool in ("s=1", "s=3", "s=2.5", "gaussian"):
        kappa = {"s=1": 1, "s=3": 3, "s=2.5": 2.5, "gaussian": 3}[pool]
        squares = N + 2 * C**2 + (kappa - 3) * SIGMA
    else:
        size, places = hadamard_places
        ratio = places / size
        pairs = ratio * (size - 1) / (places - 1)  # E r_i^2 r_j^2
        squares = ratio * SIGMA + pairs * (N + 2 * C**2 - 3 * SIGMA)
    own = (squares**degree - C ** (2 * degree)) / terms
    return own + (1 - 1 / terms) * (N**degree + C ** (2 * degree))


@pytest.mark.parametrize(
    ("pool", "degree", "terms"),
    [*((pool, 2, 1) for pool in ("s=1", "s=2.5", "s=3", "gaussian")),
     *(("s=1", degree, 3) for degree in (1, 2, 3)), ("gaussian", 1, 1), ("s=3", 3, 1)],
)  # fmt: skip
def test_the_variance_of_one_component_is_the_formula_s(pool, degree, terms):
    # Components on disjoint hyperplanes are independent draws of one component. Products of many
    # normal numbers have heavy tails: the kurtosis of a degree-3 product is about (105/9)^3.
    k = {1: 20_000, 2: 70_000, 3: 600_000}[degree] // terms
    parameters = {**POOLS[pool], "n_hyperplanes": k * degree * terms, "n_terms": terms}
    both = np.stack([X, Y])
    x, y = paper_krp(degree, k, random_state=3, **parameters).fit(both).transform(both)
    squares = (x * y * k - C**degree) ** 2
    assert_mean(squares, one_component_variance(pool, degree, terms))


@pytest.mark.parametrize("degree", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_variance_of_a_hadamard_component_is_the_formula_s(degree):
    k, draws = 16, 1400
    both = np.stack([X, Y])
    squares = np.empty(draws)
    for seed in range(draws):
        krp = paper_krp(degree, k, n_terms=1, pool="hadamard", block_size=2, random_state=seed)
        x, y = krp.fit(both).transform(both)
        # Components share blocks: only the draws are independent.
        squares[seed] = ((x * y * k - C**degree) ** 2).mean()
    assert_mean(squares, one_component_variance("hadamard", degree, 1, hadamard_places=(2, 4)))


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["s=1", "s=3", "gaussian"])
def test_a_shared_pool_leaves_the_part_that_more_components_do_not_remove(pool):
    degree, p, k = 2, 60, 30
    found = estimates(1400, degree, k, n_terms=1, n_hyperplanes=p, **POOLS[pool])
    kappa = {"s=1": 1, "s=3": 3, "gaussian": 3}[pool]
    squares = N + 2 * C**2 + (kappa - 3) * SIGMA
    # Each hyperplane is in one component here (p = g k): the dealt use removes the shared part.
    assert_mean((found - C**degree) ** 2, one_component_variance(pool, degree, 1) / k)
    more = 300
    found = estimates(700, degree, more, n_terms=1, n_hyperplanes=p, **POOLS[pool])
    # Two components vary together by what the hyperplanes that they share are more than c^2.
    together = np.empty(20)
    for seed in range(20):
        krp = paper_krp(degree, more, n_terms=1, n_hyperplanes=p, random_state=seed, **POOLS[pool])
        uses = np.zeros((more, p))
        chosen = krp.fit(np.stack([X, Y])).program_.stages[2].factors[:, 0]
        np.put_along_axis(uses, chosen, 1, axis=1)
        shared = uses @ uses.T
        together[seed] = (squares**shared * C ** (2 * (degree - shared)) - C ** (2 * degree)).mean()
    assert_mean((found - C**degree) ** 2, together.mean())


def test_degree_one_is_the_plain_random_projection():
    krp = paper_krp(1, 6, n_terms=1, s=1, n_hyperplanes=6, random_state=0).fit(np.stack([X, Y]))
    table = krp.program_.stages[1]
    signs = np.zeros((6, 4))
    signs[table.output, table.input] = table.value
    chosen = krp.program_.stages[2].factors.ravel()
    assert np.allclose(krp.transform([X]), (signs @ X)[chosen] / np.sqrt(6), rtol=1e-15)


@pytest.mark.parametrize("pool", ["hadamard", "achlioptas"])
@pytest.mark.parametrize("degree", [16, 17, 32, 64])
def test_high_degrees_stay_within_single_precision(degree, pool):
    X = np.random.default_rng(degree).normal(size=(200, 30)).astype("float32")
    krp = sqlkrp.KRP(degree, 20, pool=pool, random_state=0)
    single = krp.fit(X).transform(X)
    double = krp.set_params(dtype="float64").fit(X).transform(X)
    assert single.dtype == "float32"
    assert np.abs(single - double).max() < 1e-3 * np.abs(double).max()
