"""Maps that are in files already: kept where one is drawn again, and pointed at."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from sqlkrp.errors import MapFileError, TargetExistsError
from sqlkrp.mapfile import glance, same_map
from sqlkrp.maps import FeatureMap
from sqlkrp.models import load

__all__ = ["another_map_beside", "kept_map", "require_map_or_nothing", "used_again"]

# For a hint, no more is read than is read at once.
_MOST_FILES = 50
_MOST_BYTES = 32_000_000

_CURES = "give the new map another name, or replace this one (--replace-map)"


def require_map_or_nothing(path: Path) -> None:
    """Raise TargetExistsError if there is a file of this name that is no map: before the work."""
    if path.is_file():
        _read(path)


def kept_map(path: Path, drawn: FeatureMap) -> FeatureMap | None:
    """The map of a file that is there, if it is equal to the one drawn; None if there is no file.

    TargetExistsError if it is another one: features of one map are no input of a model of another.
    """
    if not path.is_file():
        return None
    found = _read(path)
    if not same_map(found.content(), drawn.content()):
        raise TargetExistsError(
            f"{str(path)!r} holds another map (digest {found.digest_[:12]}; the one drawn has "
            f"{drawn.digest_[:12]}): {_CURES}, or use it as it is (featurize --use)"
        )
    return found


def _read(path: Path) -> FeatureMap:
    try:
        found: FeatureMap = load(path)
        return found
    except MapFileError as bad:
        raise TargetExistsError(f"{str(path)!r} exists already ({bad}): {_CURES}") from bad


def another_map_beside(target: Path, drawn: FeatureMap) -> str | None:
    """The path of another map of these columns in the folder where one is written, or None."""
    wanted = sorted(drawn.program.prepare.columns)
    for path in _map_files(target.parent):
        if path.name == target.name:
            continue
        try:
            seen = glance(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # it is not the one to speak of
        if seen and seen[0] != drawn.digest_ and sorted(seen[1]) == wanted:
            return str(path)
    return None


def _map_files(folder: Path) -> list[Path]:
    """The folder's map files that are soon read, the newest first."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".map.json") and entry.is_file():
                    about = entry.stat()
                    if about.st_size <= _MOST_BYTES:
                        found.append((about.st_mtime, folder / entry.name))
    except OSError:
        return []
    return [path for _, path in sorted(found, reverse=True)[:_MOST_FILES]]


def used_again(path: str) -> str:
    """The command that computes a map's features of other data."""
    return f"sqlkrp featurize NEW --use {shlex.quote(path)} --to ..."
