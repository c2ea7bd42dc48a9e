"""A model's weights as generation wants them: copied, stacked, and multiplied in the way that suits a few rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from muarl.models import cached_attention, fused_cache, matrix_products
from muarl.models.decoder import Shape, is_mixture, rotary_tables, shape_of
from muarl.models.scoring import products

FEW = 48
"""Rows up to which ``InferenceWeights.linear`` computes MKL's product of a wide model the other way round."""


@dataclass(slots=True)
class LayerWeights:
    """One layer, fused. Biases are None where the model has none; ``qkv``, ``out``, ``gate_up`` and ``down`` may be
    packed (``matrix_products.pack``)."""

    before_attention: Tensor
    qkv: Tensor
    """Stacks query, key and value rows."""
    gain: Tensor | None
    """[heads + kv_heads, head_dim] holds the query and key norms' gains, the queries' divided by sqrt(head_dim) so that
    scores need no scaling; None where heads are not normed."""
    out: Tensor
    before_mlp: Tensor
    gate_up: Tensor
    down: Tensor
    qkv_bias: Tensor | None = None
    out_bias: Tensor | None = None
    gate_up_bias: Tensor | None = None
    down_bias: Tensor | None = None
    router: Tensor | None = None
    """The router of a mixture, whose ``gate_up`` and ``down`` hold all experts."""


