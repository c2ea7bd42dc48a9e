"""The user that a model in this process plays: what it sees, how long it may speak, seeds, failures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from loop_kit import Puppet, RecordingSampler, call, call_json, say, small_tokenizer
from muarl.basics.errors import InfrastructureError
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.episode_runner import EpisodeRunner, requests_for
from muarl.rollouts.rollout import LocalExecutor, rollout
from muarl.rollouts.rules import Limits
from muarl.types.chat import GREETING, Message
from muarl.types.episode import Episode, StopReason, Verdict
from muarl.users.base import AsksAgain, HoldsSomething, UserFactory
from muarl.users.sampled import SampledUserFactory, from_the_users_chair
from support.toy_shop import Toy, toy_task

CHAT = Qwen3Format(small_tokenizer())
DOMAIN = Toy()
TASK = replace(toy_task(), scenario="You are Mia. You want to be rid of order #W12.")


def model(*replies: Any, **options: Any) -> tuple[SampledUserFactory, RecordingSampler]:
    sampler = RecordingSampler(CHAT, *replies)
    return SampledUserFactory(sampler, CHAT, **options), sampler


def play(factory: SampledUserFactory, *acts: Any, seed: int = 1, **options: Any) -> Episode:
    return asyncio.run(run_episode(TASK, DOMAIN.world(), Puppet(*acts), factory(TASK, seed=seed), **options))


def test_it_speaks_until_it_stops() -> None:
    factory, sampler = model("Cancel #W12.", "Yes, please.", "Thanks. ###STOP###")
    episode = play(factory, say(None, call("look", order_id="#W12")), "Shall I?", "It is done.")
    assert episode.stop is StopReason.USER_STOP
    assert [m.content for m in episode.messages if m.role == "user"] == [
        "Cancel #W12.",
        "Yes, please.",
        "Thanks. ###STOP###",
    ]
    prompts = [ids for _, ids, _ in sampler.seen]
    for before, gave, after in zip(prompts, sampler.gave, prompts[1:], strict=False):
        assert after[: len(before) + len(gave.ids)] == before + gave.ids, "nothing is read anew"
    shown = CHAT.text(prompts[-1])
    assert shown.count(TASK.scenario) == 1 and shown.count(GREETING) == 1
    assert "look" not in shown and "pending" not in shown, "the agent's calls are none of its business"
    assert shown.index(GREETING) < shown.index("Cancel #W12.<|im_end|>") < shown.index("Shall I?")
    assert episode.user_usage.requests == 3
    assert episode.user_usage.completion_tokens == sum(len(g.ids) for g in sampler.gave)
    assert episode.user_usage.prompt_tokens == sum(map(len, prompts))
    assert episode.tokens is None, "a user's tokens are no agent's"


@pytest.mark.parametrize("retryable", [True, False])
def test_what_its_engine_fails_at_is_the_users_failure(retryable: bool) -> None:
    factory, _ = model("Hm.", InfrastructureError("out of memory", boundary="agent", retryable=retryable))
    episode = play(factory, "Well?")
    assert episode.stop is StopReason.INFRASTRUCTURE
    assert (episode.tags["boundary"], episode.tags["retryable"]) == ("user", retryable)
    assert episode.error == "user: out of memory"


def test_it_is_closed_with_its_episode() -> None:
    factory, sampler = model("Hm.", InfrastructureError("engine gone", boundary="user"))
    assert isinstance(factory(TASK, seed=0), HoldsSomething)
    episode = play(factory, "Well?")
    assert episode.stop is StopReason.INFRASTRUCTURE and "engine gone" in (episode.error or "")
    session = sampler.seen[0][0]
    assert sampler.closed == [session]


def test_seeds_follow_from_the_users_and_the_factorys() -> None:
    def drawn(seed: int, own: int) -> list[int | None]:
        factory, sampler = model("a", "b", "c ###STOP###", seed=own)
        play(factory, "Hm.", seed=seed)
        return [params.seed for _, _, params in sampler.seen]

    first = drawn(1, 0)
    assert len(set(first)) == 3 and drawn(1, 0) == first
    assert set(first).isdisjoint(drawn(2, 0)) and set(first).isdisjoint(drawn(1, 5))


def test_sampling_parameters_reach_the_sampler() -> None:
    factory, sampler = model("###STOP###", temperature=0.25, turn_tokens=17, name="Mia")
    assert factory.name == "Mia" and model("x")[0].name == "user model"
    play(factory, "Hm.")
    params = sampler.seen[0][2]
    assert (params.temperature, params.max_tokens, params.stop_ids) == (0.25, 17, CHAT.stop_ids)


def test_a_message_that_was_cut_is_closed_before_the_conversation_goes_on() -> None:
    factory, sampler = model("word " * 30, "###STOP###", turn_tokens=10)
    episode = play(factory, "Pardon?")
    first = episode.messages[1].content
    assert first and first == CHAT.text(sampler.gave[0].ids).strip() and len(sampler.gave[0].ids) == 10
    end = CHAT.stop_ids[0]
    before, after = sampler.seen[0][1], sampler.seen[1][1]
    assert after[: len(before) + 10] == before + sampler.gave[0].ids and after[len(before) + 10] == end


def test_a_conversation_that_outgrows_its_context_is_given_up() -> None:
    factory, sampler = model("Hm.", context=200)
    episode = play(factory, "What do you mean? " * 3, limits=Limits(turns=None))
    assert episode.stop is StopReason.USER_STOP and episode.messages[-1].content == "###STOP###"
    assert len(sampler.seen) > 1 and all(len(ids) + p.max_tokens <= 200 for _, ids, p in sampler.seen)
    assert episode.turns[-1].message == Message("user", "###STOP###")


def test_it_has_no_tools() -> None:
    factory, _ = model("Wait. " + call_json("look", order_id="#W12"), "###STOP###")
    episode = play(factory, "Hm.")
    assert episode.messages[1] == Message("user", "Wait.") and not any(m.role == "tool" for m in episode.messages)


@pytest.mark.parametrize("reply", ["", call_json("look", order_id="#W12")])
def test_a_user_model_with_nothing_to_say_hangs_up(reply: str) -> None:
    episode = play(model(reply)[0], "Hm.")
    assert episode.stop is StopReason.USER_STOP and episode.messages[-1].content == "###STOP###"


async def test_many_users_share_one_model() -> None:
    factory, sampler = model("Cancel #W12.", "###STOP###")
    users: UserFactory = factory
    runner = EpisodeRunner(
        make_world=DOMAIN.world, agent=Puppet("Done."), make_user=users, score=lambda *_: Verdict(1.0)
    )
    result = await rollout(requests_for([TASK], 5, seed=0), LocalExecutor(runner.play))
    assert [e.stop for e in result.episodes] == [StopReason.USER_STOP] * 5
    assert {e.user for e in result.episodes} == {"user model"}
    sessions = {session for session, _, _ in sampler.seen}
    assert len(sessions) == 5 and sorted(sampler.closed) == sorted(s for s in sessions if s)


async def test_another_message_takes_the_place_of_the_last_one_in_context_and_check() -> None:
    noted: list[str] = []

    class Check:
        def hears(self, text: str) -> None:
            noted.append(f"heard {text}")

        def problem(self, text: str) -> str | None:
            return None

        def said(self, text: str) -> None:
            noted.append(f"said {text}")

    factory, sampler = model("It is 999.", "It is W12.", "Yes.", tries=2, make_check=lambda task: Check())
    user = factory(TASK, seed=3)
    talk = [Message("assistant", "Which order?")]
    first = await user.reply(talk)
    assert isinstance(user, AsksAgain)
    second = await user.again(talk, first.message, ["wrong"])
    assert (first.message.content, second.message.content) == ("It is 999.", "It is W12.")
    talk += [second.message, Message("assistant", "Shall I?")]
    await user.reply(talk)
    assert noted == ["heard Which order?", "said It is W12.", "heard Shall I?"]
    seeds = [params.seed for _, _, params in sampler.seen]
    assert len(set(seeds)) == 3
    shown = CHAT.text(sampler.seen[-1][1])
    assert "999" not in shown and "It is W12." in shown


def test_from_the_users_chair_tools_and_prompts_are_not_to_be_seen() -> None:
    talk = [
        Message("system", "Be kind."),
        Message("assistant", "Hello!"),
        Message("user", None, (call("look"),)),
        Message("tool", "x", requestor="user"),
        Message("user", "Hi."),
        say("Secret.", call("look")),
        Message("tool", "y"),
        Message("assistant", None),
    ]
    seen = [(m.role, m.content) for m in from_the_users_chair(talk)]
    assert seen == [("user", "Hello!"), ("assistant", None), ("assistant", "Hi."), ("user", None)]


class Strict:
    """A check that refuses every message with one word in it, and notes what it was told."""

    def __init__(self, word: str) -> None:
        self.word, self.notes = word, list[tuple[str, str]]()

    def hears(self, text: str) -> None:
        self.notes.append(("hears", text))

    def problem(self, text: str) -> str | None:
        return "bad" if self.word in text else None

    def said(self, text: str) -> None:
        self.notes.append(("said", text))


class Draws(RecordingSampler):
    """Samples the given texts one after another, whatever session asks."""

    async def sample(self, prompt_ids: Any, params: Any, *, session: str | None = None) -> Any:
        self.turn[session] = len(self.gave)
        return await super().sample(prompt_ids, params, session=session)


def checked(*replies: str, tries: int, word: str = "wrong") -> tuple[SampledUserFactory, Draws, Strict]:
    sampler, strict = Draws(CHAT, *replies), Strict(word)
    return SampledUserFactory(sampler, CHAT, tries=tries, make_check=lambda task: strict), sampler, strict


def test_what_the_check_refuses_is_sampled_again_and_never_said() -> None:
    factory, sampler, strict = checked("wrong one", "wrong two", "Cancel #W12.", "Bye. ###STOP###", tries=4)
    episode = play(factory, "Done.")
    assert [m.content for m in episode.messages if m.role == "user"] == ["Cancel #W12.", "Bye. ###STOP###"]
    assert strict.notes == [("hears", GREETING), ("said", "Cancel #W12."), ("hears", "Done.")]
    assert len({params.seed for _, _, params in sampler.seen}) == 4
    assert [params.temperature for _, _, params in sampler.seen] == [1.0, 1.25, 1.5, 1.0]
    assert len({ids for _, ids, _ in sampler.seen[:3]}) == 1, "what was refused is forgotten"
    assert "wrong" not in CHAT.text(sampler.seen[3][1])
    usage = episode.user_usage
    assert (usage.requests, usage.retries) == (4, 2)
    assert usage.completion_tokens == sum(len(g.ids) for g in sampler.gave), "refused samples are paid for"
    assert (factory.counts.messages, factory.counts.refused, factory.counts.unmended) == (2, 2, 0)


def test_after_the_last_try_the_message_is_said_and_counted() -> None:
    factory, sampler, _ = checked("wrong ###STOP###", tries=3)
    episode = play(factory, "Done.")
    assert episode.stop is StopReason.USER_STOP and len(sampler.seen) == 3
    assert (factory.counts.messages, factory.counts.refused, factory.counts.unmended) == (1, 3, 1)


def test_the_first_try_is_the_one_that_there_is_without_a_check() -> None:
    replies = ("Hm.", "Bye. ###STOP###")
    factory, sampler, _ = checked(*replies, tries=8)
    plain, bare = model(*replies)
    play(factory, "Well?")
    play(plain, "Well?")
    assert [params for _, _, params in sampler.seen] == [params for _, _, params in bare.seen]
    once, alone, strict = checked("wrong ###STOP###", tries=1)
    play(once, "Well?")
    assert len(alone.seen) == 1 and not strict.notes, "one try leaves nothing to check"


def test_users_of_one_model_with_other_checks_share_its_sessions() -> None:
    factory, sampler = model("###STOP###")
    other = factory.checked(lambda task: Strict("wrong"))
    play(factory, "Hm.")
    play(other, "Hm.")
    assert len({session for session, _, _ in sampler.seen}) == 2
