"""Conversations led from outside: the same as natively, message by message, and closed in every case."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import muarl
from muarl.agents.outside import SampledTokens, as_message
from muarl.basics.errors import ConfigError, DataError, InfrastructureError
from muarl.domains.base import World
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.types.chat import Message, to_openai
from support.scripted_replies import BROKEN, Outcome, Replies, from_outside, natively, written
from support.toy_shop import Lines, Toy, toy_task
from support.waiting import happened, settled

LOOK = {
    "role": "assistant",
    "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": '{"order_id": "#W12"}'}}],
}


class Opened(Toy):
    """A toy shop that knows which of its worlds are open."""

    name = "toy"
    live = 0

    def world(self, task: Task | None = None) -> World:
        return _World(self, task)


class _World(World):
    async def aopen(self) -> None:
        Opened.live += 1

    async def aclose(self) -> None:
        Opened.live -= 1


def toy(*lines: Any, **more: Any) -> tuple[Environment, dict[str, Any]]:
    """An environment of one task, and the users that say these lines."""

    class Users:
        name = "lines"

        def __call__(self, task: Task, *, seed: int) -> Lines:
            return Lines(*lines)

    environment = Environment(name="toy", domain=Opened, tasks={"test": [toy_task("a"), toy_task("b")]}, **more)
    return environment, {"users": Users()}


@pytest.mark.parametrize("name", ["retail-generated", "airline-generated", "telecom-generated"])
@pytest.mark.parametrize("form", [to_openai, lambda message: message], ids=["openai", "messages"])
async def test_the_same_replies_give_the_same_as_natively(name: str, form: Any) -> None:
    environment = find(name)
    tasks = environment.make_tasks("test", 9)
    replies = await asyncio.to_thread(written, environment, tasks)
    native = await asyncio.to_thread(natively, environment, tasks, Replies(replies), 3)
    assert {e.reward for e in native.values()} == {0.0, 1.0}
    for task in tasks:
        episode = await from_outside(environment, task, replies[task.id], 3, form)
        assert Outcome.of(episode) == Outcome.of(native[task.id])


async def test_an_observation_is_what_is_new_and_the_whole_conversation_can_be_had() -> None:
    environment, options = toy("Cancel #W12.", "Thanks.")
    session = environment.start("test:1", seed=4, **options)
    with pytest.raises(RuntimeError, match="await"):
        _ = session.observation
    await session
    assert session.task.id == "b" and session.waiting
    seen = session.observation
    assert seen.openai_messages == [{"role": "user", "content": "Cancel #W12."}]
    assert [t["function"]["name"] for t in seen.openai_tools] == ["look", "cancel", "transfer_to_human_agents"]
    seen = await session.step(LOOK)
    assert seen.openai_messages == [{"role": "tool", "content": "pending", "tool_call_id": "1", "name": "look"}]
    seen = await session.step("<think>hm</think>Done.")
    assert [m.content for m in seen.messages] == ["Thanks."] and not seen.done
    roles = [m["role"] for m in session.messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert session.messages[4]["content"] == "Done."
    with pytest.raises(RuntimeError, match="not over"):
        _ = session.result
    seen = await session.step("Bye.")
    assert seen.done and session.done and [m.content for m in seen.messages] == ["###STOP###"]
    assert session.verdict.reward == session.result.reward == 1.0
    assert session.result.messages == session.messages and session.result.stop == "user_stop"
    with pytest.raises(RuntimeError, match="over"):
        await session.step("Hello?")
    assert Opened.live == 0


async def test_what_is_no_message_is_refused_and_nothing_was_said() -> None:
    environment, options = toy("Hi.")
    async with environment.start("test:0", **options) as session:
        for said, words in (
            ({"role": "user", "content": "x"}, "message.role: must be 'assistant'"),
            ({"tool_calls": "look"}, "message: tool_calls are not a list"),
            ({"tool_calls": [{"name": "look"}]}, "tool call 0 has no function"),
            ({"choices": []}, "message.choices: give the assistant message itself"),
            (7, "must be a text or an assistant message, not a int"),
            (Message("user", "x"), "role must be 'assistant'"),
        ):
            with pytest.raises(ConfigError, match=words):
                await session.step(said)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="stop: must be"):
            await session.step("x", stop="user_stop")
        assert session.waiting
        broken = await session.step({"tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{"}}]})
        assert broken.messages[0].error and "could not be read" in (broken.messages[0].content or "")
        await session.step("", stop="turn_length")
        assert session.result.stop == "turn_length" and session.result.reward == 0.0
        assert session.result.parts == {"finished": 0.0}


async def test_a_failure_of_the_user_is_typed_and_never_a_reward() -> None:
    wrong = InfrastructureError("no answer", boundary="user", retryable=False)
    environment, options = toy("Hi.", wrong)
    async with environment.start("test:0", **options) as session:
        seen = await session.step("What is it?")
        assert seen.done and session.failure is not None and session.result.reward is None
        assert (session.failure.boundary, session.failure.retryable) == ("user", False)
        with pytest.raises(InfrastructureError, match="no answer"):
            _ = session.verdict
    environment, options = toy(ValueError("a bug"))
    async with environment.start("test:0", **options) as session:  # before the agent's first turn
        assert session.done and session.failure is not None and session.failure.boundary == "user"
    assert Opened.live == 0


async def test_closing_and_cancelling_free_the_world_and_the_user() -> None:
    closed = []

    class User(Lines):
        def close(self) -> None:
            closed.append(self)

    class Users:
        name = "users"

        def __call__(self, task: Task, *, seed: int) -> Lines:
            return User("Hi.", 3600.0)

    environment, _ = toy()
    session = await environment.start("test:0", users=Users())
    assert Opened.live == 1
    await session.aclose()
    await session.aclose()
    assert (Opened.live, len(closed)) == (0, 1) and session.done and session.episode is None
    with pytest.raises(RuntimeError, match="was closed"):
        _ = session.result
    with pytest.raises(RuntimeError, match="over"):
        await session.step("Hello?")

    async with environment.start("test:0", users=Users()) as session:
        step = asyncio.ensure_future(session.step("What is it?"))  # the user takes an hour
        await settled()
        assert not session.waiting and not step.done()
        with pytest.raises(RuntimeError, match="not the agent's turn"):
            await session.step("Hello?")
        step.cancel()
        await settled()
        assert not session.done  # whoever stops waiting does not end the conversation
    assert (Opened.live, len(closed)) == (0, 2)


async def test_a_step_that_nobody_waited_for_can_be_looked_at_later() -> None:
    environment, options = toy("Hi.", 0.01, "Well?")
    async with environment.start("test:0", **options) as session:
        step = asyncio.ensure_future(session.step("What is it?"))
        await settled()
        step.cancel()
        await happened(lambda: session.waiting)
        assert [m.content for m in session.observation.messages] == ["Well?"]


async def test_exact_tokens_are_kept_with_the_episode() -> None:
    environment, options = toy("Hi.", "Go on.")
    async with environment.start("test:0", **options) as session:
        await session.step("One.", tokens=SampledTokens([1, 2], [3, 4], [-0.1, -0.2], 7))
        with pytest.raises(ConfigError, match="prompt_ids: they do not begin"):
            await session.step("Two.", tokens=SampledTokens([1, 2, 4, 4, 5], [6], [-0.3]))
        with pytest.raises(ConfigError, match="logprobs: there must be one"):
            await session.step("Two.", tokens=SampledTokens([1, 2, 3, 4, 5], [6], []))
        assert session.waiting
        await session.step("Two.", tokens=SampledTokens([1, 2, 3, 4, 5], [6], [-0.3], 8))
        episode = session.episode
    assert episode is not None and episode.tokens is not None
    assert episode.tokens.ids == [1, 2, 3, 4, 5, 6]
    assert episode.tokens.loss_mask == [False, False, True, True, False, True]
    assert [(t.span, t.version) for t in episode.turns if t.span] == [((2, 4), 7), ((5, 6), 8)]


async def test_two_hundred_at_once_mix_nothing_up() -> None:
    environment = find("retail-generated")
    tasks = environment.make_tasks("test", 20)
    replies = await asyncio.to_thread(written, environment, tasks)
    native = await asyncio.to_thread(natively, environment, tasks, Replies(replies), 3)
    found = await asyncio.gather(
        *(from_outside(environment, task, replies[task.id], 3) for _ in range(10) for task in tasks)
    )
    assert [Outcome.of(e) for e in found] == [Outcome.of(native[e.task_id]) for e in found]


async def test_what_cannot_be_played_is_refused_before_it_begins() -> None:
    shop, clinic = find("retail-generated"), find("clinic-generated")
    with pytest.raises(ConfigError, match="is of clinic-generated, not of retail-generated"):
        shop.start(clinic.task("test", 0))
    with pytest.raises(ConfigError, match="is no address of a task"):
        shop.start("test")
    lonely = Environment(name="toy", domain=Toy, tasks={"test": [toy_task()]})
    with pytest.raises(ConfigError, match="toy has no rule-based user"):
        lonely.start("test:0")
    with pytest.raises(ConfigError, match="the split test of toy has no task number 5"):
        lonely.start("test:5")
    worded = Task("w", "toy", "x", (), reward_basis=("NL_ASSERTION",), nl_assertions=("was polite",))
    with pytest.raises(ConfigError, match="was polite.*give a judge"):
        lonely.start(worded, users=Lines())  # type: ignore[arg-type]
    failing = Task("f", "toy", "x", (muarl.Action("cancel", {"order_id": "#W13"}),))
    with pytest.raises(DataError, match="cancel"):
        lonely.start(failing, users=Lines())  # type: ignore[arg-type]


def test_a_broken_call_stays_broken_in_openais_form() -> None:
    (call,) = as_message(to_openai(Message("assistant", None, tool_calls=(BROKEN,)))).tool_calls
    assert call.invalid is not None and call.raw == BROKEN.raw


@pytest.mark.parametrize("name", ["retail-generated", "bfcl-generated"])
async def test_a_copy_goes_on_by_itself_and_answers_the_same(name: str) -> None:
    environment = find(name)
    (task,) = environment.make_tasks("test", 1)
    said = (await asyncio.to_thread(written, environment, [task]))[task.id]
    async with environment.start(task, seed=3) as session:
        with pytest.raises(RuntimeError, match="it is not the agent's turn"):
            environment.start(task, seed=3).fork()
        first, *rest = said
        await session.step(first)
        if session.done:
            return
        copy, left = await session.fork(), await session.fork()
        assert copy.messages == session.messages and copy.observation == session.observation
        assert copy.observation.tools == session.observation.tools and copy.task is task
        for message in [*rest, *["Anything else?"] * 20]:
            if session.done:
                break
            assert await session.step(message) == await copy.step(message)
        assert session.done and copy.done and copy.messages == session.messages
        assert copy.result.reward == session.result.reward and copy.verdict == session.verdict
        assert not left.done and len(left.messages) < len(copy.messages), "what the others said is no concern of it"
        with pytest.raises(RuntimeError, match="the conversation is over"):
            session.fork()
        await left.aclose()
        assert left.done
