"""Parameters that several maps have, each declared once, and the maps that have them."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any

from sqlkrp.errors import ParameterError
from sqlkrp.maps.allowed import Number, OneOf, Seed, Whole
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.kernels import Kernel, polynomial
from sqlkrp.maps.parameters import Parameter, with_parameters

__all__ = [
    "COEF0",
    "COMPONENTS",
    "DEGREE",
    "GAMMA",
    "KERNEL",
    "LARGEST",
    "MOST_FEATURES",
    "RANDOM_STATE",
    "SPARSITY",
    "PolynomialMap",
    "SingleMap",
]

# More would not fit in memory as they are drawn, nor in any table.
MOST_FEATURES = 10_000_000
# Constants beyond this (or its inverse) would overflow even in single precision.
LARGEST = 1e38

COMPONENTS = Parameter(
    Whole(1, MOST_FEATURES), "k, how many features to compute", metavar="K", common=True
)
DEGREE = Parameter(
    Whole(1, 1000), "g, the degree of the polynomial kernel", metavar="G", common=True
)
COEF0 = Parameter(
    Number(0),
    "the constant in the kernel (gamma <x, y> + coef0)^degree (0 leaves all lower degrees out)",
    metavar="C0",
    common=True,
)
GAMMA = Parameter(
    Number(
        0,
        above=True,
        words={
            "auto": "1 over the total variance of the columns as they are prepared; 1 over their "
            "number where only names are known, 1 for rows of length 1"
        },
    ),
    "the factor gamma in the kernel",
    metavar="GAMMA",
    common=True,
)
KERNEL = Parameter(OneOf({}), "which kernel to estimate")
SPARSITY = Parameter(
    Number(1),
    "how sparse hyperplanes are that are drawn entry by entry (one in s entries is not zero)",
    metavar="S",
    flag="sparsity",
)
SCALING = Parameter(
    OneOf(
        {
            "auto": "standard if they are of different units, else none",
            None: "",
            "standard": "mean 0, deviation 1; columns of 0 and 1 are left as they are",
            "minmax": "0 to 1",
            "unit": "each row to length 1",
        }
    ),
    "how columns are scaled first, by what they hold when the map is drawn",
    common=True,
)
CLIP = Parameter(
    Number(0, above=True, words={"auto": "3 where columns are standardised, else none", None: ""}),
    "how many standard deviations from its column's mean a value is read as at most (columns of 0 "
    "and 1 are not held)",
    metavar="N",
    common=True,
)
NULLS = Parameter(
    OneOf(
        {
            "error": "nothing is computed",
            "zero": "",
            "mean": "the column's, when the map is drawn",
            "propagate": "the row's features are NULL",
        }
    ),
    "what a missing value is, NaN and infinities too",
    metavar="POLICY",
    common=True,
)
DTYPE = Parameter(
    OneOf({"auto": "float32 if all columns are", "float32": "", "float64": ""}),
    "what is computed in",
    common=True,
)
RANDOM_STATE = Parameter(
    Seed(0, words={None: "another draw each time; seed_ records it"}),
    "the seed of what is drawn",
    flag=None,  # --seed is of the commands, and has a default of its own
)


@with_parameters
class SingleMap(FeatureMap):
    """A map that is not made of maps: it prepares columns as these parameters say."""

    _: KW_ONLY
    scaling: str | None = SCALING.by_default("auto")
    clip: float | str | None = CLIP.by_default("auto")
    nulls: str = NULLS.by_default("error")
    dtype: str = DTYPE.by_default("auto")
    random_state: Any = RANDOM_STATE.by_default(None)


@with_parameters
class PolynomialMap(SingleMap):
    """A map of the kernel (gamma <x, y> + coef0)^degree."""

    degree: int = DEGREE.by_default(2)
    n_components: int = COMPONENTS.by_default(1000)
    _: KW_ONLY
    coef0: float = COEF0.by_default(1.0)
    gamma: Any = GAMMA.by_default("auto")  # a number by the time of the draw

    @property
    def polynomial_degree(self) -> int:
        return self.degree

    def estimated_kernel(self) -> Kernel | None:
        return polynomial(self.degree, self.gamma, self.coef0)

    def constant(self, n_columns: int) -> float | None:
        """The column that makes its kernel of gamma^g <x, y>^g."""
        constant = math.sqrt(self.coef0 / self.gamma) if self.coef0 else None
        if constant is not None and not 0 < constant < LARGEST:
            raise ParameterError(
                f"coef0={self.coef0!r} and gamma={self.gamma!r} are too far apart: "
                "use values of which neither dwarfs the other"
            )
        return constant
