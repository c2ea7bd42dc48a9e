"""A model whose parameters lie in shards over a group of processes (PyTorch's FSDP2, ``fully_shard``).

Each process reads its own rows of every tensor straight from the checkpoint's files, so that no process ever holds the
whole model; one writes what all have gathered, a few tensors at a time. What is trained is float32; under precision
bfloat16 it is gathered, computed with and forgotten in bfloat16, layer by layer, while gradients are summed in float32.
What is not trained is held in the precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from transformers import PretrainedConfig

from muarl.basics.errors import CheckpointError
from muarl.learning import shards
from muarl.learning.checkpoint_files import WeightReader
from muarl.learning.checkpoints import check_policy
from muarl.learning.lora import adapter_names, attach, fitted, is_adapter, merged, plain_name, start_value
from muarl.learning.settings import LoraSettings, Precision
from muarl.learning.state_files import tensor_sum
from muarl.learning.stored_tensors import StoredTensors, TensorSource
from muarl.models.configs import bare_model
from muarl.models.decoder import run_through_modules, shape_of
from muarl.models.generic import GenericPath, ScoringModule, blocks_of
from muarl.models.support import support_of
from muarl.models.weights import as_stored


class ShardedWeights(Protocol):
    """Between a model's tensors, by their names in it, and those of checkpoints."""

    @property
    def shapes(self) -> Mapping[str, torch.Size]:
        """Of all tensors of a checkpoint, in the order in which they are written."""
        ...

    def check(self, folder: Path) -> None:
        """CheckpointError if a checkpoint's tensors are not those of this model."""
        ...

    def read(self, folder: Path, held: Mapping[str, Tensor]) -> None:
        """Fill this process's rows of the model's tensors."""
        ...

    def groups(self) -> Iterator[tuple[str, ...]]:
        """The model's tensors, those together that ``stored`` needs at once."""
        ...

    def stored(self, group: tuple[str, ...], whole: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """A checkpoint's tensors made of a group's whole ones."""
        ...


class OwnWeights:
    """Of a model of the own path; see ``ShardedWeights``. ``shapes``: of its parameters."""

    def __init__(self, family: str, shapes: Mapping[str, torch.Size]) -> None:
        self._family, self._names = family, tuple(shapes)
        empty = ((name, torch.empty(shape, device="meta")) for name, shape in shapes.items())
        self.shapes = {name: tensor.shape for name, tensor in as_stored(empty, family)}

    def check(self, folder: Path) -> None:
        """See ``ShardedWeights``."""
        check_policy(folder)
        theirs = WeightReader(folder).shapes
        same = all(theirs.get(name) == tuple(shape) for name, shape in self.shapes.items())
        if not same or theirs.keys() - self.shapes.keys() - {"lm_head.weight"}:
            raise CheckpointError(f"{folder / 'config.json'}: describes another model than the one being trained")

    def read(self, folder: Path, held: Mapping[str, Tensor]) -> None:
        """See ``ShardedWeights``."""
        reader = WeightReader(folder)
        for name in self._names:
            rows, mine = shards.rows_of(held[name]), [(name, shards.local(held[name]))]
            for part, value in as_stored(mine, self._family, rows.start):
                whole = part != name  # an expert of this process's own, and not rows of a tensor
                value.copy_(reader.read(part) if whole else reader.read(part, rows.start, rows.stop))

    def groups(self) -> Iterator[tuple[str, ...]]:
        """See ``ShardedWeights``."""
        return ((name,) for name in self._names)

    def stored(self, group: tuple[str, ...], whole: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """See ``ShardedWeights``."""
        return as_stored(((name, whole[name]) for name in group), self._family)


class ConvertedWeights:
    """Of a model that ``transformers`` computes; see ``ShardedWeights``. ``folder``: the checkpoint that training began
    with, whose names are kept. The tensors are its parameters and the buffers that checkpoints hold."""

    def __init__(self, config: PretrainedConfig, folder: Path) -> None:
        self._tensors = StoredTensors(config, folder, WeightReader(folder).shapes)
        self._sources: dict[tuple[str, ...], TensorSource] = {source.made: source for source in self._tensors.sources}
        self.shapes = self._tensors.shapes()

    def check(self, folder: Path) -> None:
        """See ``ShardedWeights``."""
        check_policy(folder)
        try:
            self._tensors.plan(folder, WeightReader(folder).shapes)
        except CheckpointError as problem:
            raise CheckpointError(
                f"{folder / 'config.json'}: describes another model than the one being trained, or one that is "
                f"incomplete ({problem})"
            ) from None

    def read(self, folder: Path, held: Mapping[str, Tensor]) -> None:
        """See ``ShardedWeights``."""
        reader = WeightReader(folder)
        for source in self._tensors.plan(folder, reader.shapes):
            if source.same:
                (stored,), (name,) = source.stored, source.made
                rows = shards.rows_of(held[name])
                shards.local(held[name]).copy_(reader.read(stored, rows.start, rows.stop))
                continue
            for name, value in self._tensors.convert(folder, source, reader.read).items():
                rows = shards.rows_of(held[name])
                shards.local(held[name]).copy_(value[rows.start : rows.stop])

    def groups(self) -> Iterator[tuple[str, ...]]:
        """See ``ShardedWeights``."""
        return iter(self._sources)

    def stored(self, group: tuple[str, ...], whole: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """See ``ShardedWeights``."""
        return iter(self._tensors.revert(self._sources[group], whole).items())


class ShardedModel:
    """One model, sharded. ``model`` has the parameters; calling ``module`` is ``token_logprobs`` of its path.

    ``trained`` False freezes it. With ``lora`` its adapters are what is trained; they begin as ``seed`` says.
    ``offload``: shards stay in CPU memory. Building it needs no other process, except that all must build alike.
    ``most``: of the numbers that the processes give, the largest.

    CheckpointError for a checkpoint whose tensors are not those of its config.json, or whose layers cannot be told
    apart.
    """

    def __init__(
        self,
        folder: Path,
        mesh: DeviceMesh,
        *,
        precision: Precision,
        trained: bool = True,
        lora: LoraSettings | None = None,
        seed: int = 0,
        offload: bool = False,
        most: Callable[[int], int] = int,
    ) -> None:
        self.lora = lora
        self.precision = getattr(torch, precision)
        config = check_policy(folder)
        self.support = support_of(config, folder / "config.json")
        model = self.model = bare_model(config).eval()
        buffers = dict(model.named_buffers())
        stored = buffers.keys() & model.state_dict(keep_vars=True).keys()
        kind = torch.float32 if trained and lora is None else self.precision
        for parameter in model.parameters():
            parameter.data = parameter.data.to(kind)
            parameter.requires_grad_(trained and lora is None)
        if lora is not None:
            self.lora = fitted(model, lora)
            attach(model, self.lora)
        self.module, layers = self._callable(most)
        device = torch.device(mesh.device_type)
        offload = offload and device.type != "cpu"
        self._shard(layers, mesh, trained, offload)
        model.to_empty(device="cpu" if offload else device)
        for name, value in buffers.items():
            place, _, last = name.rpartition(".")
            model.get_submodule(place)._buffers[last] = value.to(device)
        if config.tie_word_embeddings and _output(model).weight is not _input(model).weight:
            raise RuntimeError("the output matrix is no longer tied to the embeddings")
        self.parameters: dict[str, nn.Parameter] = dict(model.named_parameters())
        self._own = {plain_name(name): name for name in self.parameters if not is_adapter(name)}
        self.buffers = {name: value for name, value in model.named_buffers() if name in stored}
        self.weights: ShardedWeights
        if self.support.path == "own":
            self.weights = OwnWeights(self.support.family, self.shapes)
        else:
            self.weights = ConvertedWeights(config, folder)
        self.read(folder)
        self.take_adapter({n: start_value(n, p.shape, seed) for n, p in self.adapter().items()})

    def _callable(self, most: Callable[[int], int]) -> tuple[nn.Module, Sequence[nn.Module]]:
        """What is called, and its layers, which are gathered one at a time."""
        model: Any = self.model
        if self.support.path == "own":
            shape_of(model, adapters=True)
            run_through_modules(model)
            return model, list(model.model.layers)
        return ScoringModule(GenericPath(model, self.support, most)), blocks_of(model)

    def _shard(self, layers: Sequence[nn.Module], mesh: DeviceMesh, trained: bool, offload: bool) -> None:
        mixed = MixedPrecisionPolicy()
        if self.precision != torch.float32:
            mixed = MixedPrecisionPolicy(param_dtype=self.precision, reduce_dtype=torch.float32)
        place = CPUOffloadPolicy() if offload else OffloadPolicy()
        for layer in layers:
            fully_shard(layer, mesh=mesh, mp_policy=mixed, offload_policy=place)
        # Embeddings and output matrix are needed again at once in the backward pass, if there is one.
        fully_shard(self.module, mesh=mesh, mp_policy=mixed, offload_policy=place, reshard_after_forward=not trained)
        for part in self.module.modules():
            if isinstance(part, FSDPModule):
                # Losses hold the global normaliser, so gradients add up.
                part.set_gradient_divide_factor(1.0)
                part.set_force_sum_reduction_for_comms(True)

    def read(self, folder: Path) -> None:
        """Take this process's rows from a checkpoint's weights."""
        held: dict[str, Tensor] = {name: self.parameters[own] for name, own in self._own.items()}
        with torch.no_grad():
            self.weights.read(folder, held | self.buffers)

    def take_adapter(self, values: Mapping[str, Tensor]) -> None:
        """Take this process's rows of the adapters' whole matrices."""
        with torch.no_grad():
            for name, parameter in self.adapter().items():
                rows = shards.rows_of(parameter)
                shards.local(parameter).copy_(values[name][rows.start : rows.stop])

    @property
    def shapes(self) -> dict[str, torch.Size]:
        """Of the model's own tensors, by the names of its parameters."""
        return {plain_name(n): p.shape for n, p in self.parameters.items() if not is_adapter(n)}

    def adapter(self) -> dict[str, nn.Parameter]:
        """The adapters' parameters, sharded, by this model's names."""
        return {n: p for n, p in self.parameters.items() if is_adapter(n)}

    def gathered(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        """A tensor by its name in ``transformers``, whole, adapters merged; in ``dtype``, or as held. All processes
        must ask together."""
        if name in self.buffers:
            return self.buffers[name]
        own = self._own[name]
        base = self.parameters[own]
        down, up = (self.parameters.get(n) for n in adapter_names(own))
        part = shards.local(base)
        full = shards.whole(base, part.to(dtype or part.dtype))
        if self.lora is None or down is None or up is None:
            return full
        return merged(full, shards.whole(down), shards.whole(up), self.lora)

    def sums(self) -> dict[str, int]:
        """This process's part of the base model's ``fingerprint``."""
        sums = {}
        for name, parameter in self.parameters.items():
            if not is_adapter(name):
                rows, part = shards.rows_of(parameter), shards.local(parameter)
                sums[plain_name(name)] = tensor_sum(plain_name(name), part, rows.start * parameter.shape[1:].numel())
        return sums

    def forget(self) -> None:
        """Give back what a forward pass without a backward pass left gathered."""
        part = self.module
        if isinstance(part, FSDPModule):
            part.reshard()


def _input(model: nn.Module) -> nn.Embedding:
    return cast(nn.Embedding, cast(Any, model).get_input_embeddings())


def _output(model: nn.Module) -> nn.Linear:
    return cast(nn.Linear, cast(Any, model).get_output_embeddings())
