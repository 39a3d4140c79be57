"""Random features of the polynomial kernel by SUM/minus SQL, where the data lives.

>>> import sqlkrp
>>> krp = sqlkrp.KRP(degree=2, n_components=8, random_state=0).fit(["height", "width"])
>>> sql = krp.to_sql("warehouse.parts", keep=["id"])
"""

from sqlkrp import errors, maps
from sqlkrp.engines import Database, connect
from sqlkrp.errors import SqlkrpError
from sqlkrp.maps import *  # noqa: F403 - it says what is public
from sqlkrp.version import __version__

__all__ = ["Database", "SqlkrpError", "__version__", "connect", "errors"]
__all__ += maps.__all__
