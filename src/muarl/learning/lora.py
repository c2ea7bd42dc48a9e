"""LoRA adapters: put beside a model's matrices with ``peft``, merged for samplers, kept in peft's own file format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.basics.extras import require
from muarl.learning.checkpoint_files import read_json, save_tensors
from muarl.learning.settings import PROJECTIONS, LoraSettings
from muarl.models.adapters import ADAPTER

FOLDER = "adapter"
WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
EXPERTS = {"gate_proj", "up_proj", "down_proj"}
"""Matrices of a feed-forward block: in a mixture these are the experts', by whatever names transformers holds them."""


def fitted(model: nn.Module, settings: LoraSettings) -> LoraSettings:
    """The settings for this model: of the usual seven matrices (``PROJECTIONS``) those that it has. The experts of a
    mixture lie in one tensor together and get no adapters.

    ConfigError if it lacks a matrix that is named besides, or all of them.
    """
    there = {name.rpartition(".")[2] for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    if any(parameter.ndim == 3 and ".experts." in name for name, parameter in model.named_parameters()):
        there -= EXPERTS
    targets = tuple(name for name in settings.targets if name in there)
    if not targets or (settings.targets != PROJECTIONS and targets != settings.targets):
        missing = ", ".join(name for name in settings.targets if name not in there)
        raise ConfigError(
            f"learner.lora.targets: no matrix {missing} in this model for an adapter: choose from "
            f"{', '.join(sorted(there - {'lm_head'}))}"
        )
    return replace(settings, targets=targets)


def attach(model: nn.Module, settings: LoraSettings) -> None:
    """Put adapters beside the model's matrices, in float32 and with values still to be set; freeze everything else.

    ConfigError if peft is not installed, or as ``fitted``.
    """
    settings = fitted(model, settings)
    require("lora", "learner.lora")
    from peft import inject_adapter_in_model

    inject_adapter_in_model(_peft_config(settings), model, adapter_name=ADAPTER)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_adapter(name))
        if is_adapter(name):
            parameter.data = parameter.data.float()


def start_value(name: str, shape: torch.Size, seed: int) -> Tensor:
    """An adapter's matrix before training, on the CPU: B is 0; A uniform in +-1 / sqrt(its input's width), as peft
    draws it, but a function of (name, seed) alone, so that every way of sharding begins alike."""
    if ".lora_B." in name:
        return torch.zeros(shape)
    generator = torch.Generator().manual_seed(int.from_bytes(f"{seed} {name}".encode()) % (1 << 61))
    bound = 1.0 / math.sqrt(shape[1])
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)


def is_adapter(name: str) -> bool:
    """Whether a parameter of an adapted model belongs to an adapter."""
    return ".lora_A." in name or ".lora_B." in name


def plain_name(name: str) -> str:
    """The Hugging Face name of an adapted model's own parameter."""
    return name.replace(".base_layer.", ".")


def adapter_names(base: str) -> tuple[str, str]:
    """The names of A and B beside the parameter ``base`` of an adapted model ("...q_proj.base_layer.weight")."""
    stem = base.removesuffix("base_layer.weight")
    return f"{stem}lora_A.{ADAPTER}.weight", f"{stem}lora_B.{ADAPTER}.weight"


def merged(base: Tensor, down: Tensor, up: Tensor, settings: LoraSettings) -> Tensor:
    """W + (alpha / rank) B A, summed in float32, in the base's type."""
    change = up.float() @ down.float() * (settings.alpha / settings.rank)
    return (base.float() + change).to(base.dtype)


