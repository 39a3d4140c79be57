"""Fetch the data sets of the benchmarks from where they are public, as Parquet files.

    python -m benchmarks.fetch --to DIR [NAME ...]
    python -m benchmarks.fetch --list

Without names all sets are fetched. The files of a set are written whole, and only if their contents
have the SHA-256 sums that stand in ``benchmarks/public_data.py``; else none of them is. Nothing but
Python's own library fetches, and pip where a set is part of a package. DuckDB writes the files.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import http.client
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterable
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.public_data import DUCKDB, SETS, DataSet, Files
from sqlkrp.sql.names import text

__all__ = ["FetchError", "checksum", "fetch"]

_SECONDS = 60


class FetchError(Exception):
    """A set could not be had as it should be; nothing was written."""


def main() -> None:
    """Fetch the sets that are named, or list all."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fetch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: every set")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--to", type=Path, metavar="DIR", help="the folder to write into")
    what.add_argument("--list", action="store_true", help="say what there is and where")
    given = parser.parse_args()
    if unknown := set(given.names) - set(SETS):
        parser.error(f"{', '.join(sorted(unknown))}: use some of {', '.join(SETS)}")
    if given.list:
        print("\n".join(listed(given.names or SETS)))
        return
    try:
        for name in given.names or SETS:
            for path in fetch(SETS[name], given.to):
                print(f"wrote {path}")
    except FetchError as bad:
        sys.exit(f"error: {bad}")


def listed(names: Iterable[str]) -> Iterable[str]:
    """Lines for a person: each set with its files, where it is public and under which terms."""
    for name in names:
        files = ", ".join(f"{table}.parquet" for table in SETS[name].sums)
        yield f"{name}: {files}; {SETS[name].terms}"
        yield from (f"  {source}" for source in SETS[name].sources)


def fetch(wanted: DataSet, folder: Path) -> list[Path]:
    """Fetch a set into a folder, whole or not at all; the paths of what was not there before."""
    paths = {table: folder / f"{table}.parquet" for table in wanted.sums}
    for table, path in paths.items():
        if path.exists() and checksum(path) != wanted.sums[table]:
            raise FetchError(f"{path} is there already and holds something else: move it away")
    if all(path.exists() for path in paths.values()):
        return []
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
        made = {table: Path(name) / path.name for table, path in paths.items()}
        write(wanted, made)
        for table, path in made.items():
            if (found := checksum(path)) != wanted.sums[table]:
                raise FetchError(
                    f"{table} of {wanted.sources[0]} has the sum {found}, and not "
                    f"{wanted.sums[table]}: it is not the data that was measured"
                )
        for table, path in paths.items():
            os.replace(made[table], path)
    return list(paths.values())


def write(wanted: DataSet, paths: dict[str, Path]) -> None:
    """A set's tables as Parquet files, whatever they hold."""
    packed = [downloaded(source) for source in wanted.sources]
    try:
        files = {name: one for file in packed for name, one in unpacked(*file).items()}
        with duckdb.connect() as connection:
            wanted.read(files, connection)
            for table, path in paths.items():
                target = text(str(path), DUCKDB)
                connection.execute(f"COPY {table} TO {target} (FORMAT parquet, COMPRESSION zstd)")
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile, duckdb.Error) as bad:
        raise FetchError(
            f"{', '.join(wanted.sources)} cannot be read as before ({type(bad).__name__}: {bad})"
        ) from bad


def downloaded(source: str) -> tuple[str, bytes]:
    """A file's name and what it holds."""
    return by_url(source) if "://" in source else by_pip(source)


def by_url(url: str) -> tuple[str, bytes]:
    """The file at a URL; its name is the last part of that."""
    # Some servers refuse a client without a name.
    request = urllib.request.Request(url, headers={"User-Agent": "sqlkrp-benchmarks"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            content = answer.read()
    except (OSError, http.client.HTTPException) as bad:
        raise FetchError(
            f"{url} cannot be fetched ({bad}): try again, or fetch it by hand"
        ) from bad
    return urllib.parse.unquote(url.rpartition("/")[2]), content


def by_pip(package: str) -> tuple[str, bytes]:
    """The file of a package as PyPI has it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
        done = subprocess.run([*command, folder, package], capture_output=True, text=True)
        if done.returncode != 0:
            last = (done.stderr.strip() or "no word").splitlines()[-1]
            raise FetchError(f"pip cannot download {package} ({last})")
        (path,) = Path(folder).iterdir()
        return path.name, path.read_bytes()


def unpacked(name: str, content: bytes) -> Files:
    """The files of an archive, by the last parts of their names; those of archives in it, too."""
    if content[:2] == b"\x1f\x8b":
        return unpacked(re.sub(r"\.gz$", "", name), gzip.decompress(content))
    if content[:4] == b"PK\3\4":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            inside = {one.filename: archive.read(one) for one in archive.infolist()}
    elif content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            members = [(one, archive.extractfile(one)) for one in archive.getmembers()]
            inside = {one.name: file.read() for one, file in members if file is not None}
    else:
        return {name: content}
    return {
        last: data
        for path, packed in inside.items()
        for last, data in unpacked(path.rpartition("/")[2], packed).items()
    }


def checksum(path: Path) -> str:
    """SHA-256 of a table's names and values in order, however the Parquet file stores them.

    Numbers count as doubles, times as microseconds.
    """
    digest = hashlib.sha256()
    with duckdb.connect() as connection:
        columns = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchnumpy()
    for name, column in columns.items():
        values, missing = np.ma.getdata(column), np.ma.getmaskarray(column)
        digest.update(name.encode() + b"\0" + missing.tobytes())
        if values.dtype == object:
            digest.update("\0".join(np.where(missing, "", values)).encode())
        else:
            if np.issubdtype(values.dtype, np.datetime64):
                values = values.astype("<M8[us]").astype("int64")
            digest.update(np.where(missing, 0, values).astype("<f8").tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    main()
