"""Files for the projects of dbt and SQLMesh: a map or a model among a user's own models."""

from sqlkrp.projects.making import WRITERS, to_project

__all__ = ["WRITERS", "to_project"]
