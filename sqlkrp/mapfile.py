"""A fitted map as one JSON file, with a digest of its content.

The file holds parameters, columns and statistics as plain JSON, and each table as compressed
bytes. The stored tables are the truth: loading builds the stages from them and draws nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlkrp.errors import (
    InconsistentMapError,
    MapFileError,
    ParameterError,
    TargetExistsError,
)
from sqlkrp.stages import RECORDS, Category, Program, Stage

__all__ = [
    "FORMAT_VERSION",
    "Content",
    "digest",
    "dumps",
    "glance",
    "kind_in",
    "loads",
    "require_map_or_empty",
    "same_map",
]

FORMAT = "sqlkrp map"
FORMAT_VERSION = 3
# How the file of a map begins: of every format, and where its end is missing.
_BEGINNING = re.compile(rb'\s*\{[^{]*"format":\s*"sqlkrp map"')

_DTYPES = ("int8", "int32", "float32", "float64")
# A map file may come from anywhere: an array that claims more than this is refused unread.
_MAX_ARRAY_BYTES = 1 << 32


@dataclass(frozen=True)
class Content:
    """What a map file holds: a program, and how it came to be, as plain data."""

    map: str
    """The name of the map's class."""
    parameters: dict[str, Any]
    """Those it was drawn with; a map among them as its name and its parameters."""
    seed: int
    left_out: dict[str, str]
    label: str | None
    taken: dict[str, dict[str, Any]]
    """What was taken for parameters that are ``"auto"``, and why."""
    program: Program


class Restored(Protocol):
    """A map that can become the one that a file holds."""

    def restore(self, content: Content) -> None:
        """Take a file's content, whose parameters it was made with."""


SomeMap = TypeVar("SomeMap", bound=Restored)
Kinds = Mapping[str, Callable[..., SomeMap]]


def digest(program: Program) -> str:
    """SHA-256 of all that determines the features: columns, statistics, tables and names."""
    return _sha256(_program_content(program, _array_facts))


def dumps(content: Content, version: str) -> str:
    """The text of a map file."""
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "sqlkrp": version,
        "digest": digest(content.program),
        "map": content.map,
        "parameters": content.parameters,
        "seed": content.seed,
        "left_out": content.left_out,
        "label": content.label,
        "taken": content.taken,
        **_program_content(content.program, _array_text),
    }
    document["checksum"] = _sha256(document)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def loads(text: str, kinds: Kinds[SomeMap], where: str) -> SomeMap:
    """A fitted map from the text of a map file; ``kinds`` are the maps by name."""
    document = _parse(text, where)
    # Of the file's own words, so that a map keeps its digest when a later version of the library
    # gives its class another parameter.
    checksum = document.pop("checksum", None)
    if checksum != _sha256(document):
        raise MapFileError(f"{where} was changed after it was saved: restore it, or draw it again")
    if isinstance(document.get("map"), str) and document["map"] not in kinds:
        raise MapFileError(
            f"{where} holds a map {document['map']!r}, which this sqlkrp does not know: use the "
            "sqlkrp that wrote it"
        )
    try:
        content = _content(document)
        fitted = unfitted(content.map, content.parameters, kinds)
        fitted.restore(content)
        same = digest(content.program) == document["digest"]
    except InconsistentMapError as bad:
        raise MapFileError(
            f"{where} is damaged (the map is not consistent: {bad.what}): restore it, or draw it "
            "again"
        ) from bad
    except (MapFileError, ParameterError, OverflowError) as bad:
        raise MapFileError(f"{where} is damaged ({bad}): restore it, or draw it again") from bad
    except (
        LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError
    ) as bad:  # fmt: skip
        raise MapFileError(
            f"{where} is damaged (a part is missing or malformed): restore it, or draw it again"
        ) from bad
    if not same:
        raise MapFileError(f"{where} holds another map than its digest says: draw it again")
    return fitted


def glance(text: str) -> tuple[str, list[str]] | None:
    """The digest and the columns that a map file gives, unchecked; None if it gives none."""
    try:
        document = _parse(text, "it")
        seen, columns = document["digest"], document["stages"][0]["columns"]
    except (MapFileError, LookupError, TypeError):
        return None
    whole = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    return (seen, columns) if whole else None


def kind_in(path: Path) -> str | None:
    """What a file says that it holds, unchecked: the name of a class; None if it says nothing."""
    try:
        kind = _parse(path.read_text(encoding="utf-8"), "it").get("map")
    except (MapFileError, OSError, ValueError):
        return None
    return kind if isinstance(kind, str) else None


def require_map_or_empty(path: Path) -> None:
    """Raise TargetExistsError if a file of this name is neither a map, be it damaged, nor empty."""
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb") as file:
        beginning = file.read(1000)
    if not _BEGINNING.match(beginning):
        raise TargetExistsError(
            f"{str(path)!r} exists already, and is no map, which alone a map replaces: give the "
            "map another name, or remove that file"
        )


# Statistics are averages, whose last bits depend on the order that an engine adds in.
_STATISTICS = 1e-6


