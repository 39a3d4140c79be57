"""The feature maps: families in a file each, with parameters, draws, and lists of stages."""

from sqlkrp.maps.base import Map, name_list, whole
from sqlkrp.maps.combined import Chain, Ensemble
from sqlkrp.maps.complex import ComplexKRP
from sqlkrp.maps.fourier import SORF, RandomFourier
from sqlkrp.maps.krp import KRP
from sqlkrp.maps.landmarks import KGRP, Nystroem
from sqlkrp.maps.linear import PCA, RandomProjection
from sqlkrp.maps.polynomial import PRP, ExplicitRP, RandomMaclaurin, TensorSketch
from sqlkrp.maps.rank_one import RankOneProjection
from sqlkrp.maps.spherical import SphericalRandomFeatures

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
    "Map",
    "Nystroem",
    "RandomFourier",
    "RandomMaclaurin",
    "RandomProjection",
    "RankOneProjection",
    "SphericalRandomFeatures",
    "TensorSketch",
    "name_list",
    "whole",
]
