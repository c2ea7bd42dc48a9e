"""The benchmarks' protocols: where their episodes end, who sees what, which seeds. Without their data."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loop_kit import Puppet, call, say
from muarl.accounts.budgets import Budget
from muarl.agents.base import AgentTurn
from muarl.agents.endpoint import EndpointAgent
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.domains.base import Domain
from muarl.domains.tasks import Task
from muarl.domains.tooling import tool
from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings
from muarl.environments.benchmark import BenchmarkPlace, Mode
from muarl.environments.registry import find, names
from muarl.rollouts.conversation import run_episode
from muarl.runs.eval_agent import Nobody
from muarl.types.chat import GREETING, Message, ToolCall
from muarl.types.episode import Episode, StopReason, Usage
from muarl_worlds.tau.protocol import DONE, trial_seeds
from support.fake_openai import FakeOpenAI, completion, text
from support.fake_openai import call as sent_call
from support.toy_shop import Lines, Toy, toy_task

TAU2, TAU1 = "tau2-retail", "tau1-retail"


def place_of(name: str, domain: Domain, mode: Mode = "native", **more: Any) -> BenchmarkPlace:
    """A benchmark's place without its data."""
    return find(name).official().measured(domain, mode, policy="Be kind.", name=name, **more)


class Phone(Domain):
    """The user's side."""

    name: ClassVar[str] = "phone"
    database: ClassVar[Any] = {"phone": {"own": {"on": True}}}

    @tool(writes=True)
    def toggle(self) -> str:
        """Turn the phone on or off."""
        self.db["phone"]["own"]["on"] = not self.db["phone"]["own"]["on"]
        return f"on: {self.db['phone']['own']['on']}"


class Both(Toy):
    """A shop whose customer holds a phone."""

    name: ClassVar[str] = "both"
    user_toolkit = Phone


def test_bfcls_tools_for_qwen_outlive_the_file_that_an_episode_is_kept_in() -> None:
    class Documented(Toy):
        """A shop whose tools have a benchmark's own documents."""

        def specs_for(self, task: Task) -> tuple[Any, ...]:
            return tuple(replace(s, doc={"name": s.name, "own": "words"}) for s in super().specs_for(task))

    domain = Documented()
    offered = tuple(place_of("bfcl-v4", domain, "qwen").tools(toy_task()))
    assert [t.to_openai() for t in offered] == [{"name": t.name, "own": "words"} for t in offered]
    episode = asyncio.run(run_episode(toy_task(), domain.world(), Puppet("Hi."), Lines("a"), tools=offered))
    again = Episode.from_json(json.loads(json.dumps(episode.to_json(context=True))))
    assert again == episode and again.tools is not None
    assert [t.to_openai() for t in again.tools] == [t.to_openai() for t in offered]
    usual = place_of("bfcl-v4", domain).tools(toy_task())
    assert all(t.to_openai()["type"] == "function" for t in usual)


WORLD = Both(semantics="official")
LOOK, BAD = call("look", order_id="#W12"), call("no_such_tool")


def play(agent: Any, user: Any, name: str = TAU2, *, task: Task | None = None, **more: Any) -> Episode:
    settings = {key: more.pop(key) for key in ("solo", "steps", "errors") if key in more}
    place, world = place_of(name, WORLD, **settings), more.pop("world", None) or WORLD.world()
    return asyncio.run(run_episode(task or toy_task(), world, agent, user, place.limits, rules=place.rules, **more))


def roles(episode: Episode) -> str:
    """The episode's messages as letters: agent, user, tool."""
    return "".join({"assistant": "a", "user": "u", "tool": "t"}[m.role] for m in episode.messages)


# ── TAU2: where an episode ends ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("steps", "stop", "seen"),
    [
        (1, StopReason.MAX_TURNS, "au"),
        (2, StopReason.MAX_TURNS, "auat"),  # never between a call and its result
        (3, StopReason.MAX_TURNS, "auat"),
        (4, StopReason.MAX_TURNS, "auata"),
        (5, StopReason.MAX_TURNS, "auatau"),  # said in the last step, a stop word is no end
        (6, StopReason.USER_STOP, "auatau"),
        (None, StopReason.USER_STOP, "auatau"),
    ],
)
def test_steps_are_messages_and_batches_of_results(steps: int | None, stop: StopReason, seen: str) -> None:
    episode = play(Puppet(say(None, LOOK), "Done."), Lines("Look."), steps=steps)
    assert (episode.stop, roles(episode)) == (stop, seen)


