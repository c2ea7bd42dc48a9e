"""The examples do what they say: they run, and their tasks are sound."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.audit import keep_rules
from muarl.chat import ToolCall
from muarl.cli import app
from muarl.observe.rundir import RunDirectory
from muarl.rewards.outcome import do_nothing, gold_world


@pytest.fixture(scope="module")
def shop(repository: Path) -> Any:
    spec = importlib.util.spec_from_file_location("bookshop_example", repository / "examples" / "bookshop" / "shop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # the domain looks for policy.md beside its module
    spec.loader.exec_module(module)
    return module


def test_the_reward_sees_what_was_done_and_the_audit_how(repository: Path, tmp_path: Path) -> None:
    script = repository / "examples" / "bookshop" / "play.py"
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    parts = {part.split("\n")[0]: part for part in run.stdout.split("--- ")[1:]}
    found = {
        name: ("reward 1," in part, "writes without consent: 0" not in part, "ended by user_stop" in part)
        for name, part in parts.items()
    }
    assert found == {
        "do-nothing": (False, False, True),
        "hasty": (True, True, True),
        "careful": (True, False, True),
    }


def test_tasks_are_sound(shop: Any) -> None:
    domain = shop.Bookshop()
    assert "Never guess" in domain.policy_text
    tasks = [t for split in shop.SPLITS for t in shop.draw(split, 20, 0, 0)]
    assert len({t.id for t in tasks}) == len(tasks)
    assert {t.tags["intent"] for t in tasks} == {"refund", "change_address"}
    for task in tasks:
        world = domain.world(task)
        for action in task.actions:
            assert not world.call("assistant", ToolCall("1", action.name, action.arguments)).error, task.id
        assert world.digest() == gold_world(domain, task).digest() != domain.world(task).digest()
        assert asyncio.run(do_nothing(domain, task)).reward == 0


def test_the_splits_share_no_order(shop: Any) -> None:
    orders = {s: {o for t in shop.draw(s, 50, 0, 0) for o in t.database.tables["orders"]} for s in shop.SPLITS}
    assert not orders["train"] & orders["test"]
    assert not orders["train"] & orders["validation"]
    assert not orders["validation"] & orders["test"]


def test_the_training_settings_are_valid(repository: Path) -> None:
    from muarl.config import load_config

    config = load_config(repository / "examples" / "bookshop" / "train.yaml")
    assert config.user.kind == config.eval_user.kind == "llm"
    assert config.user.endpoint.model != config.eval_user.endpoint.model


@pytest.mark.slow
def test_the_training_script_says_what_is_wrong_with_its_settings(repository: Path, tmp_path: Path) -> None:
    script = [sys.executable, str(repository / "examples" / "bookshop" / "train.py"), "rl.stepz=1"]
    run = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.startswith("Error: ") and "rl.steps" in run.stderr, run.stderr


@pytest.fixture(scope="module")
def play(repository: Path) -> Any:
    folder = repository / "examples" / "bookshop"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("bookshop_play", folder / "play.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("shop", None)


def test_a_run_of_the_bookshop_is_audited_by_the_bookshops_own_rules(play: Any, tmp_path: Path) -> None:
    domain, task = play.Bookshop(), play.make_task("test", 0)
    idle, hasty, careful = play.puppets(task)
    with RunDirectory(tmp_path, "shop") as run:
        run.write_tasks([task])
        run.write_episodes("eval", [asyncio.run(play.play(domain, task, agent)) for agent in (hasty, careful)])
        keep_rules(run.path, domain)
    found = CliRunner().invoke(app, ["audit", str(run.path), "--fail-on", "violation"], env={"COLUMNS": "200"})
    assert found.exit_code == 3, found.output
    for words in (
        "write-without-consent",
        "unsaid-order-number",
        "Rules: bookshop (audit-rules.yaml) (2).",
        "safety (other people's data)",
    ):
        assert words in found.output, words
    assert "missing-write" not in found.output
    run.write_episodes("idle", [asyncio.run(play.play(domain, task, idle))])
    nothing = CliRunner().invoke(app, ["audit", str(run.path), "--episodes", "idle"], env={"COLUMNS": "200"})
    assert "missing-write" in nothing.output, "the run's tasks.jsonl tells the gold actions"
    assert task.actions[0].name in nothing.output
    run.path.joinpath("audit-rules.yaml").unlink()
    bare = CliRunner().invoke(app, ["audit", str(run.path), "--fail-on", "catastrophic"], env={"COLUMNS": "200"})
    assert bare.exit_code == 2
    assert "Rules: none for bookshop (3)." in bare.output
    assert "not checked" in bare.output
