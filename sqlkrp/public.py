"""What is public of sqlkrp: ``sqlkrp.NAME`` is each of these names."""

from sqlkrp import errors, maps, models
from sqlkrp.engines import Database, connect
from sqlkrp.errors import SqlkrpError
from sqlkrp.maps import *  # noqa: F403 - it says what is public
from sqlkrp.models import *  # noqa: F403
from sqlkrp.quality.measuring import distortion
from sqlkrp.training.training import train
from sqlkrp.version import __version__

__all__ = ["Database", "SqlkrpError", "__version__", "connect", "distortion", "errors", "train"]
__all__ += [*maps.__all__, *models.__all__]
