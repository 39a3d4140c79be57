"""Models: what was trained on features, as SQL that scores the rows where they live."""

import os
from pathlib import Path
from typing import Any

from sqlkrp.errors import MapFileError
from sqlkrp.mapfile import loads
from sqlkrp.maps import CLASSES, FeatureMap
from sqlkrp.models.making import model
from sqlkrp.models.model import Model
from sqlkrp.models.scoring import as_asked as as_asked
from sqlkrp.models.scoring import scoring as scoring

# What is public of sqlkrp, too.
__all__ = ["Model", "load", "model"]

_KINDS: dict[str, type[FeatureMap] | type[Model]] = {**CLASSES, Model.__name__: Model}


def load(path: str | os.PathLike[str]) -> Any:
    """Read the file of a map or a model; an error says what is wrong with a damaged one."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as bad:
        reason = getattr(bad, "strerror", None) or "not text"
        raise MapFileError(
            f"cannot read the map {str(path)!r} ({reason}): give a file of a map or model"
        ) from bad
    return loads(text, _KINDS, repr(str(path)))
