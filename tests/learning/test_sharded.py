"""Two processes equal one. One group of processes is started for the whole file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.learning.checkpoint_files import MANIFEST
from muarl.learning.checkpoints import check_whole, load_policy, save_policy
from muarl.learning.learner import Learner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.learning.packing import Sample
from muarl.learning.workers import MultiProcessLearner
from support.sharded import demonstrations, episodes, one, run, same_metrics, same_weights, settings, several

POLICY = PolicyLossConfig(
    kl_coef=0.1, minibatches=2, epochs=2, old_logprobs="recompute", loss_aggregation="sequence_mean"
)
"""A divergence to a reference model, and several updates in one step, in an order that a seed decides."""


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sharded")


@pytest.fixture
def folder(start: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast) -> Path:
    if not (start / "policy").exists():
        save_policy(start / "policy", make_model(), tokenizer)
    return start / "policy"


@pytest.fixture(scope="module")
def group() -> Iterator[list[MultiProcessLearner]]:
    found: list[MultiProcessLearner] = []
    yield found
    for learner in found:
        learner.close()


@pytest.fixture
def pair(group: list[MultiProcessLearner], folder: Path) -> MultiProcessLearner:
    """Two processes, from the second test on wherever the ones before have brought them."""
    if not group:
        group.append(several(folder, settings(POLICY)))
    return group[0]


@pytest.mark.slow
def test_two_processes_learn_what_one_does_and_either_goes_on_for_the_other(
    pair: MultiProcessLearner, folder: Path, tmp_path: Path
) -> None:
    assert isinstance(pair, Learner)
    alone = one(folder, settings(POLICY))
    for ours, theirs in zip(run(pair, range(3)), run(alone, range(3)), strict=True):
        same_metrics(ours, theirs)
    assert pair.version == alone.version == 6
    same_weights(pair, alone)
    # More processes than samples: one of them has nothing to learn from.
    same_metrics(pair.policy_step(episodes(7, 1)), alone.policy_step(episodes(7, 1)))
    assert pair.policy_step([]) == pair.sft_step([Sample([1, 2], [0, 0])]) == {"skipped": 1.0}

    random.seed(3)
    torch.manual_seed(3)
    saved = pair.save(tmp_path / "step-000001", {"step": 1, "note": "é"})
    expected = random.random(), torch.rand(2).tolist(), pair.policy_step(episodes(8))
    parts = sorted(p.name for p in saved.glob("trainer-*"))
    assert parts == ["trainer-00001-of-00002.safetensors", "trainer-00002-of-00002.safetensors"]
    other = one(folder, settings(POLICY))
    assert other.load(saved) == {"step": 1, "note": "é"}
    assert (random.random(), torch.rand(2).tolist()) == expected[:2], "the recipe's own draws go on too"
    same_metrics(expected[2], other.policy_step(episodes(8)))
    # And back: the two take up what the one has saved.
    random.seed(4)
    saved = other.save(tmp_path / "step-000002", {"step": 2})
    expected = random.random(), torch.rand(2).tolist(), other.policy_step(episodes(9))
    assert pair.load(saved) == {"step": 2}
    assert (random.random(), torch.rand(2).tolist()) == expected[:2]
    assert pair.version == 8
    same_metrics(pair.policy_step(episodes(9)), expected[2])
    same_weights(pair, other)


@pytest.mark.slow
def test_segments_of_an_episode_weigh_the_same_wherever_they_are(pair: MultiProcessLearner, folder: Path) -> None:
    alone = one(folder, settings(POLICY))
    alone.load(pair.save(folder.parent / "parted"))
    parted = [replace(s, episode=n // 3 if n < 6 else None) for n, s in enumerate(episodes(11, 9))]
    same_metrics(pair.policy_step(parted), alone.policy_step(parted))
    same_weights(pair, alone)


@pytest.mark.slow
def test_a_sharded_checkpoint_is_one_hugging_face_model(pair: MultiProcessLearner, tmp_path: Path) -> None:
    saved = pair.save(tmp_path / "step-000001")
    listed = json.loads((saved / MANIFEST).read_text())["files"]
    assert {p.name for p in saved.iterdir()} == {*listed, MANIFEST} and "trainer-00002-of-00002.safetensors" in listed
    check_whole(saved)
    part = saved / "trainer-00002-of-00002.safetensors"
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CheckpointError, match="trainer-00002-of-00002.safetensors: its contents have changed"):
        pair.load(saved)
    part.write_bytes(whole)
    model = AutoModelForCausalLM.from_pretrained(saved, local_files_only=True)
    assert isinstance(model, Qwen3ForCausalLM)
    theirs = dict(model.named_parameters())
    for name, weight in pair.weights():
        assert torch.equal(weight, theirs[name]), name
    assert load_policy(saved).tokenizer.encode("w3 w39") == [3, 39]
    assert [p.name for p in tmp_path.iterdir()] == ["step-000001"], "no half-written folder stays"


@pytest.mark.slow
def test_what_is_wrong_with_a_call_is_said_and_the_group_goes_on(
    pair: MultiProcessLearner, folder: Path, tmp_path: Path
) -> None:
    before = dict(pair.weights())
    with pytest.raises(ConfigError, match="a document of 50 tokens does not fit"):
        pair.sft_step([*demonstrations(1, 3), Sample.supervised([5] * 50, [True] * 50)])
    with pytest.raises(ValueError, match="log-probabilities"):
        pair.policy_step(demonstrations(1, 3))
    with pytest.raises(CheckpointError, match="no such checkpoint folder|has no trainer"):
        pair.load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"has no trainer\.json"):
        pair.load(folder)
    stranger = one(folder, settings(PolicyLossConfig(kl_coef=0.0), kind="muon"))
    stranger.sft_step(demonstrations(1))
    with pytest.raises(CheckpointError, match="reference model was another one|does not belong to this model"):
        pair.load(stranger.save(tmp_path / "other"))
    for name, weight in pair.weights():
        assert torch.equal(weight, before[name]), name
    assert pair.sft_step(demonstrations(1))["nll"] > 0
