"""Which tensors of a checkpoint make which tensors of a model that ``transformers`` computes, and the way back.

Files may hold a layer's experts one by one where the model has them in one tensor, and may use other names. What goes
with what is found out without reading any weight; tensors are then converted one group after another, so that whoever
holds a part of a model never has to hold the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PretrainedConfig

from muarl.basics.errors import CheckpointError
from muarl.models.configs import empty_model, quiet_transformers


@dataclass(frozen=True, slots=True)
class TensorSource:
    """Some tensors of a checkpoint, and what they make of the model, all of them together."""

    stored: tuple[str, ...]
    """Names of the checkpoint's tensors."""
    made: tuple[str, ...]
    """Names of the model's."""
    same: bool
    """It is one tensor, which only its name may tell from the model's."""


class StoredTensors:
    """Conversions between the tensors of one model (its parameters, tied ones once, and the buffers that belong to it)
    and those of checkpoints. ``folder``: the checkpoint whose names ``revert`` writes."""

    def __init__(self, config: PretrainedConfig, folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
        from transformers.conversion_mapping import get_model_conversion_mapping

        model: Any = empty_model(config)
        self.model = model
        self._state: dict[str, Tensor] = self.model.state_dict(keep_vars=True)
        named, held = dict(self.model.named_parameters()), {id(p) for p in self.model.parameters()}
        buffers = {name: value for name, value in self._state.items() if id(value) not in held}
        self._empty: dict[str, Tensor] = {**named, **buffers}
        self._rules: Any = get_model_conversion_mapping(self.model)
        self.sources = self.plan(folder, shapes)
        # As from_pretrained keeps it: the way back is that of the rules that applied.
        self.model._weight_conversions = [rule for rule in self._rules if rule.was_used()]

    @property
    def names(self) -> list[str]:
        """Of all the model's tensors."""
        return list(self._empty)

    def plan(self, folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> list[TensorSource]:
        """What makes what, of a checkpoint with tensors of these shapes. CheckpointError if some of the model's are not
        made, or have another shape. What the model has no place for is left out."""
        sources: list[TensorSource] = []
        for target, (stored, converted) in self._targets(shapes).items():
            if not converted:
                self._compare(folder, target, shapes[stored[0]])
                sources.append(TensorSource((stored[0],), (target,), True))
                continue
            empty = {name: torch.empty(shapes[name], device="meta") for name in stored}
            made = self._convert(folder, empty, "meta")
            sources.append(TensorSource(tuple(stored), tuple(made), False))
        lacking = self._empty.keys() - {name for source in sources for name in source.made}
        if lacking:
            raise CheckpointError(
                f"{folder}: the weights lack {min(lacking)!r} ({len(lacking)} tensors in all): the checkpoint is "
                "incomplete, make or copy it again"
            )
        order = {name: n for n, name in enumerate(self._empty)}
        return sorted(sources, key=lambda source: order[source.made[0]])

    def convert(self, folder: Path, source: TensorSource, read: Callable[[str], Tensor]) -> dict[str, Tensor]:
        """The model's tensors, whole, that a source makes; ``read`` gives each of the checkpoint's."""
        return self._convert(folder, {name: read(name) for name in source.stored}, "cpu")

    def revert(self, source: TensorSource, made: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The checkpoint's tensors from the model's whole ones."""
        if source.same:
            return {source.stored[0]: made[source.made[0]]}
        from transformers.core_model_loading import revert_weight_conversion

        return dict(revert_weight_conversion(self.model, dict(made)))

    def shapes(self) -> dict[str, torch.Size]:
        """Of the tensors that ``revert`` gives, source after source."""
        shapes: dict[str, torch.Size] = {}
        for source in self.sources:
            made = {name: torch.empty(self._empty[name].shape, device="meta") for name in source.made}
            shapes |= {name: tensor.shape for name, tensor in self.revert(source, made).items()}
        return shapes

    def _targets(self, stored_names: Iterable[str]) -> dict[str, tuple[list[str], bool]]:
        """For each tensor of the model that one or more of the checkpoint's begin to make: these, and whether more is
        to be done with them than naming them."""
        from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

        renamings = [rule for rule in self._rules if isinstance(rule, WeightRenaming)]
        converters = [rule for rule in self._rules if isinstance(rule, WeightConverter)]
        prefix = self.model.base_model_prefix
        targets: dict[str, tuple[list[str], bool]] = {}
        for stored in sorted(stored_names):
            target, pattern = rename_source_key(stored, renamings, converters, prefix, self._state)
            if target not in self._state and stored in self._state:
                target, pattern = rename_source_key(stored, [], [], prefix, self._state)
            if target in self._empty:
                targets.setdefault(target, ([], pattern is not None))[0].append(stored)
        return targets

    def _convert(self, folder: Path, stored: Mapping[str, Tensor], device: str) -> dict[str, Tensor]:
        from transformers.core_model_loading import convert_and_load_state_dict_in_model
        from transformers.modeling_utils import LoadStateDictConfig

        how = LoadStateDictConfig(device_map={"": device}, dtype=torch.float32, weight_mapping=self._rules)
        with quiet_transformers():
            report, _ = convert_and_load_state_dict_in_model(self.model, dict(stored), how)
        for name, shape, _ in report.mismatched_keys:
            self._compare(folder, name, tuple(shape))
        if report.conversion_errors:
            first = next(iter(report.conversion_errors.values()))
            raise CheckpointError(f"{folder}: {min(stored)!r} and others do not make a tensor of the model: {first}")
        made = [name for name in self._empty if name not in report.missing_keys]
        return {name: self._take(name) for name in made}

    def _take(self, name: str) -> Tensor:
        """A tensor that was put into the model, which is empty again afterwards."""
        place, _, last = name.rpartition(".")
        module = self.model.get_submodule(place)
        holder = module._parameters if last in module._parameters else module._buffers
        value: Tensor = holder[last].detach()
        holder[last] = self._empty[name]
        return value

    def _compare(self, folder: Path, name: str, shape: tuple[int, ...]) -> None:
        expected = tuple(self._empty[name].shape)
        if shape != expected:
            raise CheckpointError(
                f"{folder}: {name!r} has shape {shape}, but config.json asks for {expected}: config.json and weights "
                "are not of one model"
            )
