"""Training with rollouts ahead of the learner, on the small model; and that taking turns is what it always was."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from muarl.backends.engines import Backend
from muarl.backends.local import learner_settings
from muarl.backends.models import load_model
from muarl.backends.users import make_users
from muarl.config.load import load_config
from muarl.config.parts import Compute
from muarl.config.rl import RlConfig
from muarl.environments.configure import places_of
from muarl.environments.play import play_in
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoint_folders import checkpoint_path
from muarl.learning.checkpoints import load_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.loss_options import PolicyLossConfig
from muarl.observe.rundir import RunDirectory
from muarl.recipes import rl
from muarl.recipes.training import loss_settings as updates
from muarl.rollouts.episode_runner import EpisodeRunner
from muarl.rollouts.rollout import collect_groups
from muarl.runs.context import prepare
from muarl.types.episode import read_episodes
from support.killing import at_call, sending

pytestmark = pytest.mark.usefixtures("coin")

Configure = Callable[..., Any]

STEPS, TASKS = 4, 2
"""Of most runs here."""


def rows(run: Path, phase: str = "rl") -> list[dict[str, Any]]:
    return [r for r in RunDirectory.at(run).read_metrics() if r["phase"] == phase]


def groups(run: Path) -> list[str]:
    """The names of the groups that the steps learned from, as the run's episodes tell it: task number, slash, id."""
    kept = sorted((run / "episodes").glob("train-*.jsonl"))
    return [str(g) for path in kept for g in dict.fromkeys(e.group for e in read_episodes(path))]


def numbers(run: Path) -> list[int]:
    return sorted(int(name.split("/")[0]) for name in groups(run))


def weights(folder: Path) -> list[torch.Tensor]:
    model = load_policy(folder, dtype=torch.float32, device=torch.device("cpu")).model
    return [p.detach() for p in model.parameters()]


