"""What a dry run plans with: GPUs that Ray or CUDA name, or those that somebody assumes; and how long prompts are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.backends import hardware
from muarl.backends.cluster import PROCESS_BYTES, check_gpus, parts_of
from muarl.backends.hardware import Machines, kind_of, of_resources
from muarl.backends.plans import prompt_tokens
from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.config.sections import RunConfig
from muarl.planning.assumptions import Assumptions, assume

NODE = {"CPU": 64.0, "GPU": 8.0, "memory": 900.0 * 2**30, "accelerator_type:H100": 1.0}


def dry(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments, "--dry-run"])


def test_ray_s_machines_are_read() -> None:
    found = of_resources([{"CPU": 16.0, "memory": 2.0**30}, NODE, NODE])
    assert found == Machines("Ray", "H100", "h100", 16, 2, None, 900.0)
    assert of_resources([{"CPU": 4.0}]) is None
    unnamed = of_resources([{"GPU": 2.0}])
    assert unnamed is not None and unnamed.kind is None and "h200's speed" in str(unnamed)
    small = of_resources([{"GPU": 8.0, "accelerator_type:A100-40G": 1.0}])
    assert small is not None and (small.kind, small.gpu_gib) == ("a100", 39.0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA A100-SXM4-80GB", "a100"), ("NVIDIA L40S", "l40s"), ("T4", None)],
)
def test_gpus_are_known_by_their_names(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_what_was_seen_is_planned_with_unless_somebody_assumes_otherwise() -> None:
    seen = Machines("CUDA", "NVIDIA H100 80GB HBM3", "h100", 4, 1, 79.2, 500.0)
    a = seen.assumed(Assumptions())
    assert (a.gpu, a.device.memory, a.gpus_per_node, a.node_gib) == ("h100", int(79.2 * 2**30), 4, 500.0)
    b = seen.assumed(assume(["gpu=a100", "node_gib=100"]))
    assert (b.gpu, b.gpu_gib, b.node_gib, b.gpus_per_node) == ("a100", 0.0, 100.0, 4)


@pytest.mark.slow
def test_a_dry_run_and_a_plan_say_the_same_of_the_same_gpus() -> None:
    refused = dry("train", "--config", "mua-32b", "--assume", "gpu=h100")
    plan = CliRunner().invoke(app, ["plan", "mua-32b", "--assume", "gpu=h100", "--json"])
    assert refused.exit_code == 2 and plan.exit_code == 1
    nearest = " ".join(json.loads(plan.stdout)["nearest"])
    assert nearest == "learner.offload_reference=true" and f"The nearest that fits: {nearest}" in refused.stderr
    assert "machines: h100, as --assume says" in refused.stderr


@pytest.mark.slow
def test_a_dry_run_plans_with_the_gpus_that_it_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Machines("Ray", "H100", "h100", 32, 4, None, 900.0)
    monkeypatch.setattr("muarl.recipes.dry_run.look", lambda address: seen)
    result = dry("train", "--config", "mua-32b", "--cluster", "auto")
    assert result.exit_code == 2 and "32 x H100 on 4 machine(s), as Ray says" in result.stderr
    assert "The nearest that fits: learner.offload_reference=true" in result.stderr
    monkeypatch.setattr("muarl.recipes.dry_run.look", lambda address: None)
    assumed = dry("train", "--config", "mua-32b")
    assert assumed.exit_code == 0 and "so h200 is assumed (another kind: --assume gpu=h100)" in assumed.stderr


def test_a_cluster_that_is_not_up_yet_is_no_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_of_cuda", lambda: None)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert hardware.look("auto") is None


def test_assumptions_are_for_dry_runs() -> None:
    result = CliRunner().invoke(app, ["train", "--config", "cpu", "--assume", "gpu=h100"])
    assert result.exit_code == 2 and "add --dry-run" in result.stderr


@pytest.mark.slow
def test_plan_and_dry_run_take_the_same_prompt() -> None:
    few = "rl.tasks_per_step=4"  # which a dry run draws
    measured = prompt_tokens(load_config("mua-8b"))
    plan = json.loads(CliRunner().invoke(app, ["plan", "mua-8b", "--json"]).stdout)
    assert plan["assumptions"]["prompt_tokens"] == measured
    assert f"policy and tools take about {measured:,.0f} of" in dry("train", "--config", "mua-8b", few).stderr


def test_a_benchmark_that_is_not_installed_leaves_the_prompt_assumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    config = load_config("mua-8b", ["domain.name=tau1-retail", "train_on_benchmark=true"])
    assert prompt_tokens(config) is None
    found = json.loads(CliRunner().invoke(app, ["plan", "mua-8b", "domain.name=tau1-retail", "--json"]).stdout)
    assert found["assumptions"]["prompt_tokens"] == Assumptions().prompt_tokens


def test_a_cold_start_s_demonstrations_need_not_be_there_for_a_dry_run(tmp_path: Path) -> None:
    missing = tmp_path / "episodes.jsonl"
    result = dry("sft", "--config", "mua-8b", f"sft.demonstrations_file={missing}")
    assert result.exit_code == 0 and f"{missing} is NOT there yet" in result.stderr
    missing.write_text("{}\n")
    broken = dry("sft", "--config", "mua-8b", f"sft.demonstrations_file={missing}")
    assert broken.exit_code == 2 and str(missing) in broken.stderr


def check(config: RunConfig, machines: Machines | None, *, alone: bool = False) -> None:
    run = PlannedRun.of(config)
    check_gpus(run, run.sft if alone else run.rl, machines, lambda: prompt_tokens(config))


def test_a_cluster_whose_gpus_are_too_small_is_told_before_anything_is_loaded() -> None:
    config = load_config("mua-32b", ["cluster.address=auto", "learner.processes=4"])
    with pytest.raises(ConfigError, match=r"needs at least .* GiB of its GPU, and there are 32 x H100"):
        check(config, Machines("Ray", "H100", "h100", 32, 4))
    tight = load_config("mua-32b", ["cluster.address=auto", "learner.processes=7"])
    with pytest.raises(ConfigError, match="needs at least"):
        check(tight, Machines("Ray", "H100", "h100", 32, 4, 75.0))
    check(tight, Machines("Ray", "H100", "h100", 32, 4, 75.0), alone=True)  # a cold start has no reference model
    check(config, None)
    check(config, Machines("Ray", "T4", None, 32, 4))
    check(load_config("mua-32b", ["cluster.address=auto"]), Machines("Ray", "H200", "h200", 32, 4))


def test_memory_is_reserved_for_what_processes_with_gpus_certainly_take() -> None:
    run, offloading = (PlannedRun.of(load_config("mua-32b", o)) for o in ([], ["learner.offload_optimizer=true"]))
    learner, sampler, _ = parts_of(run, run.rl)
    assert learner.memory == sampler.memory == PROCESS_BYTES
    moved, _, _ = parts_of(offloading, offloading.rl)
    assert moved.memory > PROCESS_BYTES + 16 * 32e9 / 16


@pytest.mark.slow
def test_a_cluster_that_is_up_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setattr(hardware, "_of_cuda", lambda: None)
    node = {"num_cpus": 1, "num_gpus": 8, "resources": {"accelerator_type:H100": 1}, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=node)
    try:
        found = hardware.look(str(made.address))
        assert found is not None and (found.where, found.kind, found.gpus, found.nodes) == ("Ray", "h100", 8, 1)
        assert not ray.is_initialized(), "a dry run leaves the cluster again"
    finally:
        ray.shutdown()
        made.shutdown()
