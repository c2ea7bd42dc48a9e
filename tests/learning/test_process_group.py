"""What processes that learn together check before they do, and how work and files are divided among them."""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.basics.errors import CheckpointError, ConfigError, InfrastructureError
from muarl.learning.checkpoint_files import WeightReader, WeightWriter
from muarl.learning.checkpoints import check_policy, save_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.packing import Batch, Sample, idle_rows, pack, spread
from muarl.learning.process_group import LOOPBACK, ShardingConfig, host_store, join, versions
from muarl.learning.state_files import StateReader, combined_fingerprint, tensor_sum, write_tensors, write_values
from muarl.models.layout import SHARE_FROM
from support.sharded import episodes, settings

BRIEF = ShardingConfig(deadline=0.5)


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"learner\.port: port {port} of 127\.0\.0\.1 is in use"):
            host_store(port=port)


def test_a_process_that_does_not_come_is_named() -> None:
    store, address = host_store()
    store.set("muarl/2", json.dumps(versions()))
    with pytest.raises(InfrastructureError, match=r"process 0 of 3 waited .* for process 1, which did not come"):
        join(address, 0, 3, BRIEF)


@pytest.mark.parametrize("what", ["muarl", "torch", "python"])
def test_a_process_of_another_version_is_named(what: str) -> None:
    store, address = host_store()
    store.set("muarl/1", json.dumps(versions() | {what: "0.0.9"}))
    with pytest.raises(InfrastructureError, match=rf"process 0 of 2 runs {what} .*process 1 runs 0\.0\.9"):
        join(address, 0, 2, BRIEF)


def test_a_meeting_place_that_is_not_there_is_given_up() -> None:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(InfrastructureError, match=f"cannot reach the store at 127.0.0.1:{port}"):
        join(f"{LOOPBACK}:{port}", 1, 2, ShardingConfig(deadline=1.0))
    assert time.monotonic() - started < 60


def test_a_deadline_must_be_above_0() -> None:
    with pytest.raises(ConfigError, match=r"learner\.deadline"):
        ShardingConfig(deadline=0)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("parts", [1, 2, 3, 16])
def test_work_is_spread_evenly_and_every_sample_goes_once(parts: int, share: bool) -> None:
    batch = Batch.of([*episodes(3, 12), Sample([1, 2], [0, 0])])
    found = spread(batch, parts, share=share)
    assert len(found) == parts
    assert sorted(i for part in found for i in part) == list(range(12)), "all but the one without loss"
    loads = [sum(len(batch.samples[i].ids) for i in part) for part in found]
    assert max(loads) - min(loads) <= max(len(s.ids) for s in batch.samples) * (2 if share else 1)
    assert sorted(i for part in spread(batch, parts, [4, 2, 12], share=share) for i in part) == [2, 4]


def test_samples_that_begin_alike_stay_together() -> None:
    source = random.Random(0)
    prompts = [[source.randrange(40) for _ in range(3 * SHARE_FROM)] for _ in range(2)]
    samples = [Sample.supervised([*prompts[i % 2], i, i], [False] * 96 + [True] * 2) for i in range(8)]
    parts = spread(Batch.of(samples), 2, share=True)
    assert sorted(sorted(part) for part in parts) == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_an_idle_micro_batch_moves_nothing(
    make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, idling = (TorchLearner(make_model(), tokenizer, settings()) for _ in range(2))
    monkeypatch.setattr(
        idling, "_micro", lambda batch, subset=None: [*pack(batch, token_budget=40, subset=subset), idle_rows()]
    )
    monkeypatch.setattr(plain, "_micro", lambda batch, subset=None: pack(batch, token_budget=40, subset=subset))
    for step in ("sft_step", "policy_step"):
        ours, theirs = getattr(idling, step)(episodes(1)), getattr(plain, step)(episodes(1))
        assert {k: ours[k] for k in ("grad_norm", "tokens", "loss_tokens")} == {
            k: theirs[k] for k in ("grad_norm", "tokens", "loss_tokens")
        }
    for a, b in zip(plain.model.parameters(), idling.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_fingerprint_is_that_of_the_whole_however_it_lies() -> None:
    torch.manual_seed(0)
    tensor = torch.randn(7, 5)
    whole = combined_fingerprint({"w": tensor_sum("w", tensor)})
    parts = tensor_sum("w", tensor[:3]) + tensor_sum("w", tensor[3:], 15)
    assert combined_fingerprint({"w": parts}) == whole
    assert combined_fingerprint({"w": tensor_sum("w", tensor.bfloat16())}) == whole
    assert combined_fingerprint({"v": tensor_sum("v", tensor)}) != whole
    assert combined_fingerprint({"w": tensor_sum("w", tensor.flip(0))}) != whole
    changed = tensor.clone()
    changed[3, 3] += 0.1
    assert combined_fingerprint({"w": tensor_sum("w", changed)}) != whole


def test_state_in_parts_is_read_by_rows(tmp_path: Path) -> None:
    whole = torch.arange(15.0).view(5, 3)
    write_values(tmp_path, {"step": 1})
    for rank, (start, stop) in enumerate([(0, 2), (2, 4), (4, 5)]):
        tensors = {"w": whole[start:stop], "step": torch.tensor(4.0)}
        write_tensors(tmp_path, tensors, rank=rank, world=3, rows={"w": (start, 5)})
    state = StateReader(tmp_path)
    assert state.shape("w") == (5, 3)
    assert torch.equal(state.read("w"), whole)
    assert torch.equal(state.read("w", 1, 4), whole[1:4])
    assert state.read("w", 5, 5).shape == (0, 3)
    assert float(state.read("step")) == 4.0
    assert state.values == {"step": 1}
    last = tmp_path / "trainer-00003-of-00003.safetensors"
    kept = last.read_bytes()
    last.write_bytes(kept[:20])
    with pytest.raises(CheckpointError, match=r"00003-of-00003\.safetensors: cannot be read"):
        StateReader(tmp_path)
    last.unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        StateReader(tmp_path)
    write_tensors(tmp_path, {"w": whole[:1]}, rank=2, world=3, rows={"w": (0, 5)})
    with pytest.raises(CheckpointError, match="do not make a whole"):
        StateReader(tmp_path)


def test_weights_in_several_files_are_one_model(
    tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast
) -> None:
    model = make_model()
    path = save_policy(tmp_path / "p", model, tokenizer)
    (path / "model.safetensors").unlink()
    parameters = dict(model.named_parameters())
    writer = WeightWriter(path, {n: p.shape for n, p in parameters.items()}, torch.float32, limit=10_000)
    for name, parameter in parameters.items():
        writer.add(name, parameter)
    writer.finish()
    files = sorted(path.glob("model-*-of-*.safetensors"))
    assert len(files) > 2
    assert all(f.stat().st_size < 12_000 for f in files)
    check_policy(path)
    loaded = AutoModelForCausalLM.from_pretrained(path, local_files_only=True)
    for a, b in zip(model.parameters(), loaded.parameters(), strict=True):
        assert torch.equal(a, b)
    rows = WeightReader(path).read("model.embed_tokens.weight", 3, 5)
    assert torch.equal(rows, parameters["model.embed_tokens.weight"][3:5])
    unfinished = WeightWriter(path, {"a": torch.Size([1]), "b": torch.Size([1])}, torch.float32)
    unfinished.add("a", torch.zeros(1))
    with pytest.raises(ValueError, match="only 0 of 1"):
        unfinished.finish()
