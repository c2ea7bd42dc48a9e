"""The guard around simulated users: asks again within bounds, counts and pays, marks what stays bad."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest

from muarl.accounts.metrics import episode_metrics
from muarl.agents.idle import IdleAgent
from muarl.backends.users import make_users
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.config.load import load_config
from muarl.config.section import GuardConfig, UserConfig, UserRule
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings, Price
from muarl.environments.configure import places_of
from muarl.environments.places import Places
from muarl.environments.play import play_in
from muarl.environments.registry import find
from muarl.learning.advantages import group_samples
from muarl.rollouts.rollout import collect_groups
from muarl.types.chat import GREETING, Message
from muarl.types.episode import GUARD, SPOILED, Episode, StopReason, Turn, Usage, Verdict
from muarl.user_errors.conduct import RULES
from muarl.users.base import AsksAgain, LeavesTags, UserTurn
from muarl.users.guard import GUARDED, GuardedUser, GuardedUserFactory
from muarl.users.llm import LLMUserFactory
from muarl.users.slow import SlowUser
from support.fake_openai import FakeOpenAI, status, text

TASK = Task(
    id="t1", domain="retail", actions=(),
    scenario="Known info:\n\tYou are Ann Lee. Your zip code is 53111.\n"
    "Task instructions:\n\tYou want to cancel #W1112223.",
)  # fmt: skip
ASKED = [Message("assistant", GREETING), Message("user", "Cancel an order."), Message("assistant", "Your zip code?")]


class Several:
    """Says these in turn, whether asked for the first time or again; each costs a request."""

    def __init__(self, *said: str | Exception) -> None:
        self.said, self.told = list(said), list[tuple[str, ...]]()

    async def reply(self, conversation: Sequence[Message]) -> UserTurn:
        said = self.said.pop(0)
        if isinstance(said, Exception):
            raise said
        return UserTurn(Message("user", said), Usage(10, 2, 1, cost=0.5))

    async def again(self, conversation: Sequence[Message], rejected: Message, faults: Sequence[str]) -> UserTurn:
        self.told.append(tuple(faults))
        return await self.reply(conversation)


def guarded(*said: str | Exception, **options: Any) -> tuple[Several, GuardedUser]:
    inner = Several(*said)
    return inner, GuardedUser(inner, TASK, **options)


async def test_what_is_right_passes_as_it_is() -> None:
    inner, user = guarded("It is 53111.")
    turn = await user.reply(ASKED)
    assert turn == UserTurn(Message("user", "It is 53111."), Usage(10, 2, 1, cost=0.5))
    assert inner.told == []
    assert user.episode_tags() == {GUARD: {"asked_again": 0, "fixed": 0, "left": []}}


async def test_a_fault_is_asked_again_counted_and_paid_for() -> None:
    inner, user = guarded("It is 99999.", "As an AI language model I cannot.", "It is 53111.")
    turn = await user.reply(ASKED)
    assert turn.message.content == "It is 53111."
    assert turn.usage == Usage(30, 6, 3, cost=1.5)
    assert inner.told[0] == ("gives an id, a name or a number other than the one in its scenario (zip '99999')",)
    assert "speaks of its part" in inner.told[1][0]
    assert user.episode_tags() == {GUARD: {"asked_again": 2, "fixed": 1, "left": []}}


async def test_what_stays_bad_is_sent_and_marks_the_episode() -> None:
    inner, user = guarded("It is 99999.", "It is 88888.", "unused", retries=1)
    turn = await user.reply(ASKED)
    assert turn.message.content == "It is 88888."
    assert inner.said == ["unused"]
    tags = user.episode_tags()
    assert tags[SPOILED] is True
    assert tags[GUARD]["left"] == [{"message": 0, "rule": "contradicts", "detail": "zip '88888'"}]
    _, kept = guarded("It is 99999.", retries=0, exclude=False)
    await kept.reply(ASKED)
    assert SPOILED not in kept.episode_tags()


async def test_only_the_named_rules_count() -> None:
    _, user = guarded("It is 99999.", rules=("leaks",))
    assert (await user.reply(ASKED)).message.content == "It is 99999."
    with pytest.raises(ConfigError, match=r"guard\.rules: there is no rule 'lies'"):
        GuardedUserFactory(find("retail-generated").place().users(), rules=("lies",))


async def test_a_failure_behind_a_fault_carries_what_the_fault_took() -> None:
    failure = InfrastructureError("gone", boundary="user")
    failure.usage = Usage(1, 0, 1)
    _, user = guarded("It is 99999.", failure)
    with pytest.raises(InfrastructureError) as caught:
        await user.reply(ASKED)
    assert caught.value.usage == Usage(11, 2, 2, cost=0.5)


async def test_a_model_is_told_what_was_wrong_and_the_conversation_does_not_keep_it() -> None:
    bodies: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Any:
        bodies.append(body)
        return text("It is 53111." if "not sent" in body["messages"][0]["content"] else "It is 99999.")

    with FakeOpenAI(answer) as server:
        settings = EndpointSettings(model="m", base_url=server.url, price=Price(1.0, 1.0))
        async with Endpoint(settings) as client:
            users = GuardedUserFactory(LLMUserFactory(client, guidelines="muarl"))
            turn = await users(TASK, seed=1).reply(ASKED)
    assert turn.message.content == "It is 53111."
    assert turn.usage.requests == 2
    first, second = bodies
    assert second["messages"][1:] == first["messages"][1:]
    system = second["messages"][0]["content"]
    assert system.startswith(first["messages"][0]["content"])
    assert "It is 99999." in system
    assert "zip '99999'" in system


async def test_users_by_rules_are_marked_only_and_slow_ones_pass_the_mark_on() -> None:
    class Liar:
        async def reply(self, conversation: Sequence[Message]) -> UserTurn:
            return UserTurn(Message("user", "It is 99999."))

        def episode_tags(self) -> Mapping[str, Any]:
            return {"traits": {"mistakes": 1.0}}

    user = SlowUser(GuardedUser(Liar(), TASK), 0.0, 0.0, seed=1)
    assert not isinstance(Liar(), AsksAgain)
    await user.reply(ASKED)
    assert isinstance(user, LeavesTags)
    assert user.episode_tags()[SPOILED] is True and user.episode_tags()["traits"] == {"mistakes": 1.0}


def episode(number: int, reward: float, *, spoiled: bool = False) -> Episode:
    tags: dict[str, Any] = {GUARD: {"asked_again": 2, "fixed": 1, "left": [{}] if spoiled else []}}
    return Episode(
        f"e{number}", "t", "retail", [Turn(Message("user", "hi"))], StopReason.USER_STOP, group="g",
        verdict=Verdict(reward), tags=tags | ({SPOILED: True} if spoiled else {}),
    )  # fmt: skip


def test_training_leaves_out_what_a_user_spoiled() -> None:
    episodes = [episode(0, 1.0), episode(1, 0.0), episode(2, 0.0, spoiled=True)]
    (group,) = collect_groups(episodes, 3, minimum=2).kept
    assert ([e.id for e in group.episodes], group.excluded) == (["e0", "e1"], 1)
    assert collect_groups(episodes, 3, minimum=3).kept == []
    group_samples(episodes, drop_zero_variance=False)
    assert ["advantage" in e.tags for e in episodes] == [True, True, False]
    figures = episode_metrics(episodes)
    assert figures["user_guard/asked_again"] == 2
    assert figures["user_guard/spoiled"] == pytest.approx(1 / 3)


def test_the_settings_are_off_by_default_and_know_all_rules() -> None:
    assert UserConfig().guard == GuardConfig() and not GuardConfig().active
    assert set(get_args(UserRule)) == RULES.keys() - {"judge"}
    assert GuardConfig().rules == GUARDED
    off = load_config("cpu", ["user.kind=agenda"])
    on = load_config("cpu", ["user.guard.active=true", "user.guard.retries=1", 'user.guard.rules=["leaks"]'])
    (place,) = places = places_of(on)
    assert not isinstance(make_users(off.user, places).at(place), GuardedUserFactory)
    users = make_users(on.user, places).at(place)
    assert isinstance(users, GuardedUserFactory)
    assert (users.retries, users.rules, users.exclude) == (1, ("leaks",), True)
    assert users.name.endswith(", guarded")


def test_a_guard_changes_nothing_about_clean_users() -> None:
    place = find("retail-generated").place()
    tasks = find("retail-generated").make_tasks("test", 6)
    plain = place.users()
    for agent in (place.expert_agent(), IdleAgent()):
        pairs = [
            asyncio.run(play_in(Places([place]), agent, users, tasks, 1, seed=1)).episodes
            for users in (plain, GuardedUserFactory(plain, tools=place.user_tools))
        ]
        for before, after in zip(*pairs, strict=True):
            assert json.dumps([m.to_json() for m in before.messages]) == json.dumps(
                [m.to_json() for m in after.messages]
            )
            assert GUARD not in before.tags
            assert after.tags[GUARD] == {"asked_again": 0, "fixed": 0, "left": []}
            assert SPOILED not in after.tags


def test_a_broken_endpoint_is_still_infrastructure() -> None:
    async def tried() -> None:
        with FakeOpenAI(status(500)) as server:
            async with Endpoint(EndpointSettings(model="m", base_url=server.url, attempts=1)) as client:
                await GuardedUserFactory(LLMUserFactory(client, guidelines="muarl"))(TASK, seed=0).reply(ASKED)

    with pytest.raises(InfrastructureError):
        asyncio.run(tried())
