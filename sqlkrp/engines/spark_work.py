"""Work that executors do: batches of Arrow in, and out what was found, pickled."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from sqlkrp.engines.session import Streamed, Work
from sqlkrp.errors import SqlkrpError

__all__ = ["FOUND", "added_up", "found_in_rows", "unpacked"]

#: What the batches are that go out.
FOUND = "found binary"


def found_in_rows(
    work: Work, size: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What work finds in the rows of a task, of which it is given so many at a time."""
    rows = (
        _streamed(batch.slice(first, size))
        for batch in batches
        for first in range(0, batch.num_rows, size)
    )
    return _packed(work.over(rows))


def added_up(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What several tasks found, added up."""
    found = (unpacked(one.as_py()) for batch in batches for one in batch.column(0))
    return _packed(work.added(found))


def unpacked(packed: bytes) -> Any:
    """What was found, or raise the error that was."""
    found = pickle.loads(packed)  # noqa: S301 - by the same program
    if isinstance(found, SqlkrpError):
        raise found
    return found


def _packed(found: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    try:
        with np.errstate(all="ignore"):
            for one in found:
                yield _batch(one)
    except SqlkrpError as bad:  # which is raised where the user is
        yield _batch(bad)


def _batch(found: Any) -> pa.RecordBatch:
    packed = pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)
    return pa.RecordBatch.from_arrays([pa.array([packed], pa.binary())], ["found"])


def _streamed(batch: pa.RecordBatch) -> Streamed:
    numbers, *texts = batch.columns
    values = numbers.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(batch.num_rows, -1), [one.to_numpy(zero_copy_only=False) for one in texts]
