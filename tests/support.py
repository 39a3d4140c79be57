"""What several test files use."""

import numpy as np
import pandas as pd


def dyadic(rows: int, columns: int, seed: int = 0, names=None) -> pd.DataFrame:
    """Multiples of 1/8: every sum and product of a few is exact in DOUBLE."""
    values = np.random.default_rng(seed).integers(-40, 41, (rows, columns)) / 8
    return pd.DataFrame(values, columns=names or [f"c{i}" for i in range(columns)])


def store(connection, frame: pd.DataFrame, table: str = "t") -> None:
    """A DataFrame as a table."""
    connection.register("frame_to_store", frame)
    connection.execute(f'CREATE TABLE "{table}" AS SELECT * FROM frame_to_store')
    connection.unregister("frame_to_store")
