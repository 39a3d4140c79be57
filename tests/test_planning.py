"""How sums and products are computed in fewer operations, and that nothing changes by it."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import FORMS, dyadic, paper_krp, store, unguarded

import sqlkrp
from sqlkrp.errors import ParameterError
from sqlkrp.sql.dialects import DIALECTS
from sqlkrp.sql.options import Options
from sqlkrp.sql.planning import plan_program
from sqlkrp.sql.sharing import butterflies, paired, plain, shared
from sqlkrp.sql.statement import Query, write
from sqlkrp.stages import (
    Butterflies,
    Distances,
    Elementwise,
    Linear,
    Paths,
    Prepare,
    Program,
    SumOfProducts,
    apply,
    cost,
)

DUCKDB = DIALECTS["duckdb"]
POOLS = {
    "s=1": {"s": 1, "n_hyperplanes": 40},
    "s=3": {"s": 3, "n_hyperplanes": 40},
    "hadamard": {"pool": "hadamard", "block_size": 8},
}


def computed(circuit, inputs):
    """What a circuit computes, step by step, by its own definition."""
    values = inputs
    for layer in circuit.layers:
        columns = []
        for first, second in zip(layer.first.tolist(), layer.second.tolist(), strict=True):
            column = values[:, first - 1].copy()
            if second:
                column += np.sign(second) * values[:, abs(second) - 1]
            columns.append(column)
        values = np.column_stack(columns) if columns else np.zeros((len(inputs), 0))
    sums = np.zeros((len(inputs), len(circuit.starts) - 1))
    for i in range(sums.shape[1]):
        for place in circuit.terms[circuit.starts[i] : circuit.starts[i + 1]].tolist():
            sums[:, i] += np.sign(place) * values[:, abs(place) - 1]
    return sums


@settings(deadline=None, max_examples=60)
@given(
    signs=st.integers(1, 9).flatmap(
        lambda d: st.lists(
            st.lists(st.sampled_from([-1, 0, 1]), min_size=d, max_size=d), min_size=1, max_size=12
        )
    ),
    size=st.integers(2, 9),
)
def test_any_table_of_signs_is_the_same_shared_or_not(signs, size):
    matrix = np.array(signs)
    hyperplane, feature = (index.astype("i4") for index in np.nonzero(matrix))
    sign = matrix[hyperplane, feature].astype("i1")
    stage = Linear.signed(matrix.shape[1], len(matrix), (hyperplane, feature, sign))
    inputs = np.arange(1.0, 1 + 3 * matrix.shape[1]).reshape(3, -1) ** 2
    for circuit in (plain(stage), shared(stage, size)):
        assert np.array_equal(computed(circuit, inputs), inputs @ matrix.T)
    assert plain(stage).additions == cost(stage).additions
    # What is shared is never computed twice: columns are all different, up to a sign.
    for layer in shared(stage, size).layers:
        pairs = list(zip(layer.first.tolist(), layer.second.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize(("d", "size"), [(1, 1), (3, 4), (21, 8), (64, 64), (100, 16)])
def test_butterflies_are_the_transform_in_m_log_m_additions(d, size):
    krp = paper_krp(2, 4, n_terms=1, pool="hadamard", block_size=size, random_state=0)
    stage = krp.fit([f"c{i}" for i in range(d)]).program_.stages[1]
    circuit = butterflies(stage)
    inputs = np.random.default_rng(0).integers(-9, 10, (4, d)).astype(float)
    assert np.array_equal(computed(circuit, inputs), apply(stage, inputs))
    assert circuit.additions <= cost(stage).additions
    if d % size == 0:
        assert circuit.additions == stage.n_outputs * int(np.log2(size))


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "sqlite"], indirect=True)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("plan", ["plain", "shared", "butterflies"])
def test_every_plan_gives_the_same_bits_on_dyadic_data(engine, pool, plan):
    frame = dyadic(20, 21).assign(id=range(20))
    engine.store(frame)
    # Three chunks have the kernel's constant, each its share, which is dyadic.
    coef0 = 0.75 if pool == "hadamard" else 0.25
    krp = paper_krp(2, 7, n_terms=3, coef0=coef0, random_state=0, **POOLS[pool])
    krp.fit(frame, keep=["id"])
    options = {"form": "wide", "plan": plan, "keep": ["id"]}
    if plan == "butterflies" and pool != "hadamard":
        with pytest.raises(ParameterError, match="is for Hadamard pools"):
            engine.features(krp, **options)
        return
    projected = krp.program_.projection().apply(frame.to_numpy()[:, :-1])
    found = engine.features(krp, stage="projection", **options)[:, 1:]
    assert np.array_equal(found, projected)
    assert engine.database.verify(krp, "t", form="wide", plan=plan, tolerance=1e-12).ok


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "sqlite"], indirect=True)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_signs_of_sums_are_those_of_products(engine, degree):
    frame = dyadic(20, 21)
    engine.store(frame)
    krp = paper_krp(degree, 9, n_terms=3, **POOLS["hadamard"], random_state=0).fit(frame)
    statement = unguarded(krp, plan="butterflies")
    # No column is negated, and none is only named: casts, three layers, and products over them.
    assert not re.search(r"-\(\w+\) AS", statement.text)
    assert statement.text.count("SELECT") == 1 + 3 + 1
    (signs,) = (stage.sign for stage in krp.program_.stages if isinstance(stage, SumOfProducts))
    (moved,) = (stage.sign for stage in statement.plan.products_of.values())
    assert (signs != moved).any()
    assert np.array_equal(engine.features(krp, form="wide"), krp.transform(frame))


def added(text):
    """Additions and subtractions, counted in the text; signs of numbers stand in parentheses."""
    return len(re.findall(r" [+-] ", re.sub(r"--[^\n]*", "", text)))


def test_additions_counted_from_the_emitted_sql():
    """At d = 784 and p = 976, as the papers' own table of costs has it."""
    names = [f"c{i}" for i in range(784)]

    def count(plan, **pool):
        krp = paper_krp(2, 1000, n_terms=1, random_state=0, **pool).fit(names)
        statement = unguarded(krp, plan=plan)
        # Every one of a thousand features has one product of two, and adds nothing.
        assert added(statement.text) == statement.plan.additions
        return statement.plan.additions

    sparse = count("plain", s=3, n_hyperplanes=976)
    dense = count("plain", s=1, n_hyperplanes=976)
    assert count("auto", pool="hadamard") <= sparse / 20
    assert count("auto", s=1, n_hyperplanes=976) <= dense / 5
    assert count("auto", s=3, n_hyperplanes=976) <= sparse / 1.5


