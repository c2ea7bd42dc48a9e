"""The one seam between a model and those who use it: what a learner asks of a model, and what an engine asks.

``path_of`` chooses how a model is computed. Learners see a ``ModelPath``, engines the ``CachedModel`` that it makes;
neither knows of which family the model is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from muarl.models import decoder
from muarl.models.attention import can_share
from muarl.models.decoder_cached import CachedDecoder
from muarl.models.layout import Layout
from muarl.models.support import Support, support_of


class CachedModel(Protocol):
    """A model that generates: its own copy of the weights, and a cache of ``slots`` rows of ``positions`` tokens.

    Prefill only fills the cache: a prompt's last token goes through ``decode``.
    """

    @property
    def vocab(self) -> int:
        """Ids that the model knows, so also the logits of one token."""
        ...

    def refresh(self, model: nn.Module) -> None:
        """Take the weights of this moment."""
        ...

    def reusable(self, slot: int, length: int) -> int:
        """How many of a slot's first ``length`` cached tokens a prompt that begins with them may continue from: all,
        or, where a state cannot be put back, none unless the slot holds exactly these."""
        ...

    def copy(self, moves: Sequence[tuple[int, int, int]]) -> None:
        """(source, target, length): the source slots' first tokens to the target slots, all read before any written."""
        ...

    def prefill(self, tokens: Sequence[Tensor], slots: Tensor, starts: Tensor, *, span: int) -> None:
        """Cache new tokens of different slots, row i's from position ``starts[i]`` on. ``span``: more than every
        position."""
        ...

    def decode(
        self,
        tokens: Tensor,
        slots: Tensor,
        positions: Tensor,
        *,
        span: int,
        rows: int,
        common: tuple[int, int],
    ) -> Tensor:
        """One token for each of n different slots, at these positions: logits [n, vocab] in float32. ``span``, ``rows``
        and ``common``: see ``decoder_cached.decode``; they say how to be quick, and do not change the result."""
        ...


class ModelPath(Protocol):
    """How one model is computed. ``support``: what that allows."""

    @property
    def support(self) -> Support: ...

    def shares_prefixes(self) -> bool:
        """Whether ``token_logprobs`` follows a layout that computes common beginnings once, where the model lies."""
        ...

    def token_logprobs(
        self,
        ids: Tensor,
        positions: Tensor,
        documents: Tensor | None,
        select: Tensor,
        temperature: float = 1.0,
        *,
        entropy: bool = True,
        recompute: bool = False,
        layout: Layout | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Log-probability of each selected token given the tokens before it in its own document, and the entropy there;
        see ``decoder.token_logprobs``."""
        ...

    def cached(self, *, slots: int, positions: int, device: torch.device, dtype: torch.dtype) -> CachedModel:
        """The model with a cache, to generate with."""
        ...


class OwnPath:
    """The own path: see ``decoder`` and ``decoder_cached``."""

    def __init__(self, model: nn.Module, support: Support) -> None:
        self.model, self.support = model, support

    def shares_prefixes(self) -> bool:
        """See ``ModelPath``."""
        return can_share(next(self.model.parameters()))

    def token_logprobs(self, *arguments: Any, **options: Any) -> tuple[Tensor, Tensor]:
        """See ``decoder.token_logprobs``."""
        return decoder.token_logprobs(self.model, *arguments, **options)

    def cached(self, *, slots: int, positions: int, device: torch.device, dtype: torch.dtype) -> CachedModel:
        """See ``ModelPath``."""
        return CachedDecoder(self.model, slots=slots, positions=positions, device=device, dtype=dtype)


def path_of(model: nn.Module) -> ModelPath:
    """How this model is computed. CheckpointError if it cannot be used; see ``support_of``."""
    support = support_of(getattr(model, "config", None) or {}, type(model).__name__)
    if support.path == "own":
        decoder.shape_of(model, adapters=True)
        return OwnPath(model, support)
    from muarl.models.generic import GenericPath  # families without a path of our own

    return GenericPath(model, support)
