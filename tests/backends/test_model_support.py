"""What a model does not allow is said before anything is loaded, with the setting to change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muarl.backends.model_support import check_supported
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.config.load import load_config
from muarl.config.sections import RunConfig


def supported(config: RunConfig, *, sampling: bool) -> None:
    check_supported(config.model.checkpoint, config.engine, sampling=sampling)


def folder(tmp_path: Path, family: str) -> str:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    return f"model.checkpoint={tmp_path}"


def test_steps_of_a_model_of_the_generic_path_are_not_recorded(tmp_path: Path) -> None:
    model = folder(tmp_path, "gpt_oss")
    recorded = load_config("cpu", [model, "engine.compile=compile"])
    with pytest.raises(ConfigError, match=r"engine\.compile is compile.*'gpt_oss'.*set engine\.compile=none"):
        supported(recorded, sampling=True)
    supported(recorded, sampling=False)
    sharded = load_config("cpu", [model, "learner.kind=fsdp", "learner.processes=2"])
    supported(sharded, sampling=True)


def test_a_state_that_the_engine_cannot_keep_is_left_to_vllm(tmp_path: Path) -> None:
    config = load_config("cpu", [folder(tmp_path, "mamba")])
    with pytest.raises(ConfigError, match=r"engine\.kind is torch.*'mamba'.*set engine\.kind=vllm"):
        supported(config, sampling=True)
    supported(config, sampling=False)


def test_vllm_is_not_started_with_more_than_the_part_that_is_trained(tmp_path: Path) -> None:
    fields = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    model = f"model.checkpoint={tmp_path}"
    with pytest.raises(ConfigError, match=r"the whole of model_type 'gemma3'.*engine\.kind=torch.*`muarl sft`"):
        supported(load_config("cpu", [model, "engine.kind=vllm"]), sampling=True)
    elsewhere = load_config("cpu", [model, "engine.kind=vllm", "engine.urls=['node7:8000']"])
    supported(elsewhere, sampling=True)
    supported(load_config("cpu", [model]), sampling=True)


def test_the_own_path_allows_both(tmp_path: Path) -> None:
    model = folder(tmp_path, "qwen2")
    options = ["learner.kind=fsdp", "learner.processes=2", "engine.compile=compile"]
    supported(load_config("cpu", [model, *options]), sampling=True)


def test_decode_steps_of_a_mixture_are_not_recorded(tmp_path: Path) -> None:
    model = folder(tmp_path, "qwen3_moe")
    with pytest.raises(ConfigError, match=r"engine\.compile is compile.*'qwen3_moe'.*experts.*engine\.compile=none"):
        supported(load_config("cpu", [model, "engine.compile=compile"]), sampling=True)
    sharded = load_config("cpu", [model, "learner.kind=fsdp", "learner.processes=2"])
    supported(sharded, sampling=True)


def test_a_model_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="'bert' is an encoder"):
        supported(load_config("cpu", [folder(tmp_path, "bert")]), sampling=True)
