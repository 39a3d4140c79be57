import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import paper_krp

import sqlkrp
from sqlkrp import pools


@pytest.mark.parametrize("s", [1, 2.5, 3, 10])
def test_achlioptas_entries_have_the_documented_frequencies(s):
    n = 400 * 500
    table = pools.draw_achlioptas(pools.generator(1), 400, 500, s)
    assert set(np.unique(table.sign)) == {-1, 1}
    for sign in (-1, 1):
        share = 1 / (2 * s)
        deviation = np.sqrt(n * share * (1 - share))
        assert abs(np.count_nonzero(table.sign == sign) - n * share) < 5 * deviation
    order = table.hyperplane.astype(int) * 500 + table.feature
    assert (np.diff(order) > 0).all()


def test_achlioptas_does_not_depend_on_the_size_of_its_slabs(monkeypatch):
    whole = pools.draw_achlioptas(pools.generator(5), 50, 30, 3)
    monkeypatch.setattr(pools, "_SLAB_ENTRIES", 70)
    slabs = pools.draw_achlioptas(pools.generator(5), 50, 30, 3)
    for a, b in zip(whole, slabs, strict=True):
        assert np.array_equal(a, b)


def test_hyperplanes_that_come_out_all_zero_stay():
    table = pools.draw_achlioptas(pools.generator(0), 9000, 2, 3)
    zero = 9000 - len(np.unique(table.hyperplane))
    expected = 9000 * (2 / 3) ** 2
    assert abs(zero - expected) < 5 * np.sqrt(expected)


def test_gaussian_entries_are_standard_normal():
    weights = pools.draw_gaussian(pools.generator(2), 300, 300)
    n = weights.size
    assert weights.dtype == np.float32
    assert abs(weights.mean()) < 5 / np.sqrt(n)
    assert abs((weights.astype(float) ** 2).mean() - 1) < 5 * np.sqrt(2 / n)
    assert abs((weights.astype(float) ** 4).mean() - 3) < 5 * np.sqrt(96 / n)


@given(st.integers(1, 200), st.sampled_from([1, 2, 16, 64]), st.integers(1, 4))
def test_a_hadamard_block_places_every_column_once(d, size, blocks):
    column, sign = pools.draw_hadamard(pools.generator(d), blocks, d, size)
    assert column.shape == sign.shape
    assert column.shape[1] % size == 0
    assert column.shape[1] - d < size
    for block in column:
        assert np.array_equal(np.sort(block[block >= 0]), np.arange(d))
    assert set(np.unique(sign)) <= {-1, 1}


@given(st.integers(2, 200), st.sampled_from([1, 2, 16, 64]), st.integers(1, 4))
def test_a_constant_column_stands_in_each_chunk_and_every_other_one_once(d, size, blocks):
    column, sign = pools.draw_hadamard(pools.generator(d), blocks, d, size, constant=True)
    chunks = pools.hadamard_chunks(d, size, constant=True)
    assert column.shape == sign.shape == (blocks, chunks * size)
    for block in column.reshape(blocks, chunks, size):
        others = np.sort(block[(block >= 0) & (block < d - 1)])
        assert np.array_equal(others, np.arange(d - 1))
        in_each = (block == d - 1).sum(axis=1)
        # Of places for one column a chunk has none left.
        assert (in_each == 1).all() if size > 1 else in_each.sum() == 1
    assert set(np.unique(sign)) <= {-1, 1}


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 200), st.integers(0))
def test_pairs_are_used_equally_often_and_differ_while_they_can(first, second, count, seed):
    pairs = pools.choose_pairs(pools.generator(seed), first, second, count)
    assert pairs.shape == (count, 2)
    assert len(np.unique(pairs, axis=0)) == min(count, first * second)
    for members, size in zip(pairs.T, (first, second), strict=True):
        uses = np.bincount(members, minlength=size)
        assert len(uses) == size
        assert uses.max() - uses.min() <= 1


@given(st.integers(1, 6), st.integers(1, 30), st.integers(0, 9), st.integers(0))
def test_components_take_distinct_members_of_each_pool_equally_often(t, k, extra, seed):
    sizes = [t + extra, t]
    chosen = pools.choose_members(pools.generator(seed), sizes, k, t)
    assert chosen.shape == (k, t, 2)
    for pool, size in enumerate(sizes):
        for component in chosen[..., pool]:
            assert len(np.unique(component)) == t
        uses = np.bincount(chosen[..., pool].ravel(), minlength=size)
        assert len(uses) == size
        assert uses.max() - uses.min() <= 1


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 30), st.integers(0, 40), st.integers(0))
def test_components_take_distinct_hyperplanes_equally_often(t, g, k, extra, seed):
    p = t * g + extra
    chosen = pools.choose_hyperplanes(pools.generator(seed), p, k, t, g)
    assert chosen.shape == (k, t, g)
    for component in chosen:
        assert len(np.unique(component)) == t * g
    uses = np.bincount(chosen.ravel(), minlength=p)
    assert uses.max() - uses.min() <= 1


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 30), st.integers(0, 3), st.integers(0))
def test_hadamard_components_keep_the_rules(t, g, k, extra_blocks, seed):
    per_block = 8
    blocks = max(g, -(-t * g // per_block)) + extra_blocks
    chosen = pools.choose_hadamard_hyperplanes(pools.generator(seed), blocks, per_block, k, t, g)
    for component in chosen:
        assert len(np.unique(component)) == t * g
        for term in component // per_block:
            assert len(np.unique(term)) == g  # factors of a term: different blocks
    uses = np.bincount(chosen.ravel(), minlength=blocks * per_block).reshape(blocks, per_block)
    assert (uses.max(axis=1) - uses.min(axis=1) <= 1).all()


def test_too_few_hyperplanes_name_the_smallest_number_that_would_do():
    columns = [f"c{i}" for i in range(10)]
    for pool, needed in (("achlioptas", 20), ("gaussian", 20), ("hadamard", 32)):
        krp = paper_krp(2, 5, pool=pool, n_hyperplanes=3, n_terms=10)
        with pytest.raises(sqlkrp.errors.ParameterError, match=rf"\b{needed}\b"):
            krp.fit(columns)
        assert krp.set_params(n_hyperplanes=needed).fit(columns).program_


def test_a_small_hadamard_pool_takes_more_blocks_by_itself():
    krp = paper_krp(2, 5, pool="hadamard", n_terms=10).fit(["a", "b"])
    projection = krp.program_.stages[1]
    assert projection.n_outputs == 20  # 2 columns a block, 20 distinct hyperplanes a component


@pytest.mark.parametrize(("pool", "p"), [("achlioptas", 1000), ("gaussian", 1000)])
def test_auto_hyperplanes_of_iid_pools(pool, p):
    assert paper_krp(2, 5, pool=pool).fit(["a", "b"]).program_.stages[1].n_outputs == p
    many = paper_krp(3, 5, pool=pool, n_terms=400).fit(["a", "b"])
    assert many.program_.stages[1].n_outputs == 1200
