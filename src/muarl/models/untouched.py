"""Tensors of zeros that take memory only where they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

ALIGNMENT = 64
"""Bytes that PyTorch aligns tensors to: kernels may add in another order elsewhere."""


def untouched_zeros(size: Sequence[int], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros that take memory on a CPU only where they are written. ``torch.zeros`` writes them all at once; NumPy asks
    for pages that are zero already."""
    if device.type != "cpu":
        return torch.zeros(tuple(size), device=device, dtype=dtype)
    count = math.prod(size) * dtype.itemsize
    held = np.zeros(count + ALIGNMENT, dtype=np.uint8)
    start = -held.ctypes.data % ALIGNMENT
    return torch.from_numpy(held[start : start + count]).view(dtype).view(tuple(size))
