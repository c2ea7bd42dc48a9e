"""Faults of every model that takes part in a cold start: each costs its own conversation at most, and no more than the
budget is ever spent."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muarl.endpoints import client
from muarl.environments import place
from support.fake_openai import BROKEN_OFF, CUT, Answer, FakeOpenAI, call, completion, nonsense, slow, status
from support.library import everybody, own_folder, role_of

Muarl = Callable[..., Any]
NO_TOOL = completion(tool_calls=[call("no_such_tool", {"title": "Emma"})])
FAULTS: dict[str, Answer] = {
    "429": status(429, {"Retry-After": "0"}),
    "500": status(500),
    "timeout": slow(60),
    "cut": CUT,
    "cut stream": BROKEN_OFF,
    "nonsense": nonsense('{"choices": [{"message"'),
    "wrong tool": NO_TOOL,
}
REASONS = {
    "429": "429",
    "500": "500",
    "timeout": "2 s",
    "cut": "unreachable (Server disconnected",
    "cut stream": "the connection broke off in the middle of the answer",
    "nonsense": "not JSON",
}
SECTIONS = {"teacher": "coldstart.endpoint", "tools": "coldstart.tools_endpoint", "user": "user.endpoint"}


class Faulty:
    """A server on which one part answers with faults: these one after the other, every second time that it is asked,
    or one of them always."""

    def __init__(self, part: str, *faults: Answer, always: bool = False) -> None:
        self.part, self.faults, self.always = part, list(faults), always
        self.asked = 0

    def __call__(self, body: dict[str, Any]) -> Answer:
        if role_of(body) == self.part:
            self.asked += 1
            if self.always:
                return self.faults[0]
            if self.faults and self.asked % 2:
                return self.faults.pop(0)
        return everybody(body)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits before trying again."""
    usual = place.EpisodeRunner
    monkeypatch.setattr(place, "EpisodeRunner", lambda **given: usual(**{**given, "backoff": 0.0, "retries": 1}))
    defaults = dict(client.Endpoint.__init__.__kwdefaults__ or {})
    monkeypatch.setattr(client.Endpoint.__init__, "__kwdefaults__", {**defaults, "sleep": _no_wait})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key")


async def _no_wait(seconds: float) -> None:
    """A sleep that takes no time."""


def made(muarl: Muarl, folder: Path, server: FakeOpenAI, part: str, *args: str, attempts: int = 3) -> tuple[Any, Path]:
    """A run in the library, with its output, and where its dataset is. One attempt of ``part`` may take two seconds."""
    folder.mkdir(exist_ok=True)
    asked = [word for name in SECTIONS for word in (f"--{name}", f"endpoint:{name}@{server.url}")]
    parts = ("--scenario", str(own_folder(folder / "library")), *asked)
    patience = (f"{SECTIONS[part]}.attempts={attempts}", f"{SECTIONS[part]}.timeout=2")
    more = ("user.guidelines=muarl", "coldstart.near_duplicate=1", f"runs_dir={folder}", *patience, *args)
    return muarl("coldstart", "--name", "cs", *parts, *more, ok=True), folder / "cs" / "dataset"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("part", SECTIONS)
def test_faults_that_pass_cost_no_conversation(muarl: Muarl, tmp_path: Path, part: str) -> None:
    passing = [fault for name, fault in FAULTS.items() if name != "wrong tool"]
    cast = Faulty(part, *passing)
    with FakeOpenAI(cast, key="sk-key") as server:
        _, dataset = made(muarl, tmp_path, server, part, "-n", "6", "coldstart.concurrency=1", "coldstart.attempts=1")
    assert not cast.faults, "all have come"
    assert len(rows(dataset / "messages.jsonl")) == 6, (dataset / "dropped.jsonl").read_text()[:2000]
    assert json.loads((dataset / "card.json").read_text())["usage"]["retries"] >= len(passing)


@pytest.mark.slow
@pytest.mark.parametrize("part", SECTIONS)
def test_a_call_of_a_tool_that_there_is_not_costs_one_conversation_at_most(
    muarl: Muarl, tmp_path: Path, part: str
) -> None:
    with FakeOpenAI(Faulty(part, NO_TOOL), key="sk-key") as server:
        _, dataset = made(muarl, tmp_path, server, part, "-n", "2", "coldstart.attempts=2")
    assert len(rows(dataset / "messages.jsonl")) == 2
    dropped = rows(dataset / "dropped.jsonl")
    if part == "tools":  # a call is no answer, so that it is asked once more
        assert dropped == []
    else:
        assert [d["filter"] for d in dropped] == ["schema"] and "no_such_tool" in dropped[0]["detail"]


