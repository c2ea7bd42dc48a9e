"""The conversation loop: who sees what, how it ends, and what the learner is given."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from loop_kit import Puppet, RecordingSampler, call, call_json, say, small_tokenizer
from muarl.agents.base import AgentTurn
from muarl.agents.idle import TRANSFERRED, IdleAgent, TransferAgent
from muarl.agents.sampled import SampledAgent, Sampling
from muarl.basics.errors import ConfigError, InfrastructureError
from muarl.chat_formats.qwen3 import Qwen3Format
from muarl.rollouts.conversation import agent_view, run_episode
from muarl.rollouts.rules import Limits, Rules
from muarl.types.chat import GREETING, Message
from muarl.types.episode import Episode, StopReason, Usage
from support.toy_shop import Lines, Toy, toy_task
from support.waiting import happened

CHAT = Qwen3Format(small_tokenizer())
DOMAIN = Toy()


def play(agent, user, limits=None, *, world=None, **options) -> Episode:
    return asyncio.run(run_episode(toy_task(intent="cancel"), world or DOMAIN.world(), agent, user, limits, **options))


def roles(episode: Episode) -> list[str]:
    return [m.role for m in episode.messages]


# ── the protocol ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_whole_episode():
    world = DOMAIN.world()
    agent = Puppet(say("", call("look", order_id="#W12")), say("", call("cancel", order_id="#W12")), "Done.")
    user = Lines("Cancel #W12.")
    episode = play(agent, user, world=world, seed=7, episode_id="e1", group="g")
    assert episode.stop is StopReason.USER_STOP
    assert roles(episode) == ["assistant", "user", "assistant", "tool", "assistant", "tool", "assistant", "user"]
    assert [m.content for m in episode.messages if m.role == "tool"] == ["pending", "done"]
    assert [c.name for c in world.writes] == ["cancel"]
    assert user.heard[0] == [Message("assistant", GREETING)]
    assert [m.content for m in user.heard[1]] == [GREETING, "Cancel #W12.", "Done."]
    (session,) = agent.sessions
    assert [[m.role for m in told] for told in session.told] == [["assistant", "user"], ["tool"], ["tool"]]
    assert (session.system, session.seed, session.name, session.closed) == (DOMAIN.policy_text, 7, "e1", 1)
    assert [t.name for t in session.tools] == ["look", "cancel", "transfer_to_human_agents"]
    assert (episode.id, episode.task_id, episode.domain, episode.group, episode.tags) == (
        "e1",
        "t1",
        "toy",
        "g",
        {"intent": "cancel"},
    )
    assert (episode.system, episode.tools) == (DOMAIN.policy_text, DOMAIN.tool_specs())
    assert set(episode.timings) == {"agent", "user", "world", "total"}
    assert episode.timings["total"] >= episode.timings["agent"] + episode.timings["user"] + episode.timings["world"]
    assert Episode.from_json(episode.to_json(context=True)) == episode


def test_greeting_may_stay_out_of_the_agents_context():
    agent = Puppet("Hello.")
    rules = Rules(greeting_in_context=False)
    episode = play(agent, Lines("Hi"), rules=rules)
    assert [m.role for m in agent.sessions[0].told[0]] == ["user"]
    assert [m.role for m in agent_view(episode.messages, rules)] == ["user", "assistant", "user"]
    assert [m.role for m in agent_view(episode.messages)] == ["assistant", "user", "assistant", "user"]


def test_a_history_is_heard_though_the_greeting_is_not():
    rules = Rules(greeting_in_context=False)
    history = (
        Message("assistant", "Hi!"),
        Message("user", "Look at #W12."),
        say(None, call("look", "a", order_id="#W12")),
        Message("tool", "pending", tool_call_id="a", name="look"),
    )
    for before, heard in (
        (history[:2], ["Look at #W12."]),
        (history, ["Look at #W12.", None, "pending"]),
        ((*history, say("It is pending.")), ["Look at #W12.", None, "pending", "It is pending.", "Hm."]),
    ):
        agent = Puppet("Done.")
        task = replace(toy_task(), history=before)
        episode = asyncio.run(run_episode(task, DOMAIN.world(), agent, Lines("Hm."), rules=rules))
        assert [m.content for m in agent.sessions[0].told[0]] == heard
        seen = agent_view(episode.messages, rules)
        assert [m.content for m in seen[: len(heard)]] == heard, "training reads what the agent read"


def test_all_calls_of_a_message_run_in_order_and_its_text_stays_private():
    agent = Puppet(say("Secret.", call("look", "a", order_id="#W12"), call("cancel", "b", order_id="#W12")), "Done.")
    user = Lines("Cancel #W12.")
    episode = play(agent, user)
    answers = agent.sessions[0].told[1]
    assert [(m.tool_call_id, m.name, m.content) for m in answers] == [("a", "look", "pending"), ("b", "cancel", "done")]
    assert "Secret." not in [m.content for m in user.heard[-1]]
    assert "Secret." in [m.content for m in episode.messages]


def test_agent_cannot_stop_the_conversation():
    assert play(Puppet("###STOP###", "Bye."), Lines("Hi", "And?")).stop is StopReason.USER_STOP


def test_a_users_tools_are_its_own_affair():
    class Phone(Toy):
        """A domain whose user has tools."""

        user_toolkit = Toy

    agent = Puppet("Look at it.", "Fine.")
    user = Lines("My phone is broken.", Message("user", None, (call("look", "u", order_id="#W13"),)), "It is shipped.")
    episode = play(agent, user, world=Phone().world())
    assert episode.stop is StopReason.USER_STOP
    assert [[m.content for m in told] for told in agent.sessions[0].told[1:]] == [["It is shipped."]]
    (result,) = [m for m in episode.messages if m.role == "tool"]
    assert (result.content, result.requestor) == ("shipped", "user")
    assert result in user.heard[2]


def test_what_the_agent_is_told_may_be_another_text_and_other_tools():
    agent = Puppet("Hello.")
    episode = play(agent, Lines("Hi"), system="Be brief.", tools=DOMAIN.tool_specs()[:1])
    (session,) = agent.sessions
    assert (session.system, [t.name for t in session.tools]) == ("Be brief.", ["look"])
    assert (episode.system, episode.tools) == ("Be brief.", DOMAIN.tool_specs()[:1])
    play(agent, Lines("Hi"), system="", tools=())
    assert (agent.sessions[-1].system, agent.sessions[-1].tools) == ("", ())


def test_tasks_may_differ_in_what_the_agent_is_told():
    class Varied(Toy):
        """Tells of each task by its own policy and tools."""

        def policy_for(self, task):
            return f"{self.policy_text} {task.tags['intent']}"

        def specs_for(self, task):
            return self.tool_specs()[1:]

    agent = Puppet("Hello.")
    play(agent, Lines("Hi"), world=Varied().world())
    assert agent.sessions[0].system.endswith("orders. cancel")
    assert [t.name for t in agent.sessions[0].tools] == ["cancel", "transfer_to_human_agents"]


# ── how it ends ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_transfer_ends_only_by_rule():
    agent = TransferAgent()
    ended = play(agent, Lines("Hi"), rules=Rules(transfer_ends=True))
    assert (ended.stop, roles(ended)[-1]) == (StopReason.TRANSFER, "tool")
    left = play(agent, Lines("Hi", stop="###TRANSFER###"))
    assert left.stop is StopReason.USER_STOP and left.messages[-2].content == TRANSFERRED


def test_a_failed_transfer_does_not_end_it():
    agent = Puppet(say("", call("transfer_to_human_agents")), "Sorry.")
    assert play(agent, Lines("Hi"), rules=Rules(transfer_ends=True)).stop is StopReason.USER_STOP


def test_transfer_agent_needs_a_tool():
    with pytest.raises(ConfigError, match="no transfer tool"):
        play(TransferAgent("escalate"), Lines("Hi"))


def test_turn_limit_counts_agent_messages_and_lets_the_user_answer():
    assert play(Puppet("Hm?"), Lines("a", "b", "c"), Limits(turns=3)).stop is StopReason.USER_STOP
    cut = play(IdleAgent(), Lines("a", "b", "c"), Limits(turns=2))
    assert cut.stop is StopReason.MAX_TURNS and cut.stop.truncated
    assert roles(cut) == ["assistant", "user", "assistant", "user", "assistant", "user"]
    looping = play(Puppet(say("", call("look", order_id="#W12"))), Lines("a"), Limits(turns=5))
    assert looping.stop is StopReason.MAX_TURNS and roles(looping).count("tool") == 5


def test_tool_error_limit():
    bad = call("no_such_tool")
    episode = play(Puppet(say("", bad, bad)), Lines("a"), Limits(tool_errors=3))
    assert episode.stop is StopReason.TOOL_ERRORS
    assert sum(m.error for m in episode.messages) == 4, "a message's calls are all run before the limit is looked at"


@pytest.mark.parametrize("empty", ["", None, "  \n"])
def test_empty_reply(empty):
    assert play(Puppet(say(empty)), Lines("a")).stop is StopReason.EMPTY_REPLY


@pytest.mark.parametrize("stop", [StopReason.TURN_LENGTH, StopReason.CONTEXT_FULL, StopReason.EMPTY_REPLY])
def test_stop_of_the_agent_is_taken_over(stop):
    world = DOMAIN.world()
    turn = AgentTurn(say("", call("cancel", order_id="#W12")), stop, Usage(completion_tokens=5))
    episode = play(Puppet(turn), Lines("a"), world=world)
    assert episode.stop is stop and not world.writes
    assert episode.agent_usage.completion_tokens == 5


# ── failures outside the policy ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("agent", "user", "boundary", "text", "retryable"),
    [
        (Puppet("x"), Lines(InfrastructureError("no answer", boundary="user")), "user", "no answer", True),
        (Puppet("x"), Lines(RuntimeError("boom")), "user", "RuntimeError", True),
        (Puppet("x"), Lines("  "), "user", "said nothing", True),
        (Puppet("x"), Lines(Message("user", None, (call("look"),)), stop=None), "user", "in a row", True),
        (
            Puppet(InfrastructureError("wrong key", boundary="agent", retryable=False)),
            Lines("a"),
            "agent",
            "wrong key",
            False,
        ),
        (Puppet(KeyError("k")), Lines("a"), "agent", "KeyError", True),
        (Puppet(TypeError("no argument 'x'")), Lines("a"), "agent", "TypeError: no argument 'x' (", False),
        (Puppet("x"), Lines(TypeError("t")), "user", "TypeError", True),
    ],
)
def test_infrastructure_is_attributed_and_not_scored(agent, user, boundary, text, retryable):
    episode = play(agent, user, Limits(tool_errors=1000))
    assert episode.stop is StopReason.INFRASTRUCTURE and not episode.stop.truncated
    assert episode.error is not None and episode.error.startswith(boundary) and text in episode.error
    assert (episode.tags["boundary"], episode.tags["retryable"]) == (boundary, retryable)
    assert episode.verdict is None
    assert all(s.closed == 1 for s in agent.sessions)
    assert Episode.from_json(episode.to_json(context=True)) == episode


def test_a_world_that_raises_is_infrastructure():
    class Broken(Toy):
        """Raises where no call is to blame."""

        def sync(self, world):
            raise OSError("disk")

    episode = play(Puppet(say("", call("look", order_id="#W12"))), Lines("a"), world=Broken().world())
    assert episode.stop is StopReason.INFRASTRUCTURE and episode.tags["boundary"] == "world"
    assert "OSError in tool look" in (episode.error or "")


def test_cancellation_closes_the_session():
    agent = Puppet("x")

    async def cancel():
        user = Lines("a", 60.0)
        task = asyncio.create_task(run_episode(toy_task(), DOMAIN.world(), agent, user))
        await happened(lambda: len(user.heard) == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert agent.sessions[0].closed == 1


# ── the sampled agent ────────────────────────────────────────────────────────────────────────────────────────────────


def sampled(*replies, **limits):
    sampler = RecordingSampler(CHAT, *replies)
    return SampledAgent(sampler, CHAT, Sampling(**limits)), sampler


def test_what_is_trained_is_what_was_sampled_id_for_id():
    odd = f"One moment.  {call_json('look', order_id='#W12')}{call_json('cancel', order_id='#W12')} and more"
    agent, sampler = sampled(odd, "<tool_call>\n{broken\n</tool_call>", call_json("look", order_id="#W12"), "Done.")
    world = DOMAIN.world()
    episode = play(agent, Lines("Cancel <|im_end|> #W12 🙂"), world=world, seed=5, episode_id="e")
    assert episode.stop is StopReason.USER_STOP and len(world.writes) == 1
    trace = episode.tokens
    assert trace is not None
    at = 0
    for (session, prompt, params), gave in zip(sampler.seen, sampler.gave, strict=True):
        assert session == "e" and params.stop_ids == CHAT.stop_ids
        assert tuple(trace.ids[: len(prompt)]) == prompt
        assert not any(trace.loss_mask[at : len(prompt)])
        at = len(prompt) + len(gave.ids)
        assert tuple(trace.ids[len(prompt) : at]) == gave.ids
        assert tuple(trace.logprobs[len(prompt) : at]) == gave.logprobs
        assert all(trace.loss_mask[len(prompt) : at])
        assert set(trace.versions[len(prompt) : at]) == {3}
    assert at == len(trace)
    assert trace.sampled_count == sum(len(g.ids) for g in sampler.gave) == episode.agent_usage.completion_tokens
    spans = [t.span for t in episode.turns if t.span is not None]
    assert [tuple(trace.ids[a:b]) for a, b in spans] == [g.ids for g in sampler.gave]
    assert [t.version for t in episode.turns if t.span is not None] == [3] * 4
    assert sampler.closed == ["e"]
    assert len({p.seed for _, _, p in sampler.seen}) == 4
    ids = [c.id for m in episode.messages for c in m.tool_calls]
    assert ids == ["call_0", "call_1", "call_2", "call_3"]


def test_a_malformed_call_is_answered_and_the_episode_goes_on():
    agent, sampler = sampled("<tool_call>\n{broken\n</tool_call>", "Sorry.")
    episode = play(agent, Lines("a"))
    (answer,) = [m for m in episode.messages if m.role == "tool"]
    assert answer.error and "not valid JSON" in (answer.content or "")
    assert answer.content and answer.content in CHAT.text(sampler.seen[1][1])
    assert episode.stop is StopReason.USER_STOP


def test_recorded_episode_trains_on_the_same_tokens():
    replies = [say("Wait.", call("look", order_id="#W12"), call("look", order_id="#W13")), say("Done."), say("Bye.")]
    for rules in (Rules(), Rules(greeting_in_context=False)):
        agent, _ = sampled(*replies)
        episode = play(agent, Lines("Cancel #W12", "Thanks <tool_call>"), rules=rules)
        trace = CHAT.training_tokens(DOMAIN.policy_text, DOMAIN.tool_specs(), agent_view(episode.messages, rules))
        assert episode.tokens is not None
        assert trace.ids == episode.tokens.ids and trace.loss_mask == episode.tokens.loss_mask


def test_sampling_parameters_reach_the_sampler():
    agent, sampler = sampled("x", turn_tokens=9, temperature=0.5, top_p=0.9, top_k=4)
    play(agent, Lines("a"), seed=1)
    first = sampler.seen[0][2]
    assert (first.max_tokens, first.temperature, first.top_p, first.top_k) == (9, 0.5, 0.9, 4)
    again, other = sampled("x")[1], sampled("x")[1]
    for sampler_, seed in ((again, 1), (other, 2)):
        play(SampledAgent(sampler_, CHAT), Lines("a"), seed=seed)
    assert again.seen[0][2].seed == first.seed != other.seen[0][2].seed


def test_token_limits():
    agent, sampler = sampled("word " * 50, turn_tokens=10)
    episode = play(agent, Lines("a"))
    assert episode.stop is StopReason.TURN_LENGTH and len(sampler.gave[0].ids) == 10
    assert episode.tokens is not None and episode.tokens.sampled_count == 10

    start = len(sampler.seen[0][1])
    agent, _ = sampled("word " * 50, turn_tokens=100, context=start + 20)
    episode = play(agent, Lines("a"))
    assert episode.stop is StopReason.CONTEXT_FULL and len(episode.tokens or ()) == start + 20

    agent, sampler = sampled("x", context=start)
    episode = play(agent, Lines("a"))
    assert episode.stop is StopReason.CONTEXT_FULL and not sampler.seen and len(episode.tokens or ()) == 0

    agent, _ = sampled("")
    assert play(agent, Lines("a")).stop is StopReason.EMPTY_REPLY
    agent, _ = sampled([])
    assert play(agent, Lines("a")).stop in (StopReason.EMPTY_REPLY, StopReason.TURN_LENGTH)


def test_a_sampler_that_fails_is_the_agents_infrastructure():
    agent, sampler = sampled(InfrastructureError("engine gone", boundary="agent"))
    episode = play(agent, Lines("a"), episode_id="e")
    assert episode.stop is StopReason.INFRASTRUCTURE and sampler.closed == ["e"]
