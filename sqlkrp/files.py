"""Write files whole or not at all: under a temporary name beside the target, then renamed.

A process that is killed leaves its temporary behind. Its name says whose it was
(``.TARGET.sqlkrp-PID-N.part``), and the next write to the same target removes it.
"""

from __future__ import annotations

import contextlib
import csv
import fnmatch
import glob
import hashlib
import io
import itertools
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlkrp.errors import ParameterError, TargetExistsError
from sqlkrp.interrupts import interrupts_held
from sqlkrp.urls import File, Url

__all__ = [
    "csv_text",
    "own_folder",
    "own_number",
    "remove_dead",
    "require_free",
    "require_no_folder",
    "require_other_file",
    "require_place",
    "reserve",
    "told_written",
    "write_files",
    "write_folder",
    "write_whole",
    "writing_elsewhere",
]

_count = itertools.count()
# What this process is writing just now; anything else that bears its number is a leftover of an
# earlier process of the same number (in a container, numbers come again).
_in_use: set[Path] = set()
# When writing a folder failed that was not there before. Tasks of a cluster that still ran may put
# something there after that, for so many seconds; what comes later is another's.
_failures: dict[Path, float] = {}
_STRAGGLING = 10.0


@contextlib.contextmanager
def write_whole(target: Path, *, replace: bool) -> Iterator[Path]:
    """A path to write a file to; it becomes ``target`` if the block ends well, else is removed."""
    _require_file_name(target, replace=replace)
    with _part(target) as part:
        yield part
        with _publishing(target):
            if replace:
                os.replace(part, target)
            else:
                _publish_new(part, target)


def require_place(target: Path, *, replace: bool) -> None:
    """Raise an error if a file cannot be written there: before the work that it is to hold."""
    _require_file_name(target, replace=replace)
    _require_parent(target)
    with reserve(_own_beside(target)) as part:
        _require_writable(part)


def _require_file_name(target: Path, *, replace: bool) -> None:
    """Raise an error if this names no file, or one that is not to be replaced."""
    if target.is_dir() or not target.name:
        raise ParameterError(f"{str(target)!r} is a folder: give the name of a file in it")
    if target.exists() and not target.is_file():
        raise ParameterError(f"{str(target)!r} is no ordinary file: give the name of one")
    if not replace:
        require_free(target)


@contextlib.contextmanager
def write_folder(target: Path, own: re.Pattern[str], *, replace: bool) -> Iterator[Path]:
    """A folder to write files to; it becomes ``target`` if the block ends well, else is removed.

    A folder that exists is replaced only if the names of all that it holds match ``own``.
    """
    if target.exists() and not target.is_dir():
        raise ParameterError(f"{str(target)!r} is a file: give the name of a folder")
    if not target.name:
        raise ParameterError(f"{str(target)!r} cannot be made anew: give the name of a folder")
    held = [path.name for path in target.iterdir()] if target.is_dir() else []
    if held and not replace:
        require_free(target)
    foreign = [name for name in held if not own.fullmatch(name)]
    if foreign:
        raise TargetExistsError(
            f"{str(target)!r} holds {foreign[0]!r}, which is not of sqlkrp: choose another folder"
        )
    with _part(target) as part:
        part.mkdir()
        yield part
        with _publishing(target):
            _publish_folder(part, target, in_the_way=bool(held))


def write_files(
    folder: Path, texts: Mapping[str, str], own: Mapping[str, bool], *, replace: bool
) -> list[Path]:
    """Write files by their paths in a folder, which may hold others: none before all are whole.

    Those that are there as they would be written stay. Others are replaced on request, if they are
    our ``own``. Folders are made, and removed again if no file comes to be in them. The paths of
    the files that were written come back.
    """
    _require_folder(folder)
    changed = {}
    for name, text in texts.items():
        path = folder / name
        _require_folder(path.parent)
        _require_ordinary(path)
        if path.is_file() and path.read_bytes() == text.encode():
            continue
        if os.path.lexists(path) and replace and not own[name]:
            raise TargetExistsError(
                f"{str(path)!r} is there, and not of sqlkrp: choose another name, or move it away"
            )
        if not replace:
            require_free(path)
        changed[path] = text
    with _folders(folder, changed), interrupts_held(), contextlib.ExitStack() as writing:
        for path, text in changed.items():
            part = writing.enter_context(write_whole(path, replace=replace))
            part.write_bytes(text.encode())
    return list(changed)


