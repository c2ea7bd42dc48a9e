"""Weights that come by name, one after another, into a model."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from muarl.errors import CheckpointError


def copy_weights(weights: Iterable[tuple[str, Tensor]], model: nn.Module) -> None:
    """Copy named weights into the model, where they are not its own memory already.

    CheckpointError for a name that the model lacks or a shape that differs; what came before it is then copied.
    """
    own = dict(model.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for name, value in weights:
            if name not in own or own[name].shape != value.shape:
                raise CheckpointError(f"weights that do not fit the model, such as {name!r}")
            if own[name].data_ptr() != value.data_ptr():
                own[name].copy_(value)