def test_results_of_one_message_are_one_step_and_each_error_counts() -> None:
    agent = Puppet(say(None, LOOK, LOOK, LOOK), "Done.")
    assert play(agent, Lines("Look."), steps=6).stop is StopReason.USER_STOP
    wrong = Puppet(say(None, *[BAD] * 12), "Done.")
    assert play(wrong, Lines("Look.")).stop is StopReason.TOOL_ERRORS
    assert play(Puppet(say(None, *[BAD] * 9), "Done."), Lines("Look.")).stop is StopReason.USER_STOP


def test_too_many_errors_outdo_too_many_steps() -> None:
    assert play(Puppet(say(None, BAD)), Lines("Look."), steps=3, errors=1).stop is StopReason.TOOL_ERRORS


def test_two_hundred_steps_and_no_bound_on_turns_or_on_a_users_calls() -> None:
    episode = play(Puppet("Hm?"), Lines("Hm!", stop=None))
    assert episode.stop is StopReason.MAX_TURNS
    assert len(episode.messages) == 201
    toggling = Message("user", None, (ToolCall("u", "toggle", requestor="user"),))
    episode = play(Puppet("Hm?"), Lines(*[toggling] * 60, "Done."))
    assert episode.stop is StopReason.USER_STOP


@pytest.mark.parametrize("word", ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###", "Thanks! ###STOP### Bye."])
def test_a_stop_word_anywhere_in_a_users_words_ends_it_even_at_once(word: str) -> None:
    episode = play(Puppet("Hm?"), Lines(word))
    assert (episode.stop, roles(episode)) == (StopReason.USER_STOP, "au")


def test_a_stop_word_beside_a_call_or_from_the_agent_ends_nothing() -> None:
    beside = Message("user", "###STOP###", (ToolCall("u", "toggle", requestor="user"),))
    episode = play(Puppet("###STOP###"), Lines(beside, "Hi."))
    assert roles(episode) == "autuau"
    assert episode.stop is StopReason.USER_STOP


def test_a_transfer_goes_on_until_the_user_says_so() -> None:
    agent = Puppet(say(None, call("transfer_to_human_agents", summary="x")), "Hold on.")
    assert roles(play(agent, Lines("Hi.", stop="###TRANSFER###"))) == "auatau"


@pytest.mark.parametrize("content", [None, "", "  "])
def test_a_message_with_nothing_in_it_voids_the_attempt(content: str | None) -> None:
    for episode in (play(Puppet(say(content)), Lines("Hi.")), play(Puppet("Hm?"), Lines(Message("user", content)))):
        assert episode.stop is StopReason.INFRASTRUCTURE
        assert episode.tags["retryable"]


def test_a_call_that_cannot_be_read_voids_the_attempt_of_either_side() -> None:
    broken = ToolCall("c", "look", invalid="not JSON", raw="{")
    agent = play(Puppet(say(None, broken)), Lines("Hi."))
    user = play(Puppet("Hm?"), Lines(Message("user", None, (ToolCall("c", "toggle", invalid="not JSON", raw="{"),))))
    assert (agent.stop, agent.tags["boundary"]) == (StopReason.INFRASTRUCTURE, "agent")
    assert (user.stop, user.tags["boundary"]) == (StopReason.INFRASTRUCTURE, "user")


Act = str
ACTS: dict[Act, tuple[str | None, tuple[ToolCall, ...]]] = {
    "text": ("Hm.", ()),
    "stop": ("Bye ###STOP###", ()),
    "call": (None, (LOOK,)),
    "calls": ("Wait ###STOP###", (LOOK, BAD)),
    "bad": (None, (BAD, BAD)),
}


def upstream(agent: Iterator[Act], user: Iterator[Act], steps: int, errors: int) -> tuple[str, int]:
    """TAU2's orchestrator in small: the end, and how many messages there were, the greeting included."""
    sender, to, message, done = "agent", "user", "text", ""
    taken, failed, written = 0, 0, 1
    while not done:
        if to == "env":
            calls = ACTS[message][1]
            failed += sum(c.name == BAD.name for c in calls) if sender == "agent" else len(calls)
            written += len(calls)
            sender, to = "env", sender
        else:
            message = next(user if to == "user" else agent)
            written += 1
            if to == "user" and message == "stop":
                done = "user_stop"
            sender, to = to, "env" if ACTS[message][1] else ("agent" if to == "user" else "user")
        taken += 1
        if to != "env":
            done = "max_turns" if taken >= steps else done
            done = "tool_errors" if failed >= errors else done
    return done, written


SCRIPT = st.lists(st.sampled_from(["text", "text", "call", "calls", "bad"]), min_size=1, max_size=12)


@settings(max_examples=300)
@given(SCRIPT, st.lists(st.sampled_from(list(ACTS)), min_size=1, max_size=12), st.integers(1, 25), st.integers(1, 12))
def test_any_script_ends_where_the_benchmarks_own_loop_ends_it(
    agent: list[Act], user: list[Act], steps: int, errors: int
) -> None:
    wanted = upstream(itertools.cycle(agent), itertools.cycle(user), steps, errors)
    said = [Message("user", *ACTS[act]) for act in itertools.islice(itertools.cycle(user), 40)]
    acted = [say(ACTS[act][0], *ACTS[act][1]) for act in itertools.islice(itertools.cycle(agent), 40)]
    episode = play(Puppet(*acted), Lines(*said, stop=None), steps=steps, errors=errors)
    assert (episode.stop.value, len(episode.messages)) == wanted


# ── TAU2: histories, and an agent alone ──────────────────────────────────────────────────────────────────────────────

BEFORE = (
    Message("user", "Cancel #W12."),
    say(None, call("cancel", "c1", order_id="#W12")),
    Message("tool", "done", tool_call_id="c1", name="cancel"),
    Message("assistant", "It is cancelled."),
)


def begun(*history: Message) -> Task:
    return Task(id="t", domain="both", scenario="", actions=(), history=history)


def test_a_task_with_a_history_goes_on_from_it() -> None:
    agent, user, world = Puppet(say(None, LOOK), "It is."), Lines("Really?"), WORLD.world()
    episode = play(agent, user, task=begun(*BEFORE), world=world, steps=6)
    assert roles(episode) == "uata" + "u" + "at" + "a" + "u"
    assert episode.stop is StopReason.USER_STOP, "what came before is no step of this episode's"
    assert [m.content for m in user.heard[0]] == ["Cancel #W12.", "It is cancelled."]
    assert agent.sessions[0].told[0] == [*BEFORE, Message("user", "Really?")]
    assert episode.messages[6].content == "cancelled", "what was done before is done in this world"


@pytest.mark.parametrize(("length", "seen"), [(1, "ua"), (3, "uata"), (4, "uatau")])
def test_whoever_the_last_message_is_for_speaks_first(length: int, seen: str) -> None:
    episode = play(Puppet("Yes."), Lines("Fine."), task=begun(*BEFORE[:length]), steps=1)
    assert roles(episode) == seen


def test_an_agent_alone_has_both_sides_tools_until_it_is_done() -> None:
    world = WORLD.world()
    agent = Puppet(say(None, call("toggle", "c1")), say(None, LOOK), say("So.", call("done")))
    episode = play(agent, None, solo=True, world=world)
    assert episode.stop is StopReason.AGENT_STOP
    assert episode.stop.chosen
    assert [m.content for m in episode.messages if m.role == "tool"] == ["on: False", "pending"]
    assert all(m.requestor == "assistant" for m in episode.messages if m.role == "tool")
    assert (episode.messages[-1].content, episode.messages[-1].tool_calls) == ("###STOP###", ())
    assert roles(episode) == "atata", "there is no greeting, and nobody to greet"
    assert agent.sessions[0].told[0] == []
    assert world.toolkit("user").db["phone"]["own"]["on"] is False


def test_the_first_message_of_an_agent_alone_is_no_step() -> None:
    acts = [say(None, LOOK), say(None, call("done"))]
    assert play(Puppet(*acts), None, solo=True, steps=3).stop is StopReason.AGENT_STOP
    assert play(Puppet(*acts), None, solo=True, steps=2).stop is StopReason.MAX_TURNS, "done in the very last step"
    assert play(Puppet(say(None, call("done"))), None, solo=True, steps=1).stop is StopReason.AGENT_STOP


@pytest.mark.parametrize("act", [say("Hello?"), say("###STOP###", LOOK)])
def test_an_agent_alone_that_speaks_voids_the_attempt(act: Message) -> None:
    assert play(Puppet(act), None, solo=True).stop is StopReason.INFRASTRUCTURE


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"ticket": "Fix it.", "actions": (object(),)}, True),
        ({"ticket": "Fix it.", "actions": ()}, False),
        ({"ticket": "Fix it.", "actions": None, "initial_actions": ({},)}, True),
        ({"ticket": None, "actions": (object(),)}, False),
        ({"ticket": None, "actions": (), "history": BEFORE}, False),
    ],
)
def test_which_tasks_an_agent_can_work_on_alone(fields: dict[str, Any], fits: bool) -> None:
    assert place_of(TAU2, WORLD).has_ticket(Task(id="t", domain="d", scenario="", **fields)) is fits


