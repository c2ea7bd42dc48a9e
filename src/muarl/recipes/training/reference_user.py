"""How near what a user model said is to a reference user model, from the exact tokens of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from muarl.basics.errors import ConfigError
from muarl.learning.checkpoints import Policy
from muarl.learning.packing import Batch, Sample, pack
from muarl.learning.steps import selected_logprobs
from muarl.models.path import path_of
from muarl.types.episode import TokenTrace


class ReferenceUser:
    """A user model whose weights stay. Called with conversations, it gives one number for each; see ``__call__``.

    ``likeness``: which. ``temperature``: at which log-probabilities are taken, that of the sampling. ``token_budget``:
    tokens in one pass.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        likeness: Literal["log_likelihood", "kl"] = "log_likelihood",
        temperature: float = 1.0,
        token_budget: int = 4096,
    ) -> None:
        self._path = path_of(policy.model)
        self._device = policy.model.device
        self._likeness, self._temperature, self._token_budget = likeness, temperature, token_budget

    @torch.no_grad()
    def __call__(self, traces: Sequence[TokenTrace]) -> list[float]:
        """Of each conversation, the mean over the tokens that the user sampled, in nats: of the reference's
        log-probability (``log_likelihood``), or of that less the sampler's (``kl``: its expectation is minus the
        divergence of the user from the reference). 0 where nothing was sampled."""
        spoken = [trace for trace in traces if trace.sampled_count]
        if not spoken:
            return [0.0] * len(traces)
        batch = Batch.of([Sample.sampled(t.ids, t.loss_mask, t.logprobs, 0.0) for t in spoken]).to(self._device)
        values = torch.zeros_like(batch.logprobs)
        for rows in pack(batch, token_budget=self._token_budget, share=self._path.shares_prefixes()):
            placed = rows.to(self._device)
            values[placed.index] = selected_logprobs(self._path, placed, temperature=self._temperature).logprobs
        if self._likeness == "kl":
            values = values - batch.logprobs
        sums = torch.zeros(len(spoken), device=self._device).index_add_(0, batch.sequences, values)
        counts = torch.bincount(batch.sequences, minlength=len(spoken)).clamp_min(1)
        means = iter((sums / counts).tolist())
        return [next(means) if trace.sampled_count else 0.0 for trace in traces]


def check_same_tokens(reference: Policy, user: Policy) -> None:
    """ConfigError if the reference reads tokens in another way than the user model that is trained."""
    if reference.tokenizer.get_vocab() != user.tokenizer.get_vocab():
        raise ConfigError(
            f"user_rl.reference: {reference.path} has another tokenizer than the user model in {user.path}, so it "
            "cannot score its tokens: give a user model that was fine-tuned from the same checkpoint"
        )
