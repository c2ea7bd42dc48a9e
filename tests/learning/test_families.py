"""Every family from load to export: steps, a checkpoint, resuming, adapters, and what transformers reads of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from muarl.basics.errors import ConfigError
from muarl.learning.checkpoints import load_policy, save_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.optimizer import OptimizerConfig
from muarl.learning.packing import Sample
from muarl.learning.settings import LearnerConfig, LoraSettings
from muarl.models.weights import as_stored
from support.tiny_families import GENERIC, OWN, tiny_family

FAMILIES = {**OWN, **GENERIC}
NAMES = [
    "qwen2",
    "llama, biases",
    "qwen3_moe",
    "qwen2_moe",
    "gpt_oss",
    "gemma2",
    "qwen3_next",
    "deepseek_v3",
    "nemotron_h",
]
"""With biases, experts, caps and tied matrices, recurrent layers, buffers of a checkpoint's own, compressed caches."""

ALIKE = ("llama, biases", "qwen2_moe", "granite", "glm4", "qwen3_next")
"""Of which there is one in every run of the tests that is alike; these in the slow ones."""
RECURRENT = ("qwen3_next", "nemotron_h")
"""Their kernels add in an order that hangs on where tensors lie in memory: two copies agree but for rounding."""


def episodes(seed: int) -> list[Sample]:
    source = torch.Generator().manual_seed(seed)
    lengths = (12, 7, 9)
    ids = [torch.randint(3, 40, (n,), generator=source).tolist() for n in lengths]
    return [
        Sample.sampled(i, [t > 3 for t in range(len(i))], [-3.0] * len(i), 1.0 if n else -1.0)
        for n, i in enumerate(ids)
    ]


def settings(**fields: object) -> LearnerConfig:
    return LearnerConfig(
        OptimizerConfig(lr=1e-3),
        PolicyLossConfig(kl_coef=0.1),
        token_budget=64,
        **fields,  # type: ignore[arg-type]
    )


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([[3, 9, 27, 4, 11]]), use_cache=False).logits


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in ALIKE else ()) for n in NAMES])
def test_steps_checkpoint_resume_and_reload(name: str, tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    first = tiny_family(name, FAMILIES[name])
    start = save_policy(tmp_path / "start", first, tokenizer)
    policy = load_policy(start)
    for (key, a), b in zip(policy.model.state_dict().items(), first.state_dict().values(), strict=True):
        assert torch.equal(a, b), key
    torch.testing.assert_close(logits(policy.model), logits(first), atol=1e-5, rtol=1e-5)
    learner = TorchLearner(policy.model, policy.tokenizer, settings())
    assert learner.policy_step(episodes(1))["kl_k3"] == pytest.approx(0.0, abs=1e-5)
    assert learner.policy_step(episodes(2))["kl_k3"] > 0
    assert learner.sft_step(episodes(4))["nll"] > 0
    saved = learner.save(tmp_path / "step", {"step": 2})

    theirs = AutoModelForCausalLM.from_pretrained(saved)
    torch.testing.assert_close(logits(theirs), logits(learner.model), atol=1e-5, rtol=1e-5)
    resumed = TorchLearner(load_policy(start).model, policy.tokenizer, settings())
    assert resumed.load(saved) == {"step": 2}
    again, went_on = resumed.policy_step(episodes(3))["loss"], learner.policy_step(episodes(3))["loss"]
    assert again == went_on or (name in RECURRENT and again == pytest.approx(went_on, rel=1e-5))
    for (key, a), b in zip(learner.model.named_parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(a, b) or (name in RECURRENT and (a - b).abs().mean() < 1e-6), key


@pytest.mark.parametrize(
    "name",
    [
        *("qwen2", "qwen3_moe", "gpt_oss", "gemma2", "deepseek_v3"),
        *(pytest.param(n, marks=pytest.mark.slow) for n in ALIKE if n != "qwen2_moe"),
    ],
)
def test_adapters_in_peft_s_format_and_merged(name: str, tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    peft = pytest.importorskip("peft", reason="adapters need peft")
    start = save_policy(tmp_path / "start", tiny_family(name, FAMILIES[name]), tokenizer)
    config = settings(lora=LoraSettings(4, 8.0))
    learner = TorchLearner(load_policy(start).model, tokenizer, config)
    first = learner.policy_step(episodes(1))
    assert first["kl_k3"] == pytest.approx(0.0, abs=1e-5), "the reference is the model without its adapter"
    assert learner.policy_step(episodes(2))["kl_k3"] > 0
    saved = learner.save(tmp_path / "step", {})

    merged = load_policy(saved).model
    adapted = peft.PeftModel.from_pretrained(load_policy(start).model, saved / "adapter").eval()
    torch.testing.assert_close(logits(merged), logits(adapted), atol=1e-4, rtol=1e-4)
    assert (logits(merged) - logits(load_policy(start).model)).abs().max() > 1e-3
    sent = as_stored(merged.named_parameters(), name.partition(",")[0])
    assert {n for n, _ in learner.weights()} == {n for n, _ in sent}
    resumed = TorchLearner(load_policy(start).model, tokenizer, config)
    resumed.load(saved)
    assert resumed.policy_step(episodes(3))["loss"] == learner.policy_step(episodes(3))["loss"]


def test_adapters_that_fit_no_matrix_name_those_that_there_are(tokenizer: PreTrainedTokenizerFast) -> None:
    pytest.importorskip("peft", reason="adapters need peft")
    model = tiny_family("phi3", GENERIC["phi3"])
    with pytest.raises(ConfigError, match=r"lora\.targets: no matrix q_proj in this model for an adapter: .*qkv_proj"):
        TorchLearner(model, tokenizer, settings(lora=LoraSettings(4, 8.0, ("q_proj",))))


def test_experts_get_no_adapters(tokenizer: PreTrainedTokenizerFast) -> None:
    """Of the usual matrices those that there are; a name of one's own must be there."""
    pytest.importorskip("peft", reason="adapters need peft")
    model = tiny_family("qwen3_moe", OWN["qwen3_moe"])
    learner = TorchLearner(model, tokenizer, settings(lora=LoraSettings(4, 8.0)))
    assert learner.config.lora is not None
    assert learner.config.lora.targets == ("q_proj", "k_proj", "v_proj", "o_proj")
    with pytest.raises(ConfigError, match=r"lora\.targets: no matrix down_proj in this model"):
        TorchLearner(model, tokenizer, settings(lora=LoraSettings(4, 8.0, ("q_proj", "down_proj"))))