def test_auto_takes_what_costs_least_and_has_room():
    names = [f"c{i}" for i in range(784)]
    hadamard = paper_krp(2, 100, pool="hadamard", random_state=0).fit(names).program_
    iid = paper_krp(2, 1000, s=1, n_hyperplanes=488, n_terms=1, random_state=0).fit(names).program_
    for name in ("duckdb", "postgres", "sqlite"):
        facts = DIALECTS[name]
        assert plan_program(hadamard, "auto", facts).chosen[1].plan == "butterflies"
        way = plan_program(iid, "auto", facts).chosen[1]
        assert way.plan == "shared"
        limit = facts.limits.select_columns
        assert limit is None or way.circuit.widest <= limit


# --- products -------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_pairs_are_the_same_terms(degree):
    rng = np.random.default_rng(degree)
    factors = np.array(
        [[rng.choice(9, degree, replace=False) for _ in range(5)] for _ in range(30)], dtype="i4"
    )
    stage = SumOfProducts(9, factors, np.ones((30, 5), dtype="i1"))
    found = paired(stage)
    if degree == 1:
        assert len(found.pairs) == found.saved == 0
        return
    terms = np.concatenate([found.pairs[found.place], found.others], axis=2)
    assert np.array_equal(np.sort(terms, axis=2), np.sort(factors, axis=2))
    assert len(np.unique(found.pairs, axis=0)) == len(found.pairs) <= 36
    assert found.saved == 150 - len(found.pairs)


@pytest.mark.parametrize("degree", [2, 3, 5])
def test_products_that_many_terms_have_are_computed_once(connection, degree):
    frame = dyadic(12, 6)
    store(connection, frame)
    krp = paper_krp(degree, 40, n_terms=5, n_hyperplanes=25, random_state=0).fit(frame)
    statement = unguarded(krp)
    assert krp.program_.cost.products - statement.plan.products > 40 * 5 / 4
    assert statement.text.count(" * ") == statement.plan.products
    with sqlkrp.connect(connection) as db:
        assert db.verify(krp, "t", form="wide", tolerance=1e-12).ok


def test_few_equal_products_are_left_as_they_are():
    krp = paper_krp(2, 100, n_terms=10, random_state=0).fit([f"c{i}" for i in range(30)])
    assert unguarded(krp).plan.products == krp.program_.cost.products


