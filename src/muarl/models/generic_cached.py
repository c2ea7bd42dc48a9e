"""Generation with any causal language model over the cache of ``transformers``, one cache a slot.

Slots decode together where every layer keeps keys and values and the family is known to be right when shorter rows are
padded in front; else one after another. A recurrent layer's state cannot be put back to an earlier token, so such a
slot is continued from exactly where it is, or computed anew.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from muarl.basics.errors import CheckpointError
from muarl.models.support import Support
from muarl.models.weights import copy_state

CACHE_NAMES = ("past_key_values", "cache")
"""What models call their cache: up to transformers 5.23, and from 5.24 on."""


@dataclass(slots=True)
class _Row:
    """The cache of one slot, or of several that decode together."""

    cache: Any
    length: int = 0
    """Tokens in it, padding included."""


@dataclass(slots=True)
class _Together:
    """Slots whose caches are one."""

    slots: tuple[int, ...]
    pads: list[int]
    """Padded tokens in front of the shorter rows."""
    row: _Row

    @property
    def lengths(self) -> list[int]:
        return [self.row.length - pad for pad in self.pads]


class CachedGeneric:
    """See ``path.CachedModel``."""

    def __init__(self, model: nn.Module, support: Support, *, device: torch.device, dtype: torch.dtype) -> None:
        own: Any = copy.deepcopy(model)
        self._model: Any = own.to(device=device, dtype=dtype).eval().requires_grad_(False)
        self._body: Any = self._model.base_model
        self._config = self._model.config.get_text_config(decoder=True)
        takes = inspect.signature(self._body.forward).parameters
        self._cache_name: Any = next((name for name in CACHE_NAMES if name in takes), None)
        if self._cache_name is None:
            raise CheckpointError(
                f"Models of type {support.family!r} keep their state in a way that only their own class knows, so they "
                "cannot be sampled from here: serve the model with vLLM and name it as endpoint:MODEL@URL"
            )
        self._takes_positions = "position_ids" in takes
        self._keeps_last = "logits_to_keep" in inspect.signature(self._model.forward).parameters
        self._rewinds = _is_only_attention(self._config)
        self._joins = self._rewinds and self._takes_positions and support.verified
        self._rows: dict[int, _Row] = {}
        self._together: _Together | None = None

    @property
    def vocab(self) -> int:
        """See ``CachedModel``."""
        return int(self._config.vocab_size)

    def refresh(self, model: nn.Module) -> None:
        """See ``CachedModel``."""
        copy_state(model, self._model)

    def reusable(self, slot: int, length: int) -> int:
        """See ``CachedModel``."""
        self._part()
        row = self._rows.get(slot)
        return length if self._rewinds or (row is not None and row.length == length) else 0

    def copy(self, moves: Sequence[tuple[int, int, int]]) -> None:
        """See ``CachedModel``."""
        self._part()
        self._rows.update([(target, self._first(self._rows[source], length)) for source, target, length in moves])

    def prefill(self, tokens: Sequence[Tensor], slots: Tensor, starts: Tensor, *, span: int) -> None:
        """See ``CachedModel``."""
        self._part()
        for ids, slot, start in zip(tokens, slots.tolist(), starts.tolist(), strict=True):
            self._run(self._body, self._at(slot, start), ids[None], [start])

    def decode(
        self, tokens: Tensor, slots: Tensor, positions: Tensor, *, span: int, rows: int, common: tuple[int, int]
    ) -> Tensor:
        """See ``CachedModel``."""
        chosen, lengths = tuple(slots.tolist()), positions.tolist()
        if self._joins and len(chosen) > 1:
            return self._decode_together(tokens, chosen, lengths)
        self._part()
        each = zip(tokens[:, None, None], chosen, lengths, strict=True)
        return torch.cat([self._logits(self._at(slot, length), ids, [length]) for ids, slot, length in each])

    def _decode_together(self, tokens: Tensor, slots: tuple[int, ...], lengths: list[int]) -> Tensor:
        together = self._together
        if together is None or together.slots != slots or together.lengths != lengths:
            self._part()
            together = self._together = self._join(slots, lengths)
        place = torch.arange(together.row.length + 1, device=tokens.device)
        seen = place[None] >= torch.tensor(together.pads, device=tokens.device)[:, None]
        return self._logits(together.row, tokens[:, None], lengths, attention_mask=seen.long())

    def _logits(self, row: _Row, ids: Tensor, starts: list[int], **more: Tensor) -> Tensor:
        """The logits [rows, vocab] behind the last of ``ids`` [rows, tokens]."""
        options: dict[str, Any] = {"logits_to_keep": 1} if self._keeps_last else {}
        logits: Tensor = self._run(self._model, row, ids, starts, **more, **options).logits
        return logits[:, -1].float()

    def _run(self, module: Any, row: _Row, ids: Tensor, starts: list[int], **more: Any) -> Any:
        """Read ``ids`` [rows, tokens] behind what ``row`` holds; each row's begin at its own position."""
        ids = ids.to(self._model.device)
        if self._takes_positions:
            first = torch.tensor(starts, device=ids.device)[:, None]
            more["position_ids"] = first + torch.arange(ids.shape[1], device=ids.device)
        output = module(input_ids=ids, use_cache=True, **{self._cache_name: row.cache}, **more)
        row.length += ids.shape[1]
        return output

    # ---- caches

    def _at(self, slot: int, length: int) -> _Row:
        """The slot's cache of exactly its first ``length`` tokens."""
        row = self._rows.get(slot)
        if length == 0:
            row = self._rows[slot] = _Row(DynamicCache() if self._rewinds else DynamicCache(config=self._config))
        if row is None or row.length < length:
            raise RuntimeError(f"slot {slot} holds {row.length if row else 0} tokens, and {length} were asked for")
        if row.length > length:
            row = self._rows[slot] = self._first(row, length)
        return row

    def _first(self, row: _Row, length: int) -> _Row:
        """A row's first tokens; another row, which changes alone from now on."""
        if self._rewinds:
            return _Row(
                _cache_of([tuple(states[..., :length, :] for states in layer) for layer in _keys(row.cache)]), length
            )
        if row.length != length:
            raise RuntimeError(f"a recurrent state of {row.length} tokens cannot be put back to {length}")
        return copy.deepcopy(row)

    def _join(self, slots: tuple[int, ...], lengths: list[int]) -> _Together:
        """The slots' caches as one, shorter rows padded in front."""
        rows = [_keys(self._at(slot, length).cache) for slot, length in zip(slots, lengths, strict=True)]
        longest = max(lengths)
        pads = [longest - length for length in lengths]
        layers = [
            tuple(
                torch.cat([functional.pad(states, (0, 0, pad, 0)) for states, pad in zip(part, pads, strict=True)])
                for part in zip(*layer, strict=True)
            )
            for layer in zip(*rows, strict=True)
        ]
        return _Together(slots, pads, _Row(_cache_of(layers), longest))

    def _part(self) -> None:
        """Give slots that decoded together their own caches again."""
        together, self._together = self._together, None
        if together is None:
            return
        layers = _keys(together.row.cache)
        for number, (slot, pad) in enumerate(zip(together.slots, together.pads, strict=True)):
            own = [tuple(states[number : number + 1, :, pad:].clone() for states in layer) for layer in layers]
            self._rows[slot] = _Row(_cache_of(own), together.row.length - pad)


def _is_only_attention(config: Any) -> bool:
    """Whether all that layers remember is keys and values, one for each token, every layer its own."""
    kinds = {type(layer) for layer in DynamicCache(config=config).layers}
    return kinds <= {DynamicLayer, DynamicSlidingWindowLayer} and not getattr(config, "num_kv_shared_layers", 0)


def _keys(cache: Any) -> list[tuple[Tensor, ...]]:
    """Keys and values [rows, heads, tokens, head_dim] of every layer."""
    return [(layer.keys, layer.values) for layer in cache.layers]


def _cache_of(layers: Sequence[tuple[Tensor, ...]]) -> Any:
    cache = DynamicCache()
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache
