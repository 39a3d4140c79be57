"""Random features of the polynomial kernel by SUM/minus SQL, where the data lives.

>>> import sqlkrp
>>> krp = sqlkrp.KRP(degree=2, n_components=8, random_state=0).fit(["height", "width"])
>>> sql = krp.to_sql("warehouse.parts", keep=["id"])
"""

from sqlkrp import errors
from sqlkrp.api import (
    KGRP,
    KRP,
    PCA,
    PRP,
    SORF,
    Chain,
    ComplexKRP,
    Ensemble,
    ExplicitRP,
    FeatureMap,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    RandomProjection,
    RankOneProjection,
    SphericalRandomFeatures,
    TensorSketch,
    chain,
    load,
)
from sqlkrp.engines import Database, connect
from sqlkrp.errors import SqlkrpError
from sqlkrp.version import __version__

__all__ = [
    "KGRP",
    "KRP",
    "PCA",
    "PRP",
    "SORF",
    "Chain",
    "ComplexKRP",
    "Database",
    "Ensemble",
    "ExplicitRP",
    "FeatureMap",
    "Nystroem",
    "RandomFourier",
    "RandomMaclaurin",
    "RandomProjection",
    "RankOneProjection",
    "SphericalRandomFeatures",
    "SqlkrpError",
    "TensorSketch",
    "__version__",
    "chain",
    "connect",
    "errors",
    "load",
]