# --- dead code ------------------------------------------------------------------------------------


def test_hyperplanes_and_columns_that_nothing_needs_are_not_computed(connection):
    frame = dyadic(12, 40)
    store(connection, frame)
    krp = paper_krp(1, 3, n_terms=1, s=20, random_state=0).fit(frame)
    used = krp.program_.stages[2].factors.ravel()
    pool = krp.program_.stages[1]
    needed = np.unique(pool.input[np.isin(pool.output, used)])
    # (What is printed still looks at every column for missing values.)
    text = unguarded(krp).text
    read = set(re.findall(r'"(c\d+)"', text))
    assert read == {f"c{i}" for i in needed.tolist()}
    assert 0 < len(read) < 40
    assert len(re.findall(r" AS h\d+", text)) == len(np.unique(used)) < 1000
    with sqlkrp.connect(connection) as db:
        assert db.verify(krp, "t", form="wide", tolerance=1e-12).ok


@pytest.mark.parametrize("pool", [*POOLS.values(), {"pool": "gaussian", "n_hyperplanes": 40}])
@pytest.mark.parametrize(
    "options", [{}, {"coef0": 1.0}, {"nulls": "propagate"}, {"scaling": "unit"}]
)
def test_selected_features_are_those_of_the_whole_map(connection, tmp_path, pool, options):
    frame = dyadic(15, 21)
    store(connection, frame)
    krp = paper_krp(2, 30, n_terms=2, random_state=0, **pool, **options).fit(frame)
    some = krp.select([4, 29, 4, 0])
    assert some.get_feature_names_out().tolist() == ["krp_0", "krp_4", "krp_29"]
    assert some.digest_ != krp.digest_
    assert np.allclose(
        some.transform(frame), krp.transform(frame)[:, [0, 4, 29]], rtol=1e-12, atol=1e-12
    )
    assert some.program_.cost.additions < krp.program_.cost.additions
    some.save(tmp_path / "some.map.json")
    again = sqlkrp.load(tmp_path / "some.map.json")
    assert again.digest_ == some.digest_
    with sqlkrp.connect(connection) as db:
        for form in FORMS:
            assert db.verify(again, "t", form=form).ok


def test_features_that_are_not_there_cannot_be_selected():
    krp = paper_krp(2, 5, random_state=0).fit(["a", "b"])
    for wrong in ([5], [], [-1], ["krp_1"]):
        with pytest.raises(ParameterError, match="is not allowed"):
            krp.select(wrong)


def test_the_command_line_selects_and_plans(run_cli, tmp_path):
    dyadic(20, 12).to_csv(tmp_path / "t.csv", index=False)
    run_cli("draw", "t.csv", "--components", 50, "--pool", "hadamard", "-o", "m.json")
    text = run_cli("sql", "m.json", "--table", "t", "--components-only", "0-2,49").stdout
    assert re.findall(r'AS "(krp_\d+)"', text) == ["krp_0", "krp_1", "krp_2", "krp_49"]
    done = run_cli("export", "m.json", "--file", "t.csv", "--components-only", "7", "--to", "-")
    assert done.stdout.splitlines()[0] == "krp_7"
    for plan in ("plain", "shared", "butterflies"):
        found = run_cli("inspect", "m.json", "--plan", plan).stdout
        assert re.search(rf"sums +{plan}", found)
        run_cli("verify", "m.json", "--file", "t.csv", "--plan", plan)
    assert (
        "0-99,120"
        in run_cli("sql", "m.json", "--table", "t", "--components-only", "x", code=2).stderr
    )
    assert (
        "0 to 49"
        in run_cli("sql", "m.json", "--table", "t", "--components-only", "50", code=2).stderr
    )


# --- what was wrong once --------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_printed_sql_guards_columns_that_nothing_needs_as_well(dialect):
    krp = paper_krp(1, 3, n_terms=1, s=20, random_state=0).fit([f"c{i}" for i in range(40)])
    text = krp.to_sql("t", form="wide", dialect=dialect)
    assert all(f"missing value in column c{i}'" in text for i in range(40))


def test_nothing_is_planned_for_the_tables_form():
    names = [f"c{i}" for i in range(50)]
    krp = paper_krp(2, 10, random_state=0).fit(names)
    assert krp.statement("t", form="tables").plan is None
    huge = paper_krp(2, 10, n_hyperplanes=3000, random_state=0).fit([f"c{i}" for i in range(2000)])
    (ways,) = plan_program(huge.program_.projection(), "auto", DUCKDB).ways.values()
    assert [way.plan for way in ways] == ["plain"]


