"""Training while everything around it fails: every conversation on one account, no bias, and the budget holds."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.basics.files import read_lines
from muarl.domains.base import World
from muarl.endpoints import client
from muarl.observe.rundir import RunDirectory
from muarl.recipes import demonstrations
from muarl.rollouts.episode_runner import EpisodeRunner
from muarl.types.chat import ToolResult
from muarl.types.episode import Episode, Usage, Verdict
from support.episodes import UNBROKEN
from support.eval_servers import READY, digest
from support.fake_openai import BROKEN_OFF, CUT, Answer, FakeOpenAI, nonsense, slow, status, text

Muarl = Callable[..., Any]
KEY = "sk-key"
FAULTS: tuple[Answer, ...] = (
    status(429, {"Retry-After": "0"}),
    status(500),
    status(503),
    nonsense(),
    nonsense('{"choices": []}'),
    CUT,
    BROKEN_OFF,
    slow(1.5),
)


@pytest.fixture(autouse=True)
def quick(no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits before trying again, and every episode is right or wrong by its seed."""

    async def toss(self: EpisodeRunner, task: Any, world: Any, episode: Episode) -> Verdict:
        return Verdict(float(episode.seed % 2), audit=UNBROKEN)

    async def at_once(seconds: float) -> None: ...

    monkeypatch.setattr(EpisodeRunner, "_verdict", toss)
    defaults = dict(client.Endpoint.__init__.__kwdefaults__ or {})
    monkeypatch.setattr(client.Endpoint.__init__, "__kwdefaults__", {**defaults, "sleep": at_once})
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def customer(body: dict[str, Any]) -> Answer:
    """A customer who says one to four things and goes; what follows from the conversation alone."""
    said = sum(m["role"] == "assistant" for m in body["messages"])
    if body["messages"][-1]["content"] == READY:
        return text("ready")
    more = 1 + len(body["messages"][0]["content"]) % 4
    if said > more:
        return text("That was all, thank you. ###STOP###")
    return text(("I have a question about my order.", "Are you sure?", "Which one?", "Why?")[digest(body) % 4])


class Stormy:
    """A server that fails in a share of all requests, in one of the ways of ``FAULTS``; the others are served after up
    to ``late`` seconds."""

    def __init__(self, share: float, seed: int = 1, late: float = 0.0) -> None:
        self.share, self.late, self._rng = share, late, random.Random(seed)
        self.faults: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> Answer:
        if body["messages"][-1]["content"] == READY:
            return text("ready")
        with self._lock:
            fails, which, late = self._rng.random() < self.share, self._rng.randrange(len(FAULTS)), self._rng.random()
            if fails:
                self.faults[which] += 1
                return FAULTS[which]
        return replace(customer(body), delay=late * self.late)


def users(server: FakeOpenAI, *more: str) -> list[str]:
    return [
        "user.kind=llm",
        "user.guidelines=muarl",
        f"user.endpoint={{model: customer, base_url: '{server.url}', timeout: 1.0, concurrency: 64, prompt_price: 2, "
        "completion_price: 8}",
        "rl.save_episodes=all",
        "rl.checkpoint_every=2",
        *more,
    ]


def asked(server: FakeOpenAI) -> int:
    """Requests that belong to a conversation."""
    return sum(body["messages"][-1]["content"] != READY for body in server.bodies)


def played(run: Path) -> dict[int, list[Episode]]:
    """Every step's episodes."""
    found = sorted((run / "episodes").glob("train-*.jsonl"))
    return {int(p.stem.split("-")[1]): RunDirectory.at(run).read_episodes(p.stem) for p in found}


def steps(run: Path) -> list[dict[str, Any]]:
    return [r for r in RunDirectory.at(run).read_metrics() if r["phase"] == "rl"]


def spent(run: Path) -> Usage:
    rows = read_lines(run / "spending.jsonl")
    return sum((Usage(**{k: row[k] for k in Usage().to_json()}) for row in rows), Usage())


def check_accounts(run: Path, server: FakeOpenAI, wanted: int) -> list[Episode]:
    """Every step has ``wanted`` conversations, each finished or excluded with a reason, and every request to the server
    is on one account. Returns all of them."""
    everything = []
    for row, (step, found) in zip(steps(run), played(run).items(), strict=True):
        assert row["step"] == step
        assert len({e.id for e in found}) == len(found) == wanted == row["episodes"] + row["excluded"]
        lost = [e for e in found if e.verdict is None]
        assert len(lost) == row["excluded"] == sum(row.get(f"excluded/{w}", 0) for w in ("user", "world", "agent"))
        assert all(e.error and e.tags["boundary"] in ("user", "world", "agent") for e in lost)
        assert sum(len(g) for g in _groups(found).values()) == wanted
        assert row["groups_kept"] + row["groups_dropped"] == len(_groups(found))
        everything += found
    used = sum((e.user_usage for e in everything), Usage())
    assert used.requests == spent(run).requests
    assert 0 <= used.requests - asked(server) <= used.retries, "an attempt may time out before it has arrived"
    assert spent(run).prompt_tokens == used.prompt_tokens > 0 and spent(run).cost == pytest.approx(used.cost)
    return everything


