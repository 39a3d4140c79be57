"""How what is typed is read: paths, names and numbers."""

from __future__ import annotations

import argparse
import csv
import re

from sqlkrp.urls import File, as_file, is_url

__all__ = [
    "counts",
    "degrees",
    "file_or_table",
    "names",
    "numbers",
    "path",
    "path_to_write",
    "three_names",
]


def path(value: str) -> str:
    """A path that is not empty, as that would be the folder that the command runs in."""
    if not value:
        raise argparse.ArgumentTypeError("the name is empty: give one")
    return value


def path_to_write(value: str) -> str:
    """The path of what is not written to standard output, as features are."""
    if value == "-":
        raise argparse.ArgumentTypeError("this is not written to standard output: give a name")
    return path(value)


def file_or_table(name: str) -> File | str:
    """What is named so: a file, if it is a URL or ends as files do."""
    is_file = is_url(name) or name.lower().endswith((".csv", ".csv.gz", ".tsv", ".parquet"))
    return as_file(name) if is_file else name


_LARGEST_NUMBER = 9_999_999


def numbers(value: str, such_as: str = "0-99,120") -> list[int]:
    """Numbers and ranges of them, such as 0-99,120."""
    found: list[int] = []
    for part in value.split(","):
        match = re.fullmatch(r"(\d{1,99})(?:-(\d{1,99}))?", part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise argparse.ArgumentTypeError(f"{part!r} is no number or range, such as {such_as}")
        if last > _LARGEST_NUMBER:
            raise argparse.ArgumentTypeError(
                f"{part!r} is too large: use numbers up to {_LARGEST_NUMBER:,}, such as {such_as}"
            )
        found += range(first, last + 1)
    return found


def counts(value: str) -> list[int]:
    """Numbers of features, such as 100,200,500."""
    return numbers(value, "100,200,500")


def degrees(value: str) -> list[int]:
    """Degrees, such as 1,2,3."""
    return numbers(value, "1,2,3")


def names(value: str) -> list[str]:
    """Names separated by commas; one that holds a comma stands in double quotes."""
    try:
        (found,) = csv.reader([value], skipinitialspace=True, strict=True) if value else ([],)
    except (csv.Error, ValueError):
        found = []
    if not all(found) or not found:
        raise argparse.ArgumentTypeError("name columns, such as height,width or 'a,\"b,c\"'")
    return found


def three_names(value: str) -> tuple[str, ...]:
    """The columns of sparse input."""
    three = tuple(names(value))
    if len(three) != 3:
        raise argparse.ArgumentTypeError("name three columns, such as row,feature,value")
    return three