def test_large_statements_refer_to_columns_by_place_where_that_is_parsed_faster():
    krp = paper_krp(2, 200, pool="hadamard", random_state=0).fit([f"c{i}" for i in range(100)])
    assert re.search(r"#\d", krp.to_sql("t"))
    assert "#" not in krp.to_sql("t", dialect="postgres")
    assert "#" not in krp.select(range(3)).to_sql("t")


def test_sparse_rows_are_gathered_unless_there_are_very_many_columns():
    few = paper_krp(2, 3, pool="hadamard", random_state=0).fit([f"c{i}" for i in range(2000)])
    many = paper_krp(2, 3, pool="hadamard", random_state=0).fit([f"c{i}" for i in range(2001)])
    long = ("r", "f", "v")

    def form(krp, name="datafusion", **options):
        return krp.statement("t", long=long, dialect=name, **options).form

    assert form(few) == form(many, form="wide") == "wide"
    assert form(many) == "tables"
    assert form(many, "duckdb") == "wide"  # a pivot reads each entry once


def test_a_constant_that_no_sum_needs_is_not_gathered(connection):
    frame = pd.DataFrame({"r": [1, 1, 2], "f": ["c0", "c1", "c0"], "v": [0.5, 2.0, 1.0]})
    store(connection, frame, "e")
    options = {"n_terms": 1, "n_hyperplanes": 3, "s": 6, "coef0": 1}
    maps = (paper_krp(1, 3, random_state=seed, **options).fit(["c0", "c1"]) for seed in range(99))
    krp = next(one for one in maps if set(one.program_.stages[1].input.tolist()) == {0, 1})
    with sqlkrp.connect(connection) as db:
        for form in FORMS:
            assert db.verify(krp, "e", long=("r", "f", "v"), form=form).ok


def test_columns_that_are_kept_need_room_too():
    krp = paper_krp(2, 300, s=1, n_terms=1, random_state=0).fit([f"c{i}" for i in range(200)])
    keep = [f"k{i}" for i in range(450)]
    statement = krp.statement("t", form="wide", dialect="sqlite", keep=keep)
    assert statement.too_large is None
    pairs = paper_krp(3, 1050, n_terms=10, n_hyperplanes=80, random_state=0)
    assert pairs.fit([f"c{i}" for i in range(5)]).statement("t", dialect="sqlite").form == "wide"


@pytest.mark.parametrize("plan", ["auto", "plain", "shared"])
def test_a_pool_of_all_zero_hyperplanes_has_no_layers(connection, plan):
    frame = dyadic(4, 3)
    store(connection, frame)
    krp = paper_krp(2, 3, n_terms=1, s=1e9, n_hyperplanes=12, scaling="unit", random_state=0)
    krp.fit(frame)
    with sqlkrp.connect(connection) as db:
        db.create(krp, "t", "f", form="wide", plan=plan)
    assert connection.execute("SELECT DISTINCT * FROM f").fetchall() == [(0.0,) * 3]


def test_inspect_prints_json_that_others_can_read(run_cli, tmp_path):
    krp = paper_krp(2, 10, random_state=0).fit([f"c{i}" for i in range(784)])
    krp.save(tmp_path / "m.json")
    done = run_cli("inspect", "m.json", "--dialect", "sqlite", "--json")
    assert "Infinity" not in done.stdout


def test_selecting_and_renaming_are_the_same_in_either_order():
    krp = paper_krp(2, 9, random_state=0).fit(["a", "b", "c"])
    one, other = krp.renamed("ABC"[i] for i in range(3)).select([2]), krp.select([2])
    assert one.digest_ == other.digest_ != krp.digest_
    assert one.to_sql("t") == other.renamed(["A", "B", "C"]).to_sql("t")


@pytest.mark.parametrize("wrong", ["5-", "5-3", "-3", "a", "1,,2", "0-99999999"])
def test_ranges_that_are_none_are_refused(run_cli, tmp_path, wrong):
    paper_krp(2, 3, random_state=0).fit(["a"]).save(tmp_path / "m.json")
    arguments = ("sql", "m.json", "--table", "t", f"--components-only={wrong}")
    told = "is too large: use numbers up to 9,999,999" if "9" in wrong else "is no number or range"
    assert told in run_cli(*arguments, code=2).stderr


