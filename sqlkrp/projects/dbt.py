"""The files of a map or a model in a project of dbt, by their paths in it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlkrp.errors import visible
from sqlkrp.maps.advice import counted
from sqlkrp.projects.asked import Asked
from sqlkrp.projects.relation import template_text
from sqlkrp.sql.jinja import raw, templated
from sqlkrp.sql.names import quote, text
from sqlkrp.version import __version__

__all__ = ["dbt_files", "dbt_project_files"]

# The column of a table that grows in which each row has the digest of what made it.
_DIGEST = "sqlkrp_digest"
# Inputs that a description names.
_TOLD = 20


def dbt_files(asked: Asked) -> dict[str, str]:
    """Every file, by its path."""
    name = asked.name
    return {
        f"models/{name}.sql": _model(asked),
        f"models/{name}.yml": _properties(asked),
        f"macros/{name}.sql": _macro(asked),
        f"tests/{name}_parity.sql": _test(asked),
        **asked.seed_files(),
        f"README_{name}.md": _readme(asked),
    }


def _ref(name: str) -> str:
    return f"{{{{ ref('{name}') }}}}"


# --- the model, and the macro ---------------------------------------------------------------------


def _model(asked: Asked) -> str:
    settings: dict[str, str | dict[str, str]] = {
        "materialized": "table",
        "meta": {_DIGEST: asked.fitted.digest_},
    }
    if not asked.grows:
        relation = asked.relation.template
        return f"{_config(settings)}\n{asked.over(relation, _ref)}\n"
    settings |= {
        "materialized": "incremental",
        # dbt writes it into its statements as it is.
        "unique_key": quote(asked.key, asked.dialect),
        "on_schema_change": "fail",
    }
    return f"{_config(settings)}\n{_stop_if_changed(asked)}\n{_growing(asked)}\n"


def _config(settings: Mapping[str, str | dict[str, str]]) -> str:
    items = []
    for name, value in settings.items():
        shown = template_text(value) if isinstance(value, str) else _mapping(value)
        items.append(f"    {name}={shown}")
    return "{{ config(\n" + ",\n".join(items) + "\n) }}"


def _mapping(items: Mapping[str, str]) -> str:
    pairs = (f"{template_text(name)}: {template_text(value)}" for name, value in items.items())
    return f"{{{', '.join(pairs)}}}"


def _stop_if_changed(asked: Asked) -> str:
    """Stop where rows are there that another map made."""
    column, digest = quote(_DIGEST, asked.dialect), text(asked.fitted.digest_, asked.dialect)
    others = f"SELECT COUNT(*) FROM {{}} WHERE {column} IS NULL OR {column} <> {digest}"
    first, last = (template_text(part) for part in others.split("{}"))
    kind = asked.fitted.kind
    message = template_text(
        f"{asked.name} holds rows that another {kind} made: run --full-refresh "
        f"(dbt build --full-refresh --select {asked.name})"
    )
    return "\n".join(
        [
            "{%- if execute and is_incremental() %}",
            "{%- set columns = adapter.get_columns_in_relation(this) | map(attribute='name') "
            "| map('lower') | list %}",
            f"{{%- if '{_DIGEST}' not in columns or "
            f"run_query({first} ~ this ~ {last}).columns[0][0] | int > 0 %}}",
            f"{{{{ exceptions.raise_compiler_error({message}) }}}}",
            "{%- endif %}",
            "{%- endif %}",
        ]
    )


def _growing(asked: Asked) -> str:
    """The statement over the rows that are new, with the digest in each."""
    key = quote(asked.key, asked.dialect)
    source = asked.relation.template
    new = (
        f"(SELECT one.* FROM {source} one WHERE NOT EXISTS "
        f"(SELECT 1 FROM {{{{ this }}}} done WHERE {raw(f'done.{key} = one.{key}')}))"
    )
    relation = f"{{% if is_incremental() %}}{new}{{% else %}}{source}{{% endif %}}"
    digest = text(asked.fitted.digest_, asked.dialect)
    typed = asked.dialect.cast.format(value=digest, type=asked.dialect.text_type)
    items = f"made.*, {typed} AS {quote(_DIGEST, asked.dialect)}"
    return f"SELECT {items} FROM (\n{asked.over(relation, _ref)}\n) made"


def _macro(asked: Asked) -> str:
    inside = asked.over("{{ relation }}", _ref)
    return f"{{% macro {asked.name}(relation) %}}{inside}{{% endmacro %}}\n"


# --- the test -------------------------------------------------------------------------------------


def _test(asked: Asked) -> str:
    """The rows of the seed that the model, or of made-up ones the macro, says otherwise."""
    select, pieces = asked.differing(
        model=_ref(asked.name),
        made=lambda relation: f"{{{{ {asked.name}('{relation}') }}}}",
        seed=_ref(f"{asked.name}_expected"),
        share=f"{{{{ var('sqlkrp_tolerance', {asked.parity.share!r}) }}}}",
    )
    return f"{templated(select, pieces)}\n"


# --- what is said of them -------------------------------------------------------------------------


def _properties(asked: Asked) -> str:
    """The source, the model with its contract and tests, and the seeds."""
    lines = ["version: 2", "", *_source(asked), "models:"]
    lines += [
        f"  - name: {asked.name}",
        f"    description: {_description(_told(asked))}",
        "    config:",
        "      contract: {enforced: true}",
        "    columns:",
    ]
    said = _said_of_columns(asked)
    grown = {_DIGEST: asked.dialect.text_type} if asked.grows else {}
    for name, type_name in (asked.types | grown).items():
        lines += [
            f"      - name: {template_text(name)}",
            "        quote: true",
            f"        data_type: {template_text(type_name)}",
        ]
        if name in said:
            lines.append(f"        description: {_description(said[name])}")
        if name == asked.key:
            lines.append("        data_tests: [not_null, unique]")
    lines += ["", "seeds:", *_seed(f"{asked.name}_expected", _rows_told(asked), asked.parity.types)]
    for name, types in asked.side_types().items():
        lines += _seed(name, f"A side table of {asked.told}", types)
    return "\n".join(lines) + "\n"


def _source(asked: Asked) -> list[str]:
    one = asked.relation
    if not one.parts:
        return []
    *above, schema, table = one.parts
    return [
        "sources:",
        f"  - name: {template_text(one.typed[-2])}",
        *(f"    database: {template_text(part)}" for part in above),
        f"    schema: {template_text(schema)}",
        "    quoting: {database: true, schema: true, identifier: true}",
        "    tables:",
        f"      - name: {template_text(one.typed[-1])}",
        f"        identifier: {template_text(table)}",
        "",
    ]


def _seed(name: str, told: str, types: Mapping[str, str]) -> list[str]:
    return [
        f"  - name: {name}",
        f"    description: {_description(told)}",
        # Made anew each time: another map has other columns.
        f"    config: {{full_refresh: true, column_types: {_mapping(types)}}}",
    ]


def _description(told: str) -> str:
    # dbt reads it as a template, too.
    return template_text(raw(visible(told)))


def _told(asked: Asked) -> str:
    reads = asked.fitted.program.prepare.reads
    shown = ", ".join(reads[:_TOLD]) + (", ..." if len(reads) > _TOLD else "")
    return (
        f"{asked.told}. One row for each of {asked.relation.told}, computed of "
        f"{counted(len(reads), 'column')}: {shown}."
    )


def _said_of_columns(asked: Asked) -> dict[str, str]:
    names = asked.fitted.program.names
    said = {asked.key: f"The key of {asked.relation.told}", _DIGEST: "What made the row"}
    if asked.output == "array":
        said[asked.outputs[0]] = f"{counted(len(names), 'feature')}: {names[0]} ... {names[-1]}"
    for place, words in asked.fitted.program.words.items():
        said[asked.outputs[place]] = f"One of {', '.join(map(str, words))}"
    return said


def _rows_told(asked: Asked) -> str:
    parity = asked.parity
    rows = counted(len(parity.examples.keys), "row")
    whose = "made up" if parity.examples.inputs is not None else f"of {asked.relation.told}"
    all_there = parity.compared == len(asked.fitted.program.names)
    some = "" if all_there else f" (the first {parity.compared:,}, which a row has room for)"
    return f"{rows} {whose}, with what NumPy computes of them{some}, for {asked.name}_parity"


def _readme(asked: Asked) -> str:
    name, kind = asked.name, asked.fitted.kind
    return (
        f"`{name}` is sqlkrp {kind} `{asked.fitted.digest_[:12]}` of `{asked.relation.told}`: "
        f"{visible(asked.fitted.title)}.\n"
        f"Build and check it: `dbt build --select +{name} {name}_expected`; over another relation: "
        f"`{{{{ {name}(ref('other')) }}}}`.\n"
        f"Written by sqlkrp {__version__}: after a new {kind} write it again (`sqlkrp dbt ... "
        f"--replace`){_after(asked)}.\n"
    )


def _after(asked: Asked) -> str:
    return f", then `dbt build --full-refresh --select {asked.name}`" if asked.grows else ""


# --- a project of its own -------------------------------------------------------------------------

#: How dbt connects where nothing else is said, by dialect.
_PROFILES = {
    "duckdb": [
        "type: duckdb",
        "path: \"{{ env_var('DUCKDB_PATH', 'warehouse.duckdb') }}\"",
        "threads: 1",
    ],
    "postgres": [
        "type: postgres",
        "host: \"{{ env_var('PGHOST', 'localhost') }}\"",
        "port: \"{{ env_var('PGPORT', '5432') | as_number }}\"",
        "user: \"{{ env_var('PGUSER', 'postgres') }}\"",
        "password: \"{{ env_var('PGPASSWORD', '') }}\"",
        "dbname: \"{{ env_var('PGDATABASE', 'postgres') }}\"",
        "schema: \"{{ env_var('DBT_SCHEMA', 'public') }}\"",
        "threads: 1",
    ],
}


def dbt_project_files(asked: Asked) -> dict[str, str]:
    """A project around the model, and where it is known how dbt connects a profile."""
    name = asked.name
    files = {
        "dbt_project.yml": f"name: {name}\nversion: '1.0'\nprofile: {name}\n"
        "require-dbt-version: '>=1.10.0'\n"
    }
    profile = _PROFILES.get(asked.dialect.name)
    if profile is not None:
        items = "".join(f"      {line}\n" for line in profile)
        files["profiles.yml"] = f"{name}:\n  target: dev\n  outputs:\n    dev:\n{items}"
    return files
