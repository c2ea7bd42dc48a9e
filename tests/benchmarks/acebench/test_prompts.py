"""What agent and user are told, and how text and calls turn into each other."""

from __future__ import annotations

import pytest

from muarl.types.chat import Message, ToolCall
from muarl_worlds.acebench import official as ab
from muarl_worlds.acebench.execute import ERROR


def tool(content, name="f"):
    return Message("tool", content, tool_call_id="1", name=name)


def spoken(*messages):
    return [Message("assistant" if i % 2 == 0 else "user", text) for i, text in enumerate(messages)]


def test_the_user_sees_itself_as_the_system(make):
    task = make(language="zh")
    conversation = spoken(ab.OPENING["zh"], "你好", "agent:agent: 好的", "再见")
    system, *rest = ab.user_messages(task, conversation)
    assert system["role"] == "system" and "Instruction: Delete message {3}.\n" in system["content"]
    assert rest == [
        {"role": "user", "content": "今天有什么需要帮助的吗？"},
        {"role": "system", "content": "你好"},
        {"role": "user", "content": "agent: 好的"},
        {"role": "system", "content": "再见"},
    ]
    assert ab.user_messages(task, []) == [system, rest[0]]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_users_differ_by_what_a_task_involves(make, language):
    phone = ab.user_system(make(language=language))
    desk = ab.user_system(make(language=language, involved_classes=["Travel"], initial_config={}))
    assert phone != desk and "finish conversation" in phone and "finish conversation" in desk


def test_multi_step_users_answer_nothing(make):
    task = make("multi_step")
    assert [ab.scripted_line(task, n) for n in range(3)] == [task.scenario, ab.NO_QUESTIONS, ab.NO_QUESTIONS]


@pytest.mark.parametrize(
    ("index", "text", "ends"),
    [(0, ab.STOP, False), (1, ab.STOP, False), (2, f"ok, {ab.STOP}.", True), (5, "Finish conversation", False)],
)
def test_what_ends_a_conversation(index, text, ends):
    assert ab.stops(index, text) is ends


def test_a_multi_turn_agent_reads_the_whole_conversation_as_one_text(make):
    task = make()
    specs = ab.domain("en").specs_for(task)
    codec = ab.codec(task)
    assert codec.whole
    assert codec.system("POLICY", specs).endswith("as follows:\n\nPOLICY")
    messages = [
        Message("user", "Hi"),
        Message("assistant", "Which one?"),
        Message("user", "The third"),
        Message("assistant", "[f(), f()]", tool_calls=(ToolCall("1", "f"),) * 2),
        tool('{"status": true, "message": "中"}'),
        tool("[{'a': 1}]"),
        Message("assistant", "[hello]", tool_calls=(ToolCall("1", "", raw=""),)),
        tool("", ""),
        Message("assistant", "[g()]", tool_calls=(ToolCall("1", "g"),)),
        tool(ERROR),
    ]
    (prompt,) = codec.given(messages, specs)
    assert prompt.role == "user" and prompt.content is not None
    head, _, history = prompt.content.partition("Conversation history 1..t:\n")
    assert head == f"Below is the list of APIs you can use:\n {[specs[0].doc]}\n\n"
    assert history == (
        "user:Hi\nagent:Which one?\nuser:The third\nagent:[f(), f()]\n"
        "execution:[{'status': True, 'message': '中'}, \"[{'a': 1}]\"]\n"
        f"agent:[hello]\nexecution:[]\nagent:[g()]\nexecution:{list(ERROR)}\n"
    )


def test_a_multi_step_agent_does_not_see_what_it_wrote(make):
    codec = ab.codec(make("multi_step"))
    messages = [
        Message("user", "Do it."),
        Message("assistant", "Which one?"),
        Message("user", ab.NO_QUESTIONS),
        Message("assistant", "[f()]", tool_calls=(ToolCall("1", "f"),)),
        tool("3.0"),
    ]
    assert codec.history(messages) == f"user:Do it.\nexecution result:{ab.NO_QUESTIONS}\nexecution result:[3.0]\n"
    assert codec.system("POLICY", ()) == ab.agent_system("en", "multi_step")


def test_upstreams_slip_of_language_can_be_had(make):
    task = make("multi_step")
    english, chinese = ab.codec(task), ab.codec(task, prompt_language="zh")
    assert english.system("", ()).startswith("You are an AI system")
    assert chinese.system("", ()).startswith("你是一个AI系统")
    assert (
        chinese.given([Message("user", "x")], ())[0].content
        == "以下是你可以调用的API列表（JSON格式）：[]。对话历史：user:x\n\n"
    )


@pytest.mark.parametrize(
    ("text", "turn", "step"),
    [
        ("[f(x=1), g()]", ["f(x=1)", "g()"], ["f(x=1)", "g()"]),
        ("f(x=1)", None, ["f(x=1)"]),
        ("[hello]", [""], [""]),
        ("hello", None, [""]),
        ("Which one?", None, None),
        ("", None, None),
    ],
)
def test_calls_in_what_an_agent_wrote(make, text, turn, step):
    for category, wanted in (("multi_turn", turn), ("multi_step", step)):
        calls = ab.codec(make(category)).calls(text)
        assert ([c.raw for c in calls] or None) == wanted
        assert all(c.invalid is None for c in calls)


def test_arguments_are_kept_beside_the_text(make):
    (call,) = ab.codec(make()).calls("[f(x=(1, b'2'), y=g(z=3))]")
    assert (call.name, dict(call.arguments)) == ("f", {"x": [1, "b'2'"], "y": {"g": {"z": 3}}})


def test_native_calls_are_written_as_milestones_are():
    calls = [ToolCall("1", "f", {"a": "it's", "n": 3}), ToolCall("2", "g")]
    assert ab.serialized(calls) == '[f(a="it\'s", n=3), g()]'
    assert ab.serialized([ToolCall("1", "f", {"a": 1}, raw="f(a=1.0)")]) == "[f(a=1.0)]"