class InferenceWeights:
    """A snapshot of a Hugging Face model's weights in the form that generation wants.

    It shares no memory with the model: training may continue, and the snapshot changes only when ``refresh`` is called.
    ``wide``: it lies on a CPU in float32 and is so large that reading weights and cache is what takes the time.
    ``in_blocks``: decode steps attend in blocks of rows (``cached_attention.in_blocks``), also in bfloat16.
    ``packed``: large matrices are, since the processor gains by that (``matrix_products``); tied embeddings are held
    twice then, to look up and to multiply with.
    """

    def __init__(self, model: nn.Module, *, device: torch.device, dtype: torch.dtype, max_positions: int) -> None:
        self.shape: Shape = shape_of(model)
        self.device, self.dtype = device, dtype
        body = cast(Any, model).model
        numbers = self.shape.kv_heads * self.shape.head_dim
        large = numbers >= cached_attention.WIDE and device.type == "cpu"
        self.wide = large and dtype == torch.float32
        self.in_blocks = large and dtype in (torch.float32, torch.bfloat16)
        self.tied = cast(Any, model).lm_head.weight is body.embed_tokens.weight
        self.embedding = self._copy(body.embed_tokens.weight)
        self.packed = self.in_blocks and matrix_products.can_pack(self.embedding)
        self.head = self._head(model)
        self.norm = self._copy(body.norm.weight)
        self.layers = [self._fuse(layer) for layer in body.layers]
        cos, sin = rotary_tables(model, torch.arange(max_positions, device=device))
        # Own kernels compute in float32, and take a step's row from the whole table.
        self.direct = fused_cache.attends(self.embedding, self.shape.head_dim, self.shape.groups)
        kind = torch.float32 if self.direct else dtype
        self.cos, self.sin = cos.to(kind), sin.to(kind)

    def _copy(self, weight: Tensor) -> Tensor:
        return weight.detach().to(device=self.device, dtype=self.dtype, copy=True)

    def _matrix(self, *weights: Tensor) -> Tensor:
        """A copy of these matrices under one another, packed where that helps."""
        joined = weights[0].detach() if len(weights) == 1 else torch.cat([w.detach() for w in weights])
        held = joined.to(device=self.device, dtype=self.dtype)
        if self.packed and matrix_products.can_pack(held):
            return matrix_products.pack(held)
        return held.clone() if held is joined else held

    def _head(self, model: nn.Module) -> Tensor:
        if self.packed:
            return self._matrix(cast(Any, model).lm_head.weight)
        return self.embedding if self.tied else self._copy(cast(Any, model).lm_head.weight)

    def _fuse(self, layer: Any) -> LayerWeights:
        attention = layer.self_attn
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        return LayerWeights(
            before_attention=self._copy(layer.input_layernorm.weight),
            qkv=self._matrix(*(m.weight for m in projections)),
            gain=self._gain(attention),
            out=self._matrix(attention.o_proj.weight),
            before_mlp=self._copy(layer.post_attention_layernorm.weight),
            qkv_bias=self._bias(*projections),
            out_bias=self._bias(attention.o_proj),
            **self._feed_forward(layer.mlp),
        )

    def _feed_forward(self, mlp: Any) -> dict[str, Any]:
        if is_mixture(mlp):
            inner = mlp.experts
            held = {"router": mlp.gate.weight, "gate_up": inner.gate_up_proj, "down": inner.down_proj}
            return {name: self._copy(weight) for name, weight in held.items()}
        return {
            "gate_up": self._matrix(mlp.gate_proj.weight, mlp.up_proj.weight),
            "down": self._matrix(mlp.down_proj.weight),
            "gate_up_bias": self._bias(mlp.gate_proj, mlp.up_proj),
            "down_bias": self._bias(mlp.down_proj),
        }

    def _gain(self, attention: Any) -> Tensor | None:
        shape = self.shape
        if not shape.head_norms:
            return None
        q_gain = attention.q_norm.weight.detach().float() * shape.head_dim**-0.5
        k_gain = attention.k_norm.weight.detach().float()
        return self._copy(torch.cat((q_gain.expand(shape.heads, -1), k_gain.expand(shape.kv_heads, -1))))

    def _bias(self, *linears: nn.Module) -> Tensor | None:
        """The biases of several projections of one input, one after another."""
        if linears[0].bias is None:
            return None
        return self._copy(torch.cat([cast(Tensor, m.bias).detach() for m in linears]))

    def unpack(self, model: nn.Module) -> None:
        """Hold matrices as they are, which then stay where they lie: for steps that are recorded or compiled."""
        if self.packed:
            self.packed = False
            self.head = self._head(model)
            self.layers = [self._fuse(layer) for layer in cast(Any, model).model.layers]

    def refresh(self, model: nn.Module) -> None:
        """Take the model's weights of this moment, where the old ones lie: recorded steps continue reading there.
        What is packed is made anew, elsewhere."""
        body = cast(Any, model).model
        self.embedding.copy_(body.embed_tokens.weight.detach())
        if self.packed:
            self.norm.copy_(body.norm.weight.detach())
            self.head = self._head(model)
            for number, layer in enumerate(body.layers):
                self.layers[number] = self._fuse(layer)
            return
        if not self.tied:
            self.head.copy_(cast(Any, model).lm_head.weight.detach())
        self.norm.copy_(body.norm.weight.detach())
        heads = self.shape.heads
        for own, layer in zip(self.layers, body.layers, strict=True):
            attention, mlp = layer.self_attn, layer.mlp
            own.before_attention.copy_(layer.input_layernorm.weight.detach())
            _stack(own.qkv, own.qkv_bias, attention.q_proj, attention.k_proj, attention.v_proj)
            if own.gain is not None:
                own.gain[:heads].copy_(attention.q_norm.weight.detach().float() * self.shape.head_dim**-0.5)
                own.gain[heads:].copy_(attention.k_norm.weight.detach())
            _stack(own.out, own.out_bias, attention.o_proj)
            own.before_mlp.copy_(layer.post_attention_layernorm.weight.detach())
            if own.router is not None:
                own.router.copy_(mlp.gate.weight.detach())
                own.gate_up.copy_(mlp.experts.gate_up_proj.detach())
                own.down.copy_(mlp.experts.down_proj.detach())
                continue
            _stack(own.gate_up, own.gate_up_bias, mlp.gate_proj, mlp.up_proj)
            _stack(own.down, own.down_bias, mlp.down_proj)

    def logits(self, hidden: Tensor) -> Tensor:
        """[n, width] -> [n, vocab] in float32."""
        if self.wide or self.packed:
            return self.linear(hidden, self.head).float()
        return products(hidden, self.head)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """``x`` [n, in] times ``weight`` [out, in], and ``bias``. With a few rows MKL is up to two and a half times as
        fast if the large matrix is on the left."""
        if weight.is_mkldnn or not self.wide or not 1 < len(x) <= FEW:
            return matrix_products.linear(x, weight, bias)
        product = torch.mm(weight, x.t()).t().contiguous()
        return product if bias is None else product.add_(bias)


def _stack(target: Tensor, bias: Tensor | None, *linears: nn.Module) -> None:
    """Copy the weights of several projections of one input into one matrix, under each other, and so their biases."""
    rows = [len(cast(Tensor, m.weight)) for m in linears]
    for part, linear in zip(target.split(rows), linears, strict=True):
        part.copy_(cast(Tensor, linear.weight).detach())
    if bias is not None:
        for part, linear in zip(bias.split(rows), linears, strict=True):
            part.copy_(cast(Tensor, linear.bias).detach())
