"""Recorded episodes: their domain and task made again, and their calls run again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from muarl.domains.base import Domain
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.environments import recorded_episodes
from muarl.environments.environment import Environment
from muarl.environments.recorded_episodes import replay_recorded, world_of
from muarl.environments.registry import find
from muarl.rewards.state_changes import CannotReplay
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn


class Bell(Domain):
    """A bell."""

    name = "bell"
    policy = "Ring once."
    database = {"bells": {"b1": {"rings": 0}}}

    @tool(writes=True)
    def ring(self, bell: str) -> int:
        """Ring a bell."""
        self.db.bells[bell]["rings"] += 1
        return self.db.bells[bell]["rings"]


TASK = Task("ring-1", "bell", "Ring.", (Action("ring", {"bell": "b1"}),))
BELL = Environment(name="bell", domain=Bell, tasks={"test": [TASK]})


def episode(task_id: str, answer: str = "1") -> Episode:
    """An episode in which the bell was rung once."""
    call = ToolCall("c", "ring", {"bell": "b1"})
    turns = [
        Turn(Message("user", "Ring!")),
        Turn(Message("assistant", None, (call,))),
        Turn(Message("tool", answer, tool_call_id="c", requestor="assistant")),
    ]
    return Episode(id="e", task_id=task_id, domain="bell", turns=turns, stop=StopReason.USER_STOP)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bell as an installed plug-in."""
    monkeypatch.setattr(recorded_episodes, "names", lambda: ("bell",))
    monkeypatch.setattr(recorded_episodes, "approved", lambda: ())
    monkeypatch.setattr(recorded_episodes, "find", lambda name: {"bell": BELL}[name])
    monkeypatch.setattr(
        recorded_episodes, "approved", tuple
    )  # what other tests of this process named is no part of this one


@pytest.mark.usefixtures("installed")
def test_an_environment_of_somebody_elses_is_made_again_by_its_configuration() -> None:
    config = {"domain": {"name": "bell"}}
    domain, task = world_of(episode("ring-1"), config, measured=False)
    assert isinstance(domain, Bell) and task == TASK
    told = replay_recorded(episode("ring-1"), config)
    assert [(c.record, c.path, c.before, c.after) for c in told.total] == [("bells / b1", "rings", "0", "1")]
    assert told.wrong == () and told.differing == 0
    assert replay_recorded(episode("ring-1", "2"), config).differing == 1
    several = {"domain": [{"name": "nobody"}, {"name": "bell"}]}
    assert world_of(episode("ring-1"), several, measured=False)[1] == TASK
    with pytest.raises(CannotReplay, match="has no task 'ring-2'"):
        world_of(episode("ring-2"), config, measured=False)


def test_made_tasks_need_no_configuration() -> None:
    (task,) = find("retail-generated").make_tasks("test", 1, size="tiny", seed=1)
    domain, again = world_of(episode(task.id), {}, measured=False)
    assert (again.id, again.scenario, domain.name) == (task.id, task.scenario, "retail")
    for wrong in (replace(episode(task.id), tags={"redteam": {}}), replace(episode(task.id), tags={"played": []})):
        with pytest.raises(CannotReplay):
            replay_recorded(wrong, {})
    with pytest.raises(CannotReplay, match="servers of their own"):
        world_of(episode("mcp-git-tiny-train-0-1"), {}, measured=False)


def test_a_run_folder_imports_no_code(tmp_path: Path) -> None:
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\nTRAP = None\n")
    reference = f"{trap}:TRAP"
    for task_id in ("ring-1", f"{reference}-tiny-train-0-1", "muarl.cli.main:app-tiny-train-0-1"):
        with pytest.raises(CannotReplay, match="--domain|can be made again from its name"):
            world_of(episode(task_id), {"domain": {"name": reference}}, measured=False)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("config", [{}, {"domain": "x"}, {"domain": {"name": 3}}, {"domain": [None, 4]}])
def test_what_names_nothing_cannot_be_made_again(config: dict[str, object]) -> None:
    with pytest.raises(CannotReplay, match="not one that can be made again"):
        world_of(episode("ring-1"), config, measured=False)
