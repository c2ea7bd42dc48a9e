from __future__ import annotations

import dataclasses
import json
import math
import random
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.basics.errors import CheckpointError
from muarl.learning.checkpoint_files import WeightReader
from muarl.learning.learner import Learner, TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig, ScheduleConfig
from muarl.learning.packing import Batch, Sample, pack
from muarl.learning.settings import LearnerConfig
from muarl.learning.state_files import StateReader
from muarl.learning.steps import selected_logprobs
from muarl.models.path import path_of

Build = Callable[..., TorchLearner]


@pytest.fixture
def build(make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast) -> Build:
    """``build(kind="adamw", lr=..., seed=0, learner fields..., policy=PolicyLossConfig(...))``."""

    def make(kind: str = "adamw", lr: float = 3e-3, seed: int = 0, **fields: Any) -> TorchLearner:
        optimizer = fields.pop("optimizer", None) or OptimizerConfig(
            kind=kind,  # type: ignore[arg-type]
            lr=lr,
            schedule=ScheduleConfig(warmup_steps=2),
        )
        return TorchLearner(make_model(seed), tokenizer, LearnerConfig(optimizer=optimizer, **fields))

    return make


def score(model: Qwen3ForCausalLM, samples: list[Sample], temperature: float = 1.0) -> torch.Tensor:
    batch = Batch.of(samples)
    flat = torch.zeros_like(batch.weights)
    with torch.no_grad():
        for rows in pack(batch, token_budget=10_000):
            flat[rows.index] = selected_logprobs(path_of(model), rows, temperature=temperature).logprobs
    return flat


def episodes(model: Qwen3ForCausalLM, seed: int = 0, count: int = 8, temperature: float = 1.0) -> list[Sample]:
    """Random ids with the model's own log-probabilities, as a sampler would bring them; advantages +1 and -1."""
    source = random.Random(seed)
    result = []
    for i in range(count):
        n = source.randint(6, 18)
        ids = [source.randrange(40) for _ in range(n)]
        mask = [t >= 3 and source.random() < 0.7 for t in range(n)]
        mask[-1] = True
        bare = Sample.sampled(ids, mask, [0.0] * n, 0.0)
        scored = iter(score(model, [bare], temperature).tolist())
        logprobs = [next(scored) if m else 0.0 for m in mask]
        result.append(Sample.sampled(ids, mask, logprobs, 1.0 if i % 2 else -1.0))
    return result


def weights(learner: TorchLearner) -> list[torch.Tensor]:
    return [p.detach().clone() for p in learner.model.parameters()]


def every_next_token(model: Qwen3ForCausalLM) -> list[Sample]:
    """All that may follow one prefix, each weighing its probability: what sampling without end would bring."""
    vocabulary = model.config.vocab_size
    bare = [Sample.sampled([5, 7, v], [False, False, True], [0.0] * 3, 0.0) for v in range(vocabulary)]
    logprobs = score(model, bare).tolist()
    return [Sample([5, 7, v], [0.0, 0.0, math.exp(x)], [0.0, 0.0, x]) for v, x in enumerate(logprobs)]


def entropy(samples: list[Sample]) -> float:
    return -sum(s.weights[-1] * s.logprobs[-1] for s in samples)


@pytest.mark.parametrize("coefficient", [-0.5, 0.0, 0.5])
def test_entropy_is_rewarded_or_penalised(build: Build, coefficient: float) -> None:
    optimizer = OptimizerConfig(lr=3e-3, weight_decay=0.0)
    policy = PolicyLossConfig(kl_coef=0.0, entropy_coef=coefficient)
    learner = build(optimizer=optimizer, policy=policy, entropy=False)
    before = entropy(every_next_token(learner.model))
    start = weights(learner)
    for _ in range(5):
        learner.policy_step(every_next_token(learner.model))
    change = entropy(every_next_token(learner.model)) - before
    if coefficient:
        assert change * coefficient > 1e-4
    else:
        assert all(torch.equal(a, b) for a, b in zip(start, weights(learner), strict=True))


