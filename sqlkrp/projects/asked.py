"""What a project is asked to hold of a map or a model: its statement, its columns, its examples."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlkrp.errors import ParameterError, visible
from sqlkrp.files import csv_text
from sqlkrp.maps.fitted import Fitted
from sqlkrp.projects.examples import Examples
from sqlkrp.projects.parity import Parity, parity_of
from sqlkrp.projects.relation import Relation, require_plain
from sqlkrp.sql.facts import Dialect
from sqlkrp.sql.jinja import mark, templated
from sqlkrp.sql.names import quote
from sqlkrp.sql.options import Options
from sqlkrp.sql.statement import Statement

__all__ = ["Asked"]

_TABLE = "table"
_GIVEN, _MADE = "sqlkrp_given", "sqlkrp_made"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,50}", re.ASCII)
_TAKEN = {
    "null", "none", "true", "false", "yes", "no", "on", "off", "y", "n", "not", "ref", "source",
    "config", "this", "target", "model", "var", "env_var", "log", "adapter", "graph", "builtins",
    "execute", "run_query", "statement", "return", "exceptions", "schema", "database",
    "is_incremental",
}  # fmt: skip
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_ ]*(\(\d+(, ?\d+)?\))?[A-Za-z ]*", re.ASCII)


def _require_name(name: str) -> None:
    """Raise ParameterError unless models, macros and files can be called so."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParameterError(
            f"name={name!r} is not allowed: a model is called by at most 51 letters, digits and _, "
            "and begins with no digit"
        )
    if name.lower() in _TAKEN:
        raise ParameterError(f"name={name!r} means something else to YAML or dbt: use another")


@dataclass(frozen=True)
class Asked:
    """A map or a model as a model of a project."""

    fitted: Fitted
    name: str
    relation: Relation
    key: str
    key_type: str
    dialect: Dialect
    options: Options
    examples: Examples
    grows: bool
    """Whether a run adds the rows that are new."""

    def __post_init__(self) -> None:
        _require_name(self.name)
        require_plain("key", self.key)
        if self.fitted.digest_[:12] in self.key:  # names of side tables begin so
            raise ParameterError(f"key={self.key!r} holds the {self.fitted.kind}'s own digest")
        if not _TYPE.fullmatch(self.key_type):
            raise ParameterError(
                f"key_type={self.key_type!r} is not allowed: name a type, such as BIGINT or "
                "VARCHAR(20)"
            )
        if self.options.output == "bits":
            raise ParameterError(
                "output='bits' has no numbers that a test could compare: use array or columns"
            )
        if self.relation.parts and self.relation.parts[-1].lower() == self.name.lower():
            raise ParameterError(
                f"name={self.name!r} is that of the table that is read: name the model otherwise"
            )
        for name in self.outputs:
            require_plain("column", name)
        most = self.dialect.max_identifier_bytes
        for seed in self.seeds.values():
            if most is not None and len(seed) > most:
                raise ParameterError(
                    f"name={self.name!r} makes a seed {seed!r}, and {self.dialect.name} cuts names "
                    f"after {most}: use a name with {len(seed) - most} letters fewer"
                )

    @cached_property
    def statement(self) -> Statement:
        """The statement, in which a mark stands for the table that is read."""
        return self.fitted.statement_over(mark(_TABLE), self.options, self.dialect)

    @property
    def seeds(self) -> dict[str, str]:
        """What side tables are called in the project, by their own names."""
        # What tells two statements of one model apart: a project has one of each.
        beginning = f"{self.fitted.digest_[:12]}_{self.fitted.token}"
        tables = self.statement.side_tables
        return {one: f"{self.name}_{one.removeprefix(beginning)}" for one in tables}

    def over(
        self, relation: str, seed: Callable[[str], str], fill: Callable[..., str] = templated
    ) -> str:
        """The statement over a relation, as a template; ``seed`` names a side table's seed."""
        sql, pieces = self.statement.text, {_TABLE: relation}
        for own, called in self.seeds.items():
            sql = sql.replace(quote(own, self.dialect), mark(called))
            pieces[called] = seed(called)
        return fill(sql, pieces)

    def seed_files(self) -> dict[str, str]:
        """The seeds as files, by their paths."""
        files = {f"seeds/{self.name}_expected.csv": self.parity.seed}
        for own, columns in self.statement.side_tables.items():
            rows = zip(*(array.tolist() for array in columns.values()), strict=True)
            files[f"seeds/{self.seeds[own]}.csv"] = csv_text([list(columns), *rows])
        return files

    def side_types(self) -> dict[str, dict[str, str]]:
        """The types of the columns of side tables, by the names of their seeds."""
        types = self.dialect.side_table_types
        return {
            self.seeds[own]: {name: types[array.dtype.name] for name, array in columns.items()}
            for own, columns in self.statement.side_tables.items()
        }

    def differing(
        self, model: str, made: Callable[[str], str], seed: str, share: str
    ) -> tuple[str, dict[str, str]]:
        """The SELECT of the rows that are said otherwise, with marks, and what these stand for.

        That is said by the ``model``, or of made-up rows by the statement as it is ``made`` over a
        relation.
        """
        parity = self.parity
        pieces = {"model": model, "seed": seed, "share": share, "made": made(_GIVEN)}
        told = f"-- Rows that are missing, or that {visible(self.told)} says otherwise.\n"
        if parity.examples.inputs is None:
            return told + parity.differing(mark("model"), mark("seed"), mark("share")), pieces
        given = parity.given(mark("seed"))
        told += f"WITH {_GIVEN} AS (\n{given}\n),\n{_MADE} AS (\n{mark('made')}\n)\n"
        return told + parity.differing(_MADE, mark("seed"), mark("share")), pieces

    @property
    def outputs(self) -> tuple[str, ...]:
        """The columns that are computed."""
        return self.statement.columns[self.statement.n_kept :]

    @property
    def output(self) -> str:
        """How features are written."""
        return self.fitted.query("", self.options).decided(self.dialect).options.output

    @property
    def types(self) -> dict[str, str]:
        """The type of each column of the statement."""
        dialect, program = self.dialect, self.fitted.program
        number, words = dialect.float_types[program.prepare.dtype], program.words
        key = {self.key: self.key_type}
        if self.output == "array":
            return key | {self.outputs[0]: dialect.array_of(number, len(program.names))}
        return key | {
            name: _type_of(words[place], dialect) if place in words else number
            for place, name in enumerate(self.outputs)
        }

    @cached_property
    def parity(self) -> Parity:
        """The comparison with the twin."""
        return parity_of(
            self.examples, self.fitted.program, self.key, self.outputs, self.output, self.dialect
        )

    @property
    def told(self) -> str:
        """What it is, in one line."""
        what = f"sqlkrp {self.fitted.kind} {self.fitted.digest_}"
        return f"{what}: {self.fitted.title}"


def _type_of(words: tuple[Any, ...], dialect: Dialect) -> str:
    """The type of what is said in words."""
    whole = dialect.side_table_types["int32"]
    is_large = any(isinstance(one, int) and abs(one) >= 2**31 for one in words)
    types = {
        str: dialect.text_type,
        bool: dialect.truth_type,
        int: dialect.whole_type if is_large else whole,
        float: dialect.float_types["float64"],
    }
    return types[type(words[0])]
