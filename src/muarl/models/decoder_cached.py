"""Generation on the own path over a static key/value cache: fused weights, prefill of mixed lengths, one-token decode.

Nothing here knows of requests or sampling. A *slot* is one row of the cache. Prefill only fills the cache: a prompt's
last token goes through ``decode``, which is what gives hidden states, so prefill skips the last layer's attention and
feed-forward block altogether.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from muarl.models import cached_attention, fused, fused_cache
from muarl.models.attention import causal
from muarl.models.cached_attention import spans_of, untouched_zeros
from muarl.models.decoder import Shape, rotate
from muarl.models.experts import mixture
from muarl.models.inference_weights import InferenceWeights, LayerWeights


class KVCache:
    """Keys and values of every layer, [slots, kv_heads, positions, head_dim] each, allocated once.

    On a CPU the operating system hands out the zeroed pages only as they are written (``untouched_zeros``), so unused
    slots and positions cost no memory. Entries are never NaN, which is what lets attention mask what it must not see by
    adding -inf.
    """

    def __init__(self, shape: Shape, slots: int, positions: int, device: torch.device, dtype: torch.dtype) -> None:
        self.shape, self.slots, self.positions = shape, slots, positions
        size = (slots, shape.kv_heads, positions, shape.head_dim)
        self.keys = [untouched_zeros(size, device, dtype) for _ in range(shape.layers)]
        self.values = [untouched_zeros(size, device, dtype) for _ in range(shape.layers)]
        self._heads = torch.arange(shape.kv_heads, device=device)

    def copy(self, source: Tensor, target: Tensor, length: int) -> None:
        """Copy the first ``length`` positions of slots ``source`` to slots ``target``, all read before any written."""
        for store in (*self.keys, *self.values):
            store[target, :, :length] = store[:, :, :length].index_select(0, source)

    def places(self, slots: Tensor, positions: Tensor) -> Tensor:
        """Flat row numbers [n * kv_heads] of (slot, head, position) for tokens [n]."""
        rows = (slots[:, None] * self.shape.kv_heads + self._heads) * self.positions + positions[:, None]
        return rows.view(-1)

    def write(self, layer: int, places: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values [n, kv_heads, head_dim] at ``places``."""
        dim = self.shape.head_dim
        self.keys[layer].view(-1, dim).index_copy_(0, places, keys.reshape(-1, dim))
        self.values[layer].view(-1, dim).index_copy_(0, places, values.reshape(-1, dim))


