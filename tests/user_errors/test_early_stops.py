"""Users who leave too soon: what the rule finds of the labelled ends, and of users of generated tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from muarl.agents.base import Agent
from muarl.agents.expert import ExpertAgent
from muarl.agents.idle import IdleAgent, TransferAgent
from muarl.backends.users import make_users
from muarl.config.load import load_config
from muarl.domains.tasks import Action, Task
from muarl.environments.configure import place_of
from muarl.environments.place import Place
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find
from muarl.types.chat import GREETING, Message, ToolCall
from muarl.user_errors.errors import find_user_errors
from muarl.users.base import User, UserFactory, UserTurn
from support.early_stops import GOALS, SPLITS, Case, cases, score


def test_the_labelled_ends_have_both_classes_in_both_splits_and_no_name_twice() -> None:
    assert {(c.split, c.early) for c in cases()} == {(split, early) for split in SPLITS for early in (True, False)}
    assert all(18 <= sum(c.split == s and c.early == e for c in cases()) <= 30 for s in SPLITS for e in (True, False))
    assert len({c.name for c in cases()}) == len(cases())
    assert {c.goal for c in cases()} == GOALS.keys()


@pytest.mark.parametrize(("split", "recall"), [("tune", 1.0), ("held", 0.95)])
def test_precision_and_recall_are_as_documented(split: str, recall: float) -> None:
    found = score(split)
    assert found.precision == 1.0
    assert found.recall == pytest.approx(recall, abs=0.01)


@pytest.mark.parametrize("case", [c for c in cases() if not c.early], ids=lambda c: c.name)
def test_ends_with_a_reason_are_left_alone(case: Case) -> None:
    assert not case.errors


def test_a_finding_points_at_the_last_message_and_names_what_was_left_undone() -> None:
    case = next(c for c in cases() if c.name == "never mind before anything happened")
    (error,) = case.errors
    assert error.turn == len(case.messages) - 1
    assert "exchange_delivered_order_items" in error.detail


def test_nothing_is_said_where_the_task_does_not_tell_what_is_right() -> None:
    said = (Message("user", "Hi."), Message("assistant", "Your name?"), Message("user", "bye ###STOP###"))
    task = Task(id="t", domain="shop", scenario="Chat.", actions=None)
    assert not find_user_errors(task, [Message("assistant", GREETING), *said])


def test_a_write_of_another_kind_is_the_agents_doing() -> None:
    call = ToolCall("c", "cancel_order", {"order_id": "1"})
    task = Task(id="t", domain="shop", scenario="Return order 1.", actions=(Action("return_order", {"order_id": "1"}),))
    before = [Message("assistant", GREETING), Message("user", "Return order 1.")]
    after = [Message("assistant", "Which reason?"), Message("user", "Bye ###STOP###")]
    wrote = [Message("assistant", None, (call,)), Message("tool", "ok", tool_call_id="c", name="cancel_order")]
    assert [e.rule for e in find_user_errors(task, [*before, *after])] == ["stops_early"]
    assert not find_user_errors(task, [*before, *wrote, *after])


def test_what_a_user_mended_by_itself_is_done_though_the_gold_actions_are_others() -> None:
    case = next(c for c in cases() if c.name == "bare stop at a question")
    task, messages = GOALS["signal"], [*case.messages[:-1]]
    call = ToolCall("u", "reboot_device", {}, requestor="user")
    done = [Message("user", None, (call,)), Message("tool", "ok", tool_call_id="u", requestor="user")]
    bye = Message("user", "It works again, thanks! ###STOP###")
    assert [e.rule for e in find_user_errors(task, [*messages, bye])] == ["stops_early"]
    assert not find_user_errors(task, [*messages, *done, bye])


# ── users of generated tasks ─────────────────────────────────────────────────────────────────────────────────────────

LEAVING = ("yes ###STOP###", "Never mind, bye ###STOP###", "Thanks ###STOP###", "###STOP###", "Okay. ###STOP###")


@dataclass
class Hasty:
    """Plays its agenda for one message, and then leaves."""

    user: User
    goodbye: str
    said: int = 0

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        self.said += 1
        return await self.user.reply(conversation) if self.said == 1 else UserTurn(Message("user", self.goodbye))


@dataclass
class HastyFactory:
    factory: UserFactory
    name: str = "hasty"

    def __call__(self, task: Task, *, seed: int) -> Hasty:
        return Hasty(self.factory(task, seed=seed), LEAVING[seed % len(LEAVING)])


def _setting(domain: str) -> tuple[Place, UserFactory]:
    config = load_config("quickstart", [f"domain.name={domain}"])
    place = place_of(config)
    return place, make_users(config.eval_user, Places([place])).at(place)


def _found(place: Place, agent: Agent, users: UserFactory) -> list[bool]:
    """By episode, whether the user is said to have left too soon; of tasks where the database is to change."""
    tasks = [t for t in place.draw("test", 40, 5, 0) if any(place.domain.kind_of(a.name) == "write"
             for a in t.actions or () if a.requestor == "assistant")]  # fmt: skip
    played = asyncio.run(play_in(Places([place]), agent, users, tasks, 1, seed=3))
    found = []
    for task, episode in zip(tasks, played.episodes, strict=True):
        errors = find_user_errors(task, episode.messages, user_tools=place.user_tools(task))
        found.append("stops_early" in {e.rule for e in errors})
    return found


@pytest.mark.parametrize("domain", ["retail-generated", "airline-generated"])
def test_users_who_leave_in_their_second_message_are_found_though_the_task_has_an_agenda(domain: str) -> None:
    place, users = _setting(domain)
    found = _found(place, ExpertAgent(make=find(domain).expert), HastyFactory(users))
    assert len(found) > 20
    assert sum(found) / len(found) > 0.8


EXPERT = ExpertAgent(make=find("retail-generated").needed_expert())


@pytest.mark.parametrize("agent", [EXPERT, IdleAgent(), TransferAgent()], ids=lambda a: a.name)
def test_users_who_play_their_agenda_to_its_end_are_left_alone(agent: Agent) -> None:
    place, users = _setting("retail-generated")
    assert not any(_found(place, agent, users))