def test_only_some_domains_have_a_mode_for_an_agent_alone() -> None:
    with pytest.raises(ConfigError, match="tau2-retail has no solo mode; tau2-telecom"):
        find("tau2-retail").official().measured(WORLD, "native", solo=True, name="tau2-retail")
    telecom = find("tau2-telecom").official()
    prompt = telecom.measured(WORLD, "native", solo=True, policy="Be {kind}.", name="tau2-telecom").system or ""
    assert "<policy>\nBe {kind}.\n</policy>\n<ticket>\n{ticket}\n</ticket>" in prompt
    assert DONE.to_openai()["function"]["parameters"] == {"properties": {}, "title": "parameters", "type": "object"}


# ── TAU1 ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tau1_ends_by_one_stop_word_which_the_first_message_may_hold() -> None:
    episode = play(Puppet("Hm?"), Lines("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"), TAU1)
    assert roles(episode) == "auauauau"
    assert episode.stop is StopReason.USER_STOP


def test_tau1_lets_the_agent_act_thirty_times_and_the_user_answer_the_last() -> None:
    assert play(Puppet("Hm?"), Lines("Hm!", stop=None), TAU1).stop is StopReason.MAX_TURNS
    assert play(Puppet("Hm?"), Lines(*["Hm!"] * 30), TAU1).stop is StopReason.USER_STOP
    assert play(Puppet("Hm?"), Lines(*["Hm!"] * 31), TAU1).stop is StopReason.MAX_TURNS
    looping = play(Puppet(say(None, BAD)), Lines("Hm!"), TAU1)
    assert looping.stop is StopReason.MAX_TURNS, "errors end nothing"
    assert roles(looping) == "au" + "at" * 30


