"""Checkpoints of other kinds, and of people who wish ill: one clear sentence, at once, and nothing read without end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM
from typer.testing import CliRunner

from muarl.basics.errors import CheckpointError
from muarl.cli.main import app
from muarl.learning.checkpoint_files import MANIFEST, MOST
from muarl.learning.checkpoints import check_policy, check_whole, load_policy, save_policy
from muarl.planning.models import shape_from_config

DEEP = "[" * 200_000
SUM = "0" * 64


@pytest.fixture
def saved(tmp_path: Path, make_model: Callable[..., Qwen3ForCausalLM], tokenizer: PreTrainedTokenizerFast) -> Path:
    return save_policy(tmp_path / "policy", make_model(), tokenizer)


def edit(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
    "name",
    ["config.json", MANIFEST, "tokenizer_config.json", "generation_config.json", "adapter_config.json"],
)
@pytest.mark.parametrize("text", ['{"a": ' + DEEP, '{"a": ' + "9" * 5000 + "}", "[1]", '{"a": 1'])
def test_a_file_nested_without_end_is_named(saved: Path, name: str, text: str) -> None:
    (saved / name).write_text(text)
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        load_policy(saved)


def test_a_deep_configuration_is_named_wherever_it_is_read(saved: Path) -> None:
    (saved / "config.json").write_text('{"a": ' + DEEP)
    with pytest.raises(CheckpointError, match=r"config\.json: .*nested deeper"):
        shape_from_config(saved)
    for arguments in (["eval", "-m", str(saved)], ["chat", str(saved)], ["train", "--checkpoint", str(saved)], [
        "eval", "tau2-retail", "--config", "cpu", "--agent", str(saved), "--user", "endpoint:m",
    ]):  # fmt: skip
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2, result.output
        assert "nested deeper" in " ".join(result.stderr.split()) and "Traceback" not in result.output


def test_a_manifest_of_very_many_files(saved: Path) -> None:
    files = {f"model-{n}.safetensors": {"bytes": 1, "sha256": SUM} for n in range(MOST + 1)}
    edit(saved / MANIFEST, files=files)
    with pytest.raises(CheckpointError, match=r"manifest\.json: .*20,001 files"):
        load_policy(saved)


def test_a_manifest_that_leads_to_a_device(saved: Path) -> None:
    """Whose bytes never end."""
    (saved / "model-x.safetensors").symlink_to("/dev/zero")
    edit(saved / MANIFEST, files={"model-x.safetensors": {"bytes": 0, "sha256": SUM}})
    with pytest.raises(CheckpointError, match=r"model-x\.safetensors: is no plain file"):
        load_policy(saved)


@pytest.mark.parametrize("name", ["config.json", MANIFEST])
def test_files_that_are_no_files(saved: Path, name: str) -> None:
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        load_policy(saved)


def test_more_layers_than_there_are_weights_of(saved: Path) -> None:
    edit(saved / "config.json", num_hidden_layers=10**9, layer_types=None)
    with pytest.raises(CheckpointError, match=r"lack 'model\.layers\.2\.' of the 1,000,000,000 layers"):
        check_policy(saved)


@pytest.mark.parametrize("method", ["gptq", "bitsandbytes", "awq", "fp8"])
def test_quantised_weights_are_refused_with_the_remedy(saved: Path, method: str) -> None:
    edit(saved / "config.json", quantization_config={"quant_method": method, "bits": 4})
    with pytest.raises(
        CheckpointError, match=rf"config\.json: the weights are quantised \('{method}'\).*quantised from"
    ):
        load_policy(saved)
    result = CliRunner().invoke(app, ["chat", str(saved)])
    assert (result.exit_code, "quantised" in result.stderr) == (2, True)


def test_an_adapter_alone(tmp_path: Path) -> None:
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "Qwen/Qwen3-8B"}')
    (folder / "adapter_model.safetensors").write_bytes(b"")
    for check in (check_policy, check_whole, load_policy):
        with pytest.raises(
            CheckpointError, match=r"LoRA adapter alone.*its base 'Qwen/Qwen3-8B' first.*merge_and_unload"
        ):
            check(folder)
    result = CliRunner().invoke(app, ["eval", "--checkpoint", str(folder)])
    assert result.exit_code == 2
    assert "LoRA adapter alone" in " ".join(result.stderr.split())


def test_an_adapter_beside_its_merged_model(saved: Path) -> None:
    folder = saved / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=f"the folder above, {saved}"):
        check_policy(folder)
