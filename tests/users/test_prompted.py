"""The user that a benchmark prompts in its own way: what the model is sent, and what its faults become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from loop_kit import Puppet
from muarl.basics.errors import InfrastructureError
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings, Price
from muarl.rollouts.conversation import run_episode
from muarl.rollouts.rules import Rules
from muarl.types.chat import GREETING, Message
from muarl.types.episode import StopReason
from muarl.users.base import HoldsSomething
from muarl.users.llm import PromptedUser
from support.fake_openai import CUT, Answer, FakeOpenAI, completion, nonsense, status, text
from support.toy_shop import Toy, toy_task

KEY = "sk-the-right-key"


def endpoint(server: FakeOpenAI, **options: Any) -> Endpoint:
    async def no_wait(_: float) -> None: ...

    return Endpoint(EndpointSettings(model="m", base_url=server.url, **({"attempts": 2} | options)), sleep=no_wait)


def prompt(conversation: Sequence[Message]) -> list[Mapping[str, Any]]:
    """In the manner of ACEBench: what the user itself said has role system."""
    roles = {"assistant": "user", "user": "system"}
    said = [{"role": roles[m.role], "content": m.content or ""} for m in conversation]
    return [{"role": "system", "content": "You are Mia."}, *said]


async def test_the_model_is_sent_what_the_benchmark_makes_of_the_conversation() -> None:
    with FakeOpenAI([text("I want a lamp."), text("finish conversation")]) as server:
        async with endpoint(server, temperature=0.3) as client:
            user = PromptedUser(client, prompt)
            agent = Puppet("Which one?", "Bye.")
            rules = Rules(stop_words=("finish conversation",))
            episode = await run_episode(toy_task(), Toy().world(), agent, user, rules=rules)
    assert episode.stop is StopReason.USER_STOP and not isinstance(user, HoldsSomething)
    assert [b["messages"] for b in server.bodies] == [
        [{"role": "system", "content": "You are Mia."}, {"role": "user", "content": GREETING}],
        [
            {"role": "system", "content": "You are Mia."},
            {"role": "user", "content": GREETING},
            {"role": "system", "content": "I want a lamp."},
            {"role": "user", "content": "Which one?"},
        ],
    ]
    assert all("tools" not in b and "seed" not in b and b["temperature"] == 0.3 for b in server.bodies)


async def test_what_is_sent_is_not_what_is_kept() -> None:
    kept = [{"role": "system", "content": "You are Mia."}]
    with FakeOpenAI(text("Hello.")) as server:
        async with endpoint(server) as client:
            turn = await PromptedUser(client, lambda _: kept).reply([])
    assert turn.message == Message("user", "Hello.")
    assert kept == [{"role": "system", "content": "You are Mia."}]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (text(""), ""),
        (completion(None), ""),
        (text(" \n"), " \n"),
        (text("<think>Shall I?</think>\nYes."), "Yes."),
        (text("cut in the mid", finish_reason="length"), "cut in the mid"),
        (completion("Yes.", tool_calls=[{"id": "c", "function": {"name": "f", "arguments": "{}"}}]), "Yes."),
    ],
)
async def test_whatever_it_answers_is_what_it_says(answer: Answer, said: str) -> None:
    with FakeOpenAI(answer) as server:
        async with endpoint(server, price=Price(2.0, 8.0)) as client:
            turn = await PromptedUser(client, prompt).reply([Message("assistant", "Hi")])
    assert turn.message == Message("user", said) and not turn.tools
    assert len(server.requests) == 1, "nothing is asked for again"
    assert (turn.usage.requests, turn.usage.cost) == (1, pytest.approx(6e-5))


@pytest.mark.parametrize(
    ("fault", "retryable", "requests"),
    [
        (status(500), True, 2),
        (status(429), True, 2),
        (CUT, True, 2),
        (nonsense(), True, 2),
        (status(401, message=f"Incorrect API key: {KEY}"), False, 1),
        (status(404, code="model_not_found"), False, 1),
    ],
)
async def test_a_failing_model_is_infrastructure_on_the_users_side(
    fault: Answer, retryable: bool, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeOpenAI(fault) as server:
        async with endpoint(server) as client:
            with pytest.raises(InfrastructureError) as caught:
                await PromptedUser(client, prompt).reply([Message("assistant", "Hi")])
            assert len(server.requests) == requests
            episode = await run_episode(toy_task(), Toy().world(), Puppet("x"), PromptedUser(client, prompt))
    assert (caught.value.boundary, caught.value.retryable) == ("user", retryable)
    assert KEY not in str(caught.value)
    assert episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "user"


async def test_a_fault_that_passes_is_not_noticed() -> None:
    with FakeOpenAI([status(500), text("Hello.")]) as server:
        async with endpoint(server) as client:
            turn = await PromptedUser(client, prompt).reply([])
    assert turn.message.content == "Hello." and turn.usage.retries == 1


async def test_a_prompt_that_cannot_be_made_is_the_users_failure() -> None:
    def broken(conversation: Sequence[Message]) -> list[Mapping[str, Any]]:
        raise KeyError("scenario")

    with FakeOpenAI(text("ok")) as server:
        async with endpoint(server) as client:
            episode = await run_episode(toy_task(), Toy().world(), Puppet("x"), PromptedUser(client, broken))
    assert episode.tags["boundary"] == "user" and "KeyError" in (episode.error or "") and not server.requests
