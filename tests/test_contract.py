"""What every engine with a connection promises: the same tests on each of them."""

import csv
import gzip

import campaign
import numpy as np
import pandas as pd
import pytest
from support import FORMS, dyadic, flipped_query, forms_of, paper_krp

import sqlkrp
from sqlkrp.errors import (
    ColumnError,
    EngineError,
    LimitError,
    MissingValueError,
    ParameterError,
    SqlkrpError,
    TargetExistsError,
)

COLUMNS = [f"c{i}" for i in range(6)]
FRAME = dyadic(40, 6).assign(id=range(40))
every_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def stored(place):
    place.store(FRAME.assign(name="x"))
    return place


def numbers(place, table="f", skip=0):
    return np.array([row[skip:] for row in place.rows(f"SELECT * FROM {table}")], dtype=float)


# --- creating -------------------------------------------------------------------------------------


@every_form
def test_create_makes_a_table_and_nothing_else(db, krp, stored, form):
    run = db.create(krp, table="t", into="f", keep=["id", "name"], form=form)
    assert (run.rows, run.statement.form) == (40, form)
    assert stored.objects() == ["f", "t"]
    rows = stored.rows("SELECT * FROM f ORDER BY id")
    assert [row[:2] for row in rows] == [(i, "x") for i in range(40)]
    found = np.array([row[2:] for row in rows], dtype=float)
    assert np.allclose(found, krp.transform(FRAME), rtol=1e-12)
    by_name = stored.rows("SELECT name, krp_4, krp_0 FROM f WHERE id = 3")
    assert by_name == [("x", rows[3][6], rows[3][2])]
    if stored.name != "sqlite":  # which has no comments
        assert stored.comment("f") == f"sqlkrp map {krp.digest_}"


def test_create_does_not_replace_unless_asked(db, krp, stored):
    stored.execute("CREATE TABLE f AS SELECT 1 AS precious")
    stored.execute("CREATE VIEW v AS SELECT 1 AS one")
    for view in (False, True):
        with pytest.raises(TargetExistsError, match=r"(?i)\.f' exists already"):
            db.create(krp, "t", "F", view=view)  # names are the same in any case
    assert stored.rows("SELECT * FROM f") == [(1,)]
    db.create(krp, "t", "f", replace=True)
    assert stored.rows("SELECT COUNT(krp_0) FROM f") == [(40,)]
    db.create(krp, "t", "v", replace=True, view=True)
    assert stored.rows("SELECT COUNT(krp_0) FROM v") == [(40,)]
    with pytest.raises(TargetExistsError, match="is a table and a view was asked for"):
        db.create(krp, "t", "f", view=True, replace=True)
    with pytest.raises(TargetExistsError, match="is a view and a table was asked for"):
        db.create(krp, "t", "v", replace=True)
    assert stored.objects() == ["f", "t", "v"]


def test_create_does_not_overwrite_what_it_reads(db, krp, stored):
    stored.execute("CREATE VIEW v AS SELECT * FROM t")
    stored.execute("CREATE VIEW w AS SELECT * FROM v")
    stored.store(pd.DataFrame({"r": [1], "f": ["c0"], "v": [2.0]}), "e")
    stored.store(pd.DataFrame({"r": [1], "note": ["precious"]}), "keys")
    spelt = ("t", "T", '"t"', ("t",), *stored.spelt_in_full("t"))
    for table, into in (*(("t", into) for into in spelt), ("w", "t")):
        with pytest.raises(ParameterError, match="is read by this"):
            db.create(krp, table, into, replace=True)
    with pytest.raises(ParameterError, match="is read by this"):
        db.create(krp, "e", "keys", long=("r", "f", "v"), rows="keys", replace=True)
    assert stored.rows("SELECT COUNT(name) FROM w") == [(40,)]
    assert stored.rows("SELECT * FROM keys") == [(1, "precious")]


