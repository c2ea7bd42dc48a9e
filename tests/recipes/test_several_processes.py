"""Whole runs whose episodes are played in two processes: as in one, interrupted, ahead of the learner, evaluated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.learning.learner import TorchLearner
from muarl.observe.rundir import RunDirectory
from muarl.recipes import evaluate, quickstart, rl
from muarl.workers.processes.pool import ProcessPool
from support.killing import at_call, ctrl_c

Configure = Callable[..., Any]

pytestmark = pytest.mark.slow

LEARNS = ["model.checkpoint=base", "rl.shaping.tool_names=1", "rl.shaping.milestones=1"]
"""Rewards differ within groups, so that weights move."""


@pytest.fixture(autouse=True)
def pools(monkeypatch: pytest.MonkeyPatch) -> list[ProcessPool]:
    """The pools that a test's runs make."""
    made: list[ProcessPool] = []
    original = ProcessPool.__init__

    def init(self: ProcessPool, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(ProcessPool, "__init__", init)
    return made


def episodes(run: Path, name: str) -> list[dict[str, Any]]:
    """What a run keeps of a phase's episodes, without times and log-probabilities, which batches round differently."""
    out = []
    for line in (run / "episodes" / f"{name}.jsonl").read_text().splitlines():
        row = json.loads(line) | {"timings": None}
        row["turns"] = [{k: v for k, v in turn.items() if k != "seconds"} for turn in row["turns"]]
        row["tokens"] = {k: v for k, v in row["tokens"].items() if k != "logprobs"}
        out.append(row)
    return out


def phases(run: Path) -> list[tuple[str, int]]:
    return [(row["phase"], row["step"]) for row in RunDirectory.at(run).read_metrics()]


def ended(pools: list[ProcessPool]) -> bool:
    return all(child.process.ended is not None for pool in pools for child in pool._children if child is not None)


def test_a_quickstart_is_the_same_in_one_process_and_in_two(configure: Configure, pools: list[ProcessPool]) -> None:
    more = ["rl.steps=2", "rl.eval_every=1", "eval.tasks=5", "rl.save_episodes=all", "eval.harder_users=[hard]"]
    one = quickstart.run(configure(*more, name="one"))
    assert not pools
    two = quickstart.run(configure(*more, "engine.processes=2", name="two"))
    assert len(pools) == 1 and all(child is not None for child in pools[0]._children)
    assert ended(pools)
    # After an update the last bits of weights differ, too; before, nothing may.
    for name in ("demonstrations", "eval-before", "train-0000"):
        strip = episodes if name != "demonstrations" else lambda run, name: (run / f"episodes/{name}.jsonl").exists()
        assert strip(two, name) == strip(one, name)
    assert phases(two) == phases(one)
    for name in ("train-0001", "eval-after", "eval-hard"):
        ids = [[(e["id"], e["seed"], e["agent"], e["user"]) for e in episodes(run, name)] for run in (one, two)]
        assert ids[0] == ids[1]
    rows = [row for row in RunDirectory.at(two).read_metrics() if row["phase"] == "rl"]
    assert all(row["time/rollout"] > 0 and row["time/update"] > 0 for row in rows)


def test_a_run_is_resumed_with_its_processes(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: list[ProcessPool]
) -> None:
    more = [*LEARNS, "rl.steps=3", "engine.processes=2", "rl.checkpoint_every=1", "rl.save_episodes=all"]
    whole = rl.run(configure(*more, name="whole"))
    mend = at_call(monkeypatch, TorchLearner, "policy_step", 3, ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        rl.run(configure(*more, name="cut"))
    assert ended(pools)
    mend()
    cut = tmp_path / "runs" / "cut"
    config = configure(*more, name="cut")
    assert rl.run(config.model_copy(update={"resume": cut})) == cut
    assert phases(cut) == phases(whole)
    assert any(row["samples"] > 0 for row in RunDirectory.at(whole).read_metrics())
    for number in range(3):
        assert episodes(cut, f"train-{number:04d}") == episodes(whole, f"train-{number:04d}")


def test_rollouts_ahead_of_the_learner(configure: Configure, pools: list[ProcessPool]) -> None:
    ahead = ["rl.asynchrony=bounded", "rl.staleness=1", "rl.save_episodes=all"]
    run = rl.run(configure(*LEARNS, *ahead, "rl.steps=3", "engine.processes=2"))
    assert phases(run) == [("rl", step) for step in range(3)]
    rows = RunDirectory.at(run).read_metrics()
    assert all(row["staleness_max"] <= 1 for row in rows)
    assert any(row["samples"] > 0 for row in rows)
    last = [v for e in episodes(run, "train-0002") for v in e["tokens"]["versions"]]
    assert max(last) >= 1
    assert len(pools) == 1 and ended(pools)


def test_a_budget_lets_episodes_begin_as_there_is_room(configure: Configure, pools: list[ProcessPool]) -> None:
    run = rl.run(configure("rl.steps=1", "engine.processes=2", "budget.max_tokens=1000000"))
    assert phases(run) == [("rl", 0)]
    assert len(pools) == 1 and ended(pools)


def test_an_evaluation_in_two_processes(configure: Configure, pools: list[ProcessPool]) -> None:
    more = ["eval.tasks=6", "eval.trials=2", "eval.harder_users=[hard]"]
    one = evaluate.run(configure(*more, name="one"))
    two = evaluate.run(configure(*more, "engine.processes=2", name="two"))
    for name in ("eval", "eval-hard"):
        assert episodes(two, name) == episodes(one, name)
    assert "withholding 0.9" in episodes(two, "eval-hard")[0]["user"]
    assert len(pools) == 1 and all(child is not None for child in pools[0]._children)
    pools[0].close()
    assert ended(pools)