def _groups(found: list[Episode]) -> dict[str | None, list[Episode]]:
    groups: dict[str | None, list[Episode]] = {}
    for episode in found:
        groups.setdefault(episode.group, []).append(episode)
    return groups


def without_excuse(message: str) -> bool:
    return message.startswith(("user: endpoint customer", "world: unexpected MemoryError in tool"))


@pytest.mark.slow
def test_a_third_of_all_requests_may_fail(muarl: Muarl, tmp_path: Path) -> None:
    storm = Stormy(0.3)
    with FakeOpenAI(storm, key=KEY) as server:
        result = muarl("train", *users(server), "--name", "r")
        assert result.exit_code == 0, result.output
        found = check_accounts(tmp_path / "runs" / "r", server, 8)
    assert sum(storm.faults.values()) > 10 and all(e.verdict is not None for e in found)
    assert sum(e.user_usage.retries for e in found) >= sum(storm.faults.values()) * 0.9


def test_users_errors_are_figures_of_their_own(muarl: Muarl, tmp_path: Path) -> None:
    def leaky(body: dict[str, Any]) -> Answer:
        said = sum(m["role"] == "assistant" for m in body["messages"])
        words = "As an AI language model, I want order #W9999999. " if said < 1 else "No. ###STOP###"
        return text("ready" if body["messages"][-1]["content"] == READY else words)

    with FakeOpenAI(leaky, key=KEY) as server:
        assert muarl("train", *users(server, "rl.steps=1"), "--name", "r").exit_code == 0
    row = steps(tmp_path / "runs" / "r")[0]
    assert row["user_errors"] == row["user_errors/leaks"] == 1.0
    for episode in played(tmp_path / "runs" / "r")[0]:
        assert "leaks" in {e["rule"] for e in episode.tags["user_errors"]}


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "at_once"), [("synchronous", 1), pytest.param("bounded", 16, marks=pytest.mark.slow)])
def test_training_stops_at_its_budget_and_goes_on_with_a_larger_one(
    muarl: Muarl, tmp_path: Path, mode: str, at_once: int
) -> None:
    """(One after the other, since what is sampled together moves the last bits, and the network decides what is.)"""
    count = 4 if at_once == 1 else 8
    more = [
        f"rl.steps={count}",
        "rl.tasks_per_step=1",
        f"rl.asynchrony={mode}",
        "rl.checkpoint_every=4",
        f"rollout.concurrency={at_once}",
    ]
    with FakeOpenAI(customer, key=KEY) as server:
        assert muarl("train", *users(server, *more), "--name", "whole").exit_code == 0
        whole = tmp_path / "runs" / "whole"
        total = spent(whole)
        tokens = total.prompt_tokens + total.completion_tokens
        dearest = max(
            e.user_usage.prompt_tokens + e.user_usage.completion_tokens for f in played(whole).values() for e in f
        )
        bound = tokens // 2
        stopped = muarl("train", *users(server, *more), f"budget.max_tokens={bound}", "--name", "cut")
        assert stopped.exit_code == 2 and "The budget of this run is spent" in stopped.stderr
        run = tmp_path / "runs" / "cut"
        told = json.loads((run / "status.json").read_text())
        assert told["state"] == "interrupted" and "budget.max_tokens" in told["message"]
        used = spent(run).prompt_tokens + spent(run).completion_tokens
        assert bound <= used <= bound + dearest, "what is under way is paid for, but for the last one"
        done = steps(run)[-1]["step"] + 1
        assert 0 < done < count and checkpoint_folder(str(run)).name == f"step-{done:06d}", "what was learned is kept"
        before = len(server.bodies)
        assert muarl("train", "--resume", str(run)).exit_code == 2, "it is still spent"
        assert len(server.bodies) - before == 1, "nobody is asked for more than whether they are there"
        again = muarl("train", "--resume", str(run), "budget.max_tokens=null")
        assert again.exit_code == 0, again.output
    if mode == "synchronous":
        clocks = ("seconds", "time/", "per_second")
        ours, theirs = (
            [{k: v for k, v in r.items() if not any(c in k for c in clocks)} for r in steps(x)] for x in (run, whole)
        )
        assert ours == theirs
    assert [r["step"] for r in steps(run)] == list(range(count))
    assert json.loads((run / "status.json").read_text())["state"] == "finished"


