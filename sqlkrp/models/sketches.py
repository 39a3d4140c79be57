"""Models over stored sketches: full ones, their signs, and signs as bits, each by each.

Of rank-one projections B(x), a model w of full sketches f(x) = B(x) / (2 sqrt(m)) scores a row of
which only the signs are kept, and a model of signs scores full sketches (Delogne and Jacques:
asymmetric classification): E <f(x), sign B(y)> = (2 sqrt(m) / pi) <x, y>^2 / |y|^2. For rows of
length one, pi / (2 sqrt(m)) times signs stand for a full sketch, whose inner products are the
kernel; and sqrt(m) pi / 2 times a full sketch for signs, of which a row has m with itself.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sqlkrp.errors import ParameterError
from sqlkrp.maps import RankOneProjection
from sqlkrp.models.model import Model
from sqlkrp.sql.packing import BITS, bit_names
from sqlkrp.stages import Category, Prepare

__all__ = ["HOLDS", "of_stored"]

#: What a table of features may hold.
HOLDS = ("features", "bits", "sketches")


def of_stored(model: Model, holds: str = "features") -> Model:
    """A model over a table of what its map gives (``features``), or of another kind of sketch.

    ``bits`` are signs as ``output="bits"`` packs them; ``sketches`` are the full numbers of the map
    whose signs were trained on.
    """
    if holds not in HOLDS:
        raise ParameterError(f"holds={holds!r} is not allowed: use one of {', '.join(HOLDS)}")
    if holds == "features":
        return model.of_features()
    are_signs = _are_signs(model)
    if holds == "sketches" and not are_signs:
        raise ParameterError("holds='sketches' is for a model of signs: leave it out")
    first = _bits(model) if holds == "bits" else _numbers(model)
    if are_signs == (holds == "bits"):
        return model.behind(first)
    root = math.sqrt(len(model.names))
    return model.behind(first, math.pi / 2 * (root if are_signs else 1 / root))


def _are_signs(model: Model) -> bool:
    """Whether a model weighs signs of rank-one projections; an error if it weighs no such."""
    if not isinstance(model.features, RankOneProjection):
        raise ParameterError(
            "bits and full sketches are of RankOneProjection: train the model on its features"
        )
    return model.features.binary


def _bits(model: Model) -> Prepare:
    """The signs that are bits, from 0 and 1."""
    count = len(model.names)
    columns = bit_names(RankOneProjection.prefix, count)
    bits = tuple(
        Category(f"sign_{i}", columns[i // BITS], None, False, i % BITS) for i in range(count)
    )
    first = _numbers(model)
    return replace(
        first,
        columns=tuple(one.name for one in bits),
        shift=np.full(count, 0.5),
        scale=np.full(count, 2.0),
        categories=bits,
    )


def _numbers(model: Model) -> Prepare:
    """The columns of a table of numbers as they are."""
    return Prepare.plain(model.names, dtype=model.whole_.prepare.dtype)
