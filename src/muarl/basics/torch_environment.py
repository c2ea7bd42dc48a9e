"""Environment variables that PyTorch and its libraries read when they are first imported."""

from __future__ import annotations

import os

DEFAULTS = {
    # Idle OpenMP workers that spin starve whatever else runs on the same cores.
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    # In bfloat16 on a CPU, products are compiled anew for each shape, and 1,024 of them would be kept, up to megabytes
    # each. Every update has new shapes; the layers of one pass have the same few.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64",
    "LRU_CACHE_CAPACITY": "64",
}
"""What each is set to where the person has not set it."""


def set_torch_environment() -> None:
    """Set ``DEFAULTS`` in this process, and so for its children. Has no effect on what is imported already."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
