"""A lean decoder that runs on the parameters of a ``transformers`` model: the own path of several families.

The Hugging Face module stays the one holder of weights (loading, saving, optimiser state); this file computes the same
function with far fewer operations, which is what counts for small models on a CPU. Tokens are laid out flat and without
padding; attention runs over documents of similar length, so packed and padded batches cost the same and need no mask.

The layer: RMSNorm before each block, rotary positions, grouped queries, SwiGLU, embeddings tied or not. Of the families
in ``support.OWN_FAMILIES``, Qwen3 (https://arxiv.org/abs/2505.09388) has an RMSNorm on each query and key head, and as
a mixture experts in place of the one feed-forward block (``experts``); Qwen2 and 2.5
(https://arxiv.org/abs/2407.10671) have biases on queries, keys and values, Llama and Mistral neither; a model of any of
them may have biases on its other projections.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from muarl.basics.errors import CheckpointError
from muarl.models import fused
from muarl.models.adapters import base_bias, base_weight, is_adapted, is_plain, project
from muarl.models.attention import attend, can_share
from muarl.models.backward import Make, make_once, remaking, rms_norm
from muarl.models.experts import mixture
from muarl.models.layout import Layout, plan_layout
from muarl.models.matrix_products import linear
from muarl.models.scoring import linear_logprobs
from muarl.models.support import OWN_FAMILIES, off_the_own_path

FUSE_BELOW = 1 << 20
"""Projections with fewer weights than this are concatenated on the fly, so that one matrix product does them all."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model. ``groups`` is query heads per key/value head."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocab: int
    epsilon: float
    head_norms: bool = True
    """Query and key heads are normed."""
    top_k: int = 0
    """Experts of a token, in layers that are mixtures."""
    normalised: bool = False
    """The shares of a token's experts add up to 1."""

    @property
    def groups(self) -> int:
        return self.heads // self.kv_heads


def shape_of(model: nn.Module, *, adapters: bool = False) -> Shape:
    """The sizes of ``model``, after checking that this file computes it exactly.

    Raises CheckpointError naming what differs: another architecture, a variant, or wrapped projections (``adapters``
    allows those of ``muarl.models.adapters``).
    """
    config: Any = getattr(model, "config", None)
    kind = getattr(config, "model_type", type(model).__name__)
    remedy = f"It computes {', '.join(OWN_FAMILIES)}; other models take the generic path."
    if kind not in OWN_FAMILIES or not hasattr(model, "lm_head"):
        raise CheckpointError(f"The own path cannot run type {kind!r} ({type(model).__name__}). {remedy}")
    wrong = off_the_own_path(config) or (
        "rotary positions on a part of each head" if _rotates_in_part(model, config) else ""
    )
    if wrong:
        raise CheckpointError(f"This {kind} model uses {wrong}, which the own path does not compute. {remedy}")
    for name, module in model.named_modules():
        if name.endswith("_proj") and not is_plain(module) and not (adapters and is_adapted(module)):
            kind = type(module).__name__
            raise CheckpointError(f"{name} is a {kind}, not a plain Linear: merge adapters or unquantise first.")
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return Shape(
        layers=config.num_hidden_layers,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=head_dim,
        feed_forward=config.intermediate_size,
        vocab=config.vocab_size,
        epsilon=config.rms_norm_eps,
        head_norms=hasattr(cast(Any, model).model.layers[0].self_attn, "q_norm"),
        top_k=getattr(config, "num_experts_per_tok", 0),
        normalised=getattr(config, "norm_topk_prob", False),
    )


def _rotates_in_part(model: nn.Module, config: Any) -> bool:
    inverse = getattr(getattr(getattr(model, "model", None), "rotary_emb", None), "inv_freq", None)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return inverse is not None and 2 * inverse.numel() != head_dim


def rotary_tables(model: nn.Module, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and signed sine for ``positions`` [N], each [N, 1, head_dim] in float32.

    The sine's first half is negated, so that rotating is ``x * cos + x.roll(head_dim / 2) * sin``.
    """
    rotary = cast(Any, model).model.rotary_emb
    inverse = rotary.inv_freq.to(device=positions.device, dtype=torch.float32)
    angle = positions.to(torch.float32)[:, None] * inverse[None]
    cos, sin = angle.cos() * rotary.attention_scaling, angle.sin() * rotary.attention_scaling
    return torch.cat((cos, cos), -1)[:, None], torch.cat((-sin, sin), -1)[:, None]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions for heads ``x`` [N, heads, head_dim], with tables from ``rotary_tables``."""
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin)


