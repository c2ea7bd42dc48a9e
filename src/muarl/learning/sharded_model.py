"""A Qwen3 whose parameters lie in shards over a group of processes (PyTorch's FSDP2, ``fully_shard``).

Each process reads its own rows of every tensor straight from the checkpoint's files, so that no process ever holds the
whole model. What is trained is float32; under precision bfloat16 it is gathered, computed with and forgotten in
bfloat16, layer by layer, while gradients are summed in float32. What is not trained is held in the precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from transformers import Qwen3ForCausalLM
from transformers.models.qwen3.modeling_qwen3 import Qwen3RotaryEmbedding

from muarl.errors import CheckpointError
from muarl.learning import shards
from muarl.learning.checkpoint_files import WeightReader
from muarl.learning.checkpoints import check_policy
from muarl.learning.fingerprint import tensor_sum
from muarl.learning.lora import adapter_names, attach, is_adapter, merged, plain_name, start_value
from muarl.learning.settings import LoraSettings, Precision
from muarl.models.qwen3 import run_through_modules, shape_of


class ShardedModel:
    """One model, sharded. ``module``: calling it is ``muarl.models.qwen3.token_logprobs``.

    ``trained`` False freezes it. With ``lora`` its adapters are what is trained; they begin as ``seed`` says.
    ``offload``: shards stay in CPU memory. Building it needs no other process, except that all must build alike.
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
    ) -> None:
        self.lora = lora
        self.precision = getattr(torch, precision)
        config = check_policy(folder)
        with torch.device("meta"):
            module = Qwen3ForCausalLM(config)
        cast(nn.Module, module).to(torch.float32 if trained and lora is None else self.precision)
        module.requires_grad_(trained and lora is None)
        shape_of(module)
        if lora is not None:
            attach(module, lora)
        device = torch.device(mesh.device_type)
        offload = offload and device.type != "cpu"
        run_through_modules(module)
        self._shard(module, mesh, trained, offload)
        module.to_empty(device="cpu" if offload else device)
        module.model.rotary_emb = Qwen3RotaryEmbedding(config=config).to(device)
        if config.tie_word_embeddings and module.lm_head.weight is not module.model.embed_tokens.weight:
            raise RuntimeError("the output matrix is no longer tied to the embeddings")
        self.module = module
        self.parameters: dict[str, nn.Parameter] = dict(module.named_parameters())
        self.read(folder)
        self.take_adapter({n: start_value(n, p.shape, seed) for n, p in self.adapter().items()})

    def _shard(self, module: Qwen3ForCausalLM, mesh: DeviceMesh, trained: bool, offload: bool) -> None:
        mixed = MixedPrecisionPolicy()
        if self.precision != torch.float32:
            mixed = MixedPrecisionPolicy(param_dtype=self.precision, reduce_dtype=torch.float32)
        place = CPUOffloadPolicy() if offload else OffloadPolicy()
        for layer in module.model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=mixed, offload_policy=place)
        # Embeddings and output matrix are needed again at once in the backward pass, if there is one.
        fully_shard(module, mesh=mesh, mp_policy=mixed, offload_policy=place, reshard_after_forward=not trained)
        for part in module.modules():
            if isinstance(part, FSDPModule):
                # Losses hold the global normaliser, so gradients add up.
                part.set_gradient_divide_factor(1.0)
                part.set_force_sum_reduction_for_comms(True)

    def read(self, folder: Path) -> None:
        """Take this process's rows from a checkpoint's weights."""
        stored = WeightReader(folder)
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                if not is_adapter(name):
                    rows = shards.rows_of(parameter)
                    shards.local(parameter).copy_(stored.read(plain_name(name), rows.start, rows.stop))

    def take_adapter(self, values: Mapping[str, Tensor]) -> None:
        """Take this process's rows of the adapters' whole matrices."""
        with torch.no_grad():
            for name, parameter in self.adapter().items():
                rows = shards.rows_of(parameter)
                shards.local(parameter).copy_(values[name][rows.start : rows.stop])

    def check_fits(self, folder: Path) -> None:
        """CheckpointError if a checkpoint's weights are not those of a model of this shape."""
        check_policy(folder)
        theirs, mine = WeightReader(folder).shapes, self.shapes
        known = all(theirs.get(name) == tuple(shape) for name, shape in mine.items())
        if not known or theirs.keys() - mine.keys() - {"lm_head.weight"}:
            raise CheckpointError(f"{folder / 'config.json'}: describes another model than the one being trained")

    @property
    def shapes(self) -> dict[str, torch.Size]:
        """Of the model's own tensors, by Hugging Face name."""
        return {plain_name(n): p.shape for n, p in self.parameters.items() if not is_adapter(n)}

    def adapter(self) -> dict[str, nn.Parameter]:
        """The adapters' parameters, sharded, by this model's names."""
        return {n: p for n, p in self.parameters.items() if is_adapter(n)}

    def gathered(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        """A tensor by its Hugging Face name, whole, adapters merged; in ``dtype``, or as it is held. All processes
        must ask together."""
        own = name if name in self.parameters else f"{name.removesuffix('weight')}base_layer.weight"
        base = self.parameters[own]
        down, up = (self.parameters.get(n) for n in adapter_names(own))
        part = shards.local(base)
        full = shards.whole(base, part.to(dtype or part.dtype))
        if self.lora is None or down is None or up is None:
            return full
        return merged(full, shards.whole(down), shards.whole(up), self.lora)

    def sums(self) -> dict[str, int]:
        """This process's part of the base model's ``fingerprint``."""
        found = {}
        for name, parameter in self.parameters.items():
            if not is_adapter(name):
                rows, part = shards.rows_of(parameter), shards.local(parameter)
                found[plain_name(name)] = tensor_sum(plain_name(name), part, rows.start * parameter.shape[1:].numel())
        return found

    def forget(self) -> None:
        """Give back what a forward pass without a backward pass left gathered."""
        part = self.module
        if isinstance(part, FSDPModule):
            part.reshard()
