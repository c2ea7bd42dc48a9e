"""Training that a failure ends: the steps that were made are kept, and the run goes on from there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import InfrastructureError, MuarlError
from muarl.inference.torch_engine import TorchEngine
from muarl.learning.checkpoint_folders import list_checkpoints
from muarl.learning.learner import TorchLearner
from muarl.observe.rundir import RunDirectory
from muarl.recipes import rl
from muarl.recipes.training.pipeline import Pipeline
from muarl.rollouts.episode_runner import EpisodeRunner
from muarl.types.episode import Episode, Verdict
from support.episodes import UNBROKEN
from support.eval_servers import READY
from support.fake_openai import Answer, FakeOpenAI, status, text
from support.killing import at_call, episodes, rows

Configure = Callable[..., Any]
Muarl = Callable[..., Any]

SHORT = [
    "rl.steps=3", "rl.tasks_per_step=1", "rl.group_size=2", "rl.checkpoint_every=0", "rl.save_episodes=all",
    "rollout.concurrency=1",
]  # fmt: skip
REVOKED, OVERLOADED = status(401, message="revoked"), status(503, message="overloaded")


@pytest.fixture(autouse=True)
def quick(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits before trying again, and every episode is right or wrong by its seed."""

    async def toss(self: EpisodeRunner, task: Any, world: Any, episode: Episode) -> Verdict:
        return Verdict(float(episode.seed % 2), audit=UNBROKEN)

    monkeypatch.setattr(EpisodeRunner, "_verdict", toss)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key")


class Customer:
    """A model that says one thing and goes, and answers ``failure`` from request ``last`` + 1 of conversations on."""

    def __init__(self) -> None:
        self.asked, self.last, self.failure = 0, 10**9, REVOKED

    def __call__(self, body: dict[str, Any]) -> Answer:
        if body["messages"][-1]["content"] == READY:
            return text("ready")
        self.asked += 1
        if self.asked > self.last:
            return self.failure
        said = any(m["role"] == "assistant" for m in body["messages"])
        return text("That was all. ###STOP###" if said else "I have a question.")

    def fails(self, after: int, failure: Answer) -> None:
        self.last, self.failure = self.asked + after, failure

    def mended(self) -> None:
        self.last = 10**9


def played_by(role: str, server: FakeOpenAI) -> list[str]:
    fields = ["model=customer", f"base_url={server.url}", "attempts=1"]
    return [f"{role}.kind=llm", f"{role}.guidelines=muarl", *(f"{role}.endpoint.{field}" for field in fields)]


def steps(run: Path) -> list[int]:
    return [step for step, _ in list_checkpoints(run / "checkpoints" / "rl")]


def asked_in(run: Path, count: int) -> int:
    """The requests to the user's model in the first steps."""
    found = [RunDirectory.at(run).read_episodes(f"train-{step:04d}") for step in range(count)]
    return sum(e.user_usage.requests for own in found for e in own)


def ended(result: Any, run: Path, *words: str) -> None:
    """The command told what failed and how to go on, and the run says that it failed."""
    said = result.stderr.replace("\n", " ")
    assert result.exit_code == 2 and "Traceback" not in result.output, result.output
    assert all(word in said for word in (*words, "Resume: ")), said
    assert json.loads((run / "status.json").read_text())["state"] == "failed"


@pytest.mark.parametrize(("failure", "words"), [(REVOKED, "API key"), (OVERLOADED, "no group of 2 episodes")])
def test_what_was_learned_before_an_endpoint_failed_is_kept(
    muarl: Muarl, tmp_path: Path, failure: Answer, words: str
) -> None:
    model = Customer()
    with FakeOpenAI(model) as server:
        options = [*played_by("user", server), *SHORT]
        assert muarl("train", *options, "--name", "whole").exit_code == 0
        whole, cut = tmp_path / "runs" / "whole", tmp_path / "runs" / "cut"
        model.fails(asked_in(whole, 2) + 1, failure)
        ended(muarl("train", *options, "--name", "cut"), cut, words)
        assert steps(cut) == [2] and [r["step"] for r in rows(cut)] == [0, 1]
        again = muarl("train", "--resume", str(cut))
        assert again.exit_code == 2 and steps(cut) == [2], "it still fails"
        model.mended()
        assert muarl("train", "--resume", str(cut)).exit_code == 0
    assert rows(cut) == rows(whole) and episodes(cut) == episodes(whole)


def test_nothing_is_kept_of_a_run_that_fails_in_its_first_step(muarl: Muarl, tmp_path: Path) -> None:
    model, cut = Customer(), tmp_path / "runs" / "cut"
    with FakeOpenAI(model) as server:
        model.fails(1, REVOKED)
        options = [*played_by("user", server), *SHORT, "rl.checkpoint_every=1"]
        ended(muarl("train", *options, "--name", "cut"), cut, "API key")
    assert steps(cut) == [] and not (cut / "checkpoints" / "rl").exists()


