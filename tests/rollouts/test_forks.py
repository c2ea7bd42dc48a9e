"""Copies of a conversation under way: a copy that is played on alone gives what the original gives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from loop_kit import Puppet, say
from muarl.agents.sampled import SampledAgent
from muarl.basics.errors import ConfigError
from muarl.config.section import TRAIT_LEVELS
from muarl.domains.scripted_expert import SLOPPY
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.rollouts.conversation import Conversation, run_episode
from muarl.types.episode import Episode
from muarl.users.agenda import AgendaUserFactory
from muarl.users.base import User
from muarl.users.human import HumanUser
from muarl.users.traits.levels import TraitRanges
from support.environments import MADE, ON_SERVERS
from support.kit import rehearsed

QUICK = ("retail-generated", "bfcl-generated", "telecom-generated")
EVERY = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MADE]
MakeUser = Callable[[Task], User]


def said(episode: Episode) -> list[Any]:
    return [(m.role, m.content, m.tool_calls, m.error) for m in episode.messages]


async def with_copies(
    environment: Environment, task: Task, make_user: MakeUser | None = None
) -> tuple[Episode, list[tuple[Episode, str]], str]:
    """An expert's episode with the state that it leaves, and the same of its copies at each of the agent's turns."""
    place = environment.place()
    runner = place.runner(place.expert_agent(SLOPPY), place.users())
    copies: list[Conversation] = []
    world = environment.make_domain().world(task)
    episode = await run_episode(
        task,
        world,
        runner.agent,
        runner.make_user(task, seed=5) if make_user is None else make_user(task),
        runner.limits,
        seed=7,
        rules=runner.rules,
        before_agent=lambda live: copies.append(live.fork(f"copy {len(copies)}")),
    )
    ends = [(await copy.play(), copy.world.digest()) for copy in reversed(copies)]
    return episode, ends, world.digest()


def check(environment: Environment, tasks: list[Task], make_user: MakeUser | None = None) -> int:
    """How many copies there were, all of which ended as their originals."""
    count = 0
    for task in tasks:
        episode, ends, digest = asyncio.run(with_copies(environment, task, make_user))
        assert all(said(end) == said(episode) and end.stop is episode.stop for end, _ in ends)
        assert {left for _, left in ends} <= {digest}
        count += len(ends)
    return count


@pytest.mark.parametrize("name", EVERY)
def test_in_every_environment(name: str) -> None:
    environment = find(name)
    assert check(environment, environment.make_tasks("train", 4)) > 8


@pytest.mark.parametrize("level", ["typical", "hard"])
def test_users_with_traits(level: str) -> None:
    environment = find("retail-generated")
    assert environment.rule_based_user is not None
    users = AgendaUserFactory(environment.rule_based_user, traits=TraitRanges.of(TRAIT_LEVELS[level]))
    assert check(environment, environment.make_tasks("train", 6), lambda task: users(task, seed=5)) > 12


@pytest.mark.parametrize("name", [ON_SERVERS[0], *(pytest.param(n, marks=pytest.mark.slow) for n in ON_SERVERS[1:])])
def test_a_world_on_a_server_cannot_be_copied(name: str) -> None:
    world = find(name).make_domain().world()
    with pytest.raises(ConfigError, match=f"a world of {name} cannot be copied: its state is that of a server"):
        world.fork()
    assert rehearsed(name, "tiny").make_domain("tiny").world().fork().digest()


async def test_who_cannot_be_copied_is_named() -> None:
    environment = find("retail-generated")
    (task,) = environment.make_tasks("train", 1)

    async def line() -> str:
        return "I want to cancel an order."

    async def held(make_user: MakeUser) -> None:
        await with_copies(environment, task, make_user)

    users = environment.place().users()

    class Calling:
        """A user that holds what has no copy."""

        def __init__(self, user: User) -> None:
            self.reply, self.line = user.reply, open("/dev/null")  # noqa: SIM115

    with pytest.raises(ConfigError, match="the user HumanUser cannot be copied: it is a person"):
        await held(lambda task: HumanUser(line))
    with pytest.raises(ConfigError, match=r"the user Calling cannot be copied: .*TextIOWrapper.*__deepcopy__"):
        await held(lambda task: Calling(users(task, seed=5)))

    place = environment.place()
    agent = Puppet(say("Hello."))
    runner = place.runner(agent, users)
    live: list[Conversation] = []
    await run_episode(
        task, place.domain.world(task), agent, users(task, seed=1), runner.limits, rules=runner.rules,
        before_agent=live.append,
    )  # fmt: skip
    live[0].speaker = "assistant"
    with pytest.raises(ConfigError, match="the agent puppet cannot be copied: its sessions have no method fork"):
        live[0].fork("copy")
    live[0].speaker = "user"
    with pytest.raises(RuntimeError, match="where it is the agent's turn"):
        live[0].fork("copy")


async def test_a_model_goes_on_id_for_id_and_with_another_seed_otherwise(base_agent: SampledAgent) -> None:
    environment = find("retail-generated")
    place = environment.place(size="tiny")
    runner = place.runner(base_agent, place.users())
    differing = 0
    for task in environment.make_tasks("train", 3, size="tiny"):
        alike: list[Conversation] = []
        others: list[Conversation] = []

        def fork(live: Conversation, alike: list[Conversation] = alike, others: list[Conversation] = others) -> None:
            alike.append(live.fork(f"a{len(alike)}"))
            others.append(live.fork(f"b{len(others)}", seed=99))

        episode = await run_episode(
            task, place.domain.world(task), base_agent, runner.make_user(task, seed=5), runner.limits, seed=7,
            rules=runner.rules, before_agent=fork,
        )  # fmt: skip
        assert episode.tokens is not None and len(alike) > 2
        for copy in alike:
            end = await copy.play()
            assert end.tokens is not None and end.tokens.ids == episode.tokens.ids and said(end) == said(episode)
            assert end.agent_usage.requests <= episode.agent_usage.requests
        for n, copy in enumerate(others):
            end = await copy.play()
            assert end.tokens is not None
            spans = [turn.span for turn in episode.turns if turn.span is not None]
            assert end.tokens.ids[: spans[n][0]] == episode.tokens.ids[: spans[n][0]]
            differing += end.tokens.ids != episode.tokens.ids
    assert differing > 3