def _project(x: Tensor, *linears: nn.Module) -> tuple[Tensor, ...]:
    """Several projections of the same input, as one matrix product where the weights are small."""
    weights, biases = [base_weight(m) for m in linears], [base_bias(m) for m in linears]
    if all(map(is_plain, linears)) and sum(w.numel() for w in weights) <= FUSE_BELOW:
        bias = None if biases[0] is None else torch.cat(cast(list[Tensor], biases))
        return linear(x, torch.cat(weights), bias).split([len(w) for w in weights], -1)
    return tuple(project(m, x) for m in linears)


def _layer(
    layer: Any, make: Make, shape: Shape, x: Tensor, cos: Tensor, sin: Tensor, layout: Layout, keep: Tensor | None
) -> Tensor:
    """One decoder layer on flat tokens ``x`` [N, width]. With ``keep`` only those rows leave the attention block.
    ``make`` makes what is cheap to make again in the backward pass."""
    attention, dim, eps = layer.self_attn, shape.head_dim, shape.epsilon
    normed = make(rms_norm, x, layer.input_layernorm.weight, eps)
    q, k, v = _project(normed, attention.q_proj, attention.k_proj, attention.v_proj)
    q, k = q.reshape(-1, shape.heads, dim), k.reshape(-1, shape.kv_heads, dim)
    together = fused.usable(x) and fused.usable(q)
    if together and fused.turns(dim):
        gains = (attention.q_norm.weight, attention.k_norm.weight) if shape.head_norms else (None, None)
        q, k = (fused.turn(heads, gain, cos, sin, eps) for heads, gain in zip((q, k), gains, strict=True))
    else:
        if shape.head_norms:
            q, k = rms_norm(q, attention.q_norm.weight, eps), rms_norm(k, attention.k_norm.weight, eps)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    v = v.reshape(-1, shape.kv_heads, dim)
    if not shape.head_norms:  # a view into the joint product would keep all of it, which nothing else reads any more
        v = v.contiguous()
    mixed = attend(q, k, v, layout)
    if keep is not None:
        mixed, x = mixed.index_select(0, keep), x.index_select(0, keep)
    more = project(attention.o_proj, mixed)
    if together and shape.width <= fused.LARGEST:
        x, normed = fused.add_norm(x, more, layer.post_attention_layernorm.weight, eps)
    else:
        x = x + more
        normed = make(rms_norm, x, layer.post_attention_layernorm.weight, eps)
    return x + _feed_forward(layer.mlp, shape, normed, make)


def _feed_forward(mlp: Any, shape: Shape, x: Tensor, make: Make) -> Tensor:
    """The feed-forward block of one layer, which some layers of a mixture have as dense models do."""
    if is_mixture(mlp):
        inner = mlp.experts
        return mixture(
            x, mlp.gate.weight, inner.gate_up_proj, inner.down_proj, top_k=shape.top_k, normalised=shape.normalised
        )
    gate, up = _project(x, mlp.gate_proj, mlp.up_proj)
    return project(mlp.down_proj, fused.gated(gate, up) if fused.usable(gate) else make(_Gated.apply, gate, up))


class _Gated(torch.autograd.Function):
    """silu(gate) * up. Its SiLU, as large as either, is made again in the backward pass: that takes less time than to
    keep it takes memory."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        return torch.ops.aten.silu_backward(grads[0] * up, gate), grads[0] * F.silu(gate)


def is_mixture(mlp: nn.Module) -> bool:
    """Whether a layer's feed-forward block consists of experts."""
    return hasattr(mlp, "experts")


def _checkpointed(layer: Any, recompute: bool, shape: Shape, x: Tensor, *others: Any) -> Tensor:
    """``_layer``, all of it made again in the backward pass instead of kept if ``recompute``."""
    if not recompute:
        with remaking(x) as make:
            return _layer(layer, make, shape, x, *others)
    # Nothing here is random, and generators must be left alone: another thread may be recording decode steps.
    inputs = (layer, make_once, shape, x, *others)
    return cast(Tensor, checkpoint(_layer, *inputs, use_reentrant=False, preserve_rng_state=False))