def merged_weights(model: nn.Module, settings: LoraSettings) -> Iterator[tuple[str, Tensor]]:
    """Every parameter of an adapted model under its Hugging Face name, adapters merged, one after another."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in parameters.items():
            if is_adapter(name):
                continue
            down, up = (parameters.get(n) for n in adapter_names(name))
            if down is None or up is None or plain_name(name) == name:
                yield plain_name(name), parameter.detach()
            else:
                yield plain_name(name), merged(parameter, down, up, settings)


@contextmanager
def merged_in(model: nn.Module, adapter: Mapping[str, Tensor], settings: LoraSettings) -> Iterator[None]:
    """Within the block the matrices of a model without adapters have this one (by the adapted model's names) merged
    into them; afterwards they are again what they were, to the bit.

    CheckpointError if the adapter is another model's.
    """
    own = dict(model.named_parameters(remove_duplicate=False))
    before: dict[str, Tensor] = {}
    try:
        with torch.no_grad():
            for name in adapter:
                stem, separator, _ = name.partition("lora_A.")
                if not separator:
                    continue
                down, up = (adapter[n] for n in adapter_names(f"{stem}base_layer.weight"))
                base = own.get(f"{stem}weight")
                if base is None or base.shape != (up.shape[0], down.shape[1]):
                    raise CheckpointError(f"the adapter is another model's: {name!r} does not fit this one")
                before[f"{stem}weight"] = base.data
                base.data = merged(base.data, down.to(base.device), up.to(base.device), settings)
        yield
    finally:
        for name, data in before.items():
            own[name].data = data


@dataclass(frozen=True, slots=True)
class AdaptedWeights:
    """An ``AdapterWeights``: of a learner that trains an adapter, for samplers."""

    whole: Callable[[], Iterator[tuple[str, Tensor]]]
    """Every parameter, adapters merged."""
    adapter: Callable[[], Mapping[str, Tensor]]
    """The adapter's matrices, by the adapted model's names."""
    settings: LoraSettings

    def __call__(self) -> Iterator[tuple[str, Tensor]]:
        return self.whole()

    def write_adapter(self, folder: Path) -> None:
        """See ``AdapterWeights``."""
        save_adapter(folder, self.adapter(), self.settings)


def save_adapter(folder: Path, tensors: Mapping[str, Tensor], settings: LoraSettings) -> None:
    """Write the adapter's matrices (by the adapted model's names) so that peft can load them onto the base model."""
    folder.mkdir(parents=True, exist_ok=True)
    _peft_config(settings, inference_mode=True).save_pretrained(str(folder))
    save_tensors(folder / WEIGHTS, {_stored_name(n): t.float() for n, t in tensors.items()}, {"format": "pt"})


def load_adapter(folder: Path, shapes: Mapping[str, torch.Size], settings: LoraSettings) -> dict[str, Tensor]:
    """The adapter's matrices, by the adapted model's names. CheckpointError if it is missing or another one."""
    fields = read_json(folder / CONFIG)
    theirs = (fields.get("r"), fields.get("lora_alpha"), sorted(fields.get("target_modules") or ()))
    if theirs != (settings.rank, settings.alpha, sorted(settings.targets)):
        raise CheckpointError(
            f"{folder / CONFIG}: rank, alpha and targets are {theirs}, but learner.lora asks for "
            f"{(settings.rank, settings.alpha, sorted(settings.targets))}: resume with the settings it was made with"
        )
    try:
        stored = load_file(folder / WEIGHTS)
    except (SafetensorError, OSError) as problem:
        raise CheckpointError(f"{folder / WEIGHTS}: cannot be read: {problem}") from problem
    stored_names = {_stored_name(name): name for name in shapes}
    if stored.keys() != stored_names.keys() or any(t.shape != shapes[stored_names[n]] for n, t in stored.items()):
        raise CheckpointError(f"{folder / WEIGHTS}: is the adapter of another model than the one being trained")
    return {stored_names[name]: tensor for name, tensor in stored.items()}


def _stored_name(name: str) -> str:
    """peft's name in a file: without the adapter's own, and from the root of a PeftModel."""
    return "base_model.model." + name.replace(f".{ADAPTER}.", ".")


def _peft_config(settings: LoraSettings, **fields: Any) -> Any:
    from peft import LoraConfig

    return LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        target_modules=list(settings.targets),
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
        **fields,
    )
