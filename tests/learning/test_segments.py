"""Episodes in several segments: they weigh what an episode does, however their samples are packed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.learning.advantages import group_samples
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Batch, Sample, episode_numbers
from muarl.learning.settings import LearnerConfig
from muarl.types.episode import Episode, StopReason, TokenTrace, Verdict


def whole_and_parted(seed: int = 0) -> tuple[list[Sample], list[Sample]]:
    """Episodes as one sample each, and the same with a sample for each of their turns. A later turn's sample begins
    with all that was before it, so that a token's log-probability is the same in both."""
    draw = random.Random(seed)
    whole, parted = [], []
    for number in range(5):
        ids, turns = [1, 2, 3], []
        for _ in range(draw.randint(1, 4)):
            ids += [draw.randrange(40) for _ in range(draw.randint(1, 3))]
            start = len(ids)
            ids += [draw.randrange(40) for _ in range(draw.randint(1, 9))]
            turns.append((start, len(ids)))
        logprobs = [-3.5 - draw.random() for _ in ids]
        advantage = 1.0 if number % 2 else -0.7
        mask = [any(a <= t < b for a, b in turns) for t in range(len(ids))]
        whole.append(Sample.sampled(ids, mask, logprobs, advantage))
        for a, b in turns:
            own = [a <= t < b for t in range(b)]
            parted.append(Sample.sampled(ids[:b], own, logprobs[:b], advantage, number if len(turns) > 1 else None))
    return whole, parted


POLICIES = {
    "token_mean": PolicyLossConfig(loss_aggregation="token_mean"),
    "sequence_mean": PolicyLossConfig(loss_aggregation="sequence_mean", kl_coef=0.1),
    "dr_grpo": PolicyLossConfig(loss_aggregation="dr_grpo", constant_length=20, kl_coef=0.1),
    "corrected": PolicyLossConfig(loss_aggregation="sequence_mean", correction="token", old_logprobs="recompute"),
}


@pytest.mark.parametrize("budget", [40, 10_000])
@pytest.mark.parametrize("name", POLICIES)
def test_an_episode_weighs_the_same_in_one_piece_and_in_several(
    name: str,
    budget: int,
    make_model: Callable[..., Qwen3ForCausalLM],
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, parted = whole_and_parted()
    assert len(parted) > len(whole) + 3 and len(set(episode_numbers(parted))) == len(whole)
    found = []
    for samples in (whole, parted):
        optimizer = OptimizerConfig(kind="adamw", lr=1e-2, schedule=ScheduleConfig())
        settings = LearnerConfig(optimizer=optimizer, policy=POLICIES[name], token_budget=budget)
        learner = TorchLearner(make_model(), tokenizer, settings)
        gradients: dict[str, torch.Tensor] = {}
        made = learner.optimizer.step

        def step(learner: TorchLearner = learner, gradients: Any = gradients, made: Any = made) -> Any:
            gradients.update({n: p.grad.clone() for n, p in learner.model.named_parameters() if p.grad is not None})
            return made()

        monkeypatch.setattr(learner.optimizer, "step", step)
        found.append((learner.policy_step(samples), gradients))
    (one, expected), (other, gradients) = found
    assert expected and len(expected) == len(gradients)
    for parameter, gradient in expected.items():
        torch.testing.assert_close(gradients[parameter], gradient, atol=1e-6, rtol=1e-4)
    for figure in ("loss", "policy_loss", "kl_loss", "loss_tokens", "grad_norm", "clip_fraction"):
        assert one.get(figure) == pytest.approx(other.get(figure), rel=1e-4, abs=1e-6), figure


def test_without_the_number_segments_would_weigh_more(
    make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast
) -> None:
    _, parted = whole_and_parted()
    losses = []
    for samples in (parted, [replace(s, episode=None) for s in parted]):
        settings = LearnerConfig(policy=POLICIES["sequence_mean"])
        losses.append(TorchLearner(make_model(), tokenizer, settings).policy_step(samples)["policy_loss"])
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize("minibatches", [1, 2, 3])
def test_the_segments_of_an_episode_are_in_one_update(
    minibatches: int, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast
) -> None:
    _, parted = whole_and_parted()
    policy = PolicyLossConfig(minibatches=minibatches)
    learner = TorchLearner(make_model(), tokenizer, LearnerConfig(policy=policy))
    parts = learner._minibatches(Batch.of(parted))
    assert sorted(i for part in parts for i in part) == list(range(len(parted))) and len(parts) == minibatches
    numbers = episode_numbers(parted)
    for number in set(numbers):
        assert sum(any(numbers[i] == number for i in part) for part in parts) == 1


def episode(name: str, reward: float, *turns: int, restarts: bool, version: int = 3) -> Episode:
    trace = TokenTrace()
    for n, length in enumerate(turns):
        if restarts:
            trace.restart()
        trace.append_given([n, n + 1])
        trace.append_sampled(range(length), [-0.5] * length, version + n)
    return Episode(
        id=name, task_id="t", domain="d", turns=[], stop=StopReason.USER_STOP, group="g", tokens=trace,
        verdict=Verdict(reward),
    )  # fmt: skip


def test_every_segment_of_a_group_is_a_sample_with_its_episodes_advantage() -> None:
    episodes = [
        episode("a", 1.0, 2, 3, 4, restarts=True),
        episode("b", 0.0, 5, restarts=True),
        episode("c", 0.0, 2, 2, restarts=False),
        episode("d", 1.0, 1, 1, restarts=True, version=1),
    ]
    samples = group_samples(episodes, advantage="group_mean")
    assert [s.episode for s in samples] == [0, 0, 0, None, None, 3, 3]
    assert [s.advantage for s in samples] == [0.5, 0.5, 0.5, -0.5, -0.5, 0.5, 0.5]
    assert [len(s.ids) for s in samples] == [4, 5, 6, 7, 8, 3, 3]
    sampled = [i for s in samples for i, w in zip(s.ids, s.weights, strict=True) if w]
    traces = [e.tokens for e in episodes if e.tokens is not None]
    assert sampled == [i for t in traces for i, m in zip(t.ids, t.loss_mask, strict=True) if m]
    assert sum(map(sum, (s.weights for s in samples))) == sum(t.sampled_count for t in traces)
    fresh = group_samples(episodes, advantage="group_mean", oldest=2)
    assert [s.episode for s in fresh] == [0, 0, 0, None, None], "an episode is too old as a whole"


def test_batches_of_whole_episodes_are_as_they_were() -> None:
    whole, parted = whole_and_parted()
    assert Batch.of(whole).episodes is None
    batch = Batch.of(parted)
    assert batch.episodes is not None
    assert batch.episodes.tolist() == [episode_numbers(parted)[i] for i in batch.sequences.tolist()]
