"""Weights on their way to vLLM: files that are whole or not there, room that runs out, what the dead leave behind."""

import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.inference.vllm import weights as weights_module
from muarl.inference.vllm.weights import WeightFiles


def test_weights_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    files = WeightFiles(tmp_path, torch.bfloat16)
    monkeypatch.setattr(weights_module, "SHARD_BYTES", 20)
    shards = files.write([(f"w{n}", torch.full((4,), float(n))) for n in range(5)])
    assert len(shards) == 3
    loaded = {}
    for path in shards:
        loaded |= load_file(path)
    assert all((loaded[f"w{n}"] == n).all() and loaded[f"w{n}"].dtype is torch.bfloat16 for n in range(5))

    def half():
        yield "a", torch.ones(10)
        yield "b", torch.ones(10)
        raise RuntimeError("the learner broke")

    with pytest.raises(RuntimeError, match="the learner broke"):
        files.write(half())
    assert sorted(files.folder.iterdir()) == sorted(shards)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10})())
    with pytest.raises(InfrastructureError, match="has no room for .* engine.update_folder") as full:
        files.write([("a", torch.ones(10))])
    assert not full.value.retryable
    assert sorted(files.folder.iterdir()) == sorted(shards)
    files.close()
    assert not files.folder.exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="engine.update_folder"):
        WeightFiles(tmp_path / "file" / "x")


def test_what_killed_learners_left_is_swept_away(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    stale = tmp_path / f"muarl-weights-{ended.pid}-x"
    own, foreign = tmp_path / f"muarl-weights-{os.getpid()}-x", tmp_path / "muarl-weights-mine"
    for folder in (stale, own, foreign):
        folder.mkdir()
    WeightFiles(tmp_path).close()
    assert not stale.exists() and own.exists() and foreign.exists()
