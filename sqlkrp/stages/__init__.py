"""The stages of a row program, and what they mean in NumPy.

A feature map is a short list of stages, each taking a vector of inputs to the next. A stage is a
record of its tables (they are the truth: nothing is drawn again). What it means stands in rooms of
its own: ``meaning`` for NumPy, and in ``sqlkrp.sql`` one room a form of SQL; each is a dict from
record to functions.
"""

from sqlkrp.stages.categories import DAY, Category, days_of, encoded, is_missing
from sqlkrp.stages.closing import Answers, Bounds, Shares, Votes
from sqlkrp.stages.meaning import apply, cost
from sqlkrp.stages.parts import beside, path_from
from sqlkrp.stages.paths import Paths, numbered, plain_stages
from sqlkrp.stages.prepare import Prepare, missing_message
from sqlkrp.stages.program import Program, hyperplane_names, is_projection
from sqlkrp.stages.records import (
    RECORDS,
    Butterflies,
    Distances,
    Elementwise,
    Linear,
    SumOfProducts,
)
from sqlkrp.stages.stage import Array, Cost, Stage, is_unicode, require

__all__ = [
    "DAY",
    "RECORDS",
    "Answers",
    "Array",
    "Bounds",
    "Butterflies",
    "Category",
    "Cost",
    "Distances",
    "Elementwise",
    "Linear",
    "Paths",
    "Prepare",
    "Program",
    "Shares",
    "Stage",
    "SumOfProducts",
    "Votes",
    "apply",
    "beside",
    "cost",
    "days_of",
    "encoded",
    "hyperplane_names",
    "is_missing",
    "is_projection",
    "is_unicode",
    "missing_message",
    "numbered",
    "path_from",
    "plain_stages",
    "require",
]