#: Maps with so many weights, or coordinates, that these stand in arrays.
OF_ARRAYS = {
    "weights": lambda **options: sqlkrp.RandomProjection(100, pool="gaussian", **options),
    "distances": lambda **options: sqlkrp.Nystroem(100, gamma=0.01, **options),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("nulls", ["error", "mean", "propagate"])
@pytest.mark.parametrize("name", OF_ARRAYS)
def test_many_weights_are_functions_of_arrays(connection, name, nulls, dtype):
    frame = dyadic(120, 30)
    store(connection, frame)
    one = OF_ARRAYS[name](nulls=nulls, dtype=dtype, scaling=None, random_state=0)
    with sqlkrp.connect(connection) as db:
        one.fit(db.source("t"))
        statement = one.statement("t", form="wide")
        assert len(re.findall("ARRAY_(INNER_PRODUCT|DISTANCE)", statement.text)) >= 100
        # Names and operators that the engine plans are few; the numbers of an array are one text.
        assert statement.plan.written < 1_000 < 3_000 <= statement.plan.numbers
        if nulls != "error":
            connection.execute("UPDATE t SET c3 = NULL WHERE c0 > 2")
        for output in ("columns", "array"):
            assert db.verify(one, "t", form="wide").ok
            db.create(one, "t", f"f_{output}", form="wide", output=output)
    looked = "SELECT COUNT(*) FROM f_array WHERE LIST_COUNT(#1) = 100"
    (there,) = connection.execute(looked).fetchone()
    whole = (frame.c0 <= 2).sum() if nulls == "propagate" else 120
    assert there == whole


def test_inner_products_are_exact_where_sums_are(connection):
    """Weights that are multiples of 1/8: nothing may be rounded, in the text neither."""
    frame, weights = dyadic(50, 40), dyadic(70, 40, seed=1).to_numpy()
    store(connection, frame)
    program = Program((Prepare.plain(list(frame)), Linear.dense(weights, weights[:, 0].copy())),
                      tuple(f"f{i}" for i in range(70)))  # fmt: skip
    plan = plan_program(program, "auto", DUCKDB)
    assert plan.arrays == {1}
    query = Query(program, "0" * 64, "a program", '"t"', "f", Options(form="wide"))
    found = connection.execute(write(query, DUCKDB).text).df().to_numpy()
    assert np.array_equal(found, frame.to_numpy() @ weights.T + weights[:, 0])


def test_paths_are_planned_each_by_itself(connection):
    """Arrays in one path, and products behind another's sums that they do not read."""
    frame, weights = dyadic(50, 40), dyadic(70, 40, seed=1).to_numpy()
    store(connection, frame)
    place = np.random.default_rng(2).permutation(40).astype("i4").reshape(5, 8)
    sign = np.random.default_rng(3).choice([-1, 1], (5, 8)).astype("i1")
    paths = Paths(40, (
        (Linear.dense(weights),),
        (Butterflies(40, place, sign),),
        (SumOfProducts.squares(40),),
    ))  # fmt: skip
    program = Program((Prepare.plain(list(frame)), paths), tuple(f"f{i}" for i in range(150)))
    plan = plan_program(program, "butterflies", DUCKDB)
    assert len(plan.arrays) == len(plan.chosen) == 1
    assert not plan.products_of  # the squares are of columns
    query = Query(program, "0" * 64, "paths", '"t"', "f",
                  Options(form="wide", plan="butterflies"))  # fmt: skip
    found = connection.execute(write(query, DUCKDB).text).df().to_numpy()
    assert np.array_equal(found, program.apply(frame.to_numpy()))
    assert np.array_equal(found[:, :70], frame.to_numpy() @ weights.T)
    assert np.array_equal(found[:, 110:], frame.to_numpy() ** 2)


@pytest.mark.parametrize("end", ["cos", "distances"])
def test_arrays_hold_what_a_path_reads(connection, end):
    """Fourier features of some columns behind others that are not read any more."""
    frame, weights = dyadic(50, 40), dyadic(200, 40, seed=1).to_numpy()
    store(connection, frame)
    some = np.arange(2, 40, 3)
    read = np.zeros((200, 40))
    read[:, some] = weights[:, some]
    fourier = (Linear.dense(read, weights[:, 0].copy()), Elementwise(200, "cos"))
    pick = Linear.picked(40, np.array([39, 0, 7]))
    if end == "distances":
        fourier = (Linear.picked(40, some), Distances.to_points(weights[:, some]))
    paths = Paths(40, ((pick,), fourier, (Linear.picked(40, some[:2]),)))
    count = paths.n_outputs
    program = Program((Prepare.plain(list(frame)), paths), tuple(f"f{i}" for i in range(count)))
    assert len(plan_program(program, "auto", DUCKDB).arrays) == 1
    query = Query(program, "0" * 64, "paths", '"t"', "f", Options(form="wide"))
    found = connection.execute(write(query, DUCKDB).text).df().to_numpy()
    assert np.allclose(found, program.apply(frame.to_numpy()), rtol=0, atol=1e-12)


def test_few_weights_stay_where_people_read_them(connection):
    program = sqlkrp.RandomProjection(4, pool="gaussian", random_state=0).fit(["a", "b"]).program
    assert not plan_program(program, "auto", DUCKDB).arrays


# --- few rows -------------------------------------------------------------------------------------


DENSE = {"pool": "achlioptas", "s": 1, "n_terms": 30, "coef0": 0, "gamma": 1, "scaling": None}


@pytest.fixture
def dense(monkeypatch):
    """A map whose wide form DuckDB plans for longer than a few rows take in another."""
    monkeypatch.setattr("sqlkrp.sql.forms._LONG_TO_PLAN", 0.01)
    return sqlkrp.KRP(2, 20, random_state=0, **DENSE).fit(list(dyadic(1, 40)))


def most_rows(fitted):
    """Up to how many rows another form is taken."""
    return fitted.preflight().few.most


def test_a_table_of_few_rows_takes_a_form_that_is_quick_to_plan(connection, dense):
    most = most_rows(dense)
    assert 1 <= most < 1_000
    forms, db = {}, sqlkrp.connect(connection)
    for rows in (0, 1, most, most + 1):
        connection.execute("DROP TABLE IF EXISTS t")
        store(connection, dyadic(rows, 40))
        run = db.create(dense, "t", "f", replace=True)
        assert run.rows == rows
        forms[rows] = run.statement.form
        found = connection.sql("FROM f").df().to_numpy()
        db.create(dense, "t", "f", form="wide", replace=True)
        assert np.array_equal(found, connection.sql("FROM f").df().to_numpy())
    assert forms == {0: "tables", 1: "tables", most: "tables", most + 1: "wide"}


def test_why_a_form_was_taken_for_few_rows_is_told(connection, dense):
    store(connection, dyadic(5, 40))
    statement = sqlkrp.connect(connection).create(dense, "t", "f").statement
    assert re.match(r"5 rows; the wide form takes 0\.\d s to plan", statement.because)


@pytest.mark.parametrize("options", [{"form": "wide"}, {"plan": "shared"}, {"view": True}])
def test_what_is_asked_for_is_not_changed_for_few_rows(connection, dense, options):
    """And a view is read when its table may have many."""
    store(connection, dyadic(5, 40))
    run = sqlkrp.connect(connection).create(dense, "t", "f", **options)
    assert run.statement.form == "wide"


def test_rows_are_counted_only_where_they_stand(connection, dense, tmp_path):
    """A view may take long to count, and a CSV is parsed."""
    store(connection, dyadic(5, 40))
    connection.execute("CREATE VIEW v AS FROM t")
    forms, db = {}, sqlkrp.connect(connection)
    for file in ("t.parquet", "t.csv"):
        connection.execute(f"COPY t TO '{tmp_path / file}'")
    for source in ("t", "v", tmp_path / "t.parquet", tmp_path / "t.csv"):
        forms[getattr(source, "name", source)] = db.create(
            dense, source, "f", replace=True
        ).statement.form
    assert forms == {"t": "tables", "v": "wide", "t.parquet": "tables", "t.csv": "wide"}


def test_text_for_a_table_that_nobody_counts_is_for_many_rows(dense):
    assert dense.statement("t").form == "wide"


def test_butterflies_loop_over_an_array_in_few_rows(connection):
    krp = sqlkrp.KRP(2, 1000, random_state=0).fit(list(dyadic(1, 500)))
    assert krp.preflight().few.form.name == "array"
    store(connection, dyadic(3, 500))
    db = sqlkrp.connect(connection)
    assert db.create(krp, "t", "f").statement.form == "array"
    assert db.verify(krp, "t").form == "array"


def test_small_statements_are_the_same_for_any_rows():
    assert sqlkrp.KRP(2, 100, random_state=0).fit(list("abcd")).preflight().few is None


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"duckdb"}))
def test_engines_where_few_rows_gain_nothing_do_not_count_them(dense, dialect):
    assert dense.preflight(dialect=dialect).few is None
