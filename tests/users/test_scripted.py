"""The scripted user plays its lines and then stops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muarl.basics.errors import ConfigError
from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolCall, is_stop
from muarl.users.base import UserFactory
from muarl.users.scripted import ScriptedUser, ScriptedUserFactory

TASK = Task(id="a", domain="d", scenario="", actions=())


async def test_lines_in_order_then_stop() -> None:
    called = Message("user", None, (ToolCall("1", "look", requestor="user"),))
    user = ScriptedUser(["Hello", called])
    said = [(await user.reply([])).message for _ in range(4)]
    assert said[:2] == [Message("user", "Hello"), called]
    assert [is_stop(m) for m in said] == [False, False, True, True]


async def test_factories_start_every_episode_from_the_first_line() -> None:
    factory: UserFactory = ScriptedUserFactory({"a": ["One"]})
    for _ in range(2):
        assert (await factory(TASK, seed=0).reply([])).message.content == "One"
    listed = replace(TASK, agenda={"lines": ["Two"]})
    assert (await ScriptedUserFactory()(listed, seed=0).reply([])).message.content == "Two"
    for without in (ScriptedUserFactory({"b": []}), ScriptedUserFactory()):
        with pytest.raises(ConfigError, match="'a'"):
            without(TASK, seed=0)
