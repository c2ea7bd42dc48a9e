"""Adapters in one process: what they begin as, what moves, and that every way out gives the same model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.inference.base import AdapterWeights
from muarl.learning.checkpoints import load_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.packing import Batch, pack
from muarl.learning.settings import LoraSettings
from muarl.learning.steps import selected_logprobs
from muarl.models.adapters import base_only
from muarl.models.generic import GenericPath
from muarl.models.path import OwnPath
from muarl.models.support import support_of
from support.sharded import demonstrations, episodes, run, same_metrics, settings

peft = pytest.importorskip("peft", reason="adapters need peft")
LORA = LoraSettings(4, 8.0, ("q_proj", "o_proj", "up_proj", "down_proj"))
Build = Callable[..., TorchLearner]


@pytest.fixture
def build(make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast) -> Build:
    def make(lora: LoraSettings | None = LORA, seed: int = 0, **fields: object) -> TorchLearner:
        reference: Any = fields.pop("reference", None)
        return TorchLearner(make_model(seed), tokenizer, settings(lora=lora, **fields), reference)

    return make


def test_it_begins_as_the_model_and_moves_the_adapter_alone(build: Build) -> None:
    learner, full = build(), build(lora=None)
    start = {n: p.detach().clone() for n, p in learner.model.named_parameters()}
    ours, theirs = learner.policy_step(episodes(1)), full.policy_step(episodes(1))
    for name in ("policy_loss", "kl_k3", "entropy", "logprob_gap_mean", "ratio_max"):
        assert ours[name] == pytest.approx(theirs[name], abs=1e-5)
    run(learner, range(3))
    for name, parameter in learner.model.named_parameters():
        moved = not torch.equal(parameter, start[name])
        assert moved == (".lora_" in name), name
    adapted = {n.split(".")[-4] for n in start if ".lora_A." in n}
    assert adapted == set(LORA.targets)


def test_the_reference_is_the_model_without_its_adapter(build: Build) -> None:
    """No second copy, and the same divergence as from one."""
    learner = build()
    assert learner.reference is None
    explicit = build(reference=load_reference(learner))
    for ours, theirs in zip(run(learner, range(3)), run(explicit, range(3)), strict=True):
        same_metrics(ours, theirs)
    assert learner.policy_step(episodes(4))["kl_k3"] > 1e-4


def load_reference(learner: TorchLearner) -> Qwen3ForCausalLM:
    model = Qwen3ForCausalLM(learner.model.config)
    base = {n.replace(".base_layer.", "."): p for n, p in learner.model.named_parameters() if ".lora_" not in n}
    model.load_state_dict(base, strict=False)
    return model.requires_grad_(False)


def test_the_fast_path_computes_what_peft_does(build: Build) -> None:
    learner = build()
    run(learner, range(2))
    assert isinstance(learner._path, OwnPath)
    batch = Batch.of(episodes(1))
    for rows in pack(batch, token_budget=500):
        with torch.no_grad():
            fast = learner._scores(rows, temperature=1.0).logprobs
            generic = GenericPath(learner.model, support_of({"model_type": "unknown"}))
            slow = selected_logprobs(generic, rows).logprobs
            with base_only():
                base = selected_logprobs(generic, rows).logprobs
                torch.testing.assert_close(base, selected_logprobs(learner._path, rows).logprobs, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(fast, slow, atol=1e-5, rtol=1e-5)
        assert (base - slow).abs().max() > 1e-4
    assert all(p.requires_grad == (".lora_" in n) for n, p in learner.model.named_parameters())


def test_samplers_may_take_the_adapter_alone(build: Build, tmp_path: Path) -> None:
    """Merged by hand it gives the weights that others get."""
    learner, plain = build(), build(lora=None)
    run(learner, range(2))
    weights = learner.weights
    assert isinstance(weights, AdapterWeights) and not isinstance(plain.weights, AdapterWeights)
    weights.write_adapter(tmp_path / "adapter")
    fields = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    stored = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    base, whole = dict(plain.weights()), dict(weights())
    assert whole.keys() == base.keys() and len(stored) == 2 * 4 * learner.model.config.num_hidden_layers
    for name, value in whole.items():
        stem = f"base_model.model.{name.removesuffix('weight')}"
        down, up = stored.get(f"{stem}lora_A.weight"), stored.get(f"{stem}lora_B.weight")
        expected = base[name] if down is None or up is None else base[name] + up @ down * fields["lora_alpha"] / 4
        torch.testing.assert_close(value, expected, atol=1e-6, rtol=1e-5)
    assert any((whole[n] - base[n]).abs().max() > 1e-5 for n in base)


def test_a_checkpoint_is_a_merged_model_an_adapter_for_peft_and_goes_on_exactly(build: Build, tmp_path: Path) -> None:
    learner = build(policy=PolicyLossConfig(kl_coef=0.1, minibatches=2))
    run(learner, range(2))
    saved = learner.save(tmp_path / "c", {"step": 2})
    merged = dict(load_policy(saved).model.named_parameters())
    for name, weight in learner.weights():
        assert torch.equal(weight, merged[name]), name
    ids = torch.tensor([[3, 9, 27, 4]])
    with_peft = peft.PeftModel.from_pretrained(
        AutoModelForCausalLM.from_config(learner.model.config), saved / "adapter"
    )
    base = {n: p for n, p in learner.model.named_parameters() if ".lora_" not in n}
    own = dict(with_peft.base_model.model.named_parameters())
    with torch.no_grad():
        for name, parameter in base.items():
            own[name].copy_(parameter)
        expected = load_policy(saved).model(ids).logits
        torch.testing.assert_close(with_peft(ids).logits, expected, atol=1e-4, rtol=1e-4)

    goes_on = build(policy=PolicyLossConfig(kl_coef=0.1, minibatches=2))
    assert goes_on.load(saved) == {"step": 2}
    for ours, theirs in zip(run(goes_on, range(2, 4)), run(learner, range(2, 4)), strict=True):
        same_metrics(ours, theirs, 0.0)


def test_an_adapter_that_does_not_fit_changes_nothing(build: Build, tmp_path: Path) -> None:
    learner = build()
    learner.sft_step(demonstrations(1))
    saved = learner.save(tmp_path / "c")
    with pytest.raises(CheckpointError, match=r"adapter_config\.json: rank, alpha and targets are \(4, 8\.0"):
        build(LoraSettings(8, 8.0)).load(saved)
    with pytest.raises(CheckpointError, match="reference model was another one"):
        build(seed=5).load(saved)
    with pytest.raises(CheckpointError, match="does not belong to this model|was another one"):
        build(lora=None).load(saved)
    (saved / "adapter" / "adapter_model.safetensors").write_bytes(b"half")
    with pytest.raises(CheckpointError, match=r"adapter_model\.safetensors: cannot be read"):
        build().load(saved)
    assert json.loads((saved / "adapter" / "adapter_config.json").read_text())["peft_type"] == "LORA"


def test_bad_settings_name_the_field() -> None:
    with pytest.raises(ConfigError, match=r"lora: rank 0"):
        LoraSettings(0)
    with pytest.raises(ConfigError, match=r"lora\.targets: none"):
        LoraSettings(targets=())


def test_a_matrix_that_the_model_lacks_is_named(build: Build) -> None:
    with pytest.raises(
        ConfigError, match=r"lora\.targets: no matrix mlp in this model for an adapter: choose from .*q_proj"
    ):
        build(lora=LoraSettings(4, 8.0, ("q_proj", "mlp")))


def test_without_peft_it_says_what_to_install(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ConfigError, match=r"learner.lora needs peft, .*: pip install 'muarl\[lora\]'"):
        build()
