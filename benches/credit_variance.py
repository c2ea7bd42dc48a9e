"""How much of a gradient is signal, by how credit is given: cosines between the gradients of two halves of a batch.

    muarl train -c quickstart-easy -m RUN rl.steps=8 rl.credit=state --rollouts-only --name flat
    muarl train -c quickstart-easy -m RUN rl.steps=8 rl.credit=state rl.branch.stems=4 rl.group_size=12 \
        --rollouts-only --name branching
    python benches/credit_variance.py runs/flat runs/branching

All steps of a record were played by the same weights. A run with ``rl.credit=state`` is also taken with the outcome
alone. Each step's gradient is that of the policy loss on all its episodes; halves are all ways to part
the steps in two, and a half's gradient is the mean of its steps'. Prints, for each: sampled tokens a step, the mean
cosine between halves, and the share of a step's squared gradient that is noise.
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from muarl.accounts.metrics import agent_tokens
from muarl.backends.models import load_model
from muarl.config.load import load_config
from muarl.config.rl import RlConfig
from muarl.config.sections import RunConfig
from muarl.environments.configure import places_of
from muarl.learning.learner import TorchLearner
from muarl.recipes.training.loss_settings import learner_config, samples_of
from muarl.recipes.training.recorded_steps import Recording
from muarl.recipes.training.turn_credit import TurnCredit


class Kept:
    """In an optimiser's place: keeps the gradient of each update, and moves nothing."""

    updates = 0

    def __init__(self, model: torch.nn.Module) -> None:
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.gradients: list[torch.Tensor] = []

    def step(self) -> dict[str, float]:
        self.gradients.append(torch.cat([(p.grad if p.grad is not None else p * 0).flatten() for p in self.parameters]))
        for parameter in self.parameters:
            parameter.grad = None
        return {"nonfinite": 0.0}


def gradients(config: RunConfig, rl: RlConfig, recording: Recording) -> tuple[torch.Tensor, float]:
    """The gradient of each step [steps, parameters], and sampled tokens a step."""
    policy = load_model(config.model)
    learner = TorchLearner(policy.model, policy.tokenizer, learner_config(rl, config.model))
    kept: Any = Kept(policy.model)
    learner.optimizer = kept
    credit, tokens = TurnCredit.resumed(rl, places_of(config), {}), 0
    for step in recording.steps:
        groups = recording.groups(step, rl)
        tokens += sum(agent_tokens(e) for g in groups.kept for e in g.episodes)
        if credit is not None:
            credit.begin({})
        learner.policy_step(samples_of(groups, rl, by_turn=credit))
        if credit is not None:
            credit.end()
    return torch.stack(kept.gradients), tokens / len(recording.steps)


def between_halves(found: torch.Tensor) -> float:
    """The mean cosine between the means of two halves, over all ways to part the steps."""
    everything = set(range(len(found)))
    cosines = []
    for half in combinations(range(len(found)), len(found) // 2):
        if 0 in half:
            other = sorted(everything - {*half})
            cosines.append(torch.cosine_similarity(found[[*half]].mean(0), found[other].mean(0), dim=0))
    return float(torch.stack(cosines).mean())


def noise(found: torch.Tensor) -> float:
    """The share of a step's squared gradient that is not the true gradient's: 1 - |true|^2 / E|step|^2, where |true|^2
    is the mean product of two different steps."""
    products = found @ found.T
    count = len(found)
    true = (products.sum() - products.trace()) / (count * (count - 1))
    return float(1 - true / (products.trace() / count))


def main(names: list[str]) -> None:
    torch.manual_seed(0)
    print(f"{'':24}{'tokens a step':>14}{'cosine of halves':>18}{'noise':>8}")
    for name in names:
        recording = Recording.of(name)
        config = load_config(Path(name) / "config.yaml")
        own = config.rl.model_copy(update={"minibatches": 1, "rollouts_only": False, "entropy_coef": 0.0})
        kinds = ["outcome", "state"] if own.credit == "state" else [own.credit]
        for kind in kinds:
            found, tokens = gradients(config, own.model_copy(update={"credit": kind}), recording)
            label = f"{Path(name).name}, {kind}" if len(kinds) > 1 else Path(name).name
            print(f"{label:24}{tokens:14,.0f}{between_halves(found):18.3f}{noise(found):8.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