def test_a_view_computes_when_it_is_read_and_guards_itself(db, krp, stored):
    run = db.create(krp, "t", "v", keep=["id"], view=True)
    assert run.rows is None
    assert np.allclose(numbers(stored, "v", skip=1), krp.transform(FRAME), rtol=1e-12)
    assert f"sqlkrp map {krp.digest_}" in stored.comment("v")
    stored.execute("DELETE FROM t WHERE id >= 3")
    assert stored.rows("SELECT COUNT(*) FROM v") == [(3,)]
    for missing in stored.missing:
        stored.execute(f"UPDATE t SET c1 = {missing} WHERE id = 1")
        with pytest.raises(stored.error, match="missing value in column c1"):
            stored.rows("SELECT * FROM v")
    stored.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(ParameterError, match="side tables that stay"):
        db.create(krp, "t", "w", view=True, form="tables")
    assert stored.objects() == ["t", "v"]


@every_form
def test_a_failure_leaves_nothing_behind(db, krp, stored, form, tmp_path):
    stored.execute(f"CREATE VIEW broken AS SELECT t.*, {stored.broken} AS c9 FROM t")
    other = paper_krp(2, 5, n_terms=2, random_state=0).fit([*COLUMNS, "c9"])
    for act in (
        lambda: db.create(other, "broken", "f", form=form),
        lambda: db.export(other, "broken", tmp_path / "f.csv", form=form),
        lambda: db.export(krp, "t", "/nowhere/f.csv", form=form),
        lambda: db.verify(other, "broken", form=form),
        lambda: db.create(krp, "nowhere", "f", form=form),
        lambda: db.create(krp, "t", "no_schema.f", form=form),
        lambda: db.verify(krp, "nowhere", form=form),
    ):
        with pytest.raises((EngineError, ColumnError, ParameterError)) as error:
            act()
        assert "\n" not in str(error.value)
        assert stored.objects() == ["broken", "t"]
        assert not stored.in_transaction()
    assert list(tmp_path.iterdir()) == []
    db.create(krp, "t", "f", form=form)  # the connection is still of use


def test_a_stop_when_the_table_is_made_leaves_nothing(db, krp, stored, monkeypatch):
    # No statement failed, so that no engine undoes it by itself.
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(db._session), "restore_names", stop)
    with pytest.raises(KeyboardInterrupt):
        db.create(krp, "t", "f")
    assert stored.objects() == ["t"]
    assert not stored.in_transaction()


@every_form
def test_a_failure_leaves_what_was_to_be_replaced(db, krp, stored, form):
    stored.execute(f"CREATE VIEW broken AS SELECT t.*, {stored.broken} AS c9 FROM t")
    other = paper_krp(2, 5, n_terms=2, random_state=0).fit([*COLUMNS, "c9"])
    stored.execute("CREATE TABLE f AS SELECT 1 AS precious")
    stored.execute("CREATE VIEW v AS SELECT * FROM t")
    stored.execute("CREATE VIEW w AS SELECT * FROM v")
    with pytest.raises(EngineError):
        db.create(other, "broken", "f", form=form, replace=True)
    # That it reads itself is only seen when it is there.
    with pytest.raises(SqlkrpError):
        db.create(krp, "w", "v", view=True, replace=True)
    assert stored.rows("SELECT * FROM f") == [(1,)]
    assert stored.rows("SELECT COUNT(name) FROM w") == [(40,)]
    assert stored.objects() == ["broken", "f", "t", "v", "w"]
    assert not stored.in_transaction()


@every_form
def test_inside_the_user_s_transaction_it_is_the_user_s_to_end(db, krp, stored, form):
    stored.execute("BEGIN")
    stored.execute("INSERT INTO t SELECT * FROM t")
    assert db.create(krp, "t", "f", form=form).rows == 80
    assert db.verify(krp, "t", form=form).ok
    assert stored.in_transaction()
    stored.execute("ROLLBACK")
    assert stored.objects() == ["t"]
    assert stored.rows("SELECT COUNT(*) FROM t") == [(40,)]


@every_form
def test_missing_values_are_named_and_nothing_is_made(db, krp, stored, form, tmp_path):
    stored.execute("UPDATE t SET c1 = NULL WHERE id < 3")
    stored.execute(f"UPDATE t SET c2 = {stored.missing[2]} WHERE id = 5")
    for act in (
        lambda: db.create(krp, "t", "f", form=form),
        lambda: db.export(krp, "t", tmp_path / "f.csv", form=form),
        lambda: db.verify(krp, "t", form=form),
    ):
        with pytest.raises(MissingValueError, match=r"'c1' \(3\), 'c2' \(1\)"):
            act()
    assert stored.objects() == ["t"]
    assert list(tmp_path.iterdir()) == []


