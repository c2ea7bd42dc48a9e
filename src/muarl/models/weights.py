"""Weights by name: into a model, and as a checkpoint holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from muarl.basics.errors import CheckpointError
from muarl.models.configs import empty_model
from muarl.models.support import OWN_MIXTURES

TOGETHER = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}
"""Tensors of all experts, by the last part of their names, and which matrices of each expert lie under one another in
them; checkpoints hold these matrices apart."""


def copy_state(source: nn.Module, target: nn.Module) -> None:
    """Copy all parameters and buffers of a module to another one of the same kind."""
    theirs = target.state_dict(keep_vars=True)
    with torch.no_grad():
        for name, value in source.state_dict(keep_vars=True).items():
            theirs[name].copy_(value)


def as_stored(named: Iterable[tuple[str, Tensor]], family: object, first: int = 0) -> Iterator[tuple[str, Tensor]]:
    """Weights of a model of the own path, given under the names of its parameters, as checkpoints of the family hold
    them: of a tensor of all experts each expert's matrices, which are views. ``first``: the expert with which such
    tensors begin, where they are only a part. Other families' weights are given back as they come."""
    for name, tensor in named:
        stem, _, last = name.rpartition(".")
        parts = TOGETHER.get(last, ()) if family in OWN_MIXTURES and stem.endswith(".experts") else ()
        if not parts:
            yield name, tensor
        for expert, matrix in enumerate(tensor if parts else (), first):
            for part, piece in zip(parts, matrix.chunk(len(parts)), strict=True):
                yield f"{stem}.{expert}.{part}.weight", piece


def family_of(model: nn.Module) -> object:
    """The model's ``model_type``, if it is said."""
    return getattr(getattr(model, "config", None), "model_type", None)


def stored_weights(model: PreTrainedModel, named: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
    """A model's weights, given under the names of its parameters, as files hold them: with the buffers that belong to
    it, and where transformers holds several tensors of a checkpoint in one (a layer's experts) these apart again."""
    tensors = {name: tensor.detach() for name, tensor in named}
    if family_of(model) in OWN_MIXTURES:  # which have no buffers of their own
        return dict(as_stored(tensors.items(), family_of(model)))
    shared = {id(parameter) for parameter in model.parameters()}
    tensors |= {n: t for n, t in model.state_dict(keep_vars=True).items() if id(t) not in shared and n not in tensors}
    try:
        from transformers.core_model_loading import revert_weight_conversion
    except ImportError:  # before release 5 models held what files hold
        return tensors
    return dict(revert_weight_conversion(model, tensors))


def travels_as_stored(model: PreTrainedModel) -> bool:
    """Whether a learner gives the model's weights under the names that checkpoints have: its parameters are tensors of
    a checkpoint, or parts of them are (``as_stored``)."""
    empty = empty_model(model.config)
    sent = dict(as_stored(empty.named_parameters(), family_of(empty)))
    return sent.keys() <= stored_weights(empty, empty.named_parameters()).keys()


def copy_weights(weights: Iterable[tuple[str, Tensor]], model: nn.Module) -> None:
    """Copy weights as a learner names them into the model, where they are not its own memory already.

    CheckpointError for a name that the model lacks or a shape that differs; what came before it is then copied.
    """
    own = dict(as_stored(model.named_parameters(remove_duplicate=False), family_of(model)))
    with torch.no_grad():
        for name, value in weights:
            if name not in own or own[name].shape != value.shape:
                raise CheckpointError(f"weights that do not fit the model, such as {name!r}")
            if own[name].data_ptr() != value.data_ptr():
                own[name].copy_(value)