def _require_folder(path: Path) -> None:
    """Raise ParameterError if what is there is no folder."""
    if os.path.lexists(path) and not path.is_dir():
        what = "a file" if path.exists() else "a link to nothing"
        raise ParameterError(
            f"{str(path)!r} is {what}, where a folder of files goes: move it away, or give the "
            "name of another folder"
        )


def _require_ordinary(path: Path) -> None:
    """Raise ParameterError if what is there is no file."""
    if os.path.lexists(path) and not path.is_file():
        what = "a folder" if path.is_dir() else "no ordinary file"
        what = what if path.exists() else "a link to nothing"
        raise ParameterError(
            f"{str(path)!r} is {what}, where a file goes: move it away, or write elsewhere"
        )


@contextlib.contextmanager
def _folders(root: Path, paths: Iterable[Path]) -> Iterator[None]:
    """A block that has the folders of files; those that stay empty are removed after it."""
    _require_parent(root)
    wanted = {root, *(path.parent for path in paths)}
    made = [one for one in sorted(wanted) if not one.exists()]
    try:
        for one in made:
            one.mkdir(exist_ok=True)
        yield
    finally:
        for one in reversed(made):
            with contextlib.suppress(OSError):  # it is not empty
                one.rmdir()


def remove_dead(folder: Path, name: re.Pattern[str]) -> bool:
    """Remove what is named so in a folder, if the process that the first group tells is gone.

    Whether there was anything.
    """
    found = False
    for path in folder.iterdir():
        match = name.fullmatch(path.name)
        if match and path not in _in_use and not _is_running(int(match[1])):
            _remove(path)
            found = True
    return found


@contextlib.contextmanager
def reserve(path: Path) -> Iterator[Path]:
    """A path that is this process's own for the length of a block, and is removed after it."""
    _in_use.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _in_use.discard(path)


@contextlib.contextmanager
def own_folder(what: str) -> Iterator[Path]:
    """The path of a folder for what is not kept, of this process; those of dead ones are removed.

    Who has something to put there creates it.
    """
    parent = Path(tempfile.gettempdir())
    remove_dead(parent, re.compile(rf"sqlkrp-{what}-(\d+)-\d+"))
    with reserve(parent / f"sqlkrp-{what}-{own_number()}") as folder:
        yield folder


def own_number() -> str:
    """A part of a temporary name that is this process's own, and is given out once."""
    return f"{os.getpid()}-{next(_count)}"


@contextlib.contextmanager
def _part(target: Path) -> Iterator[Path]:
    _require_parent(target)
    _remove_dead_of(target)
    with reserve(_own_beside(target)) as part:
        _require_writable(part)
        yield part


def _require_parent(target: Path) -> None:
    """Raise ParameterError if there is no folder that a file or folder could be in."""
    if not target.parent.is_dir():
        raise ParameterError(f"there is no folder {str(target.parent)!r} to write to: create it")


def _own_beside(target: Path) -> Path:
    """A path beside another that says whose it is, and of what."""
    return target.with_name(f".{_short_name(target)}.sqlkrp-{own_number()}.part")


def _remove_dead_of(target: Path) -> bool:
    """Remove what dead processes left beside a path, of which it was."""
    name = re.escape(_short_name(target))
    return remove_dead(target.parent, re.compile(rf"\.{name}\.sqlkrp-(\d+)-\d+\.part(\.old)?"))


def _short_name(target: Path) -> str:
    """Its name, or where that leaves no room for more (a file's has 255 bytes) a shorter one."""
    if len(target.name.encode()) <= 180:
        return target.name
    return f"{target.name[:40]}~{hashlib.sha256(target.name.encode()).hexdigest()[:12]}"


