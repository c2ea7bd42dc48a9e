"""The states of the random generators of a process, as a checkpoint keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def parse_random(state: Any) -> tuple[Any, ...]:
    """The state of a ``random.Random`` (or of the module ``random``), from what JSON made of it. TypeError or
    ValueError if it is malformed."""
    version, numbers, gauss = state
    return (int(version), tuple(int(n) for n in numbers), gauss)


def global_generators(device: torch.device) -> dict[str, Tensor]:
    """The states of PyTorch's own generators, which everything in the process draws from."""
    tensors = {"random/torch": torch.get_rng_state()}
    if device.type == "cuda":
        tensors["random/cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def restore_generators(tensors: Mapping[str, Tensor], device: torch.device) -> None:
    """Undo ``global_generators``; what is missing stays as it is."""
    if "random/torch" in tensors:
        torch.set_rng_state(tensors["random/torch"])
    if device.type == "cuda" and "random/cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random/cuda"], device)