def same_map(one: Content, other: Content) -> bool:
    """Whether two maps have the same label, parameters and tables, and statistics to 1e-6."""
    programs = (_program_content(content.program, lambda array: array) for content in (one, other))
    alike = one.map == other.map and one.label == other.label
    return alike and one.parameters == other.parameters and _close(*programs)


def _close(one: Any, other: Any) -> bool:
    """Whether two parts of maps are equal; floating-point numbers nearly."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.dtype.kind != "f":
            return np.array_equal(one, other)
        # A mean that is zero but for rounding is compared with the others.
        least = 1e-6 * _STATISTICS * float(np.abs(one).max(initial=0.0))
        return np.allclose(one, other, rtol=_STATISTICS, atol=least, equal_nan=True)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_STATISTICS)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_close, one, other))
    return type(one) is type(other) and bool(one == other)


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as bad:
        raise MapFileError(
            f"{where} is not a whole sqlkrp map (not valid JSON; truncated?): "
            "restore it, or draw it again"
        ) from bad
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise MapFileError(f"{where} is not a sqlkrp map: give a file written by sqlkrp")
    version = document.get("format_version")
    if type(version) is not int:
        raise MapFileError(f"{where} does not say its format: draw the map again")
    if version < FORMAT_VERSION:
        raise MapFileError(
            f"{where} has map format {version}, of before the first release, and this sqlkrp reads "
            f"{FORMAT_VERSION}: draw the map again"
        )
    if version > FORMAT_VERSION:
        raise MapFileError(
            f"{where} has map format {version}, and this sqlkrp reads up to {FORMAT_VERSION}: "
            "upgrade sqlkrp"
        )
    return document


def _program_content(program: Program, encode: Callable[[NDArray[Any]], Any]) -> dict[str, Any]:
    return {
        "names": list(program.names),
        "stages": [_stage_content(stage, encode) for stage in program.stages],
    }


def _stage_content(stage: Stage, encode: Callable[[NDArray[Any]], Any]) -> dict[str, Any]:
    kind = next(name for name, one in RECORDS.items() if type(stage) is one)
    content: dict[str, Any] = {"stage": kind}
    for part in fields(stage):
        value = getattr(stage, part.name)
        # What files of before do not have is written where there is something: a digest stays.
        is_new = "new" in part.metadata and value == part.default
        if part.init and not is_new:
            content[part.name] = _part_content(value, encode)
    return content


def _part_content(value: Any, encode: Callable[[NDArray[Any]], Any]) -> Any:
    """A part of a stage: a table, a plain value, or lists of stages."""
    if isinstance(value, np.ndarray):
        return encode(value)
    if isinstance(value, Stage):
        return _stage_content(value, encode)
    if isinstance(value, Category):
        value = value.stored
    if isinstance(value, (list, tuple)):
        return [_part_content(one, encode) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def unfitted(name: str, parameters: dict[str, Any], kinds: Kinds[SomeMap]) -> SomeMap:
    """A map of this name; one that is a parameter is written as the outermost is."""

    def value_of(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(value_of, value))
        if isinstance(value, dict) and value.keys() >= {"map", "parameters"}:
            return unfitted(value["map"], value["parameters"], kinds)
        return value

    if name not in kinds:
        raise MapFileError(f"it holds a {name!r}, which this sqlkrp does not know")
    return kinds[name](**{key: value_of(value) for key, value in parameters.items()})


def _content(document: dict[str, Any]) -> Content:
    stages = tuple(_stage(content) for content in document["stages"])
    return Content(
        map=document["map"],
        parameters=document["parameters"],
        seed=int(document["seed"]),
        left_out=dict(document["left_out"]),
        label=document["label"],
        taken=document["taken"],
        program=Program(stages, tuple(document["names"])),
    )


def _stage(content: dict[str, Any]) -> Stage:
    values = {key: _decode(value) for key, value in content.items() if key != "stage"}
    return RECORDS[content["stage"]](**values)


def _array_facts(array: NDArray[Any]) -> dict[str, Any]:
    # Hashing the raw bytes makes the digest independent of how they were compressed.
    raw = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    sha = hashlib.sha256(raw).hexdigest()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "sha256": sha}


def _array_text(array: NDArray[Any]) -> dict[str, Any]:
    raw = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    data = base64.b64encode(zlib.compress(raw, 6)).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "zlib_base64": data}


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_decode, value))
    if not isinstance(value, dict):
        return value
    if "stage" in value:
        return _stage(value)
    shape = tuple(value["shape"])
    if value["dtype"] not in _DTYPES or not all(type(n) is int and n >= 0 for n in shape):
        raise MapFileError("an array of another type or shape")
    size = math.prod(shape) * np.dtype(value["dtype"]).itemsize
    if size > _MAX_ARRAY_BYTES:
        raise MapFileError("an array too large to be true")
    try:
        unpack = zlib.decompressobj()
        raw = unpack.decompress(base64.b64decode(value["zlib_base64"], validate=True), size + 1)
    except (zlib.error, binascii.Error) as bad:
        raise MapFileError("an array that cannot be unpacked") from bad
    if len(raw) != size:
        raise MapFileError("an array of another size than it says")
    dtype = np.dtype(value["dtype"]).newbyteorder("<")
    return np.frombuffer(raw, dtype=dtype).reshape(shape).astype(value["dtype"])


def _sha256(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
