"""What would take too much memory is refused before it is begun; what does not, is computed."""

import tracemalloc

import numpy as np
import pytest

import sqlkrp
from sqlkrp.errors import LimitError, ParameterError
from sqlkrp.memory import memory_limit, require_memory
from sqlkrp.stages import Butterflies
from sqlkrp.summaries.facts import facts, preflight_of

COLUMNS = [f"c{i}" for i in range(300)]
ROWS = np.random.default_rng(0).normal(size=(400, 300))
MB = 2**20


def peak_of(call):
    """What a call gives or raises, and the most memory that it had at a time."""
    tracemalloc.start()
    try:
        found = call()
    except LimitError as bad:
        found = bad
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return found, peak


def allow(monkeypatch, megabytes):
    monkeypatch.setenv("SQLKRP_MEMORY_GB", repr(megabytes / 1024))


@pytest.mark.parametrize(
    ("one", "megabytes"),
    [
        # 80 bytes for each weight: so many hyperplanes of 300 columns, or of 301 with a constant.
        (sqlkrp.RandomFourier(1000, gamma=1.0), 80 * 1000 * 300 / MB),
        (sqlkrp.RandomFourier(1000, gamma=1.0, kernel="laplacian"), 80 * 1000 * 300 / MB),
        (sqlkrp.SphericalRandomFeatures(1000), 80 * 1000 * 300 / MB),
        (sqlkrp.KRP(2, 10, pool="gaussian", n_hyperplanes=1000), 80 * 1000 * 301 / MB),
        # A third of the entries are not zero.
        (sqlkrp.RandomProjection(3000, pool="achlioptas"), 80 * 1000 * 300 / MB),
        (sqlkrp.PRP(1500), 80 * 1000 * 300 / MB),
        # Two projections are drawn, and their sums and differences are the weights.
        (sqlkrp.RankOneProjection(500), 80 * 1000 * 300 / MB),
        # 501 frequencies of two parts, of each of two sketches.
        (sqlkrp.TensorSketch(2, 1000), 80 * 501 * 2 * 2 * 301 / MB),
        # 151 of them: from two times 300 buckets, and of the product back to 300.
        (sqlkrp.TensorSketch(2, 300, domain="bucket"), 80 * 151 * 2 * (2 * 600 + 300) / MB),
        # The landmarks and their kernel.
        (sqlkrp.Nystroem(350), 80 * 350 * 650 / MB),
        (sqlkrp.KGRP(20, n_landmarks=350), 80 * 350 * 650 / MB),
        # Its 45,150 pairs of columns.
        (sqlkrp.PCA(3), 250 * 45_150 / MB),
    ],
    ids=lambda one: type(one).__name__ if hasattr(one, "fit") else "",
)
def test_what_takes_too_much_is_refused_before_it_is_begun(monkeypatch, one, megabytes):
    rows = ROWS if isinstance(one, (sqlkrp.Nystroem, sqlkrp.KGRP, sqlkrp.PCA)) else COLUMNS
    allow(monkeypatch, 0.99 * megabytes)
    refused, peak = peak_of(lambda: one.fit(rows))
    assert isinstance(refused, LimitError), refused
    assert f"would take about {megabytes:.3g} MB of memory" in str(refused)
    assert f" and {0.99 * megabytes:.3g} MB are allowed: use fewer " in str(refused)
    assert "\n" not in str(refused)
    # The rows and their statistics; for all that is drawn 10 MB and more would be taken.
    assert peak < 8 * MB
    allow(monkeypatch, 1.01 * megabytes)
    one.fit(rows)


def wide_sorf():
    """A SORF whose hyperplanes, written out, have 2 * 4096 * 4096 signs."""
    return sqlkrp.SORF(8192, gamma=1.0, random_state=0).fit([f"c{i}" for i in range(4000)])


