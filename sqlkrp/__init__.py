"""Random features of the polynomial kernel by SUM/minus SQL, where the data lives.

>>> import sqlkrp
>>> krp = sqlkrp.KRP(degree=2, n_components=8, random_state=0).fit(["height", "width"])
>>> sql = krp.to_sql("warehouse.parts", keep=["id"])
"""

from sqlkrp import errors
from sqlkrp.api import KRP, FeatureMap, load
from sqlkrp.engines import Database, connect
from sqlkrp.errors import SqlkrpError
from sqlkrp.version import __version__

__all__ = [
    "KRP",
    "Database",
    "FeatureMap",
    "SqlkrpError",
    "__version__",
    "connect",
    "errors",
    "load",
]
