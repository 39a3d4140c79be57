"""The feature maps: one file each, with its parameters, its draw, and its list of stages."""

from sqlkrp.maps.base import Map, name_list, whole
from sqlkrp.maps.krp import KRP

__all__ = ["KRP", "Map", "name_list", "whole"]
