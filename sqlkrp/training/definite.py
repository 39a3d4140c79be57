"""Systems of equations of symmetric matrices with no negative eigenvalue."""

from __future__ import annotations

import numpy as np

from sqlkrp.stages import Array

__all__ = ["Spectrum", "factor", "solved"]

# NumPy solves no triangular systems. In blocks of this many rows nearly all is products.
_BLOCK = 64


def factor(matrix: Array) -> Array | None:
    """The lower factor of Cholesky; None where rounding would decide what is solved with it.

    A diagonal entry of the factor, squared, is what earlier variables leave of a variable's own
    square. Where the share of it that is left is as small as rounding, it is no number to divide
    by. Being a share, it does not depend on the variables' units.
    """
    try:
        lower: Array = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    left = np.diag(lower) ** 2 / np.diag(matrix)
    return lower if left.min(initial=1.0) > _rounding(len(matrix)) else None


def solved(lower: Array, right: Array) -> Array:
    """What the factored matrix times the result is ``right``: a column for each of its columns."""
    result = np.array(right)
    blocks = [slice(i, i + _BLOCK) for i in range(0, len(lower), _BLOCK)]
    for rows in blocks:
        before = slice(0, rows.start)
        result[rows] -= lower[rows, before] @ result[before]
        result[rows] = np.linalg.solve(lower[rows, rows], result[rows])
    for rows in reversed(blocks):
        after = slice(rows.stop, None)
        result[rows] -= lower[after, rows].T @ result[after]
        result[rows] = np.linalg.solve(lower[rows, rows].T, result[rows])
    return result


class Spectrum:
    """A matrix by its eigenvalues, without those that are rounding.

    It solves with any multiple of the identity added, and is twenty to forty times the work of a
    factor: for matrices that have none.
    """

    def __init__(self, matrix: Array) -> None:
        values, vectors = np.linalg.eigh(matrix)
        kept = values > values[-1:].max(initial=0.0) * _rounding(len(matrix))
        self._values, self._vectors = values[kept], vectors[:, kept]

    def solved(self, right: Array, added: float) -> Array:
        """The least solution; ``added`` stands on the diagonal."""
        shares = self._vectors.T @ right / (self._values + added)[:, None]
        result: Array = self._vectors @ shares
        return result


def _rounding(size: int) -> float:
    return 4 * max(size, 1) * float(np.finfo(np.float64).eps)
