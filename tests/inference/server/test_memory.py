"""Conversations are found again by what they say, and forgotten in order."""

from __future__ import annotations

from dataclasses import replace

from muarl.types.chat import Message, ToolCall
from muarl_tools.serve_model.memory import ALIKE, Memory

ROOT = b"root"
HI = Message("user", "Hi")
LOOK = Message("assistant", "", (ToolCall("call_a", "look", {"id": "7", "all": True}),))


def say(text: str, **more) -> Message:
    return Message("assistant", text, **more)


def memory(tokens: int = 1000) -> tuple[Memory, list[str]]:
    forgotten: list[str] = []
    return Memory(forgotten.append, tokens=tokens), forgotten


def test_the_longest_known_beginning_is_found() -> None:
    found, _ = memory()
    found.keep(ROOT, [HI, say("Hello")], [1, 2], "s")
    more = [HI, say("Hello"), Message("user", "And?"), LOOK]
    found.keep(ROOT, more, [1, 2, 3, 4], "s")
    told, past = found.find(ROOT, [*more, Message("tool", "a lamp", tool_call_id="call_a")])
    assert (told, list(past.ids)) == (4, [1, 2, 3, 4])
    told, past = found.find(ROOT, [HI, say("Hello"), Message("user", "Or?")])
    assert (told, list(past.ids)) == (2, [1, 2])
    assert found.find(ROOT, [Message("user", "Ho"), say("Hello")]) is None
    assert found.find(b"other tools", more) is None
    assert found.find(ROOT, [HI]) is None


def test_what_clients_change_without_saying_anything_else() -> None:
    found, _ = memory()
    found.keep(ROOT, [HI, replace(LOOK, content=None)], [1], "s")
    call = ToolCall("chatcmpl-tool-1", "look", {"all": True, "id": "7"})
    assert found.find(ROOT, [HI, Message("assistant", "  ", (call,))]) is not None
    assert found.find(ROOT, [HI, Message("assistant", "", (replace(call, arguments={"id": "8"}),))]) is None
    found.keep(ROOT, [HI, say("Hello", reasoning="They greet.")], [2], "t")
    assert found.find(ROOT, [HI, say(" Hello\n")]) is not None
    assert found.find(ROOT, [replace(HI, content="Hi "), say("Hello")]) is None


def test_of_several_that_say_the_same_the_one_that_is_meant() -> None:
    found, _ = memory()
    other = replace(LOOK, tool_calls=(replace(LOOK.tool_calls[0], id="call_b"),))
    found.keep(ROOT, [HI, LOOK], [1], "s")
    found.keep(ROOT, [HI, other], [2], "t")
    assert list(found.find(ROOT, [HI, LOOK])[1].ids) == [1]
    assert list(found.find(ROOT, [HI, other])[1].ids) == [2]
    found.keep(ROOT, [HI, say("Yes", reasoning="one")], [3], "u")
    found.keep(ROOT, [HI, say("Yes", reasoning="two")], [4], "v")
    assert list(found.find(ROOT, [HI, say("Yes", reasoning="one")])[1].ids) == [3]
    assert list(found.find(ROOT, [HI, say("Yes")])[1].ids) == [4]
    for number in range(2 * ALIKE):
        found.keep(ROOT, [HI, say("Same")], [9, number], f"w{number}")
    assert len(found) == 4 + ALIKE


def test_a_session_goes_on_in_one_line_only() -> None:
    found, forgotten = memory()
    first = found.session(None)
    found.keep(ROOT, [HI, say("Hello")], [1], first)
    _, past = found.find(ROOT, [HI, say("Hello"), HI])
    assert found.session(past) == first
    branch = found.session(past)  # somebody else goes on from there meanwhile
    assert branch != first
    found.back(past, branch)
    assert forgotten == [branch]
    found.back(past, first)
    assert found.session(past) == first
    found.keep(ROOT, [HI, say("Hello"), HI, say("Yes?")], [1, 2], first)
    assert found.session(past) != first  # another reply has gone on in it


def test_those_not_asked_for_longest_go_first() -> None:
    found, forgotten = memory(tokens=30)
    for number in range(3):
        found.keep(ROOT, [Message("user", str(number)), say("Hello")], [number] * 10, f"s{number}")
    assert found.find(ROOT, [Message("user", "0"), say("Hello")])
    found.keep(ROOT, [Message("user", "3"), say("Hello")], [3] * 10, "s3")
    assert forgotten == ["s1"]
    assert found.tokens == 30
    assert found.find(ROOT, [Message("user", "1"), say("Hello")]) is None
    _, past = found.find(ROOT, [Message("user", "0"), say("Hello")])
    session = found.session(past)
    found.keep(ROOT, [Message("user", "4"), say("long")], [4] * 30, "s4")  # everything else goes
    found.back(past, session)
    assert "s0" in forgotten
    assert len(found) == 1


def test_the_same_reply_twice_is_kept_once() -> None:
    found, forgotten = memory()
    found.keep(ROOT, [HI, say("Hello")], [1, 2], "s")
    found.keep(ROOT, [HI, say("Hello")], [1, 2], "t")
    assert (len(found), found.tokens, forgotten) == (1, 2, ["s"])
