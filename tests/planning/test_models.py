"""Parameters are counted as transformers makes them, for the published models and for any config.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from muarl.errors import CheckpointError
from muarl.planning.models import PUBLISHED, ModelShape, published, shape_from_config

CARDS = {"0.6B": 0.6e9, "1.7B": 1.7e9, "4B": 4.0e9, "8B": 8.2e9, "14B": 14.8e9, "32B": 32.8e9}
"""Parameters that the models' own cards state, to the digits given."""


def on_meta(shape: ModelShape) -> Qwen3ForCausalLM:
    fields = {k: v for k, v in shape.to_config().items() if k not in ("architectures", "model_type")}
    with torch.device("meta"):
        return Qwen3ForCausalLM(Qwen3Config(**fields))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_have_the_parameters_that_transformers_makes(name: str) -> None:
    shape = PUBLISHED[name]
    made = on_meta(shape)
    assert shape.parameters == sum(p.numel() for p in made.parameters())
    assert shape.layer_parameters == sum(p.numel() for p in made.model.layers[0].parameters())
    size = name.rpartition("-")[2]
    assert float(f"{shape.parameters / 1e9:.1f}") == pytest.approx(CARDS[size] / 1e9)


@pytest.mark.parametrize("tied", [True, False])
def test_a_folder_s_config_gives_its_shape(tmp_path: Path, tied: bool) -> None:
    shape = ModelShape("own", 3, 48, 4, 2, 16, 80, 101, tied, 256)
    (tmp_path / "config.json").write_text(json.dumps(shape.to_config()))
    found = shape_from_config(tmp_path)
    assert found.parameters == shape.parameters == sum(p.numel() for p in on_meta(shape).parameters())
    assert found.tied is tied


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not valid JSON"),
        ('{"model_type": "llama"}', "'llama'"),
        ('{"model_type": "qwen3", "hidden_size": 8}', "num_attention_heads"),
        ('{"model_type": "qwen3", "num_attention_heads": "many"}', "not a valid"),
    ],
)
def test_what_is_no_qwen3_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=words):
        shape_from_config(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nowhere"):
        shape_from_config(tmp_path / "nowhere")


def test_names_of_folders_and_of_the_hub_are_known() -> None:
    assert published("Qwen/Qwen3-8B") is published("models/qwen3-8b/") is PUBLISHED["Qwen/Qwen3-8B"]
    assert published("runs/mine") is None
