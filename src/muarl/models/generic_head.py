"""From a body's last hidden states to log-probabilities, by whatever the class of a model does on the way to logits.

Most heads are a matrix and nothing else. Others scale, cap or shift the logits: these are computed by the model's own
class for some tokens at a time and again in the backward pass, so that all logits are never held at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from muarl.basics.errors import CheckpointError
from muarl.models.scoring import chunk_rows, linear_logprobs


class Head:
    """The way from the last hidden states of ``body`` to the logits of ``model``, whose output matrix is ``matrix``."""

    def __init__(self, model: nn.Module, body: nn.Module, matrix: nn.Linear) -> None:
        self.model, self.body, self.matrix = model, body, matrix

    def logprobs(self, hidden: Tensor, targets: Tensor, temperature: float, entropy: bool) -> tuple[Tensor, Tensor]:
        """Log-probabilities of ``targets`` [n] after ``hidden`` [n, width] under softmax(logits / temperature), and its
        entropies (zeros if not asked); both float32."""
        if self._is_plain:
            return linear_logprobs(hidden, self.matrix.weight, targets, temperature=temperature, entropy=entropy)
        scores = _InParts.apply(self, targets, temperature, entropy, hidden, *self._weights)
        return cast("tuple[Tensor, Tensor]", scores)

    def look(self) -> None:
        """Find out now, and not at the first score, what the model does to its logits: that calls all its layers."""
        _ = self._is_plain

    @property
    def _weights(self) -> list[nn.Parameter]:
        """All that is not the body's, and the output matrix, which may be the body's too. (Where the model is sharded,
        they are other tensors while it is gathered.)"""
        inside = {id(p) for p in self.body.parameters()} - {id(p) for p in self.matrix.parameters()}
        return [p for p in self.model.parameters() if id(p) not in inside]

    def scored(self, hidden: Tensor, targets: Tensor, temperature: float, entropy: bool) -> tuple[Tensor, Tensor]:
        """As ``logprobs``, all at once."""
        logits = self._logits(hidden).float() / temperature
        logprob = -functional.cross_entropy(logits, targets, reduction="none")
        if not entropy:
            return logprob, torch.zeros_like(logprob)
        every = logits.log_softmax(-1)
        return logprob, -(every.exp() * every).sum(-1)

    def _logits(self, hidden: Tensor) -> Tensor:
        """The model's own logits [n, vocab] behind ``hidden`` [n, width]: its body is left out."""
        ids = torch.zeros(1, len(hidden), dtype=torch.int64, device=hidden.device)
        with _giving(self.body, self._output(last_hidden_state=hidden[None])):
            return cast(Tensor, cast(Any, self.model)(input_ids=ids, use_cache=False).logits[0])

    @cached_property
    def _output(self) -> Any:
        """What the body returns."""
        return type(self._tried[0])

    @cached_property
    @torch.no_grad()
    def _tried(self) -> tuple[Any, Tensor]:
        """The body's output for three tokens, and the model's logits [3, vocab]."""
        seen: dict[str, Any] = {}

        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            seen["body"] = output

        device = self.matrix.weight.device
        with _hooked(self.body.register_forward_hook(keep)), torch.autocast(device.type, enabled=False):
            ids = torch.arange(3, device=device)[None]
            logits = cast(Any, self.model)(input_ids=ids, use_cache=False).logits
        return seen["body"], logits[0].float()

    @cached_property
    @torch.no_grad()
    def _is_plain(self) -> bool:
        """Whether the logits are the hidden states times the output matrix and nothing else, found out on three tokens:
        what goes into the matrix is compared, and what comes out of it is replaced by numbers that any scale, cap or
        shift would change. CheckpointError where a token's logits hang on other tokens' hidden states."""
        hidden = self._tried[0].last_hidden_state[0]
        seen: dict[str, Tensor] = {}

        def swap(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            replacement = torch.linspace(-80, 80, output.numel(), device=output.device)
            seen["read"], seen["given"] = inputs[0], replacement.to(output.dtype).view_as(output)
            return seen["given"]

        with torch.autocast(hidden.device.type, enabled=False):
            turned = self._logits(hidden.flip(0)).float().flip(0)
            if not torch.allclose(turned, self._tried[1], rtol=0.02, atol=0.02):
                raise CheckpointError(
                    f"{type(self.model).__name__}: a token's logits are not made from its own hidden state alone, so "
                    "that long episodes cannot be scored in parts: choose another model"
                )
            with _hooked(self.matrix.register_forward_hook(swap)):
                logits = self._logits(hidden)
        same = seen["read"].shape[-2:] == hidden.shape and torch.equal(seen["read"].reshape(hidden.shape), hidden)
        return self.matrix.bias is None and same and torch.equal(logits.float(), seen["given"][0].float())


class _InParts(torch.autograd.Function):
    """``Head.scored`` of some tokens at a time, computed again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        head, targets, temperature, entropy, hidden, *weights = inputs
        ctx.rows = chunk_rows(head.matrix.weight.shape[0], hidden.device)
        # Made before any logits: what is kept between blocks of freed memory keeps them from being used again.
        logprob = torch.empty(len(hidden), dtype=torch.float32, device=hidden.device)
        spread = torch.empty_like(logprob)
        for first in range(0, len(hidden), ctx.rows):
            part = slice(first, first + ctx.rows)
            logprob[part], spread[part] = head.scored(hidden[part], targets[part], temperature, entropy)
        ctx.save_for_backward(targets, hidden, *weights)
        ctx.head, ctx.temperature = head, temperature
        kind = hidden.device.type
        ctx.autocast = (kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind))
        ctx.set_materialize_grads(False)
        return logprob, spread

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        targets, hidden, *weights = ctx.saved_tensors
        graded = [n for n in (0, 1) if grads[n] is not None]
        trained = [w for w in weights if w.requires_grad]
        slope = torch.empty_like(hidden)
        sums = [torch.zeros_like(w, dtype=torch.float32) for w in trained]
        for first in range(0, len(hidden), ctx.rows):
            part = slice(first, first + ctx.rows)
            own = hidden[part].detach().requires_grad_()
            with torch.enable_grad(), torch.autocast(ctx.autocast[0], ctx.autocast[1], ctx.autocast[2]):
                scores = ctx.head.scored(own, targets[part], ctx.temperature, 1 in graded)
            gradients = torch.autograd.grad(
                [scores[n] for n in graded], [own, *trained], [grads[n][part] for n in graded], allow_unused=True
            )
            slope[part] = gradients[0]
            for total, more in zip(sums, gradients[1:], strict=True):
                if more is not None:
                    total += more
        totals = iter(sums)
        ours = [next(totals).to(w.dtype) if w.requires_grad else None for w in weights]
        return None, None, None, None, slope, *ours


@contextmanager
def _giving(module: nn.Module, output: Any) -> Iterator[None]:
    """Within the block, the module computes nothing and gives ``output``."""
    own = module.__dict__.get("forward")
    cast(Any, module).forward = lambda *_, **__: output
    try:
        yield
    finally:
        del cast(Any, module).forward
        if own is not None:
            cast(Any, module).forward = own


@contextmanager
def _hooked(handle: Any) -> Iterator[None]:
    try:
        yield
    finally:
        handle.remove()
