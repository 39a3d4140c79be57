"""The campaign finds what it is to find: each kind of fault is made, and counted as that."""

import tempfile
from pathlib import Path

import campaign
import numpy as np
import pytest
from engines import DuckDB

SEEDS = range(4)


class Faulty(DuckDB):
    """An engine whose users meet a fault in each case."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def features(self, fitted, table="t", **options):
        found = super().features(fitted, table, **options)
        return self.fault(self, found)


def another_number(engine, found):
    found[:, 1:] += 1e-3 + np.abs(found[:, 1:]) / 1000
    return found


def an_error_of_python(engine, found):
    return found[len(found) + 1]


def a_table(engine, found):
    engine.execute("CREATE OR REPLACE TEMP TABLE left_over AS SELECT 1 AS a")
    return found


def a_file(engine, found):
    Path(tempfile.gettempdir(), "left over").touch()
    return found


def a_transaction(engine, found):
    if not engine.in_transaction():
        engine.execute("BEGIN")
    return found


def no_canary(engine, found):
    engine.execute("DROP TABLE IF EXISTS canary")
    return found


def another_canary(engine, found):
    engine.execute("UPDATE canary SET alive = 2")
    return found


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (another_number, "wrong"),
        (an_error_of_python, "tracebacks"),
        (a_table, "leftovers"),
        (a_file, "leftovers"),
        (a_transaction, "leftovers"),
        (no_canary, "injections"),
        (another_canary, "injections"),
    ],
)
def test_each_kind_of_fault_is_counted(fault, kind):
    (found,) = campaign.failures([Faulty(fault)], SEEDS)
    assert found.wrong[kind]
    assert all("python tests/campaign.py --first" in one for one in found.told)


def test_what_is_right_is_none_of_them():
    engine = DuckDB()
    (found,) = campaign.failures([engine], SEEDS)
    assert (found.told, found.wrong.total()) == ([], 0)
    assert found.cases["map"] + found.cases["model"] == len(SEEDS)
    assert engine.objects() == ["canary"]