def test_tau1_ends_at_a_transfer_whatever_it_answered() -> None:
    for arguments in ({"summary": "x"}, {}):
        agent = Puppet(say(None, call("transfer_to_human_agents", **arguments)), "Hm?")
        assert play(agent, Lines("Hi."), TAU1).stop is StopReason.TRANSFER
        assert play(agent, Lines("Hi."), TAU2).stop is StopReason.USER_STOP


def test_tau1_runs_one_call_and_keeps_its_greeting_from_the_agent() -> None:
    agent = Puppet(say("Both.", LOOK, call("cancel", order_id="#W12")), "Done.")
    world = WORLD.world()
    episode = play(agent, Lines("Hi."), TAU1, world=world)
    assert not world.writes
    assert roles(episode) == "auatau"
    assert len(episode.messages[2].tool_calls) == 1
    assert agent.sessions[0].told[0] == [Message("user", "Hi.")]


def test_tau1_breaks_off_with_nothing_earned_where_a_call_cannot_be_read_or_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = say(None, ToolCall("c", "look", invalid="not JSON", raw="{"))
    assert play(Puppet(broken), Lines("Hi."), TAU1).stop is StopReason.BROKEN_CALL
    assert play(Puppet(say(None)), Lines("Hi."), TAU1).stop is StopReason.EMPTY_REPLY
    assert StopReason.BROKEN_CALL.truncated
    monkeypatch.setattr("muarl_worlds.tau.tau1.world.NO_OBSERVATION", "pend")
    assert play(Puppet(say(None, LOOK)), Lines("Hi."), TAU1).stop is StopReason.BROKEN_CALL