def test_a_bound_in_dollars_needs_prices(muarl: Muarl, tmp_path: Path) -> None:
    with FakeOpenAI(customer, key=KEY) as server:
        free = [
            o.replace("prompt_price: 2", "prompt_price: 0").replace("completion_price: 8", "completion_price: 0")
            for o in users(server)
        ]
        for command in ("train", "sft", "quickstart"):
            result = muarl(command, *free, "budget.max_cost=1")
            assert (
                result.exit_code == 2
                and "budget.max_cost" in result.stderr
                and "user.endpoint.prompt_price" in result.stderr
            )
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_demonstrations_of_a_paid_user_are_paid_for_once(
    muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cold start that is stopped by its budget goes on with the conversations it has paid for."""
    monkeypatch.setattr(demonstrations, "CONCURRENCY", 2)
    with FakeOpenAI(customer, key=KEY) as server:
        assert muarl("sft", *users(server), "--name", "whole").exit_code == 0
        whole = spent(tmp_path / "runs" / "whole")
        bound = (whole.prompt_tokens + whole.completion_tokens) // 2
        before = asked(server)
        stopped = muarl("sft", *users(server), f"budget.max_tokens={bound}", "--name", "cut")
        assert stopped.exit_code == 2 and "budget of this run is spent" in stopped.stderr
        run = tmp_path / "runs" / "cut"
        assert 0 < asked(server) - before < whole.requests
        assert muarl("sft", "--resume", str(run), "budget.max_tokens=null").exit_code == 0
        assert asked(server) - before == whole.requests == spent(run).requests, "none is played twice"
    ours, theirs = (RunDirectory.at(tmp_path / "runs" / r).read_episodes("demonstrations") for r in ("cut", "whole"))
    assert [(e.id, [m.content for m in e.messages]) for e in ours] == [
        (e.id, [m.content for m in e.messages]) for e in theirs
    ]
    assert len(ours) == 12


@pytest.mark.slow
def test_an_hour_of_everything_at_once(muarl: Muarl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some four thousand requests, an hour at one a second: 30% of them fail, users take their time, tools run out of
    memory, and the clock is set forward and back by days."""
    jumps, real, original = random.Random(3), time.time, World.call_all
    offset = 0.0

    def jumping() -> float:
        nonlocal offset
        if jumps.random() < 0.05:
            offset = jumps.uniform(-3e6, 3e6)
        return real() + offset

    results = itertools.count(1)  # Every 25th, not by chance: a run makes few enough calls for chance to miss.

    def hungry(self: World, requestor: Any, calls: Any) -> Iterator[ToolResult]:
        for result in original(self, requestor, calls):
            if next(results) % 25 == 0:
                raise MemoryError("no memory left for this tool")
            yield result

    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr(World, "call_all", hungry)
    storm = Stormy(0.3, late=0.05)
    more = ["rl.steps=6", "rl.tasks_per_step=16", "rl.group_size=8", "rollout.max_turns=6"]
    began = time.monotonic()
    with FakeOpenAI(storm, key=KEY) as server:
        result = muarl("train", *users(server, *more), "--name", "r")
        assert result.exit_code == 0, result.output
        run = tmp_path / "runs" / "r"
        everything = check_accounts(run, server, 128)
        total = asked(server)
    assert total > 2000 and 0.27 < sum(storm.faults.values()) / total < 0.33
    assert min(storm.faults[n] for n in range(len(FAULTS))) > 30, "of every kind"
    assert len(everything) == 6 * 128
    lost = [e for e in everything if e.verdict is None]
    assert len(lost) <= 0.01 * len(everything), Counter(e.error for e in lost)
    assert all(without_excuse(e.error or "") for e in lost)
    # Whoever is left stands for all: what the seeds say.
    assert abs(fmean(e.seed % 2 for e in everything) - fmean(e.reward for e in everything if e.verdict)) < 0.01
    assert all(row["groups_dropped"] == 0 for row in steps(run))
    ran_out = (next(results) - 1) // 25
    ended = sum(e.tags.get("attempts", 1) - 1 for e in everything) + len(lost)
    assert 10 < ran_out <= ended, "every tool that ran out of memory ended an attempt"
    again = sum(e.tags.get("attempts", 1) > 1 for e in everything)
    assert sum(row.get("retried", 0) for row in steps(run)) == again > 10
    # No clock of the wall reaches a figure.
    seconds = [r["seconds"] for r in RunDirectory.at(run).read_metrics()]
    assert seconds == sorted(seconds) and seconds[-1] < time.monotonic() - began
    assert all(0 <= v < 600 for e in everything for v in e.timings.values())
    assert all(0 <= v < 600 for r in steps(run) for k, v in r.items() if k.startswith("time/"))
