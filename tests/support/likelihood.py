"""How far a sampler's log-probabilities are from those that the model's class in transformers gives the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from muarl.inference.base import Completion


def scores(model: Any, prompt: Sequence[int], ids: Sequence[int], temperature: float = 1.0) -> torch.Tensor:
    """The log-probabilities of every token of the vocabulary, at each of ``ids``."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *ids]]), use_cache=False).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits.float() / temperature, -1)


def gap(model: Any, prompt: Sequence[int], sampled: Completion, temperature: float = 1.0) -> float:
    """The largest difference between the completion's log-probabilities and the model's, in nats."""
    ids = torch.tensor(sampled.ids)[:, None]
    own = scores(model, prompt, sampled.ids, temperature).gather(1, ids)[:, 0]
    return float((own - torch.tensor(sampled.logprobs)).abs().max())


def is_greedy(model: Any, prompt: Sequence[int], sampled: Completion) -> bool:
    """Whether each of the completion's tokens is the model's most likely one."""
    return scores(model, prompt, sampled.ids).argmax(-1).tolist() == list(sampled.ids)
