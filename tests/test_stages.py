import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize
from support import dyadic, paper_krp

from sqlkrp import pools
from sqlkrp.errors import MissingValueError
from sqlkrp.stages import Butterflies, Linear, SumOfProducts, apply, cost


def sylvester(size):
    """The Hadamard matrix from its definition: parity of the common bits."""
    return np.array([[(-1) ** bin(a & i).count("1") for i in range(size)] for a in range(size)])


@given(st.integers(1, 40), st.sampled_from([1, 2, 8, 16]), st.integers(1, 3), st.integers(0))
def test_butterflies_are_the_hadamard_sums(d, size, blocks, seed):
    column, sign = pools.draw_hadamard(pools.generator(seed), blocks, d, size)
    stage = Butterflies.of_blocks(d, size, column, sign)
    X = dyadic(5, d).to_numpy()
    expected = []
    for places, signs in zip(column.reshape(-1, size), sign.reshape(-1, size), strict=True):
        chunk = np.where(places >= 0, X[:, places], 0) * signs
        expected.append(chunk @ sylvester(size).T)
    expected = np.hstack(expected)
    assert np.array_equal(apply(stage, X), expected)
    assert np.array_equal(apply(stage.linear, X), expected)


def test_a_full_block_costs_m_log_m_additions_a_chunk():
    column, sign = pools.draw_hadamard(pools.generator(0), 2, 256, 64)
    stage = Butterflies.of_blocks(256, 64, column, sign)
    assert cost(stage).additions == 2 * 4 * 64 * 6
    assert cost(stage.linear).additions == 2 * 256 * 63


def test_hadamard_takes_a_twentieth_of_the_additions_of_the_paper_s_pool():
    # science.md section 2: d=784, p=976, s=3 against m=64, two blocks; without sums over terms.
    columns = [f"c{i}" for i in range(784)]
    plain = paper_krp(2, 10, n_hyperplanes=976, random_state=0).fit(columns)
    hadamard = paper_krp(2, 10, pool="hadamard", random_state=0).fit(columns)
    assert (
        cost(hadamard.program_.stages[1]).additions * 20 < cost(plain.program_.stages[1]).additions
    )


def test_signed_sums_in_slabs_are_the_same(monkeypatch):
    table = pools.draw_achlioptas(pools.generator(3), 40, 30, 3)
    stage = Linear.signed(30, 40, table)
    X = dyadic(7, 30).to_numpy()
    dense = np.zeros((40, 30))
    dense[table.hyperplane, table.feature] = table.sign
    assert np.array_equal(apply(stage, X), X @ dense.T)
    monkeypatch.setattr("sqlkrp.stages.twin.SLAB_VALUES", 100)
    assert np.array_equal(apply(stage, X), X @ dense.T)


def test_sum_of_products_by_hand():
    stage = SumOfProducts(3, np.array([[[0, 1], [2, 2]]], "i4"), np.array([[1, -1]], "i1"))
    assert apply(stage, np.array([[2.0, 3.0, 5.0]])).tolist() == [[2 * 3 - 5 * 5]]
    assert cost(stage) == (1, 2)


@pytest.mark.parametrize(
    ("scaling", "peer"),
    [
        ("standard", StandardScaler().fit_transform),
        ("minmax", MinMaxScaler().fit_transform),
        ("unit", normalize),
        (None, lambda X: X),
    ],
)
def test_scaling_is_scikit_learn_s(scaling, peer):
    X = np.random.default_rng(0).normal(3, 5, (50, 4))
    X[:, 2] = 7.0  # no spread
    X[3] = 0.0  # no direction
    prepare = paper_krp(2, 3, scaling=scaling).fit(X).program_.prepare
    # Means and deviations are stored with 24 bits.
    tolerance = 1e-6 if scaling == "standard" else 1e-13
    assert np.allclose(apply(prepare, X), peer(X), rtol=tolerance, atol=tolerance)


def test_missing_values_by_policy():
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, np.inf], [3.0, 6.0]])

    def prepared(policy):
        return apply(paper_krp(2, 3, nulls=policy).fit(X).program_.prepare, X)

    assert prepared("zero").tolist() == [[1, 2], [0, 4], [5, 0], [3, 6]]
    assert prepared("mean").tolist() == [[1, 2], [3, 4], [5, 4], [3, 6]]
    gone = prepared("propagate")
    assert np.isnan(gone[1:3]).all()
    assert gone[[0, 3]].tolist() == [[1, 2], [3, 6]]
    with pytest.raises(MissingValueError, match=r"'x0' \(1\), 'x1' \(1\)"):
        prepared("error")


def test_long_inputs_are_computed_in_slabs_of_rows(monkeypatch):
    X = dyadic(50, 6).to_numpy()
    krp = paper_krp(2, 5, random_state=0).fit(X)
    whole = krp.transform(X)
    monkeypatch.setattr("sqlkrp.stages.twin.SLAB_VALUES", 3000)
    assert np.array_equal(krp.transform(X), whole)
