"""The stages of a row program and their NumPy twins.

A feature map is a short list of stages, each taking a vector of inputs to the next. A stage holds
its numbers (they are the truth: nothing is drawn again), knows what it computes (``apply``), what
it costs (``additions``, ``products``), and which tables describe it to a database (``tables``).
How it is written in SQL is in ``sqlkrp.sql``.
"""

from sqlkrp.stages.base import Array, Stage, Table
from sqlkrp.stages.prepare import Prepare, missing_message
from sqlkrp.stages.program import Program
from sqlkrp.stages.projections import Butterflies, Distances, Projection, SignedSums, WeightedSums
from sqlkrp.stages.values import Affine, Elementwise, Scale, SumOfProducts

__all__ = [
    "STAGES",
    "Affine",
    "Array",
    "Butterflies",
    "Distances",
    "Elementwise",
    "Prepare",
    "Program",
    "Projection",
    "Scale",
    "SignedSums",
    "Stage",
    "SumOfProducts",
    "Table",
    "WeightedSums",
    "missing_message",
]

#: Every kind of stage by the name that map files use.
STAGES: dict[str, type[Stage]] = {
    "prepare": Prepare,
    "signed_sums": SignedSums,
    "butterflies": Butterflies,
    "weighted_sums": WeightedSums,
    "sum_of_products": SumOfProducts,
    "scale": Scale,
    "affine": Affine,
    "elementwise": Elementwise,
    "distances": Distances,
}
