"""The feature maps: families in a file each, and the one dict of their names."""

import os
from pathlib import Path

from sqlkrp.errors import MapFileError
from sqlkrp.mapfile import loads
from sqlkrp.maps.combined import Chain, Ensemble, chain
from sqlkrp.maps.complex import ComplexKRP
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.fourier import SORF, RandomFourier
from sqlkrp.maps.krp import KRP
from sqlkrp.maps.landmarks import KGRP, Nystroem
from sqlkrp.maps.linear import PCA, RandomProjection
from sqlkrp.maps.polynomial import PRP, ExplicitRP, RandomMaclaurin
from sqlkrp.maps.rank_one import RankOneProjection
from sqlkrp.maps.sketch import TensorSketch
from sqlkrp.maps.spherical import SphericalRandomFeatures

# What is public of sqlkrp, too.
__all__ = [
    "KGRP",
    "KRP",
    "PCA",
    "PRP",
    "SORF",
    "Chain",
    "ComplexKRP",
    "Ensemble",
    "ExplicitRP",
    "FeatureMap",
    "Nystroem",
    "RandomFourier",
    "RandomMaclaurin",
    "RandomProjection",
    "RankOneProjection",
    "SphericalRandomFeatures",
    "TensorSketch",
    "chain",
    "load",
]

#: The maps by the names that the command line has for them.
MAPS: dict[str, type[FeatureMap]] = {
    "krp": KRP,
    "complex-krp": ComplexKRP,
    "random-projection": RandomProjection,
    "explicit-rp": ExplicitRP,
    "prp": PRP,
    "random-maclaurin": RandomMaclaurin,
    "tensor-sketch": TensorSketch,
    "rank-one": RankOneProjection,
    "random-fourier": RandomFourier,
    "sorf": SORF,
    "spherical": SphericalRandomFeatures,
    "nystroem": Nystroem,
    "kgrp": KGRP,
    "pca": PCA,
}

#: The same by the names that files have, and the maps that are made of maps.
CLASSES: dict[str, type[FeatureMap]] = {
    one.__name__: one for one in (*MAPS.values(), Ensemble, Chain)
}


def load(path: str | os.PathLike[str]) -> FeatureMap:
    """Read a map file; an error says what is wrong with one that is damaged or was edited."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as bad:
        reason = getattr(bad, "strerror", None) or "not text"
        raise MapFileError(
            f"cannot read the map {str(path)!r} ({reason}): give a file written by sqlkrp draw"
        ) from bad
    return loads(text, CLASSES, repr(str(path)))
