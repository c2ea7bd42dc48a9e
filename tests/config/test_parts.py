"""The parts of a configuration that go together, as what lies below recipes gets them."""

from __future__ import annotations

import pytest

from muarl.config.load import load_config
from muarl.config.parts import Compute, PlannedRun
from muarl.config.sections import RunConfig


def test_the_parts_are_the_configurations_own_sections() -> None:
    config = load_config("cpu", ["seed=4", "threads=3", "engine.processes=2", "rollout.concurrency=9"])
    compute = Compute.of(config)
    assert (compute.seed, compute.threads, compute.processes) == (4, 3, config.process_count)
    for name in ("model", "rollout", "engine", "learner", "cluster"):
        assert getattr(compute, name) is getattr(config, name)
    run = PlannedRun.of(config)
    for name in ("rl", "sft", "coldstart", "eval", "user", "eval_user"):
        assert getattr(run, name) is getattr(config, name)
    assert isinstance(run, Compute) and run.processes == compute.processes


def test_a_planned_run_is_read_back_from_its_values() -> None:
    run = PlannedRun.of(load_config("mua-8b", ["rl.steps=7", "eval.tasks=500"]))
    assert PlannedRun.of(RunConfig.model_validate(run.values())) == run
    assert run.eval.validation_tasks == 100, "the most that a validation has"


@pytest.mark.parametrize(
    ("settings", "here"),
    [
        ([], (True, True, True, False)),
        (["engine.kind=vllm"], (True, False, False, False)),
        (["learner.kind=fsdp", "learner.processes=2"], (False, True, False, False)),
        (["cluster.address=local", "engine.processes=1"], (False, False, False, True)),
        (["cluster.learner_gpus=1", "cluster.sampler_gpus=1"], (True, True, True, True)),
    ],
)
def test_where_a_run_learns_and_samples(settings: list[str], here: tuple[bool, ...]) -> None:
    found = Compute.of(load_config("quickstart", settings))
    assert (found.learns_here, found.samples_here, found.in_one_process, found.clustered) == here
