"""KL to the start weights is measured where it is not in the loss, and measuring it changes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.learning import learner as learners
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Batch, Sample, pack
from muarl.learning.settings import LearnerConfig, LoraSettings
from muarl.learning.steps import selected_logprobs
from muarl.models.path import path_of

Make = Callable[..., TorchLearner]


@pytest.fixture
def make(make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast) -> Make:
    """``make(start_kl=8, lora=None, **policy)``: a learner without a KL term."""

    def build(start_kl: int = 8, lora: LoraSettings | None = None, **policy: object) -> TorchLearner:
        loss = PolicyLossConfig(**{"kl_coef": 0.0, **policy})  # type: ignore[arg-type]
        return TorchLearner(
            make_model(0), tokenizer, LearnerConfig(OptimizerConfig(lr=5e-3), loss, start_kl=start_kl, lora=lora)
        )

    return build


@torch.no_grad()
def scores(model: Qwen3ForCausalLM, samples: Sequence[Sample]) -> torch.Tensor:
    batch = Batch.of(samples)
    flat = torch.zeros_like(batch.weights)
    for rows in pack(batch, token_budget=10_000):
        flat[rows.index] = selected_logprobs(path_of(model), rows, temperature=1.0).logprobs
    return flat


def sampled(model: Qwen3ForCausalLM, seed: int, count: int = 12) -> list[Sample]:
    """Random ids with the model's own log-probabilities; advantages +1 and -1."""
    source = random.Random(seed)
    ids = [[source.randrange(40) for _ in range(source.randint(6, 18))] for _ in range(count)]
    masks = [[t >= 3 for t in range(len(one))] for one in ids]
    bare = [Sample.sampled(one, mask, [0.0] * len(one), 0.0) for one, mask in zip(ids, masks, strict=True)]
    found = iter(scores(model, bare).tolist())
    return [
        Sample.sampled(one, mask, [next(found) if m else 0.0 for m in mask], 1.0 if n % 2 else -1.0)
        for n, (one, mask) in enumerate(zip(ids, masks, strict=True))
    ]


def next_tokens(model: Qwen3ForCausalLM) -> list[Sample]:
    """All that may follow one prefix, each weighing its probability: what sampling without end would bring."""
    bare = [Sample([5, 7, v], [0.0, 0.0, 1.0], [0.0] * 3) for v in range(model.config.vocab_size)]
    logprobs = scores(model, bare)
    return [
        Sample([5, 7, v], [0.0, 0.0, float(x.exp())], [0.0, 0.0, float(x)], -1.0 if v % 2 else 1.0)
        for v, x in enumerate(logprobs)
    ]


@pytest.mark.parametrize("old", ["sampler", "recompute"])
def test_it_is_the_divergence_of_the_policy_that_sampled_from_the_start(make: Make, old: str) -> None:
    learner = make(start_kl=10_000, old_logprobs=old)
    before = [s.logprobs[2] for s in next_tokens(learner.model)]
    assert learner.policy_step(next_tokens(learner.model))["kl"] == pytest.approx(0, abs=1e-5)
    now = next_tokens(learner.model)
    exact = sum(s.weights[2] * (s.logprobs[2] - b) for s, b in zip(now, before, strict=True))
    told = learner.policy_step(now)
    assert exact > 1e-4
    assert told["kl"] == pytest.approx(exact, rel=1e-3) and told["kl_k3"] == pytest.approx(exact, rel=1e-3)
    assert told["kl_tokens"] == len(now)


def test_training_is_the_same_with_it_and_without(make: Make) -> None:
    ends, states = [], []
    for episodes in (0, 4):
        learner = make(start_kl=episodes, minibatches=2)
        for step in range(3):
            told = learner.policy_step(sampled(learner.model, step))
        assert ("kl" in told) == (episodes > 0)
        ends.append([p.detach().clone() for p in learner.model.parameters()])
        states.append((torch.get_rng_state(), random.getstate()))
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
    assert torch.equal(states[0][0], states[1][0]) and states[0][1] == states[1][1]


def test_it_looks_at_few_episodes_that_lie_evenly(make: Make) -> None:
    learner = make(start_kl=3)
    samples = sampled(learner.model, 0)
    told = learner.policy_step(samples)
    chosen = [samples[n] for n in (0, 4, 8)]
    assert told["kl_tokens"] == sum(sum(w != 0 for w in s.weights) for s in chosen)


def test_a_resumed_learner_measures_from_the_same_start(make: Make, tmp_path: Path) -> None:
    first = make()
    for step in range(3):
        first.policy_step(sampled(first.model, step))
    path = first.save(tmp_path / "c")
    samples = sampled(first.model, 9)
    told = first.policy_step(samples)
    again = make()
    again.load(path)
    assert again.policy_step(samples)["kl"] == told["kl"] and told["kl_k3"] > 0.001
    plain = make(start_kl=0)
    plain.load(path)  # what is measured is no part of a checkpoint
    assert "kl" not in plain.policy_step(samples)


def test_adapters_are_turned_off_and_large_models_are_not_copied(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "COPIED", 10)
    large = make()
    assert "kl" not in large.policy_step(sampled(large.model, 0)), "no memory for a copy"
    adapted = make(lora=LoraSettings(rank=2))
    samples = sampled(adapted.model, 0)
    assert adapted.policy_step(samples)["kl"] == pytest.approx(0, abs=1e-5)
    for _ in range(3):
        adapted.policy_step(samples)
    assert adapted.policy_step(sampled(adapted.model, 0))["kl_k3"] > 1e-4