@contextlib.contextmanager
def writing_elsewhere(target: Path, unfinished: str) -> Iterator[None]:
    """A block in which another program writes a folder; a file beside it says for whom.

    If that was a process which is dead, and the folder holds only what is called ``unfinished``, it
    was cut off: what it left is removed, and what the other program put there after a failure that
    was told here. Where this machine has no such place nothing is done.
    """
    if not os.access(target.parent, os.W_OK):
        yield
        return
    held = {one.name for one in target.iterdir()} if target.is_dir() else set()
    cut_off = _remove_dead_of(target) or _is_of_a_failure(target)
    if cut_off and held <= {unfinished}:
        shutil.rmtree(target, ignore_errors=True)
    was_there = target.exists()
    with reserve(_own_beside(target)) as mark:
        mark.touch()
        try:
            yield
        except BaseException:
            if not was_there:
                _failures[target] = time.time()
            raise


def _is_of_a_failure(target: Path) -> bool:
    """Whether a folder was made by what still ran when its writing had failed here."""
    failed = _failures.pop(target, None)
    return failed is not None and target.exists() and target.stat().st_mtime < failed + _STRAGGLING


def _require_writable(part: Path) -> None:
    """Raise ParameterError unless there can be a file of this name, which only trying tells."""
    try:
        part.touch()
    except OSError as bad:
        raise ParameterError(
            f"the folder {str(part.parent)!r} cannot be written to ({bad.strerror}): choose another"
        ) from bad
    part.unlink()


def require_free(target: File, *, is_there: bool = False) -> None:
    """Raise TargetExistsError if there is something of this name, or it is known to be there."""
    if is_there or (isinstance(target, Path) and os.path.lexists(target)):
        raise TargetExistsError(
            f"{str(target)!r} exists already: choose another name, or replace it (replace=True)"
        )


def require_no_folder(source: File) -> None:
    """Raise ParameterError if what is to be read is a folder."""
    if isinstance(source, Path) and source.is_dir():
        raise ParameterError(
            f"{str(source)!r} is a folder: name a file in it, or several by a glob such as '*.csv'"
        )


def require_other_file(target: File, source: str | File) -> None:
    """Raise ParameterError if writing to ``target`` would overwrite a file that is read."""
    if isinstance(target, Url):
        overwrites = fnmatch.fnmatchcase(str(target), str(source)) or str(target) == str(source)
    else:
        read = [str(source), *glob.glob(str(source), recursive=True)]
        there = [one for one in read if target.exists() and os.path.exists(one)]
        overwrites = any(target.samefile(one) for one in there)
    if overwrites:
        raise ParameterError(f"{str(target)!r} is read by this: write to another file")


def told_written(target: File) -> str:
    """What an interrupt says of a file or folder that is whole already."""
    return f"{str(target)!r} was written before, and is there"


def _publishing(target: Path) -> contextlib.AbstractContextManager[None]:
    """A block, whole, that gives what was written its name; later interrupts say it is there."""
    return interrupts_held(told_written(target))


def _publish_folder(part: Path, target: Path, *, in_the_way: bool) -> None:
    """Give a folder its name; one that has it now is put back if that fails."""
    old = part.with_name(part.name + ".old")
    if in_the_way:
        target.rename(old)
    try:
        part.replace(target)
    except BaseException:
        if in_the_way:
            old.rename(target)
        raise
    _remove(old)


def _publish_new(part: Path, target: Path) -> None:
    # A hard link refuses an existing target, so that one written meanwhile is not lost.
    try:
        os.link(part, target)
    except FileExistsError:
        require_free(target)
    except OSError:
        os.replace(part, target)  # a file system without hard links


def _is_running(pid: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere there is no harmless way to ask
    if pid == os.getpid():
        return False  # it is not among those in use
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def csv_text(rows: Sequence[Sequence[Any]], end: str = "\n") -> str:
    """Rows as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows(rows)
    if end == "\n" and "\r" in text.getvalue():
        # Python (3.11) quotes only what ends its own lines, and readers end lines at these, too.
        return "".join(csv_text([row], "\r\n").removesuffix("\r\n") + "\n" for row in rows)
    return text.getvalue()
