"""Whole plans: what they say of presets and of other configurations, and what would fit where something does not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.backends.model_support import check_present, model_shape
from muarl.basics.errors import CheckpointError, ConfigError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.parts import PlannedRun
from muarl.config.sections import RunConfig
from muarl.planning.assumptions import GPUS, Assumptions, assume
from muarl.planning.memory import cache_per_token
from muarl.planning.models import PUBLISHED
from muarl.planning.nearest import nearest
from muarl.planning.plan import make_plan

BIG = ("model.checkpoint=Qwen/Qwen3-8B", "model.dtype=bfloat16", "model.device=cuda", "model.max_context=8192",
       "learner.pack_tokens=8192", "rollout.concurrency=32")  # fmt: skip


def muarl(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def run_of(preset: str, overrides: Sequence[str] = ()) -> PlannedRun:
    return PlannedRun.of(load_config(preset, overrides))


def planned_json(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(muarl("plan", *arguments, "--json").stdout)
    return found


def test_the_quickstart_is_planned_for_this_machine() -> None:
    found = planned_json("quickstart")
    assert found["fits"]
    assert found["pace"] is None
    assert found["model"]["parameters"] == 704_704
    (place,) = found["places"]
    assert place["total"] == sum(place["parts"].values()) <= place["budget"]
    assert 380 << 20 < place["parts"]["process"] < 400 << 20, "Python, torch and a small tokenizer"
    (on_gpus,) = make_plan(run_of("quickstart"), PUBLISHED["Qwen/Qwen3-0.6B"], Assumptions()).places
    assert "process" not in on_gpus.parts, "which takes no memory of a GPU"


def test_a_user_model_in_the_same_process_is_planned_for() -> None:
    users = ("user.kind=sampled", "user.checkpoint=base", "user.max_context=512", "engine.dtype=bfloat16")
    rules, one, two = (
        planned_json("quickstart", "rollout.concurrency=300", *more)["places"][0]
        for more in (users[3:], (*users, "engine.processes=1"), (*users, "engine.processes=2"))
    )
    parts, shape = one["parts"], model_shape("base")
    assert parts["user model's cache"] == 256 * 512 * cache_per_token(shape, 2), "no more than 256 conversations"
    assert 6 * shape.parameters < parts["user model's weights"] < 6.2 * shape.parameters, "as loaded, and the engine's"
    few = planned_json("quickstart", "rollout.concurrency=3", *users, "engine.processes=1")["places"][0]["parts"]
    assert few["user model's cache"] == 3 * 512 * cache_per_token(shape, 2), "as many as are played at once"
    assert two["parts"]["user model's cache"] == 2 * parts["user model's cache"], "each process has one"
    assert not any("user" in name for name in rules["parts"])
    run = run_of("quickstart", ["rollout.concurrency=3", *users])
    (on_gpu,) = make_plan(run, shape, Assumptions(), user=shape).places
    assert on_gpu.parts["user model's cache"] == 4 * 512 * cache_per_token(shape, 2), "recorded steps need a spare one"


def test_a_model_that_thinks_takes_longer() -> None:
    shape = PUBLISHED["Qwen/Qwen3-8B"]
    quick, thinking, brief = (
        make_plan(run_of("mua-8b", more), shape, Assumptions())
        for more in ([], ["model.thinking=true"], ["model.thinking=true", "rollout.tokens_per_turn=100"])
    )
    assert quick.step["sampled_tokens"] < brief.step["sampled_tokens"] < thinking.step["sampled_tokens"]
    assert (quick.assumptions.thought_tokens, brief.assumptions.thought_tokens) == (0.0, 100.0)
    given = make_plan(run_of("mua-8b", ["model.thinking=true"]), shape, assume(["thought_tokens=50"]))
    assert given.assumptions.thought_tokens == 50.0


def test_a_plan_for_people_names_every_part_and_every_assumption() -> None:
    output = muarl("plan", "quickstart", *BIG, "--assume", "gpu=h100").output
    for word in (
        "gradients",
        "optimiser",
        "activations",
        "cache",
        "seconds a step",
        "GPU hours",
        "dollars",
        "gpu=h100",
    ):
        assert word in output
    assert "train_mfu=0.35" in output


def test_a_published_model_needs_neither_weights_nor_torch() -> None:
    script = (
        "import sys; from muarl.config.load import load_config; from muarl.planning.assumptions import Assumptions\n"
        "from muarl.backends.plans import plan_of; from muarl.config.parts import PlannedRun\n"
        f"plan_of(PlannedRun.of(load_config('quickstart', {list(BIG)})), Assumptions(), lambda: None)\n"
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "False"


def test_dollars_follow_the_prices_and_seconds_the_machine() -> None:
    config, shape = run_of("quickstart", BIG), PUBLISHED["Qwen/Qwen3-8B"]
    usual = make_plan(config, shape, Assumptions())
    dear = make_plan(config, shape, replace(Assumptions(), gpu_hour=6.0))
    assert usual.cost is not None and dear.cost is not None
    assert dear.cost.gpu_dollars == pytest.approx(2 * usual.cost.gpu_dollars)
    assert usual.cost.gpu_hours == pytest.approx(usual.cost.hours * usual.gpus)
    assert usual.cost.user_dollars == 0.0, "agenda users cost nothing"
    slow = make_plan(config, shape, replace(Assumptions(), gpu="a100"))
    assert usual.pace is not None and slow.pace is not None
    ratio = GPUS["h200"].flops / GPUS["a100"].flops
    assert slow.pace.update == pytest.approx(usual.pace.update * ratio)
    assert slow.pace.rollout > usual.pace.rollout


def test_users_that_are_models_are_paid_by_the_token() -> None:
    config = run_of("quickstart", [*BIG, "user={kind: llm, endpoint: {model: m}}"])
    cost = make_plan(config, PUBLISHED["Qwen/Qwen3-8B"], replace(Assumptions(), user_replies=1.0)).cost
    assert cost is not None
    a = Assumptions()
    read = a.user_prompt_tokens + (a.agent_tokens + a.user_tokens) / 2
    assert cost.user_dollars_per_episode == pytest.approx((2.5 * read + 10.0 * a.user_tokens) / 1e6)
    episodes = config.rl.steps * config.rl.tasks_per_step * config.rl.group_size
    assert cost.user_dollars == pytest.approx(cost.user_dollars_per_episode * episodes)


def test_rollouts_that_run_ahead_hide_the_update() -> None:
    shape = PUBLISHED["Qwen/Qwen3-8B"]
    paces = []
    for mode in ("synchronous", "one_step_off", "bounded"):
        config = run_of("quickstart", [*BIG, f"rl.asynchrony={mode}", "rl.practice.repeat=0"])
        pace = make_plan(config, shape, Assumptions()).pace
        assert pace is not None
        paces.append(pace)
    turns, off, free = paces
    assert turns.step == pytest.approx(turns.rollout + turns.update + turns.transfer)
    assert off.step == pytest.approx(max(off.rollout, off.update) + off.transfer)
    assert free.step <= off.step < turns.step


def test_what_does_not_fit_is_said_with_what_would() -> None:
    result = muarl("plan", "quickstart", *BIG, "rollout.concurrency=512", "learner.pack_tokens=65536")
    assert result.exit_code == 1
    words = " ".join(result.output.split())
    assert "Does not fit" in words
    overrides = words.partition("The nearest that fits: ")[2].partition(" Assumed")[0].split()
    assert overrides
    again = muarl("plan", "quickstart", *BIG, "rollout.concurrency=512", "learner.pack_tokens=65536", *overrides)
    assert again.exit_code == 0, again.output


def test_the_nearest_gives_up_speed_before_what_is_learned() -> None:
    config = run_of("quickstart-adamw", ["learner.pack_tokens=4096"])
    free = nearest(config, lambda c: True)
    packed = nearest(config, lambda c: c.learner.pack_tokens < 1000)
    assert free == []
    assert packed == ["learner.pack_tokens=768"]
    assert nearest(config, lambda c: c.rl.kl_coef == 0) == ["rl.kl_coef=0.0"]
    assert nearest(config, lambda c: False) is None


def test_every_candidate_is_a_valid_configuration() -> None:
    seen: list[PlannedRun] = []
    nearest(run_of("quickstart", BIG), lambda c: bool(seen.append(c)))
    assert len(seen) > 50
    assert all(PlannedRun.of(RunConfig.model_validate(c.values())) == c for c in seen[:20])


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("gpu=h1000", "h200"),
        ("gpuhour=2", "did you mean 'gpu_hour'"),
        ("gpu_hour", "KEY=VALUE"),
        ("gpu_hour=cheap", "not a number"),
        ("gpu_hour=-1", "at least 0"),
        ("train_mfu=0", "above 0"),
        ("train_mfu=1.5", "share"),
        ("transfer=nan", "above 0"),
        ("turns=inf", "above 0"),
    ],
)
def test_a_wrong_assumption_is_told(pair: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        assume([pair])


def test_an_assumption_may_be_replaced() -> None:
    found = assume(["gpu=a100", "gpu_hour=1.5", "gpus_per_node=4"])
    assert (found.gpu, found.gpu_hour, found.gpus_per_node) == ("a100", 1.5, 4)
    assert found.turns == Assumptions().turns


def test_a_model_that_nobody_knows_is_told() -> None:
    result = muarl("plan", "quickstart", "model.checkpoint=nowhere/else")
    assert result.exit_code == 2
    assert "nowhere/else" in result.stderr


def test_a_folder_s_own_sizes_count_before_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "Qwen3-8B"
    folder.mkdir()
    small = replace(PUBLISHED["Qwen/Qwen3-0.6B"], layers=2)
    (folder / "config.json").write_text(json.dumps(small.to_config()))
    config = load_config("quickstart", [f"model.checkpoint={folder}"])
    assert model_shape(config.model.checkpoint).parameters == small.parameters
    check_present(config.model.checkpoint)


def test_a_published_model_that_is_not_here_is_told_with_the_way_to_get_it() -> None:
    with pytest.raises(CheckpointError, match="hf download Qwen/Qwen3-8B"):
        check_present(load_config("quickstart", BIG).model.checkpoint)


def test_only_tools_that_a_model_can_play_cost_a_model() -> None:
    """The share is handed in: those of servers and of made worlds without a description cost nothing."""
    from muarl.backends.plans import imagined_share

    assert imagined_share(load_config("teacher").coldstart.scenarios) == pytest.approx(5 / 9)
    assert imagined_share(["mcp-git", "retail-generated"]) == 0.0
    config, shape = run_of("mua-8b"), PUBLISHED["Qwen/Qwen3-8B"]
    whole, none = (make_plan(config, shape, Assumptions(), imagined=share).teacher for share in (1.0, 0.0))
    assert whole is not None and none is not None
    assert whole.tools > none.tools == 0.0
    assert whole.teacher == none.teacher
