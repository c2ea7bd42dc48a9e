"""Which model is this: a number for a model's weights that can be computed from their parts.

Used to find out whether a run is resumed with the reference model (or the base under an adapter) that it began with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

CHUNK = 1 << 22


def tensor_sum(name: str, part: Tensor, first: int = 0) -> int:
    """A checksum of a tensor's elements from number ``first`` on, in bfloat16; the sums of a whole's parts add up
    modulo 2**64. So it does not depend on how the tensor is sharded or how exactly it is held."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])
    flat = part.detach().reshape(-1)
    total = 0
    for start in range(0, flat.numel(), CHUNK):
        bits = flat[start : start + CHUNK].to(torch.bfloat16).view(torch.int16).to(torch.int64)
        place = torch.arange(start, start + bits.numel(), device=bits.device) + (first + seed)
        mixed = (place * -7046029254386353131) ^ (place >> 7)  # 64-bit golden ratio; integers wrap
        total += int(((bits & 0xFFFF) * (mixed | 1)).sum())
    return total % (1 << 64)


def combine(sums: Mapping[str, int]) -> str:
    """One hexadecimal number for all tensors' sums."""
    text = "\n".join(f"{name} {sums[name] % (1 << 64)}" for name in sorted(sums))
    return hashlib.sha256(text.encode()).hexdigest()