@pytest.mark.slow
def test_taking_turns_is_a_plain_loop(configure: Configure) -> None:
    """Draw, play, compare, update, hand over the weights: nothing else moves the weights or the random streams."""
    config = configure("rl.steps=2", "rl.minibatches=2", "rl.dynamic_sampling=true", name="turns")
    run = rl.run(config)
    assert not any("staleness" in name for row in rows(run) for name in row)

    prepare(config)
    places, policy = places_of(config), load_model(config.model)
    learner = TorchLearner(
        policy.model,
        policy.tokenizer,
        learner_settings(Compute.of(config), updates.learner_config(config.rl, config.model)),
    )
    engine = TorchEngine(policy.model, max_slots=config.rollout.concurrency, max_context=config.model.max_context)
    agent = Backend.of(config).agent(policy, temperature=config.rl.temperature, engine=engine)
    users = make_users(config.user, places)
    seen = []
    for step in range(2):
        mixed = []
        for draw in range(4):
            tasks = places.draw("train", 2, config.rl.seed + 500_000, (4 * step + draw) * 2)
            played = asyncio.run(play_in(places, agent, users, tasks, 4, seed=0, label=f"{step}.{draw}"))
            mixed += [g for g in collect_groups(played.episodes, 4).kept if len(set(g.rewards)) > 1]
            if len(mixed) >= 2:
                break
        chosen = collect_groups([e for g in mixed[:2] for e in g.episodes], 4)
        seen.append(learner.policy_step(updates.samples_of(chosen, config.rl))["loss"])
        engine.weights_changed()
    assert [r["update/loss"] for r in rows(run)] == seen
    final = weights(checkpoint_path(run / "checkpoints" / "rl", 2))
    assert all(torch.equal(a, b) for a, b in zip(final, policy.model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("mode", "bound"), [(["rl.asynchrony=one_step_off"], 1), (["rl.asynchrony=bounded", "rl.staleness=2"], 2)]
)
def test_a_run_ahead_of_the_learner(configure: Configure, mode: list[str], bound: int) -> None:
    options = [
        f"rl.steps={STEPS}",
        "rl.checkpoint_every=1",
        "checkpoints.keep_last=null",
        "rl.minibatches=2",
        "rl.correction=token",
        "rl.eval_every=2",
    ]
    run = rl.run(configure(*options, *mode))
    seen = rows(run)
    assert [r["step"] for r in seen] == list(range(STEPS))
    assert all(0 <= r["staleness_mean"] <= r["staleness_max"] <= bound for r in seen)
    assert seen[0]["staleness_max"] == 0 and seen[0]["update/logprob_gap_mean"] < 1e-4, "nothing was learned yet"
    late = seen[2:]
    assert all(r["staleness_max"] >= 1 for r in late)
    learnt = [r for r in late if "update/grad_norm" in r]  # not where every group agrees
    assert learnt and all(r["update/logprob_gap_mean"] > 1e-4 for r in learnt), "the gap is measured"
    assert all(0 < r["update/logprob_gap_ess"] <= 1 and r["update/logprob_gap_kl"] >= 0 for r in learnt)
    assert all({"update/correction_mean", "update/correction_truncated"} <= r.keys() for r in learnt)
    assert all("time/rollout" in r for r in seen)
    if bound == 1:
        assert all(r["versions_mixed"] == 0 for r in seen) and all(r["staleness_mean"] == 1 for r in seen[1:])
    assert numbers(run) == list(range(STEPS * TASKS)), "every task drawn is learned from, once"
    assert [r["step"] for r in rows(run, "validation")] == [1]
    final, start = (weights(checkpoint_path(run / "checkpoints" / "rl", n)) for n in (STEPS, 1))
    assert any(not torch.equal(a, b) for a, b in zip(final, start, strict=True))


@pytest.mark.parametrize("mode", ["one_step_off", pytest.param("bounded", marks=pytest.mark.slow)])
def test_it_goes_on_where_it_stopped(
    configure: Configure,
    muarl: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    litter: Callable[[Path], list[Path]],
    mode: str,
) -> None:
    options = [f"rl.steps={STEPS}", "rl.checkpoint_every=1", f"rl.asynchrony={mode}", "rl.staleness=2"]
    # As Ctrl-C does: the update is in a thread, the signal in the main one.
    at_call(monkeypatch, TorchLearner, "policy_step", 3, sending(signal.SIGINT))
    stopped = muarl("train", *options, "--name", "cut")
    run = tmp_path / "runs" / "cut"
    assert stopped.exit_code == 130, stopped.output
    assert "Traceback" not in stopped.output and not litter(run)
    assert json.loads((run / "status.json").read_text())["state"] == "interrupted"
    assert [r["step"] for r in rows(run)] in ([0, 1], [0, 1, 2]), "the update that ran may have come to its end"

    refused = muarl("train", "rl.asynchrony=synchronous", "--resume", str(run))
    assert refused.exit_code == 2 and "rl.asynchrony" in refused.stderr
    resumed = muarl("train", *options, "--resume", str(run))
    assert resumed.exit_code == 0, resumed.output
    assert [r["step"] for r in rows(run)] == list(range(STEPS))
    assert numbers(run) == list(range(STEPS * TASKS))
    assert all(r["staleness_max"] <= 2 for r in rows(run))


@pytest.mark.slow
def test_a_synchronous_run_may_go_on_ahead(configure: Configure, muarl: Callable[..., Any]) -> None:
    run = rl.run(configure("rl.steps=2", "rl.checkpoint_every=1"))
    longer = ["rl.steps=4", "rl.asynchrony=bounded", "rl.checkpoint_every=1", "--resume", str(run)]
    assert muarl("train", *longer).exit_code == 0
    assert len({name.split("/")[1] for name in groups(run)}) == 4 * TASKS, "tasks of the first steps are used up"
    assert sorted(name.split("/")[0] for name in groups(run)[2 * TASKS :]) == ["4", "5", "6", "7"]


def test_failures_of_rollouts_end_an_asynchronous_run(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: TorchEngine, *_: Any, **__: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(TorchEngine, "sample", broken)
    monkeypatch.setattr(EpisodeRunner, "__post_init__", lambda self: object.__setattr__(self, "backoff", 0.0))
    with pytest.raises(Exception, match="failed for reasons outside the policy.*out of order"):
        rl.run(configure("rl.asynchrony=bounded"))


def loss_of(*overrides: str) -> PolicyLossConfig:
    """The loss of the quickstart's reinforcement learning with these settings."""
    config = load_config("quickstart", overrides)
    return updates.learner_config(config.rl, config.model).policy


def test_what_the_settings_stand_for() -> None:
    policy = loss_of()
    assert policy.old_logprobs == "sampler" and not policy.corrects
    given = ["rl.correction=sequence", "rl.correction_cap=3", "rl.sequence_mask=[0.5, 2]"]
    policy = loss_of(*given)
    assert policy.old_logprobs == "recompute" and (policy.correction, policy.correction_cap) == ("sequence", 3.0)
    assert policy.sequence_mask == (0.5, 2.0)
    policy = loss_of("rl.sequence_mask=[0.5, 2]")
    assert policy.old_logprobs == "recompute", "a mask alone compares with the learner's own, too"
    preset = load_config("async").rl
    assert (preset.asynchrony, preset.staleness, preset.correction) == ("bounded", 2, "token")


@given(st.tuples(st.floats(-1, 3), st.floats(-1, 3)))
def test_masks_must_contain_one(bounds: tuple[float, float]) -> None:
    if 0 <= bounds[0] < 1 < bounds[1]:
        assert RlConfig(sequence_mask=bounds).sequence_mask == bounds
    else:
        with pytest.raises(ValueError, match="sequence_mask"):
            RlConfig(sequence_mask=bounds)
