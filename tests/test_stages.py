import dataclasses
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize
from support import FORMS, dyadic, paper_krp, store

from sqlkrp import pools
from sqlkrp.errors import InconsistentMapError, MissingValueError
from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.options import Options
from sqlkrp.sql.side_tables import create_side_table
from sqlkrp.sql.statement import write
from sqlkrp.stages import (
    RECORDS,
    Answers,
    Butterflies,
    Distances,
    Elementwise,
    Linear,
    Paths,
    Shares,
    SumOfProducts,
    Votes,
    apply,
    beside,
    cost,
)
from sqlkrp.stages.meaning import rounding
from sqlkrp.stages.parts import only, reading
from sqlkrp.stages.stage import INPUTS, columns_of


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
    # d=784, p=976, s=3: a third of 765,184 signs; against 2 * 13 chunks of 64 log2 64 additions.
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
    monkeypatch.setattr("sqlkrp.stages.values.SLAB_VALUES", 100)
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


@pytest.mark.parametrize("pool", ["hadamard", "achlioptas"])
def test_where_rows_are_cut_changes_nothing(monkeypatch, pool):
    X = dyadic(100, 6).to_numpy()
    krp = paper_krp(2, 5, pool=pool, random_state=0).fit(X)
    one_by_one = np.vstack([krp.transform(row[None]) for row in X])
    assert np.array_equal(krp.transform(X), one_by_one)
    monkeypatch.setattr("sqlkrp.stages.chunks._CHUNK_ROWS", range(16, 17))
    monkeypatch.setattr("sqlkrp.stages.chunks.SLAB_VALUES", 20_000)
    assert np.array_equal(krp.transform(X), one_by_one)
    assert np.array_equal(krp.transform(np.asfortranarray(X)), one_by_one)
    assert krp.transform(X[:0]).shape == (0, 5)


