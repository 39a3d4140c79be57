"""The NumPy twin over batches of Arrow: what runs where the rows are.

It needs numpy and pyarrow, and of sqlkrp the stages alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from sqlkrp.stages import Array, Program

__all__ = ["batches_of_features"]

# Rows in memory with all that lies between their inputs and their features.
_ROWS_AT_ONCE = 2_000


def batches_of_features(
    program: Program, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Batches whose last column, an array of inputs, has become one of features."""
    for batch in batches:
        for first in range(0, batch.num_rows, _ROWS_AT_ONCE):
            rows = batch.slice(first, _ROWS_AT_ONCE)
            *kept, inputs = rows.columns
            values = inputs.flatten().to_numpy(zero_copy_only=False)
            features = program.apply(values.reshape(rows.num_rows, -1))
            names = [*batch.schema.names[:-1], "a"]
            yield pa.RecordBatch.from_arrays([*kept, _lists(features)], names)


def _lists(features: Array) -> pa.Array:
    """Rows as lists; a row without features is NULL."""
    count, width = features.shape
    ends = pa.array(np.arange(count + 1, dtype="int32") * width)
    missing = np.isnan(features).any(axis=1)
    return pa.ListArray.from_arrays(ends, pa.array(features.ravel()), mask=pa.array(missing))
