"""A cold start without models comes out the same again: whatever finishes first, wherever it is interrupted, and
where a tool's server fails on the way."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from muarl.basics.errors import InfrastructureError
from muarl.domains.base import World
from muarl.environments import play
from muarl.observe.listing import list_runs
from muarl.observe.rundir import RunDirectory
from muarl.rollouts.rollout import LocalExecutor, Requests
from muarl.runs import results_store as results
from muarl.types.episode import Episode, StopReason, Usage
from support import killing

Muarl = Callable[..., Any]


class Backwards(LocalExecutor):
    """Whoever began last finishes first."""

    async def run(self, requests: Requests) -> AsyncGenerator[Episode, None]:
        found = [episode async for episode in super().run(requests)]
        for episode in reversed(found):
            yield episode


pytestmark = pytest.mark.usefixtures("no_waiting")


def options(tmp_path: Path, name: str) -> list[str]:
    """Two scenarios; some conversations are dropped and made up for by others."""
    scenarios = ["--scenario", "retail-generated", "--scenario", "hotel-generated"]
    error_profile = "coldstart.error_profile={skip_confirmation: 0.3}"
    return ["--name", name, "-n", "8", *scenarios, error_profile, "coldstart.concurrency=4", f"runs_dir={tmp_path}"]


@pytest.fixture(scope="module")
def whole(muarl: Muarl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing happened to, which the others are compared with."""
    folder = tmp_path_factory.mktemp("undisturbed")
    muarl("coldstart", *options(folder, "whole"), ok=True)
    return folder / "whole"


def same(run: Path, whole: Path) -> None:
    """All that is promised of two runs."""
    assert killing.episodes(run) == killing.episodes(whole), "content and order"
    assert killing.rows(run) == killing.rows(whole)
    assert killing.dataset(run) == killing.dataset(whole)


def test_it_does_not_matter_which_conversation_ends_first(
    muarl: Muarl, tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = killing.dataset(whole)
    assert len(found["episodes.jsonl"]) == 8 and found["dropped.jsonl"], "some are dropped"
    monkeypatch.setattr(play, "LocalExecutor", Backwards)
    muarl("coldstart", *options(tmp_path, "again"), ok=True)
    same(tmp_path / "again", whole)


def test_it_does_not_matter_where_it_was_interrupted(
    muarl: Muarl, tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = results.append_bytes, 0

    def append(path: Path, data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls in (3, 8):  # between the row of figures that counts this conversation and the conversation
            raise KeyboardInterrupt
        original(path, data)

    monkeypatch.setattr(results, "append_bytes", append)
    stopped = muarl("coldstart", *options(tmp_path, "cut"))
    cut = tmp_path / "cut"
    assert stopped.exit_code == 130 and f"muarl coldstart --resume {cut}" in stopped.stderr.replace("\n", "")
    (listed,) = list_runs(cut)
    assert (listed.kind, listed.domain) == ("coldstart", "retail-generated, hotel-generated")
    assert muarl("coldstart", "--resume", str(cut)).exit_code == 130
    muarl("coldstart", "--resume", str(cut), ok=True)
    same(cut, whole)
    muarl("coldstart", "--resume", str(cut), ok=True)
    same(cut, whole)


@pytest.mark.parametrize(("failures", "dropped"), [(1, 0), (3, 1)])
def test_a_failing_tool_server_leaves_its_mark_only(
    muarl: Muarl, tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, failures: int, dropped: int
) -> None:
    """A conversation that is tried again is the same one. One that fails for good is made up for by another, until a
    resumed run has played it after all."""
    (first, *_) = killing.dataset(whole)["episodes.jsonl"]
    opened, left = World.aopen, failures

    async def aopen(self: World) -> None:
        nonlocal left
        if self.task is not None and self.task.id == first["task_id"] and left:
            left -= 1
            raise InfrastructureError("the server of the tools is gone", boundary="world")
        await opened(self)

    monkeypatch.setattr(World, "aopen", aopen)
    muarl("coldstart", *options(tmp_path, "cut"), ok=True)
    cut = tmp_path / "cut"
    lost = [d for d in killing.dataset(cut)["dropped.jsonl"] if d["filter"] == "finished"]
    assert len(lost) == dropped and left == 0
    muarl("coldstart", "--resume", str(cut), ok=True)
    assert without_attempts(killing.dataset(cut)) == without_attempts(killing.dataset(whole))


def without_attempts(found: Any) -> Any:
    """A dataset without the tags that count attempts."""
    if isinstance(found, dict):
        return {k: without_attempts(v) for k, v in found.items() if k not in ("attempts", "resumed")}
    return [without_attempts(v) for v in found] if isinstance(found, list) else found


def test_closing_a_ledger_keeps_the_account_of_what_is_still_to_be_played(tmp_path: Path) -> None:
    def episode(name: str, stop: StopReason, cost: float) -> Episode:
        return Episode(name, name, "d", [], stop, agent_usage=Usage(cost=cost), tags={"retryable": True})

    with RunDirectory(tmp_path, "run") as run:
        first = results.ResultsStore(run)
        first.keep(episode("a", StopReason.INFRASTRUCTURE, 1.0), Usage())
        first.keep(episode("b", StopReason.USER_STOP, 2.0), Usage())
        again = results.ResultsStore(run)  # whose budget is spent
        again.close(again.kept.values())
        assert results.ResultsStore(run).spent.cost == 3.0
