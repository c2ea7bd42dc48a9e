"""The scripted expert for generated BFCL tasks, its errors, and the worlds that mind which tools have been brought."""

from __future__ import annotations

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.scripted_expert import ErrorProfile
from muarl.rewards import outcome
from muarl.types.chat import Message, ToolCall, ToolSpec
from muarl_worlds.bfcl.expert import DONE, NO_TOOL, REFUSAL, BfclExpert
from muarl_worlds.bfcl.generated import generated_bfcl, turn_lines
from support.bfcl import expert, made
from support.environments import users_of


def mean(episodes):
    return sum(e.reward for e in episodes) / len(episodes)


def intents(name, size="tiny", count=300):
    return [t for t in made(size, "train", count) if t.tags["intent"] == name]


def calls(episode):
    return [c.name for m in episode.messages for c in m.tool_calls]


@pytest.mark.parametrize(("size", "count"), [("tiny", 24), ("small", 24), ("medium", 16), ("official", 16)])
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_clean_expert_solves_every_task_by_the_gold_calls(size, count, split):
    tasks = made(size, split, count)
    episodes = expert(tasks, size)
    assert [t.id for t, e in zip(tasks, episodes, strict=True) if e.reward < 1] == []
    for task, episode in zip(tasks, episodes, strict=True):
        made_calls = [(c.name, dict(c.arguments)) for m in episode.messages for c in m.tool_calls]
        wanted = [(a.name, dict(a.arguments)) for a in task.actions]
        if task.tags["intent"] != "missing_tool":  # there the log-ins may come earlier, and nothing else
            assert made_calls == wanted
        assert sorted(map(str, made_calls)) == sorted(map(str, wanted))
        assert sum(m.role == "assistant" for m in episode.messages) <= 30


@pytest.mark.parametrize(
    ("error", "intent"),
    [("guess", "missing_value"), ("try_forbidden", "missing_tool"), ("needless_transfer", "one_request")],
)
def test_each_error_fails_where_it_shows(error, intent):
    tasks = intents(intent)[:40]
    assert mean(expert(tasks, **{error: 1.0})) < 0.35
    others = intents("one_request" if intent != "one_request" else "missing_value")[:20]
    assert mean(expert(others, **{error: 1.0})) == (0.0 if error == "needless_transfer" else 1.0)


def test_a_second_request_can_be_forgotten():
    tasks = [t for t in intents("several_requests") if len(t.agenda["turns"]) == 1][:40]
    assert mean(expert(tasks, forget_second=1.0)) == 0.0


def test_a_wrong_id_is_noticed_and_corrected():
    for size in ("tiny", "small"):
        episodes = expert(made(size, "train", 24), size, wrong_id=1.0)
        assert mean(episodes) > 0.9
        assert any(m.error for e in episodes for m in e.messages)


# one conversation


def spec(name):
    return ToolSpec(name, "", {"properties": {}})


def told(brain, text, *results):
    """What the expert does after a user's words, given what its calls bring."""
    message = brain.act([Message("user", text)])
    done = []
    for result in results:
        assert message.tool_calls, message
        done.append((message.tool_calls[0].name, dict(message.tool_calls[0].arguments)))
        message = brain.act([Message("tool", result, error=result.startswith("Error"))])
    return done, message


def test_a_missing_value_is_asked_for():
    brain = BfclExpert(seed=0)
    assert told(brain, "Send Bram a message.") == ([], Message("assistant", "What should the message say?"))
    done, last = told(brain, 'Write "hello there".', '{"user_id": "USR104"}', '{"sent_status": true}')
    assert done == [
        ("get_user_id", {"user": "Bram"}), ("send_message", {"receiver_id": "USR104", "message": "hello there"})
    ]  # fmt: skip
    assert last.content == DONE


def test_a_missing_tool_is_said_and_used_once_it_is_there():
    for how in ("offered", "in words"):
        brain = BfclExpert(seed=0)
        brain.offer([spec("get_user_id"), spec("delete_message")])
        done, last = told(brain, 'Send Bram the message "hi".', '{"user_id": "USR104"}')
        assert last.content == NO_TOOL
        text = "What about now?"
        if how == "offered":
            brain.offer([spec("send_message")])
            text = '{"type": "function", "function": {"name": "send_message"}}\nWhat about now?'
        else:
            text = 'More:\n{"type": "function", "function": {"name": "send_message", "x": 1}}\nWhat about now?'
        done, last = told(brain, text, '{"sent_status": true}')
        assert done == [("send_message", {"receiver_id": "USR104", "message": "hi"})] and last.content == DONE