def test_the_estimate_of_the_entropy_s_gradient_is_exact_over_all_tokens(build: Build) -> None:
    estimated = build(policy=PolicyLossConfig(kl_coef=0.0, entropy_coef=0.3))
    samples = every_next_token(estimated.model)
    seen: list[torch.Tensor] = []
    step = estimated.optimizer.step

    def looked_at() -> dict[str, float]:
        seen.extend(p.grad.detach().clone() for p in estimated.model.parameters() if p.grad is not None)
        return step()

    estimated.optimizer.step = looked_at  # type: ignore[method-assign]
    estimated.policy_step(samples)

    exact = build().model
    logits = exact(torch.tensor([[5, 7]])).logits[0, -1].log_softmax(-1)
    (0.3 * (logits.exp() * logits).sum()).backward()
    wanted = [p.grad for p in exact.parameters() if p.grad is not None]
    assert len(wanted) == len(seen)
    for one, other in zip(seen, wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-5), (one - other).abs().max()


def test_it_is_a_learner(build: Build) -> None:
    assert isinstance(build(), Learner)


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_sft_overfits_a_few_sequences(build: Build, kind: str) -> None:
    learner = build(kind, lr=1e-2)
    source = random.Random(1)
    demonstrations = [
        Sample.supervised([i, *(source.randrange(40) for _ in range(11))], [t > 5 for t in range(12)], 0.1)
        for i in range(4)
    ]
    first = learner.sft_step(demonstrations)
    for _ in range(60):
        last = learner.sft_step(demonstrations)
    assert first["agent_nll"] > 2
    assert last["agent_nll"] < 0.1
    assert learner.version == 61
    assert last["loss_tokens"] == 4 * 11
    assert last["tokens"] == 4 * 12


@pytest.mark.parametrize(
    "policy",
    [
        PolicyLossConfig(),
        PolicyLossConfig(kl_coef=0.0, loss_aggregation="dr_grpo", constant_length=20, clip_high=0.28),
        PolicyLossConfig(
            ratio="sequence", loss_aggregation="sequence_mean", clip_low=3e-3, clip_high=4e-3, dual_clip=None
        ),
        PolicyLossConfig(epochs=2, minibatches=2, old_logprobs="recompute", kl_estimator="k1"),
        PolicyLossConfig(kl_estimator="k2", kl_importance=True, temperature=0.8),
    ],
    ids=["grpo", "dr_grpo", "gspo", "epochs", "k2"],
)
def test_policy_step_makes_good_tokens_likelier_and_bad_ones_rarer(build: Build, policy: PolicyLossConfig) -> None:
    learner = build(lr=1e-3, policy=policy)
    samples = episodes(learner.model, temperature=policy.temperature)
    advantages = Batch.of(samples).advantages
    before = score(learner.model, samples)
    metrics = learner.policy_step(samples)
    change = score(learner.model, samples) - before
    assert change[advantages > 0].mean() > 0
    assert change[advantages < 0].mean() < 0
    assert metrics["logprob_gap_max"] < 1e-4
    assert metrics["updates"] == policy.epochs * policy.minibatches
    assert learner.version == 1
    assert learner.updates == metrics["updates"]
    assert metrics["entropy"] > 0
    assert ("kl" in metrics) == (policy.kl_coef > 0)


