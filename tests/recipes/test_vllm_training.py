"""Whole runs whose samplers are vLLM: learners of several processes, adapters that travel alone, a Ray cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.config.load import load_config
from muarl.learning.checkpoints import load_policy
from muarl.recipes import rl

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

SMALL = (
    "engine.kind=vllm", "engine.max_sequences=8", "engine.cache_gib=0.25", "rl.tasks_per_step=2", "rl.group_size=4",
    "rl.min_group=2", "rl.drop_zero_variance=false", "rl.eval_every=0", "rl.warmup=0", "model.max_context=512",
    "threads=1", f"model.checkpoint={checkpoint_folder('base')}",
)  # fmt: skip
LORA = ("learner.lora={rank: 4, alpha: 8}", "rl.lr=0.01")
FSDP = ("learner.kind=fsdp", "learner.processes=2", "learner.deadline=300")


@pytest.fixture(autouse=True)
def installed() -> None:
    pytest.importorskip("vllm")


def steps_of(folder: Path) -> list[Mapping[str, Any]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line.get("phase") == "rl"]


def check(folder: Path, count: int) -> None:
    """Every step learned from what was sampled with the weights of that moment, and every step moved them."""
    steps = steps_of(folder)
    assert [step["step"] for step in steps] == list(range(count))
    for step in steps:
        assert step["update/logprob_gap_mean"] < 1e-5, step
        assert step["update/logprob_gap_max"] < 1e-3, step
        assert step["samples"] == 8 and step["update/nonfinite"] == 0, step
    start = dict(load_policy(checkpoint_folder("base")).model.named_parameters())
    end = dict(load_policy(checkpoint_folder(str(folder))).model.named_parameters())
    assert max(float((end[n] - start[n]).detach().abs().max()) for n in start) > 1e-3


def run(tmp_path: Path, *words: str) -> Path:
    return rl.run(load_config("quickstart", [*SMALL, "name=v", f"runs_dir={tmp_path}", *words]))


def test_two_learner_processes_train_what_vllm_samples(tmp_path: Path) -> None:
    check(run(tmp_path, *FSDP, "rl.steps=2"), 2)


def test_adapters_travel_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a server: whole weights once, at the beginning."""
    from muarl.inference.vllm.servers import VllmServers
    from muarl.inference.vllm.weights import WeightFiles

    written: list[str] = []
    write, give = WeightFiles.write, VllmServers.update_adapter

    def whole(self: WeightFiles, weights: Any) -> list[Path]:
        written.append("whole")
        return write(self, weights)

    async def adapter(self: VllmServers, folder: Path, version: int) -> None:
        written.append(f"adapter {version}")
        sent = sum(path.stat().st_size for path in folder.iterdir())
        assert sent < 0.2 * (checkpoint_folder("base") / "model.safetensors").stat().st_size
        await give(self, folder, version)

    monkeypatch.setattr(WeightFiles, "write", whole)
    monkeypatch.setattr(VllmServers, "update_adapter", adapter)
    check(run(tmp_path, *LORA, "engine.servers=1", "rl.steps=3"), 3)
    assert written == ["whole", "adapter 1", "adapter 2", "adapter 3"]


def test_samplers_of_a_cluster_are_vllm(tmp_path: Path) -> None:
    """And what the learner sends them is its adapter."""
    pytest.importorskip("ray")
    words = (
        "cluster.address=local", "cluster.samplers=2", "cluster.rollout_workers=1", "cluster.sampler_cpus=0.4",
        "cluster.worker_cpus=0.4", "cluster.learner_cpus=0.4", "cluster.start_timeout=200",
    )  # fmt: skip
    check(run(tmp_path, *words, *LORA, "rl.steps=2"), 2)
