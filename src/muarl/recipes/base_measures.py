"""What a base checkpoint knows of conversations that it has not read: how well it predicts what the agent says there,
and how often it has the ids right."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from transformers import PreTrainedModel

from muarl.learning.packing import Sample


@dataclass(frozen=True, slots=True)
class PredictionStats:
    """How the agents' tokens of some conversations were predicted."""

    tokens: int = 0
    """How many there are."""
    nll: float = 0.0
    """The sum of their negative log-probabilities, nats."""
    ids: int = 0
    """How many are values of the world (ids, names, amounts)."""
    right: int = 0
    """Of how many of ``ids`` the value was the most likely token."""

    def __add__(self, other: PredictionStats) -> PredictionStats:
        return PredictionStats(
            self.tokens + other.tokens, self.nll + other.nll, self.ids + other.ids, self.right + other.right
        )

    def to_json(self) -> dict[str, float]:
        """``nll``: nats a token; ``ids_right``: a share (both None where there is nothing to predict)."""
        nll = self.nll / self.tokens if self.tokens else math.nan
        right = self.right / self.ids if self.ids else math.nan
        figures = {"nll": round(nll, 4), "ids_right": round(right, 4), "tokens": self.tokens, "ids": self.ids}
        return {name: value for name, value in figures.items() if value == value}


@torch.no_grad()
def predicted(model: PreTrainedModel, samples: Sequence[Sample], values: Collection[int]) -> PredictionStats:
    """How a model predicts the agents' tokens (weight 1) of conversations. ``values``: the ids of tokens that are
    values of the world."""
    value_mask = torch.zeros(cast(Any, model.config).vocab_size, dtype=torch.bool)
    value_mask[list(values)] = True
    total = PredictionStats()
    device = model.device
    for sample in samples:
        ids = torch.tensor([list(sample.ids)], device=device)
        due = (torch.tensor(list(sample.weights))[1:] == 1.0).nonzero().flatten()
        logits = cast(Any, model)(input_ids=ids, use_cache=False).logits[0, due].float().cpu()
        targets = ids[0, 1:].cpu()[due]
        nll = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
        value = value_mask[targets]
        right = (logits.argmax(-1) == targets) & value
        total += PredictionStats(len(targets), float(nll), int(value.sum()), int(right.sum()))
    return total


def measures(by_domain: Mapping[str, PredictionStats]) -> dict[str, Any]:
    """The figures of all domains together, and of each under ``by_domain`` where there are several."""
    whole: dict[str, Any] = sum(by_domain.values(), PredictionStats()).to_json()
    return whole | (
        {"by_domain": {name: one.to_json() for name, one in by_domain.items()}} if len(by_domain) > 1 else {}
    )