def test_tau1_passes_a_text_of_nothing_on() -> None:
    assert roles(play(Puppet(AgentTurn(say(""), StopReason.EMPTY_REPLY), "Hm?"), Lines("", "Hi."), TAU1)) == "auauau"


async def test_an_endpoint_agent_of_tau1_forgets_the_calls_that_were_not_run() -> None:
    calls = [sent_call("look", {"order_id": "#W12"}, "a"), sent_call("cancel", {"order_id": "#W12"}, "b")]
    with FakeOpenAI([completion(None, tool_calls=calls), text("Done.", finish_reason="length")]) as server:
        async with Endpoint(EndpointSettings(model="m", base_url=server.url)) as client:
            agent = EndpointAgent(client, one_call=True, send_seed=False, keep_cut=True)
            episode = await run_episode(
                toy_task(), WORLD.world(), agent, Lines("Hi."), rules=place_of(TAU1, WORLD).rules
            )
    assert episode.stop is StopReason.USER_STOP, "a reply that the server cut is taken as it is"
    assert [c["id"] for c in server.bodies[1]["messages"][2]["tool_calls"]] == ["a"]
    assert "seed" not in server.bodies[0]
    assert [m["content"] for m in server.bodies[0]["messages"][1:]] == ["Hi."]


# ── names, seeds, budgets ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_seeds_of_trials_are_the_benchmarks_own() -> None:
    assert trial_seeds(300, 4) == [626729, 373753, 361454, 1567]
    requests = place_of(TAU2, WORLD).requests([toy_task("a"), toy_task("b")], 2, 300, "evaluation")
    assert [(r.task.id, r.number, r.seed) for r in requests] == [
        ("a", 0, 626729), ("b", 0, 626729), ("a", 1, 373753), ("b", 1, 373753),
    ]  # fmt: skip
    assert all(r.one_seed for r in requests)


def test_tau1_has_no_seeds_so_each_episode_has_its_own() -> None:
    requests = place_of(TAU1, WORLD).requests([toy_task("a"), toy_task("b")], 2, 0, "evaluation")
    assert [(r.task.id, r.number) for r in requests] == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert len({r.seed for r in requests}) == 4


def test_every_benchmark_is_an_environment() -> None:
    benchmarks = [environment.official() for environment in map(find, names()) if environment.is_benchmark]
    assert {benchmark.family for benchmark in benchmarks} == {"tau1", "tau2", "bfcl", "acebench"}
    assert find("tau2-telecom-workflow").official().own_name == "telecom-workflow"


def test_a_budget_counts_what_was_used_besides() -> None:
    spent = Usage(prompt_tokens=5, completion_tokens=5, cost=0.5)
    assert Budget(cost=1.0).gone(spent) is None
    assert Budget(cost=1.0, besides=lambda: spent).gone(spent) == "cost_budget"
    assert Budget(tokens=20, besides=lambda: spent).gone(spent) == "token_budget"
    assert Budget().gone(spent) is None


def test_greeting_is_the_benchmarks() -> None:
    assert place_of(TAU2, WORLD).rules.greeting == GREETING == "Hi! How can I help you today?"
    nobody = Nobody()(toy_task(), seed=0)
    with pytest.raises(InfrastructureError, match="no user to talk to"):
        asyncio.run(nobody.reply([]))
