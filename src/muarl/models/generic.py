"""Any causal language model, by its own class in ``transformers``: exact for every family, and slower.

Documents that lie in one row of a batch are computed in rows of their own, each with others of about its length and
padded behind its end, where no causal model looks. So nothing passes from one document to the next, neither attention
nor the state of a recurrent layer. Memory grows with the tokens: see ``generic_attention`` and ``generic_head``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from muarl.basics.errors import CheckpointError
from muarl.models.adapters import adapters_off, is_base_only
from muarl.models.generic_attention import keep_linear
from muarl.models.generic_head import Head
from muarl.models.layout import Layout, plan_layout
from muarl.models.support import Support

if TYPE_CHECKING:
    from muarl.models.generic_cached import CachedGeneric


IDLE = 2
"""Tokens of a row that is computed for nothing."""


class GenericPath:
    """See ``path.ModelPath``.

    ``most``: where several processes hold the model together, and so have to call its layers equally often: of the
    numbers that they give, the largest.
    """

    def __init__(self, model: nn.Module, support: Support, most: Callable[[int], int] | None = None) -> None:
        self.model, self.support, self._most = model, support, most
        self.body, self.head = parts_of(model)
        self._scores = Head(model, self.body, self.head)
        self._recomputes = False
        if support.verified:
            keep_linear(model)

    def shares_prefixes(self) -> bool:
        """See ``ModelPath``."""
        return False

    def cached(self, *, slots: int, positions: int, device: torch.device, dtype: torch.dtype) -> CachedGeneric:
        """See ``ModelPath``."""
        from muarl.models.generic_cached import CachedGeneric

        return CachedGeneric(self.model, self.support, device=device, dtype=dtype)

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
        """See ``ModelPath``. ``positions`` and ``layout`` are not needed: every document begins at 0 in its own row."""
        docs = torch.zeros_like(ids) if documents is None else documents
        chosen = select.reshape(-1).nonzero()[:, 0]
        if not chosen.numel() and self._most is None:
            return self._nothing()
        if recompute and not self._recomputes:
            self._recompute()
        own = plan_layout(docs)
        places = own.place[chosen - 1]
        if own.pack is not None:
            places = own.unpack[places]
        targets = ids.reshape(-1)[chosen]
        with adapters_off(self.model) if is_base_only() else nullcontext():
            self._scores.look()
            rectangles = self._equally_many(ids, list(_rectangles(ids, own)) if chosen.numel() else [])
            hidden = torch.cat([self._hidden(rows) for rows in rectangles])
            return self._scores.logprobs(hidden.index_select(0, places), targets, temperature, entropy)

    def _equally_many(self, ids: Tensor, rectangles: list[Tensor]) -> list[Tensor]:
        """As many as any other process has, the missing ones with nothing in them that is asked for."""
        if self._most is None:
            return rectangles
        missing = self._most(max(1, len(rectangles))) - len(rectangles)
        return rectangles + [ids.new_zeros(1, IDLE)] * missing

    def _hidden(self, ids: Tensor) -> Tensor:
        """What the output matrix reads [rows * length, width] of right-padded rows."""
        output = cast(Any, self.body)(input_ids=ids, use_cache=False)
        return cast(Tensor, output.last_hidden_state).flatten(0, 1)

    def _nothing(self) -> tuple[Tensor, Tensor]:
        """No results, which still reach the weights with a gradient of 0."""
        zero = self.head.weight[:0, :0].sum(1).float()
        return zero, zero.detach().clone()

    def _recompute(self) -> None:
        """From now on layers compute their activations again in the backward pass. Only layers that can are told that
        they train: dropout and the like stay off."""
        model = cast(Any, self.model)
        if not model.supports_gradient_checkpointing:
            raise CheckpointError(
                f"Models of type {self.support.family!r} cannot compute activations again: set learner.recompute=false"
            )
        if hasattr(model, "activation_checkpointing_enable"):
            model.activation_checkpointing_enable({"use_reentrant": False})
        else:  # the older name
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        for module in self.model.modules():
            if isinstance(module, GradientCheckpointingLayer):
                module.training = True
        self._recomputes = True


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """The layers of the model, which are computed one after another and have no parameter in common.

    CheckpointError if its class does not say which modules these are, or has weights that cannot be cut."""
    body, _ = parts_of(model)
    blocks: list[nn.Module] = []
    inside: set[int] = set()
    for module in body.modules():
        if isinstance(module, GradientCheckpointingLayer) and id(module) not in inside:
            blocks.append(module)
            inside |= {id(part) for part in module.modules()}
    single = next((name for name, parameter in model.named_parameters() if not parameter.ndim), None)
    if single is not None:
        raise CheckpointError(
            f"{type(model).__name__} has a weight of a single number, {single!r}, which PyTorch does not shard: set "
            "learner.kind=torch"
        )
    held = [id(parameter) for block in blocks for parameter in block.parameters()]
    if not blocks or len(set(held)) < len(held):
        raise CheckpointError(
            f"{type(model).__name__} has no layers with weights of their own that can be told apart, so it cannot be "
            "sharded: set learner.kind=torch"
        )
    return blocks


class ScoringModule(nn.Module):
    """A model as a module whose call is ``token_logprobs`` of a path of it."""

    def __init__(self, path: GenericPath) -> None:
        super().__init__()
        self.model, self._path = path.model, path

    def forward(self, *arguments: Any, **options: Any) -> tuple[Tensor, Tensor]:
        """See ``GenericPath.token_logprobs``."""
        return self._path.token_logprobs(*arguments, **options)


def parts_of(model: nn.Module) -> tuple[nn.Module, nn.Linear]:
    """The model without its output matrix, and that matrix. CheckpointError where it has no such parts."""
    inner = cast(Any, model)
    body = getattr(inner, "base_model", model)
    head = inner.get_output_embeddings() if hasattr(inner, "get_output_embeddings") else None
    if body is model or not isinstance(head, nn.Linear):
        raise CheckpointError(
            f"{type(model).__name__} has no body and output matrix that can be told apart, so it can be neither "
            "trained nor sampled from here: choose a causal language model, or serve it as endpoint:MODEL@URL"
        )
    return body, head


def _rectangles(ids: Tensor, layout: Layout) -> Iterator[Tensor]:
    """The documents' ids [rows, length], one document a row, padded behind the end with any id."""
    flat = ids.reshape(-1).index_select(0, layout.tokens)
    if layout.pack is not None:
        flat = flat.index_select(0, layout.pack)
    base = 0
    for rows, length in layout.blocks:
        yield flat[base : base + rows * length].view(rows, length)
        base += rows * length
