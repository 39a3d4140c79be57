"""Write the two reference pages from the declarations that they describe.

    python docs/generate.py

``cli.md`` comes from the command line's parser, ``parameters.md`` from what maps declare of their
parameters and from their documentation. A test compares the pages with what this makes.
"""

from __future__ import annotations

import argparse
import inspect
import re
from pathlib import Path
from typing import Any

from sqlkrp.cli import parser
from sqlkrp.maps import CLASSES, MAPS, FeatureMap
from sqlkrp.maps.parameters import Parameter
from sqlkrp.maps.shared import SingleMap
from sqlkrp.options import MAP_OPTIONS, options_of_map, spelt

FOLDER = Path(__file__).parent
NOTE = "<!-- Written by python docs/generate.py. Edit the declarations, not this page. -->"

CLI_HEAD = """
# Commands and options

`sqlkrp COMMAND --help` prints the options of a command, `sqlkrp maps NAME` those of a map.

- **SOURCE** is a `.csv`, `.csv.gz`, `.tsv` or `.parquet` file, a glob of them or a URL, or a
  database with `--table`.
- **DB** is a database: a DuckDB file (`.duckdb`, `.ddb`, `.db`), a SQLite file (`.sqlite`,
  `.sqlite3`, or any that is one), `postgresql://...`, a Spark session (`local[2]`,
  `spark://...`, `sc://...`), or [what DuckDB attaches](engines.md#what-duckdb-attaches-and-reads)
  (`md:...`, `ducklake:...`, `s3://....duckdb`).
- **DEST** is `.csv`, `.csv.gz`, `-` for CSV on standard output, or from DuckDB `.parquet`; from
  Spark a folder of one of these names.
- **NAME** of a column is one name, matched exactly. An option that may be repeated takes one
  name each time.

A file of features that exists needs `--replace`. `featurize --replace` also replaces the map beside
it. A map that you named (`--map-file`, `draw -o`) may be what a model was trained with. It stays
unless it is equal, or `--replace-map` is given. A file that is no map is never replaced by one.

An error is one line, and exit code 2. `verify` and `inspect` have exit code 1 where they find
something: a difference, no rows at all, or a statement over a limit. Every command has `--help`
(`-h`), and `--quiet` (`-q`), which prints nothing but errors.

In Python an option has the same name with underscores, but for these: `--to` is the target of
`Database.export`, `--replace` is `replace=True`, `--components-only` is `FeatureMap.select`,
`--memory-limit` and `--threads` are of `sqlkrp.connect`, `--map` is the class, `--ensemble` is
`Ensemble`, and `--seed` is `random_state`, whose default in Python is None: another draw each time.
The names of the [options of maps](#options-of-maps) are said with each.
"""

PARAMETERS_HEAD = """
# Parameters of every map

Each entry has the name in Python, its default, and its option on the command line. What the maps
are for, and how to choose one, is in [maps.md](maps.md). `python -m pydoc sqlkrp.KRP` prints the
text of one map in a terminal.
"""

SHARED_HEAD = """
What is done to columns before a map reads them, and the seed. `Ensemble` and `Chain` leave the
columns to the maps that they are made of.
"""


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """The generated pages, by file name."""
    return {"cli.md": cli(), "parameters.md": parameters()}


# --- commands -----------------------------------------------------------------------------------


def cli() -> str:
    """The reference of commands and options."""
    parts = [NOTE, CLI_HEAD.strip()]
    for name, one in _commands().items():
        parts += [f"## sqlkrp {name}", plain(str(one.description)), _command(one)]
    parts += ["## Options of maps", _map_options()]
    return "\n\n".join(parts) + "\n"


def _commands() -> dict[str, argparse.ArgumentParser]:
    whole = parser()
    (commands,) = (one for one in whole._actions if isinstance(one, argparse._SubParsersAction))
    return dict(commands.choices)


def _command(one: argparse.ArgumentParser) -> str:
    example = str(one.epilog).removeprefix("example: ")
    parts = [f"```text\n{one.usage}\n```", f"```sh\n{example}\n```"]
    for group in one._action_groups:
        shown = [action for action in group._group_actions if _is_shown(action)]
        if shown:
            parts.append(f"**{group.title}**")
            parts.append("\n".join(map(_option, shown)))
        if any(action.dest == "kind" and action.option_strings for action in shown):
            parts.append("Also the [options of maps](#options-of-maps).")
    return "\n\n".join(parts)