def test_micro_batches_and_packing_do_not_change_the_step(build: Build) -> None:
    results = []
    for fields in (
        {"token_budget": 10_000},
        {"token_budget": 18},
        {"token_budget": 80, "packing": "ffd", "row_length": 40},
    ):
        # Plain gradient comparison: Adam's first step would blow rounding errors up where a gradient is nearly zero.
        learner = build(policy=PolicyLossConfig(kl_coef=0.1), **fields)
        samples = episodes(learner.model)
        seen: list[torch.Tensor] = []
        step = learner.optimizer.step

        def spy(seen: list[torch.Tensor] = seen, learner: TorchLearner = learner, step: Any = step) -> Any:
            seen.extend(p.grad.clone() for p in learner.model.parameters() if p.grad is not None)
            return step()

        learner.optimizer.step = spy  # type: ignore[method-assign]
        torch.manual_seed(0)
        with torch.no_grad():  # away from the reference, so that the KL term matters
            for p in learner.model.parameters():
                p.add_(0.02 * torch.randn_like(p))
        results.append((seen, learner.policy_step(samples)))
    whole, *others = results
    assert whole[1]["kl_k3"] > 0
    for gradients, metrics in others:
        torch.testing.assert_close(gradients, whole[0], rtol=1e-3, atol=1e-6)
        for name in (
            "loss",
            "kl",
            "entropy",
            "clip_fraction",
            "ratio_max",
            "ratio_min",
            "logprob_gap_mean",
            "grad_norm",
        ):
            assert metrics[name] == pytest.approx(whole[1][name], rel=1e-3, abs=1e-5), name


def test_old_logprobs_from_the_sampler_or_recomputed(build: Build) -> None:
    """A sampler whose log-probabilities are off by 0.3 shows in the gap; recomputing removes it from the ratio."""
    for source, ratio in (("sampler", 1.3498588), ("recompute", 1.0)):
        for epochs in (1, 2):
            learner = build(policy=PolicyLossConfig(old_logprobs=source, kl_coef=0.0, epochs=epochs))  # type: ignore[arg-type]
            shifted = [dataclasses.replace(s, logprobs=[p - 0.3 for p in s.logprobs]) for s in episodes(learner.model)]
            metrics = learner.policy_step(shifted)
            assert metrics["logprob_gap_mean"] == pytest.approx(0.3, abs=1e-3)
            assert metrics["logprob_gap_max"] == pytest.approx(0.3, abs=1e-3)
            if epochs == 1:
                assert metrics["ratio_mean"] == pytest.approx(ratio, abs=1e-3)


def test_the_temperature_reaches_the_log_probabilities(build: Build) -> None:
    learner = build(policy=PolicyLossConfig(temperature=0.5))
    assert learner.policy_step(episodes(learner.model, temperature=0.5))["logprob_gap_max"] < 1e-4
    learner = build(policy=PolicyLossConfig(temperature=0.5))
    assert learner.policy_step(episodes(learner.model, temperature=1.0))["logprob_gap_mean"] > 0.1


def test_the_reference_stays_and_pulls_back(build: Build) -> None:
    learner = build(lr=5e-3, policy=PolicyLossConfig(kl_coef=1.0))
    assert learner.reference is not None
    start = [p.clone() for p in learner.reference.parameters()]
    samples = episodes(learner.model)
    assert learner.policy_step(samples)["kl"] == pytest.approx(0, abs=1e-5)
    away = learner.policy_step(samples)["kl_k3"]
    still = [dataclasses.replace(s, advantage=0.0) for s in samples]
    for _ in range(20):
        back = learner.policy_step(still)["kl_k3"]
    assert back < 0.2 * away
    assert all(torch.equal(a, b) for a, b in zip(start, learner.reference.parameters(), strict=True))


def test_nothing_to_learn_changes_nothing(build: Build) -> None:
    learner = build()
    before = weights(learner)
    assert learner.policy_step([]) == {"skipped": 1.0}
    assert learner.sft_step([Sample([1, 2], [0, 0])]) == {"skipped": 1.0}
    assert learner.version == 0
    assert all(torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True))


def test_policy_step_needs_log_probabilities(build: Build) -> None:
    with pytest.raises(ValueError, match="log-probabilities"):
        build().policy_step([Sample([1, 2, 3], [0, 1, 1])])


