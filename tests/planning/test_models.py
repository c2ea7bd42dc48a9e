"""Parameters are counted as transformers makes them, for the published models and for any config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import CheckpointError
from muarl.models.configs import empty_model, model_config
from muarl.planning.models import PUBLISHED, ModelShape, published, shape_from_config
from support.tiny_families import GENERIC, OWN, tiny_family

CARDS = {
    "Qwen3-0.6B": 0.6, "Qwen3-1.7B": 1.7, "Qwen3-4B": 4.0, "Qwen3-8B": 8.2, "Qwen3-14B": 14.8, "Qwen3-32B": 32.8,
    "Qwen3-30B-A3B": 30.5, "Qwen3-235B-A22B": 235,
    "Qwen2.5-0.5B": 0.49, "Qwen2.5-1.5B": 1.54, "Qwen2.5-3B": 3.09, "Qwen2.5-7B": 7.61, "Qwen2.5-14B": 14.7,
    "Qwen2.5-32B": 32.5, "Qwen2.5-72B": 72.7, "Llama-3.2-1B": 1.23, "Llama-3.2-3B": 3.21, "Llama-3.1-8B": 8,
    "Llama-3.1-70B": 70,
}  # fmt: skip
"""Thousand million parameters that the models' own cards state, to the digits given."""


def on_meta(shape: ModelShape) -> Any:
    return empty_model(model_config(shape.to_config()))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_have_the_parameters_that_transformers_makes(name: str) -> None:
    shape = PUBLISHED[name]
    made = on_meta(shape)
    assert shape.parameters == sum(p.numel() for p in made.parameters())
    assert shape.layer_parameters == sum(p.numel() for p in made.model.layers[0].parameters())
    assert shape.parameters / 1e9 == pytest.approx(CARDS[name.rpartition("/")[2]], rel=0.01, abs=0.05)


@pytest.mark.parametrize(("name", "active"), [("Qwen/Qwen3-30B-A3B", 3.3), ("Qwen/Qwen3-235B-A22B", 22.2)])
def test_a_token_of_a_mixture_meets_few_of_its_parameters(name: str, active: float) -> None:
    """As the models' cards say, to the digits given; the more tokens, the more experts are hit."""
    shape = PUBLISHED[name]
    assert shape.active_parameters / 1e9 == pytest.approx(active, abs=0.1)
    read = [shape.read_parameters(tokens) for tokens in (1, 16, 256, 1e6)]
    assert read == sorted(read) and read[-1] == pytest.approx(shape.parameters)
    dense = PUBLISHED["Qwen/Qwen3-8B"]
    assert dense.active_parameters == dense.read_parameters(1) == dense.parameters


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
        ('{"model_type": "bert"}', "'bert' is an encoder"),
        ('{"model_type": "mixtral", "num_attention_heads": 4}', "not a valid mixtral"),
        ('{"model_type": "qwen3", "hidden_size": 8}', "num_attention_heads"),
        ('{"model_type": "qwen3", "num_attention_heads": "many"}', "not a valid"),
        (
            json.dumps(PUBLISHED["Qwen/Qwen3-30B-A3B"].to_config() | {"num_experts_per_tok": 200}),
            "num_experts_per_tok is 200, of 128 experts",
        ),
    ],
)
def test_what_cannot_be_planned_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=words):
        shape_from_config(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nowhere"):
        shape_from_config(tmp_path / "nowhere")


def test_names_of_folders_and_of_the_hub_are_known() -> None:
    assert published("Qwen/Qwen3-8B") is published("models/qwen3-8b/") is PUBLISHED["Qwen/Qwen3-8B"]
    assert published("runs/mine") is None
    assert published("Qwen/Qwen2.5-7B-Instruct") is PUBLISHED["Qwen/Qwen2.5-7B"]


@pytest.mark.parametrize("name", [*OWN, "qwen2_moe", "gemma2"])
def test_every_family_s_parameters_are_counted(tmp_path: Path, name: str) -> None:
    """On the own path by the sizes in config.json, else in the files of weights."""
    model = tiny_family(name, {**OWN, **GENERIC}[name])
    model.save_pretrained(tmp_path)
    found = shape_from_config(tmp_path)
    assert found.parameters == sum(p.numel() for p in model.parameters())
    assert (found.others != 0) == (name in GENERIC)
    mixed = sum(hasattr(layer.mlp, "experts") for layer in model.model.layers)
    assert (0 if found.mixture is None else found.mixture.layers) == (mixed if name in OWN else 0)
    if name in GENERIC:  # a mean layer, which a sharded learner gathers
        inner = sum(p.numel() for p in model.model.layers.parameters())
        assert abs(found.layer_parameters * found.layers - inner) < found.layers