def _is_shown(action: argparse.Action) -> bool:
    """Whether it is one of the command's own options; those of maps have a section of theirs."""
    of_every_command = action.dest in ("help", "quiet")
    of_maps = action.dest.removeprefix("map_") in {one.name for one in MAP_OPTIONS.values()}
    return not (of_every_command or of_maps or action.help == argparse.SUPPRESS)


def _option(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {action.metavar}"
    names = ", ".join(f"`{name}{value}`" for name in action.option_strings)
    return f"- {names or f'`{action.metavar}`'}: {plain(str(action.help))}"


def _map_options() -> str:
    lines = [
        "Of `sqlkrp featurize` and `sqlkrp draw`, with the parameter that each one is in Python "
        "and its default.",
        "\n".join(_map_option(name, option) for name, option in MAP_OPTIONS.items()),
    ]
    return "\n\n".join(lines)


def _map_option(option: str, one: Parameter) -> str:
    maps = {kind: options_of_map(kind) for kind in MAPS}
    of_maps = {kind: options[option] for kind, options in maps.items() if option in options}
    allowed = {kind: other.check.told(spelt) for kind, other in of_maps.items()}
    defaults = {kind: f"`{spelt(other.default)}`" for kind, other in of_maps.items()}
    value = "" if one.check.reads is bool else f" {one.metavar}"
    told = ": ".join(filter(None, [one.meaning, _by_map(allowed)]))
    of = "" if len(of_maps) == len(MAPS) else f" Of {', '.join(of_maps)}."
    return f"- `--{option}{value}` (`{one.name}`): {plain(told)}.{of} Default: {_by_map(defaults)}."


def _by_map(told: dict[str, str]) -> str:
    """One text where all maps have the same; else each one, and the maps that have it."""
    maps_of: dict[str, list[str]] = {}
    for kind, text in told.items():
        maps_of.setdefault(text, []).append(kind)
    if len(maps_of) == 1:
        return next(iter(maps_of))
    return "; ".join(f"{text} ({', '.join(kinds)})" for text, kinds in maps_of.items())


# --- parameters ---------------------------------------------------------------------------------


def parameters() -> str:
    """The reference of the maps' parameters."""
    names = {one: kind for kind, one in MAPS.items()}
    shared = "\n".join(map(_parameter, SingleMap.declared.values()))
    parts = [NOTE, PARAMETERS_HEAD.strip(), "## All maps", SHARED_HEAD.strip(), shared]
    ordered = [*MAPS.values(), *(one for one in CLASSES.values() if one not in names)]
    for one in ordered:
        about, after = documentation(one)
        command = f"`--map {names[one]}`\n\n" if one in names else ""
        parts += [f"## {one.__name__}", command + _text(about)]
        own = [of for of in one.declared.values() if SingleMap.declared.get(of.name) != of]
        parts.append("\n".join(map(_parameter, own)))
        if issubclass(one, SingleMap):
            parts.append("Also those of [all maps](#all-maps).")
        parts.append(_text(after))
    return "\n\n".join(part for part in parts if part) + "\n"


def documentation(one: type[FeatureMap]) -> tuple[str, str]:
    """A map's documentation around its parameters: what it is, and its references."""
    text = inspect.cleandoc(one.__doc__ or "").partition(">>>")[0].strip()
    about, _, rest = text.partition("\n\nParameters\n----------\n")
    return about, rest.partition("\n\n")[2]


def _parameter(one: Parameter) -> str:
    default = f" = `{_written(one.default)}`" if one.has_default else ""
    option = "seed" if one.name == "random_state" else one.option
    is_option = option in MAP_OPTIONS or option == "seed"
    told = f" (`--{option}`)" if is_option else ""
    meaning = one.text(lambda value: f"``{_written(value)}``")
    return f"- **`{one.name}`**{default}{told}: {plain(meaning)}."


def _written(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


# --- text ---------------------------------------------------------------------------------------


def _text(text: str) -> str:
    """Paragraphs as Markdown; what is indented stays as it is written."""
    blocks = text.split("\n\n")
    return "\n\n".join(block if block.startswith("    ") else plain(block) for block in blocks)


def plain(text: str) -> str:
    """A text of documentation or help as Markdown: its code, its links, its signs."""
    text = re.sub(r":class:`(\w+)`", r"[\1](#\1)", text)
    text = re.sub(r":\w+:`(\w+)`", r"``\1``", text)
    parts = re.split(r"``(.+?)``", text)
    parts[::2] = [re.sub(r"<(?=\S)", r"\\<", part) for part in parts[::2]]
    parts[1::2] = [f"`{part}`" for part in parts[1::2]]
    return re.sub(r"\(#(\w+)\)", lambda link: link[0].lower(), "".join(parts))


if __name__ == "__main__":
    main()
