"""The files of a map or a model in a project of SQLMesh, by their paths in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlkrp.errors import ParameterError, visible
from sqlkrp.projects.asked import Asked
from sqlkrp.sql.jinja import filled
from sqlkrp.sql.names import quote, text
from sqlkrp.version import __version__

__all__ = ["sqlmesh_files", "sqlmesh_project_files"]


def sqlmesh_files(asked: Asked) -> dict[str, str]:
    """Every file, by its path."""
    name = asked.name
    if not asked.relation.sql:
        raise ParameterError(
            f"source={asked.relation.told!r} is a reference of dbt: name a table or a model of "
            "SQLMesh, as schema.table"
        )
    seeds = {f"{name}_expected": _expected_types(asked), **asked.side_types()}
    return {
        f"models/{name}.sql": _model(asked),
        **{f"models/{one}.sql": _seed(asked, one, types) for one, types in seeds.items()},
        f"audits/{name}_parity.sql": _audit(asked),
        **asked.seed_files(),
        f"README_{name}.md": _readme(asked),
    }


def _without_macros(sql: str) -> str:
    """The same text; ParameterError if SQLMesh would read more in it than names."""
    if "@" in sql:
        raise ParameterError(
            "a name or a text in the SQL holds '@', which SQLMesh reads as a macro wherever it "
            "stands: rename the column, or make a view that does"
        )
    return sql


def _full(asked: Asked, name: str) -> str:
    """A model's name, in the schema of the table that is read."""
    return ".".join(quote(part, asked.dialect) for part in (*asked.relation.parts[:-1], name))


def _seed_of(asked: Asked) -> Any:
    return lambda name: _full(asked, name)


def _model(asked: Asked) -> str:
    key = quote(asked.key, asked.dialect)
    kind = f"INCREMENTAL_BY_UNIQUE_KEY (unique_key {key})" if asked.grows else "FULL"
    reads = [_full(asked, one) for one in (f"{asked.name}_expected", *asked.seeds.values())]
    audits = [
        f"not_null(columns := ({key}))",
        f"unique_values(columns := ({key}))",
        f"{asked.name}_parity",
    ]
    head = _head(
        asked,
        name=_full(asked, asked.name),
        kind=kind,
        description=text(visible(asked.told), asked.dialect),
        columns=_columns(asked, asked.types),
        grain=f"({key})",
        # It is parsed in any case; and rewritten it would no longer be what is measured.
        optimize_query="false",
        # The audit reads the seed, which SQLMesh does not see.
        depends_on=f"({', '.join([asked.relation.sql, *reads])})",
        audits=f"({', '.join(audits)})",
    )
    query = asked.over(asked.relation.sql, _seed_of(asked), filled)
    return _without_macros(f"{head}\n\n{query};\n")


def _head(asked: Asked, **properties: str) -> str:
    items = {"dialect": asked.dialect.sqlglot, **properties}
    listed = ",\n".join(f"  {name} {value}" for name, value in items.items())
    return f"MODEL (\n{listed}\n);"


def _columns(asked: Asked, types: Mapping[str, str]) -> str:
    return f"({', '.join(f'{quote(name, asked.dialect)} {its}' for name, its in types.items())})"


def _seed(asked: Asked, name: str, types: Mapping[str, str]) -> str:
    path = text(f"../seeds/{name}.csv", asked.dialect)
    columns = f"({', '.join(f'{one} {its}' for one, its in types.items())})"
    return f"{_head(asked, name=_full(asked, name), kind=f'SEED (path {path})', columns=columns)}\n"


def _expected_types(asked: Asked) -> dict[str, str]:
    """The types of all columns of the seed: SQLMesh guesses none."""
    names = asked.parity.seed.partition("\n")[0].split(",")
    double = asked.dialect.float_types["float64"]
    whole = {names[0]: asked.dialect.whole_type}
    return dict.fromkeys(names, double) | whole | asked.parity.types


def _audit(asked: Asked) -> str:
    select, pieces = asked.differing(
        model="@this_model",
        made=lambda relation: asked.over(relation, _seed_of(asked), filled),
        seed=_full(asked, f"{asked.name}_expected"),
        share=repr(asked.parity.share),
    )
    head = f"AUDIT (\n  name {asked.name}_parity,\n  dialect {asked.dialect.sqlglot}\n);"
    return f"{head}\n\n{filled(_without_macros(select), pieces)};\n"


def _readme(asked: Asked) -> str:
    kind, name = asked.fitted.kind, _full(asked, asked.name)
    return (
        f"`{name}` is sqlkrp {kind} `{asked.fitted.digest_[:12]}` of `{asked.relation.told}`: "
        f"{visible(asked.fitted.title)}.\n"
        f"Build and check it: `sqlmesh plan`, `sqlmesh audit`.\n"
        f"Written by sqlkrp {__version__}: after a new {kind} write it again (`sqlkrp dbt ... "
        "--sqlmesh --replace`); the next plan makes all rows anew.\n"
    )


#: How SQLMesh connects where nothing else is said, by dialect.
_CONNECTIONS = {
    "duckdb": [
        "type: duckdb",
        "database: {{ env_var('DUCKDB_PATH', 'warehouse.duckdb') }}",
    ],
    "postgres": [
        "type: postgres",
        "host: {{ env_var('PGHOST', 'localhost') }}",
        "port: {{ env_var('PGPORT', '5432') }}",
        "user: {{ env_var('PGUSER', 'postgres') }}",
        "password: \"{{ env_var('PGPASSWORD', '') }}\"",
        "database: {{ env_var('PGDATABASE', 'postgres') }}",
    ],
}


def sqlmesh_project_files(asked: Asked) -> dict[str, str]:
    """The configuration of a project of its own, where it is known how SQLMesh connects."""
    connection = _CONNECTIONS.get(asked.dialect.name)
    if connection is None:
        return {}
    items = "".join(f"      {line}\n" for line in connection)
    defaults = f"  dialect: {asked.dialect.sqlglot}\n  start: 2020-01-01\n"
    return {
        "config.yaml": f"gateways:\n  local:\n    connection:\n{items}"
        f"default_gateway: local\nmodel_defaults:\n{defaults}"
    }