def test_facts_and_sizes_of_butterflies_need_no_table_of_signs(monkeypatch):
    sorf = wide_sorf()
    allow(monkeypatch, 500)
    known, peak = peak_of(lambda: facts(sorf))
    # Of the last of the three transforms, where no place is empty.
    assert (known["hyperplanes"], known["nonzeros"]) == (8192, 8192 * 4096)
    assert known["all_zero_hyperplanes"] == 0
    assert peak < 20 * MB
    told, peak = peak_of(lambda: preflight_of(sorf))
    assert told.form == "array"
    assert peak < 150 * MB
    refused, peak = peak_of(lambda: sorf.to_sql("t", form="tables"))
    assert isinstance(refused, LimitError), refused
    assert str(refused).startswith("8,192 hyperplanes of 4,096 columns, written out, would take")
    assert peak < 150 * MB


def test_entries_of_butterflies_are_those_of_their_table():
    place = np.array([[0, -1, 2, 1], [-1, -1, -1, -1], [2, -1, -1, -1]], dtype="i4")
    stage = Butterflies(3, place, np.ones((3, 4), dtype="i1"))
    assert (stage.n_entries, stage.n_blank) == (stage.linear.n_entries, stage.linear.n_blank)
    assert (stage.n_entries, stage.n_blank) == (4 * 3 + 4, 4)


def test_a_wide_statement_is_refused_before_it_is_written(monkeypatch):
    krp = sqlkrp.KRP(2, 5000, random_state=0).fit(COLUMNS)
    allow(monkeypatch, 10)
    refused, _ = peak_of(lambda: krp.to_sql("t", form="wide", plan="butterflies"))
    assert isinstance(refused, LimitError), refused
    assert str(refused).startswith("a wide statement of ")
    assert "use form='tables' or fewer components" in str(refused)
    allow(monkeypatch, 100)
    assert krp.to_sql("t", form="wide", plan="butterflies").startswith("-- sqlkrp map")


def test_the_command_line_refuses_in_one_line(run_cli, monkeypatch):
    allow(monkeypatch, 1)
    arguments = ("--columns", "a,b", "--components", 9999, "--gamma", 1, "-o", "x.map.json")
    done = run_cli("draw", "--map", "random-fourier", *arguments, code=2)
    assert "a pool of 9,999 hyperplanes of 2 columns would take about" in done.stderr


@pytest.mark.parametrize(
    ("gigabytes", "needed", "told"),
    [
        ("1e-06", 5000, "4.88 kB of memory, and 1.05 kB are allowed"),
        ("1e-07", 1000, "1,000 bytes of memory, and 107 bytes are allowed"),
        ("0.25", 1010 * MB, "1,010 MB of memory, and 256 MB are allowed"),
        ("1.5", 2000 * 1024 * MB, "2,000 GB of memory, and 1.5 GB are allowed"),
    ],
)
def test_sizes_are_told_in_a_unit_that_suits(monkeypatch, gigabytes, needed, told):
    monkeypatch.setenv("SQLKRP_MEMORY_GB", gigabytes)
    with pytest.raises(LimitError) as refused:
        require_memory(needed, "it", "less")
    assert f"it would take about {told}: use less, or allow more" in str(refused.value)


@pytest.mark.parametrize("said", ["", "much", "0", "-1", "nan"])
def test_a_limit_is_a_number_of_gigabytes(monkeypatch, said):
    monkeypatch.setenv("SQLKRP_MEMORY_GB", said)
    with pytest.raises(ParameterError, match="no number of gigabytes above 0"):
        memory_limit()


def test_without_a_limit_it_is_half_of_what_there_is(monkeypatch, tmp_path):
    monkeypatch.delenv("SQLKRP_MEMORY_GB", raising=False)
    allowed, unlimited = tmp_path / "allowed", tmp_path / "unlimited"
    allowed.write_text("3000000\n")
    unlimited.write_text("max\n")
    monkeypatch.setattr("sqlkrp.memory._CGROUPS", (str(allowed), str(unlimited), "/no/such/file"))
    assert memory_limit() == 1_500_000
    monkeypatch.setattr("sqlkrp.memory._CGROUPS", (str(unlimited),))
    assert memory_limit() > 10 * MB
