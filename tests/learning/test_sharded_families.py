"""Models that transformers computes, sharded over processes, learn what one process does. Each test starts its own
processes, which takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from muarl.learning.checkpoints import save_policy
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.settings import LoraSettings
from support.sharded import episodes, one, run, same_adapters, same_metrics, same_weights, settings, several
from support.tiny_families import GENERIC, tiny_family

pytestmark = pytest.mark.slow
RECURRENT = ("qwen3_5_text", "qwen3_next")
"""Random layers with a state: from the third update on their gradients are in the thousands, and rounding grows too."""


def start(name: str, folder: Path, tokenizer: PreTrainedTokenizerFast) -> Path:
    """With dropout, which is of no concern to a policy whose tokens were sampled without."""
    model = tiny_family(name, {**GENERIC[name], "attention_dropout": 0.5})
    return save_policy(folder / "policy", model, tokenizer)


@pytest.mark.parametrize(
    ("name", "processes", "kind"),
    [
        ("qwen3_5_text", 2, "adamw"),
        ("qwen3_next", 2, "muon"),
        ("mixtral", 3, "adamw"),
        ("gemma3_text", 2, "adamw"),
        ("gpt_oss", 2, "adamw"),
        ("deepseek_v3", 2, "adamw"),
    ],
)
def test_the_same_steps_checkpoints_and_export(
    name: str, processes: int, kind: str, tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Layers with a recurrent state; those and experts; experts over processes of which one has none of them; windows
    and scaled embeddings; windows, sinks and experts; buffers of a checkpoint's own. Processes have different numbers
    of rows to compute."""
    folder, config = start(name, tmp_path, tokenizer), settings(kind=kind)
    rounds, tolerance = (range(1), 1e-4) if name in RECURRENT else (range(2), 1e-5)
    many, alone = several(folder, config, processes), one(folder, config)
    try:
        for ours, theirs in zip(run(many, rounds), run(alone, rounds), strict=True):
            same_metrics(ours, theirs, tolerance)
        same_weights(many, alone, tolerance)
        saved = many.save(tmp_path / "step-000002", {"step": 2})
        expected = many.policy_step(episodes(5))
        stored, first = (load_file(f / "model.safetensors") for f in (saved, folder))
        assert {key: value.shape for key, value in stored.items()} == {key: v.shape for key, v in first.items()}
        theirs = AutoModelForCausalLM.from_pretrained(saved).state_dict()
        for key, value in alone.model.state_dict().items():
            torch.testing.assert_close(theirs[key], value, atol=1e-4, rtol=0, msg=key)
        for goes_on in (one(folder, config), many):
            assert goes_on.load(saved) == {"step": 2}
            same_metrics(goes_on.policy_step(episodes(5)), expected, tolerance)
    finally:
        many.close()


@pytest.mark.parametrize("name", ["qwen3_5_text", "gpt_oss"])
def test_adapters_and_activations_computed_again(name: str, tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    pytest.importorskip("peft", reason="adapters need peft")
    folder, config = start(name, tmp_path, tokenizer), settings(lora=LoraSettings(4, 8.0), recompute=True)
    rounds = range(1) if name in RECURRENT else range(2)
    many, alone = several(folder, config), one(folder, config)
    try:
        for ours, theirs in zip(run(many, rounds), run(alone, rounds), strict=True):
            same_metrics(ours, theirs, 1e-4)
        same_weights(many, alone, 1e-4)
        same_adapters(many, alone, tmp_path)
        saved = many.save(tmp_path / "step-000002", {"step": 2})
        expected = many.policy_step(episodes(5))
        for goes_on in (one(folder, config), many):
            assert goes_on.load(saved) == {"step": 2}
            same_metrics(goes_on.policy_step(episodes(5)), expected, 1e-4)
    finally:
        many.close()


def test_a_checkpoint_of_two_processes_goes_on_in_three(tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    folder = start("qwen3_next", tmp_path, tokenizer)
    config = settings(PolicyLossConfig(kl_coef=0.1, minibatches=3))
    two = several(folder, config, 2)
    try:
        run(two, range(1))
        saved = two.save(tmp_path / "step-000001", {"step": 1})
        expected = run(two, range(2, 3))
    finally:
        two.close()
    three = several(folder, config, 3)
    try:
        assert three.load(saved) == {"step": 1}
        for ours, theirs in zip(run(three, range(2, 3)), expected, strict=True):
            same_metrics(ours, theirs, 1e-4)
    finally:
        three.close()


@pytest.mark.parametrize("name", ["qwen3_5_text", "granite"])
def test_bfloat16_computes_in_it_and_keeps_float32(
    name: str, tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    """With activations computed again; Granite scales its logits, so that its own class computes them."""
    folder = start(name, tmp_path, tokenizer)
    learner = several(folder, settings(precision="bfloat16", recompute=True))
    try:
        step = learner.policy_step(episodes(1))
        assert step["nonfinite"] == 0 and step["grad_norm"] > 0
        sent = dict(learner.weights())
        assert {w.dtype for w in sent.values()} == {torch.bfloat16}
        kept = dict(one(learner.save(tmp_path / "c"), settings()).model.named_parameters())
        assert all(torch.equal(kept[n].bfloat16(), w) for n, w in sent.items())
        assert any(not torch.equal(p, p.bfloat16().float()) for p in kept.values()), "the masters are finer"
    finally:
        learner.close()