def test_columns_are_checked_before_anything_runs(db, stored):
    one = paper_krp(2, 3).fit(["c0"])
    with pytest.raises(ColumnError, match="'C1' is not in t: did you mean 'c1'"):
        db.create(paper_krp(2, 3).fit(["c0", "C1"]), "t", "f")
    with pytest.raises(ColumnError, match="'name' of t is of type"):
        db.create(paper_krp(2, 3).fit(["c0", "name"]), "t", "f")
    with pytest.raises(ColumnError, match="'idd' is not in t: did you mean 'id'"):
        db.create(one, "t", "f", keep=["idd"])
    with pytest.raises(ColumnError, match="nowhere"):
        db.source("nowhere")
    assert stored.objects() == ["t"]


@every_form
def test_side_tables_that_the_user_loaded_are_left_alone(db, krp, stored, form):
    # Under the names that are printed, as tables and as temporary ones.
    names = list(krp.statement("t", form="tables").side_tables)
    for kind, name in zip(("", "TEMPORARY ", "", "TEMPORARY "), names, strict=True):
        stored.execute(f"CREATE {kind}TABLE {stored.quoted(name)} AS SELECT 1 AS mine")
    assert db.create(krp, "t", "f", form=form).rows == 40
    assert db.verify(krp, "t", form=form).ok
    assert [stored.rows(f"SELECT * FROM {stored.quoted(name)}") for name in names] == [[(1,)]] * 4


# --- fitting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_fit_reads_types_and_statistics_in_the_database(db, scaling):
    options = {"scaling": scaling, "nulls": "mean", "random_state": 0}
    krp = paper_krp(2, 3, **options).fit(db.source("t"), exclude=["id"])
    assert [*krp.left_out_] == ["name"]
    twin = paper_krp(2, 3, **options).fit(FRAME, exclude=["id"])
    assert krp.feature_names_in_.tolist() == COLUMNS
    assert krp.digest_ == twin.digest_
    prepare, columns = krp.program_.prepare, FRAME[COLUMNS]
    shift, spread = {
        "standard": (columns.mean(), columns.std(ddof=0)),
        "minmax": (columns.min(), columns.max() - columns.min()),
    }[scaling]
    # Means are rounded to as small a share of the deviations as these are of themselves.
    assert np.allclose(prepare.shift, shift, atol=1e-7 * columns.to_numpy().std())
    assert np.allclose(1 / prepare.scale, spread, rtol=1e-7)
    assert np.allclose(prepare.fill, columns.mean(), atol=1e-7 * columns.to_numpy().std())


# --- exporting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@every_form
def test_export_writes_the_features(db, krp, stored, tmp_path, suffix, form):
    path = tmp_path / f"it's f{suffix}"
    run = db.export(krp, "t", path, keep=["id"], form=form)
    assert run.rows == 40
    frame = pd.read_csv(path).sort_values("id")
    assert frame.columns.tolist() == ["id", *krp.get_feature_names_out()]
    assert frame["id"].tolist() == list(range(40))
    assert np.allclose(frame.iloc[:, 1:].to_numpy(), krp.transform(FRAME), rtol=1e-12)
    if suffix == ".csv.gz":
        assert gzip.decompress(path.read_bytes()).startswith(b"id,krp_0,")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert stored.objects() == ["t"]


def test_export_replaces_only_what_it_may(db, krp, stored, tmp_path):
    (tmp_path / "old.csv").write_text("precious")
    (tmp_path / "folder.csv").mkdir()
    for target, message in (
        ("old.csv", "exists already"),
        ("folder.csv", "is a folder"),
        ("f.xlsx", r"use .*\.csv"),
        ("no/f.csv", "there is no folder"),
        *([("f.parquet", r"use \.csv or \.csv\.gz")] if stored.name != "duckdb" else []),
    ):
        with pytest.raises((ParameterError, TargetExistsError), match=message):
            db.export(krp, "t", tmp_path / target)
    assert (tmp_path / "old.csv").read_text() == "precious"
    db.export(krp, "t", tmp_path / "old.csv", replace=True)
    assert len(pd.read_csv(tmp_path / "old.csv")) == 40
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder.csv", "old.csv"]


