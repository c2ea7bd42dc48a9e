from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from muarl.basics.errors import CheckpointError
from muarl.models.weights import as_stored, copy_weights, stored_weights, travels_as_stored
from support.tiny_families import GENERIC, OWN, tiny_family


def test_foreign_weights_are_copied_and_own_ones_left() -> None:
    model = nn.Linear(2, 2)
    before = model.bias.detach().clone()
    copy_weights([("weight", torch.ones(2, 2)), ("bias", model.bias.detach())], model)
    assert torch.equal(model.weight, torch.ones(2, 2))
    assert torch.equal(model.bias, before)


def test_experts_are_copied_one_by_one_into_the_tensor_that_holds_them() -> None:
    source, target = (tiny_family("qwen3_moe", OWN["qwen3_moe"], seed) for seed in (1, 2))
    sent = list(as_stored(source.named_parameters(), "qwen3_moe"))
    assert "model.layers.1.mlp.experts.3.up_proj.weight" in dict(sent)
    copy_weights(sent, target)
    for (name, a), b in zip(source.named_parameters(), target.parameters(), strict=True):
        assert torch.equal(a, b), name


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(CheckpointError, match="'wait'"):
        copy_weights([("wait", torch.ones(2, 2))], nn.Linear(2, 2))
    with pytest.raises(CheckpointError, match="'weight'"):
        copy_weights([("weight", torch.ones(2, 3))], nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("name", "same"), [("qwen2", True), ("gpt_oss", True), ("qwen3_moe", True), ("deepseek_v3", False)]
)
def test_weights_are_given_under_the_names_of_a_checkpoint(tmp_path: Path, name: str, same: bool) -> None:
    """As ``save_pretrained`` of transformers writes them: experts apart, buffers that belong to the model included."""
    model = tiny_family(name, {**OWN, **GENERIC}[name])
    assert travels_as_stored(model) == same
    model.save_pretrained(tmp_path)
    theirs = load_file(tmp_path / "model.safetensors")
    ours = stored_weights(model, model.named_parameters())
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], value) for key, value in theirs.items())
