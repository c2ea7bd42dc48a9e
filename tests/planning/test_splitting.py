"""GPUs that somebody has, divided between learner and samplers; what a plan says of hosts, prefixes and validation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.learning.packing import Batch, Sample, pack
from muarl.planning.assumptions import Assumptions, assume
from muarl.planning.models import PUBLISHED
from muarl.planning.nearest import nearest
from muarl.planning.plan import ResourcePlan, make_plan
from muarl.planning.speed import shared_prefix, update_flops

H100 = assume(["gpu=h100"])


def plan_of(preset: str, *overrides: str, a: Assumptions = H100) -> ResourcePlan:
    config = load_config(preset, overrides)
    return make_plan(PlannedRun.of(config), PUBLISHED[config.model.checkpoint], a)


def command(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["plan", *arguments])


@pytest.mark.parametrize(
    ("preset", "gpus"), [("mua-8b", 8), ("mua-8b", 4), ("mua-14b", 8), ("mua-32b", 32), ("mua-30b-a3b", 8)]
)
def test_a_number_of_gpus_is_divided_so_that_the_run_fits(preset: str, gpus: int) -> None:
    result = command(preset, "--gpus", str(gpus), "--assume", "gpu=h100", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["fits"] and 0.75 * gpus <= found["gpus"] <= gpus
    again = command(preset, "--assume", "gpu=h100", "--json", *found["nearest"])
    assert json.loads(again.stdout)["gpus"] == found["gpus"] and again.exit_code == 0, "the settings that it names do"


def test_what_changes_least_is_taken_before_what_changes_learning() -> None:
    changes = json.loads(command("mua-32b", "--gpus", "32", "--assume", "gpu=h100", "--json").stdout)["nearest"]
    assert not any(c.startswith(("model.", "learner.lora", "rl.kl")) for c in changes)
    enough = json.loads(command("mua-8b", "--gpus", "8", "--assume", "gpu=h200", "--json").stdout)["nearest"]
    assert not any("offload" in c for c in enough)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mua-32b", "--gpus", "2", "--assume", "gpu=l40s"], "does not fit on 2 x l40s"),
        (["mua-8b", "--gpus", "1"], "too few"),
        (["quickstart", "--gpus", "8"], "has no such parts"),
        (["one-gpu", "--gpus", "1", "--assume", "gpu=l40s"], "does not fit on 1 x l40s"),
    ],
)
def test_gpus_that_cannot_do_are_told(arguments: list[str], words: str) -> None:
    result = command(*arguments)
    assert result.exit_code == 2 and words in result.stderr


def test_offloading_is_offered_before_more_gpus_and_costs_time() -> None:
    config, shape = PlannedRun.of(load_config("mua-32b")), PUBLISHED["Qwen/Qwen3-32B"]
    plan = make_plan(config, shape, H100)
    assert not plan.fits
    assert nearest(config, lambda c: make_plan(c, shape, H100).fits) == ["learner.offload_reference=true"]
    here, there = (
        plan_of("mua-32b", a=Assumptions()),
        plan_of("mua-32b", "learner.offload_optimizer=true", a=Assumptions()),
    )
    assert here.pace is not None and there.pace is not None and there.pace.update > here.pace.update + 1
    slow = assume(["host_transfer=1e9"])
    slower = plan_of("mua-32b", "learner.offload_optimizer=true", a=slow)
    assert slower.pace is not None and slower.pace.update > 1.5 * there.pace.update


def test_what_is_moved_to_the_host_must_fit_there() -> None:
    small = replace(H100, node_gib=100.0)
    assert any(
        "a node's own memory: needs" in p
        for p in plan_of("mua-32b", "learner.offload_optimizer=true", a=small).problems
    )
    assert plan_of("mua-32b", "learner.offload_optimizer=true").fits
    # Then more GPUs are the way out, and the search finds it.
    config, shape = PlannedRun.of(load_config("mua-32b")), PUBLISHED["Qwen/Qwen3-32B"]
    tight = replace(H100, node_gib=220.0)
    found = nearest(config, lambda c: make_plan(c, shape, tight).fits)
    assert found is not None and not any("offload_optimizer" in change for change in found)


def test_an_update_computes_what_episodes_begin_alike_with_once_a_micro_batch() -> None:
    prompt, rest, documents, budget = 1000, 900, 40, 6000
    samples = [
        Sample([*range(prompt), *(1000 * (n + 1) + i for i in range(rest))], [0.0] * prompt + [1.0] * rest,
               [0.0] * (prompt + rest), 1.0)
        for n in range(documents)
    ]  # fmt: skip
    rows = pack(Batch.of(samples), token_budget=budget, share=True)
    reckoned = shared_prefix(prompt, rest, documents, budget, 1)
    assert reckoned.times == len(rows) == 8
    shape = PUBLISHED["Qwen/Qwen3-0.6B"]
    whole = update_flops(shape, [prompt + rest] * documents, documents * 10)
    once = update_flops(shape, [rest] * documents, documents * 10, prefix=reckoned)
    alone = update_flops(shape, [rest] * documents, documents * 10, prefix=replace(reckoned, times=documents))
    assert once < 0.8 * whole and alone == pytest.approx(whole, rel=1e-6)


def test_validation_is_counted_in_conversations_hours_and_dollars() -> None:
    plan, without = plan_of("mua-8b"), plan_of("mua-8b", "rl.eval_every=0")
    assert plan.cost is not None and without.cost is not None
    assert (plan.cost.validations, without.cost.validations) == (24 * 100, 0)
    read, written = plan.assumptions.user_usage
    assert plan.cost.validation_dollars == pytest.approx(2400 * (2.0 * read + 8.0 * written) / 1e6), (
        "its own user's prices"
    )
    assert plan.cost.hours > without.cost.hours and plan.cost.dollars > without.cost.dollars
    assert plan.cost.user_dollars == without.cost.user_dollars


def test_a_teacher_s_conversations_are_priced_where_a_run_begins_with_some() -> None:
    plan = plan_of("mua-8b")
    assert plan.teacher is not None and plan.teacher.count == 2000 < plan.teacher.played
    free = plan_of("mua-8b", a=assume(["teacher_prompt_price=0", "teacher_completion_price=0"]))
    assert free.teacher is not None and free.teacher.dollars == pytest.approx(free.teacher.users)
    assert "cold start" in " ".join(command("mua-8b").output.split())
    small = load_config("quickstart", ["model.device=cuda", "model.checkpoint=Qwen/Qwen3-0.6B"])
    assert make_plan(PlannedRun.of(small), PUBLISHED["Qwen/Qwen3-0.6B"], Assumptions()).teacher is None


def test_what_somebody_assumes_counts_more_than_what_is_known() -> None:
    assert Assumptions().unless_replaced(prompt_tokens=7.0, gpu=None).prompt_tokens == 7.0
    given = assume(["prompt_tokens=9"])
    assert given.unless_replaced(prompt_tokens=7.0).prompt_tokens == 9.0
    dear = plan_of("mua-8b", a=assume(["user_prompt_price=10"]))
    usual = plan_of("mua-8b")
    assert dear.cost is not None and usual.cost is not None
    assert dear.cost.user_dollars > 2 * usual.cost.user_dollars
    with pytest.raises(ConfigError, match="share"):
        assume(["kept=1.5"])


def test_one_gpu_holds_learner_sampler_and_what_others_hold() -> None:
    alone = json.loads(command("one-gpu", "--gpus", "1", "--assume", "gpu=h100", "--json").stdout)
    beside = command("one-gpu", "--gpus", "1", "--assume", "gpu=h100", "--assume", "reserved_gib=24", "--json")
    found = json.loads(beside.stdout)
    assert beside.exit_code == 0 and found["fits"] and found["gpus"] == 1 and found["nearest"] == []
    (before,), (place,) = alone["places"], found["places"]
    assert place["parts"] == before["parts"] and place["budget"] == before["budget"] - 24 * 2**30
    assert found["cost"]["user_dollars"] == found["cost"]["validation_dollars"] == 0.0, "its user is its own"
    assert any("reserved_gib" in note for note in found["notes"])
    own = ("engine.kind=torch", "engine.servers=0", "rollout.concurrency=6")
    inside = command("one-gpu", *own, "--gpus", "1", "--assume", "gpu=h100", "--assume", "reserved_gib=24", "--json")
    assert inside.exit_code == 0 and json.loads(inside.stdout)["places"][0]["parts"]["sampler's cache"] < 17 * 2**30
    full = command("one-gpu", "--assume", "gpu=h100", "--assume", "reserved_gib=40")
    assert full.exit_code == 1 and "Does not fit" in full.output


@pytest.mark.parametrize("preset", ["mua-8b", "mua-14b", "mua-32b", "mua-30b-a3b"])
def test_the_table_on_the_page_is_what_the_planner_says(repository: Path, preset: str) -> None:
    found = json.loads(command(preset, "--json").stdout)
    pace, cost, gib = found["pace"], found["cost"], 2**30
    learner, sampler = (place["parts"] for place in found["places"])
    cells = [
        f"`{preset}`",
        f"{found['gpus']}",
        f"{sum(learner.values()) / gib:.0f} GiB on each of {found['places'][0]['count']}",
        f"{sampler['weights'] / gib:.0f} + {sampler['cache'] / gib:.0f} GiB on each of {found['places'][1]['count']}",
        f"{found['step']['checkpoint'] / gib:.0f} GiB",
        f"{pace['step']:.0f} ({pace['rollout']:.0f} + {pace['update']:.0f} + {pace['transfer']:.0f})",
        f"{cost['hours']:.1f} h, {cost['gpu_hours']:.0f} GPU hours",
        f"{cost['gpu_dollars']:.0f} + {cost['user_dollars']:.0f} + {cost['validation_dollars']:.0f}",
    ]
    assert f"| {' | '.join(cells)} |" in (repository / "docs/scaling.md").read_text()


def test_every_assumption_stands_on_the_page(repository: Path) -> None:
    page = (repository / "docs/scaling.md").read_text()
    section = page[page.index("## Seconds and dollars") : page.index("## Launching")]
    unnamed = {"gpus_per_node", "memory_share", "frame_tokens", "tool_seconds", "user_prompt_tokens"}
    missing = {name for name in Assumptions().to_json() if f"`{name}`" not in section} - unnamed
    assert not missing