def test_exported_numbers_read_back_as_they_are(db, stored, tmp_path):
    krp = paper_krp(1, 3, n_terms=1, scaling="standard", random_state=0)
    krp.fit(db.source("t"), include=COLUMNS)
    db.create(krp, "t", "f", keep=["id"])
    db.export(krp, "t", tmp_path / "f.csv", keep=["id"])
    with (tmp_path / "f.csv").open() as file:
        found = np.array(list(csv.reader(file))[1:], dtype=float)
    exact = numbers(stored)
    assert np.array_equal(found[found[:, 0].argsort()], exact[exact[:, 0].argsort()])


def test_exported_rows_of_missing_features_are_empty(db, stored, tmp_path):
    stored.execute("UPDATE t SET c1 = NULL WHERE id = 1")
    krp = paper_krp(2, 3, nulls="propagate", random_state=0).fit(COLUMNS)
    db.export(krp, "t", tmp_path / "f.csv", keep=["id"])
    with (tmp_path / "f.csv").open() as file:
        rows = {row[0]: row[1:] for row in csv.reader(file)}
    assert rows["1"] == ["", "", ""]
    assert "" not in rows["2"]


# --- verifying ------------------------------------------------------------------------------------


def test_verify_compares_a_sample_and_leaves_nothing(db, krp, stored):
    assert db.verify(krp, "t", sample=7).rows == 7
    result = db.verify(krp, "t")
    assert (result.rows, result.ok) == (40, True)
    assert stored.objects() == ["t"]
    with pytest.raises(ParameterError, match="sample=0"):
        db.verify(krp, "t", sample=0)


@every_form
def test_verify_sees_one_flipped_sign_in_what_the_engine_is_sent(db, form, monkeypatch):
    krp = paper_krp(2, 5, s=1, n_terms=2, n_hyperplanes=4, random_state=0).fit(COLUMNS)
    assert db.verify(krp, "t", form=form).ok
    monkeypatch.setattr(sqlkrp.KRP, "query", flipped_query(krp))
    result = db.verify(krp, "t", form=form)
    assert not result.ok
    assert len(result.wrong) > 0
    assert result.worst(1)[0][2] > 1e-3


@every_form
def test_no_rows_are_not_verified(db, krp, stored, form):
    stored.execute("DELETE FROM t")
    result = db.verify(krp, "t", form=form)
    assert (result.rows, result.ok, result.wrong) == (0, False, [])
    assert db.create(krp, "t", "f", form=form).rows == 0


def test_a_database_that_may_only_be_read_is_verified_and_exported(stored, krp, tmp_path):
    stored.execute("CREATE TABLE u AS SELECT * FROM t")
    before = stored.objects()
    if stored.name == "postgres":
        stored.execute("SET default_transaction_read_only = on")
        db = stored.database
    else:
        stored.connection.close()
        db = sqlkrp.connect(stored.url, read_only=True)
    assert db.verify(krp, "t").ok
    assert db.export(krp, "t", tmp_path / "f.csv").rows == 40
    with pytest.raises(EngineError, match=r"read-?only|nothing can be created"):
        db.create(krp, "t", "f")
    if stored.name == "postgres":  # where even temporary tables are something written
        with pytest.raises(EngineError, match=r"wide form .* need none"):
            db.verify(krp, "t", form="tables")
    else:
        assert db.verify(krp, "t", form="tables").ok
        db.close()
    with type(stored).database_of(stored.url) as again:
        assert again.objects() == before


