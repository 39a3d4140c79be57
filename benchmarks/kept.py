"""Measured numbers in a file of JSON lines, so that a run that was stopped goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measuring import git

__all__ = ["Kept"]


class Kept:
    """What was measured, by what it was measured of; each line names its commit."""

    def __init__(self, path: Path, *, closed: bool = False) -> None:
        self.path, self._closed = path, closed
        self._found: dict[str, dict[str, Any]] = {}
        self._commit = git("rev-parse", "--short", "HEAD") or "no commit"
        if path.exists():
            for line in path.read_text().splitlines():
                one = json.loads(line)
                self._found[_key(one["of"])] = one

    def find(self, of: dict[str, Any]) -> dict[str, Any] | None:
        """What was measured of something, if it was."""
        one = self._found.get(_key(of))
        return one["found"] if one else None

    def add(self, of: dict[str, Any], found: dict[str, Any]) -> None:
        """Keep what was measured, now."""
        line = {"of": of, "found": found, "commit": self._commit}
        self._found[_key(of)] = line
        self.path.parent.mkdir(exist_ok=True, parents=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def get(self, of: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What was measured of something before, or is now; nothing if no more is measured."""
        found = self.find(of)
        if found is None and self._closed:
            return {}
        if found is None:
            found = measure()
            self.add(of, found)
        return found

    @property
    def commits(self) -> list[str]:
        """At which lines were measured."""
        return sorted({line["commit"] for line in self._found.values()})


def _key(of: dict[str, Any]) -> str:
    return json.dumps(of, sort_keys=True)
