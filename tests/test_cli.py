"""Every command as a user types it."""

import argparse
import gzip
import inspect
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from support import FORMS, dyadic, flipped_query, paper_krp, read_table, store

import sqlkrp
from sqlkrp.cli import COMMANDS, main, parser
from sqlkrp.maps import MAPS
from sqlkrp.options import MAP_OPTIONS
from sqlkrp.sql.tables import STEPS
from sqlkrp.verification import compare

DIGITS = Path(__file__).parents[1] / "examples" / "digits.csv"


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A database and a map drawn for it, made once: to copy files takes less time."""
    folder = tmp_path_factory.mktemp("originals")
    with duckdb.connect(str(folder / "w.duckdb")) as connection:
        store(connection, dyadic(50, 6).assign(id=range(50), name="n"))
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        draw = "draw w.duckdb --table t --exclude id --components 8 --pool achlioptas -o m.json"
        assert main(draw.split()) == 0
    return folder


@pytest.fixture
def warehouse(originals, tmp_path):
    return Path(shutil.copy(originals / "w.duckdb", tmp_path))


@pytest.fixture
def drawn(warehouse, originals, tmp_path):
    return Path(shutil.copy(originals / "m.json", tmp_path))


def test_featurize_does_it_all_in_one_go(run_installed, tmp_path):
    done = run_installed(
        "featurize", DIGITS, "--label", "label", "--components", 16, "--to", "features.csv",
    )  # fmt: skip
    frame = pd.read_csv(tmp_path / "features.csv")
    assert frame.columns.tolist() == ["label", *(f"krp_{i}" for i in range(16))]
    digits = pd.read_csv(DIGITS)
    assert frame["label"].tolist() == digits["label"].tolist()
    krp = sqlkrp.load(tmp_path / "features.map.json")
    assert np.allclose(frame.iloc[:, 1:], krp.transform(digits), rtol=1e-9)
    for told in (
        "features.csv: 1,797 rows of label + 16 columns",
        "features.map.json (digest " + krp.digest_[:12],
        f"seed {krp.seed_}",
        "64: pixel_0_0, pixel_0_1, ",
        "none (columns are of one unit)",
        "(1 over the total variance of 64 columns)",
        "256 (hadamard)",
        f"{krp.statement('t').plan.additions:,} additions",
        "seconds",
    ):
        assert told in done.stdout
    # Pixels at the margin, which are 0 in every row.
    assert done.stderr.splitlines() == [
        "sqlkrp: warning: columns 'pixel_0_0', 'pixel_4_0', 'pixel_4_7' are constant, which tells "
        "a model nothing"
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["features.csv", "features.map.json"]


def test_featurize_does_not_overwrite_before_or_after_the_work(run_cli, tmp_path):
    sqlkrp.KRP(2, 3, random_state=0).fit(["a", "b"]).save(tmp_path / "f.map.json")
    done = run_cli("featurize", DIGITS, "--components", 4, "--to", "f.csv", code=2)
    assert "'f.map.json' exists already" in done.stderr
    assert not (tmp_path / "f.csv").exists()
    done = run_cli("featurize", "nowhere.csv", "--to", "f.csv", code=2)
    assert "'f.map.json' exists already" in done.stderr  # before anything is read
    run_cli("featurize", DIGITS, "--components", 4, "--to", "f.csv", "--replace")
    assert sqlkrp.load(tmp_path / "f.map.json").n_components == 4


def test_a_map_is_used_again_in_place_of_drawing_another(run_cli, tmp_path):
    # Scaled by other means: only the map of the first file gives what a model of it can read.
    train, test = dyadic(40, 5), dyadic(30, 5, seed=1) * 3
    train.to_csv(tmp_path / "train.csv", index=False)
    test.assign(id=range(30)).to_csv(tmp_path / "test.csv", index=False)
    options = ("--components", 8, "--scaling", "standard")
    told = run_cli("featurize", "train.csv", *options, "--to", "f.csv").stdout.splitlines()[-1]
    assert told.split(None, 1) == ["again", "sqlkrp featurize NEW --use f.map.json --to ..."]
    before = (tmp_path / "f.map.json").read_bytes()
    command = ["test.csv" if word == "NEW" else word for word in told.split()[2:-1]]
    done = run_cli(*command, "g.csv", "--keep", "id")
    krp = sqlkrp.load(tmp_path / "f.map.json")
    found = pd.read_csv(tmp_path / "g.csv")
    assert np.allclose(found.iloc[:, 1:], krp.transform(test), rtol=1e-9)
    assert f"f.map.json (digest {krp.digest_[:12]}, seed 0)" in done.stdout
    assert done.stdout.splitlines()[-1].split() == told.split()
    assert done.stderr == ""
    names = ["f.csv", "f.map.json", "g.csv", "test.csv", "train.csv"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    assert (tmp_path / "f.map.json").read_bytes() == before
    piped = run_cli("featurize", "test.csv", "--use", "f.map.json", "--to", "-")
    assert np.allclose(pd.read_csv(io.StringIO(piped.stdout)), krp.transform(test), rtol=1e-9)


def test_a_map_that_is_used_again_is_not_drawn_otherwise(run_cli, drawn, tmp_path):
    use = ("featurize", "w.duckdb", "--table", "t", "--use", "m.json", "--to", "f.csv")
    for options in (
        ("--map", "krp"), ("--degree", 2), ("--seed", 0), ("--ensemble", 2), ("--binary",),
        ("--exclude", "id"), ("--include", "c0"), ("--map-file", "n.json"), ("--replace-map",),
    ):  # fmt: skip
        refused = run_cli(*use, *options, code=2).stderr
        assert refused == (f"sqlkrp: --use takes a map as it was drawn: leave out {options[0]}\n")
    assert not (tmp_path / "f.csv").exists()
    missing = run_cli(*use[:-3], "none.json", *use[-2:], code=2).stderr
    assert "cannot read the map 'none.json'" in missing


def test_another_map_of_the_same_columns_is_pointed_at(run_cli, tmp_path):
    dyadic(40, 5).to_csv(tmp_path / "train.csv", index=False)
    (dyadic(30, 5, seed=1) * 3).to_csv(tmp_path / "test.csv", index=False)
    dyadic(30, 4).to_csv(tmp_path / "other.csv", index=False)
    (tmp_path / "bad.map.json").write_text('{"format": "sqlkrp map", "format_version": 1')
    (tmp_path / "dir.map.json").mkdir()
    os.mkfifo(tmp_path / "fifo.map.json")
    options = ("--components", 8, "--scaling", "standard")

    def told(*arguments):
        return run_cli(*arguments, *options).stderr

    assert told("featurize", "train.csv", "--to", "a.csv") == ""
    again = "sqlkrp featurize NEW --use a.map.json --to ..."
    for command in (
        ("featurize", "test.csv", "--to", "b.csv"), ("draw", "test.csv", "-o", "c.json"),
    ):  # fmt: skip
        (line,) = told(*command).splitlines()
        assert line.startswith("sqlkrp: warning: 'a.map.json' is a map of the same columns")
        assert again in line
    (tmp_path / "b.map.json").unlink()
    # The same map once more, other columns, its own file, and one who wants no words.
    assert told("featurize", "train.csv", "--to", "d.csv") == ""
    assert told("featurize", "other.csv", "--to", "e.csv") == ""
    (tmp_path / "d.map.json").unlink()
    assert told("featurize", "test.csv", "--to", "a.csv", "--replace") == ""
    assert told("draw", "train.csv", "-o", "q.json", "-q") == ""


def test_the_same_command_draws_the_same_map_unless_it_is_told_not_to(run_cli, tmp_path):
    texts = []
    for i, seed in enumerate([(), ("--seed", 0), ("--seed", "random"), ("--seed", "random")]):
        done = run_cli("draw", DIGITS, "--components", 4, *seed, "-o", f"{i}.json")
        texts.append((tmp_path / f"{i}.json").read_text())
        fitted = sqlkrp.load(tmp_path / f"{i}.json")
        assert fitted.random_state == (None if "random" in seed else 0)
        assert f"seed {fitted.seed_})" in done.stdout
    assert texts[0] == texts[1]
    assert len({*texts}) == 3
    assert (
        "'x' is neither a number nor 'random'"
        in run_cli("draw", DIGITS, "--seed", "x", "-o", "n.json", code=2).stderr
    )


@pytest.mark.parametrize("command", ["featurize", "draw"])
def test_a_map_that_a_model_may_need_is_not_replaced_in_passing(run_cli, tmp_path, command):
    frame = dyadic(40, 5)
    frame.to_csv(tmp_path / "t.csv", index=False)
    (frame * 3).to_csv(tmp_path / "u.csv", index=False)
    options = ("--components", 4, "--scaling", "standard", "--seed", 1)
    krp = sqlkrp.KRP(2, 4, scaling="standard", random_state=1).fit(frame)
    krp.save(tmp_path / "m.json")
    trained = (tmp_path / "m.json").read_bytes()

    def run(source, *more, code=0):
        target = ("-o",) if command == "draw" else ("--to", "f.csv", "--replace", "--map-file")
        return run_cli(command, source, *options, *more, *target, "m.json", code=code)

    for other in (("t.csv", "--seed", 2), ("t.csv", "--degree", 3), ("u.csv",)):
        refused = run(*other, code=2).stderr
        assert "'m.json' holds another map" in refused
        assert "--replace-map" in refused
        assert "--use" in refused
        assert not (tmp_path / "f.csv").exists()
    assert (tmp_path / "m.json").read_bytes() == trained
    # Statistics of an engine, whose last bits may be others: the map that is there computes.
    done = run("t.csv")
    assert krp.digest_[:12] in done.stdout
    assert (tmp_path / "m.json").read_bytes() == trained
    run("u.csv", "--replace-map")
    assert sqlkrp.load(tmp_path / "m.json").program_.prepare.scale == pytest.approx(
        krp.program_.prepare.scale / 3
    )
    (tmp_path / "m.json").write_text("a thesis")
    assert "'m.json' exists already" in run("t.csv", code=2).stderr
    assert (tmp_path / "m.json").read_text() == "a thesis"


@pytest.mark.parametrize("option", ["--replace", "--force"])
def test_draw_replaces_no_map_in_passing(run_cli, tmp_path, option):
    done = run_cli("draw", DIGITS, "-o", "m.json", option, code=2)
    assert done.stderr.startswith(f"sqlkrp: {option} is for features")
    assert "give --replace-map" in done.stderr
    assert f"{option} " not in run_cli("draw", "--help").stdout


def test_force_is_replace_by_its_earlier_name(run_cli, tmp_path):
    (tmp_path / "f.csv").write_text("of old")
    run_cli("featurize", DIGITS, "--components", 4, "--to", "f.csv", "--force")
    assert "of old" not in (tmp_path / "f.csv").read_text()
    assert "--force" not in run_cli("featurize", "--help").stdout


def test_features_on_standard_output_are_not_mixed_with_words(run_cli, tmp_path):
    done = run_cli("featurize", DIGITS, "--components", 4, "--keep", "label", "--to", "-")
    frame = pd.read_csv(io.StringIO(done.stdout))
    assert frame.shape == (1797, 5)
    assert "not saved (give --map-file FILE)" in done.stderr
    assert list(tmp_path.iterdir()) == []
    quiet = run_cli(
        "featurize", DIGITS, "--components", 4, "--to", "-", "-q", "--map-file", "m.json"
    )
    assert quiet.stderr == ""
    assert (tmp_path / "m.json").exists()


# As on systems on which a pipe has no name.
WITHOUT_PIPES = """
import sys
from sqlkrp.engines import duckdb_writing
duckdb_writing._HAS_PIPES = False
from sqlkrp.cli import main
sys.exit(main())
"""


def test_standard_output_needs_no_names_of_pipes(run_cli, monkeypatch, tmp_path):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    arguments = ("featurize", DIGITS, "--components", 4, "--keep", "label", "--to", "-", "-q")
    piped = run_cli(*arguments).stdout
    monkeypatch.setattr("sqlkrp.engines.duckdb_writing._HAS_PIPES", False)
    assert run_cli(*arguments).stdout == piped
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("program", ["-m sqlkrp", f"-c {shlex.quote(WITHOUT_PIPES)}"])
def test_a_reader_that_goes_away_is_no_error(tmp_path, program):
    options = "--to - --components 500 -q"
    command = f"{sys.executable} {program} featurize {DIGITS} {options} | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.startswith("krp_0,krp_1,")
    assert done.stderr == ""


def test_standard_output_keeps_what_it_was_redirected_to(run_cli, drawn, tmp_path):
    target = tmp_path / "all.csv"
    target.write_text("HEADER\n")
    command = f"{sys.executable} -m sqlkrp export m.json --db w.duckdb --table t --to - -q"
    script = f"({command}; echo MIDDLE; {command}) >> all.csv"
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True)
    lines = target.read_text().splitlines()
    assert (lines[0], lines[52], len(lines)) == ("HEADER", "MIDDLE", 104)


def test_featurize_writes_the_features_and_the_map_or_neither(run_cli, tmp_path):
    for options in (
        ("--map-file", "no/m.json"),
        ("--map-file", "f.csv", "--replace", "--replace-map"),
        ("--map-file", "."),
    ):
        run_cli("featurize", DIGITS, "--components", 4, "--to", "f.csv", *options, code=2)
        assert list(tmp_path.iterdir()) == []


def test_the_report_counts_what_was_written(run_cli, tmp_path):
    done = run_cli(
        "featurize",
        DIGITS,
        "--keep",
        "label",
        "--keep",
        "label",
        "--components",
        1,
        "--to",
        "f.csv",
    )
    assert "rows of label + 1 column krp_0\n" in done.stdout


def test_draw_reads_names_and_types_only_if_told_so(run_cli, tmp_path, warehouse):
    source = ("w.duckdb", "--table", "t", "--scaling", "none", "--gamma", 1)
    run_cli("draw", *source, "-o", "a.json")
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("DELETE FROM t")
    done = run_cli("draw", *source, "-o", "b.json")
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
    assert "left out  name (VARCHAR)" in done.stdout


def test_every_drawing_option_reaches_the_map(run_cli, tmp_path):
    run_cli(
        "draw", DIGITS, "-o", "m.json", "--degree", 3, "--components", 7, "--terms", 2, "--pool",
        "hadamard", "--hyperplanes", 256, "--sparsity", 2, "--block-size", 16, "--coef0", 0.5,
        "--gamma", 2, "--seed", 9, "--dtype", "float32", "--nulls", "mean", "--scaling", "minmax",
        "--clip", 2.5, "--include", "pixel_0_1", "--include", "pixel_7_0", "--include", "pixel_4_4",
    )  # fmt: skip
    assert sqlkrp.load(tmp_path / "m.json").get_params() == {
        "degree": 3, "n_components": 7, "n_terms": 2, "pool": "hadamard", "n_hyperplanes": 256,
        "s": 2, "block_size": 16, "coef0": 0.5, "gamma": 2, "random_state": 9, "dtype": "float32",
        "nulls": "mean", "scaling": "minmax", "clip": 2.5,
    }  # fmt: skip


OPTIONS = {
    "krp": (),
    "complex-krp": ("--components", 6, "--degree", 5, "--block-size", 8),
    "random-projection": ("--components", 6, "--pool", "hadamard"),
    "monomials": ("--degree", 2, "--coef0", 1),
    "explicit-rp": ("--components", 6, "--degree", 2, "--coef0", 1),
    "prp": ("--components", 6, "--matrices", 4),
    "random-maclaurin": ("--components", 6, "--kernel", "exponential", "--gamma", 0.001),
    "tensor-sketch": ("--components", 6, "--domain", "bucket"),
    "rank-one": ("--components", 6, "--binary"),
    "random-fourier": ("--components", 6, "--paired", "--gamma", 0.001),
    "sorf": ("--components", 6, "--gamma", 0.001),
    "spherical": ("--components", 6, "--a", 3),
    "nystroem": ("--components", 6, "--kernel", "linear"),
    "kgrp": ("--components", 6, "--landmarks", 20, "--marked", 5),
    "pca": ("--components", 6, "--scaling", "standard"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_every_map_on_the_command_line(run_cli, tmp_path, name):
    dyadic(60, 8).assign(label=0).to_csv(tmp_path / "t.csv", index=False)
    run_cli("draw", "t.csv", "-o", "m.json", "--map", name, "--exclude", "label", *OPTIONS[name])
    one = sqlkrp.load(tmp_path / "m.json")
    assert type(one) is MAPS[name]
    told = run_cli("inspect", "m.json").stdout
    assert f"{type(one).__name__}(" in told
    assert "equal to the NumPy twin" in run_cli("verify", "m.json", "--file", "t.csv").stdout


def test_ensembles_and_wrong_options_on_the_command_line(run_cli, tmp_path):
    options = ("--map", "sorf", "--components", 4, "--ensemble", 3, "--seed", 1)
    run_cli("featurize", DIGITS, *options, "--to", "f.csv", "--map-file", "m.json")
    header = (tmp_path / "f.csv").read_text().partition("\n")[0].split(",")
    assert header == [f"sorf_{member}_{i}" for member in range(3) for i in range(4)]
    assert type(sqlkrp.load(tmp_path / "m.json")).__name__ == "Ensemble"
    wrong = run_cli("draw", DIGITS, "-o", "n.json", "--map", "pca", "--degree", 2, code=2).stderr
    assert wrong == (
        "sqlkrp: --map pca has no --degree: leave it out; it has --components, --scaling, "
        "--clip, --nulls, --dtype\n"
    )
    assert "invalid choice" in run_cli("draw", DIGITS, "-o", "n.json", "--map", "x", code=2).stderr


def test_a_column_that_is_kept_and_read_is_named(run_cli, warehouse, drawn):
    options = ("--db", "w.duckdb", "--table", "t")
    done = run_cli("run", "m.json", *options, "--into", "f", "--keep", "id", "--keep", "c1")
    assert "note     column 'c1': kept, and read by the map as well" in done.stdout
    assert "note" not in run_cli("run", "m.json", *options, "--into", "g", "--keep", "id").stdout


def test_a_label_is_kept_by_each_command_that_finds_it(run_cli, warehouse, tmp_path):
    run_cli("draw", "w.duckdb", "--table", "t", "--label", "c2", "--components", 3, "-o", "l.json")
    run_cli("run", "l.json", "--db", "w.duckdb", "--table", "t", "--into", "f")
    run_cli("export", "l.json", "--db", "w.duckdb", "--table", "t", "--to", "f.csv")
    with duckdb.connect(str(warehouse)) as connection:
        made = [row[0] for row in connection.execute("DESCRIBE f").fetchall()]
    assert made == pd.read_csv(tmp_path / "f.csv").columns.tolist()
    assert made == ["c2", "krp_0", "krp_1", "krp_2"]
    told = run_cli(
        "draw", "w.duckdb", "--table", "t", "--label", "c3", "--components", 3, "-o", "l.json",
        code=2,
    ).stderr  # fmt: skip
    assert "'l.json' holds another map" in told


@pytest.mark.parametrize("form", FORMS)
def test_printed_sql_runs_in_the_database(run_cli, warehouse, drawn, tmp_path, form):
    done = run_cli("sql", "m.json", "--table", "main.t", "--keep", "id", "--form", form)
    assert done.stderr == ""
    krp = sqlkrp.load(drawn)
    assert done.stdout == krp.to_sql("main.t", keep=["id"], form=form) + ";\n"
    run_cli("tables", "m.json", "-o", "side")
    with duckdb.connect(str(warehouse)) as connection:
        load = (tmp_path / "side" / "load.sql").read_text()
        connection.execute(load.replace("FROM '", f"FROM '{tmp_path}/side/"))
        found = connection.execute(done.stdout).df().iloc[:, 1:].to_numpy()
        frame = connection.table("t").df()
    assert np.allclose(found, krp.transform(frame), rtol=1e-12)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_are_the_map_s_and_replace_only_their_own(run_cli, drawn, tmp_path, suffix):
    run_cli("tables", "m.json", "-o", "side", "--format", suffix)
    krp = sqlkrp.load(drawn)
    prefix = krp.digest_[:12]
    names = [
        f"{prefix}_{name}.{suffix}" for name in ("columns", "components", "hyperplanes", "pool")
    ]
    assert sorted(p.name for p in (tmp_path / "side").iterdir()) == sorted([*names, "load.sql"])
    hyperplanes = read_table(tmp_path / "side" / names[2])
    stage = krp.program_.stages[1]
    for column, values in STEPS[type(stage)].tables(stage)["hyperplanes"].items():
        assert hyperplanes[column].tolist() == values.tolist()
    assert "exists already" in run_cli("tables", "m.json", "-o", "side", code=2).stderr
    run_cli("tables", "m.json", "-o", "side", "--replace")
    (tmp_path / "side" / "thesis.tex").write_text("precious")
    assert "'thesis.tex'" in run_cli("tables", "m.json", "-o", "side", "--replace", code=2).stderr
    assert (tmp_path / "side" / "thesis.tex").read_text() == "precious"


def test_run_creates_tables_and_views(run_cli, warehouse, drawn):
    options = ("m.json", "--db", "w.duckdb", "--table", "t", "--keep", "id")
    assert (
        "created  f: 50 rows, 9 columns, wide form"
        in run_cli("run", *options, "--into", "f").stdout
    )
    assert "exists already" in run_cli("run", *options, "--into", "f", code=2).stderr
    run_cli("run", *options, "--into", "f", "--replace", "--form", "tables", "--output", "array")
    assert "a view" in run_cli("run", *options, "--into", "v", "--view").stdout
    with duckdb.connect(str(warehouse)) as connection:
        arrays = connection.execute("SELECT krp FROM f").fetchnumpy()["krp"]
        columns = connection.execute("SELECT * EXCLUDE (id) FROM v").fetchall()
        assert np.allclose(np.array(arrays.tolist()), columns, rtol=1e-12)
        names = [row[0] for row in connection.execute("SHOW ALL TABLES").fetchall()]
        assert len(names) == 3


def test_rows_are_added_and_replaced_on_the_command_line(
    run_cli, warehouse, drawn, model_file, tmp_path
):
    at = ("--db", "w.duckdb", "--table", "t", "--key", "id")
    told = run_cli("run", "m.json", *at, "--into", "f", "--append", "--limit", 20).stdout
    assert "added to  f: 20 rows, 9 columns" in told
    assert "added to  f: 30 rows" in run_cli("run", "m.json", *at, "--into", "f", "--append").stdout
    told = run_cli("run", "m.json", *at, "--into", "f", "--upsert").stdout
    assert "updated  f: 50 rows, 50 of them in place of old ones" in told
    told = run_cli("score", model_file, *at, "--into", "s", "--append").stdout
    assert "added to  s: 50 rows of label, decision" in told
    assert "updated" in run_cli("score", model_file, *at, "--into", "s", "--upsert").stdout
    run_cli("export", "m.json", *at[:4], "--to", "look.csv", "--limit", 3)
    assert len(read_table(tmp_path / "look.csv")) == 3
    for more, message in (
        (["--append", "--replace"], "--replace and --append are both given"),
        (["--limit", "0", "--append"], "--limit 0"),
        ([], "give --append or --upsert, too"),
        (["--append", "--keep", "name"], "do not have the same columns: 'name'"),
    ):
        assert message in run_cli("run", "m.json", *at, "--into", "f", *more, code=2).stderr
    asked = ("run", "m.json", *at[:4], "--into", "f", "--upsert")
    assert "(--key NAME)" in run_cli(*asked, code=2).stderr
    asked = ("export", "m.json", *at[:4], "--to", "x.csv", "--append")
    assert "no files that are appended to" in run_cli(*asked, code=2).stderr


@pytest.mark.parametrize("target", ["f.csv", "f.csv.gz", "f.parquet"])
def test_export_from_a_database_and_from_a_file(run_cli, warehouse, drawn, tmp_path, target):
    run_cli("export", "m.json", "--db", "w.duckdb", "--table", "t", "--keep", "id", "--to", target)
    first = read_table(tmp_path / target)
    assert first["id"].tolist() == list(range(50))
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute(f"COPY t TO '{tmp_path}/t.parquet'")
    options = ("--file", "t.parquet", "--keep", "id", "--to", target)
    assert "--replace" in run_cli("export", "m.json", *options, code=2).stderr
    run_cli("export", "m.json", *options, "--replace")
    assert read_table(tmp_path / target).equals(first)
    if target.endswith("gz"):
        assert gzip.decompress((tmp_path / target).read_bytes()).startswith(b"id,krp_0,")


def test_sparse_input_on_the_command_line(run_cli, tmp_path):
    frame = dyadic(12, 5)
    long = frame.stack().rename("value").reset_index()
    long.columns = ["row", "feature", "value"]
    long.to_csv(tmp_path / "long.csv", index=False)
    rows = pd.DataFrame({"row": range(14), "label": range(14)})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    sparse = ("--long", "row,feature,value", "--rows", "rows.csv")
    run_cli(
        "featurize",
        "long.csv",
        *sparse,
        "--label",
        "label",
        "--components",
        6,
        "--coef0",
        0,
        "--to",
        "f.csv",
    )
    found = pd.read_csv(tmp_path / "f.csv")
    assert found.columns.tolist()[:2] == ["row", "label"]
    krp = sqlkrp.load(tmp_path / "f.map.json")
    assert np.allclose(found.iloc[:12, 2:], krp.transform(frame), rtol=1e-12)
    assert (found.iloc[12:, 2:] == 0).all(axis=None)
    assert (
        "equal to the NumPy twin"
        in run_cli("verify", "f.map.json", "--file", "long.csv", *sparse).stdout
    )


def test_verify_says_what_it_compared(run_cli, warehouse, drawn):
    options = ("m.json", "--db", "w.duckdb", "--table", "t")
    done = run_cli("verify", *options, "--sample", 20, "--form", "tables")
    assert "krp_7" in done.stdout
    assert "on 20 rows, tables form" in done.stdout
    assert run_cli("verify", *options, "-q").stdout == ""
    assert run_cli("verify", *options, "--all", "--tolerance", 1e-6).stdout.count("krp_") == 8


def test_verify_exits_1_when_the_engine_is_wrong(warehouse, tmp_path, monkeypatch, capsys):
    drawn = tmp_path / "s1.json"  # s=1: no factor is zero, so that every sign matters
    paper_krp(2, 8, s=1).fit([f"c{i}" for i in range(6)]).save(drawn)
    options = ["verify", str(drawn), "--db", str(warehouse), "--table", "t"]
    assert main(options) == 0
    monkeypatch.setattr(sqlkrp.KRP, "query", flipped_query(sqlkrp.load(drawn)))
    capsys.readouterr()
    assert main(options) == 1
    assert "NOT equal: " in capsys.readouterr().out


def test_one_of_a_thing_is_told_in_the_singular(run_cli, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a\n1\n2\n4\n")
    draw = ("draw", "t.csv", "--components", 1, "--scaling", "standard", "-o", "m.json")
    assert "0 of 1 column has values beyond" in run_cli(*draw).stdout
    verify = ("verify", "m.json", "--file", "t.csv", "--sample", 1)
    assert "on 1 row, " in run_cli(*verify).stdout
    wrong = ("draw", "t.csv", "--map", "pca", "--components", 2, "-o", "n.json")
    assert "more than the 1 column given: use 1 or fewer" in run_cli(*wrong, code=2).stderr
    monkeypatch.setattr("sqlkrp.engines.verifying.compare", one_wrong)
    assert "NOT equal: 1 of 1 feature is wrong" in run_cli(*verify, code=1).stdout


def one_wrong(program, inputs, found, *others):
    """In place of ``compare``: it is given features that are off by one."""
    return compare(program, inputs, found + 1, *others)


def test_verify_of_no_rows_says_so_and_fails(run_cli, warehouse, drawn):
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("DELETE FROM t")
    done = run_cli("verify", "m.json", "--db", "w.duckdb", "--table", "t", code=1)
    assert done.stdout.startswith("nothing was compared: there are no rows")
    assert "equal" not in done.stdout


def test_inspect_tells_all(run_cli, drawn):
    krp = sqlkrp.load(drawn)
    done = run_cli("inspect", "m.json")
    assert krp.digest_ in done.stdout
    known = json.loads(run_cli("inspect", "m.json", "--json").stdout)
    assert known["digest"] == krp.digest_
    assert known["columns"] == krp.feature_names_in_.tolist()
    assert known["additions_a_row"] == krp.program_.cost.additions
    assert known["hyperplanes"] == 1000
    all_zero = set(range(1000)) - set(krp.program_.stages[1].output.tolist())
    assert known["all_zero_hyperplanes"] == len(all_zero) > 0
    assert known["taken"]["gamma"]["because"] == "1 over the total variance of 6 columns"
    assert known["form"] == "wide"
    assert known["sizes"]["bytes"]["found"] == len(krp.to_sql("source_table").encode())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["featurise"], "invalid choice"),
        (["featurize"], "required: SOURCE, --to"),
        (["featurize", "x.csv", "--to", "f.csv"], "cannot read x.csv"),
        (["featurize", "x.txt", "--to", "f.csv"], "use one of .csv"),
        (["featurize", DIGITS, "--to", "f.txt"], "use one of .csv, .csv.gz, .parquet"),
        (["featurize", DIGITS, "--to", "no/f.csv"], "there is no folder"),
        (["featurize", DIGITS, "--to", "f.csv", "--degree", "two"], "invalid int value: 'two'"),
        (["featurize", DIGITS, "--to", "f.csv", "--degree", "0"], "--degree 0 is not allowed: use"),
        (["featurize", DIGITS, "--to", "f.csv", "--pool", "x"], "--pool x is not allowed"),
        (["featurize", DIGITS, "--to", "f.csv", "--hyperplanes", "x"], "--hyperplanes"),
        (["featurize", DIGITS, "--to", "f.csv", "--hyperplanes", "9"], "use 256 or more"),
        (["featurize", DIGITS, "--to", "f.csv", "--exclude", "lable"], "did you mean 'label'?"),
        (["featurize", DIGITS, "--to", "f.csv", "--table", "t"], "--table belongs to a database"),
        (["featurize", DIGITS, "--to", "f.csv", "--long", "a,b"], "name three columns"),
        (["featurize", DIGITS, "--to", "f.csv", "--long", "a,b,c"], "column 'a'"),
        (["featurize", DIGITS, "--to", "f.csv", "--rows", "r"], "belongs to (row, feature, value)"),
        (["featurize", DIGITS, "--to", "f.csv", "--memory-limit", "much"],
         "--memory-limit much is not allowed: use an amount with its unit, such as 4GB"),
        (["featurize", DIGITS, "--to", "f.csv", "--threads", "0"],
         "--threads 0 is not allowed: use a whole number >= 1"),
        (["featurize", "w.duckdb", "--to", "f.csv"], "give --table NAME"),
        (["featurize", "none.duckdb", "--table", "t", "--to", "f.csv"], "there is no database"),
        (["inspect", "none.json"], "No such file"),
        (["inspect", DIGITS], "not valid JSON"),
        (["sql", "m.json", "--table", "t; DROP TABLE t"], "is no table name"),
        (["sql", "m.json", "--table", "t", "--dialect", "klingon"], "invalid choice: 'klingon'"),
        (["sql", "m.json", "--table", "t", "--keep", "krp_1"], "output column 'krp_1'"),
        (["run", "m.json", "--table", "t", "--into", "f"], "name a database"),
        (["run", "m.json", "--db", "w.duckdb", "--table", "s", "--into", "f"], "cannot read s"),
        (["run", "m.json", "--db", "w.duckdb", "--table", "t", "--into", "t", "--replace"],
         "is read by this"),
        (["verify", "m.json", "--db", "w.duckdb", "--table", "t", "--sample", "0"], "--sample 0"),
        (["export", "m.json", "--to", "f.csv"], "name a database"),
        (["export", "m.json", "--db", "w.duckdb", "--file", DIGITS, "--to", "f.csv"], "one source"),
        (["sql", "m.json", "--table", "t", "--rows", "k"], "belongs to (row, feature, value)"),
        (["draw", DIGITS, "-o", "x" * 300 + ".json"], "File name too long"),
        (["draw", DIGITS, "-o", "/proc/x.json"], "the folder '/proc' cannot be written to"),
        (["featurize", DIGITS, "--to", "/proc/x.csv"], "the folder '/proc' cannot be written to"),
        (["tables", "m.json", "-o", "/proc/x"], "the folder '/proc' cannot be written to"),
        (["draw", "mysql://me:secret@x/y", "--table", "t", "-o", "n.json"],
         "no engine here is reached by mysql://"),
        (["draw", "../", "-o", "n.json"], "is a folder: name a file in it"),
        (["draw", "..", "--table", "t", "-o", "n.json"], "is a folder: name a file in it"),
        (["draw", DIGITS, "-o", "n.json", "--components", "1" + "0" * 14], "number <= 10000000"),
        (["draw", DIGITS, "-o", "n.json", "--degree", "1000", "--components", "4"], "range of"),
        (["featurize", DIGITS, "--to", "f.csv", "--hyperplanes", "x"], "'x' is neither a number"),
    ],
)  # fmt: skip
def test_errors_are_one_line_that_helps(run_cli, drawn, tmp_path, arguments, message):
    before = sorted(p.name for p in tmp_path.iterdir())
    done = run_cli(*arguments, code=2)
    assert done.stderr.startswith("sqlkrp: ")
    assert message in done.stderr
    assert done.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("draw", "--columns", "a", "-o"),
        ("draw", DIGITS, "-o"),
        ("tables", "m.json", "-o"),
        ("featurize", DIGITS, "--to", "f.csv", "--map-file"),
        ("featurize", DIGITS, "--to", "f.csv", "--use"),
        ("featurize", "--to", "f.csv"),
        ("export", "m.json", "--to", "f.csv", "--file"),
        ("inspect",),
    ],
)
def test_an_empty_name_is_refused_and_only_features_go_to_standard_output(
    run_cli, drawn, tmp_path, arguments
):
    before = sorted(tmp_path.iterdir())
    assert "the name is empty: give one" in run_cli(*arguments, "", code=2).stderr
    if arguments[-1] in ("-o", "--map-file"):
        assert "not written to standard output" in run_cli(*arguments, "-", code=2).stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("featurize a.csv --to f.csv --component 3", "--component 3 (did you mean --components?)"),
        ("featurize a.csv --to f.csv --landmark=3", "--landmark=3 (did you mean --landmarks?)"),
        ("featurize a.csv b.csv --to f.csv", "b.csv"),
        ("maps --krp", "--krp"),
    ],
)
def test_a_misspelt_option_is_told_by_its_command(run_cli, command, told):
    done = run_cli(*command.split(), code=2)
    name = command.partition(" ")[0]
    assert done.stderr == f"sqlkrp: unrecognized arguments: {told}; see 'sqlkrp {name} --help'\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "'t.csv' is empty"),
        ("a,b\n", "there are 'a' (VARCHAR), 'b' (VARCHAR)"),
        ("id,a\nx,u\ny,v\n", "there are 'id' (VARCHAR), 'a' (VARCHAR)"),
        ("a,b\n1,2\n3,4,5\nx\n", "there is 'a,b' (VARCHAR)"),
        ("key,a\n1,u\n2,v\n", "there are 'key' (kept), 'a' (VARCHAR)"),
        (",".join(f"c{i}" for i in range(12)) + "\n", "'c9' (VARCHAR) and 2 more"),
        ("x" * 5000 + ",y\n", "xxx...' (VARCHAR), 'y' (VARCHAR)"),
    ],
)
def test_without_a_numeric_column_those_that_there_are_are_named(run_cli, tmp_path, content, told):
    (tmp_path / "t.csv").write_text(content)
    keep = ("--keep", "key") if "key" in content else ()
    done = run_cli("featurize", "t.csv", *keep, "--to", "f.csv", code=2)
    assert told in done.stderr
    assert len(done.stderr) < 500


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["featurize", "n.csv", "--to", "f.csv"],
         "draw the map with --nulls zero, mean or propagate, or clean the table"),
        (["draw", "--columns", "a,b", "--scaling", "minmax", "-o", "n.json"],
         "scaling and --nulls mean need data, and only column names were given: fit to a table or "
         "a DataFrame, or use --scaling none and another policy"),
        (["draw", DIGITS, "--seed", "-1", "-o", "n.json"], "--seed -1 is not allowed: use a whole"),
        (["draw", DIGITS, "--ensemble", "0", "-o", "n.json"], "--ensemble 0 is not allowed"),
        (["draw", DIGITS, "--scaling", "x", "-o", "n.json"],
         "--scaling x is not allowed: use one of 'auto', none, 'standard'"),
        (["draw", DIGITS, "--pool", "x y", "-o", "n.json"], "--pool 'x y' is not allowed"),
        (["draw", DIGITS, "--sparsity", "0.5", "-o", "n.json"], "--sparsity 0.5 is not allowed"),
        (["draw", DIGITS, "--map", "spherical", "--a", "1", "-o", "n.json"], "--a 1.0 is not"),
        (["featurize", DIGITS, "--to", "old.csv"], "or replace it (--replace)"),
        (["tables", "m.json", "-o", "old"], "or replace it (--replace)"),
        (["run", "m.json", "--db", "w.duckdb", "--table", "t", "--into", "t2"],
         "or replace it (--replace)"),
        (["export", "m.json", "--db", "w.duckdb", "--table", "t", "--long", "id,name,c0",
          "--keep", "name", "--to", "f.csv"], "name it (--rows TABLE)"),
        (["sql", "m.json", "--table", "t", "--dialect", "sqlite", "--output", "array"],
         "use --output columns"),
        (["sql", "m.json", "--table", "t", "--plan", "butterflies"], "--plan butterflies is for"),
        (["sql", "m.json", "--table", "t", "--output", "bits"], "draw --map rank-one --binary"),
        (["draw", "n.csv", "--map", "nystroem", "-o", "n.json"],
         "use fewer landmarks (--components of a Nystroem, --landmarks of a KGRP)"),
        # What a user called something is left as it is.
        (["draw", DIGITS, "--exclude", "nulls='mean' s=3", "-o", "n.json"],
         "column \"nulls='mean' s=3\" is not"),
    ],
)  # fmt: skip
def test_messages_name_options_as_they_are_typed(run_cli, drawn, tmp_path, arguments, message):
    (tmp_path / "n.csv").write_text("a,b\n1,2\n,3\n")
    (tmp_path / "old.csv").write_text("old")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "load.sql").write_text("old")
    if "t2" in arguments:
        with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
            connection.execute("CREATE TABLE t2 AS SELECT 1 AS a")
    assert message in run_cli(*arguments, code=2).stderr


def test_what_is_too_large_is_told_in_options_too(run_cli, tmp_path):
    sqlkrp.KRP(2, 2000, pool="hadamard", random_state=0).fit(["a"]).save(tmp_path / "m.json")
    told = run_cli("inspect", "m.json", "--dialect", "postgres", code=None).stdout
    assert "use --output array or fewer components" in told
    assert "KRP(degree=2, n_components=2000, " in told


def test_control_characters_in_names_are_shown_escaped(run_cli, tmp_path):
    names = ["a\x1b[2Jb", "c\u202ed", "e\nf"]
    frame = dyadic(4, 3, names=names).assign(**{"t\x07": "x"})
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        store(connection, frame)
    source = ("w.duckdb", "--table", "t")
    done = run_cli("featurize", *source, "--keep", names[0], "--components", 3, "--to", "f.csv")
    assert r"4 rows of a\x1b[2Jb + 3 columns" in done.stdout
    assert r"left out     t\x07 (VARCHAR)" in done.stdout
    told = run_cli("inspect", "f.map.json").stdout
    assert r"2: c\u202ed, e\nf" in told
    refused = run_cli("draw", *source, "--exclude", names[2] + "x", "-o", "m.json", code=2).stderr
    assert r"column 'e\nfx' is not in the data: did you mean 'e\nf'?" in refused
    for text in (done.stdout, told, refused):
        assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_s_help_has_an_example_that_parses(run_cli, command):
    help_text = " ".join(run_cli(command, "--help").stdout.split())
    example = help_text.split(f"example: sqlkrp {command} ")[1].split()
    assert parser().parse_args([command, *example]).run


def options_in(help_text):
    return set(re.findall(r"^  (?:-\w(?: [A-Z]+)?, )?(--[\w-]+)", help_text, re.MULTILINE))


@pytest.mark.parametrize("command", ["featurize", "draw"])
@pytest.mark.parametrize("columns", [80, 120])
def test_help_is_in_groups_and_leaves_single_maps_out(run_cli, command, columns):
    help_text = run_cli(command, "--help", COLUMNS=str(columns)).stdout
    assert max(map(len, help_text.splitlines())) <= columns
    _, *parts = re.split(r"^(\w[\w ]+):\n", help_text, flags=re.MULTILINE)
    groups = dict(zip(parts[::2], parts[1::2], strict=True))
    titles = ["options", "input", "output", "the map", *["the SQL"][: command == "featurize"]]
    assert [*groups] == [*titles, "the engine"]
    assert options_in(groups["options"]) == {"--help", "--quiet"}
    common = {"--map", "--components", "--degree", "--terms", "--pool", "--coef0", "--gamma",
              "--scaling", "--nulls", "--seed", "--exclude", "--include"}  # fmt: skip
    assert common <= options_in(groups["the map"])
    single = {"--hyperplanes", "--sparsity", "--block-size", "--kernel", "--paired", "--landmarks",
              "--marked", "--matrices", "--a", "--domain", "--binary"}  # fmt: skip
    assert not single & options_in(help_text)
    assert "sqlkrp maps NAME" in " ".join(help_text.split())


def test_the_maps_are_listed_with_their_options_and_defaults(run_cli):
    listed = run_cli("maps").stdout
    for name, one in MAPS.items():
        (line,) = (line for line in listed.splitlines() if line.startswith(f"{name} "))
        assert line.partition(" ")[2].strip() == one.__doc__.splitlines()[0]
        told = run_cli("maps", name, COLUMNS="1000").stdout
        signature = inspect.signature(one).parameters
        options = {name: option for name, option in MAP_OPTIONS.items()
                   if option.name in signature}  # fmt: skip
        # The seed is of the command, and every other parameter has an option.
        assert {option.name for option in options.values()} == {*signature} - {"random_state"}
        assert options_in(told) == {f"--{name}" for name in options}
        spelt = {"None": "none", "False": "no"}
        for name, option in options.items():
            value = signature[option.name].default
            word = f"{value:g}" if isinstance(value, float) else spelt.get(str(value), value)
            (line,) = (line for line in told.splitlines() if line.startswith(f"  --{name} "))
            assert line.endswith(f"(default: {word})"), line
        assert f"sqlkrp.{one.__name__}" in told
    assert "invalid choice: 'krb'" in run_cli("maps", "krb", code=2).stderr


def test_defaults_in_help_are_those_of_the_constructor(run_cli):
    told = " ".join(run_cli("draw", "--help").stdout.split())
    for name, one in inspect.signature(sqlkrp.KRP).parameters.items():
        option = next((option for option, of in MAP_OPTIONS.items() if of.name == name), "seed")
        if f"--{option} " in told and option != "seed":
            shown = f"{one.default:g}" if isinstance(one.default, float) else one.default
            assert f"(default: {shown})" in told.partition(f"--{option} ")[2].partition(" --")[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_is(command):
    one = parser()._subparsers._group_actions[0].choices[command]
    for action in one._actions:
        assert action.help, action.option_strings
        assert action.help == "==SUPPRESS==" or len(action.help.split()) >= 3, action.help


def test_numbers_may_be_auto_and_none_is_none(run_cli):
    def read(*words):
        return parser().parse_args(["draw", "t.csv", "-o", "m", *words])

    assert read("--gamma", "auto").map_gamma == read("--terms", "auto").map_n_terms == "auto"
    assert (read("--gamma", "0.5").map_gamma, read("--terms", "5").map_n_terms) == (0.5, 5)
    assert read("--scaling", "none").map_scaling is None
    assert read("--scaling", "auto").map_scaling == "auto"
    assert not hasattr(read(), "map_scaling")
    for words in (("--gamma", "none"), ("--gamma", "wide"), ("--terms", "1.5")):
        refused = run_cli("draw", DIGITS, "-o", "m.json", *words, code=2).stderr
        assert f"{words[1]!r} is neither a number nor 'auto'" in refused
    run_cli("draw", DIGITS, "-o", "m.json", "--map", "spherical", "--scaling", "none")


def test_commands_and_options_are_in_the_reference():
    page = (DIGITS.parents[1] / "docs" / "cli.md").read_text()
    choices = parser()._subparsers._group_actions[0].choices
    assert sorted(choices) == sorted(COMMANDS)
    for name, one in choices.items():
        assert f"sqlkrp {name}" in page
        for option, action in one._option_string_actions.items():
            is_told = option in page or option in ("-h", "--help", "-q", "-o")
            assert is_told or action.help == argparse.SUPPRESS, (name, option)


def test_nothing_is_drawn_on_a_pipe(run_installed):
    done = run_installed("featurize", DIGITS, "--to", "f.csv", "--components", 300)
    assert "\r" not in done.stdout + done.stderr


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is a POSIX thing")
def test_progress_is_shown_on_a_terminal(tmp_path, warehouse):
    import pty

    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("CREATE TABLE big AS SELECT t.* FROM t, range(20_000)")
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "sqlkrp", "featurize", "w.duckdb", "--table", "big"]
    options = ["--pool", "hadamard", "--components", "500", "--to", "f.parquet"]
    done = subprocess.Popen([*command, *options], cwd=tmp_path, stderr=terminal)
    os.close(terminal)
    seen = b""
    while not (b"%" in seen and b"\r" in seen):
        read = os.read(main, 10_000)
        assert read, seen
        seen += read
    done.send_signal(signal.SIGINT)  # the rest would take its time
    assert done.wait(60) == 130
    os.close(main)


# --- what was wrong once ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("wide", ()),
        ("wide", ("--scaling", "minmax")),
        ("wide", ("--nulls", "zero")),
        ("tables", ("--nulls", "zero")),
    ],
)
def test_numbers_of_a_csv_are_read_as_they_stand(run_cli, tmp_path, form, options):
    # The first fraction stands far below what DuckDB looks at to find a column's type; and its
    # optimizer moves casts into the CSV reader, which cannot read "true" as a number.
    lines = ["a,b,flag", *["1,2,true"] * 30_000, "1,2.5,false", "1,1.7,true"]
    (tmp_path / "f.csv").write_text("\n".join(lines) + "\n")
    run_cli("featurize", "f.csv", "--components", 3, "--form", form, *options, "--to", "o.csv")
    krp = sqlkrp.load(tmp_path / "o.map.json")
    assert krp.feature_names_in_.tolist() == ["a", "b", "flag"]
    expected = krp.transform(pd.read_csv(tmp_path / "f.csv"))
    assert np.allclose(pd.read_csv(tmp_path / "o.csv"), expected, rtol=1e-9)


def test_a_folder_s_name_is_no_column(run_cli, tmp_path):
    (tmp_path / "year=2020").mkdir()
    dyadic(3, 2).to_csv(tmp_path / "year=2020" / "p.csv", index=False)
    run_cli("draw", "year=2020/p.csv", "-o", "m.json")
    assert sqlkrp.load(tmp_path / "m.json").feature_names_in_.tolist() == ["c0", "c1"]


def test_nothing_replaces_what_it_reads_or_what_is_no_file(run_cli, tmp_path, warehouse, drawn):
    dyadic(3, 2).to_csv(tmp_path / "s.csv", index=False)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "s.sqlite").write_text("no database")
    before = {p.name: p.stat().st_ino for p in tmp_path.iterdir()}
    for arguments, message in (
        (("featurize", "s.csv", "--to", "s.csv"), "is read by this"),
        (("featurize", "s.csv", "--to", "o.csv", "--map-file", "s.csv"), "is read by this"),
        (("featurize", "*.csv", "--to", "s.csv", "--map-file", "m2.json"), "is read by this"),
        (("draw", "s.csv", "-o", "fifo"), "is no ordinary file"),
        (("featurize", "s.csv", "--to", ""), "use one of"),
        (("draw", "s.csv", "-o", "."), "is a folder"),
    ):
        force = ("--replace-map", *(("--replace",) if arguments[0] == "featurize" else ()))
        assert message in run_cli(*arguments, *force, code=2).stderr, arguments
    run = ("run", "m.json", "--db", "s.csv", "--table", "s", "--into", "f")
    assert "is no DuckDB database" in run_cli(*run, code=2).stderr
    run = ("run", "m.json", "--db", "s.sqlite", "--table", "s", "--into", "f")
    assert "'s.sqlite' is no SQLite database" in run_cli(*run, code=2).stderr
    assert {p.name: p.stat().st_ino for p in tmp_path.iterdir()} == before


def test_a_map_replaces_nothing_but_a_map(run_cli, tmp_path, warehouse):
    for name in ("yn1.csv", "yn2.csv", "f.map.json", "thesis.txt"):
        (tmp_path / name).write_text("a,b\n1,2\n3,4\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    draw, featurize = ("draw", "yn1.csv"), ("featurize", "yn1.csv", "--to", "f.csv", "--replace")
    for arguments, message in (
        (("draw", "w.duckdb", "--table", "t", "-o", "w.duckdb"), "is read by this"),
        ((*draw, "-o", "yn1.csv"), "is read by this"),
        (("draw", "yn*.csv", "-o", "yn2.csv"), "is read by this"),
        ((*draw, "-o", "thesis.txt"), "'thesis.txt' exists already, and is no map"),
        (("draw", "--columns", "a,b", "-o", "yn1.csv"), "is no map"),
        (featurize, "'f.map.json' exists already, and is no map"),
        ((*featurize, "--map-file", "thesis.txt"), "is no map"),
    ):
        for more in ((), ("--replace-map",)):
            assert message in run_cli(*arguments, *more, code=2).stderr, arguments
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "content", ["", '{\n "format": "sqlkrp map",\n "format_vers', '{"format":"sqlkrp map"}']
)
def test_a_map_that_is_empty_or_damaged_is_replaced_on_request(run_cli, tmp_path, content):
    (tmp_path / "m.json").write_text(content)
    draw = ("draw", "--columns", "a,b", "--components", 3, "-o", "m.json")
    assert "(--replace-map)" in run_cli(*draw, code=2).stderr
    run_cli(*draw, "--replace-map")
    assert sqlkrp.load(tmp_path / "m.json").n_components == 3


def test_a_view_that_would_read_itself_is_not_created(run_cli, warehouse, drawn):
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("CREATE VIEW v AS FROM t; CREATE VIEW w AS FROM v")
    options = ("--db", "w.duckdb", "--table", "w", "--into", "v", "--view", "--replace")
    run_cli("run", "m.json", *options, code=2)
    with duckdb.connect(str(warehouse)) as connection:
        assert connection.execute("SELECT COUNT(id) FROM w").fetchone() == (50,)


def test_words_as_features_and_keys_of_another_type(run_cli, tmp_path):
    (tmp_path / "w.csv").write_text("r,f,v\n1,Word,2\n1,word,3\n2,,4\n2,Word,1\n")
    (tmp_path / "rows.csv").write_text("r,title\n1,a\n2,b\n3,c\n")
    done = run_cli(
        "featurize", "w.csv", "--long", "r,f,v", "--rows", "rows.csv", "--keep", "title",
        "--components", 5, "--to", "o.csv",
    )  # fmt: skip
    assert "3 rows of r + title + 5 columns krp_0 ... krp_4" in done.stdout
    krp = sqlkrp.load(tmp_path / "o.map.json")
    expected = krp.transform([[2.0, 3.0], [1.0, 0.0], [0.0, 0.0]])
    assert np.allclose(pd.read_csv(tmp_path / "o.csv").iloc[:, 2:], expected, rtol=1e-9)
    assert "input only" in run_cli("inspect", "o.map.json").stdout
    run_cli("verify", "o.map.json", "--file", "w.csv", "--long", "r,f,v", "--rows", "rows.csv")
    options = ("--long", "r,f,v", "--keep", "title", "--to", "p.csv")
    assert "--rows" in run_cli("export", "o.map.json", "--file", "w.csv", *options, code=2).stderr


def test_a_sample_larger_than_the_table_is_the_table(run_cli, warehouse, drawn):
    options = ("--db", "w.duckdb", "--table", "t", "--sample", 10**9)
    assert "on 50 rows" in run_cli("verify", "m.json", *options).stdout


@pytest.mark.parametrize("where", ["no/such.json", ".", "read_only/m.json"])
@pytest.mark.parametrize(
    "command",
    [
        ("train", "missing.csv", "--label", "y"),
        ("draw", "missing.csv"),
        ("report", "model.json", "--file", "missing.csv"),
        ("shorten", "model.json", "--terms", 1, "--file", "missing.csv"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_told_before_the_work(
    run_cli, model_file, tmp_path, monkeypatch, command, where
):
    """After it hours of training would be lost."""
    touch = Path.touch

    def refused(path, *args, **options):
        if path.parent.name == "read_only":  # root may write anywhere
            raise PermissionError(13, "Permission denied")
        touch(path, *args, **options)

    monkeypatch.setattr(Path, "touch", refused)
    (tmp_path / "read_only").mkdir()
    before = sorted(tmp_path.rglob("*"))
    told = run_cli(*command, "-o", where, code=2).stderr
    assert re.search("there is no folder 'no'|'.' is a folder|'read_only' cannot be written", told)
    assert sorted(tmp_path.rglob("*")) == before


def shown_on_a_terminal(monkeypatch):
    """Standard error as a terminal, on which all progress is shown at once."""
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("sqlkrp.cli.console._PATIENCE", -1.0)
    monkeypatch.setattr("sqlkrp.cli.commands.train._PATIENCE", -1.0)
    return stream


def shown(stream):
    """The lines that a terminal holds in the end."""
    return [re.sub(r".*\r\x1b\[K", "", line) for line in stream.getvalue().split("\n")]


@pytest.mark.parametrize("stop", [sqlkrp.errors.EngineError("no room"), KeyboardInterrupt()])
def test_an_error_is_a_line_of_its_own_where_progress_is_shown(
    warehouse, drawn, monkeypatch, tmp_path, stop
):
    terminal = shown_on_a_terminal(monkeypatch)

    def stopped(database, *_, **__):
        database.on_progress(0.5)
        assert "50% ####" in shown(terminal)[-1]
        raise stop

    monkeypatch.setattr(sqlkrp.Database, "create", stopped)
    monkeypatch.chdir(tmp_path)
    code = main(["run", str(drawn), "--db", "w.duckdb", "--table", "t", "--into", "f"])
    said = "interrupted; nothing was left behind" if code == 130 else "no room"
    assert shown(terminal) == [f"sqlkrp: {said}", ""]


def test_a_report_of_training_is_not_beside_its_progress(warehouse, monkeypatch, tmp_path):
    terminal = shown_on_a_terminal(monkeypatch)
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "w.duckdb", "--table", "t", "--label", "c1", "--keep", "id",
                 "--map", "krp", "--components", "4", "--task", "regression"]  # fmt: skip
    assert main([*arguments, "-o", "m.model.json"]) == 0, terminal.getvalue()
    assert " rows" in terminal.getvalue()
    assert shown(terminal)[-1] == ""


def test_what_the_terminal_cannot_show_is_said(run_cli, run_installed, tmp_path):
    dyadic(3, 2, names=["\u00e9", "b"]).to_csv(tmp_path / "s.csv", index=False)
    run_cli("draw", "s.csv", "-o", "m.json")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run_installed("sql", "m.json", "--table", "t", code=2, env=environment)
    assert "PYTHONIOENCODING" in done.stderr


@pytest.mark.parametrize("module", ["numpy", "sqlglot"])
def test_an_interrupt_while_the_program_is_imported_is_one_line(tmp_path, module):
    (tmp_path / f"{module}.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    path = os.pathsep.join([str(tmp_path), str(Path(sqlkrp.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-m", "sqlkrp", "maps"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("", "sqlkrp: interrupted\n")
    assert done.returncode in (130, -signal.SIGINT)


def test_a_full_disk_is_one_line(tmp_path, drawn):
    command = f"{sys.executable} -m sqlkrp sql {drawn} --table t > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "sqlkrp: No space left on device\n"


@pytest.mark.parametrize(
    "target",
    ["POSTGRESQL://me:secret@/db?host=/nowhere", "mysql://me:secret@h/db", "host=h password=secret",
     "postgres://me:secret@[::1/db", "postgresql://me:se cret@localhost:x/db"],
)  # fmt: skip
def test_no_message_repeats_a_password(run_cli, drawn, target):
    done = run_cli("run", "m.json", "--db", target, "--table", "t", "--into", "f", code=2)
    assert "cret" not in done.stderr


def test_odd_arguments_are_refused_in_one_line(run_cli, warehouse, drawn, tmp_path):
    for arguments, message in (
        (["draw", "-o", "n.json"], "a data file, a database and --table NAME, or columns (--co"),
        (["export", "m.json", "--to", "f.csv"], "(--db DB --table NAME) or a data file (--file"),
        (["draw", "--columns", 'a\nb"', "-o", "n.json"], "name columns"),
        (["draw", "--columns", "a", "--table", "t", "-o", "n.json"], "in place of it"),
        (["draw", "t.csv", "--columns", "a", "-o", "n.json"], "give one"),
        (["draw", "--columns", "a,a", "-o", "n.json"], "'a' is given twice"),
    ):
        assert message in run_cli(*arguments, code=2).stderr
    run_cli("draw", "--columns", 'a, b,"c,d"', "-o", "n.json")
    assert sqlkrp.load(tmp_path / "n.json").feature_names_in_.tolist() == ["a", "b", "c,d"]
    broken = ("run", "m.json", "--db", "w.duckdb", "--table", '"Broken pipe"', "--into", "z")
    assert "Broken pipe" in run_cli(*broken, code=2).stderr
    closed = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m sqlkrp inspect m.json >&-"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert (closed.returncode, closed.stderr.count("\n")) == (2, 1)


def test_an_export_does_not_replace_the_database_it_reads(run_cli, warehouse, drawn, tmp_path):
    (tmp_path / "w.parquet").write_bytes((tmp_path / "w.duckdb").read_bytes())
    options = ("m.json", "--db", "w.parquet", "--table", "t", "--to", "w.parquet", "--replace")
    assert "is read by this" in run_cli("export", *options, code=2).stderr


# --- models ---------------------------------------------------------------------------------------


@pytest.fixture
def model_file(tmp_path, warehouse, drawn):
    krp = sqlkrp.load(drawn)
    coef = np.linspace(-1, 1, len(krp.program.names))
    sqlkrp.model(map=krp, coef=coef, classes=["no", "yes"]).save(tmp_path / "model.json")
    return tmp_path / "model.json"


def test_score_writes_what_it_says(run_cli, warehouse, model_file, tmp_path):
    at = ["score", model_file, "--db", warehouse, "--table", "t", "--keep", "id"]
    told = run_cli(*at, "--into", "s").stdout
    assert re.match(
        r"created  s: [\d,]+ rows? of label, decision; wide form\nmodel    [0-9a-f]{12}\n", told
    )
    assert "exists already" in run_cli(*at, "--into", "s", code=2).stderr
    run_cli(*at, "--into", "s", "--replace", "--outputs", "label", "--prefix", "said_")
    with duckdb.connect(str(warehouse)) as connection:
        assert connection.execute("FROM s LIMIT 0").fetchall() == []
        assert [one[0] for one in connection.description] == ["id", "said_label"]
    piped = run_cli(*at, "--to", "-", "--outputs", "decision", "--as", "features")
    assert piped.stdout.splitlines()[0] == "id,decision"
    assert "wrote" in piped.stderr
    for wrong, message in (
        ([], "give --into NAME or --to FILE"),
        (["--into", "x", "--outputs", "probability"], "has decisions and no probabilities"),
        (["--into", "x", "--threshold", "nan"], "--threshold nan is not allowed"),
        (["--into", "x", "--as", "magic"], "invalid choice"),
    ):
        assert message in run_cli(*at, *wrong, code=2).stderr


def test_a_model_is_printed_inspected_verified_and_explained(run_cli, warehouse, model_file):
    text = run_cli("sql", model_file, "--table", "t", "--outputs", "label").stdout
    assert text.startswith("-- sqlkrp model ")
    assert "'yes'" in text
    told = run_cli("inspect", model_file).stdout
    assert re.search(r"^says +label, decision, computed as float64$", told, re.MULTILINE)
    known = json.loads(run_cli("inspect", model_file, "--json").stdout)
    assert known["parameters"]["classes"] == ["no", "yes"]
    at = ["--db", warehouse, "--table", "t"]
    assert "equal to the NumPy twin" in run_cli("verify", model_file, *at).stdout
    lines = run_cli("explain", model_file, "--top", "3").stdout.splitlines()
    assert len(lines) >= 5
    assert lines[0].startswith("constant")
    assert (
        len(json.loads(run_cli("explain", model_file, "--top", "3", "--json").stdout)["terms"]) == 3
    )
    matter = run_cli("explain", model_file, *at, "--sample", "50").stdout
    assert "mean change of the decision on" in matter
    assert "less so" in run_cli("explain", model_file, *at, "--top", "1").stdout
    for rows in ((), at):
        refused = run_cli("explain", model_file, *rows, "--top", "0", code=2).stderr
        assert refused == "sqlkrp: --top 0 is not allowed: use a whole number >= 1\n"


@pytest.mark.parametrize(
    "asked",
    [
        "explain --table t",
        "explain --sample 10",
        "explain --threads 2",
        "shorten --terms 3 --table t",
        "shorten --terms 3 --long r,f,v",
        "shorten --terms 3 --rows t",
        "shorten --terms 3 --sample 10",
        "shorten --terms 3 --memory-limit 1GB",
    ],
)
def test_what_is_said_of_rows_is_not_ignored_without_any(run_cli, model_file, asked):
    command, *options = asked.split()
    told = run_cli(command, model_file, *options, code=2)
    assert f"{options[-2]} is of rows to read, and none are named: " in told.stderr
    assert "(--db DB --table NAME) or a data file (--file FILE)" in told.stderr
    assert told.stderr.count("\n") == 1
    assert told.stdout == ""


def test_rows_to_score_and_features_in_their_place_are_not_both_taken(
    run_cli, warehouse, model_file
):
    """One of them would be read, and nothing said of the other."""
    for rows in (("--db", "w.duckdb", "--table", "nowhere"), ("--file", "t.csv")):
        done = run_cli("score", model_file, *rows, "--features", "f", "--to", "s.csv", code=2)
        assert "rows to score, or one of features (--features NAME)" in done.stderr
    held = run_cli("score", model_file, "--db", "w.duckdb", "--table", "t", "--holds", "bits",
                   "--to", "s.csv", code=2)  # fmt: skip
    assert "a table of features: name it (--features NAME)" in held.stderr


def test_a_short_model_is_told_saved_and_scored(run_cli, warehouse, model_file, tmp_path):
    at = ["--db", warehouse, "--table", "t"]
    short = sqlkrp.load(model_file).shortened(3)
    told = run_cli("shorten", model_file, "--terms", 3).stdout
    assert told.splitlines() == [f"model  {short.title}", f"error  {short.error}"]
    assert "not measured on rows" in told
    told = run_cli("shorten", model_file, "--terms", 3, *at, "-o", tmp_path / "s.json").stdout
    saved = sqlkrp.load(tmp_path / "s.json")
    assert told.startswith("wrote  ")
    assert f"error  {saved.error}\n" in told
    assert saved.shortening.measured.rows > 0
    assert saved.digest_ == short.digest_
    # The file says it, and every other command takes it; or the whole one, and how many terms.
    assert f"error        {saved.error}\n" in run_cli("inspect", tmp_path / "s.json").stdout
    known = json.loads(run_cli("inspect", tmp_path / "s.json", "--json").stdout)
    assert known["parameters"]["shortening"]["measured"]["rows"] == saved.shortening.measured.rows
    assert "of a short model: " in run_cli("explain", tmp_path / "s.json").stdout
    asked = run_cli("sql", model_file, "--table", "t", "--terms", 3).stdout
    assert asked == run_cli("sql", tmp_path / "s.json", "--table", "t").stdout
    scored = run_cli("score", model_file, *at, "--terms", 3, "--into", "s").stdout
    assert scored.endswith(f"error    {short.error}\n")
    assert "equal to" in run_cli("verify", model_file, *at, "--terms", 3).stdout
    run_cli("tables", model_file, "--terms", 3, "-o", tmp_path / "tables")
    assert short.digest_ in (tmp_path / "tables" / "load.sql").read_text()


def test_what_cannot_be_shortened_is_told(run_cli, drawn, model_file, tmp_path):
    at = ["shorten", model_file, "--terms", 3]
    run_cli(*at, "-o", tmp_path / "s.json")
    for arguments, message in (
        ([*at, "-o", tmp_path / "s.json"], "exists already"),
        ([*at, "-o", model_file, "--replace"], "is read by this"),
        ([*at, "-o", drawn, "--replace"], "holds a map (KRP)"),
        (["shorten", model_file, "--terms", 0], "--terms 0 is not allowed"),
        (["shorten", drawn, "--terms", 3], "weighs nothing: give a model"),
        (["sql", drawn, "--table", "t", "--terms", 3], "weighs nothing: give a model"),
        (["shorten", model_file], "required: --terms"),
        (
            ["sql", model_file, "--table", "t", "--terms", 3, "--components-only", 0],
            "--terms 3 is of a model, and --components-only of a map",
        ),
    ):
        assert message in run_cli(*arguments, code=2).stderr
    run_cli(*at, "-o", tmp_path / "s.json", "--replace")


def test_a_map_is_no_model_and_a_model_is_no_map(run_cli, warehouse, drawn, model_file, tmp_path):
    at = ["--db", warehouse, "--table", "t"]
    refused = run_cli("score", drawn, *at, "--into", "s", code=2).stderr
    assert "holds a map, which is not a model" in refused
    macro = run_cli("score", drawn, "--db", warehouse, "--macro", "m", code=2)
    assert macro.stderr == refused
    assert "weighs nothing" in run_cli("explain", drawn, code=2).stderr
    told = run_cli("featurize", "x.csv", "--use", model_file, "--to", tmp_path / "f.csv", code=2)
    assert "x.csv" in told.stderr or "has no features of its own" in told.stderr
    only = run_cli("sql", model_file, "--table", "t", "--components-only", "0", code=2)
    assert "has no features of its own" in only.stderr


def test_what_excludes_each_other_is_named(run_cli, warehouse, drawn):
    at = ("--db", warehouse, "--table", "t", "--into", "f", "--view")
    for more, named in (
        (["--append"], "--view and --append are both given"),
        (["--upsert", "--key", "id"], "--view and --upsert are both given"),
    ):
        assert named in run_cli("run", drawn, *at, *more, code=2).stderr


def test_a_path_with_a_colon_is_that_of_a_file(run_cli, warehouse, tmp_path):
    refused = run_cli("draw", "./md:wh", "--table", "t", "-o", "m.json", code=2).stderr
    assert "there is no file './md:wh': give one that is there, or 'md:wh', which" in refused
    assert run_cli("draw", "./md:wh", "-o", "m.json", code=2).stderr == refused
    (tmp_path / "md:wh").write_bytes(warehouse.read_bytes())
    run_cli("draw", "./md:wh", "--table", "t", "--components", 4, "-o", "m.json")


def test_a_model_that_is_no_polynomial_is_told_in_words_of_the_command_line(run_cli, tmp_path):
    fourier = sqlkrp.RandomFourier(8, random_state=0).fit(["a", "b"])
    sqlkrp.model(map=fourier, coef=np.ones(8)).save(tmp_path / "f.model.json")
    explain = run_cli("explain", "f.model.json", code=2).stderr
    assert "see how much each of them matters on rows (--db DB --table NAME" in explain
    sql = run_cli("sql", "f.model.json", "--table", "t", "--as", "polynomial", code=2).stderr
    assert "leave out --as polynomial" in sql
    for told in (explain, sql):
        assert not re.search(r"\w\(|random_state|n_components|None", told)