def test_bad_settings_name_the_field() -> None:
    with pytest.raises(ValidationError, match="constant_length"):
        PolicyLossConfig(loss_aggregation="dr_grpo")
    with pytest.raises(ValidationError, match="temperature"):
        PolicyLossConfig(temperature=0.0)
    with pytest.raises(ValidationError, match="old_logprobs"):
        PolicyLossConfig(old_logprobs="mine")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_bfloat16_precision_trains(build: Build) -> None:
    learner = build(precision="bfloat16", lr=1e-2)
    demonstrations = [Sample.supervised(list(range(3, 15)), [True] * 12)]
    losses = [learner.sft_step(demonstrations)["nll"] for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]
    assert next(learner.model.parameters()).dtype == torch.float32
    learner.policy_step(episodes(learner.model))


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_resuming_is_exact(build: Build, tmp_path: Path, kind: str) -> None:
    """Steps 1 to 4 equal steps 1, 2, save, load in a new learner, 3, 4: bit for bit, random choices included."""
    policy = PolicyLossConfig(kl_coef=0.05, minibatches=3, epochs=2)

    def advance(learner: TorchLearner, steps: range) -> list[float]:
        seen = []
        for step in steps:
            batch = episodes(learner.model, seed=step)
            order = torch.randperm(len(batch)).tolist()  # a recipe may draw from the global generators too
            random.shuffle(order)
            metrics = learner.policy_step([batch[i] for i in order])
            seen.append((metrics["loss"], metrics["grad_norm"], metrics["kl"], metrics["lr"]))
        return seen  # type: ignore[return-value]

    torch.manual_seed(5)
    random.seed(5)
    straight = build(kind, policy=policy)
    expected = advance(straight, range(4))

    torch.manual_seed(5)
    random.seed(5)
    first = build(kind, policy=policy)
    seen = advance(first, range(2))
    first.save(tmp_path / "step-000002", {"next": 2, "note": "é"})
    torch.manual_seed(99)
    random.seed(99)
    second = build(kind, policy=policy)
    assert second.load(tmp_path / "step-000002") == {"next": 2, "note": "é"}
    assert second.version == 2
    seen += advance(second, range(2, 4))
    assert seen == expected
    assert all(torch.equal(a, b) for a, b in zip(straight.model.parameters(), second.model.parameters(), strict=True))


def test_loading_holds_one_tensor_at_a_time(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run must not need more memory than it will train with: no second optimiser state, no second model."""
    policy = PolicyLossConfig(kl_coef=0.0)
    first = build(policy=policy)
    first.policy_step(episodes(first.model))
    path = first.save(tmp_path / "c")
    second = build(seed=7, policy=policy)
    alive: list[weakref.ref[torch.Tensor]] = []
    most = 0

    def counted(read: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def reading(*arguments: Any) -> torch.Tensor:
            nonlocal most
            found = read(*arguments)
            alive.append(weakref.ref(found))
            most = max(most, sum(ref() is not None for ref in alive))
            return found

        return reading

    monkeypatch.setattr(StateReader, "read", counted(StateReader.read))
    monkeypatch.setattr(WeightReader, "read", counted(WeightReader.read))
    monkeypatch.setattr("muarl.learning.learner.load_policy", None)
    second.load(path)
    assert len(alive) > 40
    assert most <= 2, "the one that was copied last, and the one that is read"
    assert all(torch.equal(a, b) for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True))


def test_loading_what_does_not_fit_changes_nothing(
    build: Build, tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast
) -> None:
    path = build(policy=PolicyLossConfig(kl_coef=0.1)).save(tmp_path / "c")
    other = build(seed=7, policy=PolicyLossConfig(kl_coef=0.1))
    before = weights(other)
    with pytest.raises(CheckpointError, match="reference model was another one"):
        other.load(path)
    with pytest.raises(CheckpointError, match="another model"):
        TorchLearner(make_model(intermediate_size=64), tokenizer).load(path)
    smaller = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, eos_token="extra")
    with pytest.raises(CheckpointError, match="another tokenizer"):
        TorchLearner(make_model(), smaller).load(path)
    values = json.loads((path / "trainer.json").read_text())
    del values["random"]["learner"]
    (path / "trainer.json").write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match=r"trainer\.json: malformed.*learner"):
        other.load(path)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(other), strict=True))
