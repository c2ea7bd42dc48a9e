"""Whole runs of models of many families: a cold start, training, a break and going on, evaluation, export."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.learning.checkpoints import load_policy, load_tokenizer, save_policy
from muarl.learning.learner import TorchLearner
from muarl.observe.rundir import RunDirectory
from muarl.recipes import rl, sft
from muarl_tools.export import ExportOptions
from muarl_tools.export.hf import export
from support.killing import at_call, ctrl_c
from support.tiny_families import GENERIC, OWN, tiny_family

FAMILIES = ["qwen2", "llama", "mistral", "gpt_oss", "glm4_moe", "gemma2", "qwen3_5_text", "granite"]
SMALL = ["sft.steps=1", "rl.lr=0.003", "rl.checkpoint_every=1", "eval.tasks=2", "eval.baseline=false"]

pytestmark = pytest.mark.usefixtures("coin")


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([[3, 9, 27, 4, 11, 60]]), use_cache=False).logits


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_run_from_cold_start_to_export(
    name: str,
    configure: Callable[..., Any],
    muarl: Callable[..., Any],
    base_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenizer = load_tokenizer(checkpoint_folder(str(base_run)))
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 4096}
    start = save_policy(tmp_path / "start", tiny_family(name, {**OWN, **GENERIC}[name] | sizes), tokenizer)
    cold = sft.run(configure(*SMALL, f"model.checkpoint={start}", name="cold"))
    assert [r["step"] for r in RunDirectory.at(cold).read_metrics() if r["phase"] == "cold_start"] == [0]

    config = configure(*SMALL, "rl.steps=2", f"model.checkpoint={cold}", name="rl")
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 2, ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        rl.run(config)
    mend()
    broken = tmp_path / "runs" / "rl"
    assert "finished" not in json.loads((broken / "status.json").read_text()).values()
    result = muarl("train", "--resume", str(broken))
    assert result.exit_code == 0, result.output
    steps = [r for r in RunDirectory.at(broken).read_metrics() if r["phase"] == "rl"]
    assert [r["step"] for r in steps] == [0, 1]
    for row in steps:
        assert row["samples"] and row["update/nonfinite"] == 0
        assert row["update/logprob_gap_max"] < 1e-3, "what is trained is what was sampled"
    before, after = (load_policy(checkpoint_folder(str(f))).model for f in (cold, broken))
    moved = [float((a - b).detach().abs().max()) for a, b in zip(before.parameters(), after.parameters(), strict=True)]
    assert max(moved) > 1e-4

    out = export(ExportOptions(str(broken), tmp_path / "exported"))
    theirs: Any = AutoModelForCausalLM.from_pretrained(out)
    torch.testing.assert_close(logits(theirs), logits(after), atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt_oss", "qwen3_5_text"])
def test_a_run_in_two_processes_is_that_of_one(
    name: str, configure: Callable[..., Any], base_run: Path, tmp_path: Path
) -> None:
    tokenizer = load_tokenizer(checkpoint_folder(str(base_run)))
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 4096}
    start = save_policy(tmp_path / "start", tiny_family(name, {**OWN, **GENERIC}[name] | sizes), tokenizer)
    small = (*SMALL, "rl.steps=1", "rl.kl_coef=0.05", f"model.checkpoint={start}")
    sharded = ("learner.kind=fsdp", "learner.processes=2", "learner.deadline=900")
    one, two = rl.run(configure(*small, name="one")), rl.run(configure(*small, *sharded, name="two"))
    ours, theirs = ([r for r in RunDirectory.at(run).read_metrics() if r["phase"] == "rl"] for run in (two, one))
    assert len(ours) == len(theirs) == 1
    for key in ("update/loss", "update/grad_norm", "kl", "entropy", "update/loss_tokens"):
        assert ours[0][key] == pytest.approx(theirs[0][key], rel=1e-4, abs=1e-5), key
    out = export(ExportOptions(str(two), tmp_path / "exported"))
    exported: Any = AutoModelForCausalLM.from_pretrained(out)
    after = load_policy(checkpoint_folder(str(two))).model
    torch.testing.assert_close(logits(exported), logits(after), atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_evaluation(name: str, muarl: Callable[..., Any], base_run: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(checkpoint_folder(str(base_run)))
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 4096}
    start = save_policy(tmp_path / "start", tiny_family(name, {**OWN, **GENERIC}[name] | sizes), tokenizer)
    result = muarl("eval", "--checkpoint", str(start), "--name", "scored", *SMALL[-2:])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "runs" / "scored" / "summary.json").read_text())["evaluation"]
    assert found["tasks"] == 2
