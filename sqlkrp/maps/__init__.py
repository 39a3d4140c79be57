"""The feature maps: families in a file each, and the one dict of their names."""

from sqlkrp.maps.combined import Chain, Ensemble, chain
from sqlkrp.maps.complex import ComplexKRP
from sqlkrp.maps.feature_map import FeatureMap
from sqlkrp.maps.fourier import SORF, RandomFourier
from sqlkrp.maps.krp import KRP
from sqlkrp.maps.landmarks import KGRP, Nystroem
from sqlkrp.maps.linear import PCA, RandomProjection
from sqlkrp.maps.mixed import MixedKRP
from sqlkrp.maps.monomials import Monomials
from sqlkrp.maps.polynomial import PRP, ExplicitRP, RandomMaclaurin
from sqlkrp.maps.rank_one import RankOneProjection
from sqlkrp.maps.sketch import TensorSketch
from sqlkrp.maps.spherical import SphericalRandomFeatures
from sqlkrp.maps.thresholds import Thresholds

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
    "MixedKRP",
    "Monomials",
    "Nystroem",
    "RandomFourier",
    "RandomMaclaurin",
    "RandomProjection",
    "RankOneProjection",
    "SphericalRandomFeatures",
    "TensorSketch",
    "Thresholds",
    "chain",
]

#: The maps by the names that the command line has for them.
MAPS: dict[str, type[FeatureMap]] = {
    "krp": KRP,
    "mixed-krp": MixedKRP,
    "complex-krp": ComplexKRP,
    "random-projection": RandomProjection,
    "monomials": Monomials,
    "thresholds": Thresholds,
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
