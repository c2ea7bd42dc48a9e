"""muarl doctor: what it finds out, and what it must never show."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from muarl.backends import number_formats
from muarl.cli.main import app
from muarl_tools.commands import doctor, doctor_model
from support.chat_families import CASES, tokenizer


def test_json_names_every_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    result = CliRunner().invoke(app, ["doctor", "--json", "--no-speed"])
    assert result.exit_code == 0, result.output
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    expected = "python cores memory disk torch OMP_WAIT_POLICY GPU libraries extras data endpoints"
    assert {*expected.split(), "base checkpoint"} == set(found)
    assert found["cores"]["data"]["usable"] >= 1
    assert 0 < found["memory"]["data"]["available"] <= found["memory"]["data"]["total"]
    assert found["disk"]["data"]["free"] > 0
    assert found["torch"]["data"]["version"][0].isdigit()
    assert all(check["status"] in ("ok", "note", "problem") for check in found.values())


def test_the_value_of_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    for arguments in (["doctor", "--no-speed"], ["doctor", "--no-speed", "--json"]):
        output = CliRunner().invoke(app, arguments).output
        assert "OPENAI_API_KEY is set" in output
        assert "secret" not in output


def test_a_full_disk_is_a_problem_and_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: Usage)
    result = CliRunner().invoke(app, ["doctor", "--no-speed"])
    assert result.exit_code == 1
    assert "Free some space" in result.output
    assert "1 problem(s)" in result.output


def test_spinning_threads_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    check = doctor.check_waiting()
    assert check.status == "note"
    assert "PASSIVE" in check.remedy


def test_without_torch_the_light_core_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "is_installed", lambda name: name != "torch")
    result = CliRunner().invoke(app, ["doctor", "--json"])
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert result.exit_code == 0
    assert found["torch"]["status"] == "note" and "muarl[train]" in found["torch"]["remedy"]
    assert found["libraries"]["status"] == "ok" and "speed" not in found
    assert "light core is ready" in CliRunner().invoke(app, ["doctor"]).output


def test_a_half_installed_extra_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    version = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "renderers" else version(name))
    check = doctor.check_libraries()
    assert check.status == "problem" and check.says == "missing: renderers"
    assert check.remedy == "pip install 'muarl[train]'"


def test_speed_is_measured_on_one_thread_and_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SECONDS", 0.1)
    check = doctor.check_speed()
    assert "1" in check.data["flops"]
    assert all(rate > 1e8 for rate in check.data["flops"].values())


def test_a_control_group_bounds_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda p, *a, **k: "50000 100000\n" if p.name == "cpu.max" else read(p, *a, **k)
    )
    assert doctor.usable_cores() == 0.5
    assert doctor.check_cores().status == "note"


def test_a_model_is_explained_without_its_weights(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", "Qwen/Qwen2.5-7B", "--json", "--no-speed"])
    assert result.exit_code == 0, result.output
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert found["model"]["data"]["family"] == "qwen2" and found["model"]["says"].startswith(
        "qwen2, 7,615,616,512 parameters"
    )
    assert found["computed by"]["data"]["path"] == "own" and found["prefix sharing"]["data"]["supported"]

    save_file({"a": torch.zeros(3, 5)}, tmp_path / "model.safetensors")
    sizes = {
        "num_attention_heads": 2,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "intermediate_size": 8,
        "vocab_size": 9,
    }
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt_oss", **sizes}))
    result = CliRunner().invoke(app, ["doctor", str(tmp_path), "--json", "--no-speed"])
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert found["model"]["data"]["parameters"] == 15
    assert found["computed by"]["data"] == {"path": "generic", "reason": "another kind of layer", "verified": True}
    assert found["sharding"]["data"]["supported"] and "learner.kind=fsdp" in found["sharding"]["says"]


def test_a_mixture_is_explained() -> None:
    result = CliRunner().invoke(app, ["doctor", "Qwen/Qwen3-30B-A3B", "--json", "--no-speed"])
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert found["model"]["data"]["parameters"] == 30_532_122_624
    assert found["model"]["data"]["active_parameters"] == 3_353_032_704
    assert found["computed by"]["data"]["path"] == "own" and found["sharding"]["data"]["supported"]
    assert "beside attention" in found["LoRA"]["says"]
    assert not found["CUDA graphs"]["data"]["supported"] and "experts" in found["CUDA graphs"]["says"]


def model_folder(place: Path, tokenizer: Any) -> Path:
    """A checkpoint's folder without weights worth the name."""
    place.mkdir()
    tokenizer.save_pretrained(place)
    save_file({"a": torch.zeros(3, 5)}, place / "model.safetensors")
    sizes = {"num_attention_heads": 2, "hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 8}
    (place / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 9, **sizes}))
    return place


