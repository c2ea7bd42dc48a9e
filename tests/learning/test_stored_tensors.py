"""Which tensors of a checkpoint make which of a model, for models that transformers computes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast

from muarl.basics.errors import CheckpointError
from muarl.learning.checkpoint_files import WeightReader
from muarl.learning.checkpoints import Policy, check_policy, load_policy, save_policy
from muarl.learning.stored_tensors import StoredTensors
from muarl.models.configs import bare_model
from muarl.models.generic import blocks_of
from support.tiny_families import GENERIC, tiny_family


def opened(folder: Path) -> tuple[StoredTensors, WeightReader]:
    found = WeightReader(folder)
    return StoredTensors(check_policy(folder), folder, found.shapes), found


def converted(folder: Path) -> dict[str, torch.Tensor]:
    tensors, found = opened(folder)
    made: dict[str, torch.Tensor] = {}
    for source in tensors.sources:
        made |= tensors.convert(folder, source, found.read)
    assert all(p.is_meta for p in tensors.model.parameters()), "nothing stays behind"
    return made


@pytest.mark.parametrize("name", GENERIC)
def test_there_and_back(name: str, tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    """Experts that lie apart, other names, buffers that belong to the model, and tensors that are the same.

    And the buffers that no file holds, such as frequencies and scales: a sharded model computes them itself.
    """
    model = tiny_family(name, GENERIC[name])
    folder = save_policy(tmp_path / "policy", model, tokenizer)
    made = converted(folder)
    held = model.state_dict()
    assert made.keys() == held.keys()
    for key, value in made.items():
        assert torch.equal(value, held[key]), key
    tensors, _ = opened(folder)
    stored = load_file(folder / "model.safetensors")
    assert {key: value.shape for key, value in stored.items()} == tensors.shapes()
    for source in tensors.sources:
        for key, value in tensors.revert(source, made).items():
            assert torch.equal(value, stored[key]), key
    bare = bare_model(model.config)
    assert all(p.is_meta for p in bare.parameters())
    mine = {key: value for key, value in bare.named_buffers() if key not in held}
    loaded = dict(load_policy(folder).model.named_buffers())
    assert mine.keys() == loaded.keys() - held.keys()
    assert all(torch.equal(value, loaded[key]) for key, value in mine.items())


def test_the_text_of_a_model_that_also_sees(tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    """Its tensors keep the names that the checkpoint has for them; what only the rest needs is left out."""
    model = tiny_family("qwen3_5_text", GENERIC["qwen3_5_text"])
    folder = save_policy(tmp_path / "policy", model, tokenizer)
    stored = load_file(folder / "model.safetensors")
    named = {key.replace("model.", "model.language_model.", 1): value for key, value in stored.items()}
    save_file(named | {"model.visual.a": torch.zeros(2)}, folder / "model.safetensors", {"format": "pt"})
    for key, value in converted(folder).items():
        assert torch.equal(value, model.state_dict()[key]), key
    tensors, _ = opened(folder)
    assert tensors.shapes().keys() == named.keys()


def test_a_policy_without_memory_gives_its_weights_from_the_files(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    model = tiny_family("mixtral", GENERIC["mixtral"])
    folder = save_policy(tmp_path / "policy", model, tokenizer)
    policy = load_policy(folder, weights=False)
    assert isinstance(policy, Policy) and policy.model.device.type == "meta"
    sent, held = dict(policy.weights()), dict(model.named_parameters())
    assert sent.keys() == held.keys()
    assert all(torch.equal(value, held[key]) for key, value in sent.items())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.pop("model.layers.1.block_sparse_moe.experts.2.w2.weight"), r"has shape \(3, 64, 96\)"),
        (lambda t: t.pop("model.norm.weight"), r"lack 'model.norm.weight' \(1 tensors in all\)"),
        (lambda t: t.update({"model.norm.weight": torch.zeros(5)}), r"'model.norm.weight' has shape \(5,\)"),
    ],
    ids=["an expert is missing", "a tensor is missing", "another shape"],
)
def test_what_does_not_fit_is_said(
    change: object, told: str, tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    folder = save_policy(tmp_path / "policy", tiny_family("mixtral", GENERIC["mixtral"]), tokenizer)
    stored = load_file(folder / "model.safetensors")
    change(stored)  # type: ignore[operator]
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=told):
        opened(folder)


def test_layers_that_cannot_be_sharded_are_said() -> None:
    model = tiny_family("mixtral", GENERIC["mixtral"])
    assert blocks_of(model) == list(model.model.layers)
    shared = tiny_family("mixtral", GENERIC["mixtral"])
    shared.model.layers[1].mlp = shared.model.layers[0].mlp
    with pytest.raises(CheckpointError, match=r"MixtralForCausalLM has no layers.*set learner\.kind=torch"):
        blocks_of(shared)
    model.model.norm.weight = torch.nn.Parameter(torch.tensor(1.0))
    with pytest.raises(CheckpointError, match=r"single number, 'model.norm.weight'.*set learner\.kind=torch"):
        blocks_of(model)