@pytest.mark.slow
@pytest.mark.parametrize("part", SECTIONS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_stays_is_the_reason_why_conversations_were_dropped(
    muarl: Muarl, tmp_path: Path, name: str, part: str
) -> None:
    with FakeOpenAI(Faulty(part, FAULTS[name], always=True), key="sk-key") as server:
        args = ("-n", "1", "coldstart.attempts=2")
        if part == "teacher":  # who also writes the tasks: with patience for that
            args = (*args, "coldstart.endpoint.deadline=20")
        result, dataset = made(muarl, tmp_path, server, part, *args, attempts=2)
    assert "0 conversations kept, 2 dropped" in result.output
    dropped = rows(dataset / "dropped.jsonl")
    details = [d["detail"] for d in dropped]
    if name != "wrong tool":
        boundary = {"teacher": "agent", "tools": "world", "user": "user"}[part]
        assert all(d["filter"] == "finished" and d["detail"].startswith(f"{boundary}: ") for d in dropped), details
        assert all(REASONS[name] in detail for detail in details), details
    elif part == "tools":
        assert all("find_book gave no usable answer" in detail for detail in details), details
    else:
        assert all(d["filter"] in ("finished", "schema") for d in dropped), details
    assert "sk-key" not in (dataset / "dropped.jsonl").read_text()


@pytest.mark.parametrize("part", SECTIONS)
def test_spending_stops_at_the_budget_whoever_fails(muarl: Muarl, tmp_path: Path, part: str) -> None:
    cast = Faulty(part, NO_TOOL, always=True)  # of no use, and paid for all the same
    with FakeOpenAI(cast, key="sk-key") as server:
        one_by_one = ("coldstart.concurrency=1", "coldstart.attempts=1")
        _, dataset = made(muarl, tmp_path / "one", server, part, "-n", "1", *one_by_one)
        usage = json.loads((dataset / "card.json").read_text())["usage"]
        dearest = usage["prompt_tokens"] + usage["completion_tokens"]
        asked = len(server.bodies)
        bound = ("--max-tokens", str(3 * dearest))
        result, dataset = made(muarl, tmp_path / "many", server, part, "-n", "20", *one_by_one, *bound)
        paid = 15 * sum(role_of(body) != "ready" for body in server.bodies[asked:])
    assert "token budget is spent" in result.output
    card = json.loads((dataset / "card.json").read_text())
    used = card["usage"]["prompt_tokens"] + card["usage"]["completion_tokens"]
    assert used == paid, "every token that was paid for is on the account"
    assert 3 * dearest <= used <= 4 * dearest, "and no conversation begins beyond the budget"
    assert card["kept"] + card["dropped"] < 20


@pytest.mark.slow
def test_a_killed_run_loses_no_more_than_what_was_under_way(muarl: Muarl, tmp_path: Path) -> None:
    def unhurried(body: dict[str, Any]) -> Answer:
        return replace(everybody(body), delay=0.02)

    with FakeOpenAI(unhurried, key="sk-key") as server:
        asked = [word for name in SECTIONS for word in (f"--{name}", f"endpoint:{name}@{server.url}")]
        args = ["--scenario", str(own_folder(tmp_path / "library")), *asked, "user.guidelines=muarl", "--name", "cs"]
        args += ["-n", "30", "coldstart.near_duplicate=1", "coldstart.concurrency=1", f"runs_dir={tmp_path}"]
        command = [sys.executable, "-c", "from muarl.cli.main import main; main()", "coldstart", *args]
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        results = tmp_path / "cs" / "episodes" / "library.jsonl"
        try:
            deadline = time.monotonic() + 120
            while job.poll() is None and time.monotonic() < deadline:
                if results.is_file() and results.read_bytes().count(b"\n") >= 8:
                    break
                time.sleep(0.01)
        finally:
            job.kill()
            job.wait(30)
        before = results.read_bytes()
        assert 8 <= before.count(b"\n") < 30
        muarl("coldstart", "--resume", str(tmp_path / "cs"), ok=True)
        paid = [body for body in server.bodies if role_of(body) != "ready"]
    assert results.read_bytes().startswith(before[: before.rindex(b"\n") + 1])
    episodes = rows(results)
    assert len({e["id"] for e in episodes}) == len(episodes) == 30
    card = json.loads((tmp_path / "cs" / "dataset" / "card.json").read_text())
    lost = len(paid) - card["usage"]["requests"]
    longest = max(e["agent_usage"]["requests"] + e["user_usage"]["requests"] for e in episodes)
    assert 0 <= lost <= longest + 2, "the requests of the one conversation that was under way"
