from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast, Qwen3ForCausalLM

from muarl.basics.errors import CheckpointError, MuarlError
from muarl.learning import checkpoint_files
from muarl.learning.checkpoint_folders import checkpoint_path, latest_checkpoint, list_checkpoints
from muarl.learning.checkpoints import check_policy, load_policy, save_policy
from muarl.learning.state_files import StateReader, TrainerState


@pytest.fixture
def saved(tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast) -> Path:
    return save_policy(tmp_path / "policy", make_model(), tokenizer)


def edit(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("tied", [True, False])
def test_round_trip_is_exact(
    tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast, tied: bool
) -> None:
    model = make_model(tie_word_embeddings=tied)
    loaded = load_policy(save_policy(tmp_path / "p", model, tokenizer))
    assert dict(loaded.model.named_parameters()).keys() == dict(model.named_parameters()).keys()
    for a, b in zip(model.parameters(), loaded.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert loaded.tokenizer.encode("w3 w39") == [3, 39]
    assert loaded.tokenizer.eos_token == "w1"
    ids = torch.tensor([[3, 4, 5]])
    assert torch.equal(model(ids).logits, loaded.model(ids).logits)


def test_other_readers_understand_the_folder(saved: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(saved)
    assert type(model) is Qwen3ForCausalLM
    assert AutoTokenizer.from_pretrained(saved).encode("w3 w39") == [3, 39]
    assert json.loads((saved / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_half_precision_storage(
    tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast
) -> None:
    path = save_policy(tmp_path / "p", make_model(), tokenizer, dtype=torch.float16)
    assert {t.dtype for t in load_file(path / "model.safetensors").values()} == {torch.float16}
    assert next(load_policy(path).model.parameters()).dtype == torch.float32
    assert next(load_policy(path, dtype=None).model.parameters()).dtype == torch.float16


def test_shards_are_read(saved: Path) -> None:
    tensors = load_file(saved / "model.safetensors")
    names = sorted(tensors)
    for part, some in (("a.safetensors", names[:5]), ("b.safetensors", names[5:])):
        save_file({n: tensors[n] for n in some}, saved / part, metadata={"format": "pt"})
    index = {n: "a.safetensors" if n in names[:5] else "b.safetensors" for n in names}
    (saved / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    whole = load_policy(saved).model
    (saved / "model.safetensors").unlink()
    for a, b in zip(whole.parameters(), load_policy(saved).model.parameters(), strict=True):
        assert torch.equal(a, b)
    (saved / "b.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"b\.safetensors: missing"):
        load_policy(saved)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name}.*missing"):
        load_policy(saved)


def test_other_checkpoints_are_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such checkpoint folder"):
        load_policy(tmp_path / "nothing")
    config = saved / "config.json"
    original = config.read_text()
    edit(config, model_type="llama", architectures=["LlamaForCausalLM"])
    with pytest.raises(CheckpointError, match=r"'.*norm.*' is no part of the model that config\.json describes"):
        load_policy(saved)
    for kind, words in (
        ("bert", "encoder.*choose a causal model"),
        ("t5", "no causal language model"),
        ("new", "newer"),
    ):
        edit(config, model_type=kind, architectures=[])
        with pytest.raises(CheckpointError, match=rf"config\.json: model_type '{kind}'.*{words}"):
            load_policy(saved)
    config.write_text(original)
    edit(config, architectures=["Qwen3ForSequenceClassification"])
    with pytest.raises(CheckpointError, match="Qwen3ForSequenceClassification"):
        load_policy(saved)
    config.write_text(original)
    edit(config, hidden_size="wide")
    with pytest.raises(CheckpointError, match=r"config\.json: not a valid qwen3 configuration"):
        load_policy(saved)
    config.write_text(original)
    edit(config, intermediate_size=50)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: '.*mlp.*' has shape .* asks for"):
        load_policy(saved)
    config.write_text(original)
    edit(config, num_hidden_layers=3, layer_types=["full_attention"] * 3)
    with pytest.raises(CheckpointError, match=r"lack 'model\.layers\.2\."):
        load_policy(saved)
    config.write_text(original)
    edit(config, num_hidden_layers=1, layer_types=["full_attention"])
    with pytest.raises(CheckpointError, match=r"'model\.layers\.1\..*' is no part of the model"):
        load_policy(saved)
    config.write_text("{ not json")
    with pytest.raises(CheckpointError, match=r"config\.json: is not valid JSON"):
        load_policy(saved)


def test_a_tokenizer_with_too_many_words_is_refused(
    tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast
) -> None:
    path = save_policy(tmp_path / "p", make_model(vocab_size=39), tokenizer)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: has token ids up to 39.*vocab_size=39"):
        load_policy(path)


def test_damaged_files_are_refused(saved: Path) -> None:
    weights = saved / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match=r"model\.safetensors: cannot be read"):
        check_policy(saved)
    weights.write_bytes(data)
    (saved / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: cannot be read"):
        load_policy(saved)


def test_trainer_state_round_trip(
    tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast
) -> None:
    state = TrainerState({"m/exp_avg": torch.randn(3), "rng": torch.arange(5, dtype=torch.uint8)}, {"step": 3})
    path = save_policy(tmp_path / "p", make_model(), tokenizer, state)
    back = StateReader(path)
    assert back.values == {"step": 3}
    assert all(torch.equal(back.read(k), v) for k, v in state.tensors.items())
    edit(path / "trainer.json", format=99)
    with pytest.raises(CheckpointError, match="format is not"):
        StateReader(path)
    plain = save_policy(tmp_path / "q", make_model(), tokenizer)
    with pytest.raises(CheckpointError, match=r"has no trainer\.json"):
        StateReader(plain)


@pytest.mark.parametrize(
    "problem",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_leaves_the_old_checkpoint_and_nothing_else(
    saved: Path,
    make_model: Callable[..., Qwen3ForCausalLM],
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
    problem: Exception,
) -> None:
    def full(tensors: Any, path: Path, **_: Any) -> None:
        path.write_bytes(b"half")
        raise problem

    monkeypatch.setattr(checkpoint_files, "save_file", full)
    for name in ("policy", "another"):
        with pytest.raises(MuarlError, match=f"{name}: the disk is full.*Free some space"):
            save_policy(saved.parent / name, make_model(1), tokenizer)
    assert [p.name for p in saved.parent.iterdir()] == ["policy"]
    load_policy(saved)


def test_an_interrupted_save_leaves_nothing(
    saved: Path,
    make_model: Callable[..., Qwen3ForCausalLM],
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_files, "save_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_policy(saved, make_model(1), tokenizer)
    assert [p.name for p in saved.parent.iterdir()] == ["policy"]
    load_policy(saved)


def test_saving_again_replaces_the_whole_folder(
    saved: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast
) -> None:
    (saved / "leftover.txt").write_text("old")
    save_policy(saved, make_model(1), tokenizer)
    assert not (saved / "leftover.txt").exists()
    assert [p.name for p in saved.parent.iterdir()] == ["policy"]
    assert torch.equal(next(load_policy(saved).model.parameters()), next(make_model(1).parameters()))


def test_finding(saved: Path, tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    assert latest_checkpoint(root) is None
    for step in (2, 10, 1000000, 9):
        shutil.copytree(saved, checkpoint_path(root, step))
    (root / "best").mkdir()
    assert [step for step, _ in list_checkpoints(root)] == [2, 9, 10, 1000000]
    latest = latest_checkpoint(root)
    assert latest is not None
    assert latest.name == "step-1000000"


def test_a_policy_without_memory_for_its_weights_reads_them_from_its_folder(saved: Path) -> None:
    full, bare = load_policy(saved), load_policy(saved, weights=False)
    assert bare.model.device.type == "meta"
    assert bare.tokenizer.encode("w3 w39") == [3, 39]
    ours, theirs = dict(bare.weights()), dict(full.weights())
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[n], theirs[n]) for n in ours)
