"""Conversations that begin as another one's record says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from loop_kit import Puppet, say
from muarl.agents.base import Agent
from muarl.agents.sampled import SampledAgent
from muarl.basics.errors import ConfigError
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.environments.place import Place
from muarl.environments.registry import find
from muarl.rollouts.beginnings import Beginning
from muarl.rollouts.episode_runner import EpisodeRunner, RolloutRequest, requests_for
from muarl.types.episode import BRANCH, Episode, StopReason
from muarl.users.base import UserFactory
from muarl.users.guard import GuardedUserFactory
from muarl.users.llm import LLMUserFactory
from support.fake_openai import FakeOpenAI, text


def place() -> Place:
    return find("retail-generated").place(size="tiny")


def runner(agent: Agent, users: UserFactory | None = None) -> EpisodeRunner:
    where = place()
    return where.runner(agent, where.users() if users is None else users)


async def stems(agent: SampledAgent, count: int = 3) -> list[tuple[RolloutRequest, Episode]]:
    requests = requests_for(find("retail-generated").make_tasks("train", count, size="tiny"), 1, seed=1)
    return [(request, await runner(agent).play(request)) for request in requests]


def sampled_turns(episode: Episode) -> list[int]:
    return [n for n, turn in enumerate(episode.turns) if turn.span is not None]


def branch(request: RolloutRequest, beginning: Beginning, seed: int | None = None) -> RolloutRequest:
    own = request.seed if seed is None else seed
    return replace(request, number=1, seed=own, user_seed=request.seed, beginning=beginning)


async def test_with_the_same_seed_everything_is_as_it_was_and_the_beginning_costs_nothing(
    base_agent: SampledAgent,
) -> None:
    for request, stem in await stems(base_agent):
        assert stem.tokens is not None
        turns = sampled_turns(stem)
        for number, turn in enumerate(turns):
            again = await runner(base_agent).play(branch(request, Beginning.of_turn(stem, turn)))
            assert again.tokens is not None and again.tokens.ids == stem.tokens.ids
            assert again.tokens.loss_mask == stem.tokens.loss_mask and again.tokens.versions == stem.tokens.versions
            assert again.messages == stem.messages and again.verdict == stem.verdict
            assert again.tags[BRANCH] == {"of": stem.id, "turn": turn, "agent_turn": number}
            fresh = [t.span for t in stem.turns[turn:] if t.span is not None]
            assert again.agent_usage.completion_tokens == sum(b - a for a, b in fresh)
            assert again.agent_usage.requests == len(turns) - number
            assert again.user_usage.requests == 0


async def test_with_another_seed_it_goes_on_otherwise(base_agent: SampledAgent) -> None:
    differing = 0
    for request, stem in await stems(base_agent):
        for turn in sampled_turns(stem)[1:]:
            other = await runner(base_agent).play(branch(request, Beginning.of_turn(stem, turn), seed=7))
            assert other.messages[:turn] == stem.messages[:turn] and other.verdict is not None
            differing += other.messages != stem.messages
    assert differing > 3


async def test_a_record_survives_its_file(base_agent: SampledAgent) -> None:
    ((_, stem),) = await stems(base_agent, 1)
    turn = sampled_turns(stem)[-1]
    read = Episode.from_json(stem.to_json())
    assert Beginning.of_turn(read, turn) == Beginning.of_turn(stem, turn)


async def test_a_world_that_answers_otherwise_ends_the_episode_as_nobody_s_failure(base_agent: SampledAgent) -> None:
    ((request, stem), *_) = [pair for pair in await stems(base_agent) if len(sampled_turns(pair[1])) > 2]
    beginning = Beginning.of_turn(stem, sampled_turns(stem)[-1])
    contexts = [*beginning.contexts[:-1], (*beginning.contexts[-1][:-1], 5)]
    end = await runner(base_agent).play(branch(request, replace(beginning, contexts=tuple(contexts))))
    assert end.stop is StopReason.INFRASTRUCTURE and end.tags["boundary"] == "world" and not end.tags["retryable"]
    assert end.error is not None and f"does not begin as {stem.id} did" in end.error


@pytest.mark.parametrize("guarded", [False, True])
async def test_a_model_that_plays_the_user_is_not_asked_for_the_beginning_again(
    base_agent: SampledAgent, guarded: bool
) -> None:
    with FakeOpenAI([text("I want to cancel order #W1000001."), *[text(f"Line {n}.") for n in range(40)]]) as server:
        endpoint = Endpoint(EndpointSettings(model="m", base_url=server.url))
        users: UserFactory = LLMUserFactory(endpoint)
        if guarded:
            users = GuardedUserFactory(users, rules=("empty",))
        (request,) = requests_for(find("retail-generated").make_tasks("train", 1, size="tiny"), 1, seed=1)
        stem = await runner(base_agent, users).play(request)
        asked = len(server.requests)
        spoke = [n for n, turn in enumerate(stem.turns) if turn.message.role == "user"]
        turn = next(n for n in sampled_turns(stem) if n > spoke[1])
        heard = sum(n < turn for n in spoke)
        again = await runner(base_agent, users).play(branch(request, Beginning.of_turn(stem, turn)))
        await endpoint.aclose()
    said = sum(t.message.role == "user" for t in again.turns)
    assert heard > 1 and len(server.requests) - asked == said - heard
    assert again.messages[:turn] == stem.messages[:turn] and again.user_usage.requests == said - heard


async def test_an_agent_without_tokens_cannot_take_a_beginning(base_agent: SampledAgent) -> None:
    ((request, stem),) = await stems(base_agent, 1)
    begun = branch(request, Beginning.of_turn(stem, sampled_turns(stem)[0]))
    with pytest.raises(ConfigError, match="the agent puppet cannot go on with another's beginning"):
        await runner(Puppet(say("Hello."))).play(begun)
    for turn in (0, len(stem.turns), -1):
        with pytest.raises(ValueError, match="is none that a sampler of ours has said"):
            Beginning.of_turn(stem, turn)


def test_contexts_that_were_written_anew_are_those_that_the_sampler_saw() -> None:
    from muarl.types.chat import Message
    from muarl.types.episode import TokenTrace, Turn

    trace = TokenTrace()
    spans: list[tuple[int, int]] = []
    for ids in ([1, 2], [3], [1, 2, 9]):
        if ids[0] == 1 and len(trace):
            trace.restart()
        trace.append_given(ids)
        spans.append(trace.append_sampled([50], [-0.5], 4))
    turns = [Turn(Message("assistant", "x"), span=span, version=4) for span in spans]
    episode = Episode("e", "t", "d", turns, StopReason.USER_STOP, tokens=trace)
    contexts: Sequence[tuple[int, ...]] = Beginning.of_turn(episode, 2).contexts
    assert contexts == ((1, 2), (1, 2, 50, 3), (1, 2, 9))