# --- sparse input ---------------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize("scaling", [None, "unit"])
def test_sparse_input_equals_the_wide_table(place, form, scaling):
    frame = dyadic(20, 6).where(np.random.default_rng(1).random((20, 6)) < 0.4, 0.0)
    frame.iloc[4] = 0.0
    long = frame.stack().rename("v").reset_index().set_axis(["r", "f", "v"], axis=1)
    place.store(long[long["v"] != 0], "entries")
    place.store(pd.DataFrame({"r": range(20), "label": [f"r{i}" for i in range(20)]}), "keys")
    krp = paper_krp(2, 5, n_terms=2, coef0=0.25, scaling=scaling, random_state=0).fit(frame)
    db, sparse = place.database, {"long": ("r", "f", "v"), "form": form}
    db.create(krp, "entries", "f", rows="keys", keep=["label"], **sparse)
    found = place.rows("SELECT * FROM f ORDER BY r")
    assert [row[:2] for row in found] == [(i, f"r{i}") for i in range(20)]
    values = np.array([row[2:] for row in found], dtype=float)
    assert np.allclose(values, krp.transform(frame), rtol=1e-12)
    db.create(krp, "entries", "g", **sparse)
    there = [row[0] for row in place.rows("SELECT r FROM g ORDER BY r")]
    assert there == [i for i in range(20) if frame.iloc[i].any()]
    whole = db.verify(krp, "entries", rows="keys", **sparse)
    assert (whole.rows, whole.form, whole.ok) == (20, form, True)
    assert db.verify(krp, "entries", sample=7, **sparse).rows == 7
    assert paper_krp(2, 3).fit(db.source("entries", long=("r", "f", "v"))).n_features_in_ == 6
    assert place.objects() == ["entries", "f", "g", "keys"]


# --- what an engine has not -----------------------------------------------------------------------


def test_what_cannot_be_lazy_says_what_can_and_leaves_nothing(db, krp, stored):
    if stored.name == "duckdb":
        assert len(db.relation(krp, "t").fetchall()) == 40
        return
    for form in FORMS:
        with pytest.raises(LimitError, match="no lazy relations: create a view"):
            db.relation(krp, "t", form=form)
        assert stored.objects() == ["t"]
        assert not stored.in_transaction()


def test_a_closed_connection_is_said_in_one_line(db, krp, stored):
    stored.connection.close()
    with pytest.raises((EngineError, ColumnError), match=r"(?i)clos") as error:
        db.create(krp, "t", "f")
    assert "\n" not in str(error.value)


# --- the command line -----------------------------------------------------------------------------


def test_every_command_works_by_url(run_cli, stored, tmp_path):
    stored.connection.close()
    source = (stored.url, "--table", "t")
    drawing = ("--components", 6, "--exclude", "id", "--seed", 0)
    assert "left out  name (" in run_cli("draw", *source, *drawing, "-o", "m.json").stdout
    krp = sqlkrp.load(tmp_path / "m.json")
    options = ("m.json", "--db", stored.url, "--table", "t", "--keep", "id")
    made = run_cli("run", *options, "--into", "f").stdout
    assert "created  f: 40 rows, 7 columns, wide form" in made
    assert "a view, 7 columns" in run_cli("run", *options, "--into", "v", "--view").stdout
    run_cli("run", *options, "--into", "g", "--form", "tables")
    assert "exists already" in run_cli("run", *options, "--into", "g", code=2).stderr
    run_cli("run", *options, "--into", "g", "--form", "tables", "--replace")
    assert "40 rows" in run_cli("export", *options, "--to", "f.csv.gz").stdout
    with gzip.open(tmp_path / "f.csv.gz", "rt") as file:
        assert len(file.readlines()) == 41
    piped = run_cli("export", *options, "--to", "-").stdout
    assert (piped.partition(",")[0], piped.count("\n")) == ("id", 41)
    verified = run_cli("verify", *options[:5], "--form", "tables").stdout
    assert "equal to the NumPy twin" in verified
    run_cli("featurize", *source, *drawing, "--to", "h.csv", "--keep", "id")
    assert (tmp_path / "h.map.json").exists()
    text = run_cli("sql", "m.json", "--table", "t", "--dialect", stored.name).stdout
    with type(stored).database_of(stored.url) as again:
        assert again.objects() == ["f", "g", "t", "v"]
        for found in (
            [row[1:] for row in again.rows("SELECT * FROM f")],
            [row[1:] for row in again.rows("SELECT * FROM v")],
            [row[1:] for row in again.rows("SELECT * FROM g ORDER BY id")],
            again.rows(text.rstrip().removesuffix(";")),
        ):
            assert np.allclose(np.array(found, dtype=float), krp.transform(FRAME), rtol=1e-12)


# --- random cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 330), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_random_maps_of_hostile_tables_equal_numpy(engine, seeds):
    seeds = seeds[: engine.most_cases]
    (found,) = campaign.failures([engine], seeds)
    assert not found.told, "\n".join(found.told)
    # The rest has no room, and says so.
    assert found.compared >= 0.9 * len(forms_of(engine.name)) * len(seeds)