def test_a_user_who_moves_on_is_followed():
    brain = BfclExpert(seed=0)
    brain.offer([spec("close_ticket")])
    assert told(brain, "Cancel order 30117.")[1].content == NO_TOOL
    assert told(brain, "Close ticket 4103.", '{"status": "ok"}')[0] == [("close_ticket", {"ticket_id": 4103})]


def test_what_does_not_work_is_said():
    brain = BfclExpert(seed=0)
    assert told(brain, "Close ticket 4103.", "Error: not found")[1].content == "I could not do that."
    assert told(brain, "Delete my last message to Bram.", '{"x": 1}')[1].content == "I could not do that."
    assert told(brain, "How are you?")[1].content == DONE


def test_where_it_has_gone_is_remembered_also_after_a_failure():
    brain = BfclExpert(seed=0)
    into = '{"current_working_directory": "barn"}'
    done, last = told(brain, "In barn, delete menu.json.", into, "Error: no such file")
    assert [name for name, _ in done] == ["cd", "rm"] and last.content == "I could not do that."
    assert told(brain, "In barn, delete memo.txt.", "null")[0] == [("rm", {"file_name": "memo.txt"})]
    assert told(brain, "In harbor, delete memo.txt.", "Error: busy")[0] == [("cd", {"folder": ".."})]
    assert told(brain, "In barn, delete tides.md.", "null")[0] == [("rm", {"file_name": "tides.md"})]


def test_one_that_refuses_does_so_all_along():
    brain = BfclExpert(seed=0, error_profile=ErrorProfile(needless_transfer=1.0))
    assert told(brain, "Close ticket 4103.")[1].content == told(brain, "Please?")[1].content == REFUSAL


# worlds


def test_a_tool_that_is_yet_to_come_does_not_work_and_spoils_the_task():
    task = next(t for t in intents("missing_tool") if list(t.agenda["brings"]) == ["1"])
    domain = generated_bfcl("tiny")
    (held,) = task.agenda["brings"]["1"]
    gold = [ToolCall("", a.name, a.arguments) for a in task.actions]
    (call,) = [c for c in gold if c.name == held][:1]

    honest, hasty = domain.world(task), domain.world(task)
    for world in (honest, hasty):
        world.hear(Message("user", task.agenda["turns"][0]))
    assert hasty.call("assistant", call).content == f"Error: there is no tool {held!r}."
    for world in (honest, hasty):
        for text in task.agenda["turns"][1:]:
            world.hear(Message("user", text))
        assert not any(world.call("assistant", c).error for c in gold)
    assert honest.digest() == outcome.gold_digest(domain, task) != hasty.digest()
    assert honest.instances.digest() == hasty.instances.digest()


def test_tools_that_a_task_does_not_have_do_not_work():
    task = made("tiny", "train", 1)[0]
    world = generated_bfcl("tiny").world(task)
    for name in ("pwd", "nothing", "trading_login"):
        result = world.call("assistant", ToolCall("", name, {}))
        assert result.error and "no tool" in result.content
    assert world.call("assistant", ToolCall("", "cd", invalid="cut")).error
    assert world.digest() == generated_bfcl("tiny").world(task).digest()


def test_what_tiny_worlds_answer_is_short_and_others_answer_as_the_benchmark():
    short = [m.content for e in expert(made("tiny", "test", 60)) for m in e.messages if m.role == "tool"]
    long = [m.content for e in expert(made("small", "test", 60), "small") for m in e.messages if m.role == "tool"]
    assert max(map(len, short)) < 40 and not any("{" in text for text in short)
    assert all(text.startswith(("{", "[")) or text == "None" for text in long)


async def test_the_user_says_the_lines_and_brings_the_tools():
    for task in (*made("tiny", "test", 30), *made("official", "test", 10)):
        user = users_of("bfcl", seed=3)(task, seed=4)
        turns = [await user.reply([]) for _ in range(len(task.agenda["turns"]) + 1)]
        assert [(t.message.content, t.tools) for t in turns[:-1]] == list(turn_lines(task))
        assert turns[-1].message.content == "###STOP###"
    with pytest.raises(ConfigError, match="has no agenda"):
        users_of("bfcl")(type(task)("x", "bfcl", "", None), seed=0)
