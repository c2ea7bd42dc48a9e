"""Packing for shared prefixes: budgets count what is computed, and steps learn the same as without sharing."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from transformers import Qwen3ForCausalLM

from muarl.basics.errors import ConfigError
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.packing import Batch, Sample, pack
from muarl.learning.settings import LearnerConfig
from muarl.models.layout import SHARE_FROM


def group_samples(seed: int = 0, groups: int = 3, size: int = 4) -> list[Sample]:
    """Rollouts of several prompts, which share a system prompt; some rollouts are equal."""
    source = random.Random(seed)
    system = [source.randrange(40) for _ in range(SHARE_FROM + 3)]
    samples = []
    for _ in range(groups):
        prompt = system + [source.randrange(40) for _ in range(SHARE_FROM)]
        for member in range(size):
            own = [source.randrange(40) for _ in range(source.randint(3, 20))]
            if member < 2:
                own = [7, 8, 9]
            mask = [False] * len(prompt) + [True] * len(own)
            logprobs = [-source.random() for _ in mask]
            samples.append(Sample.sampled(prompt + own, mask, logprobs, source.uniform(-1, 1)))
    source.shuffle(samples)
    return samples


@pytest.mark.parametrize("budget", [90, 150, 400, 10_000])
def test_every_target_lands_once_within_the_budget(budget: int) -> None:
    samples = group_samples()
    batch = Batch.of(samples)
    packed = pack(batch, token_budget=budget, share=True)
    assert sorted(torch.cat([rows.index for rows in packed]).tolist()) == list(range(len(batch.weights)))
    assert all(rows.places <= budget for rows in packed)
    assert sum(rows.tokens for rows in packed) == sum(len(s.ids) for s in samples)
    for rows in packed:
        for target, at in zip(rows.ids[rows.targets].tolist(), rows.index.tolist(), strict=True):
            sample = int(batch.sequences[at])
            wanted = [t for t in range(1, len(samples[sample].ids)) if samples[sample].weights[t]]
            assert target == samples[sample].ids[wanted[at - batch.starts[sample]]]
    together = pack(batch, token_budget=budget)
    assert len(packed) <= len(together)
    assert len(packed) == 1 or budget < 10_000


def test_a_document_beyond_the_budget_is_still_refused() -> None:
    with pytest.raises(ConfigError, match="token_budget"):
        pack(Batch.of(group_samples()), token_budget=60, share=True)


@pytest.mark.parametrize("packing", ["sorted", "ffd"])
@pytest.mark.parametrize("step", ["sft_step", "policy_step"])
def test_a_step_learns_the_same_as_without_sharing(
    make_model: Callable[..., Qwen3ForCausalLM], monkeypatch: pytest.MonkeyPatch, packing: str, step: str
) -> None:
    samples = group_samples()
    if step == "sft_step":
        samples = [Sample.supervised(s.ids, [w == 1 for w in s.weights], 0.1) for s in samples]
    config = LearnerConfig(
        policy=PolicyLossConfig(kl_coef=0.1, minibatches=2),
        token_budget=200,
        packing=packing,  # type: ignore[arg-type]
    )
    results = []
    for share in (True, False):
        model = make_model().double()
        learner = TorchLearner(model, None, config)  # type: ignore[arg-type]
        if not share:
            monkeypatch.setattr("muarl.models.path.can_share", lambda tensor: False)
            monkeypatch.setattr("muarl.models.decoder.can_share", lambda tensor: False)
        metrics = getattr(learner, step)(samples)
        assert (metrics["shared"] > (0.3 if packing == "sorted" else 0.0)) == share
        results.append((metrics, [p.detach().clone() for p in model.parameters()]))
    (ours, mine), (theirs, other) = results
    for a, b in zip(mine, other, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)
    for name in ("loss", "nll", "agent_nll", "entropy", "kl", "grad_norm", "tokens", "loss_tokens"):
        assert (name in ours) == (name in theirs)
        assert ours.get(name, 0.0) == pytest.approx(theirs.get(name, 0.0), rel=1e-3, abs=1e-6)
