"""A person at the terminal: lines are read without blocking, Ctrl-D ends, cancelling leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import pty
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from muarl.domains.tasks import Task
from muarl.types.chat import Message, is_stop
from muarl.users.base import UserTurn
from muarl.users.human import HumanUser, HumanUserFactory, LineReader
from support.waiting import settled


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for end in (read, write):
        try:
            os.close(end)
        except OSError:
            pass


async def test_lines_that_come_together_are_read_one_by_one(pipe: tuple[int, int]) -> None:
    read, write = pipe
    reader = LineReader(read)
    os.write(write, "grüße\r\nsecond\nthi".encode())
    assert [await reader(), await reader()] == ["grüße", "second"]
    os.write(write, b"rd")
    os.close(write)
    assert [await reader(), await reader()] == ["third", None]


async def test_waiting_for_a_line_lets_others_run_and_can_be_cancelled(pipe: tuple[int, int]) -> None:
    read, write = pipe
    reader = LineReader(read)
    waiting = asyncio.create_task(reader())
    await settled()
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.write(write, b"later\n")
    assert await reader() == "later"


async def test_a_terminal_can_go_on_after_ctrl_d() -> None:
    person, terminal = pty.openpty()
    try:
        reader = LineReader(terminal)
        for typed, read in ((b"hello\n", "hello"), (b"\x04", None), (b"again\n", "again")):
            os.write(person, typed)
            assert await reader() == read
    finally:
        os.close(person)
        os.close(terminal)


async def test_plain_files_work_too(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    with open(tmp_path / "in.txt") as source:
        reader = LineReader(source.fileno())
        assert [await reader(), await reader(), await reader()] == ["one", "two", None]


async def test_blank_lines_are_asked_again_and_the_end_is_a_stop() -> None:
    lines = iter(["", "  ", " I need help ", None])
    shown: list[int] = []

    async def read_line() -> str | None:
        return next(lines)

    user = HumanUser(read_line, lambda conversation, suggested: shown.append(len(conversation)))
    first = await user.reply([Message("assistant", "Hi")])
    assert first.message == Message("user", "I need help")
    assert shown == [1, 1, 1]
    assert is_stop((await user.reply([])).message)


async def test_factory_shares_one_reader() -> None:
    async def read_line() -> str | None:
        return "hi"

    factory = HumanUserFactory(read_line)
    user = factory(Task(id="a", domain="d", scenario="", actions=()), seed=0)
    assert (await user.reply([])).message.content == "hi"
    assert factory.name == "human"


async def test_a_blank_line_takes_what_is_suggested() -> None:
    lines = iter(["", "my own words", ""])
    suggestions = iter(["first", "second", "bye ###STOP###"])
    shown: list[str | None] = []

    async def read_line() -> str | None:
        return next(lines)

    class Suggests:
        async def reply(self, conversation: Sequence[Message]) -> UserTurn:
            return UserTurn(Message("user", next(suggestions)))

    user = HumanUser(read_line, lambda conversation, suggested: shown.append(suggested), Suggests())
    said = [(await user.reply([])).message.content for _ in range(3)]
    assert said == ["first", "my own words", "bye ###STOP###"]
    assert shown == ["first", "second", "bye ###STOP###"]
