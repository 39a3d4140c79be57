"""How far estimates of squared distances vary over draws, in theory: formulas of pairs of rows.

A formula is written once, with operators, for whatever has these: arrays of NumPy, or SQL. All of
them are relative: the variance over the squared distance's square.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Pair", "of_cosines", "of_pairs_of_cosines", "of_products"]


@dataclass(frozen=True)
class Pair:
    """Of two rows x and y, and of each with itself: the sums over columns, and their kernel."""

    sum_xx: Any
    sum_yy: Any
    sum_xy: Any
    kernel_xx: Any
    kernel_yy: Any
    kernel_xy: Any

    @property
    def distance(self) -> Any:
        """The squared distance by the kernel."""
        return self.kernel_xx + self.kernel_yy - 2 * self.kernel_xy

    def sums(self, gamma: float, coef0: float) -> tuple[Any, Any, Any]:
        """Gamma <x, y> + coef0, of x and x, of y and y, and of both."""
        xx, yy, xy = (gamma * one + coef0 for one in (self.sum_xx, self.sum_yy, self.sum_xy))
        return xx, yy, xy


def of_products(
    pair: Pair,
    *,
    degree: int,
    gamma: float = 1.0,
    coef0: float = 0.0,
    components: int,
    terms: int = 1,
    hyperplanes: int | None = None,
) -> Any:
    """Of sums of products of projections, whose entries have a normal number's first four moments.

    With a number of ``hyperplanes`` components have theirs dealt out of so many; without, each has
    its own. Of what they share that is the part of single hyperplanes, the largest one.
    """
    xx, yy, xy = pair.sums(gamma, coef0)
    square = pair.distance**2
    # E u_x^4, E u_x^3 u_y and E u_x^2 u_y^2 of projections u.
    both = xx * yy + 2 * xy**2
    fourth = (
        (3 * xx**2) ** degree
        - 4 * (3 * xx * xy) ** degree
        + 6 * both**degree
        - 4 * (3 * yy * xy) ** degree
        + (3 * yy**2) ** degree
    )
    own = (2 + (fourth / square - 3) / terms) / components
    # Of the average over components: each hyperplane stands in several, if there are few.
    again = 0.0 if hyperplanes is None else degree**2 / hyperplanes - degree / (terms * components)
    if again <= 0:
        return own
    # Given one hyperplane, the square of a product is on average a u_x^2 + b u_y^2 - 2 c u_x u_y.
    a, b, c = (one ** (degree - 1) if degree > 1 else 1.0 for one in (xx, yy, xy))
    given = (
        3 * a**2 * xx**2
        + 3 * b**2 * yy**2
        + (4 * c**2 + 2 * a * b) * both
        - 12 * a * c * xx * xy
        - 12 * b * c * yy * xy
    )
    return own + again * (given / square - 1)


def of_cosines(kernel: Any, doubled: Any, components: int) -> Any:
    """Of cosines with random phases; ``doubled`` is the kernel at twice the difference."""
    fourth = 9 - 12 * kernel + 3 * doubled
    return (fourth / (4 * (1 - kernel) ** 2) - 1) / components


def of_pairs_of_cosines(kernel: Any, doubled: Any, components: int) -> Any:
    """Of a cosine and a sine for each frequency."""
    fourth = 6 - 8 * kernel + 2 * doubled
    return (fourth / (4 * (1 - kernel) ** 2) - 1) / (components / 2)