@pytest.mark.parametrize("pool", ["hadamard", "gaussian"])
def test_threads_change_no_bit(monkeypatch, pool):
    X = np.random.default_rng(0).normal(size=(2000, 6))
    krp = paper_krp(3, 20, pool=pool, random_state=0).fit(X)
    found = set()
    for threads in ("1", "2", "7", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.add(krp.transform(X).tobytes())
    assert len(found) == 1


def test_missing_values_are_counted_in_all_chunks():
    X = np.zeros((2000, 3))
    X[[5, 1500, 1999], [0, 0, 2]] = np.nan, np.inf, np.nan
    krp = paper_krp(2, 3, nulls="error").fit(np.zeros((2, 3)))
    with pytest.raises(MissingValueError, match=r"in 'x0' \(2\), 'x2' \(1\): draw"):
        krp.transform(X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_take_no_memory_beside_their_features(dtype):
    X = np.ones((200_000, 8), dtype=dtype)
    krp = paper_krp(2, 40, pool="hadamard", dtype=dtype, random_state=0).fit(X[:10])
    krp.transform(X[:1000])
    tracemalloc.start()
    try:
        features = krp.transform(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Chunks of 2,032 rows in some threads; the prepared inputs alone would be a fifth more.
    assert features.nbytes < peak < 1.15 * features.nbytes


# --- what every stage has in common ---------------------------------------------------------------


def test_every_meaning_covers_every_record():
    from sqlkrp.sql.loops import BODIES
    from sqlkrp.sql.tables import STEPS
    from sqlkrp.sql.wide import WRITERS
    from sqlkrp.stages.meaning import MEANING

    every = list(RECORDS.values())
    # Those at the end of a model are written over columns, whatever the form.
    before = [stage for stage in every if not stage.closes]
    assert every[: len(before)] == before
    assert list(MEANING) == every
    assert list(STEPS) == before
    # They begin with columns that are prepared in one way.
    assert list(WRITERS) == every[1:]
    assert list(BODIES) == before[1:]


def some_stages(d, seed):
    """One of each kind of stage that reads d inputs, with d outputs or more, and what it is."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-8, 9, (d + 2, d)) / 8
    signs = pools.draw_achlioptas(pools.generator(seed), d + 2, d, 2)
    column, sign = pools.draw_hadamard(pools.generator(seed), 2, d, 4)
    factors = rng.integers(-1, d, (d + 1, 2, 3))
    factors[:, :, 0] = rng.integers(0, d, (d + 1, 2))
    factors = np.where((factors < 0).cumsum(axis=2) > 0, -1, factors)
    point = rng.integers(-8, 9, (3, d)) / 8
    past = Linear.picked(d, rng.integers(0, d, d))
    return [
        Paths(d, ((past,), (Linear.dense(weights), Elementwise(d + 2, "sign")), (past,))),
        Linear.dense(weights),
        Linear.signed(d, d + 2, signs),
        Linear(d, d + 2, *signs, constant=rng.integers(-8, 9, d + 2) / 8),
        Linear.picked(d, rng.integers(0, d, d + 3), rng.integers(-2, 3, d + 3) / 4, 0.5),
        Linear.scaled(d, 0.25),
        Butterflies.of_blocks(d, 4, column, sign),
        SumOfProducts(d, factors.astype("i4"), rng.choice([-1, 1], (d + 1, 2)).astype("i1")),
        Distances.to_points(point),
        Elementwise(d, "sign"),
    ]


@settings(deadline=None)
@given(st.integers(1, 7), st.integers(0, 10**6), st.data())
def test_a_part_of_a_stage_gives_what_the_whole_gives(d, seed, data):
    X = dyadic(4, d, seed).to_numpy()
    for stage in some_stages(d, seed):
        whole = apply(stage, X)
        wanted = data.draw(st.sets(st.integers(0, stage.n_outputs - 1), min_size=1))
        left, kept, needed = only(stage, np.array(sorted(wanted)))
        assert wanted <= set(kept.tolist())
        narrow = reading(left, needed)
        assert narrow.n_inputs == len(needed)
        assert np.array_equal(apply(narrow, X[:, needed]), whole[:, kept])


@given(st.integers(1, 5), st.integers(0, 10**6), st.booleans())
def test_stages_side_by_side_give_what_each_gives(d, seed, shared):
    X = dyadic(4, 2 * d, seed).to_numpy()
    first, second = X[:, :d], X[:, :d] if shared else X[:, d:]
    pairs = list(zip(some_stages(d, seed)[1:], some_stages(d, seed + 1)[1:], strict=True))
    pairs.append((Linear.scaled(d, 0.5), Linear.scaled(d, 2.0, constant=0.25)))
    for one, other in pairs:
        if shared and not any(what.holds == INPUTS for _, what, _ in columns_of(one)):
            continue  # its inputs are its outputs' own
        both = beside([one, other], shared=shared)
        expected = np.column_stack([apply(one, first), apply(other, second)])
        assert np.array_equal(apply(both, X[:, :d] if shared else X), expected)


def test_what_cannot_stand_side_by_side_is_our_fault():
    for one, other in (
        (Elementwise(2, "cos"), Elementwise(2, "sign")),
        (Elementwise(2, "cos"), Linear.scaled(2, 1.0)),
        (Linear.scaled(2, 1.0), Linear.dense(np.ones((2, 2)))),
    ):
        with pytest.raises(InconsistentMapError, match="side by side"):
            beside([one, other], shared=False)
    with pytest.raises(InconsistentMapError, match="share their inputs"):
        beside([Elementwise(2, "cos")] * 2, shared=True)


def test_tables_that_are_not_consistent_are_our_fault():
    def i(numbers):
        return np.array(numbers, dtype="i4")

    def v(numbers):
        return np.array(numbers, dtype="i1")

    for number, wrong in enumerate([
        lambda: Linear(2, 2, i([0, 1]), i([0, 2]), v([1, 1])),  # an input that is not there
        lambda: Linear(2, 2, i([0, 2]), i([0, 1]), v([1, 1])),  # an output that is not there
        lambda: Linear(2, 2, i([0, 0]), i([1, 1]), v([1, 1])),  # an entry given twice
        lambda: Linear(2, 2, i([1, 0]), i([0, 0]), v([1, 1])),  # out of order
        lambda: Linear(2, 2, i([0, 1]), i([0, -1]), v([1, 1])),  # of nothing
        lambda: Linear(2, 2, i([0, 1]), i([0, 1]), v([1, 2])),  # no sign
        lambda: Linear(2, 2, i([0, 1]), i([0, 1]), v([1])),  # a column too short
        lambda: Linear(2, 2, i([0, 0]), i([0, 1]), v([1, 1]), picks=True),  # reads two
        lambda: Linear(2, 2, i([0, 1]), i([0, 1]), v([1, 1]), np.zeros(3)),  # too many
        lambda: Butterflies(2, i([[0, 1, 0]]), v([[1, 1, 1]])),  # no power of two
        lambda: Butterflies(2, i([[0, 2]]), v([[1, 1]])),
        lambda: SumOfProducts(2, i([[[-1, 0]]]), v([[1]])),  # a factor behind none
        lambda: SumOfProducts(2, i([[[0, 1]]]), v([[1, 1]])),
        lambda: Distances(2, 2, i([0, 0]), i([0, 1]), np.ones(2)),  # a point of nothing
        lambda: Elementwise(2, "tan"),
        lambda: Paths(2, ()),
        lambda: Paths(2, ((),)),
        lambda: Paths(2, ((Elementwise(2, "cos"),),)),  # which inputs it reads is not said
        lambda: Paths(2, ((Linear.scaled(3, 1.0),),)),  # other inputs
        lambda: Paths(2, ((Linear.scaled(2, 1.0), Elementwise(3, "cos")),)),
        lambda: Paths(2, ((Linear.scaled(2, 1.0), Votes(2)),)),  # what stands at the end
    ]):  # fmt: skip
        with pytest.raises(InconsistentMapError):
            raise AssertionError(f"number {number} passed: {wrong()}")


@pytest.mark.parametrize("far", [1e-9, 0.3, 3.0, 800.0])
@pytest.mark.parametrize(
    "stage",
    [
        Answers(1, classes=("no", "yes"), link="sigmoid", says=("probability",)),
        Answers(4, classes=tuple("abcd"), link="softmax", says=("probability",)),
        Answers(4, classes=tuple("abcd"), link="shares", says=("probability",)),
        Shares(4, exponentials=True),
        Shares(4),
    ],
    ids=["sigmoid", "softmax", "shares", "exponentials", "parts"],
)
def test_no_errors_of_decisions_lead_further_than_is_told(stage, far):
    # A step in front of them, such as a threshold's, makes errors that are not small.
    rng = np.random.default_rng(0)
    X = rng.normal(0, 2, (2000, stage.n_inputs))
    errors = far * rng.random(X.shape)
    moved = X + errors * rng.choice([-1.0, 1.0], X.shape)
    if isinstance(stage, Shares) and not stage.exponentials:  # of what is not negative
        X, moved = np.abs(X), np.maximum(np.abs(X) + moved - X, 0)
    told = rounding(stage, X, errors, 4 * np.finfo("f8").eps)
    off = np.abs(apply(stage, moved) - apply(stage, X))
    assert (off <= told + 1e-13).all()
    # Nor is it much too careful where errors are small.
    assert far > 1e-3 or np.quantile(off / told, 0.95) > 0.1


def test_rounding_of_singles_whose_squares_leave_their_range_is_told():
    # It was no number, and a verification took each difference for a fault of the engine.
    X = np.random.default_rng(0).normal(0, 1e28, (20, 3)).astype("f4")
    krp = paper_krp(1, 4, scaling="unit", nulls="mean", random_state=0)
    program = krp.fit(X).program_
    told = program.rounding(X, float(np.finfo("f4").eps))
    assert program.prepare.dtype == "float32"
    assert ((told > 0) & (told < 1e-5 * np.abs(program.apply(X)).max())).all()


def test_a_program_goes_on_with_more_stages():
    krp = paper_krp(2, 3, random_state=0).fit(["a", "b"])
    X = dyadic(5, 2).to_numpy()
    weights = np.array([[0.5, -1.0, 2.0]])
    scored = krp.program_.then([Linear.dense(weights)], ["score"])
    assert scored.names == ("score",)
    assert np.array_equal(scored.apply(X), krp.transform(X) @ weights.T)


def test_weights_of_one_input_are_no_signs_and_sums_may_have_constants():
    index = np.arange(2, dtype="i4")
    with pytest.raises(InconsistentMapError, match="signs for weights"):
        Linear(2, 2, index, index, np.ones(2, dtype="i1"), picks=True)
    scored = Linear.dense(np.array([[1.0, 2.0]]), np.array([0.5]))
    assert apply(scored, np.array([[3.0, 4.0]])).tolist() == [[11.5]]


@pytest.mark.parametrize("form", FORMS)
def test_a_score_behind_a_map_is_one_statement(connection, form):
    frame = dyadic(20, 3)
    store(connection, frame)
    krp = paper_krp(2, 4, random_state=0).fit(frame)
    weights, intercept = np.array([[0.5, -1.0, 2.0, 0.25]]), np.array([0.75])
    program = krp.program_.then([Linear.dense(weights, intercept)], ["score"])
    query = dataclasses.replace(krp.query('"t"', Options(form=form)), program=program)
    statement = write(query, dialect("duckdb"))
    for name, columns in statement.side_tables.items():
        connection.execute(create_side_table(name, columns, dialect("duckdb")))
        connection.register("loaded", pd.DataFrame(columns))
        connection.execute(f'INSERT INTO "{name}" SELECT * FROM loaded')
    found = connection.execute(statement.text).fetchnumpy()["score"]
    assert np.allclose(
        np.sort(found), np.sort((krp.transform(frame) @ weights.T + intercept)[:, 0])
    )
