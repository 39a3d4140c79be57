"""Smoke tests of text for warehouses that nobody here can connect to, in what is near to them.

They show that something that is not the warehouse reads the text, and computes what it should:
Redshift's is Postgres' as far as it goes here, and Snowflake's is rewritten for DuckDB by sqlglot.
They prove nothing of the warehouses, so their texts still say that they were never executed.
"""

import contextlib
import dataclasses

import numpy as np
import pytest
import sqlglot
from engines import DuckDB, Postgres, as_numbers
from support import EVERY_STAGE, dyadic, forms_of, paper_krp

import sqlkrp

NAMES = ["height", "Width", "is new", "a'b"]
MAPS = {
    "krp": lambda: paper_krp(2, 5, n_terms=2, nulls="zero", random_state=0),
    "hadamard": lambda: sqlkrp.KRP(3, 5, n_terms=2, nulls="mean", random_state=0),
    "products": lambda: EVERY_STAGE["products"](nulls="zero", scaling="unit"),
    "distances": lambda: EVERY_STAGE["distances"](nulls="mean"),
}


def table():
    frame = dyadic(12, 4, names=NAMES)
    frame.iloc[3, 1] = np.nan
    return frame.assign(id=range(12))


@pytest.mark.parametrize("form", forms_of("redshift"))
@pytest.mark.parametrize("kind", MAPS)
def test_text_for_redshift_in_postgres(postgres_url, kind, form):
    with contextlib.closing(Postgres(postgres_url)) as engine:
        engine.store(table())
        one = MAPS[kind]().fit(dyadic(12, 4, seed=1, names=NAMES))
        options = {"keep": ["id"], "form": form}
        statement = one.statement(("t",), dialect="redshift", **options)
        found = as_numbers(one, engine.run(statement), options)[:, 1:]
    assert np.allclose(found, one.transform(table().drop(columns="id")), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", forms_of("snowflake"))
@pytest.mark.parametrize("kind", MAPS)
def test_text_for_snowflake_in_duckdb(kind, form):
    with contextlib.closing(DuckDB()) as engine:
        engine.store(table())
        one = MAPS[kind]().fit(dyadic(12, 4, seed=1, names=NAMES))
        options = {"keep": ["id"], "form": form}
        statement = one.statement(("t",), dialect="snowflake", **options)
        (text,) = sqlglot.transpile(statement.text, read="snowflake", write="duckdb")
        found = engine.run(dataclasses.replace(statement, text=text))
    found = as_numbers(one, found, options)[:, 1:]
    assert np.allclose(found, one.transform(table().drop(columns="id")), rtol=1e-9, atol=1e-9)
