"""Sharded learning in other numbers of processes, with other optimisers, adapters and precisions. Each test starts its
own processes, which takes seconds."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.basics.errors import CheckpointError, InfrastructureError, MuarlError
from muarl.learning.checkpoints import save_policy
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.settings import LearnerConfig, LoraSettings
from muarl.learning.workers import MultiProcessLearner
from muarl.models.weights import as_stored
from support.sharded import (
    WAITS,
    demonstrations,
    episodes,
    one,
    run,
    same_adapters,
    same_metrics,
    same_weights,
    settings,
    several,
)
from support.tiny_families import OWN, tiny_family

pytestmark = pytest.mark.slow
LORA = LoraSettings(4, 8.0)


@pytest.fixture
def folder(tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast) -> Path:
    return save_policy(tmp_path / "policy", make_model(tie_word_embeddings=False), tokenizer)


@pytest.mark.parametrize(
    ("processes", "config"),
    [
        (1, settings()),
        (3, settings(kind="muon")),
        (
            3,
            settings(PolicyLossConfig(ratio="sequence", loss_aggregation="sequence_mean", kl_coef=0.0), recompute=True),
        ),
        (2, settings(PolicyLossConfig(loss_aggregation="dr_grpo", constant_length=20), packing="ffd", row_length=40)),
        (2, settings(lora=LORA)),
    ],
    ids=["alone", "muon", "gspo", "ffd", "lora"],
)
def test_the_same_steps_as_one_process(folder: Path, tmp_path: Path, processes: int, config: LearnerConfig) -> None:
    if config.lora is not None:
        pytest.importorskip("peft", reason="adapters need peft")
    many, alone = several(folder, config, processes), one(folder, config)
    try:
        for ours, theirs in zip(run(many, range(3)), run(alone, range(3)), strict=True):
            same_metrics(ours, theirs)
        same_weights(many, alone)
        same_adapters(many, alone, tmp_path)
        saved = many.save(tmp_path / "step-000003", {"step": 3})
        goes_on = one(folder, config)
        assert goes_on.load(saved) == {"step": 3}
        same_metrics(goes_on.policy_step(episodes(5)), many.policy_step(episodes(5)))
    finally:
        many.close()


@pytest.mark.parametrize(("processes", "lora"), [(3, None), (2, LORA)], ids=["all weights", "lora"])
def test_a_mixture_s_experts_are_spread_over_processes(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast, processes: int, lora: LoraSettings | None
) -> None:
    """Four experts over three processes: one has none of them. A checkpoint holds them one by one."""
    if lora is not None:
        pytest.importorskip("peft", reason="adapters need peft")
    folder = save_policy(tmp_path / "policy", tiny_family("qwen3_moe", OWN["qwen3_moe"]), tokenizer)
    config = settings(lora=lora)
    many, alone = several(folder, config, processes), one(folder, config)
    try:
        for ours, theirs in zip(run(many, range(2)), run(alone, range(2)), strict=True):
            same_metrics(ours, theirs)
        same_weights(many, alone)
        same_adapters(many, alone, tmp_path)
        saved = many.save(tmp_path / "step-000002", {"step": 2})
        expected = many.policy_step(episodes(5))
        theirs = AutoModelForCausalLM.from_pretrained(saved)
        assert any(name.endswith(".mlp.experts.3.up_proj.weight") for name in load_file(saved / "model.safetensors"))
        sent = dict(alone.weights())
        for name, value in as_stored(theirs.named_parameters(), "qwen3_moe"):
            torch.testing.assert_close(value.detach(), sent[name], atol=1e-5, rtol=0, msg=name)
        for goes_on in (one(folder, config), many):
            assert goes_on.load(saved) == {"step": 2}
            same_metrics(goes_on.policy_step(episodes(5)), expected)
    finally:
        many.close()


def test_a_checkpoint_of_two_processes_goes_on_in_three(folder: Path, tmp_path: Path) -> None:
    config = settings(PolicyLossConfig(kl_coef=0.1, minibatches=3))
    two = several(folder, config, 2)
    try:
        run(two, range(2))
        saved = two.save(tmp_path / "step-000002", {"step": 2})
        expected = run(two, range(2, 4))
    finally:
        two.close()
    three = several(folder, config, 3)
    try:
        assert three.load(saved) == {"step": 2}
        for ours, theirs in zip(run(three, range(2, 4)), expected, strict=True):
            same_metrics(ours, theirs)
        assert three.version == 8
    finally:
        three.close()


def test_bfloat16_computes_in_it_and_keeps_float32(folder: Path, tmp_path: Path) -> None:
    learner = several(folder, settings(PolicyLossConfig(kl_coef=0.1), precision="bfloat16", token_budget=200))
    try:
        losses = [learner.sft_step(demonstrations(1))["nll"] for _ in range(12)]
        assert losses[-1] < 0.9 * losses[0]
        assert learner.policy_step(episodes(1))["nonfinite"] == 0
        sent = dict(learner.weights())
        assert {w.dtype for w in sent.values()} == {torch.bfloat16}
        kept = dict(one(learner.save(tmp_path / "c"), settings()).model.named_parameters())
        assert all(torch.equal(kept[n].bfloat16(), w) for n, w in sent.items())
        assert any(not torch.equal(p, p.bfloat16().float()) for p in kept.values()), "the masters are finer"
    finally:
        learner.close()


def test_a_process_that_is_lost(folder: Path) -> None:
    learner = several(folder, settings())
    learner.sft_step(demonstrations(1))
    children = [*learner._children]
    os.kill(children[1].pid, signal.SIGKILL)
    with pytest.raises(InfrastructureError, match="process 1 of 2 failed in sft_step: it was killed by SIGKILL"):
        learner.sft_step(demonstrations(2))
    assert all(child.ended is not None for child in children), "the others are ended too"
    with pytest.raises(InfrastructureError, match="have ended"):
        learner.sft_step(demonstrations(2))
    learner.close()


def test_a_process_that_does_not_answer(folder: Path) -> None:
    learner = several(folder, settings())
    learner._sharding = replace(WAITS, deadline=2.0)
    children = [*learner._children]
    for child in children:  # as if it had been told so from the start
        child.connection.settimeout(1.0)
    os.kill(children[0].pid, signal.SIGSTOP)
    # More than the socket holds: the process stands still while it is being told what to do.
    with pytest.raises(InfrastructureError, match=r"sft_step did not end within 2 seconds \(learner\.deadline\)"):
        learner.sft_step([sample for seed in range(800) for sample in demonstrations(seed)])
    assert all(child.ended is not None for child in children)


def test_a_bad_start_is_said_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such checkpoint folder"):
        MultiProcessLearner(tmp_path / "nowhere", settings(), WAITS, processes=2)


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(folder: Path, tmp_path: Path) -> None:
    learner = several(folder, settings())
    try:
        saved = learner.save(tmp_path / "kept" / "step-000001", {"step": 1})
        blocked = tmp_path / "blocked"
        blocked.write_text("a file where a folder must be")
        with pytest.raises(MuarlError, match="blocked"):
            learner.save(blocked / "step-000002")
        assert learner.load(saved) == {"step": 1}
        assert [p.name for p in saved.parent.iterdir()] == ["step-000001"]
    finally:
        learner.close()


def test_children_end_with_their_parent(folder: Path) -> None:
    learner = several(folder, settings())
    children = [*learner._children]
    del learner
    assert all(child.ended is not None for child in children)