class CachedDecoder:
    """A model of the own path with its cache: see ``path.CachedModel``."""

    def __init__(
        self, model: nn.Module, *, slots: int, positions: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        with torch.no_grad():
            self.weights = InferenceWeights(model, device=device, dtype=dtype, max_positions=positions)
        self.cache = KVCache(self.weights.shape, slots, positions, device, dtype)

    @property
    def vocab(self) -> int:
        """See ``CachedModel``."""
        return self.weights.shape.vocab

    @property
    def direct(self) -> bool:
        """Whether each row reads its own slot alone, so that ``rows`` of ``decode`` means nothing."""
        return self.weights.direct and not torch.compiler.is_compiling()

    def refresh(self, model: nn.Module) -> None:
        """See ``CachedModel``. What is recorded continues reading where the old weights lay."""
        with torch.no_grad():
            self.weights.refresh(model)

    def reusable(self, slot: int, length: int) -> int:
        """See ``CachedModel``."""
        return length

    def copy(self, moves: Sequence[tuple[int, int, int]]) -> None:
        """See ``CachedModel``."""
        source, target, lengths = zip(*moves, strict=True)
        both = torch.tensor([source, target], device=self.weights.device)
        self.cache.copy(both[0], both[1], max(lengths))

    def prefill(self, tokens: Sequence[Tensor], slots: Tensor, starts: Tensor, *, span: int) -> None:
        """See ``CachedModel``."""
        if self.direct:
            prefill_directly(self.weights, self.cache, tokens, slots, starts)
            return
        prefill(self.weights, self.cache, tokens, slots, starts, span=span)

    def decode(
        self,
        tokens: Tensor,
        slots: Tensor,
        positions: Tensor,
        *,
        span: int,
        rows: int,
        common: tuple[int | Tensor, int] = (0, 0),
    ) -> Tensor:
        """See ``CachedModel`` and ``decode``."""
        if self.direct:
            hidden = decode_directly(self.weights, self.cache, tokens, slots, positions, span=span, common=common)
            return self.weights.logits(hidden)
        lengths = None
        if self.weights.in_blocks and not torch.compiler.is_compiling():
            lengths = (positions + 1).tolist()
        hidden = decode(
            self.weights,
            self.cache,
            tokens,
            slots,
            positions,
            span=span,
            rows=rows if lengths is None else 0,
            common=common,
            lengths=lengths,
        )
        return self.weights.logits(hidden)


def _queries_and_keys(weights: InferenceWeights, layer: LayerWeights, qkv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Query and key heads [n, heads + kv_heads, head_dim] of ``qkv`` [n, all heads * D]: normed where the model norms
    them, rotated, the queries divided by sqrt(head_dim)."""
    shape = weights.shape
    heads = qkv[:, : (shape.heads + shape.kv_heads) * shape.head_dim].unflatten(1, (-1, shape.head_dim))
    if layer.gain is not None:
        return rotate(F.rms_norm(heads, (shape.head_dim,), None, shape.epsilon).mul_(layer.gain), cos, sin)
    rotated = rotate(heads, cos, sin)
    rotated[:, : shape.heads].mul_(shape.head_dim**-0.5)
    return rotated


def _feed_forward(weights: InferenceWeights, layer: LayerWeights, x: Tensor, mixed: Tensor) -> Tensor:
    """From attention's output to the layer's output."""
    shape = weights.shape
    x = x + weights.linear(mixed, layer.out, layer.out_bias)
    normed = F.rms_norm(x, (shape.width,), layer.before_mlp, shape.epsilon)
    if layer.router is not None:
        return x + mixture(
            normed, layer.router, layer.gate_up, layer.down, top_k=shape.top_k, normalised=shape.normalised
        )
    gate, up = weights.linear(normed, layer.gate_up, layer.gate_up_bias).split(shape.feed_forward, -1)
    return x + weights.linear(F.silu(gate).mul_(up), layer.down, layer.down_bias)


def decode(
    weights: InferenceWeights,
    cache: KVCache,
    tokens: Tensor,
    slots: Tensor,
    positions: Tensor,
    *,
    span: int,
    rows: int,
    common: tuple[int | Tensor, int] = (0, 0),
    lengths: Sequence[int] | None = None,
) -> Tensor:
    """One token for each of ``n`` different slots: writes its key and value, returns final hidden states [n, width].

    ``tokens``, ``slots``, ``positions`` are int64 [n]. ``span`` bounds the positions that attention looks at (> every
    position). ``rows``: attention reads slots 0..rows - 1 in place, whoever is active among them; 0 gathers the active
    slots first, which pays when few are. ``common`` (slot, length): all ``slots`` hold that slot's keys and values in
    their first ``length`` positions, all of them before their own, so that attention reads them there, once for all;
    the slot may be a tensor [1], where it must not become part of a recorded step.

    ``lengths``: ``positions`` + 1, with ``rows`` 0: attention goes through blocks of rows, in place, and ``span`` means
    nothing.

    If ``rows`` is n, token i reads slot i in place and writes to ``slots[i]``, which is i or, for a token that nobody
    reads, any slot beyond those that are in use.
    """
    shape = weights.shape
    kv, groups, dim = shape.kv_heads, shape.groups, shape.head_dim
    n = tokens.shape[0]
    in_place = rows > 0
    aligned = rows == n  # slots in use are distinct and sorted, so this means slots == 0..n - 1
    x = F.embedding(tokens, weights.embedding)
    cos, sin = weights.cos.index_select(0, positions), weights.sin.index_select(0, positions)
    places = cache.places(slots, positions)
    reach = positions
    if in_place and not aligned:
        reach = positions.new_zeros(rows).index_copy_(0, slots, positions)
    if lengths is None:
        bias = cached_attention.step_bias(reach, common[1], span)
    else:
        blocks = cached_attention.row_blocks(slots.tolist(), lengths, common[1], x)
    split = shape.heads * dim, (shape.heads + kv) * dim
    for number, layer in enumerate(weights.layers):
        normed = F.rms_norm(x, (shape.width,), layer.before_attention, shape.epsilon)
        qkv = weights.linear(normed, layer.qkv, layer.qkv_bias)
        heads = _queries_and_keys(weights, layer, qkv, cos, sin)
        cache.write(number, places, heads[:, shape.heads :], qkv[:, split[1] :])
        query = heads[:, : shape.heads].reshape(n, kv, groups, dim)
        if in_place and not aligned:
            query = query.new_zeros(rows, kv, groups, dim).index_copy_(0, slots, query)
        keys, values = cache.keys[number], cache.values[number]
        if lengths is None:
            read = None if in_place else slots
            mixed = cached_attention.together(query, keys, values, read, bias, common, span=span)
        else:
            mixed = cached_attention.in_blocks(query, keys, values, blocks, common)
        mixed = mixed.view(len(mixed), shape.heads * dim)
        if in_place and not aligned:
            mixed = mixed.index_select(0, slots)
        x = _feed_forward(weights, layer, x, mixed)
    return F.rms_norm(x, (shape.width,), weights.norm, shape.epsilon)


def prefill(
    weights: InferenceWeights, cache: KVCache, tokens: Sequence[Tensor], slots: Tensor, starts: Tensor, *, span: int
) -> None:
    """Write keys and values of new tokens for ``n`` different slots whose earlier positions are cached already.

    ``tokens``: n int64 vectors of any lengths >= 1; row i's go to positions ``starts[i]``, ``starts[i] + 1``, ... of
    slot ``slots[i]``. ``span`` bounds the positions that attention looks at (> every position written).
    """
    shape, device = weights.shape, weights.device
    kv, groups, dim = shape.kv_heads, shape.groups, shape.head_dim
    lengths = torch.tensor([len(t) for t in tokens], device=device)
    n, longest = len(tokens), max(len(t) for t in tokens)
    inside = torch.arange(longest, device=device)[None] < lengths[:, None]
    packed = inside.view(-1).nonzero()[:, 0]  # flat token -> its place in the padded rectangle
    row = packed // longest
    position = starts[row] + packed % longest
    x = F.embedding(torch.cat(list(tokens)).to(device), weights.embedding)
    cos, sin = weights.cos.index_select(0, position), weights.sin.index_select(0, position)
    places = cache.places(slots[row], position)
    fresh = weights.in_blocks and not starts.any()  # nothing is cached before: causal attention, which needs no mask
    spans = [] if fresh else spans_of(starts, lengths, longest, span)
    mask = spans[0].mask(groups, x.dtype) if len(spans) == 1 else None
    last = shape.layers - 1
    split = shape.heads * dim, (shape.heads + kv) * dim
    dense = packed.numel() == n * longest
    neighbours = _neighbours(slots)
    for number, layer in enumerate(weights.layers):
        normed = F.rms_norm(x, (shape.width,), layer.before_attention, shape.epsilon)
        qkv = weights.linear(normed, layer.qkv, layer.qkv_bias)
        heads = _queries_and_keys(weights, layer, qkv, cos, sin)
        cache.write(number, places, heads[:, shape.heads :], qkv[:, split[1] :])
        if number == last:
            return
        query = heads[:, : shape.heads].reshape(-1, shape.heads * dim)
        if not dense:
            query = query.new_zeros(n * longest, query.shape[1]).index_copy_(0, packed, query)
        stores = (store[number][:, :, : longest if fresh else span] for store in (cache.keys, cache.values))
        keys, values = (s.index_select(0, slots) if neighbours is None else s[neighbours] for s in stores)
        pieces = []
        if fresh:
            asked = query.view(n, longest, shape.heads, dim).transpose(1, 2)
            pieces.append(causal(asked, keys, values, 1.0).transpose(1, 2))
        # Query heads of one key/value head become more query rows: grouped attention without repeating keys.
        query = query.view(n, longest, kv, groups, dim)
        for part in spans:
            asked = query[:, part.first : part.end].permute(0, 2, 3, 1, 4).reshape(n, kv, -1, dim)
            seen = part.mask(groups, x.dtype) if mask is None else mask
            attended = F.scaled_dot_product_attention(
                asked, keys[:, :, : part.span], values[:, :, : part.span], attn_mask=seen, scale=1.0
            )
            pieces.append(attended.view(n, kv, groups, -1, dim).permute(0, 3, 1, 2, 4).flatten(2))
        mixed = (pieces[0] if len(pieces) == 1 else torch.cat(pieces, 1)).reshape(n * longest, shape.heads * dim)
        if not dense:
            mixed = mixed.index_select(0, packed)
        x = _feed_forward(weights, layer, x, mixed)


def _neighbours(slots: Tensor) -> slice | None:
    """Slots that follow one another as a range, which is read where it lies; None for others, and for a GPU's, which
    would have to be waited for."""
    if slots.device.type != "cpu":
        return None
    first, *_ = numbers = slots.tolist()
    return slice(first, first + len(numbers)) if numbers == [*range(first, first + len(numbers))] else None


def _rest_directly(weights: InferenceWeights, number: int, x: Tensor, mixed: Tensor) -> tuple[Tensor, Tensor]:
    """From attention's output to the layer's output, and that normed for whatever comes next."""
    shape, layer = weights.shape, weights.layers[number]
    x, normed = fused.add_norm(x, F.linear(mixed, layer.out, layer.out_bias), layer.before_mlp, shape.epsilon)
    if layer.router is not None:
        more = mixture(normed, layer.router, layer.gate_up, layer.down, top_k=shape.top_k, normalised=shape.normalised)
    else:
        gate, up = F.linear(normed, layer.gate_up, layer.gate_up_bias).split(shape.feed_forward, -1)
        more = F.linear(fused.gated(gate, up), layer.down, layer.down_bias)
    following = weights.norm if number + 1 == shape.layers else weights.layers[number + 1].before_attention
    return fused.add_norm(x, more, following, shape.epsilon)


def decode_directly(
    weights: InferenceWeights,
    cache: KVCache,
    tokens: Tensor,
    slots: Tensor,
    positions: Tensor,
    *,
    span: int,
    common: tuple[int | Tensor, int] = (0, 0),
) -> Tensor:
    """``decode`` by kernels of its own (``fused_cache``): each token reads what its slot holds, and no more."""
    slots, positions = slots.contiguous(), positions.contiguous()
    lead, skip = common
    if isinstance(lead, int):
        lead = torch.full((1,), lead, dtype=torch.int64, device=weights.device)
    x = F.embedding(tokens, weights.embedding)
    normed = fused.norm(x, weights.layers[0].before_attention, weights.shape.epsilon)
    for number in range(weights.shape.layers):
        queries = _kept(weights, cache, number, normed, slots, positions)
        keys, values = cache.keys[number], cache.values[number]
        mixed = fused_cache.decode(queries, keys, values, slots, positions, span, lead, skip)
        x, normed = _rest_directly(weights, number, x, mixed)
    return normed


def prefill_directly(
    weights: InferenceWeights, cache: KVCache, tokens: Sequence[Tensor], slots: Tensor, starts: Tensor
) -> None:
    """``prefill`` by kernels of its own: prompts lie one after another, and nothing is padded."""
    lengths = torch.tensor([len(t) for t in tokens])
    ends = lengths.cumsum(0)
    slots, starts = slots.contiguous(), starts.contiguous()
    row = torch.arange(len(lengths)).repeat_interleave(lengths)
    column = torch.arange(int(ends[-1])) - (ends - lengths)[row]
    layout = torch.stack((torch.cat(list(tokens)), row, column)).to(weights.device)
    offsets = torch.cat((ends.new_zeros(1), ends)).to(weights.device)
    places, positions = slots[layout[1]], starts[layout[1]] + layout[2]
    x = F.embedding(layout[0], weights.embedding)
    normed = fused.norm(x, weights.layers[0].before_attention, weights.shape.epsilon)
    last = weights.shape.layers - 1
    for number in range(weights.shape.layers):
        queries = _kept(weights, cache, number, normed, places, positions)
        if number == last:
            return
        keys, values = cache.keys[number], cache.values[number]
        mixed = fused_cache.prefill(queries, keys, values, slots, starts, offsets, int(lengths.max()))
        x, normed = _rest_directly(weights, number, x, mixed)


def _kept(
    weights: InferenceWeights, cache: KVCache, number: int, normed: Tensor, slots: Tensor, positions: Tensor
) -> Tensor:
    """The queries of one layer, whose keys and values go to the cache."""
    layer, shape = weights.layers[number], weights.shape
    qkv = F.linear(normed, layer.qkv, layer.qkv_bias)
    tables = weights.cos, weights.sin
    store = cache.keys[number], cache.values[number]
    return fused_cache.keep(qkv, layer.gain, tables, slots, positions, *store, shape.heads, shape.epsilon)