def test_a_chat_format_is_named_with_thinking_and_stop_ids(tmp_path: Path) -> None:
    case = next(c for c in CASES if c.family == "glm-4.5")
    folder = model_folder(tmp_path / "glm", tokenizer(case))
    result = CliRunner().invoke(app, ["doctor", str(folder), "--json", "--no-speed"])
    assert result.exit_code == 0, result.output
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert found["chat format"]["data"] == {"format": "glm-4.5", "template": False}
    assert "`<arg_key>`" in found["chat format"]["says"]
    assert found["thinking"]["data"] == {"thinking": "optional", "template_keeps": False}
    assert "go when the user speaks again, as the template has it" in found["thinking"]["says"]
    ends = ["<|user|>", "<|observation|>", "<|endoftext|>"]
    ids = dict(zip(ends, tokenizer(case).convert_tokens_to_ids(ends), strict=True))
    assert found["stop ids"]["data"] == ids


def test_a_chat_format_that_is_refused_is_a_problem_with_the_first_difference(tmp_path: Path) -> None:
    case = next(c for c in CASES if c.family == "qwen3.5")
    odd = copy.deepcopy(tokenizer(case))
    odd.chat_template = "{% for m in messages %}<<{{ m.content }}<|im_end|>{% endfor %}{{ tools | tojson }}"
    result = CliRunner().invoke(app, ["doctor", str(model_folder(tmp_path / "odd", odd)), "--json", "--no-speed"])
    assert result.exit_code == 1
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert found["computed by"]["data"]["path"] == "own" and "stop ids" not in found
    assert found["chat format"]["status"] == "problem"
    told = found["chat format"]["says"]
    assert re.search(r"As qwen3: the format writes '.+' where the template has '<.*model\.chat_format=", told)
    assert found["chat format"]["remedy"].endswith("odd model.chat_format=text")


def test_settings_change_what_a_model_is_told_to_be(tmp_path: Path) -> None:
    case = next(c for c in CASES if c.family == "qwen3.5")
    odd = copy.deepcopy(tokenizer(case))
    odd.chat_template = "{% for m in messages %}<<{{ m.content }}<|im_end|>{% endfor %}{{ tools | tojson }}"
    folder = str(model_folder(tmp_path / "odd", odd))
    result = CliRunner().invoke(app, ["doctor", folder, "model.chat_format=text", "--json", "--no-speed"])
    assert result.exit_code == 0, result.output
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert found["chat format"]["data"] == {"format": "text", "template": True}
    assert list(found["stop ids"]["data"]) == ["<|im_end|>"]
    result = CliRunner().invoke(app, ["doctor", "model.chat_format=text"])
    assert "settings come after the model" in f"{result.output}{result.exception}"


def test_a_model_that_was_not_fetched_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUARL_MODELS", str(tmp_path))
    result = CliRunner().invoke(app, ["doctor", "smollm2"])
    assert "muarl model fetch smollm2" in f"{result.output}{result.exception}"


def test_a_folder_without_a_tokenizer_has_no_chat_format(tmp_path: Path) -> None:
    (check,) = doctor_model.explain_chat(tmp_path)
    assert check.status == "problem" and "no tokenizer.json" in check.says and "Copy" in check.remedy
    (check,) = doctor_model.explain_chat(None)
    assert check.status == "note"


def test_a_model_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "t5", "is_encoder_decoder": true}')
    result = CliRunner().invoke(app, ["doctor", str(tmp_path)])
    assert result.exit_code == 2
    assert "'t5' has an encoder and a decoder" in " ".join(result.stderr.split())


def test_the_faster_number_format_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_formats, "SECONDS", 0.05)
    rates = doctor_model.check_formats().data["steps_per_second"]
    assert rates.keys() == {"float32", "bfloat16"} and all(rate > 0 for rate in rates.values())
    for slower, status in (("bfloat16", "note"), ("float32", "ok")):
        speeds = {torch.float32: 1.0, torch.bfloat16: 1.0, getattr(torch, slower): 0.5}
        monkeypatch.setattr(number_formats, "_step", lambda _torch, kind, _device: kind)
        monkeypatch.setattr(number_formats, "_per_second", lambda kind, _seconds, _clock, speeds=speeds: speeds[kind])
        check = doctor_model.check_formats()
        assert check.status == status and f"2.0 times as fast as {slower}" in check.says