def test_what_was_learned_before_a_validation_failed_is_kept(muarl: Muarl, tmp_path: Path) -> None:
    model, cut = Customer(), tmp_path / "runs" / "cut"
    with FakeOpenAI(model) as server:
        options = [*played_by("eval_user", server), *SHORT, "rl.eval_every=2", "eval.tasks=1"]
        assert muarl("train", *options, "--name", "whole").exit_code == 0
        model.fails(0, OVERLOADED)
        ended(muarl("train", *options, "--name", "cut"), cut, "validation: not one episode could be scored")
        assert steps(cut) == [2]
        model.mended()
        assert muarl("train", "--resume", str(cut)).exit_code == 0
    assert rows(cut) == rows(tmp_path / "runs" / "whole"), "the validation is made up for"


def test_an_asynchronous_run_keeps_what_was_learned_before_an_endpoint_failed(muarl: Muarl, tmp_path: Path) -> None:
    model, cut = Customer(), tmp_path / "runs" / "cut"
    with FakeOpenAI(model) as server:
        options = [*played_by("user", server), *SHORT, "rl.steps=6", "rl.asynchrony=bounded", "rl.staleness=1"]
        assert muarl("train", *options, "--name", "whole").exit_code == 0
        model.fails(asked_in(tmp_path / "runs" / "whole", 4), REVOKED)
        ended(muarl("train", *options, "--name", "cut"), cut, "API key")
        made = [r["step"] + 1 for r in rows(cut)]
        assert made and steps(cut) == made[-1:]
        model.mended()
        assert muarl("train", "--resume", str(cut)).exit_code == 0
    assert [r["step"] for r in rows(cut)] == list(range(6))
    groups = {row["group"] for found in episodes(cut).values() for row in found}
    assert sorted(int(g.split("/")[0]) for g in groups) == list(range(6)), "every task is learned from, and once"


# What must not be kept.


def failing(boundary: str) -> Callable[[], None]:
    """For ``at_call``."""

    def fail() -> None:
        raise InfrastructureError("it went away", boundary=boundary, retryable=False)

    return fail


def at_batch(mode: str) -> tuple[Any, str]:
    """What gives a step its episodes."""
    return (rl, "_roll_out") if mode == "synchronous" else (Pipeline, "batch")


@pytest.mark.usefixtures("coin")
@pytest.mark.parametrize("mode", ["synchronous", "bounded"])
@pytest.mark.parametrize(("boundary", "kept"), [("world", [1]), ("learner", [])])
def test_weights_of_a_learner_that_was_lost_are_not_kept(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, boundary: str, kept: list[int]
) -> None:
    at_call(monkeypatch, *at_batch(mode), 2, failing(boundary))
    with pytest.raises(InfrastructureError, match="it went away"):
        rl.run(configure(*SHORT, f"rl.asynchrony={mode}", "learner.restarts=0", name="cut"))
    assert steps(tmp_path / "runs" / "cut") == kept


@pytest.mark.usefixtures("coin")
@pytest.mark.parametrize("mode", ["synchronous", "bounded"])
def test_a_step_that_was_half_made_is_not_kept(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    original, made = TorchLearner.policy_step, 0

    def breaks_off(self: TorchLearner, samples: Any) -> Any:
        nonlocal made
        made += 1
        update = original(self, samples)
        if made == 2:
            raise MuarlError("the update broke off")
        return update

    monkeypatch.setattr(TorchLearner, "policy_step", breaks_off)
    with pytest.raises(MuarlError, match="the update broke off"):
        rl.run(configure(*SHORT, f"rl.asynchrony={mode}", name="cut"))
    cut = tmp_path / "runs" / "cut"
    assert steps(cut) == [] and [r["step"] for r in rows(cut)] == [0]


@pytest.mark.usefixtures("coin")
@pytest.mark.parametrize("mode", ["synchronous", "bounded"])
@pytest.mark.parametrize(("boundary", "made"), [("agent", 2), ("learner", 1)])
def test_weights_that_no_sampler_took_are_kept(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, boundary: str, made: int
) -> None:
    """Their step was made; only what samples next is gone, or else the learner that gives them away."""
    at_call(monkeypatch, TorchEngine, "update", 2, failing(boundary))
    with pytest.raises(InfrastructureError, match="it went away"):
        rl.run(configure(*SHORT, f"rl.asynchrony={mode}", "learner.restarts=0", name="cut"))
    cut = tmp_path / "runs" / "cut"
    assert steps(cut) == ([2] if made == 2 else [])
    assert [r["step"] for r in rows(cut)] == [0, 1][:made]


@pytest.mark.usefixtures("coin")
def test_steps_before_a_sampler_failed_to_sleep_are_kept(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The learner has not begun its step."""
    at_call(monkeypatch, TorchEngine, "sleep", 2, failing("agent"))
    with pytest.raises(InfrastructureError, match="it went away"):
        rl.run(configure(*SHORT, "engine.sleep=true", name="cut"))
    cut = tmp_path / "runs" / "cut"
    assert steps(cut) == [1] and [r["step"] for r in rows(cut)] == [0]
