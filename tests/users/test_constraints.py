"""When a user that is trained has left its scenario, and that leaving it never pays."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop_kit import Puppet, RecordingSampler, small_tokenizer
from muarl.agents.expert import ExpertAgent
from muarl.backends.users import goal_checks
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.domains.tasks import Task
from muarl.environments.play import play_tasks
from muarl.environments.registry import find
from muarl.learning.advantages import group_advantages
from muarl.rollouts.conversation import run_episode
from muarl.types.chat import Message, ToolCall
from muarl.users.constraints import GOAL, HIDES, MARKUP, breaches, void_rewards
from muarl.users.sampled import SampledUserFactory
from support.toy_shop import Toy, toy_task

RETAIL = find("retail-generated")
CHECK = goal_checks(RETAIL.place("tiny"))
CANCEL = {"kind": "cancel", "goal": {"order_id": "#W6924144", "reason": "ordered by mistake"}}
PROPOSAL = "cancel order #W6924144, reason ordered by mistake. Shall I go ahead?"


def task() -> Task:
    """Somebody who wants to cancel an order, and nothing else."""
    request = {**CANCEL, "intent": "cancel", "then": None, "fallback": None, "unknown": [], "answer": None}
    agenda = {
        "persona": "terse",
        "identity": {"name": {"first_name": "Jana", "last_name": "Mori"}, "zip": "74462"},
        "wrong": {},
        "impostor": False,
        "requests": [request],
        "upfront": True,
        "reminds": True,
    }
    scenario = "Your name is Jana Mori. Your zip code is 74462. You want to cancel order #W6924144: ordered by mistake."
    (example,) = RETAIL.make_tasks("train", 1, size="tiny")
    return replace(example, scenario=scenario, agenda=agenda)


def talk(*said: str) -> list[Message]:
    """Agent and user by turns, with a call of the agent's that no user sees."""
    messages = [Message("user" if n % 2 else "assistant", text) for n, text in enumerate(said)]
    hidden = [Message("assistant", None, (ToolCall("c", "get_order_details", {}),)), Message("tool", "{}")]
    return [*messages[:2], *hidden, *messages[2:]]


def found(*said: str) -> list[tuple[str, int]]:
    own = task()
    return [(b.rule, b.message) for b in breaches(own, talk(*said), check=CHECK(own))]


HONEST = ("Hi! How can I help?", "Please cancel order #W6924144, I ordered it by mistake. I am Jana Mori, 74462.")


def test_a_user_that_stays_within_its_scenario_is_not_void() -> None:
    assert found(*HONEST, PROPOSAL, "Yes, please.", "It is done. Anything else?", "No, thanks. ###STOP###") == []


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ((*HONEST[:1], "Please cancel order #W6924145. I am Jana Mori, 74462."), 1),
        ((*HONEST, PROPOSAL, "No."), 5),
        ((*HONEST, PROPOSAL, "###STOP###"), 5),
        ((*HONEST[:1], "###STOP###"), 1),
    ],
    ids=["another order", "denies its own request", "hangs up on a proposal", "hangs up at once"],
)
def test_a_user_that_denies_or_drops_its_request_is_void_where_it_does(said: tuple[str, ...], where: int) -> None:
    assert (GOAL, where) in found(*said)


@pytest.mark.parametrize(
    "last", ["No, thanks. ###STOPSTOP###", "Thanks. STOP", "No. ## bye", 'It ", "reason": ".', "Bye. <|im_end|>"]
)
def test_pieces_of_markers_and_data_are_void(last: str) -> None:
    said = (*HONEST, PROPOSAL, "Yes, please.", "It is done. Anything else?", last)
    assert (MARKUP, 7) in found(*said)


def test_a_user_that_never_says_what_it_wants_is_void() -> None:
    hidden = ("Hi! How can I help?", "Hello!", "May I have your name and zip code?", "I am Jana Mori, 74462.")
    assert (HIDES, 5) in found(*hidden)
    assert (HIDES, 5) not in found(*hidden[:3], "I am Jana Mori, 74462. Please cancel order #W6924144.")


def test_the_rules_of_the_guard_count_those_that_are_named() -> None:
    own, nonsense = task(), talk(*HONEST, "Anything else?", "As a language model I cannot say. ###STOP###")
    named = {b.rule for b in breaches(own, nonsense, check=None, rules=("leaks",))}
    assert named == {"leaks"}
    assert breaches(own, nonsense, check=None, rules=()) == ()


@pytest.mark.slow
def test_rule_based_users_of_the_expert_are_hardly_ever_void() -> None:
    tasks = RETAIL.make_tasks("test", 200, size="tiny")
    played = asyncio.run(play_tasks(RETAIL, ExpertAgent(make=RETAIL.needed_expert()), tasks, size="tiny"))
    known = {t.id: t for t in tasks}
    void = {e.id: b for e in played if (b := breaches(known[e.task_id], e.messages, check=CHECK(known[e.task_id])))}
    assert len(void) <= 1, "the goal check misreads one in 200"
    assert {breach.rule for own in void.values() for breach in own} <= {GOAL}


class Noted:
    """A check that finds nothing and writes down what it was told."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []

    def hears(self, text: str) -> None:
        self.notes.append(("hears", text))

    def problem(self, text: str) -> str | None:
        self.notes.append(("problem", text))
        return None

    def said(self, text: str) -> None:
        self.notes.append(("said", text))


def test_the_check_is_told_the_same_afterwards_as_beforehand() -> None:
    chat, before, after = Qwen3Format(small_tokenizer()), Noted(), Noted()
    sampler = RecordingSampler(chat, "Cancel #W12.", "Yes.", "Bye. ###STOP###")
    factory = SampledUserFactory(sampler, chat, tries=2, make_check=lambda task: before)
    own = replace(toy_task(), scenario="You are Mia.")
    episode = asyncio.run(run_episode(own, Toy().world(), Puppet("Shall I?", "Done."), factory(own, seed=1)))
    assert breaches(own, episode.messages, check=after, rules=()) == ()
    last = [("said", "Bye. ###STOP###")]  # afterwards the last message is noted, too
    assert after.notes == before.notes + last and len(before.notes) == 8


groups = st.lists(st.tuples(st.sampled_from((0.0, 0.25, 1.0)), st.booleans()), min_size=2, max_size=8)


@given(groups)
def test_a_void_episode_has_the_lowest_reward_and_advantage_of_its_group(group: Sequence[tuple[float, bool]]) -> None:
    rewards, void = [r for r, _ in group], [v for _, v in group]
    given_back = void_rewards(rewards, void, margin=0.5)
    valid = [r for r, v in zip(given_back, void, strict=True) if not v]
    assert valid == [r for r, v in group if not v]
    advantages = group_advantages(given_back, [0] * len(group)).values
    for reward, advantage, out in zip(given_back, advantages, void, strict=True):
        if out and valid:
            assert reward == min(valid) - 0.5 and advantage < 0 and advantage == np.min(advantages)
    if not valid:
        assert len(set(given_back)) == 1, "where all are void nothing is learned"
