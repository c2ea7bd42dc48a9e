"""Bad input and bad luck: one clear message, an exit code, and a run folder that tells the truth."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.basics import files
from muarl.basics.errors import CheckpointError
from muarl.learning import checkpoint_files
from muarl.recipes import evaluate, quickstart, rl
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn

Muarl = Callable[..., Any]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def broken(base_run: Path, tmp_path: Path) -> Path:
    """A copy of a checkpoint, to be damaged."""
    return Path(shutil.copytree(checkpoint_folder(str(base_run)), tmp_path / "broken"))


def fails_clearly(result: Any, *words: str) -> None:
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stderr.count("Error:") == 1
    for word in words:
        assert word in result.stderr.replace("\n", " "), word


def change(file: Path, **fields: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1000])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda d: change(d / "config.json", model_type="llama"),
            ["config.json", "'llama'", "Qwen3ForCausalLM", "causal"],
        ),
        (lambda d: change(d / "config.json", hidden_size=64), ["model.safetensors", "has shape"]),
        (lambda d: (d / "config.json").write_text("{"), ["config.json"]),
        (lambda d: (d / "model.safetensors").unlink(), ["model.safetensors", "missing"]),
        (lambda d: (d / "tokenizer.json").unlink(), ["tokenizer.json", "missing"]),
        (lambda d: truncate(d / "model.safetensors"), ["model.safetensors", "copy it again"]),
        (lambda d: (d / "tokenizer.json").write_text("[]"), ["tokenizer.json"]),
        (lambda d: shutil.rmtree(d), ["no such checkpoint folder"]),
    ],
    ids=["llama", "shape", "json", "no-weights", "no-tokenizer", "truncated", "tokenizer", "absent"],
)
@pytest.mark.parametrize("command", ["train", "eval"])
def test_a_damaged_checkpoint_is_named(
    muarl: Muarl, broken: Path, tmp_path: Path, command: str, damage: Callable[[Path], object], words: list[str]
) -> None:
    damage(broken)
    fails_clearly(muarl(command, "--checkpoint", str(broken)), str(broken), *words)
    assert not (tmp_path / "runs").exists(), "nothing was begun"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["rl.stpes=3"], ["rl.stpes", "did you mean 'rl.steps'?"]),
        (["rl.group_size=1"], ["rl.group_size"]),
        (["model.device=abacus"], ["model.device", "muarl doctor"]),
        (["model.max_context=9"], ["model.max_context is 9", "policy text and tools"]),
        (["model.max_context=99999"], ["at most 2048 tokens"]),
        (["learner.pack_tokens=500"], ["learner.pack_tokens is 500", "768 tokens"]),
        pytest.param(["domain.intents=[nothing]"], ["no intent 'nothing'"], marks=pytest.mark.slow),
        (["domain.policy=absent.md"], ["absent.md"]),
    ],
)
def test_a_setting_that_cannot_work_is_told_before_anything_begins(
    muarl: Muarl, tmp_path: Path, options: list[str], words: list[str]
) -> None:
    fails_clearly(muarl("train", *options), *words)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ["No such file"]),
        ("", ["holds no episode"]),
        ("{", ["line 1"]),
        ("[1, 2]\n", ["no episode"]),
        ('{"schema": 99}\n', ["line 1", "schema"]),
        ('{"schema": 1, "id": "x"}\n', ["line 1", "lacks the field"]),
        ("\x00\xff", ["utf-8"]),
    ],
)
def test_a_malformed_demonstrations_file_is_named(
    muarl: Muarl, tmp_path: Path, text: str | None, words: list[str]
) -> None:
    file = tmp_path / "demonstrations.jsonl"
    if text is not None:
        file.write_text(text, encoding="latin-1")
    fails_clearly(muarl("sft", f"sft.demonstrations_file={file}"), "sft.demonstrations_file", str(file), *words)
    assert not (tmp_path / "runs").exists()


def test_a_demonstration_that_is_no_conversation_is_named(muarl: Muarl, tmp_path: Path) -> None:
    assert muarl("sft", "sft.steps=1", "--name", "good").exit_code == 0
    good = (tmp_path / "runs" / "good" / "episodes" / "demonstrations.jsonl").read_text().splitlines()
    row = json.loads(good[0])
    row["id"], row["turns"] = "broken one", row["turns"][:2]  # a greeting and a user, and nobody answers
    file = tmp_path / "demonstrations.jsonl"
    file.write_text(json.dumps(row) + "\n")
    fails_clearly(muarl("sft", f"sft.demonstrations_file={file}", "--name", "bad"), "broken one", "nothing to learn")
    assert not (tmp_path / "runs" / "bad").exists(), "told before there is a run"


@pytest.mark.parametrize("command", ["sft", "quickstart", "sft-user"])
@pytest.mark.parametrize(
    ("message", "system", "words"),
    [
        ({"tool_calls": [{"name": "look", "arguments": "{}"}]}, None, ["tool_calls[0].arguments", "must be an object"]),
        ({"content": ["a"]}, None, ["turns[0].message.content must be text", "join its parts"]),
        ({}, 7, ["system must be text, not a number"]),
    ],
)
def test_a_demonstration_with_a_field_of_another_kind_is_named(
    muarl: Muarl, tmp_path: Path, command: str, message: dict[str, Any], system: object, words: list[str]
) -> None:
    row = Episode("e", "t", "retail", [Turn(Message("assistant", "Hi"))], StopReason.USER_STOP).to_json()
    row["turns"][0]["message"] |= message
    row |= {} if system is None else {"system": system, "tools": []}
    file = tmp_path / "demonstrations.jsonl"
    file.write_text(json.dumps(row) + "\n")
    said = muarl(command, f"sft.demonstrations_file={file}")
    fails_clearly(said, "sft.demonstrations_file", f"{file.name}, line 1", *words)
    assert not (tmp_path / "runs").exists(), "told before there is a run"


def test_a_demonstration_that_no_update_can_hold_is_told_before_the_first_one(muarl: Muarl, tmp_path: Path) -> None:
    fails_clearly(muarl("sft", "learner.pack_tokens=100", "--name", "r"), "learner.pack_tokens is 100", "raise it")
    assert not (tmp_path / "runs" / "r" / "metrics.jsonl").exists()


def failed_run(tmp_path: Path, litter: Callable[[Path], list[Path]]) -> Path:
    run = tmp_path / "runs" / "full"
    told = json.loads((run / "status.json").read_text())
    assert told["state"] == "failed"
    assert "disk is full" in told["message"]
    assert not litter(run)
    return run


@pytest.mark.parametrize(("command", "folder"), [("sft", "checkpoints"), ("train", "checkpoints/rl")])
def test_a_disk_that_fills_up_at_a_checkpoint(
    muarl: Muarl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    litter: Callable[[Path], list[Path]],
    command: str,
    folder: str,
) -> None:
    saved = 0
    original = checkpoint_files.save_file

    def save(tensors: Any, path: Path, **options: Any) -> None:
        nonlocal saved
        saved += 1
        if saved == 4:  # the second checkpoint's trainer state
            raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
        original(tensors, path, **options)

    monkeypatch.setattr(checkpoint_files, "save_file", save)
    result = muarl(command, "sft.checkpoint_every=1", "rl.checkpoint_every=1", "--name", "full")
    fails_clearly(result, "disk is full", "Run folder:")
    run = failed_run(tmp_path, litter)
    assert [p.name for p in sorted((run / folder).glob("step-*"))] == ["step-000001"]
    monkeypatch.setattr(checkpoint_files, "save_file", original)
    again = muarl(command, "--resume", str(run))
    assert again.exit_code == 0, again.output
    assert checkpoint_folder(str(run)).name == "step-000003"


@pytest.mark.parametrize("victim", ["metrics.jsonl", "episodes", "summary.json"])
def test_a_disk_that_fills_up_anywhere_else(
    muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, litter: Callable[[Path], list[Path]], victim: str
) -> None:
    replace, write = os.replace, os.write

    def no_replace(source: Any, target: Any) -> None:
        if victim in str(target):
            raise FULL
        replace(source, target)

    def no_write(handle: int, data: bytes) -> int:
        if victim == "metrics.jsonl" and data.startswith(b'{"phase"'):
            raise FULL
        return write(handle, data)

    monkeypatch.setattr(os, "replace", no_replace)
    monkeypatch.setattr(files.os, "write", no_write)
    command = "eval" if victim == "summary.json" else "train"
    fails_clearly(muarl(command, "rl.steps=1", "--name", "full"), "disk is full", victim, "Run folder:")
    run = failed_run(tmp_path, litter)
    assert not (run / "metrics.jsonl").exists() or (run / "metrics.jsonl").read_bytes()[-1:] in (b"", b"\n")


def test_runs_that_may_not_be_written_are_told(muarl: Muarl, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    result = muarl("train", f"runs_dir={tmp_path / 'file'}")
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output
    assert str(tmp_path / "file") in result.stderr.replace("\n", "")


@pytest.mark.parametrize("recipe", [quickstart, rl])
def test_users_who_cannot_be_made_are_told_before_a_run_begins(recipe: Any, configure: Callable[..., Any]) -> None:
    with pytest.raises(CheckpointError, match="^user.checkpoint: /no/user"):
        recipe.run(configure("user.kind=sampled", "user.checkpoint=/no/user"))
    config = configure("eval_user.kind=sampled", "eval_user.checkpoint=/no/user", "rl.eval_every=2")
    with pytest.raises(CheckpointError, match="^eval_user.checkpoint: /no/user"):
        recipe.run(config)
    assert not config.runs_dir.exists()


def test_an_evaluation_names_the_setting_of_a_user_who_cannot_be_made(configure: Callable[..., Any]) -> None:
    config = configure("eval_user.kind=sampled", "eval_user.checkpoint=/no/user")
    with pytest.raises(CheckpointError, match="^eval_user.checkpoint: /no/user"):
        evaluate.run(config)
    assert not config.runs_dir.exists()
