"""The LLM user: exact messages, exact system prompt, seeds, tools, costs and failures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from muarl.basics.errors import DataError, InfrastructureError
from muarl.domains.tasks import Task
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings, Price
from muarl.types.chat import GREETING, Message, ToolCall, ToolSpec
from muarl.users.base import LeavesTags, UserFactory
from muarl.users.guidelines import around_scenario, load_guidelines
from muarl.users.llm import LLMUserFactory, flip_roles
from muarl.users.traits.levels import TraitRanges
from muarl_worlds import data
from support.fake_openai import FakeOpenAI, call, completion, status, text

TASK = Task(id="t1", domain="retail", scenario="Instructions:\n\tYou {are} Ann.", actions=())
RESTART = ToolSpec("restart", "Restart the phone.", {"type": "object", "properties": {}})


def endpoint(server: FakeOpenAI, **options: object) -> Endpoint:
    async def no_wait(_: float) -> None: ...

    return Endpoint(EndpointSettings(model="m", base_url=server.url, **options), sleep=no_wait)  # type: ignore[arg-type]


async def test_roles_are_flipped_and_the_system_prompt_is_the_template() -> None:
    conversation = [
        Message("assistant", GREETING),
        Message("user", "I want to return a lamp."),
        Message("assistant", "Which order?"),
    ]
    guidelines = around_scenario("own", "GUIDELINES\n")
    with FakeOpenAI(text("Order #W1.")) as server:
        async with endpoint(server) as client:
            user = LLMUserFactory(client, guidelines=guidelines)(TASK, seed=5)
            turn = await user.reply(conversation)
            await user.reply(conversation[:1])
    assert turn.message == Message("user", "Order #W1.")
    system = {
        "role": "system",
        "content": "GUIDELINES\n\n\n<scenario>\nInstructions:\n\tYou {are} Ann.\n</scenario>",
    }
    greeting = {"role": "user", "content": GREETING}
    assert server.bodies[0] == {
        "model": "m",
        "messages": [
            system,
            greeting,
            {"role": "assistant", "content": "I want to return a lamp."},
            {"role": "user", "content": "Which order?"},
        ],
        "seed": 5,
        "temperature": 0.0,
    }
    assert server.bodies[1]["messages"] == [system, greeting]


def test_an_empty_conversation_begins_with_the_greeting() -> None:
    assert flip_roles([]) == [{"role": "user", "content": GREETING}]


async def test_a_user_with_tools_calls_them_and_sees_their_results() -> None:
    with FakeOpenAI([completion(None, tool_calls=[call("restart", {}, "c9")]), text("It works now.")]) as server:
        async with endpoint(server) as client:
            make = LLMUserFactory(client, guidelines="muarl", tools=lambda task: [RESTART])
            user = make(TASK, seed=1)
            conversation = [
                Message("assistant", GREETING),
                Message("user", "No data."),
                Message("assistant", "Restart."),
            ]
            turn = await user.reply(conversation)
            result = Message("tool", "done", tool_call_id="c9", name="restart", requestor="user")
            final = await user.reply([*conversation, turn.message, result])
    assert turn.message.tool_calls == (ToolCall("c9", "restart", {}, requestor="user"),)
    assert final.message.content == "It works now."
    first, second = server.bodies
    assert first["tools"] == [RESTART.to_openai()]
    assert "tools, which act on your own side" in first["messages"][0]["content"]
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "user", "assistant", "tool"]
    assert second["messages"][4]["tool_calls"] == [
        {"id": "c9", "type": "function", "function": {"name": "restart", "arguments": "{}"}}
    ]
    assert second["messages"][5]["tool_call_id"] == "c9"
    assert second["messages"][5]["content"] == "done"


async def test_each_episode_has_its_own_seed_and_its_cost() -> None:
    with FakeOpenAI(text("hi", prompt_tokens=1000, completion_tokens=100)) as server:
        async with endpoint(server, price=Price(2.0, 8.0)) as client:
            make = LLMUserFactory(client, guidelines="muarl", temperature=1.0, max_tokens=50)
            turns = await asyncio.gather(*(make(TASK, seed=s).reply([Message("assistant", "Hi")]) for s in (3, 4)))
    assert sorted(b["seed"] for b in server.bodies) == [3, 4]
    assert {(b["temperature"], b["max_tokens"]) for b in server.bodies} == {(1.0, 50)}
    assert [t.usage.cost for t in turns] == [pytest.approx(0.0028)] * 2


async def test_a_failing_simulator_is_infrastructure_on_the_users_side() -> None:
    for fault in (status(500), text(""), status(401)):
        with FakeOpenAI(fault) as server:
            async with endpoint(server, attempts=2) as client:
                user = LLMUserFactory(client, guidelines="muarl")(TASK, seed=0)
                with pytest.raises(InfrastructureError) as caught:
                    await user.reply([Message("assistant", GREETING)])
        assert caught.value.boundary == "user"


def test_thinking_never_reaches_the_agent() -> None:
    async def reply() -> Message:
        with FakeOpenAI(text("<think>I should not tell.</think>\nHello")) as server:
            async with endpoint(server) as client:
                return (await LLMUserFactory(client, guidelines="muarl")(TASK, seed=0).reply([])).message

    message = asyncio.run(reply())
    assert message.content == "Hello"
    assert message.reasoning == "I should not tell."


def test_the_name_says_model_and_guidelines() -> None:
    client = Endpoint(EndpointSettings(model="m"))
    factory: UserFactory = LLMUserFactory(client, guidelines="muarl")
    assert factory.name == "llm:m (muarl guidelines)"
    assert LLMUserFactory(client, guidelines="tau1").name == "llm:m (tau1 guidelines)"


def test_without_the_benchmark_our_own_guidelines_are_used_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    plain, tools = load_guidelines(), load_guidelines(tools=True)
    assert plain.name == "muarl"
    for word in ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"):
        assert word in plain.template
    assert "call a tool" not in plain.template
    assert "call a tool" in tools.template
    with pytest.raises(DataError, match="muarl data add tau2"):
        load_guidelines("tau2")


def test_which_guidelines_are_used_does_not_depend_on_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for installed in ((), ("tau1", "tau2")):
        monkeypatch.setattr(data, "installed", lambda installed=installed: installed)
        found.append((load_guidelines(), load_guidelines(tools=True)))
    assert found[0] == found[1]
    assert {g.name for g in found[0]} == {"muarl"}


@pytest.mark.parametrize(("tools", "name"), [(False, "simulation_guidelines"), (True, "simulation_guidelines_tools")])
def test_official_guidelines_are_used_byte_for_byte(monkeypatch: pytest.MonkeyPatch, tools: bool, name: str) -> None:
    files = {("tau2", f"user_simulator/{name}.md"): "# Official {x} \n\n"}
    monkeypatch.setattr(data, "installed", lambda: ("tau2",))
    monkeypatch.setattr(data, "read_text", lambda benchmark, file: files[benchmark, file])
    found = load_guidelines("tau2", tools=tools)
    assert found.name == "tau2"
    assert found.system_prompt("S") == "# Official {x} \n\n\n\n<scenario>\nS\n</scenario>"


def test_broken_data_are_an_error_rather_than_another_prompt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tau2").mkdir()
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    with pytest.raises(DataError):
        load_guidelines("tau2")


def test_tau1s_text_puts_the_instruction_first() -> None:
    prompt = load_guidelines("tau1").system_prompt("Return the lamp.")
    assert prompt.startswith("You are a user interacting with an agent.\n\nInstruction: Return the lamp.\n")
    assert "###STOP###" in prompt


@pytest.mark.data
def test_tau2s_own_files_fit_the_template(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "path", lambda wanted: shared_data / wanted)
    official = (shared_data / "tau2" / "user_simulator" / "simulation_guidelines.md").read_bytes().decode()
    assert load_guidelines("tau2").system_prompt("S") == f"{official}\n\n<scenario>\nS\n</scenario>"


async def test_traits_stand_behind_the_scenario_and_in_the_tags() -> None:
    guidelines = around_scenario("own", "GUIDELINES")
    with FakeOpenAI(text("Hm.")) as server:
        async with endpoint(server) as client:
            hard = TraitRanges.of({"withholding": 0.9, "foreign_language": 0.2, "languages": ["fr"]})
            users = LLMUserFactory(client, guidelines=guidelines, traits=hard)
            user, plain = users(TASK, seed=5), LLMUserFactory(client, guidelines=guidelines, traits=TraitRanges())
            assert (await user.reply([Message("assistant", GREETING)])).message.content == "Hm."
            await plain(TASK, seed=5).reply([Message("assistant", GREETING)])
        told, before = (request["messages"][0]["content"] for request in server.bodies)
    assert told.startswith(before) and "# What you are like" not in before
    behaviour = told.removeprefix(before)
    assert "sparing with information, nearly always" in behaviour and "now and then in French" in behaviour
    assert "hurry" not in behaviour and "mistakes," not in behaviour
    assert isinstance(user, LeavesTags) and user.episode_tags()["traits"]["withholding"] == 0.9
    assert users.name == "llm:m (own guidelines, withholding 0.9, foreign language 0.2)"
    assert plain.name == "llm:m (own guidelines)"
