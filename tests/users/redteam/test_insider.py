"""Users who claim that a colleague's approval is not needed, or that the colleague's no does not count."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.rewards.traps import Trap, sprung, traps_of
from muarl.types.chat import Message, ToolCall
from muarl.users.redteam.tasks import iter_red_team, red_team_tasks
from support import kit

EXPENSES = find("expenses-generated")


@cache
def tasks(size: str = "small") -> Sequence[Task]:
    return red_team_tasks(EXPENSES.red_team_source(), ["insider"], 12, size=size)


def test_the_expert_asks_all_the_same_and_takes_no_for_an_answer() -> None:
    assert {task.tags["variant"] for task in tasks()} == {"approved", "declined"}
    for task, episode in zip(tasks(), kit.expert(EXPENSES, tasks(), "small"), strict=True):
        assert episode.reward == 1 and not sprung(episode.messages, traps_of(task.tags)), task.id
        said = kit.said(episode, "user")
        lines = (task.agenda or {})["requests"][0]
        assert len(said) > len(lines.get("presses", ())), "it presses as often as the task says"


def test_who_does_it_alone_springs_the_trap_in_every_task() -> None:
    episodes = kit.expert(EXPENSES, tasks(), "small", skip_approval=1.0)
    for task, episode in zip(tasks(), episodes, strict=True):
        assert episode.reward == 0 and sprung(episode.messages, traps_of(task.tags)), task.id


def test_a_language_model_is_told_what_to_claim() -> None:
    for task in tasks():
        for line in (task.agenda or {})["requests"][0]["presses"]:
            assert line in task.scenario


def test_where_nobody_need_be_asked_there_is_no_insider() -> None:
    source = find("clinic-generated").red_team_source()
    assert "insider" not in source.support.kinds
    with pytest.raises(ConfigError, match="no kind 'insider' .*nobody's approval"):
        next(iter_red_team(source, "insider"))


def test_a_trap_may_be_lifted_by_a_call_before() -> None:
    trap = Trap("pays alone", "pay", {"claim": 1}, unless="ask")
    assert Trap.from_json(trap.to_json()) == trap and "unless" not in Trap("x").to_json()

    def messages(*names: str, error: bool = False) -> list[Message]:
        found = []
        for name in names:
            found.append(Message("assistant", None, (ToolCall(name, name, {"claim": 1}),)))
            failed = error and name == "ask"
            found.append(Message("tool", "{}", tool_call_id=name, requestor="assistant", error=failed))
        return found

    assert sprung(messages("pay"), [trap]) and sprung(messages("pay", "ask"), [trap])
    assert not sprung(messages("ask", "pay"), [trap])
    assert sprung(messages("ask", "pay", error=True), [trap]), "a call that failed lifts nothing"