def run_through_modules(model: nn.Module) -> None:
    """From now on calling ``model`` is ``token_logprobs``, and calling one of its layers computes that layer as this
    file does. So hooks on modules, such as those of ``fully_shard``, act at the right moments."""
    for layer in cast(Any, model).model.layers:
        layer.forward = partial(_checkpointed, layer)
    cast(Any, model).forward = partial(token_logprobs, model, through_modules=True)


def _run(
    model: nn.Module,
    ids: Tensor,
    positions: Tensor,
    layout: Layout,
    keep: Tensor | None,
    recompute: bool,
    through_modules: bool = False,
) -> Tensor:
    """Final normed hidden states [N, width] of the layout's tokens (or of the rows ``keep`` of them)."""
    shape, body = shape_of(model, adapters=True), cast(Any, model).model
    x = F.embedding(ids.reshape(-1).index_select(0, layout.tokens), body.embed_tokens.weight)
    cos, sin = rotary_tables(model, positions.reshape(-1).index_select(0, layout.tokens))
    if not fused.usable(x):  # its kernels compute in float32
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    last = shape.layers - 1
    for number, layer in enumerate(body.layers):
        run = layer if through_modules else partial(_checkpointed, layer)
        x = run(recompute, shape, x, cos, sin, layout, keep if number == last else None)
    return rms_norm(x, body.norm.weight, shape.epsilon)


def hidden_states(
    model: nn.Module, ids: Tensor, positions: Tensor, documents: Tensor | None = None, *, recompute: bool = False
) -> Tensor:
    """Final hidden states [B, T, width] (after the last norm; zero at padding), differentiable.

    ``ids``, ``positions`` and ``documents`` are [B, T] integers. A document is a run of equal ids >= 0 in a row of
    ``documents``; tokens see earlier tokens of their own document only; negative ids are padding, on either side. None
    makes each row one document. ``positions`` count from 0 in each document. ``recompute`` trades time for memory.
    """
    layout = plan_layout(torch.zeros_like(ids) if documents is None else documents)
    x = _run(model, ids, positions, layout, None, recompute)
    out = x.new_zeros(ids.numel(), x.shape[-1])
    return out.index_copy(0, layout.tokens, x).view(*ids.shape, -1)


def token_logprobs(
    model: nn.Module,
    ids: Tensor,
    positions: Tensor,
    documents: Tensor | None,
    select: Tensor,
    temperature: float = 1.0,
    *,
    entropy: bool = True,
    recompute: bool = False,
    layout: Layout | None = None,
    through_modules: bool = False,
) -> tuple[Tensor, Tensor]:
    """Log-probability of each selected token given the tokens before it in its document, and the entropy there.

    Shapes as for ``hidden_states``; ``select`` [B, T] is True at the target tokens themselves (position t is predicted
    from position t - 1 of the same document, so a document's first token cannot be selected: ValueError). Returns two
    float32 vectors [select.sum()] in row-major order, in nats, both differentiable, of softmax(logits / temperature).
    Only selected positions pass the last layer's feed-forward block and the vocabulary projection. ``entropy`` False
    saves its cost and returns zeros. ``layout``: of ``plan_layout`` for these documents, with or without ids; None lets
    common beginnings be computed once where the device allows it. The results are the same. ``through_modules``: the
    model was given to ``run_through_modules``, and its layers are to be called.
    """
    docs = torch.zeros_like(ids) if documents is None else documents
    flat, chosen = docs.reshape(-1), select.reshape(-1).nonzero()[:, 0]
    before, targets = chosen - 1, ids.reshape(-1)[chosen]
    same = (flat[before] == flat[chosen]) & (flat[chosen] >= 0) & (chosen % ids.shape[-1] != 0)
    if not bool(same.all()):
        raise ValueError("select marks padding or a document's first token, which nothing predicts")
    layout = layout or plan_layout(docs, ids if can_share(ids) else None)
    rows, head = layout.place[before], cast(Any, model).lm_head.weight
    repeats = False
    if layout.prefixes:  # where documents share a row, they may also share what it predicts
        pairs, back = torch.unique(rows * head.shape[0] + targets, return_inverse=True)
        repeats = pairs.numel() < rows.numel()
    if repeats:
        rows, targets = pairs // head.shape[0], pairs % head.shape[0]
    hidden = _run(model, ids, positions, layout, rows, recompute, through_modules)
    logprob, spread = linear_logprobs(hidden, head, targets, temperature=temperature, entropy=entropy)
    return (logprob.index_select(0, back), spread.index_select(0, back)) if repeats else (logprob, spread)
