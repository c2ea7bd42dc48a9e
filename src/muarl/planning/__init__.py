"""What a run needs before it starts: bytes, seconds and dollars from a model's sizes, a configuration and assumptions.

Pure functions of numbers, without torch. ``models`` counts parameters, ``memory`` bytes, ``speed`` operations and time;
``setup`` reads a run configuration, ``plan`` puts it all together, ``nearest`` looks for a configuration that fits.
"""

from muarl.planning.assumptions import GPUS, Assumptions, Gpu, assume
from muarl.planning.models import PUBLISHED, ModelShape, published, shape_from_config
from muarl.planning.plan import ResourcePlan, make_plan

__all__ = [
    "GPUS",
    "PUBLISHED",
    "Assumptions",
    "Gpu",
    "ModelShape",
    "ResourcePlan",
    "assume",
    "make_plan",
    "published",
    "shape_from_config",
]
